#!/usr/bin/env bash
# Times every public function and its gradient beside PyTorch's; arguments as scripts/bench/sweep.py. With `--models` first,
# training steps of whole models; arguments as scripts/bench/sweep_models.py.
#
#   PYTHON=folder/bin/python scripts/sweep.sh [--device cpu|cuda] [--only PATTERN] [--record] [--check] [..]
#   PYTHON=folder/bin/python scripts/sweep.sh --models [--device cpu|cuda] [--only PATTERN] [--profile] [..]
#
# PYTHON has PyTorch and NumPy (NumPy alone for --load). Unless --wheel or --zyx-python tells where zyx is, it is the one that scripts/test-python.sh built last.
set -euo pipefail
here=$(dirname "$0")
script=sweep.py
if [ "${1-}" = --models ]; then
    script=sweep_models.py
    shift
fi
environment=$here/../target/python/venv/bin/python
case " $* " in
*" --wheel "* | *" --zyx-python "* | *" --load "*) zyx=() ;;
*)
    [ -x "$environment" ] || {
        echo "no zyx for Python: run scripts/test-python.sh first, or give --wheel FILE" >&2
        exit 1
    }
    zyx=(--zyx-python "$environment")
    ;;
esac
[ -n "${PYTHON-}" ] || PYTHON=$([ -x "$environment" ] && echo "$environment" || echo python3)
exec "$PYTHON" "$here/bench/$script" "${zyx[@]}" "$@"
