//! Minimum round-trip time of the path to a device, and the probes that measure it anew.
//!
//! The minimum is valid for ten seconds. When it expires, or when every RTT of a second was far above it, the
//! window is reduced below the bandwidth-delay product until the queue has drained, and the minimum is
//! measured anew, as in BBR's ProbeRTT. This distinguishes a longer path from a queue that the control built.
//!
//! **Delay under load.** On some paths delay grows with the load, and the minimum of a quiet path is never
//! seen on a busy one. When no RTT of a second was near the minimum, the window is reduced to three quarters
//! of bandwidth times the lowest of them. A queue would become shorter; if the RTTs do not, they become the
//! new minimum. Each probe that does find a queue doubles the time until the next.
//!
//! **On a radio that fades** only RTTs under load count (`loaded_rtt`), since a fade leaves the path without
//! load. The fades empty the queue too, so the lowest RTT of a probe becomes the minimum without a
//! comparison.

use crate::accelerator::rate::loaded_rtt::LoadedRtt;
use crate::accelerator::rate::sample::AckSample;
use paceline_net::{Duration, Instant};
use std::hint::black_box;

/// Validity of a minimum. Chosen; equals BBR's MinRTTFilterLen (draft-cardwell-iccrg-bbr-congestion-control).
const MIN_RTT_VALID_FOR: Duration = Duration::from_secs(10);
/// A minimum that no RTT has come near for this long, or for four round trips, is doubtful. Chosen: short
/// against the validity of a minimum.
const OBSERVATION: Duration = Duration::from_secs(1);
/// Longest probe. Chosen: a queue that has not drained by then is not the control's own.
const MAX_PROBE: Duration = Duration::from_secs(3);
/// Minimum RTT before one is measured, by which the first window is paced. Chosen: a handshake nearly always
/// gives the true one.
const INITIAL_RTT: Duration = Duration::from_millis(50);
/// A queueing delay below this counts as none. Chosen: above the granularity of a radio's 1 ms TTI.
const MIN_QUEUE_DELAY: Duration = Duration::from_millis(2);
/// Bits of a packet of 1500 bytes, and the longest time that one is taken to need on the link. Chosen: the
/// MTU of Ethernet, which most paths have.
const PACKET_BITS: f64 = 12_000.0;
const MAX_PACKET_TIME: Duration = Duration::from_millis(100);
/// Window of a probe, as a share of the bandwidth-delay product, and the same on a radio that fades, whose
/// fades empty the queue anyway. Chosen: the link is idle for the rest of the time.
const PROBE_WINDOW_SHARE: f64 = 0.75;
const FADING_PROBE_WINDOW_SHARE: f64 = 0.85;

/// Question that a probe answers.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Goal {
    /// The new minimum, regardless of the old one.
    Minimum,
    /// Whether RTTs of this length contain a queue.
    QueueIn(Duration),
    /// The RTT under load on a radio that fades; the lowest so far had this length.
    Loaded(Duration),
}

/// A time with a reduced window.
#[derive(Clone, Copy, Debug)]
struct Probe {
    since: Instant,
    goal: Goal,
    /// When the data in flight first fitted the reduced window, and the lowest RTT of packets sent since.
    drained: Option<(Instant, Duration)>,
}

/// Minimum RTT of one device.
#[derive(Clone, Debug, Default)]
pub(in crate::accelerator) struct MinRtt {
    /// The minimum and when it was measured.
    min: Option<(Duration, Instant)>,
    /// Lowest RTT of the current observation, and when that began.
    lowest: Option<Duration>,
    observed_since: Instant,
    probe: Option<Probe>,
    /// No probe for a queue before then, and the length of the last wait.
    queue_probe_at: Instant,
    queue_probe_wait: Duration,
    /// Time of a packet on the link, at the path's bandwidth.
    packet_time: Duration,
    pub loaded: LoadedRtt,
}

impl MinRtt {
    /// The minimum, or an assumed one before the first sample.
    pub fn rtt(&self) -> Duration {
        self.min.map_or(INITIAL_RTT, |(rtt, _)| rtt)
    }
    /// Loads its cache lines.
    pub fn prefetch(&self) {
        black_box((self.min, self.observed_since, self.packet_time));
    }
    /// The path's estimated bandwidth in bit/s.
    pub fn on_bandwidth(&mut self, bandwidth: f64) {
        self.packet_time = Duration::from_secs_f64(PACKET_BITS / bandwidth.max(1.0)).min(MAX_PACKET_TIME);
    }
    /// Whether an RTT contains no queue: the excess over the minimum is less than a packet's time, or than
    /// the RTT's own variation.
    pub fn is_without_queue(&self, rtt: Duration) -> bool {
        let min = self.rtt();
        rtt.saturating_sub(min) < MIN_QUEUE_DELAY.max(min / 16).max(self.packet_time)
    }
    pub fn is_probing(&self) -> bool {
        self.probe.is_some()
    }
    /// Window during a probe, in seconds at the path's bandwidth; `None` without a probe.
    pub fn probe_window_seconds(&self) -> Option<f64> {
        self.probe.map(|probe| match probe.goal {
            Goal::Minimum => PROBE_WINDOW_SHARE * self.rtt().as_secs_f64(),
            Goal::QueueIn(rtt) => PROBE_WINDOW_SHARE * rtt.as_secs_f64(),
            Goal::Loaded(rtt) => FADING_PROBE_WINDOW_SHARE * rtt.as_secs_f64(),
        })
    }
    /// The RTT of a handshake: the first estimate.
    pub fn on_handshake(&mut self, now: Instant, rtt: Duration) {
        self.min.get_or_insert((rtt, now));
    }
    /// A fade ended: the path is without load.
    pub fn on_fade(&mut self, now: Instant) {
        if self.probe.take().is_some() {
            // The next probe needs new samples: a window that is too small leaves gaps that look like fades.
            self.loaded.take(now);
        }
        self.loaded.on_fade(now);
    }
    /// An RTT sample; returns whether it counts: on a radio that fades, only under load.
    pub fn on_rtt(&mut self, now: Instant, rtt: Duration, fading: bool) -> bool {
        if fading && !self.loaded.on_rtt(now, rtt, self.rtt()) {
            return false;
        }
        if self.min.is_none_or(|(min, _)| rtt <= min) {
            self.min = Some((rtt, now));
        }
        self.lowest = Some(self.lowest.map_or(rtt, |lowest| lowest.min(rtt)));
        // Packets sent before the queue had drained waited in it.
        if let Some(Probe { drained: Some((at, lowest)), .. }) = &mut self.probe
            && now.since(*at) >= rtt
        {
            *lowest = (*lowest).min(rtt);
        }
        true
    }
    /// Begins, continues and ends probes. `window`: bytes that may be in flight now. `slack`: delay above the
    /// minimum that the control's own queue explains. `may_probe_queue`: a probe for a queue may begin.
    /// Returns by how many seconds the minimum was raised to the delay under load.
    pub fn update(
        &mut self,
        now: Instant,
        sample: &AckSample,
        window: u64,
        slack: Duration,
        may_probe_queue: bool,
    ) -> Option<f64> {
        let (min, measured_at) = self.min?;
        if let Some(probe) = &mut self.probe {
            match probe.drained {
                None if sample.in_flight <= window => {
                    probe.drained = Some((now, Duration::MAX));
                }
                Some((drained_at, lowest)) => {
                    let goal = probe.goal;
                    let rtt = if let Goal::QueueIn(rtt) = goal { rtt } else { min };
                    let has_result = lowest < Duration::MAX || goal != Goal::Minimum;
                    if now.since(drained_at) > rtt * 5 / 4 && has_result {
                        return self.end_probe(now, min, goal, lowest);
                    }
                }
                _ => {}
            }
            if self.probe.is_some_and(|probe| now.since(probe.since) > MAX_PROBE) {
                // The queue has not drained: the old minimum stays.
                self.min = Some((min, now));
                self.begin_observation(now);
                self.probe = None;
            }
            return None;
        }
        let begin = |goal| Some(Probe { since: now, goal, drained: None });
        if sample.fading {
            let lowest = self.loaded.due(now, min)?;
            self.probe = begin(Goal::Loaded(lowest));
            return None;
        }
        let observed = now.since(self.observed_since) >= OBSERVATION.max(min * 4);
        let lowest = self.lowest.filter(|_| observed);
        if now.since(measured_at) > MIN_RTT_VALID_FOR || lowest.is_some_and(|lowest| lowest > min + slack) {
            self.probe = begin(Goal::Minimum);
        } else if let Some(lowest) = lowest
            .filter(|lowest| may_probe_queue && now >= self.queue_probe_at && !self.is_without_queue(*lowest))
        {
            self.probe = begin(Goal::QueueIn(lowest));
        } else if observed {
            self.begin_observation(now);
        }
        None
    }
    fn end_probe(&mut self, now: Instant, min: Duration, goal: Goal, lowest: Duration) -> Option<f64> {
        self.probe = None;
        self.begin_observation(now);
        let raised = match goal {
            Goal::Minimum => {
                self.min = Some((lowest, now));
                return None;
            }
            Goal::QueueIn(rtt) => {
                let no_queue = lowest < Duration::MAX && lowest > rtt * 15 / 16;
                let doubled = (self.queue_probe_wait * 2).max(OBSERVATION).min(MIN_RTT_VALID_FOR);
                self.queue_probe_wait = if no_queue { OBSERVATION } else { doubled };
                self.queue_probe_at = now + self.queue_probe_wait;
                Some(lowest).filter(|_| no_queue)
            }
            Goal::Loaded(_) => self.loaded.take(now),
        }?;
        self.min = Some((raised, now));
        Some(raised.as_secs_f64() - min.as_secs_f64())
    }
    fn begin_observation(&mut self, now: Instant) {
        (self.lowest, self.observed_since) = (None, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(rtt: Duration, in_flight: u64, fading: bool) -> AckSample {
        AckSample { delivered: 100, rtt: Some(rtt), in_flight, fading, ..AckSample::default() }
    }

    /// A second and a half on a path of 100 bytes per millisecond with a minimum RTT of 40 ms and a window of
    /// 8000 bytes except in probes; `rtt_ms` gives the RTT by the window. Returns also how far the minimum
    /// rose, in seconds, and the milliseconds with a reduced window.
    fn run(rtt_ms: impl Fn(u64) -> u64) -> (MinRtt, f64, u64) {
        let mut min_rtt = MinRtt::default();
        min_rtt.on_handshake(Instant::ZERO, Duration::from_millis(40));
        let (mut rise, mut reduced_ms) = (0.0, 0);
        for at in 1..1_500 {
            let now = Instant::from_millis(at);
            let window = min_rtt.probe_window_seconds().map_or(8_000, |span| (span * 100_000.0) as u64);
            reduced_ms += u64::from(window < 8_000);
            let rtt = Duration::from_millis(rtt_ms(window));
            min_rtt.on_rtt(now, rtt, false);
            let slack = Duration::from_millis(60);
            rise += min_rtt.update(now, &ack(rtt, window, false), window, slack, true).unwrap_or(0.0);
        }
        (min_rtt, rise, reduced_ms)
    }

    #[test]
    fn a_queue_shrinks_with_the_window_and_the_minimum_stays() {
        let (min_rtt, rise, reduced_ms) = run(|window| window / 100);
        assert_eq!((min_rtt.rtt(), rise), (Duration::from_millis(40), 0.0));
        assert!((90..150).contains(&reduced_ms), "{reduced_ms} ms with a reduced window");
    }

    #[test]
    fn delay_under_load_does_not_shrink_and_becomes_the_minimum() {
        let (min_rtt, rise, _) = run(|_| 80);
        assert_eq!(min_rtt.rtt(), Duration::from_millis(80));
        assert!((rise - 0.04).abs() < 1e-9, "{rise}");
    }

    // keeps: accelerator.handover
    #[test]
    fn the_wait_of_packets_in_an_outage_is_no_minimum() {
        let mut min_rtt = MinRtt::default();
        let (at, ms) = (Instant::from_millis, Duration::from_millis);
        min_rtt.on_handshake(at(0), ms(40));
        // After an outage of twelve seconds, the packets that were queued throughout.
        for n in 12_000..12_200 {
            min_rtt.on_rtt(at(n), ms(11_900), false);
            min_rtt.update(at(n), &ack(ms(11_900), 3_000, false), 3_000, Duration::ZERO, true);
        }
        assert_eq!((min_rtt.rtt(), min_rtt.is_probing()), (ms(40), true));
        min_rtt.on_rtt(at(12_200), ms(50), false);
        min_rtt.update(at(12_200), &ack(ms(50), 3_000, false), 3_000, Duration::ZERO, true);
        assert_eq!((min_rtt.rtt(), min_rtt.is_probing()), (ms(50), false));
    }

    #[test]
    fn a_fade_ends_a_probe_and_discards_its_samples() {
        let mut min_rtt = MinRtt::default();
        let (at, rtt) = (Instant::from_millis, Duration::from_millis(60));
        let sample = ack(rtt, 6_000, true);
        min_rtt.on_handshake(Instant::ZERO, Duration::from_millis(20));
        min_rtt.on_fade(at(5_000));
        assert!(!min_rtt.on_rtt(at(5_100), rtt / 2, true), "sampled without load");
        assert!(min_rtt.on_rtt(at(5_500), rtt, true));
        min_rtt.update(at(5_500), &sample, 9_000, Duration::ZERO, true);
        assert!((min_rtt.probe_window_seconds().unwrap() - 0.051).abs() < 1e-9);
        min_rtt.on_fade(at(5_550));
        assert_eq!((min_rtt.probe_window_seconds(), min_rtt.rtt()), (None, Duration::from_millis(20)));
        min_rtt.update(at(6_500), &sample, 9_000, Duration::ZERO, true);
        assert!(!min_rtt.is_probing(), "the next probe waits for new samples");
    }
}
