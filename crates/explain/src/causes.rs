//! The causes that limit a sender, and the division of its lifetime among them.

use crate::quantiles::{bucket, middle};
use std::collections::BTreeMap;

/// The cause that keeps a sender from sending more, or from sending at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The handshake is not complete.
    Handshake,
    /// The application has written no more data.
    Application,
    /// The advertised window is used up.
    ReceiveWindow,
    /// Lost segments are sent again, until all data before them are acknowledged.
    Recovery,
    /// The sender waits for its retransmission timer, or repairs after its expiry.
    Timeout,
    /// Data are in flight, nothing is lost, and no ACK comes: an outage or a handover.
    Pause,
    /// A queue of the path is filled: the round trip is well above its minimum.
    Queue,
    /// Below the advertised window with a round trip near its minimum: congestion window, pacing or send
    /// buffer.
    CongestionWindow,
    /// A policer drops what exceeds its rate.
    Policer,
    /// ACKs come in bunches, after gaps in which none came.
    AckPath,
    /// The capture has no ACKs, no data, or no round trip towards the sender.
    Unknown,
}

impl Cause {
    /// All causes, in the order of tables.
    pub const ALL: [Self; 11] = [
        Self::Handshake,
        Self::Application,
        Self::ReceiveWindow,
        Self::Recovery,
        Self::Timeout,
        Self::Pause,
        Self::Queue,
        Self::CongestionWindow,
        Self::Policer,
        Self::AckPath,
        Self::Unknown,
    ];
    /// The name in files.
    pub fn key(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Application => "application",
            Self::ReceiveWindow => "receive_window",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
            Self::Pause => "pause",
            Self::Queue => "queue",
            Self::CongestionWindow => "congestion_window",
            Self::Policer => "policer",
            Self::AckPath => "ack_path",
            Self::Unknown => "unknown",
        }
    }
}

/// Round trip beside the least one, from which on a queue is filled. Chosen: HARQ and grants let a radio's
/// round trip vary by about as much; with 1.2 instead the largest causes of the tests are the same, with 1.5
/// a short queue in front of an accelerator's rate is missed.
const QUEUED: f64 = 1.3;
/// Least queuing delay that counts, ns. Chosen: hosts and coalescing interrupts delay by up to 1 ms.
const LEAST_QUEUE_NS: f64 = 2e6;
/// The same where the rate shows that a short queue is filled: above what the buckets of round trips merge.
const RISEN: f64 = 1.1;
/// Part of the time with risen round trips at least. BBR probes for an eighth of the time; repairs of
/// losses let estimates of the round trip vary for less.
const RISEN_TIME: f64 = 0.1;
/// Part of the best rate at lower round trips that the rate at risen ones has on a full path. Without a queue
/// it falls as the round trip rises, to 1 / [`RISEN`] or less.
const STEADY: f64 = 0.96;
/// Share of the best delivery rate from which on a round trip near the minimum is that of a full path too.
/// Chosen: the simulator's verdict calls a capacity used up at 90%; with 80% the largest causes of the tests
/// are the same.
const PLATEAU: f64 = 0.9;
/// Share of the time that a round trip must have held before its rate counts as the best. Chosen: bunches of
/// ACKs have high rates for short times.
const LASTING: f64 = 0.02;

/// The longest round trip of an empty path with this least one, ns.
pub fn flat_ns(least_rtt_ns: u64) -> f64 {
    let least = least_rtt_ns as f64;
    (QUEUED * least).max(least + LEAST_QUEUE_NS)
}

/// Bytes by time, 1/ns.
fn rate((ns, bytes): &(u64, u64)) -> f64 {
    *bytes as f64 / (*ns).max(1) as f64
}

/// Time in ns by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CauseTimes([u64; Cause::ALL.len()]);

impl CauseTimes {
    /// Adds a time.
    pub fn add(&mut self, cause: Cause, ns: u64) {
        self.0[cause as usize] += ns;
    }
    /// The time of a cause.
    pub fn of(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }
    /// The time of a cause, which becomes zero.
    pub fn take(&mut self, cause: Cause) -> u64 {
        std::mem::take(&mut self.0[cause as usize])
    }
    /// Moves up to `ns` from one cause to another.
    pub fn shift(&mut self, from: Cause, to: Cause, ns: u64) {
        let ns = ns.min(self.of(from));
        self.0[from as usize] -= ns;
        self.add(to, ns);
    }
    /// Adds all times of another.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, ns)| *sum += ns);
    }
    /// The whole time.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
    /// The share of a cause; 0 without any time.
    pub fn share(&self, cause: Cause) -> f64 {
        if self.total() == 0 { 0.0 } else { self.of(cause) as f64 / self.total() as f64 }
    }
    /// The cause with the longest time, the first of equal ones.
    pub fn largest(&self) -> Cause {
        Cause::ALL.into_iter().rev().max_by_key(|cause| self.of(*cause)).unwrap_or(Cause::Unknown)
    }
}

/// Time with data in flight below the advertised window and nothing lost, by round trip, with the bytes that
/// were acknowledged. A queue and a congestion window differ by the least round trip and the best delivery
/// rate, which are known at the end.
#[derive(Clone, Debug, Default)]
pub struct Flowing(BTreeMap<u16, (u64, u64)>);

impl Flowing {
    /// Adds a time with this round trip.
    pub fn add_time(&mut self, rtt_ns: u64, ns: u64) {
        self.0.entry(bucket(rtt_ns)).or_default().0 += ns;
    }
    /// Adds acknowledged bytes with this round trip.
    pub fn add_bytes(&mut self, rtt_ns: u64, bytes: u64) {
        self.0.entry(bucket(rtt_ns)).or_default().1 += bytes;
    }
    /// The times of [`Cause::Queue`] and [`Cause::CongestionWindow`].
    pub fn divide(&self, least_rtt_ns: u64) -> CauseTimes {
        let all: u64 = self.0.values().map(|(ns, _)| ns).sum();
        let is_lasting = |part: &(u64, u64)| part.0 as f64 >= LASTING * all as f64;
        let best = |rates: &mut dyn Iterator<Item = f64>| rates.reduce(f64::max);
        let mut queued = flat_ns(least_rtt_ns);
        let lasting = |from: f64, to: f64| {
            let within = self.0.iter().filter(move |(at, _)| (from..to).contains(&middle(**at)));
            within.map(|(_, part)| part).filter(|part| is_lasting(part))
        };
        let mut plateau = best(&mut lasting(queued, f64::INFINITY).map(rate)).unwrap_or(f64::INFINITY);
        // A short queue: the rate stays where the round trip rises, and so do bytes in flight.
        let risen = (RISEN * least_rtt_ns as f64).max(least_rtt_ns as f64 + LEAST_QUEUE_NS);
        let sum = |sum: (u64, u64), part: &(u64, u64)| (sum.0 + part.0, sum.1 + part.1);
        let above = lasting(risen, f64::INFINITY).fold((0, 0), sum);
        let below = best(&mut lasting(0.0, risen).map(rate)).unwrap_or(0.0);
        if above.0 as f64 >= RISEN_TIME * all as f64 && rate(&above) >= STEADY * below {
            (queued, plateau) = (risen, rate(&above));
        }
        let mut times = CauseTimes::default();
        for (at, part) in &self.0 {
            let is_at_plateau = (PLATEAU * plateau..=plateau / PLATEAU).contains(&rate(part));
            let is_full = middle(*at) >= queued || is_lasting(part) && plateau.is_finite() && is_at_plateau;
            times.add(if is_full { Cause::Queue } else { Cause::CongestionWindow }, part.0);
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_a_long_round_trip_or_the_best_rate() {
        let mut flowing = Flowing::default();
        for (rtt_ms, ns, bytes) in [(20, 1000, 100), (23, 1000, 950), (60, 2000, 2000)] {
            flowing.add_time(rtt_ms * 1_000_000, ns);
            flowing.add_bytes(rtt_ms * 1_000_000, bytes);
        }
        let times = flowing.divide(20_000_000);
        assert_eq!((times.of(Cause::Queue), times.of(Cause::CongestionWindow)), (3000, 1000));
        assert_eq!((times.largest(), times.total()), (Cause::Queue, 4000));
        assert_eq!(Flowing::default().divide(5).total(), 0);
    }

    #[test]
    fn times_move_between_causes() {
        let mut times = CauseTimes::default();
        times.add(Cause::Timeout, 10);
        times.shift(Cause::Timeout, Cause::Pause, 30);
        assert_eq!((times.of(Cause::Pause), times.share(Cause::Pause)), (10, 1.0));
    }
}
