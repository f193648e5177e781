#!/bin/sh
# Builds the Python package as a wheel: python/wheel.sh [PROGRAM] writes target/wheels/paceline-*.whl.
#
# The extension module is built for hand-out (profile dist), beside the program of a package and with its
# crates for the host. With PROGRAM, the wheel installs it as the command `paceline`.
set -eu
cd "$(dirname "$0")/.."
. scripts/package/environment.sh
host=$(rustc -vV | sed -n 's/^host: //p')
export "CFLAGS_$(echo "$host" | tr - _)=$maps"
# maturin takes the files of a wheel that are not Python from this folder.
data=$PWD/paceline._paceline.data
rm -rf target/wheels/paceline-*.whl "$data"
trap 'rm -rf "$data"' EXIT
if [ -n "${1:-}" ]; then
    mkdir -p "$data/scripts"
    install -m 755 "$1" "$data/scripts/paceline"
fi
CARGO_TARGET_DIR="$target_dir" maturin build --profile dist --target "$host" --quiet --out target/wheels
ls -l target/wheels/paceline-*.whl
