#!/usr/bin/env bash
# Times zyx beside every installed peer; arguments as scripts/bench/compare.py.
#
#   PYTHON=folder/bin/python scripts/bench.sh [--rounds N] [--record] [--check] [WORKLOAD ..]
set -euo pipefail
exec "${PYTHON:-python3}" "$(dirname "$0")/bench/compare.py" "$@"
