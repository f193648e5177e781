// The texts and settings of the guided tours: five steps for each system. The last one has the setting of its
// paper, as `paceline reproduce` runs it, with the times of the built-in scenario.
// @ts-check

/** @typedef {import("./tour.js").Step} Step */

/** @param {string} title @param {string} text @param {string} scenario @param {[string, string][]} set
 * @returns {Step} */
const step = (title, text, scenario, set = []) => ({ title, text, scenario, set, compare: false });
/** A step that is compared with the one before it. @param {Parameters<typeof step>} parts @returns {Step} */
const against = (...parts) => ({ ...step(...parts), compare: true });

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
    title, text, compare, scenario: "router", set: [],
    own: police ? ROUTER.replace("\n\n[link]\n", `\n\n[core.hops.police]\n${police}\n\n[link]\n`) : ROUTER,
});

const PAPER = "The setting of the paper. ";

/** @type {{name: string, steps: Step[]}[]} */
export const TOURS = [
    {
        name: "ACK filter",
        steps: [
            step("an uplink full of ACKs", "Ten stations download. The downlink has 20 MHz, the uplink 3 MHz. Each second segment needs an ACK, and the ACKs wait in the stations: see the uplink queue and the round-trip time grow.", "uplink-limited"),
            against("drop the older ACKs at each grant", "An ACK confirms everything before it, so a newer one makes older ones needless. “Granted” discards those that do not fit into a grant.", "uplink-limited", [["ack_filter.scheme", "granted"]]),
            against("keep at most six", "“hybrid(6)” also keeps no more than the six newest ACKs of a connection. The goodput is nearly the same: the downlink limits now, as the verdict says.", "uplink-limited", [["ack_filter.scheme", "hybrid(6)"]]),
            against("with a wide uplink", "The same filter with an uplink of 20 MHz: the ACKs have room. The goodput is that of the narrow uplink with the filter: the filter had taken the uplink out of the way.", "uplink-limited", [["ack_filter.scheme", "hybrid(6)"], ["cell.uplink_bandwidth", "20 MHz"], ["cell.pucch_prb", "16"]]),
            step("the published experiment", PAPER + "“Controlling TCP ACK Transmission” (IEEE CSCN 2018): ten stations, seven sites, the published optimum “hybrid-opt”. The whole experiment: paceline reproduce ack-filter.", "ack-filter-paper", [["ack_filter.scheme", "hybrid-opt"], ["run.warmup", "3 s"], ["run.duration", "8 s"]]),
        ],
    },
    {
        name: "Accelerator",
        steps: [
            step("a deep buffer on a drive", "One station, a downlink whose rate changes as on a drive, 4 MB of queue. CUBIC fills the queue: see the round-trip time.", "accelerator-trace"),
            against("an accelerator in the path", "The accelerator acknowledges early to the server and sends to the station at the rate that the radio carries. The queue is short, and the rate stays.", "accelerator-trace", [["core.proxy", "accelerator"]]),
            against("BBR without it", "BBR keeps a shorter queue by itself, from the server: compare the goodput and the round-trip time of both.", "accelerator-trace", [["tcp.congestion_control", "bbr"]]),
            step("a small window on 3G", "A client with a receive window of 17 KB: the window, not the radio, limits TCP. Read the verdict.", "accelerator-3g", [["run.duration", "60 s"]]),
            against("the published experiment", PAPER + "“Mobile Accelerator” (2011) on 3G: the proxy hides the client's window from the server and paces by the radio. The whole experiment: paceline reproduce accelerator.", "accelerator-3g", [["run.duration", "60 s"], ["core.proxy", "accelerator"]]),
        ],
    },
    {
        name: "Pacing in TDD",
        steps: [
            step("a TDD cell and its slots", "100 MHz of 5G in the pattern DDDSU: see the slots on the left. ACKs go up in one slot of five, and come back as bunches.", "private-5g", [["station.0.count", "2"]]),
            against("a shallow buffer", "With 100 kB of buffer in the cell, the bursts that answer each bunch do not fit: segments are lost, and goodput falls.", "private-5g", [["station.0.count", "2"], ["cell.downlink_buffer", "100 kB"]]),
            against("paced as Linux does", "Pacing spreads a window over the round trip: fewer losses in the same buffer.", "private-5g", [["station.0.count", "2"], ["cell.downlink_buffer", "100 kB"], ["tcp.pacing", "linux-per-segment"]]),
            against("paced by the slots", "“tdd” sends by the slots of the cell, which the sender knows here. In this setting it adds little: docs/tdd-pacing.md says where it does more.", "private-5g", [["station.0.count", "2"], ["cell.downlink_buffer", "100 kB"], ["tcp.pacing", "tdd"], ["tcp.pacing_pattern", "cell"]]),
            step("the published idea", PAPER + "Sawabe, Shinohara and Iwai (IEEE CCNC 2024) spread the window over the time to the next bunch of ACKs: “tdd-published”. The whole experiment: paceline reproduce tdd-pacing.", "private-5g", [["station.0.count", "1"], ["cell.downlink_buffer", "375 kB"], ["tcp.pacing", "tdd-published"]]),
        ],
    },
    {
        name: "Direct links",
        steps: [
            step("two stations through the base station", "A pair of stations 20 m apart. Data and ACKs go through the base station.", "d2d-static", [["sidelink.data", "infrastructure"], ["sidelink.acks", "infrastructure"]]),
            against("data on the direct link", "The data take the direct link, the ACKs the way through the base station.", "d2d-static", [["sidelink.acks", "infrastructure"]]),
            against("both on the direct link", "The ACKs go directly, too: the round trip is shorter, and with a window of 8 KB the rate rises with it.", "d2d-static"),
            against("a larger window", "With 64 KB in flight in place of 8 the rate rises until the direct link has a queue: see the downlink queue.", "d2d-static", [["tcp.receive_buffer", "64 KiB"]]),
            step("the published experiment", PAPER + "Nardini, Stea and Virdis (IEEE VTC Spring 2016): stations that move apart and together, and change paths by the CQI. The whole experiment: paceline reproduce d2d.", "d2d-dynamic", [["run.duration", "60 s"]]),
        ],
    },
    {
        name: "ACK policer",
        steps: [
            router("a router at work", "A source at 90 Mb/s through a router that needs 53 us for each packet. A third of the packets are ACKs.", "", false),
            router("drop four of five ACKs, blindly", "A policer before the router drops ACKs above a rate. The router forwards fewer packets: see “All figures”, or policers.csv.", "mode = \"published\"\ncir = \"312000 b/s\"\ncbs = \"5000 B\""),
            router("the same rate, safely", "The safe mode drops an ACK only where a later one is certain.", "mode = \"safe\"\ncir = \"312000 b/s\"\ncbs = \"5000 B\""),
            router("far too many", "99 of 100 dropped blindly: senders wait for their timers, and the rate collapses.", "mode = \"published\"\ncir = \"15600 b/s\"\ncbs = \"1950 B\""),
            router("the published experiment", PAPER + "Pavilanskas and Statkus (2010): 60% of the ACKs dropped at 90 Mb/s. The whole experiment: paceline reproduce router.", "mode = \"published\"\ncir = \"624000 b/s\"\ncbs = \"5000 B\"", false),
        ],
    },
];
