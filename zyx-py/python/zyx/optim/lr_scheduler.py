"""Schedules that change the learning rates of an optimizer at each `step()`, under the names, and with the values, of
`torch.optim.lr_scheduler`. `zyx.optim.schedule` has the same as functions of the step.

A step changes the rate that the group has now, by the ratio between two steps of the schedule: so several schedules
stepped together multiply, and a plateau's reduction or a rate set by hand stays. Where PyTorch computes the rate from the
first one (`LambdaLR`, `OneCycleLR`, `CyclicLR`, `CosineAnnealingWarmRestarts`, and `step(epoch)` of all), it is computed
so here. First rates are `initial_lr` of the groups, which an optimizer's state contains.
"""

import math
from bisect import bisect_right
from types import FunctionType


class LRScheduler:
    """The base of schedules: derive from it and write `get_lr`, which gives the next rate of each group of the optimizer
    from the present ones, `base_lrs`, the rates at the start, and `last_epoch`, the number of steps so far. A schedule
    that also has `_get_closed_form_lr`, which computes from `base_lrs` alone, uses it for `step(epoch)`.

    With `last_epoch` the schedule goes on after that step: groups need their `initial_lr`, which `load_state_dict` of the
    optimizer brings.
    """

    _is_initial = False

    def __init__(self, optimizer, last_epoch=-1):
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                text = f"group {i} has no 'initial_lr', which last_epoch={last_epoch} needs: load the optimizer's state first"
                raise KeyError(text)
        self.base_lrs = self._present("initial_lr")
        self._initial_step()

    def _initial_step(self):
        self._step_count, self._is_initial = 0, True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self):
        """The next rate of each group."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr()")

    def step(self, epoch=None):
        """One step further, or at step `epoch`; the optimizer has the new rates from now on."""
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set((closed or self.get_lr)())

    def _set(self, rates):
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = float(rate)
        self._last_lr = self._present()

    def get_last_lr(self):
        """The rate of each group after the last step."""
        return self._last_lr

    def _present(self, key="lr"):
        return [group[key] for group in self.optimizer.param_groups]

    def state_dict(self):
        """All that is needed to go on later but the optimizer and functions."""
        return {key: value for key, value in vars(self).items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Goes on from the result of `state_dict`. The rates are part of the optimizer's state."""
        vars(self).update(state_dict)


_LRScheduler = LRScheduler


class _Functions(LRScheduler):
    """A schedule with a function of the step for each group, or one for all."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        self.lr_lambdas = _for_each("lr_lambda", optimizer, lr_lambda)
        for f in self.lr_lambdas:
            if not callable(f):
                raise TypeError(f"lr_lambda is a function of the step, not {type(f).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """All that is needed to go on later; of functions that are objects, their attributes."""
        return super().state_dict() | {"lr_lambdas": [_attributes(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict):
        """Goes on from the result of `state_dict`."""
        state = dict(state_dict)
        for f, attributes in zip(self.lr_lambdas, state.pop("lr_lambdas")):
            vars(f).update(attributes or {})
        super().load_state_dict(state)


class LambdaLR(_Functions):
    """The first rate times a function of the step; one for all groups, or a list of them."""

    def get_lr(self):
        return [rate * f(self.last_epoch) for rate, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_Functions):
    """The present rate times a function of the step; one for all groups, or a list of them."""

    def get_lr(self):
        if self._is_initial:
            return self._present()
        return [rate * f(self.last_epoch) for rate, f in zip(self._present(), self.lr_lambdas)]


class _Factor(LRScheduler):
    """A schedule that multiplies: `_ratio` is the factor from the step before to this one, `_share` the factor from the
    first rate to this one.
    """

    def get_lr(self):
        ratio = self._ratio()
        return [rate * ratio for rate in self._present()]

    def _get_closed_form_lr(self):
        share = self._share()
        return [rate * share for rate in self.base_lrs]


class StepLR(_Factor):
    """The rate times `gamma` after every `step_size` steps."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self):
        return self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else 1

    def _share(self):
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_Factor):
    """The rate times `gamma` at each milestone."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self):
        return self.gamma ** self.milestones.count(self.last_epoch)

    def _share(self):
        return self.gamma ** bisect_right(self.milestones, self.last_epoch)


class ExponentialLR(_Factor):
    """The rate times `gamma` after every step."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self):
        return 1 if self._is_initial else self.gamma

    def _share(self):
        return self.gamma**self.last_epoch


class ConstantLR(_Factor):
    """The rate times `factor` for `total_iters` steps, then the rate."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0 <= factor <= 1:
            raise ValueError(f"factor {factor} is not between 0 and 1")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _ratio(self):
        if self.last_epoch == 0:
            return self.factor
        return 1 / self.factor if self.last_epoch == self.total_iters else 1

    def _share(self):
        return 1 if self.last_epoch >= self.total_iters else self.factor


class LinearLR(_Factor):
    """In a straight line from `start_factor` to `end_factor` times the rate in `total_iters` steps."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"factors are from 0 (the first one above it) to 1, not {start_factor}, {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _ratio(self):
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        rise = self.end_factor - self.start_factor
        return 1 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _share(self):
        rise = self.end_factor - self.start_factor
        return self.start_factor + rise * min(self.total_iters, self.last_epoch) / self.total_iters


class PolynomialLR(_Factor):
    """From the rate to 0 in `total_iters` steps along a power of the share that is left."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _ratio(self):
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        left = 1 - self.last_epoch / self.total_iters
        return (left / (1 - (self.last_epoch - 1) / self.total_iters)) ** self.power

    def _share(self):
        return (1 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """From the rate along half a cosine to `eta_min` in `T_max` steps, and back."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, step):
        return (1 + math.cos(math.pi * step / self.T_max)) / 2

    def get_lr(self):
        if self._is_initial:
            return self._present()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # From the bottom no ratio leads up again.
            first = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * first for rate, base in zip(self._present(), self.base_lrs)]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [self.eta_min + (rate - self.eta_min) * ratio for rate in self._present()]

    def _get_closed_form_lr(self):
        height = self._height(self.last_epoch)
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines from the first rate to `eta_min`, the first `T_0` steps long, each `T_mult` times as long as the one
    before. `step` also takes parts of a step, as `epoch + i / n`.
    """

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is a whole number from 1 on, not {value}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch=None):
        """One step further, or at step `epoch`."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            epoch = epoch or 0
            if epoch < 0:
                raise ValueError(f"step {epoch} is before the first")
            self.T_cur, self.T_i = epoch, self.T_0
            if self.T_mult == 1:
                self.T_cur %= self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())


class _Cycle(LRScheduler):
    """A schedule that moves momentum (or the first of `betas`) against the rate, if `cycle_momentum`."""

    def _begin_momentum(self, base, most, last_epoch):
        groups = self.optimizer.param_groups
        if self.cycle_momentum and not all("betas" in group or "momentum" in group for group in groups):
            raise ValueError("the optimizer has neither momentum nor betas: pass cycle_momentum=False")
        self.base_momentums = _for_each("base_momentum", self.optimizer, base)
        self.max_momentums = _for_each("max_momentum", self.optimizer, most)
        if self.cycle_momentum and last_epoch == -1:
            for group, low, high in zip(groups, self.base_momentums, self.max_momentums):
                self._move_momentum(group, high)
                group.update(max_momentum=high, base_momentum=low)

    def _move_momentum(self, group, momentum):
        if "betas" in group:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class OneCycleLR(_Cycle):
    """Up to `max_lr` in the share `pct_start` of the steps, then down to nearly nothing; with `three_phase` first down to
    the first rate in as many steps. Momentum, or the first of `betas`, goes the other way unless `cycle_momentum=False`.
    """

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
                 anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0,
                 final_div_factor=1e4, three_phase=False, last_epoch=-1):  # fmt: skip
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("OneCycleLR needs total_steps, or epochs and steps_per_epoch")
        total = epochs * steps_per_epoch if total_steps is None else total_steps
        if not isinstance(total, int) or total < 1:
            raise ValueError(f"the number of steps is a whole number from 1 on, not {total}")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"pct_start is from 0 to 1, not {pct_start}")
        self.optimizer, self.total_steps, self.anneal_strategy, self.cycle_momentum = optimizer, total, anneal_strategy, cycle_momentum
        up = (pct_start * total - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        down = (2 * pct_start * total - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
        # Last step of each phase; rate and momentum from and to.
        if three_phase:
            self._phases = [up, down, (total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        else:
            self._phases = [up, (total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        most = _for_each("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, most):
                group.update(initial_lr=rate / div_factor, max_lr=rate, min_lr=rate / div_factor / final_div_factor)
        self._begin_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        at = self.last_epoch
        if at > self.total_steps:
            raise ValueError(f"OneCycleLR has {self.total_steps} steps, not {at}")
        start = 0.0
        for end, *names in self._phases:
            if at <= end:
                break
            start, before = end, start
        else:
            # One step after the last is the last phase's line continued.
            start = before
        share, rates = (at - start) / (end - start) if end != start else 1.0, []
        for group in self.optimizer.param_groups:
            low, high, light, heavy = (group.get(name) for name in names)
            rates.append(self._between(low, high, share))
            if self.cycle_momentum:
                self._move_momentum(group, self._between(light, heavy, share))
        return rates

    def _between(self, a, b, share):
        return a + (b - a) * share if self.anneal_strategy == "linear" else b + (a - b) / 2 * (1 + math.cos(math.pi * share))


class CyclicLR(_Cycle):
    """Up from `base_lr` to `max_lr` in `step_size_up` steps and down again in `step_size_down`, over and over. The height
    of a cycle halves each time with `mode="triangular2"`, falls by `gamma` at each step with `"exp_range"`, or is given by
    `scale_fn` of the number of the cycle (from 1) or of the step. Momentum, or the first of `betas`, goes the other way
    unless `cycle_momentum=False`.
    """

    def __init__(self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode="triangular", gamma=1.0,
                 scale_fn=None, scale_mode="cycle", cycle_momentum=True, base_momentum=0.8, max_momentum=0.9,
                 last_epoch=-1):  # fmt: skip
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"mode is 'triangular', 'triangular2' or 'exp_range', not {mode!r}, if there is no scale_fn")
        rates = _for_each("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, rates):
                group["lr"] = rate
        self.max_lrs = _for_each("max_lr", optimizer, max_lr)
        self.total_size = float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.step_ratio = step_size_up / self.total_size
        self.optimizer, self.mode, self.gamma, self._scale_fn_custom = optimizer, mode, gamma, scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode, self.cycle_momentum = scale_mode, cycle_momentum
        self._begin_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = rates

    def scale_fn(self, x):
        """The height at a cycle or step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self):
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
                self._move_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self):
        """All that is needed to go on later; of a `scale_fn` that is an object, its attributes."""
        return super().state_dict() | {"_scale_fn_custom": _attributes(self._scale_fn_custom)}

    def load_state_dict(self, state_dict):
        """Goes on from the result of `state_dict`."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom")
        if attributes:
            vars(self._scale_fn_custom).update(attributes)
        super().load_state_dict(state)


class _Several(LRScheduler):
    """Schedules of one optimizer as one."""

    def __init__(self, schedulers, optimizer):
        if not schedulers:
            raise ValueError(f"{type(self).__name__} of no schedule")
        self._schedulers = schedulers
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        for scheduler in schedulers:
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"ReduceLROnPlateau needs results: it is stepped beside {type(self).__name__}")
            if scheduler.optimizer is not self.optimizer:
                raise ValueError(f"{type(self).__name__}: the schedules are of several optimizers")

    def state_dict(self):
        """All that is needed to go on later, of each schedule too."""
        return super().state_dict() | {"_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict):
        """Goes on from the result of `state_dict`."""
        state = dict(state_dict)
        for scheduler, inner in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(inner)
        super().load_state_dict(state)


class SequentialLR(_Several):
    """Schedules one after the other, each from its milestone on."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        super().__init__(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"{len(milestones)} milestones between {len(schedulers)} schedules")
        self._milestones, self.last_epoch = milestones, last_epoch + 1
        # As if the schedules had not been made yet; the first one begins.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        _step_back(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self):
        """One step further."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Several):
    """Schedules that are stepped together, in order."""

    def __init__(self, schedulers, optimizer=None):
        super().__init__(schedulers, optimizer)
        self._last_lr = self._present()

    def step(self):
        """One step further."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._present()


def _step_back(scheduler):
    if isinstance(scheduler, _Several):
        for inner in scheduler._schedulers:
            _step_back(inner)
    else:
        scheduler.last_epoch -= 1


class ReduceLROnPlateau(LRScheduler):
    """Rates times `factor` when a result has stopped to improve for more than `patience` steps: `step(result)`."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0, min_lr=0,
                 eps=1e-8):  # fmt: skip
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"mode is 'min' or 'max', threshold_mode 'rel' or 'abs', not {mode!r}, {threshold_mode!r}")
        if factor >= 1:
            raise ValueError(f"factor {factor} is not less than 1")
        self.min_lrs = _for_each("min_lr", optimizer, min_lr)
        self.optimizer, self.last_epoch, self.mode, self.factor, self.patience = optimizer, 0, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self._reset()
        self._last_lr = self._present()

    def _reset(self):
        self.best, self.num_bad_epochs, self.cooldown_counter = math.inf if self.mode == "min" else -math.inf, 0, 0

    def _is_better(self, x):
        sign = 1 if self.mode == "max" else -1
        margin = sign * self.threshold
        bound = self.best * (1 + margin) if self.threshold_mode == "rel" else self.best + margin
        return sign * x > sign * bound

    def step(self, metrics, epoch=None):
        """Takes a result into account."""
        x = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(x):
            self.best, self.num_bad_epochs = x, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                rate = max(group["lr"] * self.factor, least)
                if group["lr"] - rate > self.eps:
                    group["lr"] = rate
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._present()


def _for_each(name, optimizer, given):
    """A value for each group of an optimizer: the given list, or one value for all."""
    n = len(optimizer.param_groups)
    each = list(given) if isinstance(given, (list, tuple)) else [given] * n
    if len(each) != n:
        raise ValueError(f"{name}: {len(each)} values for {n} groups")
    return each


def _attributes(f):
    """Attributes of an object that is called; of a function `None`."""
    return None if isinstance(f, FunctionType) else dict(getattr(f, "__dict__", {}))
