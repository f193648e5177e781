//! Table `[link]`: an access link in place of the cell. The table has the keys of all links and exactly one
//! inner table, whose name is the kind of link: `fixed`, `trace`, `hspa` or `lte_early`.

use super::cellular::{self, Cellular};
use crate::limits::{self, Limit, Problem, Section, key, numbers, quantities, rates, relation};
use crate::queue::{self, Codel, QueueDiscipline};
use paceline_net::trace::Trace;
use paceline_net::{Bytes, CodelConfig, Duration, Rate};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Table `[link]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>, transform = one_kind)]
pub struct Link {
    /// Whether each station has a link of its own; else all share one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_station: Option<bool>,
    /// Propagation delay in one direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// Queue of each direction, without the packet being sent. With `codel` and `fq-codel` a limit beside
    /// `codel.limit`, by default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Bytes>,
    /// The queue in packets, in place of `queue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<u64>,
    /// Discipline of the queue.
    #[serde(skip_serializing_if = "QueueDiscipline::is_drop_tail")]
    #[schemars(extend("default" = QueueDiscipline::default()))]
    pub queue_discipline: QueueDiscipline,
    /// Parameters of the disciplines `codel` and `fq-codel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codel: Option<Codel>,
    /// Queue length above which ECN-capable packets are marked (RFC 3168). Default: no marks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn_threshold: Option<Bytes>,
    /// Share of the packets that are lost independently, after they used the link.
    pub loss_percent: f64,
    /// Share of the packets that are lost in bursts (Gilbert-Elliott: all packets in a burst, none between).
    pub burst_loss_percent: f64,
    /// Mean length of a burst of losses.
    pub burst_packets: f64,
    /// Largest additional delay, uniform from 0; packets keep their order.
    pub jitter: Duration,
    /// Share of the packets that arrive twice.
    pub duplicate_percent: f64,
    /// Share of the packets that later ones may overtake during `reorder_delay`.
    pub reorder_percent: f64,
    /// Additional delay of the packets of `reorder_percent`.
    pub reorder_delay: Duration,
    /// A link of constant rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<FixedLink>,
    /// A link that follows a recorded or generated trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceLink>,
    /// An HSPA channel of 2011.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "Cellular::read_hspa")]
    #[schemars(schema_with = "Cellular::hspa_schema")]
    pub hspa: Option<Cellular>,
    /// A pre-production LTE channel of 2011.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "Cellular::read_lte_early")]
    #[schemars(schema_with = "Cellular::lte_early_schema")]
    pub lte_early: Option<Cellular>,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            per_station: None,
            delay: None,
            queue: None,
            queue_packets: None,
            queue_discipline: QueueDiscipline::DropTail,
            codel: None,
            ecn_threshold: None,
            loss_percent: 0.0,
            burst_loss_percent: 0.0,
            burst_packets: 10.0,
            jitter: Duration::ZERO,
            duplicate_percent: 0.0,
            reorder_percent: 0.0,
            reorder_delay: Duration::from_millis(10),
            fixed: None,
            trace: None,
            hspa: None,
            lte_early: None,
        }
    }
}

impl Section for Link {
    fn limits() -> Vec<Limit<Self>> {
        let percent = || numbers(0.0..=100.0).unit("percent");
        let below_queue = |link: &Self| match (link.ecn_threshold, link.queue) {
            (Some(threshold), Some(queue)) => threshold <= queue,
            _ => true,
        };
        // Otherwise the gap between two bursts would be shorter than a packet.
        let bursts_apart = |link: &Self| {
            let share = link.burst_loss_percent / 100.0;
            share >= 1.0 || share / (1.0 - share) <= link.burst_packets
        };
        vec![
            key!(delay?, quantities("0 s", "10 s")),
            key!(queue?, quantities("1504 B", "1 GiB")),
            key!(queue_packets?, numbers(1..=1_000_000).unit("packets")),
            relation!(ecn_threshold?, "no more than queue", below_queue),
            key!(loss_percent, percent()),
            key!(burst_loss_percent, percent()),
            key!(duplicate_percent, percent()),
            key!(reorder_percent, percent()),
            key!(burst_packets, numbers(1.0..=1e6).unit("packets")),
            relation!(burst_packets, "at least b / (100 - b), b being burst_loss_percent", bursts_apart),
            key!(jitter, quantities("0 s", "10 s")),
            key!(reorder_delay, quantities("0 s", "10 s")),
        ]
    }
    fn computed_defaults() -> Vec<(&'static str, String)> {
        let of_kinds = |show: fn(&Self) -> String| {
            let kinds = Self::one_of_each_kind();
            limits::by_name(kinds.iter().map(|(kind, link)| ((*kind).to_owned(), show(link))))
        };
        vec![
            ("per_station", of_kinds(|link| link.per_station.unwrap_or_default().to_string())),
            ("delay", of_kinds(|link| link.delay.unwrap_or_default().to_string())),
            ("queue", of_kinds(|link| link.queue.unwrap_or_default().to_string())),
        ]
    }
}

/// Requires exactly one of the tables of a kind.
fn one_kind(schema: &mut Schema) {
    let kinds: Vec<_> =
        Link::default().kinds().map(|(kind, _)| serde_json::json!({ "required": [kind] })).into();
    schema.insert("oneOf".to_owned(), kinds.into());
}

/// Table `[link.fixed]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct FixedLink {
    /// Bit rate of the downlink.
    pub downlink_rate: Rate,
    /// Bit rate of the uplink. Default: that of the downlink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_rate: Option<Rate>,
    /// Packets leave only at multiples of this time, as in TDD frames; 0: at once.
    pub frame: Duration,
    /// Length of interruptions, as by handovers; 0: none.
    pub interruption: Duration,
    /// Mean time between interruptions, exponentially distributed, each direction by itself.
    pub interruption_interval: Duration,
}

impl Default for FixedLink {
    fn default() -> Self {
        Self {
            downlink_rate: Rate(20_000_000),
            uplink_rate: None,
            frame: Duration::ZERO,
            interruption: Duration::ZERO,
            interruption_interval: Duration::from_secs(10),
        }
    }
}

impl Section for FixedLink {
    fn limits() -> Vec<Limit<Self>> {
        vec![
            key!(downlink_rate, rates()),
            key!(uplink_rate?, rates()),
            key!(frame, quantities("0 s", "1 s")),
            key!(interruption, quantities("0 s", "60 s")),
            key!(interruption_interval, quantities("1 ms", "86400 s")),
        ]
    }
}

/// Table `[link.trace]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = limits::describe::<Self>)]
pub struct TraceLink {
    /// Trace of the downlink: a file in mahimahi's or in binary form (from others: `paceline trace import`),
    /// by its path from the scenario's folder; or a generated one, with KIND `stationary`, `walking` or
    /// `driving` (20, 12 and 8 Mb/s on average), `mmwave-walking` or `mmwave-driving` (800 and 490 Mb/s),
    /// `3g-evdo`, `3g-umts`, `5g-driving`, `starlink` or `wifi` (0.6, 1.2, 150, 100 and 60 Mb/s), or a drive
    /// fitted to a measured network, such as `drive-sa` (docs/traces.md).
    #[schemars(with = "String", extend("x-limits" = TRACE_NAMES))]
    pub downlink: TraceFile,
    /// Trace of the uplink, named as that of the downlink. Default: the constant `uplink_rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("x-limits" = TRACE_NAMES))]
    pub uplink: Option<TraceFile>,
    /// Bit rate of an uplink without trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink_rate: Option<Rate>,
    /// Period of a cell's scheduling requests: a packet at the idle uplink waits for the next multiple, then
    /// for `grant_delay`. Default: no grants. Typical: 10 ms in LTE, 5 ms in NR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sr_period: Option<Duration>,
    /// Time from a scheduling request to its transmission; 8 ms in LTE FDD (TS 36.213 §8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_delay: Option<Duration>,
}

/// Names of traces, as the reference states them.
const TRACE_NAMES: &str = "a path, generated:KIND or generated:KIND:SEED";

impl TraceLink {
    /// Default bit rate of an uplink without trace. Chosen: more than the acknowledgments of any generated
    /// trace need.
    pub const UPLINK_RATE: Rate = Rate(20_000_000);
    /// Default time from a scheduling request to the transmission: eight subframes of LTE FDD (TS 36.213 §8).
    pub const GRANT_DELAY: Duration = Duration::from_millis(8);
}

impl Section for TraceLink {
    fn limits() -> Vec<Limit<Self>> {
        vec![
            key!(uplink_rate?, rates()),
            key!(sr_period?, quantities("100 us", "1 s")),
            key!(grant_delay?, quantities("0 s", "1 s")),
            relation!(grant_delay?, "left out without sr_period", |link| link.sr_period.is_some()),
        ]
    }
    fn computed_defaults() -> Vec<(&'static str, String)> {
        vec![
            ("uplink_rate", Self::UPLINK_RATE.to_string()),
            ("grant_delay", format!("{} with sr_period", Self::GRANT_DELAY)),
        ]
    }
}

/// The name of a trace, and the trace once its file has been read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TraceFile {
    /// The name in the scenario.
    pub name: String,
    /// The trace; `None` until the scenario's files have been read.
    pub trace: Option<Arc<Trace>>,
}

impl Serialize for TraceFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}
impl<'de> Deserialize<'de> for TraceFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { name: String::deserialize(deserializer)?, trace: None })
    }
}

impl Link {
    /// The tables of a kind, and whether the scenario has them.
    pub(crate) fn kinds(&self) -> [(&'static str, bool); 4] {
        [
            ("fixed", self.fixed.is_some()),
            ("trace", self.trace.is_some()),
            ("hspa", self.hspa.is_some()),
            ("lte_early", self.lte_early.is_some()),
        ]
    }
    /// The traces of the link, with the keys that name them.
    pub fn traces_mut(&mut self) -> Vec<(&'static str, &mut TraceFile)> {
        let Some(TraceLink { downlink, uplink, .. }) = &mut self.trace else { return Vec::new() };
        let uplink = uplink.iter_mut().map(|file| ("link.trace.uplink", file));
        std::iter::once(("link.trace.downlink", downlink)).chain(uplink).collect()
    }
    /// Configuration of the queues of a managed discipline; none for drop-tail.
    pub fn managed_queue(&self) -> Option<CodelConfig> {
        queue::managed(self.queue_discipline, self.codel.as_ref(), (self.queue_packets, self.queue))
    }
    /// The channel of 2011, if the link is one.
    pub fn cellular(&self) -> Option<&Cellular> {
        self.hspa.as_ref().or(self.lte_early.as_ref())
    }
    /// Refuses several kinds, none, and keys that exclude each other.
    pub(crate) fn exclusions(&self, given: &dyn Fn(&str) -> bool) -> Result<(), Problem> {
        let present: Vec<&str> =
            self.kinds().into_iter().filter_map(|(kind, is)| is.then_some(kind)).collect();
        if present.len() != 1 {
            let key = present.get(1).map_or_else(|| String::from("link"), |kind| format!("link.{kind}"));
            let allowed =
                "exactly one of the tables [link.fixed], [link.trace], [link.hspa] and [link.lte_early]";
            return Err(Problem::without_value(&key, allowed));
        }
        let pairs = [("link.queue", "link.queue_packets"), ("link.trace.uplink", "link.trace.uplink_rate")];
        let both = pairs.into_iter().find(|(one, other)| given(one) && given(other));
        both.map_or(Ok(()), |(one, other)| {
            Err(Problem::without_value(other, format!("{one} or {other}, not both")))
        })
    }
    /// Fills in the defaults that depend on the kind.
    pub(crate) fn resolve(&mut self) {
        self.per_station.get_or_insert(self.cellular().is_some());
        let (delay, queue) = match (&self.hspa, &self.lte_early) {
            (Some(_), _) => cellular::HSPA_PATH,
            (_, Some(_)) => cellular::LTE_EARLY_PATH,
            _ => DEFAULT_PATH,
        };
        self.delay.get_or_insert(delay);
        if self.queue_packets.is_none() && self.queue_discipline.is_drop_tail() {
            self.queue.get_or_insert(queue);
        }
        if let Some(trace) = self.trace.as_mut().filter(|trace| trace.uplink.is_none()) {
            trace.uplink_rate.get_or_insert(TraceLink::UPLINK_RATE);
        }
        if let Some(trace) = self.trace.as_mut().filter(|trace| trace.sr_period.is_some()) {
            trace.grant_delay.get_or_insert(TraceLink::GRANT_DELAY);
        }
    }
    /// A link of each kind with its defaults.
    fn one_of_each_kind() -> [(&'static str, Self); 4] {
        let (downlink, uplink) = (TraceFile::default(), None);
        let trace = TraceLink { downlink, uplink, uplink_rate: None, sr_period: None, grant_delay: None };
        [
            ("fixed", Self { fixed: Some(FixedLink::default()), ..Self::default() }),
            ("trace", Self { trace: Some(trace), ..Self::default() }),
            ("hspa", Self { hspa: Some(Cellular::hspa()), ..Self::default() }),
            ("lte_early", Self { lte_early: Some(Cellular::lte_early()), ..Self::default() }),
        ]
        .map(|(kind, mut link)| {
            link.resolve();
            (kind, link)
        })
    }
}

/// Default propagation delay in one direction and queue of `fixed` and `trace`. Chosen: a round trip of 40
/// ms, and 100 ms of queue at 20 Mb/s.
const DEFAULT_PATH: (Duration, Bytes) = (Duration::from_millis(20), Bytes(256_000));

/// Checks the table and the table of its kind.
pub(crate) fn check(link: &Link) -> Result<(), Problem> {
    limits::check("link", link)?;
    queue::check("link", link.queue_discipline, link.codel.as_ref(), link.ecn_threshold)?;
    if let Some(trace) = &link.trace {
        limits::check("link.trace", trace)?;
    }
    if let Some(fixed) = &link.fixed {
        limits::check("link.fixed", fixed)?;
    }
    let kind = if link.hspa.is_some() { "link.hspa" } else { "link.lte_early" };
    link.cellular().map_or(Ok(()), |channel| limits::check(kind, channel))
}
