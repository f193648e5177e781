//! Pacing in TDD cells (Sawabe, Shinohara and Iwai, IEEE CCNC 2024, known by its abstract): rows 3a to 3c of
//! the published statements, statements (a) to (f) of our own about where pacing gains, and maps of the gain
//! over buffer and base round-trip time.
//!
//! `parts` are the settings, named before any run. A value is the median over phases: runs whose base
//! round-trip times are spread evenly over one period of the pattern, each with a seed of its own. Buffers
//! are given in period-bytes: what the cell carries in one period of its pattern.

mod experiment;
mod maps;
mod packets;
mod parts;
mod rows;

use crate::plan::{self, Failure, Inputs, Options, Paper, Reproduced, Runner, SEEDS, strings};
use experiment::{Experiment, MapCell};
use paceline_sim::RunResult;
use paceline_sim::cell_facts::CellFacts;
use paceline_study::{Grid, InputError};
use parts::{Part, parts};
use serde_json::json;
use std::fmt::Write;

/// The experiment. A map has a thousand points: the page has its pictures in place of a table.
pub static PAPER: Paper = Paper {
    name: "tdd-pacing",
    about: "Pacing in TDD cells (IEEE CCNC 2024): its statements, ours, and maps over buffer and round-trip time",
    inputs: Inputs::Parts,
    counts: SEEDS,
    part_tables: false,
    plan,
};

/// Settings of a quick reproduction. Chosen for a first look within minutes; the results list them under
/// `set`.
const QUICK: [&str; 2] = ["run.duration=6 s", "run.warmup=2 s"];
/// Settings of the run that measures the capacity of a cell. Chosen: more than any of the cells carries.
const PROBE: [&str; 4] =
    ["station.traffic=udp", "station.udp_rate=1 Gb/s", "run.duration=3 s", "run.warmup=1 s"];

/// Name of a group, and whether a part belongs to it.
type Group = (&'static str, fn(&Part) -> bool);
/// Groups of parts: the settings of statements (a) to (f) with their control, the maps, and all parts.
/// Chosen: statements and maps take about two hours each on two cores.
const GROUPS: [Group; 3] =
    [("statements", Part::is_of_statements), ("maps", Part::is_map), ("all", |_| true)];

/// Simulates the parts with these names or in these groups; without names the statements, all if quick.
fn plan(options: &Options, runner: &mut dyn Runner) -> Result<Reproduced, Failure> {
    let phases = PAPER.seeds(options) as usize;
    let parts = select(parts(options.quick), options.quick, &options.parts)?;
    let mut runs = Vec::new();
    for part in &parts {
        runs.push(run_part(part, phases, options, runner)?);
    }
    let experiment = Experiment::new(parts.iter().zip(runs.iter().map(Vec::as_slice)), phases);
    let about = json!({
        "scenario": "private-5g-n79, lte-tdd, nr-fdd-20mhz",
        "seeds": phases,
        "set": options.set,
        "parts": parts.iter().map(|part| part.name.as_str()).collect::<Vec<_>>(),
    });
    let quick = if options.quick { format!(", {}", QUICK.join(", ")) } else { String::new() };
    let set = &options.set;
    let set = if set.is_empty() { String::new() } else { format!("; set: {}", set.join(", ")) };
    let conditions =
        format!("median over {phases} phases of the base round-trip time, a seed each{quick}{set}");
    files(&parts, &experiment.cells(), options, runner)?;
    Ok(Reproduced { conditions, about, rows: experiment.rows() })
}

/// Writes the points as a table, the pictures of packets, and the maps.
fn files(
    parts: &[Part],
    cells: &[MapCell],
    options: &Options,
    runner: &mut dyn Runner,
) -> Result<(), Failure> {
    if runner.folder().is_none() {
        return Ok(());
    }
    let mut files = Vec::new();
    if let Some(edge) = parts.iter().find(|part| part.name == "edge") {
        let (capacity_mbps, idle_ms) = probe(edge, &options.set, runner)?;
        let [.., buffers, delays] = &edge.over(capacity_mbps, idle_ms, 1)[..] else {
            unreachable!("four axes")
        };
        files.extend(packets::pictures(edge, &buffers.1[1], &delays.1[0], &options.set)?);
    }
    files.push((String::from("cells.csv"), csv(cells)));
    files.extend(parts.iter().filter(|part| part.is_map()).flat_map(|part| maps::pictures(part, cells)));
    let Some(folder) = runner.folder() else { return Ok(()) };
    files.iter().try_for_each(|(name, text)| folder.write(name, text))
}

/// The parts that are named; without names the statements, all if quick.
fn select(mut all: Vec<Part>, quick: bool, names: &[String]) -> Result<Vec<Part>, InputError> {
    let default = if quick { "all" } else { "statements" };
    let wanted = if names.is_empty() { vec![default.to_owned()] } else { names.to_vec() };
    let is_wanted = |part: &Part, name: &String| {
        part.name == *name || GROUPS.iter().any(|(group, holds)| group == name && holds(part))
    };
    if let Some(unknown) = wanted.iter().find(|name| !all.iter().any(|part| is_wanted(part, name))) {
        let names = GROUPS.map(|(group, _)| group).into_iter().chain(all.iter().map(|part| &*part.name));
        let names = names.collect::<Vec<_>>().join(", ");
        return Err(InputError::text(format!("--part {unknown}: the parts and groups are {names}")));
    }
    all.retain(|part| wanted.iter().any(|name| is_wanted(part, name)));
    Ok(all)
}

fn run_part(
    part: &Part,
    phases: usize,
    options: &Options,
    runner: &mut dyn Runner,
) -> Result<Vec<Vec<RunResult>>, Failure> {
    let grid = grid(part, phases, options, probe(part, &options.set, runner)?)?;
    runner.sweep(&part.name, &grid, 1)
}

/// The points of a part, whose cell carries `capacity_mbps` with a round trip of `idle_ms` when it is idle.
fn grid(
    part: &Part,
    phases: usize,
    options: &Options,
    (capacity_mbps, idle_ms): (f64, f64),
) -> Result<Grid, InputError> {
    let quick = if options.quick { strings(&QUICK) } else { Vec::new() };
    let set = [part.settings(), quick, options.set.clone()].concat();
    let mut grid = plan::grid(part.cell.scenario, &set, &part.over(capacity_mbps, idle_ms, phases))?;
    // The delay changes fastest: every phase has a seed of its own.
    for (index, point) in grid.points.iter_mut().enumerate() {
        point.scenario.run.seed += (index % phases) as u64;
    }
    Ok(grid)
}

/// The rate that the cell of a part carries, in Mb/s, and its idle round trip in ms.
fn probe(part: &Part, set: &[String], runner: &mut dyn Runner) -> Result<(f64, f64), Failure> {
    let settings = [part.settings(), set.to_vec(), strings(&PROBE), strings(&["station.count=1"])].concat();
    let scenario = plan::scenario(part.cell.scenario, &settings)?;
    let capacity_mbps = runner.simulate(&scenario, scenario.run.seed)?.totals.goodput_mbps;
    let latency = CellFacts::of(scenario.cell().expect("the paper has a cell")).latency;
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

    #[test]
    fn a_group_has_its_parts_and_an_unknown_part_is_refused() {
        let names = |wanted: &[&str], quick| {
            let wanted = wanted.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            select(parts(quick), quick, &wanted)
        };
        let of = |wanted: &[&str]| names(wanted, false).unwrap_or_default();
        assert!(of(&[]).iter().all(|part| part.is_of_statements() && !part.is_map()));
        assert_eq!((of(&[]).len(), of(&["maps"]).len(), of(&["all"]).len()), (9, 6, parts(false).len()));
        assert_eq!(of(&["maps", "edge"]).len(), 7);
        assert_eq!(names(&[], true).unwrap_or_default(), parts(true));
        assert!(names(&["edges"], false).is_err());
    }

    #[test]
    fn every_part_has_valid_points() {
        let options = Options::default();
        for part in parts(false) {
            let grid = grid(&part, 1, &options, (440.0, 5.0));
            let points = grid.map(|grid| grid.points.len()).map_err(|error| error.to_string());
            assert!(points.as_ref().is_ok_and(|points| *points > 0), "{}: {points:?}", part.name);
        }
    }

    /// The columns of `cells.csv` are those of docs/results.md.
    #[test]
    fn the_columns_of_cells_are_described() {
        let text = include_str!("../../../../../docs/results.md");
        let section = text.split("\n## Cells\n").nth(1).unwrap().split("\n## ").next().unwrap();
        let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
        let names: Vec<&str> =
            cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`')).collect();
        assert_eq!(names.join(","), csv(&[]).trim_end());
    }
}
