#!/bin/sh
# Runs targets of the Makefile one after another, and prints how long each took: scripts/check/parts.sh
# TARGET...
set -eu
cd "$(dirname "$0")/../.."
times=
finish() {
    status=$?
    printf '\n%-14s %s\n' part seconds
    printf '%s' "$times"
    exit $status
}
trap finish EXIT
for part; do
    begin=$(date +%s)
    status=0
    "${MAKE:-make}" --no-print-directory "$part" || status=$?
    times="$times$(printf '%-14s %5d' "$part" $(($(date +%s) - begin)))
"
    [ "$status" -eq 0 ] || exit "$status"
done
