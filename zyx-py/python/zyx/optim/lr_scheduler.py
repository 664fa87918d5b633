"""Schedules that change the learning rates of an optimizer at each `step()`, under the names, and with the values, of
`torch.optim.lr_scheduler`. `zyx.optim.schedule` has the same as functions of the step.
"""

import math


class LRScheduler:
    """The base of schedules: derive from it and write `get_lr`, which gives a rate for each group of the optimizer from
    `base_lrs`, the rates at the start, and `last_epoch`, the number of steps so far.
    """

    def __init__(self, optimizer, last_epoch=-1):
        self.optimizer, self.last_epoch = optimizer, last_epoch
        # The rates before any schedule changed them.
        self.base_lrs = [vars(group._optimizer).setdefault("_initial_lr", group["lr"]) for group in optimizer.param_groups]
        self.step()

    def get_lr(self):
        """The rate of each group."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr()")

    def step(self, epoch=None):
        """One step further, or at step `epoch`; the optimizer has the new rates from now on."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr())

    def _set(self, rates):
        self._last_lr = [float(rate) for rate in rates]
        for group, rate in zip(self.optimizer.param_groups, self._last_lr):
            group["lr"] = rate

    def get_last_lr(self):
        """The rate of each group now."""
        return self._last_lr

    def _present(self):
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self):
        """What is needed to go on later. Functions are left out."""
        return {k: v for k, v in vars(self).items() if k != "optimizer" and not callable(v) and k not in ("lr_lambdas", "_schedulers")}

    def load_state_dict(self, state_dict):
        """Goes on from what `state_dict` gave."""
        vars(self).update(state_dict)
        self._set(self._last_lr)


class LambdaLR(LRScheduler):
    """The first rate times a function of the step; one for all groups, or a list of them."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        n = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * n
        if len(self.lr_lambdas) != n:
            raise ValueError(f"{len(self.lr_lambdas)} functions for {n} groups")
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [rate * f(self.last_epoch) for rate, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(LambdaLR):
    """The present rate times a function of the step."""

    def get_lr(self):
        if self.last_epoch == 0:
            return self._present()
        return [rate * f(self.last_epoch) for rate, f in zip(self._present(), self.lr_lambdas)]


def _of_factor(name, doc, options, factor):
    """A schedule that is the first rate times a function of itself."""

    def __init__(self, optimizer, *given, last_epoch=-1, **named):
        names = list(options)
        if len(given) == len(names) + 1:
            *given, last_epoch = given
        unknown = set(named) - set(names)
        if unknown or len(given) > len(names):
            raise TypeError(f"{name}(): the options are {', '.join(names)}, last_epoch")
        vars(self).update(options | dict(zip(names, given)) | named)
        missing = [n for n in names if getattr(self, n) is Ellipsis]
        if missing:
            raise TypeError(f"{name}(): {', '.join(missing)} is missing")
        LRScheduler.__init__(self, optimizer, last_epoch)

    def get_lr(self):
        return [rate * factor(self, rate) for rate in self.base_lrs]

    import inspect

    shown = [inspect.Parameter("optimizer", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for option, default in (options | {"last_epoch": -1}).items():
        default = inspect.Parameter.empty if default is Ellipsis else default
        shown.append(inspect.Parameter(option, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    members = {"__doc__": doc, "__init__": __init__, "get_lr": get_lr, "__module__": __name__, "__signature__": inspect.Signature(shown)}
    return type(name, (LRScheduler,), members)


def _cosine(self, rate):
    low = self.eta_min / rate if rate else 0.0
    return low + (1 - low) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2


def _warm(self, rate):
    at, low = self.last_epoch, self.eta_min / rate if rate else 0.0
    length = self.T_0
    if self.T_mult == 1:
        at %= length
    else:
        while at >= length:
            at, length = at - length, length * self.T_mult
    return low + (1 - low) * (1 + math.cos(math.pi * at / length)) / 2


def _line(self, rate):
    share = min(self.last_epoch, self.total_iters) / self.total_iters
    return self.start_factor + (self.end_factor - self.start_factor) * share


StepLR = _of_factor("StepLR", "The rate times `gamma` after every `step_size` steps.", {"step_size": ..., "gamma": 0.1},
                    lambda s, _: s.gamma ** (s.last_epoch // s.step_size))  # fmt: skip
MultiStepLR = _of_factor("MultiStepLR", "The rate times `gamma` at each milestone.", {"milestones": ..., "gamma": 0.1},
                         lambda s, _: s.gamma ** sum(s.last_epoch >= m for m in s.milestones))  # fmt: skip
ExponentialLR = _of_factor("ExponentialLR", "The rate times `gamma` after every step.", {"gamma": ...},
                           lambda s, _: s.gamma**s.last_epoch)  # fmt: skip
ConstantLR = _of_factor("ConstantLR", "The rate times `factor` for `total_iters` steps, then the rate.", {"factor": 1 / 3, "total_iters": 5},
                        lambda s, _: s.factor if s.last_epoch < s.total_iters else 1.0)  # fmt: skip
LinearLR = _of_factor("LinearLR", "In a straight line from `start_factor` to `end_factor` times the rate in `total_iters` steps.",
                      {"start_factor": 1 / 3, "end_factor": 1.0, "total_iters": 5}, _line)  # fmt: skip
PolynomialLR = _of_factor("PolynomialLR", "From the rate to 0 in `total_iters` steps along a power of what is left.",
                          {"total_iters": 5, "power": 1.0},
                          lambda s, _: (1 - min(s.last_epoch, s.total_iters) / s.total_iters) ** s.power)  # fmt: skip
CosineAnnealingLR = _of_factor("CosineAnnealingLR", "From the rate along half a cosine to `eta_min` in `T_max` steps, and back.",
                               {"T_max": ..., "eta_min": 0.0}, _cosine)  # fmt: skip
CosineAnnealingWarmRestarts = _of_factor("CosineAnnealingWarmRestarts", "Half cosines from the rate to `eta_min`, the first `T_0` steps "
                                         "long, each `T_mult` times as long as the one before.",
                                         {"T_0": ..., "T_mult": 1, "eta_min": 0.0}, _warm)  # fmt: skip


class OneCycleLR(LRScheduler):
    """Up to `max_lr` in the share `pct_start` of the steps, then down to nearly nothing. Momentum stays as it is."""

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
                 anneal_strategy="cos", cycle_momentum=False, base_momentum=0.85, max_momentum=0.95, div_factor=25.0,
                 final_div_factor=10000.0, three_phase=False, last_epoch=-1):  # fmt: skip
        if cycle_momentum or three_phase:
            raise NotImplementedError("OneCycleLR: cycle_momentum and three_phase")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("OneCycleLR needs total_steps, or epochs and steps_per_epoch")
        self.total_steps = total_steps or epochs * steps_per_epoch
        n = len(optimizer.param_groups)
        self.max_lrs = list(max_lr) if isinstance(max_lr, (list, tuple)) else [max_lr] * n
        self.pct_start, self.anneal_strategy = pct_start, anneal_strategy
        self.div_factor, self.final_div_factor = div_factor, final_div_factor
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        if self.last_epoch >= self.total_steps:
            raise ValueError(f"OneCycleLR has {self.total_steps} steps, not {self.last_epoch + 1}")
        peak, end = self.pct_start * self.total_steps - 1, self.total_steps - 1
        rates = []
        for most in self.max_lrs:
            first = most / self.div_factor
            if self.last_epoch <= peak:
                rates.append(self._between(first, most, self.last_epoch / peak if peak else 1.0))
            else:
                rates.append(self._between(most, first / self.final_div_factor, (self.last_epoch - peak) / (end - peak)))
        return rates

    def _between(self, a, b, share):
        return a + (b - a) * share if self.anneal_strategy == "linear" else b + (a - b) / 2 * (1 + math.cos(math.pi * share))


class SequentialLR(LRScheduler):
    """Schedules one after the other, each from its milestone on."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"{len(milestones)} milestones between {len(schedulers)} schedules")
        self._schedulers, self.milestones = list(schedulers), list(milestones)
        self.optimizer, self.last_epoch = optimizer, last_epoch + 1
        self._schedulers[0].step(0)
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self, epoch=None):
        """One step further."""
        self.last_epoch += 1
        i = sum(self.last_epoch >= m for m in self.milestones)
        at = self.last_epoch - (self.milestones[i - 1] if i else 0)
        self._schedulers[i].step(at)
        self._last_lr = self._schedulers[i].get_last_lr()

    def state_dict(self):
        """What is needed to go on later, of each schedule too."""
        return super().state_dict() | {"schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict):
        """Goes on from what `state_dict` gave."""
        state = dict(state_dict)
        for scheduler, inner in zip(self._schedulers, state.pop("schedulers")):
            vars(scheduler).update(inner)
        super().load_state_dict(state)


class ReduceLROnPlateau(LRScheduler):
    """Rates times `factor` when a result has stopped to improve for more than `patience` steps: `step(result)`."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0, min_lr=0,
                 eps=1e-8):  # fmt: skip
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"mode is 'min' or 'max', threshold_mode 'rel' or 'abs', not {mode!r}, {threshold_mode!r}")
        if factor >= 1:
            raise ValueError(f"factor {factor} is not less than 1")
        n = len(optimizer.param_groups)
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * n
        self.optimizer, self.last_epoch, self.mode, self.factor, self.patience = optimizer, 0, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.best, self.num_bad_epochs, self.cooldown_counter = math.inf if mode == "min" else -math.inf, 0, 0
        self._last_lr = self._present()

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
            new = [max(rate * self.factor, least) for rate, least in zip(self._present(), self.min_lrs)]
            self._set([b if a - b > self.eps else a for a, b in zip(self._present(), new)])
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._present()
