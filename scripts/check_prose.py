#!/usr/bin/env python3
"""Checks the prose of comments, docstrings and documents against CONTRIBUTING.md, "Words".

    scripts/check_prose.py [PATH ...]   files or folders; the whole repository if left out

One line per finding: file, line, rule, text. Exit status 1 if there is any. The rules:

- subject    a sentence begins with a word that names nothing ("What", "It", "Whoever", "That which")
- clause     a clause with "what" or "who" stands where a noun belongs ("of what a client has")
- metaphor   a mechanism is described by a figure of speech instead of the field's term
- width      a line of a comment or document has more than 110 columns
- constant   a constant of the program has no comment that says where its value comes from
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
WIDTH = 110

SUBJECT = re.compile(
    r"(?:^|(?<=[.:;!?] ))"
    r"(?:What|That which|Whoever|Whatever|Whichever|Who|It|This (?:is|was|has|does|makes|says|lets)|"
    r"That (?:is|was|has|does|makes)|Those (?:that|which|who)|One that|None that|Nobody|Everybody|Somebody)\b[^?]*$"
)
CLAUSE = re.compile(
    r"\b(?:of|for|from|than|by|to|with|at|behind|ahead of|past|beyond|after|before|in|on|into|is|are|was|"
    r"takes|gives|says|sends|holds|keeps|finds|counts|does|do|has|have|about|until|whether|only|all|,|see|say)"
    r" (?:what|who|whom|whoever|whatever|that which) (?!to\b)",
)
METAPHORS = (
    r"in vain|keeps? the books|runs? dry|ran dry|\bnews\b|is believed|are believed|believed to|asks? for patience|"
    r"\bpatience\b|promise[sd]?\b|speaks? for|speaks? of|\bsettle[sd]?\b|at rest\b|\bowed\b|\bowes?\b|"
    r"\bdoubted\b|\bmistrust|\bguess(?:es)?\b|tells? of|told of|a coin|\bgoes? hungry|\bstarv"
)
METAPHOR = re.compile(METAPHORS)
CONSTANT = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?const\s+([A-Z][A-Z0-9_]*)\s*:\s*([^=]+)=")
# Values that name a place or a choice and need no source: ports of a node, indices, flags, "none", lists of
# an enum.
NAMES = re.compile(r"(?:Port|Instant|Place|\(|\[Self|\[usize|.*\bu8 = (?:1|2|4|8|16|32);|.*\busize = [0-3];|.*\bu32 = u32::MAX)")
SOURCE = re.compile(
    r"TS \d|TR \d|RFC ?\d|§|ITU|IEEE|IANA|3GPP|Linux|kernel|mahimahi|srsRAN|ns-3|iperf|CAKE|POSIX|pcapng|virtio|"
    r"Table|clause|[Cc]hosen|[Mm]easured|paper|[Pp]ublished|et al|Liu|Ohta|Jakes|Linear|draft-|"
    r"[Dd]efinition|by definition|[Ff]ollows from|[Dd]erived|[Ee]quals|[Ss]ame as|[Ss]ize of|[Ll]ayout|[Mm]ust match|"
    r"Fowler|Knuth|PCG|Wireshark|libpcap|\bman \w+"
)


def files(arguments: list[str]) -> Iterator[Path]:
    """The checked files that git tracks below the arguments."""
    paths = arguments or ["."]
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *paths],
        cwd=REPOSITORY if not arguments else None,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    for name in listed:
        path = (REPOSITORY if not arguments else Path.cwd()) / name
        if path.suffix in (".rs", ".py", ".sh", ".c", ".h", ".md", ".toml") and path.exists():
            yield path


def comment(path: Path, line: str) -> str | None:
    """The prose of a line, None where there is none."""
    if path.suffix == ".md":
        return line.strip().lstrip("-*#>| ") or None
    marker = r"(?:///|//!|//|/?\*+)" if path.suffix in (".rs", ".c", ".h") else r"#"
    found = re.match(rf"\s*{marker}\s?(.*)$", line) or re.search(rf"\s{marker}\s(.*)$", line)
    if found is None or line.startswith("#!"):
        return None
    return found.group(1)


def docstring_lines(source: str) -> set[int]:
    """Numbers of the lines of a Python file that are in docstrings."""
    numbers: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(
            node
        ):
            numbers.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return numbers


def prose_lines(path: Path, lines: list[str]) -> list[str | None]:
    """The prose of every line, None where there is none."""
    prose = [comment(path, line) for line in lines]
    if path.suffix == ".py":
        for number in docstring_lines("\n".join(lines)):
            prose[number - 1] = lines[number - 1].strip().replace('"""', "")
    return prose


def paragraphs(lines: list[str | None]) -> Iterator[tuple[int, str]]:
    """Prose joined over its lines, with the number of the first line; code blocks are left out."""
    start, text, fenced = 0, "", False
    for number, prose in enumerate([*lines, None], 1):
        if prose is not None and prose.startswith("```"):
            fenced = not fenced
            prose = None
        new = prose is None or fenced or not prose.strip() or re.match(r"\s*(?:[-*] |\d+\. |\||#)", prose)
        if new and text:
            yield start, text
            text = ""
        if prose is not None and not fenced and prose.strip():
            if not text:
                start = number
            text = f"{text} {prose.strip()}" if text else prose.strip().lstrip("-* ")
    if text:
        yield start, text


def check(path: Path) -> Iterator[tuple[int, str, str]]:
    """The findings of one file: line, rule, text."""
    lines = path.read_text(encoding="utf-8").splitlines()
    prose = prose_lines(path, lines)
    for number, text in paragraphs(prose):
        plain = re.sub(r"`[^`]*`|\"[^\"]*\"", "X", text)
        for place, sentence in enumerate(re.split(r"(?<=[.;:!?]) ", plain)):
            if SUBJECT.search(sentence) and (place == 0 or not sentence.startswith("It ")):
                yield number, "subject", sentence
        for rule, pattern in (("clause", CLAUSE), ("metaphor", METAPHOR)):
            found = pattern.search(plain)
            if found:
                yield number, rule, plain[max(0, found.start() - 40) : found.end() + 40]
    for number, line in enumerate(lines, 1):
        wide = path.suffix == ".md" and not line.startswith(("|", "    ", "[")) and "](" not in line
        if len(line) > WIDTH and (wide or (path.suffix != ".md" and prose[number - 1] is not None)):
            yield number, "width", f"{len(line)} columns"
    if path.suffix == ".rs" and "/src/" in str(path) and not path.stem.endswith("tests"):
        yield from constants(lines)


def constants(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Constants outside unit tests whose comment names no source."""
    for number, line in enumerate(lines):
        if line.startswith("#[cfg(test)]") and number + 1 < len(lines) and lines[number + 1].startswith("mod "):
            return
        found = CONSTANT.match(line)
        if not found or found.group(1) == "_" or found.group(2).strip().startswith(("&", "[&")):
            continue
        if NAMES.match(line[found.start(2) :].strip()):
            continue
        above = number - 1
        text = ""
        while above >= 0 and re.match(r"\s*(?://|#\[|(?:pub(?:\([^)]*\))? )?const )", lines[above]):
            text += lines[above]
            above -= 1
        if not SOURCE.search(text + line):
            yield number + 1, "constant", found.group(1)


def main() -> int:
    count = 0
    for path in files(sys.argv[1:]):
        for number, rule, text in check(path):
            count += 1
            print(
                f"{path.relative_to(REPOSITORY) if path.is_relative_to(REPOSITORY) else path}:{number}: {rule}: {text}"
            )
    print(f"{count} findings", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
