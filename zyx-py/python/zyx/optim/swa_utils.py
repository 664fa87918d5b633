"""Averages of weights over training, under the names of `torch.optim.swa_utils`."""

import copy
import math

from .._core import Tensor
from ..nn import Module
from .lr_scheduler import LRScheduler


def get_ema_avg_fn(decay=0.999):
    """The function of an average that keeps `decay` of itself at each update."""
    _decay(decay)
    return lambda ema, now, n: decay * ema + (1 - decay) * now


def get_swa_avg_fn():
    """The function of the plain mean."""
    return lambda mean, now, n: mean + (now - mean) / (n + 1)


def _decay(decay):
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _many(one):
    def update(averages, now, n):
        values = [one(a.detach(), b.detach(), n).cast(a.dtype) if a.is_floating_point() else b.detach() for a, b in zip(averages, now)]
        Tensor.realize_all(values)
        for a, value in zip(averages, values):
            a.set(value)

    return update


def get_ema_multi_avg_fn(decay=0.999):
    """As `get_ema_avg_fn`, of lists of parameters."""
    return _many(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn():
    """As `get_swa_avg_fn`, of lists of parameters."""
    return _many(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are averages: the plain mean of those at each `update_parameters`, or by a function."""

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", Tensor.zeros((), dtype="int64"))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Moves the averages towards the parameters of a model."""

        def all_of(m):
            return [*m.parameters(), *(m.buffers() if self.use_buffers else ())]

        averages, now, n = all_of(self.module), all_of(model), int(self.n_averaged.item())
        if n == 0:
            _many(lambda a, b, n: b)(averages, now, n)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(averages, now, n)
        else:
            _many(self.avg_fn or get_swa_avg_fn())(averages, now, n)
        if not self.use_buffers:
            # Running statistics are the model's.
            for a, b in zip(self.module.buffers(), model.buffers()):
                a.set(b.detach())
        self.n_averaged.set(Tensor.full((), n + 1, dtype="int64"))


def update_bn(loader, model, device=None):
    """Running statistics of batch normalisations over all batches of a loader, anew."""
    layers = [m for m in model.modules() if hasattr(m, "running_mean") and m.running_mean is not None]
    if not layers:
        return
    momenta, training = [m.momentum for m in layers], model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    for batch in loader:
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(x if device is None else x.to(device))
        Tensor.realize_all([b for layer in layers for b in layer.buffers()])
    for layer, momentum in zip(layers, momenta):
        layer.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """The rate moves to `swa_lr` in `anneal_epochs` steps, by a cosine or in a line, and stays."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        rates = swa_lr if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(optimizer.param_groups)
        if len(rates) != len(optimizer.param_groups):
            raise ValueError(f"swa_lr has {len(rates)} rates for {len(optimizer.param_groups)} groups")
        self.swa_lrs, self.anneal_epochs, self._cos = list(rates), anneal_epochs, anneal_strategy == "cos"
        super().__init__(optimizer, last_epoch)

    def _share(self, t):
        return (1 - math.cos(math.pi * t)) / 2 if self._cos else t

    def get_lr(self):
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        last = self._share(max(0, min(1, (step - 1) / max(1, self.anneal_epochs))))
        now = self._share(max(0, min(1, step / max(1, self.anneal_epochs))))
        found = []
        for rate, goal in zip(self._present(), self.swa_lrs):
            # The rate that it came from.
            first = goal if last == 1 else (rate - last * goal) / (1 - last)
            found.append(goal * now + first * (1 - now))
        return found


__all__ = ["AveragedModel", "update_bn", "SWALR", "get_ema_multi_avg_fn", "get_swa_multi_avg_fn", "get_ema_avg_fn", "get_swa_avg_fn"]
