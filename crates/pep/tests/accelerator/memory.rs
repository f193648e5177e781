//! The memory of the accelerator: what fast paths get, and what is left to others by devices that take all.

use crate::accelerator::network::*;
use crate::accelerator::test_bed::{SEGMENT, TestBed};
use paceline_net::{Bytes, Duration};
use paceline_pep::AcceleratorConfig;
use paceline_tcp::Source;

/// Largest packet in bytes, by which a limit may be exceeded, with its record.
const PACKET: u64 = 2_000;

/// Receive windows and send buffers that do not limit 1 Gb/s at 80 ms.
const WINDOW: Bytes = Bytes(64 << 20);

/// Goodput in Mb/s of a download over 1 Gb/s and `rtt_ms`, 10 ms of them between server and accelerator.
fn goodput_at_a_gigabit(rtt_ms: u64, config: AcceleratorConfig) -> f64 {
    let (mut client, mut server) = configs(0);
    client.receive_buffer = WINDOW;
    server.send_buffer = WINDOW;
    let lines =
        [Link::rate("1 Gb/s", rtt_ms / 2 - 5, 20_000_000), Link::rate("50 Mb/s", rtt_ms / 2 - 5, 1_000_000)];
    let mut network = Network::with((client, server), Source::Bulk, Some(config), 5, lines);
    network.wired = [0, 1].map(|_| Link::rate("10 Gb/s", 5, 50_000_000));
    network.run_ms(3_000);
    let stats = network.accelerator().stats();
    println!("{rtt_ms} ms: {} of {} segments again", stats.retransmissions, stats.segments_sent);
    assert!(stats.retransmissions * 50 <= stats.segments_sent, "at most 2%");
    network.goodput_mbps(1_500, 3_000)
}

/// 98% of the link's capacity. Headers take 3.6% of it.
#[test]
fn a_gigabit_is_filled_at_every_round_trip_with_the_default_memory() {
    for rtt_ms in [20, 40, 80] {
        let goodput = goodput_at_a_gigabit(rtt_ms, AcceleratorConfig::default());
        assert!(goodput > 0.98 * 0.964 * 1000.0, "{rtt_ms} ms: {goodput:.0} Mb/s");
    }
}

#[test]
fn the_old_keys_are_upper_limits() {
    let flow_buffer = AcceleratorConfig { flow_buffer: Bytes(2 << 20), ..AcceleratorConfig::default() };
    let device_buffer = AcceleratorConfig { device_buffer: Bytes(16 << 20), ..AcceleratorConfig::default() };
    for config in [flow_buffer, device_buffer] {
        let goodput = goodput_at_a_gigabit(80, config);
        assert!(goodput < 400.0, "about 2 MiB in 70 ms: {goodput:.0} Mb/s");
    }
}

/// A server that ignores the window and a client that acknowledges nothing: each such device is bounded, half
/// of the memory at most is exposed, and another device still gets its first megabyte.
// keeps: accelerator.exposure
#[test]
fn devices_that_take_all_are_bounded_and_leave_memory_to_others() {
    const MEMORY: u64 = 8 << 20;
    let config = AcceleratorConfig { memory: Bytes(MEMORY), ..AcceleratorConfig::default() };
    let mut bed = TestBed::new(config);
    for n in 0..30 {
        bed.key.dst = [198, 18, 1, n].into();
        bed.client_next = 1;
        bed.handshake();
        let before = bed.accelerator.held();
        bed.send(1, 2 * MEMORY / u64::from(SEGMENT) / 8);
        let held = bed.accelerator.held() - before;
        assert!(held <= (MEMORY - before) / 4 + PACKET, "device {n} holds {held} bytes beside {before}");
        assert!(held > 0, "device {n} gets nothing");
        assert!(bed.accelerator.held() < MEMORY && bed.accelerator.exposure() <= MEMORY / 2);
        bed.clear();
        bed.accelerator.invariants();
    }
}

/// Devices beyond count with a packet each, of a server that sends to all of them: memory is not exceeded by
/// more than a packet.
#[test]
fn any_number_of_devices_stays_within_the_memory() {
    const MEMORY: u64 = 1 << 20;
    let config = AcceleratorConfig { memory: Bytes(MEMORY), ..AcceleratorConfig::default() };
    let mut bed = TestBed::new(config);
    for n in 0..2_000u16 {
        let [high, low] = n.to_be_bytes();
        bed.key.dst = [198, 18, 100 + high, low].into();
        bed.client_next = 1;
        bed.handshake();
        bed.send(1, 1 + u64::from(n % 3));
        assert!(bed.accelerator.held() < MEMORY + PACKET, "device {n}: {} bytes", bed.accelerator.held());
        bed.clear();
    }
    assert!(bed.accelerator.held() > MEMORY - PACKET);
}

/// Sixty devices share a radio of 20 Mb/s and 4 MiB: all of them receive all, and memory stays bounded.
#[test]
fn many_devices_under_pressure_all_make_progress() {
    const MEMORY: u64 = 4 << 20;
    let config = AcceleratorConfig { memory: Bytes(MEMORY), ..AcceleratorConfig::default() };
    let lines = [Link::rate("20 Mb/s", 15, 1_000_000), Link::rate("50 Mb/s", 15, 1_000_000)];
    let mut network = Network::download(Source::Nothing, Some(config), 15, lines);
    for n in 1..=60 {
        let interval = Duration::from_secs(60);
        network.add(n, n as u8 + 1, Source::Chunks { size: Bytes(300_000), interval, count: 1 });
    }
    for second in 1..=20 {
        network.run_ms(second * 1000);
        let (held, exposure) = (network.accelerator().held(), network.accelerator().exposure());
        assert!(held <= MEMORY && exposure <= MEMORY / 2, "{held} bytes held, {exposure} exposed");
    }
    assert_eq!(network.received(), 60 * 300_000, "{:?}", network.accelerator().stats());
}
