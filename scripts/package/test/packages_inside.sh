#!/bin/bash
# The part of packages.sh inside a fresh Debian, with the packages /paceline.deb and /newer.deb.
set -euo pipefail
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
fail() { echo "FAILED: $*" >&2; exit 1; }

# All files but those that dpkg, apt and the system write at every installation, and the copies that useradd
# keeps of its files.
files() {
    find / -xdev \( -path '/etc/*-' -o -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/log \
        -o -path /var/cache -o -path /var/lib/dpkg \) -prune -o -print | sort
}
accounts() { cut -d: -f1 /etc/passwd /etc/group | sort; }

files >/tmp/files.before
accounts >/tmp/accounts.before
dpkg -i /paceline.deb >/tmp/dpkg.txt 2>&1 || fail "install: $(cat /tmp/dpkg.txt)"

echo "- installed: $(paceline --version)"
getent passwd paceline >/dev/null || fail "no user paceline"
getent group paceline >/dev/null || fail "no group paceline"
[ -d /etc/paceline ] || fail "no folder /etc/paceline"
[ -z "$(find /etc/systemd -name 'paceline*')" ] || fail "a unit is enabled"
[ -s /usr/share/man/man1/paceline-gateway.1.gz ] || grep -rq 'path-exclude=/usr/share/man' /etc/dpkg/dpkg.cfg.d \
    || fail "no manual page"
bash -n /usr/share/bash-completion/completions/paceline || fail "completions"
paceline completions bash | cmp -s - /usr/share/bash-completion/completions/paceline || fail "old completions"
python3 -c 'import json,sys; bom=json.load(open("/usr/share/doc/paceline/sbom.cdx.json")); sys.exit(len(bom["components"]) < 50)' \
    || fail "the list of crates"

dpkg --verify paceline || fail "files differ from their checksums"
[ -s /var/lib/dpkg/info/paceline.md5sums ] || fail "no checksums"
for file in grafana/paceline.json prometheus/paceline.rules.yml; do
    [ -s "/usr/share/paceline/$file" ] || fail "no $file"
done

paceline doctor | sed 's/^/  /'
paceline run single-station --set run.duration='2 s' --set run.warmup='1 s' --out /tmp/results >/tmp/run.txt || fail "run"
grep -q goodput /tmp/run.txt || fail "run printed no goodput"
rm -rf /tmp/results
for example in /usr/share/doc/paceline/examples/gateway-*.toml; do
    # The interfaces are missing here, which the check has to say, and nothing else.
    output=$(paceline gateway --check "$example" 2>&1) && fail "$example: no interface is missing"
    case $output in *"there is no network interface"*) ;; *) fail "$example: $output" ;; esac
done
paceline police apply --check /usr/share/doc/paceline/examples/police.toml >/dev/null || fail "police.toml"

bash /gateway.sh

dpkg -i /newer.deb >/tmp/dpkg.txt 2>&1 || fail "upgrade: $(cat /tmp/dpkg.txt)"
dpkg-query -W -f '${Version}\n' paceline | grep -q upgrade || fail "the upgrade is not installed"
dpkg --remove paceline >/tmp/dpkg.txt 2>&1 || fail "remove: $(cat /tmp/dpkg.txt)"
[ ! -e /usr/bin/paceline ] || fail "the program stays after the removal"
[ -e /etc/paceline/gateway-north.toml ] || fail "a removal has removed the configuration"
dpkg --purge paceline >/tmp/dpkg.txt 2>&1 || fail "purge: $(cat /tmp/dpkg.txt)"
files | diff /tmp/files.before - || fail "files stay after the purge"
accounts | diff /tmp/accounts.before - || fail "accounts stay after the purge"
[ ! -e /run/paceline ] || fail "/run/paceline stays after the purge"
echo "- upgraded, removed and purged; nothing is left"
