//! The scenario file: what is simulated, with units, defaults and their sources.
//!
//! Every table and key of the TOML file is a field here. [`load`] reads and checks it; an error names the file,
//! the line, the key, its value and what is allowed.

mod cellular;
mod check;
mod check_link;
mod deployment;
mod link;
mod load;
mod path;
mod sinr;
mod tcp;

pub use cellular::Cellular;
pub use deployment::{Deployment, DeploymentModel, FadingProfile};
pub use link::{FixedLink, Link, TraceFile, TraceLink};
pub use load::{ScenarioError, load, load_with};
pub use path::{Accelerator, AcceleratorProfile, Path, SplitTcp};
pub use sinr::SinrRange;
pub use tcp::Tcp;

use paceline_net::units::{Db, Hertz};
use paceline_net::{Bytes, Duration, Rate};
use paceline_pep::Scheme;
use serde::{Deserialize, Serialize};

/// A whole scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// How long, and with which seed.
    #[serde(default)]
    pub run: Run,
    /// The wired path between the servers and the eNB.
    #[serde(default)]
    pub core: Core,
    /// The cell.
    #[serde(default)]
    pub cell: Cell,
    /// Another link in place of the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// Sites around the stations; if left out, stations have the SINRs that they state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<Deployment>,
    /// The mobile accelerator, with `core.path = "accelerator"`.
    #[serde(default)]
    pub accelerator: Accelerator,
    /// The proxy, with `core.path = "split-tcp"`.
    #[serde(default)]
    pub split_tcp: SplitTcp,
    /// The ACK filter in every station's uplink buffer.
    #[serde(default)]
    pub ack_filter: AckFilter,
    /// TCP at both ends.
    #[serde(default)]
    pub tcp: Tcp,
    /// Groups of stations.
    #[serde(default, rename = "station")]
    pub stations: Vec<Stations>,
}

/// Tables that describe a cell.
const CELL_TABLES: [&str; 3] = ["cell", "deployment", "ack_filter"];
/// Keys of a station that do.
const CELL_KEYS: [&str; 4] = ["downlink_sinr", "uplink_sinr", "fading", "coherence"];

/// Table `[run]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Simulated time.
    pub duration: Duration,
    /// Time at the start that the figures leave out.
    pub warmup: Duration,
    /// Seed of all random streams; further seeds count up from it.
    pub seed: u64,
    /// Interval of the time series.
    pub sample: Duration,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(20),
            warmup: Duration::from_secs(2),
            seed: 1,
            sample: Duration::from_millis(100),
        }
    }
}

/// Table `[core]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Core {
    /// Hops from the servers to the eNB, in this order; each works in both directions.
    pub hops: Vec<Hop>,
    /// What stands in the way: `direct` (nothing), `split-tcp` or `accelerator`.
    pub path: Path,
    /// How many of the hops lie between the servers and that; all of them if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_after: Option<usize>,
}

impl Core {
    /// The hops between the servers and what stands in the way, and those behind it.
    pub(crate) fn around_path(&self) -> (&[Hop], &[Hop]) {
        self.hops.split_at(self.path_after.unwrap_or(self.hops.len()))
    }
}

impl Default for Core {
    fn default() -> Self {
        Self {
            hops: vec![Hop {
                rate: Rate(1_000_000_000),
                delay: Duration::from_millis(5),
                queue: Bytes(4_000_000),
                ecn_threshold: None,
                per_cell: false,
            }],
            path: Path::Direct,
            path_after: None,
        }
    }
}

/// One wired hop.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// Bit rate.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Queue in front of it, per direction.
    #[serde(default = "default_hop_queue")]
    pub queue: Bytes,
    /// Queue above which ECN-capable packets are marked (RFC 3168); none are if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_threshold: Option<Bytes>,
    /// Whether every served cell has its own, as several eNBs have their S1 links; only behind those that are shared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub per_cell: bool,
}

fn default_hop_queue() -> Bytes {
    Bytes(4_000_000)
}

/// Table `[cell]`: one LTE FDD cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cell {
    /// Downlink channel bandwidth: 1.4, 3, 5, 10, 15 or 20 MHz (TS 36.104 Table 5.6-1).
    pub bandwidth: Hertz,
    /// Uplink channel bandwidth; as the downlink's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_bandwidth: Option<Hertz>,
    /// Uplink resource blocks taken by PUCCH.
    pub pucch_prb: u8,
    /// Scheduler: `round-robin`, `proportional-fair` or `max-ci`.
    pub scheduler: Scheduler,
    /// Scheduler of the uplink; as the downlink's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_scheduler: Option<Scheduler>,
    /// Downlink assignments per TTI: 80 CCEs of 20 MHz and three PDCCH symbols, half of them, at level 4.
    pub downlink_grants: usize,
    /// Uplink grants per TTI, likewise.
    pub uplink_grants: usize,
    /// Transmissions of a block before HARQ gives up (1..=8; usual 4).
    pub max_harq_tx: u32,
    /// Whether stations can send 64QAM (UE category 5 and some later ones).
    pub uplink_64qam: bool,
    /// RLC t-Reordering (TS 36.331: 0 to 200 ms); no less than four HARQ round trips.
    pub t_reordering: Duration,
    /// RLC mode of the stations' data: `um` or `am`.
    pub rlc: RlcMode,
    /// RLC AM t-PollRetransmit (TS 36.331: 5 to 4000 ms). This and the following four: srsRAN 4G, QCI 9; other
    /// code differs (OAI: 50 ms, 16 PDUs, no limit in bytes, 8, 25 ms).
    pub t_poll_retransmit: Duration,
    /// RLC AM pollPDU (TS 36.331: 4 to 256); 0 for infinity.
    pub poll_pdu: u32,
    /// RLC AM pollByte (TS 36.331: 25 to 3000 kB); 0 for infinity.
    pub poll_byte: Bytes,
    /// RLC AM maxRetxThreshold (TS 36.331: 1 to 32); srsRAN has 32 in the downlink.
    pub max_retx_threshold: u32,
    /// RLC AM t-StatusProhibit (TS 36.331: 0 to 2400 ms).
    pub t_status_prohibit: Duration,
    /// After a radio-link failure, time until the station has selected its cell again; random access and
    /// `reestablishment_signalling` follow. An assumption: TS 36.133 §6.1 allows 150 ms for a known cell, and the time
    /// to read its system information.
    pub cell_selection: Duration,
    /// RRC connection re-establishment and reconfiguration after contention resolution: an assumption.
    pub reestablishment_signalling: Duration,
    /// PDCP discardTimer (TS 36.331: 50 to 1500 ms); infinity if left out, as in OAI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard_timer: Option<Duration>,
    /// Time from the end of a transmission until layer 2 has its data.
    pub decode_delay: Duration,
    /// Whether an outer loop corrects the choice of MCS, aiming at 10% block error.
    pub outer_loop: bool,
    /// Period of the CQI report (TS 36.213 Table 7.2.2-1A).
    pub cqi_period: Duration,
    /// Age of a CQI report when the scheduler uses it first.
    pub cqi_delay: Duration,
    /// Buffer per station in the eNB.
    pub downlink_buffer: Bytes,
    /// Buffer per station in the station.
    pub uplink_buffer: Bytes,
    /// Scheduling request period: 1, 2, 5, 10, 20, 40 or 80 ms (TS 36.213 Table 10.1.5-1).
    pub sr_period: Duration,
    /// sr-ProhibitTimer in scheduling request periods (TS 36.331: 0..=7).
    pub sr_prohibit: u64,
    /// Probability that the eNB hears a scheduling request (TS 36.104 §8.3 asks for 0.99 on PUCCH).
    pub sr_detection: f64,
    /// dsr-TransMax: scheduling requests in vain before the station accesses at random (TS 36.331: 4, 8, 16, 32 or
    /// 64; srsRAN 64).
    pub dsr_trans_max: u32,
    /// Whether stations start without a connection and access at random when they first have data, paged at once for
    /// data of the downlink; then the PRACH takes 6 resource blocks of its subframes. If false they start connected,
    /// and preambles, which are rare then, take nothing from PUSCH.
    pub initial_access: bool,
    /// From contention resolution until a new connection carries data: RRC and security set-up, an assumption.
    pub connection_setup: Duration,
    /// prach-ConfigIndex: 0 to 15, preamble format 0 (TS 36.211 Table 5.7.1-2; srsRAN 3: subframe 1 of every frame).
    pub prach_config_index: u8,
    /// numberOfRA-Preambles: 4, 8, .. 64 to choose from (TS 36.331; OAI and ns-3 leave 52 of 64).
    pub ra_preambles: u64,
    /// preambleTransMax: 3, 4, 5, 6, 7, 8, 10, 20, 50, 100 or 200 (TS 36.331; srsRAN 10).
    pub preamble_trans_max: u32,
    /// ra-ResponseWindowSize: 2 to 8 or 10 ms (TS 36.331; srsRAN, OAI 10).
    pub ra_response_window: Duration,
    /// Random access responses, each with a grant, per TTI and cell (TR 37.868: 3).
    pub ra_responses: usize,
    /// Backoff in the responses: 0, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480 or 960 ms (TS 36.321 Table 7.2-1;
    /// TR 37.868: 20).
    pub backoff_indicator: Duration,
    /// mac-ContentionResolutionTimer: 8, 16, .. 64 ms (TS 36.331; OAI, TR 37.868 48).
    pub contention_resolution_timer: Duration,
    /// maxHARQ-Msg3Tx (TS 36.331: 1 to 8; srsRAN, OAI 4).
    pub max_harq_msg3_tx: u32,
    /// periodicBSR-Timer (TS 36.331: 5 to 2560 ms).
    pub periodic_bsr_timer: Duration,
    /// retxBSR-Timer (TS 36.331: 320 to 10240 ms).
    pub retx_bsr_timer: Duration,
    /// Size of the grant that answers a scheduling request: a BSR and one ACK.
    pub sr_grant: Bytes,
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            bandwidth: Hertz(20_000_000),
            uplink_bandwidth: None,
            pucch_prb: 4,
            scheduler: Scheduler::RoundRobin,
            uplink_scheduler: None,
            downlink_grants: 10,
            uplink_grants: 10,
            max_harq_tx: 4,
            uplink_64qam: false,
            t_reordering: Duration::from_millis(50),
            rlc: RlcMode::Um,
            t_poll_retransmit: Duration::from_millis(120),
            poll_pdu: 64,
            poll_byte: Bytes(750_000),
            max_retx_threshold: 16,
            t_status_prohibit: Duration::from_millis(50),
            cell_selection: Duration::from_millis(50),
            reestablishment_signalling: Duration::from_millis(25),
            discard_timer: None,
            decode_delay: Duration::from_millis(2),
            outer_loop: false,
            cqi_period: Duration::from_millis(5),
            cqi_delay: Duration::from_millis(6),
            downlink_buffer: Bytes(1_000_000),
            uplink_buffer: Bytes(256_000),
            sr_period: Duration::from_millis(10),
            sr_prohibit: 0,
            sr_detection: 1.0,
            dsr_trans_max: 64,
            initial_access: false,
            connection_setup: Duration::from_millis(50),
            prach_config_index: 3,
            ra_preambles: 52,
            preamble_trans_max: 10,
            ra_response_window: Duration::from_millis(10),
            ra_responses: 3,
            backoff_indicator: Duration::from_millis(20),
            contention_resolution_timer: Duration::from_millis(48),
            max_harq_msg3_tx: 4,
            periodic_bsr_timer: Duration::from_millis(5),
            retx_bsr_timer: Duration::from_millis(320),
            sr_grant: Bytes(80),
        }
    }
}

/// How resource blocks are shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// Equal turns.
    RoundRobin,
    /// What a block carries now over what was served of late.
    ProportionalFair,
    /// Who gets most out of a block.
    MaxCi,
}

/// Whether RLC repeats what HARQ lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RlcMode {
    /// Unacknowledged mode: it does not.
    Um,
    /// Acknowledged mode: it does.
    Am,
}

/// Table `[ack_filter]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AckFilter {
    /// `basic`, `passive(RATIO)`, `granted`, `active(T)`, `highest`, `hybrid(T)`, `hybrid-opt` or `safe`.
    pub scheme: Scheme,
    /// S_header: TCP/IP, PDCP, RLC and MAC headers of a data segment.
    pub header: Bytes,
}

impl Default for AckFilter {
    fn default() -> Self {
        Self { scheme: Scheme::Basic, header: Bytes(58) }
    }
}

/// Table `[[station]]`: stations of one kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stations {
    /// How many.
    pub count: u64,
    /// Mean SINR towards a station: one value, or a range from which each station draws.
    pub downlink_sinr: SinrRange,
    /// Mean SINR from a station, likewise.
    pub uplink_sinr: SinrRange,
    /// Standard deviation of the variation around the means.
    pub fading: Db,
    /// Coherence time of the variation.
    pub coherence: Duration,
    /// TCP connections per station.
    pub flows: u32,
    /// Which way the data go.
    pub direction: Direction,
    /// What carries them: `tcp`, or `udp` for a probe: datagrams at a steady rate, each answered by a short one.
    pub traffic: Traffic,
    /// Bit rate of each UDP flow, IP and UDP headers included.
    pub udp_rate: Rate,
    /// Payload of a datagram.
    pub udp_payload: Bytes,
    /// Size of each transfer; endless if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Bytes>,
    /// What a station sends first in a download, as a web client asks for it: the server's data follow. Without it they
    /// follow the handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Bytes>,
    /// Bytes of a piece, where the application writes one now and then instead of all at once; `file` is then the sum
    /// of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Bytes>,
    /// Time from one piece to the next.
    pub chunk_interval: Duration,
    /// When the first connection opens.
    pub start: Duration,
    /// Connections open at a random time within this span after `start`.
    pub start_spread: Duration,
}

impl Default for Stations {
    fn default() -> Self {
        Self {
            count: 1,
            downlink_sinr: SinrRange::fixed(20.0),
            uplink_sinr: SinrRange::fixed(10.0),
            fading: Db(0.0),
            coherence: Duration::from_millis(20),
            flows: 1,
            direction: Direction::Download,
            traffic: Traffic::Tcp,
            udp_rate: Rate(1_000_000),
            udp_payload: Bytes(1472),
            file: None,
            request: None,
            chunk: None,
            chunk_interval: Duration::from_secs(1),
            start: Duration::ZERO,
            start_spread: Duration::from_millis(100),
        }
    }
}

/// What carries a station's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// TCP connections.
    Tcp,
    /// UDP flows of constant rate.
    Udp,
}

/// Which way a transfer goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Server to station.
    Download,
    /// Station to server.
    Upload,
    /// No simulated traffic: a station for real programs.
    None,
}

impl Scenario {
    /// Stations of all groups.
    pub fn station_count(&self) -> u64 {
        self.stations.iter().map(|group| group.count).fold(0, u64::saturating_add)
    }
    /// Cells whose stations are simulated: all sectors of the served sites, or the one cell of stated SINRs.
    pub fn served_cells(&self) -> usize {
        let sectors = paceline_ran::radio::geometry::SECTORS;
        self.deployment.as_ref().map_or(1, |deployment| sectors * deployment.served_sites as usize)
    }
    /// The scenario as a file that says everything, defaults included.
    pub fn to_toml(&self) -> String {
        if self.link.is_none() {
            return toml::to_string(self).expect("a scenario is made of tables and scalars");
        }
        // What belongs to a cell is refused beside a link.
        let mut table = toml::Table::try_from(self).expect("a scenario is made of tables and scalars");
        CELL_TABLES.iter().for_each(|name| drop(table.remove(*name)));
        let groups = table.get_mut("station").and_then(toml::Value::as_array_mut);
        for group in groups.into_iter().flatten().filter_map(toml::Value::as_table_mut) {
            CELL_KEYS.iter().for_each(|name| drop(group.remove(*name)));
        }
        toml::to_string(&table).expect("a scenario is made of tables and scalars")
    }
    /// The addresses of the stations as a routing table.
    pub(crate) fn routes(&self) -> paceline_net::AddressTable {
        let stations = 0..self.station_count() as usize;
        let pairs = stations.map(|index| (index, crate::address::station(index)));
        pairs.flat_map(|(index, (v4, v6))| [(v4.into(), index), (v6.into(), index)]).collect()
    }
}
