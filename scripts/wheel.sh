#!/bin/sh
# Builds the Python package as a wheel, target/wheels/paceline-*.whl. The build of the extension module has
# the profile and the folder of the other release builds.
set -eu
cd "$(dirname "$0")/.."
target=$(scripts/target_dir.sh)
rm -f target/wheels/paceline-*.whl
PATH="$PWD/target/python/bin:$HOME/.cargo/bin:$PATH"
(cd python && CARGO_TARGET_DIR="$target" maturin build --release --quiet --out ../target/wheels)
ls -l target/wheels/paceline-*.whl
