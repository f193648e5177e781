#!/bin/sh
# Fuzzes one target with the stable toolchain: fuzz/run.sh TARGET SECONDS [libFuzzer options]
# Targets: accelerator, ack_filter, capture, tcp_operations, tcp_segments, tunnel, wire. It starts with the
# inputs in fuzz/seeds/TARGET.hex, which the tests replay. The corpus stays in fuzz/corpus/TARGET, failing
# inputs in fuzz/artifacts/TARGET. New seeds: the least set with the same coverage (-set_cover_merge=1), a
# line each.
set -eu
usage="usage: $0 TARGET SECONDS [libFuzzer options], TARGET one of: accelerator ack_filter capture tcp_operations tcp_segments tunnel wire"
target=${1:?$usage}
seconds=${2:?$usage}
shift 2
case $target in accelerator | ack_filter | capture | tcp_operations | tcp_segments | tunnel | wire) ;; *) echo "$usage" >&2; exit 2 ;; esac
cd "$(dirname "$0")"

# Edge coverage and traced comparisons. AddressSanitizer is not in the stable toolchain; the fuzzed crates
# have no unsafe code. With `--target`, build scripts are compiled without these flags.
RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1"
export RUSTFLAGS
host=$(rustc -vV | sed -n 's/^host: //p')
cargo build --release --locked --target "$host" --target-dir target --bin "$target"

mkdir -p "corpus/$target" "artifacts/$target"
# The inputs of the tests, one file each.
python3 - "$target" <<'SEEDS'
import sys
from pathlib import Path

target = sys.argv[1]
for number, line in enumerate(Path(f"seeds/{target}.hex").read_text().split()):
    Path(f"corpus/{target}/seed-{number:04}").write_bytes(bytes.fromhex(line))
SEEDS
binary=target/$host/release/$target
status=0
"$binary" -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="artifacts/$target/" "$@" \
    "corpus/$target" || status=$?
if [ "$status" -ne 0 ]; then
    newest=$(ls -t "artifacts/$target" 2>/dev/null | head -n 1)
    if [ -n "$newest" ]; then
        echo "failed; to reproduce: fuzz/$binary fuzz/artifacts/$target/$newest" >&2
    fi
fi
exit "$status"
