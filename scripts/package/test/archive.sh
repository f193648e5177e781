#!/bin/bash
# Installs target/package/paceline-*.tar.gz in a fresh Debian 12 by the commands of docs/install.md, uses and
# removes it; root only. The registry is that of this machine's apt.
set -euo pipefail
cd "$(dirname "$0")/../../.."
scripts/setup.sh tarball-test
arch=$(dpkg --print-architecture)
archive=$(ls -t target/package/paceline-*-linux-"$arch".tar.gz | head -1)
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | head -1)
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root

mmdebstrap --quiet --variant=minbase --include=iproute2,python3,curl,util-linux bookworm "$root" "$mirror"
mkdir "$root/srv/box"
cp "$archive" "$root/srv/box/"
cp scripts/package/test/gateway.sh "$root/"
# The commands of the page, in the order there: those up to the removal, and the removal.
for part in install remove; do
    sed -n "/^<!-- archive: $part -->/,/^<!-- end -->/s/^    //p" docs/install.md | sed "s/paceline-[0-9.]*-linux-[a-z0-9]*/$(basename "$archive" .tar.gz)/" \
        >"$root/$part.sh"
    [ -s "$root/$part.sh" ] || { echo "FAILED: docs/install.md has no commands to $part" >&2; exit 1; }
done
cat >"$root/inside.sh" <<'INSIDE'
set -euo pipefail
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
files() {
    find / -xdev \( -path '/etc/*-' -o -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp \
        -o -path /srv/box -o -path /var/log \) -prune -o -print | sort
}
files >/tmp/files.before
cut -d: -f1 /etc/passwd /etc/group | sort >/tmp/accounts.before
cd /srv/box
bash -eu /install.sh
echo "- installed: $(paceline --version)"
paceline doctor | sed 's/^/  /'
paceline run single-station --set run.duration='2 s' --set run.warmup='1 s' --out /tmp/results | grep -q goodput
rm -rf /tmp/results
folder=$(echo /srv/box/paceline-*/)
for example in "$folder"examples/gateway-*.toml; do
    output=$(paceline gateway --check "$example" 2>&1) && { echo "FAILED: $example: no interface is missing"; exit 1; }
    case $output in *"there is no network interface"*) ;; *) echo "FAILED: $example: $output"; exit 1 ;; esac
done
UNIT=/etc/systemd/system/paceline-gateway@.service EXAMPLES=${folder}examples bash /gateway.sh
bash -eu /remove.sh
files | diff /tmp/files.before -
cut -d: -f1 /etc/passwd /etc/group | sort | diff /tmp/accounts.before -
echo "- removed; nothing is left"
INSIDE
unshare --mount --net --pid --fork --kill-child bash -c "
    mount --make-rprivate /
    mount -t proc proc '$root/proc'
    mount -t sysfs sysfs '$root/sys'
    mount -t tmpfs tmpfs '$root/run'
    mount --rbind /dev '$root/dev'
    exec chroot '$root' /bin/bash /inside.sh"
echo "archive: all checks passed"
