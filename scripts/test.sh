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
if [ $# -eq 0 ]; then
    set -- --workspace
fi
cargo test "$@" --no-fail-fast
