//! The simulations of an estimate.

use crate::measured::Measured;
use crate::path::{Path, Reading};
use crate::remedy::Remedy;
use crate::report::{self, Gain, NotApplicable};
use paceline_explain::report::Explanation;
use paceline_fit::Fit;
use paceline_fit::capture::Captures;
use paceline_sim::{Origin, Summary, simulate};

/// Congestion controls that a sender may have. That whose simulation is nearest the capture is taken; the
/// first of equals, since it is most servers' (Mishra et al., "The Great Internet TCP Congestion Control
/// Census", 2019).
const CONTROLS: [&str; 2] = ["cubic", "bbr"];
/// Draws that choose the reading of a capture. Chosen: more change the choice only between readings that
/// behave alike.
const TRIALS: u64 = 3;
/// A later reading must be nearer than the first by this much: the bound of the fit's capacities.
const NEARER: f64 = 0.05;

/// One simulation.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The remedy; none as it is.
    pub remedy: Option<Remedy>,
    /// Number of the draw.
    pub draw: u64,
    reading: Reading,
}

/// Its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Completion times of the transfers, s. An unfinished one counts until the end of the run.
    pub completions_s: Vec<f64>,
    /// Transfers that did not end.
    pub unfinished: usize,
    /// Mean round trip over the whole path, ms.
    pub rtt_ms: f64,
}

impl Outcome {
    /// Mean completion time, s.
    pub fn mean_s(&self) -> f64 {
        self.completions_s.iter().sum::<f64>() / self.completions_s.len().max(1) as f64
    }
}

/// Simulates jobs by [`Plan::simulate`], in any order; the outcomes are in the order of the jobs.
pub type Each<'a> = dyn Fn(&[Job]) -> Result<Vec<Outcome>, String> + 'a;

/// An estimate to be made.
#[derive(Debug)]
pub struct Plan {
    pub(crate) measured: Measured,
    pub(crate) path: Path,
    pub(crate) verdict: String,
    pub(crate) cause: &'static str,
    pub(crate) draws: u64,
}

impl Plan {
    /// The plan for a capture; or the lack in it that prevents one.
    pub fn new(
        captures: &Captures,
        explanation: &Explanation,
        fit: &Fit,
        draws: u64,
    ) -> Result<Self, String> {
        let measured = Measured::new(captures, explanation)?;
        let path = Path::new(fit, &measured)?;
        let (verdict, cause) = (explanation.network.verdict.clone(), explanation.network.cause);
        Ok(Self { measured, path, verdict, cause, draws })
    }
    /// Makes the estimate.
    pub fn finish(&self, each: &Each<'_>) -> Result<Gain, String> {
        let jobs = |remedy, reading, draws| {
            (0..draws).map(move |draw| Job { remedy, draw, reading }).collect::<Vec<_>>()
        };
        let losses: &[bool] = if self.path.has_doubtful_losses() { &[false, true] } else { &[false] };
        let readings: Vec<Reading> = losses
            .iter()
            .flat_map(|losses| CONTROLS.map(|control| Reading { control, has_losses: *losses }))
            .collect();
        let trials = TRIALS.min(self.draws);
        let outcomes =
            each(&readings.iter().flat_map(|reading| jobs(None, *reading, trials)).collect::<Vec<_>>())?;
        let distances = outcomes
            .chunks(trials as usize)
            .map(|own| own.iter().map(|outcome| self.distance(outcome)).sum::<f64>() / trials as f64);
        let mut best = (readings[0], f64::INFINITY);
        for (reading, distance) in readings.into_iter().zip(distances) {
            if distance < best.1 - NEARER {
                best = (reading, distance);
            }
        }
        let (reading, control) = (best.0, best.0.control);
        let as_it_is = each(&jobs(None, reading, self.draws))?;
        if let Some(gain) = report::refusal(self, control, &as_it_is) {
            return Ok(gain);
        }
        let (mut apply, mut not_applicable) = (Vec::new(), Vec::new());
        for remedy in Remedy::ALL {
            match remedy.settings(&self.path, &self.measured, control) {
                Ok(_) => apply.push(remedy),
                Err(reason) => not_applicable.push(NotApplicable { remedy, reason }),
            }
        }
        let all: Vec<Job> =
            apply.iter().flat_map(|remedy| jobs(Some(*remedy), reading, self.draws)).collect();
        let outcomes = each(&all)?;
        let with = apply.iter().copied().zip(outcomes.chunks(self.draws as usize));
        Ok(report::gain(self, control, &as_it_is, with, not_applicable))
    }
    /// How far a simulation is from the capture: the larger of the logarithms of both ratios.
    fn distance(&self, outcome: &Outcome) -> f64 {
        let ratio = |a: f64, b: f64| libm::fabs(libm::log(a.max(1e-9) / b.max(1e-9)));
        let trip = self.measured.rtt_ms.map_or(0.0, |rtt| ratio(outcome.rtt_ms, rtt));
        ratio(outcome.mean_s(), self.measured.completion_s).max(trip)
    }
    /// Simulates one job.
    pub fn simulate(&self, job: &Job) -> Result<Outcome, String> {
        let settings = match job.remedy {
            Some(remedy) => remedy.settings(&self.path, &self.measured, job.reading.control)?,
            None => Vec::new(),
        };
        let draw = self.path.draw(job.draw);
        let scenario = self.path.scenario(&draw, job.reading, &settings)?;
        let result = simulate(&scenario, draw.seed, None, &mut |_| {});
        let end = scenario.run.duration.as_secs_f64();
        let mut unfinished = 0;
        let times = result.flows.iter().zip(self.path.transfers()).map(|(flow, own)| {
            let done = if self.measured.is_upload { flow.completed_s } else { flow.received_s };
            unfinished += usize::from(done.is_none());
            done.unwrap_or(end) - own.start.as_secs_f64()
        });
        let completions_s = times.collect();
        let nobody = Origin { version: String::new(), commit: String::new() };
        let summary = Summary::new(nobody, "", "simulated", &scenario, vec![result]);
        // Behind a proxy, the round trip of the path is that of both sides.
        let rtt_ms = summary.groups.first().map_or(f64::NAN, |group| match &group.sides[..] {
            [] => group.mean.rtt_mean_ms,
            sides => sides.iter().map(|side| side.rtt_mean_ms).sum(),
        });
        Ok(Outcome { completions_s, unfinished, rtt_ms })
    }
}
