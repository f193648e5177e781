//! BBR version 1 as Linux `tcp_bbr` (Cardwell, Cheng, Gunn, Yeganeh and Jacobson, ACM Queue 14, 2016): the largest
//! delivery rate of ten round trips and the smallest RTT of ten seconds make the model; pacing and window follow it.
//!
//! All constants are Linux's, the allowance of the window for bursts of segmentation offload included. Left out: the
//! correction of the bytes in flight for the time at which a paced segment leaves (a fraction of one segment here).

use super::ack_aggregation::{AGGREGATION_ROUNDS, AckAggregation};
use super::policer::Policer;
use super::windowed_max::WindowedMax;
use crate::cc::control::{AckSample, CongestionControl, CongestionEvent};
use paceline_net::{Bytes, Duration, Instant, Rate, Stream};

/// Gains are in 1/256.
pub(super) const UNIT: u64 = 256;
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
const CWND_GAIN: u64 = UNIT * 2;
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Round trips that the bandwidth is the maximum of.
const BW_ROUNDS: u64 = 10;
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Smallest window, in segments: what delayed ACKs need.
const MIN_CWND: u64 = 4;
/// STARTUP ends when this many round trips did not bring a quarter more.
const FULL_BW_ROUNDS: u32 = 3;

/// Where the cycle stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// What the sender repairs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum Repair {
    Nothing,
    Recovery,
    Loss,
}

/// BBR version 1.
#[derive(Clone, Debug)]
pub struct Bbr {
    mss: u64,
    initial: u64,
    cwnd: u64,
    prior_cwnd: u64,
    ssthresh: u64,
    /// bit/s; zero before the connection is established.
    pacing_rate: u64,
    mode: Mode,
    bw: WindowedMax,
    round: u64,
    round_start: bool,
    next_round_delivered: u64,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    probe_rtt_done_at: Option<Instant>,
    probe_rtt_round_done: bool,
    full_bw: u64,
    full_bw_rounds: u32,
    full_bw_reached: bool,
    cycle: usize,
    cycle_at: Instant,
    idle_restart: bool,
    has_seen_rtt: bool,
    repair: Repair,
    packet_conservation: bool,
    /// A timeout told losses that no sample has shown yet.
    timed_out: bool,
    policer: Policer,
    aggregation: AckAggregation,
    random: Stream,
}

impl Bbr {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments; `seed` draws the
    /// phases that its cycles begin with.
    pub fn new(mss: u32, initial: u32, seed: u64) -> Self {
        let mss = u64::from(mss.max(1));
        let initial = mss * u64::from(initial.max(1));
        Self {
            mss,
            initial,
            cwnd: initial,
            prior_cwnd: 0,
            ssthresh: u64::MAX,
            pacing_rate: 0,
            mode: Mode::Startup,
            bw: WindowedMax::default(),
            round: 0,
            round_start: false,
            next_round_delivered: 0,
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            probe_rtt_done_at: None,
            probe_rtt_round_done: false,
            full_bw: 0,
            full_bw_rounds: 0,
            full_bw_reached: false,
            cycle: 0,
            cycle_at: Instant::ZERO,
            idle_restart: false,
            has_seen_rtt: false,
            repair: Repair::Nothing,
            packet_conservation: false,
            timed_out: false,
            policer: Policer::default(),
            aggregation: AckAggregation::default(),
            random: Stream::new(seed, "bbr"),
        }
    }
    /// The bandwidth in use, in bit/s.
    fn bandwidth(&self) -> u64 {
        self.policer.rate().unwrap_or(self.bw.get())
    }
    fn gains(&self) -> (u64, u64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.rate().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        }
    }
    /// Bytes in flight that a gain on the bandwidth-delay product allows, in whole segments.
    fn bdp(&self, bw: u64, gain: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return 10 * self.mss };
        let bits = u128::from(bw) * u128::from(min_rtt.as_nanos()) / 1_000_000_000 * u128::from(gain);
        let segments = bits.div_ceil(u128::from(8 * UNIT * self.mss));
        u64::try_from(segments).unwrap_or(u64::MAX).min(1 << 32) * self.mss
    }
    /// Adds what bursts on host and network need: three segmentation offloads, and an even number of segments.
    fn with_budget(&self, bytes: u64) -> u64 {
        let burst = (self.pacing_rate / 8192).min(65_536 - 1 - 320) / self.mss;
        let least = if self.pacing_rate < 1_200_000 { 1 } else { 2 };
        let segments = bytes / self.mss + 3 * burst.max(least).min(127);
        let probing = self.mode == Mode::ProbeBw && self.cycle == 0;
        (segments.next_multiple_of(2) + if probing { 2 } else { 0 }) * self.mss
    }
    fn inflight(&self, bw: u64, gain: u64) -> u64 {
        self.with_budget(self.bdp(bw, gain))
    }
    fn set_pacing_rate(&mut self, gain: u64) {
        let rate = u128::from(self.bandwidth()) * u128::from(gain) / u128::from(UNIT) * 99 / 100;
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }
    fn pace_initially(&mut self, rtt: Option<Duration>) {
        self.has_seen_rtt |= rtt.is_some();
        let nominal =
            Rate::of(Bytes(self.cwnd), rtt.unwrap_or(Duration::from_millis(1)).max(Duration::from_nanos(1)));
        let rate = u128::from(nominal.0) * u128::from(HIGH_GAIN) / u128::from(UNIT) * 99 / 100;
        self.pacing_rate = u64::try_from(rate).unwrap_or(u64::MAX);
    }
    fn save_cwnd(&mut self) {
        let undisturbed = self.repair == Repair::Nothing && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }
    fn enter_probe_bw(&mut self, now: Instant) {
        self.mode = Mode::ProbeBw;
        // Any phase but the one that drains.
        self.cycle = 7 - self.random.below(7) as usize;
        self.advance_cycle(now);
    }
    fn advance_cycle(&mut self, now: Instant) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_at = now;
    }

    fn update_bandwidth(&mut self, now: Instant, sample: &AckSample) {
        self.round_start = false;
        let Some(rate) = sample.rate.rate() else { return };
        if sample.rate.prior_delivered.0 >= self.next_round_delivered {
            self.next_round_delivered = sample.delivered.0;
            self.round += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        let losses = std::mem::take(&mut self.timed_out) || sample.lost > Bytes::ZERO;
        let probing = self.mode == Mode::ProbeBw;
        if self.policer.on_ack(now, sample, losses, self.round_start, probing) {
            self.enter_probe_bw(now);
        }
        if !sample.rate.app_limited || rate.0 >= self.bw.get() {
            self.bw.update(BW_ROUNDS, self.round, rate.0);
        }
    }
    fn update_cycle(&mut self, now: Instant, sample: &AckSample) {
        let elapsed = now.since(self.cycle_at) > self.min_rtt.unwrap_or(Duration::MAX);
        let (gain, bw) = (self.gains().0, self.bw.get());
        let over = if gain == UNIT {
            elapsed
        } else if gain > UNIT {
            // Long enough to fill the pipe by the gain, unless losses say that its buffer cannot hold it.
            elapsed && (sample.lost > Bytes::ZERO || sample.prior_in_flight.0 >= self.inflight(bw, gain))
        } else {
            elapsed || sample.prior_in_flight.0 <= self.inflight(bw, UNIT)
        };
        if self.mode == Mode::ProbeBw && over {
            self.advance_cycle(now);
        }
    }
    fn check_full_bandwidth(&mut self, sample: &AckSample) {
        if self.full_bw_reached || !self.round_start || sample.rate.app_limited {
            return;
        }
        if u128::from(self.bw.get()) * 4 >= u128::from(self.full_bw) * 5 {
            (self.full_bw, self.full_bw_rounds) = (self.bw.get(), 0);
            return;
        }
        self.full_bw_rounds += 1;
        self.full_bw_reached = self.full_bw_rounds >= FULL_BW_ROUNDS;
    }
    fn check_drain(&mut self, now: Instant, sample: &AckSample) {
        let target = self.inflight(self.bw.get(), UNIT);
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            self.ssthresh = target;
        }
        if self.mode == Mode::Drain && sample.in_flight.0 <= target {
            self.enter_probe_bw(now);
        }
    }
    fn update_min_rtt(&mut self, now: Instant, sample: &AckSample) {
        let expired = now > self.min_rtt_at + MIN_RTT_WINDOW;
        // A lone small segment over the round trip may have waited for the receiver's timer.
        let maybe_delayed =
            sample.acked.0 < self.mss && sample.rate.prior_delivered.0 + sample.acked.0 == sample.delivered.0;
        if let Some(rtt) = sample.rtt
            && (self.min_rtt.is_none_or(|min| rtt < min) || (expired && !maybe_delayed))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd();
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_done_at = None;
        }
        if self.mode == Mode::ProbeRtt {
            if self.probe_rtt_done_at.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(now);
                }
            } else if sample.in_flight.0 <= MIN_CWND * self.mss {
                self.probe_rtt_done_at = Some(now + PROBE_RTT_TIME);
                self.probe_rtt_round_done = false;
                self.next_round_delivered = sample.delivered.0;
            }
        }
        if sample.rate.delivered > Bytes::ZERO {
            self.idle_restart = false;
        }
    }
    fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_rtt_done_at.is_none_or(|at| now <= at) {
            return;
        }
        self.min_rtt_at = now; // the next one in ten seconds
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full_bw_reached {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }
    /// Follows the sender's repairs; true if the window is thereby set for this acknowledgment.
    fn follow_repair(&mut self, sample: &AckSample) -> bool {
        let (acked, lost) = (sample.acked.0, sample.lost.0);
        let repair = match (sample.in_recovery, sample.in_loss) {
            (true, _) => Repair::Recovery,
            (_, true) => Repair::Loss,
            _ => Repair::Nothing,
        };
        if lost > 0 {
            self.cwnd = self.cwnd.saturating_sub(lost).max(self.mss);
        }
        let before = std::mem::replace(&mut self.repair, repair);
        if repair == Repair::Recovery && before != Repair::Recovery {
            self.packet_conservation = true;
            self.next_round_delivered = sample.delivered.0;
            self.cwnd = sample.in_flight.0 + acked;
        } else if repair == Repair::Nothing && before != Repair::Nothing {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(sample.in_flight.0 + acked);
        }
        self.packet_conservation
    }
    fn set_cwnd(&mut self, sample: &AckSample, gain: u64) {
        let acked = sample.acked.0;
        if acked > 0 && !self.follow_repair(sample) {
            let bw = self.bandwidth();
            let spare = if self.full_bw_reached { self.aggregation.allowance(bw) } else { 0 };
            let target = self.with_budget(self.bdp(bw, gain) + spare);
            if self.full_bw_reached {
                self.cwnd = (self.cwnd + acked).min(target);
            } else if self.cwnd < target || sample.delivered.0 < self.initial {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(MIN_CWND * self.mss);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_CWND * self.mss);
        }
        self.cwnd = self.cwnd.max(self.mss);
    }
}

impl CongestionControl for Bbr {
    fn on_established(&mut self, now: Instant, rtt: Option<Duration>) {
        self.min_rtt = rtt;
        self.min_rtt_at = now;
        self.cycle_at = now;
        self.pace_initially(rtt);
    }
    fn on_transmit_start(&mut self, now: Instant, app_limited: bool) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBw => self.set_pacing_rate(UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(now),
            _ => {}
        }
    }
    fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        self.update_bandwidth(now, sample);
        if sample.rate.rate().is_some() {
            let rounds = (self.round_start, AGGREGATION_ROUNDS);
            self.aggregation.on_ack(now, sample.acked, self.bandwidth(), self.cwnd, rounds);
        }
        self.update_cycle(now, sample);
        self.check_full_bandwidth(sample);
        self.check_drain(now, sample);
        self.update_min_rtt(now, sample);
        let (pacing_gain, cwnd_gain) = self.gains();
        if let (false, Some(srtt)) = (self.has_seen_rtt, sample.srtt) {
            self.pace_initially(Some(srtt));
        }
        self.set_pacing_rate(pacing_gain);
        self.set_cwnd(sample, cwnd_gain);
    }
    fn on_congestion(&mut self, _now: Instant, event: CongestionEvent, in_flight: Bytes) {
        match event {
            CongestionEvent::FastRecovery => self.save_cwnd(),
            CongestionEvent::Timeout | CongestionEvent::RepeatedTimeout => {
                if event == CongestionEvent::Timeout {
                    self.save_cwnd();
                }
                self.cwnd = in_flight.0 + self.mss;
                self.repair = Repair::Loss;
                self.full_bw = 0;
                self.timed_out = true;
            }
            CongestionEvent::Undo => {
                (self.full_bw, self.full_bw_rounds) = (0, 0);
                self.policer = Policer::default();
            }
            CongestionEvent::RecoveryEnd | CongestionEvent::Ecn => {}
        }
    }
    fn cwnd(&self) -> Bytes {
        Bytes(self.cwnd)
    }
    fn ssthresh(&self) -> Bytes {
        Bytes(self.ssthresh)
    }
    fn pacing_rate(&self) -> Option<Rate> {
        (self.pacing_rate > 0).then_some(Rate(self.pacing_rate))
    }
    fn owns_recovery_window(&self) -> bool {
        true
    }
    fn limits_itself(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }
}

#[cfg(test)]
#[path = "bbr1_tests.rs"]
mod tests;
