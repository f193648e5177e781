//! Data does not grow old in the accelerator: what is stored ahead of the radio is bounded by time, and the
//! radio stays busy.

use crate::accelerator::network::*;
use paceline_net::{Bytes, Duration, Instant, Rate};
use paceline_pep::AcceleratorConfig;
use paceline_tcp::Source;

/// Share of a packet of the link that is payload, with the headers and timestamps of TCP.
const PAYLOAD: f64 = 1448.0 / 1504.0;

/// A download over 20 ms of round trip behind 10 ms to the server.
fn download(config: AcceleratorConfig, capacity: Capacity) -> Network {
    let mobile = [Link::new(capacity, 10, 1_000_000), Link::rate("50 Mb/s", 10, 1_000_000)];
    Network::download(Source::Bulk, Some(config), 5, mobile)
}
/// Largest age in ms of data that the first connection sends from `from_ms` to `until_ms`.
fn largest_age_ms(network: &mut Network, from_ms: u64, until_ms: u64) -> f64 {
    network.run_ms(from_ms);
    let ages = (from_ms..until_ms).step_by(5).map(|ms| {
        network.run_ms(ms + 5);
        network.accelerator().flows().next().map_or(0.0, |flow| flow.age.as_millis_f64())
    });
    ages.fold(0.0, f64::max)
}

#[test]
fn data_is_stored_for_a_round_trip_to_the_server_at_any_rate() {
    for mbps in [1, 5, 20, 50, 100, 500] {
        let mut network = download(AcceleratorConfig::default(), Capacity::Rate(Rate(mbps * 1_000_000)));
        let age = largest_age_ms(&mut network, 2_000, 6_000);
        let goodput = network.goodput_mbps(2_000, 6_000) / mbps as f64;
        println!("{mbps} Mb/s: {age:.1} ms, goodput {goodput:.3}");
        // One and a quarter round trips and 10 ms; and the smallest window, 8 KiB and a segment.
        assert!(age < 22.5 + 5.0 + 77.0 / mbps as f64, "{mbps} Mb/s: {age:.1} ms");
        assert!(goodput > 0.97 * PAYLOAD, "{mbps} Mb/s: {goodput:.3} of the rate");
    }
}

#[test]
fn the_operators_bound_is_kept() {
    let config = AcceleratorConfig { most_stored: Some(Duration::from_millis(200)), ..Default::default() };
    let mut network = download(config, Capacity::Rate(Rate(20_000_000)));
    let age = largest_age_ms(&mut network, 2_000, 4_000);
    assert!((150.0..=215.0).contains(&age), "{age:.1} ms");
}

/// Bytes that were stored for a fast radio are sent by the slow one; no more are stored for the old rate.
#[test]
fn a_radio_that_becomes_slow_has_old_data_only_for_a_while() {
    let steps = vec![(Instant::ZERO, Rate(100_000_000)), (Instant::from_millis(3_000), Rate(2_000_000))];
    let mut network = download(AcceleratorConfig::default(), Capacity::Steps(steps));
    let age = largest_age_ms(&mut network, 9_000, 12_000);
    assert!(age < 80.0, "{age:.1} ms");
    assert!(network.goodput_mbps(4_000, 12_000) > 0.95 * PAYLOAD * 2.0);
}

/// Connections that need little leave the rest of the window to one that needs much.
#[test]
fn a_bulk_transfer_beside_slow_connections_fills_the_radio() {
    let mut network = download(AcceleratorConfig::default(), Capacity::Rate(Rate(20_000_000)));
    for n in 1..10 {
        let interval = Duration::from_millis(50);
        network.add(n, 1, Source::Chunks { size: Bytes(1_000), interval, count: 200 });
    }
    network.run_ms(6_000);
    let goodput = network.goodput_mbps(2_000, 6_000);
    assert!(goodput > 0.95 * PAYLOAD * 20.0, "{goodput:.1} Mb/s");
    let exposure = network.accelerator().exposure();
    assert!(exposure < 300_000, "{exposure} bytes");
}

/// Many downloads of a device have no more stored than one, but for the smallest window of each.
#[test]
fn downloads_of_a_device_share_the_time() {
    let mut network = download(AcceleratorConfig::default(), Capacity::Rate(Rate(20_000_000)));
    (1..8).for_each(|n| network.add(n, 1, Source::Bulk));
    network.run_ms(6_000);
    let goodput = network.goodput_mbps(2_000, 6_000);
    assert!(goodput > 0.97 * PAYLOAD * 20.0, "{goodput:.1} Mb/s");
    let exposure = network.accelerator().exposure();
    assert!(exposure < 300_000, "{exposure} bytes");
}
