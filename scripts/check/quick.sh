#!/bin/sh
# Format, clippy and unit tests of the crates that differ from the last commit, or from the revision given:
# scripts/check/quick.sh [REVISION]
set -eu
cd "$(dirname "$0")/../.."
PATH="$PWD/target/python/bin:$HOME/.cargo/bin:$PATH"
revision=${1:-HEAD}
crates=$({ git diff --name-only "$revision" -- crates; git ls-files --others --exclude-standard -- crates; } |
    sed -n 's#^crates/\([^/]*\)/.*#\1#p' | sort -u)
cargo fmt --all --check
if [ -z "$crates" ]; then
    echo "no crate differs from $revision"
    exit 0
fi
packages=$(for crate in $crates; do printf ' --package paceline-%s' "$crate"; done)
echo "crates that differ from $revision:" $crates
# shellcheck disable=SC2086
cargo clippy --locked $packages --all-targets -- -D warnings
# shellcheck disable=SC2086
exec scripts/unit.sh $packages --lib --bins
