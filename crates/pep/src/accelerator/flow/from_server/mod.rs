//! The receiving side of a connection: the accelerator in the client's place, towards the server.
//!
//! `receive` accepts the payload of segments into the store (`store` with `piece`, `beyond` for data beyond a
//! gap, `payload_slice`) and notes FIN, urgent data and congestion marks. `acks` decides how much is
//! acknowledged and which window is advertised (`stored_time`, `server_rtt`), and makes the ACKs; `ack_hold`
//! keeps back those of the last packets of a backlog. When an offloaded upload ends, `reorder_hold` keeps the
//! segments that arrived ahead of a gap.

mod ack_hold;
mod acks;
mod beyond;
pub(in crate::accelerator) mod payload_slice;
mod piece;
pub(in crate::accelerator) mod receive;
mod reorder_hold;
mod server_rtt;
pub(in crate::accelerator) mod store;
mod stored_time;

use crate::accelerator::flow::connection::{Connection, Handshake};
use crate::accelerator::flow::from_server::ack_hold::AckHold;
use crate::accelerator::flow::from_server::reorder_hold::ReorderHold;
use crate::accelerator::flow::from_server::server_rtt::{ServerRtt, WindowUse};
use crate::accelerator::flow::from_server::store::Store;
use crate::accelerator::flow::paws::{Epoch, is_current};
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{Instant, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::hint::black_box;

/// The largest payload of a super-packet (GRO), in bytes: the length field of IP has 16 bits (RFC 791).
pub(in crate::accelerator) const LARGEST_PACKET_BYTES: u64 = 1 << 16;
/// Hop limit of segments to the client until the server has sent one. Chosen: Linux's default.
const DEFAULT_HOP_LIMIT: u8 = 64;

/// Header fields of the server's last segments, for those that are sent in its name.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct ServerHeader {
    /// Highest TSval of the server, and the TSecr beside it.
    pub timestamp: u32,
    pub timestamp_echo: u32,
    /// Flow label and fragmentation.
    pub unparsed: Unparsed,
    /// Without the ECN field.
    pub traffic_class: u8,
    pub hop_limit: u8,
}

/// A reset of the server that waits until the client has the data ahead of it.
#[derive(Clone, Debug)]
struct PendingReset {
    packet: Packet,
    /// End of the grace period.
    until: Instant,
}

#[derive(Debug)]
pub(in crate::accelerator) struct FromServer {
    /// End of the data that was acknowledged to the server.
    acked: u64,
    /// Right edge of the receive window as advertised to the server; never retreats.
    edge: u64,
    store: Store,
    ack_hold: AckHold,
    server_rtt: ServerRtt,
    window_use: WindowUse,
    reorder_hold: ReorderHold,
    /// Offset of the server's FIN; 0 for none.
    fin_at: u64,
    /// Urgent data: start and end of the packets that carry it.
    urgent: Option<Box<(u64, u64)>>,
    /// Offset of a segment beyond every window that was advertised here; 0 for none.
    beyond_edge_at: u64,
    reset: Option<Box<PendingReset>>,
    /// The parts of a [`ServerHeader`].
    timestamp: u32,
    timestamp_echo: u32,
    unparsed: Unparsed,
    traffic_class: u8,
    hop_limit: u8,
    /// TS.Recent (RFC 7323): the server's timestamp to echo, and when it was recorded.
    ts_recent: u32,
    ts_recent_epoch: Epoch,
    /// A packet was marked CE on the wired segment: ACKs carry ECE until the server answers with CWR (RFC
    /// 3168).
    echo_congestion: bool,
    ack_due: bool,
    /// A window or keepalive probe of the server was forwarded: the client's answer belongs to the server.
    probe_forwarded: bool,
}

impl FromServer {
    pub fn new(handshake: &Handshake, client_timestamp: u32) -> Self {
        let first = 1;
        Self {
            acked: first,
            edge: handshake.client_edge,
            store: Store::new(first),
            ack_hold: AckHold::new(handshake.server_rtt),
            server_rtt: ServerRtt::new(handshake.server_rtt),
            window_use: WindowUse::default(),
            reorder_hold: ReorderHold::default(),
            fin_at: 0,
            urgent: None,
            beyond_edge_at: 0,
            reset: None,
            timestamp: handshake.server_timestamp,
            timestamp_echo: client_timestamp,
            unparsed: Unparsed::default(),
            traffic_class: 0,
            hop_limit: DEFAULT_HOP_LIMIT,
            ts_recent: handshake.server_timestamp,
            ts_recent_epoch: handshake.server_epoch,
            echo_congestion: false,
            ack_due: false,
            probe_forwarded: false,
        }
    }
    /// Reads each cache line that packets need.
    pub fn prefetch(&self) {
        black_box((self.store.next(), self.acked, self.timestamp, self.ack_due));
    }

    pub fn acked(&self) -> u64 {
        self.acked
    }
    pub fn edge(&self) -> u64 {
        self.edge
    }
    pub fn store(&self) -> &Store {
        &self.store
    }
    pub fn header(&self) -> ServerHeader {
        let &Self { timestamp, timestamp_echo, unparsed, traffic_class, hop_limit, .. } = self;
        ServerHeader { timestamp, timestamp_echo, unparsed, traffic_class, hop_limit }
    }
    /// End of the contiguous data in the store.
    pub fn next(&self) -> u64 {
        self.store.next()
    }
    /// End of the stream that arrived in order, the FIN included.
    pub fn stream_end(&self) -> u64 {
        let next = self.store.next();
        next + u64::from(self.fin() == Some(next))
    }
    /// Offset of the server's FIN.
    fn fin(&self) -> Option<u64> {
        (self.fin_at > 0).then_some(self.fin_at)
    }
    pub fn has_fin(&self) -> bool {
        self.fin().is_some()
    }
    pub fn is_fin(&self, off: u64) -> bool {
        self.fin() == Some(off)
    }
    /// Whether the client (up to `una`) and the accelerator have acknowledged the server's FIN.
    pub fn fin_is_acked(&self, una: u64) -> bool {
        self.fin().is_some_and(|fin| una > fin && self.acked > fin)
    }
    /// Bytes stored, bookkeeping included.
    pub fn held(&self) -> u64 {
        self.store.cost() + self.reorder_hold.bytes()
    }
    /// The client has acknowledged the stream up to `una`: the store forgets it.
    pub fn release(&mut self, now: Instant, una: u64) {
        if una > self.acked {
            self.echo_timestamp(now, self.acked);
        }
        self.store.release(una);
        if self.urgent.as_ref().is_some_and(|urgent| urgent.1 <= una) {
            self.urgent = None;
        }
    }
    pub fn is_ack_due(&self) -> bool {
        self.ack_due
    }
    /// Whether the server is to be answered: by an ACK, an ECN echo, or the client's answer to a probe.
    pub fn has_reply_due(&self) -> bool {
        self.ack_due || self.echo_congestion || self.probe_forwarded
    }
    pub fn take_held_back(&mut self) -> impl Iterator<Item = Packet> + use<> {
        self.reorder_hold.take()
    }

    /// PAWS: whether a segment of the server is old.
    pub fn fails_paws(&self, now: Instant, connection: &Connection, tcp: &TcpHeader) -> bool {
        connection.negotiated.timestamps
            && !tcp.options.timestamps.is_none_or(|own| is_current(own, self.ts_recent))
            && !self.ts_recent_epoch.is_expired(now)
    }
    /// Updates TS.Recent from an acceptable segment at or below the acknowledged offset (RFC 7323, section
    /// 4.3).
    pub fn update_ts_recent(&mut self, now: Instant, tcp: &TcpHeader) {
        if let Some(timestamps) = tcp.options.timestamps {
            self.ts_recent = timestamps.val;
            self.ts_recent_epoch = Epoch::at(now);
        }
    }
    /// The data from `off` on is going to be acknowledged: the timestamp to echo is that of its first packet
    /// (RFC 7323, section 4.3).
    fn echo_timestamp(&mut self, now: Instant, off: u64) {
        if let Some(timestamp) = self.store.timestamp(off)
            && timestamp.wrapping_sub(self.ts_recent) as i32 > 0
        {
            self.ts_recent = timestamp;
            self.ts_recent_epoch = Epoch::at(now);
        }
    }
    /// Notes the timestamps and the CWR flag of an acceptable segment.
    pub fn note_header(&mut self, now: Instant, connection: &Connection, tcp: &TcpHeader) {
        if let Some(timestamps) = tcp.options.timestamps.filter(|_| connection.negotiated.timestamps) {
            self.server_rtt.on_server(now, timestamps.ecr);
            if is_current(timestamps, self.timestamp) || self.ts_recent_epoch.is_expired(now) {
                self.timestamp = timestamps.val;
                self.timestamp_echo = timestamps.ecr;
            }
        }
        if connection.negotiated.ecn && tcp.flags.contains(TcpFlags::CWR) {
            self.echo_congestion = false;
        }
    }
    /// A segment of the client has this TSval, which the server will echo.
    pub fn note_client_timestamp(&mut self, now: Instant, timestamp: u32) {
        self.server_rtt.on_client(now, timestamp);
    }
    pub fn ts_recent(&self) -> u32 {
        self.ts_recent
    }
    pub fn is_echoing_congestion(&self) -> bool {
        self.echo_congestion
    }

    /// A segment of the server begins beyond every window that was advertised here.
    pub fn note_beyond_edge(&mut self, off: u64) {
        self.beyond_edge_at = off;
    }
    pub fn beyond_edge_at(&self) -> u64 {
        self.beyond_edge_at
    }
    pub fn note_probe_forwarded(&mut self) {
        self.probe_forwarded = true;
    }
    /// Whether the server waits for the client's answer to a forwarded probe. Answers once.
    pub fn take_probe_forwarded(&mut self) -> bool {
        std::mem::take(&mut self.probe_forwarded)
    }

    /// Whether a reset has one of the exact sequence numbers of RFC 5961, section 3.2.
    pub fn accepts_reset(&self, off: u64) -> bool {
        [self.store.next(), self.stream_end(), self.acked].contains(&off)
    }
    /// Keeps the server's first reset until the client has the data ahead of it.
    pub fn keep_reset(&mut self, packet: Packet, until: Instant) {
        if self.reset.is_none() {
            self.reset = Some(Box::new(PendingReset { packet, until }));
        }
    }
    pub fn has_pending_reset(&self) -> bool {
        self.reset.is_some()
    }
    pub fn reset_deadline(&self) -> Option<Instant> {
        self.reset.as_ref().map(|reset| reset.until)
    }
    /// The pending reset with sequence number `seq`.
    pub fn release_reset(&mut self, seq: SeqNumber) -> Option<Packet> {
        let PendingReset { mut packet, .. } = *self.reset.take()?;
        let tcp = *packet.tcp_header()?;
        rewrite::rewrite(&mut packet, &TcpHeader { seq, ..tcp });
        Some(packet)
    }

    /// Panics if an invariant of the store does not hold.
    pub fn check(&self, una: u64) {
        self.store.check(una);
    }
}
