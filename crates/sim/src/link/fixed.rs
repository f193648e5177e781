//! A constant rate, with interruptions as handovers make them.
//!
//! What is not sent when an interruption begins goes on after it. Frames are the pipe's matter: they hold back what
//! was sent.

use paceline_net::{Bytes, Duration, Instant, Rate, Stream};

/// A direction of a link of constant rate.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    rate: Rate,
    interruptions: Option<Interruptions>,
}

/// Random interruptions; they are looked at in the order of time.
#[derive(Clone, Debug)]
struct Interruptions {
    length: Duration,
    interval: Duration,
    stream: Stream,
    /// The one that is next, or now.
    begins: Instant,
    /// Sum of those that are over.
    passed: Duration,
}

impl Fixed {
    /// A rate that is always there.
    pub fn new(rate: Rate) -> Self {
        Self { rate, interruptions: None }
    }
    /// The same, interrupted for `length` at exponential distances of mean `interval`.
    pub fn interrupted(rate: Rate, length: Duration, interval: Duration, stream: Stream) -> Self {
        if length.is_zero() {
            return Self::new(rate);
        }
        let (begins, passed) = (Instant::ZERO, Duration::ZERO);
        let mut interruptions = Interruptions { length, interval, stream, begins, passed };
        interruptions.begins = Instant::ZERO + interruptions.distance();
        Self { rate, interruptions: Some(interruptions) }
    }
    /// When `len` bytes have left whose sending may begin at `start`.
    pub fn serve(&mut self, start: Instant, len: Bytes) -> Instant {
        let (mut at, mut left) = (start, self.rate.time_to_send(len));
        let Some(interruptions) = &mut self.interruptions else { return at + left };
        loop {
            interruptions.pass(at);
            if at >= interruptions.begins {
                at = interruptions.begins + interruptions.length;
                continue;
            }
            let until = interruptions.begins.since(at);
            if left <= until {
                return at + left;
            }
            left = left - until;
            at = interruptions.begins + interruptions.length;
        }
    }
    /// Bytes that can have been sent by `now`; never asked for an earlier time again.
    pub fn capacity(&mut self, now: Instant) -> u64 {
        let mut open = now.since(Instant::ZERO);
        if let Some(interruptions) = &mut self.interruptions {
            interruptions.pass(now);
            open = open.saturating_sub(interruptions.passed + now.since(interruptions.begins));
        }
        (u128::from(open.as_nanos()) * u128::from(self.rate.0) / 8_000_000_000) as u64
    }
}

impl Interruptions {
    fn distance(&mut self) -> Duration {
        Duration::from_secs_f64(self.stream.exponential(self.interval.as_secs_f64()))
    }
    /// Leaves those behind that are over at `now`.
    fn pass(&mut self, now: Instant) {
        while now >= self.begins + self.length {
            self.passed += self.length;
            self.begins = self.begins + self.length + self.distance();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sending_goes_on_after_an_interruption_and_the_capacity_is_what_can_be_sent() {
        let stream = Stream::new(1, "test");
        let ms = Duration::from_millis;
        let mut fixed = Fixed::interrupted(Rate(8_000_000), ms(50), ms(200), stream);
        let mut meter = fixed.clone();
        let begins = fixed.interruptions.as_ref().unwrap().begins;
        // 1000 bytes a millisecond: what would last until 10 ms into the interruption ends 10 ms after it.
        let start = begins.since(Instant::ZERO).saturating_sub(ms(30));
        let end = fixed.serve(Instant::ZERO + start, Bytes(40_000));
        assert_eq!(end, begins + ms(60));
        // Back to back for ten seconds: all of the capacity is used.
        let (mut at, mut sent) = (end, 0);
        while at < Instant::from_millis(10_000) {
            at = fixed.serve(at, Bytes(1_000));
            sent += 1_000;
        }
        let before = meter.capacity(end);
        assert_eq!(meter.capacity(at) - before, sent);
    }
}
