//! The scenario file: the network, the radio, TCP and the traffic that are simulated.
//!
//! Each table of the TOML file is a struct in a file of this crate, and each key is a field. A field states
//! its type, its meaning (the doc comment) and its default (`Default`); the table's [`limits::Section`]
//! states the allowed values. [`load`] reads and checks a file. [`reference`] makes the reference
//! (docs/scenario.md) and the JSON schema from the same definitions.

mod access;
mod checks;
mod core_network;
mod limits;
mod load;
mod pacing_pattern;
mod path;
mod queue;
pub mod reference;
mod stations;
mod tcp;

pub use access::cell::{AckFilter, Cell, CellPlan, CommonPeriod, ConfiguredGrant, DuplexMode, McsTableName};
pub use access::cell::{GnbName, Lead, Lte, Nr, Pattern, ProactiveGrant, RatName, RlcMode, Scheduler};
pub use access::cellular::Cellular;
pub use access::deployment::{BlockageModel, Deployment, DeploymentModel, FadingProfile, Held};
pub use access::handover::{Handover, HandoverFate, HandoverTrigger, Place};
pub use access::link::{FixedLink, Link, TraceFile, TraceLink};
pub use access::sidelink::{
    Movement, Sidelink, SidelinkFate, SidelinkPath, SidelinkSelection, TrailingReport, Waypoint,
};
pub use core_network::{AckDirection, Core, Hop, Police};
pub use load::{ScenarioError, load, load_with, with_setting};
pub use pacing_pattern::PacingPattern;
pub use path::{Accelerator, AcceleratorPacing, AcceleratorProfile, Path, SplitTcp};
pub use queue::{Codel, QueueDiscipline};
pub use stations::{Direction, SinrRange, Stations, Traffic, UdpArrivals};
pub use tcp::{StationTcp, Tcp};

use checks::in_force;
use limits::{Allowed, Limit, Section, key, quantities, relation};
use paceline_net::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A whole scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = limits::order::<Self>)]
pub struct Scenario {
    /// Duration and seed of the simulation.
    #[serde(default)]
    pub run: Run,
    /// The wired path between the servers and the eNB.
    #[serde(default)]
    pub core: Core,
    /// One cell; with `[deployment]`, each of the served cells. Not beside `[link]`.
    #[serde(default)]
    pub cell: Cell,
    /// An access link in place of the cell, with exactly one of the tables `link.fixed`, `link.trace`,
    /// `link.hspa` and `link.lte_early`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// Pairs of stations with direct links in place of the cell: each station's peer stands in place of its
    /// server, except for stations with `peer = false`. Beside `[cell]` in NR alone, whose carrier the pairs
    /// have then; else not beside `[link]` and the tables of a cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidelink: Option<Sidelink>,
    /// Sites around the stations. If left out, the scenario has one cell, and stations have the SINRs of
    /// their tables. Not beside `[link]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<Deployment>,
    /// Changes of the serving cell. If left out, stations keep the cell that they have at the start. Beside
    /// `[deployment]` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
    /// The mobile accelerator, with `core.path = "accelerator"`.
    #[serde(default)]
    pub accelerator: Accelerator,
    /// The TCP proxy, with `core.path = "split-tcp"`.
    #[serde(default)]
    pub split_tcp: SplitTcp,
    /// The ACK filter in the uplink buffer of every station. Not beside `[link]`.
    #[serde(default)]
    pub ack_filter: AckFilter,
    /// TCP of servers and stations.
    #[serde(default)]
    pub tcp: Tcp,
    /// Groups of stations. Each `[[station]]` is a group of stations of one kind.
    #[serde(default, rename = "station")]
    pub stations: Vec<Stations>,
}

/// Tables of the proxies, which are refused beside `[sidelink]`.
const PROXY_TABLES: [&str; 2] = ["accelerator", "split_tcp"];
/// Tables of the cell, which are refused beside `[link]` and `[sidelink]`.
const CELL_TABLES: [&str; 3] = ["cell", "deployment", "handover"];
/// The table of the ACK filter, which is refused beside `[link]`.
const FILTER_TABLE: &str = "ack_filter";
/// Keys of a station's radio in a cell, which are refused beside `[link]` and `[sidelink]`.
const CELL_KEYS: [&str; 5] = ["downlink_sinr", "uplink_sinr", "fading", "coherence", "processing"];

/// Table `[run]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Run {
    /// Simulated time, the warm-up included.
    pub duration: Duration,
    /// Time at the start that the results leave out.
    pub warmup: Duration,
    /// Seed of all random streams. Further runs of the same scenario count up from it.
    pub seed: u64,
    /// Interval of the time series.
    pub sample: Duration,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(20),
            warmup: Duration::from_secs(2),
            seed: 1,
            sample: Duration::from_millis(100),
        }
    }
}

impl Section for Run {
    fn limits() -> Vec<Limit<Self>> {
        const SAMPLES: u64 = 1_000_000; // Chosen: about 100 MB of timeseries.csv for each station.
        let few_samples = |run: &Self| run.duration.as_nanos() / run.sample.as_nanos().max(1) <= SAMPLES;
        let a_millisecond = |sample: &Duration| *sample >= Duration::from_millis(1);
        vec![
            key!(duration, quantities("1 ms", "86400 s")),
            relation!(warmup, "less than run.duration", |run| run.warmup < run.duration),
            key!(sample, Allowed::new("1 ms or more", a_millisecond)),
            relation!(sample, "at most 1,000,000 samples in a run", few_samples),
        ]
    }
}

impl Scenario {
    /// The number of stations in all groups.
    pub fn station_count(&self) -> u64 {
        self.stations.iter().map(|group| group.count).fold(0, u64::saturating_add)
    }
    /// Per station, the index of its `[[station]]` table.
    pub fn group_of_stations(&self) -> Vec<usize> {
        let groups = self.stations.iter().enumerate();
        groups.flat_map(|(index, group)| std::iter::repeat_n(index, group.count as usize)).collect()
    }
    /// TCP of a group of stations and of their servers.
    pub fn tcp_of(&self, group: &Stations) -> Tcp {
        group.tcp.as_ref().map_or_else(|| self.tcp.clone(), |own| own.over(&self.tcp))
    }
    /// Completes the tables `tcp` of the groups of stations.
    fn complete_tcp(&mut self) {
        let whole: Vec<Tcp> = self.stations.iter().map(|group| self.tcp_of(group)).collect();
        for (group, whole) in self.stations.iter_mut().zip(whole) {
            group.tcp = group.tcp.take().map(|_| whole.into());
        }
    }
    /// The number of cells whose stations are simulated: all sectors of the served sites, or one without a
    /// deployment.
    pub fn served_cells(&self) -> usize {
        let sectors = paceline_ran::radio::geometry::SECTORS;
        self.deployment.as_ref().map_or(1, |deployment| sectors * deployment.served_sites as usize)
    }
    /// Whether the access is a cell.
    pub fn has_cell(&self) -> bool {
        self.link.is_none() && self.sidelink.is_none()
    }
    /// Whether a station's other end is behind the core.
    pub fn has_core(&self) -> bool {
        self.sidelink.is_none() || self.stations.iter().any(|group| !group.peer)
    }
    /// Whether the access is an NR cell.
    pub fn has_nr_cell(&self) -> bool {
        self.has_cell() && self.cell.nr.is_some()
    }
    /// The carrier of the cell.
    pub fn cell_plan(&self) -> CellPlan {
        CellPlan::of(&self.cell).expect("the scenario was checked")
    }
    /// The scenario as a file with every key that acts, defaults included.
    pub fn to_toml(&self) -> String {
        let mut table = toml::Table::try_from(self).expect("a scenario is made of tables and scalars");
        in_force::remove_idle(&mut table);
        if !self.has_cell() {
            self.remove_cell(&mut table);
        }
        toml::to_string(&table).expect("a scenario is made of tables and scalars")
    }
    /// Removes the tables and keys that the loader refuses beside a link.
    fn remove_cell(&self, table: &mut toml::Table) {
        let nr_pairs = self.sidelink.is_some() && self.cell.nr.is_some();
        let unused = CELL_TABLES.iter().filter(|name| !(nr_pairs && **name == "cell"));
        unused.for_each(|name| drop(table.remove(*name)));
        if nr_pairs {
            access::sidelink::keep_nr_keys(table);
        }
        if self.sidelink.is_some() {
            PROXY_TABLES.iter().for_each(|name| drop(table.remove(*name)));
            if !self.has_core() {
                table.remove("core");
            }
        } else {
            table.remove(FILTER_TABLE);
        }
        let groups = table.get_mut("station").and_then(toml::Value::as_array_mut);
        for group in groups.into_iter().flatten().filter_map(toml::Value::as_table_mut) {
            CELL_KEYS.iter().for_each(|name| drop(group.remove(*name)));
        }
    }
}
