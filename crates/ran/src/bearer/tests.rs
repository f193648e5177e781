//! Bearers that change their path at random times, both directions, over channels that lose and delay blocks:
//! every packet ends once and in order, and is lost only where it was meant to be.

use super::*;
use crate::AmConfig;
use crate::pdcp::{NrPdcp, PdcpSn};
use crate::rlc::nr::{self, SnLength};
use crate::slot::SlotClock;
use paceline_net::{Bytes, DropTail, SeqNumber, Stream, TcpHeader};
use std::collections::BTreeSet;

/// Packets of a run and direction. Chosen: some hundred blocks, several switches.
const PACKETS: u32 = 1000;
/// Largest delay of a block in slots. Chosen: four HARQ transmissions of LTE.
const MAX_DELAY: u64 = 32;
/// t-Reordering of NR's UM in slots. Chosen: above [`MAX_DELAY`] and t-Reassembly.
const T_REORDERING: SlotSpan = SlotSpan(100);

/// The second path.
const SECOND: (Leg, Hop) = (Leg::Second, Hop::First);

#[derive(Clone, Copy, PartialEq, Debug)]
enum RlcMode {
    LteUm,
    LteAm,
    NrUm(SnLength),
    NrAm(SnLength),
}

impl RlcMode {
    fn is_am(self) -> bool {
        matches!(self, Self::LteAm | Self::NrAm(_))
    }
    fn rlc(self) -> RlcConfig {
        let clock = SlotClock::default();
        match self {
            Self::LteUm => RlcConfig::Um,
            Self::LteAm => RlcConfig::Am(AmConfig {
                t_poll_retransmit: SlotSpan(60),
                poll_pdu: Some(8),
                poll_byte: None,
                max_retx_threshold: 1000,
                t_status_prohibit: SlotSpan(10),
            }),
            Self::NrUm(sn) => RlcConfig::NrUm(nr::UmConfig { sn, ..nr::UmConfig::new(clock) }),
            Self::NrAm(sn) => {
                let max_retx_threshold = 1000;
                RlcConfig::NrAm(nr::AmConfig { sn, max_retx_threshold, ..nr::AmConfig::new(clock) })
            }
        }
    }
    fn pdcp(self) -> PdcpConfig {
        let sn = match self {
            Self::LteUm | Self::LteAm => return PdcpConfig::Lte,
            Self::NrUm(SnLength::Short) | Self::NrAm(SnLength::Short) => PdcpSn::Twelve,
            Self::NrUm(SnLength::Long) | Self::NrAm(SnLength::Long) => PdcpSn::Eighteen,
        };
        // SDUs of UM are lost: PDCP has to give them up. In AM only a switch could lose one.
        let t_reordering = (!self.is_am()).then_some(T_REORDERING);
        PdcpConfig::Nr(NrPdcp { sn, sdap_header: true, t_reordering })
    }
}

const MODES: [RlcMode; 6] = [
    RlcMode::LteUm,
    RlcMode::LteAm,
    RlcMode::NrUm(SnLength::Short),
    RlcMode::NrUm(SnLength::Long),
    RlcMode::NrAm(SnLength::Short),
    RlcMode::NrAm(SnLength::Long),
];

fn packet(number: u32) -> Packet {
    let address = "198.18.0.1".parse().unwrap();
    let tcp = TcpHeader { seq: SeqNumber(number), payload_len: 900, ..TcpHeader::default() };
    Packet::tcp(address, address, tcp)
}

/// The ends of the packets of a direction.
#[derive(Default)]
struct Ends {
    delivered: Vec<u32>,
    dropped: BTreeSet<u32>,
    copies: u64,
}

impl Ends {
    fn add(&mut self, ended: Ended) {
        let number = |packet: &Packet| packet.tcp_header().unwrap().seq.0;
        match ended {
            Ended::Delivered(packet) => self.delivered.push(number(&packet)),
            Ended::Dropped(packet, _) => assert!(self.dropped.insert(number(&packet)), "dropped twice"),
            Ended::Copy => self.copies += 1,
        }
    }
}

/// A block in flight on the path with this number.
struct Flying {
    path: u32,
    due: u64,
    lost: bool,
    pdu: rlc::Pdu,
}

/// One direction with its blocks in flight and what became of its packets.
struct Way {
    bearer: Bearer,
    flying: Vec<Flying>,
    /// STATUS PDUs about this direction.
    statuses: Vec<Flying>,
    ends: Ends,
    entered: u32,
}

impl Way {
    fn new(mode: RlcMode) -> Self {
        let buffer = Box::new(DropTail::new(Bytes(1 << 30)));
        let bearer = Bearer::new(buffer, mode.pdcp(), mode.rlc(), SlotSpan(50));
        Self { bearer, flying: vec![], statuses: vec![], ends: Ends::default(), entered: 0 }
    }
    /// Blocks and STATUS PDUs that are due arrive; `main` is the number of the bearer's path.
    fn arrive(&mut self, reverse: &mut Bearer, slot: u64, main: u32) {
        let Self { bearer, flying, statuses, ends, .. } = self;
        let mut reassembled = Vec::new();
        while let Some(at) = flying.iter().position(|block| block.due <= slot) {
            let Flying { path, lost, pdu, .. } = flying.remove(at);
            match (path == main, lost) {
                (true, false) => bearer.rlc.receive(Slot(slot), pdu, &mut reassembled),
                (true, true) => bearer.on_pdu_lost(pdu, DropReason::HarqFailed, |ended| ends.add(ended)),
                (false, false) => {
                    bearer.hop_rlc_mut(SECOND).unwrap().receive(Slot(slot), pdu, &mut reassembled)
                }
                (false, true) => {
                    bearer.hop_pdu_lost(SECOND, pdu, DropReason::HarqFailed, |ended| ends.add(ended));
                }
            }
        }
        while let Some(at) = statuses.iter().position(|status| status.due <= slot) {
            let Flying { path, pdu, .. } = statuses.remove(at);
            let rlc = if path == main { Some(&mut bearer.rlc) } else { bearer.hop_rlc_mut(SECOND) };
            rlc.into_iter().for_each(|rlc| rlc.on_status(&pdu));
        }
        bearer.deliver(reverse, Slot(slot), &mut reassembled, |ended| ends.add(ended));
    }
    /// A path with this number is left: MAC is reset.
    fn lose(&mut self, path: u32, main: u32) {
        let Self { bearer, flying, statuses, ends, .. } = self;
        statuses.retain(|status| status.path != path);
        while let Some(at) = flying.iter().position(|block| block.path == path) {
            let (pdu, reason) = (flying.remove(at).pdu, DropReason::PathSwitch);
            if path == main {
                bearer.on_pdu_lost(pdu, reason, |ended| ends.add(ended));
            } else {
                bearer.hop_pdu_lost(SECOND, pdu, reason, |ended| ends.add(ended));
            }
        }
    }
    fn assert_conserved(&self) {
        let in_flight: u64 = self.flying.iter().map(|block| block.pdu.held()).sum();
        let ended = (self.ends.delivered.len() + self.ends.dropped.len()) as u64;
        assert_eq!(self.bearer.held() + in_flight + ended, u64::from(self.entered));
    }
    fn done(&self) -> bool {
        self.entered == PACKETS && self.ends.delivered.len() + self.ends.dropped.len() == PACKETS as usize
    }
}

/// Both directions of a bearer, and the numbers of its paths.
struct Run {
    ways: [Way; 2],
    mode: RlcMode,
    /// Number of the present path, of the second one, and of paths in all.
    main: u32,
    second: Option<u32>,
    paths: u32,
    /// Until when both paths send, and whether the second one becomes the present one then.
    overlap: Option<(u64, bool)>,
}

impl Run {
    fn new(mode: RlcMode) -> Self {
        let ways = [Way::new(mode), Way::new(mode)];
        Self { ways, mode, main: 0, second: None, paths: 1, overlap: None }
    }
    fn step(&mut self, slot: u64, random: &mut Stream, loss: f64) {
        let [down, up] = &mut self.ways;
        down.arrive(&mut up.bearer, slot, self.main);
        up.arrive(&mut down.bearer, slot, self.main);
        self.transmit(slot, random, loss, 0);
        self.transmit(slot, random, loss, 1);
        // A former path ends when its last block has arrived or was lost.
        let flying = |way: &Way, path| way.flying.iter().any(|block| block.path == path);
        if let Some(former) = self.second.filter(|_| self.overlap.is_none())
            && !self.ways.iter().any(|way| flying(way, former))
        {
            self.end_second(slot);
        }
    }
    /// One direction sends a block on each path that sends, with a STATUS PDU about the other direction.
    fn transmit(&mut self, slot: u64, random: &mut Stream, loss: f64, direction: usize) {
        let (first, last) = self.ways.split_at_mut(1);
        let (way, other) =
            if direction == 0 { (&mut first[0], &mut last[0]) } else { (&mut last[0], &mut first[0]) };
        let second = self.second.filter(|_| self.overlap.is_some());
        for path in [Some(self.main), second].into_iter().flatten() {
            let mut sender = if path == self.main {
                way.bearer.sender(&mut other.bearer, Instant::ZERO)
            } else {
                let reverse = other.bearer.hop_rlc_mut(SECOND).unwrap();
                way.bearer.hop_sender(SECOND, reverse, Instant::ZERO).unwrap()
            };
            let room = random.below(4000) as u32;
            if let Some(pdu) = sender.rlc.pull(Slot(slot), &mut sender.source, room) {
                assert!(pdu.bytes() <= room);
                let due = slot + 4 + random.below(MAX_DELAY - 4);
                way.flying.push(Flying { path, due, lost: random.chance(loss), pdu });
            }
            if let Some(pdu) = sender.reverse.pull_status(Slot(slot), 200).filter(|_| !random.chance(loss)) {
                other.statuses.push(Flying { path, due: slot + 4, lost: false, pdu });
            }
        }
    }
    fn end_second(&mut self, slot: u64) {
        let Some(second) = self.second.take() else { return };
        for way in &mut self.ways {
            way.lose(second, self.main);
            let Way { bearer, ends, .. } = way;
            bearer.end_second(Slot(slot), DropReason::PathSwitch, |ended| ends.add(ended));
        }
        self.overlap = None;
    }
    /// The bearer goes to a new path, or both paths begin to send.
    fn switch(&mut self, slot: u64, how: (Fate, bool)) {
        self.end_second(slot);
        let (old, reset) = (self.main, how.0 != Fate::Duplicate && !how.1);
        let mut reports = Vec::new();
        for way in &mut self.ways {
            if reset {
                way.lose(old, old);
            }
            let (to, ends) = (Rlc::new(self.mode.rlc(), SlotSpan(50)), &mut way.ends);
            let switched =
                way.bearer.switch(to, how, Slot(slot), DropReason::PathSwitch, |ended| ends.add(ended));
            reports.push(switched);
        }
        for (at, report) in reports.into_iter().enumerate() {
            report.into_iter().for_each(|report| self.ways[1 - at].bearer.send_report(report));
        }
        let new = self.paths;
        self.paths += 1;
        if how.0 == Fate::Duplicate {
            self.second = Some(new);
        } else {
            (self.main, self.second) = (new, (!reset).then_some(old));
        }
    }
    fn confirm(&mut self, slot: u64, keep_harq: bool) {
        let (old, Some(new)) = (self.main, self.second) else { return };
        for way in &mut self.ways {
            if !keep_harq {
                way.lose(old, old);
            }
            let ends = &mut way.ends;
            way.bearer.confirm(keep_harq, Slot(slot), DropReason::PathSwitch, |ended| ends.add(ended));
        }
        (self.main, self.second, self.overlap) = (new, keep_harq.then_some(old), None);
    }
}

/// Runs a bearer with random switches to one of these fates.
fn run(seed: u64, mode: RlcMode, fates: &[Fate], keep_harq: &[bool], loss: f64) -> Run {
    let mut random = Stream::new(seed, "bearer");
    let mut run = Run::new(mode);
    let (mut slot, mut switches) = (0, 0);
    let pick = |random: &mut Stream, count: usize| random.below(count as u64) as usize;
    while !run.ways.iter().all(Way::done) {
        assert!(
            slot < 20_000,
            "seed {seed}, {mode:?}: {:?} held",
            run.ways.each_ref().map(|w| w.bearer.held())
        );
        for way in &mut run.ways {
            for _ in 0..random.below(4).min(u64::from(PACKETS - way.entered)) {
                way.bearer.buffer.push(Instant::ZERO, packet(way.entered));
                way.entered += 1;
            }
        }
        run.step(slot, &mut random, loss);
        match run.overlap {
            Some((until, confirmed)) if until == slot && confirmed => {
                run.confirm(slot, keep_harq[pick(&mut random, keep_harq.len())]);
            }
            Some((until, _)) if until == slot => run.end_second(slot),
            Some(_) => {}
            None if run.ways[0].entered < PACKETS && random.chance(0.02) => {
                let fate = fates[pick(&mut random, fates.len())];
                run.switch(slot, (fate, keep_harq[pick(&mut random, keep_harq.len())]));
                if fate == Fate::Duplicate {
                    run.overlap = Some((slot + 1 + random.below(80), random.chance(0.8)));
                }
                switches += 1;
            }
            None => {}
        }
        run.ways.iter().for_each(Way::assert_conserved);
        slot += 1;
    }
    assert!(switches > 0, "seed {seed}: {switches} switches");
    for Way { ends, .. } in &run.ways {
        assert!(ends.delivered.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: in order and once");
        assert!(ends.delivered.iter().all(|number| !ends.dropped.contains(number)), "seed {seed}");
    }
    run
}

const FORWARD: Fate = Fate::Forward { status_report: false };
const REPORT: Fate = Fate::Forward { status_report: true };

#[test]
fn no_fate_but_drop_loses_an_sdu_in_am() {
    for seed in 0..30 {
        for mode in MODES.into_iter().filter(|mode| mode.is_am()) {
            println!("seed {seed}, {mode:?}");
            let run = run(seed, mode, &[FORWARD, REPORT, Fate::Duplicate], &[false, true], 0.1);
            for Way { ends, .. } in run.ways {
                assert!(ends.delivered.into_iter().eq(0..PACKETS) && ends.dropped.is_empty());
            }
        }
    }
}

#[test]
fn every_packet_ends_once_and_in_order_whatever_the_fates_of_its_switches() {
    let all = [Fate::Drop, FORWARD, REPORT, Fate::Duplicate];
    for seed in 0..30 {
        for mode in MODES {
            println!("seed {seed}, {mode:?}");
            let run = run(seed, mode, &all, &[false, true], 0.1);
            for Way { ends, .. } in run.ways {
                assert_eq!(ends.delivered.len() + ends.dropped.len(), PACKETS as usize);
                assert!(ends.delivered.len() > 100, "{}", ends.delivered.len());
            }
        }
    }
}

#[test]
fn a_status_report_saves_copies_of_delivered_sdus() {
    // Without a report LTE's AM counts SDUs received out of sequence as not received, which are no copies.
    for mode in MODES.into_iter().filter(|mode| matches!(mode, RlcMode::NrAm(_))) {
        let copies = |fate| -> u64 {
            (0..10)
                .flat_map(|seed| run(seed, mode, &[fate], &[false], 0.1).ways)
                .map(|way| way.ends.copies)
                .sum()
        };
        let (without, with) = (copies(FORWARD), copies(REPORT));
        println!("{mode:?}: {without} copies without a status report, {with} with one");
        assert!(0 < with && with < without, "{mode:?}: {without} and {with}");
        assert!(copies(Fate::Duplicate) > without, "every SDU of the overlap has a copy");
    }
}

#[test]
fn duplication_loses_nothing_in_um_where_the_channel_does_not() {
    for seed in 0..30 {
        for mode in MODES.into_iter().filter(|mode| !mode.is_am()) {
            println!("seed {seed}, {mode:?}");
            let mut random = Stream::new(seed, "bearer/um");
            let mut run = Run::new(mode);
            for slot in 0..600 {
                for way in &mut run.ways {
                    way.bearer.buffer.push(Instant::ZERO, packet(way.entered));
                    way.entered += 1;
                }
                run.step(slot, &mut random, 0.0);
                match slot {
                    200 => {
                        run.switch(slot, (Fate::Duplicate, true));
                        run.overlap = Some((300, true));
                    }
                    300 => run.confirm(slot, random.chance(0.5)),
                    _ => {}
                }
            }
            for way in run.ways {
                way.assert_conserved();
                assert!(
                    way.ends.dropped.is_empty() && way.ends.delivered.len() > 540 && way.ends.copies > 50
                );
                assert!(way.ends.delivered.iter().copied().eq(0..way.ends.delivered.len() as u32));
            }
        }
    }
}

#[test]
fn a_switch_in_um_loses_what_rlc_had_unless_its_blocks_may_arrive() {
    for mode in MODES.into_iter().filter(|mode| !mode.is_am()) {
        for (keep_harq, lost) in [(false, 7), (true, 1)] {
            let mut run = Run::new(mode);
            let way = &mut run.ways[0];
            (0..10).for_each(|number| way.bearer.buffer.push(Instant::ZERO, packet(number)));
            way.entered = 10;
            let mut other = Way::new(mode);
            let mut sender = way.bearer.sender(&mut other.bearer, Instant::ZERO);
            for slot in 0..3 {
                let pdu = sender.rlc.pull(Slot(slot), &mut sender.source, 2000).unwrap();
                way.flying.push(Flying { path: 0, due: 9, lost: false, pdu });
            }
            run.switch(3, (FORWARD, keep_harq));
            let waiting = run.ways[0].bearer.waiting().packets;
            assert_eq!(waiting, 3, "{mode:?}: new SDUs wait for the new path");
            let mut random = Stream::new(0, "bearer");
            (9..300).for_each(|slot| run.step(slot, &mut random, 0.0));
            let ends = &run.ways[0].ends;
            assert_eq!((ends.dropped.len(), ends.delivered.len()), (lost, 10 - lost), "{mode:?}");
        }
    }
}
