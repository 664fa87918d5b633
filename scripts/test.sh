#!/usr/bin/env bash
# Runs every test on every device that can be had on this machine.
#
#   scripts/test.sh [cargo test arguments, as -p zyx-backend-cpu or -p zyx-data --features image]
#
# Installs drivers for CPUs (OpenCL, Vulkan) where the system allows it. Devices and tools named in
# ZYX_REQUIRE must be present; unset, it names the interpreter, the CPU, and each API whose driver
# could be installed, `nvrtc`, `cc` and `spirv-val` likewise; all of them in CI (CI=true). ZYX_LANES test binaries run at once, as many as there are cores if unset.
# ZYX_FULL=1 leaves nothing out that would take long: the emulated processors are then required. Otherwise
# suites on devices that compile slowly run a sample of their cases, which ZYX_SAMPLE=n chooses (unset, the day).
# A test binary that takes longer than ZYX_LIMIT (unset, 15 minutes) fails.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/absent.sh

require=reference,cpu
for api in opencl vulkan; do
    if scripts/install-drivers.sh "$api" || is_required "$api"; then
        require=$require,$api
        # wgpu runs on the Vulkan driver.
        [ "$api" != vulkan ] || require=$require,wgpu
    else
        echo "test.sh: no $api driver could be installed; its tests skip themselves by name" >&2
    fi
done
# No GPU is needed to see whether what the CUDA backend writes compiles.
if scripts/install-drivers.sh nvrtc || is_required nvrtc; then
    require=$require,nvrtc
else
    echo "test.sh: no NVRTC could be installed; CUDA sources are not compiled" >&2
fi
# The standard's tests of operators.
if scripts/install-drivers.sh onnx || is_required onnx; then
    require=$require,onnx
    export ZYX_ONNX_NODES=${XDG_CACHE_HOME:-$HOME/.cache}/zyx/onnx/nodes
else
    echo "test.sh: the tests of ONNX could not be had; they skip themselves" >&2
fi
# Rust links with it; libraries that stand in for broken drivers are built with it.
if command -v cc >/dev/null 2>&1 || is_required cc; then
    require=$require,cc
fi
# Comes with the drivers of Vulkan.
if command -v spirv-val >/dev/null 2>&1 || is_required spirv-val; then
    require=$require,spirv-val
fi
export ZYX_REQUIRE=${ZYX_REQUIRE-$require}
export RUST_BACKTRACE=${RUST_BACKTRACE-0}
echo "test.sh: required devices: $ZYX_REQUIRE"
# Everything that default builds leave out, and every backend. Features only add.
features=examples/text,examples/onnx,zyx/image,zyx/regex,zyx/trace
for backend in cpu opencl cuda vulkan wgpu; do features+=,zyx/$backend; done
if [ $# -gt 0 ]; then
    selected="--workspace --features $features"
    case " $* " in *" -p "* | *" --package"* | *" --workspace "*) selected= ;; esac
    # Words are options.
    # shellcheck disable=SC2086
    exec cargo test $selected "$@" --no-fail-fast
fi

lanes=${ZYX_LANES:-$(nproc)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work
status=0
# As cargo sets it for the tests it runs: those of procedural macros are linked with Rust's library.
LD_LIBRARY_PATH=$(rustc --print target-libdir)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

# Every test binary as "package folder/test name|binary". One build serves all that follows, and
# leaves examples/devices with every backend: `cargo test -p` would compile half of the workspace
# again for each package, because features are unified over what is selected.
cargo test --workspace --features "$features" --no-run --message-format=json-render-diagnostics >"$work/build"
sed -nE '/"profile":\{[^}]*"test":true\}/ s#.*"manifest_path":"([^"]*)/Cargo.toml".*"name":"([^"]*)","src_path".*"executable":"([^"]*)".*#\1/\2|\3#p' \
    "$work/build" >"$work/binaries"

# job NAME ENVIRONMENT ARGUMENT ..: one line of the queue, the test NAME ("backend-cpu/stream") with
# more variables and a launcher before it. A name that the build does not have is a failure.
job() {
    local name=$1 environment=$2 binary
    shift 2
    binary=$(grep "/$name|" "$work/binaries") || {
        echo "test.sh: the build has no test '$name'" >&2
        status=1
        return
    }
    echo "$name|${binary#*|}|$environment|$*" >>"$work/queue"
}

# sample API TEST: a part of the names of a conformance suite, in a file. Of each case with dtypes three of: bool, f32,
# f64, one of the halves, one of the integers of 8 and 16 bits, and one of 32 and 64; the others on the next day, and on
# another API. Of the cases that take longest without a dtype: those of one API of three.
apis=(opencl wgpu vulkan)
sample() {
    local binary
    binary=$(grep "/$2|" "$work/binaries") || return 0
    "${binary#*|}" --list --format terse | sed -n 's/: test$//p' |
        awk -v sample="$ZYX_SAMPLE" -v api="$1" -v apis="${apis[*]}" '
        BEGIN {
            n = count = heavy = 0
            three = split(apis, names)
            for (i = 1; i <= three; i++) if (names[i] == api) turn = i
            split("checked indices::all fourier::transforms functional::values gradient::layers gradient_ops::ordered gradient_ops::places", names)
            for (i in names) long["conformance::" names[i]]
        }
        {
            dtype = test = $0
            if (test in long) { if ((heavy++ + sample + turn) % three == 0) print; next }
            if (!sub(/.*::dtype_[0-9]+_DType__/, "", dtype)) { print; next }
            sub(/::dtype_.*/, "", test)
            class = dtype
            if (dtype ~ /^B?F16$/) class = "half"
            else if (dtype ~ /^[UI](8|16)$/) class = "narrow"
            else if (dtype ~ /^[UI]/) class = "wide"
            if (!(test in cases)) cases[test] = count++
            class = test " " class
            if (!(class in members)) { classes[n] = class; offset[n++] = cases[test] + sample }
            tests[class, members[class]++] = $0
        }
        END {
            for (i = 0; i < n; i++) {
                if ((offset[i] + i + turn) % 2) continue
                print tests[classes[i], int(offset[i] / 2) % members[classes[i]]]
            }
        }' >"$work/sample-$1"
    echo "@$work/sample-$1"
}

# Runs one line of the queue in its package's folder; what it prints appears in one piece. `@FILE` stands for the exact
# names of tests in a file.
run_job() {
    local binary name environment arguments log names= rc=0
    IFS='|' read -r name binary environment arguments <<<"$1"
    local TIMEFORMAT='%R s, %U s of processor time' took
    log=$(mktemp -p "$work")
    [[ $arguments != @* ]] || names="--exact $(<"${arguments#@}")"
    # Words of both are options and names of tests, none with a space.
    # shellcheck disable=SC2086
    took=$({ time timeout --kill-after=10 "${ZYX_LIMIT-15m}" env -C "${name%/*}" $environment "$binary" ${names:-$arguments} >"$log" 2>&1; } 2>&1) || rc=$?
    # A filter that matches nothing is a mistake, which libtest does not call one.
    [ -z "$arguments" ] || ! grep -q '^running 0 tests' "$log" || rc=1
    exec 9>"$work/lock"
    flock 9
    echo "     Running $name ($environment $arguments): $took"
    cat "$log"
    rm "$log"
    # The statuses of `timeout`, whose binary has printed the tests that ended.
    [[ $rc != 124 && $rc != 137 ]] || echo "test.sh: $name took longer than ${ZYX_LIMIT-15m}"
    [ $rc = 0 ] || echo "$name ($environment $arguments)" >>"$work/failed"
    return $rc
}
export -f run_job

# What takes longest comes first, so that no lane waits for it at the end. A driver for CPUs
# compiles in one thread: each of these keeps a core busy.
#
# Mesa's driver for CPUs compiles in half the time for vectors of 128 bits, and in four fifths of
# that without LLVM's passes; programs and cases of F32 have it as it is.
mesa="LP_NATIVE_VECTOR_WIDTH=128 GALLIVM_PERF=nopt"
export ZYX_SAMPLE=${ZYX_SAMPLE-$(($(date +%s) / 86400))}
echo "test.sh: conformance on OpenCL, wgpu and Vulkan: ZYX_SAMPLE=$ZYX_SAMPLE"
for api in "${apis[@]}"; do
    cases=
    [ "${ZYX_FULL-0}" = 1 ] || cases=$(sample "$api" "backend-$api/conformance")
    environment=$mesa
    [ "$api" != opencl ] || environment=
    job "backend-$api/conformance" "$environment" $cases
done
job backend-vulkan/conformance "" --quiet ladder \
    {elementwise::unary,matmul::shapes,reduce::axes,movement::compositions,index::gather}::dtype_12_DType__F32
# Devices with nothing optional, of one API of three: of the cases there are by dtype those of F16 or F32, without what
# compiles for minutes and is made of what the other cases compute. Everything with ZYX_FULL=1.
few=(--quiet --skip matrix --skip ladder --skip functional) minimal=("${apis[ZYX_SAMPLE % ${#apis[@]}]}")
other=(F16 F32)
for dtype in Bool U I BF16 F64 "${other[ZYX_SAMPLE / ${#apis[@]} % 2]}"; do few+=(--skip "DType__$dtype"); done
[ "${ZYX_FULL-0}" != 1 ] || few=(--quiet) minimal=("${apis[@]}")
for api in "${minimal[@]}"; do
    job "backend-$api/conformance" "ZYX_${api^^}=minimal $mesa" "${few[@]}"
done
# A processor with nothing beyond SSE2, emulated; slow, so a few cases of one dtype. Not a part of
# every run: ZYX_FULL=1 installs and requires the emulator.
[ "${ZYX_FULL-0}" != 1 ] || scripts/install-drivers.sh qemu || status=1
if command -v qemu-x86_64 >/dev/null 2>&1; then
    # `env` is what starts the emulator.
    job backend-cpu/conformance "qemu-x86_64 -cpu qemu64" --quiet \
        {matmul::shapes,reduce::axes,window::convolution,elementwise::binary}::dtype_12_DType__F32
else
    echo "skipped: a processor without AVX (no qemu-x86_64)"
fi
# The CPU backend takes the best instruction set there is; the others must be as right (blocks are in `portable`).
! grep -qw avx512f /proc/cpuinfo || job backend-cpu/conformance ZYX_CPU=avx2 --quiet
# Without machine code the CPU runs what a processor of another family would.
cases=
[ "${ZYX_FULL-0}" = 1 ] || cases=$(sample cpu backend-cpu/portable)
job backend-cpu/portable "" $cases
# The validation layer, where it is installed, must have nothing to tell.
for test in zyx_backend_vulkan device; do
    job "backend-vulkan/$test" "ZYX_VULKAN_VALIDATION=1 $mesa"
done
job backend-wgpu/device "$mesa"
# Operators of ONNX run on the CPU; elsewhere some, and all with ZYX_FULL=1.
only=ZYX_ONNX_ONLY=reduce,test_conv_,softmax,gather,slice,layer_norm
[ "${ZYX_FULL-0}" != 1 ] || only=
for api in opencl vulkan; do
    job zyx/onnx "ZYX_DEVICE=$api $mesa $only"
done
# onnxruntime's operators: some; scripts/nightly.sh runs all.
[ -z "${ZYX_ONNX_NODES-}" ] || job zyx/onnx "ZYX_ONNX_NODES=${ZYX_ONNX_NODES%/nodes}/contrib ZYX_ONNX_ONLY=QLinear,Attention,Tree,GroupNorm"
# All others, first those that take minutes.
grep -vE '/backend-((opencl|vulkan|wgpu)/conformance|vulkan/(zyx_backend_vulkan|device)|wgpu/device|cpu/portable)\|' "$work/binaries" |
    sed -E "s#^$PWD/([^|]*)#\1#; s#\$#||#" >"$work/rest"
minutes='^(zyx-core/zyx_core|zyx-ir/zyx_ir|backend-cuda/nvrtc|tests/(sizes|floor)|backend-cpu/conformance|backend-opencl/device)\|'
grep -E "$minutes" "$work/rest" >>"$work/queue"
grep -vE "$minutes" "$work/rest" >>"$work/queue"

# Models that were exported are run by another runtime afterwards.
export ZYX_ONNX_EXPORT=$work/exported
mkdir "$ZYX_ONNX_EXPORT"

xargs -d '\n' -n 1 -P "$lanes" bash -c 'run_job "$1"' run_job <"$work/queue" || status=1
if [ -n "${ZYX_ONNX_NODES-}" ]; then
    PYTHONPATH=${ZYX_ONNX_NODES%/nodes}/python python3 scripts/onnx_export.py "$ZYX_ONNX_EXPORT" || status=1
fi
cargo test --workspace --features "$features" --doc --no-fail-fast || status=$?
# 64-bit Arm and Windows, emulated, in full.
if [ "${ZYX_FULL-0}" = 1 ]; then
    ZYX_REQUIRE=$ZYX_REQUIRE,aarch64 scripts/test-aarch64.sh || status=$?
    ZYX_REQUIRE=$ZYX_REQUIRE,windows scripts/test-windows.sh || status=$?
fi
if [ -s "$work/failed" ]; then
    echo "test.sh: failed:"
    cat "$work/failed"
fi
exit $status
