"""Data loaders do as PyTorch's in all combinations of options, over all kinds of data sets and examples
(`pytorch_loaders.py`).
"""

import fnmatch
import json
import warnings

import pytest
import zyx
from pytorch_loaders import FILE, run

# Cases that differ, and why.
DIFFER = {
    "subset of subset: *sampler 10*": "NumPy takes PyTorch's tensor of one element for a number",
    "* scalars uint64": "PyTorch has no such scalars",
}


def test_loaders_do_as_those_of_pytorch():
    expected = {name: result for names, result in json.loads(FILE.read_text()) for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = json.loads(json.dumps(run(zyx)))
    assert found.keys() == expected.keys()
    differ = [name for name in expected if found[name] != expected[name]]
    unexplained = [name for name in differ if not any(fnmatch.fnmatchcase(name, pattern) for pattern in DIFFER)]
    for name in unexplained[:20]:
        print(name, "\n  ", found[name], "\n  ", expected[name])
    assert not unexplained, f"{len(unexplained)} of {len(expected)}"
    unneeded = [pattern for pattern in DIFFER if not any(fnmatch.fnmatchcase(name, pattern) for name in differ)]
    assert not unneeded, "these are as in PyTorch now"


def test_shuffled_examples_come_in_another_order_each_time():
    for batch_size in (None, 4, 100):
        loader = zyx.utils.data.DataLoader(range(100), batch_size=batch_size, shuffle=True)
        orders = [[int(i) for batch in loader for i in ([batch] if batch_size is None else batch)] for _ in range(3)]
        assert all(sorted(order) == list(range(100)) for order in orders)
        assert orders[0] != orders[1] != orders[2] != list(range(100))
    again = [[int(i) for i in zyx.utils.data.DataLoader(range(50), None, True, generator=zyx.Rng(5))] for _ in range(2)]
    assert again[0] == again[1] != list(range(50))


def test_numbers_out_of_range_are_refused():
    data = zyx.utils.data
    rows = data.TensorDataset(zyx.arange(4))
    for wrong in ([4], [-5], [0, 9]):
        with pytest.raises(IndexError):
            list(data.DataLoader(rows, batch_size=2, sampler=wrong))
    assert [x.tolist() for (x,) in data.DataLoader(rows, batch_size=2, sampler=[-1, 0])] == [[3, 0]]


def test_samplers():
    data = zyx.utils.data
    drawn = list(data.WeightedRandomSampler([0.0, 3.0, 1.0, 0.0], 400))
    assert set(drawn) == {1, 2} and 240 < drawn.count(1) < 360
    assert sorted(data.WeightedRandomSampler([1.0, 2.0, 0.5], 3, replacement=False)) == [0, 1, 2]
    drawn = list(data.RandomSampler(range(5), replacement=True, num_samples=200))
    assert len(drawn) == 200 and set(drawn) == set(range(5))
    drawn = list(data.RandomSampler(range(5), num_samples=12))
    assert len(drawn) == 12 and sorted(drawn[:5]) == sorted(drawn[5:10]) == list(range(5))
    assert sorted(data.SubsetRandomSampler([7, 3, 9])) == [3, 7, 9]
    assert list(data.ChainDataset([data.BatchSampler([1, 2, 3], 2, False), data.SequentialSampler(range(2))])) == [[1, 2], [3], 0, 1]
    for wrong in (lambda: data.RandomSampler([]), lambda: data.WeightedRandomSampler([1.0], 0), lambda: data.BatchSampler([1], 0, False)):
        with pytest.raises(ValueError):
            wrong()
