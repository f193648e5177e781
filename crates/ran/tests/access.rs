//! Uplink access against the standard's timing and probabilities, computed by hand: lost scheduling requests,
//! random access with collisions, HARQ retransmissions.

use crate::common::*;
use paceline_net::{Instant, Node, Output, Stream, Waited};
use paceline_ran::lte::block_errors::block_error_db;
use paceline_ran::lte::mcs::UPLINK;
use paceline_ran::lte::tbs::transport_block_bits;
use paceline_ran::{CORE, Cell, CellConfig, Slot, SlotSpan, station_port};

/// From the scheduling request to the packet in the core: grant 4 later, PUSCH 8 later, 1 long, 2 to decode.
const AFTER_REQUEST: u64 = 8 + 1 + 2;
/// From a preamble to contention resolution: response 3 later, Msg3 6 later, Msg4 4 later, processed 4 later.
const AFTER_PREAMBLE: u64 = 3 + 6 + 4 + 4;

/// When a small packet that enters the uplink at `arrival` leaves the cell.
fn first_packet(config: CellConfig, seed: u64, arrival: Instant) -> (Cell, Instant) {
    let mut cell = Cell::new(config, vec![station(0, 20.0, 15.0, 0.0)], seed);
    cell.handle_packet(arrival, station_port(0), packet(address(0), SERVER, 0));
    let out = drain(&mut cell, Instant::from_millis(30_000));
    let [(at, Output::Transmit(CORE, _))] = out[..] else { panic!("seed {seed}: {out:?}") };
    (cell, at)
}

#[test]
fn the_first_packets_latency_is_uniform_over_the_request_period() {
    for sr_period in [1, 2, 5, 10, 20, 40, 80] {
        for prohibit in [0, 3] {
            let mut config = config();
            config.access.sr_period = SlotSpan(sr_period);
            config.access.sr_prohibit = config.access.sr_period * prohibit;
            // Arrivals in the middle of each of 200 equal parts of a period.
            const PARTS: u64 = 200;
            let part = sr_period * 1_000_000 / PARTS;
            let mut latencies: Vec<u64> = (0..PARTS)
                .map(|i| {
                    let arrival = Instant::from_nanos(1_000_000_000 + i * part + part / 2);
                    let (cell, at) = first_packet(config.clone(), i, arrival);
                    // The packet waits for its first block, which takes one slot and two more to decode.
                    let waited = at.since(arrival).as_nanos() - 3_000_000;
                    assert_eq!(cell.uplink_buffer(0).waited(), Waited { packets: 1, ns: waited });
                    assert_eq!(cell.uplink(0).grant_wait_ns, waited);
                    at.since(arrival).as_nanos()
                })
                .collect();
            latencies.sort_unstable();
            let expected = |i: u64| AFTER_REQUEST * 1_000_000 + i * part + part / 2;
            assert_eq!(latencies, (0..PARTS).map(expected).collect::<Vec<_>>(), "period {sr_period}");
            let mean = latencies.iter().sum::<u64>() / PARTS;
            assert_eq!(mean, AFTER_REQUEST * 1_000_000 + sr_period * 500_000);
        }
    }
}

#[test]
fn lost_requests_make_the_latency_geometric() {
    for (detection, prohibit) in [(0.5, 0), (0.5, 2), (0.9, 1), (0.99, 0)] {
        let mut config = config();
        config.access.sr_detection = detection;
        config.access.sr_prohibit = SlotSpan(10 * prohibit);
        let step = 10 * prohibit.max(1);
        const RUNS: u64 = 4000;
        let (mut lost, mut none_lost) = (0, 0);
        for seed in 0..RUNS {
            let (cell, at) = first_packet(config.clone(), seed, Instant::from_millis(20));
            let late = at.as_millis() - 20 - AFTER_REQUEST;
            assert!(late.is_multiple_of(step), "seed {seed}: {late}");
            // The SR period is longer than the grant delay, so that no request follows a detected one.
            assert_eq!(cell.access(0).scheduling_requests, 1 + late / step, "seed {seed}");
            assert_eq!(cell.access(0).request_wait_ns, (late + 8) * 1_000_000, "seed {seed}");
            lost += late / step;
            none_lost += u64::from(late == 0);
        }
        let miss = 1.0 - detection;
        let (mean, variance) = (miss / detection, miss / (detection * detection));
        let error = (lost as f64 / RUNS as f64 - mean).abs();
        assert!(error < 4.0 * (variance / RUNS as f64).sqrt(), "{detection}: {lost} of {RUNS}");
        let share = none_lost as f64 / RUNS as f64;
        assert!((share - detection).abs() < 4.0 * (detection * miss / RUNS as f64).sqrt(), "{share}");
    }
}

#[test]
fn unanswered_scheduling_requests_lead_to_random_access() {
    for seed in 0..100 {
        let mut config = config();
        (config.access.sr_detection, config.access.dsr_trans_max) = (0.0, 4);
        let (cell, at) = first_packet(config, seed, Instant::ZERO);
        // Requests at 0, 10, 20, 30; PRACH at 41, response at 44, Msg3 with C-RNTI and BSR at 50, which is
        // answered by a grant at 54 for 58.
        let access = cell.access(0);
        let resolved = 54 + 20 * (access.preambles - 1);
        assert_eq!(at, start(Slot(resolved + 4 + 1 + 2)), "seed {seed}");
        assert_eq!(
            (access.scheduling_requests, access.scheduling_request_failures, access.random_accesses),
            (4, 1, 1)
        );
        assert_eq!(
            (access.contention_resolutions, access.contention_resolution_slots.0),
            (1, resolved - 41),
            "seed {seed}"
        );
        assert_eq!((access.preamble_collisions, access.random_access_failures), (0, 0));
        assert!(cell.connected(0));
    }
}

fn initial(preambles: u64) -> CellConfig {
    let mut config = config();
    with_initial_access(&mut config);
    config.random_access.preambles = preambles;
    config
}

/// Mean slots from the first preamble to the detected one: `1 - e^-i` of the i-th are detected, and the next
/// comes 20 later.
fn mean_preamble_repetition_slots() -> f64 {
    let mut reached = 1.0;
    (1..10)
        .map(|i| {
            reached *= libm::exp(-f64::from(i));
            20.0 * reached
        })
        .sum()
}

#[test]
fn a_lone_station_connects_with_the_latency_of_the_timing_rules() {
    const RUNS: u64 = 4000;
    let (mut sum, mut squares) = (0.0, 0.0);
    for seed in 0..RUNS {
        // Every phase of the frame.
        let phase = seed % 10;
        let (cell, at) = first_packet(initial(52), seed, Instant::from_millis(100 + phase));
        let access = cell.access(0);
        // The PRACH is in subframe 1; a response window of 10 and four slots pass before the next attempt.
        let wait = (11 - phase) % 10;
        let repeated = 20 * (access.preambles - 1);
        assert_eq!(access.contention_resolution_slots.0, wait + repeated + AFTER_PREAMBLE, "seed {seed}");
        // After the set-up the packet waits for a scheduling request.
        let service = 100 + phase + access.contention_resolution_slots.0 + 50;
        let expected = Slot(service.next_multiple_of(10) + AFTER_REQUEST);
        assert_eq!(at, start(expected), "seed {seed}");
        sum += access.contention_resolution_slots.0 as f64;
        squares += (repeated * repeated) as f64;
    }
    let mean = sum / RUNS as f64;
    let expected = 4.5 + mean_preamble_repetition_slots() + AFTER_PREAMBLE as f64;
    // The phases are exact: repetitions alone vary.
    let deviation = (squares / RUNS as f64 / RUNS as f64).sqrt();
    assert!((mean - expected).abs() < 4.0 * deviation, "{mean}, by hand {expected}");
}

#[test]
fn stations_of_one_occasion_collide_as_often_as_the_closed_form_says() {
    for (preambles, count) in [(52, 20), (16, 5), (64, 60)] {
        let runs = 40_000 / count as u64;
        let (mut sent, mut collided) = (0, 0);
        for seed in 0..runs {
            let stations = (0..count).map(|i| station(i, 20.0, 15.0, 0.0)).collect();
            let mut cell = Cell::new(initial(preambles), stations, seed);
            for i in 0..count {
                cell.handle_packet(Instant::ZERO, station_port(i), packet(address(i), SERVER, 0));
            }
            drain(&mut cell, Instant::from_millis(1));
            for i in 0..count {
                sent += cell.access(i).preambles;
                collided += cell.access(i).preamble_collisions;
            }
        }
        assert_eq!(sent, runs * count as u64, "all stations send in subframe 1");
        let share = collided as f64 / sent as f64;
        let expected = 1.0 - libm::pow(1.0 - 1.0 / preambles as f64, count as f64 - 1.0);
        assert!((share - expected).abs() < 0.01, "{preambles}, {count}: {share}, by hand {expected}");
    }
}

#[test]
fn sixty_stations_connect_at_every_prach_configuration() {
    for prach_index in 0..16 {
        let mut config = initial(52);
        config.random_access.prach_index = prach_index;
        let stations = (0..60).map(|i| station(i, 20.0, 15.0, 0.0)).collect();
        let mut cell = Cell::new(config, stations, 1);
        for i in 0..60 {
            // Half of the stations have uplink data, half downlink data.
            if i % 2 == 0 {
                cell.handle_packet(Instant::ZERO, station_port(i), packet(address(i), SERVER, 0));
            } else {
                cell.handle_packet(Instant::ZERO, CORE, packet(SERVER, address(i), 500));
            }
        }
        let out = drain(&mut cell, Instant::from_millis(10_000));
        assert_eq!(out.len(), 60, "index {prach_index}");
        assert!((0..60).all(|i| cell.connected(i) && cell.held(i) == (0, 0)));
        let collisions: u64 = (0..60).map(|i| cell.access(i).preamble_collisions).sum();
        assert!(collisions > 0, "60 stations choose among 52 preambles");
        assert_eq!(cell.poll_timeout(), None);
    }
}

#[test]
fn two_stations_with_one_preamble_never_connect() {
    let mut config = initial(1);
    config.random_access.backoff = SlotSpan(0);
    let stations = (0..2).map(|i| station(i, 20.0, 15.0, 0.0)).collect();
    let mut cell = Cell::new(config, stations, 1);
    for i in 0..2 {
        cell.handle_packet(Instant::ZERO, station_port(i), packet(address(i), SERVER, 0));
    }
    let out = drain(&mut cell, Instant::from_millis(20_000));
    assert!(out.is_empty());
    for i in 0..2 {
        let access = cell.access(i);
        assert_eq!(access.preamble_collisions, access.preambles);
        assert!(access.random_access_failures > 5 && access.contention_resolutions == 0, "{access:?}");
        // Four transmissions of each Msg3; the last Msg3 may be in progress.
        let uplink = cell.uplink(i);
        assert!(
            (3 * uplink.transport_blocks - 3..=3 * uplink.transport_blocks)
                .contains(&uplink.harq_retransmissions),
            "{uplink:?}"
        );
        assert_eq!(cell.held(i), (0, 1));
    }
}

#[test]
fn an_uplink_below_the_lowest_mcs_fails_and_keeps_waiting_packets() {
    let mut config = config();
    config.access.dsr_trans_max = 4;
    config.random_access.max_preambles = 3;
    let mut cell = Cell::new(config, vec![station(0, 20.0, -20.0, 0.0)], 1);
    cell.handle_packet(Instant::ZERO, station_port(0), packet(address(0), SERVER, 0));
    assert!(drain(&mut cell, Instant::from_millis(5000)).is_empty());
    let access = cell.access(0);
    assert_eq!(
        (access.scheduling_request_failures, cell.uplink(0).radio_link_failures),
        (1, 1),
        "{access:?}"
    );
    assert!(access.random_access_failures > 3 && access.contention_resolutions == 0 && !cell.connected(0));
    assert_eq!(cell.held(0), (0, 1));
    assert_conserved(&cell, 1);
}

/// MCS 0 reaches 10% block error at -7.0 dB. Four transmissions gain 6 dB, one gains nothing.
#[test]
fn harq_carries_the_lowest_mcs_below_its_threshold() {
    for (sinr_db, max_harq_tx, serves) in [
        (-6.9, 4, true),
        (-7.2, 1, false),
        (-7.2, 4, true),
        (-10.0, 4, true),
        (-12.5, 4, true),
        (-13.2, 4, false),
        (-13.2, 8, true),
    ] {
        let config = CellConfig { max_harq_tx, ..config() };
        let mut cell = Cell::new(config, vec![station(0, 20.0, sinr_db, 0.0)], 1);
        for packets in 0..50 {
            let now = Instant::from_millis(100 * packets);
            cell.handle_packet(now, station_port(0), packet(address(0), SERVER, 0));
            drain(&mut cell, now);
        }
        drain(&mut cell, Instant::from_millis(10_000));
        let uplink = cell.uplink(0);
        let case = format!("{sinr_db} dB, {max_harq_tx} transmissions: {uplink:?}");
        assert_eq!(uplink.packets_out >= 40, serves, "{case}");
        // Without service, results name the cause.
        assert_eq!(uplink.slots_without_mcs > 0, !serves, "{case}");
        assert_conserved(&cell, 1);
    }
}

#[test]
fn the_prach_takes_six_prbs_of_its_subframes() {
    let share = |reserved: bool, prach_index: u8| {
        let mut config = config();
        config.random_access.prach_reserved = reserved;
        config.random_access.prach_index = prach_index;
        let mut cell = Cell::new(config, vec![station(0, 25.0, 25.0, 0.0)], 1);
        // Counting begins after the connection.
        cell.handle_packet(Instant::ZERO, station_port(0), packet(address(0), SERVER, 0));
        drain(&mut cell, Instant::from_millis(400));
        let mut before = 0;
        for ms in 1000..3000 {
            let now = Instant::from_millis(ms);
            while cell.uplink_buffer(0).bytes().0 < 200_000 {
                cell.handle_packet(now, station_port(0), packet(address(0), SERVER, 1400));
            }
            drain(&mut cell, now);
            if ms == 1999 {
                before = cell.uplink(0).prbs;
            }
        }
        cell.uplink(0).prbs - before
    };
    assert_eq!(share(false, 14), 96_000);
    // 90 of 96 PRBs are left in one subframe of ten, in five, in all.
    for (index, subframes) in [(3, 100), (12, 500), (14, 1000)] {
        assert_eq!(share(true, index), 96_000 - 6 * subframes, "index {index}");
    }
}

#[test]
fn harq_retransmits_as_often_as_the_curve_and_combining_say() {
    let mut checked = 0;
    for (mcs, above_db) in [(3, 0.0), (5, 0.0), (6, 0.05), (9, 0.02)] {
        let config = CellConfig { uplink_prb: 6, pucch_prb: 0, ..config() };
        let sinr = UPLINK[mcs].s10_1024_db + above_db;
        let bits = transport_block_bits(UPLINK[mcs].i_tbs, 6);
        let mut cell = Cell::new(config, vec![station(0, 20.0, sinr, 0.0)], 11);
        for _ in 0..8 {
            saturate_uplink(&mut cell);
        }
        let stats = cell.uplink(0);
        assert_eq!(stats.mcs_index_sum, stats.transport_blocks * mcs as u64);
        assert!(
            stats.transport_block_bytes * 8 > stats.transport_blocks * u64::from(bits) * 99 / 100,
            "full blocks"
        );
        // The k-th transmission fails with the curve at k times the SINR.
        let fails = |k: i32| block_error_db(&UPLINK[mcs], bits, sinr + 10.0 * libm::log10(f64::from(k)));
        let p = [1, 2, 3, 4].map(fails);
        let expected = p[0] + p[0] * p[1] + p[0] * p[1] * p[2];
        let mean = stats.harq_retransmissions as f64 / stats.transport_blocks as f64;
        let deviation = (p[0] * (1.0 - p[0]) / stats.transport_blocks as f64).sqrt();
        assert!(p[0] > 0.01, "{p:?}");
        assert!((mean - expected).abs() < 4.0 * deviation, "MCS {mcs}: {mean}, by hand {expected}");
        // Synchronous: each retransmission is eight slots later. Blocks given up or not decoded yet do not
        // count.
        let undecoded = 8 * 3 * (stats.transport_blocks_lost + 8);
        let (waited, repeated) = (stats.harq_wait_slots.0, 8 * stats.harq_retransmissions);
        assert!(waited <= repeated && waited + undecoded >= repeated, "{stats:?}");
        checked += stats.transport_blocks;
    }
    assert!(checked > 20_000, "{checked}");
}

/// One second with a full uplink buffer.
fn saturate_uplink(cell: &mut Cell) {
    let start = cell.poll_timeout().unwrap_or(Instant::ZERO).as_millis();
    for now in (start..start + 1000).map(Instant::from_millis) {
        while cell.uplink_buffer(0).bytes().0 < 100_000 {
            cell.handle_packet(now, station_port(0), packet(address(0), SERVER, 1400));
        }
        drain(cell, now);
    }
}

#[test]
fn packets_are_conserved_under_random_access() {
    let (mut failures, mut requests_failed, mut collisions, mut resolved) = (0, 0, 0, 0);
    for seed in 0..100 {
        let mut stream = Stream::new(seed, "access");
        let mut config = config();
        config.uplink_prb = [6, 15, 50][stream.below(3) as usize];
        config.pucch_prb = stream.below(5) as u16;
        config.max_harq_tx = 1 + stream.below(5) as u32;
        config.access.sr_period = SlotSpan([1, 2, 10, 20][stream.below(4) as usize]);
        config.access.sr_detection = stream.uniform();
        config.access.dsr_trans_max = 4;
        let ra = &mut config.random_access;
        ra.connected_at_start = !stream.chance(0.5);
        ra.prach_reserved = !ra.connected_at_start;
        ra.prach_index = stream.below(14) as u8;
        ra.preambles = 4 + stream.below(61);
        ra.max_preambles = 3 + stream.below(5) as u32;
        ra.response_window = SlotSpan(2 + stream.below(9));
        ra.responses = 1 + stream.below(5) as usize;
        ra.backoff = SlotSpan(10 * stream.below(10));
        ra.contention_timer = SlotSpan(8 * (1 + stream.below(8)));
        ra.max_msg3_tx = 1 + stream.below(5) as u32;
        (ra.setup, ra.cell_selection) = (SlotSpan(stream.below(60)), SlotSpan(stream.below(60)));
        if stream.chance(0.5) {
            config.rlc = paceline_ran::RlcConfig::Am(paceline_ran::AmConfig {
                t_poll_retransmit: SlotSpan(5 + 5 * stream.below(10)),
                poll_pdu: Some(4),
                poll_byte: None,
                max_retx_threshold: 1 + stream.below(4) as u32,
                t_status_prohibit: SlotSpan(5) * stream.below(5),
            });
        }
        let count = 1 + stream.below(30) as usize;
        let stations = (0..count)
            .map(|i| station(i, stream.uniform_in(-8.0, 20.0), stream.uniform_in(-8.0, 15.0), 4.0))
            .collect();
        let mut cell = Cell::new(config, stations, seed);
        let (mut entered, mut left) = (0u64, 0u64);
        for step in 0..2000u64 {
            let now = Instant::from_nanos(step * 777_000);
            left += drain(&mut cell, now).len() as u64;
            for _ in 0..stream.below(3) {
                let i = stream.below(count as u64) as usize;
                let len = stream.below(1400) as u32;
                if stream.chance(0.3) {
                    cell.handle_packet(now, CORE, packet(SERVER, address(i), len));
                } else {
                    cell.handle_packet(now, station_port(i), packet(address(i), SERVER, len / 4));
                }
                entered += 1;
            }
            assert_conserved(&cell, seed);
        }
        left += drain(&mut cell, Instant::from_millis(3000)).len() as u64;
        while cell.poll_output(Instant::from_millis(3000)).is_some() {
            left += 1;
        }
        let held: u64 = (0..count).map(|i| cell.held(i).0 + cell.held(i).1).sum();
        assert_eq!(entered, left + held, "seed {seed}");
        for i in 0..count {
            let access = cell.access(i);
            failures += access.random_access_failures;
            requests_failed += access.scheduling_request_failures;
            collisions += access.preamble_collisions;
            resolved += access.contention_resolutions;
            assert!(
                access.contention_resolutions <= access.random_accesses
                    && access.preamble_collisions <= access.preambles
            );
        }
    }
    assert!(
        failures > 20 && requests_failed > 50 && collisions > 200 && resolved > 500,
        "{failures} {requests_failed} {collisions} {resolved}"
    );
}

#[test]
fn the_response_window_bounds_the_number_of_responses() {
    for (responses, window) in [(1, 2), (1, 10), (3, 2), (3, 4)] {
        let mut config = initial(64);
        (config.random_access.responses, config.random_access.response_window) =
            (responses, SlotSpan(window));
        let count = 60;
        let stations = (0..count).map(|i| station(i, 20.0, 15.0, 0.0)).collect();
        let mut cell = Cell::new(config, stations, 5);
        for i in 0..count {
            cell.handle_packet(Instant::ZERO, station_port(i), packet(address(i), SERVER, 0));
        }
        // Preambles at 1, window from 4 on, Msg3 6 later: by 21 all first transmissions have been sent.
        drain(&mut cell, Instant::from_millis(20));
        let alone =
            |i: &usize| cell.access(*i).preamble_collisions == 0 && cell.uplink(*i).transport_blocks > 0;
        let answered = (0..count).filter(alone).count();
        let places = responses * window as usize;
        assert!(answered <= places && answered * 4 >= places.min(12), "{answered} of {places}");
    }
}
