//! The model's client: reassembles and verifies the stream, and sends ACKs of many kinds.

use super::*;

impl Model {
    pub(super) fn client_gets(&mut self, packet: &Packet) {
        let Transport::Tcp(tcp) = packet.transport else { return };
        if !checksum_is_right(packet) || tcp.dst_port != CLIENT_PORT || tcp.src_port != SERVER_PORT {
            return;
        }
        if tcp.payload_len > self.longest_delivered {
            return;
        }
        let exact = tcp.seq == SeqNumber(self.isn[0]) + self.received as u32;
        if tcp.flags.contains(TcpFlags::RST) {
            self.ended |= exact && self.hostile;
            assert!(!exact || self.hostile, "no end has reset the connection");
            return;
        }
        // RFC 5961, section 5.2: a segment whose ACK is older than the largest window is dropped.
        let behind = (SeqNumber(self.isn[1]) + self.client_una).distance(tcp.ack);
        if behind > 60_000 << self.shift {
            return self.client_ack(self.received, &[]);
        }
        let off = self.offset(tcp.seq);
        let fin = tcp.flags.contains(TcpFlags::FIN);
        let end = off.saturating_add(u64::from(tcp.payload_len));
        // RFC 9293, section 3.10.7.4: a segment outside the window changes nothing.
        let fits = off <= self.client_edge && (!self.strict || end <= self.client_edge);
        if fits && end + u64::from(fin) >= self.received {
            self.take_ack(tcp.ack);
        }
        if tcp.payload_len == 0 && !fin {
            if off < self.received {
                self.client_ack(self.received, &[]); // a probe
            }
            return;
        }
        if off > self.received + (1 << 30) {
            return;
        }
        assert!(end <= self.sent || self.hostile, "the client receives {end} bytes of {}", self.sent);
        if let Payload::Datagram(bytes) = &packet.payload {
            let body = &bytes[rewrite::header_len(packet)..];
            assert!(
                body.iter().zip(off..).all(|(got, off)| *got == byte(off)),
                "the server's bytes at {off}"
            );
        }
        if fits && end > self.received {
            self.out_of_order.push((off.max(self.received), end));
            self.out_of_order.sort_unstable();
            let ranges = std::mem::take(&mut self.out_of_order);
            for (left, right) in ranges {
                if left <= self.received {
                    self.received = self.received.max(right);
                } else {
                    self.out_of_order.push((left, right));
                }
            }
        }
        if fin && end == self.received && (self.fin == Some(end) || self.hostile) {
            self.received += 1;
        }
        if let Some(timestamps) = tcp.options.timestamps.filter(|_| off <= self.received) {
            self.echo[1] = timestamps.val;
        }
        let blocks: Vec<(u64, u64)> = self.out_of_order.iter().rev().take(3).copied().collect();
        self.client_ack(self.received, &blocks);
    }
    /// An acknowledgment of the client's data.
    fn take_ack(&mut self, ack: SeqNumber) {
        let acked = ack.distance(SeqNumber(self.isn[1]) + self.client_una);
        if acked > 0 && acked as u32 <= self.client_sent - self.client_una {
            self.client_una += acked as u32;
        }
    }
    pub(super) fn client_ack(&mut self, ack: u64, blocks: &[(u64, u64)]) {
        self.client_edge = self.client_edge.max(self.received + self.window);
        let mut tcp = self.header(Side::Mobile, self.client_sent, ack as u32, ACK, 0);
        self.fill(&mut tcp, blocks);
        self.from_client.push_back(self.packet(Side::Mobile, tcp, 1));
    }
    pub(super) fn fill(&self, tcp: &mut TcpHeader, blocks: &[(u64, u64)]) {
        let window = self.client_edge.saturating_sub(self.received) >> self.shift;
        tcp.window = u16::try_from(window).unwrap_or(u16::MAX);
        for (left, right) in blocks.iter().filter(|_| self.sack) {
            let isn = SeqNumber(self.isn[0]);
            tcp.options.sack.push(isn + *left as u32, isn + *right as u32);
        }
    }
    pub(super) fn client_sends(&mut self, choices: &mut Choices<'_>) {
        let len = choices.below(200) as u32;
        let mut tcp = self.header(Side::Mobile, self.client_sent, self.received as u32, ACK, len);
        self.fill(&mut tcp, &[]);
        let off = u64::from(self.client_sent);
        self.from_client.push_back(self.packet(Side::Mobile, tcp, off));
        self.client_sent += len;
    }
    /// Divided and duplicate ACKs, reneging, and optimistic ACKs of a hostile client.
    pub(super) fn client_acks(&mut self, choices: &mut Choices<'_>) {
        let back = u64::from(choices.byte());
        match choices.below(3) {
            // Reneging: SACKed data is discarded (RFC 2018, section 8).
            0 if back >= 128 => self.out_of_order.clear(),
            0 => (0..3).for_each(|_| self.client_ack(self.received, &[])),
            1 => (0..back.min(20))
                .rev()
                .for_each(|n| self.client_ack(self.received.saturating_sub(n).max(1), &[])),
            _ if self.hostile => self.client_ack(self.received + 100 * back, &[]),
            _ => self.client_ack(self.received, &[]),
        }
    }
}
