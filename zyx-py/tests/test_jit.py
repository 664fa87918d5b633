"""Functions that are traced once."""

import collections

import numpy as np
import pytest

import zyx


def test_a_step_of_training_is_traced_once():
    calls = []

    @zyx.jit
    def step(w, x, y):
        """One step."""
        calls.append(1)
        loss, dw = zyx.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())(w)
        return w - 0.5 * dw, loss

    rng = np.random.default_rng(1)
    x, true = rng.standard_normal((64, 3)).astype("float32"), np.array([1, -2, 3], "float32")
    w, x, y = zyx.zeros(3), zyx.tensor(x), zyx.tensor(x @ true)
    for _ in range(60):
        w, loss = step(w, x, y)
    assert len(calls) == step.traces == 1
    np.testing.assert_allclose(w.numpy(), true, atol=1e-4)
    assert step.__doc__ == "One step."


def test_structures_and_other_arguments():
    Pair = collections.namedtuple("Pair", "a b")

    @zyx.jit
    def f(pair, *rest, scale=1, **named):
        total = pair.a + pair.b["x"] * scale
        return {"total": total, "rest": [r.exp() for r in rest], "names": tuple(named), "pair": Pair(total, None)}

    x = zyx.tensor([1.0, 2.0])
    found = f(Pair(x, {"x": x}), x, np.array([0.0, 1.0]), scale=2, note="a")
    np.testing.assert_allclose(found["total"].numpy(), [3, 6])
    np.testing.assert_allclose(found["rest"][1].numpy(), np.exp([0, 1]))
    assert found["names"] == ("note",) and type(found["pair"]).__name__ == "Pair" and found["pair"].b is None
    again = f(Pair(x + 1, {"x": x}), x, np.array([2.0, 1.0]), scale=2, note="a")
    np.testing.assert_allclose(again["total"].numpy(), [4, 7])
    assert f.traces == 1
    f(Pair(x, {"x": x}), scale=2.0)
    f(Pair(x, {"x": x}), scale=2)
    assert f.traces == 3


def test_methods_and_layers():
    class Model:
        def __init__(self, k):
            self.k = k

        @zyx.jit
        def twice(self, x):
            return x * self.k * 2

    x = zyx.tensor([1.0, 2.0])
    np.testing.assert_allclose(Model(3).twice(x).numpy(), [6, 12])
    np.testing.assert_allclose(Model(4).twice(x).numpy(), [8, 16])
    layer = zyx.nn.Linear(2, 3)
    np.testing.assert_allclose(zyx.jit(layer)(x).numpy(), layer(x).numpy(), rtol=1e-6)


def test_what_cannot_be_traced():
    x = zyx.tensor([1.0, 2.0])
    with pytest.raises(Exception, match="jit"):
        zyx.jit(lambda x: x * x.sum().item())(x)
    with pytest.raises(TypeError, match="hashable"):
        zyx.jit(lambda x, s: x)(x, {1, 2})
    with pytest.raises(TypeError, match="callable"):
        zyx.jit(3)
    with pytest.raises(Exception, match="no such luck"):
        zyx.jit(lambda x: (_ for _ in ()).throw(ValueError("no such luck")))(x)
