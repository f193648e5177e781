//! `paceline pace`: congestion controls of this host's kernel, paced for a TDD cell (docs/pace.md).

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity;
use paceline_linux::stop::StopSignals;
use paceline_net::{Duration, Rate, SlotPattern};
use paceline_pace::{Control, FlowReport, Found, Pace, Parameters, Pattern, Report};
use paceline_report::table::align;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Register a paced congestion control with the kernel, until the command ends
    Attach {
        /// How the congestion window grows
        #[arg(long, value_enum)]
        control: ControlName,
        /// The name by which sockets and routes choose it: up to 15 of a-z, 0-9 and _; pace_CONTROL if left
        /// out
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        parameters: ParameterArgs,
    },
    /// End a paced congestion control; connections keep it until they close
    Detach {
        /// Its name; may be left out if there is one only
        #[arg(long)]
        name: Option<String>,
    },
    /// Change parameters of a paced congestion control, for its connections too
    Set {
        /// Its name; may be left out if there is one only
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        parameters: ParameterArgs,
    },
    /// Show paced congestion controls and their connections
    Show {
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ControlName {
    Illinois,
    Cubic,
    Reno,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Delay {
    /// The least round-trip time of the last two periods
    Clean,
    /// The latest round-trip time
    Raw,
}

#[derive(clap::Args)]
struct ParameterArgs {
    /// The cell's slots and subcarrier spacing, such as "DDDSU/30kHz" or "DDDDDDDSUU 6:4:4/30kHz"; auto: the
    /// period is learned from the ACKs
    #[arg(long, value_parser = pattern)]
    pattern: Option<PatternName>,
    /// Start of the pattern at this host after a multiple of the period since 1970, such as "1.25 ms";
    /// packets then leave in the slots before downlink slots only
    #[arg(long, value_name = "TIME", requires = "pattern")]
    phase: Option<Duration>,
    /// A fixed rate of payload for each connection, such as "100 Mb/s"; "0 b/s": the mean rate of Linux
    #[arg(long)]
    rate: Option<Rate>,
    /// The round-trip time that the control gets
    #[arg(long, value_enum)]
    delay: Option<Delay>,
}

#[derive(Clone)]
enum PatternName {
    Auto,
    Slots(SlotPattern),
}

pub fn run(args: &Args) -> Outcome {
    match &args.action {
        Action::Attach { control, name, parameters } => attach(*control, name.as_deref(), parameters),
        Action::Detach { name } => detach(&one(name.as_deref())?),
        Action::Set { name, parameters } => {
            let parameters = parameters.parameters()?;
            if parameters == Parameters::default() {
                return Err(Failure::input("set: name a parameter: --pattern, --rate or --delay"));
            }
            let found = one(name.as_deref())?;
            if !found.runs {
                let message = format!("{}: its process has ended: attach it again", found.name);
                return Err(Failure::input(message));
            }
            Ok(found.set(&parameters).map(|()| ExitCode::SUCCESS)?)
        }
        Action::Show { json } => show(*json),
    }
}

impl ParameterArgs {
    fn parameters(&self) -> Outcome<Parameters> {
        let pattern = match &self.pattern {
            Some(PatternName::Auto) if self.phase.is_some() => {
                return Err(Failure::input("--phase: needs a pattern with slots, not auto"));
            }
            Some(PatternName::Auto) => Some(Pattern::Learned),
            Some(PatternName::Slots(slots)) => Some(Pattern::Stated(slots.clone(), self.phase)),
            None => None,
        };
        let parameters = Parameters {
            pattern,
            rate: self.rate.map(|rate| rate.0 / 8),
            clean: self.delay.map(|delay| delay == Delay::Clean),
        };
        parameters.check().map_err(Failure::input)?;
        Ok(parameters)
    }
}

fn attach(control: ControlName, name: Option<&str>, parameters: &ParameterArgs) -> Outcome {
    let control = match control {
        ControlName::Illinois => Control::Illinois,
        ControlName::Cubic => Control::Cubic,
        ControlName::Reno => Control::Reno,
    };
    let mut parameters = parameters.parameters()?;
    if parameters.pattern.is_none() {
        return Err(Failure::input("--pattern: name the cell's slots, such as DDDSU/30kHz, or auto"));
    }
    parameters.clean = parameters.clean.or(Some(true));
    let name = name.map_or_else(|| format!("pace_{}", control.name()), str::to_owned);
    paceline_pace::check_name(&name, &paceline_linux::ability::congestion_controls())
        .map_err(Failure::input)?;
    require(paceline_pace::problem())?;
    let stop = StopSignals::register()?;
    let mut paced = Pace::attach(&name, control, &parameters)?;
    output::message(&format!("congestion control {name} is registered; Ctrl-C ends it\n"));
    while !stop.stopped() {
        paced.turn()?;
        stop.wait();
    }
    Ok(ExitCode::SUCCESS)
}

/// Registers nothing: the controls are found by their maps.
fn find() -> Outcome<Vec<Found>> {
    require(paceline_pace::show_problem())?;
    Ok(paceline_pace::find()?)
}

fn require(problem: Option<String>) -> Outcome<()> {
    match problem {
        Some(problem) => Err(Failure::Failed(anyhow::anyhow!("pace {problem}"))),
        None => Ok(()),
    }
}

/// The control of this name, or the only one. Those of running processes come first.
fn one(name: Option<&str>) -> Outcome<Found> {
    let mut all = find()?;
    let names: Vec<_> = all.iter().map(|found| found.name.clone()).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let running = all.iter().filter(|found| found.runs).count();
    match name {
        Some(name) => {
            let found = all.into_iter().find(|found| found.name == name);
            let missing = || Failure::input(format!("--name {name}: is not attached; attached: {names}"));
            found.ok_or_else(missing)
        }
        None if running == 1 || all.len() == 1 => Ok(all.remove(0)),
        None => Err(Failure::input(format!("--name: name a control; attached: {names}"))),
    }
}

fn detach(found: &Found) -> Outcome {
    let is_gone = found.detach()?;
    for namespace in &found.namespaces {
        output::message(&format!("{namespace}: {} was the default, and no longer is\n", found.name));
    }
    if !is_gone {
        let text = "open sockets keep it until they close, without pattern and rate";
        output::message(&format!("{}: {text}\n", found.name));
    }
    Ok(ExitCode::SUCCESS)
}

fn show(json: bool) -> Outcome {
    let found = find()?;
    let reports = found.iter().filter_map(|found| found.report().transpose());
    let reports: Vec<_> = reports.collect::<anyhow::Result<_>>()?;
    let text = if json {
        let controls = reports.iter().map(as_json).collect::<Value>();
        output::json(&json!({"paceline": paceline_study::origin(), "controls": controls}))
    } else if reports.is_empty() {
        "no paced congestion control is attached\n".to_owned()
    } else {
        reports.iter().map(as_text).collect()
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn as_text(report: &Report) -> String {
    let mut text = format!("{}: {}, process {}", report.name, report.control.name(), report.process);
    let _ = match (report.stated, report.learned) {
        (Some(period), _) => write!(text, ", period {period} as stated"),
        (None, Some(period)) => write!(text, ", period {period} as learned"),
        (None, None) => write!(text, ", no period learned yet"),
    };
    if let Some(phase) = report.phase {
        let _ = write!(text, ", gate from {phase} on");
    }
    if let Some(rate) = report.rate {
        let _ = write!(text, ", rate {}", quantity::bits(8.0 * rate as f64));
    }
    text += if report.clean { ", clean delay\n" } else { ", raw delay\n" };
    if !report.runs {
        text += "  its process has ended; sockets and namespaces that chose it have it further\n";
    }
    report.namespaces.iter().for_each(|path| text += &format!("  default of the namespace {path}\n"));
    let head = ["local", "remote", "acked", "rate", "window", "RTT", "clean RTT", "retransmitted"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(report.flows.iter().map(|flow| {
        let ms = |us: u32| format!("{:.1} ms", f64::from(us) / 1e3);
        vec![
            flow.local.to_string(),
            flow.remote.to_string(),
            quantity::bytes(flow.bytes_acked),
            quantity::bits(8.0 * flow.rate as f64),
            flow.cwnd.to_string(),
            ms(flow.rtt_us[0]),
            ms(flow.rtt_us[2]),
            flow.retransmitted.to_string(),
        ]
    }));
    if lines.len() > 1 { text + &align(&lines, 2) } else { text }
}

fn as_json(report: &Report) -> Value {
    let ms = |time: Option<Duration>| time.map(Duration::as_millis_f64);
    let flow = |flow: &FlowReport| {
        json!({
            "local": flow.local.to_string(), "remote": flow.remote.to_string(),
            "bytes_acked": flow.bytes_acked, "bytes_sent": flow.bytes_sent,
            "retransmitted": flow.retransmitted, "cwnd": flow.cwnd, "mss": flow.mss,
            "srtt_us": flow.rtt_us[0], "rtt_us": flow.rtt_us[1], "clean_rtt_us": flow.rtt_us[2],
            "rate_mbps": 8.0 * flow.rate as f64 / 1e6,
        })
    };
    json!({
        "name": report.name, "control": report.control.name(), "process": report.process,
        "process_runs": report.runs, "namespaces": report.namespaces,
        "stated_period_ms": ms(report.stated), "learned_period_ms": ms(report.learned),
        "phase_ms": ms(report.phase), "rate_mbps": report.rate.map(|rate| 8.0 * rate as f64 / 1e6),
        "clean_delay": report.clean, "flows": report.flows.iter().map(flow).collect::<Value>(),
    })
}

/// `DDDSU/30kHz`, or `auto`.
fn pattern(text: &str) -> Result<PatternName, String> {
    /// Numerologies (TS 38.211 Table 4.2-1).
    const SPACINGS: [(&str, u8); 4] = [("15kHz", 0), ("30kHz", 1), ("60kHz", 2), ("120kHz", 3)];
    if text == "auto" {
        return Ok(PatternName::Auto);
    }
    let form = "write slots and subcarrier spacing, such as DDDSU/30kHz, or auto";
    let (slots, spacing) = text.rsplit_once('/').ok_or(form)?;
    let spacing = spacing.replace(' ', "");
    let numerology = SPACINGS.iter().find(|(name, _)| *name == spacing).map(|(_, numerology)| *numerology);
    let numerology =
        numerology.ok_or(format!("subcarrier spacing {spacing}: allowed are 15kHz, 30kHz, 60kHz, 120kHz"))?;
    SlotPattern::from_letters(slots, numerology).map(PatternName::Slots).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_or_refused() {
        let read = |text| match pattern(text) {
            Ok(PatternName::Slots(slots)) => slots.period().as_nanos() / 1000,
            Ok(PatternName::Auto) => 0,
            Err(_) => 1,
        };
        let texts = ["auto", "DDDSU/30kHz", "DDDDDDDSUU 6:4:4/30 kHz", "DDDSU", "DDDSU/20kHz", "DDXSU/30kHz"];
        assert_eq!(texts.map(read), [0, 2500, 5000, 1, 1, 1]);
    }
}
