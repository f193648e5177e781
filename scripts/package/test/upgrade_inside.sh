#!/bin/bash
# The part of upgrade.sh in a Debian that systemd has booted, with the packages /paceline.deb, /newer1.deb and
# /newer2.deb.
set -euo pipefail
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
unit=paceline-gateway@box.service
work=$(mktemp -d /run/check.XXXX)
fail() {
    echo "FAILED: $*"
    journalctl --no-pager -n 40 -u "$unit" -o cat || true
    exit 1
}
files() {
    find / -xdev \( -path '/etc/*-' -o -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/log \
        -o -path /var/cache -o -path /var/lib/dpkg -o -path /var/lib/systemd \) -prune -o -print | sort
}
command -v pgrep >/dev/null || fail "no pgrep"
main_pid() { systemctl show --property MainPID --value "$unit"; }
# A field of the newest message of the journal with an event.
field() { journalctl -u "$unit" "PACELINE_EVENT=$1" -o json -n 1 | python3 -c "import json,sys; print(json.load(sys.stdin)['$2'])"; }
install() {
    local began=$EPOCHREALTIME
    dpkg -i "$1" >"$work/dpkg.txt" 2>&1 || fail "dpkg -i $1: $(cat "$work/dpkg.txt")"
    took=$(python3 -c "print(f'{$EPOCHREALTIME - $began:.1f}')")
}

echo "- $(head -1 /etc/os-release | cut -d= -f2), $(systemctl --version | head -1), process 1: $(cat /proc/1/comm)"
files >"$work/before"
install /paceline.deb
[ -z "$(systemctl list-units --all --plain --no-legend 'paceline*')" ] || fail "a unit has started by itself"
[ -z "$(find /etc/systemd -name '*paceline*')" ] || fail "a unit is enabled"
[ -z "$(pgrep -x paceline || true)" ] || fail "a process has started by itself"
echo "- installed; no unit is started or enabled"

ip netns add server
ip netns add client
ip link add srv type veth peer name srv0 netns server
ip link add mob type veth peer name cli0 netns client
for port in srv mob; do ip link set "$port" up; done
ip -n server addr add 10.9.0.1/24 dev srv0
ip -n server link set srv0 up
ip -n client addr add 10.9.0.2/24 dev cli0
ip -n client link set cli0 up
tc qdisc add dev mob root tbf rate 100mbit burst 100kb limit 1mb
printf 'server = "srv"\nmobile = "mob"\ndrain = "5 s"\ncontrol_group = "paceline"\n' >/etc/paceline/gateway-box.toml

systemctl start "$unit" || fail "start"
[ "$(systemctl is-active "$unit")" = active ] || fail "the unit is not active"
[ "$(field started PACELINE_MOBILE)" = mob ] || fail "the journal has no message of the start"
echo "- started: process $(cat "/proc/$(main_pid)/comm"), user $(ps -o user= -p "$(main_pid)")"

head -c 20000000 /dev/urandom >"$work/file"
ip netns exec server python3 /hold.py serve "$work/file" &
sleep 1
downloads() { # Ten downloads of 20 MB over 100 Mb/s, and a conversation, all held through the upgrade.
    pids=()
    for number in $(seq 10); do
        ip netns exec client python3 /hold.py fetch "$work/file" &
        pids+=($!)
    done
    ip netns exec client python3 /hold.py talk 20 &
    pids+=($!)
    sleep 3
}
finish() {
    for pid in "${pids[@]}"; do wait "$pid" || fail "a connection: $1"; done
}
ask() { paceline gateway status --json --control /run/paceline/box.sock | python3 -c "import json,sys; print(json.load(sys.stdin)['counters']['$1'])"; }

downloads
[ "$(ask flows)" -ge 11 ] || fail "the connections are not accelerated: $(ask flows)"
before=$(main_pid)
install /newer1.deb
[ "$(systemctl is-active "$unit")" = active ] || fail "the unit is not active after the upgrade"
[ "$(main_pid)" != "$before" ] || fail "the upgrade has not restarted the gateway"
finish "after the first upgrade"
[ "$(field ended PACELINE_RESET)" = 0 ] || fail "the journal: $(field ended PACELINE_RESET) connections reset"
echo "- upgraded in $took s under 10 downloads and a conversation: all byte-exact to the end; the journal:" \
    "$(field ended PACELINE_DETACHED) detached, $(field ended PACELINE_RESET) reset"
ip netns exec client python3 /hold.py fetch "$work/file" || fail "a new connection after the upgrade"
[ "$(ask flows)" -ge 1 ] || fail "the new gateway accelerates nothing"

# A device that takes nothing: its acknowledged data cannot be delivered within `drain`.
ip netns exec client python3 /hold.py stall 30 &
stalled=$!
sleep 2
ip netns exec client python3 /hold.py talk 15 &
pids=($!)
sleep 1
install /newer2.deb
finish "after the second upgrade"
wait "$stalled" || fail "the stalled connection was not reset"
[ "$(field ended PACELINE_RESET)" = 1 ] || fail "the journal: $(field ended PACELINE_RESET) connections reset, not 1"
echo "- upgraded in $took s beside a device that takes no data: the conversation went on; the journal:" \
    "$(field ended PACELINE_DETACHED) detached, $(field ended PACELINE_RESET) reset"

# Faults under 50 downloads: none hangs, and those that a fault need not end are byte-exact.
swarm() { # 50 downloads of 3 MB, held through a fault; with the argument `survive` they may be reset.
    pids=()
    for number in $(seq 50); do
        ip netns exec client python3 /hold.py "${1:-fetch}" "$work/file" 3000000 &
        pids+=($!)
    done
    sleep 2
}
gone_and_back() { # the interface towards the devices
    ip link del mob
    sleep 3
    ip link add mob type veth peer name cli0 netns client
    ip link set mob up
    tc qdisc add dev mob root tbf rate 100mbit burst 100kb limit 1mb
    ip -n client link set cli0 address 02:00:00:00:09:02
    ip -n client addr add 10.9.0.2/24 dev cli0
    ip -n client link set cli0 up
}
ip -n client link set cli0 address 02:00:00:00:09:02
swarm
gone_and_back
finish "while its interface was away for 3 s"
[ "$(ask flows-reset)" = 0 ] || fail "connections were reset: $(ask flows-reset)"
echo "- 50 downloads byte-exact while an interface was away for 3 s and made again"

swarm
kill -STOP "$(main_pid)"
sleep 12
kill -CONT "$(main_pid)"
before=$(main_pid)
finish "while the process was stopped for 12 s"
[ "$(main_pid)" = "$before" ] || fail "the watchdog has replaced a process that goes on"
echo "- 50 downloads byte-exact while the process was stopped for 12 s"

swarm survive
guardian=$(pgrep -f 'gateway guard' | head -1)
kill -KILL "$guardian"
sleep 0.1
[ "$(pgrep -f 'gateway guard' | head -1)" != "$guardian" ] || fail "no other guardian"
field guardian-died MESSAGE >/dev/null || fail "the journal does not have the guardian's death"
sleep 0.5
kill -KILL "$before"
finish "after kill -9 of guardian and gateway: it hangs"
for _ in $(seq 100); do [ "$(systemctl is-active "$unit")" = active ] && break; sleep 0.1; done
[ "$(main_pid)" != "$before" ] || fail "no other gateway"
echo "- 50 downloads complete or reset after kill -9 of the guardian and of the gateway; none hangs"

systemctl stop "$unit"
ip link del paceline0
ip link del mob
systemctl start "$unit" 2>"$work/start.txt" && fail "a start without an interface"
sleep 15
ip link add mob type veth peer name cli0 netns client
for _ in $(seq 100); do [ "$(systemctl is-active "$unit")" = active ] && break; sleep 0.1; done
[ "$(systemctl is-active "$unit")" = active ] || fail "the unit has given up"
echo "- the unit is active after an interface that came 15 s late"

printf 'records = "/var/log/paceline/transfers.csv"\nexperiment = "/var/lib/paceline/experiment.json"\n' \
    | cat - /etc/paceline/gateway-box.toml >"$work/box.toml"
cp "$work/box.toml" /etc/paceline/gateway-box.toml
systemctl restart "$unit" || fail "files of the documents"
[ -s /var/log/paceline/transfers.csv ] || fail "no file of records"
paceline gateway experiment --share 50% --for 1h --control /run/paceline/box.sock >/dev/null || fail "experiment"
[ -s /var/lib/paceline/experiment.json ] || fail "no file of the experiment"
echo "- records and experiment are written where the documents say"

dpkg --purge paceline >"$work/dpkg.txt" 2>&1 || fail "purge: $(cat "$work/dpkg.txt")"
for _ in $(seq 50); do pgrep -x paceline >/dev/null || break; sleep 0.1; done
[ -z "$(pgrep -x paceline || true)" ] || fail "a process stays after the purge"
[ -z "$(systemctl list-units --all --plain --no-legend 'paceline*')" ] || fail "units stay: $(systemctl list-units --all 'paceline*')"
files | diff "$work/before" - || fail "files stay after the purge"
! getent passwd paceline && ! getent group paceline || fail "the account stays after the purge"
[ ! -e /run/paceline ] || fail "/run/paceline stays after the purge"
echo "- purged; no process, unit, file or account is left"
echo "upgrade: all checks passed"
