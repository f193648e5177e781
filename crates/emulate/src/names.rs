//! Names inside an emulation. The host's resolvers (`/etc/resolv.conf`) cannot be reached from a station's
//! namespace: a loopback address such as 127.0.0.53 is another host there, and the host forwards no packets.
//! So queries pass two relays, and the modelled network between them, as those of a phone pass its radio:
//!
//! ```text
//! program - relay in the station's namespace - modelled network - relay at the host side - resolver
//! ```
//!
//! One thread has the relays of all stations. Each has a UDP socket on either side and gives queries numbers
//! of its own (RFC 1035 4.1.1); a connection over TCP has a thread. Left out: resolvers with a zone
//! (`fe80::1%eth0`).

use super::range::Range;
use anyhow::Context;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use paceline_linux::network::netns::{self, Namespace};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// UDP and TCP port of name servers (RFC 1035).
const DNS_PORT: u16 = 53;
/// Resolvers of a host at most (resolv.conf(5), MAXNS).
const MAX_RESOLVERS: usize = 3;
/// Unanswered queries of a relay at most; older ones are forgotten. Chosen: many times what a program asks at
/// once.
const MAX_PENDING: usize = 256;
/// Connections over TCP at the same time at most. Chosen: TCP carries the few answers that UDP truncates.
const MAX_CONNECTIONS: usize = 16;
/// Longest time without a byte on such a connection. Chosen: longer than resolvers wait for an answer, 5 s.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time to connect onwards over TCP. Chosen: a retransmission of the SYN.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two checks for the end of the emulation. Chosen: not noticed at its end.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The relays of an emulation. Dropping them closes all their sockets.
pub struct Names {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Names {
    /// Starts the relays of these stations; their host side is in the calling thread's namespace.
    pub fn start(range: Range, namespaces: &[(usize, Namespace)]) -> anyhow::Result<Self> {
        let mut relays = Vec::new();
        for resolver in resolvers(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default()) {
            let to = SocketAddr::new(resolver, DNS_PORT);
            if !is_relayed(resolver) || upstream(to).is_err() {
                continue; // without a route to the resolver, the host itself has no names
            }
            let outer = Relay::new((range.host().0, 0).into(), to, None)
                .with_context(|| format!("no relay to the resolver {resolver}"))?;
            let host_side = outer.listen.local_addr()?;
            relays.push(outer);
            for (station, namespace) in namespaces {
                let open = || {
                    if !resolver.is_loopback() {
                        let bits = if resolver.is_ipv4() { 32 } else { 128 };
                        netns::ip(&[format!("addr add {resolver}/{bits} dev lo")])?;
                    }
                    Relay::new((resolver, DNS_PORT).into(), host_side, Some(namespace.handle()?))
                };
                let inner = namespace.inside(open);
                relays.push(inner.with_context(|| format!("no relay at {resolver} in station {station}"))?);
            }
        }
        let stop = Arc::<AtomicBool>::default();
        let stop_flag = Arc::clone(&stop);
        let thread = (!relays.is_empty()).then(|| std::thread::spawn(move || work(relays, &stop_flag)));
        Ok(Self { stop, thread })
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The resolvers in the text of `/etc/resolv.conf`.
fn resolvers(text: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() == Some("nameserver")
            && let Some(address) = words.next().and_then(|word| word.parse().ok())
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found.truncate(MAX_RESOLVERS);
    found
}

/// Whether a resolver needs a relay: all but one at another address of this host, which stations reach.
fn is_relayed(resolver: IpAddr) -> bool {
    resolver.is_loopback()
        || !netns::ip_output(&format!("route get {resolver}")).is_ok_and(|route| route.starts_with("local "))
}

/// A UDP socket that is connected to this address.
fn upstream(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(to)?;
    Ok(socket)
}

/// Passes queries from one address on to another one.
struct Relay {
    listen: UdpSocket,
    /// Connected to `to`.
    upstream: UdpSocket,
    tcp: TcpListener,
    to: SocketAddr,
    /// Namespace of both; that of the calling thread if none.
    namespace: Option<File>,
    /// Unanswered queries: number towards the resolver, program, number of the program.
    pending: VecDeque<(u16, SocketAddr, [u8; 2])>,
    next: u16,
}

impl Relay {
    /// Opens the sockets in the calling thread's namespace. Port 0 stands for any port.
    fn new(at: SocketAddr, to: SocketAddr, namespace: Option<File>) -> anyhow::Result<Self> {
        let tcp = TcpListener::bind(at).with_context(|| format!("cannot listen on TCP {at}"))?;
        let at = tcp.local_addr()?;
        let listen = UdpSocket::bind(at).with_context(|| format!("cannot listen on UDP {at}"))?;
        let upstream = upstream(to).with_context(|| format!("no route to {to}"))?;
        tcp.set_nonblocking(true)?;
        [&listen, &upstream].into_iter().try_for_each(|socket| socket.set_nonblocking(true))?;
        Ok(Self { listen, upstream, tcp, to, namespace, pending: VecDeque::new(), next: 0 })
    }
    /// Passes on all queries and answers that have arrived. Damaged ones and errors of single packets are
    /// dropped, as a network drops packets: programs repeat their queries.
    fn pass(&mut self, buffer: &mut [u8]) {
        while let Ok((length, program)) = self.listen.recv_from(buffer) {
            if length < 2 {
                continue;
            }
            if self.pending.len() == MAX_PENDING {
                self.pending.pop_front();
            }
            self.next = self.next.wrapping_add(1);
            self.pending.push_back((self.next, program, [buffer[0], buffer[1]]));
            buffer[..2].copy_from_slice(&self.next.to_be_bytes());
            let _ = self.upstream.send(&buffer[..length]);
        }
        // A resolver that refuses queries is an error of the next call: it ends the loop, and is cleared by
        // it.
        while let Ok(length) = self.upstream.recv(buffer) {
            let number = u16::from_be_bytes([buffer[0], buffer[1]]);
            let known = self.pending.iter().position(|(own, ..)| *own == number).filter(|_| length >= 2);
            if let Some((_, program, own)) = known.and_then(|at| self.pending.remove(at)) {
                buffer[..2].copy_from_slice(&own);
                let _ = self.listen.send_to(&buffer[..length], program);
            }
        }
    }
    /// Accepts a connection; returns the thread that serves it until `stop` is set.
    fn accept(&self, stop: &Arc<AtomicBool>) -> io::Result<JoinHandle<()>> {
        let (program, _) = self.tcp.accept()?;
        let (to, namespace) = (self.to, self.namespace.as_ref().map(File::try_clone).transpose()?);
        let stop = Arc::clone(stop);
        // Without a connection onwards, the program's is closed.
        let work = move || drop(enter(namespace).and_then(|()| copy_both_ways(&program, to, &stop)));
        Ok(std::thread::spawn(work))
    }
}

fn enter(namespace: Option<File>) -> io::Result<()> {
    namespace.map_or(Ok(()), |namespace| Ok(setns(&namespace, CloneFlags::CLONE_NEWNET)?))
}

fn copy_both_ways(program: &TcpStream, to: SocketAddr, stop: &AtomicBool) -> io::Result<()> {
    let resolver = TcpStream::connect_timeout(&to, CONNECT_TIMEOUT)?;
    program.set_nonblocking(false)?;
    for stream in [program, &resolver] {
        stream.set_read_timeout(Some(CHECK_INTERVAL))?;
        stream.set_write_timeout(Some(CONNECT_TIMEOUT))?;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| copy(program, &resolver, stop));
        copy(&resolver, program, stop);
        // A program that stays silent after the answer does not hold the connection.
        let _ = program.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// Copies until the end of the data, an error, a long silence, or the end of the emulation.
fn copy(mut from: &TcpStream, mut to: &TcpStream, stop: &AtomicBool) {
    let (mut buffer, mut silent) = ([0; 4096], Duration::ZERO);
    while !stop.load(Ordering::Relaxed) && silent < IDLE_TIMEOUT {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) if to.write_all(&buffer[..length]).is_ok() => silent = Duration::ZERO,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                silent += CHECK_INTERVAL;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn work(mut relays: Vec<Relay>, stop: &Arc<AtomicBool>) {
    let mut buffer = vec![0; usize::from(u16::MAX)];
    let mut connections: Vec<JoinHandle<()>> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let readable = |socket| PollFd::new(socket, PollFlags::POLLIN);
        let mut sockets: Vec<PollFd<'_>> =
            relays.iter().flat_map(|r| [r.listen.as_fd(), r.upstream.as_fd()]).map(readable).collect();
        if connections.len() < MAX_CONNECTIONS {
            sockets.extend(relays.iter().map(|relay| readable(relay.tcp.as_fd())));
        }
        if poll(&mut sockets, PollTimeout::try_from(CHECK_INTERVAL).unwrap_or(PollTimeout::ZERO))
            .is_ok_and(|count| count == 0)
        {
            connections.retain(|thread| !thread.is_finished());
            continue;
        }
        drop(sockets);
        connections.retain(|thread| !thread.is_finished());
        for relay in &mut relays {
            relay.pass(&mut buffer);
            if connections.len() < MAX_CONNECTIONS {
                connections.extend(relay.accept(stop));
            }
        }
    }
    connections.into_iter().for_each(|thread| drop(thread.join()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolvers_are_those_of_the_first_three_lines_that_name_one() {
        let text = "# nameserver 192.0.2.9\nsearch example\nnameserver 127.0.0.53\nnameserver\nnameserver ::1\n\
                    nameserver fe80::1%eth0\nnameserver 127.0.0.53\nnameserver 192.0.2.1 # x\nnameserver 192.0.2.2\n";
        let found: Vec<String> = resolvers(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["127.0.0.53", "::1", "192.0.2.1"]);
    }

    #[test]
    fn each_program_gets_the_answer_to_its_own_query_with_its_own_number() {
        let resolver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let resolver_tcp = TcpListener::bind(resolver.local_addr().unwrap()).unwrap();
        let relay = |to| Relay::new("127.0.0.1:0".parse().unwrap(), to, None).unwrap();
        let outer = relay(resolver.local_addr().unwrap());
        let inner = relay(outer.listen.local_addr().unwrap());
        let at = inner.listen.local_addr().unwrap();
        let stop = Arc::<AtomicBool>::default();
        let stop_flag = Arc::clone(&stop);
        let names =
            Names { stop, thread: Some(std::thread::spawn(move || work(vec![outer, inner], &stop_flag))) };
        // Two programs with the same number; the resolver answers in reverse order.
        let programs: Vec<UdpSocket> = (0..2).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let mut queries = Vec::new();
        for (index, program) in programs.iter().enumerate() {
            program.send_to(&[7, 7, index as u8], at).unwrap();
            let mut query = [0; 9];
            let (length, from) = resolver.recv_from(&mut query).unwrap();
            assert_eq!((length, query[2]), (3, index as u8));
            queries.push((query, from));
        }
        for (query, from) in queries.iter().rev() {
            resolver.send_to(&query[..3], from).unwrap();
        }
        for (index, program) in programs.iter().enumerate() {
            let mut answer = [0; 9];
            assert_eq!(program.recv(&mut answer).unwrap(), 3);
            assert_eq!(answer[..3], [7, 7, index as u8]);
        }
        // The same over TCP, whose connection ends with the relays.
        let mut program = TcpStream::connect(at).unwrap();
        program.write_all(b"query").unwrap();
        let (mut onwards, _) = resolver_tcp.accept().unwrap();
        let mut query = [0; 5];
        onwards.read_exact(&mut query).unwrap();
        onwards.write_all(b"answer").unwrap();
        let mut answer = [0; 6];
        program.read_exact(&mut answer).unwrap();
        assert_eq!((&query, &answer), (b"query", b"answer"));
        drop(names);
        assert_eq!(program.read(&mut answer).unwrap(), 0);
    }
}
