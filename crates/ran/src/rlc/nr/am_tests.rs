//! AM of NR by the clauses of TS 38.322: cases worked by hand.

use super::am::Am;
use super::am_block::{AmBlock, AmConfig};
use super::headers::SnLength;
use super::ranges::END;
use super::status::{Nack, Status};
use crate::slot::{Slot, SlotSpan};
use std::collections::VecDeque;

/// t-PollRetransmit, t-Reassembly and t-StatusProhibit of 50, 10 and 5 slots; no limit for polls.
const CONFIG: AmConfig = AmConfig {
    sn: SnLength::Short,
    t_poll_retransmit: SlotSpan(50),
    poll_pdu: None,
    poll_byte: None,
    max_retx_threshold: 4,
    t_reassembly: SlotSpan(10),
    t_status_prohibit: SlotSpan(5),
};
/// Bytes in a block of a complete SDU of 100 bytes with a 12-bit number (TS 38.322 §6.2.2.4).
const WHOLE: u32 = 2 + 2 + 100;

/// A bearer with SDUs of 100 bytes named 0, 1, ...
struct Bench {
    am: Am<u64>,
    above: VecDeque<(u64, u32)>,
    delivered: Vec<u64>,
}

impl Bench {
    fn new(config: AmConfig, sdus: u64) -> Self {
        Self {
            am: Am::new(config),
            above: (0..sdus).map(|name| (name, 100)).collect(),
            delivered: Vec::new(),
        }
    }
    fn pull(&mut self, slot: u64, room: u32) -> AmBlock {
        self.am.pull(Slot(slot), &mut self.above, room).unwrap()
    }
    /// A block with each SDU of the next `sdus`.
    fn pull_each<const N: usize>(&mut self) -> [AmBlock; N] {
        std::array::from_fn(|_| self.pull(0, WHOLE))
    }
    fn receive(&mut self, slot: u64, block: &AmBlock) {
        self.am.receive(Slot(slot), block, |sdu| self.delivered.push(sdu));
    }
    fn timers(&mut self, slot: u64) {
        self.am.check_timers(Slot(slot), self.above.is_empty());
    }
    fn status(&mut self, slot: u64) -> Status {
        self.am.pull_status(Slot(slot), 1000).unwrap()
    }
}

fn whole(first: u64, count: u8) -> Nack {
    Nack { first, count, from: 0, to: END }
}

fn pdus(block: &AmBlock) -> Vec<(u64, u32, u32)> {
    block.pdus().collect()
}

#[test]
fn every_pdu_has_the_header_of_its_sequence_number() {
    for (sn, header) in [(SnLength::Short, 2), (SnLength::Long, 3)] {
        let mut bench = Bench::new(AmConfig { sn, ..CONFIG }, 3);
        assert_eq!(bench.pull(0, 60).bytes, 60, "2 + header + a first segment");
        let rest = 100 - (58 - header);
        let block = bench.pull(0, 1000);
        assert_eq!(block.bytes, (2 + header + 2 + rest) + 2 * (2 + header + 100));
    }
}

#[test]
fn sdus_are_delivered_when_complete_in_any_order() {
    let mut bench = Bench::new(CONFIG, 3);
    let [a, b, c] = bench.pull_each();
    for block in [&c, &a, &a, &b] {
        bench.receive(1, block);
    }
    assert_eq!((bench.delivered, bench.am.held()), (vec![2, 0, 1], 0), "the second copy of a is discarded");
}

#[test]
fn the_last_pdu_of_an_empty_buffer_polls() {
    let mut bench = Bench::new(CONFIG, 3);
    let [a, b, c] = bench.pull_each();
    assert_eq!([a.polls, b.polls, c.polls], [None, None, Some((2, 2))]);
    bench.receive(1, &a);
    bench.receive(1, &b);
    assert_eq!(bench.am.status_bytes(Slot(1)), 0);
    bench.receive(1, &c);
    assert_eq!(bench.am.status_bytes(Slot(1)), 2 + 3);
    let status = bench.status(1);
    assert_eq!(status, Status { ack_sn: 3, nacks: vec![], len: 3 });
    bench.am.on_status(&status);
    assert_eq!((bench.am.window_used(), bench.am.next_event()), (0, None), "t-PollRetransmit is stopped");
}

#[test]
fn poll_pdu_and_poll_byte_count_new_data() {
    let mut bench = Bench::new(AmConfig { poll_pdu: Some(4), ..CONFIG }, 30);
    assert_eq!(bench.pull(0, 11 * WHOLE).polls, Some((3, 7)));
    assert_eq!(bench.pull(0, WHOLE).polls, Some((11, 11)));
    let mut bench = Bench::new(AmConfig { poll_byte: Some(250), ..CONFIG }, 30);
    assert_eq!(bench.pull(0, 5 * WHOLE).polls, Some((2, 2)), "300 bytes, then 200");
    assert_eq!(bench.pull(0, WHOLE).polls, Some((5, 5)));
}

#[test]
fn t_reassembly_reports_missing_sdus_and_segments_once_it_expires() {
    let mut bench = Bench::new(CONFIG, 8);
    let [a, _, _, d] = bench.pull_each();
    let segments = [40, 40, 40].map(|room| bench.pull(0, room));
    assert_eq!(segments.each_ref().map(pdus), [[(4, 0, 36)], [(4, 36, 70)], [(4, 70, END)]].map(Vec::from));
    let [f] = bench.pull_each();
    for block in [&a, &d, &segments[1], &f] {
        bench.receive(20, block);
    }
    assert_eq!(bench.am.status_bytes(Slot(29)), 0);
    bench.timers(29);
    assert_eq!(bench.am.status_bytes(Slot(29)), 0);
    bench.timers(30);
    // The timer was started by SDU 3; the report ends at the first missing SDU behind it.
    let status = bench.status(30);
    assert_eq!(status, Status { ack_sn: 4, nacks: vec![whole(1, 2)], len: 3 + 2 + 1 });
    bench.timers(40);
    let nack = |from, to| Nack { first: 4, count: 1, from, to };
    let nacks = vec![whole(1, 2), nack(0, 36), nack(70, END)];
    assert_eq!(bench.status(40), Status { ack_sn: 6, nacks, len: 3 + 3 + 6 + 6 });
}

#[test]
fn a_poll_above_a_gap_waits_for_t_reassembly() {
    let mut bench = Bench::new(CONFIG, 2);
    let [_, b] = bench.pull_each();
    assert_eq!(b.polls, Some((1, 1)));
    bench.receive(3, &b);
    assert_eq!(bench.am.status_bytes(Slot(3)), 0, "HARQ may still deliver the first (§5.3.4)");
    bench.timers(13);
    assert_eq!(bench.status(13), Status { ack_sn: 2, nacks: vec![whole(0, 1)], len: 5 });
}

#[test]
fn t_status_prohibit_delays_the_next_report() {
    let mut bench = Bench::new(AmConfig { poll_pdu: Some(1), ..CONFIG }, 3);
    let [a, b, c] = bench.pull_each();
    bench.receive(1, &a);
    assert_eq!(bench.status(1).ack_sn, 1);
    bench.receive(2, &b);
    bench.receive(3, &c);
    assert_eq!((bench.am.pull_status(Slot(5), 100), bench.am.status_bytes(Slot(5))), (None, 0));
    assert_eq!(bench.status(6).ack_sn, 3, "one report for both polls");
    assert_eq!(bench.am.pull_status(Slot(60), 100), None);
}

#[test]
fn a_report_without_room_for_all_nacks_confirms_nothing_that_it_does_not_name() {
    let mut bench = Bench::new(CONFIG, 8);
    let blocks: [AmBlock; 8] = bench.pull_each();
    for at in [1, 3, 5, 7] {
        bench.receive(0, &blocks[at]);
    }
    bench.timers(10);
    bench.timers(20);
    assert_eq!(bench.am.status_bytes(Slot(20)), 2 + 3 + 4 * 2);
    assert_eq!(bench.am.pull_status(Slot(20), 4), None);
    let status = bench.am.pull_status(Slot(20), 2 + 3 + 5).unwrap();
    assert_eq!(status, Status { ack_sn: 4, nacks: vec![whole(0, 1), whole(2, 1)], len: 7 });
    bench.am.on_status(&status);
    assert_eq!(bench.am.available_below(), 200);
}

#[test]
fn retransmissions_go_first_and_are_segmented_again() {
    let mut bench = Bench::new(CONFIG, 4);
    let [_, b] = bench.pull_each();
    bench.receive(0, &b);
    bench.am.on_status(&Status { ack_sn: 2, nacks: vec![whole(0, 1)], len: 5 });
    assert_eq!(bench.am.available_below(), 100);
    let first = bench.pull(11, 54);
    assert_eq!((pdus(&first), first.bytes, first.new), (vec![(0, 0, 50)], 54, None));
    let rest = bench.pull(11, 56 + WHOLE);
    assert_eq!((pdus(&rest), rest.bytes), (vec![(0, 50, END), (2, 0, END)], 56 + WHOLE));
    bench.receive(12, &rest);
    assert_eq!(bench.delivered, [1, 2]);
    bench.receive(13, &first);
    assert_eq!(bench.delivered, [1, 2, 0]);
}

#[test]
fn a_block_of_lost_sdus_is_retransmitted_as_one_run() {
    let mut bench = Bench::new(CONFIG, 60);
    let block = bench.pull(0, 50 * WHOLE);
    bench.am.on_status(&Status { ack_sn: 50, nacks: vec![whole(0, 50)], len: 6 });
    let again = bench.pull(9, 50 * WHOLE);
    assert_eq!((again.retransmissions, again.bytes), (vec![block.new.unwrap()], block.bytes));
}

#[test]
fn only_bytes_that_were_sent_are_retransmitted() {
    let mut bench = Bench::new(CONFIG, 2);
    bench.pull(0, 44);
    let missing = Nack { first: 0, count: 1, from: 10, to: END };
    bench.am.on_status(&Status { ack_sn: 1, nacks: vec![missing], len: 9 });
    assert_eq!(bench.am.available_below(), 30 + 60);
    assert_eq!(pdus(&bench.pull(1, 1000)), [(0, 10, 40), (0, 40, END), (1, 0, END)]);
}

#[test]
fn t_poll_retransmit_sends_the_newest_sdu_again_with_a_poll() {
    let mut bench = Bench::new(CONFIG, 2);
    let [_, _] = bench.pull_each();
    assert_eq!(bench.am.next_event(), Some(Slot(50)));
    bench.timers(49);
    assert!(!bench.am.sendable(true));
    bench.timers(50);
    let block = bench.pull(50, 1000);
    assert_eq!((pdus(&block), block.polls), (vec![(1, 0, END)], Some((1, 1))));
}

#[test]
fn with_data_left_t_poll_retransmit_polls_in_the_next_pdu() {
    let mut bench = Bench::new(AmConfig { poll_pdu: Some(2), ..CONFIG }, 9);
    let [_, b] = bench.pull_each();
    assert_eq!(b.polls, Some((1, 1)));
    bench.timers(50);
    let block = bench.pull(50, WHOLE);
    assert_eq!((pdus(&block), block.polls), (vec![(2, 0, END)], Some((2, 2))));
}

#[test]
fn max_retx_threshold_fails_the_radio_link() {
    let mut bench = Bench::new(CONFIG, 1);
    bench.pull(0, WHOLE);
    let nack = |from, to| Nack { first: 0, count: 1, from, to };
    for retransmission in 0..=4 {
        assert!(!bench.am.radio_link_failed(), "RETX_COUNT {retransmission}");
        // Two NACKs of one STATUS PDU count once; one for pending bytes does not count.
        let status = Status { ack_sn: 1, nacks: vec![nack(0, 20), nack(40, END)], len: 15 };
        bench.am.on_status(&status);
        bench.am.on_status(&status);
        bench.pull(0, 1000);
    }
    assert!(bench.am.radio_link_failed());
}

#[test]
fn a_full_window_holds_new_data_back_and_is_counted() {
    let mut bench = Bench::new(CONFIG, 3000);
    let block = bench.pull(0, 3000 * WHOLE);
    assert_eq!((block.new.unwrap().complete(), bench.am.window_used()), (2048, 2048));
    assert_eq!((block.polls, bench.am.window_stalls()), (Some((2047, 2047)), 1));
    assert!(!bench.am.sendable(false) && bench.am.pull(Slot(1), &mut bench.above, 1000).is_none());
    assert_eq!(bench.am.window_stalls(), 2);
    bench.receive(1, &block);
    let status = bench.status(1);
    bench.am.on_status(&status);
    assert_eq!(bench.pull(2, 3000 * WHOLE).new.unwrap().complete(), 952);
    assert_eq!(bench.am.window_stalls(), 2);
}

#[test]
fn an_sdu_discarded_before_its_first_transmission_leaves_no_gap() {
    let mut bench = Bench::new(CONFIG, 4);
    let a = bench.pull(0, 50);
    bench.above.retain(|(name, _)| *name == 3);
    let b = bench.pull(0, 1000);
    assert_eq!(pdus(&b), [(0, 46, END), (1, 0, END)], "§5.4: SDU 0 was sent in part and stays");
    bench.receive(1, &a);
    bench.receive(1, &b);
    assert_eq!((&bench.delivered, bench.am.window_used()), (&vec![0, 3], 2));
    assert_eq!(bench.status(1).ack_sn, 2);
}

#[test]
fn data_that_vanish_behind_the_last_pdu_do_not_leave_it_without_a_poll() {
    let mut bench = Bench::new(CONFIG, 2);
    let [a] = bench.pull_each();
    assert_eq!(a.polls, None);
    bench.above.clear();
    bench.timers(1);
    assert_eq!(bench.am.next_event(), Some(Slot(51)));
    bench.timers(51);
    assert_eq!(bench.pull(51, 1000).polls, Some((0, 0)));
}

#[test]
fn an_old_report_changes_nothing() {
    let mut bench = Bench::new(CONFIG, 4);
    let _: [AmBlock; 4] = bench.pull_each();
    bench.am.on_status(&Status { ack_sn: 3, nacks: vec![], len: 3 });
    bench.am.on_status(&Status { ack_sn: 2, nacks: vec![whole(0, 2)], len: 6 });
    assert_eq!((bench.am.available_below(), bench.am.window_used()), (0, 1));
}

#[test]
fn the_unconfirmed_sdus_can_be_sent_again_on_another_path() {
    let mut bench = Bench::new(CONFIG, 4);
    let blocks: [AmBlock; 4] = bench.pull_each();
    for at in [0, 2] {
        bench.receive(0, &blocks[at]);
    }
    bench.am.on_status(&Status { ack_sn: 1, nacks: vec![], len: 3 });
    let left: Vec<(u64, bool)> = bench.am.unconfirmed().map(|(sdu, delivered)| (*sdu, delivered)).collect();
    assert_eq!(left, [(1, false), (2, true), (3, false)]);
}
