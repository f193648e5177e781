//! Measures settings with the kernel's TCP and forwarding, where this host can.

use super::args::Measure;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress;
use crate::results_folder::write_file;
use anyhow::Context;
use paceline_emulate::router;
use paceline_reproduce::host::{Figures, Setting};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Figures of all settings, in the folder for the results.
const FILE: &str = "measured.json";
/// Length of a setting after its warm-up, s. Chosen: past the first 3 s, and all settings in 10 minutes.
const SECONDS: f64 = 3.0;

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

/// The figures of the settings; none where the host cannot measure, an error if nothing else was wanted.
pub fn measure(
    settings: &[Setting],
    measure: Measure,
    out: &Path,
) -> Outcome<Option<Vec<(Setting, Figures)>>> {
    if measure == Measure::No {
        return Ok(None);
    }
    if let Some(problem) = router::problem() {
        if measure == Measure::Only {
            return Err(Failure::Failed(anyhow::anyhow!("measure: {problem}")));
        }
        output::message(&format!("not measured: {problem}\n"));
        return Ok(None);
    }
    std::fs::create_dir_all(out)
        .with_context(|| format!("--out {}: cannot be written", out.display()))
        .map_err(Failure::Input)?;
    let done = match run(out, settings) {
        // The simulated rows are not lost with the measured ones.
        Err(Failure::Failed(error)) if measure == Measure::Auto => {
            output::message(&format!("not measured: {error:#}\n"));
            return Ok(None);
        }
        done => done?,
    };
    Ok(Some(done.settings.into_iter().map(|one| (one.setting, one.figures)).collect()))
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
