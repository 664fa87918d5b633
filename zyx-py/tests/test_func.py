"""Derivatives, examples at once, modules as functions: `zyx.func` and `zyx.autograd.functional`."""

import numpy as np
import pytest
import zyx
from zyx import func, nn
from zyx.autograd import functional


def close(x, y):
    np.testing.assert_allclose(np.asarray(x.tolist() if hasattr(x, "tolist") else x), np.asarray(y.tolist() if hasattr(y, "tolist") else y), rtol=1e-5, atol=1e-6)


X = [0.5, -1.0, 2.0]


def test_derivatives():
    x = zyx.tensor(X)
    a = np.array(X)
    close(func.grad(lambda x: (x**3).sum())(x), 3 * a**2)
    (dx, aux), value = func.grad(lambda x: ((x**2).sum(), "more"), has_aux=True)(x), func.grad_and_value(lambda x: (x**2).sum())(x)[1]
    close(dx, 2 * a)
    assert aux == "more" and value.item() == pytest.approx((a**2).sum())
    for jacobian in (func.jacrev, func.jacfwd):
        close(jacobian(lambda x: x.sin())(x), np.diag(np.cos(a)))
        one, two = jacobian(lambda x, y: x * y.sum(), (0, 1))(x, zyx.ones(2))
        close(one, np.eye(3) * 2)
        close(two, np.repeat(a[:, None], 2, 1))
    nested = func.jacrev(lambda d: {"y": d["a"] * d["b"]})({"a": x, "b": zyx.tensor(2.0)})
    close(nested["y"]["a"], np.eye(3) * 2)
    close(nested["y"]["b"], a)
    for second in (func.hessian, lambda f: func.jacfwd(func.jacrev(f)), lambda f: func.jacrev(func.jacfwd(f))):
        close(second(lambda x: (x**3).sum())(x), np.diag(6 * a))
    output, pull = func.vjp(lambda x, y: (x * y, x.sum()), x, x)
    close(pull((zyx.ones(3), zyx.tensor(2.0)))[0], a + 2)
    y, dy = func.jvp(lambda x: x.exp(), (x,), (zyx.tensor([1.0, 0.0, 2.0]),))
    close(dy, np.exp(a) * [1, 0, 2])
    close(func.linearize(lambda x: x.exp(), x)[1](zyx.ones(3)), np.exp(a))
    # Tensors that a function holds besides its arguments are constants.
    close(func.grad(lambda y: (x * y).sum())(x), a)
    with pytest.raises(RuntimeError, match="one number"):
        func.grad(lambda x: x)(x)
    with pytest.raises(RuntimeError, match="argnums"):
        func.grad(lambda x: x.sum(), 3)(x)


def test_functions_at_inputs():
    x, y = zyx.tensor(X), zyx.tensor([1.0, 2.0, 3.0])
    a, b = np.array(X), np.array([1.0, 2.0, 3.0])
    close(functional.jacobian(lambda x: x**2, x), np.diag(2 * a))
    close(functional.jacobian(lambda x: x**2, x, strategy="forward-mode"), np.diag(2 * a))
    close(functional.hessian(lambda x, y: (x * x * y).sum(), (x, y))[0][1], np.diag(2 * a))
    close(functional.hvp(lambda x: (x**3).sum(), x, y)[1], 6 * a * b)
    close(functional.vhp(lambda x: (x**3).sum(), x, y)[1], 6 * a * b)
    close(functional.vjp(lambda x: x**2, x, y)[1], 2 * a * b)
    close(functional.jvp(lambda x: x**2, x, y)[1], 2 * a * b)
    assert not functional.jacobian(lambda x: x**2, x).requires_grad
    with pytest.raises(RuntimeError, match="independent of input 1"):
        functional.jacobian(lambda x, y: x, (x, y), strict=True)
    with pytest.raises(RuntimeError, match="single element"):
        functional.hessian(lambda x: x, x)
    assert zyx.autograd.gradcheck(lambda x: x.sin(), zyx.tensor(X, dtype="float64")) and zyx.autograd.Variable(x) is x


def test_examples_at_once():
    x = zyx.arange(6.0).reshape(3, 2)
    found = func.vmap(lambda d, w: {"s": d["x"].sum(), "p": d["x"] * w}, in_dims=({"x": 0}, None))({"x": x}, zyx.tensor([1.0, 10.0]))
    close(found["s"], [1, 5, 9])
    close(found["p"], x.numpy() * [1, 10])
    close(func.vmap(lambda a, b: (a + b, a), out_dims=(1, 0))(x, x)[0], 2 * x.numpy().T)
    close(zyx.vmap(lambda a, b: a @ b, in_dims=(0, None))(x, zyx.ones(2)), [1, 5, 9])
    close(zyx.vmap(lambda a: a * 2)(np.ones((2, 2), "float32")), np.full((2, 2), 2.0))
    for wrong, kind, text in [(lambda: func.vmap(lambda a: a, in_dims=None)(x), ValueError, "all None"), (lambda: func.vmap(lambda a: 3)(x), TypeError, "int"),
                              (lambda: func.vmap(lambda a: a, randomness="same"), NotImplementedError, "same"), (lambda: func.vmap(lambda a: a)(), ValueError, "no inputs")]:  # fmt: skip
        with pytest.raises(kind, match=text):
            wrong()


def test_modules_as_functions():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x, y = zyx.randn(5, 3), zyx.randn(5, 1)
    params = {name: p.detach() * 2 for name, p in net.named_parameters()}
    before = net(x).tolist()
    want = ((x @ params["0.weight"].T + params["0.bias"]).tanh() @ params["2.weight"].T + params["2.bias"]).numpy()
    close(func.functional_call(net, params, x), want)
    assert net(x).tolist() == before
    loss = lambda p, x, y: ((func.functional_call(net, p, (x,)) - y) ** 2).mean()  # noqa: E731
    each = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(params, x, y)
    whole = func.grad(loss)(params, x, y)
    for name in params:
        close(each[name].mean(0), whole[name])
    nets = [nn.Linear(3, 2) for _ in range(4)]
    stacked, buffers = func.stack_module_state(nets)
    found = func.vmap(lambda p, b, x: func.functional_call(nets[0], (p, b), (x,)), (0, 0, None))(stacked, buffers, x) if buffers else func.vmap(
        lambda p, x: func.functional_call(nets[0], p, (x,)), (0, None))(stacked, x)  # fmt: skip
    close(found, zyx.stack([m(x) for m in nets]))
    for name, kind in ((("nothing",), RuntimeError),):
        with pytest.raises(kind, match="no parameter or buffer nothing"):
            func.functional_call(net, {"nothing": x}, x)
    with pytest.raises(RuntimeError, match="missing are 2.bias"):
        func.functional_call(net, {k: v for k, v in params.items() if k != "2.bias"}, x, strict=True)
    rnn, seq = nn.GRU(3, 2), zyx.randn(4, 1, 3)
    close(func.functional_call(rnn, {n: p.detach() for n, p in rnn.named_parameters()}, seq)[0], rnn(seq)[0])
    tied = nn.Sequential(nn.Linear(2, 2, False), nn.Linear(2, 2, False))
    tied[1].weight = tied[0].weight
    close(func.functional_call(tied, {"0.weight": zyx.eye(2) * 2}, zyx.ones(1, 2)), [[4, 4]])
    native = nn.RotaryEmbedding(4) if not dict(nn.RotaryEmbedding(4).named_parameters()) else None
    assert native is None or native(zyx.ones(1, 1, 2, 4)).shape == (1, 1, 2, 4)
