//! Transfers through the accelerator between endpoints of `paceline-tcp`: throughput and delay that it must
//! reach on links of many kinds.

use crate::accelerator::network::*;
use paceline_net::{Bytes, Duration, Instant, Rate, Stream};
use paceline_pep::AcceleratorConfig;
use paceline_pep::accelerator::{PaperParameters, RateControl};
use paceline_tcp::{BeyondWindow, Source, Variant};

fn lines(rate: &str, delay_ms: u64, queue: u64) -> [Link; 2] {
    [Link::rate(rate, delay_ms, queue), Link::rate("50 Mb/s", delay_ms, 1_000_000)]
}
/// Completion time of a file in milliseconds.
fn completion_ms(file: u64, accelerator: Option<AcceleratorConfig>, mobile: [Link; 2]) -> f64 {
    let mut network = Network::download(Source::File(Bytes(file)), accelerator, 20, mobile);
    network.run_ms(60_000);
    assert_eq!(network.received(), file);
    if let Middle::Accelerator(accelerator) = &network.middle {
        assert_eq!(
            (accelerator.flow_count(), accelerator.held()),
            (0, 0),
            "the connection is removed with the end of the transfer"
        );
        assert_eq!(accelerator.stats().bytes_delivered, file);
    }
    network.delivered.iter().find(|(_, read)| *read == file).expect("it was read").0.as_secs_f64() * 1e3
}

#[test]
fn files_of_every_size_complete_no_later_than_without_the_accelerator() {
    for file in [1_000, 32_000, 100_000, 1_000_000, 10_000_000] {
        let plain = completion_ms(file, None, lines("40 Mb/s", 15, 4_000_000));
        let fast = completion_ms(file, adaptive(), lines("40 Mb/s", 15, 4_000_000));
        assert!(fast <= plain * 1.01 + 2.0, "{file} bytes: {fast:.0} ms against {plain:.0} ms");
    }
}

#[test]
fn a_clean_path_stays_as_fast_without_retransmissions() {
    for (rate, queue) in [("100 Mb/s", 1_000_000), ("20 Mb/s", 300_000), ("500 Mb/s", 4_000_000)] {
        let mut rates = Vec::new();
        for accelerator in [None, adaptive()] {
            let mut network = Network::download(Source::Bulk, accelerator, 5, lines(rate, 5, queue));
            network.run_ms(10_000);
            rates.push(network.goodput_mbps(0, 10_000));
            if let Middle::Accelerator(accelerator) = &network.middle {
                assert_eq!(accelerator.stats().retransmissions, 0, "{rate}");
                assert_eq!(network.servers[0].stats().retransmitted_segments, 0);
            }
        }
        assert!(rates[1] > 0.99 * rates[0], "{rate}: {rates:?}");
    }
}

/// More connections of one device than its buffer has room for at full windows: they share it, no advertised
/// data is refused and no connection is blocked by the others.
// keeps: accelerator.fairness
#[test]
fn a_hundred_connections_of_a_device_share_its_buffer() {
    let mut network = Network::download(Source::Bulk, adaptive(), 5, lines("100 Mb/s", 15, 1_000_000));
    for n in 1..100 {
        network.add(n, 1, Source::Bulk);
    }
    network.run_ms(10_000);
    let refused = network.accelerator().stats().refused;
    let mut received: Vec<u64> = network.clients.iter().map(|client| client.stats().bytes_received).collect();
    received.sort_unstable();
    let (least, sum) = (received[0], received.iter().sum::<u64>());
    assert_eq!(refused, 0);
    assert!(least * 200 > sum, "{least} bytes of {sum} for the last of a hundred");
    assert!(sum * 8 > 900_000_000, "{sum} bytes in 10 s at 100 Mb/s");
}

/// A phone has many idle connections. They need no share of the device's buffer.
#[test]
fn idle_connections_take_no_window_from_a_download() {
    let mut network = Network::download(Source::Bulk, adaptive(), 50, lines("100 Mb/s", 15, 1_000_000));
    let hour = Duration::from_secs(3600);
    for n in 1..=60 {
        network.add(n, 1, Source::Chunks { size: Bytes(1_000), interval: hour, count: u64::MAX });
    }
    network.run_ms(10_000);
    assert_eq!(network.accelerator().flow_count(), 61);
    let rate = network.goodput_mbps(2_000, 10_000);
    assert!(rate > 95.0, "{rate:.1} Mb/s beside 60 idle connections");
}

/// Each of them has a window from the time when all others were idle.
// keeps: accelerator.overload
#[test]
fn connections_that_all_become_active_at_once_share_the_buffer() {
    let config = AcceleratorConfig { device_buffer: Bytes(4 << 20), ..AcceleratorConfig::default() };
    let mut network = Network::download(Source::Nothing, Some(config), 15, lines("20 Mb/s", 15, 1_000_000));
    for n in 1..=40 {
        let begun = u64::from(n) * 500;
        network.run_ms(begun);
        let interval = Duration::from_millis(30_000 - begun);
        network.add(n, 1, Source::Chunks { size: Bytes(500_000), interval, count: 2 });
    }
    network.run_ms(29_000);
    assert_eq!(network.received(), 40 * 500_000);
    network.run_ms(60_000);
    let stats = network.accelerator().stats();
    assert_eq!(network.received(), 40 * 1_000_000);
    assert_eq!(stats.refused, 0, "{stats:?}");
}

/// Queues shorter than the target delay: they overflow, are detected, and are kept below their length.
#[test]
fn short_buffers_are_detected_and_not_overrun() {
    for (rate, delay_ms, queue) in
        [("100 Mb/s", 5, 100_000), ("20 Mb/s", 10, 20_000), ("50 Mb/s", 20, 200_000), ("10 Mb/s", 25, 15_000)]
    {
        let mut rates = Vec::new();
        for accelerator in [None, adaptive()] {
            let mut network = Network::download(Source::Bulk, accelerator, 5, lines(rate, delay_ms, queue));
            network.run_ms(20_000);
            rates.push(network.goodput_mbps(0, 20_000));
            if let Middle::Accelerator(accelerator) = &network.middle {
                let stats = accelerator.stats();
                assert!(stats.retransmissions * 20 < stats.segments_sent, "{rate}, {queue} bytes: {stats:?}");
            }
        }
        assert!(rates[1] > 0.99 * rates[0], "{rate}, {queue} bytes: {rates:?}");
    }
}

#[test]
fn loss_without_congestion_does_not_lower_the_rate() {
    // Random losses, and bursts of 30 ms each second.
    for (loss, reach) in [(0.001, 0.98), (0.01, 0.97), (0.04, 0.97)] {
        let [mut down, up] = lines("80 Mb/s", 12, 10_000_000);
        down = down.lossy(loss, 3, "loss");
        let mut network = Network::download(Source::Bulk, adaptive(), 10, [down, up]);
        network.run_ms(20_000);
        // Goodput of UDP: the rate of the link without headers and losses.
        let udp = 80.0 * 1448.0 / 1500.0 * (1.0 - loss);
        let share = network.goodput_mbps(3_000, 20_000) / udp;
        assert!(share > reach, "loss {loss}: {share:.3} of UDP's goodput");
    }
    let [mut down, up] = lines("20 Mb/s", 25, 10_000_000);
    down.lose = Box::new(|_, at: Instant| at.as_millis() % 1000 < 30);
    let mut network = Network::download(Source::Bulk, adaptive(), 10, [down, up]);
    network.run_ms(20_000);
    let share = network.goodput_mbps(3_000, 20_000) / (20.0 * 1448.0 / 1500.0 * 0.97);
    assert!(share > 0.97, "bursts: {share:.3} of UDP's goodput");
}

/// Fades of 50 to 300 ms each 1.2 s that lose everything, a client whose window is little more than the
/// bandwidth-delay product (0.8 MB), and a path whose delay doubles under load: between fades the link is
/// nearly always in use.
// keeps: accelerator.handover
#[test]
fn fades_cost_little_more_than_their_duration() {
    let (mut client, server) = configs(0);
    client.receive_buffer = Bytes(1 << 20);
    client.autotune = false;
    client.beyond_window = BeyondWindow::Accept;
    let [mut down, up] = lines("80 Mb/s", 20, 10_000_000);
    let mut lengths = Stream::new(3, "fades");
    let fades: Vec<u64> = (0..100).map(|_| 50 + lengths.below(250)).collect();
    let lost: u64 = fades[2..25].iter().sum();
    down.lose = Box::new(move |_, at: Instant| at.as_millis() % 1200 < fades[at.as_millis() as usize / 1200]);
    // Bytes sent recently, as a share of the capacity of 80 Mb/s in 200 ms.
    let (mut load, mut last) = (0.0_f64, Instant::ZERO);
    down.extra = Box::new(move |_, at: Instant| {
        load *= 1.0 - (at.since(last).as_secs_f64() / 0.2).min(1.0);
        load = (load + 1500.0 * 8.0 / (0.2 * 80e6)).min(1.0);
        last = at;
        Duration::from_secs_f64(0.04 * load)
    });
    let mut network = Network::with((client, server), Source::Bulk, adaptive(), 10, [down, up]);
    network.run_ms(30_000);
    let open = 1.0 - lost as f64 / 27_600.0;
    let share = network.goodput_mbps(2_400, 30_000) / (80.0 * 1448.0 / 1500.0 * open);
    assert!(share > 0.95, "{share:.3} of the capacity between fades");
    assert_eq!(network.accelerator().stats().overshoot_drops, 0);
}

#[test]
fn a_hundredfold_change_of_the_rate_is_followed_within_a_second() {
    for delay_ms in [10, 30] {
        let steps: Vec<(Instant, Rate)> = (0..4)
            .map(|n| {
                (Instant::from_millis(n * 6_000), Rate(if n % 2 == 0 { 1_000_000 } else { 100_000_000 }))
            })
            .collect();
        let down = Link::new(Capacity::Steps(steps), delay_ms, 50_000_000);
        let up = Link::rate("20 Mb/s", delay_ms, 10_000_000);
        let mut network = Network::download(Source::Bulk, adaptive(), 10, [down, up]);
        network.run_ms(6_000);
        network.run_ms(7_000);
        let risen = network.goodput_mbps(6_900, 7_000);
        assert!(risen > 75.0, "{delay_ms} ms: {risen:.1} Mb/s a second after the rise");
        network.run_ms(12_000);
        network.run_ms(13_000);
        let flow = network.accelerator().flows().next().expect("it runs");
        let bound = 2.0 * 1e6 / 8.0 * (0.002 * delay_ms as f64 + 0.2);
        assert!(
            (flow.control.window as f64) < bound,
            "{delay_ms} ms: a window of {} a second after the fall",
            flow.control.window
        );
    }
}

/// Loss and reordering on every link at once, in both directions.
// keeps: accelerator.prefix
#[test]
fn transfers_survive_loss_and_reordering_on_both_segments() {
    for seed in 1..=6 {
        let file = 3_000_000;
        let mut network =
            Network::download(Source::File(Bytes(file)), adaptive(), 10, lines("20 Mb/s", 15, 400_000));
        for (n, line) in network.wired.iter_mut().chain(&mut network.mobile).enumerate() {
            let mut losses = Stream::new(seed, &format!("loss{n}"));
            let mut delays = Stream::new(seed, &format!("delay{n}"));
            line.lose = Box::new(move |_, _| losses.chance(0.01));
            line.extra =
                Box::new(move |_, _| Duration::from_micros(if delays.chance(0.02) { 3_000 } else { 0 }));
        }
        network.run_ms(60_000);
        assert_eq!(network.received(), file, "seed {seed}");
        let stats = network.accelerator().stats();
        assert_eq!((stats.bytes_delivered, stats.flows_reset, stats.conflicts), (file, 0, 0), "seed {seed}");
        assert!(stats.retransmissions * 20 < stats.segments_sent, "seed {seed}: {stats:?}");
    }
}

/// A transfer to a client with a window of 17 KB that reads at once, or at a rate. Returns the goodput and
/// the network.
fn small_window(beyond: BeyondWindow, config: AcceleratorConfig, read_rate: Option<Rate>) -> (f64, Network) {
    let (mut client, server) = configs(0);
    client.receive_buffer = Bytes(17_000);
    client.autotune = false;
    client.window_scale = false;
    client.beyond_window = beyond;
    client.read_rate = read_rate;
    let mut network =
        Network::with((client, server), Source::Bulk, Some(config), 30, lines("5.6 Mb/s", 31, 10_000_000));
    network.run_ms(20_000);
    (network.goodput_mbps(2_000, 20_000), network)
}

fn overshooting(overshoot: bool) -> AcceleratorConfig {
    AcceleratorConfig { overshoot, ..AcceleratorConfig::default() }
}

/// A window that does not grow is kept: nothing is sent again. The published control sends past it.
// keeps: accelerator.window
#[test]
fn small_windows_are_kept_and_overshot_as_published() {
    let (honoured, _) = small_window(BeyondWindow::Accept, overshooting(false), None);
    assert!(honoured < 2.4, "{honoured:.2} Mb/s with a window of 17 KB");
    for beyond in [BeyondWindow::Accept, BeyondWindow::Drop] {
        for kilobits in [None, Some(300), Some(1_000), Some(1_600), Some(3_000)] {
            let read_rate = kilobits.map(|kilobits| Rate(kilobits * 1000));
            let (kept, network) = small_window(beyond, overshooting(true), read_rate);
            let (own, _) = small_window(beyond, overshooting(false), read_rate);
            assert!(kept > 0.97 * own, "{beyond:?}, {kilobits:?} kb/s: {kept:.2} against {own:.2} Mb/s");
            let stats = network.accelerator().stats();
            assert!(stats.overshoot_drops == 0 && stats.retransmissions == 0, "{kilobits:?} kb/s: {stats:?}");
        }
    }
    let control = RateControl::Paper(PaperParameters::default());
    let published = AcceleratorConfig { control, ..AcceleratorConfig::default() };
    let (fast, _) = small_window(BeyondWindow::Accept, published, None);
    assert!(fast > 0.9 * 5.6 * 1448.0 / 1500.0, "{fast:.2} Mb/s");
}

/// Autotuned windows grow: a file arrives no later if they are overshot, and nothing is sent again, whether
/// or not the client takes data past its window.
#[test]
fn growing_windows_are_overshot() {
    for beyond in [BeyondWindow::Accept, BeyondWindow::Drop] {
        for (rate, file) in [("100 Mb/s", 1_000_000), ("200 Mb/s", 8_000_000)] {
            let time = |overshoot| {
                let (mut client, server) = configs(0);
                client.beyond_window = beyond;
                let file = Source::File(Bytes(file));
                let mobile = lines(rate, 40, 4_000_000);
                let config = Some(overshooting(overshoot));
                let mut network = Network::with((client, server), file, config, 5, mobile);
                network.run_ms(10_000);
                let stats = network.accelerator().stats();
                assert_eq!((stats.overshoot_drops, stats.retransmissions), (0, 0), "{beyond:?}, {rate}");
                let last = network.delivered.iter().find(|(_, read)| *read == network.received());
                last.expect("it was read").0.as_secs_f64() * 1e3
            };
            let (kept, overshot) = (time(false), time(true));
            println!("{beyond:?}, {rate}, {file} bytes: {kept:.0} ms, overshot {overshot:.0} ms");
            assert!(overshot <= kept + 1.0, "{beyond:?}, {rate}: {overshot:.0} against {kept:.0} ms");
        }
    }
}

#[test]
fn the_published_control_reaches_its_rate() {
    let control = RateControl::Paper(PaperParameters::default());
    let config = AcceleratorConfig { control, ..AcceleratorConfig::default() };
    let mut network = Network::download(Source::Bulk, Some(config), 20, lines("7 Mb/s", 31, 2_000_000));
    network.run_ms(20_000);
    let rate = network.goodput_mbps(2_000, 20_000);
    // Below alpha the rate grows to R_cap and stays there.
    assert!((5.3..5.6).contains(&rate), "{rate}");
    assert!(network.mobile[0].percentile_ms(0.95) < 10.0);
}

#[test]
fn never_slower_than_plain_cubic_on_a_variable_link() {
    for seed in 1..4u64 {
        let mut stream = Stream::new(seed, "capacity");
        let mut log = 0.0;
        let steps: Vec<(Instant, Rate)> = (0..1500u64)
            .map(|n| {
                log = 0.97 * log + 0.15 * stream.normal();
                let factor = 1.0 + log + log * log / 2.0 + log * log * log / 6.0;
                (Instant::from_millis(n * 20), Rate((12e6 * factor.max(0.05)) as u64))
            })
            .collect();
        let run = |accelerator, variant| {
            let (client, mut server) = configs(0);
            server.variant = variant;
            let down = Link::new(Capacity::Steps(steps.clone()), 15, 10_000_000);
            let up = Link::rate("20 Mb/s", 15, 10_000_000);
            let mut network = Network::with((client, server), Source::Bulk, accelerator, 15, [down, up]);
            network.run_ms(30_000);
            (network.goodput_mbps(0, 30_000), network.mobile[0].percentile_ms(0.95))
        };
        let (cubic, _) = run(None, Variant::Cubic);
        let (bbr, bbr_wait) = run(None, Variant::Bbr);
        let (fast, wait) = run(adaptive(), Variant::Cubic);
        println!(
            "seed {seed}: CUBIC {cubic:.2}, BBR {bbr:.2} Mb/s {bbr_wait:.0} ms, accelerated {fast:.2} Mb/s {wait:.0} ms"
        );
        assert!(fast > 0.99 * cubic, "seed {seed}: {fast:.2} against {cubic:.2} Mb/s");
        assert!(wait < bbr_wait / 2.0, "seed {seed}: {wait:.0} against {bbr_wait:.0} ms");
    }
}
