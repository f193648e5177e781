//! `paceline gateway`: the accelerator between two interfaces, and what a running one is asked.

mod ask;
mod run;

pub use ask::flow_table;

use crate::failure::Outcome;
use paceline_net::Duration;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    run: Option<RunArgs>,
}

#[derive(clap::Args)]
struct RunArgs {
    /// Configuration file (docs/gateway.md)
    config: PathBuf,
    /// Check the configuration, and end
    #[arg(long)]
    check: bool,
    /// Print what was done to stdout as JSON at the end
    #[arg(long)]
    json: bool,
}

/// Which gateway is asked.
#[derive(clap::Args, Clone)]
pub struct Which {
    /// Control socket of the gateway; by default the only one in /run/paceline
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Start a gateway, as without this word
    Run(RunArgs),
    /// End a running gateway without harm to its connections, and wait for it
    Stop(StopArgs),
    /// Have a running gateway read its configuration again
    Reload(Which),
    /// Show the connections that are accelerated
    Flows(TableArgs),
    /// Show what a running gateway does
    Status(TableArgs),
    /// Write one connection's packets, in and out on both sides, to a pcapng file
    Capture(CaptureArgs),
    /// Look after connections when a gateway dies
    #[command(hide = true)]
    Guard(GuardArgs),
}

#[derive(clap::Args)]
struct StopArgs {
    #[command(flatten)]
    which: Which,
    /// How long connections may take to be delivered what was acknowledged for them; by default the
    /// configuration's `drain`
    #[arg(long, value_name = "TIME")]
    limit: Option<Duration>,
}

#[derive(clap::Args)]
struct TableArgs {
    #[command(flatten)]
    which: Which,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct CaptureArgs {
    #[command(flatten)]
    which: Which,
    /// The connection, as `flows` names it: SERVER:PORT-DEVICE:PORT
    flow: String,
    /// File to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// End after so many seconds [default: 10, with --packets 3600]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: Option<u32>,
    /// End after so many packets [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    packets: Option<u64>,
}

#[derive(clap::Args)]
struct GuardArgs {
    server: u32,
    mobile: u32,
    exit: Option<u32>,
}

pub fn run(args: &Args) -> Outcome {
    match (&args.action, &args.run) {
        (Some(Action::Run(args)), _) | (None, Some(args)) => run::run(args),
        (Some(Action::Stop(args)), _) => ask::stop(args),
        (Some(Action::Reload(which)), _) => ask::reload(which),
        (Some(Action::Flows(args)), _) => ask::flows(args),
        (Some(Action::Status(args)), _) => ask::status(args),
        (Some(Action::Capture(args)), _) => ask::capture(args),
        (Some(Action::Guard(args)), _) => run::guard(args),
        (None, None) => unreachable!("clap asks for a configuration"),
    }
}
