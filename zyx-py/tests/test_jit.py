"""Functions that are traced once."""

import collections
import gc
import weakref

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


def test_kinds_are_bounded():
    calls = []

    @zyx.jit(max_kinds=3)
    def f(x):
        calls.append(x.shape)
        return x + 1

    for n in [1, 2, 3, 1, 4, 1, 2]:
        assert f(zyx.ones(n)).tolist() == [2.0] * n
    # The kind that was used last stays: 2 went for 4.
    assert calls == [(1,), (2,), (3,), (4,), (2,)] and f.traces == 3
    for wrong in [0, -1, None, "a", 1.5]:
        with pytest.raises(ValueError, match="max_kinds"):
            zyx.jit(f, max_kinds=wrong)


def test_what_was_traced_is_collected():
    class Held:
        pass

    def made():
        held, weight = Held(), zyx.rand(1000)

        @zyx.jit
        def f(x):
            held.function = f
            return x * weight

        f(zyx.ones(1000))
        # The native object alone, in a cycle through its function.
        inner = zyx.Jit(lambda x: [x[0] + len(cycle)])
        cycle = [inner]
        inner([zyx.ones(2)])
        return weakref.ref(held), weakref.ref(f), weakref.ref(weight)

    gc.collect()
    references = made()
    gc.collect()
    assert [reference() for reference in references] == [None] * 3


def test_memory_stays_level():
    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    def steps(n):
        for i in range(n):
            weight = zyx.zeros(1 << 20) + float(i)
            weight.realize()
            f = zyx.jit(lambda x: x * weight)
            f(zyx.ones(1 << 20))
            if i % 5 == 4:
                gc.collect()

    steps(10)
    before = resident()
    steps(40)
    # Forty weights are 160 MiB.
    assert resident() < before + (60 << 20)


def test_a_host_integer_may_say_where_slices_start():
    @zyx.jit
    def step(data, start):
        return (data[start : start + 8] * 2).sum()

    data = zyx.tensor(np.arange(64, dtype="float32"))
    for start in (3, 11, 20, 40, 0):
        assert step(data, start).item() == 2 * sum(range(start, start + 8))
