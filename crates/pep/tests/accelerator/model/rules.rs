//! Rules for every packet that the accelerator sends: the right edge towards the server does not retreat, a
//! TSval is at most the highest that its end has sent, and packets of connections that are not accelerated
//! are unchanged.

use super::*;

/// The state that the rules need.
#[derive(Default)]
pub(super) struct Rules {
    /// The last right edge that was advertised to the server while the connection was accelerated.
    pub edge: Option<i64>,
    /// An injected handshake may have replaced the connection, without its window scale.
    pub connection_replaced: bool,
    /// An injected segment within a window may have changed the client's sequence number as the machine knows
    /// it.
    pub client_moved: bool,
    /// The highest TSval from each side.
    newest: [Option<u32>; 2],
}

impl Model {
    pub(super) fn input(&mut self, side: Side, packet: Packet) {
        self.note(side, &packet);
        if self.accelerator.flow_count() == 0 {
            self.rules.edge = None; // bypassed packets advertise other windows
        }
        // A fragment may wait for the rest of its datagram.
        let passes = self.accelerator.flow_count() == 0 && !is_fragment(&packet);
        let bypassed = passes.then(|| packet.clone());
        self.accelerator.input(self.now, side, packet);
        if let Some(packet) = bypassed.filter(|_| self.accelerator.flow_count() == 0) {
            let passed =
                self.accelerator.poll_transmit(self.now).expect("a packet that is not accelerated passes");
            assert_eq!((passed.side, &passed.packet), (side.other(), &packet), "unchanged");
            assert!(self.accelerator.poll_transmit(self.now).is_none(), "no other packet");
            self.leave(passed);
        }
        self.collect();
    }

    /// In some runs, each third packet of an accelerated connection has IP options or arrives in fragments.
    pub(super) fn input_any(&mut self, side: Side, packet: Packet) {
        self.inputs = self.inputs.wrapping_add(1);
        let plain = packet.tcp_header().is_some() && !packet.ip.special && checksum_is_right(&packet);
        let special = self.special && self.inputs.is_multiple_of(3) && self.accelerator.flow_count() > 0;
        if !self.real || !special || !plain {
            return self.input(side, packet);
        }
        self.note(side, &packet);
        let parts = match self.inputs % 2 {
            0 => vec![with_option(&packet)],
            _ => fragmented(&packet, 300, self.inputs),
        };
        for part in parts {
            self.accelerator.input(self.now, side, part);
            self.collect();
        }
    }

    /// A packet arrives from `side`.
    pub(super) fn note(&mut self, side: Side, packet: &Packet) {
        let timestamps = packet.tcp_header().and_then(|tcp| tcp.options.timestamps);
        if let Some(timestamps) = timestamps.filter(|_| checksum_is_right(packet)) {
            let newest = &mut self.rules.newest[side as usize];
            if newest.is_none_or(|newest| (timestamps.val.wrapping_sub(newest) as i32) > 0) {
                *newest = Some(timestamps.val);
            }
        }
    }

    /// A packet is sent to `side`.
    pub(super) fn check(&mut self, side: Side, packet: &Packet) {
        let Some(tcp) = packet.tcp_header().filter(|_| checksum_is_right(packet)) else { return };
        if let Some(timestamps) = tcp.options.timestamps {
            let newest = self.rules.newest[side.other() as usize];
            assert!(
                newest.is_some_and(|newest| newest.wrapping_sub(timestamps.val) as i32 >= 0),
                "TSval {} of {newest:?} by {side:?}",
                timestamps.val
            );
        }
        // Other segments may be the client's own with unacceptable numbers, which pass unchanged.
        let plain = tcp.payload_len == 0 && tcp.flags.0 & !TcpFlags::PSH.with(TcpFlags::ECE).0 == ACK.0;
        if side == Side::Server && plain && !self.rules.connection_replaced {
            let ack = i64::from(tcp.ack.distance(SeqNumber(self.isn[0]) + self.received as u32))
                + self.received as i64;
            let edge = ack + (i64::from(tcp.window) << self.shift);
            let last = self.rules.edge.replace(edge).filter(|_| self.accelerator.flow_count() > 0);
            assert!(last.is_none_or(|last| last <= edge), "the right edge retreats from {last:?} to {edge}");
        }
    }
}
