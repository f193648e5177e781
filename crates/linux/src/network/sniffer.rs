//! Copies of the packets that pass an interface, in both directions, for an analysis: the first bytes of
//! each, its length and the kernel's time.
//!
//! Unsafe code: one system call in each function.
#![allow(unsafe_code)]

use nix::cmsg_space;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimestampns};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg,
    setsockopt, socket,
};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes of a packet. Chosen: the headers of two tunnels, IPv6 and TCP with all options have fewer.
const SNAP_LEN: usize = 256;
/// Bytes of the socket's buffer: 100 ms at 1 Gb/s with the kernel's overhead, as that of the gateway.
const BUFFER_BYTES: usize = 32 << 20;
/// The packet leaves (linux/if_packet.h PACKET_OUTGOING).
const OUTGOING: u8 = 4;

/// A packet that passed.
pub struct Sniffed<'a> {
    /// Time since 1970, ns.
    pub at_ns: u64,
    /// Its first bytes, from the link header on, if there is one.
    pub data: &'a [u8],
    /// Its bytes.
    pub len: u32,
}

/// A packet socket that receives what passes an interface.
pub struct Sniffer {
    fd: OwnedFd,
    index: u32,
    buffer: [u8; SNAP_LEN],
    control: Vec<u8>,
}

impl Sniffer {
    /// A sniffer at the interface of this name. Needs CAP_NET_RAW.
    pub fn open(interface: &str) -> io::Result<Self> {
        let index = if_nametoindex(interface)?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)?;
        setsockopt(&fd, ReceiveTimestampns, &true)?;
        // Without CAP_NET_ADMIN the buffer has the host's default size.
        let _ = setsockopt(&fd, RcvBufForce, &BUFFER_BYTES);
        // SAFETY: all-zero bytes are a valid address.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as i32;
        let len = size_of::<libc::sockaddr_ll>() as u32;
        // SAFETY: the kernel reads the address, which lives here.
        let result = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { fd, index, buffer: [0; SNAP_LEN], control: cmsg_space!(TimeSpec) })
    }
    /// Whether packets of the interface have an Ethernet header; they are bare datagrams otherwise.
    pub fn has_link_header(&self) -> io::Result<bool> {
        // SAFETY: all-zero bytes are a valid address.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        let mut len = size_of::<libc::sockaddr_ll>() as u32;
        // SAFETY: the kernel writes at most `len` bytes of the address, which lives here.
        let result =
            unsafe { libc::getsockname(self.fd.as_raw_fd(), (&raw mut address).cast(), &raw mut len) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(!super::link_type::is_bare(address.sll_hatype))
    }
    /// The next packet, none if there is none yet.
    pub fn receive(&mut self) -> io::Result<Option<Sniffed<'_>>> {
        loop {
            let mut parts = [IoSliceMut::new(&mut self.buffer)];
            let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
            let received =
                recvmsg::<LinkAddr>(self.fd.as_raw_fd(), &mut parts, Some(&mut self.control), flags);
            let message = match received {
                Ok(message) => message,
                Err(nix::errno::Errno::EAGAIN) => return Ok(None),
                Err(nix::errno::Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            // The loopback device shows each packet twice; others came before the socket was bound.
            let is_ours = message.address.is_none_or(|address| {
                address.ifindex() == self.index as usize
                    && !(address.hatype() == libc::ARPHRD_LOOPBACK && address.pkttype() == OUTGOING)
            });
            let time = message.cmsgs()?.find_map(|message| match message {
                ControlMessageOwned::ScmTimestampns(time) => Some(time),
                _ => None,
            });
            let len = message.bytes;
            if let Some(time) = time.filter(|_| is_ours) {
                let at_ns = time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64;
                let data = &self.buffer[..len.min(SNAP_LEN)];
                return Ok(Some(Sniffed { at_ns, data, len: len as u32 }));
            }
        }
    }
    /// Packets that were lost since the last call, since the buffer was full.
    pub fn lost(&self) -> io::Result<u32> {
        // SAFETY: all-zero bytes are valid statistics.
        let mut statistics: libc::tpacket_stats = unsafe { zeroed() };
        let mut len = size_of::<libc::tpacket_stats>() as u32;
        let (fd, to) = (self.fd.as_raw_fd(), (&raw mut statistics).cast());
        // SAFETY: the kernel writes at most `len` bytes of the statistics, which live here.
        let result =
            unsafe { libc::getsockopt(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, to, &raw mut len) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(statistics.tp_drops) }
    }
}

impl AsFd for Sniffer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
