//! The period of a TDD cell, learned by real senders from the ACKs of their own traffic.
//! `PACELINE_LEARNER_SEEDS=100` sets the seeds per cell, whose default is a sample for quick tests.

use paceline_net::{Duration, Instant};
use paceline_sim::{Model, scenario};

/// A narrow cell with a shallow buffer, in which losses and bursts disturb the ACKs.
const CELL: &str = "[core]\nhops = [{ rate = \"10 Gb/s\", delay = \"2 ms\" }]\n[cell]\nrat = \"nr\"\n\
    frequency = \"4.75 GHz\"\nbandwidth = \"20 MHz\"\nsubcarrier_spacing = \"30 kHz\"\nouter_loop = true\n\
    downlink_buffer = \"100 kB\"\n[tcp]\npacing = \"tdd\"\n[[station]]\ndownlink_sinr = \"20 dB\"\n\
    uplink_sinr = \"20 dB\"\n";

/// The period in microseconds that the sender of a download has learned after four seconds.
fn learned(control: &str, seed: u64, set: &[&str]) -> Option<u64> {
    let mut set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    set.push(format!("tcp.congestion_control={control}"));
    let scenario = scenario::load("cell.toml", CELL, &set).unwrap();
    let mut model = Model::new(&scenario, seed, &[]);
    model.engine.run_until(Instant::from_millis(4000));
    let period = model.flows(0)[0].0.pacing_period();
    period.map(|period: Duration| period.as_nanos() / 1000)
}

#[test]
fn a_learned_period_is_that_of_the_pattern_and_never_a_wrong_one() {
    let seeds = std::env::var("PACELINE_LEARNER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let grant = |ms: &str| format!("cell.nr.configured_grant.period={ms} ms");
    let cells = [
        ("cell.pattern=DDDSU", grant("2.5"), 2500),
        ("cell.pattern=DDDDDDDSUU 6:4:4", grant("5"), 5000),
        ("cell.pattern=DDSUU 6:4:4", grant("2.5"), 2500),
        // Two unequal halves.
        ("cell.pattern=DDDSUDDSUU", grant("5"), 5000),
        ("cell.pattern=DSUUU", grant("2.5"), 2500),
        // Scheduling requests every 10 ms are a period of their own.
        ("cell.pattern=DDDSU", "cell.sr_period=10 ms".into(), 10_000),
        // Without a pattern, 1 stands for none.
        ("cell.duplex=fdd", grant("0.5"), 1),
    ];
    let (mut runs, mut right, mut none, mut twice, mut wrong) = (0, 0, 0, 0, String::new());
    for (pattern, uplink, us) in &cells {
        for control in ["cubic", "illinois"] {
            for seed in 1..=seeds {
                runs += 1;
                match learned(control, seed, &[pattern, uplink]) {
                    None => none += 1,
                    Some(found) if found == *us => right += 1,
                    Some(found) if us.is_multiple_of(found) => {}
                    // Bursts of a sender can alternate: harmless for waits and clean delays.
                    Some(found) if *us > 1 && found == 2 * us => twice += 1,
                    Some(found) => wrong += &format!("{pattern}, {control}, seed {seed}: {found} us; "),
                }
            }
        }
    }
    println!("{runs} runs: {right} right, {none} without a period, {twice} twice the period; wrong: {wrong}");
    assert!(wrong.matches("seed").count() * 100 <= runs, "{wrong}");
}
