"""The native part of zyx: tensors, dtypes, devices.

This file is also the table that the bindings are made from: `build/` writes one for each method of
`Tensor` below that is not marked `# by hand`. An entry calls the method of that name in Rust with
the parameters in order, or else what its `# rust:` line says.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

Scalar: TypeAlias = bool | int | float
Size: TypeAlias = int
Int: TypeAlias = int
Axis: TypeAlias = int
Axes: TypeAlias = int | Sequence[int]
AxisList: TypeAlias = int | Sequence[int]
Shape: TypeAlias = int | Sequence[int]
Sizes: TypeAlias = int | Sequence[int]
Ints: TypeAlias = int | Sequence[int]
Floats: TypeAlias = float | Sequence[float]
Pads: TypeAlias = Sequence[tuple[int, int]]
One: TypeAlias = int | Sequence[int]
Pair: TypeAlias = int | Sequence[int]
Triple: TypeAlias = int | Sequence[int]
TensorLike: TypeAlias = Any
Operand: TypeAlias = Any
Tensors: TypeAlias = Iterable[Any]
DTypeLike: TypeAlias = DType | str | type | Any
DeviceLike: TypeAlias = Device | str
Reduction: TypeAlias = Literal["mean", "sum", "none"] | str
Generator: TypeAlias = Rng
Bytes: TypeAlias = bytes

class Tensor:
    """An immutable n-dimensional array on a device, computed when it is needed.

    `Tensor(data, dtype=None, device=None, requires_grad=False)` copies numbers, nested lists, NumPy
    arrays and whatever exports memory. Integers become `int64` and floats `float32` unless a dtype
    is given; arrays keep theirs.
    """

    def __init__(
        self,
        data: TensorLike,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool = False,
    ) -> None:
        """A tensor of anything that holds numbers."""
        # by hand

    # What a tensor is.

    @property
    def shape(self) -> tuple[int, ...]:
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
    def ndim(self) -> int:
        """Number of axes."""
        # by hand

    @property
    def size(self) -> int:
        """Number of elements."""
        # by hand

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        # by hand

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        # by hand

    @property
    def requires_grad(self) -> bool:
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

    def item(self) -> bool | int | float:
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

    def numpy(self, *, copy: bool = False) -> Any:
        """A NumPy array of the elements. On a device that computes in host memory the array shares it
        and is read-only, unless `copy=True`.
        """
        # by hand

    # Gradients.

    def gradient(self, *leaves: Any) -> list[Tensor]:
        """Gradients of this number for each of `leaves`; zeros for one it does not depend on."""
        # by hand

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """With `requires_grad` as said: a tracked leaf, or cut off from its history."""
        # by hand

    def with_gradient(self, inputs: Tensors, rule: Any) -> Tensor:
        """These values, with gradients that flow to `inputs` (at most two) by `rule` instead of being
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
    def __lt__(self, other: Operand) -> Tensor: ...
    def __le__(self, other: Operand) -> Tensor: ...
    def __gt__(self, other: Operand) -> Tensor: ...
    def __ge__(self, other: Operand) -> Tensor: ...
    def __eq__(self, other: Operand) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: Operand) -> Tensor: ...  # type: ignore[override]
    def __divmod__(self, other: Operand) -> tuple[Tensor, Tensor]: ...
    def __hash__(self) -> int: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __getitem__(self, key: Any) -> Tensor: ...
    def __contains__(self, value: Operand) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __bool__(self) -> bool: ...
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __format__(self, spec: str) -> str: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

    # activation.rs

    def relu(self) -> Tensor:
        """`max(x, 0)`; NaN stays NaN."""

    def leaky_relu(self, slope: float = 0.01) -> Tensor:
        """`x` where positive, else `slope * x`."""

    def sigmoid(self) -> Tensor:
        """`1 / (1 + e^-x)`."""

    def silu(self) -> Tensor:
        """`x * sigmoid(x)`, also called swish."""

    def softplus(self) -> Tensor:
        """`log(1 + e^x)`, without overflow."""

    def elu(self, alpha: float = 1.0) -> Tensor:
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

    @staticmethod
    def zeros(*shape: Shape, dtype: DTypeLike = "float32", device: DeviceLike | None = None) -> Tensor:
        """Zeros."""

    @staticmethod
    def ones(*shape: Shape, dtype: DTypeLike = "float32", device: DeviceLike | None = None) -> Tensor:
        """Ones."""

    @staticmethod
    def full(
        shape: Shape, value: Scalar, dtype: DTypeLike | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Every element equal to `x`."""
        # rust: value.full(shape, dtype, device)

    def zeros_like(self) -> Tensor:
        """Zeros with shape, dtype and device of `self`."""

    def ones_like(self) -> Tensor:
        """Ones with shape, dtype and device of `self`."""

    @staticmethod
    def iota(n: Size, dtype: DTypeLike = "int64", device: DeviceLike | None = None) -> Tensor:
        """`0, 1, …, n - 1` in any dtype."""

    @staticmethod
    def arange(
        start: Scalar, end: Scalar | None = None, step: Scalar | None = None, dtype: DTypeLike | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """`start, start + step, …` up to but not including `end`, in the dtype of the numbers."""
        # rust: create::arange(start, end, step, dtype, device)

    @staticmethod
    def linspace(
        start: float, end: float, n: Size = 50, dtype: DTypeLike = "float32", device: DeviceLike | None = None
    ) -> Tensor:
        """`n` numbers from `start` to `end`, both included, evenly spaced, as `f32`."""
        # rust: create::linspace(start, end, n, dtype, device)

    @staticmethod
    def eye(n: Size, dtype: DTypeLike = "float32", device: DeviceLike | None = None) -> Tensor:
        """The identity matrix of order `n`."""

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

    def round(self) -> Tensor:
        """Nearest integer, ties to even."""

    def trunc(self) -> Tensor:
        """Integer part."""

    def add(self, other: Operand) -> Tensor:
        """Sum, with broadcasting and promotion."""

    def sub(self, other: Operand) -> Tensor:
        """Difference."""

    def mul(self, other: Operand) -> Tensor:
        """Product."""

    def fmod(self, other: Operand) -> Tensor:
        """Remainder with the sign of the dividend (C's `fmod`)."""

    def atan2(self, other: Operand) -> Tensor:
        """Angle of the point `(rhs, self)` in radians."""

    def maximum(self, other: Operand) -> Tensor:
        """Elementwise larger value; NaN if either is."""

    def minimum(self, other: Operand) -> Tensor:
        """Elementwise smaller value; NaN if either is."""

    def bitwise_and(self, other: Operand) -> Tensor:
        """Bitwise and; logical on bool."""

    def bitwise_or(self, other: Operand) -> Tensor:
        """Bitwise or; logical on bool."""

    def bitwise_xor(self, other: Operand) -> Tensor:
        """Bitwise exclusive or; logical on bool."""

    def shl(self, other: Operand) -> Tensor:
        """Shift left."""

    def shr(self, other: Operand) -> Tensor:
        """Shift right, arithmetic on signed integers."""

    def lt(self, other: Operand) -> Tensor:
        """`self < rhs`, as bool."""

    def le(self, other: Operand) -> Tensor:
        """`self <= rhs`, as bool."""

    def eq(self, other: Operand) -> Tensor:
        """`self == rhs`, as bool; NaN equals nothing."""

    def ne(self, other: Operand) -> Tensor:
        """`self != rhs`, as bool."""

    def div(self, other: Operand) -> Tensor:
        """True division: integers are converted to `f32` first."""

    def trunc_divide(self, other: Operand) -> Tensor:
        """Division truncated towards zero, in the promoted dtype; an integer divided by 0 is 0."""

    def floor_divide(self, other: Operand) -> Tensor:
        """Division rounded down, as Python's `//`; an integer divided by 0 is 0."""

    def remainder(self, other: Operand) -> Tensor:
        """Remainder with the sign of the divisor, as Python's `%`; `x % 0` is `x` on integers."""

    def pow(self, other: Operand) -> Tensor:
        """`self` to the power `rhs`. An integer to a negative power is 0, unless the base is 1 or -1."""

    def gt(self, other: Operand) -> Tensor:
        """`self > rhs`, as bool."""

    def ge(self, other: Operand) -> Tensor:
        """`self >= rhs`, as bool."""

    def bitwise_not(self) -> Tensor:
        """Bitwise complement; logical on bool."""

    def logical_not(self) -> Tensor:
        """Whether each element is zero (false)."""

    def logical_and(self, other: Operand) -> Tensor:
        """Both nonzero."""

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

    def gather(self, axis: Axis, index: TensorLike) -> Tensor:
        """`out[.., i, ..] = self[.., index[.., i, ..], ..]` along `axis`; `index` has the result's
        shape and at most this tensor's extent along the other axes.
        """

    def index_select(self, axis: Axis, index: TensorLike) -> Tensor:
        """The entries `index` (one axis) of one axis, in that order: time linear in the result."""

    def embedding(self, index: TensorLike) -> Tensor:
        """Rows of a `[vocabulary, width]` table: the shape of `index` with `width` appended."""

    def scatter(self, axis: Axis, index: TensorLike, src: TensorLike) -> Tensor:
        """This tensor with `src[.., i, ..]` written to `[.., index[.., i, ..], ..]`; of several writes
        to one place the last in row-major order holds.
        """

    def scatter_add(self, axis: Axis, index: TensorLike, src: TensorLike) -> Tensor:
        """This tensor with `src[.., i, ..]` added to `[.., index[.., i, ..], ..]`."""

    def one_hot(self, classes: Size) -> Tensor:
        """A new last axis of extent `classes`, true at the element's value."""

    # linalg.rs

    def matmul(self, other: TensorLike) -> Tensor:
        """Matrix product over the last two axes; leading axes broadcast. A vector on the left is a
        row, on the right a column, and its axis disappears. Halves accumulate in `f32`.
        """

    def dot(self, other: TensorLike) -> Tensor:
        """Sum of the products of two vectors of equal length."""

    # loss.rs

    def cross_entropy(
        self, target: TensorLike, ignore_index: Int | None = None, label_smoothing: float = 0.0, reduction: Reduction = "mean"
    ) -> Tensor:
        """Mean cross entropy of logits `[n, classes, ..]` (or `[classes]`) against class numbers `[n,
        ..]` (or a scalar) of any integer dtype: `logsumexp(x) - x[target]`.
        """
        # rust: t.cross_entropy_with(&target, CrossEntropy { ignore_index, label_smoothing, reduction, ..CrossEntropy::default() })

    def nll_loss(
        self, target: TensorLike, ignore_index: Int | None = None, reduction: Reduction = "mean"
    ) -> Tensor:
        """Mean negative log-likelihood of log-probabilities `[n, classes, ..]` (or `[classes]`)
        against class numbers `[n, ..]`: `-x[target]`. A class number out of range makes it NaN.
        """
        # rust: t.nll_loss(&target, CrossEntropy { ignore_index, reduction, ..CrossEntropy::default() })

    def mse_loss(self, target: TensorLike, reduction: Reduction = "mean") -> Tensor:
        """Squared difference."""

    def l1_loss(self, target: TensorLike, reduction: Reduction = "mean") -> Tensor:
        """Absolute difference."""

    def huber_loss(self, target: TensorLike, delta: float = 1.0, reduction: Reduction = "mean") -> Tensor:
        """Huber's loss (1964) of the difference `d`: `d^2 / 2` up to `delta`, from there on the line
        `delta * (|d| - delta / 2)`.
        """

    def smooth_l1_loss(self, target: TensorLike, beta: float = 1.0, reduction: Reduction = "mean") -> Tensor:
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

    def rank(self) -> int:
        """Number of axes."""

    def numel(self) -> int:
        """Number of elements."""

    def is_realized(self) -> bool:
        """Whether the value has been computed."""

    def tracked(self) -> Tensor:
        """The same values as a tracked leaf: a parameter. Everything computed from it keeps its
        history, so `grad` works even after values were read.
        """

    def detach(self) -> Tensor:
        """The same values, cut off from the history and untracked: no gradient flows back."""

    def realize(self) -> None:
        """Computes the value, if it is not there yet."""

    @staticmethod
    def realize_all(tensors: Tensors) -> None:
        """Computes several values as one plan, sharing work between them. The tensors may be on
        different devices.
        """
        # rust: Tensor::realize_all(tensors.list())

    # movement.rs

    def reshape(self, *shape: Ints) -> Tensor:
        """The same elements, in row-major order, with another shape."""
        # rust: create::reshape(t, &shape)

    def flatten(self) -> Tensor:
        """All elements along one axis."""

    def flatten_axes(self, start_axis: Axis = 0, end_axis: Axis = -1) -> Tensor:
        """The axes from `start` to `end` (inclusive) merged into one."""

    def permute(self, *axis: AxisList) -> Tensor:
        """The axes in another order: axis `i` of the result is axis `axes[i]` of this."""

    def transpose(self, a: Axis = -2, b: Axis = -1) -> Tensor:
        """Two axes exchanged."""

    def t(self) -> Tensor:
        """The last two axes exchanged; all axes reversed below rank 2 (so: unchanged)."""

    def expand(self, *shape: Ints) -> Tensor:
        """Axes of extent 1 repeated to `shape`; missing leading axes are added."""
        # rust: create::expand(t, &shape)

    def unsqueeze(self, axis: Axis) -> Tensor:
        """A new axis of extent 1 before `axis`; -1 adds it at the end."""

    def squeeze(self, axis: Axis) -> Tensor:
        """An axis of extent 1 removed."""

    def pad(self, padding: Pads) -> Tensor:
        """Zeros added before and after each axis."""

    def pad_with(self, padding: Pads, value: float) -> Tensor:
        """Elements of value `value` added before and after each axis."""

    def shrink(self, ranges: Pads) -> Tensor:
        """The block from `ranges[i].0` up to `ranges[i].1` along each axis."""

    def slice(self, axis: Axis, start: Size = 0, end: Size | None = None) -> Tensor:
        """The elements of one axis within a range, as `x.slice(1, 2..5)`."""
        # rust: create::slice(t, axis, start, end)

    def stride(self, axis: Axis, start: Size = 0, step: Size = 1) -> Tensor:
        """Every `step`-th element of one axis, from `start` on."""

    def select_index(self, axis: Axis, position: Axis) -> Tensor:
        """One position of an axis; the axis disappears."""

    def flip(self, *axis: Axes) -> Tensor:
        """The order of elements along the axes reversed."""

    @staticmethod
    def cat(tensors: Tensors, axis: Axis = 0) -> Tensor:
        """Tensors joined along an existing axis; dtypes are promoted."""

    @staticmethod
    def stack(tensors: Tensors, axis: Axis = 0) -> Tensor:
        """Tensors of one shape joined along a new axis."""

    def split(self, size: Size, axis: Axis = 0) -> list[Tensor]:
        """Pieces of extent `size` along an axis, the last one smaller if need be."""

    def chunk(self, n: Size, axis: Axis = 0) -> list[Tensor]:
        """`n` pieces along an axis, the first ones larger by one if it does not divide."""

    def repeat(self, *times: Sizes) -> Tensor:
        """The tensor repeated `times[i]` times along each axis."""

    def to_device(self, device: DeviceLike) -> Tensor:
        """The same values on another device."""

    def contiguous(self) -> Tensor:
        """The tensor stored as it is: a point at which fusion stops."""

    # normalize.rs

    def softmax(self, axis: Axes = -1) -> Tensor:
        """`exp(x) / sum(exp(x))` along axes, without overflow. A slice of only `-inf` gives NaN."""

    def log_softmax(self, axis: Axes = -1) -> Tensor:
        """`x - log(sum(exp(x)))` along axes: the logarithm of `softmax`, accurate where that underflows."""

    def layer_norm(
        self, axis: Axes = -1, weight: TensorLike | None = None, bias: TensorLike | None = None, eps: float = 1e-5
    ) -> Tensor:
        """Layer normalisation (Ba et al. 2016): mean 0 and variance 1 along `axes` (usually -1), `(x -
        mean) / sqrt(var + eps)`, then times `weight` plus `bias`, which broadcast (so have the
        shape of the last axes).
        """

    def rms_norm(self, axis: Axes = -1, weight: TensorLike | None = None, eps: float = 1e-6) -> Tensor:
        """Root mean square normalisation (Zhang and Sennrich 2019): `x / sqrt(mean(x^2) + eps)` along
        `axes`, then times `weight`.
        """

    def batch_norm(
        self, weight: TensorLike | None = None, bias: TensorLike | None = None, eps: float = 1e-5
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Batch normalisation in training (Ioffe and Szegedy 2015): each channel (axis 1) has mean 0
        and variance 1 over all other axes, then is scaled by `weight` and moved by `bias`, both
        `[channels]`. The statistics come along, for the running averages.
        """

    def batch_norm_with(
        self, mean: TensorLike, var: TensorLike, weight: TensorLike | None = None, bias: TensorLike | None = None, eps: float = 1e-5
    ) -> Tensor:
        """Batch normalisation with given statistics, both `[channels]`: what a trained network does."""

    def group_norm(
        self, groups: Size, weight: TensorLike | None = None, bias: TensorLike | None = None, eps: float = 1e-5
    ) -> Tensor:
        """Group normalisation (Wu and He 2018): the channels (axis 1) in `groups` equal groups, each
        with mean 0 and variance 1 per batch element, then scaled by `weight` and moved by `bias`,
        both `[channels]`.
        """

    def normalize(self, axis: Axes = -1, eps: float = 1e-12) -> Tensor:
        """Divided by the Euclidean norm along axes, or by `eps` if that is larger."""

    # pool.rs

    def max_pool2d(
        self, kernel: Pair, stride: Pair | None = None, padding: Pair = 0, dilation: Pair = 1
    ) -> Tensor:
        """The largest element of each window over the last two axes; NaN if it has one. What is padded
        never wins.
        """
        # rust: t.max_pool2d(Pool2d { stride: stride.unwrap_or(kernel), padding, dilation, ..Pool2d::new(kernel) })

    def avg_pool2d(
        self, kernel: Pair, stride: Pair | None = None, padding: Pair = 0, dilation: Pair = 1
    ) -> Tensor:
        """The mean of each window over the last two axes; padded zeros count. Integers give `f32`."""
        # rust: t.avg_pool2d(Pool2d { stride: stride.unwrap_or(kernel), padding, dilation, ..Pool2d::new(kernel) })

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

    @staticmethod
    def rand(
        *shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Uniform on `[0, 1)`: all multiples of 2^-24 (`f32`; 2^-53 for `f64`, 2^-11 for `f16`, 2^-8
        for `bf16`) are equally likely.
        """

    @staticmethod
    def rand_range(
        low: float, high: float, shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Uniform on `[low, high)`; rounding can yield `high` itself."""

    @staticmethod
    def randn(
        *shape: Shape, dtype: DTypeLike = "float32", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Normal with mean 0 and variance 1, by the transform of Box and Muller (1958): `sqrt(-2 log
        u) cos(2 pi v)` with `u` in `(0, 1]`, computed in `f32` for halves. The largest number is
        about 5.8 in `f32` (24 bits of `u`) and 6.7 in `f64` (32 bits).
        """

    @staticmethod
    def randint(
        low: Int, high: Int, shape: Shape, dtype: DTypeLike = "int64", rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """Integers from `low` up to but not including `high`, equally likely up to `range / 2^64`."""

    @staticmethod
    def bernoulli(
        p: float, shape: Shape, rng: Generator | None = None, device: DeviceLike | None = None
    ) -> Tensor:
        """True with probability `p` (rounded to a multiple of 2^-24), as bool."""

    @staticmethod
    def permutation(n: Size, rng: Generator | None = None, device: DeviceLike | None = None) -> Tensor:
        """The numbers `0..n` in random order, as `i64`; shuffled on the host (Fisher and Yates)."""

    def dropout(self, p: float = 0.5, rng: Generator | None = None) -> Tensor:
        """Each element set to zero with probability `p`, the others scaled by `1 / (1 - p)`, so that
        the mean stays (Srivastava et al. 2014). With `p` 0 this is `self` and takes no blocks.
        """

    # reduce.rs

    def sum(self, axis: Axes | None = None, keepdim: bool = False) -> Tensor:
        """Sum. Integers are summed in 64 bits; the sum of nothing is 0."""

    def sum_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Sum. Integers are summed in 64 bits; the sum of nothing is 0."""

    def prod(self, axis: Axes | None = None, keepdim: bool = False) -> Tensor:
        """Product. Integers are multiplied in 64 bits; the product of nothing is 1."""

    def prod_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Product. Integers are multiplied in 64 bits; the product of nothing is 1."""

    def max(self, axis: Axes | None = None, keepdim: bool = False) -> Tensor:
        """Largest element; NaN if there is one; `-inf` or the dtype's minimum of nothing."""

    def max_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Largest element; NaN if there is one; `-inf` or the dtype's minimum of nothing."""

    def min(self, axis: Axes | None = None, keepdim: bool = False) -> Tensor:
        """Smallest element; NaN if there is one; `inf` or the dtype's maximum of nothing."""

    def min_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Smallest element; NaN if there is one; `inf` or the dtype's maximum of nothing."""

    def mean(self, axis: Axes | None = None, keepdim: bool = False) -> Tensor:
        """Arithmetic mean; NaN of nothing. Integers give `f32`."""

    def mean_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Arithmetic mean; NaN of nothing. Integers give `f32`."""

    def any(self, axis: Axes | None = None, keepdim: bool = False) -> Tensor:
        """Whether any element is nonzero; false of nothing."""

    def any_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Whether any element is nonzero; false of nothing."""

    def all(self, axis: Axes | None = None, keepdim: bool = False) -> Tensor:
        """Whether all elements are nonzero; true of nothing."""

    def all_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Whether all elements are nonzero; true of nothing."""

    def logsumexp(self, axis: Axes | None = None, keepdim: bool = False) -> Tensor:
        """`log(sum(exp(x)))`, without overflow."""

    def logsumexp_keepdim(self, axis: Axes | None = None) -> Tensor:
        """`log(sum(exp(x)))`, without overflow."""

    def norm(self, axis: Axes | None = None, keepdim: bool = False) -> Tensor:
        """Square root of the sum of squares."""

    def norm_keepdim(self, axis: Axes | None = None) -> Tensor:
        """Square root of the sum of squares."""

    def var(self, axis: Axes | None = None, correction: Size = 1, keepdim: bool = False) -> Tensor:
        """Variance along axes, with `correction` subtracted from the count (1: unbiased estimate)."""

    def var_keepdim(self, axis: Axes | None = None, correction: Size = 1) -> Tensor:
        """As `var`, keeping the axes with extent 1."""

    def std(self, axis: Axes | None = None, correction: Size = 1, keepdim: bool = False) -> Tensor:
        """Standard deviation along axes; see `var`."""
        # rust: if keepdim { t.var_keepdim(axis, correction).map(|x| x.sqrt()) } else { t.std(axis, correction) }

    def argmax(self, axis: Axis | None = None, keepdim: bool = False) -> Tensor:
        """Position (`i64`) of the first largest element along an axis; NaN counts as largest."""
        # rust: create::arg(t, axis, keepdim, Tensor::argmax)

    def argmin(self, axis: Axis | None = None, keepdim: bool = False) -> Tensor:
        """Position (`i64`) of the first smallest element along an axis; NaN counts as smallest."""
        # rust: create::arg(t, axis, keepdim, Tensor::argmin)

    def cumsum(self, axis: Axis) -> Tensor:
        """Cumulative sum along an axis; integers are summed in 64 bits."""

    # autodiff.rs

    def grad(self, wrt: Tensors) -> list[Tensor | None]:
        """The gradients of the sum of this tensor's elements with respect to others, which may be any
        tensors it was computed from, not only leaves. `None` where it does not depend on one.
        """
        # rust: t.grad(&wrt.list())

    def grad_with(self, cotangent: TensorLike, wrt: Tensors) -> list[Tensor | None]:
        """As `grad`, with the given cotangent of this tensor instead of ones."""
        # rust: t.grad_with(&cotangent, &wrt.list())

