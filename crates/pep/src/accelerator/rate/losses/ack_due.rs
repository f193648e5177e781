//! When the next acknowledgment of a device is due, and so which gaps between acknowledgments are silences of
//! the radio.
//!
//! A sender that pauses while acknowledgments go on arriving makes them pause a round trip later. It pauses
//! when it has no data, and while a lost segment keeps the client's window shut: then the retransmission
//! opens the whole window at once, and the first acknowledgment of the new data comes a round trip after
//! that. In a silence of the radio it is the other way round: the acknowledgments stop first.

use paceline_net::{Duration, Instant};

/// Shortest time without acknowledgments that is a silence, if a quarter of the round-trip time is shorter.
/// Chosen: above the gaps of scheduling and HARQ (8 ms per retransmission in LTE, TS 36.213).
pub(in crate::accelerator) const MIN_SILENCE: Duration = Duration::from_millis(20);
/// Shortest pause of the sender that counts. Chosen: half of a silence, since acknowledgments jitter.
const MIN_PAUSE: Duration = Duration::from_nanos(MIN_SILENCE.as_nanos() / 2);

/// When the next acknowledgment of one device is due.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckDue {
    at: Instant,
    last_sent_at: Instant,
    last_ack_at: Instant,
}

impl AckDue {
    #[cfg(test)]
    pub fn at(&self) -> Instant {
        self.at
    }
    /// A packet is sent. After a pause of the sender its acknowledgment is the next that is due, after a
    /// round-trip time `rtt`.
    pub fn on_send(&mut self, now: Instant, after_idle: bool, rtt: Duration) {
        if after_idle || self.last_ack_at.since(self.last_sent_at) > MIN_PAUSE {
            self.at = self.at.max(now + rtt);
        }
        self.last_sent_at = now;
    }
    /// An acknowledgment. Returns for how long it was overdue.
    pub fn on_ack(&mut self, now: Instant) -> Duration {
        let overdue = now.since(self.at);
        if overdue > MIN_SILENCE {
            // The sender did not pause by itself meanwhile.
            self.last_sent_at = self.last_sent_at.max(now);
        }
        (self.at, self.last_ack_at) = (self.at.max(now), now);
        overdue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(30);
    const AT: fn(u64) -> Instant = Instant::from_millis;

    /// A sender that sends at each acknowledgment, one per millisecond, until `until`.
    fn busy(until: u64) -> AckDue {
        let mut due = AckDue::default();
        for ms in 0..=until {
            due.on_ack(AT(ms));
            due.on_send(AT(ms), false, RTT);
        }
        due
    }

    #[test]
    fn acknowledgments_that_stop_first_are_a_silence() {
        let mut due = busy(100);
        assert_eq!(due.on_ack(AT(101)), Duration::from_millis(1));
        due.on_send(AT(130), false, RTT); // a retransmission on suspicion
        assert_eq!(due.on_ack(AT(161)), Duration::from_millis(60));
        // The window was full in the silence: the next gap may still be the radio's.
        due.on_send(AT(161), false, RTT);
        assert_eq!(due.on_ack(AT(192)), Duration::from_millis(31));
    }

    #[test]
    fn a_pause_of_the_sender_is_no_silence() {
        let mut due = busy(100);
        // A segment is lost; the others arrive, and nothing is sent.
        (101..130).for_each(|ms| assert_eq!(due.on_ack(AT(ms)), Duration::from_millis(1)));
        due.on_send(AT(130), false, RTT);
        assert_eq!(due.on_ack(AT(160)), Duration::ZERO);
        assert_eq!(due.on_ack(AT(200)), Duration::from_millis(40));
    }

    #[test]
    fn after_idle_time_nothing_was_due() {
        let mut due = busy(100);
        due.on_send(AT(5000), true, RTT);
        assert_eq!(due.on_ack(AT(5031)), Duration::from_millis(1));
    }
}
