#!/bin/sh
# Checks that crates/web compiles for a browser. Skipped with a message where Rust's target is not installed;
# with PACELINE_REQUIRE_LINT set, that is an error.
set -eu
cd "$(dirname "$0")/../.."
PATH="$HOME/.cargo/bin:$PATH"
target=wasm32-unknown-unknown
if [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    exec cargo check --locked --package paceline-web --target "$target"
elif [ -n "${PACELINE_REQUIRE_LINT:-}" ]; then
    echo "Rust's target $target is not installed; run scripts/setup.sh test" >&2
    exit 1
fi
echo "skipped: Rust's target $target is not installed; run scripts/setup.sh test" >&2
