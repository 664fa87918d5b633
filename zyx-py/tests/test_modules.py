"""Modules moved, copied and given initial values; files of tensors; groups of parameters."""

import copy
import math
import pathlib
import pickle

import numpy as np
import pytest
import zyx
from zyx import nn, optim


class Net(nn.Module):
    def __init__(self):
        self.first = nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("scale", zyx.tensor([2.0]))
        self.register_buffer("passing", zyx.tensor([1.0]), persistent=False)

    def forward(self, x):
        return self.norm(self.first(x)) * self.scale * self.passing


def test_buffers_are_state():
    net = Net()
    names = {name for name, _ in net.named_buffers()}
    assert names == {"scale", "passing", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
    assert not net.scale.is_trainable() and "scale" in net.state_dict() and "passing" not in net.state_dict()
    assert net.load_state_dict(Net().state_dict()) == ([], [])
    assert len(net.buffers()) == 5
    with pytest.raises(KeyError):
        net.register_buffer("first", zyx.ones(1))
    # Freezing and unfreezing a weight makes no buffer of it.
    net.first.weight.requires_grad_(False)
    assert "first.weight" not in {name for name, _ in net.named_buffers()}


def test_modules_change_dtype_and_device():
    net, x = Net(), zyx.randn(5, 4)
    before = net.eval()(x)
    assert net.half() is net and net.first.weight.dtype == zyx.float16 and net.norm.num_batches_tracked.dtype == zyx.int64
    assert net.scale.dtype == zyx.float16 and net.first.weight.requires_grad and net.first.weight.is_trainable()
    assert net(x.half()).dtype == zyx.float16
    np.testing.assert_allclose(net(x.half()).numpy(), before.numpy(), atol=2e-2)
    net.to("reference", zyx.float64)
    assert net.first.weight.device.spec.startswith("reference") and net.first.weight.dtype == zyx.float64
    assert net(x.to("reference", zyx.float64)).dtype == zyx.float64
    assert net.cpu().float().first.bias.dtype == zyx.float32 and net.first.bias.device.spec.startswith("cpu")
    with pytest.raises(TypeError, match="floating-point"):
        net.to(zyx.int64)
    assert net.first.weight.dtype == zyx.float32
    weight, optimizer = net.first.weight.numpy(copy=True), optim.SGD(net.parameters(), lr=0.1)
    optimizer.step(net.train()(x).square().sum())
    assert (net.first.weight.numpy() != weight).any()


LAYERS = [
    (lambda: nn.Linear(4, 3, bias=False), (2, 4)),
    (lambda: nn.Conv2d(2, 3, 2, padding="same"), (1, 2, 4, 4)),
    (lambda: nn.BatchNorm1d(4), (5, 4)),
    (lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), (2, 4)),
    (lambda: Net(), (5, 4)),
    (lambda: nn.MaxPool2d(2), (1, 1, 4, 4)),
    (lambda: nn.GRU(4, 3), (2, 5, 4)),
]


@pytest.mark.parametrize("make, shape", LAYERS)
@pytest.mark.parametrize("again", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_layers_are_copied(make, shape, again):
    layer, x = make(), zyx.randn(shape)
    layer(x)
    # Running statistics are computed now, and not within the kernels that use them.
    zyx.realize_all([*layer.eval().parameters(), *layer.buffers()])
    other = again(layer)
    assert other is not layer and repr(other) == repr(layer) and not other.training

    def values(of):
        found = of(x)
        return (found[0] if isinstance(found, (tuple, list)) else found).numpy(copy=True)

    np.testing.assert_array_equal(values(layer), values(other))
    assert [n for n, _ in other.named_parameters()] == [n for n, _ in layer.named_parameters()]
    before = values(other)
    for parameter in layer.parameters():
        parameter.set(zyx.zeros_like(parameter))
    np.testing.assert_array_equal(before, values(other))


def test_copies_keep_dtype_and_what_is_frozen():
    layer = nn.Linear(2, 2).half()
    layer.weight.requires_grad_(False)
    other = copy.deepcopy(layer)
    assert other.weight.dtype == zyx.float16 and not other.weight.is_trainable() and other.bias.is_trainable()


@pytest.mark.parametrize("x", [zyx.tensor([[1.5, 2.5]]), zyx.tensor([1, 2], dtype="uint8"), zyx.ones(2, dtype="bfloat16"), nn.Parameter(zyx.ones(2))])
def test_tensors_are_copied(x):
    for other in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert type(other) is type(x) and other.dtype == x.dtype and other.tolist() == x.tolist()


def test_dtypes_and_devices_are_pickled():
    assert pickle.loads(pickle.dumps(zyx.float16)) == zyx.float16
    assert pickle.loads(pickle.dumps(zyx.device())).spec == zyx.device().spec


def test_initial_values():
    zyx.manual_seed(0)
    weight = nn.Parameter(zyx.zeros(400, 100))
    cases = [
        (lambda: nn.init.xavier_uniform_(weight, gain=2.0), 2 * math.sqrt(2 / 500)),
        (lambda: nn.init.xavier_normal_(weight), math.sqrt(2 / 500)),
        (lambda: nn.init.kaiming_uniform_(weight, nonlinearity="relu"), math.sqrt(2 / 100)),
        (lambda: nn.init.kaiming_uniform_(weight, a=math.sqrt(5)), math.sqrt(1 / 300)),
        (lambda: nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="tanh"), 5 / 3 / 20),
        (lambda: nn.init.normal_(weight, 0.0, 3.0), 3.0),
        (lambda: nn.init.uniform_(weight, -1, 1), math.sqrt(1 / 3)),
    ]
    for make, deviation in cases:
        assert make() is weight
        # 40000 numbers: the standard deviation is known to 0.4%.
        assert abs(weight.std().item() / deviation - 1) < 0.03 and abs(weight.mean().item()) < 0.03 * deviation
    nn.init.trunc_normal_(weight, mean=1.0, std=2.0, a=0.0, b=2.0)
    assert weight.min().item() >= 0 and weight.max().item() <= 2 and abs(weight.mean().item() - 1) < 0.02
    # Of a normal number within half a deviation.
    assert abs(weight.var().item() - 4 * 0.0806) < 0.01
    nn.init.orthogonal_(weight, gain=2.0)
    np.testing.assert_allclose((weight.T @ weight).numpy(), 4 * np.eye(100), atol=1e-4)
    assert nn.init.ones_(weight).sum().item() == 40000 and nn.init.zeros_(weight).sum().item() == 0
    assert nn.init.constant_(weight, 0.5).mean().item() == 0.5 and nn.init.eye_(weight).sum().item() == 100
    conv = nn.Conv2d(4, 8, 3)
    nn.init.kaiming_normal_(conv.weight)
    with pytest.raises(ValueError, match="two axes"):
        nn.init.xavier_normal_(conv.bias)
    with pytest.raises(TypeError, match="Tensor"):
        nn.init.zeros_([1.0])
    assert nn.init.zeros_(zyx.ones(2)).tolist() == [0, 0]
    assert nn.init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / 1.04)


def test_groups_of_parameters():
    a, b = nn.Parameter(zyx.tensor([1.0])), nn.Parameter(zyx.tensor([1.0]))
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.01}], 0.1)
    optimizer.step((a * 2 + b * 2).sum())
    assert a.item() == pytest.approx(0.8) and b.item() == pytest.approx(0.98)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.01]
    optimizer.param_groups[1]["lr"] = 1.0
    optimizer.step((a * 2 + b * 2).sum())
    assert a.item() == pytest.approx(0.6) and b.item() == pytest.approx(-1.02)
    single = optim.AdamW([a], lr=0.5)
    single.param_groups[0]["lr"] = 0.25
    assert single.lr == 0.25 and single.param_groups[0]["params"][0].is_same(a)
    with pytest.raises(KeyError):
        single.param_groups[0]["momentum"] = 1


def test_a_loss_without_history_is_refused():
    layer = nn.Linear(2, 1)
    groups = optim.SGD([{"params": layer.weight}, {"params": layer.bias}], lr=0.1)
    for optimizer in (optim.SGD(layer.parameters(), lr=0.1), groups):
        with zyx.no_grad():
            loss = layer(zyx.ones(1, 2)).sum()
        with pytest.raises(ValueError, match="no_grad"):
            optimizer.step(loss)
        optimizer.step(layer(zyx.ones(1, 2)).sum())


def test_plateau():
    plateau = optim.schedule.Plateau(1.0, patience=1)
    assert [plateau.observe(loss) for loss in [5.0, 4.0, 4.0, 4.0, 4.0]] == [1.0, 1.0, 1.0, 0.1, 0.1]
    assert plateau.rate == 0.1 and plateau.best == 4.0
    assert plateau.observe(zyx.tensor(1.0)) == 0.1 and plateau.best == 1.0


def test_files_of_numpy(tmp_path):
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    assert zyx.load_npy(tmp_path / "x.npy").tolist() == x.tolist()
    zyx.save_npy(zyx.tensor(x.T), tmp_path / "y.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), x.T)
    np.savez_compressed(tmp_path / "z.npz", a=x, b=np.array([1, 2]))
    found = zyx.load_npz(tmp_path / "z.npz")
    assert found["a"].tolist() == x.tolist() and found["b"].dtype == zyx.int64
    zyx.save_npz({"c": x}, tmp_path / "w.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "w.npz")["c"], x)
    with pytest.raises(FileNotFoundError):
        zyx.load_npy(tmp_path / "none.npy")


def test_lazy_files(tmp_path):
    zyx.save_safetensors({"a": zyx.ones(2, 3), "b": zyx.tensor([7])}, tmp_path / "x.safetensors")
    file = zyx.open_safetensors(tmp_path / "x.safetensors")
    assert sorted(file.keys()) == ["a", "b"] and len(file) == 2 and "a" in file and "c" not in file
    assert file.shape("a") == (2, 3) and file.dtype("b") == zyx.int64
    assert file["b"].tolist() == [7] and file.load("a", device="cpu").sum().item() == 6
    with pytest.raises(KeyError):
        file["c"]


def test_safetensors_in_several_files(tmp_path):
    zyx.save_safetensors({"a": zyx.ones(2)}, tmp_path / "1.safetensors")
    zyx.save_safetensors({"b": zyx.tensor([7])}, tmp_path / "2.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}')
    for path in (tmp_path, index):
        found = zyx.load_safetensors(path)
        assert list(found) == ["a", "b"] and found["b"].tolist() == [7]
        assert zyx.open_safetensors(path)["a"].tolist() == [1, 1]
    index.write_text('{"weight_map": {"a": "2.safetensors"}}')
    with pytest.raises(ValueError, match="`a` should be in `2.safetensors`"):
        zyx.load_safetensors(tmp_path)


def test_pytorch(tmp_path):
    data = pathlib.Path(__file__).resolve().parents[2] / "zyx-io" / "tests" / "data"
    found = zyx.load_pytorch(data / "model.pt")
    with np.load(data / "expected.npz") as expected:
        assert sorted(found) == sorted(expected)
        for name in expected:
            np.testing.assert_array_equal(found[name].double().numpy(), expected[name].astype(np.float64))
    with pytest.raises(ValueError, match="limit of 100"):
        zyx.load_pytorch(data / "model.pt", limit=100)
    with pytest.raises(ValueError, match="torch.nn.modules.linear.Linear"):
        zyx.load_pytorch(data / "refused.pt")
    model = zyx.nn.Linear(2, 3)
    model.load_state_dict({name[6:]: x for name, x in found.items() if name.startswith("model.")})
    np.testing.assert_array_equal(model.weight.numpy(), found["model.weight"].numpy())
    model.load(data / "weights.pt")
    np.testing.assert_array_equal(model.bias.numpy(), found["model.bias"].numpy())


def test_gguf():
    model = pathlib.Path(__file__).resolve().parents[2] / "zyx-io" / "tests" / "data" / "model.gguf"
    file = zyx.open_gguf(model)
    assert len(file) == len(file.keys()) > 0 and isinstance(file.metadata, dict) and file.metadata
    for name in file.keys():
        assert file[name].shape == file.shape(name)
    with pytest.raises(KeyError):
        file.load("nothing")


def test_scan_by_logaddexp():
    x = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(zyx.tensor(x).scan_with("logaddexp", 0).numpy(), np.log(np.cumsum(np.exp(x))), rtol=1e-12)
