#!/bin/sh
# Prints the folder of cargo's builds as an absolute path: CARGO_TARGET_DIR, a configured one, or target.
set -eu
cd "$(dirname "$0")/../.."
PATH="$HOME/.cargo/bin:$PATH"
cargo metadata --format-version 1 --no-deps --locked --offline |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'
