//! The fields of a sender, its construction and its queries.
//!
//! Offsets count bytes from the first byte of data, in 64 bits; FIN counts one. Windows count bytes, not
//! segments as in Linux: a small segment uses less of a window.

use super::path::pacing::{PacedFlow, Pacer};
use super::path::rate::RateSampler;
use super::path::rtt::RttEstimator;
use super::recovery::{Phase, Recovery, Scoreboard, TailProbe};
use super::timers::{LossTimer, PersistTimer, Retries};
use super::window::{PeerWindow, WindowUsage};
use crate::application::Writer;
use crate::cc::{CongestionControl, Controller, Interval, Setting};
use crate::config::{EndpointConfig, Source};
use crate::ecn::EcnState;
use crate::limits::{Limit, LimitTracker};
use crate::options::{LossRecovery, Nagle, NewRenoTimer, PrrMode};
use crate::timestamps::{since_echo, timestamp};
use paceline_net::{Bytes, Duration, Instant, Rate, SackBlocks, SeqNumber};

/// A segment to transmit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub seq: SeqNumber,
    /// Bytes of payload.
    pub payload: u32,
    pub fin: bool,
    /// PSH: the segment ends the data that the application has written.
    pub push: bool,
    /// The ECN codepoint of its IP header.
    pub ecn: u8,
    pub cwr: bool,
}

/// The fields of an arriving acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckInfo<'a> {
    pub seq: SeqNumber,
    pub ack: SeqNumber,
    /// Bytes, scaled.
    pub window: u64,
    pub sack: &'a SackBlocks,
    /// TSecr.
    pub echo: Option<u32>,
    /// The segment carried payload or FIN, so it is no duplicate ACK (RFC 5681 §2).
    pub has_data: bool,
    /// ECN-Echo.
    pub ece: bool,
}

/// A duplicate that the peer reports (RFC 2883).
#[derive(Clone, Copy, Debug)]
pub(super) struct Dsack {
    /// End of the duplicate, as an offset.
    pub end: u64,
    pub segments: u32,
}

/// The properties of an acknowledgment on which the phase of recovery depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckSummary {
    /// SND.UNA advanced.
    pub advanced: bool,
    /// A duplicate (RFC 5681 §2), or an acknowledgment that sacked data.
    pub duplicate: bool,
    pub dsack: Option<Dsack>,
    /// TSecr, if SND.UNA advanced.
    pub echo: Option<u32>,
    /// ECN-Echo, on a connection with ECN.
    pub ece: bool,
}

/// The fields of [`EndpointConfig`] that configure a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub recovery: LossRecovery,
    pub newreno_timer: NewRenoTimer,
    pub newreno_careful: bool,
    pub prr: PrrMode,
    pub tail_loss_probe: bool,
    pub frto: bool,
    pub undo: bool,
    pub limited_transmit: bool,
    pub idle_restart: bool,
    pub nagle: Nagle,
    pub retries: u32,
    pub min_rto: Duration,
    /// Segments.
    pub initial_window: u32,
}

/// The sending half of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(super) rules: Rules,
    /// Sequence number of the first byte of data.
    pub(super) first_seq: SeqNumber,
    /// Payload bytes of a full segment.
    pub(super) mss: u32,
    /// SACK was agreed on and the configured recovery uses it.
    pub(super) uses_sack: bool,
    pub(super) snd_una: u64,
    pub(super) snd_nxt: u64,
    pub(super) window: PeerWindow,
    pub(crate) writer: Writer,
    /// FIN follows the last byte.
    pub(super) closes: bool,
    /// Bytes.
    pub(super) send_buffer: u64,
    pub(super) scoreboard: Scoreboard,
    pub(super) recovery: Recovery,
    pub(super) control: Controller,
    pub(crate) ecn: EcnState,
    pub(super) rtt: RttEstimator,
    pub(super) rates: RateSampler,
    /// Duplicate ACKs since SND.UNA last advanced.
    pub(super) dup_acks: u32,
    pub(super) tail_probe: TailProbe,
    pub(super) pacer: Pacer,
    pub(super) usage: WindowUsage,
    /// End of the last small segment sent (Linux `snd_sml`, for Minshall's variant of Nagle).
    pub(super) small_segment_end: u64,
    pub(super) last_sent_at: Option<Instant>,
    pub(super) loss_timer: LossTimer,
    pub(super) persist: PersistTimer,
    pub(super) retries: Retries,
    pub(crate) limits: LimitTracker,
}

impl Sender {
    /// A sender of `source` with full segments of `mss` bytes; `sack` as agreed in the handshake.
    pub fn new(config: &EndpointConfig, source: Source, mss: u32, sack: bool) -> Self {
        let rules = Rules {
            recovery: config.loss_recovery,
            newreno_timer: config.newreno_timer,
            newreno_careful: config.newreno_careful,
            prr: config.prr,
            tail_loss_probe: config.tail_loss_probe,
            frto: config.frto,
            undo: config.undo,
            limited_transmit: config.limited_transmit,
            idle_restart: config.idle_restart,
            nagle: config.nagle,
            retries: config.retries,
            min_rto: config.min_rto,
            initial_window: config.initial_window,
        };
        let uses_sack = sack && config.loss_recovery.uses_sack();
        Self {
            rules,
            first_seq: config.isn + 1,
            mss,
            uses_sack,
            snd_una: 0,
            snd_nxt: 0,
            window: PeerWindow::default(),
            writer: Writer::new(source, config.request),
            closes: source.closes_first(),
            send_buffer: config.send_buffer.0.max(u64::from(mss)),
            scoreboard: Scoreboard::default(),
            recovery: Recovery::new(),
            control: config.control(mss, uses_sack),
            ecn: EcnState::default(),
            rtt: RttEstimator::new(config),
            rates: RateSampler::default(),
            dup_acks: 0,
            tail_probe: TailProbe::default(),
            pacer: Pacer::new(config),
            usage: WindowUsage::default(),
            small_segment_end: 0,
            last_sent_at: None,
            loss_timer: LossTimer::default(),
            persist: PersistTimer::default(),
            retries: Retries::default(),
            limits: LimitTracker::default(),
        }
    }
    /// Sets the window of the peer's SYN, or of the ACK that ends the handshake.
    pub fn set_window(&mut self, seq: SeqNumber, window: u64) {
        self.window.set(seq, self.snd_una, window);
    }
    /// The handshake is complete; it took `rtt` if the SYN was sent once. Otherwise the timestamp `echo`
    /// gives the RTT.
    pub fn on_established(&mut self, now: Instant, rtt: Option<Duration>, echo: Option<u32>) {
        match (rtt, echo.and_then(|echo| since_echo(echo, timestamp(now)))) {
            (Some(rtt), _) => self.rtt.on_sample(rtt, 0, 0),
            (None, Some(rtt)) => self.rtt.on_coarse_sample(rtt, 0, 0),
            (None, None) => self.rtt.on_lost_syn(),
        }
        self.writer.start(now);
        self.control.on_established(now, rtt);
    }
    /// Starts the accounting of [`Limit`]s with the handshake, for a side that has something to send.
    pub fn start_limits(&mut self, opened_at: Instant) {
        if self.stream_end() > 0 {
            self.limits.set(opened_at, Limit::Handshake);
        }
    }
    /// Sends FIN after the last byte; without effect on a source without end.
    pub fn close(&mut self) {
        self.closes = true;
    }
    /// End of the data; `u64::MAX` for a source without end.
    pub fn stream_end(&self) -> u64 {
        self.writer.total()
    }
    pub fn seq_next(&self) -> SeqNumber {
        self.first_seq + self.snd_nxt as u32
    }
    pub fn seq_una(&self) -> SeqNumber {
        self.first_seq + self.snd_una as u32
    }
    pub fn fin_sent(&self) -> bool {
        self.stream_end() != u64::MAX && self.snd_nxt > self.stream_end()
    }
    pub fn fin_acked(&self) -> bool {
        self.stream_end() != u64::MAX && self.snd_una > self.stream_end()
    }
    /// Whether every byte of a finite source was acknowledged.
    pub fn is_complete(&self) -> bool {
        self.snd_una >= self.stream_end()
    }
    /// Whether nothing is outstanding and nothing waits to be sent.
    pub fn is_idle(&self) -> bool {
        self.scoreboard.is_empty() && self.snd_nxt >= self.writer.written()
    }
    /// Whether this side has no data and has sent none: it only acknowledges.
    pub fn only_acknowledges(&self) -> bool {
        self.snd_nxt == 0 && self.stream_end() == 0 && !self.closes && !self.persist.is_probe_due()
    }
    /// Whether the connection is over because the peer does not answer.
    pub fn has_given_up(&self) -> bool {
        self.retries.has_given_up()
    }
    /// The window in force in bytes: that of PRR during a recovery, unless the control has its own.
    pub fn cwnd(&self) -> u64 {
        match self.recovery.window() {
            Some(window) if !self.control.owns_recovery_window() => window,
            _ => self.control.cwnd().0,
        }
    }
    pub fn control(&self) -> &Controller {
        &self.control
    }
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }
    /// Bytes estimated to be in the network (RFC 6675 §4, pipe).
    pub fn in_flight(&self) -> u64 {
        self.scoreboard.in_flight()
    }
    /// The largest window that the peer has offered, in bytes.
    pub fn largest_window(&self) -> u64 {
        self.window.largest()
    }
    pub(super) fn paced_flow(&self) -> PacedFlow {
        PacedFlow {
            cwnd: self.control.cwnd().0,
            ssthresh: self.control.ssthresh().0,
            outstanding: self.scoreboard.outstanding(),
            in_flight: self.scoreboard.in_flight(),
            srtt: self.rtt.srtt(),
        }
    }
    /// The rate at which segments are spaced at `now`; none without pacing.
    pub fn pacing_rate(&self, now: Instant) -> Option<Rate> {
        self.pacer.rate(now, self.control.pacing_rate(), || self.paced_flow())
    }
    /// Name of the congestion control's state, as [`crate::Snapshot::congestion`].
    pub fn congestion_state(&self) -> &'static str {
        match self.recovery.phase() {
            Phase::Fast => "recovery",
            Phase::Timeout => "timeout_recovery",
            Phase::Cwr => "ecn_reduction",
            Phase::Open if self.control.pacing_rate().is_some() => "open",
            Phase::Open if self.control.cwnd() < self.control.ssthresh() => "slow_start",
            Phase::Open => "congestion_avoidance",
        }
    }
    /// The period of the TDD cell on the path, if pacing or clean delays use one and it is known.
    pub fn pacing_period(&self) -> Option<Duration> {
        self.pacer.period()
    }
    /// The time of the next timer, or of the next paced segment.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let until = self.pacer.until();
        let paced = (until > now && self.is_ready_to_send()).then_some(until);
        let timers = [self.loss_timer.deadline(), self.persist.deadline(), self.writer.deadline()];
        Instant::earliest([timers[0], timers[1], timers[2], paced])
    }
    fn is_ready_to_send(&self) -> bool {
        self.scoreboard.in_flight() < self.cwnd()
            && (self.snd_nxt < self.writer.written() || !self.scoreboard.is_empty())
    }
    /// Whether the congestion window limits the sender and may grow (RFC 7661 §4.4). In slow start, as in
    /// Linux, using half of it is enough.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        let (cwnd, ssthresh) = (self.control.cwnd().0, self.control.ssthresh().0);
        self.usage.is_limited() || (cwnd < ssthresh && cwnd < 2 * self.usage.most_outstanding())
    }
    /// Sets window and pacing rate of [`crate::Variant::External`]; without effect on other controls.
    pub fn set_external(&mut self, now: Instant, setting: Setting) {
        let before = self.control.pacing_rate();
        let Some(external) = self.control.external_mut() else { return };
        external.set(setting);
        if let (Some(before), Some(after)) = (before, setting.rate) {
            self.pacer.on_rate_change(now, before, after);
        }
    }
    /// The measurements of [`crate::Variant::External`] since the last call.
    pub fn take_interval(&mut self) -> Option<Interval> {
        let lost = Bytes(self.rates.lost());
        Some(self.control.external_mut()?.take(lost))
    }
    /// Whether a zero-window probe is due; the probe is then taken as sent.
    pub fn take_window_probe(&mut self) -> bool {
        self.persist.take_probe()
    }
}
