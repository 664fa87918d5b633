"""Tensors and machine learning: lazy, fused, on any device.

    >>> import zyx
    >>> x = zyx.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> loss = (x @ x.T).relu().sum()
    >>> loss.gradient(x)

Tensors are computed when a value is needed. Views share memory and methods `name_` write, as in
PyTorch. Every method of `Tensor` is also a
function of this module: `zyx.exp(x)` is `x.exp()`, `zyx.zeros(2, 3)` is `Tensor.zeros(2, 3)`.
Submodules are imported at their first use: `zyx.nn`, `zyx.optim`, `zyx.linalg`, `zyx.utils` and the others of `_SUBMODULES`.
"""

from . import _aliases, _core, _einops, _more, _names, _paths
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
    manual_seed,
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
_more.install()
_einops.install()
_paths.install()
Param = _core.Parameter
inf, nan, pi, e, newaxis = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045, None

# PyTorch's names of dtypes. (The module's own code has no use for the builtins of these names.)
double, half, long, short = _core.float64, _core.float16, _core.int64, _core.int16
float, int = _core.float32, _core.int32  # noqa: A001

_SUBMODULES = ("nn", "optim", "array_api", "linalg", "special", "fft", "utils", "autograd", "cuda", "onnx", "accelerator", "backends", "compiler",
               "distributed", "distributions", "func", "hub", "random", "sparse", "testing", "types", "version", "amp", "lang")  # fmt: skip
# Names of `_types`, which is loaded at the first use of one.
_TYPES = """
FloatTensor DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor IntTensor LongTensor BoolTensor Size dtype finfo iinfo
memory_format contiguous_format channels_last channels_last_3d preserve_format strided layout Generator default_generator seed initial_seed
get_rng_state set_rng_state is_tensor is_storage asarray scalar_tensor range frombuffer from_file empty_permuted promote_types result_type can_cast
chain_matmul svd_lowrank pca_lowrank nuclear_norm frobenius_norm norm_except_dim grid_sampler grid_sampler_2d affine_grid_generator alpha_dropout
feature_alpha_dropout feature_dropout rrelu bilinear conv_tbc embedding_bag instance_norm get_default_dtype set_default_dtype
set_default_tensor_type get_default_device set_default_device get_num_threads set_num_threads get_num_interop_threads set_num_interop_threads
get_float32_matmul_precision set_float32_matmul_precision use_deterministic_algorithms are_deterministic_algorithms_enabled
is_deterministic_algorithms_warn_only_enabled set_deterministic_debug_mode get_deterministic_debug_mode set_flush_denormal set_warn_always
is_warn_always_enabled set_anomaly_enabled is_anomaly_enabled is_anomaly_check_nan_enabled is_inference_mode_enabled get_device_module typename
torch_version set_printoptions get_printoptions empty_strided celu_ rrelu_ threshold_ dropout_ alpha_dropout_ feature_dropout_ feature_alpha_dropout_
"""
_SPARSE = ("sparse_coo_tensor", "sparse_csr_tensor", "spmm")
# Names of `amp`.
_AMP = ("autocast", "GradScaler", "is_autocast_enabled", "get_autocast_dtype", "is_autocast_cache_enabled", "clear_autocast_cache")
# Names of PyTorch's module, and how the same is written.
_ELSEWHERE = {
    "complex64": "pairs of real and imaginary part along the last axis (zyx.fft)",
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
    elif name in _SPARSE:
        from . import sparse

        found = getattr(sparse, name)
    elif name in ("kernel", "Kernel"):
        from . import _kernel

        found = getattr(_kernel, name)
    elif name == "summary":
        from ._summary import summary as found
    elif name in _AMP:
        from . import amp

        found = getattr(amp, name)
    elif name in _TYPES.split():
        from . import _types

        found = getattr(_types, name)
    elif not name.startswith("_") and callable(getattr(Tensor, name, None)):
        found = _names.function(name)
    else:
        way = f"; in zyx: {_ELSEWHERE[name]}" if name in _ELSEWHERE else _aliases.elsewhere(name)
        raise AttributeError(f"module 'zyx' has no attribute {name!r}{way}")
    globals()[name] = found
    return found


def __dir__():
    methods = (name for name in dir(Tensor) if not name.startswith("_") and callable(getattr(Tensor, name)))
    return sorted({*globals(), *_SUBMODULES, *_TYPES.split(), *_AMP, *_SPARSE, "load", "save", "summary", "kernel", "Kernel", *methods})
