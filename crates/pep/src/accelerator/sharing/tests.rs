//! Devices whose senders have cycles of their own, before one queue or before a queue each.

use super::*;
use paceline_net::Stream;

/// Bytes per ms of all devices together: 100 Mb/s.
const CAPACITY: f64 = 12_500.0;
/// Round-trip time without a queue, in ms.
const BASE: u64 = 40;

#[derive(Clone, Copy)]
struct Network {
    devices: u8,
    /// Bytes of the queue, or of each device's own.
    queue: f64,
    shared: bool,
    /// Deviation of the radio's delay, in ms, and its random losses.
    jitter: f64,
    losses: f64,
    /// Each radio is silent for up to 200 ms, about twice in a second, and loses what is sent.
    fades: bool,
    /// All devices stop for 30 ms once in a second, and find a long queue afterwards.
    pauses: bool,
    /// All radios have half of their rate now and then, from one second to the other.
    steps: bool,
}

const QUIET: Network = Network {
    devices: 8,
    queue: 500_000.0,
    shared: false,
    jitter: 0.0,
    losses: 0.0,
    fades: false,
    pauses: false,
    steps: false,
};

fn address(n: u8) -> IpAddr {
    [10, 0, n, 1].into()
}

/// Runs for 20 s. Returns the devices that share a bottleneck.
fn run(network: Network, seed: u64) -> usize {
    let mut detector = SharedBottleneck::default();
    let mut places = vec![Place::default(); network.devices.into()];
    let mut random = Stream::new(seed, "sharing");
    let count = f64::from(network.devices);
    let cycles: Vec<(f64, f64)> =
        places.iter().map(|_| (150.0 + 700.0 * random.uniform(), 6.3 * random.uniform())).collect();
    let (mut queues, mut silent) = (vec![0.0f64; places.len()], vec![0u64; places.len()]);
    let mut common = 1.0;
    for ms in 0..20_000u64 {
        if ms % 1000 == 0 && network.steps {
            common = if random.chance(0.5) { 0.5 } else { 1.0 };
        }
        let paused = network.pauses && ms % 1000 < 30;
        let arrivals: Vec<f64> = cycles
            .iter()
            .map(|(period, phase)| {
                let swing = 1.0 + 0.6 * libm::sin(6.28 * ms as f64 / period + phase) + 0.2 * random.normal();
                CAPACITY / count * common * swing.max(0.0)
            })
            .collect();
        let served = if paused { 0.0 } else { CAPACITY * common };
        let mut drops = vec![0.0; places.len()];
        if network.shared {
            let all: f64 = arrivals.iter().sum();
            let full = (queues[0] + all - served).max(0.0);
            drops.fill((full - network.queue).max(0.0) / all);
            queues.fill(full.min(network.queue));
        } else {
            for (n, queue) in queues.iter_mut().enumerate() {
                if network.fades && random.chance(0.002) {
                    silent[n] = ms + random.below(200);
                }
                let rate = if silent[n] > ms { 0.0 } else { served / count };
                let full = (*queue + arrivals[n] - rate).max(0.0);
                drops[n] =
                    if silent[n] > ms { 0.5 } else { (full - network.queue).max(0.0) / arrivals[n].max(1.0) };
                *queue = full.min(network.queue);
            }
        }
        for (n, place) in places.iter_mut().enumerate() {
            let sent_at = Instant::from_millis(ms);
            detector.on_send(sent_at, address(n as u8), *place, arrivals[n] as u64);
            let rate = if network.shared { CAPACITY } else { CAPACITY / count } * common;
            let delay = BASE as f64 + queues[n] / rate + network.jitter * random.normal().abs();
            let rtt = Duration::from_secs_f64(delay / 1e3);
            let lost = random.chance(drops[n]) || random.chance(network.losses);
            let sample = PathSample {
                delivered: (!lost).then_some((sent_at, rtt)),
                lost: if lost { arrivals[n] as u64 } else { 0 },
                lost_sent: lost.then_some((sent_at, sent_at)),
            };
            detector.on_sample(sent_at + Duration::from_millis(100), address(n as u8), place, &sample);
        }
    }
    detector.shared(Instant::from_millis(20_000))
}

#[test]
fn one_queue_is_found_whatever_its_length_and_the_radios_behind_it() {
    for seed in 1..4 {
        for (queue, devices) in [(125e3, 8), (500e3, 8), (2e6, 8), (500e3, 2), (500e3, 40)] {
            for (jitter, losses) in [(0.0, 0.0), (4.0, 0.01)] {
                let found = run(Network { queue, devices, jitter, losses, shared: true, ..QUIET }, seed);
                println!("seed {seed}, {queue} bytes, {devices} devices, jitter {jitter}: {found}");
                let followed = usize::from(devices).min(MAX_MEMBERS);
                assert!(10 * found >= 9 * followed, "seed {seed}: {found} of {followed}, {queue} bytes");
            }
        }
    }
}

/// Own queues with random losses, fades, pauses of the machine and common changes of the load.
#[test]
fn queues_of_their_own_are_not_found() {
    let networks = [
        QUIET,
        Network { losses: 0.02, ..QUIET },
        Network { losses: 0.1, jitter: 4.0, ..QUIET },
        Network { queue: 30e3, ..QUIET },
        Network { fades: true, ..QUIET },
        Network { fades: true, losses: 0.02, jitter: 4.0, queue: 100e3, ..QUIET },
        Network { pauses: true, ..QUIET },
        Network { pauses: true, queue: 30e3, ..QUIET },
        Network { steps: true, ..QUIET },
        Network { devices: 40, fades: true, losses: 0.01, ..QUIET },
    ];
    for seed in 1..6 {
        for (n, network) in networks.into_iter().enumerate() {
            let found = run(network, seed);
            println!("seed {seed}, network {n}: {found}");
            assert_eq!(found, 0, "seed {seed}, network {n}");
        }
    }
}

/// Half of the devices are behind one queue, and the others have one each.
#[test]
fn devices_of_other_queues_are_told_apart() {
    let mut detector = SharedBottleneck::default();
    let (mut places, mut standings) = ([Place::default(); 8], [Standing::Unknown; 8]);
    let mut random = Stream::new(7, "groups");
    let mut queues = [100_000.0f64; 5];
    for ms in 0..20_000u64 {
        let sent_at = Instant::from_millis(ms);
        let mut arrived = [0.0; 5];
        for (n, place) in places.iter_mut().enumerate() {
            let sent = (CAPACITY / 8.0 * (1.0 + random.normal())).max(0.0);
            detector.on_send(sent_at, address(n as u8), *place, sent as u64);
            arrived[n.saturating_sub(3)] += sent;
        }
        for (n, (queue, arrived)) in queues.iter_mut().zip(arrived).enumerate() {
            let rate = CAPACITY / 8.0 * if n == 0 { 4.0 } else { 1.0 };
            *queue = (*queue + arrived - rate).clamp(0.0, 400_000.0);
        }
        for (n, place) in places.iter_mut().enumerate() {
            let queue = n.saturating_sub(3);
            let rate = CAPACITY / 8.0 * if queue == 0 { 4.0 } else { 1.0 };
            let rtt = Duration::from_secs_f64((40.0 + queues[queue] / rate) / 1e3);
            let sample = PathSample { delivered: Some((sent_at, rtt)), lost: 0, lost_sent: None };
            let now = sent_at + Duration::from_millis(100);
            standings[n] = detector.on_sample(now, address(n as u8), place, &sample);
        }
    }
    assert_eq!(standings[..4], [Standing::Shared; 4]);
    assert_eq!(standings[4..], [Standing::Alone; 4]);
    assert_eq!(detector.shared(Instant::from_millis(20_000)), 4);
    assert_eq!(detector.shared(Instant::from_millis(85_000)), 0);
}

/// Equal devices that do the same at the same time, each before a queue of its own.
#[test]
fn equal_devices_in_step_show_nothing() {
    let mut detector = SharedBottleneck::default();
    let mut places = [Place::default(); 8];
    let (mut queue, mut random) = (100_000.0f64, Stream::new(3, "step"));
    for ms in 0..20_000u64 {
        let sent_at = Instant::from_millis(ms);
        let sent = (CAPACITY / 8.0 * (1.0 + random.normal())).max(0.0);
        queue = (queue + sent - CAPACITY / 8.0).clamp(0.0, 400_000.0);
        for (n, place) in places.iter_mut().enumerate() {
            detector.on_send(sent_at, address(n as u8), *place, sent as u64);
            let rtt = Duration::from_secs_f64((40.0 + queue / (CAPACITY / 8.0)) / 1e3);
            let sample = PathSample { delivered: Some((sent_at, rtt)), lost: 0, lost_sent: None };
            detector.on_sample(sent_at + Duration::from_millis(100), address(n as u8), place, &sample);
        }
    }
    assert_eq!(detector.shared(Instant::from_millis(20_000)), 0);
}
