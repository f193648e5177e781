//! BBR version 1 as in Linux `tcp_bbr` (Cardwell, Cheng, Gunn, Yeganeh and Jacobson, ACM Queue 14, 2016): the
//! largest delivery rate of ten round trips and the smallest RTT of ten seconds model the path; pacing rate
//! and window follow.
//!
//! All constants are Linux's, including the window's allowance for bursts of segmentation offload. Left out:
//! the correction of the bytes in flight for the departure time of a paced segment, here a fraction of one
//! segment.

use super::ack_aggregation::{AGGREGATION_ROUNDS, AckAggregation};
use super::policer::Policer;
use super::windowed_max::WindowedMax;
use crate::cc::control::{AckSample, CongestionControl, CongestionEvent};
use paceline_net::{Bytes, Duration, Instant, Rate, Stream};

/// The gain 1 (Linux `BBR_UNIT`).
const UNIT: u64 = 256;
/// Gain of pacing and window in STARTUP, 2/ln 2 (Linux `bbr_high_gain`).
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Pacing gain in DRAIN (Linux `bbr_drain_gain`).
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Window gain in PROBE_BW (Linux `bbr_cwnd_gain`).
const CWND_GAIN: u64 = UNIT * 2;
/// Pacing gains of the phases of PROBE_BW (Linux `bbr_pacing_gain`).
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Round trips over which the bandwidth is the maximum (Linux `bbr_bw_rtts`).
const BW_ROUNDS: u64 = 10;
/// Time over which the RTT is the minimum (Linux `bbr_min_rtt_win_sec`).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// Shortest duration of PROBE_RTT (Linux `bbr_probe_rtt_mode_ms`).
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Smallest window in segments, for delayed ACKs (Linux `bbr_cwnd_min_target`).
const MIN_CWND_SEGMENTS: u64 = 4;
/// STARTUP ends after this many round trips without growth of the bandwidth by a quarter (Linux
/// `bbr_full_bw_cnt`).
const FULL_BW_ROUNDS: u32 = 3;
/// Window in segments while no RTT is known (Linux `TCP_INIT_CWND`).
const INITIAL_BDP_SEGMENTS: u64 = 10;
/// Pacing is this share of the bandwidth, in percent (Linux `bbr_pacing_margin_percent`).
const PACING_PERCENT: u128 = 99;
/// Nominal RTT before the first sample (Linux `bbr_init_pacing_rate_from_rtt`).
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// Pacing rate in bit/s below which a burst of segmentation offload has one segment (Linux
/// `bbr_min_tso_rate`).
const MIN_TSO_RATE_BPS: u64 = 1_200_000;
/// Largest burst of segmentation offload in bytes: `GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER` (Linux
/// `bbr_tso_segs_goal`).
const MAX_TSO_BYTES: u64 = 65_536 - 1 - 320;
/// Largest burst of segmentation offload in segments (Linux `bbr_tso_segs_goal`).
const MAX_TSO_SEGMENTS: u64 = 127;
/// Largest bandwidth-delay product in segments. Chosen: it keeps products with the segment size in range.
const MAX_BDP_SEGMENTS: u64 = 1 << 32;

/// The state of the model (Linux `bbr_mode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The recovery of the sender.
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
    /// In bit/s; zero before the connection is established.
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
    /// A timeout marked losses that no sample contains yet.
    timed_out: bool,
    policer: Policer,
    aggregation: AckAggregation,
    random: Stream,
}

impl Bbr {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments; `seed`
    /// determines the random first phases of its cycles.
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
    /// The bandwidth-delay product times a gain, in bytes of whole segments.
    fn bdp(&self, bw: u64, gain: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return INITIAL_BDP_SEGMENTS * self.mss };
        let bits = u128::from(bw) * u128::from(min_rtt.as_nanos()) / 1_000_000_000 * u128::from(gain);
        let segments = bits.div_ceil(u128::from(8 * UNIT * self.mss));
        u64::try_from(segments).unwrap_or(u64::MAX).min(MAX_BDP_SEGMENTS) * self.mss
    }
    /// Adds the quantization budget: three bursts of segmentation offload, and an even number of segments
    /// (Linux `bbr_quantization_budget`).
    fn with_quantization_budget(&self, bytes: u64) -> u64 {
        let burst = (self.pacing_rate / 8192).min(MAX_TSO_BYTES) / self.mss;
        let least = if self.pacing_rate < MIN_TSO_RATE_BPS { 1 } else { 2 };
        let segments = bytes / self.mss + 3 * burst.max(least).min(MAX_TSO_SEGMENTS);
        let probing = self.mode == Mode::ProbeBw && self.cycle == 0;
        (segments.next_multiple_of(2) + if probing { 2 } else { 0 }) * self.mss
    }
    fn inflight(&self, bw: u64, gain: u64) -> u64 {
        self.with_quantization_budget(self.bdp(bw, gain))
    }
    fn set_pacing_rate(&mut self, gain: u64) {
        let rate = u128::from(self.bandwidth()) * u128::from(gain) / u128::from(UNIT) * PACING_PERCENT / 100;
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }
    fn pace_initially(&mut self, rtt: Option<Duration>) {
        self.has_seen_rtt |= rtt.is_some();
        let nominal = Rate::of(Bytes(self.cwnd), rtt.unwrap_or(NOMINAL_RTT).max(Duration::from_nanos(1)));
        let rate = u128::from(nominal.0) * u128::from(HIGH_GAIN) / u128::from(UNIT) * PACING_PERCENT / 100;
        self.pacing_rate = u64::try_from(rate).unwrap_or(u64::MAX);
    }
    fn save_cwnd(&mut self) {
        let undisturbed = self.repair == Repair::Nothing && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }
    fn enter_probe_bw(&mut self, now: Instant) {
        self.mode = Mode::ProbeBw;
        // Any phase except the one with the gain 3/4.
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
        let ends = if gain == UNIT {
            elapsed
        } else if gain > UNIT {
            // Until the flight has reached the gain, unless losses show that the buffer is too small for it.
            elapsed && (sample.lost > Bytes::ZERO || sample.prior_in_flight.0 >= self.inflight(bw, gain))
        } else {
            elapsed || sample.prior_in_flight.0 <= self.inflight(bw, UNIT)
        };
        if self.mode == Mode::ProbeBw && ends {
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
        // The ACK of a single small segment may have been delayed.
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
            } else if sample.in_flight.0 <= MIN_CWND_SEGMENTS * self.mss {
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
        self.min_rtt_at = now; // the next PROBE_RTT follows in ten seconds
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full_bw_reached {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }
    /// Adjusts the window to the sender's recovery; true if that sets the window for this acknowledgment
    /// (Linux `bbr_set_cwnd_to_recover_or_restore`).
    fn adjust_to_recovery(&mut self, sample: &AckSample) -> bool {
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
        if acked > 0 && !self.adjust_to_recovery(sample) {
            let bw = self.bandwidth();
            let spare = if self.full_bw_reached { self.aggregation.allowance(bw) } else { 0 };
            let target = self.with_quantization_budget(self.bdp(bw, gain) + spare);
            let new = acked - sample.acked_again.0;
            if self.full_bw_reached {
                self.cwnd = (self.cwnd + new).min(target);
            } else if self.cwnd < target || sample.delivered.0 < self.initial {
                self.cwnd += new;
            }
            self.cwnd = self.cwnd.max(MIN_CWND_SEGMENTS * self.mss);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_CWND_SEGMENTS * self.mss);
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
