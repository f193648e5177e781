#!/bin/bash
# Runs target/package/arm64/paceline in an emulator of its processor (qemu-user), and compares the results of
# scenarios with those of this machine's program, byte for byte.
set -euo pipefail
cd "$(dirname "$0")/../../.."
scripts/setup.sh arm64-test
here=$PWD/target/package/$(dpkg --print-architecture)/paceline
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
arm() { timeout 600 qemu-aarch64-static target/package/arm64/paceline "$@"; }

file -b target/package/arm64/paceline
arm --version
arm doctor | sed 's/^/  /'
for scenario in single-station private-5g; do
    options=("$scenario" --set "run.duration=2 s" --set "run.warmup=1 s")
    "$here" run "${options[@]}" --out "$work/here" >/dev/null
    arm run "${options[@]}" --out "$work/arm64" >/dev/null
    diff --recursive --ignore-matching-lines='^ *"commit": ' "$work/here" "$work/arm64"
    echo "- $scenario: the same $(find "$work/arm64" -type f | wc -l) files as on $(uname -m)"
    rm -rf "$work/here" "$work/arm64"
done
printf 'server = "eth8"\nmobile = "eth9"\n' >"$work/gateway.toml"
! arm gateway --check "$work/gateway.toml" 2>"$work/error.txt" || { echo "FAILED: no interface is missing"; exit 1; }
sed 's/^/- gateway --check: /' "$work/error.txt"
echo "arm64: all checks passed"
