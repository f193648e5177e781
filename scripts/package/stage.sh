#!/bin/sh
# Collects the files of a package beside its program: scripts/package/stage.sh ARCH fills target/package/ARCH
# with manual pages, completions and the list of all crates (SBOM).
set -eu
cd "$(dirname "$0")/../.."
PATH="$HOME/.cargo/bin:$PATH"
arch=${1:?usage: $0 amd64 | arm64}
out=target/package/$arch
case $arch in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; esac
host=target/package/$(dpkg --print-architecture)
# The pages are written by the program itself, which has to run here.
[ -x "$host/paceline" ] || scripts/package/build.sh "$(dpkg --print-architecture)"
rm -rf "$out/man" "$out/completions"
mkdir -p "$out/completions"
"$host/paceline" man "$out/man"
"$host/paceline" completions bash >"$out/completions/paceline"
"$host/paceline" completions zsh >"$out/completions/_paceline"
"$host/paceline" completions fish >"$out/completions/paceline.fish"
scripts/package/sbom.py "$out/sbom.cdx.json" "paceline-cli:$machine-unknown-linux-musl:static"
