//! Tables `[core]` and `core.hops`: the wired path between the servers and the eNB.

mod police;

use super::limits::{self, Limit, Problem, Section, at_least, key, numbers, quantities, rates, relation};
use super::proxy::Proxy;
use super::queue::{self, Codel, QueueDiscipline};
use paceline_net::{Bytes, CodelConfig, Duration, Rate};
pub use police::{AckDirection, Police};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Table `[core]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Core {
    /// The hops from the servers to the eNB, in this order, each in both directions.
    pub hops: Vec<Hop>,
    /// The proxy between the hops and the access.
    pub proxy: Proxy,
    /// Number of hops ahead of the proxy. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_after: Option<usize>,
}

impl Core {
    /// The hops between the servers and the proxy, and the hops between the proxy and the access.
    pub fn around_path(&self) -> (&[Hop], &[Hop]) {
        self.hops.split_at(self.proxy_after.unwrap_or(self.hops.len()))
    }
}

impl Default for Core {
    fn default() -> Self {
        Self {
            hops: vec![Hop::new(Rate(1_000_000_000), Duration::from_millis(5))],
            proxy: Proxy::None,
            proxy_after: None,
        }
    }
}

/// One wired hop.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Hop {
    /// Bit rate of the hop.
    pub rate: Rate,
    /// Propagation delay in one direction.
    pub delay: Duration,
    /// Queue in front of the hop, in each direction.
    #[serde(default = "default_hop_queue")]
    pub queue: Bytes,
    /// Discipline of the queue.
    #[serde(default, skip_serializing_if = "QueueDiscipline::is_drop_tail")]
    #[schemars(extend("default" = QueueDiscipline::default()))]
    pub queue_discipline: QueueDiscipline,
    /// Parameters of the disciplines `codel` and `fq-codel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codel: Option<Codel>,
    /// Queue length above which ECN-capable packets are marked (RFC 3168). Default: no marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_threshold: Option<Bytes>,
    /// Whether each served cell has a hop of its own, like an S1 link. Shared hops stand ahead of such hops.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = bool::default()))]
    pub per_cell: bool,
    /// Time that a router at the servers' end of the hop needs to forward a packet of either direction, one
    /// after the other. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Duration>,
    /// Most packets that wait for that router.
    #[serde(default = "default_service_queue", skip_serializing_if = "is_default_service_queue")]
    #[schemars(extend("default" = default_service_queue()))]
    pub service_queue: u64,
    /// The ACK policer at the hop's end near the stations; the hop's router does not see the ACKs that it
    /// drops. Needs one of `cir`, `drop_share` and `acks_per_rtt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub police: Option<Police>,
}

impl Hop {
    /// A hop with the defaults of all other keys.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self {
            rate,
            delay,
            queue: default_hop_queue(),
            queue_discipline: QueueDiscipline::DropTail,
            codel: None,
            ecn_threshold: None,
            per_cell: false,
            service_time: None,
            service_queue: default_service_queue(),
            police: None,
        }
    }
    /// Whether the passage of a packet depends on packets behind it, on those of the other direction, or on
    /// its connection, so that it is not known when the packet enters the hops.
    pub fn needs_events(&self) -> bool {
        self.managed_queue().is_some() || self.service_time.is_some() || self.police.is_some()
    }
    /// Configuration of the queue of a managed discipline; none for drop-tail.
    pub fn managed_queue(&self) -> Option<CodelConfig> {
        queue::managed(self.queue_discipline, self.codel.as_ref(), (None, Some(self.queue)))
    }
}

/// Default queue of a hop. Chosen: 32 ms at the default rate of 1 Gb/s.
fn default_hop_queue() -> Bytes {
    Bytes(4_000_000)
}

/// Default queue of a router in packets: Linux's `net.core.netdev_max_backlog`.
fn default_service_queue() -> u64 {
    1000
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_default_service_queue(packets: &u64) -> bool {
    *packets == default_service_queue()
}

impl Section for Core {
    fn limits() -> Vec<Limit<Self>> {
        let within = |core: &Self| core.proxy_after.is_none_or(|after| after <= core.hops.len());
        let message = |core: &Self| format!("0 to {}, the hops in core.hops", core.hops.len());
        vec![
            relation!(proxy_after?, "0 to the number of hops in core.hops", within)
                .message(message)
                .unit("hops"),
        ]
    }
}

impl Section for Hop {
    fn limits() -> Vec<Limit<Self>> {
        let below_queue = |hop: &Self| hop.ecn_threshold.is_none_or(|threshold| threshold <= hop.queue);
        vec![
            key!(rate, rates()),
            key!(delay, quantities("0 s", "10 s")),
            key!(queue, at_least("1500 B")),
            key!(service_time?, quantities("1 ns", "1 s")),
            key!(service_queue, numbers(1..=1_000_000).unit("packets")),
            relation!(ecn_threshold?, "no more than the hop's queue", below_queue),
        ]
    }
}

/// Checks table and hops of a scenario with this many `[[station]]` tables.
pub(super) fn check(core: &Core, groups: usize) -> Result<(), Problem> {
    limits::check("core", core)?;
    for (index, hop) in core.hops.iter().enumerate() {
        let path = format!("core.hops.{index}");
        limits::check(&path, hop)?;
        queue::check(&path, hop.queue_discipline, hop.codel.as_ref(), hop.ecn_threshold)?;
        if let Some(police) = &hop.police {
            police::check(&format!("{path}.police"), police, groups)?;
        }
        let in_order = hop.per_cell || core.hops[..index].iter().all(|hop| !hop.per_cell);
        let allowed = "true, since a hop before it has per_cell = true: hops that all cells share come first";
        Problem::unless(in_order, &format!("{path}.per_cell"), hop.per_cell, allowed)?;
    }
    Ok(())
}
