#!/usr/bin/env python3
"""Writes the tables of measured figures, and of the tests that keep rules and hazards, into the documents.

    scripts/draw/draw_tables.py [--check]    write the documents; --check: say which are not up to date

- Between `<!-- table: figures/NAME.csv -->` and `<!-- end -->` stands the file docs/figures/NAME.csv. Its
  first line is a comment: the command that gives the figures. The second one has the headings.
- The table below `<!-- keeps: GROUP -->` has a row for each rule or hazard, with its name in the first cell.
  The last cell is written here: the files with tests that stand below `// keeps: GROUP.NAME`, by which text
  the tests are found (`grep -rn "keeps: accelerator.fin" crates`).
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
DOCS = REPOSITORY / "docs"
TABLE = re.compile(r"(?ms)^<!-- table: (figures/[\w-]+\.csv) -->\n.*?^<!-- end -->$")
KEEPS = re.compile(r"(?m)^<!-- keeps: ([\w-]+) -->\n\n((?:\|.*\n)+)")
# A comment with names, and the lines between it and the function.
KEPT = re.compile(r"(?m)^ *// keeps: (.*)\n(?=((?: *(?:#\[|//).*\n)*))")
RULE = re.compile(r"(?m)^ *fn rule_0?(\d+)_\w+")


def aligned(column: list[str]) -> str:
    """Numbers stand on the right."""
    cells = [cell for cell in column if cell]
    return "---:" if cells and all(re.match(r"[-+]?\d", cell) for cell in cells) else "---"


def line(cells: list[str]) -> str:
    """A row of a table in Markdown."""
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells) + "\n"


def drawn(path: Path) -> str:
    """The table of a CSV file in Markdown."""
    comment, *lines = path.read_text(encoding="utf-8").splitlines()
    if not comment.startswith("# "):
        raise ValueError(f"{path.relative_to(REPOSITORY)}:1: no comment with the command")
    head, *rows = list(csv.reader(lines))
    if any(len(row) != len(head) for row in rows):
        raise ValueError(f"{path.relative_to(REPOSITORY)}: a row has not as many cells as the headings")
    rule = "|".join(aligned([row[index] for row in rows]) for index in range(len(head)))
    return f"{line(head)}|{rule}|\n{''.join(map(line, rows))}"


def kept() -> tuple[dict[str, set[str]], list[str]]:
    """Files of the tests of each rule or hazard, and faults of the comments."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "crates/*.rs"],
        cwd=REPOSITORY, check=True, capture_output=True, text=True,
    )  # fmt: skip
    tests: defaultdict[str, set[str]] = defaultdict(set)
    misplaced = []
    for name in listed.stdout.split():
        path = REPOSITORY / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        file = path.parent.name if path.stem == "mod" else path.stem
        for found in KEPT.finditer(text):
            for row in found[1].split(", "):
                tests[row].add(file)
            if "#[test]" not in found[2]:
                misplaced.append(f"{name}: `// keeps: {found[1]}` does not stand above a test")
        for found in RULE.finditer(text):
            if f"// keeps: ack-filter.{found[1]}\n" not in text[: found.start()][-400:]:
                misplaced.append(f"{name}: {found[0].strip()} has no comment `// keeps: ack-filter.{found[1]}`")
    return dict(tests), misplaced


def written(document: str, tests: dict[str, set[str]], missing: list[str], seen: set[str]) -> str:
    """The document with its tables up to date."""

    def rows(found: re.Match[str]) -> str:
        head, rule, *lines = found[2].splitlines()
        result = [head, rule]
        for text in lines:
            cells = [cell.strip() for cell in text.strip("|").split("|")]
            row = f"{found[1]}.{cells[0]}"
            seen.add(row)
            if row not in tests:
                missing.append(f"no test has the comment `// keeps: {row}`")
            result.append(line([*cells[:-1], ", ".join(sorted(tests.get(row, set())))]).rstrip())
        return f"<!-- keeps: {found[1]} -->\n\n" + "\n".join(result) + "\n"

    def table(found: re.Match[str]) -> str:
        return f"<!-- table: {found[1]} -->\n\n{drawn(DOCS / found[1])}\n[Command]({found[1]})\n\n<!-- end -->"

    return KEEPS.sub(rows, TABLE.sub(table, document))


def faults(write: bool) -> Iterator[str]:
    """Writes the documents, or says which are not up to date; faults of the comments in both cases."""
    tests, found = kept()
    seen: set[str] = set()
    used: set[str] = set()
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        used |= set(re.findall(r"figures/[\w-]+\.csv", text))
        new = written(text, tests, found, seen)
        if new != text and write:
            path.write_text(new, encoding="utf-8")
        elif new != text:
            found.append(f"docs/{path.relative_to(DOCS)}: a table is not up to date: run scripts/draw/draw_tables.py")
    found += [f"{row} of a comment `// keeps:` is in no table" for row in sorted(set(tests) - seen)]
    for path in sorted((DOCS / "figures").glob("*.csv")):
        if f"figures/{path.name}" not in used:
            found.append(f"docs/figures/{path.name}: no document has it")
    yield from found


def main() -> int:
    lines = list(faults(write="--check" not in sys.argv[1:]))
    print(*lines, sep="\n", end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
