//! The direction from client to server, which is not accelerated: the numbers that both ends have seen, for
//! segments in the client's name and for the tests of RFC 5961.
//!
//! A connection that does nothing but upload may be *offloaded*: the client's segments and the server's pure
//! ACKs bypass the machine, and the state here grows old. The server's next data segment ends the offload and
//! tells what the server has of the client. Until the client itself confirms its state, nothing is sent in
//! the client's name.

use crate::accelerator::flow::connection::Connection;
use crate::accelerator::flow::paws::{Epoch, is_current, is_reordered};
use paceline_net::rewrite::Unparsed;
use paceline_net::{Instant, Packet, SeqNumber, TcpFlags, TcpHeader};

/// Bytes after which an upload may be offloaded. Chosen: more than a request has.
const MIN_UPLOAD_BYTES: u64 = 256 << 10;
/// Window of the server that is assumed until a larger one was seen, in bytes: the largest without window
/// scaling (RFC 9293, section 3.1).
const UNSCALED_WINDOW_BYTES: u32 = 65_535;

/// Header fields of the client's last packet, for those in its name.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct ClientHeader {
    /// Without the ECN field.
    pub traffic_class: u8,
    pub hop_limit: u8,
    /// Flow label and fragmentation.
    pub unparsed: Unparsed,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Upload {
    /// Highest acknowledgment of the server.
    acked: SeqNumber,
    /// End of the client's bytes that passed, SYN and FIN included.
    end: SeqNumber,
    /// The server's window field.
    window: u16,
    /// Largest window of the server, in bytes.
    max_window: u32,
    /// The client's highest TSval, and when it was recorded.
    timestamp: u32,
    timestamp_epoch: Epoch,
    /// The parts of a [`ClientHeader`].
    traffic_class: u8,
    hop_limit: u8,
    unparsed: Unparsed,
    /// The sequence number after the client's FIN.
    fin: Option<SeqNumber>,
    /// The client has acknowledged the server's SYN.
    handshake_complete: bool,
    /// The server acknowledged bytes or changed its window, and no segment to the client has said so yet.
    ack_to_client_due: bool,
    offloaded: bool,
    /// The state comes from the server's data that ended an offload; no segment of the client has confirmed
    /// it.
    unconfirmed: bool,
    /// While unconfirmed: the sequence number of a client's segment further ahead than a window.
    claimed_seq: Option<SeqNumber>,
    /// Consecutive answers to probes in which the client acknowledged data that never passed here.
    unseen_data_acks: u8,
    /// Payload bytes of the client since the server's last data.
    uploaded: u64,
}

impl Upload {
    /// The client's SYN.
    pub fn on_syn(&mut self, now: Instant, packet: &Packet, tcp: &TcpHeader) {
        self.timestamp_epoch = Epoch::at(now);
        self.end = tcp.seq + 1 + tcp.payload_len;
        self.acked = tcp.seq;
        // A retransmitted SYN may lack the option, while the server answers the first one.
        self.timestamp = tcp.options.timestamps.map_or(self.timestamp, |timestamps| timestamps.val);
        self.note_header(packet);
    }
    pub fn complete_handshake(&mut self) {
        self.handshake_complete = true;
    }
    fn note_header(&mut self, packet: &Packet) {
        self.traffic_class = packet.ip.traffic_class & !3;
        self.hop_limit = packet.ip.hop_limit;
        self.unparsed = Unparsed { urgent: 0, ..Unparsed::of(packet) };
    }

    /// Highest acknowledgment of the server.
    pub fn acked(&self) -> SeqNumber {
        self.acked
    }
    /// End of the client's bytes that passed, SYN and FIN included.
    pub fn end(&self) -> SeqNumber {
        self.end
    }
    /// The server's window field.
    pub fn window(&self) -> u16 {
        self.window
    }
    /// The client's highest TSval.
    pub fn timestamp(&self) -> u32 {
        self.timestamp
    }
    pub fn header(&self) -> ClientHeader {
        let &Self { traffic_class, hop_limit, unparsed, .. } = self;
        ClientHeader { traffic_class, hop_limit, unparsed }
    }
    pub fn is_offloaded(&self) -> bool {
        self.offloaded
    }
    /// Whether the state comes from the server alone: see [`Upload::end_offload`].
    pub fn is_unconfirmed(&self) -> bool {
        self.unconfirmed
    }
    /// The client has sent its FIN.
    pub fn has_fin(&self) -> bool {
        self.fin.is_some()
    }
    /// The server has acknowledged the client's FIN.
    pub fn is_closed(&self) -> bool {
        self.fin.is_some_and(|fin| self.acked >= fin)
    }

    /// A segment of the client whose numbers are plausible.
    pub fn on_client(&mut self, now: Instant, packet: &Packet, tcp: &TcpHeader) {
        let fin = u32::from(tcp.flags.contains(TcpFlags::FIN));
        let end = tcp.seq + (tcp.payload_len + fin);
        self.handshake_complete = true;
        self.unseen_data_acks = 0;
        // A client more than a window ahead shows that the state here is too old for it to accept.
        let far = tcp.seq.distance(self.acked) > self.max_window.saturating_add(1) as i32;
        self.unconfirmed &= end < self.end || far;
        self.end = self.end.max(end);
        self.uploaded += u64::from(tcp.payload_len);
        if fin == 1 {
            self.fin = Some(end);
        }
        if let Some(timestamps) = tcp.options.timestamps
            && (is_current(timestamps, self.timestamp) || self.timestamp_epoch.is_expired(now))
        {
            self.timestamp = timestamps.val;
            self.timestamp_epoch = Epoch::at(now);
        }
        self.note_header(packet);
    }
    /// An acknowledgment of the server: an ACK to the client becomes due if it is a new one.
    pub fn on_server_ack(&mut self, tcp: &TcpHeader) {
        self.ack_to_client_due |= self.record_server_ack(tcp);
    }
    /// Records an acknowledgment of the server. Whether its number or its window is new.
    pub fn record_server_ack(&mut self, tcp: &TcpHeader) -> bool {
        let is_new = tcp.ack > self.acked || tcp.ack == self.acked && tcp.window != self.window;
        if tcp.ack >= self.acked {
            self.acked = tcp.ack;
            self.window = tcp.window;
        }
        is_new
    }
    /// Records a window of the server, in bytes.
    pub fn note_window(&mut self, bytes: u32) {
        self.max_window = self.max_window.max(bytes);
    }
    /// The server sent data: the connection is no mere upload.
    pub fn on_server_data(&mut self) {
        self.uploaded = 0;
    }
    pub fn is_ack_to_client_due(&self) -> bool {
        self.ack_to_client_due
    }
    /// A segment to the client carries the server's acknowledgment.
    pub fn note_ack_to_client(&mut self) {
        self.ack_to_client_due = false;
    }

    /// Whether the connection is an upload with nothing else to be seen here.
    pub fn may_offload(&self) -> bool {
        let unaltered = !self.ack_to_client_due && !self.unconfirmed && !self.offloaded;
        self.uploaded >= MIN_UPLOAD_BYTES && self.fin.is_none() && unaltered
    }
    pub fn offload(&mut self) {
        self.offloaded = true;
    }
    /// Records the FIN of an offloaded client; it counts when the server acknowledges it. Whether the segment
    /// is one.
    pub fn note_offloaded_fin(&mut self, tcp: &TcpHeader) -> bool {
        let is_fin = self.offloaded && tcp.flags.contains(TcpFlags::FIN);
        if is_fin {
            self.fin = Some(tcp.seq + (tcp.payload_len + 1));
        }
        is_fin
    }
    /// The server's data end the offload. Certain are only the bytes that the server acknowledges and the
    /// timestamp that it echoes.
    pub fn end_offload(&mut self, tcp: &TcpHeader) {
        (self.offloaded, self.unconfirmed, self.uploaded, self.claimed_seq) = (false, true, 0, None);
        (self.acked, self.end) = (tcp.ack, tcp.ack);
        if let Some(timestamps) = tcp.options.timestamps {
            self.timestamp = timestamps.ecr;
        }
    }
    /// A segment of the client is further ahead than a window while its state is unconfirmed. Alone it proves
    /// nothing: see [`Upload::catch_up`].
    pub fn note_claim(&mut self, tcp: &TcpHeader) {
        if self.unconfirmed && tcp.flags.contains(TcpFlags::ACK) {
            self.claimed_seq = Some(tcp.seq);
        }
    }
    /// While unconfirmed, the server may acknowledge bytes that bypassed the machine: up to a window ahead,
    /// or any number near the one that the client has claimed. (While the segments that end an offload are
    /// held back, several windows may bypass.)
    pub fn catch_up(&mut self, tcp: &TcpHeader) {
        let applies = self.unconfirmed && tcp.flags.contains(TcpFlags::ACK);
        let window = self.possible_window() as i32;
        let ahead = tcp.ack.distance(self.end);
        let agreed = self.claimed_seq.is_some_and(|claimed| claimed.distance(tcp.ack).abs() <= window);
        if applies && ahead >= 0 && (ahead <= window || agreed) {
            self.end = tcp.ack;
        }
    }
    /// Counts a client's acknowledgment of data that never passed here; `probed`: it answers a probe. Returns
    /// the number of such answers in a row.
    pub fn count_unseen_data_ack(&mut self, probed: bool) -> u8 {
        self.unseen_data_acks += u8::from(probed);
        self.unseen_data_acks
    }

    /// The sequence number of an empty segment in the client's name that the server accepts: not past a
    /// closed window, though the client may have sent a byte there to probe it (RFC 9293, section 3.8.6.1).
    pub fn empty_segment_seq(&self, server_shift: u8) -> SeqNumber {
        let window = u32::from(self.window) << server_shift;
        if self.end.distance(self.acked) > window as i32 { self.acked + window } else { self.end }
    }
    fn possible_window(&self) -> u32 {
        self.max_window.max(UNSCALED_WINDOW_BYTES)
    }
    /// RFC 5961, section 5.2: whether the client would accept the server's acknowledgment.
    pub fn accepts_ack(&self, ack: SeqNumber) -> bool {
        let back = self.acked.distance(ack);
        ack <= self.end && back <= self.possible_window() as i32
    }
    /// Whether the server may accept the client's segment.
    pub fn accepts_seq(&self, seq: SeqNumber) -> bool {
        let ahead = seq.distance(self.acked);
        let window = self.possible_window() as i32;
        -window <= ahead && ahead <= window.saturating_add(1)
    }
    /// RFC 5961, section 3.2: whether a reset of the client has the exact number. Bytes lost between here and
    /// the server leave two candidates.
    pub fn accepts_reset(&self, seq: SeqNumber) -> bool {
        seq == self.acked || seq == self.end
    }
    /// Whether the segment is a keepalive: one below the next sequence number, without payload.
    pub fn is_keepalive(&self, tcp: &TcpHeader) -> bool {
        tcp.payload_len == 0 && tcp.seq != self.end && self.end.distance(tcp.seq) == 1
    }
    /// PAWS: whether a segment of the client is older than reordering explains.
    pub fn fails_paws(&self, now: Instant, connection: &Connection, tcp: &TcpHeader) -> bool {
        let fits = |own| is_current(own, self.timestamp) || is_reordered(own, self.timestamp);
        connection.negotiated.timestamps
            && !tcp.options.timestamps.is_none_or(fits)
            && !self.timestamp_epoch.is_expired(now)
    }
    /// Whether the client's TSval has expired. A segment with it would be accepted after so long, and the
    /// client's own next ones would then be old.
    pub fn is_clock_expired(&self, now: Instant, connection: &Connection) -> bool {
        connection.negotiated.timestamps && self.timestamp_epoch.is_expired(now)
    }
    /// Whether segments may be sent in the client's name.
    pub fn is_confirmed(&self, now: Instant, connection: &Connection) -> bool {
        self.handshake_complete && !self.unconfirmed && !self.is_clock_expired(now, connection)
    }
}
