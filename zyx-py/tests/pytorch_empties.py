"""Layers, losses and statistics of no rows, no columns and one element, and what PyTorch gives.

usage: pytorch_empties.py      (needs torch; the file was written with 2.15)

Writes data/pytorch_empties.json: for each case shapes, values where they do not depend on random weights, running
statistics after a forward pass in training, and kinds of gradients; or that it is refused.
"""

import json
import pathlib
import warnings

import numpy as np

FILE = pathlib.Path(__file__).with_name("data") / "pytorch_empties.json"


def numbers(seed, *shape):
    return np.random.Generator(np.random.PCG64(seed)).normal(size=shape).astype("float32")


def plain(x):
    """Shapes and rounded elements."""
    if isinstance(x, (tuple, list)):
        return [plain(item) for item in x]
    if hasattr(x, "detach"):
        x = x.detach().numpy()
        return [list(x.shape), [float(f"{number:.4g}") + 0.0 for number in np.asarray(x, "float64").ravel()]]
    return x


def told(f):
    try:
        return f()
    except (ValueError, TypeError, IndexError, RuntimeError, AssertionError, NotImplementedError):
        return "refused"


def slope(x):
    """Whether a gradient is there, and not only zeros."""
    return "none" if x.grad is None else [list(x.grad.shape), "zero" if (x.grad == 0).all().item() else "other"]


def passed(m, make, shape, training):
    """A forward and a backward pass of a layer."""
    layer = make(m.nn)
    layer.train(training)
    x = m.tensor(numbers(0, *shape), requires_grad=True)
    y = layer(x)
    y = y[0] if isinstance(y, (tuple, list)) else y
    y.sum().backward()
    state = [[name, plain(value)] for name, value in sorted(layer.state_dict().items()) if "running" in name or "num_batches" in name]
    slopes = [slope(p) for _, p in sorted(layer.named_parameters())] if 0 in shape else None
    values = plain(y) if "Norm" in type(layer).__name__ else list(y.shape)
    return [values, state, slopes, list(x.grad.shape) if x.grad is not None else "none"]


NORMS = {
    "BatchNorm1d": [(0, 3), (1, 3), (2, 3), (0, 3, 4), (1, 3, 1), (1, 3, 4), (2, 3, 0), (0, 3, 0)],
    "BatchNorm2d": [(0, 3, 2, 2), (1, 3, 1, 1), (1, 3, 2, 2), (2, 3, 0, 2)],
    "BatchNorm3d": [(0, 3, 2, 2, 2), (1, 3, 1, 1, 1), (2, 3, 0, 1, 1)],
    "InstanceNorm1d": [(0, 3, 4), (1, 3, 1), (1, 3, 4), (2, 3, 0), (2, 3, 1)],
    "InstanceNorm2d": [(0, 3, 2, 2), (1, 3, 1, 1), (2, 3, 2, 2), (2, 3, 0, 2)],
    "InstanceNorm3d": [(0, 3, 2, 2, 2), (1, 3, 1, 1, 1)],
}
PLAIN = ["ReLU", "GELU", "Sigmoid", "Tanh", "Softplus", "ELU", "SELU", "CELU", "SiLU", "Mish", "Hardswish", "Hardsigmoid", "Hardtanh", "LeakyReLU",
         "PReLU", "LogSigmoid", "Softsign", "Tanhshrink", "ReLU6", "Dropout", "Identity", "Flatten"]  # fmt: skip


def layers():
    """Name, constructor, shape and mode."""
    for kind, shapes in NORMS.items():
        for shape in shapes:
            for training in (True, False):
                for tracks in (True, False):
                    for affine in (True, False):
                        for momentum in (0.1, None):
                            options = {"affine": affine, "track_running_stats": tracks, "momentum": momentum}
                            name = f"{kind} {shape} training={training} tracks={tracks} affine={affine} momentum={momentum}"
                            yield name, (lambda nn, k=kind, o=options: getattr(nn, k)(3, **o)), shape, training
    for shape in [(0, 4, 3), (1, 4, 1), (0, 4), (1, 4), (2, 4), (1, 4, 2)]:
        yield f"GroupNorm {shape}", (lambda nn: nn.GroupNorm(4, 4)), shape, True
        yield f"GroupNorm of pairs {shape}", (lambda nn: nn.GroupNorm(2, 4, affine=False)), shape, True
    for shape in [(0, 4), (1, 4), (2, 0, 4)]:
        yield f"LayerNorm {shape}", (lambda nn: nn.LayerNorm(4)), shape, True
        yield f"RMSNorm {shape}", (lambda nn: nn.RMSNorm(4)), shape, True
    for shape in [(2, 1), (0, 1), (2, 0)]:
        yield f"LayerNorm of {shape[-1]} {shape}", (lambda nn, n=shape[-1]: nn.LayerNorm(n)), shape, True
    for shape in [(0, 3), (1, 3), (2, 0, 3)]:
        yield f"Linear {shape}", (lambda nn: nn.Linear(3, 2)), shape, True
    yield "Linear of nothing", (lambda nn: nn.Linear(0, 2)), (3, 0), True
    for n in (1, 2, 3):
        for shape in [(0, 3) + (4,) * n, (1, 3) + (4,) * n, (1, 3) + (2,) * n, (2, 3, 0) + (4,) * (n - 1)]:
            for kind in ("Conv", "ConvTranspose"):
                yield f"{kind}{n}d {shape}", (lambda nn, k=f"{kind}{n}d": getattr(nn, k)(3, 2, 3)), shape, True
            yield f"Conv{n}d padded {shape}", (lambda nn, k=f"Conv{n}d": getattr(nn, k)(3, 2, 3, padding=1)), shape, True
            for kind in ("MaxPool", "AvgPool", "AdaptiveMaxPool", "AdaptiveAvgPool"):
                yield f"{kind}{n}d {shape}", (lambda nn, k=f"{kind}{n}d": getattr(nn, k)(2)), shape, True
    for kind in PLAIN:
        for shape in [(0, 3), (1, 1), (0,)]:
            yield f"{kind} {shape}", (lambda nn, k=kind: getattr(nn, k)()), shape, True
    for kind in ("Softmax", "LogSoftmax", "Softmin"):
        for shape in [(0, 3), (2, 0), (1, 1)]:
            yield f"{kind} {shape}", (lambda nn, k=kind: getattr(nn, k)(1)), shape, True
    for kind in ("RNN", "GRU", "LSTM"):
        for shape in [(0, 2, 3), (4, 0, 3), (1, 1, 3)]:
            yield f"{kind} {shape}", (lambda nn, k=kind: getattr(nn, k)(3, 2)), shape, True
        for shape in [(0, 2, 3), (2, 0, 3)]:
            yield f"{kind} batch first {shape}", (lambda nn, k=kind: getattr(nn, k)(3, 2, batch_first=True)), shape, True
    for shape in [(0, 2, 4), (1, 1, 4)]:
        yield f"TransformerEncoderLayer {shape}", (lambda nn: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)), shape, True


def weighed(f, weight=None, **options):
    """A loss of classes with one weight for all."""

    def loss(m, x, target, reduction):
        given = {} if weight is None else {"weight": m.tensor(np.full(x.shape[1], weight, "float32"))}
        return getattr(m.nn.functional, f)(x, target, reduction=reduction, **given, **options)

    return loss


def losses():
    """Name, function, and shapes or data of its operands."""
    of_pairs = ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits", "kl_div", "soft_margin_loss",
                "poisson_nll_loss", "hinge_embedding_loss", "multilabel_soft_margin_loss"]  # fmt: skip
    for shape in [(0, 3), (1, 1), (0,), (2, 0)]:
        for name in of_pairs:
            yield name, (lambda m, x, y, reduction, f=name: getattr(m.nn.functional, f)(x, y, reduction=reduction)), [shape, shape]
        yield "binary_cross_entropy", (lambda m, x, y, reduction: m.nn.functional.binary_cross_entropy(x.sigmoid(), y.sigmoid(), reduction=reduction)), [shape] * 2
        yield "gaussian_nll_loss", (lambda m, x, y, reduction: m.nn.functional.gaussian_nll_loss(x, y, y * 0 + 1, reduction=reduction)), [shape, shape]
    none = lambda *shape: np.zeros(shape, "int64")  # noqa: E731
    for shape, target in [((0, 3), none(0)), ((1, 3), none(1)), ((1, 1), none(1)), ((0, 3, 2), none(0, 2)), ((2, 3, 0), none(2, 0))]:
        for name, f in {
            "cross_entropy": weighed("cross_entropy"), "nll_loss": weighed("nll_loss"), "smoothed": weighed("cross_entropy", label_smoothing=0.1),
            "weighed": weighed("cross_entropy", 0.5), "of weight 0": weighed("cross_entropy", 0.0), "all ignored": weighed("cross_entropy", ignore_index=0),
            "all ignored, smoothed": weighed("cross_entropy", ignore_index=0, label_smoothing=0.1), "nll_loss all ignored": weighed("nll_loss", ignore_index=0),
        }.items():  # fmt: skip
            yield name, f, [shape, target]
    yield "cross_entropy of shares", weighed("cross_entropy"), [(0, 3), (0, 3)]
    yield "margin_ranking_loss", (lambda m, x, y, z, reduction: m.nn.functional.margin_ranking_loss(x, y, z, reduction=reduction)), [(0,), (0,), (0,)]
    yield "triplet_margin_loss", (lambda m, x, y, z, reduction: m.nn.functional.triplet_margin_loss(x, y, z, reduction=reduction)), [(0, 3)] * 3
    yield "cosine_embedding_loss", (lambda m, x, y, z, reduction: m.nn.functional.cosine_embedding_loss(x, y, z, reduction=reduction)), [(0, 3), (0, 3), (0,)]


REDUCTIONS = {
    "mean": lambda m, x: x.mean(), "mean 0": lambda m, x: x.mean(0), "var": lambda m, x: x.var(), "std": lambda m, x: x.std(), "var 0": lambda m, x: x.var(0),
    "sum 0": lambda m, x: x.sum(0), "prod": lambda m, x: x.prod(), "logsumexp": lambda m, x: m.logsumexp(x, 0), "cumsum": lambda m, x: x.cumsum(0),
    "norm": lambda m, x: x.norm(), "vector_norm 0.5": lambda m, x: m.linalg.vector_norm(x, 0.5), "vector_norm 0": lambda m, x: m.linalg.vector_norm(x, 0),
    "vector_norm 3": lambda m, x: m.linalg.vector_norm(x, 3), "normalize": lambda m, x: m.nn.functional.normalize(x, dim=0), "softmax": lambda m, x: x.softmax(0),
    "nanmean": lambda m, x: x.nanmean(), "nansum": lambda m, x: x.nansum(), "sort": lambda m, x: m.sort(x, 0)[0], "var_mean": lambda m, x: m.var_mean(x),
    "std_mean": lambda m, x: m.std_mean(x),
}  # fmt: skip


def lost(m, f, operands, reduction):
    data = [x if isinstance(x, np.ndarray) else numbers(i, *x) for i, x in enumerate(operands)]
    tensors = [m.tensor(x, requires_grad=i == 0) for i, x in enumerate(data)]
    loss = f(m, *tensors, reduction=reduction)
    loss.sum().backward()
    return [plain(loss), plain(tensors[0].grad)]


def run(m):
    """What every case gives, by name."""
    found = {name: told(lambda: passed(m, make, shape, training)) for name, make, shape, training in layers()}
    for name, f, operands in losses():
        for reduction in ("mean", "sum", "none"):
            shapes = [list(getattr(x, "shape", x)) for x in operands]
            found[f"{name} {shapes} {reduction}"] = told(lambda: lost(m, f, operands, reduction))
    for shape in [(0, 3), (2, 0), (0,), (1,), (1, 1)]:
        for name, f in REDUCTIONS.items():
            found[f"{name} of {shape}"] = told(lambda: plain(f(m, m.tensor(numbers(0, *shape)))))
    return found


def write():
    """Asks PyTorch."""
    import torch

    warnings.simplefilter("ignore")
    groups = {}
    for name, result in run(torch).items():
        groups.setdefault(json.dumps(result), []).append(name)
    FILE.write_text("[" + ",\n".join(f"[{json.dumps(names)}, {result}]" for result, names in groups.items()) + "]\n")
    print(sum(map(len, groups.values())), "cases,", len(groups), "results")


if __name__ == "__main__":
    write()
