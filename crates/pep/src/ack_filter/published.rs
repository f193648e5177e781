//! The published schemes: Y. Ohta et al., "Controlling TCP ACK Transmission: Suitable Value of Discard Ratio
//! in LTE-Advanced Pro" (IEEE CSCN 2018).
//!
//! **Candidates.** A pure ACK is a candidate for discarding unless it is a duplicate (the last acknowledgment
//! number again, with the same window or with SACK blocks) or acknowledges less than an earlier one. The ACK
//! that a duplicate repeats stops being a candidate: without it the first duplicate would be the ACK that
//! advances, and the sender would count one duplicate too few for fast retransmit. A SYN, a RST, or an
//! acknowledgment number further ahead than the largest window ends all candidates of its connection. The
//! newest candidate of a connection is never discarded.
//!
//! **Arrival** (Active): the oldest candidates of the connection are discarded until at most `T` are left,
//! the arriving ACK included, and only if the buffer accepts the arriving ACK in the room so gained.
//!
//! **Grant** (Passive): of the candidates that do not fit the grant, the oldest share `ratio` is discarded,
//! over all connections. `served_range` determines which fit, a point on which the paper is silent.
//!
//! Left out: the safety rules 8 to 17. These schemes are for measurements, not for live traffic.

use super::queue::{AckQueue, SlotId};
use crate::flows::{FlowId, FlowTable};
use paceline_net::{Bytes, Instant, Packet, SeqNumber, TcpFlags, TcpHeader};

/// Transport blocks over which the mean size is taken. Chosen: the paper's long-term mean, which yet follows
/// a station that moves.
const MEAN_BLOCKS: u32 = 1000;
/// Added before a product is truncated. Chosen: a product such as 0.29 * 100 may be just below the integer in
/// floating point.
const ROUNDING: f64 = 1e-9;
/// Bytes of the largest window (RFC 7323 2.2): no valid acknowledgment advances by more.
const MAX_ADVANCE: i32 = 1 << 30;

/// How many ACKs of a connection stay at an arrival.
#[derive(Clone, Debug)]
pub(super) enum Threshold {
    /// All.
    None,
    /// `T`.
    Fixed(u32),
    /// `T_opt`: the ACKs that a mean transport block of the other direction causes.
    Measured(BlockMean),
}

/// Long-term mean of the other direction's transport block sizes (`S_TBS`): cumulative at first, then
/// exponential.
#[derive(Clone, Debug)]
pub(super) struct BlockMean {
    mean: f64,
    blocks: u32,
    /// `2 * (S_segment + S_header)`: bytes for which a receiver with delayed ACKs sends one ACK.
    per_ack: f64,
}

impl BlockMean {
    pub fn new(segment: Bytes, header: Bytes) -> Self {
        let per_ack = 2 * segment.0.saturating_add(header.0).clamp(1, u64::MAX / 2);
        Self { mean: 0.0, blocks: 0, per_ack: per_ack as f64 }
    }
    fn add(&mut self, size: Bytes) {
        if size > Bytes::ZERO {
            self.blocks = (self.blocks + 1).min(MEAN_BLOCKS);
            self.mean += (size.0 as f64 - self.mean) / f64::from(self.blocks);
        }
    }
    fn threshold(&self) -> Option<u32> {
        // The cast saturates, and truncates as the paper's floor function does.
        (self.blocks > 0).then(|| ((self.mean / self.per_ack) as u32).max(1))
    }
}

/// The last acknowledgment number and window of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct LastAck(Option<(SeqNumber, u16)>);

/// The part of the queue that a grant carries.
struct ServedRange {
    /// Candidates in it.
    fitting: u32,
    /// Serial numbers of the first candidate in it that is not displaced, and of the first packet behind it.
    from: u64,
    until: u64,
}

/// State of a published scheme.
#[derive(Clone, Debug)]
pub(super) struct Published {
    flows: FlowTable<LastAck>,
    threshold: Threshold,
    /// Share of the candidates that do not fit a grant which is discarded.
    ratio: f64,
}

impl Published {
    pub fn new(threshold: Threshold, ratio: f64) -> Self {
        // A ratio that is not a number discards nothing.
        let ratio = if ratio > 0.0 { ratio.min(1.0) } else { 0.0 };
        Self { flows: FlowTable::new(), threshold, ratio }
    }

    pub fn threshold(&self) -> Option<u32> {
        match &self.threshold {
            Threshold::None => None,
            Threshold::Fixed(threshold) => Some((*threshold).max(1)),
            Threshold::Measured(mean) => mean.threshold(),
        }
    }

    /// Whether the scheme discards anything, so that it needs the state of connections.
    fn is_active(&self) -> bool {
        self.ratio > 0.0 || !matches!(self.threshold, Threshold::None)
    }

    pub fn on_peer_block(&mut self, size: Bytes) {
        if let Threshold::Measured(mean) = &mut self.threshold {
            mean.add(size);
        }
    }

    pub fn push(&mut self, queue: &mut AckQueue, now: Instant, packet: Packet) {
        let known = match (packet.flow_key(), packet.tcp_header()) {
            (Some(key), Some(tcp)) if !packet.ip.special && self.is_active() => self
                .flows
                .find_or_insert(now, key, |flow| queue.candidates_of(flow) > 0)
                .map(|flow| (flow, *tcp)),
            _ => None,
        };
        let Some((flow, tcp)) = known else {
            if queue.accepts(&packet, Bytes::ZERO) {
                queue.append(now, packet, None);
            } else {
                queue.refuse(packet);
            }
            return;
        };
        let last = self.flows.state(flow).0;
        let duplicate = packet.is_pure_ack() && last.is_some_and(|last| is_duplicate(&tcp, last));
        let advances = last.is_none_or(|(ack, _)| tcp.ack >= ack);
        let is_candidate = packet.is_pure_ack() && advances && !duplicate;
        let restarts = tcp.flags.intersects(TcpFlags::SYN.with(TcpFlags::RST))
            || tcp.flags.contains(TcpFlags::ACK) && advances && is_beyond(queue, flow, last, tcp.ack);
        let excess = match self.threshold() {
            Some(threshold) if is_candidate && !restarts => {
                (queue.candidates_of(flow) + 1).saturating_sub(threshold)
            }
            _ => 0,
        };
        if !queue.accepts(&packet, length_of_oldest(queue, flow, excess)) {
            queue.refuse(packet);
            return;
        }
        for _ in 0..excess {
            let oldest = queue.oldest_of(flow).expect("the excess are candidates");
            queue.discard(oldest);
        }
        if restarts {
            queue.protect_all(flow);
        }
        self.on_accepted(queue, flow, &tcp, duplicate);
        let id = queue.append(now, packet, is_candidate.then_some(flow));
        if duplicate {
            queue.let_displace(id);
        }
    }

    /// Records a segment that the queue has accepted, and protects the ACK that a duplicate repeats.
    fn on_accepted(&mut self, queue: &mut AckQueue, flow: FlowId, tcp: &TcpHeader, duplicate: bool) {
        let last = &mut self.flows.state(flow).0;
        if tcp.flags.intersects(TcpFlags::SYN.with(TcpFlags::RST)) {
            *last = None;
        } else if tcp.flags.contains(TcpFlags::ACK) {
            if duplicate
                && let Some(newest) = queue.newest_of(flow)
                && queue.packet(newest).tcp_header().is_some_and(|repeated| repeated.ack == tcp.ack)
            {
                queue.protect(newest);
            }
            if last.is_none_or(|(ack, _)| tcp.ack >= ack) {
                *last = Some((tcp.ack, tcp.window));
            }
        }
    }

    pub fn on_grant(&mut self, queue: &mut AckQueue, room: Bytes, overhead: Bytes) {
        if self.ratio == 0.0 || queue.candidates() < 2 {
            return;
        }
        let served = served_range(queue, room, overhead);
        let excess = queue.candidates() - served.fitting;
        let mut to_discard = (self.ratio * f64::from(excess) + ROUNDING) as u32;
        let mut next = queue.first_candidate();
        while let Some(id) = next
            && to_discard > 0
        {
            next = queue.next_candidate(id);
            let fits = (served.from..served.until).contains(&queue.serial(id));
            if !fits && !queue.is_newest(id) {
                queue.discard(id);
                to_discard -= 1;
            }
        }
    }
}

/// Whether a pure ACK is a duplicate by RFC 5681, or by RFC 6675: a receiver whose buffer fills may change
/// the window while it repeats the acknowledgment number.
fn is_duplicate(tcp: &TcpHeader, (ack, window): (SeqNumber, u16)) -> bool {
    tcp.ack == ack && (tcp.window == window || !tcp.options.sack.is_empty())
}

/// Whether an acknowledgment number is further ahead than any valid one.
fn is_beyond(queue: &AckQueue, flow: FlowId, last: Option<(SeqNumber, u16)>, ack: SeqNumber) -> bool {
    let oldest = queue.oldest_of(flow).and_then(|id| queue.packet(id).tcp_header());
    let advance = |from: SeqNumber| ack.distance(from);
    last.is_some_and(|(last, _)| advance(last) > MAX_ADVANCE)
        || oldest.is_some_and(|tcp| !(0..=MAX_ADVANCE).contains(&advance(tcp.ack)))
}

fn length_of_oldest(queue: &AckQueue, flow: FlowId, count: u32) -> Bytes {
    let oldest = std::iter::successors(queue.oldest_of(flow), |id| queue.newer_of_flow(*id));
    oldest.take(count as usize).fold(Bytes::ZERO, |sum, id| sum + queue.len_of(id))
}

/// The first candidate from `id` on that is not the newest of its connection.
fn first_discardable(queue: &AckQueue, mut id: Option<SlotId>) -> Option<SlotId> {
    while let Some(at) = id
        && queue.is_newest(at)
    {
        id = queue.next_candidate(at);
    }
    id
}

/// Determines the range of the queue that a grant of `room` bytes carries, `overhead` bytes added to each
/// packet:
///
/// - The range begins at the head and takes packet after packet. A packet of which only a part has room does
///   not fit, since an ACK is useful only once its last byte has arrived. If no packet fits whole, the head
///   is sent in part, and a candidate there counts as fitting.
/// - A candidate or duplicate ACK without room displaces the oldest discardable candidates of the range,
///   because those are the ones that will be discarded. With only equal ACKs in the queue this gives the
///   counts of the paper's example.
/// - Any other packet is never discarded and takes its room. When it does not fit, it ends the range, as does
///   an ACK for which too little can be displaced. No ACK ahead of such a packet is displaced for it: that
///   would exchange an acknowledgment that this grant carries for one that waits behind the packet.
/// - Candidates outside the range do not fit: those displaced and those behind its end.
///
/// So a grant never carries an older acknowledgment of a lone connection than without the filter. The work is
/// proportional to the candidates in the range and those displaced, which `ratio` 1 then discards.
fn served_range(queue: &AckQueue, room: Bytes, overhead: Bytes) -> ServedRange {
    // Saturating, for absurd overheads.
    let cost = |id| queue.len_of(id).0.saturating_add(overhead.0);
    let mut oldest = first_discardable(queue, queue.first_candidate());
    // Bytes used, those of them that displacing could free, and candidates that fit.
    let (mut used, mut displaceable, mut fitting) = (0, 0, 0);
    let mut next = queue.head();
    while let Some(id) = next {
        let freeable = if queue.displaces(id) { displaceable } else { 0 };
        if cost(id).saturating_add(used - freeable) > room.0 {
            break;
        }
        while cost(id).saturating_add(used) > room.0 {
            let displaced = oldest.expect("displaceable bytes are those of candidates");
            used -= cost(displaced);
            displaceable -= cost(displaced);
            fitting -= 1;
            oldest = first_discardable(queue, queue.next_candidate(displaced));
        }
        used += cost(id);
        if queue.is_candidate(id) {
            fitting += 1;
            if !queue.is_newest(id) {
                displaceable += cost(id);
            }
        }
        next = queue.next(id);
    }
    if used == 0 && next.is_some_and(|id| queue.is_candidate(id)) {
        fitting = 1;
    }
    ServedRange {
        fitting,
        from: oldest.map_or(u64::MAX, |id| queue.serial(id)),
        until: next.map_or(u64::MAX, |id| queue.serial(id)),
    }
}
