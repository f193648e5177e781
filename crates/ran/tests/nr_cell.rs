//! NR cells, FDD and TDD: rates against the ceiling of their slots, latencies of an idle cell, conservation.

use crate::common::*;
use paceline_net::{Bytes, DropReason, DropTail, Duration, Instant, Node, Output, SlotPattern, Stream};
use paceline_ran::nr::carrier::{FrequencyRange, resource_blocks};
use paceline_ran::nr::mcs::McsTable;
use paceline_ran::nr::timing::latency::{self, Preparation};
use paceline_ran::rlc_nr as nr_rlc;
use paceline_ran::{
    AmConfig, CORE, Cell, CellConfig, ConfiguredGrant, Duplex, NrConfig, Numerology, ProactiveGrants, Rat,
    RlcConfig, Slot, SlotClock, SlotSpan, StationConfig, station_port,
};

fn mu(mu: u8) -> Numerology {
    Numerology::new(mu).unwrap()
}
fn tdd(letters: &str, numerology: u8) -> Duplex {
    Duplex::Tdd(SlotPattern::from_letters(letters, numerology).unwrap())
}

/// A cell without synchronization blocks, with the shortest distances of numerology 1.
fn nr(numerology: u8, duplex: Duplex, prb: u16) -> CellConfig {
    let slots = |ms: u64| SlotSpan(ms << numerology);
    let nr = NrConfig { ssb_beams: 0, min_k1: 3, min_k2: 3, ..NrConfig::new(mu(numerology)) };
    let mut config = CellConfig {
        rat: Rat::Nr(nr),
        numerology: mu(numerology),
        duplex,
        downlink_prb: prb,
        uplink_prb: prb,
        pucch_prb: 0,
        decode_delay: SlotSpan(1),
        rlc: RlcConfig::NrUm(nr_rlc::UmConfig::new(SlotClock::new(mu(numerology)))),
        t_reordering: slots(50),
        cqi_period: slots(5),
        cqi_delay: slots(2),
        downlink_buffer: Bytes(8 << 20),
        ..config()
    };
    config.access.sr_period = slots(10);
    (config.access.periodic_bsr, config.access.retx_bsr) = (slots(5), slots(80));
    config.random_access.response_window = slots(10);
    config.random_access.contention_timer = slots(64);
    config
}
fn nr_of(config: &mut CellConfig) -> &mut NrConfig {
    let Rat::Nr(nr) = &mut config.rat else { panic!("an NR cell") };
    nr
}
fn wide(index: usize, down_db: f64, up_db: f64) -> StationConfig {
    let uplink_buffer = Box::new(DropTail::new(Bytes(8 << 20)));
    StationConfig { uplink_buffer, ..station(index, down_db, up_db, 0.0) }
}

/// Rates of the transport blocks in Mb/s of one station with full buffers, downlink and uplink, over `ms` of
/// whole periods after the start.
fn full_buffer(config: CellConfig, ms: u64) -> (f64, f64) {
    let mut cell = Cell::new(config, vec![wide(0, 60.0, 60.0)], 1);
    let mut start = (0, 0);
    const WARM_UP_MS: u64 = 100;
    for at in 0..WARM_UP_MS + ms {
        let now = Instant::from_millis(at);
        while cell.downlink_queue(0) < Bytes(1_000_000) {
            cell.handle_packet(now, CORE, packet(SERVER, address(0), 1400));
        }
        while cell.uplink_buffer(0).bytes() < Bytes(1_000_000) {
            cell.handle_packet(now, station_port(0), packet(address(0), SERVER, 1400));
        }
        if at == WARM_UP_MS {
            start = (cell.downlink(0).transport_block_bytes, cell.uplink(0).transport_block_bytes);
        }
        drain(&mut cell, now + Duration::from_nanos(999_999));
        let downlink = cell.downlink(0);
        assert_eq!(downlink.harq_retransmissions, 0);
        // The ends of a few blocks are too short for another SDU.
        assert!(downlink.padding_bytes * 100_000 <= downlink.transport_block_bytes, "{downlink:?}");
    }
    assert_conserved(&cell, 1);
    let rate = |bytes: u64| bytes as f64 * 8.0 / 1000.0 / ms as f64;
    let end = (cell.downlink(0).transport_block_bytes, cell.uplink(0).transport_block_bytes);
    (rate(end.0 - start.0), rate(end.1 - start.1))
}

/// 273 PRBs at 30 kHz, 4 layers of 256QAM, one PDCCH symbol, 12 elements of DMRS: 1,179,864 bits in a D slot,
/// 770,568 or 385,272 in an S slot. The uplink has one layer of 256QAM.
#[test]
fn full_buffers_fill_the_slots_of_their_pattern() {
    for (letters, expected) in [("DDDSU", 1724.1), ("DDDDDDDSUU 6:4:4", 1728.9), ("DDSUU 6:4:4", 1098.0)] {
        // The buffer has more than the 150,000 bytes of a short report, and grants do not end between the
        // periodic ones.
        let mut config = nr(1, tdd(letters, 1), 273);
        config.access.periodic_bsr = SlotSpan(40);
        let (down, up) = full_buffer(config, 100);
        assert!((down / expected - 1.0).abs() < 0.001, "{letters}: {down} Mb/s");
        let slots = letters.split(' ').next().unwrap();
        let share = slots.matches('U').count() as f64 / slots.len() as f64;
        // 319,784 bits per uplink slot at 2000 slots per second.
        let ceiling = 319_784.0 * 2e-3 * share;
        assert!(up <= ceiling * 1.001 && up > 0.98 * ceiling, "{letters}: uplink {up} of {ceiling} Mb/s");
    }
    let (down, up) = full_buffer(nr(0, Duplex::Fdd, 106), 50);
    assert!(down > 400.0 && up > 110.0, "FDD: {down}, {up} Mb/s");
}

/// In DSUUU slot 1 has the grants of two uplink slots.
#[test]
fn grants_of_several_uplink_slots_share_the_pdcch_of_their_slot() {
    let mut config = nr(1, tdd("DSUUU", 1), 273);
    (config.uplink_grants, nr_of(&mut config).min_k2) = (4, 2);
    let stations: Vec<StationConfig> = (0..8).map(|index| wide(index, 20.0, 20.0)).collect();
    let mut cell = Cell::new(config, stations, 1);
    // Two of five slots carry grants.
    assert_eq!(cell.uplink_grants(), 2.0 / 5.0 * 4.0);
    let grants = |cell: &Cell| (0..8).map(|index| cell.access(index).grants).sum::<u64>();
    let mut before = 0;
    for ms in 0..200 {
        let now = Instant::from_millis(ms);
        for index in 0..8 {
            while cell.uplink_buffer(index).bytes() < Bytes(500_000) {
                cell.handle_packet(now, station_port(index), packet(address(index), SERVER, 1400));
            }
        }
        drain(&mut cell, now + Duration::from_nanos(999_999));
        if ms == 99 {
            before = grants(&cell);
        }
    }
    // 40 patterns of two slots with four grants each.
    let granted = grants(&cell) - before;
    assert!((300..=320).contains(&granted), "{granted} grants in 40 patterns");
}

/// Latencies of single packets whose arrivals are spread over a period, in ms: mean and maximum.
fn idle_latency(config: CellConfig, downlink: bool) -> (f64, f64) {
    let (mut sum, mut max, mut count) = (0.0, 0.0f64, 0);
    let period_ns = config.numerology.slot_ns() * config.duplex.period() as u64;
    let mut cell = Cell::new(config, vec![wide(0, 30.0, 30.0)], 1);
    for arrival in 0..100 {
        // Packets are 200 ms apart, so that each finds an idle cell.
        let offset = Duration::from_nanos(period_ns * arrival / 100 + 1);
        let at = Instant::from_millis(200 * (arrival + 1)) + offset;
        drain(&mut cell, at);
        match downlink {
            true => cell.handle_packet(at, CORE, packet(SERVER, address(0), 100)),
            false => cell.handle_packet(at, station_port(0), packet(address(0), SERVER, 100)),
        }
        let until = at + Duration::from_millis(150);
        let of_packet = |(_, output): &&(Instant, Output)| matches!(output, Output::Transmit(..));
        let outputs = drain(&mut cell, until);
        let (then, _) = outputs.iter().find(of_packet).expect("the packet arrives");
        let ms = then.since(at).as_nanos() as f64 / 1e6;
        (sum, max, count) = (sum + ms, max.max(ms), count + 1);
    }
    (sum / f64::from(count), max)
}

#[test]
fn idle_latencies_are_those_of_the_slots() {
    for letters in ["DDDSU", "DDDDDDDSUU", "DDSUU", "DSUUU"] {
        let mut config = nr(1, tdd(letters, 1), 273);
        // The decode delay and no preparation, in slots.
        let times = Preparation { before: 0.0, after: 1.0 };
        let duplex = config.duplex.clone();
        let timing = nr_of(&mut config).slot_timing(mu(1), &duplex).unwrap();
        let expected = latency::downlink(&timing, times);
        let (mean, max) = idle_latency(config.clone(), true);
        assert!((mean - expected.mean_ms).abs() < 0.03, "{letters}: {mean} ms, model {expected:?}");
        assert!((max - expected.max_ms).abs() < 0.03, "{letters}: {max} ms, model {expected:?}");
        // A configured grant in every uplink slot.
        let mut granted = config.clone();
        let grant = ConfiguredGrant { period: SlotSpan(1), prbs: 20, mcs: 5 };
        nr_of(&mut granted).configured_grant = Some(grant);
        let expected = latency::uplink_with_grant(&timing, times);
        let (mean, max) = idle_latency(granted, false);
        assert!((mean - expected.mean_ms).abs() < 0.03, "{letters}: {mean} ms, model {expected:?}");
        assert!((max - expected.max_ms).abs() < 0.03, "{letters}: {max} ms, model {expected:?}");
        // A scheduling request in every uplink slot of a period: the packet fits in the first block.
        config.access.sr_period = SlotSpan(config.duplex.period() as u64);
        config.access.sr_grant = 200;
        let [first, _] = latency::uplink_by_request(&timing, times, config.access.sr_period.0);
        let (mean, max) = idle_latency(config, false);
        assert!((mean - first.mean_ms).abs() < 0.03, "{letters}: uplink {mean} ms, model {first:?}");
        assert!((max - first.max_ms).abs() < 0.03, "{letters}: uplink {max} ms, model {first:?}");
    }
}

/// A random cell with random traffic: nothing is lost uncounted, nothing twice, nothing out of order.
fn swarm(seed: u64) {
    let mut draws = Stream::new(seed, "swarm");
    let numerology = draws.below(3) as u8;
    let patterns: &[&str] = match numerology {
        0 => &["DDDSU", "DSUU", "DDSUU"],
        1 => &["DDDSU", "DDDDDDDSUU 6:4:4", "DSUUU", "DDSUU 3:7:4", "DDDSUDDSUU", "DFSU 8:6:0"],
        _ => &["DDDSU", "DDDDDDDSUU", "DSUUU"],
    };
    let duplex = match draws.below(4) {
        0 => Duplex::Fdd,
        _ => tdd(patterns[draws.below(patterns.len() as u64) as usize], numerology),
    };
    let mhz = [10, 20, 40][draws.below(3) as usize];
    let prb = resource_blocks(FrequencyRange::Fr1, mhz, mu(numerology)).unwrap();
    let mut config = nr(numerology, duplex, prb);
    let rat = nr_of(&mut config);
    rat.ssb_beams = draws.below(9) as u8;
    rat.downlink_table =
        [McsTable::Qam64, McsTable::Qam256, McsTable::LowEfficiency][draws.below(3) as usize];
    rat.uplink_layers = 1 + draws.below(2) as u8;
    (rat.min_k1, rat.min_k2) = (2 + draws.below(3) as u8, 2 + draws.below(3) as u8);
    rat.downlink_processes = 1 + draws.below(16) as u8;
    rat.uplink_processes = 1 + draws.below(16) as u8;
    if draws.chance(0.3) {
        let period = SlotSpan([1, 2, 5, 10][draws.below(4) as usize]);
        rat.configured_grant = Some(ConfiguredGrant { period, prbs: 1 + draws.below(5) as u16, mcs: 3 });
    }
    config.outer_loop = draws.chance(0.5);
    config.max_harq_tx = 1 + draws.below(4) as u32;
    config.pucch_prb = 2 * draws.below(3) as u16;
    config.access.sr_period = SlotSpan([1, 4, 10, 40][draws.below(4) as usize]);
    config.rlc = match draws.below(4) {
        0 => RlcConfig::Um,
        1 => RlcConfig::Am(AmConfig {
            t_poll_retransmit: SlotSpan(80),
            poll_pdu: Some(16),
            poll_byte: None,
            max_retx_threshold: 32,
            t_status_prohibit: SlotSpan(20),
        }),
        2 => RlcConfig::NrAm(nr_rlc::AmConfig::new(SlotClock::new(mu(numerology)))),
        _ => config.rlc,
    };
    if draws.chance(0.4) {
        with_initial_access(&mut config);
    }
    if draws.chance(0.3) {
        config.access.dsr_trans_max = 1;
        config.access.sr_detection = 0.3;
    }
    let count = 1 + draws.below(6) as usize;
    let stations = (0..count).map(|index| {
        let (down, up) = (draws.uniform_in(-8.0, 30.0), draws.uniform_in(-6.0, 25.0));
        station(index, down, up, draws.uniform_in(0.0, 4.0))
    });
    let is_am = matches!(config.rlc, RlcConfig::NrAm(_));
    // RLC may need longer than a finite t-Reordering of PDCP, which then discards the packet.
    let waits = is_am && seed.is_multiple_of(2);
    if waits {
        nr_of(&mut config).pdcp_reordering = None;
    }
    let mut cell = Cell::new(config, stations.collect(), seed);
    let mut ledger = Ledger::default();
    for half_ms in 0..600u64 {
        let now = Instant::from_nanos(500_000 * half_ms + 77);
        ledger.check(drain(&mut cell, now), seed);
        if half_ms / 100 % 2 == 0 {
            for index in 0..count {
                for _ in 0..draws.below(4) {
                    cell.handle_packet(now, CORE, ledger.packet(SERVER, address(index), 1400));
                }
                if draws.chance(0.4) {
                    let packet = ledger.packet(address(index), SERVER, 700);
                    cell.handle_packet(now, station_port(index), packet);
                }
            }
        }
    }
    ledger.check(drain(&mut cell, Instant::from_millis(2000)), seed);
    assert_conserved(&cell, seed);
    if is_am {
        let expected = |reason: DropReason| {
            reason == DropReason::QueueFull || !waits && reason == DropReason::PdcpReordering
        };
        let lost = ledger.dropped.keys().filter(|reason| !expected(**reason));
        assert_eq!(lost.count(), 0, "seed {seed}: RLC AM loses packets: {:?}", ledger.dropped);
    }
    let delivered: u64 = (0..count).map(|index| cell.uplink(index).packets_out).sum();
    let lost: u64 = (0..count).map(|index| cell.uplink(index).slots_without_mcs).sum();
    assert!(delivered > 0 || lost > 0, "seed {seed}: no uplink and no cause");
}

#[test]
fn random_cells_conserve_packets() {
    for seed in 0..60 {
        println!("seed {seed}");
        swarm(seed);
    }
}

/// The uplink HARQ of NR is asynchronous: with blocks that fail at first, retransmissions are granted.
#[test]
fn failed_uplink_blocks_are_granted_again() {
    let mut config = nr(1, tdd("DDDSU", 1), 51);
    config.max_harq_tx = 8;
    let mut cell = Cell::new(config, vec![station(0, 20.0, 8.0, 3.0)], 3);
    for ms in 0..1000 {
        let now = Instant::from_millis(ms);
        cell.handle_packet(now, station_port(0), packet(address(0), SERVER, 500));
        drain(&mut cell, now);
    }
    drain(&mut cell, Instant::from_millis(1500));
    let uplink = cell.uplink(0);
    assert!(uplink.harq_retransmissions > 20, "{uplink:?}");
    assert_eq!(
        (uplink.packets_out, uplink.transport_blocks_lost),
        (1000, 0),
        "{uplink:?} {:?}",
        cell.held(0)
    );
    let retransmission_slots = uplink.harq_wait_slots.0 as f64 / uplink.harq_retransmissions as f64;
    // By the decision of the gNB three slots later and K2: one or two periods.
    assert!((5.0..=10.0).contains(&retransmission_slots), "{retransmission_slots}");
    assert_eq!(SlotClock::new(mu(1)).start(Slot(2)), Instant::from_millis(1));
}

/// The time at which a packet leaves a cell that it enters at `arrival`, and the cell at that time.
fn exit(config: CellConfig, station: StationConfig, up: bool, arrival: Instant) -> (Instant, Cell) {
    let mut cell = Cell::new(config, vec![station], 1);
    let (from, to) = if up { (address(0), SERVER) } else { (SERVER, address(0)) };
    cell.handle_packet(arrival, if up { station_port(0) } else { CORE }, packet(from, to, 100));
    while let Some(at) = cell.poll_timeout() {
        cell.handle_timeout(at);
        while let Some(output) = cell.poll_output(at) {
            if matches!(output, Output::Transmit(..)) {
                return (at, cell);
            }
        }
    }
    panic!("the packet does not leave");
}
fn with_lead(mut config: CellConfig, slots: u64, radio: Duration) -> CellConfig {
    let clock = SlotClock::new(config.numerology);
    config.downlink_lead = clock.duration(SlotSpan(slots)) + radio;
    nr_of(&mut config).lead = SlotSpan(slots) + clock.span(radio);
    config
}

#[test]
fn a_lead_delays_the_downlink_by_itself_and_the_uplink_to_a_later_slot_of_the_pattern() {
    let us = Duration::from_micros;
    let ideal = || nr(1, tdd("DDDSU", 1), 51);
    for arrival in (0..25).map(|step| Instant::ZERO + us(100 * step)) {
        let at = |config, up| exit(config, station(0, 40.0, 40.0, 0.0), up, arrival).0;
        // A packet of the downlink meets the slots of a packet that arrives later by the lead.
        let later = exit(ideal(), station(0, 40.0, 40.0, 0.0), false, arrival + us(1300)).0;
        assert_eq!(at(with_lead(ideal(), 1, us(800)), false), later, "{arrival:?}");
        // In the uplink the grant is one or more periods later: there is one slot U in 2.5 ms.
        let shift = at(with_lead(ideal(), 1, us(1500)), true).since(at(ideal(), true));
        assert!(shift == us(2500) || shift == us(0), "{arrival:?}: {shift:?}");
    }
}

#[test]
fn the_stack_of_a_station_delays_both_directions() {
    let us = Duration::from_micros;
    let slow = || StationConfig { processing: us(730), ..station(0, 40.0, 40.0, 0.0) };
    for (up, arrival) in [(false, 10_100), (true, 10_100), (true, 12_400)] {
        let config = || nr(1, Duplex::Fdd, 51);
        let arrival = Instant::ZERO + us(arrival);
        let (at, _) = exit(config(), slow(), up, arrival);
        let fast = station(0, 40.0, 40.0, 0.0);
        let expected = match up {
            true => exit(config(), fast, up, arrival + us(730)).0,
            false => exit(config(), fast, up, arrival).0 + us(730),
        };
        assert_eq!(at, expected);
    }
}

#[test]
fn unasked_grants_replace_requests_until_the_station_is_inactive() {
    let ms = SlotSpan(2);
    let grants = |after, inactivity| {
        let mut config = nr(1, tdd("DDDSU", 1), 51);
        config.access.proactive = Some(ProactiveGrants { after, size: 200, inactivity });
        config
    };
    let arrival = Instant::from_millis(40);
    let at = |config| exit(config, station(0, 40.0, 40.0, 0.0), true, arrival);
    // Without end: no request, and the packet waits for the next slot of the pattern, at most 2.5 ms.
    let mut config = grants(SlotSpan(0), None);
    config.access.sr_period = SlotSpan(40);
    let mut cell = Cell::new(config, vec![station(0, 40.0, 40.0, 0.0)], 1);
    cell.handle_packet(Instant::ZERO, station_port(0), packet(address(0), SERVER, 100));
    drain(&mut cell, arrival);
    let before = cell.access(0).scheduling_requests;
    cell.handle_packet(arrival, station_port(0), packet(address(0), SERVER, 100));
    let out = drain(&mut cell, arrival + Duration::from_millis(5));
    let left = out.iter().find(|(_, output)| matches!(output, Output::Transmit(..))).unwrap().0;
    assert!(left.since(arrival) <= Duration::from_micros(2500 + 1000), "{left:?}");
    assert_eq!(cell.access(0).scheduling_requests, before);
    // A station that never had data gets none, and needs a request; later it gets grants for 20 ms.
    let (_, mut cell) = at(grants(SlotSpan(0), Some(ms * 20)));
    assert_eq!(cell.access(0).scheduling_requests, 1);
    let granted = cell.access(0).grants;
    let idle_at = drain_until_idle(&mut cell);
    let after = idle_at.since(arrival);
    assert!((20..40).contains(&after.as_millis()), "{after:?}");
    assert!(cell.access(0).grants >= granted + 6, "{}", cell.access(0).grants);
    // One grant in 10 ms: about two.
    let (_, mut cell) = at(grants(ms * 10, Some(ms * 20)));
    let granted = cell.access(0).grants;
    drain_until_idle(&mut cell);
    assert!((1..=3).contains(&(cell.access(0).grants - granted)), "{}", cell.access(0).grants - granted);
}

/// Runs a cell until it has no work; gives the time of its last slot.
fn drain_until_idle(cell: &mut Cell) -> Instant {
    let mut last = Instant::ZERO;
    while let Some(at) = cell.poll_timeout() {
        assert!(at < Instant::from_millis(1_000), "the cell does not become idle");
        cell.handle_timeout(at);
        while cell.poll_output(at).is_some() {}
        last = at;
    }
    last
}
