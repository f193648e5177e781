//! Downlink packets between the source and the target of a handover (TS 36.300 §10.1.2.1.2, TS 38.300
//! §9.2.3.2.3).
//!
//! At the handover the source forwards the packets that wait in its buffer; until the core has switched its
//! path, it forwards those that still arrive. They take the same time each. An end marker follows the last
//! one, and packets of the new path wait for it. The SDUs that RLC of the source has taken are not delayed.

use crate::cell::config::ForwardingConfig;
use paceline_net::{Instant, Packet};
use std::collections::VecDeque;

/// Forwarding to one station's target.
#[derive(Debug)]
pub(in crate::cell) struct Forwarding {
    config: ForwardingConfig,
    /// Packets with the times at which the target has them.
    line: VecDeque<(Instant, Packet)>,
    /// The time at which the core sends its packets to the target; none until it is known.
    switched_at: Option<Instant>,
    /// Whether the core has switched its path, and it was said.
    switched: bool,
    forwarded: u64,
}

impl Forwarding {
    /// Packets still on their way from an earlier source arrive at the new target as they would have there.
    pub fn begin(config: ForwardingConfig, former: Option<Self>) -> Self {
        let line = former.map(|former| former.line).unwrap_or_default();
        Self { config, line, switched_at: None, switched: false, forwarded: 0 }
    }
    /// The source forwards a packet.
    pub fn forward(&mut self, now: Instant, packet: Packet) {
        self.forwarded += 1;
        self.line.push_back((now + self.config.delay, packet));
    }
    /// A packet arrives from the core: returned if it enters the target's buffer at once.
    pub fn arrive(&mut self, now: Instant, packet: Packet) -> Option<Packet> {
        let Some(switched_at) = self.switched_at.filter(|at| *at <= now) else {
            self.forward(now, packet);
            return None;
        };
        let end_marker_at = switched_at + self.config.delay;
        if self.config.end_marker && now < end_marker_at {
            self.line.push_back((end_marker_at, packet));
            return None;
        }
        Some(packet)
    }
    /// Service in the target has begun: the target asks the core to switch its path.
    pub fn on_service(&mut self, now: Instant) {
        self.switched_at = Some(now + self.config.path_switch);
    }
    /// Whether the core has switched its path, once.
    pub fn take_switch(&mut self, now: Instant) -> bool {
        let switched = self.switched_at.is_some_and(|at| at <= now);
        switched && !std::mem::replace(&mut self.switched, true)
    }
    /// The next packet that the target has.
    pub fn pop(&mut self, now: Instant) -> Option<Packet> {
        self.line.pop_front_if(|(at, _)| *at <= now).map(|(_, packet)| packet)
    }
    /// Whether the target has had the end marker and all packets before it.
    pub fn finished(&self, now: Instant) -> bool {
        self.line.is_empty() && self.switched_at.is_some_and(|at| at + self.config.delay <= now)
    }
    /// Number of packets that the source has forwarded.
    pub fn forwarded(&self) -> u64 {
        self.forwarded
    }
    /// Number of packets on their way.
    pub fn held(&self) -> u64 {
        self.line.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::{Duration, SeqNumber, TcpHeader};

    fn packet(number: u32) -> Packet {
        let (src, dst) = ("198.18.0.1".parse().unwrap(), "198.18.0.2".parse().unwrap());
        Packet::tcp(src, dst, TcpHeader { seq: SeqNumber(number), ..TcpHeader::default() })
    }
    /// The order in which the target has the packets that arrive every ms, from 1 ms on; service begins at 5
    /// ms.
    fn order(end_marker: bool) -> Vec<(u64, u32)> {
        let [delay, path_switch] = [4, 3].map(Duration::from_millis);
        let mut forwarding = Forwarding::begin(ForwardingConfig { delay, path_switch, end_marker }, None);
        forwarding.forward(Instant::ZERO, packet(0));
        let mut had = Vec::new();
        for ms in 1..20 {
            let now = Instant::from_millis(ms);
            if ms == 5 {
                forwarding.on_service(now);
            }
            had.extend(std::iter::from_fn(|| forwarding.pop(now)).map(|packet| (ms, packet)));
            had.extend(forwarding.arrive(now, packet(ms as u32)).map(|packet| (ms, packet)));
            assert_eq!(forwarding.finished(now), ms >= 12, "{ms}");
        }
        had.iter().map(|(ms, packet)| (*ms, packet.tcp_header().unwrap().seq.0)).collect()
    }

    #[test]
    fn packets_of_the_new_path_wait_for_the_end_marker() {
        let order = order(true);
        assert!(order.iter().map(|(_, number)| *number).eq(0..20), "{order:?}");
        // The core switches at 8 ms: packets before it take 4 ms, later ones wait for the end marker.
        for (number, ms) in [(0, 4), (7, 11), (8, 12), (11, 12), (12, 12), (15, 15)] {
            assert_eq!(order[number], (ms, number as u32));
        }
    }

    #[test]
    fn without_an_end_marker_packets_of_the_new_path_overtake() {
        let order = order(false);
        let at = |number| order.iter().position(|(_, other)| *other == number).unwrap();
        assert!(at(8) < at(5) && at(9) < at(6));
        assert_eq!(order.len(), 20);
    }
}
