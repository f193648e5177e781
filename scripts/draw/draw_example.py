#!/usr/bin/env python3
"""Draws docs/two-controls.svg, the picture of README.md's first example, from that example.

    scripts/draw/draw_example.py PROGRAM

Runs the scenario that README.md shows and takes two pictures out of its report, side by side.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PICTURES = ["Goodput of a station", "Mean round-trip time of a station"]
RUN = ["--seeds", "4"]
"""The options in README.md."""
# Derived: a picture of a report is 400 wide and at most 291 high; a heading above and 20 between.
WIDTH, HEIGHT, HEADING, BETWEEN = 400, 274, 24, 20


def main() -> int:
    if len(sys.argv) != 2:
        print(f"usage: {sys.argv[0]} PROGRAM", file=sys.stderr)
        return 2
    program = Path(sys.argv[1]).resolve()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "my.toml"
        scenario.write_text(readme.split("```toml\n")[1].split("```")[0], encoding="utf-8")
        results = Path(folder) / "two"
        subprocess.run([program, "run", scenario, *RUN, "--out", results], check=True, stdout=sys.stderr)
        subprocess.run([program, "report", results], check=True, stdout=subprocess.DEVNULL)
        page = (results / "report.html").read_text(encoding="utf-8")
    (ROOT / "docs" / "two-controls.svg").write_text(side_by_side(page), encoding="utf-8")
    return 0


def side_by_side(page: str) -> str:
    css = (ROOT / "crates" / "report" / "src" / "page" / "picture.css").read_text(encoding="utf-8")
    width, height = len(PICTURES) * (WIDTH + BETWEEN) - BETWEEN, HEIGHT + HEADING
    text = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">\n'
    text += f'<style>\n{css}</style>\n<rect class="ground" width="{width}" height="{height}"/>\n'
    for number, name in enumerate(PICTURES):
        left = number * (WIDTH + BETWEEN)
        text += f'<text class="ink" x="{left + 4}" y="16" font-size="14" font-weight="bold">{name}</text>\n'
        text += f'<g transform="translate({left} {HEADING})" font-size="13">{picture(page, name)}</g>\n'
    return text + "</svg>\n"


def picture(page: str, name: str) -> str:
    """A picture's elements without the values that the page shows below the pointer."""
    found = re.search(rf'<svg [^>]*aria-label="{re.escape(name)}"[^>]*>(.*?)</svg>', page, re.DOTALL)
    if found is None:
        raise SystemExit(f"the report has no picture {name!r}")
    return re.sub(r'<circle class="hit".*?</circle>', "", found[1], flags=re.DOTALL)


if __name__ == "__main__":
    sys.exit(main())
