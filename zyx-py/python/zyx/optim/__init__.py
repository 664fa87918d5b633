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

    _maximize, _within, _group, _make, _hooks, _native = False, (), None, None, None, None

    def __new__(cls, params=(), *options, **named):
        if cls._make is None:
            return object.__new__(cls)
        params = _listed(params)
        if params and isinstance(params[0], dict):
            made = object.__new__(_grouped(cls))
            Groups.__init__(made, _each(cls, params, options, named))
            return made
        made = object.__new__(cls)
        # An iterator can be read once: `__init__` takes the list.
        made._listed = params
        return made

    def __init__(self, params, defaults=None, *options, **named):
        if self._make is None:
            self._written(params, defaults)
            return
        given = type(self)._bound_options((), *options, **named)
        params = vars(self).pop("_listed", None) or _listed(params)
        self._options, self._more = given
        self._maximize = self._more.get("maximize", False)
        if self._more.get("decoupled_weight_decay") and type(self)._make is _core.make_Adam:
            self._make = _core.make_AdamW
        # The objects themselves, each parameter once.
        self._params = list({p._id() if isinstance(p, Parameter) else id(p): p for p in _plain(params, self._more)}.values())
        self._native = self._make(self._params, **self._options)

    def _written(self, params, defaults):
        """An optimizer that is written in Python: groups are dicts, and `state` has a dict for each parameter."""
        import collections

        self.defaults = dict(defaults or {})
        vars(self)["_state"] = collections.defaultdict(dict)
        self._groups = []
        params = _listed(params)
        for group in params if params and isinstance(params[0], dict) else [{"params": params}]:
            self.add_param_group(group)

    @property
    def state(self):
        """The state of each parameter, by name. Optimizers of Rust give copies: `load_state_dict` changes their state."""
        if "_state" in vars(self):
            return self._state
        params, found = self.parameters(), {}
        for key, value in self._native.state().items():
            number, _, name = key.partition(".")
            if number.isdigit() and int(number) < len(params):
                found.setdefault(params[int(number)], {})[name] = value
        return found

    @state.setter
    def state(self, state):
        if "_groups" not in vars(self):
            raise TypeError(f"the state of {type(self).__name__} is set by load_state_dict")
        vars(self)["_state"] = state

    @property
    def defaults(self):
        """The options that groups have unless they say others."""
        return vars(self).get("_defaults") or {key: value for key, value in self.param_groups[0].items() if key not in ("params", "param_names")}

    @defaults.setter
    def defaults(self, options):
        vars(self)["_defaults"] = options

    def register_step_pre_hook(self, hook):
        """Calls `hook(optimizer, args, kwargs)` before each step."""
        return self._hook("before", hook)

    def register_step_post_hook(self, hook):
        """Calls `hook(optimizer, args, kwargs)` after each step."""
        return self._hook("after", hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Calls `hook(optimizer)` before `state_dict`."""
        return self._hook("state_before", hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Calls `hook(optimizer, state_dict)` after `state_dict`; a result takes its place."""
        return self._hook("state", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Calls `hook(optimizer, state_dict)` before `load_state_dict`; a result takes its place."""
        return self._hook("load_before", hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Calls `hook(optimizer)` after `load_state_dict`."""
        return self._hook("load", hook, prepend)

    def _hook(self, when, hook, prepend=False):
        from ..nn._hooks import Hook, RemovableHandle, Hooks

        if not callable(hook):
            raise TypeError(f"a hook is a function, not {type(hook).__name__}")
        if self._hooks is None:
            self._hooks = {}
            self._with_hooks()
        hooks = self._hooks.setdefault(when, Hooks())
        key, before = max(hooks, default=-1) + 1, dict(hooks) if prepend else {}
        if prepend:
            hooks.clear()
        hooks[key] = Hook(hook)
        hooks.update(before)
        return RemovableHandle(hooks, key)

    def _called(self, when):
        return [hook.function for hook in list(self._hooks.get(when, {}).values())]

    def _with_hooks(self):
        """This optimizer's methods with its hooks around them."""
        import functools

        step, state_dict, load_state_dict = self.step, self.state_dict, self.load_state_dict

        @functools.wraps(step)
        def stepped(*args, **kwargs):
            for before in self._called("before"):
                before(self, args, kwargs)
            found = step(*args, **kwargs)
            for after in self._called("after"):
                after(self, args, kwargs)
            return found

        @functools.wraps(state_dict)
        def told():
            for before in self._called("state_before"):
                before(self)
            found = state_dict()
            for after in self._called("state"):
                new = after(self, found)
                found = found if new is None else new
            return found

        @functools.wraps(load_state_dict)
        def loaded(state):
            for before in self._called("load_before"):
                new = before(self, state)
                state = state if new is None else new
            load_state_dict(state)
            for after in self._called("load"):
                after(self)

        self.step, self.state_dict, self.load_state_dict = stepped, told, loaded

    def step(self, loss_or_gradients=None):
        """One step by what `backward` collected; or down the gradient of a loss; or by gradients, one (or `None`) for each
        parameter; or by what a function collects, whose loss is given back.
        """
        if self._make is None and self._native is None:
            raise NotImplementedError(f"{type(self).__name__} has no step()")
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
        if "_groups" in vars(self):
            return [p for group in self._groups for p in group["params"]]
        return list(self._params)

    @property
    def learning_rate(self):
        """The factor of each step. Changing it compiles nothing."""
        return self._groups[0]["lr"] if "_groups" in vars(self) else self._native.learning_rate

    @learning_rate.setter
    def learning_rate(self, rate):
        if "_groups" in vars(self):
            for group in self._groups:
                group["lr"] = float(rate)
            return
        self._native.learning_rate = rate
        if self._group is not None:
            dict.__setitem__(self._group, "lr", float(rate))

    lr = learning_rate

    @property
    def param_groups(self):
        """The parameters and options as PyTorch lists them. Options may be assigned; `lr` costs nothing, of others the
        plan of a step is made again.
        """
        if "_groups" in vars(self):
            return self._groups
        if self._group is None:
            self._group = _Group(self)
        return [self._group]

    def add_param_group(self, group):
        """One more group, whose options are its own or those of this optimizer, which is also `Groups` from now on."""
        if "_groups" in vars(self):
            if not isinstance(group, dict):
                raise TypeError(f"param_group must be a dict, but got {type(group)}")
            more = {}
            params = _plain([group["params"]] if isinstance(group["params"], Tensor) else _listed(group["params"]), more)
            known = {id(p) for p in self.parameters()}
            if any(id(p) in known for p in params):
                raise ValueError("some parameters appear in more than one parameter group")
            self._groups.append(self.defaults | group | more | {"params": params})
            return
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
        if "_groups" in vars(self):
            number = {id(p): i for i, p in enumerate(self.parameters())}
            state = {number[id(p)]: dict(values) for p, values in self.state.items() if id(p) in number}
            groups = [{k: v for k, v in g.items() if k != "params"} | {"params": [number[id(p)] for p in g["params"]]} for g in self._groups]
            return {"state": state, "param_groups": groups}
        group = self.param_groups[0]
        numbers = {k: v for k, v in group.items() if k in self._options or k in ("maximize", *_SCHEDULED)}
        return self._native.state() | {k: _core.tensor(v, "float64") for k, v in numbers.items()}

    def load_state_dict(self, state_dict):
        """Continues from the result of `state_dict` for the same parameters. Options become the saved ones; those that the
        result lacks stay.
        """
        if "_groups" in vars(self):
            if [len(g["params"]) for g in state_dict["param_groups"]] != [len(g["params"]) for g in self._groups]:
                raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
            params = self.parameters()
            for group, saved in zip(self._groups, state_dict["param_groups"]):
                group.update({k: v for k, v in saved.items() if k != "params"})
            self.state.clear()
            self.state.update({params[int(i)]: {k: v.clone() if isinstance(v, Tensor) else v for k, v in values.items()} for i, values in state_dict["state"].items()})
            return
        state, group = dict(state_dict), self.param_groups[0]
        numbers = {k: _number(state.pop(k), group.get(k)) for k in (*self._options, "maximize", "lr", *_SCHEDULED) if k in state}
        options = self._options | {k: v for k, v in numbers.items() if k in self._options}
        native = self._native
        if options | {"lr": 0} != self._options | {"lr": 0}:
            native = self._make(self._params, **(options | {"lr": 0.0}))
        native.load_state(state)
        dict.update(group, numbers)
        self._replace(native, options, numbers.get("maximize", self._maximize))
        self.lr = group["lr"]

    def _set_option(self, key, value):
        options, native = self._options | {key: value}, self._native
        first = value if key == "momentum" else value[0] if key == "betas" and value[1] == self._options[key][1] else None
        if first is None or not native.set_momentum(first):
            # Of any rate: it is set afterwards.
            made = self._make(self._params, **(options | {"lr": 0.0}))
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
        if "_groups" in vars(self):
            return _unpickled, (type(self), {k: v for k, v in vars(self).items() if k not in ("step", "state_dict", "load_state_dict", "_hooks")})
        return _remade, (type(self), self.parameters(), self._options | self._more, self.state_dict())

    def __repr__(self):
        lines = []
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}"] + [f"    {key}: {group[key]}" for key in sorted(group) if key not in ("params", "param_names")]
        return f"{type(self).__name__} (\n" + "\n".join(lines) + "\n)"


def _listed(params):
    """Parameters, or groups of them, as a list."""
    if isinstance(params, Tensor):
        raise TypeError("params is a list of parameters, as model.parameters() gives it")
    if not hasattr(params, "__iter__"):
        raise TypeError(f"params is a list of parameters, not {type(params).__name__}")
    if isinstance(params, dict) or isinstance(params, (set, frozenset)):
        raise TypeError(f"params is a list of parameters, whose order stays; a {type(params).__name__} is none")
    params = list(params)
    if not params:
        raise ValueError("optimizer got an empty parameter list")
    return params


def _plain(params, more):
    """The parameters of pairs with names, which are kept beside."""
    if params and all(isinstance(p, tuple) for p in params):
        more["param_names"] = [name for name, _ in params]
        params = [p for _, p in params]
    for p in params:
        if not isinstance(p, Tensor):
            raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__module__}.{type(p).__qualname__}")
    return params


def _unpickled(cls, attributes):
    made = object.__new__(cls)
    vars(made).update(attributes)
    return made


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


# The least value of options, and the error below it.
_LIMITS = {
    "lr": (0, "Invalid learning rate: {}"), "eps": (0, "Invalid epsilon value: {}"), "weight_decay": (0, "Invalid weight_decay value: {}"),
    "momentum": (0, "Invalid momentum value: {}"), "alpha": (0, "Invalid alpha value: {}"), "lr_decay": (0, "Invalid lr_decay value: {}"),
    "momentum_decay": (0, "Invalid momentum_decay value: {}"), "initial_accumulator_value": (0, "Invalid initial_accumulator_value value: {}"),
}  # fmt: skip


def _check_options(options):
    for name, (least, text) in _LIMITS.items():
        value = options.get(name, least)
        if isinstance(value, Tensor):
            value = options[name] = float(value)
        if not isinstance(value, (tuple, list)) and value is not None and not least <= value:
            raise ValueError(text.format(value))
    for i, beta in enumerate(options.get("betas") or ()):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
    if not 0 <= options.get("rho", 0) <= 1:
        raise ValueError(f"Invalid rho value: {options['rho']}")
    if options.get("nesterov") and "dampening" in options and (options["momentum"] <= 0 or options["dampening"] != 0):
        raise ValueError("Nesterov momentum requires a momentum and zero dampening")
    if options.get("differentiable"):
        raise ValueError("differentiable: a step is no function of the parameters")


def _binder(name, row, own):
    """The function that gives an optimizer's options of Rust, and those of PyTorch besides, of its arguments."""
    row.__name__ = row.__qualname__ = name

    def bound(*given, **named):
        if "learning_rate" in named:
            named["lr"] = named.pop("learning_rate")
        options = row(None, *given, **named)
        del options["self"], options["params"]
        _check_options(options)
        if tuple(options.get("ns_coefficients", _MUON)) != _MUON or options.get("adjust_lr_fn") not in (None, "original"):
            raise NotImplementedError(f"{name}: ns_coefficients and adjust_lr_fn other than the usual ones")
        more = {key: options.pop(key) for key in list(options) if key not in own}
        for key in ("betas", "etas", "step_sizes"):
            if key in options:
                options[key] = tuple(options[key])
        if "maximize" in more:
            more["maximize"] = bool(more["maximize"])
        return options, more

    return bound


def _each(cls, groups, options, named):
    """An optimizer for each group: the options of all, and over them its own."""
    known, (all_of, more) = set(), cls._bound_options((), *options, **named)
    named = all_of | more
    for group in groups:
        if not isinstance(group, dict) or "params" not in group:
            raise TypeError(f"a group is a dict with `params`, not {type(group).__name__}")
        own = dict(group)
        ids = {id(p) for p in ([own["params"]] if isinstance(own["params"], Tensor) else own["params"])} if not hasattr(own["params"], "__next__") else set()
        if known & ids:
            raise ValueError("some parameters appear in more than one parameter group")
        known |= ids
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


_MUON = (3.4445, -4.775, 2.0315)
# Optimizers of Rust with PyTorch's options.
_TABLE = {
    "SGD": ("Sgd", lambda self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None,
            differentiable=False, fused=None: vars()),
    "Adam": ("Adam", lambda self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None, maximize=False,
             capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False: vars()),
    "AdamW": ("AdamW", lambda self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False, foreach=None,
              capturable=False, differentiable=False, fused=None: vars()),
    "RMSprop": ("RmsProp", lambda self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable=False,
                foreach=None, maximize=False, differentiable=False: vars()),
    "Adagrad": ("Adagrad", lambda self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *,
                maximize=False, differentiable=False, fused=None: vars()),
    "Adadelta": ("Adadelta", lambda self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False, maximize=False,
                 differentiable=False: vars()),
    "Adamax": ("Adamax", lambda self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False,
               differentiable=False, capturable=False: vars()),
    "NAdam": ("NAdam", lambda self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3, decoupled_weight_decay=False, *,
              foreach=None, maximize=False, capturable=False, differentiable=False: vars()),
    "RAdam": ("RAdam", lambda self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *, foreach=None,
              maximize=False, capturable=False, differentiable=False: vars()),
    "Rprop": ("Rprop", lambda self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None, maximize=False,
              differentiable=False: vars()),
    "Muon": ("Muon", lambda self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, ns_coefficients=_MUON, eps=1e-7, ns_steps=5,
             adjust_lr_fn=None: vars()),
    "Lamb": ("Lamb", lambda self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01, *, foreach=None, maximize=False, capturable=False,
             differentiable=False, fused=None: vars()),
    "Lion": ("Lion", lambda self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, *, foreach=None, maximize=False, capturable=False,
             differentiable=False, fused=None: vars()),
}  # fmt: skip


def _optimizer(name, native, row):
    make = getattr(_core, "make_" + native)
    own = [part.partition("=")[0].strip() for part in make.__text_signature__.strip("()").split(", ")]
    own = [key for key in own if key.isidentifier() and key != "params"]

    def __new__(cls, params=(), *options, **named):
        return Optimizer.__new__(cls, params, *options, **named)

    def __init__(self, params, *options, **named):
        Optimizer.__init__(self, params, None, *options, **named)

    __new__.__wrapped__ = __init__.__wrapped__ = row
    bound = _binder(name, row, own)
    globals()[name] = globals()[native] = type(name, (Optimizer,), {
        "__doc__": make.__doc__, "__module__": __name__, "_make": staticmethod(make), "__new__": __new__, "__init__": __init__,
        "_bound_options": staticmethod(bound),
    })  # fmt: skip


for _name, (_native_name, _row) in _TABLE.items():
    _optimizer(_name, _native_name, _row)
for _name in set(_core.OPTIMIZERS) - {native for native, _ in _TABLE.values()}:
    raise ImportError(f"optim: the table lacks {_name}")

clip_grad_norm, clip_grad_value = clip_norm, clip_value

_LATE = {"ASGD": "_more", "LBFGS": "_more", "Lbfgs": "_more", "Adafactor": "_more", "SparseAdam": "_more", "swa_utils": None, "swap_in_optimizer_params_and_state": "_more"}


def __getattr__(name):
    if name not in _LATE:
        raise AttributeError(f"module 'zyx.optim' has no attribute {name!r}")
    import importlib

    found = importlib.import_module("." + (_LATE[name] or name), __name__)
    found = globals()[name] = getattr(found, name) if _LATE[name] else found
    return found


def __dir__():
    return sorted({*globals(), *_LATE})
