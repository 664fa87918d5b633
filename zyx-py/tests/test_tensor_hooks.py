"""Hooks of tensors, and gradients of tensors that were computed. Numbers and texts are those that PyTorch gives."""

import gc
import weakref

import pytest
import zyx

grad = zyx.autograd.grad


def leaf(*values):
    return zyx.tensor(values, requires_grad=True)


def test_hooks_see_and_replace_gradients():
    x, seen = leaf(1.0, 2.0), []
    y = x * 2
    # The hooks come after the use.
    z = (y * y).sum()
    y.register_hook(lambda g: seen.append(g.tolist()))
    tenfold = y.register_hook(lambda g: g * 10)
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad and y.grad is None
    y.register_hook(lambda g: g + 1)
    z.backward(retain_graph=True)
    # The gradient that is kept is the one after all hooks.
    assert seen == [[4, 8]] and x.grad.tolist() == [82, 162] and y.grad.tolist() == [41, 81]
    tenfold.remove()
    tenfold.remove()
    z.backward(retain_graph=True)
    assert x.grad.tolist() == [92, 180] and y.grad.tolist() == [46, 90]
    y.grad = None
    assert y.grad is None
    assert grad(z, x, retain_graph=True)[0].tolist() == [10, 18]
    assert grad(z, y, retain_graph=True)[0].tolist() == [5, 9] and y.grad.tolist() == [10, 18] and len(seen) == 4
    y.grad.zero_()
    assert y.grad.tolist() == [0, 0]
    del y.grad
    assert y.grad is None


def test_hooks_of_leaves():
    w, after = leaf(3.0), []
    doubled = w.register_hook(lambda g: g * 2)
    handle = w.register_post_accumulate_grad_hook(lambda p: after.append((p is w, p.grad.tolist())))
    (w * 5).backward()
    (w * 5).sum().backward()
    assert w.grad.tolist() == [20] and after == [(True, [10]), (True, [20])]
    assert grad(w * 5, w)[0].tolist() == [10]
    with doubled:
        pass
    handle.remove()
    assert grad(w * 5, w)[0].tolist() == [5]
    (w * 5).backward()
    assert len(after) == 2 and w.grad.tolist() == [25]
    # The hook of a parameter stays when its value changes.
    layer, shapes = zyx.nn.Linear(2, 1), []
    for p in layer.parameters():
        p.register_hook(lambda g: shapes.append(tuple(g.shape)))
    optimizer = zyx.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(2):
        layer(zyx.ones(3, 2)).sum().backward()
        optimizer.step()
    assert sorted(shapes) == [(1,), (1,), (1, 2), (1, 2)]


def test_a_step_within_backward():
    layer = zyx.nn.Linear(2, 1, bias=False)
    before = layer.weight.tolist()
    optimizer = zyx.optim.SGD([layer.weight], lr=0.5)

    def step(p):
        optimizer.step()
        optimizer.zero_grad()

    layer.weight.register_post_accumulate_grad_hook(step)
    layer(zyx.ones(1, 2)).sum().backward()
    assert layer.weight.grad is None and layer.weight.tolist()[0] == pytest.approx([w - 0.5 for w in before[0]], abs=1e-6)


def test_histories_of_gradients():
    x, known = leaf(1.0, 2.0), []
    y = x * 3
    y.register_hook(lambda g: known.append(g.requires_grad))
    (y**2).sum().backward(retain_graph=True)
    grad((y**2).sum(), x)
    (first,) = grad((y**2).sum(), x, create_graph=True)
    assert known == [False, False, True]
    y.register_hook(lambda g: g * g)
    (first,) = grad((y**2).sum(), x, create_graph=True)
    # The hook sees the gradient of the gradient, too.
    assert first.tolist() == [108, 432] and grad(first.sum(), x)[0].tolist() == [15552, 62208]


def test_hooks_of_the_loss_and_of_what_was_written_to():
    x, seen = leaf(1.0, 2.0), []
    loss = (x * 2).sum()
    loss.register_hook(lambda g: seen.append(g.item()))
    loss.backward()
    assert seen == [1]
    y = x * 2
    y.register_hook(lambda g: g * 0)
    y.mul_(3)
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]
    z = x * 2
    z.retain_grad()
    z.mul_(3)
    with pytest.raises(RuntimeError, match="after the write"):
        z.sum().backward()


def test_errors():
    x = leaf(1.0, 2.0)

    def of_hook(hook):
        y = x * 1
        y.register_hook(hook)
        y.sum().backward()

    def raising(g):
        raise KeyError("mine")

    for wrong, error, text in [
        (lambda: of_hook(lambda g: 3), TypeError, "changed the type of value.*got int"),
        (lambda: of_hook(lambda g: g.sum()), RuntimeError, "has changed the size of value"),
        (lambda: of_hook(lambda g: g.double()), RuntimeError, "has changed the type of value.*float32 got float64"),
        (lambda: of_hook(raising), KeyError, "mine"),
        (lambda: x.register_hook(3), TypeError, "a hook is a function"),
        (lambda: zyx.ones(2).register_hook(print), RuntimeError, "cannot register a hook on a tensor that doesn't require gradient"),
        (lambda: zyx.ones(2).register_post_accumulate_grad_hook(print), RuntimeError, "doesn't require gradient"),
        (lambda: (x * 2).register_post_accumulate_grad_hook(print), RuntimeError, "cannot be registered on non-leaf tensors"),
        (lambda: zyx.ones(2).retain_grad(), RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"),
    ]:
        with pytest.raises(error, match=text):
            wrong()
    assert x.grad is None


def test_hooks_end_with_their_tensors():
    class Note:
        pass

    notes, x = [], leaf(1.0)
    for _ in range(200):
        note = Note()
        notes.append(weakref.ref(note))
        y = x * 2
        y.register_hook(lambda g, note=note: None)
        y.retain_grad()
        y.sum().backward()
        x.grad = None
    del note, y
    w = leaf(1.0)
    kept = Note()
    of_leaf = weakref.ref(kept)
    w.register_hook(lambda g, note=kept: None)
    del w, kept
    gc.collect()
    assert sum(note() is not None for note in notes) < 100 and of_leaf() is None
