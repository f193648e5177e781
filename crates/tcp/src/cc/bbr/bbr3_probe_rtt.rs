//! The smallest RTT of BBR version 3 and the state ProbeRTT, which measures it (draft-ietf-ccwg-bbr).

use super::bbr3::{AckPhase, Bbr3, MIN_PIPE_SEGMENTS, PROBE_RTT_GAIN, State};
use crate::cc::control::AckSample;
use paceline_net::{Bytes, Duration, Instant};

/// Time over which the RTT is the minimum (draft-ietf-ccwg-bbr, BBR.MinRTTFilterLen).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// Interval between two ProbeRTT (draft-ietf-ccwg-bbr, BBR.ProbeRTTInterval).
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// Shortest duration of ProbeRTT (draft-ietf-ccwg-bbr, BBR.ProbeRTTDuration).
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);

impl Bbr3 {
    pub(super) fn update_min_rtt(&mut self, now: Instant, sample: &AckSample) {
        self.probe_rtt_expired = now > self.probe_rtt_min_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt
            && (self.probe_rtt_expired || self.probe_rtt_min.is_none_or(|min| rtt < min))
        {
            (self.probe_rtt_min, self.probe_rtt_min_at) = (Some(rtt), now);
        }
        let expired = now > self.min_rtt_at + MIN_RTT_WINDOW;
        let Some(recent) = self.probe_rtt_min else { return };
        if expired || self.min_rtt.is_none_or(|min| recent < min) {
            (self.min_rtt, self.min_rtt_at) = (Some(recent), self.probe_rtt_min_at);
        }
    }
    pub(super) fn check_probe_rtt(&mut self, now: Instant, sample: &AckSample) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe_rtt_done_at = None;
            self.ack_phase = AckPhase::Stopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            if self.probe_rtt_done_at.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(now);
                }
            } else if sample.in_flight.0 <= self.probe_rtt_cwnd() {
                self.probe_rtt_done_at = Some(now + PROBE_RTT_TIME);
                self.probe_rtt_round_done = false;
                self.start_round();
            }
        }
        if sample.rate.delivered > Bytes::ZERO {
            self.idle_restart = false;
        }
    }
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp(self.bandwidth(), PROBE_RTT_GAIN).max(MIN_PIPE_SEGMENTS * self.mss)
    }
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_rtt_done_at.is_none_or(|at| now <= at) {
            return;
        }
        self.probe_rtt_min_at = now; // the next ProbeRTT follows in five seconds
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.reset_shortterm();
        if self.full_bw_reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
