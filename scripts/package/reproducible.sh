#!/bin/sh
# Builds all of `make release` from the present commit in two clones in different folders, each from nothing,
# and compares the bytes: scripts/package/reproducible.sh amd64 | arm64. Of an architecture other than this
# machine's, program, package and archive are built. Packages and program are in target/package afterwards.
set -eu
cd "$(dirname "$0")/../.."
arch=${1:?usage: $0 amd64 | arm64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Both are clones of this one, so that work in this folder may go on.
git clone --quiet . "$work/sources"
for folder in first second/in-a-deeper-folder; do
    clone=$work/$folder results=$work/results-of-${folder%%/*}
    git clone --quiet "$work/sources" "$clone"
    mkdir "$results"
    if [ "$arch" = "$(dpkg --print-architecture)" ]; then
        (unset CARGO_TARGET_DIR && make --directory "$clone" release ARCH="$arch")
        cp "$clone/dist/"* "$results"
    else
        (unset CARGO_TARGET_DIR && "$clone/scripts/package/deb.sh" "$arch" && "$clone/scripts/package/tarball.sh" "$arch")
    fi
    cp "$clone/target/package/$arch/paceline" "$clone/target/package/"*.deb "$clone/target/package/"*.tar.gz "$results"
    rm -rf "$clone"
done
(cd "$work" && sha256sum results-of-*/*)
diff --recursive --brief "$work/results-of-first" "$work/results-of-second"
mkdir -p "target/package/$arch"
cp "$work/results-of-second/"*.deb "$work/results-of-second/"paceline-*-linux-*.tar.gz target/package/
cp "$work/results-of-second/paceline" "target/package/$arch/"
echo "reproducible: both builds are equal"
