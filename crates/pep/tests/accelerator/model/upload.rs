//! Offloaded uploads. As a driver does, the model decides by the packet's flags and by the machine's answer
//! which packets bypass the machine.

use super::*;

impl Model {
    /// A packet from `side` arrives at the driver.
    pub(super) fn arrive(&mut self, side: Side, packet: Packet) {
        let Some(tcp) = packet.tcp_header().copied() else { return self.input(side, packet) };
        let begins_or_ends = TcpFlags::SYN.with(FIN).with(RST).with(TcpFlags::URG).0 & !ACK.0;
        let data = tcp.payload_len > 0;
        if self.offloaded && tcp.flags.0 & begins_or_ends == 0 && (side == Side::Mobile || !data) {
            self.note(side, &packet);
            self.rules.edge = None; // the client advertises its own window
            match side {
                Side::Server => self.to_client.push_back(packet),
                Side::Mobile => self.to_server.push_back(packet),
            }
            return;
        }
        let key = self.key;
        let ends_offload = side == Side::Server
            && (data || tcp.flags.contains(TcpFlags::FIN))
            && self.accelerator.is_offloaded(&key);
        self.input_any(side, packet);
        if ends_offload {
            self.offloaded &= self.accelerator.is_offloaded(&key);
        } else if side == Side::Mobile && data && self.accelerator.offload(&key) {
            self.offloaded = true;
            self.offloads += 1;
        }
    }
    /// The client sends as much as its window allows, and retransmits. The server's packets may be delayed
    /// before the machine while several windows bypass it.
    pub(super) fn client_uploads(&mut self, choices: &mut Choices<'_>) {
        let choice = choices.byte();
        let waits = self.offloaded && choice & 32 != 0;
        let mut waiting = if waits { std::mem::take(&mut self.from_server) } else { VecDeque::new() };
        for _ in 0..choice % 32 {
            let off = self.client_una;
            let len = 30_000;
            let mut tcp = self.header(Side::Mobile, off, self.received as u32, ACK, len);
            self.fill(&mut tcp, &[]);
            self.from_client.push_back(self.packet(Side::Mobile, tcp, off.into()));
            self.client_sent = self.client_sent.max(off + len);
            self.run_without_faults(1);
        }
        waiting.append(&mut self.from_server);
        self.from_server = waiting;
    }
    /// The server's window is closed. The client probes it with a byte that the server drops; the client's
    /// next sequence number is after that byte.
    pub(super) fn probe_server(&mut self) {
        if self.rules.client_moved {
            return;
        }
        self.server_window = 0;
        self.emit_server(self.acked.min(self.sent), 0, ACK);
        self.run_without_faults(1);
        let mut tcp = self.header(Side::Mobile, self.client_sent, self.received as u32, ACK, 1);
        self.fill(&mut tcp, &[]);
        self.from_client.push_back(self.packet(Side::Mobile, tcp, self.client_sent.into()));
        self.client_sent += 1;
        self.run_without_faults(1);
    }
    /// Without further faults, and with a client that reads nothing, the client sends until all its data is
    /// acknowledged.
    pub(super) fn finish_upload(&mut self) {
        // While the client reads, the accelerator sends past the window; some of it is in flight when the
        // client stops.
        for window in [30_000, 30_000, 30_000, 0] {
            self.window = window;
            self.server_sends(&mut Choices(&[7]));
            self.server_sends(&mut Choices(&[7]));
            self.run_without_faults(1);
        }
        self.client_sent += 100;
        // Two timeouts of at most 30 s pass before the machine accepts an ACK of data that bypassed it.
        for round in 0..16_000 {
            if self.client_una == self.client_sent {
                return;
            }
            if round % 50 == 0 {
                let off = self.client_una.min(self.client_acked);
                let len = (self.client_sent - off).min(30_000);
                let mut tcp = self.header(Side::Mobile, off, self.received as u32, ACK, len);
                self.fill(&mut tcp, &[]);
                self.from_client.push_back(self.packet(Side::Mobile, tcp, off.into()));
            }
            self.run_without_faults(1);
            self.accelerator.invariants();
        }
        let (una, acked, sent) = (self.client_una, self.client_acked, self.client_sent);
        let flows: Vec<_> = self.accelerator.flows().collect();
        panic!("the client has ACKs of {una}, the server has {acked} of {sent} bytes: {flows:?}");
    }
}
