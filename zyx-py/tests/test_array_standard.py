"""The array API namespace beside `array_api_strict`, the standard's own minimal implementation.

Names, signatures, dtypes, shapes, values and refusals have to be the same for every function on many
operands; where the standard leaves something open, `OPEN` says what. Skipped where the package is
not installed (`pip install array-api-strict`).
"""

import inspect
import itertools
import warnings

import numpy as np
import pytest
import zyx
import zyx.array_api as xp

strict = pytest.importorskip("array_api_strict")

# What has no counterpart here, and why.
ABSENT = {
    "real", "imag", "complex64", "complex128", "fft",  # no complex numbers
    "Device", "ModuleType", "get_array_api_strict_flags", "set_array_api_strict_flags", "reset_array_api_strict_flags",
    "ArrayAPIStrictFlags", "sparse",  # of the package, not of the standard
}  # fmt: skip

# Where results for integers may differ by the standard's own words: division by zero.
OPEN = ["remainder", "floor_divide"]

# Functions of two that the standard defines on these dtypes alone; its implementation takes more.
FLOATS, BITS = "atan2 copysign divide hypot logaddexp nextafter".split(), "bitwise_and bitwise_or bitwise_xor".split()

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
SHAPES = [(), (0,), (5,), (3, 4), (2, 0, 3), (1, 3, 1)]


def functions():
    listed = [n for n in dir(strict) if not n.startswith("_") and n not in ABSENT]
    return [n for n in listed if inspect.isfunction(getattr(strict, n))]


def test_every_name_of_the_standard():
    names = [n for n in dir(strict) if not n.startswith("_") and n not in ABSENT]
    assert len(names) > 140 and not [n for n in names if not hasattr(xp, n)]
    # `eig` has complex results.
    missing = [n for n in strict.linalg.__all__ if not hasattr(xp.linalg, n) and not n.startswith("eigv") and n != "eig"]
    assert not missing, missing


def test_signatures_are_those_of_the_standard():
    wrong = []
    for name in functions():
        theirs, ours = (inspect.signature(getattr(m, name)) for m in (strict, xp))
        if any(p.kind == p.VAR_POSITIONAL for p in ours.parameters.values()):
            continue
        for p in theirs.parameters.values():
            mine = ours.parameters.get(p.name)
            by_place = p.kind == p.POSITIONAL_ONLY
            if mine is None and not (by_place and len(ours.parameters) >= len(theirs.parameters)):
                wrong.append(f"{name}: no parameter {p.name}")
            elif mine is not None and p.kind == p.KEYWORD_ONLY and mine.kind == p.POSITIONAL_ONLY:
                wrong.append(f"{name}: {p.name} cannot be given by name")
            elif mine is not None and mine.default is mine.empty and p.default is not p.empty:
                wrong.append(f"{name}: {p.name} may be left out")
    assert not wrong, "\n".join(wrong)


def sample(dtype, shape, seed):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("uint"):
        return rng.integers(0, 6, shape).astype(dtype)
    if dtype.startswith("int"):
        return rng.integers(-5, 6, shape).astype(dtype)
    x = np.asarray(rng.normal(size=shape) * 2).astype(dtype)
    flat = x.reshape(-1)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
    flat[: min(len(special), flat.size // 2)] = special[: flat.size // 2]
    return flat.reshape(shape)


def outcome(module, f, arrays):
    """What a call gives: arrays of NumPy, or the exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = f(module, *(module.asarray(a) for a in arrays))
        found = found if isinstance(found, (tuple, list)) else [found]
        return [np.asarray(x.numpy() if isinstance(x, zyx.Tensor) else x) for x in found]
    except (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError, ZeroDivisionError) as error:
        return error


def compare(what, f, arrays, problems, integers_by_zero=False):
    theirs, ours = (outcome(m, f, arrays) for m in (strict, xp))
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        # Who accepts more than the standard asks for is no worse.
        if isinstance(ours, Exception) and not isinstance(theirs, Exception):
            problems.append(f"{what}: {type(ours).__name__}: {ours}")
        return
    for x, y in zip(theirs, ours, strict=True):
        if not arrays and x.dtype == np.float64 and y.dtype == np.float32:
            x = x.astype(np.float32)  # the default dtype of floats is the library's
        if x.dtype != y.dtype or x.shape != y.shape:
            problems.append(f"{what}: {y.dtype} {y.shape}, not {x.dtype} {x.shape}")
            continue
        if integers_by_zero:
            keep = arrays[1] != 0
            x, y = (np.where(keep, v, 0) for v in (x, y))
        tolerance = 1e-4 if x.dtype == np.float32 else 1e-10
        if not np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True):
            problems.append(f"{what}: {y.tolist()}, not {x.tolist()}")


def report(problems, n):
    shown = "\n".join(problems[:25])
    assert not problems, f"{len(problems)} of {n} calls:\n{shown}"


UNARY = """abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor isfinite isinf isnan log log1p
log2 log10 logical_not negative positive reciprocal round sign signbit sin sinh square sqrt tan tanh trunc""".split()
BINARY = """add atan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift copysign divide equal floor_divide
greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply not_equal
nextafter pow remainder subtract""".split()


def defined(name, dtype):
    """Whether the standard defines a function of two on a dtype."""
    if name in FLOATS:
        return "float" in dtype
    if "logical" in name:
        return dtype == "bool"
    if "bitwise" in name:
        return "int" in dtype or (dtype == "bool" and name in BITS)
    return dtype != "bool" or name in ("equal", "not_equal")


def test_functions_of_one():
    problems, n = [], 0
    for name, dtype, shape in itertools.product(UNARY, DTYPES, SHAPES):
        n += 1
        compare(f"{name} {dtype} {shape}", lambda m, x: getattr(m, name)(x), [sample(dtype, shape, 1)], problems)
    report(problems, n)


def test_functions_of_two():
    problems, n = [], 0
    shapes = [((), ()), ((5,), (5,)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((0,), (1,)), ((2, 0, 3), (3,))]
    for name, dtype, (p, q) in itertools.product(BINARY, DTYPES, shapes):
        a, b = sample(dtype, p, 2), sample(dtype, q, 3)
        if not defined(name, dtype):
            with pytest.raises(TypeError):
                getattr(xp, name)(xp.asarray(a), xp.asarray(b))
            continue
        n += 1
        if name == "floor_divide":
            # Infinity by a number may be infinite or none.
            a = np.nan_to_num(a, posinf=3, neginf=-3)
        if "shift" in name and dtype != "bool":
            b = np.abs(b)
        if name == "pow" and dtype.startswith("int"):
            b = np.abs(b)
        whole = name in OPEN and "float" not in dtype
        compare(f"{name} {dtype} {p} {q}", lambda m, x, y: getattr(m, name)(x, y), [a, b], problems, whole)
    for name, (d, e) in itertools.product(["add", "multiply", "less", "maximum"], itertools.combinations(DTYPES[1:9], 2)):
        n += 1
        compare(f"{name} {d} {e}", lambda m, x, y: getattr(m, name)(x, y), [sample(d, (4,), 4), sample(e, (4,), 5)], problems)
    report(problems, n)


def test_operators():
    problems, n = [], 0
    operators = ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", ">", ">=", "@"]
    for operator, dtype in itertools.product(operators, DTYPES):
        for scalar in [None, 2, True, 1.5]:
            n += 2
            a, b = np.nan_to_num(sample(dtype, (3, 3), 6), posinf=3, neginf=-3), np.maximum(sample(dtype, (3, 3), 7), 0)
            whole = operator in ("//", "%") and "float" not in dtype
            right = eval(f"lambda m, x, y: x {operator} {'y' if scalar is None else scalar!r}")
            compare(f"{dtype} {operator} {scalar}", right, [a, b], problems, whole and scalar is None)
            if scalar is not None and operator not in ("@", "**") and not whole:
                left = eval(f"lambda m, x, y: {scalar!r} {operator} y")
                compare(f"{scalar} {operator} {dtype}", left, [a, b], problems)
    report(problems, n)


REDUCTIONS = ["sum", "prod", "max", "min", "mean", "std", "var", "all", "any"]


def test_reductions():
    problems, n = [], 0
    for name, dtype, shape in itertools.product(REDUCTIONS, DTYPES, SHAPES):
        for axis, keepdims in itertools.product([None, 0, -1, (0, -1)], [False, True]):
            if shape == () and axis is not None:
                continue  # NumPy takes an axis that is not there
            n += 1
            finite = np.nan_to_num(sample(dtype, shape, 8), posinf=3, neginf=-3)
            f = lambda m, x: getattr(m, name)(x, axis=axis, keepdims=keepdims)  # noqa: E731
            compare(f"{name} {dtype} {shape} {axis} {keepdims}", f, [finite], problems)
    for name, dtype in itertools.product(["argmax", "argmin", "cumulative_sum", "cumulative_prod", "count_nonzero", "diff", "sort", "argsort", "nonzero", "unique_values"], DTYPES):
        for shape, axis in [((5,), 0), ((3, 4), 0), ((3, 4), -1)]:
            n += 1
            finite = np.nan_to_num(sample(dtype, shape, 9), posinf=3, neginf=-3)
            plain = name in ("nonzero", "unique_values")
            f = lambda m, x: getattr(m, name)(x) if plain else getattr(m, name)(x, axis=axis)  # noqa: E731
            compare(f"{name} {dtype} {shape} {axis}", f, [finite], problems)
    report(problems, n)


CALLS = {
    # Negative floats as unsigned integers are open.
    "astype": lambda m, x: [m.astype(m.abs(x) if "bool" not in str(x.dtype) else x, getattr(m, d)) for d in DTYPES],
    "clip": lambda m, x: [m.clip(x, 1, 3), m.clip(x, min=2), m.clip(x, max=2), m.clip(x)],
    "concat": lambda m, x: [m.concat([x, x]), m.concat((x, x), axis=-1), m.concat([x, x], axis=None)],
    "expand_dims": lambda m, x: [m.expand_dims(x, axis=0), m.expand_dims(x, axis=-1), m.expand_dims(x)],
    "flip": lambda m, x: [m.flip(x), m.flip(x, axis=-1), m.flip(x, axis=(0, 1))],
    "full_like": lambda m, x: [m.full_like(x, 1), m.zeros_like(x), m.ones_like(x)],
    "matmul": lambda m, x: [m.matmul(x, m.matrix_transpose(x)), m.vecdot(x, x), m.tensordot(x, x, axes=2)],
    "moveaxis": lambda m, x: [m.moveaxis(x, 0, 1), m.permute_dims(x, (1, 0)), x.T, x.mT],
    "repeat": lambda m, x: [m.repeat(x, 2), m.repeat(x, 3, axis=1), m.tile(x, (2, 1, 2))],
    "reshape": lambda m, x: [m.reshape(x, (4, 3)), m.reshape(x, (-1,)), m.squeeze(m.reshape(x, (3, 1, 4)), axis=1)],
    "roll": lambda m, x: [m.roll(x, 1), m.roll(x, -2, axis=1), m.roll(x, (1, 2), axis=(0, 1))],
    "searchsorted": lambda m, x: m.searchsorted(m.sort(m.reshape(x, (-1,))), m.reshape(x, (-1,))),
    "stack": lambda m, x: [m.stack([x, x]), m.stack([x, x], axis=-1), *m.unstack(x)],
    "take": lambda m, x: m.take(x, m.asarray([2, 0]), axis=0),
    "tril": lambda m, x: [m.tril(x), m.triu(x, k=1), m.tril(x, k=-1)],
    "unique": lambda m, x: [*m.unique_counts(x), *m.unique_inverse(x)],
    "where": lambda m, x: [m.where(m.astype(x, m.bool), x, m.zeros_like(x))],
    "broadcast": lambda m, x: [m.broadcast_to(x, (2, 3, 4)), *m.broadcast_arrays(x, x[0, :])],
    "cumulative_sum": lambda m, x: [m.cumulative_sum(x, axis=0, include_initial=True)],
    "diff": lambda m, x: [m.linalg.diagonal(x), m.linalg.trace(x), m.linalg.outer(x[0, :], x[1, :])],
    "index": lambda m, x: [x[0, :], x[1:, ::-2], x[..., None], x[-1, 2], x[m.astype(x, m.bool)], x[None, ..., 1]],
    "norms": lambda m, x: [m.linalg.vector_norm(x), m.linalg.vector_norm(x, axis=0, ord=1), m.linalg.matrix_norm(x)],
    "sums": lambda m, x: [m.sum(x, dtype=m.float64), m.prod(x, dtype=m.float32), m.cumulative_sum(x, axis=1, dtype=m.float64)],
    # Version 2.6 of the package ignores `invert`.
    "isin": lambda m, x: [m.isin(x, x[0, :]), m.isin(x, x[:, 0])],
    "differences": lambda m, x: [m.diff(x, axis=0, n=2), m.diff(x, prepend=x[:, :1], append=x[:, :2])],
    "take_along_axis": lambda m, x: m.take_along_axis(x, m.argsort(x, axis=0), axis=0),
    "std": lambda m, x: [m.std(x, correction=1), m.var(x, axis=1, correction=0.5)],
}


@pytest.mark.parametrize("name", CALLS)
def test_other_functions(name):
    problems = []
    for dtype in DTYPES:
        x = np.nan_to_num(sample(dtype, (3, 4), 10), posinf=3, neginf=-3)
        compare(f"{name} {dtype}", CALLS[name], [x], problems)
    report(problems, len(DTYPES))


def test_creation_and_information():
    problems = []
    calls = [
        lambda m: m.arange(5), lambda m: m.arange(1, 9, 3), lambda m: m.arange(1.0, 2.0, 0.25), lambda m: m.arange(5, 0, -2),
        lambda m: m.eye(3), lambda m: m.eye(2, 3, k=1), lambda m: m.linspace(0, 1, 5), lambda m: m.linspace(0, 1, 5, endpoint=False),
        lambda m: m.zeros((2, 3)), lambda m: m.ones(3), lambda m: m.full((2,), 3), lambda m: m.full((2,), 3.5), lambda m: m.full((), True),
        lambda m: m.asarray([1, 2]), lambda m: m.asarray(1.5), lambda m: m.asarray([[True]]), lambda m: m.asarray([1, 2.5]),
        lambda m: m.meshgrid(m.arange(3), m.arange(2)), lambda m: m.meshgrid(m.arange(3), m.arange(2), indexing="ij"),
        lambda m: m.empty((0, 2)), lambda m: m.asarray([], dtype=m.float32), lambda m: m.linalg.cross(m.asarray([1.0, 0, 0]), m.asarray([0, 1.0, 0])),
    ]  # fmt: skip
    for i, call in enumerate(calls):
        compare(f"creation {i}", call, [], problems)
    assert xp.isin(xp.asarray([1, 2, 3]), xp.asarray([2, 5]), invert=True).tolist() == [True, False, True]
    for shapes in [[(3, 1), (4,)], [(), (2, 0)], [(5,)]]:
        assert tuple(strict.broadcast_shapes(*shapes)) == xp.broadcast_shapes(*shapes)
    for a, b in itertools.product(DTYPES, DTYPES):
        theirs, ours = (_promoted(m, a, b) for m in (strict, xp))
        if theirs is not None and ours != getattr(xp, str(theirs).split(".")[-1]):
            problems.append(f"result_type {a} {b}: {ours}, not {theirs}")
        if strict.can_cast(getattr(strict, a), getattr(strict, b)) != xp.can_cast(getattr(xp, a), getattr(xp, b)):
            problems.append(f"can_cast {a} {b}")
    for kind in ["bool", "signed integer", "unsigned integer", "integral", "real floating", "numeric"]:
        for d in DTYPES:
            if strict.isdtype(getattr(strict, d), kind) != xp.isdtype(getattr(xp, d), kind):
                problems.append(f"isdtype {d} {kind}")
    report(problems, len(calls))


def _promoted(m, a, b):
    try:
        return m.result_type(getattr(m, a), getattr(m, b))
    except TypeError:
        return None
