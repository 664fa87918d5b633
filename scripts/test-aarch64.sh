#!/usr/bin/env bash
# Builds the CPU backend for 64-bit Arm and runs a part of its tests under emulation.
#
#   scripts/test-aarch64.sh            the assembler, whole kernels against the interpreter, halves with and
#                                      without instructions for them, and the conformance suite in f32 and
#                                      i32 (half a minute to run, two to build)
#   ZYX_FULL=1 scripts/test-aarch64.sh the whole suite, that of halves also without instructions for them,
#                                      the library's own tests, and `digits`
#
# Needs a linker and an emulator (`scripts/install-drivers.sh aarch64`) and the target of the Rust
# toolchain, which rustup adds where the network allows it. Without them it fails in CI (CI=true) and
# where ZYX_REQUIRE has the word `aarch64`, and skips itself by name elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu

. scripts/absent.sh
. scripts/target-tests.sh
skip() {
    absent aarch64 "$1"
}
scripts/install-drivers.sh aarch64 || true
command -v aarch64-linux-gnu-gcc >/dev/null 2>&1 || skip "no aarch64-linux-gnu-gcc (apt-get install gcc-aarch64-linux-gnu)"
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || skip "no qemu-aarch64 (apt-get install qemu-user)"
[ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] ||
    timeout 120 rustup target add $target >/dev/null 2>&1 || skip "no standard library (rustup target add $target)"

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$emulator -L /usr/aarch64-linux-gnu"
# Of Armv8.0: no arithmetic in halves, no dot products. What is emulated otherwise has everything.
old=cortex-a72
# What the assembler for Arm encodes, against what binutils make of the same text.
cargo test --target $target -p zyx-backend-cpu --lib --test conformance --no-run
cargo test --target $target -p zyx-gemm --test contract --no-run
tests -p zyx-backend-cpu --lib -- --quiet --include-ignored jit::arm::asm::tests::
if [ "${ZYX_FULL-0}" = 1 ]; then
    cargo test --target $target -p zyx-backend-cpu -p zyx-gemm --no-fail-fast -- --quiet
    QEMU_CPU=$old tests -p zyx-backend-cpu --lib -- --quiet halves
    QEMU_CPU=$old tests -p zyx-backend-cpu --test conformance --no-fail-fast -- --quiet DType__F16
    exec cargo run --target $target --release --example digits
fi
tests -p zyx-backend-cpu --lib --no-fail-fast -- --quiet jit::tests::kernels jit::tests::halves jit::tests::system exec_memory::
QEMU_CPU=$old tests -p zyx-backend-cpu --lib -- --quiet jit::tests::halves
for processor in max $old; do
    QEMU_CPU=$processor tests -p zyx-gemm --test contract -- --quiet tiles_of_bf16 pairs_of_bf16 tiles_of_bytes
done
tests -p zyx-backend-cpu --test conformance --no-fail-fast -- --quiet DType__F32 DType__I32
