#!/usr/bin/env python3
"""Times of the builds, and the speed that the quicker one gives up: `make bench-build`, idle machine.

    scripts/measure/build_cost.py

Builds the profiles `release` (make build, make demo) and `dist` (package, archive, wheel) from clean, with
cargo's --timings, and runs scenarios with both programs in turns. Writes docs/figures/build.csv (per profile:
seconds, CPU seconds, and the units that take longest) and docs/figures/build-speed.csv (CPU time of each
scenario by the `release` program over that by `dist`, median of the pairs).
"""

import csv
import json
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "target" / "bench-build"
PROFILES = ("release", "dist")
# One of each kind: LTE and NR cells, direct links, a fixed link, a trace, the accelerator.
SCENARIOS = ("ack-filter-paper", "private-5g", "d2d-dynamic", "parity-fixed", "accelerator-trace", "mmwave")
PAIRS = 3
# CPU time of a run.
SECONDS = 4.0
UNITS = 12


def main() -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    figures = ROOT / "docs" / "figures"
    with (figures / "build.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["# make bench-build"])
        writer.writerow(["profile", "unit", "seconds", "cpu_seconds"])
        for profile in PROFILES:
            writer.writerows(build(profile))
    speed(figures)
    return 0


def speed(figures: pathlib.Path) -> None:
    """Runs each scenario with both programs in turns."""
    with (figures / "build-speed.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["# make bench-build"])
        writer.writerow(["scenario", "release_over_dist"])
        for scenario in SCENARIOS:
            # Short runs are mostly the program's start.
            seeds = max(6, round(6 * SECONDS / cpu_seconds("dist", scenario, 6)))
            ratio = statistics.median(
                cpu_seconds("release", scenario, seeds) / cpu_seconds("dist", scenario, seeds)
                for _ in range(PAIRS)
            )
            writer.writerow([scenario, f"{ratio:.2f}"])
            print(f"{scenario}: {ratio:.2f}", file=sys.stderr)


def build(profile: str) -> list[list[object]]:
    """Rows of the whole build and of the units that take longest."""
    command = ["cargo", "build", "--locked", "--timings", "--profile", profile, "--target-dir", str(FOLDER)]
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, check=True)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    report = (FOLDER / "cargo-timings" / "cargo-timing.html").read_text()
    data = re.search(r"UNIT_DATA = (\[.*?\]);\n", report, re.DOTALL)
    if data is None:
        raise SystemExit("cargo's report of timings has another form")
    units = sorted(json.loads(data.group(1)), key=lambda unit: -float(unit["duration"]))
    rows: list[list[object]] = [[profile, "all", round(wall), round(cpu)]]
    rows += [[profile, (unit["name"] + unit["target"]).strip(), unit["duration"], ""] for unit in units[:UNITS]]
    return rows


def cpu_seconds(profile: str, scenario: str, seeds: int) -> float:
    """CPU time of one run."""
    program, file = FOLDER / profile / "paceline", ROOT / "scenarios" / f"{scenario}.toml"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(program), "run", str(file), "--seeds", str(seeds), "--jobs", "1"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=FOLDER)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
