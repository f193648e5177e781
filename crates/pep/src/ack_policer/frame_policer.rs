//! The policer on frames with its table of connections, decision by decision as the kernel program.

use super::flow::Flow;
use super::frame::{Frame, FrameKey};
use super::judge::judge;
use super::limiter::Limiter;
use super::policer::PolicerConfig;
use super::reason::Reason;
use super::{Mode, Policy};
use paceline_net::TcpFlags;
use std::collections::BTreeMap;

/// Connections that are remembered; later ones pass. Chosen: the number of the kernel program, which makes
/// room for them instead.
const MAX_FLOWS: usize = 131_072;

/// A policer between two directions of frames. Times are in ns, above 0.
#[derive(Clone, Debug)]
pub struct FramePolicer {
    config: PolicerConfig,
    flows: BTreeMap<FrameKey, (Flow, Limiter)>,
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
        match self.flows.get_mut(&frame.key) {
            Some((flow, own)) => {
                let limiter = if per_flow { own } else { &mut self.aggregate };
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
        if let Some((flow, _)) = self.flows.get_mut(&key) {
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
