//! Clears the connections of a journal whose gateway has died. The kernel forwards by then, and the rescuer
//! listens on both interfaces, for which it waits as long as the ends do:
//!
//! - The rescuer probes both ends of each connection with an empty segment below the expected sequence
//!   number, which every endpoint answers with its numbers (RFC 9293, section 3.10.7.4).
//! - A client that has all acknowledged data needs nothing: its connection goes on end to end.
//! - Otherwise, when no data for the client can be on their way any more, each segment of either end is
//!   answered by a reset with that segment's own numbers, so that it is accepted (RFC 5961, section 3.2).
//!
//! A SYN with the same addresses and ports opens a new connection, and ends the work on the old one.

use super::journal::Entry;
use super::watched::Watched;
use crate::datapath::frame::{self, Link, Outgoing};
use crate::datapath::slot::Slot;
use crate::datapath::socket::{BATCH, PacketSocket};
use crate::interfaces::ports::Interface;
use crate::service::log::{self, Level};
use anyhow::{Context, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use paceline_linux::clock;
use paceline_linux::random::random;
use paceline_net::identification::Identifications;
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{
    Checksum, Duration, FlowKey, Instant, IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader, TcpOptions,
    Timestamps,
};
use paceline_pep::accelerator::Side;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Time after which the rescuer ends, while both interfaces are there. Chosen: seven probes with doubling
/// intervals.
const LIFETIME: Duration = Duration::from_secs(60);
/// Longest time for which the rescuer waits for interfaces. Same as the time after which Linux gives a
/// connection up by itself: 15 timeouts (`tcp_retries2`) from 200 ms to 120 s.
const LONGEST_WAIT: Duration = Duration::from_millis(924_600);
/// Time between two looks for an interface that is away. Chosen: short beside a round trip of TCP.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Time between two checks of whether the interfaces are there. Chosen: as often as a worker checks it.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Time after the last progress of a client in which data for it may still arrive. Chosen: longer than the
/// queueing delay of most mobile networks.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between the first two probes; it doubles for each further one. Chosen: Linux answers one such segment
/// in 500 ms (tcp_invalid_ratelimit).
const PROBE_INTERVAL: Duration = Duration::from_millis(600);

/// Most bytes read of a file with a result. Chosen: more than three numbers take.
const MAX_REPORT_BYTES: u64 = 1024;

/// The result of a guardian's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Rescue {
    /// Connections with exposure when the gateway ended.
    pub exposed: usize,
    /// Of those, connections that go on end to end.
    pub whole: usize,
    /// Of those, connections that were reset.
    pub reset: usize,
}

impl Rescue {
    /// Writes a file for the next gateway, which reports the result. An error is ignored: the log has it too.
    pub(super) fn write(&self, file: &Path) {
        // A link in the place of the file could name any other one.
        let _ = fs::remove_file(file);
        if let (Ok(text), Ok(mut file)) = (serde_json::to_string(self), File::create_new(file)) {
            let _ = file.write_all(text.as_bytes());
        }
    }
    /// Reads the file, if there is one.
    pub fn read(file: &Path) -> Option<Self> {
        let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(file);
        let mut text = String::new();
        file.ok()?.take(MAX_REPORT_BYTES).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }
}

/// The sockets on both interfaces, by side, and the one for packets that are no answers, if it is another one
/// (routed mode).
struct Sockets {
    sides: [Watched; 2],
    exit: Option<Watched>,
    identifications: RefCell<Identifications>,
}

impl Sockets {
    /// Opens the sockets of interfaces that are there. Whether both sides are.
    fn renew(&mut self) -> anyhow::Result<bool> {
        let mut both = true;
        for side in &mut self.sides {
            let there = side.renew();
            both &= there.with_context(|| format!("cannot open a packet socket on {}", side.name()))?;
        }
        // A gateway that ends in order removes this one. Answers do not need it.
        let _ = self.exit.as_mut().map(Watched::renew);
        Ok(both)
    }
    fn missing(&self) -> String {
        let missing = self.sides.iter().filter(|side| side.socket().is_none());
        missing.map(Watched::name).collect::<Vec<_>>().join(" and ")
    }
    /// The socket by which packets of the rescuer's own leave.
    fn exit(&self, side: Side) -> Option<&PacketSocket> {
        self.exit.as_ref().unwrap_or(&self.sides[side as usize]).socket()
    }
}

/// A connection of the journal.
struct Connection {
    entry: Entry,
    /// The connection has to be reset: its client will not get all acknowledged data.
    lost: bool,
    /// Time until which data for the client may arrive.
    delivery_deadline: Instant,
    /// The highest acknowledgment number seen from the client.
    client_acked: SeqNumber,
    /// By side: the end has sent a reset.
    closed: [bool; 2],
    probe_at: Instant,
    probe_interval: Duration,
}

/// The work on the connections of a journal.
pub struct Rescuer {
    sockets: Sockets,
    connections: BTreeMap<FlowKey, Connection>,
    ends_at: Instant,
    /// When it does not wait for interfaces any longer.
    gives_up_at: Instant,
    checked_at: Instant,
    rescue: Rescue,
}

/// The header fields of a segment.
#[derive(Clone, Copy)]
struct Segment {
    key: FlowKey,
    seq: SeqNumber,
    ack: SeqNumber,
    flags: TcpFlags,
}

impl Rescuer {
    /// Opens sockets on the interfaces, when these are there: towards the servers, towards the devices, and
    /// in routed mode the one by which packets enter the kernel's routing.
    pub fn open(interfaces: Vec<Interface>, entries: Vec<Entry>) -> anyhow::Result<Self> {
        let mut interfaces = interfaces.into_iter();
        let (Some(server), Some(mobile)) = (interfaces.next(), interfaces.next()) else {
            bail!("two interfaces are needed");
        };
        let exit = interfaces.next().map(|exit| Watched::new(exit, true));
        let identifications = RefCell::new(Identifications::new(random()?));
        let sides = [server, mobile].map(|side| Watched::new(side, false));
        let sockets = Sockets { sides, exit, identifications };
        let now = clock::now();
        let rescue = Rescue { exposed: entries.len(), ..Rescue::default() };
        let connection = |entry: Entry| Connection {
            lost: false,
            delivery_deadline: now + DELIVERY_TIMEOUT,
            client_acked: entry.record.client_expects,
            entry,
            closed: [false; 2],
            probe_at: now,
            probe_interval: PROBE_INTERVAL,
        };
        let connections = entries.into_iter().map(|entry| (entry.record.key, connection(entry))).collect();
        let (ends_at, gives_up_at) = (now + LIFETIME, now + LONGEST_WAIT);
        let mut rescuer =
            Self { sockets, connections, ends_at, gives_up_at, checked_at: Instant::ZERO, rescue };
        rescuer.wait_for_interfaces()?;
        Ok(rescuer)
    }

    /// Waits until all interfaces are there. Time and probes begin anew then.
    fn wait_for_interfaces(&mut self) -> anyhow::Result<()> {
        self.checked_at = clock::now();
        if self.sockets.renew()? {
            return Ok(());
        }
        let text = format!(
            "{} exposed connections wait for the interface {}",
            self.connections.len(),
            self.sockets.missing()
        );
        log::message(Level::Warning, &text, &[("PACELINE_EVENT", "rescue-waits")]);
        while !self.sockets.renew()? {
            if clock::now() >= self.gives_up_at {
                bail!("{} did not come back", self.sockets.missing());
            }
            clock::pause(LOOK_INTERVAL);
        }
        let now = clock::now();
        self.ends_at = now + LIFETIME;
        for connection in self.connections.values_mut() {
            connection.delivery_deadline = now + DELIVERY_TIMEOUT;
            (connection.probe_at, connection.probe_interval) = (now, PROBE_INTERVAL);
        }
        Ok(())
    }

    /// Works until all connections are cleared, or the time is over.
    pub fn run(mut self) -> anyhow::Result<Rescue> {
        let mut slots: Vec<Slot> = (0..BATCH).map(|_| Slot::new()).collect();
        loop {
            if clock::now().since(self.checked_at) >= CHECK_INTERVAL {
                self.wait_for_interfaces()?;
            }
            let now = clock::now();
            self.on_time(now);
            if self.connections.is_empty() || now >= self.ends_at {
                return Ok(self.rescue);
            }
            for side in [Side::Server, Side::Mobile] {
                let Some(socket) = self.sockets.sides[side as usize].socket_mut() else { continue };
                let received = socket.receive(&mut slots).unwrap_or(0);
                for slot in &slots[..received] {
                    if let Some((link, datagram)) = frame::peek(slot)
                        && let Some(segment) = parse(datagram)
                    {
                        self.on_segment(now, side, link, segment);
                    }
                }
            }
            let next = self.connections.values().map(Connection::deadline).min().unwrap_or(now);
            let wait = next.min(self.ends_at).since(clock::now()).min(CHECK_INTERVAL).as_millis() + 1;
            let sockets = self.sockets.sides.iter().filter_map(Watched::socket);
            let mut fds: Vec<_> =
                sockets.map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
            let _ = poll(&mut fds, PollTimeout::try_from(wait as u32).unwrap_or(PollTimeout::ZERO));
        }
    }

    fn on_time(&mut self, now: Instant) {
        let Self { sockets, connections, rescue, .. } = self;
        for connection in connections.values_mut().filter(|connection| connection.deadline() <= now) {
            if !connection.lost && connection.delivery_deadline <= now {
                connection.lose(rescue);
                connection.reset_by_record(sockets);
                connection.probe_at = now;
            }
            if connection.probe_at <= now {
                connection.probe(sockets);
                connection.probe_at = now + connection.probe_interval;
                connection.probe_interval = connection.probe_interval * 2;
            }
        }
    }

    fn on_segment(&mut self, now: Instant, from: Side, link: Link, segment: Segment) {
        let key = if from == Side::Server { segment.key } else { segment.key.reversed() };
        let Some(connection) = self.connections.get_mut(&key) else { return };
        if segment.flags.contains(TcpFlags::SYN) {
            self.connections.remove(&key);
            return;
        }
        if link.tunnel().is_some() {
            // The newest tunnel of a direction counts: the device may have been handed over.
            connection.entry.links[from.other() as usize] = Some(link.clone());
        }
        if segment.flags.contains(TcpFlags::RST) {
            connection.closed[from as usize] = true;
            if connection.closed == [true; 2] {
                self.connections.remove(&key);
            }
            return;
        }
        if !segment.flags.contains(TcpFlags::ACK) {
            return;
        }
        if from == Side::Mobile && !connection.lost {
            if segment.ack >= connection.entry.record.server_acked {
                self.rescue.whole += 1;
                self.connections.remove(&key);
                return;
            }
            if segment.ack > connection.client_acked {
                connection.client_acked = segment.ack;
                connection.delivery_deadline = now + DELIVERY_TIMEOUT;
            }
            if connection.entry.record.client_sent < connection.entry.record.server_acked {
                // The gateway had not sent the missing data yet: they are lost with it.
                connection.lose(&mut self.rescue);
                let server = connection.entry.links[Side::Server as usize].clone();
                send(&self.sockets, Side::Server, server, &reset(key.reversed(), segment.seq, segment.ack));
                connection.probe(&self.sockets);
            }
        }
        if connection.lost {
            let answer = reset(segment.key.reversed(), segment.ack, segment.seq);
            let Some(socket) = self.sockets.sides[from as usize].socket() else { return };
            if link.tunnel().is_some() {
                // The identifiers of the way back are in the packets of the other direction alone.
                send(&self.sockets, from, connection.entry.links[from as usize].clone(), &answer);
                return;
            }
            let link = if socket.has_link_header() { link.reversed() } else { Link::NONE };
            transmit(&self.sockets, socket, link, &answer);
        }
    }
}

impl Connection {
    fn deadline(&self) -> Instant {
        if self.lost { self.probe_at } else { self.probe_at.min(self.delivery_deadline) }
    }
    fn lose(&mut self, rescue: &mut Rescue) {
        self.lost = true;
        rescue.reset += 1;
    }
    /// Probes the client, and the server as well if the connection has to be reset.
    fn probe(&self, sockets: &Sockets) {
        let record = &self.entry.record;
        let stamps =
            |val: Option<u32>, ecr: Option<u32>| val.zip(ecr).map(|(val, ecr)| Timestamps { val, ecr });
        let (client, server) = (record.client_timestamp, record.server_timestamp);
        let below = |seq: SeqNumber| SeqNumber(seq.0.wrapping_sub(1));
        if !self.closed[Side::Mobile as usize] {
            let probe =
                ack(record.key, below(record.client_expects), record.server_expects, stamps(server, client));
            send(sockets, Side::Mobile, self.entry.links[Side::Mobile as usize].clone(), &probe);
        }
        if self.lost && !self.closed[Side::Server as usize] {
            let key = record.key.reversed();
            let probe = ack(key, below(record.server_expects), record.server_acked, stamps(client, server));
            send(sockets, Side::Server, self.entry.links[Side::Server as usize].clone(), &probe);
        }
    }
    /// Sends a reset to each end, with the last known numbers, for ends that send nothing themselves.
    fn reset_by_record(&self, sockets: &Sockets) {
        let record = &self.entry.record;
        let to_client = reset(record.key, self.client_acked, record.server_expects);
        let to_server = reset(record.key.reversed(), record.server_expects, record.server_acked);
        send(sockets, Side::Mobile, self.entry.links[Side::Mobile as usize].clone(), &to_client);
        send(sockets, Side::Server, self.entry.links[Side::Server as usize].clone(), &to_server);
    }
}

fn reset(key: FlowKey, seq: SeqNumber, ack: SeqNumber) -> Packet {
    build(key, seq, ack, TcpFlags::RST.with(TcpFlags::ACK), None)
}

fn ack(key: FlowKey, seq: SeqNumber, ack: SeqNumber, timestamps: Option<Timestamps>) -> Packet {
    build(key, seq, ack, TcpFlags::ACK, timestamps)
}

fn build(
    key: FlowKey,
    seq: SeqNumber,
    ack: SeqNumber,
    flags: TcpFlags,
    timestamps: Option<Timestamps>,
) -> Packet {
    let ip = IpHeader { src: key.src, dst: key.dst, traffic_class: 0, hop_limit: 64, special: false };
    let tcp = TcpHeader {
        src_port: key.src_port,
        dst_port: key.dst_port,
        seq,
        ack,
        flags,
        window: 0,
        options: TcpOptions { timestamps, ..TcpOptions::default() },
        payload_len: 0,
    };
    rewrite::segment(ip, tcp, Unparsed::default(), Checksum::Unverified, std::iter::empty())
}

/// Sends a packet that is no answer. An error is ignored: probes are repeated.
fn send(sockets: &Sockets, side: Side, link: Option<Link>, packet: &Packet) {
    if let Some((link, socket)) = link.zip(sockets.exit(side)) {
        transmit(sockets, socket, link, packet);
    }
}

fn transmit(sockets: &Sockets, socket: &PacketSocket, link: Link, packet: &Packet) {
    let (mut packet, mut identifications) = (packet.clone(), sockets.identifications.borrow_mut());
    identifications.number(&mut packet, 0);
    for frame in Outgoing::frames(link, packet, 0, Vec::new(), Some(&mut identifications)) {
        let mut parts = Vec::new();
        frame.add_parts(&mut parts);
        let _ = socket.send(&[&parts]);
    }
}

/// Parses the headers of a TCP datagram without IP options that may be truncated behind them.
fn parse(datagram: &[u8]) -> Option<Segment> {
    let bytes = |at: usize, len: usize| datagram.get(at..at + len);
    let (src, dst, tcp): (IpAddr, IpAddr, usize) =
        match (datagram.first()?, datagram.get(9)?, datagram.get(6)?) {
            (0x45, 6, _) if u16::from_be_bytes(bytes(6, 2)?.try_into().ok()?) & 0x3fff == 0 => {
                let address = |at| Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes(at, 4)?).ok()?).into());
                (address(12)?, address(16)?, 20)
            }
            (first, _, 6) if first >> 4 == 6 => {
                let address = |at| Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes(at, 16)?).ok()?).into());
                (address(8)?, address(24)?, 40)
            }
            _ => return None,
        };
    let word = |at: usize| Some(u32::from_be_bytes(bytes(tcp + at, 4)?.try_into().ok()?));
    let (ports, flags) = (word(0)?, TcpFlags((word(12)? >> 16) as u16 & 0x1ff));
    let key = FlowKey { src, dst, src_port: (ports >> 16) as u16, dst_port: ports as u16 };
    Some(Segment { key, seq: SeqNumber(word(4)?), ack: SeqNumber(word(8)?), flags })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_again_and_no_link_is_followed() {
        let folder = std::env::temp_dir().join(format!("paceline-rescue-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, victim) = (folder.join("box.rescue.json"), folder.join("victim"));
        fs::write(&victim, "root only").unwrap();
        std::os::unix::fs::symlink(&victim, &file).unwrap();
        assert_eq!(Rescue::read(&file), None);
        let result = Rescue { exposed: 3, whole: 1, reset: 2 };
        (0..2).for_each(|_| result.write(&file));
        let (read, kept) = (Rescue::read(&file), fs::read_to_string(&victim).unwrap());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((read, kept.as_str()), (Some(result), "root only"));
    }

    #[test]
    fn headers_of_truncated_datagrams_are_parsed() {
        for (src, dst) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let key = FlowKey {
                src: src.parse().unwrap(),
                dst: dst.parse().unwrap(),
                src_port: 80,
                dst_port: 50_000,
            };
            let packet = reset(key, SeqNumber(7), SeqNumber(u32::MAX));
            let whole = paceline_net::wire::emit(&packet);
            let segment = parse(&whole).unwrap();
            assert_eq!((segment.key, segment.seq, segment.ack), (key, SeqNumber(7), SeqNumber(u32::MAX)));
            assert!(segment.flags.contains(TcpFlags::RST) && !segment.flags.contains(TcpFlags::SYN));
            (0..whole.len() - 4).for_each(|len| assert!(parse(&whole[..len]).is_none()));
        }
    }
}
