//! The safe scheme (stub).
use super::queue::{AckQueue, Popped};
use paceline_net::{Bytes, Instant, Packet};
#[derive(Clone, Debug)]
pub(super) struct Safe {}
impl Safe {
    pub fn new(_segment: Bytes) -> Self {
        Self {}
    }
    pub fn push(&mut self, queue: &mut AckQueue, now: Instant, packet: Packet) {
        queue.append(now, packet, None);
    }
    pub fn on_pop(&mut self, _queue: &AckQueue, _now: Instant, _popped: &Popped) {}
}
