#!/usr/bin/env python3
"""Real senders through an emulated TDD cell, beside the simulator's forecast. Needs root.

    scripts/measure/pace/emulated.py PROGRAM [--seconds S] [--runs N] [--read BYTES] [--spacing NAME]

The cell has the pattern DDDSU in 20 MHz, about 84 Mb/s, and a base round-trip time of about 10 ms; the
buffers are one and four period-bytes. A row is a congestion control of this host's kernel with a spacing:
none; Linux's rate per segment (`paceline pace --delay raw`, without a phase and so without a gate); for the
period of the cell (`paceline pace`, with clean delay, also without a gate). The simulated sender has
`tcp.pacing` none, linux-per-segment, or tdd with a learned period. Goodput is the median of N runs, the
simulator's that of N seeds; the range of both stands behind it.

The receiver reads two segments at a time, so that it acknowledges every second segment, as the simulated one.
A receiver that reads 128 kB at a time sends fewer ACKs, since Linux holds an ACK back until the program has
read; `--read BYTES` shows what that costs.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from control import registered

PORT = 7801
SENDER = f"""
import socket
connection, _ = socket.create_server(("", {PORT})).accept()
try:
    while True:
        connection.sendall(bytes(65536))
except OSError:
    pass
"""
RECEIVER = f"""
import socket, sys, time
connection = socket.create_connection(("198.18.0.1", {PORT}))
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end and connection.recv(int(sys.argv[2])):
    pass
"""
PERIOD_BYTES = 26_250
"""84 Mb/s for 2.5 ms."""

SCENARIO = """
[core]
hops = [{ rate = "10 Gb/s", delay = "3 ms" }]
[cell]
rat = "nr"
frequency = "4.75 GHz"
bandwidth = "20 MHz"
subcarrier_spacing = "30 kHz"
pattern = "DDDSU"
outer_loop = true
nr.layers = 4
nr.antennas = 4
nr.configured_grant = { period = "2.5 ms", prb = 45, mcs = 16 }
[[station]]
downlink_sinr = "20 dB"
uplink_sinr = "20 dB"
fading = "0 dB"
"""

PATTERN = ["--pattern", "DDDSU/30kHz"]
SPACINGS = {"none": [], "linux-per-segment": [*PATTERN, "--delay", "raw"], "tdd": PATTERN}


def goodput_mbps(folder: pathlib.Path) -> float:
    summary = json.loads((folder / "summary.json").read_text())
    return float(summary["mean"]["goodput_mbps"])


def spaced(program: str, control: str, spacing: str) -> contextlib.AbstractContextManager[str]:
    """The kernel's name of a control with this spacing, registered meanwhile."""
    if spacing == "none":
        return contextlib.nullcontext(control)
    name = f"em_{control[:4]}_{os.getpid() % 100000}"
    return registered(program, name, "--control", control, *SPACINGS[spacing])


def forecast(program: str, scenario: str, sets: list[str], seeds: int, folder: pathlib.Path) -> list[float]:
    """Simulated goodput with each seed."""
    command = [program, "run", scenario, *sets, "--seeds", str(seeds), "--out", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    runs = json.loads((folder / "summary.json").read_text())["runs"]
    return [float(run["totals"]["goodput_mbps"]) for run in runs]


def spread(values: list[float]) -> str:
    """Median and range."""
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def measured(
    args: argparse.Namespace, scenario: str, sets: list[str], name: str, folder: pathlib.Path
) -> float:
    """Goodput of a real sender on this host towards the station."""
    receiver = [sys.executable, "-c", RECEIVER, str(args.seconds), str(args.read)]
    command = [args.program, "emulate", scenario, *sets, "--tcp", name, "--out", str(folder), "--", *receiver]
    with subprocess.Popen([sys.executable, "-c", SENDER]) as server:
        time.sleep(0.5)
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=args.seconds + 60)
        finally:
            server.terminate()
    return goodput_mbps(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--read", type=int, default=2896)
    parser.add_argument("--spacing", choices=list(SPACINGS), action="append")
    args = parser.parse_args()
    print("| control | buffer, period-bytes | spacing | real, Mb/s | simulated, Mb/s | difference, % |")
    print("|---|---:|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        scenario = root / "cell.toml"
        scenario.write_text(SCENARIO)
        for control, buffer, spacing in itertools.product(("reno", "cubic"), (1, 4), args.spacing or SPACINGS):
            values = {
                "run.duration": f"{args.seconds} s",
                "run.warmup": "3 s",
                "cell.downlink_buffer": f"{buffer * PERIOD_BYTES} B",
                "tcp.congestion_control": control,
                "tcp.pacing": spacing,
            }
            sets = [text for key, value in values.items() for text in ("--set", f"{key}={value}")]
            row = root / f"{control}-{buffer}-{spacing}"
            simulated = forecast(args.program, str(scenario), sets, args.runs, row / "simulated")
            with spaced(args.program, control, spacing) as name:
                real = [
                    measured(args, str(scenario), sets, name, row / f"real-{run}") for run in range(args.runs)
                ]
            difference = 100 * (statistics.median(real) / statistics.median(simulated) - 1)
            print(
                f"| {control} | {buffer} | {spacing} | {spread(real)} | {spread(simulated)} | {difference:+.0f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
