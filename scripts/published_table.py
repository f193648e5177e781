#!/usr/bin/env python3
"""Prints the table of published values beside ours as Markdown, from the folder of `paceline reproduce`.

usage: scripts/published_table.py FOLDER
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

HEAD = "| row | quantity | value | published | ours | unit | difference | difference, % | within the published spread | holds |"
RULE = "|---|---|---|---:|---:|---|---:|---:|---|---|"


def number(text: str, unit: str, sign: str = "") -> str:
    """A number with the decimals of its unit, as the table on stdout has them; empty without a number."""
    if not text:
        return ""
    value = float(text)
    decimals = {"": 4, "Mb/s": 2, "dB": 2}.get(unit, 2 if abs(value) < 0.995 else 1)
    # Adding zero turns a negative zero into a positive one.
    return f"{round(value, decimals) + 0.0:{sign}.{decimals}f}"


def line(row: dict[str, str], first: bool) -> str:
    """The line of a value; the cells of its row stand in the row's first line."""
    low, high = (f"{float(row[key]):g}" if row[key] else "" for key in ("spread_low", "spread_high"))
    spread = f"{low} to {high}" if low else ""
    published = f"{float(row['published']):g}" if row["published"] else spread or "-"
    ours = number(row["ours"], row["unit"]) + (f" ± {number(row['ci95'], row['unit'])}" if row["ci95"] else "")
    within = {"true": f"yes: {spread}", "false": f"no: {spread}"}.get(row["within_spread"], "no spread given")
    if not row["published"] and not spread:
        within = "-"
    holds = {("true", "true"): "yes", ("true", "false"): "yes, uncertain", ("false", "false"): "no"}
    cells = [
        row["row"] if first else "",
        row["quantity"] if first else "",
        row["value"],
        published,
        ours,
        row["unit"],
        number(row["difference"], row["unit"], "+"),
        number(row["difference_percent"], "%", "+"),
        within,
        holds.get((row["holds"], row["holds_in_ci95"]), "-") if first else "",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(str(__doc__).strip().splitlines()[-1])
    with (Path(sys.argv[1]) / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    print(HEAD)
    print(RULE)
    before = ""
    for row in rows:
        print(line(row, row["row"] != before))
        before = row["row"]


if __name__ == "__main__":
    main()
