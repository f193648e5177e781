//! All jobs of a sweep, a job being one point with one seed, on all cores.
//!
//! The largest jobs start first and each core takes the next one when it is free, so that no core waits for another
//! at the end.

use super::grid::{Grid, Point};
use super::parts::Parts;
use crate::failure::{Failure, Outcome};
use crate::progress;
use indicatif::ProgressBar;
use paceline_net::Instant;
use paceline_sim::{RunResult, Scenario, simulate};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Job<'a> {
    point: usize,
    slot: usize,
    seed: u64,
    scenario: &'a Scenario,
}

impl Job<'_> {
    /// How much work it is, roughly: simulated milliseconds of all stations.
    fn size(&self) -> u64 {
        self.scenario.run.duration.as_millis().max(1) * self.scenario.station_count()
    }
}

/// Simulates what `parts` does not hold yet; gives the runs of every point in the order of their seeds.
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
    jobs.sort_by_key(|job| std::cmp::Reverse(job.size()));
    let bar = progress::bar(jobs.iter().map(Job::size).sum(), "the work");
    let shared = Shared { jobs: &jobs, next: AtomicUsize::new(0), parts, bar: &bar, done: Mutex::default() };
    let done = std::thread::scope(|scope| {
        let worker = || scope.spawn(|| shared.work());
        let workers: Vec<_> = (0..threads.clamp(1, jobs.len().max(1))).map(|_| worker()).collect();
        let ends = workers.into_iter().map(|worker| worker.join().expect("a simulation does not panic"));
        ends.collect::<anyhow::Result<Vec<()>>>()
    });
    bar.finish_and_clear();
    done.map_err(Failure::Failed)?;
    for (slot, run) in shared.done.into_inner().expect("no worker panicked") {
        results[slot] = Some(run);
    }
    let mut runs = results.into_iter().map(|run| run.expect("every job was done"));
    Ok(grid.points.iter().map(|_| runs.by_ref().take(seeds as usize).collect()).collect())
}

struct Shared<'a> {
    jobs: &'a [Job<'a>],
    next: AtomicUsize,
    parts: &'a Parts,
    bar: &'a ProgressBar,
    done: Mutex<Vec<(usize, RunResult)>>,
}

impl Shared<'_> {
    /// One core's work: the next job until there is none. After a failure nobody starts another.
    fn work(&self) -> anyhow::Result<()> {
        while let Some(job) = self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let stations = job.scenario.station_count();
            let mut last = Instant::ZERO;
            let mut run = simulate(job.scenario, job.seed, None, &mut |now| {
                self.bar.inc(now.since(last).as_millis() * stations);
                last = now;
            });
            run.samples = Vec::new();
            self.parts.store(job.point, &run).inspect_err(|_| {
                self.next.store(self.jobs.len(), Ordering::Relaxed);
            })?;
            self.done.lock().expect("no worker panicked").push((job.slot, run));
        }
        Ok(())
    }
}
