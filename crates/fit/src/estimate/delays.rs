//! Round trips on an idle path, by side of the capture point.
//!
//! In a cell, packets of a busy uplink find grants and are faster than those that need a scheduling request;
//! those on an idle uplink wait for its next occasion, up to a period. The least of them is the delay of the
//! idle path.

use super::{Confidence, Estimate};
use crate::capture::{Captures, Flow};

/// Round trips on an idle path for a claim, and for high confidence. Chosen: the least of so many is within
/// an eighth and a twentieth of a period from its start.
const FEW: usize = 8;
const MANY: usize = 25;
/// Round trips near the least one, for a claim: fewer can be outliers.
const NEAR_LEAST: usize = 3;
/// Difference of these from the least, as a share and in ms. Equals the tolerance of a claim.
const TOLERANCE: f64 = 0.05;
const TOLERANCE_MS: f64 = 1.0;
/// Least round trip below which a half has no radio, ms. Chosen: no radio answers within it.
const WIRED_MS: f64 = 1.5;
/// One in so many round trips must be near the least one of such a half. Chosen: an end that acknowledges
/// every other segment delays half of them.
const WIRED_SHARE: usize = 5;

/// Samples of the round trip from the point to one end and back.
#[derive(Clone, Debug, Default)]
pub struct Half {
    /// Time of passing and round trip, ns.
    pub samples: Vec<(u64, u64)>,
}

/// Round trips of one client: time of passing and of being back, ns.
#[derive(Clone, Debug)]
pub struct Idle {
    /// The end to which they went: 0 client, 1 server.
    pub to: usize,
    /// The round trips.
    pub trips: Vec<(u64, u64)>,
    /// Those of them that the far end answered at once: requests, and data of two segments or more, whose
    /// acknowledgment is not delayed (RFC 9293 §3.8.6.3).
    pub prompt: Vec<(u64, u64)>,
    /// Handshakes. Their packets are shorter than requests, and need fewer grants.
    pub handshakes: Vec<(u64, u64)>,
}

/// Both halves at a capture point: towards clients, towards servers.
pub fn halves(captures: &Captures, point: usize) -> [Half; 2] {
    let mut halves = [Half::default(), Half::default()];
    for flow in captures.flows.iter().filter(|flow| flow.point == point) {
        add(flow, &mut halves);
    }
    halves
}

fn add(flow: &Flow, halves: &mut [Half; 2]) {
    let at = flow.handshake.iter().flatten().min().copied().unwrap_or(0);
    for (half, sample) in halves.iter_mut().zip(flow.handshake_halves()) {
        half.samples.extend(sample.map(|rtt| (at, rtt)));
    }
    for (end, half) in halves.iter_mut().enumerate() {
        half.samples.extend(flow.echoes[end].iter().copied());
        // Data towards this end, and their acknowledgment.
        let towards = &flow.directions[1 - end];
        half.samples.extend(
            towards
                .data
                .iter()
                .filter(|data| !data.is_repair && !data.was_repeated)
                .filter_map(|data| Some((data.at, data.acked_at?.saturating_sub(data.at)))),
        );
    }
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// The least round trips towards client and server; none without any. `is_cell`: whether slots or scheduling
/// requests are seen.
pub fn least(
    halves: &[Half; 2],
    idle: &[Idle],
    sr_period_ms: Option<&Estimate<f64>>,
    is_cell: bool,
) -> Option<[Estimate<f64>; 2]> {
    let [client, server] = [0, 1].map(|end| {
        let own = || idle.iter().filter(|idle| idle.to == end);
        let most = own().map(|idle| &idle.prompt).max_by_key(|trips| trips.len());
        let handshakes = || own().flat_map(|idle| idle.handshakes.iter().copied()).collect();
        let trips = most.filter(|trips| trips.len() >= FEW).map_or_else(handshakes, Clone::clone);
        of_half(&halves[end], &trips, sr_period_ms, is_cell)
    });
    Some([client?, server?])
}

fn of_half(
    half: &Half,
    idle: &[(u64, u64)],
    sr_period_ms: Option<&Estimate<f64>>,
    is_cell: bool,
) -> Option<Estimate<f64>> {
    let mut all: Vec<u64> = half.samples.iter().map(|(_, rtt)| *rtt).collect();
    all.sort_unstable();
    let least = ms(*all.first()?);
    let mut trips: Vec<u64> = idle.iter().map(|(at, back)| back - at).collect();
    trips.sort_unstable();
    let near = |sorted: &[u64], least: f64| {
        let limit = least + (TOLERANCE * least).max(TOLERANCE_MS);
        sorted.iter().take_while(|rtt| ms(**rtt) <= limit).count()
    };
    let count = all.len();
    if least < WIRED_MS && near(&all, least) >= count.div_ceil(WIRED_SHARE) {
        return Some(Estimate::new(least, Confidence::High, format!("the least of {count}")));
    }
    if trips.len() >= FEW {
        let first = ms(trips[0]);
        // Packets that come later in the period wait less, until the occasion.
        let gap = sr_period_ms.map_or(0.0, |period| unseen(idle, period.value));
        let value = (first - gap / 2.0).max(0.0);
        let agree = near(&trips, first);
        let is_exact = gap / 2.0 <= (TOLERANCE * value).max(TOLERANCE_MS);
        let confidence = match (agree, trips.len()) {
            _ if !is_exact => Confidence::Low,
            (NEAR_LEAST.., MANY..) => Confidence::High,
            (NEAR_LEAST.., _) => Confidence::Medium,
            _ => Confidence::Low,
        };
        let from = format!("the least of {} on an idle path, less than {gap:.1} ms above it", trips.len());
        return Some(Estimate::new(value, confidence, from));
    }
    // Without a radio all packets have the same delay; with one, those of a busy uplink have less.
    let agree = near(&all, least);
    let confidence = if agree >= MANY && !is_cell { Confidence::Medium } else { Confidence::Low };
    Some(Estimate::new(
        least,
        confidence,
        format!("the least of {count}, of which none are known to be idle"),
    ))
}

/// The part of the period, in ms, behind the fastest packet in which none came.
fn unseen(trips: &[(u64, u64)], period_ms: f64) -> f64 {
    let phase = |at: u64| libm::fmod(ms(at), period_ms);
    let Some((fastest, _)) = trips.iter().min_by_key(|(at, back)| back - at) else { return 0.0 };
    let own = phase(*fastest);
    let ahead = trips.iter().map(|(at, _)| (phase(*at) - own).rem_euclid(period_ms));
    ahead.filter(|ahead| *ahead > 0.0).fold(period_ms, f64::min)
}
