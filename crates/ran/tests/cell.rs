//! The cell through its interface: latency by the timing rules, capacity by the tables, conservation of
//! packets in randomly configured cells.

use crate::common::*;
use paceline_net::{Bytes, DropReason, DropTail, Duration, Instant, Node, Output, Stream};
use paceline_ran::lte::block_errors::block_error_db;
use paceline_ran::lte::cqi;
use paceline_ran::lte::mcs::{DOWNLINK, UPLINK};
use paceline_ran::lte::tbs::transport_block_bits;
use paceline_ran::{
    AmConfig, CORE, Cell, CellConfig, LinkStats, RlcConfig, SINR_ORIGIN_DB, Slot, SlotSpan, station_port,
};

#[test]
fn the_first_uplink_packet_has_the_latency_of_the_timing_rules() {
    // SR at the next occasion s (period 10, offset 0), grant at s+4, PUSCH at s+8 for 1 slot, 2 slots to
    // decode.
    for (arrival_us, occasion) in [(0, 0), (1, 10), (4_300, 10), (9_999, 10), (10_000, 10), (10_001, 20)] {
        let mut cell = Cell::new(config(), vec![station(0, 20.0, 15.0, 0.0)], 1);
        let arrival = Instant::from_nanos(arrival_us * 1000);
        cell.handle_packet(arrival, station_port(0), packet(address(0), SERVER, 0));
        let out = drain(&mut cell, Instant::from_millis(200));
        let expected = start(Slot(occasion + 8 + 1 + 2));
        assert!(
            matches!(out[..], [(at, Output::Transmit(CORE, _))] if at == expected),
            "{arrival_us}: {out:?}"
        );
        assert_eq!(cell.access(0).scheduling_requests, 1);
    }
}

#[test]
fn repeated_scheduling_requests_do_not_delay_the_answer() {
    for sr_period in [1, 2, 5, 10, 20, 40, 80] {
        let mut config = config();
        config.access.sr_period = SlotSpan(sr_period);
        let mut cell = Cell::new(config, vec![station(0, 20.0, 15.0, 0.0)], 1);
        cell.handle_packet(Instant::ZERO, station_port(0), packet(address(0), SERVER, 0));
        let out = drain(&mut cell, Instant::from_millis(200));
        assert!(matches!(out[..], [(at, _)] if at == start(Slot(8 + 1 + 2))), "{sr_period}: {out:?}");
        assert_eq!(cell.poll_timeout(), None, "{sr_period}");
    }
}

#[test]
fn a_packet_beyond_the_first_grant_takes_eight_slots_more() {
    let mut cell = Cell::new(config(), vec![station(0, 20.0, 15.0, 0.0)], 1);
    cell.handle_packet(Instant::ZERO, station_port(0), packet(address(0), SERVER, 1000));
    let out = drain(&mut cell, Instant::from_millis(200));
    // BSR in the block of slot 8, processed at 12, data at 16.
    assert!(matches!(out[..], [(at, _)] if at == start(Slot(16 + 1 + 2))), "{out:?}");
}

#[test]
fn a_downlink_packet_takes_one_slot_and_the_decode_delay() {
    let mut cell = Cell::new(config(), vec![station(0, 20.0, 15.0, 0.0)], 1);
    cell.handle_packet(Instant::from_nanos(2_500_000), CORE, packet(SERVER, address(0), 1000));
    let out = drain(&mut cell, Instant::from_millis(100));
    let port = station_port(0);
    assert!(matches!(out[..], [(at, Output::Transmit(p, _))] if at == start(Slot(3 + 1 + 2)) && p == port));
}

#[test]
fn a_lone_station_fills_the_peak_transport_block() {
    let mut cell = Cell::new(config(), vec![station(0, 25.0, 25.0, 0.0)], 1);
    let (down, up) = saturate(&mut cell)[0];
    // 75,376 bits per slot on 100 resource blocks; in the uplink MCS 20 (I_TBS 19) on the 96 that PUCCH
    // leaves.
    let up_bits = u64::from(paceline_ran::lte::tbs::transport_block_bits(19, 96));
    assert!(down * 8 <= 75_376_000 && down * 8 > 75_376_000 * 98 / 100, "{down}");
    assert!(up * 8 <= up_bits * 1000 && up * 8 > up_bits * 1000 * 95 / 100, "{up}");
}

#[test]
fn the_outer_loop_never_silences_a_station_that_can_send() {
    // One failed block at the lowest MCS brings the corrected SINR below its threshold.
    let lowest = paceline_ran::lte::mcs::UPLINK[0].s10_1024_db;
    let config = paceline_ran::CellConfig { outer_loop: true, ..config() };
    let mut cell = Cell::new(config, vec![station(0, 12.0, lowest + 0.1, 0.0)], 1);
    saturate(&mut cell);
    let uplink = cell.uplink(0);
    assert!(uplink.harq_retransmissions > 0 && uplink.transport_blocks > 800, "{uplink:?}");
}

#[test]
fn the_counted_sinr_is_the_stated_one_and_a_sinr_without_mcs_is_counted() {
    let mut cell = Cell::new(config(), vec![station(0, 17.5, -3.25, 0.0), station(1, -30.0, -30.0, 0.0)], 1);
    saturate(&mut cell);
    for (stats, stated_db) in [(cell.downlink(0), 17.5), (cell.uplink(0), -3.25)] {
        let mean_db = stats.sinr_millidecibels as f64 / stats.transport_blocks as f64 / 1000.0;
        assert!((mean_db + SINR_ORIGIN_DB - stated_db).abs() < 1e-3, "{stats:?}");
        assert_eq!(stats.slots_without_mcs, 0);
    }
    for stats in [cell.downlink(1), cell.uplink(1)] {
        assert!(stats.transport_blocks == 0 && stats.slots_without_mcs > 500, "{stats:?}");
    }
}

#[test]
fn equal_stations_get_equal_shares() {
    let stations = (0..7).map(|i| station(i, 12.0, 8.0, 0.0)).collect();
    let mut cell = Cell::new(config(), stations, 1);
    let shares = saturate(&mut cell);
    for station in 0..7 {
        // The buffers are never empty: packets wait for a grant only at the start.
        let (waited, for_grant) = (cell.uplink_buffer(station).waited(), cell.uplink(station).grant_wait_ns);
        assert!(waited.packets > 100 && for_grant < waited.ns / 10, "{waited:?} {for_grant}");
    }
    for direction in [|s: &(u64, u64)| s.0, |s: &(u64, u64)| s.1] {
        let mean = shares.iter().map(direction).sum::<u64>() as f64 / 7.0;
        for share in &shares {
            assert!((direction(share) as f64 / mean - 1.0).abs() < 0.03, "{shares:?}");
        }
    }
}

#[test]
fn blocks_are_retransmitted_and_lost_as_often_as_the_error_curve_says() {
    let mut checked = 0;
    // SINRs at the lower end of a CQI and of an uplink MCS, where blocks fail.
    for (cqi, uplink_mcs) in [(4, 3), (5, 5), (8, 8), (11, 12)] {
        let downlink_sinr = cqi::threshold_db(cqi).unwrap() + 0.01;
        let uplink_sinr = UPLINK[uplink_mcs].s10_1024_db + 0.01;
        for max_harq_tx in [1, 2, 4] {
            let config = CellConfig { downlink_prb: 6, uplink_prb: 6, pucch_prb: 0, max_harq_tx, ..config() };
            let mut directions = [ErrorCounts::default(); 2];
            for seed in 0..10 {
                let station = station(0, downlink_sinr, uplink_sinr, 0.0);
                let mut cell = Cell::new(config.clone(), vec![station], seed);
                saturate(&mut cell);
                directions[0].add(cell.downlink(0));
                directions[1].add(cell.uplink(0));
            }
            for (counts, (table, sinr)) in
                directions.iter().zip([(&DOWNLINK, downlink_sinr), (&UPLINK, uplink_sinr)])
            {
                let mcs = &table[(counts.mcs_index_sum / counts.blocks) as usize];
                assert_eq!(counts.mcs_index_sum, counts.blocks * u64::from(mcs.index), "a constant MCS");
                let bits = transport_block_bits(mcs.i_tbs, 6);
                // The first uplink grants are smaller.
                assert!(counts.bytes * 8 > counts.blocks * u64::from(bits) * 99 / 100, "full blocks");
                // The k-th transmission has k times the SINR of the first.
                let fails = |k: u32| block_error_db(mcs, bits, sinr + 10.0 * libm::log10(f64::from(k)));
                assert!((0.01..0.9).contains(&fails(1)), "{sinr} dB, {mcs:?}: {}", fails(1));
                // Probability that the first k transmissions of a block all fail.
                let all_fail = |k: u32| (1..=k).map(fails).product::<f64>();
                let retransmissions: f64 = (1..max_harq_tx).map(all_fail).sum();
                for (count, expected) in
                    [(counts.retransmissions, retransmissions), (counts.lost, all_fail(max_harq_tx))]
                {
                    let n = counts.blocks as f64;
                    let deviation = (expected * (1.0 - expected) / n).sqrt();
                    // The feedback of up to eight blocks is outstanding at the end of each run.
                    let outstanding = 80.0 * fails(1) / n;
                    let share = count as f64 / n;
                    let bounds = expected - outstanding - 4.0 * deviation..=expected + 4.0 * deviation;
                    assert!(bounds.contains(&share), "{sinr} dB: {share}, by hand {expected}");
                }
                checked += counts.lost + counts.retransmissions;
            }
        }
    }
    assert!(checked > 10_000, "{checked}");
}

/// Sums of HARQ counters over several runs.
#[derive(Clone, Copy, Default)]
struct ErrorCounts {
    blocks: u64,
    bytes: u64,
    mcs_index_sum: u64,
    retransmissions: u64,
    lost: u64,
}

impl ErrorCounts {
    fn add(&mut self, stats: &LinkStats) {
        self.blocks += stats.transport_blocks;
        self.bytes += stats.transport_block_bytes;
        self.mcs_index_sum += stats.mcs_index_sum;
        self.retransmissions += stats.harq_retransmissions;
        self.lost += stats.transport_blocks_lost;
    }
}

fn random_am(stream: &mut Stream) -> AmConfig {
    AmConfig {
        t_poll_retransmit: SlotSpan(5) * (1 + stream.below(20)),
        poll_pdu: stream.chance(0.7).then(|| 4 << stream.below(7)),
        poll_byte: stream.chance(0.5).then(|| 25_000 * (1 + stream.below(10))),
        max_retx_threshold: 1 + stream.below(8) as u32,
        t_status_prohibit: SlotSpan(5) * stream.below(20),
    }
}

fn random_cell(stream: &mut Stream, seed: u64) -> Cell {
    let prb = [6, 15, 25, 50, 75, 100];
    let mut config = config();
    config.downlink_prb = prb[stream.below(6) as usize];
    config.uplink_prb = prb[stream.below(6) as usize];
    config.pucch_prb = stream.below(3) as u16;
    config.downlink_grants = 1 + stream.below(10) as usize;
    config.uplink_grants = 1 + stream.below(10) as usize;
    config.max_harq_tx = 1 + stream.below(5) as u32;
    config.t_reordering = SlotSpan(5 * stream.below(20));
    config.decode_delay = SlotSpan(stream.below(4));
    config.cqi_period = SlotSpan(1 + stream.below(40));
    config.downlink_buffer = Bytes(2_000 + stream.below(100_000));
    config.access.sr_period = SlotSpan([1, 2, 5, 10, 20, 40, 80][stream.below(7) as usize]);
    config.access.sr_prohibit = config.access.sr_period * stream.below(3);
    let stations = (0..1 + stream.below(12) as usize)
        .map(|i| {
            let (down, up) = (stream.uniform_in(-12.0, 28.0), stream.uniform_in(-12.0, 28.0));
            let mut station = station(i, down, up, stream.uniform_in(0.0, 6.0));
            station.uplink_buffer = Box::new(DropTail::new(Bytes(2_000 + stream.below(50_000))));
            station
        })
        .collect();
    if stream.chance(0.6) {
        config.rlc = RlcConfig::Am(random_am(stream));
    }
    if stream.chance(0.5) {
        config.discard_timer = Some(Duration::from_millis(5 + stream.below(300)));
    }
    Cell::new(config, stations, seed)
}

#[test]
fn packets_are_conserved_in_a_swarm_of_random_cells() {
    let (mut failures, mut expired, mut repeated) = (0, 0, 0);
    for seed in 0..150 {
        let mut stream = Stream::new(seed, "swarm");
        let mut cell = random_cell(&mut stream, seed);
        let stations = cell.stations() as u64;
        let mut left = 0;
        for step in 0..3000u64 {
            let now = Instant::from_nanos(step * 333_000);
            left += drain(&mut cell, now).len();
            let index = stream.below(stations) as usize;
            let len = stream.below(1460) as u32;
            if stream.chance(0.8) {
                cell.handle_packet(now, CORE, packet(SERVER, address(index), len));
            }
            if stream.chance(0.5) {
                cell.handle_packet(now, station_port(index), packet(address(index), SERVER, len / 20));
            }
            assert_conserved(&cell, seed);
        }
        left += drain(&mut cell, Instant::from_millis(4000)).len();
        while cell.poll_output(Instant::from_millis(4000)).is_some() {
            left += 1;
        }
        assert_conserved(&cell, seed);
        let (mut entered, mut held) = (0, 0);
        for index in 0..cell.stations() {
            entered += cell.downlink(index).packets_in + cell.uplink(index).packets_in;
            held += cell.held(index).0 + cell.held(index).1;
        }
        assert_eq!(left as u64 + held, entered, "seed {seed}: every packet is emitted once or held");
        for stats in (0..cell.stations()).flat_map(|i| [cell.downlink(i), cell.uplink(i)]) {
            failures += stats.radio_link_failures;
            expired += stats.dropped.of(DropReason::PdcpDiscard);
            repeated += stats.rlc_retransmissions;
        }
    }
    assert!(failures > 10 && expired > 1000 && repeated > 1000, "{failures} {expired} {repeated}");
}

#[test]
fn a_cell_sleeps_after_any_sequence_of_failures() {
    let (mut failures, mut given_up) = (0, 0);
    for seed in 0..150 {
        let mut stream = Stream::new(seed, "rest");
        let mut config = config();
        config.max_harq_tx = 1 + stream.below(2) as u32;
        config.outer_loop = stream.chance(0.5);
        config.decode_delay = SlotSpan(stream.below(8));
        config.cqi_delay = SlotSpan(stream.below(40));
        config.access.sr_period = SlotSpan([1, 10, 80][stream.below(3) as usize]);
        config.access.sr_grant = 7 + stream.below(300) as u32;
        if stream.chance(0.8) {
            config.rlc = RlcConfig::Am(random_am(&mut stream));
        }
        config.discard_timer = stream.chance(0.5).then(|| Duration::from_millis(50));
        // Within coverage, with frequent block errors.
        let stations = (0..4).map(|i| station(i, 14.0, 12.0, stream.uniform_in(0.0, 4.0))).collect();
        let mut cell = Cell::new(config, stations, seed);
        // Bursts with pauses, some exactly at the start of a slot.
        let mut now = Instant::ZERO;
        for _ in 0..60 {
            now += Duration::from_micros(stream.below(3) * 500 * stream.below(100));
            drain(&mut cell, now);
            let index = stream.below(4) as usize;
            for _ in 0..stream.below(20) {
                if stream.chance(0.5) {
                    cell.handle_packet(now, CORE, packet(SERVER, address(index), 1200));
                } else {
                    let len = 1200 * stream.below(2) as u32;
                    cell.handle_packet(now, station_port(index), packet(address(index), SERVER, len));
                }
            }
        }
        drain(&mut cell, now + Duration::from_secs(60));
        assert_eq!(cell.poll_timeout(), None, "seed {seed}: the cell is awake a minute later");
        assert_conserved(&cell, seed);
        for index in 0..4 {
            assert_eq!(cell.held(index), (0, 0), "seed {seed}");
            for stats in [cell.downlink(index), cell.uplink(index)] {
                failures += stats.radio_link_failures;
                given_up += stats.transport_blocks_lost;
            }
        }
    }
    assert!(failures > 10 && given_up > 500, "{failures} radio-link failures, {given_up} blocks given up");
}

#[test]
fn an_idle_cell_sleeps() {
    let mut cell = Cell::new(config(), (0..5).map(|i| station(i, 20.0, 15.0, 3.0)).collect(), 1);
    assert_eq!(cell.poll_timeout(), None);
    cell.handle_packet(Instant::from_millis(7), station_port(2), packet(address(2), SERVER, 10));
    drain(&mut cell, Instant::from_millis(5000));
    assert_eq!(cell.poll_timeout(), None, "the cell has no work left");
    assert!(cell.active_slots() < 100, "{}", cell.active_slots());
}

#[test]
fn a_packet_to_an_unknown_address_is_dropped() {
    let mut cell = Cell::new(config(), vec![station(0, 20.0, 15.0, 0.0)], 1);
    cell.handle_packet(Instant::ZERO, CORE, packet(SERVER, SERVER, 10));
    assert!(matches!(cell.poll_output(Instant::ZERO), Some(Output::Drop(..))));
}
