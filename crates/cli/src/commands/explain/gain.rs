//! The expected gain: its simulations on all cores, its table, its picture.

use super::Args;
use crate::failure::{Failure, Outcome};
use crate::progress;
use anyhow::Context;
use paceline_explain::report::Explanation;
use paceline_fit::Fitter;
use paceline_gain::{Gain, Interval, Job, Plan, Remedy};
use paceline_report::html::{self, escape};
use paceline_report::picture::{Chart, Kind, Mark, Series, Style};
use paceline_report::table::align;
use rayon::prelude::*;
use std::fmt::Write;
use std::fs::File;

/// The estimate. Its simulations run on all cores; their order changes nothing.
pub fn estimate(args: &Args, explanation: &Explanation) -> Outcome<Gain> {
    let mut fitter = Fitter::new();
    let interface: Vec<String> = args.interface.iter().cloned().collect();
    for path in &args.captures {
        let name = path.display().to_string();
        let failed = |error: String| Failure::input(format!("{name}: {error}"));
        let file = File::open(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        fitter.read_capture(&name, file, &interface).map_err(failed)?;
    }
    let (fit, captures) = fitter.finish_with_captures();
    let refused = |error: String| Failure::input(format!("--gain: {error}: no gain can be estimated"));
    let plan = Plan::new(&captures, explanation, &fit, args.draws).map_err(refused)?;
    drop(captures);
    let each = |jobs: &[Job]| {
        let bar = progress::bar(jobs.len() as u64, "the simulations");
        let simulate = |job: &Job| {
            let outcome = plan.simulate(job);
            bar.inc(1);
            outcome
        };
        let outcomes = jobs.par_iter().map(simulate).collect();
        bar.finish_and_clear();
        outcomes
    };
    plan.finish(&each).map_err(refused)
}

const HEAD: [&str; 5] = ["", "completion, s", "change", "round trip, ms", "change"];

/// The measured figures, those of the simulation as it is, and of each remedy.
fn rows(gain: &Gain) -> Vec<Vec<String>> {
    let spread = |of: &Interval, decimals: usize| {
        format!("{:.decimals$} ({:.decimals$} to {:.decimals$})", of.median, of.low, of.high)
    };
    let percent = |of: &Interval| {
        let own = of.map(|change| 100.0 * change);
        format!("{:+.0}% ({:+.0}% to {:+.0}%)", own.median, own.low, own.high)
    };
    let trip = gain.measured_rtt_ms.map_or_else(|| "not measured".to_owned(), |ms| format!("{ms:.1}"));
    let measured = format!("{:.2}", gain.measured_completion_s);
    let mut rows = vec![
        vec!["measured".to_owned(), measured, String::new(), trip, String::new()],
        vec![
            "simulated as it is".to_owned(),
            spread(&gain.simulated_completion_s, 2),
            String::new(),
            spread(&gain.simulated_rtt_ms, 1),
            String::new(),
        ],
    ];
    rows.extend(gain.remedies.iter().map(|own| {
        vec![
            own.remedy.name().to_owned(),
            spread(&own.completion_s, 2),
            percent(&own.completion_change),
            own.rtt_ms.as_ref().map_or_else(String::new, |rtt| spread(rtt, 1)),
            percent(&own.rtt_change),
        ]
    }));
    rows
}

/// Reasons, assumptions and notes.
fn remarks(gain: &Gain) -> Vec<String> {
    let left = gain.not_applicable.iter().map(|own| format!("{}: {}", own.remedy.name(), own.reason));
    let unfinished = gain.remedies.iter().filter(|own| own.unfinished > 0);
    let unfinished = unfinished.map(|own| {
        let name = own.remedy.name();
        format!(
            "{name}: {} simulated transfers did not end, and count until the end of the run",
            own.unfinished
        )
    });
    let assumed = gain.assumptions.iter().map(|own| format!("assumed: {own}"));
    left.chain(unfinished).chain(assumed).chain(gain.notes.iter().cloned()).collect()
}

/// The part of the text.
pub fn text(gain: &Gain) -> String {
    let mut text = format!("\nExpected gain: {}.\n\n", gain.summary);
    let head = vec![HEAD.map(str::to_owned).to_vec()];
    text += &align(&[head, rows(gain)].concat(), 1);
    text += &format!("\nMeans over {} transfers; medians of {} draws with", gain.transfers.len(), gain.draws);
    let _ = writeln!(text, " 95% of them; sender: {}.", gain.congestion_control);
    for own in &gain.remedies {
        let _ = writeln!(text, "  {}", own.sentence);
    }
    for remark in remarks(gain) {
        let _ = writeln!(text, "  {remark}");
    }
    text
}

/// The section of the page.
pub fn section(gain: &Gain) -> String {
    let head = HEAD.map(String::from);
    let sentences: Vec<String> = gain.remedies.iter().map(|own| own.sentence.clone()).collect();
    format!("<p><strong>{}.</strong></p>\n", escape(&gain.summary))
        + &html::figures(&pictures(gain))
        + &html::table(&head, &rows(gain), 1)
        + &html::list(&sentences)
        + &html::list(&remarks(gain))
}

/// Measured, simulated as it is, simulated with each remedy.
fn pictures(gain: &Gain) -> String {
    let chart = |title: &str, y: &str, measured: f64, as_it_is: &Interval, of: &dyn Fn(usize) -> Interval| {
        let bar = |x: usize, of: &Interval| Mark { x: x as f64, y: of.median, half: Some(of.half()) };
        let mut marks = vec![Mark { x: 0.0, y: measured, half: None }, bar(1, as_it_is)];
        marks.extend((0..gain.remedies.len()).map(|index| bar(2 + index, &of(index))));
        let names = gain.remedies.iter().map(|own| Remedy::name(own.remedy).to_owned());
        Chart {
            title: title.to_owned(),
            x: String::new(),
            y: y.to_owned(),
            categories: ["measured".to_owned(), "as it is".to_owned()].into_iter().chain(names).collect(),
            series: vec![Series { name: title.to_owned(), marks, kind: Kind::Ours }],
            style: Style::Bars,
            most: f64::INFINITY,
            from_zero: true,
            counts_from: None,
        }
        .figure()
    };
    let times = chart(
        "Mean completion time",
        "s",
        gain.measured_completion_s,
        &gain.simulated_completion_s,
        &|index| gain.remedies[index].completion_s,
    );
    let Some(rtt) = gain.measured_rtt_ms else { return times };
    let trips = chart("Mean round trip", "ms", rtt, &gain.simulated_rtt_ms, &|index| {
        gain.remedies[index].rtt_ms.unwrap_or(gain.simulated_rtt_ms)
    });
    times + &trips
}

/// The figures as a table.
pub fn csv(gain: &Gain) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let three = |name: &str| ["", "_low", "_high"].map(|end| format!("{name}{end}"));
    let columns = ["completion_s", "completion_change", "rtt_ms", "rtt_change"].map(three).concat();
    writer.write_record(std::iter::once("remedy").chain(columns.iter().map(String::as_str)))?;
    let of = |interval: Option<&Interval>| match interval {
        Some(own) => [own.median, own.low, own.high].map(|value| value.to_string()),
        None => Default::default(),
    };
    let alone = |value: Option<f64>| {
        [value.map(|value| value.to_string()).unwrap_or_default(), String::new(), String::new()]
    };
    let mut row = |name: &str, cells: [[String; 3]; 4]| {
        writer.write_record(std::iter::once(name.to_owned()).chain(cells.concat()))
    };
    let none = || of(None);
    row("measured", [alone(Some(gain.measured_completion_s)), none(), alone(gain.measured_rtt_ms), none()])?;
    let [completion, trip] = [&gain.simulated_completion_s, &gain.simulated_rtt_ms].map(|own| of(Some(own)));
    row("as it is", [completion, none(), trip, none()])?;
    for own in &gain.remedies {
        let changes = [of(Some(&own.completion_change)), of(Some(&own.rtt_change))];
        let [completion, trip] = changes;
        let cells = [of(Some(&own.completion_s)), completion, of(own.rtt_ms.as_ref()), trip];
        row(own.remedy.name(), cells)?;
    }
    Ok(String::from_utf8(writer.into_inner().context("the table is in memory")?)?)
}
