"""The parameters of PyTorch's functions, methods, layers and optimizers are taken by the same names: see
`pytorch_signatures.py`.
"""

import fnmatch
import inspect
import pathlib
import re

import zyx
from pytorch_signatures import FILE

GAPS = pathlib.Path(__file__).with_name("data") / "pytorch_gaps.txt"
# Parameters that no function of zyx has, and why.
NOWHERE = {
    "layout": "there are no sparse tensors",
    "pin_memory": "copies need no preparation",
    "names": "axes have no names",
    "self": "the tensor itself",
    "memory_format": "how a tensor is stored is no matter of its users",
}
MODULES = {
    "torch": zyx, "torch.Tensor": zyx.Tensor, "torch.nn.functional": zyx.nn.functional, "torch.nn.init": zyx.nn.init,
    "torch.nn.utils": zyx.nn.utils, "torch.linalg": zyx.linalg, "torch.special": zyx.special, "torch.fft": zyx.fft,
    "torch.autograd": zyx.autograd, "torch.nn": zyx.nn, "torch.optim": zyx.optim,
    "torch.optim.lr_scheduler": zyx.optim.lr_scheduler, "torch.utils.data": zyx.utils.data, "torch.nn.Module": zyx.nn.Module,
}  # fmt: skip


class Nothing:
    """An argument that fits nowhere."""


def ours(name):
    """What zyx has under a name of PyTorch."""
    module, _, last = name.rpartition(".")
    if module not in MODULES:
        return None
    found = inspect.getattr_static(MODULES[module], last, None) if inspect.isclass(MODULES[module]) else None
    return found if isinstance(found, property) else getattr(MODULES[module], last, None)


def takes(function, parameter):
    """Whether a function has a parameter: whatever it says to an argument that fits nowhere, not that it is unexpected."""
    try:
        shown = inspect.signature(function).parameters
        if parameter in shown or any(p.kind == p.VAR_KEYWORD for p in shown.values()) and not inspect.isclass(function):
            return True
    except (TypeError, ValueError):
        pass
    # With nothing before it, a tensor, parameters: one of them is what comes first.
    for first in ([], [zyx.ones(1)], [[zyx.nn.Parameter(zyx.ones(1))]]):
        try:
            function(*first, **{parameter: Nothing()})
        except Exception as error:
            if re.search(rf"unexpected keyword argument '{parameter}'|no option .*'{parameter}'|the options are ", str(error)):
                return False
    return True


def missing():
    """Name and the parameters that zyx lacks, for all functions that both have."""
    found = {}
    for line in FILE.read_text().splitlines():
        name, _, ways = line.partition(": ")
        function = ours(name)
        if not callable(function):
            continue
        wanted = dict.fromkeys(p.lstrip("*") for way in ways.split(" | ") for p in way.split(", "))
        lacking = [p for p in wanted if p and p not in NOWHERE and not takes(function, p)]
        if lacking:
            found[name] = lacking
    return found


def test_parameters_have_pytorchs_names():
    lines = [line for line in GAPS.read_text().splitlines()]
    gaps = []
    for line in lines:
        what, why = line.split(" = ")
        pattern, _, parameters = what.partition(": ")
        assert why
        gaps.append((line, pattern, parameters.split(", "), set()))
    lacking = [(name, parameter) for name, parameters in missing().items() for parameter in parameters]
    unexplained = []
    for name, parameter in lacking:
        found = [gap for gap in gaps if parameter in gap[2] and fnmatch.fnmatchcase(name, gap[1])]
        for gap in found:
            gap[3].add(parameter)
        unexplained += [(name, parameter)] * (not found)
    assert not unexplained
    unneeded = {line: set(parameters) - used for line, _, parameters, used in gaps if set(parameters) != used}
    assert not unneeded, "these are there now"


def test_what_is_compared():
    names = [line.partition(": ")[0] for line in FILE.read_text().splitlines()]
    shared = [name for name in names if callable(ours(name))]
    print(f"{len(shared)} of {len(names)} names of PyTorch are here")
    # Names that were there go nowhere.
    assert len(shared) >= 1260
    assert not takes(zyx.Tensor.sum, "no_such_parameter") and takes(zyx.Tensor.sum, "dim")
    assert not takes(zyx.nn.Linear, "no_such_parameter")
    assert not takes(zyx.nn.MaxPool2d, "no_such_parameter")
    assert not takes(zyx.optim.SGD, "no_such_parameter")


if __name__ == "__main__":
    for name, lacking in missing().items():
        print(f"{name}: {', '.join(lacking)}")
