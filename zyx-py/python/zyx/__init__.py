"""Tensors and machine learning: lazy, fused, on any device.

    >>> import zyx
    >>> x = zyx.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> loss = (x @ x.T).relu().sum()
    >>> loss.gradient(x)

Tensors are computed when a value is needed. Views share memory and methods `name_` write, as in
PyTorch. Every method of `Tensor` is also a
function of this module: `zyx.exp(x)` is `x.exp()`, `zyx.zeros(2, 3)` is `Tensor.zeros(2, 3)`.
Submodules are imported at their first use: `zyx.nn`, `zyx.optim`,
`zyx.array_api`, `zyx.linalg`, `zyx.special`, `zyx.fft`, `zyx.utils`, `zyx.autograd`, `zyx.cuda`,
`zyx.onnx`.
"""

from . import _aliases, _core, _names
from ._core import *  # noqa: F403
from ._core import Tensor, __version__, from_dlpack  # noqa: F401
from ._functions import (  # noqa: F401
    addbmm,
    addmv,
    addr,
    as_tensor,
    atleast_1d,
    block_diag,
    broadcast_shapes,
    broadcast_tensors,
    cartesian_prod,
    combinations,
    compile,
    device,
    empty,
    empty_like,
    from_numpy,
    grad,
    isin,
    meshgrid,
    mvlgamma,
    polygamma,
    pow,
    renorm,
    tensordot,
    value_and_grad,
    vmap,
    where,
)
from ._grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled  # noqa: F401
from ._jit import jit  # noqa: F401

_aliases.install()
Param = _core.Parameter
inf, nan, pi, e, newaxis = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045, None

# PyTorch's names of dtypes. (The module's own code has no use for the builtins of these names.)
double, half, long, short = _core.float64, _core.float16, _core.int64, _core.int16
float, int = _core.float32, _core.int32  # noqa: A001

_SUBMODULES = ("nn", "optim", "array_api", "linalg", "special", "fft", "utils", "autograd", "cuda", "onnx")
# Names of PyTorch's module, and how the same is written.
_ELSEWHERE = {
    "set_default_device": "the environment variable ZYX_DEVICE, or device= of each call",
    "set_default_dtype": "dtype= of each call",
    "set_num_threads": "the environment variable ZYX_THREADS",
    "set_float32_matmul_precision": "nothing: products of float32 are computed in float32",
    "Generator": "zyx.Rng(seed)",
    "from_file": "zyx.open_safetensors(file)",
    "complex64": "pairs of real and imaginary part along the last axis (zyx.fft)",
    "autocast": _aliases.HALVES,
    "amp": _aliases.HALVES,
    "backends": "nothing: libraries are used where they are there, products of float32 are computed in float32",
    "distributed": "nothing: devices do not communicate",
    "finfo": "zyx.array_api.finfo(dtype)",
    "iinfo": "zyx.array_api.iinfo(dtype)",
    "func": "zyx.vmap, zyx.grad and zyx.value_and_grad",
    "is_tensor": "isinstance(x, zyx.Tensor)",
    "get_default_dtype": "zyx.float32",
    "set_printoptions": "numpy.set_printoptions, and print x.numpy()",
    "get_rng_state": "zyx.Rng(seed), which is copied and pickled",
    "set_rng_state": "zyx.manual_seed(seed), or a zyx.Rng for each use",
    "FloatTensor": "zyx.tensor(data, dtype=zyx.float32)",
    "LongTensor": "zyx.tensor(data, dtype=zyx.int64)",
    "hub": "zyx.load(file)",
    "profiler": "device.set_profiling(True) and device.profile()",
}


_names.take_out(globals(), _names._OUT)


# What `nn` and `optim` make their classes and schedules of is no name of this module.
for _name in [name for name in globals() if name.startswith(("make_", "schedule_"))]:
    del globals()[_name]


def __getattr__(name):
    """Submodules, and methods of `Tensor` as functions; looked up once."""
    if name in _SUBMODULES:
        import importlib

        found = importlib.import_module("." + name, __name__)
    elif name in ("load", "save"):
        from . import _save

        found = getattr(_save, name)
    elif not name.startswith("_") and callable(getattr(Tensor, name, None)):
        found = _names.function(name)
    else:
        way = f"; in zyx: {_ELSEWHERE[name]}" if name in _ELSEWHERE else _aliases.elsewhere(name)
        raise AttributeError(f"module 'zyx' has no attribute {name!r}{way}")
    globals()[name] = found
    return found


def __dir__():
    methods = (name for name in dir(Tensor) if not name.startswith("_") and callable(getattr(Tensor, name)))
    return sorted({*globals(), *_SUBMODULES, "load", "save", *methods})
