"""Optimizers: how parameters follow their gradients.

    optimizer = zyx.optim.Adam(model.parameters(), lr=1e-3)
    loss = model(x).cross_entropy(target)
    optimizer.step(loss)

A step takes the loss; or gradients, one for each parameter, where something is to be done with them
first; or what `backward` collected:

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

Loss, gradients and new values are computed as one plan, in all three ways.
"""

from .. import _core
from .._grad_mode import enable_grad
from .._core import Ema, LossScaler, Parameter, Tensor, clip_norm, clip_value  # noqa: F401
from . import lr_scheduler, schedule  # noqa: F401


# Ways to run a step that PyTorch lets one choose between; here it is always one plan.
_HOW = ("foreach", "fused", "capturable")
# Numbers that schedules keep with a group, so that they are part of an optimizer's state.
_SCHEDULED = ("initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum")


def _check(loss):
    # A step along it would change nothing, and nobody would know why.
    if isinstance(loss, Tensor) and not loss.requires_grad:
        raise ValueError("the loss depends on no trainable parameter: is it computed within no_grad(), or detached?")


class Optimizer:
    """The base of optimizers; each is made with parameters and its options, those of PyTorch: with
    `maximize` it goes up the gradient.
    """

    _maximize, _within, _group = False, (), None

    def __new__(cls, params=(), *options, **named):
        if isinstance(params, (list, tuple)) and params and isinstance(params[0], dict):
            made = object.__new__(_grouped(cls))
            Groups.__init__(made, _each(cls, params, options, named))
            return made
        return super().__new__(cls)

    def __init__(self, params, *options, maximize=False, differentiable=False, **named):
        if isinstance(params, Tensor):
            raise TypeError("params is a list of parameters, as model.parameters() gives it")
        if differentiable:
            raise ValueError("differentiable: a step is no function of the parameters")
        how = {name: named.pop(name) for name in _HOW if name in named}
        self._maximize = bool(maximize)
        self._options = _bound(type(self), options, named)
        self._more = {"maximize": self._maximize} | how
        # The objects themselves, each parameter once.
        self._params = list({p._id() if isinstance(p, Parameter) else id(p): p for p in params}.values())
        self._native = type(self)._make(self._params, **self._options)

    def step(self, loss_or_gradients=None):
        """One step by what `backward` collected; or down the gradient of a loss; or by gradients, one (or `None`) for each
        parameter; or by what a function collects, whose loss is given back.
        """
        loss = loss_or_gradients
        if loss is None or callable(loss) and not isinstance(loss, Tensor):
            with enable_grad():
                loss = None if loss is None else loss()
            if self._maximize:
                self.apply([p.grad for p in self.parameters()])
            else:
                self._native.step_collected()
            return loss
        _check(loss)
        if not isinstance(loss, Tensor):
            self.apply(loss)
        elif self._maximize:
            self.apply(self.gradients(loss), [loss])
        else:
            self._native.step(loss)

    def zero_grad(self, set_to_none=True):
        """Forgets the gradients that `backward` collected, or makes them zeros."""
        for p in self.parameters():
            if p.grad is not None:
                p.grad = None if set_to_none else p.grad.zeros_like()

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
        return list(self._params)

    @property
    def learning_rate(self):
        """The factor of each step. Changing it compiles nothing."""
        return self._native.learning_rate

    @learning_rate.setter
    def learning_rate(self, rate):
        self._native.learning_rate = rate
        if self._group is not None:
            dict.__setitem__(self._group, "lr", float(rate))

    lr = learning_rate

    @property
    def param_groups(self):
        """The parameters and options as PyTorch lists them. Options may be assigned; `lr` costs nothing, of others the
        plan of a step is made again.
        """
        if self._group is None:
            self._group = _Group(self)
        return [self._group]

    def add_param_group(self, group):
        """One more group, whose options are its own or those of this optimizer, which is also `Groups` from now on."""
        first, within = object.__new__(type(self)), self._within
        first.__dict__.update(self.__dict__, _within=())
        if first._group is not None:
            first._group._optimizer = first
        self.__dict__.clear()
        self.__class__ = _grouped(type(first))
        Groups.__init__(self, [first])
        self._within = within
        self.add_param_group(group)

    def state_dict(self):
        """All that is needed to continue training later, by name: tensors of the parameters' state, options, the rate, and
        the numbers that schedules started from (`initial_lr`).
        """
        group = self.param_groups[0]
        numbers = {k: v for k, v in group.items() if k != "params" and k not in _HOW}
        return self._native.state() | {k: _core.tensor(v, "float64") for k, v in numbers.items()}

    def load_state_dict(self, state_dict):
        """Continues from the result of `state_dict` for the same parameters. Options become the saved ones; those that the
        result lacks stay.
        """
        state, group = dict(state_dict), self.param_groups[0]
        numbers = {k: _number(state.pop(k), group.get(k)) for k in (*self._options, "maximize", "lr", *_SCHEDULED) if k in state}
        options = self._options | {k: v for k, v in numbers.items() if k in self._options}
        native = self._native
        if options | {"lr": 0} != self._options | {"lr": 0}:
            native = type(self)._make(self._params, **(options | {"lr": 0.0}))
        native.load_state(state)
        dict.update(group, numbers)
        self._replace(native, options, numbers.get("maximize", self._maximize))
        self.lr = group["lr"]

    def _set_option(self, key, value):
        options, native = self._options | {key: value}, self._native
        first = value if key == "momentum" else value[0] if key == "betas" and value[1] == self._options[key][1] else None
        if first is None or not native.set_momentum(first):
            # Of any rate: it is set afterwards.
            made = type(self)._make(self._params, **(options | {"lr": 0.0}))
            made.learning_rate = self.lr
            # State that the old options did not need starts anew.
            old = native.state()
            made.load_state({k: old.get(k, v) for k, v in made.state().items()})
            native = made
        self._replace(native, options, self._maximize)

    def _replace(self, native, options, maximize):
        """Goes on with this native optimizer, whose options these are."""
        stays = native is self._native and maximize == self._maximize
        self._native, self._options, self._maximize = native, options, maximize
        for within in () if stays else self._within:
            within._join()

    def __reduce__(self):
        # The parameters themselves: a copy of a model and its optimizer are a model and its optimizer.
        return _remade, (type(self), self.parameters(), self._options | self._more, self.state_dict())

    def __repr__(self):
        return f"{type(self).__name__}(learning_rate={self.learning_rate})"


def _remade(cls, params, options, state):
    optimizer = cls(params, **options)
    optimizer.load_state_dict(state)
    return optimizer


def _number(saved, like):
    """An option from its tensor, of the same type as before."""
    value = saved.tolist() if hasattr(saved, "tolist") else saved
    if isinstance(value, list):
        return tuple(value)
    return bool(value) if isinstance(like, bool) else int(value) if isinstance(like, int) and float(value).is_integer() else value


class _Group(dict):
    """Parameters and options of an optimizer. What is assigned changes the optimizer."""

    def __init__(self, optimizer):
        super().__init__(params=optimizer.parameters(), **optimizer._options, **optimizer._more)
        super().__setitem__("lr", optimizer.lr)
        self._optimizer = optimizer

    def __setitem__(self, key, value):
        optimizer = self._optimizer
        if key == "lr":
            optimizer.lr = value
            return
        if key in optimizer._options:
            optimizer._set_option(key, value)
        elif key == "maximize":
            optimizer._replace(optimizer._native, optimizer._options, bool(value))
        elif key not in _SCHEDULED:
            raise KeyError(f"{key!r} cannot be assigned; {', '.join((*optimizer._options, 'maximize', *_SCHEDULED))} can")
        super().__setitem__(key, value)

    # A dict would store these past `__setitem__`.
    def update(self, *given, **named):
        for key, value in dict(*given, **named).items():
            self[key] = value

    def __ior__(self, given):
        self.update(given)
        return self

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]


def _bound(cls, options, named):
    """Options by name, all of them."""
    import inspect

    declared = list(inspect.signature(cls._make).parameters.values())[1:]
    if len(options) > len(declared):
        raise TypeError(f"{cls.__name__}() takes at most {len(declared)} options, {len(options)} were given")
    given = dict(zip((p.name for p in declared), options))
    if "learning_rate" in named:
        named["lr"] = named.pop("learning_rate")
    return {p.name: p.default for p in declared if p.default is not p.empty} | given | named


def _each(cls, groups, options, named):
    """An optimizer for each group: the options of all, and over them its own."""
    import inspect

    names = list(inspect.signature(cls._make).parameters)[1:]
    named = dict(zip(names, options)) | named
    for group in groups:
        own = dict(group)
        params, scheduled = own.pop("params"), {key: own.pop(key) for key in _SCHEDULED if key in own}
        optimizer = cls([params] if isinstance(params, Tensor) else list(params), **(named | own))
        optimizer.param_groups[0].update(scheduled)
        yield optimizer


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
        for optimizer in self._all:
            optimizer._within = (*optimizer._within, self)
        self._join()

    def _join(self):
        self._maximize = any(optimizer._maximize for optimizer in self._all)
        self._native = _core.make_groups([optimizer._native for optimizer in self._all])

    def apply(self, gradients, along=None):
        """Applies gradients, in the order of `parameters`."""
        gradients = list(gradients)
        if self._maximize and len(gradients) == len(self.parameters()):
            up = [optimizer._maximize for optimizer in self._all for _ in optimizer.parameters()]
            gradients = [-g if up and g is not None else g for g, up in zip(gradients, up)]
        self._native.apply(gradients, along)

    def add_param_group(self, group):
        """One more group, whose options are its own or those of the first."""
        first = self._all[0]
        self._all += _each(type(first), [group], (), first._options | first._more)
        self._all[-1]._within = (self,)
        self._join()
        for within in self._within:
            within._join()

    @property
    def param_groups(self):
        """Each group, with its parameters and options; the latter may be assigned."""
        return [group for optimizer in self._all for group in optimizer.param_groups]

    def parameters(self):
        """The parameters of all, in order."""
        return [p for optimizer in self._all for p in optimizer.parameters()]

    @property
    def learning_rate(self):
        """The first one's factor of each step."""
        return self._all[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, rate):
        first = self.learning_rate
        for optimizer in self._all:
            # Without a first rate there is no proportion.
            optimizer.learning_rate = optimizer.learning_rate * rate / first if first else rate

    lr = learning_rate

    def state_dict(self):
        """The state of each, named by its number."""
        return {f"{i}.{k}": v for i, optimizer in enumerate(self._all) for k, v in optimizer.state_dict().items()}

    def load_state_dict(self, state_dict):
        """Continues from what `state_dict` gave."""
        for i, optimizer in enumerate(self._all):
            inside = f"{i}."
            optimizer.load_state_dict({k[len(inside):]: v for k, v in state_dict.items() if k.startswith(inside)})

    def __reduce__(self):
        return _remade_groups, (getattr(self, "_plain", None), self._all)


def _grouped(cls):
    """The type of optimizers of one type in groups, a subtype of both. Calling it makes a plain one."""
    if "_in_groups" not in cls.__dict__:
        own = {
            "__new__": lambda _, *given, **named: cls(*given, **named),
            "__init__": lambda *_, **__: None,
            "__doc__": cls.__doc__,
            "__module__": cls.__module__,
            "_plain": cls,
        }
        cls._in_groups = type(cls.__name__, (Groups, cls), own)
    return cls._in_groups


def _remade_groups(cls, optimizers):
    made = object.__new__(Groups if cls is None else _grouped(cls))
    Groups.__init__(made, optimizers)
    return made


class MasterWeights(Optimizer):
    """An optimizer over copies of half-precision parameters in `float32`, rounded into the model after
    each step: what `make` gives for the copies.

        MasterWeights(model.parameters(), lambda copies: AdamW(copies, lr=1e-3))
    """

    def __new__(cls, params, make):
        return object.__new__(cls)

    def __init__(self, params, make):
        params = list(params)
        self._native, self._inputs = _core.make_master_weights(params, make), (params, make)
        self._params, self._options, self._more = self._native.parameters(), {}, {}

    def __reduce__(self):
        return _remade_masters, (*self._inputs, self.state_dict())


def _remade_masters(params, make, state):
    optimizer = MasterWeights(params, make)
    optimizer.load_state_dict(state)
    return optimizer


for _name in _core.OPTIMIZERS:
    _make = getattr(_core, "make_" + _name)
    _members = {"__doc__": _make.__doc__, "__module__": __name__, "_make": staticmethod(_make)}
    globals()[_name] = type(_name, (Optimizer,), _members)

# PyTorch's spelling.
for _alias, _name in {"SGD": "Sgd", "RMSprop": "RmsProp"}.items():
    if _name in globals():
        globals()[_alias] = globals()[_name]

clip_grad_norm, clip_grad_value = clip_norm, clip_value
