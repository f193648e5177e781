//! The congestion controls over a link of 20 Mb/s and 40 ms, whose bandwidth-delay product (BDP) is 100 KB:
//! goodput, queue, random loss, fairness.

use crate::link::{Direction, World, configs, links, shared::Shared};
use paceline_net::{Bytes, Instant, Rate};
use paceline_tcp::{EndpointConfig, SlowStartExit, Source, Variant};
use std::cell::RefCell;
use std::rc::Rc;

const SECOND: fn(u64) -> Instant = |s| Instant::from_millis(1000 * s);
const RATE: Rate = Rate(20_000_000);
/// Payload bit/s that the link carries.
const GOODPUT: f64 = 20e6 * 1448.0 / 1500.0;

/// The bottleneck's queue, computed independently of the link: sums of the bytes that arriving packets find.
#[derive(Default)]
struct Queue {
    busy_until: Instant,
    from: Instant,
    sum: u64,
    packets: u64,
    most: u64,
}

impl Queue {
    fn on_packet(&mut self, now: Instant, len: u32) {
        let found = Rate(RATE.0 / 8).0 * self.busy_until.since(now).as_nanos() / 1_000_000_000;
        self.busy_until = self.busy_until.max(now) + RATE.time_to_send(Bytes(u64::from(len)));
        if now >= self.from {
            self.sum += found;
            self.packets += 1;
            self.most = self.most.max(found);
        }
    }
    fn mean(&self) -> f64 {
        self.sum as f64 / self.packets as f64
    }
}

/// An upload, and its queue, which is right if no packet is lost before it.
fn upload(config: EndpointConfig, queue: u64, loss: f64, seed: u64) -> (World, Rc<RefCell<Queue>>) {
    let (_, server) = configs();
    let account = Rc::new(RefCell::new(Queue::default()));
    let [up, down] = links("20 Mb/s", 20, queue);
    let mut up = up.lossy(loss, seed, "random loss");
    let at_link = Rc::clone(&account);
    up.alter = Box::new(move |now, packet| at_link.borrow_mut().on_packet(now, packet.len));
    (World::upload(config, server, Source::Bulk, [up, down]), account)
}
fn with(variant: Variant) -> EndpointConfig {
    EndpointConfig { variant, ..configs().0 }
}
/// Goodput between two times as a share of the link's capacity.
fn share(world: &mut World, from: Instant, to: Instant) -> f64 {
    world.run(from);
    let before = world.server.stats().bytes_received;
    world.run(to);
    let bytes = world.server.stats().bytes_received - before;
    bytes as f64 * 8.0 / to.since(from).as_secs_f64() / GOODPUT
}
/// The same over three seeds of random loss, averaged.
fn share_with_loss(variant: Variant, loss: f64) -> f64 {
    let shares = (1..=3).map(|seed| {
        let (mut world, _) = upload(with(variant), 150_000, loss, seed);
        share(&mut world, SECOND(5), SECOND(65))
    });
    shares.sum::<f64>() / 3.0
}

#[test]
fn every_control_fills_a_link_with_a_queue_of_a_hundred_packets() {
    for variant in Variant::ALL {
        let (mut world, _) = upload(with(variant), 150_000, 0.0, 1);
        let used = share(&mut world, SECOND(5), SECOND(65));
        assert!(used >= 0.95, "{variant}: {used:.3} {:?}", world.client.stats());
        assert_eq!(world.client.stats().timeouts, 0, "{variant}");
    }
}

#[test]
fn bbr_keeps_the_queue_of_a_deep_buffer_short_and_cubic_fills_it() {
    // A buffer of ten BDPs. The mean queue in bytes, after the start.
    let mean = |variant| {
        let (mut world, queue) = upload(with(variant), 1_000_000, 0.0, 1);
        queue.borrow_mut().from = SECOND(10);
        let used = share(&mut world, SECOND(10), SECOND(60));
        assert!(used > 0.95, "{variant}: {used:.3}");
        queue.borrow().mean()
    };
    for variant in [Variant::Bbr, Variant::Bbr3] {
        let queue = mean(variant);
        assert!(queue < 25_000.0, "{variant}: {queue:.0}"); // a quarter of the BDP
    }
    let cubic = mean(Variant::Cubic);
    assert!(cubic > 700_000.0, "{cubic:.0}");
}

#[test]
fn vegas_keeps_two_to_four_packets_queued() {
    let (mut world, queue) = upload(with(Variant::Vegas), 150_000, 0.0, 1);
    queue.borrow_mut().from = SECOND(20);
    world.run(SECOND(60));
    // Vegas counts whole packets: below five are four. And of each pair sent for one ACK, the second finds
    // the first.
    let packets = queue.borrow().mean() / 1500.0;
    assert!((2.0..=5.5).contains(&packets), "{packets:.2}");
    assert_eq!(world.client.stats().retransmitted_segments, 0);
}

#[test]
fn with_random_loss_of_one_percent_bbr_uses_most_of_the_link_and_newreno_a_sixth() {
    let newreno = share_with_loss(Variant::NewReno, 0.01);
    // Mathis: sqrt(3/2p) = 12 segments per 40 ms.
    assert!((0.1..0.25).contains(&newreno), "{newreno:.3}");
    let bbr = share_with_loss(Variant::Bbr, 0.01);
    assert!(bbr > 0.93, "{bbr:.3}");
    let bbr3 = share_with_loss(Variant::Bbr3, 0.01);
    assert!(bbr3 > 0.75, "{bbr3:.3}"); // each loss lowers its short-term bounds
}

#[test]
fn controls_that_estimate_bandwidth_or_queue_exceed_newreno_under_random_loss() {
    for loss in [0.001, 0.01] {
        let newreno = share_with_loss(Variant::NewReno, loss);
        for (variant, factor) in [
            (Variant::WestwoodPlus, 1.4),
            (Variant::Veno, 1.2),
            (Variant::Westwood, 1.4),
            (Variant::Illinois, 1.4),
        ] {
            let other = share_with_loss(variant, loss);
            assert!(other > factor * newreno, "{variant} at {loss}: {other:.3} against {newreno:.3}");
        }
    }
}

#[test]
fn two_flows_of_one_control_share_the_link() {
    for variant in Variant::ALL {
        let [link, _] = links("20 Mb/s", 20, 100_000);
        let mut shared = Shared::new(&[(variant, Instant::ZERO), (variant, SECOND(10))], link);
        shared.run(SECOND(30));
        let got = shared.received_until(SECOND(130));
        let (sum, part) = ((got[0] + got[1]) as f64, got[0] as f64 / (got[0] + got[1]) as f64);
        assert!((0.35..=0.65).contains(&part), "{variant}: {part:.3}");
        let used = sum * 8.0 / 100.0 / GOODPUT;
        assert!(used > 0.92, "{variant}: {used:.3}");
    }
}

#[test]
fn bbr_leaves_startup_within_the_expected_round_trips() {
    for variant in [Variant::Bbr, Variant::Bbr3] {
        let (mut world, queue) = upload(with(variant), 1_000_000, 0.0, 1);
        // log2 of 100 KB over ten segments: three round trips to fill the path, three without growth, and up
        // to four to drain; each takes 40 ms while the path fills and up to three times that with its queue.
        world.run(Instant::from_millis(900));
        let (peak, busy_until) = (queue.borrow().most, queue.borrow().busy_until);
        assert!(peak > 50_000 && peak < 250_000, "{variant}: {peak}");
        *queue.borrow_mut() = Queue { from: world.now, busy_until, ..Queue::default() };
        world.run(Instant::from_millis(1900));
        let mean = queue.borrow().mean();
        assert!(mean < 30_000.0, "{variant}: {mean:.0}");
    }
}

/// Periods with at most `low` bytes in flight, by start and length in ms, after the first second.
fn dips(world: &mut World, low: u64, end: u64) -> Vec<(u64, u64)> {
    let mut dips: Vec<(u64, u64)> = Vec::new();
    for ms in 1000..end {
        world.run(Instant::from_millis(ms));
        if world.client.snapshot().in_flight <= Bytes(low) {
            match dips.last_mut() {
                Some((start, length)) if *start + *length == ms => *length += 1,
                _ => dips.push((ms, 1)),
            }
        }
    }
    dips
}

#[test]
fn probe_rtt_begins_every_ten_seconds_and_lasts_200_ms() {
    let (mut world, _) = upload(with(Variant::Bbr), 1_000_000, 0.0, 1);
    let dips = dips(&mut world, 4 * 1448, 32_000);
    assert_eq!(dips.len(), 3, "{dips:?}");
    for (dip, at) in dips.iter().zip([10_000, 20_300, 30_600]) {
        assert!(dip.0.abs_diff(at) < 400 && (200..=300).contains(&dip.1), "{dips:?}");
    }
}

#[test]
fn probe_rtt_of_bbr3_begins_every_five_seconds_with_half_the_bdp() {
    let (mut world, _) = upload(with(Variant::Bbr3), 1_000_000, 0.0, 1);
    let dips = dips(&mut world, 52_000, 16_500);
    assert_eq!(dips.len(), 3, "{dips:?}");
    for (dip, at) in dips.iter().zip([5_000, 10_300, 15_600]) {
        assert!(dip.0.abs_diff(at) < 400 && (200..=300).contains(&dip.1), "{dips:?}");
    }
    assert!(world.client.snapshot().in_flight > Bytes(52_000));
}

/// A policer in front of the link: a token bucket of 5 Mb/s and 30 KB that drops packets above its rate.
fn police(link: &mut Direction) {
    let tokens = Rc::new(RefCell::new((30_000.0f64, Instant::ZERO)));
    let clock = Rc::clone(&tokens);
    link.alter = Box::new(move |now, _| {
        let (tokens, last) = *clock.borrow();
        *clock.borrow_mut() = ((tokens + now.since(last).as_secs_f64() * 625_000.0).min(30_000.0), now);
    });
    link.lose = Box::new(move |_, packet| {
        let mut bucket = tokens.borrow_mut();
        let drop = bucket.0 < f64::from(packet.len);
        bucket.0 -= if drop { 0.0 } else { f64::from(packet.len) };
        drop
    });
}

#[test]
fn bbr_finds_the_rate_of_a_policer() {
    let (client, server) = (with(Variant::Bbr), configs().1);
    let mut ways = links("20 Mb/s", 20, 150_000);
    police(&mut ways[0]);
    let mut world = World::upload(client, server, Source::Bulk, ways);
    world.run(SECOND(5));
    let (sent, resent) = (world.client.stats().segments_sent, world.client.stats().retransmitted_segments);
    let used = share(&mut world, SECOND(5), SECOND(65)) * 4.0;
    let stats = world.client.stats();
    let lost = (stats.retransmitted_segments - resent) as f64 / (stats.segments_sent - sent) as f64;
    assert!(used > 0.85 && lost < 0.1, "{used:.3} {lost:.3} {stats:?}");
}

#[test]
fn hystart_and_hystart_plus_plus_overshoot_less() {
    let start = |hystart| {
        let config = EndpointConfig { hystart, ..with(Variant::Cubic) };
        let (mut world, queue) = upload(config, 1_000_000, 0.0, 1);
        world.run(Instant::from_millis(1500));
        let most = queue.borrow().most;
        (most, world.client.stats().bytes_acked)
    };
    let (without, _) = start(SlowStartExit::Off);
    for exit in [SlowStartExit::HyStart, SlowStartExit::HyStartPlusPlus] {
        let (queue, acked) = start(exit);
        assert!(queue < without / 2, "{exit:?}: {queue} against {without}");
        assert!(acked as f64 > 0.7 * 1.5 * GOODPUT / 8.0, "{exit:?}: {acked}");
    }
}

#[test]
fn tahoe_restarts_from_one_segment_at_the_loss() {
    let run = |variant| {
        let mut ways = links("20 Mb/s", 20, 1 << 20);
        ways[0].lose = Box::new(|number, _| [100, 120].contains(&number));
        let client = EndpointConfig { sack: false, ..with(variant) };
        let mut world = World::upload(client, configs().1, Source::File(Bytes(1_000_000)), ways);
        let mut least = u64::MAX;
        while world.step(SECOND(20)) {
            least = least.min(world.client.snapshot().cwnd.0);
        }
        assert_eq!(world.completed.len(), 1);
        (least, *world.client.stats())
    };
    let (least, tahoe) = run(Variant::Tahoe);
    assert_eq!((least, tahoe.timeouts), (1448, 0), "{tahoe:?}");
    let (least, newreno) = run(Variant::NewReno);
    assert_eq!((newreno.timeouts, newreno.fast_recoveries, newreno.retransmitted_segments), (0, 1, 2));
    assert!(least > 1448, "{least}");
    assert!(tahoe.retransmitted_segments > 2, "{tahoe:?}"); // beyond the losses
}
