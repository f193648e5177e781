//! RLC unacknowledged mode of NR (TS 38.322 §5.2.2).
//!
//! A complete SDU has a header of 1 byte without a sequence number and is delivered at once. Segments have a
//! sequence number; the receiver reassembles them within a window, and gives up an SDU when t-Reassembly
//! expires. An SDU of which HARQ lost a part is reported as dropped then, before the receiver gives it up.

use super::headers::{Headers, SnLength};
use super::ranges::{END, has_gap, is_complete};
use super::ring::Ring;
use super::runs::{Filler, Position, SduRun, SduSource};
use crate::slot::{Slot, SlotClock, SlotSpan};
use paceline_net::Duration;
use paceline_net::Ranges;

/// t-Reassembly of a UM bearer. Chosen: the value of srsRAN_Project for 5QI 1 (`configs/qos.yml`).
const T_REASSEMBLY: Duration = Duration::from_millis(50);

/// Parameters of UM (`UL-UM-RLC`, `DL-UM-RLC` of TS 38.331).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UmConfig {
    /// Length of sequence numbers: 6 or 12 bits.
    pub sn: SnLength,
    /// t-Reassembly.
    pub t_reassembly: SlotSpan,
}

impl UmConfig {
    /// Sequence numbers of 12 bits, t-Reassembly of 50 ms.
    pub fn new(clock: SlotClock) -> Self {
        Self { sn: SnLength::Long, t_reassembly: clock.span(T_REASSEMBLY) }
    }
}

/// The data of a UM bearer in one transport block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UmBlock {
    /// The SDUs and segments.
    pub run: SduRun,
    /// Sequence number of the run's first segment; a second segment has the next number.
    pub sn: u64,
    /// Bytes in the transport block, with RLC headers and MAC sub-headers.
    pub bytes: u32,
}

/// One direction of a bearer; `T` is an SDU.
#[derive(Clone, Debug)]
pub struct Um<T> {
    config: UmConfig,
    /// SDUs of which the first byte was sent and that were neither delivered nor lost.
    sdus: Ring<Option<T>>,
    held: u64,
    /// The next byte to send.
    next: Position,
    /// Length of the SDU that was sent in part.
    partial_bytes: u32,
    /// TX_Next: the number of the next SDU that is segmented, or of the one that was sent in part.
    tx_next: u64,
    rx: Rx,
}

impl<T> Um<T> {
    /// Both ends in their initial state.
    pub fn new(config: UmConfig) -> Self {
        let (sdus, next, rx) = (Ring::default(), Position::default(), Rx::default());
        Self { config, sdus, held: 0, next, partial_bytes: 0, tx_next: 0, rx }
    }
    /// Bytes of the SDU that was sent in part (§5.5, the data volume without the buffer above).
    pub fn available_below(&self) -> u64 {
        if self.next.byte > 0 { u64::from(self.partial_bytes - self.next.byte) } else { 0 }
    }
    /// Length of sequence numbers.
    pub fn sn(&self) -> SnLength {
        self.config.sn
    }
    /// An SDU that was sent and is neither delivered nor lost.
    pub fn sdu(&self, number: u64) -> Option<&T> {
        self.sdus.get(number)?.as_ref()
    }
    /// Lengths of the headers.
    pub fn headers(&self) -> Headers {
        Headers::um(self.config.sn)
    }
    /// Number of SDUs held at both ends.
    pub fn held(&self) -> u64 {
        self.held
    }
    /// The SDUs held at both ends, in ascending order.
    pub fn sdus(&self) -> impl Iterator<Item = &T> {
        self.sdus.iter().flatten()
    }
    /// The slot in which t-Reassembly expires.
    pub fn expires_at(&self) -> Option<Slot> {
        self.rx.expires_at
    }

    /// Fills `room` bytes of a transport block; none without data or without room for a byte.
    pub fn pull(&mut self, above: &mut impl SduSource<T>, room: u32) -> Option<UmBlock> {
        let mut filler = Filler::new(Headers::um(self.config.sn), room);
        let next = || {
            let (sdu, bytes) = above.pull()?;
            self.sdus.push(Some(sdu));
            self.held += 1;
            Some(bytes)
        };
        let (run, bytes) = filler.fill(self.next, self.partial_bytes, next, |_| ());
        if run.from == run.to {
            return None;
        }
        let sn = self.tx_next;
        // The last segment of the first SDU is in the run.
        self.tx_next += u64::from(run.from.byte > 0 && run.to.sdu > run.from.sdu);
        (self.next, self.partial_bytes) = (run.to, bytes);
        Some(UmBlock { run, sn, bytes: room - filler.room() })
    }

    /// A block arrives: SDUs that become complete go to `deliver`, SDUs that the window excludes to
    /// `dropped`.
    pub fn receive(
        &mut self,
        slot: Slot,
        block: &UmBlock,
        mut deliver: impl FnMut(T),
        mut dropped: impl FnMut(T),
    ) {
        let mut sn = block.sn;
        for (sdu, from, to) in block.run.pdus() {
            if (from, to) == (0, END) {
                self.take(sdu).into_iter().for_each(&mut deliver);
                continue;
            }
            self.rx.advance_to(sn, self.config.sn.um_window());
            while let Some(incomplete) = self.rx.pop_outside() {
                self.take(incomplete).into_iter().for_each(&mut dropped);
            }
            if self.rx.receive(sn, sdu, from, to) {
                self.take(sdu).into_iter().for_each(&mut deliver);
            }
            self.rx.skip_delivered();
            self.rx.update_timer(slot, self.config.t_reassembly, self.config.sn.um_window());
            sn += 1;
        }
    }
    /// HARQ lost a block: SDUs with a byte in it cannot be completed and go to `dropped`.
    pub fn on_lost(&mut self, block: &UmBlock, mut dropped: impl FnMut(T)) {
        for (sdu, ..) in block.run.pdus() {
            self.take(sdu).into_iter().for_each(&mut dropped);
        }
    }
    /// Handles the expiry of t-Reassembly (§5.2.2.2.4); does nothing before it.
    pub fn check_timers(&mut self, slot: Slot, mut dropped: impl FnMut(T)) {
        if self.rx.expires_at.is_none_or(|at| at > slot) {
            return;
        }
        self.rx.expires_at = None;
        self.rx.lowest = self.rx.lowest.max(self.rx.timer_trigger);
        while let Some(incomplete) = self.rx.pop_outside() {
            self.take(incomplete).into_iter().for_each(&mut dropped);
        }
        self.rx.skip_delivered();
        self.rx.update_timer(slot, self.config.t_reassembly, self.config.sn.um_window());
    }
    /// Re-establishes both ends (§5.1.2): SDUs held go to `dropped`.
    pub fn reestablish(&mut self, mut dropped: impl FnMut(T)) {
        while let Some(sdu) = self.sdus.pop() {
            sdu.into_iter().for_each(&mut dropped);
        }
        *self = Self::new(self.config);
    }

    fn take(&mut self, sdu: u64) -> Option<T> {
        let taken = self.sdus.get_mut(sdu)?.take()?;
        self.held -= 1;
        while self.sdus.front().is_some_and(Option::is_none) {
            self.sdus.pop();
        }
        Some(taken)
    }
}

/// A segmented SDU at the receiver.
#[derive(Clone, Debug, Default)]
struct Segmented {
    /// Number of the SDU, once a segment was received.
    sdu: Option<u64>,
    received: Ranges<u32>,
}

/// The receiving side's state of segmented SDUs.
#[derive(Clone, Debug, Default)]
struct Rx {
    /// SDUs from RX_Next_Reassembly to RX_Next_Highest.
    segmented: Ring<Segmented>,
    /// Numbers below are given up and have to leave `segmented`.
    lowest: u64,
    /// RX_Timer_Trigger: the number after the one that started t-Reassembly.
    timer_trigger: u64,
    expires_at: Option<Slot>,
}

impl Rx {
    /// Moves the window so that `sn` is below RX_Next_Highest (§5.2.2.2.3).
    fn advance_to(&mut self, sn: u64, window: u64) {
        while self.segmented.end() <= sn {
            self.segmented.push(Segmented::default());
        }
        self.lowest = self.lowest.max(self.segmented.end().saturating_sub(window));
    }
    /// Removes SDUs below the window, up to one of which a segment was received.
    fn pop_outside(&mut self) -> Option<u64> {
        while self.segmented.start() < self.lowest {
            let given_up = self.segmented.pop()?;
            if !is_complete(&given_up.received) && given_up.sdu.is_some() {
                return given_up.sdu;
            }
        }
        None
    }
    /// Adds a segment; whether its SDU is complete now. Segments below RX_Next_Reassembly are discarded.
    fn receive(&mut self, sn: u64, sdu: u64, from: u32, to: u32) -> bool {
        let Some(segmented) = self.segmented.get_mut(sn) else { return false };
        if segmented.received.contains(from, to) {
            return false;
        }
        segmented.sdu = Some(sdu);
        segmented.received.insert(from, to);
        is_complete(&segmented.received)
    }
    /// Moves RX_Next_Reassembly to the first number not reassembled.
    fn skip_delivered(&mut self) {
        while self.segmented.front().is_some_and(|segmented| is_complete(&segmented.received)) {
            self.segmented.pop();
        }
        self.lowest = self.segmented.start();
    }
    /// Stops and starts t-Reassembly (§5.2.2.2.3).
    fn update_timer(&mut self, slot: Slot, t_reassembly: SlotSpan, window: u64) {
        let (lowest, highest) = (self.segmented.start(), self.segmented.end());
        let gap = self.segmented.front().is_some_and(|segmented| has_gap(&segmented.received));
        let missing = highest > lowest + 1 || (highest == lowest + 1 && gap);
        let outside = self.timer_trigger < highest.saturating_sub(window);
        if self.timer_trigger <= lowest || outside || !missing {
            self.expires_at = None;
        }
        if self.expires_at.is_none() && missing {
            self.expires_at = Some(slot + t_reassembly);
            self.timer_trigger = highest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A bearer with 12-bit numbers and a t-Reassembly of 10 slots; SDUs of 100 bytes named 0, 1, ...
    struct Bench {
        um: Um<u32>,
        above: VecDeque<(u32, u32)>,
        delivered: Vec<u32>,
        dropped: Vec<u32>,
    }

    impl Bench {
        fn new(sn: SnLength, sdus: u32) -> Self {
            let um = Um::new(UmConfig { sn, t_reassembly: SlotSpan(10) });
            let above = (0..sdus).map(|name| (name, 100)).collect();
            Self { um, above, delivered: Vec::new(), dropped: Vec::new() }
        }
        fn pull(&mut self, room: u32) -> UmBlock {
            self.um.pull(&mut self.above, room).unwrap()
        }
        fn receive(&mut self, slot: u64, block: &UmBlock) {
            let (delivered, dropped) = (&mut self.delivered, &mut self.dropped);
            self.um.receive(Slot(slot), block, |sdu| delivered.push(sdu), |sdu| dropped.push(sdu));
        }
        fn timers(&mut self, slot: u64) {
            self.um.check_timers(Slot(slot), |sdu| self.dropped.push(sdu));
        }
        fn lose(&mut self, block: &UmBlock) {
            self.um.on_lost(block, |sdu| self.dropped.push(sdu));
        }
    }

    #[test]
    fn complete_sdus_have_a_header_of_one_byte_and_no_number() {
        let mut bench = Bench::new(SnLength::Long, 3);
        let block = bench.pull(1000);
        assert_eq!((block.bytes, block.run.complete(), bench.um.tx_next), (3 * (2 + 1 + 100), 3, 0));
        bench.receive(0, &block);
        assert_eq!((bench.delivered, bench.um.held(), bench.um.expires_at()), (vec![0, 1, 2], 0, None));
    }

    #[test]
    fn a_segmented_sdu_is_delivered_with_its_last_missing_byte() {
        let mut bench = Bench::new(SnLength::Long, 2);
        // 2 + 2 + 46 bytes, 2 + 4 + 44 bytes, 2 + 4 + 10 bytes and a complete SDU of 103.
        let blocks = [50, 50, 200].map(|room| bench.pull(room));
        assert_eq!(blocks.map(|block| block.bytes), [50, 50, 16 + 103]);
        assert_eq!((blocks.map(|block| block.sn), bench.um.tx_next), ([0, 0, 0], 1));
        bench.receive(0, &blocks[2]);
        assert_eq!((&bench.delivered, bench.um.expires_at()), (&vec![1], Some(Slot(10))), "out of order");
        bench.receive(4, &blocks[0]);
        bench.receive(5, &blocks[1]);
        assert_eq!((bench.delivered, bench.um.held(), bench.um.expires_at()), (vec![1, 0], 0, None));
    }

    #[test]
    fn t_reassembly_gives_up_an_sdu_with_a_missing_segment() {
        let mut bench = Bench::new(SnLength::Long, 3);
        let blocks = [60, 100, 100].map(|room| bench.pull(room));
        assert_eq!(blocks.map(|block| block.sn), [0, 0, 1]);
        bench.receive(3, &blocks[1]);
        assert_eq!(bench.um.expires_at(), Some(Slot(13)));
        bench.timers(12);
        assert!(bench.dropped.is_empty());
        bench.timers(13);
        assert_eq!(bench.dropped, [0], "RX_Timer_Trigger is the number after its own");
        bench.receive(14, &blocks[0]);
        assert!(bench.delivered.is_empty(), "its number is below RX_Next_Reassembly");
    }

    #[test]
    fn a_part_lost_by_harq_drops_its_sdus_at_once() {
        let mut bench = Bench::new(SnLength::Long, 3);
        let blocks = [160, 400].map(|room| bench.pull(room));
        bench.lose(&blocks[0]);
        assert_eq!(bench.dropped, [0, 1]);
        bench.receive(2, &blocks[1]);
        assert_eq!((&bench.delivered, bench.um.held()), (&vec![2], 0));
        bench.timers(99);
        assert_eq!((bench.dropped.len(), bench.um.expires_at()), (2, None));
    }

    #[test]
    fn the_window_excludes_numbers_below_it() {
        let mut bench = Bench::new(SnLength::Short, 34);
        let blocks: Vec<_> = (0..34).map(|_| [59, 49].map(|room| bench.pull(room))).collect();
        assert_eq!((blocks[33][1].sn, bench.um.tx_next), (33, 34), "two segments of each SDU");
        bench.receive(0, &blocks[1][1]);
        blocks[2..].iter().flatten().for_each(|block| bench.receive(0, block));
        assert_eq!((bench.delivered.len(), &bench.dropped), (32, &vec![1]), "1 < 34 - 32");
        blocks[0].iter().for_each(|block| bench.receive(1, block));
        assert!(!bench.delivered.contains(&0), "its number is 33 below the highest, the window is 32");
    }

    #[test]
    fn reestablishment_drops_held_sdus() {
        let mut bench = Bench::new(SnLength::Long, 3);
        bench.pull(250);
        bench.um.reestablish(|sdu| bench.dropped.push(sdu));
        assert_eq!((bench.dropped, bench.um.held(), bench.um.available_below()), (vec![0, 1, 2], 0, 0));
    }
}
