//! The runs of the comparison: a scenario and its settings for each measured cell.

/// A simulated cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Name of the part.
    pub name: &'static str,
    /// The scenario.
    pub text: &'static str,
    /// Settings on top of it, as `--set` takes them.
    pub set: &'static [&'static str],
}

/// OpenAirInterface, n78, 30 kHz, O-RAN 7.2 radio two metres from a modem: no interference and a high SINR.
/// It sends slots 6 ahead (`sl_ahead`), the modem has K1 and K2 of 2 or more (`min_rxtxtime`).
const OAI: &str = r#"
[run]
duration = "2 s"
warmup = "1 s"
[core]
hops = []
[cell]
rat = "nr"
frequency = "3.5 GHz"
subcarrier_spacing = "30 kHz"
pattern = "DDDSU 10:2:2"
bandwidth = "40 MHz"
downlink_buffer = "8 MB"
uplink_buffer = "8 MB"
[cell.nr]
layers = 1
min_k1 = 2
min_k2 = 2
gnb_slots = 1
scheduling_lead = 6
radio_lead = "0 ms"
[[station]]
traffic = "udp"
udp_rate = "2 Gb/s"
downlink_sinr = "45 dB"
uplink_sinr = "45 dB"
"#;

/// Pings in a cell of 20 MHz with nothing else in it. Poisson arrivals meet every phase of the pattern.
const PINGS: &str = r#"
[run]
duration = "62 s"
warmup = "2 s"
[core]
hops = []
[cell]
rat = "nr"
frequency = "3.4 GHz"
subcarrier_spacing = "30 kHz"
bandwidth = "20 MHz"
pattern = "DDDSU 10:2:2"
gnb = "srsran"
[[station]]
traffic = "ping"
direction = "upload"
ping_interval = "100 ms"
udp_arrivals = "poisson"
"#;

/// A download in a generated drive, in a queue of some hundred milliseconds, over the path of the source.
const DRIVE: &str = r#"
[run]
duration = "125 s"
warmup = "5 s"
sample = "1 s"
[core]
hops = [{ rate = "10 Gb/s", delay = "10 ms" }]
[tcp]
receive_buffer = "64 MiB"
[link]
delay = "12 ms"
queue = "16 MB"
[link.trace]
downlink = "generated:drive-nsa:{seed}"
uplink_rate = "50 Mb/s"
[[station]]
"#;
/// Pings in such a drive, with the grants of a cell and without other traffic.
const DRIVE_PINGS: [&str; 5] = [
    "link.trace.sr_period=10 ms",
    "link.trace.grant_delay=8 ms",
    "station.traffic=ping",
    "station.direction=upload",
    "station.ping_interval=100 ms",
];
/// Handovers between the sites of the built-in scenario `drive`.
const HANDOVERS: &str = include_str!("../../../../../scenarios/drive.toml");
/// Stands for the seed of a run in the settings of a part.
const SEED: &str = "{seed}";

impl Part {
    /// Whether each run has a drive of its own.
    pub fn is_drive(&self) -> bool {
        self.text.contains(SEED)
    }
    /// The scenario and the settings of the run with a seed.
    pub fn of_seed(&self, seed: u64) -> (String, Vec<String>) {
        let with = |text: &str| text.replace(SEED, &seed.to_string());
        (with(self.text), self.set.iter().map(|set| with(set)).collect())
    }
}

/// The cell of Gong et al.: `configs/gnb_low_latency.yml` of aygong/srsRAN_Project_Low_Latency (a5b5c73).
macro_rules! gong {
    ($($more:literal),*) => {
        &[
            "cell.pattern=DDSU 8:6:0",
            "cell.sr_period=2 ms",
            "cell.periodic_bsr_timer=1 ms",
            "cell.sr_grant=512 B",
            "cell.nr.min_k1=2",
            "cell.nr.min_k2=2",
            "cell.nr.layers=1",
            "cell.nr.mcs_table=qam64",
            "cell.nr.uplink_mcs_table=qam64",
            $($more),*
        ]
    };
}

const DOWN: &str = "station.direction=download";
const UP: [&str; 3] = [
    "station.direction=upload",
    "cell.pattern=DDSUU 6:4:4",
    // nr_ulsim of the same document has 64QAM; that of the cell is not stated.
    "cell.nr.uplink_mcs_table=qam64",
];
const WIDE: &str = "cell.bandwidth=100 MHz";
const FR2: [&str; 7] = [
    "cell.frequency=28 GHz",
    "cell.subcarrier_spacing=120 kHz",
    "cell.bandwidth=200 MHz",
    // 256QAM is optional in FR2 (TS 38.306 §4.2.7.4).
    "cell.nr.mcs_table=qam64",
    "cell.nr.uplink_mcs_table=qam64",
    // N1 and N2 of capability 1 at 120 kHz, and the gNB's six slots.
    "cell.nr.min_k1=6",
    "cell.nr.min_k2=6",
];

const fn part(name: &'static str, text: &'static str, set: &'static [&'static str]) -> Part {
    Part { name, text, set }
}

/// All parts. Derived: from the configurations in the sources of their rows.
pub const PARTS: [Part; 33] = [
    part("oai-down-40-1", OAI, &[DOWN]),
    part("oai-down-40-2", OAI, &[DOWN, "cell.nr.layers=2"]),
    part("oai-down-100-1", OAI, &[DOWN, WIDE]),
    part("oai-down-100-2", OAI, &[DOWN, WIDE, "cell.nr.layers=2"]),
    part("oai-down-100-4", OAI, &[DOWN, WIDE, "cell.nr.layers=4"]),
    part("oai-up-40-1", OAI, &UP),
    part("oai-up-40-2", OAI, &[UP[0], UP[1], UP[2], "cell.nr.uplink_layers=2"]),
    part("oai-up-100-1", OAI, &[UP[0], UP[1], UP[2], WIDE]),
    part("oai-up-100-2", OAI, &[UP[0], UP[1], UP[2], WIDE, "cell.nr.uplink_layers=2"]),
    part("fr2-1", OAI, &FR2),
    part("fr2-2", OAI, &[FR2[0], FR2[1], FR2[2], FR2[3], FR2[4], FR2[5], FR2[6], "cell.nr.layers=2"]),
    part(
        "fr2-ping",
        PINGS,
        &[
            FR2[0],
            FR2[1],
            FR2[2],
            FR2[3],
            FR2[4],
            FR2[5],
            FR2[6],
            "cell.nr.scheduling_lead=6",
            "cell.nr.radio_lead=0 ms",
            "cell.proactive_grant.after=0 ms",
        ],
    ),
    part("gong-3-up", PINGS, gong!()),
    part("gong-3-down", PINGS, gong!("station.direction=download")),
    part("gong-1-up", PINGS, gong!("cell.nr.radio_lead=0.5 ms")),
    part("gong-1-down", PINGS, gong!("cell.nr.radio_lead=0.5 ms", "station.direction=download")),
    part(
        "gong-unasked-up",
        PINGS,
        gong!("cell.nr.radio_lead=0.5 ms", "cell.nr.scheduling_lead=0", "cell.proactive_grant.after=0 ms"),
    ),
    part(
        "gong-unasked-down",
        PINGS,
        gong!(
            "cell.nr.radio_lead=0.5 ms",
            "cell.nr.scheduling_lead=0",
            "cell.proactive_grant.after=0 ms",
            "station.direction=download"
        ),
    ),
    // OpenAirInterface's own station needs min_rxtxtime = 6. Grants of about 100 bytes: five PRBs.
    part(
        "oai-segments",
        PINGS,
        &[
            "cell.nr.scheduling_lead=6",
            "cell.nr.radio_lead=0 ms",
            "cell.nr.min_k1=6",
            "cell.nr.min_k2=6",
            "cell.proactive_grant.after=0 ms",
            "cell.proactive_grant.size=100 B",
            "cell.retx_bsr_timer=80 ms",
            "station.ping_payload=250 B",
        ],
    ),
    // The ping's interval is 101 ms of the cell's clock: a twentieth of the SR period more than five periods.
    part(
        "srsran-drift",
        PINGS,
        &[
            "cell.pattern=DDDDDDDSUU 6:4:4",
            "cell.sr_period=20 ms",
            "station.udp_arrivals=constant",
            "station.ping_interval=101 ms",
        ],
    ),
    part("drive-nsa", DRIVE, &[]),
    part("drive-sa", DRIVE, &["link.trace.downlink=generated:drive-sa:{seed}"]),
    part("drive-nsa-up", DRIVE, &["link.trace.downlink=generated:drive-nsa-uplink:{seed}"]),
    part("drive-sa-up", DRIVE, &["link.trace.downlink=generated:drive-sa-uplink:{seed}"]),
    part("drive-5g", DRIVE, &["link.trace.downlink=generated:drive-5g:{seed}"]),
    part("drive-lte", DRIVE, &["link.trace.downlink=generated:drive-lte:{seed}"]),
    part("drive-mmwave", DRIVE, &["link.trace.downlink=generated:drive-mmwave:{seed}"]),
    part("drive-nsa-ping", DRIVE, &DRIVE_PINGS),
    part(
        "drive-sa-ping",
        DRIVE,
        &[
            "link.trace.downlink=generated:drive-sa:{seed}",
            DRIVE_PINGS[0],
            DRIVE_PINGS[1],
            DRIVE_PINGS[2],
            DRIVE_PINGS[3],
            DRIVE_PINGS[4],
        ],
    ),
    // 128 KiB; the base round trip is the 5th percentile of row 14, LTE.
    part(
        "lte-windows",
        DRIVE,
        &[
            "link.trace.downlink=generated:drive-lte:{seed}",
            "tcp.receive_buffer=128 KiB",
            "tcp.autotune=false",
            "link.delay=24 ms",
        ],
    ),
    part("handover-nsa", HANDOVERS, &["handover.kind=nsa"]),
    part("handover-sa", HANDOVERS, &["cell.rat=nr"]),
    part("srsran-log", PINGS, &["cell.pattern=DDDDDDDSUU 6:4:4", "cell.nr.min_k2=2", "cell.nr.min_k1=4"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_study::scenario_file::parse_without_files;

    #[test]
    fn every_part_is_a_scenario() {
        for part in PARTS {
            let (text, set) = part.of_seed(1);
            parse_without_files(part.name, &text, &set)
                .unwrap_or_else(|error| panic!("{}: {error}", part.name));
        }
    }
}
