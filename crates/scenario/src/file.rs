//! The scenario file: all tables side by side, as the file has them. A file becomes a [`Scenario`] with one
//! access, where tables of another access are refused; a scenario becomes a file again.

use crate::access::cell::RatName;
use crate::checks::in_force;
use crate::limits::{self, Problem};
use crate::{
    Accelerator, Access, AckFilter, Cell, Cells, Core, Deployment, GnbName, Handover, Link, Pairs, Proxy, Run,
};
use crate::{Scenario, Sidelink, SplitTcp, Stations, Tcp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A whole scenario file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = limits::order::<Self>)]
pub(crate) struct File {
    /// Duration and seed of the simulation.
    #[serde(default)]
    run: Run,
    /// The wired path from the servers to the eNB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    core: Option<Core>,
    /// The cell; with `[deployment]`, each of the served cells. Not beside `[link]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cell: Option<Cell>,
    /// An access link in place of the cell, with exactly one of the tables `fixed`, `trace`, `hspa` and
    /// `lte_early`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<Link>,
    /// Pairs of stations with direct links: a station's peer stands in place of its server. In place of the
    /// cell, or beside a `[cell]` of NR, whose carrier the pairs then have; not beside `[link]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sidelink: Option<Sidelink>,
    /// Sites around the stations; without the table, stations have the SINRs of their own tables. Not beside
    /// `[link]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deployment: Option<Deployment>,
    /// Changes of the serving cell, none without the table. Beside `[deployment]` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handover: Option<Handover>,
    /// The mobile accelerator, with `core.proxy = "accelerator"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accelerator: Option<Accelerator>,
    /// The TCP proxy, with `core.proxy = "split-tcp"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    split_tcp: Option<SplitTcp>,
    /// The ACK filter in stations' uplink buffers. Not beside `[link]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ack_filter: Option<AckFilter>,
    /// TCP of servers and stations.
    #[serde(default)]
    tcp: Tcp,
    /// A group of stations of one kind.
    #[serde(default, rename = "station")]
    stations: Vec<Stations>,
}

impl File {
    /// The scenario, with the defaults that depend on other keys. `given` tells whether the file or an
    /// override has a key.
    pub(crate) fn into_scenario(mut self, given: &dyn Fn(&str) -> bool) -> Result<Scenario, Problem> {
        if let Some(cell) = &mut self.cell {
            cell.follow_keys(given);
            cell.resolve(given);
        }
        if let Some(handover) = &mut self.handover {
            handover.resolve(self.cell.as_ref().map_or(RatName::Lte, |cell| cell.rat), given);
        }
        let (has_core, nr) = (self.core.is_some(), self.cell.as_ref().is_some_and(|c| c.rat == RatName::Nr));
        let cell = self.cell.is_some();
        let access = match (self.link, self.sidelink) {
            (None, None) => Access::Cells(Box::new(Cells {
                cell: self.cell.unwrap_or_default(),
                deployment: self.deployment,
                handover: self.handover,
                ack_filter: self.ack_filter.unwrap_or_default(),
            })),
            (Some(mut link), None) => {
                let others = [
                    ("cell", cell),
                    ("deployment", self.deployment.is_some()),
                    ("handover", self.handover.is_some()),
                    ("ack_filter", self.ack_filter.is_some()),
                ];
                refuse(
                    &others,
                    "[cell], [deployment], [handover] and [ack_filter], or [link]: a scenario has a cell or another link, not both",
                )?;
                link.exclusions(given)?;
                link.resolve();
                Access::Link(Box::new(link))
            }
            (link, Some(sidelink)) => {
                let others = [
                    ("link", link.is_some()),
                    ("cell", cell && !nr),
                    ("deployment", self.deployment.is_some()),
                    ("handover", self.handover.is_some()),
                    ("accelerator", self.accelerator.is_some()),
                    ("split_tcp", self.split_tcp.is_some()),
                ];
                refuse(
                    &others,
                    "left out beside [sidelink], which has no other access and no proxy; a [cell] with rat = \"nr\" gives the carrier",
                )?;
                let ack_filter = self.ack_filter.unwrap_or_default();
                if let Some(cell) = &mut self.cell {
                    cell.gnb = GnbName::Ideal; // pairs have their own grants
                }
                Access::Pairs(Box::new(Pairs { sidelink, carrier: self.cell, ack_filter }))
            }
        };
        let mut scenario = Scenario {
            run: self.run,
            core: self.core.unwrap_or_default(),
            access,
            accelerator: self.accelerator.unwrap_or_default(),
            split_tcp: self.split_tcp.unwrap_or_default(),
            tcp: self.tcp,
            stations: self.stations,
            renamed: Vec::new(),
        };
        if scenario.pairs().is_some() {
            pairs_without_proxy(&mut scenario, has_core)?;
        }
        scenario.complete_tcp();
        Ok(scenario)
    }

    /// A scenario as the table of a file, with all keys of its access.
    pub(crate) fn table_of(scenario: &Scenario) -> toml::Table {
        let Scenario { run, core, access, accelerator, split_tcp, tcp, stations, .. } = scenario.clone();
        let proxies = !matches!(access, Access::Pairs(_));
        let (mut cell, mut link, mut sidelink, mut deployment, mut handover) = (None, None, None, None, None);
        let ack_filter = access.ack_filter().cloned();
        match access {
            Access::Cells(cells) => {
                (cell, deployment, handover) = (Some(cells.cell), cells.deployment, cells.handover);
            }
            Access::Link(of) => link = Some(*of),
            Access::Pairs(pairs) => (cell, sidelink) = (pairs.carrier, Some(pairs.sidelink)),
        }
        let file = Self {
            run,
            core: scenario.has_core().then_some(core),
            cell,
            link,
            sidelink,
            deployment,
            handover,
            accelerator: proxies.then_some(accelerator),
            split_tcp: proxies.then_some(split_tcp),
            ack_filter,
            tcp,
            stations,
        };
        toml::Table::try_from(file).expect("a scenario is made of tables and scalars")
    }
}

impl Scenario {
    /// The scenario as a file with every key that acts, defaults included.
    pub fn to_toml(&self) -> String {
        let mut table = File::table_of(self);
        in_force::remove_idle(&mut table);
        toml::to_string(&table).expect("a scenario is made of tables and scalars")
    }
}

/// Refuses the first of the tables that is present.
fn refuse(tables: &[(&str, bool)], allowed: &str) -> Result<(), Problem> {
    let present = tables.iter().find(|(_, present)| *present);
    present.map_or(Ok(()), |(name, _)| Err(Problem::without_value(name, allowed)))
}

/// Refuses a proxy beside pairs, and a wired path that no station uses.
fn pairs_without_proxy(scenario: &mut Scenario, has_core: bool) -> Result<(), Problem> {
    if !scenario.has_core() {
        let allowed = "left out beside [sidelink] whose stations all have peers: only stations with peer = false have a wired path";
        refuse(&[("core", has_core)], allowed)?;
        scenario.core.hops.clear(); // a peer has no wired path
    }
    let allowed = "\"none\" beside [sidelink], whose peers are not behind a proxy";
    refuse(&[("core.proxy", scenario.core.proxy != Proxy::None)], allowed)
}
