//! Packets of the server that wait, at the end of a rest, for what they have overtaken. Hardly a connection ever has any:
//! what it holds then is a pointer.

use paceline_net::{Packet, SeqNumber};

/// More of them tell of a loss, as duplicates do in RFC 5681.
const ROOM: usize = 3;

/// In the order of their numbers.
#[derive(Debug, Default)]
pub(in crate::accelerator) struct Ahead(Option<Box<[Option<Packet>; ROOM]>>);

impl Ahead {
    pub fn is_full(&self) -> bool {
        self.iter().count() == ROOM
    }
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.0.iter().flat_map(|packets| packets.iter().flatten())
    }
    /// Of a packet for which there is room.
    pub fn insert(&mut self, packet: Packet) {
        debug_assert!(!self.is_full(), "there is room");
        let place = self.iter().filter(|other| seq(other) < seq(&packet)).count();
        let packets = self.0.get_or_insert_default();
        packets[place..].rotate_right(1);
        packets[place] = Some(packet);
    }
    pub fn take(&mut self) -> impl Iterator<Item = Packet> + use<> {
        self.0.take().into_iter().flat_map(|packets| packets.into_iter().flatten())
    }
}

fn seq(packet: &Packet) -> Option<SeqNumber> {
    packet.tcp_header().map(|tcp| tcp.seq)
}
