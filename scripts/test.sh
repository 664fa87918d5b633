#!/usr/bin/env bash
# Runs every test on every device that can be had on this machine.
#
#   scripts/test.sh [cargo test arguments, as -p backend-cpu]
#
# Installs drivers for CPUs (OpenCL, Vulkan) where the system allows it. Devices named in
# ZYX_REQUIRE must be present; unset, it names the interpreter, the CPU, and each API whose driver
# could be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

require=reference,cpu
for api in opencl vulkan; do
    if scripts/install-drivers.sh "$api"; then
        require=$require,$api
        # wgpu runs on the Vulkan driver.
        [ "$api" != vulkan ] || require=$require,wgpu
    else
        echo "test.sh: no $api driver could be installed; its tests skip themselves by name" >&2
    fi
done
# No GPU is needed to see whether what the CUDA backend writes compiles.
if scripts/install-drivers.sh nvrtc; then
    require=$require,nvrtc
else
    echo "test.sh: no NVRTC could be installed; CUDA sources are not compiled" >&2
fi
export ZYX_REQUIRE=${ZYX_REQUIRE-$require}
export RUST_BACKTRACE=${RUST_BACKTRACE-0}
echo "test.sh: required devices: $ZYX_REQUIRE"
if [ $# -gt 0 ]; then
    exec cargo test "$@" --no-fail-fast
fi

status=0
cargo test --workspace --exclude backend-vulkan --no-fail-fast || status=$?
# The validation layer, where it is installed, must have nothing to tell.
ZYX_VULKAN_VALIDATION=1 cargo test -p backend-vulkan --no-fail-fast -- --skip conformance --skip ladder || status=$?
cargo test -p backend-vulkan --test conformance --no-fail-fast -- --quiet || status=$?
# Devices with nothing optional: two dtypes, everything with ZYX_FULL=1.
floors=(DType__F16 DType__F32)
few=(DType__F32)
[ "${ZYX_FULL-0}" != 1 ] || floors=() few=()
cargo test -p backend-vulkan --test floors --no-fail-fast -- --quiet "${floors[@]}" || status=$?
for floor in ZYX_OPENCL ZYX_WGPU; do
    api=${floor#ZYX_}
    echo "test.sh: backend-${api,,} with $floor=minimal"
    env "$floor=minimal" cargo test -p "backend-${api,,}" --test conformance --no-fail-fast -- \
        --quiet "${few[@]}" || status=$?
done
# The CPU backend takes the best instruction set there is; the others must be as right.
for level in avx2 portable; do
    echo "test.sh: the CPU backend with ZYX_CPU=$level"
    ZYX_CPU=$level cargo test -p backend-cpu --test conformance --no-fail-fast -- --quiet || status=$?
done
# A processor with nothing beyond SSE2, emulated; slow, so a few cases of one dtype.
if command -v qemu-x86_64 >/dev/null 2>&1; then
    echo "test.sh: the CPU backend on an emulated processor without AVX"
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="qemu-x86_64 -cpu qemu64" \
        cargo test -p backend-cpu --test conformance --no-fail-fast -- --quiet \
        {matmul::shapes,reduce::axes,window::convolution,elementwise::binary}::dtype_12_DType__F32 || status=$?
fi
exit $status
