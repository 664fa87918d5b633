"""Programs as users of PyTorch write them, and what PyTorch gives: `data/pytorch_ways.json`.

A program gets the library and gives numbers, names and lists of them. Data and initial weights are the same in both.

    python zyx-py/tests/pytorch_ways.py

writes the results again, with PyTorch; this needs `torch`.
"""

import copy
import json
import pathlib

import numpy as np

FILE = pathlib.Path(__file__).with_name("data") / "pytorch_ways.json"


def numbers(seed, *shape):
    return np.random.Generator(np.random.PCG64(seed)).normal(size=shape).astype("float32")


def plain(x):
    """Numbers, names and lists of them."""
    if isinstance(x, (list, tuple)):
        return [plain(item) for item in x]
    if hasattr(x, "detach"):
        x = x.detach().numpy()
    return np.asarray(x, "float64").tolist() if isinstance(x, np.ndarray) else x


class Found(list):
    """What a program found, as it is when it is appended: gradients of PyTorch change in place."""

    def __iadd__(self, more):
        self.extend(map(plain, more))
        return self


def initial(m, model):
    """Weights that are the same in both libraries."""
    state = {name: m.tensor(numbers(i, *x.shape) * 0.3) for i, (name, x) in enumerate(model.state_dict().items()) if x.is_floating_point()}
    model.load_state_dict(state, strict=False)
    return model


def network(m):
    nn = m.nn
    return initial(m, nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 2)))


def gradients_add_up(m):
    x = m.tensor(numbers(1, 3, 2), requires_grad=True)
    w = m.tensor(numbers(2, 2), requires_grad=True)
    c = m.tensor(numbers(3, 2))
    found = Found(map(plain, [x.grad is None, w.is_leaf, (x * w).is_leaf, c.is_leaf, (x * w).requires_grad, c.requires_grad]))
    (x * w * c).sum().backward()
    found += [x.grad, w.grad, c.grad is None]
    (x.exp() @ w).mean().backward()
    found += [x.grad, w.grad]
    w.grad = None
    (x * w).sum().backward()
    found += [x.grad, w.grad, w.grad.requires_grad]
    y = x.detach() * w
    y.backward(gradient=m.ones_like(y))
    (x * 2).backward(m.full((3, 2), 0.5))
    found += [x.grad, w.grad]
    with m.no_grad():
        found += [(x * w).requires_grad]
    z = m.tensor([1.0, 2.0])
    z.requires_grad_()
    (z**3).sum().backward()
    z.requires_grad = False
    found += [z.grad, z.requires_grad, (z * 2).requires_grad]
    return found


def one_graph_twice(m):
    x = m.tensor([2.0, 3.0], requires_grad=True)
    y = x**3
    y.sum().backward(retain_graph=True)
    (y * y).sum().backward()
    found = Found(map(plain, [x.grad]))
    x.grad = None
    (g,) = m.autograd.grad((x**3).sum(), x, create_graph=True)
    (g * g).sum().backward()
    found += [x.grad]
    a, b = m.tensor(1.5, requires_grad=True), m.tensor(2.5, requires_grad=True)
    (a * b).backward(inputs=[a])
    found += [a.grad, b.grad is None]
    found += [m.autograd.grad(a * 3, [a, b], allow_unused=True)[1] is None]
    m.autograd.backward([a * 2, a * b])
    found += [a.grad, b.grad]
    return found


def modules_forget_gradients(m):
    model, x = network(m), m.tensor(numbers(9, 5, 4))
    model(x).sum().backward()
    found = Found(map(plain, [[p.grad for p in model.parameters()]]))
    model.zero_grad()
    found += [all(p.grad is None for p in model.parameters())]
    optimizer = m.optim.SGD(model.parameters(), lr=0.1)
    model(x).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    found += [sum(p.grad.abs().sum().item() for p in model.parameters())]
    model(x).sum().backward()
    model[0].weight.requires_grad_(False)
    model(x).sum().backward()
    found += [[p.grad for p in model.parameters()]]
    optimizer.zero_grad()
    optimizer.step()
    found += [model[3].weight]
    return found


def gradients_are_clipped(m):
    found = Found()
    for norm_type in (2.0, 1.0, float("inf")):
        for limit in (0.1, 1e3):
            model, x = network(m), m.tensor(numbers(9, 5, 4))
            model(x).square().sum().backward()
            found += [m.nn.utils.clip_grad_norm_(model.parameters(), limit, norm_type=norm_type)]
            found += [[p.grad for p in model.parameters()]]
    m.nn.utils.clip_grad_value_(model.parameters(), clip_value=0.05)
    vector = m.nn.utils.parameters_to_vector(model.parameters())
    m.nn.utils.vector_to_parameters(vector * 2, model.parameters())
    found += [[p.grad for p in model.parameters()], vector, model[0].bias]
    return found


OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "maximize": True}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "amsgrad": True, "betas": (0.8, 0.9)}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.3, "eps": 1e-6, "fused": None, "foreach": False}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.5, "centered": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
    ("Adadelta", {"lr": 1.0}),
    ("Adamax", {"lr": 0.01}),
    ("NAdam", {"lr": 0.01}),
    ("RAdam", {"lr": 0.01}),
    ("Rprop", {"lr": 0.01}),
]


def train(m, model, optimizer, steps=6):
    x, y = m.tensor(numbers(11, 16, 4)), m.tensor(numbers(12, 16, 2))
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = m.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def optimizers_step(m):
    found = Found()
    for name, options in OPTIMIZERS:
        model = network(m)
        optimizer = getattr(m.optim, name)(model.parameters(), **options)
        found += [train(m, model, optimizer), [p for p in model.parameters()]]
    return found


def groups_step(m):
    model = network(m)
    groups = [
        {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.2},
        {"params": [p for p in model.parameters() if p.dim() < 2], "lr": 0.05},
    ]
    optimizer = m.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95), weight_decay=0.0)
    found = Found(map(plain, [train(m, model, optimizer)]))
    for group in optimizer.param_groups:
        group["lr"] *= 0.5
    found += [[group["lr"] for group in optimizer.param_groups], group["lr"], dict(group)["lr"], [group["weight_decay"] for group in optimizer.param_groups]]
    optimizer.param_groups[0]["weight_decay"] = 0.0
    found += [train(m, model, optimizer)]
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    found += [train(m, model, optimizer)]
    model.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    model, optimizer = copy.deepcopy((model, optimizer))
    found += [train(m, model, optimizer), optimizer.param_groups[0]["params"][0] is model[0].weight]
    tensor = m.tensor([1.0, -1.0], requires_grad=True)
    optimizer = m.optim.SGD([tensor], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (tensor**2).sum()
        loss.backward()
        return loss

    found += [optimizer.step(closure), tensor]
    return found


def gradients_of_batches(m):
    """Gradients of several batches make one step; two losses of one graph."""
    model, x, y = network(m), m.tensor(numbers(11, 16, 4)), m.tensor(numbers(12, 16, 2))
    optimizer, found = m.optim.AdamW(model.parameters(), lr=0.02), Found()
    for _ in range(3):
        for rows in range(0, 16, 4):
            loss = ((model(x[rows : rows + 4]) - y[rows : rows + 4]) ** 2).mean() / 4
            loss.backward()
            found.append(loss.item())
        found.append(m.nn.utils.clip_grad_norm_(model.parameters(), 0.5).item())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    found += [list(model.parameters())]
    return found


SCHEDULES = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 6]}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.1, "total_iters": 6}),
    ("PolynomialLR", {"total_iters": 8, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 8, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.001}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 12, "cycle_momentum": False}),
    ("OneCycleLR", {"max_lr": [0.5, 0.2], "epochs": 3, "steps_per_epoch": 4, "anneal_strategy": "linear", "cycle_momentum": False}),
    ("LambdaLR", {"lr_lambda": lambda step: 1 / (1 + step)}),
    ("MultiplicativeLR", {"lr_lambda": [lambda step: 0.9, lambda step: 0.5]}),
]


def schedules_set_rates(m):
    import warnings

    def optimizer():
        w = [m.nn.Parameter(m.ones(2)) for _ in range(2)]
        return m.optim.SGD([{"params": [w[0]]}, {"params": [w[1]], "lr": 0.3}], lr=0.1)

    found, kinds = Found(), m.optim.lr_scheduler
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, options in SCHEDULES:
            of = optimizer()
            schedule = getattr(kinds, name)(of, **options)
            rates = [schedule.get_last_lr()]
            for _ in range(11):
                of.step()
                schedule.step()
                rates.append([group["lr"] for group in of.param_groups])
            found.append(rates)
        of = optimizer()
        warm = kinds.LinearLR(of, 0.1, total_iters=3)
        schedule = kinds.SequentialLR(of, [warm, kinds.CosineAnnealingLR(of, 5)], milestones=[3])
        rates = [schedule.get_last_lr()]
        for _ in range(8):
            of.step()
            schedule.step()
            rates.append(schedule.get_last_lr())
        found.append(rates)
        for mode, results in (("min", [3, 2, 2, 2, 2, 1, 1, 1, 1, 1]), ("max", [3, 2, 2, 2, 2, 4, 4, 4, 4.1, 4])):
            of = optimizer()
            schedule = kinds.ReduceLROnPlateau(of, mode, factor=0.5, patience=1, cooldown=1, min_lr=0.02)
            for result in results:
                of.step()
                schedule.step(result)
                found.append([group["lr"] for group in of.param_groups])
        of = optimizer()
        schedule = kinds.StepLR(of, 2)
        for _ in range(3):
            of.step()
            schedule.step()
        fresh = optimizer()
        again = kinds.StepLR(fresh, 2)
        fresh.load_state_dict(of.state_dict())
        again.load_state_dict(schedule.state_dict())
        again.step()
    found += [again.get_last_lr(), again.last_epoch]
    return found


def modules_have_names(m):
    nn = m.nn

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = nn.BatchNorm1d(width)
            self.lin = nn.Linear(width, width, bias=False)
            self.register_buffer("mask", m.ones(width))
            self.register_buffer("scratch", m.zeros(1), persistent=False)
            self.scale = nn.Parameter(m.ones(1), requires_grad=False)

        def forward(self, x):
            return self.lin(self.norm(x) * self.mask) * self.scale

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict({"emb": nn.Embedding(7, 3), "blocks": nn.ModuleList([Block(3), Block(3)])})
            self.head = nn.Linear(3, 7, bias=False)
            self.parts.emb.weight = self.head.weight

        def forward(self, i):
            x = self.parts["emb"](i)
            for block in self.parts.blocks:
                x = x + block(x)
            return self.head(x)

    model = Net()
    found = Found(map(plain, [sorted(model.state_dict()), [n for n, _ in model.named_parameters()], sorted(n for n, _ in model.named_buffers())]))
    found += [len(list(model.parameters())), len(list(model.buffers())), sum(p.numel() for p in model.parameters() if p.requires_grad)]
    found += [next(model.parameters()).shape[0], [n for n, _ in model.named_modules()], [n for n, _ in model.named_children()]]
    found += [[n for n, _ in model.named_parameters(recurse=False)], [n for n, _ in model.parts.blocks[0].named_parameters(recurse=False)]]
    initial(m, model.parts.blocks[0])
    initial(m, model.parts.blocks[1])
    model.head.weight.data = m.tensor(numbers(5, 7, 3))
    optimizer, rows, losses = m.optim.SGD(model.parameters(), lr=0.2, momentum=0.5), m.tensor(np.arange(7)), []
    for _ in range(4):
        loss = nn.functional.cross_entropy(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    found += [losses, model.parts.emb.weight, model.head.weight.grad, model.parts.blocks[0].norm.running_mean]
    model.eval()
    with m.no_grad():
        found += [model(rows)]
    again = copy.deepcopy(model)
    again.head.weight.data = again.head.weight.data * 0
    found += [again.parts.emb.weight.abs().sum(), model.head.weight.abs().sum(), again.training]
    model.load_state_dict({k: v * 0 if v.is_floating_point() else v for k, v in model.state_dict().items()})
    found += [model(rows).abs().sum(), model.get_submodule("parts.blocks.1.lin").weight.shape[0], model.get_parameter("head.weight").shape[1]]
    result = model.load_state_dict({"head.weight": m.tensor(numbers(5, 7, 3))}, strict=False)
    found += [sorted(key for key in result.missing_keys if "num_batches" not in key), result.unexpected_keys, model.parts.emb.weight]
    return found


def options_of_functions(m):
    x, y = m.tensor(numbers(1, 3, 4)), m.tensor(numbers(2, 3, 4))
    i = m.tensor([[0, 1, 2, 0], [2, 0, 0, 1]])
    F = m.nn.functional
    found = [m.add(x, y, alpha=2), x.sub(y, alpha=0.5), m.rsub(x, 1.0), m.sub(input=x, other=1), m.max(x, y), m.min(x, other=y), x.max()]
    found += [m.diff(x, dim=0, prepend=y, append=y[:1]), x.diff(2, append=y), x.clamp_min(0.5), x.clamp_max(0.5), m.positive(x)]
    found += [x.reshape_as(y.t()), m.fill(x, 2.5), x.short(), (x * 0).byte(), x.char(), x.new_empty((2, 3)).shape[1], x.new_full((2,), fill_value=3)]
    found += [m.var_mean(x, dim=1, keepdim=True), m.std_mean(x, 0, unbiased=False), m.var_mean(x), m.var_mean(x, dim=(0, 1), keepdim=True)]
    found += [m.scatter(x, 0, i, y[:2]), x.scatter(0, i, 7.0), x.scatter(0, i, y[:2], reduce="add"), x.scatter(dim=0, index=i[:, :1], value=2.0, reduce="multiply")]
    found += [m.nansum(x, dim=1, dtype=m.float64), m.norm(x, dim=1), F.softmin(x, dim=1, dtype=m.float64), F.pairwise_distance(x, y, keepdim=True)]
    found += [F.avg_pool2d(x.view(1, 1, 3, 4), 2, stride=1, padding=1, divisor_override=3), m.permute(input=x, dims=(1, 0)), x.view(size=(4, 3))]
    found += [m.flip(x, dims=(0,)), m.roll(x, shifts=1, dims=1), x.unflatten(1, sizes=(2, 2)), x.repeat_interleave(repeats=2, dim=1), x.tile(dims=(1, 2))]
    found += [m.full(size=(2,), fill_value=1.5), m.linspace(0, 1, steps=5), m.chunk(x, chunks=2, dim=1)[1], m.split(x, 3, dim=1)[1], x.size(0), x.size()[1]]
    found += [m.zeros(size=(2, 1)), x.view(m.int32), m.where(x > 0, input=x, other=y), m.isin(i, m.tensor([0, 2]), invert=True), m.tensordot(x, y.t(), dims=1)]
    found += [m.linalg.eigvalsh(m.tensor(numbers(5, 3, 3)), UPLO="U"), m.linalg.matrix_rank(x, atol=0.5, rtol=0.0), m.linalg.norm(x, dtype=m.float64)]
    found += [m.linalg.solve(x[:3, :3], y[:2, :3], left=False), m.linalg.pinv(x, rtol=0.3), m.linalg.cond(x[:, :3], 1), m.linalg.vector_norm(x, dtype=m.float64)]
    found += [F.cross_entropy(input=x, target=m.tensor([1, 0, 3])), F.linear(input=x, weight=y), F.conv_transpose2d(x.view(1, 3, 4), y.view(1, 3, 2, 2))]
    found += [m.mean(input=x, dim=0), m.softmax(input=x, dim=-1), m.matmul(input=x, other=y.t()), m.stack([x, y]).size(), m.empty(2, 3, dtype=m.long).dtype == m.int64]
    return [list(f) if type(f) is tuple and f and hasattr(f[0], "detach") else tuple(f) if type(f).__name__ == "Size" else f for f in found]


def transforms(m):
    x, fft = m.tensor(numbers(1, 3, 4, 6)), m.fft
    pairs = m.tensor(numbers(2, 4, 6, 2))
    real = m.view_as_real if hasattr(m, "view_as_real") else (lambda z: z)
    given = m.view_as_complex(pairs) if hasattr(m, "view_as_complex") else pairs
    found = [fft.rfft(x), fft.rfft(x, n=5, dim=1, norm="ortho"), fft.fft(given, dim=0), fft.ifft(given, 8), fft.rfft2(x), fft.rfftn(x)]
    found += [fft.rfftn(x, s=(3, 8), dim=(0, 2)), fft.fft2(given), fft.ifft2(given), fft.fftn(given), fft.ifftn(given, dim=(0,), norm="forward")]
    back = [fft.irfft(fft.rfft(x)), fft.irfft2(fft.rfft2(x)), fft.irfftn(fft.rfftn(x), s=(3, 4, 6)), fft.irfft(given, 5, dim=0), fft.irfftn(given)]
    return [real(y) for y in found] + back + [fft.fftfreq(5, d=0.5), fft.rfftfreq(6), fft.fftshift(x, dim=1), fft.ifftshift(x)]


def batches(m):
    data = m.utils.data
    x, y = m.arange(10), m.arange(10).float() * 2

    class Squares(data.Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, i):
            return {"x": m.tensor(float(i)), "n": i, "a": np.array([i, i + 1], "float32"), "t": (i, 2.0)}

    found = Found(map(plain, [[[a, b] for a, b in data.DataLoader(data.TensorDataset(x, y), batch_size=4)]]))
    found += [[a.shape[0] for a, _ in data.DataLoader(data.TensorDataset(x, y), batch_size=4, drop_last=True)]]
    for batch in data.DataLoader(Squares(), batch_size=3):
        found += [[batch["x"], batch["n"], batch["a"], batch["t"][0], batch["t"][1], str(batch["n"].dtype).split(".")[-1] in ("int64", "i64")]]
    found += [sorted(n.item() for (n,) in data.DataLoader(data.TensorDataset(x), shuffle=True))]
    found += [len(data.DataLoader(Squares(), 2)), len(data.DataLoader(Squares(), 2, drop_last=True)), len(data.ConcatDataset([Squares(), Squares()]))]
    parts = data.random_split(range(10), [0.75, 0.25])
    found += [[len(part) for part in parts], sorted(i for part in parts for i in part)]
    return found


PROGRAMS = [gradients_add_up, one_graph_twice, modules_forget_gradients, gradients_are_clipped, optimizers_step, groups_step,
            gradients_of_batches, schedules_set_rates, modules_have_names, options_of_functions, transforms, batches]  # fmt: skip


def write():
    """Asks PyTorch."""
    import warnings

    import torch

    warnings.simplefilter("ignore")
    lines = [f"{json.dumps(program.__name__)}: {json.dumps(shortened(plain(program(torch))))}" for program in PROGRAMS]
    FILE.write_text("{" + ",\n".join(lines) + "}\n")


def shortened(x):
    return [shortened(item) for item in x] if isinstance(x, list) else float(f"{x:.7g}") if isinstance(x, float) else x


if __name__ == "__main__":
    write()
