//! The report on one connection.

use super::shares::CauseShares;
use super::verdict::{self, Facts};
use crate::causes::{Cause, CauseTimes};
use crate::connection::{CLIENT, Closing, Connection, Offer, SERVER};
use crate::halves::Half;
use crate::quantiles::Quantiles;
use crate::sender::{Losses, NEAR_PARTS, Sender};
use crate::series::{Bin, Series};
use crate::signs::middlebox::{self, Sign};
use paceline_net::Instant;
use serde::Serialize;

/// Share of an unknown cause from which on a note explains it. Chosen: a twentieth, as in the verdict.
const NOTED: f64 = 0.05;

/// The place of the capture on the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// Less than an eighth of the round trip passes between capture point and server.
    NearServer,
    /// Less than an eighth of it passes between capture point and client.
    NearClient,
    /// Neither.
    Between,
    /// One half or both were not measured.
    #[default]
    Unknown,
}

/// Half a round trip: from the capture point to one end and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HalfReport {
    /// Number of samples.
    pub samples: u64,
    /// Least sample, ms.
    pub min_ms: Option<f64>,
    /// Median, ms.
    pub median_ms: Option<f64>,
    /// 95th percentile, ms.
    pub p95_ms: Option<f64>,
}

/// Options of one end's SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OfferReport {
    /// Maximum segment size.
    pub mss_bytes: Option<u16>,
    /// Shift of the window.
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// ECN.
    pub ecn: bool,
}

/// Data in one direction, and their ACKs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DirectionReport {
    /// Bytes, each counted once.
    pub bytes: u64,
    /// Segments with data.
    pub segments: u64,
    /// Payload of a full segment.
    pub segment_bytes: u32,
    /// Bytes over the time from the first to the last new data.
    pub goodput_mbps: f64,
    /// Bytes that were acknowledged and are not in the capture.
    pub missing_bytes: u64,
    /// Bytes in flight over the time with data to send: median.
    pub flight_median_bytes: Option<f64>,
    /// Most bytes in flight.
    pub flight_max_bytes: Option<f64>,
    /// Advertised window over that time: median.
    pub window_median_bytes: Option<f64>,
    /// Times at which the window became zero.
    pub zero_windows: u64,
    /// Segments that were sent again, and those that were overtaken.
    pub losses: Losses,
    /// ACKs without data.
    pub acks: u64,
    /// Acknowledged bytes per ACK of new data.
    pub bytes_per_ack: f64,
    /// The same in full segments: 2 without the receiver's GRO and thinning on the way.
    pub segments_per_ack: f64,
    /// ACKs of a last segment that the receiver delayed.
    pub delayed_acks: u64,
    /// Segments longer than the announced size: merged by the capturing host (GRO, TSO).
    pub merged_segments: u64,
    /// Rate of the policer, if its losses show one, Mb/s of payload.
    pub policer_mbps: Option<f64>,
    /// Its bucket.
    pub policer_burst_bytes: Option<f64>,
    /// Bunches of ACKs after gaps.
    pub ack_bunches: u64,
    /// Pauses of the path.
    pub pauses: u64,
    /// The longest, ms.
    pub longest_pause_ms: f64,
    /// Segments with a CE mark.
    pub ce_marks: u64,
    /// ACKs with ECN-Echo.
    pub ece_acks: u64,
}

/// Goodput and round trip in a part of a connection's time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimePoint {
    /// End of the part after the first packet of the capture, s.
    pub at_s: f64,
    /// Acknowledged data, Mb/s.
    pub goodput_mbps: f64,
    /// Mean round trip, ms.
    pub rtt_ms: Option<f64>,
}

/// A connection.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionReport {
    /// Address and port of the client.
    pub client: String,
    /// Address and port of the server.
    pub server: String,
    /// Name of the interface, empty where the capture has none.
    pub interface: String,
    /// Capture points at which it was seen. The report is of the one nearest the sender of the data.
    pub capture_points: u64,
    /// Place of the capture.
    pub position: Position,
    /// Time of the first segment after the first packet of the capture, s.
    pub start_s: f64,
    /// Time from the first to the last segment, ms.
    pub duration_ms: f64,
    /// `fin`, `reset` or `open`.
    pub closing: &'static str,
    /// Whether the capture lacks the handshake.
    pub mid_stream: bool,
    /// Time from the SYN to the ACK of the SYN-ACK, ms.
    pub handshake_rtt_ms: Option<f64>,
    /// SYNs that were sent again.
    pub repeated_syns: u64,
    /// The end that sent more data: `client` or `server`.
    pub data_from: &'static str,
    /// Options of the client's SYN.
    pub client_offer: Option<OfferReport>,
    /// Options of the server's SYN-ACK.
    pub server_offer: Option<OfferReport>,
    /// Options that one end offered and the other did not answer.
    pub unanswered_options: Vec<&'static str>,
    /// Signs of middleboxes; the notes have their evidence.
    pub middlebox_signs: Vec<&'static str>,
    /// Data from the server to the client.
    pub to_client: DirectionReport,
    /// Data from the client to the server.
    pub to_server: DirectionReport,
    /// Whole round trip: least, ms.
    pub rtt_min_ms: Option<f64>,
    /// Median, ms.
    pub rtt_median_ms: Option<f64>,
    /// 95th percentile, ms.
    pub rtt_p95_ms: Option<f64>,
    /// Median over least round trip.
    pub rtt_inflation: Option<f64>,
    /// From the capture point to the client and back.
    pub client_half: HalfReport,
    /// From the capture point to the server and back.
    pub server_half: HalfReport,
    /// Shares of the lifetime by cause, of the sender of most data.
    pub cause_shares: CauseShares,
    /// The largest cause.
    pub cause: &'static str,
    /// The largest cause in words.
    pub verdict: String,
    /// Where the round trip passed, in words.
    pub round_trip: String,
    /// Goodput and round trip over time, of the sender of most data.
    pub over_time: Vec<TimePoint>,
    /// Limits of the statements above.
    pub notes: Vec<String>,
}

/// Sums for the network.
pub struct Sums {
    pub times: CauseTimes,
    pub rtt: Quantiles,
    pub facts: Facts,
}

impl Sums {
    pub fn new(connection: &Connection) -> Self {
        let from = main(connection);
        let sender = &connection.senders[from];
        let mut times = sender.causes(&connection.halves[from]);
        // A connection of less than a nanosecond has no time.
        if times.total() == 0 {
            times.add(Cause::Unknown, 1);
        }
        let facts = Facts::new(connection, from, &times);
        Self { times, rtt: sender.rtt.clone(), facts }
    }
}

impl ConnectionReport {
    /// Adds signs of middleboxes, and their evidence as notes.
    pub(super) fn add_signs(&mut self, signs: Vec<(Sign, String)>) {
        for (sign, evidence) in signs {
            if !self.middlebox_signs.contains(&sign.key()) {
                self.middlebox_signs.push(sign.key());
            }
            self.notes.push(evidence);
        }
    }
    /// Bytes of both directions.
    pub fn bytes(&self) -> u64 {
        self.to_client.bytes + self.to_server.bytes
    }
    /// Whether both are of one connection, at different capture points.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let end = |report: &Self| report.start_s + report.duration_ms / 1e3;
        let overlap = self.start_s <= end(other) && other.start_s <= end(self);
        overlap && self.interface != other.interface
    }
    /// Whether the capture point is nearer to the sender of the data.
    pub(super) fn is_nearer(&self, other: &Self) -> bool {
        let half = |report: &Self| {
            let half = if report.data_from == "server" { report.server_half } else { report.client_half };
            half.median_ms.unwrap_or(f64::INFINITY)
        };
        half(self) < half(other)
    }
}

/// The end that sent more data.
fn main(connection: &Connection) -> usize {
    let bytes = |end: usize| {
        let sender = &connection.senders[end];
        sender.bytes.max(sender.acked_bytes)
    };
    if bytes(CLIENT) > bytes(SERVER) { CLIENT } else { SERVER }
}

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

/// The report on a connection at an interface, in a capture that starts at `start`.
pub(super) fn report(connection: &Connection, interface: String, start: Instant) -> ConnectionReport {
    let sums = Sums::new(connection);
    let from = main(connection);
    let halves = &connection.halves;
    let quantile = |share| sums.rtt.quantile(share).map(ms);
    let rtt_min_ms = sums.rtt.least().map(|ns| ms(ns as f64));
    let rtt_median_ms = quantile(0.5);
    let largest = sums.times.largest();
    let [syn, _, ack] = connection.handshake;
    let handshake = syn.zip(ack).filter(|_| connection.offers.iter().all(Option::is_some));
    let (first, last) = connection.span;
    let mut report = ConnectionReport {
        client: connection.ends[CLIENT].to_string(),
        server: connection.ends[SERVER].to_string(),
        interface,
        capture_points: 1,
        position: position(halves),
        start_s: first.since(start).as_secs_f64(),
        duration_ms: last.since(first).as_millis_f64(),
        closing: match connection.closing() {
            Closing::Fin => "fin",
            Closing::Reset => "reset",
            Closing::Open => "open",
        },
        mid_stream: connection.is_mid_stream(),
        handshake_rtt_ms: handshake.map(|(syn, ack)| ack.since(syn).as_millis_f64()),
        repeated_syns: connection.repeated_syns,
        data_from: if from == CLIENT { "client" } else { "server" },
        client_offer: connection.offers[CLIENT].map(offer),
        server_offer: connection.offers[SERVER].map(offer),
        unanswered_options: unanswered(connection),
        middlebox_signs: Vec::new(),
        to_client: direction(&connection.senders[SERVER]),
        to_server: direction(&connection.senders[CLIENT]),
        rtt_min_ms,
        rtt_median_ms,
        rtt_p95_ms: quantile(0.95),
        rtt_inflation: rtt_min_ms
            .zip(rtt_median_ms)
            .filter(|(min, _)| *min > 0.0)
            .map(|(min, p50)| p50 / min),
        client_half: half(&halves[CLIENT]),
        server_half: half(&halves[SERVER]),
        cause_shares: CauseShares::new(&sums.times),
        cause: largest.key(),
        verdict: verdict::verdict(&sums.times, &sums.facts),
        round_trip: verdict::round_trip(&sums.facts),
        over_time: over_time(&connection.senders[from].series, start),
        notes: notes(connection, from, &sums.times),
    };
    report.add_signs(middlebox::signs(connection));
    report
}

fn position(halves: &[Half; 2]) -> Position {
    for (end, position) in [(SERVER, Position::NearServer), (CLIENT, Position::NearClient)] {
        if halves[end].is_here {
            return position;
        }
    }
    let least = |end: usize| halves[end].samples.least();
    let (Some(client), Some(server)) = (least(CLIENT), least(SERVER)) else { return Position::Unknown };
    let near = (client + server) / NEAR_PARTS;
    match (server <= near, client <= near) {
        (true, _) => Position::NearServer,
        (_, true) => Position::NearClient,
        _ => Position::Between,
    }
}

fn half(half: &Half) -> HalfReport {
    HalfReport {
        samples: half.samples.count(),
        min_ms: half.samples.least().map(|ns| ms(ns as f64)),
        median_ms: half.samples.quantile(0.5).map(ms),
        p95_ms: half.samples.quantile(0.95).map(ms),
    }
}

fn offer(offer: Offer) -> OfferReport {
    OfferReport {
        mss_bytes: offer.options.mss,
        window_scale: offer.options.window_scale,
        sack: offer.options.sack_permitted,
        timestamps: offer.options.timestamps.is_some(),
        ecn: offer.ecn,
    }
}

fn unanswered(connection: &Connection) -> Vec<&'static str> {
    let [Some(client), Some(server)] = connection.offers.map(|end| end.map(offer)) else { return Vec::new() };
    let options = [
        ("window_scale", client.window_scale.is_some(), server.window_scale.is_some()),
        ("sack", client.sack, server.sack),
        ("timestamps", client.timestamps, server.timestamps),
        ("ecn", client.ecn, server.ecn),
    ];
    options.into_iter().filter(|(_, offered, answered)| offered != answered).map(|(name, ..)| name).collect()
}

fn direction(sender: &Sender) -> DirectionReport {
    let span = sender.data_span.map_or(0, |(first, last)| last.since(first).as_nanos());
    let goodput_mbps = if span > 0 { sender.bytes as f64 * 8e3 / span as f64 } else { 0.0 };
    let (pauses, longest_ns) = sender.pauses();
    let bytes_per_ack = sender.acked_bytes as f64 / sender.progress_acks.max(1) as f64;
    let policer = sender.policer();
    DirectionReport {
        bytes: sender.bytes,
        segments: sender.segments,
        segment_bytes: sender.largest,
        goodput_mbps,
        missing_bytes: sender.space.missing,
        flight_median_bytes: sender.flight.quantile(0.5),
        flight_max_bytes: sender.flight.quantile(1.0),
        window_median_bytes: sender.window.quantile(0.5),
        zero_windows: sender.zero_windows,
        losses: sender.losses,
        acks: sender.acks,
        bytes_per_ack,
        segments_per_ack: bytes_per_ack / f64::from(sender.full()),
        delayed_acks: sender.delayed_acks,
        merged_segments: sender.merged,
        policer_mbps: policer.map(|policer| policer.rate / 1e6),
        policer_burst_bytes: policer.map(|policer| policer.burst_bytes),
        ack_bunches: sender.bunches.count,
        pauses,
        longest_pause_ms: ms(longest_ns as f64),
        ce_marks: sender.ce_marks,
        ece_acks: sender.ece_acks,
    }
}

fn over_time(series: &Series, start: Instant) -> Vec<TimePoint> {
    let (width_ns, first) = (series.width_ns(), series.start.unwrap_or(start));
    let point = |(index, bin): (usize, &Bin)| TimePoint {
        at_s: first.since(start).as_secs_f64() + (index + 1) as f64 * width_ns as f64 / 1e9,
        goodput_mbps: bin.bytes as f64 * 8e3 / width_ns as f64,
        rtt_ms: bin.rtt_ns().map(ms),
    };
    series.bins().iter().enumerate().map(point).collect()
}

fn notes(connection: &Connection, from: usize, times: &CauseTimes) -> Vec<String> {
    let (sender, toward_sender) = (&connection.senders[from], &connection.halves[from]);
    let mut notes = Vec::new();
    if connection.is_mid_stream() {
        notes.push("no handshake in the capture: window scale and options are unknown".to_owned());
    }
    let silent = connection.segments.iter().position(|segments| *segments == 0);
    if let Some(end) = silent {
        let name = if end == CLIENT { "client" } else { "server" };
        notes.push(format!("no segments of the {name} in the capture: no round trips and no causes"));
    }
    if sender.space.missing > 0 {
        notes.push(format!("{} acknowledged bytes are not in the capture", sender.space.missing));
    }
    if silent.is_none() && sender.is_blind(toward_sender) && times.share(Cause::Unknown) > NOTED {
        notes.push("no timestamps: a queue between sender and capture point is not seen".to_owned());
    }
    if position(&connection.halves) == Position::Unknown && silent.is_none() {
        notes.push(
            "one half of the round trip was not measured: the place of the capture is unknown unless it is stated".to_owned(),
        );
    }
    notes
}
