//! The path MTU to an address, measured: echo requests (ICMP, ICMPv6) that no router may cut into fragments,
//! of sizes that a binary search chooses. An answer shows that the request passed. Answers are as long as
//! requests, so that the smaller MTU of both directions is found.
//!
//! The kernel's own knowledge of path MTUs is not used (IP_PMTUDISC_PROBE): it may be out of date, and a
//! router that drops long packets without a packet-too-big message leaves it wrong.

use super::device::device;
use crate::datapath::system_call::set_option;
use anyhow::{Context, anyhow, bail};
use etherparse::checksum::Sum16BitWords;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, recv, sendto, socket,
};
use paceline_linux::clock;
use paceline_linux::network::netns::ip_output;
use paceline_net::Duration;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Requests of one size before it counts as lost. Chosen: a path that loses a tenth of its packets loses all
/// of them once in a thousand sizes.
const TRIES: u32 = 3;
/// Time for the first answer. Chosen: longer than the round trip of a satellite and a base station.
const FIRST_TIMEOUT: Duration = Duration::from_secs(2);
/// Least time for further answers. Chosen: beyond the scheduling of an uplink.
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);
/// Smallest packet in bytes that every path passes (RFC 791, section 3.2).
const LEAST_V4: u32 = 68;
/// As [`LEAST_V4`] (RFC 8200, section 5).
const LEAST_V6: u32 = 1280;
/// Longest packet in bytes (RFC 791, section 3.1).
const LONGEST: u32 = 65_535;
/// Bytes of an echo request's header (RFC 792).
const ECHO_LEN: usize = 8;

/// The result of [`find`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathMtu {
    /// Bytes of the longest packet that passes, with its IP header.
    pub longest: u32,
    /// The interface that the route to the address uses, and its MTU.
    pub interface: String,
    /// See `interface`.
    pub interface_mtu: u32,
    /// A router said that a packet was too big. Without that, senders do not learn the path MTU.
    pub told: bool,
}

/// A route as `ip -json` prints it.
#[derive(Deserialize)]
struct Route {
    dev: Option<String>,
}

/// Measures the path MTU to an address, which has to answer echo requests.
pub fn find(address: IpAddr) -> anyhow::Result<PathMtu> {
    let routes = ip_output(&format!("-json route get {address}"))
        .with_context(|| format!("{address}: there is no route"))?;
    let routes: Vec<Route> =
        serde_json::from_str(&routes).context("cannot parse the output of `ip -json`")?;
    let interface = routes.into_iter().find_map(|route| route.dev);
    let interface = interface.with_context(|| format!("{address}: there is no route"))?;
    let interface_mtu = device(&interface)?.mtu;
    let mut prober = Prober::new(address)?;
    let longest = prober.search(interface_mtu.min(LONGEST))?;
    Ok(PathMtu { longest, interface, interface_mtu, told: prober.told })
}

struct Prober {
    address: IpAddr,
    socket: OwnedFd,
    id: [u8; 2],
    sequence: u16,
    timeout: Duration,
    told: bool,
}

/// A packet that arrived.
enum Answer {
    /// The answer to the request with this sequence number.
    Reply(u16),
    /// The request with this sequence number was too big.
    TooBig(u16),
}

impl Prober {
    fn new(address: IpAddr) -> anyhow::Result<Self> {
        let (family, protocol) = match address {
            IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp),
            IpAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6),
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(family, SockType::Raw, flags, protocol).map_err(|error| match error {
            Errno::EPERM => anyhow!("echo requests need root or CAP_NET_RAW"),
            error => anyhow!("cannot open a socket for echo requests: {error}"),
        })?;
        let (level, option, value) = match address {
            IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
            IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE),
        };
        set_option(socket.as_fd(), level, option, &value).context("cannot forbid fragments")?;
        let id = (std::process::id() as u16).to_be_bytes();
        Ok(Self { address, socket, id, sequence: 0, timeout: FIRST_TIMEOUT, told: false })
    }

    /// The longest packet of up to `most` bytes that passes.
    fn search(&mut self, most: u32) -> anyhow::Result<u32> {
        let mut passes = if self.address.is_ipv4() { LEAST_V4 } else { LEAST_V6 }.min(most);
        let began = clock::now();
        if !self.passes(passes)? {
            bail!("{} does not answer echo requests, not even of {passes} bytes", self.address);
        }
        // A lost request makes the measured time longer, and the search slower, but no less right.
        self.timeout = (clock::now().since(began) * 4).max(LEAST_TIMEOUT).min(FIRST_TIMEOUT);
        if self.passes(most)? {
            return Ok(most);
        }
        let mut fails = most;
        while fails - passes > 1 {
            let size = passes + (fails - passes) / 2;
            if self.passes(size)? { passes = size } else { fails = size }
        }
        Ok(passes)
    }

    /// Whether a packet of this size passes and is answered.
    fn passes(&mut self, size: u32) -> anyhow::Result<bool> {
        for _ in 0..TRIES {
            let first = self.sequence + 1;
            match self.send(size) {
                Err(Errno::EMSGSIZE) => return Ok(false),
                Err(Errno::ENETUNREACH | Errno::EHOSTUNREACH) => bail!("{}: there is no route", self.address),
                Err(Errno::ENOBUFS) => {} // an interface has dropped it, as another one on the path may
                sent => sent.with_context(|| format!("cannot send to {}", self.address))?,
            }
            let end = clock::now() + self.timeout;
            while let Some(answer) = self.receive(end)? {
                match answer {
                    Answer::Reply(sequence) if sequence == first => return Ok(true),
                    Answer::TooBig(sequence) if sequence == first => {
                        self.told = true;
                        return Ok(false);
                    }
                    _ => {} // of an earlier request
                }
            }
        }
        Ok(false)
    }

    fn send(&mut self, size: u32) -> Result<(), Errno> {
        self.sequence += 1;
        let header = if self.address.is_ipv4() { 20 } else { 40 };
        let mut message = vec![0; (size as usize - header).max(ECHO_LEN)];
        message[0] = if self.address.is_ipv4() { 8 } else { 128 };
        message[4..6].copy_from_slice(&self.id);
        message[6..8].copy_from_slice(&self.sequence.to_be_bytes());
        if self.address.is_ipv4() {
            // The kernel completes ICMPv6's checksum alone.
            let sum = Sum16BitWords::new().add_slice(&message).ones_complement();
            message[2..4].copy_from_slice(&sum.to_ne_bytes());
        }
        let to = SockaddrStorage::from(SocketAddr::new(self.address, 0));
        sendto(self.socket.as_raw_fd(), &message, &to, MsgFlags::empty()).map(|_| ())
    }

    /// The next answer to a request of this process, until `end`.
    fn receive(&self, end: paceline_net::Instant) -> anyhow::Result<Option<Answer>> {
        let mut bytes = vec![0; LONGEST as usize];
        loop {
            match recv(self.socket.as_raw_fd(), &mut bytes, MsgFlags::empty()) {
                Ok(len) => match self.read(&bytes[..len]) {
                    Some(answer) => return Ok(Some(answer)),
                    None => continue,
                },
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(error) => return Err(error).context("cannot receive answers"),
            }
            let left = end.since(clock::now());
            if left == Duration::ZERO {
                return Ok(None);
            }
            let timeout = PollTimeout::try_from(left.as_nanos() / 1_000_000 + 1).unwrap_or(PollTimeout::MAX);
            let mut readable = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            match poll(&mut readable, timeout) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error).context("cannot wait for answers"),
            }
        }
    }

    /// Reads a received message; None if it has nothing to do with this process's requests.
    fn read(&self, bytes: &[u8]) -> Option<Answer> {
        // Sockets of ICMP get the IP header, those of ICMPv6 do not.
        let message = if self.address.is_ipv4() { behind_ipv4(bytes)? } else { bytes };
        let (reply, too_big, request) =
            if self.address.is_ipv4() { (0, (3, 4), 8) } else { (129, (2, 0), 128) };
        let own = |echo: &[u8], kind: u8| -> Option<u16> {
            let header =
                echo.get(..ECHO_LEN).filter(|header| header[0] == kind && header[4..6] == self.id)?;
            Some(u16::from_be_bytes([header[6], header[7]]))
        };
        let kind = (*message.first()?, *message.get(1)?);
        if kind.0 == reply {
            return own(message, reply).map(Answer::Reply);
        }
        let quoted = message.get(ECHO_LEN..).filter(|_| kind == too_big)?;
        let echo = if self.address.is_ipv4() { behind_ipv4(quoted)? } else { quoted.get(40..)? };
        own(echo, request).map(Answer::TooBig)
    }
}

fn behind_ipv4(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(4 * usize::from(bytes.first()? & 15)..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_messages_about_other_requests_are_left_out() {
        let Ok(mut prober) = Prober::new("127.0.0.1".parse().unwrap()) else { return };
        prober.id = [1, 2];
        let header = [0x45u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let echo = |kind: u8, id: u8| [&header[..], &[kind, 0, 0, 0, 1, id, 0, 7]].concat();
        let message =
            |kind, code, quoted: Vec<u8>| [&header[..], &[kind, code, 0, 0, 0, 0, 5, 0], &quoted].concat();
        assert!(matches!(prober.read(&echo(0, 2)), Some(Answer::Reply(7))));
        assert!(matches!(prober.read(&message(3, 4, echo(8, 2))), Some(Answer::TooBig(7))));
        for other in
            [echo(8, 2), echo(0, 3), message(3, 4, echo(8, 3)), message(3, 1, echo(8, 2)), vec![0x45], vec![]]
        {
            assert!(prober.read(&other).is_none(), "{other:?}");
        }
    }
}
