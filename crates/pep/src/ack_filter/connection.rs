//! State of a connection for the safe scheme, from the segments in the direction of its ACKs, and the rules
//! that need no other ACK of the queue: 9, 10, 12, 13, 16 and 22.
//!
//! The round-trip time is the sum of two parts. The path's is the time from a SYN's departure from the queue
//! to the arrival of the ACK of its SYN-ACK; it is unknown for a connection that was opened from the other
//! side. The queue's is the time for which the packet at its head has waited. Timestamps give none: the
//! segments that carry the echo travel in the other direction.

use super::rules::{self, Kept};
use super::stats::KeepReason;
use paceline_net::{Duration, Instant, Packet, SeqNumber, TcpFlags, TcpHeader};

/// Rule 16: segments that are acknowledged before the filter starts. Chosen: the rule's value; a small window
/// needs every ACK to grow.
const FIRST_SEGMENTS: u64 = 64;
/// Rule 16: shortest time for which the filter is off after a duplicate ACK. Chosen: the downlink may have
/// queued more since the handshake.
const MIN_OFF_TIME: Duration = Duration::from_millis(100);
/// Rule 16: a gap of this length between ACKs makes a connection sparse, until this many ACKs came without
/// one. Chosen: with so few ACKs there is nothing to gain.
const SPARSE_GAP: Duration = Duration::from_millis(100);
const SPARSE_RUN: u32 = 16;
/// Rule 22: mean number of segments acknowledged by an incoming ACK that shows another filter upstream.
/// Chosen: twice as many as with delayed ACKs.
const THINNED_SEGMENTS: u64 = 4;
/// Rule 22: weight of one ACK in that mean, as a negative power of two. Chosen: from the usual mean of two
/// segments, six ACKs of six segments each exceed the limit.
const MEAN_SHIFT: u32 = 3;

/// Progress of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    #[default]
    Unknown,
    /// Its SYN offered something that forbids filtering.
    Barred,
    Open,
    Closing,
}

/// State of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Connection {
    phase: Phase,
    /// Window scale (RFC 7323).
    pub shift: u8,
    /// Payload bytes of the other end's segments, at most.
    pub segment: u32,
    /// Sequence number of its SYN.
    isn: SeqNumber,
    /// When the last SYN left the queue, until its answer gave the path's round-trip time. The answer to an
    /// earlier one makes that too short, never too long.
    syn_left_at: Option<Instant>,
    /// Round-trip time without the wait in this queue.
    path_rtt: Option<Duration>,
    /// Next sequence number (SND.NXT) of the end that sends the ACKs.
    snd_nxt: SeqNumber,
    /// The highest acknowledgment number and its window.
    last_ack: Option<(SeqNumber, u16)>,
    /// Bytes acknowledged in total.
    acked: u64,
    /// The kept segment ahead of the oldest candidate.
    pub kept_before: Option<Kept>,
    /// Rule 16: nothing is discarded until then.
    off_until: Instant,
    /// A duplicate ACK or SACK blocks came since the acknowledgment number last advanced.
    in_recovery: bool,
    last_arrival: Instant,
    /// Segments since the last gap of [`SPARSE_GAP`].
    run: u32,
    /// Mean number of bytes acknowledged by an ACK.
    mean_advance: u64,
}

impl Connection {
    /// A connection whose SYN came. `segment`: payload of a full-sized segment on the usual path.
    fn open(syn: &TcpHeader, now: Instant, segment: u64) -> Self {
        let segment = u32::try_from(segment).unwrap_or(u32::MAX);
        Self {
            phase: if rules::may_filter_after(syn) { Phase::Open } else { Phase::Barred },
            shift: syn.options.window_scale.unwrap_or(0).min(14),
            segment: syn.options.mss.map_or(segment, |mss| segment.min(mss.into())).max(1),
            isn: syn.seq,
            snd_nxt: syn.seq,
            last_arrival: now,
            ..Self::default()
        }
    }

    /// A SYN. A retransmitted one may offer less (RFC 3168 6.1.1.1; RFC 9768 3.1.4) while the answer to the
    /// first is under way: the offers of both count.
    fn on_syn(&mut self, syn: &TcpHeader, now: Instant, segment: u64) {
        let before = std::mem::replace(self, Self::open(syn, now, segment));
        if before.phase != Phase::Unknown && before.isn == self.isn && before.last_ack.is_none() {
            self.phase = if before.phase == Phase::Barred { Phase::Barred } else { self.phase };
            self.shift = self.shift.max(before.shift);
            self.segment = self.segment.min(before.segment);
        }
    }

    /// A SYN has left the queue.
    pub fn on_syn_left(&mut self, syn: &TcpHeader, now: Instant) {
        if !syn.flags.contains(TcpFlags::ACK) && syn.seq == self.isn && self.last_ack.is_none() {
            self.syn_left_at = Some(now);
        }
    }

    /// The present round-trip time, at least; `None` if that of the path is unknown. `queue_delay`: the wait
    /// of the packet at the head.
    pub fn rtt(&self, queue_delay: Duration) -> Option<Duration> {
        self.path_rtt.map(|rtt| rtt + queue_delay)
    }

    /// Whether a pure ACK may become a candidate and supersede others, by all rules that need no other ACK of
    /// the queue.
    pub fn check(&self, packet: &Packet, tcp: &TcpHeader, now: Instant) -> Result<(), KeepReason> {
        match self.phase {
            Phase::Unknown => return Err(KeepReason::MidStream),
            Phase::Barred => return Err(KeepReason::Handshake),
            Phase::Closing => return Err(KeepReason::Closing),
            Phase::Open => {}
        }
        rules::check_headers(packet, tcp)?;
        let Some((ack, window)) = self.last_ack else { return Err(KeepReason::FirstSegments) };
        let (advance, segment) = (tcp.ack.distance(ack), u64::from(self.segment));
        let checks = [
            (!tcp.options.sack.is_empty(), KeepReason::Sack),
            (advance < 0, KeepReason::OldAck),
            (advance == 0 && tcp.window == window, KeepReason::Duplicate),
            (advance == 0 || tcp.window == 0 || window == 0, KeepReason::Window),
            (tcp.seq != self.snd_nxt, KeepReason::Probe),
            (self.in_recovery, KeepReason::FirstAdvance),
            (now < self.off_until, KeepReason::Recovery),
            (self.acked < FIRST_SEGMENTS.saturating_mul(segment), KeepReason::FirstSegments),
            (self.run < SPARSE_RUN, KeepReason::Sparse),
            (self.mean_advance > THINNED_SEGMENTS.saturating_mul(segment), KeepReason::ThinnedUpstream),
        ];
        checks.into_iter().find(|(keep, _)| *keep).map_or(Ok(()), |(_, reason)| Err(reason))
    }

    /// Records a segment that the queue has accepted. `segment`: payload of a full-sized segment on the usual
    /// path; `queue_delay`: the wait of the packet at the head.
    pub fn on_accepted(
        &mut self,
        tcp: &TcpHeader,
        is_ack: bool,
        now: Instant,
        segment: u64,
        queue_delay: Duration,
    ) {
        if tcp.flags.contains(TcpFlags::SYN) {
            self.on_syn(tcp, now, segment);
        }
        let flag = |flag| u32::from(tcp.flags.contains(flag));
        let end = tcp.seq + (tcp.payload_len + flag(TcpFlags::SYN) + flag(TcpFlags::FIN));
        self.snd_nxt = self.snd_nxt.max(end);
        if tcp.flags.intersects(TcpFlags::FIN.with(TcpFlags::RST)) {
            self.phase = Phase::Closing;
        }
        if tcp.flags.contains(TcpFlags::SYN) || !tcp.flags.contains(TcpFlags::ACK) {
            return; // a SYN-ACK acknowledges no data
        }
        let gap = now.since(self.last_arrival);
        self.run = if gap > SPARSE_GAP { 0 } else { self.run.saturating_add(1) };
        self.last_arrival = now;
        if let Some(syn_left_at) = self.syn_left_at.take() {
            self.path_rtt = Some(now.since(syn_left_at));
        }
        self.on_acknowledgment(tcp, is_ack, now, queue_delay);
    }

    fn on_acknowledgment(&mut self, tcp: &TcpHeader, is_ack: bool, now: Instant, queue_delay: Duration) {
        let Some((ack, window)) = self.last_ack else {
            self.last_ack = Some((tcp.ack, tcp.window));
            return;
        };
        let advance = tcp.ack.distance(ack);
        if advance > 0 {
            let bytes = u64::from(advance.unsigned_abs());
            self.acked = self.acked.saturating_add(bytes);
            self.in_recovery = false;
            if is_ack {
                self.mean_advance =
                    self.mean_advance - (self.mean_advance >> MEAN_SHIFT) + (bytes >> MEAN_SHIFT);
            }
        }
        let duplicate = is_ack && advance == 0 && tcp.window == window;
        if duplicate || !tcp.options.sack.is_empty() {
            self.in_recovery = true;
            self.off_until = now + self.rtt(queue_delay).unwrap_or_default().max(MIN_OFF_TIME);
        }
        if advance >= 0 {
            self.last_ack = Some((tcp.ack, tcp.window));
        }
    }
}
