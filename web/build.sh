#!/bin/sh
# Builds the simulator for a browser into target/web: the page of web/page and the WebAssembly of crates/web
# with its JavaScript module. The folder needs nothing but a server of static files.
set -eu
cd "$(dirname "$0")/.."
. scripts/package/environment.sh
wasm=wasm32-unknown-unknown

cargo build --locked --package paceline-web --target "$wasm" --profile browser
# Of the version of crates/web, which it checks. Built once.
cargo build --locked --release --manifest-path web/bindgen/Cargo.toml --target-dir "$target_dir/web-bindgen"

rm -rf target/web
mkdir -p target/web/wasm
cp -R web/page/. target/web/
"$target_dir/web-bindgen/release/paceline-web-bindgen" "$target_dir/$wasm/browser/paceline_web.wasm" target/web/wasm
bytes=$(tar -cf - -C target/web . | gzip -9 | wc -c)
echo "target/web: $((bytes / 1000)) kB compressed"
