//! The accelerator in one's own event loop: a server, 20 ms of wire, the accelerator, 10 ms of a radio with
//! 10 Mb/s, and a client. Time is a number that the loop moves forward.

use paceline_net::{Bytes, Duration, Instant, Node, Output, Packet, Port, Rate};
use paceline_pep::accelerator::{Accelerator, AcceleratorConfig, Side};
use paceline_tcp::{Endpoint, EndpointConfig, Source};
use std::collections::BTreeMap;

/// Delay between the accelerator and the end of each side.
const DELAY: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(10)];

fn sent_by(end: &mut Endpoint, now: Instant) -> Option<Packet> {
    std::iter::from_fn(|| end.poll_output(now))
        .find_map(|output| if let Output::Transmit(_, packet) = output { Some(packet) } else { None })
}

pub fn main() {
    let (server, client) = ("192.0.2.1:80".parse().unwrap(), "198.51.100.7:40000".parse().unwrap());
    let mut ends = [
        Endpoint::listen(EndpointConfig::new(server, client), Source::File(Bytes(5_000_000))),
        Endpoint::connect(EndpointConfig::new(client, server), Source::Nothing),
    ];
    let mut accelerator = Accelerator::new(AcceleratorConfig::default());
    let (mut now, mut radio_free, mut count) = (Instant::ZERO, Instant::ZERO, 0_u64);
    // Packets on their way: by arrival, the side, whether towards the accelerator, and the packet.
    let mut travelling: BTreeMap<(Instant, u64), (Side, bool, Packet)> = BTreeMap::new();
    while !ends[0].is_complete() {
        let mut send = |at: Instant, side: Side, inwards: bool, packet: Packet| {
            count += 1;
            travelling.insert((at + DELAY[side as usize], count), (side, inwards, packet));
        };
        for side in [Side::Server, Side::Mobile] {
            while let Some(packet) = sent_by(&mut ends[side as usize], now) {
                send(now, side, true, packet);
            }
        }
        while let Some(sent) = accelerator.poll_transmit(now) {
            if sent.side == Side::Mobile {
                radio_free =
                    radio_free.max(now) + Rate(10_000_000).time_to_send(Bytes(sent.packet.len.into()));
            }
            let at = if sent.side == Side::Mobile { radio_free } else { now };
            send(at, sent.side, false, sent.packet);
        }
        let timers = [ends[0].poll_timeout(), ends[1].poll_timeout(), accelerator.next_timer()];
        let arrival = travelling.first_key_value().map(|((at, _), _)| *at);
        now = timers.into_iter().chain([arrival]).flatten().min().expect("something is under way").max(now);
        while let Some(entry) = travelling.first_entry().filter(|entry| entry.key().0 <= now) {
            match entry.remove() {
                (side, true, packet) => accelerator.input(now, side, packet),
                (side, false, packet) => ends[side as usize].handle_packet(now, Port(0), packet),
            }
        }
        ends.iter_mut().for_each(|end| end.handle_timeout(now));
        accelerator.handle_timeout(now);
    }
    let early = accelerator.stats().early_acks;
    println!("5 MB acknowledged after {:.2} s, {early} early ACKs", now.since(Instant::ZERO).as_secs_f64());
}
