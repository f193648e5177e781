//! Fade detector: whether packets that a silent device does not acknowledge are lost or only late.
//!
//! A radio falls silent for two reasons. Either it stalls (a handover, or an outage with a deep buffer), and
//! everything arrives later: retransmitting would be spurious. Or the radio fades and loses what is sent
//! meanwhile: then the client's window is full of lost packets, and only retransmission lets new data be
//! sent. The detector decides from the device's history: bytes lost after silences, bytes retransmitted
//! spuriously, and whether the first new segment after a silence continued the sequence (a stall) or left a
//! gap (a fade).
//!
//! Not counted as fades: losses without a silence (a full buffer, noise), single losses while no fade is
//! known, and packets that a full buffer dropped during a stall.

use crate::accelerator::rate::losses::ack_due::{AckDue, MIN_SILENCE};
use crate::accelerator::rate::sample::LossSample;
use paceline_net::{Duration, Instant};

/// Time after which all counts are halved. Chosen: several fades fall into that time.
const HALVING_TIME: Duration = Duration::from_secs(10);
/// Smallest share of lost bytes that counts as fading. Chosen: rarer losses are not worth a retransmission on
/// suspicion.
const MIN_LOSS_SHARE: f64 = 0.01;
/// Largest ratio of spuriously retransmitted bytes to lost ones. Chosen high, since a spurious retransmission
/// costs its own airtime only, and a missing one blocks the client's window. On a radio that only stalls the
/// ratio comes near 1; packets that a queue delivers late after a fade make about a tenth.
const MAX_SPURIOUS_SHARE: f64 = 0.15;
/// Smallest number of bytes that the radio could have delivered in a silence, and smallest gap in the
/// sequence after one. Chosen: on a slow radio the pause between a few segments is as long as a silence.
const MIN_MISSED_BYTES: u64 = 30_000;
/// Silences that end with a retransmission, which shows no sequence, count as stalls where the known stalls
/// have this many times the bytes of the known fades. Chosen: a clear majority.
const STALL_MAJORITY: f64 = 3.0;
/// Bytes lost before fading is detected. Chosen: fewer are no evidence.
const MIN_LOST_BYTES: f64 = 100_000.0;

/// The history of one device, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Fading {
    delivered: f64,
    /// Found lost within a round-trip time after a silence that may have been a fade.
    lost: f64,
    spurious: f64,
    /// Capacity of the radio during silences after which the sequence continued (stalls), and after which
    /// there was a gap (fades).
    stalled: f64,
    faded: f64,
    /// Capacity of the last stall, to be added to `stalled` once another acknowledgment follows without a
    /// silence. A lone acknowledgment may be one that the client had delayed.
    pending_stall: u64,
    halved_at: Instant,
    ack_due: AckDue,
    srtt: Duration,
    /// Losses found until then are attributed to the last silence.
    fade_losses_until: Instant,
}

impl Fading {
    /// A packet is sent to the device.
    pub fn on_send(&mut self, now: Instant, after_idle: bool) {
        self.ack_due.on_send(now, after_idle, self.srtt);
    }
    /// An acknowledgment of the device. `srtt`: its smoothed round-trip time; `capacity_in`: bytes that the
    /// path delivers in a time.
    pub fn on_ack(
        &mut self,
        now: Instant,
        srtt: Duration,
        capacity_in: impl Fn(Duration) -> u64,
        sample: &LossSample,
    ) {
        let silence = self.ack_due.on_ack(now);
        self.srtt = srtt;
        let missed = capacity_in(silence);
        if silence > MIN_SILENCE.max(srtt / 4) && missed >= MIN_MISSED_BYTES {
            self.on_silence(now, srtt, missed, sample.skipped);
        } else {
            self.stalled += std::mem::take(&mut self.pending_stall) as f64;
        }
        self.delivered += sample.delivered as f64;
        if now <= self.fade_losses_until {
            // The client may have dropped packets beyond its window, so these count only where fades are
            // known: there few packets are sent beyond the window, and the radio lost them.
            let lost = if self.is_detected() {
                sample.lost + sample.lost_beyond_window
            } else {
                sample.lost_in_runs
            };
            self.lost += lost as f64;
        }
        self.spurious += sample.spurious as f64;
        if now.since(self.halved_at) > HALVING_TIME {
            self.halved_at = now;
            let Self { delivered, lost, spurious, stalled, faded, .. } = self;
            [delivered, lost, spurious, stalled, faded].into_iter().for_each(|count| *count /= 2.0);
        }
    }
    /// The end of a silence in which the radio could have delivered `missed` bytes. `skipped`: size of the
    /// gap before the newest segment; `None` after a retransmission, where the silence counts like most
    /// earlier ones.
    fn on_silence(&mut self, now: Instant, srtt: Duration, missed: u64, skipped: Option<u64>) {
        self.pending_stall = 0;
        match skipped {
            Some(skipped) if skipped < MIN_MISSED_BYTES => self.pending_stall = missed,
            None if STALL_MAJORITY * self.faded < self.stalled => {}
            _ => {
                self.fade_losses_until = now + srtt;
                self.faded += if skipped.is_some() { missed as f64 } else { 0.0 };
            }
        }
    }
    /// Whether the radio fades: packets sent during a silence are to be treated as lost.
    pub fn is_detected(&self) -> bool {
        self.lost > MIN_LOST_BYTES
            && self.lost > MIN_LOSS_SHARE * self.delivered
            && self.spurious < MAX_SPURIOUS_SHARE * self.lost
            && self.stalled < self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRTT: Duration = Duration::from_millis(60);
    /// Capacity of a radio of 400 Mb/s.
    const FAST: fn(Duration) -> u64 = |time| time.as_millis() * 50_000;

    /// Acknowledgments each millisecond, except in the first 100 ms of each second, at whose end `lost` bytes
    /// are found lost.
    fn seconds_with_a_silence(fading: &mut Fading, from_s: u64, seconds: u64, lost: u64, spurious: u64) {
        for ms in from_s * 1000..(from_s + seconds) * 1000 {
            let offset = ms % 1000;
            if offset < 100 {
                continue;
            }
            let first = offset == 100;
            let sample = LossSample {
                delivered: 5_000,
                lost: if first { lost } else { 0 },
                lost_in_runs: if first { lost } else { 0 },
                spurious: if first { spurious } else { 0 },
                ..LossSample::default()
            };
            fading.on_ack(Instant::from_millis(1 + ms), SRTT, FAST, &sample);
        }
    }

    #[test]
    fn losses_after_silences_are_fades() {
        let mut fading = Fading::default();
        assert!(!fading.is_detected());
        seconds_with_a_silence(&mut fading, 0, 3, 500_000, 0);
        assert!(fading.is_detected());
        // A minute of silences without a loss: another radio.
        seconds_with_a_silence(&mut fading, 3, 60, 0, 0);
        assert!(!fading.is_detected());
    }

    #[test]
    fn spurious_retransmissions_contradict_fades() {
        let mut fading = Fading::default();
        seconds_with_a_silence(&mut fading, 0, 3, 500_000, 100_000);
        assert!(!fading.is_detected());
    }

    /// A silence of 50 ms in each 100 ms, whose end leaves a gap of `skipped` bytes. If `followed`, the next
    /// acknowledgment comes a millisecond later and a run of losses is found; else after another silence.
    fn silences(fading: &mut Fading, seconds: u64, skipped: Option<u64>, followed: bool) {
        let from = fading.ack_due.at().as_nanos() / 1_000_000;
        for ms in (from..from + seconds * 1000).step_by(100) {
            let first = LossSample { delivered: 5_000, skipped, ..LossSample::default() };
            fading.on_ack(Instant::from_millis(ms + 100), SRTT, FAST, &first);
            let lost = if followed { 50_000 } else { 0 };
            let next = LossSample { delivered: 50_000, lost, lost_in_runs: lost, ..LossSample::default() };
            let at = Instant::from_millis(ms + if followed { 101 } else { 150 });
            fading.on_ack(at, SRTT, FAST, &next);
        }
    }

    #[test]
    fn a_sequence_that_continues_after_a_silence_is_a_stall() {
        let mut fading = Fading::default();
        silences(&mut fading, 20, Some(MIN_MISSED_BYTES - 1), true);
        assert!(!fading.is_detected(), "{fading:?}");
        // A silence that ends with a retransmission counts like the others.
        silences(&mut fading, 20, None, true);
        assert!(!fading.is_detected() && fading.lost == 0.0, "{fading:?}");
        let mut fading = Fading::default();
        silences(&mut fading, 20, Some(MIN_MISSED_BYTES), true);
        assert!(fading.is_detected(), "{fading:?}");
    }

    #[test]
    fn a_pause_of_the_sender_is_no_silence() {
        let mut fading = Fading::default();
        for ms in 0..20_000 {
            // In the first 60 ms of each 100 ms acknowledgments arrive, at whose end a full buffer's losses
            // are found; the sender sends in the last 10 ms of them only.
            let offset = ms % 100;
            if offset < 60 {
                let lost = if offset == 1 { 100_000 } else { 0 };
                let sample =
                    LossSample { delivered: 5_000, lost, lost_in_runs: lost, ..LossSample::default() };
                fading.on_ack(Instant::from_millis(ms), SRTT, FAST, &sample);
            }
            if (50..60).contains(&offset) {
                fading.on_send(Instant::from_millis(ms), false);
            }
        }
        assert!(!fading.is_detected(), "{fading:?}");
    }

    #[test]
    fn a_lone_acknowledgment_in_a_silence_does_not_end_it() {
        let mut fading = Fading::default();
        silences(&mut fading, 2, Some(0), false);
        assert_eq!(fading.stalled, 0.0);
        silences(&mut fading, 2, Some(0), true);
        assert!(fading.stalled > 0.0);
    }

    #[test]
    fn on_a_slow_radio_a_gap_between_segments_is_no_silence() {
        let mut fading = Fading::default();
        let slow = |silence: Duration| silence.as_millis() * 100;
        let sample =
            LossSample { delivered: 5_000, lost: 50_000, lost_in_runs: 50_000, ..LossSample::default() };
        for ms in (100..60_000).step_by(100) {
            fading.on_ack(Instant::from_millis(ms), SRTT, slow, &sample);
        }
        assert!(!fading.is_detected());
    }

    #[test]
    fn single_losses_count_only_where_fades_are_known() {
        let mut fading = Fading::default();
        let after_silences = |fading: &mut Fading, lost_in_runs| {
            for s in 0..3 {
                let sample =
                    LossSample { delivered: 500_000, lost: 200_000, lost_in_runs, ..LossSample::default() };
                fading.on_ack(fading.ack_due.at() + Duration::from_secs(1 + s), SRTT, FAST, &sample);
            }
        };
        after_silences(&mut fading, 30_000);
        assert!(!fading.is_detected(), "{fading:?}");
        after_silences(&mut fading, 100_000);
        let lost = fading.lost;
        after_silences(&mut fading, 0);
        assert!(fading.is_detected() && fading.lost > lost, "{fading:?}");
    }

    #[test]
    fn losses_without_silence_are_no_fades() {
        let mut fading = Fading::default();
        for ms in 1..5_000 {
            let sample =
                LossSample { delivered: 5_000, lost: 500, lost_in_runs: 500, ..LossSample::default() };
            fading.on_ack(Instant::from_millis(ms), SRTT, FAST, &sample);
        }
        assert!(!fading.is_detected());
    }

    #[test]
    fn losses_beyond_the_clients_window_count_only_where_fades_are_known() {
        let mut fading = Fading::default();
        let after_silences = |fading: &mut Fading, lost, lost_beyond_window| {
            for s in 0..3 {
                let sample = LossSample {
                    delivered: 500_000,
                    lost,
                    lost_beyond_window,
                    lost_in_runs: lost,
                    ..LossSample::default()
                };
                fading.on_ack(fading.ack_due.at() + Duration::from_secs(1 + s), SRTT, FAST, &sample);
            }
        };
        after_silences(&mut fading, 10_000, 500_000);
        assert!(!fading.is_detected());
        after_silences(&mut fading, 100_000, 500_000);
        assert!(fading.is_detected() && fading.lost > 500_000.0, "{fading:?}");
    }

    #[test]
    fn few_losses_are_no_evidence() {
        let mut fading = Fading::default();
        seconds_with_a_silence(&mut fading, 0, 3, 20_000, 0);
        assert!(!fading.is_detected());
    }
}
