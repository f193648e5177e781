//! Invalid segments during a transfer: no endpoint panics.

use crate::link::{World, configs, links};
use paceline_net::{
    Bytes, Instant, Node, Packet, Port, SackBlocks, SeqNumber, Stream, TcpFlags, TcpHeader, TcpOptions,
    Timestamps, Transport,
};
use paceline_tcp::{Endpoint, Source};

/// A number near `base`, or anywhere.
fn near(stream: &mut Stream, base: u32) -> SeqNumber {
    let offset = match stream.below(4) {
        0 => stream.next_u64() as u32,
        1 => (stream.below(8) as u32).wrapping_sub(4),
        _ => (stream.below(1 << 18) as u32).wrapping_sub(1 << 17),
    };
    SeqNumber(base.wrapping_add(offset))
}

/// A random segment with the addresses of the connection, towards the client or the server.
fn garbage(stream: &mut Stream, to_client: bool, base: (u32, u32)) -> Packet {
    let (client, server) = configs();
    let (from, to) = if to_client { (&server, &client) } else { (&client, &server) };
    let mut sack = SackBlocks::default();
    for _ in 0..stream.below(5) {
        let (left, right) = (near(stream, base.1), near(stream, base.1));
        sack.push(left, right);
    }
    let clock = stream.below(3000) as u32;
    let timestamps = stream.chance(0.7).then(|| Timestamps { val: clock, ecr: near(stream, clock).0 });
    // Without resets: one in the window would end the connection.
    let flags = TcpFlags((stream.next_u64() as u16 & 0xfff) & !TcpFlags::RST.0);
    let flags =
        if stream.chance(0.7) { TcpFlags(flags.0 & !TcpFlags::SYN.0).with(TcpFlags::ACK) } else { flags };
    let tcp = TcpHeader {
        src_port: from.local.port(),
        dst_port: to.local.port(),
        seq: near(stream, base.0),
        ack: near(stream, base.1),
        flags,
        window: stream.next_u64() as u16,
        options: TcpOptions {
            mss: stream.chance(0.3).then(|| stream.next_u64() as u16),
            window_scale: stream.chance(0.3).then(|| stream.next_u64() as u8),
            sack_permitted: stream.chance(0.3),
            timestamps,
            sack,
            other: stream.chance(0.1).into(),
        },
        payload_len: if stream.chance(0.5) { 0 } else { stream.below(65_536) as u32 },
    };
    Packet::tcp(from.local.ip(), to.local.ip(), tcp)
}

#[test]
fn random_segments_in_every_state_do_not_panic() {
    for seed in 0..300 {
        println!("seed {seed}");
        let mut stream = Stream::new(seed, "garbage");
        let (client, server) = configs();
        let source = [Source::Nothing, Source::Bulk, Source::File(Bytes(200_000))][stream.below(3) as usize];
        let lossy = links("10 Mb/s", 5, 50_000).map(|link| link.lossy(0.02, seed, "garbage link"));
        let mut world = World::new(
            Endpoint::connect(client, Source::File(Bytes(500_000))),
            Endpoint::listen(server, source),
            lossy,
        );
        world.observing = false;
        let mut sent = 0;
        for _ in 0..2000 {
            if !world.step(Instant::from_millis(20_000)) {
                break;
            }
            if stream.chance(0.1) {
                sent += 1;
                let to_client = stream.chance(0.5);
                // Sequence numbers of both sides start at 2; the client sends 500 KB.
                let base = (stream.below(600_000) as u32, stream.below(600_000) as u32);
                let packet = garbage(&mut stream, to_client, base);
                let now = world.now;
                let side = if to_client { &mut world.client } else { &mut world.server };
                side.handle_packet(now, Port(0), packet);
                side.snapshot();
            }
        }
        assert!(sent == 0 || world.client.stats().ignored + world.server.stats().ignored > 0);
    }
}

#[test]
fn foreign_packets_are_counted_and_disturb_nothing() {
    let (client, server) = configs();
    let mut world = World::upload(client, server, Source::File(Bytes(100_000)), links("10 Mb/s", 5, 50_000));
    let mut stream = Stream::new(1, "foreign");
    let mut foreign = 0;
    while world.step(Instant::from_millis(60_000)) {
        let mut packet = garbage(&mut stream, true, (0, 0));
        match stream.below(3) {
            0 => packet.transport = Transport::Other(47),
            1 => packet.transport = Transport::Udp { src_port: 80, dst_port: 40_000, made_at: None },
            _ => packet.ip.src = "198.18.0.3".parse().expect("an address"),
        }
        let now = world.now;
        world.client.handle_packet(now, Port(0), packet);
        foreign += 1;
    }
    assert_eq!(world.client.stats().ignored, foreign);
    assert_eq!((world.completed.len(), world.server.stats().bytes_received), (1, 100_000));
}

#[test]
fn a_reset_ends_the_connection_only_if_it_is_exact() {
    let (client, server) = configs();
    let mut world = World::upload(client, server, Source::Bulk, links("10 Mb/s", 5, 50_000));
    world.run(Instant::from_millis(500));
    let mut stream = Stream::new(1, "reset");
    let mut reset = garbage(&mut stream, true, (0, 0));
    for (seq, state) in [(77, "established"), (2, "closed")] {
        let Transport::Tcp(tcp) = &mut reset.transport else { unreachable!() };
        (tcp.seq, tcp.flags, tcp.payload_len) = (SeqNumber(seq), TcpFlags::RST, 0);
        let now = world.now;
        world.client.handle_packet(now, Port(0), reset.clone());
        assert_eq!(world.client.snapshot().state, state);
    }
    let now = world.now;
    assert_eq!((world.client.poll_output(now), world.client.poll_timeout()), (None, None));
}
