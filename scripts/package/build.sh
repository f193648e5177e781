#!/bin/sh
# Builds the program for packages: scripts/package/build.sh amd64 | arm64 writes target/package/ARCH/paceline.
#
# The program is linked with musl and with libbpf, libelf and zlib of the crate libbpf-sys, so that one file
# runs on every Linux of its processor. Two builds in different folders give the same bytes
# (scripts/package/reproducible.sh, environment.sh).
set -eu
cd "$(dirname "$0")/../.."
usage="usage: $0 amd64 | arm64"
case ${1:?$usage} in
amd64) machine=x86_64 ;;
arm64) machine=aarch64 ;;
*) echo "$usage" >&2; exit 2 ;;
esac
scripts/setup.sh "package-$1"
. scripts/package/environment.sh
target=$machine-unknown-linux-musl
rustup target list --installed | grep -qx "$target" || rustup target add "$target"
out=$PWD/target/package/$1
mkdir -p "$out/include"

# Headers of the kernel, which musl does not bring, and what elfutils needs beyond musl.
ln -sfn /usr/include/linux "$out/include/linux"
ln -sfn /usr/include/asm-generic "$out/include/asm-generic"
asm=/usr/include/$machine-linux-gnu/asm
[ -e "$asm" ] || asm=/usr/$machine-linux-gnu/include/asm
ln -sfn "$asm" "$out/include/asm"
cp scripts/package/musl/argp.h "$out/include/argp.h"

case $1 in
amd64) compiler=musl-gcc linker=$machine-linux-gnu-gcc flags= ;;
arm64)
    # Debian has no cross-compiler for musl: GCC's for glibc takes musl's headers and libraries instead.
    sysroot=$out/musl
    specs=usr/lib/$machine-linux-musl/musl-gcc.specs
    if [ ! -e "$sysroot/$specs" ]; then
        . /etc/os-release
        mmdebstrap --quiet --variant=extract --architectures=arm64 --include=musl-dev "$VERSION_CODENAME" "$sysroot"
        sed -i "s#/usr/\(include\|lib\)/#$sysroot&#g" "$sysroot/$specs"
    fi
    # GCC's functions for atomics are in its own library, which Rust does not link.
    compiler=$out/cc linker=$machine-linux-gnu-gcc flags=-mno-outline-atomics
    printf '#!/bin/sh\nexec %s-linux-gnu-gcc "$@" -specs %s\n' "$machine" "$sysroot/$specs" >"$compiler"
    chmod +x "$compiler"
    ;;
esac

name=$(echo "$target" | tr - _)
capitals=$(echo "$name" | tr '[:lower:]' '[:upper:]')
export "CC_$name=$compiler" "CFLAGS_$name=-idirafter $out/include $maps${flags:+ $flags}"
export "CARGO_TARGET_${capitals}_LINKER=$linker"
# libelf uses none of these functions; elfutils' configure looks for them for its programs.
export ac_cv_search_argp_parse="none required"
export ac_cv_search_fts_close="none required"
export ac_cv_search__obstack_free="none required"
cargo build --profile dist --locked -p paceline-cli --features static --target "$target"
"$machine-linux-gnu-strip" -o "$out/paceline" "$target_dir/$target/dist/paceline"
