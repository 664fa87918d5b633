#!/usr/bin/env bash
# Runs what scripts/gpu.sh packed, on a machine with a GPU, and prints one table:
# backend, test binary, passed, failed, skipped, seconds.
#
#   ./run.sh [-j] [-t seconds] [-l folder] [backend[/binary] ...]     (default: all that is packed)
#
# `cuda` runs PTX that the driver assembles; `cuda-c` runs `conformance` (the suite and the ladder of
# random programs) and `device` of the same binaries through CUDA C and NVRTC.
# -t limits each binary (default 300), -l keeps the logs, -j runs all binaries at once. Skipped are
# tests that passed because they announced that there is no device. NVIDIA's OpenCL and Vulkan
# drivers are made known first where they are not registered, and the packed Vulkan loader and NVRTC
# are used where the machine has none.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

limit=300 logs=$(mktemp -d) together=""
while getopts jt:l: option; do
    case $option in
    j) together=1 ;;
    t) limit=$OPTARG ;;
    l) logs=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
mkdir -p "$logs"

# Golden files are read from the checkout the binaries were built in.
checkout=$(cat "$here/checkout")
for files in "$here"/*/files; do
    name=$(basename "$(dirname "$files")")
    mkdir -p "$checkout/backend-$name/tests"
    cp -r "$files/." "$checkout/backend-$name/tests/"
done

# NVIDIA's OpenCL driver comes with the CUDA driver but is not always registered.
if ! grep -qs libnvidia-opencl /etc/OpenCL/vendors/*.icd; then
    driver=$(ldconfig -p 2>/dev/null | sed -n 's/.*libnvidia-opencl\.so.* => //p' | head -1)
    [ -n "$driver" ] || driver=$(find /usr /opt -name 'libnvidia-opencl.so.1' 2>/dev/null | head -1)
    if [ -n "$driver" ] && mkdir -p /etc/OpenCL/vendors 2>/dev/null; then
        echo "$driver" >/etc/OpenCL/vendors/nvidia.icd
    fi
fi

nvidia=/usr/local/nvidia driver=$nvidia/share/vulkan/icd.d/nvidia_icd.json
if [ -z "${VK_DRIVER_FILES-}" ] && [ -f "$driver" ] && ! ls /usr/share/vulkan/icd.d/nvidia* >/dev/null 2>&1; then
    export VK_DRIVER_FILES=$driver
fi
if ! ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so'; then
    for package in "$here"/*.deb; do
        [ ! -f "$package" ] || dpkg-deb -x "$package" "$here/loader"
    done
    LD_LIBRARY_PATH=$here/loader/usr/lib/$(uname -m)-linux-gnu:$nvidia/lib64:$nvidia/lib:${LD_LIBRARY_PATH-}
    export LD_LIBRARY_PATH
fi
if [ -z "${ZYX_NVRTC-}" ] && ls "$here"/libnvrtc.so.* >/dev/null 2>&1; then
    export ZYX_NVRTC=$here
fi

chosen=("$@")
[ $# -gt 0 ] || for dir in "$here"/*/files; do
    chosen+=("$(basename "$(dirname "$dir")")")
    [ "${chosen[-1]}" != cuda ] || chosen+=(cuda-c)
done

# Runs a binary; leaves its row of the table and the names of what failed beside the log.
run() {
    local backend=$1 binary=$2 test log start=$SECONDS status passed failed skipped note=""
    test=$(basename "$binary") log=$logs/$backend-$(basename "$binary").log
    [ "$backend" != cuda-c ] || local -x ZYX_CUDA=nvrtc
    (cd "$checkout/backend-${backend%-c}" && timeout "$limit" "$binary" >"$log" 2>&1)
    status=$?
    passed=$(grep -c '^test .* ok$' "$log")
    failed=$(grep -cE '^test .* FAILED$' "$log")
    skipped=$(grep -c '^skipped ' "$log")
    [ $status -ne 124 ] || note=" timed out"
    [ $status -eq 0 ] || [ $status -eq 101 ] || [ $status -eq 124 ] || note=" status $status"
    printf '%-8s %-14s %7d %7d %7d %7d%s\n' "$backend" "$test" \
        $((passed - (skipped < passed ? skipped : passed))) "$failed" "$skipped" \
        $((SECONDS - start)) "$note" >"$log.row"
    sed -nE "s/^test (.*) \.\.\. FAILED$/$backend $test: \1/p" "$log" >"$log.failed"
}

rows=()
for choice in "${chosen[@]}"; do
    backend=${choice%%/*}
    case $choice in
    cuda-c) binaries=("$here"/cuda/{conformance,device}) ;;
    cuda-c/*) binaries=("$here/cuda/${choice#*/}") ;;
    */*) binaries=("$here/$choice") ;;
    *) binaries=("$here/$choice"/*) ;;
    esac
    for binary in "${binaries[@]}"; do
        [ -f "$binary" ] || continue
        rows+=("$logs/$backend-$(basename "$binary").log")
        if [ -n "$together" ]; then run "$backend" "$binary" & else run "$backend" "$binary"; fi
    done
done
wait
printf '%-8s %-14s %7s %7s %7s %7s\n' backend tests passed failed skipped seconds
for log in "${rows[@]}"; do cat "$log.row"; done
for log in "${rows[@]}"; do [ ! -s "$log.failed" ] || sed 's/^/failed: /' "$log.failed"; done
