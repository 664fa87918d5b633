#!/usr/bin/env bash
# Runs what scripts/gpu.sh packed, on a machine with a GPU, and prints one table:
# backend, test binary, passed, failed, skipped, seconds.
#
#   ./run.sh [-t seconds] [-l folder] [backend[/binary] ...]
#
# -t limits each binary (default 300), -l keeps the logs. Skipped are tests that passed because
# they announced that there is no device. A CUDA library folder that pip installed, and NVIDIA's
# OpenCL driver where it is not registered, are found and made known first.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

limit=300 logs=$(mktemp -d)
while getopts t:l: option; do
    case $option in
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

chosen=("$@")
[ $# -gt 0 ] || for dir in "$here"/*/files; do chosen+=("$(basename "$(dirname "$dir")")"); done

table=$(printf '%-8s %-14s %7s %7s %7s %7s' backend tests passed failed skipped seconds)
failed_names=""
for choice in "${chosen[@]}"; do
    backend=${choice%%/*}
    binaries=("$here/$choice")
    [ "$choice" != "$backend" ] || binaries=("$here/$backend"/*)
    for binary in "${binaries[@]}"; do
        [ -f "$binary" ] || continue
        test=$(basename "$binary") log=$logs/$backend-$(basename "$binary").log
        start=$SECONDS
        (cd "$checkout/backend-$backend" && timeout "$limit" "$binary" >"$log" 2>&1)
        status=$?
        passed=$(grep -c '^test .* ok$' "$log")
        failed=$(grep -cE '^test .* FAILED$' "$log")
        skipped=$(grep -c '^skipped ' "$log")
        note=""
        [ $status -ne 124 ] || note=" timed out"
        [ $status -eq 0 ] || [ $status -eq 101 ] || [ $status -eq 124 ] || note=" status $status"
        table+=$(printf '\n%-8s %-14s %7d %7d %7d %7d%s' "$backend" "$test" \
            $((passed - (skipped < passed ? skipped : passed))) "$failed" "$skipped" \
            $((SECONDS - start)) "$note")
        failed_names+=$(sed -nE "s/^test (.*) \.\.\. FAILED$/$backend $test: \1/p" "$log" | sed 's/^/\n/')
    done
done
printf '%s\n' "$table"
[ -z "$failed_names" ] || printf 'failed:%b\n' "$failed_names"
