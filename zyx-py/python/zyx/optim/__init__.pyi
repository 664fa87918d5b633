"""Optimizers: how parameters follow their gradients.

The classes from `Sgd` on are also the table that their bindings are made from; see `nn`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from .._core import Parameter, Tensor
from .._core import clip_norm as clip_norm
from .._core import clip_value as clip_value
from . import schedule as schedule

Parameters: TypeAlias = Iterable[Parameter]
Betas: TypeAlias = tuple[float, float]

clip_grad_norm = clip_norm
clip_grad_value = clip_value

class Optimizer:
    """The base of optimizers; each is made with parameters and its options."""

    learning_rate: float
    lr: float
    def step(self, loss_or_gradients: Tensor | Sequence[Tensor | None]) -> None:
        """One step down the gradient of a loss, or by gradients, one (or `None`) for each parameter."""
    def gradients(self, loss: Tensor) -> list[Tensor | None]:
        """The gradients of a loss for the parameters; `None` where it does not depend on one."""
    def apply(self, gradients: Sequence[Tensor | None], along: Sequence[Tensor] | None = None) -> None:
        """Applies gradients; `along` (a loss) is computed in the same plan."""
    def parameters(self) -> list[Parameter]:
        """The parameters, in the order of gradients and state."""
    def state_dict(self) -> dict[str, Tensor]:
        """Everything that is needed to continue training later, by name."""
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from what `state_dict` gave for the same parameters."""

class Sgd(Optimizer):
    def __init__(
        self, params: Parameters, lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0,
        weight_decay: float = 0.0, nesterov: bool = False
    ) -> None:
        """Gradient descent, with momentum if it is not 0."""
        # rust: Sgd::new(params, SgdOptions { learning_rate: lr, momentum, dampening, weight_decay, nesterov, ..SgdOptions::default() })

class Adam(Optimizer):
    def __init__(
        self, params: Parameters, lr: float = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0
    ) -> None:
        """Steps by the means of gradient and squared gradient (Kingma and Ba 2015)."""
        # rust: Adam::new(params, AdamOptions { learning_rate: lr, betas, eps, weight_decay, ..AdamOptions::default() })

class AdamW(Optimizer):
    def __init__(
        self, params: Parameters, lr: float = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.01
    ) -> None:
        """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019)."""
        # rust: AdamW::new(params, AdamOptions { learning_rate: lr, betas, eps, weight_decay, ..AdamOptions::default() })

SGD = Sgd
