//! Safety on live traffic: rates, buffers and fairness. Each test names its row of the accelerator's table of
//! hazards.

use crate::accelerator::network::*;
use paceline_net::{Bytes, Duration, Instant, Rate};
use paceline_tcp::Source;

fn up(delay_ms: u64) -> Link {
    Link::rate("20 Mb/s", delay_ms, 10_000_000)
}

/// An RTT jump alone is no congestion.
// keeps: accelerator.handover
#[test]
fn longer_paths_outages_and_sleep_do_not_lower_the_rate() {
    // The delay of the path grows by 60 ms at 10 s.
    let mut down = Link::rate("30 Mb/s", 15, 10_000_000);
    down.extra = Box::new(|_, at| {
        let longer = if at.as_millis() >= 10_000 { 60 } else { 0 };
        Duration::from_millis(longer)
    });
    let mut network = Network::download(Source::Bulk, adaptive(), 10, [down, up(15)]);
    network.run_ms(30_000);
    let (before, after) = (network.goodput_mbps(3_000, 10_000), network.goodput_mbps(14_000, 30_000));
    assert!(before > 28.0 && after > 28.0, "{before:.1} Mb/s, then {after:.1}");

    let steps: Vec<(Instant, Rate)> = (0..30u64)
        .flat_map(|n| {
            let at = |ms: u64| Instant::from_millis(n * 1_000 + ms);
            [(at(0), Rate(30_000_000)), (at(850), Rate(1))]
        })
        .collect();
    let line = Link::new(Capacity::Steps(steps), 15, 10_000_000);
    let mut network = Network::download(Source::Bulk, adaptive(), 10, [line, up(15)]);
    network.run_ms(30_000);
    let rate = network.goodput_mbps(3_000, 29_000);
    assert!(rate > 0.85 * 30.0 * 0.95 * 0.95, "{rate:.1} Mb/s of a capacity of 25.5");
    let stats = network.accelerator().stats();
    assert!(stats.retransmissions * 100 < stats.segments_sent, "an outage is no loss: {stats:?}");
}

/// Bound the data in flight to bandwidth x (minimum RTT + target delay).
// keeps: accelerator.deep-buffers
#[test]
fn deep_buffers_are_not_filled() {
    for (rate, delay_ms) in [("2 Mb/s", 30), ("20 Mb/s", 15), ("80 Mb/s", 10)] {
        let line = Link::rate(rate, delay_ms, 50_000_000);
        let mut network = Network::download(Source::Bulk, adaptive(), 10, [line, up(delay_ms)]);
        network.run_ms(20_000);
        let (mean, p95) = (network.mobile[0].percentile_ms(0.5), network.mobile[0].percentile_ms(0.95));
        assert!(mean < 60.0 && p95 < 120.0, "{rate}: queue {mean:.0} ms, 95 % {p95:.0} ms");
        let share = network.mobile[0].carried as f64 * 8.0 / 20.0 / rate.parse::<Rate>().unwrap().0 as f64;
        assert!(share > 0.97, "{rate}: {share}");
    }
}

/// Buffers of a few packets: few retransmissions, and full use of the path.
#[test]
fn short_buffers_are_not_overrun() {
    for (rate, delay_ms, packets) in
        [("20 Mb/s", 20, 10), ("20 Mb/s", 20, 20), ("5 Mb/s", 10, 5), ("80 Mb/s", 30, 20)]
    {
        let line = Link::rate(rate, delay_ms, packets * 1500);
        let mut network = Network::download(Source::Bulk, adaptive(), 10, [line, up(delay_ms)]);
        network.run_ms(20_000);
        let stats = network.accelerator().stats();
        let again = stats.retransmissions as f64 / (stats.segments_sent + stats.retransmissions) as f64;
        let share = network.goodput_mbps(0, 20_000) * 1e6 / rate.parse::<Rate>().unwrap().0 as f64;
        assert!(
            again < 0.2 && share > 0.8,
            "{rate}, {packets} packets: {again:.2} retransmitted, {share:.2} of the rate"
        );
    }
}

/// The same with a client without SACK, whose data above a hole is not known.
#[test]
fn short_buffers_are_not_overrun_without_sack() {
    for (rate, delay_ms, packets) in
        [("20 Mb/s", 20, 50), ("50 Mb/s", 5, 50), ("50 Mb/s", 20, 100), ("80 Mb/s", 20, 100)]
    {
        let line = Link::rate(rate, delay_ms, packets * 1500);
        let mut config = configs(0);
        config.0.sack = false;
        let mut network = Network::with(config, Source::Bulk, adaptive(), 10, [line, up(delay_ms)]);
        network.run_ms(20_000);
        let stats = network.accelerator().stats();
        let again = stats.retransmissions as f64 / (stats.segments_sent + stats.retransmissions) as f64;
        let share = network.goodput_mbps(0, 20_000) * 1e6 / rate.parse::<Rate>().unwrap().0 as f64;
        assert!(
            again < 0.2 && share > 0.8,
            "{rate}, {packets} packets: {again:.2} retransmitted, {share:.2} of the rate"
        );
    }
}

/// From acknowledged bytes over at least an RTT and several TDD periods, never from
/// ACK packets; app-limited samples do not lower it.
// keeps: accelerator.estimate
#[test]
fn the_estimate_counts_bytes_over_periods() {
    // Packets and ACKs pass the radio in bursts each 10 ms.
    let mut down = Link::rate("40 Mb/s", 10, 10_000_000);
    let to_burst = |at: Instant| {
        let into = at.as_nanos() % 10_000_000;
        Duration::from_nanos(10_000_000 - into)
    };
    down.extra = Box::new(move |_, at| to_burst(at));
    let mut uplink = up(10);
    uplink.extra = Box::new(move |_, at| to_burst(at));
    let mut network = Network::download(Source::Bulk, adaptive(), 10, [down, uplink]);
    network.run_ms(10_000);
    let flow = network.accelerator().flows().next().expect("the transfer runs");
    let window_rate = flow.control.rate.0 as f64 / 1e6;
    assert!((38.0..130.0).contains(&window_rate), "paced at {window_rate} Mb/s");
    let rate = network.goodput_mbps(2_000, 10_000);
    assert!(rate > 37.0, "{rate} Mb/s");
    assert!(network.mobile[0].percentile_ms(0.95) < 80.0, "{}", network.mobile[0].percentile_ms(0.95));

    // A source of 2 Mb/s for five seconds does not lower the estimate.
    let mut config = configs(0);
    config.1.send_buffer = Bytes(6_000);
    let mut network =
        Network::with(config, Source::Bulk, adaptive(), 10, [Link::rate("40 Mb/s", 10, 10_000_000), up(10)]);
    network.run_ms(5_000);
    assert!(network.accelerator().flows().next().unwrap().control.window > 14_000);
}

/// Turns go by device, then by flow.
// keeps: accelerator.fairness
#[test]
fn flows_of_a_device_share_equally_and_short_transfers_are_not_delayed_by_long_ones() {
    let line = Link::rate("20 Mb/s", 15, 10_000_000);
    let mut network = Network::download(Source::Bulk, adaptive(), 10, [line, up(15)]);
    network.add(1, 1, Source::Bulk);
    network.add(2, 1, Source::Bulk);
    network.run_ms(20_000);
    let read: Vec<f64> = network.clients.iter().map(|client| client.stats().bytes_received as f64).collect();
    let (sum, squares): (f64, f64) = (read.iter().sum(), read.iter().map(|x| x * x).sum());
    let jain = sum * sum / (3.0 * squares);
    assert!(jain > 0.99, "Jain's index {jain} of {read:?}");
    assert!(network.mobile[0].percentile_ms(0.95) < 120.0);

    // An unresponsive client does not delay the others.
    let line = Link::rate("20 Mb/s", 15, 10_000_000);
    let mut network = Network::download(Source::Bulk, adaptive(), 10, [line, up(15)]);
    network.add(1, 1, Source::Bulk);
    network.run_ms(3_000);
    network.clients.truncate(1);
    network.run_ms(20_000);
    let rate = network.goodput_mbps(6_000, 20_000);
    assert!(rate > 18.0, "{rate:.1} Mb/s beside an unresponsive client");

    // A short transfer beside two long ones of the same device.
    let line = Link::rate("20 Mb/s", 15, 10_000_000);
    let mut network = Network::download(Source::Bulk, adaptive(), 10, [line, up(15)]);
    network.add(1, 1, Source::Bulk);
    network.run_ms(5_000);
    network.add(2, 1, Source::File(Bytes(100_000)));
    let begun = network.now;
    while network.clients[2].stats().bytes_received < 100_000 {
        assert!(network.step(begun + Duration::from_secs(2)), "100 kB in less than 2 s");
    }
}
