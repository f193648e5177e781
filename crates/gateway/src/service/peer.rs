//! The user and the groups of a process at the other end of a Unix socket (unix(7)).
#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::{Gid, Uid};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Socket option of Linux (asm-generic/socket.h), which `libc` does not have.
const SO_PEERGROUPS: libc::c_int = 59;
/// Groups asked for at first. Chosen: more than users have.
const FEW_GROUPS: usize = 64;

/// The user of the process at the other end, as it connected.
pub fn user(socket: BorrowedFd<'_>) -> nix::Result<Uid> {
    Ok(Uid::from_raw(getsockopt(&socket, PeerCredentials)?.uid()))
}

/// Its groups.
pub fn groups(socket: BorrowedFd<'_>) -> nix::Result<Vec<Gid>> {
    let first = Gid::from_raw(getsockopt(&socket, PeerCredentials)?.gid());
    let mut groups = vec![0 as libc::gid_t; FEW_GROUPS];
    loop {
        let mut len = size_of_val(groups.as_slice()) as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes into the list, and its length into `len`.
        let result = unsafe {
            let to = groups.as_mut_ptr().cast();
            libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_PEERGROUPS, to, &raw mut len)
        };
        let count = len as usize / size_of::<libc::gid_t>();
        match Errno::result(result) {
            Ok(_) => {
                groups.truncate(count);
                return Ok(groups.into_iter().map(Gid::from_raw).chain([first]).collect());
            }
            Err(Errno::ERANGE) if count > groups.len() => groups.resize(count, 0),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{getegid, geteuid, getgroups};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_other_end_of_a_pair_is_this_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(user(one.as_fd()), Ok(geteuid()));
        let found = groups(one.as_fd()).unwrap();
        assert!(found.contains(&getegid()));
        assert!(getgroups().unwrap().iter().all(|group| found.contains(group)));
    }
}
