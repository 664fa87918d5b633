"""Names for annotations, as in `torch.types`."""

from typing import Any, Union

from ._core import Device as _Device
from ._core import DType as _dtype  # noqa: F401
from ._core import Tensor  # noqa: F401

Number = Union[int, float, bool]
Device = Union[_Device, str, int, None]
_int, _float, _bool, _size = int, float, bool, Union[tuple, list]
Storage = Any
