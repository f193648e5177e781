//! The settings of the experiment.

/// Congestion controls of the published experiment and BBR.
const CONTROLS: [&str; 6] = ["reno", "cubic", "illinois", "veno", "vegas", "bbr"];
/// Pacing modes of the maps.
const MODES: [&str; 4] = ["none", "linux-per-segment", "tdd-published", "tdd"];
/// Pacing modes of the edge settings.
const ALL_MODES: [&str; 5] = ["none", "linux", "linux-per-segment", "tdd-published", "tdd"];
/// Patterns of the maps, with the period in milliseconds, and LTE configurations.
const PATTERNS: [(&str, f64); 4] =
    [("DDDSU", 2.5), ("DDDDDDDSUU 6:4:4", 5.0), ("DDSUU 6:4:4", 2.5), ("DSUUU", 2.5)];
/// The pattern of the published statements (a) and (b): that of synchronized local 5G with 5 ms.
const EDGE: (&str, f64) = PATTERNS[1];
/// Base round-trip time to an edge server, ms.
const EDGE_RTT_MS: f64 = 7.0;
/// Buffers of the maps in period-bytes.
const MAP_BUFFERS: [f64; 6] = [0.2, 0.5, 1.0, 2.0, 4.0, 8.0];
/// Base round-trip times of the maps, ms.
const MAP_RTTS: [f64; 5] = [6.0, 12.0, 24.0, 48.0, 80.0];

/// A cell: a built-in scenario with changes.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSetting {
    /// Name of the cell in the results.
    pub name: String,
    /// Name of the built-in scenario.
    pub scenario: &'static str,
    /// Changes, as `--set` takes them.
    pub set: Vec<String>,
    /// Period of the pattern in ms; that of the TDD pattern beside it for a cell of FDD.
    pub period_ms: f64,
}

/// Sizes of the cell's downlink buffer for each station.
#[derive(Clone, Debug, PartialEq)]
pub enum Buffers {
    /// In period-bytes of the cell, shared by the stations.
    Periods(Vec<f64>),
    /// In bytes.
    Bytes(Vec<f64>),
}

/// A group of runs: every control with every pacing, buffer, base round-trip time and phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Name of the part and of its results folder.
    pub name: String,
    /// The cell.
    pub cell: CellSetting,
    /// Changes besides those of the cell.
    pub set: Vec<String>,
    /// Stations that download at once.
    pub stations: u64,
    /// Congestion controls.
    pub controls: Vec<&'static str>,
    /// Values of `tcp.pacing`.
    pub modes: Vec<&'static str>,
    /// Buffers.
    pub buffers: Buffers,
    /// Base round-trip times in ms.
    pub rtts_ms: Vec<f64>,
}

impl CellSetting {
    /// A cell of NR in band n79 with this pattern. Stations have 20 dB in both directions and 10% of failed
    /// blocks, and send ACKs by configured grants.
    fn nr(pattern: (&str, f64), bandwidth: &str, grant: &str) -> Self {
        let (letters, period_ms) = pattern;
        let set = [
            &format!("cell.pattern={letters}"),
            &format!("cell.nr.configured_grant.period={period_ms} ms"),
            &format!("cell.bandwidth={bandwidth}"),
            IDEAL,
            grant,
        ];
        let name = letters.split(' ').next().unwrap_or_default().to_owned();
        Self { name, scenario: "private-5g-n79", set: set.map(Into::into).to_vec(), period_ms }
    }
    /// The same carrier with every slot usable both ways: FDD, in 80 MHz of about the same rate.
    fn fdd(period_ms: f64) -> Self {
        let set = [
            "cell.frequency=4.75 GHz",
            "cell.subcarrier_spacing=30 kHz",
            "cell.bandwidth=80 MHz",
            "cell.nr.layers=4",
            "cell.nr.antennas=4",
            "cell.nr.configured_grant.period=0.5 ms",
            WIDE_GRANT,
            IDEAL,
            "cell.uplink_buffer=1 MB",
        ];
        let name = String::from("every slot both ways");
        Self { name, scenario: "nr-fdd-20mhz", set: set.map(Into::into).to_vec(), period_ms }
    }
    fn lte(configuration: u8) -> Self {
        let set = vec![format!("cell.tdd_configuration={configuration}"), IDEAL.into()];
        Self { name: format!("LTE {configuration}"), scenario: "lte-tdd", set, period_ms: 5.0 }
    }
}

/// No lead of the base station: the statements are about the pattern.
const IDEAL: &str = "cell.gnb=ideal";
/// PUSCH of the configured grants in the wide carriers. Chosen: room for the ACKs of a period.
const WIDE_GRANT: &str = "cell.nr.configured_grant.prb=200";
/// The same in 20 MHz, whose uplink has 47 PRBs.
const NARROW_GRANT: &str = "cell.nr.configured_grant.prb=45";
/// The same for each of up to 16 stations. Chosen: nine of them fit into each of the two uplink slots of a
/// period in 100 MHz.
const SHARED_GRANT: &str = "cell.nr.configured_grant.prb=30";

/// All parts. `quick` leaves a few points of each, for a first look.
pub fn parts(quick: bool) -> Vec<Part> {
    let wide = |pattern| CellSetting::nr(pattern, "100 MHz", WIDE_GRANT);
    let periods = |values: &[f64]| Buffers::Periods(values.to_vec());
    let part = |name: &str, cell, controls: &[&'static str], modes: &[&'static str], buffers| Part {
        name: name.to_owned(),
        cell,
        set: Vec::new(),
        stations: 1,
        controls: controls.to_vec(),
        modes: modes.to_vec(),
        buffers,
        rtts_ms: vec![EDGE_RTT_MS],
    };
    let both = ["cubic", "illinois"];
    let others = ["reno", "veno", "vegas", "bbr"];
    let mut all = vec![
        part("edge", wide(EDGE), &both, &ALL_MODES, periods(&[0.3, 0.6, 1.0, 2.0])),
        part("edge-others", wide(EDGE), &others, &ALL_MODES, periods(&[0.6])),
        Part {
            set: vec!["tcp.pacing_pattern=learned".into()],
            ..part("edge-learned", wide(EDGE), &both, &["tdd", "tdd-published"], periods(&[0.3, 0.6, 1.0]))
        },
        // Without failed blocks: what HARQ's retransmissions change.
        Part {
            set: vec!["cell.outer_loop=false".into()],
            ..part("edge-without-failures", wide(EDGE), &both, &ALL_MODES, periods(&[0.3, 0.6, 1.0]))
        },
        part("edge-control", CellSetting::fdd(EDGE.1), &both, &ALL_MODES, periods(&[0.3, 0.6, 1.0])),
        part("deep", wide(EDGE), &both, &ALL_MODES, periods(&[8.0])),
        part("deep-control", CellSetting::fdd(EDGE.1), &both, &ALL_MODES, periods(&[8.0])),
    ];
    for signal in ["raw", "clean"] {
        all.push(Part {
            set: vec![format!("tcp.delay_signal={signal}")],
            ..part(
                &format!("vegas-{signal}"),
                wide(PATTERNS[0]),
                &["vegas"],
                &ALL_MODES,
                periods(&[0.5, 2.0]),
            )
        });
    }
    // The published setting of 5G-LENA: a queue of 375 KB or 10 MB, base round-trip time 30 ms.
    let lena = ["cubic", "reno", "veno", "illinois"];
    let bytes = || Buffers::Bytes(vec![375e3, 10e6]);
    let cells =
        [("lena", wide(PATTERNS[0])), ("lena-long", wide(EDGE)), ("lena-control", CellSetting::fdd(2.5))];
    for (name, cell) in cells {
        all.push(Part { rtts_ms: vec![30.0], ..part(name, cell, &lena, &["none", "linux"], bytes()) });
    }
    for stations in [4, 16] {
        let shared = CellSetting::nr(EDGE, "100 MHz", SHARED_GRANT);
        let name = format!("stations-{stations}");
        all.push(Part { stations, ..part(&name, shared, &both, &ALL_MODES, periods(&[0.5, 2.0])) });
    }
    let cells = PATTERNS.map(|pattern| CellSetting::nr(pattern, "20 MHz", NARROW_GRANT));
    for cell in cells.into_iter().chain([1, 2].map(CellSetting::lte)) {
        let name = format!("map-{}", cell.name.replace(' ', "-"));
        // The idle cell of LTE alone takes longer than 12 ms with scheduling requests.
        let rtts = if cell.scenario == "lte-tdd" { &MAP_RTTS[2..] } else { &MAP_RTTS[..] };
        all.push(Part {
            rtts_ms: rtts.to_vec(),
            ..part(&name, cell, &CONTROLS, &MODES, periods(&MAP_BUFFERS))
        });
    }
    if quick {
        all.retain(|part| matches!(&*part.name, "edge" | "deep" | "lena" | "map-DDDSU"));
        all.iter_mut().for_each(Part::shorten);
    }
    all
}

impl Part {
    /// Few points: the first and last buffers and base round-trip times, CUBIC and Illinois.
    fn shorten(&mut self) {
        let ends = |values: &mut Vec<f64>| values.retain(|value| *value < 1.0 || *value >= 8.0);
        if self.is_map() {
            let (Buffers::Periods(buffers) | Buffers::Bytes(buffers)) = &mut self.buffers;
            ends(buffers);
            self.rtts_ms = vec![6.0, 24.0];
            self.modes.retain(|mode| matches!(*mode, "none" | "linux-per-segment" | "tdd"));
        }
        self.controls.retain(|control| matches!(*control, "cubic" | "illinois"));
    }
    /// Whether the part is a map of the gain over buffer and base round-trip time.
    pub fn is_map(&self) -> bool {
        self.name.starts_with("map")
    }
    /// Whether the part has settings of statements (a) to (f), or is the control of one.
    pub fn is_of_statements(&self) -> bool {
        let names = ["edge", "edge-control", "deep", "deep-control"];
        names.contains(&&*self.name) || self.name.starts_with("vegas") || self.name.starts_with("lena")
    }
    /// The changes in all runs, as `--set` takes them.
    pub fn settings(&self) -> Vec<String> {
        let common = [
            "run.duration=60 s",
            "run.warmup=5 s",
            "cell.outer_loop=true",
            "tcp.pacing_pattern=cell",
            "station.downlink_sinr=20 dB",
            "station.uplink_sinr=20 dB",
            "station.fading=0 dB",
        ];
        let mut all: Vec<String> = common.map(str::to_owned).to_vec();
        if self.cell.scenario != "lte-tdd" {
            all.push("cell.nr.configured_grant.mcs=16".into());
        }
        all.push(format!("station.count={}", self.stations));
        all.extend(self.cell.set.iter().chain(&self.set).cloned());
        all
    }
    /// Swept keys and their values, as `paceline sweep --over` takes them, for a cell that carries
    /// `capacity_mbps` with a round trip of `idle_ms` when it is idle. The last key, the delay of the wired
    /// hop, has the phases of every base round-trip time: evenly over one period of the pattern, around that
    /// time or from the idle cell's upwards. Where in the period the bytes of a round trip arrive again
    /// decides the goodput without pacing (105 to 250 Mb/s over the 5 ms of DDDDDDDSUU, docs/tdd-pacing.md),
    /// so that phases of a part of the period would favour one pattern.
    pub fn over(&self, capacity_mbps: f64, idle_ms: f64, phases: usize) -> Vec<(&'static str, Vec<String>)> {
        let bytes: Vec<f64> = match &self.buffers {
            Buffers::Bytes(bytes) => bytes.clone(),
            Buffers::Periods(periods) => {
                let period_bytes = 1e6 * capacity_mbps / 8.0 * self.cell.period_ms / 1e3;
                periods.iter().map(|b| b * period_bytes / self.stations as f64).collect()
            }
        };
        let delays = self.rtts_ms.iter().flat_map(|rtt| {
            let step = 1e3 * self.cell.period_ms / phases as f64;
            let first = (1e3 * (rtt - idle_ms) - step * (phases as f64 - 1.0) / 2.0).max(0.0);
            (0..phases).map(move |phase| format!("{:.0} us", (first + step * phase as f64) / 2.0))
        });
        let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        vec![
            ("tcp.congestion_control", owned(&self.controls)),
            ("tcp.pacing", owned(&self.modes)),
            ("cell.downlink_buffer", bytes.iter().map(|bytes| format!("{bytes:.0} B")).collect()),
            ("core.hops.0.delay", delays.collect()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_the_points_of_its_axes_and_distinct_phases() {
        for part in parts(false).iter().chain(&parts(true)) {
            let over = part.over(446.0, 4.2, 10);
            let sizes: Vec<usize> = over.iter().map(|(_, values)| values.len()).collect();
            let (Buffers::Periods(buffers) | Buffers::Bytes(buffers)) = &part.buffers;
            let expected = [part.controls.len(), part.modes.len(), buffers.len(), 10 * part.rtts_ms.len()];
            assert_eq!(sizes, expected, "{}", part.name);
            let mut delays = over[3].1.clone();
            delays.sort();
            delays.dedup();
            assert_eq!(delays.len(), sizes[3], "{}", part.name);
        }
        let deep = parts(false).into_iter().find(|part| part.name == "deep").unwrap();
        // 400 Mb/s for 5 ms are 250 kB.
        assert_eq!(deep.over(400.0, 4.0, 10)[2].1, ["2000000 B"]);
        assert_eq!(deep.over(400.0, 4.0, 2)[3].1, ["875 us", "2125 us"]);
    }
}
