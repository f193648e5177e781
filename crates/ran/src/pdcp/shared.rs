//! The packets of SDUs of which several copies travel, until the first copy arrives or the last is lost.

use super::pdu::{Content, Pdu};
use paceline_net::Packet;
use std::collections::BTreeMap;

/// Packets by COUNT, each with the number of its copies.
#[derive(Clone, Debug, Default)]
pub struct Shared(BTreeMap<u32, (Packet, u32)>);

impl Shared {
    /// Number of packets held.
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }
    /// Whether the packet of this SDU is held.
    pub fn has(&self, count: u32) -> bool {
        !self.0.is_empty() && self.0.contains_key(&count)
    }
    /// Makes a PDU a copy and returns another copy.
    pub fn share(&mut self, pdu: &mut Pdu) -> Pdu {
        let count = pdu.count;
        if let Some(packet) = pdu.take_packet() {
            self.0.insert(count, (packet, 2));
        } else if matches!(pdu.content, Content::Copy(_))
            && let Some((_, copies)) = self.0.get_mut(&count)
        {
            *copies += 1;
        }
        pdu.clone()
    }
    /// A PDU arrives: its packet, unless another copy has arrived before.
    pub fn arrive(&mut self, pdu: Pdu) -> Option<Packet> {
        match pdu.content {
            Content::Sdu(packet) => Some(packet),
            Content::Copy(_) | Content::Sent(_) => self.0.remove(&pdu.count).map(|(packet, _)| packet),
            Content::Report(_) => None,
        }
    }
    /// A PDU is lost or not needed any more: its packet, if no other copy is left and none has arrived.
    pub fn lose(&mut self, pdu: Pdu) -> Option<Packet> {
        match pdu.content {
            Content::Sdu(packet) => Some(packet),
            Content::Copy(_) => {
                let (_, copies) = self.0.get_mut(&pdu.count)?;
                *copies -= 1;
                let last = *copies == 0;
                last.then(|| self.0.remove(&pdu.count)).flatten().map(|(packet, _)| packet)
            }
            Content::Sent(_) | Content::Report(_) => None,
        }
    }
}
