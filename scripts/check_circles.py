#!/usr/bin/env python3
"""Lists circles of source files: files of one program that use each other's names, directly or through
others.

    scripts/check_circles.py            all crates; exit status 1 if there is a circle
    scripts/check_circles.py crates/pep one crate

An arrow goes from a file to the file that defines a name which it uses by a path (`use crate::a::Name`,
`super::b::f()`). Re-exports (`pub use`) are followed to the definition; they and `mod` declarations make no
arrow themselves, since a parent that lists its children does not depend on their contents.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
Module = tuple[str, ...]

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'b?"(?:[^"\\]|\\.)*"|r#*".*?"#*', re.DOTALL)
CHARACTER = re.compile(r"'(?:\\.[^']*|[^'\\])'")
USE = re.compile(r"(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
MODULE = re.compile(r"(?:#\[path\s*=\s*PATH\]\s*)?(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")


class Source:
    """One file of a crate: its module path, its paths to other modules, its re-exports."""

    def __init__(self, file: Path, module: Module) -> None:
        self.file = file
        self.module = module
        text = without_tests(strip(file.read_text(encoding="utf-8")))
        self.children = set(MODULE.findall(text))
        self.reexports: dict[str, Module] = {}
        self.globs: list[Module] = []
        self.uses: set[Module] = set()
        for public, tree in USE.findall(text):
            for path, name in leaves(tree):
                target = self.resolve(path)
                if target is None:
                    continue
                if public:
                    if name == "*":
                        self.globs.append(target[:-1])
                    else:
                        self.reexports[name] = target
                else:
                    self.uses.add(target)
        heads = "|".join(["crate", "self", "super", *sorted(self.children)])
        paths = re.compile(rf"(?<![\w:])(?:{heads})(?:::\w+)+")
        for path in paths.findall(USE.sub("", text)):
            target = self.resolve(tuple(path.split("::")))
            if target is not None:
                self.uses.add(target)

    def resolve(self, path: Module) -> Module | None:
        """The path from the crate's root; None for a path that leaves the crate."""
        here = self.module
        if path[0] == "crate":
            return path[1:]
        if path[0] == "self":
            return here + path[1:]
        if path[0] == "super":
            while path and path[0] == "super":
                here, path = here[:-1], path[1:]
            return here + path
        return here + path if path[0] in self.children else None


def strip(text: str) -> str:
    """The text without comments, strings and character literals."""
    return CHARACTER.sub("' '", STRING.sub('""', COMMENT.sub("", text)))


def without_tests(text: str) -> str:
    """The text up to the unit tests, which stand last in a file."""
    at = text.find("#[cfg(test)]\nmod ")
    return text if at < 0 else text[:at]


def leaves(tree: str, prefix: Module = ()) -> list[tuple[Module, str]]:
    """The paths of a `use` tree with the name under which each is known."""
    tree = tree.strip()
    if tree.endswith("}"):
        head, _, body = tree.partition("{")
        inner = prefix + tuple(part for part in head.strip().split("::") if part)
        parts, depth, start = [], 0, 0
        body = body[:-1] + ","
        for at, character in enumerate(body):
            depth += (character == "{") - (character == "}")
            if character == "," and depth == 0:
                parts.append(body[start:at])
                start = at + 1
        return [leaf for part in parts if part.strip() for leaf in leaves(part, inner)]
    path, _, alias = tree.partition(" as ")
    whole = prefix + tuple(part.strip() for part in path.split("::") if part.strip())
    if whole and whole[-1] == "self":
        whole = whole[:-1]
    return [(whole, alias.strip() or whole[-1])] if whole else []


def roots(crate: Path) -> list[Path]:
    """The folders of the crate's library or program, and of its examples and benches of several files."""
    mains = [*crate.glob("examples/*/main.rs"), *crate.glob("benches/*/main.rs")]
    return [crate / "src", *sorted(file.parent for file in mains)]


def sources(root: Path) -> dict[Module, Source]:
    """Every file below a root, by its module path."""
    found: dict[Module, Source] = {}
    for file in sorted(root.rglob("*.rs")):
        parts = file.relative_to(root).with_suffix("").parts
        if parts[-1].endswith("tests"):
            continue
        if parts[-1] in ("mod", "lib", "main"):
            parts = parts[:-1]
        found[parts] = Source(file, parts)
    return found


def definition(found: dict[Module, Source], path: Module) -> Module | None:
    """The module whose file defines the last name of a path."""
    module: Module = ()
    for at, name in enumerate(path):
        if module + (name,) in found:
            module = module + (name,)
            continue
        source = found.get(module)
        if source is None:
            return None
        if name in source.reexports and source.reexports[name] != path:
            return definition(found, source.reexports[name] + path[at + 1 :])
        return module
    return module


def arrows(found: dict[Module, Source]) -> dict[Module, set[Module]]:
    """For each file, the files whose names it uses."""
    result: dict[Module, set[Module]] = {}
    for module, source in found.items():
        targets = {definition(found, path) for path in source.uses}
        result[module] = {target for target in targets if target is not None and target != module}
    return result


def circles(graph: dict[Module, set[Module]]) -> list[list[Module]]:
    """Strongly connected components of more than one file (Tarjan's algorithm)."""
    index: dict[Module, int] = {}
    low: dict[Module, int] = {}
    stack: list[Module] = []
    result: list[list[Module]] = []

    def visit(node: Module) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph[node]):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                result.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return result


def main() -> int:
    crates = [Path(argument).resolve() for argument in sys.argv[1:]]
    crates = crates or sorted(path.parent for path in REPOSITORY.glob("crates/*/Cargo.toml"))
    count = 0
    for crate, root in [(one, root) for one in crates for root in roots(one)]:
        found = sources(root)
        graph = arrows(found)
        for circle in circles(graph):
            count += 1
            print(f"circle of {len(circle)} files in {crate.name}:")
            for module in circle:
                inside = [target for target in sorted(graph[module]) if target in circle]
                names = ", ".join(str(found[target].file.relative_to(crate)) for target in inside)
                print(f"  {found[module].file.relative_to(crate)} -> {names}")
    print(f"{count} circles of files", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
