//! RFC 9438 §5: simulated windows of Reno and CUBIC under deterministic losses, compared with Tables 1 to 3.
//! For loss rates below 1e-5 see `cargo run --release -p paceline-tcp --example rfc9438`, which prints all of
//! them.

use crate::response::tables::{Entry, both_curves, loss_rates, windows};
use paceline_net::Duration;
use paceline_tcp::{CwndUnit, Variant};

/// Largest relative deviation of a window.
const WITHIN: f64 = 0.03;

/// Compares the windows with the table, or where the curves of CUBIC cross with the average of both.
fn check_windows(entries: &[Entry], periods: u64) {
    for entry in entries {
        let simulated = entry.simulated(CwndUnit::Segments, periods);
        let (formula, both) = (entry.formula(), both_curves(entry.rtt, entry.period));
        let told =
            format!("{entry:?}: {simulated:.2}, by the formula {formula:.2}, by both curves {both:.2}");
        println!("{told}");
        // Printed in whole segments, or with one decimal.
        assert!((formula - entry.printed).abs() <= 0.51, "{told}");
        let near = |model: f64| (simulated / model - 1.0).abs() <= WITHIN;
        assert!(near(formula) || (entry.variant == Variant::Cubic && near(both)), "{told}");
    }
}

#[test]
fn windows_of_38_segments_and_more_agree_with_tables_1_and_2() {
    check_windows(&windows(3), 50);
    check_windows(&windows(4), 20);
    check_windows(&windows(5), 4);
}

#[test]
fn loss_rates_for_10_and_100_mbps_agree_with_table_3() {
    let entries: Vec<Entry> = loss_rates(100_000).into_iter().filter(|entry| entry.period > 1000).collect();
    assert_eq!(entries.len(), 3, "Reno and CUBIC at 10 Mb/s, CUBIC at 100 Mb/s");
    check_windows(&entries, 5);
}

/// In the model the window grows in every round trip. A real sender's does not in the one in which it repairs
/// the loss, which is one of eight at windows of a dozen segments; and it sends whole segments.
#[test]
fn at_a_dozen_segments_the_window_is_below_the_model() {
    let errors: Vec<f64> = (2..=4)
        .map(|e| windows(e)[0])
        .map(|e| e.simulated(CwndUnit::Segments, 50) / (1.5 * e.period as f64).sqrt() - 1.0)
        .collect();
    println!("{errors:?}");
    // The deviation decreases as one round trip in W/2.
    assert!(errors[0] > -0.15 && errors[0] < -0.10, "{errors:?}");
    assert!(errors[1] > -0.05 && errors[2] > -0.02 && errors.iter().all(|error| *error < 0.0), "{errors:?}");
    let cubic = windows(2)[1];
    assert_eq!(cubic.rtt, Duration::from_millis(100));
    let error = cubic.simulated(CwndUnit::Segments, 50) / cubic.formula() - 1.0;
    assert!(error > -0.10 && error < 0.0, "{error}");
}

/// Without repairs and in bytes, as in the RFC, the laws of both agree with every entry. Where CUBIC's curves
/// cross, the tables are below the law: they have the larger of two averages, while the window is the larger
/// curve.
#[test]
fn the_laws_alone_agree_with_every_entry() {
    let crossing = [(Duration::from_millis(100), 1000), (Duration::from_millis(10), 1_000_000)];
    for entry in (2..=6).flat_map(windows).chain(loss_rates(1_000_000)) {
        let law = entry.by_law(CwndUnit::Bytes, (1_000_000 / entry.period).clamp(2, 1000));
        let (formula, both) = (entry.formula(), both_curves(entry.rtt, entry.period));
        let told =
            format!("{entry:?}: by the law {law:.2}, by the formula {formula:.2}, by both curves {both:.2}");
        println!("{told}");
        let crosses = entry.variant == Variant::Cubic && crossing.contains(&(entry.rtt, entry.period));
        assert_eq!((law / formula - 1.0).abs() > WITHIN, crosses, "{told}");
        assert!(entry.variant != Variant::Cubic || (law / both - 1.0).abs() < 0.01, "{told}");
    }
}

/// The same for whole endpoints, whose repairs take a round trip each, for windows of 38 segments and more.
#[test]
fn endpoints_that_count_bytes_are_within_the_bound() {
    for entry in (3..=5).flat_map(windows) {
        let (simulated, formula) = (entry.simulated(CwndUnit::Bytes, 10), entry.formula());
        println!("{entry:?}: {simulated:.2}, by the formula {formula:.2}");
        assert!((simulated / formula - 1.0).abs() <= WITHIN, "{entry:?}: {simulated:.2} of {formula:.2}");
    }
}
