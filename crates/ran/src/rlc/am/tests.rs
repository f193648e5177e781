//! One direction of an AM bearer over a channel that loses and delays PDUs and status reports.

use super::pdu::header_len;
use super::status::Nack;
use super::*;
use crate::pdcp;
use crate::rlc::Reassembled;
use crate::slot::{Slot, SlotSpan};
use paceline_net::{Bytes, DropTail, Instant, Packet, SduQueue, SeqNumber, Stream, TcpFlags, TcpHeader};

/// Chosen: values of TS 36.331 that make a test short, except the threshold.
const CONFIG: AmConfig = AmConfig {
    t_poll_retransmit: SlotSpan(60),
    poll_pdu: Some(16),
    poll_byte: Some(25_000),
    max_retx_threshold: 1000, // above the standard's range: short reports need many retransmissions
    t_status_prohibit: SlotSpan(20),
};

/// A source with a PDCP of its own: RLC AM does not use COUNT.
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
fn ids(out: &[Reassembled]) -> Vec<u32> {
    let id = |r: &Reassembled| match r {
        Reassembled::Sdu(pdu) => pdu.packet().unwrap().tcp_header().unwrap().seq.0,
        Reassembled::Incomplete(_) => panic!("AM delivers nothing incomplete"),
    };
    out.iter().map(id).collect()
}
/// A buffer with `count` packets of `40 + payload_len` bytes.
fn filled(count: u32, payload_len: u32) -> DropTail {
    let mut queue = DropTail::new(Bytes(1 << 30));
    (0..count).for_each(|i| queue.push(Instant::ZERO, packet(i, payload_len)));
    queue
}
fn waiting(queue: &DropTail) -> pdcp::Waiting {
    pdcp::Tx::default().waiting(pdcp::Leg::Main, queue)
}
fn am(config: AmConfig) -> Am {
    Am::new(config, SlotSpan(40))
}

/// A bearer direction with the PDUs in flight both ways.
struct Exchange {
    am: Am,
    queue: DropTail,
    data: Vec<(u64, Pdu)>,
    reports: Vec<(u64, Status)>,
    out: Vec<Reassembled>,
    statuses: u64,
    segments: u64,
}

impl Exchange {
    /// One slot: PDUs that are due arrive, then data of `room` bytes and a status report are sent.
    fn step(&mut self, slot: u64, room: u32, report_room: u32, fate: &mut dyn FnMut() -> Option<u64>) {
        while let Some(at) = self.data.iter().position(|(due, _)| *due <= slot) {
            let (_, pdu) = self.data.remove(at);
            self.am.receive(Slot(slot), &pdu, &mut self.out);
        }
        while let Some(at) = self.reports.iter().position(|(due, _)| *due <= slot) {
            let (_, status) = self.reports.remove(at);
            self.am.on_status(&status);
        }
        self.am.check_timers(Slot(slot), waiting(&self.queue));
        let delay = fate();
        let mut left = room;
        while let Some(pdu) = self.am.pull(Slot(slot), &mut source!(&mut self.queue), left) {
            assert!(pdu.len <= left && pdu.data > 0);
            left -= pdu.len;
            self.segments += u64::from(pdu.segment);
            if let Some(delay) = delay {
                self.data.push((slot + delay, pdu));
            }
        }
        let expected = self.am.status_len();
        if let Some(status) = self.am.pull_status(Slot(slot), report_room) {
            assert_eq!(status.len, expected.min(status.len));
            self.statuses += 1;
            if let Some(delay) = fate() {
                self.reports.push((slot + delay, status));
            }
        }
    }
}

/// Sends 2000 packets in blocks of random size; a share `loss` of the blocks is lost in either direction.
fn run_exchange(seed: u64, loss: f64, report_room: u32) -> Exchange {
    let mut stream = Stream::new(seed, "rlc-am");
    let mut sizes = Stream::new(seed, "sizes");
    let (queue, data) = (filled(2000, 400), Vec::new());
    let mut exchange = Exchange {
        am: am(CONFIG),
        queue,
        data,
        reports: Vec::new(),
        out: Vec::new(),
        statuses: 0,
        segments: 0,
    };
    let mut slot = 0;
    while exchange.am.held() + exchange.queue.packets() as u64 > 0
        || !exchange.am.idle()
        || exchange.am.available(waiting(&exchange.queue)) > 0
    {
        let room = sizes.below(2500) as u32;
        let mut fate = || (!stream.chance(loss)).then(|| 4 + 8 * stream.below(4));
        exchange.step(slot, room, report_room, &mut fate);
        assert_eq!(
            exchange.out.len() as u64 + exchange.am.held() + exchange.queue.packets() as u64,
            2000,
            "seed {seed}"
        );
        slot += 1;
        assert!(slot < 60_000, "seed {seed}: the exchange ends");
    }
    assert!(!exchange.am.radio_link_failed());
    exchange
}

#[test]
fn everything_arrives_in_order_and_once_under_heavy_loss() {
    for seed in 0..20 {
        let exchange = run_exchange(seed, 0.3, 1000);
        assert!(ids(&exchange.out).iter().copied().eq(0..2000), "seed {seed}");
        assert!(exchange.segments > 10, "retransmissions were segmented");
    }
}

#[test]
fn truncated_status_reports_lose_nothing() {
    for seed in 0..10 {
        assert!(ids(&run_exchange(seed, 0.3, 9).out).iter().copied().eq(0..2000), "seed {seed}");
    }
}

#[test]
fn without_loss_nothing_is_retransmitted() {
    for seed in 0..5 {
        let exchange = run_exchange(seed, 0.0, 1000);
        assert!(ids(&exchange.out).iter().copied().eq(0..2000));
        assert_eq!(exchange.segments, 0);
        assert!((10..200).contains(&exchange.statuses), "{}", exchange.statuses);
    }
}

#[test]
fn headers_have_the_lengths_of_the_table() {
    // Data 2 B, segment 4 B, and 1.5 B for each element but the last.
    assert_eq!([1, 2, 3, 4].map(|n| header_len(false, n)), [2, 4, 5, 7]);
    assert_eq!([1, 2, 3].map(|n| header_len(true, n)), [4, 6, 7]);
    // STATUS: 15 bits, 12 per NACK, 42 with offsets.
    let whole = Nack { sn: 0, range: None };
    let part = Nack { sn: 0, range: Some((1, 2)) };
    assert_eq!((whole.bits(), part.bits()), (12, 42));
    assert_eq!([0, 12, 24, 42, 54].map(status::len_of), [2, 4, 5, 8, 9]);
    // Three 42-byte PDCP PDUs in one PDU; then 50 bytes: one element, a length indicator and 4 bytes more.
    let pdu = am(CONFIG).pull(Slot(0), &mut source!(&mut filled(3, 0)), 1000).unwrap();
    assert_eq!((pdu.data, pdu.len), (126, 131));
    let pdu = am(CONFIG).pull(Slot(0), &mut source!(&mut filled(2, 0)), 50).unwrap();
    assert_eq!((pdu.data, pdu.len), (46, 50));
}

#[test]
fn a_retransmission_is_segmented_to_the_grant_and_gaps_are_reported() {
    let (mut am, mut queue, mut out) = (am(CONFIG), filled(3, 358), Vec::new());
    let lost = am.pull(Slot(0), &mut source!(&mut queue), 1000).unwrap();
    assert_eq!((lost.len, lost.poll, lost.segment), (1000, false, false));
    let second = am.pull(Slot(1), &mut source!(&mut queue), 1000).unwrap();
    assert!(second.poll, "the buffer is empty");
    am.receive(Slot(5), &second, &mut out);
    assert_eq!(am.status_len(), 0, "t-Reordering runs for the first PDU");
    am.check_timers(Slot(45), waiting(&queue));
    let status = am.pull_status(Slot(45), 100).unwrap();
    assert_eq!(status, Status { ack_sn: 2, nacks: vec![Nack { sn: 0, range: None }], len: 4 });
    am.on_status(&status);
    assert_eq!(am.available(waiting(&queue)), u64::from(lost.data));

    let parts: Vec<Pdu> = std::iter::from_fn(|| am.pull(Slot(50), &mut source!(&mut queue), 404)).collect();
    assert_eq!(parts.iter().map(|p| p.data).sum::<u32>(), lost.data);
    assert!(parts.iter().all(|p| p.segment && p.sn == 0 && p.retransmission && p.len <= 404));
    // The first has one element; the second crosses from the first SDU (400 bytes) into the second.
    assert_eq!(parts.iter().map(|p| (p.so, p.data)).collect::<Vec<_>>(), [(0, 400), (400, 400), (800, 195)]);
    assert_eq!(parts.iter().map(|p| p.last).collect::<Vec<_>>(), [false, false, true]);
    assert!(parts[2].poll);

    am.receive(Slot(55), &parts[0], &mut out);
    assert_eq!(ids(&out), [0], "SDUs in sequence are delivered");
    am.receive(Slot(55), &parts[2], &mut out);
    (56..200).for_each(|slot| am.rx.check_timers(Slot(slot)));
    let status = am.pull_status(Slot(200), 100).unwrap();
    let gap = Nack { sn: 0, range: Some((400, 800)) };
    assert_eq!(status, Status { ack_sn: 2, nacks: vec![gap], len: 8 });
    am.on_status(&status);
    let again = am.pull(Slot(205), &mut source!(&mut queue), 1000).unwrap();
    assert_eq!((again.so, again.data, again.len, again.last), (400, 400, 404, false));
    am.receive(Slot(210), &again, &mut out);
    am.receive(Slot(210), &again, &mut out);
    assert_eq!(ids(&out), [0, 1, 2]);
    assert_eq!(am.held(), 0);
}

#[test]
fn polls_follow_the_counters() {
    let config = AmConfig { poll_pdu: Some(4), poll_byte: None, ..CONFIG };
    let (mut by_pdu, mut queue) = (am(config), filled(100, 358));
    let polls: Vec<bool> =
        (0..9).map(|t| by_pdu.pull(Slot(t), &mut source!(&mut queue), 402).unwrap().poll).collect();
    assert_eq!(polls, [false, false, false, true, false, false, false, true, false]);
    let config = AmConfig { poll_pdu: None, poll_byte: Some(1000), ..CONFIG };
    let (mut by_byte, mut queue) = (am(config), filled(100, 358));
    let polls: Vec<bool> =
        (0..6).map(|t| by_byte.pull(Slot(t), &mut source!(&mut queue), 402).unwrap().poll).collect();
    assert_eq!(polls, [false, false, true, false, false, true]);
}

#[test]
fn a_full_window_stalls_polls_and_resumes_after_the_status_report() {
    let config = AmConfig { poll_pdu: None, poll_byte: None, ..CONFIG };
    let (mut am, mut queue, mut out) = (am(config), filled(600, 358), Vec::new());
    let pdus: Vec<Pdu> = (0..).map_while(|t| am.pull(Slot(t), &mut source!(&mut queue), 402)).collect();
    assert_eq!(pdus.len(), 512);
    assert_eq!(pdus.iter().position(|pdu| pdu.poll), Some(511));
    assert!(!am.sendable(waiting(&queue)) && am.available(waiting(&queue)) > 0);
    // Without a status report, the newest PDU is retransmitted with a poll after t-PollRetransmit.
    am.check_timers(Slot(570), waiting(&queue));
    assert!(am.pull(Slot(570), &mut source!(&mut queue), 402).is_none());
    am.check_timers(Slot(571), waiting(&queue));
    let again = am.pull(Slot(571), &mut source!(&mut queue), 402).unwrap();
    assert_eq!((again.sn, again.poll, again.segment), (511, true, false));
    assert!(am.pull(Slot(571), &mut source!(&mut queue), 402).is_none());
    pdus.iter().for_each(|pdu| am.receive(Slot(580), pdu, &mut out));
    let status = am.pull_status(Slot(580), 100).unwrap();
    assert_eq!((status.ack_sn, status.len), (512, 2));
    am.on_status(&status);
    assert!(am.sendable(waiting(&queue)));
    let rest = (0..).map_while(|t| am.pull(Slot(600 + t), &mut source!(&mut queue), 402)).count();
    assert_eq!(rest, 88);
}

#[test]
fn status_prohibit_delays_reports_and_repeated_polls_are_answered() {
    let (mut am, mut queue, mut out) = (am(CONFIG), filled(1, 0), Vec::new());
    let pdu = am.pull(Slot(0), &mut source!(&mut queue), 100).unwrap();
    am.receive(Slot(4), &pdu, &mut out);
    assert_eq!(am.status_len(), 2);
    assert!(am.pull_status(Slot(4), 1).is_none(), "no room");
    assert!(am.pull_status(Slot(4), 2).is_some());
    am.receive(Slot(8), &pdu, &mut out);
    assert_eq!((am.status_len(), out.len()), (0, 1), "t-StatusProhibit runs; nothing is delivered twice");
    am.check_timers(Slot(23), waiting(&queue));
    assert_eq!(am.status_len(), 0);
    am.check_timers(Slot(24), waiting(&queue));
    assert_eq!(am.status_len(), 2);
}

#[test]
fn a_truncated_status_report_acknowledges_nothing_beyond_its_nacks() {
    let (mut am, mut queue, mut out) = (am(CONFIG), filled(20, 358), Vec::new());
    let pdus: Vec<Pdu> = (0..20).map(|t| am.pull(Slot(t), &mut source!(&mut queue), 402).unwrap()).collect();
    pdus.iter().skip(1).step_by(2).for_each(|pdu| am.receive(Slot(20), pdu, &mut out));
    // t-Reordering runs for the first gap, then again for the later ones.
    am.check_timers(Slot(60), waiting(&queue));
    assert_eq!(am.status_len(), (15u32 + 12).div_ceil(8));
    am.check_timers(Slot(100), waiting(&queue));
    assert_eq!(am.status_len(), (15u32 + 10 * 12).div_ceil(8));
    let status = am.pull_status(Slot(100), 6).unwrap(); // 48 bits: two of ten
    assert_eq!(status.nacks.iter().map(|nack| nack.sn).collect::<Vec<_>>(), [0, 2]);
    assert_eq!((status.ack_sn, status.len), (4, 5));
}

#[test]
fn a_pdu_that_never_arrives_fails_the_radio_link() {
    let config = AmConfig { max_retx_threshold: 4, ..CONFIG };
    let (mut am, mut queue) = (am(config), filled(3, 0));
    assert!(am.pull(Slot(0), &mut source!(&mut queue), 60).is_some());
    let (mut sent, mut failed_at) = (0, None);
    for slot in 1..1000 {
        am.check_timers(Slot(slot), waiting(&queue));
        failed_at = failed_at.or(am.radio_link_failed().then_some(slot));
        sent += u64::from(failed_at.is_none() && am.pull(Slot(slot), &mut source!(&mut queue), 60).is_some());
    }
    // Two more PDUs take the other bytes, then four retransmissions, then the fifth expiry of
    // t-PollRetransmit.
    assert_eq!((sent, failed_at), (2 + 4, Some(2 + 5 * 60)));
    let packets = am.unconfirmed().filter(|pdu| pdu.packet().is_some()).count();
    assert_eq!((packets, am.held()), (3, 3), "another path can carry them");
}

#[test]
fn sdus_received_out_of_sequence_are_delivered_at_the_end_and_stay_as_copies() {
    // Three PDUs of an SDU and a half each; the first is lost.
    let (mut am, mut queue, mut out) = (am(CONFIG), filled(5, 0), Vec::new());
    let pdus: Vec<Pdu> =
        (0..3).map(|slot| am.pull(Slot(slot), &mut source!(&mut queue), 67).unwrap()).collect();
    pdus[1..].iter().for_each(|pdu| am.receive(Slot(5), pdu, &mut out));
    assert!(out.is_empty() && am.held() == 5);
    am.deliver_out_of_sequence(&mut out);
    assert_eq!((ids(&out), am.held()), (vec![2, 3], 3), "of SDUs 1 and 4 a part is missing");
    let held: Vec<bool> = am.unconfirmed().map(|pdu| pdu.packet().is_some()).collect();
    assert_eq!(held, [true, true, false, false, true]);
}

#[test]
fn a_lost_pdu_is_retransmitted_after_its_successors_were_discarded() {
    let (mut am, mut queue) = (am(CONFIG), filled(2, 0));
    assert!(!am.pull(Slot(0), &mut source!(&mut queue), 44).unwrap().poll);
    while queue.pop(Instant::ZERO).is_some() {}
    (1..=61).for_each(|slot| am.check_timers(Slot(slot), waiting(&queue)));
    let again = am.pull(Slot(61), &mut source!(&mut queue), 44).unwrap();
    assert_eq!((again.sn, again.poll, again.retransmission), (0, true, true));
}
