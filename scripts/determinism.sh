#!/bin/sh
# Checks that the same scenario and seed give the same bytes: debug and release builds, one run at a time and
# several.
set -eu
target=$("$(dirname "$0")/target_dir.sh")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for scenario in uplink-limited single-station; do
    for scheme in hybrid-opt safe; do
        run() {
            "$target/$1/paceline" run "$scenario" --set run.duration=6s --set run.warmup=1s \
                --set "ack_filter.scheme=$scheme" --seeds "$2" --jobs "$3" --json
        }
        run debug 1 1 >"$out/debug-1"
        run release 1 1 >"$out/release-1"
        cmp "$out/debug-1" "$out/release-1"
        run debug 4 2 >"$out/debug-4"
        run release 4 2 >"$out/release-4"
        run release 4 1 >"$out/serial-4"
        cmp "$out/debug-4" "$out/release-4"
        cmp "$out/serial-4" "$out/release-4"
        echo "$scenario, $scheme: identical summary.json in debug and release, serial and parallel"
    done
done
