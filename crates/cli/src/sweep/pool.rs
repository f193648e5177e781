//! Runs the jobs of a sweep on all cores. A job is one point of the grid with one seed.
//!
//! The largest jobs start first, and every core takes the next job when it is free, so that no core idles at
//! the end.

use super::parts::Parts;
use crate::failure::{Failure, Outcome};
use crate::progress;
use anyhow::Context;
use indicatif::ProgressBar;
use paceline_net::Instant;
use paceline_sim::{RunResult, Scenario, simulate};
use paceline_study::{Grid, Point};
use rayon::iter::{ParallelBridge, ParallelIterator};
use std::cmp::Reverse;

struct Job<'a> {
    point: usize,
    /// Index of the result among the results of all points and seeds.
    slot: usize,
    seed: u64,
    scenario: &'a Scenario,
}

impl Job<'_> {
    /// Estimated work: simulated milliseconds, summed over the stations.
    fn size(&self) -> u64 {
        self.scenario.run.duration.as_millis().max(1) * self.scenario.station_count()
    }
    /// Simulates the job and stores its result among the parts.
    fn run(&self, parts: &Parts, bar: &ProgressBar) -> anyhow::Result<(usize, RunResult)> {
        let stations = self.scenario.station_count();
        let mut last = Instant::ZERO;
        let mut run = simulate(self.scenario, self.seed, None, &mut |now| {
            bar.inc(now.since(last).as_millis() * stations);
            last = now;
        });
        run.samples = Vec::new();
        parts.store(self.point, &run)?;
        Ok((self.slot, run))
    }
}

/// Simulates every job that has no result in `parts`. Gives the runs of every point in the order of their
/// seeds.
///
/// After an error no further job is started; jobs that run then are finished and stored.
pub fn run(grid: &Grid, seeds: u64, threads: usize, parts: &Parts) -> Outcome<Vec<Vec<RunResult>>> {
    let mut results: Vec<Option<RunResult>> = Vec::new();
    let mut jobs = Vec::new();
    for (point, Point { scenario, .. }) in grid.points.iter().enumerate() {
        for seed in (0..seeds).map(|index| scenario.run.seed + index) {
            let done = parts.load(point, seed)?;
            if done.is_none() {
                jobs.push(Job { point, slot: results.len(), seed, scenario });
            }
            results.push(done);
        }
    }
    jobs.sort_by_key(|job| Reverse(job.size()));
    let bar = progress::bar(jobs.iter().map(Job::size).sum(), "the work");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.clamp(1, jobs.len().max(1))).build();
    let pool = pool.context("cannot start threads").map_err(Failure::Failed)?;
    // `par_bridge` hands out the jobs one by one in their order; a split into ranges would start small ones
    // first.
    let done: anyhow::Result<Vec<_>> =
        pool.install(|| jobs.iter().par_bridge().map(|job| job.run(parts, &bar)).collect());
    bar.finish_and_clear();
    for (slot, run) in done.map_err(Failure::Failed)? {
        results[slot] = Some(run);
    }
    let mut runs = results.into_iter().map(|run| run.expect("every job was done"));
    Ok(grid.points.iter().map(|_| runs.by_ref().take(seeds as usize).collect()).collect())
}
