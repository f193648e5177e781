//! A service of constant rate, with interruptions such as handovers cause.
//!
//! A packet that is being sent when an interruption begins continues after it. The frame time of a `fixed`
//! link is in the pipe, since it delays packets that have been sent.

use paceline_net::{Bytes, Duration, Instant, Rate, Stream};

/// A service of constant rate.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    rate: Rate,
    interruptions: Option<Interruptions>,
}

/// Random interruptions of fixed length, read in order of time.
#[derive(Clone, Debug)]
struct Interruptions {
    length: Duration,
    interval: Duration,
    stream: Stream,
    /// Start of the present or next interruption.
    begins: Instant,
    /// Sum of the lengths of past interruptions.
    past: Duration,
}

impl Fixed {
    /// A rate without interruptions.
    pub fn new(rate: Rate) -> Self {
        Self { rate, interruptions: None }
    }
    /// A rate with interruptions of `length`; the times between them are exponential with mean `interval`.
    pub fn interrupted(rate: Rate, length: Duration, interval: Duration, stream: Stream) -> Self {
        if length.is_zero() {
            return Self::new(rate);
        }
        let (begins, past) = (Instant::ZERO, Duration::ZERO);
        let mut interruptions = Interruptions { length, interval, stream, begins, past };
        interruptions.begins = Instant::ZERO + interruptions.draw_interval();
        Self { rate, interruptions: Some(interruptions) }
    }
    /// Time at which `len` bytes have been sent that may be sent from `start` on.
    pub fn serve(&mut self, start: Instant, len: Bytes) -> Instant {
        let (mut at, mut left) = (start, self.rate.time_to_send(len));
        let Some(interruptions) = &mut self.interruptions else { return at + left };
        loop {
            interruptions.advance(at);
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
    /// Time from `start` on at which a packet can begin to be sent.
    pub fn opens_at(&mut self, start: Instant) -> Instant {
        let Some(interruptions) = &mut self.interruptions else { return start };
        interruptions.advance(start);
        if start < interruptions.begins { start } else { interruptions.begins + interruptions.length }
    }
    /// Bytes that could have been sent by `now`. `now` must not decrease from call to call.
    pub fn capacity(&mut self, now: Instant) -> u64 {
        let mut open = now.since(Instant::ZERO);
        if let Some(interruptions) = &mut self.interruptions {
            interruptions.advance(now);
            open = open.saturating_sub(interruptions.past + now.since(interruptions.begins));
        }
        (u128::from(open.as_nanos()) * u128::from(self.rate.0) / 8_000_000_000) as u64
    }
}

impl Interruptions {
    fn draw_interval(&mut self) -> Duration {
        Duration::from_secs_f64(self.stream.exponential(self.interval.as_secs_f64()))
    }
    /// Advances to the interruption that is present or next at `now`.
    fn advance(&mut self, now: Instant) {
        while now >= self.begins + self.length {
            self.past += self.length;
            self.begins = self.begins + self.length + self.draw_interval();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sending_continues_after_an_interruption_and_back_to_back_packets_use_the_whole_capacity() {
        let stream = Stream::new(1, "test");
        let ms = Duration::from_millis;
        let mut fixed = Fixed::interrupted(Rate(8_000_000), ms(50), ms(200), stream);
        let mut meter = fixed.clone();
        let begins = fixed.interruptions.as_ref().unwrap().begins;
        // 1000 bytes per ms: sending that would end 10 ms into the interruption ends 10 ms after it.
        let start = begins.since(Instant::ZERO).saturating_sub(ms(30));
        let end = fixed.serve(Instant::ZERO + start, Bytes(40_000));
        assert_eq!(end, begins + ms(60));
        // Back-to-back packets for ten seconds use all of the capacity.
        let (mut at, mut sent) = (end, 0);
        while at < Instant::from_millis(10_000) {
            at = fixed.serve(at, Bytes(1_000));
            sent += 1_000;
        }
        let before = meter.capacity(end);
        assert_eq!(meter.capacity(at) - before, sent);
    }
}
