//! The connections of real programs: bytes from their packets at the station, and the readings of the
//! kernels at both ends.
//!
//! A thread reads the kernels ([`SockDiag`]), so that the real-time loop does not wait for them: each end
//! with its first packet after the handshake, at every [`READ_INTERVAL`], and when it sends a FIN.

use super::sock_diag::{Reading, SockDiag};
use paceline_linux::clock;
use paceline_net::{Duration, FlowKey, Instant, Packet, SeqNumber, TcpFlags, TcpHeader};
use paceline_sim::model::KernelState;
use paceline_sim::results::KernelConnection;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Most connections with a record; further ones are not recorded. Chosen: bounds memory against programs that
/// open any number of connections.
const MAX_CONNECTIONS: usize = 10_000;
/// Time between two readings of an open connection. Chosen: a connection that ends without a FIN lacks its
/// last 100 ms.
const READ_INTERVAL: Duration = Duration::from_millis(100);

/// An end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    Server,
    Station,
}

/// The data of one direction.
#[derive(Default)]
struct Direction {
    /// The oldest byte that is not acknowledged, and the end of all data so far; none before the first
    /// packet.
    range: Option<(SeqNumber, SeqNumber)>,
    acknowledged: u64,
    /// Whether the sending end was reported to the reader after its handshake.
    opened: bool,
}

struct Connection {
    station: usize,
    /// Addresses and ports, from the station to the server.
    key: FlowKey,
    first_packet: Instant,
    last_packet: Instant,
    /// Data of the server, and of the station.
    directions: [Direction; 2],
    closed: bool,
}

/// All connections of real stations.
pub struct Connections {
    list: Vec<Connection>,
    /// Index of the newest connection with a key.
    newest: BTreeMap<FlowKey, usize>,
    reader: Reader,
}

impl Connections {
    /// No connections yet. `servers` reads the kernel on the servers' side, `stations` those of the stations.
    pub fn new(servers: SockDiag, stations: BTreeMap<usize, SockDiag>) -> Self {
        Self { list: Vec::new(), newest: BTreeMap::new(), reader: Reader::start(servers, stations) }
    }
    /// A packet arrives at a station or leaves it; `from` is the end that sent it.
    pub fn observe(&mut self, now: Instant, station: usize, from: End, packet: &Packet) {
        let (Some(tcp), Some(key)) = (packet.tcp_header(), packet.flow_key()) else { return };
        let key = if from == End::Station { key } else { key.reversed() };
        let Some(index) = self.index(now, station, key, tcp) else { return };
        let connection = &mut self.list[index];
        connection.last_packet = now;
        connection.observe(from, tcp);
        let sent = &mut connection.directions[from as usize];
        let handshake = tcp.flags.intersects(TcpFlags::SYN.with(TcpFlags::RST));
        if !handshake && (!sent.opened || tcp.flags.contains(TcpFlags::FIN)) {
            sent.opened = true;
            self.reader.request(Request { index, end: from, station, key });
        }
    }
    /// The index of a packet's connection, which a SYN begins; none if it is not recorded.
    fn index(&mut self, now: Instant, station: usize, key: FlowKey, tcp: &TcpHeader) -> Option<usize> {
        let known = self.newest.get(&key).copied();
        let begins = tcp.flags.contains(TcpFlags::SYN) && !tcp.flags.contains(TcpFlags::ACK);
        let is_new = begins && known.is_none_or(|index| self.list[index].closed);
        if !is_new || self.list.len() >= MAX_CONNECTIONS {
            return known;
        }
        self.newest.insert(key, self.list.len());
        self.list.push(Connection {
            station,
            key,
            first_packet: now,
            last_packet: now,
            directions: Default::default(),
            closed: false,
        });
        Some(self.list.len() - 1)
    }
    /// The state of the servers' ends at the last reading, by station; none while the reader writes it.
    pub fn states(&self) -> Option<BTreeMap<usize, KernelState>> {
        self.reader.states.try_lock().ok().map(|states| states.clone())
    }
    /// Ends the readings; returns the connections in the order of their stations and first packets.
    pub fn finish(self) -> Vec<KernelConnection> {
        let mut readings = self.reader.finish();
        let mut counts = BTreeMap::<usize, usize>::new();
        let mut connections = Vec::new();
        for (index, own) in self.list.into_iter().enumerate() {
            let count = counts.entry(own.station).or_default();
            let mut reading = |end| readings.remove(&(index, end)).unwrap_or_default().end;
            let mut connection = KernelConnection {
                station: own.station,
                connection: *count,
                server: SocketAddr::new(own.key.dst, own.key.dst_port).to_string(),
                station_port: own.key.src_port,
                first_packet_s: own.first_packet.as_secs_f64(),
                last_packet_s: own.last_packet.as_secs_f64(),
                downloaded: own.directions[End::Server as usize].acknowledged,
                uploaded: own.directions[End::Station as usize].acknowledged,
                server_end: reading(End::Server),
                station_end: reading(End::Station),
                verdict: None,
            };
            connection.verdict = connection.verdict_of();
            connections.push(connection);
            *count += 1;
        }
        connections.sort_by_key(|connection| connection.station);
        connections
    }
}

impl Connection {
    fn observe(&mut self, from: End, tcp: &TcpHeader) {
        let [sent, received] = match from {
            End::Server => [0, 1],
            End::Station => [1, 0],
        };
        let syn = u32::from(tcp.flags.contains(TcpFlags::SYN));
        let end = tcp.seq + tcp.payload_len + syn;
        let (_, latest) = self.directions[sent].range.get_or_insert((tcp.seq + syn, tcp.seq + syn));
        *latest = latest.max(end);
        let received = &mut self.directions[received];
        if let Some((una, latest)) = received.range.as_mut().filter(|_| tcp.flags.contains(TcpFlags::ACK)) {
            // A FIN takes one sequence number beyond the data.
            let ack = tcp.ack.min(*latest);
            if ack > *una {
                received.acknowledged += u64::from(ack - *una);
                *una = ack;
            }
        }
        self.closed |= tcp.flags.intersects(TcpFlags::FIN.with(TcpFlags::RST));
    }
}

/// A request to read one end of a connection from now on.
struct Request {
    index: usize,
    end: End,
    station: usize,
    /// Addresses and ports, from the station to the server.
    key: FlowKey,
}

type Readings = BTreeMap<(usize, End), Reading>;
/// State of the open servers' ends, by station.
type States = BTreeMap<usize, KernelState>;

/// The thread that reads the kernels.
struct Reader {
    requests: Sender<Request>,
    states: Arc<Mutex<States>>,
    thread: JoinHandle<Readings>,
}

/// The state of the servers' ends that are open.
fn states(open: &[Request], readings: &Readings) -> States {
    let mut states = States::new();
    for request in open.iter().filter(|request| request.end == End::Server) {
        let Some(reading) = readings.get(&(request.index, request.end)) else { continue };
        let state = states.entry(request.station).or_default();
        state.cwnd_bytes += reading.cwnd_bytes;
        let srtt = reading.end.srtt_ms.map(|ms| Duration::from_secs_f64(ms / 1e3));
        state.srtt = state.srtt.or(srtt);
    }
    states
}

impl Reader {
    fn start(servers: SockDiag, stations: BTreeMap<usize, SockDiag>) -> Self {
        let (requests, received) = mpsc::channel::<Request>();
        let read = move |request: &Request, readings: &mut Readings| {
            let (diag, flow) = match request.end {
                End::Server => (Some(&servers), request.key.reversed()),
                End::Station => (stations.get(&request.station), request.key),
            };
            let Some(reading) = diag.and_then(|diag| diag.read(flow)) else { return false };
            let key = (request.index, request.end);
            let reading = reading.after(readings.get(&key));
            readings.insert(key, reading);
            true
        };
        let shared = Arc::<Mutex<States>>::default();
        let latest = Arc::clone(&shared);
        let publish = move |open: &[Request], readings: &Readings| {
            *latest.lock().unwrap_or_else(PoisonError::into_inner) = states(open, readings);
        };
        let work = move || {
            let (mut readings, mut open) = (Readings::new(), Vec::<Request>::new());
            let mut next = clock::now() + READ_INTERVAL;
            loop {
                let wait = std::time::Duration::from_nanos(next.since(clock::now()).as_nanos());
                match received.recv_timeout(wait) {
                    Ok(request) if read(&request, &mut readings) => {
                        open.retain(|other| (other.index, other.end) != (request.index, request.end));
                        open.push(request);
                        publish(&open, &readings);
                    }
                    Ok(_) => {}
                    Err(RecvTimeoutError::Timeout) => {
                        open.retain(|request| read(request, &mut readings));
                        publish(&open, &readings);
                        next = clock::now() + READ_INTERVAL;
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        open.retain(|request| read(request, &mut readings));
                        return readings;
                    }
                }
            }
        };
        Self { requests, states: shared, thread: std::thread::spawn(work) }
    }
    fn request(&self, request: Request) {
        let _ = self.requests.send(request);
    }
    fn finish(self) -> Readings {
        drop(self.requests);
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::test_support::segment;
    use paceline_sim::results::KernelEnd;
    use std::net::Ipv4Addr;

    const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const STATION: Ipv4Addr = Ipv4Addr::new(198, 18, 128, 1);

    fn packet(from: End, seq: u32, payload_len: u32, flags: TcpFlags, ack: u32) -> Packet {
        let segment = segment().seq(seq).payload_len(payload_len).flags(flags).ack(ack);
        match from {
            End::Server => segment.between(SERVER, STATION).ports(80, 40_000).build(),
            End::Station => segment.between(STATION, SERVER).ports(40_000, 80).build(),
        }
    }

    #[test]
    fn bytes_are_counted_once_and_a_second_connection_of_a_port_begins_with_its_syn() {
        let mut connections = Connections::new(SockDiag::open().unwrap(), BTreeMap::new());
        let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
        let script = [
            (End::Station, 99, 0, syn, 0),
            (End::Station, 99, 0, syn, 0),
            (End::Server, u32::MAX, 0, syn.with(ack), 100),
            (End::Station, 100, 10, ack, 0),
            (End::Server, 0, 1000, ack, 110),
            (End::Station, 110, 0, ack, 500),
            (End::Server, 0, 1000, ack, 110),
            (End::Station, 110, 0, ack, 1000),
            (End::Server, 1000, 0, ack.with(TcpFlags::FIN), 110),
            (End::Station, 110, 0, ack.with(TcpFlags::FIN), 1001),
            (End::Station, 5000, 0, syn, 0),
        ];
        for (ms, (from, seq, payload_len, flags, number)) in script.into_iter().enumerate() {
            let packet = packet(from, seq, payload_len, flags, number);
            connections.observe(Instant::from_millis(ms as u64), 3, from, &packet);
        }
        let found = connections.finish();
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].downloaded, found[0].uploaded), (1000, 10));
        assert_eq!((found[0].server.as_str(), found[0].station_port), ("192.0.2.1:80", 40_000));
        assert_eq!((found[0].first_packet_s, found[0].last_packet_s), (0.0, 0.009));
        assert_eq!((found[1].station, found[1].connection, found[1].downloaded), (3, 1, 0));
        // No kernel here has this connection: nothing was read.
        assert_eq!(found[0].server_end, KernelEnd::default());
    }
}
