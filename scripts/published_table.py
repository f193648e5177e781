#!/usr/bin/env python3
"""Prints the table of published values beside ours as Markdown, from the folder of `paceline reproduce`.

With --short: the columns of docs/validation.md, and the values that have ours alone.

usage: scripts/published_table.py [--short] FOLDER
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

HEAD = "| row | quantity | value | published | ours | unit | difference | difference, % | within the published spread | holds |"
RULE = "|---|---|---|---:|---:|---|---:|---:|---|---|"
SHORT_HEAD = "| row | quantity | value | published | ours | unit | holds |"
SHORT_RULE = "|---|---|---|---|---:|---|---|"


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


def short_line(row: dict[str, str], first: bool) -> str:
    """The same with fewer columns; the spread stands beside the published value."""
    low, high = (f"{float(row[key]):g}" if row[key] else "" for key in ("spread_low", "spread_high"))
    value = f"{float(row['published']):g}" if row["published"] else ""
    spread = f"{low} to {high}" if low else ""
    published = f"{value} ({spread})" if value and spread else value + spread
    holds = {"true": "yes", "false": "no"}.get(row["within_spread"], "-")
    names = [row["row"], row["quantity"]] if first else ["", ""]
    cells = [*names, row["value"], published, f"{float(row['ours']):.2f}", row["unit"], holds]
    return f"| {' | '.join(cells)} |"


def table(folder: Path, short: bool) -> list[str]:
    """The lines of the table of a folder's rows.csv."""
    with (folder / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows = [row for row in rows if row["ours"]] if short else rows
    lines = [SHORT_HEAD, SHORT_RULE] if short else [HEAD, RULE]
    before = ""
    for row in rows:
        lines.append((short_line if short else line)(row, row["row"] != before))
        before = row["row"]
    return lines


def main() -> None:
    short = sys.argv[1:2] == ["--short"]
    folders = sys.argv[2:] if short else sys.argv[1:]
    if len(folders) != 1:
        sys.exit(str(__doc__).strip().splitlines()[-1])
    print("\n".join(table(Path(folders[0]), short)))


if __name__ == "__main__":
    main()
