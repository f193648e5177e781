//! Table `[sidelink]`: pairs of stations that exchange packets directly or through the base station, in place
//! of a cell. The carrier is one of LTE FDD, or that of `[cell]` in NR. A station of the `[[station]]` tables
//! has a peer, which is the other end of its connections, unless its table says otherwise.
//!
//! Defaults are those of G. Nardini, G. Stea, A. Virdis, "Performance evaluation of TCP-based traffic over
//! direct communications in LTE-Advanced" (IEEE VTC Spring 2016), and where the paper is silent those of its
//! simulator, SimuLTE 0.9.1.

use crate::limits::{self, Limit, Problem, Section, at_least, key, numbers, one_of, relation, whole_ms};
use crate::{Cell, CellPlan, RlcMode};
use paceline_net::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Table `[sidelink]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Sidelink {
    /// Resource blocks of each direction in LTE; in NR those of `cell.bandwidth`.
    pub resource_blocks: u16,
    /// Resource blocks of a sub-channel, the unit of grants of direct links in NR (TS 38.331
    /// sl-SubchannelSize).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subchannel: Option<u16>,
    /// Slots of a direct link from one PSFCH to the next in NR (TS 38.331 sl-PSFCH-Period).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psfch_period: Option<u64>,
    /// Path of the data at the start; with `direction = "download"` from the peer to the station.
    pub data: SidelinkPath,
    /// Path of the ACKs at the start.
    pub acks: SidelinkPath,
    /// The eNB's choice of the paths.
    pub selection: SidelinkSelection,
    /// Period of the choice by CQI.
    pub selection_period: Duration,
    /// CQI steps, beyond one, by which the other path must be better.
    pub hysteresis: u8,
    /// Ascending times at which every flow changes its path, with `selection = "scripted"`.
    pub switch_at: Vec<Duration>,
    /// Packets that the former path has at a change.
    pub fate: SidelinkFate,
    /// Whether blocks in the air at a change are lost too, as in SimuLTE since 2018; else those that are
    /// decoded arrive, as in its version of the paper.
    pub interrupt_harq: bool,
    /// RLC mode of all hops; AM needs both directions of a pair on one path.
    pub rlc: RlcMode,
    /// Blocks on the infrastructure path that end with a buffer status report, which spares a random access
    /// request.
    pub trailing_bsr: TrailingReport,
    /// Least time between random access requests of a station; in NR between scheduling requests
    /// (sr-ProhibitTimer).
    pub rac_timeout: Duration,
    /// Most HARQ transmissions of a block.
    pub max_harq_tx: u32,
    /// Interference over the carrier up to which two direct links share resource blocks. Default: none do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reuse_threshold_dbm: Option<f64>,
    /// Buffer of each flow in the sending station and in the eNB.
    pub buffer: Bytes,
    /// Distance of stations and peers from the eNB, in random directions of the pairs.
    pub enb_distance_m: f64,
    /// Distance between station and peer at the start.
    pub distance_m: f64,
    /// Movement of the pairs.
    pub movement: Movement,
    /// Distance between station and peer at which they stop or turn.
    pub far_distance_m: f64,
    /// Speed of each station; the distance of a pair grows at twice that.
    pub speed_mps: f64,
    /// Places that the station walks to in turn, again and again, with `movement = "waypoints"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waypoints: Vec<Waypoint>,
    /// Carrier frequency of LTE; in NR that of `cell.frequency`.
    pub carrier_ghz: f64,
    /// Transmit power of the eNB.
    pub enb_power_dbm: f64,
    /// Transmit power of a station, spread over the carrier.
    pub station_power_dbm: f64,
    /// Antenna gain of the eNB.
    pub enb_gain_dbi: f64,
    /// Cable loss, once on every link.
    pub cable_loss_db: f64,
    /// Noise figure of the eNB.
    pub enb_noise_figure_db: f64,
    /// Noise figure of a station.
    pub station_noise_figure_db: f64,
    /// SINR that a CQI needs beyond a channel without fading.
    pub cqi_margin_db: f64,
}

impl Default for Sidelink {
    fn default() -> Self {
        Self {
            resource_blocks: 50,
            subchannel: None,
            psfch_period: None,
            data: SidelinkPath::Direct,
            acks: SidelinkPath::Direct,
            selection: SidelinkSelection::Fixed,
            selection_period: Duration::from_secs(1),
            hysteresis: 0,
            switch_at: Vec::new(),
            fate: SidelinkFate::Drop,
            interrupt_harq: false,
            rlc: RlcMode::Um,
            trailing_bsr: TrailingReport::Backlog,
            rac_timeout: Duration::from_millis(10),
            max_harq_tx: 4,
            reuse_threshold_dbm: None,
            buffer: Bytes(2 << 20),
            enb_distance_m: 20.0,
            distance_m: 20.0,
            movement: Movement::Standing,
            far_distance_m: 160.0,
            speed_mps: 3.0,
            waypoints: Vec::new(),
            carrier_ghz: 2.0,
            enb_power_dbm: 40.0,
            station_power_dbm: 20.0,
            enb_gain_dbi: 18.0,
            cable_loss_db: 2.0,
            enb_noise_figure_db: 5.0,
            station_noise_figure_db: 7.0,
            // SimuLTE's curves are those of a fading channel: CQI 9 has 10% block error at 20 dB there, and
            // at 8.6 dB in crates/ran/data/lte_cqi_sinr.csv. With 10 dB the uplink at 300 m has the published
            // CQI 9.
            cqi_margin_db: 10.0,
        }
    }
}

/// Path of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SidelinkPath {
    /// Between the stations (direct mode, DM).
    Direct,
    /// Through the eNB (infrastructure mode, IM).
    Infrastructure,
}

/// Choice of the paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SidelinkSelection {
    /// Paths do not change.
    Fixed,
    /// Each period, each flow takes the path whose first hop has the higher CQI.
    BestCqi,
    /// Paths change at the times of `switch_at`.
    Scripted,
}

/// Packets of the former path at a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SidelinkFate {
    /// All are dropped, also those that wait in station and eNB, as published.
    Drop,
    /// Sent on the new path, in order; with `rlc = "um"` those that RLC has taken are lost.
    Forward,
    /// Both paths carry all packets until the former is done, and the far station drops the copies: none is
    /// lost, in both modes of RLC.
    Duplicate,
}

/// Blocks that end with a buffer status report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrailingReport {
    /// Blocks that leave more than a full block in the buffer.
    Backlog,
    /// Blocks that leave data in the buffer.
    Always,
    /// No block.
    Never,
}

/// Movement of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Movement {
    /// Both stand still.
    Standing,
    /// From `distance_m` to `far_distance_m` on a circle around the eNB, once.
    Line,
    /// Again and again between both distances, on that circle.
    BackAndForth,
    /// The station walks along `waypoints`; its peer stands still.
    Waypoints,
}

/// Table `[[sidelink.waypoints]]`: a place.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Waypoint {
    /// Distance east of the eNB.
    pub x_m: f64,
    /// Distance north of the eNB.
    pub y_m: f64,
}

/// Largest distance in m. Chosen: twice the range of the path loss formula (TR 36.814 Table B.1.2.1-1).
const FARTHEST_M: f64 = 10_000.0;

/// Sizes of a sub-channel in resource blocks (TS 38.331 SL-ResourcePool).
const SUBCHANNELS: [u16; 8] = [10, 12, 15, 20, 25, 50, 75, 100];

impl Section for Sidelink {
    fn computed_defaults() -> Vec<(&'static str, String)> {
        [("subchannel", "10 (nr)"), ("psfch_period", "1 (nr)")]
            .map(|(key, text)| (key, text.to_owned()))
            .into()
    }
    fn limits() -> Vec<Limit<Self>> {
        let metres = || numbers(1.0..=FARTHEST_M).unit("m");
        let db = || numbers(-50.0..=50.0).unit("dB");
        let dbm = || numbers(-50.0..=60.0).unit("dBm");
        let chord = |table: &Self| table.distance_m <= 2.0 * table.enb_distance_m;
        let far_chord = |table: &Self| {
            let moves = matches!(table.movement, Movement::Line | Movement::BackAndForth);
            !moves || table.far_distance_m <= 2.0 * table.enb_distance_m
        };
        let apart = |table: &Self| {
            table.movement != Movement::BackAndForth || table.far_distance_m != table.distance_m
        };
        vec![
            key!(resource_blocks, one_of(&[6, 15, 25, 50, 75, 100]).unit("blocks")),
            key!(subchannel?, one_of(&SUBCHANNELS).unit("blocks")),
            key!(psfch_period?, one_of(&[1, 2, 4]).unit("slots")),
            key!(selection_period, whole_ms(1..=100_000)),
            key!(hysteresis, numbers(0..=14).unit("CQI steps")),
            key!(rac_timeout, whole_ms(1..=10_000)),
            key!(max_harq_tx, numbers(1..=8).unit("transmissions")),
            key!(reuse_threshold_dbm?, numbers(-200.0..=60.0).unit("dBm")),
            key!(buffer, at_least("1504 B")),
            key!(enb_distance_m, metres()),
            key!(distance_m, metres()),
            relation!(distance_m, "at most twice enb_distance_m", chord),
            key!(far_distance_m, metres()),
            relation!(far_distance_m, "at most twice enb_distance_m for stations that move apart", far_chord),
            relation!(far_distance_m, "other than distance_m with movement = \"back-and-forth\"", apart),
            key!(speed_mps, numbers(0.0..=100.0).unit("m/s")),
            key!(carrier_ghz, numbers(0.5..=6.0).unit("GHz")),
            key!(enb_power_dbm, dbm()),
            key!(station_power_dbm, dbm()),
            key!(enb_gain_dbi, db()),
            key!(cable_loss_db, db()),
            key!(enb_noise_figure_db, db()),
            key!(station_noise_figure_db, db()),
            key!(cqi_margin_db, db()),
        ]
    }
}

impl Section for Waypoint {
    fn limits() -> Vec<Limit<Self>> {
        let metres = || numbers(-FARTHEST_M..=FARTHEST_M).unit("m");
        vec![key!(x_m, metres()), key!(y_m, metres())]
    }
}

/// Checks table, places, and keys that depend on each other.
pub(crate) fn check(table: &Sidelink) -> Result<(), Problem> {
    limits::check("sidelink", table)?;
    for (index, place) in table.waypoints.iter().enumerate() {
        limits::check(&format!("sidelink.waypoints.{index}"), place)?;
    }
    let same_path = table.rlc == RlcMode::Um || table.data == table.acks;
    let acks = if table.acks == SidelinkPath::Direct { "direct" } else { "infrastructure" };
    let allowed = "the same as data with rlc = \"am\", whose status reports take the opposite direction";
    Problem::unless(same_path, "sidelink.acks", acks, allowed)?;
    let times: Vec<String> = table.switch_at.iter().map(ToString::to_string).collect();
    let scripted = table.selection == SidelinkSelection::Scripted;
    let allowed = "one or more ascending times with selection = \"scripted\", and none otherwise";
    let ascending = table.switch_at.windows(2).all(|pair| pair[0] < pair[1]);
    let fits = ascending && times.is_empty() != scripted;
    Problem::unless(fits, "sidelink.switch_at", format!("[{}]", times.join(", ")), allowed)?;
    let walks = table.movement == Movement::Waypoints;
    let allowed = "one or more tables with movement = \"waypoints\", and none otherwise";
    let count = table.waypoints.len();
    Problem::unless(
        walks != table.waypoints.is_empty(),
        "sidelink.waypoints",
        format!("{count} tables"),
        allowed,
    )
}

/// Keys of `[cell]` that have an effect beside `[sidelink]` in NR.
const CARRIER_KEYS: [&str; 17] = [
    "rat",
    "duplex",
    "frequency",
    "numerology",
    "subcarrier_spacing",
    "pattern",
    "bandwidth",
    "uplink_bandwidth",
    "pucch_prb",
    "decode_delay",
    "sr_period",
    "t_poll_retransmit",
    "poll_pdu",
    "poll_byte",
    "max_retx_threshold",
    "t_status_prohibit",
    "nr",
];
/// Keys of `[cell.nr]` that have none.
const UNUSED_NR_KEYS: [&str; 9] = [
    "layers",
    "uplink_layers",
    "antennas",
    "uplink_antennas",
    "scheduling_lead",
    "radio_lead",
    "sr_prohibit_timer",
    "harq_processes",
    "configured_grant",
];
/// Keys of `[sidelink]` whose values NR takes from `[cell]`.
const LTE_KEYS: [&str; 2] = ["resource_blocks", "carrier_ghz"];

/// Keys of `[cell]`, `[cell.nr]` and `[sidelink]` that have no effect on pairs.
pub(crate) fn unused_keys(nr: bool) -> Vec<String> {
    let of = |table: &'static str| move |key: &str| format!("{table}.{key}");
    if !nr {
        return ["subchannel", "psfch_period"].map(of("sidelink")).into();
    }
    let all = toml::Table::try_from(Cell::default()).unwrap_or_default();
    let cell = all.keys().map(String::as_str).chain(OPTIONAL_CELL_KEYS);
    let cell = cell.filter(|key| !CARRIER_KEYS.contains(key)).map(of("cell"));
    cell.chain(UNUSED_NR_KEYS.map(of("cell.nr"))).chain(LTE_KEYS.map(of("sidelink"))).collect()
}
/// Keys of `[cell]` that a table with defaults leaves out.
const OPTIONAL_CELL_KEYS: [&str; 7] = [
    "tdd_configuration",
    "special_subframe",
    "ack_mode",
    "uplink_scheduler",
    "discard_timer",
    "lte",
    "proactive_grant",
];
/// Checks the carrier of pairs in NR.
pub(crate) fn check_carrier(table: &Sidelink, plan: &CellPlan, cell: &Cell) -> Result<(), Problem> {
    let ghz = cell.frequency.map_or(0.0, |frequency| frequency.0 as f64 / 1e9);
    let allowed = "0.5 to 6 GHz beside [sidelink], whose path loss is that of the urban macro (TR 36.814)";
    let frequency = cell.frequency.map(|frequency| frequency.to_string()).unwrap_or_default();
    Problem::unless((0.5..=6.0).contains(&ghz), "cell.frequency", frequency, allowed)?;
    let (size, prb) = (table.subchannel.unwrap_or(10), plan.uplink_prb - plan.pucch_prb);
    let allowed = format!("at most the {prb} resource blocks of the uplink without PUCCH");
    Problem::unless(size <= prb, "sidelink.subchannel", size, &allowed)
}

#[cfg(test)]
mod tests {
    use crate::load;

    const PAIR: &str = "[sidelink]\n[[station]]\n";

    #[test]
    fn a_scenario_with_every_key_is_read_again() {
        for set in [&[][..], &["sidelink.selection=scripted", "sidelink.switch_at=[\"5 s\", \"7 s\"]"]] {
            let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
            let scenario = load("pair.toml", PAIR, &set).unwrap();
            assert!(scenario.core.hops.is_empty());
            assert_eq!(load("again.toml", &scenario.to_toml(), &[]).unwrap(), scenario);
        }
    }

    const NR: &str = "[cell]\nrat = \"nr\"\nbandwidth = \"10 MHz\"\n[sidelink]\n[[station]]\n";

    #[test]
    fn pairs_in_nr_have_the_carrier_of_the_cell() {
        for set in ["cell.pattern=DDDSU", "sidelink.rlc=am", "sidelink.psfch_period=4", "cell.nr.min_k2=6"] {
            let scenario = load("pair.toml", NR, &[set.to_owned()]).unwrap();
            assert_eq!(load("again.toml", &scenario.to_toml(), &[]).unwrap(), scenario, "{set}");
        }
        for set in [
            "cell.rlc=am",
            "cell.max_harq_tx=3",
            "cell.discard_timer=50 ms",
            "cell.nr.layers=2",
            "sidelink.resource_blocks=25",
            "sidelink.carrier_ghz=3.5",
            "sidelink.subchannel=11",
            "sidelink.subchannel=75",
            "cell.frequency=28 GHz",
        ] {
            let error = load("pair.toml", NR, &[set.to_owned()]).expect_err(set).to_string();
            assert!(error.contains(set.split('=').next().unwrap()) || set.contains("28"), "{set}: {error}");
        }
    }

    #[test]
    fn keys_that_do_not_fit_are_refused_with_what_is_allowed() {
        for (set, key) in [
            ("sidelink.data=sideways", "sidelink.data"),
            ("sidelink.distance_m=50", "sidelink.distance_m"),
            ("sidelink.movement=back-and-forth", "sidelink.far_distance_m"),
            ("sidelink.movement=waypoints", "sidelink.waypoints"),
            ("sidelink.selection=scripted", "sidelink.switch_at"),
            ("sidelink.switch_at=[\"1 s\"]", "sidelink.switch_at"),
            ("sidelink.rac_timeout=1.5 ms", "sidelink.rac_timeout"),
            ("sidelink.hysteresis=15", "sidelink.hysteresis"),
            ("sidelink.resource_blocks=51", "sidelink.resource_blocks"),
            ("cell.bandwidth=10 MHz", "cell"),
            ("core.proxy=accelerator", "core"),
            ("accelerator.memory=1 MiB", "accelerator"),
            ("link.delay=1 ms", "link"),
            ("sidelink.subchannel=10", "sidelink.subchannel"),
            ("sidelink.psfch_period=2", "sidelink.psfch_period"),
            ("station.0.uplink_sinr=3 dB", "station.0.uplink_sinr"),
        ] {
            let error = load("pair.toml", PAIR, &[set.to_owned()]).expect_err(set).to_string();
            assert!(error.contains(key), "{set}: {error}");
        }
        let mixed = "[sidelink]\nrlc = \"am\"\nacks = \"infrastructure\"\n[[station]]\n";
        let error = load("pair.toml", mixed, &[]).unwrap_err().to_string();
        assert!(error.contains("pair.toml:3: sidelink.acks = infrastructure"), "{error}");
    }
}
