#!/bin/sh
# Writes the list of all crates in the program with versions, licences and checksums (CycloneDX 1.5):
# scripts/package/sbom.sh FILE. The same commit gives the same bytes.
set -eu
cd "$(dirname "$0")/../.."
PATH="$PWD/target/tools/bin:$HOME/.cargo/bin:$PATH"
out=$(realpath -m "${1:?usage: $0 FILE}")
scripts/package/tools.sh
# The tool writes a file beside the manifest of each crate of the workspace.
trap 'rm -f crates/*/sbom.json' EXIT
cargo cyclonedx --quiet --manifest-path crates/cli/Cargo.toml --format json --spec-version 1.5 \
    --target x86_64-unknown-linux-musl --features static --override-filename sbom
# The time becomes that of the commit; the random number and the folder of the build go.
python3 - crates/cli/sbom.json "$(git log -1 --format=%cI)" "$PWD" >"$out" <<'PYTHON'
import json
import sys
from pathlib import Path

file, time, folder = sys.argv[1:]
bom = json.loads(Path(file).read_text(encoding="utf-8").replace(f"file://{folder}", "file:///paceline"))
del bom["serialNumber"]
bom["metadata"]["timestamp"] = time
json.dump(bom, sys.stdout, indent=1)
print()
PYTHON
