//! PDCP PDUs: data PDUs, copies of them, and status reports (TS 36.323 §6.2, TS 38.323 §6.2).

use super::config::PdcpConfig;
use crate::rlc::nr::Sdu;
use paceline_net::Packet;
use std::sync::Arc;

/// Largest PDCP control PDU in bytes: that of an SDU (TS 38.323 §4.3.1).
const NR_MAX_CONTROL_BYTES: usize = 9000;
/// As [`NR_MAX_CONTROL_BYTES`], in LTE (TS 36.323 §4.3.1).
const LTE_MAX_CONTROL_BYTES: usize = 8188;

/// The content of a PDU.
#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    /// An SDU.
    Sdu(Packet),
    /// A copy of an SDU of so many bytes. Its packet was delivered, or waits in [`super::Shared`] for the
    /// first copy to arrive.
    Copy(u32),
    /// The rest of a PDU of so many bytes that RLC has delivered and not confirmed.
    Sent(u32),
    /// A control PDU: a status report about the other direction.
    Report(Arc<StatusReport>),
}

/// A PDCP PDU: an SDU with its number, or a control PDU.
#[derive(Clone, PartialEq, Debug)]
pub struct Pdu {
    /// COUNT: hyper frame number and sequence number; zero in a control PDU.
    pub count: u32,
    pub(super) header_bytes: u8,
    pub content: Content,
}

impl Pdu {
    /// Length in bytes with the headers of PDCP and SDAP.
    pub fn bytes(&self) -> u32 {
        let content = match &self.content {
            Content::Sdu(packet) => packet.len,
            Content::Copy(bytes) | Content::Sent(bytes) => *bytes,
            Content::Report(report) => report.bytes(),
        };
        content + u32::from(self.header_bytes)
    }
    /// Its packet, unless it is a copy or a control PDU.
    pub fn packet(&self) -> Option<&Packet> {
        match &self.content {
            Content::Sdu(packet) => Some(packet),
            Content::Copy(_) | Content::Sent(_) | Content::Report(_) => None,
        }
    }
    /// Whether it is a control PDU.
    pub fn is_control(&self) -> bool {
        matches!(self.content, Content::Report(_))
    }
    /// Bytes of the content.
    fn content_bytes(&self) -> u32 {
        self.bytes() - u32::from(self.header_bytes)
    }
    /// Takes the content, as RLC does that delivers the PDU.
    pub fn take(&mut self) -> Self {
        let sent = Content::Sent(self.content_bytes());
        Self { content: std::mem::replace(&mut self.content, sent), ..*self }
    }
    /// Takes the packet of an SDU; a copy of the PDU stays.
    pub(super) fn take_packet(&mut self) -> Option<Packet> {
        let copy = Content::Copy(self.content_bytes());
        match std::mem::replace(&mut self.content, copy) {
            Content::Sdu(packet) => Some(packet),
            other => {
                self.content = other;
                None
            }
        }
    }
}

impl Sdu for Pdu {
    fn take(&mut self) -> Self {
        Self::take(self)
    }
}

/// A status report of the receiving end (TS 36.323 §6.2.6, TS 38.323 §6.2.3.1): the SDUs that have arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatusReport {
    /// FMC: the first COUNT that is missing; FMS in LTE.
    pub first_missing: u32,
    /// The bitmap: whether each SDU from FMC + 1 on has arrived.
    pub arrived: Vec<bool>,
    /// Bytes before the bitmap.
    header_bytes: u8,
}

impl StatusReport {
    /// A report that is cut to the largest control PDU.
    pub fn new(config: PdcpConfig, first_missing: u32, arrived: impl Iterator<Item = bool>) -> Self {
        let (header_bytes, longest) = match config {
            PdcpConfig::Lte => (2, LTE_MAX_CONTROL_BYTES),
            PdcpConfig::Nr(_) => (5, NR_MAX_CONTROL_BYTES),
        };
        let most = 8 * (longest - usize::from(header_bytes));
        Self { first_missing, arrived: arrived.take(most).collect(), header_bytes }
    }
    /// Length in bytes.
    pub fn bytes(&self) -> u32 {
        u32::from(self.header_bytes) + self.arrived.len().div_ceil(8) as u32
    }
    /// Whether it confirms the SDU with this COUNT.
    pub fn confirms(&self, count: u32) -> bool {
        let offset = count.wrapping_sub(self.first_missing);
        match offset {
            0 => false,
            1..=0x7FFF_FFFF => self.arrived.get(offset as usize - 1) == Some(&true),
            _ => true,
        }
    }
    /// The bytes of NR's control PDU: D/C 0, PDU type 0, FMC, and the bitmap.
    pub fn nr_bytes(&self) -> Vec<u8> {
        let mut out = vec![0];
        out.extend(self.first_missing.to_be_bytes());
        let byte =
            |bits: &[bool]| (0..8).fold(0, |byte, at| byte << 1 | u8::from(bits.get(at) == Some(&true)));
        out.extend(self.arrived.chunks(8).map(byte));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::{NrPdcp, PdcpSn};
    use super::*;

    #[test]
    fn a_report_confirms_what_lies_below_its_first_missing_sdu_and_what_its_bitmap_says() {
        let nr = PdcpConfig::Nr(NrPdcp { sn: PdcpSn::Eighteen, sdap_header: false, t_reordering: None });
        let arrived = [true, false, true, true, false, false, true, true, true];
        let report = StatusReport::new(nr, 1000, arrived.into_iter());
        let confirmed: Vec<u32> = (997..1012).filter(|count| report.confirms(*count)).collect();
        assert_eq!(confirmed, [997, 998, 999, 1001, 1003, 1004, 1007, 1008, 1009]);
        // TS 38.323 §6.2.3.1: an octet with D/C and type, four with FMC, the bitmap from its first bit on.
        assert_eq!(report.nr_bytes(), [0, 0, 0, 3, 0xE8, 0b1011_0011, 0b1000_0000]);
        assert_eq!((report.bytes(), report.nr_bytes().len()), (7, 7));
        let lte = StatusReport::new(PdcpConfig::Lte, 7, std::iter::empty());
        assert_eq!((lte.bytes(), lte.confirms(6), lte.confirms(7), lte.confirms(8)), (2, true, false, false));
    }

    #[test]
    fn a_long_report_is_cut_to_the_largest_control_pdu() {
        let nr = PdcpConfig::Nr(NrPdcp { sn: PdcpSn::Eighteen, sdap_header: false, t_reordering: None });
        let report = StatusReport::new(nr, 0, std::iter::repeat_n(true, 100_000));
        assert_eq!(
            (report.bytes(), report.confirms(8 * 8995), report.confirms(8 * 8995 + 1)),
            (9000, true, false)
        );
    }
}
