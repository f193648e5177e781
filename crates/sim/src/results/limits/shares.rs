//! The limits of TCP: shares of the senders' lifetimes, and where the round-trip time is spent in the radio.
//!
//! A connection's lifetime, from its first SYN to its last acknowledgment or the end of the run, is divided
//! among the limits of its sender ([`paceline_tcp::Limit`]). These are exact times, and their shares add up
//! to 1. For a sender that is limited by a window, the round-trip time matters: the cell measures the mean
//! time of a packet in each buffer and of a transport block in HARQ, stated here as shares of the
//! connection's mean round-trip time. The rest of the round-trip time is the wired path with its queues,
//! delayed ACKs, and RLC reordering.

use crate::counters::Counters;
use crate::results::statistics::{mean_ms, ratio};
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
    /// Shares of a round-trip time in ms; zeros if it is zero. They add up to at most 1: the mean delays
    /// include packets that were lost later. Where they add up to more than the round-trip time of those that
    /// were acknowledged, they are shares of their sum.
    pub(crate) fn shares_of(&self, rtt_ms: f64) -> Self {
        let whole = rtt_ms.max(self.uplink() + self.downlink());
        self.map(|delay_ms| if rtt_ms > 0.0 { delay_ms / whole } else { 0.0 })
    }
    pub(in crate::results) fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        self.zip_with(self, |own, _| f(own))
    }
    pub(in crate::results) fn zip_with(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            downlink_queue: f(self.downlink_queue, other.downlink_queue),
            grant: f(self.grant, other.grant),
            uplink_queue: f(self.uplink_queue, other.uplink_queue),
            downlink_harq: f(self.downlink_harq, other.downlink_harq),
            uplink_harq: f(self.uplink_harq, other.uplink_harq),
        }
    }
    /// All parts of the uplink.
    pub(in crate::results) fn uplink(&self) -> f64 {
        self.grant + self.uplink_queue + self.uplink_harq
    }
    /// All parts of the downlink.
    pub(in crate::results) fn downlink(&self) -> f64 {
        self.downlink_queue + self.downlink_harq
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_round_trip_add_up_to_at_most_one() {
        let delays = RadioDelays {
            downlink_queue: 30.0,
            grant: 10.0,
            uplink_queue: 5.0,
            downlink_harq: 4.0,
            uplink_harq: 1.0,
        };
        let sum = |rtt_ms| delays.shares_of(rtt_ms).values().iter().sum::<f64>();
        assert_eq!([100.0, 0.0].map(sum), [0.5, 0.0]);
        assert_eq!(delays.shares_of(20.0).downlink_queue, 0.6, "of 50 ms, the sum of all parts");
        assert!([20.0, 49.0, 50.0].iter().all(|rtt_ms| (sum(*rtt_ms) - 1.0).abs() < 1e-12));
    }
}
