//! ACKs to the server in the client's name: acknowledgment number, window, SACK blocks (RFC 2018, RFC 2883).
//!
//! Contiguous stored data is acknowledged early, within the exposure cap; the last packets of a backlog
//! follow one by one (`ack_hold`). Not acknowledged early: a FIN and the packet before it, urgent data and
//! everything after it, and all data while the accelerator drains, the handshake is not complete, the client
//! does not respond, or the client has not confirmed its state after an offload.

use crate::accelerator::flow::context::Context;
use crate::accelerator::flow::from_server::FromServer;
use crate::accelerator::flow::from_server::receive::DataSegment;
use crate::accelerator::flow::steps::step;
use crate::accelerator::flow::views::ClientState;
use crate::accelerator::{Side, Transmission};
use paceline_net::{Instant, IpHeader, SackBlocks, TcpFlags, TcpHeader, TcpOptions, Timestamps};

/// A window update is sent when the window can grow by one part of the buffer share in this many. Chosen: at
/// most a few updates for each share of data.
const WINDOW_UPDATE_DIVISOR: u64 = 4;
/// Largest value of the window field (RFC 9293, section 3.1).
const MAX_WINDOW_FIELD: u64 = 65_535;

impl FromServer {
    /// The offset up to which data may be acknowledged now.
    fn ack_target(&self, cx: &Context<'_>, client: ClientState<'_>) -> u64 {
        let una = client.to_client.una();
        let mut target = self.acked.max(una);
        if cx.early_acks
            && client.upload.is_confirmed(cx.now, client.connection)
            && !client.to_client.is_ack_overdue(cx)
        {
            // Data beyond today's share, which was advertised while other connections were idle, is stored
            // and not acknowledged early: the server slows down and the device's buffer lasts for all
            // connections.
            let limit = (una + cx.config.exposure.0).min(self.window_limit(cx, client));
            let limit = limit.min(target.saturating_add(cx.exposure_room));
            let mut early = self.store.next().min(limit);
            if self.fin().is_some() {
                early = early.min(self.store.tail());
            }
            if let Some(urgent) = &self.urgent {
                early = early.min(urgent.0);
            }
            if self.is_holding(client) {
                let segment = client.to_client.segment();
                let from = self.store.next().saturating_sub(self.ack_hold.bytes(segment));
                early = early.min(self.store.boundary(from, segment));
            }
            target = target.max(early);
        }
        target
    }

    /// Whether the ACKs of the last packets are held back: data waits for the radio, or did so when the FIN
    /// arrived.
    fn is_holding(&self, client: ClientState<'_>) -> bool {
        let unsent = self.store.next().saturating_sub(client.to_client.nxt());
        let segment = client.to_client.segment();
        self.ack_hold.is_active() && (self.fin().is_some() || unsent >= self.ack_hold.bytes(segment))
    }
    /// When the next packet is to be acknowledged of those that are held back.
    pub fn hold_deadline(&self, client: ClientState<'_>) -> Option<Instant> {
        let holding = self.acked < self.store.next() && self.is_holding(client);
        holding.then(|| self.ack_hold.deadline())
    }
    /// Makes the ACK of the next packet due if its time has come.
    pub fn on_hold_timer(&mut self, cx: &Context<'_>, client: ClientState<'_>) {
        if self.hold_deadline(client).is_some_and(|at| at <= cx.now) {
            self.ack_hold.on_timer(cx.now, self.store.next() - self.acked, client.to_client.segment());
            self.schedule_ack(cx, client);
        }
    }

    /// Advances the acknowledged offset and the window's edge as far as allowed; returns the window field.
    pub fn advance_ack(&mut self, cx: &mut Context<'_>, client: ClientState<'_>) -> u16 {
        let target = self.ack_target(cx, client);
        if target > self.acked.max(client.to_client.una()) {
            cx.stats.early_acks += 1;
        }
        if target > self.acked {
            cx.exposure_room = cx.exposure_room.saturating_sub(target - self.acked);
            self.echo_timestamp(cx.now, self.acked);
            self.ack_hold.on_ack(cx.now);
        }
        self.acked = target;
        let shift = client.connection.negotiated.client_shift;
        let desired = self.desired_edge(cx, client);
        let size = |edge: u64| edge.saturating_sub(self.acked);
        // Rounded up: the window scale must not move the advertised edge back.
        let least = size(self.edge).div_ceil(1 << shift);
        let field = (size(desired) >> shift).max(least).min(MAX_WINDOW_FIELD);
        self.edge = self.edge.max(self.acked + (field << shift));
        self.ack_due = false;
        field as u16
    }

    /// A segment of the server reaches the advertised edge or past it, as a window probe does (RFC 9293,
    /// section 3.8.6.1): the edge moves to the segment's end as far as an ACK sent now would advertise it.
    /// Without that, the answer would open the window and discard the segment.
    pub fn open_window(&mut self, cx: &Context<'_>, client: ClientState<'_>, data: DataSegment) {
        if data.off <= self.edge && data.end > self.edge {
            let largest = self.acked + (MAX_WINDOW_FIELD << client.connection.negotiated.client_shift);
            self.edge = self.edge.max(data.end.min(self.desired_edge(cx, client)).min(largest));
        }
    }

    fn desired_edge(&self, cx: &Context<'_>, client: ClientState<'_>) -> u64 {
        let to_client = client.to_client;
        if !cx.early_acks {
            // Draining: the store has to become empty, so the server may send no more than the data in flight
            // to the client, and no more than the client's own window.
            to_client.window().edge().min(to_client.nxt() + to_client.flight_allowance()).max(self.edge)
        } else if cx.buffers_low || !client.upload.is_confirmed(cx.now, client.connection) {
            self.edge
        } else {
            self.reach(cx, client).max(self.edge)
        }
    }

    /// The offset up to which the connection's share of the memory reaches. Bytes beyond a hole that the
    /// client has extend it, up to one share: else one hole would close the window until its retransmission
    /// is acknowledged.
    pub(super) fn window_limit(&self, cx: &Context<'_>, client: ClientState<'_>) -> u64 {
        client.to_client.una() + client.to_client.arrived_bytes().min(cx.share) + cx.share
    }

    fn is_window_update_due(&self, cx: &Context<'_>, client: ClientState<'_>) -> bool {
        let growth = self.desired_edge(cx, client).saturating_sub(self.edge);
        let seen = self.edge.saturating_sub(self.acked);
        // Growth beyond the largest window field cannot be advertised.
        let most = (MAX_WINDOW_FIELD << client.connection.negotiated.client_shift).saturating_sub(seen);
        let growth = growth.min(most);
        let segment = u64::from(client.to_client.segment());
        let window = self.reach(cx, client).saturating_sub(client.to_client.una());
        let worthwhile = (window / WINDOW_UPDATE_DIVISOR).min(most.max(segment)).max(segment);
        let room = self.edge.saturating_sub(self.acked.max(self.store.next()));
        room < segment && growth >= segment || growth >= worthwhile && room < window / 2
    }

    /// Sends the ACK that is due, if it still tells the server anything: called after a batch of packets.
    pub fn flush_ack(&mut self, cx: &mut Context<'_>, client: ClientState<'_>) {
        if self.ack_due && self.ack_is_useful(cx, client) {
            self.emit_ack(cx, client, None);
        }
        self.ack_due = false;
    }
    /// Whether an ACK would acknowledge more data or update the window.
    pub fn ack_is_useful(&self, cx: &Context<'_>, client: ClientState<'_>) -> bool {
        self.ack_target(cx, client) > self.acked || self.is_window_update_due(cx, client)
    }
    /// Makes an ACK due if it would be useful.
    pub fn schedule_ack(&mut self, cx: &Context<'_>, client: ClientState<'_>) {
        self.ack_due |= self.ack_is_useful(cx, client);
    }

    /// Sends an ACK with SACK blocks for the data beyond gaps; `duplicate` is a range to report as received
    /// twice.
    pub fn emit_ack(&mut self, cx: &mut Context<'_>, client: ClientState<'_>, duplicate: Option<(u64, u64)>) {
        let ClientState { connection, upload, .. } = client;
        if upload.is_clock_expired(cx.now, connection) {
            return;
        }
        let window = self.advance_ack(cx, client);
        let sack = self.sack_blocks(client, duplicate);
        let ece = if self.echo_congestion { TcpFlags::ECE } else { TcpFlags(0) };
        let tcp = TcpHeader {
            src_port: connection.key.dst_port,
            dst_port: connection.key.src_port,
            seq: upload.empty_segment_seq(connection.negotiated.server_shift),
            ack: connection.seq(self.acked),
            flags: TcpFlags::ACK.with(ece),
            window,
            options: TcpOptions { timestamps: self.client_timestamps(client), sack, ..TcpOptions::default() },
            payload_len: 0,
        };
        let header = upload.header();
        let ip = IpHeader {
            src: connection.key.dst,
            dst: connection.key.src,
            traffic_class: header.traffic_class,
            hop_limit: header.hop_limit,
            special: false,
        };
        cx.stats.acks_sent += 1;
        let packet = connection.empty_segment(ip, tcp, header.unparsed);
        cx.out.push_back(Transmission::whole(Side::Server, packet));
    }

    /// The client's TSval, and the echo of the server's, for segments in the client's name.
    fn client_timestamps(&self, client: ClientState<'_>) -> Option<Timestamps> {
        let timestamps = client.connection.negotiated.timestamps;
        timestamps.then_some(Timestamps { val: client.upload.timestamp(), ecr: self.ts_recent })
    }
    /// SACK blocks: a duplicate range first (RFC 2883), then the ranges beyond gaps, the highest first.
    pub fn sack_blocks(&self, client: ClientState<'_>, duplicate: Option<(u64, u64)>) -> SackBlocks {
        let connection = client.connection;
        let mut blocks = SackBlocks::default();
        if !connection.negotiated.sack {
            return blocks;
        }
        let room = if connection.negotiated.timestamps { 3 } else { 4 };
        if let Some((left, right)) = duplicate.filter(|(left, right)| left < right && *right <= self.acked) {
            blocks.push(connection.seq(left), connection.seq(right));
        }
        let highest = self.store.beyond().into_iter().flat_map(|ranges| ranges.iter().rev());
        for (left, right) in highest.take(room - blocks.len()).inspect(|_| step()) {
            blocks.push(connection.seq(left), connection.seq(right));
        }
        blocks
    }
}
