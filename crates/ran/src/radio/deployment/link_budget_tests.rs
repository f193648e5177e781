use super::*;
use crate::radio::{Antenna, Pattern};

/// Two numbers agree within 1e-3.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-3
}

#[test]
fn a_gain_holds_by_hand() {
    let deployment = Deployment::new(DeploymentConfig::case1(), 1);
    // 200 m from site 0 along the boresight of sector 0.
    let station = deployment.station_at("one", Point::polar(200.0, 30.0), Association::Best);
    let shadowing = 8.0 * station.shadowing.deviations(0);
    // 128.1 + 37.6 lg 0.2 = 101.8187; depression atan(30.5/200) = 8.6709 deg: 12 (6.3291/10)^2 = 4.8069.
    let expected = 14.0 - 4.8069 - 101.8187 - 20.0 - shadowing;
    assert!(close(station.gains_db()[0], expected), "{} {expected}", station.gains_db()[0]);
    // Sector 1 is 120 degrees off: 25 dB in total.
    assert!(close(station.gains_db()[1], expected + 4.8069 - 25.0));
    assert!(!station.los[0] && station.indoor_m.is_none());
    assert_eq!(station.gains_db().len(), 57);
}

#[test]
fn geometry_of_two_cells_holds_by_hand() {
    let mut config = DeploymentConfig::case1();
    config.sites = 1;
    let deployment = Deployment::new(config, 1);
    let mut station = deployment.station_at("one", Point::polar(200.0, 30.0), Association::Best);
    station.gains_db = vec![-110.0, -115.0, -400.0];
    station.serving = 0;
    // Per PRB: 29.0103 - 110 = -80.9897 dBm against -85.9897 dBm and noise of -112.4473 dBm:
    // 8.0580e-9 / (2.5482e-9 + 5.692e-12) = 3.15527.
    assert!((deployment.geometry_db(&station) - 4.9903).abs() < 1e-3, "{}", deployment.geometry_db(&station));
    assert!(close(deployment.geometry_without_noise_db(&station), 5.0));
}

#[test]
fn coupling_loss_has_its_minimum() {
    let mut config = DeploymentConfig::case1();
    config.penetration = Penetration::Fixed(0.0);
    config.antenna = Antenna { pattern: Pattern::Omni, max_gain_dbi: 60.0, downtilt_deg: 0.0 };
    let deployment = Deployment::new(config, 1);
    let station = deployment.station_at("one", Point::polar(36.0, 0.0), Association::Best);
    assert_eq!(station.coupling_loss_db(), 70.0);
}

#[test]
fn association_follows_its_rule() {
    let deployment = Deployment::new(DeploymentConfig::case1(), 4);
    for index in 0..300 {
        let mut station = deployment.place(&format!("s{index}"), Region::AllSites, Association::Best);
        let best = station.gains_db().iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(station.gains_db()[station.serving()], best);
        deployment.associate(&mut station, Association::BestOfSite(5));
        assert!((15..18).contains(&station.serving()));
    }
    let mut placed =
        (0..10_000).map(|n| deployment.place(&format!("n{n}"), Region::AllSites, Association::Best));
    assert!(placed.any(|station| station.serving() == 40), "a distant cell is the best one somewhere");
}

#[test]
fn a_station_depends_on_its_name_and_the_seed_only() {
    let place = |seed, name: &str| {
        let deployment = Deployment::new(DeploymentConfig::umi_38901(), seed);
        deployment.place(name, Region::Site(0), Association::Best).gains_db().to_vec()
    };
    assert_eq!(place(1, "a"), place(1, "a"));
    assert_ne!(place(1, "a"), place(2, "a"));
    assert_ne!(place(1, "a"), place(1, "b"));
}

#[test]
fn line_of_sight_has_its_probability_and_lasts() {
    let mut config = DeploymentConfig::uma_m2135();
    config.sites = 1;
    let deployment = Deployment::new(config, 9);
    let n = 20_000;
    let (mut seen, mut kept) = (0, 0);
    for index in 0..n {
        let mut station =
            deployment.station_at(&format!("s{index}"), Point::polar(100.0, 10.0), Association::Best);
        let before = station.los[0];
        seen += u32::from(before);
        // 10 m along the circle around the site.
        deployment.advance(&mut station, Point::polar(100.0, 10.0 + 5.7325));
        kept += u32::from(before == station.los[0]);
    }
    // Table: 0.3477 at 100 m; standard error 0.0034.
    assert!((f64::from(seen) / f64::from(n) - 0.3477).abs() < 0.013, "{seen}");
    // The correlation of the deviates, exp(-10/50) = 0.82, leaves about four of five unchanged.
    assert!((0.78..0.86).contains(&(f64::from(kept) / f64::from(n))), "{kept}");
}

#[test]
fn moving_in_steps_keeps_the_spread_of_shadowing() {
    let deployment = Deployment::new(DeploymentConfig::case1(), 2);
    let mut station = deployment.station_at("walker", Point::polar(150.0, 80.0), Association::Best);
    let mut sum = 0.0;
    let n = 20_000;
    for step in 0..n {
        // Back and forth over 20 m: the length of the path counts, not the position.
        let to = if step % 2 == 0 { Point::polar(170.0, 80.0) } else { Point::polar(150.0, 80.0) };
        deployment.advance(&mut station, to);
        let value = station.shadowing.deviations(3);
        sum += value * value;
    }
    assert!((sum / f64::from(n) - 1.0).abs() < 0.08, "{}", sum / f64::from(n));
}

#[test]
fn wall_losses_are_those_of_the_tables() {
    // By hand at 6 GHz: glass 3.2 dB, concrete 29 dB, coated glass 24.8 dB.
    // Low loss: 5 - 10 lg(0.3 10^-0.32 + 0.7 10^-2.9) = 13.402.
    // High loss: 5 - 10 lg(0.7 10^-2.48 + 0.3 10^-2.9) = 30.6998.
    assert!((wall_loss_db(false, 6.0, 0.0) - 13.402).abs() < 0.01, "{}", wall_loss_db(false, 6.0, 0.0));
    assert!((wall_loss_db(true, 6.0, 0.0) - 30.70).abs() < 0.02, "{}", wall_loss_db(true, 6.0, 0.0));
}

#[test]
fn golden_values_hold_on_every_machine() {
    let deployment = Deployment::new(DeploymentConfig::uma_38901(), 7);
    let mut station = deployment.place("golden", Region::AllSites, Association::Best);
    let before = station.gains_db()[20];
    deployment.advance(&mut station, Point { x: 100.0, y: -50.0 });
    assert_eq!([before, station.gains_db()[20]].map(f64::to_bits), GOLDEN);
}
/// Bits of the two gains, measured once with this test.
const GOLDEN: [u64; 2] = [13863052929707135998, 13863182194256170406];

#[test]
fn a_station_sees_its_cell_from_below() {
    let deployment = Deployment::new(DeploymentConfig::case1(), 1);
    let station = deployment.station_at("one", Point::polar(200.0, 30.0), Association::BestOfSite(0));
    // 30.5 m over 200 m: 8.671 degrees above the horizon.
    let (azimuth, zenith) = deployment.arrival_deg(&station);
    assert!(close(azimuth, 210.0) && close(zenith, 90.0 - 8.6709), "{azimuth} {zenith}");
}
