from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from ._core import DeviceLike, DTypeLike
from .lang import KernelGradient

_Function = Callable[..., Any]
_Rule = TypeVar("_Rule", bound=Callable[[KernelGradient], Any])

class Kernel:
    """A function of tensors that `zyx.kernel` made."""

    __name__: str
    __wrapped__: _Function
    def __call__(self, *tensors: Any) -> Any:
        """The result of the kernel, or a tuple of its results."""

    def with_size(self, **sizes: int) -> Kernel:
        """The kernel with sizes that no input says."""

    def with_parameter(self, **values: int) -> Kernel:
        """The kernel with other values of parameters; see `zyx.lang.Lang.parameter`."""

    def with_raw(
        self,
        language: str,
        code: str | bytes,
        *,
        entry: str,
        buffers: Sequence[tuple[DTypeLike, str]],
        launch: Callable[..., tuple[Sequence[int], Sequence[float]]],
        scalars: Sequence[DTypeLike] = (),
        threads: int | Sequence[int] = 1,
        shared_bytes: int = 0,
    ) -> Kernel:
        """The kernel with code of its own for one backend, which runs in its place on devices that have the language."""

    def gradient(self, rule: _Rule) -> _Rule:
        """Sets the gradient, as a decorator of a function that gives one cotangent, or `None`, for each input."""

    def check(self, *tensors: Any) -> None:
        """Runs the kernel in an interpreter that looks at each access."""

    def trace(self, *tensors: Any, at: Sequence[int]) -> list[str]:
        """The steps of one iteration of `each`, or of one group, in an interpreter: line, operation and result."""

    def to_text(self, *dtypes: DTypeLike, device: DeviceLike | None = None) -> str:
        """The kernel for inputs of these dtypes on a device, as text of the compiler's kernels."""

    @staticmethod
    def from_text(text: str) -> Kernel:
        """The kernel of a text that `to_text` gave, or that was written by hand, for the dtypes that it names."""

@overload
def kernel(function: _Function, *, elementwise: bool | None = None, name: str | None = None) -> Kernel:
    """A kernel that a function of Python writes: called with tensors, it gives lazy tensors."""

@overload
def kernel(function: None = None, *, elementwise: bool | None = None, name: str | None = None) -> Callable[[_Function], Kernel]: ...
