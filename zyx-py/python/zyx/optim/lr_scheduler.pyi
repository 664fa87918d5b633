"""Schedules that change the learning rates of an optimizer at each `step()`, under the names, and with the values, of Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar

_T = TypeVar("_T")

class LRScheduler:
    base_lrs: Any
    last_epoch: Any
    optimizer: Any
    def __init__(self, optimizer: Any, last_epoch: Any=...) -> None:
        ...
    def get_lr(self) -> Any:
        """The next rate of each group."""
    def step(self, epoch: Any=None) -> Any:
        """One step further, or at step `epoch`; the optimizer has the new rates from now on."""
    def get_last_lr(self) -> Any:
        """The rate of each group after the last step."""
    def state_dict(self) -> Any:
        """All that is needed to go on later but the optimizer and functions."""
    def load_state_dict(self, state_dict: Any) -> Any:
        """Goes on from the result of `state_dict`. The rates are part of the optimizer's state."""

class LambdaLR:
    def get_lr(self) -> Any:
        """The next rate of each group."""

class MultiplicativeLR:
    def get_lr(self) -> Any:
        """The next rate of each group."""

class StepLR:
    step_size: Any
    gamma: Any
    def __init__(self, optimizer: Any, step_size: Any, gamma: Any=0.1, last_epoch: Any=...) -> None:
        ...

class MultiStepLR:
    milestones: Any
    gamma: Any
    def __init__(self, optimizer: Any, milestones: Any, gamma: Any=0.1, last_epoch: Any=...) -> None:
        ...

class ExponentialLR:
    gamma: Any
    def __init__(self, optimizer: Any, gamma: Any, last_epoch: Any=...) -> None:
        ...

class ConstantLR:
    factor: Any
    total_iters: Any
    def __init__(self, optimizer: Any, factor: Any=..., total_iters: Any=5, last_epoch: Any=...) -> None:
        ...

class LinearLR:
    start_factor: Any
    end_factor: Any
    total_iters: Any
    def __init__(self, optimizer: Any, start_factor: Any=..., end_factor: Any=1.0, total_iters: Any=5, last_epoch: Any=...) -> None:
        ...

class PolynomialLR:
    total_iters: Any
    power: Any
    def __init__(self, optimizer: Any, total_iters: Any=5, power: Any=1.0, last_epoch: Any=...) -> None:
        ...

class CosineAnnealingLR(LRScheduler):
    T_max: Any
    eta_min: Any
    def __init__(self, optimizer: Any, T_max: Any, eta_min: Any=0.0, last_epoch: Any=...) -> None:
        ...
    def get_lr(self) -> Any:
        """The next rate of each group."""

class CosineAnnealingWarmRestarts(LRScheduler):
    last_epoch: Any
    T_0: Any
    T_i: Any
    T_mult: Any
    eta_min: Any
    T_cur: Any
    def __init__(self, optimizer: Any, T_0: Any, T_mult: Any=1, eta_min: Any=0.0, last_epoch: Any=...) -> None:
        ...
    def get_lr(self) -> Any:
        """The next rate of each group."""
    def step(self, epoch: Any=None) -> Any:
        """One step further, or at step `epoch`."""

class OneCycleLR:
    optimizer: Any
    total_steps: Any
    anneal_strategy: Any
    cycle_momentum: Any
    def __init__(self, optimizer: Any, max_lr: Any, total_steps: Any=None, epochs: Any=None, steps_per_epoch: Any=None, pct_start: Any=0.3, anneal_strategy: Any='cos', cycle_momentum: Any=True, base_momentum: Any=0.85, max_momentum: Any=0.95, div_factor: Any=25.0, final_div_factor: Any=10000.0, three_phase: Any=False, last_epoch: Any=...) -> None:
        ...
    def get_lr(self) -> Any:
        """The next rate of each group."""

class CyclicLR:
    max_lrs: Any
    total_size: Any
    step_ratio: Any
    base_lrs: Any
    optimizer: Any
    mode: Any
    gamma: Any
    scale_mode: Any
    cycle_momentum: Any
    def __init__(self, optimizer: Any, base_lr: Any, max_lr: Any, step_size_up: Any=2000, step_size_down: Any=None, mode: Any='triangular', gamma: Any=1.0, scale_fn: Any=None, scale_mode: Any='cycle', cycle_momentum: Any=True, base_momentum: Any=0.8, max_momentum: Any=0.9, last_epoch: Any=...) -> None:
        ...
    def scale_fn(self, x: Any) -> Any:
        """The height at a cycle or step."""
    def get_lr(self) -> Any:
        """The next rate of each group."""
    def state_dict(self) -> Any:
        """All that is needed to go on later; of a `scale_fn` that is an object, its attributes."""
    def load_state_dict(self, state_dict: Any) -> Any:
        """Goes on from the result of `state_dict`."""

class SequentialLR:
    last_epoch: Any
    def __init__(self, optimizer: Any, schedulers: Any, milestones: Any, last_epoch: Any=...) -> None:
        ...
    def step(self) -> Any:
        """One step further."""

class ChainedScheduler:
    def __init__(self, schedulers: Any, optimizer: Any=None) -> None:
        ...
    def step(self) -> Any:
        """One step further."""

class ReduceLROnPlateau(LRScheduler):
    min_lrs: Any
    last_epoch: Any
    optimizer: Any
    mode: Any
    factor: Any
    patience: Any
    threshold: Any
    threshold_mode: Any
    cooldown: Any
    eps: Any
    best: Any
    num_bad_epochs: Any
    cooldown_counter: Any
    def __init__(self, optimizer: Any, mode: Any='min', factor: Any=0.1, patience: Any=10, threshold: Any=0.0001, threshold_mode: Any='rel', cooldown: Any=0, min_lr: Any=0, eps: Any=1e-08) -> None:
        ...
    def step(self, metrics: Any, epoch: Any=None) -> Any:
        """Takes a result into account."""
