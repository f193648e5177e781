//! The other direction, which is not accelerated: what client and server have told each other there, so that
//! packets in the client's name carry its numbers and injected ones are told (RFC 5961).
//!
//! A connection that does nothing but upload may rest: the client's segments and the server's acknowledgments go past
//! us. What we know of them is old then. The server's next data, which come here, tell what it has of the client, and
//! nothing is said in the client's name until the client itself has been heard.

use crate::accelerator::Side;
use crate::accelerator::flow::from_server::paws::{Renewed, is_newer};
use paceline_net::rewrite::Unparsed;
use paceline_net::{Instant, Packet, SeqNumber, TcpFlags, TcpHeader};

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Uplink {
    /// Highest acknowledgment of the server.
    pub una: SeqNumber,
    /// End of what the client has sent, its SYN and FIN included.
    pub next: SeqNumber,
    /// The server's window as on the wire.
    pub window: u16,
    /// Largest window of the server in bytes.
    max_window: u32,
    /// The client's highest TSval.
    pub timestamp: u32,
    /// The number behind the client's FIN.
    pub fin: Option<SeqNumber>,
    /// Header fields of the client's last packet, for those in its name.
    pub traffic_class: u8,
    pub hop_limit: u8,
    pub flow_label: u32,
    /// The client's segments go past us.
    pub resting: bool,
    /// They did, and the client has not been heard since.
    pub uncertain: bool,
    /// Meanwhile the client has said that it stands here, further on than a window from what we know.
    claimed: Option<SeqNumber>,
    /// How often the client was asked for what it owes and has acknowledged what never came here, and nothing else since.
    pub claims: u8,
    pub renewed: Renewed,
    /// Bytes of the client since its server sent any.
    uploaded: u64,
}

/// So much of an upload makes it one: a request is shorter.
const UPLOAD: u64 = 256 << 10;
/// Windows up to this are taken for possible before one has been seen.
const LEAST_WINDOW: u32 = 65_535;

impl Uplink {
    /// The client's SYN.
    pub fn start(&mut self, now: Instant, packet: &Packet, tcp: &TcpHeader) {
        self.renewed.on(now, Side::Mobile);
        self.next = tcp.seq + 1 + tcp.payload_len;
        self.una = tcp.seq;
        // Sent again it may have none, though the answer is to the one before.
        self.timestamp = tcp.options.timestamps.map_or(self.timestamp, |timestamps| timestamps.val);
        self.note_header(packet);
    }
    pub fn note_header(&mut self, packet: &Packet) {
        self.traffic_class = packet.ip.traffic_class & !3;
        self.hop_limit = packet.ip.hop_limit;
        self.flow_label = Unparsed::of(packet).flow_label;
    }
    /// A segment of the client whose numbers are plausible.
    pub fn on_client(&mut self, now: Instant, packet: &Packet, tcp: &TcpHeader) {
        let fin = u32::from(tcp.flags.contains(TcpFlags::FIN));
        let end = tcp.seq + (tcp.payload_len + fin);
        self.claims = 0;
        // Further on than its server's window, what we know is so old that the client would not read it.
        let far = tcp.seq.distance(self.una) > self.max_window.saturating_add(1) as i32;
        self.uncertain &= end < self.next || far;
        self.next = self.next.max(end);
        self.uploaded += u64::from(tcp.payload_len);
        if fin == 1 {
            self.fin = Some(end);
        }
        if let Some(timestamps) = tcp.options.timestamps
            && (is_newer(timestamps, self.timestamp) || self.renewed.is_forgotten(now, Side::Mobile))
        {
            self.timestamp = timestamps.val;
            self.renewed.on(now, Side::Mobile);
        }
        self.note_header(packet);
    }
    /// An acknowledgment of the server; whether it said something new.
    pub fn on_server_ack(&mut self, tcp: &TcpHeader) -> bool {
        let news = tcp.ack > self.una || tcp.ack == self.una && tcp.window != self.window;
        if tcp.ack >= self.una {
            self.una = tcp.ack;
            self.window = tcp.window;
        }
        news
    }
    /// The server sent data.
    pub fn on_server_data(&mut self) {
        self.uploaded = 0;
    }
    /// Whether this is an upload, and nothing else that would have to be seen here.
    pub fn may_rest(&self) -> bool {
        self.uploaded >= UPLOAD && self.fin.is_none() && !self.uncertain && !self.resting
    }
    /// Whether the segment is the end of a client that rests. It is believed when the server has acknowledged as much.
    pub fn note_end(&mut self, tcp: &TcpHeader) -> bool {
        let ends = self.resting && tcp.flags.contains(TcpFlags::FIN);
        if ends {
            self.fin = Some(tcp.seq + (tcp.payload_len + 1));
        }
        ends
    }
    /// The server's data end a rest. What it has of the client, and the timestamp that it knows, is all that is sure.
    pub fn resume(&mut self, tcp: &TcpHeader) {
        (self.resting, self.uncertain, self.uploaded, self.claimed) = (false, true, 0, None);
        (self.una, self.next) = (tcp.ack, tcp.ack);
        if let Some(timestamps) = tcp.options.timestamps {
            self.timestamp = timestamps.ecr;
        }
    }
    /// The client tells where it stands, as far ahead as no window allows. It alone is not believed.
    pub fn note_claim(&mut self, tcp: &TcpHeader) {
        if self.uncertain && tcp.flags.contains(TcpFlags::ACK) {
            self.claimed = Some(tcp.seq);
        }
    }
    /// What the server acknowledges may have gone past us until the client is heard: up to a window, or however much where the
    /// client says the same. While the data that end a rest wait here, several windows may go past.
    pub fn catch_up(&mut self, tcp: &TcpHeader) {
        let says = self.uncertain && tcp.flags.contains(TcpFlags::ACK);
        let window = self.possible_window() as i32;
        let ahead = tcp.ack.distance(self.next);
        let agreed = self.claimed.is_some_and(|claimed| claimed.distance(tcp.ack).abs() <= window);
        if says && ahead >= 0 && (ahead <= window || agreed) {
            self.next = tcp.ack;
        }
    }
    /// Where a segment in the client's name stands for its server to read it: not past a window that is shut, though the client
    /// may have sent a byte past it to probe it (RFC 9293, section 3.8.6.1).
    pub fn readable(&self, server_shift: u8) -> SeqNumber {
        let window = u32::from(self.window) << server_shift;
        if self.next.distance(self.una) > window as i32 { self.una + window } else { self.next }
    }
    pub fn note_window(&mut self, bytes: u32) {
        self.max_window = self.max_window.max(bytes);
    }
    fn possible_window(&self) -> u32 {
        self.max_window.max(LEAST_WINDOW)
    }
    /// RFC 5961, section 5.2, as the client would test the server's acknowledgment.
    pub fn accepts_ack(&self, ack: SeqNumber) -> bool {
        let back = self.una.distance(ack);
        ack <= self.next && back <= self.possible_window() as i32
    }
    /// Whether the server might accept the segment of the client.
    pub fn accepts_seq(&self, seq: SeqNumber) -> bool {
        let ahead = seq.distance(self.una);
        let window = self.possible_window() as i32;
        -window <= ahead && ahead <= window.saturating_add(1)
    }
    /// RFC 5961, section 3.2: a reset counts only if its number is exact. What was lost between us and the server
    /// leaves two candidates.
    pub fn accepts_reset(&self, seq: SeqNumber) -> bool {
        seq == self.una || seq == self.next
    }
    /// The server has acknowledged the client's FIN.
    pub fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.una >= fin)
    }
}
