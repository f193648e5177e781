//! RLC unacknowledged mode (TS 36.322 §5.1.2): segmentation and concatenation into PDUs of exactly the size
//! that MAC offers; reordering and reassembly at the receiver.
//!
//! Sequence numbers have 10 bits, the window is 512. The header is 2 bytes, and 12 bits more for each SDU
//! element but the last. A packet travels in the element with its last byte; a lost PDU costs every SDU that
//! has a part in it. Left out: duplicate detection inside the window, since HARQ delivers a block once.

use super::reassembled::Reassembled;
use crate::pdcp;
use crate::slot::{Slot, SlotSpan};

/// Number of sequence numbers: 10 bits (TS 36.322 §6.2.2).
const MODULUS: u16 = 1024;
/// UM_Window_Size for 10-bit sequence numbers (TS 36.322 §7.2).
const WINDOW: u16 = 512;
/// Bytes of the fixed part of the header with a 10-bit sequence number (TS 36.322 §6.2.1.3).
const FIXED_HEADER_BYTES: u32 = 2;
/// Largest length in bytes that a length indicator of 11 bits states (TS 36.322 §6.2.2). A longer element can
/// only be the last of its PDU.
const MAX_LENGTH_INDICATOR: u32 = 2047;
/// Empty element vectors that are kept for reuse. Chosen: twice the HARQ processes of a direction.
const MAX_SPARE: usize = 16;

/// Header bytes of a PDU with this many SDU elements.
pub const fn header_len(elements: u32) -> u32 {
    FIXED_HEADER_BYTES + (3 * elements.saturating_sub(1)).div_ceil(2)
}

/// An SDU or a segment of one inside a PDU.
#[derive(Clone, PartialEq, Debug)]
pub struct Element {
    /// PDCP COUNT of the SDU.
    pub count: u32,
    /// Bytes of the SDU in this element.
    pub len: u32,
    /// Whether the element has the SDU's first byte.
    pub first: bool,
    /// The PDCP PDU, if the element has its last byte.
    pub last: Option<pdcp::Pdu>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Pdu {
    pub sn: u16,
    pub elements: Vec<Element>,
    pub len: u32,
}

impl Pdu {
    /// Number of packets whose last byte is in the PDU.
    pub fn held(&self) -> u64 {
        let last = self.elements.iter().filter_map(|element| element.last.as_ref());
        last.filter(|pdu| pdu.packet().is_some()).count() as u64
    }
}

#[derive(Clone, Debug, Default)]
pub struct Tx {
    /// VT(US): the sequence number of the next PDU.
    vt_us: u16,
    /// The SDU that was sent in part, and the number of its bytes sent.
    partial: Option<(pdcp::Pdu, u32)>,
    spare: Vec<Vec<Element>>,
}

impl Tx {
    /// Bytes available for transmission here and in the buffer above (TS 36.322 §4.5), without RLC headers.
    pub fn available(&self, above: pdcp::Waiting) -> u64 {
        self.partial_left() + above.bytes
    }
    /// Unsent bytes of the SDU that was sent in part.
    pub fn partial_left(&self) -> u64 {
        self.partial.as_ref().map_or(0, |(pdu, sent)| u64::from(pdu.bytes() - sent))
    }
    pub fn held(&self) -> u64 {
        u64::from(self.partial.as_ref().is_some_and(|(pdu, _)| pdu.packet().is_some()))
    }
    /// Removes the SDU that was sent in part.
    pub fn take_partial(&mut self) -> Option<pdcp::Pdu> {
        self.partial.take().map(|(pdu, _)| pdu)
    }
    /// Takes back the element vector of a PDU for reuse.
    pub fn recycle(&mut self, mut elements: Vec<Element>) {
        elements.clear();
        if self.spare.len() < MAX_SPARE {
            self.spare.push(elements);
        }
    }

    /// A PDU of at most `room` bytes, header included; none without data or without room for a byte of data.
    pub fn pull(&mut self, source: &mut pdcp::Source, room: u32) -> Option<Pdu> {
        let mut elements = self.spare.pop().unwrap_or_default();
        let mut data = 0;
        loop {
            let header = header_len(elements.len() as u32 + 1);
            let left = room.saturating_sub(header + data);
            if left == 0 || elements.last().is_some_and(|e: &Element| e.len > MAX_LENGTH_INDICATOR) {
                break;
            }
            let Some((pdu, sent)) = self.partial.take().or_else(|| Some((source.pull()?, 0))) else {
                break;
            };
            let len = (pdu.bytes() - sent).min(left);
            data += len;
            let (count, first) = (pdu.count, sent == 0);
            let complete = sent + len == pdu.bytes();
            let last = if complete {
                Some(pdu)
            } else {
                self.partial = Some((pdu, sent + len));
                None
            };
            elements.push(Element { count, len, first, last });
            if !complete {
                break;
            }
        }
        if elements.is_empty() {
            self.recycle(elements);
            return None;
        }
        let sn = self.vt_us;
        self.vt_us = (sn + 1) % MODULUS;
        let len = header_len(elements.len() as u32) + data;
        Some(Pdu { sn, elements, len })
    }
}

#[derive(Clone, Debug)]
pub struct Rx {
    /// VR(UR): the earliest sequence number still considered for reordering.
    vr_ur: u16,
    /// VR(UX): the number after the one that started t-Reordering.
    vr_ux: u16,
    /// VR(UH): the number after the highest one received.
    vr_uh: u16,
    t_reordering: SlotSpan,
    expires_at: Option<Slot>,
    /// PDUs received above VR(UR).
    waiting: Vec<Pdu>,
    /// COUNT of the SDU whose parts up to the last reassembled PDU have all been received.
    assembling: Option<u32>,
}

impl Rx {
    /// A receiver whose t-Reordering lasts `t_reordering` slots.
    pub fn new(t_reordering: SlotSpan) -> Self {
        Self {
            vr_ur: 0,
            vr_ux: 0,
            vr_uh: 0,
            t_reordering,
            expires_at: None,
            waiting: Vec::new(),
            assembling: None,
        }
    }
    pub fn expires_at(&self) -> Option<Slot> {
        self.expires_at
    }
    /// Number of packets held: those whose last byte is in a waiting PDU.
    pub fn held(&self) -> u64 {
        self.waiting.iter().map(Pdu::held).sum()
    }

    /// A PDU arrives (§5.1.2.2.2 and §5.1.2.2.3). `storage` takes back the element vectors.
    pub fn receive(&mut self, slot: Slot, pdu: Pdu, out: &mut Vec<Reassembled>, storage: &mut Tx) {
        let sn = pdu.sn;
        if sn == self.vr_ur && sn == self.vr_uh {
            // Mostly in sequence, while no PDU waits for another and t-Reordering does not run.
            self.vr_ur = (sn + 1) % MODULUS;
            self.vr_uh = self.vr_ur;
            return self.reassemble(pdu, out, storage);
        }
        if self.in_window(sn) && self.offset(sn) < self.offset(self.vr_ur) {
            return discard(pdu, out, storage); // t-Reordering has already given it up
        }
        self.waiting.push(pdu);
        if !self.in_window(sn) {
            self.vr_uh = (sn + 1) % MODULUS;
            if !self.in_window(self.vr_ur) {
                let edge = (self.vr_uh + MODULUS - WINDOW) % MODULUS;
                self.deliver_below(edge, out, storage);
            }
        }
        self.deliver_received(out, storage);
        self.update_timer(slot);
    }

    /// Handles the expiry of t-Reordering (§5.1.2.2.4); does nothing before it.
    pub fn expire(&mut self, slot: Slot, out: &mut Vec<Reassembled>, storage: &mut Tx) {
        if self.expires_at.is_none_or(|at| at > slot) {
            return;
        }
        self.expires_at = None;
        self.deliver_below(self.vr_ux, out, storage);
        self.deliver_received(out, storage);
        self.update_timer(slot);
    }

    /// Reassembles all received PDUs in order; the missing ones are given up (§5.4).
    pub fn flush(&mut self, out: &mut Vec<Reassembled>, storage: &mut Tx) {
        self.deliver_below(self.vr_uh, out, storage);
        self.expires_at = None;
    }

    /// Distance of `sn` above the lower edge of the reordering window, modulo the number space.
    fn offset(&self, sn: u16) -> u16 {
        (sn + 2 * MODULUS - (self.vr_uh + MODULUS - WINDOW)) % MODULUS
    }
    /// Whether `sn` lies in [VR(UH) - window, VR(UH)).
    fn in_window(&self, sn: u16) -> bool {
        self.offset(sn) < WINDOW
    }

    /// Moves VR(UR) to `edge`: reassembles the received PDUs below it in order and gives up the missing ones.
    fn deliver_below(&mut self, edge: u16, out: &mut Vec<Reassembled>, storage: &mut Tx) {
        while self.vr_ur != edge {
            match self.take(self.vr_ur) {
                Some(pdu) => self.reassemble(pdu, out, storage),
                None => self.assembling = None,
            }
            self.vr_ur = (self.vr_ur + 1) % MODULUS;
        }
    }
    /// Moves VR(UR) past all PDUs received in sequence.
    fn deliver_received(&mut self, out: &mut Vec<Reassembled>, storage: &mut Tx) {
        while let Some(pdu) = self.take(self.vr_ur) {
            self.reassemble(pdu, out, storage);
            self.vr_ur = (self.vr_ur + 1) % MODULUS;
        }
    }
    fn take(&mut self, sn: u16) -> Option<Pdu> {
        let at = self.waiting.iter().position(|pdu| pdu.sn == sn)?;
        Some(self.waiting.swap_remove(at))
    }

    fn update_timer(&mut self, slot: Slot) {
        let ux_passed =
            self.offset(self.vr_ux) <= self.offset(self.vr_ur) || !self.in_window_or_top(self.vr_ux);
        if self.expires_at.is_some() && ux_passed {
            self.expires_at = None;
        }
        if self.expires_at.is_none() && self.vr_uh != self.vr_ur {
            self.expires_at = Some(slot + self.t_reordering);
            self.vr_ux = self.vr_uh;
        }
    }
    fn in_window_or_top(&self, sn: u16) -> bool {
        self.in_window(sn) || sn == self.vr_uh
    }

    fn reassemble(&mut self, mut pdu: Pdu, out: &mut Vec<Reassembled>, storage: &mut Tx) {
        for element in &mut pdu.elements {
            let continues = element.first || self.assembling == Some(element.count);
            let last = element.last.take();
            self.assembling = (last.is_none() && continues).then_some(element.count);
            let Some(pdu) = last else { continue };
            out.push(if continues { Reassembled::Sdu(pdu) } else { Reassembled::Incomplete(pdu) });
        }
        storage.recycle(pdu.elements);
    }
}

/// Drops the packets of a PDU that arrives too late.
fn discard(mut pdu: Pdu, out: &mut Vec<Reassembled>, storage: &mut Tx) {
    let sdus = pdu.elements.drain(..).filter_map(|element| element.last);
    out.extend(sdus.map(Reassembled::Incomplete));
    storage.recycle(pdu.elements);
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::{Bytes, DropTail, Instant, Packet, SduQueue, SeqNumber, Stream, TcpFlags, TcpHeader};

    fn packet(id: u32, payload_len: u32) -> Packet {
        let tcp = TcpHeader {
            src_port: 1,
            dst_port: 2,
            seq: SeqNumber(id),
            flags: TcpFlags::ACK,
            payload_len,
            ..TcpHeader::default()
        };
        Packet::tcp("198.18.0.1".parse().unwrap(), "198.18.0.2".parse().unwrap(), tcp)
    }
    fn id(packet: &Packet) -> u32 {
        packet.tcp_header().unwrap().seq.0
    }
    fn pull(tx: &mut Tx, pdcp: &mut pdcp::Tx, queue: &mut DropTail, room: u32) -> Option<Pdu> {
        let leg = pdcp::Leg::Main;
        tx.pull(&mut pdcp::Source { tx: pdcp, buffer: queue, leg, now: Instant::ZERO }, room)
    }
    fn filled(count: u32, payload_len: u32) -> DropTail {
        let mut queue = DropTail::new(Bytes(1 << 30));
        (0..count).for_each(|i| queue.push(Instant::ZERO, packet(i, payload_len)));
        queue
    }

    #[test]
    fn pdus_fill_the_room_exactly_headers_included() {
        // Three 42-byte PDCP PDUs: 2 + 3 bytes of header for three elements.
        let (mut tx, mut queue) = (Tx::default(), filled(3, 0));
        let pdu = pull(&mut tx, &mut pdcp::Tx::default(), &mut queue, 1000).unwrap();
        assert_eq!((pdu.elements.len(), pdu.len), (3, 3 * 42 + 5));
        assert!(pull(&mut tx, &mut pdcp::Tx::default(), &mut queue, 1000).is_none());
        // 50 bytes: one whole element (2 + 42), then 2 for the indicator and 4 bytes of the next.
        let mut queue = filled(2, 0);
        let pdu = pull(&mut tx, &mut pdcp::Tx::default(), &mut queue, 50).unwrap();
        assert_eq!((pdu.len, pdu.elements[1].len), (50, 4));
        assert_eq!(tx.available(pdcp::Tx::default().waiting(pdcp::Leg::Main, &queue)), 38);
        let rest = pull(&mut tx, &mut pdcp::Tx::default(), &mut queue, 1000).unwrap();
        assert_eq!((rest.elements[0].len, rest.elements[0].first), (38, false));
        assert!(pull(&mut tx, &mut pdcp::Tx::default(), &mut filled(1, 0), 2).is_none(), "no room for data");
    }

    #[test]
    fn a_long_element_ends_its_pdu() {
        let (mut tx, mut queue) = (Tx::default(), filled(2, 3000));
        let pdu = pull(&mut tx, &mut pdcp::Tx::default(), &mut queue, 9000).unwrap();
        assert_eq!(pdu.elements.len(), 1, "a length indicator has 11 bits");
    }

    /// Sends `count` packets in PDUs of random size, loses and delays PDUs at random, and returns the
    /// delivered packets and the number of lost ones.
    fn exchange(seed: u64, loss: f64, max_delay: u64) -> (Vec<u32>, u64) {
        let mut stream = Stream::new(seed, "rlc");
        let (mut tx, mut pdcp, mut queue) = (Tx::default(), pdcp::Tx::default(), filled(3000, 400));
        let (mut rx, mut out) = (Rx::new(SlotSpan(50)), Vec::new());
        let mut in_flight: Vec<(u64, Pdu)> = Vec::new();
        let mut lost = 0;
        for slot in 0..6000 {
            rx.expire(Slot(slot), &mut out, &mut tx);
            while let Some(at) = in_flight.iter().position(|(due, _)| *due <= slot) {
                let (_, pdu) = in_flight.remove(at);
                rx.receive(Slot(slot), pdu, &mut out, &mut tx);
            }
            let room = stream.below(2000) as u32;
            if let Some(pdu) = pull(&mut tx, &mut pdcp, &mut queue, room) {
                if stream.chance(loss) {
                    lost += pdu.elements.iter().filter(|e| e.last.is_some()).count() as u64;
                } else {
                    in_flight.push((slot + 8 * stream.below(max_delay / 8 + 1), pdu));
                }
            }
        }
        assert_eq!(rx.held() + tx.held() + queue.packets() as u64, 0);
        let incomplete = out.iter().filter(|r| matches!(r, Reassembled::Incomplete(_))).count() as u64;
        let delivered = out.iter().filter_map(|r| match r {
            Reassembled::Sdu(pdu) => pdu.packet().map(id),
            Reassembled::Incomplete(_) => None,
        });
        (delivered.collect(), lost + incomplete)
    }

    #[test]
    fn reordering_within_the_timer_loses_nothing() {
        for seed in 0..10 {
            let (delivered, lost) = exchange(seed, 0.0, 32);
            assert_eq!(lost, 0, "seed {seed}");
            assert!(delivered.iter().copied().eq(0..3000), "seed {seed}");
        }
    }

    #[test]
    fn a_lost_pdu_costs_only_its_own_packets_and_order_holds() {
        for seed in 0..10 {
            for max_delay in [32, 120] {
                let (delivered, lost) = exchange(seed, 0.1, max_delay);
                assert!(delivered.windows(2).all(|w| w[0] < w[1]), "seed {seed}: in order, once");
                assert_eq!(delivered.len() as u64 + lost, 3000, "seed {seed}: every packet ends once");
                assert!(delivered.len() > 1000, "seed {seed}");
            }
        }
    }
}
