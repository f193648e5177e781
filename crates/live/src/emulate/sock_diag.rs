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
    let extensions = (1 << (INET_DIAG_INFO - 1)) | (1 << (INET_DIAG_CONG - 1));
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

/// The reading in an answer; none if the connection is not open.
fn parse(message: &[u8]) -> Option<Reading> {
    let kind = u16::from_ne_bytes(message.get(4..6)?.try_into().ok()?);
    if kind == NLMSG_ERROR || !OPEN_STATES.contains(message.get(HEADER_BYTES + 1)?) {
        return None;
    }
    let mut reading = Reading::default();
    let mut rest = message.get(HEADER_BYTES + ANSWER_BYTES..)?;
    while let Some(header) = rest.get(..4) {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let value = rest.get(4..length)?;
        match u16::from_ne_bytes([header[2], header[3]]) {
            INET_DIAG_CONG => {
                let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
                reading.end.congestion_control = Some(String::from_utf8_lossy(name).into_owned());
            }
            INET_DIAG_INFO => add_info(&mut reading, value),
            _ => {}
        }
        // Attributes are aligned to 4 bytes.
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(reading)
}

fn add_info(reading: &mut Reading, info: &[u8]) {
    let number = |at: usize| Some(u32::from_ne_bytes(info.get(at..at + 4)?.try_into().ok()?));
    let ms = |at: usize| number(at).filter(|us| (1..u32::MAX).contains(us)).map(|us| f64::from(us) / 1000.0);
    let segments = number(SND_CWND_AT).unwrap_or(0);
    reading.cwnd_bytes = u64::from(segments) * u64::from(number(SND_MSS_AT).unwrap_or(0));
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
        let Reading { end, cwnd_bytes } = diag.read(key(&server)).expect("the server's end is open");
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
