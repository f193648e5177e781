//! Packet sockets (packet(7)). Each frame has a virtio-net header (PACKET_VNET_HDR) that describes a
//! super-packet and an unfinished checksum. Many frames are received or sent in one system call.
//!
//! Unsafe code: one system call in each function.
#![allow(unsafe_code)]

use super::ring::{Ring, RingFrame};
use super::slot::{ETHERNET_LEN, Slot, VNET_LEN};
use super::system_call::{check, control_len, receive_messages, send_messages, set_option};
use paceline_linux::network::link_type;
use std::ffi::c_int;
use std::io::{self, IoSlice};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Frames in a system call at most. Chosen: the cost of the call is then small beside that of its frames.
pub const BATCH: usize = 64;
/// Bytes of a socket buffer. Chosen: 100 ms at 1 Gb/s, with the kernel's overhead for each packet.
const BUFFER_BYTES: c_int = 32 << 20;
/// Bytes for the control message of a frame. Derived from the size of `struct tpacket_auxdata` with its
/// header: 36.
const CONTROL_BYTES: usize = 64;
/// An EtherType for local experiments (IEEE 802: 0x88b6), so that the socket receives nothing.
const UNUSED_ETHERTYPE: u16 = 0x88b6;
/// Socket option of Linux (linux/if_packet.h), which `libc` does not have.
const PACKET_IGNORE_OUTGOING: c_int = 23;

/// A packet socket on one interface.
pub struct PacketSocket {
    fd: OwnedFd,
    interface: u32,
    /// Bytes of the interface's link header.
    link_len: usize,
    /// Shared memory for short frames, if it was switched on.
    ring: Option<Ring>,
    /// Frames lost since the last call of [`Self::drops`] because the queue had no room for them.
    lost: u32,
}

impl PacketSocket {
    /// A socket that is not bound: it receives nothing.
    pub fn open() -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let fd = check(unsafe {
            libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0)
        })?;
        // SAFETY: the descriptor is new and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let socket = Self { fd, interface: 0, link_len: ETHERNET_LEN, ring: None, lost: 0 };
        let one: c_int = 1;
        socket.set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, &one)?;
        socket.set(libc::SOL_PACKET, libc::PACKET_AUXDATA, &one)?;
        for option in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
            socket.set(libc::SOL_SOCKET, option, &BUFFER_BYTES)?;
        }
        Ok(socket)
    }
    /// A socket that only sends, on this interface.
    pub fn open_to(interface: u32) -> io::Result<Self> {
        let mut socket = Self::open()?;
        socket.bind_for(interface, 0)?;
        Ok(socket)
    }
    fn set<T: Copy>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        set_option(self.as_fd(), level, option, value)
    }
    /// Switches to shared memory for short frames. The socket must not be bound yet.
    pub fn share_memory(&mut self) -> io::Result<()> {
        self.ring = Some(Ring::new(self.as_fd())?);
        Ok(())
    }
    /// Attaches a kernel program that decides which packets the socket gets.
    pub fn filter(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_BPF, &program.as_raw_fd())
    }
    /// A socket that receives the first bytes of each packet that arrives on an interface.
    pub fn open_watching(interface: u32, bytes: u32) -> io::Result<Self> {
        let mut socket = Self::open()?;
        socket.watch(bytes)?;
        socket.bind(interface)?;
        Ok(socket)
    }
    /// Limits received packets to their first bytes, and excludes packets that leave.
    fn watch(&self, bytes: u32) -> io::Result<()> {
        let mut program = [libc::sock_filter { code: 6, jt: 0, jf: 0, k: bytes }]; // return `bytes`
        let filter = libc::sock_fprog { len: 1, filter: program.as_mut_ptr() };
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)?;
        let one: c_int = 1;
        self.set(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &one)
    }
    /// Binds the socket to an interface, for all protocols.
    pub fn bind(&mut self, interface: u32) -> io::Result<()> {
        self.bind_for(interface, libc::ETH_P_ALL as u16)?;
        self.link_len = self.link_header_len()?;
        Ok(())
    }
    /// Whether frames of the interface have a link header.
    pub fn has_link_header(&self) -> bool {
        self.link_len > 0
    }
    /// Bytes of the interface's link header, by its link type: 0 if its packets have none.
    fn link_header_len(&self) -> io::Result<usize> {
        Ok(if link_type::is_bare(self.bound_to()?.sll_hatype) { 0 } else { ETHERNET_LEN })
    }
    fn bound_to(&self) -> io::Result<libc::sockaddr_ll> {
        bound_to(self.as_fd())
    }
    fn bind_for(&mut self, interface: u32, protocol: u16) -> io::Result<()> {
        self.interface = interface;
        let address = self.address(protocol);
        // SAFETY: the kernel reads the address, which lives here.
        check(unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as u32,
            )
        })
        .map(|_| ())
    }
    /// The interface's address for packets of a protocol (EtherType).
    fn address(&self, protocol: u16) -> libc::sockaddr_ll {
        // SAFETY: all-zero bytes are a valid address.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = self.interface as i32;
        address
    }
    /// Joins a fanout group of at most `members` sockets (PACKET_FANOUT_EBPF): a kernel program chooses the
    /// socket for each packet. Packets that leave are excluded.
    pub fn share(&self, group: u16, members: u32, program: BorrowedFd<'_>) -> io::Result<()> {
        let how = libc::PACKET_FANOUT_EBPF | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        self.join(group, how, members)?;
        self.set(libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, &program.as_raw_fd())
    }
    /// Whether an error of [`Self::share`] says that the group has other members.
    pub fn is_taken(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EINVAL))
    }
    /// A socket that receives nothing and of which an interface has only one: it fills a fanout group. Serves
    /// as a lock.
    pub fn open_alone(interface: u32) -> io::Result<Self> {
        let mut socket = Self::open()?;
        socket.bind_for(interface, UNUSED_ETHERTYPE)?;
        socket.join(interface as u16, libc::PACKET_FANOUT_HASH, 1)?;
        Ok(socket)
    }
    /// Joins a fanout group (`struct fanout_args` of linux/if_packet.h). All members have to state the same
    /// number of members.
    fn join(&self, group: u16, how: u32, members: u32) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_FANOUT, &[u32::from(group) | how << 16, members])
    }
    /// Whether the interface still exists.
    pub fn has_interface(&self) -> bool {
        self.bound_to().is_ok_and(|address| address.sll_ifindex == self.interface as i32)
    }
    /// A second descriptor of the socket: the socket stays in its group until both are closed.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }
    /// Packets lost since the last call because the socket's buffers were full.
    pub fn drops(&mut self) -> io::Result<u32> {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut len = size_of::<libc::tpacket_stats>() as u32;
        // SAFETY: the kernel writes at most `len` bytes into the struct.
        check(unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut len,
            )
        })?;
        Ok(stats.tp_drops + std::mem::take(&mut self.lost))
    }
    /// Clears a pending error, such as that the interface is down. With shared memory no receive call does
    /// it.
    pub fn clear_error(&self) -> io::Result<()> {
        nix::sys::socket::getsockopt(self, nix::sys::socket::sockopt::SocketError)
            .map(|_| ())
            .map_err(io::Error::from)
    }
    /// Receives frames into the first slots, without blocking. Returns their number.
    pub fn receive(&mut self, slots: &mut [Slot]) -> io::Result<usize> {
        let count = slots.len().min(BATCH);
        slots[..count].iter_mut().for_each(|slot| slot.link_len = self.link_len);
        let Some(ring) = &mut self.ring else {
            return self.receive_queued(&mut slots[..count].iter_mut().collect::<Vec<_>>());
        };
        let (mut received, mut long) = (0, Vec::new());
        for slot in &mut slots[..count] {
            match ring.take(slot) {
                Some(RingFrame::Complete) => {}
                Some(RingFrame::Queued) => long.push(slot),
                Some(RingFrame::Truncated) => {
                    slot.mark_lost();
                    self.lost += 1;
                }
                None => break,
            }
            received += 1;
        }
        self.receive_long(&mut long)?;
        Ok(received)
    }
    /// Receives a frame from the socket's queue into each slot. A frame is missing there if a virtio-net
    /// header cannot describe it: its slot is marked as lost.
    fn receive_long(&mut self, mut slots: &mut [&mut Slot]) -> io::Result<()> {
        let mut tries = slots.len();
        while !slots.is_empty() && tries > 0 {
            let received = self.receive_queued(slots)?;
            slots = &mut slots[received..];
            tries -= 1;
        }
        slots.iter_mut().for_each(|slot| slot.mark_lost());
        self.lost += slots.len() as u32;
        Ok(())
    }
    /// Receives frames from the socket's queue into the first slots. Returns their number.
    fn receive_queued(&self, slots: &mut [&mut Slot]) -> io::Result<usize> {
        let count = slots.len();
        let mut control = [[0u8; CONTROL_BYTES]; BATCH];
        // SAFETY: all-zero bytes are valid headers and vectors: null pointers and lengths of zero.
        let (mut headers, mut vectors): ([libc::mmsghdr; BATCH], [[libc::iovec; 2]; BATCH]) =
            unsafe { (zeroed(), zeroed()) };
        for (n, slot) in slots.iter_mut().enumerate() {
            vectors[n] = slot.vectors();
            headers[n].msg_hdr.msg_iov = vectors[n].as_mut_ptr();
            headers[n].msg_hdr.msg_iovlen = vectors[n].len() as _;
            headers[n].msg_hdr.msg_control = control[n].as_mut_ptr().cast();
            headers[n].msg_hdr.msg_controllen = CONTROL_BYTES as _;
        }
        // SAFETY: each header points to a slot's buffers and a control buffer, with their lengths; all
        // outlive the call, and none is accessed during it.
        let received = unsafe { receive_messages(self.fd.as_fd(), &mut headers[..count]) };
        let received = match check(received) {
            Ok(received) => received as usize,
            Err(error) => match error.raw_os_error() {
                // The queue is empty, or the interface is down.
                Some(libc::EAGAIN | libc::ENETDOWN | libc::EINTR) => 0,
                // A virtio-net header cannot describe the packet: it is lost.
                Some(libc::EINVAL) => 0,
                _ => return Err(error),
            },
        };
        for (n, slot) in slots.iter_mut().enumerate().take(received) {
            let len = headers[n].msg_len as usize;
            slot.head_len = len.min(slot.head_capacity());
            // SAFETY: the kernel fills the buffers in order, and never past their lengths.
            unsafe { slot.rest.set_len(len - slot.head_len) };
            slot.truncated = headers[n].msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            slot.tag = vlan_tag(&control[n][..control_len(&headers[n]).min(CONTROL_BYTES)]);
        }
        Ok(received)
    }
    /// Whether an error of [`Self::send`] says that the interface's queue (qdisc) has refused the first
    /// frame.
    pub fn is_refused(error: &io::Error) -> bool {
        error.raw_os_error() == Some(libc::ENOBUFS)
    }
    /// Sends frames, each given in parts. Returns how many were sent: none if the socket's buffer is full.
    pub fn send(&self, frames: &[&[IoSlice<'_>]]) -> io::Result<usize> {
        let count = frames.len().min(BATCH);
        // SAFETY: all-zero bytes are valid headers: null pointers and lengths of zero.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
        // Without a link header the kernel learns a datagram's protocol from the address alone.
        let count = if self.has_link_header() { count } else { count.min(1) };
        let mut address = self.address(frames.first().map_or(0, |frame| ethertype(frame)));
        for (header, frame) in headers.iter_mut().zip(&frames[..count]) {
            if !self.has_link_header() {
                header.msg_hdr.msg_name = (&raw mut address).cast();
                header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
            }
            // An `IoSlice` is an iovec, as its documentation says. The kernel only reads.
            header.msg_hdr.msg_iov = frame.as_ptr().cast_mut().cast();
            header.msg_hdr.msg_iovlen = frame.len() as _;
        }
        // SAFETY: each header points to the vectors of a frame, and perhaps to the address; both outlive the
        // call.
        let sent = unsafe { send_messages(self.fd.as_fd(), &mut headers[..count]) };
        match check(sent) {
            Ok(sent) => Ok(sent as usize),
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(0),
                _ => Err(error),
            },
        }
    }
}

/// The interface of a packet socket. The kernel sets the index to -1 when the interface is removed, and never
/// back, also if it returns with the same one.
fn bound_to(socket: BorrowedFd<'_>) -> io::Result<libc::sockaddr_ll> {
    // SAFETY: all-zero bytes are a valid address.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    let mut len = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: the kernel writes at most `len` bytes into the address.
    check(unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut len) })?;
    Ok(address)
}

/// Whether the interface of a packet socket has stayed there.
pub fn has_interface(socket: BorrowedFd<'_>) -> bool {
    bound_to(socket).is_ok_and(|address| address.sll_ifindex > 0)
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The EtherType of a frame without link header, by the version of IP behind the virtio-net header.
fn ethertype(frame: &[IoSlice<'_>]) -> u16 {
    let mut bytes = frame.iter().flat_map(|part| part.iter());
    let is_v6 = bytes.nth(VNET_LEN).is_some_and(|first| first >> 4 == 6);
    (if is_v6 { libc::ETH_P_IPV6 } else { libc::ETH_P_IP }) as u16
}

/// The VLAN tag (TPID, TCI) in `struct tpacket_auxdata`, the only control message of these sockets.
fn vlan_tag(control: &[u8]) -> Option<(u16, u16)> {
    let (header, data) = control.split_at_checked(size_of::<libc::cmsghdr>())?;
    let word = |at: usize| Some(u16::from_ne_bytes(data.get(at..at + 2)?.try_into().ok()?));
    let status = u32::from_ne_bytes(data.get(..4)?.try_into().ok()?);
    let kind = u32::from_ne_bytes(*header.last_chunk()?);
    if kind != libc::PACKET_AUXDATA as u32 || status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let tpid = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { word(18)? } else { 0x8100 };
    Some((tpid, word(16)?))
}
