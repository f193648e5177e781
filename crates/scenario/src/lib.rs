//! The scenario file: the network, the radio, TCP and the traffic that are simulated.
//!
//! Each table of the TOML file is a struct in a file of this crate, and each key is a field. A field states
//! its type, its meaning (the doc comment) and its default (`Default`); the table's [`limits::Section`]
//! states the allowed values. [`load`] reads and checks a file. [`reference`] makes the reference
//! (docs/scenario.md) and the JSON schema from the same definitions.

mod access;
mod checks;
mod core_network;
mod file;
mod former;
mod group_names;
mod limits;
mod load;
mod pacing_pattern;
mod proxy;
mod queue;
pub mod reference;
mod stations;
mod tcp;

pub use access::cell::{AckFilter, Cell, CellPlan, CommonPeriod, ConfiguredGrant, DuplexMode, McsTableName};
pub use access::cell::{GnbName, Lead, Lte, Nr, Pattern, ProactiveGrant, RatName, RlcMode, Scheduler};
pub use access::cellular::Cellular;
pub use access::deployment::{BlockageModel, Deployment, DeploymentModel, FadingProfile, Held};
pub use access::handover::{Handover, HandoverFate, HandoverKind, HandoverTrigger, Place};
pub use access::link::{FixedLink, Link, TraceFile, TraceLink};
pub use access::sidelink::{
    Movement, Sidelink, SidelinkFate, SidelinkPath, SidelinkSelection, TrailingReport, Waypoint,
};
pub use access::{Access, Cells, Pairs};
pub use core_network::{AckDirection, Core, Hop, Police};
pub use former::present_name;
pub use load::{ScenarioError, load, load_with, with_setting};
pub use pacing_pattern::PacingPattern;
pub use proxy::{Accelerator, AcceleratorPacing, AcceleratorProfile, Proxy, SplitTcp};
pub use queue::{Codel, QueueDiscipline};
pub use stations::{Direction, SinrRange, Stations, Traffic, Transfer, UdpArrivals};
pub use tcp::{StationTcp, Tcp};

use limits::{Allowed, Limit, Section, key, quantities, relation};
use paceline_net::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A whole scenario, as a file resolves to.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Duration and seed of the simulation.
    pub run: Run,
    /// The wired path between the servers and the access.
    pub core: Core,
    /// The access network of the stations.
    pub access: Access,
    /// The mobile accelerator, with `core.proxy = "accelerator"`.
    pub accelerator: Accelerator,
    /// The TCP proxy, with `core.proxy = "split-tcp"`.
    pub split_tcp: SplitTcp,
    /// TCP of servers and stations.
    pub tcp: Tcp,
    /// Groups of stations.
    pub stations: Vec<Stations>,
    /// A sentence for each former name of a key that the file uses.
    pub renamed: Vec<String>,
}

/// Table `[run]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Run {
    /// Simulated time, warm-up included.
    pub duration: Duration,
    /// Time at the start that the results leave out.
    pub warmup: Duration,
    /// Seed of all random streams; further runs count up from it.
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
        let deployment = self.cells().and_then(|cells| cells.deployment.as_ref());
        deployment.map_or(1, |deployment| sectors * deployment.served_sites as usize)
    }
    /// The cells, if they are the access.
    pub fn cells(&self) -> Option<&Cells> {
        if let Access::Cells(cells) = &self.access { Some(cells) } else { None }
    }
    /// The table of the cells, if they are the access.
    pub fn cell(&self) -> Option<&Cell> {
        self.cells().map(|cells| &cells.cell)
    }
    /// The link, if it is the access.
    pub fn link(&self) -> Option<&Link> {
        if let Access::Link(link) = &self.access { Some(link) } else { None }
    }
    /// The pairs with direct links, if they are the access.
    pub fn pairs(&self) -> Option<&Pairs> {
        if let Access::Pairs(pairs) = &self.access { Some(pairs) } else { None }
    }
    /// Whether a station's other end is behind the core.
    pub fn has_core(&self) -> bool {
        self.pairs().is_none() || self.stations.iter().any(|group| !group.peer)
    }
    /// Whether the access is an NR cell.
    pub fn has_nr_cell(&self) -> bool {
        self.cell().is_some_and(|cell| cell.nr.is_some())
    }
    /// The files of traces, by the keys that name them.
    pub fn traces_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut TraceFile)> {
        let link = if let Access::Link(link) = &mut self.access { Some(link) } else { None };
        link.into_iter().flat_map(|link| link.traces_mut())
    }
}
