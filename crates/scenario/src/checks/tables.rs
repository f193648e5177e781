//! Checks of a scenario that concern several tables. The limits of single keys are in the files of their
//! tables.

use crate::access::{cell, handover, link, sidelink};
use crate::limits::{self, Problem};
use crate::stations::MAX_STATIONS;
use crate::{Access, Cells, Pairs, Scenario, core_network, stations};
use paceline_ran::Rat;

/// Finds the first value that is not allowed.
pub(crate) fn check(scenario: &Scenario) -> Result<(), Problem> {
    if scenario.stations.is_empty() {
        return Err(Problem::because("station", "", "a scenario needs at least one [[station]] table"));
    }
    limits::check("run", &scenario.run)?;
    core_network::check(&scenario.core, scenario.stations.len())?;
    limits::check("accelerator", &scenario.accelerator)?;
    limits::check("split_tcp", &scenario.split_tcp)?;
    match &scenario.access {
        Access::Cells(cells) => cells_in_range(cells)?,
        Access::Link(link) => link::check(link)?,
        Access::Pairs(pairs) => pairs_in_range(pairs)?,
    }
    limits::check("tcp", &scenario.tcp)?;
    let deployment = scenario.cells().and_then(|cells| cells.deployment.as_ref());
    for (index, group) in scenario.stations.iter().enumerate() {
        handover::check_path(&format!("station.{index}"), &group.path, deployment)?;
    }
    stations::check(&scenario.stations, &scenario.tcp, deployment.is_some())?;
    let count = scenario.station_count();
    let allowed = format!("1 to {MAX_STATIONS} stations in all [[station]] tables");
    Problem::unless((1..=MAX_STATIONS).contains(&count), "station.count", count, &allowed)?;
    scenario.cells().map_or(Ok(()), |cells| configured_grants(cells, count))
}

fn cells_in_range(cells: &Cells) -> Result<(), Problem> {
    let Cells { cell, deployment, handover, ack_filter } = cells;
    limits::check("cell", cell)?;
    cell::check(cell)?;
    limits::check("ack_filter", ack_filter)?;
    deployment.iter().try_for_each(|table| limits::check("deployment", table))?;
    handover.iter().try_for_each(|table| handover::check(table, cell.rat, deployment.is_some()))
}

fn pairs_in_range(pairs: &Pairs) -> Result<(), Problem> {
    sidelink::check(&pairs.sidelink)?;
    if let Some(cell) = &pairs.carrier {
        limits::check("cell", cell)?;
        cell::check(cell)?;
        sidelink::check_carrier(&pairs.sidelink, &cell.plan(), cell)?;
    }
    limits::check("ack_filter", &pairs.ack_filter)
}

/// Refuses stations for which the configured grants have no PRBs. In a deployment, all may be in one cell.
fn configured_grants(cells: &Cells, stations: u64) -> Result<(), Problem> {
    let plan = cells.cell.plan();
    let Rat::Nr(nr) = &plan.rat else { return Ok(()) };
    let Some(grant) = nr.configured_grant else { return Ok(()) };
    let most = grant.capacity(&plan.duplex, plan.uplink_prb - plan.pucch_prb);
    let allowed = format!(
        "1 to {most}: configured grants of {} PRBs in every period of {} slots (cell.nr.configured_grant)",
        grant.prbs, grant.period.0
    );
    Problem::unless(stations <= most, "station.count", stations, &allowed)
}
