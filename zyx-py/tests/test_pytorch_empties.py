"""Layers, losses and statistics of nothing and of one element do as PyTorch's (`pytorch_empties.py`)."""

import fnmatch
import json
import warnings

import pytest
import zyx
from pytorch_empties import FILE, run

# Cases that differ, and why.
DIFFER = {
    "InstanceNorm?d (0, *affine=True*": "PyTorch refuses no samples by accident: `select(): index 0 out of range`",
    "InstanceNorm?d (0, *training=True tracks=True affine=False*": "PyTorch's running statistics become NaN",
}


def test_of_nothing_as_pytorch():
    expected = {name: result for names, result in json.loads(FILE.read_text()) for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = json.loads(json.dumps(run(zyx)))
    assert found.keys() == expected.keys()

    def same(a, b):
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(map(same, a, b))
        return a == b or isinstance(a, float) and isinstance(b, float) and a == pytest.approx(b, rel=2e-3, abs=2e-4, nan_ok=True)

    differ = [name for name in expected if not same(found[name], expected[name])]
    unexplained = [name for name in differ if not any(fnmatch.fnmatchcase(name, pattern) for pattern in DIFFER)]
    for name in unexplained[:40]:
        print(name, "\n  ", found[name], "\n  ", expected[name])
    assert not unexplained, f"{len(unexplained)} of {len(expected)}"
    unneeded = [pattern for pattern in DIFFER if not any(fnmatch.fnmatchcase(name, pattern) for name in differ)]
    assert not unneeded, "these are as in PyTorch now"
