"""Norms and limits of gradients: the norm of several is that of one vector, and errors change nothing."""

import math

import numpy as np
import pytest
import zyx
from zyx import nn

INF = math.inf
LISTS = [
    [[], [1.0, 1.0]],
    [[3.0, -4.0], [], [12.0]],
    [[], []],
    [[0.0, 0.0], [0.0]],
    [[0.0, 2.0], [-0.5], []],
    [[7.0]],
    [[]],
    [[1.0, -INF], [2.0]],
    [[1.0, math.nan], [2.0], []],
    [[1e12, -2e12], [3e12]],
]
ORDERS = [1, 2, 3, 0.5, 0, -1, -2, INF, -INF, "inf"]


def norm(x, p):
    """The p-norm, also of nothing."""
    x, p = np.abs(np.asarray(x, float)), float(p)
    with np.errstate(all="ignore"):
        if p == INF:
            return x.max(initial=0)
        return x.min(initial=INF) if p == -INF else float((x != 0).sum()) if p == 0 else (x**p).sum() ** (1 / p)


def parameters(lists, dtype):
    made = [nn.Parameter(zyx.zeros(len(x), dtype=dtype)) for x in lists]
    for p, x in zip(made, lists):
        p.grad = zyx.tensor(np.array(x, "float64")).cast(dtype)
    return made


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms_of_several_gradients(order, dtype):
    for lists in LISTS:
        # Counts are counted, as PyTorch does.
        whole = norm([norm(x, 0) for x in lists], 0) if order == 0 else norm(sum(lists, []), order)
        with np.errstate(all="ignore"):
            factor = np.minimum(2.0 / (np.float64(whole) + 1e-6), 1.0)
        clipped, apart = parameters(lists, dtype), parameters(lists, dtype)
        found = nn.utils.clip_grad_norm_(clipped, 2.0, order)
        assert found.item() == pytest.approx(whole, rel=1e-5, nan_ok=True), lists
        total = nn.utils.get_total_norm([p.grad for p in apart], order)
        assert total.item() == pytest.approx(whole, rel=1e-5, nan_ok=True), lists
        nn.utils.clip_grads_with_norm_(apart, 2.0, total)
        for p, q, x in zip(clipped, apart, lists):
            with np.errstate(all="ignore"):
                wanted = np.array(x, "float64") * factor
            for gradient in (p.grad, q.grad):
                assert gradient.dtype.name == dtype
                np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-5)


@pytest.mark.parametrize("order", [2.0, 1.0, INF])
def test_a_norm_that_is_not_finite_changes_nothing(order):
    for wrong in (INF, -INF, math.nan):
        made = parameters([[1.0, wrong], [2.0]], "float32")
        with pytest.raises(RuntimeError, match="cannot be limited"):
            nn.utils.clip_grad_norm_(made, 1.0, order, error_if_nonfinite=True)
        np.testing.assert_array_equal(made[0].grad.numpy(), np.array([1.0, wrong], "float32"))
        assert made[1].grad.tolist() == [2.0]
        with pytest.raises(RuntimeError):
            nn.utils.get_total_norm([p.grad for p in made], order, error_if_nonfinite=True)
    fine = parameters([[3.0, -4.0]], "float32")
    limited = nn.utils.clip_grad_norm_(fine, 1.0, order, error_if_nonfinite=True)
    assert limited.item() == norm([3.0, -4.0], order)
    np.testing.assert_allclose(fine[0].grad.numpy(), np.array([3.0, -4.0]) / limited.item(), rtol=1e-5)


def test_limits():
    made = parameters([[3.0, -4.0]], "float32")
    # To know the norm alone.
    assert nn.utils.clip_grad_norm_(made, INF).item() == 5 and made[0].grad.tolist() == [3, -4]
    nn.utils.clip_grad_value_(made, INF)
    assert made[0].grad.tolist() == [3, -4]
    assert nn.utils.clip_grad_norm_([nn.Parameter(zyx.ones(2))], 1.0).item() == 0 and nn.utils.clip_grad_norm_([], 1.0).item() == 0
    assert nn.utils.get_total_norm([]).item() == 0
    half = parameters([[300.0] * 4], "bfloat16") + parameters([[300.0] * 4], "float32")
    nn.utils.clip_grad_norm_(half, 1.0)
    assert half[0].grad.cast("float32").tolist() == half[1].grad.cast("bfloat16").cast("float32").tolist()
    for wrong in (-1.0, math.nan):
        with pytest.raises(ValueError):
            nn.utils.clip_grad_norm_(made, wrong)
