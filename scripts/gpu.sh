#!/usr/bin/env bash
# Builds test binaries here and packs them for a machine that has a GPU but no Rust.
#
#   scripts/gpu.sh [-o folder] [-r] [backend ...]     (default: target/gpu; cuda opencl vulkan wgpu)
#
# Packs every test binary of `backend-<name>`, stripped, with its golden files, and the runner
# `run.sh`, which runs them there and prints one table. With cuda, NVRTC is packed if
# scripts/install-drivers.sh has installed it; with vulkan or wgpu, the packages of the Vulkan
# loader, where there is apt. -r builds with the release profile.
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
rm -f "$out"/*.deb
cp scripts/gpu-run.sh "$out/run.sh"
packages=()
for name in "${backends[@]}"; do
    rm -rf "${out:?}/$name"
    mkdir -p "$out/$name/files"
    # Paths of golden files are those of this checkout; the runner recreates them.
    cp -r "backend-$name/tests/snapshots" "$out/$name/files/" 2>/dev/null || true
    packages+=(-p "zyx-backend-$name")
done
# One build for all, so that what they share is compiled once. A line per binary: backend, test
# and file, from lines as {"package_id":"..backend-cuda#0.1.0",..,"executable":"/.."}.
cargo test "${profile[@]}" "${packages[@]}" --tests --no-run --message-format=json |
    sed -nE 's/.*"package_id":"[^"]*backend-([a-z]+)[#@][^"]*".*"executable":"([^"]+)".*/\1 \2/p' |
    while read -r name binary; do
        test=$(basename "$binary")
        strip -o "$out/$name/${test%-*}" "$binary"
    done
case " ${backends[*]} " in *" cuda "*)
    cp "${XDG_CACHE_HOME:-$HOME/.cache}"/zyx/nvrtc/nvidia/cu13/lib/libnvrtc{,-builtins}.so.* "$out" ||
        echo "gpu.sh: no NVRTC is packed; the row cuda-c needs one on the other machine" >&2
    ;;
esac
case " ${backends[*]} " in *" vulkan "* | *" wgpu "*)
    (cd "$out" && apt-get -qq download libvulkan1 libegl1 libglvnd0 libopengl0 libgl1 libglx0 libgles2) ||
        echo "gpu.sh: no Vulkan loader is packed; the other machine needs its own" >&2
    ;;
esac
pwd >"$out/checkout"
du -sh "$out"
