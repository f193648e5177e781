//! `paceline reproduce ack-filter`: ACK filtering in the uplink buffer (Ohta et al., IEEE CSCN 2018).

use super::options::Options;
use super::outcome::finish;
use crate::failure::Outcome;
use paceline_study::reproduce::ack_filter;
use std::process::ExitCode;

pub fn run(options: &Options) -> Outcome {
    let reproduced = ack_filter::run(&options.plan(), &mut options.folders())?;
    finish(&reproduced, Some(&options.out))?;
    Ok(ExitCode::SUCCESS)
}
