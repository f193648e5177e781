//! The verdict: a sentence that names the largest cause, in the words of the simulator's verdict, and one on
//! the halves of the round trip.

use crate::causes::{Cause, CauseTimes};
use crate::connection::{CLIENT, Connection, SERVER};
use crate::quantiles::Quantiles;
use crate::signs::policer::Policer;
use paceline_net::words::{bit_rate, bytes, ms, percent};

/// Share of the lifetime without data to send, from which on the largest of the other causes is named too.
/// Chosen: half; a limit beside a longer one is in the table.
const MOSTLY: f64 = 0.5;
/// Share of the rest from which on the other cause is worth a clause. Chosen: below a twentieth of the
/// lifetime it changes little.
const WORTH: f64 = 0.05;

/// Share of the round trip from which on a queue is placed. Chosen: the quantiles err by up to 3%.
const NOTICEABLE: f64 = 0.03;

/// Figures that the sentences have.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    rtt: Quantiles,
    halves: [Quantiles; 2],
    flight: Quantiles,
    window: Quantiles,
    acked_bytes: u64,
    /// Bytes towards each end, by which the sentences choose a direction.
    toward: [u64; 2],
    segments: u64,
    sent_again: u64,
    lost_before: u64,
    lost_behind: u64,
    timeouts: u64,
    pauses: u64,
    longest_pause_ns: u64,
    bunches: u64,
    /// The policer of the first connection that shows one: the one with most data.
    policer: Option<Policer>,
    connections: u64,
    handshake_ns: u64,
    lifetime_ns: u64,
    data_ns: u64,
    /// Whether the window's scale is unknown, so that its limit is not told from others.
    is_window_unknown: bool,
}

impl Facts {
    pub fn new(connection: &Connection, from: usize, times: &CauseTimes) -> Self {
        let sender = &connection.senders[from];
        let (pauses, longest_pause_ns) = sender.pauses();
        let mut toward = [0; 2];
        toward[1 - from] = sender.bytes;
        let (first, last) = connection.span;
        Self {
            rtt: sender.rtt.clone(),
            halves: [CLIENT, SERVER].map(|end| connection.halves[end].samples.clone()),
            flight: sender.flight.clone(),
            window: sender.window.clone(),
            acked_bytes: sender.bytes.max(sender.acked_bytes),
            toward,
            segments: sender.segments,
            sent_again: sender.losses.retransmissions,
            lost_before: sender.losses.lost_before,
            lost_behind: sender.losses.lost_behind,
            timeouts: sender.losses.timeouts,
            pauses,
            longest_pause_ns,
            bunches: sender.bunches.count,
            policer: sender.policer(),
            connections: 1,
            handshake_ns: times.of(Cause::Handshake),
            lifetime_ns: last.since(first).as_nanos(),
            is_window_unknown: !connection.is_window_known(),
            data_ns: times.total() - times.of(Cause::Handshake) - times.of(Cause::Application),
        }
    }
    pub fn merge(&mut self, other: &Self) {
        self.rtt.merge(&other.rtt);
        self.flight.merge(&other.flight);
        self.window.merge(&other.window);
        for end in [CLIENT, SERVER] {
            self.halves[end].merge(&other.halves[end]);
            self.toward[end] += other.toward[end];
        }
        self.acked_bytes += other.acked_bytes;
        self.segments += other.segments;
        self.sent_again += other.sent_again;
        self.lost_before += other.lost_before;
        self.lost_behind += other.lost_behind;
        self.timeouts += other.timeouts;
        self.pauses += other.pauses;
        self.longest_pause_ns = self.longest_pause_ns.max(other.longest_pause_ns);
        self.bunches += other.bunches;
        self.policer = self.policer.or(other.policer);
        self.connections += other.connections;
        self.handshake_ns += other.handshake_ns;
        self.lifetime_ns += other.lifetime_ns;
        self.data_ns += other.data_ns;
        self.is_window_unknown |= other.is_window_unknown && other.acked_bytes > 0;
    }
    /// Segments that were sent again, and all segments with data.
    pub fn segments(&self) -> (u64, u64) {
        (self.sent_again, self.segments)
    }
    /// Number of connections.
    pub fn connections(&self) -> u64 {
        self.connections
    }
    fn rtt_ms(&self) -> f64 {
        self.rtt.quantile(0.5).unwrap_or(0.0) / 1e6
    }
    /// Rate of a connection while it had data, b/s.
    fn rate(&self) -> f64 {
        self.acked_bytes as f64 * 8e9 / self.data_ns.max(1) as f64
    }
    /// The mean of a window and its rate: the window of a slow reader is open for short times.
    fn per_round_trip(&self, window: &Quantiles) -> String {
        let (window, rtt) = (window.mean().unwrap_or(0.0), self.rtt_ms());
        let rate = if rtt > 0.0 { window * 8e3 / rtt } else { 0.0 };
        format!("{} at {} is {}", bytes(window), ms(rtt), bit_rate(rate))
    }
    /// The end towards which most data go.
    fn receiver(&self) -> usize {
        if self.toward[SERVER] > self.toward[CLIENT] { SERVER } else { CLIENT }
    }
}

fn end(end: usize) -> &'static str {
    if end == CLIENT { "client" } else { "server" }
}

/// The verdict, a sentence without its subject.
pub fn verdict(times: &CauseTimes, facts: &Facts) -> String {
    let largest = times.largest();
    let text = clause(largest, times, times.total(), facts);
    if largest != Cause::Application || times.share(largest) < MOSTLY {
        return text;
    }
    let mut rest = *times;
    rest.take(Cause::Application);
    let other = rest.largest();
    if times.share(other) < WORTH {
        return text;
    }
    format!("{text}; with data to send, {}", clause(other, &rest, rest.total(), facts))
}

fn clause(cause: Cause, times: &CauseTimes, total: u64, facts: &Facts) -> String {
    let share = percent(times.of(cause) as f64 / total.max(1) as f64);
    let tcp = format!("{} {share} of the time ({})", name(cause, facts), reason(cause, facts));
    place(cause, facts).map_or(tcp.clone(), |place| format!("limited by {place}; {tcp}"))
}

fn name(cause: Cause, facts: &Facts) -> &'static str {
    match cause {
        Cause::Handshake => "connecting",
        Cause::Application => "without data to send",
        Cause::ReceiveWindow => "limited by the receive window",
        Cause::Recovery => "repairing losses",
        Cause::Timeout => "waiting for time-outs",
        Cause::Pause => "waiting for a path that paused",
        Cause::Queue => "filling a queue of the path",
        Cause::CongestionWindow if facts.is_window_unknown => {
            "limited by the congestion window, pacing, the send buffer or a receive window of unknown scale"
        }
        Cause::CongestionWindow => "limited by the congestion window, pacing or the send buffer",
        Cause::Policer => "limited by a policer, which drops what exceeds its rate,",
        Cause::AckPath => "waiting for ACKs that come in bunches",
        Cause::Unknown => "limited by causes that are not in the capture",
    }
}

fn reason(cause: Cause, facts: &Facts) -> String {
    match cause {
        Cause::Handshake => {
            format!("{} each", ms(facts.handshake_ns as f64 / 1e6 / facts.connections.max(1) as f64))
        }
        Cause::Application => {
            let rate = facts.acked_bytes as f64 * 8e9 / facts.lifetime_ns.max(1) as f64;
            format!("it wrote {}", bit_rate(rate))
        }
        Cause::ReceiveWindow => facts.per_round_trip(&facts.window),
        Cause::CongestionWindow => facts.per_round_trip(&facts.flight),
        Cause::Recovery => {
            let share = facts.sent_again as f64 / facts.segments.max(1) as f64;
            format!("{} of the segments sent again", percent(share))
        }
        Cause::Timeout => format!("{} of them", facts.timeouts),
        Cause::Pause => {
            format!("{} of them, the longest of {}", facts.pauses, ms(facts.longest_pause_ns as f64 / 1e6))
        }
        Cause::Queue => format!("{} at {}", bit_rate(facts.rate()), ms(facts.rtt_ms())),
        Cause::Policer => facts.policer.map_or(String::new(), |policer| {
            format!("{} after a burst of {}", bit_rate(policer.rate), bytes(policer.burst_bytes))
        }),
        Cause::AckPath => format!("{} bunches at {}", facts.bunches, ms(facts.rtt_ms())),
        Cause::Unknown => "see the notes".to_owned(),
    }
}

/// The place on the path that explains a cause, if there is one.
fn place(cause: Cause, facts: &Facts) -> Option<String> {
    match cause {
        Cause::Queue => queue(facts),
        Cause::Recovery | Cause::Timeout | Cause::CongestionWindow | Cause::Policer => losses(facts),
        _ => None,
    }
}

/// The half of the round trip with the longer queue.
fn queue(facts: &Facts) -> Option<String> {
    let median = |half: &Quantiles| half.quantile(0.5).unwrap_or(0.0);
    let queue = |end: usize| median(&facts.halves[end]) - facts.halves[end].least().unwrap_or(0) as f64;
    let longer = if queue(SERVER) > queue(CLIENT) { SERVER } else { CLIENT };
    let whole: f64 = facts.halves.iter().map(median).sum();
    (queue(longer) > NOTICEABLE * whole).then(|| {
        let share = percent(median(&facts.halves[longer]) / whole);
        let (name, queued) = (end(longer), percent(queue(longer).max(0.0) / whole));
        let rtt = ms(whole / 1e6);
        format!("the path to the {name}, where {share} of the round trip of {rtt} passes (queue {queued})")
    })
}

/// The place of most losses, if there were any.
fn losses(facts: &Facts) -> Option<String> {
    let to = facts.receiver();
    let (count, place) = if facts.lost_behind >= facts.lost_before {
        (facts.lost_behind, format!("between capture point and {}", end(to)))
    } else {
        (facts.lost_before, format!("between {} and capture point", end(1 - to)))
    };
    (count > 0).then(|| format!("losses {place} ({count} segments)"))
}

/// Where the round trip passed.
pub fn round_trip(facts: &Facts) -> String {
    let [client, server] = [CLIENT, SERVER].map(|end| &facts.halves[end]);
    let median = |half: &Quantiles| half.quantile(0.5).map(|ns| ns / 1e6);
    match (median(client), median(server)) {
        (Some(to_client), Some(to_server)) => {
            let whole = to_client + to_server;
            let share = |half: f64| percent(if whole > 0.0 { half / whole } else { 0.0 });
            let least =
                facts.rtt.least().map_or(String::new(), |ns| format!(", at least {}", ms(ns as f64 / 1e6)));
            format!(
                "the round trip takes {}{least}: {} between capture point and client, {} between capture point and server",
                ms(whole),
                share(to_client),
                share(to_server)
            )
        }
        (Some(half), None) => {
            format!("the round trip to the client takes {}; that to the server was not measured", ms(half))
        }
        (None, Some(half)) => {
            format!("the round trip to the server takes {}; that to the client was not measured", ms(half))
        }
        (None, None) => "round trips were not measured".to_owned(),
    }
}
