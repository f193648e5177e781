//! `paceline fit`: a scenario that behaves as a measured network.

use crate::failure::{Failure, Outcome};
use crate::report::fit::page;
use crate::results_folder::{check_unused, write_file};
use crate::{output, progress};
use anyhow::Context;
use paceline_fit::estimate::Estimate;
use paceline_fit::log::Format;
use paceline_fit::{Fit, Fitted, Fitter};
use paceline_report::table::align;
use serde_json::json;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

#[derive(clap::Args)]
pub struct Args {
    /// Captures (pcap, pcapng) and logs of one network, also packed by gzip or xz
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Write scenario.toml, fit.json, page.html, and fit.trace where rates vary, into a folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Format of the files, if not recognised: capture, ping, iperf3, srsran, oai, radio or trace
    #[arg(long = "as", value_name = "FORMAT")]
    format: Option<FormatName>,
    /// Use this interface of captures alone (repeatable)
    #[arg(long, value_name = "NAME")]
    interface: Vec<String>,
}

/// A format by its name.
#[derive(Clone, Copy)]
struct FormatName(Format);

impl FromStr for FormatName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Format::ALL.into_iter().find(|format| format.name() == text);
        let names = Format::ALL.map(Format::name).join(", ");
        found.map(Self).ok_or_else(|| format!("allowed: {names}"))
    }
}

pub fn run(args: &Args) -> Outcome {
    if let Some(folder) = &args.out {
        check_unused(folder)?;
    }
    let fit = fit(args)?;
    let fitted = fit.scenario();
    let json = || {
        let toml = fitted.as_ref().map(|fitted| &fitted.toml);
        let assumptions = fitted.as_ref().map(|fitted| &fitted.assumptions);
        output::json(&json!({
            "paceline": paceline_study::origin(), "fit": fit, "scenario": toml, "assumptions": assumptions,
        }))
    };
    if let Some(folder) = &args.out {
        write(folder, &fit, fitted.as_ref(), &json())?;
    }
    output::print(&if args.json { json() } else { text(&fit, fitted.as_ref()) })?;
    Ok(ExitCode::SUCCESS)
}

fn fit(args: &Args) -> Outcome<Fit> {
    let open = |path: &PathBuf| {
        let failed = |error| Failure::input(format!("{}: cannot be read: {error}", path.display()));
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok((path.display().to_string(), file, bytes))
    };
    let files: Vec<_> = args.files.iter().map(open).collect::<Outcome<_>>()?;
    let bar = progress::bar(files.iter().map(|(.., bytes)| bytes).sum(), "the files");
    let mut fitter = Fitter::new();
    for (name, mut file, _) in files {
        let failed = |error: String| Failure::input(format!("{name}: {error}"));
        let is_capture = match args.format {
            Some(format) => format.0 == Format::Capture,
            None => Fitter::is_capture(&mut file).map_err(failed)?,
        };
        let mut reader = bar.wrap_read(file);
        if is_capture {
            fitter.read_capture(&name, reader, &args.interface).map_err(failed)?;
        } else {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).map_err(|error| failed(format!("cannot be read: {error}")))?;
            fitter.read_log(&name, &bytes, args.format.map(|format| format.0)).map_err(failed)?;
        }
    }
    bar.finish_and_clear();
    Ok(fitter.finish())
}

fn write(folder: &Path, fit: &Fit, fitted: Option<&Fitted>, json: &str) -> anyhow::Result<()> {
    let context = || format!("--out {}: cannot be written", folder.display());
    fs::create_dir_all(folder).with_context(context)?;
    write_file(&folder.join("fit.json"), json).with_context(context)?;
    let Some(fitted) = fitted else { return Ok(()) };
    write_file(&folder.join("scenario.toml"), &fitted.toml).with_context(context)?;
    if let Some(trace) = &fitted.trace {
        fs::write(folder.join(paceline_fit::TRACE), trace).with_context(context)?;
    }
    let simulated = fitted.simulate(fit).map_err(anyhow::Error::msg)?;
    let page = page(fit, fitted, &simulated, &rows(fit));
    write_file(&folder.join("page.html"), &page).with_context(context)
}

fn row<T>(
    lines: &mut Vec<Vec<String>>,
    name: &str,
    found: Option<&Estimate<T>>,
    value: impl Fn(&T) -> String,
) {
    if let Some(found) = found {
        lines.push(vec![
            name.into(),
            value(&found.value),
            found.confidence.word().into(),
            found.from.clone(),
        ]);
    }
}

/// Quantity, value, confidence and source, with a heading.
fn rows(fit: &Fit) -> Vec<Vec<String>> {
    let mut lines = vec![["quantity", "value", "confidence", "from"].map(str::to_owned).to_vec()];
    let ms = |value: &f64| format!("{value:.2} ms");
    row(&mut lines, "base round trip", fit.base_rtt_ms.as_ref(), ms);
    row(&mut lines, "of it towards the server", fit.server_side_ms.as_ref(), ms);
    row(&mut lines, "of it towards the client", fit.client_side_ms.as_ref(), ms);
    row(&mut lines, "jitter", fit.jitter_ms.as_ref(), ms);
    row(&mut lines, "capacity", fit.capacity_mbps.as_ref(), |value| format!("{value:.2} Mb/s"));
    row(&mut lines, "buffer", fit.buffer_bytes.as_ref(), |value| format!("{:.1} kB", value / 1e3));
    row(&mut lines, "loss", fit.loss_percent.as_ref(), |value| format!("{value:.3}%"));
    row(&mut lines, "pattern", fit.pattern.as_ref(), paceline_fit::estimate::pattern::Slots::name);
    let db = |value: &f64| format!("{value:.1} dB");
    row(&mut lines, "SINR", fit.sinr_db.as_ref(), db);
    row(&mut lines, "its deviation", fit.sinr_deviation_db.as_ref(), db);
    row(&mut lines, "SINR of the uplink", fit.uplink_sinr_db.as_ref(), db);
    row(&mut lines, "MCS", fit.mcs.as_ref(), |value| format!("{value:.1}"));
    row(&mut lines, "resource blocks", fit.prb.as_ref(), |value| format!("{value:.0}"));
    row(&mut lines, "scheduling requests", fit.sr_period_ms.as_ref(), |value| format!("every {value} ms"));
    lines
}

fn text(fit: &Fit, fitted: Option<&Fitted>) -> String {
    let mut text = String::new();
    for input in &fit.inputs {
        let _ = writeln!(text, "{input}");
    }
    text.push('\n');
    text += &align(&rows(fit), 4);
    let mut list = |heading: &str, sentences: &[String]| {
        if !sentences.is_empty() {
            let _ = writeln!(text, "\n{heading}");
        }
        for sentence in sentences {
            let _ = writeln!(text, "  {sentence}");
        }
    };
    list("Not known:", &fit.unknown);
    list("Inputs that contradict each other:", &fit.conflicts);
    list("Assumed in the scenario:", fitted.map_or(&[][..], |fitted| &fitted.assumptions[..]));
    list("Notes:", &fit.notes);
    text
}
