//! The cycle by which BBR version 3 probes for bandwidth (draft-ietf-ccwg-bbr, ProbeBW): Down empties the
//! queue of the last probe, Cruise leaves headroom for other flows, Refill fills the path for a round trip,
//! Up sends more until the path is full or loses too much.

use super::bbr3::{AckPhase, BETA_PERCENT, Bbr3, NONE, State, percent};
use crate::cc::control::AckSample;
use paceline_net::{Duration, Instant};

/// Largest number of round trips between two probes, for coexistence with Reno (draft-ietf-ccwg-bbr,
/// BBRIsRenoCoexistenceProbeTime).
const MAX_RENO_ROUNDS: u64 = 63;
/// Shortest time between two probes (draft-ietf-ccwg-bbr, BBRPickProbeWait).
const MIN_PROBE_WAIT: Duration = Duration::from_secs(2);
/// Random addition to the time between two probes, up to this many ns (draft-ietf-ccwg-bbr,
/// BBRPickProbeWait).
const PROBE_WAIT_JITTER_NS: u64 = 1_000_000_000;
/// Largest exponent of the growth of a probe (draft-ietf-ccwg-bbr, BBRRaiseInflightLongtermSlope).
const MAX_PROBE_UP_ROUNDS: u32 = 30;

impl Bbr3 {
    pub(super) fn start_down(&mut self, now: Instant) {
        self.reset_congestion_signals();
        self.probe_up_per_increase = NONE;
        self.rounds_since_probe = self.random.below(2);
        self.probe_wait = MIN_PROBE_WAIT + Duration::from_nanos(self.random.below(PROBE_WAIT_JITTER_NS));
        self.cycle_at = now;
        self.ack_phase = AckPhase::Stopping;
        self.start_round();
        self.state = State::Down;
    }
    pub(super) fn start_refill(&mut self) {
        self.reset_shortterm();
        (self.probe_up_rounds, self.probe_up_acked) = (0, 0);
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::Refill;
    }
    fn start_up(&mut self, rate: u64) {
        self.ack_phase = AckPhase::Starting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = rate;
        self.state = State::Up;
        self.raise_slope();
    }
    /// Doubles the growth of the long-term bound, in each round trip of a probe.
    fn raise_slope(&mut self) {
        let growth = 1u64 << self.probe_up_rounds;
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(MAX_PROBE_UP_ROUNDS);
        self.probe_up_per_increase = (self.cwnd / growth).max(self.mss);
    }

    /// Moves through the phases of ProbeBW.
    pub(super) fn update_cycle(&mut self, now: Instant, sample: &AckSample) {
        if !self.full_bw_reached || self.adapt_longterm(sample) {
            return;
        }
        let began = self.state != State::Up;
        match self.state {
            State::Down | State::Cruise => {
                if self.time_to_probe(now) {
                    self.start_refill();
                } else if self.state == State::Down && self.time_to_cruise(sample) {
                    self.state = State::Cruise;
                }
            }
            State::Refill if self.round_start => {
                self.probe_sample = true;
                self.start_up(sample.rate.rate().map_or(0, |rate| rate.0));
            }
            _ => {}
        }
        if self.state == State::Up && !began && self.time_to_go_down(sample) {
            self.prev_probe_too_high = false;
            self.start_down(now);
        }
    }
    fn time_to_probe(&self, now: Instant) -> bool {
        let reno = (self.target_inflight() / self.mss).min(MAX_RENO_ROUNDS);
        now > self.cycle_at + self.probe_wait || self.rounds_since_probe >= reno
    }
    fn time_to_cruise(&self, sample: &AckSample) -> bool {
        let in_flight = sample.in_flight.0;
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.largest_bw())
    }
    fn time_to_go_down(&mut self, sample: &AckSample) -> bool {
        if self.prev_probe_too_high && sample.in_flight.0 >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if sample.cwnd_limited && self.cwnd >= self.inflight_longterm {
            self.reset_full_bw(); // the long-term bound limits the rate, not the path
            self.full_bw = sample.rate.rate().map_or(0, |rate| rate.0);
            return false;
        }
        self.full_bw_now
    }
    /// Adapts the long-term bound to the results of probes; true if that changed the state.
    fn adapt_longterm(&mut self, sample: &AckSample) -> bool {
        if self.ack_phase == AckPhase::Starting && self.round_start {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && self.round_start {
            self.probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.in_cycle() && !sample.rate.app_limited && self.max_bw[1] > 0 {
                self.max_bw = [self.max_bw[1], 0];
            }
            if self.in_cycle() && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_refill();
                return true;
            }
        }
        let tx_in_flight = sample.rate.tx_in_flight.0;
        if !self.too_high(sample.rate.lost, sample.rate.tx_in_flight) && self.inflight_longterm != NONE {
            self.inflight_longterm = self.inflight_longterm.max(tx_in_flight);
            if self.state == State::Up {
                self.probe_upward(sample);
            }
        }
        false
    }
    fn probe_upward(&mut self, sample: &AckSample) {
        if !sample.cwnd_limited || self.cwnd < self.inflight_longterm {
            return;
        }
        self.probe_up_acked += sample.acked.0;
        if self.probe_up_acked >= self.probe_up_per_increase {
            let steps = self.probe_up_acked / self.probe_up_per_increase;
            self.probe_up_acked %= self.probe_up_per_increase;
            self.inflight_longterm = self.inflight_longterm.saturating_add(steps.saturating_mul(self.mss));
        }
        if self.round_start {
            self.raise_slope();
        }
    }
    /// A probe with `in_flight` bytes in flight lost too much.
    pub(super) fn on_inflight_too_high(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        self.prev_probe_too_high = true;
        self.probe_sample = false; // one reaction per probe
        if !app_limited {
            self.inflight_longterm = in_flight.max(percent(self.target_inflight(), BETA_PERCENT));
        }
        if self.state == State::Up {
            self.saved.state = Some(State::Up);
            self.start_down(now);
        }
    }
}
