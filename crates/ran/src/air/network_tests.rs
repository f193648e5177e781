use super::*;
use crate::decibel::from_db;
use crate::radio::blockage::{Hold, Surroundings};
use crate::radio::{Heights, Penetration, Point};
use paceline_net::SlotPattern;

const NUMEROLOGY: Numerology = Numerology::new(1).unwrap();

fn network(deployment: DeploymentConfig, blockage: Option<BlockageConfig>, duplex: &Duplex) -> Network {
    let power_control =
        PowerControl { pcmax_dbm: 23.0, min_dbm: -40.0, p0_dbm: -85.0, alpha: 0.8, delta_mcs: false };
    let config = RadioConfig {
        deployment,
        served_sites: 1,
        neighbours: Load::Quiet,
        fading: blockage.is_none().then(|| Profile::named("TDLA30").unwrap()),
        speed_kmh: 30.0,
        power_control,
        tpc_target_db: None,
        headroom: HeadroomConfig { periodic: None, prohibit: SlotSpan(0), path_loss_change_db: None },
        blockage,
    };
    Network::new(config, &Rat::Lte, NUMEROLOGY, (51, 51), 1).of_cell(&Rat::Lte, duplex)
}

#[test]
fn fading_is_reciprocal_on_one_carrier_alone() {
    let tdd = Duplex::Tdd(SlotPattern::from_letters("DDDSU 10:2:2", 1).unwrap());
    let deployment = DeploymentConfig { sites: 1, wrap_around: false, ..DeploymentConfig::umi_38901() };
    for (duplex, same) in [(&tdd, true), (&Duplex::Fdd, false)] {
        let network = network(deployment.clone(), None, duplex);
        let (mut placed, _) = network.place(0);
        let groups = 0..network.activity.groups();
        let mut equal = 0;
        for slot in (0..2000).step_by(10).map(Slot) {
            let down = network.gains(&mut placed, slot, Direction::Down, groups.clone()).to_vec();
            equal += usize::from(network.gains(&mut placed, slot, Direction::Up, groups.clone()) == down);
        }
        assert_eq!(equal, if same { 200 } else { 0 }, "{duplex:?}");
    }
}

/// A blocked station loses the same in both directions; horizontal paths lose 4.93 dB in the mean (see
/// `blocked_path`).
#[test]
fn blockage_weakens_both_directions() {
    let blockage = BlockageConfig { surroundings: Surroundings::outdoor(1.0), hold: Hold::Free };
    let deployment = DeploymentConfig {
        sites: 1,
        wrap_around: false,
        carrier_ghz: 28.0,
        heights: Heights { bs_m: 1.5, ut_m: 1.5 },
        penetration: Penetration::Fixed(0.0),
        ..DeploymentConfig::umi_38901()
    };
    let mut network = network(deployment, Some(blockage), &Duplex::Fdd);
    let mut lost_db = 0.0;
    for index in 0..500 {
        let (mut placed, cell) = network.place(index);
        let free_db = to_db(placed.power.formula_mw() / network.uplink_noise_mw) - placed.coupling_loss_db();
        let uplink_db = network.estimate_uplink_db(&mut placed, cell, Slot(0));
        let signal_db = to_db(placed.receiver.signal_mw());
        placed.receiver.set_path_gain(1.0);
        let downlink_loss_db = to_db(placed.receiver.signal_mw()) - signal_db;
        assert!((free_db - uplink_db - downlink_loss_db).abs() < 1e-6, "the same loss in both directions");
        lost_db += downlink_loss_db / 500.0;
    }
    // A standard deviation of 6 dB: 0.27 dB for 500 stations.
    assert!((lost_db - 4.93).abs() < 1.0, "{lost_db}");
}

#[test]
fn the_mean_interference_has_the_same_time_constant_at_every_numerology() {
    let deployment = DeploymentConfig { sites: 1, wrap_around: false, ..DeploymentConfig::case1() };
    let network = network(deployment, None, &Duplex::Fdd);
    // Two slots of 0.5 ms forget as much as one of 1 ms.
    let kept = 1.0 - network.interference_weight;
    assert!((kept * kept - (1.0 - INTERFERENCE_WEIGHT)).abs() < 1e-12);
    // P0 is per 180 kHz, the network's PRB has 360 kHz.
    assert!((from_db(network.config.power_control.p0_dbm + 85.0) - 2.0).abs() < 1e-9);
}

/// The serving cell gives the signal, all others interfere, and a link's fading goes on when the station
/// returns.
#[test]
fn any_cell_can_serve_a_station() {
    let deployment = DeploymentConfig { sites: 1, wrap_around: false, ..DeploymentConfig::case1() };
    let mut network = network(deployment, None, &Duplex::Fdd);
    network.activity.set_prbs(2, PrbSet::range(0, 51));
    let groups = 0..network.activity.groups();
    let interference = |network: &Network, placed: &Placed| {
        let mut out = vec![0.0; network.activity.groups()];
        placed.receiver.interference_mw(&network.activity, 0, &mut out);
        out[0]
    };
    let (mut placed, first) = network.place(0);
    assert_eq!(network.strongest_served(&placed), first);
    let at = |network: &Network, placed: &mut Placed| {
        network.gains(placed, Slot(4000), Direction::Down, groups.clone()).to_vec()
    };
    let before = (at(&network, &mut placed), interference(&network, &placed), placed.receiver.signal_mw());
    let mut fadings = vec![before.0.clone()];
    for cell in (0..3).filter(|cell| *cell != first) {
        network.serve(&mut placed, cell);
        let gain_db = placed.place.gains_db()[cell];
        assert!((to_db(placed.power.own_gain) - gain_db).abs() < 1e-9);
        assert!((placed.coupling_loss_db() + gain_db).abs() < 1e-9);
        let noise = interference(&network, &placed);
        let disturbed = noise > 1.5 * from_db(noise_dbm(&network));
        assert_eq!(disturbed, cell != 2, "cell 2 transmits: it disturbs all stations but its own");
        let fading = at(&network, &mut placed);
        assert!(!fadings.contains(&fading), "each link has fading of its own");
        fadings.push(fading);
    }
    network.serve(&mut placed, first);
    let after = (at(&network, &mut placed), interference(&network, &placed), placed.receiver.signal_mw());
    assert_eq!(before, after);
}

fn noise_dbm(network: &Network) -> f64 {
    let config = network.deployment.config();
    crate::radio::noise_per_prb_dbm(config.numerology, config.ue_noise_figure_db)
}

#[test]
fn a_station_that_moves_keeps_its_cell_and_its_shadowing_over_short_ways() {
    let deployment = DeploymentConfig { sites: 7, wrap_around: false, ..DeploymentConfig::case1() };
    let network = network(deployment, None, &Duplex::Fdd);
    let (mut near, mut far) = (0.0, 0.0);
    for index in 0..100 {
        let (mut placed, cell) = network.place(index);
        let (start, loss_db) = (placed.position(), placed.coupling_loss_db());
        network.advance(&mut placed, start.plus(Point { x: 0.1, y: 0.0 }));
        near += (placed.coupling_loss_db() - loss_db).abs() / 100.0;
        network.advance(&mut placed, start.plus(Point { x: 100.0, y: 0.0 }));
        far += (placed.coupling_loss_db() - loss_db).abs() / 100.0;
        assert_eq!(placed.place.serving(), cell);
        let power_mw = placed.power.own_gain;
        assert!((to_db(power_mw) + placed.coupling_loss_db()).abs() < 1e-9);
    }
    assert!(near < 2.0 && far > 5.0, "{near} dB after 0.1 m, {far} dB after 100 m");
}
