//! Tables 1 to 3 of RFC 9438 by simulation, and the difference to the RFC's formula: by the laws of the
//! controls alone, by whole endpoints whose windows count bytes as in the RFC, and by endpoints that count
//! segments as in Linux. `cargo run --release -p paceline-tcp --example rfc9438 [N]`, loss rates down to
//! 10^-N. N = 7 takes a minute or two, N = 8 some minutes.

#[path = "../tests/response/mod.rs"]
mod response;

use paceline_tcp::{CwndUnit, Variant};
use response::tables::{Entry, both_curves, loss_rates, windows};

/// Number of losses over which an entry is averaged; fewer for rare losses.
fn periods(entry: &Entry) -> u64 {
    (2_000_000 / entry.period).clamp(1, 50)
}

fn main() {
    let most = std::env::args().nth(1).map_or(Ok(7), |text| text.parse());
    let most: u32 = most.ok().filter(|most| (2..=8).contains(most)).expect("a number from 2 to 8");
    println!(
        "table  control   RTT/ms      1/p    printed    formula        law            bytes         segments     both curves"
    );
    let entries = (2..=most).flat_map(windows).chain(loss_rates(5 * 10u64.pow(most)));
    for entry in entries {
        let (formula, rtt, periods) = (entry.formula(), entry.rtt.as_millis(), periods(&entry));
        let beside = |window: f64| format!("{window:>10.1} {:>+5.1}%", 100.0 * (window / formula - 1.0));
        let curves = match entry.variant {
            Variant::Cubic => format!("{:.1}", both_curves(entry.rtt, entry.period)),
            _ => String::new(),
        };
        println!(
            "{:>5}  {:8} {rtt:>7} {:>8} {:>10.1} {formula:>10.1}{}{}{} {curves:>12}",
            entry.table,
            entry.variant.to_string(),
            entry.period,
            entry.printed,
            beside(entry.by_law(CwndUnit::Bytes, 20 * periods)),
            beside(entry.simulated(CwndUnit::Bytes, periods)),
            beside(entry.simulated(CwndUnit::Segments, periods)),
        );
    }
}
