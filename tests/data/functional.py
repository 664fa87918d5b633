"""Writes functional.txt: what PyTorch and NumPy give for the rows of tests/src/cases/functional.rs.

    python tests/data/functional.py > tests/data/functional.txt

Inputs are random numbers of a fixed seed, stored with the results, in float64. A row of floats has
the gradients, too, of the result weighted by `weights`, which the Rust side knows as well.
"""

import zlib

import numpy as np
import torch
import torch.nn.functional as F


def weights(n):
    return torch.tensor([0.5 + (i * 7919 % 97) / 97 for i in range(n)], dtype=torch.float64)


def text(x):
    x = x.detach().contiguous()
    dims = "x".join(map(str, x.shape)) or "-"
    if x.dtype == torch.bool:
        x = x.to(torch.int64)
    kind = "f" if x.is_floating_point() else "i"
    values = (repr(float(v)) if kind == "f" else str(int(v)) for v in x.flatten())
    return f"{kind} {dims} {' '.join(values)}"


class Fixed:
    """An input without a gradient."""

    def __init__(self, x):
        self.x = x


def case(name, f, *inputs):
    """Inputs are shapes (normal numbers), (shape, low, high), or tensors."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    tensors = []
    for x in inputs:
        fixed = isinstance(x, Fixed)
        x = x.x if fixed else x
        if isinstance(x, torch.Tensor):
            x = x.clone()
        elif isinstance(x, tuple) and len(x) == 3 and isinstance(x[0], tuple):
            x = torch.tensor(rng.uniform(x[1], x[2], x[0]))
        else:
            x = torch.tensor(rng.standard_normal(x).round(6))
        x = torch.tensor(x.numpy().round(6)) if x.is_floating_point() else x
        tensors.append(x.requires_grad_() if x.is_floating_point() and not fixed else x)
    y = f(*tensors)
    print("case", name)
    for x in tensors:
        print("in" if x.requires_grad or not x.is_floating_point() else "fixed", text(x))
    print("out", text(y))
    leaves = [x for x in tensors if x.requires_grad]
    if y.is_floating_point() and y.requires_grad:
        total = (y.flatten() * weights(y.numel())).sum()
        for dx, x in zip(torch.autograd.grad(total, leaves, allow_unused=True), leaves):
            print("grad", text(torch.zeros_like(x) if dx is None else dx))


def ints(*data):
    return torch.tensor(data, dtype=torch.int64)


def losses():
    pair = [(3, 4), (3, 4)]
    signs = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
    grid = torch.tensor([[1, -1, 1, -1]] * 3, dtype=torch.float64)
    case("vector_norm", lambda x: torch.linalg.vector_norm(x, 3, dim=1), (3, 4))
    case("vector_norm inf", lambda x: torch.linalg.vector_norm(x, float("inf"), dim=1), (3, 4))
    case("cosine_similarity", lambda x, y: F.cosine_similarity(x, y, 1), *pair)
    case("pairwise_distance", lambda x, y: F.pairwise_distance(x, y), *pair)
    case("pairwise_distance p", lambda x, y: F.pairwise_distance(x, y, p=3.5, eps=0), *pair)
    case("cdist", lambda x, y: torch.cdist(x, y), (2, 3, 4), (2, 5, 4))
    case("cdist 1", lambda x, y: torch.cdist(x, y, p=1), (3, 4), (2, 4))
    case("pdist", lambda x: F.pdist(x, 2.0), (4, 3))
    case("triplet_margin_loss", F.triplet_margin_loss, (3, 4), (3, 4), (3, 4))
    case("triplet_margin_loss swap",
         lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=2, swap=True, reduction="none"),
         (3, 4), (3, 4), (3, 4))
    case("cosine_embedding_loss",
         lambda x, y, t: F.cosine_embedding_loss(x, y, t, margin=-0.4, reduction="none"),
         *pair, Fixed(signs))
    case("margin_ranking_loss",
         lambda x, y, t: F.margin_ranking_loss(x, y, t, margin=0.5, reduction="none"),
         (3,), (3,), Fixed(signs))
    case("hinge_embedding_loss",
         lambda x, t: F.hinge_embedding_loss(x, t, margin=1.5, reduction="none"), (3,), Fixed(signs))
    case("soft_margin_loss", lambda x, t: F.soft_margin_loss(x, t), (3, 4), Fixed(grid))
    case("multi_margin_loss", lambda x, t: F.multi_margin_loss(x, t), (3, 4), ints(1, 0, 3))
    case("multi_margin_loss weighted",
         lambda x, t, w: F.multi_margin_loss(x, t, p=2, margin=0.7, weight=w, reduction="none"),
         (3, 4), ints(1, 0, 3), Fixed(((4,), 0.5, 2.0)))
    case("multilabel_soft_margin_loss",
         lambda x, t: F.multilabel_soft_margin_loss(x, (t > 0).double()), (3, 4), Fixed(grid))
    case("multilabel_margin_loss", lambda x, t: F.multilabel_margin_loss(x, t), (2, 4),
         torch.tensor([[3, 0, -1, 1], [2, -1, 0, 1]]))
    case("cross_entropy weighted", lambda x, t, w: F.cross_entropy(x, t, w), (3, 4), ints(1, 0, 3),
         Fixed(((4,), 0.5, 2.0)))
    case("cross_entropy weighted smoothed",
         lambda x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.1, ignore_index=0),
         (3, 4), ints(1, 0, 3), Fixed(((4,), 0.5, 2.0)))
    case("cross_entropy soft",
         lambda x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.1),
         (3, 4, 2), ((3, 4, 2), 0.0, 1.0), Fixed(((4,), 0.5, 2.0)))
    case("nll_loss weighted", lambda x, t, w: F.nll_loss(x, t, w), (3, 4), ints(1, 0, 3),
         Fixed(((4,), 0.5, 2.0)))
    case("binary_cross_entropy", lambda x, t, w: F.binary_cross_entropy(x, t, w),
         ((3, 4), 0.1, 0.9), ((3, 4), 0.0, 1.0), Fixed(((4,), 0.5, 2.0)))
    case("binary_cross_entropy_with_logits",
         lambda x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=p),
         (3, 4), ((3, 4), 0.0, 1.0), Fixed(((4,), 0.5, 2.0)), Fixed(((4,), 0.5, 2.0)))
    case("kl_div", lambda x, t: F.kl_div(x, t, reduction="sum", log_target=True), (3, 4), (3, 4))
    case("poisson_nll_loss", lambda x, t: F.poisson_nll_loss(x, t, full=True, reduction="none"),
         (3, 4), ((3, 4), 0.0, 4.0))
    case("poisson_nll_loss rate", lambda x, t: F.poisson_nll_loss(x, t, log_input=False),
         ((3, 4), 0.5, 4.0), ((3, 4), 0.0, 4.0))
    case("gaussian_nll_loss", lambda x, t, v: F.gaussian_nll_loss(x, t, v, full=True),
         (3, 4), (3, 4), ((3, 1), 0.5, 2.0))
    case("ctc_loss",
         lambda x, t, i, n: F.ctc_loss(F.log_softmax(x, -1), t, i, n, reduction="none"),
         (6, 3, 4), torch.tensor([[1, 1, 2], [3, 2, 1], [2, 0, 0]]), ints(6, 5, 4), ints(3, 3, 1))
    case("ctc_loss mean",
         lambda x, t, i, n: F.ctc_loss(F.log_softmax(x, -1), t, i, n, blank=2, zero_infinity=True),
         (4, 2, 3), torch.tensor([[1, 0], [1, 1]]), ints(4, 2), ints(2, 2))


def attention():
    sdpa = F.scaled_dot_product_attention
    q, k, v = (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6)
    case("attention", sdpa, q, k, v)
    case("attention causal", lambda q, k, v: sdpa(q, k, v, is_causal=True, scale=0.3), q, k, v)
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[1] = False
    mask[0, 2:] = False
    case("attention masked", lambda q, k, v, m: sdpa(q, k, v, attn_mask=m > 0), q, k, v,
         mask.to(torch.int64))
    case("attention biased", lambda q, k, v, m: sdpa(q, k, v, attn_mask=m), q, k, v, (2, 1, 3, 5))
    case("attention grouped", lambda q, k, v: sdpa(q, k, v, enable_gqa=True), (2, 4, 3, 4), k, v)


def convolutions():
    case("conv3d", lambda x, w, b: F.conv3d(x, w, b, stride=(1, 2, 1), padding=(1, 0, 1),
                                            dilation=(1, 1, 2), groups=2),
         (1, 4, 3, 4, 5), (2, 2, 2, 2, 2), (2,))
    case("conv_same 1", lambda x, w: F.conv1d(x, w, padding="same", dilation=3), (2, 2, 7),
         (3, 2, 4))
    case("conv_same 2", lambda x, w, b: F.conv2d(x, w, b, padding="same"), (1, 2, 4, 3),
         (2, 2, 2, 3), (2,))
    case("conv_transpose1d",
         lambda x, w, b: F.conv_transpose1d(x, w, b, stride=3, padding=1, output_padding=2,
                                            dilation=2),
         (2, 3, 4), (3, 2, 3), (2,))
    case("conv_transpose2d",
         lambda x, w, b: F.conv_transpose2d(x, w, b, stride=(2, 1), padding=(1, 0), groups=2,
                                            dilation=(1, 2)),
         (1, 4, 3, 3), (4, 2, 3, 2), (4,))
    case("conv_transpose3d", lambda x, w: F.conv_transpose3d(x, w, stride=2), (1, 2, 2, 2, 2),
         (2, 1, 2, 1, 3))


def pools():
    case("max_pool1d", lambda x: F.max_pool1d(x, 3, 2, 1, 2, ceil_mode=True), (2, 3, 8))
    case("max_pool2d ceil", lambda x: F.max_pool2d(x, (3, 2), 2, (1, 0), ceil_mode=True),
         (1, 2, 6, 7))
    case("max_pool3d", lambda x: F.max_pool3d(x, 2, 1), (1, 2, 3, 3, 4))
    case("max_pool2d indices", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[1],
         (1, 2, 6, 7))
    case("max_pool1d indices", lambda x: F.max_pool1d(x, 3, 2, return_indices=True)[1], (2, 9))
    case("max_pool3d indices", lambda x: F.max_pool3d(x, 2, return_indices=True)[1],
         (1, 4, 4, 2))
    case("max_unpool2d", lambda x, i: F.max_unpool2d(x, i, 2), (1, 2, 2, 2),
         torch.tensor([[[[5, 2], [8, 15]], [[0, 7], [12, 10]]]]))
    case("max_unpool1d", lambda x, i: F.max_unpool1d(x, i, 2), (2, 2), torch.tensor([[0, 3], [1, 2]]))
    case("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1, ceil_mode=True), (2, 3, 8))
    case("avg_pool2d ceil", lambda x: F.avg_pool2d(x, (3, 2), 2, (1, 1), ceil_mode=True),
         (1, 2, 6, 7))
    case("avg_pool2d inside",
         lambda x: F.avg_pool2d(x, (3, 2), 2, (1, 1), ceil_mode=True, count_include_pad=False),
         (1, 2, 6, 7))
    case("avg_pool3d", lambda x: F.avg_pool3d(x, 2), (1, 2, 4, 4, 2))
    case("lp_pool1d", lambda x: F.lp_pool1d(x, 3, 2), ((1, 2, 6), 0.1, 2.0))
    case("lp_pool2d", lambda x: F.lp_pool2d(x, 2, 2, 1), (1, 2, 3, 4))
    case("lp_pool3d", lambda x: F.lp_pool3d(x, 2, 2), (1, 2, 2, 2, 4))
    case("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 3), (2, 2, 7))
    case("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)), (1, 2, 3, 4, 2))
    case("adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 3), (2, 2, 7))
    case("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (2, 3)), (1, 2, 5, 4))
    case("adaptive_max_pool3d", lambda x: F.adaptive_max_pool3d(x, (2, 3, 1)), (1, 2, 3, 4, 2))


def images():
    case("pad reflect", lambda x: F.pad(x, (2, 1, 0, 3), mode="reflect"), (1, 4, 3))
    case("pad replicate", lambda x: F.pad(x, (2, 1, 0, 3), mode="replicate"), (1, 4, 3))
    case("pad circular", lambda x: F.pad(x, (2, 1, 0, 3), mode="circular"), (1, 4, 3))
    case("im2col", lambda x: F.unfold(x, (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2)),
         (2, 2, 4, 5))
    case("col2im", lambda x: F.fold(x, (4, 5), (2, 3), dilation=(2, 1), padding=(1, 0),
                                  stride=(1, 2)), (1, 12, 8))
    case("unfold", lambda x: x.unfold(1, 3, 2), (2, 7, 2))
    case("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), (1, 8, 2, 3))
    case("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), (1, 2, 4, 6))
    case("channel_shuffle", lambda x: F.channel_shuffle(x, 3), (1, 6, 2, 1))
    for mode in ["nearest", "nearest-exact"]:
        case(f"interpolate {mode}", lambda x: F.interpolate(x, (5, 3), mode=mode), (1, 2, 3, 4))
    case("interpolate linear", lambda x: F.interpolate(x, (7,), mode="linear"), (1, 2, 4))
    for corners in [False, True]:
        case(f"interpolate bilinear {corners}",
             lambda x: F.interpolate(x, (5, 3), mode="bilinear", align_corners=corners),
             (1, 2, 3, 4))
        case(f"interpolate bicubic {corners}",
             lambda x: F.interpolate(x, (6, 3), mode="bicubic", align_corners=corners),
             (1, 2, 3, 4))
    case("interpolate trilinear", lambda x: F.interpolate(x, (3, 4, 5), mode="trilinear"),
         (1, 1, 2, 3, 4))
    case("interpolate area", lambda x: F.interpolate(x, (2, 3), mode="area"), (1, 2, 5, 4))
    grid = ((1, 3, 2, 2), -1.2, 1.2)
    for corners in [False, True]:
        case(f"grid_sample {corners}",
             lambda x, g: F.grid_sample(x, g, align_corners=corners), (1, 2, 3, 4), grid)
    case("grid_sample border",
         lambda x, g: F.grid_sample(x, g, padding_mode="border", align_corners=False),
         (1, 2, 3, 4), grid)
    case("grid_sample nearest",
         lambda x, g: F.grid_sample(x, g, mode="nearest", align_corners=False),
         (1, 2, 3, 4), grid)


EINSUM = [
    ("ij,jk->ik", (3, 4), (4, 2)),
    ("ij,jk->ki", (3, 4), (4, 2)),
    ("ji,kj", (4, 3), (2, 4)),
    ("ii", (4, 4)),
    ("ii->i", (4, 4)),
    ("iij->ji", (3, 3, 2)),
    ("ijij->", (3, 2, 3, 2)),
    ("ij->", (3, 4)),
    ("ij->j", (3, 4)),
    ("ba", (3, 4)),
    ("...ij,...jk->...ik", (2, 3, 4), (4, 2)),
    ("i...,i...", (3, 2), (3, 2)),
    ("...i->...", (2, 3, 4)),
    ("...,...", (2, 3), (3,)),
    ("i,j", (3,), (4,)),
    ("i,i->", (3,), (3,)),
    ("i,i->i", (3,), (3,)),
    (",ij", (), (2, 3)),
    ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
    ("ij,jk,kl", (2, 3), (3, 4), (4, 2)),
    ("ab,bc,cd,da->", (2, 3), (3, 2), (2, 4), (4, 2)),
    ("aab,bc,c->ca", (2, 2, 3), (3, 2), (2,)),
    ("ij,ij,jk,kk->ik", (2, 3), (2, 3), (3, 4), (4, 4)),
    ("ab,cb,ad,dc,a,b->cd", (2, 3), (2, 3), (2, 4), (4, 2), (2,), (3,)),
    ("Ab,bA->A", (2, 3), (3, 2)),
    (" i j , j k -> k ", (2, 3), (3, 2)),
    ("ij,jk->ik ", (3, 1), (4, 2)),
    ("i,ij,ijk,k,kl,l,m,m->", (2,), (2, 3), (2, 3, 2), (2,), (2, 3), (3,), (2,), (2,)),
]


def products():
    for spec, *shapes in EINSUM:
        case(f"einsum {spec}", lambda *x: torch.einsum(spec, *x), *shapes)
    case("tensordot", lambda x, y: torch.tensordot(x, y, dims=([2, 0], [0, 1])), (3, 2, 4),
         (4, 3, 2))
    case("outer", torch.outer, (3,), (2,))
    case("inner", torch.inner, (2, 3), (4, 2, 3))
    case("kron", torch.kron, (2, 3), (2, 2, 2))
    case("cross", lambda x, y: torch.linalg.cross(x, y, dim=1), (2, 3), (1, 3))
    case("bmm", torch.bmm, (2, 3, 4), (2, 4, 2))
    case("mv", torch.mv, (2, 3), (3,))
    case("addmm", lambda x, a, b: torch.addmm(x, a, b, beta=0.5, alpha=2.0), (3,), (2, 4), (4, 3))
    case("baddbmm", lambda x, a, b: torch.baddbmm(x, a, b, beta=-1, alpha=3), (2, 2, 3),
         (2, 2, 4), (2, 4, 3))
    case("multi_dot", lambda *x: torch.linalg.multi_dot(x), (3,), (3, 4), (4, 2), (2, 5), (5,))
    case("vecdot", lambda x, y: torch.linalg.vecdot(x, y, dim=0), (3, 2), (3, 1))
    case("trace", torch.trace, (3, 4))


def definite(x):
    return x @ x.mT + 2 * torch.eye(x.shape[-1], dtype=torch.float64)


def stack(*parts):
    return torch.cat([p.flatten() for p in parts])


def linalg():
    la = torch.linalg
    square, tall, wide = (2, 3, 3), (2, 4, 3), (3, 4)
    case("cholesky", lambda x: la.cholesky(definite(x)), square)
    case("triangular_solve",
         lambda a, b: la.solve_triangular(a.tril() + 3 * torch.eye(3), b, upper=False),
         square, (2, 3, 2))
    case("triangular_solve unit",
         lambda a, b: la.solve_triangular(a, b, upper=True, unitriangular=True),
         (3, 3), (2, 3, 2))
    case("cholesky_solve", lambda a, b: torch.cholesky_solve(b, la.cholesky(definite(a))),
         (3, 3), (3, 2))
    case("cholesky_inverse", lambda a: torch.cholesky_inverse(la.cholesky(definite(a))), (3, 3))
    case("solve", la.solve, square, (2, 3, 2))
    case("solve vector", la.solve, (3, 3), (3,))
    case("inv", la.inv, square)
    case("det", la.det, square)
    case("slogdet", lambda x: la.slogdet(x)[1], square)
    case("qr", lambda x: stack(*la.qr(x)), tall)
    case("qr wide", lambda x: stack(*la.qr(x)), wide)
    case("eigh values", lambda x: la.eigvalsh(x + x.mT), square)
    case("eigh vectors", lambda x: (lambda w, v: v.abs() * w[..., None, :])(*la.eigh(x + x.mT)),
         square)
    case("svd", lambda x: (lambda u, s, vh: stack(u.abs(), s, vh.abs()))(
        *la.svd(x, full_matrices=False)), tall)
    case("svd wide", lambda x: (lambda u, s, vh: stack(u.abs(), s, vh.abs()))(
        *la.svd(x, full_matrices=False)), wide)
    case("svdvals", la.svdvals, tall)
    case("lstsq", lambda a, b: la.lstsq(a, b).solution, (4, 3), (4, 2))
    case("lstsq wide", lambda a, b: la.pinv(a) @ b, (3, 4), (3, 2))
    case("pinv", la.pinv, tall)
    case("matrix_rank", lambda x: la.matrix_rank(x @ x.mT), (4, 2))
    case("cond", la.cond, square)
    for name, order in [("Frobenius", "fro"), ("Nuclear", "nuc"), ("Spectral", 2), ("Columns", 1),
                        ("Rows", float("inf"))]:
        case(f"matrix_norm {name}", lambda x: la.matrix_norm(x, order), tall)
    case("matrix_power", lambda x: la.matrix_power(x, 5), square)
    case("matrix_power inverse", lambda x: la.matrix_power(x, -2), (3, 3))
    case("matrix_exp", la.matrix_exp, square)


def fourier():
    fft, real, cplx = torch.fft, torch.view_as_real, torch.view_as_complex
    for n in [1, 2, 5, 12]:
        case(f"fft {n}", lambda x: real(fft.fft(cplx(x))), (2, n, 2))
    for n in [96, 134, 263]:
        case(f"fft sum {n}", lambda x: real(fft.fft(cplx(x)))[n // 3 :: 37], (n, 2))
    case("fft cut", lambda x: real(fft.fft(cplx(x), 3, 0, "forward")), (5, 2, 2))
    case("fft padded", lambda x: real(fft.fft(cplx(x), 7, norm="ortho")), (5, 2))
    case("ifft", lambda x: real(fft.ifft(cplx(x))), (2, 6, 2))
    for n in [5, 6]:
        case(f"rfft {n}", lambda x: real(fft.rfft(x, dim=0)), (n, 2))
        case(f"irfft {n}", lambda x: fft.irfft(cplx(x), n), (n // 2 + 1, 2))
    case("fft2", lambda x: real(fft.fft2(cplx(x))), (3, 4, 2))
    case("ifft2", lambda x: real(fft.ifft2(cplx(x), norm="forward")), (3, 4, 2))
    case("fftn", lambda x: real(fft.fftn(cplx(x), dim=(0, 2), norm="ortho")), (3, 2, 4, 2))
    case("ifftn", lambda x: real(fft.ifftn(cplx(x), dim=(0, 1))), (3, 2, 2, 2))
    case("fftshift", lambda x: fft.fftshift(x), (3, 4))
    case("ifftshift", lambda x: fft.ifftshift(x), (3, 4))
    case("stft", lambda x, w: real(torch.stft(x, 8, 3, window=w, return_complex=True)), (2, 20),
         Fixed(((8,), 0.5, 1.0)))
    case("istft", lambda x, w: torch.istft(cplx(x), 8, 2, window=w), (5, 4, 2),
         Fixed(((8,), 0.5, 1.0)))
    case("hann_window", lambda x: torch.hann_window(7, dtype=torch.float64) * x, (1,))
    case("hamming_window", lambda x: torch.hamming_window(6, False, dtype=torch.float64) * x, (1,))
    case("blackman_window", lambda x: torch.blackman_window(5, dtype=torch.float64) * x, (1,))


for family in [losses, attention, convolutions, pools, images, products, linalg, fourier]:
    family()
