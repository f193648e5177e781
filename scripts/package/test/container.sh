#!/bin/bash
# Builds packaging/Containerfile on a Debian 13 from Debian's registry, in place of a registry of images, and
# runs `paceline doctor` in the image. Root only. The registry is that of this machine's apt.
set -euo pipefail
cd "$(dirname "$0")/../../.."
scripts/setup.sh container-test
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | head -1)
work=$(mktemp -d)
trap 'buildah_here rm --all >/dev/null 2>&1 || true; rm -rf --one-file-system "$work"' EXIT
buildah_here() { buildah --storage-driver vfs --root "$work/storage" --runroot "$work/run" "$@"; }

mmdebstrap --quiet --variant=minbase trixie "$work/debian.tar" "$mirror"
base=$(buildah_here from scratch)
buildah_here add --quiet "$base" "$work/debian.tar" / >/dev/null
buildah_here commit --quiet "$base" localhost/debian >/dev/null
buildah_here bud --quiet --isolation chroot --network host --build-arg BASE=localhost/debian \
    -t localhost/paceline -f packaging/Containerfile target/package >/dev/null
image=$(buildah_here from localhost/paceline)
buildah_here run --isolation chroot "$image" -- /usr/bin/paceline doctor
echo "container: built and run"
