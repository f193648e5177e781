#!/usr/bin/env python3
"""Checks that the documents agree with the repository. One line per fault; exit status 1 if there is any.

- Every link to a file, every path in backticks that begins with a folder of the repository, and every such
  path in a source file exists.
- ARCHITECTURE.md has at most two printed pages.
- Every decision has its four sections and stands in the index; numbers have no gap.
- Every document stands in docs/SUMMARY.md, the site's contents.
- A release in CHANGELOG.md has at most a dozen entries; CITATION.cff names the version of Cargo.toml.
- Every word of docs/glossary.md stands in the code or the documents beside it, and has a meaning.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
# Two pages of A4 with 55 lines each (chosen: a usual page of plain text in 10-point type).
ARCHITECTURE_LINES = 110
RELEASE_ENTRIES = 12
SECTIONS = ["Context", "Decision", "Alternatives", "Consequence"]
FOLDERS = ("crates/", "docs/", "scripts/", "scenarios/", "fuzz/", "packaging/", "python/")


def documents() -> list[Path]:
    """The Markdown files that git tracks or could track; templates in the crates are no documents."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md", ":!crates"],
        cwd=REPOSITORY, check=True, capture_output=True, text=True,
    )
    return [REPOSITORY / name for name in listed.stdout.split()]


def links(path: Path) -> Iterator[str]:
    """Links and paths of one document that lead nowhere."""
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not re.match(r"[a-z]+:", target) and not (path.parent / target).exists():
            yield f"{path.relative_to(REPOSITORY)}: no file {target}"
    for quoted in re.findall(r"`([^`\n]+)`", text):
        name = quoted.split("::")[0].split(":")[0]
        placeholder = re.search(r"/[A-Z]{4,}(?!\w*\.md)", name)
        if name.startswith(FOLDERS) and re.fullmatch(r"[\w./-]+", name) and not placeholder and not (REPOSITORY / name).exists():
            yield f"{path.relative_to(REPOSITORY)}: no file {name}"


def comments() -> Iterator[str]:
    """Paths of the repository in source files that do not exist."""
    listed = subprocess.run(
        ["git", "ls-files", "*.rs", "*.c", "*.h", "*.py", "*.sh", "*.toml", "Makefile"],
        cwd=REPOSITORY, check=True, capture_output=True, text=True,
    )  # fmt: skip
    path = re.compile(r"\b(?:crates|docs|scripts|scenarios)/[a-z0-9_/-]+\.(?:rs|c|h|md|py|sh|toml)\b")
    for name in listed.stdout.split():
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        for target in path.findall(text):
            if not (REPOSITORY / target).exists() and not (REPOSITORY / name).parent.joinpath(target).exists():
                yield f"{name}: no file {target}"


def decisions() -> Iterator[str]:
    """Faults of docs/decisions."""
    folder = REPOSITORY / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    pages = sorted(folder.glob("[0-9]*.md"))
    for number, page in enumerate(pages, 1):
        text = page.read_text(encoding="utf-8")
        if not page.name.startswith(f"{number:04d}-") or not text.startswith(f"# {number}. "):
            yield f"docs/decisions/{page.name}: number {number} is expected in name and title"
        if re.findall(r"(?m)^## (.*)$", text) != SECTIONS:
            yield f"docs/decisions/{page.name}: sections are not {', '.join(SECTIONS)}"
        if f"({page.name})" not in index:
            yield f"docs/decisions/{page.name}: missing in README.md"


def contents() -> Iterator[str]:
    """Documents that the site does not have."""
    folder = REPOSITORY / "docs"
    summary = (folder / "SUMMARY.md").read_text(encoding="utf-8")
    for path in sorted(folder.rglob("*.md")):
        name = str(path.relative_to(folder))
        if name != "SUMMARY.md" and f"({name})" not in summary:
            yield f"docs/SUMMARY.md: {name} is missing"


def versions() -> Iterator[str]:
    """Faults of ARCHITECTURE.md, CHANGELOG.md and CITATION.cff."""
    lines = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8").count("\n")
    if lines > ARCHITECTURE_LINES:
        yield f"ARCHITECTURE.md: {lines} lines, at most {ARCHITECTURE_LINES}"
    changes = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    for release in re.split(r"(?m)^## ", changes)[1:]:
        entries = len(re.findall(r"(?m)^- ", release))
        if entries > RELEASE_ENTRIES:
            yield f"CHANGELOG.md: {release.splitlines()[0]} has {entries} entries, at most {RELEASE_ENTRIES}"
    cargo = (REPOSITORY / "Cargo.toml").read_text(encoding="utf-8")
    version = re.findall(r'(?m)^version = "([^"]+)"', cargo)[0]
    if f"\nversion: {version}\n" not in (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"):
        yield f"CITATION.cff: version is not {version}"


def glossary() -> Iterator[str]:
    """Words of the glossary that stand nowhere else."""
    path = REPOSITORY / "docs" / "glossary.md"
    rows = [line.strip("|").split("|") for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [[cell.strip() for cell in row] for row in rows if len(row) >= 2][2:]
    listed = subprocess.run(
        ["git", "ls-files", "*.rs", "*.c", "*.h", "*.py", "*.toml"],
        cwd=REPOSITORY, check=True, capture_output=True, text=True,
    ).stdout.split()
    code = " ".join((REPOSITORY / name).read_text(encoding="utf-8") for name in listed)
    plain = re.sub(r"[\s_/-]+", "", re.sub(r"\n\s*(?://[/!]?|#|\*)", " ", code)).lower()
    seen: set[str] = set()
    for row in rows:
        if not row[1]:
            yield f"docs/glossary.md: {row[0]} has no meaning"
        for word in row[0].split(", "):
            if word in seen:
                yield f"docs/glossary.md: {word} stands twice"
            seen.add(word)
            if re.sub(r"[\s_/`-]+", "", word).lower() not in plain:
                yield f"docs/glossary.md: {word} does not stand in the code"


def main() -> int:
    faults = [fault for path in documents() for fault in links(path)]
    faults += [*comments(), *decisions(), *contents(), *versions(), *glossary()]
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults in {len(documents())} documents", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
