//! The limits of TCP: shares of the senders' lifetimes, and where the round-trip time is spent in the radio.
//!
//! A connection's lifetime, from its first SYN to its last acknowledgment or the end of the run, is divided
//! among the limits of its sender ([`paceline_tcp::Limit`]). These are exact times, and their shares add up
//! to 1. For a sender that is limited by a window, the round-trip time matters: the cell measures the mean
//! time of a packet in each buffer and of a transport block in HARQ, stated here as shares of the
//! connection's mean round-trip time. The rest of the round-trip time is the wired path with its queues,
//! delayed ACKs, and RLC reordering.

use super::statistics::{mean_ms, ratio};
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
            /// Names of all fields, in order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];
            /// Values of all fields, in this order.
            pub fn values(&self) -> Vec<f64> {
                vec![$(self.$field),*]
            }
        }
    };
}

shares! {
    /// Shares of the lifetimes of connections, by the limit of the sender. They add up to 1 if there was a
    /// connection.
    LimitShares {
        /// The handshake was not complete.
        handshake,
        /// All data that the application had written was sent.
        application,
        /// The send buffer was full of unacknowledged data.
        send_buffer,
        /// The receiver's window was used up.
        receive_window,
        /// The congestion window was used up.
        congestion_window,
        /// Pacing delayed the next segment.
        pacing,
        /// The sender was in fast recovery.
        recovery,
        /// The sender waited for its retransmission timer, or was in recovery after its expiry.
        timeout,
    }
}

impl LimitShares {
    /// Shares of times.
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
    /// Mean delays of a station's packets in the radio access, ms; or these as shares of a round-trip time.
    RadioDelays {
        /// Time of a packet in the eNB's downlink buffer.
        downlink_queue,
        /// Time of a packet in the station's uplink buffer until the first transport block after the buffer
        /// was empty: scheduling request, grant, random access.
        grant,
        /// Other time of a packet in the station's uplink buffer.
        uplink_queue,
        /// Time of a downlink transport block from its first to its last transmission.
        downlink_harq,
        /// Time of an uplink transport block from its first to its last transmission.
        uplink_harq,
    }
}

impl RadioDelays {
    /// Delays from counters.
    pub(crate) fn new(c: &Counters) -> Self {
        // The grant wait includes ACKs that the filter discards later, which the buffer wait does not.
        let uplink_queue = c.uplink_buffer_wait_ns.saturating_sub(c.grant_wait_ns);
        Self {
            downlink_queue: ratio(c.downlink_buffer_wait_ns, c.downlink_packets) / 1e6,
            grant: ratio(c.grant_wait_ns, c.uplink_packets) / 1e6,
            uplink_queue: ratio(uplink_queue, c.uplink_packets) / 1e6,
            downlink_harq: mean_ms(c.downlink_harq_wait_ns, c.downlink_blocks),
            uplink_harq: mean_ms(c.uplink_harq_wait_ns, c.uplink_blocks),
        }
    }
    /// Shares of a round-trip time in ms; zeros if it is zero. A share is at most 1: the mean delays include
    /// packets that were lost later, and may exceed the round-trip time of those that were acknowledged.
    pub(crate) fn shares_of(&self, rtt_ms: f64) -> Self {
        self.map(|delay_ms| if rtt_ms > 0.0 { (delay_ms / rtt_ms).min(1.0) } else { 0.0 })
    }
    fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        self.zip_with(self, |own, _| f(own))
    }
    fn zip_with(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            downlink_queue: f(self.downlink_queue, other.downlink_queue),
            grant: f(self.grant, other.grant),
            uplink_queue: f(self.uplink_queue, other.uplink_queue),
            downlink_harq: f(self.downlink_harq, other.downlink_harq),
            uplink_harq: f(self.uplink_harq, other.uplink_harq),
        }
    }
    fn uplink(&self) -> f64 {
        self.grant + self.uplink_queue + self.uplink_harq
    }
    fn downlink(&self) -> f64 {
        self.downlink_queue + self.downlink_harq
    }
}

/// Sums over the senders of several connections.
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
    /// Largest window that a receiver has offered, bytes.
    pub(crate) window: u64,
    /// Largest send buffer, bytes.
    pub(crate) send_buffer: u64,
    /// [`RadioDelays`] in ms, weighted by each connection's number of round-trip times, as their mean is.
    pub(crate) radio: RadioDelays,
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
        sums.radio = radio.map(|delay_ms| delay_ms * samples);
        sums
    }
    /// Whether there was a connection.
    pub(crate) fn any(&self) -> bool {
        !self.times.life().is_zero()
    }
    /// Adds other sums.
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
        self.radio = self.radio.zip_with(&other.radio, |sum, more| sum + more);
    }
    /// Mean round-trip time, ms.
    pub(crate) fn rtt_ms(&self) -> f64 {
        ratio(self.rtt_ns, self.rtt_samples) / 1e6
    }
    /// Radio delays as shares of this mean.
    pub(crate) fn round_trip(&self) -> RadioDelays {
        let samples = self.rtt_samples as f64;
        let mean = self.radio.map(|sum| if self.rtt_samples == 0 { 0.0 } else { sum / samples });
        mean.shares_of(self.rtt_ms())
    }
    /// Payload rate over the connections' lifetimes, b/s.
    fn rate(&self) -> f64 {
        let seconds = self.times.life().as_secs_f64();
        if seconds > 0.0 { self.bytes as f64 * 8.0 / seconds } else { 0.0 }
    }

    /// The verdict: a sentence without its subject, the connections.
    pub(crate) fn verdict(&self) -> String {
        let share = |limit: &Limit| self.times.share(*limit);
        let largest = Limit::ALL.into_iter().max_by(|a, b| share(a).total_cmp(&share(b)));
        let largest = largest.expect("there are limits");
        let percent = percent(share(&largest));
        let by_window = matches!(
            largest,
            Limit::ReceiveWindow | Limit::CongestionWindow | Limit::SendBuffer | Limit::Recovery
        );
        let tcp = format!("{} {percent} of the time ({})", limit_name(largest), self.reason(largest));
        match self.radio_reason().filter(|_| by_window) {
            Some(radio) => format!("limited by the {radio}; {tcp}"),
            None => tcp,
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
    /// The direction of the radio in which packets spend most of the round-trip time, if there is one.
    fn radio_reason(&self) -> Option<String> {
        let shares = self.round_trip();
        let sentence = |name: &str, sum: f64, parts: &[(&str, f64)]| {
            let parts: Vec<String> =
                parts.iter().map(|(part, share)| format!("{part} {}", percent(*share))).collect();
            let (sum, rtt) = (percent(sum.min(1.0)), ms(self.rtt_ms()));
            format!("{name}, where {sum} of the round trip of {rtt} passes ({})", parts.join(", "))
        };
        if shares.uplink() > 0.5 {
            let parts =
                [("queue", shares.uplink_queue), ("grants", shares.grant), ("HARQ", shares.uplink_harq)];
            return Some(sentence("uplink", shares.uplink(), &parts));
        }
        let parts = [("queue", shares.downlink_queue), ("HARQ", shares.downlink_harq)];
        (shares.downlink() > 0.5).then(|| sentence("downlink", shares.downlink(), &parts))
    }
}

/// The limit as a part of a sentence.
fn limit_name(limit: Limit) -> &'static str {
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
fn percent(share: f64) -> String {
    let decimals = if share < 0.01 && share > 0.0 { 2 } else { 0 };
    format!("{:.decimals$}%", 100.0 * share)
}
fn ms(ms: f64) -> String {
    let decimals = usize::from(ms < 10.0);
    format!("{ms:.decimals$} ms")
}
/// A value with the largest unit in which it is at least 1; `step` is the ratio of the units.
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
