#!/bin/sh
# Checks Python: ruff (errors, unused names, imports), mypy --strict and pyright (types).
#
# scripts/setup.sh test installs both into target/python; otherwise the tools on the PATH are used. The check
# of a missing tool is skipped with a message; with PACELINE_REQUIRE_LINT set, a missing tool is an error.
set -eu
cd "$(dirname "$0")/../.."
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

check ruff check --quiet scripts crates python web
# The package in the source tree, not an installed one.
export MYPYPATH="$PWD/python:$PWD/python/tests"
check mypy --strict --no-error-summary scripts crates/cli/tests web/test
check mypy --strict --no-error-summary python/paceline python/tests
(cd python && check pyright --level error --pythonpath "$(command -v python3)" paceline >/dev/null) ||
    (cd python && check pyright --level error --pythonpath "$(command -v python3)" paceline)
