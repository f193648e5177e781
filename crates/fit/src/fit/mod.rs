//! The fit: estimates of all quantities from all inputs, and those that the inputs do not show.

mod logs;
mod slots;

use crate::capture::{Captures, Flow};
use crate::estimate::capacity::{self, WINDOW, WindowRate};
use crate::estimate::pattern::Slots;
use crate::estimate::{Confidence, Estimate, buffer, delays, quantile, sr};
use crate::log::{Format, Series};
use crate::path::Path;
use crate::uplink;
use serde::{Serialize, Serializer};

/// Share of the round trip towards one end below which a capture was made near it. Must match that of
/// `paceline explain`.
const NEAR: f64 = 0.125;

/// Windows with a long queue from which on others do not count for the pattern. Chosen: half a second has
/// some hundred deliveries.
const FULL_WINDOWS: usize = 5;

/// The place of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// Near the server.
    NearServer,
    /// Near the client.
    NearClient,
    /// Between both.
    Between,
    /// Unknown.
    Unknown,
}

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    /// Inputs, and the format that each was recognised as.
    pub inputs: Vec<String>,
    /// Place of the capture that most estimates come from.
    pub position: Position,
    /// `download` or `upload`: the direction of most data.
    pub direction: &'static str,
    /// Least round trip, ms.
    pub base_rtt_ms: Option<Estimate<f64>>,
    /// Part of it between the capture point and the server, ms.
    pub server_side_ms: Option<Estimate<f64>>,
    /// Part of it between the capture point and the client, ms.
    pub client_side_ms: Option<Estimate<f64>>,
    /// 95th percentile of the round trip above the least one, without a queue, ms.
    pub jitter_ms: Option<Estimate<f64>>,
    /// Capacity in the direction of the data, Mb/s of datagrams.
    pub capacity_mbps: Option<Estimate<f64>>,
    /// Buffer at the bottleneck, bytes.
    pub buffer_bytes: Option<Estimate<f64>>,
    /// Share of the segments that were lost without a full buffer, percent.
    pub loss_percent: Option<Estimate<f64>>,
    /// TDD pattern, or FDD.
    #[serde(serialize_with = "named")]
    pub pattern: Option<Estimate<Slots>>,
    /// Period of scheduling requests, ms.
    pub sr_period_ms: Option<Estimate<f64>>,
    /// Mean SINR of the downlink, dB.
    pub sinr_db: Option<Estimate<f64>>,
    /// Its standard deviation, dB.
    pub sinr_deviation_db: Option<Estimate<f64>>,
    /// Mean SINR of the uplink, dB.
    pub uplink_sinr_db: Option<Estimate<f64>>,
    /// Mean MCS index of the downlink.
    pub mcs: Option<Estimate<f64>>,
    /// Most resource blocks of the downlink.
    pub prb: Option<Estimate<f64>>,
    /// Whether the cell is NR, where a file tells.
    pub is_nr: Option<bool>,
    /// Rates over time.
    pub rates: Vec<WindowRate>,
    /// Round trips over time: s, ms.
    pub rtts: Vec<(f64, f64)>,
    /// Quantities that the inputs do not show, and why.
    pub unknown: Vec<String>,
    /// Inputs that contradict each other.
    pub conflicts: Vec<String>,
    /// Statements about the inputs.
    pub notes: Vec<String>,
}

fn named<S: Serializer>(pattern: &Option<Estimate<Slots>>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Named<'a> {
        value: String,
        letters: &'a str,
        slot_ms: f64,
        period_ms: f64,
        confidence: Confidence,
        from: &'a str,
    }
    let named = pattern.as_ref().map(|Estimate { value, confidence, from }| Named {
        value: value.name(),
        letters: &value.letters,
        slot_ms: value.slot_ms,
        period_ms: value.period_ms(),
        confidence: *confidence,
        from,
    });
    named.serialize(serializer)
}

/// Of two estimates the more certain one; the first of equals.
fn better<T>(a: Option<Estimate<T>>, b: Option<Estimate<T>>) -> Option<Estimate<T>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.confidence > a.confidence { b } else { a }),
        (a, b) => a.or(b),
    }
}

impl Fit {
    pub(crate) fn of(captures: &Captures, logs: &[(String, Format, Series)], inputs: Vec<String>) -> Self {
        let mut fit = Self {
            inputs,
            position: Position::Unknown,
            direction: "download",
            base_rtt_ms: None,
            server_side_ms: None,
            client_side_ms: None,
            jitter_ms: None,
            capacity_mbps: None,
            buffer_bytes: None,
            loss_percent: None,
            pattern: None,
            sr_period_ms: None,
            sinr_db: None,
            sinr_deviation_db: None,
            uplink_sinr_db: None,
            mcs: None,
            prb: None,
            is_nr: None,
            rates: Vec::new(),
            rtts: Vec::new(),
            unknown: Vec::new(),
            conflicts: Vec::new(),
            notes: captures.notes.clone(),
        };
        let paths = Path::all(captures);
        if let Some(path) = paths.first() {
            fit.direction = if path.from == 0 { "upload" } else { "download" };
        }
        for path in &paths {
            fit.add_path(captures, path);
        }
        for point in 0..captures.points.len() {
            let pattern_ms = fit.pattern.as_ref().map(|pattern| pattern.value.period_ms());
            let halves = delays::halves(captures, point);
            for idle in uplink::idle(captures, point, &halves) {
                fit.sr_period_ms = better(fit.sr_period_ms.take(), sr::find(&idle.trips, pattern_ms));
            }
        }
        for point in 0..captures.points.len() {
            fit.add_delays(captures, point);
        }
        for (name, format, series) in logs {
            fit.add_log(name, *format, series);
        }
        fit.say_unknown();
        fit
    }
    /// Delays at a capture point: those of packets that met an idle path where there are some, else the
    /// least.
    fn add_delays(&mut self, captures: &Captures, point: usize) {
        let halves = delays::halves(captures, point);
        let is_cell = self.sr_period_ms.is_some()
            || captures.flows.iter().filter(|flow| flow.point == point).any(slots::is_slotted);
        let found = delays::least(
            &halves,
            &uplink::idle(captures, point, &halves),
            self.sr_period_ms.as_ref(),
            is_cell,
        );
        let Some([client, server]) = found else { return };
        let confidence = client.confidence.min(server.confidence);
        let total = client.value + server.value;
        let is_better = self.base_rtt_ms.as_ref().is_none_or(|known| {
            confidence > known.confidence || confidence == known.confidence && total < known.value
        });
        if !is_better {
            return;
        }
        let name = &captures.points[point].name;
        let from =
            format!("towards the client {}; towards the server {}; at {name}", client.from, server.from);
        self.base_rtt_ms = Some(Estimate::new(total, confidence, from));
        self.position = match (server.value, client.value) {
            (server, _) if server <= NEAR * total => Position::NearServer,
            (_, client) if client <= NEAR * total => Position::NearClient,
            _ => Position::Between,
        };
        let start = captures.start.unwrap_or(0);
        let longest = usize::from(halves[1].samples.len() > halves[0].samples.len());
        let other = if longest == 0 { server.value } else { client.value };
        self.rtts = halves[longest]
            .samples
            .iter()
            .map(|(at, rtt)| (at.saturating_sub(start) as f64 / 1e9, *rtt as f64 / 1e6 + other))
            .collect();
        self.rtts.sort_by(|a, b| a.0.total_cmp(&b.0));
        (self.client_side_ms, self.server_side_ms) = (Some(client), Some(server));
    }
    fn add_path(&mut self, captures: &Captures, path: &Path) {
        let start = captures.start.unwrap_or(0);
        let windows = capacity::windows(path, start);
        let capacity = capacity::capacity(&windows);
        let has_full = windows.iter().filter(|window| window.full).count() >= FULL_WINDOWS;
        let is_busy = |at: u64| {
            windows
                .get((at.saturating_sub(start) / WINDOW) as usize)
                .is_some_and(|window| window.full || !has_full && window.queued)
        };
        let found = buffer::find(path);
        if found.overflows == 0 && found.longest > 0.0 {
            let text = format!("buffer: never full; the longest queue had {:.0} kB", found.longest / 1e3);
            self.unknown.push(text);
        }
        self.add_loss(path, &found);
        self.buffer_bytes = better(self.buffer_bytes.take(), found.buffer);
        if self.rates.is_empty() || better(self.capacity_mbps.clone(), capacity.clone()) != self.capacity_mbps
        {
            self.rates.clone_from(&windows);
        }
        self.capacity_mbps = better(self.capacity_mbps.take(), capacity);
        self.add_jitter(captures, path, &windows);
        let pattern = slots::by_arrivals(path, &is_busy);
        self.pattern = better(self.pattern.take(), pattern);
        let mut flows: Vec<&Flow> = captures.flows.iter().filter(|flow| flow.point == path.point).collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(flow.main().1.bytes));
        for flow in flows {
            self.pattern = better(self.pattern.take(), slots::by_timestamps(flow, path, &is_busy));
        }
    }
    fn add_loss(&mut self, path: &Path, found: &buffer::Found) {
        let segments = path.segments.max(1) as f64;
        let share = 100.0 * found.other_losses as f64 / segments;
        let confidence = match (&found.buffer, path.segments) {
            (Some(buffer), 1000..) if buffer.confidence.is_claim() => Confidence::Medium,
            (None, 1000..) => Confidence::Medium,
            _ => Confidence::Low,
        };
        let from = format!(
            "{} of {} segments lost, {} times without a full buffer",
            path.lost, path.segments, found.other_losses
        );
        self.loss_percent = better(self.loss_percent.take(), Some(Estimate::new(share, confidence, from)));
    }
    fn add_jitter(&mut self, captures: &Captures, path: &Path, windows: &[WindowRate]) {
        let start = captures.start.unwrap_or(0);
        let idle: Vec<f64> = path
            .deliveries
            .iter()
            .filter(|delivery| {
                let window = (delivery.delivered.saturating_sub(start) / WINDOW) as usize;
                windows.get(window).is_some_and(|window| !window.queued)
            })
            .filter_map(|delivery| delivery.queue)
            .map(|queue| queue / 1e6)
            .collect();
        let Some(jitter) = quantile(&idle, 0.95).filter(|_| idle.len() >= 20) else { return };
        let from = format!("{} segments in windows without a standing queue", idle.len());
        self.jitter_ms = better(self.jitter_ms.take(), Some(Estimate::new(jitter, Confidence::Low, from)));
    }
    fn say_unknown(&mut self) {
        let mut say = |is_known: bool, text: &str| {
            if !is_known {
                self.unknown.push(text.to_owned());
            }
        };
        say(self.base_rtt_ms.is_some(), "base round trip: no packet and its answer");
        say(
            self.capacity_mbps.as_ref().is_some_and(|capacity| capacity.confidence.is_claim()),
            "capacity: no lasting queue, so that the rate is that of the sender",
        );
        let claimed = self.pattern.as_ref().is_some_and(|pattern| pattern.confidence.is_claim());
        say(claimed, "TDD pattern: the deliveries show no slots, or several patterns explain them");
        let claimed = self.sr_period_ms.as_ref().is_some_and(|period| period.confidence.is_claim());
        say(
            claimed,
            "period of scheduling requests: too few packets on an idle uplink, or at one phase; a ping \
             every 217 ms for 10 s would show it",
        );
        if self.position == Position::NearServer || self.position == Position::NearClient {
            self.unknown.push("delays of core and radio apart: the capture is at one end".into());
        }
    }
}
