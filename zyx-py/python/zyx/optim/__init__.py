"""Optimizers: how parameters follow their gradients.

    optimizer = zyx.optim.Adam(model.parameters(), lr=1e-3)
    loss = model(x).cross_entropy(target)
    optimizer.step(loss)

A step takes the loss, as there is no state of gradients to fill and to clear; or gradients, one for
each parameter, where something is to be done with them first. Loss, gradients and new values are
computed as one plan.
"""

from .. import _core
from .._core import Tensor, clip_norm, clip_value
from . import schedule  # noqa: F401


class Optimizer:
    """The base of optimizers; each is made with parameters and its options."""

    def __init__(self, params, *options, **named):
        if isinstance(params, Tensor):
            raise TypeError("params is a list of parameters, as model.parameters() gives it")
        self._native = type(self)._make(list(params), *options, **named)

    def step(self, loss_or_gradients):
        """One step down the gradient of a loss, or by gradients, one (or `None`) for each parameter."""
        if isinstance(loss_or_gradients, Tensor):
            self._native.step(loss_or_gradients)
        else:
            self._native.apply(list(loss_or_gradients))

    def gradients(self, loss):
        """The gradients of a loss for the parameters; `None` where it does not depend on one."""
        return self._native.gradients(loss)

    def apply(self, gradients, along=None):
        """Applies gradients; `along` (a loss) is computed in the same plan."""
        self._native.apply(list(gradients), along)

    def parameters(self):
        """The parameters, in the order of gradients and state."""
        return self._native.parameters()

    @property
    def learning_rate(self):
        """The factor of each step. Changing it compiles nothing."""
        return self._native.learning_rate

    @learning_rate.setter
    def learning_rate(self, rate):
        self._native.learning_rate = rate

    lr = learning_rate

    def state_dict(self):
        """Everything that is needed to continue training later, by name."""
        return self._native.state()

    def load_state_dict(self, state):
        """Continues from what `state_dict` gave for the same parameters."""
        self._native.load_state(state)

    def __repr__(self):
        return f"{type(self).__name__}(learning_rate={self.learning_rate})"


for _name in _core.OPTIMIZERS:
    _make = getattr(_core, "make_" + _name)
    _members = {"__doc__": _make.__doc__, "__module__": __name__, "_make": staticmethod(_make)}
    globals()[_name] = type(_name, (Optimizer,), _members)

# PyTorch's spelling.
for _alias, _name in {"SGD": "Sgd", "RMSprop": "RmsProp", "NAdam": "Nadam", "RAdam": "Radam"}.items():
    if _name in globals():
        globals()[_alias] = globals()[_name]

clip_grad_norm, clip_grad_value = clip_norm, clip_value
