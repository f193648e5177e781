//! Key `queue_discipline` and table `codel` of links and hops: the management of their queues.

use super::limits::{self, Limit, Problem, Section, key, numbers, quantities};
use paceline_net::{Bytes, CodelConfig, Duration, FairConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Discipline of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueDiscipline {
    /// First in, first out; arrivals at the full queue are dropped.
    #[default]
    DropTail,
    /// CoDel (RFC 8289): while the delay stays above a target, ECN-capable packets are marked, others
    /// dropped.
    Codel,
    /// FQ-CoDel (RFC 8290): queues of flows by hash, deficit round robin, CoDel in each.
    FqCodel,
}

impl QueueDiscipline {
    /// Whether it is the default, which resolved scenarios leave out.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    pub(super) fn is_drop_tail(&self) -> bool {
        *self == Self::DropTail
    }
    /// The word in a scenario.
    pub fn name(self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Codel => "codel",
            Self::FqCodel => "fq-codel",
        }
    }
}

/// Table `codel` of a link or hop, beside the disciplines `codel` and `fq-codel`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Codel {
    /// Acceptable standing delay (RFC 8289 §4.3).
    pub target: Duration,
    /// Time that the delay must stay above the target: about the largest round-trip time (RFC 8289 §4.3).
    pub interval: Duration,
    /// Bytes of a flow per round, `fq-codel` (RFC 8290 §5.2.4).
    pub quantum: Bytes,
    /// Queues of `fq-codel` (RFC 8290 §5.2.5).
    pub flows: u64,
    /// Most packets in the queue (RFC 8290 §5.2.3); `queue` limits its bytes.
    pub limit: u64,
}

impl Default for Codel {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            quantum: Bytes(1514),
            flows: 1024,
            limit: 10_240,
        }
    }
}

impl Section for Codel {
    fn limits() -> Vec<Limit<Self>> {
        vec![
            key!(target, quantities("10 us", "10 s")),
            key!(interval, quantities("100 us", "100 s")),
            key!(quantum, quantities("256 B", "1 MiB")),
            key!(flows, numbers(1..=65_536).unit("queues")),
            key!(limit, numbers(1..=1_000_000).unit("packets")),
        ]
    }
}

/// Checks the keys of the link or hop `path` that depend on its discipline.
pub(super) fn check(
    path: &str,
    discipline: QueueDiscipline,
    codel: Option<&Codel>,
    ecn_threshold: Option<Bytes>,
) -> Result<(), Problem> {
    let drop_tail = discipline.is_drop_tail();
    if let Some(codel) = codel {
        let key = format!("{path}.codel");
        let allowed = "only beside queue_discipline = \"codel\" or \"fq-codel\"";
        Problem::unless(!drop_tail, &key, "", allowed)?;
        limits::check(&key, codel)?;
    }
    let threshold = ecn_threshold.filter(|_| !drop_tail);
    let allowed = "left out beside queue_discipline = \"codel\" or \"fq-codel\", which mark by delay";
    let shown = threshold.unwrap_or_default();
    Problem::unless(threshold.is_none(), &format!("{path}.ecn_threshold"), shown, allowed)
}

/// Configuration of a queue with this discipline; none for drop-tail.
pub(super) fn managed(
    discipline: QueueDiscipline,
    codel: Option<&Codel>,
    limit: (Option<u64>, Option<Bytes>),
) -> Option<CodelConfig> {
    let of = codel.copied().unwrap_or_default();
    let fair = FairConfig { quantum: of.quantum, flows: of.flows as u32 };
    Some(CodelConfig {
        target: of.target,
        interval: of.interval,
        limit_packets: limit.0.unwrap_or(of.limit),
        limit_bytes: limit.1,
        fair: match discipline {
            QueueDiscipline::DropTail => return None,
            QueueDiscipline::Codel => None,
            QueueDiscipline::FqCodel => Some(fair),
        },
    })
}
