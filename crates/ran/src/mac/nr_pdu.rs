//! Sizes in MAC PDUs of NR (TS 38.321 §6.1.2 and §6.1.3).
//!
//! Each RLC PDU has a MAC sub-header of 2 or 3 bytes; a sub-header of 1 byte precedes a control element of
//! fixed size or the padding. Headers are counted in [`crate::rlc::nr`] and never built.

use super::buffer_report::BufferReport;
use crate::pdcp::Waiting;
use crate::rlc::Rlc;
use crate::rlc::nr::headers::{LONG_SUBHEADER_BYTES, subheader};
use crate::rlc::nr::{Headers, runs};

/// Single entry PHR with its sub-header, in bytes (TS 38.321 §6.1.3.8).
pub const HEADROOM_BYTES: u32 = 3;
/// Short BSR with its sub-header, in bytes (TS 38.321 §6.1.3.1).
const SHORT_BSR_BYTES: u32 = 2;
/// Long BSR of one logical channel group in bytes: a sub-header of 2, the bit map of groups and one buffer
/// size (TS 38.321 §6.1.3.1).
const LONG_BSR_BYTES: u32 = 4;

/// Largest RLC header and MAC sub-header of an SDU that is not segmented further, in bytes.
pub fn sdu_bytes(headers: Headers) -> u32 {
    headers.later.max(headers.complete) + LONG_SUBHEADER_BYTES
}
/// Bytes of a STATUS PDU of `len` bytes with its sub-header; zero for none.
pub fn status_bytes(len: u32) -> u32 {
    if len == 0 { 0 } else { len + subheader(len) }
}
/// Size in bytes of a transport block for `data` bytes in about `packets` packets, with all headers.
pub fn block_bytes_for(headers: Headers, data: u64, packets: u64) -> u64 {
    runs::block_bytes_for(headers, data, packets)
}
/// Size in bytes of a transport block that would carry all data of one end; an SDU that is retransmitted may
/// lack several ranges, of which one is assumed.
pub fn block_bytes_needed(headers: Headers, rlc: &Rlc, reverse: &Rlc, above: Waiting) -> u64 {
    let (data, status) = (rlc.available(above), u64::from(status_bytes(reverse.status_len())));
    if data == 0 {
        return status;
    }
    let sdus = above.packets + rlc.partial_sdus() + u64::from(rlc.retransmissions_pending());
    status + block_bytes_for(headers, data, sdus)
}
/// The BSR that `padding` bytes hold, of a buffer of `available` bytes, and its size in bytes (TS 38.321
/// §5.4.5): with one logical channel group the long one where it fits.
pub fn padding_report(padding: u32, available: u64) -> Option<(BufferReport, u32)> {
    match padding {
        LONG_BSR_BYTES.. => Some((BufferReport::nr_long(available), LONG_BSR_BYTES)),
        SHORT_BSR_BYTES.. => Some((BufferReport::nr_short(available), SHORT_BSR_BYTES)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::pdu::{BsrDue, Sender, block_bytes_needed};
    use super::*;
    use crate::RlcConfig;
    use crate::mac::power_headroom::HeadroomReport;
    use crate::pdcp::{self, NrPdcp, PdcpConfig, PdcpSn};
    use crate::rlc::{self, nr};
    use crate::slot::{Slot, SlotClock, SlotSpan};
    use paceline_net::{Bytes, DropTail, Instant, Packet, SduQueue, TcpHeader};

    /// A direction with `packets` packets of 1503 bytes with their PDCP headers in the buffer.
    struct End {
        rlc: Rlc,
        tx: pdcp::Tx,
        buffer: DropTail,
    }

    impl End {
        fn new(mode: RlcConfig, packets: u32) -> Self {
            let address = "198.18.0.1".parse().unwrap();
            let mut buffer = DropTail::new(Bytes(1 << 30));
            let tcp = TcpHeader { payload_len: 1460, ..TcpHeader::default() };
            (0..packets).for_each(|_| buffer.push(Instant::ZERO, Packet::tcp(address, address, tcp)));
            let pdcp = NrPdcp { sn: PdcpSn::Eighteen, sdap_header: false, t_reordering: None };
            let tx = pdcp::Tx::new(PdcpConfig::Nr(pdcp));
            Self { rlc: Rlc::new(mode, SlotSpan(0)), tx, buffer }
        }
        fn sender<'a>(&'a mut self, reverse: &'a mut Rlc) -> Sender<'a> {
            let source = pdcp::Source {
                tx: &mut self.tx,
                buffer: &mut self.buffer,
                leg: pdcp::Leg::Main,
                now: Instant::ZERO,
            };
            Sender { rlc: &mut self.rlc, reverse, source }
        }
    }
    fn um() -> RlcConfig {
        RlcConfig::NrUm(nr::UmConfig::new(SlotClock::default()))
    }
    fn am() -> RlcConfig {
        RlcConfig::NrAm(nr::AmConfig { poll_pdu: Some(1), ..nr::AmConfig::new(SlotClock::default()) })
    }

    #[test]
    fn a_block_of_complete_sdus_has_three_bytes_of_sub_header_each() {
        for (mode, rlc_header) in [(um(), 1), (am(), 3)] {
            let (mut end, mut reverse) = (End::new(mode, 4), Rlc::new(mode, SlotSpan(0)));
            let needed = 4 * (3 + rlc_header + 1503);
            let bound = block_bytes_needed(&end.rlc, &reverse, end.tx.waiting(pdcp::Leg::Main, &end.buffer));
            assert!((needed..needed + 4 * 4).contains(&(bound as u32)), "{bound}, {needed}");
            let pdu = end.sender(&mut reverse).downlink_pdu(Slot(0), needed + 7, Vec::new());
            assert_eq!((pdu.sdus.len(), pdu.sdus[0].bytes(), pdu.padding), (1, needed, 7));
        }
    }

    #[test]
    fn a_report_that_is_due_is_short_and_a_padding_report_as_long_as_fits() {
        let uplink = |tbs, due, headroom| {
            let (mut end, mut reverse) = (End::new(um(), 1), Rlc::new(um(), SlotSpan(0)));
            let pdu = end.sender(&mut reverse).uplink_pdu(Slot(0), tbs, due, headroom, Vec::new());
            (pdu.bsr, pdu.padding, pdu.sdus[0].bytes())
        };
        let left = 1503 - (1000 - 2 - 3 - 2);
        let due = uplink(1000, BsrDue::Regular, None);
        assert_eq!(due, (Some(BufferReport::nr_short(left)), 0, 998));
        let report = HeadroomReport { index: 40, n_prb: 1, table: Default::default() };
        assert_eq!(uplink(1000, BsrDue::Regular, Some(report)).2, 995, "a headroom report of 3 bytes");
        let whole = 3 + 1 + 1503;
        for (padding, bsr, rest) in [
            (0, None, 0),
            (1, None, 1),
            (2, Some(BufferReport::NrShort(0)), 0),
            (3, Some(BufferReport::NrShort(0)), 1),
            (4, Some(BufferReport::NrLong(0)), 0),
            (90, Some(BufferReport::NrLong(0)), 86),
        ] {
            assert_eq!(uplink(whole + padding, BsrDue::None, None), (bsr, rest, whole), "padding {padding}");
        }
    }

    #[test]
    fn a_status_pdu_comes_before_data() {
        let (mut down, mut up) = (End::new(am(), 1), End::new(am(), 1));
        let block = down.sender(&mut up.rlc).downlink_pdu(Slot(0), 2000, Vec::new());
        let (mut out, above) = (Vec::new(), Waiting::default());
        for data in block.sdus {
            down.rlc.receive(Slot(4), data, &mut out);
        }
        down.rlc.check_timers(Slot(4), || above, &mut out);
        assert_eq!((out.len(), down.rlc.status_len(), down.rlc.held()), (1, 3, 0));
        let pdu = up.sender(&mut down.rlc).uplink_pdu(Slot(5), 900, BsrDue::None, None, Vec::new());
        assert!(matches!(pdu.sdus[..], [rlc::Pdu::NrStatus(_), rlc::Pdu::NrAm(_)]), "{pdu:?}");
        assert_eq!((pdu.sdus[0].bytes(), pdu.sdus[1].bytes()), (3 + 2, 895));
        down.rlc.on_status(&pdu.sdus[0]);
        assert_eq!((down.rlc.status_len(), down.rlc.idle()), (0, true));
    }
}
