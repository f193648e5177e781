#!/bin/sh
# rustc for packages (RUSTC_WRAPPER of scripts/package/environment.sh): maps the paths of the build away, also
# for build scripts and macros. RUSTFLAGS reach neither of these where cargo has a `--target`, and are
# handed to every build script with the folder's name in them.
exec "$@" "--remap-path-prefix=$PACELINE_SOURCES=/paceline" "--remap-path-prefix=$PACELINE_TARGET=/target" \
    "--remap-path-prefix=$PACELINE_CARGO_HOME=/cargo" "--remap-path-prefix=$PACELINE_SYSROOT=/rust"
