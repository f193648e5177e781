//! The connections of a capture, by capture point and ends, with the clock of each capture point.

use crate::connection::Connection;
use crate::segment::{self, Content, Segment};
use crate::signs::period::Findings;
use paceline_import::capture::stream::Captured;
use paceline_net::{Duration, Instant, TcpFlags};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Most connections that are followed. Chosen: they take less than a gigabyte with their reports.
const MAX_CONNECTIONS: usize = 100_000;
/// Step back of the clock from which on it was set, ns. Chosen: packets of several queues or files are out of
/// order by less.
const CLOCK_STEP_NS: u64 = 1_000_000_000;

/// Counts of packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// All packets.
    pub packets: u64,
    /// TCP segments.
    pub tcp: u64,
    /// Segments of which the TCP header was not captured.
    pub cut_headers: u64,
    /// Segments of which TCP options were not captured.
    pub cut_options: u64,
    /// Packets whose time is before that of the packet in front.
    pub disordered: u64,
    /// Steps back of the clock.
    pub clock_steps: u64,
    /// Segments of connections beyond the most that are followed.
    pub not_followed: u64,
}

/// A capture point: an interface of a file, or of several files that follow each other.
#[derive(Clone, Debug)]
pub struct Point {
    /// Group of files, and interface in them.
    pub id: (usize, u32),
    /// Periods of its cell.
    pub periods: Findings,
    last: Instant,
    /// Time that is added since the clock was set back.
    offset: Duration,
}

/// Point and both ends of a connection, the lower address first.
type Key = (usize, SocketAddr, SocketAddr);

/// All connections so far.
#[derive(Debug, Default)]
pub struct Tracker {
    /// Connections in the order of their first segments.
    pub connections: Vec<Connection>,
    /// Capture points.
    pub points: Vec<Point>,
    /// Counts of packets.
    pub counts: Counts,
    /// Times of the first and the last packet.
    pub span: Option<(Instant, Instant)>,
    index: BTreeMap<Key, usize>,
    point_index: BTreeMap<(usize, u32), usize>,
    /// Group of the present file.
    pub group: usize,
    starts_file: bool,
    here: Option<usize>,
}

impl Tracker {
    /// A tracker; `here` is the end at which the capture was made, if its maker says.
    pub fn new(here: Option<usize>) -> Self {
        Self { here, ..Self::default() }
    }
    /// Another file begins. If its first packet is not after the last one, it is of another capture point.
    pub fn next_file(&mut self) {
        self.starts_file = self.span.is_some();
    }
    /// The next packet.
    pub fn on_packet(&mut self, captured: &Captured<'_>) {
        let at = Instant::from_nanos(captured.at_ns);
        if std::mem::take(&mut self.starts_file) && self.span.is_some_and(|(_, last)| at < last) {
            self.group += 1;
        }
        self.counts.packets += 1;
        let (first, last) = self.span.unwrap_or((at, at));
        self.span = Some((first.min(at), last.max(at)));
        let mut segment = match segment::content(captured) {
            Content::Tcp(segment, is_cut) => {
                self.counts.cut_options += u64::from(is_cut);
                segment
            }
            Content::CutTcp => {
                self.counts.cut_headers += 1;
                return;
            }
            Content::Other => return,
        };
        self.counts.tcp += 1;
        let point = self.point((self.group, captured.interface), at);
        segment.at = self.time(point, at);
        self.on_segment(point, &segment);
    }
    fn on_segment(&mut self, point: usize, segment: &Segment) {
        let key = (point, segment.src.min(segment.dst), segment.src.max(segment.dst));
        let known = self.index.get(&key).copied();
        let index = match known.filter(|index| !self.connections[*index].is_followed_by(segment)) {
            Some(index) => index,
            None if self.connections.len() == MAX_CONNECTIONS => {
                self.counts.not_followed += 1;
                return;
            }
            None => {
                self.connections.push(Connection::new(point, segment, self.here));
                let index = self.connections.len() - 1;
                self.index.insert(key, index);
                index
            }
        };
        let rtt = self.connections[index].on_segment(segment);
        let periods = &mut self.points[point].periods;
        let at_ns = segment.at.as_nanos();
        if segment.len > 0 {
            periods.on_data(at_ns);
        } else if segment.ack.is_some() && !segment.has(TcpFlags::SYN) {
            periods.on_ack(at_ns, rtt);
        }
    }
    fn point(&mut self, id: (usize, u32), at: Instant) -> usize {
        let next = self.points.len();
        let index = *self.point_index.entry(id).or_insert(next);
        if index == next {
            self.points.push(Point { id, periods: Findings::default(), last: at, offset: Duration::ZERO });
        }
        index
    }
    /// The time of a packet on a clock that does not go back.
    fn time(&mut self, point: usize, at: Instant) -> Instant {
        let point = &mut self.points[point];
        let shifted = at + point.offset;
        if shifted < point.last {
            let back = point.last.since(shifted);
            if back.as_nanos() >= CLOCK_STEP_NS {
                point.offset += back;
                self.counts.clock_steps += 1;
            } else {
                self.counts.disordered += 1;
            }
        } else {
            point.last = shifted;
        }
        point.last
    }
}
