//! Captures: the packets of each connection at each capture point.
//!
//! ```text
//! packet -> segment (of explain) -> Flow at a point -> Direction: data, acknowledgments
//!        -> echo: requests and answers of ping
//! ```

mod clock;
mod direction;
mod echo;

pub use clock::TsClock;
pub use direction::{Ack, Data, Direction};
pub use echo::{Echo, Echoes};
use paceline_explain::segment::{self, Content, Segment};
use paceline_import::capture::stream::{self, Captured};
use paceline_net::TcpFlags;
use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;

/// Most packets that are kept. Chosen: about 2 GB; the rest of a capture is left out, which is said.
const MAX_PACKETS: usize = 20_000_000;

/// A connection at a capture point.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Number of the capture point.
    pub point: usize,
    /// Client and server.
    pub ends: [SocketAddr; 2],
    /// Data of the client, data of the server.
    pub directions: [Direction; 2],
    /// Times of the SYN, the SYN-ACK and the ACK of it, ns.
    pub handshake: [Option<u64>; 3],
    /// Whether a SYN or SYN-ACK was sent twice.
    pub syn_repeated: bool,
    /// Passing times and TSvals that wait for their echo, by the end that the segment came from, and the
    /// round trips from the point to each end and back: sent, came back.
    waiting: [Vec<(u32, u64)>; 2],
    /// Round trips to each end by first echoes of TSvals: time of passing, round trip, ns.
    pub echoes: [Vec<(u64, u64)>; 2],
}

/// A capture point.
#[derive(Clone, Debug)]
pub struct Point {
    /// Name of the interface or of the file.
    pub name: String,
    /// Echo requests and answers.
    pub echoes: Echoes,
}

/// All connections of the captures.
#[derive(Clone, Debug, Default)]
pub struct Captures {
    /// Capture points.
    pub points: Vec<Point>,
    /// Connections in the order of their first segments.
    pub flows: Vec<Flow>,
    /// Statements about the files.
    pub notes: Vec<String>,
    /// Time of the first packet, ns.
    pub start: Option<u64>,
    /// Time of the last packet, ns.
    pub end: u64,
    packets: usize,
    index: BTreeMap<(usize, SocketAddr, SocketAddr), usize>,
}

impl Captures {
    /// Reads a capture; with `interfaces` these alone.
    pub fn read(&mut self, name: &str, file: impl Read, interfaces: &[String]) -> Result<(), String> {
        let base = self.points.len();
        let mut by_interface: BTreeMap<u32, usize> = BTreeMap::new();
        let before = self.packets;
        let reading = stream::read(file, |packet| {
            let next = base + by_interface.len();
            let point = *by_interface.entry(packet.interface).or_insert(next);
            if point == self.points.len() {
                self.points.push(Point { name: name.to_owned(), echoes: Echoes::default() });
            }
            self.on_packet(point, packet);
        })?;
        for (number, point) in &by_interface {
            let own = reading.names.get(*number as usize).filter(|name| !name.is_empty());
            if let Some(own) = own {
                self.points[*point].name.clone_from(own);
            }
        }
        if !interfaces.is_empty() {
            let names: Vec<&str> =
                by_interface.values().map(|point| self.points[*point].name.as_str()).collect();
            if let Some(wanted) = interfaces.iter().find(|wanted| !names.contains(&wanted.as_str())) {
                return Err(format!("--interface {wanted}: allowed: {}", names.join(", ")));
            }
            let keep: Vec<bool> = self.points.iter().map(|point| interfaces.contains(&point.name)).collect();
            self.flows.retain(|flow| flow.point < base || keep[flow.point]);
            for (index, point) in self.points.iter_mut().enumerate().skip(base) {
                if !keep[index] {
                    point.echoes = Echoes::default();
                }
            }
            self.index.clear();
        }
        if let Some(damage) = reading.damage {
            self.notes.push(format!("{name}: {damage}: the packets before that are used"));
        }
        if reading.without_time > 0 {
            self.notes.push(format!("{name}: {} packets without a time: left out", reading.without_time));
        }
        if self.packets >= MAX_PACKETS {
            self.notes.push(format!("{name}: the first {MAX_PACKETS} packets are used"));
        }
        if self.packets == before {
            self.notes.push(format!("{name}: no packets"));
        }
        Ok(())
    }
    /// A packet of a simulation, which has one capture point.
    pub fn on_simulated(&mut self, packet: &Captured<'_>) {
        if self.points.is_empty() {
            self.points.push(Point { name: "simulation".to_owned(), echoes: Echoes::default() });
        }
        self.on_packet(0, packet);
    }
    fn on_packet(&mut self, point: usize, packet: &Captured<'_>) {
        if self.packets >= MAX_PACKETS {
            return;
        }
        self.packets += 1;
        self.start = Some(self.start.map_or(packet.at_ns, |start| start.min(packet.at_ns)));
        self.end = self.end.max(packet.at_ns);
        match segment::content(packet) {
            Content::Tcp(segment, _) => self.on_segment(point, &segment),
            Content::CutTcp => {}
            Content::Other => self.points[point].echoes.on_packet(packet),
        }
    }
    fn on_segment(&mut self, point: usize, segment: &Segment) {
        let key = (point, segment.src.min(segment.dst), segment.src.max(segment.dst));
        let is_open = segment.has(TcpFlags::SYN) && segment.ack.is_none();
        let known = self.index.get(&key).copied().filter(|index| {
            // Another connection between the same ends begins with a SYN after data.
            !(is_open && self.flows[*index].directions.iter().any(|direction| direction.bytes > 0))
        });
        let index = known.unwrap_or_else(|| {
            self.flows.push(Flow::new(point, segment));
            self.index.insert(key, self.flows.len() - 1);
            self.flows.len() - 1
        });
        self.flows[index].on_segment(segment);
    }
}

impl Flow {
    fn new(point: usize, first: &Segment) -> Self {
        let (is_syn, is_ack) = (first.has(TcpFlags::SYN), first.ack.is_some());
        let by_client = if is_syn { !is_ack } else { first.src.port() >= first.dst.port() };
        Self {
            point,
            ends: if by_client { [first.src, first.dst] } else { [first.dst, first.src] },
            directions: Default::default(),
            handshake: [None; 3],
            syn_repeated: false,
            waiting: Default::default(),
            echoes: Default::default(),
        }
    }
    fn on_segment(&mut self, segment: &Segment) {
        let from = usize::from(segment.src != self.ends[0]);
        let at = segment.at.as_nanos();
        if segment.has(TcpFlags::SYN) {
            let stage = usize::from(segment.ack.is_some());
            self.syn_repeated |= self.handshake[stage].is_some();
            self.handshake[stage].get_or_insert(at);
        } else if from == 0 && self.handshake[1].is_some() && self.handshake[2].is_none() {
            self.handshake[2] = Some(at);
        }
        let has_new = segment.len > 0;
        self.on_timestamps(segment, from, has_new);
        self.directions[from].on_sent(segment);
        self.directions[1 - from].on_answer(segment);
    }
    /// First echo of a TSval (Strowes, "Passively measuring TCP round-trip times", 2013). The end must have
    /// answered at once: data of an end that has data in flight do, since ACKs clock them.
    fn on_timestamps(&mut self, segment: &Segment, from: usize, has_data: bool) {
        let Some((value, echo)) = segment.options.timestamps else { return };
        let at = segment.at.as_nanos();
        // From the point to `from` and back: this segment echoes one that went there.
        let waiting = &mut self.waiting[1 - from];
        if let Some(found) = waiting.iter().position(|(waits, _)| *waits == echo) {
            let (_, passed) = waiting[found];
            waiting.drain(..=found);
            let is_clocked =
                has_data && self.directions[from].data.last().is_some_and(|last| last.acked_at.is_none());
            if is_clocked || !has_data {
                self.echoes[from].push((passed, at.saturating_sub(passed)));
            }
        }
        let own = &mut self.waiting[from];
        // TSvals that wait, at most. Chosen: more than the ticks of a long round trip.
        if own.last().is_none_or(|(last, _)| (value.wrapping_sub(*last) as i32) > 0) && own.len() < 4096 {
            own.push((value, at));
        }
    }
    /// The end, 0 or 1, that sends more data, and its direction.
    pub fn main(&self) -> (usize, &Direction) {
        let from = usize::from(self.directions[1].bytes >= self.directions[0].bytes);
        (from, &self.directions[from])
    }
    /// The handshake's halves: from the point to the server and back, to the client and back, ns.
    pub fn handshake_halves(&self) -> [Option<u64>; 2] {
        if self.syn_repeated {
            return [None, None];
        }
        let [syn, syn_ack, ack] = self.handshake;
        let between = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?));
        [between(syn_ack, ack), between(syn, syn_ack)]
    }
}
