//! Scheduling: a policy ranks the stations that could be served in a TTI, one allocator hands out resource blocks
//! in that order.
//!
//! Round robin gives each of the first `max_grants` stations an equal share of what is left, and what one does not
//! need to the next. Proportional fair and maximum C/I give the first station what it wants, then the next.
//! Downlink blocks come in resource block groups (type 0, TS 36.213 §7.1.6.1), uplink blocks in numbers that the
//! transform precoder allows (TS 36.211 §5.3.3). Stations lie side by side in the order of their rank; choosing
//! blocks by their frequency is left out.

use crate::slot::Tti;
use std::sync::LazyLock;

/// Time constant in TTIs of the served rate that proportional fairness looks at.
const SERVED_WINDOW: f64 = 100.0;

/// A station that could be served.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Which station.
    pub station: usize,
    /// Resource blocks that would empty its buffer.
    pub wanted_prb: u8,
    /// When it was served last.
    pub last_served: Tti,
    /// Bits that a resource block would carry for it now.
    pub bits_per_prb: f64,
    /// Bits per TTI that it was served of late.
    pub served: f64,
    priority: f64,
}

impl Candidate {
    /// A station that wants so many resource blocks.
    pub fn new(station: usize, wanted_prb: u8, last_served: Tti, bits_per_prb: f64, served: f64) -> Self {
        Self { station, wanted_prb, last_served, bits_per_prb, served, priority: 0.0 }
    }
}

/// What is left of a served rate after so many TTIs.
fn decay(ttis: u64) -> f64 {
    libm::exp(-(ttis as f64) / SERVED_WINDOW)
}
/// The same for what mostly passes between two looks at it.
static DECAY: LazyLock<Vec<f64>> = LazyLock::new(|| (0..512).map(decay).collect());

/// Bits per TTI that a station was served, as an exponential mean.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ServedRate {
    mean: f64,
    at: Tti,
}

impl ServedRate {
    /// The mean in `tti`.
    pub fn at(&self, tti: Tti) -> f64 {
        let ttis = tti.since(self.at);
        self.mean * DECAY.get(ttis as usize).copied().unwrap_or_else(|| decay(ttis))
    }
    /// `bits` are served in `tti`.
    pub fn add(&mut self, tti: Tti, bits: u32) {
        *self = Self { mean: self.at(tti) + f64::from(bits) / SERVED_WINDOW, at: tti };
    }
}

/// How resource blocks are shared (TS 36.300 leaves it to the eNB).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// Equal turns: who waited longest comes first; equal shares.
    #[default]
    RoundRobin,
    /// What a block carries now over what was served of late.
    ProportionalFair,
    /// Who gets most out of a block.
    MaxCi,
}

impl Policy {
    /// The rank of a candidate in this TTI: the highest is served first; among equals the first turn goes round.
    fn priority(self, tti: Tti, candidate: &Candidate) -> f64 {
        match self {
            Self::RoundRobin => tti.since(candidate.last_served) as f64,
            // A station that was never served comes before all others.
            Self::ProportionalFair => candidate.bits_per_prb / candidate.served.max(1e-6),
            Self::MaxCi => candidate.bits_per_prb,
        }
    }
}

/// What may be given out in one TTI.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Resource blocks left.
    pub n_prb: u8,
    /// Stations that the control channel can address.
    pub max_grants: usize,
    /// Resource blocks come in multiples of this.
    pub granularity: u8,
}

/// Sorts candidates by the policy, the one to be served first at the front.
pub fn rank(tti: Tti, policy: Policy, candidates: &mut [Candidate]) {
    if candidates.len() < 2 {
        return;
    }
    // By place among the candidates, not by number: the stations of a sector have gaps between theirs.
    candidates.sort_unstable_by_key(|c| c.station);
    candidates.rotate_left((tti.0 % candidates.len() as u64) as usize);
    candidates.iter_mut().for_each(|c| c.priority = policy.priority(tti, c));
    candidates.sort_by(|a, b| b.priority.total_cmp(&a.priority));
}

/// Sorts `candidates` by the policy and gives out the budget: pairs of station and resource blocks.
pub fn allocate(
    tti: Tti,
    policy: Policy,
    candidates: &mut [Candidate],
    budget: Budget,
    out: &mut Vec<(usize, u8)>,
) {
    rank(tti, policy, candidates);
    hand_out(policy, candidates, budget, out);
}

/// Gives out the budget to candidates in the order of their rank: pairs of station and resource blocks.
pub fn hand_out(policy: Policy, candidates: &mut [Candidate], budget: Budget, out: &mut Vec<(usize, u8)>) {
    out.clear();
    let first = candidates.len().min(budget.max_grants);
    let ranked = &mut candidates[..first];
    if policy == Policy::RoundRobin {
        // Stations that want least first: what they leave is shared by the rest. Equals keep their rank.
        ranked.sort_by_key(|c| c.wanted_prb);
    }
    let group = budget.granularity.max(1);
    let mut left = budget.n_prb;
    for (index, candidate) in ranked.iter().enumerate() {
        let sharing = if policy == Policy::RoundRobin { ranked.len() - index } else { 1 };
        let share =
            left.div_ceil(group).div_ceil(u8::try_from(sharing).unwrap_or(u8::MAX)).saturating_mul(group);
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

    fn candidate(station: usize, wanted_prb: u8, bits_per_prb: f64, served: f64) -> Candidate {
        Candidate::new(station, wanted_prb, Tti(0), bits_per_prb, served)
    }

    fn shares(wanted: &[u8], budget: Budget) -> Vec<(usize, u8)> {
        let mut candidates = wanted
            .iter()
            .enumerate()
            .map(|(station, w)| candidate(station, *w, 100.0, 0.0))
            .collect::<Vec<_>>();
        let mut out = Vec::new();
        allocate(Tti(0), Policy::RoundRobin, &mut candidates, budget, &mut out);
        out.sort_unstable();
        out
    }

    #[test]
    fn equal_demands_share_equally_and_leftovers_go_on() {
        let budget = Budget { n_prb: 100, max_grants: 10, granularity: 4 };
        assert_eq!(shares(&[100, 100], budget), [(0, 52), (1, 48)]);
        assert_eq!(shares(&[100, 3, 100], budget), [(0, 48), (1, 4), (2, 48)]);
        assert_eq!(shares(&[100], budget), [(0, 100)]);
        let odd = Budget { n_prb: 25, max_grants: 2, granularity: 2 };
        assert_eq!(shares(&[25, 25, 25], odd), [(0, 14), (1, 11)]);
    }

    #[test]
    fn equals_take_turns_whatever_their_numbers() {
        let budget = Budget { n_prb: 50, max_grants: 10, granularity: 1 };
        let mut firsts = [0; 8];
        let mut out = Vec::new();
        for tti in (0..3000).map(Tti) {
            let mut candidates = [0, 3, 7].map(|station| candidate(station, 50, 100.0, 0.0));
            allocate(tti, Policy::MaxCi, &mut candidates, budget, &mut out);
            firsts[out[0].0] += 1;
        }
        assert_eq!(firsts, [1000, 0, 0, 1000, 0, 0, 0, 1000]);
    }

    #[test]
    fn more_stations_than_blocks_share_what_there_is() {
        for count in [255, 256, 257, 600] {
            let budget = Budget { n_prb: 100, max_grants: count, granularity: 1 };
            let shares = shares(&vec![3; count], budget);
            assert_eq!(shares.iter().map(|(_, prb)| u32::from(*prb)).sum::<u32>(), 100, "{count}");
        }
    }

    /// Shares of time of two stations with always full buffers, the second with twice the rate of the first.
    fn shares_of_time(policy: Policy) -> f64 {
        let budget = Budget { n_prb: 50, max_grants: 10, granularity: 1 };
        let mut served = [ServedRate::default(); 2];
        let (mut first, mut all, mut out) = (0.0, 0.0, Vec::new());
        for tti in (0..10_000).map(Tti) {
            let rate = |station: usize| 100.0 * (station as f64 + 1.0);
            let of = |station: usize| candidate(station, 50, rate(station), served[station].at(tti));
            allocate(tti, policy, &mut [of(0), of(1)], budget, &mut out);
            for (station, prb) in &out {
                served[*station].add(tti, (rate(*station) * f64::from(*prb)) as u32);
                all += f64::from(*prb);
                first += if *station == 0 { f64::from(*prb) } else { 0.0 };
            }
        }
        first / all
    }

    #[test]
    fn proportional_fairness_shares_time_equally_whatever_the_rates() {
        assert!((shares_of_time(Policy::ProportionalFair) - 0.5).abs() < 0.01);
        assert!((shares_of_time(Policy::RoundRobin) - 0.5).abs() < 0.01);
        assert_eq!(shares_of_time(Policy::MaxCi), 0.0);
    }
}
