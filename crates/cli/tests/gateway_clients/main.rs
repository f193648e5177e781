//! The gateway among real programs. Needs root; says so and does nothing otherwise, but fails where
//! `PACELINE_REQUIRE_PRIVILEGED` is set.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // programs are waited for in real time

mod clients;
#[path = "../common/mod.rs"]
mod common;
mod failures;
mod hostile;
mod middle;
mod servers;
mod town;

use middle::Middle;
use town::{CLIENT, KINDS, NARROW, Town};

#[test]
fn real_programs_at_once() {
    let homes = [&[CLIENT, NARROW][..], &KINDS].concat();
    let Some(town) = Town::new(&homes) else { return };
    let _servers = servers::start(&town);
    let middle = Middle::start(&town, "workers = 2\n");
    let only = std::env::var("PACELINE_CLIENTS").unwrap_or_default();
    let cases: Vec<clients::Case> =
        clients::ALL.iter().filter(|case| case.0.contains(&only)).copied().collect();
    let failed = clients::run(&town, &cases);
    for (name, why) in &failed {
        println!("FAILED: {name}: {why}");
    }
    println!("memory: {:.0} MB", middle.memory());
    let counters = middle.stop();
    println!("{counters}");
    assert!(failed.is_empty(), "{} of {} failed", failed.len(), cases.len());
    if only.is_empty() {
        counters.assert_some("early-acks");
    }
    // Where it can run, also when it is asked for alone: else the client's path might swallow nothing.
    if cases.iter().any(|case| case.0 == "black hole" && common::outer::have(case.1)) {
        counters.assert_some("black-holes");
    }
}
