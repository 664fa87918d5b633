"""Every public function on every kind of operand: see `operand_grid.py`."""

import functools
import re
import types
import zlib

import numpy as np
import pytest
import zyx
from zyx._names import _with_input
from operand_grid import DIFFERENT, FILE, GRIDS, MODULES, REASONS, UNCALLED, attempt, lines, lookup, operands, zyx_library

# By how much the sum of a result may differ, as a part of the largest that it could be.
TOLERANCE = {"e": 4e-3, "f": 2e-5, "d": 1e-9}
LIBRARY = zyx_library()
NUMBER = re.compile(r"([a-zB]|uint\d+|int\d+)([\dx]*):(-?[\d.]+(?:e[-+]?\d+)?)([n+-]*)")


@functools.cache
def expected():
    """What the reference gives for each case, by grid, call and function."""
    found = {}
    for line in FILE.read_text().splitlines():
        head, _, results = line.partition(" -> ")
        grid, call, names = head.split(" | ")
        found.update({(grid, call, name): results.split(" | ") for name in names.split()})
    return found


@functools.cache
def calls():
    """The calls of each function."""
    found = {}
    for grid, call, name, _, _ in lines():
        found.setdefault(name, []).append((grid, call))
    return found


@functools.cache
def tensors(case):
    return [zyx.tensor(a) for a in operands(case)]


def differs(got, want):
    """In what the texts of two results differ, or `None`."""
    if got == want or want == "-":
        return None
    if "!" in (got, want):
        return "refused here" if got == "!" else "refused there"
    got, want = got.split("; "), want.split("; ")
    if len(got) != len(want):
        return "count"
    for a, b in zip(got, want):
        x, y = NUMBER.fullmatch(a), NUMBER.fullmatch(b)
        if not x or not y:
            if a != b:
                return "value"
            continue
        if x[2] != y[2]:
            return "shape"
        if x[1] != y[1]:
            return "dtype"
        # Elements are of the size of 1 where they are added up.
        size = max(1.0, abs(float(x[3])), np.prod([int(n) for n in x[2].split("x") if n]))
        if x[4] != y[4] or abs(float(x[3]) - float(y[3])) > TOLERANCE.get(x[1], 1e-13) * size:
            return "value"
    return None


@functools.cache
def differences(name):
    """Where a function gives something else than the reference: grid, call, case, what differs, and both results."""
    found, function = [], lookup(LIBRARY, name)
    for grid, call in calls()[name]:
        for case, want in zip(GRIDS[grid], expected()[grid, call, name]):
            got = attempt(LIBRARY, call, function, tensors(case))
            if what := differs(got, want):
                found.append((grid, call, case, what, got, want))
    return found


def accepted(name, call, case, what):
    """The number of the difference that is on purpose."""
    text = f"{name} | {call} | {case} | {what}"
    return next((i for i, (_, pattern) in enumerate(DIFFERENT) if re.search(pattern, text)), None)


@pytest.mark.parametrize("name", calls())
def test_function(name):
    wrong = [f"{name}: {call} of {case}: {what}: {got}, reference: {want}"
             for _, call, case, what, got, want in differences(name) if accepted(name, call, case, what) is None]  # fmt: skip
    assert not wrong, "\n".join(wrong)


def test_differences_are_needed():
    met = set()
    for name in calls():
        met |= {accepted(name, call, case, what) for _, call, case, what, _, _ in differences(name)}
    unneeded = [row for i, row in enumerate(DIFFERENT) if i not in met]
    assert not unneeded, f"no differences: {unneeded}"
    assert set(REASONS) == {reason for reason, _ in DIFFERENT}


def from_method(item, name):
    """Whether a function is the method of `Tensor` of that name."""
    method = getattr(zyx.Tensor, name, None)
    if method is None:
        return False
    # Or with a parameter `inplace`.
    return item in (method, _with_input(method)) or getattr(item, "__wrapped__", None) is _with_input(method)


def test_every_function_is_called():
    recipes = {}
    for name in calls():
        recipes.setdefault(id(lookup(LIBRARY, name)), name)
    missing, known = [], set()
    for space, path in MODULES.items():
        module = LIBRARY.names[space]
        for bare in dir(module):
            item = getattr(module, bare)
            if bare.startswith("_") or not callable(item) or isinstance(item, (type, types.ModuleType, zyx.DType)):
                continue
            name = bare if space == "m" else f"{space}.{bare}"
            known.add(name)
            # A second name is the same function; so are most of `nn.functional` methods of `Tensor`.
            # Those that write are in test_writes.py.
            writes = name.endswith("_") and name not in ("where_", "requires_grad_")
            if id(item) not in recipes and name not in UNCALLED and not writes and not (space == "F" and from_method(item, bare)):
                missing.append(name)
    assert not missing, f"without a line in RECIPES or a reason in UNCALLED: {missing}"
    assert not set(UNCALLED) - known, f"no functions: {sorted(set(UNCALLED) - known)}"
    assert not set(UNCALLED) & set(calls()), f"called all the same: {sorted(set(UNCALLED) & set(calls()))}"


def layouts(array):
    """The elements of an array as a view, and constants of its shape: each with a plain tensor of the same elements."""
    yield array, zyx.tensor(array.T.copy()).permute(*range(array.ndim)[::-1])
    padded = zyx.tensor(np.pad(array, 1) if array.ndim else array)
    yield array, padded[(slice(1, -1),) * array.ndim]
    if array.size:
        repeated = array[(slice(0, 1),) * array.ndim]
        yield np.broadcast_to(repeated, array.shape).copy(), zyx.tensor(repeated).expand(array.shape)
    dtype = str(array.dtype)
    yield np.zeros_like(array), zyx.zeros(array.shape, dtype=dtype)
    yield np.ones_like(array), zyx.ones(array.shape, dtype=dtype)
    # Of a number of which a mean over three elements is exact.
    yield np.full_like(array, 2), zyx.full(array.shape, 2 if dtype != "bool" else True, dtype=dtype)


# A view of strides that do not fit is an error.
@pytest.mark.parametrize("name", [name for name in calls() if name not in ("tracked", "to_bytes", "view")])
def test_elements_alone_count(name):
    # A case of each call, by chance but always the same, and one operand of it held in three other ways.
    function, wrong = lookup(LIBRARY, name), []
    for grid, call in calls()[name]:
        cases = [c for c, want in zip(GRIDS[grid], expected()[grid, call, name]) if c and want not in "!-"]
        rng = np.random.default_rng(zlib.crc32(f"{name} {call}".encode()))
        for case in rng.choice(cases, 1) if cases else []:
            arrays = operands(case)
            number = rng.integers(len(arrays))
            held = list(layouts(arrays[number]))
            for plain, other in [held[i] for i in rng.choice(len(held), 3, replace=False)]:
                given = [plain, other]
                found = [attempt(LIBRARY, call, function, [*arrays[:number], x, *arrays[number + 1 :]]) for x in given]
                if differs(*found):
                    wrong.append(f"{name}: {call} of {case}, operand {number}: {found[1]}, plain: {found[0]}")
    assert not wrong, "\n".join(wrong)
