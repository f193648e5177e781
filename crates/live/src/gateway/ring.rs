//! Short frames come in by memory that is shared with the kernel (packet(7), PACKET_RX_RING of version 2): they cost
//! neither a system call nor a buffer there. A frame that is too long for its place waits in the socket's queue, and its
//! place says so: what came is read in order.
#![allow(unsafe_code)]

use super::socket::{HEAD_LEN, Slot, VNET_LEN, set};
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a place, the kernel's header of 80 included: an acknowledgment with all options, or a line of a terminal.
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
        set(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as c_int))?;
        set(socket, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (PLACES * PLACE / BLOCK) as u32,
            tp_frame_size: PLACE as u32,
            tp_frame_nr: PLACES as u32,
        };
        set(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
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
            let (at, len) = (usize::from(header.tp_mac) - VNET_LEN, header.tp_snaplen as usize + VNET_LEN);
            assert!(at + len <= PLACE, "a frame of {len} bytes at {at} is not within its place");
            // SAFETY: the frame and the virtio-net header ahead of it are within the place, as was just seen, and the
            // kernel leaves them alone until the state is set back.
            let bytes = unsafe { std::slice::from_raw_parts(place.add(at).as_ptr(), len) };
            let (head, rest) = bytes.split_at(len.min(HEAD_LEN));
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
