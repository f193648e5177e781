//! What a sender says it waited for: each cause made in turn, and every nanosecond of the connection accounted for.

mod link;

use link::{Direction, World, configs, has_payload, links};
use paceline_net::{Bytes, Duration, Instant, Rate};
use paceline_tcp::{EndpointConfig, Limit, LimitTimes, LossRecovery, Pacing, Source, Variant};

const SECOND: fn(u64) -> Instant = |s| Instant::from_millis(1000 * s);

/// Ten seconds of an upload, and what its sender waited for.
fn upload(
    client: EndpointConfig,
    server: EndpointConfig,
    source: Source,
    ways: [Direction; 2],
) -> LimitTimes {
    let mut world = World::upload(client, server, source, ways);
    world.run(SECOND(10));
    let times = world.client.limits(SECOND(10));
    // From the SYN, sent at zero, to the end or to now, no more and no less.
    let end = world.completed.first().copied().unwrap_or(SECOND(10));
    assert_eq!(times.life(), end.since(Instant::ZERO), "{times:?}");
    let sum: f64 = Limit::ALL.iter().map(|limit| times.share(*limit)).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    assert_eq!(
        world.server.limits(SECOND(10)),
        LimitTimes::default(),
        "a side without data waits for nothing"
    );
    times
}
fn bulk(change: impl Fn(&mut EndpointConfig, &mut EndpointConfig), ways: [Direction; 2]) -> LimitTimes {
    let (mut client, mut server) = configs();
    change(&mut client, &mut server);
    upload(client, server, Source::Bulk, ways)
}
fn wide() -> [Direction; 2] {
    links("100 Mb/s", 20, 1 << 20)
}
fn mostly(times: &LimitTimes, limit: Limit) {
    assert!(times.share(limit) > 0.9, "{limit:?}: {times:?}");
}

#[test]
fn a_small_window_of_the_receiver_is_told() {
    let small = |_: &mut EndpointConfig, server: &mut EndpointConfig| {
        (server.receive_buffer, server.autotune) = (Bytes(64_000), false);
    };
    mostly(&bulk(small, wide()), Limit::ReceiveWindow);
}

#[test]
fn an_application_that_reads_slowly_is_the_receivers_window() {
    let slow = |_: &mut EndpointConfig, server: &mut EndpointConfig| {
        server.read_rate = Some(Rate(1_000_000));
        (server.receive_buffer, server.autotune) = (Bytes(64_000), false);
    };
    mostly(&bulk(slow, wide()), Limit::ReceiveWindow);
}

#[test]
fn a_full_path_is_the_congestion_window() {
    for variant in [Variant::Cubic, Variant::NewReno] {
        // A queue that is never full: after slow start, ACKs alone let segments go.
        let change = |client: &mut EndpointConfig, server: &mut EndpointConfig| {
            (client.variant, client.send_buffer) = (variant, Bytes(64 << 20));
            (server.receive_buffer, server.autotune) = (Bytes(64 << 20), false);
        };
        mostly(&bulk(change, links("20 Mb/s", 20, 64 << 20)), Limit::CongestionWindow);
    }
}

#[test]
fn a_small_send_buffer_is_told() {
    mostly(&bulk(|client, _| client.send_buffer = Bytes(32_000), wide()), Limit::SendBuffer);
}

#[test]
fn pacing_below_the_window_is_told() {
    let paced = |client: &mut EndpointConfig, _: &mut EndpointConfig| {
        client.pacing = Pacing::External(Rate(2_000_000));
    };
    mostly(&bulk(paced, wide()), Limit::Pacing);
    // BBR paces at what the path gives.
    let times = bulk(|client, _| client.variant = Variant::Bbr, links("20 Mb/s", 20, 1 << 20));
    assert!(times.share(Limit::Pacing) > 0.5, "{times:?}");
}

#[test]
fn an_application_that_writes_little_is_told() {
    let (client, server) = configs();
    let source = Source::Chunks { size: Bytes(5000), interval: Duration::from_millis(100), count: u64::MAX };
    mostly(&upload(client, server, source, wide()), Limit::Application);
}

#[test]
fn losses_that_only_the_timer_repairs_are_the_timeouts() {
    // Three segments of window, each of them lost once in ten.
    let (client, server) = configs();
    let client = EndpointConfig {
        loss_recovery: LossRecovery::NewReno,
        tail_loss_probe: false,
        sack: false,
        initial_window: 2,
        ..client
    };
    let server =
        EndpointConfig { receive_buffer: Bytes(4000), autotune: false, window_scale: false, ..server };
    let mut ways = wide();
    let mut count = 0;
    ways[0].lose = Box::new(move |_, packet| {
        count += u64::from(has_payload(packet));
        has_payload(packet) && count % 10 == 9
    });
    let times = upload(client, server, Source::Bulk, ways);
    assert!(times.share(Limit::Timeout) > 0.5, "{times:?}");
    assert!(times.share(Limit::Recovery) < 0.05, "{times:?}");
}

#[test]
fn a_path_with_random_losses_is_in_recovery_for_a_round_trip_each() {
    let ways = wide().map(|way| way.lossy(0.02, 3, "recovery"));
    let times = bulk(|_, _| {}, ways);
    // The window is ten segments: a loss each five round trips.
    let share = times.share(Limit::Recovery);
    assert!((0.1..0.3).contains(&share), "{times:?}");
    assert!(times.share(Limit::Recovery) + times.share(Limit::CongestionWindow) > 0.9, "{times:?}");
}

#[test]
fn a_short_transfer_is_its_handshake_and_its_slow_start() {
    let (client, server) = configs();
    let times = upload(client, server, Source::File(Bytes(30_000)), wide());
    // A round trip of 40 ms to connect, and three for 10, 20 and 30 kB at most.
    let handshake = times.of(Limit::Handshake).as_millis();
    assert!((40..42).contains(&handshake), "{times:?}");
    assert!(times.life() < Duration::from_millis(170), "{times:?}");
    assert!(times.share(Limit::CongestionWindow) > 0.3, "{times:?}");
}

#[test]
fn a_syn_that_nobody_answers_is_all_handshake() {
    let mut ways = wide();
    ways[0].lose = Box::new(|_, _| true);
    let (client, server) = configs();
    let mut world = World::upload(client, server, Source::Bulk, ways);
    world.run(SECOND(5));
    let times = world.client.limits(SECOND(5));
    assert_eq!((times.life(), times.share(Limit::Handshake)), (Duration::from_secs(5), 1.0));
}
