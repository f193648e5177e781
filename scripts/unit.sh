#!/bin/sh
# Runs the tests of the workspace: scripts/unit.sh [OPTIONS OF CARGO, FILTERS]. With cargo-nextest, which
# scripts/setup.sh test installs, tests in real time run beside those that compute (.config/nextest.toml);
# without it, cargo runs one program after another.
#
# A snapshot that differs fails; INSTA_UPDATE=always writes it anew.
set -eu
export INSTA_UPDATE="${INSTA_UPDATE:-no}"
cd "$(dirname "$0")/.."
PATH="$PWD/target/python/bin:$HOME/.cargo/bin:$PATH"
if cargo nextest --version >/dev/null 2>&1; then
    [ $# -eq 0 ] || exec cargo nextest run --locked "$@"
    # Examples in documentation comments, which cargo-nextest does not run.
    cargo test --quiet --locked --workspace --doc
    exec cargo nextest run --locked --workspace
fi
[ $# -gt 0 ] || set -- --workspace
echo "cargo-nextest is not installed (scripts/setup.sh test): one test program after another" >&2
exec cargo test --locked --no-fail-fast "$@"
