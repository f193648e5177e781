#!/bin/sh
# Makes the Debian package of an architecture: scripts/package/deb.sh amd64 | arm64 writes
# target/package/paceline_VERSION_ARCH.deb. The program contains its kernel programs.
set -eu
cd "$(dirname "$0")/../.."
PATH="$PWD/target/tools/bin:$HOME/.cargo/bin:$PATH"
arch=${1:?usage: $0 amd64 | arm64}
scripts/package/build.sh "$arch"
scripts/package/stage.sh "$arch"
scripts/package/tools.sh
case $arch in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; esac
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
cargo deb --quiet -p paceline-cli --no-build --no-strip --target "$machine-unknown-linux-musl" --output target/package
deb=$(ls -t target/package/paceline_*_"$arch".deb | head -1)
scripts/package/checksums.sh "$deb"
echo "$deb"
