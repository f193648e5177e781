//! Options of `paceline gateway` and its subcommands.

use paceline_net::Duration;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct RunArgs {
    /// Configuration file (docs/gateway.md)
    pub config: PathBuf,
    /// Check the configuration and its interfaces only, and print it with all defaults
    #[arg(long)]
    pub check: bool,
    /// Print the counters to stdout as JSON at the end
    #[arg(long)]
    pub json: bool,
}

/// The running gateway that a command controls.
#[derive(clap::Args, Clone)]
pub struct Which {
    /// Control socket of the gateway; by default the only one in /run/paceline
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct StopArgs {
    #[command(flatten)]
    pub which: Which,
    /// Time for the delivery of data that were acknowledged early; by default `drain` of the configuration
    #[arg(long, value_name = "TIME")]
    pub limit: Option<Duration>,
}

#[derive(clap::Args)]
pub struct TableArgs {
    #[command(flatten)]
    pub which: Which,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args)]
pub struct CaptureArgs {
    #[command(flatten)]
    pub which: Which,
    /// The connection, as `flows` names it: SERVER:PORT-DEVICE:PORT
    pub flow: String,
    /// File to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// End after so many seconds [default: 10, with --packets 3600]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: Option<u32>,
    /// End after so many packets [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub packets: Option<u64>,
}

#[derive(clap::Args)]
pub struct GuardArgs {
    pub server: u32,
    pub mobile: u32,
    pub exit: Option<u32>,
}
