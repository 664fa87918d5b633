"""Type checkers find mistakes, and none in a right program: mypy, and pyright in its strict mode."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import zyx

PACKAGE = pathlib.Path(zyx.__file__).resolve().parents[1]
RIGHT = '''
from typing import Any

import zyx
import zyx.nn.functional as F
from zyx import lang, nn, optim
from zyx.utils.data import DataLoader, Dataset, TensorDataset


class Squares(Dataset[zyx.Tensor]):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> zyx.Tensor:
        return zyx.tensor([float(index), index**2.0])


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x: zyx.Tensor) -> zyx.Tensor:
        found: zyx.Tensor = self.body(x)
        return found


class Cube(zyx.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: zyx.Tensor) -> zyx.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, dy: zyx.Tensor) -> zyx.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * dy


def double(gradient: zyx.Tensor) -> zyx.Tensor:
    return gradient * 2


net = Net(8)
optimizer = optim.AdamW(net.parameters(), lr=1e-2, weight_decay=0.1)
schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
scaler = zyx.amp.GradScaler("cpu", enabled=False)
for batch in DataLoader(Squares(), batch_size=4, shuffle=True):
    x, y = batch[:, :1], batch[:, 1:]
    with zyx.autocast("cpu", dtype=zyx.bfloat16):
        loss = F.mse_loss(net(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    print(loss.item())

x = zyx.randn(2, 3, requires_grad=True)
handle = x.register_hook(double)
y = x.sum(dim=1) + x.mean(dim=-1, keepdim=True).squeeze() * 2 - 1 / x.norm(dim=1)
z = x.view(-1).softmax(dim=0).log().exp().clamp(min=0, max=1)
a = zyx.cat([x, x], dim=0).unsqueeze(dim=1).transpose(0, 1).flatten(start_dim=0)
c = zyx.matmul(x, x.t()) + zyx.einsum("ij,kj->ik", x, x)
d = zyx.where(x > 0, x, zyx.zeros_like(x)).max(dim=1)
h = x[0, :, None].permute(1, 0).contiguous().to("cpu").float().double()
n: int = x.size(0) + x.shape[1] + x.shape.numel() + len(x)
m = zyx.arange(10).reshape(2, 5).float().mean().item()
loss = F.cross_entropy(x, zyx.tensor([0, 1]), reduction="sum") + Cube.apply(x).sum() + zyx.sum(x, dim=1).sum()
loss.backward()
handle.remove()
with zyx.no_grad():
    if x.grad is not None:
        x -= 0.1 * x.grad
    x.mul_(0.5).clamp_(min=0)
nn.init.xavier_uniform_(nn.Linear(2, 2).weight)
assert zyx.is_tensor(loss)
print(x.detach().cpu().numpy(), x.dtype, x.device, x.argmax(dim=-1).tolist(), (x == 0).all().item(), x.stride(), x.as_strided((2,), (1,)))
g = zyx.Generator().manual_seed(3)
print(zyx.rand(3, generator=g), F.glu(zyx.ones(2, 4), dim=1), zyx.finfo(zyx.float32).eps, zyx.linspace(0, 1, steps=3), zyx.get_default_dtype())
print(zyx.special.erf(x), zyx.linalg.norm(x), zyx.fft.rfft(x), zyx.func.grad(Cube.apply)(zyx.ones(())), len(TensorDataset(x)))
q, k = x.topk(1, dim=-1), x.sort(dim=1, descending=True)


@zyx.kernel
def swiglu(gate: lang.Val, up: lang.Val) -> lang.Val:
    return gate * gate.sigmoid() * up


@zyx.kernel
def softmax(k: lang.Lang) -> None:
    rows, cols = k.sizes("rows", "cols")
    tile = k.parameter("tile", [256, 128])
    x = k.input("x", [rows, cols])
    y = k.output("y", [rows, cols], x.dtype)

    @k.groups([rows], threads=tile)
    def _(g: lang.Group, row: lang.Val) -> None:
        m = g.reduce("max", cols, lambda i: x[row, i])
        s = g.reduce("add", (0, cols), lambda i: (x[row, i] - m).exp())

        @g.each(cols)
        def _(i: lang.Val) -> None:
            y[row, i] = ((x[row, i] - m).exp() / s).clamp(0, 1)


@softmax.gradient
def softmax_gradient(of: lang.KernelGradient) -> list[zyx.Tensor | None]:
    return [of.output * (of.cotangent - (of.cotangent * of.output).sum(dim=-1, keepdim=True))]


@zyx.kernel
def scan(k: lang.Lang) -> None:
    n = k.size("n")
    k.limit(n, 1 << 20)
    x, y = k.input("x", [n]), k.output("y", [n], "float32")
    count = k.output_filled("count", [1], "int32")
    sums: lang.LookBack = k.look_back("sums", "add", "float32", n.div_ceil(256))
    queue: lang.Queue = k.queue("queue", n)

    @k.groups([n.div_ceil(256)])
    def _(g: lang.Group, group: lang.Val) -> None:
        tile = sums.ticket(g)

        def total(tile: lang.Val) -> lang.Val:
            return g.reduce("add", 256, lambda i: x.at_or(tile * 256 + i, 0))

        def emit(i: lang.Val, place: lang.Val) -> None:
            y[place] = x[i]

        def load(step: lang.Val, i: lang.Val, j: lang.Val) -> tuple[lang.Val, lang.Val]:
            return x[step + i], x[step + j]

        def compute(step: lang.Val, a: lang.Array, b: lang.Array) -> None:
            y.set_if(a[0, 0] > 0, step, b[0, 0])

        before = sums.prefix(g, tile, total(tile), total)
        g.rank(n, 4, lambda i: x[i].cast("int32"), emit)
        g.append(count, n, lambda i: x[i] > before, emit)
        g.exchange(256, "float32", lambda i: x[i], lambda i: 255 - i, emit)
        g.pipeline(2, n, (16, 16), load, compute)
        k.when(queue.push(queue.pop(g)))(lambda: None)
        k.while_(lambda: x[tile] > 0)(lambda: k.break_if(before > 1))
        g.matrix([16, 16], "float32").add_product_after(16, x.dtype, lambda: g.matrix([16, 16], "float32"), lambda s, j: x[s + j])

        @queue.drain(g)
        def _(item: lang.Val) -> None:
            y[item] = x[item]


again: zyx.Kernel = zyx.Kernel.from_text(softmax.to_text(zyx.float32))
softmax.check(x)
try:
    print(softmax.with_parameter(tile=128)(x), swiglu(x, x), softmax.to_text(zyx.float32))
except zyx.KernelError as error:
    print(error.filename, error.lineno)
row: zyx.Tensor = x.split(2, dim=0)[0].chunk(2, dim=1)[0].expand(2, -1).repeat(1, 2)
'''
# Lines that both checkers refuse, and a pattern of their messages.
WRONG = {
    "F.relu(x, bogus=1)": "bogus",
    "F.no_such_function(x)": "no_such_function",
    "nn.Linear(2, 3, True, None, None, None, None, None)": "Linear|argument|positional|overload",
    "nn.NoSuchLayer(3)": "NoSuchLayer",
    "zyx.no_such_function(x)": "no_such_function",
    "zyx.exp(x, bogus=1)": "bogus|overload|argument",
    "zyx.sum(x, dims=1)": "dims|overload|argument",
    "x.no_such_method()": "no_such_method",
    "x.sum(dims=1)": "dims|overload|argument",
    "x.reshape(2, 3).unsqueeze()": "unsqueeze|overload|argument",
    "x.shape.count_all()": "count_all",
    "optim.NoSuchOptimizer(x)": "NoSuchOptimizer",
    "optim.lr_scheduler.StepLR()": "optimizer|argument|missing",
    "nn.init.no_such_init(x)": "no_such_init",
    "zyx.autocast('cpu', half=True)": "half",
    "zyx.amp.GradScaler(scale=2.0)": "scale",
    "zyx.linalg.no_such_function(x)": "no_such_function",
    "x.register_hook()": "hook|argument|missing",
    "zyx.kernel(3)": "overload|argument|callable",
    "zyx.kernel(abs).no_such_method()": "no_such_method",
    "zyx.lang.NoSuchClass()": "NoSuchClass",
}


def mypy(file, strict):
    """The lines of a program that mypy refuses, and its messages."""
    pytest.importorskip("mypy")
    # mypy finds installed packages itself, and refuses their folder.
    env = os.environ | ({} if PACKAGE.name == "site-packages" else {"MYPYPATH": str(PACKAGE)})
    found = subprocess.run([sys.executable, "-m", "mypy", "--follow-imports=silent", str(file)], capture_output=True, text=True, timeout=300, cwd=file.parent, env=env)
    assert found.returncode < 2, found.stdout + found.stderr
    return [(int(line), text) for line, text in re.findall(r"^program\.py:(\d+): error: (.*)", found.stdout, re.M)]


def pyright(file, strict):
    """The lines of a program that pyright refuses, and its messages."""
    pytest.importorskip("pyright")
    options = {"extraPaths": [str(PACKAGE)], "include": [file.name], "typeCheckingMode": "strict" if strict else "standard",
               "reportPossiblyUnbound": False, "reportPossiblyUnboundVariable": False}
    (file.parent / "pyrightconfig.json").write_text(json.dumps(options))
    found = subprocess.run([sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable], capture_output=True, text=True, timeout=300, cwd=file.parent)
    assert found.returncode < 2, found.stdout + found.stderr
    errors = [item for item in json.loads(found.stdout)["generalDiagnostics"] if item["severity"] == "error"]
    return [(item["range"]["start"]["line"] + 1, item["message"]) for item in errors]


def check(checker, program, tmp_path, strict):
    file = tmp_path / "program.py"
    file.write_text(program)
    return checker(file, strict)


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_right_program(checker, tmp_path):
    assert check(checker, RIGHT, tmp_path, True) == []


def test_the_right_program_runs(capsys):
    exec(compile(RIGHT, "right", "exec"), {"__name__": "right"})


@pytest.mark.parametrize("checker", [mypy, pyright])
@pytest.mark.parametrize("name", ["digits", "gpt", "resnet"])
def test_examples(checker, name, tmp_path):
    program = (pathlib.Path(__file__).resolve().parents[1] / "examples" / f"{name}.py").read_text()
    assert check(checker, program, tmp_path, False) == []


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_mistakes(checker, tmp_path):
    program = "import zyx\nimport zyx.nn.functional as F\nfrom zyx import nn, optim\nx = zyx.ones(1)\n" + "\n".join(WRONG)
    found = check(checker, program, tmp_path, False)
    for line, (call, text) in enumerate(WRONG.items(), 5):
        told = [error for at, error in found if at == line]
        assert told and re.search(text, told[0], re.I), (call, found)
