#!/usr/bin/env python3
"""Prints the table of docs/validation.md from the folder of `paceline reproduce measured`.

usage: scripts/draw/published_table.py FOLDER
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

HEAD = "| row | quantity | value | published | ours | unit | holds |"
RULE = "|---|---|---|---|---:|---|---|"


def line(row: dict[str, str], first: bool) -> str:
    """The line of a value; the cells of its row stand in the row's first line."""
    low, high = (f"{float(row[key]):g}" if row[key] else "" for key in ("spread_low", "spread_high"))
    value = f"{float(row['published']):g}" if row["published"] else ""
    spread = f"{low} to {high}" if low else ""
    published = f"{value} ({spread})" if value and spread else value + spread
    holds = {"true": "yes", "false": "no"}.get(row["within_spread"], "-")
    names = [row["row"], row["quantity"]] if first else ["", ""]
    cells = [*names, row["value"], published, f"{float(row['ours']):.2f}", row["unit"], holds]
    return f"| {' | '.join(cells)} |"


def table(folder: Path) -> list[str]:
    """The lines of the table of a folder's rows.csv, with the values that have ours."""
    with (folder / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["ours"]]
    lines = [HEAD, RULE]
    before = ""
    for row in rows:
        lines.append(line(row, row["row"] != before))
        before = row["row"]
    return lines


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(str(__doc__).strip().splitlines()[-1])
    print("\n".join(table(Path(sys.argv[1]))))


if __name__ == "__main__":
    main()
