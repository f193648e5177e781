"""Runs: figures, progress, interruption, errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import paceline
import pytest
from paceline import Scenario

SHORT = Scenario.load("single-station").edit({"run.duration": "3 s", "run.warmup": "1 s"})


def test_the_same_seeds_give_the_same_bytes_for_any_number_of_jobs() -> None:
    one, two = (paceline.run(SHORT, range(4), jobs=jobs) for jobs in (1, 2))
    assert one.summary_json() == two.summary_json()
    assert one.series.to_arrow() == two.series.to_arrow()
    assert one.seeds == [0, 1, 2, 3]


def test_the_summary_has_the_figures_of_summary_json() -> None:
    results = paceline.run(SHORT, [1, 2])
    stored = json.loads(results.summary_json())
    summary = results.summary
    assert list(stored["mean"]) == list(paceline.Totals.__dataclass_fields__)
    assert stored["mean"]["goodput_mbps"] == summary.mean.goodput_mbps > 1.0
    assert summary.ci95 is not None and stored["ci95"]["rtt_mean_ms"] == summary.ci95.rtt_mean_ms
    group = summary.groups[0]
    assert list(stored["groups"][0]["limits"]) == list(paceline.Limits.__dataclass_fields__)
    assert list(stored["groups"][0]["round_trip"]) == list(paceline.RadioDelays.__dataclass_fields__)
    assert list(stored["groups"][0]["ci95"]) == list(paceline.GroupFigures.__dataclass_fields__)
    assert group.verdict == stored["groups"][0]["verdict"] and group.flows == 2
    assert paceline.run(SHORT).summary.ci95 is None
    assert repr(results).startswith("Results('single-station', 2 seeds: ")


def test_progress_is_told_and_its_error_ends_the_run() -> None:
    told: list[tuple[float, float]] = []
    long = SHORT.edit(run__duration="60 s")
    paceline.run(long, [1], progress=lambda done, whole: told.append((done, whole)))
    assert told[-1] == (60.0, 60.0) and told == sorted(told)

    def fail(done: float, whole: float) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        paceline.run(SHORT.edit(run__duration="36000 s"), [1], progress=fail)


def test_the_lock_is_released_during_a_run() -> None:
    count = 0
    done = threading.Event()

    def work() -> None:
        nonlocal count
        while not done.is_set():
            count += 1
            time.sleep(0)

    thread = threading.Thread(target=work)
    thread.start()
    paceline.run(SHORT, range(4), jobs=1)
    done.set()
    thread.join()
    assert count > 10


def test_ctrl_c_ends_a_run() -> None:
    code = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
import paceline
scenario = paceline.Scenario.load("uplink-limited").edit(run__duration="80000 s")
print("started", flush=True)
try:
    paceline.run(scenario, range(4), progress=False)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\n"
    assert process.returncode == 0


def test_mistakes_in_arguments_are_named() -> None:
    with pytest.raises(TypeError, match=r"give the seeds themselves, for example range\(8\)"):
        paceline.run(SHORT, 8)  # type: ignore[arg-type]
    for seeds, message in [([], "empty"), ([1, 1], "twice"), ([-1], "from 0")]:
        with pytest.raises(ValueError, match=message):
            paceline.run(SHORT, seeds)
    with pytest.raises(ValueError, match="jobs = 0: allowed: 1 or more"):
        paceline.run(SHORT, jobs=0)


def test_what_only_the_command_line_has_is_said() -> None:
    with pytest.raises(AttributeError, match="use the command `paceline gateway`"):
        paceline.gateway  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        paceline.nothing  # noqa: B018
