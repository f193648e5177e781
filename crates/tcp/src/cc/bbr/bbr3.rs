//! BBR version 3 (draft-ietf-ccwg-bbr): bandwidth and smallest RTT as in version 1, and bounds learnt from
//! losses: the volume in flight that the path sustains in the long term (`inflight_longterm`, formerly
//! `inflight_hi`), and rate and volume in the short term (`bw_shortterm`, `inflight_shortterm`). `bbr3_cycle`
//! has the cycle that probes for bandwidth.
//!
//! As in Linux, the loss events of a round trip are the acknowledgments that indicated a loss. Left out: ECN.

use super::ack_aggregation::{AGGREGATION_ROUNDS, AckAggregation, bytes_in};
use crate::cc::control::{AckSample, CongestionControl, CongestionEvent};
use paceline_net::{Bytes, Duration, Instant, Rate, Stream};

/// Pacing gain of Startup in percent (draft-ietf-ccwg-bbr, BBR.StartupPacingGain).
const STARTUP_GAIN: u64 = 277;
/// Pacing gain of Drain in percent (draft-ietf-ccwg-bbr, BBR.DrainPacingGain).
const DRAIN_GAIN: u64 = 50;
/// Pacing gain of ProbeBW_DOWN in percent (draft-ietf-ccwg-bbr).
const DOWN_GAIN: u64 = 90;
/// Pacing gain of ProbeBW_UP in percent (draft-ietf-ccwg-bbr).
const UP_GAIN: u64 = 125;
/// Window gain in percent (draft-ietf-ccwg-bbr, BBR.DefaultCwndGain).
const CWND_GAIN: u64 = 200;
/// Window gain of ProbeBW_UP in percent (draft-ietf-ccwg-bbr).
const UP_CWND_GAIN: u64 = 225;
/// Window gain of ProbeRTT in percent (draft-ietf-ccwg-bbr, BBR.ProbeRTTCwndGain).
pub(super) const PROBE_RTT_GAIN: u64 = 50;
/// Pacing is this many percent below the bandwidth (draft-ietf-ccwg-bbr, BBR.PacingMarginPercent).
const PACING_MARGIN_PERCENT: u64 = 1;
/// Rest of a bound after a loss in percent (draft-ietf-ccwg-bbr, BBR.Beta).
pub(super) const BETA_PERCENT: u64 = 70;
/// Share of the long-term bound left to other flows in percent (draft-ietf-ccwg-bbr, BBR.Headroom).
const HEADROOM_PERCENT: u64 = 15;
/// Round trips without growth of the bandwidth by a quarter that end Startup (draft-ietf-ccwg-bbr,
/// BBRCheckFullBWReached).
const FULL_BW_ROUNDS: u32 = 3;
/// Round trips after which Drain ends in any case (draft-ietf-ccwg-bbr, BBRCheckDrainDone).
const MAX_DRAIN_ROUNDS: u64 = 3;
/// Smallest window in segments (draft-ietf-ccwg-bbr, BBR.MinPipeCwnd).
pub(super) const MIN_PIPE_SEGMENTS: u64 = 4;
/// Largest burst of segmentation offload in bytes (draft-ietf-ccwg-bbr, BBRSetSendQuantum).
const MAX_QUANTUM_BYTES: u64 = 64 << 10;
/// Nominal RTT before the first sample (draft-ietf-ccwg-bbr, BBRInitPacingRate).
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// Largest bandwidth-delay product in bytes. Chosen: it keeps sums in range.
const MAX_BDP_BYTES: u64 = 1 << 48;
/// No bound. Chosen: larger than every rate and volume.
pub(super) const NONE: u64 = u64::MAX;

/// The state of the model; Down, Cruise, Refill and Up are the phases of ProbeBW.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// The phase of the last bandwidth probe to which the arriving acknowledgments belong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// The bounds before a loss, to be restored if it proves spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    pub state: Option<State>,
    pub(super) bw_shortterm: u64,
    pub(super) inflight_shortterm: u64,
    pub(super) inflight_longterm: u64,
}

/// BBR version 3. Rates in bit/s, volumes in bytes; [`NONE`] is no bound.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    pub(super) mss: u64,
    pub(super) initial: u64,
    pub(super) sack: bool,
    pub(super) cwnd: u64,
    pub(super) prior_cwnd: u64,
    pub(super) pacing_rate: u64,
    pub(super) state: State,
    /// Largest rates of the last and of the current cycle.
    pub(super) max_bw: [u64; 2],
    pub(super) bw_shortterm: u64,
    pub(super) inflight_shortterm: u64,
    pub(super) inflight_longterm: u64,
    pub(super) bw_latest: u64,
    pub(super) inflight_latest: u64,
    pub(super) delivered: u64,
    pub(super) round: u64,
    pub(super) round_start: bool,
    pub(super) next_round_delivered: u64,
    pub(super) loss_round_start: bool,
    pub(super) loss_round_delivered: u64,
    pub(super) loss_in_round: bool,
    pub(super) losses_in_round: u32,
    pub(super) full_bw: u64,
    pub(super) full_bw_rounds: u32,
    pub(super) full_bw_now: bool,
    pub(super) full_bw_reached: bool,
    pub(super) drain_start_round: u64,
    pub(super) min_rtt: Option<Duration>,
    pub(super) min_rtt_at: Instant,
    pub(super) probe_rtt_min: Option<Duration>,
    pub(super) probe_rtt_min_at: Instant,
    pub(super) probe_rtt_expired: bool,
    pub(super) probe_rtt_done_at: Option<Instant>,
    pub(super) probe_rtt_round_done: bool,
    pub(super) idle_restart: bool,
    pub(super) has_seen_rtt: bool,
    pub(super) repairing: bool,
    pub(super) saved: Saved,
    pub(super) aggregation: AckAggregation,
    pub(super) ack_phase: AckPhase,
    pub(super) cycle_at: Instant,
    pub(super) probe_wait: Duration,
    pub(super) rounds_since_probe: u64,
    pub(super) probe_up_rounds: u32,
    pub(super) probe_up_acked: u64,
    pub(super) probe_up_per_increase: u64,
    /// Samples belong to a bandwidth probe: they may lower `inflight_longterm`.
    pub(super) probe_sample: bool,
    pub(super) prev_probe_too_high: bool,
    pub(super) prev_probe_precautionary: bool,
    pub(super) random: Stream,
}

impl Bbr3 {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments; `seed`
    /// determines the random times of probes; without `sack` a single loss counts as too many.
    pub fn new(mss: u32, initial: u32, seed: u64, sack: bool) -> Self {
        let mss = u64::from(mss.max(1));
        let initial = mss * u64::from(initial.max(1));
        let nothing = Saved { state: None, bw_shortterm: 0, inflight_shortterm: 0, inflight_longterm: 0 };
        Self {
            mss,
            initial,
            sack,
            cwnd: initial,
            prior_cwnd: 0,
            pacing_rate: 0,
            state: State::Startup,
            max_bw: [0; 2],
            bw_shortterm: NONE,
            inflight_shortterm: NONE,
            inflight_longterm: NONE,
            bw_latest: 0,
            inflight_latest: 0,
            delivered: 0,
            round: 0,
            round_start: false,
            next_round_delivered: 0,
            loss_round_start: false,
            loss_round_delivered: 0,
            loss_in_round: false,
            losses_in_round: 0,
            full_bw: 0,
            full_bw_rounds: 0,
            full_bw_now: false,
            full_bw_reached: false,
            drain_start_round: 0,
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            probe_rtt_min: None,
            probe_rtt_min_at: Instant::ZERO,
            probe_rtt_expired: false,
            probe_rtt_done_at: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            has_seen_rtt: false,
            repairing: false,
            saved: nothing,
            aggregation: AckAggregation::default(),
            ack_phase: AckPhase::Init,
            cycle_at: Instant::ZERO,
            probe_wait: Duration::ZERO,
            rounds_since_probe: 0,
            probe_up_rounds: 0,
            probe_up_acked: 0,
            probe_up_per_increase: NONE,
            probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            random: Stream::new(seed, "bbr3"),
        }
    }
    /// The largest rate of two cycles, in bit/s.
    pub(super) fn largest_bw(&self) -> u64 {
        self.max_bw[0].max(self.max_bw[1])
    }
    /// The bandwidth in use, in bit/s.
    pub(super) fn bandwidth(&self) -> u64 {
        self.largest_bw().min(self.bw_shortterm)
    }
    fn gains(&self) -> (u64, u64) {
        match self.state {
            State::Startup => (STARTUP_GAIN, CWND_GAIN),
            State::Drain => (DRAIN_GAIN, CWND_GAIN),
            State::Down => (DOWN_GAIN, CWND_GAIN),
            State::Cruise | State::Refill => (100, CWND_GAIN),
            State::Up => (UP_GAIN, UP_CWND_GAIN),
            State::ProbeRtt => (100, PROBE_RTT_GAIN),
        }
    }
    pub(super) fn in_cycle(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }
    /// The bandwidth-delay product times a gain in percent, in bytes.
    pub(super) fn bdp(&self, bw: u64, gain: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return self.initial };
        let bytes = u128::from(bytes_in(bw, min_rtt)) * u128::from(gain) / 100;
        u64::try_from(bytes).unwrap_or(NONE).min(MAX_BDP_BYTES)
    }
    /// Adds the quantization budget for bursts of segmentation offload (BBRQuantizationBudget).
    fn with_quantization_budget(&self, bytes: u64) -> u64 {
        let quantum = (self.pacing_rate / 8000).min(MAX_QUANTUM_BYTES).max(2 * self.mss);
        let up = if self.state == State::Up { 2 * self.mss } else { 0 };
        bytes.max(3 * quantum).max(MIN_PIPE_SEGMENTS * self.mss) + up
    }
    /// The bandwidth-delay product with the quantization budget, in bytes.
    pub(super) fn inflight(&self, bw: u64) -> u64 {
        self.with_quantization_budget(self.bdp(bw, 100))
    }
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        if self.inflight_longterm == NONE {
            return NONE;
        }
        let headroom = (self.inflight_longterm / 100 * HEADROOM_PERCENT).max(self.mss);
        self.inflight_longterm.saturating_sub(headroom).max(MIN_PIPE_SEGMENTS * self.mss)
    }
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp(self.bandwidth(), 100).min(self.cwnd)
    }
    fn set_pacing_rate(&mut self, gain: u64) {
        let rate = u128::from(self.bandwidth()) * u128::from(gain * (100 - PACING_MARGIN_PERCENT)) / 10_000;
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }
    fn pace_initially(&mut self, rtt: Option<Duration>) {
        self.has_seen_rtt |= rtt.is_some();
        let rtt = rtt.unwrap_or(NOMINAL_RTT).max(Duration::from_nanos(1));
        let rate = u128::from(Rate::of(Bytes(self.initial), rtt).0) * u128::from(STARTUP_GAIN) / 100;
        self.pacing_rate = u64::try_from(rate).unwrap_or(u64::MAX);
    }
    pub(super) fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }
    pub(super) fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_rounds, self.full_bw_now) = (0, 0, false);
    }
    pub(super) fn reset_congestion_signals(&mut self) {
        (self.loss_in_round, self.bw_latest, self.inflight_latest) = (false, 0, 0);
    }
    pub(super) fn reset_shortterm(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (NONE, NONE);
    }

    fn check_full_bandwidth(&mut self, sample: &AckSample) {
        if self.full_bw_now || !self.round_start || sample.rate.app_limited {
            return;
        }
        let rate = sample.rate.rate().map_or(0, |rate| rate.0);
        if u128::from(rate) * 4 >= u128::from(self.full_bw) * 5 {
            self.reset_full_bw();
            self.full_bw = rate;
            return;
        }
        self.full_bw_rounds += 1;
        self.full_bw_now = self.full_bw_rounds >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }
    fn check_startup_and_drain(&mut self, now: Instant, sample: &AckSample) {
        self.check_startup_loss(sample);
        if self.state == State::Startup && self.full_bw_reached {
            self.state = State::Drain;
            self.drain_start_round = self.round;
        }
        let drained = sample.in_flight.0 <= self.inflight(self.bandwidth());
        if self.state == State::Drain && (drained || self.round > self.drain_start_round + MAX_DRAIN_ROUNDS) {
            self.start_down(now);
        }
    }
    pub(super) fn save_cwnd(&mut self) {
        let undisturbed = !self.repairing && self.state != State::ProbeRtt;
        self.prior_cwnd = if undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }
    fn set_cwnd(&mut self, sample: &AckSample, gain: u64) {
        let repairing = sample.in_recovery || sample.in_loss;
        if std::mem::replace(&mut self.repairing, repairing) && !repairing {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        let bw = self.bandwidth();
        let target = self.with_quantization_budget(self.bdp(bw, gain) + self.aggregation.allowance(bw));
        let new = sample.acked.0 - sample.acked_again.0;
        if self.full_bw_reached {
            self.cwnd = (self.cwnd + new).min(target);
        } else if self.cwnd < target || sample.delivered.0 < self.initial {
            self.cwnd += new;
        }
        let min_cwnd = MIN_PIPE_SEGMENTS * self.mss;
        self.cwnd = self.cwnd.max(min_cwnd);
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::ProbeRtt | State::Cruise => self.inflight_with_headroom(),
            State::Startup | State::Drain => NONE,
        };
        self.cwnd = self.cwnd.min(cap.min(self.inflight_shortterm).max(min_cwnd));
    }
}

/// `percent` percent of a value.
pub(super) fn percent(value: u64, percent: u64) -> u64 {
    (u128::from(value) * u128::from(percent) / 100) as u64
}

impl CongestionControl for Bbr3 {
    fn on_established(&mut self, now: Instant, rtt: Option<Duration>) {
        self.min_rtt = rtt;
        self.min_rtt_at = now;
        self.probe_rtt_min = rtt;
        self.probe_rtt_min_at = now;
        self.pace_initially(rtt);
    }
    fn on_transmit_start(&mut self, now: Instant, app_limited: bool) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.in_cycle() {
            self.set_pacing_rate(100);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
    fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        self.delivered = sample.delivered.0;
        if sample.lost > Bytes::ZERO {
            self.on_loss(now, sample);
        }
        self.update_signals(sample);
        let halves = if self.full_bw_reached { AGGREGATION_ROUNDS } else { 1 };
        self.aggregation.on_ack(now, sample.acked, self.bandwidth(), self.cwnd, (self.round_start, halves));
        self.check_full_bandwidth(sample);
        self.check_startup_and_drain(now, sample);
        self.update_cycle(now, sample);
        self.update_min_rtt(now, sample);
        self.check_probe_rtt(now, sample);
        if self.loss_round_start {
            self.bw_latest = sample.rate.rate().map_or(0, |rate| rate.0);
            self.inflight_latest = sample.rate.delivered.0;
        }
        if let (false, Some(srtt)) = (self.has_seen_rtt, sample.srtt) {
            self.pace_initially(Some(srtt));
        }
        let (pacing_gain, cwnd_gain) = self.gains();
        self.set_pacing_rate(pacing_gain);
        self.set_cwnd(sample, cwnd_gain);
    }
    fn on_congestion(&mut self, _now: Instant, event: CongestionEvent, in_flight: Bytes) {
        match event {
            CongestionEvent::FastRecovery => self.save_cwnd(),
            CongestionEvent::Timeout | CongestionEvent::RepeatedTimeout => {
                self.save_cwnd();
                self.note_loss();
                self.repairing = true;
                self.cwnd = in_flight.0 + self.mss;
            }
            CongestionEvent::Undo => self.undo(),
            CongestionEvent::RecoveryEnd | CongestionEvent::Ecn => {}
        }
    }
    fn cwnd(&self) -> Bytes {
        Bytes(self.cwnd)
    }
    fn ssthresh(&self) -> Bytes {
        Bytes(u64::MAX)
    }
    fn pacing_rate(&self) -> Option<Rate> {
        (self.pacing_rate > 0).then_some(Rate(self.pacing_rate))
    }
    fn owns_recovery_window(&self) -> bool {
        true
    }
    fn limits_itself(&self) -> bool {
        self.state == State::ProbeRtt
    }
}

#[cfg(test)]
#[path = "bbr3_tests.rs"]
mod tests;
