//! The packets in a transport block, for a picture of their way.

use crate::mac::pdu as mac;
use crate::pdcp;
use crate::rlc::{self, Rlc};
use paceline_net::Packet;

/// A packet of which a block has bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Carried {
    /// Its PDCP COUNT.
    pub count: u32,
    /// The packet; in UM of LTE only in the block with its last byte.
    pub packet: Option<Packet>,
}

/// The packets in a MAC PDU. An AM PDU of LTE states positions in a stream, and names no packet.
pub(super) fn of(pdu: &mac::Pdu, rlc: &Rlc) -> Vec<Carried> {
    let sdu = |pdu: &pdcp::Pdu| Carried { count: pdu.count, packet: pdu.packet().cloned() };
    let numbered = |number: u64| rlc.nr_sdu(number).0.map(sdu);
    let mut all = Vec::new();
    for pdu in &pdu.sdus {
        match pdu {
            rlc::Pdu::Um(pdu) => all.extend(pdu.elements.iter().map(|element| Carried {
                count: element.count,
                packet: element.last.as_ref().and_then(pdcp::Pdu::packet).cloned(),
            })),
            rlc::Pdu::NrUm(block) => all.extend(block.run.pdus().filter_map(|part| numbered(part.0))),
            rlc::Pdu::NrAm(block) => all.extend(block.pdus().filter_map(|part| numbered(part.0))),
            rlc::Pdu::Am(_) | rlc::Pdu::Status(_) | rlc::Pdu::NrStatus(_) => {}
        }
    }
    all
}
