//! The model's client: reassembles, verifies, and acknowledges in all the ways that clients do.

use super::*;

impl Model {
    pub(super) fn client_gets(&mut self, packet: &Packet) {
        let Transport::Tcp(tcp) = packet.transport else { return };
        if !checksum_is_right(packet) || tcp.dst_port != 40_000 || tcp.src_port != 80 {
            return;
        }
        if tcp.payload_len > self.fits {
            return;
        }
        let exact = tcp.seq == SeqNumber(self.isn[0]) + self.have as u32;
        if tcp.flags.contains(TcpFlags::RST) {
            self.over |= exact && self.hostile;
            assert!(!exact || self.hostile, "nobody reset this connection");
            return;
        }
        // RFC 5961, section 5.2: what acknowledges less than the largest window behind is not read.
        let behind = (SeqNumber(self.isn[1]) + self.client_heard).distance(tcp.ack);
        if behind > 60_000 << self.shift {
            return self.client_ack(self.have, &[]);
        }
        let off = self.offset(tcp.seq);
        let fin = tcp.flags.contains(TcpFlags::FIN);
        let end = off.saturating_add(u64::from(tcp.payload_len));
        // RFC 9293, section 3.10.7.4: of what stands elsewhere nothing is believed, whatever it acknowledges.
        let fits = off <= self.client_edge && (!self.strict || end <= self.client_edge);
        if fits && end + u64::from(fin) >= self.have {
            self.hear(tcp.ack);
        }
        if tcp.payload_len == 0 && !fin {
            if off < self.have {
                self.client_ack(self.have, &[]); // a probe
            }
            return;
        }
        if off > self.have + (1 << 30) {
            return;
        }
        assert!(end <= self.sent || self.hostile, "the client gets {end} of {}", self.sent);
        if let Payload::Datagram(bytes) = &packet.payload {
            let body = &bytes[rewrite::header_len(packet)..];
            assert!(
                body.iter().zip(off..).all(|(got, off)| *got == byte(off)),
                "the server's bytes at {off}"
            );
        }
        if fits && end > self.have {
            self.beyond.push((off.max(self.have), end));
            self.beyond.sort_unstable();
            let ranges = std::mem::take(&mut self.beyond);
            for (left, right) in ranges {
                if left <= self.have {
                    self.have = self.have.max(right);
                } else {
                    self.beyond.push((left, right));
                }
            }
        }
        if fin && end == self.have && (self.fin == Some(end) || self.hostile) {
            self.have += 1;
        }
        if let Some(timestamps) = tcp.options.timestamps.filter(|_| off <= self.have) {
            self.echo[1] = timestamps.val;
        }
        let blocks: Vec<(u64, u64)> = self.beyond.iter().rev().take(3).copied().collect();
        self.client_ack(self.have, &blocks);
    }
    /// An acknowledgment of what the client has sent.
    fn hear(&mut self, ack: SeqNumber) {
        let heard = ack.distance(SeqNumber(self.isn[1]) + self.client_heard);
        if heard > 0 && heard as u32 <= self.client_sent - self.client_heard {
            self.client_heard += heard as u32;
        }
    }
    pub(super) fn client_ack(&mut self, ack: u64, blocks: &[(u64, u64)]) {
        self.client_edge = self.client_edge.max(self.have + self.window);
        let mut tcp = self.header(Side::Mobile, self.client_sent, ack as u32, ACK, 0);
        self.fill(&mut tcp, blocks);
        self.from_client.push_back(self.packet(Side::Mobile, tcp, 1));
    }
    pub(super) fn fill(&self, tcp: &mut TcpHeader, blocks: &[(u64, u64)]) {
        let window = self.client_edge.saturating_sub(self.have) >> self.shift;
        tcp.window = u16::try_from(window).unwrap_or(u16::MAX);
        for (left, right) in blocks.iter().filter(|_| self.sack) {
            let isn = SeqNumber(self.isn[0]);
            tcp.options.sack.push(isn + *left as u32, isn + *right as u32);
        }
    }
    pub(super) fn client_sends(&mut self, choices: &mut Choices<'_>) {
        let len = choices.below(200) as u32;
        let mut tcp = self.header(Side::Mobile, self.client_sent, self.have as u32, ACK, len);
        self.fill(&mut tcp, &[]);
        let off = u64::from(self.client_sent);
        self.from_client.push_back(self.packet(Side::Mobile, tcp, off));
        self.client_sent += len;
    }
    /// Divided, repeated and, of a hostile client, optimistic acknowledgments.
    pub(super) fn client_acks(&mut self, choices: &mut Choices<'_>) {
        let back = u64::from(choices.byte());
        match choices.below(3) {
            // Thrown away, selectively acknowledged or not (RFC 2018, section 8).
            0 if back >= 128 => self.beyond.clear(),
            0 => (0..3).for_each(|_| self.client_ack(self.have, &[])),
            1 => {
                (0..back.min(20)).rev().for_each(|n| self.client_ack(self.have.saturating_sub(n).max(1), &[]))
            }
            _ if self.hostile => self.client_ack(self.have + 100 * back, &[]),
            _ => self.client_ack(self.have, &[]),
        }
    }
}
