//! Standing-queue detector (safety rule 17), by the time that the packet at the head has waited, as in CoDel
//! (RFC 8289).
//!
//! Only time counts. A limit on the number of packets would take a burst from a fast link for a standing
//! queue.

use paceline_net::{Duration, Instant};

/// The queue is standing once every packet at the head has waited for [`StandingQueue::ON_DELAY`] for as long
/// as [`StandingQueue::ON_TIME`], and until one has waited for less than [`StandingQueue::OFF_DELAY`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StandingQueue {
    /// Since when every head had waited for [`StandingQueue::ON_DELAY`].
    since: Option<Instant>,
    standing: bool,
    /// How long the packet at the head has waited.
    delay: Duration,
}

impl StandingQueue {
    /// CoDel's target delay (RFC 8289).
    const ON_DELAY: Duration = Duration::from_millis(5);
    /// A radio frame (TS 36.211 section 4), the usual period of scheduling requests and TDD patterns. Chosen:
    /// a buffer that empties at each opportunity to send is not standing.
    const ON_TIME: Duration = Duration::from_millis(10);
    /// Chosen: half of the delay that begins a standing queue, for hysteresis.
    const OFF_DELAY: Duration = Duration::from_micros(2500);

    pub fn is_standing(&self) -> bool {
        self.standing
    }
    /// How long the packet at the head has waited; zero for an empty queue.
    pub fn delay(&self) -> Duration {
        self.delay
    }
    /// `head_arrived`: when the packet at the head arrived; `None` for an empty queue.
    pub fn observe(&mut self, now: Instant, head_arrived: Option<Instant>) {
        let Some(arrived) = head_arrived else {
            *self = Self::default();
            return;
        };
        let waited = now.since(arrived);
        self.delay = waited;
        if waited >= Self::ON_DELAY {
            let since = *self.since.get_or_insert(arrived + Self::ON_DELAY);
            self.standing |= now.since(since) >= Self::ON_TIME;
        } else {
            self.since = None;
            self.standing &= waited >= Self::OFF_DELAY;
        }
    }
}
