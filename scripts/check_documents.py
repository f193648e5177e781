#!/usr/bin/env python3
"""Checks that the documents agree with the repository. One line per fault; exit status 1 if there is any.

- Every link to a heading names one, as GitHub and the site spell it; documents of the site link to nothing
  beside it.
- Every link to a file, every path in backticks that begins with a folder of the repository, and every such
  path in a source file exists.
- ARCHITECTURE.md has at most two printed pages.
- Every decision has its four sections and stands in the site's contents; its file's name and
  its title have the same number, which no other decision has. Numbers ascend, and may have gaps.
- Every document stands in docs/SUMMARY.md, the site's contents, once. Its form and book.toml are such that
  mdBook builds the site: mdBook itself compiles for minutes, and so does not run in `make test`.
- A release in CHANGELOG.md has at most a dozen entries; CITATION.cff names the version of Cargo.toml.
- Every word of docs/glossary.md stands in the code or the documents beside it, and has a meaning.
- Tables of measured figures are those of docs/figures, and tables of tests those of the comments at the tests
  (scripts/draw/draw_tables.py).
- Eight questions of a new user are found by the headings of the documents.
- The table of measured networks in docs/validation.md is that of docs/figures/measured, the folder of
  `paceline reproduce measured`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "scripts/draw"))
import draw_tables
from published_table import table as published_lines

# Two pages of A4 with 55 lines each (a usual page of plain text in 10-point type).
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


def headings(path: Path) -> set[str]:
    """The anchors of a document's headings: letters, digits, `-` and `_`, a hyphen for a space."""
    text = re.sub(r"(?ms)^```.*?^```", "", path.read_text(encoding="utf-8"))
    anchors: set[str] = set()
    for title in re.findall(r"(?m)^#+ (.*)$", text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        same = sum(1 for other in anchors if re.fullmatch(re.escape(anchor) + r"(-\d+)?", other))
        anchors.add(f"{anchor}-{same}" if same else anchor)
    return anchors


def anchors(path: Path) -> Iterator[str]:
    """Links of one document to headings that do not exist, and links from the site to files beside it."""
    name = path.relative_to(REPOSITORY)
    site = REPOSITORY / "docs"
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        file = (path.parent / target).resolve() if target else path
        if path.is_relative_to(site) and not file.is_relative_to(site):
            yield f"{name}: {target} is not on the site"
        if anchor and file.suffix == ".md" and file.exists() and anchor not in headings(file):
            yield f"{name}: {target}#{anchor} is no heading"


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
    entries = (REPOSITORY / "docs" / "SUMMARY.md").read_text(encoding="utf-8")
    previous = ""
    for page in sorted(folder.glob("[0-9]*.md")):
        text = page.read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        number = page.name[:4]
        if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", page.name) or not title.startswith(f"{int(number)}. "):
            yield f"docs/decisions/{page.name}: name and title do not begin with the same number"
        if number == previous:
            yield f"docs/decisions/{page.name}: another decision has its number"
        previous = number
        if re.findall(r"(?m)^## (.*)$", text) != SECTIONS:
            yield f"docs/decisions/{page.name}: sections are not {', '.join(SECTIONS)}"
        if f"[{title}](decisions/{page.name})" not in entries:
            yield f"docs/decisions/{page.name}: missing in docs/SUMMARY.md, or with another title"
    numbers = re.findall(r"\(decisions/(\d{4})-[^)]*\)", entries)
    if numbers != sorted(set(numbers)):
        yield "docs/SUMMARY.md: numbers of decisions do not ascend"


def contents() -> Iterator[str]:
    """Documents that the site does not have."""
    folder = REPOSITORY / "docs"
    summary = (folder / "SUMMARY.md").read_text(encoding="utf-8")
    for path in sorted(folder.rglob("*.md")):
        name = str(path.relative_to(folder))
        if name != "SUMMARY.md" and f"({name})" not in summary:
            yield f"docs/SUMMARY.md: {name} is missing"


# A part, a page before the first part, or an item of a list; anything else is no line of a book's contents.
PART, PAGE, ITEM = r"# \S.*", r"\[[^\]]+\]\([\w./-]+\.md\)", r"((?:  )*)- \[[^\]]+\]\([\w./-]+\.md\)"


def book() -> Iterator[str]:
    """Lines of docs/SUMMARY.md and keys of book.toml with which mdBook builds no site."""
    lines = (REPOSITORY / "docs" / "SUMMARY.md").read_text(encoding="utf-8").splitlines()
    seen: set[str] = set()
    depth = 0
    for number, line in enumerate(lines, 1):
        item = re.fullmatch(ITEM, line)
        if line and not item and not re.fullmatch(PART, line) and not (depth == 0 and re.fullmatch(PAGE, line)):
            yield f"docs/SUMMARY.md:{number}: neither a part, `- [title](file)`, nor a page before the parts"
        if item and len(item[1]) // 2 > depth:
            yield f"docs/SUMMARY.md:{number}: two levels deeper than the line before"
        # Levels that the next line may have.
        depth = len(item[1]) // 2 + 1 if item else depth if not line else 0
        for name in re.findall(r"\]\(([^)]*)\)", line):
            if name in seen:
                yield f"docs/SUMMARY.md:{number}: {name} stands twice"
            seen.add(name)
    # The keys that are used; mdBook ends with an error at a key that it does not know.
    known = {"book": {"title", "description", "language", "src"}, "build": {"build-dir", "create-missing"},
             "output": {"html"}}  # fmt: skip
    settings = tomllib.loads((REPOSITORY / "book.toml").read_text(encoding="utf-8"))
    html = settings.get("output", {}).get("html", {})
    tables = {**settings, "output.html": html, "output.html.search": html.get("search", {})}
    known["output.html"] = {"default-theme", "no-section-label", "git-repository-url", "redirect", "search"}
    known["output.html.search"] = {"limit-results"}
    for table, keys in tables.items():
        for key in keys if table in known else [""]:
            if key not in known.get(table, set()):
                yield f"book.toml: {table}.{key} is new: run `make site`, and then add it to scripts/check_documents.py"


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


# A question of a new user, and the words of a heading that answers it.
QUESTIONS = {
    "the round-trip time of a path": r"round-trip time of a path",
    "a TCP of its own for each group": r"TCP.* each group",
    "the use of a capture": r"pcap",
    "an own trace": r"own traces?",
    "uplink transfers": r"upload|uplink transfers",
    "a handover": r"handover",
    "the place of the gateway": r"where the gateway goes",
    "taking the gateway out again": r"roll(?:ing)? back",
}


def questions() -> Iterator[str]:
    """Questions of a new user that no heading answers."""
    titles = [
        title
        for path in sorted((REPOSITORY / "docs").glob("*.md"))
        for title in re.findall(r"(?m)^#+ (.*)$", path.read_text(encoding="utf-8"))
    ]
    for question, words in QUESTIONS.items():
        if not any(re.search(words, title, re.IGNORECASE) for title in titles):
            yield f"docs: no heading answers the question for {question}"


def measured() -> Iterator[str]:
    """The table of measured networks, unless it is that of its file."""
    page = (REPOSITORY / "docs/validation.md").read_text(encoding="utf-8")
    if "\n".join(published_lines(REPOSITORY / "docs/figures/measured")) not in page:
        yield "docs/validation.md: its table is not that of scripts/draw/published_table.py docs/figures/measured"


def main() -> int:
    faults = [fault for path in documents() for fault in (*links(path), *anchors(path))]
    faults += [*comments(), *decisions(), *contents(), *book(), *versions(), *glossary(), *questions(), *measured()]
    faults += draw_tables.faults(write=False)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults in {len(documents())} documents", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
