"""Optimizers: how parameters follow their gradients.

The classes from `Sgd` on are also the table that their bindings are made from; see `nn`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, overload

from .._core import Parameter, Size, Tensor
from .._core import clip_norm as clip_norm
from .._core import clip_value as clip_value
from . import lr_scheduler as lr_scheduler
from . import schedule as schedule
from . import swa_utils as swa_utils

Parameters: TypeAlias = Iterable[Parameter]
Betas: TypeAlias = tuple[float, float]

clip_grad_norm = clip_norm
clip_grad_value = clip_value

class Optimizer:
    """The base of optimizers; each is made with parameters and its options, and further ones of PyTorch: `maximize`
    to go up the gradient; `foreach`, `fused` and `capturable` change nothing, as every step is one plan. A list of
    dicts with `params` and options of their own instead of parameters makes an instance that is also `Groups`.
    """

    learning_rate: float
    lr: float
    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The parameters and options as PyTorch lists them. Options may be assigned; `lr` costs nothing, of others the
        plan of a step is made again."""
    def step(self, loss_or_gradients: Tensor | Sequence[Tensor | None] | Callable[[], Any] | None = None) -> Any:
        """One step by what `backward` collected; or down the gradient of a loss; or by gradients, one (or `None`) for each
        parameter; or by what a function collects, whose loss is given back."""
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients that `backward` collected, or makes them zeros."""
    def gradients(self, loss: Tensor) -> list[Tensor | None]:
        """The gradients of a loss for the parameters; `None` where it does not depend on one."""
    def apply(self, gradients: Sequence[Tensor | None], along: Sequence[Tensor] | None = None) -> None:
        """Applies gradients; `along` (a loss) is computed in the same plan."""
    def parameters(self) -> list[Parameter]:
        """The parameters, in the order of gradients and state."""
    def state_dict(self) -> dict[str, Tensor]:
        """All that is needed to continue training later, by name: tensors of the parameters' state, options, the rate, and
        the numbers that schedules started from (`initial_lr`)."""
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from the result of `state_dict` for the same parameters. Options become the saved ones."""
    def add_param_group(self, group: dict[str, Any]) -> None:
        """One more group, whose options are its own or those of the first. The optimizer is then also `Groups`."""

class Groups(Optimizer):
    """Several optimizers, each with parameters and options of its own, as one."""

    def __init__(self, optimizers: Iterable[Optimizer]) -> None: ...
    # by hand
    def add_param_group(self, group: dict[str, Any]) -> None:
        """One more group, whose options are its own or those of the first."""

class MasterWeights(Optimizer):
    """An optimizer over copies of half-precision parameters in `float32`, rounded into the model after each step."""

    def __init__(self, params: Parameters, make: Callable[[list[Parameter]], Optimizer]) -> None: ...
    # by hand

class Ema:
    """A running mean of parameters, with which models evaluate better than with the last step's values."""

    def __init__(self, params: Parameters, decay: float = 0.999) -> None: ...
    # by hand
    def update(self) -> None:
        """Moves the averages towards the present values."""
    def swap(self) -> None:
        """Exchanges averages and parameters."""
    def averages(self) -> list[Tensor]:
        """The averages in the order of the parameters."""
    def state_dict(self) -> dict[str, Tensor]:
        """Everything that is needed to continue later, by name."""
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from what `state_dict` gave for the same parameters."""

class LossScaler:
    """Scales losses, so that gradients in `float16` neither vanish nor overflow; finds the scale by itself."""

    def __init__(self, scale: float = 65536.0, backoff: float = 0.5, growth: float = 2.0, interval: int = 2000) -> None: ...
    # by hand
    @property
    def scale(self) -> float:
        """What losses are multiplied with."""
    def gradients(self, optimizer: Optimizer, loss: Tensor) -> list[Tensor | None] | None:
        """The gradients of a loss, scaled down again; `None` where one overflowed."""
    def step(self, optimizer: Optimizer, loss: Tensor) -> bool:
        """One step down the gradient of a loss, unless a gradient overflows; whether it was made."""

class Sgd(Optimizer):
    def __init__(
        self, params: Parameters, lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False, **how: Any
    ) -> None:
        """Gradient descent, with momentum if it is not 0."""
        # rust: Sgd::new(params, SgdOptions { learning_rate: lr, momentum, dampening, weight_decay, nesterov, ..SgdOptions::default() })

class Adam(Optimizer):
    @overload
    def __init__(self, params: Any, lr: Any = 0.001, betas: Any = (0.9, 0.999), eps: Any = 1e-08, weight_decay: Any = 0, amsgrad: Any = False, *, foreach: Any = None, maximize: Any = False, capturable: Any = False, differentiable: Any = False, fused: Any = None, decoupled_weight_decay: Any = False) -> None:
        """Steps by the means of gradient and squared gradient (Kingma and Ba 2015)."""
        # by hand

    @overload
    def __init__(
        self, params: Parameters, lr: float = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0, amsgrad: bool = False, **how: Any
    ) -> None:
        """Steps by the means of gradient and squared gradient (Kingma and Ba 2015)."""
        # rust: Adam::new(params, AdamOptions { learning_rate: lr, betas, eps, weight_decay, amsgrad, ..AdamOptions::default() })

class AdamW(Optimizer):
    @overload
    def __init__(self, params: Any, lr: Any = 0.001, betas: Any = (0.9, 0.999), eps: Any = 1e-08, weight_decay: Any = 0.01, amsgrad: Any = False, *, maximize: Any = False, foreach: Any = None, capturable: Any = False, differentiable: Any = False, fused: Any = None) -> None:
        """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019)."""
        # by hand

    @overload
    def __init__(
        self, params: Parameters, lr: float = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.01, amsgrad: bool = False, **how: Any
    ) -> None:
        """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019)."""
        # rust: AdamW::new(params, AdamOptions { learning_rate: lr, betas, eps, weight_decay, amsgrad, ..AdamOptions::default() })

class RmsProp(Optimizer):
    def __init__(
        self, params: Parameters, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False, **how: Any
    ) -> None:
        """Steps by the gradient over the root of its mean square."""
        # rust: RmsProp::new(params, RmsPropOptions { learning_rate: lr, alpha, eps, weight_decay, momentum, centered, ..RmsPropOptions::default() })

class Adagrad(Optimizer):
    @overload
    def __init__(self, params: Any, lr: Any = 0.01, lr_decay: Any = 0, weight_decay: Any = 0, initial_accumulator_value: Any = 0, eps: Any = 1e-10, foreach: Any = None, *, maximize: Any = False, differentiable: Any = False, fused: Any = None) -> None:
        """Steps by the gradient over the root of the sum of its squares."""
        # by hand

    @overload
    def __init__(
        self, params: Parameters, lr: float = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0, initial_accumulator_value: float = 0.0, eps: float = 1e-10, **how: Any
    ) -> None:
        """Steps by the gradient over the root of the sum of its squares."""
        # rust: Adagrad::new(params, AdagradOptions { learning_rate: lr, rate_decay: lr_decay, weight_decay, initial: initial_accumulator_value, eps, ..AdagradOptions::default() })

class Adadelta(Optimizer):
    @overload
    def __init__(self, params: Any, lr: Any = 1.0, rho: Any = 0.9, eps: Any = 1e-06, weight_decay: Any = 0, foreach: Any = None, *, capturable: Any = False, maximize: Any = False, differentiable: Any = False) -> None:
        """Steps as large as earlier ones (Zeiler 2012)."""
        # by hand

    @overload
    def __init__(
        self, params: Parameters, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0, **how: Any
    ) -> None:
        """Steps as large as earlier ones (Zeiler 2012)."""
        # rust: Adadelta::new(params, AdadeltaOptions { learning_rate: lr, rho, eps, weight_decay, ..AdadeltaOptions::default() })

class Rprop(Optimizer):
    @overload
    def __init__(self, params: Any, lr: Any = 0.01, etas: Any = (0.5, 1.2), step_sizes: Any = (1e-06, 50), *, capturable: Any = False, foreach: Any = None, maximize: Any = False, differentiable: Any = False) -> None:
        """Steps by the signs of the gradient."""
        # by hand

    @overload
    def __init__(
        self, params: Parameters, lr: float = 1e-2, etas: Betas = (0.5, 1.2), step_sizes: Betas = (1e-6, 50.0), **how: Any
    ) -> None:
        """Steps by the signs of the gradient."""
        # rust: Rprop::new(params, RpropOptions { learning_rate: lr, etas, sizes: step_sizes, ..RpropOptions::default() })

class Adamax(Optimizer):
    @overload
    def __init__(self, params: Any, lr: Any = 0.002, betas: Any = (0.9, 0.999), eps: Any = 1e-08, weight_decay: Any = 0, foreach: Any = None, *, maximize: Any = False, differentiable: Any = False, capturable: Any = False) -> None:
        """Adam by the largest instead of the mean square."""
        # by hand

    @overload
    def __init__(
        self, params: Parameters, lr: float = 2e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0, **how: Any
    ) -> None:
        """Adam by the largest instead of the mean square."""
        # rust: Adamax::new(params, AdamaxOptions { learning_rate: lr, betas, eps, weight_decay, ..AdamaxOptions::default() })

class NAdam(Optimizer):
    @overload
    def __init__(self, params: Any, lr: Any = 0.002, betas: Any = (0.9, 0.999), eps: Any = 1e-08, weight_decay: Any = 0, momentum_decay: Any = 0.004, decoupled_weight_decay: Any = False, *, foreach: Any = None, maximize: Any = False, capturable: Any = False, differentiable: Any = False) -> None:
        """Adam with Nesterov's look ahead."""
        # by hand

    @overload
    def __init__(
        self, params: Parameters, lr: float = 2e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, **how: Any
    ) -> None:
        """Adam with Nesterov's look ahead."""
        # rust: NAdam::new(params, NAdamOptions { learning_rate: lr, betas, eps, weight_decay, momentum_decay, decoupled: decoupled_weight_decay, ..NAdamOptions::default() })

class RAdam(Optimizer):
    @overload
    def __init__(self, params: Any, lr: Any = 0.001, betas: Any = (0.9, 0.999), eps: Any = 1e-08, weight_decay: Any = 0, decoupled_weight_decay: Any = False, *, foreach: Any = None, maximize: Any = False, capturable: Any = False, differentiable: Any = False) -> None:
        """Adam with rectified early steps."""
        # by hand

    @overload
    def __init__(
        self, params: Parameters, lr: float = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0, decoupled_weight_decay: bool = False, **how: Any
    ) -> None:
        """Adam with rectified early steps."""
        # rust: RAdam::new(params, RAdamOptions { learning_rate: lr, betas, eps, weight_decay, decoupled: decoupled_weight_decay, ..RAdamOptions::default() })

class Lamb(Optimizer):
    @overload
    def __init__(self, params: Any, lr: Any = 0.001, betas: Any = (0.9, 0.999), eps: Any = 1e-06, weight_decay: Any = 0.01, *, foreach: Any = None, maximize: Any = False, capturable: Any = False, differentiable: Any = False, fused: Any = None) -> None:
        """Adam with steps in proportion to the parameters, for large batches."""
        # by hand

    @overload
    def __init__(
        self, params: Parameters, lr: float = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-6, weight_decay: float = 0.01, **how: Any
    ) -> None:
        """Adam with steps in proportion to the parameters, for large batches."""
        # rust: Lamb::new(params, LambOptions { learning_rate: lr, betas, eps, weight_decay, ..LambOptions::default() })

class Lion(Optimizer):
    @overload
    def __init__(self, params: Any, lr: Any = 0.0001, betas: Any = (0.9, 0.99), weight_decay: Any = 0.0, *, foreach: Any = None, maximize: Any = False, capturable: Any = False, differentiable: Any = False, fused: Any = None) -> None:
        """Steps by signs of a moving mean (Chen et al. 2023)."""
        # by hand

    @overload
    def __init__(
        self, params: Parameters, lr: float = 1e-4, betas: Betas = (0.9, 0.99), weight_decay: float = 0.0, **how: Any
    ) -> None:
        """Steps by signs of a moving mean (Chen et al. 2023)."""
        # rust: Lion::new(params, LionOptions { learning_rate: lr, betas, weight_decay, ..LionOptions::default() })

class Muon(Optimizer):
    @overload
    def __init__(self, params: Any, lr: Any = 0.001, weight_decay: Any = 0.1, momentum: Any = 0.95, nesterov: Any = True, ns_coefficients: Any = (3.4445, -4.775, 2.0315), eps: Any = 1e-07, ns_steps: Any = 5, adjust_lr_fn: Any = None) -> None:
        """Steps by orthogonalised momentum of matrices (Jordan et al. 2024)."""
        # by hand

    @overload
    def __init__(
        self, params: Parameters, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True, eps: float = 1e-7, ns_steps: Size = 5, **how: Any
    ) -> None:
        """Steps by orthogonalised momentum of matrices (Jordan et al. 2024)."""
        # rust: Muon::new(params, MuonOptions { learning_rate: lr, momentum, nesterov, weight_decay, iterations: ns_steps, eps, ..MuonOptions::default() })


# Written by tools/python_stubs.py from here

class SGD(Optimizer):
    def __init__(self, params: Any, lr: Any = 0.001, momentum: Any = 0, dampening: Any = 0, weight_decay: Any = 0, nesterov: Any = False, *, maximize: Any = False, foreach: Any = None, differentiable: Any = False, fused: Any = None) -> None:
        """Gradient descent, with momentum if it is not 0."""
        # by hand

class RMSprop(Optimizer):
    def __init__(self, params: Any, lr: Any = 0.01, alpha: Any = 0.99, eps: Any = 1e-08, weight_decay: Any = 0, momentum: Any = 0, centered: Any = False, capturable: Any = False, foreach: Any = None, maximize: Any = False, differentiable: Any = False) -> None:
        """Steps by the gradient over the root of its mean square."""
        # by hand

class ASGD(Optimizer):
    def __init__(self, params: Any, lr: Any = 0.01, lambd: Any = 0.0001, alpha: Any = 0.75, t0: Any = 1000000.0, weight_decay: Any = 0, foreach: Any = None, maximize: Any = False, differentiable: Any = False, capturable: Any = False) -> None:
        """Averaged stochastic gradient descent (Polyak and Juditsky 1992); the averages are `ax` of the state."""
        # by hand

class Adafactor(Optimizer):
    def __init__(self, params: Any, lr: Any = 0.01, beta2_decay: Any = -0.8, eps: Any = (None, 0.001), d: Any = 1.0, weight_decay: Any = 0.0, *, foreach: Any = None, maximize: Any = False) -> None:
        """Second moments of matrices by their rows and columns alone (Shazeer and Stern 2018)."""
        # by hand

class LBFGS(Optimizer):
    def __init__(self, params: Any, lr: Any = 1, max_iter: Any = 20, max_eval: Any = None, tolerance_grad: Any = 1e-07, tolerance_change: Any = 1e-09, history_size: Any = 100, line_search_fn: Any = None, *, maximize: Any = False) -> None:
        """L-BFGS. A step calls a function several times, which computes the loss and its gradients (`zero_grad`, `backward`); `line_search_fn` is `None` or `"strong_wolfe"`."""
        # by hand

class SparseAdam(Optimizer):
    def __init__(self, params: Any, lr: Any = 0.001, betas: Any = (0.9, 0.999), eps: Any = 1e-08, maximize: Any = False) -> None:
        """PyTorch's Adam for sparse gradients. Gradients are dense here, which it refuses in PyTorch, too."""
        # by hand

# to here.
