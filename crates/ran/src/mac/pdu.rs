//! Filling transport blocks with control elements, RLC PDUs and padding (TS 36.321 §6.1.2, TS 38.321
//! §6.1.2).
//!
//! One logical channel carries the user's data. In LTE the last SDU of a block has a sub-header of 1 byte,
//! every other SDU one of 2 or 3 bytes; with padding behind the last SDU its sub-header is longer, at the
//! expense of the padding. The sizes of NR stand in [`super::nr_pdu`]. In RLC AM a block holds first a STATUS
//! PDU about the other direction, then retransmissions, then new data. Left out: several logical channels and
//! their prioritisation.

use super::buffer_report::BufferReport;
use super::nr_pdu;
use super::power_headroom::HeadroomReport;
use crate::pdcp;
use crate::rlc::um::header_len;
use crate::rlc::{self, Rlc, nr::Headers};
use crate::slot::Slot;
use paceline_net::Bytes;

/// Sub-header of the last SDU of a block, in bytes (TS 36.321 §6.2.1).
const SUBHEADER_BYTES: u32 = 1;
/// Short BSR control element with its sub-header, in bytes (TS 36.321 §6.1.3.1, TS 38.321 §6.1.3.1).
const BSR_BYTES: u32 = 2;
/// Power headroom control element with its sub-header, in bytes (TS 36.321 §6.1.3.6).
const HEADROOM_BYTES: u32 = 2;
/// Largest padding in bytes without a padding BSR in LTE (TS 36.321 §5.4.5). Chosen: the BSR and one byte,
/// for the longer sub-header of the last SDU.
const MAX_PADDING_WITHOUT_BSR: u32 = BSR_BYTES + 1;
/// Smallest room in bytes for a second PDU in a block. Chosen: a smaller PDU would consist mostly of headers.
const MIN_FURTHER_PDU_BYTES: u32 = 8;
/// Header bytes assumed per retransmitted PDU. Chosen: sub-header 3, segment header 4, two length indicators
/// 3.
const RETRANSMISSION_HEADER_BYTES: u64 = 10;

/// Sub-header in bytes of an SDU of `len` bytes that another SDU follows (TS 36.321 §6.2.1).
const fn subheader_before_another(len: u32) -> u32 {
    if len < 128 { 2 } else { 3 }
}

/// Content of a transport block.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pdu {
    /// MAC SDUs: in LTE the RLC PDUs, in NR a STATUS PDU and all data as one element.
    pub sdus: Vec<rlc::Pdu>,
    pub bsr: Option<BufferReport>,
    pub headroom: Option<HeadroomReport>,
    pub padding: u32,
}

/// The kind of buffer status report that is due (TS 36.321 §5.4.5, TS 38.321 §5.4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BsrDue {
    None,
    /// periodicBSR-Timer has expired.
    Periodic,
    /// Data arrived in an empty buffer, or retxBSR-Timer expired.
    Regular,
}

/// The transmitting end of a bearer: its data, and status reports about the data that it has received.
pub struct Sender<'a> {
    /// RLC of the direction in which this end sends.
    pub rlc: &'a mut Rlc,
    pub reverse: &'a mut Rlc,
    pub source: pdcp::Source<'a>,
}

/// Bytes for RLC in a transport block of `tbs` bytes; in NR with MAC sub-headers.
pub fn rlc_room(headers: Option<Headers>, tbs: u32, with_bsr: bool) -> u32 {
    let subheader = if headers.is_some() { 0 } else { SUBHEADER_BYTES };
    tbs.saturating_sub(subheader + if with_bsr { BSR_BYTES } else { 0 })
}

/// Size in bytes of a transport block for `data` bytes in about `packets` packets, with all headers.
pub fn block_bytes_for(headers: Option<Headers>, data: u64, packets: u64) -> u64 {
    if let Some(headers) = headers {
        return nr_pdu::block_bytes_for(headers, data, packets);
    }
    let elements = u32::try_from(packets).unwrap_or(u32::MAX / 4).max(1);
    data + u64::from(header_len(elements) + SUBHEADER_BYTES)
}

/// Size in bytes of a transport block that would carry all data of one end; `above` waits above its RLC.
pub fn block_bytes_needed(rlc: &Rlc, reverse: &Rlc, above: pdcp::Waiting) -> u64 {
    if let Some(headers) = rlc.nr_headers() {
        return nr_pdu::block_bytes_needed(headers, rlc, reverse, above);
    }
    let (data, status) = (rlc.available(above), reverse.status_len());
    if data == 0 && status > 0 {
        return u64::from(status + SUBHEADER_BYTES);
    }
    let status = if status > 0 { status + subheader_before_another(status) } else { 0 };
    let retransmissions = u64::from(rlc.retransmissions_pending()) * RETRANSMISSION_HEADER_BYTES;
    block_bytes_for(None, data, above.packets + rlc.partial_sdus()) + u64::from(status) + retransmissions
}

impl Sender<'_> {
    /// Data available for transmission in bytes (TS 36.321 §5.4.5, TS 38.321 §5.4.5).
    pub fn available(&self) -> u64 {
        self.rlc.available(self.source.waiting()) + u64::from(self.reverse.status_len())
    }

    /// Fills a downlink transport block of `tbs` bytes. `sdus` is an empty vector whose storage is reused.
    pub fn downlink_pdu(&mut self, slot: Slot, tbs: u32, mut sdus: Vec<rlc::Pdu>) -> Pdu {
        let padding = self.fill(slot, rlc_room(self.rlc.nr_headers(), tbs, false), &mut sdus);
        Pdu { sdus, bsr: None, headroom: None, padding }
    }

    /// Fills an uplink transport block of `tbs` bytes. A BSR that is due is left out if all data fit without
    /// it (§5.4.5); a padding BSR is added whenever the padding can hold it. A headroom report comes before
    /// data.
    pub fn uplink_pdu(
        &mut self,
        slot: Slot,
        tbs: u32,
        due: BsrDue,
        headroom: Option<HeadroomReport>,
        mut sdus: Vec<rlc::Pdu>,
    ) -> Pdu {
        let headers = self.rlc.nr_headers();
        let headroom_bytes = if headers.is_some() { nr_pdu::HEADROOM_BYTES } else { HEADROOM_BYTES };
        let headroom = headroom.filter(|_| tbs > BSR_BYTES + headroom_bytes);
        let tbs = if headroom.is_some() { tbs - headroom_bytes } else { tbs };
        let overfull = |sender: &Self| {
            block_bytes_needed(sender.rlc, sender.reverse, sender.source.waiting()) > u64::from(tbs)
        };
        // The block of a regular BSR is small whatever the buffer holds: its size says nothing about later
        // grants.
        if due != BsrDue::Regular || !overfull(self) {
            self.announce_grant(tbs, due != BsrDue::None);
        }
        let with_bsr = due != BsrDue::None && overfull(self);
        let padding = self.fill(slot, rlc_room(headers, tbs, with_bsr), &mut sdus);
        let report = match headers {
            // One logical channel group: a regular or periodic report is a short one.
            Some(_) if with_bsr => Some((BufferReport::nr_short(self.available()), 0)),
            Some(_) => nr_pdu::padding_report(padding, self.available()),
            None if with_bsr => Some((BufferReport::lte(self.available()), 0)),
            None if padding > MAX_PADDING_WITHOUT_BSR => {
                Some((BufferReport::lte(self.available()), BSR_BYTES))
            }
            None => None,
        };
        let padding = padding - report.map_or(0, |(_, bytes)| bytes);
        Pdu { sdus, bsr: report.map(|(report, _)| report), headroom, padding }
    }

    /// Fills `room` bytes with RLC PDUs and returns the number of bytes left.
    fn fill(&mut self, slot: Slot, room: u32, sdus: &mut Vec<rlc::Pdu>) -> u32 {
        let mut left = room;
        if let Some(status) = self.reverse.pull_status(slot, left) {
            left -= status.bytes();
            sdus.push(status);
        }
        if self.rlc.nr_headers().is_some() {
            let Some(data) = self.rlc.pull(slot, &mut self.source, left) else { return left };
            left -= data.bytes();
            sdus.push(data);
            return left;
        }
        loop {
            let (before, least) = match sdus.last() {
                Some(last) => (subheader_before_another(last.bytes()), MIN_FURTHER_PDU_BYTES),
                None => (0, 0),
            };
            if left < before + least {
                return left;
            }
            let Some(pdu) = self.rlc.pull(slot, &mut self.source, left - before) else { return left };
            left -= before + pdu.bytes();
            sdus.push(pdu);
            if !self.rlc.is_am() {
                return left; // one UM PDU fills the block
            }
        }
    }

    /// Passes the size of the grant to the buffer above, so that an ACK filter can discard ACKs that do not
    /// fit.
    fn announce_grant(&mut self, tbs: u32, bsr_triggered: bool) {
        let headers = self.rlc.nr_headers();
        // The first packet's header, and the overhead of each further packet: in LTE the PDCP header and a
        // length indicator of 1.5 bytes, rounded up.
        let (status, first, further) = match headers {
            Some(headers) => {
                let per_sdu = nr_pdu::sdu_bytes(headers);
                (nr_pdu::status_bytes(self.reverse.status_len()), per_sdu, per_sdu)
            }
            None => match self.reverse.status_len() {
                0 => (0, header_len(1), 2),
                len => (len + subheader_before_another(len), header_len(1), 2),
            },
        };
        let free = u64::from(rlc_room(headers, tbs, bsr_triggered).saturating_sub(status + first));
        let overhead = Bytes(u64::from(self.source.tx.header_bytes() + further));
        let free = Bytes(free.saturating_sub(self.rlc.available_below()));
        self.source.buffer.on_grant(self.source.now, free, overhead);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::SlotSpan;
    use crate::{AmConfig, RlcConfig};
    use paceline_net::{DropTail, Instant, Packet, SduQueue, TcpFlags, TcpHeader};

    fn packet() -> Packet {
        let tcp = TcpHeader {
            src_port: 1,
            dst_port: 2,
            flags: TcpFlags::ACK,
            payload_len: 1400,
            ..TcpHeader::default()
        };
        Packet::tcp("198.18.0.1".parse().unwrap(), "198.18.0.2".parse().unwrap(), tcp)
    }
    fn waiting(queue: &DropTail) -> pdcp::Waiting {
        pdcp::Tx::default().waiting(pdcp::Leg::Main, queue)
    }
    /// A source with a PDCP of its own.
    macro_rules! source {
        ($queue:expr) => {
            pdcp::Source {
                tx: &mut pdcp::Tx::default(),
                buffer: $queue,
                leg: pdcp::Leg::Main,
                now: Instant::ZERO,
            }
        };
    }
    const AM: AmConfig = AmConfig {
        t_poll_retransmit: SlotSpan(50),
        poll_pdu: None,
        poll_byte: None,
        max_retx_threshold: 8,
        t_status_prohibit: SlotSpan(0),
    };

    #[test]
    fn only_the_last_sdu_has_the_short_sub_header() {
        assert_eq!([1, 127, 128, 9000].map(subheader_before_another), [2, 2, 3, 3]);
        assert_eq!(
            (rlc_room(None, 100, false), rlc_room(None, 100, true), rlc_room(None, 2, true)),
            (99, 97, 0)
        );
    }

    #[test]
    fn a_status_pdu_shares_its_block_with_data() {
        let new = || Rlc::new(RlcConfig::Am(AM), SlotSpan(40));
        let filled = |count| {
            let mut queue = DropTail::new(Bytes(1 << 20));
            (0..count).for_each(|_| queue.push(Instant::ZERO, packet()));
            queue
        };
        let (mut down, mut up) = (new(), new());
        let data = down.pull(Slot(0), &mut source!(&mut filled(1)), 2000).unwrap();
        down.receive(Slot(3), data, &mut Vec::new());
        assert_eq!(down.status_len(), 2);
        let mut queue = filled(2);
        let mut sender = Sender { rlc: &mut up, reverse: &mut down, source: source!(&mut queue) };
        assert_eq!(sender.available(), 2 * 1442 + 2);
        let pdu = sender.uplink_pdu(Slot(4), 1000, BsrDue::Regular, None, Vec::new());
        // STATUS with sub-header (2 + 2 bytes), the BSR, and the data PDU with a sub-header of 1 byte.
        assert!(matches!(pdu.sdus[..], [rlc::Pdu::Status(_), rlc::Pdu::Am(_)]), "{pdu:?}");
        assert_eq!(pdu.sdus[1].bytes(), 1000 - 4 - BSR_BYTES - SUBHEADER_BYTES);
        assert_eq!((pdu.padding, down.status_len()), (0, 0));
        assert_eq!(pdu.bsr, Some(BufferReport::lte(up.available(waiting(&queue)))));
    }

    /// A buffer that records the announced grants.
    struct RecordingQueue(DropTail, Vec<Bytes>);

    impl SduQueue for RecordingQueue {
        fn push(&mut self, now: Instant, packet: Packet) {
            self.0.push(now, packet);
        }
        fn on_grant(&mut self, _now: Instant, room: Bytes, _overhead: Bytes) {
            self.1.push(room);
        }
        fn pop(&mut self, now: Instant) -> Option<Packet> {
            self.0.pop(now)
        }
        fn head_len(&self) -> Option<Bytes> {
            self.0.head_len()
        }
        fn head_arrived_at(&self) -> Option<Instant> {
            self.0.head_arrived_at()
        }
        fn packets(&self) -> usize {
            self.0.packets()
        }
        fn bytes(&self) -> Bytes {
            self.0.bytes()
        }
        fn waited(&self) -> paceline_net::Waited {
            self.0.waited()
        }
        fn pop_dropped(&mut self) -> Option<(Packet, paceline_net::DropReason)> {
            self.0.pop_dropped()
        }
        fn counters(&self) -> paceline_net::QueueCounters {
            self.0.counters()
        }
    }

    #[test]
    fn grants_are_announced_to_the_buffer_except_those_for_a_regular_bsr() {
        let announced = |due, waiting: u32| {
            let (mut down, mut up) =
                (Rlc::new(RlcConfig::Um, SlotSpan(40)), Rlc::new(RlcConfig::Um, SlotSpan(40)));
            let mut queue = RecordingQueue(DropTail::new(Bytes(1 << 20)), Vec::new());
            (0..waiting).for_each(|_| queue.push(Instant::ZERO, packet()));
            let mut sender = Sender { rlc: &mut up, reverse: &mut down, source: source!(&mut queue) };
            sender.uplink_pdu(Slot(4), 2000, due, None, Vec::new());
            queue.1.len()
        };
        // Two packets of 1440 bytes do not fit: the block of a regular BSR is not announced.
        assert_eq!([BsrDue::None, BsrDue::Periodic, BsrDue::Regular].map(|due| announced(due, 2)), [1, 1, 0]);
        // One packet fits, so that no BSR is needed.
        assert_eq!(announced(BsrDue::Regular, 1), 1);
    }

    #[test]
    fn a_status_pdu_alone_needs_three_bytes() {
        let new = || Rlc::new(RlcConfig::Am(AM), SlotSpan(40));
        let (mut down, mut up) = (new(), new());
        let mut queue = DropTail::new(Bytes(1 << 20));
        queue.push(Instant::ZERO, packet());
        let data = down.pull(Slot(0), &mut source!(&mut queue), 2000).unwrap();
        down.receive(Slot(3), data, &mut Vec::new());
        assert_eq!(block_bytes_needed(&up, &down, waiting(&queue)), 3);
        let mut sender = Sender { rlc: &mut up, reverse: &mut down, source: source!(&mut queue) };
        let pdu = sender.uplink_pdu(Slot(4), 7, BsrDue::Regular, None, Vec::new());
        assert!(matches!(pdu.sdus[..], [rlc::Pdu::Status(_)]));
        assert_eq!(
            (pdu.padding, pdu.bsr),
            (2, Some(BufferReport::Lte(0))),
            "the padding holds a BSR of an empty buffer"
        );
    }
}
