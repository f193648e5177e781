//! Reorder hold queue: data segments of the server that arrive before the segment which ends the offload of
//! an upload. Few connections ever have one, so an empty queue costs one pointer.

use paceline_net::{Packet, SeqNumber};

/// Segments in the queue at most. More of them indicate a loss, as three duplicate ACKs do (RFC 5681, section
/// 3.2).
const CAPACITY: usize = 3;

/// Segments in the order of their sequence numbers.
#[derive(Debug, Default)]
pub(in crate::accelerator) struct ReorderHold(Option<Box<[Option<Packet>; CAPACITY]>>);

impl ReorderHold {
    pub fn is_full(&self) -> bool {
        self.iter().count() == CAPACITY
    }
    /// Bytes of the segments, headers included.
    pub fn bytes(&self) -> u64 {
        self.iter().map(|packet| u64::from(packet.len)).sum()
    }
    fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.0.iter().flat_map(|packets| packets.iter().flatten())
    }
    /// The queue must not be full.
    pub fn insert(&mut self, packet: Packet) {
        debug_assert!(!self.is_full(), "the queue has room");
        let place = self.iter().filter(|other| seq(other) < seq(&packet)).count();
        let packets = self.0.get_or_insert_default();
        packets[place..].rotate_right(1);
        packets[place] = Some(packet);
    }
    /// Empties the queue.
    pub fn take(&mut self) -> impl Iterator<Item = Packet> + use<> {
        self.0.take().into_iter().flat_map(|packets| packets.into_iter().flatten())
    }
}

fn seq(packet: &Packet) -> Option<SeqNumber> {
    packet.tcp_header().map(|tcp| tcp.seq)
}
