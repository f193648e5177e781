//! The bytes of MAC PDUs of NR, for captures (TS 38.321 §6.1, TS 38.322 §6.2, TS 38.323 §6.2, TS 37.324
//! §6.2).
//!
//! The cell counts headers and does not build them; here they are built, so that other programs can check
//! them. Payload is zeros, and so is an SDU that AM sends again after its delivery: nobody keeps its packet.

use super::buffer_report::BufferReport;
use super::pdu::Pdu as MacPdu;
use crate::duplex::Direction;
use crate::pdcp::{self, Content, NrPdcp, PdcpSn};
use crate::rlc::nr::{self, SnLength, headers::longest_pdu, ranges::END};
use crate::rlc::{self, Rlc};
use paceline_net::wire;

/// Logical channel of the bearer. Chosen: the first after those of SRB1 to SRB3 (TS 38.331 §9.2.1).
const LCID: u8 = 4;
// Logical channel IDs of control elements in the uplink, and of padding (TS 38.321 Table 6.2.1-2).
const LCID_HEADROOM: u8 = 57;
const LCID_SHORT_BSR: u8 = 61;
const LCID_LONG_BSR: u8 = 62;
const LCID_PADDING: u8 = 63;
/// Bytes of a padding sub-PDU at most. Chosen: captures can cut long padding.
const PADDING_BYTES: u32 = 8192;
/// QoS flow of all packets. Chosen: 1, any value of 6 bits would do.
const QFI: u8 = 1;

/// The bytes of a MAC PDU.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EncodedPdu {
    pub bytes: Vec<u8>,
    /// The end of each sub-PDU in `bytes`.
    pub ends: Vec<usize>,
}

impl EncodedPdu {
    fn add(&mut self, sub_pdu: &[u8]) {
        self.bytes.extend(sub_pdu);
        self.ends.push(self.bytes.len());
    }
    fn append(&mut self, later: &Self) {
        let len = self.bytes.len();
        self.bytes.extend(&later.bytes);
        self.ends.extend(later.ends.iter().map(|end| len + end));
    }
}

/// The bytes of a block: `pdu` was filled by the end whose data are in `data`, in `direction`.
pub fn encode(pdu: &MacPdu, data: &Rlc, pdcp: NrPdcp, direction: Direction) -> EncodedPdu {
    let mut out = EncodedPdu::default();
    let length = data.nr_sn().unwrap_or(SnLength::Long);
    for element in &pdu.sdus {
        match element {
            rlc::Pdu::NrStatus(status) => {
                let bytes = status_bytes(status, length);
                out.add(&[subheader(LCID, bytes.len()), bytes].concat());
            }
            rlc::Pdu::NrUm(block) => {
                let mut sn = block.sn;
                let (mut first, mut others) = (None, EncodedPdu::default());
                for part in block.run.pdus() {
                    let header = um_header(length, sn, part.1, part.2);
                    sn += u64::from(part.1 > 0 || part.2 < END);
                    match data.nr_sdu(part.0) {
                        (None, _) => first = Some((header, part)),
                        sdu => rlc_pdu(&mut others, header, &sdu_bytes(sdu, pdcp, direction), part),
                    }
                }
                // HARQ lost another segment of the block's first SDU, which is gone: the rest is its length.
                if let Some((header, part)) = first {
                    let data = longest_pdu(block.bytes - others.bytes.len() as u32) - header.len() as u32;
                    rlc_pdu(&mut out, header, &vec![0; (part.1 + data) as usize], part);
                }
                out.append(&others);
            }
            rlc::Pdu::NrAm(block) => {
                let (low, high) = block.polls.unwrap_or((u64::MAX, u64::MAX));
                for part in block.pdus() {
                    let header = am_header(length, part, part.0 == low || part.0 == high);
                    rlc_pdu(&mut out, header, &sdu_bytes(data.nr_sdu(part.0), pdcp, direction), part);
                }
            }
            rlc::Pdu::Um(_) | rlc::Pdu::Am(_) | rlc::Pdu::Status(_) => {}
        }
    }
    control_elements(&mut out, pdu);
    out
}

fn control_elements(out: &mut EncodedPdu, pdu: &MacPdu) {
    match pdu.bsr {
        Some(BufferReport::NrShort(index)) => out.add(&[LCID_SHORT_BSR, index & 0x1F]),
        Some(BufferReport::NrLong(index)) => out.add(&[LCID_LONG_BSR, 2, 1, index]),
        Some(BufferReport::Lte(_)) | None => {}
    }
    if let Some(headroom) = pdu.headroom {
        out.add(&[LCID_HEADROOM, headroom.index & 0x3F, 0]);
    }
    let mut left = pdu.padding;
    while left > 0 {
        let mut padding = vec![0; left.min(PADDING_BYTES) as usize];
        padding[0] = LCID_PADDING;
        left -= padding.len() as u32;
        out.add(&padding);
    }
}

/// A MAC sub-header with an L field (TS 38.321 §6.1.2).
fn subheader(lcid: u8, len: usize) -> Vec<u8> {
    match u8::try_from(len) {
        Ok(len) => vec![lcid, len],
        Err(_) => vec![0x40 | lcid, (len >> 8) as u8, len as u8],
    }
}

/// Adds an RLC PDU with the bytes of `part` of an SDU.
fn rlc_pdu(out: &mut EncodedPdu, header: Vec<u8>, sdu: &[u8], (_, from, to): (u64, u32, u32)) {
    let data = &sdu[from as usize..(to as usize).min(sdu.len())];
    out.add(&[&subheader(LCID, header.len() + data.len()), &header, data].concat());
}

/// SI: all bytes 0, first segment 1, last segment 2, another segment 3 (TS 38.322 §6.2.3.4).
fn segmentation(from: u32, to: u32) -> u8 {
    match (from > 0, to < END) {
        (false, false) => 0,
        (false, true) => 1,
        (true, false) => 2,
        (true, true) => 3,
    }
}
fn offset(header: &mut Vec<u8>, from: u32) {
    if from > 0 {
        header.extend((from as u16).to_be_bytes());
    }
}
/// The header of a UMD PDU (TS 38.322 §6.2.2.3).
fn um_header(length: SnLength, sn: u64, from: u32, to: u32) -> Vec<u8> {
    let si = segmentation(from, to) << 6;
    let mut header = match (si, length) {
        (0, _) => vec![0],
        (_, SnLength::Short) => vec![si | (sn as u8 & 0x3F)],
        (_, SnLength::Long) => vec![si | ((sn >> 8) as u8 & 0x0F), sn as u8],
    };
    offset(&mut header, from);
    header
}
/// The header of an AMD PDU (TS 38.322 §6.2.2.4).
fn am_header(length: SnLength, (sn, from, to): (u64, u32, u32), poll: bool) -> Vec<u8> {
    let first = 0x80 | u8::from(poll) << 6 | segmentation(from, to) << 4;
    let mut header = match length {
        SnLength::Short => vec![first | ((sn >> 8) as u8 & 0x0F), sn as u8],
        SnLength::Long => vec![first | ((sn >> 16) as u8 & 0x03), (sn >> 8) as u8, sn as u8],
    };
    offset(&mut header, from);
    header
}

/// A STATUS PDU (TS 38.322 §6.2.2.5).
fn status_bytes(status: &nr::Status, length: SnLength) -> Vec<u8> {
    let (ack, e1) = (status.ack_sn, u8::from(!status.nacks.is_empty()));
    let mut out = match length {
        SnLength::Short => vec![(ack >> 8) as u8 & 0x0F, ack as u8, e1 << 7],
        SnLength::Long => vec![(ack >> 14) as u8 & 0x0F, (ack >> 6) as u8, (ack as u8) << 2 | e1 << 1],
    };
    for (at, nack) in status.nacks.iter().enumerate() {
        let (sn, another) = (nack.first, u8::from(at + 1 < status.nacks.len()));
        let (offsets, range) = (nack.from > 0 || nack.to < END, nack.count > 1);
        let flags = another << 2 | u8::from(offsets) << 1 | u8::from(range);
        match length {
            SnLength::Short => out.extend([(sn >> 4) as u8, (sn as u8) << 4 | flags << 1]),
            SnLength::Long => out.extend([(sn >> 10) as u8, (sn >> 2) as u8, (sn as u8) << 6 | flags << 3]),
        }
        if offsets {
            let end = if nack.to == END { u16::MAX } else { (nack.to - 1) as u16 };
            out.extend((nack.from as u16).to_be_bytes());
            out.extend(end.to_be_bytes());
        }
        if range {
            out.push(nack.count);
        }
    }
    out
}

/// A PDCP PDU with its headers, and zeros as far as it is not known.
fn sdu_bytes((pdu, len): (Option<&pdcp::Pdu>, u32), pdcp: NrPdcp, direction: Direction) -> Vec<u8> {
    let mut out = Vec::with_capacity(len as usize);
    if let Some(pdcp::Pdu { content: Content::Report(report), .. }) = pdu {
        out.extend(report.nr_bytes());
    } else if let Some(pdu @ pdcp::Pdu { count, .. }) = pdu {
        match pdcp.sn {
            PdcpSn::Twelve => out.extend([0x80 | ((count >> 8) as u8 & 0x0F), *count as u8]),
            PdcpSn::Eighteen => {
                out.extend([0x80 | ((count >> 16) as u8 & 0x03), (count >> 8) as u8, *count as u8]);
            }
        }
        if pdcp.sdap_header {
            out.push(if direction == Direction::Up { 0x80 | QFI } else { QFI });
        }
        out.extend(pdu.packet().map(wire::emit).unwrap_or_default());
    }
    out.resize(len as usize, 0);
    out
}

#[cfg(test)]
#[path = "nr_encode_tests.rs"]
mod tests;
