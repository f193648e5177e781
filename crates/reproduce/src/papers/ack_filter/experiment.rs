//! The runs of the experiment, and comparisons between them.

use super::network::Network;
use crate::Estimate;
use paceline_sim::results::{RunResult, Totals, mean_and_ci95};

/// Published schemes, as a scenario names them.
pub const SCHEMES: [&str; 4] = ["basic", "granted", "hybrid(6)", "hybrid-opt"];
/// Published numbers of stations.
pub const STATIONS: [u64; 6] = [10, 20, 30, 40, 50, 60];

/// Indices into [`SCHEMES`].
pub(super) const BASIC: usize = 0;
pub(super) const GRANTED: usize = 1;
pub(super) const HYBRID: usize = 2;
pub(super) const OPT: usize = 3;
/// Length of an ACK at the serving gateway: IPv4 and TCP headers of 20 bytes each, timestamps of 12
/// (RFC 7323).
pub(super) const ACK_BYTES: f64 = 52.0;

/// The experiment: the runs of all schemes and numbers of stations.
pub struct Experiment<'a> {
    pub(super) network: Network,
    /// Runs by scheme and number of stations, in the order of their seeds.
    pub(super) runs: Vec<Vec<&'a [RunResult]>>,
}

impl<'a> Experiment<'a> {
    /// `points` has the runs of each scheme and number of stations, in the order of [`SCHEMES`] and
    /// [`STATIONS`]; the number of stations changes fastest.
    ///
    /// # Panics
    /// If the number of points is wrong.
    pub fn new(network: Network, points: &'a [Vec<RunResult>]) -> Self {
        assert_eq!(points.len(), SCHEMES.len() * STATIONS.len(), "a point per scheme and number of stations");
        let runs = points.chunks(STATIONS.len());
        Self { network, runs: runs.map(|runs| runs.iter().map(Vec::as_slice).collect()).collect() }
    }

    pub(super) fn at(&self, scheme: usize, stations: u64) -> &'a [RunResult] {
        let place = STATIONS.iter().position(|n| *n == stations).expect("a number of the experiment");
        self.runs[scheme][place]
    }

    /// Change of a figure from scheme `b` to scheme `a`, percent, paired by seed.
    pub(super) fn change(&self, (a, b): (usize, usize), stations: u64, of: fn(&Totals) -> f64) -> Estimate {
        let pairs = self.at(a, stations).iter().zip(self.at(b, stations));
        Estimate::of(pairs.map(|(a, b)| 100.0 * (of(&a.totals) / of(&b.totals) - 1.0)))
    }

    /// Largest reduction, over stations, of the ACKs that a station sends; percent (negative), paired by
    /// seed.
    pub(super) fn largest_reduction(&self, (a, b): (usize, usize), stations: u64) -> Estimate {
        let pairs = self.at(a, stations).iter().zip(self.at(b, stations));
        Estimate::of(pairs.map(|(a, b)| {
            let stations = a.stations.iter().zip(&b.stations).filter(|(_, b)| b.acks_sent > 0);
            let changes = stations.map(|(a, b)| 100.0 * (a.acks_sent as f64 / b.acks_sent as f64 - 1.0));
            changes.fold(f64::INFINITY, f64::min)
        }))
    }

    pub(super) fn mean(&self, scheme: usize, stations: u64) -> Totals {
        mean_and_ci95(self.at(scheme, stations)).0
    }
}
