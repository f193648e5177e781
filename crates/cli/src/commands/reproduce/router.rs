//! `paceline reproduce router`: ACK rate control in front of a router (Pavilanskas and Statkus 2010). Every
//! part has a folder of its own.

use super::options::Options;
use super::outcome::finish;
use super::router_measured::{self, Measure};
use crate::failure::Outcome;
use crate::report::rates_over_time;
use crate::results_folder::write_file;
use anyhow::Context;
use paceline_sim::reproduce::router::{DROPS, Part, parts};
use paceline_sim::simulate;
use paceline_study::reproduce::{Reproduced, router};
use paceline_study::scenario_file;
use serde_json::json;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct RouterOptions {
    #[command(flatten)]
    options: Options,
    /// Whether to measure the rows with this host's TCP and forwarding too, in namespaces; 10 minutes
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    measure: Measure,
}

pub fn run(RouterOptions { options, measure }: &RouterOptions) -> Outcome {
    let mut reproduced = if *measure == Measure::Only {
        let about = json!({ "scenario": "router", "seeds": 0, "set": [] });
        Reproduced { name: "router", conditions: String::from("measured"), about, rows: Vec::new() }
    } else {
        let reproduced = router::run(&options.plan(), &mut options.folders())?;
        let picture = rate_over_time(options)?;
        write_file(&options.out.join("rates.svg"), &picture).context("cannot write rates.svg")?;
        reproduced
    };
    reproduced.rows.extend(router_measured::rows(options, *measure)?);
    finish(&reproduced, Some(&options.out))?;
    Ok(ExitCode::SUCCESS)
}

/// The rate of one session at 90 Mb/s over its first 3 s, with a line for each share of dropped ACKs: row 5a.
fn rate_over_time(options: &Options) -> Outcome<String> {
    let all = parts();
    let mut lines = Vec::new();
    for drop in DROPS {
        let wanted = format!("start-90-{drop}");
        let part: Option<&Part> = all.iter().find(|part| part.name == wanted);
        let Some(part) = part else { continue };
        let set: Vec<String> =
            [String::from("run.sample=100 ms")].into_iter().chain(options.set.clone()).collect();
        let scenario = scenario_file::parse("router.toml", &part.scenario, &set)?;
        let run = simulate(&scenario, scenario.run.seed, None, &mut |_| {});
        let bytes = |pair: &[paceline_sim::results::Sample]| {
            let [from, to] = [0, 1].map(|index: usize| pair[index].at.as_secs_f64());
            (to, 8e-6 * (pair[1].downloaded - pair[0].downloaded) as f64 / (to - from))
        };
        let points = run.samples.windows(2).map(bytes).collect();
        lines.push((format!("{drop}% dropped"), points));
    }
    Ok(rates_over_time("Rate at 90 Mb/s over time, by share of dropped ACKs", &lines))
}
