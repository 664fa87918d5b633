"""Type checkers find mistakes, and none in a right program."""

import os
import pathlib
import subprocess
import sys

import pytest
import zyx

RIGHT = """
import zyx
import zyx.nn.functional as F
from zyx import nn, optim

class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 3, True, None, None)
        self.act = nn.ReLU(True)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: zyx.Tensor) -> zyx.Tensor:
        return self.norm(self.act(self.fc(x)))

net = Net()
opt = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
y = net(zyx.ones(4, 2))
with zyx.no_grad():
    print(net.fc.weight.shape, y.is_cuda, net.fc.in_features)
loss: zyx.Tensor = F.mse_loss(y, zyx.zeros_like(y), reduction="sum")
loss.backward()
opt.step()
g = zyx.Generator().manual_seed(3)
print(zyx.rand(3, generator=g), F.glu(zyx.ones(2, 4), dim=1))
"""
WRONG = {
    "F.relu(x, bogus=1)": "bogus",
    "F.no_such_function(x)": "no_such_function",
    "nn.Linear(2, 3, True, None, None, None, None, None)": "Linear|arguments|positional|overload",
}


def mypy(program, tmp_path):
    pytest.importorskip("mypy")
    file = tmp_path / "program.py"
    file.write_text(program)
    env = os.environ | {"MYPYPATH": str(pathlib.Path(zyx.__file__).resolve().parents[1])}
    found = subprocess.run([sys.executable, "-m", "mypy", "--follow-imports=silent", str(file)], capture_output=True, text=True, timeout=300, cwd=tmp_path, env=env)
    return [line for line in found.stdout.splitlines() if "program.py" in line and "error" in line]


def test_a_right_program(tmp_path):
    assert mypy(RIGHT, tmp_path) == []
    exec(compile(RIGHT, "right", "exec"), {"__name__": "right"})


def test_mistakes(tmp_path):
    import re

    program = "import zyx\nimport zyx.nn.functional as F\nfrom zyx import nn\nx = zyx.ones(1)\n" + "\n".join(WRONG)
    found = mypy(program, tmp_path)
    for line, (call, text) in enumerate(WRONG.items(), 5):
        told = [error for error in found if f"program.py:{line}:" in error]
        assert told and re.search(text, told[0]), (call, found)
