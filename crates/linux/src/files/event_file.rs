//! Files of event traces: a line of JSON on the trace, then one for each event.

use super::size_limit::SizeLimit;
use anyhow::Context;
use nix::time::{ClockId, clock_gettime};
use paceline_net::Bytes;
use paceline_net::event_trace::Record;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// The first line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Header<O> {
    format: &'static str,
    /// Version of the format. It changes with every change that a reader has to follow.
    format_version: u32,
    paceline: O,
    time_unit: &'static str,
    /// The traced program and its input.
    #[serde(flatten)]
    pub source: Source,
}

/// A traced program and its input.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum Source {
    /// A simulation.
    Simulated {
        /// Name of the scenario.
        scenario: String,
        /// Seed of the random streams.
        seed: u64,
    },
    /// An emulation.
    Emulated {
        /// Name of the scenario.
        scenario: String,
        /// Seed of the random streams.
        seed: u64,
    },
    /// A gateway.
    Gateway {
        /// Address of the device.
        device: String,
        /// Time 0 of the events, in ms since 1970.
        started_unix_ms: f64,
    },
}

impl Source {
    /// A gateway's device, from now on.
    pub fn gateway(device: IpAddr) -> Self {
        let time = clock_gettime(ClockId::CLOCK_REALTIME).expect("Linux has a real-time clock");
        let started_unix_ms = time.tv_sec() as f64 * 1e3 + time.tv_nsec() as f64 / 1e6;
        Self::Gateway { device: device.to_string(), started_unix_ms }
    }
}

impl<O> Header<O> {
    /// The first line of a trace by a program of this origin.
    pub fn new(paceline: O, source: Source) -> Self {
        Self { format: "paceline-events", format_version: 1, paceline, time_unit: "ms", source }
    }
}

/// A trace that is being written.
#[derive(Clone)]
pub struct EventFile(Arc<Mutex<Inner>>);

struct Inner {
    writer: BufWriter<File>,
    size: SizeLimit,
    error: Option<anyhow::Error>,
}

impl EventFile {
    /// Makes a file, with the size at which it ends.
    pub fn create(path: &Path, header: &impl Serialize, limit: Option<Bytes>) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let size = SizeLimit::new(limit);
        let mut inner = Inner { writer: BufWriter::new(file), size, error: None };
        inner.write(header);
        Ok(Self(Arc::new(Mutex::new(inner))))
    }
    /// A function that writes events.
    pub fn sink(&self) -> impl FnMut(&Record) + Send + 'static {
        let file = self.clone();
        move |record| file.write(record)
    }
    /// Writes an event, unless the file has ended.
    pub fn write(&self, record: &Record) {
        self.lock().write(record);
    }
    /// Completes the file. Returns the first error that occurred while it was written.
    pub fn finish(&self) -> anyhow::Result<()> {
        let mut inner = self.lock();
        let written = inner.error.take().map_or(Ok(()), Err);
        let flushed = inner.writer.flush().map_err(anyhow::Error::from);
        written.and(flushed).context("cannot write the event trace")
    }
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no thread panics while it writes an event")
    }
}

impl Inner {
    fn write(&mut self, line: &impl Serialize) {
        let mut text = serde_json::to_string(line).expect("events are plain data");
        text.push('\n');
        if self.error.is_none() && self.size.admits(text.len() as u64) {
            self.error = self.writer.write_all(text.as_bytes()).err().map(anyhow::Error::from);
        }
    }
}
