//! A relay above an endpoint controls reading and writing.

use crate::link::{World, configs, links};
use paceline_net::{Bytes, Instant};
use paceline_tcp::{Endpoint, EndpointConfig, Source};

/// Runs until `end`, and calls `relay` for the server after each millisecond.
fn run(world: &mut World, end_ms: u64, mut relay: impl FnMut(Instant, &mut Endpoint)) {
    for ms in world.now.as_millis()..end_ms {
        let now = Instant::from_millis(ms);
        world.run(now);
        relay(now, &mut world.server);
    }
}

#[test]
fn a_relay_reads_as_far_as_it_allows_and_writes_its_own_data() {
    let (client, server) = configs();
    let server = EndpointConfig { receive_buffer: Bytes(20_000), autotune: false, ..server };
    let file = Source::File(Bytes(100_000));
    let ways = links("1 Gb/s", 5, 1 << 20);
    let mut world =
        World::new(Endpoint::connect(client, file), Endpoint::listen(server, Source::Relay), ways);
    run(&mut world, 500, |_, _| {});
    // The relay has read nothing: the buffer is full, and the peer waits.
    assert!((18_000..=20_000).contains(&world.server.readable()), "{}", world.server.readable());
    run(&mut world, 900, |now, relay| relay.read_to(now, 30_000));
    assert!((48_000..=50_000).contains(&world.server.readable()), "{}", world.server.readable());
    run(&mut world, 6_000, |now, relay| {
        relay.read_to(now, u64::MAX);
        relay.write_to(now, 3_000, false);
    });
    assert_eq!((world.server.readable(), world.server.peer_closed()), (100_000, true));
    assert_eq!((world.client.readable(), world.client.peer_closed()), (3_000, false), "data without FIN");
    run(&mut world, 9_000, |now, relay| relay.write_to(now, 5_000, true));
    assert_eq!((world.client.readable(), world.client.peer_closed()), (5_000, true));
    assert_eq!(world.server.acknowledged(), 5_000);
}
