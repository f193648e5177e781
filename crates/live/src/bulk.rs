//! Bulk transfers over this host's own TCP: what a comparison of the kernel with simulated TCP moves.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // real time is what it is about

use anyhow::{Context, bail};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pause between two looks at a socket that is not ready.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest wait for a connection to be accepted.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes written or read at once.
const PIECE: usize = 1 << 16;

/// Sends without end to whoever connects, until it is dropped. Its connections end with their peers.
pub struct Source {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Source {
    /// Serves `address` in the caller's network namespace, from when the address is there.
    pub fn start(address: SocketAddr) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                match TcpListener::bind(address) {
                    Ok(listener) => return accept(&listener, &told),
                    Err(_) => std::thread::sleep(PAUSE),
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
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn send(mut stream: TcpStream) {
    let piece = vec![0; PIECE];
    let blocking = stream.set_nonblocking(false);
    while blocking.is_ok() && stream.write_all(&piece).is_ok() {}
}

/// Opens this many connections to `address` and reads all they bring for so long. Returns the bytes of each.
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
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => break stream,
            Err(error) if started.elapsed() > CONNECT => {
                return Err(error).with_context(|| format!("cannot connect to {address}"));
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    };
    let (mut piece, mut bytes) = (vec![0; PIECE], 0);
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
