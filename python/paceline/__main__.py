"""``python3 -m paceline sweep``: the path of ``paceline sweep --dask``, with the command line's options."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import paceline

_COLUMNS = {
    "goodput_mbps": ("goodput Mb/s", 2),
    "upload_mbps": ("upload Mb/s", 2),
    "rtt_mean_ms": ("RTT ms", 1),
    "jain_index": ("Jain", 4),
}
"""Totals of the table on stdout with their headings and decimals. Chosen: those that most sweeps compare."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; gives its exit code."""
    options = _parser().parse_args(arguments)
    try:
        from paceline.sweeps import grid
        from paceline.sweeps.run import run
    except ImportError as error:
        print(f"paceline: {error}; pip install 'paceline[sweep]'", file=sys.stderr)
        return 1
    try:
        scenario = paceline.Scenario._of(paceline.Scenario.load(options.scenario)._scenario.edit(options.set))
        swept = run(
            scenario,
            grid.axes_of_options(options.over),
            range(scenario.seed, scenario.seed + options.seeds),
            options.out,
            on=options.dask or "local",
            jobs=options.jobs,
            tables=("runs", "groups", "stations", "flows"),
            progress=None,
        )
    except (ValueError, OSError, ImportError) as error:
        print(f"paceline: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    except KeyboardInterrupt:
        kept = f"the finished points are kept in {options.out}"
        print(f"\npaceline: interrupted; {kept}. The same command goes on from there", file=sys.stderr)
        return 1
    rows: list[dict[str, Any]] = swept.summary.to_arrow().to_pylist()
    keys = list(swept.points[0].values)
    print(json.dumps(rows, indent=2) if options.json else _text(scenario.name, keys, options.seeds, rows))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m paceline", description=__doc__)
    commands = parser.add_subparsers(required=True)
    sweep = commands.add_parser("sweep", help="simulate a grid of scenarios, several seeds each, into Parquet")
    sweep.add_argument("scenario", help="scenario file, or the name of a built-in one")
    sweep.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="set one value of the scenario")
    sweep.add_argument("--over", action="append", required=True, metavar="KEY=A,B,C", help="a key and its values")
    sweep.add_argument("--seeds", type=int, default=1, help="runs per combination; seeds count up from run.seed")
    sweep.add_argument("--jobs", type=int, help="runs at the same time on this machine; all cores if left out")
    sweep.add_argument("--out", type=Path, required=True, help="folder; an interrupted sweep continues there")
    sweep.add_argument("--dask", metavar="ADDRESS", help="scheduler of Dask, for example tcp://HOST:8786")
    sweep.add_argument("--json", action="store_true", help="print the means of every point as JSON")
    return parser


def _text(name: str, keys: list[str], seeds: int, rows: list[dict[str, Any]]) -> str:
    """A table: a line for each point, a column for each key and total."""
    lines = [[*keys, *(heading for heading, _ in _COLUMNS.values())]]
    for row in rows:
        cells = [str(row[key]) for key in keys]
        for total, (_, decimals) in _COLUMNS.items():
            half = row[f"{total}_ci95"]
            cells.append(f"{row[total]:.{decimals}f}" + (f" ± {half:.{decimals}f}" if half is not None else ""))
        lines.append(cells)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]

    def aligned(line: list[str]) -> str:
        pairs = list(zip(line, widths, strict=True))
        left = [cell.ljust(width) for cell, width in pairs[: len(keys)]]
        return "  ".join(left + [cell.rjust(width) for cell, width in pairs[len(keys) :]]).rstrip()

    runs = "1 run each" if seeds == 1 else f"{seeds} runs each, mean ± 95% confidence interval"
    return "\n".join([f"{name}, simulated: {len(rows)} points, {runs}", *map(aligned, lines)])


if __name__ == "__main__":
    sys.exit(main())
