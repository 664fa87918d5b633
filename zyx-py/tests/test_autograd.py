"""Gradients for users of Python."""

import numpy as np
import pytest
import zyx


def test_gradients_of_a_loss():
    a = zyx.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = zyx.tensor(2.0, requires_grad=True)
    loss = (a * a * b).sum()
    # Values are readable midway, and again after the gradients.
    assert loss.item() == 28 and loss.requires_grad and a.requires_grad
    da, db = loss.gradient(a, b)
    assert da.tolist() == [4, 8, 12] and db.item() == 14
    assert [g.tolist() for g in zyx.grad(loss, [a, b])] == [[4, 8, 12], 14]
    assert zyx.grad(loss, a).tolist() == [4, 8, 12]
    assert loss.gradient([a])[0].tolist() == [4, 8, 12]
    assert loss.item() == 28


def test_what_a_loss_does_not_depend_on():
    a, c = zyx.tensor([1.0, 2.0], requires_grad=True), zyx.tensor([5.0], requires_grad=True)
    loss = a.sum()
    assert loss.gradient(c)[0].tolist() == [0] and loss.grad([c]) == [None]
    (g,) = (a.detach() * a).sum().gradient(a)
    assert g.tolist() == [1, 2]


def test_second_derivatives():
    x = zyx.tensor(2.0, dtype="float64", requires_grad=True)
    (first,) = (x**4).gradient(x)
    (second,) = first.gradient(x)
    assert (first.item(), second.item()) == (32, 48)


def test_value_and_grad():
    value, gradient = zyx.value_and_grad(lambda w, x: ((w @ x) ** 2).sum())(zyx.tensor([[1.0, 2.0]]), [3.0, 4.0])
    assert value.item() == 121 and gradient.tolist() == [[66, 88]]
    value, both = zyx.value_and_grad(lambda a, b: a * b, argnums=(0, 1))(2.0, 3.0)
    assert value.item() == 6 and [g.item() for g in both] == [3, 2]


def test_cotangents_and_own_rules():
    x = zyx.tensor([1.0, 2.0], requires_grad=True)
    assert zyx.grad(x * 2, x, cotangent=zyx.tensor([1.0, 10.0])).tolist() == [2, 20]
    y = x.detach().round().with_gradient([x], lambda inputs, output, cotangent: [cotangent * 3])
    assert y.sum().gradient(x)[0].tolist() == [3, 3]

    def broken(inputs, output, cotangent):
        raise KeyError("no rule")

    with pytest.raises(ValueError, match="no rule"):
        x.exp().with_gradient([x], broken).sum().gradient(x)


def test_integers_have_no_gradients():
    with pytest.raises(TypeError):
        zyx.tensor([1, 2], requires_grad=True)


def test_against_differences(rng):
    w, x = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))

    def f(w):
        return ((zyx.tensor(x) @ w.T).tanh().softmax(-1) ** 2).sum()

    leaf = zyx.tensor(w, requires_grad=True)
    (g,) = f(leaf).gradient(leaf)
    for i in np.ndindex(*w.shape):
        step = np.zeros_like(w)
        step[i] = 1e-6
        slope = (f(zyx.tensor(w + step)).item() - f(zyx.tensor(w - step)).item()) / 2e-6
        assert abs(slope - g[i].item()) < 1e-7


def test_functions_of_one_example_for_many():
    x, w = zyx.tensor(np.arange(6.0).reshape(3, 2)), zyx.tensor([10.0, 1.0])
    dots = zyx.vmap(lambda v, w: (v * w).sum(), in_axes=(0, None))
    assert dots(x, w).tolist() == [1, 23, 45]
    per_example = zyx.vmap(lambda v, w: zyx.grad((v * w).sum() ** 2, w), in_axes=(0, None), out_axis=1)
    assert per_example(x, w).tolist() == [[0, 92, 360], [2, 138, 450]]
    assert zyx.vmap(lambda v: v.flatten())(np.ones((2, 3, 4))).shape == (2, 12)
    (dw,) = zyx.grad(dots(x, w).sum(), [w])
    assert dw.tolist() == [6, 9]
    with pytest.raises(ValueError, match="vmap"):
        zyx.vmap(lambda v: v * v.sum().item())(x)
    with pytest.raises(ValueError):
        zyx.vmap(lambda v: v, in_axes=2)(x)
