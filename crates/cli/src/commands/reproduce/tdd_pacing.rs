//! `paceline reproduce tdd-pacing`: pacing in TDD cells (IEEE CCNC 2024), with maps of the gain over buffer
//! and base round-trip time.

use super::options::Options as Common;
use super::outcome::finish;
use super::pacing_pictures;
use crate::failure::{Failure, Outcome};
use crate::report::gain_map;
use crate::results_folder::write_file;
use crate::scenario_file;
use crate::sweep::{self, Grid};
use anyhow::Context;
use paceline_sim::cell_facts::CellFacts;
use paceline_sim::reproduce::tdd_pacing::{Experiment, MapCell, Part, parts};
use paceline_sim::{RunResult, simulate};
use serde_json::json;
use std::fmt::Write;
use std::process::ExitCode;

/// Settings of `--quick`. Chosen for a first look within minutes; the results list them under `set`.
const QUICK: [&str; 2] = ["run.duration=6 s", "run.warmup=2 s"];
/// Settings of the run that measures the capacity of a cell. Chosen: more than any of the cells carries.
const PROBE: [&str; 4] =
    ["station.traffic=udp", "station.udp_rate=1 Gb/s", "run.duration=3 s", "run.warmup=1 s"];

#[derive(clap::Args)]
pub struct PacingOptions {
    #[command(flatten)]
    common: Common,
    /// Run this part only (repeatable), such as edge; or a group: statements (if left out), maps, all
    #[arg(long = "part", value_name = "NAME")]
    parts: Vec<String>,
}

/// Name of a group, and whether a part belongs to it.
type Group = (&'static str, fn(&Part) -> bool);
/// Groups of parts: the settings of statements (a) to (f) with their control, the maps, and all parts.
/// Chosen: the statements end within hours, the maps take days.
const GROUPS: [Group; 3] =
    [("statements", Part::is_of_statements), ("maps", Part::is_map), ("all", |_| true)];

pub fn run(options: &PacingOptions) -> Outcome {
    let common = &options.common;
    let phases = common.seeds() as usize;
    let mut all = parts(common.quick);
    select(&mut all, options)?;
    let mut runs = Vec::new();
    for part in &all {
        runs.push(run_part(part, phases, common)?);
    }
    if let Some(edge) = all.iter().find(|part| part.name == "edge") {
        let (capacity_mbps, idle_ms) = probe(edge, &common.set)?;
        let [.., buffers, delays] = &edge.over(capacity_mbps, idle_ms, 1)[..] else {
            unreachable!("four axes")
        };
        for (name, svg) in pacing_pictures::pictures(edge, &buffers.1[1], &delays.1[0], &common.set)? {
            write_file(&common.out.join(&name), &svg).with_context(|| format!("cannot write {name}"))?;
        }
    }
    let experiment = Experiment::new(all.iter().zip(runs.iter().map(Vec::as_slice)), phases);
    let cells = experiment.cells();
    write_file(&common.out.join("cells.csv"), &csv(&cells)).context("cannot write cells.csv")?;
    for part in all.iter().filter(|part| part.is_map()) {
        for (name, svg) in gain_map::pictures(part, &cells) {
            write_file(&common.out.join(&name), &svg).with_context(|| format!("cannot write {name}"))?;
        }
    }
    let about = json!({
        "scenario": "private-5g-n79, lte-tdd, nr-fdd-20mhz",
        "seeds": phases,
        "set": common.set,
        "parts": all.iter().map(|part| part.name.as_str()).collect::<Vec<_>>(),
    });
    let quick = if common.quick { format!(", {}", QUICK.join(", ")) } else { String::new() };
    let set = if common.set.is_empty() { String::new() } else { format!("; set: {}", common.set.join(", ")) };
    let conditions =
        format!("median over {phases} phases of the base round-trip time, a seed each{quick}{set}");
    finish("tdd-pacing", &conditions, about, &experiment.rows(), Some(&common.out))?;
    Ok(ExitCode::SUCCESS)
}

/// Leaves the parts that the options name; if they name none the statements, with `--quick` all.
fn select(all: &mut Vec<Part>, options: &PacingOptions) -> Outcome<()> {
    let default = if options.common.quick { "all" } else { "statements" };
    let wanted = if options.parts.is_empty() { vec![default.to_owned()] } else { options.parts.clone() };
    let is_wanted = |part: &Part, name: &String| {
        part.name == *name || GROUPS.iter().any(|(group, holds)| group == name && holds(part))
    };
    if let Some(unknown) = wanted.iter().find(|name| !all.iter().any(|part| is_wanted(part, name))) {
        let names = GROUPS.map(|(group, _)| group).into_iter().chain(all.iter().map(|part| &*part.name));
        let names = names.collect::<Vec<_>>().join(", ");
        return Err(Failure::input(format!("--part {unknown}: the parts and groups are {names}")));
    }
    all.retain(|part| wanted.iter().any(|name| is_wanted(part, name)));
    Ok(())
}

fn run_part(part: &Part, phases: usize, options: &Common) -> Outcome<Vec<Vec<RunResult>>> {
    let (name, text) = scenario_file::built_in(part.cell.scenario);
    let quick: &[&str] = if options.quick { &QUICK } else { &[] };
    let mut set = part.settings();
    set.extend(quick.iter().map(|set| (*set).to_owned()).chain(options.set.clone()));
    let (capacity_mbps, idle_ms) = probe(part, &options.set)?;
    let over: Vec<String> = part
        .over(capacity_mbps, idle_ms, phases)
        .into_iter()
        .map(|(key, values)| format!("{key}={}", values.join(",")))
        .collect();
    let mut grid = Grid::new(name.clone(), &name, text, &set, sweep::axes(&over)?)?;
    // The delay changes fastest: every phase has a seed of its own.
    for (index, point) in grid.points.iter_mut().enumerate() {
        point.scenario.run.seed += (index % phases) as u64;
    }
    Ok(sweep::run(&grid, 1, options.jobs, &options.out.join(&part.name))?.runs)
}

/// The rate that the cell of a part carries, in Mb/s, and its idle round trip in ms.
fn probe(part: &Part, set: &[String]) -> Outcome<(f64, f64)> {
    let (name, text) = scenario_file::built_in(part.cell.scenario);
    let settings = part.settings().into_iter().chain(set.to_vec()).chain(PROBE.map(str::to_owned));
    let settings: Vec<String> = settings.chain([String::from("station.count=1")]).collect();
    let scenario =
        scenario_file::parse(&name, text, &settings).map_err(|error| Failure::Input(error.into()))?;
    let capacity_mbps = simulate(&scenario, scenario.run.seed, None, &mut |_| {}).totals.goodput_mbps;
    let latency = CellFacts::of(&scenario.cell_plan(), &scenario.cell).latency;
    let uplink = latency.uplink_with_configured_grant.unwrap_or(latency.uplink_first_pusch);
    Ok((capacity_mbps, latency.downlink.mean_ms + uplink.mean_ms))
}

/// `cells.csv`: a line for every point.
fn csv(cells: &[MapCell]) -> String {
    let mut text = String::from(
        "part,control,pacing,buffer,rtt_ms,goodput_mbps,gain_percent,rtt_mean_ms,rtt_p95_ms,retransmitted_percent\n",
    );
    for cell in cells {
        let (mean, p95) = cell.round_trip_ms;
        let _ = writeln!(
            text,
            "{},{},{},{},{},{:.3},{:.2},{mean:.3},{p95:.3},{:.3}",
            cell.part,
            cell.control,
            cell.mode,
            cell.buffer,
            cell.rtt_ms,
            cell.goodput_mbps,
            cell.gain_percent,
            cell.retransmitted_percent
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns of `cells.csv` are those of docs/results.md.
    #[test]
    fn the_columns_of_cells_are_described() {
        let text = include_str!("../../../../../docs/results.md");
        let section = text.split("\n## Cells\n").nth(1).unwrap().split("\n## ").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        assert_eq!(rows.collect::<Vec<_>>().join(","), csv(&[]).trim_end());
    }

    #[test]
    fn a_group_has_its_parts_and_an_unknown_part_is_refused() {
        let names = |wanted: &[&str], quick| {
            let wanted = wanted.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            let common = Common { quick, seeds: None, jobs: None, set: Vec::new(), out: "out".into() };
            let mut all = parts(quick);
            select(&mut all, &PacingOptions { common, parts: wanted }).map(|()| all)
        };
        let of = |wanted: &[&str]| names(wanted, false).unwrap_or_default();
        assert!(of(&[]).iter().all(|part| part.is_of_statements() && !part.is_map()));
        assert_eq!((of(&[]).len(), of(&["maps"]).len(), of(&["all"]).len()), (9, 6, parts(false).len()));
        assert_eq!(of(&["maps", "edge"]).len(), 7);
        assert_eq!(names(&[], true).unwrap_or_default(), parts(true));
        assert!(names(&["edges"], false).is_err());
    }
}
