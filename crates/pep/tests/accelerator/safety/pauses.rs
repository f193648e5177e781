//! Safety on live traffic: clients that stop reading. Repetitions back off (RFC 9293, section 3.8.6.1; RFC
//! 6298, section 5.5): the radio of a sleeping phone must be left to sleep.

use crate::accelerator::test_bed::*;
use paceline_net::test_support::segment;
use paceline_net::{Duration, Instant, Node, Output, Packet, Port, SeqNumber, TcpOptions};
use paceline_pep::accelerator::AcceleratorConfig;
use paceline_tcp::{Endpoint, EndpointConfig, Source};

/// Bytes that the client takes before it pauses.
const TAKEN: u64 = 16_000;
/// Round-trip time between the sender and the client, in milliseconds.
const RTT_MS: u64 = 40;
/// Length of the pause, in milliseconds.
const PAUSE_MS: u64 = 25_000;

/// A client that has taken [`TAKEN`] bytes and takes no more.
#[derive(Clone, Copy, Debug)]
struct Pausing {
    /// Bytes that the client still advertises.
    window: u16,
    /// The client answers each packet with a duplicate ACK.
    answers: bool,
    sack: bool,
}

/// Packets, and bytes with headers, that a client receives in a pause of 25 s.
#[derive(Clone, Copy, Debug)]
struct Received {
    packets: usize,
    bytes: usize,
}

impl Received {
    fn of(packets: &[Packet]) -> Self {
        Self { packets: packets.len(), bytes: packets.iter().map(|packet| packet.len as usize).sum() }
    }
}

/// A client behind the accelerator, which stores more than the client takes.
fn accelerated(client: Pausing, overshoot: bool) -> Received {
    let config = AcceleratorConfig { overshoot, ..AcceleratorConfig::default() };
    let mut bed = TestBed::open_with(config, |bed| {
        (bed.shift, bed.window, bed.sack) = (0, TAKEN as u16 + client.window, client.sack);
    });
    bed.send(1, 60);
    for taken in [TAKEN / 2, TAKEN] {
        bed.wait(RTT_MS);
        bed.window = client.window + (TAKEN - taken) as u16;
        bed.ack(1 + taken);
    }
    bed.clear();
    let mut received = Vec::new();
    for _ in 0..PAUSE_MS / RTT_MS {
        bed.wait(RTT_MS);
        let packets = bed.taken_by_client();
        (0..packets.len()).filter(|_| client.answers).for_each(|_| bed.ack(1 + TAKEN));
        received.extend(packets);
    }
    Received::of(&received)
}

/// The same client without the accelerator: a sender as in Linux.
fn plain(client: Pausing) -> Received {
    let (own, peer) = ("198.18.0.1:40000".parse().unwrap(), "198.19.0.2:80".parse().unwrap());
    let mut server = Endpoint::listen(EndpointConfig::new(peer, own), Source::Bulk);
    let mut now = Instant::from_millis(1);
    let mut isn = 0;
    let send = |server: &mut Endpoint, now, flags, seq, ack: u32, window| {
        let mss = Some(SEGMENT as u16);
        let options = TcpOptions { mss, sack_permitted: client.sack, ..TcpOptions::default() };
        let options = if flags == SYN { options } else { TcpOptions::default() };
        let packet = segment().between(own.ip(), peer.ip()).ports(own.port(), peer.port());
        let packet = packet.flags(flags).seq(seq).ack(ack).window(window).with(|tcp| tcp.options = options);
        server.handle_packet(now, Port(0), packet.build());
    };
    let mut round_trip = |server: &mut Endpoint| {
        let mut out = Vec::new();
        let end = now + Duration::from_millis(RTT_MS);
        loop {
            while let Some(output) = server.poll_output(now) {
                out.extend(match output {
                    Output::Transmit(_, packet) => Some(packet),
                    _ => None,
                });
            }
            let Some(at) = server.poll_timeout().filter(|at| *at <= end) else { break };
            now = now.max(at);
            server.handle_timeout(now);
        }
        now = end;
        (now, out)
    };
    send(&mut server, Instant::from_millis(1), SYN, 0, 0, TAKEN as u16 + client.window);
    let mut received = Vec::new();
    let mut taken = 0;
    for _ in 0..1000 {
        let (now, packets) = round_trip(&mut server);
        let paused = taken == TAKEN;
        for packet in &packets {
            let tcp = header(packet);
            isn = if tcp.flags == SYN.with(ACK) { tcp.seq.0 } else { isn };
            let end = tcp.seq + tcp.payload_len;
            let end = u64::from(end - SeqNumber(isn));
            if !paused || client.answers {
                taken = taken.max(end.saturating_sub(1)).min(TAKEN);
                let window = client.window + (TAKEN - taken) as u16;
                send(&mut server, now, ACK, 1, isn.wrapping_add(1 + taken as u32), window);
            }
        }
        if paused {
            received.extend(packets);
        }
        if received.len() > 1000 || paused && now > Instant::from_millis(PAUSE_MS) {
            break;
        }
    }
    Received::of(&received)
}

/// In a pause of 25 s a client gets as few packets as from a sender as in Linux.
// keeps: accelerator.window
#[test]
fn a_client_that_pauses_gets_as_few_packets_as_without_the_accelerator() {
    for sack in [true, false] {
        for window in [0, 1, 100, 999] {
            for answers in [true, false] {
                let client = Pausing { window, answers, sack };
                let most = plain(client);
                for (overshoot, packets, bytes) in [(false, 0, 100), (true, 1, 6_000)] {
                    let got = accelerated(client, overshoot);
                    assert!(got.packets <= most.packets + packets, "{client:?}: {got:?}, plain {most:?}");
                    assert!(got.bytes <= most.bytes + bytes, "{client:?}: {got:?}, plain {most:?}");
                }
            }
        }
    }
}

/// RFC 6298, sections 2.5 and 5.5; RFC 9293, section 3.8.6.1: a client that pauses for half an hour, and
/// answers each probe, is probed at intervals that double up to a minute. The connection is not given up, and
/// data follows at once when the client reads again.
// keeps: accelerator.window
#[test]
fn intervals_between_repetitions_double_up_to_a_minute() {
    for window in [0, 100] {
        let mut bed = TestBed::open_cleared(|bed| (bed.shift, bed.window) = (0, 8_000 + window));
        bed.send(1, 40);
        bed.wait(20);
        bed.window = window;
        bed.ack(8_001);
        bed.wait(20);
        bed.clear();
        let (start, mut sent_at) = (bed.now, Vec::new());
        while bed.now.since(start) < Duration::from_secs(1800) {
            bed.wait(10);
            if !bed.taken_by_client().is_empty() {
                sent_at.push(bed.now);
                bed.ack(8_001);
            }
        }
        let intervals: Vec<u64> = sent_at.windows(2).map(|pair| pair[1].since(pair[0]).as_millis()).collect();
        let doubled = |pair: &[u64]| pair[1] + 20 >= (2 * pair[0]).min(60_000) && pair[1] <= 60_020;
        assert!(intervals[1..].windows(2).all(doubled), "window {window}: {intervals:?}");
        assert!(intervals.ends_with(&[60_000; 10]), "window {window}: {intervals:?}");
        assert_eq!((bed.accelerator.flow_count(), bed.stats().flows_reset), (1, 0));
        bed.window = 20_000;
        bed.ack(8_001);
        bed.wait(1);
        assert!(!bed.data().is_empty(), "the window has opened");
        bed.wait(300);
        assert!(bed.data().iter().any(|(off, _)| *off == 8_001), "without backoff");
    }
}

/// RFC 8985, section 7.3: one probe for a tail; the timeouts of RFC 6298 follow.
#[test]
fn a_silent_client_gets_one_tail_probe() {
    for segments in [1, 2, 10] {
        let mut bed = TestBed::open_cleared(|_| ());
        let end = bed.send(1, segments);
        bed.wait(1);
        bed.ack(end);
        bed.clear();
        bed.send(end, segments);
        bed.wait(5_000);
        let stats = bed.stats();
        // The probe of a lone segment would come after the timeout.
        let probes = u64::from(segments > 1);
        assert_eq!((stats.tail_probes, stats.timeouts), (probes, 4), "{segments} segments");
    }
}
