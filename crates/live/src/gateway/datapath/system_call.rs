//! Two helpers around system calls of sockets.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::mem::size_of_val;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The result of a system call: a negative one stands for the error in `errno`.
pub fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Sets a socket option (setsockopt(2)).
pub fn set_option<T: Copy>(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let (start, len) = (std::ptr::from_ref(value).cast(), size_of_val(value) as u32);
    // SAFETY: the kernel reads the bytes of `value`, which outlives the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, start, len) }).map(|_| ())
}
