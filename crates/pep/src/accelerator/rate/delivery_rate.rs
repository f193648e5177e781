//! The delivery rate: bytes acknowledged over a stretch of time, and no faster than those bytes were sent, so that neither a
//! radio's turns nor a burst of ACKs after an outage are taken for capacity. The estimate is the highest of the last few
//! stretches. A stretch in which there was too little to send and no queue raises it, never lowers it.
//!
//! The idea is that of draft-cheng-iccrg-delivery-rate-estimation; what a segment was sent with is not kept, for stretches
//! are longer than a round trip.

use crate::accelerator::rate::short_buffer::is_lossy;
use paceline_net::{Duration, Instant};
use std::hint::black_box;

/// Parts of a stretch at whose ends a sample is taken.
const PARTS: usize = 4;
/// Samples of which the highest counts.
const MEMORY: usize = 8;

/// A share of the estimate that is nearly it, and a time that holds some bursts of losses.
const NEARLY: f64 = 0.9;
const LATELY: Duration = Duration::from_secs(1);

/// The end of a part of a stretch.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: Instant,
    delivered: u64,
    lost: u64,
    /// When the newest segment delivered by then had been sent.
    sent_at: Instant,
}

/// What is known of a stretch that ends, beside what was delivered in it.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Circumstances {
    /// Round trips that were all longer than that tell of a queue.
    pub busy: Duration,
    /// Less is sent than the path takes, on purpose.
    pub sparing: bool,
    /// What was lost, the buffer had room for.
    pub lost_elsewhere: bool,
    /// What was delivered may have been counted before.
    pub repaired: bool,
}

#[derive(Clone, Debug)]
pub(in crate::accelerator) struct Stretches {
    /// Bytes, of all times.
    delivered: u64,
    lost: u64,
    newest_sent_at: Instant,
    /// Ends of the last parts of a stretch, the oldest first.
    marks: [Mark; PARTS],
    mark_count: usize,
    /// Rate samples in bit/s, the newest in the last place written.
    samples: [f64; MEMORY],
    next_sample: usize,
    /// Since the last mark there was too little to send at some time; and the lowest round trip.
    limited: bool,
    lowest: Duration,
    bandwidth: f64,
    /// When a stretch last delivered nearly as much.
    reached_at: Instant,
}

impl Default for Stretches {
    fn default() -> Self {
        Self {
            delivered: 0,
            lost: 0,
            newest_sent_at: Instant::ZERO,
            marks: [Mark::default(); PARTS],
            mark_count: 0,
            samples: [0.0; MEMORY],
            next_sample: 0,
            limited: false,
            lowest: Duration::MAX,
            bandwidth: 0.0,
            reached_at: Instant::ZERO,
        }
    }
}

impl Stretches {
    /// Bytes delivered in all.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
    /// Estimated bandwidth in bit/s; zero before the first sample.
    pub fn bandwidth(&self) -> f64 {
        self.bandwidth
    }
    /// Sending begins after idle time, which is in no stretch.
    pub fn on_idle(&mut self, now: Instant) {
        self.mark_count = 0;
        self.newest_sent_at = now;
        self.mark(now);
    }
    /// What a fade lost says nothing of the rate between fades: it is in no stretch.
    pub fn on_fade(&mut self) {
        self.mark_count = 0;
    }
    /// So many bytes were delivered, of which the newest were sent then if it is known, and found lost.
    pub fn on_ack(&mut self, bytes: u64, lost: u64, sent_at: Option<Instant>, limited: bool) {
        self.delivered += bytes;
        self.lost += lost;
        self.limited |= limited;
        self.newest_sent_at = self.newest_sent_at.max(sent_at.unwrap_or(Instant::ZERO));
    }
    pub fn on_rtt(&mut self, rtt: Duration) {
        self.lowest = self.lowest.min(rtt);
    }
    /// Whether a part of a stretch of such length has ended.
    pub fn is_due(&self, now: Instant, stretch: Duration) -> bool {
        let last = self.mark_count.checked_sub(1).map(|last| self.marks[last]);
        last.is_none_or(|mark| now.since(mark.at) >= stretch / PARTS as u64)
    }
    /// Whether as much as the estimate was delivered at some time lately: else nothing says that it still holds.
    pub fn is_reached(&self, now: Instant) -> bool {
        now.since(self.reached_at) <= LATELY
    }
    /// A part of a stretch ends. Returns the rate over the stretch, in bit/s, if it has begun before.
    pub fn measure(&mut self, now: Instant, of: &Circumstances) -> Option<f64> {
        let rate = (self.mark_count > 0).then(|| self.sample(now, of));
        self.limited = false;
        self.lowest = Duration::MAX;
        self.mark(now);
        rate
    }

    fn sample(&mut self, now: Instant, of: &Circumstances) -> f64 {
        let (first, last) = (self.marks[0], self.marks[self.mark_count - 1]);
        let acked = now.since(first.at);
        let sent = self.newest_sent_at.since(first.sent_at);
        let span = acked.max(sent).as_secs_f64().max(1e-6);
        let delivered = self.delivered - first.delivered;
        let mut rate = 8.0 * delivered as f64 / span;
        if rate >= NEARLY * self.bandwidth {
            self.reached_at = now;
        }
        if of.repaired {
            rate = rate.min(self.bandwidth);
        }
        let lost = self.lost - last.lost;
        let elsewhere = lost > 0 && of.lost_elsewhere;
        if elsewhere {
            // The radio has sent it. How fast that can be, only what arrives tells.
            let taken = delivered + (self.lost - first.lost);
            rate = rate.max(self.bandwidth.min(8.0 * taken as f64 / span));
        }
        // With a queue the link was busy, whatever was there to send.
        let queued = self.lowest < Duration::MAX && self.lowest > of.busy;
        // And what it lost was more than it takes: else an estimate that is too high would never be tried, nor fall.
        let overrun = !elsewhere && is_lossy(self.delivered - last.delivered, lost);
        let tried = queued || overrun || !self.limited && !of.sparing;
        if tried || rate > self.bandwidth {
            self.samples[self.next_sample] = rate;
            self.next_sample = (self.next_sample + 1) % MEMORY;
            self.bandwidth = self.samples.iter().copied().fold(0.0, f64::max);
        }
        rate
    }
    fn mark(&mut self, now: Instant) {
        if self.mark_count == PARTS {
            self.marks.rotate_left(1);
            self.mark_count -= 1;
        }
        let (delivered, lost, sent_at) = (self.delivered, self.lost, self.newest_sent_at);
        self.marks[self.mark_count] = Mark { at: now, delivered, lost, sent_at };
        self.mark_count += 1;
    }
    /// Reads each of its cache lines.
    pub fn look_at(&self) {
        black_box((self.delivered, self.marks[1].at, self.marks[PARTS - 1].sent_at));
        black_box((self.samples[MEMORY - 1], self.bandwidth));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Circumstances = Circumstances {
        busy: Duration::from_millis(60),
        sparing: false,
        lost_elsewhere: false,
        repaired: false,
    };

    /// For so many parts of 10 ms: so many bytes arrive a millisecond, and so many are found lost.
    fn run(stretches: &mut Stretches, ms: &mut u64, parts: u64, bytes: u64, lost: u64, of: &Circumstances) {
        for _ in 0..parts {
            for _ in 0..10 {
                *ms += 1;
                stretches.on_ack(bytes, lost, Some(Instant::from_millis(*ms - 40)), false);
                stretches.on_rtt(Duration::from_millis(40));
            }
            stretches.measure(Instant::from_millis(*ms), of);
        }
    }
    /// After half a second of 8 Mb/s.
    fn known() -> (Stretches, u64) {
        let (mut stretches, mut ms) = (Stretches::default(), 1_000);
        stretches.on_idle(Instant::from_millis(ms - 40));
        run(&mut stretches, &mut ms, 50, 1_000, 0, &OF);
        assert!((stretches.bandwidth() - 8e6).abs() < 1e5, "{stretches:?}");
        (stretches, ms)
    }

    #[test]
    fn what_the_radio_lost_it_has_sent() {
        let (mut stretches, mut ms) = known();
        run(&mut stretches, &mut ms, 30, 500, 400, &Circumstances { lost_elsewhere: true, ..OF });
        assert!((7.1e6..7.3e6).contains(&stretches.bandwidth()), "{stretches:?}");
        run(&mut stretches, &mut ms, 30, 500, 400, &OF);
        assert!((stretches.bandwidth() - 4e6).abs() < 1e5, "what the buffer lost it has not: {stretches:?}");
    }

    #[test]
    fn losses_raise_no_estimate() {
        let (mut stretches, mut ms) = known();
        run(&mut stretches, &mut ms, 30, 1_000, 1_000, &Circumstances { lost_elsewhere: true, ..OF });
        assert!((stretches.bandwidth() - 8e6).abs() < 1e5, "{stretches:?}");
    }

    #[test]
    fn an_estimate_that_nothing_comes_near_is_not_reached() {
        let (mut stretches, mut ms) = known();
        run(&mut stretches, &mut ms, 90, 500, 500, &Circumstances { lost_elsewhere: true, ..OF });
        assert!(stretches.is_reached(Instant::from_millis(ms)));
        run(&mut stretches, &mut ms, 20, 500, 500, &Circumstances { lost_elsewhere: true, ..OF });
        assert!(!stretches.is_reached(Instant::from_millis(ms)), "{stretches:?}");
    }

    #[test]
    fn bytes_are_not_faster_than_they_were_sent() {
        let (mut stretches, ms) = known();
        // All of the last 100 ms at once.
        stretches.on_ack(100_000, 0, Some(Instant::from_millis(ms + 60)), false);
        let rate = stretches.measure(Instant::from_millis(ms + 10), &OF);
        assert!(rate.is_some_and(|rate| rate < 9e6), "{rate:?}");
    }
}
