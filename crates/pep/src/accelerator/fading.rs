//! Whether what a device does not answer is lost or late.
//!
//! A radio that falls silent has either stopped for a while, and everything comes later (a handover, an outage with a
//! deep buffer behind it), or it fades and loses what is sent meanwhile. The first asks for patience, the second for
//! repetition: with the client's window full of what was lost, nothing else can be sent. Which of them it is, a device's
//! own past tells: the share of segments that were found lost after a silence, and how many were sent again for nothing.
//! Losses without silence are another matter: a full buffer, or noise.

use super::scoreboard::Delivery;
use paceline_net::{Duration, Instant};

/// Time after which the past counts half: that of some fades.
const MEMORY: Duration = Duration::from_secs(10);
/// Least share of lost bytes, and largest of those sent again that had not been lost.
const LEAST_LOSS: f64 = 0.01;
const MOST_IN_VAIN: f64 = 0.05;
/// Least silence, beside a quarter of the round trip.
pub(super) const LEAST_SILENCE: Duration = Duration::from_millis(20);
/// Bytes lost before anything is concluded.
const LEAST_LOST: f64 = 100_000.0;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fading {
    delivered: f64,
    lost: f64,
    in_vain: f64,
    halved_at: Instant,
    acked_at: Instant,
    /// What is found lost until then was lost in a silence.
    silent_until: Instant,
}

impl Fading {
    /// An acknowledgment of the device, whose smoothed round-trip time is `srtt`.
    pub fn on_ack(&mut self, now: Instant, srtt: Duration, delivery: &Delivery) {
        if now.since(self.acked_at) > LEAST_SILENCE.max(srtt / 4) {
            self.silent_until = now + srtt;
        }
        self.acked_at = now;
        self.delivered += delivery.bytes as f64;
        if now <= self.silent_until {
            self.lost += delivery.lost as f64;
        }
        self.in_vain += delivery.in_vain as f64;
        if now.since(self.halved_at) > MEMORY {
            self.halved_at = now;
            (self.delivered, self.lost, self.in_vain) =
                (self.delivered / 2.0, self.lost / 2.0, self.in_vain / 2.0);
        }
    }
    /// Whether silence means loss.
    pub fn is_likely(&self) -> bool {
        self.lost > LEAST_LOST
            && self.lost > LEAST_LOSS * self.delivered
            && self.in_vain < MOST_IN_VAIN * self.lost
    }
}
