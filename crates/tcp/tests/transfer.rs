//! Two endpoints over an emulated link: goodput, recovery, and every way that a segment can be lost.

mod link;

use link::{Direction, World, configs, has_payload, links};
use paceline_net::{Bytes, Duration, Instant, SeqNumber, Stream, TcpFlags};
use paceline_tcp::{DelayedAck, Endpoint, EndpointConfig, Source, Variant};

const SECOND: fn(u64) -> Instant = |s| Instant::from_millis(1000 * s);

fn with_variant(variant: Variant) -> (EndpointConfig, EndpointConfig) {
    let (client, server) = configs();
    (EndpointConfig { variant, ..client }, EndpointConfig { variant, ..server })
}

/// Goodput over link rate less headers, between two times.
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
        // 20 Mb/s and 40 ms make 100 KB; the queue is one such product.
        let mut world = World::upload(client, server, Source::Bulk, links("20 Mb/s", 20, 100_000));
        let used = utilisation(&mut world, SECOND(5), SECOND(35), 20e6);
        let stats = world.client.stats();
        assert!(used >= 0.95, "{variant}: {used:.3} {stats:?} {:?}", world.client.snapshot());
        assert_eq!(stats.timeouts, 0, "{variant}: {stats:?}");
    }
}
