//! Short frames come in by memory that is shared with the kernel (packet(7), PACKET_RX_RING of version 2): they cost
//! neither a system call nor a buffer there. A frame that is too long for its place waits in the socket's queue, and its
//! place says so: what came is read in order.
#![allow(unsafe_code)]

use super::slot::{HEAD_LEN, Slot, VNET_LEN};
use super::system_call::set_option;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a place. The kernel leaves 180 of them to the frame: an acknowledgment with all options, or a line of a terminal.
const PLACE: usize = 256;
/// As many frames wait at most, whatever their length: 40 ms of 400,000 a second.
const PLACES: usize = 16_384;
/// Bytes that the kernel allocates at once.
const BLOCK: usize = 1 << 16;

/// What was at the next place.
pub enum Taken {
    /// A frame, whole.
    Whole,
    /// A sign that a longer one is in the queue.
    Queued,
    /// The beginning of a longer one for which the queue had no room.
    Cut,
}

/// The memory of a socket.
pub struct Ring {
    start: NonNull<u8>,
    next: usize,
}

// SAFETY: it owns the mapping, which any thread may use.
unsafe impl Send for Ring {}

impl Ring {
    /// Lets a socket that is not bound yet receive by shared memory.
    pub fn new(socket: BorrowedFd<'_>) -> io::Result<Self> {
        set_option(
            socket,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V2 as c_int),
        )?;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (PLACES * PLACE / BLOCK) as u32,
            tp_frame_size: PLACE as u32,
            tp_frame_nr: PLACES as u32,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a mapping at a place of the kernel's choice touches nothing that is there already.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), PLACES * PLACE, access, kind, socket.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, next: 0 })
    }

    /// Takes what is at the next place into a slot; none if nothing has come.
    pub fn take(&mut self, slot: &mut Slot) -> Option<Taken> {
        // SAFETY: `next` is less than PLACES, so the place is within the mapping.
        let place = unsafe { self.start.add(self.next * PLACE) };
        // SAFETY: a place begins with its state, at a multiple of its own length; the kernel changes it as a whole.
        let state = unsafe { AtomicU32::from_ptr(place.as_ptr().cast()) };
        let status = state.load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: a place begins with this header, and the kernel leaves it alone until its state is set back.
        let header = unsafe { place.cast::<libc::tpacket2_hdr>().read() };
        let taken = if status & libc::TP_STATUS_COPY != 0 {
            Taken::Queued
        } else if header.tp_snaplen < header.tp_len {
            Taken::Cut
        } else {
            let (mac, len) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
            assert!(mac >= VNET_LEN && mac + len <= PLACE, "{len} bytes at {mac} are not within a place");
            // SAFETY: the frame and the virtio-net header ahead of it are within the place, as was just seen, and the
            // kernel leaves them alone until the state is set back.
            let bytes =
                unsafe { std::slice::from_raw_parts(place.add(mac - VNET_LEN).as_ptr(), VNET_LEN + len) };
            let (head, rest) = bytes.split_at(bytes.len().min(HEAD_LEN));
            slot.fill(head, rest, vlan_tag(status, &header));
            Taken::Whole
        };
        state.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % PLACES;
        Some(taken)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nobody has a reference into it.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), PLACES * PLACE) };
    }
}

/// The tag that the kernel has taken out: TPID and TCI.
fn vlan_tag(status: u32, header: &libc::tpacket2_hdr) -> Option<(u16, u16)> {
    let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let tpid = if known { header.tp_vlan_tpid } else { 0x8100 };
    (status & libc::TP_STATUS_VLAN_VALID != 0).then_some((tpid, header.tp_vlan_tci))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::datapath::socket::{BATCH, PacketSocket};
    use crate::gateway::interfaces::device::device;
    use crate::netns::{apart, ip};
    use nix::sched::{CloneFlags, unshare};
    use std::io::IoSlice;
    use std::os::fd::AsFd;

    /// Long frames are of 300 bytes and more: they do not fit into a place.
    const LENGTHS: [usize; 4] = [60, 300, 120, 1400];

    /// A socket that sends, and one that receives at the other end of a wire of their own, in a thread whose network is
    /// its own. Nothing where that is not allowed, unless it has to be.
    fn wired(check: impl FnOnce(&PacketSocket, &mut PacketSocket) + Send) {
        apart(|| {
            if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
                let required = std::env::var_os("PACELINE_REQUIRE_PRIVILEGED").is_some();
                assert!(!required, "cannot be tested here: {error}");
                println!("cannot be tested here: no network namespace: {error}");
                return Ok(());
            }
            // The hosts are to say nothing by themselves. A kernel without IPv6 has no such file.
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
    /// What has come: the frames, and how many were lost that had left a sign.
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
    fn short_and_long_frames_come_whole_and_in_order_round_after_round() {
        wired(|sender, receiver| {
            for first in (0..3 * PLACES as u32).step_by(1000) {
                let number = |n: u32| frame(first + n, LENGTHS[(n as usize / 3) % LENGTHS.len()]);
                let frames: Vec<Vec<u8>> = (0..1000).map(number).collect();
                send(sender, &frames);
                assert_eq!(received(receiver), (frames, 0));
            }
            assert_eq!(receiver.drops().unwrap(), 0);
        });
    }

    #[test]
    fn what_finds_no_place_or_no_room_in_the_queue_is_counted() {
        wired(|sender, receiver| {
            let over: Vec<Vec<u8>> = (0..PLACES as u32 + 500).map(|n| frame(n, 60)).collect();
            send(sender, &over);
            assert_eq!(received(receiver), (over[..PLACES].to_vec(), 0));
            assert_eq!(receiver.drops().unwrap(), 500);
            set_option(receiver.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &20_000).unwrap();
            let long: Vec<Vec<u8>> = (0..100).map(|n| frame(n, 1400)).collect();
            send(sender, &long);
            let (came, lost) = received(receiver);
            assert!((1..100).contains(&came.len()) && came == long[..came.len()], "{} came", came.len());
            assert_eq!((came.len() + lost, receiver.drops().unwrap() as usize), (100, lost));
            send(sender, &long[..3]);
            assert_eq!(received(receiver), (long[..3].to_vec(), 0), "the queue has room again");
        });
    }
}
