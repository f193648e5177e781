//! Transfers over an emulated link: goodput, recovery, and the loss of every kind of segment.

use crate::link::{Direction, World, configs, has_payload, links};
use paceline_net::{Bytes, Duration, Instant, SeqNumber, Stream, TcpFlags};
use paceline_tcp::{DelayedAck, Endpoint, EndpointConfig, Source, Variant};

const SECOND: fn(u64) -> Instant = |s| Instant::from_millis(1000 * s);

fn with_variant(variant: Variant) -> (EndpointConfig, EndpointConfig) {
    let (client, server) = configs();
    (EndpointConfig { variant, ..client }, EndpointConfig { variant, ..server })
}

/// Goodput between two times, as a share of the link rate without headers.
fn utilisation(world: &mut World, from: Instant, to: Instant, rate: f64) -> f64 {
    world.run(from);
    let before = world.server.stats().bytes_received;
    world.run(to);
    let bytes = world.server.stats().bytes_received - before;
    assert_eq!(world.server.stats().bytes_received, world.observed_at_server());
    bytes as f64 * 8.0 / to.since(from).as_secs_f64() / (rate * 1448.0 / 1500.0)
}

#[test]
fn bulk_transfer_fills_the_link() {
    for variant in Variant::ALL {
        let (client, server) = with_variant(variant);
        // The bandwidth-delay product is 100 KB, the queue as large.
        let mut world = World::upload(client, server, Source::Bulk, links("20 Mb/s", 20, 100_000));
        let used = utilisation(&mut world, SECOND(5), SECOND(35), 20e6);
        let stats = world.client.stats();
        // Tahoe fills an empty path again after each loss. BBR 3 halves its flight every five seconds, and
        // the losses of a probe bound its rate until the next one.
        let floor = if matches!(variant, Variant::Tahoe | Variant::Bbr3) { 0.92 } else { 0.95 };
        assert!(used >= floor, "{variant}: {used:.3} {stats:?} {:?}", world.client.snapshot());
        assert_eq!(stats.timeouts, 0, "{variant}: {stats:?}");
    }
}

#[test]
fn reno_and_cubic_keep_the_link_full_with_a_queue_of_a_third_of_the_bdp() {
    for variant in [Variant::NewReno, Variant::Cubic] {
        let (client, server) = with_variant(variant);
        let mut world = World::upload(client, server, Source::Bulk, links("50 Mb/s", 10, 40_000));
        let used = utilisation(&mut world, SECOND(5), SECOND(65), 50e6);
        // Reno halves a window of 1.32 BDPs: it oscillates between 0.66 and 1.32 BDPs.
        let floor = if variant == Variant::Cubic { 0.93 } else { 0.90 };
        assert!(used >= floor, "{variant}: {used:.3} {:?}", world.client.stats());
    }
}

/// Runs a finite upload; checks that every byte arrived once and that both sides closed.
fn complete(world: &mut World, size: u64, end: Instant, label: &str) {
    world.run(end);
    let (client, server) = (world.client.snapshot(), world.server.snapshot());
    let told =
        format!("{label}: {:?} {client:?} {server:?} {:?}", world.client.stats(), world.server.stats());
    assert_eq!(world.completed.len(), 1, "{told}");
    assert_eq!(world.server.stats().bytes_received, size, "{told}");
    assert_eq!(world.observed_at_server(), size, "{told}");
    assert_eq!(world.client.stats().bytes_acked, size, "{told}");
    // A segment that arrives at the closed server is answered by a reset, which ends TIME-WAIT (RFC 9293
    // §3.10.7.1, §3.10.7.4).
    assert!(server.state == "closed" && matches!(client.state, "time-wait" | "closed"), "{told}");
    assert_eq!(client.in_flight, Bytes::ZERO, "{told}");
}

#[test]
fn a_file_without_loss_is_sent_once_and_closes() {
    for size in [0, 1, 1448, 1449, 100_000, 3_000_000] {
        let (client, server) = configs();
        let mut world =
            World::upload(client, server, Source::File(Bytes(size)), links("10 Mb/s", 10, 1 << 20));
        complete(&mut world, size, SECOND(60), &format!("{size} bytes"));
        assert_eq!(world.client.stats().bytes_sent, size);
        assert_eq!(world.server.stats().duplicate_segments_received, 0);
    }
}

#[test]
fn a_download_and_a_transfer_in_both_directions_complete() {
    let (client, server) = configs();
    let file = Source::File(Bytes(500_000));
    let mut world = World::new(
        Endpoint::connect(client.clone(), Source::Nothing),
        Endpoint::listen(server.clone(), file),
        links("10 Mb/s", 10, 50_000),
    );
    world.run(SECOND(30));
    assert_eq!((world.completed.len(), world.client.stats().bytes_received), (1, 500_000));
    assert_eq!((world.server.snapshot().state, world.client.snapshot().state), ("time-wait", "closed"));

    let lossy = links("10 Mb/s", 10, 50_000);
    let lossy = lossy.map(|link| link.lossy(0.02, 4, "both"));
    let mut world = World::new(Endpoint::connect(client, file), Endpoint::listen(server, file), lossy);
    world.run(SECOND(120));
    assert_eq!(world.completed.len(), 2);
    assert_eq!(
        (world.client.stats().bytes_received, world.server.stats().bytes_received),
        (500_000, 500_000)
    );
    assert!(!world.client.snapshot().established && !world.server.snapshot().established);
}

#[test]
fn sequence_numbers_wrap() {
    for back in [1, 2, 700, 1448, 100_000, (1 << 31) - 1] {
        let (client, server) = configs();
        let client = EndpointConfig { isn: SeqNumber(0u32.wrapping_sub(back)), ..client };
        let server = EndpointConfig { isn: SeqNumber(u32::MAX), ..server };
        let lossy = links("10 Mb/s", 10, 50_000).map(|link| link.lossy(0.01, 8, "wrap"));
        let mut world = World::upload(client, server, Source::File(Bytes(400_000)), lossy);
        complete(&mut world, 400_000, SECOND(120), &format!("{back} before the wrap"));
    }
}

/// Loses one packet of a kind; the transfer completes by `end`.
fn loses_once(
    label: &str,
    direction: usize,
    mut is_it: impl FnMut(u64, &paceline_net::Packet) -> bool + 'static,
    end: Instant,
) -> World {
    let (client, server) = configs();
    let mut ways = links("10 Mb/s", 10, 1 << 20);
    let mut done = false;
    ways[direction].lose = Box::new(move |number, packet| {
        let lost = !done && is_it(number, packet);
        done |= lost;
        lost
    });
    let mut world = World::upload(client, server, Source::File(Bytes(50_000)), ways);
    complete(&mut world, 50_000, SECOND(60), label);
    assert_eq!(world.links[direction].dropped, 1, "{label}");
    assert!(world.completed[0] <= end, "{label}: {:?}", world.completed);
    world
}

fn flags(packet: &paceline_net::Packet, flag: TcpFlags) -> bool {
    packet.tcp_header().is_some_and(|tcp| tcp.flags.contains(flag))
}

#[test]
fn a_lost_segment_of_the_handshake_is_repaired_after_a_second() {
    let syn = loses_once("SYN", 0, |number, _| number == 1, Instant::from_millis(1200));
    assert!(syn.completed[0] >= SECOND(1));
    let syn_ack = loses_once("SYN-ACK", 1, |number, _| number == 1, Instant::from_millis(1200));
    assert!(syn_ack.completed[0] >= SECOND(1));
    // The data after it carries the same acknowledgment: the loss of the handshake's ACK costs no time.
    loses_once("ACK", 0, |number, _| number == 2, Instant::from_millis(300));
}

#[test]
fn a_download_survives_the_loss_of_the_handshakes_ack() {
    let (client, server) = configs();
    let mut ways = links("10 Mb/s", 10, 1 << 20);
    ways[0].lose = Box::new(|number, _| number == 2);
    let mut world = World::new(
        Endpoint::connect(client, Source::Nothing),
        Endpoint::listen(server, Source::File(Bytes(50_000))),
        ways,
    );
    world.run(SECOND(10));
    assert_eq!((world.completed.len(), world.client.stats().bytes_received), (1, 50_000));
}

#[test]
fn a_lost_segment_in_the_middle_is_repaired_without_a_timeout() {
    let world = loses_once(
        "middle",
        0,
        |_, packet| packet.tcp_header().is_some_and(|tcp| tcp.seq == SeqNumber(2 + 8 * 1448)),
        Instant::from_millis(300),
    );
    let stats = world.client.stats();
    assert_eq!((stats.timeouts, stats.fast_recoveries, stats.retransmitted_segments), (0, 1, 1));
}

#[test]
fn a_lost_last_segment_or_fin_is_repaired_by_a_tail_loss_probe() {
    // The last data segment carries FIN. When the others are acknowledged, it is the only one: 2 SRTT and 200
    // ms.
    let world =
        loses_once("last segment", 0, |_, packet| flags(packet, TcpFlags::FIN), Instant::from_millis(400));
    let stats = world.client.stats();
    assert_eq!((stats.timeouts, stats.tail_loss_probes, stats.fast_recoveries), (0, 1, 0), "{stats:?}");
    // The server's FIN is the only segment: the probe leaves at the time of the timeout.
    let world =
        loses_once("FIN of the peer", 1, |_, packet| flags(packet, TcpFlags::FIN), Instant::from_millis(600));
    assert_eq!(world.server.stats().tail_loss_probes, 1);
    loses_once(
        "last ACK",
        0,
        |_, packet| packet.is_pure_ack() && packet.tcp_header().is_some_and(|tcp| tcp.seq.0 > 50_000),
        Instant::from_millis(300),
    );
}

#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let (client, server) = configs();
    let mut ways = links("10 Mb/s", 20, 1 << 20);
    let mut seen = 0;
    ways[0].lose = Box::new(move |_, packet| {
        let victim = packet.tcp_header().is_some_and(|tcp| tcp.seq == SeqNumber(2 + 50 * 1448));
        seen += u64::from(victim);
        victim && seen <= 2
    });
    let mut world = World::upload(client, server, Source::File(Bytes(1_000_000)), ways);
    complete(&mut world, 1_000_000, SECOND(20), "retransmission lost");
    let stats = world.client.stats();
    assert_eq!((stats.timeouts, stats.retransmitted_segments), (0, 2), "{stats:?}");
}

#[test]
fn a_closed_window_is_probed_and_the_transfer_goes_on_when_it_opens() {
    let (client, server) = configs();
    let mut ways = links("10 Mb/s", 10, 1 << 20);
    // From 100 ms to 5 s every acknowledgment has a window of zero.
    ways[1].alter = Box::new(|now, packet| {
        if let paceline_net::Transport::Tcp(tcp) = &mut packet.transport
            && now > Instant::from_millis(100)
            && now < SECOND(5)
        {
            tcp.window = 0;
        }
    });
    let mut world = World::upload(client, server, Source::File(Bytes(1_000_000)), ways);
    world.run(SECOND(4));
    let (stats, sent) = (*world.client.stats(), world.client.stats().bytes_sent);
    assert!(stats.window_probes_sent >= 3 && stats.window_probes_sent <= 6, "{stats:?}");
    assert_eq!((stats.timeouts, stats.bytes_acked), (0, sent));
    complete(&mut world, 1_000_000, SECOND(30), "zero window");
    // The interval of probes doubles: the first one after 5 s may leave up to 5 s later.
    assert!(world.completed[0] < SECOND(11), "{:?}", world.completed);
}

#[test]
fn data_is_transferred_with_a_window_below_a_segment() {
    for buffer in [1000, 1448, 2000, 3000] {
        let (client, server) = configs();
        let server = EndpointConfig { receive_buffer: Bytes(buffer), window_scale: false, ..server };
        let mut world =
            World::upload(client, server, Source::File(Bytes(30_000)), links("10 Mb/s", 5, 1 << 20));
        complete(&mut world, 30_000, SECOND(60), &format!("window of {buffer}"));
    }
}

#[test]
fn options_that_one_side_lacks_are_not_used() {
    for lacking in 0..4 {
        let (client, server) = configs();
        let server = EndpointConfig {
            timestamps: lacking != 0,
            sack: lacking != 1,
            window_scale: lacking != 2,
            delayed_ack: DelayedAck { segments: if lacking == 3 { 1 } else { 2 }, ..server.delayed_ack },
            ..server
        };
        let lossy = links("10 Mb/s", 10, 30_000).map(|link| link.lossy(0.01, 3, "options"));
        let mut world = World::upload(client, server, Source::File(Bytes(2_000_000)), lossy);
        complete(&mut world, 2_000_000, SECOND(120), &format!("without option {lacking}"));
    }
}

#[test]
fn a_delay_spike_causes_a_timeout_that_is_undone() {
    let (client, server) = configs();
    let mut ways = links("10 Mb/s", 10, 1 << 20);
    // Everything sent between 1 s and 1.6 s arrives after 1.6 s, in order.
    ways[0].extra =
        Box::new(
            |_, now| {
                if now >= SECOND(1) { Instant::from_millis(1600).since(now) } else { Duration::ZERO }
            },
        );
    let mut world = World::upload(client, server, Source::File(Bytes(4_000_000)), ways);
    complete(&mut world, 4_000_000, SECOND(30), "delay spike");
    let stats = world.client.stats();
    assert!(stats.timeouts >= 1 && stats.undone_reductions == 1, "{stats:?}");
}

/// A random link, with reordering.
fn random_link(stream: &mut Stream, seed: u64, name: &str) -> Direction {
    let rate = paceline_net::Rate(10u64.pow(5 + stream.below(4) as u32) * (1 + stream.below(9)));
    let delay = Duration::from_micros(stream.below(100_000));
    let queue = Bytes(3_000 + stream.below(300_000));
    let loss = if stream.chance(0.5) { stream.uniform_in(0.0, 0.05) } else { 0.0 };
    let mut link = Direction::new(rate, delay, queue).lossy(loss, seed, name);
    if stream.chance(0.3) {
        let mut jitter = Stream::new(seed, "jitter");
        let span = stream.below(20_000);
        link.extra = Box::new(move |_, _| Duration::from_micros(jitter.below(span + 1)));
    }
    link
}

#[test]
fn files_complete_over_random_links() {
    for seed in 0..150 {
        println!("seed {seed}"); // shown on failure
        let mut stream = Stream::new(seed, "swarm");
        let ways = [random_link(&mut stream, seed, "up"), random_link(&mut stream, seed, "down")];
        let slowest = ways[0].rate.0.min(ways[1].rate.0);
        let size = stream.below(slowest.min(4_000_000));
        let variant = Variant::ALL[stream.below(Variant::ALL.len() as u64) as usize];
        let sack = stream.chance(0.8);
        let timestamps = stream.chance(0.8);
        let (client, server) = with_variant(variant);
        let isn = SeqNumber(stream.next_u64() as u32);
        let client = EndpointConfig { sack, timestamps, isn, ..client };
        let server = EndpointConfig { autotune: stream.chance(0.5), ..server };
        let mut world = World::upload(client, server, Source::File(Bytes(size)), ways);
        // RFC 7323 §5.3 drops a segment that was overtaken by a later retransmission of a segment before it.
        world.exact = false;
        complete(&mut world, size, SECOND(3000), &format!("seed {seed}"));
        assert!(
            world.steps < 60_000 + 20 * size / 1448,
            "seed {seed}: {} steps for {size} bytes",
            world.steps
        );
    }
}

#[test]
fn the_same_run_twice_gives_the_same_counts() {
    let run = || {
        let (client, server) = configs();
        let lossy = links("20 Mb/s", 15, 60_000).map(|link| link.lossy(0.003, 11, "twice"));
        let mut world = World::upload(client, server, Source::Bulk, lossy);
        world.run(SECOND(10));
        (*world.client.stats(), *world.server.stats(), world.client.snapshot(), world.steps)
    };
    assert_eq!(run(), run());
}

#[test]
fn under_periodic_loss_the_window_follows_the_formula() {
    // One loss in 1000 segments, RTT 100 ms, the link is no limit. Reno by Mathis et al. 1997: W = sqrt(3 /
    // (2 b p)), b = 1 since growth counts bytes; CUBIC by RFC 9438 §5.1: W = 1.054 (RTT / p)^(3/4), at least
    // that of Reno.
    let p = 1e-3;
    let reno = (1.5f64 / p).sqrt();
    let quarter = (0.1f64 / p).sqrt().sqrt();
    let cubic = 1.054 * quarter * quarter * quarter;
    for (variant, law) in [(Variant::Reno, reno), (Variant::NewReno, reno), (Variant::Cubic, cubic.max(reno))]
    {
        let (client, server) = with_variant(variant);
        let server = EndpointConfig { autotune: false, ..server };
        let mut ways = links("1 Gb/s", 50, 10 << 20);
        let mut count = 0u64;
        ways[0].lose = Box::new(move |_, packet| {
            count += u64::from(has_payload(packet));
            has_payload(packet) && count.is_multiple_of(1000)
        });
        let mut world = World::upload(client, server, Source::Bulk, ways);
        world.run(SECOND(60));
        let before = world.client.stats().bytes_acked;
        world.run(SECOND(360));
        let window = (world.client.stats().bytes_acked - before) as f64 / 1448.0 / 3000.0;
        let ratio = window / law;
        assert!((0.8..1.25).contains(&ratio), "{variant}: mean window {window:.1}, law {law:.1}");
    }
}
