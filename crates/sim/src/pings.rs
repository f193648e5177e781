//! Pings of a station: their round trips, both ways, and the parts of each way within the cell.
//!
//! Parts of the uplink: the wait for an occasion of a scheduling request, from the request to the first
//! block, from the first to the last block that carries a segment, and HARQ retransmissions. A ping whose
//! block was granted without a request of its own waited in the queue. Parts of the downlink: the wait in the
//! buffer, with the lead of the base station, and the same two. Left out: AM of LTE, whose blocks name no
//! packet, links and pairs, which have no parts.

use crate::endpoints::Logged;
use paceline_net::{Instant, Packet, Transport};
use paceline_ran::{Direction, RadioEvent, RadioStep, StepSink};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

/// Direction, port of the station, and the time at which the ping was made.
type Key = (Direction, u16, Instant);

/// The parts of one way within the cell, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Parts {
    /// From the arrival to the scheduling request, if one was sent.
    pub request: Option<u64>,
    /// From the request to the first block.
    pub grant: Option<u64>,
    /// From the arrival to the first block, without a request.
    pub queue: Option<u64>,
    /// From the first transmission of the first block to that of the last one.
    pub segmentation: u64,
    /// From there to the transmission that was decoded last.
    pub harq: u64,
}

/// An answered ping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ping {
    pub made_at: Instant,
    pub rtt_ns: u64,
    /// One-way delay of the request.
    pub there_ns: u64,
    /// Parts of the uplink and of the downlink.
    pub parts: [Option<Parts>; 2],
}

/// Blocks that carry a packet.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    first: Instant,
    last: Instant,
    /// Start of the transmission that was decoded last.
    decoded: Option<Instant>,
    key: Option<Key>,
}

#[derive(Default)]
struct Record {
    /// Arrivals at the buffers, and the request that followed.
    arrived: BTreeMap<Key, (Instant, Option<Instant>)>,
    /// Packets of the uplink that no block has carried.
    waiting: VecDeque<Key>,
    /// By COUNT of PDCP.
    blocks: BTreeMap<(Direction, u32), Blocks>,
    /// The packets in a HARQ process.
    in_process: BTreeMap<(Direction, usize), Vec<u32>>,
}

/// The steps of one station's pings through the cell.
#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Record>>);

impl Trace {
    /// Receives the steps of the station.
    pub fn sink(&self) -> StepSink {
        let own = self.clone();
        Box::new(move |step| own.record().add(step))
    }
    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().expect("a receiver does not panic")
    }
    /// The answered pings of the senders at the server and at the station, in the order of time.
    pub fn answered(&self, server: &[Logged], station: &[Logged]) -> Vec<Ping> {
        let record = self.record();
        let parts = record.parts();
        let there = |by_station: bool| {
            let receiver = if by_station { server } else { station };
            receiver.iter().filter(|log| !log.answer).map(|log| ((log.port(), log.made_at), log.took_ns))
        };
        let mut all = Vec::new();
        for (by_station, sender) in [(false, server), (true, station)] {
            let there: BTreeMap<(u16, Instant), u64> = there(by_station).collect();
            for log in sender.iter().filter(|log| log.answer) {
                let (port, made_at) = (log.port(), log.made_at);
                let Some(there_ns) = there.get(&(port, made_at)).copied() else { continue };
                let of = |direction| parts.get(&(direction, port, made_at)).copied();
                let parts = [of(Direction::Up), of(Direction::Down)];
                all.push(Ping { made_at, rtt_ns: log.took_ns, there_ns, parts });
            }
        }
        all.sort_by_key(|ping| ping.made_at);
        all
    }
}

impl Record {
    fn add(&mut self, step: RadioStep) {
        let RadioStep { at, direction, event } = step;
        match event {
            RadioEvent::Arrived(packet) => {
                let Some(key) = key(direction, &packet) else { return };
                self.arrived.insert(key, (at, None));
                if direction == Direction::Up {
                    self.waiting.push_back(key);
                }
            }
            RadioEvent::Requested => {
                for key in &self.waiting {
                    if let Some((_, requested)) = self.arrived.get_mut(key) {
                        requested.get_or_insert(at);
                    }
                }
            }
            RadioEvent::Sent { process, number, carried, decoded_at, .. } => {
                if number == 1 {
                    for each in &carried {
                        let key = each.packet.as_ref().and_then(|packet| key(direction, packet));
                        self.carry(at, direction, each.count, key);
                    }
                    let counts = carried.iter().map(|each| each.count).collect();
                    self.in_process.insert((direction, process), counts);
                }
                if decoded_at.is_some() {
                    for count in self.in_process.remove(&(direction, process)).unwrap_or_default() {
                        if let Some(blocks) = self.blocks.get_mut(&(direction, count)) {
                            blocks.decoded = blocks.decoded.max(Some(at));
                        }
                    }
                }
            }
        }
    }
    fn carry(&mut self, at: Instant, direction: Direction, count: u32, key: Option<Key>) {
        let blocks = Blocks { first: at, last: at, decoded: None, key };
        let blocks = self.blocks.entry((direction, count)).or_insert(blocks);
        blocks.last = at;
        blocks.key = blocks.key.or(key);
        if direction == Direction::Up {
            match key {
                Some(key) => self.waiting.retain(|other| *other != key),
                None => drop(self.waiting.pop_front()), // UM of LTE names a packet in its last block alone
            }
        }
    }
    /// The parts of every packet that was decoded.
    fn parts(&self) -> BTreeMap<Key, Parts> {
        let of = |blocks: &Blocks| {
            let (key, decoded) = (blocks.key?, blocks.decoded?);
            let (arrived, requested) = *self.arrived.get(&key)?;
            let requested = requested.filter(|requested| *requested <= blocks.first);
            let parts = Parts {
                request: requested.map(|requested| requested.since(arrived).as_nanos()),
                grant: requested.map(|requested| blocks.first.since(requested).as_nanos()),
                queue: requested.is_none().then(|| blocks.first.since(arrived).as_nanos()),
                segmentation: blocks.last.since(blocks.first).as_nanos(),
                harq: decoded.since(blocks.last).as_nanos(),
            };
            Some((key, parts))
        };
        self.blocks.values().filter_map(of).collect()
    }
}

fn key(direction: Direction, packet: &Packet) -> Option<Key> {
    let Transport::Udp { src_port, dst_port, made_at: Some(at) } = packet.transport else { return None };
    Some((direction, if direction == Direction::Up { src_port } else { dst_port }, at))
}

#[cfg(test)]
mod tests {
    use crate::scenario::load;
    use crate::simulate;

    const CELL: &str = "[run]\nduration = \"12 s\"\n[core]\nhops = []\n[cell]\nrat = \"nr\"\n\
                        pattern = \"DDDSU\"\nbandwidth = \"20 MHz\"\n[[station]]\ntraffic = \"ping\"\n\
                        ping_interval = \"97.3 ms\"\n";

    #[test]
    fn the_parts_of_a_ping_add_up_to_its_round_trip() {
        for (direction, sets) in [
            ("upload", &["station.processing=1 ms"][..]),
            ("download", &[]),
            ("upload", &["cell.proactive_grant.after=0 ms"]),
        ] {
            let mut all = vec![format!("station.direction={direction}")];
            all.extend(sets.iter().map(|set| (*set).to_owned()));
            let scenario = load("ping.toml", CELL, &all).unwrap();
            let run = simulate(&scenario, 1, None, &mut |_| {});
            let ping = &run.pings[0];
            assert!(ping.answered > 95 && ping.answered <= ping.sent, "{ping:?}");
            let mean = |name: &str| {
                let part = ping.parts.iter().find(|part| part.part == name);
                part.map_or(0.0, |part| part.times.mean_ms * part.count as f64 / ping.answered as f64)
            };
            let names = [
                "uplink request",
                "uplink grant",
                "uplink queue",
                "uplink segmentation",
                "uplink harq",
                "downlink queue",
                "downlink segmentation",
                "downlink harq",
            ];
            // In addition: the slot and the slot of decoding of each way, and the stack of the station.
            let stack = if sets.len() == 1 && sets[0].contains("processing") { 2.0 } else { 0.0 };
            let sum = names.iter().map(|name| mean(name)).sum::<f64>() + 2.0 + stack;
            assert!((sum - ping.rtt.mean_ms).abs() < 0.01, "{sum} {ping:?}");
            assert!((ping.there.mean_ms + ping.back.mean_ms - ping.rtt.mean_ms).abs() < 1e-9, "{ping:?}");
            let requests = mean("uplink request") > 0.0;
            assert_eq!(requests, !sets.iter().any(|set| set.contains("proactive")), "{ping:?}");
        }
    }

    #[test]
    fn grants_in_every_uplink_slot_leave_no_request() {
        for cell in ["", "rat = \"nr\"\n", "rat = \"nr\"\npattern = \"DDDSU\"\n", "tdd_configuration = 1\n"] {
            let text = format!(
                "[run]\nduration = \"6 s\"\n[cell]\nbandwidth = \"20 MHz\"\n{cell}[cell.proactive_grant]\n\
                 [[station]]\ntraffic = \"ping\"\ndirection = \"upload\"\nping_interval = \"97.3 ms\"\n"
            );
            let run = simulate(&load("ping.toml", &text, &[]).unwrap(), 1, None, &mut |_| {});
            let requests = run.pings[0].parts.iter().find(|part| part.part == "uplink request");
            assert!(requests.is_none() && run.pings[0].answered > 35, "{cell}: {:?}", run.pings[0]);
        }
    }
}
