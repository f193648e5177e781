#!/bin/bash
# Installs target/package/paceline_*.deb in a fresh Debian 12 and 13, uses, upgrades and purges it; root only.
# The registry is that of this machine's apt. Everything is in folders and namespaces that end with the test.
set -euo pipefail
cd "$(dirname "$0")/../../.."
scripts/setup.sh packages-test
arch=$(dpkg --print-architecture)
deb=$(ls -t target/package/paceline_*_"$arch".deb | head -1)
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | head -1)

echo "== lintian $deb"
lintian --fail-on error "$deb"

# The same package with a higher version, for an upgrade.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dpkg-deb --raw-extract "$deb" "$work/newer"
sed -i 's/^Version: .*/&+upgrade/' "$work/newer/DEBIAN/control"
dpkg-deb --root-owner-group -b "$work/newer" "$work/newer.deb" >/dev/null

for release in ${RELEASES:-bookworm trixie}; do
    echo "== Debian $release"
    root=$work/$release
    mmdebstrap --quiet --variant=minbase --include=adduser,iproute2,python3,curl,man-db,util-linux \
        "$release" "$root" "$mirror"
    cp "$deb" "$root/paceline.deb"
    cp "$work/newer.deb" "$root/newer.deb"
    cp scripts/package/test/packages_inside.sh scripts/package/test/gateway.sh "$root/"
    # Without a network the package has to be complete but for its dependencies, which are there.
    unshare --mount --net --pid --fork --kill-child bash -c "
        mount --make-rprivate /
        mount -t proc proc '$root/proc'
        mount -t sysfs sysfs '$root/sys'
        mount -t tmpfs tmpfs '$root/run'
        mount --rbind /dev '$root/dev'
        exec chroot '$root' /bin/bash /packages_inside.sh"
    rm -rf --one-file-system "$root"
done
echo "packages: all checks passed"
