//! NR blocks as they are on the air, for captures: each in its first transmission, as UDP payloads that
//! Wireshark dissects.

use crate::duplex::Direction;
use crate::mac::nr_encode::EncodedPdu;
use crate::slot::{Slot, SlotClock};
use paceline_net::Instant;

/// Milliseconds of a frame (TS 38.211 §4.3.1).
const FRAME_MS: u64 = 10;
/// Number of frames until their numbers repeat (TS 38.211 §4.3.1).
const FRAMES: u64 = 1024;
// Values of Wireshark's format "MAC-NR over UDP" (packet-mac-nr.h).
const RADIO_FDD: u8 = 1;
const RADIO_TDD: u8 = 2;
const UPLINK: u8 = 0;
const DOWNLINK: u8 = 1;
const C_RNTI: u8 = 3;
const TAG_PAYLOAD: u8 = 1;
const TAG_RNTI: u8 = 2;
const TAG_STATION: u8 = 3;
const TAG_PROCESS: u8 = 6;
const TAG_SLOT: u8 = 7;
/// Bytes of a block in one datagram at most, unless a single sub-PDU is longer. Chosen: half of the 65,507
/// bytes that UDP over IPv4 carries; a sub-PDU has up to 9,009, since PDCP's SDUs have up to 9,000 (TS 38.323
/// §4.3.1).
const MAX_DATAGRAM_BYTES: usize = 32_768;
/// Sub-PDUs in one datagram at most. Chosen: Wireshark shows up to 500 protocol layers of a frame
/// (gui_max_tree_depth), and a sub-PDU with a TCP segment has five.
const MAX_DATAGRAM_SUB_PDUS: usize = 64;

/// Receives each captured block in the slot of its transmission.
pub type BlockSink = Box<dyn FnMut(CapturedBlock) + Send>;

/// A transport block in its first transmission.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedBlock {
    /// The station at one end.
    pub station: usize,
    /// Its direction.
    pub direction: Direction,
    /// The slot of the transmission.
    pub slot: Slot,
    /// The HARQ process.
    pub process: usize,
    /// The clock of the cell's slots.
    pub(crate) clock: SlotClock,
    /// Whether the cell is in unpaired spectrum.
    pub(crate) tdd: bool,
    pub(crate) pdu: EncodedPdu,
}

impl CapturedBlock {
    /// The time of the transmission.
    pub fn at(&self) -> Instant {
        self.clock.start(self.slot)
    }
    /// Payloads of UDP datagrams that Wireshark's heuristic `mac_nr_udp` dissects. A block that is longer
    /// than a datagram is cut between MAC sub-PDUs; its parts have the same slot and process.
    pub fn mac_nr_over_udp(&self) -> impl Iterator<Item = Vec<u8>> {
        let header = self.header();
        self.parts().map(move |part| [&header, part].concat())
    }
    /// The block in parts of whole sub-PDUs.
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let EncodedPdu { bytes, ends } = &self.pdu;
        let mut start = 0;
        std::iter::from_fn(move || {
            let first = ends.partition_point(|end| *end <= start);
            let fitting = ends.partition_point(|end| *end <= start + MAX_DATAGRAM_BYTES);
            let count = (fitting - first).clamp(1, MAX_DATAGRAM_SUB_PDUS);
            let end = *ends.get(first + count - 1)?;
            let part = &bytes[start..end];
            start = end;
            Some(part)
        })
    }
    fn header(&self) -> Vec<u8> {
        let per_frame = FRAME_MS << self.clock.numerology().mu();
        let station = (self.station + 1) as u16;
        let direction = if self.direction == Direction::Up { UPLINK } else { DOWNLINK };
        let mut out = b"mac-nr".to_vec();
        out.extend([if self.tdd { RADIO_TDD } else { RADIO_FDD }, direction, C_RNTI]);
        for tag in [TAG_RNTI, TAG_STATION] {
            out.push(tag);
            out.extend(station.to_be_bytes());
        }
        out.extend([TAG_PROCESS, self.process as u8, TAG_SLOT]);
        out.extend(((self.slot.0 / per_frame % FRAMES) as u16).to_be_bytes());
        out.extend(((self.slot.0 % per_frame) as u16).to_be_bytes());
        out.push(TAG_PAYLOAD);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_block_is_cut_between_sub_pdus() {
        let parts = |lens: &[usize]| {
            let mut pdu = EncodedPdu::default();
            for (at, len) in lens.iter().enumerate() {
                pdu.bytes.resize(pdu.bytes.len() + len, at as u8);
                pdu.ends.push(pdu.bytes.len());
            }
            let (slot, clock) = (Slot(7), SlotClock::default());
            let (station, process, direction) = (2, 5, Direction::Down);
            let block = CapturedBlock { station, direction, slot, process, clock, tdd: true, pdu };
            let header = block.header();
            let parts: Vec<Vec<u8>> = block.mac_nr_over_udp().collect();
            assert!(parts.iter().all(|part| part.starts_with(&header)), "{header:?}");
            let bytes = parts.iter().flat_map(|part| &part[header.len()..]).copied();
            assert!(bytes.eq(block.pdu.bytes.iter().copied()), "no byte is lost");
            parts.iter().map(|part| part.len() - header.len()).collect::<Vec<_>>()
        };
        assert_eq!(parts(&[]), [0; 0]);
        assert_eq!(parts(&[1500, 1500, 3]), [3003]);
        // 21 sub-PDUs of 1,507 bytes have 31,647.
        assert_eq!(parts(&[1507; 98]), [31_647, 31_647, 31_647, 31_647, 14 * 1507]);
        assert_eq!(parts(&[9009, 40_000, 7, 9009]), [9009, 40_000, 9016]);
        assert_eq!(parts(&[16_384, 16_384, 1]), [32_768, 1]);
        assert_eq!(parts(&[57; 130]), [64 * 57, 64 * 57, 2 * 57]);
    }
}
