//! Faults of links, and injected segments.

use super::*;

impl Model {
    /// Loss, duplication, corruption.
    pub(super) fn apply_fault(&mut self, choices: &mut Choices<'_>) {
        let (fault, which) = (choices.below(3), choices.below(4));
        let queues = [&mut self.to_client, &mut self.to_server, &mut self.from_server, &mut self.from_client];
        let queue = queues.into_iter().nth(which).expect("four queues");
        let at = choices.below(queue.len());
        match (fault, queue.get(at).cloned()) {
            (0, Some(_)) => drop(queue.remove(at)),
            (1, Some(packet)) => queue.push_back(packet),
            (_, Some(packet)) => {
                // Only one bit: two flipped bits may leave the checksum valid.
                if let Payload::Datagram(bytes) = &packet.payload
                    && checksum_is_right(&packet)
                {
                    let mut raw = bytes.to_vec();
                    let bit = choices.byte() as usize * 37 % (raw.len() * 8);
                    raw[bit / 8] ^= 1 << (bit % 8);
                    match wire::parse(&raw) {
                        Ok(corrupt) => queue[at] = corrupt,
                        Err(_) => drop(queue.remove(at)),
                    }
                } else {
                    queue.remove(at);
                }
            }
            _ => {}
        }
    }
    /// The server's packets bypass the machine: fragments, or a changed route.
    pub(super) fn bypass_machine(&mut self) {
        while let Some(packet) = self.from_server.pop_front() {
            self.note(Side::Server, &packet);
            self.to_client.push_back(packet);
        }
    }
    pub(super) fn inject(&mut self, choices: &mut Choices<'_>) {
        let side = if choices.byte() & 1 == 0 { Side::Server } else { Side::Mobile };
        let jitter = (u32::from(choices.byte()) << choices.below(24)).wrapping_sub(1000);
        let flags = TcpFlags([ACK.0, RST.0, ACK.0, FIN.0, 0x012, 0x038, 0, 0x004][choices.below(8)]);
        let (seq, ack) = match side {
            Side::Server => (self.sent as u32, self.client_sent),
            Side::Mobile => (self.client_sent, self.received as u32),
        };
        let mut tcp = self.header(side, seq, ack, flags, 0);
        match choices.below(3) {
            0 => tcp.seq += jitter,
            1 => tcp.ack += jitter,
            _ => (tcp.seq, tcp.ack) = (tcp.seq + jitter, tcp.ack + jitter),
        }
        tcp.window = u16::from(choices.byte()) << 8;
        if choices.byte() & 1 != 0 {
            let left = SeqNumber(self.isn[0]) + (self.received as u32).wrapping_add(jitter);
            tcp.options.sack.push(left, left + 700);
        }
        // Segments with valid numbers are injected into hostile runs only: an on-path attacker can do
        // anything.
        let plausible_ack =
            side == Side::Mobile && tcp.ack.distance(SeqNumber(self.isn[0]) + self.received as u32) > 0;
        let exact = tcp.seq == self.header(side, seq, ack, flags, 0).seq;
        let ends = flags.intersects(TcpFlags::RST.with(TcpFlags::FIN).with(TcpFlags::SYN));
        let numbers = self.accelerator.journal().next();
        let hits_reset = flags.contains(TcpFlags::RST)
            && numbers.is_some_and(|record| [record.server_acked, record.server_expects].contains(&tcp.seq));
        if (plausible_ack || ends || exact || hits_reset || !tcp.options.sack.is_empty()) && !self.hostile {
            return;
        }
        let ahead = tcp.seq.distance(SeqNumber(self.isn[1]) + self.client_sent);
        self.rules.client_moved |= side == Side::Mobile && (1..1 << 20).contains(&ahead);
        self.rules.connection_replaced |= flags.contains(TcpFlags::SYN);
        let packet = self.packet(side, tcp, 1);
        self.arrive(side, packet);
    }
}
