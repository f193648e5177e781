//! The state of a bridge as the kernel's routing netlink tells it: the states of its ports, and the entries
//! of its forwarding database (FDB).
//!
//! Left out: entries of single VLANs, which bridges with VLAN filtering have.

use paceline_linux::network::netlink::{self, Messages, attribute, dump, subscribe};
use std::io;
use std::os::fd::OwnedFd;

/// Bytes of `struct ifinfomsg` and of `struct ndmsg`. By definition of Linux (linux/rtnetlink.h,
/// linux/neighbour.h).
const LINK_MESSAGE: usize = 16;
const NEIGHBOUR_MESSAGE: usize = 12;
// Attributes and values of Linux (linux/if_link.h, linux/if_bridge.h, linux/neighbour.h).
const IFLA_MASTER: u16 = 10;
const IFLA_PROTINFO: u16 = 12;
const IFLA_BRPORT_STATE: u16 = 1;
const BR_STATE_FORWARDING: u8 = 3;
const NDA_LLADDR: u16 = 2;
const NDA_MASTER: u16 = 9;
const NUD_PERMANENT: u16 = 0x80;
const NTF_SELF: u8 = 2;
/// Multicast groups of links and of neighbours, FDB entries included (linux/rtnetlink.h: RTMGRP_LINK,
/// RTMGRP_NEIGH).
const GROUPS: u32 = 1 | 4;

/// A message about links or bridges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The state of a bridge's port.
    Port { interface: u32, bridge: u32, forwards: bool },
    /// An FDB entry of a bridge: frames to this address are for this machine (None), or leave by a port.
    Entry { bridge: u32, address: [u8; 6], port: Option<u32> },
    /// The entry is gone.
    Gone { bridge: u32, address: [u8; 6] },
    /// Another change of a link, such as a new one above a bridge.
    Link,
}

/// The states of all ports and all entries at present.
pub fn read() -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    for (kind, header) in [(libc::RTM_GETLINK, LINK_MESSAGE), (libc::RTM_GETNEIGH, NEIGHBOUR_MESSAGE)] {
        let mut body = vec![0; header];
        body[0] = libc::AF_BRIDGE as u8;
        dump(kind, &body, |kind, message| events.extend(event(kind, message)))?;
    }
    Ok(events)
}

/// A socket that receives changes.
pub struct Changes {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Changes {
    pub fn subscribe() -> io::Result<Self> {
        Ok(Self { socket: subscribe(GROUPS)?, buffer: vec![0; 1 << 16] })
    }
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }
    /// The changes that have arrived. An error means that some are lost.
    pub fn receive(&mut self, mut take: impl FnMut(Event)) -> io::Result<()> {
        while let Some(len) = netlink::receive(&self.socket, &mut self.buffer)? {
            for (kind, message) in Messages(&self.buffer[..len]) {
                event(kind, message).into_iter().for_each(&mut take);
            }
        }
        Ok(())
    }
}

fn event(kind: u16, message: &[u8]) -> Option<Event> {
    match kind {
        libc::RTM_NEWLINK | libc::RTM_DELLINK => Some(port(kind, message).unwrap_or(Event::Link)),
        libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH => entry(kind, message),
        _ => None,
    }
}

/// The state of a port, from a message of the family AF_BRIDGE.
fn port(kind: u16, message: &[u8]) -> Option<Event> {
    let header = message.get(..LINK_MESSAGE).filter(|header| header[0] == libc::AF_BRIDGE as u8)?;
    let attributes = &message[LINK_MESSAGE..];
    let bridge = number(attribute(attributes, IFLA_MASTER)?)?;
    let state = *attribute(attribute(attributes, IFLA_PROTINFO)?, IFLA_BRPORT_STATE)?.first()?;
    let forwards = kind == libc::RTM_NEWLINK && state == BR_STATE_FORWARDING;
    Some(Event::Port { interface: number(&header[4..8])?, bridge, forwards })
}

fn entry(kind: u16, message: &[u8]) -> Option<Event> {
    let header = message.get(..NEIGHBOUR_MESSAGE).filter(|header| header[0] == libc::AF_BRIDGE as u8)?;
    let (interface, flags) = (number(&header[4..8])?, header[10]);
    let permanent = u16::from_ne_bytes([header[8], header[9]]) & NUD_PERMANENT != 0;
    let attributes = &message[NEIGHBOUR_MESSAGE..];
    let address = attribute(attributes, NDA_LLADDR)?.try_into().ok()?;
    let master = attribute(attributes, NDA_MASTER).and_then(number);
    let bridge = match master {
        Some(bridge) => bridge,
        // An address that the bridge device itself has beside its first, as for a macvlan above it.
        None if flags & NTF_SELF != 0 => interface,
        None => return None,
    };
    // Entries of a port itself are those of its own address filter.
    if master.is_some_and(|master| flags & NTF_SELF != 0 && master != interface) {
        return None;
    }
    if kind == libc::RTM_DELNEIGH {
        return Some(Event::Gone { bridge, address });
    }
    let local = permanent || interface == bridge;
    Some(Event::Entry { bridge, address, port: (!local).then_some(interface) })
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute_bytes(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::from((4 + value.len() as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }
    fn neighbour(interface: u32, state: u16, flags: u8, master: Option<u32>) -> Vec<u8> {
        let mut bytes = vec![libc::AF_BRIDGE as u8, 0, 0, 0];
        bytes.extend(interface.to_ne_bytes());
        bytes.extend(state.to_ne_bytes());
        bytes.extend([flags, 0]);
        bytes.extend(attribute_bytes(NDA_LLADDR, &[2, 0, 0, 0, 0, 9]));
        bytes.extend(master.iter().flat_map(|master| attribute_bytes(NDA_MASTER, &master.to_ne_bytes())));
        bytes
    }

    #[test]
    fn entries_are_local_or_of_a_port() {
        let address = [2, 0, 0, 0, 0, 9];
        let found = |kind, message: &[u8]| event(kind, message);
        let entry = |port| Some(Event::Entry { bridge: 7, address, port });
        let new = libc::RTM_NEWNEIGH;
        assert_eq!(found(new, &neighbour(3, 2, 0, Some(7))), entry(Some(3)), "learned");
        assert_eq!(found(new, &neighbour(3, 0x40, 0, Some(7))), entry(Some(3)), "static");
        assert_eq!(found(new, &neighbour(3, 0x80, 0, Some(7))), entry(None), "a port's own");
        assert_eq!(found(new, &neighbour(7, 0x80, 0, Some(7))), entry(None), "the bridge's own");
        assert_eq!(found(new, &neighbour(7, 0x80, NTF_SELF, None)), entry(None), "of a macvlan");
        assert_eq!(found(new, &neighbour(3, 0x80, NTF_SELF, Some(7))), None, "a port's filter");
        assert_eq!(
            found(libc::RTM_DELNEIGH, &neighbour(3, 2, 0, Some(7))),
            Some(Event::Gone { bridge: 7, address })
        );
        assert!((0..24).all(|len| found(new, &neighbour(3, 2, 0, Some(7))[..len]).is_none()));
    }

    #[test]
    fn a_port_forwards_in_one_state_alone() {
        for (state, forwards) in [(0, false), (1, false), (2, false), (3, true), (4, false)] {
            let mut message = vec![0; LINK_MESSAGE];
            message[0] = libc::AF_BRIDGE as u8;
            message[4..8].copy_from_slice(&5u32.to_ne_bytes());
            message.extend(attribute_bytes(IFLA_MASTER, &7u32.to_ne_bytes()));
            let inner = attribute_bytes(IFLA_BRPORT_STATE, &[state]);
            message.extend(attribute_bytes(IFLA_PROTINFO | 0x8000, &inner));
            let found = event(libc::RTM_NEWLINK, &message);
            assert_eq!(found, Some(Event::Port { interface: 5, bridge: 7, forwards }));
            message[0] = 0;
            assert_eq!(event(libc::RTM_NEWLINK, &message), Some(Event::Link));
        }
    }
}
