//! The policer on frames with its table of connections, decision by decision as the kernel program.

use super::flow::{Flow, Phase};
use super::frame::{Frame, FrameKey};
use super::judge::judge;
use super::limiter::Limiter;
use super::policer::PolicerConfig;
use super::reason::Reason;
use super::tunnels::Tunnels;
use super::{Mode, Policy};
use paceline_net::TcpFlags;
use std::collections::BTreeMap;

/// Connections that are remembered; later ones pass. Chosen: the number of the kernel program, which makes
/// room for them instead.
const MAX_FLOWS: usize = 131_072;

/// One connection in the table.
#[derive(Clone, Debug, Default)]
struct Entry {
    flow: Flow,
    limiter: Limiter,
    tunnels: Tunnels,
}

impl Entry {
    /// The entry, if a frame in the policed direction is of its connection.
    fn policed(&mut self, mode: Mode, frame: &Frame) -> Option<&mut Self> {
        match mode {
            Mode::Safe => self.tunnels.admit(&self.flow, Phase::SynPoliced, frame).then_some(self),
            Mode::Published => {
                if !self.tunnels.follow(frame) {
                    (self.flow, self.limiter) = Default::default();
                }
                Some(self)
            }
        }
    }
}

/// A policer between two directions of frames. Times are in ns, above 0.
#[derive(Clone, Debug)]
pub struct FramePolicer {
    config: PolicerConfig,
    flows: BTreeMap<FrameKey, Entry>,
    /// The limit of all connections together.
    aggregate: Limiter,
}

impl FramePolicer {
    /// A policer that has seen nothing.
    pub fn new(config: PolicerConfig) -> Self {
        Self { config, flows: BTreeMap::new(), aggregate: Limiter::default() }
    }
    /// Connections in the table.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }
    /// Whether a frame in the policed direction passes, and why.
    pub fn police(&mut self, frame: &Frame, now: u64) -> Reason {
        let PolicerConfig { policy, per_flow } = self.config;
        let published = policy.mode == Mode::Published;
        if frame.segment.has(TcpFlags::SYN) || (published && per_flow) {
            self.remember(frame.key);
        }
        let entry = self.flows.get_mut(&frame.key);
        match entry.and_then(|entry| entry.policed(policy.mode, frame)) {
            Some(Entry { flow, limiter, .. }) => {
                let limiter = if per_flow { limiter } else { &mut self.aggregate };
                judge(flow, limiter, &policy, now, &frame.segment)
            }
            None if published && !per_flow => self.judge_blindly(&policy, frame, now),
            None if frame.segment.is_pure_ack() => Reason::MidStream,
            None => Reason::NotAck,
        }
    }
    /// A frame in the data direction: always passes.
    pub fn observe(&mut self, frame: &Frame, now: u64) {
        if self.config.policy.mode == Mode::Published {
            return;
        }
        let key = frame.key.reversed();
        if frame.segment.has(TcpFlags::SYN) {
            self.remember(key);
        }
        if let Some(Entry { flow, tunnels, .. }) = self.flows.get_mut(&key)
            && tunnels.admit(flow, Phase::SynData, frame)
        {
            flow.on_data_direction(now, &frame.segment);
        }
    }

    fn judge_blindly(&mut self, policy: &Policy, frame: &Frame, now: u64) -> Reason {
        judge(&mut Flow::default(), &mut self.aggregate, policy, now, &frame.segment)
    }
    fn remember(&mut self, key: FrameKey) {
        if self.flows.len() < MAX_FLOWS {
            self.flows.entry(key).or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack_policer::{Limit, Segment, Tunnel, marks};

    const SYN: u16 = 0x002;
    const PSH: u16 = 0x008;
    const ACK: u16 = 0x010;
    const MS: u64 = 1_000_000;

    /// A subscriber behind tunnels of its own, which downloads.
    struct Subscriber {
        teids: [u32; 2],
        isn: u32,
        data: u32,
    }

    impl Subscriber {
        fn frame(&self, up: bool, flags: u16, seq: u32, ack: u32, payload: u32) -> Frame {
            let key = FrameKey { src_port: 40_000, dst_port: 443, version: 4, ..FrameKey::default() };
            let segment = Segment {
                seq,
                ack,
                flags,
                payload,
                segment: payload,
                window: 60_000,
                len: 52,
                ..Segment::default()
            };
            let (side, key) = if up { (0, key) } else { (1, key.reversed()) };
            let teid = self.teids[side];
            Frame { key, tunnel: Tunnel { end: [u8::from(teid != 0); 16], teid }, segment }
        }
        /// The same with timestamps of milliseconds, of which data echo those of 5 ms ago.
        fn stamped(&self, now: u64, up: bool, seq: u32, ack: u32, payload: u32) -> Frame {
            let mut frame = self.frame(up, ACK, seq, ack, payload);
            frame.segment.marks |= marks::TIMESTAMPS;
            let ms = |at: u64| (at / MS) as u32;
            (frame.segment.tsval, frame.segment.tsecr) = (ms(now), ms(now - 5 * MS));
            frame
        }
        fn open(&self, policer: &mut FramePolicer, now: &mut u64) {
            policer.police(&self.frame(true, SYN, self.isn, 0, 0), *now);
            *now += 5 * MS;
            policer.observe(&self.frame(false, SYN | ACK, self.data, self.isn + 1, 0), *now);
            *now += MS;
            policer.police(&self.frame(true, ACK, self.isn + 1, self.data + 1, 0), *now);
        }
        /// Two segments and the ACK for them, while two more are on their way; its decision.
        fn transfer(&self, policer: &mut FramePolicer, now: &mut u64, round: u32) -> Reason {
            let at = self.data + 1 + round * 2896;
            for segment in 0..2 {
                *now += MS / 10;
                let data = self.stamped(*now, false, at + 2896 + segment * 1448, self.isn + 1, 1448);
                policer.observe(&data, *now);
            }
            policer.police(&self.stamped(*now, true, self.isn + 1, at + 2896, 0), *now)
        }
    }

    fn policer() -> FramePolicer {
        let policy =
            Policy { mode: Mode::Safe, limit: Limit::Share(52_429), max_segments: Policy::MAX_SEGMENTS };
        FramePolicer::new(PolicerConfig { policy, per_flow: true })
    }

    #[test]
    fn a_connection_in_paired_tunnels_or_in_none_is_policed() {
        for teids in [[0, 0], [0x11, 0x22]] {
            let one = Subscriber { teids, isn: 100, data: 5_000 };
            let (mut policer, mut now) = (policer(), 1_000 * MS);
            one.open(&mut policer, &mut now);
            let dropped = (0..4000)
                .filter(|round| one.transfer(&mut policer, &mut now, *round) == Reason::Dropped)
                .count();
            assert!(dropped > 500, "{teids:?}: {dropped}");
        }
    }

    #[test]
    fn data_of_another_tunnel_never_drops_an_ack() {
        let first = Subscriber { teids: [0x11, 0x22], isn: 100, data: 5_000 };
        // Equal addresses and ports, and numbers that fit: its data look like more data of the first.
        for teids in [[0x33, 0x44], [0x11, 0x44], [0, 0]] {
            let second = Subscriber { teids, isn: 100, data: 5_000 };
            let (mut policer, mut now) = (policer(), 1_000 * MS);
            first.open(&mut policer, &mut now);
            (0..4000).for_each(|round| {
                first.transfer(&mut policer, &mut now, round);
            });
            // The first has no data behind this pushed segment: this is its last ACK. The second's data must
            // not make it superfluous.
            let last = 5_001 + 4_001 * 2896 + 1448;
            now += MS / 10;
            policer.observe(&first.frame(false, ACK | PSH, last - 1448, 101, 1448), now);
            for segment in 0..6 {
                policer.observe(&second.frame(false, ACK, last + segment * 1448, 101, 1448), now);
            }
            let reason = policer.police(&first.frame(true, ACK, 101, last, 0), now);
            assert_ne!(reason, Reason::Dropped, "{teids:?}");
            let other = policer.police(&second.frame(true, ACK, 101, last, 0), now);
            assert!(second.teids[0] == 0x11 || other == Reason::MidStream, "{teids:?}: {other:?}");
        }
    }

    #[test]
    fn the_later_of_two_equal_connections_in_tunnels_is_policed_alone() {
        let first = Subscriber { teids: [0x11, 0x22], isn: 100, data: 5_000 };
        let second = Subscriber { teids: [0x33, 0x44], isn: 7_777, data: 9_000_000 };
        let (mut policer, mut now) = (policer(), 1_000 * MS);
        policer.police(&first.frame(true, SYN, first.isn, 0, 0), now);
        policer.police(&second.frame(true, SYN, second.isn, 0, 0), now);
        // The answer to the first SYN is no answer to the second.
        policer.observe(&first.frame(false, SYN | ACK, first.data, first.isn + 1, 0), now + MS);
        policer.observe(&second.frame(false, SYN | ACK, second.data, second.isn + 1, 0), now + 2 * MS);
        now += 3 * MS;
        policer.police(&second.frame(true, ACK, second.isn + 1, second.data + 1, 0), now);
        let mut dropped = [0, 0];
        for round in 0..4000 {
            for (count, one) in dropped.iter_mut().zip([&first, &second]) {
                *count += u32::from(one.transfer(&mut policer, &mut now, round) == Reason::Dropped);
            }
        }
        assert_eq!(dropped[0], 0);
        assert!(dropped[1] > 500, "{dropped:?}");
        assert_eq!(policer.flows(), 1);
    }

    #[test]
    fn a_blind_policer_counts_tunnels_apart() {
        let policy = Policy { mode: Mode::Published, limit: Limit::Share(52_429), max_segments: 16 };
        let mut policer = FramePolicer::new(PolicerConfig { policy, per_flow: true });
        let ends = [[0x11, 0x22], [0x33, 0x44]].map(|teids| Subscriber { teids, isn: 1, data: 1 });
        for round in 0..100 {
            for one in &ends {
                let reason = policer.police(&one.frame(true, ACK, 1, round, 0), MS * u64::from(round));
                assert_eq!(reason, Reason::WithinLimit, "the limit of one is not used up by the other");
            }
        }
    }
}
