#!/usr/bin/env python3
"""Draws source files at random, each with a probability proportional to its number of lines, to be reread.

    scripts/draw/draw_files.py [--seed N] [--count 20]

Prints the paths of Rust, C, Python and shell files that git tracks, no path twice. The same seed and the same
files give the same draw; without --seed a new seed is made up. The seed goes to stderr.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PATTERNS = ["*.rs", "*.c", "*.h", "*.py", "*.sh"]
# Chosen: short enough to be typed again.
MAX_RANDOM_SEED = 999_999


def line_counts() -> dict[str, int]:
    """Number of lines of every source file, by its path in the repository, in alphabetical order."""
    command = ["git", "ls-files", "-z", "--", *PATTERNS]
    listed = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    paths = sorted(path for path in listed.split("\0") if path and (REPOSITORY / path).is_file())
    return {path: len((REPOSITORY / path).read_bytes().splitlines()) for path in paths}


def draw(lines: dict[str, int], count: int, seed: int) -> list[str]:
    """Up to `count` paths, without repetition."""
    generator = random.Random(seed)
    remaining = {path: number for path, number in lines.items() if number > 0}
    drawn: list[str] = []
    while remaining and len(drawn) < count:
        [path] = generator.choices(list(remaining), weights=list(remaining.values()))
        drawn.append(path)
        del remaining[path]
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, metavar="N")
    parser.add_argument("--count", type=int, default=20, metavar="N", help="number of files (20)")
    options = parser.parse_args()
    seed = random.SystemRandom().randint(0, MAX_RANDOM_SEED) if options.seed is None else options.seed
    print(f"seed {seed}", file=sys.stderr)
    for path in draw(line_counts(), options.count, seed):
        print(path)


if __name__ == "__main__":
    main()
