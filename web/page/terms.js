// The terms of the page: a sentence for each, and the document that says more.
// @ts-check

/** Each term with other forms, its sentence, and the document that says more.
 * @type {[string, string, string][]} */
export const TERMS = [
    ["ACK|ACKs", "An acknowledgment: the receiver of data tells the sender up to which byte everything has arrived.", "tcp"],
    ["ACK filter", "Discards older ACKs that wait in a station's uplink buffer, since a newer one confirms the same bytes.", "ack-filter"],
    ["ACK policer", "Drops ACKs above a rate in the network, so that a router or modem has fewer packets to forward.", "police"],
    ["Accelerator", "A node near the radio that acknowledges early to the server and sends at the rate that the radio carries.", "accelerator"],
    ["BBR", "A congestion control that measures bandwidth and shortest round trip, and sends at that rate instead of filling the buffer.", "tcp"],
    ["BSR", "Buffer status report: the station tells the base station how many bytes wait in its uplink buffer.", "nr"],
    ["bufferbloat", "Delay by buffers that are far larger than a round trip needs: loss-based controls fill them to the end.", "tcp"],
    ["Congestion control", "The sender's rule for how many bytes may be on their way: it probes for capacity and yields when there is none.", "tcp"],
    ["Congestion window", "Bytes that the congestion control allows to be sent and not yet acknowledged.", "tcp"],
    ["CQI", "Channel quality indicator: the station's report of the rate that its downlink bears, from 0 to 15.", "nr"],
    ["CUBIC", "The usual congestion control: the window grows as a cubic function of the time since the last loss.", "tcp"],
    ["Downlink", "From the base station to the mobile station.", "nr"],
    ["FDD", "Frequency division duplex: downlink and uplink have a carrier each and are on the air at the same time.", "nr"],
    ["FQ-CoDel", "A queue discipline that gives each connection a queue of its own and keeps each of them short (RFC 8290).", "scenario"],
    ["Goodput", "Payload that arrived, in bits per second, without headers and without what was sent twice.", "results"],
    ["Grant|grants", "The base station's permission to send in an uplink slot: a station without one has to wait.", "nr"],
    ["HARQ", "Hybrid ARQ: a block that was not decoded is sent again within milliseconds and combined with the first copy.", "nr"],
    ["HARQ-ACK|HARQ-ACKs", "The receiver's answer whether a block was decoded; in TDD it waits for an uplink slot.", "nr"],
    ["Jain|Jain index", "Jain's fairness index of the stations' goodput: 1 if all have the same, 1/n if one of n has everything.", "results"],
    ["K1", "Slots from a downlink block (PDSCH) to its HARQ-ACK in the uplink.", "nr"],
    ["K2", "Slots from a grant to the uplink transmission (PUSCH) that it permits.", "nr"],
    ["LTE", "Radio of the fourth generation, with subframes of 1 ms.", "nr"],
    ["MCS", "Modulation and coding scheme: how many bits a resource element carries, chosen for the present SINR.", "nr"],
    ["NR", "New Radio, the radio of 5G: slots of 1 ms down to 0.125 ms, and patterns of downlink and uplink slots.", "nr"],
    ["Pacing|paced|paces", "Spreads segments over the round trip, where bursts would overflow a short buffer.", "tdd-pacing"],
    ["PDSCH", "Physical downlink shared channel: the blocks with data for the stations.", "nr"],
    ["PRB|PRBs", "Physical resource block: twelve subcarriers, the unit in which the scheduler shares the carrier.", "nr"],
    ["PUSCH", "Physical uplink shared channel: the blocks with the stations' data, and so their ACKs.", "nr"],
    ["QAM|256QAM", "Quadrature amplitude modulation: 256QAM carries eight bits in each symbol, and needs a high SINR.", "nr"],
    ["RLC|RLC AM|RLC UM", "Radio link control: cuts packets into blocks; mode AM repeats lost ones, mode UM does not.", "nr"],
    ["Round-trip time|round trip", "From sending a segment to its ACK, with all the waiting in buffers between.", "tcp"],
    ["RTT", "Round-trip time: from sending a segment to its ACK, with all the waiting in buffers between.", "tcp"],
    ["Seeds", "Numbers of the random streams: the same seed gives the same run, several give an interval of confidence.", "results"],
    ["Segment|segments", "A TCP packet with data, here of up to 1448 bytes.", "tcp"],
    ["SINR|SINRs", "Signal to interference and noise ratio: the quality of the radio channel, which decides the rate.", "nr"],
    ["Slots|slot", "The radio's unit of time: each slot of a TDD cell is for the downlink, the uplink, or special.", "nr"],
    ["TCP", "Transmission Control Protocol: carries a stream of bytes reliably, and shares the path with others.", "tcp"],
    ["TDD", "Time division duplex: downlink and uplink take turns on one carrier, by a pattern of slots.", "nr"],
    ["TDD pattern|pattern DDDSU|DDDSU", "The order of slots: D for downlink, U for uplink, S for special with symbols of both.", "nr"],
    ["Uplink", "From the mobile station to the base station; ACKs of downloads go this way.", "nr"],
];

/** The place of each form, in small letters, in the list. @type {Map<string, number>} */
export const places = new Map(TERMS.flatMap(([names], index) => names.split("|").map((name) => [name.toLowerCase(), index])));
const longestFirst = [...places.keys()].sort((a, b) => b.length - a.length);
/** Finds the terms in a text. */
export const PATTERN = new RegExp(`(?<![\\w-])(${longestFirst.map((name) => name.replace(/[-/]/g, "\\$&")).join("|")})(?![\\w-])`, "gi");

/** The sentence of a term; none for another word. @param {string} word */
export function sentence(word) {
    const place = places.get(word.toLowerCase());
    return place === undefined ? undefined : TERMS[place][1];
}
