//! Sessions of the kernel's TCP: the server sends without end, the client reads and samples.

use anyhow::{Context, anyhow};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect as connect_to, setsockopt, socket, sockopt,
};
use paceline_linux::network::netns::Namespace;
use paceline_linux::priority;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// TCP port of the server. Chosen: iperf's; the namespaces have no other server.
const PORT: u16 = 5001;
/// Bytes of one write. Chosen: 64 KiB, a super-packet.
const PIECE_BYTES: usize = 1 << 16;
/// Bytes of one read. Chosen: more than a queue of the source.
const READ_BYTES: usize = 1 << 20;
/// Time between samples. Chosen: thirty within the first 3 s.
const SAMPLE: Duration = Duration::from_millis(100);
/// Longest wait for data, ms. Chosen: a part of [`SAMPLE`].
const WAIT_MS: u16 = 20;

/// Listens in the calling thread's namespace with a congestion control.
pub fn listen(address: Ipv4Addr, control: &str) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind((address, PORT)).context("the server cannot listen")?;
    setsockopt(&listener, sockopt::TcpCongestion, &OsString::from(control)).with_context(|| {
        let known = paceline_linux::ability::congestion_controls().join(", ");
        format!("{control}: no congestion control of this kernel; available: {known}")
    })?;
    Ok(listener)
}

/// Opens a session from each of `addresses`: the client's ends and the server's.
pub fn connect(
    client: &Namespace,
    listener: &TcpListener,
    server: Ipv4Addr,
    addresses: impl Iterator<Item = Ipv4Addr>,
) -> anyhow::Result<(Vec<TcpStream>, Vec<TcpStream>)> {
    let (mut clients, mut servers) = (Vec::new(), Vec::new());
    for address in addresses {
        clients.push(client.inside(|| open(address, server))?);
        servers.push(listener.accept().context("the server cannot accept a session")?.0);
    }
    Ok((clients, servers))
}

fn open(from: Ipv4Addr, server: Ipv4Addr) -> anyhow::Result<TcpStream> {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 0)))
        .with_context(|| format!("the client cannot use {from}"))?;
    connect_to(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(server, PORT)))
        .context("the client cannot reach the server")?;
    Ok(socket.into())
}

/// Threads that send without end on a session each. Dropping it ends them.
pub struct Senders {
    sessions: Vec<TcpStream>,
    threads: Vec<JoinHandle<()>>,
}

impl Senders {
    /// Starts them.
    pub fn start(sessions: Vec<TcpStream>) -> anyhow::Result<Self> {
        let mut threads = Vec::new();
        for session in &sessions {
            let mut session = session.try_clone().context("cannot duplicate a session")?;
            threads.push(std::thread::spawn(move || {
                let piece = vec![0; PIECE_BYTES];
                while session.write_all(&piece).is_ok() {}
            }));
        }
        Ok(Self { sessions, threads })
    }
    /// Segments that were sent again (`tcpi_total_retrans`).
    pub fn retransmissions(&self) -> anyhow::Result<u64> {
        let of = |session| total_retransmissions(session).context("cannot read a session's counters");
        self.sessions.iter().map(of).sum()
    }
}

/// Segments of a socket that were sent again (tcp(7), TCP_INFO).
fn total_retransmissions(session: &TcpStream) -> io::Result<u64> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: the kernel writes at most `length` bytes; all bit patterns are valid numbers.
    #[allow(unsafe_code)]
    let (result, info) = unsafe {
        let at = info.as_mut_ptr().cast();
        (libc::getsockopt(session.as_raw_fd(), level, option, at, &raw mut length), info.assume_init())
    };
    if result == 0 { Ok(info.tcpi_total_retrans.into()) } else { Err(io::Error::last_os_error()) }
}

impl Drop for Senders {
    fn drop(&mut self) {
        for session in &self.sessions {
            let _ = session.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Samples over time: seconds, and the bytes of each session until then.
type Samples = Vec<(f64, Vec<u64>)>;

/// A thread that reads from all sessions, before other programs of this host.
pub struct Receiver {
    thread: JoinHandle<anyhow::Result<Samples>>,
}

impl Receiver {
    /// Starts it; it ends after `span`.
    pub fn start(sessions: Vec<TcpStream>, span: Duration) -> Self {
        Self { thread: std::thread::spawn(move || receive(sessions, span)) }
    }
    /// Waits for the samples.
    pub fn finish(self) -> anyhow::Result<Samples> {
        self.thread.join().map_err(|_| anyhow!("the receiver panicked"))?
    }
}

fn receive(mut sessions: Vec<TcpStream>, span: Duration) -> anyhow::Result<Samples> {
    priority::set_fifo(0, priority::PROGRAM).context("cannot set a real-time priority")?;
    for session in &sessions {
        session.set_nonblocking(true)?;
    }
    let (begin, mut buffer) = (Instant::now(), vec![0; READ_BYTES]);
    let mut bytes = vec![0; sessions.len()];
    let mut samples = vec![(0.0, bytes.clone())];
    let mut next = SAMPLE;
    while begin.elapsed() < span {
        let mut ends: Vec<PollFd<'_>> =
            sessions.iter().map(|session| PollFd::new(session.as_fd(), PollFlags::POLLIN)).collect();
        poll(&mut ends, PollTimeout::from(WAIT_MS)).context("cannot wait for data")?;
        let ready: Vec<bool> = ends.iter().map(|end| end.any().unwrap_or(false)).collect();
        for (index, _) in ready.iter().enumerate().filter(|(_, ready)| **ready) {
            match sessions[index].read(&mut buffer) {
                Ok(length) => bytes[index] += length as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("the client cannot read"),
            }
        }
        if begin.elapsed() >= next {
            samples.push((begin.elapsed().as_secs_f64(), bytes.clone()));
            next = begin.elapsed() + SAMPLE;
        }
    }
    samples.push((begin.elapsed().as_secs_f64(), bytes));
    Ok(samples)
}
