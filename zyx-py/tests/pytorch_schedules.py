"""Random programs of optimizers and schedules, and the rates that PyTorch gives for them.

usage: pytorch_schedules.py [seeds]      (needs torch; the file was written with 2.15)

Writes data/pytorch_schedules.json: programs as lists of operations, and after each operation the rate and the momentum of
every group. `run` plays a program with either library. Programs step one to three schedules of all kinds together, nest
them in `SequentialLR` and `ChainedScheduler`, lower rates by plateaus, set rates by hand, and go on with new optimizers
and schedules from saved state or by `last_epoch`.
"""

import json
import pathlib
import random
import sys
import warnings

FILE = pathlib.Path(__file__).with_name("data") / "pytorch_schedules.json"


class Decay:
    """A function with state, which schedules save."""

    def __init__(self, rate):
        self.rate = rate

    def __call__(self, x):
        return self.rate**x


FUNCTIONS = {"inverse": lambda x: 1 / (1 + x), "tenth": lambda x: 0.9, "odd": lambda x: 0.5 + x % 2, "decay": Decay(0.8)}
OPTIMIZERS = [("SGD", {}), ("SGD", {"momentum": 0.9}), ("Adam", {"betas": [0.8, 0.99]}), ("RMSprop", {"momentum": 0.5}), ("AdamW", {})]


def a_schedule(rng, groups):
    """Name and options of a schedule."""
    f = lambda: rng.choice(list(FUNCTIONS))  # noqa: E731
    n = lambda: rng.randint(1, 7)  # noqa: E731
    share = lambda: rng.choice([0.1, 0.3, 0.5, 0.9])  # noqa: E731
    low = lambda: rng.choice([0.0, 0.0, 0.01, 0.2])  # noqa: E731
    rate = lambda: rng.choice([0.7, 0.1, [0.2, 0.9][:groups] if groups == 2 else 0.4])  # noqa: E731
    return rng.choice([
        lambda: ("LambdaLR", {"lr_lambda": f()}),
        lambda: ("MultiplicativeLR", {"lr_lambda": f()}),
        lambda: ("StepLR", {"step_size": n(), "gamma": share()}),
        lambda: ("MultiStepLR", {"milestones": [n(), n(), n()], "gamma": share()}),
        lambda: ("ConstantLR", {"factor": share(), "total_iters": n()}),
        lambda: ("LinearLR", {"start_factor": share(), "end_factor": rng.choice([1.0, 0.25]), "total_iters": n()}),
        lambda: ("ExponentialLR", {"gamma": share()}),
        lambda: ("PolynomialLR", {"total_iters": n(), "power": rng.choice([1.0, 2.0, 0.5])}),
        lambda: ("CosineAnnealingLR", {"T_max": n(), "eta_min": low()}),
        lambda: ("CosineAnnealingWarmRestarts", {"T_0": n(), "T_mult": rng.randint(1, 3), "eta_min": low()}),
        lambda: ("OneCycleLR", {"max_lr": rate(), "total_steps": rng.randint(12, 20), "pct_start": share(), "three_phase": rng.random() < 0.3,
                                "anneal_strategy": rng.choice(["cos", "linear"]), "cycle_momentum": rng.random() < 0.6}),
        lambda: ("CyclicLR", {"base_lr": 0.05, "max_lr": rate(), "step_size_up": n(), "step_size_down": rng.choice([None, n()]), "gamma": share(),
                              "mode": rng.choice(["triangular", "triangular2", "exp_range"]), "scale_fn": rng.choice([None, None, f()]),
                              "scale_mode": rng.choice(["cycle", "iterations"]), "cycle_momentum": rng.random() < 0.6}),
    ])()  # fmt: skip


def a_program(seed):
    """A list of operations, each a list of its name and arguments."""
    rng = random.Random(seed)
    groups = rng.choice([1, 1, 2])
    rates = [rng.choice([0.5, 0.1, 0.03, 1]) for _ in range(groups)]
    schedules = []
    for _ in range(rng.choice([1, 2, 2, 2, 3])):
        kind = rng.random()
        if kind < 0.2:
            parts = [a_schedule(rng, groups) for _ in range(rng.randint(2, 3))]
            stones = sorted(rng.sample(range(1, 10), len(parts) - 1))
            schedules.append(["SequentialLR", parts, stones])
        elif kind < 0.3:
            schedules.append(["ChainedScheduler", [a_schedule(rng, groups) for _ in range(rng.randint(1, 2))]])
        else:
            schedules.append(list(a_schedule(rng, groups)))
    plateau = {"mode": rng.choice(["min", "max"]), "factor": 0.5, "patience": rng.randint(0, 2), "cooldown": rng.randint(0, 1),
               "threshold_mode": rng.choice(["rel", "abs"]), "min_lr": rng.choice([0, 0.02])}  # fmt: skip
    program = [["make", *rng.choice(OPTIMIZERS), rates, schedules, plateau if rng.random() < 0.4 else None]]
    plain = all(len(schedule) == 2 and schedule[0] != "ChainedScheduler" for schedule in schedules)
    for _ in range(rng.randint(8, 14)):
        kind = rng.random()
        program.append(["step", [i for i in range(len(schedules)) if rng.random() < 0.9], rng.choice([3, 2, 2, 1, 1.5])])
        if kind < 0.1:
            program.append(["set", rng.randrange(groups), rng.choice([0.2, 0.05, 0.0])])
        elif kind < 0.2:
            program.append(["scale", rng.choice([0.5, 2.0])])
        elif kind < 0.3:
            program.append(["load", rng.choice([0.7, 0.01])])
        elif kind < 0.4 and plain:
            program.append(["resume", rng.choice([0.7, 0.01])])
        elif kind < 0.45:
            program.append(["at", rng.randrange(len(schedules)), rng.randint(0, 9)])
    return program


def run(m, program):
    """Rate and momentum of each group after each operation of a program; the last entry names an error that ended it."""
    found, state = [], None
    for name, *arguments in program:
        try:
            state = OPERATIONS[name](m, state, *arguments)
        except (ValueError, ZeroDivisionError, KeyError) as error:
            found.append(type(error).__name__)
            break
        found.append([[float(group["lr"]), momentum(group)] for group in state["optimizer"].param_groups])
    return found


def momentum(group):
    return float(group["betas"][0] if "betas" in group else group.get("momentum", 0))


def an_optimizer(m, kind, options, rates):
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    groups = [{"params": [m.nn.Parameter(m.ones(2))], "lr": rate} for rate in rates]
    return getattr(m.optim, kind)(groups, **options)


def made(m, optimizer, schedule, last_epoch=None):
    kinds, name = m.optim.lr_scheduler, schedule[0]
    if name == "SequentialLR":
        return kinds.SequentialLR(optimizer, [made(m, optimizer, part) for part in schedule[1]], schedule[2])
    if name == "ChainedScheduler":
        return kinds.ChainedScheduler([made(m, optimizer, part) for part in schedule[1]])
    options = dict(schedule[1])
    for key in ("lr_lambda", "scale_fn"):
        if options.get(key):
            options[key] = FUNCTIONS[options[key]]
    if last_epoch is not None:
        options["last_epoch"] = last_epoch
    return getattr(kinds, name)(optimizer, **options)


def make(m, _, kind, options, rates, schedules, plateau, optimizer=None):
    optimizer = an_optimizer(m, kind, options, rates) if optimizer is None else optimizer
    steppers = [made(m, optimizer, schedule) for schedule in schedules]
    lower = m.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **plateau) if plateau else None
    return {"recipe": [kind, options, rates, schedules, plateau], "optimizer": optimizer, "schedules": steppers, "plateau": lower}


def step(m, state, which, result):
    state["optimizer"].step()
    for i in which:
        state["schedules"][i].step()
    if state["plateau"]:
        state["plateau"].step(result)
    return state


def set_rate(m, state, group, rate):
    state["optimizer"].param_groups[group]["lr"] = rate
    return state


def scale(m, state, factor):
    for group in state["optimizer"].param_groups:
        group["lr"] *= factor
    return state


def load(m, state, rate):
    """New objects with other first rates, which load the state of all the old ones."""
    kind, options, rates, schedules, plateau = state["recipe"]
    fresh = make(m, None, kind, options, [rate for _ in rates], schedules, plateau)
    fresh["optimizer"].load_state_dict(state["optimizer"].state_dict())
    for new, old in zip(fresh["schedules"], state["schedules"]):
        new.load_state_dict(old.state_dict())
    if plateau:
        fresh["plateau"].load_state_dict(state["plateau"].state_dict())
    return fresh | {"recipe": state["recipe"]}


def resume(m, state, rate):
    """A new optimizer that loads the state of the old one, and new schedules that start at `last_epoch`."""
    kind, options, rates, schedules, _ = state["recipe"]
    optimizer = an_optimizer(m, kind, options, [rate for _ in rates])
    optimizer.load_state_dict(state["optimizer"].state_dict())
    steppers = [made(m, optimizer, schedule, old.last_epoch) for schedule, old in zip(schedules, state["schedules"])]
    return {"recipe": [*state["recipe"][:4], None], "optimizer": optimizer, "schedules": steppers, "plateau": None}


def at(m, state, which, epoch):
    """One schedule goes to a step."""
    if hasattr(state["schedules"][which], "_schedulers"):
        return state
    state["schedules"][which].step(epoch)
    return state


OPERATIONS = {"make": make, "step": step, "set": set_rate, "scale": scale, "load": load, "resume": resume, "at": at}


def write(seeds):
    """Asks PyTorch."""
    import torch

    warnings.simplefilter("ignore")
    lines = []
    for seed in range(seeds):
        program = a_program(seed)
        rates = json.loads(json.dumps(run(torch, json.loads(json.dumps(program)))), parse_float=lambda x: float(f"{float(x):.9g}"))
        lines.append(json.dumps([program, rates]))
    FILE.write_text("[" + ",\n".join(lines) + "]\n")
    print(len(lines), "programs")


if __name__ == "__main__":
    write(int(sys.argv[1]) if len(sys.argv) > 1 else 250)
