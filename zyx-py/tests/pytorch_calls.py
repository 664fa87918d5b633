"""Calls that users of PyTorch write, and what PyTorch gives: `data/pytorch_calls.txt`.

A line of that file is a call, the operands it is made with, and the result of PyTorch, as `record` writes it: dtype,
shape and a sum of the elements with weights, so that no element is left out and their order counts. Where zyx answers
differently on purpose there follows a remark (`DIFFERENT` in `test_pytorch_calls.py` says why) and, behind `=>`, what
zyx gives, which was computed with NumPy. In a call `m` is
the library, `F` its `nn.functional`, and `x`, `y`, `z`, `w` are tensors of the operands.

    python zyx-py/tests/pytorch_calls.py

writes the results again, with PyTorch; this needs `torch`.
"""

import pathlib

import numpy as np

FILE = pathlib.Path(__file__).with_name("data") / "pytorch_calls.txt"


class Operands:
    """Arrays without a pattern, the same for the same line."""

    def __init__(self, seed):
        self.rng = np.random.Generator(np.random.PCG64(seed))

    def array(self, *shape, dt="float32", lo=-2, hi=2):
        if dt == "bool":
            return self.rng.random(shape) > 0.5
        if np.dtype(dt).kind in "iu":
            return self.rng.integers(max(lo, 0) if dt[0] == "u" else lo * 3, hi * 3, shape).astype(dt)
        return (self.rng.random(shape) * (hi - lo) + lo).astype(dt)

    def names(self):
        a = self.array
        spd = a(3, 3, dt="float64")
        return {
            "A": a,
            "np": np,
            "f": a(3, 4),
            "h": a(3, 4, dt="float16"),
            "i": a(3, 4, dt="int64"),
            "i32": a(3, 4, dt="int32"),
            "u": a(3, 4, dt="uint8"),
            "b": a(3, 4, dt="bool"),
            "d": a(3, 4, dt="float64"),
            "e0": a(0, 4),
            "s": np.asarray(np.float32(1.5)),
            "c3": a(2, 3, 5),
            "q": a(2, 3, 8, 8),
            "spd": spd @ spd.T + np.eye(3),
        }


def evaluate(line, module, tensor):
    """The result of a call with a library."""
    call, _, operands = line.partition("  <-  ")
    seed = sum(ord(c) * (i + 1) for i, c in enumerate(line))
    arrays = eval(f"[{operands}]", Operands(seed).names())
    names = dict(zip("xyzw", (tensor(a) for a in arrays)))
    return eval(call, {"m": module, "F": module.nn.functional, **names})


def array(x):
    """The elements and the name of the dtype, of a tensor of either library."""
    name = str(x.dtype).removeprefix("torch.")
    x = x.detach()
    if name in ("bfloat16", "bf16"):
        x = x.to(dtype=__import__("torch").float32) if "torch" in type(x).__module__ else x.cast("float32")
        return np.array(x.numpy()), "bfloat16"
    found = np.array(x.numpy())
    return found, str(found.dtype)


def record(result):
    """A result as a list of `[dtype, shape, sum, scale, which are not finite]`, or a list with one value of Python."""
    if isinstance(result, (tuple, list)):
        return [r for part in result for r in record(part)]
    if not hasattr(result, "detach"):
        return [["py", result]]
    values, dtype = array(result)
    flat = values.astype(np.float64).ravel()
    finite = np.isfinite(flat)
    odd = "".join("n" if np.isnan(v) else "+" if v > 0 else "-" for v in flat[~finite])
    kept = np.where(finite, flat, 0.0)
    weights = 1.0 + 0.5 * np.cos(np.arange(flat.size))
    return [[dtype, list(values.shape), float(kept @ weights), float(np.abs(kept) @ weights), odd]]


def write():
    """Asks PyTorch."""
    import warnings

    import torch

    warnings.simplefilter("ignore")
    lines = []
    for line in FILE.read_text().splitlines():
        call, _, rest = line.partition("  ->  ")
        remark = rest[rest.index("  # ") :] if "  # " in rest else ""
        if call.startswith("#"):
            lines.append(line)
            continue
        try:
            found = record(evaluate(call, torch, torch.tensor))
        except (RuntimeError, ValueError, TypeError, IndexError):
            found = "error"
        lines.append(f"{call}  ->  {found!r}{remark}")
    FILE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write()
