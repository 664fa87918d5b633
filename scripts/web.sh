#!/usr/bin/env bash
# Builds the page of `examples/web` into target/web, ready to be served by anything that serves files.
#
#   scripts/web.sh && python3 -m http.server -d target/web
#
# Needs the target wasm32-unknown-unknown (rustup target add) and `wasm-bindgen` of the version that
# Cargo.lock names (cargo install wasm-bindgen-cli --version ...).
set -euo pipefail
cd "$(dirname "$0")/.."
out=target/web
cargo build --profile web -p zyx-web --target wasm32-unknown-unknown --target-dir target/wasm
rm -rf "$out"
wasm-bindgen --target web --no-typescript --out-dir "$out" target/wasm/wasm32-unknown-unknown/web/zyx_web.wasm
mkdir "$out/data"
cp examples/web/index.html examples/web/main.js "$out"
cp -r examples/data/*-ubyte examples/data/tiny-bert "$out/data"
echo "$out: $(gzip -9 -c "$out/zyx_web_bg.wasm" | wc -c) bytes of WebAssembly compressed"
