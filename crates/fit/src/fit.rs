//! The fit: estimates of all quantities from all inputs, and those that the inputs do not show.

use crate::capture::{Captures, Flow};
use crate::estimate::capacity::{self, WINDOW, WindowRate};
use crate::estimate::pattern::{self, Link, Seen, Slots};
use crate::estimate::profile::{Profile, SLOTS};
use crate::estimate::{Confidence, Estimate, buffer, delays, log, quantile, sr};
use crate::log::{Format, Series};
use crate::path::{Path, Side};
use crate::uplink;
use serde::{Serialize, Serializer};

/// Share of the round trip towards one end below which a capture was made near it. Must match that of
/// `paceline explain`.
const NEAR: f64 = 0.125;

/// Packets from which on a lattice of their times is no chance. Chosen: the mean vector of so many has a
/// standard deviation of 0.1.
const LATTICE: usize = 100;
/// Windows with a long queue from which on others do not count for the pattern. Chosen: half a second has some
/// hundred deliveries.
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
    #[serde(serialize_with = "slots")]
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

fn slots<S: Serializer>(pattern: &Option<Estimate<Slots>>, serializer: S) -> Result<S::Ok, S::Error> {
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
            for idle in uplink::idle(captures, point) {
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
    /// Delays at a capture point: those of packets that met an idle path where there are some, else the least.
    fn add_delays(&mut self, captures: &Captures, point: usize) {
        let halves = delays::halves(captures, point);
        let is_cell = self.sr_period_ms.is_some()
            || captures.flows.iter().filter(|flow| flow.point == point).any(is_slotted);
        let found =
            delays::least(&halves, &uplink::idle(captures, point), self.sr_period_ms.as_ref(), is_cell);
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
        let pattern = arrivals_pattern(path, &is_busy);
        self.pattern = better(self.pattern.take(), pattern);
        let mut flows: Vec<&Flow> = captures.flows.iter().filter(|flow| flow.point == path.point).collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(flow.main().1.bytes));
        for flow in flows {
            self.pattern = better(self.pattern.take(), ticks_pattern(flow, path, &is_busy));
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
    fn add_log(&mut self, name: &str, format: Format, series: &Series) {
        let rtt = log::base_rtt(series, name);
        self.compare("base round trip", self.base_rtt_ms.clone(), rtt.as_ref(), (0.1, 2.0));
        self.base_rtt_ms = better(self.base_rtt_ms.take(), rtt);
        let capacity = log::capacity(series, format, name);
        self.compare("capacity", self.capacity_mbps.clone(), capacity.as_ref(), (0.2, 0.0));
        if self.capacity_mbps.is_none() && !series.rates.is_empty() {
            self.direction = if series.is_upload { "upload" } else { "download" };
        }
        self.capacity_mbps = better(self.capacity_mbps.take(), capacity);
        self.jitter_ms = better(self.jitter_ms.take(), log::jitter(series, name));
        self.loss_percent = better(self.loss_percent.take(), log::loss(series, name));
        self.buffer_bytes = better(self.buffer_bytes.take(), log::buffer(series, name));
        if self.rtts.is_empty() {
            self.rtts.clone_from(&series.pings);
        }
        if self.rates.is_empty() {
            let windows = series.rates.iter().flat_map(|rate| {
                let steps = ((rate.span_s * 1e9 / WINDOW as f64) + 0.5).max(1.0) as usize;
                (0..steps).map(|step| WindowRate {
                    time_s: rate.time_s + step as f64 * WINDOW as f64 / 1e9,
                    mbps: rate.mbps,
                    queued: series.is_capacity,
                    full: false,
                })
            });
            self.rates = windows.collect();
        }
        let values = |of: fn(&crate::log::Radio) -> Option<f64>| -> Vec<f64> {
            series.radio.iter().filter_map(of).collect()
        };
        if let Some([mean, deviation]) = log::radio(&values(|radio| radio.sinr_db), "SINR", name) {
            self.sinr_db = better(self.sinr_db.take(), Some(mean));
            self.sinr_deviation_db = better(self.sinr_deviation_db.take(), Some(deviation));
        }
        let first = |found: Option<[Estimate<f64>; 2]>| found.map(|[mean, _]| mean);
        let uplink = first(log::radio(&values(|radio| radio.uplink_sinr_db), "SINR of the uplink", name));
        self.uplink_sinr_db = better(self.uplink_sinr_db.take(), uplink);
        self.mcs = better(self.mcs.take(), first(log::radio(&values(|radio| radio.mcs), "MCS", name)));
        let blocks = values(|radio| radio.prb);
        let most = blocks.iter().copied().reduce(f64::max);
        let prb = most.map(|most| {
            Estimate::new(most, Confidence::Low, format!("the most of {} values in {name}", blocks.len()))
        });
        self.prb = better(self.prb.take(), prb);
        self.is_nr = self.is_nr.or(series.is_nr);
    }
    /// Says that two claims of different inputs contradict each other: `tolerance` as a share and in the unit
    /// of the values.
    fn compare(
        &mut self,
        what: &str,
        known: Option<Estimate<f64>>,
        found: Option<&Estimate<f64>>,
        (share, least): (f64, f64),
    ) {
        let (Some(known), Some(found)) = (known, found) else { return };
        let is_claimed = known.confidence.is_claim() && found.confidence.is_claim();
        let difference = (known.value - found.value).abs();
        if is_claimed && difference > (share * known.value.max(found.value)).max(least) {
            self.conflicts.push(format!(
                "{what}: {:.2} ({}) and {:.2} ({})",
                known.value, known.from, found.value, found.from
            ));
        }
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
             every 213 ms for 10 s would show it",
        );
        if self.position == Position::NearServer || self.position == Position::NearClient {
            self.unknown.push("delays of core and radio apart: the capture is at one end".into());
        }
    }
}

/// Whether the packets of either end come on a lattice of slots.
fn is_slotted(flow: &Flow) -> bool {
    flow.directions.iter().any(|direction| {
        let data: Vec<(u64, f64)> = direction.data.iter().map(|data| (data.at, 1.0)).collect();
        let acks: Vec<(u64, f64)> = direction.acks.iter().map(|ack| (ack.at, 1.0)).collect();
        [data, acks].iter().any(|arrivals| {
            arrivals.len() >= LATTICE
                && SLOTS.iter().any(|slot| Profile::of_arrivals(arrivals, *slot).is_some())
        })
    })
}

/// The pattern by arrivals behind the radio.
fn arrivals_pattern(path: &Path, is_busy: &dyn Fn(u64) -> bool) -> Option<Estimate<Slots>> {
    if path.side != Side::Before {
        return None;
    }
    let arrivals: Vec<(u64, f64)> = path
        .deliveries
        .iter()
        .filter(|delivery| is_busy(delivery.delivered))
        .map(|delivery| (delivery.passed, f64::from(delivery.wire)))
        .collect();
    let profiles: Vec<Profile> =
        SLOTS.iter().filter_map(|slot| Profile::of_arrivals(&arrivals, *slot)).collect();
    let link = if path.from == 1 { Link::Down } else { Link::Up };
    pattern::find(&profiles, link, Seen::Arrivals)
}

/// The pattern by the timestamps that the receiver wrote when it acknowledged.
fn ticks_pattern(flow: &Flow, path: &Path, is_busy: &dyn Fn(u64) -> bool) -> Option<Estimate<Slots>> {
    let (from, direction) = flow.main();
    let receiver = &flow.directions[1 - from].clock;
    // Other clocks have too long a tick.
    if from != path.from || path.side != Side::Behind || receiver.tick()? > 1.5e6 {
        return None;
    }
    let acks = || direction.acks.iter().filter(|ack| ack.bytes > 0 && is_busy(ack.at));
    let usual = quantile(&acks().map(|ack| ack.bytes as f64).collect::<Vec<_>>(), 0.5)?;
    // An acknowledgment behind a repaired loss counts as others.
    let ticks: Vec<(i64, f64)> =
        acks().filter_map(|ack| Some((i64::from(ack.tsval?), (ack.bytes as f64).min(2.0 * usual)))).collect();
    let link = if path.from == 1 { Link::Down } else { Link::Up };
    pattern::find(&[Profile::of_ticks(&ticks)], link, Seen::Timestamps)
}
