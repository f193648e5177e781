//! The limits that a sender reports: each one is caused in turn, and they add up to the lifetime of the
//! connection.

use crate::link::{Direction, World, configs, has_payload, links};
use paceline_net::{Bytes, Duration, Instant, Rate};
use paceline_tcp::{EndpointConfig, Limit, LimitTimes, LossRecovery, Pacing, Source, Variant};

const SECOND: fn(u64) -> Instant = |s| Instant::from_millis(1000 * s);

/// The limits of the sender in an upload of ten seconds.
fn upload(
    client: EndpointConfig,
    server: EndpointConfig,
    source: Source,
    ways: [Direction; 2],
) -> LimitTimes {
    let mut world = World::upload(client, server, source, ways);
    world.run(SECOND(10));
    let times = world.client.limits(SECOND(10));
    // Exactly the time from the SYN, sent at zero, to the end or until now.
    let end = world.completed.first().copied().unwrap_or(SECOND(10));
    assert_eq!(times.life(), end.since(Instant::ZERO), "{times:?}");
    let sum: f64 = Limit::ALL.iter().map(|limit| times.share(*limit)).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    assert_eq!(world.server.limits(SECOND(10)), LimitTimes::default(), "a side without data has no limits");
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
fn a_small_receive_window_is_the_limit() {
    let small = |_: &mut EndpointConfig, server: &mut EndpointConfig| {
        (server.receive_buffer, server.autotune) = (Bytes(64_000), false);
    };
    mostly(&bulk(small, wide()), Limit::ReceiveWindow);
}

#[test]
fn an_application_that_reads_slowly_makes_the_receive_window_the_limit() {
    let slow = |_: &mut EndpointConfig, server: &mut EndpointConfig| {
        server.read_rate = Some(Rate(1_000_000));
        (server.receive_buffer, server.autotune) = (Bytes(64_000), false);
    };
    mostly(&bulk(slow, wide()), Limit::ReceiveWindow);
}

#[test]
fn on_a_full_path_the_congestion_window_is_the_limit() {
    for variant in [Variant::Cubic, Variant::NewReno] {
        // The queue never overflows: after slow start, each segment waits for an ACK.
        let change = |client: &mut EndpointConfig, server: &mut EndpointConfig| {
            (client.variant, client.send_buffer) = (variant, Bytes(64 << 20));
            (server.receive_buffer, server.autotune) = (Bytes(64 << 20), false);
        };
        mostly(&bulk(change, links("20 Mb/s", 20, 64 << 20)), Limit::CongestionWindow);
    }
}

#[test]
fn a_small_send_buffer_is_the_limit() {
    mostly(&bulk(|client, _| client.send_buffer = Bytes(32_000), wide()), Limit::SendBuffer);
}

#[test]
fn pacing_below_the_window_is_the_limit() {
    let paced = |client: &mut EndpointConfig, _: &mut EndpointConfig| {
        client.pacing = Pacing::External(Rate(2_000_000));
    };
    mostly(&bulk(paced, wide()), Limit::Pacing);
    // BBR paces at the delivery rate of the path.
    let times = bulk(|client, _| client.variant = Variant::Bbr, links("20 Mb/s", 20, 1 << 20));
    assert!(times.share(Limit::Pacing) > 0.5, "{times:?}");
}

#[test]
fn an_application_that_writes_little_is_the_limit() {
    let (client, server) = configs();
    let source = Source::Chunks { size: Bytes(5000), interval: Duration::from_millis(100), count: u64::MAX };
    mostly(&upload(client, server, source, wide()), Limit::Application);
}

#[test]
fn losses_that_only_the_timer_repairs_make_the_timeout_the_limit() {
    // A window of three segments, of which one in ten is lost.
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
fn a_short_transfer_consists_of_handshake_and_slow_start() {
    let (client, server) = configs();
    let times = upload(client, server, Source::File(Bytes(30_000)), wide());
    // A round trip of 40 ms to connect, and three for 10, 20 and 30 kB at most.
    let handshake = times.of(Limit::Handshake).as_millis();
    assert!((40..42).contains(&handshake), "{times:?}");
    assert!(times.life() < Duration::from_millis(170), "{times:?}");
    assert!(times.share(Limit::CongestionWindow) > 0.3, "{times:?}");
}

#[test]
fn with_an_unanswered_syn_the_lifetime_is_handshake() {
    let mut ways = wide();
    ways[0].lose = Box::new(|_, _| true);
    let (client, server) = configs();
    let mut world = World::upload(client, server, Source::Bulk, ways);
    world.run(SECOND(5));
    let times = world.client.limits(SECOND(5));
    assert_eq!((times.life(), times.share(Limit::Handshake)), (Duration::from_secs(5), 1.0));
}
