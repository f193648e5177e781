//! One accelerated connection, from a server to its client.
//!
//! The server's segments (`server_segments`) go to [`FromServer`], the receiving side: it stores their
//! payload and acknowledges it early. [`ToClient`], the sending side, sends the stored payload to the client,
//! takes the client's ACKs (`client_segments`) and retransmits; acknowledged bytes leave the store.
//! [`Upload`] tracks the opposite direction, which stays end to end. Functions that need several parts take
//! them explicitly.
//!
//! Stream positions are 64-bit offsets from the server's initial sequence number: the SYN is offset 0, data
//! begins at offset 1. Sequence numbers of 32 bits exist on the wire only.

mod client_segments;
pub(in crate::accelerator) mod connection;
pub(in crate::accelerator) mod context;
mod doubtful_reset;
pub(in crate::accelerator) mod from_server;
mod memory;
pub(in crate::accelerator) mod paws;
mod server_segments;
mod steps;
pub(in crate::accelerator) mod to_client;
pub(in crate::accelerator) mod upload;
mod views;

use crate::accelerator::config::AcceleratorConfig;
use crate::accelerator::flow::connection::{Connection, Handshake};
use crate::accelerator::flow::context::Context;
use crate::accelerator::flow::doubtful_reset::DoubtfulReset;
use crate::accelerator::flow::from_server::{FromServer, LARGEST_PACKET_BYTES};
use crate::accelerator::flow::to_client::path::DevicePath;
use crate::accelerator::flow::to_client::{SendOutcome, ToClient};
use crate::accelerator::flow::upload::Upload;
use crate::accelerator::flow::views::{ClientState, ServerState};
use crate::accelerator::{ClientLimit, ControlSnapshot, FlowRecord, FlowSnapshot};
use paceline_net::{Duration, FlowKey, Instant, Packet, SackBlocks, SeqNumber};
use std::hint::black_box;

/// A transparent connection without a packet for this long is idle. Chosen: longer than the retransmission
/// timeouts of most servers, which restart from a small window after it (RFC 5681, section 4.1).
const IDLE: Duration = Duration::from_secs(1);

/// The effect of a connection's timers.
#[derive(Debug)]
pub(in crate::accelerator) enum TimerOutcome {
    GoesOn,
    /// The client has been unresponsive for [`AcceleratorConfig::give_up`].
    GivesUp,
    /// The client has reset the connection: the reset is forwarded.
    Reset(Packet),
}

#[derive(Debug)]
pub(in crate::accelerator) struct Flow {
    connection: Connection,
    from_server: FromServer,
    to_client: ToClient,
    upload: Upload,
    /// Arrival of the last packet of either end.
    last_packet_at: Instant,
    doubtful_reset: Option<Box<DoubtfulReset>>,
}

/// Construction, state and the machine's calls.
impl Flow {
    /// `real`: packets are datagrams, not simulated lengths.
    pub fn new(now: Instant, key: FlowKey, handshake: &Handshake, mut upload: Upload, real: bool) -> Self {
        let &Handshake { negotiated, server_isn, .. } = handshake;
        if handshake.complete {
            upload.complete_handshake();
        }
        Self {
            connection: Connection { key, server_isn, negotiated, real },
            from_server: FromServer::new(handshake, upload.timestamp()),
            to_client: ToClient::new(now, handshake, upload.end()),
            upload,
            last_packet_at: now,
            doubtful_reset: None,
        }
    }

    /// Reads each cache line that packets need.
    pub fn prefetch(&self) {
        black_box((self.upload, self.connection.key.dst_port, self.connection.negotiated));
        self.from_server.prefetch();
        self.to_client.prefetch();
    }

    pub fn key(&self) -> FlowKey {
        self.connection.key
    }
    pub fn server_isn(&self) -> SeqNumber {
        self.connection.server_isn
    }
    /// Whether losses of the mobile segment are detected by SACK.
    pub fn uses_sack(&self) -> bool {
        self.to_client.uses_sack()
    }
    pub fn last_packet_at(&self) -> Instant {
        self.last_packet_at
    }
    pub fn upload(&self) -> &Upload {
        &self.upload
    }
    pub fn upload_mut(&mut self) -> &mut Upload {
        &mut self.upload
    }
    pub fn to_client(&self) -> &ToClient {
        &self.to_client
    }
    /// Takes the server's segments that were held back while the upload was offloaded.
    pub fn take_held_back(&mut self) -> impl Iterator<Item = Packet> + use<> {
        self.from_server.take_held_back()
    }

    /// Bytes acknowledged to the server that the client has not acknowledged.
    pub fn exposure(&self) -> u64 {
        self.from_server.acked().saturating_sub(self.to_client.una())
    }
    /// The server's view of the acknowledged offset.
    pub fn acked(&self) -> u64 {
        self.from_server.acked()
    }
    /// Bytes stored, bookkeeping included.
    pub fn held(&self) -> u64 {
        self.from_server.held()
    }
    /// Bytes that wait for the radio or are in flight. Bytes that a client does not take, because its window
    /// is closed or it does not respond, delay none of the device's other connections.
    pub fn queued(&self) -> u64 {
        if self.to_client.is_unresponsive() {
            return 0;
        }
        let reach = self.to_client.window().edge().max(self.to_client.nxt());
        let unsent = self.from_server.next().min(reach).saturating_sub(self.to_client.nxt());
        unsent + self.to_client.in_flight()
    }
    /// No byte is stored, acknowledged early or outstanding: later packets would pass the same way without
    /// the accelerator.
    pub fn is_transparent(&self) -> bool {
        let una = self.to_client.una();
        self.from_server.stream_end() <= una
            && !self.to_client.has_outstanding()
            && !self.from_server.has_pending_reset()
            && self.from_server.acked() <= una
    }
    /// Transparent, and for so long that the server restarts from a small window: packets past the client's
    /// window would cost little.
    pub fn is_idle(&self, now: Instant) -> bool {
        self.is_transparent() && now.since(self.last_packet_at) >= IDLE
    }
    /// Both directions are closed and acknowledged.
    pub fn is_closed(&self) -> bool {
        self.from_server.fin_is_acked(self.to_client.una()) && self.upload.is_closed()
    }
    /// Whether unsent data exceeds twice the data in flight, and the client accepts data. A draining machine
    /// lets the server fill the buffer up to the data in flight, so that much is not a backlog.
    pub fn is_backlogged(&self) -> bool {
        self.to_client.is_backlogged(self.from_server.stream_end())
    }
    /// An upload for which nothing is stored and no segment is due to either end.
    pub fn may_offload(&self) -> bool {
        self.upload.may_offload()
            && self.is_transparent()
            && !self.from_server.has_reply_due()
            && !self.to_client.has_reply_due()
            && !self.from_server.has_fin()
    }
    /// Whether there is anything to send: lost segments, or data that was never sent.
    pub fn has_data_to_send(&self) -> bool {
        self.to_client.has_lost() || self.has_unsent()
    }
    /// Whether there is data that was never sent.
    pub fn has_unsent(&self) -> bool {
        self.to_client.nxt() < self.from_server.stream_end()
    }
    /// The round trip to the server, if its last data was all that its window allowed.
    pub fn awaited_window(&self) -> Option<Duration> {
        self.from_server.server_rtt().filter(|_| self.from_server.fills_window())
    }
    /// Whether the server has sent all that the window towards it allows, but for a segment.
    pub fn fills_share(&self) -> bool {
        let sent = self.from_server.acked().max(self.from_server.stream_end());
        self.from_server.edge() < sent + u64::from(self.to_client.segment())
    }
    /// Whether an ACK to the server or an ACK to the client is due.
    pub fn has_ack_due(&self) -> bool {
        self.from_server.is_ack_due() || self.upload.is_ack_to_client_due()
    }
    pub fn is_server_ack_due(&self) -> bool {
        self.from_server.is_ack_due()
    }
    pub fn has_pending_reset(&self) -> bool {
        self.from_server.has_pending_reset()
    }
    /// Whether a reset of the server can be forwarded: the client has acknowledged all stored data.
    pub fn is_reset_deliverable(&self) -> bool {
        self.from_server.has_pending_reset() && self.to_client.una() >= self.from_server.next()
    }
    /// The pending reset of the server, with the sequence number that the client accepts.
    pub fn release_reset(&mut self) -> Option<Packet> {
        self.from_server.release_reset(self.connection.seq(self.to_client.una()))
    }

    /// The parts that sending to the client needs.
    fn sender(&mut self) -> (&mut ToClient, ServerState<'_>) {
        let Self { connection, from_server, to_client, upload, .. } = self;
        (to_client, ServerState { connection, from_server, upload })
    }
    /// The parts that acknowledging to the server needs.
    fn receiver(&mut self) -> (&mut FromServer, ClientState<'_>) {
        let Self { connection, from_server, to_client, upload, .. } = self;
        (from_server, ClientState { connection, to_client, upload })
    }

    /// The state of the device's path, from its rate control.
    pub fn set_path(&mut self, fading: bool, useful_window: u64) {
        self.to_client.set_path(fading, useful_window);
    }
    /// Sends one packet to the client, lost segments first.
    pub fn send_next(&mut self, cx: &mut Context<'_>, path: DevicePath<'_>) -> SendOutcome {
        let (to_client, mut server) = self.sender();
        let outcome = to_client.send_next(cx, &mut server, path);
        if matches!(outcome, SendOutcome::Sent { .. }) {
            // The backlog is shorter: its last ACKs may not be held back any more, and the window may open.
            let (from_server, client) = self.receiver();
            from_server.schedule_ack(cx, client);
        }
        outcome
    }
    /// Sends all stored data that the client's window allows, lost segments first, regardless of the rate.
    pub fn send_remaining(&mut self, cx: &mut Context<'_>, path: DevicePath<'_>) {
        let (to_client, mut server) = self.sender();
        to_client.send_remaining(cx, &mut server, path);
    }
    /// Whether there is data beyond a gap of which the server was told by SACK.
    pub fn has_sacked(&self) -> bool {
        self.connection.negotiated.sack && self.from_server.store().has_gap()
    }
    /// Sends the client that data.
    pub fn send_sacked(&mut self, cx: &mut Context<'_>) {
        let (to_client, server) = self.sender();
        to_client.send_sacked(cx, &server);
    }
    /// Sends the ACKs that are due and that no other packet has carried.
    pub fn flush_acks(&mut self, cx: &mut Context<'_>) {
        let (from_server, client) = self.receiver();
        from_server.flush_ack(cx, client);
        if self.upload.is_ack_to_client_due() {
            let (to_client, mut server) = self.sender();
            to_client.emit_ack(cx, &mut server, SackBlocks::default(), false);
        }
    }
    /// The next deadline of any of the connection's timers.
    pub fn deadline(&self) -> Option<Instant> {
        let at = self.to_client.deadline(self.from_server.stream_end());
        let at = at.min(self.from_server.reset_deadline().unwrap_or(Instant::MAX));
        let Self { connection, from_server, to_client, upload, .. } = self;
        let held = from_server.hold_deadline(ClientState { connection, to_client, upload });
        let at = at.min(held.unwrap_or(Instant::MAX));
        let at = at.min(self.doubtful_reset.as_ref().map_or(Instant::MAX, |reset| reset.next_at()));
        (at < Instant::MAX).then_some(at)
    }
    /// Whether the grace period of a pending reset is over.
    pub fn is_reset_overdue(&self, now: Instant) -> bool {
        self.from_server.reset_deadline().is_some_and(|until| until <= now)
    }
    /// Handles the timers of both sides.
    pub fn on_timeout(&mut self, cx: &mut Context<'_>) -> TimerOutcome {
        if let Some(reset) = self.on_doubtful_reset_timer(cx) {
            return TimerOutcome::Reset(reset);
        }
        let (from_server, client) = self.receiver();
        from_server.on_hold_timer(cx, client);
        let (to_client, server) = self.sender();
        if to_client.on_timeout(cx, &server) { TimerOutcome::GoesOn } else { TimerOutcome::GivesUp }
    }
    /// A router reports that packets to the client must not exceed `mtu` bytes; `seq` is the quoted sequence
    /// number. Whether segments have become shorter.
    pub fn on_packet_too_big(&mut self, seq: SeqNumber, mtu: u32) -> bool {
        self.to_client.on_packet_too_big(&self.connection, seq, mtu)
    }
    /// Bytes of the TCP options and the payload of a full segment to the client.
    pub fn longest(&self) -> u32 {
        self.to_client.segment() + self.connection.option_bytes()
    }
    /// Limits segments to `longest` bytes of TCP options and payload: another connection of the device has
    /// found the path MTU.
    pub fn limit_to(&mut self, longest: u32) {
        self.to_client.limit_segment(longest - self.connection.option_bytes());
    }

    pub fn record(&self) -> FlowRecord {
        let Self { connection, from_server, to_client, upload, .. } = self;
        let timestamps = connection.negotiated.timestamps;
        FlowRecord {
            key: connection.key,
            client_expects: connection.seq(to_client.una()),
            client_sent: connection.seq(to_client.nxt()),
            server_expects: upload.acked(),
            server_acked: connection.seq(from_server.acked()),
            client_timestamp: timestamps.then_some(upload.timestamp()),
            server_timestamp: timestamps.then_some(from_server.header().timestamp),
        }
    }
    /// `control` is that of its device.
    pub fn snapshot(&self, control: ControlSnapshot, limit: ClientLimit) -> FlowSnapshot {
        FlowSnapshot {
            key: self.connection.key,
            exposure: self.exposure(),
            held: self.held(),
            in_flight: self.to_client.sent_in_flight(),
            delivered: self.to_client.una() - 1,
            age: self.to_client.age(),
            srtt: self.to_client.rtt().srtt(),
            min_rtt: self.to_client.rtt().min(),
            control,
            limit,
            pattern: None,
        }
    }

    /// Panics if a constant-time invariant does not hold.
    pub fn check_state(&self, config: &AcceleratorConfig) {
        let (next, una, nxt) = (self.from_server.next(), self.to_client.una(), self.to_client.nxt());
        let (acked, edge) = (self.from_server.acked(), self.from_server.edge());
        assert!(acked <= next.max(una), "early ACKs cover contiguous verified data");
        assert!(self.exposure() <= config.exposure.0, "exposure is capped");
        assert!(
            una <= nxt && nxt <= self.from_server.stream_end(),
            "a prefix of the server's stream is sent"
        );
        assert!(edge + 1 >= acked, "the receive window is not negative");
        let most = 2 * config.flow_buffer.0 + LARGEST_PACKET_BYTES;
        assert!(next.saturating_sub(una) <= most && next <= edge, "memory is bounded");
    }
    /// Panics if an invariant of the store or the scoreboard does not hold.
    pub fn check_depth(&self) {
        self.from_server.check(self.to_client.una());
        self.to_client.check();
    }
}
