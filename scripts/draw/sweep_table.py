#!/usr/bin/env python3
"""Makes a table of docs/figures of a sweep: rows for its points, columns for the values of one of its keys.

    scripts/draw/sweep_table.py FOLDER KEY COMMAND > docs/figures/NAME.csv

FOLDER is that of `paceline sweep`, KEY the key of the columns, COMMAND the sweep for the first line. Cells
have the goodput in Mb/s with its 95% confidence interval, and the change against the first column.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

# 100 Mb/s and more have no decimals. Chosen: three digits, as in the documents.
WHOLE = 100


def cell(mean: float, ci95: float, first: float | None) -> str:
    """The text of a point; `first` is the mean of the first column of the row."""
    decimals = 0 if mean >= WHOLE else 1
    change = "" if first is None else f" ({100 * (mean / first - 1):+.0f}%)"
    return f"{mean:.{decimals}f} ± {ci95:.{decimals}f}{change}"


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit(str(__doc__).strip().splitlines()[2].strip())
    folder, key, command = sys.argv[1:]
    sweep = json.loads((Path(folder) / "sweep.json").read_text(encoding="utf-8"))
    keys = [over["key"] for over in sweep["over"]]
    at = keys.index(key)
    columns: list[str] = sweep["over"][at]["values"]
    # Keys with one value are named in the command alone.
    others = [index for index, over in enumerate(sweep["over"]) if index != at and len(over["values"]) > 1]
    rows: dict[tuple[str, ...], dict[str, tuple[float, float]]] = {}
    for point in sweep["points"]:
        values: list[str] = point["values"]
        row = rows.setdefault(tuple(values[index] for index in others), {})
        row[values[at]] = point["mean"]["goodput_mbps"], point["ci95"]["goodput_mbps"]
    print(f"# {command}; scripts/draw/sweep_table.py {folder} {key}")
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow([f"`{name}`" for name in [*(keys[index] for index in others), *columns]])
    for names, found in rows.items():
        first = found[columns[0]][0]
        cells = [cell(*found[name], None if name == columns[0] else first) for name in columns]
        table.writerow([*names, *cells])


if __name__ == "__main__":
    main()
