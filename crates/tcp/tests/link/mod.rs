//! Two endpoints over an emulated link: each direction has a rate, a delay, a drop-tail queue and a loss
//! rule. An observer that shares no code with the endpoints checks their acknowledgments.
#![allow(dead_code)] // each test file uses its part

mod arrivals;
pub mod shared;

pub use arrivals::Arrivals;
use paceline_net::test_support::Reassembly;
use paceline_net::{
    Bytes, Duration, Event, Instant, Node, Output, Packet, Port, Rate, SeqNumber, Stream, TcpFlags, Transport,
};
use paceline_tcp::{Endpoint, EndpointConfig, Source};

/// Decides whether the packet with this number, counted from 1, is lost.
type Loss = Box<dyn FnMut(u64, &Packet) -> bool>;
/// Modifies a packet in flight.
type Alteration = Box<dyn FnMut(Instant, &mut Packet)>;

/// One direction.
pub struct Direction {
    pub rate: Rate,
    pub delay: Duration,
    pub queue: Bytes,
    pub loss: f64,
    /// Loses the packets for which it returns true.
    pub lose: Loss,
    pub alter: Alteration,
    /// Extra delay of a packet by its number and the time at which it leaves the queue; packets may be
    /// reordered.
    pub extra: Box<dyn FnMut(u64, Instant) -> Duration>,
    stream: Stream,
    busy_until: Instant,
    count: u64,
    pub dropped: u64,
}

impl Direction {
    pub fn new(rate: Rate, delay: Duration, queue: Bytes) -> Self {
        Self {
            rate,
            delay,
            queue,
            loss: 0.0,
            lose: Box::new(|_, _| false),
            alter: Box::new(|_, _| {}),
            extra: Box::new(|_, _| Duration::ZERO),
            stream: Stream::new(1, "unused"),
            busy_until: Instant::ZERO,
            count: 0,
            dropped: 0,
        }
    }
    pub fn lossy(mut self, loss: f64, seed: u64, name: &str) -> Self {
        self.loss = loss;
        self.stream = Stream::new(seed, name);
        self
    }
    pub fn losing(mut self, lose: impl FnMut(u64, &Packet) -> bool + 'static) -> Self {
        self.lose = Box::new(lose);
        self
    }
    /// The arrival time of a packet; `None` if it is lost.
    pub fn accept(&mut self, now: Instant, packet: &Packet) -> Option<Instant> {
        self.count += 1;
        let len = Bytes(u64::from(packet.len));
        let backlog = self.busy_until.since(now);
        let queued = u128::from(backlog.as_nanos()) * u128::from(self.rate.0) / 8_000_000_000;
        let full = !backlog.is_zero() && queued as u64 + len.0 > self.queue.0;
        if full || self.stream.chance(self.loss) || (self.lose)(self.count, packet) {
            self.dropped += 1;
            return None;
        }
        self.busy_until = self.busy_until.max(now) + self.rate.time_to_send(len);
        Some(self.busy_until + self.delay + (self.extra)(self.count, self.busy_until))
    }
}

/// Checks the acknowledgments of one side against the segments that reached it.
#[derive(Default)]
struct Observer {
    received: Reassembly,
    /// The newest acknowledgment that the side has sent.
    acked: Option<SeqNumber>,
}

impl Observer {
    fn on_delivered(&mut self, packet: &Packet) {
        let tcp = packet.tcp_header().expect("the endpoints speak TCP");
        if tcp.flags.contains(TcpFlags::SYN) {
            self.received.begin(tcp.seq + 1);
        }
        self.received.on_segment(packet);
    }
    /// An acknowledgment never moves back and never exceeds the bytes received in order; with `exact` it
    /// equals them.
    fn check_ack(&mut self, packet: &Packet, exact: bool) {
        let tcp = packet.tcp_header().expect("the endpoints speak TCP");
        let Some(received) = self.received.ack().filter(|_| tcp.flags.contains(TcpFlags::ACK)) else {
            return;
        };
        assert!(tcp.ack <= received, "the ACK {:?} is beyond {received:?}", tcp.ack);
        let before = *self.acked.get_or_insert(tcp.ack);
        assert!(tcp.ack >= before, "the ACK {:?} moves back from {before:?}", tcp.ack);
        self.acked = Some(tcp.ack);
        assert!(
            !exact || tcp.ack == received,
            "the ACK {:?} differs from {received:?}, which was received",
            tcp.ack
        );
        for (left, right) in tcp.options.sack.as_slice() {
            assert!(left < right, "a SACK block is not empty");
        }
    }
}

/// Client, server and the link between them.
pub struct World {
    pub client: Endpoint,
    pub server: Endpoint,
    /// From client to server, and back.
    pub links: [Direction; 2],
    pub now: Instant,
    pub completed: Vec<Instant>,
    /// Times at which a side, 0 or 1, gave the connection up.
    pub given_up: Vec<(Instant, usize)>,
    pub steps: u64,
    /// Whether an ACK must acknowledge everything received in order, not only no more.
    pub exact: bool,
    /// Whether acknowledgments are checked at all.
    pub observing: bool,
    /// Receiving side and packet.
    arrivals: Arrivals<(usize, Packet)>,
    observers: [Observer; 2],
}

/// The usual configuration of client and server.
pub fn configs() -> (EndpointConfig, EndpointConfig) {
    let client = "198.18.0.1:40000".parse().expect("an address");
    let server = "198.18.0.2:80".parse().expect("an address");
    (EndpointConfig::new(client, server), EndpointConfig::new(server, client))
}

impl World {
    pub fn new(client: Endpoint, server: Endpoint, links: [Direction; 2]) -> Self {
        Self {
            client,
            server,
            links,
            now: Instant::ZERO,
            completed: Vec::new(),
            given_up: Vec::new(),
            steps: 0,
            exact: true,
            observing: true,
            arrivals: Arrivals::default(),
            observers: [Observer::default(), Observer::default()],
        }
    }
    /// A client that uploads `source`.
    pub fn upload(
        client: EndpointConfig,
        server: EndpointConfig,
        source: Source,
        links: [Direction; 2],
    ) -> Self {
        Self::new(Endpoint::connect(client, source), Endpoint::listen(server, Source::Nothing), links)
    }
    fn side(&mut self, side: usize) -> &mut Endpoint {
        if side == 0 { &mut self.client } else { &mut self.server }
    }
    fn drain(&mut self) {
        for side in 0..2 {
            let now = self.now;
            while let Some(output) = self.side(side).poll_output(now) {
                match output {
                    Output::Transmit(_, mut packet) => {
                        if self.observing {
                            self.observers[side].check_ack(&packet, self.exact);
                        }
                        (self.links[side].alter)(now, &mut packet);
                        if let Some(at) = self.links[side].accept(now, &packet) {
                            self.arrivals.push(at, (1 - side, packet));
                        }
                    }
                    Output::Event(event) => match *event {
                        Event::TransferComplete(_) => self.completed.push(now),
                        Event::ConnectionTimedOut(_) => self.given_up.push((now, side)),
                        Event::ServingCell(_) => panic!("an endpoint has no cell"),
                    },
                    Output::Drop(..) => panic!("an endpoint drops nothing"),
                }
            }
        }
    }
    /// Handles the next arrival or timer; false if there is none until `end`.
    pub fn step(&mut self, end: Instant) -> bool {
        self.drain();
        let arrival = self.arrivals.next_at();
        let next =
            [arrival, self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= end) else { return false };
        assert!(next >= self.now, "time does not go back");
        self.now = next;
        self.steps += 1;
        if arrival == Some(next) {
            let (side, packet) = self.arrivals.pop().expect("an arrival is due");
            self.observers[side].on_delivered(&packet);
            self.side(side).handle_packet(next, Port(0), packet);
        } else {
            self.client.handle_timeout(next);
            self.server.handle_timeout(next);
        }
        true
    }
    /// Runs until `end`, or until there is no further arrival or timer.
    pub fn run(&mut self, end: Instant) {
        while self.step(end) {}
    }
    /// Payload bytes that arrived at the server in order, as counted by the observer.
    pub fn observed_at_server(&self) -> u64 {
        self.observers[1].received.contiguous()
    }
    pub fn observed_at_client(&self) -> u64 {
        self.observers[0].received.contiguous()
    }
}

/// A symmetric link with a queue of `queue` bytes in both directions.
pub fn links(rate: &str, delay_ms: u64, queue: u64) -> [Direction; 2] {
    let rate: Rate = rate.parse().expect("a rate");
    [0, 1].map(|_| Direction::new(rate, Duration::from_millis(delay_ms), Bytes(queue)))
}

/// Whether the packet is a TCP segment with payload.
pub fn has_payload(packet: &Packet) -> bool {
    matches!(&packet.transport, Transport::Tcp(tcp) if tcp.payload_len > 0)
}
