//! A mark that a process polices an interface, which ends with it however that ends.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, socket};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// An abstract socket (unix(7)) with the number of the interface: both are of one network namespace.
pub struct Owner(#[allow(dead_code)] OwnedFd); // held, never read

impl Owner {
    /// Becomes the owner of an interface. Fails with `AddrInUse` while another process is.
    pub fn take(interface: u32) -> io::Result<Self> {
        let name = format!("paceline-police-{interface}");
        let address = UnixAddr::new_abstract(name.as_bytes())?;
        let mark = socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        bind(mark.as_raw_fd(), &address)?;
        Ok(Self(mark))
    }
}
