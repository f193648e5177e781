//! The model's server: sends, retransmits, closes, and takes ACKs.

use super::*;

impl Model {
    pub(super) fn server_sends(&mut self, choices: &mut Choices<'_>) {
        if self.fin.is_some() {
            return;
        }
        let room = self.edge.saturating_sub(self.sent);
        let wanted = [1, 90, 500, 500, 500, 1000, 4000, 20_000][choices.below(8)];
        let len = room.min(wanted) as u32;
        if len > 0 {
            self.emit_server(self.sent, len, ACK);
            self.sent += u64::from(len);
        }
    }
    pub(super) fn emit_server(&mut self, off: u64, len: u32, flags: TcpFlags) {
        let tcp = self.header(Side::Server, off as u32, self.client_acked, flags, len);
        let packet = self.packet(Side::Server, tcp, off);
        self.from_server.push_back(packet);
    }
    pub(super) fn server_retransmits(&mut self, choices: &mut Choices<'_>) {
        let outstanding = self.sent.saturating_sub(self.acked);
        let back = if outstanding == 0 { 1 } else { u64::from(choices.byte()) * 64 % outstanding };
        let off = (self.acked + back).min(self.sent - u64::from(self.sent > 1)).max(1);
        let len = (self.sent - off).min(u64::from(self.segment)) as u32;
        let flags = if self.fin == Some(off + u64::from(len)) { FIN } else { ACK };
        if len > 0 || flags == FIN {
            self.emit_server(off, len, flags);
        }
    }
    pub(super) fn close(&mut self, choices: &mut Choices<'_>) {
        match choices.below(6) {
            0..=2 => {
                self.fin.get_or_insert(self.sent);
                self.emit_server(self.sent, 0, FIN);
            }
            3 if self.fin.is_none() => {
                self.emit_server(self.sent, 0, RST);
                self.hostile = true; // data in flight may be lost
            }
            4 => {
                self.accelerator.drain(self.now, Duration::from_secs(1000));
                self.collect();
            }
            _ => self.client_fin = true,
        }
    }

    /// The server receives a packet. Asserts that the acknowledged data was sent.
    pub(super) fn server_gets(&mut self, packet: &Packet) {
        let Transport::Tcp(tcp) = packet.transport else { return };
        if !checksum_is_right(packet) || tcp.src_port != CLIENT_PORT || tcp.dst_port != SERVER_PORT {
            return;
        }
        if tcp.flags.contains(TcpFlags::RST) {
            self.ended |= self.hostile;
            return;
        }
        if !tcp.flags.contains(ACK) || self.ended {
            return;
        }
        // RFC 9293, section 3.10.7.4: a segment outside the window changes nothing. Old data is answered.
        let next = SeqNumber(self.isn[1]) + self.client_acked;
        let window = i32::from(self.server_window) << self.shift;
        let probed = i32::from(self.accelerator.flow_count() == 0); // bypassed probes are the ends' own
        if tcp.payload_len == 0 && tcp.seq < next || tcp.seq.distance(next) > window.max(probed) {
            return;
        }
        let distance = tcp.ack.distance(SeqNumber(self.isn[0]) + self.acked as u32);
        if distance < 0 {
            return; // an old ACK
        }
        let ack = self.acked + distance as u64;
        let end = self.sent + u64::from(self.fin.is_some());
        assert!(ack <= end || self.hostile, "{ack} bytes are acknowledged of {end}");
        if let Some(fin) = self.fin.filter(|_| !self.hostile) {
            assert!(ack <= fin || self.received > fin, "a FIN is not acknowledged early");
        }
        self.acked = ack.min(end);
        let shift = if tcp.flags.contains(TcpFlags::SYN) { 0 } else { self.shift };
        let edge = ack.min(end) + (u64::from(tcp.window) << shift);
        self.edge = self.edge.max(edge);
        if tcp.payload_len > 0 && tcp.seq <= next {
            let known = next.distance(tcp.seq) as u32;
            self.client_acked += tcp.payload_len.saturating_sub(known).min(window as u32);
            // Not past a window that has shrunk (Linux: tcp_acceptable_seq).
            let ack = self.header(Side::Server, end.min(edge) as u32, self.client_acked, ACK, 0);
            let packet = self.packet(Side::Server, ack, 1);
            self.from_server.push_back(packet);
        }
        if let Some(timestamps) = tcp.options.timestamps {
            self.echo[0] = timestamps.val;
        }
    }
}
