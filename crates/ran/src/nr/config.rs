//! Parameters of an NR cell beyond those of every cell: tables, layers, overheads, distances, HARQ,
//! configured grants, SDAP and PDCP. Times in slots unless their type says otherwise.

use super::mcs::McsTable;
use super::overhead::{DmrsType, dmrs_re};
use super::timing::processing::Capability;
use super::timing::{SlotTiming, TimingError};
use crate::duplex::Duplex;
use crate::pdcp::PdcpSn;
use crate::slot::{Numerology, SlotSpan};
use paceline_net::Duration;

/// The NR part of a cell's configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct NrConfig {
    /// MCS table of PDSCH and its CQI table (TS 38.331 PDSCH-Config mcs-Table).
    pub downlink_table: McsTable,
    /// MCS table of PUSCH (TS 38.331 PUSCH-Config mcs-Table).
    pub uplink_table: McsTable,
    /// Most layers of PDSCH, 1 to 4 (TS 38.331 maxMIMO-Layers).
    pub downlink_layers: u8,
    /// Most layers of PUSCH, 1 to 4 (TS 38.331 maxRank).
    pub uplink_layers: u8,
    /// The smaller number of antennas of both ends in the downlink, which bounds the rank.
    pub downlink_antennas: u8,
    /// The smaller number of antennas of both ends in the uplink.
    pub uplink_antennas: u8,
    /// Symbols of PDCCH at the start of a slot with downlink symbols, 1 to 3 (TS 38.331 ControlResourceSet
    /// duration).
    pub pdcch_symbols: u8,
    /// Resource elements per PRB of demodulation reference signals, both directions.
    pub dmrs_re: u8,
    /// Resource elements per PRB of xOverhead in PDSCH and PUSCH: 0, 6, 12 or 18 (TS 38.214 §5.1.3.2).
    pub overhead_re: u8,
    /// Synchronization blocks in one period.
    pub ssb_beams: u8,
    /// Period of the synchronization blocks.
    pub ssb_period: SlotSpan,
    /// Period of PRACH occasions: one in the first uplink slot of each period (TS 38.211 §6.3.3.2).
    pub prach_period: SlotSpan,
    /// Processing capability of the stations.
    pub capability: Capability,
    /// Smallest K1, from a PDSCH to its HARQ-ACK.
    pub min_k1: u8,
    /// Smallest K2, from a grant to its PUSCH.
    pub min_k2: u8,
    /// K1 of each slot with downlink symbols, in their order; none for the smallest from `min_k1` on that
    /// lead into slots of uplink symbols.
    pub stated_k1: Option<Vec<u8>>,
    /// Whole slots that the gNB needs between a reception and the slot of its decision.
    pub gnb_slots: u8,
    /// Slots from a decision of the gNB to its slot on the air: scheduling lead and radio lead.
    pub lead: SlotSpan,
    /// HARQ processes of the downlink, at most 16.
    pub downlink_processes: u8,
    /// HARQ processes of the uplink, at most 16.
    pub uplink_processes: u8,
    /// A configured grant of each station.
    pub configured_grant: Option<ConfiguredGrant>,
    /// Whether SDAP adds its header of one byte (TS 37.324 §6.2.2).
    pub sdap_header: bool,
    /// Length of PDCP's sequence numbers (TS 38.331 pdcp-SN-Size).
    pub pdcp_sn: PdcpSn,
    /// t-Reordering of PDCP; none for infinity (TS 38.331 PDCP-Config).
    pub pdcp_reordering: Option<Duration>,
}

/// A grant that repeats without PDCCH (TS 38.321 §5.8.2, type 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfiguredGrant {
    /// Its period.
    pub period: SlotSpan,
    /// PRBs of the PUSCH.
    pub prbs: u16,
    /// Index in the uplink MCS table; one layer.
    pub mcs: u8,
}

impl ConfiguredGrant {
    /// Number of stations in a cell with `pusch_prbs` PRBs of PUSCH that can have such a grant.
    pub fn capacity(&self, duplex: &Duplex, pusch_prbs: u16) -> u64 {
        duplex.uplink_offsets(self.period).len() as u64 * u64::from(pusch_prbs / self.prbs.max(1))
    }
}

impl NrConfig {
    /// The usual parameters of a carrier of this numerology.
    ///
    /// - Tables: 256QAM in both directions (TS 38.306: mandatory in FR1 downlink, optional in the uplink).
    /// - Layers and antennas: four in the downlink, which TS 38.101-1 §7.3.1 requires of receivers on
    ///   n77 to n79, one in the uplink.
    /// - One PDCCH symbol, DMRS type 1 with both groups without data, no xOverhead (TS 38.331 xOverhead
    ///   absent).
    /// - Chosen: one synchronization block per 20 ms, the period that a station assumes (TS 38.213 §4.1);
    ///   one PRACH occasion per frame.
    /// - Chosen: K1 and K2 of at least 4 and two slots in the gNB, the defaults of srsRAN_Project.
    /// - 16 processes (TS 38.214 §5.1 and §6.1). Chosen: PDCP numbers of 18 bits as srsRAN_Project's 5QI 9
    ///   (`configs/qos.yml`); t-Reordering 100 ms, a value of TS 38.331 above
    ///   four HARQ round trips.
    pub fn new(numerology: Numerology) -> Self {
        let of_ms = |ms: u64| SlotSpan(ms << numerology.mu());
        Self {
            downlink_table: McsTable::Qam256,
            uplink_table: McsTable::Qam256,
            downlink_layers: 4,
            uplink_layers: 1,
            downlink_antennas: 4,
            uplink_antennas: 2,
            pdcch_symbols: 1,
            dmrs_re: dmrs_re(DmrsType::One, 2, 1),
            overhead_re: 0,
            ssb_beams: 1,
            ssb_period: of_ms(20),
            prach_period: of_ms(10),
            capability: Capability::One,
            min_k1: 4,
            min_k2: 4,
            stated_k1: None,
            gnb_slots: 2,
            lead: SlotSpan(0),
            downlink_processes: 16,
            uplink_processes: 16,
            configured_grant: None,
            sdap_header: false,
            pdcp_sn: PdcpSn::Eighteen,
            pdcp_reordering: Some(Duration::from_millis(100)),
        }
    }
    /// The distances between messages in the slots of a carrier; an error where 3GPP forbids one.
    pub fn slot_timing(&self, numerology: Numerology, duplex: &Duplex) -> Result<SlotTiming, TimingError> {
        let distances = [self.min_k1, self.min_k2, self.gnb_slots];
        let timing = SlotTiming::new(numerology, duplex, self.capability, distances);
        let timing = timing?.with_lead(self.lead);
        match &self.stated_k1 {
            Some(stated) => timing.with_k1(duplex, stated),
            None => Ok(timing),
        }
    }
}
