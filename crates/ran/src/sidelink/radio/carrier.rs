//! The carrier of pairs: the slots, resource blocks and block sizes of each hop, and the distances between
//! messages.
//!
//! LTE has the published timeline (Nardini, Stea, Virdis 2016): a request of slot 0 is answered by a short
//! grant for slot 5; the report in it is decoded at 9; the data grant is for 11, and its block is decoded at
//! 15. HARQ of uplinks and direct links is synchronous.
//!
//! NR is sidelink mode 1 (TS 38.300 §16.9.3.2, TS 38.213 §16). A station asks by PUCCH for a PUSCH with its
//! buffer status report. The gNB grants sub-channels of a later slot by DCI 3_0, at the distances of grants
//! of PUSCH. A slot of a direct link has PSCCH, PSSCH and PSFCH. The receiver answers by PSFCH, the sender
//! passes the answer on by PUCCH, and the gNB grants a retransmission: HARQ is asynchronous. The pool of the
//! direct links is all uplink slots. Left out: slots of synchronisation (S-SSB), several layers, CSI reports.

use super::air::Air;
use super::channel::RadioLink;
use crate::adaptation::{Choices, nr_cqis};
use crate::duplex::{Direction, Duplex};
use crate::lte;
use crate::mcs::{Mcs, PrbSize};
use crate::nr::cqi;
use crate::nr::mcs::McsTable;
use crate::pdcp::PdcpConfig;
use crate::prb::{PrbSet, precodable};
use crate::rat::Rat;
use crate::slot::{Numerology, Slot, SlotSpan};
use crate::timing::{Timing, Turns};
use paceline_net::tdd::SYMBOLS_PER_SLOT;

/// From a random access request to the eNB's decision about the short grant. Follows from the published
/// timeline: the grant is for slot 5, and [`GRANT_DISTANCE`] before it is slot 3.
const REQUEST_PROCESSING: SlotSpan = SlotSpan(3);
/// From the eNB's decision about a grant to the granted slot. Follows from the published timeline: a report
/// decoded at 9 leads to data at 11.
const GRANT_DISTANCE: SlotSpan = SlotSpan(2);
/// From a transmission to its data at the receiver, and to the verdict on it. Follows from the published
/// timeline: 5 to 9, and 11 to 15.
const DECODING: SlotSpan = SlotSpan(4);
/// From a downlink block to the eNB's reaction to its acknowledgment (TS 36.213 §7.3: 4 slots to the answer,
/// and as many to process it).
const DOWNLINK_VERDICT: SlotSpan = SlotSpan(8);
/// HARQ processes of LTE (TS 36.213 §7 and §8); synchronous ones return after so many subframes.
const LTE_PROCESSES: usize = 8;
/// HARQ processes of NR (TS 38.214 §5.1 and §6.1; the HARQ process number of SCI 2-A has 4 bits, TS 38.212
/// §8.4.1.1).
const NR_PROCESSES: usize = 16;
/// PRBs of an LTE slot with all of its symbols, in eighths by definition.
const FULL_PRB: PrbSize = PrbSize(8);
/// Symbols of a direct slot without data: the repetition of the first one for gain control, and the gap (TS
/// 38.214 §8.1.3.2: sl-LengthSymbols less 2).
const NO_DATA_SYMBOLS: u8 = 2;
/// Symbols that PSFCH takes from PSSCH (TS 38.214 §8.1.3.2).
const PSFCH_SYMBOLS: u8 = 3;
/// Resource elements per PRB of the demodulation reference signals of PSSCH, two symbols (TS 38.214 Table
/// 8.1.3.2-1). Chosen: as many as at low speeds, where stations walk.
const DMRS_RE: u8 = 12;
/// Resource elements of PSCCH: 2 symbols of 10 PRBs (TS 38.331, SL-PSCCH-Config). Chosen: the smallest, which
/// fits every sub-channel.
const PSCCH_RE: u32 = 2 * 10 * 12;
/// Bits of SCI 2-A with its CRC (TS 38.212 §8.4.1.1, §8.4.2): 35 and 24.
const SCI_2_BITS: u32 = 35 + 24;
/// beta offset of the second-stage SCI. Chosen: 2 (index 5 of TS 38.213 Table 9.3-2), so that MCS 0 still has
/// room for data in a sub-channel of 10 PRBs with PSFCH.
const SCI_2_BETA: u32 = 2;
/// sl-MinTimeGapPSFCH by numerology: slots from a PSSCH to its PSFCH (TS 38.331: 2 or 3). Chosen: 3 for short
/// slots.
const PSFCH_GAP: [u64; 4] = [2, 2, 3, 3];
/// Slots from a PSFCH to the PUCCH about it, by numerology: 15, 19, 29 and 33 symbols of preparation (TS
/// 38.213 §16.5), rounded up.
const PSFCH_TO_PUCCH: [u64; 4] = [2, 2, 3, 3];

/// Resources of the direct links of NR (TS 38.331 §6.3.5, SL-ResourcePool).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResourcePool {
    /// PRBs of a sub-channel, the unit of grants.
    pub subchannel: u16,
    /// Slots from one PSFCH to the next: 1, 2 or 4.
    pub psfch_period: u64,
}

/// The carrier of pairs.
#[derive(Clone, PartialEq, Debug)]
pub struct Carrier {
    /// The radio technology.
    pub rat: Rat,
    /// Subcarrier spacing and length of a slot.
    pub numerology: Numerology,
    /// Division of the carrier between both directions; direct links have the uplink's slots.
    pub duplex: Duplex,
    /// Downlink PRBs.
    pub downlink_prb: u16,
    /// Uplink PRBs.
    pub uplink_prb: u16,
    /// Uplink PRBs of PUCCH, half of them at each edge.
    pub pucch_prb: u16,
    /// Time from the end of a transmission until its data leave the receiver's layer 2, in NR.
    pub decode_delay: SlotSpan,
    /// Period of a station's scheduling requests, in NR.
    pub sr_period: SlotSpan,
    /// Resources of the direct links, in NR.
    pub pool: ResourcePool,
}

impl Carrier {
    /// LTE FDD with so many PRBs in each direction.
    pub fn lte(prb: u16) -> Self {
        Self {
            rat: Rat::Lte,
            numerology: Numerology::LTE,
            duplex: Duplex::Fdd,
            downlink_prb: prb,
            uplink_prb: prb,
            pucch_prb: 0,
            decode_delay: SlotSpan(0),
            sr_period: SlotSpan(1),
            pool: ResourcePool { subchannel: 1, psfch_period: 1 },
        }
    }
}

/// A carrier with its distances.
pub(in crate::sidelink) struct Radio {
    carrier: Carrier,
    /// The distances of NR.
    nr: Option<Timing>,
    /// The CQIs of NR by SINR: of the downlink, and of the uplink and the direct links.
    cqis: [Choices; 2],
    /// Uplink slots before each slot.
    pool_slots: Turns,
}

impl Radio {
    pub fn new(carrier: Carrier) -> Self {
        let nr = match &carrier.rat {
            Rat::Lte => None,
            rat @ Rat::Nr(_) => {
                let timing = rat.timing(carrier.numerology, &carrier.duplex);
                Some(timing.expect("the configuration has allowed distances"))
            }
        };
        let slots = 0..carrier.duplex.period() as u64;
        let has: Vec<bool> = slots.map(|slot| carrier.duplex.has(Slot(slot), Direction::Up)).collect();
        let cqis = cqis(&carrier);
        Self { carrier, nr, cqis, pool_slots: Turns::new(&has) }
    }
    pub fn is_nr(&self) -> bool {
        self.nr.is_some()
    }
    pub fn numerology(&self) -> Numerology {
        self.carrier.numerology
    }
    /// Slots in so many milliseconds.
    pub fn of_ms(&self, ms: u64) -> SlotSpan {
        SlotSpan(ms << self.carrier.numerology.mu())
    }
    pub fn pdcp(&self) -> PdcpConfig {
        self.carrier.rat.pdcp(self.carrier.numerology)
    }
    pub fn processes(&self) -> usize {
        if self.nr.is_some() { NR_PROCESSES } else { LTE_PROCESSES }
    }
    /// The process of a slot, by synchronous HARQ.
    pub fn turn(&self, slot: Slot) -> Option<usize> {
        self.nr.is_none().then(|| (slot.0 % LTE_PROCESSES as u64) as usize)
    }
    /// Bandwidth in Hz of the uplink and the direct links, or of the downlink.
    pub fn bandwidth_hz(&self, direction: Direction) -> f64 {
        let prb = match direction {
            Direction::Down => self.carrier.downlink_prb,
            Direction::Up => self.carrier.uplink_prb,
        };
        self.carrier.numerology.prb_hz() * f64::from(prb)
    }

    /// Whether the station with this number may ask for a grant in a slot: by random access in LTE, by PUCCH
    /// in NR.
    pub fn may_request(&self, station: usize, slot: Slot) -> bool {
        let period = self.carrier.sr_period;
        self.nr.is_none() || slot.within(period) == self.carrier.duplex.uplink_offset(station as u64, period)
    }
    /// From a request to the decision about its short grant.
    pub fn request_processing(&self) -> SlotSpan {
        self.nr.as_ref().map_or(REQUEST_PROCESSING, |timing| timing.request_answer)
    }
    /// The slots for which a slot grants.
    pub fn granted_by(&self, slot: Slot) -> Vec<Slot> {
        match &self.nr {
            None => vec![slot + GRANT_DISTANCE],
            Some(timing) => timing.granted_by(slot).collect(),
        }
    }
    /// For a transmission on a hop: its slot, that of the verdict on it, and that of the delivery to RLC.
    pub fn times(&self, air: Air, to_enb: bool, slot: Slot) -> (Slot, Slot, Slot) {
        let Some(timing) = &self.nr else {
            let verdict = if air == Air::Down { DOWNLINK_VERDICT } else { DECODING };
            return (slot, slot + verdict, slot + DECODING);
        };
        let verdict_at = match air {
            Air::Down => timing.verdict_at(slot, Direction::Down),
            Air::Direct if !to_enb => self.reported_at(timing, slot),
            Air::Direct | Air::Up => timing.verdict_at(slot, Direction::Up),
        };
        (slot, verdict_at, slot + SlotSpan(1) + self.carrier.decode_delay)
    }
    /// The slot in which the gNB reacts to the report by PUCCH about a direct block of `slot`.
    fn reported_at(&self, timing: &Timing, slot: Slot) -> Slot {
        let mu = usize::from(self.carrier.numerology.mu());
        let next = |slot: Slot| self.carrier.duplex.next(slot + SlotSpan(1), Direction::Up);
        let mut psfch = (0..PSFCH_GAP[mu]).fold(slot, |at, _| next(at));
        while !self.has_psfch(psfch) {
            psfch = next(psfch);
        }
        let pucch = self.carrier.duplex.next(psfch + SlotSpan(PSFCH_TO_PUCCH[mu]), Direction::Up);
        timing.verdict_at(pucch, Direction::Up)
    }
    fn has_psfch(&self, slot: Slot) -> bool {
        self.pool_slots.index(slot).is_multiple_of(self.carrier.pool.psfch_period)
    }

    /// The PRBs of uplinks and direct links.
    pub fn band(&self) -> PrbSet {
        let (pucch, prb) = (u32::from(self.carrier.pucch_prb), u32::from(self.carrier.uplink_prb));
        PrbSet::range(pucch / 2, prb - pucch)
    }
    /// The sub-channels of direct links.
    fn subchannels(&self) -> impl Iterator<Item = PrbSet> {
        let size = u32::from(self.carrier.pool.subchannel);
        let (pucch, prb) = (u32::from(self.carrier.pucch_prb), u32::from(self.carrier.uplink_prb));
        (0..(prb - pucch) / size).map(move |at| PrbSet::range(pucch / 2 + at * size, size))
    }
    /// At most `n_prb` of the free PRBs, as a grant on a hop may have them: by numbers that LTE's transform
    /// precoder allows (TS 36.211 §5.3.3), or by whole sub-channels.
    pub fn pick(&self, air: Air, free: PrbSet, n_prb: u16) -> PrbSet {
        match (&self.nr, air) {
            (None, _) => free.lowest(u32::from(precodable(n_prb))),
            (Some(_), Air::Direct) => {
                let whole = self.subchannels().filter(|set| set.without(free).is_empty());
                let count = usize::from(n_prb / self.carrier.pool.subchannel);
                whole.take(count).fold(PrbSet::NONE, PrbSet::with)
            }
            (Some(_), _) => free.lowest(u32::from(n_prb)),
        }
    }
    /// Fewest PRBs of a grant on a hop.
    pub fn least(&self, air: Air) -> u16 {
        if air == Air::Direct { self.carrier.pool.subchannel } else { 1 }
    }
    /// PRBs for a block of so many bytes on a hop.
    pub fn wanted(&self, air: Air, mcs: Mcs, slot: Slot, bytes: u64) -> u16 {
        let prb = self.band().len() as u16;
        let least = |max| mcs.fewest_prbs(self.size(air, slot), bytes, max);
        match (&self.nr, air) {
            // The data fit into the next number that the transform precoder allows.
            (None, _) => (least(prb)..prb).find(|n| precodable(*n) == *n).unwrap_or(prb),
            (Some(_), Air::Direct) => {
                let unit = self.carrier.pool.subchannel;
                least(prb / unit * unit).div_ceil(unit) * unit
            }
            (Some(_), _) => least(prb),
        }
    }
    /// Size of a PRB of a hop in a slot that carries it.
    pub fn size(&self, air: Air, slot: Slot) -> PrbSize {
        if self.nr.is_none() {
            return FULL_PRB;
        }
        match air {
            Air::Direct => {
                let psfch = if self.has_psfch(slot) { PSFCH_SYMBOLS } else { 0 };
                PrbSize(12 * (SYMBOLS_PER_SLOT - NO_DATA_SYMBOLS - psfch) - DMRS_RE)
            }
            Air::Up => {
                let size = self.carrier.rat.prb_size(Direction::Up, SYMBOLS_PER_SLOT);
                size.expect("reference signals and overhead leave resource elements in a slot")
            }
            Air::Down => self.downlink(slot).map_or(PrbSize(0), |(size, _)| size),
        }
    }
    /// Size of a PRB of the downlink in a slot, and its PRBs; none without a downlink.
    pub fn downlink(&self, slot: Slot) -> Option<(PrbSize, PrbSet)> {
        let Carrier { rat, numerology, duplex, downlink_prb, .. } = &self.carrier;
        if self.nr.is_none() {
            return Some((FULL_PRB, PrbSet::range(0, u32::from(*downlink_prb))));
        }
        let symbols = duplex.symbols(slot, Direction::Down);
        Some((rat.prb_size(Direction::Down, symbols)?, rat.pdsch_prbs(*numerology, slot, *downlink_prb)))
    }
    pub fn rbg_size(&self) -> u16 {
        self.carrier.rat.rbg_size(self.carrier.downlink_prb)
    }

    /// MCS and CQI table of a hop: direct links have those of the uplink, since the same stations send.
    fn table(&self, air: Air) -> Option<McsTable> {
        let Rat::Nr(nr) = &self.carrier.rat else { return None };
        Some(if air == Air::Down { nr.downlink_table } else { nr.uplink_table })
    }
    /// CQI at a SINR in dB.
    pub fn cqi(&self, air: Air, sinr_db: f64) -> u8 {
        if self.nr.is_none() {
            return lte::cqi::of_sinr(sinr_db); // as published: of one code block
        }
        let cqis = &self.cqis[usize::from(air != Air::Down)];
        cqis.at(sinr_db).map_or(0, |choice| choice.index)
    }
    /// The MCS for the CQI of a link, in NR with one layer. Out of range the lowest one: HARQ makes up for a
    /// part of the difference.
    pub fn mcs(&self, air: Air, link: RadioLink) -> Mcs {
        let Some(table) = self.table(air) else {
            return Mcs::Lte(&lte::mcs::DOWNLINK[usize::from(lte::cqi::mcs(link.cqi).unwrap_or(0))]);
        };
        let row = cqi::mcs(table, link.cqi).unwrap_or(&table.rows()[0]);
        match air {
            // Coded symbols of the second-stage SCI: QPSK at the code rate of the data, with the beta offset
            // (TS 38.212 §8.4.4).
            Air::Direct => {
                let sci_2 = (SCI_2_BITS * SCI_2_BETA * 2048).div_ceil(2 * u32::from(row.rate_x2048));
                Mcs::Sidelink { row, control_re: (PSCCH_RE + sci_2) as u16 }
            }
            Air::Up | Air::Down => Mcs::Nr { row, layers: 1 },
        }
    }
}

/// The CQIs of NR by SINR, with the largest blocks of one layer in both directions.
fn cqis(carrier: &Carrier) -> [Choices; 2] {
    let Rat::Nr(nr) = &carrier.rat else { return Default::default() };
    let of = |direction, table, prbs| {
        let size = carrier.rat.prb_size(direction, SYMBOLS_PER_SLOT);
        let size = size.expect("reference signals and overhead leave resource elements in a slot");
        nr_cqis(table, (1, size, prbs))
    };
    [
        of(Direction::Down, nr.downlink_table, carrier.downlink_prb),
        of(Direction::Up, nr.uplink_table, carrier.uplink_prb - carrier.pucch_prb),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nr::config::NrConfig;
    use paceline_net::SlotPattern;

    fn nr(mu: u8, pattern: Option<&str>, psfch_period: u64) -> Radio {
        let numerology = Numerology::new(mu).unwrap();
        let duplex = pattern
            .map_or(Duplex::Fdd, |pattern| Duplex::Tdd(SlotPattern::from_letters(pattern, mu).unwrap()));
        Radio::new(Carrier {
            rat: Rat::Nr(NrConfig::new(numerology)),
            numerology,
            duplex,
            downlink_prb: 51,
            uplink_prb: 51,
            pucch_prb: 0,
            decode_delay: SlotSpan(1),
            sr_period: SlotSpan(10),
            pool: ResourcePool { subchannel: 10, psfch_period },
        })
    }

    #[test]
    fn a_direct_block_has_the_size_of_its_clause() {
        // TS 38.214 §8.1.3.2 by hand: 12 symbols less 3 of PSFCH have 108 elements per PRB, less 12 of DMRS.
        let radio = nr(1, None, 1);
        let mcs = radio.mcs(Air::Direct, RadioLink { cqi: 15, ..RadioLink::default() });
        let Mcs::Sidelink { row, control_re } = mcs else { panic!("{mcs:?}") };
        // Rate 948/1024: 59 * 2 / (2 * 0.92578) = 63.7 symbols of the second stage, and 240 of PSCCH.
        assert_eq!((row.rate_x2048, control_re), (1896, 240 + 64));
        assert_eq!(radio.size(Air::Direct, Slot(3)), PrbSize(96));
        // 50 * 96 - 304 = 4496 elements, of 8 bits at 0.92578: N_info 33298.4.
        let info = f64::from(50 * 96 - 304) * 8.0 * 948.0 / 1024.0;
        let n = libm::log2(info - 24.0).floor() as i32 - 5;
        let step = libm::pow(2.0, f64::from(n));
        let quantized = step * ((info - 24.0) / step + 0.5).floor();
        let blocks = ((quantized + 24.0) / 8424.0).ceil();
        let expected = 8.0 * blocks * ((quantized + 24.0) / (8.0 * blocks)).ceil() - 24.0;
        assert_eq!(f64::from(mcs.block_bits(PrbSize(96), 50)), expected);
        // The lowest MCS carries data in one sub-channel.
        let low = radio.mcs(Air::Direct, RadioLink::default());
        assert!(low.block_bits(PrbSize(96), 10) > 0);
        assert_eq!(nr(1, None, 4).size(Air::Direct, Slot(3)), PrbSize(132), "no PSFCH");
    }

    #[test]
    fn grants_of_direct_links_have_whole_sub_channels() {
        let radio = nr(1, None, 1);
        let free = radio.band().without(PrbSet::range(0, 1));
        assert_eq!(radio.pick(Air::Direct, free, 25), PrbSet::range(10, 20));
        assert_eq!(radio.pick(Air::Direct, free, 99), PrbSet::range(10, 40));
        assert_eq!(radio.pick(Air::Up, free, 25), PrbSet::range(1, 25));
        let mcs = radio.mcs(Air::Direct, RadioLink { cqi: 15, ..RadioLink::default() });
        assert_eq!(radio.wanted(Air::Direct, mcs, Slot(0), 100), 10);
        assert_eq!(radio.wanted(Air::Direct, mcs, Slot(0), 1_000_000), 50);
    }

    #[test]
    fn answers_to_direct_blocks_pass_psfch_and_pucch() {
        // PSFCH 2 slots later, PUCCH 2 after it, two whole slots in the gNB: 7 slots to its decision.
        let radio = nr(1, None, 1);
        assert_eq!(radio.times(Air::Direct, false, Slot(20)), (Slot(20), Slot(27), Slot(22)));
        assert_eq!(radio.times(Air::Direct, true, Slot(20)), (Slot(20), Slot(23), Slot(22)));
        // With PSFCH in every fourth slot the answer waits for slot 24.
        assert_eq!(nr(1, None, 4).times(Air::Direct, false, Slot(20)).1, Slot(29));
        // DDDSU: uplink slots 4, 9, 14, 19. PSFCH for slot 4 in 14, PUCCH in 19, decision in 22.
        let radio = nr(1, Some("DDDSU"), 1);
        assert_eq!(radio.times(Air::Direct, false, Slot(4)).1, Slot(22));
    }
}
