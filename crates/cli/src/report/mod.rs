//! A results folder as one HTML page with pictures, which needs no network and no other file.

mod axis;
mod chart;
mod html;
mod run;
mod sweep;

use crate::failure::{Failure, Outcome};
use serde::de::DeserializeOwned;
use std::path::Path;

/// The page of the results in `folder`.
pub fn page(folder: &Path) -> Outcome<String> {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let summary = text("summary.json");
    if summary.is_none() && text("sweep.json").is_none() {
        let what = "holds no results; name a folder that run, emulate, sweep or reproduce has written";
        return Err(Failure::input(format!("{}: {what}", folder.display())));
    }
    if let Some(summary) = &summary {
        let run: run::Run = parse(folder, "summary.json", summary)?;
        return Ok(run.page(text("timeseries.csv").as_deref(), text("resolved.toml").as_deref()));
    }
    let swept: sweep::Sweep = parse(folder, "sweep.json", &text("sweep.json").unwrap_or_default())?;
    Ok(swept.page())
}

fn parse<T: DeserializeOwned>(folder: &Path, name: &str, text: &str) -> Outcome<T> {
    let bad = |error| Failure::input(format!("{}: {error}", folder.join(name).display()));
    serde_json::from_str(text).map_err(bad)
}
