//! The spacing of packets towards a device, beyond that of the rate control, and the TDD period that the
//! device's ACKs show.
//!
//! The mean rate is that of Linux: 200% of the window per round trip until the rate control has seen a queue,
//! 120% later. Its spacing is that of [`paceline_net::pacing`], also with the slots of a TDD cell. Left out:
//! Linux's chunks of a millisecond, since a driver that calls late sends such chunks by itself; clean
//! round-trip times for the rate control, which watches least round-trip times already.

use crate::accelerator::config::{AcceleratorConfig, Pacing};
use crate::accelerator::rate::RateController;
use paceline_net::pacing::{CatchUp, Hint, Learned, Pacer, TddCell, window_rate};
use paceline_net::{Bytes, Duration, Instant, Rate};

/// Pacing rate in percent of window per round trip, in slow start (Linux `tcp_pacing_ss_ratio`).
const STARTUP_PERCENT: u32 = 200;
/// The same later (Linux `tcp_pacing_ca_ratio`).
const AVOIDANCE_PERCENT: u32 = 120;
/// Weight of a new round-trip time in the smoothed one, as a divisor (RFC 6298).
const SRTT_DIVISOR: u64 = 8;

/// The spacing towards one device.
#[derive(Clone, Debug)]
pub(in crate::accelerator) struct Spacing {
    mode: Pacing,
    pacer: Pacer,
    cell: Option<TddCell>,
    srtt: Option<Duration>,
}

impl Spacing {
    /// None where neither spacing nor period is wanted.
    pub fn new(config: &AcceleratorConfig) -> Option<Box<Self>> {
        let mode = config.pacing;
        if mode == Pacing::Control && !config.learns_pattern {
            return None;
        }
        let mut pacer = Pacer::new(CatchUp::Within(config.tick));
        let hint = if mode.uses_period() { config.pacing_hint.clone() } else { Hint::None };
        let has_cell = mode.uses_period() || config.learns_pattern;
        let cell = has_cell.then(|| TddCell::new(&hint, true));
        pacer.set_hint(Instant::ZERO, hint);
        Some(Box::new(Self { mode, pacer, cell, srtt: None }))
    }
    /// The period that ACKs show, if it is learned and known.
    pub fn learned(&self) -> Option<Learned> {
        self.cell.as_ref()?.learned()
    }
    /// The time of the next packet after one of `bytes` at `now`; `None` if the rate control decides.
    pub fn on_sent(
        &mut self,
        now: Instant,
        bytes: u64,
        control: &RateController,
        in_flight: u64,
    ) -> Option<Instant> {
        match self.mode {
            Pacing::Control => return None,
            Pacing::None => return Some(now),
            Pacing::LinuxPerSegment | Pacing::Tdd | Pacing::TddPublished => {}
        }
        let rate = self.rate(now, control, in_flight);
        self.pacer.on_sent(now, Bytes(bytes), rate);
        Some(self.pacer.until())
    }
    /// The mean rate; that of a rate control without a window is its own.
    fn rate(&self, now: Instant, control: &RateController, in_flight: u64) -> Rate {
        let Some(window) = control.bounded_window() else { return control.rate() };
        let spread = (self.mode == Pacing::TddPublished)
            .then(|| {
                let left = self.cell.as_ref()?.next_bunch_at()?.since(now);
                window_rate(Bytes(window.saturating_sub(in_flight)), left, 100)
            })
            .flatten();
        let percent = if control.is_in_startup() { STARTUP_PERCENT } else { AVOIDANCE_PERCENT };
        let linux = || window_rate(Bytes(window), self.srtt?, percent);
        spread.or_else(linux).unwrap_or_else(|| control.rate())
    }
    /// An ACK delivered data with this round-trip time; `has_lost`: packets were found lost.
    pub fn on_ack(&mut self, now: Instant, rtt: Option<Duration>, has_lost: bool) {
        if let Some(rtt) = rtt {
            let old = self.srtt.unwrap_or(rtt);
            self.srtt = Some(old - old / SRTT_DIVISOR + rtt / SRTT_DIVISOR);
        }
        let Some(cell) = &mut self.cell else { return };
        cell.on_ack(now, rtt);
        if !self.mode.uses_period() {
            return;
        }
        if let Some(hint) = cell.take_change() {
            self.pacer.set_hint(now, hint);
        }
        if has_lost {
            self.pacer.on_loss(now, cell.queueing());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accelerator::rate::RateControl;
    use paceline_net::SlotPattern;

    const PACKET: u64 = 1500;
    const RTT: Duration = Duration::from_millis(10);

    fn config(pacing: Pacing, pacing_hint: Hint) -> AcceleratorConfig {
        AcceleratorConfig { pacing, pacing_hint, ..AcceleratorConfig::default() }
    }
    /// Times of packets that leave as early as they may, after an ACK with a loss.
    fn times(config: &AcceleratorConfig, count: usize) -> Vec<Instant> {
        let mut spacing = Spacing::new(config).unwrap();
        let control = RateController::new(&RateControl::default());
        let mut now = Instant::from_millis(100);
        spacing.on_ack(now, Some(RTT), true);
        let next = |_| {
            now = spacing.on_sent(now, PACKET, &control, 0).unwrap().max(now);
            now
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn the_rate_controls_spacing_is_the_default() {
        assert!(Spacing::new(&AcceleratorConfig::default()).is_none());
        let learns = AcceleratorConfig { learns_pattern: true, ..AcceleratorConfig::default() };
        let mut spacing = Spacing::new(&learns).unwrap();
        let control = RateController::new(&RateControl::default());
        assert_eq!(spacing.on_sent(Instant::ZERO, PACKET, &control, 0), None);
    }

    #[test]
    fn without_pacing_packets_leave_at_once_and_with_linuxs_at_twice_the_window_per_round_trip() {
        let at_once = times(&config(Pacing::None, Hint::None), 5);
        assert!(at_once.iter().all(|at| *at == Instant::from_millis(100)), "{at_once:?}");
        // The first window, 29,200 bytes: 58,400 bytes in 10 ms, 1,500 bytes in 257 us. The time of a late
        // driver, 250 us, is made up for.
        let spaced = times(&config(Pacing::LinuxPerSegment, Hint::None), 101);
        let each = spaced[100].since(spaced[0]).as_nanos() / 100;
        assert!((254_000..260_000).contains(&each), "{each} ns");
    }

    #[test]
    fn in_a_tdd_cell_packets_leave_in_the_slot_before_a_downlink_slot() {
        let pattern = SlotPattern::from_letters("DDDSU", 1).unwrap();
        let hint = Hint::Pattern { pattern: pattern.clone(), phase: Instant::ZERO, error: Duration::ZERO };
        for at in times(&config(Pacing::Tdd, hint), 200).into_iter().skip(2) {
            // The gate aims at the middle of the slot.
            let slot = (at.as_nanos() + 10_000_000 - 250_000) / 500_000;
            assert!(pattern.kind(slot + 1).down > 0, "{at:?}");
        }
    }

    #[test]
    fn the_period_of_a_cell_is_learned_from_acks() {
        let learns = AcceleratorConfig { learns_pattern: true, ..AcceleratorConfig::default() };
        let mut spacing = Spacing::new(&learns).unwrap();
        // ACKs of packets every 0.2 ms wait for the end of a period of 5 ms.
        for at in (0..10_000_u64).map(|index| index * 200_000) {
            let back = (at / 5_000_000 + 2) * 5_000_000;
            spacing.on_ack(Instant::from_nanos(back), Some(Duration::from_nanos(back - at)), false);
        }
        assert_eq!(spacing.learned().map(|learned| learned.period), Some(Duration::from_millis(5)));
    }
}
