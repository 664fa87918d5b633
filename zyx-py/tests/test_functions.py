"""Operations with gradients of their own: `autograd.Function`. Numbers and texts are those that PyTorch gives."""

import gc
import weakref

import numpy as np
import pytest
import zyx

Function = zyx.autograd.Function
grad = zyx.autograd.grad


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * dy


class Scaled(Function):
    """The context is written by `setup_context`, and a result is saved."""

    @staticmethod
    def forward(x, w=2.0):
        return (x * w).exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.w = inputs[1]
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return dy * ctx.w * y, None


def leaf(*values):
    return zyx.tensor(values, dtype="float64", requires_grad=True)


def test_one_input():
    x = leaf(1.0, 2.0)
    (first,) = grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    assert first.tolist() == [3, 12] and second.tolist() == [6, 12]
    Cube.apply(x * 2).sum().backward()
    assert x.grad.tolist() == [24, 96]
    assert zyx.autograd.gradcheck(Cube.apply, (leaf(0.5, 1.5),)) and zyx.autograd.gradcheck(Scaled.apply, (leaf(0.5, 0.25),))
    with zyx.no_grad():
        assert not Cube.apply(x).requires_grad
    assert not Cube.apply(zyx.ones(2)).requires_grad


def test_a_saved_result_has_a_history():
    x = leaf(0.5, 0.25)
    (first,) = grad(Scaled.apply(x).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    np.testing.assert_allclose(first.tolist(), 2 * np.exp([1.0, 0.5]))
    np.testing.assert_allclose(second.tolist(), 4 * np.exp([1.0, 0.5]))
    assert Scaled.apply(x, w=3.0).tolist() == (x * 3).exp().tolist()


def test_saved_tensors_keep_their_values():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = Cube.apply(y)
    y.zero_()
    assert grad(z.sum(), x)[0].tolist() == [3, 12]


class Several(Function):
    """Five inputs and four results, of which one has no gradient and one is no tensor."""

    seen = []

    @staticmethod
    def forward(ctx, a, b, c, n, text):
        y = a * b + c * n
        is_large = (y > 3).to(zyx.int64)
        ctx.save_for_backward(a, b, y, None, is_large)
        ctx.mark_non_differentiable(is_large)
        ctx.n = n
        Several.seen = [ctx.needs_input_grad]
        return y, a - b, is_large, text

    @staticmethod
    def backward(ctx, dy, dz, of_large, of_text):
        a, b, y, none, is_large = ctx.saved_tensors
        Several.seen.append((dy.tolist(), dz.tolist(), of_large.tolist(), of_text, none, is_large.tolist()))
        return dy * b + dz, dy * a - dz, dy * ctx.n * y, None, None


def test_many_inputs_and_results():
    a, b, c = leaf(1.0, 2.0), leaf(3.0, 4.0), leaf(0.5, 0.25)
    y, z, is_large, text = Several.apply(a, b, c * 2, 2.0, "text")
    assert y.requires_grad and z.requires_grad and not is_large.requires_grad and text == "text" and is_large.dtype == zyx.int64
    assert Several.seen == [(True, True, True, False, False)]
    found = grad((y * zyx.tensor([1.0, 10.0], dtype="float64")).sum(), [a, b, c], create_graph=True)
    assert [g.tolist() for g in found] == [[3, 40], [1, 20], [20, 360]]
    assert Several.seen[1] == ([1, 10], [0, 0], [0, 0], None, None, [1, 1])
    second = grad(sum(g.sum() for g in found), [a, b, c])
    assert [g.tolist() for g in second] == [[13, 170], [5, 90], [80, 1440]]
    (y.sum() + z.sum() * 3).backward(retain_graph=True)
    assert [x.grad.tolist() for x in (a, b, c)] == [[6, 7], [-2, -1], [20, 36]]
    # A later call is given nothing of the one before.
    z.sum().backward()
    assert [x.grad.tolist() for x in (a, b, c)] == [[7, 8], [-3, -2], [20, 36]] and Several.seen[-1][:2] == ([0, 0], [1, 1])
    # Gradients of one input alone.
    assert grad(Several.apply(a, b, c, 2.0, "")[0].sum(), b)[0].tolist() == [1, 2]


def test_results_without_gradient_may_be_none():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            assert a is None
            return b * 2

    x = leaf(1.0, 1.0)
    Two.apply(x)[1].sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_inputs_that_are_written_to():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, dy):
            return dy * 2

    x = leaf(1.0, 2.0)
    y = x * 3
    assert Twice.apply(y) is y and y.tolist() == [6, 12]
    y.sum().backward()
    assert x.grad.tolist() == [6, 6]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        Twice.apply(x)


def test_gradients_of_another_shape_are_summed():
    class Wide(Function):
        @staticmethod
        def forward(ctx, x, w):
            return x * w

        @staticmethod
        def backward(ctx, dy):
            return dy, dy.float()

    x, w = leaf(1.0), leaf(1.0, 2.0, 3.0)
    Wide.apply(x, w).sum().backward()
    assert x.grad.tolist() == [3] and w.grad.dtype == zyx.float64


def test_once_differentiable():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        @zyx.autograd.function.once_differentiable
        def backward(ctx, dy):
            return ctx.saved_tensors[0] * 2 * dy

    x = leaf(1.0, 2.0)
    (first,) = grad((Square.apply(x) ** 2).sum(), x, create_graph=True)
    assert first.tolist() == [4, 32]
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"):
        first.sum().backward()


@pytest.mark.parametrize(
    ("backward", "error", "text"),
    [
        (lambda ctx, dy: dy, RuntimeError, r"function BadBackward returned an incorrect number of gradients \(expected 2, got 1\)"),
        (lambda ctx, dy: (dy, dy), RuntimeError, "a gradient different than None at position 2, but the corresponding forward input was not a Variable"),
        (lambda ctx, dy: (zyx.ones(5), None), RuntimeError, r"invalid gradient at index 0 - got \[5\] but expected shape compatible with \[2\]"),
        (lambda ctx, dy: (3.0, None), RuntimeError, r"expected Variable or None \(got float\)"),
        (Function.backward, NotImplementedError, "You must implement either the backward or vjp method"),
    ],
)
def test_wrong_gradients(backward, error, text):
    bad = type("Bad", (Function,), {"forward": staticmethod(lambda ctx, x, k: x * k), "backward": staticmethod(backward)})
    x = leaf(1.0, 1.0)
    with pytest.raises(error, match=text):
        bad.apply(x, 3).sum().backward()
    assert x.grad is None


def test_wrong_calls():
    class Saves(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)

    x = leaf(1.0)
    for call, error, text in [
        (lambda: Saves.apply(x), TypeError, "save_for_backward can only save variables, but argument 0 is of type int"),
        (lambda: Function.apply(x), NotImplementedError, "You must implement the forward function"),
        (lambda: Cube()(x), RuntimeError, "Legacy autograd function with non-static forward method"),
        (lambda: Cube.apply(y=x), TypeError, "'x'|'y'"),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_in_transforms():
    assert zyx.func.grad(lambda x: Scaled.apply(x).sum())(zyx.zeros(2)).tolist() == [2, 2]
    needs = []

    class Asked(Cube):
        @staticmethod
        def forward(ctx, x):
            needs.append(ctx.needs_input_grad)
            return Cube.forward(ctx, x)

    assert zyx.func.jacrev(Asked.apply)(zyx.tensor([1.0, 2.0])).tolist() == [[3, 0], [0, 12]] and needs == [(True,)]
    step = zyx.jit(lambda x: zyx.func.grad(lambda x: Cube.apply(x).sum())(x))
    assert step(zyx.tensor([1.0, 2.0])).tolist() == step(zyx.tensor([1.0, 2.0])).tolist() == [3, 12]
    per_example = zyx.vmap(lambda x: zyx.func.grad(lambda x: Cube.apply(x).sum())(x))
    assert per_example(zyx.tensor([[1.0], [2.0]])).tolist() == [[3], [12]]


def test_nothing_is_kept():
    class Note:
        pass

    class Noted(Cube):
        @staticmethod
        def forward(ctx, x, y):
            ctx.note = Note()
            notes.append(weakref.ref(ctx.note))
            ctx.save_for_backward(x, y)
            return x * y, x + y

        @staticmethod
        def backward(ctx, da, db):
            return da, db

    notes, x = [], leaf(1.0)
    a, b = Noted.apply(x, x * 2)
    (a + b).sum().backward()
    assert notes[0]() is not None
    del a, b
    # The gradient is not computed yet: it has the graph.
    x.grad = None
    gc.collect()
    assert notes[0]() is None
