"""The cases of `scripts/sweep.sh`: every public function has one, or a reason why not. Nothing is timed here."""

import importlib.util
import pathlib
import re

import pytest
from operand_grid import UNCALLED, lines

FILE = pathlib.Path(__file__).resolve().parents[2] / "scripts/bench/sweep_cases.py"


@pytest.fixture(scope="module")
def sweep():
    spec = importlib.util.spec_from_file_location("sweep_cases", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_function_has_a_case_or_a_reason(sweep):
    # `test_every_function_is_called` sees to it that the public functions are those of the grid and those of `UNCALLED`.
    swept, without = {name for case in sweep.cases() for name in case["names"]}, sweep.unswept()
    called = {name for _, _, name, _, _ in lines()}
    assert not called - swept - set(without), f"without a case or a reason: {called - swept - set(without)}"
    assert not swept & set(without), f"swept all the same: {swept & set(without)}"
    assert not set(without) - called, f"no functions of the grid: {set(without) - called}"
    assert not swept & set(UNCALLED)
    assert all(sweep.UNSWEPT.values())


def test_every_row_changes_a_call(sweep):
    unneeded, calls = [], [(grid, name, call, other) for grid, call, name, other, _ in lines()]
    for grid, names, words, pairs in sweep.rows():
        mine = [c for c in calls if c[0] == grid and (c[1] in names or names == ["*"])]
        unneeded += [f"{grid} | {name}" for name in names if name != "*" and name not in {c[1] for c in mine}]
        unneeded += [text for text, _ in pairs if not any(text in c[2] or text in c[3] for c in mine)]
        assert words or pairs, names
    assert not unneeded, f"rows of what there is not: {unneeded}"


def test_cases_can_be_made(sweep):
    cases = sweep.cases()
    for case in cases:
        for call in case["calls"].values():
            compile(call, "call", "eval")
        operands = sweep.operand_grid.GRIDS[case["grid"]][0].split()
        for words in case["words"].values():
            # Calls of no operands are told extents alone.
            assert case["grid"] == "NONE" or len(words.split()) == len(operands), case
            assert all(word[0] in "*b" and word[1:].replace("x", "").isdigit() for word in words.split()), case
    # No literal is left that stands for a position or extent that grows: of these the small grid is full.
    odd = [c["calls"]["zyx"] for c in cases if re.search(r"m\.(ones|zeros)\(\d", c["calls"]["zyx"])]
    assert not odd, odd
