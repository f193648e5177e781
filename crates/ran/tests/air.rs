//! Interference between cells, schedulers with full buffers, and uplink power control.

use crate::common::*;
use paceline_net::{Bytes, Duration, Instant, Node};
use paceline_ran::radio::{DeploymentConfig, Load, PowerControl, noise_per_prb_dbm};
use paceline_ran::{
    CORE, Cell, CellConfig, HeadroomConfig, LinkStats, Numerology, Policy, RadioConfig, SlotSpan,
    StationConfig, StationLink, station_port,
};

/// Seven sites of 3GPP case 1 around a 10 MHz cell.
fn deployed(neighbours: Load) -> CellConfig {
    let deployment = DeploymentConfig { sites: 7, wrap_around: false, ..DeploymentConfig::case1() };
    let power_control =
        PowerControl { pcmax_dbm: 23.0, min_dbm: -40.0, p0_dbm: -85.0, alpha: 0.8, delta_mcs: false };
    let radio = RadioConfig {
        deployment,
        served_sites: 1,
        neighbours,
        fading: None,
        speed_kmh: 3.0,
        power_control,
        tpc_target_db: None,
        blockage: None,
        headroom: HeadroomConfig {
            periodic: Some(SlotSpan(100)),
            prohibit: SlotSpan(20),
            path_loss_change_db: Some(3.0),
        },
    };
    CellConfig { radio: Some(radio), downlink_prb: 50, uplink_prb: 50, ..config() }
}

fn placed(count: usize) -> Vec<StationConfig> {
    (0..count).map(|i| StationConfig { link: StationLink::Placed, ..station(i, 0.0, 0.0, 0.0) }).collect()
}

/// Keeps both buffers of some stations full for `ms` milliseconds.
fn saturate_stations(cell: &mut Cell, stations: &[usize], ms: u64) {
    for now in (0..ms).map(Instant::from_millis) {
        for &index in stations {
            while cell.downlink_queue(index) < Bytes(100_000) {
                cell.handle_packet(now, CORE, packet(SERVER, address(index), 1400));
            }
            while cell.uplink_buffer(index).bytes() < Bytes(50_000) {
                cell.handle_packet(now, station_port(index), packet(address(index), SERVER, 1400));
            }
        }
        drain(cell, now);
        while cell.poll_output(now).is_some() {}
    }
}

/// Mean MCS index of first transmissions; 0 without any.
fn mean_mcs(stats: &LinkStats) -> f64 {
    stats.mcs_index_sum as f64 / stats.transport_blocks.max(1) as f64
}

#[test]
fn quiet_neighbours_let_a_station_use_a_higher_mcs() {
    let mut gains = [0.0; 2];
    for seed in 0..12 {
        let mcs = [Load::Full, Load::Share(0.3), Load::Quiet].map(|load| {
            let mut cell = Cell::new(deployed(load), placed(1), seed);
            saturate_stations(&mut cell, &[0], 200);
            [mean_mcs(cell.downlink(0)), mean_mcs(cell.uplink(0))]
        });
        for (direction, highest) in [28.0, 20.0].into_iter().enumerate() {
            let [full, share, quiet] = mcs.map(|of_load| of_load[direction]);
            assert!(quiet >= share && quiet >= full, "seed {seed}: {mcs:?}");
            assert!(quiet > full || full == highest, "seed {seed}: {mcs:?}");
            gains[direction] += (quiet - full) / 12.0;
        }
    }
    assert!(gains[0] > 5.0 && gains[1] > 1.0, "{gains:?}");
}

#[test]
fn stations_of_the_other_sectors_interfere_while_they_are_served() {
    let mut compared = 0;
    for seed in 0..12 {
        let run = |stations: &[usize]| {
            let mut cell = Cell::new(deployed(Load::Quiet), placed(3), seed);
            let sectors = [0, 1, 2].map(|index| cell.serving(index));
            saturate_stations(&mut cell, stations, 200);
            (sectors, mean_mcs(cell.downlink(0)))
        };
        let (sectors, alone) = run(&[0]);
        if sectors[1] == sectors[0] || sectors[2] == sectors[0] {
            continue;
        }
        compared += u32::from(run(&[0, 1, 2]).1 < alone);
        assert!(run(&[0, 1, 2]).1 <= alone, "seed {seed}");
    }
    assert!(compared >= 2, "{compared}");
}

#[test]
fn any_pair_of_bandwidths_works_in_a_deployment() {
    for downlink_prb in [6, 15, 25, 50, 75, 100] {
        for uplink_prb in [6, 15, 25, 50, 75, 100] {
            let pucch_prb = 2;
            let config = CellConfig { downlink_prb, uplink_prb, pucch_prb, ..deployed(Load::Share(0.3)) };
            let mut cell = Cell::new(config, placed(6), 3);
            saturate_stations(&mut cell, &[0, 1, 2, 3, 4, 5], 30);
            assert_conserved(&cell, 3);
        }
    }
}

#[test]
fn a_station_out_of_coverage_does_not_affect_the_others() {
    let config = CellConfig { discard_timer: Some(Duration::from_millis(100)), ..config() };
    let mut cell = Cell::new(config, vec![station(0, -20.0, -20.0, 0.0), station(1, 20.0, 15.0, 0.0)], 1);
    saturate_stations(&mut cell, &[0, 1], 500);
    drain(&mut cell, Instant::from_millis(2000));
    assert_eq!((cell.downlink(0).transport_blocks, cell.uplink(0).transport_blocks), (0, 0));
    assert!(cell.downlink(1).bytes_out > 2_000_000 && cell.uplink(1).bytes_out > 500_000);
    assert_eq!(cell.held(1), (0, 0));
    assert_conserved(&cell, 1);
}

/// One second of stations with full buffers at these downlink and uplink SINRs, without block errors.
fn contention(scheduler: Policy, sinrs: &[(f64, f64)]) -> Cell {
    let stations = sinrs.iter().enumerate().map(|(i, (down, up))| station(i, *down, *up, 0.0)).collect();
    let mut cell = Cell::new(CellConfig { scheduler, uplink_scheduler: scheduler, ..config() }, stations, 1);
    saturate(&mut cell);
    cell
}

type Direction = for<'a> fn(&'a Cell, usize) -> &'a LinkStats;
const DIRECTIONS: [(&str, Direction); 2] = [("downlink", Cell::downlink), ("uplink", Cell::uplink)];

#[test]
fn every_scheduler_gives_equal_stations_equal_shares_of_the_capacity() {
    let at = (13.0, 13.0);
    for policy in [Policy::RoundRobin, Policy::ProportionalFair, Policy::MaxCi] {
        let alone = contention(policy, &[at]);
        for count in [2, 4, 8] {
            let cell = contention(policy, &vec![at; count]);
            for (name, of) in DIRECTIONS {
                let fair = of(&alone, 0).bytes_out as f64 / count as f64;
                let shares: Vec<f64> =
                    (0..count).map(|station| of(&cell, station).bytes_out as f64 / fair).collect();
                let equal = shares.iter().all(|share| (share - 1.0).abs() < 0.02);
                assert!(equal, "{policy:?}, {count} stations, {name}: {shares:.3?} of an equal share");
            }
        }
    }
}

#[test]
fn proportional_fairness_shares_time_and_the_best_station_takes_all_by_max_ci() {
    let sinrs = [(4.0, 2.0), (10.0, 6.0), (19.0, 13.0)];
    for (name, of) in DIRECTIONS {
        let shares = |policy: Policy| {
            let cell = contention(policy, &sinrs);
            let blocks = [0, 1, 2].map(|station| of(&cell, station).prbs as f64);
            blocks.map(|of_one| of_one / blocks.iter().sum::<f64>())
        };
        for policy in [Policy::ProportionalFair, Policy::RoundRobin] {
            let fair = shares(policy);
            let equal = fair.iter().all(|share| (share * 3.0 - 1.0).abs() < 0.05);
            assert!(equal, "{policy:?}, {name}: {fair:.3?}");
        }
        let best = shares(Policy::MaxCi);
        assert!(best[2] > 0.97, "{name}: {best:.3?}");
    }
}

#[test]
fn each_direction_has_its_own_scheduler() {
    let sinrs = [(4.0, 2.0), (19.0, 13.0)];
    let stations = sinrs.iter().enumerate().map(|(i, (down, up))| station(i, *down, *up, 0.0)).collect();
    let config = CellConfig { scheduler: Policy::MaxCi, uplink_scheduler: Policy::RoundRobin, ..config() };
    let mut cell = Cell::new(config, stations, 1);
    saturate(&mut cell);
    let shares = DIRECTIONS.map(|(_, of)| {
        let blocks = [0, 1].map(|station| of(&cell, station).prbs as f64);
        blocks[1] / (blocks[0] + blocks[1])
    });
    assert!(shares[0] > 0.97 && (shares[1] - 0.5).abs() < 0.03, "{shares:?}");
}

/// A deployed cell with closed-loop power control, and the coupling loss of its only station.
fn closed_loop(target_db: f64, seed: u64) -> (Cell, f64) {
    let mut config = deployed(Load::Quiet);
    if let Some(radio) = &mut config.radio {
        radio.tpc_target_db = Some(target_db);
        radio.headroom.periodic = Some(SlotSpan(10));
    }
    let cell = Cell::new(config, placed(1), seed);
    let (_, loss_db) = cell.place(0).unwrap();
    (cell, loss_db)
}

#[test]
fn tpc_commands_bring_the_uplink_to_its_target() {
    let noise_dbm = noise_per_prb_dbm(Numerology::LTE, DeploymentConfig::case1().enb_noise_figure_db);
    let (mut reached, mut limited) = (0, 0);
    for seed in 0..30 {
        for target in [5.0, 12.0, 18.0] {
            let (mut cell, loss) = closed_loop(target, seed);
            saturate_stations(&mut cell, &[0], 500);
            let correction = cell.power_correction_db(0).unwrap();
            let power = -85.0 + 0.8 * loss + correction;
            let sinr = power.min(23.0) - loss - noise_dbm;
            if sinr > target - 0.5 - 1e-9 {
                assert!(sinr < target + 0.5 + 1e-9, "seed {seed}: {sinr} dB, target {target}");
                reached += 1;
            } else {
                // No TPC step upwards is left: one PRB takes all the power, within the 1 dB of a report.
                assert!(power > 23.0 - 1.5 - 1e-9, "seed {seed}: {power} dBm, {sinr} dB, target {target}");
                limited += 1;
            }
        }
    }
    assert!(reached > 40 && limited > 3, "{reached} {limited}");
}

#[test]
fn open_loop_power_control_sends_no_commands() {
    let mut cell = Cell::new(deployed(Load::Quiet), placed(1), 5);
    saturate_stations(&mut cell, &[0], 200);
    assert_eq!(cell.power_correction_db(0), Some(0.0));
}

#[test]
fn grants_stay_within_the_reported_power() {
    let mut limited = 0;
    for seed in 0..40 {
        let mut cell = Cell::new(deployed(Load::Quiet), placed(1), seed);
        let (_, loss) = cell.place(0).unwrap();
        // PRBs within the power, by hand: 23 + 85 - 0.8 loss.
        let exact = libm::pow(10.0, (23.0 + 85.0 - 0.8 * loss) / 10.0);
        saturate_stations(&mut cell, &[0], 300);
        let (prb, grants) = (cell.uplink(0).prbs, cell.access(0).grants);
        saturate_uplink(&mut cell, 300, 600);
        let (uplink, access) = (cell.uplink(0), cell.access(0));
        let prbs = (uplink.prbs - prb) as f64 / (300.0);
        // Half a decibel of rounding; the transform precoder allows fewer PRBs.
        assert!(prbs <= (exact * 1.123).max(1.0) + 1e-9, "seed {seed}: {prbs} of {exact}");
        assert!(access.grants > grants + 250, "seed {seed}");
        // First report, then one every 100 slots.
        assert!((5..=7).contains(&access.headroom_reports), "seed {seed}: {access:?}");
        if exact < 40.0 {
            limited += 1;
            assert!(access.power_limited_grants * 10 > access.grants * 8, "seed {seed}: {access:?}");
        }
        if exact > 60.0 {
            assert_eq!(access.power_limited_grants, 0, "seed {seed}");
            assert!(access.prb_limited_grants * 10 > access.grants * 8, "seed {seed}: {access:?}");
            // Reports of grants of 46 PRBs, within half a decibel: 10 lg 46 less.
            let headroom = access.headroom_index_sum as f64 / access.headroom_reports as f64 - 23.0;
            assert!(headroom + 1.0 > 23.0 + 85.0 - 0.8 * loss - 10.0 * libm::log10(46.0), "seed {seed}");
        }
    }
    assert!(limited > 5, "{limited}");
}

/// Keeps the uplink buffer of the first station full in these milliseconds.
fn saturate_uplink(cell: &mut Cell, from: u64, to: u64) {
    for now in (from..to).map(Instant::from_millis) {
        while cell.uplink_buffer(0).bytes() < Bytes(50_000) {
            cell.handle_packet(now, station_port(0), packet(address(0), SERVER, 1400));
        }
        drain(cell, now);
        while cell.poll_output(now).is_some() {}
    }
}
