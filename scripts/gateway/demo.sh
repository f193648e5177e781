#!/bin/sh
# One station downloads by curl from a server behind a bridge, through the emulated radio: first over the
# bridge alone, then with `paceline gateway` between the bridge's ports. The server's TCP is this host's
# CUBIC. Needs root:
#
#     scripts/gateway/demo.sh [SCENARIO [SECONDS]]...
#
# Server, bridge and radio are network namespaces, which are removed when this script ends.
set -eu
cd "$(dirname "$0")/../.."
if [ "${PACELINE_APART:-}" != yes ]; then
    PACELINE_APART=yes exec unshare --net --mount --propagation private "$0" "$@"
fi
paceline=$(scripts/package/target_dir.sh)/release/paceline
mount -t tmpfs tmpfs /run
mkdir /run/netns /run/files
head -c 1000000000 /dev/zero >/run/files/large

for name in server box radio; do
    ip netns add $name
    ip -n $name link set lo up
done
ip link add wired netns box type veth peer name eth0 netns server
ip link add mobile netns box type veth peer name eth0 netns radio
ip -n box link add br0 type bridge
for device in wired mobile; do ip -n box link set $device master br0 up; done
ip -n box link set br0 up
ip -n server addr add 198.51.100.2/24 dev eth0
ip -n server link set eth0 up
ip -n server route add 198.18.0.0/15 via 198.51.100.1 congctl cubic
ip -n radio addr add 198.51.100.1/24 dev eth0
ip -n radio link set eth0 up
ip netns exec radio sysctl -qw net.ipv4.ip_forward=1
printf 'server = "wired"\nmobile = "mobile"\n' >/run/gateway.toml

ip netns exec server python3 -m http.server --directory /run/files 8000 >/dev/null 2>&1 &
server=$!
gateway=
trap 'kill $server $gateway 2>/dev/null; wait' EXIT
url=http://198.51.100.2:8000/
tries=0
until ip netns exec radio curl -s -o /dev/null $url; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { echo "the local server does not respond" >&2; exit 1; }
    sleep 0.1
done

# Downloads for some seconds; prints curl's rate, and the round-trip time measured between the core and the
# station.
download() {
    ip netns exec radio "$paceline" emulate "$1" --set core.proxy=none --json -- sh -c \
        "curl -s --max-time $2 -o /dev/null -w '%{speed_download}' ${url}large >/run/speed || test \$? = 28" \
        2>/run/log >/run/summary || { cat /run/log >&2; exit 1; }
    python3 - "$3" <<'PRINT'
import json
import sys

mean = json.load(open("/run/summary"))["mean"]
speed = float(open("/run/speed").read()) * 8e-6
print(f"{sys.argv[1]:8} {speed:6.1f} Mb/s, round trips of {mean['rtt_mean_ms']:.0f} ms, {mean['rtt_p95_ms']:.0f} ms at 95%")
PRINT
}

[ $# -gt 0 ] || set -- single-station 15 accelerator-lte 15
while [ $# -gt 0 ]; do
    scenario=$1 seconds=${2:-15}
    shift; [ $# -eq 0 ] || shift
    echo "-- $scenario, $seconds s"
    download "$scenario" "$seconds" bridge
    ip netns exec box "$paceline" gateway --json /run/gateway.toml >/run/counters 2>/run/log &
    gateway=$!
    tries=0
    until grep -q accelerating /run/log; do
        tries=$((tries + 1))
        kill -0 $gateway && [ "$tries" -lt 100 ] || { cat /run/log >&2; exit 1; }
        sleep 0.1
    done
    download "$scenario" "$seconds" gateway
    kill $gateway
    wait $gateway || true
    gateway=
done
