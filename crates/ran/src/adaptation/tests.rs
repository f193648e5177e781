//! Goodput never falls with a rising SINR, for all tables, carriers and numbers of layers.

use super::*;
use crate::slot::Numerology;

const TABLES: [McsTable; 3] = [McsTable::Qam64, McsTable::Qam256, McsTable::LowEfficiency];
/// PRBs of carriers of 5 to 100 MHz.
const PRBS: [u16; 5] = [11, 25, 52, 106, 273];

fn nr(table: McsTable, layers: u8) -> Rat {
    Rat::Nr(NrConfig {
        downlink_table: table,
        uplink_table: table,
        downlink_layers: layers,
        uplink_layers: layers,
        downlink_antennas: layers.max(2),
        uplink_antennas: layers.max(2),
        ..NrConfig::new(Numerology::new(1).unwrap())
    })
}

/// Bits per transmission on a carrier, by the error curves of up to four transmissions of each block.
fn carried(rat: &Rat, direction: Direction, mcs: Mcs, (prbs, sinr_db): (u16, f64)) -> f64 {
    let size = rat.prb_size(direction, SYMBOLS_PER_SLOT).unwrap();
    let bits = mcs.block_bits(size, prbs);
    let layer_db = sinr_db + to_db(rat.layer(direction, mcs).gain);
    let curve = mcs.error_curve(bits);
    let (mut failed, mut sent) = (1.0, 0.0);
    for transmission in 1..=4 {
        sent += failed;
        failed *= curve.error(layer_db + to_db(f64::from(transmission)));
    }
    f64::from(bits) * (1.0 - failed) / sent
}

fn assert_rising(name: &str, rat: &Rat, direction: Direction, prbs: u16) {
    let adaptation = LinkAdaptation::new(rat, (prbs, prbs));
    let mut most = 0.0;
    for step in -300..900 {
        let sinr_db = f64::from(step) * 0.05;
        let mcs = match direction {
            Direction::Down => adaptation.downlink_mcs(adaptation.quality(sinr_db), None),
            Direction::Up => adaptation.uplink_mcs(sinr_db, 0.0, 28, 4),
        };
        let carried = mcs.map_or(0.0, |mcs| carried(rat, direction, mcs, (prbs, sinr_db)));
        assert!(
            carried >= 0.995 * most,
            "{name}, {direction:?}, {prbs} PRBs, {sinr_db:.2} dB, {mcs:?}: {carried} bits after {most}"
        );
        most = f64::max(most, carried);
    }
    assert!(most > 0.0);
}

#[test]
fn goodput_of_nr_rises_with_the_sinr() {
    for table in TABLES {
        for layers in 1..=4 {
            let rat = nr(table, layers);
            for prbs in PRBS {
                for direction in [Direction::Down, Direction::Up] {
                    assert_rising(&format!("{table:?}, {layers} layers"), &rat, direction, prbs);
                }
            }
        }
    }
}

#[test]
fn goodput_of_lte_rises_with_the_sinr() {
    for prbs in [15, 25, 50, 75, 100] {
        assert_rising("LTE", &Rat::Lte, Direction::Down, prbs);
    }
}

#[test]
fn at_most_a_tenth_of_the_blocks_of_a_report_fails() {
    for (table, most) in [(McsTable::Qam64, 0.1), (McsTable::Qam256, 0.1), (McsTable::LowEfficiency, 1e-5)] {
        let (rat, size) = (nr(table, 4), PrbSize(144));
        let adaptation = LinkAdaptation::new(&rat, (273, 273));
        for step in -500..4500 {
            let sinr_db = f64::from(step) * 0.01;
            let report = adaptation.quality(sinr_db);
            let Some(mcs @ Mcs::Nr { row, .. }) = adaptation.downlink_mcs(report, None) else { continue };
            if row.index == 0 {
                continue; // CQI 1 has no MCS of its own
            }
            let bits = mcs.block_bits(size, 273);
            let error = mcs.error_curve(bits).error(sinr_db + to_db(rat.layer(Direction::Down, mcs).gain));
            assert!(error <= most * 1.001, "{table:?} {sinr_db} dB {mcs:?}: {error}");
        }
    }
}

#[test]
fn reports_have_the_rank_with_the_most_bits() {
    let rat = Rat::Nr(NrConfig::new(Numerology::new(1).unwrap()));
    let adaptation = LinkAdaptation::new(&rat, (273, 273));
    assert_eq!(adaptation.quality(45.0), Quality { cqi: 15, layers: 4 });
    assert_eq!(adaptation.quality(-20.0), Quality { cqi: 0, layers: 1 });
    assert_eq!(adaptation.quality(0.0).layers, 1);
    let of = |db, antennas, layers| {
        let config = NrConfig {
            uplink_antennas: antennas,
            uplink_layers: layers,
            uplink_table: McsTable::Qam64,
            ..NrConfig::new(Numerology::new(1).unwrap())
        };
        let adaptation = LinkAdaptation::new(&Rat::Nr(config), (273, 273));
        adaptation.uplink_mcs(db, 0.0, 0, 1).map(Mcs::layers)
    };
    assert_eq!([of(0.0, 2, 2), of(30.0, 2, 2), of(30.0, 4, 1)], [Some(1), Some(2), Some(1)]);
    assert_eq!(of(-20.0, 4, 4), None);
}

/// Thresholds of one code block hold where a block has one, and rise by tenths of a dB with 140.
#[test]
fn thresholds_are_those_of_the_largest_block() {
    let first_db = |prbs, index| {
        let all = nr_rows(McsTable::Qam256, (4, PrbSize(144), prbs));
        all.threshold_db(index).unwrap() - McsTable::Qam256.rows()[usize::from(index)].s10_db
    };
    assert_eq!(first_db(1, 5), 0.0);
    let risen = first_db(273, 19);
    assert!((0.05..0.3).contains(&risen), "{risen} dB");
    let lte = |prbs| LteCqis::new(prbs).threshold_db(13).unwrap() - lte::cqi::threshold_db(13).unwrap();
    assert_eq!(lte(6), 0.0);
    assert!((0.02..0.2).contains(&lte(100)), "{} dB", lte(100));
    assert_eq!(LteCqis::new(50).of_sinr(5.0), lte::cqi::of_sinr(5.0));
}
