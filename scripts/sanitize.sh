#!/usr/bin/env bash
# Runs the test of memory safety (tests/tests/soundness.rs) under an address sanitizer.
#
#   scripts/sanitize.sh                 a few hundred cases
#   ZYX_CASES=100000 scripts/sanitize.sh   more of them; ZYX_SEED=n repeats one
#
# The sanitizer sees what Rust code does with memory: the library of contractions, the interpreter,
# views, buffers. Machine code that the CPU backend makes is not instrumented; there the canaries of
# the test are what finds a write outside, and an unmapped page what finds a read.
#
# Miri is not run: it needs a nightly toolchain, and it executes neither the machine code nor the
# system calls for memory that the CPU backend is made of.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(rustc -vV | sed -n 's/^host: //p')
runtime=$(rustc --print sysroot)/lib/rustlib/$target/lib
if ! ls "$runtime"/librustc*_rt.asan* >/dev/null 2>&1; then
    echo "sanitize.sh: failed: this toolchain has no address sanitizer for $target" >&2
    exit 1
fi

# The flag is an unstable one, which a stable compiler takes if it is told so. The standard library is
# not instrumented. Objects of their own, so that ordinary builds stay as they are.
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=address"
export CARGO_TARGET_DIR=${SANITIZE_TARGET_DIR:-target/sanitize}
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:abort_on_error=1}
cargo test --target "$target" -p zyx-tests --test soundness "$@"
