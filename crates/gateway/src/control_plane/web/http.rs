//! A small HTTP server for a monitoring system and for people: `GET /metrics` (Prometheus' text format), `GET
//! /devices` (JSON), and a page that shows `GET /state` and `GET /history` (JSON). Nothing can be changed by
//! it. Requests are answered at the same time, each on a connection of its own (HTTP/1.1 with `Connection:
//! close`) with deadlines, and only under this machine's names: a page of a stranger whose name leads here
//! (DNS rebinding) gets nothing.

use super::hosts::Hosts;
use crate::control_plane::operations::{ControlPlane, TOP_DEVICES};
use crate::control_plane::socket::protocol::Response;
use crate::service::confinement::{Confined, confine};
use crate::service::log::{self, Level};
use paceline_linux::clock;
use paceline_net::{Duration, Instant};
use serde::Serialize;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time;

/// Bytes of a request's head that are read at most. Chosen: the usual limit of HTTP servers.
const MAX_REQUEST_BYTES: usize = 8192;
/// Connections at a time; then the one that has waited longest without a request is closed. Chosen: far more
/// than monitoring systems and people open, few enough threads to be harmless.
const MAX_CLIENTS: usize = 64;
/// Time for a client to send its request. Chosen: far longer than a client needs.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for a client to take its answer. Chosen: an answer has some kilobytes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a failed accept(2). Chosen: the usual error is a lack of descriptors, which lasts.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The page, which loads nothing but `/state` and `/history`.
const PAGE: &str = include_str!("page.html");
/// Headers for browsers: the page loads nothing from elsewhere, and is not shown inside other pages.
const SAFE: &str = "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src \
    'unsafe-inline'; connect-src 'self'; img-src data:; frame-ancestors 'none'\r\n\
    X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n";

/// The connections at present.
#[derive(Default)]
struct Clients {
    count: AtomicUsize,
    /// Those whose request is not complete, the oldest first.
    asking: Mutex<VecDeque<(u64, TcpStream)>>,
}

impl Clients {
    fn asking(&self) -> std::sync::MutexGuard<'_, VecDeque<(u64, TcpStream)>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// A further connection. False if there is no room for it.
    fn enter(&self, number: u64, stream: &TcpStream) -> bool {
        let mut asking = self.asking();
        if self.count.load(Ordering::Relaxed) >= MAX_CLIENTS {
            let Some((_, oldest)) = asking.pop_front() else { return false };
            let _ = oldest.shutdown(Shutdown::Both); // its thread ends
        }
        // Threads that have to end may not have done so.
        if self.count.load(Ordering::Relaxed) >= 2 * MAX_CLIENTS {
            return false;
        }
        let Ok(second) = stream.try_clone() else { return false };
        asking.push_back((number, second));
        self.count.fetch_add(1, Ordering::Relaxed);
        true
    }
    /// The request is complete, or cannot be any more.
    fn has_asked(&self, number: u64) {
        self.asking().retain(|(other, _)| *other != number);
    }
    fn leave(&self, number: u64) {
        self.has_asked(number);
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers HTTP requests, each in a thread of its own.
pub fn serve(listener: TcpListener, control_plane: Arc<ControlPlane>, hosts: Hosts) -> io::Result<()> {
    thread::Builder::new().name("metrics".into()).spawn(move || {
        if let Err(error) = confine(Confined::Http) {
            let text = format!("metrics: nothing is answered: {error:#}");
            return log::message(Level::Error, &text, &[("PACELINE_EVENT", "problem")]);
        }
        let (clients, hosts) = (Arc::<Clients>::default(), Arc::new(hosts));
        for number in 0.. {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(_) => {
                    clock::pause(ACCEPT_PAUSE);
                    continue;
                }
            };
            if !clients.enter(number, &stream) {
                continue;
            }
            let (control_plane, hosts) = (Arc::clone(&control_plane), Arc::clone(&hosts));
            let own = Arc::clone(&clients);
            let work = move || {
                let head = read_head(&stream, clock::now() + REQUEST_TIMEOUT);
                own.has_asked(number);
                // The client may have disconnected.
                let _ = head.and_then(|head| answer(stream, &head, &control_plane, &hosts));
                own.leave(number);
            };
            if thread::Builder::new().name("http".into()).spawn(work).is_err() {
                clients.leave(number);
            }
        }
    })?;
    Ok(())
}

fn answer(stream: TcpStream, head: &str, control_plane: &ControlPlane, hosts: &Hosts) -> io::Result<()> {
    let (status, kind, body) = match respond(head, control_plane, hosts) {
        Ok((kind, body)) => ("200 OK", kind, body),
        Err((status, body)) => (status, "text/plain", body),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{SAFE}Connection: close\r\n\r\n",
        body.len()
    );
    write_all(&stream, &[head.as_bytes(), body.as_bytes()].concat(), clock::now() + ANSWER_TIMEOUT)
}

/// The type of an answer and its content, or the status and the reason of a refusal.
type Answer = Result<(&'static str, String), (&'static str, String)>;

fn respond(head: &str, control_plane: &ControlPlane, hosts: &Hosts) -> Answer {
    let mut words = head.split_whitespace();
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    hosts.check(head)?;
    if method != "GET" {
        return Err(("405 Method Not Allowed", "GET alone is allowed\n".into()));
    }
    match path.split('?').next().unwrap_or("") {
        "/metrics" => Ok(("text/plain; version=0.0.4; charset=utf-8", control_plane.metrics())),
        "/devices" => json(&Response::Devices(control_plane.top_devices(TOP_DEVICES))),
        "/" => Ok(("text/html; charset=utf-8", PAGE.into())),
        "/state" => json(&control_plane.overview()),
        "/history" => json(&control_plane.history()),
        _ => Err(("404 Not Found", "there are /, /state, /history, /metrics and /devices\n".into())),
    }
}

fn json(value: &impl Serialize) -> Answer {
    let text = serde_json::to_string(value);
    let text = text.map_err(|error| ("500 Internal Server Error", format!("{error}\n")))?;
    Ok(("application/json", text + "\n"))
}

/// The time until a deadline, which is not over.
fn left(deadline: Instant) -> io::Result<time::Duration> {
    let wait = deadline.since(clock::now());
    if wait.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(time::Duration::from_nanos(wait.as_nanos()))
}

/// Reads up to the empty line behind the headers; a client that is cut off earlier may report an error. Fails
/// at `deadline`, however many bytes the client sends before it.
fn read_head(mut stream: &TcpStream, deadline: Instant) -> io::Result<String> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_REQUEST_BYTES {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(&mut part)? {
            0 => break,
            len => head.extend_from_slice(&part[..len]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Writes everything. Fails at `deadline`, however slowly the client takes it.
fn write_all(mut stream: &TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }
    fn is_late(error: &io::Error) -> bool {
        matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
    }

    /// Bytes that keep coming do not extend the deadline: the head would be complete only after 8192 of them.
    #[test]
    fn a_client_that_sends_a_byte_now_and_then_is_disconnected() {
        let (mut client, stream) = pair();
        let slow = thread::spawn(move || {
            while client.write_all(b"G").is_ok() {
                clock::pause(Duration::from_millis(50));
            }
        });
        let head = read_head(&stream, clock::now() + Duration::from_millis(300));
        drop(stream);
        slow.join().unwrap();
        assert!(is_late(&head.unwrap_err()));
    }

    /// Some bytes that are taken now and then do not extend the deadline.
    #[test]
    fn a_client_that_takes_a_byte_now_and_then_is_disconnected() {
        let (mut client, stream) = pair();
        let slow = thread::spawn(move || {
            while client.read(&mut [0; 4096]).is_ok_and(|taken| taken > 0) {
                clock::pause(Duration::from_millis(20));
            }
        });
        let written = write_all(&stream, &vec![0; 64 << 20], clock::now() + Duration::from_millis(300));
        drop(stream);
        assert!(is_late(&written.unwrap_err()));
        drop(slow); // it reads on for as long as there is something in its buffer
    }

    #[test]
    fn when_there_is_no_room_the_oldest_silent_client_is_closed() {
        let clients = Clients::default();
        let ends: Vec<_> = (0..MAX_CLIENTS as u64).map(|number| (number, pair())).collect();
        assert!(ends.iter().all(|(number, (_, stream))| clients.enter(*number, stream)));
        clients.has_asked(0);
        let (mut last, stream) = pair();
        assert!(clients.enter(1000, &stream));
        // The first has sent its request, so the second is closed.
        let mut closed = &ends[1].1.0;
        assert_eq!(closed.read(&mut [0; 1]).unwrap(), 0);
        clients.leave(1);
        last.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(read_head(&stream, clock::now() + REQUEST_TIMEOUT).unwrap().starts_with("GET /"));
        assert_eq!(clients.count.load(Ordering::Relaxed), MAX_CLIENTS);
    }
}
