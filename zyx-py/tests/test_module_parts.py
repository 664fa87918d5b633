"""Modules: parts, refusals, hooks, files."""

import copy
import pickle

import numpy as np
import pytest
import zyx
from zyx import nn


class Foreign:
    """A layer of another library."""

    def named_parameters(self):
        return []


Foreign.__module__ = "torch.nn.modules.linear"


def test_containers_refuse_what_they_cannot_hold():
    for bad, text in [(lambda x: x, "<lambda>"), (nn.ReLU, "the class zyx.nn.ReLU"), ("relu", "str"), (None, "NoneType"), (Foreign(), "torch.nn.modules.linear.Foreign")]:
        for make in (lambda: nn.Sequential(nn.ReLU(), bad), lambda: nn.ModuleList([bad]), lambda: nn.ModuleDict({"a": bad}), lambda: nn.ModuleList().append(bad),
                     lambda: nn.ModuleList([nn.ReLU()]).insert(0, bad), lambda: nn.Sequential(nn.ReLU()).__setitem__(0, bad)):  # fmt: skip
            with pytest.raises(TypeError, match=f"{text}.* is not a Module subclass"):
                make()
    net = nn.Module()
    with pytest.raises(TypeError, match="`fc` would be a torch.nn.modules.linear.Foreign, which is no part of a zyx module"):
        net.fc = Foreign()
    for call, text in [
        (lambda: net.register_buffer("b", [1.0]), "buffer is a Tensor or None"), (lambda: net.register_parameter("p", zyx.ones(1)), "nn.Parameter or None"),
        (lambda: net.add_module("m", 3), "not a Module subclass"), (lambda: nn.ParameterList([1.0]), "tensors and parameters"), (lambda: nn.ParameterDict({"a": "b"}), "tensors and parameters"),
        (lambda: net.register_forward_hook(3), "a hook is a function"), (lambda: net.load_state_dict([1]), "dict-like"),
    ]:  # fmt: skip
        with pytest.raises(TypeError, match=text):
            call()
    for name in ("", "a.b", "forward"):
        with pytest.raises(KeyError):
            net.add_module(name, nn.ReLU())


def test_containers_are_lists_and_dicts():
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    for kind in (lambda *x: nn.Sequential(*x), lambda *x: nn.ModuleList(x)):
        x = kind(a, b)
        x.insert(1, c)
        assert list(x) == [a, c, b] and x[-1] is b and len(x[1:]) == 2 and type(x[1:]) is type(x)
        assert x.pop(0) is a and list(x) == [c, b] and [n for n, _ in x.named_children()] == ["0", "1"]
        x += [a]
        assert list(x + [b]) == [c, b, a, b] and c in x
        del x[1]
        assert list(x) == [c, a] and list(x.extend([b])) == [c, a, b]
        with pytest.raises(IndexError):
            x[3]
        with pytest.raises(TypeError):
            x["0"]
    d = nn.ModuleDict({"a": a})
    d["b"] = b
    assert d.pop("a") is a and list(d) == ["b"] and d["b"] is b
    with pytest.raises(KeyError):
        d["a"]
    with pytest.raises(KeyError):
        d["items"] = a
    named = nn.Sequential({"first": nn.Linear(2, 2), "act": nn.ReLU()})
    assert list(named.state_dict()) == ["first.weight", "first.bias"] and named.first.in_features == 2


def test_lists_and_dicts_of_parameters():
    class Net(nn.Module):
        def __init__(self):
            self.all = nn.ParameterList([zyx.ones(2), nn.Parameter(zyx.zeros(3))])
            self.by = nn.ParameterDict({"a": zyx.ones(1)})

    net = Net()
    net.all.append(zyx.ones(4))
    net.by["b"] = nn.Parameter(zyx.ones(2))
    assert [n for n, _ in net.named_parameters()] == ["all.0", "all.1", "all.2", "by.a", "by.b"]
    assert len(net.all) == 3 and net.all[1].shape == (3,) and "a" in net.by and net.by.pop("a").item() == 1 and list(net.by) == ["b"]
    assert "ParameterList" in repr(net) and "(0): Parameter containing: [zyx.float32 of size 2]" in repr(net.all)
    other = copy.deepcopy(net)
    assert list(other.state_dict()) == list(net.state_dict()) and list(other.by.keys()) == ["b"]
    with pytest.raises(RuntimeError, match="should not be called"):
        net.all()


def test_forward_hooks():
    layer, seen = nn.Linear(2, 2), []
    x = zyx.ones(1, 2)
    plain = layer(x)
    before = layer.register_forward_pre_hook(lambda m, given: (given[0] * 2,))
    after = layer.register_forward_hook(lambda m, given, y: seen.append(given[0].sum().item()) or y + 1)
    doubled = layer(x)
    np.testing.assert_allclose(doubled.numpy(), (x * 2 @ layer.weight.T + layer.bias + 1).numpy(), rtol=1e-6)
    assert seen == [4.0]
    before.remove()
    np.testing.assert_allclose(layer(x).numpy(), (plain + 1).numpy(), rtol=1e-6)
    after.remove()
    assert layer(x).tolist() == plain.tolist()
    order = []
    with layer.register_forward_hook(lambda *_: order.append("second")), layer.register_forward_hook(lambda *_: order.append("first"), prepend=True):
        layer(x)
    assert order == ["first", "second"] and layer(x).tolist() == plain.tolist()
    named = nn.Module()
    named.forward = lambda x, scale=1: x * scale
    with named.register_forward_pre_hook(lambda m, a, k: (a, {"scale": 3}), with_kwargs=True):
        with named.register_forward_hook(lambda m, a, k, y: y + k["scale"], with_kwargs=True):
            assert named(zyx.ones(1), scale=2).item() == 6
    failed = []
    broken = nn.Linear(2, 2)
    broken.register_forward_hook(lambda m, a, y: failed.append(y), always_call=True)
    with pytest.raises(ValueError):
        broken(zyx.ones(1, 3))
    assert failed == [None]
    everywhere = nn.modules.module.register_module_forward_hook(lambda m, a, y: order.append(type(m).__name__)) if hasattr(nn.modules, "module") else None
    from zyx.nn.modules.module import register_module_forward_hook

    if everywhere is not None:
        everywhere.remove()
    order.clear()
    with register_module_forward_hook(lambda m, a, y: order.append(type(m).__name__)):
        nn.Sequential(nn.Linear(2, 2), nn.ReLU())(x)
    assert order == ["Linear", "ReLU", "Sequential"]
    pickle.loads(pickle.dumps(layer))


def test_backward_hooks():
    layer, seen = nn.Linear(2, 3), []
    layer.register_full_backward_hook(lambda m, before, after: seen.append((before, after)))
    x = zyx.ones(4, 2, requires_grad=True)
    (layer(x) * 2).sum().backward()
    ((dx,), (dy,)) = seen[0]
    assert len(seen) == 1 and dy.tolist() == [[2.0] * 3] * 4
    np.testing.assert_allclose(dx.numpy(), (dy @ layer.weight).numpy(), rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), dx.numpy(), rtol=1e-6)
    # A result takes the place of the gradient of the input; before it may change that of the output.
    other = nn.Linear(2, 3)
    other.register_full_backward_hook(lambda m, before, after: (before[0] * 10,))
    other.register_full_backward_pre_hook(lambda m, after: (after[0] * 3,))
    z = zyx.ones(1, 2, requires_grad=True)
    other(z).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), (other.weight.sum(0) * 30).unsqueeze(0).numpy(), rtol=1e-5)
    np.testing.assert_allclose(other.bias.grad.numpy(), [3, 3, 3])
    # The first layer of a model has an input without a gradient.
    first = nn.Linear(2, 3)
    first.register_full_backward_hook(lambda m, before, after: seen.append(before))
    first(zyx.ones(1, 2)).sum().backward()
    assert seen[-1] == (None,)


def test_state_dict_hooks_and_forms():
    class Net(nn.Module):
        def __init__(self):
            self.fc, self.n = nn.Linear(2, 2), 0

        def get_extra_state(self):
            return {"n": self.n}

        def set_extra_state(self, state):
            self.n = state["n"]

    net, other = Net(), Net()
    net.n = 7
    assert list(net.state_dict(prefix="m.")) == ["m.fc.weight", "m.fc.bias", "m._extra_state"]
    other.load_state_dict(net.state_dict())
    assert other.n == 7
    assert isinstance(net.state_dict(keep_vars=True)["fc.weight"], nn.Parameter)
    given = {"before": 1}
    assert net.state_dict(destination=given) is given and "fc.bias" in given
    layer = nn.Linear(2, 2)
    layer._register_state_dict_hook(lambda m, state, prefix, about: state.update({prefix + "more": zyx.ones(1)}))
    assert "more" in layer.state_dict() and "0.more" in nn.Sequential(layer).state_dict()
    old = nn.Linear(2, 2)
    old.register_load_state_dict_pre_hook(lambda m, state, prefix, *more: state.update({prefix + "weight": state.pop(prefix + "w")}))
    told = []
    old.register_load_state_dict_post_hook(lambda m, keys: told.append(keys.missing_keys))
    old.load_state_dict({"w": zyx.ones(2, 2), "bias": zyx.zeros(2)})
    assert old.weight.sum().item() == 4 and told == [[]]
    # `assign` takes the tensors as they are.
    fresh, before = nn.Linear(2, 2), None
    before = fresh.weight
    fresh.load_state_dict({"weight": zyx.ones(2, 2, dtype="float64"), "bias": zyx.zeros(2, dtype="float64")}, assign=True)
    assert fresh.weight is not before and fresh.weight.dtype == zyx.float64 and fresh.weight.requires_grad
    norm = nn.BatchNorm1d(2)
    norm.load_state_dict(nn.BatchNorm1d(2).state_dict(), assign=True)
    assert norm.running_mean.is_state() and not norm.running_mean.requires_grad


def test_parts_of_a_module_are_dicts():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net._modules["1"] = nn.Tanh()
    assert isinstance(net[1], nn.Tanh)
    del net._modules["1"]
    assert len(net) == 1 and list(net[0]._parameters) == ["weight", "bias"]
    net[0]._parameters["bias"] = None
    assert net[0].bias is None and list(nn.BatchNorm1d(2)._buffers) == ["running_mean", "running_var", "num_batches_tracked"]
    net.set_submodule("0", nn.Linear(2, 3))
    assert net(zyx.ones(1, 2)).shape == (1, 3) and net.get_submodule("") is net
    with pytest.raises(ValueError, match="boolean"):
        net.train(1)


def test_errors_name_the_layer():
    class Net(nn.Module):
        def __init__(self):
            self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(9, 2))

        def forward(self, x):
            return self.body(x)

    with pytest.raises(ValueError, match=r"in layer `body\.2`, Linear"):
        Net()(zyx.ones(1, 4))
    with pytest.raises(ValueError, match="matmul") as found:
        nn.Linear(4, 2)(zyx.ones(1, 3))
    assert "in layer" not in str(found.value)
    # The traceback has the caller's line.
    assert any(entry.path.name == "test_module_parts.py" for entry in found.traceback)


def test_whole_models_are_saved(tmp_path):
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.LSTM(3, 2))
    net[1](zyx.randn(5, 3))
    x = zyx.randn(4, 2)
    want = net.eval()(x)[0].numpy()
    zyx.save(net, tmp_path / "net.pt")
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False"):
        zyx.load(tmp_path / "net.pt")
    other = zyx.load(tmp_path / "net.pt", weights_only=False)
    np.testing.assert_array_equal(other(x)[0].numpy(), want)
    zyx.save({"model": net, "epoch": 3}, tmp_path / "both.pt")
    assert zyx.load(tmp_path / "both.pt", weights_only=False)["epoch"] == 3
    with pytest.raises(TypeError, match="lambda|pickle"):
        zyx.save(lambda x: x, tmp_path / "no.pt")


def test_lazy_layers():
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    assert net[0].has_uninitialized_params() and isinstance(net[0].weight, nn.parameter.UninitializedParameter)
    with pytest.raises(ValueError, match="call the module once"):
        net.state_dict()
    with pytest.raises(ValueError, match="before the first input"):
        net[0].weight.shape
    assert net(zyx.ones(3, 2, 5, 5)).shape == (3, 2)
    assert type(net[0]) is nn.Conv2d and net[0].in_channels == 2 and net[4].in_features == 36 and type(net[1]) is nn.BatchNorm2d
    assert net(zyx.ones(1, 2, 5, 5)).shape == (1, 2) and len(net.parameters()) == 6
    assert nn.LazyConvTranspose1d(3, 2, stride=2)(zyx.ones(1, 5, 4)).shape == (1, 3, 8)
    with pytest.raises(TypeError, match="out_features"):
        nn.LazyLinear()


def test_weights_by_length_and_direction():
    layer, x = nn.Linear(4, 3), zyx.randn(2, 4)
    want = layer(x).numpy()
    nn.utils.weight_norm(layer)
    assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"] and layer.weight_g.shape == (3, 1)
    np.testing.assert_allclose(layer(x).numpy(), want, rtol=1e-5)
    layer.weight_g.set(layer.weight_g * 2)
    np.testing.assert_allclose((layer(x) - layer.bias).numpy(), 2 * (want - layer.bias.numpy()), rtol=1e-4, atol=1e-5)
    layer(x).sum().backward()
    assert layer.weight_g.grad is not None and layer.weight_v.grad is not None
    with pytest.raises(RuntimeError, match="two weight_norm"):
        nn.utils.weight_norm(layer)
    nn.utils.remove_weight_norm(layer)
    assert isinstance(layer.weight, nn.Parameter) and set(layer.state_dict()) == {"weight", "bias"}
    conv = nn.utils.spectral_norm(nn.Conv2d(2, 3, 3), n_power_iterations=200)
    conv(zyx.ones(1, 2, 4, 4))
    assert np.linalg.svd(conv.weight.numpy().reshape(3, -1))[1][0] == pytest.approx(1, rel=1e-2)
    assert set(conv.state_dict()) == {"bias", "weight_orig", "weight_u", "weight_v"}
    # Initial values of the weight are those of its original.
    late = nn.utils.spectral_norm(nn.Linear(2, 2))
    nn.init.constant_(late.weight, 3.0)
    assert late.weight_orig.tolist() == [[3, 3], [3, 3]]


def test_parametrizations():
    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

        def right_inverse(self, x):
            return x.triu()

    P = nn.utils.parametrize
    layer, x = nn.Linear(3, 3), zyx.randn(2, 3)
    P.register_parametrization(layer, "weight", Symmetric())
    weight = layer.weight.numpy()
    np.testing.assert_array_equal(weight, weight.T)
    assert P.is_parametrized(layer, "weight") and list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert isinstance(layer, nn.Linear) and P.type_before_parametrizations(layer) is nn.Linear
    layer(x).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    layer.weight = zyx.eye(3)
    np.testing.assert_allclose(layer(x).numpy(), (x + layer.bias).numpy(), rtol=1e-5)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))))):
        assert P.is_parametrized(other)
    with P.cached():
        assert layer.weight is layer.weight
    P.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight.tolist() == np.eye(3).tolist()
    q = nn.utils.parametrizations.orthogonal(nn.Linear(4, 3))
    np.testing.assert_allclose((q.weight @ q.weight.T).numpy(), np.eye(3), atol=1e-5)
    with pytest.raises(ValueError, match="does not have a parameter"):
        P.register_parametrization(nn.Linear(2, 2), "nothing", Symmetric())


def test_one_process_and_one_device():
    net = nn.Linear(2, 2)
    data = nn.DataParallel(net, [0])
    assert list(data.state_dict()) == ["module.weight", "module.bias"] and data(zyx.ones(1, 2)).tolist() == net(zyx.ones(1, 2)).tolist()
    with pytest.raises(NotImplementedError, match="devices do not communicate"):
        nn.DataParallel(net, [0, 1])
    D = zyx.distributed
    with pytest.raises(ValueError, match="not been initialized"):
        D.get_rank()
    with pytest.raises(NotImplementedError, match="2 processes"):
        D.init_process_group("gloo", world_size=2, rank=0)
    D.init_process_group("gloo", world_size=1, rank=0)
    try:
        assert (D.get_rank(), D.get_world_size(), D.is_initialized()) == (0, 1, True)
        D.barrier()
        found = [None]
        D.all_gather(found, zyx.ones(1))
        assert found[0].item() == 1 and D.all_reduce(zyx.ones(1)) is None
        nn.parallel.DistributedDataParallel(net)(zyx.ones(1, 2))
        with pytest.raises(NotImplementedError, match="no other process"):
            D.send(zyx.ones(1), 1)
    finally:
        D.destroy_process_group()


def test_fused_normalisation():
    conv, norm, x = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), zyx.randn(2, 2, 5, 5)
    norm(conv(x))
    conv.eval(), norm.eval()
    np.testing.assert_allclose(nn.utils.fuse_conv_bn_eval(conv, norm)(x).numpy(), norm(conv(x)).numpy(), rtol=1e-4, atol=1e-5)


def test_weights_are_drawn_anew():
    for layer in (nn.Linear(4, 3), nn.Conv2d(2, 3, 3, bias=False), nn.Embedding(5, 3, 1), nn.LSTM(2, 3), nn.GRUCell(2, 3), nn.Bilinear(2, 2, 3)):
        before = {name: p.numpy(copy=True) for name, p in layer.named_parameters()}
        weight = next(iter(layer.parameters()))
        layer.reset_parameters()
        assert next(iter(layer.parameters())) is weight
        assert all((p.numpy() != before[name]).any() for name, p in layer.named_parameters())
    norm = nn.BatchNorm1d(3)
    norm.weight.set(zyx.zeros(3))
    norm(zyx.randn(5, 3) + 4)
    norm.reset_parameters()
    assert norm.weight.tolist() == [1] * 3 and norm.running_mean.tolist() == [0] * 3 and norm.num_batches_tracked.item() == 0

    class Zero(nn.Linear):
        def reset_parameters(self):
            nn.init.zeros_(self.weight)

    assert Zero(2, 3).weight.abs().sum().item() == 0 and nn.ReLU().reset_parameters() is None
