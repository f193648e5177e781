//! Checks of a scenario that concern several tables. The limits of single keys are in the files of their
//! tables.

use crate::access::{cell, handover, link, sidelink};
use crate::limits::{self, Problem};
use crate::stations::MAX_STATIONS;
use crate::{CELL_KEYS, CELL_TABLES, FILTER_TABLE, PROXY_TABLES, Path, Scenario, core_network, stations};
use paceline_ran::Rat;

/// Refuses tables and keys that exclude each other. `given` tells whether the file or an override has a key.
pub(crate) fn exclusions(scenario: &Scenario, given: &dyn Fn(&str) -> bool) -> Result<(), Problem> {
    let refuse =
        |key: String, allowed: &str| Problem { is_reason: false, ..Problem::because(&key, "", allowed) };
    if scenario.sidelink.is_some() {
        return beside_sidelink(scenario, given);
    }
    let peers = (0..scenario.stations.len()).map(|index| format!("station.{index}.peer"));
    if let Some(key) = peers.into_iter().find(|key| given(key)) {
        return Err(refuse(key, "left out without [sidelink], whose pairs have direct links"));
    }
    let Some(link) = &scenario.link else { return Ok(()) };
    if let Some(name) = CELL_TABLES.iter().chain([&FILTER_TABLE]).find(|name| given(name)) {
        let allowed = "[cell], [deployment], [handover] and [ack_filter], or [link]: a scenario has a cell or another link, not both";
        return Err(refuse((*name).to_owned(), allowed));
    }
    for index in 0..scenario.stations.len() {
        let keys = CELL_KEYS.iter().map(|name| format!("station.{index}.{name}"));
        if let Some(key) = keys.into_iter().find(|key| given(key)) {
            return Err(refuse(key, "left out beside [link], which has no radio"));
        }
    }
    let present: Vec<&str> = link.kinds().into_iter().filter_map(|(kind, is)| is.then_some(kind)).collect();
    if present.len() != 1 {
        let key = present.get(1).map_or_else(|| String::from("link"), |kind| format!("link.{kind}"));
        let allowed =
            "exactly one of the tables [link.fixed], [link.trace], [link.hspa] and [link.lte_early]";
        return Err(refuse(key, allowed));
    }
    for (one, other) in
        [("link.queue", "link.queue_packets"), ("link.trace.uplink", "link.trace.uplink_rate")]
    {
        if given(one) && given(other) {
            return Err(refuse(other.to_owned(), &format!("{one} or {other}, not both")));
        }
    }
    Ok(())
}

/// Refuses tables and keys of other accesses and of proxies beside `[sidelink]`, and a wired path that nobody
/// uses.
fn beside_sidelink(scenario: &Scenario, given: &dyn Fn(&str) -> bool) -> Result<(), Problem> {
    let keys = (0..scenario.stations.len())
        .flat_map(|index| CELL_KEYS.iter().map(move |name| format!("station.{index}.{name}")));
    let refuse =
        |key: &str, allowed: &str| Err(Problem { is_reason: false, ..Problem::because(key, "", allowed) });
    let nr = scenario.cell.rat == cell::RatName::Nr;
    let tables = ["link"].iter().chain(&CELL_TABLES).chain(&PROXY_TABLES).map(|name| (*name).to_owned());
    let tables = tables.filter(|name| !(nr && name == "cell"));
    if let Some(key) = tables.chain(keys).find(|key| given(key)) {
        let allowed = "left out beside [sidelink], which has no other access, proxy or stated SINR; a [cell] with rat = \"nr\" gives \
                       the carrier";
        return refuse(&key, allowed);
    }
    let unused = if nr { sidelink::unused_in_nr(given) } else { sidelink::unused_in_lte(given) };
    if let Some(key) = unused {
        let allowed = match nr {
            true => "left out beside [sidelink] in NR, where it has no effect",
            false => "left out in LTE: it belongs to [cell] with rat = \"nr\"",
        };
        return refuse(&key, allowed);
    }
    if given("core") && !scenario.has_core() {
        let allowed = "left out beside [sidelink] whose stations all have peers: only stations with peer = \
                       false have a wired path";
        return refuse("core", allowed);
    }
    if scenario.core.path != Path::Direct {
        return refuse("core.path", "\"direct\" beside [sidelink], whose peers are not behind a proxy");
    }
    Ok(())
}

/// Finds the first value that is not allowed.
pub(crate) fn check(scenario: &Scenario) -> Result<(), Problem> {
    limits::check("run", &scenario.run)?;
    core_network::check(&scenario.core, scenario.stations.len())?;
    if let Some(link) = &scenario.link {
        link::check(link)?;
    }
    if let Some(sidelink) = &scenario.sidelink {
        sidelink::check(sidelink)?;
    }
    if let Some(index) = scenario.stations.iter().position(|group| !group.proxy)
        && scenario.core.path == Path::Direct
    {
        let allowed = "left out where core.path = \"direct\", without a proxy";
        return Err(Problem::because(&format!("station.{index}.proxy"), "false", allowed));
    }
    limits::check("accelerator", &scenario.accelerator)?;
    limits::check("split_tcp", &scenario.split_tcp)?;
    limits::check("cell", &scenario.cell)?;
    cell::check(&scenario.cell)?;
    if let Some(table) = scenario.sidelink.as_ref().filter(|_| scenario.cell.nr.is_some()) {
        sidelink::check_carrier(table, &scenario.cell_plan(), &scenario.cell)?;
    }
    limits::check("ack_filter", &scenario.ack_filter)?;
    limits::check("tcp", &scenario.tcp)?;
    if let Some(deployment) = &scenario.deployment {
        limits::check("deployment", deployment)?;
    }
    if let Some(table) = &scenario.handover {
        handover::check(table, scenario.deployment.is_some())?;
    }
    for (index, group) in scenario.stations.iter().enumerate() {
        handover::check_path(&format!("station.{index}"), &group.path, scenario.deployment.as_ref())?;
    }
    stations::check(&scenario.stations, &scenario.tcp, scenario.deployment.is_some())?;
    let count = scenario.station_count();
    let allowed = format!("1 to {MAX_STATIONS} stations in all [[station]] tables");
    Problem::unless((1..=MAX_STATIONS).contains(&count), "station.count", count, &allowed)?;
    if scenario.has_nr_cell() { configured_grants(scenario, count) } else { Ok(()) }
}

/// Refuses stations for which the configured grants have no PRBs. In a deployment, all may be in one cell.
fn configured_grants(scenario: &Scenario, stations: u64) -> Result<(), Problem> {
    let plan = scenario.cell_plan();
    let Rat::Nr(nr) = &plan.rat else { return Ok(()) };
    let Some(grant) = nr.configured_grant else { return Ok(()) };
    let most = grant.capacity(&plan.duplex, plan.uplink_prb - plan.pucch_prb);
    let allowed = format!(
        "1 to {most}: configured grants of {} PRBs in every period of {} slots (cell.nr.configured_grant)",
        grant.prbs, grant.period.0
    );
    Problem::unless(stations <= most, "station.count", stations, &allowed)
}
