//! Helpers around system calls of sockets, the same with glibc and musl.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::mem::size_of_val;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The result of a system call: a negative one stands for the error in `errno`.
pub fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Receives messages that have arrived (recvmmsg(2)). Gives their number, or a negative one with `errno`.
///
/// # Safety
/// Each header points to buffers with their lengths, or to none; they outlive the call and are accessed by
/// nobody meanwhile.
pub unsafe fn receive_messages(socket: BorrowedFd<'_>, headers: &mut [libc::mmsghdr]) -> c_int {
    let (fd, count, flags) = (socket.as_raw_fd(), headers.len() as u32, libc::MSG_DONTWAIT);
    let no_timeout = std::ptr::null_mut::<libc::timespec>();
    // SAFETY: the caller vouches for the headers.
    unsafe { libc::syscall(libc::SYS_recvmmsg, fd, headers.as_mut_ptr(), count, flags, no_timeout) as c_int }
}

/// Sends messages as far as there is room (sendmmsg(2)). Gives their number, or a negative one with `errno`.
/// musl's function of this name makes a system call for each message.
///
/// # Safety
/// Each header points to buffers with their lengths, or to none; they outlive the call.
pub unsafe fn send_messages(socket: BorrowedFd<'_>, headers: &mut [libc::mmsghdr]) -> c_int {
    let (fd, count, flags) = (socket.as_raw_fd(), headers.len() as u32, libc::MSG_DONTWAIT);
    // SAFETY: the caller vouches for the headers.
    unsafe { libc::syscall(libc::SYS_sendmmsg, fd, headers.as_mut_ptr(), count, flags) as c_int }
}

/// Bytes of control data that came with a message.
#[allow(clippy::unnecessary_cast)] // musl has another type
pub fn control_len(header: &libc::mmsghdr) -> usize {
    header.msg_hdr.msg_controllen as usize
}

/// Sets a socket option (setsockopt(2)).
pub fn set_option<T: Copy>(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let (start, len) = (std::ptr::from_ref(value).cast(), size_of_val(value) as u32);
    // SAFETY: the kernel reads the bytes of `value`, which outlives the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, start, len) }).map(|_| ())
}
