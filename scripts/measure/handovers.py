#!/usr/bin/env python3
"""Measures each TCP at handovers: the scenario `drive` with one station, for each fate of the packets.

Usage: scripts/measure/handovers.py [SEEDS] [PROGRAM] > docs/figures/handovers.csv. Prints the table of
docs/path-switch.md: a row for each TCP, and in each cell the figures of `drop`, `forward` and `duplicate`.
Handovers, interruptions and dropped packets go to stderr.
"""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

CONTROLS = {
    "Reno, NewReno recovery": ["congestion_control=reno", "loss_recovery=newreno", "sack=false"],
    "Reno, SACK": ["congestion_control=reno", "loss_recovery=sack"],
    "CUBIC, SACK": ["congestion_control=cubic", "loss_recovery=sack"],
    "CUBIC, RACK-TLP": ["congestion_control=cubic"],
    "BBR": ["congestion_control=bbr"],
}
FATES = ["drop", "forward", "duplicate"]
ALONE = ["station.0.count=1", "station.1.count=1", "station.1.direction=none", "run.duration=120 s", "cell.gnb=ideal"]


def runs(program: str, seeds: int, keys: list[str]) -> list[dict[str, Any]]:
    """The runs of the scenario with these keys."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        sets = [word for key in keys for word in ("--set", key)]
        command = [program, "run", "drive", "--seeds", str(seeds), "--out", str(out), *sets]
        subprocess.run(command, check=True, capture_output=True)
        found: list[dict[str, Any]] = json.loads((out / "summary.json").read_text())["runs"]
        return found


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    program = sys.argv[2] if len(sys.argv) > 2 else "paceline"
    print(f"# scripts/measure/handovers.py {seeds} > docs/figures/handovers.csv")
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["TCP", "goodput, Mb/s", "timeouts", "sent again, %"])
    for name, tcp in CONTROLS.items():
        cells: list[tuple[str, str, str]] = []
        for fate in FATES:
            keys = [*ALONE, *(f"tcp.{key}" for key in tcp), f"handover.fate={fate}"]
            found = runs(program, seeds, keys)
            flows = [flow for run in found for flow in run["flows"]]
            handovers = [row for run in found for row in run["handovers"]]
            goodput = mean(run["stations"][0]["goodput_mbps"] for run in found)
            silent = mean(row["interruption_ms"] for row in handovers if "interruption_ms" in row)
            dropped = mean(row["dropped_packets"] for row in handovers)
            again = 100 * sum(flow["retransmissions"] for flow in flows) / sum(flow["segments"] for flow in flows)
            cells.append((f"{goodput:.1f}", str(sum(flow["timeouts"] for flow in flows)), f"{again:.2f}"))
            print(
                f"{name}, {fate}: {len(handovers)} handovers, {silent:.0f} ms, {dropped:.1f} packets dropped at each",
                file=sys.stderr,
            )
        table.writerow([name, *(", ".join(column) for column in zip(*cells))])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
