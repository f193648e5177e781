//! One accelerated connection: a receiver towards its server (`inbound`), a sender towards its client (`outbound`),
//! and what passes the other way (`client`).
//!
//! Stream positions are 64-bit offsets from the server's initial sequence number, whose SYN is offset 0: data begins
//! at 1. Serial numbers exist on the wire only.

pub(in crate::accelerator) mod from_server;
pub(in crate::accelerator) mod to_client;
pub(in crate::accelerator) mod upload;

use crate::accelerator::Transmission;
use crate::accelerator::config::AcceleratorConfig;
use crate::accelerator::flow::from_server::ahead::Ahead;
use crate::accelerator::flow::from_server::inbound::LARGEST_PACKET;
use crate::accelerator::flow::from_server::store::Store;
use crate::accelerator::flow::to_client::black_hole::BlackHole;
use crate::accelerator::flow::to_client::overshoot::Overshoot;
use crate::accelerator::flow::to_client::rtt::Rtt;
use crate::accelerator::flow::to_client::scoreboard::Scoreboard;
use crate::accelerator::flow::upload::uplink::Uplink;
use crate::accelerator::machine::exposed::NOWHERE;
use crate::accelerator::machine::index::Keyed;
use crate::accelerator::machine::opening::{Agreed, Opened};
use crate::accelerator::machine::timers::Alarm;
use crate::accelerator::stats::AcceleratorStats;
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{Checksum, Duration, FlowKey, Instant, IpHeader, Packet, SeqNumber, TcpHeader};
use std::collections::VecDeque;
use std::hint::black_box;

/// A connection without a packet for so long is idle.
const IDLE: Duration = Duration::from_secs(1);

/// What a connection is handed with every call.
pub(in crate::accelerator) struct Context<'a> {
    pub now: Instant,
    pub config: &'a AcceleratorConfig,
    pub stats: &'a mut AcceleratorStats,
    pub out: &'a mut VecDeque<Transmission>,
    /// Early acknowledgments are wanted: the accelerator is not being stopped.
    pub early: bool,
    /// Packets may have gone past us: see [`crate::accelerator::Accelerator::on_absence`].
    pub absent: bool,
    /// What may be promised to the server ahead of what the client has, in bytes.
    pub share: u64,
    /// Buffers run short: windows do not open.
    pub tight: bool,
    /// Buffers are full: nothing new is taken.
    pub full: bool,
}

/// What becomes of the packet that was handed in, and of the connection.
#[derive(Debug)]
pub(in crate::accelerator) enum Fate {
    /// The packet goes on as it is (or as it was rewritten).
    Pass(Packet),
    /// Its content was taken over.
    Absorbed,
    /// The connection is over; the packet goes on.
    Over(Packet),
    /// The connection goes on end to end, and so does the packet.
    Detach(Packet),
}

/// A reset of the server that waits for what is held ahead of it.
#[derive(Clone, Debug)]
pub(in crate::accelerator) struct PendingReset {
    pub packet: Packet,
    pub until: Instant,
}

#[derive(Debug)]
pub(in crate::accelerator) struct Flow {
    /// Direction from server to mobile.
    pub key: FlowKey,
    pub device: u32,
    pub agreed: Agreed,
    /// The handshake is complete: false only under Fast Open, ahead of the client's acknowledgment.
    pub complete: bool,
    pub server_isn: SeqNumber,
    /// Its packets are bytes, not simulated lengths.
    pub real: bool,

    // Towards the server.
    /// What the server has seen acknowledged.
    pub acked: u64,
    /// The right edge that the server has seen.
    pub edge: u64,
    /// TS.Recent of RFC 7323, for the server.
    pub ts_recent: u32,
    /// Offset of the server's FIN.
    pub fin: Option<u64>,
    /// Urgent data: where its packet begins and where it ends.
    pub urgent: Option<Box<(u64, u64)>>,
    /// Congestion was experienced on the wired segment and the server has not answered.
    pub echo_congestion: bool,
    pub ack_due: bool,
    /// Where the server was heard beyond any edge that it was told here; 0 for never.
    pub server_at: u64,
    pub reset: Option<Box<PendingReset>>,

    // Towards the client.
    /// What the client has acknowledged.
    pub una: u64,
    /// What was sent to the client.
    pub nxt: u64,
    /// Right edge and size of the client's window.
    pub client_edge: u64,
    pub client_window: u64,
    /// Number of the segment that told the window.
    pub wl1: SeqNumber,
    /// The server's highest TSval, and its last TSecr.
    pub server_timestamp: u32,
    pub server_echo: u32,
    pub flow_label: u32,
    pub server_hop_limit: u8,
    /// What the path holds, for the overshoot.
    pub useful_window: u64,
    /// Its device's radio loses what is not answered in time.
    pub fades: bool,
    pub store: Store,
    /// Packets of the server, ahead of those that end a rest.
    pub ahead: Ahead,
    pub board: Scoreboard,
    pub rtt: Rtt,
    pub overshoot: Overshoot,
    pub black_hole: BlackHole,
    pub duplicates: u8,
    /// The server said something that the client has not heard.
    pub news: bool,
    /// The client's congestion echo is to be answered.
    pub cwr_due: bool,
    /// End of the flight in which the client's congestion echo was answered.
    pub cwr_until: u64,
    /// A probe of the server's was passed on: the client's answer is the server's.
    pub probe_passed: bool,
    /// A handshake under the same addresses and ports has passed, which the client has not confirmed.
    pub contested: bool,
    /// One segment may leave regardless of rate and window.
    pub force: bool,
    /// Retransmission timer: since when the client owes an answer.
    pub timer_base: Instant,
    /// When the client was last heard while it owed an answer.
    pub heard_at: Instant,
    /// Nothing at all was heard of it for two timeouts: it gets nothing but probes.
    pub silent: bool,
    /// When it was last asked for what it owes.
    pub asked_at: Instant,
    /// Repetitions on suspicion acknowledged since anything told whether they were needed.
    pub doubted: u8,
    /// Unanswered probes of a zero window.
    pub window_probes: u8,
    /// When to look for losses again; [`Instant::MAX`] for never.
    pub reorder_at: Instant,

    pub uplink: Uplink,

    // For the tables.
    pub alarm: Alarm,
    pub in_backlog: bool,
    pub in_due: bool,
    /// What the device and the total have been charged with.
    pub charged_in_flight: u64,
    pub charged_held: u64,
    pub charged_exposure: u64,
    pub counted_busy: bool,
    pub counted_behind: bool,
    /// Its place in the list of those that the journal has, and the acknowledgment that was told to the journal.
    pub listed_at: u32,
    pub journaled_acked: u64,
    pub in_changed: bool,
    pub seen_at: Instant,
}

impl Keyed for Flow {
    type Key = FlowKey;
    fn key(&self) -> FlowKey {
        self.key
    }
}

impl Flow {
    pub fn new(now: Instant, key: FlowKey, device: u32, opened: &Opened, uplink: Uplink) -> Self {
        let first = 1;
        Self {
            key,
            device,
            agreed: opened.agreed,
            complete: opened.complete,
            server_isn: opened.server_isn,
            real: false,
            acked: first,
            edge: opened.client_edge,
            ts_recent: opened.server_timestamp,
            fin: None,
            urgent: None,
            echo_congestion: false,
            ack_due: false,
            server_at: 0,
            reset: None,
            una: first,
            nxt: first,
            client_edge: opened.client_edge,
            client_window: opened.client_edge - first,
            wl1: uplink.next,
            server_timestamp: opened.server_timestamp,
            server_echo: uplink.timestamp,
            flow_label: 0,
            server_hop_limit: 64,
            useful_window: 0,
            fades: false,
            store: Store::new(first),
            ahead: Ahead::default(),
            board: if opened.agreed.sack { Scoreboard::default() } else { Scoreboard::without_sack() },
            rtt: Rtt::of(opened.rtt),
            overshoot: Overshoot::open(opened.client_edge - first),
            black_hole: BlackHole::default(),
            duplicates: 0,
            news: false,
            cwr_due: false,
            cwr_until: 0,
            probe_passed: false,
            contested: false,
            force: false,
            timer_base: now,
            heard_at: now,
            silent: false,
            asked_at: Instant::ZERO,
            doubted: 0,
            window_probes: 0,
            reorder_at: Instant::MAX,
            uplink,
            alarm: Alarm::default(),
            in_backlog: false,
            in_due: false,
            charged_in_flight: 0,
            charged_held: 0,
            charged_exposure: 0,
            counted_busy: false,
            counted_behind: false,
            listed_at: NOWHERE,
            journaled_acked: 0,
            in_changed: false,
            seen_at: now,
        }
    }

    /// Reads each of its cache lines, as far as packets do.
    pub fn look_at(&self) {
        black_box((self.rtt, self.store.next(), self.uplink, self.acked, self.overshoot, self.asked_at));
        black_box((self.agreed, self.key.dst_port, self.window_probes));
        self.board.look_at();
    }

    pub fn seq(&self, off: u64) -> SeqNumber {
        self.server_isn + off as u32
    }
    /// The offset of a serial number near `near`; none before the stream.
    pub fn offset(&self, seq: SeqNumber, near: u64) -> Option<u64> {
        near.checked_add_signed(i64::from(seq.distance(self.seq(near))))
    }
    /// Bytes that the server thinks delivered and that are not.
    pub fn exposure(&self) -> u64 {
        self.acked.saturating_sub(self.una)
    }
    /// Bytes held, bookkeeping included.
    pub fn held(&self) -> u64 {
        self.store.cost() + self.ahead.iter().map(|packet| u64::from(packet.len)).sum::<u64>()
    }
    /// Nothing is held and nothing is owed: what passes now would pass the same without us.
    pub fn is_quiet(&self) -> bool {
        self.stream_end() <= self.una
            && self.board.is_empty()
            && self.reset.is_none()
            && self.acked <= self.una
    }
    /// Bytes on their way, and not less than a client acknowledges at once.
    pub fn under_way(&self) -> u64 {
        self.board.in_flight().max(u64::from(2 * self.agreed.segment))
    }
    /// Much more waits to be sent than is under way, to a client that takes it. A machine that is being stopped lets the
    /// server fill up to what is under way: that alone is not behind.
    pub fn is_behind(&self) -> bool {
        let waits = self.stream_end().saturating_sub(self.nxt);
        waits > 2 * self.under_way() && self.client_window > 0 && !self.silent
    }
    /// An upload to which nothing is owed, either way.
    pub fn may_rest(&self) -> bool {
        let told =
            !self.ack_due && !self.news && !self.echo_congestion && !self.cwr_due && !self.probe_passed;
        self.uplink.may_rest() && self.is_quiet() && told && !self.contested && self.fin.is_none()
    }
    /// Quiet, and for so long that the server will start slowly: should it go past the client's window, that costs
    /// little.
    pub fn is_idle(&self, now: Instant) -> bool {
        self.is_quiet() && now.since(self.seen_at) >= IDLE
    }
    /// Both directions are closed and acknowledged.
    pub fn is_over(&self) -> bool {
        self.fin.is_some_and(|fin| self.una > fin && self.acked > fin) && self.uplink.finished()
    }
    /// Everything that the server sent in order, its FIN included.
    pub fn stream_end(&self) -> u64 {
        let next = self.store.next();
        next + u64::from(self.fin == Some(next))
    }
    /// Bytes that take room on the way to the device. What a silent client was sent is long gone from the radio: it
    /// must not keep the device's other connections from sending.
    pub fn on_its_way(&self) -> u64 {
        if self.silent { 0 } else { self.board.in_flight() }
    }
    /// Whether the client owes an answer.
    pub fn is_waiting(&self) -> bool {
        !self.board.is_empty()
    }
    /// Whether there is something to send that was never sent.
    pub fn has_unsent(&self) -> bool {
        self.nxt < self.stream_end()
    }

    /// A segment without payload, simulated or in bytes as the connection is.
    pub fn build(&self, ip: IpHeader, tcp: TcpHeader, unparsed: Unparsed) -> Packet {
        if self.real {
            rewrite::segment(ip, tcp, unparsed, Checksum::Unverified, std::iter::empty())
        } else {
            let mut packet = Packet::tcp(ip.src, ip.dst, tcp);
            packet.ip = ip;
            packet
        }
    }

    /// The rules for live traffic that can be seen from the state.
    pub fn check_state(&self, config: &AcceleratorConfig) {
        let next = self.store.next();
        assert!(self.acked <= next.max(self.una), "early ACK within contiguous verified data");
        assert!(self.exposure() <= config.exposure.0, "exposure is capped");
        assert!(self.una <= self.nxt && self.nxt <= self.stream_end(), "a prefix of the server's stream");
        assert!(self.edge + 1 >= self.acked, "no window of negative size");
        let most = 2 * config.flow_buffer.0 + LARGEST_PACKET;
        assert!(next.saturating_sub(self.una) <= most && next <= self.edge, "memory is bounded");
        assert!(self.charged_in_flight == self.on_its_way());
    }
    pub fn check_depth(&self) {
        self.store.check(self.una);
        self.board.check(self.una, self.nxt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::size_of;

    /// A connection costs a kilobyte beside what is held for it: itself, its slot, its part of an index that is at least a
    /// quarter full, and the room that queues keep for a few segments.
    #[test]
    fn a_connection_costs_a_kilobyte() {
        let slot = size_of::<Option<Box<Flow>>>();
        let all = size_of::<Flow>() + slot + 4 * size_of::<u64>();
        assert!(all <= 800, "{} + {slot}, in all {all} bytes", size_of::<Flow>());
    }
}
