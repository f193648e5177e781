//! Traces of delivery opportunities in the format of mahimahi (R. Netravali et al., USENIX ATC 2015), and a
//! binary form of them.
//!
//! Each line is a time in milliseconds at which 1504 bytes can be sent: a packet of 1500 bytes and the four
//! bytes that mahimahi's TUN devices put before it, which count here too. A packet may use several
//! opportunities, and several queued packets may share one; an opportunity with an empty queue is lost. The
//! trace repeats after its last line, whose time is its length.

use crate::{Duration, Instant};
use std::fmt::Write;

/// Bytes of an opportunity, as in mahimahi.
pub const OPPORTUNITY_BYTES: u64 = 1504;
/// Latest time in a trace: a day. Chosen: longer than any published trace; bounds memory.
const LATEST_MS: u64 = 86_400_000;
/// Most different times of a trace. Chosen: 400 MB in memory; bounds it against a wrong file.
const MAX_RUNS: usize = 50_000_000;
/// First bytes of a trace in binary form, the last of which is the version. Chosen: no text begins so.
const MAGIC: &[u8; 8] = b"PLTRACE\x01";
/// Bytes of text above which [`Trace::to_file`] writes the binary form. Chosen: an editor opens the rest.
const TEXT_BYTES: u64 = 4_000_000;

/// The way to traces in other formats.
const IMPORT_HINT: &str =
    "; a file in another format becomes such a trace by: paceline trace import FILE --out FILE.trace";

/// Opportunities at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Time from the start of the trace, ms.
    pub at_ms: u32,
    /// Number of the trace's opportunities until then, these included.
    pub until: u32,
}

/// A trace: times of opportunities in milliseconds, in order. The last one is its length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// Their times rise.
    runs: Vec<Run>,
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
    /// If there is none, one is before its predecessor or after a day, or the last one is zero.
    pub fn new(at_ms: impl IntoIterator<Item = u32>) -> Result<Self, TraceError> {
        let mut trace = Self { runs: Vec::new() };
        for (index, at) in at_ms.into_iter().enumerate() {
            let line = Some(index + 1);
            trace.push(at, 1).map_err(|message| TraceError { line, message })?;
        }
        trace.finished()
    }
    /// Appends opportunities at one time.
    fn push(&mut self, at_ms: u32, count: u32) -> Result<(), String> {
        if u64::from(at_ms) > LATEST_MS {
            return Err(format!("{at_ms} ms: allowed: up to {LATEST_MS}, a day"));
        }
        let full = self.runs.len() == MAX_RUNS;
        let last = self.runs.last_mut();
        let until = last.as_ref().map_or(0, |run| run.until).checked_add(count);
        let until = until.ok_or_else(|| format!("more than {} opportunities", u32::MAX))?;
        match last {
            Some(run) if run.at_ms == at_ms => run.until = until,
            Some(run) if run.at_ms > at_ms => {
                return Err(format!("{at_ms} after {}: times must not decrease", run.at_ms));
            }
            _ if full => return Err(format!("more than {MAX_RUNS} different times")),
            _ => self.runs.push(Run { at_ms, until }),
        }
        Ok(())
    }
    fn finished(self) -> Result<Self, TraceError> {
        let whole = |message: &str| Err(TraceError { line: None, message: message.into() });
        match self.runs.last() {
            None => whole("holds no opportunity; a trace has a time in milliseconds on every line"),
            Some(Run { at_ms: 0, .. }) => {
                whole("ends at 0 ms; the last time is the length of the trace and must be above 0")
            }
            Some(_) => Ok(self),
        }
    }
    /// Whether a file is a trace in binary form.
    pub fn is_binary(file: &[u8]) -> bool {
        file.starts_with(MAGIC)
    }
    /// Reads a file: mahimahi's format or the binary form.
    ///
    /// # Errors
    /// As [`Trace::parse`]; if the binary form is damaged.
    pub fn read(file: &[u8]) -> Result<Self, TraceError> {
        if let Some(binary) = file.strip_prefix(MAGIC) {
            return Self::parse_binary(binary);
        }
        let text = str::from_utf8(file).map_err(|_| TraceError {
            line: None,
            message: format!("not a text file in UTF-8{IMPORT_HINT}"),
        })?;
        Self::parse(text)
    }
    /// Reads mahimahi's format.
    ///
    /// # Errors
    /// If a line is not a time, or is empty, which mahimahi refuses too; as [`Trace::new`].
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut trace = Self { runs: Vec::new() };
        for (index, line) in text.lines().enumerate() {
            let bad = |message: String| TraceError { line: Some(index + 1), message };
            let value: Option<u32> = line.trim().parse().ok().filter(|at| u64::from(*at) <= LATEST_MS);
            let value = value.ok_or_else(|| {
                let shown: String = line.trim().chars().take(40).collect();
                let what = "a whole number of milliseconds, 0 to 86400000, and nothing else";
                bad(format!("`{shown}` is not {what}{IMPORT_HINT}"))
            })?;
            trace.push(value, 1).map_err(bad)?;
        }
        trace.finished()
    }
    /// Text in this format.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.count_all() as usize * 6);
        for at in self.at_ms() {
            let _ = writeln!(text, "{at}");
        }
        text
    }
    /// The file of the trace: text, or the binary form if the text would be longer than 4 MB.
    pub fn to_file(&self) -> Vec<u8> {
        let digits = u64::from(self.runs[self.runs.len() - 1].at_ms.ilog10()) + 1;
        if self.count_all() * (digits + 1) <= TEXT_BYTES { self.to_text().into() } else { self.to_binary() }
    }
    /// The binary form: eight bytes, the number of different times, and for each the milliseconds since the
    /// one before and the number of its opportunities, all as LEB128.
    pub fn to_binary(&self) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        let mut write = |mut value: u64| {
            while value >= 0x80 {
                file.push(value as u8 | 0x80);
                value >>= 7;
            }
            file.push(value as u8);
        };
        write(self.runs.len() as u64);
        let mut before = Run { at_ms: 0, until: 0 };
        for run in &self.runs {
            write(u64::from(run.at_ms - before.at_ms));
            write(u64::from(run.until - before.until));
            before = *run;
        }
        file
    }
    fn parse_binary(mut rest: &[u8]) -> Result<Self, TraceError> {
        let bad = |message: &str| TraceError { line: None, message: format!("binary trace: {message}") };
        let mut read = || {
            let mut value = 0u64;
            for shift in (0..35).step_by(7) {
                let (byte, after) = rest.split_first()?;
                rest = after;
                value |= u64::from(byte & 0x7f) << shift;
                if byte & 0x80 == 0 {
                    return u32::try_from(value).ok();
                }
            }
            None
        };
        let cut = || bad("the file is cut off or damaged");
        let mut trace = Self { runs: Vec::new() };
        let mut at_ms = 0u32;
        for _ in 0..read().ok_or_else(cut)? {
            let (step, count) = (read().ok_or_else(cut)?, read().filter(|count| *count > 0).ok_or_else(cut)?);
            at_ms = at_ms.checked_add(step).ok_or_else(cut)?;
            trace.push(at_ms, count).map_err(|message| bad(&message))?;
        }
        if rest.is_empty() { trace.finished() } else { Err(cut()) }
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
        let (mut trace, mut bytes) = (Self { runs: Vec::new() }, 0);
        let error = |message| TraceError { line: None, message };
        let in_ms = |ns: u64| u32::try_from(ns.div_ceil(1_000_000)).unwrap_or(u32::MAX);
        for (at, len) in delivered {
            bytes += len;
            let count = bytes / OPPORTUNITY_BYTES;
            bytes %= OPPORTUNITY_BYTES;
            if count > 0 {
                trace.push(in_ms(at.as_nanos()), count.min(u64::from(u32::MAX)) as u32).map_err(error)?;
            }
        }
        let length = in_ms(length.as_nanos());
        if trace.runs.last().is_some_and(|last| last.at_ms < length) {
            trace.push(length, 1).map_err(error)?;
        }
        trace.finished()
    }
    /// Times of the opportunities, ms.
    pub fn at_ms(&self) -> impl Iterator<Item = u32> + '_ {
        self.per_time().flat_map(|(at_ms, count)| std::iter::repeat_n(at_ms, count as usize))
    }
    /// The different times, ms, and the number of opportunities at each.
    pub fn per_time(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut before = 0;
        self.runs.iter().map(move |run| {
            let count = run.until - before;
            before = run.until;
            (run.at_ms, count)
        })
    }
    /// The times with their opportunities.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }
    /// Number of opportunities.
    pub fn count_all(&self) -> u64 {
        u64::from(self.runs[self.runs.len() - 1].until)
    }
    /// Length, ms.
    pub fn length_ms(&self) -> u64 {
        u64::from(self.runs[self.runs.len() - 1].at_ms)
    }
    /// Mean rate, b/s.
    pub fn rate(&self) -> f64 {
        self.count_all() as f64 * OPPORTUNITY_BYTES as f64 * 8000.0 / self.length_ms() as f64
    }
    /// Number of opportunities up to and including `now`, over all repetitions.
    pub fn count(&self, now: Instant) -> u64 {
        let (rounds, rest) = (now.as_millis() / self.length_ms(), now.as_millis() % self.length_ms());
        // The last opportunity of a repetition is at time zero of the next one.
        let runs = self.runs.partition_point(|run| u64::from(run.at_ms) <= rest);
        let within = runs.checked_sub(1).map_or(0, |index| self.runs[index].until);
        rounds * self.count_all() + u64::from(within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }
    #[test]
    fn opportunities_are_counted_over_repetitions() {
        let trace = Trace::new(vec![0, 2, 2, 5]).unwrap();
        let counts = [0, 1, 2, 4, 5, 7, 10].map(|at| trace.count(ms(at)));
        assert_eq!(counts, [1, 1, 3, 3, 5, 7, 9]);
        assert!((Trace::new(vec![1, 2, 3, 4]).unwrap().rate() - 1504.0 * 8000.0).abs() < 1e-6);
    }

    #[test]
    fn traces_survive_writing_and_reading_and_errors_name_the_line() {
        let trace = Trace::parse("0\n1\r\n1\n 7 \n").unwrap();
        assert!(trace.at_ms().eq([0, 1, 1, 7]));
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
    fn other_formats_are_answered_with_the_command_that_imports_them() {
        let columns = ["0.0\t3.2\n0.5\t4.1\n", "0 3\n1 4\n", "time,mbps\n0,3.5\n1,4\n", " 1.5;2\n"];
        for text in columns.into_iter().chain(["x\n1\n2\n", "2.5\n3.5\n", "1\n2\n3 4\n"]) {
            let error = Trace::parse(text).expect_err(text);
            assert!(error.message.contains("paceline trace import"), "{error}");
        }
        assert!(Trace::read(b"\x1f\x8b\x08\xff").unwrap_err().message.contains("paceline trace import"));
    }

    #[test]
    fn the_binary_form_is_small_and_damage_is_found() {
        // 10 Gb/s for two seconds: 832 or so opportunities in each millisecond.
        let fast = Trace::constant(10_000_000_000).unwrap();
        for trace in [fast, Trace::new([0, 0, 5, 300_000, 86_400_000]).unwrap()] {
            let file = trace.to_binary();
            assert!(file.len() < 5 * trace.runs.len() + 20);
            assert_eq!(Trace::read(&file).as_ref(), Ok(&trace));
            for len in 8..file.len() {
                assert!(Trace::read(&file[..len]).is_err(), "{len}");
            }
            assert!(Trace::read(&[&file[..], &[0]].concat()).is_err());
        }
        let longer_than_text = Trace::constant(1_000_000_000).unwrap();
        assert!(longer_than_text.to_file().starts_with(b"1\n"));
        let length = Duration::from_secs(100);
        let minute = (1..=100_000).map(|at| (ms(at), 100 * OPPORTUNITY_BYTES));
        let long = Trace::of_deliveries(minute, length).unwrap();
        assert!(long.to_file().starts_with(MAGIC) && long.to_file().len() < 300_000);
        let damaged = [&MAGIC[..], &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 1]].concat();
        assert!(Trace::read(&damaged).is_err());
    }

    #[test]
    fn a_constant_trace_has_its_rate_and_even_intervals() {
        for rate in [2_000_000, 12_032_000, 20_000_000, 7_777_777, 100_000] {
            let trace = Trace::constant(rate).unwrap();
            assert!((trace.rate() / rate as f64 - 1.0).abs() < 1.2e-1_f64.min(1.3e4 / rate as f64), "{rate}");
            assert!(trace.length_ms().is_multiple_of(1000));
            let at_ms: Vec<u32> = trace.at_ms().collect();
            let apart = at_ms.windows(2).map(|pair| pair[1] - pair[0]);
            let (low, high) = apart.fold((u32::MAX, 0), |(l, h), d| (l.min(d), h.max(d)));
            assert!(high - low <= 1 + (trace.length_ms() as u32 / 100), "{rate}: {low} to {high} ms");
        }
        assert!(Trace::constant(100).is_err());
    }

    #[test]
    fn deliveries_give_an_opportunity_per_1504_bytes() {
        let delivered = [(ms(1), 1000), (Instant::from_nanos(2_000_001), 504), (ms(4), 4512)];
        let trace = Trace::of_deliveries(delivered, Duration::from_millis(9)).unwrap();
        assert!(trace.at_ms().eq([3, 4, 4, 4, 9]));
        assert!(Trace::of_deliveries([(ms(1), 100)], Duration::from_millis(9)).is_err());
    }
}
