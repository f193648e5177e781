//! The configuration of an endpoint, with the defaults of Linux, and the application that writes its data.

use crate::cc::{Abc, ControlParameters, Controller, CwndUnit, OwnControl, SlowStartExit, Variant};
use crate::options::{
    BeyondWindow, DelaySignal, EcnMode, Keepalive, LossRecovery, Nagle, NewRenoTimer, Pacing, PrrMode,
    RtoStyle, SackCompression, StretchAck,
};
use paceline_net::pacing::Hint;
use paceline_net::{Bytes, Duration, Instant, Rate, SeqNumber};
use std::net::SocketAddr;

/// Largest window scale shift (RFC 7323 §2.3).
pub(crate) const MAX_SHIFT: u8 = 14;

/// The delayed ACKs of a receiver (RFC 9293 §3.8.6.3, RFC 5681 §4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayedAck {
    /// Full segments that cause an ACK at once: 2, or 1 for no delay.
    pub segments: u32,
    /// Longest delay of an ACK; with `adaptive` the shortest.
    pub timeout: Duration,
    /// Segments acknowledged without delay at the start of a transfer and after an idle time (Linux quick
    /// ACKs).
    pub quick_acks: u32,
    /// As Linux: the delay follows the interval between segments, up to the RTT and 200 ms, and in
    /// interactive traffic (Linux ping-pong mode) the ACK waits for the answer instead of leaving without
    /// delay.
    pub adaptive: bool,
}

impl Default for DelayedAck {
    fn default() -> Self {
        Self { segments: 2, timeout: Duration::from_millis(40), quick_acks: 16, adaptive: true }
    }
}

/// Parameters of one side of a connection.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Own address and port.
    pub local: SocketAddr,
    /// The peer's address and port; of the same IP version as `local`.
    pub remote: SocketAddr,
    /// Congestion control.
    pub variant: Variant,
    /// A congestion control of the caller, in place of that of `variant`.
    pub own_control: Option<OwnControl>,
    /// Payload bytes of a full segment.
    pub segment_size: u32,
    /// Initial congestion window in segments (RFC 6928).
    pub initial_window: u32,
    /// Detection and repair of losses.
    pub loss_recovery: LossRecovery,
    /// Whether partial ACKs restart the retransmission timer, without SACK.
    pub newreno_timer: NewRenoTimer,
    /// Whether, without SACK, duplicate ACKs at exactly the end of the last recovery indicate no loss (RFC
    /// 6582 §3.2 step 2; the "careful" variant of RFC 2582). For [`LossRecovery::Reno`] they always do.
    pub newreno_careful: bool,
    /// Proportional rate reduction during fast recovery.
    pub prr: PrrMode,
    /// Tail loss probes (RFC 8985 §7); they need SACK and [`LossRecovery::Rack`].
    pub tail_loss_probe: bool,
    /// Detection of spurious timeouts by forward acknowledgments (RFC 5682).
    pub frto: bool,
    /// Undo reductions that timestamps (RFC 3522) or DSACK (RFC 3708) prove spurious.
    pub undo: bool,
    /// The first two duplicate ACKs let a new segment leave each (RFC 3042).
    pub limited_transmit: bool,
    /// Computation of the retransmission timeout.
    pub rto_style: RtoStyle,
    /// Minimum of the retransmission timeout; see [`RtoStyle`].
    pub min_rto: Duration,
    /// Timeout before the first RTT sample, also of the SYN (RFC 6298 §2.1).
    pub initial_rto: Duration,
    /// Consecutive timeouts after which the connection is given up (Linux `tcp_retries2`). As in Linux they
    /// are converted to the time that they take when the first one is [`Self::min_rto`].
    pub retries: u32,
    /// Retransmissions of a SYN before the connection is given up, besides
    /// [`Self::syn_linear_timeouts`] (Linux `tcp_syn_retries`).
    pub syn_retries: u32,
    /// Retransmissions of a SYN-ACK before the connection is given up (Linux `tcp_synack_retries`).
    pub syn_ack_retries: u32,
    /// Retransmissions of a SYN before its timeout doubles (Linux `tcp_syn_linear_timeouts`). They do not
    /// count as [`Self::syn_retries`], and a SYN-ACK has none.
    pub syn_linear_timeouts: u32,
    /// Pacing of segments.
    pub pacing: Pacing,
    /// The slots of the TDD cell on the path; [`Hint::None`] if the period is to be learned from ACKs.
    pub pacing_hint: Hint,
    /// Round-trip times for controls that watch delay; `None` for clean ones with [`Pacing::Tdd`], raw ones
    /// else.
    pub delay_signal: Option<DelaySignal>,
    /// Reduce a window that was not used for a timeout (RFC 2861, RFC 5681 §4.1; Linux
    /// `tcp_slow_start_after_idle`).
    pub idle_restart: bool,
    /// The Nagle algorithm.
    pub nagle: Nagle,
    /// Keep-alive probes; `None` sends none.
    pub keepalive: Option<Keepalive>,
    /// Explicit Congestion Notification. A congestion control that requires ECN requests it in every mode.
    pub ecn: EcnMode,
    /// The rate at which the application reads; `None` reads at once.
    pub read_rate: Option<Rate>,
    /// Payload of the peer after which the application writes: the length of a request that it answers.
    pub request: Bytes,
    /// Treatment of segments that extend beyond the advertised window.
    pub beyond_window: BeyondWindow,
    /// Report duplicates by DSACK (RFC 2883).
    pub dsack: bool,
    /// Merging of duplicate ACKs; `None` for none.
    pub sack_compression: Option<SackCompression>,
    /// Thinning of ACKs below TCP; `None` for none.
    pub stretch_ack: Option<StretchAck>,
    /// Largest receive window advertised, limited by the window scale.
    pub receive_buffer: Bytes,
    /// Whether the advertised window starts at 64 KiB and grows as the application reads (Linux
    /// `tcp_moderate_rcvbuf`).
    pub autotune: bool,
    /// Largest number of bytes in flight and unsent together.
    pub send_buffer: Bytes,
    /// Offer the timestamps option.
    pub timestamps: bool,
    /// Offer selective acknowledgments.
    pub sack: bool,
    /// Offer window scaling.
    pub window_scale: bool,
    /// Detection by which CUBIC leaves slow start before a loss.
    pub hystart: SlowStartExit,
    /// Fast convergence of CUBIC (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// How `reno` and `newreno` count acknowledged data.
    pub abc: Abc,
    /// Unit of the window of `tahoe`, `reno`, `newreno` and `cubic`.
    pub cwnd_unit: CwndUnit,
    /// Delayed ACKs.
    pub delayed_ack: DelayedAck,
    /// Initial sequence number.
    pub isn: SeqNumber,
    /// The time at which an active opener sends its SYN.
    pub start_at: Instant,
}

impl EndpointConfig {
    /// The defaults of a Linux host of 2025 on an Ethernet path. Their sources are the fields' documentation
    /// and [`crate::Profile::Linux`].
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            variant: Variant::Cubic,
            own_control: None,
            segment_size: 1448,
            initial_window: 10,
            loss_recovery: LossRecovery::Rack,
            newreno_timer: NewRenoTimer::SlowButSteady,
            newreno_careful: true,
            prr: PrrMode::Rfc9937,
            tail_loss_probe: true,
            frto: true,
            undo: true,
            limited_transmit: true,
            rto_style: RtoStyle::Linux,
            min_rto: Duration::from_millis(200),
            initial_rto: Duration::from_secs(1),
            retries: 15,
            syn_retries: 6,
            syn_ack_retries: 5,
            syn_linear_timeouts: 4,
            pacing: Pacing::None,
            pacing_hint: Hint::None,
            delay_signal: None,
            idle_restart: true,
            nagle: Nagle::Minshall,
            keepalive: None,
            ecn: EcnMode::Passive,
            read_rate: None,
            request: Bytes::ZERO,
            beyond_window: BeyondWindow::Drop,
            dsack: true,
            sack_compression: Some(SackCompression::default()),
            stretch_ack: None,
            receive_buffer: Bytes(6 << 20),
            autotune: true,
            send_buffer: Bytes(4 << 20),
            timestamps: true,
            sack: true,
            window_scale: true,
            hystart: SlowStartExit::HyStart,
            fast_convergence: true,
            abc: Abc::Unlimited,
            cwnd_unit: CwndUnit::Segments,
            delayed_ack: DelayedAck::default(),
            isn: SeqNumber(1),
            start_at: Instant::ZERO,
        }
    }
    /// The smallest window scale shift with which the receive buffer can be advertised.
    pub(crate) fn scale_shift(&self) -> u8 {
        (0..MAX_SHIFT).find(|shift| self.receive_buffer.0 <= 65_535 << shift).unwrap_or(MAX_SHIFT)
    }
    /// The congestion control of a connection with full segments of `mss` bytes; `sack` as in use.
    pub(crate) fn control(&self, mss: u32, sack: bool) -> Controller {
        let parameters = self.congestion_control(mss, sack);
        match &self.own_control {
            Some(own) => Controller::Own(own.make(&parameters)),
            None => Controller::new(&parameters),
        }
    }
    /// The parameters of the congestion control, for full segments of `mss` bytes; `sack` as in use.
    pub fn congestion_control(&self, mss: u32, sack: bool) -> ControlParameters {
        ControlParameters {
            variant: self.variant,
            mss,
            initial_window: self.initial_window,
            cwnd_unit: self.cwnd_unit,
            abc: self.abc,
            hystart: self.hystart,
            fast_convergence: self.fast_convergence,
            sack,
            seed: u64::from(self.isn.0) << 16 | u64::from(self.local.port()),
        }
    }
}

/// The data that a side sends once the connection is established.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// No data; the side closes when the peer has closed.
    Nothing,
    /// Data without end.
    Bulk,
    /// This many bytes, then FIN.
    File(Bytes),
    /// This many bytes, as a client's request for the peer's data; the side closes when the peer has closed.
    Request(Bytes),
    /// Pieces written at intervals, then FIN: telemetry, or a chat.
    Chunks {
        /// Bytes of a piece.
        size: Bytes,
        /// Time between two pieces.
        interval: Duration,
        /// Number of pieces; `u64::MAX` for no end.
        count: u64,
    },
    /// The data of a relay above the endpoint, which writes and reads by [`crate::Endpoint::write_to`] and
    /// [`crate::Endpoint::read_to`].
    Relay,
}

impl Source {
    /// Total bytes; `u64::MAX` for no end.
    pub fn total(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Bulk | Self::Relay => u64::MAX,
            Self::File(size) | Self::Request(size) => size.0,
            Self::Chunks { count: u64::MAX, .. } => u64::MAX,
            Self::Chunks { size, count, .. } => size.0.saturating_mul(count),
        }
    }
    /// Whether the side closes when it has sent everything, also before the peer closes.
    pub(crate) fn closes_first(self) -> bool {
        !matches!(self, Self::Nothing | Self::Request(_))
    }
    /// Whether the data ends, and the connection with it.
    pub fn is_finite(self) -> bool {
        self.closes_first() && self.total() != u64::MAX
    }
}
