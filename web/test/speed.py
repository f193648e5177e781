#!/usr/bin/env python3
"""CPU time of the simulator as WebAssembly in Node beside the program's, whole processes, in pairs.

Prints for each scenario the median CPU times and the median of the ratios of the pairs, native over
WebAssembly: 1 is as fast, and a third or more is required. Two ratios: of whole processes, and of the run
alone, without loading the module, but with the compilation by Node while it runs: some half a second of CPU
time, on threads of its own. Exit status 1 if a ratio of the run is below a third.

usage: speed.py PROGRAM [PAIRS]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
# Chosen: LTE, NR, a link, and many stations of several sites, each for about a second of native CPU time, so
# that the compilation does not decide.
SCENARIOS = {
    "uplink-limited": "100 s", "single-station": "200 s", "private-5g": "20 s", "accelerator-trace": "1500 s",
    "ack-filter-paper": "100 s",
}  # fmt: skip
PAIRS = 5
LEAST = 1 / 3


def cpu_seconds(command: list[str]) -> tuple[float, str]:
    """CPU seconds of a process with its threads, and its output."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command}: status {status}")
    return usage.ru_utime + usage.ru_stime, output


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program, pairs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else PAIRS
    least = float("inf")
    print("scenario            native, s  WebAssembly, s  run alone, s  ratio  ratio of the run")
    for scenario, duration in SCENARIOS.items():
        figures = []
        for _ in range(pairs):
            setting = ["--set", f"run.duration={duration}"]
            native, _ = cpu_seconds([program, "run", scenario, "--jobs", "1", "--json", *setting])
            wasm, alone = cpu_seconds(["node", "web/test/run.mjs", scenario, duration])
            figures.append((native, wasm, float(alone), native / wasm, native / float(alone)))
        native, wasm, run, ratio, of_run = (statistics.median(column) for column in zip(*figures, strict=True))
        least = min(least, of_run)
        print(f"{scenario:18} {native:10.2f} {wasm:15.2f} {run:13.2f} {ratio:6.2f} {of_run:17.2f}")
    print(f"least ratio of a run: {least:.2f}, required: {LEAST:.2f}")
    sys.exit(1 if least < LEAST else 0)


if __name__ == "__main__":
    main()
