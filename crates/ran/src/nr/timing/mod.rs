//! Distances in slots between the messages of NR: K0, K1 and K2 of every slot of a pattern, HARQ round trips,
//! the slots of uplink grants.
//!
//! The network states K1 and K2 in each assignment and grant (TS 38.213 §9.2.3, TS 38.214 §6.1.2.1). Rule of
//! this scheduler: a PDSCH is acknowledged in the first uplink slot at least `min_k1` later; the grant of an
//! uplink slot stands in the last slot with downlink symbols at least `min_k2` before it; K0 is 0. HARQ is
//! asynchronous in both directions: the gNB needs `gnb` whole slots between a reception and the slot of its
//! decision, and the decision precedes its slot on the air by the lead. PUCCH and PUSCH use slots of uplink
//! symbols alone; left out are those of special slots.

pub mod latency;
pub mod processing;

use self::processing::Capability;
use crate::duplex::Duplex;
use crate::lte::tdd::Distances as Distances36213;
use crate::slot::{Numerology, SlotSpan};
use crate::timing::{BySlot, HarqTiming, RandomAccessTiming, Retransmission, Timing};
use paceline_net::tdd::{SlotKind, SlotPattern};
use std::fmt;

/// Largest K1 of dl-DataToUL-ACK (TS 38.331 PUCCH-Config).
const MAX_K1: u8 = 15;
/// Largest K2 (TS 38.331 PUSCH-TimeDomainResourceAllocation).
const MAX_K2: u8 = 32;
/// Slots by which Msg3 is later than a PUSCH of the same K2, by numerology (TS 38.214 Table 6.1.2.1.1-5).
const MSG3_DELTA: [u8; 4] = [2, 3, 4, 6];
/// First symbol of the shortest PUCCH that ends with its slot: two symbols (TS 38.211 Table 6.3.2.1-1).
const SHORT_PUCCH_START: u8 = 12;

/// Directions of a cell's slots, repeated, and the distances between messages.
#[derive(Clone, PartialEq, Debug)]
pub struct SlotTiming {
    numerology: Numerology,
    capability: Capability,
    slots: Vec<Distances>,
    gnb: u8,
    lead: SlotSpan,
}

/// One slot of the period.
#[derive(Clone, PartialEq, Debug)]
struct Distances {
    down: bool,
    up: bool,
    /// K1 of a PDSCH in this slot; none without downlink symbols.
    k1: Option<u8>,
    /// K2 of the grants in this slot, ascending.
    grants: Vec<u8>,
}

/// A distance is not allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TimingError {
    /// The station cannot acknowledge so early.
    EarlyK1 {
        /// The refused minimum.
        k1: u8,
        /// The smallest allowed one.
        smallest: u8,
    },
    /// The station cannot transmit so early.
    EarlyK2 {
        /// The refused minimum.
        k2: u8,
        /// The smallest allowed one.
        smallest: u8,
    },
    /// The distance from a slot of the pattern is too large.
    Late {
        /// `K1` or `K2`.
        name: &'static str,
        /// The slot of the pattern.
        slot: usize,
        /// The distance that the pattern needs.
        value: u64,
    },
    /// The HARQ-ACK would stand in a slot without uplink.
    IntoDownlink {
        /// The refused K1.
        k1: u8,
        /// The slot of the PDSCH in the pattern.
        slot: usize,
        /// The letter of the slot of the HARQ-ACK.
        kind: char,
    },
    /// The stated K1 are not one for each slot with downlink symbols.
    CountOfK1 {
        /// Stated ones.
        stated: usize,
        /// Slots with downlink symbols in a period.
        count: usize,
    },
    /// The slot carries no PDSCH.
    NoDownlink {
        /// The slot of the pattern.
        slot: usize,
    },
    /// The pattern has slots of another numerology.
    Numerology,
    /// The pattern is none of LTE's configurations.
    NotLte,
}

impl SlotTiming {
    /// The slots of a carrier whose stations have a processing capability.
    pub fn new(
        numerology: Numerology,
        duplex: &Duplex,
        capability: Capability,
        [min_k1, min_k2, gnb]: [u8; 3],
    ) -> Result<Self, TimingError> {
        let slots = match duplex {
            Duplex::Fdd => vec![(true, true)],
            Duplex::Tdd(pattern) if pattern.slot().as_nanos() != numerology.slot_ns() => {
                return Err(TimingError::Numerology);
            }
            Duplex::Tdd(pattern) => {
                pattern.slots().iter().map(|slot| (slot.down > 0, *slot == SlotKind::UP)).collect()
            }
        };
        Self::of(numerology, slots, capability, [min_k1, min_k2, gnb])
    }
    /// A paired spectrum, both directions in every slot, and stations of capability 1.
    pub fn fdd(numerology: Numerology, min_k1: u8, min_k2: u8, gnb: u8) -> Result<Self, TimingError> {
        Self::new(numerology, &Duplex::Fdd, Capability::One, [min_k1, min_k2, gnb])
    }
    /// The slots of a pattern, whose slots are those of the numerology, and stations of capability 1.
    pub fn tdd(
        numerology: Numerology,
        pattern: &SlotPattern,
        min_k1: u8,
        min_k2: u8,
        gnb: u8,
    ) -> Result<Self, TimingError> {
        let duplex = Duplex::Tdd(pattern.clone());
        Self::new(numerology, &duplex, Capability::One, [min_k1, min_k2, gnb])
    }
    /// LTE FDD: four subframes from a grant to its block, to the acknowledgment, and to the eNB's reaction
    /// (TS 36.213 §7.3, §8).
    pub fn lte_fdd() -> Self {
        Self::fdd(Numerology::LTE, 4, 4, 3).expect("above the minima of NR")
    }
    /// LTE TDD, by the tables of TS 36.213. The eNB reacts four subframes after a reception, or later.
    pub fn lte_tdd(distances: &Distances36213) -> Self {
        let slots = (0..10).map(|subframe| Distances {
            down: distances.is_down(subframe),
            up: distances.is_up(subframe),
            k1: distances.ack_delay(subframe).filter(|_| distances.is_down(subframe)),
            grants: distances.grants(subframe).to_vec(),
        });
        Self {
            numerology: Numerology::LTE,
            capability: Capability::One,
            slots: slots.collect(),
            gnb: 3,
            lead: SlotSpan(0),
        }
    }
    fn of(
        numerology: Numerology,
        slots: Vec<(bool, bool)>,
        capability: Capability,
        [min_k1, min_k2, gnb]: [u8; 3],
    ) -> Result<Self, TimingError> {
        let smallest = capability.smallest_k1(numerology, SHORT_PUCCH_START);
        if min_k1 < smallest {
            return Err(TimingError::EarlyK1 { k1: min_k1, smallest });
        }
        let smallest = capability.smallest_k2(numerology, 1);
        if min_k2 < smallest {
            return Err(TimingError::EarlyK2 { k2: min_k2, smallest });
        }
        let empty = |(down, up)| Distances { down, up, k1: None, grants: Vec::new() };
        let slots = slots.into_iter().map(empty).collect();
        let mut timing = Self { numerology, capability, slots, gnb, lead: SlotSpan(0) };
        for slot in 0..timing.slots.len() {
            if timing.slots[slot].down {
                let k1 = timing.next(slot as u64 + u64::from(min_k1), |slot| slot.up) - slot as u64;
                timing.slots[slot].k1 = Some(within("K1", slot, k1, MAX_K1)?);
            }
            if timing.slots[slot].up {
                let len = timing.slots.len();
                let k2 = (u64::from(min_k2)..).find(|k2| timing.at(slot, *k2).down).expect("a downlink slot");
                let k2 = within("K2", slot, k2, MAX_K2)?;
                let from = (slot + len * usize::from(k2) - usize::from(k2)) % len;
                timing.slots[from].grants.push(k2);
                timing.slots[from].grants.sort_unstable();
            }
        }
        Ok(timing)
    }
    /// The same slots of a gNB whose decisions precede their slots on the air by so many slots.
    #[must_use]
    pub fn with_lead(self, lead: SlotSpan) -> Self {
        Self { lead, ..self }
    }
    /// The same slots with stated K1, one for each slot with downlink symbols.
    pub fn with_k1(mut self, duplex: &Duplex, stated: &[u8]) -> Result<Self, TimingError> {
        let count = self.slots.iter().filter(|slot| slot.down).count();
        if stated.len() != count {
            return Err(TimingError::CountOfK1 { stated: stated.len(), count });
        }
        let smallest = self.capability.smallest_k1(self.numerology, SHORT_PUCCH_START);
        let mut stated = stated.iter().copied();
        for slot in 0..self.slots.len() {
            let Some(k1) = self.slots[slot].down.then(|| stated.next()).flatten() else { continue };
            if k1 < smallest {
                return Err(TimingError::EarlyK1 { k1, smallest });
            }
            within("K1", slot, u64::from(k1), MAX_K1)?;
            if let Duplex::Tdd(pattern) = duplex {
                check_k1(pattern, slot, k1)?;
                // PUCCH uses slots of uplink symbols alone.
                let kind = pattern.kind(slot as u64 + u64::from(k1));
                if kind != SlotKind::UP {
                    return Err(TimingError::IntoDownlink { k1, slot, kind: kind.letter() });
                }
            }
            self.slots[slot].k1 = Some(k1);
        }
        Ok(self)
    }
    /// The slot `distance` before `slot` of the period.
    fn at(&self, slot: usize, distance: u64) -> &Distances {
        let len = self.slots.len() as u64;
        &self.slots[((slot as u64 + len * distance - distance) % len) as usize]
    }
    fn slot(&self, number: u64) -> &Distances {
        &self.slots[(number % self.slots.len() as u64) as usize]
    }
    /// The first slot at or after `from` with a property that one of the slots has.
    fn next(&self, from: u64, has: impl Fn(&Distances) -> bool) -> u64 {
        (from..).find(|number| has(self.slot(*number))).expect("a slot with the property")
    }
    /// The timing of a cell with so many HARQ processes in the downlink and the uplink. Slots without a
    /// direction have a distance of zero there.
    pub fn of_cell(&self, processes: (u8, u8)) -> Timing {
        let of = |distance: &dyn Fn(u64) -> Option<u64>| {
            let slots = 0..self.slots.len() as u64;
            BySlot::new(slots.map(|slot| SlotSpan(distance(slot).unwrap_or(0))).collect())
        };
        let harq = |processes, verdict| HarqTiming {
            processes: usize::from(processes),
            retransmission: Retransmission::Asynchronous,
            verdict,
        };
        let uplink = of(&|slot| self.is_up(slot).then(|| self.decision(slot) - slot));
        let spans = |slot: &Distances| slot.grants.iter().map(|k2| SlotSpan(u64::from(*k2))).collect();
        // At least the smallest K2 and the delta of TS 38.214 Table 6.1.2.1.1-5.
        let min_k2 = self.slots.iter().flat_map(|slot| &slot.grants).min().copied().unwrap_or(1);
        let msg3 = min_k2 + MSG3_DELTA[usize::from(self.numerology.mu())];
        let received = SlotSpan(1 + u64::from(self.gnb));
        let decision = received + self.lead;
        Timing {
            k1: of(&|slot| self.k1(slot).map(u64::from)),
            k2: BySlot::new(self.slots.iter().map(spans).collect()),
            downlink: harq(processes.0, of(&|slot| self.downlink_round_trip(slot))),
            uplink: harq(processes.1, uplink),
            request_answer: decision,
            random_access: RandomAccessTiming { window_start: decision, next_attempt: received },
            msg3: of(&|slot| Some(self.next(slot + u64::from(msg3), |slot| slot.up) - slot)),
        }
    }
    /// The numerology.
    pub const fn numerology(&self) -> Numerology {
        self.numerology
    }
    /// The stations' processing capability.
    pub const fn capability(&self) -> Capability {
        self.capability
    }
    /// Number of slots of the period.
    pub const fn period(&self) -> usize {
        self.slots.len()
    }
    /// Whether a slot has downlink symbols.
    pub fn is_down(&self, slot: u64) -> bool {
        self.slot(slot).down
    }
    /// Whether a slot carries PUSCH and PUCCH.
    pub fn is_up(&self, slot: u64) -> bool {
        self.slot(slot).up
    }
    /// Slots from an assignment to its PDSCH, 0 (TS 38.214 §5.1.2.1).
    pub const fn k0(&self) -> u8 {
        0
    }
    /// Slots from a PDSCH in `slot` to its HARQ-ACK; none in a slot without downlink symbols.
    pub fn k1(&self, slot: u64) -> Option<u8> {
        self.slot(slot).k1
    }
    /// Slots from the grants in `slot` to their PUSCHs, ascending; empty where the slot carries no grant.
    pub fn grants(&self, slot: u64) -> &[u8] {
        &self.slot(slot).grants
    }
    /// Slots from a PDSCH in `slot` to the earliest retransmission; none without downlink symbols.
    pub fn downlink_round_trip(&self, slot: u64) -> Option<u64> {
        Some(self.decision(slot + u64::from(self.k1(slot)?)) - slot)
    }
    /// Slots from a PUSCH in `slot` to the earliest retransmission; none in a slot without uplink.
    pub fn uplink_round_trip(&self, slot: u64) -> Option<u64> {
        self.is_up(slot).then(|| self.pusch_after(self.decision(slot)) - slot)
    }
    /// Slots from a decision to its slot on the air.
    pub const fn lead(&self) -> SlotSpan {
        self.lead
    }
    /// Whole slots that the gNB needs between a reception and its decision.
    pub const fn gnb(&self) -> u8 {
        self.gnb
    }
    /// The slot on the air of the gNB's first assignment or grant after a reception in `slot`.
    pub fn decision(&self, slot: u64) -> u64 {
        self.next(slot + 1 + u64::from(self.gnb) + self.lead.0, |slot| slot.down)
    }
    /// The first PUSCH whose grant stands in the slot `from` or later.
    pub fn pusch_after(&self, from: u64) -> u64 {
        let granted = |grant: u64| self.grants(grant).iter().map(move |k2| grant + u64::from(*k2));
        let last = from + 2 * self.slots.len() as u64;
        (from..last).flat_map(granted).min().expect("every uplink slot has its grant")
    }
}

/// Checks a K1 that a configuration states for a slot of the pattern.
pub fn check_k1(pattern: &SlotPattern, slot: usize, k1: u8) -> Result<(), TimingError> {
    if pattern.kind(slot as u64).down == 0 {
        return Err(TimingError::NoDownlink { slot });
    }
    if k1 > MAX_K1 {
        return Err(TimingError::Late { name: "K1", slot, value: u64::from(k1) });
    }
    let target = pattern.kind(slot as u64 + u64::from(k1));
    if target.up > 0 { Ok(()) } else { Err(TimingError::IntoDownlink { k1, slot, kind: target.letter() }) }
}

fn within(name: &'static str, slot: usize, value: u64, max: u8) -> Result<u8, TimingError> {
    u8::try_from(value).ok().filter(|k| *k <= max).ok_or(TimingError::Late { name, slot, value })
}

impl fmt::Display for TimingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EarlyK1 { k1, smallest } => {
                write!(
                    f,
                    "minimum K1 {k1}: a station needs N1 symbols, K1 {smallest} or more (TS 38.214 §5.3)"
                )
            }
            Self::EarlyK2 { k2, smallest } => {
                write!(
                    f,
                    "minimum K2 {k2}: a station needs N2 symbols, K2 {smallest} or more (TS 38.214 §6.4)"
                )
            }
            Self::Late { name: "K1", slot, value } => {
                write!(f, "slot {slot} of the pattern needs K1 {value}: allowed are 0 to {MAX_K1} ")?;
                f.write_str("(TS 38.331 dl-DataToUL-ACK); use a shorter pattern or a smaller minimum")
            }
            Self::Late { name, slot, value } => {
                write!(f, "slot {slot} of the pattern needs {name} {value}: allowed are 0 to {MAX_K2} ")?;
                f.write_str("(TS 38.331 PUSCH-TimeDomainResourceAllocation); use a smaller minimum")
            }
            Self::IntoDownlink { k1, slot, kind: 'S' } => {
                write!(
                    f,
                    "K1 {k1} from slot {slot} leads into a special slot; HARQ-ACKs of this cell stand in "
                )?;
                f.write_str("slots of uplink symbols alone (TS 38.213 §9.2.3)")
            }
            Self::IntoDownlink { k1, slot, kind } => {
                write!(f, "K1 {k1} from slot {slot} leads into a slot {kind} without uplink symbols; ")?;
                f.write_str("HARQ-ACK needs uplink symbols (TS 38.213 §9.2.3, §11.1)")
            }
            Self::NoDownlink { slot } => {
                write!(f, "K1 of slot {slot}: the slot has no downlink symbols (TS 38.213 §11.1)")
            }
            Self::CountOfK1 { stated, count } => {
                write!(f, "{stated} values of K1: one for each of the {count} slots with downlink symbols")
            }
            Self::Numerology => f.write_str("the pattern's slots are those of another numerology"),
            Self::NotLte => {
                f.write_str("the subframes are those of no configuration 0 to 6 (TS 36.211 Table 4.2-2)")
            }
        }
    }
}
impl std::error::Error for TimingError {}

#[cfg(test)]
mod tests;
