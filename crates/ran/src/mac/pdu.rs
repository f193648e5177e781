//! MAC PDUs (TS 36.321 §6.1.2): sub-headers, the short buffer status report, padding.
//!
//! One logical channel carries the user's data. The last SDU of a block needs a sub-header of 1 byte, each before
//! it one of 2 or 3; with padding behind the last its sub-header grows too, out of the padding. In RLC AM a block
//! holds a STATUS PDU about the other direction if one is due, then repetitions, then new data. A BSR control
//! element costs 2 bytes with its sub-header, a power headroom report likewise. Left out: several logical channels and
//! their prioritisation.

use crate::lte::bsr;
use crate::mac::power_headroom::Headroom;
use crate::rlc::um::header_len;
use crate::rlc::{self, Rlc};
use crate::slot::Tti;
use paceline_net::{Bytes, SduQueue};

/// Sub-header of the last SDU of a block (§6.2.1).
const SUBHEADER: u32 = 1;
/// Short BSR control element with its sub-header (§6.1.3.1).
const BSR: u32 = 2;
/// Power headroom control element with its sub-header (§6.1.3.6).
const HEADROOM: u32 = 2;
/// Padding that cannot hold a padding BSR.
const MAX_BLIND_PADDING: u32 = BSR + 1;
/// Room in which a further PDU is begun: less would be mostly headers.
const MIN_FURTHER: u32 = 8;
/// Allowance for the headers of a repeated PDU: sub-header, segment header, two length indicators.
const REPEATED_HEADERS: u64 = 10;

/// Sub-header of an SDU of this length with another behind it.
const fn subheader_before_another(len: u32) -> u32 {
    if len < 128 { 2 } else { 3 }
}

/// What a transport block carries.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pdu {
    /// The RLC PDUs.
    pub sdus: Vec<rlc::Pdu>,
    /// Index of the buffer status report, if one is in it.
    pub bsr: Option<u8>,
    /// The power headroom report, if one is in it.
    pub headroom: Option<Headroom>,
    /// Bytes of padding.
    pub padding: u32,
}

/// Whether a block is to carry a buffer status report (§5.4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BsrDue {
    /// None is due.
    None,
    /// periodicBSR-Timer has expired.
    Periodic,
    /// Data came into an empty buffer, or retxBSR-Timer expired: the eNB does not know of them yet.
    Regular,
}

/// What one end of a bearer can send: its data, and reports about what it has received.
pub struct Sender<'a> {
    /// The direction in which it sends.
    pub rlc: &'a mut Rlc,
    /// The other direction.
    pub reverse: &'a mut Rlc,
    /// The buffer above.
    pub queue: &'a mut dyn SduQueue,
}

/// Bytes of a transport block of `tbs` bytes that its RLC PDUs may fill.
pub fn room(tbs: u32, with_bsr: bool) -> u32 {
    tbs.saturating_sub(SUBHEADER + if with_bsr { BSR } else { 0 })
}

/// Bytes of block that `data` bytes in about `packets` packets need with all headers.
pub fn block_needed(data: u64, packets: u64) -> u64 {
    let elements = u32::try_from(packets).unwrap_or(u32::MAX / 4).max(1);
    data + u64::from(header_len(elements) + SUBHEADER)
}

/// Bytes of block that would take everything that waits at one end.
pub fn needed(rlc: &Rlc, reverse: &Rlc, queue: &dyn SduQueue) -> u64 {
    let (data, status) = (rlc.available(queue), reverse.status_len());
    if data == 0 && status > 0 {
        return u64::from(status + SUBHEADER);
    }
    let status = if status > 0 { status + subheader_before_another(status) } else { 0 };
    let repeated = u64::from(rlc.retransmissions_pending()) * REPEATED_HEADERS;
    block_needed(data, queue.packets() as u64 + rlc.partial()) + u64::from(status) + repeated
}

impl Sender<'_> {
    /// Data available for transmission (§5.4.5).
    pub fn available(&self) -> u64 {
        self.rlc.available(self.queue) + u64::from(self.reverse.status_len())
    }

    /// Fills `room` bytes with PDUs and returns what is left.
    fn fill(&mut self, tti: Tti, room: u32, sdus: &mut Vec<rlc::Pdu>) -> u32 {
        let mut left = room;
        if let Some(status) = self.reverse.pull_status(tti, left) {
            left -= status.bytes();
            sdus.push(status);
        }
        loop {
            let (before, floor) = match sdus.last() {
                Some(last) => (subheader_before_another(last.bytes()), MIN_FURTHER),
                None => (0, 0),
            };
            if left < before + floor {
                return left;
            }
            let Some(pdu) = self.rlc.pull(tti, self.queue, left - before) else { return left };
            left -= before + pdu.bytes();
            sdus.push(pdu);
            if !self.rlc.repeats() {
                return left; // in UM one PDU takes everything
            }
        }
    }

    /// Fills a downlink transport block of `tbs` bytes. `sdus` is empty and gives its storage.
    pub fn downlink_pdu(&mut self, tti: Tti, tbs: u32, mut sdus: Vec<rlc::Pdu>) -> Pdu {
        let padding = self.fill(tti, room(tbs, false), &mut sdus);
        Pdu { sdus, bsr: None, headroom: None, padding }
    }

    /// Fills an uplink transport block of `tbs` bytes. A BSR that is due goes in unless everything fits without it
    /// (§5.4.5); one in the padding costs nothing and goes in whenever it fits. A headroom report comes before data.
    pub fn uplink_pdu(
        &mut self,
        tti: Tti,
        tbs: u32,
        due: BsrDue,
        headroom: Option<Headroom>,
        mut sdus: Vec<rlc::Pdu>,
    ) -> Pdu {
        let headroom = headroom.filter(|_| tbs > BSR + HEADROOM);
        let tbs = if headroom.is_some() { tbs - HEADROOM } else { tbs };
        let overfull = |sender: &Self| needed(sender.rlc, sender.reverse, sender.queue) > u64::from(tbs);
        // A block that is there for the first report of new data says nothing of what the station will be granted.
        if due != BsrDue::Regular || !overfull(self) {
            self.offer(tti, tbs, due != BsrDue::None);
        }
        let with_bsr = due != BsrDue::None && overfull(self);
        let padding = self.fill(tti, room(tbs, with_bsr), &mut sdus);
        let padding_bsr = !with_bsr && padding > MAX_BLIND_PADDING;
        let report = (with_bsr || padding_bsr).then(|| bsr::index_of(self.available()));
        Pdu { sdus, bsr: report, headroom, padding: padding - if padding_bsr { BSR } else { 0 } }
    }

    /// Tells the buffer above what is about to be served, so that an ACK filter can act on the grant.
    fn offer(&mut self, tti: Tti, tbs: u32, bsr_triggered: bool) {
        let status = match self.reverse.status_len() {
            0 => 0,
            len => len + subheader_before_another(len),
        };
        let free = u64::from(room(tbs, bsr_triggered).saturating_sub(status + header_len(1)));
        // Each further packet costs its PDCP header and a length indicator of 1.5 bytes, rounded up.
        let overhead = Bytes(u64::from(crate::pdcp::HEADER) + 2);
        let free = Bytes(free.saturating_sub(self.rlc.available_below()));
        self.queue.on_grant(tti.starts_at(), free, overhead);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AmConfig, RlcConfig};
    use paceline_net::{DropTail, Instant, Packet, TcpFlags, TcpHeader};

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
    const AM: AmConfig = AmConfig {
        t_poll_retransmit: 50,
        poll_pdu: None,
        poll_byte: None,
        max_retx_threshold: 8,
        t_status_prohibit: 0,
    };

    #[test]
    fn only_the_last_sdu_has_the_short_sub_header() {
        assert_eq!([1, 127, 128, 9000].map(subheader_before_another), [2, 2, 3, 3]);
        assert_eq!((room(100, false), room(100, true), room(2, true)), (99, 97, 0));
    }

    #[test]
    fn a_status_pdu_shares_its_block_with_data() {
        let new = || Rlc::new(RlcConfig::Am(AM), 40);
        let filled = |count| {
            let mut queue = DropTail::new(Bytes(1 << 20));
            (0..count).for_each(|_| queue.push(Instant::ZERO, packet()));
            queue
        };
        let (mut down, mut up) = (new(), new());
        let data = down.pull(Tti(0), &mut filled(1), 2000).unwrap();
        down.receive(Tti(3), data, &mut Vec::new());
        assert_eq!(down.status_len(), 2);
        let mut queue = filled(2);
        let mut sender = Sender { rlc: &mut up, reverse: &mut down, queue: &mut queue };
        assert_eq!(sender.available(), 2 * 1442 + 2);
        let pdu = sender.uplink_pdu(Tti(4), 1000, BsrDue::Regular, None, Vec::new());
        // 2 + 2 bytes of STATUS, the BSR, and the data PDU behind its sub-header of 1 byte.
        assert!(matches!(pdu.sdus[..], [rlc::Pdu::Status(_), rlc::Pdu::Am(_)]), "{pdu:?}");
        assert_eq!(pdu.sdus[1].bytes(), 1000 - 4 - BSR - SUBHEADER);
        assert_eq!((pdu.padding, down.status_len()), (0, 0));
        assert_eq!(pdu.bsr, Some(bsr::index_of(up.available(&queue))));
    }

    /// A buffer that notes the rooms of the grants that it is told of.
    struct Noting(DropTail, Vec<Bytes>);

    impl SduQueue for Noting {
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
    fn the_buffer_is_told_of_grants_but_not_of_one_that_only_asks_for_more() {
        let told = |due, waiting: u32| {
            let (mut down, mut up) = (Rlc::new(RlcConfig::Um, 40), Rlc::new(RlcConfig::Um, 40));
            let mut queue = Noting(DropTail::new(Bytes(1 << 20)), Vec::new());
            (0..waiting).for_each(|_| queue.push(Instant::ZERO, packet()));
            let mut sender = Sender { rlc: &mut up, reverse: &mut down, queue: &mut queue };
            sender.uplink_pdu(Tti(4), 2000, due, None, Vec::new());
            queue.1.len()
        };
        // Two packets of 1440 bytes do not fit: the first block is the report's, a later one is data's.
        assert_eq!([BsrDue::None, BsrDue::Periodic, BsrDue::Regular].map(|due| told(due, 2)), [1, 1, 0]);
        // Where everything fits there is no report to wait for.
        assert_eq!(told(BsrDue::Regular, 1), 1);
    }

    #[test]
    fn a_status_pdu_alone_needs_three_bytes() {
        let new = || Rlc::new(RlcConfig::Am(AM), 40);
        let (mut down, mut up) = (new(), new());
        let mut queue = DropTail::new(Bytes(1 << 20));
        queue.push(Instant::ZERO, packet());
        let data = down.pull(Tti(0), &mut queue, 2000).unwrap();
        down.receive(Tti(3), data, &mut Vec::new());
        assert_eq!(needed(&up, &down, &queue), 3);
        let mut sender = Sender { rlc: &mut up, reverse: &mut down, queue: &mut queue };
        let pdu = sender.uplink_pdu(Tti(4), 7, BsrDue::Regular, None, Vec::new());
        assert!(matches!(pdu.sdus[..], [rlc::Pdu::Status(_)]));
        assert_eq!((pdu.padding, pdu.bsr), (2, Some(0)), "the padding holds a BSR of an empty buffer");
    }
}
