//! The way of single packets: a segment from the server through the cell to a station, in its transport
//! blocks with their HARQ transmissions, and the ACK back.
//!
//! [`Journeys`] records the packets at both ends and the steps in the cell, from the end of the warm-up up to
//! a bound, and puts the steps of each segment together. Segments of AM in LTE are not followed, since its
//! PDUs name no packet, nor those of links and pairs.

use crate::engine::PacketSink;
use paceline_net::{Instant, Packet};
use paceline_ran::{Direction, RadioEvent, RadioStep, StepSink};
use std::sync::{Arc, Mutex, MutexGuard};

/// Packets, and steps, that are recorded at most. Chosen: a few megabytes, and tenths of a second of a fast
/// cell.
const MOST_RECORDED: usize = 6000;
/// Journeys that are put together at most. Chosen: more than a person looks at.
const MOST_JOURNEYS: usize = 40;

/// A place on the way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// The server.
    Server,
    /// The base station.
    BaseStation,
    /// The station.
    Station,
}

/// A step on the way.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Its start, ms from the first step.
    pub from_ms: f64,
    /// Its end, ms.
    pub to_ms: f64,
    /// Where it starts.
    pub from: Place,
    /// Where it ends; the same place for a wait.
    pub to: Place,
    /// The event in words.
    pub text: String,
    /// Whether the data does not arrive by it.
    pub lost: bool,
}

/// The way of a segment and of its ACK.
#[derive(Clone, PartialEq, Debug)]
pub struct Journey {
    /// Time at which it left the server, seconds.
    pub at_s: f64,
    /// Payload bytes of the segment.
    pub bytes: u32,
    /// The steps in the order of time.
    pub steps: Vec<Step>,
}

#[derive(Default)]
struct Record {
    /// Packets at the server (false) and at the station (true).
    packets: Vec<(Instant, bool, Packet)>,
    steps: Vec<RadioStep>,
}

/// The record of a station's packets.
#[derive(Clone, Default)]
pub struct Journeys(Arc<Mutex<Record>>);

impl Journeys {
    /// The receivers of packets and of steps from `begin` on.
    pub(crate) fn sinks(&self, begin: Instant) -> (PacketSink, StepSink) {
        let (of_packets, of_steps) = (self.clone(), self.clone());
        let packets = move |at: Instant, interface: u32, packet: &Packet| {
            let mut record = of_packets.record();
            if at >= begin && record.packets.len() < MOST_RECORDED {
                record.packets.push((at, interface == 1, packet.clone()));
            }
        };
        let steps = move |step: RadioStep| {
            let mut record = of_steps.record();
            if step.at >= begin && record.steps.len() < MOST_RECORDED {
                record.steps.push(step);
            }
        };
        (Box::new(packets), Box::new(steps))
    }
    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().expect("a receiver does not panic")
    }
    /// The complete journeys, evenly spread over the record.
    pub fn all(&self) -> Vec<Journey> {
        let record = self.record();
        let starts: Vec<usize> = (0..record.packets.len()).filter(|at| record.is_start(*at)).collect();
        let every = starts.len().div_ceil(MOST_JOURNEYS * 4).max(1);
        let found = starts.iter().step_by(every).filter_map(|start| record.journey(*start));
        found.take(MOST_JOURNEYS).collect()
    }
}

impl Record {
    /// Whether a packet is a segment with payload that leaves the server.
    fn is_start(&self, at: usize) -> bool {
        let (_, at_station, packet) = &self.packets[at];
        !at_station && is_down(packet) && packet.tcp_header().is_some_and(|tcp| tcp.payload_len > 0)
    }
    fn journey(&self, start: usize) -> Option<Journey> {
        let (left_at, _, segment) = &self.packets[start];
        let bytes = segment.tcp_header()?.payload_len;
        let mut way = Way { began: *left_at, steps: Vec::new() };
        let at_cell = self.arrival(*left_at, Direction::Down, segment)?;
        way.add(
            (*left_at, at_cell),
            (Place::Server, Place::BaseStation),
            format!("segment, {bytes} B"),
            false,
        );
        let sent = self.blocks(at_cell, Direction::Down, segment)?;
        let names = (Place::BaseStation, Place::Station);
        way.transmissions(at_cell, &sent, names, "waits in the downlink buffer");
        let arrived_at = self.find(*left_at, true, |packet| same(packet, segment))?;
        way.reordering(&sent, arrived_at, Place::Station);
        self.add_ack(&mut way, arrived_at, segment)?;
        Some(Journey { at_s: left_at.as_secs_f64(), bytes, steps: way.steps })
    }
    /// Adds the way of the first ACK for a segment that reaches the server; ACKs that the filter discards are
    /// named.
    fn add_ack(&self, way: &mut Way, arrived_at: Instant, segment: &Packet) -> Option<()> {
        let tcp = segment.tcp_header()?;
        let end = tcp.seq + tcp.payload_len;
        let covers = |packet: &&(Instant, bool, Packet)| {
            let ack = packet.2.tcp_header().map(|tcp| tcp.ack.distance(end));
            packet.1 && packet.0 >= arrived_at && !is_down(&packet.2) && ack.is_some_and(|ack| ack >= 0)
        };
        let mut discarded = 0;
        let mut sent_at = arrived_at;
        for (at, _, ack) in self.packets.iter().filter(covers).take(20) {
            let Some(sent) = self.blocks(*at, Direction::Up, ack) else {
                discarded += 1;
                continue;
            };
            if *at > arrived_at {
                way.add((arrived_at, *at), (Place::Station, Place::Station), "delays its ACK".into(), false);
            }
            if discarded > 0 {
                let text = format!("the ACK filter drops {discarded} earlier ACKs");
                way.add((sent_at, *at), (Place::Station, Place::Station), text, true);
            }
            let names = (Place::Station, Place::BaseStation);
            way.transmissions(*at, &sent, names, "waits for a grant");
            let left_cell = sent.last().and_then(|block| block.decoded_at)?;
            let at_server = self.find(left_cell, false, |packet| same(packet, ack))?;
            way.add((left_cell, at_server), (Place::BaseStation, Place::Server), "ACK".into(), false);
            return Some(());
        }
        sent_at = sent_at.max(arrived_at);
        way.add((sent_at, sent_at), (Place::Station, Place::Station), "no ACK in the record".into(), true);
        None
    }
    /// The time at which a packet arrives at the buffer of the cell.
    fn arrival(&self, from: Instant, direction: Direction, packet: &Packet) -> Option<Instant> {
        let arrives = |step: &&RadioStep| {
            step.at >= from
                && step.direction == direction
                && matches!(&step.event, RadioEvent::Arrived(other) if same(other, packet))
        };
        self.steps.iter().find(arrives).map(|step| step.at)
    }
    /// The time of the first packet that is accepted at one end.
    fn find(&self, from: Instant, at_station: bool, accept: impl Fn(&Packet) -> bool) -> Option<Instant> {
        let found =
            self.packets.iter().find(|(at, end, packet)| *at >= from && *end == at_station && accept(packet));
        found.map(|(at, ..)| *at)
    }
    /// All transmissions of the blocks that carry a packet from `from` on; none if the last one of a block is
    /// not decoded, or not in the record.
    fn blocks(&self, from: Instant, direction: Direction, packet: &Packet) -> Option<Vec<Sent>> {
        let own = || {
            self.steps.iter().enumerate().filter(|(_, step)| step.at >= from && step.direction == direction)
        };
        let count = own().find_map(|(_, step)| match &step.event {
            RadioEvent::Sent { carried, .. } => carried.iter().find_map(|each| {
                let known = each.packet.as_ref().is_some_and(|other| same(other, packet));
                known.then_some(each.count)
            }),
            RadioEvent::Arrived(_) | RadioEvent::Requested => None,
        })?;
        let mut all = Vec::new();
        for (index, step) in own() {
            let RadioEvent::Sent { process, carried, .. } = &step.event else { continue };
            if carried.iter().any(|each| each.count == count) {
                self.add_transmissions(index, *process, direction, &mut all);
                all.last().filter(|last: &&Sent| last.decoded_at.is_some())?;
            }
            if all.len() > MOST_TRANSMISSIONS {
                return None;
            }
        }
        all.sort_by_key(|sent| sent.at);
        Some(all)
    }
    /// Adds the transmissions of the block that is first sent in the step of this index.
    fn add_transmissions(&self, first: usize, process: usize, direction: Direction, all: &mut Vec<Sent>) {
        for (index, step) in self.steps.iter().enumerate().skip(first) {
            let RadioEvent::Sent { process: other, number, bytes, mcs, decoded_at, .. } = step.event else {
                continue;
            };
            if other != process || step.direction != direction {
                continue;
            }
            if index > first && number == 1 {
                return; // the next block of this process
            }
            all.push(Sent { at: step.at, process, number, bytes, mcs, decoded_at });
            if decoded_at.is_some() {
                return;
            }
        }
    }
}

/// Transmissions of a journey in one direction at most. Chosen: more do not fit on a picture.
const MOST_TRANSMISSIONS: usize = 12;

/// A transmission of a block.
#[derive(Clone, Copy)]
struct Sent {
    at: Instant,
    process: usize,
    number: u32,
    bytes: u32,
    mcs: u8,
    decoded_at: Option<Instant>,
}

/// Steps that are put together.
struct Way {
    began: Instant,
    steps: Vec<Step>,
}

impl Way {
    fn add(&mut self, times: (Instant, Instant), places: (Place, Place), text: String, lost: bool) {
        let [from_ms, to_ms] = [times.0, times.1].map(|at| at.since(self.began).as_secs_f64() * 1e3);
        self.steps.push(Step { from_ms, to_ms, from: places.0, to: places.1, text, lost });
    }
    /// Adds the wait before the first transmission, and the transmissions.
    fn transmissions(&mut self, arrived: Instant, sent: &[Sent], places: (Place, Place), wait: &str) {
        if let Some(first) = sent.first().filter(|first| first.at > arrived) {
            self.add((arrived, first.at), (places.0, places.0), wait.to_owned(), false);
        }
        for Sent { at, process, number, bytes, mcs, decoded_at } in sent {
            let again = if *number > 1 { format!(", transmission {number}") } else { String::new() };
            let lost = if decoded_at.is_none() { ": not decoded" } else { "" };
            let text = format!("block {bytes} B, MCS {mcs}, HARQ process {process}{again}{lost}");
            self.add((*at, decoded_at.unwrap_or(*at)), places, text, decoded_at.is_none());
        }
    }
    /// Adds the wait of a segment whose bytes have all arrived, for those before it.
    fn reordering(&mut self, sent: &[Sent], arrived_at: Instant, place: Place) {
        let decoded = sent.iter().filter_map(|sent| sent.decoded_at).max();
        if let Some(decoded) = decoded.filter(|decoded| *decoded < arrived_at) {
            let text = String::from("RLC waits for earlier data");
            self.add((decoded, arrived_at), (place, place), text, false);
        }
    }
}

/// Whether a packet goes to a station: the servers have lower addresses than the stations.
fn is_down(packet: &Packet) -> bool {
    packet.ip.dst > packet.ip.src
}

/// Whether both are the same segment or ACK, wherever they were recorded.
fn same(one: &Packet, other: &Packet) -> bool {
    let key = |packet: &Packet| packet.tcp_header().map(|tcp| (tcp.seq, tcp.ack, tcp.payload_len));
    one.ip.dst == other.ip.dst && key(one).is_some() && key(one) == key(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Run;

    fn journeys(text: &str) -> Vec<Journey> {
        let scenario = crate::scenario::load("test.toml", text, &[]).unwrap();
        let mut run = Run::new(&scenario, 1, None);
        let journeys = run.watch(0);
        while !run.is_over() {
            run.step();
        }
        journeys.all()
    }

    #[test]
    fn a_segment_goes_from_the_server_to_the_station_and_its_ack_back() {
        for cell in [
            "",
            "[cell]\nrat = \"nr\"\nfrequency = \"3.75 GHz\"\nbandwidth = \"20 MHz\"\npattern = \"DDDSU\"\n\
                          subcarrier_spacing = \"30 kHz\"\n",
        ] {
            let all = journeys(&format!(
                "[run]\nduration = \"3 s\"\nwarmup = \"1 s\"\n{cell}[[station]]\nfading = \"3 dB\"\n"
            ));
            assert!(all.len() > 5, "{} journeys: {cell}", all.len());
            for Journey { steps, .. } in &all {
                let (first, last) = (&steps[0], steps.last().unwrap());
                assert_eq!((first.from, last.to), (Place::Server, Place::Server), "{steps:?}");
                assert!(steps.windows(2).all(|pair| pair[1].from_ms >= pair[0].from_ms), "{steps:?}");
                let arrives = |places| steps.iter().any(|step| (step.from, step.to) == places && !step.lost);
                assert!(arrives((Place::BaseStation, Place::Station)), "{steps:?}");
                assert!(arrives((Place::Station, Place::BaseStation)), "{steps:?}");
            }
            let repeated =
                |journey: &Journey| journey.steps.iter().any(|step| step.text.contains("transmission 2"));
            assert!(all.iter().any(repeated), "no HARQ retransmission in {} journeys", all.len());
        }
    }

    #[test]
    fn a_watched_run_has_the_results_of_another() {
        let text = "[run]\nduration = \"2 s\"\nwarmup = \"1 s\"\n[[station]]\ncount = 2\n";
        let scenario = crate::scenario::load("test.toml", text, &[]).unwrap();
        let mut run = Run::new(&scenario, 1, None);
        run.watch(1);
        while !run.is_over() {
            run.step();
        }
        assert_eq!(run.finish(), crate::run::simulate(&scenario, 1, None, &mut |_| {}));
    }
}
