//! Table `[cell.nr]`: the keys of an NR cell that LTE does not have.

use super::lead::{MAX_LEAD_SLOTS, MAX_RADIO_LEAD};
use crate::limits::{self, Limit, Section, key, numbers, one_of, one_of_ms, quantities};
use paceline_net::Duration;
use paceline_ran::nr::mcs::McsTable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Table `[cell.nr]`, with `cell.rat = "nr"`. Defaults without a source of their own are those of
/// srsRAN_Project.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Nr {
    /// Most downlink layers (TS 38.331 maxMIMO-Layers); the rank follows from the SINR. Default: the receive
    /// antennas that TS 38.101-1 §7.3.1 requires on n77 to n79.
    pub layers: u8,
    /// Most uplink layers (TS 38.331 maxRank).
    pub uplink_layers: u8,
    /// Antennas of the end with fewer, in the downlink; they bound the layers.
    pub antennas: u8,
    /// Antennas of the end with fewer, in the uplink.
    pub uplink_antennas: u8,
    /// MCS table of PDSCH and CQI table (TS 38.331 mcs-Table, TS 38.214 §5.1.3.1).
    pub mcs_table: McsTableName,
    /// MCS table of PUSCH, without transform precoding (TS 38.214 §6.1.4.1).
    pub uplink_mcs_table: McsTableName,
    /// PDCCH symbols at the start of a slot with downlink symbols (TS 38.331 ControlResourceSet duration).
    pub pdcch_symbols: u8,
    /// Resource elements of DMRS per PRB, both directions: 12 for one symbol of type 1 without data (TS
    /// 38.214 §5.1.3.2).
    pub dmrs_re: u8,
    /// xOverhead: resource elements per PRB that a block size leaves out (TS 38.331 PDSCH-ServingCellConfig).
    pub x_overhead: u8,
    /// Synchronization blocks in a burst (TS 38.213 §4.1).
    pub ssb_beams: u8,
    /// Period of bursts of synchronization blocks (TS 38.331 ssb-PeriodicityServingCell). Default: the period
    /// assumed before configuration (TS 38.213 §4.1).
    pub ssb_period: Duration,
    /// Processing capability of stations, which bounds K1 and K2 and counts in idle latencies; 2 in FR1 alone
    /// (TS 38.214 §5.3 and §6.4).
    pub capability: u8,
    /// Smallest K1: slots from a PDSCH to its HARQ-ACK, which is in the next uplink slot.
    pub min_k1: u8,
    /// Smallest K2: slots from a grant to its PUSCH.
    pub min_k2: u8,
    /// K1 of every slot with downlink symbols, in order. Default: the smallest from `min_k1` on that lead
    /// into uplink slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k1: Option<Vec<u8>>,
    /// Whole slots of the gNB between a reception and the slot of its decision; srsRAN has 1 to 2.
    pub gnb_slots: u8,
    /// Slots from the scheduler's decision on a downlink block or a grant to the end of its processing.
    /// Default: that of `cell.gnb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_lead: Option<u8>,
    /// Time before the air at which the radio has the samples of a slot: fronthaul and the radio's buffer.
    /// Default: that of `cell.gnb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub radio_lead: Option<Duration>,
    /// sr-ProhibitTimer (TS 38.331 SchedulingRequestConfig). Default: `cell.sr_prohibit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sr_prohibit_timer: Option<Duration>,
    /// HARQ processes of the downlink (TS 38.331 nrofHARQ-ProcessesForPDSCH); the uplink has 16 (TS 38.214
    /// §6.1).
    pub harq_processes: u8,
    /// Sequence number of RLC UM (TS 38.331 SN-FieldLengthUM).
    pub rlc_um_sn: u8,
    /// Sequence number of RLC AM (TS 38.331 SN-FieldLengthAM).
    pub rlc_am_sn: u8,
    /// RLC t-Reassembly. Default: longer than three HARQ round trips of usual patterns.
    pub t_reassembly: Duration,
    /// Sequence number of PDCP (TS 38.331 pdcp-SN-SizeDL and -UL). Default of srsRAN, 5QI 9.
    pub pdcp_sn: u8,
    /// PDCP t-Reordering. Default: 100 ms with RLC UM, above `t_reassembly`; 500 ms with RLC AM, above most
    /// recoveries with fading (docs/path-switch.md). srsRAN: 220 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdcp_t_reordering: Option<Duration>,
    /// Whether SDAP adds its header of one byte (TS 37.324 §6.2.2).
    pub sdap_header: bool,
    /// A configured grant of every station (TS 38.321 §5.8.2, type 1); without the table, none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configured_grant: Option<ConfiguredGrant>,
}

/// Table `[cell.nr.configured_grant]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct ConfiguredGrant {
    /// Its period, in whole slots (TS 38.331 ConfiguredGrantConfig periodicity).
    pub period: Duration,
    /// PRBs of the PUSCH.
    pub prb: u16,
    /// Index in the uplink MCS table; one layer.
    pub mcs: u8,
}

/// An MCS table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum McsTableName {
    /// Up to 64QAM (TS 38.214 Table 5.1.3.1-1).
    Qam64,
    /// Up to 256QAM (TS 38.214 Table 5.1.3.1-2).
    Qam256,
    /// Up to 64QAM with low spectral efficiency (TS 38.214 Table 5.1.3.1-3).
    LowSe,
}

impl From<McsTableName> for McsTable {
    fn from(name: McsTableName) -> Self {
        match name {
            McsTableName::Qam64 => Self::Qam64,
            McsTableName::Qam256 => Self::Qam256,
            McsTableName::LowSe => Self::LowEfficiency,
        }
    }
}

impl Default for Nr {
    fn default() -> Self {
        Self {
            layers: 4,
            uplink_layers: 1,
            antennas: 4,
            uplink_antennas: 2,
            mcs_table: McsTableName::Qam256,
            uplink_mcs_table: McsTableName::Qam256,
            pdcch_symbols: 1,
            dmrs_re: 12,
            x_overhead: 0,
            ssb_beams: 1,
            ssb_period: Duration::from_millis(20),
            capability: 1,
            min_k1: 4,
            min_k2: 4,
            k1: None,
            gnb_slots: 2,
            scheduling_lead: None,
            radio_lead: None,
            sr_prohibit_timer: None,
            harq_processes: 16,
            rlc_um_sn: 12,
            rlc_am_sn: 18,
            t_reassembly: Duration::from_millis(50),
            pdcp_sn: 18,
            pdcp_t_reordering: None,
            sdap_header: false,
            configured_grant: None,
        }
    }
}

impl Default for ConfiguredGrant {
    fn default() -> Self {
        Self { period: Duration::from_millis(5), prb: 4, mcs: 5 }
    }
}

/// t-Reassembly in ms (TS 38.331 RLC-Config).
const T_REASSEMBLY_MS: [u64; 31] = [
    0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100, 110, 120, 130, 140,
    150, 160, 170, 180, 190, 200,
];
/// t-Reordering of PDCP in ms (TS 38.331 PDCP-Config).
const T_REORDERING_MS: [u64; 36] = [
    0, 1, 2, 4, 5, 8, 10, 15, 20, 30, 40, 50, 60, 80, 100, 120, 140, 160, 180, 200, 220, 240, 260, 280, 300,
    500, 750, 1000, 1250, 1500, 1750, 2000, 2250, 2500, 2750, 3000,
];

impl Section for Nr {
    fn computed_defaults() -> Vec<(&'static str, String)> {
        [
            ("gnb_slots", "2 with `cell.gnb = \"ideal\"`, 1 with `\"srsran\"`"),
            ("scheduling_lead", "that of `cell.gnb`"),
            ("radio_lead", "that of `cell.gnb`"),
            ("sr_prohibit_timer", "`cell.sr_prohibit` periods"),
        ]
        .map(|(key, text)| (key, text.to_owned()))
        .into()
    }
    fn limits() -> Vec<Limit<Self>> {
        vec![
            key!(layers, numbers(1..=4).unit("layers")),
            key!(uplink_layers, numbers(1..=4).unit("layers")),
            key!(antennas, one_of(&[1, 2, 4, 8]).unit("antennas")),
            key!(uplink_antennas, one_of(&[1, 2, 4, 8]).unit("antennas")),
            key!(pdcch_symbols, numbers(1..=3).unit("symbols")),
            key!(dmrs_re, one_of(&[6, 12, 18, 24, 36, 48]).unit("resource elements")),
            key!(x_overhead, one_of(&[0, 6, 12, 18]).unit("resource elements")),
            key!(ssb_beams, numbers(1..=64).unit("blocks")),
            key!(ssb_period, one_of_ms(&[5, 10, 20, 40, 80, 160])),
            key!(capability, numbers(1..=2)),
            key!(min_k1, numbers(0..=15).unit("slots")),
            key!(min_k2, numbers(0..=32).unit("slots")),
            key!(gnb_slots, numbers(0..=8).unit("slots")),
            key!(scheduling_lead?, numbers(0..=MAX_LEAD_SLOTS).unit("slots")),
            key!(radio_lead?, quantities("0 ms", MAX_RADIO_LEAD)),
            key!(sr_prohibit_timer?, one_of_ms(&[1, 2, 4, 8, 16, 32, 64, 128])),
            key!(harq_processes, one_of(&[2, 4, 6, 8, 10, 12, 16]).unit("processes")),
            key!(rlc_um_sn, one_of(&[6, 12]).unit("bits")),
            key!(rlc_am_sn, one_of(&[12, 18]).unit("bits")),
            key!(t_reassembly, one_of_ms(&T_REASSEMBLY_MS)),
            key!(pdcp_sn, one_of(&[12, 18]).unit("bits")),
            key!(pdcp_t_reordering?, one_of_ms(&T_REORDERING_MS)),
        ]
    }
}

impl Section for ConfiguredGrant {
    fn limits() -> Vec<Limit<Self>> {
        vec![
            key!(period, quantities("125 us", "5120 ms")),
            key!(prb, numbers(1..=275).unit("resource blocks")),
            key!(mcs, numbers(0..=28)),
        ]
    }
}
