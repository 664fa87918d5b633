"""Every public function on a grid of operands, and what PyTorch (`array_api_strict`, for the array API) gives: `data/operand_grid.txt`.

`RECIPES` has for every public function the calls it is made with; `UNCALLED` names the others, each with the reason.
A call is made for every case of its grid: all dtypes, and shapes without axes, without elements, and that broadcast. A
line of the data file is a call with a result for each case: dtype, shape and a sum of the elements with weights, `!`
for an error. `test_operand_grid.py` compares, and makes the calls with the same elements held in other ways (constants,
views, repeated by broadcasting), which changes no result.

    python zyx-py/tests/operand_grid.py

writes the results again; this needs `torch` and `array-api-strict`.
"""

import itertools
import pathlib
import re
import zlib

import numpy as np

FILE = pathlib.Path(__file__).with_name("data") / "operand_grid.txt"
DTYPES = {"b": "bool", "B": "uint8", "i": "int32", "l": "int64", "e": "float16", "f": "float32", "d": "float64"}
LETTERS = {name: letter for letter, name in DTYPES.items()}

# Grids: lists of cases. A case has a word for each operand: the letter of the dtype, and extents.
ONE = ["b2x3", "B2x3", "i2x3", "l2x3", "e2x3", "f2x3", "d2x3", "f", "l", "b", "f0", "f2x0", "l0x3", "f1x3", "f4", "l4", "f2x2x3"]
BROADCAST = [("2x3", ""), ("", "2x3"), ("2x1", "1x3"), ("0x3", "1x3"), ("2x3", "3"), ("", ""), ("2x3", "4"), ("1", "0")]
PAIRS = [f"{a}2x3 {b}2x3" for a, b in itertools.product(DTYPES, DTYPES)]
TWO = PAIRS + [f"{t}{a} {t}{b}" for a, b in BROADCAST for t in "fl"]
ALIKE = [f"{t}2x3 {t}2x3" for t in DTYPES] + [f"f{a} f{b}" for a, b in BROADCAST]
THREE = [f"{t}2x3 {t}2x3 {t}2x3" for t in DTYPES] + [
    *("f2x3 f2x1 f3", "f f f", "f0x3 f1x3 f", "f2x3 f f", "f f2x3 f3", "l2x3 f2x3 f2x3", "f2x3 l2x3 f2x3", "e2x3 f2x3 e2x3"),
    *("f2x3 f4 f3", "d2x3 f2x3 e2x3"),
]
WHERE = ["b2x3 " + " ".join(two.split()) for two in PAIRS] + [
    *("b f3 f", "b f f3", "b3 e1 f1", "b1 f3 f1", "b2x1 f3 l", "b0x3 f3 f", "b f f", "b l l", "b3 f4 f3", "b0 f1 f", "b1 e f1"),
]
VECTORS = [f"{t}4" for t in DTYPES] + ["f0", "f1", "l0", "f", "f2x3"]
TWO_VECTORS = [f"{t}4 {t}4" for t in DTYPES] + ["f0 f0", "f1 f1", "f4 f3", "f f4", "f2x3 f3", "l4 f4", "e4 f4"]
MATRICES = ["f3x3", "d3x3", "l3x3", "e3x3", "b3x3", "d2x3x3", "d0x3x3", "f2x0x0", "f0x0", "f1x1", "f0x2x2x2", "f3", "f"]
OBLONG = MATRICES + ["d2x4", "d4x2", "f0x4", "f4x0", "f0x2x4", "f2x0x3", "d3x2x4"]
SQUARE = MATRICES + ["d2x4"]
SYSTEMS = ["d3x3 d3x3", "f3x3 f3x2", "d2x3x3 d2x3x2", "f0x3x3 f0x3x2", "f2x0x0 f2x0x2", "f0x0 f0x2", "f3x3 f3x0", "f3x3 f2x2",
           "e3x3 e3x3", "l3x3 l3x2", "f1x1 f1x1"]  # fmt: skip
PRODUCTS = [f"{t}2x3 {t}3x4" for t in DTYPES] + ["f0x3 f3x4", "f2x0 f0x4", "f2x3 f3x0", "f2x3 f2x3", "l2x3 f3x4", "e2x3 f3x4",
            "f3 f3x4", "f2x3 f3", "f3 f3", "f2x2x3 f3x4", "f2x1x2x3 f5x3x4", "f0x2x3 f3x4", "f f3", "f0 f0"]  # fmt: skip
BATCHES = ["f2x2x3 f2x3x4", "l2x2x3 l2x3x4", "e2x2x3 e2x3x4", "f0x2x3 f0x3x4", "f2x2x0 f2x0x4", "f2x2x3 f3x3x4", "f2x3 f3x4"]
ONE_D = [f"{t}2x3x9" for t in DTYPES] + ["f3x9", "f0x3x9", "f2x0x9", "f1x1x8", "f9"]
TWO_D = [f"{t}2x4x9x8" for t in "lefd"] + ["f4x9x8", "f0x4x9x8", "f1x4x9x9", "f9x8"]
THREE_D = [f"{t}1x2x6x5x7" for t in "lefd"] + ["f2x6x5x7", "f0x2x6x5x7"]
CHANNELS = [f"{t}2x4x5 {t}4" for t in "efd"] + ["f2x4 f4", "f0x4x5 f4", "f2x4x5 f3", "f2x4x3x2 f4", "l2x4x5 f4"]
LAST = [f"{t}2x3x4 {t}4" for t in "efd"] + ["f4 f4", "f0x4 f4", "f2x3x4 f3", "f2x1x4 f4"]
INDEXED = [f"{t}4x3" for t in DTYPES] + ["f4", "f4x0", "f4x2x3", "l4x1", "f1x3", "f"]
# No operand has axes that calls name, or all are numbers.
NONE = [""]
XP_ONE = [case for case in ONE if case[0] not in "e"]
XP_TWO = [f"{a}2x3 {b}2x3" for kind in ("b", "Bil", "fd") for a in kind for b in kind] + [case for case in TWO if case not in PAIRS]
XP_THREE = ["f2x3x4 f2x3x4", "l3x2x4 l3x2x4", "f2x3x4 f3x4", "f3x3x3 f3x3x3", "f3x1x2 f1x3x2", "f0x3x2 f0x3x2"]
GRIDS = {name: value for name, value in list(globals().items()) if isinstance(value, list) and isinstance(value[0], str)}

# `grid | calls | functions | calls of the reference, if they differ`. In a call `f` is the function, `x`, `y`, `z` are the
# operands, `m` is the library, `F` its `nn.functional`, and `i(..)`, `t(..)` are tensors of integers and of numbers.
RECIPES = """
ONE | f(x) | abs acos acosh all any amax amin argmax argmin argwhere asin asinh atan atanh atleast_1d atleast_2d atleast_3d ceil clone contiguous
ONE | f(x) | cos cosh count_nonzero deg2rad detach diagflat digamma erf erfc erfinv exp exp2 expm1 flatten floor frac isfinite isinf isnan
ONE | f(x) | isneginf isposinf lgamma log log10 log1p log2 logical_not logit mean median min max nan_to_num nanmean nansum neg bitwise_not
ONE | f(x) | nonzero norm numel ones_like prod rad2deg ravel reciprocal relu round rsqrt sigmoid sign signbit sin sinc sinh sqrt square squeeze
ONE | f(x) | std sum tan tanh trunc unique unique_consecutive var zeros_like t tolist is_floating_point element_size dim
ONE | f(x).shape; f(x, dtype=DTYPE("int32")) * 0 | empty_like
ONE | f(x) | celu elu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 selu silu softplus softshrink softsign tanhshrink
ONE | f(x) | F.softplus F.gelu S.entr erfcx ndtr log_ndtr S.psi
ONE | f(x) | half | x.half()
ONE | f(x) | float | x.float()
ONE | f(x) | double | x.double()
ONE | f(x) | int | x.int()
ONE | f(x) | long | x.long()
ONE | f(x) | gelu | F.gelu(x, approximate="tanh")
ONE | f(x) | gelu_exact | F.gelu(x)
ONE | f(x) | recip | m.reciprocal(x)
ONE | f(x) | is_nan | m.isnan(x)
ONE | f(x) | is_inf | m.isinf(x)
ONE | f(x) | is_finite | m.isfinite(x)
ONE | f(x) | rank | x.dim()
ONE | f(x) | to_vec | x.flatten().tolist()
ONE | f(x) | cpu realize | x
ONE | f(x) | item
ONE | f(x) | numpy | x.numpy()
ONE | f(x) | tracked | x
ONE | f(x) | to_bytes | x.numpy().tobytes()
ONE | f(x, 0); f(x, -1, True); f(x, 3); f(x, True) | all any amax amin argmax argmin
ONE | f(x, 0); f(x, -1); f(x, 3) | cumsum cumprod softmax log_softmax softmin logcumsumexp glu S.softmax S.log_softmax
ONE | f(x, 0); f(x, -1); f(x, 1, keepdim=True); f(x, dim=(0, 1)); f(x, 3) | sum mean nansum nanmean logsumexp std var
ONE | f(x, 0); f(x, -1); f(x, dim=(0, 1)) | count_nonzero
ONE | f(x, 0); f(x, -1); f(x, 3) | prod cummax cummin sort median mode
ONE | f(x, axis=0); f(x, axis=-1); f(x, axis=3) | max | m.amax(x, 0); m.amax(x, -1); m.amax(x, 3)
ONE | f(x, axis=0); f(x, axis=-1); f(x, axis=3) | min | m.amin(x, 0); m.amin(x, -1); m.amin(x, 3)
ONE | f(x); f(x, 0) | aminmax | m.aminmax(x); m.aminmax(x, dim=0)
ONE | f(x); f(x, 0) | std_mean | m.std_mean(x); m.std_mean(x, dim=0)
ONE | f(x); f(x, 0) | var_mean | m.var_mean(x); m.var_mean(x, dim=0)
ONE | f(x); f(x, -1, descending=True); f(x, 0); f(x, 3) | argsort
ONE | f(x); f(x, -1, descending=True); f(x, 0) | sort
ONE | f(x) | msort mode
ONE | f(x, 0); f(x, (0, 1)) | all_keepdim | m.all(x, 0, keepdim=True); m.all(x, (0, 1), keepdim=True)
ONE | f(x, 0); f(x, (0, 1)) | any_keepdim | m.any(x, 0, keepdim=True); m.any(x, (0, 1), keepdim=True)
ONE | f(x, 0); f(x, (0, 1)) | sum_keepdim | m.sum(x, 0, keepdim=True); m.sum(x, (0, 1), keepdim=True)
ONE | f(x, 0); f(x, (0, 1)) | mean_keepdim | m.mean(x, 0, keepdim=True); m.mean(x, (0, 1), keepdim=True)
ONE | f(x, 0); f(x, (0, 1)) | logsumexp_keepdim | m.logsumexp(x, 0, keepdim=True); m.logsumexp(x, (0, 1), keepdim=True)
ONE | f(x, 0); f(x, (0, 1)) | max_keepdim | m.amax(x, 0, keepdim=True); m.amax(x, (0, 1), keepdim=True)
ONE | f(x, 0); f(x, (0, 1)) | min_keepdim | m.amin(x, 0, keepdim=True); m.amin(x, (0, 1), keepdim=True)
ONE | f(x, 0); f(x, (0, 1)) | norm_keepdim | m.norm(x, dim=0, keepdim=True); m.norm(x, dim=(0, 1), keepdim=True)
ONE | f(x, 0); f(x, (0, 1)) | var_keepdim | m.var(x, dim=0, keepdim=True); m.var(x, dim=(0, 1), keepdim=True)
ONE | f(x, 0) | prod_keepdim | m.prod(x, 0, keepdim=True)
ONE | f(x, 3.0); f(x, 1, 0); f(x, float("inf"), -1, True); f(x, 0) | norm
ONE | f(x, 3.0); f(x, 1, 0); f(x, 0); f(x, -float("inf"), -1) | vector_norm norm_p | m.linalg.vector_norm(x, 3.0); m.linalg.vector_norm(x, 1, 0); m.linalg.vector_norm(x, 0); m.linalg.vector_norm(x, -float('inf'), -1)
ONE | f(x, 0.25); f(x, m.tensor([0.0, 0.5, 1.0], dtype=x.dtype), 0); f(x, 0.5, -1, True) | quantile
ONE | f(x, 1); f(x, 2, 0)[0]; f(x, 9) | kthvalue topk
ONE | f(x, -1.0, 1.5); f(x, min=1); f(x, max=0); f(x) | clamp clip
ONE | f(x, 0.5, 2.0) | threshold
ONE | f(x, -3.0, 0.5) | hardtanh
ONE | f(x, 1); f(x, -1) | tril triu
ONE | f(x); f(x, 1); f(x, -1) | diagonal diag diag_embed
ONE | f(x, 0, 1); f(x, -1, 0); f(x, 0, 3) | transpose movedim swapaxes
ONE | f(x, 0); f(x, -1); f(x, 1); f(x, 5) | unsqueeze squeeze unbind
ONE | f(x, (0,)); f(x, (-1,)); f(x, (5,)) | flip
ONE | f(x, (0, -1)); f(x, ()) | flip
ONE | f(x, 1); f(x, -1, 0); f(x, (1, 2), (0, 1)) | roll
ONE | f(x); f(x, 3); f(x, -1, (1, 0)) | rot90
ONE | f(x) | fliplr flipud trace
ONE | f(x, 0, -1); f(x, 1, -1); f(x, -2) | flatten
ONE | f(x, 0, -1); f(x, 1, -1) | flatten_axes | m.flatten(x, 0, -1); m.flatten(x, 1, -1)
ONE | f(x, 2); f(x, 2, -1); f(x, 3, 0) | chunk tensor_split split
ONE | f(x, [1, 2], -1); f(x, (1,), 0) | tensor_split
ONE | f(x, [1, 2], -1); f(x, [1, 1], 0) | split split_with_sizes
ONE | f(x, 1); f(x, [1]); f(x, 2) | hsplit vsplit dsplit
ONE | f(x, (2, 2)); f(x, (3, 1, 1)); f(x, (0,)) | tile repeat
ONE | f(x, 2); f(x, 2, 0); f(x, 0, -1) | repeat_interleave
ONE | f(x, 0, 0, 1); f(x, -1, 1, 2); f(x, 0, 0, 0) | narrow
ONE | f(x, 0, 0); f(x, -1, -1); f(x, 0, 7) | select
ONE | f(x, -1, 2, 1); f(x, 0, 1, 1) | unfold | x.unfold(-1, 2, 1); x.unfold(0, 1, 1)
ONE | f(x, 0, 1); f(x, -1, 0, 2); f(x, 0) | slice | x.narrow(0, 1, max(x.shape[0] - 1, 0)); x.narrow(-1, 0, 2); x
ONE | f(x, 0, 0, 2); f(x, -1, 1, 2) | stride | x[::2]; x[..., 1::2]
ONE | f(x, -1, (3, 1)); f(x, 0, (1, -1)); f(x, 0, (2, 2)) | unflatten
ONE | f(x, (-1,)); f(x, (1, -1)); f(x, (3, 2)); f(x, (6,)); f(x, (2, -1, 3)) | reshape view
ONE | f(x, (2, 2, 3)); f(x, (1, -1, -1)); f(x, (4, 3)) | expand
ONE | f(x, (2, 2, 3)); f(x, (4, 3)); f(x, (0, 3)) | broadcast_to
ONE | f(x, (1, 0)); f(x, (0,)); f(x, (0, 2, 1)) | permute
ONE | f(x); f(x, 2, 0); f(x, 1, -1) | diff | m.diff(x); m.diff(x, 2, 0); m.diff(x, 1, -1)
ONE | f(x, "add", 0); f(x, "mul", -1) | scan_with | m.cumsum(x, 0, dtype=x.dtype); m.cumprod(x, -1, dtype=x.dtype)
ONE | f(x, 2, 0, 1.0); f(x, 1, -1, 0.5) | renorm
ONE | f(x); f(x, dim=0) | trapezoid cumulative_trapezoid
ONE | f(x, 7); f(x, 2.5, dtype=DTYPE("int32")) | full_like
ONE | f(x, DTYPE("float16")); f(x, DTYPE("int32")); f(x, DTYPE("bool")); f(x, DTYPE("float64")) | to
ONE | f(x, DTYPE("float16")); f(x, DTYPE("int64")); f(x, DTYPE("bool")) | cast astype | x.to(DTYPE("float16")); x.to(DTYPE("int64")); x.to(DTYPE("bool"))
ONE | f(x, dtype=DTYPE("float64")); f(x, dtype=DTYPE("int32")) | sum prod zeros_like ones_like
ONE | f(x, DTYPE("int32")) | bitcast | x.view(DTYPE("int32"))
ONE | f(x, (3, 2)); f(x, ()); f(x, (3, 2), dtype=DTYPE("int32")) | new_zeros new_ones
ONE | f(x, (3, 2), 2) | new_full
ONE | f(x) | fftshift | FFT.fftshift(x)
ONE | f(x) | ifftshift | FFT.ifftshift(x)
ONE | f(x, 0) | fftshift | FFT.fftshift(x, 0)
ONE | f(x, 0) | ifftshift | FFT.ifftshift(x, 0)
ONE | f(x); f(x, 3); f(x, 5, 0); f(x, norm="ortho") | rfft | m.view_as_real(FFT.rfft(x)); m.view_as_real(FFT.rfft(x, 3)); m.view_as_real(FFT.rfft(x, 5, 0)); m.view_as_real(FFT.rfft(x, norm='ortho'))
ONE | f(m.stack([x, x * 2], -1)); f(m.stack([x, x * 2], -1), 4) | fft | m.view_as_real(FFT.fft(m.complex(x, x * 2))); m.view_as_real(FFT.fft(m.complex(x, x * 2), 4))
ONE | f(m.stack([x, x * 2], -1)); f(m.stack([x, x * 2], -1), 4) | ifft | m.view_as_real(FFT.ifft(m.complex(x, x * 2))); m.view_as_real(FFT.ifft(m.complex(x, x * 2), 4))
ONE | f(m.stack([x, x * 2], -1)); f(m.stack([x, x * 2], -1), 5) | irfft | FFT.irfft(m.complex(x, x * 2)); FFT.irfft(m.complex(x, x * 2), 5)
ONE | f(m.stack([x, x * 2], -1)) | fft2 | m.view_as_real(FFT.fft2(m.complex(x, x * 2)))
ONE | f(m.stack([x, x * 2], -1)) | ifft2 | m.view_as_real(FFT.ifft2(m.complex(x, x * 2)))
ONE | f(m.stack([x, x * 2], -1), (0,)) | fftn | m.view_as_real(FFT.fftn(m.complex(x, x * 2), dim=(0,)))
ONE | f(m.stack([x, x * 2], -1), (0,)) | ifftn | m.view_as_real(FFT.ifftn(m.complex(x, x * 2), dim=(0,)))
ONE | f(x) | rfft2 | m.view_as_real(FFT.rfft2(x))
ONE | f(m.stack([x, x * 2], -1)) | irfft2 | FFT.irfft2(m.complex(x, x * 2))
ONE | f(1, x); f(2, x) | polygamma S.polygamma
ONE | f(x + 5, 2) | mvlgamma S.multigammaln
ONE | f(x, decimals=1); f(x, decimals=-1) | round
ONE | f(x, [(1, 0)] * x.ndim); f(x, [(0, 2)] * x.ndim) | pad | F.pad(x, [1, 0] * x.ndim); F.pad(x, [0, 2] * x.ndim)
ONE | f(x, [(1, 2)] * x.ndim, 1.5) | pad_with | F.pad(x, [1, 2] * x.ndim, value=1.5)
ONE | f(x, [(1, 1)] * x.ndim) | pad_mode | F.pad(x, [1, 1] * x.ndim)
ONE | f(x, [(0, 1)] * x.ndim) | shrink | x[(slice(0, 1),) * x.ndim]
ONE | f(x, [1, 2]); f(x, [1, 0], value=2); f(x, [-1, 1]); f(x, [1, 1, 0, -1]) | F.pad
ONE | f(x, 0, 0); f(x, -1, 1) | select_index | m.select(x, 0, 0); m.select(x, -1, 1)
ONE | f(x, 0, i([1, 0, 1])); f(x, -1, i([])); f(x, 0, i(0)) | index_select
ONE | f(x, 0, i([1, 0]), 2.5); f(x, -1, i([0]), 3) | index_fill
ONE | f(x, x > 0, 2.5); f(x, i([1, 0, 1]) > 0, -1); f(x, i(1) > 0, t([1.0])); f(x, i(1) > 0, m.ones((), dtype=DTYPE("int64"))) | masked_fill
ONE | f(x, x > 0); f(x, i([1, 0, 1]) > 0); f(x, i(1) > 0) | masked_select
ONE | f(x, i([1, 0])); f(x, i(0)); f(x, i([[0], [1]])) | take
ONE | f(x, (0,)); f(x, (i([1, 0, -1]),)); f(x, (i(0) > 1,)); f(x, (i(1) > 0, 0)); f(x, (x > 0,)) | index | x[0]; x[i([1, 0, -1])]; x[i(0) > 1]; x[i(1) > 0, 0]; x[x > 0]
ONE | f(x, i([0, 1]), x.flatten()[:2]); f(x, i([0]), x.flatten()[:1], True) | put
ONE | f(x, (i([1, 0]),), x.flatten()[:1]) | index_put
ONE | f(x, i([[0, 1]]), 0); f(x, i([[1], [-1]]), -1); f(x, i([1, 0])) | take_along_dim
ONE | f(x, 2); f(x, -1) | F.normalize | F.normalize(x, p=2, dim=1); F.normalize(x, p=-1)
ONE | f(x); f(x, 0) | normalize | F.normalize(x, dim=-1); F.normalize(x, dim=0)
ONE | f(x) | F.normalize
ONE | f(x, (3,)) | F.layer_norm F.rms_norm
ONE | f(x) | layer_norm | F.layer_norm(x, x.shape[-1:])
ONE | f(x) | rms_norm | F.rms_norm(x, x.shape[-1:], eps=1e-6)
ONE | f(x, p=0.0) | dropout F.dropout F.alpha_dropout | F.dropout(x, p=0.0)
ONE | x[0]; x[-1]; x[1:]; x[..., None]; x[::2]; x[i([1, 0])]; x[x > 0]; x[i(1) > 0]; x[True]; x[0, 1]; x[None, i(0)] | @index
ONE | -x; +x; abs(x); ~x; x ** 2; 2 ** x; x ** 0.5; 2 / x; x // 2; 2 - x; x % 3; x & 1; x|True; x ^ 1; x << 1; x >> 1; x == 1; x < 0.5; x != True; x * 2.5; 1 + x | @operators
ONE | x.add(1); x.sub(2.5); x.mul(True); x.div(2); x.pow(3); x.where(x > 0, 0); x.where(x > 0, 0.5); x.eq(1); x.fmod(2); x.remainder(-2); x.floor_divide(-2) | @numbers
TWO | f(x, y) | add sub mul div pow maximum minimum fmod remainder atan2 bitwise_and bitwise_or bitwise_xor eq ne lt le gt ge floor_divide fmax fmin
TWO | f(x, y) | logical_and logical_or logical_xor hypot copysign nextafter logaddexp logaddexp2 xlogy xlog1py heaviside gcd lcm ldexp float_power S.xlog1py
TWO | f(x, y) | isclose bitwise_left_shift bitwise_right_shift isin
TWO | f(x, y) | shl | m.bitwise_left_shift(x, y)
TWO | f(x, y) | shr | m.bitwise_right_shift(x, y)
TWO | f(x, y) | trunc_divide | m.div(x, y, rounding_mode="trunc")
TWO | f(x, y, rounding_mode="floor"); f(x, y, rounding_mode="trunc") | div
ALIKE | f(x, y) | allclose equal dist mse_loss l1_loss smooth_l1_loss soft_margin_loss hinge_embedding_loss F.huber_loss S.xlogy expand_as type_as view_as
ALIKE | f(x, y, reduction="none"); f(x, y, reduction="sum") | mse_loss l1_loss smooth_l1_loss
ALIKE | f(x, y) | huber_loss | F.huber_loss(x, y)
ALIKE | f(x, y) | kl_div_loss | F.kl_div(x, y)
ALIKE | f(x, y) | bce_with_logits_loss | F.binary_cross_entropy_with_logits(x, y)
ALIKE | f(x.sigmoid(), y.sigmoid()) | binary_cross_entropy bce_loss | F.binary_cross_entropy(x.sigmoid(), y.sigmoid())
ALIKE | f(x, y) | binary_cross_entropy_with_logits kl_div F.kl_div multilabel_soft_margin_loss
ALIKE | f(x, y) | poisson_nll_loss | @F
ALIKE | f(x, y, -1); f(x, y, 0) | cosine_similarity
ALIKE | f(x, y) | pairwise_distance
ALIKE | f(x, y); f(x, y, dim=0) | L.vecdot
ALIKE | f(x, y) | vecdot | L.vecdot(x, y)
ALIKE | f(x, y); f(x, y, dim=-1) | cross L.cross | @L
ALIKE | f([x, y]); f([x, y], -1); f([x, y], 1) | cat stack
ALIKE | f([x, y]) | hstack vstack dstack column_stack
ALIKE | f([x, y]) | block_diag | m.block_diag(x, y)
PAIRS | f([x, y]) | cat | m.cat([x, y])
PAIRS | f([x, y]) | stack | m.stack([x, y])
PAIRS | f([x, y]) | hstack | m.hstack([x, y])
ALIKE | f(x, y) | broadcast_tensors
ALIKE | f(x, 0, i([[0, 1, 0]]), y); f(x, -1, i([[0], [1]]), y) | scatter scatter_add
ALIKE | f(x, 0, i([[0, 1, 0]]), 2); f(x, 1, i([[0], [1]]), 1.5) | scatter | m.scatter(x, 0, i([[0, 1, 0]]), 2); m.scatter(x, 1, i([[0], [1]]), 1.5)
ALIKE | f(x, 0, i([[0, 1, 0]]), y, "prod"); f(x, 0, i([[0, 1, 0]]), y, "amax", include_self=False) | scatter_reduce
ALIKE | f(x, 0, i([1, 0]), y); f(x, -1, i([2, 1, 0]), y) | index_add index_copy
ALIKE | f(x, y[:1], 0, 1) | slice_scatter | m.slice_scatter(x, y[:1], 0, 1, 2)
ALIKE | f(x, y[0], 0, 1) | select_scatter
ALIKE | f(x, y[0, :2]) | diagonal_scatter
ALIKE | f(x, y > 0, y) | masked_scatter
ALIKE | f(x, 0, i([[0, 1, 0]])); f(x, 1, i([[2], [0]])); f(x, -1, i([])) | gather
ALIKE | f(x, y) | kron inner
THREE | f(x, y, z) | addcmul addcdiv lerp clamp
THREE | f(x, y, 0.5) | lerp
THREE | f(x, y, z, value=2) | addcmul
THREE | f(x, y, z) | triplet_margin_loss F.triplet_margin_loss margin_ranking_loss
WHERE | f(x, y, z) | where
WHERE | f(x, y, z) | where_ | m.where(x, y, z)
ONE | f(x > 0, 1, 0); f(x > 0, 1.5, x); f(x > 0, x, 0); f(x > 0, True, x); f(x > 0, 0.5, 1) | where
VECTORS | f(x) | combinations diag corrcoef cov vander
VECTORS | f(x, 3); f(x, 0); f(x, 3, True) | vander
VECTORS | f(x) | cartesian_prod meshgrid
VECTORS | f(x * x); f(x * x, minlength=9) | bincount
VECTORS | f(x * x, 5) | bincount_to | m.bincount(x * x, minlength=5)[:5]
VECTORS | f(x); f(x, 4, -1, 1); f(x, bins=3, min=0, max=2) | histc
VECTORS | f(x, 4, -1.0, 1.0); f(x, 3) | histogram | m.histogram(x, 4, range=(-1.0, 1.0)); m.histogram(x, 3)
VECTORS | f(x.abs(), (2, 4)) | unravel_index
VECTORS | f(x.abs(), 7); f(x.abs()) | F.one_hot
VECTORS | f(x.abs(), 7) | one_hot | F.one_hot(x.abs(), 7) > 0
VECTORS | f(t([[1.0, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12], [0, 0]]), x.abs()) | embedding | F.embedding(x.abs(), t([[1.0, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12], [0, 0]]))
VECTORS | f(x.abs(), t([[1.0, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12], [0, 0]])) | F.embedding
VECTORS | f(x, i([2, 1, 0, 3])) | repeat_interleave
VECTORS | f(x, i([2, 1, 0, 3])) | repeat_interleave_by | m.repeat_interleave(x, i([2, 1, 0, 3]))
TWO_VECTORS | f(x, y) | dot vdot outer inner kron
TWO_VECTORS | f(x.sort()[0], y); f(x.sort()[0], y, right=True) | searchsorted
TWO_VECTORS | f(y, x.sort()[0]); f(y, x.sort()[0], right=True) | bucketize
TWO_VECTORS | f(x, y) | meshgrid cartesian_prod
TWO_VECTORS | f([x, y]) | meshgrid | m.meshgrid(x, y)
TWO_VECTORS | f([x, y]) | cartesian_prod | m.cartesian_prod(x, y)
TWO_VECTORS | f(x, y, 1); f(x, y, 0) | tensordot
TWO_VECTORS | f(m.zeros(4, 4), x, y); f(m.zeros(4, 4), x, y, beta=2, alpha=0.5) | addr
PRODUCTS | f(x, y) | matmul
PRODUCTS | x @ y | @matmul
PRODUCTS | f(x, y) | mm
PRODUCTS | f(x, y, 1); f(x, y, ([1], [0])) | tensordot
PRODUCTS | f([x, y]) | L.multi_dot multi_dot | L.multi_dot([x, y])
PRODUCTS | f("ij,jk->ik", x, y); f("ij,jk", x, y); f("...j,jk->...k", x, y); f("ij,jk->", x, y) | einsum
PRODUCTS | f(x, y.mT) | F.linear | F.linear(x, y.mT)
PRODUCTS | f(x, y.mT); f(x, y.mT, 1.0) | cdist
PRODUCTS | f(x, y[:, 0]) | mv
PRODUCTS | f(t([1.0, 2, 3, 4]), x, y); f(m.zeros(2, 4), x, y, beta=2.0, alpha=0.5) | addmm
PRODUCTS | f(t([1.0, 2]), x, y[:, 0]) | addmv
BATCHES | f(x, y) | bmm
BATCHES | f(m.zeros(2, 4), x, y) | addbmm
BATCHES | f(m.zeros(2, 2, 4), x, y); f(m.zeros(2, 2, 4), x, y, beta=2.0, alpha=0.5) | baddbmm
OBLONG | f(x)[0].abs(); f(x)[1].abs() | qr | L.qr(x)[0].abs(); L.qr(x)[1].abs()
OBLONG | f(x)[1] | svd | L.svd(x, full_matrices=False)[1]
OBLONG | f(x)[0] @ m.diag_embed(f(x)[1]) @ f(x)[2] | svd | L.svd(x, full_matrices=False)[0] @ m.diag_embed(L.svd(x, full_matrices=False)[1]) @ L.svd(x, full_matrices=False)[2]
OBLONG | f(x)[0].shape; f(x)[1].shape; f(x)[2].shape | svd | L.svd(x, full_matrices=False)[0].shape; L.svd(x, full_matrices=False)[1].shape; L.svd(x, full_matrices=False)[2].shape
OBLONG | f(x) | svdvals L.svdvals L.matrix_rank L.cond pinv L.pinv
OBLONG | f(x) | matrix_rank cond | @L
OBLONG | f(x); f(x, mode="complete").Q.shape; f(x, mode="complete").R.abs() | L.qr
OBLONG | f(x).S; f(x).U.shape; f(x).Vh.shape; f(x, full_matrices=False).U.shape | L.svd
OBLONG | f(x); f(x, "nuc"); f(x, 1); f(x, -1); f(x, 2); f(x, float("inf")) | L.matrix_norm
OBLONG | f(x); f(x, "nuclear"); f(x, "columns"); f(x, "spectral"); f(x, "rows") | matrix_norm | L.matrix_norm(x); L.matrix_norm(x, "nuc"); L.matrix_norm(x, 1); L.matrix_norm(x, 2); L.matrix_norm(x, float("inf"))
OBLONG | f(x); f(x, 3); f(x, 1, -1); f(x, 2, (0, 1)) | L.norm
OBLONG | f(x); f(x, 3); f(x, 1, -1, True); f(x, 0) | L.vector_norm
OBLONG | f(x); f(x, offset=1) | L.diagonal
OBLONG | f(x); f(x, 1.5) | pdist | m.pdist(x); m.pdist(x, 1.5)
SQUARE | f(x) | det L.det logdet matrix_exp L.matrix_exp trace
SQUARE | f(x) | slogdet L.slogdet | L.slogdet(x)
SQUARE | f(x + 3 * eye(x)) | inv L.inv | L.inv(x + 3 * eye(x))
SQUARE | f(x, 3); f(x, 0); f(x + 3 * eye(x), -2) | matrix_power L.matrix_power
SQUARE | f(x @ x.mT + eye(x)) | L.cholesky cholesky_inverse
SQUARE | f(x @ x.mT + eye(x)) | cholesky | @L
SQUARE | f(x @ x.mT + eye(x), upper=True) | L.cholesky cholesky_inverse
SQUARE | f(x + x.mT)[0]; f(x + x.mT)[1].abs() | L.eigh eigh | L.eigh(x + x.mT)[0]; L.eigh(x + x.mT)[1].abs()
SQUARE | f(x + x.mT) | L.eigvalsh
SYSTEMS | f(x + 3 * eye(x), y) | solve L.solve | L.solve(x + 3 * eye(x), y)
SYSTEMS | f(x + 3 * eye(x), y[..., 0]) | solve L.solve | L.solve(x + 3 * eye(x), y[..., 0])
SYSTEMS | f(x + 3 * eye(x), y)[0] | L.lstsq
SYSTEMS | f(x + 3 * eye(x), y) | lstsq | L.lstsq(x + 3 * eye(x), y)[0]
SYSTEMS | f(y, x + 3 * eye(x)); f(y, x + 3 * eye(x), False); f(y, x + 3 * eye(x), False, True, True) | triangular_solve
SYSTEMS | f(y, (x + 3 * eye(x)).tril()); f(y, (x + 3 * eye(x)).triu(), True) | cholesky_solve
SYSTEMS | f(x + 3 * eye(x), y, upper=True); f(x + 3 * eye(x), y, upper=False, unitriangular=True); f(x + 3 * eye(x), y.mT, upper=True, left=False) | L.solve_triangular
ONE_D | f(x, 2); f(x, 3, 2); f(x, 3, 2, 1); f(x, 3, 2, ceil_mode=True); f(x, 4, 3, 1, ceil_mode=True); f(x, 2, 2, ceil_mode=True); f(x, 10, 2, ceil_mode=True); f(x, 11, 2, ceil_mode=True); f(x, 5, 1, 2, ceil_mode=True) | F.max_pool1d F.avg_pool1d
ONE_D | f(x, 2); f(x, 3, 2); f(x, 3, 2, 1); f(x, 3, 2, ceil_mode=True); f(x, 4, 3, 1, ceil_mode=True); f(x, 2, 2, ceil_mode=True); f(x, 10, 2, ceil_mode=True); f(x, 11, 2, ceil_mode=True); f(x, 5, 1, 2, ceil_mode=True) | max_pool1d avg_pool1d | @F
ONE_D | f(x, 3, 2, dilation=2, ceil_mode=True) | F.max_pool1d
ONE_D | f(x, 3, 2, 1, True, False); f(x, 3, 2, 1, False, False) | F.avg_pool1d
ONE_D | f(x, 2, 3, 2); f(x, 2.0, 3, 2, True) | F.lp_pool1d
ONE_D | f(x, 2.0, 3, 2); f(x, 2.0, 3, 2, ceil_mode=True) | lp_pool1d | F.lp_pool1d(x, 2.0, 3, 2); F.lp_pool1d(x, 2.0, 3, 2, ceil_mode=True)
ONE_D | f(x, 3, 2); f(x, 3, 2, ceil_mode=True) | max_pool1d_with_indices | @F
ONE_D | f(x, 4); f(x, 1); f(x, 9); f(x, 11) | F.adaptive_avg_pool1d F.adaptive_max_pool1d
ONE_D | f(x, 4); f(x, 1); f(x, 9); f(x, 11) | adaptive_avg_pool1d adaptive_max_pool1d | @F
ONE_D | f(*F.max_pool1d(x, 3, 2, return_indices=True), 3, 2) | F.max_unpool1d
ONE_D | f(*F.max_pool1d(x, 3, 2, return_indices=True), 9) | max_unpool1d | F.max_unpool1d(*F.max_pool1d(x, 3, 2, return_indices=True), 3, 2, output_size=9)
ONE_D | f(x, [2, 1], mode="reflect"); f(x, [2, 1], mode="replicate"); f(x, [2, 1], mode="circular"); f(x, [2, -1], mode="circular"); f(x, [-1, 2], mode="reflect"); f(x, [-3, 2], mode="replicate"); f(x, [-2, -1], mode="circular"); f(x, [9, 0], mode="circular"); f(x, [9, 0], mode="reflect") | F.pad
ONE_D | f(x, m.ones(4, 3, 2, dtype=x.dtype)); f(x, m.ones(4, 3, 3, dtype=x.dtype), None, 2, 1); f(x, m.ones(3, 1, 3, dtype=x.dtype), groups=3); f(x, m.ones(4, 3, 3, dtype=x.dtype), padding="same"); f(x, m.ones(4, 2, 3, dtype=x.dtype)) | F.conv1d
ONE_D | f(x, m.ones(4, 3, 3, dtype=x.dtype), None, 2, 1) | conv1d | @F
ONE_D | f(x, m.ones(3, 4, 3, dtype=x.dtype), None, 2, 1, 1) | conv_transpose1d | @F
ONE_D | f(x, 3) | channel_shuffle F.local_response_norm
ONE_D | f(x, 4); f(x, scale_factor=2); f(x, 4, mode="linear"); f(x, scale_factor=1.5, mode="linear", align_corners=True); f(x, 5, mode="area"); f(x, 5, mode="nearest-exact") | F.interpolate
ONE_D | f(x, 4) | interpolate | F.interpolate(x, 4)
ONE_D | f(x, 2.0) | interpolate_by | F.interpolate(x, scale_factor=2.0)
ONE_D | f(x) | F.instance_norm
ONE_D | f(x, 3) | group_norm
ONE_D | f(x, 4); f(x, 8, 2); f(x, 8, 2, center=False) | stft | m.view_as_real(m.stft(x, 4, 1, return_complex=True)); m.view_as_real(m.stft(x, 8, 2, return_complex=True)); m.view_as_real(m.stft(x, 8, 2, center=False, return_complex=True))
ONE_D | f(m.stack([x[..., :3, :9], x[..., :3, :9] * 2], -1), 4) | istft | m.istft(m.complex(x[..., :3, :9], x[..., :3, :9] * 2), 4, 1)
TWO_D | f(x, 2); f(x, 3, 2); f(x, 3, 2, 1); f(x, 3, 2, ceil_mode=True); f(x, (4, 3), (3, 2), 1, ceil_mode=True); f(x, 10, ceil_mode=True) | F.max_pool2d F.avg_pool2d
TWO_D | f(x, 3, 2, 1, True, False) | F.avg_pool2d
TWO_D | f(x, 3, 2, 1); f(x, 3, 2, ceil_mode=True) | max_pool2d avg_pool2d | @F
TWO_D | f(x, 3, 2, 1) | avg_pool2d_inside | F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)
TWO_D | f(x, 3, 2); f(x, 3, 2, ceil_mode=True) | max_pool2d_with_indices | @F
TWO_D | f(x, 2, 3, 2); f(x, 2.0, (3, 2), 2, True) | F.lp_pool2d
TWO_D | f(x, 2.0, 3, 2) | lp_pool2d | F.lp_pool2d(x, 2.0, 3, 2)
TWO_D | f(x, 4); f(x, (1, None)); f(x, (9, 11)) | F.adaptive_avg_pool2d F.adaptive_max_pool2d
TWO_D | f(x, 4) | adaptive_avg_pool2d adaptive_max_pool2d | @F
TWO_D | f(x) | global_avg_pool2d | x.mean((-2, -1))
TWO_D | f(*F.max_pool2d(x, 3, 2, return_indices=True), 3, 2) | F.max_unpool2d
TWO_D | f(*F.max_pool2d(x, 3, 2, return_indices=True), (9, 8)) | max_unpool2d | F.max_unpool2d(*F.max_pool2d(x, 3, 2, return_indices=True), 3, 2, output_size=(9, 8))
TWO_D | f(x, [2, 1, 0, 1], mode="reflect"); f(x, [2, 1, 1, 0], mode="circular"); f(x, [2, -1, -1, 1], mode="circular") | F.pad
TWO_D | f(x, m.ones(2, 4, 3, 2, dtype=x.dtype)); f(x, m.ones(4, 1, 3, 3, dtype=x.dtype), None, 2, 1, 1, 4); f(x, m.ones(2, 4, 3, 3, dtype=x.dtype), padding="same") | F.conv2d
TWO_D | f(x, m.ones(2, 4, 3, 2, dtype=x.dtype)) | conv2d | @F
TWO_D | f(x, m.ones(4, 2, 3, 2, dtype=x.dtype), None, 2, 1, 1) | conv_transpose2d | @F
TWO_D | f(x, m.ones(2, 4, 3, 3, dtype=x.dtype), dilation=[1, 1]) | conv_same | F.conv2d(x, m.ones(2, 4, 3, 3, dtype=x.dtype), padding="same")
TWO_D | f(x, 2) | pixel_shuffle channel_shuffle
TWO_D | f(x[..., :8, :8], 2) | pixel_unshuffle
TWO_D | f(x, 3); f(x, (3, 2), 1, 1, 2) | F.unfold
TWO_D | f(x, 3); f(x, (3, 2), 2, 1) | im2col | F.unfold(x, 3); F.unfold(x, (3, 2), 1, 1, 2)
TWO_D | f(F.unfold(x, 3, stride=2), (9, 8), 3, stride=2) | F.fold
TWO_D | f(F.unfold(x, 3, stride=2), (9, 8), 3, 2) | col2im | F.fold(F.unfold(x, 3, stride=2), (9, 8), 3, stride=2)
TWO_D | f(x, (4, 5), mode="bilinear"); f(x, scale_factor=2, mode="bicubic"); f(x, 4, mode="bilinear", align_corners=True) | F.interpolate
TWO_D | f(x, m.zeros(2, 3, 3, 2) + 0.25); f(x, m.zeros(2, 3, 3, 2) + 1.25, padding_mode="border", align_corners=True); f(x, m.zeros(2, 3, 3, 2) + 0.3, "nearest") | F.grid_sample
TWO_D | f(x, m.zeros(2, 3, 3, 2) + 0.25) | grid_sample | F.grid_sample(x, m.zeros(2, 3, 3, 2) + 0.25)
TWO_D | f(x[:, 0, :2, :3], (2, 1, 3, 4)); f(x[:, 0, :2, :3], (2, 1, 3, 4), True) | F.affine_grid
TWO_D | f(x, p=0.0) | F.dropout1d F.dropout2d F.dropout3d
THREE_D | f(x, 2); f(x, 3, 2, 1); f(x, 3, 2, ceil_mode=True) | F.max_pool3d F.avg_pool3d
THREE_D | f(x, 3, 2, ceil_mode=True) | max_pool3d avg_pool3d | @F
THREE_D | f(x, 3, 2) | max_pool3d_with_indices | @F
THREE_D | f(x, 2, 3, 2) | F.lp_pool3d
THREE_D | f(x, 2.0, 3, 2) | lp_pool3d | F.lp_pool3d(x, 2, 3, 2)
THREE_D | f(x, 4); f(x, (1, None, 3)) | F.adaptive_avg_pool3d F.adaptive_max_pool3d
THREE_D | f(x, 4) | adaptive_avg_pool3d adaptive_max_pool3d | @F
THREE_D | f(*F.max_pool3d(x, 3, 2, return_indices=True), 3, 2) | F.max_unpool3d
THREE_D | f(*F.max_pool3d(x, 3, 2, return_indices=True), (6, 5, 7)) | max_unpool3d | F.max_unpool3d(*F.max_pool3d(x, 3, 2, return_indices=True), 3, 2, output_size=(6, 5, 7))
THREE_D | f(x, m.ones(3, 2, 3, 2, 2, dtype=x.dtype)); f(x, m.ones(3, 2, 3, 2, 3, dtype=x.dtype), None, 2, 1) | F.conv3d
THREE_D | f(x, m.ones(3, 2, 3, 2, 2, dtype=x.dtype)) | conv3d | @F
THREE_D | f(x, m.ones(2, 3, 3, 2, 2, dtype=x.dtype), None, 2, 1, 1) | conv_transpose3d | @F
CHANNELS | f(x, y) | prelu
CHANNELS | f(x, y, y * y + 1) | F.batch_norm
CHANNELS | f(x, y, y * y + 1) | batch_norm_with | F.batch_norm(x, y, y * y + 1)
CHANNELS | f(x, y, y)[0] | batch_norm | F.batch_norm(x, None, None, y, y, True)
CHANNELS | f(x, None, None, y, y, True) | F.batch_norm
CHANNELS | f(x, 2, y, y) | group_norm
CHANNELS | f(x, None, None, y, y) | F.instance_norm
LAST | f(x, (4,), y, y) | F.layer_norm
LAST | f(x, (4,), y) | F.rms_norm
LAST | f(x, -1, y, y) | layer_norm | F.layer_norm(x, (4,), y, y)
LAST | f(x, -1, y) | rms_norm | F.rms_norm(x, (4,), y, 1e-6)
LAST | f(x, y.reshape(1, 4)) | F.linear
LAST | f(x, x, m.ones(2, 4, 4, dtype=x.dtype)) | F.bilinear
INDEXED | f(x, i([1, 0, 2, 2])[: x.shape[0]]) | F.cross_entropy F.nll_loss multi_margin_loss
INDEXED | f(x, i([1, 0, 2, 2])[: x.shape[0]]); f(x, i([1, 0, 2, 2])[: x.shape[0]], reduction="none") | cross_entropy nll_loss | @F
INDEXED | f(x, i([1, 0, 2, 2])[: x.shape[0]], m.ones(3, dtype=x.dtype), reduction="none") | F.cross_entropy F.nll_loss
INDEXED | f(x, i([1, 0, 2, 2])[: x.shape[0]], m.ones(3, dtype=x.dtype)) | cross_entropy_weighted | F.cross_entropy(x, i([1, 0, 2, 2])[: x.shape[0]], m.ones(3, dtype=x.dtype))
INDEXED | f(x, i([1, 0, 2, 2])[: x.shape[0]], m.ones(3, dtype=x.dtype)) | nll_loss_weighted | F.nll_loss(x, i([1, 0, 2, 2])[: x.shape[0]], m.ones(3, dtype=x.dtype))
INDEXED | f(x, i([[1, -1, 0]] * 4)) | multilabel_margin_loss
INDEXED | f(x, x * 2, i([1, -1, 1, 1])) | cosine_embedding_loss
INDEXED | f(x, x * 2, x * x + 1) | gaussian_nll_loss
INDEXED | f(x, x, x); f(x, x, x, x > 0) | F.scaled_dot_product_attention
INDEXED | f(x[None], x[None], x[None]); f(x[None], x[None], x[None], is_causal=True) | scaled_dot_product_attention
INDEXED | f(i([[0, 1], [2, 0]]), x); f(i([0, 1, 2]), x, i([0, 1])) | F.embedding_bag
NONE | f(3); f(2, 3); f((2, 0)); f(()); f(2, 3, dtype=DTYPE("int32")); f((2, 3), dtype=DTYPE("bool")) | zeros ones
NONE | f(3).shape; f((2, 0)).shape; f(2, 3, dtype=DTYPE("int32")) * 0; f((), dtype=DTYPE("int64")) * 0 | empty
NONE | f((2, 3), 1.5); f((), 7); f((2,), True); f((0,), 1); f((2,), 3, dtype=DTYPE("float16")) | full
NONE | f(5); f(2, 7); f(1, 10, 3); f(10, 1, -3); f(0, 1, 0.1); f(0.0); f(1.5, 3.0); f(0, 10, 2.5); f(-2, 2, 0.5, dtype=DTYPE("float64")); f(2**53, 2**53 + 3); f(2**62, 2**62 + 5, 2); f(0, -5); f(3, dtype=DTYPE("float32")); f(1, 2, 0) | arange
NONE | f(0, 1, 5); f(-2, 1, 50); f(1, 0, 4); f(0, 1, 1); f(0, 1, 0); f(3, 3, 3); f(-2, 1, 50, dtype=DTYPE("int64")); f(1, 0, 4, dtype=DTYPE("float64")); f(-3, 7, 11, dtype=DTYPE("float16")); f(0, 1, 2) | linspace
NONE | f(-2, 1, 50)[-1]; f(1, 0, 4, dtype=DTYPE("float64"))[-1]; f(0.1, 0.7, 9)[-1]; f(0.1, 0.7, 9)[0]; f(-2, 1, 50, dtype=DTYPE("int64"))[-1]; f(0, 1e-3, 7, dtype=DTYPE("float64"))[-1] | linspace
NONE | f(0, 3, 4); f(0, 3, 4, 2.0); f(-1, 1, 1); f(0, 1, 0); f(0, 2, 33, 2.0)[-1] | logspace
NONE | f(3); f(2, 3); f(0); f(3, 2, dtype=DTYPE("int64")); f(2, dtype=DTYPE("bool")) | eye
NONE | f(4); f(0); f(3, dtype=DTYPE("float32")) | iota | m.arange(4); m.arange(0); m.arange(3, dtype=DTYPE("float32"))
NONE | f(3, 4); f(4, 3, 1); f(3, 3, -1); f(0, 3) | tril_indices triu_indices
NONE | f(5); f(1); f(6, False); f(0) | hann_window hamming_window bartlett_window blackman_window kaiser_window
NONE | f(5); f(4, 0.5); f(1) | fftfreq | FFT.fftfreq(5); FFT.fftfreq(4, 0.5); FFT.fftfreq(1)
NONE | f(5); f(4, 0.5); f(1) | rfftfreq | FFT.rfftfreq(5); FFT.rfftfreq(4, 0.5); FFT.rfftfreq(1)
NONE | f((2, 1), (3,)); f(()); f((0, 1), (1, 3)); f((2,), (3,)) | broadcast_shapes
NONE | f([1, 2]); f(2.5); f([]); f([True, False]); f([[1.5], [2]]); f(3, dtype=DTYPE("float16")) | tensor as_tensor
NONE | f(m.zeros(5, 2, 4).log_softmax(-1), i([[1, 2], [3, 1]]), i([5, 5]), i([2, 2])) | F.ctc_loss
NONE | f(m.zeros(5, 2, 4).log_softmax(-1), i([[1, 2], [3, 1]]), i([5, 5]), i([2, 2])) | ctc_loss | @F
NONE | f(np.arange(4, dtype="uint8").tobytes(), "int32", (1, 1)) | from_bytes | m.full((1, 1), 0x03020100, dtype=m.int32)
NONE | f(np.arange(3)); f(np.ones((2, 0), "float16")) | from_numpy
XP_ONE | f(x) | xp.abs xp.acos xp.acosh xp.all xp.any xp.argmax xp.argmin xp.argsort xp.asin xp.asinh xp.atan xp.atanh xp.bitwise_invert xp.ceil xp.conj
XP_ONE | f(x) | xp.cos xp.cosh xp.count_nonzero xp.exp xp.expm1 xp.flip xp.floor xp.isfinite xp.isinf xp.isnan xp.log xp.log10 xp.log1p xp.log2
XP_ONE | f(x) | xp.logical_not xp.max xp.mean xp.min xp.negative xp.nonzero xp.positive xp.prod xp.reciprocal xp.round xp.sign xp.signbit xp.sin xp.sinh
XP_ONE | f(x) | xp.sort xp.sqrt xp.square xp.std xp.sum xp.tan xp.tanh xp.tril xp.triu xp.trunc xp.var xp.zeros_like xp.ones_like
XP_ONE | xp.sort(f(x)) | xp.unique_values
XP_ONE | xp.sort(f(x)[0]) | xp.unique_counts xp.unique_inverse xp.unique_all
XP_ONE | f(x).counts.shape; f(x).inverse_indices.shape; f(x).indices.shape | xp.unique_all
XP_ONE | f(x) | xp.diff xp.matrix_transpose xp.asarray xp.unstack
XP_ONE | f(x, axis=0); f(x, axis=-1); f(x, axis=2) | xp.all xp.any xp.argmax xp.argmin xp.max xp.mean xp.min xp.prod xp.std xp.sum xp.var xp.count_nonzero xp.flip xp.sort xp.argsort xp.expand_dims xp.unstack xp.diff
XP_ONE | f(x, axis=(0, 1)); f(x, axis=0, keepdims=True) | xp.all xp.any xp.max xp.mean xp.min xp.prod xp.std xp.sum xp.var xp.count_nonzero
XP_ONE | f(x, axis=0); f(x, axis=-1, include_initial=True) | xp.cumulative_sum xp.cumulative_prod
XP_ONE | f(x, axis=0, correction=1); f(x, correction=0.5) | xp.std xp.var
XP_ONE | f(x, min=-1, max=1); f(x, min=0); f(x, max=0) | xp.clip
XP_ONE | f(x, xp.float32); f(x, xp.int64); f(x, xp.bool) | xp.astype
XP_ONE | f(x, 2); f(x, 2, axis=0); f(x, 0, axis=-1) | xp.repeat
XP_ONE | f(x, (2,)); f(x, (1, 2, 2)); f(x, ()) | xp.tile
XP_ONE | f(x, (-1,)); f(x, (3, 2)) | xp.reshape
XP_ONE | f(x, 1); f(x, -1, axis=0); f(x, (1, 2), axis=(0, 1)) | xp.roll
XP_ONE | f(x, (1, 0)) | xp.permute_dims
XP_ONE | f(x, 0, -1); f(x, (0, 1), (1, 0)) | xp.moveaxis
XP_ONE | f(x, 0); f(x, (0, 1)) | xp.squeeze
XP_ONE | f(x, (2, 2, 3)); f(x, (0, 3)) | xp.broadcast_to
XP_ONE | f(x, 3); f(x, 0.5) | xp.full_like
XP_ONE | f(x, i([1, 0, -1]), axis=0); f(x, i([]), axis=-1); f(x, i([0])) | xp.take
XP_ONE | f(x, i([[1, 0, -1]]), axis=0); f(x, i([[-1], [0]]), axis=1); f(x, i([[0, -3], [1, -1]])) | xp.take_along_axis
XP_ONE | f(x, k=1); f(x, k=-1) | xp.tril xp.triu
XP_ONE | f(x, dtype=xp.int32) * 0 | xp.empty_like
XP_TWO | f(x, y) | xp.add xp.atan2 xp.bitwise_and xp.bitwise_left_shift xp.bitwise_or xp.bitwise_right_shift xp.bitwise_xor xp.copysign xp.divide
XP_TWO | f(x, y) | xp.equal xp.floor_divide xp.greater xp.greater_equal xp.hypot xp.less xp.less_equal xp.logaddexp xp.logical_and xp.logical_or
XP_TWO | f(x, y) | xp.logical_xor xp.maximum xp.minimum xp.multiply xp.nextafter xp.not_equal xp.pow xp.remainder xp.subtract xp.isin xp.result_type
XP_TWO | f([x, y]); f([x, y], axis=-1); f([x, y], axis=None) | xp.concat
XP_TWO | f([x, y]); f([x, y], axis=-1) | xp.stack
XP_TWO | f(x, y) | xp.broadcast_arrays
XP_TWO | f(x, y); f(x, y, axis=-2); f(x, y, axis=-3) | xp.vecdot
XP_TWO | f(x > 0, x, y); f(x > 0, x, 0); f(x > 0, 1.5, y) | xp.where
XP_THREE | f(x, y); f(x, y, axis=-2); f(x, y, axis=-3) | xp.vecdot xl.vecdot
XP_THREE | f(x, y, axis=-3) | xl.cross
TWO_VECTORS | f(x, y); f(x, y, indexing="ij") | xp.meshgrid
TWO_VECTORS | f(xp.sort(x), y); f(xp.sort(x), y, side="right") | xp.searchsorted
TWO_VECTORS | f(x, y) | xl.outer
PRODUCTS | f(x, y) | xp.matmul
PRODUCTS | f(x, y, axes=1); f(x, y, axes=0); f(x, y, axes=([-1], [0])) | xp.tensordot
NONE | f((2, 0), dtype=xp.float64); f(3, dtype=xp.int32); f((), dtype=xp.bool) | xp.zeros xp.ones
NONE | f((2, 0), dtype=xp.int32) * 0; f((), dtype=xp.int64) * 0 | xp.empty
NONE | f((2,), 1.5, dtype=xp.float32); f((), 7); f((0,), True) | xp.full
NONE | f(5); f(2, 7); f(10, 1, -3); f(0, 1, 0.1, dtype=xp.float64); f(1.5, 3.0, dtype=xp.float32); f(0, -5) | xp.arange
NONE | f(0, 1, 5, dtype=xp.float64); f(1, 0, 4, dtype=xp.float64)[-1]; f(0, 1, 0, dtype=xp.float32); f(0, 1, 1, dtype=xp.float32); f(0, 1, 4, endpoint=False, dtype=xp.float64); f(-2, 1, 50, dtype=xp.float64)[-1] | xp.linspace
NONE | f(3, dtype=xp.float32); f(2, 3, k=1, dtype=xp.float64); f(3, 2, k=-1, dtype=xp.int64); f(0, dtype=xp.float32) | xp.eye
NONE | f((2, 1), (3,)); f((0, 1), (1, 3)); f((2,), (3,)) | xp.broadcast_shapes
NONE | f(xp.int8, xp.int16); f(xp.float64, xp.float32); f(xp.uint8, xp.int16); f(xp.int64, xp.float64) | xp.can_cast
NONE | f(xp.int8, "integral"); f(xp.float32, "real floating"); f(xp.bool, "numeric"); f(xp.uint8, ("bool", "unsigned integer")) | xp.isdtype
OBLONG | f(x) | xl.svdvals xl.matrix_rank xl.pinv xl.trace xl.diagonal xl.matrix_norm xl.vector_norm
OBLONG | f(x)[0].shape; abs(f(x)[1]); f(x, mode="complete")[0].shape | xl.qr
OBLONG | f(x)[0].shape; f(x)[1]; f(x)[2].shape; f(x, full_matrices=False)[2].shape | xl.svd
OBLONG | f(x, ord=1); f(x, ord="nuc"); f(x, ord=2); f(x, ord=-1, keepdims=True) | xl.matrix_norm
OBLONG | f(x, ord=1); f(x, ord=0, axis=0); f(x, axis=-1, keepdims=True); f(x, ord=float("inf")) | xl.vector_norm
OBLONG | f(x, offset=1); f(x, offset=-1) | xl.trace xl.diagonal
SQUARE | f(x) | xl.det xl.slogdet
SQUARE | f(x + 3 * xp.eye(3, dtype=x.dtype)) | xl.inv
SQUARE | f(x, 3); f(x, 0) | xl.matrix_power
SQUARE | f(x + xp.matrix_transpose(x)) | xl.eigvalsh
SQUARE | f(x + xp.matrix_transpose(x))[0]; abs(f(x + xp.matrix_transpose(x))[1]) | xl.eigh
SQUARE | f(xp.matmul(x, xp.matrix_transpose(x)) + xp.eye(3, dtype=x.dtype)); f(xp.matmul(x, xp.matrix_transpose(x)) + xp.eye(3, dtype=x.dtype), upper=True) | xl.cholesky
SYSTEMS | f(x + 3 * xp.eye(3, dtype=x.dtype), y); f(x + 3 * xp.eye(3, dtype=x.dtype), y[..., 0]) | xl.solve
""".strip()

# Functions without a line above, and why.
_WHY = {
    "draws numbers by chance": "bernoulli beta binomial cauchy dirichlet exponential gamma geometric gumbel gumbel_softmax laplace "
    "lognormal manual_seed multinomial normal permutation poisson rand rand_like rand_range randint randint_like randn randn_like "
    "randperm truncated_normal F.gumbel_softmax alpha_dropout feature_alpha_dropout feature_dropout rrelu F.feature_alpha_dropout F.rrelu",
    "takes a function": "associative_scan checkpoint compile gradcheck jit jvp kernel value_and_grad vmap",
    "is about gradients, whose tests are elsewhere": "backward grad grad_with gradient is_grad_enabled requires_grad_ with_gradient clip_norm clip_value",
    "is about files": "load load_npy load_npz load_pytorch load_safetensors open_gguf open_safetensors safetensors_from_bytes safetensors_to_bytes "
    "save save_npy save_npz save_safetensors",
    "is about devices and plans": "device devices explain is_realized pin_memory realize_all to_device",
    "is tested in test_pytorch_programs.py": "sparse_csr_tensor to_sparse_csr F.to_sparse_csr",
    "is about memory of others, whose tests are elsewhere": "from_dlpack xp.from_dlpack",
    "is tested in test_pytorch_ways.py": "byte char clamp_max clamp_min fill new_empty positive reshape_as rsub "
    "tensorsolve",
    "is the method of that name, with PyTorch's options": "F.binary_cross_entropy F.binary_cross_entropy_with_logits F.celu F.conv_transpose1d "
    "F.conv_transpose2d F.conv_transpose3d F.cosine_embedding_loss F.elu F.gaussian_nll_loss F.group_norm F.hardsigmoid F.hardswish F.hardtanh "
    "F.hinge_embedding_loss F.l1_loss F.leaky_relu F.log_softmax F.margin_ranking_loss F.mish F.mse_loss F.multi_margin_loss F.multilabel_margin_loss "
    "F.multilabel_soft_margin_loss F.poisson_nll_loss F.relu F.relu6 F.selu F.silu F.smooth_l1_loss F.soft_margin_loss F.softmax F.softmin F.threshold",
    "is tested in test_pytorch_names.py": "affine_grid_generator angle as_subclass asarray bilinear can_cast chain_matmul conj conj_physical conv_tbc "
    "dim_order embedding_bag empty_permuted frexp frobenius_norm from_file frombuffer grid_sampler grid_sampler_2d i0 index_reduce instance_norm "
    "is_complex is_nonzero is_same_size is_signed is_storage is_tensor isreal nanmedian nanquantile ndimension new_tensor nonzero_static "
    "norm_except_dim nuclear_norm pca_lowrank promote_types range result_type scalar_tensor sum_to_size svd_lowrank type typename unsafe_chunk "
    "unsafe_split F.adaptive_max_pool1d_with_indices F.adaptive_max_pool2d_with_indices F.adaptive_max_pool3d_with_indices F.conv_tbc "
    "F.fractional_max_pool2d F.fractional_max_pool2d_with_indices F.fractional_max_pool3d F.fractional_max_pool3d_with_indices "
    "F.linear_cross_entropy F.multi_head_attention_forward F.triplet_margin_with_distance_loss F.upsample F.upsample_bilinear F.upsample_nearest F.relu_ F.selu_ F.leaky_relu_ F.elu_ F.celu_ F.hardtanh_ F.threshold_ F.rrelu_",
    "is tested in test_distributions.py": "igamma igammac S.gammainc S.gammaincc",
    "is tested in test_sparse.py": "sparse_coo_tensor spmm to_dense to_sparse",
    "is tested in test_lu_and_antialias.py": "L.lu L.lu_factor L.lu_solve",
    "is a setting, or tells one": "clear_autocast_cache get_autocast_dtype is_autocast_cache_enabled is_autocast_enabled are_deterministic_algorithms_enabled get_default_device get_default_dtype get_deterministic_debug_mode get_device "
    "get_device_module get_float32_matmul_precision get_num_interop_threads get_num_threads get_printoptions get_rng_state initial_seed is_anomaly_check_nan_enabled "
    "is_anomaly_enabled is_deterministic_algorithms_warn_only_enabled is_inference is_inference_mode_enabled is_pinned is_shared "
    "is_warn_always_enabled module_load record_stream retain_grad seed set_anomaly_enabled set_default_device set_default_dtype "
    "set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads set_printoptions "
    "set_rng_state set_warn_always storage_offset summary use_deterministic_algorithms",
    "is about memory, whose tests are in test_writes.py": "is_contiguous",
    "is about memory, whose tests are in test_strided.py": "as_strided as_strided_scatter empty_strided new_empty_strided",
    "is about hooks, whose tests are in test_tensor_hooks.py": "register_hook register_post_accumulate_grad_hook",
    "PyTorch has nothing like it": "decode_float8 encode_float8 einsum_path linear_recurrence",
}
UNCALLED = {name: why for why, names in _WHY.items() for name in names.split()}
MODULES = {"m": "", "F": "nn.functional", "L": "linalg", "S": "special", "xp": "array_api", "xl": "array_api.linalg"}

# What is answered differently on purpose: the reason, and where, searched for in
# `function | call | operands | what differs`. The first row that is found counts.
REASONS = {
    "any dtype": "defined in every dtype: of integers and bools the result has the dtype that arithmetic gives",
    "halves": "defined on halves, which are computed in f32 and rounded once",
    "unsigned": "integers without a sign are summed without one, as in NumPy",
    "truth": "all and any are bools, of every dtype",
    "nothing": "the largest of nothing is the neutral element of max; nothing has no median",
    "empty range": "a range that leads nowhere is empty, as in NumPy",
    "one size": "a size of one axis may be a number, where PyTorch wants a tuple",
    "more shapes": "there may be any leading axes, or a broadcast, where PyTorch wants a number of axes",
    "promotion": "operands of different dtypes are promoted, where PyTorch refuses or rounds to one of them",
    "loss shapes": "losses do not broadcast, as that hides mistakes",
    "whole means": "means of integers are not rounded to integers",
    "wrapping": "differences of integers without a sign do not wrap",
    "last window": "the p-norm of a window beyond the end is that of its elements; PyTorch weighs it by its part",
    "one of none": "PyTorch keeps integers there if there are no elements, and refuses them otherwise",
    "own width": "bits are read as another dtype of the same width, so shapes stay",
    "no axis": "a tensor without axes has no axis to go along; PyTorch takes it for a vector, which is another shape or rule",
    "one shape": "the mask broadcasts to the tensor, not the tensor to the mask; an index without elements has the axes of the tensor, too",
    "random floats": "dropout is of floating-point numbers",
    "no channels": "there is no statistic of no channels, and no product of vectors of no elements that is scaled by their number",
    "poles": "at the poles of polygamma there is an infinity; of orders above 1 it is defined above 0",
    "overflow": "halves of functions of matrices are computed in f32; in PyTorch they overflow on the way",
    "empty batch": "an empty batch has the shapes that a full one has",
    "in its dtype": "a sum in einsum has the dtype of its operands",
    "beyond": "positions and ranges beyond the end of an axis are refused",
    "extents": "axes that are summed have one extent",
    "whole batch": "how many axes conv_same goes along is told by those of the batch",
    "modulo 0": "no arithmetic of integers fails: x % 0 is x",
    "standard": "the standard leaves this open: tensors without axes, integers beside floats, other dtypes",
}
_INTEGERS, _HALVES = r"\| (\S+ )*[bBil][\dx]*( \S+)* \|", r"\| (\S+ )*e[\dx]*( \S+)* \|"
_POOL = r"^(F\.)?(adaptive_)?(avg|max|lp)_(un)?pool\dd(_inside|_with_indices)? \|"
_LOSS = r"^(F\.)?(mse|l1|smooth_l1|huber|kl_div|poisson_nll|multilabel_soft_margin|binary_cross_entropy_with_logits|triplet_margin)(_loss)? \|"
DIFFERENT = [
    ("standard", r"^x[pl]\..* refused there$"),
    ("standard", r"^xp\.(argsort|cumulative_sum|cumulative_prod|repeat|squeeze|take) \|.*\| [flb] \| (shape|refused here)$"),
    ("standard", r"^x[pl]\.\w+ \|.*\| l\S* f\S* \| (dtype|value)$"),
    ("standard", r"^xp\.(can_cast|result_type) \|"),
    ("modulo 0", r"^xp\.remainder \|.* value$"),
    ("any dtype", _INTEGERS + r" refused there$"),
    ("halves", _HALVES + r" refused there$"),
    ("promotion", r"^(addmm|addmv|heaviside|isclose|(F\.)?grid_sample) \|.*d.* refused there$"),
    ("promotion", r"^(ldexp|addcdiv) \|.* value$"),
    ("promotion", r"^(F\.)?triplet_margin_loss \|.*e2x3 f2x3 e2x3 \| value$"),
    ("nothing", r"^(amax|amin|max|min|aminmax|max_keepdim|min_keepdim|norm|norm_p|vector_norm|L\.matrix_norm) \|.* refused there$"),
    ("nothing", r"^median \|.* [fl]\d\S* \| refused here$"),
    ("nothing", r"^quantile \|.* f2x0 \| refused there$"),
    ("empty range", r"^arange \| f\(0, -5\)"),
    ("one size", r"^max_unpool1d \|.* refused there$"),
    ("more shapes", r"^(F\.max_unpool1d|(F\.)?max_unpool2d) \|.* refused there$"),
    ("more shapes", _POOL + r".* refused there$"),
    ("more shapes", r"^(F\.)?(instance_norm|interpolate|interpolate_by|local_response_norm|channel_shuffle|group_norm|stft|istft|pad|linear|normalize) \|.* refused there$"),
    ("more shapes", r"^(L\.)?(cross|vecdot) \|.* refused there$"),
    ("more shapes", r"^(addmv|addr|cartesian_prod|flatten|fftshift|ifftshift|mm|renorm|t|(F\.)?triplet_margin_loss|margin_ranking_loss|soft_margin_loss|cosine_embedding_loss) \|.* refused there$"),
    ("unsigned", r"^(nan)?(sum|prod|cumsum|cumprod|trace)(_keepdim)? \|.* B\S* \| (dtype|shape)$"),
    ("truth", r"^(all|any)(_keepdim)? \|.* B2x3 \| dtype$"),
    ("loss shapes", _LOSS + r".* refused here$"),
    ("whole means", r"^(F\.)?avg_pool\dd(_inside)? \|.* l\S* \| dtype$"),
    ("whole means", r"^(F\.)?lp_pool\dd \|.* [bl]\S* \| value$"),
    ("whole means", r"^l1_loss \|.* [Bil]2x3 [Bil]2x3 \| dtype$"),
    ("wrapping", r"^((F\.)?triplet_margin_loss|margin_ranking_loss|pairwise_distance) \|.* B2x3 \| value$"),
    ("last window", r"^(F\.)?lp_pool\dd \| .*True.* f\S* \| value$"),
    ("one of none", r"^(S\.)?(softmax|log_softmax|softmin|trapezoid) \|.* l0x3 \| dtype$"),
    ("own width", r"^bitcast \|.* refused here$"),
    ("no axis", r"^(L\.)?(vecdot|cosine_similarity|pairwise_distance|(F\.)?triplet_margin_loss|quantile|flatten_axes|unfold|slice|scan_with) \|.*\| [flb]( f)*( f)? \| refused here$"),
    ("one shape", r"^(masked_fill|masked_select|masked_scatter|gather) \|.* refused here$"),
    ("random floats", r"^(F\.)?dropout\d?d? \|.* refused here$"),
    ("no channels", r"^F\.(instance_norm|local_response_norm|scaled_dot_product_attention) \|.*0.* refused here$"),
    ("poles", r"^(S\.)?polygamma \|.* value$"),
    ("overflow", r"^(L\.)?matrix_exp \|.* e3x3 \| value$"),
    ("empty batch", r"^pixel_unshuffle \|.* f0x4x9x8 \| shape$"),
    ("in its dtype", r'^einsum \| f\("ij,jk->", x, y\) \|.* dtype$'),
    ("beyond", r"^(roll|stride|shrink) \|.* refused here$"),
    ("whole batch", r"^conv_same \|.* f4x9x8 \| refused here$"),
    ("extents", r"^tensordot \|.* f2x1x2x3 f5x3x4 \| refused here$"),
]


def lines():
    """Each call: its grid, the call, the function, the reference's call, and the module of the reference."""
    for line in RECIPES.splitlines():
        grid, calls, names, *reference = line.split(" | ")
        module = reference[0][1:] if reference and reference[0][0] == "@" else None
        calls = calls.split("; ")
        others = reference[0].split("; ") if reference and not module else calls
        assert len(others) == len(calls), line
        for name in names.split():
            for call, other in zip(calls, others):
                yield grid, call, name, other, module


def array(case, position):
    """The elements of an operand: multiples of a quarter, which every floating dtype holds."""
    word = case.split(" ")[position] if case else ""
    dtype, extents = DTYPES[word[0]], [int(n) for n in word[1:].split("x") if n]
    rng = np.random.Generator(np.random.PCG64([zlib.crc32(word.encode()), position]))
    found = rng.integers(-8, 9, extents)
    if dtype == "bool":
        return np.asarray(found > 0)
    if dtype[0] in "ui":
        return np.asarray(found // 2 if dtype[0] == "i" else abs(found) // 2).astype(dtype)
    return np.asarray(found / 4).astype(dtype)


def operands(case):
    return [array(case, i) for i in range(len(case.split()))]


class Library:
    """What names in a call mean."""

    def __init__(self, module, tensor, dtype, names):
        self.module, self.tensor, self.dtype = module, tensor, dtype
        self.names = {
            "m": module,
            "np": np,
            "DTYPE": dtype,
            "i": lambda x: tensor(np.array(x, "int64")),
            "t": lambda x: tensor(np.array(x, "float32")),
            "eye": lambda x: module.eye(x.shape[-1], dtype=x.dtype),
            **names,
        }

    def __call__(self, call, function, given):
        found = eval(call, {**self.names, "f": function, **dict(zip("xyz", given))})
        return "; ".join(token(x) for x in flat(found))


def flat(result):
    """The parts of a result."""
    if isinstance(result, (tuple, list)) and not all(isinstance(x, (int, float)) for x in result):
        return [x for part in result for x in flat(part)]
    return [result]


# Digits that are written of a sum.
DIGITS = {"e": 5, "f": 7, "d": 12}


def token(result):
    """A result as text: dtype, shape, a sum, the size of what is summed, and what is not finite."""
    if not hasattr(result, "dtype") and not hasattr(result, "numpy"):
        shape = isinstance(result, (tuple, list)) or type(result).__name__ == "Size"
        return f"={list(result) if shape else result!r}"
    values = result.detach().numpy() if hasattr(result, "detach") else np.asarray(getattr(result, "_array", result))
    letter = LETTERS.get(str(values.dtype), str(values.dtype))
    flat = values.astype(np.float64).ravel()
    finite = np.isfinite(flat)
    kept = np.where(finite, flat, 0.0)
    weights = 1.0 + 0.5 * np.cos(np.arange(flat.size))
    odd = "".join("n" if np.isnan(v) else "+" if v > 0 else "-" for v in flat[~finite])
    digits = DIGITS.get(letter, 15)
    total, scale = float(kept @ weights), float(np.abs(kept) @ weights)
    # What rounding leaves of a sum that is 0 is 0.
    total = 0.0 if abs(total) < 1e-3 * scale * 10.0**-digits else total
    return f"{letter}{'x'.join(map(str, values.shape))}:{total:.{digits}g}{odd}"


def torch_library():
    import torch

    def tensor(x):
        return torch.from_numpy(np.array(x))

    names = {"F": torch.nn.functional, "L": torch.linalg, "S": torch.special, "FFT": torch.fft}
    return Library(torch, tensor, lambda name: getattr(torch, name), names)


def standard_library():
    import array_api_strict as xp

    names = {"xp": xp, "xl": xp.linalg}
    return Library(xp, xp.asarray, lambda name: getattr(xp, name), names)


def zyx_library():
    import zyx

    names = {"F": zyx.nn.functional, "L": zyx.linalg, "S": zyx.special, "xp": zyx.array_api, "xl": zyx.array_api.linalg}
    return Library(zyx, zyx.tensor, zyx.DType, names)


def lookup(library, name):
    """The function of a name, or of the reference the one that it stands for."""
    space, _, bare = name.rpartition(".")
    return None if name[0] == "@" else getattr(library.names[space or "m"], bare)


def reference(name, module, torch, standard):
    """The function of the reference, and the library it is called with."""
    space, _, bare = name.rpartition(".")
    if name[0] == "@":
        return None, torch
    if space in ("xp", "xl"):
        return getattr(standard.names[space], bare, None), standard
    t = torch.module
    by_default = [torch.names["F"], t, t.Tensor, torch.names["L"], torch.names["S"], torch.names["FFT"]]
    places = [torch.names[module]] if module else [torch.names[space]] if space else by_default
    return next((getattr(p, bare) for p in places if hasattr(p, bare)), None), torch


def attempt(library, call, function, arrays):
    try:
        given = [x if isinstance(x, type(library.tensor(0))) else library.tensor(x) for x in arrays]
    except TypeError:
        # The standard has no halves.
        return "-"
    try:
        return library(call, function, given)
    except Exception as error:
        if "internal error" in str(error):
            raise
        return "!"


def write():
    """Asks PyTorch and `array_api_strict`."""
    import warnings

    warnings.simplefilter("ignore")
    torch, standard = torch_library(), standard_library()
    names = {}
    for grid, call, name, other, module in lines():
        function, library = reference(name, module, torch, standard)
        names.setdefault((grid, call, other, function, library), []).append(name)
    found = []
    for (grid, call, other, function, library), all_names in names.items():
        results = [attempt(library, other, function, operands(case)) for case in GRIDS[grid]]
        found.append(f"{grid} | {call} | {' '.join(all_names)} -> {' | '.join(results)}")
    FILE.write_text("\n".join(found) + "\n")


if __name__ == "__main__":
    write()
