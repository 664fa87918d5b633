#!/usr/bin/env bash
# Builds the CPU backend for Windows and runs a part of its tests under Wine.
#
#   scripts/test-windows.sh            the conformance suite in f32, executable memory, the encoder and
#                                      what Windows expects of generated code (a minute in all)
#   ZYX_FULL=1 scripts/test-windows.sh the whole suite, the tests of contractions, of the core and of saved
#                                      files, and `digits`
#
# Needs a compiler for Windows and Wine (`scripts/install-drivers.sh windows`) and the target of the Rust
# toolchain, which rustup adds where the network allows it. Without them it fails in CI (CI=true) and
# where ZYX_REQUIRE has the word `windows`, and skips itself by name elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
target=x86_64-pc-windows-gnu

. scripts/absent.sh
. scripts/target-tests.sh
skip() {
    absent windows "$1"
}
scripts/install-drivers.sh windows || true
command -v x86_64-w64-mingw32-gcc >/dev/null 2>&1 || skip "no x86_64-w64-mingw32-gcc (apt-get install gcc-mingw-w64-x86-64)"
wine=$(command -v wine || command -v wine64) || skip "no wine (apt-get install wine wine64)"
[ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] ||
    timeout 120 rustup target add $target >/dev/null 2>&1 || skip "no standard library (rustup target add $target)"

# A Windows of its own that goes with the script, and no words about what Wine lacks.
work=$(mktemp -d)
export WINEPREFIX=$work/prefix WINEARCH=win64 WINEDEBUG=-all
finish() {
    timeout 20 wineserver --kill >/dev/null 2>&1 || true
    rm -rf "$work" 2>/dev/null || { sleep 2 && rm -rf "$work"; } || true
}
trap finish EXIT
timeout 180 "$wine" wineboot --init >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    echo "test-windows.sh: Wine does not start" >&2
    exit 1
}
# Rust's library has its random numbers from here. Wine has had this library since version 9 only.
random=$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll
if [ ! -e "$random" ]; then
    cat >"$work/random.c" <<'END'
unsigned char __stdcall SystemFunction036(void *, unsigned long);
__declspec(dllexport) int ProcessPrng(unsigned char *bytes, unsigned long long n) {
    while (n > 0) {
        unsigned long part = n < 1u << 30 ? n : 1u << 30;
        if (!SystemFunction036(bytes, part)) return 0;
        bytes += part;
        n -= part;
    }
    return 1;
}
END
    x86_64-w64-mingw32-gcc -O1 -shared -nostartfiles -Wl,--entry=0 "$work/random.c" -o "$random" -ladvapi32
fi

export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$wine
if [ "${ZYX_FULL-0}" = 1 ]; then
    tests -p zyx-backend-cpu -p zyx-gemm --lib --tests --no-fail-fast -- --quiet
    tests -p zyx-core --lib --no-fail-fast -- --quiet
    tests -p zyx-ir --lib -- --quiet cmath
    tests -p zyx-io --test save -- --quiet
    cargo run --target $target --release --example digits
    exit
fi
# What these spend their time in is generated code: optimising would take three times as long as it saves.
export CARGO_PROFILE_DEV_OPT_LEVEL=0
tests -p zyx-backend-cpu --lib --test conformance --no-fail-fast -- --quiet DType__F32 exec_memory jit::x86::asm jit::tests::system
