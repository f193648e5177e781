//! `paceline doctor`: reports which features work on this host, and how to enable the others.

use crate::failure::Outcome;
use crate::output;
use paceline_linux::ability::{CAP_SYS_NICE, congestion_controls, has_capability};
use paceline_linux::kernel::{Kernel, LOOPS, Need, PACED_CONTROLS, TCX};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// An ability of this host.
struct Check {
    /// The name of the ability.
    name: &'static str,
    /// The reason why it is missing, and the remedy; None if the host has it.
    problem: Option<String>,
    /// Further information.
    detail: Option<String>,
    /// The oldest kernel on which it works, if it depends on the kernel's version.
    least_kernel: Option<String>,
}

impl Check {
    fn new(name: &'static str, problem: Option<String>, detail: Option<String>) -> Self {
        Self { name, problem, detail, least_kernel: None }
    }
    fn needs(self, kernel: &Need) -> Self {
        Self { least_kernel: Some(kernel.least.to_string()), ..self }
    }
}

/// All abilities, in the order in which they are printed.
fn checks() -> Vec<Check> {
    let current = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default();
    let controls = format!("{} by default; available: {}", current.trim(), congestion_controls().join(", "));
    let priority = (!has_capability(CAP_SYS_NICE)).then(|| {
        "needs CAP_SYS_NICE: run as root; emulation works without it, but runs later on a busy machine"
            .to_owned()
    });
    let ipv6 =
        (!fs::exists("/proc/net/if_inet6").unwrap_or(false)).then(|| "the kernel has no IPv6".to_owned());
    vec![
        Check::new("emulate", paceline_emulate::problem(), None),
        Check::new("gateway", paceline_gateway::problem(), paceline_gateway::firewall_remark()).needs(&TCX),
        Check::new("police", paceline_police::problem(), paceline_police::remarks()).needs(&LOOPS),
        Check::new("pace", paceline_pace::problem(), None).needs(&PACED_CONTROLS),
        Check::new("real-time priority", priority, None),
        Check::new("IPv6", ipv6, None),
        Check::new("kernel TCP", None, Some(controls)),
    ]
}

pub fn run(args: &Args) -> Outcome {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let checks = checks();
    let kernel = Kernel::running().map(|kernel| kernel.version.to_string());
    if args.json {
        let features = checks.iter().map(|check| {
            json!({
                "name": check.name, "works": check.problem.is_none(),
                "problem": check.problem, "detail": check.detail, "least_kernel": check.least_kernel,
            })
        });
        let json = json!({
            "paceline": paceline_study::origin(), "cores": cores, "kernel": kernel,
            "features": features.collect::<Value>(),
        });
        output::print(&output::json(&json))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("paceline {}\n", paceline_study::VERSION);
    let _ = writeln!(text, "simulate: yes, on {}", paceline_report::count(cores as u64, "core"));
    let needs: Vec<String> = checks
        .iter()
        .filter_map(|check| Some(format!("{} {}", check.name, check.least_kernel.as_ref()?)))
        .collect();
    let kernel = kernel.as_deref().unwrap_or("unknown");
    let _ = writeln!(text, "kernel: Linux {kernel}; needed: {}", needs.join(", "));
    for check in checks {
        let answer = match (check.problem, check.detail) {
            (Some(problem), _) => format!("no: {problem}"),
            (None, Some(detail)) => format!("yes ({detail})"),
            (None, None) => String::from("yes"),
        };
        let _ = writeln!(text, "{}: {answer}", check.name);
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
