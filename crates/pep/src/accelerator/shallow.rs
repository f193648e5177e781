//! Whether losses come from a buffer shorter than the delay budget, found by trying: the queue is kept shorter for
//! a few round trips, never below what the path itself holds. If the losses stop, the queue stays short and grows
//! slowly; if not, they have other causes, and are not looked at for a while.
//!
//! Less than one segment in ten, or a single burst, is let be: radios lose as much. What was found fades within
//! seconds, so that a mistake, or a buffer that was another path's, does not last.

use paceline_net::{Duration, Instant};

/// Share of bytes lost in a round trip that asks for a trial, and the least number of bytes.
const SUSPICIOUS: f64 = 0.1;
/// Round trips in a row.
const IN_A_ROW: u8 = 3;
/// Growth of the queue that is kept, per second.
const FADING: f64 = 0.08;
const LEAST_LOST: u64 = 3000;
/// Round trips until what was sent before a trial has been judged, and until its end.
const SETTLING: u8 = 3;
const TRIAL: u8 = 8;
/// Of the queue that lost, what is kept.
const KEPT: f64 = 0.6;
/// Round trips with an almost empty queue after which the path is another one.
const STARVED: u8 = 4;
const FIRST_TRUCE: Duration = Duration::from_secs(10);
const MAX_TRUCE: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug)]
struct Trial {
    /// Share lost before it.
    loss: f64,
    rounds: u8,
    delivered: u64,
    lost: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shallow {
    /// Longest queue to keep, in seconds, while one is known.
    cap: Option<f64>,
    trial: Option<Trial>,
    /// Losses are not looked at until then, and for how long the last time.
    truce_until: Instant,
    truce: Duration,
    starved: u8,
    lossy: u8,
}

impl Shallow {
    /// Longest queue to keep, in seconds.
    pub fn cap(&self) -> Option<f64> {
        self.cap
    }
    /// A round trip of so many seconds ended in which so much was delivered and found lost, the queue never being
    /// shorter than `queue` seconds.
    pub fn on_round(&mut self, now: Instant, (delivered, lost): (u64, u64), queue: f64, round: f64) {
        let loss = lost as f64 / (delivered + lost).max(1) as f64;
        let suspicious = loss > SUSPICIOUS && lost >= LEAST_LOST;
        if let Some(trial) = &mut self.trial {
            trial.rounds += 1;
            if trial.rounds > SETTLING {
                trial.delivered += delivered;
                trial.lost += lost;
            }
            if trial.rounds >= TRIAL {
                let after = trial.lost as f64 / (trial.delivered + trial.lost).max(1) as f64;
                let helped = after < trial.loss / 2.0;
                self.trial = None;
                if !helped {
                    self.truce = (self.truce * 2).max(FIRST_TRUCE).min(MAX_TRUCE);
                    self.truce_until = now + self.truce;
                    self.cap = None;
                }
            }
            return;
        }
        self.lossy = if suspicious { self.lossy.saturating_add(1) } else { 0 };
        if self.lossy >= IN_A_ROW && now >= self.truce_until {
            self.lossy = 0;
            let before = self.cap.map_or(queue, |cap| cap.min(queue));
            self.cap = Some((KEPT * before).max(0.001));
            self.trial = Some(Trial { loss, rounds: 0, delivered: 0, lost: 0 });
        } else if let Some(cap) = &mut self.cap {
            *cap *= 1.0 + FADING * round;
            self.starved = if queue < *cap / 4.0 { self.starved + 1 } else { 0 };
            if self.starved >= STARVED {
                (self.cap, self.starved) = (None, 0);
            }
        }
    }
}
