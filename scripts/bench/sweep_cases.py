"""The cases of the sweep: the calls of `zyx-py/tests/operand_grid.py`, with operands of the sizes at which they are timed.

`cases()` gives each call of each public function that has a counterpart in PyTorch. Its operands are those of its grid in
`SIZES`; `ROWS` has the calls in which literal extents, positions or weights stand for what is larger here, and the functions that need
other extents. `UNSWEPT` has the functions without a case, each with the reason.
"""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
_spec = importlib.util.spec_from_file_location("operand_grid", ROOT / "zyx-py/tests/operand_grid.py")
operand_grid = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(operand_grid)

# The operands of a grid: in a cache, in memory of a CPU, and in memory of a GPU if that needs more; `*` is the dtype.
_PAIR = ["*256x256 *256x256", "*4096x2048 *4096x2048", "*8192x2048 *8192x2048"]
SIZES = {
    "ONE": ["*256x256", "*4096x2048", "*8192x2048"],
    "TWO": _PAIR,
    "PAIRS": _PAIR,
    "ALIKE": _PAIR,
    "THREE": [" ".join([word] * 3) for word in ("*256x256", "*4096x2048", "*8192x2048")],
    "WHERE": [f"b{n} *{n} *{n}" for n in ("256x256", "4096x2048", "8192x2048")],
    "VECTORS": ["*65536", "*8388608", "*16777216"],
    "TWO_VECTORS": ["*65536 *65536", "*8388608 *8388608", "*16777216 *16777216"],
    "PRODUCTS": ["*256x256 *256x256", "*1024x1024 *1024x1024", "*2048x2048 *2048x2048"],
    "BATCHES": ["*16x64x64 *16x64x64", "*64x256x256 *64x256x256"],
    "OBLONG": ["*16x64x64", "*512x512"],
    "SQUARE": ["*16x64x64", "*512x512"],
    "SYSTEMS": ["*16x64x64 *16x64x8", "*512x512 *512x64"],
    "ONE_D": ["*16x48x85", "*16x48x8192", "*32x48x8192"],
    "TWO_D": ["*4x64x16x16", "*8x64x128x128", "*16x64x128x128"],
    "THREE_D": ["*1x16x16x16x16", "*4x16x32x64x64", "*8x16x32x64x64"],
    "CHANNELS": ["*16x64x64 *64", "*64x64x2048 *64", "*128x64x2048 *64"],
    "LAST": ["*32x8x256 *256", "*64x128x1024 *1024", "*128x128x1024 *1024"],
    "INDEXED": ["*256x256", "*8192x1024", "*16384x1024"],
    "NONE": ["*256x256", "*4096x2048", "*8192x2048"],
}

# `grid | functions | operands, if others, separated by commas | what is written instead, separated by semicolons`, the functions `*`
# for all of the grid. Beside the names of `operand_grid.py` a call has, made once:
#   W(..) random numbers, a parameter          C(..) random numbers from 0.5 to 1.5, a constant
#   G(..) random numbers from -1 to 1, a parameter
#   I(shape, n) random integers below n        P(n) the integers below n in random order
#   D(x, axis=0) positions along an axis, each of which comes once          S(n) sorted random numbers
#   B(n) random signs, integers                Y(x) classes of rows: four, then -1
#   E(x) the elements of x in memory of their own
#   n, r, c: the elements, rows and columns of an operand of ONE
ROWS = """
ONE | diagflat | *16x16, *64x48 |
ONE | diag_embed | *16x64, *32x512 |
ONE | unbind | *8x8192, *8x1048576 | f(x, -1) => f(x.mT, -1); f(x, 1) => f(x.mT, 1)
ONE | tolist to_vec | *256x256, *1024x512 |
ONE | quantile | *256x256, *4096x2048 |
ONE | fft ifft irfft rfft fft2 ifft2 fftn ifftn rfft2 irfft2 | *128x256, *2048x2048 |
ONE | split split_with_sizes | | f(x, 2) => f(x, r // 2); f(x, 2, -1) => f(x, c // 2, -1); [1, 2] => [c // 4, c - c // 4]; [1, 1] => [r // 4, r - r // 4]
ONE | narrow | | 0, 0, 1 => 0, 0, r // 2
ONE | topk | | f(x, 1) => f(x, 64)
ONE | kthvalue | | f(x, 1) => f(x, c // 2); f(x, 2, 0) => f(x, r // 4, 0)
ONE | expand broadcast_to | | (2, 2, 3) => (2, *x.shape)
ONE | F.layer_norm F.rms_norm | | (3,) => x.shape[-1:]
ONE | index_select | | i([1, 0, 1]) => I((r,), r); i([]) => I((c,), c)
ONE | index_fill | | i([1, 0]) => I((r // 2,), r); i([0]) => I((c // 2,), c)
ONE | masked_fill masked_select | | i([1, 0, 1]) > 0 => I((c,), 2) > 0
ONE | take | | i([1, 0]) => I((n,), n)
ONE | index | | i([1, 0, -1]) => I((r,), r)
ONE | @index | | i([1, 0]) => I((r,), r)
ONE | put | | i([0, 1]), x.flatten()[:2] => P(n), x.flatten()
ONE | index_put | | (i([1, 0]),) => (P(r),)
ONE | take_along_dim | | i([[0, 1]]), 0 => D(x), 0; i([[1], [-1]]), -1 => D(x, -1), -1
ONE | new_zeros new_ones new_full | | (3, 2) => (r, c)
ONE | repeat_interleave | *256x256, *2048x2048 |
TWO | isin | *256x256 *256x16, *4096x2048 *4096x16 |
ALIKE | equal allclose | | f(x, y) => f(x, E(x))
ALIKE | kron | *16x16 *16x16, *64x64 *64x48 |
ALIKE | inner | *256x256 *256x256, *1024x1024 *1024x1024 |
ALIKE | cross L.cross | *21845x3 *21845x3, *2796202x3 *2796202x3 |
ALIKE | block_diag | *128x128 *128x128, *1024x1024 *1024x1024 |
ALIKE | scatter scatter_reduce | | i([[0, 1, 0]]) => D(x); i([[0], [1]]) => D(x, -1)
ALIKE | scatter_add | | i([[0, 1, 0]]) => I((r, c), r); i([[0], [1]]) => I((r, c), c)
ALIKE | index_add index_copy | | i([1, 0]) => P(r); i([2, 1, 0]) => P(c)
ALIKE | diagonal_scatter | | y[0, :2] => y[0, : min(r, c)]
ALIKE | gather | | i([[0, 1, 0]]) => I((r, c), r); i([[2], [0]]) => I((r, c), c)
VECTORS | combinations | *362, *2900 |
VECTORS | diag | *256, *2900 |
VECTORS | vander | *8192, *1048576 | f(x) => f(x, 8)
VECTORS | F.one_hot one_hot | *8192, *1048576 |
VECTORS | embedding F.embedding | *1024, *131072 | t([[1.0, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12], [0, 0]]) => W(50000, 64); x.abs() => I((x.shape[0],), 50000)
VECTORS | repeat_interleave repeat_interleave_by | *65536, *4194304 | i([2, 1, 0, 3]) => I((x.shape[0],), 4)
TWO_VECTORS | outer kron meshgrid cartesian_prod addr | *256 *256, *4096 *2048 | m.zeros(4, 4) => W(x.shape[0], y.shape[0])
TWO_VECTORS | tensordot | | f(x, y, 0) => f(x[:1024], y[:1024], 0)
TWO_VECTORS | searchsorted bucketize | *65536 *65536, *4194304 *4194304 | x.sort()[0] => S(65536)
PRODUCTS | mv | *256x256 *256x8, *4096x2048 *2048x8 |
PRODUCTS | addmv | *256x256 *256x8, *4096x2048 *2048x8 | t([1.0, 2]) => W(x.shape[0])
PRODUCTS | addmm | | t([1.0, 2, 3, 4]) => W(y.shape[1]); m.zeros(2, 4) => W(x.shape[0], y.shape[1])
PRODUCTS | cdist | *256x64 *64x256, *1024x64 *64x1024 |
BATCHES | * | | m.zeros(2, 4) => W(x.shape[1], y.shape[2]); m.zeros(2, 2, 4) => W(x.shape[0], x.shape[1], y.shape[2])
OBLONG | pdist | *256x64, *2048x64 |
OBLONG | L.norm L.vector_norm L.diagonal | *256x256, *4096x2048 |
SQUARE | trace | *256x256, *4096x2048 |
ONE_D | F.conv1d | | m.ones(4, 3, 2, dtype=x.dtype) => W(64, 48, 2); m.ones(4, 3, 3, dtype=x.dtype) => W(64, 48, 3); m.ones(3, 1, 3, dtype=x.dtype), groups=3 => W(48, 1, 3), groups=48; m.ones(4, 2, 3, dtype=x.dtype) => W(64, 24, 3)
ONE_D | conv1d | | m.ones(4, 3, 3, dtype=x.dtype) => W(64, 48, 3)
ONE_D | conv_transpose1d | | m.ones(3, 4, 3, dtype=x.dtype) => W(48, 64, 3)
ONE_D | max_unpool1d | | True), 9) => True), x.shape[-1]); output_size=9 => output_size=x.shape[-1:]
ONE_D | F.interpolate interpolate | | f(x, 4) => f(x, 2 * x.shape[-1]); F.interpolate(x, 4) => F.interpolate(x, 2 * x.shape[-1])
ONE_D | stft | *4x16384, *16x131072 | f(x, 4) => f(x, 512); m.stft(x, 4, 1, => m.stft(x, 512, 128,; f(x, 8, 2 => f(x, 1024, 512; m.stft(x, 8, 2, => m.stft(x, 1024, 512,
ONE_D | istft | *2x257x64, *16x257x512 | x[..., :3, :9] => x; -1), 4) => -1), 512); * 2), 4, 1) => * 2), 512, 128)
TWO_D | F.conv2d conv2d conv_same | | m.ones(2, 4, 3, 2, dtype=x.dtype) => W(64, 64, 3, 2); m.ones(4, 1, 3, 3, dtype=x.dtype), None, 2, 1, 1, 4 => W(64, 1, 3, 3), None, 2, 1, 1, 64; m.ones(2, 4, 3, 3, dtype=x.dtype) => W(64, 64, 3, 3)
TWO_D | conv_transpose2d | | m.ones(4, 2, 3, 2, dtype=x.dtype) => W(64, 32, 3, 2)
TWO_D | max_unpool2d F.fold col2im | | (9, 8) => tuple(x.shape[-2:])
TWO_D | F.max_unpool2d | *4x64x15x15, *8x64x127x127 |
TWO_D | pixel_unshuffle | | x[..., :8, :8] => x
TWO_D | F.interpolate | | (4, 5) => [2 * k for k in x.shape[-2:]]
TWO_D | F.unfold im2col F.fold col2im | *4x64x16x16, *4x32x128x128 |
TWO_D | F.grid_sample grid_sample | | m.zeros(2, 3, 3, 2) + 0.25 => G(x.shape[0], x.shape[2], x.shape[3], 2); m.zeros(2, 3, 3, 2) + 1.25 => G(x.shape[0], x.shape[2], x.shape[3], 2); m.zeros(2, 3, 3, 2) + 0.3 => G(x.shape[0], x.shape[2], x.shape[3], 2)
TWO_D | F.affine_grid | | x[:, 0, :2, :3], (2, 1, 3, 4) => W(x.shape[0], 2, 3), (x.shape[0], 1, 4 * x.shape[2], 4 * x.shape[3])
THREE_D | F.conv3d conv3d | | m.ones(3, 2, 3, 2, 2, dtype=x.dtype) => W(16, 16, 3, 2, 2); m.ones(3, 2, 3, 2, 3, dtype=x.dtype) => W(16, 16, 3, 2, 3)
THREE_D | conv_transpose3d | | m.ones(2, 3, 3, 2, 2, dtype=x.dtype) => W(16, 16, 3, 2, 2)
THREE_D | F.max_unpool3d | *1x16x15x15x15, *4x16x31x63x63 |
THREE_D | max_unpool3d | | (6, 5, 7) => tuple(x.shape[-3:])
LAST | * | | (4,) => tuple(y.shape); y.reshape(1, 4) => W(x.shape[-1], x.shape[-1])
LAST | F.bilinear | *256x64 *64, *4096x64 *64 | m.ones(2, 4, 4, dtype=x.dtype) => W(64, 64, 64)
INDEXED | * | | i([1, 0, 2, 2])[: x.shape[0]] => I((x.shape[0],), x.shape[1]); m.ones(3, dtype=x.dtype) => C(x.shape[1])
INDEXED | multilabel_margin_loss | | i([[1, -1, 0]] * 4) => Y(x)
INDEXED | cosine_embedding_loss | | i([1, -1, 1, 1]) => B(x.shape[0])
INDEXED | scaled_dot_product_attention F.scaled_dot_product_attention | *16x64x64, *16x1024x64 | x > 0 => C(x.shape[-2], x.shape[-2]) > 1.0
INDEXED | F.embedding_bag | | i([[0, 1], [2, 0]]) => I((x.shape[0], 4), x.shape[0]); i([0, 1, 2]), x, i([0, 1]) => I((x.shape[0],), x.shape[0]), x, P(1)
NONE | zeros ones empty | | f(3) => f(n); (2, 3) => (r, c); f(2, 3 => f(r, c; (2, 0) => (r, c); () => (r,)
NONE | full | | (2, 3) => (r, c)
NONE | arange | | f(5) => f(n); f(2, 7) => f(2, n)
NONE | linspace | | 0, 1, 5 => 0, 1, n; 50) => n)
NONE | logspace | | 0, 3, 4 => 0, 3, n
NONE | eye | | f(3) => f(c); f(2, 3) => f(r, c)
NONE | iota | | f(4) => f(n); m.arange(4) => m.arange(n)
NONE | tril_indices triu_indices | | f(3, 4) => f(r // 2, c // 2); f(4, 3, 1) => f(r // 2, c // 2, 1)
NONE | hann_window hamming_window bartlett_window blackman_window kaiser_window | | f(5) => f(n)
NONE | fftfreq rfftfreq | | (5) => (n)
NONE | tensor as_tensor | | f([1, 2]) => f([0.5] * (n // 64))
NONE | F.ctc_loss ctc_loss | | m.zeros(5, 2, 4) => W(128, 16, 32); i([[1, 2], [3, 1]]) => I((16, 24), 31) + 1; i([5, 5]) => I((16,), 1) + 128; i([2, 2]) => I((16,), 1) + 24
NONE | from_numpy | | f(np.arange(3)) => f(np.ones((r, c), "float32"))
""".strip()

# Functions without a case, and why.
_WHY = {
    "has no counterpart of PyTorch in the grid but a constant": "from_bytes realize",
    "computes nothing": "broadcast_shapes is_floating_point element_size dim rank tracked cpu",
    "gives bytes or one number of the host": "to_bytes item",
}
UNSWEPT = {name: why for why, names in _WHY.items() for name in names.split()}

# Where results differ from PyTorch's on purpose: the reason, and a regular expression of calls.
DIFFERENT = [
    ("which of equal elements is the first of the sorted ones is left open", r"^(gradient of )?(mode|median)\("),
    ("PyTorch adds up powers of all elements in float32, one after the other", r"^(gradient of )?(L\.)?(vector_norm|norm|norm_p)\(x, 3(\.0)?\)"),
    ("near a pole a result is as large as the operand is near; of orders above 1 it is defined above 0", r"^(gradient of )?(S\.)?(polygamma|digamma|psi)\("),
    ("PyTorch's gradient on CUDA lacks slopes of some listed classes, of others in each run", r"^gradient of (F\.)?multilabel_margin_loss\("),
    ("outside of the domain, where the value is NaN, a derivative means nothing", r"^gradient of (logit|kl_div|kl_div_loss)\("),
    ("where windows overlap, several values go to one place; PyTorch's derivative counts that place for each of them", r"^gradient of (F\.)?max_unpool[123]d\("),
    ("PyTorch's value reads one triangle of the factor, its derivative both", r"^gradient of cholesky_inverse\("),
    ("of a window that ends outside, PyTorch scales the sum up to a whole one", r"^(gradient of )?F\.lp_pool2d\(.*True\)"),
    ("PyTorch factors in float32: of a random matrix its errors were 1,100 (svdvals), 180 (eigenvectors) and 1.7 (pinv) times as large", r"^gradient of (L\.)?(svd|svdvals|pinv|eigh)\("),
    ("PyTorch 2.11 fills the diagonal of a tall matrix again below its square", r"^gradient of trace\("),
    ("the derivative is zero up to rounding", r"^gradient of (cosine_embedding_loss|corrcoef)\("),
]
STANDARD = "is the array API's name of functions that are swept under their own; its reference is NumPy"


def rows():
    """The rows of `ROWS`: grid, functions, operands, and pairs of what is written and what is timed instead."""
    for line in ROWS.splitlines():
        grid, names, words, changes = (part.strip() for part in line.split("|", 3))
        pairs = [tuple(change.split(" => ")) for change in changes.split("; ") if change]
        yield grid, names.split(), [word.strip() for word in words.split(",") if word.strip()], pairs


def changed(call, pairs):
    """A call in which each text of the pairs is replaced, all at once, the longest first."""
    if not pairs:
        return call
    texts = dict(pairs)
    found = "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True))
    return re.sub(found, lambda match: texts[match[0]], call)


def unswept():
    """Why a function of the grid has no case, by name."""
    standard = {name: STANDARD for _, _, name, _, _ in operand_grid.lines() if name.startswith(("xp.", "xl."))}
    return {**standard, **UNSWEPT}


def cases():
    """The cases. Functions that have the same last part of their name and are called alike are one case, with all their names.

    A case has `names`, the `module` of the reference, the `grid`, the `calls` of each library, and the operands (`words`) of each size.
    """
    found, without, known = {}, unswept(), list(rows())
    for grid, call, name, other, module in operand_grid.lines():
        if name in without:
            continue
        words, pairs = SIZES[grid], []
        for row_grid, names, row_words, row_pairs in known:
            if row_grid == grid and (name in names or names == ["*"]):
                words, pairs = row_words or words, pairs + row_pairs
        calls = {"zyx": changed(call, pairs), "torch": changed(other, pairs)}
        bare = name if name[0] == "@" else name.rpartition(".")[2]
        case = {"names": [], "grid": grid, "module": module, "calls": calls}
        case["words"] = {"small": words[0], "cpu": words[1], "cuda": words[-1]}
        case = found.setdefault((bare, grid, call), case)
        if name not in case["names"]:
            case["names"].append(name)
    return list(found.values())
