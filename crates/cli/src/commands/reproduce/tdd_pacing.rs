//! `paceline reproduce tdd-pacing`: pacing in TDD cells (IEEE CCNC 2024), with maps of the gain over buffer
//! and base round-trip time.

use super::options::Options as Common;
use super::outcome::finish;
use super::pacing_pictures;
use crate::failure::Outcome;
use crate::report::gain_map;
use crate::results_folder::write_file;
use anyhow::Context;
use paceline_sim::reproduce::tdd_pacing::MapCell;
use paceline_study::reproduce::tdd_pacing;
use std::fmt::Write;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct PacingOptions {
    #[command(flatten)]
    common: Common,
    /// Run this part only (repeatable), such as edge; or a group: statements (if left out), maps, all
    #[arg(long = "part", value_name = "NAME")]
    parts: Vec<String>,
}

pub fn run(options: &PacingOptions) -> Outcome {
    let common = &options.common;
    let mut folders = common.folders();
    let tdd_pacing::Outcome { reproduced, parts, cells } =
        tdd_pacing::run(&common.plan(), &options.parts, &mut folders)?;
    if let Some(edge) = parts.iter().find(|part| part.name == "edge") {
        let (capacity_mbps, idle_ms) = tdd_pacing::probe(edge, &common.set, &mut folders)?;
        let [.., buffers, delays] = &edge.over(capacity_mbps, idle_ms, 1)[..] else {
            unreachable!("four axes")
        };
        for (name, svg) in pacing_pictures::pictures(edge, &buffers.1[1], &delays.1[0], &common.set)? {
            write_file(&common.out.join(&name), &svg).with_context(|| format!("cannot write {name}"))?;
        }
    }
    write_file(&common.out.join("cells.csv"), &csv(&cells)).context("cannot write cells.csv")?;
    for part in parts.iter().filter(|part| part.is_map()) {
        for (name, svg) in gain_map::pictures(part, &cells) {
            write_file(&common.out.join(&name), &svg).with_context(|| format!("cannot write {name}"))?;
        }
    }
    finish(&reproduced, Some(&common.out))?;
    Ok(ExitCode::SUCCESS)
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
        let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
        let names: Vec<&str> =
            cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`')).collect();
        assert_eq!(names.join(","), csv(&[]).trim_end());
    }
}
