"""Layers and optimizers have PyTorch's parameters, defaults, attributes, printed forms and state: see `pytorch_layers.py`."""

import copy
import json
import pickle
import re
import warnings

import numpy as np
import pytest
import zyx
from pytorch_layers import CALLS, FILE, OPTIMIZERS, attributes, plain, shown, state
from zyx import nn, optim

RECORDED = json.loads(FILE.read_text())
NAMES = {name: getattr(nn, name) for name in dir(nn)}
# PyTorch declares these as `*args, **kwargs`; its documentation has their parameters.
ANY = "*args, **kwargs"


def bare(text):
    """Parameters without the places of functions in memory."""
    return re.sub(r"<function (\w+) at 0x\w+>", r"\1", text)


def made(line):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(line, dict(NAMES))


@pytest.mark.parametrize("name", RECORDED["signatures"])
def test_parameters_and_defaults(name):
    module, cls = name.split(".")
    want = RECORDED["signatures"][name]
    if want != ANY:
        assert bare(shown(getattr(getattr(zyx, module), cls))) == bare(want)


def test_parameters_of_the_installed_pytorch():
    torch = pytest.importorskip("torch")
    if torch.__version__ != RECORDED["version"]:
        pytest.skip(f"the file is of PyTorch {RECORDED['version']}")
    for name, want in RECORDED["signatures"].items():
        module, cls = name.split(".")
        assert bare(shown(getattr(getattr(torch, module), cls))) == bare(want), name


@pytest.mark.parametrize("line", RECORDED["layers"])
def test_attributes_forms_and_state(line):
    want, layer = RECORDED["layers"][line], made(line)
    found = attributes(layer)
    # Parameters that a layer is made without are attributes here.
    assert {key: value for key, value in found.items() if key in want["attributes"] or value is not None} == want["attributes"]
    assert repr(layer) == want["repr"]
    assert state(layer) == want["state"]


def test_every_layer_of_pytorch_is_compared():
    lines = CALLS.split("\n")[1:-1]
    assert set(lines) == set(RECORDED["layers"]) and len(lines) > 180
    from zyx.nn._layers import TABLE

    named = {line.partition("(")[0] for line in lines}
    # Of these three sizes one is compared.
    assert not set(TABLE) - named - {"FractionalMaxPool3d", "LinearCrossEntropyLoss"}, sorted(set(TABLE) - named)


@pytest.mark.parametrize("name", OPTIMIZERS.split())
def test_groups_of_optimizers(name):
    want = RECORDED["optimizers"][name]
    optimizer = getattr(optim, name)([nn.Parameter(zyx.ones(2, 2))])
    (group,) = optimizer.param_groups
    found = {key: plain(value) for key, value in group.items() if key != "params"}
    # AdamW of PyTorch is an Adam inside.
    expected = {key: value for key, value in want["group"].items() if key != "decoupled_weight_decay" or name != "AdamW"}
    assert found == expected
    assert sorted(optimizer.defaults) == sorted(key for key in want["defaults"] if key in expected)
    assert repr(optimizer).split(" (")[0] == want["repr"].split(" (")[0]
    assert optimizer.load_state_dict(optimizer.state_dict()) is None


@pytest.mark.parametrize("line", [line for line in RECORDED["layers"] if "distance_function" not in line])
def test_layers_are_copied_and_pickled(line):
    layer = made(line)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert repr(other) == repr(layer) and attributes(other) == attributes(layer)
        if state(layer) is not None:
            assert [n for n, _ in other.named_parameters()] == [n for n, _ in layer.named_parameters()]
            assert all((a.numpy() == b.numpy()).all() for a, b in zip(other.state_dict().values(), layer.state_dict().values()))


def test_an_attribute_that_is_assigned_counts():
    x = zyx.randn(4, 3, 6, 6)
    conv = nn.Conv2d(3, 2, 3)
    conv.stride = (2, 2)
    assert conv(x).shape == (4, 2, 2, 2)
    norm = nn.BatchNorm2d(3)
    norm.eps = 100.0
    assert abs(norm(x).std().item()) < 0.2
    norm.momentum = 1.0
    norm(x)
    np.testing.assert_allclose(norm.running_mean.numpy(), x.mean((0, 2, 3)).numpy(), rtol=1e-5, atol=1e-6)
    drop = nn.Dropout(0.0)
    drop.p = 1.0
    assert drop(x).abs().sum().item() == 0
    act = nn.LeakyReLU(0.1)
    act.negative_slope = 0.5
    assert act(zyx.tensor([-2.0])).item() == -1
    rnn = nn.LSTM(3, 4)
    rnn.batch_first = True
    assert rnn(zyx.ones(2, 5, 3))[1][0].shape == (1, 2, 4)


def test_weights_may_be_any_tensors():
    layer, x = nn.Linear(3, 2), zyx.randn(4, 3)
    del vars(layer)["weight"]
    layer.weight = zyx.ones(2, 3) * 2
    np.testing.assert_allclose(layer(x).numpy(), (x.sum(1, keepdim=True) * 2 + layer.bias).expand(4, 2).numpy(), rtol=1e-5)
    layer.weight = nn.Parameter(zyx.ones(5, 3))
    layer.bias = None
    assert layer(x).shape == (4, 5) and [n for n, _ in layer.named_parameters()] == ["weight"]


@pytest.mark.parametrize("make", [lambda: nn.Linear(3, 2), lambda: nn.Conv2d(3, 2, 1), lambda: nn.LayerNorm(3), lambda: nn.LSTM(3, 2), lambda: nn.MultiheadAttention(3, 1), lambda: nn.Bilinear(3, 3, 2)])
def test_dtypes_that_differ_are_errors(make):
    layer = make()
    x = zyx.ones(1, 3, 3, 3, dtype="float64") if isinstance(layer, nn.Conv2d) else zyx.ones(2, 3, dtype="float64")
    given = (x, x) if isinstance(layer, nn.Bilinear) else (x, x, x) if isinstance(layer, nn.MultiheadAttention) else (x,)
    with pytest.raises(RuntimeError, match="dtype|scalar type"):
        layer(*given)
    with pytest.raises(TypeError):
        layer(*given)
    layer.double()
    layer(*given)


def test_wrong_options_are_errors():
    w = [nn.Parameter(zyx.ones(2))]
    for make, text in [
        (lambda: nn.Dropout(1.5), "between 0 and 1"), (lambda: nn.GroupNorm(3, 4), "divisible"), (lambda: nn.Conv2d(3, 4, 3, padding="full"), "same|valid|padding"),
        (lambda: nn.Embedding(3, 2, 5), "padding_idx"), (lambda: nn.MultiheadAttention(5, 2), "divide"), (lambda: nn.RNN(2, 3, nonlinearity="sine"), "nonlinearity"),
        (lambda: nn.MSELoss(reduction="most"), "reduction"), (lambda: nn.Hardtanh(1, 0), "max_val"), (lambda: optim.Adam([]), "empty parameter list"),
        (lambda: optim.SGD(w, lr=-1.0), "learning rate"), (lambda: optim.Adam(w, betas=(1.0, 0.9)), "beta parameter at index 0"), (lambda: optim.AdamW(w, eps=-1), "epsilon"),
        (lambda: optim.SGD(w, nesterov=True), "Nesterov"), (lambda: optim.RMSprop(w, weight_decay=-1), "weight_decay"), (lambda: optim.Adagrad(iter(())), "empty"),
        (lambda: optim.SGD([{"params": w}, {"params": w}]), "more than one parameter group"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=text):
            make()
    for make, text in [
        (lambda: nn.Linear(2), "missing 1 required positional argument: 'out_features'"), (lambda: nn.ReLU(inplac=True), "unexpected keyword argument 'inplac'"),
        (lambda: optim.Adam([1.0]), "can only optimize Tensors"), (lambda: optim.SGD(nn.Linear(2, 2)), "list of parameters"), (lambda: optim.SGD(w, momentun=1), "momentun"),
        (lambda: nn.TransformerEncoder(2, 3), "encoder_layer"), (lambda: nn.functional.mse_loss(zyx.ones(1), zyx.ones(1), "sum"), "reduction='sum'"),
    ]:  # fmt: skip
        with pytest.raises(TypeError, match=text):
            make()
    with pytest.raises(NotImplementedError, match="ns_coefficients"):
        optim.Muon([nn.Parameter(zyx.ones(2, 2))], ns_coefficients=(1.0, 2.0, 3.0))


def test_optimizers_of_names_and_hooks():
    model, calls = nn.Linear(2, 2), []
    optimizer = optim.Adam(model.named_parameters(), lr=zyx.tensor(0.5))
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"] and optimizer.lr == 0.5
    handle = optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append("before"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append("after"))
    model(zyx.ones(1, 2)).sum().backward()
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert calls == ["before", "after", "after"]
    optimizer.register_state_dict_post_hook(lambda o, state: state | {"more": 1})
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("told"))
    optimizer.register_load_state_dict_pre_hook(lambda o, state: {k: v for k, v in state.items() if k != "more"})
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append("loaded"))
    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.load_state_dict(state)
    assert calls[3:] == ["told", "loaded"]
    assert set(optimizer.state[model.weight]) == {"exp_avg", "exp_avg_sq", "step"}


def test_an_optimizer_written_by_a_user():
    class Descent(optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        state = self.state[p]
                        state["n"] = state.get("n", 0) + 1
                        p.data.add_(p.grad, alpha=-group["lr"])

    w = nn.Parameter(zyx.tensor([1.0]))
    optimizer = Descent([w])
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (w * 2).sum().backward()
        optimizer.step()
        schedule.step()
    assert w.item() == pytest.approx(1 - 0.2 - 0.1) and optimizer.lr == pytest.approx(0.025)
    saved = optimizer.state_dict()
    assert saved["state"] == {0: {"n": 2}} and saved["param_groups"][0]["params"] == [0]
    other = Descent([nn.Parameter(zyx.tensor([5.0]))])
    other.load_state_dict(saved)
    assert other.param_groups[0]["lr"] == pytest.approx(0.025)


def test_averaged_gradient_descent_and_adafactor():
    for make in (lambda p: optim.ASGD(p, lr=0.1, lambd=0.0, t0=0), lambda p: optim.Adafactor(p, lr=0.3)):
        w = nn.Parameter(zyx.tensor([[4.0, -3.0]]))
        optimizer = make([w])
        for _ in range(40):
            optimizer.step((w * w).sum())
        assert w.abs().max().item() < 0.6
        other = copy.deepcopy(optimizer)
        assert str(other) == str(optimizer)
    with pytest.raises(RuntimeError, match="dense"):
        optim.SparseAdam([w]).step()
    # The mean of the path from the second step on: of w(t) = w(0) (1 - lr)^t.
    w = nn.Parameter(zyx.tensor([1.0]))
    optimizer = optim.ASGD([w], lr=0.5, lambd=0.0, alpha=0.0, t0=0)
    for _ in range(4):
        optimizer.step((w * w).sum() * 0.5)
    assert optimizer.state[w]["ax"].item() == pytest.approx((0.25 + 0.125 + 0.0625) / 3)
