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
    selected=--workspace
    case " $* " in *" -p "* | *" --package"* | *" --workspace "*) selected= ;; esac
    exec cargo test $selected "$@" --no-fail-fast
fi

status=0
cargo test --workspace --no-fail-fast || status=$?

# The rest runs binaries of that same build once more: `cargo test -p` would compile half of the
# workspace again for each package, because features are unified over what is selected.
binaries=$(cargo test --workspace --no-run --message-format=json-render-diagnostics |
    sed -nE 's|.*"manifest_path":"([^"]*)/Cargo.toml".*"executable":"([^"]*)".*|\1 \2|p')

# again PACKAGE TEST [ARGUMENT ...]: the tests TEST of PACKAGE in the environment of the caller.
again() {
    local package=$1 test=$2 folder binary
    shift 2
    read -r folder binary < <(grep -E "/$package [^ ]*/$test-[0-9a-f]+$" <<<"$binaries") || {
        echo "test.sh: the build has no tests '$test' of $package" >&2
        status=1
        return
    }
    (cd "$folder" && ${runner-} "$binary" --quiet "$@") || status=$?
}

# The validation layer, where it is installed, must have nothing to tell.
echo "test.sh: backend-vulkan with the validation layer"
for test in backend_vulkan device; do
    ZYX_VULKAN_VALIDATION=1 again backend-vulkan "$test"
done
# Devices with nothing optional: two dtypes, without the matrix of operations, which is made of
# what the other cases compute. Everything with ZYX_FULL=1.
few=(DType__F16 DType__F32 --skip matrix)
[ "${ZYX_FULL-0}" != 1 ] || few=()
for floor in ZYX_OPENCL ZYX_VULKAN ZYX_WGPU; do
    api=${floor#ZYX_}
    echo "test.sh: backend-${api,,} with $floor=minimal"
    export "$floor=minimal"
    again "backend-${api,,}" conformance "${few[@]}"
    unset "$floor"
done
# The CPU backend takes the best instruction set there is; the others must be as right.
for level in avx2 portable; do
    echo "test.sh: the CPU backend with ZYX_CPU=$level"
    ZYX_CPU=$level again backend-cpu conformance
done
# A processor with nothing beyond SSE2, emulated; slow, so a few cases of one dtype.
if command -v qemu-x86_64 >/dev/null 2>&1; then
    echo "test.sh: the CPU backend on an emulated processor without AVX"
    runner="qemu-x86_64 -cpu qemu64" again backend-cpu conformance \
        {matmul::shapes,reduce::axes,window::convolution,elementwise::binary}::dtype_12_DType__F32
else
    echo "skipped: a processor without AVX (no qemu-x86_64)"
fi
# 64-bit Arm, emulated: minutes of compiling, so only where everything is asked for.
if [ "${ZYX_FULL-0}" = 1 ]; then
    scripts/test-aarch64.sh || status=$?
fi
exit $status
