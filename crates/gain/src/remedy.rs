//! Remedies: where each applies, and its settings.

use crate::measured::Measured;
use crate::path::Path;
use serde::Serialize;

/// A remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// The accelerator between core and access.
    Accelerator,
    /// The ACK filter in the uplink buffer.
    AckFilter,
    /// TDD pacing at the servers.
    TddPacing,
    /// The ACK policer in front of the core's last router.
    AckPolicer,
    /// The receive window of Linux's autotuning.
    LargerWindow,
    /// BBR at the sender.
    Bbr,
    /// A queue for each flow.
    FairQueue,
    /// A buffer of one base round trip.
    SmallerBuffer,
}

impl Remedy {
    /// All, in the order of the report.
    pub const ALL: [Self; 8] = [
        Self::Accelerator,
        Self::AckFilter,
        Self::TddPacing,
        Self::AckPolicer,
        Self::LargerWindow,
        Self::Bbr,
        Self::FairQueue,
        Self::SmallerBuffer,
    ];
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accelerator => "accelerator",
            Self::AckFilter => "ACK filter",
            Self::TddPacing => "TDD pacing",
            Self::AckPolicer => "ACK policer",
            Self::LargerWindow => "larger receive window",
            Self::Bbr => "BBR at the sender",
            Self::FairQueue => "fq_codel at the bottleneck",
            Self::SmallerBuffer => "smaller buffer",
        }
    }
    /// The settings of the scenario with it, or the reason for which it does not apply.
    pub(crate) fn settings(
        self,
        path: &Path,
        measured: &Measured,
        control: &str,
    ) -> Result<Vec<String>, &'static str> {
        let set = |setting: &str| Ok(vec![setting.to_owned()]);
        match self {
            Self::Accelerator | Self::AckFilter | Self::TddPacing | Self::AckPolicer
                if measured.is_upload =>
            {
                Err("acts on downloads alone")
            }
            Self::Accelerator => set("core.proxy=accelerator"),
            Self::AckFilter if path.is_link() => {
                Err("the capture shows no cell, in whose uplink buffer ACKs would wait")
            }
            Self::AckFilter => set("ack_filter.scheme=safe"),
            Self::TddPacing if !path.is_tdd => Err("the capture shows no TDD cell"),
            Self::TddPacing => set("station.tcp.pacing=tdd"),
            // The number of docs/police.md.
            Self::AckPolicer => set("core.hops.0.police={ acks_per_rtt = 8 }"),
            Self::LargerWindow if measured.window.is_none() => Err("the receive window does not limit"),
            Self::LargerWindow => {
                Ok(vec!["station.tcp.receive_buffer=6 MiB".into(), "station.tcp.autotune=true".into()])
            }
            Self::Bbr if control == "bbr" => Err("the sender behaves as BBR does already"),
            Self::Bbr => set("station.tcp.congestion_control=bbr"),
            Self::FairQueue if !path.is_link() => Err("a base station's queue is of one device"),
            Self::FairQueue if !shares(measured) => Err("at no time do two transfers share the queue"),
            Self::FairQueue => set("link.queue_discipline=fq-codel"),
            Self::SmallerBuffer => {
                let product = path.capacity * 1e6 / 8.0 * path.rtt_ms / 1e3;
                match path.buffer {
                    None => Err("the buffer never overflowed: its size is not known"),
                    Some(buffer) if buffer <= product => Err("the buffer is no larger than one round trip"),
                    Some(_) => Ok(vec![format!("{}={:.0} B", path.buffer_key(), product.max(15_000.0))]),
                }
            }
        }
    }
}

/// Whether two transfers overlap.
fn shares(measured: &Measured) -> bool {
    let end = |index: usize| measured.transfers[index].start_s + measured.transfers[index].completion_s;
    (1..measured.transfers.len())
        .any(|later| (0..later).any(|index| end(index) > measured.transfers[later].start_s))
}
