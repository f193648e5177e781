//! The safe scheme, for live traffic: an ACK is discarded only when a later ACK, already queued behind it,
//! carries all of its information, and when its absence changes nothing for the sender's ACK clock, loss
//! detection and window.
//!
//! An arriving plain ACK is compared with the nearest candidate of its connection ahead of it, which is
//! discarded if every rule allows it, then with the next one, until one stays. Any other segment (data, a
//! flag, a duplicate, SACK blocks, anything unusual) separates: no ACK ahead of it is discarded any more.
//! This discards less than the rules allow, and leaves no doubt about the order.
//!
//! The rules have the numbers of docs/ack-filter.md, whose table names the files of their tests.

use super::connection::Connection;
use super::holdout::{Group, Holdout};
use super::queue::{AckQueue, Popped, SlotId};
use super::rules::{self, Kept, Limits};
use super::standing_queue::StandingQueue;
use super::stats::KeepReason;
use crate::flows::{FlowId, FlowTable};
use paceline_net::rewrite::checksum_is_right;
use paceline_net::{Bytes, Instant, Packet, Payload, TcpFlags, TcpHeader};

/// The candidates that an arriving ACK supersedes: the newest ones of its connection.
#[derive(Clone, Copy, Debug, Default)]
struct Superseded {
    acks: u32,
    bytes: Bytes,
    /// Why the next candidate ahead stays, if there is one.
    stopped_by: Option<KeepReason>,
}

/// State of the safe scheme.
#[derive(Clone, Debug)]
pub(super) struct Safe {
    connections: FlowTable<Connection>,
    standing_queue: StandingQueue,
    /// Payload bytes of a full-sized segment on the usual path.
    segment: u64,
    /// Connections of which nothing is discarded, for comparison.
    pub holdout: Holdout,
}

impl Safe {
    pub fn new(segment: Bytes) -> Self {
        Self {
            connections: FlowTable::new(),
            standing_queue: StandingQueue::default(),
            segment: segment.0,
            holdout: Holdout::default(),
        }
    }

    pub fn push(&mut self, queue: &mut AckQueue, now: Instant, packet: Packet) {
        self.standing_queue.observe(now, queue.head().map(|id| queue.arrived(id)));
        let is_ack = packet.is_pure_ack();
        let connection = self.find(queue, now, &packet);
        let verdict = match &connection {
            Ok((flow, tcp)) if is_ack => self.check(*flow, &packet, tcp, now),
            Ok(_) => Err(KeepReason::Separated), // not counted: the packet is no ACK
            Err(reason) => Err(*reason),
        };
        let superseded = match (&connection, verdict) {
            (Ok((flow, tcp)), Ok(())) => self.superseded(queue, *flow, (&packet, tcp), now),
            _ => Superseded::default(),
        };
        if !queue.accepts(&packet, superseded.bytes) {
            queue.refuse(packet);
            return;
        }
        let candidate_of = match &connection {
            Ok((flow, tcp)) => {
                if verdict.is_ok() {
                    Self::discard(queue, *flow, superseded);
                } else {
                    self.separate(queue, *flow, Kept { tcp: *tcp, arrived: now });
                }
                let queue_delay = self.standing_queue.delay();
                let connection = self.connections.state(*flow);
                connection.on_accepted(tcp, is_ack, now, self.segment, queue_delay);
                verdict.is_ok().then_some(*flow)
            }
            Err(_) => None,
        };
        let id = queue.append(now, packet, candidate_of);
        if is_ack {
            queue.keep(id, verdict.err().unwrap_or(KeepReason::Newest));
        }
    }

    /// Discards the candidates that an accepted plain ACK supersedes.
    fn discard(queue: &mut AckQueue, flow: FlowId, superseded: Superseded) {
        for _ in 0..superseded.acks {
            let old = queue.newest_of(flow).expect("superseded ACKs are candidates");
            queue.discard(old);
        }
        if let (Some(old), Some(reason)) = (queue.newest_of(flow), superseded.stopped_by) {
            queue.keep(old, reason);
        }
    }

    /// Protects all candidates of a connection, because a segment that is no plain ACK is queued behind them.
    fn separate(&mut self, queue: &mut AckQueue, flow: FlowId, separator: Kept) {
        if let Some(newest) = queue.newest_of(flow) {
            queue.keep(newest, KeepReason::Separated);
        }
        queue.protect_all(flow);
        self.connections.state(flow).kept_before = Some(separator);
    }

    /// The connection of a packet, or why an ACK of it is kept. A SYN inserts its connection.
    fn find(
        &mut self,
        queue: &AckQueue,
        now: Instant,
        packet: &Packet,
    ) -> Result<(FlowId, TcpHeader), KeepReason> {
        let (Some(key), Some(tcp)) = (packet.flow_key(), packet.tcp_header()) else {
            return Err(KeepReason::NotPlainIp); // not counted: the packet is no ACK
        };
        if packet.ip.special {
            return Err(KeepReason::NotPlainIp);
        }
        if tcp.payload_len == 0 && is_corrupt(packet) {
            return Err(KeepReason::Corrupt);
        }
        if tcp.flags.contains(TcpFlags::SYN) {
            let busy = |flow| queue.candidates_of(flow) > 0;
            let flow = self.connections.find_or_insert(now, key, busy).ok_or(KeepReason::NoState)?;
            return Ok((flow, *tcp));
        }
        let flow = self.connections.find(now, key);
        let full = self.connections.is_full();
        let missing = if full { KeepReason::NoState } else { KeepReason::MidStream };
        flow.map(|flow| (flow, *tcp)).ok_or(missing)
    }

    /// Whether a pure ACK may supersede others and become a candidate.
    fn check(&mut self, flow: FlowId, ack: &Packet, tcp: &TcpHeader, now: Instant) -> Result<(), KeepReason> {
        self.connections.state(flow).check(ack, tcp, now)?;
        let group = ack.flow_key().and_then(|key| self.holdout.group(&key));
        if group == Some(Group::HeldOut) { Err(KeepReason::HeldOut) } else { Ok(()) }
    }

    /// The candidates that an arriving plain ACK supersedes.
    fn superseded(
        &mut self,
        queue: &AckQueue,
        flow: FlowId,
        new: (&Packet, &TcpHeader),
        now: Instant,
    ) -> Superseded {
        let connection = *self.connections.state(flow);
        let limits = Limits {
            max_bytes: rules::MAX_SEGMENTS.saturating_mul(connection.segment.into()),
            max_gap: rules::max_gap(connection.rtt(self.standing_queue.delay())),
            shift: connection.shift,
        };
        let mut superseded = Superseded::default();
        let mut next = queue.newest_of(flow);
        while let Some(old) = next {
            next = queue.older_of_flow(old);
            let kept_before = match next {
                Some(id) => header(queue, id).map(|(_, tcp)| Kept { tcp: *tcp, arrived: queue.arrived(id) }),
                None => connection.kept_before,
            };
            let verdict = match (kept_before, header(queue, old)) {
                _ if !self.standing_queue.is_standing() => Err(KeepReason::NoStandingQueue),
                (Some(kept_before), Some(old)) => rules::supersedes(&kept_before, old, new, now, limits),
                _ => Err(KeepReason::FirstSegments),
            };
            if let Err(reason) = verdict {
                superseded.stopped_by = Some(reason);
                break;
            }
            superseded.acks += 1;
            superseded.bytes += queue.len_of(old);
        }
        superseded
    }

    /// A packet has left at the head.
    pub fn on_pop(&mut self, queue: &AckQueue, now: Instant, popped: &Popped) {
        self.standing_queue.observe(now, queue.head().map(|id| queue.arrived(id)));
        let Some(tcp) = popped.packet.tcp_header() else { return };
        if let Some(flow) = popped.flow {
            self.connections.state(flow).kept_before = Some(Kept { tcp: *tcp, arrived: popped.arrived });
        } else if tcp.flags.contains(TcpFlags::SYN)
            && let Some(flow) = popped.packet.flow_key().and_then(|key| self.connections.find(now, key))
        {
            self.connections.state(flow).on_syn_left(tcp, now);
        }
    }
}

/// Whether the receiver will drop a segment for its checksum. Only segments without payload are verified: of
/// data the scheme uses sequence numbers alone, and wrong ones only keep more ACKs.
fn is_corrupt(packet: &Packet) -> bool {
    let is_complete = |bytes: &[u8]| bytes.len() == packet.len as usize;
    matches!(&packet.payload, Payload::Datagram(bytes) if is_complete(bytes)) && !checksum_is_right(packet)
}

fn header(queue: &AckQueue, id: SlotId) -> Option<(&Packet, &TcpHeader)> {
    let packet = queue.packet(id);
    packet.tcp_header().map(|tcp| (packet, tcp))
}
