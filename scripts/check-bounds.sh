#!/usr/bin/env bash
# Fails when the host takes longer, or more memory, than the project promises.
#
#   scripts/check-bounds.sh [zyx-bench binary]      (default: builds the release one)
#
# Times are the least of all samples: other work on the machine only ever adds. Rows run on the CPU
# backend; each value is printed beside its bound.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

bench=${1:-}
if [ -z "$bench" ]; then
    cargo build --locked --release -p zyx-bench --no-default-features --bin zyx-bench || exit 1
    bench=target/release/zyx-bench
fi
status=0

# row WORKLOAD: measures it, so that `bound` can look at its numbers.
row() {
    workload=$1
    line=$(ZYX_DEVICE=cpu "$bench" "$workload") || {
        echo "FAILED  $workload did not run"
        status=1
        line=
    }
}

# bound KEY MOST UNIT: of the row measured last. A number that is missing breaks its bound.
bound() {
    local value
    value=$(sed -nE "s/.*\"$1\":(-?[0-9][0-9.e+-]*)[,}].*/\1/p" <<<"$line")
    if [ -n "$value" ] && awk -v x="$value" -v most="$2" 'BEGIN { exit !(x + 0 <= most + 0) }'; then
        echo "ok      $workload $1: $value $3, at most $2"
    else
        echo "FAILED  $workload $1: ${value:-no number} $3, at most $2; all of it: $line"
        status=1
    fi
}

row build_10m
bound min 1 s
bound bytes_per_op 160 bytes
row host_per_node
bound min 200 ns
bound plan_misses 0 "plans made"
bound compiles 0 "kernels compiled"
row batch_change
bound min 10 ms
bound searches 0 searches
row compile_time
bound min 1 s
bound verifier_share 0.08 "of the time in which kernels became programs"
row einsum_plan
bound min 200 ns
row einsum_order
bound ratio 1.1 "times the best order by hand"
row matmul_layouts
bound ratio 1.1 "times the fastest layout"
bound launches 1 launches
bound temps 0 temporaries
row segmented_mlp
bound ratio 0.35 "of the memory without segments"
bound different 0 "elements of gradients that differ"
row schedule_1m
bound min 2 s
bound one_more_us 10 us
row user_kernel
bound value 2 us
bound first_ms 3 ms
exit $status
