//! RLC of NR on links with random losses, delays and grants: conservation of SDUs, bounded state, overhead.
//! `PACELINE_SWARM_SEED=17` starts at this seed.

use paceline_net::rng::Stream;
use paceline_ran::rlc_nr::{Am, AmBlock, AmConfig, SnLength, Status, Um, UmBlock, UmConfig};
use paceline_ran::{Slot, SlotClock, SlotSpan};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Seeds per test. Chosen: a few seconds in all.
const SEEDS: u64 = 60;
/// SDUs of a run. Chosen: some times the window of 6-bit numbers, many blocks.
const SDUS: u64 = 400;
/// Largest delay of a block by HARQ in slots. Chosen: four transmissions of a round trip of 4 slots.
const MAX_DELAY: u64 = 16;

/// An SDU with its name and its length, both checked at delivery.
type Sdu = (u64, u32);

fn seeds() -> impl Iterator<Item = u64> {
    let first = std::env::var("PACELINE_SWARM_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    (first..first + SEEDS).inspect(|seed| println!("seed {seed}: PACELINE_SWARM_SEED={seed}"))
}

/// A link with block losses, and delays that reorder blocks.
struct LossyLink<B> {
    random: Stream,
    loss: f64,
    /// Blocks by arrival slot and order of transmission, and whether HARQ lost them.
    flying: BTreeMap<(u64, u64), (bool, B)>,
    sent: u64,
}

impl<B> LossyLink<B> {
    fn new(seed: u64, name: &str, loss: f64) -> Self {
        Self { random: Stream::new(seed, name), loss, flying: BTreeMap::new(), sent: 0 }
    }
    fn send(&mut self, slot: u64, block: B) {
        let at = slot + 1 + self.random.below(MAX_DELAY);
        self.flying.insert((at, self.sent), (self.random.chance(self.loss), block));
        self.sent += 1;
    }
    fn arrivals(&mut self, slot: u64) -> Vec<(bool, B)> {
        let later = self.flying.split_off(&(slot + 1, 0));
        std::mem::replace(&mut self.flying, later).into_values().collect()
    }
}

/// A grant in bytes: none, a few, some hundred or many.
fn grant(random: &mut Stream) -> u32 {
    let largest = [1, 12, 300, 3000, 20_000][random.below(5) as usize];
    random.below(largest) as u32
}

fn source(random: &mut Stream) -> VecDeque<(Sdu, u32)> {
    let sizes = (0..SDUS).map(|name| (name, 2 + random.below(1500) as u32));
    sizes.map(|sdu| (sdu, sdu.1)).collect()
}

/// Moves SDUs of a scenario in random bursts into the buffer above RLC.
fn arrive(random: &mut Stream, waiting: &mut VecDeque<(Sdu, u32)>, above: &mut VecDeque<(Sdu, u32)>) {
    if random.chance(0.2) {
        let burst = random.below(30).min(waiting.len() as u64) as usize;
        above.extend(waiting.drain(..burst));
    }
}

#[test]
fn am_delivers_every_sdu_once_on_a_lossy_link() {
    for seed in seeds() {
        let mut random = Stream::new(seed, "am");
        let sn = [SnLength::Short, SnLength::Long][random.below(2) as usize];
        let clock = SlotClock::default();
        let poll_pdu = [None, Some(4), Some(16)][random.below(3) as usize];
        let t_reassembly = SlotSpan(MAX_DELAY + random.below(20));
        let config =
            AmConfig { sn, poll_pdu, t_reassembly, max_retx_threshold: 1000, ..AmConfig::new(clock) };
        let loss = [0.0, 0.1, 0.3][random.below(3) as usize];
        let mut data: LossyLink<AmBlock> = LossyLink::new(seed, "data", loss);
        let mut reports: LossyLink<Status> = LossyLink::new(seed, "reports", loss);
        let (mut waiting, mut above, mut delivered) = (source(&mut random), VecDeque::new(), BTreeSet::new());
        let sizes: Vec<u32> = waiting.iter().map(|(_, bytes)| *bytes).collect();
        let mut am = Am::new(config);
        let mut slot = 0;
        while !(waiting.is_empty() && above.is_empty() && am.window_used() == 0) {
            assert!(slot < 40_000, "seed {seed}: {} of {SDUS} delivered, {am:?}", delivered.len());
            for (_, block) in data.arrivals(slot).into_iter().filter(|(lost, _)| !lost) {
                am.receive(Slot(slot), &block, |(name, bytes)| {
                    assert_eq!(sizes[name as usize], bytes, "seed {seed}");
                    assert!(delivered.insert(name), "seed {seed}: SDU {name} twice");
                });
            }
            for (_, status) in reports.arrivals(slot).into_iter().filter(|(lost, _)| !lost) {
                am.on_status(&status);
            }
            am.check_timers(Slot(slot), above.is_empty());
            arrive(&mut random, &mut waiting, &mut above);
            let room = grant(&mut random);
            if let Some(block) = am.pull(Slot(slot), &mut above, room) {
                assert!(block.bytes <= room && am.window_used() <= sn.am_window(), "seed {seed}");
                data.send(slot, block);
            }
            let room = grant(&mut random);
            let needed = am.status_bytes(Slot(slot));
            if let Some(status) = am.pull_status(Slot(slot), room) {
                assert!(status.bytes() <= room.min(needed), "seed {seed}");
                reports.send(slot, status);
            }
            let gone = (delivered.len() + waiting.len() + above.len()) as u64;
            assert_eq!(am.held() + gone, SDUS, "seed {seed}: an SDU is neither held nor delivered");
            slot += 1;
        }
        assert_eq!((delivered.len() as u64, am.held(), am.available_below()), (SDUS, 0, 0), "seed {seed}");
        assert!(!am.radio_link_failed() && am.window_stalls() == 0, "seed {seed}");
    }
}

#[test]
fn um_delivers_or_drops_every_sdu_once() {
    for seed in seeds() {
        let mut random = Stream::new(seed, "um");
        let sn = [SnLength::Short, SnLength::Long][random.below(2) as usize];
        let beyond_harq = random.below(20);
        let loss = [0.0, 0.1, 0.3][random.below(3) as usize];
        // The timer runs from a first segment; grants of few bytes spread the later ones over many slots.
        // Without losses no timer may expire: TS 38.322 §5.2.2.2.4 would discard the SDU.
        let beyond_harq = if loss == 0.0 { beyond_harq + 200 } else { beyond_harq };
        let config = UmConfig { sn, t_reassembly: SlotSpan(MAX_DELAY + beyond_harq) };
        let mut data: LossyLink<UmBlock> = LossyLink::new(seed, "data", loss);
        let (mut waiting, mut above) = (source(&mut random), VecDeque::new());
        let sizes: Vec<u32> = waiting.iter().map(|(_, bytes)| *bytes).collect();
        let (mut delivered, mut dropped) = (BTreeSet::new(), BTreeSet::new());
        let mut um = Um::new(config);
        let mut slot = 0;
        while !(waiting.is_empty() && above.is_empty() && um.available_below() == 0 && data.flying.is_empty())
        {
            assert!(slot < 40_000, "seed {seed}");
            for (lost, block) in data.arrivals(slot) {
                let drop = |sdu: Sdu| assert!(dropped.insert(sdu.0), "seed {seed}: SDU {} twice", sdu.0);
                let deliver = |(name, bytes): Sdu| {
                    assert_eq!(sizes[name as usize], bytes, "seed {seed}");
                    assert!(delivered.insert(name), "seed {seed}: SDU {name} twice");
                };
                if lost { um.on_lost(&block, drop) } else { um.receive(Slot(slot), &block, deliver, drop) }
            }
            um.check_timers(Slot(slot), |sdu| assert!(dropped.insert(sdu.0), "seed {seed}"));
            arrive(&mut random, &mut waiting, &mut above);
            let room = grant(&mut random);
            if let Some(block) = um.pull(&mut above, room) {
                assert!(block.bytes <= room, "seed {seed}");
                data.send(slot, block);
            }
            let gone = (delivered.len() + dropped.len() + waiting.len() + above.len()) as u64;
            assert_eq!(um.held() + gone, SDUS, "seed {seed}: an SDU is neither held nor gone");
            slot += 1;
        }
        assert!(delivered.is_disjoint(&dropped), "seed {seed}");
        assert_eq!((delivered.len() + dropped.len()) as u64 + um.held(), SDUS, "seed {seed}");
        assert_eq!(um.held(), 0, "seed {seed}: every block arrived or was lost");
        if loss == 0.0 {
            assert_eq!(dropped, BTreeSet::new(), "seed {seed}: t-Reassembly is longer than HARQ");
        }
    }
}

/// Bytes of a clean channel that carry `sdus` SDUs of 1448 bytes and headers of IP, TCP and PDCP in blocks of
/// `block` bytes, one per slot: data and reports.
fn bytes_on_air(am: Option<AmConfig>, sdus: u64, block: u32) -> u64 {
    let mut above: VecDeque<(u64, u32)> = (0..sdus).map(|name| (name, 1448 + 52 + 3)).collect();
    let (mut bytes, mut delivered, mut slot) = (0, 0, 0);
    let clock = SlotClock::default();
    let mut um = Um::new(UmConfig::new(clock));
    let mut acknowledged = am.map(Am::new);
    while delivered < sdus {
        assert!(slot < 100_000);
        match &mut acknowledged {
            Some(am) => {
                if let Some(status) = am.pull_status(Slot(slot), block) {
                    bytes += u64::from(status.bytes());
                    am.on_status(&status);
                }
                if let Some(data) = am.pull(Slot(slot), &mut above, block) {
                    bytes += u64::from(data.bytes);
                    am.receive(Slot(slot), &data, |_| delivered += 1);
                }
                am.check_timers(Slot(slot), above.is_empty());
            }
            None => {
                if let Some(data) = um.pull(&mut above, block) {
                    bytes += u64::from(data.bytes);
                    um.receive(Slot(slot), &data, |_| delivered += 1, |_| panic!("nothing is lost"));
                }
            }
        }
        slot += 1;
    }
    bytes
}

#[test]
fn am_costs_at_most_three_percent_more_than_um_on_a_clean_channel() {
    let clock = SlotClock::default();
    for block in [200, 1500, 10_000, 147_000] {
        let um = bytes_on_air(None, 3000, block);
        for sn in [SnLength::Short, SnLength::Long] {
            let am = bytes_on_air(Some(AmConfig { sn, ..AmConfig::new(clock) }), 3000, block);
            let excess = am as f64 / um as f64 - 1.0;
            println!("blocks of {block} bytes, {sn:?}: AM {am}, UM {um} bytes, {:.2}%", 100.0 * excess);
            assert!(excess < 0.03, "blocks of {block} bytes, {sn:?}: {am} against {um}");
        }
    }
}
