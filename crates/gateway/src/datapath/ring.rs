//! The receive ring of a packet socket for short frames: memory shared with the kernel (packet(7),
//! PACKET_RX_RING, TPACKET_V2). Its frames need neither a system call nor a socket buffer.
//!
//! The ring has entries of equal length. A frame that is too long for its entry waits in the socket's queue,
//! and its entry is marked, so that frames are read in order of arrival.
#![allow(unsafe_code)]

use super::slot::{Slot, VNET_LEN};
use super::system_call::set_option;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of an entry. Chosen: the kernel leaves 180 of them to the frame, enough for an acknowledgment with
/// all options or a line of a terminal session.
const ENTRY_BYTES: usize = 256;
/// Entries of the ring, and so frames that can wait. Chosen: 40 ms at 400,000 frames a second.
const ENTRIES: usize = 16_384;
/// Bytes that the kernel allocates in one piece. Chosen: small enough to be found in fragmented memory.
const BLOCK_BYTES: usize = 1 << 16;

/// The content of an entry.
pub enum RingFrame {
    /// A complete frame.
    Complete,
    /// The mark of a longer frame, which is in the socket's queue.
    Queued,
    /// The beginning of a longer frame, which is lost: the socket's queue had no room.
    Truncated,
}

/// The ring of a socket.
pub struct Ring {
    start: NonNull<u8>,
    /// The entry that is read next.
    next: usize,
}

// SAFETY: a ring owns its mapping, which any thread may use.
unsafe impl Send for Ring {}

impl Ring {
    /// Gives a ring to a socket that is not bound yet.
    pub fn new(socket: BorrowedFd<'_>) -> io::Result<Self> {
        set_option(
            socket,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V2 as c_int),
        )?;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (ENTRIES * ENTRY_BYTES / BLOCK_BYTES) as u32,
            tp_frame_size: ENTRY_BYTES as u32,
            tp_frame_nr: ENTRIES as u32,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a mapping at an address of the kernel's choice replaces no other memory.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), ENTRIES * ENTRY_BYTES, access, kind, socket.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, next: 0 })
    }

    /// Copies the frame in the next entry into a slot; None if no frame has arrived.
    pub fn take(&mut self, slot: &mut Slot) -> Option<RingFrame> {
        // SAFETY: `next` is less than ENTRIES, so the entry is within the mapping.
        let entry = unsafe { self.start.add(self.next * ENTRY_BYTES) };
        // SAFETY: an entry begins with its status word, which is aligned and which the kernel writes as a
        // whole.
        let status_word = unsafe { AtomicU32::from_ptr(entry.as_ptr().cast()) };
        let status = status_word.load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: an entry begins with this header, and the kernel does not write to it until its status is
        // reset.
        let header = unsafe { entry.cast::<libc::tpacket2_hdr>().read() };
        let frame = if status & libc::TP_STATUS_COPY != 0 {
            RingFrame::Queued
        } else if header.tp_snaplen < header.tp_len {
            RingFrame::Truncated
        } else {
            let (mac, len) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
            assert!(
                mac >= VNET_LEN && mac + len <= ENTRY_BYTES,
                "{len} bytes at {mac} are not within an entry"
            );
            // SAFETY: the assertion above shows that the virtio-net header and the frame are within the
            // entry, and the kernel does not write to them until the status is reset.
            let bytes =
                unsafe { std::slice::from_raw_parts(entry.add(mac - VNET_LEN).as_ptr(), VNET_LEN + len) };
            let (head, rest) = bytes.split_at(bytes.len().min(slot.head_capacity()));
            slot.fill(head, rest, vlan_tag(status, &header));
            RingFrame::Complete
        };
        status_word.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % ENTRIES;
        Some(frame)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this ring, and there are no references into it.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), ENTRIES * ENTRY_BYTES) };
    }
}

/// The VLAN tag that the kernel has removed from the frame: TPID and TCI.
fn vlan_tag(status: u32, header: &libc::tpacket2_hdr) -> Option<(u16, u16)> {
    let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let tpid = if known { header.tp_vlan_tpid } else { 0x8100 };
    (status & libc::TP_STATUS_VLAN_VALID != 0).then_some((tpid, header.tp_vlan_tci))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datapath::socket::{BATCH, PacketSocket};
    use crate::interfaces::device::device;
    use nix::sched::{CloneFlags, unshare};
    use paceline_linux::network::netns::{apart, ip};
    use std::io::IoSlice;
    use std::os::fd::AsFd;

    /// Frames of 300 bytes and more do not fit into an entry.
    const LENGTHS: [usize; 4] = [60, 300, 120, 1400];

    /// Runs `check` with a sending and a receiving socket at the two ends of a veth pair, in a network
    /// namespace of their own. Skipped where a namespace cannot be made, unless PACELINE_REQUIRE_PRIVILEGED
    /// is set.
    fn with_socket_pair(check: impl FnOnce(&PacketSocket, &mut PacketSocket) + Send) {
        apart(|| {
            if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
                let required = std::env::var_os("PACELINE_REQUIRE_PRIVILEGED").is_some();
                assert!(!required, "cannot be tested here: {error}");
                println!("cannot be tested here: no network namespace: {error}");
                return Ok(());
            }
            // Without IPv6 the devices send no packets of their own. A kernel without IPv6 has no such file.
            let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
            ip(&[
                "link add near type veth peer name far".into(),
                "link set near up".into(),
                "link set far up".into(),
            ])?;
            let sender = PacketSocket::open_to(device("near")?.ifindex)?;
            let mut receiver = PacketSocket::open()?;
            receiver.share_memory()?;
            receiver.bind(device("far")?.ifindex)?;
            check(&sender, &mut receiver);
            Ok(())
        })
        .unwrap();
    }
    fn frame(number: u32, len: usize) -> Vec<u8> {
        let head = [&[0; VNET_LEN][..], &[0xff; 6], &[2, 0, 0, 0, 0, 1], &[0x88, 0xb5]].concat();
        let body = number.to_be_bytes().into_iter().cycle();
        head.into_iter().chain(body).take(VNET_LEN + len).collect()
    }
    fn send(socket: &PacketSocket, frames: &[Vec<u8>]) {
        let parts: Vec<[IoSlice<'_>; 1]> = frames.iter().map(|frame| [IoSlice::new(frame)]).collect();
        let mut left: Vec<&[IoSlice<'_>]> = parts.iter().map(<[_; 1]>::as_slice).collect();
        while !left.is_empty() {
            let sent = socket.send(&left).unwrap();
            left.drain(..sent);
        }
    }
    /// The frames that were received, and the number of truncated ones.
    fn received(socket: &mut PacketSocket) -> (Vec<Vec<u8>>, usize) {
        let mut slots: Vec<Slot> = (0..BATCH).map(|_| Slot::new()).collect();
        let (mut all, mut lost) = (Vec::new(), 0);
        loop {
            let count = socket.receive(&mut slots).unwrap();
            for slot in &slots[..count] {
                if slot.truncated {
                    lost += 1;
                } else {
                    all.push([&slot.head[..slot.head_len], &slot.rest].concat());
                }
            }
            if count == 0 {
                return (all, lost);
            }
        }
    }

    #[test]
    fn short_and_long_frames_arrive_complete_and_in_order_over_several_rounds_of_the_ring() {
        with_socket_pair(|sender, receiver| {
            for first in (0..3 * ENTRIES as u32).step_by(1000) {
                let number = |n: u32| frame(first + n, LENGTHS[(n as usize / 3) % LENGTHS.len()]);
                let frames: Vec<Vec<u8>> = (0..1000).map(number).collect();
                send(sender, &frames);
                assert_eq!(received(receiver), (frames, 0));
            }
            assert_eq!(receiver.drops().unwrap(), 0);
        });
    }

    #[test]
    fn frames_lost_for_lack_of_an_entry_or_of_room_in_the_queue_are_counted() {
        with_socket_pair(|sender, receiver| {
            let over: Vec<Vec<u8>> = (0..ENTRIES as u32 + 500).map(|n| frame(n, 60)).collect();
            send(sender, &over);
            assert_eq!(received(receiver), (over[..ENTRIES].to_vec(), 0));
            assert_eq!(receiver.drops().unwrap(), 500);
            set_option(receiver.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &20_000).unwrap();
            let long: Vec<Vec<u8>> = (0..100).map(|n| frame(n, 1400)).collect();
            send(sender, &long);
            let (arrived, lost) = received(receiver);
            assert!(
                (1..100).contains(&arrived.len()) && arrived == long[..arrived.len()],
                "{} arrived",
                arrived.len()
            );
            assert_eq!((arrived.len() + lost, receiver.drops().unwrap() as usize), (100, lost));
            send(sender, &long[..3]);
            assert_eq!(received(receiver), (long[..3].to_vec(), 0), "the queue has room again");
        });
    }
}
