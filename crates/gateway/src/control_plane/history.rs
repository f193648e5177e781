//! The last hour of a gateway, for its page: rates and gauges every five seconds, and counts of refusals,
//! drops and resets. An hour of samples, of 104 bytes each, takes 0.1 MB at any traffic.

use super::requests::Snapshot;
use crate::counter::{Counter, CounterValues};
use paceline_net::{Duration, Instant};
use paceline_pep::accelerator::BypassReason;
use serde::Serialize;
use std::collections::VecDeque;

/// Time between samples. Chosen: an hour then has about a sample for each pixel of the page's charts.
const INTERVAL: Duration = Duration::from_secs(5);
/// Samples kept: by definition those of an hour.
const SAMPLES: usize = 720;
/// Samples of the five minutes for which the page's state is not green after an event. Chosen: an operator
/// who is called by an alert still sees it.
const RECENT: usize = 60;
/// Counters of refusals, drops and resets. Chosen: those that cost a user something; ACKs that the filter
/// discards and connections whose options exclude acceleration do not.
const TROUBLES: [Counter; 12] = [
    Counter::FlowsReset,
    Counter::Refused,
    Counter::OvershootDrops,
    Counter::UnknownLinks,
    Counter::FilterQueueDrops,
    Counter::FramesLostIn,
    Counter::FramesLostOut,
    Counter::FramesRefused,
    Counter::LeftWithoutPulse,
    Counter::Bypassed(BypassReason::TableFull),
    Counter::Bypassed(BypassReason::DeviceFull),
    Counter::Bypassed(BypassReason::Overload),
];

/// Means over an interval, and gauges at its end.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    down: u64,
    up: u64,
    goodput: u64,
    flows: u64,
    held: u64,
    /// Percent of the segments.
    again: f32,
    troubles: [u32; TROUBLES.len()],
}

/// The samples of the last hour.
#[derive(Debug, Default)]
pub struct History {
    samples: VecDeque<Sample>,
    /// Time and counters at the last sample.
    before: Option<(Instant, CounterValues)>,
}

/// The history as the page gets it: a list for each quantity, the oldest value first.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Lists {
    /// Seconds since the end of the sample's interval.
    pub ago_s: Vec<f64>,
    /// Bytes of frames from servers, in b/s.
    pub down: Vec<u64>,
    /// Bytes of frames from devices, in b/s.
    pub up: Vec<u64>,
    /// Payload that devices acknowledged, in b/s.
    pub goodput: Vec<u64>,
    /// Connections being accelerated.
    pub flows: Vec<u64>,
    /// Bytes buffered.
    pub held: Vec<u64>,
    /// Percent of the segments to devices that were sent again.
    pub again: Vec<f32>,
    /// Packets and connections refused, dropped or reset, per second.
    pub troubles: Vec<f64>,
}

/// A counter of refusals, drops or resets that has risen within the hour.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Trouble {
    /// The counter's name.
    pub counter: &'static str,
    /// The help text of its metric.
    pub help: String,
    /// Count of the last five minutes.
    pub recent: u64,
    /// Count of the last hour.
    pub hour: u64,
}

impl History {
    /// Notes the present snapshot, if the interval is over. To be called about once a second.
    pub fn note(&mut self, at: Instant, snapshot: &Snapshot) {
        let Some((since, before)) = &self.before else {
            self.before = Some((at, snapshot.counters.clone()));
            return;
        };
        let span = at.since(*since);
        if span < INTERVAL {
            return;
        }
        let now = &snapshot.counters;
        let more = |counter: Counter| now.get(counter).saturating_sub(before.get(counter));
        let rate = |counter: Counter| (8.0 * more(counter) as f64 / span.as_secs_f64()) as u64;
        let sent = more(Counter::SegmentsSent) + more(Counter::Retransmissions);
        let sample = Sample {
            at,
            down: rate(Counter::FrameBytesFromServers),
            up: rate(Counter::FrameBytesFromDevices),
            goodput: rate(Counter::BytesDelivered),
            flows: snapshot.flow_count,
            held: snapshot.held,
            again: 100.0 * more(Counter::Retransmissions) as f32 / sent.max(1) as f32,
            troubles: TROUBLES.map(|counter| u32::try_from(more(counter)).unwrap_or(u32::MAX)),
        };
        self.before = Some((at, now.clone()));
        self.samples.push_back(sample);
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
    }
    /// The samples as lists.
    pub fn lists(&self, now: Instant) -> Lists {
        let mut lists = Lists::default();
        for sample in &self.samples {
            lists.ago_s.push(now.since(sample.at).as_secs_f64());
            lists.down.push(sample.down);
            lists.up.push(sample.up);
            lists.goodput.push(sample.goodput);
            lists.flows.push(sample.flows);
            lists.held.push(sample.held);
            lists.again.push(sample.again);
            let all: u64 = sample.troubles.iter().map(|count| u64::from(*count)).sum();
            lists.troubles.push(all as f64 / INTERVAL.as_secs_f64());
        }
        lists
    }
    /// The counters of refusals, drops and resets that have risen within the hour; `counters` are those of
    /// the present, which may be ahead of the last sample.
    pub fn troubles(&self, counters: &CounterValues) -> Vec<Trouble> {
        let trouble = |(index, counter): (usize, &Counter)| {
            let before = self.before.as_ref().map_or(0, |(_, before)| before.get(*counter));
            let unsampled = counters.get(*counter).saturating_sub(before);
            let sum = |samples: usize| {
                let last = self.samples.iter().rev().take(samples);
                unsampled + last.map(|sample| u64::from(sample.troubles[index])).sum::<u64>()
            };
            let (recent, hour) = (sum(RECENT), sum(SAMPLES));
            let help = match counter {
                Counter::Bypassed(reason) => {
                    let reason = reason.name().trim_start_matches("bypassed-").replace('-', " ");
                    format!("Connections that are not accelerated: {reason}")
                }
                counter => counter.help().to_owned(),
            };
            (hour > 0).then_some(Trouble { counter: counter.name(), help, recent, hour })
        };
        TROUBLES.iter().enumerate().filter_map(trouble).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history of so many seconds, with counters that rise as given for each second.
    fn history(seconds: u64, rise: impl Fn(u64) -> Vec<(Counter, u64)>) -> (History, Snapshot, Instant) {
        let (mut history, mut snapshot) = (History::default(), Snapshot::default());
        for second in 0..=seconds {
            snapshot.counters.extend(rise(second));
            history.note(Instant::ZERO + Duration::from_secs(second), &snapshot);
        }
        (history, snapshot, Instant::ZERO + Duration::from_secs(seconds))
    }

    #[test]
    fn rates_are_means_of_five_seconds_and_an_hour_is_kept() {
        let (history, _, now) = history(4000, |_| vec![(Counter::BytesDelivered, 1000)]);
        let lists = history.lists(now);
        assert_eq!(lists.goodput, [8000; SAMPLES]);
        assert_eq!(lists.ago_s.first().copied(), Some(3595.0));
        assert_eq!((lists.ago_s.last().copied(), lists.troubles[0]), (Some(0.0), 0.0));
        let bytes = history.samples.capacity() * size_of::<Sample>();
        assert!(size_of::<Sample>() <= 104 && bytes <= 110_000, "{bytes}");
    }

    #[test]
    fn refusals_drops_and_resets_are_named_for_an_hour() {
        let at = |second: u64| move |now| vec![(Counter::FlowsReset, u64::from(now == second) * 3)];
        let trouble = |seconds: u64, second: u64| {
            let (history, snapshot, _) = history(seconds, at(second));
            history
                .troubles(&snapshot.counters)
                .first()
                .map(|found| (found.counter, found.recent, found.hour))
        };
        assert_eq!(trouble(12, 7), Some(("flows-reset", 3, 3)));
        assert_eq!(trouble(12, 12), Some(("flows-reset", 3, 3)), "at once, ahead of the sample");
        assert_eq!(trouble(400, 7), Some(("flows-reset", 0, 3)));
        assert_eq!(trouble(4000, 7), None);
        let discarded = |_| vec![(Counter::FilterAcksDiscarded, 5)];
        let (history, snapshot, _) = history(100, discarded);
        assert_eq!(history.troubles(&snapshot.counters), []);
    }
}
