"""Kernels that programs write: `zyx.kernel` and `zyx.lang`."""

import inspect
import math
import pickle
import threading
import time

import numpy as np
import pytest
import zyx
import zyx.nn.functional as F

FLOATS = ["float16", "bfloat16", "float32", "float64"]
TOLERANCES = {"float16": 5e-3, "bfloat16": 4e-2, "float32": 1e-5, "float64": 1e-12}


def numbers(*shape, dtype="float32", seed=0):
    """A tensor of normal numbers, and the same numbers as `float64`."""
    x = zyx.tensor(np.random.default_rng(seed).normal(size=shape)).to(getattr(zyx, dtype))
    return x, x.to(zyx.float64).numpy()


def close(got, expected, dtype="float32"):
    assert got.dtype == getattr(zyx, dtype)
    tolerance = TOLERANCES[dtype]
    np.testing.assert_allclose(got.to(zyx.float64).numpy(), expected, rtol=tolerance, atol=tolerance)


def line_of(function, text):
    """The line of the first occurrence of a text in the source of a function."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def is_at(error, function, text):
    """Whether an error names this file and the line of a text in a function, as attributes and in its message."""
    line = line_of(function, text)
    assert (error.filename, error.lineno) == (__file__, line), (error, line)
    assert f"{__file__}:{line}" in str(error)
    return True


@zyx.kernel
def swiglu(gate, up):
    """A gated unit."""
    return gate * gate.sigmoid() * up


@zyx.kernel
def softmax(k):
    """Softmax of rows."""
    rows, cols = k.sizes("rows", "cols")
    x = k.input("x", [rows, cols])
    y = k.output("y", [rows, cols], x.dtype)

    @k.groups([rows], threads=256)
    def _(g, row):
        m = g.reduce("max", cols, lambda i: x[row, i].cast(x.float_dtype))
        s = g.reduce("add", cols, lambda i: (x[row, i] - m).exp())

        @g.each(cols)
        def _(i):
            y[row, i] = (x[row, i] - m).exp() / s


@softmax.gradient
def softmax_gradient(of):
    y, dy = of.output, of.cotangent
    return [y * (dy - (y * dy).sum(dim=-1, keepdim=True))]


@zyx.kernel
def double(k):
    n = k.size("n")
    x = k.input("x", [n])
    y = k.output("y", [n], x.dtype)

    @k.each(n)
    def _(i):
        y[i] = x[i] * 2


# Elementwise kernels


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_function_of_elements(dtype):
    (gate, x), (up, y) = numbers(3, 5, dtype=dtype), numbers(5, dtype=dtype, seed=1)
    close(swiglu(gate, up), x / (1 + np.exp(-x)) * y, dtype)


def test_its_gradient_is_derived():
    gate, up = (numbers(4, seed=i)[0].requires_grad_() for i in (0, 1))
    swiglu(gate, up).sum().backward()
    found = gate.grad, up.grad
    gate.grad = up.grad = None
    (gate * gate.sigmoid() * up).sum().backward()
    for got, expected in zip(found, (gate.grad, up.grad)):
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5)


def test_names_are_those_of_the_function():
    assert swiglu.__name__ == "swiglu" and swiglu.__doc__ == "A gated unit." and swiglu.__module__ == __name__
    assert softmax.__wrapped__.__name__ == "softmax" and repr(softmax) == "<zyx.kernel softmax>"
    assert pickle.loads(pickle.dumps(swiglu)) is swiglu
    assert isinstance(softmax, zyx.Kernel)


def test_the_function_runs_once_for_dtypes():
    calls = []

    @zyx.kernel(elementwise=True, name="counted")
    def f(k):
        calls.append(k.dtype)
        return k + 1

    for _ in range(3):
        assert f(zyx.zeros(2)).tolist() == [1.0, 1.0]
    once = len(calls)
    assert once <= 2
    f(zyx.zeros(2).to(zyx.float64))
    assert len(calls) <= 2 * once and calls[-1] == zyx.float64


def test_operators_are_those_of_python():
    x, y = np.array([-7, -6, 5, 7, 0, 3]), np.array([2, -4, -3, 3, 5, 1])
    for f in (
        lambda x, y: x // y,
        lambda x, y: x % y,
        lambda x, y: x // 3 + 7 % y,
        lambda x, y: (x & y) | (x ^ 5) & ~y,
        lambda x, y: (x << 2) - (x >> 1),
        lambda x, y: -x + abs(y) * +x,
    ):
        got = zyx.kernel(f)(zyx.tensor(x), zyx.tensor(y))
        np.testing.assert_array_equal(got.numpy(), f(x, y))
    x, y = np.array([-7.5, 2.0, 3.25]), np.array([2.0, -0.75, 1.5])
    for f in (lambda x, y: x // y, lambda x, y: x % y, lambda x, y: 2 / x + 1 - y / 4, lambda x, y: abs(x) ** y + 2**y):
        np.testing.assert_allclose(zyx.kernel(f)(zyx.tensor(x), zyx.tensor(y)).numpy(), f(x, y))
    for f in (lambda x, y: x < y, lambda x, y: x <= y, lambda x, y: x == y, lambda x, y: x != y, lambda x, y: x > y, lambda x, y: (x >= y) & ~(x > 1)):
        np.testing.assert_array_equal(zyx.kernel(f)(zyx.tensor(x), zyx.tensor(y)).numpy(), f(x, y))


def test_methods_are_those_of_numpy():
    x = np.array([0.125, 0.5, 0.75])
    for name in "sqrt exp exp2 expm1 log log2 log1p sin cos tan sinh cosh tanh floor ceil trunc square".split():
        got = zyx.kernel(lambda x: getattr(x, name)())(zyx.tensor(x))
        np.testing.assert_allclose(got.numpy(), getattr(np, name)(x), rtol=1e-6)
    for f, expected in (
        (lambda x: x.asin() + x.acos() + x.atan(), np.arcsin(x) + np.arccos(x) + np.arctan(x)),
        (lambda x: x.recip() + x.pow(2), 1 / x + x**2),
        (lambda x: x.erf(), [math.erf(v) for v in x]),
        (lambda x: (x - 0.5).relu() + x.clamp(0.25, 0.6), np.maximum(x - 0.5, 0) + np.clip(x, 0.25, 0.6)),
        (lambda x: x.mul_add(2, 1).maximum(1.5).minimum(x * 8), np.minimum(np.maximum(x * 2 + 1, 1.5), x * 8)),
        (lambda x: (x > 0.4).select(x, 0) + (x > 0.6).select(1, x), np.where(x > 0.4, x, 0) + np.where(x > 0.6, 1, x)),
        (lambda x: x.atan2(2) + x.unary("neg") + x.binary("max", 0.5), np.arctan2(x, 2) - x + np.maximum(x, 0.5)),
        (lambda x: x.cast("int32").cast(x.dtype) + np.float64(2), np.full(3, 2.0)),
        (lambda x: np.float64(2) * x, 2 * x),
    ):
        np.testing.assert_allclose(zyx.kernel(f)(zyx.tensor(x)).numpy(), expected, rtol=1e-6)
    bits = zyx.kernel(lambda x: x.bitcast(zyx.int32))(zyx.tensor([1.0]))
    assert bits.tolist() == [0x3F800000]


# Kernels that are written


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_softmax(dtype):
    @zyx.kernel
    def softmax(k):
        rows, cols = k.sizes("rows", "cols")
        x = k.input("x", [rows, cols])
        y = k.output("y", x.shape, x.dtype)

        @k.groups([rows])
        def _(g, row):
            def at(i):
                return x[row, i].cast("f64" if x.dtype == zyx.float64 else "f32")

            m = g.reduce("max", cols, at)
            s = g.reduce("add", cols, lambda i: (at(i) - m).exp())

            @g.each(cols)
            def _(i):
                y[row, i] = ((at(i) - m).exp() / s).cast(y.dtype)

    for shape in [(1, 1), (3, 300), (2, 0)]:
        x, a = numbers(*shape, dtype=dtype)
        e = np.exp(a - a.max(axis=1, keepdims=True, initial=-np.inf))
        close(softmax(x), e / e.sum(axis=1, keepdims=True), dtype)


def test_within_other_operations_and_their_gradients():
    x = numbers(4, 7)[0].requires_grad_()
    w = numbers(7, seed=2)[0]
    found = zyx.grad((softmax(x * 2) * w).sum(), x)
    expected = zyx.grad(((x * 2).softmax(dim=-1) * w).sum(), x)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-6)
    with zyx.no_grad():
        assert not softmax(x).requires_grad


def test_jit_and_vmap():
    x = numbers(4, 7)[0]
    step = zyx.jit(lambda x: softmax(x + 1) * 2)
    for _ in range(3):
        np.testing.assert_allclose(step(x).numpy(), (x.softmax(dim=-1) * 2).numpy(), rtol=1e-5)
    assert step.traces == 1
    slope = zyx.jit(lambda x: zyx.value_and_grad(lambda x: softmax(x).square().sum())(x)[1])
    expected = zyx.value_and_grad(lambda x: x.softmax(dim=-1).square().sum())(x)[1]
    np.testing.assert_allclose(slope(x).numpy(), expected.numpy(), atol=1e-6)
    many = numbers(3, 4, 7)[0]
    np.testing.assert_allclose(zyx.vmap(softmax)(many).numpy(), many.softmax(dim=-1).numpy(), rtol=1e-5)
    np.testing.assert_allclose(zyx.vmap(swiglu)(many, many).numpy(), (many * many.sigmoid() * many).numpy(), rtol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_stencil(dtype):
    @zyx.kernel
    def heat(k):
        h, w = k.sizes("h", "w")
        x = k.input("x", [h, w])
        y = k.output("y", [h, w], x.dtype)

        @k.each([h, w])
        def _(i, j):
            around = x.at_or((i - 1, j), 0) + x.at_or((i + 1, j), 0) + x.at_or((i, j - 1), 0) + x.at_or((i, j + 1), 0)
            y[i, j] = x[i, j] + (around - x[i, j] * 4) * 0.25

    x, a = numbers(9, 13, dtype=dtype)
    p = np.pad(a, 1)
    close(heat(x), a + (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - a * 4) * 0.25, dtype)


def test_a_wrap_around():
    @zyx.kernel
    def rolled(k):
        n = k.size("n")
        x = k.input("x", [n])
        y = k.output("y", [n], x.dtype)

        @k.each(n)
        def _(i):
            y[i] = x[(i - 1) % n]

    assert rolled(zyx.arange(5)).tolist() == [4, 0, 1, 2, 3]


def test_a_histogram_with_atomics():
    @zyx.kernel
    def histogram(k):
        n = k.size("n")
        x = k.input("x", [n])
        counts = k.output_filled("counts", [16], "int32", fill=1)
        order = k.output("order", [n.div_ceil(100)], "int32")
        ticket = k.scratch("ticket", 1, "int32")

        @k.groups(n.div_ceil(100), threads=64)
        def _(g, group):
            order[group] = ticket.fetch("add", 0, 1)
            own = g.shared(16, "int32")

            @g.each(16)
            def _(i):
                own[i] = 0

            first = group * 100

            @g.each((n - first).minimum(100))
            def _(i):
                own.atomic("add", x[first + i] & 15, 1)

            @g.each(16)
            def _(i):
                counts.atomic("add", i, own[i])

    x = np.random.default_rng(0).integers(0, 16, 1017)
    histogram.check(zyx.tensor(x))
    counts, order = histogram(zyx.tensor(x))
    assert counts.tolist() == (np.bincount(x, minlength=16) + 1).tolist()
    assert sorted(order.tolist()) == list(range(11))


def product(k):
    m, n, depth = k.sizes("m", "n", "depth")
    a, b = k.input("a", [m, depth]), k.input("b", [depth, n])
    y = k.output("y", [m, n], "float64" if a.dtype == zyx.float64 else "float32")
    tile = k.parameter("tile", [32, 16])

    @k.groups([m.div_ceil(tile), n.div_ceil(tile)], threads=64)
    def _(g, row, column):
        sums = g.matrix([tile, tile], y.dtype)
        top, left = row * tile, column * tile
        sums.add_product(depth, lambda i, s: a.at_or((top + i, s), 0), lambda s, j: b.at_or((s, left + j), 0))

        @sums.each()
        def _(i, j, x):
            y.set_if((top + i < m) & (left + j < n), (top + i, left + j), x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_matrix_product(dtype):
    multiply = zyx.kernel(product, elementwise=False)
    for m, n, depth in [(1, 1, 1), (33, 20, 17), (64, 32, 64)]:
        (a, x), (b, y) = numbers(m, depth, dtype=dtype), numbers(depth, n, dtype=dtype, seed=1)
        expected = "float64" if dtype == "float64" else "float32"
        close(multiply(a, b) / 8, x @ y / 8, expected)
        close(multiply.with_parameter(tile=16)(a, b) / 8, x @ y / 8, expected)
    with pytest.raises(ValueError, match="parameter `tile` is one of"):
        multiply.with_parameter(tile=8)(a, b)


def test_the_tuner_tries_values_of_parameters():
    tried = []
    # Another name each time: choices are kept on disk.
    name = f"tile_{time.time_ns()}"

    @zyx.kernel
    def doubled(k):
        n = k.size("n")
        x, y = k.input("x", [n]), k.output("y", [n], "float32")
        tile = k.parameter(name, [64, 12, 32])
        tried.append(tile)
        if tile == 12:
            raise ValueError("a tile of 12")

        @k.groups([n.div_ceil(tile)], threads=32)
        def _(g, group):
            @g.each(tile)
            def _(i):
                at = group * tile + i
                y.set_if(at < n, at, x.at_or(at, 0) * 2)

    x = zyx.tensor(np.arange(100, dtype=np.float32))
    assert doubled(x).tolist() == list(range(0, 200, 2))
    # Kernels of the tests before share the time.
    x.device.tune(10)
    assert {64, 12, 32} == set(tried)
    y = doubled(x)
    assert f"parameters: {name} = " in str(y.explain())
    assert y.tolist() == list(range(0, 200, 2))


@zyx.kernel
def attention(k):
    """Flash attention: blocks of keys, running maxima and sums."""
    heads, n, keys = k.sizes("heads", "n", "keys")
    width, rows, block = 32, 32, k.parameter("block", [16, 32])
    q, key, value = k.input("q", [heads, n, width]), k.input("k", [heads, keys, width]), k.input("v", [heads, keys, width])
    y = k.output("y", [heads, n, width], q.dtype)

    @k.groups([heads, n.div_ceil(rows)], threads=64)
    def _(g, head, turn):
        top, low = turn * rows, -math.inf
        sums = g.matrix([rows, width], "f32")
        most, total = sums.rows(low), sums.rows(0)

        @k.for_each(keys.div_ceil(block))
        def _(turn):
            first = turn * block
            scores = g.matrix([rows, block], "f32")
            scores.add_product(width, lambda i, s: q.at_or((head, top + i, s), 0), lambda s, j: key.at_or((head, first + j, s), 0))
            scores.map(lambda i, j, x: (first + j < keys).select(x * width**-0.5, low))
            now = most.map([scores.reduce_rows("max")], lambda x, y: x.maximum(y))
            factor = most.map([now], lambda before, now: (before - now).exp())
            scores.map_rows([now], lambda i, j, x, most: (x - most).exp())
            total.set(total.map([factor, scores.reduce_rows("add")], lambda x, f, y: x * f + y))
            sums.map_rows([factor], lambda i, j, x, f: x * f)
            sums.add_product_of(scores, value.dtype, lambda s, j: value.at_or((head, first + s, j), 0))
            most.set(now)

        @sums.each(total)
        def _(i, j, x, total):
            y.set_if(top + i < n, (head, top + i, j), (x / total).cast(y.dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_flash_attention(dtype):
    for n, keys in [(1, 1), (40, 37)]:
        (q, _), (k, _), (v, _) = numbers(2, n, 32, dtype=dtype), numbers(2, keys, 32, dtype=dtype, seed=1), numbers(2, keys, 32, dtype=dtype, seed=2)
        expected = F.scaled_dot_product_attention(q, k, v).to(zyx.float64).numpy()
        close(attention(q, k, v), expected, dtype)
        close(attention.with_parameter(block=32)(q, k, v), expected, dtype)
    attention.check(q, k, v)


def test_a_segmented_sum():
    @zyx.kernel
    def segment_sum(k):
        n, ends = k.sizes("n", "ends")
        x, first = k.input("x", [n]), k.input("first", [ends])
        y = k.output("y", [ends - 1], x.dtype)

        @k.each(ends - 1)
        def _(segment):
            zero = k.value(0, x.dtype)
            y[segment] = k.fold((first[segment], first[segment + 1]), zero, lambda sum, i: sum + x[i])

    (x, a), first = numbers(20), [0, 3, 3, 11, 20]
    close(segment_sum(x, zyx.tensor(first)), [a[i:j].sum() for i, j in zip(first, first[1:])])


def test_a_scan_and_several_outputs():
    @zyx.kernel
    def running(k):
        rows, n = k.sizes("rows", "n")
        x = k.input("x", [rows, n])
        y, all = k.output("y", [rows, n], x.dtype), k.output("all", [rows], x.dtype)

        @k.groups(rows, threads=128)
        def _(g, row):
            part = x.row(row)

            def emit(i, before, after):
                y[row, i] = after - before

            all[row] = g.scan("add", n, x.dtype, lambda i: part[i], emit)

    x = np.arange(600).reshape(2, 300)
    y, all = running(zyx.tensor(x))
    np.testing.assert_array_equal(y.numpy(), x)
    assert all.tolist() == x.sum(axis=1).tolist()


def test_variables_conditions_and_arrays():
    @zyx.kernel
    def collatz(k):
        n = k.size("n")
        x = k.input("x", [n])
        steps = k.output("steps", [n], "int32")
        largest = k.output("largest", [n], x.dtype)

        @k.each(n)
        def _(i):
            now, count, most = k.var(x[i]), k.var(0, "int32"), k.array(1, x.dtype)
            most[0] = x[i]

            @k.for_each(range(0, 200))
            def _(turn):
                @k.when(now.get() > 1)
                def _():
                    k.when_else(now.get() % 2 == 0, lambda: now.set(now.get() // 2), lambda: now.set(now.get() * 3 + 1))
                    count.set(count.get() + 1)
                    most[0] = most[0].maximum(now.get())

            steps[i] = count.get()
            largest[i] = k.where(most[0] > 100, most[0], -1)

    steps, largest = collatz(zyx.tensor([1, 6, 27]))
    assert steps.tolist() == [0, 8, 111] and largest.tolist() == [-1, -1, 9232]


def test_folds_of_tuples():
    @zyx.kernel
    def extremes(k):
        n, m = k.sizes("n", "m")
        x = k.input("x", [n, m])
        low, high = k.output("low", [n], x.dtype), k.output("high", [n], "int64")

        @k.each(n)
        def _(i):
            def next(state, j):
                most, at = state
                is_more = x[i, j] > most
                return is_more.select(x[i, j], most), is_more.select(j, at)

            low[i], high[i] = k.fold((1, m), (x[i, 0], k.index(0)), next)

    x, a = numbers(4, 9)
    low, high = extremes(x)
    close(low, a.max(axis=1))
    assert high.tolist() == a.argmax(axis=1).tolist()


def test_loops_that_a_condition_ends(device):
    @zyx.kernel
    def loops(k):
        n, m = k.sizes("n", "m")
        x = k.input("x", [n, m])
        divisor, odd, first, total = [k.output(name, [n], x.dtype) for name in ("divisor", "odd", "first", "total")]

        @k.each(n)
        def _(i):
            a, b = k.var(x[i, 0]), k.var(x[i, 1])

            @k.while_(lambda: b.get() != 0)
            def _():
                rest = a.get() % b.get()
                a.set(b.get())
                b.set(rest)

            divisor[i] = a.get()
            now, count = k.var(x[i, 0]), k.var(0, x.dtype)

            @k.while_(lambda: now.get() > 1)
            def _():
                k.while_(lambda: now.get() % 2 == 0)(lambda: now.set(now.get() // 2))
                k.break_if(now.get() == 1)
                now.set(now.get() * 3 + 1)
                count.set(count.get() + 1)

            odd[i] = count.get()
            place = k.var(0, x.dtype)

            @k.for_each(m)
            def _(j):
                k.break_if(x[i, j] < 0)
                place.set(j + 1)

            first[i] = place.get()

            def add(sum, j):
                k.break_if(x[i, j] < 0)
                return sum + x[i, j]

            total[i] = k.fold(m, k.value(0, x.dtype), add)

    def odd_steps(n):
        count = 0
        while n > 1:
            n, count = (3 * n + 1, count + 1) if n % 2 else (n // 2, count)
        return count

    x = np.random.default_rng(0).integers(1, 100, (50, 7))
    x[:, 2:] -= 10
    loops.check(zyx.tensor(x))
    divisor, odd, first, total = (y.numpy() for y in loops(zyx.tensor(x, device=device)))
    ends = [next((j for j, v in enumerate(row) if v < 0), 7) for row in x]
    assert min(ends) < max(ends) == 7
    np.testing.assert_array_equal(divisor, np.gcd(x[:, 0], x[:, 1]))
    np.testing.assert_array_equal(odd, [odd_steps(n) for n in x[:, 0]])
    np.testing.assert_array_equal(first, ends)
    np.testing.assert_array_equal(total, [row[:end].sum() for row, end in zip(x, ends)])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("columns", [8, 64])
def test_a_factor_that_is_computed(dtype, columns):
    @zyx.kernel
    def products(k):
        n, depth = k.sizes("n", "depth")
        x, w, v = k.input("x", [n, depth]), k.input("w", [depth, columns]), k.input("v", [columns, 32])
        y = k.output("y", [n, 32], "float64" if x.dtype == zyx.float64 else "float32")

        @k.groups([n.div_ceil(32)], threads=64)
        def _(g, turn):
            top, sums = turn * 32, g.matrix([32, 32], y.dtype)

            def factor():
                matrix = g.matrix([32, columns], y.dtype)
                matrix.add_product(depth, lambda i, s: x.at_or((top + i, s), 0), lambda s, j: w.at_or((s, j), 0))
                return matrix

            sums.add_product_after(columns, x.dtype, factor, lambda s, j: v.at_or((s, j), 0))

            @sums.each()
            def _(i, j, sum):
                y.set_if(top + i < n, (top + i, j), sum)

    # Small integers, of which products and sums are exact in each dtype.
    rng = np.random.default_rng(columns)
    x, w, v = (rng.integers(-1, 2, shape).astype("float64") for shape in [(70, 5), (5, columns), (columns, 32)])
    inputs = [zyx.tensor(a).to(getattr(zyx, dtype)) for a in (x, w, v)]
    np.testing.assert_array_equal(products(*inputs).numpy(), x @ w @ v)
    products.check(*inputs)


def test_sizes_that_no_input_says_and_outputs_from_inputs():
    @zyx.kernel
    def repeated(k):
        n, times = k.sizes("n", "times")
        x = k.input("x", [n])
        y = k.output("y", [times, n], x.dtype)
        z = k.output_from("z", x)

        @k.each([times, n])
        def _(i, j):
            y[i, j] = x[j]
            z.atomic("add", j, 1)

    x = zyx.tensor([1, 2])
    with pytest.raises(ValueError, match="with_size"):
        repeated(x)
    y, z = repeated.with_size(times=3)(x)
    assert y.tolist() == [[1, 2]] * 3 and z.tolist() == [4, 5]
    assert x.tolist() == [1, 2]


def test_a_limit():
    @zyx.kernel
    def limited(k):
        n = k.size("n")
        k.limit(n * 2, 8)
        x, y = k.input("x", [n]), k.output("y", [n], "float32")
        k.each(n)(lambda i: y.set_if(i >= 0, i, x[i]))

    assert limited(zyx.ones(4)).tolist() == [1.0] * 4
    with pytest.raises(ValueError, match="kernel `limited`.* 8"):
        limited(zyx.ones(5))


def test_text():
    text = softmax.to_text("float32")
    assert "softmax" in text and "f32" in softmax.to_text(zyx.float32, device="cpu")
    again, (x, a) = zyx.Kernel.from_text(text), numbers(3, 5)
    e = np.exp(a - a.max(axis=1, keepdims=True))
    close(again(x), e / e.sum(axis=1, keepdims=True))
    assert again.__name__ == "softmax" and again.with_size(rows=3).to_text("float32") == text
    again.check(x)
    elements = zyx.Kernel.from_text(swiglu.to_text("float32", "float32"))
    close(elements(x.reshape(15), x.reshape(15)), (a * a / (1 + np.exp(-a))).reshape(15))
    x = np.arange(300, dtype=np.int32)
    again = zyx.Kernel.from_text(running_sum.to_text("int32"))
    np.testing.assert_array_equal(again(zyx.tensor(x)).numpy(), np.cumsum(x))
    line = next(number for number, line in enumerate(text.splitlines(), 1) if " exp " in line)
    with pytest.raises(ValueError, match=f"line {line}: there is no op `expo`"):
        zyx.Kernel.from_text(text.replace(" exp ", " expo "))
    with pytest.raises(TypeError):
        zyx.Kernel.from_text(3)


# Groups that use each other's results, and values that threads of a group give each other


@pytest.fixture(params=["cpu", "opencl"])
def device(request):
    if not any(spec.startswith(request.param) for spec, *_ in zyx.devices()):
        pytest.skip(f"no device {request.param}")
    return request.param


@zyx.kernel
def running_sum(k):
    """A running sum in one launch."""
    n, tile = k.size("n"), 64
    x = k.input("x", [n])
    y = k.output("y", [n], x.dtype)
    sums = k.look_back("sums", "add", x.dtype, n.div_ceil(tile))

    @k.groups([n.div_ceil(tile)], threads=32)
    def _(g, _):
        number = sums.ticket(g)

        def total(number):
            return g.reduce("add", tile, lambda i: x.at_or(number * tile + i, 0))

        before = sums.prefix(g, number, total(number), total)

        def emit(i, _, sum):
            at = number * tile + i
            y.set_if(at < n, at, before + sum)

        g.scan("add", tile, x.dtype, lambda i: x.at_or(number * tile + i, 0), emit)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_a_scan_in_one_launch(device, dtype):
    for n in (1, 64, 1000):
        x = np.random.default_rng(n).integers(-9, 9, n).astype(dtype)
        np.testing.assert_array_equal(running_sum(zyx.tensor(x, device=device)).numpy(), np.cumsum(x))
    running_sum.check(zyx.tensor(x[:200]))


def test_a_search_with_a_queue(device):
    """Numbers below a bound whose Collatz sequences stay below it, from 1 backwards. Items are `number * 64 + steps`."""

    @zyx.kernel
    def collatz(k):
        n = k.size("n")
        steps = k.output_from("steps", k.input("before", [n]))
        queue = k.queue("queue", n)

        @k.groups(3, threads=32)
        def _(g, group):
            k.when(group == 0)(lambda: queue.push(64))

            @queue.drain(g)
            def _(item):
                number, count = item // 64, item % 64
                steps[number] = count

                @g.each(2)
                def _(way):
                    next = (way == 0).select(number * 2, (number - 1) // 3)
                    leads = (way == 0) | (number > 4) & (number % 6 == 4)
                    k.when(leads & (next < n))(lambda: queue.push(next * 64 + count + 1))

    for n in (2, 150):
        expected, found = np.full(n, -1), [(1, 0)]
        for number, count in found:
            expected[number] = count
            found += [(x, count + 1) for x in (number * 2, (number - 1) // 3) if x < n and (x > number or number > 4 and number % 6 == 4)]
        assert expected.max() < 64
        before = zyx.full((n,), -1, dtype=zyx.int64, device=device)
        np.testing.assert_array_equal(collatz(before).numpy(), expected)
    collatz.check(before)


def test_items_of_a_queue(device):
    @zyx.kernel
    def some(k):
        n = k.size("n")
        x, are_kept, items = k.input("x", [n]), k.output("are_kept", [n], "bool"), k.output("items", [n], "int64")
        queue = k.queue("queue", 3)

        @k.groups(1, threads=32)
        def _(g, _):
            @k.for_each(n)
            def _(i):
                are_kept[i] = queue.push(x[i])

            @k.for_each(n)
            def _(i):
                items[i] = queue.pop(g)

    are_kept, items = some(zyx.tensor([7, -1, 0, 2**30, 7, 8], device=device))
    assert are_kept.tolist() == [True, False, True, False, True, False]
    assert items.tolist() == [7, 0, 7, -1, -1, -1]


def test_a_radix_sort(device):
    def sort(shift):
        @zyx.kernel(elementwise=False)
        def by_digit(k):
            n = k.size("n")
            x = k.input("x", [n])
            y, order = k.output("y", [n], x.dtype), k.output("order", [n], "int64")

            @k.groups(1, threads=32)
            def _(g, _):
                def emit(i, place):
                    y[place], order[place] = x[i], i

                g.rank((0, n), 4, lambda i: x[i] >> shift & 15, emit)

        return by_digit

    x = np.random.default_rng(0).integers(0, 1 << 8, 300).astype(np.int32)
    y = zyx.tensor(x, device=device)
    sort(0).check(y)
    for shift in (0, 4):
        before = y.numpy()
        y, order = sort(shift)(y)
        np.testing.assert_array_equal(order.numpy(), np.argsort(before >> shift & 15, kind="stable"))
    np.testing.assert_array_equal(y.numpy(), np.sort(x))


def test_a_compaction(device):
    @zyx.kernel
    def negative(k):
        n = k.size("n")
        x, count, y = k.input("x", [n]), k.output_filled("count", [1], "int32"), k.output_filled("y", [n], "int64", fill=-1)

        @k.groups(n.div_ceil(100), threads=32)
        def _(g, group):
            def emit(i, place):
                y[place] = i

            g.append(count, (group * 100, n.minimum(group * 100 + 100)), lambda i: x[i] < 0, emit)

    _, a = numbers(1017)
    negative.check(zyx.tensor(a))
    count, y = negative(zyx.tensor(a, device=device))
    (expected,) = np.nonzero(a < 0)
    assert count.tolist() == [len(expected)]
    np.testing.assert_array_equal(np.sort(y.numpy()[: len(expected)]), expected)
    assert set(y.numpy()[len(expected) :]) == {-1}


def test_permutations(device):
    @zyx.kernel
    def permuted(k):
        n, rows, columns = k.size("n"), 5, 12
        x = k.input("x", [n, rows, columns])
        turned = k.output("turned", [n, columns, rows], x.dtype)
        shifted = k.output("shifted", [n, 8], x.dtype)

        @k.groups(n, threads=32)
        def _(g, i):
            def emit(place, value):
                turned[i, place // rows, place % rows] = value

            g.exchange(rows * columns, x.dtype, lambda at: x[i, at // columns, at % columns], lambda at: at % rows * columns + at // rows, emit)
            g.exchange(8, x.dtype, lambda at: x[i, 0, at], lambda at: at + 3, lambda at, value: shifted.set_if(at >= 0, (i, at), value))

    x = np.arange(180).reshape(3, 5, 12) + 1
    permuted.check(zyx.tensor(x))
    turned, shifted = permuted(zyx.tensor(x, device=device))
    np.testing.assert_array_equal(turned.numpy(), x.transpose(0, 2, 1))
    np.testing.assert_array_equal(shifted.numpy(), np.pad(x[:, 0, 3:8], ((0, 0), (0, 3))))


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_a_pipeline(device, stages):
    @zyx.kernel
    def products(k):
        n, depth = k.sizes("n", "depth")
        x, w = k.input("x", [n, depth]), k.input("w", [depth])
        y, first = k.output("y", [n], x.dtype), k.output("first", [n], x.dtype)

        @k.groups(n, threads=32)
        def _(g, row):
            sum, half = k.var(0, x.dtype), k.var(0, x.dtype)

            def load(step, i, j):
                at = step * 64 + i * 16 + j
                return x.at_or((row, at), 0), w.at_or(at, 0)

            def compute(step, x, w):
                assert x.ndim == w.ndim == 2
                sum.set(sum.get() + g.reduce("add", 64, lambda i: x[i // 16, i % 16] * w[i // 16, i % 16]))

            g.pipeline(stages, depth.div_ceil(64), (4, 16), load, compute)
            g.pipeline(stages, (1, 3), 32, lambda step, i: x.at_or((row, step * 32 + i), 0), lambda step, x: half.set(half.get() + x[0] + x[31]))
            y[row], first[row] = sum.get(), half.get()

    for depth in (0, 1, 64, 300):
        (x, a), (w, b) = numbers(2, depth), numbers(depth, seed=1)
        y, first = products(x.to(device), w.to(device))
        close(y, a @ b)
        ends = np.pad(a, ((0, 0), (0, 96)))[:, [32, 63, 64, 95]]
        close(first, ends.sum(axis=1))
    products.check(x, w)


TWICE = """__kernel void twice(__global float *x, ulong x0, __global float *y, ulong y0, float by, uint n) {
    uint i = get_global_id(0);
    if (i < n) y[y0 + i] = by * x[x0 + i];
}"""


def with_raw(code=TWICE, launch=lambda n: ([(n + 63) // 64], [4, n]), **changes):
    """A kernel that doubles, and whose code for OpenCL multiplies by 4: results tell which ran."""

    @zyx.kernel
    def double(k):
        n = k.size("n")
        x = k.input("x", [n])
        y = k.output("y", [n], zyx.float32)

        @k.each([n])
        def _(i):
            y[i] = x[i] * 2

    declared = {
        "language": "OpenCL C",
        "entry": "twice",
        "buffers": [("float32", "read"), (zyx.float32, "write")],
        "scalars": ["float32", zyx.uint32],
        "threads": 64,
    }
    return double.with_raw(code=code, launch=launch, **{**declared, **changes})


def test_code_of_one_backend():
    x = [float(i) for i in range(100)]
    assert with_raw()(zyx.tensor(x, device="cpu")).tolist() == [2 * x for x in x]
    assert with_raw(language="PTX")(zyx.tensor(x, device="cpu")).tolist() == [2 * x for x in x]
    with pytest.raises(ValueError, match='"OpenCL" is no language'):
        with_raw(language="OpenCL")
    with pytest.raises(ValueError, match='"r" is no access'):
        with_raw(buffers=[("float32", "r")])
    with pytest.raises(TypeError, match="names of sizes"):
        with_raw(launch=5)
    with pytest.raises(OverflowError):
        with_raw(threads=-1)
    if not any(spec.startswith("opencl") for spec, *_ in zyx.devices()):
        pytest.skip("no OpenCL device")
    x = zyx.tensor(x, device="opencl")
    assert with_raw()(x).tolist() == [4 * x for x in x.tolist()]
    assert (with_raw()(x + 1) - 1).tolist() == [4 * x + 3 for x in x.tolist()]
    assert with_raw(language="WGSL")(x).tolist() == [2 * x for x in x.tolist()]
    for changes in [
        {"buffers": [("float32", "read")]},
        {"buffers": [("float32", "read"), ("float32", "read")]},
        {"launch": lambda n: ([1], [n])},
        {"launch": lambda n: ([1], [1, n, 1])},
    ]:
        with pytest.raises(ValueError, match="the raw kernel `twice`"):
            with_raw(**changes)(x)
    with pytest.raises(ZeroDivisionError):
        with_raw(launch=lambda n: 1 / 0)(x)
    with pytest.raises(TypeError):
        with_raw(launch=lambda n: None)(x)
    with pytest.raises(zyx.KernelError, match="twice"):
        with_raw(code=TWICE.replace("uint i", "uint j"))(x).tolist()


# Errors


def test_dtypes_that_differ():
    def wrong(k):
        n = k.size("n")
        x, w = k.input("x", [n]), k.input("w", [n])
        y = k.output("y", [n], x.dtype)

        @k.each(n)
        def _(i):
            y[i] = x[i] * w[i]

    with pytest.raises(zyx.KernelError, match="kernel `wrong` at .*mul. of f32 and i64: cast one") as raised:
        zyx.kernel(wrong)(zyx.ones(2), zyx.arange(2))
    assert is_at(raised.value, wrong, "y[i] = x[i]")
    assert isinstance(raised.value, RuntimeError) and isinstance(raised.value, ValueError)
    with pytest.raises(zyx.KernelError) as raised:
        swiglu(zyx.ones(2), zyx.arange(2))
    assert is_at(raised.value, swiglu.__wrapped__, "return gate")


def test_a_wrong_number_of_coordinates():
    def wrong(k):
        n = k.size("n")
        x = k.input("x", [n, n])
        y = k.output("y", [n], x.dtype)
        k.each(n)(lambda i: y.set_if(i > 0, i, x[i]))

    with pytest.raises(zyx.KernelError, match="1 coordinates of an array of 2 axes") as raised:
        zyx.kernel(wrong)(zyx.ones(2, 2))
    assert is_at(raised.value, wrong, "k.each(n)")


def test_a_race_is_found():
    def wrong(k):
        n = k.size("n")
        x = k.input("x", [n])
        y = k.output_filled("y", [1], x.dtype)

        @k.each(n)
        def _(i):
            y[0] = y[0] + x[i]

    with pytest.raises(zyx.KernelError, match="threads that nothing orders") as raised:
        zyx.kernel(wrong).check(zyx.ones(3))
    assert is_at(raised.value, wrong, "y[0] = y[0]")


def test_an_access_outside_is_found():
    def wrong(k):
        n = k.size("n")
        x = k.input("x", [n])
        y = k.output("y", [n], x.dtype)

        @k.each(n)
        def _(i):
            y[i] = x[i + 1]

    kernel = zyx.kernel(wrong)
    assert kernel(zyx.tensor([1.0, 2.0])).tolist() == [2.0, 0.0]
    with pytest.raises(zyx.KernelError, match="outside of the array") as raised:
        kernel.check(zyx.ones(3))
    assert is_at(raised.value, wrong, "y[i] = x[i + 1]")


def test_a_value_outside_of_its_loop():
    def wrong(k):
        n = k.size("n")
        x, y = k.input("x", [n]), k.output("y", [n], "float32")

        @k.each(n)
        def _(i):
            kept = []
            k.for_each(3)(lambda j: kept.append(x[i] * j.cast("float32")))
            y[i] = kept[0]

    with pytest.raises(zyx.KernelError, match="is not defined here") as raised:
        zyx.kernel(wrong)(zyx.ones(3))
    assert is_at(raised.value, wrong, "y[i] = kept[0]")


@pytest.mark.parametrize(
    "use",
    [
        lambda k, x: k.while_(lambda: x)(print),
        lambda k, x: k.for_each(3)(lambda j: k.break_if(x)),
        lambda k, x: k.when(x)(print),
        lambda k, x: k.when_else(x, print, print),
    ],
)
def test_a_condition_that_is_no_bool(use):
    def wrong(k):
        x = k.input("x", [k.size("n")])
        k.each(3)(lambda i: use(k, x[i]))

    with pytest.raises(zyx.KernelError, match="a condition is f32, not bool") as raised:
        zyx.kernel(wrong)(zyx.ones(3))
    assert (raised.value.filename, raised.value.lineno) == (__file__, use.__code__.co_firstlineno)


def test_a_wait_without_end():
    def endless(k):
        n = k.size("n")
        x, y = k.input("x", [n]), k.output("y", [n], "int32")

        @k.each(n)
        def _(i):
            turns = k.var(0, "int32")
            k.while_(lambda: x[i] == x[i])(lambda: turns.set(turns.get() ^ 1))
            y[i] = turns.get()

    kernel = zyx.kernel(endless)
    with pytest.raises(zyx.KernelError, match="no end after") as raised:
        kernel.check(zyx.ones(3))
    assert is_at(raised.value, endless, "k.while_")
    y = kernel(zyx.ones(200))
    with pytest.raises(zyx.KernelError, match="iterations of loops") as raised:
        y.tolist()
    assert is_at(raised.value, test_a_wait_without_end, "y = kernel(")


@pytest.mark.parametrize(
    "rule, match",
    [
        (lambda of: [of.cotangent * 2, None], "gives 2 cotangents for 1 input"),
        (lambda of: [], "gives 0 cotangents for 1 input"),
        (lambda of: [of.cotangent.sum()], "for input 0, which is f32"),
        (lambda of: [of.cotangent.to(zyx.float64)], "gives f64.* for input 0, which is f32"),
        (lambda of: [of.cotangent.to("reference")], "on reference:0 for input 0, which is f32.* on cpu:0"),
        (lambda of: [2.0], "gives 'float' instead of a tensor"),
        (lambda of: None, "gives 'NoneType' instead of a tensor"),
    ],
)
def test_wrong_cotangents(rule, match):
    kernel = zyx.kernel(double.__wrapped__)
    kernel.gradient(rule)
    with pytest.raises(zyx.KernelError, match=match) as raised:
        kernel(zyx.ones(3, requires_grad=True)).sum().backward()
    line = rule.__code__.co_firstlineno
    assert (raised.value.filename, raised.value.lineno) == (__file__, line)
    assert f"kernel `double` at {__file__}:{line}" in str(raised.value)


def test_rules_of_gradients():
    kernel = zyx.kernel(double.__wrapped__)

    def rule(of):
        return of.cotangent * 2 if of.number == 0 and len(of.inputs) == 1 else None

    assert kernel.gradient(rule) is rule
    x = zyx.ones(3, requires_grad=True)
    kernel(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    kernel.gradient(lambda of: [1 / 0])
    with pytest.raises(ZeroDivisionError):
        kernel(x).sum().backward()
    with pytest.raises(Exception, match="gradient|differentiable"):
        double(x).sum().backward()


def test_if_on_a_value():
    def wrong(k):
        n = k.size("n")
        x = k.input("x", [n])

        @k.each(n)
        def _(i):
            if x[i] > 0:
                pass

    with pytest.raises(TypeError, match=r"k\.when.*select") as raised:
        zyx.kernel(wrong)(zyx.ones(3))
    assert is_at(raised.value, wrong, "if x[i] > 0")
    with pytest.raises(TypeError, match="select"):
        zyx.kernel(lambda x: max(x, 0))(zyx.ones(3))


def test_exceptions_are_raised_unchanged():
    error = KeyError("mine")

    def drained(k):
        queue = k.queue("queue", 3)
        return lambda f: k.groups(3)(lambda g, i: queue.drain(g)(f))

    def looked_back(k):
        sums = k.look_back("sums", "add", "f32", 3)
        return lambda f: k.groups(3)(lambda g, i: sums.prefix(g, sums.ticket(g), k.value(0, "f32"), f))

    def raising(*_):
        raise error

    for body in (
        lambda k, x: raising(),
        lambda k, x: k.each(3)(raising),
        lambda k, x: k.groups(3)(lambda g, i: g.each(3)(raising)),
        lambda k, x: k.groups(3)(lambda g, i: g.reduce("add", 3, raising)),
        lambda k, x: k.groups(3)(lambda g, i: g.scan("add", 3, "f32", raising, raising)),
        lambda k, x: k.groups(3)(lambda g, i: g.matrix([16, 16], "f32").add_product(3, raising, raising)),
        lambda k, x: k.groups(3)(lambda g, i: g.matrix([16, 16], "f32").map(raising)),
        lambda k, x: k.groups(3)(lambda g, i: g.matrix([16, 16], "f32").add_product_after(16, "f32", raising, raising)),
        lambda k, x: k.groups(3)(lambda g, i: g.matrix([16, 16], "f32").add_product_after(8, "f32", lambda: g.matrix([16, 8], "f32"), raising)),
        lambda k, x: k.groups(3)(lambda g, i: g.rank(3, 4, raising, raising)),
        lambda k, x: k.groups(3)(lambda g, i: g.append(g.shared(1, "int32"), 3, lambda i: i < 2, raising)),
        lambda k, x: k.groups(3)(lambda g, i: g.exchange(3, "f32", raising, raising, raising)),
        lambda k, x: k.groups(3)(lambda g, i: g.pipeline(2, 3, 3, raising, raising)),
        lambda k, x: k.groups(3)(lambda g, i: g.pipeline(2, 3, 3, lambda step, i: x[i], raising)),
        lambda k, x: drained(k)(raising),
        lambda k, x: looked_back(k)(raising),
        lambda k, x: k.each(3)(lambda i: k.fold(3, x[i], raising)),
        lambda k, x: k.each(3)(lambda i: k.while_(raising)(print)),
        lambda k, x: k.each(3)(lambda i: k.while_(lambda: i < 0)(raising)),
        lambda k, x: k.each(3)(lambda i: k.when_else(i > 0, raising, raising)),
    ):

        def write(k):
            body(k, k.input("x", [k.size("n")]))

        with pytest.raises(KeyError) as raised:
            zyx.kernel(write)(zyx.ones(3))
        assert raised.value is error
    with pytest.raises(KeyError) as raised:
        zyx.kernel(raising)(zyx.ones(3))
    assert raised.value is error
    assert double(zyx.ones(2)).tolist() == [2.0, 2.0]


def test_an_exception_that_the_function_catches():
    def wrong(k):
        x = k.input("x", [k.size("n")])
        try:
            k.each(3)(lambda i: x[i, i])
        except zyx.KernelError:
            pass

    with pytest.raises(zyx.KernelError, match="coordinates") as raised:
        zyx.kernel(wrong)(zyx.ones(3))
    assert is_at(raised.value, wrong, "x[i, i]")


def test_values_after_the_recording():
    kept = []

    @zyx.kernel
    def f(k):
        n = k.size("n")
        x = k.input("x", [n])
        y = k.output("y", [n], x.dtype)
        sums, queue = k.look_back("sums", "add", "f32", n), k.queue("queue", n)

        @k.groups(n)
        def _(g, i):
            matrix = g.matrix([16, 16], "f32")
            kept[:] = [k, g, matrix, matrix.rows(0), k.var(x[i]), k.when(i > 0), x, i, sums, queue]
            y[i] = x[i]

    assert f(zyx.ones(3)).tolist() == [1.0] * 3
    k, g, matrix, rows, var, body, x, i, sums, queue = kept
    uses = [
        lambda: i + 1,
        lambda: i.exp(),
        lambda: bool(i),
        lambda: i.dtype,
        lambda: x[0],
        lambda: x.shape,
        lambda: x.atomic("add", 0, 1),
        lambda: k.size("n"),
        lambda: k.each(3)(print),
        lambda: g.reduce("add", 3, print),
        lambda: g.rank(3, 4, print, print),
        lambda: sums.ticket(g),
        lambda: queue.push(1),
        lambda: queue.pop(g),
        lambda: queue.drain(g)(print),
        lambda: matrix.fill(0),
        lambda: rows.fill(0),
        lambda: var.get(),
        lambda: body(print),
    ]
    for use in uses:
        with pytest.raises((zyx.KernelError, TypeError), match="not being recorded"):
            use()
    repr(i)

    @zyx.kernel
    def other(k):
        k.input("x", [k.size("n")])[i]

    with pytest.raises(zyx.KernelError, match="recording") as raised:
        other(zyx.ones(3))
    assert is_at(raised.value, other.__wrapped__, "[i]")


def test_values_in_another_thread():
    found = []

    def write(k):
        n = k.size("n")

        def use():
            try:
                n + 1
            except zyx.KernelError as error:
                found.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        return k.each(n)(lambda i: k.input)

    zyx.kernel(write).with_size(n=2)
    with pytest.raises(Exception):
        zyx.kernel(write)(zyx.ones(3))
    assert "not being recorded" in str(found[0])


def test_a_group_outside_of_its_body():
    def wrong(k):
        n = k.size("n")
        kept = []
        k.groups(n)(lambda g, i: kept.append(g))
        kept[0].each(3)(print)

    with pytest.raises(zyx.KernelError, match="outside of the body") as raised:
        zyx.kernel(wrong, elementwise=False).with_size(n=3)(zyx.ones(3))
    assert is_at(raised.value, wrong, "kept[0].each")


@pytest.mark.parametrize(
    "use",
    [
        lambda k, x, g, sums, queue, count: g.rank(3, 4, lambda i: i, print),
        lambda k, x, g, sums, queue, count: g.append(count, 3, lambda i: i > 0, print),
        lambda k, x, g, sums, queue, count: g.exchange(3, x.dtype, lambda i: x[i], lambda i: i, print),
        lambda k, x, g, sums, queue, count: g.pipeline(2, 3, 3, lambda step, i: x[i], print),
        lambda k, x, g, sums, queue, count: sums.prefix(g, 0, x[0], print),
        lambda k, x, g, sums, queue, count: sums.ticket(g),
        lambda k, x, g, sums, queue, count: queue.pop(g),
        lambda k, x, g, sums, queue, count: queue.drain(g)(print),
    ],
)
def test_primitives_of_a_group_elsewhere(use):
    def wrong(k, within):
        n, kept = k.size("n"), []
        x, count = k.input("x", [n]), k.output_filled("count", 1, "int32")
        sums, queue = k.look_back("sums", "add", x.dtype, n), k.queue("queue", n)
        k.groups(n)(lambda g, i: (kept.append(g), within and g.each(3)(lambda i: use(k, x, g, sums, queue, count))))
        use(k, x, kept[0], sums, queue, count)

    with pytest.raises(zyx.KernelError, match="outside of the body") as raised:
        zyx.kernel(lambda k: wrong(k, False), elementwise=False)(zyx.ones(3))
    assert raised.value.filename == __file__ and raised.value.lineno == use.__code__.co_firstlineno
    if use.__code__.co_names[0] not in ("ticket", "pop", "drain"):
        with pytest.raises(zyx.KernelError, match="is of a whole group") as raised:
            zyx.kernel(lambda k: wrong(k, True), elementwise=False)(zyx.ones(3))
        assert raised.value.filename == __file__ and raised.value.lineno == use.__code__.co_firstlineno


def test_other_mistakes():
    def fails(write, kind, match):
        with pytest.raises(kind, match=match):
            zyx.kernel(write, elementwise=False)(zyx.ones(3))

    def x(k):
        return k.input("x", [k.size("n")])

    fails(lambda k: 3, TypeError, "a kernel returns nothing")
    fails(lambda k: None, ValueError, "0 inputs, and was called with 1")
    fails(lambda k: x(k)[0] + "a", TypeError, "unsupported operand")
    fails(lambda k: x(k)[0] + zyx.ones(1), TypeError, "declare an input")
    fails(lambda k: x(k)[0] & 1, zyx.KernelError, "not defined on f32")
    fails(lambda k: k.size("n") / 2, zyx.KernelError, "use `//`")
    fails(lambda k: k.size("n") + 0.5, zyx.KernelError, "literal 0.5 is no i64")
    fails(lambda k: list(x(k)), TypeError, "no list")
    fails(lambda k: x(k).__setitem__(0, 1), zyx.KernelError, "an input is never stored to")
    fails(lambda k: k.array([k.size("n")], "f32"), TypeError, "numbers of Python")
    fails(lambda k: k.groups(3)(lambda g, i: g.reduce("nothing", 3, lambda i: i)), ValueError, "no operation")
    fails(lambda k: k.groups(3)(lambda g, i: g.reduce("add", 3, lambda i: 1)), TypeError, r"k\.value")
    fails(lambda k: k.groups(3)(lambda g, i: g.matrix([0, 3], "f32")), Exception, "powers of two")
    fails(lambda k: k.groups(3, threads=100)(print), zyx.KernelError, "power of two")
    fails(lambda k: k.each(3)(lambda i: k.each(3)(print)), zyx.KernelError, "opens the outermost")
    fails(lambda k: k.fold(3, (k.index(0), k.index(1)), lambda state, i: i), Exception, "iterable|values")
    fails(lambda k: k.fold(3, 0, lambda state, i: i), TypeError, r"k\.value")
    fails(lambda k: k.for_each(range(0, 9, 2)), ValueError, "step 1")
    fails(lambda k: k.each(3)(lambda i: k.while_(i < 0)), TypeError, "is a function")
    fails(lambda k: k.each(3)(lambda i: k.while_(lambda: None)(print)), TypeError, "'NoneType' object is no value")
    fails(lambda k: k.each(3)(lambda i: k.break_if(i > 1)), zyx.KernelError, "directly in a serial loop")
    fails(lambda k: k.each(3)(lambda i: k.for_each(3)(lambda j: k.when(j > i)(lambda: k.break_if(j > 1)))), zyx.KernelError, "directly in a serial loop")

    def group(f):
        return lambda k: (lambda x: k.groups(3)(lambda g, i: f(k, g, x)))(x(k))

    fails(lambda k: k.look_back("sums", "nothing", "f32", 3), ValueError, "no operation")
    fails(lambda k: k.look_back("sums", "sub", "f32", 3), zyx.KernelError, "neutral element")
    fails(lambda k: k.look_back("sums", "add", "float16", 3), zyx.KernelError, "32 or 64 bits")
    fails(lambda k: k.look_back("sums", "add", "f32", x(k)[0]), zyx.KernelError, "must follow from sizes")
    fails(lambda k: k.look_back("sums", "add", "f32", 3).ticket(3), TypeError, "Group")
    fails(lambda k: k.each(3)(lambda i: k.look_back("sums", "add", "f32", 3)), zyx.KernelError, "within a loop")
    fails(lambda k: k.each(3)(lambda i: k.queue("queue", 3)), zyx.KernelError, "within a loop")
    fails(lambda k: k.queue("queue", "3"), TypeError, "'str' object is no value")
    fails(lambda k: k.queue("queue", 3).push("3"), TypeError, "'str' object is no value")
    fails(lambda k: k.queue("queue", 3).push(k.value(1, "f32")), zyx.KernelError, "f32")
    fails(lambda k: k.queue("queue", 3).drain(k), TypeError, "Group")
    fails(lambda k: k.limit(x(k)[0], 3), zyx.KernelError, "must follow from sizes")
    fails(lambda k: k.limit(3, -1), OverflowError, "negative")
    for sum, recompute, kind, match in (
        (0, lambda tile: 0, TypeError, r"k\.value"),
        ("int32", lambda tile: tile.cast("float32"), zyx.KernelError, "f32 and i32"),
        ("float32", lambda tile: tile, zyx.KernelError, "i64"),
    ):

        def prefix(k):
            sums = k.look_back("sums", "add", "float32", 3)
            k.groups(3)(lambda g, i: sums.prefix(g, 0, k.value(0, sum) if sum else sum, recompute))

        fails(prefix, kind, match)
    fails(group(lambda k, g, x: g.rank(3, 9, lambda i: i, print)), zyx.KernelError, "a digit has 1 to 8")
    fails(group(lambda k, g, x: g.rank(3, -1, lambda i: i, print)), OverflowError, "out of range")
    fails(group(lambda k, g, x: g.rank(3, 4, lambda i: x[i], print)), zyx.KernelError, "f32")
    fails(group(lambda k, g, x: g.append(0, 3, lambda i: True, print)), TypeError, "Array")
    fails(group(lambda k, g, x: g.append(x, 3, lambda i: True, print)), zyx.KernelError, "an array of one integer")
    fails(group(lambda k, g, x: g.exchange(3, "int32", lambda i: x[i], lambda i: i, print)), zyx.KernelError, "f32")
    fails(group(lambda k, g, x: g.exchange(3, "f32", lambda i: x[i], lambda i: "3", print)), TypeError, "'str' object is no value")
    fails(group(lambda k, g, x: g.exchange(1 << 40, "f32", lambda i: x[i], lambda i: i, print)), zyx.KernelError, "no device has so much")
    fails(group(lambda k, g, x: g.pipeline(0, 3, 3, lambda step, i: x[i], print)), zyx.KernelError, "1 to 16 stages")
    fails(group(lambda k, g, x: g.pipeline(2, 3, 3, lambda step, i: 0, print)), TypeError, r"k\.value")
    fails(group(lambda k, g, x: g.pipeline(2, 3, [k.index(3)], lambda step, i: x[i], print)), TypeError, "numbers of Python")

    def computed(columns, left):
        return group(lambda k, g, x: g.matrix([16, 16], "f32").add_product_after(columns, "f32", lambda: left(g), lambda s, j: x[s]))

    fails(computed(12, lambda g: g.matrix([16, 16], "f32")), zyx.KernelError, "12 columns: a power of two")
    fails(computed(16, lambda g: g.matrix([16, 8], "f32")), zyx.KernelError, r"a factor is f32 \[16, 8\], not f32 \[16, 16\]")
    fails(computed(8, lambda g: g.matrix([16, 8], "float64")), zyx.KernelError, r"a factor is f64 \[16, 8\], not f32 \[16, 8\]")
    fails(computed(16, lambda g: None), TypeError, "Matrix")
    fails(computed(-1, lambda g: None), OverflowError, "negative")
    with pytest.raises(TypeError, match="callable"):
        zyx.kernel(3)
    with pytest.raises(TypeError, match="argument"):
        swiglu(zyx.ones(3))
    with pytest.raises(ValueError, match="without an input"):
        softmax()
    with pytest.raises(ValueError, match="axes"):
        softmax(zyx.ones(3))


GROUP = zyx.lang.Group
DOCUMENTED = [zyx.kernel, zyx.Kernel.gradient, zyx.Kernel.from_text, zyx.lang.LookBack, zyx.lang.Queue, zyx.lang.Lang.limit, zyx.lang.Lang.while_]


@pytest.mark.parametrize("documented", [*DOCUMENTED, GROUP.rank, GROUP.append, GROUP.exchange, GROUP.pipeline, zyx.lang.Matrix.add_product_after])
def test_examples_of_the_documentation_run(documented):
    text = inspect.getdoc(documented)
    blocks, kept = [], []
    for line in [*text.splitlines(), "end"]:
        if line.startswith("    ") or (kept and not line):
            kept.append(line[4:])
        elif kept:
            blocks.append("\n".join(kept))
            kept = []
    assert blocks
    for block in blocks:
        exec(compile(block, "documentation", "exec"), {"zyx": zyx, "double": zyx.kernel(double.__wrapped__)})


def test_tiles_cover_an_array():
    @zyx.kernel
    def shifted(k):
        n = k.size("n")
        x = k.input("x", [n])
        y = k.output("y", [n], x.dtype)

        @k.groups(y.tiles([4]), threads=32)
        def _(g, i):
            mine = y.tile(i, [4])

            @g.each(4)
            def _(j):
                mine[j] = x.tile(i, [4])[j] + 1

    for n in 1, 4, 11:
        x = zyx.arange(n, dtype=zyx.float32)
        shifted.check(x)
        assert shifted(x).tolist() == [float(i + 1) for i in range(n)]


def test_a_trace_has_the_values_of_each_step():
    @zyx.kernel
    def squares(k):
        n = k.size("n")
        x = k.input("x", [n])
        y = k.output("y", [n], x.dtype)

        @k.each(n)
        def _(i):
            y[i] = x[i] * x[i]

    steps = squares.trace(zyx.tensor([1.0, 5.0, 3.0]), at=[1])
    assert all(__file__ in step for step in steps)
    assert any("mul" in step and step.endswith("-> 25.0") for step in steps)
