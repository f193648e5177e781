//! Mechanisms end to end over an emulated link, each compared with a connection without it.

use crate::link::{Direction, World, configs, has_payload, links};
use paceline_net::{Bytes, Duration, Instant, Rate, TcpFlags, Transport};
use paceline_tcp::{
    DelayedAck, EcnMode, Endpoint, EndpointConfig, Keepalive, LossRecovery, Nagle, Pacing, Profile, PrrMode,
    Source, StretchAck, Variant,
};
use std::cell::Cell;
use std::rc::Rc;

const MS: fn(u64) -> Instant = Instant::from_millis;
const SECOND: fn(u64) -> Instant = |s| Instant::from_millis(1000 * s);
const SPAN: fn(u64) -> Duration = Duration::from_millis;

type Configs = (EndpointConfig, EndpointConfig);

fn both(change: impl Fn(&mut EndpointConfig)) -> Configs {
    let (mut client, mut server) = configs();
    change(&mut client);
    change(&mut server);
    (client, server)
}
/// Uploads a file; checks that all of it arrives.
fn upload((client, server): Configs, size: u64, ways: [Direction; 2], label: &str) -> World {
    // An ACK that was held below TCP, or that acknowledges the segments before a change of marks (RFC 8257
    // §3.2), does not acknowledge everything received.
    let exact = server.stretch_ack.is_none() && !matches!(server.variant, Variant::Dctcp);
    let mut world = World::upload(client, server, Source::File(Bytes(size)), ways);
    world.exact = exact;
    world.run(SECOND(600));
    let stats = (world.client.stats(), world.server.stats());
    assert_eq!(world.completed.len(), 1, "{label}: {stats:?}");
    assert_eq!((world.observed_at_server(), stats.1.bytes_received), (size, size), "{label}: {stats:?}");
    world
}
/// Loses data segments by their number, from 1.
fn losing(mut ways: [Direction; 2], lost: &'static [u64]) -> [Direction; 2] {
    let mut count = 0;
    ways[0].lose = Box::new(move |_, packet| {
        count += u64::from(has_payload(packet));
        has_payload(packet) && lost.contains(&count)
    });
    ways
}

#[test]
fn every_loss_recovery_repairs_every_pattern_of_losses() {
    let styles = [
        LossRecovery::Tahoe,
        LossRecovery::Reno,
        LossRecovery::NewReno,
        LossRecovery::Sack,
        LossRecovery::Rack,
    ];
    for style in styles {
        for prr in [PrrMode::Off, PrrMode::Rfc6937Crb, PrrMode::Rfc6937Ssrb, PrrMode::Rfc9937] {
            for lost in [&[60][..], &[60, 61, 62], &[60, 65, 70, 75, 80], &[60, 90, 120], &[1], &[345]] {
                let lost: &'static [u64] = lost.to_vec().leak();
                let configs = both(|config| (config.loss_recovery, config.prr) = (style, prr));
                let label = format!("{style:?} {prr:?} {lost:?}");
                let world = upload(configs, 500_000, losing(links("20 Mb/s", 20, 1 << 20), lost), &label);
                let stats = world.client.stats();
                assert!(stats.retransmitted_segments >= lost.len() as u64, "{label}: {stats:?}");
                // RACK sends exactly the lost segments again, without a timeout.
                if style == LossRecovery::Rack {
                    assert_eq!(stats.retransmitted_segments, lost.len() as u64, "{label}: {stats:?}");
                    assert_eq!(stats.timeouts, 0, "{label}: {stats:?}");
                }
            }
        }
    }
}

#[test]
fn loss_recoveries_differ_as_in_fall_and_floyd_1996() {
    // Three losses in one window (Fall and Floyd 1996): Tahoe restarts, Reno reduces repeatedly or times out,
    // NewReno repairs one hole per round trip in one recovery, SACK all holes in one round trip.
    let run = |style| {
        let configs = both(|config| {
            config.loss_recovery = style;
            config.variant = Variant::Reno;
            config.prr = PrrMode::Off;
            config.sack = style == LossRecovery::Sack;
            (config.timestamps, config.undo) = (false, false); // as in the paper
        });
        let ways = losing(links("20 Mb/s", 20, 1 << 20), &[60, 65, 70]);
        let world = upload(configs, 300_000, ways, &format!("{style:?}"));
        (*world.client.stats(), world.completed[0])
    };
    let (tahoe, _) = run(LossRecovery::Tahoe);
    assert_eq!((tahoe.fast_recoveries, tahoe.timeouts), (1, 0), "{tahoe:?}");
    assert!(tahoe.retransmitted_segments > 3, "it sends segments again that had arrived: {tahoe:?}");
    let (reno, reno_end) = run(LossRecovery::Reno);
    assert!(reno.fast_recoveries > 1 || reno.timeouts > 0, "{reno:?}");
    let (newreno, newreno_end) = run(LossRecovery::NewReno);
    assert_eq!((newreno.fast_recoveries, newreno.timeouts), (1, 0), "{newreno:?}");
    let (sack, sack_end) = run(LossRecovery::Sack);
    assert_eq!((sack.fast_recoveries, sack.retransmitted_segments), (1, 3), "{sack:?}");
    assert!(sack_end < newreno_end && newreno_end <= reno_end, "{sack_end:?} {newreno_end:?} {reno_end:?}");
}

#[test]
fn after_the_first_reordering_rack_has_no_spurious_recovery_and_dup_thresh_has_many() {
    let run = |style| {
        let mut ways = links("20 Mb/s", 20, 1 << 20);
        // Each fiftieth packet is delayed by 4 ms, the time of six segments.
        ways[0].extra =
            Box::new(|number, _| if number.is_multiple_of(50) { SPAN(4) } else { Duration::ZERO });
        let configs = both(|config| {
            config.loss_recovery = style;
            config.undo = false;
        });
        *upload(configs, 5_000_000, ways, &format!("{style:?}")).client.stats()
    };
    let (rack, sack) = (run(LossRecovery::Rack), run(LossRecovery::Sack));
    assert!(rack.fast_recoveries <= 2, "{rack:?}");
    assert!(sack.fast_recoveries >= 20, "{sack:?}");
}

#[test]
fn frto_undoes_a_spurious_timeout_without_timestamps() {
    for sack in [true, false] {
        let run = |frto| {
            let mut ways = links("10 Mb/s", 10, 1 << 20);
            ways[0].extra = Box::new(|_, now| {
                let held = now >= SECOND(1) && now < MS(1600);
                if held { MS(1600).since(now) } else { Duration::ZERO }
            });
            let configs = both(|config| {
                config.timestamps = false;
                config.undo = false;
                config.tail_loss_probe = false;
                (config.frto, config.sack) = (frto, sack);
            });
            *upload(configs, 4_000_000, ways, "spike").client.stats()
        };
        let (with, without) = (run(true), run(false));
        assert_eq!((with.timeouts >= 1, with.spurious_timeouts), (true, 1), "SACK {sack}: {with:?}");
        assert_eq!(without.spurious_timeouts, 0);
        assert!(with.retransmitted_segments < without.retransmitted_segments, "{with:?} {without:?}");
    }
}

#[test]
fn dsack_alone_undoes_a_spurious_recovery() {
    let mut ways = links("20 Mb/s", 20, 1 << 20);
    // One packet is delayed by 15 ms: it is sent again, and both arrive.
    ways[0].extra = Box::new(|number, _| if number == 100 { SPAN(15) } else { Duration::ZERO });
    let configs = both(|config| {
        config.timestamps = false;
        config.loss_recovery = LossRecovery::Sack;
    });
    let world = upload(configs, 2_000_000, ways, "late");
    let stats = world.client.stats();
    assert_eq!((stats.fast_recoveries, stats.undone_reductions), (1, 1), "{stats:?}");
    assert_eq!(world.server.stats().duplicate_segments_received, 1);
}

#[test]
fn an_unreachable_peer_ends_the_connection_after_the_time_of_linux() {
    let mut ways = links("10 Mb/s", 10, 1 << 20);
    ways[0].lose = Box::new(|number, _| number > 50);
    let (client, server) = configs();
    let mut world = World::upload(client, server, Source::Bulk, ways);
    world.observing = false;
    world.run(SECOND(3000));
    let (at, side) = world.given_up[0];
    // At the first expiry 924.6 s or more after the first retransmission.
    assert!(side == 0 && at > SECOND(924) && at < SECOND(1060), "{:?}", world.given_up);
    // Fifteen retransmissions (tcp_retries2); the sixteenth expiry ends the connection.
    assert_eq!((world.client.snapshot().state, world.client.stats().timeouts), ("closed", 15));
    // An unanswered SYN: five intervals of 1 s, then doubling; tcp_syn_retries + tcp_syn_linear_timeouts
    // retransmissions.
    let mut ways = links("10 Mb/s", 10, 1 << 20);
    ways[0].lose = Box::new(|_, _| true);
    let (client, server) = configs();
    let mut world = World::upload(client, server, Source::Bulk, ways);
    world.run(SECOND(300));
    assert_eq!((world.given_up.as_slice(), world.links[0].dropped), (&[(SECOND(131), 0)][..], 11));
}

#[test]
fn keepalive_ends_a_connection_only_if_the_peer_does_not_answer() {
    let rule = Keepalive { idle: SPAN(1000), interval: SPAN(200), probes: 3 };
    for unreachable in [false, true] {
        let mut ways = links("10 Mb/s", 10, 1 << 20);
        // Only the SYN-ACK and the ACK of the first piece arrive.
        ways[1].lose = Box::new(move |number, _| unreachable && number > 2);
        let (client, server) = configs();
        let client = EndpointConfig { keepalive: Some(rule), ..client };
        // A piece, and another one a minute later.
        let source = Source::Chunks { size: Bytes(100), interval: Duration::from_secs(60), count: 2 };
        let mut world = World::upload(client, server, source, ways);
        world.observing = !unreachable;
        world.run(SECOND(50));
        let probes = world.client.stats().keepalive_probes_sent;
        if unreachable {
            assert_eq!((probes, world.given_up.len(), world.client.snapshot().state), (3, 1, "closed"));
            // The last ACK arrived at about 20 ms: an idle second, and 200 ms for each of the three probes.
            let at = world.given_up[0].0;
            assert!(at > MS(1600) && at < MS(1650), "{at:?}");
        } else {
            assert!((45..=50).contains(&probes) && world.given_up.is_empty(), "{probes}");
        }
    }
}

#[test]
fn a_slow_reader_closes_the_window_and_bounds_the_transfer() {
    let (client, server) = configs();
    let server = EndpointConfig {
        read_rate: Some(Rate(800_000)), // 100 kB/s
        receive_buffer: Bytes(50_000),
        autotune: false,
        ..server
    };
    let world = upload((client, server), 500_000, links("10 Mb/s", 10, 1 << 20), "slow reader");
    // 500 kB at 100 kB/s; the last 50 kB are in the receive buffer.
    let end = world.completed[0];
    assert!(end > MS(4400) && end < MS(5300), "{end:?}");
    assert_eq!(world.client.stats().timeouts, 0, "{:?}", world.client.stats());
    assert_eq!(world.server.stats().bytes_read, 500_000);
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let (client, server) = configs();
    let slow = Rate(8 * 536); // a segment each second or two
    let server = EndpointConfig {
        read_rate: Some(slow),
        receive_buffer: Bytes(1448),
        window_scale: false,
        autotune: false,
        ..server
    };
    let mut world = World::upload(client, server, Source::File(Bytes(10_000)), links("10 Mb/s", 10, 1 << 20));
    world.run(SECOND(60));
    let stats = world.client.stats();
    assert!(stats.window_probes_sent > 0 && world.completed.len() == 1, "{stats:?}");
    assert_eq!(world.server.stats().bytes_read, 10_000);
}

#[test]
fn nagle_merges_small_pieces_while_others_are_outstanding() {
    // A hundred pieces of 100 bytes, one each millisecond, over a round trip of 100 ms.
    let run = |nagle| {
        let configs = both(|config| config.nagle = nagle);
        let source = Source::Chunks { size: Bytes(100), interval: SPAN(1), count: 100 };
        let mut world = World::upload(configs.0, configs.1, source, links("10 Mb/s", 50, 1 << 20));
        world.run(SECOND(10));
        assert_eq!((world.completed.len(), world.server.stats().bytes_received), (1, 10_000));
        world.client.stats().segments_sent
    };
    assert_eq!(run(Nagle::Off), 100);
    // One piece alone, then full segments, and the rest when everything is acknowledged.
    assert!((8..=10).contains(&run(Nagle::Rfc896)), "{}", run(Nagle::Rfc896));
    // A small segment waits only for another small one.
    assert!((8..=10).contains(&run(Nagle::Minshall)), "{}", run(Nagle::Minshall));
}

/// Marks each two hundredth ECN-capable segment, from number `from` on.
fn marking(rate: &str, delay_ms: u64, from: u64) -> [Direction; 2] {
    let mut ways = links(rate, delay_ms, 1 << 20);
    let mut count = 0;
    ways[0].alter = Box::new(move |_, packet| {
        let capable = has_payload(packet) && packet.ip.ecn() != 0;
        count += u64::from(capable);
        if capable && count >= from && (count - from).is_multiple_of(200) {
            packet.set_congestion_experienced();
        }
    });
    ways
}

#[test]
fn marks_reduce_the_window_once_per_window_without_retransmissions() {
    let run = |modes: [EcnMode; 2], variant| {
        let (client, server) = configs();
        let client = EndpointConfig { ecn: modes[0], variant, ..client };
        let server = EndpointConfig { ecn: modes[1], variant, ..server };
        let world = upload((client, server), 3_000_000, marking("20 Mb/s", 20, 50), "marks");
        (*world.client.stats(), *world.server.stats())
    };
    let (client, server) = run([EcnMode::On, EcnMode::Passive], Variant::Cubic);
    assert!(server.ce_received >= 5 && client.retransmitted_segments == 0, "{client:?} {server:?}");
    assert!(
        client.ecn_reductions > 1 && client.ecn_reductions <= server.ce_received,
        "{client:?} {server:?}"
    );
    for modes in [[EcnMode::Passive, EcnMode::Passive], [EcnMode::On, EcnMode::Off]] {
        let (client, server) = run(modes, Variant::Cubic);
        assert_eq!((client.ecn_reductions, server.ce_received), (0, 0));
    }
    // DCTCP requests ECN in every mode, and its peer does, too.
    let (client, server) = run([EcnMode::Off, EcnMode::Off], Variant::Dctcp);
    assert!(client.ecn_reductions > 1 && server.ce_received > 5, "{client:?} {server:?}");
}

#[test]
fn the_echo_of_dctcp_covers_exactly_the_marked_bytes() {
    let (client, server) = both(|config| config.variant = Variant::Dctcp);
    let (mut ways, marked, echoed) =
        (links("20 Mb/s", 20, 1 << 20), Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let count = marked.clone();
    // Runs of 7 marked and 13 unmarked segments.
    let mut number = 0;
    ways[0].alter = Box::new(move |_, packet| {
        if has_payload(packet) {
            number += 1;
            if number % 20 < 7 {
                packet.set_congestion_experienced();
                count.set(count.get() + packet.tcp_header().map_or(0, |tcp| u64::from(tcp.payload_len)));
            }
        }
    });
    let (count, mut last) = (echoed.clone(), None);
    ways[1].alter = Box::new(move |_, packet| {
        let Transport::Tcp(tcp) = &packet.transport else { return };
        let advance = last.map_or(0, |last| tcp.ack.distance(last).max(0) as u64);
        last = Some(tcp.ack);
        if tcp.flags.contains(TcpFlags::ECE) && !tcp.flags.contains(TcpFlags::SYN) {
            count.set(count.get() + advance);
        }
    });
    upload((client, server), 1_000_000, ways, "DCTCP");
    let (marked, echoed) = (marked.get(), echoed.get());
    assert!(marked > 300_000 && echoed.abs_diff(marked) <= 1448, "{echoed} of {marked} bytes echoed");
}

#[test]
fn stretch_acks_reduce_the_number_of_acks_without_causing_timeouts() {
    let run = |segments, hold_duplicates, lost| {
        let (client, server) = configs();
        let rule = StretchAck { segments, timeout: SPAN(10), hold_duplicates };
        let server = EndpointConfig { stretch_ack: (segments > 1).then_some(rule), ..server };
        let world =
            upload((client, server), 2_000_000, losing(links("20 Mb/s", 20, 1 << 20), lost), "stretch");
        let seen = world.client.stats().segments_received;
        (seen, *world.client.stats(), *world.server.stats())
    };
    let (plain, ..) = run(1, false, &[]);
    let (few, _, server) = run(16, false, &[]);
    assert!(few < plain / 3, "{few} of {plain}");
    // The client received the SYN-ACK and the server's FIN, too.
    assert_eq!(server.pure_acks_sent, server.acks_stretched + few - 2, "each ACK left or was merged");
    // A loss is still repaired without a timeout, either way.
    for hold in [false, true] {
        let (_, client, _) = run(16, hold, &[500]);
        assert_eq!((client.timeouts, client.retransmitted_segments), (0, 1), "{hold}: {client:?}");
    }
}

#[test]
fn pacing_avoids_the_losses_of_bursts() {
    let run = |pacing| {
        let (client, server) = configs();
        let client = EndpointConfig { pacing, ..client };
        // A queue of twenty packets: bursts overflow it.
        let world = upload((client, server), 2_000_000, links("20 Mb/s", 50, 30_000), "pacing");
        world.links[0].dropped
    };
    let (bursts, paced) = (run(Pacing::None), run(Pacing::External(Rate(15_000_000))));
    assert!(paced == 0 && bursts > 0, "{paced} {bursts}");
}

#[test]
fn linux_paces_all_but_the_first_ten_segments() {
    // Counts segments that leave in the same instant as the one before, without the first ten. The number of
    // losses is no measure: a paced slow start grows further before its first loss, and then loses more
    // (Aggarwal et al. 2000).
    let run = |pacing| {
        let (client, server) = configs();
        let (mut ways, together) = (links("20 Mb/s", 50, 1 << 20), Rc::new(Cell::new(0)));
        let (mut number, mut last, count) = (0, None, together.clone());
        ways[0].alter = Box::new(move |now, packet| {
            if has_payload(packet) {
                number += 1;
                count.set(count.get() + u32::from(number > 10 && last == Some(now)));
                last = Some(now);
            }
        });
        upload((EndpointConfig { pacing, ..client }, server), 2_000_000, ways, "pacing");
        together.get()
    };
    // Without pacing, each ACK of two segments releases two, and four in slow start.
    let (bursts, paced) = (run(Pacing::None), run(Pacing::LinuxPerSegment));
    assert!(paced == 0 && bursts > 500, "{paced} {bursts}");
    // With segmentation offload, at most every second segment leaves alone.
    assert!(run(Pacing::Linux) > 500);
}

#[test]
fn an_idle_time_reduces_the_window_if_idle_restart_is_on() {
    let run = |idle_restart| {
        let configs = both(|config| config.idle_restart = idle_restart);
        // 300 kB every ten seconds.
        let source = Source::Chunks { size: Bytes(300_000), interval: Duration::from_secs(10), count: 3 };
        let mut world = World::upload(configs.0, configs.1, source, links("50 Mb/s", 20, 1 << 20));
        world.run(MS(9_900));
        let before = world.client.snapshot().cwnd;
        world.run(MS(10_060)); // the second piece has begun
        (before, world.client.snapshot().cwnd, world.client.stats().bytes_acked)
    };
    let (before, after, _) = run(false);
    assert!(after >= before);
    let (before, after, _) = run(true);
    assert!(after < before && after.0 >= 10 * 1448, "{before:?} {after:?}");
}

#[test]
fn sack_compression_merges_duplicate_acks_without_delaying_repairs() {
    let run = |on: bool| {
        let configs = both(|config| {
            config.sack_compression = on.then(Default::default);
        });
        // 0.12 ms per segment: several arrive within a millisecond.
        let world =
            upload(configs, 5_000_000, losing(links("100 Mb/s", 20, 1 << 20), &[500, 1500]), "compressed");
        (*world.client.stats(), *world.server.stats())
    };
    let ((with, merged), (without, plain)) = (run(true), run(false));
    assert!(merged.acks_compressed > 50 && plain.acks_compressed == 0, "{merged:?}");
    assert!(merged.pure_acks_sent < plain.pure_acks_sent);
    assert_eq!((with.timeouts, with.retransmitted_segments), (0, 2), "{with:?}");
    assert_eq!(without.retransmitted_segments, 2);
}

#[test]
fn profiles_complete_and_differ() {
    let mut ends = Vec::new();
    for profile in Profile::ALL {
        let configs = both(|config| profile.apply(config));
        let lossy = links("10 Mb/s", 20, 60_000).map(|link| link.lossy(0.005, 5, "profiles"));
        let world = upload(configs, 1_000_000, lossy, &format!("{profile:?}"));
        ends.push(world.completed[0]);
    }
    // A window of 7504 bytes and a round trip of 40 ms allow 1.5 Mb/s: 5.3 s.
    assert!(ends[2] > MS(5300), "{ends:?}");
    assert!(ends[0] < ends[2] && ends[0] < ends[4], "{ends:?}");
}

#[test]
fn an_endpoint_takes_less_than_four_kilobytes() {
    let size = size_of::<Endpoint>();
    println!("{size} bytes");
    assert!(size < 4096, "{size} bytes");
}

#[test]
fn adaptive_acks_are_fewer_for_interactive_traffic() {
    // Each side answers the other's pieces, and the answers carry the acknowledgments.
    let run = |adaptive| {
        let configs = both(|config| {
            config.delayed_ack = DelayedAck { adaptive, ..DelayedAck::default() };
        });
        let source = Source::Chunks { size: Bytes(100), interval: SPAN(30), count: 200 };
        let mut world = World::new(
            Endpoint::connect(configs.0, source),
            Endpoint::listen(configs.1, source),
            links("10 Mb/s", 5, 1 << 20),
        );
        world.run(SECOND(20));
        assert_eq!(world.completed.len(), 2);
        world.client.stats().pure_acks_sent + world.server.stats().pure_acks_sent
    };
    assert!(run(true) <= run(false), "{} {}", run(true), run(false));
}
