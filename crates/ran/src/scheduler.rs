//! Scheduling: a policy ranks the stations that could be served in a TTI, one allocator hands out resource blocks
//! in that order.
//!
//! The allocator gives each of the first `max_grants` stations an equal share of what is left, and what one does
//! not need to the next. Downlink blocks come in resource block groups (type 0, TS 36.213 §7.1.6.1), uplink
//! blocks in numbers that the transform precoder allows (TS 36.211 §5.3.3). Where blocks lie in frequency is not
//! modelled: the channel is flat.

use crate::slot::Tti;

/// A station that could be served.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Which station.
    pub station: usize,
    /// Resource blocks that would empty its buffer.
    pub wanted_prb: u8,
    /// When it was served last.
    pub last_served: Tti,
}

/// Ranks candidates: the highest priority is served first; among equals the first turn goes round with the TTI.
pub trait SchedulerPolicy {
    /// The rank of a candidate in this TTI.
    fn priority(&mut self, tti: Tti, candidate: &Candidate) -> f64;
}

/// Equal turns: who waited longest comes first.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin;

impl SchedulerPolicy for RoundRobin {
    fn priority(&mut self, tti: Tti, candidate: &Candidate) -> f64 {
        tti.since(candidate.last_served) as f64
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

/// Sorts `candidates` by the policy and gives out the budget: pairs of station and resource blocks.
pub fn allocate(
    tti: Tti,
    policy: &mut dyn SchedulerPolicy,
    candidates: &mut Vec<Candidate>,
    budget: Budget,
    out: &mut Vec<(usize, u8)>,
) {
    out.clear();
    let count = candidates.iter().map(|c| c.station as u64 + 1).max().unwrap_or(1);
    let turn = |c: &Candidate| (c.station as u64 + count - tti.0 % count) % count;
    let mut ranked: Vec<(f64, Candidate)> =
        candidates.drain(..).map(|c| (policy.priority(tti, &c), c)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(turn(&a.1).cmp(&turn(&b.1))));
    ranked.truncate(budget.max_grants);
    let group = budget.granularity.max(1);
    let mut left = budget.n_prb;
    // Stations that want least first: what they leave is shared by the rest. Equals keep their rank.
    ranked.sort_by_key(|(_, c)| c.wanted_prb);
    for (index, (_, candidate)) in ranked.iter().enumerate() {
        let groups_left = left.div_ceil(group);
        let share = groups_left.div_ceil((ranked.len() - index) as u8).saturating_mul(group);
        let wanted = candidate.wanted_prb.div_ceil(group).saturating_mul(group);
        let given = wanted.min(share).min(left);
        if given > 0 {
            out.push((candidate.station, given));
            left -= given;
        }
    }
}

/// Resource block group size P for a bandwidth (TS 36.213 Table 7.1.6.1-1).
pub const fn group_size(n_prb: u8) -> u8 {
    match n_prb {
        0..=10 => 1,
        11..=26 => 2,
        27..=63 => 3,
        _ => 4,
    }
}

/// The largest number of resource blocks up to `n_prb` whose only prime factors are 2, 3 and 5.
pub const fn precodable(n_prb: u8) -> u8 {
    let mut candidate = n_prb;
    while candidate > 1 {
        let mut rest = candidate;
        while rest.is_multiple_of(2) {
            rest /= 2;
        }
        while rest.is_multiple_of(3) {
            rest /= 3;
        }
        while rest.is_multiple_of(5) {
            rest /= 5;
        }
        if rest == 1 {
            break;
        }
        candidate -= 1;
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(wanted: &[u8], budget: Budget) -> Vec<(usize, u8)> {
        let mut candidates = wanted
            .iter()
            .enumerate()
            .map(|(station, w)| Candidate { station, wanted_prb: *w, last_served: Tti(0) })
            .collect();
        let mut out = Vec::new();
        allocate(Tti(0), &mut RoundRobin, &mut candidates, budget, &mut out);
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
    fn transform_precoding_allows_products_of_two_three_and_five() {
        assert_eq!([0, 1, 7, 11, 14, 96, 97, 100].map(precodable), [0, 1, 6, 10, 12, 96, 96, 100]);
    }
}
