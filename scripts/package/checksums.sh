#!/bin/sh
# Adds the checksums of its files to a Debian package, which `dpkg --verify` compares (deb-md5sums(5)). The
# same package gives the same bytes with SOURCE_DATE_EPOCH.
set -eu
deb=${1:?usage: $0 PACKAGE.deb}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dpkg-deb --raw-extract "$deb" "$work/all"
(cd "$work/all" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum) \
    >"$work/md5sums"
mv "$work/md5sums" "$work/all/DEBIAN/md5sums"
chmod 644 "$work/all/DEBIAN/md5sums"
dpkg-deb --root-owner-group -Zxz -b "$work/all" "$work/new.deb" >/dev/null
mv "$work/new.deb" "$deb"
