//! Uploads that go past the machine, as a driver lets them: by the packet alone, and by what the machine says of the
//! connection.

use super::*;

impl Model {
    /// A packet comes from `side`, to the driver.
    pub(super) fn arrive(&mut self, side: Side, packet: Packet) {
        let Some(tcp) = packet.tcp_header().copied() else { return self.input(side, packet) };
        let begins_or_ends = TcpFlags::SYN.with(FIN).with(RST).with(TcpFlags::URG).0 & !ACK.0;
        let data = tcp.payload_len > 0;
        if self.past && tcp.flags.0 & begins_or_ends == 0 && (side == Side::Mobile || !data) {
            self.note(side, &packet);
            self.promises.edge = None; // the client tells of its own
            match side {
                Side::Server => self.to_client.push_back(packet),
                Side::Mobile => self.to_server.push_back(packet),
            }
            return;
        }
        let key = self.key;
        let taken_back = side == Side::Server
            && (data || tcp.flags.contains(TcpFlags::FIN))
            && self.accelerator.is_offloaded(&key);
        self.input(side, packet);
        if taken_back {
            self.past &= self.accelerator.is_offloaded(&key);
        } else if side == Side::Mobile && data && self.accelerator.offload(&key) {
            self.past = true;
            self.rests += 1;
        }
    }
    /// The client sends much, as its window allows, and again what was lost. What the server has sent before may wait for the
    /// machine meanwhile, while windows go past it.
    pub(super) fn client_uploads(&mut self, choices: &mut Choices<'_>) {
        let choice = choices.byte();
        let waits = self.past && choice & 32 != 0;
        let mut waiting = if waits { std::mem::take(&mut self.from_server) } else { VecDeque::new() };
        for _ in 0..choice % 32 {
            let off = self.client_heard;
            let len = 30_000;
            let mut tcp = self.header(Side::Mobile, off, self.have as u32, ACK, len);
            self.fill(&mut tcp, &[]);
            self.from_client.push_back(self.packet(Side::Mobile, tcp, off.into()));
            self.client_sent = self.client_sent.max(off + len);
            self.run_quietly(1);
        }
        waiting.append(&mut self.from_server);
        self.from_server = waiting;
    }
    /// The server's reader stands still, and the client probes its window with a byte that is not taken; from then on it stands
    /// behind that.
    pub(super) fn probe_server(&mut self) {
        if self.promises.misplaced {
            return;
        }
        self.server_window = 0;
        self.emit_server(self.acked.min(self.sent), 0, ACK);
        self.run_quietly(1);
        let mut tcp = self.header(Side::Mobile, self.client_sent, self.have as u32, ACK, 1);
        self.fill(&mut tcp, &[]);
        self.from_client.push_back(self.packet(Side::Mobile, tcp, self.client_sent.into()));
        self.client_sent += 1;
        self.run_quietly(1);
    }
    /// The links lose nothing more; the client's reader stands still, and the client sends until it hears that all of it has
    /// arrived.
    pub(super) fn finish_upload(&mut self) {
        // What is read at once is sent past the window, and some is on its way when the reader stops.
        for window in [30_000, 30_000, 30_000, 0] {
            self.window = window;
            self.server_sends(&mut Choices(&[7]));
            self.server_sends(&mut Choices(&[7]));
            self.run_quietly(1);
        }
        self.client_sent += 100;
        // Two timeouts, of half a minute at most, until it is believed what went around the machine.
        for round in 0..16_000 {
            if self.client_heard == self.client_sent {
                return;
            }
            if round % 50 == 0 {
                let off = self.client_heard.min(self.client_acked);
                let len = (self.client_sent - off).min(30_000);
                let mut tcp = self.header(Side::Mobile, off, self.have as u32, ACK, len);
                self.fill(&mut tcp, &[]);
                self.from_client.push_back(self.packet(Side::Mobile, tcp, off.into()));
            }
            self.run_quietly(1);
            self.accelerator.invariants();
        }
        let (heard, acked, sent) = (self.client_heard, self.client_acked, self.client_sent);
        let flows: Vec<_> = self.accelerator.flows().collect();
        panic!("the client hears of {heard}, the server has {acked} of {sent}: {flows:?}");
    }
}
