//! What passes between the servers and the core network, measured the same way for simulated and for real TCP.
//!
//! Port 0 is the servers' side, port 1 the core's. Per station: bytes acknowledged, data segments and
//! retransmissions, pure ACKs, and round-trip times from a data segment to the ACK that covers it (segments sent
//! more than once give no sample, as in Karn's rule). Round-trip times of uploads are not seen from here.

use hdrhistogram::Histogram;
use paceline_net::{FlowKey, Instant, Node, Output, Packet, Port, SeqNumber, TcpFlags, TcpHeader};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Connections followed at most; more are forwarded without being measured.
const MAX_FLOWS: usize = 100_000;
/// Unacknowledged segments remembered per connection.
const MAX_SEGMENTS: usize = 65_536;

/// Counters of one station.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowCounters {
    /// Payload bytes acknowledged towards the station.
    pub downloaded: u64,
    /// Payload bytes acknowledged from the station.
    pub uploaded: u64,
    /// Data segments seen.
    pub segments: u64,
    /// Of these, sent before.
    pub retransmissions: u64,
    /// Pure ACKs that came from the station.
    pub acks: u64,
    /// Sum of round-trip times in nanoseconds.
    pub rtt_sum: u64,
    /// Number of round-trip times.
    pub rtt_count: u64,
}

/// One direction of data of one connection.
#[derive(Debug)]
struct Flow {
    station: usize,
    snd_una: SeqNumber,
    snd_max: SeqNumber,
    /// Samples end at or before this are ambiguous.
    ambiguous_below: SeqNumber,
    sent: VecDeque<(SeqNumber, Instant)>,
}

/// The measuring point.
pub struct Monitor {
    stations: BTreeMap<IpAddr, usize>,
    flows: BTreeMap<FlowKey, Flow>,
    counters: Vec<FlowCounters>,
    rtt_us: Histogram<u64>,
    output: VecDeque<Output>,
}

impl Monitor {
    /// A monitor that attributes addresses to stations.
    pub fn new(stations: BTreeMap<IpAddr, usize>) -> Self {
        let count = stations.values().max().map_or(0, |last| last + 1);
        Self {
            stations,
            flows: BTreeMap::new(),
            counters: vec![FlowCounters::default(); count],
            rtt_us: new_histogram(),
            output: VecDeque::new(),
        }
    }
    /// Counters of every station.
    pub fn counters(&self) -> &[FlowCounters] {
        &self.counters
    }
    /// Round-trip times in microseconds since the last [`Monitor::restart_rtt`].
    pub fn rtt_us(&self) -> &Histogram<u64> {
        &self.rtt_us
    }
    /// Forgets the distribution of round-trip times.
    pub fn restart_rtt(&mut self) {
        self.rtt_us = new_histogram();
    }

    fn observe(&mut self, now: Instant, packet: &Packet, from_servers: bool) {
        let (Some(tcp), Some(key)) = (packet.tcp_header(), packet.flow_key()) else { return };
        let station = if from_servers { packet.ip.dst } else { packet.ip.src };
        let Some(&station) = self.stations.get(&station) else { return };
        if !from_servers && packet.is_pure_ack() {
            self.counters[station].acks += 1;
        }
        if tcp.flags.intersects(TcpFlags::SYN.with(TcpFlags::RST)) {
            self.flows.remove(&key); // the four-tuple starts anew
        }
        if tcp.payload_len > 0 {
            self.on_data(now, station, key, tcp);
        }
        if tcp.flags.contains(TcpFlags::ACK) {
            self.on_ack(now, key.reversed(), tcp.ack, !from_servers);
        }
    }
    fn on_data(&mut self, now: Instant, station: usize, key: FlowKey, tcp: &TcpHeader) {
        let (start, end) = (tcp.seq, tcp.seq + tcp.payload_len);
        let full = self.flows.len() >= MAX_FLOWS;
        if full && !self.flows.contains_key(&key) {
            return;
        }
        let flow = self.flows.entry(key).or_insert_with(|| Flow {
            station,
            snd_una: start,
            snd_max: start,
            ambiguous_below: start,
            sent: VecDeque::new(),
        });
        self.counters[station].segments += 1;
        if end > flow.snd_max {
            flow.snd_max = end;
            if flow.sent.len() < MAX_SEGMENTS {
                flow.sent.push_back((end, now));
            }
        } else {
            self.counters[station].retransmissions += 1;
            flow.ambiguous_below = flow.ambiguous_below.max(end);
        }
    }
    fn on_ack(&mut self, now: Instant, key: FlowKey, ack: SeqNumber, download: bool) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        // A FIN counts one beyond the data; anything further was never sent.
        let ack = ack.min(flow.snd_max);
        if ack <= flow.snd_una {
            return;
        }
        let counters = &mut self.counters[flow.station];
        let bytes = u64::from(ack - flow.snd_una);
        if download {
            counters.downloaded += bytes;
        } else {
            counters.uploaded += bytes;
        }
        flow.snd_una = ack;
        let mut covered = None;
        while let Some(segment) = flow.sent.pop_front_if(|(end, _)| *end <= ack) {
            covered = Some(segment);
        }
        let ambiguous = |end: SeqNumber| end <= flow.ambiguous_below;
        if let Some((_, sent_at)) = covered.filter(|(end, _)| download && !ambiguous(*end)) {
            let rtt = now.since(sent_at);
            counters.rtt_sum += rtt.as_nanos();
            counters.rtt_count += 1;
            self.rtt_us.saturating_record(rtt.as_nanos() / 1000);
        }
    }
}

fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3).expect("the bounds are valid")
}

impl Node for Monitor {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        self.observe(now, &packet, from == Port(0));
        self.output.push_back(Output::Transmit(Port(1 - from.0), packet));
    }
    fn handle_timeout(&mut self, _now: Instant) {}
    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.output.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
