#!/usr/bin/env bash
# Random programs on the CPU, by seed: usage scripts/nightly.sh [PROGRAMS] [FIRST_SEED].
# 100,000 by default, from a first seed that differs from day to day. Each instruction set runs all of them:
# the ladder with gradients, then programs on fresh devices beside used ones (a tenth). A failure prints
# ZYX_SEED=n, which replays that program alone. Then the whole of every suite that .ci/run samples.
set -euo pipefail
cd "$(dirname "$0")/.."
programs=${1:-100000}
export ZYX_FIRST_SEED=${2:-$(($(date +%s) / 86400 * programs))}
echo "$programs programs from seed $ZYX_FIRST_SEED on"
# When it ran and what it found, one line a run.
log=${XDG_STATE_HOME:-$HOME/.local/state}/zyx/nightly.log
step="the first build"
finish() {
    local found="$step failed"
    [ "$1" != 0 ] || found="nothing found"
    mkdir -p "${log%/*}"
    echo "$(date -u +%FT%TZ) $(git rev-parse --short HEAD) $programs programs from seed $ZYX_FIRST_SEED: $found" | tee -a "$log"
}
trap 'finish $?' EXIT
run() { # variables, test binary, test, programs
    step="$3 with $1"
    env $1 ZYX_PROGRAMS="$4" cargo test --release -q -p zyx-backend-cpu --test "$2" -- --exact "$3"
}
for set in "ZYX_CPU=avx512 conformance" "ZYX_CPU=avx2 conformance" "ZYX_CPU=portable portable"; do
    read -r level binary <<<"$set"
    run "$level" "$binary" ladder "$programs"
    run "$level" "$binary" results_do_not_depend_on_earlier_sizes $((programs / 10))
done
# Files changed at random.
step="changed files"
ZYX_MUTANTS=$((programs / 20)) cargo test --release -q -p zyx-io --test memory
ZYX_MUTANTS=$((programs / 20)) cargo test --release -q -p zyx-data --features image --lib images
# Models changed at random.
step="changed models"
ZYX_ONNX_HOSTILE=$((programs / 100)) cargo test --release -q -p zyx-onnx --lib hostile
# Operators of onnxruntime, all cases.
step="ONNX operators of onnxruntime"
scripts/install-drivers.sh onnx
cases=${XDG_CACHE_HOME:-$HOME/.cache}/zyx/onnx
ZYX_ONNX_NODES=$cases/contrib cargo test --release -q -p zyx --features onnx --test onnx
# Ctrl-C at random moments.
step="Ctrl-C in Python"
ZYX_SIGNALS=500 scripts/test-python.sh -k test_interrupts
# Plans of every operation at awkward sizes.
step="awkward sizes"
ZYX_ONLY=, cargo test --release -q -p zyx-tests --test floor -- --exact no_size_is_special
# What .ci/run samples: with the emulated processors, 64-bit Arm and Windows in full.
step="what CI samples"
export ZYX_FULL=1 ZYX_LIMIT=6h
scripts/test.sh
scripts/test-python.sh
scripts/test-packages.sh
scripts/check-targets.sh
