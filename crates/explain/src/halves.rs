//! Round-trip times in two halves: from the capture point to one end and back.

use crate::quantiles::Quantiles;
use paceline_net::{Duration, Instant};
use std::collections::VecDeque;

/// TSvals that wait for their echo. Chosen: a clock of 1 ms makes 1000 a second, and one in 128 of a round
/// trip is enough.
const MAX_WAITING: usize = 128;

/// The round trip from the capture point to one end and back.
#[derive(Clone, Debug, Default)]
pub struct Half {
    /// All samples, ns.
    pub samples: Quantiles,
    /// Whether the capture was made at this end, as its maker says.
    pub is_here: bool,
    /// Sample of the handshake, and the least of data and echoes, ns.
    pub handshake_ns: Option<u64>,
    pub least_data_ns: Option<u64>,
    /// Smoothed samples, ns.
    recent: Option<u64>,
    /// Whether an echo of a TSval gave a sample.
    pub has_echoes: bool,
    /// TSvals that passed towards the end, with their times.
    waiting: VecDeque<(u32, Instant)>,
}

impl Half {
    /// Adds the sample of the handshake.
    pub fn add_handshake(&mut self, sample: Duration) {
        self.handshake_ns = Some(sample.as_nanos());
        self.smooth(sample.as_nanos());
    }
    /// Adds a sample of data or an echo.
    pub fn add(&mut self, sample: Duration) {
        let ns = sample.as_nanos();
        self.least_data_ns = Some(self.least_data_ns.map_or(ns, |least| least.min(ns)));
        self.smooth(ns);
    }
    fn smooth(&mut self, ns: u64) {
        self.samples.add(ns);
        // RFC 6298 §2.3: alpha = 1/8.
        self.recent = Some(self.recent.map_or(ns, |recent| recent - recent / 8 + ns / 8));
    }
    /// The smoothed round trip, ns; zero at the end itself and before the first sample.
    pub fn recent_ns(&self) -> u64 {
        self.recent.filter(|_| !self.is_here).unwrap_or(0)
    }
    /// A segment with this TSval passed towards the end.
    pub fn on_value(&mut self, at: Instant, tsval: u32) {
        let is_new = self.waiting.back().is_none_or(|(last, _)| (tsval.wrapping_sub(*last) as i32) > 0);
        if is_new && self.waiting.len() < MAX_WAITING {
            self.waiting.push_back((tsval, at));
        }
    }
    /// A segment from the end echoes a TSval. If it is the first echo, the time between both is the round
    /// trip (Strowes, "Passively measuring TCP round-trip times", 2013); `counts` if the end sent it at once.
    pub fn on_echo(&mut self, at: Instant, tsecr: u32, counts: bool) {
        while let Some(&(value, passed)) = self.waiting.front() {
            if (value.wrapping_sub(tsecr) as i32) > 0 {
                break;
            }
            self.waiting.pop_front();
            if value == tsecr && counts {
                self.add(at.since(passed));
                self.has_echoes = true;
            }
        }
    }
    /// Frees memory that a closed connection does not need.
    pub fn close(&mut self) {
        self.waiting = VecDeque::new();
    }
}
