#!/usr/bin/env bash
# Times zyx and PyTorch in turn on this machine and prints a table of ratios.
#
#   scripts/bench.sh [WORKLOAD ..]        PYTHON=python3 with torch installed
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
all="matmul_f32_256 matmul_f32_1024 matmul_f32_2048 matmul_bf16_1024 bmm_f32_16x256 gemv_f32_4096
chain_16m gelu_16m sum_16m sum_rows_4096 sum_cols_4096 softmax_4096x1024 layernorm_4096x1024
cumsum_16m argmax_rows_4096 conv2d_fwd mlp_train conv_train gpt_train"
cargo build --release -q -p zyx-bench
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for workload in ${*:-$all}; do
    target/release/zyx-bench "$workload" >>"$lines"
    "$python" scripts/peers.py "$workload" >>"$lines"
done
"$python" - "$lines" <<'PY'
import json
import sys

rows = {}
for line in open(sys.argv[1]):
    row = json.loads(line)
    rows.setdefault(row["workload"], {})[row["peer"]] = row
print("| workload | unit | zyx | PyTorch | zyx is faster by |\n|---|---|---|---|---|")
for name, peers in rows.items():
    ours, other = peers["zyx"], peers["torch"]
    ratio = ours["value"] / other["value"]
    ratio = 1 / ratio if ours["unit"] in ("ms", "us") else ratio
    print(f"| {name} | {ours['unit']} | {ours['value']:.4g} | {other['value']:.4g} | {ratio:.2f}x |")
PY
