"""Layers without parameters in PyTorch's spelling, where it has other options than Rust's or means another thing.

They are functions of `nn.functional` with options kept from before.
"""

from .._core import Tensor, tensor
from . import functional as F
from .module import Module


class _Function(Module):
    """A function with options."""

    def __init__(self, **options):
        self._options = options

    def extra_repr(self):
        return ", ".join(f"{name}={value!r}" for name, value in self._options.items())


def _layer(name, function, doc, names, **defaults):
    """A class that calls a function; `names` are the options that may be given by position."""

    def __init__(self, *given, **options):
        if len(given) > len(names):
            raise TypeError(f"{name}() takes at most {len(names)} options by position, {len(given)} were given")
        options = dict(zip(names, given)) | options
        unknown = set(options) - {*names, *defaults}
        missing = [n for n in names if n not in options and n not in defaults]
        if unknown or missing:
            what = f"no option {sorted(unknown)}" if unknown else f"missing {missing}"
            raise TypeError(f"{name}(): {what}; there are {', '.join(dict.fromkeys([*names, *defaults]))}")
        _Function.__init__(self, **(defaults | options))

    def forward(self, *inputs):
        return function(*(x if isinstance(x, Tensor) else tensor(x) for x in inputs), **self._options)

    forward.__doc__ = doc
    return type(name, (_Function,), {"__doc__": doc, "__init__": __init__, "forward": forward, "__module__": "zyx.nn"})


def _flatten(x, start_dim, end_dim):
    return x.flatten(start_dim, end_dim)


def _padding(mode, axes):
    def padded(x, padding, value=0.0):
        each = [padding] * (2 * axes) if isinstance(padding, int) else list(padding)
        if len(each) != 2 * axes:
            raise ValueError(f"padding is a number or {2 * axes} of them, not {padding!r}")
        return F.pad(x, each, mode, value if mode == "constant" else None)

    return padded


def _bce_with_logits(x, target, weight, reduction, pos_weight):
    # (1 - t) x + (1 + (w - 1) t) log(1 + e^-x), the softplus of -x without overflow.
    more = 1.0 if pos_weight is None else (pos_weight - 1.0) * target + 1.0
    terms = (1.0 - target) * x + (-x).softplus() * more
    terms = terms if weight is None else terms * weight
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction!r} is not a reduction; there are 'mean', 'sum', 'none'")
    return terms if reduction == "none" else getattr(terms, reduction)()


_POOL = {"stride": None, "padding": 0, "dilation": 1, "return_indices": False, "ceil_mode": False}
_MEAN = {"stride": None, "padding": 0, "ceil_mode": False, "count_include_pad": True}
_DIVISOR = _MEAN | {"divisor_override": None}

LAYERS = [
    _layer("GELU", F.gelu, F.gelu.__doc__, ["approximate"], approximate="none"),
    _layer("Softplus", F.softplus, F.softplus.__doc__, ["beta", "threshold"], beta=1.0, threshold=20.0),
    _layer("Flatten", _flatten, "Axes merged: all but the first.", ["start_dim", "end_dim"], start_dim=1, end_dim=-1),
    _layer("Upsample", F.interpolate, F.interpolate.__doc__, ["size", "scale_factor", "mode", "align_corners",
           "recompute_scale_factor"], size=None, scale_factor=None, mode="nearest", align_corners=None,
           recompute_scale_factor=None),
    _layer("CrossEntropyLoss", F.cross_entropy, F.cross_entropy.__doc__, ["weight"], weight=None, ignore_index=-100,
           reduction="mean", label_smoothing=0.0),
    _layer("NLLLoss", F.nll_loss, F.nll_loss.__doc__, ["weight"], weight=None, ignore_index=-100, reduction="mean"),
    _layer("BCELoss", F.binary_cross_entropy, "Binary cross entropy of probabilities.", ["weight"], weight=None,
           reduction="mean"),
    _layer("KLDivLoss", F.kl_div, F.kl_div.__doc__, [], reduction="mean", log_target=False),
    _layer("BCEWithLogitsLoss", _bce_with_logits, "Binary cross entropy of logits.", ["weight"], weight=None,
           reduction="mean", pos_weight=None),
]  # fmt: skip


def _unpool(axes):
    """The layer that undoes `MaxPool`; the extents of the result may be given with each call, as several are pooled to one."""
    function = getattr(F, f"max_unpool{axes}d")

    def __init__(self, kernel_size, stride=None, padding=0):
        _Function.__init__(self, kernel_size=kernel_size, stride=stride, padding=padding)

    def forward(self, x, indices, output_size=None):
        x, indices = (y if isinstance(y, Tensor) else tensor(y) for y in (x, indices))
        return function(x, indices, **self._options, output_size=output_size)

    forward.__doc__ = function.__doc__
    members = {"__doc__": function.__doc__, "__init__": __init__, "forward": forward, "__module__": "zyx.nn"}
    return type(f"MaxUnpool{axes}d", (_Function,), members)


for _axes in (1, 2, 3):
    LAYERS.append(_unpool(_axes))
    for _kind in ("Avg", "Max"):
        _pool = getattr(F, f"adaptive_{_kind.lower()}_pool{_axes}d")
        LAYERS.append(_layer(f"Adaptive{_kind}Pool{_axes}d", _pool, _pool.__doc__, ["output_size"]))
    _pads = [("Zero", "constant", {}), ("Constant", "constant", {}), ("Reflection", "reflect", {}),
             ("Replication", "replicate", {}), ("Circular", "circular", {})]  # fmt: skip
    for _name, _mode, _defaults in _pads:
        _names = ["padding", "value"] if _name == "Constant" else ["padding"]
        _doc = f"Elements added around the last {_axes} axes."
        LAYERS.append(_layer(f"{_name}Pad{_axes}d", _padding(_mode, _axes), _doc, _names, **_defaults))
    LAYERS.append(
        _layer(f"MaxPool{_axes}d", getattr(F, f"max_pool{_axes}d"), "The largest of each window.", ["kernel_size", *_POOL], **_POOL)
    )
    LAYERS.append(
        _layer(f"AvgPool{_axes}d", getattr(F, f"avg_pool{_axes}d"), "The mean of each window.", ["kernel_size", *(_MEAN if _axes == 1 else _DIVISOR)], **(_MEAN if _axes == 1 else _DIVISOR))
    )
