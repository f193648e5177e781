//! The journal's memory, which gateway and guardian share, as 64-bit words.
#![allow(unsafe_code)]

use anyhow::Context;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Layout: the word of which 32 bits are the guardian's presence.
const PRESENCE: usize = 2;

/// A mapping of the journal's memory into this process.
pub struct Memory {
    start: *const AtomicU64,
    words: usize,
}

// SAFETY: the memory is accessed as atomic words only.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps so many words of a file that cannot shrink.
    pub fn map(fd: &OwnedFd, words: usize) -> anyhow::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice; the descriptor is open.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                8 * words,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                fd.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error()).context("cannot map the journal");
        }
        Ok(Self { start: start.cast(), words })
    }
    /// All words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned and has `words` words for as long as `self` lives; the file is
        // sealed against shrinking.
        unsafe { std::slice::from_raw_parts(self.start, self.words) }
    }
    /// The number of the guardian's thread while there is one: see `presence`.
    pub fn presence(&self) -> &AtomicU32 {
        // SAFETY: the first half of a word of the mapping, which is accessed in this way alone.
        unsafe { AtomicU32::from_ptr(self.words()[PRESENCE].as_ptr().cast()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this length, and there are no references into it any
        // more.
        unsafe { libc::munmap(self.start.cast_mut().cast(), 8 * self.words) };
    }
}
