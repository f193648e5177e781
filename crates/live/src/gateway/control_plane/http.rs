//! A small HTTP server for a monitoring system and for people: `GET /metrics` (Prometheus' text format), `GET
//! /devices` (JSON), and a page that shows `GET /state` (JSON). Nothing can be changed by it. Requests are
//! answered one at a time, each on a connection of its own (HTTP/1.1 with `Connection: close`).

use super::operations::{ControlPlane, TOP_DEVICES};
use super::protocol::Response;
use crate::realtime::clock;
use paceline_net::{Duration, Instant};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time;

/// Bytes of a request's head that are read at most. Chosen: the usual limit of HTTP servers.
const MAX_REQUEST_BYTES: usize = 8192;
/// Time for a client to send its request, and for each write of the answer. Chosen: short, since other
/// clients wait meanwhile.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after a failed accept(2). Chosen: the usual error is a lack of descriptors, which lasts.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The page, which loads nothing but `/state`.
const PAGE: &str = include_str!("page.html");
/// Headers for browsers: the page loads nothing from elsewhere, and is not shown inside other pages.
const SAFE: &str = "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src \
    'unsafe-inline'; connect-src 'self'; img-src data:; frame-ancestors 'none'\r\n\
    X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n";

/// Answers HTTP requests in a thread of its own.
pub fn serve(listener: TcpListener, control_plane: Arc<ControlPlane>) -> io::Result<()> {
    thread::Builder::new().name("metrics".into()).spawn(move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => drop(answer(stream, &control_plane)), // the client may have disconnected
                Err(_) => clock::pause(ACCEPT_PAUSE),
            }
        }
    })?;
    Ok(())
}

fn answer(mut stream: TcpStream, control_plane: &ControlPlane) -> io::Result<()> {
    stream.set_write_timeout(Some(time::Duration::from_nanos(CLIENT_TIMEOUT.as_nanos())))?;
    let head = read_head(&mut stream, clock::now() + CLIENT_TIMEOUT)?;
    let mut words = head.split_whitespace();
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let (status, kind, body) = match (method, path.split('?').next().unwrap_or("")) {
        ("GET", "/metrics") => {
            ("200 OK", "text/plain; version=0.0.4; charset=utf-8", control_plane.metrics())
        }
        ("GET", "/devices") => {
            let devices = Response::Devices(control_plane.top_devices(TOP_DEVICES));
            ("200 OK", "application/json", serde_json::to_string(&devices)? + "\n")
        }
        ("GET", "/") => ("200 OK", "text/html; charset=utf-8", PAGE.into()),
        ("GET", "/state") => {
            ("200 OK", "application/json", serde_json::to_string(&control_plane.overview())? + "\n")
        }
        ("GET", _) => ("404 Not Found", "text/plain", "there are /, /state, /metrics and /devices\n".into()),
        _ => ("405 Method Not Allowed", "text/plain", "GET alone is allowed\n".into()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{SAFE}Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Reads up to the empty line behind the headers; a client that is cut off earlier may report an error. Fails
/// at `deadline`, however many bytes the client sends before it.
fn read_head(stream: &mut TcpStream, deadline: Instant) -> io::Result<String> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_REQUEST_BYTES {
        let wait = deadline.since(clock::now());
        if wait.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(time::Duration::from_nanos(wait.as_nanos())))?;
        match stream.read(&mut part)? {
            0 => break,
            len => head.extend_from_slice(&part[..len]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that keep coming do not extend the deadline: the head would be complete only after 8192 of them.
    #[test]
    fn a_client_that_sends_a_byte_now_and_then_is_disconnected() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let slow = thread::spawn(move || {
            while client.write_all(b"G").is_ok() {
                clock::pause(Duration::from_millis(50));
            }
        });
        let head = read_head(&mut stream, clock::now() + Duration::from_millis(500));
        drop(stream);
        slow.join().unwrap();
        let error = head.unwrap_err().kind();
        assert!(matches!(error, io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{error}");
    }
}
