"""Averages of weights over training, under the names of `torch.optim.swa_utils`. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from .._core import Tensor as Tensor
from ..nn import Module as Module
from .lr_scheduler import LRScheduler as LRScheduler

_T = TypeVar("_T")

def get_ema_avg_fn(decay: Any=0.999) -> Any:
    """The function of an average that keeps `decay` of itself at each update."""

def get_swa_avg_fn() -> Any:
    """The function of the plain mean."""

def get_ema_multi_avg_fn(decay: Any=0.999) -> Any:
    """As `get_ema_avg_fn`, of lists of parameters."""

def get_swa_multi_avg_fn() -> Any:
    """As `get_swa_avg_fn`, of lists of parameters."""

class AveragedModel(Module):
    module: Any
    avg_fn: Any
    multi_avg_fn: Any
    use_buffers: Any
    def __init__(self, model: Any, device: Any=None, avg_fn: Any=None, multi_avg_fn: Any=None, use_buffers: Any=False) -> None:
        ...
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result for the inputs."""
    def update_parameters(self, model: Any) -> Any:
        """Moves the averages towards the parameters of a model."""

def update_bn(loader: Any, model: Any, device: Any=None) -> Any:
    """Running statistics of batch normalisations over all batches of a loader, anew."""

class SWALR(LRScheduler):
    swa_lrs: Any
    anneal_epochs: Any
    def __init__(self, optimizer: Any, swa_lr: Any, anneal_epochs: Any=10, anneal_strategy: Any='cos', last_epoch: Any=...) -> None:
        ...
    def get_lr(self) -> Any:
        """The next rate of each group."""
