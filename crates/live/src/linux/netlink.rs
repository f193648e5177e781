//! Questions to the kernel's routing netlink that libbpf does not ask.

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use std::io;
use std::os::fd::AsRawFd;

/// Bytes of `struct nlmsghdr`. By definition of Linux (linux/netlink.h).
const HEADER: usize = 16;
/// Bytes of `struct tcmsg`. By definition of Linux (linux/rtnetlink.h).
const TC_MESSAGE: usize = 20;
/// Bytes of a datagram of answers: the kernel fills at most 32 KiB (NLMSG_GOODSIZE, linux/netlink.h).
const ANSWER: usize = 32 * 1024;

/// Whether a qdisc has filters at a parent, such as an end of clsact.
pub fn has_filters(interface: u32, parent: u32) -> io::Result<bool> {
    let route = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        Some(SockProtocol::NetlinkRoute),
    )?;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut request = Vec::with_capacity(HEADER + TC_MESSAGE);
    request.extend(((HEADER + TC_MESSAGE) as u32).to_ne_bytes());
    request.extend(libc::RTM_GETTFILTER.to_ne_bytes());
    request.extend(flags.to_ne_bytes());
    request.extend([0; 8]); // sequence number, port
    request.extend([0; 4]); // family, padding
    request.extend(interface.to_ne_bytes());
    request.extend(0u32.to_ne_bytes()); // handle
    request.extend(parent.to_ne_bytes());
    request.extend(0u32.to_ne_bytes()); // priority and protocol
    send(route.as_raw_fd(), &request, MsgFlags::empty())?;
    let mut answer = vec![0; ANSWER];
    loop {
        let len = recv(route.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        if let Some(has) = first_filter(&answer[..len])? {
            return Ok(has);
        }
    }
}

/// Whether a filter is among the messages; none where more messages follow.
fn first_filter(mut messages: &[u8]) -> io::Result<Option<bool>> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    while messages.len() >= HEADER {
        let len = u32::from_ne_bytes([messages[0], messages[1], messages[2], messages[3]]) as usize;
        let kind = u16::from_ne_bytes([messages[4], messages[5]]);
        let message = messages.get(HEADER..len).ok_or_else(malformed)?;
        match i32::from(kind) {
            libc::NLMSG_DONE => return Ok(Some(false)),
            libc::NLMSG_ERROR => {
                let code =
                    message.first_chunk().map(|code| i32::from_ne_bytes(*code)).ok_or_else(malformed)?;
                return Err(io::Error::from_raw_os_error(-code));
            }
            _ if kind == libc::RTM_NEWTFILTER => return Ok(Some(true)),
            _ => {}
        }
        messages = messages.get(len.next_multiple_of(4)..).unwrap_or(&[]); // NLMSG_ALIGNTO
    }
    Ok(None)
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
    fn answers_are_a_filter_the_end_an_error_or_more_to_come() {
        let filter = message(libc::RTM_NEWTFILTER.into(), &[0; TC_MESSAGE]);
        let (done, other) = (message(libc::NLMSG_DONE, &[0; 4]), message(99, &[0; 4]));
        assert_eq!(first_filter(&[other.clone(), filter].concat()).unwrap(), Some(true));
        assert_eq!(first_filter(&[other.clone(), done].concat()).unwrap(), Some(false));
        assert_eq!(first_filter(&other).unwrap(), None);
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
