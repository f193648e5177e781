//! Detects which interface is towards the servers, if the configuration leaves it open (`sides = "learned"`):
//! mobile devices open connections, so SYN-ACKs arrive from the servers' side. Until the sides are clear, the
//! kernel forwards everything.

use super::bridge;
use super::device::device;
use super::ports::Ports;
use crate::config::{GatewayConfig, Mode, Sides};
use crate::datapath::frame::{self, Arrival};
use crate::datapath::slot::Slot;
use crate::datapath::socket::PacketSocket;
use anyhow::{Context, bail};
use paceline_net::{FlowKey, TcpFlags};
use std::collections::BTreeSet;

/// Bytes received of each packet. Chosen: more than link header, encapsulation, IP and TCP headers with all
/// options (22, 104, 40 and 60 bytes), which a SYN-ACK consists of.
const CAPTURE_BYTES: u32 = 256;
/// Difference in answered connections that decides. Chosen: single connections are opened from the servers'
/// side too.
const LEAD: usize = 3;
/// Packets received at once. Chosen: the cost of the call is small beside that of its packets.
const BATCH: usize = 32;

/// Connections counted for an interface at most; counting starts anew then. Chosen: bounds the memory.
const MAX_CONNECTIONS: usize = 4096;

/// Connections of which a SYN-ACK was seen, by the interface on which it arrived. Retransmitted SYN-ACKs do
/// not count again.
#[derive(Default, Debug)]
struct AnsweredConnections {
    answered: [BTreeSet<FlowKey>; 2],
}

impl AnsweredConnections {
    fn count(&mut self, interface: usize, arrival: &Arrival) {
        let Arrival::Datagram(_, packet) = arrival else { return };
        let answer = TcpFlags::SYN.with(TcpFlags::ACK);
        let is_answer = packet.tcp_header().is_some_and(|tcp| tcp.flags.contains(answer));
        let Some(key) = packet.flow_key().filter(|_| is_answer) else { return };
        if self.answered[interface].len() >= MAX_CONNECTIONS {
            *self = Self::default();
        }
        self.answered[interface].insert(key);
    }
    /// The index of the interface towards the servers, once it is clear.
    fn server(&self) -> Option<usize> {
        let [first, second] = [0, 1].map(|interface: usize| self.answered[interface].len());
        (first.abs_diff(second) >= LEAD).then_some(usize::from(second > first))
    }
}

/// Returns the configuration with `server` and `mobile` the right way round. `waiting` is called repeatedly
/// until the sides are clear; it has to sleep for some time, and returns false to give up, which results in
/// None.
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
    let open = |interface| {
        PacketSocket::open_watching(interface, CAPTURE_BYTES).context("cannot open a packet socket")
    };
    let mut sockets = [open(interfaces[0])?, open(interfaces[1])?];
    let mut slots: Vec<Slot> = (0..BATCH).map(|_| Slot::new()).collect();
    let mut counts = AnsweredConnections::default();
    while waiting() {
        for (interface, socket) in sockets.iter_mut().enumerate() {
            if !socket.has_interface() {
                bail!("an interface is gone");
            }
            let received = socket.receive(&mut slots).unwrap_or(0);
            slots[..received].iter_mut().for_each(|slot| counts.count(interface, &frame::parse(slot)));
        }
        if let Some(server) = counts.server() {
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
    use crate::datapath::frame::Link;
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

    /// A port scan from the servers' side makes devices send SYN-ACKs, which they retransmit.
    #[test]
    fn retransmitted_syn_acks_count_once() {
        let mut counts = AnsweredConnections::default();
        (0..6).for_each(|_| counts.count(0, &answer(7)));
        assert_eq!(counts.server(), None);
        (1..=3).for_each(|port| counts.count(1, &answer(port)));
        assert_eq!(counts.server(), None);
        counts.count(1, &answer(4));
        assert_eq!(counts.server(), Some(1));
    }
}
