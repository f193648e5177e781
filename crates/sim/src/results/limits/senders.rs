//! Sums over the senders of several connections.

use super::shares::RadioDelays;
use crate::counters::SenderReading;
use crate::results::statistics::ratio;
use paceline_tcp::LimitTimes;

/// Sums over the senders of several connections.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SenderSums {
    pub times: LimitTimes,
    pub flows: u64,
    pub bytes: u64,
    pub segments: u64,
    pub retransmissions: u64,
    pub timeouts: u64,
    pub rtt_ns: u64,
    pub rtt_samples: u64,
    /// Largest window that a receiver has offered, bytes.
    pub window: u64,
    /// Largest send buffer, bytes.
    pub send_buffer: u64,
    /// [`RadioDelays`] in ms, weighted by each connection's number of round-trip times, as their mean is.
    pub radio: RadioDelays,
}

impl SenderSums {
    /// Sums over senders of one connection, whose packets have these mean radio delays.
    pub fn of_connection<'a>(
        senders: impl IntoIterator<Item = &'a SenderReading>,
        radio: &RadioDelays,
    ) -> Self {
        let mut sums = Self { flows: 1, ..Self::default() };
        for sender in senders {
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
    /// Whether there was a sender.
    pub fn any(&self) -> bool {
        !self.times.life().is_zero()
    }
    /// Adds other sums.
    pub fn add(&mut self, other: &Self) {
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
    pub fn rtt_ms(&self) -> f64 {
        ratio(self.rtt_ns, self.rtt_samples) / 1e6
    }
    /// Radio delays as shares of this mean.
    pub fn round_trip(&self) -> RadioDelays {
        let samples = self.rtt_samples as f64;
        let mean = self.radio.map(|sum| if self.rtt_samples == 0 { 0.0 } else { sum / samples });
        mean.shares_of(self.rtt_ms())
    }
    /// Payload rate over the connections' lifetimes, b/s.
    pub fn rate(&self) -> f64 {
        let seconds = self.times.life().as_secs_f64();
        if seconds > 0.0 { self.bytes as f64 * 8.0 / seconds } else { 0.0 }
    }
}
