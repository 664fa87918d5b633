#!/usr/bin/env bash
# Runs every test on every device that can be had on this machine.
#
#   scripts/test.sh [cargo test arguments, as -p backend-cpu]
#
# Installs a CPU OpenCL driver where the system allows it. Devices named in ZYX_REQUIRE must be
# present; unset, it names the interpreter, the CPU, and OpenCL if its driver could be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

require=reference,cpu
if [ -x scripts/install-drivers.sh ]; then
    if scripts/install-drivers.sh; then
        require=$require,opencl
    else
        echo "test.sh: no OpenCL driver could be installed; its tests skip themselves by name" >&2
    fi
fi
export ZYX_REQUIRE=${ZYX_REQUIRE-$require}
export RUST_BACKTRACE=${RUST_BACKTRACE-0}
echo "test.sh: required devices: $ZYX_REQUIRE"
if [ $# -gt 0 ]; then
    exec cargo test "$@" --no-fail-fast
fi

status=0
cargo test --workspace --exclude backend-opencl --no-fail-fast || status=$?
cargo test -p backend-opencl --no-fail-fast -- --skip conformance --skip ladder || status=$?
# The OpenCL driver on the CPU takes about 0.15 s to compile a kernel, and the conformance suite
# has six thousand: all dtypes run elementwise, conversion and creation cases, f32 runs every case.
# ZYX_FULL=1 runs everything.
chosen=(conformance::elementwise conformance::create conformance::convert DType__F32)
if [ "${ZYX_FULL-0}" = 1 ]; then
    chosen=()
else
    echo "test.sh: OpenCL conformance is limited to: ${chosen[*]}"
fi
cargo test -p backend-opencl --test conformance --no-fail-fast -- --quiet "${chosen[@]}" || status=$?
# The CPU backend takes the best instruction set there is; the others must be as right.
for level in avx2 portable; do
    echo "test.sh: the CPU backend with ZYX_CPU=$level"
    ZYX_CPU=$level cargo test -p backend-cpu --test conformance --no-fail-fast -- --quiet || status=$?
done
exit $status
