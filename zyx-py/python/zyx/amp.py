"""Automatic mixed precision under the names of `torch.amp`: `autocast` and `GradScaler`.

Within `autocast` some operations compute in a half (`_LOW`), some in `float32` (`_WIDE`), and some in the widest dtype of
their operands (`_WIDEST`). `float64` and writes in place stay as they are. The methods of `Tensor` and the functions made of
them get their casts when a block is entered for the first time, so programs without `autocast` do nothing more than before.
"""

import functools
import warnings
from _thread import _local

from . import _aliases, _core, _names, _steps
from ._core import DType, Tensor
from ._grad_mode import no_grad
from ._steps import _cast, _parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LOW, _WIDE, _WIDE_BY_OPTION, _WIDEST, _AS_GIVEN, _REFUSED, _RECURRENT = range(7)
_HALVES, _ELIGIBLE = ("float16", "bfloat16"), ("float16", "bfloat16", "float32")
_CONVOLUTIONS = "conv1d conv2d conv3d conv_same conv_transpose1d conv_transpose2d conv_transpose3d"
_LOSSES = """
cdist cosine_embedding_loss hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss
nll_loss_weighted binary_cross_entropy_with_logits smooth_l1_loss soft_margin_loss triplet_margin_loss
"""
# The operations of a GPU, then those of the CPU, by the dtype that they compute in.
_GPU = {
    _LOW: f"{_CONVOLUTIONS} __matmul__ __rmatmul__ addbmm addmm addmv addr baddbmm bmm einsum matmul mm multi_dot mv prelu scaled_dot_product_attention",
    _WIDE: f"""{_LOSSES} __pow__ __rpow__ __rtruediv__ acos asin cosh cosine_similarity cross_entropy cross_entropy_weighted dist erfinv exp expm1 group_norm
        interpolate interpolate_by layer_norm log log10 log1p log2 logsumexp matrix_norm norm pdist poisson_nll_loss pow recip reciprocal renorm rsqrt sinh
        softplus tan""",
    _WIDE_BY_OPTION: "cumprod cumsum log_softmax prod softmax sum vector_norm",
    _WIDEST: "addcdiv addcmul atan2 bilinear cat cross dot grid_sample index_put inner scatter_add stack tensordot vdot",
    _REFUSED: "binary_cross_entropy",
    _RECURRENT: "RNN GRU LSTM",
}  # fmt: skip
_CPU = {
    _LOW: f"{_CONVOLUTIONS} __matmul__ __rmatmul__ addbmm addmm baddbmm bmm einsum inner matmul mm multi_dot prelu scaled_dot_product_attention tensordot",
    _WIDE: f"""{_LOSSES} adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy cholesky cholesky_inverse cholesky_solve cross_entropy
        cross_entropy_weighted fft fft2 fftn grid_sample ifft ifft2 ifftn inv irfft irfft2 lstsq matrix_rank max_unpool2d max_unpool3d nanquantile pad_mode
        GRU pinv prod qr quantile rfft rfft2 solve stft svd svdvals tensorsolve trace triangular_solve""",
    _WIDEST: "cat index_copy stack",
    _AS_GIVEN: "addmv addr bilinear",
    _RECURRENT: "RNN LSTM",
}  # fmt: skip


def _policies(lists):
    found = {name: policy for policy, names in lists.items() for name in names.split()}
    return found | {alias: found[name] for alias, name in _aliases.ALIASES.items() if name in found}


class _State(_local):
    """Of a thread: by type of device the half and the policies of operations; and whether casts may be kept."""

    modes: "dict[str, Any]" = {}
    cache = True


_state = _State()
_installed = []


def _called(name, function, given, named):
    """The result of an operation whose operands are cast as the modes of this thread say."""
    modes = _state.modes
    tensors = [*_parts(given), *_parts(tuple(named.values()))]
    dtype, policies = next((modes[x.device.type] for x in tensors if x.device.type in modes), (None, {}))
    policy = policies.get(name)
    if policy is None or named.get("out") is not None:
        return function(*given, **named)
    if policy == _REFUSED:
        raise RuntimeError(
            f"{name} and BCELoss are unsafe to autocast: in halves their logarithms overflow. Take binary_cross_entropy_with_logits or "
            "BCEWithLogitsLoss of the operand of the sigmoid."
        )
    if policy == _LOW:
        cast, into = _ELIGIBLE, dtype
    elif policy == _WIDEST:
        cast, into = _ELIGIBLE, "float32" if any(x.dtype.name == "float32" for x in tensors) else dtype
    else:
        cast, into = () if policy == _AS_GIVEN else _HALVES, "float32"
    if not (policy == _WIDE_BY_OPTION and named.get("dtype") is not None):
        given = tuple(_cast(x, cast, into) for x in given)
        named = {key: _cast(x, cast, into) for key, x in named.items()}
    _state.modes = {}
    try:
        found = function(*given, **named)
    finally:
        _state.modes = modes
    # Weights of recurrent layers stay in `float32`: the results are rounded.
    return _cast(found, ("float32",), dtype) if policy == _RECURRENT else found


def _casting(name, function):
    """An operation whose operands are cast within `autocast`."""

    def cast(*given, **named):
        return _called(name, function, given, named) if _state.modes else function(*given, **named)

    return _names.wrapping(name, function, cast, _casting)


def _install():
    """Gives operations their casts."""
    from zyx import _jit, nn
    from zyx.nn import functional

    _names.wrap_methods({**_policies(_GPU), **_policies(_CPU)}, _casting)
    for name in ("RNN", "GRU", "LSTM"):
        layer = getattr(nn, name)
        layer.forward = _casting(name, layer.forward)
    same, add_bias = functional._same, functional._add_bias
    functional._same = lambda name, x, weight: None if _is_cast(x, weight) else same(name, x, weight)
    functional._add_bias = lambda y, bias: add_bias(y, bias.to(y.dtype) if _is_cast(y, bias) else bias)
    _steps.call_with_casts = lambda name, function, given, named: _called(name, function, given, named) if _state.modes else function(*given, **named)
    _names._written_to = _plain
    _jit._mode = lambda: tuple((kind, dtype) for kind, (dtype, _) in _state.modes.items())
    _installed.append(True)


def _is_cast(*tensors):
    """Whether operations of low precision cast these tensors in this thread."""
    modes = _state.modes
    return bool(modes) and all(x.device.type in modes and x.dtype.name in _ELIGIBLE for x in tensors)


def _plain(function, given, named):
    """The result without casts, as those have that are written to `out`."""
    modes, _state.modes = _state.modes, {}
    try:
        return function(*given, **named)
    finally:
        _state.modes = modes


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast` works on a type of device: on every one."""
    if not isinstance(device_type, str):
        raise TypeError(f"is_autocast_available(): argument 'device_type' must be str, not {type(device_type).__name__}")
    return True


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operations on a type of device are cast in this thread."""
    return device_type in _state.modes


def get_autocast_dtype(device_type: str) -> "DType":
    """The half that operations on a type of device are, or would be, cast to."""
    return DType(_state.modes[device_type][0] if device_type in _state.modes else _usual(device_type))


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights may be kept, as the innermost block says."""
    return _state.cache


def clear_autocast_cache() -> None:
    """Nothing: equal casts within a computation are one, and none is kept after it."""


def _usual(device_type):
    return "bfloat16" if device_type == "cpu" else "float16"


class autocast:
    """A block, or a decorated function, in which operations on a type of device choose their dtype.

        with zyx.autocast("cuda", dtype=zyx.bfloat16):
            loss = model(x).cross_entropy(y)
        loss.backward()

    `cache_enabled` changes nothing: equal casts within a computation are one.
    """

    def __init__(self, device_type: str, dtype: "Any" = None, enabled: bool = True, cache_enabled: "bool | None" = None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        self.fast_dtype = DType(_usual(device_type) if dtype is None else dtype)
        self._cache, self._before = cache_enabled, []
        if enabled and device_type == "cuda" and not any(spec.startswith("cuda") for spec, *_ in _core.devices()):
            warnings.warn("User provided device_type of 'cuda', but CUDA is not available. Disabling", stacklevel=2)
            enabled = False
        if enabled and self.fast_dtype.name not in _HALVES:
            warnings.warn(f"autocast: {self.fast_dtype.name} is no half; operations are cast to bfloat16 or float16. Disabling autocast.", stacklevel=2)
            enabled = False
        self._enabled = bool(enabled)

    def __enter__(self) -> "autocast":
        if self._enabled and not _installed:
            _install()
        self._before.append((_state.modes, _state.cache))
        modes = {kind: mode for kind, mode in _state.modes.items() if kind != self.device}
        if self._enabled:
            modes[self.device] = self.fast_dtype.name, _policies_of(self.device)
        _state.modes = modes
        if self._cache is not None:
            _state.cache = self._cache
        return self

    def __exit__(self, *problem: "Any") -> bool:
        _state.modes, _state.cache = self._before.pop()
        return False

    def __call__(self, func: "Any") -> "Any":
        @functools.wraps(func)
        def cast(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return cast


@functools.lru_cache(None)
def _policies_of(device_type):
    return _policies(_CPU if device_type == "cpu" else _GPU)


def custom_fwd(fwd: "Any" = None, *, device_type: str, cast_inputs: "Any" = None) -> "Any":
    """A decorator of `forward` of a `Function`: `backward` with `custom_bwd` has the same casts. With `cast_inputs` floats on that
    type of device are cast to it, and `forward` computes without further casts.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        ctx = args[0]
        ctx._dtype, ctx._fwd_used_autocast = get_autocast_dtype(device_type), is_autocast_enabled(device_type)
        if cast_inputs is None or not ctx._fwd_used_autocast:
            return fwd(*args, **kwargs)
        ctx._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(*(_cast(x, _ELIGIBLE, cast_inputs) for x in args), **{key: _cast(x, _ELIGIBLE, cast_inputs) for key, x in kwargs.items()})

    return decorated


def custom_bwd(bwd: "Any" = None, *, device_type: str) -> "Any":
    """A decorator of `backward` of a `Function`: operations are cast as those of `forward` were."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        with autocast(device_type, dtype=args[0]._dtype, enabled=args[0]._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return decorated


class GradScaler:
    """Scales losses so that small gradients of `float16` do not vanish, and leaves out steps whose gradients are not finite.

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    """

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:  # fmt: skip
        if enabled and device == "cuda" and not any(spec.startswith("cuda") for spec, *_ in _core.devices()):
            warnings.warn("GradScaler is enabled, but CUDA is not available. Disabling.", stacklevel=2)
            enabled = False
        self._device, self._enabled = device, bool(enabled)
        if enabled and not growth_factor > 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if enabled and not backoff_factor < 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._scale, self._growth_factor, self._backoff_factor = float(init_scale), growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        # By the identity of an optimizer: whether gradients are divided, whether a step was made, whether they are finite.
        self._optimizers: "dict[int, dict[str, Any]]" = {}

    def _of(self, optimizer):
        return self._optimizers.setdefault(id(optimizer), {"optimizer": optimizer, "stage": "ready", "finite": None})

    def scale(self, outputs: "Any") -> "Any":
        """A tensor, or each of several, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if not isinstance(outputs, (list, tuple)) and not hasattr(outputs, "__iter__"):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        made = [self.scale(x) for x in outputs]
        return type(outputs)(made) if isinstance(outputs, (list, tuple)) else iter(made)

    def unscale_(self, optimizer: "Any") -> None:
        """Divides the gradients of an optimizer's parameters by the scale."""
        if not self._enabled:
            return
        state = self._of(optimizer)
        if state["stage"] != "ready":
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update()." if state["stage"] == "unscaled"
                               else "unscale_() is being called after step().")  # fmt: skip
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(g.dtype.name == "float16" for g in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        state["stage"] = "unscaled"
        if not grads:
            return
        inverse, finite = 1.0 / self._scale, None
        with no_grad():
            for g in grads:
                g.mul_(inverse)
                is_finite = g.isfinite().all()
                finite = is_finite if finite is None else finite & is_finite.to(finite.device)
        # Gradients that were computed with the answer are not computed again by the step.
        Tensor.realize_all([*grads, finite])
        state["finite"] = finite

    def step(self, optimizer: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        """The optimizer's step, if all gradients are finite; they are divided by the scale first, unless `unscale_` did it."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        state = self._of(optimizer)
        if state["stage"] == "stepped":
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] == "ready":
            self.unscale_(optimizer)
        if state["finite"] is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        found = optimizer.step(*args, **kwargs) if bool(state["finite"]) else None
        state["stage"] = "stepped"
        return found

    def update(self, new_scale: "Any" = None) -> None:
        """A smaller scale if a step was left out, a larger one after `growth_interval` steps; or `new_scale`."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            known = [state["finite"] for state in self._optimizers.values() if state["finite"] is not None]
            if not known:
                raise AssertionError("No inf checks were recorded prior to update.")
            if not all(bool(finite) for finite in known):
                self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
            elif self._growth_tracker + 1 == self._growth_interval:
                grown = self._scale * self._growth_factor
                # A scale of float32 stays finite.
                self._scale, self._growth_tracker = grown if grown < 2.0**128 else self._scale, 0
            else:
                self._growth_tracker += 1
        self._optimizers = {}

    def get_scale(self) -> float:
        """The scale; 1 if the scaler is not enabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """The factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor of the scale when a step was left out."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets the factor of the scale when a step was left out."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets after how many steps the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def state_dict(self) -> "dict[str, Any]":
        """The scale and its options; empty if the scaler is not enabled."""
        if not self._enabled:
            return {}
        return {"scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker}  # fmt: skip

    def load_state_dict(self, state_dict: "dict[str, Any]") -> None:
        """Goes on from a result of `state_dict`."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.")
        self._scale, self._growth_tracker = float(state_dict["scale"]), state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]

# PyTorch's files below this one (`_paths`).
__path__ = []
