#!/bin/sh
# Checks the Python scripts: ruff (errors, unused names, imports) and mypy --strict (types).
#
# scripts/setup.sh test installs both into target/python; otherwise the tools on the PATH are used. The check
# of a missing tool is skipped with a message; with PACELINE_REQUIRE_LINT set, a missing tool is an error.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/target/python/bin:$PATH"

check() {
    if command -v "$1" >/dev/null 2>&1; then
        "$@"
    elif [ -n "${PACELINE_REQUIRE_LINT:-}" ]; then
        echo "$1 is not installed; run scripts/setup.sh test" >&2
        exit 1
    else
        echo "skipped: $1 is not installed; run scripts/setup.sh test" >&2
    fi
}

check ruff check --quiet scripts crates
check mypy --strict --no-error-summary scripts crates/cli/tests
