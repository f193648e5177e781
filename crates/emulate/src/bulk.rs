//! Bulk transfers over the kernel's TCP, for the comparison of the kernel with simulated endpoints (`paceline
//! parity`).
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // transfers of real time

use anyhow::{Context, bail};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pause before a failed bind, accept or connect is repeated. Chosen: short beside a transfer.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// Longest time to establish a connection. Chosen: several retransmissions of a SYN.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes written or read in one call. Chosen: 64 KiB, a super-packet.
const PIECE_BYTES: usize = 1 << 16;

/// A server that sends without end on each connection. Dropping it stops accepting; connections end when the
/// client closes.
pub struct Source {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Source {
    /// Serves `address` in the caller's network namespace, as soon as a device has the address.
    pub fn start(address: SocketAddr) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let stop_flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stop_flag.load(Ordering::Relaxed) {
                match TcpListener::bind(address) {
                    Ok(listener) => return accept(&listener, &stop_flag),
                    Err(_) => std::thread::sleep(RETRY_INTERVAL),
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, stop: &AtomicBool) {
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                std::thread::spawn(move || send(stream));
            }
            Err(_) => std::thread::sleep(RETRY_INTERVAL),
        }
    }
}

fn send(mut stream: TcpStream) {
    let piece = vec![0; PIECE_BYTES];
    let blocking = stream.set_nonblocking(false);
    while blocking.is_ok() && stream.write_all(&piece).is_ok() {}
}

/// Opens connections to `address` and reads from them for `span`. Returns the bytes of each.
pub fn receive(address: SocketAddr, connections: usize, span: Duration) -> anyhow::Result<Vec<u64>> {
    let reader = |_| std::thread::spawn(move || read_for(address, span));
    let readers: Vec<_> = (0..connections).map(reader).collect();
    let mut bytes = Vec::new();
    for reader in readers {
        bytes.push(reader.join().map_err(|_| anyhow::anyhow!("a reader panicked"))??);
    }
    Ok(bytes)
}

fn read_for(address: SocketAddr, span: Duration) -> anyhow::Result<u64> {
    let started = Instant::now();
    let mut stream = loop {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => break stream,
            Err(error) if started.elapsed() > CONNECT_TIMEOUT => {
                return Err(error).with_context(|| format!("cannot connect to {address}"));
            }
            Err(_) => std::thread::sleep(RETRY_INTERVAL),
        }
    };
    let (mut piece, mut bytes) = (vec![0; PIECE_BYTES], 0);
    loop {
        let left = span.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Ok(bytes);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => bail!("{address} has closed the connection"),
            Ok(length) => bytes += length as u64,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read from {address}")),
        }
    }
}
