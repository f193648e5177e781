//! Network devices by name: index and link type.

use anyhow::{Context, bail};
use paceline_linux::network::link_type;
use std::io;
use std::os::fd::AsRawFd;

/// The index of a device.
pub fn interface(device: &str) -> anyhow::Result<u32> {
    nix::net::if_::if_nametoindex(device).with_context(|| format!("{device}: no such network device"))
}

/// Whether frames of a device begin with an IP header.
pub(super) fn is_ip_link(device: &str) -> anyhow::Result<bool> {
    match link_type(device).with_context(|| format!("{device}: link type"))? {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Ok(false),
        kind if link_type::is_bare(kind) => Ok(true),
        kind => bail!("{device}: link type {kind} is neither Ethernet nor plain IP"),
    }
}

/// The link type of a device (ARPHRD numbers of linux/if_arp.h).
fn link_type(device: &str) -> io::Result<u16> {
    let socket = nix::sys::socket::socket(
        nix::sys::socket::AddressFamily::Inet,
        nix::sys::socket::SockType::Datagram,
        nix::sys::socket::SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    // SAFETY: all-zero bytes are a valid request.
    #[allow(unsafe_code)]
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = device.as_bytes().iter().take(request.ifr_name.len() - 1);
    request.ifr_name.iter_mut().zip(name).for_each(|(to, from)| *to = *from as libc::c_char);
    // SAFETY: the request has the type that this call reads and writes; it answers with a hardware address.
    #[allow(unsafe_code)]
    unsafe {
        if libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, &raw mut request) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(request.ifr_ifru.ifru_hwaddr.sa_family)
    }
}

/// Whether an interface exists.
pub(super) fn exists(interface: u32) -> bool {
    // SAFETY: the buffer has the length that the call needs (IFNAMSIZ), and outlives it.
    #[allow(unsafe_code)]
    unsafe {
        let mut name = [0; libc::IFNAMSIZ];
        !libc::if_indextoname(interface, name.as_mut_ptr()).is_null()
    }
}
