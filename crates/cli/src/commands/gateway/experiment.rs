//! `paceline gateway experiment`: begins and ends the comparison of accelerated devices with untouched ones,
//! and prints its report (docs/experiment.md).

use super::options::{DesignName, ExperimentArgs};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::{bits, bytes};
use anyhow::Context;
use paceline_experiment::{Design, Finding, LOOKS, Measure, Report, Row, State};
use paceline_gateway::{Client, ExperimentRequest, ExperimentStatus};
use paceline_net::Duration;
use std::fmt::Write;
use std::process::ExitCode;

/// The share of devices that are accelerated by default. Chosen: equal arms find the smallest differences.
const SHARE: f64 = 0.5;

pub fn run(args: &ExperimentArgs) -> Outcome {
    let request = match args.duration {
        Some(duration) => start(args, duration),
        None if args.stop => ExperimentRequest::Stop,
        None => ExperimentRequest::Report,
    };
    let status = Client::find(args.which.control.as_deref())?.experiment(request)?;
    let text = match (&status, args.json) {
        (_, true) => format!("{:#}\n", serde_json::to_value(&status).context("the report is no JSON")?),
        (Some(status), false) => text(status),
        (None, false) => {
            return Err(Failure::Failed(anyhow::anyhow!(
                "there was no experiment; --share 50% --for 24h begins one"
            )));
        }
    };
    output::print(&text)?;
    // After harm the exit code tells it to scripts.
    let harmed = status.is_some_and(|status| status.state == State::Harm);
    Ok(if harmed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn start(args: &ExperimentArgs, duration: Duration) -> ExperimentRequest {
    let design = match args.design {
        Some(DesignName::Switchback) => Design::Switchback,
        Some(DesignName::Parallel) | None => Design::Parallel,
    };
    if args.share.is_some() && design == Design::Switchback {
        eprintln!(
            "paceline: --share has no effect: a switchback accelerates all devices for half of the time"
        );
    }
    let share = args.share.unwrap_or(SHARE);
    ExperimentRequest::Start { share, duration, seed: args.seed, design, practical: args.practical }
}

fn text(status: &ExperimentStatus) -> String {
    let state = match status.state {
        State::Running => "running",
        State::Complete => "complete",
        State::Harm if status.switched_off => "ended: acceleration does harm, and is off",
        State::Harm => "ended: acceleration did harm; the operator has it on again",
        State::Stopped => "ended by the operator",
    };
    let plan = &status.plan;
    let switchback = plan.design == Design::Switchback;
    let treated = match switchback {
        true => format!("all devices accelerated in every second period of {} or so", span(plan.period)),
        false => format!("{:.0}% of devices accelerated", f64::from(plan.assignment.share) / 655.36),
    };
    let mut text = format!(
        "experiment {state}: {} of {}, {treated} (seed {})\n",
        span(status.elapsed),
        span(plan.duration),
        plan.assignment.seed
    );
    if !switchback && plan.period > Duration::ZERO {
        let _ = writeln!(
            text,
            "none is accelerated in one of four periods of {}: untouched devices are compared with themselves",
            span(plan.period)
        );
    }
    let [accelerated, untouched] = status.transfers;
    let _ = match switchback {
        true => writeln!(text, "{accelerated} transfers with acceleration, {untouched} without"),
        false => {
            writeln!(text, "{accelerated} transfers of accelerated devices, {untouched} of untouched ones")
        }
    };
    for (count, what) in [
        (status.headers_lost, "headers were lost: the observer was too slow"),
        (status.left_out, "transfers are left out: there are too many devices"),
    ] {
        if count > 0 {
            let _ = writeln!(text, "{count} {what}");
        }
    }
    match &status.report {
        Some(report) => text + &look(report, switchback),
        None => {
            let _ = writeln!(text, "the first look is at {}", span(plan.duration / u64::from(LOOKS)));
            text
        }
    }
}

fn look(report: &Report, switchback: bool) -> String {
    let units = match switchback {
        true => format!("{} pairs of periods", report.pairs),
        false => format!("{} and {} devices", report.devices[0], report.devices[1]),
    };
    let mut text = format!(
        "look {} of {LOOKS}: {units}; intervals of {:.2}%, a false finding in at most {:.2}% of such looks\n",
        report.look,
        100.0 * (1.0 - report.level),
        100.0 * report.level
    );
    let [units, on, off] = match switchback {
        true => ["pairs", "all", "none"],
        false => ["devices", "accelerated", "untouched"],
    };
    let _ = writeln!(
        text,
        "{:16} {:16} {units:>11} {on:>11} {off:>11} {:>9} {:>20} {:>7}  finding",
        "size", "measure", "change", "interval", "p"
    );
    // Sizes of which there was no transfer.
    let rows = report.rows.iter().filter(|row| row.devices != [0; 2]);
    rows.for_each(|row| text.push_str(&line(row)));
    if report.mixed {
        let [accelerated, untouched] = report.sizes.map(|size| bytes(size as u64));
        let _ = writeln!(
            text,
            "no rows over all sizes: the transfers differ in size, {accelerated} of accelerated and {untouched} of \
             untouched devices"
        );
    }
    if let Some(row) = &report.neighbours {
        text += &neighbours(row);
    }
    text
}

/// The comparison of untouched devices with themselves, as a sentence.
fn neighbours(row: &Row) -> String {
    let pairs = row.devices[0];
    let [change, low, high] = [row.change, row.interval[0], row.interval[1]].map(|part| 100.0 * part);
    let figures =
        format!("{change:+.1}% ({low:+.1} to {high:+.1}%, p {:.4}, {pairs} pairs of periods)", row.chance);
    match row.finding {
        Finding::TooFewDevices => format!(
            "untouched devices: too few periods ({pairs}) to see whether others' acceleration slows them down\n"
        ),
        Finding::Worse => format!(
            "untouched devices slow down while others are accelerated: goodput {figures}. The differences above are \
             not the gain of accelerating all; --design switchback measures that\n"
        ),
        _ => format!("untouched devices while others are accelerated: goodput {figures}\n"),
    }
}

/// A time in its largest units, without fractions of a second.
fn span(time: Duration) -> String {
    let seconds = time.as_secs_f64() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

fn line(row: &Row) -> String {
    let size = row.size.as_deref().unwrap_or("all");
    let measure = match row.measure {
        Measure::Goodput => "goodput",
        Measure::Time => "completion time",
        Measure::Rtt => "round-trip time",
        Measure::Repeated => "sent again",
        Measure::Unfinished => "not finished",
    };
    let devices = format!("{}/{}", row.devices[0], row.devices[1]);
    if row.finding == Finding::TooFewDevices {
        return format!("{size:16} {measure:16} {devices:>11} {:>73}  too few devices\n", "");
    }
    let value = |value: f64| match row.measure {
        // Means of zeros may be off by rounding.
        Measure::Repeated | Measure::Unfinished if value.abs() < 5e-5 => "0.00%".to_owned(),
        Measure::Goodput => bits(value),
        Measure::Time => format!("{value:.3} s"),
        Measure::Rtt => format!("{:.1} ms", 1e3 * value),
        Measure::Repeated | Measure::Unfinished => format!("{:.2}%", 100.0 * value),
    };
    // Shares differ by percentage points.
    let unit = if row.measure.is_ratio() { "%" } else { "pp" };
    let percent = |value: f64| format!("{:+.1}", 100.0 * value);
    let finding = match row.finding {
        Finding::Better => "better",
        Finding::Worse => "worse",
        Finding::Small => "too small to matter",
        Finding::NoDifference | Finding::TooFewDevices => "no difference",
    };
    let could_find = match (row.finding, row.detectable) {
        // Values that are all equal have no standard error.
        (Finding::NoDifference, Some(change)) if change != 0.0 => {
            format!(" (could find {}{unit})", percent(change))
        }
        (Finding::NoDifference, None) => " (too few devices to find any)".to_owned(),
        _ => String::new(),
    };
    format!(
        "{size:16} {measure:16} {devices:>11} {:>11} {:>11} {:>9} {:>20} {:>7.4}  {finding}{could_find}\n",
        value(row.means[0]),
        value(row.means[1]),
        percent(row.change) + unit,
        format!("{} to {}{unit}", percent(row.interval[0]), percent(row.interval[1])),
        row.chance,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_easily() {
        for (seconds, text) in [
            (12.9, "12 s"),
            (90.0, "1 min 30 s"),
            (8640.0, "2 h 24 min"),
            (86_400.0, "24 h"),
            (120.0, "2 min"),
        ] {
            assert_eq!(span(Duration::from_secs_f64(seconds)), text);
        }
    }

    #[test]
    fn a_row_says_how_much_and_whether_it_is_certain() {
        let row = |measure, means, change, interval, finding| {
            let (size, devices, chance) = (Some("1 to 10 MB".to_owned()), [40, 38], 0.0013);
            let detectable = (finding == Finding::NoDifference).then_some(-0.031);
            line(&Row { size, measure, devices, means, change, interval, chance, finding, detectable })
        };
        let goodput = row(Measure::Goodput, [9e6, 6e6], 0.5, [0.2, 0.875], Finding::Better);
        for part in ["1 to 10 MB", "40/38", "+50.0%", "+20.0 to +87.5%", "0.0013", "better"] {
            assert!(goodput.contains(part), "{goodput}");
        }
        let again = row(Measure::Repeated, [0.02, 0.01], 0.01, [-0.001, 0.02], Finding::NoDifference);
        for part in ["2.00%", "+1.0pp", "-0.1 to +2.0pp", "no difference (could find -3.1pp)"] {
            assert!(again.contains(part), "{again}");
        }
        assert!(
            row(Measure::Rtt, [0.0; 2], 0.0, [0.0; 2], Finding::TooFewDevices).contains("too few devices")
        );
    }
}
