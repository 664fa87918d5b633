"""Programs as users of PyTorch write them give what PyTorch gives: see `pytorch_ways.py`; and what zyx says where it
cannot, copies of everything, files, and the ported scripts.
"""

import copy
import difflib
import importlib.util
import io
import json
import pathlib
import pickle
import sys

import numpy as np
import pytest
import zyx
from pytorch_ways import FILE, PROGRAMS, plain
from zyx import nn, optim

EXPECTED = json.loads(FILE.read_text())
EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


def compare(got, want, path):
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), f"{path}: {got} instead of {want}"
        for i, (a, b) in enumerate(zip(got, want)):
            compare(a, b, f"{path}[{i}]")
    elif isinstance(want, float):
        assert got == pytest.approx(want, rel=2e-4, abs=2e-5, nan_ok=True), path
    else:
        assert got == want, path


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program):
    compare(plain(program(zyx)), EXPECTED[program.__name__], program.__name__)


def test_backward_says_what_is_wrong():
    x = zyx.tensor([1.0, 2.0], requires_grad=True)
    for wrong, text in [
        (lambda: zyx.ones(2).sum().backward(), "nothing that requires gradients"),
        (lambda: (x.detach() * 2).sum().backward(), "nothing that requires gradients"),
        (lambda: (x * 2).backward(), r"not one number"),
        (lambda: (x * 2).backward(zyx.ones(3)), "cotangent"),
        (lambda: zyx.autograd.grad(x * 2, x), "not one number"),
        (lambda: zyx.autograd.grad(x.sum(), [x, zyx.ones(1)]), "no output depends on input 1"),
        (lambda: setattr(x, "grad", zyx.ones(3)), "gradient of"),
        (lambda: setattr(x * 2, "requires_grad", False), "cannot be changed"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            wrong()
    with pytest.raises(TypeError, match="only a leaf"):
        (x * 2).grad = x
    with pytest.raises(TypeError, match="only floats"):
        zyx.tensor([1]).requires_grad_()
    with zyx.no_grad():
        loss = x.sum()
    with pytest.raises(RuntimeError, match="no_grad"):
        loss.backward()
    assert x.grad is None and (x * 2).grad is None


def test_what_is_missing_is_explained():
    x, layer = zyx.ones(2), nn.Linear(2, 2)
    for get, text in [
        (lambda: x.data_ptr, "__dlpack__"), (lambda: x.outer_, r"x\.copy_\(x\.outer\(\.\.\)\)"), (lambda: x.grad_fn, "graph"),
        (lambda: x.nonsense, "no attribute 'nonsense'$"), (lambda: zyx.nonsense, "'nonsense'$"),
        (lambda: nn.functional.outer_, "outer"), (lambda: nn.Sequential(layer).nonsense, "'nonsense'"),
        (lambda: zyx.onnx.export, "Rust"),
        (lambda: x.max(axis=0).values, r"x\.max\(dim\)"), (lambda: nn.nonsense, "'zyx.nn' has no attribute 'nonsense'$"),
    ]:  # fmt: skip
        with pytest.raises(AttributeError, match=text):
            get()
    with pytest.raises(KeyError, match="'lr', 'momentum'|lr, momentum"):
        optim.SGD(layer.parameters(), lr=0.1).param_groups[0]["betas"] = (0, 1)


def test_sizes_and_dtypes():
    x = zyx.ones(2, 3)
    assert x.size == 6 and x.size() == (2, 3) and x.size(-1) == 3 and x.size(dim=0) == 2 and np.zeros(x.size).shape == (6,)
    assert json.dumps(x.size) == "6" and pickle.loads(pickle.dumps(x.size)) == 6
    names = {"long": "int64", "int": "int32", "short": "int16", "float": "float32", "double": "float64", "half": "float16", "bool": "bool"}
    for name, dtype in names.items():
        assert zyx.zeros(1, dtype=getattr(zyx, name)).dtype.name == dtype and getattr(zyx, name)(x).dtype.name == dtype
    assert x.byte().dtype == zyx.uint8 and x.char().dtype == zyx.int8 and x.short().dtype == zyx.int16
    assert zyx.device("cpu").type == "cpu" and zyx.device("cpu", 0).spec == zyx.device("cpu:0").spec
    assert zyx.randint(5, (3,)).max().item() < 5 and zyx.randint(2, 4, (9,)).min().item() >= 2
    assert zyx.randint(low=1, high=2, size=(2,), generator=zyx.Rng(3)).tolist() == [1, 1]
    assert zyx.randint(high=1, size=(2,)).tolist() == zyx.randint(1, size=(2,)).tolist() == [0, 0]
    y = zyx.tensor([2.0, 3.0, 1.0])
    for found, values, indices in [(y.sort(), [1, 2, 3], [2, 0, 1]), (zyx.topk(y, k=1), [3], [1]), (y.max(0), 3, 1), (zyx.min(y, dim=-1), 1, 2), (y.median(0), 2, 0),
                                   (y.cummax(dim=0), [2, 3, 3], [0, 1, 1])]:
        assert found.values.tolist() == values and found.indices.tolist() == indices and found == tuple(found)
        assert pickle.loads(pickle.dumps(found)).values.tolist() == values
        for wrong in [lambda: y - found, lambda: zyx.tensor(found), lambda: zyx.maximum(y, found)]:
            with pytest.raises(TypeError, match="several results.*values|Selected"):
                wrong()
    values, indices = zyx.max(zyx.tensor([[1.0, 3.0], [5.0, 4.0]]), 1)
    assert values.tolist() == [3, 5] and indices.tolist() == [1, 0] and y.max(axis=0).item() == y.amax(0).item() == 3
    assert zyx.multinomial(zyx.tensor([[0.0, 1.0]]), num_samples=1).tolist() == [[1]]
    a = zyx.tensor(np.random.default_rng(0).normal(size=(2, 3, 6)).astype("float32"))
    b = zyx.tensor(np.random.default_rng(1).normal(size=(2, 3)).astype("float32"))
    np.testing.assert_allclose(zyx.tensorsolve(a, b).numpy(), np.linalg.tensorsolve(a.numpy(), b.numpy()), rtol=2e-3)


def test_lazy_steps_are_one_plan():
    """Loss, gradients, norm and update are one submission; a step replays the plan of the step before."""
    zyx.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Linear(16, 3))
    groups = [{"params": [p for p in model.parameters() if p.dim() > 1]}, {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer, device = optim.AdamW(groups, lr=1e-2), zyx.device()
    x, y = zyx.randn(32, 8), zyx.randint(3, (32,))
    zyx.realize_all([x, y])
    counts = []
    for step in range(5):
        before = device.stats()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        assert device.stats()["launches"] == before["launches"], "backward computes nothing"
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = 1e-2 / (1 + step)
        optimizer.step()
        after = device.stats()
        counts.append({name: after[name] - before[name] for name in after})
        assert model[1].running_mean.is_realized() and loss.is_realized() and norm.is_realized()
        loss.item(), norm.item()
        assert device.stats()["launches"] == after["launches"], "they were computed with the step"
    assert all(count["compiles"] == 0 for count in counts[2:]), counts
    assert len({count["launches"] for count in counts[2:]}) == 1 and counts[-1]["plan_misses"] == 0, counts


def test_state_is_computed_with_each_step():
    norm, w = nn.BatchNorm1d(2), nn.Parameter(zyx.ones(2))
    optimizer = optim.SGD([w], lr=0.1)
    for _ in range(3):
        loss = (norm(zyx.randn(8, 2)) * w).sum()
        optimizer.step(loss)
        assert norm.running_var.is_realized()
    (norm(zyx.randn(8, 2)) * w).sum().backward()
    optimizer.step()
    assert norm.running_var.is_realized() and norm.num_batches_tracked.item() == 4


def test_gradients_outlive_a_step_and_old_values():
    w = nn.Parameter(zyx.tensor([2.0]))
    optimizer, loss = optim.SGD([w], lr=0.5), (w * w).sum()
    before = w.clone()
    loss.backward()
    optimizer.step()
    assert w.item() == 0 and w.grad.item() == 4 and before.item() == 2
    # The gradient of a loss is the one at the value it was computed with.
    (before * w).sum().backward()
    assert w.grad.item() == 4 + 2
    leaf, place, number = zyx.tensor([1.0], requires_grad=True), w, zyx.tensor([1.0])
    with zyx.no_grad():
        w -= 0.5 * w.grad
        w *= 2
        leaf += 1
        number += 1
    assert w is place and w.item() == -6 and leaf.tolist() == [2] and leaf.requires_grad and number.tolist() == [2]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        w += 1
    w = w + 1
    assert not isinstance(w, nn.Parameter) and w.requires_grad and place.item() == -6


@zyx.jit
def traced(x):
    return x + 1


def test_everything_is_copied():
    zyx.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5, bias=False))
    model[0].weight = model[1].weight
    model[1].weight.requires_grad_(True)
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    for step in range(2):
        model(zyx.arange(5)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    for again in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        other, its = again((model, optimizer))
        assert other[0].weight is other[1].weight and its.parameters()[0] is other[0].weight and other[0].weight.requires_grad
        values = []
        for net, steps in ((other, its), (copy.deepcopy((model, optimizer)))):
            net(zyx.arange(5)).square().mean().backward()
            steps.step()
            assert net[0].weight.tolist() == net[1].weight.tolist() != model[0].weight.tolist()
            values.append(net[0].weight.tolist())
        assert values[0] == values[1]
        leaf = zyx.tensor([1.5], requires_grad=True)
        for x, want in [(leaf, True), (leaf.detach(), False), (nn.Parameter(leaf, requires_grad=False), False), (nn.Parameter(leaf), True)]:
            y = again(x)
            assert type(y) is type(x) and y.requires_grad == want and y.tolist() == [1.5] and y.is_leaf
        assert again(leaf) is not leaf
        norm = again(nn.BatchNorm1d(2))
        assert [n for n, _ in norm.named_buffers()] == ["running_mean", "running_var", "num_batches_tracked"]
        rng = zyx.Rng(7)
        rng.next_u64()
        assert again(rng).next_u64() == copy.copy(rng).next_u64() == rng.next_u64()
        groups = again(optim.SGD([{"params": [leaf], "lr": 0.3}], lr=0.1, maximize=True))
        assert groups.param_groups[0]["lr"] == 0.3 and groups.param_groups[0]["maximize"]
        masters = optim.MasterWeights([nn.Parameter(zyx.ones(2, dtype="float16"))], optim.SGD)
        assert again(masters).parameters()[0].dtype == zyx.float16
        assert all(again(f) is f for f in (nn.functional.relu, zyx.exp, zyx.Tensor.permute, zyx.zeros, nn.functional.gelu))
        assert again(traced) is traced
        schedule = again(optim.lr_scheduler.StepLR(optim.SGD([leaf], lr=0.1), 2))
        schedule.step()
        schedule.step()
        assert schedule.optimizer.lr == pytest.approx(0.01)


def test_weights_are_tied_by_assignment():
    a, b, c = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
    a.weight = b.weight
    c.weight = a.weight
    assert a.weight is b.weight is c.weight and len(nn.ModuleList([a, b, c]).parameters()) == 4
    a.weight.set(zyx.ones(2, 2))
    assert c(zyx.ones(1, 2)).tolist() == (c.bias + 2).unsqueeze(0).tolist()
    (a(zyx.ones(1, 2)) + c(zyx.ones(1, 2))).sum().backward()
    assert b.weight.grad.tolist() == [[2, 2], [2, 2]]
    a.weight = nn.Parameter(zyx.zeros(2, 2))
    assert c.weight is b.weight and a(zyx.ones(1, 2)).tolist() == a.bias.unsqueeze(0).tolist()
    # The others stay tied.
    b.weight = nn.Parameter(zyx.zeros(2, 2))
    assert c.weight is not b.weight and c.weight.sum().item() == 4


class Config:
    pass


def test_files(tmp_path):
    model = nn.Linear(2, 3)
    optimizer = optim.AdamW(model.parameters(), lr=0.25)
    optimizer.step(model(zyx.ones(1, 2)).sum())
    leaf = zyx.tensor([1.0], requires_grad=True)
    checkpoint = {
        "model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 7, "best": float("inf"), "name": "é", 3: [True, None, (1, 2.5)],
        "leaf": leaf, "parameter": model.bias, "dtype": zyx.float16, "rng": zyx.Rng(3), "array": np.arange(3), "number": np.float64(0.5),
        "set": {1, 2}, "model.weight": zyx.ones(1),
    }  # fmt: skip
    stream = io.BytesIO()
    zyx.save(checkpoint, stream)
    zyx.save(checkpoint, tmp_path / "all.pt")
    for file in (tmp_path / "all.pt", str(tmp_path / "all.pt"), io.BytesIO(stream.getvalue())):
        found = zyx.load(file, map_location="cpu")
        assert list(found) == list(checkpoint) and found["step"] == 7 and found["best"] == float("inf") and found[3] == [True, None, (1, 2.5)]
        assert found["leaf"].requires_grad and isinstance(found["parameter"], nn.Parameter) and not found["array"].requires_grad
        assert found["dtype"] == zyx.float16 and found["rng"].next_u64() == zyx.Rng(3).next_u64() and found["set"] == {1, 2}
        assert found["number"] == 0.5 and found["array"].tolist() == [0, 1, 2] and found["model.weight"].tolist() == [1]
        other, again = nn.Linear(2, 3), None
        other.load_state_dict(found["model"])
        again = optim.AdamW(other.parameters(), lr=0.1)
        again.load_state_dict(found["optimizer"])
        assert other.weight.tolist() == model.weight.tolist() and again.lr == 0.25
        assert {k: v.tolist() for k, v in again.state_dict().items()} == {k: v.tolist() for k, v in optimizer.state_dict().items()}
    # A state dict is what other readers of safetensors find.
    zyx.save(model.state_dict(), tmp_path / "model.safetensors")
    assert sorted(zyx.load_safetensors(tmp_path / "model.safetensors")) == ["bias", "weight"]
    assert zyx.load(tmp_path / "model.safetensors")["bias"].tolist() == model.bias.tolist()
    for wrong, text in [({"a": lambda: 1}, "a is a function"), ([model, lambda: 1], r"state_dict\(\)"), ({"f": (i for i in "a")}, "generator")]:
        with pytest.raises(TypeError, match=text):
            zyx.save(wrong, tmp_path / "wrong.pt")
    assert not (tmp_path / "wrong.pt").exists()
    # Objects are pickled, and loaded by those who trust the file.
    zyx.save({"a": Config(), "model": [model]}, tmp_path / "objects.pt")
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False"):
        zyx.load(tmp_path / "objects.pt")
    assert zyx.load(tmp_path / "objects.pt", weights_only=False)["model"][0].bias.tolist() == model.bias.tolist()
    pytorch = pathlib.Path(__file__).resolve().parents[2] / "zyx-io" / "tests" / "data" / "model.pt"
    assert sorted(zyx.load(pytorch)) == sorted(zyx.load_pytorch(pytorch))


@pytest.mark.parametrize("text", [b"{", b'{"tensor": ["none", true]}', b'{"call": ["os.system", "true"]}', b'{"dict": [1]}', b'{"a": 1, "b": 2}',
                                  b"[" * 100000 + b"]" * 100000, b'{"rng": [1]}', b'{"dtype": "object"}', b"\xff"])  # fmt: skip
def test_damaged_structures_are_refused(text):
    file = zyx.safetensors_to_bytes({"__structure__": zyx.Tensor.from_bytes(text, "uint8", (len(text),))})
    with pytest.raises(ValueError, match="damaged"):
        zyx.load(io.BytesIO(file))


SCRIPTS = {"gpt": 5, "resnet": 5}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_differ_in_few_lines(name):
    theirs, ours = ((EXAMPLES / f"{name}{kind}.py").read_text().splitlines() for kind in ("_pytorch", ""))
    changed = [line for line in difflib.unified_diff(theirs, ours, n=0, lineterm="") if line[0] == "+" and not line.startswith("+++")]
    assert 0 < len(changed) <= SCRIPTS[name] and len(theirs) == len(ours), changed
    assert not any("torch" in line.split("#")[0] for line in ours if line.startswith(("import", "from")) and " zyx" not in line)


def script(name):
    spec = importlib.util.spec_from_file_location(f"ported_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_gpt(tmp_path, capsys):
    gpt, file = script("gpt"), str(tmp_path / "gpt.pt")
    losses = gpt.main(["--steps", "60", "--checkpoint", file, "--generate", "12", "--eval-interval", "30"])
    # 4.3 is the logarithm of the number of characters.
    assert losses[0] > 4 and np.mean(losses[-10:]) < 3.2, losses
    more = gpt.main(["--steps", "65", "--checkpoint", file, "--resume", "--generate", "0", "--eval-interval", "1000"])
    assert len(more) == 5 and np.mean(more) < 3.2
    plain = gpt.main(["--steps", "3", "--plain-attention", "--dropout", "0.1", "--accumulate", "2", "--layers", "1", "--generate", "0"])
    assert len(plain) == 3 and all(3 < loss < 5 for loss in plain)
    assert "norm of the last gradient" in capsys.readouterr().out


@pytest.mark.parametrize("name, options", [("gpt", ["--steps", "7", "--layers", "1", "--generate", "0", "--batch", "4"]), ("resnet", ["--epochs", "1", "--width", "4"])])
def test_scripts_replay_their_plans(name, options):
    module, device = script(name), zyx.device()
    counts, step = [], optim.Optimizer.step

    def counted(self, *given):
        before = device.stats()
        found = step(self, *given)
        after = device.stats()
        counts.append([after[what] - before[what] for what in ("compiles", "plan_misses", "plan_hits")])
        return found

    optim.Optimizer.step = counted
    try:
        module.main(options)
    finally:
        optim.Optimizer.step = step
    # The first step computes initial weights too; of slices at other places the third makes one plan for all.
    assert len(counts) >= 7 and all(count == [0, 0, 1] for count in counts[3:]), counts


def test_resnet(tmp_path, capsys):
    accuracy = script("resnet").main(["--epochs", "6", "--width", "8", "--save", str(tmp_path / "net.pt")])
    # PyTorch's version of the script: 0.92.
    assert accuracy > 0.85 and "epoch 6" in capsys.readouterr().out
