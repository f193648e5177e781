//! The next send time of a paced flow.
//!
//! Without a hint the spacing is that of Linux (`tcp_update_skb_after_send`). With the pattern of the cell,
//! its phase and a shallow queue, the spacing counts only times at which a packet meets a downlink slot: the
//! slot before one. All other hints space evenly, and no packet waits for longer than a period.

use crate::{Bytes, Duration, Instant, Rate, SlotPattern};

/// Largest error of the phase at which the gate is used. Chosen: packets that are early by more miss their
/// downlink slot, half a slot of 30 kHz after its start at the latest.
const GATE_ERROR: Duration = Duration::from_micros(300);
/// Periods without a loss at a short queue after which the gate is not used. Chosen: two seconds of 5 ms.
const SHALLOW_PERIODS: u64 = 400;

/// Nanoseconds of a second, by definition.
const NANOSECONDS: u64 = 1_000_000_000;

/// Knowledge of the cell's TDD pattern.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Hint {
    /// None: spacing as in Linux.
    #[default]
    None,
    /// The period alone, of a pattern or of scheduling requests.
    Period(Duration),
    /// The slots, and the send time of a packet that arrives at the start of their period.
    Pattern {
        /// The slots of a period.
        pattern: SlotPattern,
        /// Such a send time; any period's.
        phase: Instant,
        /// Error of `phase`.
        error: Duration,
    },
}

impl Hint {
    /// The period, if one is known.
    pub fn period(&self) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::Period(period) => Some(*period),
            Self::Pattern { pattern, .. } => Some(pattern.period()),
        }
        .filter(|period| !period.is_zero())
    }
}

/// Compensation of a packet that left later than it could.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CatchUp {
    /// None.
    Never,
    /// By half of the packet's time at most, as Linux does.
    HalfPacket,
    /// In full, by this time at most: of drivers that call late.
    Within(Duration),
}

/// Decides when the next packet may leave.
#[derive(Clone, Debug)]
pub struct Pacer {
    until: Instant,
    catch_up: CatchUp,
    hint: Hint,
    gate: Option<Gate>,
    /// The time until which the queue counts as shallow.
    shallow_until: Instant,
}

/// The clock of a known pattern: it advances only in slots that are followed by one with downlink symbols,
/// and there faster, so that the mean rate is kept. Packets are aimed at the middle of the slot before their
/// own: late rather than early.
#[derive(Clone, Debug)]
struct Gate {
    slot_ns: u64,
    /// Start of a period of the clock, modulo the period.
    start_ns: u64,
    /// Whether the clock advances in each slot of a period.
    open: Box<[bool]>,
    /// Number of slots in which the clock advances.
    open_count: u64,
}

/// The mean rate of a window per round trip, multiplied by `gain_percent`; none without a round-trip time.
pub fn window_rate(window: Bytes, round_trip: Duration, gain_percent: u32) -> Option<Rate> {
    if round_trip.is_zero() {
        return None;
    }
    // Windows of flows up to some hundred MB need no 128 bits, whose division costs several times as much.
    if let Some(percent) = window.0.checked_mul(8 * u64::from(gain_percent))
        && let Some(bits) = (percent / 100).checked_mul(NANOSECONDS)
    {
        return Some(Rate((bits / round_trip.as_nanos()).max(1)));
    }
    let bits = u128::from(window.0) * 8 * u128::from(gain_percent) / 100;
    let rate = bits * u128::from(NANOSECONDS) / u128::from(round_trip.as_nanos());
    Some(Rate(u64::try_from(rate).unwrap_or(u64::MAX).max(1)))
}

impl Pacer {
    /// Without a hint.
    pub fn new(catch_up: CatchUp) -> Self {
        Self { until: Instant::ZERO, catch_up, hint: Hint::None, gate: None, shallow_until: Instant::ZERO }
    }
    /// Replaces the knowledge of the pattern; packets that wait already are released after a period of it.
    pub fn set_hint(&mut self, now: Instant, hint: Hint) {
        self.gate = Gate::new(&hint);
        self.hint = hint;
        if let Some(period) = self.hint.period() {
            self.until = self.until.min(now + period);
        }
    }
    /// The knowledge of the pattern.
    pub fn hint(&self) -> &Hint {
        &self.hint
    }
    /// Losses were seen, with a clean round-trip time that was `queueing` above its base: a queue that loses
    /// packets before it holds a period is shallow.
    pub fn on_loss(&mut self, now: Instant, queueing: Duration) {
        if let Some(period) = self.hint.period() {
            self.shallow_until =
                if queueing < period { now + period * SHALLOW_PERIODS } else { Instant::ZERO };
        }
    }
    /// The time until which the next packet waits.
    pub fn until(&self) -> Instant {
        self.until
    }
    /// A packet left at `now`; the next one follows at the mean rate `rate`.
    pub fn on_sent(&mut self, now: Instant, bytes: Bytes, rate: Rate) {
        let (from, wait) = (self.until.max(self.earliest(now)), self.wait(now, bytes, rate));
        self.until = match (&self.gate, self.hint.period()) {
            (Some(gate), Some(period)) if now < self.shallow_until => {
                gate.advance(from, wait.min(period)).min(now + period)
            }
            (_, Some(period)) => (from + wait).min(now + period),
            (_, None) => from + wait,
        };
    }
    /// The same for a flow whose control models the path by its own rate: spacing as without a hint.
    pub fn on_sent_evenly(&mut self, now: Instant, bytes: Bytes, rate: Rate) {
        self.until = self.until.max(self.earliest(now)) + self.wait(now, bytes, rate);
    }
    /// The earliest time from which a packet that leaves at `now` may count.
    fn earliest(&self, now: Instant) -> Instant {
        match self.catch_up {
            CatchUp::Within(late) => Instant::from_nanos(now.as_nanos().saturating_sub(late.as_nanos())),
            CatchUp::Never | CatchUp::HalfPacket => now,
        }
    }
    fn wait(&self, now: Instant, bytes: Bytes, rate: Rate) -> Duration {
        let wait = rate.time_to_send(bytes);
        if self.catch_up == CatchUp::HalfPacket { wait - now.since(self.until).min(wait / 2) } else { wait }
    }
    /// Takes packets back that left since `until` was the time of the next one, to count them anew as one.
    pub fn take_back(&mut self, until: Instant) {
        self.until = until;
    }
    /// Lets the next packet leave from `now` on.
    pub fn release(&mut self, now: Instant) {
        self.until = self.until.min(now);
    }
}

impl Gate {
    /// For a pattern whose phase is known well enough, unless all its slots are alike.
    fn new(hint: &Hint) -> Option<Self> {
        let Hint::Pattern { pattern, phase, error } = hint else { return None };
        let (slot_ns, count) = (pattern.slot().as_nanos(), pattern.slots().len() as u64);
        let open: Box<[bool]> = (1..=count).map(|next| pattern.kind(next).down > 0).collect();
        let open_count = open.iter().filter(|open| **open).count() as u64;
        let start_ns = (phase.as_nanos() % (slot_ns * count) + slot_ns / 2) % (slot_ns * count);
        let is_used = *error <= GATE_ERROR && open_count > 0 && open_count < count;
        is_used.then_some(Self { slot_ns, start_ns, open, open_count })
    }
    /// Adds `wait`, a period at most, to `from` on this clock.
    fn advance(&self, from: Instant, wait: Duration) -> Instant {
        let count = self.open.len() as u64;
        let period_ns = self.slot_ns * count;
        let offset = (from.as_nanos() % period_ns + period_ns - self.start_ns) % period_ns;
        let mut slot = offset / self.slot_ns;
        let mut rest = (slot + 1) * self.slot_ns - offset;
        let mut left = wait.as_nanos() * self.open_count / count;
        let mut passed = 0;
        // Two periods of slots contain a wait of one period.
        for _ in 0..=2 * count {
            if self.open[slot as usize] {
                if left < rest {
                    passed += left;
                    break;
                }
                left -= rest;
            }
            passed += rest;
            rest = self.slot_ns;
            slot = if slot + 1 == count { 0 } else { slot + 1 };
        }
        from + Duration::from_nanos(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    const PACKET: Bytes = Bytes(1500);

    fn pattern(text: &str) -> SlotPattern {
        SlotPattern::from_letters(text, 1).unwrap()
    }
    fn gated(text: &str, error: Duration) -> Pacer {
        let mut pacer = Pacer::new(CatchUp::HalfPacket);
        pacer.set_hint(Instant::ZERO, Hint::Pattern { pattern: pattern(text), phase: Instant::ZERO, error });
        pacer.on_loss(Instant::ZERO, Duration::ZERO);
        pacer
    }
    /// Send times of packets that leave as early as they may.
    fn times(pacer: &mut Pacer, rate: Rate, count: usize) -> Vec<Instant> {
        let send = |_| {
            let now = pacer.until();
            pacer.on_sent(now, PACKET, rate);
            now
        };
        (0..count).map(send).collect()
    }

    #[test]
    fn without_a_hint_the_spacing_is_that_of_linux() {
        let (mut stream, mut pacer) = (Stream::new(1, "pacer"), Pacer::new(CatchUp::HalfPacket));
        let (mut now, mut until) = (Instant::ZERO, Instant::ZERO);
        for _ in 0..10_000 {
            let rate = Rate(1 + stream.below(1_000_000_000));
            now = now.max(until) + Duration::from_nanos(stream.below(100_000));
            let wait = rate.time_to_send(PACKET);
            let wait = wait.saturating_sub(now.since(until).min(wait / 2));
            until = until.max(now) + wait;
            pacer.on_sent(now, PACKET, rate);
            assert_eq!(pacer.until(), until);
            pacer.on_loss(now, Duration::ZERO);
        }
    }

    #[test]
    fn gated_packets_leave_in_the_slot_before_a_downlink_slot_at_the_mean_rate() {
        for text in ["DDDSU", "DDDDDDDSUU 6:4:4", "DDSUU 6:4:4", "DSUUU"] {
            let slots = pattern(text);
            let mut pacer = gated(text, Duration::ZERO);
            let sent = times(&mut pacer, Rate(300_000_000), 25_000);
            for at in &sent[10..] {
                let slot = (at.as_nanos() + 10_000_000 - 250_000) / 500_000;
                assert!(slots.kind(slot + 1).down > 0, "{text} {at:?}");
            }
            // 25,000 packets at 300 Mb/s take one second.
            let span = sent.last().unwrap().as_secs_f64();
            assert!((span - 1.0).abs() < 0.01, "{text} {span}");
        }
    }

    /// A driver that calls every 250 us keeps the rate, and after a pause no more than that is made up for.
    #[test]
    fn late_calls_within_the_time_of_the_driver_are_made_up_for() {
        let tick = Duration::from_micros(250);
        let mut pacer = Pacer::new(CatchUp::Within(tick));
        let mut sent = 0_u64;
        for now in (0..40_000).map(|index| Instant::from_nanos(index * 250_000)) {
            while pacer.until() <= now {
                pacer.on_sent(now, PACKET, Rate(100_000_000));
                sent += PACKET.0;
            }
        }
        // Ten seconds at 100 Mb/s.
        assert!(sent.abs_diff(125_000_000) < 125_000, "{sent}");
        let (later, mut burst) = (Instant::from_millis(20_000), 0);
        while pacer.until() <= later {
            pacer.on_sent(later, PACKET, Rate(100_000_000));
            burst += 1;
        }
        assert_eq!(burst, 3); // 250 us and the packet under way
    }

    #[test]
    fn a_control_with_a_rate_of_its_own_is_not_gated() {
        let (mut gated, mut plain) = (gated("DDDSU", Duration::ZERO), Pacer::new(CatchUp::HalfPacket));
        for now in (0..5000).map(|index| Instant::from_nanos(index * 37_000)) {
            gated.on_sent_evenly(now, PACKET, Rate(300_000_000));
            plain.on_sent(now, PACKET, Rate(300_000_000));
            assert_eq!(gated.until(), plain.until());
        }
    }

    #[test]
    fn the_gate_needs_a_phase_within_0_3_ms_and_a_shallow_queue() {
        let rate = Rate(300_000_000);
        let even = times(&mut Pacer::new(CatchUp::HalfPacket), rate, 500);
        assert_ne!(times(&mut gated("DDDSU", Duration::from_micros(300)), rate, 500), even);
        assert_eq!(times(&mut gated("DDDSU", Duration::from_micros(301)), rate, 500), even);
        let mut deep = gated("DDDSU", Duration::ZERO);
        deep.on_loss(Instant::ZERO, Duration::from_millis(3));
        assert_eq!(times(&mut deep, rate, 500), even);
    }

    #[test]
    fn no_packet_waits_for_longer_than_a_period() {
        let mut stream = Stream::new(2, "pacer");
        for text in ["DDDSU", "DDDSUUDDDD 6:4:4", "DSUUU"] {
            let period = pattern(text).period();
            let mut pacer = gated(text, Duration::from_micros(100));
            let mut now = Instant::ZERO;
            for _ in 0..20_000 {
                pacer.on_sent(now, PACKET, Rate(stream.below(40_000_000)));
                assert!(pacer.until().since(now) <= period, "{text}");
                if stream.chance(0.01) {
                    pacer.on_loss(now, period * stream.below(3));
                }
                let late = Duration::from_nanos(stream.below(200_000));
                now = if stream.chance(0.1) { now + late } else { now.max(pacer.until()) + late };
            }
            pacer.on_sent(Instant::MAX, PACKET, Rate(1));
        }
    }
}
