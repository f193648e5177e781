#!/bin/bash
# Boots the stock kernels of Debian 12 and 13 with the packaged program in an emulated machine (QEMU, without
# KVM, which a virtual host may lack), and compares the words of `paceline doctor` with the table of
# docs/install.md. Where a gateway works, it accelerates a transfer. Root only. The registry is that of this
# machine's apt.
set -euo pipefail
cd "$(dirname "$0")/../../.."
scripts/setup.sh kernels-test
program=target/package/$(dpkg --print-architecture)/paceline
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | head -1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for release in ${RELEASES:-bookworm trixie}; do
    root=$work/$release
    mmdebstrap --quiet --variant=minbase --include=linux-image-amd64,iproute2,kmod,python3,curl,util-linux \
        "$release" "$root" "$mirror"
    cp "$program" "$root/usr/bin/paceline"
    mkdir -p "$root/etc/paceline" "$root/usr/lib/systemd/system" "$root/usr/share/doc/paceline/examples"
    cp packaging/*.service "$root/usr/lib/systemd/system/"
    cp packaging/examples/* "$root/usr/share/doc/paceline/examples/"
    cp scripts/package/test/gateway.sh "$root/"
    chroot "$root" useradd --system --user-group paceline
    cat >"$root/check.sh" <<'INSIDE'
#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2>/dev/null
mount -t tmpfs tmpfs /run
ip link set lo up
modprobe -a tun veth bridge sch_ingress cls_bpf
paceline doctor
bash /gateway.sh
echo "guest: exit code $?"
poweroff -f 2>/dev/null || echo o >/proc/sysrq-trigger
sleep 60
INSIDE
    chmod +x "$root/check.sh"
    cp "$root"/boot/vmlinuz-* "$work/vmlinuz"
    # Of the modules, those of networks are enough.
    find "$root"/usr/lib/modules -name '*.ko*' -not -path '*/kernel/net/*' -not -path '*/drivers/net/*' -delete
    rm -rf "$root"/boot/* "$root"/usr/share/{locale,man,doc/[!p]*} "$root"/var/{cache,lib/apt}/*
    (cd "$root" && find . -xdev -print0 | cpio --quiet --null -o -H newc) >"$work/initrd"
    echo "== Debian $release, $(strings "$work/vmlinuz" | grep -m1 -o '^[0-9.]*[0-9][^ ]*-amd64' || true)"
    timeout 600 qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 3072 -nographic -no-reboot -nic none \
        -kernel "$work/vmlinuz" -initrd "$work/initrd" \
        -append "console=ttyS0 quiet rdinit=/check.sh panic=-1" >"$work/console.txt" </dev/null || true
    tr -d '\r' <"$work/console.txt" | sed -n '/^simulate: /,$p' | sed 's/^/  /'
    grep -q '^guest: exit code 0' <(tr -d '\r' <"$work/console.txt") || { echo "FAILED: $release" >&2; exit 1; }
    for function in gateway police pace; do
        case $release-$function in bookworm-police) expected=yes ;; bookworm-*) expected=no ;; *) expected=yes ;; esac
        grep -q "^$function: $expected" <(tr -d '\r' <"$work/console.txt") \
            || { echo "FAILED: $function on $release" >&2; exit 1; }
    done
    rm -rf --one-file-system "$root"
done
