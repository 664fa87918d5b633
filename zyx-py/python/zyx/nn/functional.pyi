"""Functions under the names, and with the parameters, of `torch.nn.functional`. Written by tools/python_stubs.py."""

from typing import Any

from .._core import Tensor

class DTypeMismatch(TypeError, RuntimeError):
    """Operands of two dtypes where one is needed."""

def abs(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`|x|`."""

def abs_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `abs`, written into the tensor."""

def absolute(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`|x|`."""

def absolute_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `absolute`, written into the tensor."""

def acos(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Arc cosine in radians."""

def acos_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `acos`, written into the tensor."""

def acosh(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Inverse hyperbolic cosine; NaN below 1."""

def acosh_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `acosh`, written into the tensor."""

def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """Means of windows of nearly one size that give `output_size`; `None` leaves an extent as it is."""

def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """Means of windows of nearly one size that give `output_size`; `None` leaves an extent as it is."""

def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """Means of windows of nearly one size that give `output_size`; `None` leaves an extent as it is."""

def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: Any = False) -> Any:
    """The largest of windows of nearly one size that give `output_size`; `None` leaves an extent as it is. With `return_indices` also where they were."""

def adaptive_max_pool1d_with_indices(input: Any, output_size: Any, return_indices: Any = False) -> Any:
    """The largest of windows of nearly one size that give `output_size`; `None` leaves an extent as it is. Also where they were."""

def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: Any = False) -> Any:
    """The largest of windows of nearly one size that give `output_size`; `None` leaves an extent as it is. With `return_indices` also where they were."""

def adaptive_max_pool2d_with_indices(input: Any, output_size: Any, return_indices: Any = False) -> Any:
    """The largest of windows of nearly one size that give `output_size`; `None` leaves an extent as it is. Also where they were."""

def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: Any = False) -> Any:
    """The largest of windows of nearly one size that give `output_size`; `None` leaves an extent as it is. With `return_indices` also where they were."""

def adaptive_max_pool3d_with_indices(input: Any, output_size: Any, return_indices: Any = False) -> Any:
    """The largest of windows of nearly one size that give `output_size`; `None` leaves an extent as it is. Also where they were."""

def add(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Sum, with broadcasting and promotion."""

def add_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `add`, written into the tensor."""

def addbmm(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`beta self + alpha` times the sum of the products of two batches of matrices. An operand whose factor is 0 is not read."""

def addbmm_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `addbmm`, written into the tensor."""

def addcdiv(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self + value * x / y`."""

def addcdiv_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `addcdiv`, written into the tensor."""

def addcmul(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self + value * x * y`."""

def addcmul_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `addcmul`, written into the tensor."""

def addmm(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`beta self + alpha a b` of matrices `a` and `b`; `self` broadcasts. With `beta` 0, `self` is not looked at: its NaN do not come through."""

def addmm_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `addmm`, written into the tensor."""

def addmv(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`beta self + alpha mat @ vec`. An operand whose factor is 0 is not read."""

def addmv_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `addmv`, written into the tensor."""

def addr(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`beta self + alpha` times the outer product of two vectors. An operand whose factor is 0 is not read."""

def addr_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `addr`, written into the tensor."""

def affine_grid(theta: Any, size: Any, align_corners: Any = False) -> Tensor:
    """Places `[n, height, width, 2]` for `grid_sample`, by matrices `[n, 2, 3]`."""

def all(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether all elements are nonzero; true of nothing."""

def all_keepdim(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether all elements are nonzero; true of nothing."""

def allclose(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether all pairs are close, see `isclose`. Computes and reads the answer."""

def alpha_dropout(input: Any, p: Any = 0.5, training: Any = False, inplace: Any = False) -> Tensor:
    """Elements set to the lower limit of `selu` with probability `p`, all scaled and moved so that mean 0 and variance 1 stay, in training."""

def amax(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Largest element along axes; the same as `max`, and all of several largest share the gradient."""

def amin(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Smallest element along axes; see `amax`."""

def aminmax(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Smallest and largest element along an axis, or of all."""

def angle(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The angle of real numbers in the complex plane: 0, or pi for negative ones."""

def any(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether any element is nonzero; false of nothing."""

def any_keepdim(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether any element is nonzero; false of nothing."""

def apply_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every element becomes what a function of Python gives for it."""

def arange(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`start, start + step, …` up to but not including `end`, in the dtype of the numbers."""

def arccos(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Arc cosine in radians."""

def arccos_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `arccos`, written into the tensor."""

def arccosh(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Inverse hyperbolic cosine; NaN below 1."""

def arccosh_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `arccosh`, written into the tensor."""

def arcsin(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Arc sine in radians."""

def arcsin_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `arcsin`, written into the tensor."""

def arcsinh(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Inverse hyperbolic sine."""

def arcsinh_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `arcsinh`, written into the tensor."""

def arctan(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Arc tangent in radians."""

def arctan2(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Angle of the point `(rhs, self)` in radians."""

def arctan2_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `arctan2`, written into the tensor."""

def arctan_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `arctan`, written into the tensor."""

def arctanh(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Inverse hyperbolic tangent; NaN outside -1 ..= 1."""

def arctanh_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `arctanh`, written into the tensor."""

def argmax(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Position (`i64`) of the first largest element along an axis; NaN counts as largest."""

def argmin(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Position (`i64`) of the first smallest element along an axis; NaN counts as smallest."""

def argsort(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The positions (`i64`) that sort along an axis; see `sort`."""

def argwhere(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Positions of the nonzero elements; the same as `nonzero`."""

def as_strided(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements of memory that this tensor shares at strides from a place on: a view."""

def as_strided_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Becomes `as_strided` of itself."""

def as_strided_scatter(input: Any, *args: Any, **kwargs: Any) -> Any:
    """A copy with `src` at the elements that `as_strided` names."""

def as_subclass(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor as an instance of a class: of `Tensor` itself."""

def asin(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Arc sine in radians."""

def asin_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `asin`, written into the tensor."""

def asinh(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Inverse hyperbolic sine."""

def asinh_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `asinh`, written into the tensor."""

def associative_scan(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Running combination of tuples of tensors along an axis by an associative function of two lists, which gives a list."""

def astype(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `cast`."""

def atan(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Arc tangent in radians."""

def atan2(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Angle of the point `(rhs, self)` in radians."""

def atan2_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `atan2`, written into the tensor."""

def atan_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `atan`, written into the tensor."""

def atanh(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Inverse hyperbolic tangent; NaN outside -1 ..= 1."""

def atanh_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `atanh`, written into the tensor."""

def atleast_1d(input: Any, *args: Any, **kwargs: Any) -> Any:
    """With an axis of extent 1 if it has none."""

def atleast_2d(input: Any, *args: Any, **kwargs: Any) -> Any:
    """With axes of extent 1 in front up to two axes."""

def atleast_3d(input: Any, *args: Any, **kwargs: Any) -> Any:
    """With axes of extent 1 around up to three axes: a vector is `[1, n, 1]`, a matrix `[m, n, 1]`."""

def avg_pool1d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: Any = False, count_include_pad: Any = True, divisor_override: Any = None) -> Tensor:
    """The mean of each window."""

def avg_pool2d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: Any = False, count_include_pad: Any = True, divisor_override: Any = None) -> Tensor:
    """The mean of each window."""

def avg_pool2d_inside(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The mean of each window over the last two axes, without counting what is padded."""

def avg_pool3d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: Any = False, count_include_pad: Any = True, divisor_override: Any = None) -> Tensor:
    """The mean of each window."""

def backward(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Adds the gradients of this number to `.grad` of every leaf that it was computed from. Nothing is computed before a gradient is read or a step uses it. `gradient` weighs the elements of what is not one number; `inputs` names the leaves if not all are wanted. With `create_graph=True` the gradients can be differentiated again; `retain_graph=True` says that the next call shares its graph."""

def baddbmm(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`beta self + alpha a b` of batches of matrices `[b, n, k]` and `[b, k, m]`; see `addmm`."""

def baddbmm_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `baddbmm`, written into the tensor."""

def bartlett_window(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Bartlett's window, a triangle: `1 - |2 i / m - 1|`; see `hann_window`."""

def batch_norm(input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: Any = False, momentum: Any = 0.1, eps: Any = 1e-05) -> Tensor:
    """Every channel (axis 1) normalised by the given statistics; in training by its own, and the running ones move by the share `momentum` towards them."""

def batch_norm_with(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Batch normalisation with given statistics, both `[channels]`: what a trained network does."""

def bce_loss(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Binary cross entropy of probabilities: `-(y log x + (1 - y) log(1 - x))`, each logarithm held above -100 so that a wrong certainty costs much but not infinity, as in PyTorch."""

def bce_with_logits_loss(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Binary cross entropy of logits, without overflow: `max(x, 0) - x y + log(1 + e^-|x|)`."""

def bernoulli(input: Any, *args: Any, **kwargs: Any) -> Any:
    """True with probability `p` (rounded to a multiple of 2^-24), as bool."""

def bernoulli_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every element becomes 1 with the probability `p`, else 0."""

def beta(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Beta with mean `a / (a + b)`: the share of one gamma number in the sum of two."""

def bfloat16(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The same as `cast("bfloat16")`."""

def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """`input1 weight[i] input2` for every `i`, plus `bias`."""

def binary_cross_entropy(input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> Tensor:
    """Binary cross entropy of probabilities; `weight` is a factor of each term."""

def binary_cross_entropy_with_logits(input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean', pos_weight: Any = None) -> Tensor:
    """Binary cross entropy of logits; `weight` is a factor of each term, `pos_weight` of those whose target is 1."""

def bincount(input: Any, *args: Any, **kwargs: Any) -> Any:
    """How often each of `0, 1, …` up to the largest element occurs, as `i64`, at least `minlength` numbers; or the sum of the `weights` of the places where it does. Reads the largest element from the device."""

def bincount_to(input: Any, *args: Any, **kwargs: Any) -> Any:
    """How often each of `0 .. bins` occurs, as `i64`; other elements count nowhere."""

def binomial(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Binomial: the number of successes in some trials."""

def bitcast(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The bits of the elements read as another dtype of the same width."""

def bitwise_and(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Bitwise and; logical on bool."""

def bitwise_and_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `bitwise_and`, written into the tensor."""

def bitwise_left_shift(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Shift left; the same as `shl`."""

def bitwise_left_shift_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `bitwise_left_shift`, written into the tensor."""

def bitwise_not(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Bitwise complement; logical on bool."""

def bitwise_not_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `bitwise_not`, written into the tensor."""

def bitwise_or(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Bitwise or; logical on bool."""

def bitwise_or_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `bitwise_or`, written into the tensor."""

def bitwise_right_shift(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Shift right, arithmetic on signed integers; the same as `shr`."""

def bitwise_right_shift_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `bitwise_right_shift`, written into the tensor."""

def bitwise_xor(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Bitwise exclusive or; logical on bool."""

def bitwise_xor_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `bitwise_xor`, written into the tensor."""

def blackman_window(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Blackman's window: `0.42 - 0.5 cos(2 pi i / m) + 0.08 cos(4 pi i / m)`; see `hann_window`."""

def block_diag(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Matrices along the diagonal of a matrix of zeros; vectors count as rows."""

def bmm(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Matrix products of batches: `[b, n, k]` times `[b, k, m]`, without broadcasting."""

def bool(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The same as `cast("bool")`."""

def broadcast_tensors(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Tensors broadcast against each other to their common shape."""

def broadcast_to(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Broadcast to a shape; the same as `expand`."""

def bucketize(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The number of the bucket each element lies in, between sorted `boundaries`, as `i64`: the first whose upper end is not below it (not at or below it if `right`)."""

def byte(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The same as `cast("uint8")`."""

def cartesian_prod(input: Any, *args: Any, **kwargs: Any) -> Any:
    """All combinations of one element of each vector, one per row, the last varying fastest."""

def cast(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements converted to `dtype` (rules: `crate::scalar`)."""

def cat(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Tensors joined along an existing axis; dtypes are promoted."""

def cauchy(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Cauchy: the tangent of a uniform angle, scaled and moved."""

def cauchy_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every element is drawn from a Cauchy distribution."""

def cdist(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The p-norm distances of every row of `[.., n, d]` to every row of `[.., m, d]`, as `[.., n, m]`; leading axes broadcast."""

def ceil(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Smallest integer not below."""

def ceil_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `ceil`, written into the tensor."""

def celu(input: Any, alpha: Any = 1.0, inplace: Any = False) -> Tensor:
    """`x` above zero, `alpha (exp(x / alpha) - 1)` below: smooth for every `alpha`."""

def celu_(input: Any, *given: Any, **named: Any) -> Tensor:
    """`celu` in the place of the input."""

def channel_shuffle(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The channels (axis 1) as `groups` rows, read by columns (Zhang et al. 2018)."""

def char(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The same as `cast("int8")`."""

def checkpoint(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The value of a function, computed again for gradients instead of being kept."""

def cholesky(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Cholesky's factor: the lower triangular `l` with `l l^T = self`, of symmetric positive definite matrices, of which the lower triangles are read."""

def cholesky_inverse(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The inverse of the matrix that Cholesky's factor is of; see `cholesky_solve`."""

def cholesky_solve(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`x` of `a x = self` with `a` given by Cholesky's factor, in PyTorch's order: the right side first, then lower triangular `L` with `a = L L^T`, or upper with `L^T L`."""

def chunk(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`n` pieces along an axis, the first ones larger by one if it does not divide."""

def clamp(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Each element limited to `min ..= max`."""

def clamp_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `clamp`, written into the tensor."""

def clamp_max(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Each element, or `max` if that is smaller."""

def clamp_max_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `clamp_max`, written into the tensor."""

def clamp_min(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Each element, or `min` if that is larger."""

def clamp_min_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `clamp_min`, written into the tensor."""

def clip(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `clamp`."""

def clip_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `clip`, written into the tensor."""

def clone(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The values as they are now; gradients flow through it."""

def col2im(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Columns `[n, channels * kernel height * kernel width, positions]` added up where their windows lie in `[n, channels, height, width]` with `output` the last two: the adjoint of `im2col`."""

def column_stack(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Vectors as the columns of a matrix; matrices keep theirs."""

def concat(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Tensors joined along an existing axis; dtypes are promoted."""

def concatenate(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Tensors joined along an existing axis; dtypes are promoted."""

def cond(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The condition number: largest singular value divided by the smallest."""

def conj(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The conjugate of real numbers: the tensor itself."""

def conj_physical(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The conjugate of real numbers: the tensor itself."""

def conj_physical_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `conj_physical`, written into the tensor."""

def contiguous(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements next to each other in row-major order, stored as they are: a point at which fusion stops. The same memory if they are so already, else a copy."""

def conv1d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1) -> Tensor:
    """Convolution over the last 1 axes; `padding` may be `"same"` or `"valid"`."""

def conv2d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1) -> Tensor:
    """Convolution over the last 2 axes; `padding` may be `"same"` or `"valid"`."""

def conv3d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1) -> Tensor:
    """Convolution over the last 3 axes; `padding` may be `"same"` or `"valid"`."""

def conv_same(input: Any, *args: Any, **kwargs: Any) -> Any:
    """A convolution over one to three axes that keeps their extents (PyTorch's padding `"same"`): `dilation (kernel - 1)` zeros, the odd one at the end. `dilation` has an entry per axis."""

def conv_tbc(input: Any, weight: Any, bias: Any, pad: Any = 0) -> Tensor:
    """Convolution over `[time, n, channels]` by a weight `[kernel, in, out]`."""

def conv_transpose1d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: Any = 1, dilation: Any = 1) -> Tensor:
    """Transposed convolution over the last 1 axes: each element spreads to a window."""

def conv_transpose2d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: Any = 1, dilation: Any = 1) -> Tensor:
    """Transposed convolution over the last 2 axes: each element spreads to a window."""

def conv_transpose3d(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: Any = 1, dilation: Any = 1) -> Tensor:
    """Transposed convolution over the last 3 axes: each element spreads to a window."""

def copy_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Writes the elements of another tensor or a number, broadcast and converted. Gives the tensor."""

def copysign(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The magnitude of `self` with the sign of `rhs`, that of its zero included."""

def copysign_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `copysign`, written into the tensor."""

def corrcoef(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Correlation matrix of variables in rows and observations in columns."""

def cos(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Cosine of radians."""

def cos_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `cos`, written into the tensor."""

def cosh(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Hyperbolic cosine."""

def cosh_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `cosh`, written into the tensor."""

def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: Any = 0, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> Tensor:
    """How like pairs are that should, and should not, be."""

def cosine_similarity(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The cosine of the angle between vectors along an axis: their product divided by both lengths, each held at least `eps`. Shapes broadcast; the axis goes."""

def count_nonzero(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Number of nonzero elements along axes, as `i64`."""

def cov(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Covariance matrix of variables in rows and observations in columns, with `correction` subtracted from the count."""

def cpu(input: Any, *args: Any, **kwargs: Any) -> Any:
    """On the device `cpu`."""

def cross(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The vector product of vectors of three elements along an axis; shapes broadcast."""

def cross_entropy(input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: Any = -100, reduce: Any = None, reduction: Any = 'mean', label_smoothing: Any = 0.0) -> Tensor:
    """Cross entropy of logits, classes along axis 1 (or 0 of a vector), against class numbers or probabilities."""

def cross_entropy_weighted(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Cross entropy of logits `[n, classes, ..]` (or `[classes]`) with a factor for each class, `[classes]`. Targets are class numbers `[n, ..]` of an integer dtype, or probabilities of the logits' shape in a floating one."""

def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: Any = 0, reduction: Any = 'mean', zero_infinity: Any = False) -> Tensor:
    """Connectionist temporal classification: of log probabilities `[time, n, classes]`; targets are rows, or one row with those of all examples one after the other."""

def cuda(input: Any, *args: Any, **kwargs: Any) -> Any:
    """On a device of the backend `cuda`."""

def cummax(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Running maximum along an axis and its position as `i64`: of equal elements the latest. NaN stays once it was met."""

def cummin(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Running minimum along an axis and its position; see `cummax`."""

def cumprod(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Cumulative product along an axis, in `dtype` if one is given; integers are multiplied in 64 bits."""

def cumprod_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `cumprod`, written into the tensor."""

def cumsum(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Cumulative sum along an axis, in `dtype` if one is given; integers are summed in 64 bits."""

def cumsum_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `cumsum`, written into the tensor."""

def cumulative_trapezoid(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The integral from the first sample to each further one; see `trapezoid`."""

def decode_float8(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The numbers that `u8` codes of eight-bit floats stand for, as `f32`."""

def deg2rad(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Degrees to radians."""

def deg2rad_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `deg2rad`, written into the tensor."""

def det(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Determinants of square matrices."""

def detach(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The same elements without history: a write to the one changes the other."""

def detach_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Cuts the tensor off its history: no gradient flows through what it was computed from. Gives the tensor."""

def diag(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The diagonal of a matrix, or the matrix with a vector as its diagonal."""

def diag_embed(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Matrices with the elements of the last axis on their diagonal, in the plane of `axis1` and `axis2` of the result, and zeros elsewhere."""

def diagflat(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Matrix with the flattened elements as its diagonal."""

def diagonal(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The diagonal of the plane of two axes as a new last axis; `offset` above the main one."""

def diagonal_scatter(input: Any, *args: Any, **kwargs: Any) -> Any:
    """This tensor with `src` on its diagonal: the counterpart of `diagonal`."""

def diff(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Differences of neighbours along an axis, `n` times over."""

def digamma(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Logarithmic derivative of the gamma function; NaN at negative integers."""

def digamma_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `digamma`, written into the tensor."""

def dim(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Number of axes."""

def dim_order(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The axes from the outermost in memory to the innermost: in order."""

def dirichlet(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Shares of gamma numbers: points of a simplex, the last axis having one for each of `concentration`."""

def dist(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The p-norm of the difference."""

def div(input: Any, *args: Any, **kwargs: Any) -> Any:
    """True division: integers are converted to `f32` first. Rounded down (`"floor"`) or towards zero (`"trunc"`) if `rounding_mode` says so, in the promoted dtype."""

def div_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `div`, written into the tensor."""

def divide(input: Any, *args: Any, **kwargs: Any) -> Any:
    """True division: integers are converted to `f32` first. Rounded down (`"floor"`) or towards zero (`"trunc"`) if `rounding_mode` says so, in the promoted dtype."""

def divide_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `divide`, written into the tensor."""

def dot(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Sum of the products of two vectors of equal length."""

def double(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `float64`."""

def dropout(input: Any, p: Any = 0.5, training: Any = True, inplace: Any = False) -> Tensor:
    """Elements zeroed with probability `p` and the others scaled up, in training."""

def dropout1d(input: Any, p: Any = 0.5, training: Any = True, inplace: Any = False) -> Tensor:
    """Whole channels with 1 axes zeroed with probability `p` and the others scaled up, in training."""

def dropout2d(input: Any, p: Any = 0.5, training: Any = True, inplace: Any = False) -> Tensor:
    """Whole channels with 2 axes zeroed with probability `p` and the others scaled up, in training."""

def dropout3d(input: Any, p: Any = 0.5, training: Any = True, inplace: Any = False) -> Tensor:
    """Whole channels with 3 axes zeroed with probability `p` and the others scaled up, in training."""

def dsplit(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Pieces along axis 2; see `hsplit`."""

def dstack(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Joined along axis 2, see `atleast_3d`."""

def eigh(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Eigenvalues in ascending order and orthonormal eigenvectors (as columns) of symmetric matrices, of which the lower triangles are read, in `f64`. Signs of eigenvectors are any; a matrix with an element that is not finite gives NaN. Gradients are with respect to symmetric changes."""

def einsum(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The sum of products that subscripts describe: `"ij,jk->ik"` is a matrix product, `"ii"` a trace, `"...ij->...ji"` a transpose. Letters name axes; those that are not in the result (after `->`) are summed. Without `->`, letters that are there once stay, in alphabetical order. `...` stands for any axes, which broadcast, as do extents of 1. Up to eight operands are contracted in the order of least work. Bools count as integers."""

def einsum_path(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The order in which `einsum` contracts the operands, and what that costs."""

def element_size(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Bytes of one element."""

def elu(input: Any, alpha: Any = 1.0, inplace: Any = False) -> Tensor:
    """`x` where positive, else `alpha * (e^x - 1)`."""

def elu_(input: Any, *given: Any, **named: Any) -> Tensor:
    """`elu` in the place of the input."""

def embedding(input: Any, weight: Any, padding_idx: Any = None, max_norm: Any = None, norm_type: Any = 2.0, scale_grad_by_freq: Any = False, sparse: Any = False) -> Tensor:
    """The rows of `weight` that the indices `input` name. The row `padding_idx` gets no gradient. With `max_norm` rows that are named and longer are shortened, in the table as well if it is a parameter; with `scale_grad_by_freq` the gradient of a row is divided by how often it is named. `sparse` changes nothing: gradients are dense."""

def embedding_bag(input: Any, weight: Any, offsets: Any = None, max_norm: Any = None, norm_type: Any = 2, scale_grad_by_freq: Any = False, mode: Any = 'mean', sparse: Any = False, per_sample_weights: Any = None, include_last_offset: Any = False, padding_idx: Any = None) -> Tensor:
    """Rows of a table, those of a bag made one by `"sum"`, `"mean"` or `"max"`: a bag is a row of `input`, or of a list `input` what begins at each of `offsets`. The row `padding_idx` counts nowhere. An empty bag gives zeros. The other options are those of `embedding`."""

def encode_float8(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The nearest eight-bit floats, ties to even, as `u8` codes. What is too large becomes NaN (E4M3) or infinite (E5M2), as in PyTorch."""

def eq(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self == rhs`, as bool; NaN equals nothing."""

def eq_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `eq`, written into the tensor."""

def equal(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether both have one shape and equal elements. Computes and reads the answer."""

def erf(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Error function."""

def erf_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `erf`, written into the tensor."""

def erfc(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Complement of the error function, `1 - erf(x)`, accurate where that is small."""

def erfc_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `erfc`, written into the tensor."""

def erfcx(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Scaled complement of the error function, `exp(x^2) erfc(x)`, which stays finite."""

def erfinv(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The inverse of the error function; infinite at 1 and -1, NaN beyond."""

def erfinv_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `erfinv`, written into the tensor."""

def exp(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`e^x`."""

def exp2(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`2^x`."""

def exp2_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `exp2`, written into the tensor."""

def exp_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `exp`, written into the tensor."""

def expand(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Axes of extent 1 repeated to `shape`; missing leading axes are added."""

def expand_as(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Broadcast to the shape of `other`."""

def explain(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The launches that computing this tensor takes, or took if it is realized: what each fuses, what it reads and writes, and why values are stored between operations instead of being computed where they are used. While the device's profile is on (`Device::set_profiling`), launches have the times of that profile, each with its part of what copying and multiplying reach on the device, which the first call measures."""

def expm1(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`e^x - 1`, accurate near zero."""

def expm1_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `expm1`, written into the tensor."""

def exponential(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Exponential with mean `1 / rate`."""

def exponential_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every element is drawn from an exponential distribution."""

def eye(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The identity matrix of order `n`, or the matrix of `n` rows and `m` columns with ones on its diagonal."""

def feature_alpha_dropout(input: Any, p: Any = 0.5, training: Any = False, inplace: Any = False) -> Tensor:
    """`alpha_dropout` of whole channels: the first two axes stay apart."""

def fft(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The discrete Fourier transform of complex `[.., n, .., 2]` along an axis, which is counted without the last: `y[k] = sum x[j] exp(-2 pi i j k / n)`. With `n` the axis is cut or padded with zeros to that length before."""

def fft2(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`fft` along the two axes before the last."""

def fftfreq(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The frequencies of a transform of `n` samples `spacing` apart, `f32`: `k / (n spacing)`, the second half negative."""

def fftn(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`fft` along several axes, counted without the last."""

def fftshift(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The halves of axes exchanged, so that frequency 0 moves to the middle."""

def fill(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every element equal to `value`, as this tensor otherwise."""

def fill_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every element becomes `value`."""

def fill_diagonal_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements whose positions along all axes are equal become `fill_value`."""

def fix(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Integer part."""

def fix_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `fix`, written into the tensor."""

def flatten(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The axes from `start_axis` to `end_axis` (inclusive) as one; all of them if none is named."""

def flatten_axes(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The axes from `start` to `end` (inclusive) merged into one."""

def flip(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The order of elements along the axes reversed."""

def fliplr(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The rows of a matrix reversed left to right: axis 1 flipped."""

def flipud(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The rows of a matrix in reverse order: axis 0 flipped."""

def float(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The same as `cast("float32")`."""

def float_power(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self` to the power `rhs`, both converted to `f64`."""

def float_power_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `float_power`, written into the tensor."""

def floor(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Largest integer not above."""

def floor_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `floor`, written into the tensor."""

def floor_divide(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Division rounded down, as Python's `//`; an integer divided by 0 is 0."""

def floor_divide_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `floor_divide`, written into the tensor."""

def fmax(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Larger value, or the one that is not NaN."""

def fmin(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Smaller value, or the one that is not NaN."""

def fmod(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Remainder with the sign of the dividend (C's `fmod`)."""

def fmod_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `fmod`, written into the tensor."""

def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Columns added up where their windows lie: the adjoint of `unfold`."""

def frac(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Fraction: `x - trunc(x)`, with the sign of `x`."""

def frac_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `frac`, written into the tensor."""

def fractional_max_pool2d(input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: Any = False, _random_samples: Any = None) -> Any:
    """The largest elements of windows at pseudo-random places (Graham 2014)."""

def fractional_max_pool2d_with_indices(input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: Any = False, _random_samples: Any = None) -> Any:
    """The largest elements of windows at pseudo-random places (Graham 2014). Also where they were."""

def fractional_max_pool3d(input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: Any = False, _random_samples: Any = None) -> Any:
    """The largest elements of windows at pseudo-random places (Graham 2014)."""

def fractional_max_pool3d_with_indices(input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: Any = False, _random_samples: Any = None) -> Any:
    """The largest elements of windows at pseudo-random places (Graham 2014). Also where they were."""

def frexp(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Mantissas within 1/2 and 1 and exponents of 2 whose products are the elements."""

def from_bytes(input: Any, *args: Any, **kwargs: Any) -> Any:
    """A tensor from little-endian bytes of its elements in row-major order."""

def full(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every element equal to `x`."""

def full_like(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every element `value`, in the shape and on the device of `self` and, if no other is given, its dtype."""

def gamma(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Gamma with mean `shape_of / rate`, by Marsaglia and Tsang (2000)."""

def gather(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`out[.., i, ..] = self[.., index[.., i, ..], ..]` along `axis`; `index` has the result's shape and at most this tensor's extent along the other axes."""

def gaussian_nll_loss(input: Any, target: Any, var: Any, full: Any = False, eps: Any = 1e-06, reduction: Any = 'mean') -> Tensor:
    """Negative log likelihood under normal distributions with means `input` and variances `var`."""

def gcd(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Greatest common divisor, not negative; 0 of two zeros."""

def gcd_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `gcd`, written into the tensor."""

def ge(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self >= rhs`, as bool."""

def ge_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `ge`, written into the tensor."""

def gelu(input: Any, approximate: Any = 'none') -> Tensor:
    """The Gaussian error linear unit; with `approximate="tanh"` by the hyperbolic tangent, as the method `gelu` is."""

def gelu_exact(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The Gaussian error linear unit by the error function."""

def geometric(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Geometric: the number of the first success, from 1, with probability `p` each time."""

def geometric_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every element is how often one tries until something of the probability `p` happens."""

def ger(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every product of an element of one vector and one of another: `[n, m]`."""

def get_device(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The number of the device, -1 on the CPU."""

def global_avg_pool2d(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The mean over the last two axes, which go."""

def glu(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The first half along an axis, multiplied by the sigmoid of the second."""

def grad_with(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `zyx.grad`, with the given cotangent of this tensor instead of ones; `None` where it does not depend on one."""

def gradcheck(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Compares the gradients of a function with difference quotients; an error says where they differ."""

def gradient(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Gradients of this number for each of `leaves`; zeros for one it does not depend on."""

def greater(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self > rhs`, as bool."""

def greater_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `greater`, written into the tensor."""

def greater_equal(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self >= rhs`, as bool."""

def greater_equal_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `greater_equal`, written into the tensor."""

def grid_sample(input: Any, grid: Any, mode: Any = 'bilinear', padding_mode: Any = 'zeros', align_corners: Any = None) -> Tensor:
    """The elements of images at the places of a grid."""

def group_norm(input: Any, num_groups: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-05) -> Tensor:
    """The channels (axis 1) in equal groups, each with mean 0 and variance 1 per example."""

def gt(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self > rhs`, as bool."""

def gt_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `gt`, written into the tensor."""

def gumbel(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Gumbel: the limit of maxima, `mode - scale log(-log u)`."""

def gumbel_softmax(logits: Any, tau: Any = 1, hard: Any = False, eps: Any = 1e-10, dim: Any = -1) -> Tensor:
    """Samples of the classes along `dim`, made differentiable. `eps` is PyTorch's guard, which is not needed here."""

def half(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `float16`."""

def hamming_window(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Hamming's window: `0.54 - 0.46 cos(2 pi i / m)`; see `hann_window`."""

def hann_window(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Hann's window: `(1 - cos(2 pi i / m)) / 2` with `m = n` if periodic, else `n - 1`; computed in `f64` and rounded once."""

def hardshrink(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`x` where its magnitude is above `lambda`, else zero."""

def hardsigmoid(input: Any, inplace: Any = False) -> Tensor:
    """`relu6(x + 3) / 6`: a sigmoid of three straight lines."""

def hardswish(input: Any, inplace: Any = False) -> Tensor:
    """`x * hardsigmoid(x)`."""

def hardtanh(input: Any, min_val: Any = -1.0, max_val: Any = 1.0, inplace: Any = False) -> Tensor:
    """`min(max(x, min), max)`: the activation of straight lines; -1 and 1 are usual."""

def hardtanh_(input: Any, *given: Any, **named: Any) -> Tensor:
    """`hardtanh` in the place of the input."""

def heaviside(input: Any, *args: Any, **kwargs: Any) -> Any:
    """0 below zero, 1 above it and `rhs` at zero."""

def heaviside_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `heaviside`, written into the tensor."""

def hinge_embedding_loss(input: Any, target: Any, margin: Any = 1.0, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> Tensor:
    """Distances where the target is 1; the excess of `margin` over them where it is -1."""

def histc(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Counts of elements in `bins` bins of equal width from `min` to `max`, the last including its upper end, in the tensor's float dtype; elements outside count nowhere. Equal ends stand for the smallest and the largest element, which are read from the device."""

def histogram(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `histc`, with the `bins + 1` edges of the bins."""

def hsplit(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Pieces along axis 1 (axis 0 of a vector) that begin at 0 and at each of `positions`; a number is how many equal ones."""

def hstack(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Joined along axis 1, or along axis 0 if they have one axis."""

def huber_loss(input: Any, target: Any, reduction: Any = 'mean', delta: Any = 1.0, weight: Any = None) -> Tensor:
    """Half the square of the difference up to `delta`, beyond it linear with slope `delta`; `weight` is a factor of each term."""

def hypot(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`sqrt(x^2 + y^2)` without overflow; infinite if either is."""

def hypot_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `hypot`, written into the tensor."""

def i0(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The modified Bessel function of the first kind and order 0."""

def i0_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `i0`, written into the tensor."""

def ifft(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The inverse of `fft`."""

def ifft2(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`ifft` along the two axes before the last."""

def ifftn(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`ifft` along several axes, counted without the last."""

def ifftshift(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`fftshift` undone."""

def igamma(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The regularised lower incomplete gamma function of shapes and `other`."""

def igammac(input: Any, *args: Any, **kwargs: Any) -> Any:
    """1 minus `igamma`, exact where that is near 1."""

def im2col(input: Any, *args: Any, **kwargs: Any) -> Any:
    """All windows of the last two axes of `[n, channels, height, width]` as columns: `[n, channels * kernel height * kernel width, positions]` (PyTorch's function `unfold`). Padding is with zeros."""

def index(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements an index picks; see `Index` for its parts. Axes without a part are whole. A mask reads from the device how many elements it picks."""

def index_add(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`alpha * src[.., i, ..]` added to `[.., index[i], ..]`."""

def index_add_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `index_add`, written into the tensor."""

def index_copy(input: Any, *args: Any, **kwargs: Any) -> Any:
    """This tensor with `src[.., i, ..]` at `[.., index[i], ..]`."""

def index_copy_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `index_copy`, written into the tensor."""

def index_fill(input: Any, *args: Any, **kwargs: Any) -> Any:
    """This tensor with `value` (converted to its dtype) at the positions of `index` along an axis."""

def index_fill_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `index_fill`, written into the tensor."""

def index_put(input: Any, *args: Any, **kwargs: Any) -> Any:
    """This tensor with `values`, broadcast, at the places an index picks (see `index`), or added there if `accumulate`. Of several values for one place the last in row-major order holds."""

def index_put_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `index_put`, written into the tensor."""

def index_reduce(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Slices of `source` combined with those that `index` names along an axis, by `"prod"`, `"mean"`, `"amax"` or `"amin"`."""

def index_reduce_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `index_reduce`, written into the tensor."""

def index_select(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The entries `index` (one axis) of one axis, in that order: time linear in the result."""

def inner(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Sum of products over the last axes; the product of all elements with a scalar operand."""

def instance_norm(input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None, use_input_stats: Any = True, momentum: Any = 0.1, eps: Any = 1e-05) -> Tensor:
    """Every channel of every example normalised, by its own statistics, towards whose means running ones move, or by the given ones."""

def int(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The same as `cast("int32")`."""

def interpolate(input: Any, size: Any = None, scale_factor: Any = None, mode: Any = 'nearest', align_corners: Any = None, recompute_scale_factor: Any = None, antialias: Any = False) -> Tensor:
    """The axes behind the first two with the extents `size`, or `scale_factor` times theirs. `"linear"`, `"bilinear"` and `"trilinear"` are one mode, as are `"cubic"` and `"bicubic"`. Places follow from the factor, or with `recompute_scale_factor` from the extents. With `antialias` smaller images are means of all elements."""

def interpolate_by(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The last axes (as many as `scale` has, at most three) with their extents times these factors, rounded down. Neighbours of the result are `1 / factor` elements apart, also where rounding left something out."""

def inv(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The inverse of square matrices."""

def inverse(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The inverse of square matrices."""

def iota(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`0, 1, …, n - 1` in any dtype."""

def irfft(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The inverse of `rfft`: `n` real numbers (by default `2 (m - 1)` of `m` elements). Imaginary parts that the transform of real numbers cannot have are ignored."""

def irfft2(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The inverse of `rfft2`, with `n` elements along the last axis (by default `2 (m - 1)` of `m`)."""

def is_complex(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether the elements are complex numbers, which there are none of."""

def is_contiguous(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether the elements are next to each other in row-major order. What was computed always is."""

def is_finite(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether each element is neither NaN nor infinite."""

def is_floating_point(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether the elements are floating-point numbers."""

def is_inf(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether each element is positive or negative infinity."""

def is_inference(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether it was made in `inference_mode`, of which tensors keep no trace."""

def is_nan(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether each element is NaN."""

def is_nonzero(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether the one element is not zero; read from the device."""

def is_pinned(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether the memory is pinned: copies need no preparation here."""

def is_realized(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether the value has been computed."""

def is_same_size(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether both have one shape."""

def is_shared(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether processes share the memory."""

def is_signed(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether the elements may be negative."""

def isclose(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether each pair is close: `|x - y| <= atol + rtol * |y|`, or equal. NaN is close to NaN if `equal_nan`."""

def isfinite(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether each element is finite; the same as `is_finite`."""

def isinf(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether each element is infinite; the same as `is_inf`."""

def isnan(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether each element is NaN; the same as `is_nan`."""

def isneginf(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether each element is negative infinity."""

def isposinf(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether each element is positive infinity."""

def isreal(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether each element is real: all are."""

def istft(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`stft` undone: `[.., samples]` of frames `[.., n_fft / 2 + 1, frames, 2]`, each sample divided by the sum of the squared factors that were applied to it. `length` cuts the result."""

def item(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The only element as a number of Python."""

def jvp(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The value of a function and its derivative along tangents."""

def kaiser_window(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Kaiser's window: `I0(beta sqrt(1 - x^2)) / I0(beta)` with `x = 2 i / m - 1`; see `hann_window`."""

def kl_div(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean', log_target: Any = False) -> Tensor:
    """Kullback and Leibler's divergence of log probabilities `input` from `target`; `"batchmean"` divides the sum by the first extent, as its definition does."""

def kl_div_loss(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Pointwise Kullback-Leibler terms of log-probabilities against target probabilities: `y (log y - x)`, 0 where `y` is 0. Their mean is over elements, not over the batch."""

def kron(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Kronecker's product: every element of `self` times all of `other`, as blocks. The operand with fewer axes gets leading ones."""

def kthvalue(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The `k`-th smallest element along an axis, counted from 1, and its position as `i64`; the axis goes away."""

def l1_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean', weight: Any = None) -> Tensor:
    """Absolute differences; with `weight` their mean by weights."""

def laplace(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Laplace: two exponential tails of the given scale around the mean."""

def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-05) -> Tensor:
    """Mean 0 and variance 1 over the last axes, which have the extents `normalized_shape`."""

def lcm(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Least common multiple, not negative; 0 where an operand is."""

def lcm_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `lcm`, written into the tensor."""

def ldexp(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`x 2^y`."""

def ldexp_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `ldexp`, written into the tensor."""

def le(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self <= rhs`, as bool."""

def le_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `le`, written into the tensor."""

def leaky_relu(input: Any, negative_slope: Any = 0.01, inplace: Any = False) -> Tensor:
    """`x` where positive, else `negative_slope * x`."""

def leaky_relu_(input: Any, *given: Any, **named: Any) -> Tensor:
    """`leaky_relu` in the place of the input."""

def lerp(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self + weight * (end - self)`."""

def lerp_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `lerp`, written into the tensor."""

def less(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self < rhs`, as bool."""

def less_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `less`, written into the tensor."""

def less_equal(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self <= rhs`, as bool."""

def less_equal_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `less_equal`, written into the tensor."""

def lgamma(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Logarithm of the absolute value of the gamma function."""

def lgamma_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `lgamma`, written into the tensor."""

def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """`input @ weight.T + bias`."""

def linear_cross_entropy(input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None, reduction: Any = 'mean', ignore_index: Any = None, label_smoothing: Any = 0.0, options: Any = None) -> Tensor:
    """The cross entropy of logits that a linear layer makes; `linear_weight` is `[classes, .., features]`. `options` choose between ways to compute it in PyTorch and change nothing."""

def linear_recurrence(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`h[t] = a[t] * h[t - 1] + b[t]` along an axis with `h[-1] = 0` and `self` as `a`; from the end if `reverse`: the state of a linear state-space model. The shapes broadcast."""

def linspace(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`n` numbers from `start` to `end`, both included, evenly spaced, as `f32`."""

def local_response_norm(input: Any, size: Any, alpha: Any = 0.0001, beta: Any = 0.75, k: Any = 1.0) -> Tensor:
    """Divided by a power of the mean square of `size` neighbouring channels (axis 1)."""

def log(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Natural logarithm."""

def log10(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Base-10 logarithm."""

def log10_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `log10`, written into the tensor."""

def log1p(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`log(1 + x)`, accurate near zero."""

def log1p_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `log1p`, written into the tensor."""

def log2(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Base-2 logarithm."""

def log2_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `log2`, written into the tensor."""

def log_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `log`, written into the tensor."""

def log_ndtr(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Logarithm of `ndtr`, accurate in both tails."""

def log_normal_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every element is drawn from a distribution whose logarithm is normal."""

def log_softmax(input: Any, dim: Any = None, _stacklevel: Any = 3, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`."""

def logaddexp(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`log(exp(x) + exp(y))` without overflow."""

def logaddexp2(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`log2(2^x + 2^y)` without overflow."""

def logcumsumexp(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Running `log(sum(exp(x)))` along an axis, without overflow or underflow."""

def logdet(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Natural logarithm of determinants: `-inf` where one is 0, NaN where it is negative."""

def logical_and(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Both nonzero."""

def logical_and_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `logical_and`, written into the tensor."""

def logical_not(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether each element is zero (false)."""

def logical_not_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `logical_not`, written into the tensor."""

def logical_or(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Either nonzero."""

def logical_or_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `logical_or`, written into the tensor."""

def logical_xor(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Exactly one nonzero, as bool."""

def logical_xor_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `logical_xor`, written into the tensor."""

def logit(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`log(x / (1 - x))`, with `x` first limited to `eps ..= 1 - eps` if `eps` is given."""

def logit_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `logit`, written into the tensor."""

def lognormal(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The exponential of normal numbers with the given mean and standard deviation."""

def logsigmoid(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`log(sigmoid(x))` without underflow."""

def logspace(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`n` numbers `base^start … base^end`, their exponents evenly spaced, as `f32`."""

def logsumexp(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`log(sum(exp(x)))`, without overflow."""

def logsumexp_keepdim(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`log(sum(exp(x)))`, without overflow."""

def long(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `int64`."""

def lp_pool1d(input: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: Any = False) -> Tensor:
    """The p-norm of each window."""

def lp_pool2d(input: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: Any = False) -> Tensor:
    """The p-norm of each window."""

def lp_pool3d(input: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: Any = False) -> Tensor:
    """The p-norm of each window."""

def lstsq(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The `x` that makes `self x - b` shortest, for matrices of full rank: by QR factors where there are at least as many rows as columns; otherwise the shortest `x` that solves it."""

def lt(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self < rhs`, as bool."""

def lt_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `lt`, written into the tensor."""

def map2_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Applies a function of Python to each element and the elements of two other tensors, which broadcast; writes the results."""

def map_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Applies a function of Python to each element and the element of another tensor, which broadcasts; writes the results."""

def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: Any = 0, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> Tensor:
    """How wrongly pairs are ordered."""

def masked_fill(input: Any, *args: Any, **kwargs: Any) -> Any:
    """This tensor with `value` (converted to its dtype) where `mask` holds; the mask broadcasts."""

def masked_fill_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `masked_fill`, written into the tensor."""

def masked_scatter(input: Any, *args: Any, **kwargs: Any) -> Any:
    """This tensor with the elements of `src`, in order, where `mask` holds. Where there are not enough of them, zero."""

def masked_scatter_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `masked_scatter`, written into the tensor."""

def masked_select(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements where `mask` holds, in row-major order; the mask broadcasts to this shape. Reads their number from the device."""

def matmul(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Matrix product over the last two axes; leading axes broadcast. A vector on the left is a row, on the right a column, and its axis disappears. Halves accumulate in `f32`."""

def matrix_exp(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The exponential of square matrices: `sum a^k / k!`."""

def matrix_norm(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Norms of matrices."""

def matrix_power(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Square matrices to a whole power, by squaring; of the inverse for a negative one."""

def matrix_rank(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The number of singular values above `rtol` times the largest, as `i64`; see `pinv`."""

def max(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Largest element; NaN if there is one; `-inf` or the dtype's minimum of nothing. With one axis, given by place or as `dim`, the values and their positions (`i64`), as PyTorch does; as `axis` the values alone, as NumPy does."""

def max_keepdim(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Largest element; NaN if there is one; `-inf` or the dtype's minimum of nothing."""

def max_pool1d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: Any = False, return_indices: Any = False) -> Any:
    """The largest element of each window, with `return_indices` also where it was."""

def max_pool1d_with_indices(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `max_pool1d`, with the position (`i64`) of each window's first largest element in the last axis, counted row by row."""

def max_pool2d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: Any = False, return_indices: Any = False) -> Any:
    """The largest element of each window, with `return_indices` also where it was."""

def max_pool2d_with_indices(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `max_pool2d`, with the position (`i64`) of each window's first largest element in the last two axes, counted row by row."""

def max_pool3d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: Any = False, return_indices: Any = False) -> Any:
    """The largest element of each window, with `return_indices` also where it was."""

def max_pool3d_with_indices(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `max_pool3d`, with the position (`i64`) of each window's first largest element in the last three axes, counted row by row."""

def max_unpool1d(input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Tensor:
    """Elements put where `max_pool1d(..., return_indices=True)` took them, zeros elsewhere."""

def max_unpool2d(input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Tensor:
    """Elements put where `max_pool2d(..., return_indices=True)` took them, zeros elsewhere."""

def max_unpool3d(input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Tensor:
    """Elements put where `max_pool3d(..., return_indices=True)` took them, zeros elsewhere."""

def maximum(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Elementwise larger value; NaN if either is."""

def mean(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Arithmetic mean; NaN of nothing. Integers give `f32`."""

def mean_keepdim(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Arithmetic mean; NaN of nothing. Integers give `f32`."""

def median(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The middle of the sorted elements along an axis, of two middles the lower, and its position as `i64`; NaN if there is one. The axis goes away. Without an axis the middle of all elements, and no position."""

def meshgrid(input: Any, *args: Any, **kwargs: Any) -> Any:
    """For each vector a tensor with one axis per vector that varies along that vector's own."""

def min(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Smallest element; NaN if there is one; `inf` or the dtype's maximum of nothing. With one axis values or both, see `max`."""

def min_keepdim(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Smallest element; NaN if there is one; `inf` or the dtype's maximum of nothing."""

def minimum(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Elementwise smaller value; NaN if either is."""

def mish(input: Any, inplace: Any = False) -> Tensor:
    """`x * tanh(softplus(x))` (Misra 2019)."""

def mm(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `matmul`."""

def mode(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The most frequent element along an axis, of several the smallest, and the position of its last occurrence as `i64`. The axis goes away."""

def module_load(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The value that `load_state_dict` puts in the place of this one."""

def moveaxis(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The axes of `source` moved to the places of `destination`, the others keeping their order."""

def movedim(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The axes of `source` moved to the places of `destination`, the others keeping their order."""

def mse_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean', weight: Any = None) -> Tensor:
    """Squares of differences; with `weight` their mean by weights."""

def msort(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements in ascending order along axis 0."""

def mul(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Product."""

def mul_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `mul`, written into the tensor."""

def multi_dot(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The product of matrices in the order of least work; the first may be a vector (a row), the last too (a column)."""

def multi_head_attention_forward(query: Any, key: Any, value: Any, embed_dim_to_check: Any, num_heads: Any, in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: Any, dropout_p: Any, out_proj_weight: Any, out_proj_bias: Any, training: Any = True, key_padding_mask: Any = None, need_weights: Any = True, attn_mask: Any = None, use_separate_proj_weight: Any = False, q_proj_weight: Any = None, k_proj_weight: Any = None, v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None, average_attn_weights: Any = True, is_causal: Any = False) -> Any:
    """Attention of several heads: queries, keys and values `[steps, n, width]` or `[steps, width]`; the result, and the weights by which it was found or `None`. Masks are true where a key is hidden, or numbers that are added to the logits."""

def multi_margin_loss(input: Any, target: Any, p: Any = 1, margin: Any = 1.0, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> Tensor:
    """How far other classes come near the right one."""

def multilabel_margin_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> Tensor:
    """How far other classes come near the right ones, of which there may be several."""

def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> Tensor:
    """The mean over classes of the binary cross entropies of logits; `weight` is a factor of each class."""

def multinomial(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Class numbers (`i64`) drawn with probabilities proportional to weights `[classes]` or `[n, classes]`: `[samples]` or `[n, samples]`, with replacement or without. Without, no more than there are classes, by an exponential race: the classes in the order in which clocks of these rates ring. Weights must not be negative, and their sum positive."""

def multiply(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Product."""

def multiply_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `multiply`, written into the tensor."""

def mv(input: Any, *args: Any, **kwargs: Any) -> Any:
    """A matrix `[n, k]` times a vector `[k]`."""

def mvlgamma(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The logarithm of the gamma function of `p` dimensions."""

def mvlgamma_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `mvlgamma`, written into the tensor."""

def nan_to_num(input: Any, *args: Any, **kwargs: Any) -> Any:
    """NaN replaced by `nan`, infinities by the given numbers or else by the largest and smallest finite numbers of the dtype. Integers stay as they are."""

def nan_to_num_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `nan_to_num`, written into the tensor."""

def nanmean(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Arithmetic mean along axes of what is not NaN."""

def nanmedian(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The lower median of the elements that are not NaN; along an axis with its position."""

def nanquantile(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Quantiles of the elements that are not NaN; those of several `q` are stacked along a first axis."""

def nansum(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Sum along axes of what is not NaN."""

def narrow(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`length` elements along an axis from `start` on."""

def ndimension(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The number of axes."""

def ndtr(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Distribution function of the standard normal distribution."""

def ne(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self != rhs`, as bool."""

def ne_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `ne`, written into the tensor."""

def neg(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`-x`; wraps on integers, bools count as integers."""

def neg_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `neg`, written into the tensor."""

def negative(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`-x`; wraps on integers, bools count as integers."""

def negative_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `negative`, written into the tensor."""

def nelement(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Number of elements."""

def new_empty(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Zeros on this tensor's device and in its dtype, if no others are given: a tensor has a value."""

def new_empty_strided(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Zeros on this tensor's device and in its dtype, if no others are given, with these strides."""

def new_full(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Elements equal to a value on this tensor's device and in its dtype, if no others are given."""

def new_ones(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Ones on this tensor's device and in its dtype, if no others are given."""

def new_tensor(input: Any, *args: Any, **kwargs: Any) -> Any:
    """A tensor of data on this tensor's device and in its dtype, if no others are given."""

def new_zeros(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Zeros on this tensor's device and in its dtype, if no others are given."""

def nextafter(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The next number of the dtype after `self` towards `rhs`."""

def nextafter_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `nextafter`, written into the tensor."""

def nll_loss(input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: Any = -100, reduce: Any = None, reduction: Any = 'mean') -> Tensor:
    """Negative log likelihood of log probabilities against class numbers."""

def nll_loss_weighted(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Negative log-likelihood of log-probabilities `[n, classes, ..]` (or `[classes]`) at class numbers `[n, ..]` with a factor for each class, `[classes]`; the mean is weighted by the factors. See `nll_loss`."""

def nonzero(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Positions of the nonzero elements, one per row with one column per axis, in row-major order, as `i64`; with `as_tuple` a vector for each axis. Reads their number from the device."""

def nonzero_static(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The first `size` positions of elements that are not zero, filled up with `fill_value`."""

def norm(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The p-norm of the elements along axes; if no `p` is given, the square root of the sum of squares."""

def norm_keepdim(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Square root of the sum of squares."""

def norm_p(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`sum(|x|^p)^(1/p)` along axes: the largest magnitude for an infinite `p`, the smallest for minus infinity, the number of nonzero elements for 0."""

def normal(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Normal with the given mean and standard deviation; see `randn`."""

def normal_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every element is drawn from a normal distribution."""

def normalize(input: Any, p: Any = 2.0, dim: Any = 1, eps: Any = 1e-12) -> Tensor:
    """Divided by the p-norm along `dim`, or by `eps` if that is larger."""

def not_equal(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self != rhs`, as bool."""

def not_equal_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `not_equal`, written into the tensor."""

def numel(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Number of elements."""

def numpy(input: Any, *args: Any, **kwargs: Any) -> Any:
    """A NumPy array of the elements. On a device that computes in host memory the array shares it and is read-only, unless `copy=True`."""

def one_hot(tensor: Any, num_classes: Any = -1) -> Tensor:
    """A new last axis with 1 at the element's value, as `int64`; -1 classes: as many as there are, which reads the largest from the device."""

def ones(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Ones."""

def ones_like(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Ones with shape, device and, if no other is given, dtype of `self`."""

def outer(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every product of an element of one vector and one of another: `[n, m]`."""

def pad(input: Any, pad: Any, mode: Any = 'constant', value: Any = None) -> Tensor:
    """Elements added before and after the last axes: `pad` has two numbers for the last axis, then two for the one before, and so on. Negative numbers cut off."""

def pad_mode(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Padded by `(before, after)` elements along each axis, with what `mode` says. (PyTorch lists the last axis first; here the list is in the order of the axes.)"""

def pad_with(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Elements of value `value` added before and after each axis."""

def pairwise_distance(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The p-norm of `self - other + eps` along the last axis, which goes. Shapes broadcast."""

def pdist(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The distances of all pairs of different rows of `[n, d]`, as the upper triangle of `cdist` in row-major order, `[n (n - 1) / 2]`."""

def permutation(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The numbers `0..n` in random order, as `i64`; shuffled on the host (Fisher and Yates)."""

def permute(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The axes in another order: axis `i` of the result is axis `axes[i]` of this."""

def pin_memory(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor itself: copies to a device need no preparation."""

def pinv(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The pseudo-inverse (Moore and Penrose), without the singular values below `rtol` times the largest; by default the larger extent times the rounding of the dtype."""

def pinverse(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The pseudo-inverse (Moore and Penrose), without the singular values below `rtol` times the largest; by default the larger extent times the rounding of the dtype."""

def pixel_shuffle(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`[.., channels * r^2, height, width]` as `[.., channels, height * r, width * r]`: sub-pixel positions taken from channels (Shi et al. 2016)."""

def pixel_unshuffle(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`pixel_shuffle` undone: `[.., channels, height * r, width * r]` as `[.., channels * r^2, height, width]`."""

def poisson(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Poisson with this mean: whole numbers, from a table within twelve deviations of the mean."""

def poisson_nll_loss(input: Any, target: Any, log_input: Any = True, full: Any = False, size_average: Any = None, eps: Any = 1e-08, reduce: Any = None, reduction: Any = 'mean') -> Tensor:
    """Negative log likelihood of counts under Poisson's distribution of a rate, or of its logarithm."""

def polygamma(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The `n`-th derivative of `digamma` (order 0 is digamma itself, order 1 the trigamma function), in the same shape. Below 0 only the orders 0 and 1 are defined, the rest is NaN there."""

def polygamma_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `polygamma`, written into the tensor."""

def positive(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor itself."""

def pow(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`self` to the power `rhs`. An integer to a negative power is 0, unless the base is 1 or -1."""

def pow_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `pow`, written into the tensor."""

def prelu(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`x` above zero, `weight * x` below: `weight` has one element, or one for each position of axis 1 (channels)."""

def prod(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Product. Integers are multiplied in 64 bits; the product of nothing is 1."""

def prod_keepdim(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Product. Integers are multiplied in 64 bits; the product of nothing is 1."""

def put(input: Any, *args: Any, **kwargs: Any) -> Any:
    """This tensor with `src` at positions of the flattened tensor, or added there if `accumulate`. Negative positions count from the end."""

def put_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `put`, written into the tensor."""

def qr(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The factors `self = q r` with `min(rows, columns)` orthonormal columns in `q` and an upper triangular `r`, by Householder's reflections in `f64`. Signs are LAPACK's."""

def quantile(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Quantiles along an axis or of all elements: `q` in `0 ..= 1`, with a leading axis for the numbers of a list. Between two neighbours by `interpolation`: `"linear"`, `"lower"`, `"higher"`, `"nearest"`, `"midpoint"`. NaN if there is one."""

def rad2deg(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Radians to degrees."""

def rad2deg_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `rad2deg`, written into the tensor."""

def rand(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Uniform on `[0, 1)`: all multiples of 2^-24 (`f32`; 2^-53 for `f64`, 2^-11 for `f16`, 2^-8 for `bf16`) are equally likely."""

def rand_like(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Uniform numbers of `0 .. 1` in shape, float dtype and on the device of `self`."""

def rand_range(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Uniform on `[low, high)`; rounding can yield `high` itself."""

def randint(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Integers from `low` up to but not including `high`, equally likely up to `range / 2^64`. `randint(high, shape)` starts at 0."""

def randint_like(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Integers of `low .. high` in shape and dtype and on the device of `self`."""

def randn(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Normal with mean 0 and variance 1, by the transform of Box and Muller (1958): `sqrt(-2 log u) cos(2 pi v)` with `u` in `(0, 1]`, computed in `f32` for halves. The largest number is about 5.8 in `f32` (24 bits of `u`) and 6.7 in `f64` (32 bits)."""

def randn_like(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Standard normal numbers in shape, float dtype and on the device of `self`."""

def random_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`random_(from=0, to)`: every element is drawn from the integers from `from` up to but not including `to`; without limits from those that the dtype holds exactly, from 0."""

def randperm(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The numbers `0..n` in random order, as `i64`; shuffled on the host (Fisher and Yates)."""

def rank(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Number of axes."""

def ravel(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `flatten`."""

def realize(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Computes the value; gives the tensor itself."""

def realize_all(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Computes several values as one plan, sharing work between them. The tensors may be on different devices."""

def recip(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`1 / x`."""

def reciprocal(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`1 / x`; the same as `recip`."""

def reciprocal_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `reciprocal`, written into the tensor."""

def record_stream(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Nothing: memory is given back when the last computation that uses it is done."""

def register_hook(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls `hook(grad)` with each gradient of this tensor; a result takes the gradient's place. Gives a handle, whose `remove()` takes the hook away."""

def register_post_accumulate_grad_hook(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls `hook(self)` each time after `backward` has collected the gradient of this leaf. Gives a handle, whose `remove()` takes the hook away."""

def relu(input: Any, inplace: Any = False) -> Tensor:
    """`max(x, 0)`; NaN stays NaN."""

def relu6(input: Any, inplace: Any = False) -> Tensor:
    """`min(max(x, 0), 6)`."""

def relu_(input: Any, *given: Any, **named: Any) -> Tensor:
    """`relu` in the place of the input."""

def remainder(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Remainder with the sign of the divisor, as Python's `%`; `x % 0` is `x` on integers."""

def remainder_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `remainder`, written into the tensor."""

def renorm(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The slices along an axis scaled down to the p-norm `maxnorm` where theirs is larger."""

def renorm_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `renorm`, written into the tensor."""

def repeat(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor repeated `times[i]` times along each axis; more numbers than axes make new axes in front."""

def repeat_interleave(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Each element `times` times in a row along an axis; a vector has a number for each position, and their sum is read from the device."""

def repeat_interleave_by(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Each element as often in a row along an axis as `times` says for its position. Reads the sum of `times` from the device."""

def requires_grad_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Makes a leaf collect gradients, or not; gives the tensor itself. Of what was computed from leaves, `False` gives the same without history."""

def reshape(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The same elements, in row-major order, with another shape."""

def reshape_as(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements in the shape of `other`."""

def resize_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Becomes a tensor of another shape with the elements of its memory in order; elements that are new are zeros."""

def resize_as_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`resize_` to the shape of another tensor."""

def retain_grad(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Keeps the gradient of a tensor that was computed in `.grad`, as `backward` does that of a leaf."""

def rfft(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The transform of real numbers along an axis: the first `n / 2 + 1` elements of the complex one, the others being their conjugates; a last axis of two is added."""

def rfft2(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The transform of real numbers along the last two axes; of the last are the first `n / 2 + 1` elements."""

def rfftfreq(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The frequencies of a real transform: those of `fftfreq` that are not negative."""

def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Tensor:
    """Divided by the root mean square over the last axes, which have the extents `normalized_shape`."""

def roll(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Elements moved by `shifts[i]` along `axes[i]`, those that leave one end entering at the other. Without axes, one shift moves the flattened elements."""

def rot90(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Rotated by 90 degrees `times` times in the plane of two axes, from the first towards the second; a negative number turns the other way."""

def round(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Nearest integer, ties to even; or nearest number with `decimals` digits behind the point."""

def round_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `round`, written into the tensor."""

def row_stack(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Joined along axis 0, vectors as rows."""

def rrelu(input: Any, lower: Any = 0.125, upper: Any = 0.3333333333333333, training: Any = False, inplace: Any = False) -> Tensor:
    """`input` where it is positive, elsewhere times a slope: drawn between `lower` and `upper` for each element in training, their mean otherwise."""

def rrelu_(input: Any, *given: Any, **named: Any) -> Tensor:
    """`rrelu` in the place of the input."""

def rsqrt(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`1 / sqrt(x)`."""

def rsqrt_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `rsqrt`, written into the tensor."""

def rsub(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`other - alpha x`."""

def scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: Any = 0.0, is_causal: Any = False, scale: Any = None, enable_gqa: Any = False) -> Tensor:
    """What queries find among keys and values; weights are dropped with probability `dropout_p`."""

def scan_with(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Running combination by a monoid of the op table along an axis: inclusive, or `exclusive` of the element itself (then the first is the neutral element); from the end if `reverse`."""

def scatter(input: Any, *args: Any, **kwargs: Any) -> Any:
    """This tensor with `src[.., i, ..]` written to `[.., index[.., i, ..], ..]`; of several writes to one place the last in row-major order holds. `src` may be a number."""

def scatter_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `scatter`, written into the tensor."""

def scatter_add(input: Any, *args: Any, **kwargs: Any) -> Any:
    """This tensor with `src[.., i, ..]` added to `[.., index[.., i, ..], ..]`."""

def scatter_add_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `scatter_add`, written into the tensor."""

def scatter_reduce(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`src[.., i, ..]` combined into `[.., index[.., i, ..], ..]`, with what is there if `include_self`, else instead of it. The index may have smaller extents than `src` and, outside the axis, than this tensor: only that corner of them is used."""

def scatter_reduce_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `scatter_reduce`, written into the tensor."""

def searchsorted(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Where each of `values` belongs in this sorted tensor so that it stays sorted, as `i64`: before equal elements, or behind them if `right`. NaN is larger than every number. This has one axis, or the leading axes of `values` and is searched row by row. `side="right"` is `right`; `sorter`, as `argsort` gives it, is the order of a tensor that is not sorted."""

def select(input: Any, *args: Any, **kwargs: Any) -> Any:
    """One position of an axis; the axis disappears."""

def select_index(input: Any, *args: Any, **kwargs: Any) -> Any:
    """One position of an axis; the axis disappears."""

def select_scatter(input: Any, *args: Any, **kwargs: Any) -> Any:
    """This tensor with `src` as the slice at one position of an axis."""

def selu(input: Any, inplace: Any = False) -> Tensor:
    """The self-normalising activation of Klambauer et al. 2017."""

def selu_(input: Any, *given: Any, **named: Any) -> Tensor:
    """`selu` in the place of the input."""

def set_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Becomes a tensor that shares the memory of `source`, whole or at strides; without one a tensor without elements."""

def sgn(input: Any, *args: Any, **kwargs: Any) -> Any:
    """-1, 0 or 1; NaN stays NaN."""

def sgn_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `sgn`, written into the tensor."""

def share_memory_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor itself: other processes get copies."""

def shl(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Shift left."""

def short(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The same as `cast("int16")`."""

def shr(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Shift right, arithmetic on signed integers."""

def shrink(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The block from `ranges[i].0` up to `ranges[i].1` along each axis."""

def sigmoid(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`1 / (1 + e^-x)`."""

def sigmoid_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `sigmoid`, written into the tensor."""

def sign(input: Any, *args: Any, **kwargs: Any) -> Any:
    """-1, 0 or 1; NaN stays NaN."""

def sign_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `sign`, written into the tensor."""

def signbit(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether the sign bit is set: negative, or `-0.0`."""

def silu(input: Any, inplace: Any = False) -> Tensor:
    """`x * sigmoid(x)`, also called swish."""

def sin(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Sine of radians."""

def sin_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `sin`, written into the tensor."""

def sinc(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`sin(pi x) / (pi x)`, and 1 at 0."""

def sinc_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `sinc`, written into the tensor."""

def sinh(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Hyperbolic sine."""

def sinh_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `sinh`, written into the tensor."""

def slice(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements of one axis within a range, as `x.slice(1, 2..5)`."""

def slice_scatter(input: Any, *args: Any, **kwargs: Any) -> Any:
    """This tensor with `src` at positions `start, start + 1, …` of an axis."""

def slogdet(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Sign and natural logarithm of the magnitude of determinants, which may be too large or small themselves. A singular matrix has sign 0 and logarithm `-inf`."""

def smooth_l1_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean', beta: Any = 1.0) -> Tensor:
    """Half the square of a difference divided by `beta`, beyond `beta` its absolute value less `beta / 2`."""

def soft_margin_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> Tensor:
    """`log(1 + exp(-target input))`."""

def softmax(input: Any, dim: Any = None, _stacklevel: Any = 3, dtype: Any = None) -> Tensor:
    """`exp(x) / sum(exp(x))` along an axis; without one along axis 0 of tensors with 0, 1 or 3 axes, axis 1 of others."""

def softmin(input: Any, dim: Any = None, _stacklevel: Any = 3, dtype: Any = None) -> Tensor:
    """The softmax of `-x`."""

def softplus(input: Any, beta: Any = 1.0, threshold: Any = 20.0) -> Tensor:
    """`log(1 + exp(beta input)) / beta`; `input` itself where `beta input` exceeds `threshold`."""

def softshrink(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`x` brought towards zero by `lambda`, and zero between."""

def softsign(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`x / (1 + |x|)`."""

def solve(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`x` of `self x = b` with `b` of `[.., n, k]` or, for a single matrix, `[n]`. Batches broadcast."""

def sort(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Elements in ascending (or descending) order along an axis, and where they came from as `i64`. Equal elements keep their order, whatever `stable` says; NaN is the largest number."""

def split(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Pieces of extent `size` along an axis, the last one smaller if need be; or of the extents that a list gives."""

def split_with_sizes(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Pieces of the given extents along an axis."""

def sqrt(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Square root."""

def sqrt_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `sqrt`, written into the tensor."""

def square(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`x * x`."""

def square_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `square`, written into the tensor."""

def squeeze(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Without those of the axes that have extent 1; of all axes if none is named."""

def squeeze_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor becomes what `squeeze` gives."""

def stack(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Tensors of one shape joined along a new axis."""

def std(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Standard deviation along axes; see `var`."""

def std_mean(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Standard deviation along axes and the mean; see `std`."""

def stft(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Transforms of overlapping frames of real signals `[.., samples]`: `[.., n_fft / 2 + 1, frames, 2]`."""

def storage_offset(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The place of the first element in memory that views share."""

def stride(input: Any, *args: Any, **kwargs: Any) -> Any:
    """How many elements of memory the neighbours along each axis, or along `axis` or `dim`, are apart. With `start` or `step` every `step`-th position of an axis, from `start` on."""

def sub(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Difference."""

def sub_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `sub`, written into the tensor."""

def subtract(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Difference."""

def subtract_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `subtract`, written into the tensor."""

def sum(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Sum. Integers are summed in 64 bits; the sum of nothing is 0."""

def sum_keepdim(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Sum. Integers are summed in 64 bits; the sum of nothing is 0."""

def sum_to_size(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Summed over axes so that the shape is `size`: the reverse of broadcasting."""

def svd(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The factors `self = u diag(s) vh` with singular values in descending order and `min(rows, columns)` columns of `u` and rows of `vh`, in `f64`: small singular values are accurate, too. Signs of vectors are any; a matrix with an element that is not finite gives NaN."""

def svdvals(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Singular values in descending order, whose gradient exists where they coincide, too."""

def swapaxes(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Two axes exchanged; the same as `transpose`."""

def swapaxes_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor becomes what `swapaxes` gives."""

def swapdims(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Two axes exchanged."""

def swapdims_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor becomes what `swapdims` gives."""

def t(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The last two axes exchanged; all axes reversed below rank 2 (so: unchanged)."""

def t_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor becomes what `t` gives."""

def take(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements at positions of the flattened tensor, in the shape of `index`. Negative positions count from the end."""

def take_along_dim(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements `[.., index[.., i, ..], ..]` along an axis; the shapes broadcast outside it. Without an axis, of the flattened tensors. Negative positions count from the end."""

def tan(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Tangent of radians."""

def tan_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `tan`, written into the tensor."""

def tanh(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Hyperbolic tangent."""

def tanh_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `tanh`, written into the tensor."""

def tanhshrink(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`x - tanh(x)`."""

def tensor_split(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Pieces along an axis that begin at 0 and at each of `positions`, in order; a piece that would end before it begins is empty. A number instead of a list is how many pieces, the first ones larger by one if it does not divide."""

def tensordot(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Sum of products over given axes of both, paired in order: the result has the other axes of `self`, then those of `other`."""

def tensorsolve(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The `x` for which `tensordot(self, x, x.ndim)` is `other`; `dims` are moved to the end first."""

def threshold(input: Any, threshold: Any, value: Any, inplace: Any = False) -> Tensor:
    """`x` above `threshold`, else `value`."""

def threshold_(input: Any, *given: Any, **named: Any) -> Tensor:
    """`threshold` in the place of the input."""

def tile(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Repeated `times[i]` times along axis `i`; of `times` and the shape, the shorter gets ones in front."""

def to(input: Any, *args: Any, **kwargs: Any) -> Any:
    """On another device, in another dtype, or both: as words, by name, or as those of a tensor; the tensor itself if it is that already, unless `copy=True`."""

def to_bytes(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The little-endian bytes of the elements in row-major order."""

def to_dense(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor itself, which is dense, in a dtype."""

def to_device(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The same values on another device."""

def to_sparse(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements that are not 0, as a `SparseTensor`. Reads how many there are."""

def to_sparse_csr(input: Any, *args: Any, **kwargs: Any) -> Any:
    """A matrix as a `SparseTensor` in order of its rows."""

def to_vec(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements as one list in row-major order."""

def tolist(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements as lists within lists; a number for a tensor without axes."""

def topk(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The `k` largest (or smallest) elements along an axis, in order whatever `sorted` says, and their positions as `i64`. Of equal elements the first count as more extreme."""

def trace(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Sum of the diagonal of a matrix; integers are summed in 64 bits."""

def tracked(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The same values as a tracked leaf: a parameter. Everything computed from it keeps its history, so gradients can be asked for even after values were read."""

def transpose(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Two axes exchanged."""

def transpose_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor becomes what `transpose` gives."""

def trapezoid(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The integral along an axis of samples `dx` apart by the trapezoidal rule."""

def trapz(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The integral along an axis of samples `dx` apart by the trapezoidal rule."""

def triangular_solve(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`x` of `A x = self` (or `A^T x = self`) and `A`, in PyTorch's order: the right side first. The upper or the lower triangle of `A` is read, with `unitriangular` without its diagonal, which is ones then. The right side is `[.., n, k]`; batches broadcast."""

def tril(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements on and below the `diagonal`-th diagonal of the last two axes, zeros above."""

def tril_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `tril`, written into the tensor."""

def tril_indices(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Row and column numbers (`i64`, `[2, n]`) of the elements of a `rows` by `columns` matrix on and below a diagonal, row by row."""

def triplet_margin_loss(anchor: Any, positive: Any, negative: Any, margin: Any = 1.0, p: Any = 2, eps: Any = 1e-06, swap: Any = False, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> Tensor:
    """How much farther the negative is than the positive; with `swap` from the nearer of the other two."""

def triplet_margin_with_distance_loss(anchor: Any, positive: Any, negative: Any, *, distance_function: Any = None, margin: Any = 1.0, swap: Any = False, reduction: Any = 'mean') -> Tensor:
    """`triplet_margin_loss` by another distance: a function of two tensors, by default `pairwise_distance`."""

def triu(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements on and above the `diagonal`-th diagonal of the last two axes, zeros below."""

def triu_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `triu`, written into the tensor."""

def triu_indices(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `tril_indices`, on and above the diagonal."""

def true_divide(input: Any, *args: Any, **kwargs: Any) -> Any:
    """True division: integers are converted to `f32` first. Rounded down (`"floor"`) or towards zero (`"trunc"`) if `rounding_mode` says so, in the promoted dtype."""

def true_divide_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `true_divide`, written into the tensor."""

def trunc(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Integer part."""

def trunc_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `trunc`, written into the tensor."""

def trunc_divide(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Division truncated towards zero, in the promoted dtype; an integer divided by 0 is 0."""

def truncated_normal(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Normal within `low ..= high`, for intervals with a fair share of the distribution: of twelve attempts the first inside counts, and a uniform number where none is."""

def type(input: Any, *args: Any, **kwargs: Any) -> Any:
    """PyTorch's name of the kind of tensor, as in `"torch.FloatTensor"`; converted to another if one is given."""

def type_as(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Converted to the dtype of `other`."""

def unbind(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The slices along an axis, without it."""

def unflatten(input: Any, *args: Any, **kwargs: Any) -> Any:
    """An axis split into several of the given extents, of which one may be -1."""

def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Windows of an image as columns: `[n, channels * kernel, positions]`."""

def uniform_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`uniform_(from=0, to=1)`: every element is drawn uniformly from `from` up to `to`."""

def unique(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The distinct elements of the flattened tensor in ascending order, whatever `sorted` says; if asked for with where each element went, in the shape of the tensor, and how often each occurs. Reads their number from the device."""

def unique_consecutive(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `unique`, of neighbours only: the first of each run of equal elements."""

def unravel_index(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Positions in a flattened tensor of a shape as positions along each of its axes."""

def unsafe_chunk(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`chunk`."""

def unsafe_split(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`split`."""

def unsqueeze(input: Any, *args: Any, **kwargs: Any) -> Any:
    """A new axis of extent 1 before `axis`; -1 adds it at the end."""

def unsqueeze_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor becomes what `unsqueeze` gives."""

def upsample(input: Any, size: Any = None, scale_factor: Any = None, mode: Any = 'nearest', align_corners: Any = None) -> Tensor:
    """`interpolate` under an older name."""

def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` by straight lines, corners on corners."""

def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with the nearest element."""

def vander(input: Any, *args: Any, **kwargs: Any) -> Any:
    """A matrix of the powers of each element of a vector, descending unless `increasing`."""

def var(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Variance along axes, with `correction` subtracted from the count (1: unbiased estimate, which `unbiased=True` is another name for)."""

def var_keepdim(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `var`, keeping the axes with extent 1."""

def var_mean(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Variance along axes and the mean; see `var`."""

def vdot(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Sum of products of two vectors; the same as `dot`, as no number is complex."""

def vecdot(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Sum of products of vectors along an axis; shapes broadcast."""

def vector_norm(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The p-norm `(sum |x|^p)^(1/p)` of the vectors along axes; `p` may be infinite (the largest magnitude), minus infinite (the smallest) or 0 (how many elements are not 0)."""

def view(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `reshape`."""

def view_as(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The elements in the shape of `other`."""

def vmap(input: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of each example: an axis of each input counts them, or none. What it writes to its arguments is written to the inputs."""

def vsplit(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Pieces along axis 0 of two axes and more; see `hsplit`."""

def vstack(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Joined along axis 0, vectors as rows."""

def where(input: Any, *args: Any, **kwargs: Any) -> Any:
    """This tensor's elements where `condition` holds, elsewhere those of `other`."""

def where_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Where `self` (as bool) holds, `x`, elsewhere `y`; all three broadcast."""

def with_gradient(input: Any, *args: Any, **kwargs: Any) -> Any:
    """This value with a gradient of one's own: `rule(inputs, output, cotangent)` gives the cotangent of each of `inputs`, or `None`."""

def xlog1py(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`x log(1 + y)`, which is 0 where `x` is 0, unless `y` is NaN."""

def xlogy(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`x log(y)`, which is 0 where `x` is 0, unless `y` is NaN."""

def xlogy_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `xlogy`, written into the tensor."""

def zero_(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Every element becomes 0."""

def zeros(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Zeros."""

def zeros_like(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Zeros with shape, device and, if no other is given, dtype of `self`."""
