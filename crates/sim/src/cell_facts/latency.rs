//! One-way latencies of an idle cell (`paceline_ran::nr::timing::latency`) and HARQ round trips.
//!
//! A packet of NR waits N2/2 before its slot and N1/2 for its decoding, as in TR 37.910; in LTE the delay
//! after the subframe is `cell.decode_delay`. A base station with a lead prepares a downlink slot within it.
//! A scheduling request has one occasion in every `cell.sr_period`.

use super::terms::{self, Term};
use crate::scenario::{self, CellPlan};
use paceline_ran::nr::timing::latency::{self, Latency, Preparation};
use paceline_ran::{Rat, SlotClock};
use serde::Serialize;

/// Latencies from the arrival of a packet at the transmitter to its decoding.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Latencies {
    /// Downlink.
    pub downlink: Span,
    /// Uplink with a configured grant in every uplink slot; none in LTE.
    pub uplink_with_configured_grant: Option<Span>,
    /// Period of the scheduling requests.
    pub sr_period_ms: f64,
    /// Uplink by a scheduling request: the first PUSCH, which carries a buffer status report and what fits.
    pub uplink_first_pusch: Span,
    /// Uplink by a scheduling request: the data that the report obtains.
    pub uplink_data: Span,
    /// From a downlink block to its earliest retransmission.
    pub downlink_harq: Span,
    /// From an uplink block to its earliest retransmission.
    pub uplink_harq: Span,
    /// The parts of the mean latencies of the downlink and of the first PUSCH, with the clause or the key of
    /// each.
    pub terms: Vec<Term>,
    /// The parts of the path beside the cell, which no latency above contains.
    pub path_terms: Vec<Term>,
}

/// Mean and maximum, over the arrivals of packets or over the slots of a period.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Span {
    /// Mean.
    pub mean_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

impl From<Latency> for Span {
    fn from(latency: Latency) -> Self {
        Self { mean_ms: latency.mean_ms, max_ms: latency.max_ms }
    }
}

impl Latencies {
    pub(super) fn of(plan: &CellPlan, cell: &scenario::Cell) -> Self {
        let timing = &plan.timing;
        let clock = SlotClock::new(plan.numerology);
        let times = match &plan.rat {
            Rat::Lte => Preparation { before: 0.0, after: clock.span(cell.decode_delay).0 as f64 },
            Rat::Nr(nr) => Preparation::of(nr.capability, timing),
        };
        // Occasions stand in uplink slots: in periods of whole patterns.
        let sr = clock.span(cell.sr_period).0.next_multiple_of(timing.period() as u64);
        let [first, data] = latency::uplink_by_request(timing, times, sr);
        let slot_ms = 1000.0 * plan.numerology.slot_seconds();
        let lead = cell.lead();
        let lead_slots = f64::from(lead.slots) + lead.radio.as_millis_f64() / slot_ms;
        let of_gnb = if lead_slots > 0.0 { Preparation { before: lead_slots, ..times } } else { times };
        let period = timing.period() as u64;
        let trips = |of: &dyn Fn(u64) -> Option<u64>| {
            let spans: Vec<f64> = (0..period).filter_map(of).map(|slots| slots as f64 * slot_ms).collect();
            let mean_ms = spans.iter().sum::<f64>() / spans.len() as f64;
            Span { mean_ms, max_ms: spans.iter().copied().fold(0.0, f64::max) }
        };
        let configured = matches!(plan.rat, Rat::Nr(_));
        Self {
            downlink: latency::downlink(timing, of_gnb).into(),
            uplink_with_configured_grant: configured
                .then(|| latency::uplink_with_grant(timing, times).into()),
            sr_period_ms: sr as f64 * slot_ms,
            uplink_first_pusch: first.into(),
            uplink_data: data.into(),
            downlink_harq: trips(&|slot| timing.downlink_round_trip(slot)),
            uplink_harq: trips(&|slot| timing.uplink_round_trip(slot)),
            terms: terms::of(plan, cell, times, sr),
            path_terms: Vec::new(),
        }
    }
}
