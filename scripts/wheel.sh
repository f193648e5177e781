#!/bin/sh
# Builds the Python package as a wheel, target/wheels/paceline-*.whl. The extension module is
# built for hand-out (profile dist), in the folder of the other builds.
set -eu
cd "$(dirname "$0")/.."
target=$(scripts/target_dir.sh)
rm -f target/wheels/paceline-*.whl
PATH="$PWD/target/python/bin:$HOME/.cargo/bin:$PATH"
(cd python && CARGO_TARGET_DIR="$target" maturin build --profile dist --quiet --out ../target/wheels)
ls -l target/wheels/paceline-*.whl
