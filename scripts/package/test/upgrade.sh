#!/bin/bash
# Boots a fresh Debian 13 with systemd as its first process, and in it installs target/package/paceline_*.deb,
# starts a gateway, upgrades the package twice under load, and purges it (upgrade_inside.sh). Root only. The
# kernel is that of this machine, the registry that of its apt.
set -euo pipefail
cd "$(dirname "$0")/../../.."
scripts/setup.sh upgrade-test
arch=$(dpkg --print-architecture)
deb=$(ls -t target/package/paceline_*_"$arch".deb | head -1)
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | head -1)
work=$(mktemp -d)
# systemd-nspawn leaves its empty folder on a machine without systemd.
machine=paceline-upgrade-$$
trap 'rm -rf --one-file-system "$work" "/run/systemd/nspawn/propagate/$machine"' EXIT
root=$work/root

mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,adduser,iproute2,procps,python3 \
    trixie "$root" "$mirror"
cp "$deb" "$root/paceline.deb"
for number in 1 2; do
    dpkg-deb --raw-extract "$deb" "$work/newer"
    sed -i "s/^Version: .*/&+upgrade$number/" "$work/newer/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$work/newer" "$root/newer$number.deb" >/dev/null
    rm -rf "$work/newer"
done
cp scripts/package/test/upgrade_inside.sh scripts/package/test/hold.py "$root/"
cat >"$root/etc/systemd/system/check.service" <<'UNIT'
[Service]
Type=oneshot
ExecStart=/bin/bash /upgrade_inside.sh
StandardOutput=append:/result.txt
StandardError=inherit
TimeoutStartSec=300
ExecStopPost=/bin/sh -c 'systemctl poweroff --no-block 2>/dev/null'
[Install]
WantedBy=multi-user.target
UNIT
ln -s /etc/systemd/system/check.service "$root/etc/systemd/system/multi-user.target.wants/check.service"

# The gateway needs system calls and capabilities that a container lacks by default.
export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 SYSTEMD_NSPAWN_API_VFS_WRITABLE=network
began=$(date +%s)
timeout 400 systemd-nspawn --quiet --register=no --keep-unit --boot --private-network --private-users=no \
    --capability=CAP_NET_ADMIN,CAP_NET_RAW,CAP_BPF,CAP_PERFMON,CAP_SYS_RESOURCE,CAP_SYS_NICE,CAP_SYS_ADMIN \
    --system-call-filter='bpf perf_event_open' \
    --console=pipe --machine="$machine" --directory="$root" >"$work/console.txt" 2>&1 </dev/null || true
cat "$root/result.txt" || cat "$work/console.txt"
grep -q '^upgrade: all checks passed' "$root/result.txt" || { tail -20 "$work/console.txt" >&2; exit 1; }
echo "the machine ran for $(($(date +%s) - began)) s"
