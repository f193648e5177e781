//! Headers of all TCP packets that enter and leave by the interface towards the devices, from a packet socket
//! of its own (packet(7)).
//!
//! The kernel hands every packet to such a socket at the same place: received ones before any program or the
//! bridge has them, sent ones when they go to the driver. So the packets of accelerated connections, which
//! the workers send, and those that the kernel forwards are seen alike. Times are the kernel's of that
//! moment, which are of the real-time clock; they are brought to the monotonic clock at each batch, so that a
//! step of the former shifts no time by more than a batch.
//!
//! Left out: IPv6 extension headers, IPv4 fragments but the first, tunnels.
//!
//! Unsafe code: one system call in each function.
#![allow(unsafe_code)]

use crate::datapath::system_call::{check, control_len, receive_messages, set_option};
use nix::time::{ClockId, clock_gettime};
use paceline_experiment::Segment;
use paceline_linux::clock;
use paceline_net::{FlowKey, Instant};
use std::ffi::c_int;
use std::io;
use std::mem::{size_of, zeroed};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes received of each packet: two VLAN tags, an IP and a TCP header with all options. By definition of
/// their length fields at most 8, 60 and 60.
const SNAP_LEN: usize = 128;
/// Packets received at once. Chosen: the cost of the call is small beside that of its packets.
const BATCH: usize = 64;
/// Bytes of the socket's buffer. Chosen: 20,000 headers with the kernel's overhead.
const BUFFER_BYTES: c_int = 16 << 20;
/// Bytes for the control message of a packet. Derived: a header of 16 and a `struct timespec` of 16.
const CONTROL_BYTES: usize = 64;

/// A socket on one interface.
pub struct Tap {
    fd: OwnedFd,
    /// Time of the last batch.
    before: Instant,
    next: Successor,
}

/// The place for a tap's next socket, when its interface has come back. The threads that observe have no
/// privilege to open one.
#[derive(Clone, Default)]
pub struct Successor(Arc<Mutex<Option<OwnedFd>>>);

impl Successor {
    /// Opens a socket on the interface in place of the present one.
    pub fn open(&self, interface: u32) -> io::Result<()> {
        let tap = Tap::open(interface)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(tap.fd);
        Ok(())
    }
    fn take(&self) -> Option<OwnedFd> {
        self.0.try_lock().ok()?.take()
    }
}

impl Tap {
    /// Opens the socket.
    pub fn open(interface: u32) -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let fd = check(unsafe {
            libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0)
        })?;
        // SAFETY: the descriptor is new and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut program = tcp_only();
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)?;
        set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &BUFFER_BYTES)?;
        let one: c_int = 1;
        set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &one)?;
        // SAFETY: all-zero bytes are a valid address.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface as i32;
        let len = size_of::<libc::sockaddr_ll>() as u32;
        // SAFETY: the kernel reads the address, which lives here.
        check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) })?;
        Ok(Self { fd, before: clock::now(), next: Successor::default() })
    }
    /// The place for its next socket.
    pub fn successor(&self) -> Successor {
        self.next.clone()
    }
    /// Packets lost since the last call because the socket's buffer was full.
    pub fn lost(&self) -> u64 {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut len = size_of::<libc::tpacket_stats>() as u32;
        // SAFETY: the kernel writes at most `len` bytes into the struct.
        let result = check(unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut len,
            )
        });
        result.map_or(0, |_| stats.tp_drops.into())
    }
    /// Receives packets, and hands their segments to `take` with the time, and the key from server to device.
    /// Returns whether there may be more.
    pub fn receive(&mut self, mut take: impl FnMut(Instant, FlowKey, &Segment)) -> io::Result<bool> {
        if let Some(next) = self.next.take() {
            self.fd = next;
        }
        let mut data = [[0u8; SNAP_LEN]; BATCH];
        let mut control = [[0u64; CONTROL_BYTES / 8]; BATCH];
        // SAFETY: all-zero bytes are valid headers, vectors and addresses: null pointers and lengths of zero.
        let (mut headers, mut vectors, mut addresses): (
            [libc::mmsghdr; BATCH],
            [libc::iovec; BATCH],
            [libc::sockaddr_ll; BATCH],
        ) = unsafe { (zeroed(), zeroed(), zeroed()) };
        for n in 0..BATCH {
            vectors[n] = libc::iovec { iov_base: data[n].as_mut_ptr().cast(), iov_len: SNAP_LEN };
            let header = &mut headers[n].msg_hdr;
            header.msg_iov = &raw mut vectors[n];
            header.msg_iovlen = 1;
            header.msg_control = control[n].as_mut_ptr().cast();
            header.msg_controllen = CONTROL_BYTES as _;
            header.msg_name = (&raw mut addresses[n]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
        }
        // SAFETY: each header points to a buffer, a control buffer and an address with their lengths; all
        // outlive the call, and none is accessed during it.
        let received = check(unsafe { receive_messages(self.fd.as_fd(), &mut headers) });
        let received = match received {
            Ok(received) => received as usize,
            Err(error) => match error.raw_os_error() {
                // The queue is empty, or the interface is down.
                Some(libc::EAGAIN | libc::ENETDOWN | libc::EINTR) => 0,
                _ => return Err(error),
            },
        };
        let now = clock::now();
        let real = real_time_ns();
        for n in 0..received {
            let bytes: Vec<u8> = control[n].iter().flat_map(|word| word.to_ne_bytes()).collect();
            let stamp = time_stamp(&bytes[..control_len(&headers[n]).min(CONTROL_BYTES)]);
            let at = stamp.map_or(now, |stamp| arrival(stamp, real, self.before, now));
            let kind = (addresses[n].sll_protocol, addresses[n].sll_pkttype);
            let packet = &data[n][..(headers[n].msg_len as usize).min(SNAP_LEN)];
            if let Some((key, segment)) = parse(u16::from_be(kind.0), kind.1 != libc::PACKET_OUTGOING, packet)
            {
                take(at, key, &segment);
            }
        }
        self.before = now;
        Ok(received == BATCH)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The time of a packet on the monotonic clock: as long before `now` as its time stamp is before `real`, both
/// of the real-time clock; after a step of that clock, an end of the time since the last batch.
fn arrival(stamp: u64, real: u64, before: Instant, now: Instant) -> Instant {
    let age = real.saturating_sub(stamp);
    Instant::from_nanos(now.as_nanos().saturating_sub(age)).clamp(before, now)
}

fn real_time_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_REALTIME).expect("Linux has a real-time clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// The time stamp in ns, a `struct timespec` behind the only control message's header.
fn time_stamp(control: &[u8]) -> Option<u64> {
    let data = control.get(size_of::<libc::cmsghdr>()..)?;
    let word = |at: usize| Some(u64::from_ne_bytes(data.get(at..at + 8)?.try_into().ok()?));
    Some(word(0)? * 1_000_000_000 + word(8)?)
}

/// A classic socket filter: the first bytes of TCP packets and of packets with a VLAN tag ahead of the IP
/// header, nothing of others. The offset of the ancillary data (SKF_AD_OFF, linux/filter.h) is -4096.
fn tcp_only() -> [libc::sock_filter; 11] {
    /// BPF_LD | BPF_H | BPF_ABS, by definition in linux/bpf_common.h.
    const HALF: u16 = 0x28;
    /// BPF_LD | BPF_B | BPF_ABS, by definition there.
    const BYTE: u16 = 0x30;
    /// BPF_JMP | BPF_JEQ | BPF_K, by definition there.
    const EQUAL: u16 = 0x15;
    /// BPF_JMP | BPF_JA, by definition there.
    const SKIP: u16 = 0x05;
    /// BPF_RET | BPF_K, by definition there.
    const RETURN: u16 = 0x06;
    let code = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    [
        code(HALF, (-4096i32) as u32, 0, 0), // SKF_AD_PROTOCOL
        code(EQUAL, 0x0800, 3, 0),
        code(EQUAL, 0x86dd, 4, 0),
        code(EQUAL, 0x8100, 5, 0),
        code(EQUAL, 0x88a8, 4, 5),
        code(BYTE, 9, 0, 0), // IPv4: protocol
        code(SKIP, 1, 0, 0),
        code(BYTE, 6, 0, 0), // IPv6: next header
        code(EQUAL, 6, 0, 1),
        code(RETURN, SNAP_LEN as u32, 0, 0),
        code(RETURN, 0, 0, 0),
    ]
}

fn parse(ethertype: u16, from_device: bool, packet: &[u8]) -> Option<(FlowKey, Segment)> {
    let half = |bytes: &[u8], at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let (mut kind, mut packet) = (ethertype, packet);
    // The kernel may or may not have passed over the tags of a packet that leaves.
    while matches!(kind, 0x8100 | 0x88a8) {
        let inner = half(packet, 2)?;
        if matches!(inner, 0x0800 | 0x86dd | 0x8100 | 0x88a8) {
            (kind, packet) = (inner, packet.get(4..)?);
        } else {
            kind = if packet[0] >> 4 == 6 { 0x86dd } else { 0x0800 };
        }
    }
    let (src, dst, header, len): (IpAddr, IpAddr, usize, usize) = match kind {
        0x0800 if *packet.get(9)? == 6 && half(packet, 6)? & 0x1fff == 0 => {
            let address = |at: usize| Some(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?.into());
            (address(12)?, address(16)?, usize::from(packet[0] & 15) * 4, half(packet, 2)?.into())
        }
        0x86dd if *packet.get(6)? == 6 => {
            let address = |at: usize| Some(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?.into());
            (address(8)?, address(24)?, 40, usize::from(half(packet, 4)?) + 40)
        }
        _ => return None,
    };
    let tcp = packet.get(header..)?;
    let word = |at: usize| Some(u32::from_be_bytes(tcp.get(at..at + 4)?.try_into().ok()?));
    let (flags, offset) = (*tcp.get(13)?, usize::from(tcp.get(12)? >> 4) * 4);
    let segment = Segment {
        from_device,
        seq: word(4)?,
        ack: (flags & 0x10 != 0).then_some(word(8)?),
        payload: len.checked_sub(header + offset)? as u32,
        syn: flags & 0x02 != 0,
        fin: flags & 0x01 != 0,
        rst: flags & 0x04 != 0,
    };
    let key = FlowKey { src, dst, src_port: half(tcp, 0)?, dst_port: half(tcp, 2)? };
    Some((if from_device { key.reversed() } else { key }, segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment from 10.0.0.1:80 to 10.0.0.2:5000 with 300 bytes of payload, of which none were received.
    fn packet() -> Vec<u8> {
        let ip = [0x45, 0, 1, 84, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let tcp = [0, 80, 0x13, 0x88, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x10, 0, 0, 0, 0, 0, 0];
        [ip, tcp].concat()
    }

    #[test]
    fn headers_are_read_behind_tags_and_other_packets_are_ignored() {
        let (key, segment) = parse(0x0800, false, &packet()).unwrap();
        assert_eq!((key.src_port, key.dst_port, segment.seq, segment.ack), (80, 5000, 7, Some(9)));
        assert_eq!((segment.payload, segment.syn, segment.from_device), (300, false, false));
        let reversed = parse(0x0800, true, &packet()).unwrap().0;
        assert_eq!((reversed.src_port, reversed.dst_port), (5000, 80));
        let tagged = [&[0, 5, 0x81, 0, 0, 6, 0x08, 0][..], &packet()].concat();
        assert_eq!(parse(0x88a8, false, &tagged), parse(0x0800, false, &packet()));
        assert_eq!(parse(0x8100, false, &packet()), parse(0x0800, false, &packet()));
        let mut v6 = vec![0x60, 0, 0, 0, 0, 20, 6, 64];
        v6.extend([0xfd; 32]);
        v6.extend(&packet()[20..]);
        let (key, segment) = parse(0x86dd, false, &v6).unwrap();
        assert_eq!((key.src, segment.payload), (IpAddr::from([0xfd; 16]), 0));
        let mut udp = packet();
        udp[9] = 17;
        let mut fragment = packet();
        fragment[7] = 9;
        for other in [&udp[..], &fragment, &packet()[..30], &[], &[0x45]] {
            assert_eq!(parse(0x0800, false, other), None);
        }
        assert_eq!(parse(0x0806, false, &packet()), None);
        // A header length past the end of the datagram.
        let mut long = packet();
        (long[2], long[3], long[32]) = (0, 41, 0xf0);
        assert_eq!(parse(0x0800, false, &long), None);
    }

    #[test]
    fn a_step_of_the_clock_moves_no_packet_out_of_its_batch() {
        let ms = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let (before, now, real) = (ms(1000), ms(1010), 1_700_000_000_000_000_000);
        let at = |stamp: u64| arrival(stamp, real, before, now);
        assert_eq!(at(real - 4_000_000), ms(1006));
        // The clock was set forward by an hour, or back, after the packet had its stamp.
        assert_eq!(at(real - 3_600_000_000_000), before);
        assert_eq!(at(real + 3_600_000_000_000), now);
    }

    #[test]
    fn any_bytes_are_parsed_without_a_panic() {
        let mut random = paceline_net::Stream::new(5, "tap");
        for _ in 0..20_000 {
            let mut bytes = packet();
            bytes.truncate(random.below(41) as usize);
            for _ in 0..random.below(6) {
                let at = random.below(bytes.len().max(1) as u64) as usize;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.below(256) as u8;
                }
            }
            let kind = [0x0800, 0x86dd, 0x8100, 0x88a8][random.below(4) as usize];
            let _ = parse(kind, random.chance(0.5), &bytes);
        }
    }
}
