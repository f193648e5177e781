//! MAC scheduler: a policy ranks the stations with data in a slot, then PRBs are distributed in that order.
//!
//! Round robin gives each of the first `max_grants` stations an equal share of the free PRBs and passes on
//! the PRBs that a station does not need. Proportional fair and maximum C/I give the first station all PRBs
//! that it needs, then the next. A weight multiplies a station's priority: in proportional fair with full
//! buffers, shares of the PRBs are in proportion to the weights. Allocations are contiguous in the order of
//! rank; frequency-selective scheduling is left out.

use crate::slot::{Numerology, Slot};
use std::sync::LazyLock;

/// Time constant in milliseconds of the served rate that proportional fairness uses. Chosen: 0.1 s, so that
/// shares follow a change of rate within a tenth of a second.
const SERVED_RATE_WINDOW_MS: f64 = 100.0;

/// A station that can be scheduled.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its number.
    pub station: usize,
    /// PRBs that would empty its buffer.
    pub wanted_prb: u16,
    /// Slot in which it was scheduled last.
    pub last_served: Slot,
    /// Bits per PRB at its present MCS.
    pub bits_per_prb: f64,
    /// Mean bits per slot that it was served: [`ServedRate::at`].
    pub served_bits: f64,
    /// Factor of its priority.
    pub weight: f64,
    /// Its rank among the candidates of a slot, the first has the least.
    rank: u128,
}

impl Candidate {
    pub(crate) fn new(
        station: usize,
        wanted_prb: u16,
        last_served: Slot,
        bits_per_prb: f64,
        served_bits: f64,
    ) -> Self {
        Self { station, wanted_prb, last_served, bits_per_prb, served_bits, weight: 1.0, rank: 0 }
    }
}

/// The time constant in slots.
fn window(numerology: Numerology) -> f64 {
    SERVED_RATE_WINDOW_MS * f64::from(1u32 << numerology.mu())
}
/// Factor by which a served rate falls in so many slots.
fn decay(numerology: Numerology, slots: u64) -> f64 {
    libm::exp(-(slots as f64) / window(numerology))
}
/// [`decay`] for the pauses that occur most, by numerology.
static DECAY: LazyLock<Vec<Vec<f64>>> = LazyLock::new(|| {
    let numerologies = (0..=Numerology::MAX).filter_map(Numerology::new);
    numerologies.map(|numerology| (0..512).map(|slots| decay(numerology, slots)).collect()).collect()
});

/// Bits per slot that a station was served, as an exponential mean over time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ServedRate {
    numerology: Numerology,
    mean: f64,
    at: Slot,
}

impl ServedRate {
    pub fn new(numerology: Numerology) -> Self {
        Self { numerology, ..Self::default() }
    }
    /// The mean in `slot`, in bits per slot.
    pub fn at(&self, slot: Slot) -> f64 {
        let (slots, known) = (slot.since(self.at).0, &DECAY[usize::from(self.numerology.mu())]);
        self.mean * known.get(slots as usize).copied().unwrap_or_else(|| decay(self.numerology, slots))
    }
    pub fn add(&mut self, slot: Slot, bits: u32) {
        let mean = self.at(slot) + f64::from(bits) / window(self.numerology);
        *self = Self { mean, at: slot, ..*self };
    }
}

/// Scheduling policy (TS 36.300 leaves it to the eNB).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// The station that was scheduled longest ago comes first; equal shares.
    #[default]
    RoundRobin,
    /// Highest ratio of present bits per PRB to the served rate.
    ProportionalFair,
    /// Most bits per PRB.
    MaxCi,
    /// A priority of the caller.
    Own(Priority),
}

/// The priority of a candidate in a slot; the highest is served first, with all PRBs that it needs.
#[derive(Clone, Copy, Debug)]
pub struct Priority(pub fn(Slot, &Candidate) -> f64);

impl PartialEq for Priority {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}
impl Eq for Priority {}

impl Policy {
    /// Priority of a candidate in this slot; the highest is served first.
    fn priority(self, slot: Slot, candidate: &Candidate) -> f64 {
        let of_policy = match self {
            Self::RoundRobin => slot.since(candidate.last_served).0 as f64,
            // The lower bound puts a station that was never served before all others.
            Self::ProportionalFair => candidate.bits_per_prb / candidate.served_bits.max(1e-6),
            Self::MaxCi => candidate.bits_per_prb,
            Self::Own(priority) => (priority.0)(slot, candidate),
        };
        candidate.weight * of_policy
    }
}

/// PRBs and grants available in one slot.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub n_prb: u16,
    /// Largest number of grants on PDCCH.
    pub max_grants: usize,
    /// PRBs are allocated in multiples of this number.
    pub granularity: u16,
}

/// Brings the `count` candidates with the highest priority to the front, the highest first. Among equals the
/// first place rotates every slot.
pub fn rank(slot: Slot, policy: Policy, candidates: &mut [Candidate], count: usize) {
    if candidates.len() < 2 {
        return;
    }
    // Rotation by place in the list, not by station index: the stations of a sector have gaps between their
    // indices.
    if !candidates.is_sorted_by_key(|c| c.station) {
        candidates.sort_unstable_by_key(|c| c.station);
    }
    let all = candidates.len();
    let first = (slot.0 % all as u64) as usize;
    for (at, candidate) in candidates.iter_mut().enumerate() {
        let place = if at < first { at + all - first } else { at - first };
        candidate.rank = u128::from(!ascending(policy.priority(slot, candidate))) << 64 | place as u128;
    }
    let count = count.min(all);
    if count < all {
        candidates.select_nth_unstable_by_key(count, |c| c.rank);
    }
    candidates[..count].sort_unstable_by_key(|c| c.rank);
}

/// A number in the order of [`f64::total_cmp`].
fn ascending(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Ranks `candidates` and distributes the budget among them: pairs of station and number of PRBs.
pub fn allocate(
    slot: Slot,
    policy: Policy,
    candidates: &mut [Candidate],
    budget: Budget,
    out: &mut Vec<(usize, u16)>,
) {
    rank(slot, policy, candidates, budget.max_grants);
    distribute(policy, candidates, budget, out);
}

/// Distributes the budget among ranked candidates: pairs of station and number of PRBs.
pub fn distribute(policy: Policy, candidates: &mut [Candidate], budget: Budget, out: &mut Vec<(usize, u16)>) {
    out.clear();
    let first = candidates.len().min(budget.max_grants);
    let ranked = &mut candidates[..first];
    if policy == Policy::RoundRobin {
        // Smallest demand first, so that the others share the PRBs that remain. The sort is stable: equals
        // keep their rank.
        ranked.sort_by_key(|c| c.wanted_prb);
    }
    let group = budget.granularity.max(1);
    let mut left = budget.n_prb;
    for (index, candidate) in ranked.iter().enumerate() {
        let sharing = if policy == Policy::RoundRobin { ranked.len() - index } else { 1 };
        let share =
            left.div_ceil(group).div_ceil(u16::try_from(sharing).unwrap_or(u16::MAX)).saturating_mul(group);
        let wanted = candidate.wanted_prb.div_ceil(group).saturating_mul(group);
        let given = wanted.min(share).min(left);
        if given > 0 {
            out.push((candidate.station, given));
            left -= given;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(station: usize, wanted_prb: u16, bits_per_prb: f64, served: f64) -> Candidate {
        Candidate::new(station, wanted_prb, Slot(0), bits_per_prb, served)
    }

    fn shares(wanted: &[u16], budget: Budget) -> Vec<(usize, u16)> {
        let mut candidates = wanted
            .iter()
            .enumerate()
            .map(|(station, w)| candidate(station, *w, 100.0, 0.0))
            .collect::<Vec<_>>();
        let mut out = Vec::new();
        allocate(Slot(0), Policy::RoundRobin, &mut candidates, budget, &mut out);
        out.sort_unstable();
        out
    }

    #[test]
    fn equal_demands_share_equally_and_unused_prbs_are_passed_on() {
        let budget = Budget { n_prb: 100, max_grants: 10, granularity: 4 };
        assert_eq!(shares(&[100, 100], budget), [(0, 52), (1, 48)]);
        assert_eq!(shares(&[100, 3, 100], budget), [(0, 48), (1, 4), (2, 48)]);
        assert_eq!(shares(&[100], budget), [(0, 100)]);
        let odd = Budget { n_prb: 25, max_grants: 2, granularity: 2 };
        assert_eq!(shares(&[25, 25, 25], odd), [(0, 14), (1, 11)]);
    }

    #[test]
    fn equal_candidates_take_turns_at_any_station_index() {
        let budget = Budget { n_prb: 50, max_grants: 10, granularity: 1 };
        let mut firsts = [0; 8];
        let mut out = Vec::new();
        for slot in (0..3000).map(Slot) {
            let mut candidates = [0, 3, 7].map(|station| candidate(station, 50, 100.0, 0.0));
            allocate(slot, Policy::MaxCi, &mut candidates, budget, &mut out);
            firsts[out[0].0] += 1;
        }
        assert_eq!(firsts, [1000, 0, 0, 1000, 0, 0, 0, 1000]);
    }

    #[test]
    fn the_first_ranked_candidates_are_those_of_a_stable_sort() {
        let mut stream = paceline_net::Stream::new(1, "candidates");
        for round in 0..2000u64 {
            let drawn = |_| candidate(0, 1, stream.below(4) as f64, 1.0);
            let mut candidates: Vec<Candidate> = (0..1 + round as usize % 40).map(drawn).collect();
            candidates.iter_mut().enumerate().for_each(|(station, candidate)| candidate.station = station);
            let mut sorted = candidates.clone();
            sorted.rotate_left((round % candidates.len() as u64) as usize);
            sorted.sort_by(|a, b| b.bits_per_prb.total_cmp(&a.bits_per_prb));
            let count = round as usize % 12;
            rank(Slot(round), Policy::MaxCi, &mut candidates, count);
            let first = |of: &[Candidate]| of.iter().take(count).map(|c| c.station).collect::<Vec<_>>();
            assert_eq!(first(&candidates), first(&sorted), "round {round}");
        }
    }

    #[test]
    fn all_prbs_are_allocated_among_more_stations_than_prbs() {
        for count in [255, 256, 257, 600] {
            let budget = Budget { n_prb: 100, max_grants: count, granularity: 1 };
            let shares = shares(&vec![3; count], budget);
            assert_eq!(shares.iter().map(|(_, prb)| u32::from(*prb)).sum::<u32>(), 100, "{count}");
        }
    }

    /// Share of the PRBs of the first of two stations with full buffers; the second has twice its rate.
    fn shares_of_time(policy: Policy) -> f64 {
        let budget = Budget { n_prb: 50, max_grants: 10, granularity: 1 };
        let mut served = [ServedRate::default(); 2];
        let (mut first, mut all, mut out) = (0.0, 0.0, Vec::new());
        for slot in (0..10_000).map(Slot) {
            let rate = |station: usize| 100.0 * (station as f64 + 1.0);
            let of = |station: usize| candidate(station, 50, rate(station), served[station].at(slot));
            allocate(slot, policy, &mut [of(0), of(1)], budget, &mut out);
            for (station, prb) in &out {
                served[*station].add(slot, (rate(*station) * f64::from(*prb)) as u32);
                all += f64::from(*prb);
                first += if *station == 0 { f64::from(*prb) } else { 0.0 };
            }
        }
        first / all
    }

    #[test]
    fn proportional_fairness_shares_time_equally_at_unequal_rates() {
        assert!((shares_of_time(Policy::ProportionalFair) - 0.5).abs() < 0.01);
        assert!((shares_of_time(Policy::RoundRobin) - 0.5).abs() < 0.01);
        assert_eq!(shares_of_time(Policy::MaxCi), 0.0);
    }

    #[test]
    fn shares_of_proportional_fairness_are_in_proportion_to_the_weights() {
        let budget = Budget { n_prb: 50, max_grants: 10, granularity: 1 };
        let (mut served, mut prbs, mut out) = ([ServedRate::default(); 2], [0.0; 2], Vec::new());
        for slot in (0..10_000).map(Slot) {
            let of = |station: usize| Candidate {
                weight: [3.0, 1.0][station],
                ..candidate(station, 50, [100.0, 200.0][station], served[station].at(slot))
            };
            allocate(slot, Policy::ProportionalFair, &mut [of(0), of(1)], budget, &mut out);
            for (station, prb) in &out {
                served[*station].add(slot, [100, 200][*station] * u32::from(*prb));
                prbs[*station] += f64::from(*prb);
            }
        }
        let share = prbs[0] / (prbs[0] + prbs[1]);
        assert!((share - 0.75).abs() < 0.01, "{share}");
    }

    #[test]
    fn the_served_rate_is_forgotten_in_the_same_time_at_every_numerology() {
        for mu in 0..=Numerology::MAX {
            let numerology = Numerology::new(mu).unwrap();
            let mut served = ServedRate::new(numerology);
            served.add(Slot(0), 1000);
            let kept = served.at(Slot(100 << mu)) / served.at(Slot(0));
            assert!((kept - libm::exp(-1.0)).abs() < 1e-12, "{mu}");
            // A constant number of bits per slot for a second is the mean.
            let slots = 1000 << mu;
            (1..slots).for_each(|slot| served.add(Slot(slot), 1000));
            let mean = served.at(Slot(slots - 1));
            assert!((mean / 1000.0 - 1.0).abs() < 0.01, "{mu}: {mean}");
        }
    }
}
