//! Figures of a group of stations, the stations of one `[[station]]` table, in one run.

use super::statistics::{jain, mbps, ratio};
use crate::counters::Counters;
use paceline_net::Duration;
use serde::{Deserialize, Serialize};

macro_rules! figures {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Figures of the stations of a group together.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct GroupFigures {
            $($(#[$doc])* pub $field: f64,)*
        }
        impl GroupFigures {
            /// Names of all figures, in order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];
            /// Values of all figures, in this order.
            pub fn values(&self) -> Vec<f64> {
                vec![$(self.$field),*]
            }
            pub(super) fn from_values(values: impl IntoIterator<Item = f64>) -> Self {
                let mut values = values.into_iter();
                Self { $($field: values.next().unwrap_or_default()),* }
            }
        }
    };
}

figures! {
    /// Downloaded payload that the stations acknowledged, Mb/s.
    goodput_mbps,
    /// Uploaded payload that the servers acknowledged, Mb/s.
    upload_mbps,
    /// Downloaded payload per station, Mb/s.
    goodput_per_station_mbps,
    /// Uploaded payload per station, Mb/s.
    upload_per_station_mbps,
    /// Mean round-trip time from data segment to ACK, as in the totals, ms.
    rtt_mean_ms,
    /// Share of data segments that are retransmissions.
    retransmission_share,
    /// Jain's fairness index of the stations' acknowledged bytes, both directions.
    jain_index,
}

impl GroupFigures {
    /// Figures from the stations' counters over the measured interval `span`.
    pub(super) fn of_counters(stations: &[&Counters], span: Duration) -> Self {
        let (seconds, count) = (span.as_secs_f64(), stations.len().max(1) as f64);
        let mut all = Counters::default();
        stations.iter().for_each(|station| all.add(station));
        let (goodput_mbps, upload_mbps) = (mbps(all.downloaded, seconds), mbps(all.uploaded, seconds));
        Self {
            goodput_mbps,
            upload_mbps,
            goodput_per_station_mbps: goodput_mbps / count,
            upload_per_station_mbps: upload_mbps / count,
            rtt_mean_ms: ratio(all.rtt_ns, all.rtt_samples) / 1e6,
            retransmission_share: ratio(all.retransmissions, all.segments),
            jain_index: jain(stations.iter().map(|own| (own.downloaded + own.uploaded) as f64)),
        }
    }
}

/// Name of a group in tables and pictures: that of its results, or the key of its table where an earlier
/// version has written no name.
pub(super) fn label(name: &str, group: usize) -> String {
    if name.is_empty() { format!("station.{group}") } else { name.to_owned() }
}

/// Figures of one group in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunGroup {
    /// Index of the group's `[[station]]` table.
    pub group: usize,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Number of stations.
    pub stations: u64,
    /// The figures.
    #[serde(flatten)]
    pub figures: GroupFigures,
}

impl RunGroup {
    /// Its name in tables and pictures.
    pub fn label(&self) -> String {
        label(&self.name, self.group)
    }
    /// All groups of a run by their names; `groups` has the group of each station, `measured` its counters
    /// over the measured interval `span`.
    pub(super) fn of_stations(
        names: &[String],
        groups: &[usize],
        measured: &[Counters],
        span: Duration,
    ) -> Vec<Self> {
        let of = |(group, name): (usize, &String)| {
            let members = groups.iter().zip(measured).filter(|(own, _)| **own == group);
            let members: Vec<&Counters> = members.map(|(_, counters)| counters).collect();
            let figures = GroupFigures::of_counters(&members, span);
            Self { group, name: name.clone(), stations: members.len() as u64, figures }
        };
        names.iter().enumerate().map(of).collect()
    }
}
