//! Traces of delivery opportunities in the format of mahimahi (R. Netravali et al., USENIX ATC 2015), and the
//! service of a link that follows one.
//!
//! Each line is a time in milliseconds at which 1504 bytes can be sent: a packet of 1500 bytes and the four
//! bytes that mahimahi's TUN devices put before it, which count here too. A packet may use several
//! opportunities, and several queued packets may share one; an opportunity with an empty queue is lost. The
//! trace repeats after its last line, whose time is its length.

use paceline_net::{Bytes, Duration, Instant};
use std::fmt::Write;
use std::sync::Arc;

/// Bytes of an opportunity, as in mahimahi.
pub const OPPORTUNITY_BYTES: u64 = 1504;
/// Bytes that Linux puts before each packet of a TUN device (`struct tun_pi`); mahimahi counts them.
pub const PACKET_INFORMATION_BYTES: u64 = 4;
/// Latest time in a trace: a day. Chosen: longer than any published trace; bounds memory.
const LATEST_MS: u64 = 86_400_000;
/// Most lines of a trace. Chosen: 200 MB in memory; bounds it against a wrong file.
const MAX_LINES: usize = 50_000_000;

/// Conversion of the traces of rate adaptation: rows of a time in seconds and the rate from then on in Mb/s.
/// Mb/s times 125 are bytes per millisecond.
const COLUMNS_HINT: &str = "; a file with columns of seconds and Mb/s becomes such a trace by: \
    awk -F'[ ,;\\t]+' '{ sub(/^[ \\t]+/, \"\") } $1 + 0 == $1 { if (s == \"\") s = $1; \
    for (; t < 1000 * ($1 - s); t++) for (b += 125 * r; b >= 1504; b -= 1504) print t + 1; r = $2 }' \
    FILE > FILE.trace";

/// Whether the first or, after a heading, the second line has several numbers.
fn has_columns(text: &str) -> bool {
    let several = |line: &str| {
        let mut fields = line.split([' ', ',', ';', '\t']).filter(|field| !field.is_empty());
        fields.next().is_some_and(|field| field.trim().parse::<f64>().is_ok())
            && fields.next().is_some_and(|field| field.trim().parse::<f64>().is_ok())
    };
    text.lines().take(2).any(several)
}

/// A trace: times of opportunities in milliseconds, in order. The last one is its length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    at_ms: Vec<u32>,
}

/// Error in a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// Line from 1; none if the error is in no single line.
    pub line: Option<usize>,
    /// The error, and the allowed values.
    pub message: String,
}

impl std::fmt::Display for TraceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl Trace {
    /// A trace of these times in milliseconds.
    ///
    /// # Errors
    /// If there is none, one is before its predecessor, or the last one is zero.
    pub fn new(at_ms: Vec<u32>) -> Result<Self, TraceError> {
        let whole = |message: &str| TraceError { line: None, message: message.into() };
        if at_ms.is_empty() {
            return Err(whole("holds no opportunity; a trace has a time in milliseconds on every line"));
        }
        if let Some(index) = at_ms.windows(2).position(|pair| pair[1] < pair[0]) {
            let (was, is) = (at_ms[index], at_ms[index + 1]);
            let message = format!("{is} after {was}: times must not decrease");
            return Err(TraceError { line: Some(index + 2), message });
        }
        if at_ms.last() == Some(&0) {
            return Err(whole("ends at 0 ms; the last time is the length of the trace and must be above 0"));
        }
        Ok(Self { at_ms })
    }
    /// Reads mahimahi's format.
    ///
    /// # Errors
    /// If a line is not a time, or is empty, which mahimahi refuses too; as [`Trace::new`].
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut at_ms = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let bad = |message: String| TraceError { line: Some(index + 1), message };
            let shown: String = line.trim().chars().take(40).collect();
            let what = "a whole number of milliseconds, 0 to 86400000, and nothing else";
            let value: u64 = line.trim().parse().map_err(|_| {
                let hint = if has_columns(text) { COLUMNS_HINT } else { "" };
                bad(format!("`{shown}` is not {what}{hint}"))
            })?;
            if value > LATEST_MS {
                return Err(bad(format!("`{shown}` is not {what}")));
            }
            if at_ms.len() == MAX_LINES {
                return Err(bad(format!("more than {MAX_LINES} lines")));
            }
            if at_ms.last().is_some_and(|last| value < u64::from(*last)) {
                return Err(bad(format!("{value} after {}: times must not decrease", at_ms[index - 1])));
            }
            at_ms.push(value as u32);
        }
        Self::new(at_ms)
    }
    /// Text in this format.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.at_ms.len() * 6);
        for at in &self.at_ms {
            let _ = writeln!(text, "{at}");
        }
        text
    }
    /// A trace of a constant rate in b/s: opportunity n is in the millisecond in which its last byte would be
    /// sent. The trace is as many whole seconds long as make its rate exact to a thousandth, at most ten.
    ///
    /// # Errors
    /// If the rate is less than one opportunity in ten seconds.
    pub fn constant(rate: u64) -> Result<Self, TraceError> {
        let bits = OPPORTUNITY_BYTES * 8;
        let error = |seconds: u64| {
            let count = rate * seconds / bits;
            (rate * seconds - count * bits) as f64 / (rate * seconds) as f64
        };
        let seconds = (1..=10).find(|s| rate * s / bits > 0 && error(*s) < 1e-3).unwrap_or(10);
        let count = rate * seconds / bits;
        let at = (1..=count).map(|n| (n * bits * 1000).div_ceil(rate) as u32);
        let mut at: Vec<u32> = at.collect();
        // The last line is the length of the trace.
        if let Some(last) = at.last_mut() {
            *last = (seconds * 1000) as u32;
        }
        Self::new(at).map_err(|_| TraceError {
            line: None,
            message: format!("{rate} b/s is less than an opportunity in ten seconds, {} b/s", bits / 10),
        })
    }
    /// A trace from measured deliveries, times and bytes in order: one opportunity per 1504 bytes. If none is
    /// at `length`, one is added there, since the last line is the length of the trace.
    ///
    /// # Errors
    /// If fewer than 1504 bytes were delivered.
    pub fn of_deliveries(
        delivered: impl IntoIterator<Item = (Instant, u64)>,
        length: Duration,
    ) -> Result<Self, TraceError> {
        let (mut at_ms, mut bytes) = (Vec::new(), 0);
        for (at, len) in delivered {
            bytes += len;
            while bytes >= OPPORTUNITY_BYTES {
                bytes -= OPPORTUNITY_BYTES;
                at_ms.push(at.as_nanos().div_ceil(1_000_000) as u32);
            }
        }
        let length = length.as_nanos().div_ceil(1_000_000) as u32;
        if at_ms.last().is_some_and(|last| *last < length) {
            at_ms.push(length);
        }
        Self::new(at_ms)
    }
    /// Times of the opportunities, ms.
    pub fn at_ms(&self) -> &[u32] {
        &self.at_ms
    }
    /// Length, ms.
    pub fn length_ms(&self) -> u64 {
        u64::from(self.at_ms[self.at_ms.len() - 1])
    }
    /// Mean rate, b/s.
    pub fn rate(&self) -> f64 {
        self.at_ms.len() as f64 * OPPORTUNITY_BYTES as f64 * 8000.0 / self.length_ms() as f64
    }
    /// Number of opportunities up to and including `now`, over all repetitions.
    pub fn count(&self, now: Instant) -> u64 {
        let (rounds, rest) = (now.as_millis() / self.length_ms(), now.as_millis() % self.length_ms());
        // The last opportunity of a repetition is at time zero of the next one.
        rounds * self.at_ms.len() as u64 + self.at_ms.partition_point(|at| u64::from(*at) <= rest) as u64
    }
}

/// A service that follows a trace.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    trace: Arc<Trace>,
    next: usize,
    /// Start of the present repetition, ms.
    base_ms: u64,
    /// Time of the opportunity in use, and its unused bytes.
    at: Instant,
    left: u64,
}

impl Opportunities {
    /// A service at the beginning of a trace.
    pub fn new(trace: Arc<Trace>) -> Self {
        Self { trace, next: 0, base_ms: 0, at: Instant::ZERO, left: 0 }
    }
    /// Times at which the first and the last byte of a packet are sent that is at the head of the queue from
    /// `start` on. Unused bytes of the present opportunity are for packets that were queued (`waited`) at its
    /// time.
    pub fn serve(&mut self, start: Instant, len: Bytes, waited: bool) -> (Instant, Instant) {
        if !waited {
            self.left = 0;
            while self.next_at() <= start {
                self.advance();
            }
        }
        let (mut need, mut begins) = (len.0 + PACKET_INFORMATION_BYTES, None);
        loop {
            if self.left == 0 {
                self.at = self.next_at();
                self.left = OPPORTUNITY_BYTES;
                self.advance();
            }
            let begins = *begins.get_or_insert(self.at);
            let sent = self.left.min(need);
            self.left -= sent;
            need -= sent;
            if need == 0 {
                return (begins, self.at);
            }
        }
    }
    /// Bytes that could have been sent by `now`.
    pub fn capacity(&self, now: Instant) -> u64 {
        self.trace.count(now) * OPPORTUNITY_BYTES
    }
    fn next_at(&self) -> Instant {
        Instant::from_millis(self.base_ms + u64::from(self.trace.at_ms[self.next]))
    }
    fn advance(&mut self) {
        self.next += 1;
        if self.next == self.trace.at_ms.len() {
            self.next = 0;
            self.base_ms += self.trace.length_ms();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }
    fn follow(at_ms: &[u32]) -> Opportunities {
        Opportunities::new(Arc::new(Trace::new(at_ms.to_vec()).unwrap()))
    }
    fn left(at: u64) -> (Instant, Instant) {
        (ms(at), ms(at))
    }

    #[test]
    fn full_packets_take_an_opportunity_each_across_the_end_of_the_file() {
        let mut link = follow(&[2, 2, 5, 10]);
        let full = Bytes(1500);
        assert_eq!(link.serve(ms(0), full, false), left(2));
        for at in [2, 5, 10, 12, 12, 15, 20, 22] {
            assert_eq!(link.serve(ms(0), full, true), left(at));
        }
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_span_several() {
        let mut link = follow(&[3, 6, 9]);
        // 496 + 4 bytes each: three packets fit into the first opportunity, and 4 bytes of the fourth.
        for at in [left(3), left(3), left(3), (ms(3), ms(6))] {
            assert_eq!(link.serve(ms(0), Bytes(496), at != left(3) || link.next != 0), at);
        }
        // 1008 bytes are left of 6 ms: 1000 + 4 of this packet fit, and 4 of the next, whose other 1492 use 9
        // ms.
        assert_eq!(link.serve(ms(0), Bytes(1000), true), left(6));
        assert_eq!(link.serve(ms(0), Bytes(1492), true), (ms(6), ms(9)));
        // A jumbo frame uses the last 12 bytes of 9 ms, all of 12 and 15 ms, and a part of 18 ms.
        assert_eq!(link.serve(ms(0), Bytes(3500), true), (ms(9), ms(18)));
    }

    #[test]
    fn opportunities_with_an_empty_queue_are_lost() {
        let mut link = follow(&[3, 3, 6]);
        assert_eq!(link.serve(ms(0), Bytes(100), false), left(3));
        // This packet came after the first one was sent: the rest of that opportunity and the second one at 3
        // ms are lost.
        assert_eq!(link.serve(ms(3), Bytes(100), false), left(6));
        // Arrivals just before an opportunity and exactly at one: at equal times the opportunity is first.
        let mut link = follow(&[3, 6]);
        assert_eq!(link.serve(Instant::from_nanos(2_999_999), Bytes(100), false), left(3));
        assert_eq!(link.serve(ms(6), Bytes(100), false), left(9));
    }

    #[test]
    fn opportunities_are_counted_over_repetitions() {
        let trace = Trace::new(vec![0, 2, 2, 5]).unwrap();
        let counts = [0, 1, 2, 4, 5, 7, 10].map(|at| trace.count(ms(at)));
        assert_eq!(counts, [1, 1, 3, 3, 5, 7, 9]);
        let mut link = follow(&[0, 2, 2, 5]);
        let served =
            (0..).map_while(|n| Some(link.serve(ms(0), Bytes(1500), n > 0).1).filter(|at| *at <= ms(10)));
        assert_eq!(served.count(), 8, "all but the one at time 0, before any packet");
        assert!((Trace::new(vec![1, 2, 3, 4]).unwrap().rate() - 1504.0 * 8000.0).abs() < 1e-6);
    }

    #[test]
    fn traces_survive_writing_and_reading_and_errors_name_the_line() {
        let trace = Trace::parse("0\n1\r\n1\n 7 \n").unwrap();
        assert_eq!(trace.at_ms(), [0, 1, 1, 7]);
        assert_eq!(Trace::parse(&trace.to_text()), Ok(trace));
        for (text, line, part) in [
            ("", None, "no opportunity"),
            ("0\n0\n", None, "above 0"),
            ("1\n2\nx\n", Some(3), "`x` is not a whole number"),
            ("1\n\n2\n", Some(2), "`` is not"),
            ("1\n-2\n", Some(2), "`-2`"),
            ("1\n2.5\n", Some(2), "`2.5`"),
            ("5\n9\n8\n", Some(3), "8 after 9"),
            ("86400001\n", Some(1), "86400000"),
            ("99999999999999999999999\n", Some(1), "not a whole number"),
        ] {
            let error = Trace::parse(text).expect_err(text);
            assert_eq!(error.line, line, "{text:?}: {error}");
            assert!(error.message.contains(part), "{text:?}: {error}");
        }
    }

    #[test]
    fn columns_of_seconds_and_rates_are_answered_with_the_conversion() {
        for text in ["0.0\t3.2\n0.5\t4.1\n", "0 3\n1 4\n", "time,mbps\n0,3.5\n1,4\n", " 1.5;2\n"] {
            let error = Trace::parse(text).expect_err(text);
            assert!(error.message.contains("columns of seconds and Mb/s"), "{error}");
        }
        for text in ["x\n1\n2\n", "2.5\n3.5\n", "1\n2\n3 4\n"] {
            assert!(!Trace::parse(text).expect_err(text).message.contains("columns"), "{text:?}");
        }
    }

    #[test]
    fn a_constant_trace_has_its_rate_and_even_intervals() {
        for rate in [2_000_000, 12_032_000, 20_000_000, 7_777_777, 100_000] {
            let trace = Trace::constant(rate).unwrap();
            assert!((trace.rate() / rate as f64 - 1.0).abs() < 1.2e-1_f64.min(1.3e4 / rate as f64), "{rate}");
            assert!(trace.length_ms().is_multiple_of(1000));
            let apart = trace.at_ms().windows(2).map(|pair| pair[1] - pair[0]);
            let (low, high) = apart.fold((u32::MAX, 0), |(l, h), d| (l.min(d), h.max(d)));
            assert!(high - low <= 1 + (trace.length_ms() as u32 / 100), "{rate}: {low} to {high} ms");
        }
        assert!(Trace::constant(100).is_err());
    }

    #[test]
    fn deliveries_give_an_opportunity_per_1504_bytes() {
        let delivered = [(ms(1), 1000), (Instant::from_nanos(2_000_001), 504), (ms(4), 4512)];
        let trace = Trace::of_deliveries(delivered, Duration::from_millis(9)).unwrap();
        assert_eq!(trace.at_ms(), [3, 4, 4, 4, 9]);
        assert!(Trace::of_deliveries([(ms(1), 100)], Duration::from_millis(9)).is_err());
    }
}
