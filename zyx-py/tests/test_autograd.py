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
    assert loss.gradient(c)[0].tolist() == [0] and zyx.autograd.grad(loss, [c], allow_unused=True) == (None,)
    (g,) = (a.detach() * a).sum().gradient(a)
    assert g.tolist() == [1, 2]


def test_second_derivatives():
    x = zyx.tensor(2.0, dtype="float64", requires_grad=True)
    (first,) = (x**4).gradient(x)
    (second,) = first.gradient(x)
    assert (first.item(), second.item()) == (32, 48)


@pytest.mark.parametrize(
    ("f", "at", "want"),
    [
        (lambda x: x.std(), [2.0, 2.0, 2.0], [0, 0, 0]),
        (lambda x: x.std(0, keepdim=True), [2.0, 2.0, 2.0], [0, 0, 0]),
        (lambda x: zyx.linalg.matrix_norm(x.reshape(2, 2)), [0.0] * 4, [0, 0, 0, 0]),
        (lambda x: x.quantile(0.5, interpolation="lower"), [3.0, 1.0, 2.0, 4.0], [0, 0, 1, 0]),
        (lambda x: x.quantile(0.5, interpolation="higher"), [3.0, 1.0, 2.0, 4.0], [1, 0, 0, 0]),
        (lambda x: x.quantile(0.5, interpolation="midpoint"), [3.0, 1.0, 2.0, 4.0], [0.5, 0, 0.5, 0]),
        (lambda x: x.sigmoid(), [-100.0, 0.0], [0, 0.25]),
        (lambda x: x**3, [-2.0, 3.0], [12, 27]),
    ],
)
def test_gradients_at_zeros_and_ties(f, at, want):
    x = zyx.tensor(at, requires_grad=True)
    (dx,) = f(x).sum().gradient(x)
    assert dx.tolist() == want


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

    with pytest.raises(KeyError, match="no rule"):
        x.exp().with_gradient([x], broken).sum().gradient(x)


def is_cut(y, x):
    """Whether a tensor has no history, read from its gradient and from what it says."""
    return zyx.autograd.grad(y, [x], zyx.ones_like(y), allow_unused=True) == (None,) and not y.requires_grad


def test_no_grad_cuts_histories():
    x = zyx.tensor([1.0, 2.0], requires_grad=True)
    with zyx.no_grad():
        assert not zyx.is_grad_enabled()
        inside = [x * 2, 2 * x, -x, x.exp(), x.sum(), x[0], x.T, x.sort()[0], x.unbind()[0], zyx.cat([x, x]), x.clone(), x.reshape(1, 2)]
        leaf = zyx.tensor(3.0, requires_grad=True)
        assert leaf.requires_grad and x.tracked().requires_grad and x.requires_grad_().requires_grad
    assert zyx.is_grad_enabled() and all(is_cut(y, x) for y in inside)
    assert inside[0].tolist() == [2.0, 4.0]
    # A constant to what comes later, which has a history.
    (g,) = (inside[0] * x).sum().gradient(x)
    assert g.tolist() == [2.0, 4.0]
    assert (leaf * leaf).gradient(leaf)[0].item() == 6.0


def test_no_grad_of_layers_and_their_parameters():
    layer, x = zyx.nn.Linear(2, 1), zyx.tensor([[1.0, 2.0]])
    with zyx.no_grad():
        y = layer(x)
    weight = layer.weight
    assert is_cut(y, weight) and weight.requires_grad
    assert layer(x).sum().gradient(weight)[0].tolist() == [[1.0, 2.0]]


def test_modes_nest_and_end():
    x = zyx.tensor(2.0, requires_grad=True)
    with zyx.no_grad():
        with zyx.enable_grad():
            y = x * x
        assert is_cut(x * x, x)
        with pytest.raises(KeyError), zyx.enable_grad():
            raise KeyError
        assert not zyx.is_grad_enabled()
    assert y.gradient(x)[0].item() == 4.0
    with zyx.inference_mode():
        assert is_cut(x * x, x)
        with zyx.inference_mode(False):
            assert zyx.is_grad_enabled()
    zyx.set_grad_enabled(False)
    assert is_cut(x * x, x)
    zyx.set_grad_enabled(True)
    with zyx.set_grad_enabled(False):
        assert is_cut(x * x, x)
    assert zyx.is_grad_enabled()


@pytest.mark.parametrize("decorate", [zyx.no_grad, zyx.no_grad(), zyx.inference_mode(), zyx.inference_mode])
def test_modes_decorate(decorate):
    x = zyx.tensor(2.0, requires_grad=True)

    @decorate
    def squared(x):
        """The square."""
        return x * x

    @decorate
    def powers(x, n):
        for i in range(n):
            yield x**i, zyx.is_grad_enabled()
        return n

    assert squared.__doc__ == "The square." and is_cut(squared(x), x) and zyx.is_grad_enabled()
    for y, inside in powers(x, 3):
        assert is_cut(y, x) and not inside and zyx.is_grad_enabled()


def test_set_grad_enabled_decorates_one_function():
    x = zyx.tensor(2.0, requires_grad=True)
    squared = zyx.set_grad_enabled(False)(lambda x: x * x)
    assert zyx.is_grad_enabled() and is_cut(squared(x), x)


def test_derivatives_asked_for_within_no_grad():
    # PyTorch's rule for `torch.func`: only a mode within the function counts.
    with zyx.no_grad():
        assert zyx.value_and_grad(lambda x: x * x)(3.0)[1].item() == 6.0
        assert zyx.value_and_grad(lambda x: x * zyx.no_grad(zyx.square)(x))(3.0)[1].item() == 9.0
        y, dy = zyx.Tensor.jvp(lambda x: x * x, [zyx.tensor(3.0)], [zyx.tensor(1.0)])
        assert (y.item(), dy.item()) == (9.0, 6.0)
        assert zyx.vmap(lambda x: x.sum())(zyx.ones(2, 3)).tolist() == [3.0, 3.0]


def test_the_mode_is_of_a_thread():
    import threading

    seen = []
    with zyx.no_grad():
        thread = threading.Thread(target=lambda: seen.append(zyx.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


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


def test_gradients_through_devices():
    w = zyx.tensor([1.0, 2.0], device="cpu", requires_grad=True)
    loss = (w.to("reference") * 3.0).to("cpu").square().sum()
    (dw,) = loss.gradient(w)
    assert dw.device == "cpu" and dw.tolist() == [18.0, 36.0]
    loss = ((w * w).to("reference") ** 2).sum()
    (dw,) = loss.gradient(w)
    assert dw.device == "cpu" and dw.tolist() == [4.0, 32.0]
