#!/bin/bash
# A gateway of the installed package between two namespaces: the unit's user and capabilities, a transfer, the
# control socket's group. Part of scripts/package/test/packages_inside.sh.
set -euo pipefail
fail() { echo "FAILED: $*" >&2; exit 1; }
work=$(mktemp -d)
unit=${UNIT:-/usr/lib/systemd/system/paceline-gateway@.service}
examples=${EXAMPLES:-/usr/share/doc/paceline/examples}
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

if ! paceline doctor | grep -q '^gateway: yes'; then
    echo "- no gateway on this kernel: $(paceline doctor | grep '^gateway:')"
    echo 'server = "srv"
mobile = "mob"' >/etc/paceline/gateway-north.toml
    exit 0
fi
for end in server client; do
    unshare --net sleep 300 &
    pids+=($!)
    declare "$end=$!"
done
sleep 1
in_server() { nsenter --net="/proc/$server/ns/net" -- "$@"; }
in_client() { nsenter --net="/proc/$client/ns/net" -- "$@"; }
ip link add srv type veth peer name srv0 netns "$server"
ip link add mob type veth peer name cli0 netns "$client"
ip link set srv up
ip link set mob up
in_server sh -c 'ip addr add 10.9.0.1/24 dev srv0; ip link set srv0 up; ip link set lo up'
in_client sh -c 'ip addr add 10.9.0.2/24 dev cli0; ip link set cli0 up; ip link set lo up'

sed -e 's/eth0/srv/; s/eth1/mob/' "$examples/gateway-bridge.toml" \
    >/etc/paceline/gateway-north.toml
install -d -o paceline -g paceline -m 755 /run/paceline
# The commands of the unit, by its user with its capabilities.
caps=$(sed -n 's/^AmbientCapabilities=//p' "$unit" | sed 's/CAP_//g; s/ /,+/g' | tr '[:upper:]' '[:lower:]')
as_unit() {
    setpriv --reuid paceline --regid paceline --init-groups --bounding-set "-all,+$caps" \
        --inh-caps "-all,+$caps" --ambient-caps "-all,+$caps" --no-new-privs -- "$@"
}
command_of() { sed -n "s/^$1=//p" "$unit" | sed 's/%i/north/g'; }
# shellcheck disable=SC2046
as_unit $(command_of ExecStartPre) >"$work/check.txt" || fail "ExecStartPre"
# shellcheck disable=SC2046
as_unit $(command_of ExecStart) 2>"$work/gateway.log" &
gateway=$!
pids+=("$gateway")
for _ in $(seq 100); do grep -qs accelerating "$work/gateway.log" && break; sleep 0.1; done
grep -q accelerating "$work/gateway.log" || fail "no gateway: $(cat "$work/gateway.log")"

head -c 20000000 /dev/urandom >"$work/file"
(cd "$work" && in_server python3 -c 'import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8000)' \
    >/dev/null 2>&1) &
pids+=($!)
for _ in $(seq 100); do in_client curl -s -o /dev/null http://10.9.0.1:8000/ && break; sleep 0.1; done
in_client curl -sS -o "$work/copy" http://10.9.0.1:8000/file || fail "the transfer"
cmp "$work/file" "$work/copy" || fail "the copy differs"

as_member() { setpriv --reuid nobody --regid nogroup --groups "$1" -- "${@:2}"; }
as_member paceline paceline gateway status --json >"$work/status.json" || fail "a member of the group may not ask"
python3 -c 'import json,sys; sys.exit(json.load(open(sys.argv[1]))["counters"]["flows"] == 0)' "$work/status.json" \
    || fail "nothing was accelerated"
! as_member nogroup paceline gateway status >/dev/null 2>&1 || fail "everybody may ask"
# shellcheck disable=SC2046
as_unit $(command_of ExecReload) >/dev/null || fail "ExecReload"
paceline gateway stop --control /run/paceline/north.sock >"$work/stop.txt" || fail "stop: $(cat "$work/stop.txt")"
wait "$gateway" || fail "the gateway: $(cat "$work/gateway.log")"
ip link del paceline0
echo "- a gateway as user paceline with ${caps//+/}: 20 MB accelerated byte-exact; $(cat "$work/stop.txt")"
