#!/bin/sh
# Installs the tools from crates.io that make packages into target/tools/bin, unless they are in PATH.
set -eu
cd "$(dirname "$0")/../.."
PATH="$PWD/target/tools/bin:$HOME/.cargo/bin:$PATH"
for tool in cargo-deb@3.6.2 cargo-cyclonedx@0.5.8; do
    command -v "${tool%@*}" >/dev/null || cargo install --quiet --locked --root target/tools "$tool"
done
