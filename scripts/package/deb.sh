#!/bin/sh
# Makes the Debian package of an architecture: scripts/package/deb.sh amd64 | arm64 writes
# target/package/paceline_VERSION_ARCH.deb. The program contains its kernel programs. The same commit gives
# the same bytes.
set -eu
cd "$(dirname "$0")/../.."
arch=${1:?usage: $0 amd64 | arm64}
scripts/package/build.sh "$arch"
scripts/package/stage.sh "$arch"
stage=target/package/$arch
version=$(sed -n '1s/^paceline (\(.*\)) .*/\1/p' packaging/debian/changelog)
root=target/package/deb/$arch
rm -rf "$root"
umask 022

put() { # put MODE FOLDER FILES
    mode=$1 folder=$root/$2
    shift 2
    mkdir -p "$folder"
    install -m "$mode" "$@" "$folder/"
}
put 755 usr/bin "$stage/paceline"
put 644 usr/share/man/man1 "$stage"/man/*
put 644 usr/share/bash-completion/completions "$stage/completions/paceline"
put 644 usr/share/zsh/vendor-completions "$stage/completions/_paceline"
put 644 usr/share/fish/vendor_completions.d "$stage/completions/paceline.fish"
put 644 usr/lib/systemd/system packaging/*.service
put 644 usr/share/paceline/grafana packaging/grafana/paceline.json
put 644 usr/share/paceline/prometheus packaging/prometheus/*
put 644 usr/share/doc/paceline "$stage/sbom.cdx.json" PATENTS.md packaging/debian/copyright
put 644 usr/share/doc/paceline/examples packaging/examples/*
mkdir -p "$root/usr/share/lintian/overrides"
install -m 644 packaging/debian/lintian-overrides "$root/usr/share/lintian/overrides/paceline"
gzip -9n "$root"/usr/share/man/man1/*
gzip -9nc packaging/debian/changelog >"$root/usr/share/doc/paceline/changelog.Debian.gz"

# `dpkg --verify` compares the checksums (deb-md5sums(5)).
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/md5sums"
size=$(find "$root/usr" -type f -printf '%k\n' | awk '{ kib += $1 } END { print kib }')
put 755 DEBIAN packaging/debian/postinst packaging/debian/prerm packaging/debian/postrm
mv "$root/md5sums" "$root/DEBIAN/md5sums"
sed "s/^Version:.*/Version: $version\nArchitecture: $arch\nInstalled-Size: $size/" packaging/debian/control \
    >"$root/DEBIAN/control"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
deb=target/package/paceline_${version}_$arch.deb
rm -f target/package/paceline_*_"$arch".deb
dpkg-deb --root-owner-group -Zxz -b "$root" "$deb" >/dev/null
echo "$deb"
