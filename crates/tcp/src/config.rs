//! What an endpoint is given and what it tells: parameters with the defaults of Linux, counters, a snapshot.

use crate::cc::{Abc, CwndUnit, SlowStartExit, Variant};
use crate::options::{
    BeyondWindow, EcnMode, Keepalive, LossRecovery, Nagle, NewRenoTimer, Pacing, PrrMode, RtoStyle,
    SackCompression, StretchAck,
};
use paceline_net::{Bytes, Duration, Instant, Rate, SeqNumber};
use std::net::SocketAddr;

/// When a receiver acknowledges (RFC 9293 §3.8.6.3, RFC 5681 §4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayedAck {
    /// Full segments that force an acknowledgment: 2, or 1 for no delay at all.
    pub segments: u32,
    /// Longest wait of an acknowledgment.
    pub timeout: Duration,
    /// Segments acknowledged at once at the start of a transfer, and again after a pause.
    pub quick_acks: u32,
    /// As Linux: the wait follows the distance of the segments, up to the RTT and 200 ms, and a side that answers
    /// what it receives (ping-pong) waits for its answer instead of acknowledging quickly.
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
    /// Payload bytes of a full segment.
    pub segment_size: u32,
    /// Initial congestion window in segments (RFC 6928).
    pub initial_window: u32,
    /// How losses are told and repaired.
    pub loss_recovery: LossRecovery,
    /// What partial ACKs do to the timer, without SACK.
    pub newreno_timer: NewRenoTimer,
    /// Whether duplicate ACKs of exactly what was outstanding at the last recovery or timeout are ignored, without
    /// SACK (RFC 6582 §3.2 step 2; the "careful" variant of RFC 2582). [`LossRecovery::Reno`] believes them anyway.
    pub newreno_careful: bool,
    /// The window during fast recovery.
    pub prr: PrrMode,
    /// Tail loss probes (RFC 8985 §7); they need SACK and [`LossRecovery::Rack`].
    pub tail_loss_probe: bool,
    /// Detection of spurious timeouts by forward acknowledgments (RFC 5682).
    pub frto: bool,
    /// Reductions that timestamps (RFC 3522) or DSACK (RFC 3708) prove spurious are taken back.
    pub undo: bool,
    /// New segments may answer the first duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// How the retransmission timeout follows from the round-trip times.
    pub rto_style: RtoStyle,
    /// Floor of the retransmission timeout; see [`RtoStyle`].
    pub min_rto: Duration,
    /// Timeout before the first sample, that of the SYN included.
    pub initial_rto: Duration,
    /// Timeouts in a row after which the connection is given up, counted in time as Linux does (`tcp_retries2`):
    /// what they would take from [`Self::min_rto`] on.
    pub retries: u32,
    /// SYNs, or SYN-ACKs, that are repeated before giving up.
    pub syn_retries: u32,
    /// Repetitions of a SYN before its timeout doubles (`tcp_syn_linear_timeouts`).
    pub syn_linear_timeouts: u32,
    /// Spacing of segments.
    pub pacing: Pacing,
    /// A window that was not used for a timeout shrinks (RFC 2861, RFC 5681 §4.1; `tcp_slow_start_after_idle`).
    pub idle_restart: bool,
    /// Whether small segments wait.
    pub nagle: Nagle,
    /// Probes of a silent connection; none if left out.
    pub keepalive: Option<Keepalive>,
    /// Explicit Congestion Notification. A control that needs it asks for it, whatever this says.
    pub ecn: EcnMode,
    /// How fast the application reads; at once if left out.
    pub read_rate: Option<Rate>,
    /// Payload of the peer that the application has to have before it writes: a request, which it answers.
    pub request: Bytes,
    /// Segments that reach beyond the advertised window.
    pub beyond_window: BeyondWindow,
    /// Report duplicates by DSACK (RFC 2883).
    pub dsack: bool,
    /// Merging of duplicate ACKs; none if left out.
    pub sack_compression: Option<SackCompression>,
    /// Thinning of ACKs below TCP; none if left out.
    pub stretch_ack: Option<StretchAck>,
    /// Largest receive window advertised, capped by what the window scale can carry.
    pub receive_buffer: Bytes,
    /// Whether the advertised window starts at 64 KiB and grows with what the application reads.
    pub autotune: bool,
    /// Most bytes in flight and unsent together.
    pub send_buffer: Bytes,
    /// Offer the timestamps option.
    pub timestamps: bool,
    /// Offer selective acknowledgments.
    pub sack: bool,
    /// Offer window scaling.
    pub window_scale: bool,
    /// How CUBIC leaves slow start before a loss.
    pub hystart: SlowStartExit,
    /// Whether CUBIC leaves room for others when a loss comes before its former peak (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// How `reno` and `newreno` count what was acknowledged.
    pub abc: Abc,
    /// What the window of `tahoe`, `reno`, `newreno` and `cubic` counts.
    pub cwnd_unit: CwndUnit,
    /// Acknowledgment policy.
    pub delayed_ack: DelayedAck,
    /// Initial sequence number.
    pub isn: SeqNumber,
    /// When an active opener sends its SYN.
    pub start_at: Instant,
}

impl EndpointConfig {
    /// The defaults of a Linux host on an Ethernet path.
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            variant: Variant::Cubic,
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
            syn_linear_timeouts: 4,
            pacing: Pacing::None,
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
    /// The window scale shift that lets the receive buffer be advertised.
    pub(crate) fn scale_shift(&self) -> u8 {
        (0..14).find(|shift| self.receive_buffer.0 <= 65_535 << shift).unwrap_or(14)
    }
}

/// What a side sends once the connection is established.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Nothing; it closes when the peer has closed.
    Nothing,
    /// Data without end.
    Bulk,
    /// This many bytes, then FIN.
    File(Bytes),
    /// This many bytes, as a client asks for what the peer is to send; it closes when the peer has closed.
    Request(Bytes),
    /// Pieces written one by one, then FIN: telemetry, or a chat.
    Chunks {
        /// Bytes of a piece.
        size: Bytes,
        /// Time from one piece to the next.
        interval: Duration,
        /// Number of pieces; `u64::MAX` for no end.
        count: u64,
    },
    /// What a relay above the endpoint writes; it also decides what is read ([`crate::Endpoint::write_to`],
    /// [`crate::Endpoint::read_to`]).
    Relay,
}

impl Source {
    /// Bytes in all; `u64::MAX` for no end.
    pub fn total(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Bulk | Self::Relay => u64::MAX,
            Self::File(size) | Self::Request(size) => size.0,
            Self::Chunks { count: u64::MAX, .. } => u64::MAX,
            Self::Chunks { size, count, .. } => size.0.saturating_mul(count),
        }
    }
    /// Whether it closes when it has sent everything, whatever the peer does.
    pub(crate) fn closes_first(self) -> bool {
        !matches!(self, Self::Nothing | Self::Request(_))
    }
    /// Whether it ends, and the connection with it.
    pub fn is_finite(self) -> bool {
        self.closes_first() && self.total() != u64::MAX
    }
}

/// Counters of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Segments sent that carried payload, retransmissions included.
    pub segments_sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes acknowledged cumulatively.
    pub bytes_acked: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// When the last of them came.
    pub received_at: Instant,
    /// Payload bytes that the application read.
    pub bytes_read: u64,
    /// Segments sent again (payload or FIN).
    pub retransmitted_segments: u64,
    /// Retransmission timeouts of data.
    pub timeouts: u64,
    /// Times that acknowledgments told a loss and began its repair.
    pub fast_recoveries: u64,
    /// Tail loss probes sent, new data or not.
    pub tail_loss_probes: u64,
    /// Timeouts that F-RTO found spurious; they count as undone reductions too.
    pub spurious_timeouts: u64,
    /// Reductions for echoes of Congestion Experienced.
    pub ecn_reductions: u64,
    /// Data segments received with Congestion Experienced.
    pub ce_received: u64,
    /// Times that a reduction proved spurious and was undone.
    pub undone_reductions: u64,
    /// Segments sent that carried nothing but an acknowledgment.
    pub pure_acks_sent: u64,
    /// Acknowledgments received that repeated the last one (RFC 5681 §2).
    pub duplicate_acks_received: u64,
    /// Segments received and accepted for processing.
    pub segments_received: u64,
    /// Segments that brought only bytes received before.
    pub duplicate_segments_received: u64,
    /// Zero-window probes sent.
    pub window_probes_sent: u64,
    /// Keep-alive probes sent.
    pub keepalive_probes_sent: u64,
    /// Duplicate ACKs merged with a later one by the receiver.
    pub acks_compressed: u64,
    /// Pure ACKs merged with a later one below TCP.
    pub acks_stretched: u64,
    /// Packets ignored: foreign, malformed or unacceptable.
    pub ignored: u64,
    /// Round-trip times measured by segments sent once.
    pub rtt_samples: u64,
    /// Their sum in nanoseconds.
    pub rtt_ns: u64,
}

/// The state of an endpoint at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Snapshot {
    /// Congestion window in force, that of the recovery included.
    pub cwnd: Bytes,
    /// Slow start threshold; `u64::MAX` while it is infinite.
    pub ssthresh: Bytes,
    /// Bytes estimated to be in the network (pipe of RFC 6675).
    pub in_flight: Bytes,
    /// The largest window that the peer has offered.
    pub peer_window: Bytes,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time seen.
    pub min_rtt: Option<Duration>,
    /// Retransmission timeout in force, its backoff included.
    pub rto: Duration,
    /// Name of the connection's state (RFC 9293 §3.3.2), in lower case.
    pub state: &'static str,
    /// Whether data can flow: the handshake is done and the connection not over.
    pub established: bool,
}
