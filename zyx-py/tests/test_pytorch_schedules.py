"""Rates of schedules: random programs of several schedules, plateaus, rates set by hand and loaded state give PyTorch's
(`pytorch_schedules.py`), and laws that need no PyTorch.
"""

import json
import random

import pytest
import zyx
from pytorch_schedules import FILE, FUNCTIONS, a_program, a_schedule, made, run
from zyx import nn, optim
from zyx.optim import lr_scheduler

PROGRAMS = json.loads(FILE.read_text())


def numbers(found):
    """Rates and momenta one after the other; the name of an error stays."""
    return [x for step in found for x in ([step] if isinstance(step, str) else [x for group in step for x in group])]


@pytest.mark.parametrize("part", range(10))
def test_programs_give_the_rates_of_pytorch(part):
    for i, (program, expected) in enumerate(PROGRAMS):
        if i % 10 == part:
            found, wanted = numbers(run(zyx, program)), numbers(expected)
            # Close to 0, where steps cancel, by what the sizes before allow.
            close = [a == b or not isinstance(a, str) and a == pytest.approx(b, rel=1e-6, abs=1e-9) for a, b in zip(found, wanted)]
            assert len(found) == len(wanted) and all(close), (i, program, found, wanted)


def optimizer(rates, **options):
    return optim.SGD([{"params": [nn.Parameter(zyx.ones(2))], "lr": rate} for rate in rates], **options)


def rates(of):
    return [group["lr"] for group in of.param_groups]


def test_factors_multiply():
    """Schedules that multiply, and rates scaled by hand, give the product of what each gives alone."""
    rng = random.Random(0)
    factors = ("StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "PolynomialLR")
    for _ in range(60):
        schedules = []
        while len(schedules) < 3:
            schedule = a_schedule(rng, 2)
            if schedule[0] in factors:
                schedules.append(schedule)
        together, alone = optimizer([0.5, 0.1]), [optimizer([0.5, 0.1]) for _ in schedules]
        steppers = [made(zyx, together, schedule) for schedule in schedules]
        apart = [made(zyx, of, schedule) for of, schedule in zip(alone, schedules)]
        by_hand = 1.0
        for step in range(8):
            for group, first in zip((0, 1), (0.5, 0.1)):
                product = first * by_hand
                for of in alone:
                    product *= rates(of)[group] / first
                assert rates(together)[group] == pytest.approx(product, rel=1e-9, abs=1e-15), (schedules, step)
            if rng.random() < 0.3:
                by_hand *= 0.5
                for group in together.param_groups:
                    group["lr"] *= 0.5
            for scheduler in steppers + apart:
                scheduler.step()


def test_state_goes_on_as_if_nothing_had_happened():
    """Saved, loaded into new objects with other first rates, and stepped on: as without that."""
    for seed in range(150):
        program = [operation for operation in a_program(seed) if operation[0] not in ("load", "resume", "at")]
        straight = run(zyx, program)
        broken = [*program[:4], ["load", 0.777], *program[4:]]
        found = run(zyx, broken)
        if len(found) > 4:
            del found[4]
        assert numbers(found) == pytest.approx(numbers(straight), rel=1e-12) or numbers(found) == numbers(straight), (seed, program)


@pytest.mark.parametrize("name, options", [
    ("ExponentialLR", {"gamma": 0.9}),
    ("CosineAnnealingLR", {"T_max": 20, "eta_min": 0.01}),
    # At a milestone PyTorch's takes the step again.
    ("StepLR", {"step_size": 4}),
    ("LinearLR", {"total_iters": 12}),
    ("LambdaLR", {"lr_lambda": FUNCTIONS["inverse"]}),
    ("OneCycleLR", {"max_lr": 0.4, "total_steps": 20}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.4, "step_size_up": 3}),
])  # fmt: skip
def test_last_epoch_goes_on_from_the_state_of_an_optimizer(name, options):
    make = getattr(lr_scheduler, name)
    straight = optimizer([0.4], momentum=0.9)
    schedule = make(straight, **options)
    for _ in range(9):
        straight.step()
        schedule.step()
    fresh = optimizer([0.9], momentum=0.5)
    fresh.load_state_dict(straight.state_dict())
    assert fresh.param_groups[0]["initial_lr"] == straight.param_groups[0]["initial_lr"]
    resumed = make(fresh, **options, last_epoch=8)
    assert resumed.last_epoch == 9 and rates(fresh) == pytest.approx(rates(straight))
    for _ in range(5):
        for of, stepper in ((straight, schedule), (fresh, resumed)):
            of.step()
            stepper.step()
        assert rates(fresh) == pytest.approx(rates(straight))
        assert fresh.param_groups[0]["momentum"] == pytest.approx(straight.param_groups[0]["momentum"])
    with pytest.raises(KeyError, match="initial_lr"):
        make(optimizer([0.4], momentum=0.9), **options, last_epoch=8)


def test_state_has_all_options():
    a = zyx.nn.Parameter(zyx.ones(3))
    first = optim.AdamW([a], lr=0.3, betas=(0.7, 0.8), weight_decay=0.2, amsgrad=True, maximize=True)
    for _ in range(3):
        first.step((a * a).sum())
    second = optim.AdamW([zyx.nn.Parameter(a.detach())], lr=0.1)
    second.load_state_dict(first.state_dict())
    for key, value in first.param_groups[0].items():
        if key != "params":
            assert second.param_groups[0][key] == value
    (b,) = second.parameters()
    for of, x in ((first, a), (second, b)):
        of.step((x * x).sum())
    assert a.tolist() == b.tolist()
    groups = optimizer([0.3, 0.2], momentum=0.9)
    again = optimizer([0.1, 0.1])
    again.load_state_dict(groups.state_dict())
    assert rates(again) == [0.3, 0.2] and again.param_groups[1]["momentum"] == 0.9


def test_states_go_through_files(tmp_path):
    rng = random.Random(1)
    for k in range(40):
        schedule = a_schedule(rng, 1)
        of = optimizer([0.4], momentum=0.9)
        stepper = made(zyx, of, schedule)
        for _ in range(3):
            stepper.step()
        zyx.save({"optimizer": of.state_dict(), "schedule": stepper.state_dict()}, tmp_path / f"{k}")
        state = zyx.load(tmp_path / f"{k}")
        again = optimizer([0.7], momentum=0.5)
        resumed = made(zyx, again, schedule)
        again.load_state_dict(state["optimizer"])
        resumed.load_state_dict(state["schedule"])
        for _ in range(4):
            stepper.step()
            resumed.step()
            assert rates(again) == pytest.approx(rates(of)), schedule


def test_groups_are_dicts_whose_options_may_be_assigned_in_any_way():
    of = optimizer([0.3], momentum=0.5)
    (group,) = of.param_groups
    group.update(lr=0.2, momentum=0.6)
    group |= {"weight_decay": 0.1}
    assert of.lr == 0.2 and group.setdefault("initial_lr", 0.7) == 0.7 and group.setdefault("lr", 9.0) == 0.2
    x = of.parameters()[0]
    of.step((x * 0).sum())
    # Weight decay alone moves it: 1 - 0.2 * 0.1.
    assert x.tolist() == pytest.approx([0.98, 0.98])
    with pytest.raises(KeyError):
        group.update(nonsense=1)


def test_momentum_follows_without_another_plan():
    device = zyx.Device("cpu")
    x = zyx.nn.Parameter(zyx.ones(40, 40))
    of = optim.SGD([x], lr=0.1)
    schedule = lr_scheduler.OneCycleLR(of, 0.1, total_steps=30)
    native, misses = of._native, []
    for _ in range(12):
        of.step((x * x).sum())
        schedule.step()
        misses.append(device.stats()["plan_misses"] if hasattr(device, "stats") else 0)
    assert of._native is native and misses[-1] == misses[-6]
    assert of.param_groups[0]["momentum"] < 0.95
