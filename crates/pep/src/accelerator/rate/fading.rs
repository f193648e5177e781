//! Whether what a device does not answer is lost or late.
//!
//! A radio that falls silent has either stopped for a while, and everything comes later (a handover, an outage with a
//! deep buffer behind it), or it fades and loses what is sent meanwhile. The first asks for patience, the second for
//! repetition: with the client's window full of what was lost, nothing else can be sent. Which of them it is, a device's
//! own past tells: the share of segments that were found lost after a silence, and how many were sent again for nothing.
//! Losses without silence are another matter: a full buffer, or noise; so are, until fades are known, losses here and there.
//! So is what a buffer had no room for while a radio stopped: that goes on afterwards where it had been.

use crate::accelerator::flow::to_client::scoreboard::Delivery;
use paceline_net::{Duration, Instant};

/// Time after which the past counts half: that of some fades.
const MEMORY: Duration = Duration::from_secs(10);
/// Least share of lost bytes, and largest of those sent again that had not been lost. A repetition in vain costs its own time
/// on the radio, one that is not made costs that of the window it holds up: the share may be large. Where nothing is lost
/// it comes near 1; what a queue delivers after a fade makes a tenth of it, which must not end the guessing.
const LEAST_LOSS: f64 = 0.01;
const MOST_IN_VAIN: f64 = 0.15;
/// Least silence, beside a quarter of the round trip.
pub(in crate::accelerator) const LEAST_SILENCE: Duration = Duration::from_millis(20);
/// And the least that the radio would have taken meanwhile, in bytes: on a slow one a few segments are as long.
const LEAST_MISSED: u64 = 30_000;
/// Silences of which nothing is known are no fades where so many times more are known to be none.
const MOSTLY: f64 = 3.0;
/// Bytes lost before anything is concluded.
const LEAST_LOST: f64 = 100_000.0;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Fading {
    delivered: f64,
    lost: f64,
    in_vain: f64,
    /// What the radio would have taken in silences after which it went on where it had been: it had stopped. And in those
    /// after which something was missing.
    stopped: f64,
    faded: f64,
    /// Of the first, what the last one adds once more follows: a lone acknowledgment may have been delayed in the client.
    goes_on: u64,
    halved_at: Instant,
    acked_at: Instant,
    /// What is found lost until then was lost in a silence.
    silent_until: Instant,
}

impl Fading {
    /// An acknowledgment of the device, whose smoothed round-trip time is `srtt`, and which takes so much in some time.
    pub fn on_ack(
        &mut self,
        now: Instant,
        srtt: Duration,
        taken_in: impl Fn(Duration) -> u64,
        delivery: &Delivery,
    ) {
        let silence = now.since(self.acked_at);
        let missed = taken_in(silence);
        if silence > LEAST_SILENCE.max(srtt / 4) && missed >= LEAST_MISSED {
            self.on_silence(now, srtt, missed, delivery.skipped);
        } else {
            self.stopped += std::mem::take(&mut self.goes_on) as f64;
        }
        self.acked_at = now;
        self.delivered += delivery.bytes as f64;
        if now <= self.silent_until {
            // What was past its edge the client may have dropped. Where there are fades, little is, and for the radio's sake.
            let lost =
                if self.is_likely() { delivery.lost + delivery.lost_beyond } else { delivery.lost_in_runs };
            self.lost += lost as f64;
        }
        self.in_vain += delivery.in_vain as f64;
        if now.since(self.halved_at) > MEMORY {
            self.halved_at = now;
            let Self { delivered, lost, in_vain, stopped, faded, .. } = self;
            [delivered, lost, in_vain, stopped, faded].into_iter().for_each(|count| *count /= 2.0);
        }
    }
    /// A silence has ended in which the radio would have taken `missed` bytes, with something that is so much further on than
    /// what had arrived before it. Not known where that was sent again: it is then what most others were.
    fn on_silence(&mut self, now: Instant, srtt: Duration, missed: u64, skipped: Option<u64>) {
        self.goes_on = 0;
        match skipped {
            Some(skipped) if skipped < LEAST_MISSED => self.goes_on = missed,
            None if MOSTLY * self.faded < self.stopped => {}
            _ => {
                self.silent_until = now + srtt;
                self.faded += if skipped.is_some() { missed as f64 } else { 0.0 };
            }
        }
    }
    /// Whether silence means loss.
    pub fn is_likely(&self) -> bool {
        self.lost > LEAST_LOST
            && self.lost > LEAST_LOSS * self.delivered
            && self.in_vain < MOST_IN_VAIN * self.lost
            && self.stopped < self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRTT: Duration = Duration::from_millis(60);
    /// What a radio of 400 Mb/s takes in some time.
    const FAST: fn(Duration) -> u64 = |time| time.as_millis() * 50_000;

    /// For so many seconds, `delivery` each millisecond but in the first 100 ms of each second, at whose end `lost` bytes
    /// are found lost.
    fn seen(fading: &mut Fading, from_s: u64, seconds: u64, lost: u64, in_vain: u64) {
        for ms in from_s * 1000..(from_s + seconds) * 1000 {
            let after = ms % 1000;
            if after < 100 {
                continue;
            }
            let first = after == 100;
            let delivery = Delivery {
                bytes: 5_000,
                lost: if first { lost } else { 0 },
                lost_in_runs: if first { lost } else { 0 },
                in_vain: if first { in_vain } else { 0 },
                ..Delivery::default()
            };
            fading.on_ack(Instant::from_millis(1 + ms), SRTT, FAST, &delivery);
        }
    }

    #[test]
    fn losses_after_silences_are_fades() {
        let mut fading = Fading::default();
        assert!(!fading.is_likely());
        seen(&mut fading, 0, 3, 500_000, 0);
        assert!(fading.is_likely());
        // Half a minute of silences without a loss: it is another radio now.
        seen(&mut fading, 3, 60, 0, 0);
        assert!(!fading.is_likely());
    }

    #[test]
    fn what_came_late_was_not_lost() {
        let mut fading = Fading::default();
        seen(&mut fading, 0, 3, 500_000, 100_000);
        assert!(!fading.is_likely());
    }

    /// For so many seconds, each tenth of a second a silence of 50 ms, ended by what is `skipped` further on than what came
    /// before it; then more, and a run of losses is found.
    fn silences(fading: &mut Fading, seconds: u64, skipped: Option<u64>, more: bool) {
        let from = fading.acked_at.as_nanos() / 1_000_000;
        for ms in (from..from + seconds * 1000).step_by(100) {
            let first = Delivery { bytes: 5_000, skipped, ..Delivery::default() };
            fading.on_ack(Instant::from_millis(ms + 100), SRTT, FAST, &first);
            let lost = if more { 50_000 } else { 0 };
            let next = Delivery { bytes: 50_000, lost, lost_in_runs: lost, ..Delivery::default() };
            fading.on_ack(Instant::from_millis(ms + if more { 101 } else { 150 }), SRTT, FAST, &next);
        }
    }

    #[test]
    fn a_radio_that_goes_on_where_it_was_had_stopped() {
        let mut fading = Fading::default();
        silences(&mut fading, 20, Some(LEAST_MISSED - 1), true);
        assert!(!fading.is_likely(), "{fading:?}");
        // What ends a silence was sent again: it is what the others were.
        silences(&mut fading, 20, None, true);
        assert!(!fading.is_likely() && fading.lost == 0.0, "{fading:?}");
        let mut fading = Fading::default();
        silences(&mut fading, 20, Some(LEAST_MISSED), true);
        assert!(fading.is_likely(), "{fading:?}");
    }

    #[test]
    fn a_lone_acknowledgment_in_a_silence_does_not_end_it() {
        let mut fading = Fading::default();
        silences(&mut fading, 2, Some(0), false);
        assert_eq!(fading.stopped, 0.0);
        silences(&mut fading, 2, Some(0), true);
        assert!(fading.stopped > 0.0);
    }

    #[test]
    fn on_a_slow_radio_a_few_segments_take_as_long_as_a_silence() {
        let mut fading = Fading::default();
        let slow = |silence: Duration| silence.as_millis() * 100;
        let delivery = Delivery { bytes: 5_000, lost: 50_000, lost_in_runs: 50_000, ..Delivery::default() };
        for ms in (100..60_000).step_by(100) {
            fading.on_ack(Instant::from_millis(ms), SRTT, slow, &delivery);
        }
        assert!(!fading.is_likely());
    }

    #[test]
    fn losses_here_and_there_tell_of_no_fades_and_are_theirs_where_there_are_some() {
        let mut fading = Fading::default();
        let after_silences = |fading: &mut Fading, lost_in_runs| {
            for s in 0..3 {
                let delivery =
                    Delivery { bytes: 500_000, lost: 200_000, lost_in_runs, ..Delivery::default() };
                fading.on_ack(fading.acked_at + Duration::from_secs(1 + s), SRTT, FAST, &delivery);
            }
        };
        after_silences(&mut fading, 30_000);
        assert!(!fading.is_likely(), "{fading:?}");
        after_silences(&mut fading, 100_000);
        let lost = fading.lost;
        after_silences(&mut fading, 0);
        assert!(fading.is_likely() && fading.lost > lost, "{fading:?}");
    }

    #[test]
    fn losses_without_silence_are_another_matter() {
        let mut fading = Fading::default();
        for ms in 1..5_000 {
            let delivery = Delivery { bytes: 5_000, lost: 500, lost_in_runs: 500, ..Delivery::default() };
            fading.on_ack(Instant::from_millis(ms), SRTT, FAST, &delivery);
        }
        assert!(!fading.is_likely());
    }

    #[test]
    fn what_a_client_drops_past_its_edge_is_no_fade() {
        let mut fading = Fading::default();
        let after_silence = |fading: &mut Fading, lost, lost_beyond| {
            for s in 0..3 {
                let delivery =
                    Delivery { bytes: 500_000, lost, lost_beyond, lost_in_runs: lost, ..Delivery::default() };
                fading.on_ack(fading.acked_at + Duration::from_secs(1 + s), SRTT, FAST, &delivery);
            }
        };
        after_silence(&mut fading, 10_000, 500_000);
        assert!(!fading.is_likely());
        // Where there are fades, what is sent past it is what the fade before left no room for.
        after_silence(&mut fading, 100_000, 500_000);
        assert!(fading.is_likely() && fading.lost > 500_000.0, "{fading:?}");
    }

    #[test]
    fn little_is_no_evidence() {
        let mut fading = Fading::default();
        seen(&mut fading, 0, 3, 20_000, 0);
        assert!(!fading.is_likely());
    }
}
