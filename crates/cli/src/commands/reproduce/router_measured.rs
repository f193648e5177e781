//! `paceline reproduce router` with the kernel's TCP and forwarding, where this host can.

use super::options::Options;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress;
use crate::report::rates_over_time;
use crate::results_folder::write_file;
use anyhow::Context;
use paceline_emulate::router;
use paceline_pep::ack_policer::Mode;
use paceline_sim::reproduce::Row;
use paceline_sim::reproduce::router::measured::{Figures, Measured, Setting, settings};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Figures of all settings, in the folder for the results.
const FILE: &str = "measured.json";
/// Length of a setting after its warm-up, s. Chosen: past the first 3 s, and all settings in 10 minutes.
const SECONDS: f64 = 3.0;

/// Whether to measure.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Measure {
    /// Where this host can: root, with `tc` and `ethtool`
    Auto,
    /// Simulate only
    No,
    /// Measure only
    Only,
}

/// `measured.json`.
#[derive(Default, Serialize, Deserialize)]
struct Done {
    /// Release of the kernel.
    kernel: String,
    seconds: f64,
    settings: Vec<One>,
}

#[derive(Serialize, Deserialize)]
struct One {
    setting: Setting,
    figures: Figures,
}

/// The measured rows; none if the host cannot measure, which is an error if nothing else was wanted.
pub fn rows(options: &Options, measure: Measure) -> Outcome<Vec<Row>> {
    if measure == Measure::No {
        return Ok(Vec::new());
    }
    if let Some(problem) = router::problem() {
        if measure == Measure::Only {
            return Err(Failure::Failed(anyhow::anyhow!("measure: {problem}")));
        }
        output::message(&format!("not measured: {problem}\n"));
        return Ok(Vec::new());
    }
    std::fs::create_dir_all(&options.out)
        .with_context(|| format!("--out {}: cannot be written", options.out.display()))
        .map_err(Failure::Input)?;
    let done = match run(&options.out, &settings(options.quick)) {
        // The simulated rows are not lost with the measured ones.
        Err(Failure::Failed(error)) if measure == Measure::Auto => {
            output::message(&format!("not measured: {error:#}\n"));
            return Ok(Vec::new());
        }
        done => done?,
    };
    let all: Vec<(Setting, Figures)> =
        done.settings.into_iter().map(|one| (one.setting, one.figures)).collect();
    let measured = Measured(&all);
    draw(&options.out, &measured)?;
    Ok(measured.rows())
}

/// The figures that an interrupted measurement has left in the folder.
fn before(path: &Path, kernel: &str) -> Outcome<Option<Done>> {
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(None) };
    let refused = |why: &str| Failure::input(format!("{}: {why}; name another folder", path.display()));
    let done: Done =
        serde_json::from_str(&text).map_err(|error| refused(&format!("no measured settings: {error}")))?;
    if done.kernel != kernel || done.seconds != SECONDS {
        let (of, seconds) = (&done.kernel, done.seconds);
        let why = format!("measured with Linux {of} for {seconds} s, now with {kernel} for {SECONDS} s");
        return Err(refused(&why));
    }
    Ok(Some(done))
}

/// Measures the settings that are not in the folder yet. A setting whose congestion control this kernel lacks
/// is left out with a message.
fn run(out: &Path, settings: &[Setting]) -> Outcome<Done> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    let path = out.join(FILE);
    let mut done = before(&path, &kernel)?.unwrap_or(Done { kernel, seconds: SECONDS, settings: Vec::new() });
    let bar = progress::bar(settings.len() as u64, "the measured settings");
    for setting in settings {
        let find = |done: &Done, wanted: &Setting| {
            done.settings.iter().find(|one| one.setting == *wanted).map(|one| one.figures.acks_per_s)
        };
        if find(&done, setting).is_none() {
            let acks_per_s = find(&done, &setting.without_policer()).unwrap_or(0.0);
            match router::measure(setting, SECONDS, acks_per_s) {
                Ok(figures) => done.settings.push(One { setting: setting.clone(), figures }),
                Err(error) if setting.control != "cubic" => {
                    output::message(&format!("not measured: {error:#}\n"));
                }
                Err(error) => return Err(error.into()),
            }
            let text = serde_json::to_string(&done).expect("figures are plain data") + "\n";
            write_file(&path, &text).with_context(|| format!("cannot write {FILE}"))?;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    done.settings.retain(|one| settings.contains(&one.setting));
    Ok(done)
}

/// Writes the pictures over time: one session by share of dropped ACKs, and two sessions by policer.
fn draw(out: &Path, measured: &Measured<'_>) -> anyhow::Result<()> {
    let plain = |setting: &Setting| {
        (setting.rate_mbps, setting.sessions, setting.run) == (90, 1, 0)
            && setting.control == "cubic"
            && setting.mode == Mode::Published
    };
    let of_one = measured.0.iter().filter(|(setting, _)| plain(setting)).flat_map(|(setting, figures)| {
        let name = format!("{}% dropped", setting.drop_percent);
        figures.rates_over_time().into_iter().next().map(|points| (name, points))
    });
    let title = "Measured rate at 90 Mb/s over time, by share of dropped ACKs";
    let picture = rates_over_time(title, &of_one.collect::<Vec<_>>());
    write_file(&out.join("measured-rates.svg"), &picture).context("cannot write measured-rates.svg")?;
    let two =
        measured.0.iter().filter(|(setting, _)| setting.sessions == 2 && setting.exempt && setting.per_flow);
    for (setting, figures) in two {
        let lines: Vec<_> =
            ["filtered", "unfiltered"].map(String::from).into_iter().zip(figures.rates_over_time()).collect();
        let queue = setting.queue_bytes / 1000;
        let name = format!("measured-sessions-{queue}kB.svg");
        let title = format!("Measured rates of two sessions, one filtered at 80%, queue of {queue} kB");
        write_file(&out.join(&name), &rates_over_time(&title, &lines))
            .with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}
