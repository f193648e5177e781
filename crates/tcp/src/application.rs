//! The applications above an endpoint: a writer that writes at once or in pieces, and a reader that reads at
//! once or at a rate.

use crate::config::Source;
use paceline_net::{Bytes, Duration, Instant, Rate};

/// The sending application.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    /// Bytes written so far; `u64::MAX` for a source without end.
    written: u64,
    total: u64,
    piece: u64,
    interval: Duration,
    next_at: Option<Instant>,
    /// Payload of the peer after which the writer starts; zero once it has arrived.
    request: u64,
    /// The first piece is written after the last segment of the handshake has left, not together with it.
    starts_late: bool,
}

impl Writer {
    /// A writer that starts when the connection is established, or when `request` bytes of the peer have
    /// arrived.
    pub fn new(source: Source, request: Bytes) -> Self {
        let (piece, interval) = match source {
            Source::Chunks { size, interval, .. } => (size.0, interval),
            Source::Request(size) => (size.0, Duration::ZERO),
            _ => (0, Duration::ZERO),
        };
        let total = source.total();
        let later = piece > 0 || source == Source::Relay || request > Bytes::ZERO;
        let written = if later { 0 } else { total };
        let starts_late = matches!(source, Source::Request(_));
        Self { written, total, piece, interval, next_at: None, request: request.0, starts_late }
    }
    /// The connection is established: writes the first piece.
    pub fn start(&mut self, now: Instant) {
        if self.request == 0 && self.written < self.total && self.piece > 0 {
            self.next_at = Some(now);
            if !self.starts_late {
                self.on_timer(now);
            }
        }
    }
    /// The peer's bytes up to `readable` have arrived: an answer begins when the request is complete.
    pub fn on_readable(&mut self, now: Instant, readable: u64) {
        if self.request == 0 || readable < self.request {
            return;
        }
        self.request = 0;
        if self.piece > 0 {
            self.start(now);
        } else {
            self.written = self.total;
        }
    }
    /// A relay has written up to `offset`; with `end`, that is all of its data.
    pub fn write_to(&mut self, offset: u64, end: bool) {
        self.written = self.written.max(offset).min(self.total);
        if end {
            self.total = self.total.min(self.written);
        }
    }
    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }
    /// Total bytes; `u64::MAX` for no end.
    pub fn total(&self) -> u64 {
        self.total
    }
    /// The time of the next piece.
    pub fn deadline(&self) -> Option<Instant> {
        self.next_at
    }
    /// Writes the pieces that are due.
    pub fn on_timer(&mut self, now: Instant) {
        while let Some(at) = self.next_at.filter(|at| *at <= now) {
            self.written = self.written.saturating_add(self.piece).min(self.total);
            let more = self.written < self.total;
            self.next_at = more.then(|| at + self.interval.max(Duration::from_nanos(1)));
        }
    }
}

/// The receiving application.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    rate: Option<Rate>,
    read: u64,
    next_at: Option<Instant>,
    /// Largest number of bytes per read: a full segment.
    piece: u64,
    /// Offset up to which a relay allows reading.
    allowed: u64,
}

impl Reader {
    /// A reader that reads at `rate`, a full segment of `piece` bytes at a time; without a rate, all at once.
    pub fn new(rate: Option<Rate>, piece: u32) -> Self {
        Self { rate, read: 0, next_at: None, piece: u64::from(piece.max(1)), allowed: u64::MAX }
    }
    /// Sets the offset up to which a relay allows reading.
    pub fn allow(&mut self, offset: u64) {
        self.allowed = offset;
    }
    /// Bytes read so far.
    pub fn read(&self) -> u64 {
        self.read
    }
    /// Bytes up to `readable` have arrived in order.
    pub fn on_readable(&mut self, now: Instant, readable: u64) {
        match self.rate {
            None => self.read = self.read.max(readable.min(self.allowed)),
            Some(rate) if readable > self.read && self.next_at.is_none() => {
                self.next_at = Some(now + rate.time_to_send(Bytes(self.piece.min(readable - self.read))));
            }
            Some(_) => {}
        }
    }
    /// The time of the next read.
    pub fn deadline(&self) -> Option<Instant> {
        self.next_at
    }
    /// Performs the reads that are due; returns whether there was any.
    pub fn on_timer(&mut self, now: Instant, readable: u64) -> bool {
        let mut any = false;
        while let (Some(at), Some(rate)) = (self.next_at.filter(|at| *at <= now), self.rate) {
            self.read = self.read.max(readable.min(self.read + self.piece));
            any = true;
            let left = self.piece.min(readable.saturating_sub(self.read));
            self.next_at = (left > 0).then(|| at + rate.time_to_send(Bytes(left)));
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn pieces_are_written_at_their_times() {
        let source = Source::Chunks { size: Bytes(100), interval: Duration::from_millis(10), count: 3 };
        let mut writer = Writer::new(source, Bytes::ZERO);
        assert_eq!((writer.written(), writer.total(), writer.deadline()), (0, 300, None));
        writer.start(MS(5));
        assert_eq!((writer.written(), writer.deadline()), (100, Some(MS(15))));
        writer.on_timer(MS(14));
        assert_eq!(writer.written(), 100);
        writer.on_timer(MS(25));
        assert_eq!((writer.written(), writer.deadline()), (300, None));
    }

    #[test]
    fn an_answer_begins_when_the_request_is_complete() {
        let chunks = Source::Chunks { size: Bytes(100), interval: Duration::from_millis(10), count: 3 };
        for (source, first) in [(Source::File(Bytes(300)), 300), (chunks, 100)] {
            let mut writer = Writer::new(source, Bytes(200));
            writer.start(MS(5));
            writer.on_readable(MS(6), 199);
            assert_eq!((writer.written(), writer.total(), writer.deadline()), (0, 300, None));
            writer.on_readable(MS(7), 200);
            assert_eq!(writer.written(), first);
            writer.on_readable(MS(8), 400);
            assert_eq!(writer.written(), first, "an answer is given once");
            writer.on_timer(MS(27));
            assert_eq!(writer.written(), 300);
        }
    }

    #[test]
    fn a_slow_reader_takes_a_segment_at_a_time() {
        let mut reader = Reader::new(Some(Rate(8_000_000)), 1000); // a segment each millisecond
        reader.on_readable(MS(0), 2500);
        assert_eq!((reader.read(), reader.deadline()), (0, Some(MS(1))));
        assert!(!reader.on_timer(MS(0), 2500));
        assert!(reader.on_timer(MS(2), 2500));
        assert_eq!(reader.read(), 2000);
        // The remaining half segment takes half as long.
        assert_eq!(reader.deadline(), Some(Instant::from_nanos(2_500_000)));
        assert!(reader.on_timer(MS(3), 2500));
        assert_eq!((reader.read(), reader.deadline()), (2500, None));
        let mut fast = Reader::new(None, 1000);
        fast.on_readable(MS(0), 2500);
        assert_eq!((fast.read(), fast.deadline()), (2500, None));
    }
}
