#!/bin/sh
# Builds the wheel, installs it into target/python, and runs the package's tests and the examples in its
# documentation: scripts/test_python.sh [ARGUMENTS OF PYTEST]
set -eu
cd "$(dirname "$0")/.."
scripts/wheel.sh
python=$PWD/target/python/bin/python
"$python" -m pip install --quiet --force-reinstall --no-deps target/wheels/paceline-*.whl
PATH="$(dirname "$python"):$PATH"
# Both are of this commit if the release build is: the tests compare their figures and messages.
PACELINE_PROGRAM=${PACELINE_PROGRAM:-$(scripts/target_dir.sh)/release/paceline}
[ -x "$PACELINE_PROGRAM" ] || { echo "$PACELINE_PROGRAM: no such program; cargo build --release" >&2; exit 1; }
export PACELINE_PROGRAM
# The installed package is tested: the folder of the sources has no extension module.
pytest -c python/pyproject.toml --doctest-modules --pyargs paceline
exec pytest -c python/pyproject.toml "$@" python/tests
