#!/usr/bin/env python3
"""Time and memory of the Python package: import, runs beside the command line, rows in pandas, cores.

    scripts/measure/python_bench.py PROGRAM     with the interpreter that has the package; `make bench-python`

Times are minima over repetitions; CPU times are those of the processes with their children.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# Chosen: a run takes some milliseconds, so that the cost beside the simulation shows.
SHORT = ["--set", "run.duration=2 s", "--set", "run.warmup=1 s"]
GRID = [
    "--over",
    "tcp.congestion_control=reno,cubic,bbr,vegas,illinois",
    "--over",
    "tcp.sack=true,false",
    "--seeds",
    "100",
]
MILLION = """
import paceline, time, resource, pandas, pyarrow, sys
scenario = paceline.Scenario.load("parity-fixed").edit(
    {"run.duration": "100 s", "run.warmup": "1 s", "run.sample": "1 ms", "station.count": 10, "link.fixed.downlink_rate": "1 Mb/s"}
)
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
table = paceline.run(scenario).series
table.to_arrow().slice(0, 10).to_pandas(types_mapper=pandas.ArrowDtype)  # loads what pandas loads late
before = resident()
started = time.perf_counter()
frame = MAKE
taken = time.perf_counter() - started
grown = resident() - before
print(len(frame), table.nbytes, taken, grown, frame["downloaded"].max())
"""


def repeated(count: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(count))


def wall(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def cpu(command: list[str]) -> float:
    """CPU seconds of a command with its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imports() -> None:
    commands = [[sys.executable, "-c", code] for code in ("pass", "import paceline")]
    taken, used = ([repeated(10, partial(measure, command)) for command in commands] for measure in (wall, cpu))
    print(
        f"import paceline: {1000 * (taken[1] - taken[0]):.0f} ms, {1000 * (used[1] - used[0]):.0f} ms of CPU (limit 200)"
    )


def runs(program: str) -> None:
    ours, theirs = [], []
    python = [sys.executable, "-P", "-m", "paceline", "sweep", "single-station", *SHORT, *GRID, "--out"]
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            theirs.append(cpu([program, "sweep", "single-station", *SHORT, *GRID, "--out", f"{folder}/a"]))
            ours.append(cpu([*python, f"{folder}/b"]))
    print(
        f"1000 short runs: {min(ours):.2f} s of CPU, the command line {min(theirs):.2f} s, ratio {min(ours) / min(theirs):.3f} (limit 1.1)"
    )


def million() -> None:
    for name, make in [
        ("results.series.to_pandas()", "table.to_pandas()"),
        ("pyarrow.table(results.series).to_pandas(), numpy", "pyarrow.table(table).to_pandas()"),
    ]:
        code = MILLION.replace("MAKE", make)
        best: list[float] = []
        for _ in range(3):
            text = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout
            rows, size, taken, grown, _ = (float(word) for word in text.split())
            best = min(best or [taken, grown], [taken, grown])
        factor = 1.0 + best[1] / size
        print(
            f"{name}: {rows:.0f} rows, {size / 1e6:.0f} MB in {1000 * best[0]:.1f} ms, {factor:.2f} times the size (limits 50 ms, 1.1)"
        )


def cores() -> None:
    code = "import paceline; paceline.run(paceline.Scenario.load('uplink-limited').edit(run__duration='40 s'), range(16), jobs={})"

    def seconds(jobs: int) -> float:
        return repeated(3, lambda: wall([sys.executable, "-c", code.format(jobs)]))

    taken = {jobs: seconds(jobs) for jobs in (1, 2)}
    print(f"16 seeds: {taken[1]:.2f} s on one core, {taken[2]:.2f} s on two, ratio {taken[1] / taken[2]:.2f}")


def dask() -> None:
    """A sweep on this machine and on two Dask workers with a thread each, without their start: wall time, and
    CPU time of this process and the workers."""
    import distributed
    import paceline

    scenario = paceline.Scenario.load("uplink-limited").edit(run__duration="40 s")
    library: Any = distributed
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with library.LocalCluster(**options) as cluster, library.Client(cluster) as client:

        def seconds(jobs: int | None) -> tuple[float, float]:
            def used() -> float:
                return time.process_time() + float(sum(client.run(time.process_time).values()))

            started, before = time.perf_counter(), used()
            on = client if jobs is None else "local"
            with tempfile.TemporaryDirectory() as folder:
                paceline.sweep(scenario, {"station.count": [10]}, range(16), on=on, out=f"{folder}/out", jobs=jobs)
            return time.perf_counter() - started, used() - before

        pairs = [(seconds(2), seconds(None)) for _ in range(3)]
    wall_s, cpu_s = ([min(pair[at][of] for pair in pairs) for at in (0, 1)] for of in (0, 1))
    print(
        f"16 seeds on two threads {wall_s[0]:.2f} s ({cpu_s[0]:.2f} s of CPU), on two Dask workers {wall_s[1]:.2f} s "
        f"({cpu_s[1]:.2f} s of CPU): {100 * wall_s[0] / wall_s[1]:.0f}% by time, {100 * cpu_s[0] / cpu_s[1]:.0f}% by CPU"
    )


def wheel() -> None:
    for file in Path("target/wheels").glob("*.whl"):
        print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB (aim 12)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the command line's program")
    options = parser.parse_args()
    wheel()
    imports()
    million()
    runs(os.path.abspath(options.program))
    cores()
    dask()


if __name__ == "__main__":
    main()
