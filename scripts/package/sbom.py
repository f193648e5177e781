#!/usr/bin/env python3
"""Lists the crates of a release with versions, licences, sources and checksums (CycloneDX 1.5).

    scripts/package/sbom.py FILE [PACKAGE:TARGET[:FEATURES] ...]

Without packages, those of the program on this machine. The same commit gives the same bytes.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def main() -> int:
    if len(sys.argv) < 2:
        print(f"usage: {sys.argv[0]} FILE [PACKAGE:TARGET[:FEATURES] ...]", file=sys.stderr)
        return 2
    file, *builds = sys.argv[1:]
    crates: set[tuple[str, str]] = set()
    for build in builds or [f"paceline-cli:{platform.machine()}-unknown-linux-musl:static"]:
        crates |= compiled(*build.split(":"))
    Path(file).write_text(json.dumps(bill(crates), indent=1) + "\n", encoding="utf-8")
    return 0


def compiled(package: str, target: str, features: str = "") -> set[tuple[str, str]]:
    """Name and version of each crate that cargo compiles for a package: into it, or to build it."""
    # A proc-macro or a crate that was listed before has a remark behind its version.
    lines = cargo("tree", "--locked", "-p", package, "--features", features, "--target", target,
                  "--edges", "normal,build", "--prefix", "none", "--format", "{p}").splitlines()
    pairs = (line.split()[:2] for line in lines if line)
    return {(name, version.removeprefix("v")) for name, version in pairs}


def bill(crates: set[tuple[str, str]]) -> dict[str, Any]:
    metadata = json.loads(cargo("metadata", "--locked", "--format-version", "1"))
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    checksums = {(crate["name"], crate["version"]): crate.get("checksum") for crate in lock["package"]}
    packages = {(crate["name"], crate["version"]): crate for crate in metadata["packages"]}
    version = packages[("paceline-cli", workspace_version())]["version"]
    time = datetime.fromtimestamp(int(git("log", "-1", "--format=%ct")), UTC)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": "paceline",
                "name": "paceline",
                "version": version,
                "licenses": [{"expression": "Apache-2.0"}],
                "properties": [{"name": "git:commit", "value": git("rev-parse", "HEAD")}],
            },
        },
        "components": [component(packages[crate], checksums[crate]) for crate in sorted(crates)],
    }


def component(package: dict[str, Any], checksum: str | None) -> dict[str, Any]:
    purl = f"pkg:cargo/{package['name']}@{package['version']}"
    entry: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": package["name"],
        "version": package["version"],
        # The slash of old manifests means "or".
        "licenses": [{"expression": package["license"].replace("/", " OR ")}] if package["license"] else [],
    }
    if checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        entry["purl"] = purl
    source = package["source"]
    if source == REGISTRY:
        url = f"https://static.crates.io/crates/{package['name']}/{package['version']}/download"
        entry["externalReferences"] = [{"type": "distribution", "url": url}]
    elif source:
        entry["externalReferences"] = [{"type": "vcs", "url": source.removeprefix("git+")}]
    return entry


def workspace_version() -> str:
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    return str(manifest["workspace"]["package"]["version"])


def cargo(*arguments: str) -> str:
    return run("cargo", *arguments)


def git(*arguments: str) -> str:
    return run("git", *arguments).strip()


def run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
