//! MAC PDUs (TS 36.321 §6.1.2): sub-headers, the short buffer status report, padding.
//!
//! One logical channel carries the user's data. An SDU that fills its block needs a sub-header of 1 byte; with
//! padding behind it 2 or 3, which come out of the padding. A BSR control element costs 2 bytes with its
//! sub-header. Left out: several logical channels and their prioritisation, power headroom reports.

use crate::lte::bsr;
use crate::rlc_um;
use paceline_net::{Bytes, Instant, SduQueue};

/// Sub-header of an SDU that fills its block (§6.2.1).
const SUBHEADER: u32 = 1;
/// Short BSR control element with its sub-header (§6.1.3.1).
const BSR: u32 = 2;
/// Padding that cannot hold a padding BSR.
const MAX_BLIND_PADDING: u32 = BSR + 1;

/// What a transport block carries.
#[derive(Clone, PartialEq, Debug)]
pub struct Pdu {
    /// The RLC PDU, if there was data.
    pub rlc: Option<rlc_um::Pdu>,
    /// Index of the buffer status report, if one is in it.
    pub bsr: Option<u8>,
    /// Bytes of padding.
    pub padding: u32,
}

/// Bytes of a transport block of `tbs` bytes that its RLC PDU may fill.
pub fn room(tbs: u32, with_bsr: bool) -> u32 {
    tbs.saturating_sub(SUBHEADER + if with_bsr { BSR } else { 0 })
}

/// Bytes of block that `data` bytes in about `packets` packets need with all headers.
pub fn block_needed(data: u64, packets: u64) -> u64 {
    let elements = u32::try_from(packets).unwrap_or(u32::MAX / 4).max(1);
    data + u64::from(rlc_um::header_len(elements) + SUBHEADER)
}

/// Fills a downlink transport block of `tbs` bytes.
pub fn downlink_pdu(now: Instant, rlc: &mut rlc_um::Tx, queue: &mut dyn SduQueue, tbs: u32) -> Pdu {
    let rlc = rlc.pull(now, queue, room(tbs, false));
    let padding = room(tbs, false) - rlc.as_ref().map_or(0, |pdu| pdu.len);
    Pdu { rlc, bsr: None, padding }
}

/// Fills an uplink transport block of `tbs` bytes. A triggered BSR goes in unless everything fits without it
/// (§5.4.5); one in the padding costs nothing and goes in whenever it fits.
pub fn uplink_pdu(
    now: Instant,
    rlc: &mut rlc_um::Tx,
    queue: &mut dyn SduQueue,
    tbs: u32,
    bsr_triggered: bool,
) -> Pdu {
    offer(now, rlc, queue, tbs, bsr_triggered);
    let needed = block_needed(rlc.available(queue), queue.packets() as u64 + rlc.held());
    let with_bsr = bsr_triggered && needed > u64::from(tbs);
    let pdu = rlc.pull(now, queue, room(tbs, with_bsr));
    let padding = room(tbs, with_bsr) - pdu.as_ref().map_or(0, |pdu| pdu.len);
    let padding_bsr = !with_bsr && padding > MAX_BLIND_PADDING;
    let report = (with_bsr || padding_bsr).then(|| bsr::index_of(rlc.available(queue)));
    Pdu { rlc: pdu, bsr: report, padding: padding - if padding_bsr { BSR } else { 0 } }
}

/// Tells the buffer above what is about to be served, so that an ACK filter can act on the grant.
fn offer(now: Instant, rlc: &rlc_um::Tx, queue: &mut dyn SduQueue, tbs: u32, bsr_triggered: bool) {
    let free = u64::from(room(tbs, bsr_triggered).saturating_sub(rlc_um::header_len(1)));
    // Each further packet costs its PDCP header and a length indicator of 1.5 bytes, rounded up.
    let overhead = Bytes(u64::from(crate::pdcp::HEADER) + 2);
    queue.on_grant(now, Bytes(free.saturating_sub(rlc.partial_left())), overhead);
}
