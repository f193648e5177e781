//! `paceline gateway`: runs the accelerator between two interfaces, and controls a running one.

mod control;
mod experiment;
mod mtu;
mod options;
mod run;

pub use control::flow_table;
pub use options::Which;

use crate::failure::Outcome;
use options::{CaptureArgs, ExperimentArgs, GuardArgs, MtuArgs, RunArgs, StopArgs, TableArgs};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    run: Option<RunArgs>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Start a gateway, as without a subcommand
    Run(RunArgs),
    /// Stop a running gateway without harm to its connections, and wait until it has ended
    Stop(StopArgs),
    /// Make a running gateway read its configuration again
    Reload(Which),
    /// Show the connections that are accelerated
    Flows(TableArgs),
    /// Show the state and the counters of a running gateway
    Status(TableArgs),
    /// Compare accelerated with untouched devices, or show what the comparison has found
    Experiment(ExperimentArgs),
    /// Write one connection's packets, of both directions on both interfaces, to a pcapng file
    Capture(CaptureArgs),
    /// Find the longest packet that passes to an address, to test the MTU of a path through the gateway
    Mtu(MtuArgs),
    /// Run the guardian, which takes over exposed connections when a gateway dies
    #[command(hide = true)]
    Guard(GuardArgs),
}

pub fn run(args: &Args) -> Outcome {
    match (&args.action, &args.run) {
        (Some(Action::Run(args)), _) | (None, Some(args)) => run::run(args),
        (Some(Action::Stop(args)), _) => control::stop(args),
        (Some(Action::Reload(which)), _) => control::reload(which),
        (Some(Action::Flows(args)), _) => control::flows(args),
        (Some(Action::Status(args)), _) => control::status(args),
        (Some(Action::Experiment(args)), _) => experiment::run(args),
        (Some(Action::Capture(args)), _) => control::capture(args),
        (Some(Action::Mtu(args)), _) => mtu::run(args),
        (Some(Action::Guard(args)), _) => run::guard(args),
        (None, None) => unreachable!("clap requires a configuration or a subcommand"),
    }
}
