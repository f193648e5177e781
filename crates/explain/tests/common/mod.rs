//! Captures for tests: packets in Ethernet frames as pcap, and a sender and receiver at a queue whose packets
//! pass a capture point at the server.

use paceline_explain::report::Explanation;
use paceline_explain::{Explainer, Taken};
use std::collections::{BTreeMap, BTreeSet};

pub const SYN: u8 = 2;
pub const PSH: u8 = 8;
pub const ACK: u8 = 16;
/// Payload of a full segment.
pub const FULL: u32 = 1000;
/// Initial sequence numbers of client and server.
const ISN: [u32; 2] = [1000, 0xffff_f000];

/// A segment to be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    pub at_us: u64,
    pub from_server: bool,
    /// Positions behind the SYN.
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub len: u32,
    pub port: u16,
    /// TTL, 64 if 0.
    pub ttl: u8,
}

/// The datagram of a segment, of which the payload is left out.
pub fn datagram(segment: &Segment, identification: u16) -> Vec<u8> {
    let (own, other) = (usize::from(segment.from_server), usize::from(!segment.from_server));
    let is_syn = segment.flags & SYN != 0;
    let options: &[u8] = if is_syn { &[2, 4, 0x03, 0xe8, 3, 3, 7, 0] } else { &[] };
    let header = 20 + options.len();
    let total = (20 + header) as u16 + segment.len as u16;
    let addresses = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let ports = [40_000 + segment.port, 80];
    let seq = ISN[own].wrapping_add(u32::from(!is_syn)).wrapping_add(segment.seq);
    let ack = ISN[other].wrapping_add(1).wrapping_add(segment.ack);
    let mut bytes = vec![0x45, 0];
    bytes.extend(total.to_be_bytes());
    bytes.extend(identification.to_be_bytes());
    bytes.extend([0x40, 0, if segment.ttl == 0 { 64 } else { segment.ttl }, 6, 0, 0]);
    bytes.extend(addresses[own]);
    bytes.extend(addresses[other]);
    bytes.extend(ports[own].to_be_bytes());
    bytes.extend(ports[other].to_be_bytes());
    bytes.extend(seq.to_be_bytes());
    bytes.extend(if segment.flags & ACK == 0 { [0; 4] } else { ack.to_be_bytes() });
    bytes.extend([(header / 4 * 16) as u8, segment.flags]);
    bytes.extend(segment.window.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(options);
    bytes
}

/// The heading of a pcap file with microseconds and this link type.
pub fn heading(link: u32) -> Vec<u8> {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(65_535u32.to_le_bytes());
    bytes.extend(link.to_le_bytes());
    bytes
}

/// A packet of a pcap file; `len` bytes on the link.
pub fn record(at_us: u64, data: &[u8], len: usize) -> Vec<u8> {
    let fields = [at_us / 1_000_000, at_us % 1_000_000, data.len() as u64, len as u64];
    let mut bytes: Vec<u8> = fields.into_iter().flat_map(|field| (field as u32).to_le_bytes()).collect();
    bytes.extend(data);
    bytes
}

/// A pcap file of segments in Ethernet frames.
pub fn pcap(segments: &[Segment]) -> Vec<u8> {
    let mut file = heading(1);
    for (index, segment) in segments.iter().enumerate() {
        let mut frame = vec![0; 12];
        frame.extend([8, 0]);
        frame.extend(datagram(segment, index as u16 + 1));
        let len = frame.len() + segment.len as usize;
        file.extend(record(segment.at_us, &frame, len));
    }
    file
}

pub fn explain(file: &[u8]) -> Explanation {
    let mut explainer = Explainer::new(Taken::Unknown);
    explainer.read("test", file).expect("it is a capture");
    explainer.finish(None)
}

/// A download: a sender with a fixed congestion window, a queue with a service time per segment, and a
/// receiver that acknowledges each segment.
pub struct Download {
    /// Segments of data.
    pub segments: u64,
    /// Congestion window in segments.
    pub window: u64,
    /// Advertised window in bytes.
    pub advertised: u64,
    /// Service time of the queue for a segment.
    pub service_us: u64,
    /// Round trip without the queue.
    pub base_us: u64,
    /// Segments whose first copy is lost.
    pub lost: Vec<u64>,
    /// Time in which nothing is served.
    pub pause_us: Option<(u64, u64)>,
    /// Segments that the application writes at a time, and the interval.
    pub writes: Option<(u64, u64)>,
    /// Bucket of a policer in bytes, and its rate in bytes per ms; the window then grows and is halved.
    pub policer: Option<(u64, u64)>,
}

impl Default for Download {
    fn default() -> Self {
        Self {
            segments: 3000,
            window: 20,
            advertised: 4_000_000,
            service_us: 10,
            base_us: 50_000,
            lost: Vec::new(),
            pause_us: None,
            writes: None,
            policer: None,
        }
    }
}

/// Retransmission timer of the sender.
const TIMER_US: u64 = 300_000;

impl Download {
    /// The segments as they pass the server.
    pub fn segments(&self) -> Vec<Segment> {
        let mut run = Run { passed: handshake(self.base_us), ..Run::default() };
        run.now = self.base_us + 1000;
        run.tokens = self.policer.map_or(0.0, |(bucket, _)| bucket as f64);
        run.window = if self.policer.is_some() { 10.0 } else { self.window as f64 };
        run.threshold = f64::INFINITY;
        run.send(self);
        while run.una < self.segments {
            let next_write = self.writes.map(|(_, every)| (run.now / every + 1) * every);
            let ack = run.acks.first_key_value().map(|((at, _), _)| *at);
            let timer = (run.una < run.next).then(|| run.last_us + TIMER_US);
            let Some(at) = [ack, next_write, timer].into_iter().flatten().min() else { break };
            run.now = at.max(run.now);
            if ack == Some(at) {
                let (_, ack) = run.acks.pop_first().expect("there is one");
                run.on_ack(self, ack);
            } else if timer == Some(at) {
                run.on_timer(self);
            }
            run.send(self);
        }
        run.passed
    }
    pub fn pcap(&self) -> Vec<u8> {
        pcap(&self.segments())
    }
}

/// The handshake as it passes the server.
pub fn handshake(base_us: u64) -> Vec<Segment> {
    let open = Segment { window: 60_000, ..Segment::default() };
    vec![
        Segment { flags: SYN, at_us: 500, ..open },
        Segment { flags: SYN | ACK, at_us: 510, from_server: true, ..open },
        Segment { flags: ACK, at_us: base_us + 510, ..open },
    ]
}

/// The state of a download.
#[derive(Default)]
struct Run {
    passed: Vec<Segment>,
    now: u64,
    una: u64,
    next: u64,
    duplicates: u64,
    last_us: u64,
    free_us: u64,
    received: BTreeSet<u64>,
    cumulative: u64,
    lost_once: BTreeSet<u64>,
    /// ACKs on their way, by time and number.
    acks: BTreeMap<(u64, u64), u64>,
    count: u64,
    /// Tokens of the policer and their time.
    tokens: f64,
    filled_us: u64,
    /// Congestion window, slow-start threshold and end of the repair, in segments.
    window: f64,
    threshold: f64,
    repair_end: u64,
}

impl Run {
    fn written(&self, download: &Download) -> u64 {
        let all = download.writes.map(|(segments, every)| segments * (self.now / every));
        all.unwrap_or(u64::MAX).min(download.segments)
    }
    fn send(&mut self, download: &Download) {
        let window = (self.window as u64).min(download.advertised / u64::from(FULL));
        while self.next < self.written(download) && self.next < self.una + window {
            self.transmit(download, self.next);
            self.next += 1;
        }
    }
    fn transmit(&mut self, download: &Download, index: u64) {
        self.now += 1;
        self.last_us = self.now;
        let ends = index + 1 == self.written(download);
        self.passed.push(Segment {
            at_us: self.now,
            from_server: true,
            seq: index as u32 * FULL,
            flags: if ends { ACK | PSH } else { ACK },
            window: 500,
            len: FULL,
            ..Segment::default()
        });
        let mut start = self.free_us.max(self.now);
        if let Some((from, to)) = download.pause_us.filter(|(from, to)| (*from..*to).contains(&start)) {
            start = to.max(from);
        }
        self.free_us = start + download.service_us;
        if download.lost.contains(&index) && self.lost_once.insert(index) || self.is_policed(download) {
            return;
        }
        self.received.insert(index);
        while self.received.remove(&self.cumulative) {
            self.cumulative += 1;
        }
        self.count += 1;
        self.acks.insert((self.free_us + download.base_us, self.count), self.cumulative);
    }
    fn is_policed(&mut self, download: &Download) -> bool {
        let Some((bucket, per_ms)) = download.policer else { return false };
        let filled = (self.now - self.filled_us) as f64 * per_ms as f64 / 1000.0;
        (self.tokens, self.filled_us) = ((self.tokens + filled).min(bucket as f64), self.now);
        let is_policed = self.tokens < f64::from(FULL);
        self.tokens -= if is_policed { 0.0 } else { f64::from(FULL) };
        is_policed
    }
    fn on_timer(&mut self, download: &Download) {
        self.halve(download);
        self.repair_end = self.next;
        self.transmit(download, self.una);
    }
    fn halve(&mut self, download: &Download) {
        if download.policer.is_some() {
            self.window = (self.window / 2.0).max(2.0);
            self.threshold = self.window;
        }
    }
    fn on_ack(&mut self, download: &Download, ack: u64) {
        self.last_us = self.now;
        self.passed.push(Segment {
            at_us: self.now,
            ack: ack as u32 * FULL,
            flags: ACK,
            window: (download.advertised / 128) as u16,
            ..Segment::default()
        });
        if ack > self.una {
            let acked = (ack - self.una) as f64;
            (self.una, self.duplicates) = (ack, 0);
            if ack < self.repair_end {
                self.transmit(download, ack);
            } else if download.policer.is_some() {
                let is_slow_start = self.window < self.threshold;
                self.window += if is_slow_start { acked } else { acked / self.window };
            }
            return;
        }
        self.duplicates += 1;
        if self.duplicates == 3 && ack >= self.repair_end {
            self.halve(download);
            if download.policer.is_some() {
                self.repair_end = self.next;
            }
            self.transmit(download, self.una);
        }
    }
}
