//! The kernel's state of single TCP connections, by sock_diag (sock_diag(7), `linux/inet_diag.h`).

use anyhow::Context;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;
use paceline_net::FlowKey;
use paceline_sim::results::KernelEnd;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// Message type of requests and answers (Linux, `linux/sock_diag.h`).
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Message type of an error (Linux, `linux/netlink.h`).
const NLMSG_ERROR: u16 = 2;
/// Flag of a request (Linux, `linux/netlink.h`).
const NLM_F_REQUEST: u16 = 1;
/// Bytes of `struct nlmsghdr` (Linux, `linux/netlink.h`).
const HEADER_BYTES: usize = 16;
/// Bytes of `struct inet_diag_req_v2` (Linux, `linux/inet_diag.h`).
const REQUEST_BYTES: usize = 56;
/// Bytes of `struct inet_diag_msg` (Linux, `linux/inet_diag.h`).
const ANSWER_BYTES: usize = 72;
/// Attribute with `struct tcp_info` (Linux, `linux/inet_diag.h`).
const INET_DIAG_INFO: u16 = 2;
/// Attribute with the name of the congestion control (Linux, `linux/inet_diag.h`).
const INET_DIAG_CONG: u16 = 4;
/// Attribute with the socket's memory, `enum` of `SK_MEMINFO_...` (Linux, `linux/inet_diag.h`).
const INET_DIAG_SKMEMINFO: u16 = 7;
/// Offsets of `SK_MEMINFO_SNDBUF` and `SK_MEMINFO_WMEM_QUEUED` (Linux, `linux/sock_diag.h`), bytes.
const SNDBUF_AT: usize = 12;
const WMEM_QUEUED_AT: usize = 20;
/// Offset of `tcpi_unacked`, in segments (Linux, `linux/tcp.h`), bytes.
const UNACKED_AT: usize = 24;
/// Offset of `tcpi_notsent_bytes` (Linux, `linux/tcp.h`), bytes.
const NOTSENT_AT: usize = 144;
/// States of connections that have opened (Linux, `net/tcp_states.h`): ESTABLISHED, FIN_WAIT1, FIN_WAIT2,
/// CLOSE_WAIT, LAST_ACK, CLOSING.
const OPEN_STATES: [u8; 6] = [1, 4, 5, 8, 9, 11];
/// Offset of `tcpi_snd_mss`, in bytes (Linux, `linux/tcp.h`), bytes.
const SND_MSS_AT: usize = 16;
/// Offset of `tcpi_snd_cwnd`, in segments (Linux, `linux/tcp.h`), bytes.
const SND_CWND_AT: usize = 80;
/// Offset of `tcpi_rtt`, in us, in `struct tcp_info` (Linux, `linux/tcp.h`), bytes.
const RTT_AT: usize = 68;
/// Offset of `tcpi_total_retrans` (Linux, `linux/tcp.h`), bytes.
const TOTAL_RETRANS_AT: usize = 100;
/// Offset of `tcpi_min_rtt`, in us (Linux, `linux/tcp.h`), bytes.
const MIN_RTT_AT: usize = 148;
/// Offset of `tcpi_data_segs_out` (Linux, `linux/tcp.h`), bytes.
const DATA_SEGS_OUT_AT: usize = 156;
/// Offsets of `tcpi_busy_time`, `tcpi_rwnd_limited` and `tcpi_sndbuf_limited`, in us (Linux, `linux/tcp.h`),
/// bytes.
const BUSY_TIME_AT: usize = 168;
const RWND_LIMITED_AT: usize = 176;
const SNDBUF_LIMITED_AT: usize = 184;
/// Offset of `tcpi_snd_wnd`, in bytes (Linux, `linux/tcp.h`), bytes.
const SND_WND_AT: usize = 228;
/// Longest wait for an answer, ms. Chosen: the kernel answers within the call that sends the request.
const ANSWER_TIMEOUT_MS: i64 = 100;

/// A reading of one end.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reading {
    pub end: KernelEnd,
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Segments in flight, and those of the window that are free.
    in_flight: u32,
    free_segments: u32,
    /// Whether a segment or more waits to be sent.
    has_unsent: bool,
    memory: Memory,
    /// Readings so far with segments in flight, and those of them with a full send buffer.
    samples: [u32; 2],
}

/// Bytes of a socket's send buffer, with the kernel's structures.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Memory {
    limit: u32,
    queued: u32,
}

impl Memory {
    fn of(value: &[u8]) -> Self {
        Self {
            limit: number(value, SNDBUF_AT).unwrap_or(0),
            queued: number(value, WMEM_QUEUED_AT).unwrap_or(0),
        }
    }
}

impl Reading {
    /// Whether the send buffer is too full to be written to, all of it was sent, and the congestion window
    /// has room. The kernel wakes a writer when a third is free (`sk_stream_is_writeable`).
    fn has_full_send_buffer(&self) -> bool {
        let Memory { limit, queued } = self.memory;
        let is_full = limit > 0 && u64::from(queued) * 3 >= u64::from(limit) * 2;
        is_full && self.in_flight > 0 && self.free_segments > 0 && !self.has_unsent
    }
    /// This reading with the counts of those before it. The kernel's own time of a full send buffer lacks the
    /// waits of writers that block; the share of readings with a full buffer replaces it where it is more.
    pub fn after(mut self, before: Option<&Self>) -> Self {
        let [busy, full] = before.map_or([0, 0], |before| before.samples);
        self.samples = [busy + u32::from(self.in_flight > 0), full + u32::from(self.has_full_send_buffer())];
        let [busy, full] = self.samples;
        if let (Some(time), Some(window)) = (self.end.busy_s, self.end.receive_window_s)
            && full > 0
        {
            let sampled = (time - window).max(0.0) * f64::from(full) / f64::from(busy);
            self.end.send_buffer_s = self.end.send_buffer_s.map(|own| own.max(sampled));
        }
        self
    }
}

/// The number at an offset.
fn number(value: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(value.get(at..at + 4)?.try_into().ok()?))
}

/// A socket for requests about the connections of one network namespace.
pub struct SockDiag {
    socket: OwnedFd,
}

impl SockDiag {
    /// Opens it in the calling thread's namespace.
    pub fn open() -> anyhow::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let protocol = SockProtocol::NetlinkSockDiag;
        let socket = socket(AddressFamily::Netlink, SockType::Datagram, flags, protocol)
            .context("cannot open a sock_diag socket")?;
        let timeout = TimeVal::new(0, ANSWER_TIMEOUT_MS * 1000);
        setsockopt(&socket, sockopt::ReceiveTimeout, &timeout).context("cannot set up a sock_diag socket")?;
        Ok(Self { socket })
    }
    /// The reading of the end that sends packets of this flow; none if there is no open connection.
    pub fn read(&self, flow: FlowKey) -> Option<Reading> {
        let fd = self.socket.as_raw_fd();
        send(fd, &request(flow), MsgFlags::empty()).ok()?;
        // An answer is below 1 kB: the header, and attributes of about 300 bytes.
        let mut answer = [0; 4096];
        let length = recv(fd, &mut answer, MsgFlags::empty()).ok()?;
        parse(&answer[..length])
    }
}

/// The request about one connection.
fn request(flow: FlowKey) -> [u8; HEADER_BYTES + REQUEST_BYTES] {
    let mut message = [0; HEADER_BYTES + REQUEST_BYTES];
    let mut put = |at: usize, bytes: &[u8]| message[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &((HEADER_BYTES + REQUEST_BYTES) as u32).to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &NLM_F_REQUEST.to_ne_bytes());
    let family = if flow.src.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let extensions = [INET_DIAG_INFO, INET_DIAG_CONG, INET_DIAG_SKMEMINFO];
    let extensions = extensions.iter().fold(0, |bits, attribute| bits | 1 << (attribute - 1));
    put(HEADER_BYTES, &[family as u8, libc::IPPROTO_TCP as u8, extensions]);
    put(HEADER_BYTES + 4, &u32::MAX.to_ne_bytes()); // connections in any state
    put(HEADER_BYTES + 8, &flow.src_port.to_be_bytes());
    put(HEADER_BYTES + 10, &flow.dst_port.to_be_bytes());
    for (at, address) in [(12, flow.src), (28, flow.dst)] {
        match address {
            IpAddr::V4(address) => put(HEADER_BYTES + at, &address.octets()),
            IpAddr::V6(address) => put(HEADER_BYTES + at, &address.octets()),
        }
    }
    put(HEADER_BYTES + 48, &[0xff; 8]); // INET_DIAG_NOCOOKIE
    message
}

/// The reading in an answer; none if the connection is not open, or if its socket is closed and has only its
/// state left (FIN_WAIT2).
fn parse(message: &[u8]) -> Option<Reading> {
    let kind = u16::from_ne_bytes(message.get(4..6)?.try_into().ok()?);
    if kind == NLMSG_ERROR || !OPEN_STATES.contains(message.get(HEADER_BYTES + 1)?) {
        return None;
    }
    let (mut reading, mut has_info) = (Reading::default(), false);
    let mut rest = message.get(HEADER_BYTES + ANSWER_BYTES..)?;
    while let Some(header) = rest.get(..4) {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let value = rest.get(4..length)?;
        match u16::from_ne_bytes([header[2], header[3]]) {
            INET_DIAG_CONG => {
                let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
                reading.end.congestion_control = Some(String::from_utf8_lossy(name).into_owned());
            }
            INET_DIAG_INFO => {
                add_info(&mut reading, value);
                has_info = true;
            }
            INET_DIAG_SKMEMINFO => reading.memory = Memory::of(value),
            _ => {}
        }
        // Attributes are aligned to 4 bytes.
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    has_info.then_some(reading)
}

fn add_info(reading: &mut Reading, info: &[u8]) {
    let number = |at: usize| number(info, at);
    let ms = |at: usize| number(at).filter(|us| (1..u32::MAX).contains(us)).map(|us| f64::from(us) / 1000.0);
    let segments = number(SND_CWND_AT).unwrap_or(0);
    reading.cwnd_bytes = u64::from(segments) * u64::from(number(SND_MSS_AT).unwrap_or(0));
    let unacked = number(UNACKED_AT).unwrap_or(0);
    (reading.in_flight, reading.free_segments) = (unacked, segments.saturating_sub(unacked));
    reading.has_unsent = number(NOTSENT_AT) >= number(SND_MSS_AT);
    let end = &mut reading.end;
    end.srtt_ms = ms(RTT_AT);
    end.min_rtt_ms = ms(MIN_RTT_AT);
    end.retransmissions = number(TOTAL_RETRANS_AT).map(u64::from);
    end.segments = number(DATA_SEGS_OUT_AT).map(u64::from);
    let seconds = |at: usize| {
        let us = u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?);
        Some(us as f64 / 1e6)
    };
    end.busy_s = seconds(BUSY_TIME_AT);
    end.receive_window_s = seconds(RWND_LIMITED_AT);
    end.send_buffer_s = seconds(SNDBUF_LIMITED_AT);
    end.window = number(SND_WND_AT).map(u64::from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    #[allow(clippy::disallowed_methods, reason = "waits for the kernel, with a bound")]
    fn the_times_of_a_full_receive_window_are_read() {
        let diag = SockDiag::open().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let (local, peer) = (server.local_addr().unwrap(), server.peer_addr().unwrap());
        let key = FlowKey { src: local.ip(), dst: peer.ip(), src_port: local.port(), dst_port: peer.port() };
        // The client reads nothing: its window fills, and the server waits for it.
        server.set_nonblocking(true).unwrap();
        let mut reading = Reading::default();
        let is_blocked = |end: &KernelEnd| end.receive_window_s.is_some_and(|seconds| seconds > 0.0);
        for _ in 0..1000 {
            while server.write(&[0; 1 << 16]).is_ok() {}
            reading = diag.read(key).expect("the server's end is open");
            if is_blocked(&reading.end) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(is_blocked(&reading.end), "{reading:?}");
        assert!(reading.end.busy_s >= reading.end.receive_window_s, "{reading:?}");
        assert!(reading.end.send_buffer_s.is_some() && reading.end.window.is_some(), "{reading:?}");
        drop(client);
    }

    #[test]
    fn readings_with_a_full_send_buffer_are_a_share_of_the_busy_time() {
        let end = KernelEnd {
            busy_s: Some(2.0),
            receive_window_s: Some(0.5),
            send_buffer_s: Some(0.1),
            ..KernelEnd::default()
        };
        let memory = Memory { limit: 9000, queued: 6000 };
        let full = Reading { end, in_flight: 4, free_segments: 6, memory, ..Reading::default() };
        let filled = Reading { free_segments: 0, ..full.clone() };
        let unsent = Reading { has_unsent: true, ..full.clone() };
        let idle = Reading { in_flight: 0, ..full.clone() };
        let mut last = None;
        for reading in [&full, &filled, &idle, &full, &unsent] {
            last = Some(reading.clone().after(last.as_ref()));
        }
        // Two of four busy readings.
        assert_eq!(last.unwrap().end.send_buffer_s, Some(0.75));
        assert_eq!(filled.after(None).end.send_buffer_s, Some(0.1));
    }

    #[test]
    fn both_ends_of_a_loopback_connection_are_read() {
        let diag = SockDiag::open().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let key = |stream: &TcpStream| {
            let (local, peer) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            FlowKey { src: local.ip(), dst: peer.ip(), src_port: local.port(), dst_port: peer.port() }
        };
        server.write_all(&[0; 1000]).unwrap();
        (&client).read_exact(&mut [0; 1000]).unwrap();
        let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        let Reading { end, cwnd_bytes, .. } = diag.read(key(&server)).expect("the server's end is open");
        // Ten segments at least (RFC 6928).
        assert!(cwnd_bytes >= 10 * 1000, "{cwnd_bytes}");
        assert_eq!(end.congestion_control.as_deref(), Some(default.trim()));
        assert_eq!((end.segments, end.retransmissions), (Some(1), Some(0)));
        assert!(end.srtt_ms.is_some_and(|ms| ms > 0.0) && end.min_rtt_ms.is_some(), "{end:?}");
        let end = diag.read(key(&client)).expect("the client's end is open").end;
        assert_eq!(end.segments, Some(0));
        let other = FlowKey { src_port: 1, ..key(&client) };
        assert_eq!(diag.read(other), None);
    }
}
