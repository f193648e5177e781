//! `paceline report`: writes an HTML page with pictures of a results folder.

use crate::failure::{Failure, Outcome};
use crate::results_folder::write_file;
use crate::{output, report};
use anyhow::Context;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    /// Folder of run, emulate, sweep or reproduce
    folder: PathBuf,
    /// File for the page; report.html in the folder if left out
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn run(args: &Args) -> Outcome {
    let page = report::page(&args.folder)?;
    let file = args.out.clone().unwrap_or_else(|| args.folder.join("report.html"));
    if file.file_name().is_none() || file.is_dir() {
        return Err(Failure::input(format!("--out {}: is a folder; name a file", file.display())));
    }
    write_file(&file, &page).with_context(|| format!("--out {}: cannot be written", file.display()))?;
    output::print(&format!("{}\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}
