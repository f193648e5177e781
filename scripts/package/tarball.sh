#!/bin/sh
# Makes an archive for machines without Debian's package manager: scripts/package/tarball.sh amd64 | arm64
# writes target/package/paceline-VERSION-linux-ARCH.tar.gz. The same sources give the same bytes.
set -eu
cd "$(dirname "$0")/../.."
arch=${1:?usage: $0 amd64 | arm64}
scripts/package/build.sh "$arch"
scripts/package/stage.sh "$arch"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
name=paceline-$version-linux-$arch
stage=target/package/$arch
folder=target/package/tarball/$name
rm -rf target/package/tarball
mkdir -p "$folder/bin" "$folder/share"
cp "$stage/paceline" "$folder/bin/"
cp -r "$stage/man" "$stage/completions" "$folder/share/"
cp -r packaging/examples packaging/grafana packaging/prometheus "$folder/"
mkdir "$folder/systemd"
cp packaging/*.service "$folder/systemd/"
cp "$stage/sbom.cdx.json" LICENSE PATENTS.md SECURITY.md docs/install.md "$folder/"
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w --mtime="@$(git log -1 --format=%ct)" \
    -C target/package/tarball -c "$name" | gzip -9n >"target/package/$name.tar.gz"
echo "target/package/$name.tar.gz"
