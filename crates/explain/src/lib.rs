//! Explanations of captures: the limits of each TCP connection, and the places where its round trip passed.
//!
//! ```text
//! capture -> segment: fields of each TCP segment, cut packets too
//!         -> tracker: connections by capture point and ends, clocks, mirrored copies
//!         -> connection: handshake, options, halves of the round trip
//!         -> sender: losses by kind and place, lifetime by cause
//!         -> signs: bunches of ACKs, policers, middleboxes, periods of cells
//!         -> report: figures, sentences
//! ```
//!
//! Packets are taken one by one, in memory that is bounded for each connection. No clock, files or threads:
//! the same packets give the same report.
#![forbid(unsafe_code)]

pub mod causes;
mod connection;
mod halves;
mod hop_limits;
mod quantiles;
pub mod report;
pub mod segment;
mod sender;
mod series;
mod signs;
mod space;
mod tracker;

pub use signs::period;

use connection::{CLIENT, SERVER};
use paceline_import::capture::stream::{self, Captured, Reading};
use report::{Explanation, Names, report};
use std::io::Read;
use tracker::Tracker;

/// The place of the capture, as its maker says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Taken {
    /// Unknown: found by the halves of the round trip.
    #[default]
    Unknown,
    /// At the server.
    Server,
    /// At the client.
    Client,
    /// Between both: their halves count as measured.
    Between,
}

/// Explains captures.
#[derive(Debug)]
pub struct Explainer {
    tracker: Tracker,
    taken: Taken,
    names: Names,
    notes: Vec<String>,
}

impl Explainer {
    /// An explainer of captures that were taken at this place.
    pub fn new(taken: Taken) -> Self {
        let here = match taken {
            Taken::Server => Some(SERVER),
            Taken::Client => Some(CLIENT),
            Taken::Unknown | Taken::Between => None,
        };
        Self { tracker: Tracker::new(here), taken, names: Names::new(), notes: Vec::new() }
    }
    /// Reads a capture file, packed or not, as a stream. Several files are parts of one capture if each
    /// begins after the one before it has ended, else captures of other points. An error says that the file
    /// is no capture; a damaged one is read as far as possible.
    pub fn read(&mut self, name: &str, file: impl Read) -> Result<(), String> {
        self.tracker.next_file();
        let reading = stream::read(file, |packet| self.tracker.on_packet(packet))?;
        let Reading { names, damage, without_time } = reading;
        let known = self.names.entry(self.tracker.group).or_insert_with(|| (name.to_owned(), Vec::new()));
        if names.len() > known.1.len() {
            known.1 = names;
        }
        if let Some(damage) = damage {
            self.notes.push(format!("{name}: {damage}: the packets before that are explained"));
        }
        if without_time > 0 {
            self.notes.push(format!("{name}: {without_time} packets without a time: left out"));
        }
        Ok(())
    }
    /// Takes the next packet of a capture.
    pub fn on_packet(&mut self, packet: &Captured<'_>) {
        self.tracker.on_packet(packet);
    }
    /// Names the capture point of packets that are taken one by one, such as an interface of this host.
    pub fn name_interface(&mut self, name: &str) {
        self.names.insert(self.tracker.group, (String::new(), vec![name.to_owned()]));
    }
    /// Adds a statement on the capture.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }
    /// Names of the interfaces so far.
    pub fn interfaces(&self) -> Vec<&str> {
        self.names.values().flat_map(|(_, names)| names).map(String::as_str).collect()
    }
    /// The explanation; `interface` leaves out the connections at others.
    pub fn finish(self, interface: Option<&str>) -> Explanation {
        let mut explanation = report(&self.tracker, &self.names, interface);
        if self.taken == Taken::Between {
            explanation.network.position = report::Position::Between;
            explanation.connections.iter_mut().for_each(|c| c.position = report::Position::Between);
        }
        explanation.notes.splice(0..0, self.notes);
        explanation
    }
}
