//! `paceline reproduce`: repeats a published experiment and prints the published values beside the simulated
//! ones.

mod accelerator;
mod ack_filter;
mod calibration;
mod d2d;
mod measured;
mod options;
mod outcome;
mod pacing_pictures;
mod router;
mod router_measured;
mod tdd_pacing;

use crate::failure::Outcome;
use clap::Subcommand;
use options::Options;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    /// ACK filtering in the uplink buffer (IEEE CSCN 2018): four schemes, 10 to 60 stations
    AckFilter(Options),
    /// The mobile accelerator (2011): probes of two mobile channels, and TCP on them with and without it
    Accelerator(Options),
    /// Downlink geometry and coupling loss of 3GPP's deployments, beside 3GPP's own
    Calibration(calibration::Options),
    /// TCP over direct links with mode switches (IEEE VTC Spring 2016): round trips, windows, throughputs
    D2d(Options),
    /// Measured cells: throughputs and latencies of real networks beside ours
    Measured(measured::Options),
    /// ACK rate control in front of a router (2010): rates, collapse, router's load, shares; also measured
    Router(router::RouterOptions),
    /// Pacing in TDD cells (IEEE CCNC 2024): its statements, ours, and maps over buffer and round-trip time
    TddPacing(tdd_pacing::PacingOptions),
}

pub fn run(args: &Args) -> Outcome {
    match &args.experiment {
        Experiment::AckFilter(options) => ack_filter::run(options),
        Experiment::Accelerator(options) => accelerator::run(options),
        Experiment::Calibration(options) => calibration::run(options),
        Experiment::D2d(options) => d2d::run(options),
        Experiment::Measured(options) => measured::run(options),
        Experiment::Router(options) => router::run(options),
        Experiment::TddPacing(options) => tdd_pacing::run(options),
    }
}
