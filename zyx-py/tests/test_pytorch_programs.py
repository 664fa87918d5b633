"""Classes of faults that public programs of PyTorch showed: promotion, constructors, import paths, options, values behind indices."""

import collections
import importlib

import numpy as np
import pytest
import zyx
from zyx import nn

FLOATS = ("float16", "bfloat16", "float32", "float64")


def test_tensors_without_axes_are_promoted_as_in_pytorch():
    vector, one = zyx.ones(3), zyx.tensor(2.0, dtype="float64")
    operations = {
        "add": lambda x, y: x + y, "radd": lambda x, y: y + x, "sub": zyx.sub, "mul": zyx.mul, "div": zyx.div, "pow": zyx.pow, "max": zyx.max,
        "minimum": zyx.minimum, "atan2": zyx.atan2, "fmod": zyx.fmod, "remainder": zyx.remainder, "hypot": zyx.hypot, "floor": lambda x, y: x // y,
        "where": lambda x, y: zyx.where(x > 0, x, y), "swapped": lambda x, y: zyx.where(x > 0, y, x), "clamp": lambda x, y: x.clamp(min=y),
        "xlogy": zyx.xlogy, "logaddexp": zyx.logaddexp, "copysign": zyx.copysign,
    }  # fmt: skip
    for name, operation in operations.items():
        found = operation(vector, one)
        assert found.dtype == zyx.float32, name
        np.testing.assert_allclose(found.numpy(), operation(vector, one.float()).numpy(), err_msg=name)
    # Two tensors without axes, and a higher kind of numbers, are promoted as others.
    assert (one * zyx.tensor(1.0)).dtype == zyx.float64 and (zyx.arange(3) * one).dtype == zyx.float64
    assert (zyx.arange(3) * zyx.tensor(1.5)).dtype == zyx.float32 and (vector * one.reshape(1)).dtype == zyx.float64
    assert (zyx.ones(2, dtype="float16") * zyx.tensor(2.0)).dtype == zyx.float16 and (zyx.arange(3, dtype="int32") + zyx.tensor(3)).dtype == zyx.int32
    assert (zyx.tensor(True) * zyx.arange(3, dtype="int16")).dtype == zyx.int16 and zyx.result_type(vector, one) == zyx.float32
    assert (vector < one).all().item()
    # The array API's standard has no such rule.
    assert zyx.array_api.add(vector, one).dtype == zyx.array_api.multiply(one, vector).dtype == zyx.float64


def test_gradients_of_promoted_tensors():
    scale = zyx.tensor(0.5, dtype="float64", requires_grad=True)
    x = zyx.ones(4, requires_grad=True)
    (x * scale).sum().backward()
    assert scale.grad.dtype == zyx.float64 and scale.grad.item() == 4.0 and x.grad.dtype == zyx.float32 and x.grad.tolist() == [0.5] * 4


def test_constructor_of_tensors():
    assert zyx.Tensor(2, 3).shape == (2, 3) and zyx.Tensor(4).shape == (4,) and zyx.Tensor().shape == (0,) and zyx.Tensor(zyx.Size([1, 2])).shape == (1, 2)
    assert zyx.Tensor(np.int64(2), 1).shape == (2, 1) and zyx.Tensor(2, 3, device="cpu").dtype == zyx.float32
    assert zyx.Tensor([1, 2]).dtype == zyx.float32 and zyx.Tensor((1, 2)).tolist() == [1.0, 2.0] and zyx.Tensor(np.zeros(2)).dtype == zyx.float32
    assert zyx.Tensor([1, 2], dtype="int64").dtype == zyx.int64 and zyx.Tensor(zyx.arange(3)).dtype == zyx.int64 and zyx.Tensor([[True]]).tolist() == [[1.0]]
    with pytest.raises(TypeError):
        zyx.Tensor([1.0], [2.0])


@pytest.mark.parametrize(
    "path, name",
    [("optim.optimizer", "Optimizer"), ("optim.adam", "Adam"), ("optim.sgd", "SGD"), ("distributions.normal", "Normal"),
     ("distributions.categorical", "Categorical"), ("amp.grad_scaler", "GradScaler"), ("amp.autocast_mode", "autocast"),
     ("cuda.amp.grad_scaler", "GradScaler"), ("nn.utils.clip_grad", "clip_grad_norm_"), ("nn.parallel.distributed", "DataParallel"),
     ("backends.cudnn", "benchmark"), ("backends.cuda", "matmul"), ("nn.modules.conv", "Conv2d")],
)  # fmt: skip
def test_paths_of_pytorch(path, name):
    assert hasattr(importlib.import_module("zyx." + path), name)


def test_modules_stand_for_what_they_are_named_after():
    from zyx.backends import cudnn

    import zyx.backends.cudnn as as_module

    before = zyx.backends.cudnn.benchmark
    as_module.benchmark = not before
    assert cudnn.benchmark is (not before) and zyx.backends.cudnn.benchmark is (not before)
    as_module.benchmark = before
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("zyx.optim.nowhere")


def test_options_of_storage():
    x = zyx.ones(2, 3)
    options = dict(layout=zyx.strided, pin_memory=False)
    made = [zyx.zeros(2, **options), zyx.ones(2, **options), zyx.empty(2, **options), zyx.full((2,), 1.0, **options), zyx.rand(2, **options),
            zyx.arange(2, **options), zyx.linspace(0, 1, 2, **options), x.new_zeros(2, **options), x.new_full((2,), 3, **options)]  # fmt: skip
    assert all(y.shape == (2,) for y in made)
    for name in ("zeros_like", "ones_like", "rand_like", "empty_like"):
        assert getattr(zyx, name)(x, memory_format=zyx.preserve_format, **options).shape == x.shape
    assert zyx.tensor([1.0], pin_memory=False).shape == (1,) and x.to(memory_format=zyx.channels_last) is x
    assert x.contiguous(memory_format=zyx.contiguous_format).shape == x.shape and x.is_contiguous(memory_format=zyx.contiguous_format)
    assert zyx.randperm(4, dtype=zyx.int32).dtype == zyx.int32 and zyx.logspace(0, 1, 3, dtype=zyx.float64).dtype == zyx.float64
    assert zyx.randint_like(x, 3).dtype == zyx.float32 and 1 <= zyx.randint_like(x, 1, 3).min().item() and zyx.randint_like(zyx.arange(4), 2).max().item() < 2
    assert x.layout is zyx.strided and not x.is_xpu and not x.is_sparse_csr
    with pytest.raises(NotImplementedError, match="to_sparse"):
        zyx.zeros(2, layout=zyx.sparse.SparseTensor)


def test_functions_of_sparse_tensors():
    dense = zyx.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    sparse, x = dense.to_sparse(), zyx.arange(6, dtype="float32").reshape(3, 2)
    x.requires_grad_()
    for name in ("mm", "matmul"):
        np.testing.assert_allclose(getattr(zyx, name)(sparse, x).tolist(), (dense @ x).tolist())
    np.testing.assert_allclose(zyx.sparse.mm(sparse, x).tolist(), (dense @ x).tolist())
    zyx.mm(sparse, x).sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), dense.sum(0).unsqueeze(1).expand(3, 2).tolist())
    left = zyx.ones(4, 2)
    np.testing.assert_allclose(zyx.mm(left, sparse).tolist(), (left @ dense).tolist())
    np.testing.assert_allclose(zyx.add(zyx.ones(2, 3), sparse).tolist(), (dense + 1).tolist())
    np.testing.assert_allclose(zyx.sqrt(sparse).tolist(), dense.sqrt().tolist())
    rows = dense.to_sparse_csr()
    assert rows.crow_indices().tolist() == [0, 1, 3] and rows.col_indices().tolist() == [1, 0, 2] and rows.values().tolist() == [2.0, 1.0, 3.0]
    again = zyx.sparse_csr_tensor(rows.crow_indices(), rows.col_indices(), rows.values(), (2, 3))
    assert again.to_dense().tolist() == dense.tolist()


def test_pytree():
    from zyx.utils import _pytree

    Point = collections.namedtuple("Point", "x y")
    tree = {"a": [1, (2, None)], "b": Point(3, collections.OrderedDict(c=4))}
    leaves, spec = _pytree.tree_flatten(tree)
    assert leaves == [1, 2, None, 3, 4] and spec.num_leaves == 5 and _pytree.tree_unflatten(leaves, spec) == tree
    assert _pytree.tree_map(lambda x: x and 2 * x, tree)["b"] == Point(6, {"c": 8}) and _pytree.tree_leaves(5) == [5]
    assert _pytree.tree_map(lambda x, y: x + y, [1, 2], [3, 4]) == [4, 6] and _pytree.tree_map_only(int, str, [1, "a"]) == ["1", "a"]
    with pytest.raises(ValueError):
        _pytree.tree_map(lambda x, y: x, [1], [1, 2])


def test_samplers_draw_what_is_asked_for():
    sampler = zyx.utils.data.RandomSampler(range(7), replacement=True, num_samples=10**10)
    drawn = [i for i, _ in zip(iter(sampler), range(5000))]
    assert set(drawn) == set(range(7)) and len(sampler) == 10**10
    assert len(list(zyx.utils.data.RandomSampler(range(3), replacement=True, num_samples=5000))) == 5000


def test_values_behind_indices_are_computed_once():
    """What an index leads to is stored like other values, so a loop's steps cost the same, and a number that was read stays."""
    device, table, w = zyx.device(), zyx.randn(50, 8), zyx.randn(8, 8, requires_grad=True)
    h, launches = table[zyx.from_numpy(np.arange(10)) + 1], []
    for _ in range(12):
        before = device.stats()["launches"]
        h = zyx.tanh(h @ w)
        h.square().mean().item()
        launches.append(device.stats()["launches"] - before)
    assert max(launches[4:]) <= launches[3], launches


def test_bad_indices_are_told_of_kept_values():
    table, w = zyx.randn(5, 8), zyx.randn(8, 8)
    x = table[zyx.tensor([1, 2]) * 3]
    h = zyx.tanh(x @ w)
    for _ in range(2):
        with pytest.raises(IndexError):
            h.sum().item()
    with pytest.raises(IndexError):
        h.numpy()
    later = zyx.tanh(h @ w)
    for _ in range(10):
        later = zyx.tanh(later @ w)
        with pytest.raises(IndexError):
            later.sum().item()


def test_layers_in_a_list_and_as_attributes_are_named_once():
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = [nn.Linear(2, 2, bias=False) for _ in range(2)]
            for i, head in enumerate(self.heads):
                self.add_module(f"head_{i}", head)
            self.alone = [nn.Linear(2, 1, bias=False)]

    model = Heads()
    assert set(model.state_dict()) == {"head_0.weight", "head_1.weight", "alone.0.weight"}
    assert len(model.parameters()) == 3 and len(list(model.children())) == 3


def test_functions_save_sparse_tensors():
    class Product(zyx.autograd.Function):
        @staticmethod
        def forward(ctx, indices, values, shape, b):
            a = zyx.sparse_coo_tensor(indices, values, shape)
            ctx.save_for_backward(a, b)
            ctx.n = shape[1]
            return zyx.matmul(a, b)

        @staticmethod
        def backward(ctx, dy):
            a, b = ctx.saved_tensors
            places = a._indices()[0] * ctx.n + a._indices()[1]
            return None, dy.matmul(b.t()).view(-1)[places], None, a.t().matmul(dy)

    indices, values, b = zyx.tensor([[0, 1], [2, 0]]), zyx.tensor([2.0, 3.0], requires_grad=True), zyx.ones(3, 2, requires_grad=True)
    Product.apply(indices, values, zyx.Size([2, 3]), b).sum().backward()
    assert values.grad.tolist() == [2.0, 2.0] and b.grad.tolist() == [[3.0, 3.0], [0.0, 0.0], [2.0, 2.0]]


def test_convolutions_as_wide_as_their_input():
    """They are computed along the other axis alone; results and gradients are those of a wider input, cut."""
    x, w, bias = zyx.randn(2, 3, 7, 4, requires_grad=True), zyx.randn(5, 3, 2, 4, requires_grad=True), zyx.randn(5, requires_grad=True)
    wide, options = zyx.nn.functional.pad(x, (0, 1)), [{}, {"stride": 2}, {"stride": (2, 1), "padding": (1, 0)}, {"dilation": (2, 1)}]
    for named in options:
        found, known = (nn.functional.conv2d(y, w, bias, **named) for y in (x, wide))
        known = known[..., :1]
        assert found.shape == known.shape
        np.testing.assert_allclose(found.numpy(), known.numpy(), rtol=1e-5, atol=1e-5)
        weight = zyx.randn(*found.shape)
        for dx, dy in zip(*(zyx.autograd.grad(y, [x, w, bias], weight, retain_graph=True) for y in (found, known))):
            np.testing.assert_allclose(dx.numpy(), dy.numpy(), rtol=1e-4, atol=1e-4)
    whole = nn.functional.conv2d(x, zyx.ones(1, 3, 7, 4))
    np.testing.assert_allclose(whole.flatten().tolist(), x.sum((1, 2, 3)).tolist(), rtol=1e-4, atol=1e-4)


def test_random_numbers_with_parameters_of_each():
    zyx.manual_seed(3)
    p = zyx.tensor([0.0, 1.0, 0.5]).unsqueeze(1).expand(3, 2000)
    drawn = zyx.bernoulli(p)
    assert drawn.dtype == zyx.float32 and drawn.shape == p.shape and drawn[0].sum().item() == 0 and drawn[1].sum().item() == 2000
    assert 900 < drawn[2].sum().item() < 1100 and 500 < zyx.bernoulli(zyx.zeros(2000), 0.3).sum().item() < 700
    counts = zyx.poisson(zyx.tensor([0.0, 4.0]).unsqueeze(1).expand(2, 2000))
    assert counts[0].sum().item() == 0 and abs(counts[1].mean().item() - 4) < 0.3
    mean, std = zyx.tensor([0.0, 10.0]).unsqueeze(1).expand(2, 2000), zyx.tensor([[1.0], [0.1]])
    for x in (zyx.normal(mean, std), zyx.normal(mean=mean, std=std)):
        assert x.shape == (2, 2000) and abs(x[1].mean().item() - 10) < 0.05 and abs(x[0].std().item() - 1) < 0.1
    assert zyx.normal(mean, 0.0).tolist() == mean.tolist() and zyx.normal(2.0, std).shape == std.shape
    assert zyx.normal(0.0, 1.0, (2, 3)).shape == (2, 3) and zyx.bernoulli(0.5, (4,)).shape == (4,) and zyx.normal(0.0, 1.0, size=(2,)).shape == (2,)
