"""The native part of zyx: tensors, dtypes, devices.

This file is also the table that the bindings are made from: `build/` writes one for each method of
`Tensor` below that is not marked `# by hand`. An entry calls the method of that name in Rust with
the parameters in order, or else what its `# rust:` line says.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, overload

from ._size import Size as _Size

Scalar: TypeAlias = bool | int | float
# Under these names where a method has the others.
_float: TypeAlias = float
_int: TypeAlias = int
_bool: TypeAlias = bool
Size: TypeAlias = int
Int: TypeAlias = int
Axis: TypeAlias = int
Axes: TypeAlias = int | Sequence[int]
AxisList: TypeAlias = int | Sequence[int]
Shape: TypeAlias = int | Sequence[int]
Sizes: TypeAlias = int | Sequence[int]
Ints: TypeAlias = int | Sequence[int]
Sections: TypeAlias = int | Sequence[int]
Floats: TypeAlias = float | Sequence[float]
Quantiles: TypeAlias = float | Sequence[float] | Any
Pads: TypeAlias = Sequence[tuple[int, int]]
One: TypeAlias = int | Sequence[int]
Pair: TypeAlias = int | Sequence[int]
Triple: TypeAlias = int | Sequence[int]
Padding: TypeAlias = int | Sequence[int] | Literal["same", "valid"] | str
TensorLike: TypeAlias = Any
Operand: TypeAlias = Any
Tensors: TypeAlias = Iterable[Any]
DTypeLike: TypeAlias = DType | str | type | Any
DeviceLike: TypeAlias = Device | str
Reduction: TypeAlias = Literal["mean", "sum", "none"] | str
Indexing: TypeAlias = Literal["ij", "xy"] | str
Interpolation: TypeAlias = Literal["nearest", "nearest-exact", "linear", "cubic", "area"] | str
ScanOp: TypeAlias = Literal["add", "mul", "max", "min", "and", "or", "xor", "logaddexp"] | str
Float8: TypeAlias = Literal["e4m3", "e5m2"] | str
FftNorm: TypeAlias = Literal["backward", "ortho", "forward"] | str
MatrixNorm: TypeAlias = Literal["frobenius", "nuclear", "spectral", "columns", "rows"] | str
PadMode: TypeAlias = Literal["zeros", "reflect", "replicate", "circular"] | str
ScatterReduce: TypeAlias = Literal["sum", "prod", "mean", "amax", "amin"] | str
Key: TypeAlias = Any
Text: TypeAlias = str
Generator: TypeAlias = Rng
Bytes: TypeAlias = bytes

class Tensor:
    """An n-dimensional array on a device, computed when it is needed.

    `Tensor(data)` makes floats of the default dtype of nested lists, NumPy arrays and other data; `Tensor(2, 3)` are zeros of
    this shape, as in PyTorch. `Tensor(data, dtype=..)` and `zyx.tensor(data)` copy data in another dtype, or in its own.
    """

    def __init__(
        self,
        *data: Any,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: _bool = False,
    ) -> None:
        """Floats made of data, or zeros of these extents."""
        # by hand

    # What a tensor is.

    @property
    def shape(self) -> _Size:
        """The extents of the axes."""
        # by hand

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        # by hand

    @property
    def device(self) -> Device:
        """The device it is, or will be, stored on."""
        # by hand

    @property
    def ndim(self) -> _int:
        """Number of axes."""
        # by hand

    @property
    def size(self) -> Any:
        """Number of elements. Called, it is the shape: `x.size()`, `x.size(0)`."""
        # by hand

    @property
    def itemsize(self) -> _int:
        """Bytes of one element."""
        # by hand

    @property
    def nbytes(self) -> _int:
        """Bytes of all elements."""
        # by hand

    @property
    def requires_grad(self) -> _bool:
        """Whether gradients can flow through this tensor after its value was computed."""
        # by hand

    @property
    def T(self) -> Tensor:
        """With the axes in reverse order."""
        # by hand

    @property
    def mT(self) -> Tensor:
        """With the last two axes exchanged."""
        # by hand

    # Values out.

    def item(self) -> _bool | _int | _float:
        """The only element as a number of Python."""
        # by hand

    def tolist(self) -> Any:
        """The elements as lists within lists; a number for a tensor without axes."""
        # by hand

    def to_vec(self) -> list[Any]:
        """The elements as one list in row-major order."""
        # by hand

    def to_bytes(self) -> bytes:
        """The little-endian bytes of the elements in row-major order."""
        # by hand

    def numpy(self, *, copy: _bool = False) -> Any:
        """A NumPy array of the elements. On a device that computes in host memory the array shares it
        and is read-only, unless `copy=True`.
        """
        # by hand

    # Gradients.

    def gradient(self, *leaves: Any) -> list[Tensor]:
        """Gradients of this number for each of `leaves`; zeros for one it does not depend on."""
        # by hand

    @overload
    def requires_grad_(self, mode: _bool = True) -> Tensor: ...
        # by hand

    @overload
    def requires_grad_(self, requires_grad: _bool = True) -> Tensor:
        """With `requires_grad` as said: a tracked leaf, or cut off from its history."""
        # by hand

    def with_gradient(self, inputs: Tensors, rule: Any) -> Tensor:
        """These values, with gradients that flow to `inputs` by `rule` instead of being
        derived: `rule(inputs, output, cotangent)` gives one cotangent, or `None`, for each input.
        """
        # by hand

    # Operators.

    def __add__(self, other: Operand) -> Tensor: ...
    def __radd__(self, other: Operand) -> Tensor: ...
    def __sub__(self, other: Operand) -> Tensor: ...
    def __rsub__(self, other: Operand) -> Tensor: ...
    def __mul__(self, other: Operand) -> Tensor: ...
    def __rmul__(self, other: Operand) -> Tensor: ...
    def __truediv__(self, other: Operand) -> Tensor: ...
    def __rtruediv__(self, other: Operand) -> Tensor: ...
    def __floordiv__(self, other: Operand) -> Tensor: ...
    def __rfloordiv__(self, other: Operand) -> Tensor: ...
    def __mod__(self, other: Operand) -> Tensor: ...
    def __rmod__(self, other: Operand) -> Tensor: ...
    def __pow__(self, other: Operand) -> Tensor: ...
    def __rpow__(self, other: Operand) -> Tensor: ...
    def __matmul__(self, other: Operand) -> Tensor: ...
    def __rmatmul__(self, other: Operand) -> Tensor: ...
    def __and__(self, other: Operand) -> Tensor: ...
    def __rand__(self, other: Operand) -> Tensor: ...
    def __or__(self, other: Operand) -> Tensor: ...
    def __ror__(self, other: Operand) -> Tensor: ...
    def __xor__(self, other: Operand) -> Tensor: ...
    def __rxor__(self, other: Operand) -> Tensor: ...
    def __lshift__(self, other: Operand) -> Tensor: ...
    def __rlshift__(self, other: Operand) -> Tensor: ...
    def __rshift__(self, other: Operand) -> Tensor: ...
    def __rrshift__(self, other: Operand) -> Tensor: ...
    def __iadd__(self, other: Operand) -> Tensor: ...
    def __isub__(self, other: Operand) -> Tensor: ...
    def __imul__(self, other: Operand) -> Tensor: ...
    def __itruediv__(self, other: Operand) -> Tensor: ...
    def __ifloordiv__(self, other: Operand) -> Tensor: ...
    def __imod__(self, other: Operand) -> Tensor: ...
    def __ipow__(self, other: Operand) -> Tensor: ...
    def __iand__(self, other: Operand) -> Tensor: ...
    def __ior__(self, other: Operand) -> Tensor: ...
    def __ixor__(self, other: Operand) -> Tensor: ...
    def __ilshift__(self, other: Operand) -> Tensor: ...
    def __irshift__(self, other: Operand) -> Tensor: ...
    def __lt__(self, other: Operand) -> Tensor: ...
    def __le__(self, other: Operand) -> Tensor: ...
    def __gt__(self, other: Operand) -> Tensor: ...
    def __ge__(self, other: Operand) -> Tensor: ...
    def __eq__(self, other: Operand) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: Operand) -> Tensor: ...  # type: ignore[override]
    def __divmod__(self, other: Operand) -> tuple[Tensor, Tensor]: ...
    def __hash__(self) -> _int: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __getitem__(self, key: Any) -> Tensor: ...
    def __setitem__(self, key: Any, value: Operand) -> None: ...
    def __contains__(self, value: Operand) -> _bool: ...
    def __len__(self) -> _int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __bool__(self) -> _bool: ...
    def __float__(self) -> _float: ...
    def __int__(self) -> _int: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> _int: ...
    def __format__(self, spec: str) -> str: ...
    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> Any: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def __dlpack__(self, *, stream: Any = None, max_version: tuple[_int, _int] | None = None, dl_device: tuple[_int, _int] | None = None, copy: _bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[_int, _int]: ...

    # activation.rs

    def relu(self) -> Tensor:
        """`max(x, 0)`; NaN stays NaN."""

    @overload
    def leaky_relu(self, slope: _float = 0.01) -> Tensor: ...
        # by hand

    @overload
    def leaky_relu(self, negative_slope: _float = 0.01) -> Tensor:
        """`x` where positive, else `negative_slope * x`."""

    def sigmoid(self) -> Tensor:
        """`1 / (1 + e^-x)`."""

    def silu(self) -> Tensor:
        """`x * sigmoid(x)`, also called swish."""

    def softplus(self) -> Tensor:
        """`log(1 + e^x)`, without overflow."""

    def elu(self, alpha: _float = 1.0) -> Tensor:
        """`x` where positive, else `alpha * (e^x - 1)`."""

    def selu(self) -> Tensor:
        """The self-normalising activation of Klambauer et al. 2017."""

    def gelu(self) -> Tensor:
        """The Gaussian error linear unit in its tanh form (Hendrycks and Gimpel 2016)."""

    def gelu_exact(self) -> Tensor:
        """The Gaussian error linear unit by the error function."""

    def mish(self) -> Tensor:
        """`x * tanh(softplus(x))` (Misra 2019)."""

    # convolution.rs

    def conv2d(
        self, weight: TensorLike, bias: TensorLike | None = None, stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1, groups: Size = 1
    ) -> Tensor:
        """2-d convolution (cross-correlation) of `[n, channels, height, width]` with a weight `[out,
        channels / groups, kernel height, kernel width]` and a bias `[out]`. The result is `[n, out,
        ..]` with `(extent + 2 padding - dilation (kernel - 1) - 1) / stride + 1` positions along
        each axis. Halves accumulate in `f32`.
        """
        # rust: t.conv2d(&weight, bias.as_ref(), Conv2dOptions { stride, padding, dilation, groups })

    def conv1d(
        self, weight: TensorLike, bias: TensorLike | None = None, stride: Size = 1, padding: Size = 0, dilation: Size = 1, groups: Size = 1
    ) -> Tensor:
        """1-d convolution (cross-correlation) of `[n, channels, length]` with a weight `[out, channels
        / groups, kernel]` and a bias `[out]`; see `conv2d`.
        """
        # rust: t.conv1d(&weight, bias.as_ref(), Conv1dOptions { stride, padding, dilation, groups })

    # create.rs

    @staticmethod
    def from_bytes(data: Bytes, dtype: DTypeLike, shape: Shape, device: DeviceLike | None = None) -> Tensor:
        """A tensor from little-endian bytes of its elements in row-major order."""
        # rust: Tensor::from_bytes(&data, dtype, shape, device)

    @overload
    @staticmethod
    def zeros(*, size: Shape, dtype: DTypeLike = 'float32', device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def zeros(*shape: Shape, dtype: DTypeLike = "float32", device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
        """Zeros."""

    @overload
    @staticmethod
    def ones(*, size: Shape, dtype: DTypeLike = 'float32', device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def ones(*shape: Shape, dtype: DTypeLike = "float32", device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
        """Ones."""

    @overload
    @staticmethod
    def full(size: Shape, fill_value: Scalar, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def full(
        shape: Shape, value: Scalar, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: _bool = False
    ) -> Tensor:
        """Every element equal to `x`."""
        # rust: value.full(shape, dtype, device)

    def zeros_like(self, *, dtype: DTypeLike | None = None, requires_grad: _bool = False) -> Tensor:
        """Zeros with shape, device and, if no other is given, dtype of `self`."""
        # rust: forms::cast(&t.zeros_like(), dtype)

    def ones_like(self, *, dtype: DTypeLike | None = None, requires_grad: _bool = False) -> Tensor:
        """Ones with shape, device and, if no other is given, dtype of `self`."""
        # rust: forms::cast(&t.ones_like(), dtype)

    @staticmethod
    def iota(n: Size, dtype: DTypeLike = "int64", device: DeviceLike | None = None) -> Tensor:
        """`0, 1, …, n - 1` in any dtype."""

    @staticmethod
    def arange(
        start: Scalar, end: Scalar | None = None, step: Scalar | None = None, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: _bool = False
    ) -> Tensor:
        """`start, start + step, …` up to but not including `end`, in the dtype of the numbers."""
        # rust: create::arange(start, end, step, dtype, device)

    @overload
    @staticmethod
    def linspace(start: _float, end: _float, steps: Size = 50, dtype: DTypeLike = 'float32', device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def linspace(
        start: _float, end: _float, n: Size = 50, dtype: DTypeLike = "float32", device: DeviceLike | None = None, requires_grad: _bool = False
    ) -> Tensor:
        """`n` numbers from `start` to `end`, both included, evenly spaced, as `f32`."""
        # rust: create::linspace(start, end, n, dtype, device)

    @staticmethod
    def eye(
        n: Size, m: Size | None = None, *, dtype: DTypeLike = "float32", device: DeviceLike | None = None, requires_grad: _bool = False
    ) -> Tensor:
        """The identity matrix of order `n`, or the matrix of `n` rows and `m` columns with ones on its diagonal."""
        # rust: forms::eye(n, m, dtype, device)

    def tril(self, diagonal: Int = 0) -> Tensor:
        """The elements on and below the `diagonal`-th diagonal of the last two axes, zeros above."""

    def triu(self, diagonal: Int = 0) -> Tensor:
        """The elements on and above the `diagonal`-th diagonal of the last two axes, zeros below."""

    # data.rs

    # elementwise.rs

    def cast(self, dtype: DTypeLike) -> Tensor:
        """The elements converted to `dtype` (rules: `crate::scalar`)."""

    def bitcast(self, dtype: DTypeLike) -> Tensor:
        """The bits of the elements read as another dtype of the same width."""
        # view: views::bits(t.bitcast(dtype))

    def neg(self) -> Tensor:
        """`-x`; wraps on integers, bools count as integers."""

    def abs(self) -> Tensor:
        """`|x|`."""

    def recip(self) -> Tensor:
        """`1 / x`."""

    def sqrt(self) -> Tensor:
        """Square root."""

    def exp(self) -> Tensor:
        """`e^x`."""

    def exp2(self) -> Tensor:
        """`2^x`."""

    def expm1(self) -> Tensor:
        """`e^x - 1`, accurate near zero."""

    def log(self) -> Tensor:
        """Natural logarithm."""

    def log2(self) -> Tensor:
        """Base-2 logarithm."""

    def log1p(self) -> Tensor:
        """`log(1 + x)`, accurate near zero."""

    def sin(self) -> Tensor:
        """Sine of radians."""

    def cos(self) -> Tensor:
        """Cosine of radians."""

    def tan(self) -> Tensor:
        """Tangent of radians."""

    def asin(self) -> Tensor:
        """Arc sine in radians."""

    def acos(self) -> Tensor:
        """Arc cosine in radians."""

    def atan(self) -> Tensor:
        """Arc tangent in radians."""

    def sinh(self) -> Tensor:
        """Hyperbolic sine."""

    def cosh(self) -> Tensor:
        """Hyperbolic cosine."""

    def tanh(self) -> Tensor:
        """Hyperbolic tangent."""

    def erf(self) -> Tensor:
        """Error function."""

    def floor(self) -> Tensor:
        """Largest integer not above."""

    def ceil(self) -> Tensor:
        """Smallest integer not below."""

    def round(self, *, decimals: Int = 0) -> Tensor:
        """Nearest integer, ties to even; or nearest number with `decimals` digits behind the point."""
        # rust: forms::round(t, decimals)

    def trunc(self) -> Tensor:
        """Integer part."""

    @overload
    def add(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def add(self, other: Operand) -> Tensor:
        """Sum, with broadcasting and promotion."""

    @overload
    def sub(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def sub(self, other: Operand) -> Tensor:
        """Difference."""

    @overload
    def mul(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def mul(self, other: Operand) -> Tensor:
        """Product."""

    @overload
    def fmod(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def fmod(self, other: Operand) -> Tensor:
        """Remainder with the sign of the dividend (C's `fmod`)."""

    @overload
    def atan2(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def atan2(self, other: Operand) -> Tensor:
        """Angle of the point `(rhs, self)` in radians."""

    @overload
    def maximum(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def maximum(self, other: Operand) -> Tensor:
        """Elementwise larger value; NaN if either is."""

    @overload
    def minimum(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def minimum(self, other: Operand) -> Tensor:
        """Elementwise smaller value; NaN if either is."""

    @overload
    def bitwise_and(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def bitwise_and(self, other: Operand) -> Tensor:
        """Bitwise and; logical on bool."""

    @overload
    def bitwise_or(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def bitwise_or(self, other: Operand) -> Tensor:
        """Bitwise or; logical on bool."""

    @overload
    def bitwise_xor(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def bitwise_xor(self, other: Operand) -> Tensor:
        """Bitwise exclusive or; logical on bool."""

    @overload
    def shl(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def shl(self, other: Operand) -> Tensor:
        """Shift left."""

    @overload
    def shr(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def shr(self, other: Operand) -> Tensor:
        """Shift right, arithmetic on signed integers."""

    @overload
    def lt(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def lt(self, other: Operand) -> Tensor:
        """`self < rhs`, as bool."""

    @overload
    def le(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def le(self, other: Operand) -> Tensor:
        """`self <= rhs`, as bool."""

    @overload
    def eq(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def eq(self, other: Operand) -> Tensor:
        """`self == rhs`, as bool; NaN equals nothing."""

    @overload
    def ne(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def ne(self, other: Operand) -> Tensor:
        """`self != rhs`, as bool."""

    @overload
    def div(self, rhs: Operand, *, rounding_mode: Text | None = None) -> Tensor: ...
        # by hand

    @overload
    def div(self, other: Operand, *, rounding_mode: Text | None = None) -> Tensor:
        """True division: integers are converted to `f32` first. Rounded down (`"floor"`) or towards zero
        (`"trunc"`) if `rounding_mode` says so, in the promoted dtype.
        """
        # rust: forms::div(t, other, rounding_mode)

    @overload
    def trunc_divide(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def trunc_divide(self, other: Operand) -> Tensor:
        """Division truncated towards zero, in the promoted dtype; an integer divided by 0 is 0."""

    @overload
    def floor_divide(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def floor_divide(self, other: Operand) -> Tensor:
        """Division rounded down, as Python's `//`; an integer divided by 0 is 0."""

    @overload
    def remainder(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def remainder(self, other: Operand) -> Tensor:
        """Remainder with the sign of the divisor, as Python's `%`; `x % 0` is `x` on integers."""

    @overload
    def pow(self, exponent: Operand) -> Tensor: ...
        # by hand

    @overload
    def pow(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def pow(self, other: Operand) -> Tensor:
        """`self` to the power `rhs`. An integer to a negative power is 0, unless the base is 1 or -1."""

    @overload
    def gt(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def gt(self, other: Operand) -> Tensor:
        """`self > rhs`, as bool."""

    @overload
    def ge(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def ge(self, other: Operand) -> Tensor:
        """`self >= rhs`, as bool."""

    def bitwise_not(self) -> Tensor:
        """Bitwise complement; logical on bool."""

    def logical_not(self) -> Tensor:
        """Whether each element is zero (false)."""

    @overload
    def logical_and(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def logical_and(self, other: Operand) -> Tensor:
        """Both nonzero."""

    @overload
    def logical_or(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def logical_or(self, other: Operand) -> Tensor:
        """Either nonzero."""

    def where_(self, x: Operand, y: Operand) -> Tensor:
        """Where `self` (as bool) holds, `x`, elsewhere `y`; all three broadcast."""

    def rsqrt(self) -> Tensor:
        """`1 / sqrt(x)`."""

    def square(self) -> Tensor:
        """`x * x`."""

    def sign(self) -> Tensor:
        """-1, 0 or 1; NaN stays NaN."""

    def is_nan(self) -> Tensor:
        """Whether each element is NaN."""

    def is_inf(self) -> Tensor:
        """Whether each element is positive or negative infinity."""

    def is_finite(self) -> Tensor:
        """Whether each element is neither NaN nor infinite."""

    def clamp(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """Each element limited to `min ..= max`."""
        # rust: create::clamp(t, min, max)

    def lerp(self, end: Operand, weight: Operand) -> Tensor:
        """`self + weight * (end - self)`."""

    # index.rs

    @overload
    def gather(self, dim: Axis, index: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def gather(self, axis: Axis, index: TensorLike) -> Tensor:
        """`out[.., i, ..] = self[.., index[.., i, ..], ..]` along `axis`; `index` has the result's
        shape and at most this tensor's extent along the other axes.
        """

    @overload
    def index_select(self, dim: Axis, index: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def index_select(self, axis: Axis, index: TensorLike) -> Tensor:
        """The entries `index` (one axis) of one axis, in that order: time linear in the result."""

    @overload
    def embedding(self, indices: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def embedding(self, index: TensorLike) -> Tensor:
        """Rows of a `[vocabulary, width]` table: the shape of `index` with `width` appended."""

    @overload
    def scatter(self, dim: Axis, index: TensorLike, src: Operand) -> Tensor: ...
        # by hand

    @overload
    def scatter(self, axis: Axis, index: TensorLike, src: Operand) -> Tensor:
        """This tensor with `src[.., i, ..]` written to `[.., index[.., i, ..], ..]`; of several writes
        to one place the last in row-major order holds. `src` may be a number.
        """
        # rust: forms::scatter(t, axis, &index, src)

    @overload
    def scatter_add(self, dim: Axis, index: TensorLike, src: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def scatter_add(self, axis: Axis, index: TensorLike, src: TensorLike) -> Tensor:
        """This tensor with `src[.., i, ..]` added to `[.., index[.., i, ..], ..]`."""

    def one_hot(self, classes: Size) -> Tensor:
        """A new last axis of extent `classes`, true at the element's value."""

    # linalg.rs

    @overload
    def vdot(self, rhs: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def vdot(self, other: TensorLike) -> Tensor:
        """Sum of products of two vectors; the same as `dot`, as no number is complex."""

    @overload
    def matmul(self, rhs: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def matmul(self, other: TensorLike) -> Tensor:
        """Matrix product over the last two axes; leading axes broadcast. A vector on the left is a
        row, on the right a column, and its axis disappears. Halves accumulate in `f32`.
        """

    @overload
    def dot(self, tensor: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def dot(self, rhs: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def dot(self, other: TensorLike) -> Tensor:
        """Sum of the products of two vectors of equal length."""

    # loss.rs

    def cross_entropy(
        self, target: TensorLike, ignore_index: Int | None = None, label_smoothing: _float = 0.0, reduction: Reduction = "mean"
    ) -> Tensor:
        """Mean cross entropy of logits `[n, classes, ..]` (or `[classes]`) against class numbers `[n,
        ..]` (or a scalar) of any integer dtype: `logsumexp(x) - x[target]`.
        """
        # rust: t.cross_entropy_with(&target, CrossEntropy { ignore_index, label_smoothing, reduction, ..CrossEntropy::default() })

    def nll_loss(
        self, target: TensorLike, ignore_index: Int | None = None, reduction: Reduction = "mean"
    ) -> Tensor:
        """Mean negative log-likelihood of log-probabilities `[n, classes, ..]` (or `[classes]`)
        against class numbers `[n, ..]`: `-x[target]`. A class number out of range is an
        IndexError, at the call or when the loss is read.
        """
        # rust: t.nll_loss(&target, CrossEntropy { ignore_index, reduction, ..CrossEntropy::default() })

    def mse_loss(self, target: TensorLike, reduction: Reduction = "mean") -> Tensor:
        """Squared difference."""

    def l1_loss(self, target: TensorLike, reduction: Reduction = "mean") -> Tensor:
        """Absolute difference."""

    def huber_loss(self, target: TensorLike, delta: _float = 1.0, reduction: Reduction = "mean") -> Tensor:
        """Huber's loss (1964) of the difference `d`: `d^2 / 2` up to `delta`, from there on the line
        `delta * (|d| - delta / 2)`.
        """

    def smooth_l1_loss(self, target: TensorLike, beta: _float = 1.0, reduction: Reduction = "mean") -> Tensor:
        """Huber's loss divided by `beta`: slope 1 beyond `beta`."""

    def bce_loss(self, target: TensorLike, reduction: Reduction = "mean") -> Tensor:
        """Binary cross entropy of probabilities: `-(y log x + (1 - y) log(1 - x))`, each logarithm
        held above -100 so that a wrong certainty costs much but not infinity, as in PyTorch.
        """

    def bce_with_logits_loss(self, target: TensorLike, reduction: Reduction = "mean") -> Tensor:
        """Binary cross entropy of logits, without overflow: `max(x, 0) - x y + log(1 + e^-|x|)`."""

    def kl_div_loss(self, target: TensorLike, reduction: Reduction = "mean") -> Tensor:
        """Pointwise Kullback-Leibler terms of log-probabilities against target probabilities: `y (log
        y - x)`, 0 where `y` is 0. Their mean is over elements, not over the batch.
        """

    # mod.rs

    def rank(self) -> _int:
        """Number of axes."""

    def numel(self) -> _int:
        """Number of elements."""

    def is_realized(self) -> _bool:
        """Whether the value has been computed."""

    def tracked(self) -> Tensor:
        """The same values as a tracked leaf: a parameter. Everything computed from it keeps its
        history, so `grad` works even after values were read.
        """
        # by hand

    def detach(self) -> Tensor:
        """The same elements without history: no gradient flows back. A write to the one changes the other."""
        # by hand

    def realize(self) -> Tensor:
        """Computes the value, if it is not there yet. Gives the tensor itself."""
        # by hand

    @staticmethod
    def realize_all(tensors: Tensors) -> None:
        """Computes several values as one plan, sharing work between them. The tensors may be on
        different devices.
        """
        # rust: Tensor::realize_all(tensors.list())

    # movement.rs

    def reshape(self, *shape: Ints) -> Tensor:
        """The same elements, in row-major order, with another shape."""
        # view: views::reshaped(create::reshape(t, &shape))

    @overload
    def flatten(self, start_dim: Axis = 0, end_dim: Axis = -1) -> Tensor: ...
        # by hand

    @overload
    def flatten(self, start_axis: Axis = 0, end_axis: Axis = -1) -> Tensor:
        """The axes from `start_axis` to `end_axis` (inclusive) as one; all of them if none is named."""
        # view: views::reshaped(forms::flatten(t, start_axis, end_axis))

    @overload
    def flatten_axes(self, start_dim: Axis = 0, end_dim: Axis = -1) -> Tensor: ...
        # by hand

    @overload
    def flatten_axes(self, start_axis: Axis = 0, end_axis: Axis = -1) -> Tensor:
        """The axes from `start` to `end` (inclusive) merged into one."""
        # view: views::reshaped(t.flatten_axes(start_axis, end_axis))

    @overload
    def permute(self, *, dims: AxisList) -> Tensor: ...
        # by hand

    @overload
    def permute(self, *, dim: AxisList) -> Tensor: ...
        # by hand

    @overload
    def permute(self, *axis: AxisList) -> Tensor:
        """The axes in another order: axis `i` of the result is axis `axes[i]` of this."""
        # view: views::permuted(t, &axis, t.permute(&axis))

    @overload
    def transpose(self, dim0: Axis = -2, dim1: Axis = -1) -> Tensor: ...
        # by hand

    @overload
    def transpose(self, axis0: Axis = -2, axis1: Axis = -1) -> Tensor:
        """Two axes exchanged."""
        # view: views::exchanged(t, axis0, axis1, t.transpose(axis0, axis1))

    def t(self) -> Tensor:
        """The last two axes exchanged; all axes reversed below rank 2 (so: unchanged)."""
        # view: views::exchanged(t, if t.rank() < 2 { -1 } else { -2 }, -1, Ok(t.t()))

    @overload
    def expand(self, *, size: Ints) -> Tensor: ...
        # by hand

    @overload
    def expand(self, *shape: Ints) -> Tensor:
        """Axes of extent 1 repeated to `shape`; missing leading axes are added."""
        # view: views::expanded(create::expand(t, &shape))

    @overload
    def unsqueeze(self, dim: Axis) -> Tensor: ...
        # by hand

    @overload
    def unsqueeze(self, axis: Axis) -> Tensor:
        """A new axis of extent 1 before `axis`; -1 adds it at the end."""
        # view: views::reshaped(t.unsqueeze(axis))

    @overload
    def squeeze(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def squeeze(self, axis: Axes | None = None) -> Tensor:
        """Without those of the axes that have extent 1; of all axes if none is named."""
        # view: views::reshaped(forms::squeeze(t, axis.clone()))

    def pad(self, padding: Pads) -> Tensor:
        """Zeros added before and after each axis."""

    def pad_with(self, padding: Pads, value: _float) -> Tensor:
        """Elements of value `value` added before and after each axis."""

    def shrink(self, ranges: Pads) -> Tensor:
        """The block from `ranges[i].0` up to `ranges[i].1` along each axis."""
        # view: views::shrunk(&ranges.iter().map(|range| range.0).collect::<Vec<_>>(), t.shrink(&ranges))

    @overload
    def slice(self, dim: Axis, start: Size = 0, end: Size | None = None) -> Tensor: ...
        # by hand

    @overload
    def slice(self, axis: Axis, start: Size = 0, end: Size | None = None) -> Tensor:
        """The elements of one axis within a range, as `x.slice(1, 2..5)`."""
        # view: views::sliced(t, axis, start, 1, create::slice(t, axis, start, end))

    @overload
    def stride(self, dim: Axis, start: Size = 0, step: Size = 1) -> Tensor: ...
        # by hand

    @overload
    def stride(self, dim: _int | None = None) -> Any: ...
        # by hand

    @overload
    def stride(self, axis: Axis, start: Size = 0, step: Size = 1) -> Tensor:
        """Every `step`-th element of one axis, from `start` on."""
        # view: views::sliced(t, axis, start, step, t.stride(axis, start, step))

    @overload
    def select_index(self, dim: Axis, index: Axis) -> Tensor: ...
        # by hand

    @overload
    def select_index(self, axis: Axis, position: Axis) -> Tensor:
        """One position of an axis; the axis disappears."""
        # view: views::selected(t, axis, position, t.select_index(axis, position))

    @overload
    def flip(self, *, dims: Axes) -> Tensor: ...
        # by hand

    @overload
    def flip(self, *, dim: Axes) -> Tensor: ...
        # by hand

    @overload
    def flip(self, *axis: Axes) -> Tensor:
        """The order of elements along the axes reversed."""

    @overload
    @staticmethod
    def cat(tensors: Tensors, dim: Axis = 0) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def cat(tensors: Tensors, axis: Axis = 0) -> Tensor:
        """Tensors joined along an existing axis; dtypes are promoted."""

    @overload
    @staticmethod
    def stack(tensors: Tensors, dim: Axis = 0) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def stack(tensors: Tensors, axis: Axis = 0) -> Tensor:
        """Tensors of one shape joined along a new axis."""

    @overload
    def split(self, split_size: Sections, dim: Axis = 0) -> list[Tensor]: ...
        # by hand

    @overload
    def split(self, split_size_or_sections: Sections, dim: Axis = 0) -> list[Tensor]: ...
        # by hand

    @overload
    def split(self, size: Sections, axis: Axis = 0) -> list[Tensor]:
        """Pieces of extent `size` along an axis, the last one smaller if need be; or of the extents that
        a list gives.
        """
        # views: views::parts(t, axis, None, forms::split(t, &size, axis))

    @overload
    def chunk(self, chunks: Size, dim: Axis = 0) -> list[Tensor]: ...
        # by hand

    @overload
    def chunk(self, n: Size, axis: Axis = 0) -> list[Tensor]:
        """`n` pieces along an axis, the first ones larger by one if it does not divide."""
        # views: views::parts(t, axis, None, t.chunk(n, axis))

    @overload
    def repeat(self, *, repeats: Sizes) -> Tensor: ...
        # by hand

    @overload
    def repeat(self, *times: Sizes) -> Tensor:
        """The tensor repeated `times[i]` times along each axis; more numbers than axes make new axes in
        front.
        """
        # rust: forms::repeat(t, &times)

    def to_device(self, device: DeviceLike) -> Tensor:
        """The same values on another device."""

    def contiguous(self) -> Tensor:
        """The elements next to each other in row-major order, stored as they are: a point at which fusion stops. The same
        memory if they are so already, else a copy.
        """
        # by hand

    # normalize.rs

    @overload
    def softmax(self, dim: Axes = -1, *, dtype: DTypeLike | None = None) -> Tensor: ...
        # by hand

    @overload
    def softmax(self, axis: Axes = -1, *, dtype: DTypeLike | None = None) -> Tensor:
        """`exp(x) / sum(exp(x))` along axes, without overflow. A slice of only `-inf` gives NaN."""
        # rust: forms::in_dtype(t, dtype, |t| t.softmax(axis))

    @overload
    def log_softmax(self, dim: Axes = -1, *, dtype: DTypeLike | None = None) -> Tensor: ...
        # by hand

    @overload
    def log_softmax(self, axis: Axes = -1, *, dtype: DTypeLike | None = None) -> Tensor:
        """`x - log(sum(exp(x)))` along axes: the logarithm of `softmax`, accurate where that underflows."""
        # rust: forms::in_dtype(t, dtype, |t| t.log_softmax(axis))

    @overload
    def layer_norm(self, dim: Axes = -1, weight: TensorLike | None = None, bias: TensorLike | None = None, eps: _float = 1e-05) -> Tensor: ...
        # by hand

    @overload
    def layer_norm(
        self, axis: Axes = -1, weight: TensorLike | None = None, bias: TensorLike | None = None, eps: _float = 1e-5
    ) -> Tensor:
        """Layer normalisation (Ba et al. 2016): mean 0 and variance 1 along `axes` (usually -1), `(x -
        mean) / sqrt(var + eps)`, then times `weight` plus `bias`, which broadcast (so have the
        shape of the last axes).
        """

    @overload
    def rms_norm(self, dim: Axes = -1, weight: TensorLike | None = None, eps: _float = 1e-06) -> Tensor: ...
        # by hand

    @overload
    def rms_norm(self, axis: Axes = -1, weight: TensorLike | None = None, eps: _float = 1e-6) -> Tensor:
        """Root mean square normalisation (Zhang and Sennrich 2019): `x / sqrt(mean(x^2) + eps)` along
        `axes`, then times `weight`.
        """

    def batch_norm(
        self, weight: TensorLike | None = None, bias: TensorLike | None = None, eps: _float = 1e-5
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Batch normalisation in training (Ioffe and Szegedy 2015): each channel (axis 1) has mean 0
        and variance 1 over all other axes, then is scaled by `weight` and moved by `bias`, both
        `[channels]`. The statistics come along, for the running averages.
        """

    def batch_norm_with(
        self, mean: TensorLike, var: TensorLike, weight: TensorLike | None = None, bias: TensorLike | None = None, eps: _float = 1e-5
    ) -> Tensor:
        """Batch normalisation with given statistics, both `[channels]`: what a trained network does."""

    @overload
    def group_norm(self, num_groups: Size, weight: TensorLike | None = None, bias: TensorLike | None = None, eps: _float = 1e-05) -> Tensor: ...
        # by hand

    @overload
    def group_norm(
        self, groups: Size, weight: TensorLike | None = None, bias: TensorLike | None = None, eps: _float = 1e-5
    ) -> Tensor:
        """Group normalisation (Wu and He 2018): the channels (axis 1) in `groups` equal groups, each
        with mean 0 and variance 1 per batch element, then scaled by `weight` and moved by `bias`,
        both `[channels]`.
        """

    @overload
    def normalize(self, dim: Axes = -1, eps: _float = 1e-12) -> Tensor: ...
        # by hand

    @overload
    def normalize(self, axis: Axes = -1, eps: _float = 1e-12) -> Tensor:
        """Divided by the Euclidean norm along axes, or by `eps` if that is larger."""

    # pool.rs

    @overload
    def max_pool2d(self, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0, dilation: Pair = 1, ceil_mode: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def max_pool2d(
        self, kernel: Pair, stride: Pair | None = None, padding: Pair = 0, dilation: Pair = 1, ceil_mode: _bool = False
    ) -> Tensor:
        """The largest element of each window over the last two axes; NaN if it has one. What is padded
        never wins.
        """
        # rust: t.max_pool2d(Pool { stride: stride.unwrap_or(kernel), padding, dilation, ceil_mode, ..Pool::new(kernel) })

    def avg_pool2d(
        self, kernel: Pair, stride: Pair | None = None, padding: Pair = 0, dilation: Pair = 1, ceil_mode: _bool = False, count_include_pad: _bool = True
    ) -> Tensor:
        """The mean of each window over the last two axes; padded zeros count, unless
        `Pool::count_include_pad` says otherwise. Integers give `f32`.
        """
        # rust: t.avg_pool2d(Pool { stride: stride.unwrap_or(kernel), padding, dilation, ceil_mode, count_include_pad, ..Pool::new(kernel) })

    def avg_pool2d_inside(
        self, kernel: Pair, stride: Pair | None = None, padding: Pair = 0, dilation: Pair = 1
    ) -> Tensor:
        """The mean of each window over the last two axes, without counting what is padded."""
        # rust: t.avg_pool2d_inside(Pool2d { stride: stride.unwrap_or(kernel), padding, dilation, ..Pool2d::new(kernel) })

    def global_avg_pool2d(self) -> Tensor:
        """The mean over the last two axes, which go."""

    def adaptive_avg_pool2d(self, output: Pair) -> Tensor:
        """Means over the last two axes, which become `output`: along an axis of extent `n` made `m`,
        element `i` is the mean of `floor(i n / m) .. ceil((i + 1) n / m)`, as in PyTorch.
        """

    # random.rs

    @overload
    @staticmethod
    def rand(*shape: Shape, dtype: DTypeLike = 'float32', generator: Any = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def rand(*, size: Shape, dtype: DTypeLike = 'float32', generator: Any = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def rand(
        *shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None, requires_grad: _bool = False
    ) -> Tensor:
        """Uniform on `[0, 1)`: all multiples of 2^-24 (`f32`; 2^-53 for `f64`, 2^-11 for `f16`, 2^-8
        for `bf16`) are equally likely.
        """

    @staticmethod
    def rand_range(
        low: _float, high: _float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Uniform on `[low, high)`; rounding can yield `high` itself."""

    @overload
    @staticmethod
    def randn(*shape: Shape, dtype: DTypeLike = 'float32', generator: Any = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def randn(*, size: Shape, dtype: DTypeLike = 'float32', generator: Any = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def randn(
        *shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None, requires_grad: _bool = False
    ) -> Tensor:
        """Normal with mean 0 and variance 1, by the transform of Box and Muller (1958): `sqrt(-2 log
        u) cos(2 pi v)` with `u` in `(0, 1]`, computed in `f32` for halves. The largest number is
        about 5.8 in `f32` (24 bits of `u`) and 6.7 in `f64` (32 bits).
        """

    @staticmethod
    def randint(
        low: Int, high: Any = None, shape: Any = None, dtype: DTypeLike = "int64", rng: Generator | None = None, device: DeviceLike | None = None, *, size: Any = None, generator: Generator | None = None
    ) -> Tensor:
        """Integers from `low` up to but not including `high`, equally likely up to `range / 2^64`. `randint(high, shape)`
        starts at 0.
        """
        # by hand

    @staticmethod
    def _randint(
        low: Int, high: Int, shape: Shape, dtype: DTypeLike = "int64", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """`randint` with all of its numbers."""
        # rust: Tensor::randint(low, high, shape, dtype, &mut rng, device)

    @overload
    @staticmethod
    def bernoulli(p: _float, shape: Shape, generator: Any = None, device: DeviceLike | None = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def bernoulli(
        p: _float, shape: Shape, rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """True with probability `p` (rounded to a multiple of 2^-24), as bool."""

    @overload
    @staticmethod
    def permutation(n: Size, generator: Any = None, device: DeviceLike | None = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def permutation(n: Size, rng: Generator | None = None, device: DeviceLike | None = None) -> Tensor:
        """The numbers `0..n` in random order, as `i64`; shuffled on the host (Fisher and Yates)."""

    def dropout(self, p: _float = 0.5, rng: Generator | None = None) -> Tensor:
        """Each element set to zero with probability `p`, the others scaled by `1 / (1 - p)`, so that
        the mean stays (Srivastava et al. 2014). With `p` 0 this is `self` and takes no blocks.
        """

    # reduce.rs

    @overload
    def sum(self, dim: Axes | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor: ...
        # by hand

    @overload
    def sum(self, axis: Axes | None = None, keepdims: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor: ...
        # by hand

    @overload
    def sum(self, axis: Axes | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """Sum. Integers are summed in 64 bits; the sum of nothing is 0."""
        # rust: forms::in_dtype(t, dtype, |t| if keepdim { t.sum_keepdim(axis) } else { t.sum(axis) })

    @overload
    def sum_keepdim(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def sum_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Sum. Integers are summed in 64 bits; the sum of nothing is 0."""

    @overload
    def prod(self, dim: Axes | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor: ...
        # by hand

    @overload
    def prod(self, axis: Axes | None = None, keepdims: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor: ...
        # by hand

    @overload
    def prod(self, axis: Axes | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """Product. Integers are multiplied in 64 bits; the product of nothing is 1."""
        # rust: forms::in_dtype(t, dtype, |t| if keepdim { t.prod_keepdim(axis) } else { t.prod(axis) })

    @overload
    def prod_keepdim(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def prod_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Product. Integers are multiplied in 64 bits; the product of nothing is 1."""

    @overload
    def max(self, dim: Axes | None = None, keepdim: _bool = False) -> Any: ...
        # by hand

    @overload
    def max(self, axis: Axes | None = None, keepdims: _bool = False) -> Any: ...
        # by hand

    @overload
    def max(self, axis: Axes | None = None, keepdim: _bool = False) -> Any:
        """Largest element; NaN if there is one; `-inf` or the dtype's minimum of nothing. With one axis,
        given by place or as `dim`, the values and their positions (`i64`), as PyTorch does; as `axis`
        the values alone, as NumPy does.
        """

    @overload
    def max_keepdim(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def max_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Largest element; NaN if there is one; `-inf` or the dtype's minimum of nothing."""

    @overload
    def min(self, dim: Axes | None = None, keepdim: _bool = False) -> Any: ...
        # by hand

    @overload
    def min(self, axis: Axes | None = None, keepdims: _bool = False) -> Any: ...
        # by hand

    @overload
    def min(self, axis: Axes | None = None, keepdim: _bool = False) -> Any:
        """Smallest element; NaN if there is one; `inf` or the dtype's maximum of nothing. With one axis
        values or both, see `max`.
        """

    @overload
    def min_keepdim(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def min_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Smallest element; NaN if there is one; `inf` or the dtype's maximum of nothing."""

    @overload
    def mean(self, dim: Axes | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor: ...
        # by hand

    @overload
    def mean(self, axis: Axes | None = None, keepdims: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor: ...
        # by hand

    @overload
    def mean(self, axis: Axes | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """Arithmetic mean; NaN of nothing. Integers give `f32`."""
        # rust: forms::mean(t, axis, keepdim, dtype)

    @overload
    def mean_keepdim(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def mean_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Arithmetic mean; NaN of nothing. Integers give `f32`."""

    @overload
    def any(self, dim: Axes | None = None, keepdim: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def any(self, axis: Axes | None = None, keepdims: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def any(self, axis: Axes | None = None, keepdim: _bool = False) -> Tensor:
        """Whether any element is nonzero; false of nothing."""

    @overload
    def any_keepdim(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def any_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Whether any element is nonzero; false of nothing."""

    @overload
    def all(self, dim: Axes | None = None, keepdim: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def all(self, axis: Axes | None = None, keepdims: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def all(self, axis: Axes | None = None, keepdim: _bool = False) -> Tensor:
        """Whether all elements are nonzero; true of nothing."""

    @overload
    def all_keepdim(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def all_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Whether all elements are nonzero; true of nothing."""

    @overload
    def logsumexp(self, dim: Axes | None = None, keepdim: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def logsumexp(self, axis: Axes | None = None, keepdims: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def logsumexp(self, axis: Axes | None = None, keepdim: _bool = False) -> Tensor:
        """`log(sum(exp(x)))`, without overflow."""

    @overload
    def logsumexp_keepdim(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def logsumexp_keepdim(self, axis: Axes | None = None) -> Tensor:
        """`log(sum(exp(x)))`, without overflow."""

    @overload
    def norm(self, p: Scalar | None = None, dim: Axes | None = None, keepdim: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def norm(self, p: Scalar | None = None, axis: Axes | None = None, keepdims: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def norm(self, p: Scalar | None = None, axis: Axes | None = None, keepdim: _bool = False) -> Tensor:
        """The p-norm of the elements along axes; if no `p` is given, the square root of the sum of squares."""
        # rust: forms::norm(t, p, axis, keepdim)

    @overload
    def norm_keepdim(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def norm_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Square root of the sum of squares."""

    @overload
    def var(self, dim: Axes | None = None, correction: Size = 1, keepdim: _bool = False, *, unbiased: _bool | None = None) -> Tensor: ...
        # by hand

    @overload
    def var(self, axis: Axes | None = None, correction: Size = 1, keepdims: _bool = False, *, unbiased: _bool | None = None) -> Tensor: ...
        # by hand

    @overload
    def var(
        self, axis: Axes | None = None, correction: Size = 1, keepdim: _bool = False, *, unbiased: _bool | None = None
    ) -> Tensor:
        """Variance along axes, with `correction` subtracted from the count (1: unbiased estimate, which
        `unbiased=True` is another name for).
        """
        # rust: forms::var(t, axis, unbiased.map_or(correction, usize::from), keepdim)

    @overload
    def var_keepdim(self, dim: Axes | None = None, correction: Size = 1) -> Tensor: ...
        # by hand

    @overload
    def var_keepdim(self, axis: Axes | None = None, correction: Size = 1) -> Tensor:
        """As `var`, keeping the axes with extent 1."""

    @overload
    def std(self, dim: Axes | None = None, correction: Size = 1, keepdim: _bool = False, *, unbiased: _bool | None = None) -> Tensor: ...
        # by hand

    @overload
    def std(self, axis: Axes | None = None, correction: Size = 1, keepdims: _bool = False, *, unbiased: _bool | None = None) -> Tensor: ...
        # by hand

    @overload
    def std(
        self, axis: Axes | None = None, correction: Size = 1, keepdim: _bool = False, *, unbiased: _bool | None = None
    ) -> Tensor:
        """Standard deviation along axes; see `var`."""
        # rust: forms::std(t, axis, unbiased.map_or(correction, usize::from), keepdim)

    @overload
    def argmax(self, dim: Axis | None = None, keepdim: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def argmax(self, axis: Axis | None = None, keepdims: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def argmax(self, axis: Axis | None = None, keepdim: _bool = False) -> Tensor:
        """Position (`i64`) of the first largest element along an axis; NaN counts as largest."""
        # rust: create::arg(t, axis, keepdim, Tensor::argmax)

    @overload
    def argmin(self, dim: Axis | None = None, keepdim: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def argmin(self, axis: Axis | None = None, keepdims: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def argmin(self, axis: Axis | None = None, keepdim: _bool = False) -> Tensor:
        """Position (`i64`) of the first smallest element along an axis; NaN counts as smallest."""
        # rust: create::arg(t, axis, keepdim, Tensor::argmin)

    @overload
    def cumsum(self, dim: Axis, *, dtype: DTypeLike | None = None) -> Tensor: ...
        # by hand

    @overload
    def cumsum(self, axis: Axis, *, dtype: DTypeLike | None = None) -> Tensor:
        """Cumulative sum along an axis, in `dtype` if one is given; integers are summed in 64 bits."""
        # rust: forms::in_dtype(t, dtype, |t| t.cumsum(axis))

    # autodiff.rs

    def _grad(self, wrt: Tensors) -> list[Tensor | None]:
        """The gradients of the sum of this tensor's elements with respect to others, which may be any
        tensors it was computed from, not only leaves. `None` where it does not depend on one.
        """
        # rust: t.grad(&wrt.list())

    def grad_with(self, cotangent: TensorLike, wrt: Tensors) -> list[Tensor | None]:
        """As `zyx.grad`, with the given cotangent of this tensor instead of ones; `None` where it does not depend on one."""
        # rust: t.grad_with(&cotangent, &wrt.list())

    # arrange.rs

    @overload
    def roll(self, shifts: AxisList, dims: AxisList | None = None) -> Tensor: ...
        # by hand

    @overload
    def roll(self, shifts: AxisList, dim: AxisList | None = None) -> Tensor: ...
        # by hand

    @overload
    def roll(self, shifts: AxisList, axis: AxisList | None = None) -> Tensor:
        """Elements moved by `shifts[i]` along `axes[i]`, those that leave one end entering at the
        other. Without axes, one shift moves the flattened elements.
        """
        # rust: t.roll(&shifts, axis.unwrap_or_default())

    @overload
    def rot90(self, k: Axis = 1, dims: AxisList = (0, 1)) -> Tensor: ...
        # by hand

    @overload
    def rot90(self, k: Axis = 1, dim: AxisList = (0, 1)) -> Tensor: ...
        # by hand

    @overload
    def rot90(self, times: Axis = 1, axis: AxisList = (0, 1)) -> Tensor:
        """Rotated by 90 degrees `times` times in the plane of two axes, from the first towards the
        second; a negative number turns the other way.
        """
        # rust: create::rot90(t, times, &axis)

    def fliplr(self) -> Tensor:
        """The rows of a matrix reversed left to right: axis 1 flipped."""

    def flipud(self) -> Tensor:
        """The rows of a matrix in reverse order: axis 0 flipped."""

    @overload
    def tile(self, *, dims: Sizes) -> Tensor: ...
        # by hand

    @overload
    def tile(self, *times: Sizes) -> Tensor:
        """Repeated `times[i]` times along axis `i`; of `times` and the shape, the shorter gets ones in
        front.
        """

    @overload
    def repeat_interleave(self, repeats: Operand, dim: Axis | None = None) -> Tensor: ...
        # by hand

    @overload
    def repeat_interleave(self, times: Operand, axis: Axis | None = None) -> Tensor:
        """Each element `times` times in a row along an axis; a vector has a number for each position, and
        their sum is read from the device.
        """
        # rust: forms::repeat_interleave(t, times, axis)

    def movedim(self, source: AxisList, destination: AxisList) -> Tensor:
        """The axes of `source` moved to the places of `destination`, the others keeping their order."""
        # view: views::moved(t, &source, &destination, t.movedim(&source, &destination))

    @overload
    def swapaxes(self, axis0: Axis, axis1: Axis) -> Tensor: ...
        # by hand

    @overload
    def swapaxes(self, a: Axis, b: Axis) -> Tensor:
        """Two axes exchanged; the same as `transpose`."""
        # view: views::exchanged(t, a, b, t.swapaxes(a, b))

    @overload
    def unflatten(self, dim: Axis, sizes: Ints) -> Tensor: ...
        # by hand

    @overload
    def unflatten(self, axis: Axis, dims: Ints) -> Tensor:
        """An axis split into several of the given extents, of which one may be -1."""
        # view: views::reshaped(forms::unflatten(t, axis, &dims))

    @overload
    def unfold(self, dimension: Axis, size: Size, step: Size) -> Tensor: ...
        # by hand

    @overload
    def unfold(self, dim: Axis, size: Size, step: Size) -> Tensor: ...
        # by hand

    @overload
    def unfold(self, axis: Axis, size: Size, step: Size) -> Tensor:
        """Windows of `size` elements, `step` apart, along an axis; their elements form a new last axis."""
        # view: views::unfolded(t, axis, size, step, t.unfold(axis, size, step))

    @overload
    def narrow(self, dim: Axis, start: Size, length: Size) -> Tensor: ...
        # by hand

    @overload
    def narrow(self, axis: Axis, start: Size, length: Size) -> Tensor:
        """`length` elements along an axis from `start` on."""
        # view: views::sliced(t, axis, start, 1, t.narrow(axis, start, length))

    @overload
    def unbind(self, dim: Axis = 0) -> list[Tensor]: ...
        # by hand

    @overload
    def unbind(self, axis: Axis = 0) -> list[Tensor]:
        """The slices along an axis, without it."""
        # views: views::entries(t, axis, t.unbind(axis))

    @overload
    def tensor_split(self, sections: Sections, dim: Axis = 0) -> list[Tensor]: ...
        # by hand

    @overload
    def tensor_split(self, indices: Sections, dim: Axis = 0) -> list[Tensor]: ...
        # by hand

    @overload
    def tensor_split(self, tensor_indices_or_sections: Sections, dim: Axis = 0) -> list[Tensor]: ...
        # by hand

    @overload
    def tensor_split(self, positions: Sections, axis: Axis = 0) -> list[Tensor]:
        """Pieces along an axis that begin at 0 and at each of `positions`, in order; a piece that
        would end before it begins is empty. A number instead of a list is how many pieces, the first
        ones larger by one if it does not divide.
        """
        # views: views::parts(t, axis, forms::starts(&positions), forms::tensor_split(t, &positions, axis))

    @overload
    def hsplit(self, sections: Sections) -> list[Tensor]: ...
        # by hand

    @overload
    def hsplit(self, indices: Sections) -> list[Tensor]: ...
        # by hand

    @overload
    def hsplit(self, positions: Sections) -> list[Tensor]:
        """Pieces along axis 1 (axis 0 of a vector) that begin at 0 and at each of `positions`; a number is how many
        equal ones.
        """
        # views: views::parts(t, isize::from(t.rank() != 1), forms::starts(&positions), forms::equal_split("hsplit", t, &positions, isize::from(t.rank() != 1), 1))

    @overload
    def vsplit(self, sections: Sections) -> list[Tensor]: ...
        # by hand

    @overload
    def vsplit(self, indices: Sections) -> list[Tensor]: ...
        # by hand

    @overload
    def vsplit(self, positions: Sections) -> list[Tensor]:
        """Pieces along axis 0 of two axes and more; see `hsplit`."""
        # views: views::parts(t, 0, forms::starts(&positions), forms::equal_split("vsplit", t, &positions, 0, 2))

    @overload
    def dsplit(self, sections: Sections) -> list[Tensor]: ...
        # by hand

    @overload
    def dsplit(self, indices: Sections) -> list[Tensor]: ...
        # by hand

    @overload
    def dsplit(self, positions: Sections) -> list[Tensor]:
        """Pieces along axis 2; see `hsplit`."""
        # views: views::parts(t, 2, forms::starts(&positions), forms::equal_split("dsplit", t, &positions, 2, 3))

    def unravel_index(self, shape: Shape) -> tuple[Tensor, ...]:
        """Positions in a flattened tensor of a shape as positions along each of its axes."""
        # rust: t.unravel_index(shape).map(forms::Found::Several)

    @overload
    def split_with_sizes(self, split_sizes: Sizes, dim: Axis = 0) -> list[Tensor]: ...
        # by hand

    @overload
    def split_with_sizes(self, sizes: Sizes, axis: Axis = 0) -> list[Tensor]:
        """Pieces of the given extents along an axis."""
        # views: views::parts(t, axis, None, t.split_with_sizes(&sizes, axis))

    @staticmethod
    def hstack(tensors: Tensors) -> Tensor:
        """Joined along axis 1, or along axis 0 if they have one axis."""

    @staticmethod
    def vstack(tensors: Tensors) -> Tensor:
        """Joined along axis 0, vectors as rows."""

    @staticmethod
    def dstack(tensors: Tensors) -> Tensor:
        """Joined along axis 2, see `atleast_3d`."""

    @staticmethod
    def column_stack(tensors: Tensors) -> Tensor:
        """Vectors as the columns of a matrix; matrices keep theirs."""

    def atleast_1d(self) -> Tensor:
        """With an axis of extent 1 if it has none."""
        # view: views::reshaped(Ok(t.atleast_1d()))

    def atleast_2d(self) -> Tensor:
        """With axes of extent 1 in front up to two axes."""
        # view: views::reshaped(Ok(t.atleast_2d()))

    def atleast_3d(self) -> Tensor:
        """With axes of extent 1 around up to three axes: a vector is `[1, n, 1]`, a matrix `[m, n, 1]`."""
        # view: views::reshaped(Ok(t.atleast_3d()))

    @staticmethod
    def broadcast_tensors(tensors: Tensors) -> list[Tensor]:
        """Tensors broadcast against each other to their common shape."""

    @overload
    def broadcast_to(self, *, size: Shape) -> Tensor: ...
        # by hand

    @overload
    def broadcast_to(self, *shape: Shape) -> Tensor:
        """Broadcast to a shape; the same as `expand`."""
        # view: views::expanded(t.broadcast_to(shape.clone()))

    @staticmethod
    def block_diag(tensors: Tensors) -> Tensor:
        """Matrices along the diagonal of a matrix of zeros; vectors count as rows."""

    # diagonal.rs

    @overload
    def diagonal(self, offset: Axis = 0, dim1: Axis = 0, dim2: Axis = 1) -> Tensor: ...
        # by hand

    @overload
    def diagonal(self, offset: Axis = 0, axis1: Axis = 0, axis2: Axis = 1) -> Tensor:
        """The diagonal of the plane of two axes as a new last axis; `offset` above the main one."""
        # view: views::diagonal_of(t, offset, axis1, axis2, t.diagonal(offset, axis1, axis2))

    @overload
    def diag_embed(self, offset: Axis = 0, dim1: Axis = -2, dim2: Axis = -1) -> Tensor: ...
        # by hand

    @overload
    def diag_embed(self, offset: Axis = 0, axis1: Axis = -2, axis2: Axis = -1) -> Tensor:
        """Matrices with the elements of the last axis on their diagonal, in the plane of `axis1` and
        `axis2` of the result, and zeros elsewhere.
        """

    @overload
    def diag(self, diagonal: Axis = 0) -> Tensor: ...
        # by hand

    @overload
    def diag(self, offset: Axis = 0) -> Tensor:
        """The diagonal of a matrix, or the matrix with a vector as its diagonal."""

    def diagflat(self, offset: Axis = 0) -> Tensor:
        """Matrix with the flattened elements as its diagonal."""

    def trace(self) -> Tensor:
        """Sum of the diagonal of a matrix; integers are summed in 64 bits."""

    @overload
    def diagonal_scatter(self, src: TensorLike, offset: Axis = 0, dim1: Axis = 0, dim2: Axis = 1) -> Tensor: ...
        # by hand

    @overload
    def diagonal_scatter(self, src: TensorLike, offset: Axis = 0, axis1: Axis = 0, axis2: Axis = 1) -> Tensor:
        """This tensor with `src` on its diagonal: the counterpart of `diagonal`."""

    @overload
    @staticmethod
    def tril_indices(row: Size, col: Size, offset: Axis = 0, device: DeviceLike | None = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def tril_indices(rows: Size, columns: Size, offset: Axis = 0, device: DeviceLike | None = None) -> Tensor:
        """Row and column numbers (`i64`, `[2, n]`) of the elements of a `rows` by `columns` matrix on
        and below a diagonal, row by row.
        """

    @overload
    @staticmethod
    def triu_indices(row: Size, col: Size, offset: Axis = 0, device: DeviceLike | None = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def triu_indices(rows: Size, columns: Size, offset: Axis = 0, device: DeviceLike | None = None) -> Tensor:
        """As `tril_indices`, on and above the diagonal."""

    # explain.rs

    def explain(self) -> str:
        """The launches that computing this tensor takes, or took if it is realized: what each fuses,
        what it reads and writes, and why values are stored between operations instead of being
        computed where they are used. While the device's profile is on (`Device::set_profiling`),
        launches have the times of that profile, each with its part of what copying and multiplying
        reach on the device, which the first call measures.
        """
        # rust: t.explain().map(|x| x.to_string())

    # grids.rs

    @overload
    @staticmethod
    def logspace(start: _float, end: _float, steps: Size = 50, base: _float = 10.0, device: DeviceLike | None = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def logspace(
        start: _float, end: _float, n: Size = 50, base: _float = 10.0, device: DeviceLike | None = None
    ) -> Tensor:
        """`n` numbers `base^start … base^end`, their exponents evenly spaced, as `f32`."""

    @overload
    def full_like(self, fill_value: Scalar, *, dtype: DTypeLike | None = None, requires_grad: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def full_like(self, value: Scalar, *, dtype: DTypeLike | None = None, requires_grad: _bool = False) -> Tensor:
        """Every element `value`, in the shape and on the device of `self` and, if no other is given, its dtype."""
        # rust: create::full_like(t, value, dtype)

    @overload
    def rand_like(self, generator: Any = None, requires_grad: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def rand_like(self, rng: Generator | None = None, requires_grad: _bool = False) -> Tensor:
        """Uniform numbers of `0 .. 1` in shape, float dtype and on the device of `self`."""

    @overload
    def randn_like(self, generator: Any = None, requires_grad: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def randn_like(self, rng: Generator | None = None, requires_grad: _bool = False) -> Tensor:
        """Standard normal numbers in shape, float dtype and on the device of `self`."""

    @overload
    def randint_like(self, low: Int, high: Int, generator: Any = None) -> Tensor: ...
        # by hand

    @overload
    def randint_like(self, low: Int, high: Int, rng: Generator | None = None) -> Tensor:
        """Integers of `low .. high` in shape and dtype and on the device of `self`."""

    @staticmethod
    def meshgrid(tensors: Tensors, indexing: Indexing = "ij") -> list[Tensor]:
        """For each vector a tensor with one axis per vector that varies along that vector's own."""

    @staticmethod
    def cartesian_prod(tensors: Tensors) -> Tensor:
        """All combinations of one element of each vector, one per row, the last varying fastest."""

    @overload
    def vander(self, N: Size | None = None, increasing: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def vander(self, columns: Size | None = None, increasing: _bool = False) -> Tensor:
        """A matrix of the powers of each element of a vector, descending unless `increasing`."""
        # rust: t.vander(columns.unwrap_or(t.numel()), increasing)

    # indexing.rs

    def index(self, parts: Key) -> Tensor:
        """The elements an index picks; see `Index` for its parts. Axes without a part are whole. A
        mask reads from the device how many elements it picks.
        """

    @overload
    def index_put(self, indices: Key, values: TensorLike, accumulate: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def index_put(self, parts: Key, values: TensorLike, accumulate: _bool = False) -> Tensor:
        """This tensor with `values`, broadcast, at the places an index picks (see `index`), or added
        there if `accumulate`. Of several values for one place the last in row-major order holds.
        """

    # math.rs

    def erfc(self) -> Tensor:
        """Complement of the error function, `1 - erf(x)`, accurate where that is small."""

    def erfcx(self) -> Tensor:
        """Scaled complement of the error function, `exp(x^2) erfc(x)`, which stays finite."""

    def erfinv(self) -> Tensor:
        """The inverse of the error function; infinite at 1 and -1, NaN beyond."""

    def ndtr(self) -> Tensor:
        """Distribution function of the standard normal distribution."""

    def log_ndtr(self) -> Tensor:
        """Logarithm of `ndtr`, accurate in both tails."""

    def lgamma(self) -> Tensor:
        """Logarithm of the absolute value of the gamma function."""

    def digamma(self) -> Tensor:
        """Logarithmic derivative of the gamma function; NaN at negative integers."""

    def log10(self) -> Tensor:
        """Base-10 logarithm."""

    def asinh(self) -> Tensor:
        """Inverse hyperbolic sine."""

    def acosh(self) -> Tensor:
        """Inverse hyperbolic cosine; NaN below 1."""

    def atanh(self) -> Tensor:
        """Inverse hyperbolic tangent; NaN outside -1 ..= 1."""

    def frac(self) -> Tensor:
        """Fraction: `x - trunc(x)`, with the sign of `x`."""

    def sinc(self) -> Tensor:
        """`sin(pi x) / (pi x)`, and 1 at 0."""

    def signbit(self) -> Tensor:
        """Whether the sign bit is set: negative, or `-0.0`."""

    def deg2rad(self) -> Tensor:
        """Degrees to radians."""

    def rad2deg(self) -> Tensor:
        """Radians to degrees."""

    def reciprocal(self) -> Tensor:
        """`1 / x`; the same as `recip`."""

    def isnan(self) -> Tensor:
        """Whether each element is NaN; the same as `is_nan`."""

    def isinf(self) -> Tensor:
        """Whether each element is infinite; the same as `is_inf`."""

    def isfinite(self) -> Tensor:
        """Whether each element is finite; the same as `is_finite`."""

    def isposinf(self) -> Tensor:
        """Whether each element is positive infinity."""

    def isneginf(self) -> Tensor:
        """Whether each element is negative infinity."""

    def polygamma(self, n: Size) -> Tensor:
        """The `n`-th derivative of `digamma` (order 0 is digamma itself, order 1 the trigamma
        function), in the same shape. Below 0 only the orders 0 and 1 are defined, the rest is NaN
        there.
        """

    def logit(self, eps: _float | None = None) -> Tensor:
        """`log(x / (1 - x))`, with `x` first limited to `eps ..= 1 - eps` if `eps` is given."""

    def nan_to_num(
        self, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None
    ) -> Tensor:
        """NaN replaced by `nan`, infinities by the given numbers or else by the largest and smallest
        finite numbers of the dtype. Integers stay as they are.
        """

    # math_binary.rs

    @overload
    def hypot(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def hypot(self, other: Operand) -> Tensor:
        """`sqrt(x^2 + y^2)` without overflow; infinite if either is."""

    @overload
    def copysign(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def copysign(self, other: Operand) -> Tensor:
        """The magnitude of `self` with the sign of `rhs`, that of its zero included."""

    @overload
    def nextafter(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def nextafter(self, other: Operand) -> Tensor:
        """The next number of the dtype after `self` towards `rhs`."""

    @overload
    def logaddexp(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def logaddexp(self, other: Operand) -> Tensor:
        """`log(exp(x) + exp(y))` without overflow."""

    @overload
    def logaddexp2(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def logaddexp2(self, other: Operand) -> Tensor:
        """`log2(2^x + 2^y)` without overflow."""

    @overload
    def xlogy(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def xlogy(self, other: Operand) -> Tensor:
        """`x log(y)`, which is 0 where `x` is 0, unless `y` is NaN."""

    @overload
    def xlog1py(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def xlog1py(self, other: Operand) -> Tensor:
        """`x log(1 + y)`, which is 0 where `x` is 0, unless `y` is NaN."""

    @overload
    def heaviside(self, values: Operand) -> Tensor: ...
        # by hand

    @overload
    def heaviside(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def heaviside(self, other: Operand) -> Tensor:
        """0 below zero, 1 above it and `rhs` at zero."""

    @overload
    def gcd(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def gcd(self, other: Operand) -> Tensor:
        """Greatest common divisor, not negative; 0 of two zeros."""

    @overload
    def lcm(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def lcm(self, other: Operand) -> Tensor:
        """Least common multiple, not negative; 0 where an operand is."""

    @overload
    def fmax(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def fmax(self, other: Operand) -> Tensor:
        """Larger value, or the one that is not NaN."""

    @overload
    def fmin(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def fmin(self, other: Operand) -> Tensor:
        """Smaller value, or the one that is not NaN."""

    @overload
    def logical_xor(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def logical_xor(self, other: Operand) -> Tensor:
        """Exactly one nonzero, as bool."""

    @overload
    def ldexp(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def ldexp(self, other: Operand) -> Tensor:
        """`x 2^y`."""

    @overload
    def float_power(self, exponent: Operand) -> Tensor: ...
        # by hand

    @overload
    def float_power(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def float_power(self, other: Operand) -> Tensor:
        """`self` to the power `rhs`, both converted to `f64`."""

    @overload
    def bitwise_left_shift(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def bitwise_left_shift(self, other: Operand) -> Tensor:
        """Shift left; the same as `shl`."""

    @overload
    def bitwise_right_shift(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def bitwise_right_shift(self, other: Operand) -> Tensor:
        """Shift right, arithmetic on signed integers; the same as `shr`."""

    @overload
    def addcmul(self, tensor1: Operand, tensor2: Operand, value: _float = 1.0) -> Tensor: ...
        # by hand

    @overload
    def addcmul(self, x: Operand, y: Operand, value: _float = 1.0) -> Tensor:
        """`self + value * x * y`."""

    @overload
    def addcdiv(self, tensor1: Operand, tensor2: Operand, value: _float = 1.0) -> Tensor: ...
        # by hand

    @overload
    def addcdiv(self, x: Operand, y: Operand, value: _float = 1.0) -> Tensor:
        """`self + value * x / y`."""

    @overload
    def isclose(self, rhs: Operand, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def isclose(
        self, other: Operand, rtol: _float = 1e-5, atol: _float = 1e-8, equal_nan: _bool = False
    ) -> Tensor:
        """Whether each pair is close: `|x - y| <= atol + rtol * |y|`, or equal. NaN is close to NaN if
        `equal_nan`.
        """

    @overload
    def allclose(self, rhs: Operand, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool: ...
        # by hand

    @overload
    def allclose(
        self, other: Operand, rtol: _float = 1e-5, atol: _float = 1e-8, equal_nan: _bool = False
    ) -> _bool:
        """Whether all pairs are close, see `isclose`. Computes and reads the answer."""

    @overload
    def equal(self, rhs: TensorLike) -> _bool: ...
        # by hand

    @overload
    def equal(self, other: TensorLike) -> _bool:
        """Whether both have one shape and equal elements. Computes and reads the answer."""

    # pick.rs

    def take(self, index: TensorLike) -> Tensor:
        """The elements at positions of the flattened tensor, in the shape of `index`. Negative
        positions count from the end.
        """

    @overload
    def take_along_dim(self, indices: TensorLike, dim: Axis | None = None) -> Tensor: ...
        # by hand

    @overload
    def take_along_dim(self, index: TensorLike, axis: Axis | None = None) -> Tensor:
        """The elements `[.., index[.., i, ..], ..]` along an axis; the shapes broadcast outside it.
        Without an axis, of the flattened tensors. Negative positions count from the end.
        """

    @overload
    def put(self, index: TensorLike, source: TensorLike, accumulate: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def put(self, index: TensorLike, src: TensorLike, accumulate: _bool = False) -> Tensor:
        """This tensor with `src` at positions of the flattened tensor, or added there if `accumulate`.
        Negative positions count from the end.
        """

    def masked_select(self, mask: TensorLike) -> Tensor:
        """The elements where `mask` holds, in row-major order; the mask broadcasts to this shape.
        Reads their number from the device.
        """

    @overload
    def masked_scatter(self, mask: TensorLike, source: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def masked_scatter(self, mask: TensorLike, src: TensorLike) -> Tensor:
        """This tensor with the elements of `src`, in order, where `mask` holds. Where there are not
        enough of them, zero.
        """

    def nonzero(self, *, as_tuple: _bool = False) -> Any:
        """Positions of the nonzero elements, one per row with one column per axis, in row-major order,
        as `i64`; with `as_tuple` a vector for each axis. Reads their number from the device.
        """
        # rust: forms::nonzero(t, as_tuple)

    def argwhere(self) -> Tensor:
        """Positions of the nonzero elements; the same as `nonzero`."""

    def searchsorted(self, values: TensorLike, right: _bool = False, *, side: Text | None = None, sorter: TensorLike | None = None, out_int32: _bool = False) -> Tensor:
        """Where each of `values` belongs in this sorted tensor so that it stays sorted, as `i64`:
        before equal elements, or behind them if `right`. NaN is larger than every number. This has
        one axis, or the leading axes of `values` and is searched row by row. `side="right"` is `right`;
        `sorter`, as `argsort` gives it, is the order of a tensor that is not sorted.
        """
        # rust: forms::searchsorted(t, &values, right, side.as_deref(), sorter.as_ref(), out_int32)

    def bucketize(self, boundaries: TensorLike, right: _bool = False, *, out_int32: _bool = False) -> Tensor:
        """The number of the bucket each element lies in, between sorted `boundaries`, as `i64`: the
        first whose upper end is not below it (not at or below it if `right`).
        """
        # rust: t.bucketize(&boundaries, right).and_then(|x| forms::places(x, out_int32))

    @overload
    def repeat_interleave_by(self, times: TensorLike, dim: Axis | None = None) -> Tensor: ...
        # by hand

    @overload
    def repeat_interleave_by(self, times: TensorLike, axis: Axis | None = None) -> Tensor:
        """Each element as often in a row along an axis as `times` says for its position. Reads the sum
        of `times` from the device.
        """
        # rust: create::along(t, axis, |t, axis| t.repeat_interleave_by(&times, axis))

    # place.rs

    @overload
    def scatter_reduce(self, dim: Axis, index: TensorLike, src: TensorLike, reduce: ScatterReduce = 'sum', include_self: _bool = True) -> Tensor: ...
        # by hand

    @overload
    def scatter_reduce(
        self, axis: Axis, index: TensorLike, src: TensorLike, reduce: ScatterReduce = "sum", include_self: _bool = True
    ) -> Tensor:
        """`src[.., i, ..]` combined into `[.., index[.., i, ..], ..]`, with what is there if
        `include_self`, else instead of it. The index may have smaller extents than `src` and,
        outside the axis, than this tensor: only that corner of them is used.
        """

    @overload
    def index_add(self, dim: Axis, index: TensorLike, source: TensorLike, alpha: _float = 1.0) -> Tensor: ...
        # by hand

    @overload
    def index_add(self, axis: Axis, index: TensorLike, src: TensorLike, alpha: _float = 1.0) -> Tensor:
        """`alpha * src[.., i, ..]` added to `[.., index[i], ..]`."""

    @overload
    def index_copy(self, dim: Axis, index: TensorLike, source: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def index_copy(self, axis: Axis, index: TensorLike, src: TensorLike) -> Tensor:
        """This tensor with `src[.., i, ..]` at `[.., index[i], ..]`."""

    @overload
    def index_fill(self, dim: Axis, index: TensorLike, value: Operand) -> Tensor: ...
        # by hand

    @overload
    def index_fill(self, axis: Axis, index: TensorLike, value: Operand) -> Tensor:
        """This tensor with `value` (converted to its dtype) at the positions of `index` along an axis."""

    def masked_fill(self, mask: TensorLike, value: Operand) -> Tensor:
        """This tensor with `value` (converted to its dtype) where `mask` holds; the mask broadcasts."""

    @overload
    def slice_scatter(self, src: TensorLike, dim: Axis = 0, start: Size = 0) -> Tensor: ...
        # by hand

    @overload
    def slice_scatter(self, src: TensorLike, axis: Axis = 0, start: Size = 0) -> Tensor:
        """This tensor with `src` at positions `start, start + 1, …` of an axis."""

    @overload
    def select_scatter(self, src: TensorLike, dim: Axis, index: Axis) -> Tensor: ...
        # by hand

    @overload
    def select_scatter(self, src: TensorLike, axis: Axis, position: Axis) -> Tensor:
        """This tensor with `src` as the slice at one position of an axis."""

    # threshold.rs

    def softsign(self) -> Tensor:
        """`x / (1 + |x|)`."""

    def relu6(self) -> Tensor:
        """`min(max(x, 0), 6)`."""

    def hardsigmoid(self) -> Tensor:
        """`relu6(x + 3) / 6`: a sigmoid of three straight lines."""

    def hardswish(self) -> Tensor:
        """`x * hardsigmoid(x)`."""

    def logsigmoid(self) -> Tensor:
        """`log(sigmoid(x))` without underflow."""

    def tanhshrink(self) -> Tensor:
        """`x - tanh(x)`."""

    @overload
    def hardtanh(self, min: _float = -1.0, max: _float = 1.0) -> Tensor: ...
        # by hand

    @overload
    def hardtanh(self, min_val: _float = -1.0, max_val: _float = 1.0) -> Tensor:
        """`min(max(x, min), max)`: the activation of straight lines; -1 and 1 are usual."""

    def celu(self, alpha: _float = 1.0) -> Tensor:
        """`x` above zero, `alpha (exp(x / alpha) - 1)` below: smooth for every `alpha`."""

    def threshold(self, threshold: _float, value: _float) -> Tensor:
        """`x` above `threshold`, else `value`."""

    def softshrink(self, lambd: _float = 0.5) -> Tensor:
        """`x` brought towards zero by `lambda`, and zero between."""

    def hardshrink(self, lambd: _float = 0.5) -> Tensor:
        """`x` where its magnitude is above `lambda`, else zero."""

    def prelu(self, weight: TensorLike) -> Tensor:
        """`x` above zero, `weight * x` below: `weight` has one element, or one for each position of
        axis 1 (channels).
        """

    @overload
    def glu(self, dim: Axis = -1) -> Tensor: ...
        # by hand

    @overload
    def glu(self, axis: Axis = -1) -> Tensor:
        """The first half along an axis, multiplied by the sigmoid of the second."""

    @overload
    def softmin(self, dim: Axes = -1) -> Tensor: ...
        # by hand

    @overload
    def softmin(self, axis: Axes = -1) -> Tensor:
        """The probabilities of `softmax` for small elements: softmax of `-x`."""

    # attention.rs

    def scaled_dot_product_attention(
        self, key: TensorLike, value: TensorLike, attn_mask: TensorLike | None = None, is_causal: _bool = False, scale: _float | None = None, enable_gqa: _bool = False, *, dropout_p: _float = 0.0, rng: Generator | None = None
    ) -> Tensor:
        """`softmax(scale q k^T + mask) v` of queries `[.., l, e]` (`self`), keys `[.., s, e]` and
        values `[.., s, d]`: `[.., l, d]` in the queries' dtype. Leading axes broadcast. A query
        that may attend to nothing gives zeros. Weights are dropped with probability `dropout_p`.
        """
        # rust: t.scaled_dot_product_attention(&key, &value, Attention { mask: attn_mask.as_ref(), causal: is_causal, scale, grouped: enable_gqa, dropout: (dropout_p != 0.0).then_some((dropout_p, &mut *rng)) })

    # convolution_nd.rs

    def conv3d(
        self, weight: TensorLike, bias: TensorLike | None = None, stride: Triple = 1, padding: Triple = 0, dilation: Triple = 1, groups: Size = 1
    ) -> Tensor:
        """3-d convolution (cross-correlation) of `[n, channels, depth, height, width]` with a weight
        `[out, channels / groups, ..]` and a bias `[out]`; see `conv2d`.
        """
        # rust: t.conv3d(&weight, bias.as_ref(), Conv3dOptions { stride, padding, dilation, groups })

    def conv_same(
        self, weight: TensorLike, bias: TensorLike | None = None, dilation: Sizes | None = None, groups: Size = 1
    ) -> Tensor:
        """A convolution over one to three axes that keeps their extents (PyTorch's padding `"same"`):
        `dilation (kernel - 1)` zeros, the odd one at the end. `dilation` has an entry per axis.
        """
        # rust: t.conv_same(&weight, bias.as_ref(), &dilation.unwrap_or_else(|| vec![1; t.rank().saturating_sub(2)]), groups)

    def conv_transpose1d(
        self, weight: TensorLike, bias: TensorLike | None = None, stride: One = 1, padding: One = 0, output_padding: One = 0, groups: Size = 1, dilation: One = 1
    ) -> Tensor:
        """1-d transposed convolution of `[n, channels, length]` with a weight `[channels, out /
        groups, kernel]` and a bias `[out]`; see `conv_transpose2d`.
        """
        # rust: t.conv_transpose1d(&weight, bias.as_ref(), ConvTransposeOptions { stride, padding, output_padding, groups, dilation })

    def conv_transpose2d(
        self, weight: TensorLike, bias: TensorLike | None = None, stride: Pair = 1, padding: Pair = 0, output_padding: Pair = 0, groups: Size = 1, dilation: Pair = 1
    ) -> Tensor:
        """2-d transposed convolution of `[n, channels, height, width]` with a weight `[channels, out /
        groups, kernel height, kernel width]` and a bias `[out]`: each element spreads to a window,
        and windows add. An axis becomes `(extent - 1) stride - 2 padding + dilation (kernel - 1) +
        output_padding + 1` long. Halves accumulate in `f32`.
        """
        # rust: t.conv_transpose2d(&weight, bias.as_ref(), ConvTransposeOptions { stride, padding, output_padding, groups, dilation })

    def conv_transpose3d(
        self, weight: TensorLike, bias: TensorLike | None = None, stride: Triple = 1, padding: Triple = 0, output_padding: Triple = 0, groups: Size = 1, dilation: Triple = 1
    ) -> Tensor:
        """3-d transposed convolution of `[n, channels, depth, height, width]` with a weight
        `[channels, out / groups, ..]` and a bias `[out]`; see `conv_transpose2d`.
        """
        # rust: t.conv_transpose3d(&weight, bias.as_ref(), ConvTransposeOptions { stride, padding, output_padding, groups, dilation })

    # distance.rs

    @overload
    def vector_norm(self, p: _float = 2.0, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def vector_norm(self, p: _float = 2.0, axis: Axes | None = None) -> Tensor:
        """The p-norm `(sum |x|^p)^(1/p)` of the vectors along axes; `p` may be infinite (the largest
        magnitude), minus infinite (the smallest) or 0 (how many elements are not 0).
        """

    @overload
    def cosine_similarity(self, x2: TensorLike, dim: Axis = 1, eps: _float = 1e-08) -> Tensor: ...
        # by hand

    @overload
    def cosine_similarity(self, rhs: TensorLike, dim: Axis = 1, eps: _float = 1e-08) -> Tensor: ...
        # by hand

    @overload
    def cosine_similarity(self, other: TensorLike, axis: Axis = 1, eps: _float = 1e-8) -> Tensor:
        """The cosine of the angle between vectors along an axis: their product divided by both
        lengths, each held at least `eps`. Shapes broadcast; the axis goes.
        """

    @overload
    def pairwise_distance(self, x2: TensorLike, p: _float = 2.0, eps: _float = 1e-06) -> Tensor: ...
        # by hand

    @overload
    def pairwise_distance(self, rhs: TensorLike, p: _float = 2.0, eps: _float = 1e-06) -> Tensor: ...
        # by hand

    @overload
    def pairwise_distance(self, other: TensorLike, p: _float = 2.0, eps: _float = 1e-6) -> Tensor:
        """The p-norm of `self - other + eps` along the last axis, which goes. Shapes broadcast."""

    @overload
    def cdist(self, x2: TensorLike, p: _float = 2.0) -> Tensor: ...
        # by hand

    @overload
    def cdist(self, rhs: TensorLike, p: _float = 2.0) -> Tensor: ...
        # by hand

    @overload
    def cdist(self, other: TensorLike, p: _float = 2.0) -> Tensor:
        """The p-norm distances of every row of `[.., n, d]` to every row of `[.., m, d]`, as `[.., n,
        m]`; leading axes broadcast.
        """

    def pdist(self, p: _float = 2.0) -> Tensor:
        """The distances of all pairs of different rows of `[n, d]`, as the upper triangle of `cdist`
        in row-major order, `[n (n - 1) / 2]`.
        """

    # einsum.rs

    @staticmethod
    def einsum(subscripts: str, *operands: Tensors) -> Tensor:
        """The sum of products that subscripts describe: `"ij,jk->ik"` is a matrix product, `"ii"` a
        trace, `"...ij->...ji"` a transpose. Letters name axes; those that are not in the result
        (after `->`) are summed. Without `->`, letters that are there once stay, in alphabetical
        order. `...` stands for any axes, which broadcast, as do extents of 1. Up to eight operands
        are contracted in the order of least work. Bools count as integers.
        """
        # rust: Tensor::einsum(&subscripts, &operands.list())

    @staticmethod
    def einsum_path(subscripts: str, *operands: Tensors) -> tuple[list[list[_int]], _float]:
        """The order in which `einsum` contracts the operands, and what that costs."""
        # rust: Tensor::einsum_path(&subscripts, &operands.list()).map(|x| (x.pairs.iter().map(|p| p.to_vec()).collect::<Vec<_>>(), x.flops))

    # interpolate.rs

    def interpolate(
        self, size: Sizes, mode: Interpolation = "nearest", align_corners: _bool = False
    ) -> Tensor:
        """The last axes (as many as `size` has, at most three) with the extents `size`."""

    def interpolate_by(
        self, scale: Floats, mode: Interpolation = "nearest", align_corners: _bool = False
    ) -> Tensor:
        """The last axes (as many as `scale` has, at most three) with their extents times these factors,
        rounded down. Neighbours of the result are `1 / factor` elements apart, also where rounding
        left something out."""

    def grid_sample(
        self, grid: TensorLike, nearest: _bool = False, border: _bool = False, align_corners: _bool = False
    ) -> Tensor:
        """The elements of an image `[n, channels, height, width]` at the places `[n, rows, columns,
        2]`, each `(x, y)` from -1 (one end) to 1 (the other), interpolated linearly (or the nearest
        element with `nearest`); beyond the ends are zeros, or with `border` the elements there.
        Differentiable in both.
        """

    # loss_ctc.rs

    def ctc_loss(
        self, targets: TensorLike, input_lengths: TensorLike, target_lengths: TensorLike, blank: Size = 0, zero_infinity: _bool = False, reduction: Reduction = "mean"
    ) -> Tensor:
        """CTC loss of log-probabilities `[time, n, classes]` against class numbers `[n, length]`
        (padded to one length), of which the first `target_lengths[i]` count; of the input, the
        first `input_lengths[i]` steps do. Lengths are `[n]`, integers.
        """
        # rust: t.ctc_loss(&targets, &input_lengths, &target_lengths, Ctc { blank, zero_infinity, reduction })

    # loss_likelihood.rs

    def cross_entropy_weighted(
        self, target: TensorLike, weight: TensorLike | None = None, ignore_index: Int | None = None, label_smoothing: _float = 0.0, reduction: Reduction = "mean"
    ) -> Tensor:
        """Cross entropy of logits `[n, classes, ..]` (or `[classes]`) with a factor for each class,
        `[classes]`. Targets are class numbers `[n, ..]` of an integer dtype, or probabilities of
        the logits' shape in a floating one.
        """
        # rust: t.cross_entropy_weighted(&target, weight.as_ref(), CrossEntropy { ignore_index, label_smoothing, reduction })

    def nll_loss_weighted(
        self, target: TensorLike, weight: TensorLike, ignore_index: Int | None = None, reduction: Reduction = "mean"
    ) -> Tensor:
        """Negative log-likelihood of log-probabilities `[n, classes, ..]` (or `[classes]`) at class
        numbers `[n, ..]` with a factor for each class, `[classes]`; the mean is weighted by the
        factors. See `nll_loss`.
        """
        # rust: t.nll_loss_weighted(&target, &weight, CrossEntropy { ignore_index, reduction, ..CrossEntropy::default() })

    def binary_cross_entropy(
        self, target: TensorLike, weight: TensorLike | None = None, reduction: Reduction = "mean"
    ) -> Tensor:
        """As `bce_loss`, with a factor for each term that broadcasts."""

    def binary_cross_entropy_with_logits(
        self, target: TensorLike, weight: TensorLike | None = None, pos_weight: TensorLike | None = None, reduction: Reduction = "mean"
    ) -> Tensor:
        """As `bce_with_logits_loss`, with a factor for each term and one for the terms of positive
        targets; both broadcast.
        """

    def kl_div(self, target: TensorLike, log_target: _bool = False, reduction: Reduction = "mean") -> Tensor:
        """As `kl_div_loss`; with `log_target` the targets are log-probabilities too: `e^y (y - x)`."""

    def poisson_nll_loss(
        self, target: TensorLike, log_input: _bool = True, full: _bool = False, eps: _float = 1e-8, reduction: Reduction = "mean"
    ) -> Tensor:
        """Negative log-likelihood of counts under Poisson distributions: `e^x - target x` of log
        rates, `x - target log(x + eps)` of rates.
        """
        # rust: t.poisson_nll_loss(&target, PoissonNll { log_input, full, eps, reduction })

    def gaussian_nll_loss(
        self, target: TensorLike, var: TensorLike, full: _bool = False, eps: _float = 1e-6, reduction: Reduction = "mean"
    ) -> Tensor:
        """Negative log-likelihood of targets under normal distributions of mean `self` and variance
        `var` (held at least `eps`, without a gradient of its own there): `(log var + (x - target)^2
        / var) / 2`, and with `full` `log(2 pi) / 2` more. `var` has the shape of the mean, or a
        last axis of extent 1, or lacks the last axis.
        """

    # loss_margin.rs

    def triplet_margin_loss(
        self, positive: TensorLike, negative: TensorLike, margin: _float = 1.0, p: _float = 2.0, eps: _float = 1e-6, swap: _bool = False, reduction: Reduction = "mean"
    ) -> Tensor:
        """`max(0, d(anchor, positive) - d(anchor, negative) + margin)` of vectors along the last axis,
        `self` being the anchors (Weinberger and Saul 2009). Shapes broadcast.
        """
        # rust: t.triplet_margin_loss(&positive, &negative, TripletMargin { margin, p, eps, swap, reduction })

    @overload
    def cosine_embedding_loss(self, input2: TensorLike, target: TensorLike, margin: _float = 0.0, reduction: Reduction = 'mean') -> Tensor: ...
        # by hand

    @overload
    def cosine_embedding_loss(self, rhs: TensorLike, target: TensorLike, margin: _float = 0.0, reduction: Reduction = 'mean') -> Tensor: ...
        # by hand

    @overload
    def cosine_embedding_loss(
        self, other: TensorLike, target: TensorLike, margin: _float = 0.0, reduction: Reduction = "mean"
    ) -> Tensor:
        """`1 - cos(self, other)` where the target is 1, `max(0, cos - margin)` where it is -1, of
        vectors along the last axis.
        """

    @overload
    def margin_ranking_loss(self, input2: TensorLike, target: TensorLike, margin: _float = 0.0, reduction: Reduction = 'mean') -> Tensor: ...
        # by hand

    @overload
    def margin_ranking_loss(self, rhs: TensorLike, target: TensorLike, margin: _float = 0.0, reduction: Reduction = 'mean') -> Tensor: ...
        # by hand

    @overload
    def margin_ranking_loss(
        self, other: TensorLike, target: TensorLike, margin: _float = 0.0, reduction: Reduction = "mean"
    ) -> Tensor:
        """`max(0, -target (self - other) + margin)`: `self` should rank above `other` where the target
        is 1, below where it is -1. Shapes broadcast.
        """

    def hinge_embedding_loss(
        self, target: TensorLike, margin: _float = 1.0, reduction: Reduction = "mean"
    ) -> Tensor:
        """The distance itself where the target is 1, `max(0, margin - self)` where it is -1."""

    def soft_margin_loss(self, target: TensorLike, reduction: Reduction = "mean") -> Tensor:
        """`log(1 + exp(-target self))` with targets 1 and -1."""

    def multi_margin_loss(
        self, target: TensorLike, p: Size = 1, margin: _float = 1.0, weight: TensorLike | None = None, reduction: Reduction = "mean"
    ) -> Tensor:
        """Hinges of several classes: the mean over classes `j` other than the target `y` of `max(0,
        margin - x[y] + x[j])^p`, of scores `[n, classes]` or `[classes]` and class numbers `[n]` or
        a scalar. (The divisor is the number of all classes.) A class number out of range is an
        IndexError, at the call or when the loss is read.
        """
        # rust: t.multi_margin_loss(&target, MultiMargin { p: p.min(u32::MAX as usize) as u32, margin, weight: weight.as_ref(), reduction })

    def multilabel_soft_margin_loss(
        self, target: TensorLike, weight: TensorLike | None = None, reduction: Reduction = "mean"
    ) -> Tensor:
        """Binary cross entropy of logits `[.., classes]` averaged over the last axis: each class is
        there or not, with target 1 or 0. `weight` is a factor for each class.
        """

    def multilabel_margin_loss(self, target: TensorLike, reduction: Reduction = "mean") -> Tensor:
        """Hinges between classes that are there and classes that are not: the sum over targets `j` and
        other classes `i` of `max(0, 1 - (x[j] - x[i]))`, divided by the number of classes. Scores
        are `[n, classes]` or `[classes]`; targets have their shape and list class numbers, up to
        the first negative one.
        """

    # padding.rs

    def pad_mode(self, padding: Pads, mode: PadMode = "zeros", value: _float = 0.0) -> Tensor:
        """Padded by `(before, after)` elements along each axis, with what `mode` says. (PyTorch lists
        the last axis first; here the list is in the order of the axes.)
        """
        # rust: t.pad_mode(&padding, if value != 0.0 { PadMode::Constant(value) } else { mode })

    def im2col(self, kernel: Pair, stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1) -> Tensor:
        """All windows of the last two axes of `[n, channels, height, width]` as columns: `[n, channels
        * kernel height * kernel width, positions]` (PyTorch's function `unfold`). Padding is with
        zeros.
        """
        # rust: t.im2col(Pool { stride, padding, dilation, ..Pool::new(kernel) })

    def col2im(
        self, output: Pair, kernel: Pair, stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1
    ) -> Tensor:
        """Columns `[n, channels * kernel height * kernel width, positions]` added up where their
        windows lie in `[n, channels, height, width]` with `output` the last two: the adjoint of
        `im2col`.
        """
        # rust: t.col2im(output, Pool { stride, padding, dilation, ..Pool::new(kernel) })

    @overload
    def pixel_shuffle(self, upscale_factor: Size) -> Tensor: ...
        # by hand

    @overload
    def pixel_shuffle(self, r: Size) -> Tensor:
        """`[.., channels * r^2, height, width]` as `[.., channels, height * r, width * r]`: sub-pixel
        positions taken from channels (Shi et al. 2016).
        """

    @overload
    def pixel_unshuffle(self, downscale_factor: Size) -> Tensor: ...
        # by hand

    @overload
    def pixel_unshuffle(self, r: Size) -> Tensor:
        """`pixel_shuffle` undone: `[.., channels, height * r, width * r]` as `[.., channels * r^2,
        height, width]`.
        """

    def channel_shuffle(self, groups: Size) -> Tensor:
        """The channels (axis 1) as `groups` rows, read by columns (Zhang et al. 2018)."""

    # pool_nd.rs

    @overload
    def max_pool1d(self, kernel_size: One, stride: One | None = None, padding: One = 0, dilation: One = 1, ceil_mode: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def max_pool1d(
        self, kernel: One, stride: One | None = None, padding: One = 0, dilation: One = 1, ceil_mode: _bool = False
    ) -> Tensor:
        """The largest element of each window over the last axis; see `max_pool2d`."""
        # rust: t.max_pool1d(Pool { stride: stride.unwrap_or(kernel), padding, dilation, ceil_mode, ..Pool::new(kernel) })

    @overload
    def avg_pool1d(self, kernel_size: One, stride: One | None = None, padding: One = 0, dilation: One = 1, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor: ...
        # by hand

    @overload
    def avg_pool1d(
        self, kernel: One, stride: One | None = None, padding: One = 0, dilation: One = 1, ceil_mode: _bool = False, count_include_pad: _bool = True
    ) -> Tensor:
        """The mean of each window over the last axis; see `avg_pool2d`."""
        # rust: t.avg_pool1d(Pool { stride: stride.unwrap_or(kernel), padding, dilation, ceil_mode, count_include_pad, ..Pool::new(kernel) })

    @overload
    def adaptive_avg_pool1d(self, output_size: One) -> Tensor: ...
        # by hand

    @overload
    def adaptive_avg_pool1d(self, output: One) -> Tensor:
        """Means over the last axis, of extents `output` then; see `adaptive_avg_pool2d`."""

    @overload
    def max_pool3d(self, kernel_size: Triple, stride: Triple | None = None, padding: Triple = 0, dilation: Triple = 1, ceil_mode: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def max_pool3d(
        self, kernel: Triple, stride: Triple | None = None, padding: Triple = 0, dilation: Triple = 1, ceil_mode: _bool = False
    ) -> Tensor:
        """The largest element of each window over the last three axes; see `max_pool2d`."""
        # rust: t.max_pool3d(Pool { stride: stride.unwrap_or(kernel), padding, dilation, ceil_mode, ..Pool::new(kernel) })

    def avg_pool3d(
        self, kernel: Triple, stride: Triple | None = None, padding: Triple = 0, dilation: Triple = 1, ceil_mode: _bool = False, count_include_pad: _bool = True
    ) -> Tensor:
        """The mean of each window over the last three axes; see `avg_pool2d`."""
        # rust: t.avg_pool3d(Pool { stride: stride.unwrap_or(kernel), padding, dilation, ceil_mode, count_include_pad, ..Pool::new(kernel) })

    def adaptive_avg_pool3d(self, output: Triple) -> Tensor:
        """Means over the last three axes, of extents `output` then; see `adaptive_avg_pool2d`."""

    @overload
    def adaptive_max_pool1d(self, output_size: One) -> Tensor: ...
        # by hand

    @overload
    def adaptive_max_pool1d(self, output: One) -> Tensor:
        """Largest elements over the last axis, of extents `output` then, of the same pieces as those
        of `adaptive_avg_pool2d`.
        """

    def lp_pool1d(
        self, p: _float, kernel: One, stride: One | None = None, padding: One = 0, dilation: One = 1, ceil_mode: _bool = False
    ) -> Tensor:
        """`(sum x^p)^(1/p)` of each window over the last axis, with gradient 0 where that is 0."""
        # rust: t.lp_pool1d(p, Pool { stride: stride.unwrap_or(kernel), padding, dilation, ceil_mode, ..Pool::new(kernel) })

    @overload
    def max_pool1d_with_indices(self, kernel_size: One, stride: One | None = None, padding: One = 0, dilation: One = 1, ceil_mode: _bool = False) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def max_pool1d_with_indices(
        self, kernel: One, stride: One | None = None, padding: One = 0, dilation: One = 1, ceil_mode: _bool = False
    ) -> tuple[Tensor, Tensor]:
        """As `max_pool1d`, with the position (`i64`) of each window's first largest element in the
        last axis, counted row by row.
        """
        # rust: t.max_pool1d_with_indices(Pool { stride: stride.unwrap_or(kernel), padding, dilation, ceil_mode, ..Pool::new(kernel) })

    def max_unpool1d(self, indices: TensorLike, output: One) -> Tensor:
        """Zeros of extents `output` along the last axis, with each element put where `indices` says:
        `max_pool1d_with_indices` undone.
        """

    def adaptive_max_pool2d(self, output: Pair) -> Tensor:
        """Largest elements over the last two axes, of extents `output` then, of the same pieces as
        those of `adaptive_avg_pool2d`.
        """

    def lp_pool2d(
        self, p: _float, kernel: Pair, stride: Pair | None = None, padding: Pair = 0, dilation: Pair = 1, ceil_mode: _bool = False
    ) -> Tensor:
        """`(sum x^p)^(1/p)` of each window over the last two axes, with gradient 0 where that is 0."""
        # rust: t.lp_pool2d(p, Pool { stride: stride.unwrap_or(kernel), padding, dilation, ceil_mode, ..Pool::new(kernel) })

    @overload
    def max_pool2d_with_indices(self, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0, dilation: Pair = 1, ceil_mode: _bool = False) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def max_pool2d_with_indices(
        self, kernel: Pair, stride: Pair | None = None, padding: Pair = 0, dilation: Pair = 1, ceil_mode: _bool = False
    ) -> tuple[Tensor, Tensor]:
        """As `max_pool2d`, with the position (`i64`) of each window's first largest element in the
        last two axes, counted row by row.
        """
        # rust: t.max_pool2d_with_indices(Pool { stride: stride.unwrap_or(kernel), padding, dilation, ceil_mode, ..Pool::new(kernel) })

    def max_unpool2d(self, indices: TensorLike, output: Pair) -> Tensor:
        """Zeros of extents `output` along the last two axes, with each element put where `indices`
        says: `max_pool2d_with_indices` undone.
        """

    def adaptive_max_pool3d(self, output: Triple) -> Tensor:
        """Largest elements over the last three axes, of extents `output` then, of the same pieces as
        those of `adaptive_avg_pool2d`.
        """

    def lp_pool3d(
        self, p: _float, kernel: Triple, stride: Triple | None = None, padding: Triple = 0, dilation: Triple = 1, ceil_mode: _bool = False
    ) -> Tensor:
        """`(sum x^p)^(1/p)` of each window over the last three axes, with gradient 0 where that is 0."""
        # rust: t.lp_pool3d(p, Pool { stride: stride.unwrap_or(kernel), padding, dilation, ceil_mode, ..Pool::new(kernel) })

    @overload
    def max_pool3d_with_indices(self, kernel_size: Triple, stride: Triple | None = None, padding: Triple = 0, dilation: Triple = 1, ceil_mode: _bool = False) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def max_pool3d_with_indices(
        self, kernel: Triple, stride: Triple | None = None, padding: Triple = 0, dilation: Triple = 1, ceil_mode: _bool = False
    ) -> tuple[Tensor, Tensor]:
        """As `max_pool3d`, with the position (`i64`) of each window's first largest element in the
        last three axes, counted row by row.
        """
        # rust: t.max_pool3d_with_indices(Pool { stride: stride.unwrap_or(kernel), padding, dilation, ceil_mode, ..Pool::new(kernel) })

    def max_unpool3d(self, indices: TensorLike, output: Triple) -> Tensor:
        """Zeros of extents `output` along the last three axes, with each element put where `indices`
        says: `max_pool3d_with_indices` undone.
        """

    # products.rs

    @overload
    def tensordot(self, rhs: TensorLike, dim: AxisList, other_axes: AxisList) -> Tensor: ...
        # by hand

    @overload
    def tensordot(self, other: TensorLike, axis: AxisList, other_axes: AxisList) -> Tensor:
        """Sum of products over given axes of both, paired in order: the result has the other axes of
        `self`, then those of `other`.
        """

    @overload
    def outer(self, vec2: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def outer(self, rhs: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def outer(self, other: TensorLike) -> Tensor:
        """Every product of an element of one vector and one of another: `[n, m]`."""

    @overload
    def inner(self, rhs: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def inner(self, other: TensorLike) -> Tensor:
        """Sum of products over the last axes; the product of all elements with a scalar operand."""

    @overload
    def kron(self, rhs: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def kron(self, other: TensorLike) -> Tensor:
        """Kronecker's product: every element of `self` times all of `other`, as blocks. The operand
        with fewer axes gets leading ones.
        """

    @overload
    def cross(self, rhs: TensorLike, dim: Axis = -1) -> Tensor: ...
        # by hand

    @overload
    def cross(self, other: TensorLike, axis: Axis = -1) -> Tensor:
        """The vector product of vectors of three elements along an axis; shapes broadcast."""

    @overload
    def bmm(self, mat2: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def bmm(self, rhs: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def bmm(self, other: TensorLike) -> Tensor:
        """Matrix products of batches: `[b, n, k]` times `[b, k, m]`, without broadcasting."""

    @overload
    def mv(self, vec: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def mv(self, vector: TensorLike) -> Tensor:
        """A matrix `[n, k]` times a vector `[k]`."""

    @overload
    def addmm(self, mat1: TensorLike, mat2: TensorLike, beta: _float = 1.0, alpha: _float = 1.0) -> Tensor: ...
        # by hand

    @overload
    def addmm(self, a: TensorLike, b: TensorLike, beta: _float = 1.0, alpha: _float = 1.0) -> Tensor:
        """`beta self + alpha a b` of matrices `a` and `b`; `self` broadcasts. With `beta` 0, `self` is
        not looked at: its NaN do not come through.
        """

    @overload
    def baddbmm(self, batch1: TensorLike, batch2: TensorLike, beta: _float = 1.0, alpha: _float = 1.0) -> Tensor: ...
        # by hand

    @overload
    def baddbmm(self, a: TensorLike, b: TensorLike, beta: _float = 1.0, alpha: _float = 1.0) -> Tensor:
        """`beta self + alpha a b` of batches of matrices `[b, n, k]` and `[b, k, m]`; see `addmm`."""

    @staticmethod
    def multi_dot(operands: Tensors) -> Tensor:
        """The product of matrices in the order of least work; the first may be a vector (a row), the
        last too (a column).
        """

    @overload
    def vecdot(self, rhs: TensorLike, dim: Axis = -1) -> Tensor: ...
        # by hand

    @overload
    def vecdot(self, other: TensorLike, axis: Axis = -1) -> Tensor:
        """Sum of products of vectors along an axis; shapes broadcast."""

    # distributions.rs

    @overload
    @staticmethod
    def normal(mean: _float, std: _float, size: Shape, dtype: DTypeLike = 'float32', generator: Any = None, device: DeviceLike | None = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def normal(mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def normal(
        mean: _float, std: _float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Normal with the given mean and standard deviation; see `randn`."""

    @staticmethod
    def exponential(
        rate: _float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Exponential with mean `1 / rate`."""

    @staticmethod
    def laplace(
        mean: _float, scale: _float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Laplace: two exponential tails of the given scale around the mean."""

    @staticmethod
    def cauchy(
        median: _float, scale: _float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Cauchy: the tangent of a uniform angle, scaled and moved."""

    @staticmethod
    def gumbel(
        mode: _float, scale: _float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Gumbel: the limit of maxima, `mode - scale log(-log u)`."""

    @staticmethod
    def lognormal(
        mean: _float, std: _float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """The exponential of normal numbers with the given mean and standard deviation."""

    @staticmethod
    def gamma(
        shape_of: _float, rate: _float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Gamma with mean `shape_of / rate`, by Marsaglia and Tsang (2000)."""

    @staticmethod
    def beta(
        a: _float, b: _float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Beta with mean `a / (a + b)`: the share of one gamma number in the sum of two."""

    @staticmethod
    def geometric(
        p: _float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Geometric: the number of the first success, from 1, with probability `p` each time."""

    @staticmethod
    def truncated_normal(
        mean: _float, std: _float, low: _float, high: _float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Normal within `low ..= high`, for intervals with a fair share of the distribution: of twelve
        attempts the first inside counts, and a uniform number where none is.
        """

    @overload
    @staticmethod
    def poisson(rate: _float, shape: Shape, dtype: DTypeLike = 'float32', generator: Any = None, device: DeviceLike | None = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def poisson(input: Tensor, *, generator: Any = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def poisson(
        rate: _float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Poisson with this mean: whole numbers, from a table within twelve deviations of the mean."""

    @staticmethod
    def binomial(
        trials: Size, p: _float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Binomial: the number of successes in some trials."""
        # rust: Tensor::binomial(trials.min(u32::MAX as usize) as u32, p, shape, dtype, &mut rng, device)

    @staticmethod
    def dirichlet(
        concentration: Floats, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Shares of gamma numbers: points of a simplex, the last axis having one for each of
        `concentration`.
        """

    @overload
    def gumbel_softmax(self, tau: _float = 1.0, hard: _bool = False, dim: Axis = -1, rng: Generator | None = None) -> Tensor: ...
        # by hand

    @overload
    def gumbel_softmax(self, tau: _float = 1.0, hard: _bool = False, axis: Axis = -1, rng: Generator | None = None) -> Tensor:
        """Samples of the classes along an axis whose logits these are, made differentiable: softmax of logits and
        Gumbel noise, divided by the temperature `tau`. If `hard`, 1 at the largest and 0 elsewhere, with the gradient
        of the soft ones.
        """

    @overload
    def multinomial(self, num_samples: Size, replacement: _bool = False, generator: Any = None) -> Tensor: ...
        # by hand

    @overload
    def multinomial(self, samples: Size, replacement: _bool = False, rng: Generator | None = None) -> Tensor:
        """Class numbers (`i64`) drawn with probabilities proportional to weights `[classes]` or `[n,
        classes]`: `[samples]` or `[n, samples]`, with replacement or without. Without, no more than
        there are classes, by an exponential race: the classes in the order in which clocks of these
        rates ring. Weights must not be negative, and their sum positive.
        """

    # fft.rs

    @overload
    def fft(self, n: Size | None = None, dim: Axis = -1, norm: FftNorm = 'backward') -> Tensor: ...
        # by hand

    @overload
    def fft(self, n: Size | None = None, axis: Axis = -1, norm: FftNorm = "backward") -> Tensor:
        """The discrete Fourier transform of complex `[.., n, .., 2]` along an axis, which is counted
        without the last: `y[k] = sum x[j] exp(-2 pi i j k / n)`. With `n` the axis is cut or padded
        with zeros to that length before.
        """

    @overload
    def ifft(self, n: Size | None = None, dim: Axis = -1, norm: FftNorm = 'backward') -> Tensor: ...
        # by hand

    @overload
    def ifft(self, n: Size | None = None, axis: Axis = -1, norm: FftNorm = "backward") -> Tensor:
        """The inverse of `fft`."""

    @overload
    def rfft(self, n: Size | None = None, dim: Axis = -1, norm: FftNorm = 'backward') -> Tensor: ...
        # by hand

    @overload
    def rfft(self, n: Size | None = None, axis: Axis = -1, norm: FftNorm = "backward") -> Tensor:
        """The transform of real numbers along an axis: the first `n / 2 + 1` elements of the complex
        one, the others being their conjugates; a last axis of two is added.
        """

    @overload
    def irfft(self, n: Size | None = None, dim: Axis = -1, norm: FftNorm = 'backward') -> Tensor: ...
        # by hand

    @overload
    def irfft(self, n: Size | None = None, axis: Axis = -1, norm: FftNorm = "backward") -> Tensor:
        """The inverse of `rfft`: `n` real numbers (by default `2 (m - 1)` of `m` elements). Imaginary
        parts that the transform of real numbers cannot have are ignored.
        """

    def fft2(self, norm: FftNorm = "backward") -> Tensor:
        """`fft` along the two axes before the last."""

    def ifft2(self, norm: FftNorm = "backward") -> Tensor:
        """`ifft` along the two axes before the last."""

    def rfft2(self, norm: FftNorm = "backward") -> Tensor:
        """The transform of real numbers along the last two axes; of the last are the first `n / 2 + 1` elements."""

    def irfft2(self, n: Size | None = None, norm: FftNorm = "backward") -> Tensor:
        """The inverse of `rfft2`, with `n` elements along the last axis (by default `2 (m - 1)` of `m`)."""

    @overload
    def fftn(self, dim: AxisList, norm: FftNorm = 'backward') -> Tensor: ...
        # by hand

    @overload
    def fftn(self, axis: AxisList, norm: FftNorm = "backward") -> Tensor:
        """`fft` along several axes, counted without the last."""

    @overload
    def ifftn(self, dim: AxisList, norm: FftNorm = 'backward') -> Tensor: ...
        # by hand

    @overload
    def ifftn(self, axis: AxisList, norm: FftNorm = "backward") -> Tensor:
        """`ifft` along several axes, counted without the last."""

    @overload
    def fftshift(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def fftshift(self, axis: Axes | None = None) -> Tensor:
        """The halves of axes exchanged, so that frequency 0 moves to the middle."""

    @overload
    def ifftshift(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def ifftshift(self, axis: Axes | None = None) -> Tensor:
        """`fftshift` undone."""

    @staticmethod
    def fftfreq(n: Size, spacing: _float = 1.0, device: DeviceLike | None = None) -> Tensor:
        """The frequencies of a transform of `n` samples `spacing` apart, `f32`: `k / (n spacing)`, the
        second half negative.
        """

    @staticmethod
    def rfftfreq(n: Size, spacing: _float = 1.0, device: DeviceLike | None = None) -> Tensor:
        """The frequencies of a real transform: those of `fftfreq` that are not negative."""

    @overload
    def stft(self, n_fft: Size, hop_length: Size | None = None, window: TensorLike | None = None, center: _bool = True) -> Tensor: ...
        # by hand

    @overload
    def stft(
        self, n_fft: Size, hop: Size | None = None, window: TensorLike | None = None, center: _bool = True
    ) -> Tensor:
        """Transforms of overlapping frames of real signals `[.., samples]`: `[.., n_fft / 2 + 1,
        frames, 2]`.
        """
        # rust: t.stft(Stft { hop: hop.unwrap_or((n_fft / 4).max(1)), window: window.as_ref(), center, ..Stft::new(n_fft) })

    @overload
    def istft(self, n_fft: Size, hop_length: Size | None = None, window: TensorLike | None = None, center: _bool = True, length: Size | None = None) -> Tensor: ...
        # by hand

    @overload
    def istft(
        self, n_fft: Size, hop: Size | None = None, window: TensorLike | None = None, center: _bool = True, length: Size | None = None
    ) -> Tensor:
        """`stft` undone: `[.., samples]` of frames `[.., n_fft / 2 + 1, frames, 2]`, each sample
        divided by the sum of the squared factors that were applied to it. `length` cuts the result.
        """
        # rust: t.istft(Stft { hop: hop.unwrap_or((n_fft / 4).max(1)), window: window.as_ref(), center, ..Stft::new(n_fft) }, length)

    @overload
    @staticmethod
    def hann_window(window_length: Size, periodic: _bool = True, dtype: DTypeLike = 'float32', device: DeviceLike | None = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def hann_window(
        n: Size, periodic: _bool = True, dtype: DTypeLike = "float32", device: DeviceLike | None = None
    ) -> Tensor:
        """Hann's window: `(1 - cos(2 pi i / m)) / 2` with `m = n` if periodic, else `n - 1`; computed
        in `f64` and rounded once.
        """

    @overload
    @staticmethod
    def hamming_window(window_length: Size, periodic: _bool = True, dtype: DTypeLike = 'float32', device: DeviceLike | None = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def hamming_window(
        n: Size, periodic: _bool = True, dtype: DTypeLike = "float32", device: DeviceLike | None = None
    ) -> Tensor:
        """Hamming's window: `0.54 - 0.46 cos(2 pi i / m)`; see `hann_window`."""

    @overload
    @staticmethod
    def bartlett_window(window_length: Size, periodic: _bool = True, dtype: DTypeLike = 'float32', device: DeviceLike | None = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def bartlett_window(
        n: Size, periodic: _bool = True, dtype: DTypeLike = "float32", device: DeviceLike | None = None
    ) -> Tensor:
        """Bartlett's window, a triangle: `1 - |2 i / m - 1|`; see `hann_window`."""

    @overload
    @staticmethod
    def kaiser_window(window_length: Size, periodic: _bool = True, beta: _float = 12.0, dtype: DTypeLike = 'float32', device: DeviceLike | None = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def kaiser_window(
        n: Size, periodic: _bool = True, beta: _float = 12.0, dtype: DTypeLike = "float32", device: DeviceLike | None = None
    ) -> Tensor:
        """Kaiser's window: `I0(beta sqrt(1 - x^2)) / I0(beta)` with `x = 2 i / m - 1`; see `hann_window`."""

    @overload
    @staticmethod
    def blackman_window(window_length: Size, periodic: _bool = True, dtype: DTypeLike = 'float32', device: DeviceLike | None = None) -> Tensor: ...
        # by hand

    @overload
    @staticmethod
    def blackman_window(
        n: Size, periodic: _bool = True, dtype: DTypeLike = "float32", device: DeviceLike | None = None
    ) -> Tensor:
        """Blackman's window: `0.42 - 0.5 cos(2 pi i / m) + 0.08 cos(4 pi i / m)`; see `hann_window`."""

    # solve.rs

    def cholesky(self) -> Tensor:
        """Cholesky's factor: the lower triangular `l` with `l l^T = self`, of symmetric positive
        definite matrices, of which the lower triangles are read.
        """

    def triangular_solve(
        self, A: TensorLike, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False
    ) -> tuple[Tensor, Tensor]:
        """`x` of `A x = self` (or `A^T x = self`) and `A`, in PyTorch's order: the right side first.
        The upper or the lower triangle of `A` is read, with `unitriangular` without its diagonal,
        which is ones then. The right side is `[.., n, k]`; batches broadcast.
        """
        # rust: forms::triangular_solve(t, &A, upper, transpose, unitriangular)

    @overload
    def cholesky_solve(self, input2: TensorLike, upper: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def cholesky_solve(self, L: TensorLike, upper: _bool = False) -> Tensor:
        """`x` of `a x = self` with `a` given by Cholesky's factor, in PyTorch's order: the right side
        first, then lower triangular `L` with `a = L L^T`, or upper with `L^T L`.
        """
        # rust: L.cholesky_solve(t, upper)

    def cholesky_inverse(self, upper: _bool = False) -> Tensor:
        """The inverse of the matrix that Cholesky's factor is of; see `cholesky_solve`."""

    def solve(self, b: TensorLike) -> Tensor:
        """`x` of `self x = b` with `b` of `[.., n, k]` or, for a single matrix, `[n]`. Batches broadcast."""

    def inv(self) -> Tensor:
        """The inverse of square matrices."""

    def det(self) -> Tensor:
        """Determinants of square matrices."""

    def slogdet(self) -> tuple[Tensor, Tensor]:
        """Sign and natural logarithm of the magnitude of determinants, which may be too large or small
        themselves. A singular matrix has sign 0 and logarithm `-inf`.
        """

    # spectral.rs

    def logdet(self) -> Tensor:
        """Natural logarithm of determinants: `-inf` where one is 0, NaN where it is negative."""

    def qr(self) -> tuple[Tensor, Tensor]:
        """The factors `self = q r` with `min(rows, columns)` orthonormal columns in `q` and an upper
        triangular `r`, by Householder's reflections in `f64`. Signs are LAPACK's.
        """

    def eigh(self) -> tuple[Tensor, Tensor]:
        """Eigenvalues in ascending order and orthonormal eigenvectors (as columns) of symmetric
        matrices, of which the lower triangles are read, in `f64`. Signs of eigenvectors are any; a
        matrix with an element that is not finite gives NaN. Gradients are with respect to symmetric changes.
        """

    def svd(self) -> tuple[Tensor, Tensor, Tensor]:
        """The factors `self = u diag(s) vh` with singular values in descending order and `min(rows,
        columns)` columns of `u` and rows of `vh`, in `f64`: small singular values are accurate, too.
        Signs of vectors are any; a matrix with an element that is not finite gives NaN.
        """

    def svdvals(self) -> Tensor:
        """Singular values in descending order, whose gradient exists where they coincide, too."""

    def lstsq(self, b: TensorLike) -> Tensor:
        """The `x` that makes `self x - b` shortest, for matrices of full rank: by QR factors where
        there are at least as many rows as columns; otherwise the shortest `x` that solves it.
        """

    @overload
    def pinv(self, rcond: _float | None = None) -> Tensor: ...
        # by hand

    @overload
    def pinv(self, rtol: _float | None = None) -> Tensor:
        """The pseudo-inverse (Moore and Penrose), without the singular values below `rtol` times the
        largest; by default the larger extent times the rounding of the dtype.
        """

    def matrix_rank(self, rtol: _float | None = None) -> Tensor:
        """The number of singular values above `rtol` times the largest, as `i64`; see `pinv`."""

    def cond(self) -> Tensor:
        """The condition number: largest singular value divided by the smallest."""

    def matrix_norm(self, norm: MatrixNorm = "frobenius") -> Tensor:
        """Norms of matrices."""

    def matrix_power(self, n: Int) -> Tensor:
        """Square matrices to a whole power, by squaring; of the inverse for a negative one."""

    def matrix_exp(self) -> Tensor:
        """The exponential of square matrices: `sum a^k / k!`."""

    # cumulative.rs

    @overload
    def cumprod(self, dim: Axis, *, dtype: DTypeLike | None = None) -> Tensor: ...
        # by hand

    @overload
    def cumprod(self, axis: Axis, *, dtype: DTypeLike | None = None) -> Tensor:
        """Cumulative product along an axis, in `dtype` if one is given; integers are multiplied in 64 bits."""
        # rust: forms::in_dtype(t, dtype, |t| t.cumprod(axis))

    @overload
    def cummax(self, dim: Axis) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def cummax(self, axis: Axis) -> tuple[Tensor, Tensor]:
        """Running maximum along an axis and its position as `i64`: of equal elements the latest. NaN
        stays once it was met.
        """

    @overload
    def cummin(self, dim: Axis) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def cummin(self, axis: Axis) -> tuple[Tensor, Tensor]:
        """Running minimum along an axis and its position; see `cummax`."""

    @overload
    def logcumsumexp(self, dim: Axis) -> Tensor: ...
        # by hand

    @overload
    def logcumsumexp(self, axis: Axis) -> Tensor:
        """Running `log(sum(exp(x)))` along an axis, without overflow or underflow."""

    @overload
    @staticmethod
    def associative_scan(combine: Any, tensors: Tensors, dim: Axis = 0, reverse: _bool = False) -> list[Tensor]: ...
        # by hand

    @overload
    @staticmethod
    def associative_scan(
        combine: Any, tensors: Tensors, axis: Axis = 0, reverse: _bool = False
    ) -> list[Tensor]:
        """Running combination of tuples of tensors along an axis by an associative function of two
        tuples, elementwise along that axis; from the end if `reverse`. The function is called with
        slices of any extent, and all tensors have one extent along the axis.
        """
        # by hand

    @overload
    def linear_recurrence(self, b: TensorLike, dim: Axis, reverse: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def linear_recurrence(self, b: TensorLike, axis: Axis, reverse: _bool = False) -> Tensor:
        """`h[t] = a[t] * h[t - 1] + b[t]` along an axis with `h[-1] = 0` and `self` as `a`; from the
        end if `reverse`: the state of a linear state-space model. The shapes broadcast.
        """

    @overload
    def scan_with(self, op: ScanOp, dim: Axis, reverse: _bool = False, exclusive: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def scan_with(self, op: ScanOp, axis: Axis, reverse: _bool = False, exclusive: _bool = False) -> Tensor:
        """Running combination by a monoid of the op table along an axis: inclusive, or `exclusive` of
        the element itself (then the first is the neutral element); from the end if `reverse`.
        """

    @overload
    def diff(self, n: Size = 1, dim: Axis = -1) -> Tensor: ...
        # by hand

    @overload
    def diff(self, n: Size = 1, axis: Axis = -1) -> Tensor:
        """Differences of neighbours along an axis, `n` times over."""

    @overload
    def trapezoid(self, dx: _float = 1.0, dim: Axis = -1) -> Tensor: ...
        # by hand

    @overload
    def trapezoid(self, dx: _float = 1.0, axis: Axis = -1) -> Tensor:
        """The integral along an axis of samples `dx` apart by the trapezoidal rule."""

    @overload
    def cumulative_trapezoid(self, dx: _float = 1.0, dim: Axis = -1) -> Tensor: ...
        # by hand

    @overload
    def cumulative_trapezoid(self, dx: _float = 1.0, axis: Axis = -1) -> Tensor:
        """The integral from the first sample to each further one; see `trapezoid`."""

    @overload
    def amax(self, dim: Axes | None = None, keepdim: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def amax(self, axis: Axes | None = None, keepdims: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def amax(self, axis: Axes | None = None, keepdim: _bool = False) -> Tensor:
        """Largest element along axes; the same as `max`, and all of several largest share the gradient."""
        # rust: if keepdim { t.max_keepdim(axis) } else { t.amax(axis) }

    @overload
    def amin(self, dim: Axes | None = None, keepdim: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def amin(self, axis: Axes | None = None, keepdims: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def amin(self, axis: Axes | None = None, keepdim: _bool = False) -> Tensor:
        """Smallest element along axes; see `amax`."""
        # rust: if keepdim { t.min_keepdim(axis) } else { t.amin(axis) }

    @overload
    def aminmax(self, dim: Axis | None = None, keepdim: _bool = False) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def aminmax(self, axis: Axis | None = None, keepdims: _bool = False) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def aminmax(self, axis: Axis | None = None, keepdim: _bool = False) -> tuple[Tensor, Tensor]:
        """Smallest and largest element along an axis, or of all."""
        # rust: forms::pair(t, axis, keepdim, Tensor::aminmax)

    # derivatives.rs

    @staticmethod
    def jvp(f: Any, inputs: Tensors, tangents: Tensors) -> tuple[Tensor, Tensor]:
        """`f` at `inputs`, and its derivative in the direction of `tangents`: the product of the
        Jacobian with them, exact and differentiable again.
        """
        # by hand

    @staticmethod
    def vmap(f: Any, inputs: Tensors, in_axes: Sequence[_int | None], out_axis: Axis = 0) -> Tensor:
        """`f` of each example: axis `in_axes[i]` of `inputs[i]` counts the examples, an input with
        `None` is the same for all; of the result, axis `out_axis` counts them.
        """
        # by hand

    @staticmethod
    def checkpoint(f: Any, inputs: Tensors) -> Tensor:
        """`f` at `inputs`, keeping nothing of what it computes on the way: gradients call `f` again."""
        # by hand

    @staticmethod
    def gradcheck(f: Any, inputs: Tensors, tolerance: _float = 1e-6) -> None:
        """Compares the gradients of `f` with difference quotients at `inputs`, which have to hold
        `f64`: each component of the gradient of a weighted sum of the result has to agree to
        `tolerance`, relative to the largest. Quotients are central and extrapolated from two steps,
        good to about ten digits of a function that is smooth within 0.002 of its inputs.
        """
        # by hand

    # quantized.rs

    def encode_float8(self, format: Float8 = "e4m3") -> Tensor:
        """The nearest eight-bit floats, ties to even, as `u8` codes. What is too large becomes NaN
        (E4M3) or infinite (E5M2), as in PyTorch.
        """

    def decode_float8(self, format: Float8 = "e4m3") -> Tensor:
        """The numbers that `u8` codes of eight-bit floats stand for, as `f32`."""

    # sort.rs

    @overload
    def sort(self, dim: Axis = -1, descending: _bool = False, *, stable: _bool = True) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def sort(self, axis: Axis = -1, descending: _bool = False, *, stable: _bool = True) -> tuple[Tensor, Tensor]:
        """Elements in ascending (or descending) order along an axis, and where they came from as
        `i64`. Equal elements keep their order, whatever `stable` says; NaN is the largest number.
        """
        # rust: { let _ = stable; t.sort(axis, descending) }

    @overload
    def argsort(self, dim: Axis = -1, descending: _bool = False, *, stable: _bool = True) -> Tensor: ...
        # by hand

    @overload
    def argsort(self, axis: Axis = -1, descending: _bool = False, *, stable: _bool = True) -> Tensor:
        """The positions (`i64`) that sort along an axis; see `sort`."""
        # rust: { let _ = stable; t.argsort(axis, descending) }

    def msort(self) -> Tensor:
        """The elements in ascending order along axis 0."""

    @overload
    def topk(self, k: Size, dim: Axis = -1, largest: _bool = True, sorted: _bool = True) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def topk(self, k: Size, axis: Axis = -1, largest: _bool = True, sorted: _bool = True) -> tuple[Tensor, Tensor]:
        """The `k` largest (or smallest) elements along an axis, in order whatever `sorted` says, and their
        positions as `i64`. Of equal elements the first count as more extreme.
        """
        # rust: { let _ = sorted; t.topk(k, axis, largest) }

    @overload
    def kthvalue(self, k: Size, dim: Axis = -1, keepdim: _bool = False) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def kthvalue(self, k: Size, axis: Axis = -1, keepdims: _bool = False) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def kthvalue(self, k: Size, axis: Axis = -1, keepdim: _bool = False) -> tuple[Tensor, Tensor]:
        """The `k`-th smallest element along an axis, counted from 1, and its position as `i64`; the
        axis goes away.
        """
        # rust: forms::pair(t, Some(axis), keepdim, |t, axis| t.kthvalue(k, axis))

    # statistics.rs

    @overload
    def count_nonzero(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def count_nonzero(self, axis: Axes | None = None) -> Tensor:
        """Number of nonzero elements along axes, as `i64`."""

    @overload
    def nansum(self, dim: Axes | None = None, keepdim: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def nansum(self, axis: Axes | None = None, keepdims: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def nansum(self, axis: Axes | None = None, keepdim: _bool = False) -> Tensor:
        """Sum along axes of what is not NaN."""
        # rust: forms::kept(t, axis, keepdim, |axis| t.nansum(axis))

    @overload
    def nanmean(self, dim: Axes | None = None, keepdim: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def nanmean(self, axis: Axes | None = None, keepdims: _bool = False) -> Tensor: ...
        # by hand

    @overload
    def nanmean(self, axis: Axes | None = None, keepdim: _bool = False) -> Tensor:
        """Arithmetic mean along axes of what is not NaN."""
        # rust: forms::kept(t, axis, keepdim, |axis| t.nanmean(axis))

    @overload
    def norm_p(self, p: _float, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def norm_p(self, p: _float, axis: Axes | None = None) -> Tensor:
        """`sum(|x|^p)^(1/p)` along axes: the largest magnitude for an infinite `p`, the smallest for
        minus infinity, the number of nonzero elements for 0.
        """

    @overload
    def median(self, dim: Axis | None = None, keepdim: _bool = False) -> Any: ...
        # by hand

    @overload
    def median(self, axis: Axis | None = None, keepdims: _bool = False) -> Any: ...
        # by hand

    @overload
    def median(self, axis: Axis | None = None, keepdim: _bool = False) -> Any:
        """The middle of the sorted elements along an axis, of two middles the lower, and its position
        as `i64`; NaN if there is one. The axis goes away. Without an axis the middle of all elements,
        and no position.
        """
        # rust: forms::median(t, axis, keepdim)

    @overload
    def mode(self, dim: Axis = -1, keepdim: _bool = False) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def mode(self, axis: Axis = -1, keepdims: _bool = False) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def mode(self, axis: Axis = -1, keepdim: _bool = False) -> tuple[Tensor, Tensor]:
        """The most frequent element along an axis, of several the smallest, and the position of its
        last occurrence as `i64`. The axis goes away.
        """
        # rust: forms::pair(t, Some(axis), keepdim, Tensor::mode)

    @overload
    def quantile(self, q: Quantiles, dim: Axis | None = None, keepdim: _bool = False, *, interpolation: Text = 'linear') -> Tensor: ...
        # by hand

    @overload
    def quantile(self, q: Quantiles, axis: Axis | None = None, keepdims: _bool = False, *, interpolation: Text = 'linear') -> Tensor: ...
        # by hand

    @overload
    def quantile(self, q: Quantiles, axis: Axis | None = None, keepdim: _bool = False, *, interpolation: Text = "linear") -> Tensor:
        """Quantiles along an axis or of all elements: `q` in `0 ..= 1`, with a leading axis for the numbers of a
        list. Between two neighbours by `interpolation`: `"linear"`, `"lower"`, `"higher"`, `"nearest"`,
        `"midpoint"`. NaN if there is one.
        """
        # rust: forms::quantile(t, &q, axis, keepdim, &interpolation)

    def unique(self, *, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False) -> Any:
        """The distinct elements of the flattened tensor in ascending order, whatever `sorted` says; if asked
        for with where each element went, in the shape of the tensor, and how often each occurs. Reads
        their number from the device.
        """
        # rust: { let _ = sorted; t.unique().and_then(|x| Ok(forms::unique(Unique { inverse: x.inverse.reshape(t.shape().clone())?, ..x }, return_inverse, return_counts))) }

    def unique_consecutive(self, *, return_inverse: _bool = False, return_counts: _bool = False) -> Any:
        """As `unique`, of neighbours only: the first of each run of equal elements."""
        # rust: t.unique_consecutive().and_then(|x| Ok(forms::unique(Unique { inverse: x.inverse.reshape(t.shape().clone())?, ..x }, return_inverse, return_counts)))

    def bincount_to(self, bins: Size) -> Tensor:
        """How often each of `0 .. bins` occurs, as `i64`; other elements count nowhere."""

    def bincount(self, weights: TensorLike | None = None, minlength: Size = 0) -> Tensor:
        """How often each of `0, 1, …` up to the largest element occurs, as `i64`, at least `minlength`
        numbers; or the sum of the `weights` of the places where it does. Reads the largest element from
        the device.
        """
        # rust: forms::bincount(t, weights.as_ref(), minlength)

    def histc(self, bins: Size = 100, min: _float = 0.0, max: _float = 0.0) -> Tensor:
        """Counts of elements in `bins` bins of equal width from `min` to `max`, the last including its
        upper end, in the tensor's float dtype; elements outside count nowhere. Equal ends stand for
        the smallest and the largest element, which are read from the device.
        """
        # rust: forms::ends(t, min, max, 1.0).and_then(|(min, max)| t.histc(bins, min, max))

    def histogram(self, bins: Size = 100, min: _float = 0.0, max: _float = 0.0) -> tuple[Tensor, Tensor]:
        """As `histc`, with the `bins + 1` edges of the bins."""
        # rust: forms::ends(t, min, max, 0.5).and_then(|(min, max)| t.histogram(bins, min, max))

    def cov(self, correction: Size = 1) -> Tensor:
        """Covariance matrix of variables in rows and observations in columns, with `correction`
        subtracted from the count.
        """

    def corrcoef(self) -> Tensor:
        """Correlation matrix of variables in rows and observations in columns."""

    @overload
    def var_mean(self, dim: Axes | None = None, correction: Size = 1) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def var_mean(self, axis: Axes | None = None, correction: Size = 1) -> tuple[Tensor, Tensor]:
        """Variance along axes and the mean; see `var`."""

    @overload
    def std_mean(self, dim: Axes | None = None, correction: Size = 1) -> tuple[Tensor, Tensor]: ...
        # by hand

    @overload
    def std_mean(self, axis: Axes | None = None, correction: Size = 1) -> tuple[Tensor, Tensor]:
        """Standard deviation along axes and the mean; see `std`."""

    # The same under the names that users of PyTorch and NumPy write.

    def astype(self, dtype: DTypeLike) -> Tensor:
        """As `cast`."""
        # rust: t.cast(dtype)

    def to(
        self, *target: Any, dtype: DTypeLike | None = None, device: DeviceLike | None = None, non_blocking: _bool = False, copy: _bool = False,
        memory_format: Any = None
    ) -> Tensor:
        """On another device, in another dtype, or both, given in any order or as those of a tensor."""
        # by hand

    def cpu(self) -> Tensor:
        """On the device `cpu`."""
        # by hand

    def view(self, *shape: Ints) -> Tensor:
        """As `reshape`."""
        # strict view: views::reshaped(create::reshape(t, &shape))

    def dim(self) -> _int:
        """Number of axes."""
        # rust: t.rank()

    def double(self) -> Tensor:
        """As `float64`."""
        # rust: t.cast(DType::F64)

    def half(self) -> Tensor:
        """As `float16`."""
        # rust: t.cast(DType::F16)

    def long(self) -> Tensor:
        """As `int64`."""
        # rust: t.cast(DType::I64)

    def clip(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """As `clamp`."""
        # rust: create::clamp(t, min, max)

    @overload
    def mm(self, mat2: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def mm(self, rhs: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def mm(self, other: TensorLike) -> Tensor:
        """As `matmul`."""
        # rust: t.matmul(&other)

    def ravel(self) -> Tensor:
        """As `flatten`."""
        # view: views::reshaped(Ok(t.flatten()))

    @overload
    def where(self, condition: TensorLike, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def where(self, condition: TensorLike, other: Operand) -> Tensor:
        """This tensor's elements where `condition` holds, elsewhere those of `other`."""
        # rust: forms::choose(t, &condition, other)

    def float(self) -> Tensor:
        """The same as `cast("float32")`."""
        # rust: t.cast(DType::F32)

    def int(self) -> Tensor:
        """The same as `cast("int32")`."""
        # rust: t.cast(DType::I32)

    def bool(self) -> Tensor:
        """The same as `cast("bool")`."""
        # rust: t.cast(DType::Bool)

    def bfloat16(self) -> Tensor:
        """The same as `cast("bfloat16")`."""
        # rust: t.cast(DType::BF16)

    # In-place methods, `_writes.py` and `src/writes.rs`.

    @overload
    def copy_(self, src: Operand | None = None, non_blocking: _bool = False, *, rhs: Operand | None = None) -> Tensor: ...
        # by hand

    @overload
    def copy_(self, src: Operand | None = None, non_blocking: _bool = False, *, other: Operand | None = None) -> Tensor:
        """Writes the elements of another tensor or a number, broadcast and converted. Gives the tensor."""
        # by hand

    def detach_(self) -> Tensor:
        """Cuts the tensor off its history: no gradient flows through what it was computed from. Gives the tensor."""
        # by hand

    def fill_(self, value: Operand) -> Tensor:
        """Every element becomes `value`."""
        # by hand

    def zero_(self) -> Tensor:
        """Every element becomes 0."""
        # by hand

    def fill_diagonal_(self, fill_value: Scalar, wrap: _bool = False) -> Tensor:
        """The elements whose positions along all axes are equal become `fill_value`."""
        # by hand

    def normal_(self, mean: _float = 0.0, std: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Every element is drawn from a normal distribution."""
        # by hand

    def uniform_(self, *given: _float, generator: Generator | None = None, **named: _float) -> Tensor:
        """`uniform_(from=0, to=1)`: every element is drawn uniformly from `from` up to `to`."""
        # by hand

    def random_(self, *given: _int, generator: Generator | None = None, **named: _int) -> Tensor:
        """`random_(from=0, to)`: every element is drawn from the integers from `from` up to but not including `to`; without
        limits from those that the dtype holds exactly, from 0.
        """
        # by hand

    def bernoulli_(self, p: _float | Tensor = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Every element becomes 1 with the probability `p`, else 0."""
        # by hand

    def exponential_(self, lambd: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Every element is drawn from an exponential distribution."""
        # by hand

    def geometric_(self, p: _float, *, generator: Generator | None = None) -> Tensor:
        """Every element is how often one tries until something of the probability `p` happens."""
        # by hand

    def cauchy_(self, median: _float = 0.0, sigma: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Every element is drawn from a Cauchy distribution."""
        # by hand

    def log_normal_(self, mean: _float = 1.0, std: _float = 2.0, *, generator: Generator | None = None) -> Tensor:
        """Every element is drawn from a distribution whose logarithm is normal."""
        # by hand

    def apply_(self, callable: Any) -> Tensor:
        """Every element becomes what a function of Python gives for it."""
        # by hand

    def share_memory_(self) -> Tensor:
        """The tensor itself: other processes get copies."""
        # by hand

    def is_contiguous(self) -> _bool:
        """Whether the elements are next to each other in row-major order. What was computed always is."""
        # by hand

    def abs_(self) -> Tensor:
        """As `abs`, written into the tensor."""
        # by hand

    def absolute_(self) -> Tensor:
        """As `absolute`, written into the tensor."""
        # by hand

    def acos_(self) -> Tensor:
        """As `acos`, written into the tensor."""
        # by hand

    def acosh_(self) -> Tensor:
        """As `acosh`, written into the tensor."""
        # by hand

    @overload
    def add_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def add_(self, other: Operand) -> Tensor:
        """As `add`, written into the tensor."""
        # by hand

    def addbmm_(self, *given: Any, **named: Any) -> Tensor:
        """As `addbmm`, written into the tensor."""
        # by hand

    def addcdiv_(self, x: Operand, y: Operand, value: _float = 1.0) -> Tensor:
        """As `addcdiv`, written into the tensor."""
        # by hand

    def addcmul_(self, x: Operand, y: Operand, value: _float = 1.0) -> Tensor:
        """As `addcmul`, written into the tensor."""
        # by hand

    def addmm_(self, a: TensorLike, b: TensorLike, beta: _float = 1.0, alpha: _float = 1.0) -> Tensor:
        """As `addmm`, written into the tensor."""
        # by hand

    def addmv_(self, *given: Any, **named: Any) -> Tensor:
        """As `addmv`, written into the tensor."""
        # by hand

    def addr_(self, *given: Any, **named: Any) -> Tensor:
        """As `addr`, written into the tensor."""
        # by hand

    def arccos_(self) -> Tensor:
        """As `arccos`, written into the tensor."""
        # by hand

    def arccosh_(self) -> Tensor:
        """As `arccosh`, written into the tensor."""
        # by hand

    def arcsin_(self) -> Tensor:
        """As `arcsin`, written into the tensor."""
        # by hand

    def arcsinh_(self) -> Tensor:
        """As `arcsinh`, written into the tensor."""
        # by hand

    def arctan_(self) -> Tensor:
        """As `arctan`, written into the tensor."""
        # by hand

    @overload
    def arctan2_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def arctan2_(self, other: Operand) -> Tensor:
        """As `arctan2`, written into the tensor."""
        # by hand

    def arctanh_(self) -> Tensor:
        """As `arctanh`, written into the tensor."""
        # by hand

    def asin_(self) -> Tensor:
        """As `asin`, written into the tensor."""
        # by hand

    def asinh_(self) -> Tensor:
        """As `asinh`, written into the tensor."""
        # by hand

    def atan_(self) -> Tensor:
        """As `atan`, written into the tensor."""
        # by hand

    @overload
    def atan2_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def atan2_(self, other: Operand) -> Tensor:
        """As `atan2`, written into the tensor."""
        # by hand

    def atanh_(self) -> Tensor:
        """As `atanh`, written into the tensor."""
        # by hand

    def baddbmm_(self, a: TensorLike, b: TensorLike, beta: _float = 1.0, alpha: _float = 1.0) -> Tensor:
        """As `baddbmm`, written into the tensor."""
        # by hand

    @overload
    def bitwise_and_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def bitwise_and_(self, other: Operand) -> Tensor:
        """As `bitwise_and`, written into the tensor."""
        # by hand

    @overload
    def bitwise_left_shift_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def bitwise_left_shift_(self, other: Operand) -> Tensor:
        """As `bitwise_left_shift`, written into the tensor."""
        # by hand

    def bitwise_not_(self) -> Tensor:
        """As `bitwise_not`, written into the tensor."""
        # by hand

    @overload
    def bitwise_or_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def bitwise_or_(self, other: Operand) -> Tensor:
        """As `bitwise_or`, written into the tensor."""
        # by hand

    @overload
    def bitwise_right_shift_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def bitwise_right_shift_(self, other: Operand) -> Tensor:
        """As `bitwise_right_shift`, written into the tensor."""
        # by hand

    @overload
    def bitwise_xor_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def bitwise_xor_(self, other: Operand) -> Tensor:
        """As `bitwise_xor`, written into the tensor."""
        # by hand

    def ceil_(self) -> Tensor:
        """As `ceil`, written into the tensor."""
        # by hand

    def clamp_(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """As `clamp`, written into the tensor."""
        # by hand

    def clamp_max_(self, max: Operand) -> Tensor:
        """As `clamp_max`, written into the tensor."""
        # by hand

    def clamp_min_(self, min: Operand) -> Tensor:
        """As `clamp_min`, written into the tensor."""
        # by hand

    def clip_(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """As `clip`, written into the tensor."""
        # by hand

    @overload
    def copysign_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def copysign_(self, other: Operand) -> Tensor:
        """As `copysign`, written into the tensor."""
        # by hand

    def cos_(self) -> Tensor:
        """As `cos`, written into the tensor."""
        # by hand

    def cosh_(self) -> Tensor:
        """As `cosh`, written into the tensor."""
        # by hand

    @overload
    def cumprod_(self, dim: Axis, *, dtype: DTypeLike | None = None) -> Tensor: ...
        # by hand

    @overload
    def cumprod_(self, axis: Axis, *, dtype: DTypeLike | None = None) -> Tensor:
        """As `cumprod`, written into the tensor."""
        # by hand

    @overload
    def cumsum_(self, dim: Axis, *, dtype: DTypeLike | None = None) -> Tensor: ...
        # by hand

    @overload
    def cumsum_(self, axis: Axis, *, dtype: DTypeLike | None = None) -> Tensor:
        """As `cumsum`, written into the tensor."""
        # by hand

    def deg2rad_(self) -> Tensor:
        """As `deg2rad`, written into the tensor."""
        # by hand

    def digamma_(self) -> Tensor:
        """As `digamma`, written into the tensor."""
        # by hand

    @overload
    def div_(self, rhs: Operand, *, rounding_mode: Text | None = None) -> Tensor: ...
        # by hand

    @overload
    def div_(self, other: Operand, *, rounding_mode: Text | None = None) -> Tensor:
        """As `div`, written into the tensor."""
        # by hand

    @overload
    def divide_(self, rhs: Operand, *, rounding_mode: Text | None = None) -> Tensor: ...
        # by hand

    @overload
    def divide_(self, other: Operand, *, rounding_mode: Text | None = None) -> Tensor:
        """As `divide`, written into the tensor."""
        # by hand

    def elu_(self, alpha: _float = 1.0) -> Tensor:
        """As `elu`, written into the tensor."""
        # by hand

    @overload
    def eq_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def eq_(self, other: Operand) -> Tensor:
        """As `eq`, written into the tensor."""
        # by hand

    def erf_(self) -> Tensor:
        """As `erf`, written into the tensor."""
        # by hand

    def erfc_(self) -> Tensor:
        """As `erfc`, written into the tensor."""
        # by hand

    def erfinv_(self) -> Tensor:
        """As `erfinv`, written into the tensor."""
        # by hand

    def exp_(self) -> Tensor:
        """As `exp`, written into the tensor."""
        # by hand

    def exp2_(self) -> Tensor:
        """As `exp2`, written into the tensor."""
        # by hand

    def expm1_(self) -> Tensor:
        """As `expm1`, written into the tensor."""
        # by hand

    def fix_(self) -> Tensor:
        """As `fix`, written into the tensor."""
        # by hand

    @overload
    def float_power_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def float_power_(self, other: Operand) -> Tensor:
        """As `float_power`, written into the tensor."""
        # by hand

    def floor_(self) -> Tensor:
        """As `floor`, written into the tensor."""
        # by hand

    @overload
    def floor_divide_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def floor_divide_(self, other: Operand) -> Tensor:
        """As `floor_divide`, written into the tensor."""
        # by hand

    @overload
    def fmod_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def fmod_(self, other: Operand) -> Tensor:
        """As `fmod`, written into the tensor."""
        # by hand

    def frac_(self) -> Tensor:
        """As `frac`, written into the tensor."""
        # by hand

    @overload
    def gcd_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def gcd_(self, other: Operand) -> Tensor:
        """As `gcd`, written into the tensor."""
        # by hand

    @overload
    def ge_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def ge_(self, other: Operand) -> Tensor:
        """As `ge`, written into the tensor."""
        # by hand

    @overload
    def greater_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def greater_(self, other: Operand) -> Tensor:
        """As `greater`, written into the tensor."""
        # by hand

    @overload
    def greater_equal_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def greater_equal_(self, other: Operand) -> Tensor:
        """As `greater_equal`, written into the tensor."""
        # by hand

    @overload
    def gt_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def gt_(self, other: Operand) -> Tensor:
        """As `gt`, written into the tensor."""
        # by hand

    @overload
    def heaviside_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def heaviside_(self, other: Operand) -> Tensor:
        """As `heaviside`, written into the tensor."""
        # by hand

    @overload
    def hypot_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def hypot_(self, other: Operand) -> Tensor:
        """As `hypot`, written into the tensor."""
        # by hand

    @overload
    def index_add_(self, dim: Axis, index: TensorLike, src: TensorLike, alpha: _float = 1.0) -> Tensor: ...
        # by hand

    @overload
    def index_add_(self, axis: Axis, index: TensorLike, src: TensorLike, alpha: _float = 1.0) -> Tensor:
        """As `index_add`, written into the tensor."""
        # by hand

    @overload
    def index_copy_(self, dim: Axis, index: TensorLike, src: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def index_copy_(self, axis: Axis, index: TensorLike, src: TensorLike) -> Tensor:
        """As `index_copy`, written into the tensor."""
        # by hand

    @overload
    def index_fill_(self, dim: Axis, index: TensorLike, value: Operand) -> Tensor: ...
        # by hand

    @overload
    def index_fill_(self, axis: Axis, index: TensorLike, value: Operand) -> Tensor:
        """As `index_fill`, written into the tensor."""
        # by hand

    def index_put_(self, parts: Key, values: TensorLike, accumulate: _bool = False) -> Tensor:
        """As `index_put`, written into the tensor."""
        # by hand

    @overload
    def lcm_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def lcm_(self, other: Operand) -> Tensor:
        """As `lcm`, written into the tensor."""
        # by hand

    @overload
    def ldexp_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def ldexp_(self, other: Operand) -> Tensor:
        """As `ldexp`, written into the tensor."""
        # by hand

    @overload
    def le_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def le_(self, other: Operand) -> Tensor:
        """As `le`, written into the tensor."""
        # by hand

    @overload
    def leaky_relu_(self, slope: _float = 0.01) -> Tensor: ...
        # by hand

    @overload
    def leaky_relu_(self, negative_slope: _float = 0.01) -> Tensor:
        """As `leaky_relu`, written into the tensor."""
        # by hand

    def lerp_(self, end: Operand, weight: Operand) -> Tensor:
        """As `lerp`, written into the tensor."""
        # by hand

    @overload
    def less_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def less_(self, other: Operand) -> Tensor:
        """As `less`, written into the tensor."""
        # by hand

    @overload
    def less_equal_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def less_equal_(self, other: Operand) -> Tensor:
        """As `less_equal`, written into the tensor."""
        # by hand

    def lgamma_(self) -> Tensor:
        """As `lgamma`, written into the tensor."""
        # by hand

    def log_(self) -> Tensor:
        """As `log`, written into the tensor."""
        # by hand

    def log10_(self) -> Tensor:
        """As `log10`, written into the tensor."""
        # by hand

    def log1p_(self) -> Tensor:
        """As `log1p`, written into the tensor."""
        # by hand

    def log2_(self) -> Tensor:
        """As `log2`, written into the tensor."""
        # by hand

    @overload
    def logical_and_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def logical_and_(self, other: Operand) -> Tensor:
        """As `logical_and`, written into the tensor."""
        # by hand

    def logical_not_(self) -> Tensor:
        """As `logical_not`, written into the tensor."""
        # by hand

    @overload
    def logical_or_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def logical_or_(self, other: Operand) -> Tensor:
        """As `logical_or`, written into the tensor."""
        # by hand

    @overload
    def logical_xor_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def logical_xor_(self, other: Operand) -> Tensor:
        """As `logical_xor`, written into the tensor."""
        # by hand

    def logit_(self, eps: _float | None = None) -> Tensor:
        """As `logit`, written into the tensor."""
        # by hand

    @overload
    def lt_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def lt_(self, other: Operand) -> Tensor:
        """As `lt`, written into the tensor."""
        # by hand

    def masked_fill_(self, mask: TensorLike, value: Operand) -> Tensor:
        """As `masked_fill`, written into the tensor."""
        # by hand

    def masked_scatter_(self, mask: TensorLike, src: TensorLike) -> Tensor:
        """As `masked_scatter`, written into the tensor."""
        # by hand

    @overload
    def mul_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def mul_(self, other: Operand) -> Tensor:
        """As `mul`, written into the tensor."""
        # by hand

    @overload
    def multiply_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def multiply_(self, other: Operand) -> Tensor:
        """As `multiply`, written into the tensor."""
        # by hand

    def mvlgamma_(self, *given: Any, **named: Any) -> Tensor:
        """As `mvlgamma`, written into the tensor."""
        # by hand

    def nan_to_num_(self, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """As `nan_to_num`, written into the tensor."""
        # by hand

    @overload
    def ne_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def ne_(self, other: Operand) -> Tensor:
        """As `ne`, written into the tensor."""
        # by hand

    def neg_(self) -> Tensor:
        """As `neg`, written into the tensor."""
        # by hand

    def negative_(self) -> Tensor:
        """As `negative`, written into the tensor."""
        # by hand

    @overload
    def nextafter_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def nextafter_(self, other: Operand) -> Tensor:
        """As `nextafter`, written into the tensor."""
        # by hand

    @overload
    def not_equal_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def not_equal_(self, other: Operand) -> Tensor:
        """As `not_equal`, written into the tensor."""
        # by hand

    def polygamma_(self, n: Size) -> Tensor:
        """As `polygamma`, written into the tensor."""
        # by hand

    @overload
    def pow_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def pow_(self, other: Operand) -> Tensor:
        """As `pow`, written into the tensor."""
        # by hand

    def put_(self, index: TensorLike, src: TensorLike, accumulate: _bool = False) -> Tensor:
        """As `put`, written into the tensor."""
        # by hand

    def rad2deg_(self) -> Tensor:
        """As `rad2deg`, written into the tensor."""
        # by hand

    def reciprocal_(self) -> Tensor:
        """As `reciprocal`, written into the tensor."""
        # by hand

    def relu_(self) -> Tensor:
        """As `relu`, written into the tensor."""
        # by hand

    @overload
    def remainder_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def remainder_(self, other: Operand) -> Tensor:
        """As `remainder`, written into the tensor."""
        # by hand

    def renorm_(self, *given: Any, **named: Any) -> Tensor:
        """As `renorm`, written into the tensor."""
        # by hand

    def round_(self, *, decimals: Int = 0) -> Tensor:
        """As `round`, written into the tensor."""
        # by hand

    def rsqrt_(self) -> Tensor:
        """As `rsqrt`, written into the tensor."""
        # by hand

    @overload
    def scatter_(self, dim: Axis, index: TensorLike, src: Operand) -> Tensor: ...
        # by hand

    @overload
    def scatter_(self, axis: Axis, index: TensorLike, src: Operand) -> Tensor:
        """As `scatter`, written into the tensor."""
        # by hand

    @overload
    def scatter_add_(self, dim: Axis, index: TensorLike, src: TensorLike) -> Tensor: ...
        # by hand

    @overload
    def scatter_add_(self, axis: Axis, index: TensorLike, src: TensorLike) -> Tensor:
        """As `scatter_add`, written into the tensor."""
        # by hand

    @overload
    def scatter_reduce_(self, dim: Axis, index: TensorLike, src: TensorLike, reduce: ScatterReduce = 'sum', include_self: _bool = True) -> Tensor: ...
        # by hand

    @overload
    def scatter_reduce_(self, axis: Axis, index: TensorLike, src: TensorLike, reduce: ScatterReduce = "sum", include_self: _bool = True) -> Tensor:
        """As `scatter_reduce`, written into the tensor."""
        # by hand

    def selu_(self) -> Tensor:
        """As `selu`, written into the tensor."""
        # by hand

    def sgn_(self) -> Tensor:
        """As `sgn`, written into the tensor."""
        # by hand

    def sigmoid_(self) -> Tensor:
        """As `sigmoid`, written into the tensor."""
        # by hand

    def sign_(self) -> Tensor:
        """As `sign`, written into the tensor."""
        # by hand

    def sin_(self) -> Tensor:
        """As `sin`, written into the tensor."""
        # by hand

    def sinc_(self) -> Tensor:
        """As `sinc`, written into the tensor."""
        # by hand

    def sinh_(self) -> Tensor:
        """As `sinh`, written into the tensor."""
        # by hand

    def sqrt_(self) -> Tensor:
        """As `sqrt`, written into the tensor."""
        # by hand

    def square_(self) -> Tensor:
        """As `square`, written into the tensor."""
        # by hand

    @overload
    def squeeze_(self, dim: Axes | None = None) -> Tensor: ...
        # by hand

    @overload
    def squeeze_(self, axis: Axes | None = None) -> Tensor:
        """The tensor becomes what `squeeze` gives."""
        # by hand

    @overload
    def sub_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def sub_(self, other: Operand) -> Tensor:
        """As `sub`, written into the tensor."""
        # by hand

    @overload
    def subtract_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def subtract_(self, other: Operand) -> Tensor:
        """As `subtract`, written into the tensor."""
        # by hand

    def swapaxes_(self, a: Axis, b: Axis) -> Tensor:
        """The tensor becomes what `swapaxes` gives."""
        # by hand

    @overload
    def swapdims_(self, dim0: Axis = -2, dim1: Axis = -1) -> Tensor: ...
        # by hand

    @overload
    def swapdims_(self, axis0: Axis = -2, axis1: Axis = -1) -> Tensor:
        """The tensor becomes what `swapdims` gives."""
        # by hand

    def t_(self) -> Tensor:
        """The tensor becomes what `t` gives."""
        # by hand

    def tan_(self) -> Tensor:
        """As `tan`, written into the tensor."""
        # by hand

    def tanh_(self) -> Tensor:
        """As `tanh`, written into the tensor."""
        # by hand

    @overload
    def transpose_(self, dim0: Axis = -2, dim1: Axis = -1) -> Tensor: ...
        # by hand

    @overload
    def transpose_(self, axis0: Axis = -2, axis1: Axis = -1) -> Tensor:
        """The tensor becomes what `transpose` gives."""
        # by hand

    def tril_(self, diagonal: Int = 0) -> Tensor:
        """As `tril`, written into the tensor."""
        # by hand

    def triu_(self, diagonal: Int = 0) -> Tensor:
        """As `triu`, written into the tensor."""
        # by hand

    @overload
    def true_divide_(self, rhs: Operand, *, rounding_mode: Text | None = None) -> Tensor: ...
        # by hand

    @overload
    def true_divide_(self, other: Operand, *, rounding_mode: Text | None = None) -> Tensor:
        """As `true_divide`, written into the tensor."""
        # by hand

    def trunc_(self) -> Tensor:
        """As `trunc`, written into the tensor."""
        # by hand

    @overload
    def unsqueeze_(self, dim: Axis) -> Tensor: ...
        # by hand

    @overload
    def unsqueeze_(self, axis: Axis) -> Tensor:
        """The tensor becomes what `unsqueeze` gives."""
        # by hand

    @overload
    def xlogy_(self, rhs: Operand) -> Tensor: ...
        # by hand

    @overload
    def xlogy_(self, other: Operand) -> Tensor:
        """As `xlogy`, written into the tensor."""
        # by hand

    # Second names, `_aliases.py`.

    absolute = abs
    arccos = acos
    arccosh = acosh
    arcsin = asin
    arcsinh = asinh
    arctan = atan
    arctan2 = atan2
    arctanh = atanh
    concat = cat
    concatenate = cat
    divide = div
    fix = trunc
    ger = outer
    greater = gt
    greater_equal = ge
    inverse = inv
    less = lt
    less_equal = le
    moveaxis = movedim
    multiply = mul
    negative = neg
    nelement = numel
    not_equal = ne
    pinverse = pinv
    randperm = permutation
    row_stack = vstack
    select = select_index
    sgn = sign
    subtract = sub
    swapdims = transpose
    trapz = trapezoid
    true_divide = div

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` collected, or `None`. Only of leaves: parameters and tensors made with
        `requires_grad`. May be assigned."""
        # by hand

    @property
    def is_leaf(self) -> _bool:
        """Whether no other tensor that requires gradients was needed to make it."""
        # by hand

    @property
    def data(self) -> Tensor:
        """The same elements without history. Assigning gives the tensor those of another, which both share then."""
        # by hand

    def backward(
        self, gradient: TensorLike | None = None, retain_graph: _bool | None = None, create_graph: _bool = False, inputs: Any = None
    ) -> None:
        """Adds the gradients of this number to `.grad` of every leaf that it was computed from. Nothing is
        computed before a gradient is read or a step uses it. `gradient` weighs the elements of what is not
        one number; `inputs` names the leaves if not all are wanted. With `create_graph=True` the gradients can
        be differentiated again; `retain_graph=True` says that the next call shares its graph.
        """
        # by hand

    def clone(self, *, memory_format: Any = None) -> Tensor:
        """The values as they are now; gradients flow through it."""
        # by hand

    def byte(self) -> Tensor:
        """The same as `cast("uint8")`."""
        # rust: t.cast(DType::U8)

    def char(self) -> Tensor:
        """The same as `cast("int8")`."""
        # rust: t.cast(DType::I8)

    def short(self) -> Tensor:
        """The same as `cast("int16")`."""
        # rust: t.cast(DType::I16)

    def positive(self) -> Tensor:
        """The tensor itself."""
        # by hand

    def pin_memory(self, device: Any = None) -> Tensor:
        """The tensor itself: copies to a device need no preparation."""
        # by hand

    def cuda(self, device: Any = None, non_blocking: _bool = False) -> Tensor:
        """On a device of the backend `cuda`."""
        # by hand

    @overload
    def rsub(self, rhs: Operand, *, alpha: Scalar = 1) -> Tensor: ...
        # by hand

    @overload
    def rsub(self, other: Operand, *, alpha: Scalar = 1) -> Tensor:
        """`other - alpha x`."""
        # by hand

    def fill(self, value: Scalar) -> Tensor:
        """Every element equal to `value`, as this tensor otherwise."""
        # by hand

    def new_empty(self, *shape: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: _bool = False) -> Tensor:
        """Zeros on this tensor's device and in its dtype, if no others are given."""
        # by hand

    @overload
    def tensorsolve(self, rhs: Tensor, dims: Any = None) -> Tensor: ...
        # by hand

    @overload
    def tensorsolve(self, other: Tensor, dims: Any = None) -> Tensor:
        """The `x` for which `tensordot(self, x, x.ndim)` is `other`; `dims` are moved to the end first."""
        # by hand

    @overload
    def expand_as(self, rhs: Tensor) -> Tensor: ...
        # by hand

    @overload
    def expand_as(self, other: Tensor) -> Tensor:
        """Broadcast to the shape of `other`."""
        # by hand

    @overload
    def reshape_as(self, rhs: Tensor) -> Tensor: ...
        # by hand

    @overload
    def reshape_as(self, other: Tensor) -> Tensor:
        """The elements in the shape of `other`."""
        # by hand

    def clamp_min(self, min: Operand) -> Tensor:
        """Each element, or `min` if that is larger."""
        # by hand

    def clamp_max(self, max: Operand) -> Tensor:
        """Each element, or `max` if that is smaller."""
        # by hand

    @overload
    def view_as(self, rhs: Tensor) -> Tensor: ...
        # by hand

    @overload
    def view_as(self, other: Tensor) -> Tensor:
        """The elements in the shape of `other`."""
        # by hand

    @overload
    def type_as(self, rhs: Tensor) -> Tensor: ...
        # by hand

    @overload
    def type_as(self, other: Tensor) -> Tensor:
        """Converted to the dtype of `other`."""
        # by hand

    def is_floating_point(self) -> _bool:
        """Whether the elements are floating-point numbers."""
        # by hand

    def element_size(self) -> _int:
        """Bytes of one element."""
        # by hand

    def new_zeros(self, *shape: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: _bool = False) -> Tensor:
        """Zeros on this tensor's device and in its dtype, if no others are given."""
        # by hand

    def new_ones(self, *shape: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: _bool = False) -> Tensor:
        """Ones on this tensor's device and in its dtype, if no others are given."""
        # by hand

    def new_full(self, size: Any, fill_value: Scalar, *, dtype: Any = None, device: Any = None, requires_grad: _bool = False) -> Tensor:
        """Elements equal to a value on this tensor's device and in its dtype, if no others are given."""
        # by hand

    @overload
    def dist(self, rhs: Tensor, p: Scalar = 2) -> Tensor: ...
        # by hand

    @overload
    def dist(self, other: Tensor, p: Scalar = 2) -> Tensor:
        """The p-norm of the difference."""
        # by hand

    # Written by tools/python_stubs.py from here

    def addbmm(self, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """`beta self + alpha` times the sum of the products of two batches of matrices. An operand whose factor is 0 is not read."""
        # by hand

    def addmv(self, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """`beta self + alpha mat @ vec`. An operand whose factor is 0 is not read."""
        # by hand

    def addr(self, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """`beta self + alpha` times the outer product of two vectors. An operand whose factor is 0 is not read."""
        # by hand

    def angle(self) -> Any:
        """The angle of real numbers in the complex plane: 0, or pi for negative ones."""
        # by hand

    def as_strided(self, size: Any, stride: Any, storage_offset: Any = None) -> Any:
        """The elements of memory that this tensor shares at strides from a place on: a view."""
        # by hand

    def as_strided_(self, size: Any, stride: Any, storage_offset: Any = None) -> Any:
        """Becomes `as_strided` of itself."""
        # by hand

    def as_strided_scatter(self, src: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
        """A copy with `src` at the elements that `as_strided` names."""
        # by hand

    def as_subclass(self, cls: Any) -> Any:
        """The tensor as an instance of a class: of `Tensor` itself."""
        # by hand

    def conj(self) -> Any:
        """The conjugate of real numbers: the tensor itself."""
        # by hand

    def conj_physical(self) -> Any:
        """The conjugate of real numbers: the tensor itself."""
        # by hand

    def dim_order(self, ambiguity_check: Any = False) -> Any:
        """The axes from the outermost in memory to the innermost: in order."""
        # by hand

    def frexp(self) -> Any:
        """Mantissas within 1/2 and 1 and exponents of 2 whose products are the elements."""
        # by hand

    def get_device(self) -> Any:
        """The number of the device, -1 on the CPU."""
        # by hand

    def i0(self) -> Any:
        """The modified Bessel function of the first kind and order 0."""
        # by hand

    @overload
    def igamma(self, rhs: Any) -> Any: ...
        # by hand

    @overload
    def igamma(self, other: Any) -> Any:
        """The regularised lower incomplete gamma function of shapes and `other`."""
        # by hand

    @overload
    def igammac(self, rhs: Any) -> Any: ...
        # by hand

    @overload
    def igammac(self, other: Any) -> Any:
        """1 minus `igamma`, exact where that is near 1."""
        # by hand

    def index_reduce(self, dim: Any, index: Any, source: Any, reduce: Any, *, include_self: Any = True) -> Any:
        """Slices of `source` combined with those that `index` names along an axis, by `"prod"`, `"mean"`, `"amax"` or `"amin"`."""
        # by hand

    def is_complex(self) -> _bool:
        """Whether the elements are complex numbers, which there are none of."""
        # by hand

    def is_inference(self) -> _bool:
        """Whether it was made in `inference_mode`, of which tensors keep no trace."""
        # by hand

    def is_nonzero(self) -> _bool:
        """Whether the one element is not zero; read from the device."""
        # by hand

    def is_pinned(self, device: Any = None) -> _bool:
        """Whether the memory is pinned: copies need no preparation here."""
        # by hand

    @overload
    def is_same_size(self, rhs: Any) -> _bool: ...
        # by hand

    @overload
    def is_same_size(self, other: Any) -> _bool:
        """Whether both have one shape."""
        # by hand

    def is_shared(self) -> _bool:
        """Whether processes share the memory."""
        # by hand

    def is_signed(self) -> _bool:
        """Whether the elements may be negative."""
        # by hand

    def isreal(self) -> Any:
        """Whether each element is real: all are."""
        # by hand

    def map2_(self, x: Any, y: Any, callable: Any) -> Any:
        """Applies a function of Python to each element and the elements of two other tensors, which broadcast; writes the results."""
        # by hand

    @overload
    def map_(self, rhs: Any, callable: Any) -> Any: ...
        # by hand

    @overload
    def map_(self, other: Any, callable: Any) -> Any:
        """Applies a function of Python to each element and the element of another tensor, which broadcasts; writes the results."""
        # by hand

    @overload
    def module_load(self, rhs: Any, assign: Any = False) -> Any: ...
        # by hand

    @overload
    def module_load(self, other: Any, assign: Any = False) -> Any:
        """The value that `load_state_dict` puts in the place of this one."""
        # by hand

    def mvlgamma(self, p: Any) -> Any:
        """The logarithm of the gamma function of `p` dimensions."""
        # by hand

    @overload
    def nanmedian(self, dim: Any = None, keepdims: Any = False) -> Any: ...
        # by hand

    @overload
    def nanmedian(self, dim: Any = None, keepdim: Any = False) -> Any:
        """The lower median of the elements that are not NaN; along an axis with its position."""
        # by hand

    @overload
    def nanquantile(self, q: Any, dim: Any = None, keepdims: Any = False, *, interpolation: Any = 'linear') -> Any: ...
        # by hand

    @overload
    def nanquantile(self, q: Any, dim: Any = None, keepdim: Any = False, *, interpolation: Any = 'linear') -> Any:
        """Quantiles of the elements that are not NaN; those of several `q` are stacked along a first axis."""
        # by hand

    def ndimension(self) -> Any:
        """The number of axes."""
        # by hand

    def new_empty_strided(self, size: Any, stride: Any, *, dtype: Any = None, device: Any = None, requires_grad: Any = False) -> Any:
        """Zeros on this tensor's device and in its dtype, if no others are given, with these strides."""
        # by hand

    def new_tensor(self, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: Any = False) -> Any:
        """A tensor of data on this tensor's device and in its dtype, if no others are given."""
        # by hand

    def nonzero_static(self, *, size: Any, fill_value: Any = -1) -> Any:
        """The first `size` positions of elements that are not zero, filled up with `fill_value`."""
        # by hand

    def record_stream(self, s: Any) -> Any:
        """Nothing: memory is given back when the last computation that uses it is done."""
        # by hand

    def register_hook(self, hook: Any) -> Any:
        """Calls `hook(grad)` with each gradient of this tensor; a result takes the gradient's place. Gives a handle, whose `remove()` takes the hook away."""
        # by hand

    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Calls `hook(self)` each time after `backward` has collected the gradient of this leaf. Gives a handle, whose `remove()` takes the hook away."""
        # by hand

    def renorm(self, p: Any, dim: Any, maxnorm: Any) -> Any:
        """The slices along an axis scaled down to the p-norm `maxnorm` where theirs is larger."""
        # by hand

    def resize_(self, *sizes: Any, size: Any = None, memory_format: Any = None) -> Any:
        """Becomes a tensor of another shape with the elements of its memory in order; elements that are new are zeros."""
        # by hand

    def resize_as_(self, the_template: Any, *, memory_format: Any = None) -> Any:
        """`resize_` to the shape of another tensor."""
        # by hand

    def retain_grad(self) -> Any:
        """Keeps the gradient of a tensor that was computed in `.grad`, as `backward` does that of a leaf."""
        # by hand

    def set_(self, source: Any = None, storage_offset: Any = None, size: Any = None, stride: Any = None) -> Any:
        """Becomes a tensor that shares the memory of `source`, whole or at strides; without one a tensor without elements."""
        # by hand

    def storage_offset(self) -> Any:
        """The place of the first element in memory that views share."""
        # by hand

    def sum_to_size(self, *size: Any) -> Any:
        """Summed over axes so that the shape is `size`: the reverse of broadcasting."""
        # by hand

    def to_dense(self, dtype: Any = None) -> Any:
        """The tensor itself, which is dense, in a dtype."""
        # by hand

    def to_sparse(self, sparse_dim: Any = None) -> Any:
        """The elements that are not 0, as a `SparseTensor`. Reads how many there are."""
        # by hand

    def to_sparse_csr(self, dense_dim: Any = None) -> Any:
        """A matrix as a `SparseTensor` in order of its rows."""
        # by hand

    def type(self, dtype: Any = None, non_blocking: Any = False) -> Any:
        """PyTorch's name of the kind of tensor, as in `"torch.FloatTensor"`; converted to another if one is given."""
        # by hand

    def unsafe_chunk(self, chunks: Any, dim: Any = 0) -> Any:
        """`chunk`."""
        # by hand

    def unsafe_split(self, split_size: Any, dim: Any = 0) -> Any:
        """`split`."""
        # by hand

    def i0_(self) -> Tensor:
        """As `i0`, written into the tensor."""
        # by hand

    def conj_physical_(self) -> Tensor:
        """As `conj_physical`, written into the tensor."""
        # by hand

    def index_reduce_(self, dim: Any, index: Any, source: Any, reduce: Any, *, include_self: Any = True) -> Tensor:
        """As `index_reduce`, written into the tensor."""
        # by hand

    @property
    def H(self) -> Any:
        """The matrix transposed: of real numbers also its conjugate."""
        # by hand

    @property
    def is_cpu(self) -> _bool:
        """Whether it is on the CPU."""
        # by hand

    @property
    def is_cuda(self) -> _bool:
        """Whether it is on a device of the backend `cuda`."""
        # by hand

    @property
    def is_ipu(self) -> _bool:
        """Whether it is on an IPU: there are none."""
        # by hand

    @property
    def is_maia(self) -> _bool:
        """Whether it is on a MAIA device: there are none."""
        # by hand

    @property
    def is_meta(self) -> _bool:
        """Whether it has no elements but a shape: none is."""
        # by hand

    @property
    def is_mkldnn(self) -> _bool:
        """Whether oneDNN stores it: it does not."""
        # by hand

    @property
    def is_mps(self) -> _bool:
        """Whether it is on an MPS device: there are none."""
        # by hand

    @property
    def is_mtia(self) -> _bool:
        """Whether it is on an MTIA device: there are none."""
        # by hand

    @property
    def is_nested(self) -> _bool:
        """Whether it is nested: none is."""
        # by hand

    @property
    def is_quantized(self) -> _bool:
        """Whether it is quantised: `QuantizedMatrix` is another class."""
        # by hand

    @property
    def is_sparse(self) -> _bool:
        """Whether it is sparse: `SparseTensor` is another class."""
        # by hand

    @property
    def is_sparse_csr(self) -> _bool:
        """Whether it is sparse by rows: `SparseTensor` is another class."""
        # by hand

    @property
    def is_vulkan(self) -> _bool:
        """Whether it is on a device of the backend `vulkan`."""
        # by hand

    @property
    def is_xla(self) -> _bool:
        """Whether it is on an XLA device: there are none."""
        # by hand

    @property
    def is_xpu(self) -> _bool:
        """Whether it is on an XPU: there are none."""
        # by hand

    @property
    def layout(self) -> Any:
        """How it is stored: `zyx.strided`."""
        # by hand

    @property
    def mH(self) -> Any:
        """The matrices transposed: of real numbers also their conjugates."""
        # by hand

    @property
    def name(self) -> Any:
        """A name, which tensors have none."""
        # by hand

    @property
    def output_nr(self) -> Any:
        """Which result of its function it is: functions have one."""
        # by hand

    @property
    def real(self) -> Any:
        """The real part: the tensor itself."""
        # by hand

    @property
    def retains_grad(self) -> Any:
        """Whether `.grad` is kept though it is no leaf."""
        # by hand

    @property
    def volatile(self) -> Any:
        """Gone from PyTorch: always false."""
        # by hand

    # to here.

class Parameter(Tensor):
    """A named place whose tensor changes during training; made by modules, changed by optimizers. It
    can be used wherever a tensor can.
    """

    def __init__(self, data: TensorLike, requires_grad: bool = True) -> None: ...
    # by hand

    data: Tensor
    def tensor(self) -> Tensor:
        """The tensor it holds now."""
        # by hand

    def set(self, value: TensorLike) -> None:
        """Replaces the value; shape, dtype and device stay."""
        # by hand

    def is_state(self) -> bool:
        """Whether it was made as state, as running statistics are, and not as something to train."""

    def is_trainable(self) -> bool:
        """Whether optimizers change it."""
        # by hand

    def set_trainable(self, trainable: bool) -> None:
        """Freezes it (`False`) or lets optimizers change it."""
        # by hand

    def is_same(self, other: Parameter) -> bool:
        """Whether both are one place, as the two names of a tied weight are."""
        # by hand

class DType:
    """The type of a tensor's elements; there is one object for each."""

    def __init__(self, of: DTypeLike) -> None: ...
    # by hand

    @property
    def name(self) -> str:
        """NumPy's name, as in `float32`."""

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""

    @property
    def bits(self) -> int:
        """Bits of one element; `bool` is stored in eight."""

    @property
    def is_floating_point(self) -> bool:
        """Whether it holds floating-point numbers."""

    @property
    def is_integer(self) -> bool:
        """Whether it holds integers; `bool` does not."""

    @property
    def is_signed(self) -> bool:
        """Whether it holds negative numbers."""

    def __call__(self, x: TensorLike) -> Tensor:
        """A tensor converted to this dtype."""

    def promote(self, other: DTypeLike) -> DType:
        """The dtype of a result of operands of these two."""

class Device:
    """An open device: `zyx.Device("cpu")`, `zyx.Device("cuda:0")`. Opening one again shares it."""

    def __init__(self, spec: DeviceLike | None = None) -> None: ...
    # by hand

    @property
    def spec(self) -> str:
        """`backend:ordinal`, as in `cuda:0`."""

    @property
    def type(self) -> str:
        """The backend, as in `cuda`."""

    @property
    def name(self) -> str:
        """The name the driver gives."""

    @property
    def kind(self) -> str:
        """What runs the kernels: `gpu`, `cpu`, `software` or `interpreter`."""

    @property
    def memory(self) -> int:
        """Bytes of memory, 0 if unknown."""

    def synchronize(self) -> None:
        """Waits until everything submitted so far is done."""

    def trim(self) -> None:
        """Frees what is kept for reuse: memory of the device, plans, and programs that nothing uses."""

    def trim_memory(self) -> None:
        """Gives memory of the device that is cached for reuse back to the driver."""

    def set_cache_limit(self, bytes: int) -> None:
        """Limits the bytes of host memory that compiled programs and plans take, roughly."""

    def set_memory_limit(self, bytes: int | None = None) -> None:
        """Limits the bytes this device may hold; `None` lifts the limit."""

    def tune(self, seconds: float = 1.0) -> list[tuple[str, float, float]]:
        """Looks for faster kernels among all generated so far, for `seconds` at most; gives name, time
        of a launch before and time of a launch now, in seconds, of each that was searched. Kernels of the program that were called
        are tried with other values of their parameters (`zyx.lang.Lang.parameter`)."""

    def set_tuning(self, seconds: float | None = None) -> None:
        """Looks for faster kernels while programs run, for `seconds` in all; `None` ends that."""

    def set_profiling(self, on: bool = True) -> None:
        """Starts or stops measuring each launch, which then waits for the one before."""

    def is_profiling(self) -> bool:
        """Whether launches are measured."""

    def set_deterministic(self, on: bool = True) -> None:
        """Allows results that differ in rounding from run to run, or forbids them, as it is at first.
        Float sums that are scattered from now on, in gradients too, are then added in any order where
        the device can, which is several times faster."""

    def is_deterministic(self) -> bool:
        """Whether every computation gives the same bits each time it is run."""

    def set_checked(self, on: bool = True) -> None:
        """Turns checked mode on or off: while it is on, operations whose operands are finite and whose
        result is not, and indices and class numbers out of range, are errors that name the
        operation, the position, the value and the line that called it. It takes a multiple of the
        time; the environment variable `ZYX_CHECKED=1` turns it on for every device."""

    def is_checked(self) -> bool:
        """Whether checked mode is on."""

    def profile(self) -> list[tuple[str, int, float]]:
        """Name, launches and seconds of each kernel since profiling started, the dearest first."""

    def reset_peak(self) -> None:
        """Counts the peak of the memory in use (`peak_bytes`) from here on."""

    def stats(self) -> dict[str, int]:
        """Counters of what the device did: launches, compiles, bytes moved and so on."""

class Rng:
    """A stream of random numbers that is a function of its seed, the same on every device."""

    def __init__(self, seed: int = 0) -> None: ...
    # by hand

    def split(self) -> Rng:
        """A stream of its own, drawn from this one."""

    def next_u64(self) -> int:
        """The next 64 random bits."""

    def below(self, n: int) -> int:
        """A number from 0 up to but not including `n`."""

    def key(self) -> list[int]:
        """The key of the stream."""

    def counter(self) -> int:
        """How many blocks were drawn."""

    @staticmethod
    def at(key: Sequence[int], counter: int) -> Rng:
        """The stream at a place: what `key` and `counter` told before."""

class Jit:
    """A function of a list of tensors that gives a list of tensors, traced once for each kind of them."""

    def __init__(self, function: Any) -> None: ...
    def __call__(self, inputs: Tensors) -> list[Tensor]:
        """The results for these tensors."""

    @property
    def traces(self) -> int:
        """For how many kinds of inputs plans are kept."""

class QuantizedMatrix:
    """A matrix `[rows, columns]` of four- or eight-bit integers with a scale for each group of columns
    of each row, made of a matrix of floats."""

    def __init__(self, weight: Tensor, bits: int = 4, group: int = 32) -> None: ...
    # by hand

    @property
    def packed(self) -> Tensor:
        """The integers: `int8 [rows, columns]`, or `uint8 [rows, columns / 2]` with two in a byte."""

    @property
    def scales(self) -> Tensor:
        """The scales, `[rows, columns / group]`."""

    @property
    def bits(self) -> int:
        """4 or 8."""

    @property
    def group(self) -> int:
        """Columns that share a scale."""

    def dequantize(self) -> Tensor:
        """The numbers, `float32 [rows, columns]`."""

    def matmul(self, x: Tensor) -> Tensor:
        """`x @ w.T` of `[.., columns]`, as a linear layer's weight is applied; gradients flow to `x`."""

class ShapeError(ValueError, RuntimeError):
    """Shapes that do not fit."""

class DTypeError(TypeError, RuntimeError):
    """Dtypes that an operation is not defined on."""

class AxisError(IndexError, ValueError):
    """An axis that a tensor does not have."""

class KernelError(ValueError, RuntimeError):
    """A kernel of `zyx.kernel` that is wrong, at a line of the program."""

    filename: str
    lineno: int

class OutOfMemoryError(MemoryError, RuntimeError):
    """A device without memory left."""

def tensor(
    data: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: bool = False,
    pin_memory: bool = False
) -> Tensor:
    """Makes a tensor of anything that holds numbers."""

def from_dlpack(x: Any, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """A tensor of another library's array, sharing its memory where both can: on a device that computes
    in host memory. Writing to the array then changes the tensor.
    """

def manual_seed(seed: int) -> None:
    """Restarts the random stream that calls without a generator draw from."""

def device() -> Device:
    """The device that tensors are made on when none is named: the best that opens, or what the
    environment variable `ZYX_DEVICE` names.
    """

def devices() -> list[tuple[str, str, str]]:
    """The devices that are present, as `(spec, name, kind)`."""

def load_safetensors(file: Any, device: DeviceLike | None = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file, by name. Of a model in several files, `file` is its index
    (`model.safetensors.index.json`) or a folder that has `model.safetensors` or that index."""

def save_safetensors(tensors: dict[str, Any], file: Any, float8: dict[str, str] | None = None) -> None:
    """Writes tensors to a safetensors file, which is replaced at once when it is complete. `float8`
    gives names of those that are kept as eight-bit floats, with `e4m3` or `e5m2` for each."""

def load_npy(file: Any, device: DeviceLike | None = None) -> Tensor:
    """The tensor of a file of NumPy, `.npy`."""

def save_npy(tensor: TensorLike, file: Any) -> None:
    """Writes a tensor to a file that NumPy reads, `.npy`."""

def load_npz(file: Any, device: DeviceLike | None = None, *, limit: Size | None = None) -> dict[str, Tensor]:
    """The tensors of an archive of NumPy, `.npz`, by name; unpacked they have at most `limit` bytes, 1 GiB or 16
    times the archive if none is given."""

def load_pytorch(file: Any, device: DeviceLike | None = None, *, limit: Size | None = None) -> dict[str, Tensor]:
    """The tensors of a state dict that PyTorch saved (`torch.save`: `.pt`, `.pth`, `.bin`), by name. Nothing in the
    file is executed; one that needs other functions or classes than tensors and dicts do is refused. Names of dicts within one another
    are joined by dots; what is no tensor is left out. The tensors have at most `limit` bytes, 1 GiB or 16 times the file
    if none is given."""

def save_npz(tensors: dict[str, Any], file: Any) -> None:
    """Writes tensors to an archive that NumPy reads, `.npz`."""

class SafetensorsFile:
    """A safetensors file of which the directory alone was read."""

    def keys(self) -> list[str]:
        """The names of the tensors."""

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""

    def dtype(self, name: str) -> DType:
        """The dtype a tensor has when it is read."""

    def load(self, name: str, device: DeviceLike | None = None) -> Tensor:
        """Reads a tensor."""

    def __getitem__(self, name: str) -> Tensor: ...
    def __contains__(self, name: str) -> bool: ...
    def __len__(self) -> int: ...

class GgufFile:
    """A GGUF file of which the directory alone was read."""

    @property
    def metadata(self) -> dict[str, Any]:
        """What the file says about the model, by name."""

    def keys(self) -> list[str]:
        """The names of the tensors."""

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""

    def load(self, name: str, device: DeviceLike | None = None) -> Tensor:
        """Reads a tensor; a quantised one (`Q4_0`, `Q4_1`, `Q5_0`, `Q5_1`, `Q8_0`, `Q2_K` to `Q6_K`, `Q8_K`) becomes `float32`."""

    def __getitem__(self, name: str) -> Tensor: ...
    def __contains__(self, name: str) -> bool: ...
    def __len__(self) -> int: ...

def open_safetensors(file: Any) -> SafetensorsFile:
    """Opens a safetensors file and reads its directory; tensors are read when they are asked for. `file` may be what
    `load_safetensors` takes."""

def open_gguf(file: Any) -> GgufFile:
    """Opens a GGUF file and reads its directory; tensors are read when they are asked for."""

class Plateau:
    """Lowers the rate when a result (a loss: smaller is better) has stopped to improve."""

    def __init__(
        self, rate: float, factor: float = 0.1, patience: int = 10, threshold: float = 1e-4, cooldown: int = 0, least: float = 0.0
    ) -> None: ...
    def observe(self, loss: float) -> float:
        """Takes a result into account; the rate from now on."""

    @property
    def rate(self) -> float:
        """The rate now."""

    @property
    def best(self) -> float:
        """The best result so far."""

def safetensors_from_bytes(data: bytes, device: DeviceLike | None = None) -> dict[str, Tensor]:
    """The tensors in the bytes of a safetensors file, by name."""

def is_grad_enabled() -> bool:
    """Whether results keep their history in this thread."""

def safetensors_to_bytes(tensors: dict[str, Any]) -> bytes:
    """The bytes of a safetensors file with these tensors."""

def clip_norm(gradients: Sequence[Tensor | None], max: float) -> tuple[list[Tensor | None], Tensor]:
    """The gradients scaled so that all together have at most the norm `max`, and the norm they had."""

def clip_value(gradients: Sequence[Tensor | None], max: float) -> list[Tensor | None]:
    """The gradients with every element limited to `-max ..= max`."""

u8: DType
u16: DType
u32: DType
u64: DType
i8: DType
i16: DType
i32: DType
i64: DType
f16: DType
bf16: DType
f32: DType
f64: DType
uint8: DType
uint16: DType
uint32: DType
uint64: DType
int8: DType
int16: DType
int32: DType
int64: DType
float16: DType
bfloat16: DType
float32: DType
float64: DType
