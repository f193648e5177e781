//! After a crash: a second process that outlives the gateway and lets no connection hang.
//!
//! It holds the journal's memory and the reading end of a pipe whose other end only the gateway has. When that closes,
//! whatever the reason, what the journal holds are the connections whose servers were told more than their clients
//! have; a gateway that ends well leaves none. By then the kernel forwards, and the guardian listens beside it:
//!
//! - Both ends are asked where they stand, by an empty segment below what they expect, which every endpoint answers
//!   (RFC 9293, section 3.10.7.4).
//! - A client that turns out to have all that its server was told needs nothing: the connection goes on end to end.
//! - Otherwise, once nothing is on its way that could still bring it there, whoever of the two speaks is answered with
//!   a reset, numbered by what it has just said itself, so that it counts (RFC 5961, section 3.2).
//!
//! A SYN under the same addresses and ports is a new connection, which is left alone.

use super::journal::{self, Entry, Journal};
use crate::clock;
use crate::gateway::datapath::frame::{self, Link, Outgoing};
use crate::gateway::datapath::slot::Slot;
use crate::gateway::datapath::socket::{BATCH, PacketSocket};
use crate::gateway::interfaces::ports::{Ports, Role};
use anyhow::Context;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{
    Checksum, Duration, FlowKey, Instant, IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader, TcpOptions,
    Timestamps,
};
use paceline_pep::accelerator::Side;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

/// How long connections are looked after.
const LIFE: Duration = Duration::from_secs(60);
/// What is on its way to a client may take so long after the last that came.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between the first two questions; Linux answers one in half a second. The waits double.
const ASK: Duration = Duration::from_millis(600);
/// Bytes of a frame that are looked at: link header, IP and TCP headers.
const LOOK: u32 = 128;

/// The gateway's hold on its guardian.
pub struct Guardian {
    process: Child,
    _life: Option<ChildStdin>,
}

impl Guardian {
    /// Starts it: `command` has to call [`guard`] with its standard input and output and these arguments.
    pub(crate) fn start(mut command: Command, journal: &Journal, ports: Ports) -> anyhow::Result<Self> {
        command.args([ports.server.to_string(), ports.mobile.to_string()]);
        if let Role::Router { exit, .. } = ports.role {
            command.arg(exit.to_string());
        }
        // What the terminal says to the gateway is not for it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::from(journal.share()?));
        let mut process = command.spawn().context("cannot start the guardian")?;
        let life = process.stdin.take();
        Ok(Self { process, _life: life })
    }
    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // Nobody waits for it: a guardian that has work does it for a minute.
        self._life = None;
        let _ = self.process.try_wait();
    }
}

/// What became of the connections of a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rescue {
    /// Exposed when the gateway ended.
    pub exposed: usize,
    /// Of those, connections that go on end to end.
    pub whole: usize,
    /// Of those, connections that were reset.
    pub reset: usize,
}

/// The guardian's whole work: waits for the end of `life` and looks after what `journal` holds then. Interfaces by
/// index; a router's third is where packets go back to the kernel.
pub fn guard(
    life: OwnedFd,
    journal: OwnedFd,
    (server, mobile, exit): (u32, u32, Option<u32>),
) -> anyhow::Result<Rescue> {
    for number in [SIGINT, SIGTERM, SIGHUP] {
        // The gateway's business; what it leaves is ours.
        signal_hook::flag::register(number, Arc::default()).context("cannot catch signals")?;
    }
    let mut life = File::from(life);
    loop {
        match life.read(&mut [0; 64]) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("cannot read from the gateway"),
        }
    }
    let entries = journal::read(&File::from(journal))?;
    if entries.is_empty() {
        return Ok(Rescue::default());
    }
    Rescuer::open([server, mobile], exit, entries, clock::now())?.run()
}

/// By side: where packets are seen and answered, and where those leave that nobody asked for, if elsewhere.
struct Sockets {
    sides: [PacketSocket; 2],
    exit: Option<PacketSocket>,
}

/// One connection.
struct Case {
    entry: Entry,
    /// It is to be reset.
    lost: bool,
    /// Until when the client may still come to have what it lacks.
    until: Instant,
    /// The highest that the client is known to have.
    client_has: SeqNumber,
    /// By side: it has said that it is closed.
    closed: [bool; 2],
    ask_at: Instant,
    wait: Duration,
}

struct Rescuer {
    sockets: Sockets,
    cases: BTreeMap<FlowKey, Case>,
    ends_at: Instant,
    rescue: Rescue,
}

/// What is read of a segment.
#[derive(Clone, Copy)]
struct Segment {
    key: FlowKey,
    seq: SeqNumber,
    ack: SeqNumber,
    flags: TcpFlags,
}

impl Rescuer {
    fn open(
        interfaces: [u32; 2],
        exit: Option<u32>,
        entries: Vec<Entry>,
        now: Instant,
    ) -> anyhow::Result<Self> {
        let open =
            |interface| PacketSocket::open_watching(interface, LOOK).context("cannot open a packet socket");
        let sides = [open(interfaces[0])?, open(interfaces[1])?];
        let exit = exit.map(PacketSocket::open_to).transpose().context("cannot open a packet socket")?;
        let sockets = Sockets { sides, exit };
        let rescue = Rescue { exposed: entries.len(), ..Rescue::default() };
        let case = |entry: Entry| Case {
            entry,
            lost: false,
            until: now + PATIENCE,
            client_has: entry.record.client_expects,
            closed: [false; 2],
            ask_at: now,
            wait: ASK,
        };
        let cases = entries.into_iter().map(|entry| (entry.record.key, case(entry))).collect();
        Ok(Self { sockets, cases, ends_at: now + LIFE, rescue })
    }

    fn run(mut self) -> anyhow::Result<Rescue> {
        let mut slots: Vec<Slot> = (0..BATCH).map(|_| Slot::new()).collect();
        loop {
            let now = clock::now();
            self.on_time(now);
            if self.cases.is_empty() || now >= self.ends_at {
                return Ok(self.rescue);
            }
            for side in [Side::Server, Side::Mobile] {
                let received = self.sockets.sides[side as usize].receive(&mut slots).unwrap_or(0);
                for slot in &slots[..received] {
                    if let Some((link, datagram)) = frame::peek(slot)
                        && let Some(segment) = read(datagram)
                    {
                        self.on_segment(now, side, link, segment);
                    }
                }
            }
            let next = self.cases.values().map(Case::deadline).min().unwrap_or(now);
            let wait = next.min(self.ends_at).since(clock::now()).as_millis() + 1;
            let mut fds =
                self.sockets.sides.each_ref().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN));
            let _ = poll(&mut fds, PollTimeout::try_from(wait.min(1000) as u32).unwrap_or(PollTimeout::ZERO));
        }
    }

    fn on_time(&mut self, now: Instant) {
        let Self { sockets, cases, rescue, .. } = self;
        for case in cases.values_mut().filter(|case| case.deadline() <= now) {
            if !case.lost && case.until <= now {
                case.lose(rescue);
                case.reset_by_record(sockets);
                case.ask_at = now;
            }
            if case.ask_at <= now {
                case.ask(sockets);
                case.ask_at = now + case.wait;
                case.wait = case.wait * 2;
            }
        }
    }

    fn on_segment(&mut self, now: Instant, from: Side, link: Link, segment: Segment) {
        let key = if from == Side::Server { segment.key } else { segment.key.reversed() };
        let Some(case) = self.cases.get_mut(&key) else { return };
        if segment.flags.contains(TcpFlags::SYN) {
            self.cases.remove(&key);
            return;
        }
        if segment.flags.contains(TcpFlags::RST) {
            case.closed[from as usize] = true;
            if case.closed == [true; 2] {
                self.cases.remove(&key);
            }
            return;
        }
        if !segment.flags.contains(TcpFlags::ACK) {
            return;
        }
        if from == Side::Mobile && !case.lost {
            if segment.ack >= case.entry.record.server_acked {
                self.rescue.whole += 1;
                self.cases.remove(&key);
                return;
            }
            if segment.ack > case.client_has {
                case.client_has = segment.ack;
                case.until = now + PATIENCE;
            }
            if case.entry.record.client_sent < case.entry.record.server_acked {
                // What it lacks was never sent, and is gone with the gateway.
                case.lose(&mut self.rescue);
                let server = case.entry.links[Side::Server as usize];
                send(&self.sockets, Side::Server, server, &reset(key.reversed(), segment.seq, segment.ack));
                case.ask(&self.sockets);
            }
        }
        if case.lost {
            let answer = reset(segment.key.reversed(), segment.ack, segment.seq);
            transmit(&self.sockets.sides[from as usize], link.reversed(), &answer);
        }
    }
}

impl Case {
    fn deadline(&self) -> Instant {
        if self.lost { self.ask_at } else { self.ask_at.min(self.until) }
    }
    fn lose(&mut self, rescue: &mut Rescue) {
        self.lost = true;
        rescue.reset += 1;
    }
    /// Makes both ends say where they stand.
    fn ask(&self, sockets: &Sockets) {
        let record = &self.entry.record;
        let stamps =
            |val: Option<u32>, ecr: Option<u32>| val.zip(ecr).map(|(val, ecr)| Timestamps { val, ecr });
        let (client, server) = (record.client_timestamp, record.server_timestamp);
        let below = |seq: SeqNumber| SeqNumber(seq.0.wrapping_sub(1));
        if !self.closed[Side::Mobile as usize] {
            let question =
                ack(record.key, below(record.client_expects), record.server_expects, stamps(server, client));
            send(sockets, Side::Mobile, self.entry.links[Side::Mobile as usize], &question);
        }
        if self.lost && !self.closed[Side::Server as usize] {
            let key = record.key.reversed();
            let question =
                ack(key, below(record.server_expects), record.server_acked, stamps(client, server));
            send(sockets, Side::Server, self.entry.links[Side::Server as usize], &question);
        }
    }
    /// A pair of resets for ends that do not speak, by the last numbers that are known.
    fn reset_by_record(&self, sockets: &Sockets) {
        let record = &self.entry.record;
        let to_client = reset(record.key, self.client_has, record.server_expects);
        let to_server = reset(record.key.reversed(), record.server_expects, record.server_acked);
        send(sockets, Side::Mobile, self.entry.links[Side::Mobile as usize], &to_client);
        send(sockets, Side::Server, self.entry.links[Side::Server as usize], &to_server);
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

/// Sends what nobody asked for. What cannot be sent is asked for again.
fn send(sockets: &Sockets, side: Side, link: Option<Link>, packet: &Packet) {
    if let Some(link) = link {
        transmit(sockets.exit.as_ref().unwrap_or(&sockets.sides[side as usize]), link, packet);
    }
}

fn transmit(socket: &PacketSocket, link: Link, packet: &Packet) {
    let (frame, mut parts) = (Outgoing::new(link, packet.clone(), 0), Vec::new());
    frame.add_parts(&mut parts);
    let _ = socket.send(&[&parts]);
}

/// Headers of a plain TCP datagram that may be cut off behind them.
fn read(datagram: &[u8]) -> Option<Segment> {
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
    fn headers_are_read_of_what_is_cut_off() {
        for (src, dst) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let key = FlowKey {
                src: src.parse().unwrap(),
                dst: dst.parse().unwrap(),
                src_port: 80,
                dst_port: 50_000,
            };
            let packet = reset(key, SeqNumber(7), SeqNumber(u32::MAX));
            let whole = paceline_net::wire::emit(&packet);
            let segment = read(&whole).unwrap();
            assert_eq!((segment.key, segment.seq, segment.ack), (key, SeqNumber(7), SeqNumber(u32::MAX)));
            assert!(segment.flags.contains(TcpFlags::RST) && !segment.flags.contains(TcpFlags::SYN));
            (0..whole.len() - 4).for_each(|len| assert!(read(&whole[..len]).is_none()));
        }
    }
}
