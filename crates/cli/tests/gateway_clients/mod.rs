//! Common clients and servers through the gateway and through the ACK policer, hostile traffic, and ends of
//! the gateway. Needs root.
//! Without root the tests are skipped, or fail where `PACELINE_REQUIRE_PRIVILEGED` is set.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // programs run in real time

mod clients;
mod failures;
mod hostile;
mod middlebox;
mod network;
mod policer;
mod servers;

use middlebox::Middlebox;
use network::{CLIENT, NARROW, Network, VARIANTS};

#[test]
fn common_programs_transfer_byte_exact_at_once() {
    let hosts = [&[CLIENT, NARROW][..], &VARIANTS].concat();
    let Some(network) = Network::new(&hosts) else { return };
    let _servers = servers::start(&network);
    let middlebox = Middlebox::start(&network, "workers = 2\n");
    let only = std::env::var("PACELINE_CLIENTS").unwrap_or_default();
    let cases: Vec<clients::Case> =
        clients::ALL.iter().filter(|case| case.0.contains(&only)).copied().collect();
    let failed = clients::run(&network, &cases);
    for (name, message) in &failed {
        println!("FAILED: {name}: {message}");
    }
    println!("memory: {:.0} MB", middlebox.memory());
    let counters = middlebox.stop();
    println!("{counters}");
    assert!(failed.is_empty(), "{} of {} failed", failed.len(), cases.len());
    if only.is_empty() {
        counters.assert_some("early-acks");
    }
    // Whenever the case has run: otherwise the path might not have dropped the long packets.
    if cases.iter().any(|case| case.0 == "black hole" && crate::common::namespace::have_programs(case.1)) {
        counters.assert_some("black-holes");
    }
}
