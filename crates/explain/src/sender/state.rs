//! The state of a sender.

use super::counts::{Episode, Losses};
use super::view::View;
use crate::causes::{CauseTimes, Flowing, flat_ns};
use crate::quantiles::Quantiles;
use crate::series::Series;
use crate::signs::bunches::Bunches;
use crate::signs::copies::Copies;
use crate::signs::policer::Policer;
use crate::space::Space;
use paceline_net::Instant;
use std::collections::VecDeque;

/// Smallest segment that the default MSS of IPv4 allows (RFC 9293 §3.7.1): the full size where nothing else
/// is known.
const DEFAULT_MSS: u32 = 536;

/// The sender of one direction, as its segments and their ACKs pass the capture point.
#[derive(Clone, Debug, Default)]
pub struct Sender {
    /// Positions of the data.
    pub space: Space,
    /// Segments with data.
    pub segments: u64,
    /// Bytes that passed, each counted once.
    pub bytes: u64,
    /// Segments that were sent again, by reason and place.
    pub losses: Losses,
    /// Times of the first and the last new data.
    pub data_span: Option<(Instant, Instant)>,
    /// Segments with a CE mark.
    pub ce_marks: u64,
    /// ACKs of its data, and those of new data with the bytes that they acknowledged.
    pub acks: u64,
    pub progress_acks: u64,
    pub acked_bytes: u64,
    /// ACKs with ECN-Echo.
    pub ece_acks: u64,
    /// Times at which the window became zero.
    pub zero_windows: u64,
    /// Round trips from the receiver's half with the sender's half added, ns.
    pub rtt: Quantiles,
    /// Bytes in flight and the window while there was data to send, weighted by the time in ns.
    pub flight: Quantiles,
    pub window: Quantiles,
    /// Bunches of ACKs.
    pub bunches: Bunches,
    /// Copies of segments, by which policers and windows that are tracked are found.
    pub copies: Copies,
    /// Acknowledged bytes and round trips over time.
    pub series: Series,
    /// ACKs with SACK blocks, those with blocks outside of the data, and duplicate ACKs.
    pub sack_acks: u64,
    pub sack_outside: u64,
    pub duplicate_acks: u64,
    /// ACKs of a last segment that the receiver delayed.
    pub delayed_acks: u64,
    /// Payload of a full segment that the SYNs allow.
    pub announced: Option<u32>,
    /// Largest payload.
    pub largest: u32,
    /// Segments that are longer than the announced size: merged by the host's interface.
    pub merged: u64,
    /// Smoothed round trip and its variation, ns (RFC 6298 §2).
    pub(super) srtt: Option<(u64, u64)>,
    pub(super) acked: Option<u64>,
    pub(super) duplicates: u32,
    pub(super) sacked: u64,
    pub(super) last_window: Option<u64>,
    /// Window field of the last ACK.
    pub(super) window_field: u16,
    pub(super) probes: VecDeque<(u64, Instant)>,
    pub(super) last_sent: Option<Instant>,
    pub(super) last_heard: Option<Instant>,
    /// The last segment was short, or had PSH.
    pub(super) short: bool,
    pub(super) pushed: bool,
    pub(super) finished: bool,
    pub(super) episode: Option<Episode>,
    pub(super) view: View,
    /// Lifetime by cause, without the flowing part.
    pub(super) times: CauseTimes,
    pub(super) flowing: Flowing,
}

impl Sender {
    /// Payload of a full segment: the largest that was seen, unless all were short.
    pub fn full(&self) -> u32 {
        let announced = self.announced.unwrap_or(DEFAULT_MSS);
        if 2 * self.largest > announced { self.largest } else { announced }.max(1)
    }
    /// Smoothed round trip, ns; zero before the first sample.
    pub fn srtt_ns(&self) -> u64 {
        self.srtt.map_or(0, |(srtt, _)| srtt)
    }
    /// Whether data are in flight and more is to come.
    pub fn is_busy(&self) -> bool {
        self.space.next() > self.view.acked && !self.short && !self.finished
    }
    /// The policer that drops its segments, if one is seen.
    pub fn policer(&self) -> Option<Policer> {
        let least = self.rtt.least()?;
        self.copies.losses.policer(least, flat_ns(least))
    }
    /// Number of pauses and the longest, ns.
    pub fn pauses(&self) -> (u64, u64) {
        self.view.pauses
    }
    /// Whether the receiver's ACKs passed the capture point.
    pub fn has_acks(&self) -> bool {
        self.progress_acks > 0
    }
    /// Frees memory that a closed connection does not need.
    pub fn close(&mut self) {
        self.probes = VecDeque::new();
        self.view.close();
        self.copies.close();
    }
}
