#!/usr/bin/env bash
# Builds a Python wheel, checks its size and runs the tests of zyx-py. The wheel has the release
# profile, whose crates other steps of CI compile as well; with ZYX_FULL=1 it is the one of `pip
# install`, optimised across crates.
#
#   scripts/test-python.sh [pytest arguments]
#
# Needs Python with venv and pip. Without them it fails in CI (CI=true) and where ZYX_REQUIRE has
# the word `python`, and skips itself by name elsewhere. Wheel and environment are kept
# under target/python, so a second run builds what has changed.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON-python3}
. scripts/absent.sh
skip() {
    absent python "$1"
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || skip "no Python 3.10 or later"
"$python" -c 'import venv, ensurepip' 2>/dev/null || skip "Python has no venv or pip"

place=target/python
environment=$place/venv
if [ ! -x "$environment/bin/pip" ]; then
    "$python" -m venv "$environment" || skip "no virtual environment could be made"
fi
# Versions of type checkers report different errors, so theirs are fixed.
"$environment/bin/pip" install -q 'maturin>=1.9,<2' 'numpy>=1.24' 'pytest>=7' ml_dtypes 'array-api-strict>=2.6' \
    'mypy==2.4.1' 'pyright[nodejs]==1.1.414' 'einops==0.8.2' ||
    skip "maturin, numpy, pytest, type checkers and einops could not be installed"

# Searches of parameters, kernels for several examples and subgroup operations took 41 KB, primitives of groups in kernels of
# Python 70 KB.
profile=release limit=7100000
[ "${ZYX_FULL-0}" != 1 ] || profile=wheel limit=6000000
rm -rf "$place/wheels"
# Without debug information nothing is lost: a panic becomes an exception.
export MATURIN_PEP517_ARGS="--compression-level 9 --profile $profile"
PATH="$PWD/$environment/bin:$PATH" "$environment/bin/pip" wheel -q --no-deps --no-build-isolation \
    -w "$place/wheels" ./zyx-py
wheel=$(ls "$place"/wheels/*.whl)
size=$(wc -c <"$wheel")
echo "$(basename "$wheel"): $size bytes, at most $limit"
[ "$size" -le "$limit" ]
"$environment/bin/pip" install -q --force-reinstall --no-deps "$wheel"
# A test that takes longer than ten minutes prints where each thread is.
timeout --kill-after=10 "${ZYX_LIMIT-15m}" "$environment/bin/python" -m pytest -q -p no:cacheprovider -o faulthandler_timeout=600 zyx-py/tests "$@"
