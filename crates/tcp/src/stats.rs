//! Counters and state of an endpoint, as it reports them.

use paceline_net::{Bytes, Duration, Instant, Rate};

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
    /// The time at which the last of these bytes arrived.
    pub received_at: Instant,
    /// Payload bytes that the application has read.
    pub bytes_read: u64,
    /// Retransmitted segments, with payload or FIN.
    pub retransmitted_segments: u64,
    /// Retransmission timeouts of data.
    pub timeouts: u64,
    /// Recoveries that began because acknowledgments indicated a loss.
    pub fast_recoveries: u64,
    /// Tail loss probes sent, new data or not.
    pub tail_loss_probes: u64,
    /// Timeouts that F-RTO found spurious; each counts as an undone reduction too.
    pub spurious_timeouts: u64,
    /// Reductions after ECN echoes.
    pub ecn_reductions: u64,
    /// Data segments received with Congestion Experienced.
    pub ce_received: u64,
    /// Reductions that proved spurious and were undone.
    pub undone_reductions: u64,
    /// Pure ACKs sent.
    pub pure_acks_sent: u64,
    /// Duplicate ACKs received (RFC 5681 §2).
    pub duplicate_acks_received: u64,
    /// Segments received and accepted for processing.
    pub segments_received: u64,
    /// Segments received that contained no new bytes.
    pub duplicate_segments_received: u64,
    /// Zero-window probes sent.
    pub window_probes_sent: u64,
    /// Keep-alive probes sent.
    pub keepalive_probes_sent: u64,
    /// Duplicate ACKs merged with a later one by the receiver.
    pub acks_compressed: u64,
    /// Pure ACKs merged with a later one below TCP.
    pub acks_stretched: u64,
    /// Packets ignored: of another connection, malformed or unacceptable.
    pub ignored: u64,
    /// Round-trip times measured with segments sent once.
    pub rtt_samples: u64,
    /// The sum of these round-trip times in nanoseconds.
    pub rtt_ns: u64,
}

/// The state of an endpoint at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Snapshot {
    /// Congestion window in force; during a recovery that of PRR.
    pub cwnd: Bytes,
    /// Slow start threshold; `u64::MAX` while it is infinite.
    pub ssthresh: Bytes,
    /// Bytes estimated to be in the network (RFC 6675 §4, pipe).
    pub in_flight: Bytes,
    /// The largest window that the peer has offered.
    pub peer_window: Bytes,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time measured.
    pub min_rtt: Option<Duration>,
    /// Retransmission timeout in force, backoff included.
    pub rto: Duration,
    /// Rate at which segments are spaced; none without pacing.
    pub pacing_rate: Option<Rate>,
    /// State of the congestion control: `slow_start`, `congestion_avoidance`, `recovery`, `timeout_recovery`,
    /// `ecn_reduction`; `open` in place of the first two of a control with a rate of its own, such as BBR.
    pub congestion: &'static str,
    /// Name of the connection's state (RFC 9293 §3.3.2), in lower case.
    pub state: &'static str,
    /// Whether data can flow: the handshake is complete and the connection has not ended.
    pub established: bool,
}
