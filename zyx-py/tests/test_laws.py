"""Laws that every public function keeps, on the calls of `operand_grid.py`: halves are rounded once, and a gradient that is
not there is an error, never 0."""

import functools

import numpy as np
import pytest
import zyx
from operand_grid import GRIDS, lines, lookup, zyx_library

LIBRARY = zyx_library()
FLOATS = ("float16", "bfloat16", "float32", "float64")
# Units in the last place, and bits of a significand.
ULPS, BITS = 2.0, {"float16": 11, "bfloat16": 8}
SMALLEST, LARGEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133}, {"float16": 65504.0, "bfloat16": 3.3895e38}
MAGNITUDES = {"float16": (2e-6, 1e-4, 1.0, 10.0, 300.0, 6e4), "bfloat16": (1e-4, 1.0, 10.0, 300.0, 6e4, 1e15)}

# Functions whose results or calls are no functions of numbers alone, and why.
SILENT = {
    "tells no numbers": "item to_vec numpy to_bytes realize tolist is_floating_point element_size dim rank",
    "gives the bits of a dtype": "bitcast element_size nextafter",
    "has another dtype, or that of what it is given": "cast astype to type_as half float double int long float_power",
}
# Words of calls that compute their operands, which is rounded.
COMPUTED = (" + ", " * ", " @ ", ".sigmoid()", "f(x)[", "f(*", "f(F.")
# Functions that round in between.
ROUNDED = {
    "adds a bias to a product": "F.linear",
    "its gradient is made of rounded weights": "F.scaled_dot_product_attention scaled_dot_product_attention",
}
# Operands that a result depends on, and that have no gradient by definition.
FLAT = {
    "steps": "ceil floor round trunc fix sign sgn heaviside floor_divide trunc_divide div remainder fmod frac",
    "positions": "argsort sort topk kthvalue unique unique_consecutive histc histogram bucketize searchsorted isin",
    "stops gradients, or begins them": "detach tracked",
}


def named(table):
    return {name for names in table.values() for name in names.split()}


@functools.cache
def calls():
    """For each function the calls of floats, with the extents of one case."""
    found = {}
    for grid, call, name, _, _ in lines():
        # A case of which every operand holds floats and has axes, if there is one.
        fits = [c for c in GRIDS[grid] if c and all(w[0] in "fd" and "x" in w and "0" not in w for w in c.split())]
        fits += [c for c in GRIDS[grid] if c and all(w[0] in "fd" and len(w) > 1 and "0" not in w for w in c.split())]
        if fits and name not in named(SILENT) and not name.startswith(("xp", "xl")):
            # The first case that is answered: some have indices out of range.
            answered = (c for c in fits if attempt(call, name, [zyx.tensor(x) for x in numbers(c, 1.0)]) is not None)
            found.setdefault(name, []).append((call, next(answered, fits[0])))
    return found


def numbers(case, scale, place=0):
    """Operands without a pattern, of both signs."""
    shapes = [tuple(int(n) for n in word[1:].split("x")) for word in case.split()]
    rng = np.random.default_rng(len(case) + place)
    return [rng.normal(size=shape) * scale for shape in shapes]


def flat(found):
    if isinstance(found, zyx.Tensor):
        return [found]
    return [x for part in found for x in flat(part)] if isinstance(found, (tuple, list)) else []


def run(call, name, tensors):
    names = {**LIBRARY.names, "f": lookup(LIBRARY, name), **dict(zip("xyz", tensors))}
    return flat(eval(call, names))


def attempt(call, name, tensors):
    try:
        found = run(call, name, tensors)
        # An index out of range is an error when a result is read.
        for y in found:
            y.to_bytes()
        return found
    except (ValueError, TypeError, IndexError, NotImplementedError, RuntimeError):
        return None


def excess(got, single, want, dtype):
    """By how many units in the last place the worst element is off, beside twice what `float32` loses."""
    most, least = LARGEST[dtype], SMALLEST[dtype]
    near = lambda x: np.clip(x, -most, most)  # noqa: E731
    unit = np.maximum(np.exp2(np.floor(np.log2(np.maximum(np.abs(near(want)), 1e-300))) - BITS[dtype] + 1), least)
    off = np.abs(near(got) - near(want)) - 2 * np.abs(near(single) - near(want))
    # A step that overflows in float32 does so for operands in float32, too.
    same = (got == single) | (np.isnan(got) & np.isnan(single)) | (np.isnan(want) & np.isnan(got))
    off = np.where(same, 0.0, np.where(np.isnan(off), np.inf, off))
    return float(np.max(off / unit, initial=0.0))


@pytest.mark.parametrize("name", [name for name in calls() if name not in named(ROUNDED)])
def test_halves_are_rounded_once(name):
    wrong = []
    plain = [c for c in calls()[name] if name[0] == "@" or not any(word in c[0] for word in COMPUTED)]
    for call, case in plain:
        for dtype in ("float16", "bfloat16"):
            for scale in MAGNITUDES[dtype]:
                arrays = (np.clip(x, -LARGEST[dtype], LARGEST[dtype]) for x in numbers(case, scale))
                rounded = [zyx.tensor(x).cast(dtype) for x in arrays]
                of = [attempt(call, name, [x.cast(d) for x in rounded]) for d in (dtype, "float32", "float64")]
                if None in of or not len(of[0]) == len(of[1]) == len(of[2]):
                    continue
                for half, single, double in zip(*of):
                    if half.dtype.name != dtype or half.shape != double.shape:
                        continue
                    values = [x.cast("float64").numpy() for x in (half, single, double)]
                    with np.errstate(all="ignore"):
                        off = excess(*values, dtype)
                    if off > ULPS:
                        wrong.append(f"{name}: {call} of {case} in {dtype} at {scale}: {off:.1f} ulps")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", [name for name in calls() if name not in named(FLAT)])
def test_no_gradient_is_missing(name):
    missing = []
    for call, case in calls()[name]:
        arrays = numbers(case, 1.0)
        leaves = [zyx.tensor(x).requires_grad_() for x in arrays]
        found = attempt(call, name, leaves)
        results = [y for y in found or [] if y.dtype.name in FLOATS and y.dtype.name == "float64"]
        for i, leaf in enumerate(leaves):
            rng = np.random.default_rng(i)
            moved = [x + 1e-3 * rng.normal(size=x.shape) if j == i else x for j, x in enumerate(arrays)]
            others = attempt(call, name, [zyx.tensor(x) for x in moved]) or []
            others = [y for y in others if y.dtype.name == "float64"]
            for y, z in zip(results, others):
                if y.shape != z.shape or not np.isfinite(y.numpy()).all() or np.array_equal(y.numpy(), z.numpy()):
                    continue
                try:
                    dx = (y * zyx.tensor(rng.normal(size=y.shape))).sum()._grad([leaf])[0]
                except (ValueError, RuntimeError, NotImplementedError):
                    continue
                if dx is None or not dx.numpy().any():
                    missing.append(f"{name}: {call} of {case}: the result depends on operand {i}, which has no gradient")
    assert not missing, "\n".join(missing)


def test_gradients_that_are_not_there_are_errors():
    q = zyx.tensor(0.3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="quantile.*`q`"):
        zyx.arange(4.0).quantile(q)
    assert zyx.arange(4.0).quantile(q.detach()).item() == pytest.approx(0.9)


def test_what_has_the_factor_zero_is_not_read():
    nan, eye, ones = float("nan"), zyx.eye(2), zyx.ones(2)
    bad, fine = zyx.tensor([[nan, 0.0], [0.0, nan]]), zyx.ones(2, 2)
    assert zyx.addmv(zyx.tensor([nan, 0.0]), eye, ones, beta=0).tolist() == [1, 1]
    assert zyx.addr(bad, ones, ones, beta=0).tolist() == [[1, 1], [1, 1]]
    assert zyx.addmm(bad, eye, eye, beta=0).tolist() == [[1, 0], [0, 1]]
    assert zyx.addbmm(bad, eye[None], eye[None], beta=0).tolist() == [[1, 0], [0, 1]]
    assert zyx.baddbmm(bad[None], eye[None], eye[None], beta=0).tolist() == [[[1, 0], [0, 1]]]
    assert zyx.addmm(fine, bad, eye, alpha=0).tolist() == [[1, 1], [1, 1]]
    assert zyx.addmv(ones, bad, ones, alpha=0).tolist() == [1, 1]
    assert zyx.addbmm(fine, bad[None], eye[None], alpha=0).tolist() == [[1, 1], [1, 1]]


def test_one_of_equal_elements_along_an_axis_has_the_gradient():
    x = zyx.tensor([1.0, 1.0, 0.0, 1.0], requires_grad=True)
    assert zyx.grad(x.max(0)[0], x).tolist() == [1, 0, 0, 0]
    assert zyx.grad(x.max(dim=0, keepdim=True).values.sum(), x).tolist() == [1, 0, 0, 0]
    assert zyx.grad(x.min(0)[0], x).tolist() == [0, 0, 1, 0]
    assert zyx.grad(x.amax(0), x).tolist() == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])


def test_whole_powers_are_exact():
    assert (2.0 ** zyx.arange(8.0)).to("int32").tolist() == [2**i for i in range(8)]
    whole = zyx.arange(-149.0, 128.0)
    assert whole.exp2().tolist() == [2.0**i for i in range(-149, 128)]
    x, y = np.meshgrid(np.arange(1.0, 33.0), np.arange(0.0, 25.0))
    exact = x**y
    x, y, exact = (a[exact <= 2**24].astype("float32") for a in (x, y, exact))
    assert (zyx.tensor(x) ** zyx.tensor(y)).tolist() == exact.tolist()
