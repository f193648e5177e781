"""Runs of a scenario."""

from __future__ import annotations

import os
from collections.abc import Iterable

from paceline import _paceline
from paceline.control import MakesControl
from paceline.progress import Progress, chosen
from paceline.results import Results
from paceline.scenario import Scenario, ScenarioLike


def run(
    scenario: ScenarioLike,
    seeds: Iterable[int] | None = None,
    *,
    jobs: int | None = None,
    progress: bool | Progress | None = None,
    control: MakesControl | None = None,
) -> Results:
    """Simulates a scenario, one run for each seed, on all cores.

    ``scenario`` is a scenario, a file, or the name of a built-in one: ``paceline.run("private-5g")``.
    ``seeds`` is ``run.seed`` alone if left out. ``jobs`` is the number of runs at the same time, all cores if
    left out. ``progress`` is shown in terminals and notebooks if left out; a function is called with the
    simulated and the whole time of all runs in seconds. Ctrl-C ends the runs. ``control`` is a class of
    your own that makes the congestion control of each connection: see docs/own-control.md. The same scenario
    and seed give the same figures on every machine and for any number of jobs.

    >>> import paceline
    >>> scenario = paceline.Scenario.load("single-station").edit({"run.duration": "3 s", "run.warmup": "1 s"})
    >>> paceline.run(scenario, seeds=range(1, 3)).summary.mean.goodput_mbps > 1.0
    True
    """
    scenario = Scenario.given(scenario)
    listed = [scenario.seed] if seeds is None else _listed(seeds)
    threads = _jobs(jobs)
    shown = chosen(progress)
    results = _paceline.run(scenario._scenario, listed, threads, shown, control=control)
    return Results(scenario, results)


def _listed(seeds: Iterable[int]) -> list[int]:
    """The seeds; none twice."""
    if isinstance(seeds, int):
        raise TypeError(f"seeds = {seeds}: give the seeds themselves, for example range({seeds})")
    listed = [int(seed) for seed in seeds]
    if not listed:
        raise ValueError("seeds: empty; give at least one, for example range(8)")
    if min(listed) < 0 or max(listed) >= 2**63:
        raise ValueError("seeds: allowed: whole numbers from 0 to 2**63 - 1")
    if len(set(listed)) != len(listed):
        raise ValueError("seeds: a seed stands twice; equal seeds give equal runs")
    return listed


def _jobs(jobs: int | None) -> int:
    """Runs at the same time."""
    if jobs is None:
        return len(os.sched_getaffinity(0))
    if jobs < 1:
        raise ValueError(f"jobs = {jobs}: allowed: 1 or more")
    return jobs
