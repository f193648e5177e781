use super::*;
use crate::decibel::to_db;
use crate::radio::{Pattern, Point};
use crate::slot::Numerology;

/// Chosen: round numbers, for checks by hand.
const CONTROL: PowerControl =
    PowerControl { pcmax_dbm: 23.0, min_dbm: -40.0, p0_dbm: -80.0, alpha: 0.8, delta_mcs: false };

/// Lets a cell transmit in all PRBs at this share of its power.
fn set_share(activity: &mut Activity, cell: usize, share: f64) {
    let groups = activity.groups();
    set_member(&mut activity.full, cell, false);
    set_member(&mut activity.partial, cell, true);
    activity.row_mut(cell)[..groups].fill(share as f32);
}

/// Mean over the bank in mW per PRB of the power that the `place`-th target receives from a transmitting
/// `cell`.
fn mean_mw(bank: &UplinkNeighbours, place: usize, cell: usize) -> f64 {
    let powers = &bank.received_mw[cell * bank.targets.len() + place];
    powers.iter().map(|power| f64::from(*power)).sum::<f64>() / BANK_STATIONS as f64
}

#[test]
fn downlink_sinr_of_two_cells_holds_by_hand() {
    // 29.0103 dBm per PRB over -110 and -115 dB, noise -112.4473 dBm: -80.9897, -85.9897 dBm.
    let receiver = DownlinkReceiver::from_gains(&[-110.0, -115.0], 0, 29.0103, -112.4473);
    let mut out = [0.0; 50];
    let mut activity = Activity::new(2, 50, 1);
    activity.set_prbs(0, PrbSet::range(0, 50));
    activity.set_prbs(1, PrbSet::range(10, 5));
    receiver.interference_mw(&activity, 0, &mut out);
    for (block, interference) in out.iter().enumerate() {
        // Quiet: 112.4473 - 80.9897 = 31.4576 dB. Busy: 5 - 10 lg(1 + 10^-2.64576) = 4.9902 dB.
        let expected = if (10..15).contains(&block) { 4.9902 } else { 31.4576 };
        let got = to_db(receiver.signal_mw() / interference);
        assert!((got - expected).abs() < 1e-3, "{block} {got}");
    }
    // Half the power in all PRBs: -89.0000 dBm, 8.0103 dB less the noise's 0.0196.
    set_share(&mut activity, 1, 0.5);
    receiver.interference_mw(&activity, 0, &mut out);
    assert!(out.iter().all(|half| (to_db(receiver.signal_mw() / half) - (8.0103 - 0.0196)).abs() < 1e-3));
}

#[test]
fn uplink_sinr_of_two_cells_holds_by_hand() {
    // Own station: loss 100 dB, 0 dBm per PRB, received at -100 dBm. The other: loss 95 dB to its own cell,
    // -4 dBm per PRB, over -120 dB here: -124 dBm in PRBs 4 to 7. Noise -116.4473 dBm.
    let own = CONTROL.power_per_prb_dbm(&PuschTransmission::open_loop(10, 100.0));
    let other = CONTROL.power_per_prb_dbm(&PuschTransmission::open_loop(4, 95.0));
    let mut out = [uplink_noise_mw(&DeploymentConfig::case1()); 25];
    add_uplink(PrbSet::range(4, 4), from_db(other - 120.0), &mut out);
    let sinr = |block: usize| own - 100.0 - to_db(out[block]);
    // 10^-11.64473 + 10^-12.4 = 2.26606e-12 + 3.98107e-13 = 2.66417e-12 mW: -115.7444 dBm.
    assert!((sinr(4) - 15.7444).abs() < 1e-3 && (sinr(7) - 15.7444).abs() < 1e-3, "{}", sinr(4));
    assert!((sinr(3) - 16.4473).abs() < 1e-3 && (sinr(8) - 16.4473).abs() < 1e-3);
}

#[test]
fn full_neighbours_give_the_geometry() {
    let deployment = Deployment::new(DeploymentConfig::case1(), 3);
    for index in 0..50 {
        let station = deployment.place(&format!("s{index}"), Region::AllSites, Association::Best);
        let receiver = DownlinkReceiver::new(&deployment, &station);
        let mut out = [0.0; 50];
        let mut activity = Activity::new(57, 50, 1);
        (0..57).for_each(|cell| activity.set_prbs(cell, PrbSet::range(0, 50)));
        receiver.interference_mw(&activity, 0, &mut out);
        for interference in out {
            let sinr = to_db(receiver.signal_mw() / interference);
            assert!((sinr - deployment.geometry_db(&station)).abs() < 1e-5);
        }
        let mut quiet = [0.0; 50];
        receiver.interference_mw(&Activity::new(57, 50, 1), 0, &mut quiet);
        assert!((to_db(quiet[0]) - noise_per_prb_dbm(Numerology::LTE, 9.0)).abs() < 1e-9);
    }
}

#[test]
fn a_load_uses_its_share_of_prbs_independently() {
    let n = 20_000u64;
    for share in [0.1, 0.5, 0.9] {
        let load = Load::Share(share);
        let (mut used, mut both, mut next) = (0.0, 0.0, 0.0);
        let mut last = PrbSet::NONE;
        for slot in 0..n {
            let set = load.prbs(50, 3, 1, 7, slot);
            let other = load.prbs(50, 3, 1, 8, slot);
            // Complete groups.
            assert!((0..48).step_by(3).all(|b| set.contains(b) == set.contains(b + 2)));
            used += f64::from(set.len()) / 50.0;
            both += f64::from(u8::from(set.contains(0) && other.contains(0)));
            next += f64::from(u8::from(set.contains(0) && last.contains(0)));
            last = set;
        }
        let n = n as f64;
        assert!((used / n - share).abs() < 0.005, "{share} {}", used / n);
        assert!(
            (both / n - share * share).abs() < 0.015 && (next / n - share * share).abs() < 0.015,
            "{share}"
        );
    }
    assert_eq!(Load::Full.prbs(25, 2, 1, 0, 5), PrbSet::range(0, 25));
    assert_eq!(Load::Quiet.prbs(25, 2, 1, 0, 5), PrbSet::NONE);
}

#[test]
fn uplink_of_neighbours_follows_load_and_power_control() {
    let mut config = DeploymentConfig::case1();
    config.sites = 7;
    let deployment = Deployment::new(config, 5);
    let targets = [0, 4];
    let bank = UplinkNeighbours::draw(&deployment, &CONTROL, 6, &targets, 1);
    let cells = deployment.cells();
    let mean = |place: usize, load: Load| {
        let n = 4000;
        let mut total = 0.0;
        for slot in 0..n {
            let mut out = [0.0; 50];
            bank.add(place, slot, &vec![load; cells], &mut out);
            total += out.iter().sum::<f64>() / 50.0;
        }
        total / n as f64
    };
    for (place, target) in targets.into_iter().enumerate() {
        let expected: f64 = (0..cells).filter(|c| *c != target).map(|c| mean_mw(&bank, place, c)).sum();
        let full = mean(place, Load::Full);
        assert!((full / expected - 1.0).abs() < 0.05, "{target} {full} {expected}");
        assert!((mean(place, Load::Share(0.3)) / expected - 0.3).abs() < 0.03);
        assert_eq!(mean(place, Load::Quiet), 0.0);
    }
    // Interference is a function of the slot.
    let at = |slot| {
        let mut out = [0.0; 50];
        bank.add(0, slot, &vec![Load::Full; cells], &mut out);
        out
    };
    assert_eq!(at(9), at(9));
    assert_ne!(at(9), at(10));
    // Groups of six PRBs have the same station in each neighbouring cell.
    assert!(at(9)[..6].iter().all(|power| *power == at(9)[0]) && at(9)[6] != at(9)[0]);
    // A P0 that is 5 dB lower gives 5 dB less interference where no station reaches its maximum or minimum
    // power (TS 36.101 §6.2.2 and §6.3.2).
    let low = PowerControl { p0_dbm: -105.0, ..CONTROL };
    let lower = PowerControl { p0_dbm: -110.0, ..CONTROL };
    let [a, b] =
        [low, lower].map(|c| mean_mw(&UplinkNeighbours::draw(&deployment, &c, 6, &targets, 1), 0, 3));
    assert!((to_db(a / b) - 5.0).abs() < 1e-3);
}

#[test]
fn a_bank_station_is_received_over_its_gain() {
    // One site: the power of a station of cell 1 at cell 0, by hand.
    let mut config = DeploymentConfig::case1();
    config.sites = 1;
    let deployment = Deployment::new(config, 6);
    let bank = UplinkNeighbours::draw(&deployment, &CONTROL, 5, &[0], 2);
    let station = (0..)
        .map(|i| deployment.place(&format!("uplink2/neighbour{i}"), Region::AllSites, Association::Best))
        .find(|station| station.serving() == 1)
        .unwrap();
    let loss = -station.gains_db()[1];
    let power = (6.9897 - 80.0 + 0.8 * loss).min(23.0) - 6.9897;
    let got = to_db(f64::from(bank.received_mw[1][0]));
    assert!((got - (power + station.gains_db()[0])).abs() < 1e-3);
    assert_ne!(station.position(), Point::default());
}

#[test]
fn rise_over_thermal_of_full_buffer_is_plausible() {
    // Case 1 with a target of -106 dBm and full compensation: 6 to 8 dB; more with a stronger target.
    let deployment = Deployment::new(DeploymentConfig::case1(), 1);
    let rise = |p0_dbm, alpha| {
        let control = PowerControl { p0_dbm, alpha, ..CONTROL };
        let bank = UplinkNeighbours::draw(&deployment, &control, 5, &[0], 1);
        let sum: f64 = (1..57).map(|cell| mean_mw(&bank, 0, cell)).sum();
        to_db(1.0 + sum / from_db(noise_per_prb_dbm(Numerology::LTE, 5.0)))
    };
    let (full, fractional, weaker) = (rise(-106.0, 1.0), rise(-80.0, 0.8), rise(-85.0, 0.8));
    assert!((6.0..8.0).contains(&full), "{full}");
    assert!(fractional > weaker + 2.0 && fractional < weaker + 5.0, "{fractional} {weaker}");
}

#[test]
fn a_cell_without_stations_is_silent() {
    let mut config = DeploymentConfig::case1();
    config.sites = 1;
    config.antenna.pattern = Pattern::Omni;
    let deployment = Deployment::new(config, 8);
    let mut placed =
        (0..10_000).map(|n| deployment.place(&format!("n{n}"), Region::AllSites, Association::Best));
    assert!(placed.all(|station| station.serving() != 0), "the last of equal sectors is chosen");
    let bank = UplinkNeighbours::draw(&deployment, &CONTROL, 5, &[0], 2);
    assert!(mean_mw(&bank, 0, 1) == 0.0 && mean_mw(&bank, 0, 2) > 0.0);
}
