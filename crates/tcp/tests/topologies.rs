//! Random topologies: flows of all variants share a chain of hops, each with its rate, delay, queue, loss and
//! reordering, and enter and leave it at random hops. Every byte arrives in order, once; windows follow their
//! law; no timer lies in the past. `PACELINE_SWARM_SEED=17` starts at this seed.

use crate::link::{Arrivals, Direction};
use crate::model::{Entropy, Reassembly};
use paceline_net::{Bytes, Duration, Instant, Node, Output, Packet, Port, Rate, SeqNumber, Stream, TcpFlags};
use paceline_tcp::{Endpoint, EndpointConfig, Snapshot, Source, Stats, Variant};
use std::ops::Range;

const SEEDS: u64 = 100;
/// Virtual time after which every transfer must be complete.
const END: Instant = Instant::from_millis(6 * 3600 * 1000);

/// One side of a flow.
struct Side {
    endpoint: Endpoint,
    config: EndpointConfig,
    received: Reassembly,
    before: (Snapshot, Stats),
    /// Stream bytes sent at least once.
    sent: u64,
    completed: u32,
    /// Times of the first SYN, sent or received, and of the acknowledgment of all data.
    opened_at: Option<Instant>,
    completed_at: Option<Instant>,
}

struct Flow {
    sides: [Side; 2],
    sizes: [u64; 2],
    /// Hops on its path, from the client's side.
    hops: Range<usize>,
}

/// A packet that arrives at the end of a hop.
struct Arrival {
    flow: usize,
    /// 0 from the client, 1 from the server.
    way: usize,
    /// The next hop; `None` if the endpoint is next.
    hop: Option<usize>,
    packet: Packet,
}

struct World {
    flows: Vec<Flow>,
    /// The two directions of each hop.
    hops: Vec<[Direction; 2]>,
    arrivals: Arrivals<Arrival>,
    now: Instant,
    /// Share of the ECN-capable packets that a hop marks, and its random numbers.
    marks: (f64, Stream),
}

fn hop(stream: &mut Stream, seed: u64, name: &str) -> Direction {
    let rate = Rate(10u64.pow(5 + stream.below(4) as u32) * (1 + stream.below(9)));
    let delay = Duration::from_micros(stream.below(40_000));
    let queue = Bytes(3000 + stream.below(200_000));
    let loss = if stream.chance(0.4) { stream.uniform_in(0.0, 0.03) } else { 0.0 };
    let mut direction = Direction::new(rate, delay, queue).lossy(loss, seed, name);
    if stream.chance(0.3) {
        let mut late = Stream::new(seed, &format!("{name}/late"));
        let (share, span) = (stream.uniform_in(0.0, 0.2), stream.below(30_000));
        direction.extra = Box::new(move |_, _| match late.chance(share) {
            true => Duration::from_micros(late.below(span + 1)),
            false => Duration::ZERO,
        });
    }
    direction
}

/// The mechanisms of Linux, or random ones.
fn mechanisms(stream: &mut Stream, config: EndpointConfig) -> EndpointConfig {
    let bytes: Vec<u8> = (0..32).map(|_| stream.next_u64() as u8).collect();
    match stream.chance(0.3) {
        true => config,
        false => crate::model::mechanisms(&mut Entropy::new(&bytes), config),
    }
}

fn side(stream: &mut Stream, number: usize, client: bool, source: Source) -> Side {
    let addresses = [format!("198.18.0.1:{}", 1000 + number), "198.18.0.2:80".to_owned()];
    let [local, remote] = addresses.map(|text| text.parse().expect("an address"));
    let (local, remote) = if client { (local, remote) } else { (remote, local) };
    let config = EndpointConfig {
        variant: Variant::ALL[stream.below(Variant::ALL.len() as u64) as usize],
        segment_size: [1448, 536, 1000][stream.below(3) as usize],
        initial_window: [10, 2, 4][stream.below(3) as usize],
        receive_buffer: Bytes([6 << 20, 20_000, 200_000][stream.below(3) as usize]),
        autotune: stream.chance(0.7),
        timestamps: stream.chance(0.7),
        sack: stream.chance(0.8),
        window_scale: stream.chance(0.8),
        isn: SeqNumber(stream.next_u64() as u32),
        start_at: Instant::from_millis(stream.below(3000)),
        ..mechanisms(stream, EndpointConfig::new(local, remote))
    };
    let endpoint = match client {
        true => Endpoint::connect(config.clone(), source),
        false => Endpoint::listen(config.clone(), source),
    };
    let before = (endpoint.snapshot(), *endpoint.stats());
    Side {
        endpoint,
        config,
        received: Reassembly::default(),
        before,
        sent: 0,
        completed: 0,
        opened_at: None,
        completed_at: None,
    }
}

impl World {
    fn random(seed: u64) -> Self {
        let mut stream = Stream::new(seed, "topology");
        let count = 1 + stream.below(5) as usize;
        let hops: Vec<_> =
            (0..count).map(|i| [0, 1].map(|way| hop(&mut stream, seed, &format!("hop{i}/{way}")))).collect();
        let flows = (0..1 + stream.below(6) as usize).map(|number| {
            let first = stream.below(count as u64) as usize;
            let last = first + stream.below((count - first) as u64) as usize;
            let slowest = hops[first..=last].iter().flatten().map(|hop| hop.rate.0).min().unwrap_or(0);
            // At most a few seconds of the slowest hop.
            let mut size = || 1 + stream.below((slowest / 4).min(2_000_000));
            let sizes = [size(), size()];
            let both = stream.chance(0.4);
            let sizes = [sizes[0], if both { sizes[1] } else { 0 }];
            let answer = if both { Source::File(Bytes(sizes[1])) } else { Source::Nothing };
            let client = side(&mut stream, number, true, Source::File(Bytes(sizes[0])));
            let server = side(&mut stream, number, false, answer);
            Flow { sides: [client, server], sizes, hops: first..last + 1 }
        });
        let flows = flows.collect();
        let share = if stream.chance(0.5) { stream.uniform_in(0.0, 0.1) } else { 0.0 };
        let marks = (share, Stream::new(seed, "topology/marks"));
        Self { flows, hops, arrivals: Arrivals::default(), now: Instant::ZERO, marks }
    }
    /// Sends a packet into a hop.
    fn forward(&mut self, mut arrival: Arrival, hop: usize) {
        let (share, stream) = &mut self.marks;
        if arrival.packet.ip.ecn() != 0 && stream.chance(*share) {
            arrival.packet.ip.traffic_class |= 3;
        }
        let Some(at) = self.hops[hop][arrival.way].accept(self.now, &arrival.packet) else { return };
        let hops = &self.flows[arrival.flow].hops;
        arrival.hop = match arrival.way {
            0 if hop + 1 < hops.end => Some(hop + 1),
            1 if hop > hops.start => Some(hop - 1),
            _ => None,
        };
        self.arrivals.push(at, arrival);
    }
    fn drain(&mut self, flow: usize, side: usize) {
        let now = self.now;
        let mut leaving = Vec::new();
        let sends = self.flows[flow].sizes[side] > 0;
        let own = &mut self.flows[flow].sides[side];
        while let Some(output) = own.endpoint.poll_output(now) {
            match output {
                Output::Transmit(_, packet) => leaving.push(packet),
                Output::Event(_) => {
                    own.completed += 1;
                    own.completed_at = Some(now);
                }
                Output::Drop(..) => panic!("an endpoint drops nothing"),
            }
        }
        leaving.iter().for_each(|packet| own.on_sent(packet, now));
        own.check(now, sends);
        let hops = &self.flows[flow].hops;
        let hop = if side == 0 { hops.start } else { hops.end - 1 };
        for packet in leaving {
            self.forward(Arrival { flow, way: side, hop: Some(hop), packet }, hop);
        }
    }
    fn step(&mut self) -> bool {
        let arrival = self.arrivals.next_at();
        let sides = self.flows.iter().flat_map(|flow| &flow.sides);
        let timer = sides.filter_map(|side| side.endpoint.poll_timeout()).min();
        let Some(next) = [arrival, timer].into_iter().flatten().min().filter(|at| *at <= END) else {
            return false;
        };
        assert!(next >= self.now, "time does not go back");
        self.now = next;
        if timer == Some(next) {
            for flow in 0..self.flows.len() {
                for side in 0..2 {
                    self.flows[flow].sides[side].endpoint.handle_timeout(next);
                    self.drain(flow, side);
                }
            }
            return true;
        }
        let arrival = self.arrivals.pop().expect("an arrival is due");
        if let Some(hop) = arrival.hop {
            self.forward(arrival, hop);
            return true;
        }
        let (flow, side) = (arrival.flow, 1 - arrival.way);
        let own = &mut self.flows[flow].sides[side];
        let tcp = arrival.packet.tcp_header().expect("an endpoint sends TCP");
        if tcp.flags.contains(TcpFlags::SYN) {
            own.received.begin(tcp.seq + 1);
            own.opened_at.get_or_insert(next);
        }
        own.received.on_segment(&arrival.packet);
        own.endpoint.handle_packet(next, Port(0), arrival.packet);
        self.drain(flow, side);
        true
    }
}

impl Side {
    fn on_sent(&mut self, packet: &Packet, now: Instant) {
        let tcp = packet.tcp_header().expect("an endpoint sends TCP");
        self.opened_at.get_or_insert(now);
        let end = tcp.seq + tcp.payload_len;
        let new = end.distance(self.config.isn + 1 + self.sent as u32);
        self.sent += u64::try_from(new).unwrap_or(0);
        if tcp.flags.contains(TcpFlags::ACK)
            && let Some(most) = self.received.largest_ack()
        {
            assert!(tcp.ack <= most, "{tcp:?} acknowledges more than was received");
        }
    }
    fn check(&mut self, now: Instant, sends: bool) {
        crate::model::check(&self.endpoint, now, &self.config);
        // The limits add up to the connection's lifetime, to the nanosecond.
        let end = self.completed_at.unwrap_or(now);
        let life = self.opened_at.filter(|_| sends).map_or(Duration::ZERO, |at| end.since(at));
        assert_eq!(self.endpoint.limits(now).life(), life, "{:?}", self.endpoint.limits(now));
        let (snapshot, stats) = (self.endpoint.snapshot(), *self.endpoint.stats());
        let segment = u64::from(self.config.segment_size);
        let told = || format!("{:?}\n{:?}\n{snapshot:?} {stats:?}", self.config, self.before);
        assert!(stats.bytes_received <= self.received.contiguous(), "{}", told());
        // Slow start, the fastest growth, opens the window by the bytes delivered.
        let most = u64::from(self.config.initial_window.max(4)) * segment + self.sent;
        assert!(snapshot.cwnd.0 <= most + segment, "the window is above {most}: {}", told());
        // FIN counts one, and a tail loss probe is in flight beside the segment that it repeats.
        let probe = u64::from(stats.tail_loss_probes > 0) * segment;
        let outstanding = self.sent + 1 - stats.bytes_acked + probe;
        assert!(snapshot.in_flight.0 <= outstanding, "of {outstanding}: {}", told());
        let (before, old) = self.before;
        // A loss during the reduction after an ECN echo does not reduce the window again.
        let fell = stats.ecn_reductions > 0 && snapshot.ssthresh == before.ssthresh;
        if let Some(factor) = largest_factor(self.config.variant)
            && stats.fast_recoveries > old.fast_recoveries
            && !fell
        {
            let from = before.cwnd.0.max(if before.ssthresh.0 == u64::MAX { 0 } else { before.ssthresh.0 });
            let law = (factor * from as f64).max(2.0 * segment as f64) + segment as f64;
            assert!(snapshot.ssthresh.0 as f64 <= law, "ssthresh is above {law}: {}", told());
        }
        self.before = (snapshot, stats);
    }
}

/// The largest factor by which a loss multiplies the window, for the variants with a factor.
fn largest_factor(variant: Variant) -> Option<f64> {
    match variant {
        Variant::Tahoe | Variant::Reno | Variant::NewReno => Some(0.5),
        Variant::Cubic => Some(0.7),
        Variant::Veno => Some(0.8),
        Variant::Illinois => Some(0.875),
        _ => None,
    }
}

#[test]
fn every_byte_arrives_once_over_random_topologies() {
    let first = std::env::var("PACELINE_SWARM_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for seed in first..first + SEEDS {
        println!("seed {seed}"); // shown on failure
        let mut world = World::random(seed);
        for flow in 0..world.flows.len() {
            world.drain(flow, 0);
        }
        let mut steps = 0u64;
        while world.step() {
            steps += 1;
            assert!(steps < 20_000_000, "seed {seed}: no end");
        }
        for (number, flow) in world.flows.iter().enumerate() {
            for (index, side) in flow.sides.iter().enumerate() {
                let (snapshot, stats) = (side.endpoint.snapshot(), side.endpoint.stats());
                let told = format!(
                    "seed {seed} flow {number} side {index}: {:?}\n{snapshot:?} {stats:?}",
                    side.config
                );
                assert_eq!(stats.bytes_received, flow.sizes[1 - index], "{told}");
                assert_eq!(side.received.contiguous(), flow.sizes[1 - index], "{told}");
                assert_eq!(stats.bytes_acked, flow.sizes[index], "{told}");
                assert_eq!(side.completed, u32::from(flow.sizes[index] > 0), "{told}");
                assert!(matches!(snapshot.state, "time-wait" | "closed"), "{told}");
                assert_eq!(snapshot.in_flight, Bytes::ZERO, "{told}");
            }
        }
    }
}
