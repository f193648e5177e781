//! What must hold of every packet that leaves, whatever came in: the right edge that the server sees does not retreat, a
//! TSval is one that its end has sent, and of connections that are not accelerated nothing is changed.

use super::*;

/// What the ends were told, and what they have said.
#[derive(Default)]
pub(super) struct Promises {
    /// Right edge of what the server may send, as it was told last while the connection was accelerated.
    pub edge: Option<i64>,
    /// A stranger's handshake may have taken the connection's place, without its window scale.
    pub replaced: bool,
    /// A stranger's segment may have been believed where the client stands: it was within a window of that.
    pub misplaced: bool,
    /// The highest TSval from each side.
    newest: [Option<u32>; 2],
}

impl Model {
    pub(super) fn input(&mut self, side: Side, packet: Packet) {
        self.note(side, &packet);
        if self.accelerator.flow_count() == 0 {
            self.promises.edge = None; // what passes may tell another, and be of strangers
        }
        let bypassed = (self.accelerator.flow_count() == 0).then(|| packet.clone());
        self.accelerator.input(self.now, side, packet);
        if let Some(packet) = bypassed.filter(|_| self.accelerator.flow_count() == 0) {
            let passed = self.accelerator.poll_transmit(self.now).expect("what is not accelerated passes");
            assert_eq!((passed.side, &passed.packet), (side.other(), &packet), "as it came");
            assert!(self.accelerator.poll_transmit(self.now).is_none(), "and alone");
            self.leave(passed);
        }
        self.collect();
    }

    /// A packet comes from `side`.
    pub(super) fn note(&mut self, side: Side, packet: &Packet) {
        let timestamps = packet.tcp_header().and_then(|tcp| tcp.options.timestamps);
        if let Some(timestamps) = timestamps.filter(|_| checksum_is_right(packet)) {
            let newest = &mut self.promises.newest[side as usize];
            if newest.is_none_or(|newest| (timestamps.val.wrapping_sub(newest) as i32) > 0) {
                *newest = Some(timestamps.val);
            }
        }
    }

    /// A packet leaves by `side`.
    pub(super) fn check(&mut self, side: Side, packet: &Packet) {
        let Some(tcp) = packet.tcp_header().filter(|_| checksum_is_right(packet)) else { return };
        if let Some(timestamps) = tcp.options.timestamps {
            let newest = self.promises.newest[side.other() as usize];
            assert!(
                newest.is_some_and(|newest| newest.wrapping_sub(timestamps.val) as i32 >= 0),
                "TSval {} of {newest:?} by {side:?}",
                timestamps.val
            );
        }
        // Others may be the client's own, with numbers that an endpoint would refuse: those pass as they are.
        let plain = tcp.payload_len == 0 && tcp.flags.0 & !TcpFlags::PSH.with(TcpFlags::ECE).0 == ACK.0;
        if side == Side::Server && plain && !self.promises.replaced {
            let ack =
                i64::from(tcp.ack.distance(SeqNumber(self.isn[0]) + self.have as u32)) + self.have as i64;
            let edge = ack + (i64::from(tcp.window) << self.shift);
            let told = self.promises.edge.replace(edge).filter(|_| self.accelerator.flow_count() > 0);
            assert!(told.is_none_or(|told| told <= edge), "the right edge goes back from {told:?} to {edge}");
        }
    }
}
