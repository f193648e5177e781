# The environment in which program, extension module and page are built for hand-out, read by build.sh,
# python/wheel.sh and web/build.sh from the repository's root. The first two compile the same crates for
# the host (build scripts, procedural macros) with the same flags, and so share them. Two builds in different
# folders give the same bytes: the time is that of the commit, and paths of the build are mapped away, by
# rustc.sh and CFLAGS.
PATH="$PWD/target/python/bin:$HOME/.cargo/bin:$PATH"
target_dir=$(scripts/package/target_dir.sh)
cargo_home=${CARGO_HOME:-$HOME/.cargo}
maps="-ffile-prefix-map=$PWD=/paceline -ffile-prefix-map=$target_dir=/target -ffile-prefix-map=$cargo_home=/cargo"
# Without git's history, 1980-01-01: the earliest time in a wheel (ZIP).
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 315532800)
PACELINE_SYSROOT=$(rustc --print sysroot)
export SOURCE_DATE_EPOCH PACELINE_SYSROOT
export PACELINE_SOURCES="$PWD" PACELINE_TARGET="$target_dir" PACELINE_CARGO_HOME="$cargo_home"
export RUSTC_WRAPPER="$PWD/scripts/package/rustc.sh"
