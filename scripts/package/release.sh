#!/bin/sh
# Writes all that is handed out to dist/: scripts/package/release.sh amd64 | arm64, on a machine of that
# architecture. The same commit gives the same bytes (scripts/package/reproducible.sh).
#
# Each crate is compiled once for each target: musl (the program of package, archive and wheel), the host's C
# library (the extension module) and WebAssembly. The last has a profile and so a folder of its own, and is
# built beside the others: most of a build is optimisation across all crates, which uses one core.
set -eu
cd "$(dirname "$0")/../.."
arch=${1:?usage: $0 amd64 | arm64}
[ "$arch" = "$(dpkg --print-architecture)" ] || {
    echo "$0 $arch: the wheel is built for this machine's architecture, $(dpkg --print-architecture)" >&2
    exit 2
}
start=$(date +%s)
PATH="$PWD/target/python/bin:$PATH"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
time=$(git log -1 --format=%ct)
rm -rf dist
mkdir -p dist

took() { echo "$1: $(($(date +%s) - start)) s" >&2; }
web() { web/build.sh >target/web.log 2>&1 && took "page in the browser"; }
web &
web=$!
trap 'kill $web 2>/dev/null || true' EXIT
scripts/package/deb.sh "$arch"
scripts/package/tarball.sh "$arch"
took "package and archive"
python/wheel.sh "target/package/$arch/paceline"
took wheel
mdbook build
scripts/check/site_links.py
wait $web || { cat target/web.log >&2; exit 1; }
trap - EXIT
rm -rf target/site/try
cp -R target/web target/site/try

cp target/wheels/paceline-*.whl target/package/paceline_*_"$arch".deb packaging/Containerfile dist/
cp "target/package/paceline-$version-linux-$arch.tar.gz" dist/
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w --mtime="@$time" \
    --transform "s,^site,paceline-$version-site," -C target -c site | gzip -9n >"dist/paceline-$version-site.tar.gz"
case $arch in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; esac
scripts/package/sbom.py "dist/paceline-$version.cdx.json" "paceline-cli:$machine-unknown-linux-musl:static" \
    "paceline-py:$machine-unknown-linux-gnu" paceline-web:wasm32-unknown-unknown
(cd dist && LC_ALL=C sha256sum -- * >../target/SHA256SUMS && mv ../target/SHA256SUMS .)
took release
ls -l dist
