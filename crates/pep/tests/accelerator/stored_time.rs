//! Data does not grow old in the accelerator: what is stored ahead of the radio is bounded by time, and the
//! radio stays busy.

use crate::accelerator::network::*;
use paceline_net::{Bytes, Duration, Instant, Rate};
use paceline_pep::AcceleratorConfig;
use paceline_tcp::Source;

/// Share of a packet of the link that is payload, with the headers and timestamps of TCP.
const PAYLOAD: f64 = 1448.0 / 1504.0;

/// A download over a path of 10 ms to the server and 10 ms to the client, with a queue of bytes.
fn download(config: Option<AcceleratorConfig>, capacity: Capacity, queue: u64) -> Network {
    let mobile = [Link::new(capacity, 5, queue), Link::rate("50 Mb/s", 5, 1_000_000)];
    Network::download(Source::Bulk, config, 5, mobile)
}
fn rate(mbps: u64) -> Capacity {
    Capacity::Rate(Rate(mbps * 1_000_000))
}
/// A share of the values is at most this.
fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share) as usize]
}
/// Percentiles 50 and 95 in ms of the time from a server's sending to its client's reading, in the second
/// half of a run of `ms`; and the goodput there in Mb/s.
fn ages(network: &mut Network, ms: u64) -> (f64, f64, f64) {
    network.run_ms(ms);
    let late = network.ages.iter().filter(|(at, _)| at.as_millis() > ms / 2);
    let ages: Vec<f64> = late.map(|(_, age)| age.as_millis_f64()).collect();
    (percentile(ages.clone(), 0.5), percentile(ages, 0.95), network.goodput_mbps(ms / 2, ms))
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

/// The queue of the radio holds 40 ms, 200 packets at least.
#[test]
fn an_application_reads_no_older_data_than_without_the_accelerator() {
    for (mbps, ms) in [(1, 20_000), (5, 16_000), (20, 12_000), (50, 8_000), (200, 6_000), (500, 6_000)] {
        let queue = (mbps * 5_000).max(300_000);
        let (plain, plain_95, slow) = ages(&mut download(None, rate(mbps), queue), ms);
        let (own, own_95, fast) = ages(&mut download(adaptive(), rate(mbps), queue), ms);
        println!("{mbps} Mb/s: CUBIC {plain:.0} ({plain_95:.0}) ms, accelerated {own:.0} ({own_95:.0}) ms");
        assert!(own <= 1.25 * plain && own_95 <= 1.25 * plain_95, "{mbps} Mb/s: {own:.1} and {own_95:.1} ms");
        assert!(fast > 0.99 * slow, "{mbps} Mb/s: {fast:.1} against {slow:.1} Mb/s");
    }
}

/// The reserve is found by trial, in units of packets: a packet takes 12 ms at 1 Mb/s.
#[test]
fn data_is_stored_for_a_part_of_the_round_trip_to_the_server() {
    for mbps in [1, 5, 20, 50, 200] {
        let mut network = download(adaptive(), rate(mbps), 2_000_000);
        network.run_ms(15_000);
        let ages = (15_000..20_000).map(|ms| {
            network.run_ms(ms);
            network.accelerator().flows().next().map_or(0.0, |flow| flow.age.as_millis_f64())
        });
        let age = percentile(ages.collect(), 0.9);
        assert!(age < 25.0 + 48.0 / mbps as f64, "{mbps} Mb/s: {age:.1} ms");
    }
}

#[test]
fn the_operators_bound_is_kept() {
    let config = AcceleratorConfig { most_stored: Some(Duration::from_millis(200)), ..Default::default() };
    let mut network = download(Some(config), rate(20), 2_000_000);
    let age = largest_age_ms(&mut network, 4_000, 6_000);
    assert!((150.0..=230.0).contains(&age), "{age:.1} ms");
}

/// Bytes that were stored for a fast radio are sent by the slow one; no more are stored for the old rate.
#[test]
fn a_radio_that_becomes_slow_has_old_data_only_for_a_while() {
    let steps = vec![(Instant::ZERO, Rate(100_000_000)), (Instant::from_millis(3_000), Rate(2_000_000))];
    let mut network = download(adaptive(), Capacity::Steps(steps), 1_000_000);
    let age = largest_age_ms(&mut network, 30_000, 32_000);
    assert!(age < 100.0, "{age:.1} ms");
    assert!(network.goodput_mbps(4_000, 32_000) > 0.95 * PAYLOAD * 2.0);
}

/// A client whose program reads slowly: its window, not the radio, bounds the data that waits here.
#[test]
fn nothing_is_stored_for_a_window_that_is_closed() {
    let (mut client, server) = configs(0);
    client.read_rate = Some(Rate(2_000_000));
    let mobile = [Link::new(rate(100), 5, 2_000_000), Link::rate("50 Mb/s", 5, 1_000_000)];
    let mut network = Network::with((client, server), Source::Bulk, adaptive(), 5, mobile);
    network.run_ms(5_000);
    let held = network.accelerator().held();
    assert!(held < 500_000, "{held} bytes");
}

/// Queues of the core network lengthen the round trip to the server: the radio stays busy.
#[test]
fn a_longer_round_trip_to_the_server_is_noticed() {
    let mut network = download(adaptive(), rate(50), 2_000_000);
    let longer = |at: Instant| Duration::from_millis(if at.as_millis() < 2_000 { 0 } else { 60 });
    network.wired[0].extra = Box::new(move |_, at| longer(at));
    network.run_ms(8_000);
    let goodput = network.goodput_mbps(4_000, 8_000);
    assert!(goodput > 0.97 * PAYLOAD * 50.0, "{goodput:.1} Mb/s");
}

/// Connections that need little leave the rest of the window to one that needs much.
#[test]
fn a_bulk_transfer_beside_slow_connections_fills_the_radio() {
    let mut network = download(adaptive(), rate(20), 1_000_000);
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
    let mut network = download(adaptive(), rate(20), 1_000_000);
    (1..8).for_each(|n| network.add(n, 1, Source::Bulk));
    network.run_ms(6_000);
    let goodput = network.goodput_mbps(2_000, 6_000);
    assert!(goodput > 0.97 * PAYLOAD * 20.0, "{goodput:.1} Mb/s");
    let exposure = network.accelerator().exposure();
    assert!(exposure < 300_000, "{exposure} bytes");
}
