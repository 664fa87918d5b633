#!/usr/bin/env python3
"""Writes optim/tests/data: steps of every optimizer and rates of every schedule, by PyTorch.

usage: parity_optim.py            (needs torch; made with 2.15)

Each line of torch_steps.txt is a name, a step and the parameter after it. Vectors start as
2 sin(0.7 i), the gradient of step t (from 0) is 2 sin((0.3 + 0.5 t) i); matrices are 3 by 2 in
row-major order of the same numbers. LAMB and Lion are not in PyTorch: they are written here from
their papers. Muon is PyTorch's with its rounding to bf16 switched off.

Each line of torch_rates.txt is a name and the rate of each step, or for the plateau the result
and the rate after it, alternating.

Each line of torch_composed.txt is a random program from the rate 2: schedules that are stepped
together, and after a bar operations with the rate after each. `step` steps all schedules, `see`
gives the plateau a result, `half` halves the rate by hand.

Each line of torch_lbfgs.txt is a problem, the number of a step, the loss that the step gave and the parameters after it.
"""
import inspect
import math
import pathlib
import random

import torch
from torch.optim import _muon, lr_scheduler

torch.set_default_dtype(torch.float64)
DATA = pathlib.Path(__file__).resolve().parent.parent / "optim/tests/data"


def wave(frequency, shape=(6,)):
    return (2 * torch.sin(torch.arange(6) * frequency)).reshape(shape)


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, algorithm 2."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (b1, b2), lr = group["betas"], group["lr"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                update = torch.sign(b1 * m + (1 - b1) * p.grad)
                p.sub_(lr * (update + group["weight_decay"] * p))
                m.copy_(b2 * m + (1 - b2) * p.grad)


class Lamb(torch.optim.Optimizer):
    """You et al. 2020, algorithm 2, with phi(x) = x."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                t = state["t"] = state.get("t", 0) + 1
                m = state.setdefault("m", torch.zeros_like(p))
                v = state.setdefault("v", torch.zeros_like(p))
                m.copy_(b1 * m + (1 - b1) * p.grad)
                v.copy_(b2 * v + (1 - b2) * p.grad**2)
                r = (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + group["eps"])
                u = r + group["weight_decay"] * p
                p.sub_(group["lr"] * p.norm() / u.norm() * u)


def exact_muon():
    source = inspect.getsource(_muon._zeropower_via_newtonschulz)
    exec(source.replace("torch.bfloat16", "torch.float64"), _muon.__dict__)


def steps():
    o = torch.optim
    exact_muon()
    vector = [
        ("sgd", o.SGD, dict(lr=0.1), 3),
        ("sgd_decay", o.SGD, dict(lr=0.1, weight_decay=0.3), 3),
        ("momentum", o.SGD, dict(lr=0.1, momentum=0.9), 3),
        ("dampening", o.SGD, dict(lr=0.1, momentum=0.9, dampening=0.4, weight_decay=0.01), 3),
        ("nesterov", o.SGD, dict(lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.01), 3),
        ("adam", o.Adam, dict(lr=0.01), 3),
        ("adam_decay", o.Adam, dict(lr=0.01, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1), 3),
        ("amsgrad", o.Adam, dict(lr=0.01, betas=(0.5, 0.6), amsgrad=True), 5),
        ("adamw", o.AdamW, dict(lr=0.01, weight_decay=0.01), 3),
        ("adamw_32", o.AdamW, dict(lr=3e-4, weight_decay=0.01), 3),
        ("rmsprop", o.RMSprop, dict(lr=0.01), 3),
        ("rmsprop_all", o.RMSprop, dict(lr=0.02, alpha=0.9, eps=1e-6, weight_decay=0.1,
                                        momentum=0.8, centered=True), 4),
        ("adagrad", o.Adagrad, dict(lr=0.1), 3),
        ("adagrad_all", o.Adagrad, dict(lr=0.1, lr_decay=0.2, weight_decay=0.1,
                                        initial_accumulator_value=0.3, eps=1e-3), 3),
        ("adadelta", o.Adadelta, dict(), 3),
        ("adadelta_all", o.Adadelta, dict(lr=0.5, rho=0.8, eps=1e-3, weight_decay=0.1), 3),
        ("rprop", o.Rprop, dict(), 5),
        ("rprop_all", o.Rprop, dict(lr=0.1, etas=(0.4, 1.5), step_sizes=(0.08, 0.12)), 5),
        ("adamax", o.Adamax, dict(), 3),
        ("adamax_decay", o.Adamax, dict(lr=0.1, betas=(0.8, 0.9), weight_decay=0.1), 3),
        ("nadam", o.NAdam, dict(), 3),
        ("nadam_decay", o.NAdam, dict(lr=0.1, betas=(0.8, 0.9), weight_decay=0.1,
                                      momentum_decay=0.1), 3),
        ("nadam_decoupled", o.NAdam, dict(lr=0.1, weight_decay=0.1,
                                          decoupled_weight_decay=True), 3),
        ("radam", o.RAdam, dict(lr=0.01), 8),
        ("radam_decay", o.RAdam, dict(lr=0.1, betas=(0.8, 0.9), weight_decay=0.1), 8),
        ("radam_decoupled", o.RAdam, dict(lr=0.1, betas=(0.8, 0.9), weight_decay=0.1,
                                          decoupled_weight_decay=True), 8),
        ("lamb", Lamb, dict(lr=0.01), 3),
        ("lion", Lion, dict(lr=0.01), 3),
        ("lion_decay", Lion, dict(lr=0.01, betas=(0.5, 0.8), weight_decay=0.1), 4),
    ]
    matrix = [
        ("muon_tall", o.Muon, dict(lr=0.1), 3, (3, 2)),
        ("muon_wide", o.Muon, dict(lr=0.1, momentum=0.8, nesterov=False, weight_decay=0.0), 3,
         (2, 3)),
    ]
    lines = []
    for name, make, options, n, *shape in vector + matrix:
        shape = shape[0] if shape else (6,)
        p = torch.nn.Parameter(wave(0.7, shape))
        optimizer = make([p], **options)
        for t in range(n):
            p.grad = wave(0.3 + 0.5 * t, shape)
            optimizer.step()
            values = " ".join(repr(x) for x in p.detach().flatten().tolist())
            lines.append(f"{name} {t + 1} {values}")
    return lines


def rates():
    s = lr_scheduler
    table = [
        ("linear", lambda o: s.LinearLR(o, 0.25, 0.75, 10), 14),
        ("cosine", lambda o: s.CosineAnnealingLR(o, 20, 0.1), 20),
        ("cosine_restarts", lambda o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.1), 40),
        ("cosine_repeats", lambda o: s.CosineAnnealingWarmRestarts(o, 5, 1, 0.1), 20),
        ("steps", lambda o: s.StepLR(o, 4, 0.5), 20),
        ("multistep", lambda o: s.MultiStepLR(o, [3, 7, 15], 0.5), 20),
        ("exponential", lambda o: s.ExponentialLR(o, 0.9), 20),
        ("polynomial", lambda o: s.PolynomialLR(o, 12, 2.0), 20),
        ("one_cycle", lambda o: s.OneCycleLR(o, 2.0, total_steps=40), 40),
    ]
    lines = []
    for name, make, n in table:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
        scheduler = make(optimizer)
        values = []
        for _ in range(n):
            values.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        lines.append(f"{name} " + " ".join(map(repr, values)))
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    plateau = s.ReduceLROnPlateau(optimizer, factor=0.3, patience=2, threshold=0.05, cooldown=2,
                                  min_lr=0.1)
    pairs = []
    for t in range(40):
        result = 1.0 + abs(math.sin(t * 0.7)) / (1 + t)
        plateau.step(result)
        pairs += [result, optimizer.param_groups[0]["lr"]]
    lines.append("plateau " + " ".join(map(repr, pairs)))
    return lines


def composed():
    s, rng, lines = lr_scheduler, random.Random(0), []
    n, share = (lambda: rng.randint(1, 9)), (lambda: rng.choice([0.25, 0.5, 0.9]))
    kinds = [
        ("linear", lambda: (n(), share(), rng.choice([1.0, 0.25])), lambda o, k, a, b: s.LinearLR(o, a, b, k)),
        ("cosine", lambda: (rng.randint(20, 30),), lambda o, k: s.CosineAnnealingLR(o, k)),
        ("steps", lambda: (n(), share()), s.StepLR),
        ("multistep", lambda: (share(), n(), n(), n()), lambda o, g, *at: s.MultiStepLR(o, at, g)),
        ("exponential", lambda: (share(),), s.ExponentialLR),
        ("polynomial", lambda: (rng.randint(5, 20), rng.choice([1.0, 2.0])), s.PolynomialLR),
    ]
    for _ in range(60):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
        chosen, made = [], []
        for name, options, make in rng.sample(kinds, rng.randint(1, 3)):
            values = options()
            chosen.append(" ".join([name, *map(repr, values)]))
            made.append(make(optimizer, *values))
        plateau = s.ReduceLROnPlateau(optimizer, factor=0.3, patience=1, cooldown=1, threshold=0.05)
        line = [";".join(chosen)]
        for _ in range(18):
            kind = rng.choice(["step", "step", "step", "see", "see", "half"])
            if kind == "step":
                optimizer.step()
                for scheduler in made:
                    scheduler.step()
            elif kind == "see":
                result = rng.choice([1.0, 1.5, 0.5, 2.0])
                plateau.step(result)
                kind = f"see {result!r}"
            else:
                optimizer.param_groups[0]["lr"] *= 0.5
            line.append(f"{kind} {optimizer.param_groups[0]['lr']!r}")
        lines.append("|".join(line))
    return lines


def lbfgs():
    """Rosenbrock's valley from (-1.2, 1), and a line through a hyperbolic tangent, in f64."""
    lines = []
    waves = torch.tensor([[math.sin(1.3 * i + 0.7 * j) for j in range(3)] for i in range(12)], dtype=torch.float64)
    target = torch.tensor([math.cos(0.9 * i) for i in range(12)], dtype=torch.float64)

    def valley(x):
        return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

    def line(w, b):
        return ((torch.tanh(waves @ w + b) - target) ** 2).mean() + 0.01 * (w**2).sum()

    starts = {"valley": ([[-1.2, 1.0]], valley), "line": ([[0.1, -0.2, 0.3], 0.5], line)}
    runs = [
        ("valley", 6, dict(lr=0.1, max_iter=4)),
        ("valley_wolfe", 12, dict(line_search_fn="strong_wolfe", max_iter=3)),
        ("valley_short", 12, dict(line_search_fn="strong_wolfe", max_iter=4, history_size=2)),
        ("line", 6, dict(lr=0.5, max_iter=5)),
        ("line_wolfe", 5, dict(line_search_fn="strong_wolfe", max_iter=5, max_eval=5)),
    ]
    for name, steps, options in runs:
        start, loss = starts[name.split("_")[0]]
        params = [torch.nn.Parameter(torch.tensor(x, dtype=torch.float64)) for x in start]
        optimizer = torch.optim.LBFGS(params, **options)

        def closure():
            optimizer.zero_grad()
            value = loss(*params)
            value.backward()
            return value

        for step in range(steps):
            first = float(optimizer.step(closure))
            values = [float(x) for p in params for x in p.flatten()]
            lines.append(" ".join([name, str(step + 1), repr(first), *map(repr, values)]))
    return lines


tables = [("torch_lbfgs.txt", lbfgs), ("torch_steps.txt", steps), ("torch_rates.txt", rates), ("torch_composed.txt", composed)]
for name, lines in [(name, make()) for name, make in tables]:
    (DATA / name).write_text("\n".join(lines) + "\n")
    print(name, len(lines), "lines")
