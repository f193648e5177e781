//! The ACKs as the sender has seen them when its present data left, and the time that has no final cause yet.

use crate::causes::CauseTimes;
use crate::halves::Half;
use paceline_net::{Duration, Instant};
use std::collections::VecDeque;

/// Parts of the half round trip towards the sender by which ACKs in the view may be early. Chosen: bounds the
/// view to as many ACKs, and errs by less than the jitter of a path.
const VIEW_PARTS: u64 = 128;
/// The ACKs as the sender has seen them when the present data left.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub waiting: VecDeque<(Instant, u64, u64)>,
    pub acked: u64,
    pub edge: u64,
    /// ACK and bytes in flight when the last data left.
    pub acked_at_send: u64,
    pub flight_at_send: u64,
    pub is_window_known: bool,
    /// Time until which the lifetime is divided.
    pub clock: Option<Instant>,
    /// Time since the last segment with data or an ACK.
    pub pending: CauseTimes,
    /// Pending parts that are divided later: flowing, and with a hole in the data.
    pub flowing_ns: u64,
    pub hole_ns: u64,
    /// Flowing time since the last new data.
    pub answerable_ns: u64,
    /// Committed time with a hole in the data, whose cause is not known yet.
    pub open_hole_ns: u64,
    /// Time that the last silence added to [`Cause::Timeout`], ns.
    pub spent_ns: u64,
    /// Number of pauses and the longest, ns.
    pub pauses: (u64, u64),
    /// Time since which an ACK of new data is awaited.
    pub awaited: Option<Instant>,
    /// Whether an ACK came since the last new data.
    pub has_heard: bool,
    /// Time at which the last pause ended.
    pub resumed: Option<Instant>,
    pub has_handshake: bool,
}

impl View {
    pub fn push(&mut self, at: Instant, acked: u64, edge: u64, toward_sender: &Half) {
        let up = Duration::from_nanos(toward_sender.recent_ns() / VIEW_PARTS);
        match self.waiting.back_mut().filter(|last| at.since(last.0) < up) {
            Some(last) => (last.1, last.2) = (acked, edge),
            None => self.waiting.push_back((at, acked, edge)),
        }
    }
    pub fn take_spent(&mut self) -> u64 {
        std::mem::take(&mut self.spent_ns)
    }
    pub fn close(&mut self) {
        self.waiting = VecDeque::new();
    }
}
