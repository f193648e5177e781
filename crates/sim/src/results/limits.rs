//! Why TCP is slow here: what the senders waited for, and where the round trip passes in the radio.
//!
//! A connection's life, from its first SYN to the last acknowledgment or the end of the run, is divided among
//! the things that kept its sender from sending more ([`paceline_tcp::Limit`]): exact times, whose shares sum
//! to 1. Where a window is what it waits for, the next question is where the round trip passes. The cell
//! measures the mean time of a packet in each buffer and of a block in HARQ; these are stated as shares of
//! the connection's mean round-trip time. What is left is the wires and the hops with their queues, the
//! servers, delayed ACKs and RLC's reordering.

use super::statistics::ratio;
use crate::counters::{ConnectionReading, Counters};
use paceline_tcp::{Limit, LimitTimes};
use serde::{Deserialize, Serialize};

macro_rules! shares {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: f64,)*
        }
        impl $name {
            /// The names of all shares, in order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];
            /// Their values, in this order.
            pub fn values(&self) -> Vec<f64> {
                vec![$(self.$field),*]
            }
        }
    };
}

shares! {
    /// Shares of connections' lives by what their senders waited for; the sum is 1 where there was a
    /// connection.
    LimitShares {
        /// Opening the connection.
        handshake,
        /// The application had written no more.
        application,
        /// The send buffer was full of what was not acknowledged.
        send_buffer,
        /// The receiver's window was used up.
        receive_window,
        /// The congestion window was used up.
        congestion_window,
        /// The next segment was not due by its spacing.
        pacing,
        /// Fast recovery was under way.
        recovery,
        /// Nothing came until the retransmission timer expired, or the repair after it was under way.
        timeout,
    }
}

impl LimitShares {
    /// The shares of these times.
    pub fn new(times: &LimitTimes) -> Self {
        Self {
            handshake: times.share(Limit::Handshake),
            application: times.share(Limit::Application),
            send_buffer: times.share(Limit::SendBuffer),
            receive_window: times.share(Limit::ReceiveWindow),
            congestion_window: times.share(Limit::CongestionWindow),
            pacing: times.share(Limit::Pacing),
            recovery: times.share(Limit::Recovery),
            timeout: times.share(Limit::Timeout),
        }
    }
}

shares! {
    /// Mean times that the packets of a station spend in the radio, ms.
    RadioDelays {
        /// A packet in the eNB's buffer.
        downlink_queue,
        /// A packet in the station's buffer while it waits for the first block since the buffer was empty:
        /// scheduling request, grant, random access.
        grant,
        /// A packet in the station's buffer otherwise.
        uplink_queue,
        /// A downlink block from its first transmission to the one that is decoded.
        downlink_harq,
        /// An uplink block likewise.
        uplink_harq,
    }
}

impl RadioDelays {
    /// What these counters say.
    pub(crate) fn new(c: &Counters) -> Self {
        // Packets that a filter discards wait for a grant too, and leave no more.
        let uplink_queue = c.uplink_buffer_wait_ns.saturating_sub(c.grant_wait_ns);
        Self {
            downlink_queue: ratio(c.downlink_buffer_wait_ns, c.downlink_packets) / 1e6,
            grant: ratio(c.grant_wait_ns, c.uplink_packets) / 1e6,
            uplink_queue: ratio(uplink_queue, c.uplink_packets) / 1e6,
            downlink_harq: ratio(c.downlink_harq_wait_ttis, c.downlink_blocks),
            uplink_harq: ratio(c.uplink_harq_wait_ttis, c.uplink_blocks),
        }
    }
    /// As shares of a round-trip time in ms; zeros without one. None is above 1: packets that were lost may
    /// have waited longer than any that was acknowledged.
    pub(crate) fn shares_of(&self, rtt_ms: f64) -> Self {
        let share = |wait: f64| if rtt_ms > 0.0 { (wait / rtt_ms).min(1.0) } else { 0.0 };
        Self {
            downlink_queue: share(self.downlink_queue),
            grant: share(self.grant),
            uplink_queue: share(self.uplink_queue),
            downlink_harq: share(self.downlink_harq),
            uplink_harq: share(self.uplink_harq),
        }
    }
    fn uplink(&self) -> f64 {
        self.grant + self.uplink_queue + self.uplink_harq
    }
    fn downlink(&self) -> f64 {
        self.downlink_queue + self.downlink_harq
    }
}

/// What several connections waited for: their sums.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SenderSums {
    pub(crate) times: LimitTimes,
    pub(crate) flows: u64,
    pub(crate) bytes: u64,
    pub(crate) segments: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) rtt_ns: u64,
    pub(crate) rtt_samples: u64,
    /// Largest window that a receiver has offered.
    pub(crate) window: u64,
    pub(crate) send_buffer: u64,
    /// [`RadioDelays`] for each measured round-trip time, summed: a connection counts as often as in their
    /// mean.
    pub(crate) radio: [f64; 5],
}

impl SenderSums {
    /// Sums over the ends of one connection, whose station's packets had these mean radio delays.
    pub(crate) fn of_connection(connection: &ConnectionReading, radio: &RadioDelays) -> Self {
        let mut sums = Self { flows: 1, ..Self::default() };
        for sender in &connection.senders {
            sums.times.add(&sender.times);
            sums.bytes += sender.bytes_acked;
            sums.segments += sender.segments;
            sums.retransmissions += sender.retransmissions;
            sums.timeouts += sender.timeouts;
            sums.rtt_ns += sender.rtt_ns;
            sums.rtt_samples += sender.rtt_samples;
            sums.window = sums.window.max(sender.window_bytes);
            sums.send_buffer = sums.send_buffer.max(sender.send_buffer_bytes);
        }
        let samples = sums.rtt_samples as f64;
        sums.radio.iter_mut().zip(radio.values()).for_each(|(sum, delay)| *sum = delay * samples);
        sums
    }
    /// Whether there was a connection.
    pub(crate) fn any(&self) -> bool {
        !self.times.life().is_zero()
    }
    /// Adds others.
    pub(crate) fn add(&mut self, other: &Self) {
        self.times.add(&other.times);
        self.flows += other.flows;
        self.bytes += other.bytes;
        self.segments += other.segments;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.rtt_ns += other.rtt_ns;
        self.rtt_samples += other.rtt_samples;
        self.window = self.window.max(other.window);
        self.send_buffer = self.send_buffer.max(other.send_buffer);
        self.radio.iter_mut().zip(other.radio).for_each(|(sum, wait)| *sum += wait);
    }
    /// Mean round-trip time, ms.
    pub(crate) fn rtt_ms(&self) -> f64 {
        ratio(self.rtt_ns, self.rtt_samples) / 1e6
    }
    /// Where it passes.
    pub(crate) fn round_trip(&self) -> RadioDelays {
        let [downlink_queue, grant, uplink_queue, downlink_harq, uplink_harq] =
            self.radio.map(|sum| if self.rtt_samples == 0 { 0.0 } else { sum / self.rtt_samples as f64 });
        let waits = RadioDelays { downlink_queue, grant, uplink_queue, downlink_harq, uplink_harq };
        waits.shares_of(self.rtt_ms())
    }
    /// Payload bits per second of connections' lives.
    fn rate(&self) -> f64 {
        let seconds = self.times.life().as_secs_f64();
        if seconds > 0.0 { self.bytes as f64 * 8.0 / seconds } else { 0.0 }
    }

    /// The verdict in a sentence without its subject.
    pub(crate) fn verdict(&self) -> String {
        let share = |limit: &Limit| self.times.share(*limit);
        let first = Limit::ALL.into_iter().max_by(|a, b| share(a).total_cmp(&share(b)));
        let first = first.expect("there are some");
        let percent = percent(share(&first));
        let by_window = matches!(
            first,
            Limit::ReceiveWindow | Limit::CongestionWindow | Limit::SendBuffer | Limit::Recovery
        );
        let tcp = format!("{} {percent} of the time ({})", self.name(first), self.reason(first));
        match self.radio_reason().filter(|_| by_window) {
            Some(radio) => format!("limited by the {radio}; {tcp}"),
            None => tcp,
        }
    }
    fn name(&self, limit: Limit) -> &'static str {
        match limit {
            Limit::Handshake => "connecting",
            Limit::Application => "without data to send",
            Limit::SendBuffer => "limited by the send buffer",
            Limit::ReceiveWindow => "limited by the receive window",
            Limit::CongestionWindow => "limited by the congestion window",
            Limit::Pacing => "limited by pacing",
            Limit::Recovery => "repairing losses",
            Limit::Timeout => "waiting for time-outs",
        }
    }
    fn reason(&self, limit: Limit) -> String {
        let rtt = self.rtt_ms();
        let per_round_trip = |window: u64| {
            let rate = if rtt > 0.0 { window as f64 * 8.0 / (rtt / 1e3) } else { 0.0 };
            format!("{} at {} is {}", bytes(window as f64), ms(rtt), bit_rate(rate))
        };
        match limit {
            Limit::ReceiveWindow => per_round_trip(self.window),
            Limit::SendBuffer => per_round_trip(self.send_buffer),
            Limit::CongestionWindow => per_round_trip((self.rate() / 8.0 * rtt / 1e3) as u64),
            Limit::Pacing => format!("{} at {}", bit_rate(self.rate()), ms(rtt)),
            Limit::Application => format!("it wrote {}", bit_rate(self.rate())),
            Limit::Recovery => {
                format!("{} of the segments sent again", percent(ratio(self.retransmissions, self.segments)))
            }
            Limit::Timeout => format!("{} of them", self.timeouts),
            Limit::Handshake => {
                let each = self.times.of(Limit::Handshake).as_millis_f64() / self.flows.max(1) as f64;
                format!("{} each", ms(each))
            }
        }
    }
    /// What of the radio makes up most of the round trip.
    fn radio_reason(&self) -> Option<String> {
        let shares = self.round_trip();
        let told = |name: &str, whole: f64, parts: &[(&str, f64)]| {
            let parts: Vec<String> =
                parts.iter().map(|(part, share)| format!("{part} {}", percent(*share))).collect();
            let (whole, rtt) = (percent(whole.min(1.0)), ms(self.rtt_ms()));
            format!("{name}, where {whole} of the round trip of {rtt} passes ({})", parts.join(", "))
        };
        if shares.uplink() > 0.5 {
            let parts =
                [("queue", shares.uplink_queue), ("grants", shares.grant), ("HARQ", shares.uplink_harq)];
            return Some(told("uplink", shares.uplink(), &parts));
        }
        let parts = [("queue", shares.downlink_queue), ("HARQ", shares.downlink_harq)];
        (shares.downlink() > 0.5).then(|| told("downlink", shares.downlink(), &parts))
    }
}

/// What the connections of one group of stations waited for, over all runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupResult {
    /// Index of the group, its `[[station]]` table.
    pub group: usize,
    /// Stations in it.
    pub stations: u64,
    /// Connections, over all runs.
    pub flows: u64,
    /// Mean round-trip time that the senders measured, ms.
    pub rtt_mean_ms: f64,
    /// Shares of their lives.
    pub limits: LimitShares,
    /// Shares of the round-trip time.
    pub round_trip: RadioDelays,
    /// The answer in words.
    pub verdict: String,
}

impl GroupResult {
    pub(crate) fn new(group: usize, stations: u64, waits: &SenderSums) -> Self {
        Self {
            group,
            stations,
            flows: waits.flows,
            rtt_mean_ms: waits.rtt_ms(),
            limits: LimitShares::new(&waits.times),
            round_trip: waits.round_trip(),
            verdict: waits.verdict(),
        }
    }
}

fn percent(share: f64) -> String {
    let decimals = if share < 0.01 && share > 0.0 { 2 } else { 0 };
    format!("{:.decimals$}%", 100.0 * share)
}
fn ms(ms: f64) -> String {
    let decimals = usize::from(ms < 10.0);
    format!("{ms:.decimals$} ms")
}
/// Three digits and a unit, in steps of `step`.
fn scaled(value: f64, step: f64, units: [&str; 4]) -> String {
    let mut value = value;
    let mut unit = 0;
    while value >= step && unit < 3 {
        value /= step;
        unit += 1;
    }
    let decimals = usize::from(value < 10.0 && unit > 0);
    format!("{value:.decimals$} {}", units[unit])
}
fn bytes(count: f64) -> String {
    scaled(count, 1000.0, ["B", "kB", "MB", "GB"])
}
fn bit_rate(rate: f64) -> String {
    scaled(rate, 1000.0, ["b/s", "kb/s", "Mb/s", "Gb/s"])
}
