"""Modules: layers, models of users, state dicts, training."""

import numpy as np
import pytest
import zyx
from zyx import nn


class Net(nn.Module):
    def __init__(self):
        self.hidden = nn.Linear(4, 8)
        self.blocks = [nn.Linear(8, 8), nn.Linear(8, 8, bias=False)]
        self.scale = nn.Parameter([1.0])
        self.drop = nn.Dropout(0.5)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        x = self.hidden(x).relu()
        for block in self.blocks:
            x = x + block(x).tanh()
        return self.out(self.drop(x * self.scale))


def test_parameters_by_name():
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert names == ["scale", "hidden.weight", "hidden.bias", "blocks.0.weight", "blocks.0.bias", "blocks.1.weight",
                     "out.weight", "out.bias"]  # fmt: skip
    assert net.n_parameters() == 4 * 8 + 8 + 64 + 8 + 64 + 1 + 16 + 2
    assert net.hidden.weight.shape == (8, 4) and isinstance(net.hidden.weight, nn.Parameter)
    assert [name for name, _ in net.named_modules()][:3] == ["", "hidden", "blocks.0"]
    assert "(hidden): Linear(in_features=4, out_features=8, bias=True)" in repr(net)


def test_layers_compute_what_their_parameters_say(rng):
    x = rng.normal(size=(3, 4)).astype(np.float32)
    layer = nn.Linear(4, 2)
    w, b = layer.weight.numpy(), layer.bias.numpy()
    np.testing.assert_allclose(layer(x).numpy(), x @ w.T + b, rtol=1e-5, atol=1e-6)
    layer.weight.set(np.zeros((2, 4), np.float32))
    np.testing.assert_allclose(layer(x).numpy(), np.broadcast_to(b, (3, 2)))
    with pytest.raises(TypeError, match="is a parameter"):
        layer.bias = zyx.ones(2)
    layer.bias = nn.Parameter(zyx.ones(2))
    assert layer(x).tolist() == [[1, 1]] * 3
    layer.weight, layer.bias = nn.Parameter(zyx.ones(3, 4)), None
    assert layer(x).shape == (3, 3)
    layer.weight = nn.Parameter(zyx.zeros(2, 4))
    with pytest.raises(ValueError):
        layer.weight.set(zyx.zeros(3))
    with pytest.raises(ValueError):
        layer(zyx.ones(3, 5))
    with pytest.raises(TypeError):
        nn.Linear("a", 2)
    assert nn.Linear(2, 2, dtype="float64").weight.dtype == zyx.float64


def test_convolution_and_norms(rng):
    x = rng.normal(size=(2, 3, 8, 8)).astype(np.float32)
    conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)
    assert conv(x).shape == (2, 4, 4, 4) and nn.Conv2d(3, 4, (3, 1), bias=False)(x).shape == (2, 4, 6, 8)
    norm = nn.BatchNorm2d(3)
    y = norm(x).numpy()
    np.testing.assert_allclose(y.mean((0, 2, 3)), 0, atol=1e-5)
    assert norm.running_mean.is_trainable() is False and norm.num_batches_tracked.item() == 1
    norm.eval()
    assert not norm.training and abs(norm(x).numpy().mean()) > 1e-4
    np.testing.assert_allclose(nn.LayerNorm(8)(x).numpy().mean(-1), 0, atol=1e-5)
    table = nn.Embedding(10, 3)
    assert table([[1, 2], [3, 9]]).shape == (2, 2, 3)
    np.testing.assert_array_equal(table([4]).numpy()[0], table.weight.numpy()[4])


def test_modes():
    net, x = Net(), zyx.ones(5, 4)
    assert net.training and net.drop.training
    net.eval()
    assert not net.training and not net.drop.training and net(x).tolist() == net(x).tolist()
    net.train()
    assert net(x).tolist() != net(x).tolist()


def test_state_dicts(tmp_path):
    a, b = Net().eval(), Net().eval()
    x = zyx.ones(1, 4)
    assert a(x).tolist() != b(x).tolist()
    assert b.load_state_dict(a.state_dict()) == ([], [])
    assert a(x).tolist() == b(x).tolist()
    file = tmp_path / "net.safetensors"
    a.save(file)
    c = Net().eval()
    c.load(file)
    assert a(x).tolist() == c(x).tolist()
    state = {name: value.numpy() for name, value in a.state_dict().items()}
    state["scale"] = np.array([3.0])
    b.load_state_dict(state)
    assert b.scale.item() == 3
    before = b.hidden.weight.tolist()
    with pytest.raises(ValueError, match="missing are: scale; not part of the model are: more"):
        b.load_state_dict({**{k: v for k, v in state.items() if k != "scale"}, "more": zyx.ones(1)})
    with pytest.raises(ValueError, match="out.bias"):
        b.load_state_dict({**state, "hidden.weight": np.zeros((8, 4)), "out.bias": np.zeros(3)})
    assert b.hidden.weight.tolist() == before


def test_safetensors(tmp_path):
    tensors = {"a": zyx.arange(6).reshape(2, 3), "b": zyx.tensor(1.5, dtype="float16"), "c": zyx.zeros(0, 2)}
    zyx.save_safetensors(tensors, tmp_path / "x.safetensors")
    back = zyx.load_safetensors(tmp_path / "x.safetensors")
    assert {k: (v.tolist(), v.dtype) for k, v in back.items()} == {k: (v.tolist(), v.dtype) for k, v in tensors.items()}
    assert zyx.safetensors_from_bytes(zyx.safetensors_to_bytes(tensors)).keys() == tensors.keys()
    with pytest.raises(ValueError):
        zyx.safetensors_from_bytes(b"nonsense")
    narrow = {"a": zyx.tensor([1.0, -0.3, 448.0]), "b": zyx.tensor([0.3])}
    zyx.save_safetensors(narrow, tmp_path / "n.safetensors", float8={"a": "e4m3"})
    assert b"F8_E4M3" in (tmp_path / "n.safetensors").read_bytes()
    back = zyx.load_safetensors(tmp_path / "n.safetensors")
    assert back["a"].tolist() == [1.0, -0.3125, 448.0] and back["b"].tolist() == narrow["b"].tolist()
    with pytest.raises(ValueError):
        zyx.save_safetensors(narrow, tmp_path / "n.safetensors", float8={"a": "e3m4"})


def test_containers():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert model(zyx.ones(4, 2)).shape == (4, 1) and len(model) == 3
    assert [n for n, _ in model.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert isinstance(model[0], nn.Linear) and len(model[:2]) == 2
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    assert len(list(layers)) == 3 and next(iter(layers.named_parameters()))[0] == "0.weight"
    both = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.ReLU()})
    assert both["a"].weight.shape == (2, 2) and "b" in both and list(both) == ["a", "b"]


def test_tied_and_frozen_parameters():
    class Tied(nn.Module):
        def __init__(self):
            self.a = nn.Parameter(np.ones((2, 2), np.float32))
            self.b = self.a

    model = Tied()
    assert len(list(model.named_parameters())) == 1 and len(list(model.named_parameters(remove_duplicate=False))) == 2
    assert len(model.parameters()) == 1 and sorted(model.state_dict()) == ["a", "b"]
    model.requires_grad_(False)
    assert not model.a.is_trainable() and not model.a.requires_grad and model.n_parameters() == 0
    norm = nn.BatchNorm2d(2).requires_grad_(False).requires_grad_(True)
    assert norm.weight.is_trainable() and not norm.running_var.is_trainable()


@pytest.mark.parametrize("name", sorted(zyx._core.OPTIMIZERS))
def test_optimizers_lower_a_loss(name, rng):
    make = getattr(zyx.optim, name)
    x = rng.normal(size=(32, 4)).astype(np.float32)
    y = x @ rng.normal(size=(4, 2)).astype(np.float32)
    zyx.manual_seed(0)
    # Muon is for matrices only.
    model = nn.Linear(4, 2, bias=name != "Muon")
    optimizer = make(model.parameters(), lr=0.02)
    losses = []
    for _ in range(25):
        loss = model(x).mse_loss(y)
        optimizer.step(loss)
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses
    optimizer.lr = 0.5
    assert optimizer.learning_rate == 0.5
    state = optimizer.state_dict()
    other = make(model.parameters(), lr=0.02)
    other.load_state_dict(state)
    assert {k: v.tolist() for k, v in other.state_dict().items()} == {k: v.tolist() for k, v in state.items()}


def test_steps_by_gradients():
    w = nn.Parameter([3.0, 4.0])
    optimizer = zyx.optim.SGD([w], lr=1.0)
    loss = (w * w).sum() / 2
    gradients = optimizer.gradients(loss)
    clipped, norm = zyx.optim.clip_grad_norm(gradients, 1.0)
    assert norm.item() == 5
    optimizer.step(clipped)
    np.testing.assert_allclose(w.numpy(), [2.4, 3.2], rtol=1e-5)
    for wrong in [lambda: optimizer.step([]), lambda: optimizer.step([zyx.ones(3)]), lambda: optimizer.step(w * 2),
                  lambda: zyx.optim.SGD([w], lr=-1.0)]:  # fmt: skip
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(TypeError):
        zyx.optim.SGD([zyx.ones(2)], lr=0.1)


def test_parameters_are_tensors():
    w = nn.Parameter(np.array([1.0, 2.0], np.float32))
    assert isinstance(w, zyx.Tensor) and (w + 1).tolist() == [2, 3] and w.requires_grad
    assert not isinstance(w + 1, nn.Parameter) and w.tensor().tolist() == [1, 2]
    (g,) = (w * w).sum().gradient(w)
    assert g.tolist() == [2, 4]
    w.data = w.data * 10
    assert w.tolist() == [10, 20] and not nn.Parameter([1.0], requires_grad=False).requires_grad
