//! What an endpoint is given and what it tells: parameters with the defaults of Linux, counters, a snapshot.

use crate::cc::{Abc, SlowStartExit, Variant};
use paceline_net::{Bytes, Duration, Instant, SeqNumber};
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
}

impl Default for DelayedAck {
    fn default() -> Self {
        Self { segments: 2, timeout: Duration::from_millis(40), quick_acks: 16 }
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
    /// Floor of the variance term of the retransmission timeout, as Linux counts it: the timeout is never less
    /// than the smoothed round-trip time and this.
    pub min_rto: Duration,
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
    /// How `reno` and `newreno` count what was acknowledged.
    pub abc: Abc,
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
            min_rto: Duration::from_millis(200),
            receive_buffer: Bytes(6 << 20),
            autotune: true,
            send_buffer: Bytes(4 << 20),
            timestamps: true,
            sack: true,
            window_scale: true,
            hystart: SlowStartExit::HyStart,
            abc: Abc::Unlimited,
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
    /// Payload bytes received in order and read by the application.
    pub bytes_received: u64,
    /// Segments sent again (payload or FIN).
    pub retransmitted_segments: u64,
    /// Retransmission timeouts of data.
    pub timeouts: u64,
    /// Times that fast recovery was entered.
    pub fast_recoveries: u64,
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
    /// Packets ignored: foreign, malformed or unacceptable.
    pub ignored: u64,
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
