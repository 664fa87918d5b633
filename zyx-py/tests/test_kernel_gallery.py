"""The gallery's kernels in Python against NumPy in the widest float.

A bound is in units of a dtype's machine epsilon, of which rounding to nearest costs one half. Halves are summed in `float32`, so most
results have one rounding of the dtype and some of its accumulator.
"""

import numpy as np
import pytest
import zyx

import gallery

WIDE = np.longdouble
# Machine epsilon, and the smallest positive number.
EPSILONS = {"float16": (2.0**-10, 2.0**-24), "bfloat16": (2.0**-7, 0), "float32": (2.0**-23, 0), "float64": (2.0**-52, 0)}
SIZES = [1, 7, 31, 129, 1000]
# Drivers of GPUs for CPUs take seconds to compile a kernel, and up to a minute for those with loops in loops.
DRIVERS = [spec.split(":")[0] for spec, _, kind in zyx.devices() if kind == "software"]


def on(*drivers, dtypes=()):
    """A test for the CPU and the interpreter in each dtype, and for drivers in the first."""
    every = ["cpu", "reference", *(name for name in drivers if name in DRIVERS)]
    if not dtypes:
        return pytest.mark.parametrize("device", every)
    return pytest.mark.parametrize("device, dtype", [(d, t) for d in every for t in dtypes[: 1 if d in drivers else None]])


def floats(*drivers):
    return on(*drivers, dtypes=["float32", "float16", "bfloat16", "float64"])


def sizes(device, *more):
    """Sizes that no tile divides: few on slow devices."""
    return {"cpu": [*SIZES, *more], "reference": [1, 31]}.get(device, [129, *more[:1]])


def numbers(rng, shape, dtype, scale=1.0):
    """Numbers that the dtype holds, in the widest float."""
    x = (rng.normal(size=shape) * scale).astype("float32" if dtype == "bfloat16" else dtype)
    if dtype == "bfloat16":
        x = (x.view(np.uint32) & 0xFFFF0000).view(np.float32)
    return x.astype(WIDE)


def tensor(x, dtype, device):
    return zyx.tensor(np.asarray(x, np.float64), device=device).to(getattr(zyx, dtype))


def close(got, expected, dtype, sums, scale, roundings=0.0):
    """Whether elements are off by at most one rounding, `sums` epsilons of the accumulator and `scale`, and `roundings` of the dtype
    and `scale`."""
    assert got.dtype == getattr(zyx, dtype) and tuple(got.shape) == expected.shape
    (epsilon, smallest), (wide, _) = EPSILONS[dtype], EPSILONS["float64" if dtype == "float64" else "float32"]
    off = np.abs(got.to(zyx.float64).numpy() - expected)
    # Where there is no wider float than `float64`, the answer has an error of the same size.
    bound = np.maximum(epsilon * np.abs(expected), smallest) / 2 + (sums * (wide + np.finfo(WIDE).eps) + roundings * epsilon) * scale
    worst = np.argmax(off - bound)
    assert np.all(off <= bound), f"{np.sum(off > bound)} of {off.size}: {off.flat[worst]} is above {bound.flat[worst]}"


sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
rms_norm = lambda x, weight: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight  # noqa: E731
mish = lambda x: x * np.tanh(np.logaddexp(0, x))  # noqa: E731
mish_slope = lambda x: np.tanh(np.logaddexp(0, x)) + x * sigmoid(x) / np.cosh(np.logaddexp(0, x)) ** 2  # noqa: E731
silu_slope = lambda x: sigmoid(x) * (x * (1 - sigmoid(x)) + 1)  # noqa: E731


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(q, k, v, causal):
    scores = np.einsum("hid,hjd->hij", q, k) / np.sqrt(WIDE(q.shape[-1]))
    weights = softmax(np.where(np.tri(*scores.shape[1:], dtype=bool) | (not causal), scores, -np.inf))
    return np.einsum("hij,hjd->hid", weights, v), np.einsum("hij,hjd->hid", weights, np.abs(v))


def sort(x):
    """Rows in order: NaN last, and -0 before 0."""
    return np.take_along_axis(x, np.lexsort((x >= 0 if x.dtype.kind != "f" else ~np.signbit(x), x), 1), 1)


def graph(nodes, device):
    """A graph in CSR form and its edges: a hub, a path through half of the nodes, and nodes that no edge leads to."""
    rng = np.random.default_rng(nodes)
    edges = [[*rng.integers(0, (nodes + 1) // 2, rng.integers(0, 3)), *[min(i + 1, nodes // 2)] * (i <= nodes // 2)] for i in range(nodes)]
    edges[nodes // 4] += range(0, nodes // 2, 2)
    starts, targets = np.cumsum([0, *map(len, edges)]), np.concatenate(edges)
    return *(zyx.tensor(x.astype(np.int32), device=device) for x in (starts, targets)), edges


@floats("vulkan")
def test_softmax(device, dtype):
    # The exponent is rounded, which the exponential multiplies by its size; then the exponential, the sum and the quotient.
    for n in sizes(device):
        x = numbers(np.random.default_rng(n), (3, n), dtype, 2.0)
        expected = softmax(x)
        close(gallery.softmax(tensor(x, dtype, device)), expected, dtype, 0.75, expected * (1 + np.ptp(x)))


@floats("vulkan")
def test_running_sums(device, dtype):
    # Each of the partial sums is rounded, in any direction.
    for n in sizes(device):
        x = numbers(np.random.default_rng(n), (3, n), dtype)
        close(gallery.cumsum(tensor(x, dtype, device)), np.cumsum(x, 1), dtype, 1.25, np.cumsum(np.abs(x), 1))


@floats("opencl")
def test_running_sums_in_one_pass(device, dtype):
    # Tiles have 5888 elements, of `float64` 2816; a sum has at most one rounding for each element of a part, part and tile.
    for n in sizes(device, 5903, 20011):
        x = numbers(np.random.default_rng(n), n, dtype)
        close(gallery.scan(tensor(x, dtype, device)), np.cumsum(x), dtype, 0.5, np.cumsum(np.abs(x)))


@on("opencl", dtypes=["float32", "float16", "bfloat16", "float64", "int16", "int32", "int64", "uint16", "uint32", "uint64"])
def test_sorted_rows(device, dtype):
    is_float, most = dtype in EPSILONS, 512 if dtype.endswith("64") else 1024
    for n in [min(n, most) for n in sizes(device)]:
        rng = np.random.default_rng(n)
        if is_float:
            x = numbers(rng, (2, n), dtype)
            x[rng.random((2, n)) < 0.2] = 0
            x[:, 3:9] = [np.nan, np.inf, -0.0, -np.inf, -np.nan, 0.0][: max(min(n, 9) - 3, 0)]
            x = tensor(x, dtype, device)
        else:
            limits = np.iinfo(dtype)
            x = zyx.tensor(rng.integers(limits.min, limits.max, (2, n), dtype, endpoint=True), device=device)
        got = gallery.sort(x)
        assert got.dtype == x.dtype
        x, got = (y.to(zyx.float64).numpy() if is_float else y.numpy() for y in (x, got))
        x = sort(x)
        np.testing.assert_array_equal(got, x)
        np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(x[x == 0]))
    with pytest.raises(ValueError, match=f"cols is {most + 1}, and at most {most}"):
        gallery.sort(zyx.zeros((1, most + 1), dtype=getattr(zyx, dtype), device=device))


@floats("opencl")
def test_mish_and_its_gradient(device, dtype):
    # Exponential, logarithm and tangent have up to two roundings each. The slope is a sum of `tanh` and a product.
    for n in sizes(device):
        x = numbers(np.random.default_rng(n), n, dtype, 4.0)
        # The exponential of 200 overflows.
        x[:3] = [0, 200, -20][:n]
        y = tensor(x, dtype, device).requires_grad_()
        found = gallery.mish(y)
        close(found, mish(x), dtype, 3, np.abs(mish(x)))
        found.sum().backward()
        close(y.grad, mish_slope(x), dtype, 3, 1 + np.abs(x * sigmoid(x)))


@floats("vulkan")
def test_a_gate_and_the_rule_of_its_gradient(device, dtype):
    # The kernel rounds halves once. The rule has up to seven operations of tensors, each rounded to the dtype.
    for n in sizes(device):
        gate, up, out = (numbers(np.random.default_rng([n, i]), (3, n), dtype) for i in range(3))
        x, y = (tensor(a, dtype, device).requires_grad_() for a in (gate, up))
        found = gallery.gated(x, y)
        close(found, gate * sigmoid(gate) * up, dtype, 1.5, np.abs(gate * up))
        (found * tensor(out, dtype, device)).sum().backward()
        close(x.grad, out * up * silu_slope(gate), dtype, 0, np.abs(out * up), 1.5)
        close(y.grad, out * gate * sigmoid(gate), dtype, 0, np.abs(out * gate), 1.5)


@floats("opencl")
def test_segmented_sums(device, dtype):
    # Each of the partial sums is rounded, in any direction.
    for n in sizes(device):
        rng = np.random.default_rng(n)
        x, cuts = numbers(rng, n, dtype), np.sort(rng.integers(0, n + 1, 5))
        starts = np.concatenate([[0], cuts, [n, n]]).astype(np.int32)
        parts = [x[i:j] for i, j in zip(starts, starts[1:])]
        expected, scale = (np.array([f(part).sum() for part in parts]) for f in (np.positive, np.abs))
        close(gallery.segment_sum(tensor(x, dtype, device), zyx.tensor(starts, device=device)), expected, dtype, 0.5, scale)


@floats("opencl")
def test_matrix_products(device, dtype):
    # Up to 251 partial sums of each of 8643 elements are rounded, in any direction.
    shapes = {"cpu": [(1, 1, 1), (7, 31, 129), (31, 7, 1), (67, 129, 251)], "reference": [(7, 5, 31)]}
    for m, n, depth in shapes.get(device, [(31, 37, 129)]):
        x, w = numbers(np.random.default_rng(m), (m, depth), dtype), numbers(np.random.default_rng(n), (depth, n), dtype)
        close(gallery.product(tensor(x, dtype, device), tensor(w, dtype, device)), x @ w, dtype, 2.5, np.abs(x) @ np.abs(w))


@on(dtypes=["int8", "uint8", "int32"])
def test_matrix_products_of_integers_wrap(device, dtype):
    limits = np.iinfo(dtype)
    x, w = (np.random.default_rng(i).integers(limits.min, limits.max, shape, dtype) for i, shape in enumerate([(31, 129), (129, 7)]))
    np.testing.assert_array_equal(gallery.product(zyx.tensor(x, device=device), zyx.tensor(w, device=device)).numpy(), x @ w)


@floats("vulkan")
def test_a_step_of_heat(device, dtype):
    # Each of six operations is rounded to the dtype; the first four are multiplied by 1/8.
    heat = gallery.heat(0.125)
    for n in sizes(device):
        x = numbers(np.random.default_rng(n), (n, 31), dtype)
        p = np.pad(x, 1)
        around = [p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]]
        close(heat(tensor(x, dtype, device)), x + (sum(around) - x * 4) / 8, dtype, 0, np.abs(x) + sum(map(np.abs, around)), 0.25)


@floats("opencl")
def test_attention(device, dtype):
    # Scores are sums of 32 products. Weights are rounded to halves before they are multiplied by values.
    for causal in [True] if device in DRIVERS else [True, False]:
        flash = gallery.attention(32, causal)
        for n, keys in {"cpu": [(1, 1), (31, 129), (101, 67)], "reference": [(7, 17)]}.get(device, [(31, 37)]):
            q, k, v = (numbers(np.random.default_rng([n, i]), (2, m, 32), dtype) for i, m in enumerate([n, keys, keys]))
            expected, scale = attend(q, k, v, causal)
            half = 0.5 if dtype in ("float16", "bfloat16") else 0
            close(flash(*(tensor(x, dtype, device) for x in (q, k, v))), expected, dtype, 5, scale, half)


@floats("vulkan")
def test_norms_of_rows(device, dtype):
    # Half of the relative error of the mean, then root, reciprocal and two products.
    norm = gallery.rms_norm(1e-5)
    for n in sizes(device):
        x, weight = numbers(np.random.default_rng(n), (3, n), dtype), numbers(np.random.default_rng(0), n, dtype)
        expected = rms_norm(x, weight)
        close(norm(tensor(x, dtype, device), tensor(weight, dtype, device)), expected, dtype, 1.25, np.abs(expected))


@on(*DRIVERS)
def test_a_histogram(device):
    for n in sizes(device, 9001):
        x = np.random.default_rng(n).integers(0, 256, n, np.uint8)
        np.testing.assert_array_equal(gallery.histogram(zyx.tensor(x, device=device)).numpy(), np.bincount(x, minlength=256))


@on(*DRIVERS)
def test_breadth_first_search(device):
    for nodes in sizes(device):
        starts, targets, edges = graph(nodes, device)
        for source in (0, nodes - 1):
            found, level = {}, {source}
            while level:
                found |= dict.fromkeys(level, max(found.values(), default=-1) + 1)
                level = {int(target) for node in level for target in edges[node]} - found.keys()
            assert gallery.bfs(starts, targets, source).tolist() == [found.get(node, gallery.FAR) for node in range(nodes)]


@on(*DRIVERS, dtypes=["int32", "int64"])
def test_collatz(device, dtype):
    def steps(n):
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)
    for n in sizes(device):
        found = gallery.collatz(zyx.arange(1, n + 1, device=device).to(getattr(zyx, dtype)))
        assert found.dtype == zyx.int32 and found.tolist() == [steps(i) for i in range(1, n + 1)]


def test_no_access_is_wrong():
    """The interpreter looks at each access, with threads in several orders."""
    x = [zyx.tensor(np.random.default_rng(i).normal(size=(4, 32)).astype("float32")) for i in range(3)]
    for kernel in (gallery.softmax, gallery.cumsum, gallery.sort, gallery.heat(0.125)):
        kernel.check(x[0][:, :29])
    gallery.scan.check(x[0][0, :7])
    gallery.product.check(x[0], x[1].t())
    gallery.rms_norm(1e-5).check(x[0], x[1][0])
    gallery.attention(32, True).check(*(a.reshape(1, 4, 32) for a in x))
    gallery.segment_sum.check(x[0][0], zyx.tensor([0, 5, 5, 32], dtype=zyx.int32))
    gallery.histogram.check(zyx.tensor([3, 3, 255], dtype=zyx.uint8))
    gallery.collatz.check(zyx.tensor([1, 7]))
    starts, targets, _ = graph(11, "cpu")
    gallery.shorten.check(starts, targets, zyx.tensor([0] + [gallery.FAR] * 10, dtype=zyx.int32))


def test_numbers_that_are_not_finite():
    x = np.array([[1, -np.inf, 2], [np.inf, 1, 2], [1, np.nan, 2], [-np.inf] * 3])
    with np.errstate(invalid="ignore"):
        for dtype in ("float16", "float32", "float64"):
            a = tensor(x, dtype, "cpu")
            np.testing.assert_allclose(gallery.softmax(a).to(zyx.float64).numpy(), softmax(x), rtol=1e-3)
            np.testing.assert_allclose(gallery.cumsum(a).to(zyx.float64).numpy(), np.cumsum(x, 1))
            np.testing.assert_allclose(gallery.mish(tensor(x[:3], dtype, "cpu")).to(zyx.float64).numpy()[1:], mish(x[1:3]), rtol=1e-3)
