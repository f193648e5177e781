//! Segments of the client: its acknowledgments are taken over, its data, FIN and reset go on with the numbers that
//! the server has seen from us.

use crate::accelerator::flow::to_client::recovery::MOST_DOUBTS;
use crate::accelerator::flow::to_client::scoreboard::{Answers, Delivery};
use crate::accelerator::flow::{Context, Fate, Flow};
use paceline_net::rewrite;
use paceline_net::{Duration, Packet, SeqNumber, TcpFlags, TcpHeader, Timestamps, Transport};

/// Duplicates that stand for a drop past the client's edge.
const DUPLICATES: u8 = 3;
/// Answers in a row, with no other between them, that claim what never came here, before they are believed.
const INSISTENCE: u8 = 2;
/// Acknowledgments so far below the last are none of this connection (RFC 5961, section 5.2), at least.
const LEAST_REACH: u64 = 1 << 20;

impl Flow {
    /// A segment from the mobile side without SYN. The second value is what was delivered.
    pub fn on_client(&mut self, cx: &mut Context<'_>, packet: Packet) -> (Fate, Delivery) {
        let none = Delivery::default();
        let Transport::Tcp(tcp) = packet.transport else { return (Fate::Pass(packet), none) };
        self.seen_at = cx.now;
        if tcp.flags.contains(TcpFlags::RST) {
            return (self.on_client_reset(cx, packet, tcp.seq), none);
        }
        let carries = tcp.payload_len > 0 || tcp.flags.intersects(TcpFlags::FIN.with(TcpFlags::URG));
        let ack = self.offset(tcp.ack, self.una).filter(|_| tcp.flags.contains(TcpFlags::ACK));
        let reach = cx.config.flow_buffer.0.max(LEAST_REACH);
        let plausible = self.uplink.accepts_seq(tcp.seq) && !self.is_old_of_client(cx.now, &tcp);
        let Some(mut ack) = ack.filter(|ack| plausible && *ack + reach >= self.una) else {
            if self.uplink.resting {
                // Others have gone past us, and this one has not. What comes here are an end, and what carries nothing:
                // a probe of a closed window, a keepalive.
                let usual = self.uplink.note_end(&tcp) || !carries && ack.is_some_and(|ack| ack <= self.nxt);
                return (if usual { Fate::Pass(packet) } else { Fate::Detach(packet) }, none);
            }
            if ack.is_some() {
                self.uplink.note_claim(&tcp);
            }
            cx.stats.invalid += 1;
            return (Self::leave_to_server(cx, packet, carries), none);
        };
        if ack > self.nxt {
            if !self.is_quiet() && !self.has_unseen(cx, ack, reach) {
                // Data was never sent so far: an optimistic acknowledgment, which is worth nothing.
                cx.stats.optimistic_acks += 1;
                return (Self::leave_to_server(cx, packet, carries), none);
            }
            if ack >= self.store.next() && self.reset.is_none() {
                return (Fate::Detach(packet), none);
            }
            // What is held beyond goes on from there.
            self.nxt = self.nxt.max(ack.min(self.store.next()));
            ack = self.nxt;
        }
        let probes =
            tcp.payload_len == 0 && tcp.seq != self.uplink.next && self.uplink.next.distance(tcp.seq) == 1;
        let uncertain = self.uplink.uncertain;
        self.uplink.on_client(cx.now, &packet, &tcp);
        self.complete = true;
        self.heard_at = cx.now;
        self.window_probes = 0;
        self.rtt.on_progress();
        let back = std::mem::take(&mut self.silent);
        let delivery = self.take_ack(cx, &tcp, ack, carries);
        if back && self.is_waiting() {
            // What it lacks, or what tells whether it lacks anything, goes at once.
            self.timer_base = cx.now;
            self.ask(cx.now);
        }
        let answers = std::mem::take(&mut self.probe_passed);
        (self.forward_or_absorb(cx, packet, carries || probes || answers || uncertain), delivery)
    }

    /// Whether an acknowledgment of more than was sent from here is believed. Where packets went past us, the client may
    /// have got from the server what we lack, and needs us no more: it has all that was acknowledged in its name. No more
    /// than a window, though, unless its server has said that it stands there, and not once: else one injected number would
    /// do. A client that was asked for what it owes answers; if this comes twice and nothing else, it is its answer.
    fn has_unseen(&mut self, cx: &Context<'_>, ack: u64, reach: u64) -> bool {
        let asked = self.asked_at > self.heard_at || self.window_probes > 0;
        let told = self.server_at.abs_diff(ack) <= reach;
        if ack > self.client_edge.max(self.store.next() + reach) && !told {
            return false;
        }
        self.uplink.claims += u8::from(asked);
        cx.absent || self.uplink.claims >= INSISTENCE
    }

    fn on_client_reset(&mut self, cx: &mut Context<'_>, packet: Packet, seq: SeqNumber) -> Fate {
        // Where the client stands is not known once its segments have gone past us. The server judges, and where nothing is
        // owed, a connection that goes on does so without us.
        let unknown = self.uplink.resting || self.uplink.uncertain;
        if self.uplink.accepts_reset(seq) || unknown && self.is_quiet() {
            return Fate::Over(packet);
        }
        // Not exact: the server will challenge it. It changes nothing here until the number is right.
        cx.stats.invalid += 1;
        Fate::Pass(packet)
    }

    /// What no endpoint would accept: the server sees it as it is, and judges; with our acknowledgment number it would
    /// take injected data for the client's (RFC 5961, section 5.2).
    fn leave_to_server(cx: &mut Context<'_>, packet: Packet, carries: bool) -> Fate {
        if carries {
            return Fate::Pass(packet);
        }
        cx.stats.acks_absorbed += 1;
        Fate::Absorbed
    }

    /// Empty acknowledgments end here; anything else goes on with the numbers that the server has seen.
    fn forward_or_absorb(&mut self, cx: &mut Context<'_>, mut packet: Packet, forward: bool) -> Fate {
        let Some(tcp) = packet.tcp_header().copied() else { return Fate::Pass(packet) };
        if !forward {
            cx.stats.acks_absorbed += 1;
            return Fate::Absorbed;
        }
        // From the echo in data a server takes the round trip to the client, which its receive window grows by (Linux), so
        // they keep their own: the client has not seen what has just come here. What acknowledges that goes ahead of them.
        let data = tcp.payload_len > 0;
        if data && self.is_ack_due(cx) {
            self.emit_server_ack(cx, None);
        }
        let window = self.advance_ack(cx);
        let ecn = if self.agreed.ecn { TcpFlags::ECE.0 } else { 0 };
        let ece = if self.echo_congestion { TcpFlags::ECE.0 } else { 0 };
        let mut new =
            TcpHeader { ack: self.seq(self.acked), window, flags: TcpFlags(tcp.flags.0 & !ecn | ece), ..tcp };
        let echo = |own: Timestamps| if data { own } else { Timestamps { ecr: self.ts_recent, ..own } };
        new.options.timestamps = tcp.options.timestamps.map(echo);
        new.options.sack = self.sack_blocks(None);
        rewrite::rewrite(&mut packet, &new);
        Fate::Pass(packet)
    }

    fn take_ack(&mut self, cx: &mut Context<'_>, tcp: &TcpHeader, ack: u64, carries: bool) -> Delivery {
        let window = u64::from(tcp.window) << self.agreed.client_shift;
        let edge = ack + window;
        let advances = ack > self.una;
        let blocks = tcp.options.sack.as_slice();
        let duplicate = ack == self.una && !carries && self.is_waiting();
        let same_window = window == self.client_window;
        let moved = edge > self.client_edge;
        // RFC 9293's test, and besides an edge that grows: an injected number must not shut the window for good.
        if ack > self.una || ack == self.una && (tcp.seq >= self.wl1 || edge > self.client_edge) {
            if edge > self.client_edge || window > 0 && self.client_window == 0 {
                self.timer_base = if self.is_waiting() { self.timer_base } else { cx.now };
            }
            (self.client_edge, self.client_window, self.wl1) = (edge, window, tcp.seq);
        }
        let ranges = blocks.iter().filter_map(|(left, right)| {
            let (left, right) = (self.offset(*left, self.una)?, self.offset(*right, self.una)?);
            (left < right && right <= self.nxt && left > ack).then_some((left, right))
        });
        let ranges: [Option<(u64, u64)>; 4] = collect(ranges);
        let una = self.una.max(ack);
        let answers = self.answers();
        let mut delivery = self.board.on_ack(cx.now, una, ranges.iter().flatten().copied(), &answers);
        let payload = |off: u64| off.min(self.store.next());
        cx.stats.bytes_delivered += payload(una) - payload(self.una);
        let acked = una - self.una;
        self.una = una;
        self.store.release(una);
        if self.urgent.as_ref().is_some_and(|urgent| urgent.1 <= una) {
            self.urgent = None;
        }
        if let Some(rtt) = delivery.rtt {
            self.rtt.on_sample(rtt);
            self.doubted = 0;
        }
        if delivery.bytes > 0 {
            self.timer_base = cx.now;
        }
        self.doubted = self.doubted.saturating_add(u8::from(delivery.doubtful));
        self.force |= advances && self.board.is_recovering() && self.board.is_front_lost();
        if delivery.doubtful && self.is_waiting() {
            self.force = true; // by what is sent now, if it can be new
        }
        let reported = is_duplicate_report(tcp);
        let pure = duplicate && !reported && delivery.bytes == 0 && (same_window || moved);
        if reported {
            self.board.on_duplicate(cx.now, self.una);
            delivery.in_vain += u64::from(self.agreed.segment);
        }
        if let Some(segment) = self.black_hole.on_delivery(delivery.longest, advances) {
            self.shorten(segment);
            delivery.black_hole = true;
            cx.stats.black_holes += 1;
        }
        if advances && self.board.has_reneged() {
            self.board.lose_all();
        }
        self.take_congestion_echo(tcp);
        if advances {
            self.duplicates = 0;
            self.overshoot.on_progress(cx.now, window, acked, self.useful_window);
        } else if pure {
            delivery.bytes += self.on_duplicate(cx);
        }
        self.judge(cx.now);
        self.board.take_lost(&mut delivery);
        self.ack_due |= self.is_ack_due(cx);
        delivery
    }

    /// What answers to repetitions are measured by.
    fn answers(&self) -> Answers {
        let sure = self.fades || !self.agreed.sack || self.doubted >= MOST_DOUBTS || !self.has_unsent();
        let fading = |time: Duration| if self.fades { time } else { Duration::ZERO };
        Answers {
            least: self.rtt.min(),
            shortest: fading(self.rtt.srtt().unwrap_or_default() / 2),
            longest: if sure { Duration::MAX } else { self.rtt.base() },
            usual: fading(self.rtt.patience(self.heard_at).age),
        }
    }

    /// A duplicate that says no more: where there is no SACK, that something has arrived, and not what. Returns how much.
    fn on_duplicate(&mut self, cx: &mut Context<'_>) -> u64 {
        self.duplicates = self.duplicates.saturating_add(1);
        cx.stats.duplicates_suppressed += 1;
        if self.fades && self.agreed.sack {
            self.board.on_vain(cx.now); // it answers a guess
        }
        // An ACK from after its arrival would acknowledge the first segment if the client had taken it. A mere window
        // update of a slow reader looks alike, but comes alone.
        let due = self.rtt.srtt().unwrap_or_default() * 7 / 8;
        let overdue = self.board.first_beyond_sent_at().is_some_and(|at| cx.now.since(at) >= due);
        // Where radios fade, duplicates are answers to guesses that came twice, and what a hole kept out is lost with the hole.
        let dropped = overdue && !self.fades && !self.board.has_hole() && self.duplicates >= DUPLICATES - 1;
        if dropped && self.board.lose_beyond() {
            self.overshoot.on_drop(cx.now);
            cx.stats.overshoot_drops += 1;
            self.board.lose_first(false);
            return 0;
        }
        let due = self.rtt.srtt().unwrap_or_default() * 2;
        let (arrived, lost) = self.board.on_bare_duplicate(cx.now, self.agreed.segment, due);
        self.force |= lost;
        arrived
    }

    /// Congestion on the mobile segment: answered once a flight, and no business of the server's.
    fn take_congestion_echo(&mut self, tcp: &TcpHeader) {
        if self.agreed.ecn && tcp.flags.contains(TcpFlags::ECE) && self.una > self.cwr_until {
            self.cwr_until = self.nxt;
            self.cwr_due = true;
        }
    }
}

/// Whether the first block reports a duplicate (RFC 2883): below the acknowledgment, or inside the second.
fn is_duplicate_report(tcp: &TcpHeader) -> bool {
    let blocks = tcp.options.sack.as_slice();
    let Some((left, right)) = blocks.first() else { return false };
    let inside = blocks.get(1).is_some_and(|(from, until)| left >= from && right <= until);
    *right <= tcp.ack || inside
}

fn collect(ranges: impl Iterator<Item = (u64, u64)>) -> [Option<(u64, u64)>; 4] {
    let mut all = [None; 4];
    all.iter_mut().zip(ranges).for_each(|(slot, range)| *slot = Some(range));
    all
}
