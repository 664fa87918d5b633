"""Fourier transforms under the names, and with the parameters, of `torch.fft`.

A complex number is a pair of real and imaginary part along one more axis, the last: what `torch.view_as_real` gives.
`dim` counts the axes without it.
"""

import sys
import types

from . import _names
from ._core import Tensor


def _norm(norm):
    return "backward" if norm is None else norm


def _transform(name, doc):
    method = getattr(Tensor, name)

    def transform(input, n=None, dim=-1, norm=None):
        return method(input, n, dim, _norm(norm))

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = doc
    return transform


fft = _transform("fft", "The transform of complex numbers `[.., n, 2]` along an axis, cut or filled with zeros to `n`.")
ifft = _transform("ifft", "The inverse of `fft`.")
rfft = _transform("rfft", "The transform of real numbers along an axis: the `n / 2 + 1` frequencies that are not negative.")
irfft = _transform("irfft", "The inverse of `rfft`: `n` real numbers, by default `2 (m - 1)` of `m` frequencies.")


def _several(name, one, first=None, last=None):
    """A transform along several axes: `one` along each but the last, which `first` or `last` does before or after."""

    def transform(input, s=None, dim=None, norm=None):
        pairs = 0 if first else 1
        if dim is None and name.endswith("2"):
            dim = (-2, -1)
        elif dim is None:
            dim = tuple(range(-(input.ndim - pairs if s is None else len(s)), 0))
        dim = (dim,) if isinstance(dim, int) else tuple(dim)
        sizes = [None] * len(dim) if s is None else list(s)
        if len(sizes) != len(dim):
            raise ValueError(f"{name}: {len(sizes)} sizes for {len(dim)} axes")
        *rest, (end, n) = zip(dim, sizes)
        if first:
            input = first(input, n, end, norm)
        for axis, size in rest if first or last else [*rest, (end, n)]:
            input = one(input, size, axis, norm)
        return last(input, n, end, norm) if last else input

    transform.__name__ = transform.__qualname__ = name
    which = "the last two" if name.endswith("2") else "all"
    transform.__doc__ = f"`{(first or last or one).__name__}` along several axes, {which} if none are named; `s` elements each."
    return transform


fft2, ifft2 = _several("fft2", fft), _several("ifft2", ifft)
fftn, ifftn = _several("fftn", fft), _several("ifftn", ifft)
rfft2, irfft2 = _several("rfft2", fft, first=rfft), _several("irfft2", ifft, last=irfft)
rfftn, irfftn = _several("rfftn", fft, first=rfft), _several("irfftn", ifft, last=irfft)


def fftfreq(n, d=1.0, *, dtype=None, device=None, requires_grad=False):
    """The frequencies of `fft`, in cycles per unit of the spacing `d`."""
    return Tensor(Tensor.fftfreq(n, d, device=device), dtype=dtype, requires_grad=requires_grad)


def rfftfreq(n, d=1.0, *, dtype=None, device=None, requires_grad=False):
    """The frequencies of `rfft`."""
    return Tensor(Tensor.rfftfreq(n, d, device=device), dtype=dtype, requires_grad=requires_grad)


def fftshift(input, dim=None):
    """Frequency zero moved to the middle, of tensors without a last axis of pairs."""
    return input.fftshift(dim)


def ifftshift(input, dim=None):
    """`fftshift` undone."""
    return input.ifftshift(dim)


_names.take_out(globals())


class _Callable(types.ModuleType):
    """The module is also the method, as every method of `Tensor` is a function of `zyx`."""

    def __call__(self, x, *arguments, **options):
        return x.fft(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
