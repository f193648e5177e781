//! Hops that are served packet by packet, beside hops whose passage is computed.

use super::super::hops::Hops;
use super::QueuedHops;
use crate::scenario::Hop;
use paceline_net::test_support::segment;
use paceline_net::{AddressTable, Bytes, Duration, Instant, Packet, Rate, Stream};

fn hop(rate: u64, delay_us: u64, queue: u64, per_cell: bool) -> Hop {
    let hop = Hop::new(Rate(rate), Duration::from_micros(delay_us));
    Hop { queue: Bytes(queue), ecn_threshold: Some(Bytes(2_000)), per_cell, ..hop }
}

/// Length, ECN and time of each packet that arrives, and the length of each that is dropped.
type Passed = (Vec<(Instant, u32, u8)>, Vec<u32>);

fn poll(now: Instant, down: bool, hops: &mut Hops, passed: &mut Passed) {
    while let Some((packet, _)) = hops.poll_dropped(now) {
        passed.1.push(packet.len);
    }
    let mut next = || if down { hops.poll_at_cell(now) } else { hops.poll_at_servers(now) };
    while let Some(packet) = next() {
        passed.0.push((now, packet.len, packet.ip.ecn()));
    }
}

#[test]
fn drop_tail_hops_served_packet_by_packet_equal_the_computed_passage() {
    let path = [hop(80_000_000, 300, 9_000, false), hop(20_000_000, 2_000, 6_000, true)];
    let mut dropped = 0;
    for (seed, down) in (0..40).flat_map(|seed| [(seed, true), (seed, false)]) {
        let mut computed = Hops::new(&path, 1);
        let mut queued = Hops::new(&path, 1);
        queued.queued = Some(Box::new(QueuedHops::new(&path, 1, AddressTable::default())));
        let mut stream = Stream::new(seed, "hops");
        let mut packets: Vec<(Instant, Packet)> = Vec::new();
        let mut at = Instant::ZERO;
        for _ in 0..300 {
            at += Duration::from_nanos(stream.below(2) * stream.below(1_200_000));
            let mut packet = segment().payload_len(stream.below(1400) as u32).build();
            packet.ip.traffic_class = stream.below(3) as u8;
            packets.push((at, packet));
        }
        let [first, second] = [&mut computed, &mut queued].map(|hops| {
            let mut passed = Passed::default();
            for (at, packet) in &packets {
                while let Some(next) = hops.next_arrival().filter(|next| next <= at) {
                    poll(next, down, hops, &mut passed);
                }
                let packet = packet.clone();
                let entered = if down { hops.downlink(*at, 0, packet) } else { hops.uplink(*at, 0, packet) };
                passed.1.extend(entered.err().map(|packet| packet.len));
            }
            while let Some(next) = hops.next_arrival() {
                poll(next, down, hops, &mut passed);
            }
            passed.1.sort_unstable(); // a drop at a later hop is known at entry where it is computed
            passed
        });
        assert_eq!(first, second, "seed {seed}, down {down}");
        assert_eq!(computed.busiest(0), queued.busiest(0));
        dropped += first.1.len();
    }
    assert!(dropped > 500, "{dropped}");
}

#[test]
fn a_packet_that_enters_when_another_arrives_does_not_delay_it() {
    // 1000 bytes at 8 Mb/s take 1 ms, and 1 ms more to the far end.
    let path = [hop(8_000_000, 1_000, 9_000, false)];
    for down in [true, false] {
        let mut hops = Hops::new(&path, 1);
        hops.queued = Some(Box::new(QueuedHops::new(&path, 1, AddressTable::default())));
        let enter = |hops: &mut Hops, at| {
            let packet = segment().payload_len(960).build();
            assert!(if down { hops.downlink(at, 0, packet) } else { hops.uplink(at, 0, packet) }.is_ok());
        };
        enter(&mut hops, Instant::ZERO);
        let arrival = Instant::from_millis(2);
        let mut passed = Passed::default();
        while let Some(next) = hops.next_arrival().filter(|next| *next < arrival) {
            poll(next, down, &mut hops, &mut passed);
        }
        enter(&mut hops, arrival);
        while let Some(next) = hops.next_arrival() {
            poll(next, down, &mut hops, &mut passed);
        }
        let times: Vec<Instant> = passed.0.iter().map(|(at, ..)| *at).collect();
        assert_eq!(times, [arrival, Instant::from_millis(4)], "down {down}");
    }
}
