//! The table `handovers.csv`.

use super::super::run::RunResult;
use super::super::tables::{Decimals, text};
use super::handover::HandoverResult;
use serde::Serialize;

/// A row of `handovers.csv`.
#[derive(Default, Serialize)]
struct HandoverRow<'a> {
    seed: u64,
    time_s: Decimals<6>,
    station: usize,
    from_cell: usize,
    to_cell: usize,
    cause: &'a str,
    outcome: &'a str,
    interruption_ms: Option<Decimals<3>>,
    from_gain_db: Decimals<2>,
    to_gain_db: Decimals<2>,
    dropped_packets: u64,
    dropped_bytes: u64,
    forwarded_packets: u64,
    x_m: Option<Decimals<1>>,
    y_m: Option<Decimals<1>>,
}

impl<'a> HandoverRow<'a> {
    fn new(seed: u64, own: &'a HandoverResult) -> Self {
        Self {
            seed,
            time_s: Decimals(own.time_s),
            station: own.station,
            from_cell: own.from_cell,
            to_cell: own.to_cell,
            cause: &own.cause,
            outcome: &own.outcome,
            interruption_ms: own.interruption_ms.map(Decimals),
            from_gain_db: Decimals(own.from_gain_db),
            to_gain_db: Decimals(own.to_gain_db),
            dropped_packets: own.dropped_packets,
            dropped_bytes: own.dropped_bytes,
            forwarded_packets: own.forwarded_packets,
            x_m: own.x_m.map(Decimals),
            y_m: own.y_m.map(Decimals),
        }
    }
}

/// Text of `handovers.csv`.
pub(in crate::results) fn handovers(runs: &[RunResult]) -> String {
    text(runs.iter().flat_map(|run| run.handovers.iter().map(|own| HandoverRow::new(run.seed, own))))
}
