#!/bin/sh
# Checks licences and sources of all dependencies by cargo-deny (deny.toml), which scripts/setup.sh test
# installs. Skipped with a message where it is missing; with PACELINE_REQUIRE_LINT set, that is an error.
set -eu
cd "$(dirname "$0")/../.."
PATH="$PWD/target/python/bin:$HOME/.cargo/bin:$PATH"
if cargo deny --version >/dev/null 2>&1; then
    exec cargo deny --log-level error --locked check --hide-inclusion-graph bans licenses sources
elif [ -n "${PACELINE_REQUIRE_LINT:-}" ]; then
    echo "cargo-deny is not installed; run scripts/setup.sh test" >&2
    exit 1
fi
echo "skipped: cargo-deny is not installed; run scripts/setup.sh test" >&2
