//! LTE-TDD cells: throughput by the subframes of each configuration, latencies and HARQ round trips by the
//! tables of TS 36.213, bundling of HARQ-ACKs, conservation of packets.

use crate::common::*;
use paceline_net::{Bytes, DropTail, Duration, Instant, Node, Output, SlotPattern, Stream};
use paceline_ran::lte::prach::tdd_indices;
use paceline_ran::lte::tbs::transport_block_bits;
use paceline_ran::lte::tdd::{AckMode, Distances, dwpts_tbs_prbs};
use paceline_ran::{
    AmConfig, CORE, Cell, CellConfig, Duplex, Fading, RlcConfig, SlotSpan, StationLink, station_port,
};

/// Usual special subframe: 10 downlink symbols, 2 of guard, 2 uplink symbols.
const SPECIAL: u8 = 7;

fn tdd(configuration: u8, special: u8) -> CellConfig {
    let mut config = config();
    config.duplex = Duplex::Tdd(SlotPattern::lte(configuration, special).unwrap());
    if !Distances::of(configuration).unwrap().allows(config.ack_mode) {
        config.ack_mode = AckMode::Bundling;
    }
    config
}

/// Bytes that a lone station with full buffers gets per frame, downlink and uplink, from frame 20 to 120.
fn bytes_per_frame(config: CellConfig, sinr_db: f64) -> (f64, f64) {
    let mut cell = Cell::new(config, vec![station(0, sinr_db, sinr_db, 0.0)], 1);
    let counts = |cell: &Cell| (cell.downlink(0).bytes_out as f64, cell.uplink(0).bytes_out as f64);
    let mut before = (0.0, 0.0);
    for ms in 0..1200 {
        let now = Instant::from_millis(ms);
        if ms == 200 {
            before = counts(&cell);
        }
        while cell.downlink_queue(0) < Bytes(200_000) {
            cell.handle_packet(now, CORE, packet(SERVER, address(0), 1400));
        }
        while cell.uplink_buffer(0).bytes() < Bytes(200_000) {
            cell.handle_packet(now, station_port(0), packet(address(0), SERVER, 1400));
        }
        drain(&mut cell, now);
    }
    let after = counts(&cell);
    ((after.0 - before.0) / 100.0, (after.1 - before.1) / 100.0)
}

#[test]
fn full_buffers_fill_the_blocks_of_every_subframe() {
    for configuration in 0..=6 {
        let pattern = SlotPattern::lte(configuration, SPECIAL).unwrap();
        let count = |letter| pattern.slots().iter().filter(|slot| slot.letter() == letter).count() as f64;
        // I_TBS 26 on 100 PRBs, in special subframes the column of 75; I_TBS 19 on the PUSCH's 96 PRBs.
        let down = count('D') * 75_376.0 + count('S') * f64::from(transport_block_bits(26, 75));
        let up = count('U') * f64::from(transport_block_bits(19, 96));
        let got = bytes_per_frame(tdd(configuration, SPECIAL), 25.0);
        for (got, expected) in [(got.0 * 8.0, down), (got.1 * 8.0, up)] {
            // Headers of MAC, RLC and PDCP take below 1%.
            let share = got / expected;
            assert!(
                (0.985..=1.0).contains(&share),
                "configuration {configuration}: {got} of {expected} bits"
            );
        }
    }
}

#[test]
fn special_subframes_carry_blocks_of_their_length() {
    for special in 0..=9 {
        let symbols = SlotPattern::lte(2, special).unwrap().kind(1).down;
        let bits = dwpts_tbs_prbs(100, symbols).map_or(0, |prbs| transport_block_bits(26, prbs.into()));
        let expected = 6.0 * 75_376.0 + 2.0 * f64::from(bits);
        let share = bytes_per_frame(tdd(2, special), 25.0).0 * 8.0 / expected;
        assert!((0.985..=1.0).contains(&share), "special subframe {special}: {share}");
    }
}

/// One packet at a time over a lossy channel: in each direction, for every retransmitted block, the subframe
/// of its first transmission and the slots until the transmission that was decoded.
fn retransmissions(configuration: u8, seed: u64) -> [Vec<(u8, u64)>; 2] {
    let mut config = tdd(configuration, SPECIAL);
    config.max_harq_tx = 8;
    // One CQI for the whole run, so that blocks fail often.
    config.cqi_period = SlotSpan(1_000_000);
    let mut station = station(0, 12.0, 12.0, 6.0);
    station.link = StationLink::Stated {
        downlink_sinr_db: 12.0,
        uplink_sinr_db: 12.0,
        fading: Fading { sigma_db: 6.0, coherence_slots: 2.0 },
    };
    let after = config.decode_delay.0 + 1;
    let mut cell = Cell::new(config, vec![station], seed);
    let mut found = [Vec::new(), Vec::new()];
    let mut now = Instant::ZERO;
    let mut stream = Stream::new(seed, "arrivals");
    for n in 0..600 {
        now += Duration::from_millis(200 + stream.below(20));
        drain(&mut cell, now);
        let direction = n % 2;
        let counters = |cell: &Cell| {
            let stats = if direction == 0 { cell.downlink(0) } else { cell.uplink(0) };
            (stats.transport_blocks, stats.harq_wait_slots.0)
        };
        let before = counters(&cell);
        if direction == 0 {
            cell.handle_packet(now, CORE, packet(SERVER, address(0), 0));
        } else {
            cell.handle_packet(now, station_port(0), packet(address(0), SERVER, 0));
        }
        let out = drain(&mut cell, now + Duration::from_millis(190));
        let delta = counters(&cell);
        let (blocks, waited) = (delta.0 - before.0, delta.1 - before.1);
        if let [(at, Output::Transmit(..))] = out[..]
            && blocks == 1
            && waited > 0
        {
            let sent = at.as_nanos() / 1_000_000 - after - waited;
            found[direction].push(((sent % 10) as u8, waited));
        }
    }
    found
}

#[test]
fn retransmissions_have_the_round_trips_of_the_tables() {
    for configuration in 0..=6 {
        let distances = Distances::of(configuration).unwrap();
        let found = retransmissions(configuration, 3);
        for (direction, of_direction) in found.iter().enumerate() {
            assert!(of_direction.len() > 10, "configuration {configuration}: {found:?}");
            for (subframe, waited) in of_direction {
                let (mut at, mut sum) = (*subframe, 0);
                while sum < *waited {
                    let trip = if direction == 0 {
                        distances.downlink_round_trip(at)
                    } else {
                        distances.uplink_round_trip(at)
                    };
                    let trip =
                        trip.unwrap_or_else(|| panic!("{configuration} {direction}: no subframe {at}"));
                    sum += u64::from(trip);
                    at = (at + trip) % 10;
                }
                assert_eq!(sum, *waited, "configuration {configuration}, {direction}, subframe {subframe}");
            }
        }
    }
}

#[test]
fn an_idle_cell_has_the_latencies_of_its_subframes() {
    // Request of station 0 in subframe 2; the eNB reacts four subframes later, in subframe 6; the next grant
    // stands in subframe 6 or 8, its PUSCH in 12 or 13.
    for (configuration, pusch) in [12, 12, 12, 12, 12, 12, 13].into_iter().enumerate() {
        let mut cell = Cell::new(tdd(configuration as u8, SPECIAL), vec![station(0, 20.0, 15.0, 0.0)], 1);
        cell.handle_packet(Instant::ZERO, station_port(0), packet(address(0), SERVER, 0));
        let out = drain(&mut cell, Instant::from_millis(200));
        let expected = Instant::from_millis(pusch + 1 + 2);
        assert!(matches!(out[..], [(at, _)] if at == expected), "configuration {configuration}: {out:?}");
        assert_eq!(cell.poll_timeout(), None);
    }
    // A downlink packet waits for the next subframe with PDSCH.
    for configuration in 0..=6 {
        for special in [0, SPECIAL] {
            let pattern = SlotPattern::lte(configuration, special).unwrap();
            for arrival in 0..10 {
                let config = tdd(configuration, special);
                let mut cell = Cell::new(config, vec![station(0, 20.0, 15.0, 0.0)], 1);
                cell.handle_packet(Instant::from_millis(arrival), CORE, packet(SERVER, address(0), 0));
                let out = drain(&mut cell, Instant::from_millis(200));
                let sent = (arrival..).find(|slot| pattern.kind(*slot).down > 3).unwrap();
                let expected = Instant::from_millis(sent + 1 + 2);
                assert!(matches!(out[..], [(at, _)] if at == expected), "{configuration} {arrival}: {out:?}");
            }
        }
    }
}

/// Two blocks of one bundle over a lossy channel, many times: how often none, one, ... of the following
/// transmissions were retransmissions.
fn retransmitted_in_pairs(ack_mode: AckMode) -> Vec<u64> {
    // Configuration 1: subframes 0 and 1 are acknowledged in subframe 7.
    let config = CellConfig { ack_mode, max_harq_tx: 8, ..tdd(1, SPECIAL) };
    let mut station = station(0, 12.0, 12.0, 0.0);
    station.link = StationLink::Stated {
        downlink_sinr_db: 12.0,
        uplink_sinr_db: 12.0,
        fading: Fading { sigma_db: 4.0, coherence_slots: 1.0 },
    };
    let mut cell = Cell::new(config, vec![station], 5);
    let mut counts = vec![0; 20];
    for n in 1..=500 {
        let before = cell.downlink(0).harq_retransmissions;
        for subframe in 0..2 {
            let now = Instant::from_millis(200 * n + subframe);
            cell.handle_packet(now, CORE, packet(SERVER, address(0), 1000));
            drain(&mut cell, now);
        }
        drain(&mut cell, Instant::from_millis(200 * n + 190));
        counts[(cell.downlink(0).harq_retransmissions - before) as usize] += 1;
    }
    assert_eq!(cell.downlink(0).packets_out, 1000, "{ack_mode:?}");
    counts
}

#[test]
fn a_failed_block_repeats_its_bundle() {
    let bundled = retransmitted_in_pairs(AckMode::Bundling);
    let multiplexed = retransmitted_in_pairs(AckMode::Multiplexing);
    assert!(bundled[0] > 50 && bundled[2] > 50, "{bundled:?}");
    assert_eq!(bundled[1], 0, "both blocks or none: {bundled:?}");
    assert!(multiplexed[1] > 50, "one block alone: {multiplexed:?}");
}

#[test]
#[should_panic(expected = "TS 36.213 §7.3")]
fn configuration_5_has_bundling_alone() {
    let config = CellConfig { ack_mode: AckMode::Multiplexing, ..tdd(5, SPECIAL) };
    Cell::new(config, vec![station(0, 20.0, 15.0, 0.0)], 1);
}

fn random_cell(stream: &mut Stream, seed: u64) -> Cell {
    let configuration = stream.below(7) as u8;
    let mut config = tdd(configuration, stream.below(10) as u8);
    if stream.chance(0.5) {
        config.ack_mode = AckMode::Bundling;
    }
    let prb = [6, 15, 25, 50, 75, 100][stream.below(6) as usize];
    (config.downlink_prb, config.uplink_prb) = (prb, prb);
    config.pucch_prb = stream.below(3) as u16;
    config.downlink_grants = 1 + stream.below(10) as usize;
    config.uplink_grants = 1 + stream.below(10) as usize;
    config.max_harq_tx = 1 + stream.below(5) as u32;
    config.t_reordering = SlotSpan(5 * stream.below(20));
    config.cqi_period = SlotSpan(1 + stream.below(40));
    config.outer_loop = stream.chance(0.5);
    config.access.sr_period = SlotSpan([1, 2, 5, 10, 20, 40, 80][stream.below(7) as usize]);
    config.access.dsr_trans_max = [4, 64][stream.below(2) as usize];
    let indices: Vec<u8> = tdd_indices(configuration).collect();
    config.random_access.prach_index = indices[stream.below(indices.len() as u64) as usize];
    if stream.chance(0.5) {
        with_initial_access(&mut config);
    }
    if stream.chance(0.6) {
        config.rlc = RlcConfig::Am(AmConfig {
            t_poll_retransmit: SlotSpan(20 + stream.below(80)),
            poll_pdu: Some(16),
            poll_byte: None,
            max_retx_threshold: 1 + stream.below(8) as u32,
            t_status_prohibit: SlotSpan(5 * stream.below(10)),
        });
    }
    let stations = (0..1 + stream.below(12) as usize).map(|i| {
        let (down, up) = (stream.uniform_in(-4.0, 28.0), stream.uniform_in(-4.0, 28.0));
        let mut station = station(i, down, up, stream.uniform_in(0.0, 6.0));
        station.uplink_buffer = Box::new(DropTail::new(Bytes(2_000 + stream.below(50_000))));
        station
    });
    let stations = stations.collect();
    Cell::new(config, stations, seed)
}

#[test]
fn packets_are_conserved_in_a_swarm_of_tdd_cells() {
    let (mut delivered, mut repeated, mut accesses) = ([0; 2], 0, 0);
    for seed in 0..80 {
        let mut stream = Stream::new(seed, "tdd swarm");
        let mut cell = random_cell(&mut stream, seed);
        let stations = cell.stations() as u64;
        let mut left = 0;
        for step in 0..2500u64 {
            let now = Instant::from_nanos(step * 333_000);
            left += drain(&mut cell, now).len();
            let index = stream.below(stations) as usize;
            let len = stream.below(1460) as u32;
            if stream.chance(0.5) {
                cell.handle_packet(now, CORE, packet(SERVER, address(index), len));
            }
            if stream.chance(0.3) {
                cell.handle_packet(now, station_port(index), packet(address(index), SERVER, len / 5));
            }
            if step % 50 == 0 {
                assert_conserved(&cell, seed);
            }
        }
        left += drain(&mut cell, Instant::from_millis(20_000)).len();
        assert_conserved(&cell, seed);
        let (mut entered, mut held) = (0, 0);
        for index in 0..cell.stations() {
            let (down, up) = (cell.downlink(index), cell.uplink(index));
            entered += down.packets_in + up.packets_in;
            held += cell.held(index).0 + cell.held(index).1;
            delivered = [delivered[0] + down.packets_out, delivered[1] + up.packets_out];
            repeated += down.harq_retransmissions + up.harq_retransmissions;
            accesses += cell.access(index).contention_resolutions;
        }
        assert_eq!(left as u64 + held, entered, "seed {seed}: every packet is emitted once or held");
    }
    assert!(delivered[0] > 30_000 && delivered[1] > 15_000, "{delivered:?}");
    assert!(repeated > 5_000 && accesses > 100, "{repeated} retransmissions, {accesses} random accesses");
}

#[test]
fn the_capacity_counts_the_slots_of_each_direction() {
    for configuration in 0..=6 {
        for special in [0, SPECIAL] {
            let pattern = SlotPattern::lte(configuration, special).unwrap();
            let count = |letters: &str| {
                pattern.slots().iter().filter(|slot| letters.contains(slot.letter())).count() as f64
            };
            let cell = Cell::new(tdd(configuration, special), vec![station(0, 20.0, 15.0, 0.0)], 1);
            let down = count(if special == 0 { "D" } else { "DS" });
            assert_eq!(cell.resource_blocks(), (10.0 * down, 10.0 * count("U")));
            // In configuration 0 subframes 0, 1, 5 and 6 have the grants of six uplink subframes.
            assert_eq!(cell.uplink_grants(), if configuration == 0 { 4.0 } else { count("U") });
        }
    }
    let cell = Cell::new(config(), vec![station(0, 20.0, 15.0, 0.0)], 1);
    assert_eq!((cell.resource_blocks(), cell.uplink_grants()), ((100.0, 100.0), 10.0));
}
