//! The command `paceline`. Data go to stdout, progress and messages to stderr. Exit codes: 0 success, 1
//! failure, 2 bad usage or input.
#![forbid(unsafe_code)]

mod commands;
mod failure;
mod imported;
mod output;
mod progress;
mod quantity;
mod report;
mod results_folder;
mod scenario_args;
mod sweep;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// The allocator of the C library takes twice the time for a packet when a hundred thousand connections have
/// packets in memory: it merges a freed block with its neighbours, which are in no cache.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// TCP over LTE and 5G: simulate it, run real programs through it, and make it faster.
#[derive(Parser)]
#[command(name = "paceline", version = paceline_study::VERSION, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate a scenario
    Run(commands::run::Args),
    /// Run a real program on this host through the modelled radio, in a network namespace
    Emulate(commands::emulate::Args),
    /// Accelerate real traffic between two interfaces, or control a running gateway
    Gateway(commands::gateway::Args),
    /// Drop ACKs in front of a router, in the kernel, and show what was dropped and kept
    Police(commands::police::Args),
    /// Watch a running gateway: rates, busiest devices and connections
    Top(commands::top::Args),
    /// Simulate a grid of scenarios, several seeds each
    Sweep(commands::sweep::Args),
    /// Repeat a published experiment; show the published values beside ours
    Reproduce(commands::reproduce::Args),
    /// Make one HTML page with pictures of a results folder
    Report(commands::report::Args),
    /// Show results side by side
    Compare(commands::compare::Args),
    /// Show what follows from a cell's configuration: slots, peak rates, latencies
    Cell(commands::cell::Args),
    /// Validate a scenario and print it with every default filled in
    Check(commands::check::Args),
    /// Pace the TCP senders of this host for a TDD cell, by congestion controls in the kernel
    Pace(commands::pace::Args),
    /// Explain a capture of TCP: what limited each connection, and where its round trip passed
    Explain(commands::explain::Args),
    /// Fit a scenario to captures and logs of a network, and show measured over simulated
    Fit(commands::fit::Args),
    /// Find the period of a TDD cell in a capture of TCP traffic
    Pattern(commands::pattern::Args),
    /// Describe, generate and export traces of links
    Trace(commands::trace::Args),
    /// Compare this host's TCP, emulated, with simulated TCP on the same links
    Parity(commands::parity::Args),
    /// Report which features work on this host
    Doctor(commands::doctor::Args),
    /// Print completions for a shell
    Completions(commands::completions::CompletionsArgs),
    /// Write a manual page for each command
    Man(commands::completions::ManArgs),
    /// Receive downloads inside an emulation of `parity`
    #[command(hide = true)]
    Receive(commands::parity::ReceiveArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => commands::run::run(&args),
        Command::Emulate(args) => commands::emulate::run(&args),
        Command::Gateway(args) => commands::gateway::run(&args),
        Command::Police(args) => commands::police::run(&args),
        Command::Top(args) => commands::top::run(&args),
        Command::Sweep(args) => commands::sweep::run(&args),
        Command::Reproduce(args) => commands::reproduce::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Cell(args) => commands::cell::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Pace(args) => commands::pace::run(&args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Fit(args) => commands::fit::run(&args),
        Command::Pattern(args) => commands::pattern::run(&args),
        Command::Trace(args) => commands::trace::run(&args),
        Command::Parity(args) => commands::parity::run(&args),
        Command::Receive(args) => commands::parity::receive(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Completions(args) => commands::completions::completions(&args, Cli::command()),
        Command::Man(args) => commands::completions::man(&args, Cli::command()),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
