//! The presence of the guardian, as the workers see it without a system call: 32 bits of the journal's memory
//! with the number of the guardian's thread. They are a robust futex (get_robust_list(2)) of the guardian:
//! the kernel clears them when the guardian dies, however that happens. The thread that waits for the
//! guardian's end clears them too, some milliseconds later.
#![allow(unsafe_code)]

use super::memory::Memory;
use std::ptr::{self, from_ref};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The bits with the number of a thread. By definition of Linux (linux/futex.h, FUTEX_TID_MASK).
const THREAD: u32 = 0x3fff_ffff;

/// An element of the list of robust futexes. By definition of Linux (linux/futex.h, struct robust_list).
#[repr(C)]
struct Element {
    next: *const Element,
}

/// The list of a thread: `struct robust_list_head`. A futex is `offset` bytes behind its element.
#[repr(C)]
struct List {
    first: Element,
    offset: libc::c_long,
    pending: *const Element,
}

/// The presence of a guardian, as the gateway sees it.
pub struct Presence(Arc<Memory>);

impl Presence {
    pub(super) fn new(memory: Arc<Memory>) -> Self {
        Self(memory)
    }
    /// Whether a guardian is there.
    pub fn is_there(&self) -> bool {
        Self::is_in(&self.0)
    }
    pub(super) fn is_in(memory: &Memory) -> bool {
        memory.presence().load(Ordering::Acquire) & THREAD != 0
    }
    /// The guardian has died.
    pub fn clear(&self) {
        self.0.presence().store(0, Ordering::Release);
    }
}

/// Announces this thread as the guardian until it dies. The memory stays mapped.
pub fn announce(memory: Arc<Memory>) {
    let presence = Box::leak(Box::new(memory)).presence();
    let element = Box::leak(Box::new(Element { next: ptr::null() }));
    let list = Box::leak(Box::new(List {
        first: Element { next: from_ref(element) },
        offset: (presence.as_ptr() as libc::c_long).wrapping_sub(ptr::from_mut(element) as libc::c_long),
        pending: ptr::null(),
    }));
    element.next = from_ref(&list.first); // the list is a ring
    // SAFETY: the list and its element live for ever, and so does the futex. No lock of this thread is a
    // robust one, so that the C library's list is not missed.
    let _ = unsafe { libc::syscall(libc::SYS_set_robust_list, from_ref(list), size_of::<List>()) };
    presence.store(nix::unistd::gettid().as_raw() as u32, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::super::journal::{self, Journal};
    use super::*;
    use std::fs::File;
    use std::thread;

    #[test]
    fn the_presence_ends_with_the_thread_that_announced_it() {
        let journal = Journal::new(1).unwrap();
        let (presence, file) = (journal.presence(), File::from(journal.share().unwrap()));
        assert!(!presence.is_there());
        for _ in 0..2 {
            let memory = journal::open(&file).unwrap();
            let seen = journal.writer(0);
            let guardian = thread::spawn(move || {
                announce(memory);
                seen.is_guarded()
            });
            assert!(guardian.join().unwrap());
            assert!(!presence.is_there());
        }
    }
}
