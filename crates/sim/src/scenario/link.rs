//! Table `[link]`: an access link in place of the cell. It holds what every link has, and exactly one table of a
//! kind, which says what the link can carry: `fixed`, `trace`, `hspa` or `lte_early`.

use super::cellular::{self, Cellular};
use crate::link::Trace;
use paceline_net::{Bytes, Duration, Rate};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Table `[link]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Link {
    /// Whether every station has a link of its own; if not, all share one. Default: own with `hspa` and `lte_early`,
    /// shared with `fixed` and `trace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_station: Option<bool>,
    /// Propagation delay, one way. Default: 20 ms with `fixed` and `trace`; `hspa` and `lte_early` have their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// Queue of each direction in bytes, drop-tail; what is being sent does not count. Default, where there is no
    /// `queue_packets`: 256 kB with `fixed` and `trace`; `hspa` and `lte_early` have their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Bytes>,
    /// The same in packets, in place of `queue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<u64>,
    /// Bytes in the queue above which ECN-capable packets are marked (RFC 3168); none are if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn_threshold: Option<Bytes>,
    /// Percent of the packets that are lost one by one, after they were sent; each direction.
    pub loss_percent: f64,
    /// Percent of the packets that are lost in bursts (Gilbert-Elliott: nothing is lost between bursts, everything in
    /// them), after they were sent.
    pub burst_loss_percent: f64,
    /// Mean length of such a burst in packets.
    pub burst_packets: f64,
    /// Delay added to each packet, evenly distributed up to this; order is kept.
    pub jitter: Duration,
    /// Percent of the packets that arrive twice.
    pub duplicate_percent: f64,
    /// Percent of the packets that are held back and may be overtaken.
    pub reorder_percent: f64,
    /// For how long they are held.
    pub reorder_delay: Duration,
    /// A constant rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<FixedLink>,
    /// A recorded or generated trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceLink>,
    /// An HSPA channel of 2011.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "Cellular::read_hspa")]
    pub hspa: Option<Cellular>,
    /// A pre-production LTE channel of 2011.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "Cellular::read_lte_early")]
    pub lte_early: Option<Cellular>,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            per_station: None,
            delay: None,
            queue: None,
            queue_packets: None,
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

/// Table `[link.fixed]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FixedLink {
    /// Bit rate towards the stations.
    pub downlink_rate: Rate,
    /// Bit rate from them; as the downlink's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_rate: Option<Rate>,
    /// Packets leave at multiples of this time alone, as in the frames of a TDD carrier; 0 for at once.
    pub frame: Duration,
    /// For so long nothing is sent now and then, as during a handover; 0 for never.
    pub interruption: Duration,
    /// Mean time from the end of an interruption to the next (exponential), in each direction by itself.
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

/// Table `[link.trace]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceLink {
    /// Trace of the downlink: a file in mahimahi's format, sought beside the scenario's; or `generated:KIND:SEED` with a
    /// kind of `stationary`, `walking` or `driving` (20, 12 and 8 Mb/s on average).
    pub downlink: TraceFile,
    /// Trace of the uplink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink: Option<TraceFile>,
    /// Bit rate of the uplink where it has no trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink_rate: Option<Rate>,
}

impl TraceLink {
    /// Bit rate of an uplink without trace, unless stated.
    pub const UPLINK_RATE: Rate = Rate(20_000_000);
}

/// A trace by its name, and what the file holds once it was read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TraceFile {
    /// As the scenario names it.
    pub name: String,
    /// What it holds; `None` until the scenario's files have been read.
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
    /// The traces that it names, and the keys that name them.
    pub fn traces_mut(&mut self) -> Vec<(&'static str, &mut TraceFile)> {
        let Some(TraceLink { downlink, uplink, .. }) = &mut self.trace else { return Vec::new() };
        let uplink = uplink.iter_mut().map(|file| ("link.trace.uplink", file));
        std::iter::once(("link.trace.downlink", downlink)).chain(uplink).collect()
    }
    /// The channel of 2011, if it is one.
    pub fn cellular(&self) -> Option<&Cellular> {
        self.hspa.as_ref().or(self.lte_early.as_ref())
    }
    /// Fills in what the kind decides.
    pub(super) fn resolve(&mut self) {
        self.per_station.get_or_insert(self.cellular().is_some());
        let (delay, queue) = match (&self.hspa, &self.lte_early) {
            (Some(_), _) => cellular::HSPA_PATH,
            (_, Some(_)) => cellular::LTE_EARLY_PATH,
            _ => (Duration::from_millis(20), Bytes(256_000)),
        };
        self.delay.get_or_insert(delay);
        if self.queue_packets.is_none() {
            self.queue.get_or_insert(queue);
        }
        if let Some(trace) = self.trace.as_mut().filter(|trace| trace.uplink.is_none()) {
            trace.uplink_rate.get_or_insert(TraceLink::UPLINK_RATE);
        }
    }
}
