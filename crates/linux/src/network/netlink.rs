//! Questions to the kernel's routing netlink that libbpf does not ask.

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, socket,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Bytes of `struct nlmsghdr`. By definition of Linux (linux/netlink.h).
const HEADER: usize = 16;
/// Bytes of `struct tcmsg`. By definition of Linux (linux/rtnetlink.h).
const TC_MESSAGE: usize = 20;
/// Bytes of a datagram of answers: the kernel fills at most 32 KiB (NLMSG_GOODSIZE, linux/netlink.h).
const ANSWER: usize = 32 * 1024;

/// Whether a qdisc has filters at a parent, such as an end of clsact.
pub fn has_filters(interface: u32, parent: u32) -> io::Result<bool> {
    let mut body = Vec::with_capacity(TC_MESSAGE);
    body.extend([0; 4]); // family, padding
    body.extend(interface.to_ne_bytes());
    body.extend(0u32.to_ne_bytes()); // handle
    body.extend(parent.to_ne_bytes());
    body.extend(0u32.to_ne_bytes()); // priority and protocol
    let mut has = false;
    dump(libc::RTM_GETTFILTER, &body, |kind, _| has |= kind == libc::RTM_NEWTFILTER)?;
    Ok(has)
}

/// Asks for all objects of a kind (NLM_F_DUMP), and passes the messages of the answer to `take`.
pub fn dump(kind: u16, body: &[u8], take: impl FnMut(u16, &[u8])) -> io::Result<()> {
    dump_of(SockProtocol::NetlinkRoute, kind, body, take)
}

/// The same of another protocol than routing.
pub fn dump_of(
    protocol: SockProtocol,
    kind: u16,
    body: &[u8],
    mut take: impl FnMut(u16, &[u8]),
) -> io::Result<()> {
    let route = open(protocol, SockFlag::empty())?;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut request = Vec::with_capacity(HEADER + body.len());
    request.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(flags.to_ne_bytes());
    request.extend([0; 8]); // sequence number, port
    request.extend(body);
    send(route.as_raw_fd(), &request, MsgFlags::empty())?;
    let mut answer = vec![0; ANSWER];
    loop {
        let len = recv(route.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        if !pass_on(&answer[..len], &mut take)? {
            return Ok(());
        }
    }
}

/// Passes messages on. False at the end of the answer.
fn pass_on(answer: &[u8], take: &mut impl FnMut(u16, &[u8])) -> io::Result<bool> {
    let mut messages = Messages(answer);
    for (kind, message) in &mut messages {
        match i32::from(kind) {
            libc::NLMSG_DONE => return Ok(false),
            libc::NLMSG_ERROR => {
                let code = message.first_chunk().map(|code| i32::from_ne_bytes(*code));
                return Err(code
                    .map_or(io::ErrorKind::InvalidData.into(), |code| io::Error::from_raw_os_error(-code)));
            }
            _ => take(kind, message),
        }
    }
    if messages.0.is_empty() { Ok(true) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// A socket that receives the messages of multicast groups, without blocking.
pub fn subscribe(groups: u32) -> io::Result<OwnedFd> {
    let route = open(SockProtocol::NetlinkRoute, SockFlag::SOCK_NONBLOCK)?;
    bind(route.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    Ok(route)
}

/// Receives messages of a socket that does not block; none if there are none. ENOBUFS says that some are
/// lost.
pub fn receive(route: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match recv(route.as_raw_fd(), buffer, MsgFlags::empty()) {
        Ok(len) => Ok(Some(len)),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn open(protocol: SockProtocol, flags: SockFlag) -> io::Result<OwnedFd> {
    Ok(socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC | flags, Some(protocol))?)
}

/// The messages of a datagram: kind and body. It ends ahead of a malformed one.
pub struct Messages<'a>(pub &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = (u16, &'a [u8]);
    fn next(&mut self) -> Option<Self::Item> {
        let head: &[u8; HEADER] = self.0.first_chunk()?;
        let len = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let kind = u16::from_ne_bytes([head[4], head[5]]);
        let message = self.0.get(HEADER..len)?;
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or(&[]); // NLMSG_ALIGNTO
        Some((kind, message))
    }
}

/// The value of an attribute in a list (`struct rtattr`).
pub fn attribute(mut list: &[u8], wanted: u16) -> Option<&[u8]> {
    /// Flag of an attribute with attributes inside. By definition of Linux (linux/netlink.h, NLA_F_NESTED).
    const NESTED: u16 = 0x8000;
    while list.len() >= 4 {
        let len = usize::from(u16::from_ne_bytes([list[0], list[1]]));
        let kind = u16::from_ne_bytes([list[2], list[3]]) & !NESTED;
        let value = list.get(4..len)?;
        if kind == wanted {
            return Some(value);
        }
        list = list.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: i32, rest: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::from(((HEADER + rest.len()) as u32).to_ne_bytes());
        bytes.extend((kind as u16).to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn answers_are_messages_the_end_an_error_or_more_to_come() {
        let first_filter = |answer: &[u8]| {
            let mut count = 0;
            let more = pass_on(answer, &mut |kind, _| count += usize::from(kind == libc::RTM_NEWTFILTER));
            more.map(|more| (count, more))
        };
        let filter = message(libc::RTM_NEWTFILTER.into(), &[0; TC_MESSAGE]);
        let (done, other) = (message(libc::NLMSG_DONE, &[0; 4]), message(99, &[0; 4]));
        assert_eq!(first_filter(&[other.clone(), filter].concat()).unwrap(), (1, true));
        assert_eq!(first_filter(&[other.clone(), done].concat()).unwrap(), (0, false));
        assert_eq!(first_filter(&other).unwrap(), (0, true));
        let error = message(libc::NLMSG_ERROR, &(-libc::EPERM).to_ne_bytes());
        assert_eq!(first_filter(&error).unwrap_err().raw_os_error(), Some(libc::EPERM));
        assert!(first_filter(&other[..HEADER]).is_err(), "cut off");
        assert!(first_filter(&message(libc::NLMSG_ERROR, &[])).is_err());
    }

    #[test]
    fn the_loopback_device_has_no_filters_at_a_qdisc_that_it_lacks() {
        assert!(!has_filters(1, 0x1234_0001).unwrap_or(false));
    }
}
