"""Calls as users of PyTorch write them give what PyTorch gives: see `pytorch_calls.py`."""

import ast

import pytest
import zyx
from pytorch_calls import FILE, evaluate, record

# Calls that are answered differently on purpose.
DIFFERENT = {
    "unsigned sums": "integers without a sign are summed without one, as in NumPy",
    "any dtype": "defined in every dtype: of integers and bools the result has the dtype that arithmetic gives",
    "truth": "all and any are bools, of every dtype",
    "empty range": "a range that leads nowhere is empty, as in NumPy",
    "empty": "the largest of nothing is the neutral element of max",
    "integers": "no arithmetic of integers fails: x % 0 is x, and powers are whole",
    "shapes": "losses do not broadcast, as that hides mistakes",
}
LINES = [line for line in FILE.read_text().splitlines() if not line.startswith("#")]
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-10}
# What the sums of two records of the same numbers may differ by: NumPy adds in the order that the
# processor likes best, and its cosine is not the same everywhere. An integer that is off by one
# moves them by half or more.
ROUNDING = 1e-13


def same(got, want):
    if got[0] != want[0] or got[0] == "py":
        return got[0] == want[0] and (got[1] == pytest.approx(want[1], rel=1e-5))
    bound = TOLERANCE.get(got[0], ROUNDING) * max(want[3], 1)
    return got[1] == want[1] and got[4] == want[4] and abs(got[2] - want[2]) <= bound and abs(got[3] - want[3]) <= bound


@pytest.mark.parametrize("line", LINES, ids=[line.split("  ->  ")[0] for line in LINES])
def test_call(line):
    call, _, rest = line.partition("  ->  ")
    text, _, remark = rest.partition("  # ")
    why, _, own = remark.partition("  =>  ")
    try:
        got = record(evaluate(call, zyx, zyx.tensor))
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError) as error:
        assert "internal error" not in str(error)
        got, raised = "error", type(error).__name__

    def agrees(want):
        return got == want if "error" in (got, want) else len(got) == len(want) and all(map(same, got, want))

    pytorch = ast.literal_eval(text)
    if not why:
        assert agrees(pytorch), f"{got}, PyTorch: {pytorch}"
        return
    assert not agrees(pytorch), f"PyTorch gives the same: {DIFFERENT[why]}"
    # Where zyx refuses what PyTorch does, the exception's name stands there.
    assert own == raised if got == "error" else agrees(ast.literal_eval(own)), f"{got}, expected: {own}"
