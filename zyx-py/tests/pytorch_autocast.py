"""Operations within `autocast("cpu")`: the dtypes and values that PyTorch gives, in `data/pytorch_autocast.json`.

    python zyx-py/tests/pytorch_autocast.py

writes the file again; this needs `torch`.
"""

import json
import pathlib

import numpy as np

FILE = pathlib.Path(__file__).with_name("data") / "pytorch_autocast.json"
DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i64": "int64"}


def operations(torch):
    """Name and function of each operation, of tensors made once."""
    nn, F = torch.nn, torch.nn.functional
    numbers = np.random.default_rng(0)

    def made(*shape):
        return torch.tensor(numbers.uniform(0.1, 0.9, shape).astype("float32"))

    a, b, c, d, v = made(2, 3, 4), made(2, 4, 5), made(3, 4), made(4, 5), made(4)
    square, image, volume, kernel = made(4, 4) + torch.eye(4), made(1, 2, 6, 6), made(1, 2, 4, 4, 4), made(3, 2, 3, 3)
    half, half_square, half_image, half_volume = (x.to(torch.bfloat16) for x in (c, square, image, volume))
    target, classes, bias = made(3, 4), torch.tensor([0, 1, 2]), made(5)

    def layer(module, *given):
        # Both libraries draw other weights: all become one number.
        with torch.no_grad():
            for p in module.parameters():
                p.fill_(0.25)
        found = module(*given)
        return found[0] if isinstance(found, tuple) else found

    return {
        "operator": lambda: c @ d, "matmul": lambda: torch.matmul(c, d), "mm": lambda: torch.mm(c, d), "method": lambda: c.mm(d), "bmm": lambda: torch.bmm(a, b),
        "mv": lambda: torch.mv(c, v), "einsum": lambda: torch.einsum("ij,jk->ik", c, d), "inner": lambda: torch.inner(c, c), "dot": lambda: torch.dot(v, v),
        "outer": lambda: torch.outer(v, v), "tensordot": lambda: torch.tensordot(c, d, 1), "multi_dot": lambda: torch.linalg.multi_dot([c, d]),
        "addmm": lambda: torch.addmm(c @ d, c, d), "addbmm": lambda: torch.addbmm(c @ d, a, b), "baddbmm": lambda: torch.baddbmm(a @ b, a, b),
        "addmv": lambda: torch.addmv(made(3) * 0, c, v), "linear": lambda: F.linear(c, d.t()), "linear with bias": lambda: F.linear(c, d.t(), bias),
        "linear of halves": lambda: F.linear(half, d.t(), bias), "bilinear": lambda: F.bilinear(c, c, made(2, 4, 4) * 0 + 0.5),
        "conv2d": lambda: F.conv2d(image, kernel), "conv2d of halves": lambda: F.conv2d(half_image, kernel, v[:3]),
        "conv2d same": lambda: F.conv2d(image, kernel, padding="same"), "conv1d": lambda: F.conv1d(image[0, :, :3], kernel[0]),
        "conv_transpose2d": lambda: F.conv_transpose2d(image, kernel.transpose(0, 1)), "attention": lambda: F.scaled_dot_product_attention(a, a, a),
        "prelu": lambda: F.prelu(c - 0.5, v[:1]), "softmax": lambda: F.softmax(half, -1), "log_softmax": lambda: half.log_softmax(0),
        "sum": lambda: half.sum(), "prod": lambda: half.prod(), "cumsum": lambda: half.cumsum(0), "norm": lambda: half.norm(), "exp": lambda: half.exp(),
        "pow": lambda: half**2, "layer_norm": lambda: F.layer_norm(half, (4,)), "add": lambda: half + c, "mul": lambda: half * half, "relu": lambda: half.relu(),
        "written": lambda: half.clone().add_(c), "double": lambda: c.double() @ d.double(), "integer": lambda: classes * 2,
        "mse_loss": lambda: F.mse_loss(half, target), "l1_loss": lambda: F.l1_loss(half, target), "cross_entropy": lambda: F.cross_entropy(half, classes),
        "nll_loss": lambda: F.nll_loss(half, classes), "binary_cross_entropy": lambda: F.binary_cross_entropy(half, target),
        "with_logits": lambda: F.binary_cross_entropy_with_logits(half, target), "smooth_l1_loss": lambda: F.smooth_l1_loss(half, target),
        "huber_loss": lambda: F.huber_loss(half, target), "kl_div": lambda: F.kl_div(half, target, reduction="batchmean"),
        "triplet": lambda: F.triplet_margin_loss(half, half, half), "poisson": lambda: F.poisson_nll_loss(half, target),
        "cat": lambda: torch.cat([half, c]), "cat of halves": lambda: torch.cat([half, half]), "stack": lambda: torch.stack([half, c]),
        "index_copy": lambda: half.index_copy(0, classes, c), "trace": lambda: half_square.trace(), "quantile": lambda: half.quantile(0.5),
        "cdist": lambda: torch.cdist(half, half + 1), "inverse": lambda: half_square.inverse(), "solve": lambda: torch.linalg.solve(half_square, half_square),
        "svd": lambda: torch.linalg.svd(half_square)[1], "avg_pool2d": lambda: F.avg_pool2d(half_image, 2), "avg_pool3d": lambda: F.avg_pool3d(half_volume, 2),
        "adaptive_avg_pool3d": lambda: F.adaptive_avg_pool3d(half_volume, 2), "grid_sample": lambda: F.grid_sample(half_image, made(1, 2, 2, 2) * 0, align_corners=False),
        "interpolate": lambda: F.interpolate(half_image, scale_factor=2), "pad": lambda: F.pad(half_image, (1, 1, 1, 1), mode="reflect"),
        "Linear": lambda: layer(nn.Linear(4, 2), c), "Sequential": lambda: layer(nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 2)), c),
        "Conv2d": lambda: layer(nn.Conv2d(2, 3, 3), image), "BatchNorm2d": lambda: layer(nn.BatchNorm2d(2), half_image),
        "Embedding": lambda: layer(nn.Embedding(5, 4), classes), "MultiheadAttention": lambda: layer(nn.MultiheadAttention(4, 2), a, a, a),
        "LSTM": lambda: layer(nn.LSTM(4, 3), a), "LSTM of halves": lambda: layer(nn.LSTM(4, 3), a.to(torch.bfloat16)), "RNN": lambda: layer(nn.RNN(4, 3), a), "GRU": lambda: layer(nn.GRU(4, 3), a), "GRUCell": lambda: layer(nn.GRUCell(4, 3), c),
    }  # fmt: skip


def outcomes(torch):
    """For each operation the dtype, and the values in `float32`."""
    found = {}
    for name, operation in operations(torch).items():
        with torch.autocast("cpu"):
            y = operation()
        dtype = str(y.dtype).split(".")[-1]
        found[name] = [DTYPES.get(dtype, dtype), y.detach().float().flatten().tolist()]
    return found


if __name__ == "__main__":
    import torch

    FILE.write_text(json.dumps({k: [d, [float(f"{x:.5g}") for x in v]] for k, (d, v) in outcomes(torch).items()}) + "\n")
