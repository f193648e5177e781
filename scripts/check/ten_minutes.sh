#!/bin/sh
# A user's first ten minutes, with shorter runs: a scenario of one's own, checked, run, swept, compared,
# drawn, and a real program behind its radio where this host allows it. A test runs this script; each command
# has to work.
#
#     scripts/check/ten_minutes.sh PROGRAM FOLDER
#
# PROGRAM is the file of `paceline`; FOLDER is new and gets all files.
set -eu
case ${1:?usage: $0 PROGRAM FOLDER} in
    /*) paceline=$1 ;;
    *) paceline=$PWD/$1 ;;
esac
mkdir "${2:?usage: $0 PROGRAM FOLDER}"
cd "$2"

step() {
    printf '\n== %s\n' "$1"
}

step "What this host can do"
"$paceline" --version
"$paceline" doctor

step "A scenario of one's own"
cat >my.toml <<'TOML'
[run]
duration = "4 s"
warmup = "1 s"

[cell]
bandwidth = "20 MHz"
uplink_bandwidth = "3 MHz"

[[station]]
count = 4
downlink_sinr = ["5 dB", "22 dB"]
uplink_sinr = ["-5 dB", "5 dB"]
TOML
"$paceline" check my.toml
"$paceline" check --explain cell.uplink_bandwidth

step "A mistyped key is answered with the right one"
sed 's/uplink_bandwidth/uplink_bandwith/' my.toml >typo.toml
if "$paceline" check typo.toml 2>message; then
    echo "the mistyped key was accepted" >&2
    exit 1
fi
cat message
grep -q uplink_bandwidth message

step "A run, and its report"
"$paceline" run my.toml --out plain
"$paceline" report plain
ls plain

step "The same cell with an ACK filter, side by side"
"$paceline" run my.toml --set ack_filter.scheme=safe --seeds 2 --out filtered
"$paceline" compare plain filtered

step "A sweep over stations and schemes, and its report"
"$paceline" sweep my.toml --set run.duration=2s --over station.count=2,4 --over ack_filter.scheme=basic,safe \
    --out grid
"$paceline" report grid
cut -d, -f 1-3 grid/sweep.csv

step "A real program behind the radio"
if ! "$paceline" doctor | grep -q '^emulate: yes'; then
    "$paceline" doctor | grep '^emulate:'
    echo "skipped: the part with real programs"
    exit 0
fi
for program in curl python3; do
    command -v $program >/dev/null || { echo "skipped: no $program on this host"; exit 0; }
done
mkdir files
head -c 200000 /dev/urandom >files/file
# In a network namespace of its own, so that a server or an emulation of this host is not in the way.
unshare --net sh -eu -s "$paceline" <<'INSIDE'
paceline=$1
ip link set lo up
python3 -m http.server --directory files 8000 >server.log 2>&1 &
server=$!
trap 'kill $server' EXIT
tries=0
until curl -s -o /dev/null http://127.0.0.1:8000/; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { echo "the local server does not respond" >&2; exit 1; }
    sleep 0.1
done
"$paceline" emulate my.toml --station 0,2 --out real -- curl -sSf -o 'file-{station}' http://198.18.0.1:8000/file
INSIDE
cmp files/file file-0
cmp files/file file-2
cut -d, -f 1-11 real/kernel_connections.csv
"$paceline" report real
"$paceline" compare plain real
