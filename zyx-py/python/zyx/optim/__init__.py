"""Optimizers: how parameters follow their gradients.

    optimizer = zyx.optim.Adam(model.parameters(), lr=1e-3)
    loss = model(x).cross_entropy(target)
    optimizer.step(loss)

A step takes the loss, as there is no state of gradients to fill and to clear; or gradients, one for
each parameter, where something is to be done with them first. Loss, gradients and new values are
computed as one plan.
"""

from .. import _core
from .._core import Ema, LossScaler, Tensor, clip_norm, clip_value  # noqa: F401
from . import schedule  # noqa: F401


# Ways to run a step that PyTorch lets one choose between; here it is always one plan.
_HOW = ("foreach", "fused", "capturable")


def _check(loss):
    # A step along it would change nothing, and nobody would know why.
    if isinstance(loss, Tensor) and not loss.requires_grad:
        raise ValueError("the loss depends on no trainable parameter: is it computed within no_grad(), or detached?")


class Optimizer:
    """The base of optimizers; each is made with parameters and its options, those of PyTorch: with
    `maximize` it goes up the gradient.
    """

    _maximize = False

    def __new__(cls, params=(), *options, **named):
        if isinstance(params, (list, tuple)) and params and isinstance(params[0], dict):
            return Groups(_each(cls, params, options, named))
        return super().__new__(cls)

    def __init__(self, params, *options, maximize=False, differentiable=False, **named):
        if isinstance(params, Tensor):
            raise TypeError("params is a list of parameters, as model.parameters() gives it")
        if differentiable:
            raise ValueError("differentiable: a step is no function of the parameters")
        for how in _HOW:
            named.pop(how, None)
        self._maximize = bool(maximize)
        self._native = type(self)._make(list(params), *options, **named)

    def step(self, loss_or_gradients):
        """One step down the gradient of a loss, or by gradients, one (or `None`) for each parameter."""
        _check(loss_or_gradients)
        if not isinstance(loss_or_gradients, Tensor):
            self.apply(loss_or_gradients)
        elif self._maximize:
            self.apply(self.gradients(loss_or_gradients), [loss_or_gradients])
        else:
            self._native.step(loss_or_gradients)

    def gradients(self, loss):
        """The gradients of a loss for the parameters; `None` where it does not depend on one."""
        return self._native.gradients(loss)

    def apply(self, gradients, along=None):
        """Applies gradients; `along` (a loss) is computed in the same plan."""
        if self._maximize:
            gradients = [None if g is None else -g for g in gradients]
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

    @property
    def param_groups(self):
        """The parameters as PyTorch lists them: with the keys `params` and `lr`, which may be assigned."""
        return [_Group(self)]

    def state_dict(self):
        """Everything that is needed to continue training later, by name."""
        return self._native.state()

    def load_state_dict(self, state):
        """Continues from what `state_dict` gave for the same parameters."""
        self._native.load_state(state)

    def __repr__(self):
        return f"{type(self).__name__}(learning_rate={self.learning_rate})"


class _Group:
    """Parameters and learning rate of an optimizer, as a dict has them."""

    def __init__(self, optimizer):
        self._optimizer = optimizer

    def __getitem__(self, key):
        if key not in ("params", "lr"):
            raise KeyError(key)
        return self._optimizer.parameters() if key == "params" else self._optimizer.lr

    def __setitem__(self, key, value):
        if key != "lr":
            raise KeyError(f"{key!r} cannot be assigned; 'lr' can")
        self._optimizer.lr = value

    def keys(self):
        """The keys."""
        return ["params", "lr"]


def _each(cls, groups, options, named):
    """An optimizer for each group: the options of all, and over them its own."""
    import inspect

    names = list(inspect.signature(cls._make).parameters)[1:]
    named = dict(zip(names, options)) | named
    for group in groups:
        own = dict(group)
        params = own.pop("params")
        yield cls([params] if isinstance(params, Tensor) else list(params), **(named | own))


class Groups(Optimizer):
    """Several optimizers, each with parameters and options of its own, as one.

    `learning_rate` is the first one's; setting it scales all by the same factor.
    """

    def __new__(cls, optimizers):
        return object.__new__(cls)

    def __init__(self, optimizers):
        self._all = list(optimizers)
        if not self._all:
            raise ValueError("there is no optimizer")

    def gradients(self, loss):
        """The gradients of a loss for the parameters of all."""
        parameters = self.parameters()
        wanted = [p for p in parameters if p.is_trainable()]
        found = iter(loss.grad(wanted))
        return [next(found) if p.is_trainable() else None for p in parameters]

    def step(self, loss_or_gradients):
        """One step of each."""
        _check(loss_or_gradients)
        if isinstance(loss_or_gradients, Tensor):
            self.apply(self.gradients(loss_or_gradients), [loss_or_gradients])
        else:
            self.apply(loss_or_gradients)

    def apply(self, gradients, along=None):
        """Applies gradients, in the order of `parameters`."""
        gradients = list(gradients)
        if len(gradients) != len(self.parameters()):
            raise ValueError(f"{len(gradients)} gradients for {len(self.parameters())} parameters")
        for optimizer in self._all:
            n = len(optimizer.parameters())
            optimizer.apply(gradients[:n], along)
            gradients, along = gradients[n:], None

    @property
    def param_groups(self):
        """Each group, with the keys `params` and `lr`, which may be assigned."""
        return [_Group(optimizer) for optimizer in self._all]

    def parameters(self):
        """The parameters of all, in order."""
        return [p for optimizer in self._all for p in optimizer.parameters()]

    @property
    def learning_rate(self):
        """The first one's factor of each step."""
        return self._all[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, rate):
        factor = rate / self.learning_rate
        for optimizer in self._all:
            optimizer.learning_rate *= factor

    lr = learning_rate

    def state_dict(self):
        """The state of each, named by its number."""
        return {f"{i}.{k}": v for i, optimizer in enumerate(self._all) for k, v in optimizer.state_dict().items()}

    def load_state_dict(self, state):
        """Continues from what `state_dict` gave."""
        for i, optimizer in enumerate(self._all):
            inside = f"{i}."
            optimizer.load_state_dict({k[len(inside):]: v for k, v in state.items() if k.startswith(inside)})


class MasterWeights(Optimizer):
    """An optimizer over copies of half-precision parameters in `float32`, rounded into the model after
    each step: what `make` gives for the copies.

        MasterWeights(model.parameters(), lambda copies: AdamW(copies, lr=1e-3))
    """

    def __new__(cls, params, make):
        return object.__new__(cls)

    def __init__(self, params, make):
        self._native = _core.make_master_weights(list(params), make)


for _name in _core.OPTIMIZERS:
    _make = getattr(_core, "make_" + _name)
    _members = {"__doc__": _make.__doc__, "__module__": __name__, "_make": staticmethod(_make)}
    globals()[_name] = type(_name, (Optimizer,), _members)

# PyTorch's spelling.
for _alias, _name in {"SGD": "Sgd", "RMSprop": "RmsProp"}.items():
    if _name in globals():
        globals()[_alias] = globals()[_name]

clip_grad_norm, clip_grad_value = clip_norm, clip_value
