//! ACKs of the client (RFC 9293, section 3.10.7.4; RFC 2018; RFC 2883; RFC 5681): delivered data leaves the
//! scoreboard and the store, losses are detected.

use crate::accelerator::flow::connection::Connection;
use crate::accelerator::flow::context::Context;
use crate::accelerator::flow::from_server::FromServer;
use crate::accelerator::flow::to_client::ToClient;
use crate::accelerator::flow::to_client::rtt::RttBounds;
use crate::accelerator::flow::to_client::scoreboard::delivery::Delivery;
use paceline_net::{Duration, TcpFlags, TcpHeader};

/// Duplicate ACKs that indicate a drop past the client's window (RFC 5681, section 3.2).
const DUPLICATE_THRESHOLD: u8 = 3;
/// Bytes past the client's window that one ACK shows to be lost, from which the client probably dropped them.
/// Chosen: ten segments of 1460 bytes. It drops all of them at once; a radio loses a few.
const CLIENT_DROP_BYTES: u64 = 14_600;

/// An acknowledgment of the client.
#[derive(Clone, Copy)]
pub(in crate::accelerator) struct ClientAck<'a> {
    pub tcp: &'a TcpHeader,
    /// The offset up to which it acknowledges.
    pub ack: u64,
    /// The segment has payload, FIN or URG: it is no duplicate ACK.
    pub carries: bool,
}

impl ToClient {
    /// An acceptable ACK of the client.
    pub fn on_ack(
        &mut self,
        cx: &mut Context<'_>,
        connection: &Connection,
        from_server: &mut FromServer,
        client_ack: ClientAck<'_>,
    ) -> Delivery {
        let ClientAck { tcp, ack, carries } = client_ack;
        let size = u64::from(tcp.window) << connection.negotiated.client_shift;
        let advances = ack > self.una;
        let duplicate = ack == self.una && !carries && self.has_outstanding();
        let was_closed = self.window.is_closed();
        let edge = self.window.edge();
        let change = self.window.update(self.una, ack, size, tcp.seq);
        if change.opens && (was_closed || !self.has_outstanding()) {
            self.timer_base = cx.now;
        }
        let ranges = self.sack_ranges(connection, tcp, ack);
        let una = self.una.max(ack);
        let bounds = self.rtt_bounds(connection.negotiated.sack, from_server);
        let mut delivery = self.scoreboard.on_ack(cx.now, una, ranges.iter().flatten().copied(), &bounds);
        delivery.opened = self.window.edge().saturating_sub(edge);
        let payload = |off: u64| off.min(from_server.next());
        cx.stats.bytes_delivered += payload(una) - payload(self.una);
        let acked = una - self.una;
        self.una = una;
        from_server.release(cx.now, una);
        if let Some(rtt) = delivery.rtt {
            self.rtt.on_sample(rtt);
            self.ambiguous_acks = 0;
        }
        if delivery.bytes > 0 {
            self.timer_base = cx.now;
        }
        if delivery.bytes > 0 || change.opens {
            self.progress_at = cx.now;
            self.rtt.on_progress();
        }
        self.ambiguous_acks = self.ambiguous_acks.saturating_add(u8::from(delivery.ambiguous));
        self.send_now |= advances && self.scoreboard.is_recovering() && self.scoreboard.is_front_lost();
        if delivery.ambiguous && self.has_outstanding() {
            self.send_now = true; // new data if there is any: its ACK is unambiguous (RFC 5682)
        }
        let dsack = has_dsack(tcp);
        let bare = duplicate && !dsack && delivery.bytes == 0 && (change.same_size || change.advances);
        if dsack {
            self.scoreboard.on_dsack(cx.now, self.una);
            delivery.spurious += u64::from(self.segment);
        }
        if let Some(segment) = self.black_hole.on_delivery(delivery.longest, advances) {
            self.shorten(segment);
            delivery.black_hole = true;
            cx.stats.black_holes += 1;
        }
        if advances {
            self.check_reneging(cx.now);
        }
        if connection.negotiated.ecn && tcp.flags.contains(TcpFlags::ECE) && self.una > self.cwr_until {
            // Congestion on the mobile segment is answered once a flight, and hidden from the server.
            self.cwr_until = self.nxt;
            self.cwr_due = true;
        }
        if advances {
            self.duplicates = 0;
            let small = self.has_small_window();
            self.overshoot.on_progress(cx.now, size, acked, self.useful_window.into(), small);
        } else if bare {
            delivery.bytes += self.on_bare_duplicate(cx, connection.negotiated.sack);
        }
        self.detect_losses(cx.now);
        self.scoreboard.take_losses(&mut delivery);
        let counts = !self.fading && !self.has_small_window();
        if counts && delivery.lost + delivery.lost_beyond_window > 0 && self.nxt > self.window.edge() {
            self.overshoot.on_loss(cx.now, self.rtt.srtt().unwrap_or_default());
        }
        if counts && delivery.lost_beyond_window >= CLIENT_DROP_BYTES {
            self.overshoot.charge(delivery.lost_beyond_window);
        }
        delivery
    }

    /// The SACK blocks that lie within the outstanding data above `ack`, as offsets.
    fn sack_ranges(&self, connection: &Connection, tcp: &TcpHeader, ack: u64) -> [Option<(u64, u64)>; 4] {
        let ranges = tcp.options.sack.as_slice().iter().filter_map(|(left, right)| {
            let (left, right) = (connection.offset(*left, self.una)?, connection.offset(*right, self.una)?);
            (left < right && right <= self.nxt && left > ack).then_some((left, right))
        });
        let mut all = [None; 4];
        all.iter_mut().zip(ranges).for_each(|(slot, range)| *slot = Some(range));
        all
    }

    fn rtt_bounds(&self, sack: bool, from_server: &FromServer) -> RttBounds {
        let has_unsent = self.nxt < from_server.stream_end();
        let if_fading = |time: Duration| if self.fading { time } else { Duration::ZERO };
        let frto_off = self.is_frto_off(sack, has_unsent);
        RttBounds {
            min: self.rtt.min(),
            shortest: if_fading(self.rtt.srtt().unwrap_or_default() / 2),
            longest: if frto_off { Duration::MAX } else { self.rtt.base_rto() },
            first_copy: if_fading(self.rtt.ack_deadline(self.last_response_at).age),
        }
    }

    /// A duplicate ACK that reports nothing else. Without SACK it says that some segment has arrived; returns
    /// the bytes.
    fn on_bare_duplicate(&mut self, cx: &mut Context<'_>, sack: bool) -> u64 {
        self.duplicates = self.duplicates.saturating_add(1);
        cx.stats.duplicates_suppressed += 1;
        if self.fading && sack {
            self.scoreboard.on_spurious(cx.now);
        }
        // If the client had accepted the first segment, an ACK from after its arrival would cover it. A
        // window update of a slow reader looks the same, but comes alone.
        let arrival = self.rtt.srtt().unwrap_or_default() * 7 / 8;
        let sent_at = self.scoreboard.front_past_edge_sent_at();
        let overdue = sent_at.is_some_and(|at| cx.now.since(at) >= arrival);
        // Not on fading radios, where a duplicate ACK answers a spurious retransmission. Not with a hole,
        // which is repaired together with everything that was dropped behind it.
        let hole = self.scoreboard.has_hole();
        let dropped = overdue && !self.fading && !hole && self.duplicates >= DUPLICATE_THRESHOLD - 1;
        let lost = if dropped { self.scoreboard.lose_past_edge() } else { 0 };
        if lost > 0 {
            self.overshoot.on_drop(cx.now);
            self.overshoot.charge(lost);
            cx.stats.overshoot_drops += 1;
            self.scoreboard.lose_first(false);
            return 0;
        }
        let overdue = self.rtt.srtt().unwrap_or_default() * 2;
        let (arrived, lost) = self.scoreboard.on_bare_duplicate(cx.now, self.segment, overdue);
        self.send_now |= lost;
        arrived
    }
}

/// Whether the first SACK block is a DSACK (RFC 2883): below the acknowledgment, or inside the second block.
fn has_dsack(tcp: &TcpHeader) -> bool {
    let blocks = tcp.options.sack.as_slice();
    let Some((left, right)) = blocks.first() else { return false };
    let inside = blocks.get(1).is_some_and(|(from, until)| left >= from && right <= until);
    *right <= tcp.ack || inside
}
