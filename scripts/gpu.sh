#!/usr/bin/env bash
# Builds test binaries here and packs them for a machine that has a GPU but no Rust.
#
#   scripts/gpu.sh [-o folder] [-r] [backend ...]     (default: target/gpu; cuda opencl vulkan wgpu)
#
# Packs every test binary of `backend-<name>`, stripped, with its golden files, and the runner
# `run.sh`, which runs them there and prints one table. -r builds with the release profile.
set -euo pipefail
cd "$(dirname "$0")/.."

out=target/gpu profile=()
while getopts o:r option; do
    case $option in
    o) out=$OPTARG ;;
    r) profile=(--release) ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
backends=("$@")
[ $# -gt 0 ] || for name in cuda opencl vulkan wgpu; do
    [ -d "backend-$name" ] && backends+=("$name")
done

mkdir -p "$out"
cp scripts/gpu-run.sh "$out/run.sh"
for name in "${backends[@]}"; do
    rm -rf "${out:?}/$name"
    mkdir -p "$out/$name"
    # cargo prints: Executable tests/device.rs (target/debug/deps/device-0123456789abcdef)
    cargo test "${profile[@]}" -p "backend-$name" --tests --no-run 2>&1 | tee /dev/stderr |
        sed -nE 's/^ *Executable (unittests )?([^ ]+) \((.*)\)$/\2 \3/p' |
        while read -r source binary; do
            test=$(basename "$source" .rs)
            strip -o "$out/$name/$test" "$binary"
        done
    # Paths of golden files are those of this checkout; the runner recreates them.
    mkdir -p "$out/$name/files"
    cp -r "backend-$name/tests/snapshots" "$out/$name/files/" 2>/dev/null || true
done
pwd >"$out/checkout"
du -sh "$out"
