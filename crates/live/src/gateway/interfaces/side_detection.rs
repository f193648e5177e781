//! Which interface is towards the servers, where the configuration leaves it open: connections are opened from the mobile
//! side and answered from the other. Until that is clear the kernel forwards everything.

use super::bridge;
use super::device::device;
use super::ports::Ports;
use crate::gateway::config::{GatewayConfig, Mode, Sides};
use crate::gateway::datapath::frame::{self, Arrival};
use crate::gateway::datapath::slot::Slot;
use crate::gateway::datapath::socket::PacketSocket;
use anyhow::{Context, bail};
use paceline_net::{FlowKey, TcpFlags};
use std::collections::BTreeSet;

/// First bytes of a packet that are looked at: the longest SYN with its headers.
const LOOK: u32 = 192;
/// So many more connections have to be answered from one interface than from the other.
const LEAD: usize = 3;
/// Packets taken in at once.
const BATCH: usize = 32;

/// Connections that are remembered at most; then it begins anew.
const MOST: usize = 4096;

/// Connections that were answered, by the interface from which the answer came. An answer may be sent again and again.
#[derive(Default, Debug)]
struct Tally {
    answered: [BTreeSet<FlowKey>; 2],
}

impl Tally {
    fn count(&mut self, interface: usize, arrival: &Arrival) {
        let Arrival::Datagram(_, packet) = arrival else { return };
        let answer = TcpFlags::SYN.with(TcpFlags::ACK);
        let answers = packet.tcp_header().is_some_and(|tcp| tcp.flags.contains(answer));
        let Some(key) = packet.flow_key().filter(|_| answers) else { return };
        if self.answered[interface].len() >= MOST {
            *self = Self::default();
        }
        self.answered[interface].insert(key);
    }
    /// The interface that is towards the servers.
    fn server(&self) -> Option<usize> {
        let [first, second] = [0, 1].map(|interface: usize| self.answered[interface].len());
        (first.abs_diff(second) >= LEAD).then_some(usize::from(second > first))
    }
}

/// The configuration with `server` and `mobile` as they really are: at once, or when connections have shown it. `waiting`
/// is called again and again meanwhile, lets some time pass, and may end it; there is no configuration then.
pub fn detect_sides(
    mut config: GatewayConfig,
    mut waiting: impl FnMut() -> bool,
) -> anyhow::Result<Option<GatewayConfig>> {
    if config.sides == Sides::Configured {
        return Ok(Some(config));
    }
    let interfaces = match config.mode {
        Mode::Bridge => {
            let Ports { server, mobile, .. } = bridge::join(&config)?;
            [server, mobile]
        }
        Mode::Routed => [device(&config.server)?.ifindex, device(&config.mobile)?.ifindex],
    };
    let open =
        |interface| PacketSocket::open_watching(interface, LOOK).context("cannot open a packet socket");
    let mut sockets = [open(interfaces[0])?, open(interfaces[1])?];
    let mut slots: Vec<Slot> = (0..BATCH).map(|_| Slot::new()).collect();
    let mut tally = Tally::default();
    while waiting() {
        for (interface, socket) in sockets.iter_mut().enumerate() {
            if !socket.has_interface() {
                bail!("an interface is gone");
            }
            let received = socket.receive(&mut slots).unwrap_or(0);
            slots[..received].iter_mut().for_each(|slot| tally.count(interface, &frame::read(slot)));
        }
        if let Some(server) = tally.server() {
            if server == 1 {
                config.swap_sides();
            }
            return Ok(Some(config));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::datapath::frame::Link;
    use paceline_net::{Packet, SeqNumber, TcpHeader, TcpOptions};

    fn answer(port: u16) -> Arrival {
        let tcp = TcpHeader {
            src_port: 443,
            dst_port: port,
            seq: SeqNumber(1),
            ack: SeqNumber(1),
            flags: TcpFlags::SYN.with(TcpFlags::ACK),
            window: 1,
            options: TcpOptions::default(),
            payload_len: 0,
        };
        let packet = Packet::tcp([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), tcp);
        Arrival::Datagram(Link::plain([0; 12], true), packet)
    }

    /// Who scans the devices' ports gets answers as well, each several times if nothing comes back.
    #[test]
    fn connections_are_counted_and_not_their_repetitions() {
        let mut tally = Tally::default();
        (0..6).for_each(|_| tally.count(0, &answer(7)));
        assert_eq!(tally.server(), None);
        (1..=3).for_each(|port| tally.count(1, &answer(port)));
        assert_eq!(tally.server(), None);
        tally.count(1, &answer(4));
        assert_eq!(tally.server(), Some(1));
    }
}
