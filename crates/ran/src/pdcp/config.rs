//! Parameters of PDCP.

use crate::slot::SlotSpan;

/// Bytes of LTE's header with a 12-bit sequence number (TS 36.323 §6.2.4).
const LTE_HEADER_BYTES: u8 = 2;
/// Bytes of the SDAP header, downlink or uplink (TS 37.324 §6.2.2).
const SDAP_HEADER_BYTES: u8 = 1;

/// Length of NR's sequence numbers (`pdcp-SN-Size` of TS 38.331).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PdcpSn {
    /// 12 bits: a header of 2 bytes (TS 38.323 §6.2.2.2).
    Twelve,
    /// 18 bits: a header of 3 bytes (TS 38.323 §6.2.2.3).
    Eighteen,
}

/// Parameters of NR's PDCP (`PDCP-Config` of TS 38.331) and SDAP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NrPdcp {
    /// Length of sequence numbers.
    pub sn: PdcpSn,
    /// Whether SDUs have an SDAP header.
    pub sdap_header: bool,
    /// t-Reordering; none for infinity.
    pub t_reordering: Option<SlotSpan>,
}

/// PDCP of a bearer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PdcpConfig {
    /// That of LTE, with sequence numbers of 12 bits.
    #[default]
    Lte,
    /// That of NR.
    Nr(NrPdcp),
}

impl PdcpConfig {
    /// Bytes that PDCP and SDAP add to an IP packet.
    pub const fn header_bytes(self) -> u8 {
        match self {
            Self::Lte => LTE_HEADER_BYTES,
            Self::Nr(NrPdcp { sn, sdap_header, .. }) => {
                let pdcp = match sn {
                    PdcpSn::Twelve => 2,
                    PdcpSn::Eighteen => 3,
                };
                pdcp + if sdap_header { SDAP_HEADER_BYTES } else { 0 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_the_lengths_of_the_standard() {
        let nr =
            |sn, sdap_header| PdcpConfig::Nr(NrPdcp { sn, sdap_header, t_reordering: None }).header_bytes();
        assert_eq!(PdcpConfig::default().header_bytes(), 2);
        assert_eq!([PdcpSn::Twelve, PdcpSn::Eighteen].map(|sn| nr(sn, false)), [2, 3]);
        assert_eq!([PdcpSn::Twelve, PdcpSn::Eighteen].map(|sn| nr(sn, true)), [3, 4]);
    }
}
