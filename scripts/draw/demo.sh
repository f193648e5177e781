#!/bin/sh
# Ten stations in a cell with a narrow uplink. First five ACK-filter schemes are simulated. With the
# privileges for it, curl then downloads through the same cell in real time with this host's TCP, without and
# with the filter.
set -eu
cd "$(dirname "$0")/../.."
paceline=$(scripts/package/target_dir.sh)/release/paceline
out=demo-results
rm -rf "$out"
mkdir -p "$out"

# Runs a command; its messages are shown only if it fails.
quietly() {
    "$@" 2>"$out/messages" || { cat "$out/messages" >&2; exit 1; }
    rm "$out/messages"
}

echo "== Simulated: ten stations, five schemes, four seeds each"
for scheme in basic granted 'active(6)' 'hybrid(6)' hybrid-opt; do
    quietly "$paceline" run uplink-limited --seeds 4 --set "ack_filter.scheme=$scheme" \
        --out "$out/simulated/$scheme" >/dev/null
done
simulated="$out/simulated"
"$paceline" compare "$simulated/basic" "$simulated/granted" "$simulated/active(6)" "$simulated/hybrid(6)" "$simulated/hybrid-opt"

echo
if ! "$paceline" doctor | grep -q '^emulate: yes'; then
    "$paceline" doctor | grep '^emulate:'
    echo "skipped: the parts with real TCP"
    exit 0
fi
echo "== Emulated: ten real stations, curl over this host's TCP (CUBIC) from a local server, 10 s each"
# In a network namespace of its own, so that this host's network is not changed.
unshare --net sh -eu -s "$paceline" "$out" <<'INSIDE'
paceline=$1
out=$2
ip link set lo up
mkdir -p "$out/files"
head -c 200000000 /dev/zero >"$out/files/large"
head -c 2000000 /dev/urandom >"$out/files/small"
python3 -m http.server --directory "$out/files" 8000 >/dev/null 2>&1 &
server=$!
trap 'kill $server; rm -rf "$out/files"' EXIT
# Wait until the server responds, up to ten seconds.
tries=0
until curl -s -o /dev/null http://127.0.0.1:8000/; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { echo "the local server does not respond" >&2; exit 1; }
    sleep 0.1
done
for scheme in basic hybrid-opt; do
    # All ten stations download for 10 s. Exit code 28 of curl means that the time is over.
    "$paceline" emulate uplink-limited --station 0-9 --tcp cubic --set "ack_filter.scheme=$scheme" \
        --out "$out/emulated/$scheme" -- \
        sh -c 'curl -s --max-time 10 -o /dev/null "http://$PACELINE_HOST:8000/large" || test $? = 28' \
        2>"$out/$scheme.log" || { cat "$out/$scheme.log" >&2; exit 1; }
    grep '^real time missed' "$out/$scheme.log" | sed "s/^/$scheme: /"
done
"$paceline" compare "$out/emulated/basic" "$out/emulated/hybrid-opt"
echo
echo "== One file of 2 MB by curl in the same cell, nine stations simulated"
for scheme in basic hybrid-opt; do
    "$paceline" emulate uplink-limited --station 0 --tcp cubic --set "ack_filter.scheme=$scheme" -- \
        curl -s --max-time 40 -o /dev/null -w "$scheme: %{size_download} bytes in %{time_total} s\n" \
        "http://198.18.0.1:8000/small" 2>"$out/one.log" || { cat "$out/one.log" >&2; exit 1; }
done
INSIDE

echo
if ! "$paceline" doctor | grep -q '^gateway: yes'; then
    "$paceline" doctor | grep '^gateway:'
    echo "skipped: the part with the gateway"
    exit 0
fi
echo "== Gateway: curl from a server (CUBIC), over a bridge and the emulated radio, without and with paceline gateway"
scripts/gateway/demo.sh single-station 8 accelerator-lte 8
