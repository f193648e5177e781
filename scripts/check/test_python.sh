#!/bin/sh
# Runs the Python package's tests and the examples in its documentation, with the extension module and the
# program of the tests' build (`make unit`): scripts/check/test_python.sh [ARGUMENTS OF PYTEST]
# With --notebooks, the notebooks are run and their outputs written anew instead.
# With PACELINE_WHEEL=yes the installed wheel is tested, with the release program (`make wheel-test`).
set -eu
cd "$(dirname "$0")/../.."
builds=$(scripts/package/target_dir.sh)
python=$PWD/target/python/bin/python
PATH="$(dirname "$python"):$PATH"
if [ "${PACELINE_WHEEL:-}" = yes ]; then
    profile=release
    "$python" -m pip install --quiet --force-reinstall --no-deps target/wheels/paceline-*.whl
else
    profile=debug
    # The package as a wheel has it.
    package=$PWD/target/python-package
    rm -rf "$package"
    mkdir -p "$package"
    cp -R python/paceline "$package/"
    cp "$builds/$profile/deps/lib_paceline.so" "$package/paceline/_paceline.abi3.so"
    export PYTHONPATH="$package"
fi
# The tests compare figures and messages of both.
PACELINE_PROGRAM=${PACELINE_PROGRAM:-$builds/$profile/paceline}
[ -x "$PACELINE_PROGRAM" ] || { echo "$PACELINE_PROGRAM: no such program; make unit" >&2; exit 1; }
export PACELINE_PROGRAM
[ "${1:-}" != --notebooks ] || exec "$python" python/tests/test_notebooks.py
pytest -c pyproject.toml --doctest-modules --pyargs paceline
# Most of them wait for a program, a notebook or a cluster.
exec pytest -c pyproject.toml --numprocesses 4 "$@" python/tests
