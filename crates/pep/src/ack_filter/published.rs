//! The published schemes: Ohta et al., "Controlling TCP ACK Transmission: Suitable Value of Discard Ratio in
//! LTE-Advanced Pro" (IEEE CSCN 2018).
//!
//! **Which ACKs.** A pure ACK is listed, which makes it one that may be discarded, unless it is a duplicate (the
//! acknowledgment number of the connection's last segment again, with the same window or with SACK blocks) or
//! acknowledges less than an earlier one. The ACK that a duplicate repeats is unlisted as well: without it, the
//! first duplicate would be the one that advances, and the sender would count one too few for fast retransmit.
//! A SYN or RST ends what is listed, since the numbers behind it are another connection's; so does an ACK number
//! more than the largest window beyond one that is listed, for which "earlier" would lose its meaning. The newest listed ACK
//! of each connection stays whatever the rule asks for.
//!
//! **Arrival** (Active): the oldest listed ACKs of the connection go until at most `T` are left, the arrival
//! included. Room so gained counts when the buffer is full, and nothing goes unless the arrival is accepted.
//!
//! **Grant** (Passive): of the listed ACKs that do not fit, the oldest share `ratio`, over all connections. What
//! fits is the stretch of the queue that the grant carries when every ACK in it is made to count:
//! - The head of the queue fills the room, packet by packet, each with its overhead. A packet of which only a
//!   part has room does not fit, since an ACK is of use when its last byte has arrived. If nothing fits whole,
//!   the head is sent in part and an ACK there counts as one that fits.
//! - An ACK without room, listed or duplicate, pushes out the oldest discardable ACKs of the stretch, since those
//!   are the ones that the discard would take. With nothing but equal ACKs in the queue this gives the count of the published example.
//! - A packet that is no such ACK is never discarded and takes its room; when it does not fit, it ends the stretch, and
//!   so does an ACK for which too little can be pushed out. No ACK ahead of it goes for its sake: that would
//!   trade an acknowledgment that this grant carries for one that waits behind the packet.
//! - All listed ACKs outside the stretch do not fit: those pushed out and those behind its end.
//!
//! A grant so never carries an older acknowledgment of a lone connection than it would have without the filter.
//! The work is in proportion to the ACKs that fit and those that do not fit ahead of the stretch's end, the latter
//! of which go with ratio 1; a smaller ratio looks at 1/ratio times as many as it discards.
//!
//! Left out: rules 8 to 17 of the safe scheme; these are the published rules, to be measured, not deployed.

use super::flows::{FlowId, FlowTable};
use super::queue::{AckQueue, SlotId};
use paceline_net::{Bytes, Instant, Packet, SeqNumber, TcpFlags, TcpHeader};

/// Blocks after which the mean transport block forgets: it is long-term, yet follows a station that moves.
const MEAN_BLOCKS: u32 = 1000;
/// A product that is an integer on paper may be just below it in floating point (2/3 * 3).
const ROUNDING: f64 = 1e-9;

/// The largest window (RFC 7323, section 2.2): no true acknowledgment advances by more.
const MAX_ADVANCE: i32 = 1 << 30;

/// How many ACKs of a connection stay at an arrival.
#[derive(Clone, Debug)]
pub(super) enum Threshold {
    /// All.
    None,
    /// So many.
    Fixed(u32),
    /// As many as one mean transport block of the other direction causes.
    Measured(BlockMean),
}

/// The long-term mean of the other direction's transport blocks: cumulative at first, then exponential.
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
        // The cast saturates, and truncates as the published floor does.
        (self.blocks > 0).then(|| ((self.mean / self.per_ack) as u32).max(1))
    }
}

/// What is remembered of a connection: the last acknowledgment and window.
#[derive(Clone, Copy, Debug, Default)]
struct Last(Option<(SeqNumber, u16)>);

/// The part of the queue that a grant carries.
struct Stretch {
    /// Listed ACKs in it.
    fits: u32,
    /// Serial numbers of the first ACK that stays in it and of the first packet behind it.
    from: u64,
    until: u64,
}

/// State of a published scheme.
#[derive(Clone, Debug)]
pub(super) struct Published {
    flows: FlowTable<Last>,
    threshold: Threshold,
    /// Share discarded at grants.
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

    /// Whether there is anything to remember connections for.
    fn acts(&self) -> bool {
        self.ratio > 0.0 || !matches!(self.threshold, Threshold::None)
    }

    pub fn on_peer_block(&mut self, size: Bytes) {
        if let Threshold::Measured(mean) = &mut self.threshold {
            mean.add(size);
        }
    }

    pub fn push(&mut self, queue: &mut AckQueue, now: Instant, packet: Packet) {
        let known = match (packet.flow_key(), packet.tcp_header()) {
            (Some(key), Some(tcp)) if !packet.ip.special && self.acts() => {
                self.flows.enter(now, key, |flow| queue.listed_of(flow) > 0).map(|flow| (flow, *tcp))
            }
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
        let listable = packet.is_pure_ack() && advances && !duplicate;
        let restarts = tcp.flags.intersects(TcpFlags::SYN.with(TcpFlags::RST))
            || tcp.flags.contains(TcpFlags::ACK) && advances && is_beyond(queue, flow, last, tcp.ack);
        let excess = match self.threshold() {
            Some(threshold) if listable && !restarts => (queue.listed_of(flow) + 1).saturating_sub(threshold),
            _ => 0,
        };
        if !queue.accepts(&packet, length_of_oldest(queue, flow, excess)) {
            queue.refuse(packet);
            return;
        }
        for _ in 0..excess {
            let oldest = queue.oldest_of(flow).expect("the excess is listed");
            queue.discard(oldest);
        }
        if restarts {
            queue.unlist_all(flow);
        }
        self.note(queue, flow, &tcp, duplicate);
        let id = queue.append(now, packet, listable.then_some(flow));
        if duplicate {
            queue.mark_news(id);
        }
    }

    /// Remembers an accepted segment, and unlists what it forbids to discard.
    fn note(&mut self, queue: &mut AckQueue, flow: FlowId, tcp: &TcpHeader, duplicate: bool) {
        let last = &mut self.flows.state(flow).0;
        if tcp.flags.intersects(TcpFlags::SYN.with(TcpFlags::RST)) {
            *last = None;
        } else if tcp.flags.contains(TcpFlags::ACK) {
            if duplicate
                && let Some(newest) = queue.newest_of(flow)
                && queue.packet(newest).tcp_header().is_some_and(|repeated| repeated.ack == tcp.ack)
            {
                queue.unlist(newest);
            }
            if last.is_none_or(|(ack, _)| tcp.ack >= ack) {
                *last = Some((tcp.ack, tcp.window));
            }
        }
    }

    pub fn on_grant(&mut self, queue: &mut AckQueue, room: Bytes, overhead: Bytes) {
        if self.ratio == 0.0 || queue.listed() < 2 {
            return;
        }
        let stretch = stretch(queue, room, overhead);
        let excess = queue.listed() - stretch.fits;
        let mut share = (self.ratio * f64::from(excess) + ROUNDING) as u32;
        let mut next = queue.listed_head();
        while let Some(id) = next
            && share > 0
        {
            next = queue.listed_next(id);
            let fits = (stretch.from..stretch.until).contains(&queue.serial(id));
            if !fits && !queue.is_newest(id) {
                queue.discard(id);
                share -= 1;
            }
        }
    }
}

/// Whether a pure ACK repeats the last acknowledgment: RFC 5681's test, and RFC 6675's, since a receiver whose
/// buffer shrinks may change the window as well.
fn is_duplicate(tcp: &TcpHeader, (ack, window): (SeqNumber, u16)) -> bool {
    tcp.ack == ack && (tcp.window == window || !tcp.options.sack.is_empty())
}

/// Whether an acknowledgment is further ahead than any true one can be.
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

/// The first ACK from `id` on that may be discarded.
fn discardable(queue: &AckQueue, mut id: Option<SlotId>) -> Option<SlotId> {
    while let Some(at) = id
        && queue.is_newest(at)
    {
        id = queue.listed_next(at);
    }
    id
}

/// Finds what a grant of `room` carries; see the module's text.
fn stretch(queue: &AckQueue, room: Bytes, overhead: Bytes) -> Stretch {
    // Saturating, for an overhead that no link has.
    let cost = |id| queue.len_of(id).0.saturating_add(overhead.0);
    let mut oldest = discardable(queue, queue.listed_head());
    // Bytes used, and of these the ones that pushing out could give back.
    let (mut used, mut yielding, mut fits) = (0, 0, 0);
    let mut next = queue.head();
    while let Some(id) = next {
        let pushes = queue.is_news(id);
        let give = if pushes { yielding } else { 0 };
        if cost(id).saturating_add(used - give) > room.0 {
            break;
        }
        while cost(id).saturating_add(used) > room.0 {
            let out = oldest.expect("what yields is listed");
            used -= cost(out);
            yielding -= cost(out);
            fits -= 1;
            oldest = discardable(queue, queue.listed_next(out));
        }
        used += cost(id);
        if queue.is_listed(id) {
            fits += 1;
            if !queue.is_newest(id) {
                yielding += cost(id);
            }
        }
        next = queue.next(id);
    }
    if used == 0 && next.is_some_and(|id| queue.is_listed(id)) {
        fits = 1;
    }
    Stretch {
        fits,
        from: oldest.map_or(u64::MAX, |id| queue.serial(id)),
        until: next.map_or(u64::MAX, |id| queue.serial(id)),
    }
}
