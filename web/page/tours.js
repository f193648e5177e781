// The texts and settings of the guided tours: two lessons, then five steps for each system, the last one with
// the setting of its paper, as `paceline reproduce` runs it, with the times of the built-in scenario.
// @ts-check

/** @typedef {import("./tour.js").Step} Step */

/** @param {string} title @param {string} text @param {string} scenario @param {[string, string][]} set
 * @returns {Step} */
const step = (title, text, scenario, set = []) => ({ title, text, scenario, set, compare: false, base: true });
/** A step that is compared with the last base before it. @param {Parameters<typeof step>} parts @returns {Step} */
const against = (...parts) => ({ ...step(...parts), compare: true, base: false });
/** The same, and the base of later steps. @param {Parameters<typeof step>} parts @returns {Step} */
const onwards = (...parts) => ({ ...against(...parts), base: true });
/** A step with a scenario of its own. @param {string} own @param {Step} step @returns {Step} */
const withText = (own, step) => ({ ...step, own });

const LINE = `# A line of 50 Mb/s with one buffer for all: a download, and a call that gets 160 bytes every 20 ms.

[run]
duration = "10 s"
warmup = "2 s"

[core]
hops = [{ rate = "1 Gb/s", delay = "5 ms" }]

[link]
delay = "10 ms"
queue = "100 kB"
queue_discipline = "drop-tail"

[link.fixed]
downlink_rate = "50 Mb/s"

[tcp]
congestion_control = "cubic"

[[station]]
name = "download"

[[station]]
name = "call"
file = "16 MB"
chunk = "160 B"
chunk_interval = "20 ms"
tcp = { nagle = "off" }
`;
const CELL = `# A private 5G cell with two congestion controls. Every station has a buffer of its own.

[run]
duration = "8 s"
warmup = "2 s"

[core]
hops = [{ rate = "10 Gb/s", delay = "5 ms" }]

[cell]
frequency = "3.75 GHz"
bandwidth = "100 MHz"
pattern = "DDDSU"
downlink_buffer = "3 MB"

[[station]]
name = "CUBIC"
count = 5
downlink_sinr = "24 dB"
uplink_sinr = "15 dB"
fading = "2 dB"

[[station]]
name = "BBR"
count = 5
downlink_sinr = "24 dB"
uplink_sinr = "15 dB"
fading = "2 dB"
tcp.congestion_control = "bbr"
`;
const SHARED = `# A link of 100 Mb/s with one buffer, as of a backhaul or a home router, and two congestion controls.

[run]
duration = "10 s"
warmup = "2 s"

[core]
hops = [{ rate = "1 Gb/s", delay = "5 ms" }]

[link]
delay = "10 ms"
queue = "2 MB"
queue_discipline = "drop-tail"

[link.fixed]
downlink_rate = "100 Mb/s"

[[station]]
name = "CUBIC"
count = 2

[[station]]
name = "BBR"
count = 2
tcp.congestion_control = "bbr"
`;

const ROUTER = `# ACK rate control in front of a router (Pavilanskas and Statkus, 2010): a source shaped to 90 Mb/s, and a
# router that needs 53 us for a packet, 60% of its time without the policer.

[run]
duration = "6 s"
warmup = "1 s"

[[core.hops]]
rate = "90 Mb/s"
delay = "50 us"
queue = "64 kB"

[[core.hops]]
rate = "100 Mb/s"
delay = "50 us"
service_time = "53.333 us"

[link]
delay = "50 us"

[link.fixed]
downlink_rate = "100 Mb/s"
uplink_rate = "100 Mb/s"

[[station]]
`;
/** A step with the router and its own text of a policer. @param {string} title @param {string} text
 * @param {string} police @param {boolean} compare @returns {Step} */
const router = (title, text, police, compare = true) => ({
    title, text, compare, base: !compare, scenario: "router", set: [],
    own: police ? ROUTER.replace("\n\n[link]\n", `\n\n[core.hops.police]\n${police}\n\n[link]\n`) : ROUTER,
});

const PAPER = "The setting of the paper. ";

/** Each with the document that says more. @type {{name: string, document: string, steps: Step[]}[]} */
export const TOURS = [
    {
        name: "Bufferbloat", document: "tcp",
        steps: [
            withText(LINE, step("a buffer of a round trip", "A download and a call share a line of 50 Mb/s with 30 ms of round trip. The buffer holds 100 kB, half of what is under way in a round trip. The download has the whole line, and the call's round trip is hardly longer than the line's.", "line")),
            withText(LINE, onwards("twenty times the buffer", "With 2 MB, CUBIC sends more until the buffer is full, since it yields to loss alone. The goodput is the same, the round trip of both many times longer: the call waits behind the download. That is bufferbloat.", "line", [["link.queue", "2 MB"]])),
            withText(LINE, against("a control that does not fill it", "BBR sends at the rate that it measures. In the same deep buffer the queue stays short, and the goodput is that of CUBIC (A, dashed).", "line", [["link.queue", "2 MB"], ["tcp.congestion_control", "bbr"]])),
            withText(LINE, against("a queue for each connection", "FQ-CoDel serves connections in turn and drops early. The call does not wait behind the download, though that is CUBIC again.", "line", [["link.queue", "2 MB"], ["link.queue_discipline", "fq-codel"]])),
            step("in a cell", "A base station has a buffer for each station: here 3 MB. The thin flow of its own station keeps its short round trip while the others wait behind their own data. Move the buffer's slider: what does it cost, and whom?", "private-5g", [["station.0.count", "4"], ["traffic", "a thin flow beside"]]),
        ],
    },
    {
        name: "Two controls in one cell", document: "tcp",
        steps: [
            withText(CELL, step("one control", "Ten stations at the same distance download by CUBIC, in two groups. Both get the same, and fill buffers of 3 MB: see the round-trip time.", "two-controls", [["station.1.tcp.congestion_control", "cubic"]])),
            withText(CELL, against("five of them by BBR", "The scheduler shares the cell, so both groups have the goodput of before (A, dashed). Each station has its own buffer: BBR keeps its round trip short, CUBIC does not.", "two-controls")),
            withText(CELL, against("a shallow buffer", "With 100 kB per station, CUBIC loses segments and backs off; BBR ignores most losses, and takes what CUBIC leaves.", "two-controls", [["cell.downlink_buffer", "100 kB"]])),
            withText(SHARED, step("one buffer for all", "On a link with one buffer of 2 MB the controls meet in the same queue. CUBIC fills it, and BBR, which limits its data by the shortest round trip, is nearly starved. Jain's index falls.", "shared-buffer")),
            withText(SHARED, against("a queue for each connection", "FQ-CoDel gives back what the cell had: equal shares, and a short round trip for both. Try a buffer of 300 kB without it, too: then BBR starves CUBIC.", "shared-buffer", [["link.queue_discipline", "fq-codel"]])),
        ],
    },
    {
        name: "ACK filter", document: "ack-filter",
        steps: [
            step("an uplink full of ACKs", "Ten stations download. The downlink has 20 MHz, the uplink 3 MHz. Each second segment needs an ACK, and the ACKs wait in the stations: see the uplink queue and the round-trip time grow.", "uplink-limited"),
            against("drop the older ACKs at each grant", "An ACK confirms everything before it, so a newer one makes older ones needless. “Granted” discards those that do not fit into a grant.", "uplink-limited", [["ack_filter.scheme", "granted"]]),
            against("keep at most six", "“hybrid(6)” also keeps no more than the six newest ACKs of a connection. The goodput is nearly that of “granted”: the downlink limits now, as the verdict says.", "uplink-limited", [["ack_filter.scheme", "hybrid(6)"]]),
            against("with a wide uplink", "The same filter with an uplink of 20 MHz: the ACKs have room. The goodput is that of the step before: the filter had taken the narrow uplink out of the way.", "uplink-limited", [["ack_filter.scheme", "hybrid(6)"], ["cell.uplink_bandwidth", "20 MHz"], ["cell.pucch_prb", "16"]]),
            step("the published experiment", PAPER + "“Controlling TCP ACK Transmission” (IEEE CSCN 2018): ten stations, seven sites, the published optimum “hybrid-opt”. The whole experiment: paceline reproduce ack-filter.", "ack-filter-paper", [["ack_filter.scheme", "hybrid-opt"], ["run.warmup", "3 s"], ["run.duration", "8 s"]]),
        ],
    },
    {
        name: "Accelerator", document: "accelerator",
        steps: [
            step("a deep buffer on a drive", "One station, a downlink whose rate changes as on a drive, 4 MB of queue. CUBIC fills the queue: see the round-trip time.", "accelerator-trace"),
            against("an accelerator in the path", "The accelerator acknowledges early to the server and sends to the station at the rate that the radio carries. The queue is short, and the rate stays.", "accelerator-trace", [["core.proxy", "accelerator"]]),
            against("BBR without it", "BBR keeps a shorter queue by itself, from the server: compare its goodput and round-trip time with those of CUBIC (A, dashed).", "accelerator-trace", [["tcp.congestion_control", "bbr"]]),
            step("a small window on 3G", "A client with a receive window of 17 KB: the window, not the radio, limits TCP. Read the verdict.", "accelerator-3g", [["run.duration", "60 s"]]),
            against("the published experiment", PAPER + "“Mobile Accelerator” (2011) on 3G: the proxy hides the client's window from the server and paces by the radio. The whole experiment: paceline reproduce accelerator.", "accelerator-3g", [["run.duration", "60 s"], ["core.proxy", "accelerator"]]),
        ],
    },
    {
        name: "Pacing in TDD", document: "tdd-pacing",
        steps: [
            step("a TDD cell and its slots", "100 MHz of 5G in the pattern DDDSU: see the slots on the left. ACKs go up in one slot of five, and come back as bunches.", "private-5g", [["station.0.count", "2"]]),
            onwards("a shallow buffer", "With 100 kB of buffer in the cell, the bursts that answer each bunch do not fit: segments are lost, and goodput falls.", "private-5g", [["station.0.count", "2"], ["cell.downlink_buffer", "100 kB"]]),
            against("paced as Linux does", "Pacing spreads a window over the round trip: fewer losses in the same buffer.", "private-5g", [["station.0.count", "2"], ["cell.downlink_buffer", "100 kB"], ["tcp.pacing", "linux-per-segment"]]),
            against("paced by the slots", "“tdd” sends by the slots of the cell, which the sender knows here. In this setting it adds little: docs/tdd-pacing.md says where it does more.", "private-5g", [["station.0.count", "2"], ["cell.downlink_buffer", "100 kB"], ["tcp.pacing", "tdd"], ["tcp.pacing_pattern", "cell"]]),
            step("the published idea", PAPER + "Sawabe, Shinohara and Iwai (IEEE CCNC 2024) spread the window over the time to the next bunch of ACKs: “tdd-published”. The whole experiment: paceline reproduce tdd-pacing.", "private-5g", [["station.0.count", "1"], ["cell.downlink_buffer", "375 kB"], ["tcp.pacing", "tdd-published"]]),
        ],
    },
    {
        name: "Direct links", document: "path-switch",
        steps: [
            step("two stations through the base station", "A pair of stations 20 m apart. Data and ACKs go through the base station.", "d2d-static", [["sidelink.data", "infrastructure"], ["sidelink.acks", "infrastructure"]]),
            against("data on the direct link", "The data take the direct link, the ACKs the way through the base station.", "d2d-static", [["sidelink.acks", "infrastructure"]]),
            onwards("both on the direct link", "The ACKs go directly, too: the round trip is shorter, and with a window of 8 KB the rate rises with it.", "d2d-static"),
            against("a larger window", "With 64 KB in flight in place of 8 the rate rises until the direct link has a queue: see the downlink queue.", "d2d-static", [["tcp.receive_buffer", "64 KiB"]]),
            step("the published experiment", PAPER + "Nardini, Stea and Virdis (IEEE VTC Spring 2016): stations that move apart and together, and change paths by the CQI. The whole experiment: paceline reproduce d2d.", "d2d-dynamic", [["run.duration", "60 s"]]),
        ],
    },
    {
        name: "ACK policer", document: "police",
        steps: [
            router("a router at work", "A source at 90 Mb/s through a router that needs 53 us for each packet. A third of the packets are ACKs.", "", false),
            router("drop four of five ACKs, blindly", "A policer before the router drops ACKs above a rate. The router forwards fewer packets: see “All figures”, or policers.csv.", "mode = \"published\"\ncir = \"312000 b/s\"\ncbs = \"5000 B\""),
            router("the same rate, safely", "The safe mode drops an ACK only where a later one is certain. Run A is still the one without policer.", "mode = \"safe\"\ncir = \"312000 b/s\"\ncbs = \"5000 B\""),
            router("far too many", "99 of 100 dropped blindly: senders wait for their timers, and the rate collapses.", "mode = \"published\"\ncir = \"15600 b/s\"\ncbs = \"1950 B\""),
            router("the published experiment", PAPER + "Pavilanskas and Statkus (2010): 60% of the ACKs dropped at 90 Mb/s. The whole experiment: paceline reproduce router.", "mode = \"published\"\ncir = \"624000 b/s\"\ncbs = \"5000 B\"", false),
        ],
    },
];
