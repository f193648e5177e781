//! Bearers that change their path at random times: every packet ends once and in order.

use super::*;
use crate::AmConfig;
use crate::pdcp::{NrPdcp, PdcpSn};
use crate::rlc::{self, nr};
use crate::slot::SlotClock;
use paceline_net::{Bytes, DropTail, SeqNumber, Stream, TcpHeader};
use std::collections::BTreeSet;

/// Packets of a run. Chosen: some hundred blocks, several switches.
const PACKETS: u32 = 1200;
/// Largest delay of a block in slots. Chosen: four HARQ transmissions of LTE.
const MAX_DELAY: u64 = 32;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Mode {
    LteUm,
    LteAm,
    NrUm,
    NrAm,
}

fn config(mode: Mode) -> RlcConfig {
    let clock = SlotClock::default();
    match mode {
        Mode::LteUm => RlcConfig::Um,
        Mode::LteAm => RlcConfig::Am(AmConfig {
            t_poll_retransmit: SlotSpan(60),
            poll_pdu: Some(8),
            poll_byte: None,
            max_retx_threshold: 1000,
            t_status_prohibit: SlotSpan(10),
        }),
        Mode::NrUm => RlcConfig::NrUm(nr::UmConfig::new(clock)),
        Mode::NrAm => RlcConfig::NrAm(nr::AmConfig { max_retx_threshold: 1000, ..nr::AmConfig::new(clock) }),
    }
}

fn packet(number: u32) -> Packet {
    let address = "198.18.0.1".parse().unwrap();
    let tcp = TcpHeader { seq: SeqNumber(number), payload_len: 900, ..TcpHeader::default() };
    Packet::tcp(address, address, tcp)
}

/// A bearer with its blocks in flight and what became of its packets.
struct Run {
    bearer: Bearer,
    flying: Vec<(u64, bool, rlc::Pdu)>,
    reports: Vec<(u64, rlc::Pdu)>,
    delivered: Vec<u32>,
    dropped: BTreeSet<u32>,
}

impl Run {
    fn new(mode: Mode) -> Self {
        // SDUs of UM are lost: PDCP has to give them up. In AM only a switch could lose one.
        let t_reordering = (mode == Mode::NrUm).then_some(SlotSpan(100));
        let pdcp = match mode {
            Mode::LteUm | Mode::LteAm => PdcpConfig::Lte,
            _ => PdcpConfig::Nr(NrPdcp { sn: PdcpSn::Eighteen, sdap_header: true, t_reordering }),
        };
        let buffer = Box::new(DropTail::new(Bytes(1 << 30)));
        let bearer = Bearer::new(buffer, pdcp, config(mode), SlotSpan(50));
        Self {
            bearer,
            flying: Vec::new(),
            reports: Vec::new(),
            delivered: Vec::new(),
            dropped: BTreeSet::new(),
        }
    }
    fn end(delivered: &mut Vec<u32>, dropped: &mut BTreeSet<u32>, ended: Ended) {
        let number = |packet: &Packet| packet.tcp_header().unwrap().seq.0;
        match ended {
            Ended::Delivered(packet) => delivered.push(number(&packet)),
            Ended::Dropped(packet, _) => assert!(dropped.insert(number(&packet)), "dropped twice"),
        }
    }
    /// The MAC of the path loses a block.
    fn lose(&mut self, pdu: rlc::Pdu) {
        let (delivered, dropped) = (&mut self.delivered, &mut self.dropped);
        self.bearer.rlc.on_pdu_lost(pdu, |packet| {
            Self::end(delivered, dropped, Ended::Dropped(packet, DropReason::HarqFailed));
        });
    }
    fn step(&mut self, slot: u64, random: &mut Stream, loss: f64) {
        let mut reassembled = Vec::new();
        while let Some(at) = self.flying.iter().position(|(due, ..)| *due <= slot) {
            let (_, lost, pdu) = self.flying.remove(at);
            if lost {
                self.lose(pdu);
            } else {
                self.bearer.rlc.receive(Slot(slot), pdu, &mut reassembled);
            }
        }
        while let Some(at) = self.reports.iter().position(|(due, _)| *due <= slot) {
            let (_, status) = self.reports.remove(at);
            self.bearer.rlc.on_status(&status);
        }
        let (delivered, dropped) = (&mut self.delivered, &mut self.dropped);
        self.bearer.deliver(Slot(slot), &mut reassembled, |ended| Self::end(delivered, dropped, ended));
        let room = random.below(4000) as u32;
        let Bearer { tx, buffer, rlc, .. } = &mut self.bearer;
        let mut source = pdcp::Source { tx, buffer: &mut **buffer, now: Instant::ZERO };
        if let Some(pdu) = rlc.pull(Slot(slot), &mut source, room) {
            assert!(pdu.bytes() <= room);
            self.flying.push((slot + 4 + random.below(MAX_DELAY - 4), random.chance(loss), pdu));
        }
        let status = rlc.pull_status(Slot(slot), 200);
        self.reports.extend(status.filter(|_| !random.chance(loss)).map(|status| (slot + 4, status)));
    }
    /// MAC is reset, and the bearer goes to a new path.
    fn switch(&mut self, slot: u64, to: Mode, fate: Fate) {
        for (_, _, pdu) in std::mem::take(&mut self.flying) {
            self.lose(pdu);
        }
        self.reports.clear();
        let to = Rlc::new(config(to), SlotSpan(50));
        let (delivered, dropped) = (&mut self.delivered, &mut self.dropped);
        self.bearer.switch(to, fate, Slot(slot), DropReason::RadioLinkFailure, |ended| {
            Self::end(delivered, dropped, ended);
        });
    }
    fn in_flight(&self) -> u64 {
        self.flying.iter().map(|(_, _, pdu)| pdu.held()).sum()
    }
    fn assert_conserved(&self, entered: u32) {
        let ended = self.delivered.len() + self.dropped.len();
        assert_eq!(self.bearer.held() + self.in_flight() + ended as u64, u64::from(entered));
    }
}

/// Runs a bearer of these modes with random switches of this fate; what was delivered, and what was dropped.
fn run(seed: u64, modes: &[Mode], fate: Fate, loss: f64) -> (Vec<u32>, BTreeSet<u32>) {
    let mut random = Stream::new(seed, "bearer");
    let mut run = Run::new(modes[0]);
    let (mut entered, mut slot, mut switches) = (0, 0, 0);
    while entered < PACKETS || run.bearer.held() + run.in_flight() > 0 {
        assert!(slot < 20_000, "seed {seed}: {} held", run.bearer.held());
        for _ in 0..random.below(4).min(u64::from(PACKETS - entered)) {
            run.bearer.buffer.push(Instant::ZERO, packet(entered));
            entered += 1;
        }
        run.step(slot, &mut random, loss);
        run.assert_conserved(entered);
        if entered < PACKETS && random.chance(0.01) {
            run.switch(slot, modes[random.below(modes.len() as u64) as usize], fate);
            run.assert_conserved(entered);
            switches += 1;
        }
        slot += 1;
    }
    assert!(switches > 0, "seed {seed}: {switches} switches");
    assert!(run.delivered.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: in order and once");
    (run.delivered, run.dropped)
}

#[test]
fn forwarding_loses_nothing_in_am() {
    for seed in 0..25 {
        println!("seed {seed}");
        for mode in [Mode::LteAm, Mode::NrAm] {
            let (delivered, dropped) = run(seed, &[mode], Fate::Forward, 0.1);
            assert!(delivered.iter().copied().eq(0..PACKETS) && dropped.is_empty(), "{mode:?}");
        }
    }
}

#[test]
fn dropping_ends_every_packet_once_and_keeps_the_order() {
    for seed in 0..25 {
        println!("seed {seed}");
        for modes in [&[Mode::LteUm][..], &[Mode::LteAm], &[Mode::NrUm], &[Mode::NrUm, Mode::NrAm]] {
            // Where AM may be the last path, no SDU may be missing for ever: losses are of the switch alone.
            let loss = if modes.contains(&Mode::NrAm) { 0.0 } else { 0.1 };
            let (delivered, dropped) = run(seed, modes, Fate::Drop, loss);
            assert_eq!(delivered.len() + dropped.len(), PACKETS as usize, "{modes:?}");
            assert!(!dropped.is_empty() && delivered.len() > 100, "{modes:?}: {}", delivered.len());
            assert!(delivered.iter().all(|number| !dropped.contains(number)), "{modes:?}");
        }
    }
}

#[test]
fn a_switch_in_um_loses_what_rlc_had_whatever_its_fate() {
    for mode in [Mode::LteUm, Mode::NrUm] {
        let mut run = Run::new(mode);
        (0..10).for_each(|number| run.bearer.buffer.push(Instant::ZERO, packet(number)));
        let Bearer { tx, buffer, rlc, .. } = &mut run.bearer;
        let mut source = pdcp::Source { tx, buffer: &mut **buffer, now: Instant::ZERO };
        let blocks: Vec<rlc::Pdu> =
            (0..3).map(|slot| rlc.pull(Slot(slot), &mut source, 2000).unwrap()).collect();
        run.flying = blocks.into_iter().map(|block| (99, false, block)).collect();
        run.switch(3, mode, Fate::Forward);
        assert_eq!((run.dropped.len() as u32, run.bearer.held()), (7, 3), "{mode:?}: six and a part");
        assert_eq!(run.bearer.waiting().packets, 3, "{mode:?}: new SDUs wait for the new path");
    }
}
