#!/usr/bin/env bash
# Type-checks the facade for systems that the tests do not run on, with the backends that they may
# have: browsers (wgpu), Windows (all) and macOS (CPU, OpenCL, wgpu).
#
#   scripts/check-targets.sh [target ...]
#
# Without arguments: browsers on one day and macOS on the next (ZYX_SAMPLE=n chooses, too), each backend once. macOS on x86-64 has
# only the CPU backend, whose code depends on the processor, and scripts/test-windows.sh compiles for Windows. ZYX_FULL=1
# checks every target with every backend.
#
# Needs the standard library of each target, which rustup fetches where the network allows it. A
# target without one is a failure in CI (CI=true) and where ZYX_REQUIRE has the word `targets`, and
# skipped by name elsewhere. Exit status 1 if a check fails.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/absent.sh

targets=("$@")
sampled=
if [ $# = 0 ]; then
    browsers=(wasm32-unknown-unknown) macos=({aarch64,x86_64}-apple-darwin)
    if [ "${ZYX_FULL-0}" = 1 ]; then
        targets=("${browsers[@]}" "${macos[@]}" x86_64-pc-windows-{msvc,gnu})
    elif [ $((${ZYX_SAMPLE-$(($(date +%s) / 86400))} % 2)) = 0 ]; then
        targets=("${browsers[@]}") sampled=1
    else
        targets=("${macos[@]}") sampled=1
    fi
fi

installed() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ]
}

backends() {
    case $1 in
    *-windows-*) echo cpu,opencl,cuda,vulkan,wgpu ;;
    x86_64-apple-*) if [ -n "$sampled" ]; then echo cpu; else echo cpu,opencl,wgpu; fi ;;
    *-apple-*) echo cpu,opencl,wgpu ;;
    *) echo wgpu ;;
    esac
}

status=0
for target in "${targets[@]}"; do
    if ! installed "$target" && ! timeout 120 rustup target add "$target" >/dev/null 2>&1; then
        if is_required targets; then
            echo "FAILED  target $target: its standard library is not installed, and rustup could not add it"
            status=1
        else
            echo "skipped target $target: its standard library is not installed"
        fi
        continue
    fi
    start=$SECONDS
    # The page of `examples/web` is nothing elsewhere.
    if cargo check -q --locked -p zyx --no-default-features --features "$(backends "$target")" --target "$target" &&
        { [[ $target != wasm32-* ]] || cargo check -q --locked -p zyx-web --target "$target"; }; then
        echo "ok      target $target: $(backends "$target") ($((SECONDS - start)) s)"
    else
        echo "FAILED  target $target"
        status=1
    fi
done
exit $status
