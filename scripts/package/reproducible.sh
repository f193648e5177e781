#!/bin/sh
# Builds program, Debian package and archive of an architecture from the present commit in two clones in
# different folders, each from nothing, and compares the bytes: scripts/package/reproducible.sh amd64 | arm64.
# The packages are in target/package afterwards.
set -eu
cd "$(dirname "$0")/../.."
arch=${1:?usage: $0 amd64 | arm64}
scripts/package/tools.sh
PATH="$PWD/target/tools/bin:$PATH"
export PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Both are clones of this one, so that work in this folder may go on.
git clone --quiet . "$work/sources"
for folder in first second/in-a-deeper-folder; do
    clone=$work/$folder results=$work/results-of-${folder%%/*}
    git clone --quiet "$work/sources" "$clone"
    (unset CARGO_TARGET_DIR && "$clone/scripts/package/deb.sh" "$arch" && "$clone/scripts/package/tarball.sh" "$arch")
    mkdir "$results"
    cp "$clone/target/package/$arch/paceline" "$clone/target/package/"*.deb "$clone/target/package/"*.tar.gz "$results"
    rm -rf "$clone"
done
(cd "$work" && sha256sum results-of-*/*)
diff --recursive --brief "$work/results-of-first" "$work/results-of-second"
mkdir -p "target/package/$arch"
cp "$work/results-of-second/"*.deb "$work/results-of-second/"*.tar.gz target/package/
cp "$work/results-of-second/paceline" "target/package/$arch/"
echo "reproducible: both builds are equal"
