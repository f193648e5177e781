#!/bin/sh
# Checks that the same scenario and seed give the same bytes: scripts/determinism.sh PROGRAM
# One run at a time and several; and the digests of scripts/digests.txt, which `make digests` writes with
# the optimised program, so that programs of other profiles, compilers and machines are compared with it.
set -eu
cd "$(dirname "$0")/.."
paceline=${1:?usage: $0 PROGRAM}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for scenario in uplink-limited single-station; do
    for scheme in hybrid-opt safe; do
        for jobs in 1 2; do
            "$paceline" run "$scenario" --set run.duration=6s --set run.warmup=1s \
                --set "ack_filter.scheme=$scheme" --seeds 4 --jobs "$jobs" --json >"$out/jobs-$jobs"
        done
        cmp "$out/jobs-1" "$out/jobs-2"
        echo "$scenario, $scheme: identical summary.json, serial and parallel"
    done
done
scripts/digest.sh "$paceline" >"$out/digests"
diff scripts/digests.txt "$out/digests" || {
    echo "other figures than in scripts/digests.txt. If the change is meant to change them: make digests" >&2
    exit 1
}
echo "$(wc -l <"$out/digests") digests are those of scripts/digests.txt"
