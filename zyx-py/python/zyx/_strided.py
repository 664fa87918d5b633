"""Tensors by their place in memory: strides, `as_strided`, `set_`, `resize_`.

Results of operations lie in row-major order; views lie where PyTorch's would.
"""

import math

from ._core import Tensor, _default_float


def _row_major(size):
    strides = [1] * len(size)
    for axis in range(len(size) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(size[axis + 1], 1)
    return strides


def _numbers(name, given):
    if not isinstance(given, (tuple, list)) or not all(hasattr(n, "__index__") for n in given):
        raise TypeError(f"{name} are ints, not {given!r}")
    return [int(n) for n in given]


def stride(x, dim=None):
    """How many elements of memory the neighbours along each axis, or one of them, are apart."""
    strides = tuple(x._layout()[1])
    if dim is None:
        return strides
    if not -x.ndim <= dim < x.ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-x.ndim}, {x.ndim - 1}], but got {dim})")
    return strides[dim]


def storage_offset(x):
    """The place of the first element in memory that views share."""
    return x._layout()[0]


def as_strided(x, size, stride, storage_offset=None):
    """The elements of memory that `x` shares at strides from a place on: a view."""
    size, strides = _numbers("as_strided: sizes", size), _numbers("as_strided: strides", stride)
    if len(size) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(n < 0 for n in strides):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {strides}")
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {size}")
    offset = x._layout()[0] if storage_offset is None else int(storage_offset)
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    return x._strided(size, strides, offset)


def as_strided_(x, size, stride, storage_offset=None):
    """Becomes `as_strided` of itself."""
    return x._become(as_strided(x, size, stride, storage_offset))


def as_strided_scatter(x, src, size, stride, storage_offset=None):
    """A copy of `x` with `src` at the elements that `as_strided` names."""
    found = x.clone() if x.is_contiguous() and not x.storage_offset() else x._strided([x._layout()[2]], [1], 0).clone()
    if not isinstance(src, Tensor):
        raise TypeError(f"as_strided_scatter: src is a Tensor, not {type(src).__name__}")
    part = as_strided(found, size, stride, x.storage_offset() if storage_offset is None else storage_offset)
    if tuple(part.shape) != tuple(src.shape):
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(part.shape)}")
    part._write(src)
    return found if found.shape == x.shape else found._strided(list(x.shape), list(x.stride()), x.storage_offset())


def _changeable(name, x):
    if x.requires_grad and x.is_leaf:
        raise RuntimeError(f"{name}: a leaf Variable that requires grad is being used in an in-place operation.")


def set_(x, source=None, storage_offset=None, size=None, stride=None):
    """Becomes a tensor that shares the memory of `source`, whole or at strides; without one a tensor without elements."""
    _changeable("set_", x)
    if source is None:
        return x._become(Tensor.zeros(0, dtype=x.dtype, device=x.device))
    if not isinstance(source, Tensor):
        raise TypeError(f"set_(): argument 'source' must be Tensor, not {type(source).__name__}")
    if source.dtype != x.dtype:
        raise RuntimeError(f"Could not set tensor of type {source.dtype.name} to a tensor of type {x.dtype.name}")
    if source.device != x.device:
        raise RuntimeError(f"Attempted to set the storage of a tensor on device \"{x.device.spec}\" to a storage on different device \"{source.device.spec}\"")
    if size is None:
        return x._become(source.view(source.shape))
    return x._become(as_strided(source, size, _row_major(size) if stride is None else stride, storage_offset or 0))


def resize_(x, *sizes):
    """Becomes a tensor of another shape with the elements of its memory in order; elements that are new are zeros."""
    size = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    size = _numbers("resize_: sizes", tuple(size))
    if x.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {size}")
    if tuple(x.shape) == tuple(size):
        return x
    offset, _, held = x._layout()
    wanted = math.prod(size)
    if offset + wanted <= held:
        return x._become(as_strided(x, size, _row_major(size), offset))
    if not x._is_alone():
        raise RuntimeError("resize_: views of the tensor would share memory no longer; make a larger tensor and copy")
    old = x._strided([held - offset], [1], offset)
    return x._become(Tensor.cat([old, Tensor.zeros(wanted - held + offset, dtype=x.dtype, device=x.device)], 0).reshape(size))



def empty_strided(size, stride, *, dtype=None, device=None, requires_grad=False):
    """Zeros with these strides."""
    size, strides = _numbers("empty_strided: sizes", size), _numbers("empty_strided: strides", stride)
    if len(size) != len(strides):
        raise RuntimeError(f"empty_strided: dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(strides)})")
    held = 0 if 0 in size else 1 + sum((n - 1) * step for n, step in zip(size, strides))
    whole = Tensor.zeros(held, dtype=dtype or _default_float(), device=device)
    found = whole if size == [held] else as_strided(whole, size, strides)
    return found.requires_grad_() if requires_grad else found
