#!/usr/bin/env python3
"""Checks what `make release` wrote, without building anything: names, checksums, and what is in each file.

    scripts/package/test/release.py [dist]

At last the wheel is installed into a fresh virtual environment, and program and package are used there.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent.parent
FILES = {
    "wheel": r"paceline-{version}-cp311-abi3-manylinux_2_\d+_(x86_64|aarch64)\.whl",
    "package": r"paceline_{version}-\d+_(amd64|arm64)\.deb",
    "archive": r"paceline-{version}-linux-(amd64|arm64)\.tar\.gz",
    "site": r"paceline-{version}-site\.tar\.gz",
    "bill of materials": r"paceline-{version}\.cdx\.json",
    "container": r"Containerfile",
    "checksums": r"SHA256SUMS",
}
"""Every file of the folder, and no other."""


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    try:
        files = names(folder)
        checksums(folder, files["checksums"])
        wheel(files["wheel"])
        package(files["package"])
        archive(files["archive"], ["bin/paceline", "systemd/paceline-gateway@.service", "share/man/paceline.1"])
        archive(files["site"], ["index.html", "try/index.html", "try/wasm/paceline_web_bg.wasm"])
        bill_of_materials(files["bill of materials"])
        installed(files["wheel"])
    except (Wrong, OSError) as error:
        print(f"{sys.argv[0]}: {error}", file=sys.stderr)
        return 1
    print(f"{folder}: {len(FILES)} files, checksums, contents and the installed wheel are as they should be")
    return 0


class Wrong(Exception):
    """A file that is not as it should be."""


def require(condition: bool, message: str) -> None:
    if not condition:
        raise Wrong(message)


def names(folder: Path) -> dict[str, Path]:
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    version = re.escape(str(manifest["workspace"]["package"]["version"]))
    left = {path.name: path for path in folder.iterdir()}
    found = {}
    for what, pattern in FILES.items():
        expected = pattern.format(version=version)
        matches = [name for name in left if re.fullmatch(expected, name)]
        require(len(matches) == 1, f"{folder}: {what}: {len(matches)} files match {expected}, allowed is one")
        found[what] = left.pop(matches[0])
    require(not left, f"{folder}: files that do not belong there: {', '.join(sorted(left))}")
    return found


def checksums(folder: Path, sums: Path) -> None:
    listed = dict(line.split("  ", 1)[::-1] for line in sums.read_text(encoding="utf-8").splitlines())
    there = {path.name for path in folder.iterdir()} - {sums.name}
    require(set(listed) == there, f"{sums}: lists {sorted(listed)}, the folder has {sorted(there)}")
    for name, expected in listed.items():
        with (folder / name).open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        require(actual == expected, f"{folder / name}: SHA-256 {actual}, {sums.name} has {expected}")


def wheel(path: Path) -> None:
    with zipfile.ZipFile(path) as file:
        members = set(file.namelist())
        version = path.name.split("-")[1]
        for member in ["paceline/__init__.py", "paceline/py.typed", "paceline/_paceline.abi3.so",
                       f"paceline-{version}.data/scripts/paceline"]:
            require(member in members, f"{path}: without {member}")


def package(path: Path) -> None:
    # An archive of ar(5), whose first member is the version of the format (deb(5)).
    require(path.read_bytes()[:21] == b"!<arch>\ndebian-binary", f"{path}: no Debian package")


def archive(path: Path, wanted: list[str]) -> None:
    folder = path.name.removesuffix(".tar.gz")
    with tarfile.open(path) as file:
        members = set(file.getnames())
    for member in wanted:
        require(f"{folder}/{member}" in members, f"{path}: without {folder}/{member}")


def bill_of_materials(path: Path) -> None:
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    locked = {(crate["name"], crate["version"]): crate.get("checksum") for crate in lock["package"]}
    components = json.loads(path.read_text(encoding="utf-8"))["components"]
    listed = {component["name"] for component in components}
    for name in ["paceline-cli", "paceline-py", "paceline-web", "libbpf-sys", "pyo3", "wasm-bindgen"]:
        require(name in listed, f"{path}: without {name}")
    for component in components:
        name = f"{component['name']} {component['version']}"
        key = (component["name"], component["version"])
        require(key in locked, f"{path}: {name} is not in Cargo.lock")
        hashes = [entry["content"] for entry in component.get("hashes", [])]
        require(hashes == [checksum for checksum in [locked[key]] if checksum], f"{path}: {name}: checksum")
        require(bool(component["licenses"]), f"{path}: {name}: no licence")


def installed(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / "bin"
        run(programs / "python", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(path.resolve()))
        simulated = ["--set", "run.duration=200 ms", "--set", "run.warmup=100 ms", "--json"]
        text = run(programs / "paceline", "run", "single-station", *simulated)
        code = ("import paceline; print(paceline.run(paceline.Scenario.load('single-station').edit("
                "{'run.duration': '200 ms', 'run.warmup': '100 ms'}), [1]).summary_json())")
        ours = run(programs / "python", "-c", code)
        require(json.loads(text) == json.loads(ours), f"{path}: program and package differ in their results")


def run(program: Path, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], check=False, capture_output=True, text=True)
    require(done.returncode == 0, f"{program.name} {' '.join(arguments)}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
