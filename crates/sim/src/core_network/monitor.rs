//! A measuring point on the path of packets, between the servers and the core network or at a proxy. The
//! monitor reads packets only, and so measures simulated and real TCP the same way.
//!
//! Per station the monitor counts acknowledged bytes, data segments, retransmissions and pure ACKs, and
//! measures round-trip times of downloads from a data segment to the ACK that covers it. Retransmitted
//! segments, and those that were outstanding at a retransmission, give no sample (Karn's algorithm, RFC 6298
//! section 3). Left out: round-trip times of uploads, which cannot be measured on the receiver's side.

use super::flow_table::FlowTable;
use hdrhistogram::Histogram;
use paceline_net::{FlowKey, Instant, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::collections::VecDeque;

/// Most flows (a connection has one per direction of data) with state; packets of further ones are not
/// measured. Chosen: bounds memory against real traffic that opens any number of connections.
const MAX_FLOWS: usize = 100_000;
/// Most unacknowledged segments with a send time per flow. Chosen: 64 MB of segments of 1 kB; bounds memory.
const MAX_SEGMENTS: usize = 65_536;

/// Counters of one station, by its packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowCounters {
    /// Downloaded payload bytes that the station acknowledged.
    pub downloaded: u64,
    /// Uploaded payload bytes that the server acknowledged.
    pub uploaded: u64,
    /// Segments with payload, both directions.
    pub segments: u64,
    /// Of these, retransmissions.
    pub retransmissions: u64,
    /// Pure ACKs from the station.
    pub acks: u64,
    /// Sum of the round-trip times, ns.
    pub rtt_ns: u64,
    /// Number of round-trip times.
    pub rtt_samples: u64,
}

/// One direction of data of one connection.
#[derive(Debug)]
struct Flow {
    snd_una: SeqNumber,
    snd_max: SeqNumber,
    /// Segments that end here or before give no round-trip time.
    ambiguous_below: SeqNumber,
    /// Ends of unacknowledged segments and their send times.
    sent: VecDeque<(SeqNumber, Instant)>,
}

/// The measuring point.
pub struct Monitor {
    /// Per station, flows with data towards the servers and flows with data from the servers.
    flows: Vec<[FlowTable<Flow>; 2]>,
    /// Number of flows of all stations.
    flow_count: usize,
    counters: Vec<FlowCounters>,
    rtt_us: Histogram<u64>,
}

impl Monitor {
    /// A monitor of `stations` stations.
    pub fn new(stations: usize) -> Self {
        Self {
            flows: (0..stations).map(|_| Default::default()).collect(),
            flow_count: 0,
            counters: vec![FlowCounters::default(); stations],
            rtt_us: new_histogram(),
        }
    }
    /// Counters of each station.
    pub fn counters(&self) -> &[FlowCounters] {
        &self.counters
    }
    /// Distribution of the round-trip times since the last [`Monitor::restart_rtt`], us.
    pub fn rtt_us(&self) -> &Histogram<u64> {
        &self.rtt_us
    }
    /// Clears the distribution of round-trip times.
    pub fn restart_rtt(&mut self) {
        self.rtt_us = new_histogram();
    }

    /// A packet of `station` passes, in the direction from the servers or towards them.
    pub fn observe(&mut self, now: Instant, packet: &Packet, station: usize, from_servers: bool) {
        let (Some(tcp), Some(key)) = (packet.tcp_header(), packet.flow_key()) else { return };
        if !from_servers && packet.is_pure_ack() {
            self.counters[station].acks += 1;
        }
        let direction = usize::from(from_servers);
        if tcp.flags.intersects(TcpFlags::SYN.with(TcpFlags::RST)) {
            let known = self.flows[station][direction].remove(&key); // a new connection
            self.flow_count -= usize::from(known);
        }
        if tcp.payload_len > 0 {
            self.on_data(now, station, direction, key, tcp);
        }
        if tcp.flags.contains(TcpFlags::ACK) && !self.flows[station][1 - direction].is_empty() {
            self.on_ack(now, station, key.reversed(), tcp.ack, !from_servers);
        }
    }
    fn on_data(&mut self, now: Instant, station: usize, direction: usize, key: FlowKey, tcp: &TcpHeader) {
        let (start, end) = (tcp.seq, tcp.seq + tcp.payload_len);
        let flow = match self.flows[station][direction].get_mut(&key) {
            Some(flow) => flow,
            None => {
                if !self.has_room() {
                    return;
                }
                self.flow_count += 1;
                let sent = VecDeque::new();
                let flow = Flow { snd_una: start, snd_max: start, ambiguous_below: start, sent };
                self.flows[station][direction].insert(key, flow)
            }
        };
        let counters = &mut self.counters[station];
        counters.segments += 1;
        if end > flow.snd_max {
            flow.snd_max = end;
            if flow.sent.len() < MAX_SEGMENTS {
                flow.sent.push_back((end, now));
            }
        } else {
            counters.retransmissions += 1;
            // Segments behind the hole are acknowledged when the retransmission arrives, not when they
            // arrive.
            flow.ambiguous_below = flow.snd_max;
        }
    }
    /// Whether there is room for another flow. If not, flows without outstanding segments are forgotten: they
    /// lose nothing if their state is made again.
    fn has_room(&mut self) -> bool {
        if self.flow_count < MAX_FLOWS {
            return true;
        }
        let tables = self.flows.iter_mut().flatten();
        self.flow_count = tables
            .map(|flows| {
                flows.retain(|flow| !flow.sent.is_empty());
                flows.len()
            })
            .sum();
        self.flow_count < MAX_FLOWS
    }
    fn on_ack(&mut self, now: Instant, station: usize, key: FlowKey, ack: SeqNumber, download: bool) {
        let Some(flow) = self.flows[station][usize::from(download)].get_mut(&key) else { return };
        // A FIN takes one sequence number beyond the data; no byte beyond was sent.
        let ack = ack.min(flow.snd_max);
        if ack <= flow.snd_una {
            return;
        }
        let counters = &mut self.counters[station];
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
            counters.rtt_ns += rtt.as_nanos();
            counters.rtt_samples += 1;
            self.rtt_us.saturating_record(rtt.as_nanos() / 1000);
        }
    }
}

fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3).expect("the bounds are valid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::test_support::segment;
    use std::net::Ipv4Addr;

    const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 64, 1);
    const STATION: Ipv4Addr = Ipv4Addr::new(198, 18, 128, 1);

    fn monitor() -> Monitor {
        Monitor::new(1)
    }
    /// A segment of the connection, towards the station or from it.
    fn packet(seq: u32, payload_len: u32, flags: TcpFlags, ack: u32, down: bool) -> Packet {
        let download = segment().between(SERVER, STATION).ports(5001, 40_000);
        let upload = segment().between(STATION, SERVER).ports(40_000, 5001);
        let segment = if down { download } else { upload };
        segment.seq(seq).payload_len(payload_len).flags(flags).ack(ack).build()
    }
    /// Data towards the station, 1000 bytes from `seq`.
    fn data(monitor: &mut Monitor, ms: u64, seq: u32) {
        monitor.observe(Instant::from_millis(ms), &packet(seq, 1000, TcpFlags::ACK, 1, true), 0, true);
    }
    fn ack(monitor: &mut Monitor, ms: u64, ack: u32) {
        monitor.observe(Instant::from_millis(ms), &packet(1, 0, TcpFlags::ACK, ack, false), 0, false);
    }

    #[test]
    fn each_byte_counts_once_across_the_sequence_wrap_and_a_fin_does_not_count() {
        let mut monitor = monitor();
        let start = u32::MAX - 1500;
        for (n, ms) in [(0, 0), (1, 1), (2, 2), (1, 30), (3, 31)] {
            data(&mut monitor, ms, start.wrapping_add(n * 1000));
        }
        for acked in [0, 1000, 1000, 3000, 2000, 4000, 4001, 4001, 9000] {
            ack(&mut monitor, 40, start.wrapping_add(acked));
        }
        let counters = &monitor.counters()[0];
        assert_eq!((counters.downloaded, counters.uploaded), (4000, 0));
        assert_eq!((counters.segments, counters.retransmissions, counters.acks), (5, 1, 9));
    }

    #[test]
    fn a_syn_on_a_known_four_tuple_starts_a_new_connection() {
        let mut monitor = monitor();
        data(&mut monitor, 0, 1000);
        ack(&mut monitor, 10, 2000);
        for down in [false, true] {
            let syn = packet(5, 0, TcpFlags::SYN.with(TcpFlags::ACK), 6, down);
            monitor.observe(Instant::from_millis(20), &syn, 0, down);
        }
        data(&mut monitor, 30, 6);
        ack(&mut monitor, 45, 1006);
        let counters = &monitor.counters()[0];
        assert_eq!((counters.downloaded, counters.retransmissions), (2000, 0));
        assert_eq!((counters.rtt_ns, counters.rtt_samples), (25_000_000, 2));
    }

    #[test]
    fn segments_behind_a_hole_give_no_round_trip_time() {
        let mut monitor = monitor();
        for n in 0..5 {
            data(&mut monitor, u64::from(n), 1000 * n);
        }
        ack(&mut monitor, 20, 1000);
        // The second segment is lost; the ACK of its retransmission covers those behind it.
        data(&mut monitor, 300, 1000);
        ack(&mut monitor, 320, 5000);
        data(&mut monitor, 330, 5000);
        ack(&mut monitor, 350, 6000);
        let counters = &monitor.counters()[0];
        assert_eq!((counters.rtt_ns, counters.rtt_samples), (40_000_000, 2), "{counters:?}");
        assert_eq!(counters.downloaded, 6000);
    }
}
