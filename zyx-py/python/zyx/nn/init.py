"""Initial values, under the names of `torch.nn.init`: each function gives a tensor new values and gives it back.

Random ones are drawn from the stream that `zyx.manual_seed` restarts, unless `generator` is another `zyx.Rng`.
"""

import math

from .._core import Tensor
from .._grad_mode import no_grad

_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal, but for the share `sparsity` of every column, which is zero (Martens 2010)."""
    rows, columns = _matrix(tensor.shape)
    n = math.ceil(sparsity * rows)

    def make(shape, place):
        # The first places of a shuffled column.
        order = Tensor.rand(shape, rng=_rng(generator), dtype="float32", device=place["device"]).argsort(0).argsort(0)
        return (order < n).where_(0.0, Tensor.randn(shape, rng=_rng(generator), **place) * std)

    return _given(tensor, make)


def dirac_(tensor, groups=1):
    """A convolution, of 3 to 5 axes, that gives its input back, as far as there are channels for it."""
    shape = tuple(tensor.shape)
    if not 3 <= len(shape) <= 5:
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")

    def make(shape, place):
        out = shape[0] // groups
        one = Tensor.eye(out, shape[1], **place).reshape(out, shape[1], *[1] * (len(shape) - 2))
        around = [(0, 0), (0, 0)] + [(n // 2, n - 1 - n // 2) for n in shape[2:]]
        return Tensor.cat([one.pad(around)] * groups, 0)

    return _given(tensor, make)


def calculate_gain(nonlinearity, param=None):
    """By how much weights are larger in front of a function."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity.startswith("conv"):
        return 1.0
    if nonlinearity not in _GAINS:
        raise ValueError(f"{nonlinearity!r} is none of {sorted([*_GAINS, 'leaky_relu'])}")
    return _GAINS[nonlinearity]


def _rng(generator):
    """The stream of a generator."""
    return getattr(generator, "_rng", generator)


def _given(tensor, make):
    """The tensor, written over by the result of `make` for its shape, dtype and device."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"a Tensor is needed, not {type(tensor).__name__}")
    with no_grad():
        return tensor.copy_(make(tuple(tensor.shape), {"dtype": tensor.dtype, "device": tensor.device}))


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Uniform on `[a, b)`."""
    return _given(tensor, lambda shape, place: Tensor.rand_range(a, b, shape, rng=_rng(generator), **place))


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Normal."""
    return _given(tensor, lambda shape, place: Tensor.randn(shape, rng=_rng(generator), **place) * std + mean)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal, of what lies within `a` and `b`."""

    def make(shape, place):
        # By the inverse of the distribution function, which is exact within any limits.
        low, high = (math.erf((x - mean) / std / math.sqrt(2)) for x in (a, b))
        place = place | {"dtype": "float32"}
        found = Tensor.rand_range(low, high, shape, rng=_rng(generator), **place).erfinv() * (std * math.sqrt(2)) + mean
        return found.clamp(a, b)

    return _given(tensor, make)


def constant_(tensor, val):
    """One number."""
    return _given(tensor, lambda shape, place: Tensor.full(shape, float(val), **place))


def zeros_(tensor):
    """Zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor):
    """Ones."""
    return constant_(tensor, 1.0)


def eye_(tensor):
    """The identity matrix."""
    return _given(tensor, lambda shape, place: Tensor.eye(*_matrix(shape), **place))


def _matrix(shape):
    if len(shape) != 2:
        raise ValueError(f"a matrix is needed, not shape {shape}")
    return shape


def _fans(shape):
    """How many inputs an output has, and how many outputs an input."""
    if len(shape) < 2:
        raise ValueError(f"fans are those of two axes and more, not of shape {shape}")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform, so that variances stay on the way there and back (Glorot and Bengio 2010)."""
    bound = gain * math.sqrt(6 / sum(_fans(tensor.shape)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal, so that variances stay on the way there and back (Glorot and Bengio 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans(tensor.shape))), generator)


def _kaiming(tensor, a, mode, nonlinearity):
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode is 'fan_in' or 'fan_out', not {mode!r}")
    return calculate_gain(nonlinearity, a) / math.sqrt(_fans(tensor.shape)[mode == "fan_out"])


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform, so that variances stay behind a `relu` and its kin (He et al. 2015)."""
    bound = math.sqrt(3) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal, so that variances stay behind a `relu` and its kin (He et al. 2015)."""
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor, gain=1.0, generator=None):
    """Rows, or columns if there are fewer, that are orthogonal and of length `gain` (Saxe et al. 2013)."""

    def make(shape, place):
        _fans(shape)
        rows, columns = shape[0], math.prod(shape[1:])
        place = place | {"dtype": "float32"}
        q, r = Tensor.randn(max(rows, columns), min(rows, columns), rng=_rng(generator), **place).qr()
        # Signs from the triangle make all orthogonal matrices equally likely.
        q = q * r.diagonal().sign()
        return (q if rows >= columns else q.T).reshape(shape) * gain

    return _given(tensor, make)


def _older(function):
    def named(*given, **options):
        return function(*given, **options)

    named.__name__ = named.__qualname__ = function.__name__.rstrip("_")
    named.__doc__ = f"`{function.__name__}` under an older name."
    return named


uniform, normal, constant, eye, dirac, sparse, orthogonal = map(_older, (uniform_, normal_, constant_, eye_, dirac_, sparse_, orthogonal_))
xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal = map(_older, (xavier_uniform_, xavier_normal_, kaiming_uniform_, kaiming_normal_))
