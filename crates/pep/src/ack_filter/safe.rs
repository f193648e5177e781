//! The safe scheme, for live traffic: an ACK goes only when a later one, already queued behind it, says all that it
//! says, and when doing without it takes nothing from the sender's clock, loss detection or window.
//!
//! An arriving plain ACK is compared with the ACK of its connection just ahead of it in the queue, which goes if
//! every rule allows it, then with the next one ahead, until one stays. A segment that is no plain ACK (data, a
//! flag, a duplicate, SACK blocks, anything unusual) separates: nothing ahead of it is discarded any more. This
//! filters less than the rules would allow, and leaves no doubt about order.
//!
//! Where each rule is enforced (C the older ACK, T the later):
//!
//! | rule | where |
//! |---|---|
//! | 1 full key, same queue | `flows`; same DSCP in `rules::supersedes`; VLAN and tunnel: the caller keeps one filter for each |
//! | 2 T accepted, newest gets through | `push`: nothing goes before T is accepted, and the last listed ACK never goes |
//! | 3 no delay | nothing is held back; there is no token bucket here |
//! | 4 older goes, order, no edits | `queue` |
//! | 5 plain datagram | `rules::plain`; data offset by the parser; aggregates (GRO, GSO) by the device, which marks them special |
//! | 6, 7 no payload, flag ACK alone | `Packet::is_pure_ack`; the payload length by the parser, from the IP length |
//! | 8 options | `rules::plain`, for C and T alike; `rules::may_filter_after` for the handshake |
//! | 9 C.ack <= T.ack | `judge`, `rules::supersedes`; stricter: equal numbers and SACK blocks are always kept |
//! | 10 sequence, probes | `judge`, `rules::supersedes` |
//! | 11 timestamps | `rules::supersedes` |
//! | 12 SACK, first advance | `judge`; stricter: no ACK with SACK blocks goes, for by rule 16 none could |
//! | 13 duplicates, window | `judge`, `rules::supersedes` |
//! | 14 ECN | `rules::plain`, `rules::supersedes`, `rules::may_filter_after` |
//! | 15 floor | `rules::supersedes` |
//! | 16 off at times | `judge` |
//! | 17 standing queue | `Standing` |
//! | 18 no congestion signal | `queue`: its own drop reason and counter |
//! | 19 bounded state | `flows`: entered at a SYN only, at a bounded number, forgotten by age |
//! | 20 counters, comparison | `stats`; exceptions: the gateway's policies; filtered connections beside others: `holdout`, `comparison` |
//! | 21 before PDCP numbers | by the queue's place: whole packets, ahead of the link |
//! | 22 thinner upstream | `judge` |
//!
//! The round trip is that from a SYN to the ACK of its SYN-ACK; for a connection that was opened from the other
//! side, it is unknown. Timestamps give none here, as the segments that carry the echo go the other way.

use super::flows::{FlowId, FlowTable};
use super::holdout::{Group, Holdout};
use super::queue::{AckQueue, Popped, SlotId};
use super::rules::{self, Kept, Limits};
use super::stats::KeepReason;
use paceline_net::rewrite::checksum_is_right;
use paceline_net::{Bytes, Duration, Instant, Packet, Payload, SeqNumber, TcpFlags, TcpHeader};

/// Rule 16: segments acknowledged before the filter starts.
const FIRST_SEGMENTS: u64 = 64;
/// Rule 16: the round trip for which the filter is off, at least: the handshake's was without a queue.
const LEAST_RTT: Duration = Duration::from_millis(100);
/// Rule 16: a gap of this length between ACKs makes a connection sparse, until so many came without one.
const SPARSE_GAP: Duration = Duration::from_millis(100);
const SPARSE_RUN: u32 = 16;
/// Rule 22: segments acknowledged by an incoming ACK, on average, that betray another filter: twice as many as with
/// delayed ACKs.
const THINNED_SEGMENTS: u64 = 4;
/// Rule 22: weight of one ACK in that average, in bits. Six ACKs suffice to stand down from the usual two segments.
const AVERAGE_SHIFT: u32 = 3;

/// Rule 17: whether the queue is a standing one, by the time that its head has waited, as in CoDel (RFC 8289).
///
/// The wait alone counts. A number of packets would call a burst from a fast link a standing queue.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// Since when every head had waited for [`Standing::ON`].
    since: Option<Instant>,
    on: bool,
}

impl Standing {
    /// CoDel's target: below it a queue is no burden.
    const ON: Duration = Duration::from_millis(5);
    /// For so long: a frame of LTE or NR, the usual period of scheduling requests and of TDD patterns. A buffer
    /// that empties at each opportunity is not standing.
    const FOR: Duration = Duration::from_millis(10);
    const OFF: Duration = Duration::from_micros(2500);

    fn observe(&mut self, now: Instant, head_arrived: Option<Instant>) {
        let Some(arrived) = head_arrived else {
            *self = Self::default();
            return;
        };
        let waited = now.since(arrived);
        if waited >= Self::ON {
            let since = *self.since.get_or_insert(arrived + Self::ON);
            self.on |= now.since(since) >= Self::FOR;
        } else {
            self.since = None;
            self.on &= waited >= Self::OFF;
        }
    }
}

/// How far a connection has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    #[default]
    Unknown,
    /// Its SYN offered what forbids filtering.
    Barred,
    Open,
    Closing,
}

/// What is known of a connection; only what its segments in the direction of the ACKs tell.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    phase: Phase,
    shift: u8,
    /// Payload bytes of the other end's segments, at most.
    segment: u32,
    /// The sequence number of its SYN, and when the first of them came, until that gave the round-trip time.
    isn: SeqNumber,
    syn: Option<Instant>,
    rtt: Option<Duration>,
    /// The next sequence number, from what was sent.
    next: SeqNumber,
    /// The highest acknowledgment and its window.
    last: Option<(SeqNumber, u16)>,
    acked: u64,
    /// The kept segment just ahead of the listed ACKs.
    before: Option<Kept>,
    /// Filtering is off until then.
    off_until: Instant,
    /// A duplicate ACK or SACK came since the last advance.
    repeated: bool,
    arrived: Instant,
    /// ACKs since the last long gap.
    run: u32,
    /// Average bytes acknowledged by an ACK.
    per_ack: u64,
}

/// What an arrival supersedes.
#[derive(Clone, Copy, Debug, Default)]
struct Thinning {
    acks: u32,
    bytes: Bytes,
    /// Why the next one ahead stays, if there is one.
    stopped_by: Option<KeepReason>,
}

/// State of the safe scheme.
#[derive(Clone, Debug)]
pub(super) struct Safe {
    flows: FlowTable<Flow>,
    standing: Standing,
    segment: u64,
    /// Connections of which nothing is discarded.
    pub holdout: Holdout,
}

impl Safe {
    pub fn new(segment: Bytes) -> Self {
        Self {
            flows: FlowTable::new(),
            standing: Standing::default(),
            segment: segment.0,
            holdout: Holdout::default(),
        }
    }

    pub fn push(&mut self, queue: &mut AckQueue, now: Instant, packet: Packet) {
        self.standing.observe(now, queue.head().map(|id| queue.arrived(id)));
        let is_ack = packet.is_pure_ack();
        let known = self.find(queue, now, &packet);
        let verdict = match &known {
            Ok((flow, tcp)) if is_ack => self.judge(*flow, &packet, tcp, now),
            Ok(_) => Err(KeepReason::Separated), // no ACK, so never counted
            Err(reason) => Err(*reason),
        };
        let thinning = match (&known, verdict) {
            (Ok((flow, tcp)), Ok(())) => self.superseded(queue, *flow, (&packet, tcp), now),
            _ => Thinning::default(),
        };
        if !queue.accepts(&packet, thinning.bytes) {
            queue.refuse(packet);
            return;
        }
        let listed_in = match &known {
            Ok((flow, tcp)) => {
                self.make_way(queue, *flow, tcp, verdict.is_ok().then_some(thinning), now);
                self.flows.state(*flow).note(tcp, is_ack, now, self.segment);
                verdict.is_ok().then_some(*flow)
            }
            Err(_) => None,
        };
        let id = queue.append(now, packet, listed_in);
        if is_ack {
            queue.keep(id, verdict.err().unwrap_or(KeepReason::Newest));
        }
    }

    /// Discards what an accepted plain ACK supersedes; any other segment separates.
    fn make_way(
        &mut self,
        queue: &mut AckQueue,
        flow: FlowId,
        tcp: &TcpHeader,
        plain: Option<Thinning>,
        now: Instant,
    ) {
        match plain {
            Some(thinning) => {
                for _ in 0..thinning.acks {
                    let old = queue.newest_of(flow).expect("what is superseded is listed");
                    queue.discard(old);
                }
                if let (Some(old), Some(reason)) = (queue.newest_of(flow), thinning.stopped_by) {
                    queue.keep(old, reason);
                }
            }
            None => {
                if let Some(newest) = queue.newest_of(flow) {
                    queue.keep(newest, KeepReason::Separated);
                }
                queue.unlist_all(flow);
                self.flows.state(flow).before = Some(Kept { tcp: *tcp, arrived: now });
            }
        }
    }

    /// The connection of a packet, or why an ACK of it is kept. A SYN enters its connection.
    fn find(
        &mut self,
        queue: &AckQueue,
        now: Instant,
        packet: &Packet,
    ) -> Result<(FlowId, TcpHeader), KeepReason> {
        let (Some(key), Some(tcp)) = (packet.flow_key(), packet.tcp_header()) else {
            return Err(KeepReason::NotPlainIp); // no ACK, so never counted
        };
        if packet.ip.special {
            return Err(KeepReason::NotPlainIp);
        }
        if tcp.payload_len == 0 && is_damaged(packet) {
            return Err(KeepReason::Corrupt);
        }
        if tcp.flags.contains(TcpFlags::SYN) {
            let busy = |flow| queue.listed_of(flow) > 0;
            let flow = self.flows.enter(now, key, busy).ok_or(KeepReason::NoState)?;
            return Ok((flow, *tcp));
        }
        let flow = self.flows.find(now, key);
        let full = self.flows.is_full();
        let missing = if full { KeepReason::NoState } else { KeepReason::MidStream };
        flow.map(|flow| (flow, *tcp)).ok_or(missing)
    }

    /// Whether a pure ACK may make others superfluous, and become so.
    fn judge(&mut self, flow: FlowId, ack: &Packet, tcp: &TcpHeader, now: Instant) -> Result<(), KeepReason> {
        self.flows.state(flow).judge(ack, tcp, now)?;
        let group = ack.flow_key().and_then(|key| self.holdout.group(&key));
        if group == Some(Group::HeldOut) { Err(KeepReason::HeldOut) } else { Ok(()) }
    }

    /// What a plain ACK that arrives makes superfluous.
    fn superseded(
        &mut self,
        queue: &AckQueue,
        flow: FlowId,
        new: (&Packet, &TcpHeader),
        now: Instant,
    ) -> Thinning {
        let state = *self.flows.state(flow);
        let limits = Limits {
            max_bytes: rules::MAX_SEGMENTS.saturating_mul(state.segment.into()),
            max_gap: rules::max_gap(state.rtt),
            shift: state.shift,
        };
        let mut thinning = Thinning::default();
        let mut next = queue.newest_of(flow);
        while let Some(old) = next {
            next = queue.older_of_flow(old);
            let before = match next {
                Some(id) => header(queue, id).map(|(_, tcp)| Kept { tcp: *tcp, arrived: queue.arrived(id) }),
                None => state.before,
            };
            let verdict = match (before, header(queue, old)) {
                _ if !self.standing.on => Err(KeepReason::NoStandingQueue),
                (Some(before), Some(old)) => rules::supersedes(&before, old, new, now, limits),
                _ => Err(KeepReason::FirstSegments),
            };
            if let Err(reason) = verdict {
                thinning.stopped_by = Some(reason);
                break;
            }
            thinning.acks += 1;
            thinning.bytes += queue.len_of(old);
        }
        thinning
    }

    /// A packet has left at the head.
    pub fn on_pop(&mut self, queue: &AckQueue, now: Instant, popped: &Popped) {
        self.standing.observe(now, queue.head().map(|id| queue.arrived(id)));
        if let (Some(flow), Some(tcp)) = (popped.flow, popped.packet.tcp_header()) {
            self.flows.state(flow).before = Some(Kept { tcp: *tcp, arrived: popped.arrived });
        }
    }
}

/// What its receiver will drop makes nothing superfluous, and tells nothing. Of data only the numbers would be of use, which are
/// not worth the sum: they make ACKs stay at worst.
fn is_damaged(packet: &Packet) -> bool {
    let whole = |bytes: &[u8]| bytes.len() == packet.len as usize;
    matches!(&packet.payload, Payload::Datagram(bytes) if whole(bytes)) && !checksum_is_right(packet)
}

fn header(queue: &AckQueue, id: SlotId) -> Option<(&Packet, &TcpHeader)> {
    let packet = queue.packet(id);
    packet.tcp_header().map(|tcp| (packet, tcp))
}

impl Flow {
    /// `segment`: payload of a full-sized segment on the usual path.
    fn open(syn: &TcpHeader, now: Instant, segment: u64) -> Self {
        let segment = u32::try_from(segment).unwrap_or(u32::MAX);
        Self {
            phase: if rules::may_filter_after(syn) { Phase::Open } else { Phase::Barred },
            shift: syn.options.window_scale.unwrap_or(0).min(14),
            segment: syn.options.mss.map_or(segment, |mss| segment.min(mss.into())).max(1),
            isn: syn.seq,
            syn: (!syn.flags.contains(TcpFlags::ACK)).then_some(now),
            next: syn.seq,
            arrived: now,
            ..Self::default()
        }
    }

    /// A SYN. Sent again it may offer less (RFC 3168, section 6.1.1.1; RFC 9768, section 3.1.4), while the answer to the one
    /// before is on its way: what that offered counts as well, and the round trip is no shorter than from the first.
    fn reopen(&mut self, syn: &TcpHeader, now: Instant, segment: u64) {
        let before = std::mem::replace(self, Self::open(syn, now, segment));
        if before.phase != Phase::Unknown && before.isn == self.isn && before.last.is_none() {
            self.phase = if before.phase == Phase::Barred { Phase::Barred } else { self.phase };
            self.shift = self.shift.max(before.shift);
            self.segment = self.segment.min(before.segment);
            self.syn = before.syn;
        }
    }

    /// Whether a pure ACK is a plain one, by all rules that need no other ACK of the queue.
    fn judge(&self, packet: &Packet, tcp: &TcpHeader, now: Instant) -> Result<(), KeepReason> {
        match self.phase {
            Phase::Unknown => return Err(KeepReason::MidStream),
            Phase::Barred => return Err(KeepReason::Handshake),
            Phase::Closing => return Err(KeepReason::Closing),
            Phase::Open => {}
        }
        rules::plain(packet, tcp)?;
        let Some((ack, window)) = self.last else { return Err(KeepReason::FirstSegments) };
        let (advance, segment) = (tcp.ack.distance(ack), u64::from(self.segment));
        let checks = [
            (!tcp.options.sack.is_empty(), KeepReason::Sack),
            (advance < 0, KeepReason::OldAck),
            (advance == 0 && tcp.window == window, KeepReason::Duplicate),
            (advance == 0 || tcp.window == 0 || window == 0, KeepReason::Window),
            (tcp.seq != self.next, KeepReason::Probe),
            (self.repeated, KeepReason::FirstAdvance),
            (now < self.off_until, KeepReason::Recovery),
            (self.acked < FIRST_SEGMENTS.saturating_mul(segment), KeepReason::FirstSegments),
            (self.run < SPARSE_RUN, KeepReason::Sparse),
            (self.per_ack > THINNED_SEGMENTS.saturating_mul(segment), KeepReason::ThinnedUpstream),
        ];
        checks.into_iter().find(|(keep, _)| *keep).map_or(Ok(()), |(_, reason)| Err(reason))
    }

    /// Remembers an accepted segment.
    fn note(&mut self, tcp: &TcpHeader, is_ack: bool, now: Instant, segment: u64) {
        if tcp.flags.contains(TcpFlags::SYN) {
            self.reopen(tcp, now, segment);
        }
        let flag = |flag| u32::from(tcp.flags.contains(flag));
        let end = tcp.seq + (tcp.payload_len + flag(TcpFlags::SYN) + flag(TcpFlags::FIN));
        self.next = self.next.max(end);
        if tcp.flags.intersects(TcpFlags::FIN.with(TcpFlags::RST)) {
            self.phase = Phase::Closing;
        }
        if tcp.flags.contains(TcpFlags::SYN) || !tcp.flags.contains(TcpFlags::ACK) {
            return; // a SYN-ACK acknowledges no data
        }
        self.run = if now.since(self.arrived) > SPARSE_GAP { 0 } else { self.run.saturating_add(1) };
        self.arrived = now;
        if let Some(syn) = self.syn.take() {
            self.rtt = Some(now.since(syn));
        }
        let Some((ack, window)) = self.last else {
            self.last = Some((tcp.ack, tcp.window));
            return;
        };
        let advance = tcp.ack.distance(ack);
        if advance > 0 {
            let bytes = u64::from(advance.unsigned_abs());
            self.acked = self.acked.saturating_add(bytes);
            self.repeated = false;
            if is_ack {
                self.per_ack = self.per_ack - (self.per_ack >> AVERAGE_SHIFT) + (bytes >> AVERAGE_SHIFT);
            }
        }
        let duplicate = is_ack && advance == 0 && tcp.window == window;
        if duplicate || !tcp.options.sack.is_empty() {
            self.repeated = true;
            self.off_until = now + self.rtt.map_or(LEAST_RTT, |rtt| rtt.max(LEAST_RTT));
        }
        if advance >= 0 {
            self.last = Some((tcp.ack, tcp.window));
        }
    }
}
