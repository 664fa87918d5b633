"""What a module is: something with named parameters that can be called."""

import collections

from .._core import Parameter, Tensor, load_pytorch, load_safetensors, save_safetensors


class Module:
    """The base of layers and models. Derive from it, assign modules and parameters as attributes,
    and write `forward`; lists, tuples and dicts of them count too.

        class Net(zyx.nn.Module):
            def __init__(self):
                self.hidden = zyx.nn.Linear(4, 8)
                self.out = zyx.nn.Linear(8, 2)

            def forward(self, x):
                return self.out(self.hidden(x).relu())

    Parameters are named by the path to them: `hidden.weight`. A call of `super().__init__()` is
    allowed and not needed.
    """

    training = True

    def __setattr__(self, name, value):
        known = vars(self).get(name)
        if isinstance(known, Parameter) and isinstance(value, Tensor) and not isinstance(value, Parameter):
            if not known.is_state():
                raise TypeError(f"`{name}` is a parameter: assign an nn.Parameter, or replace its value by {name}.set(..)")
            # A buffer stays one.
            value = Parameter._state(value)
        object.__setattr__(self, name, value)

    def __getattr__(self, name):
        way = "; in zyx: a module around it" if name.endswith("_hook") else ""
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{way}")

    def forward(self, *inputs, **options):
        """The result for the inputs."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *inputs, **options):
        return self.forward(*inputs, **options)

    def named_children(self):
        """Name and module of each direct submodule; those in lists and dicts as `name.0`, `name.key`."""
        for name, value in vars(self).items():
            yield from ((n, x) for n, x in _leaves(name, value) if isinstance(x, Module))

    def children(self):
        """The direct submodules."""
        return (module for _, module in self.named_children())

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Name and module of this one and of all modules inside, each once or under each of its names."""
        seen, queue = set() if memo is None else memo, [(prefix, self)]
        while queue:
            name, module = queue.pop(0)
            if remove_duplicate and id(module) in seen:
                continue
            seen.add(id(module))
            yield name, module
            inner = [(_join(name, n), m) for n, m in module.named_children()]
            queue[:0] = inner

    def modules(self, remove_duplicate=True):
        """This module and all modules inside, each once."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def _named(self, prefix=""):
        """Name and parameter or buffer, a tied one under each of its names: first the module's own."""
        own = [(_join(prefix, n), x) for name, value in vars(self).items() for n, x in _leaves(name, value)]
        for state in (False, True):
            yield from ((name, x) for name, x in own if isinstance(x, Parameter) and x.is_state() == state)
        for name, x in own:
            if isinstance(x, Module):
                yield from x._named(name)

    def _of_kind(self, state, prefix, recurse, remove_duplicate):
        seen = set()
        for name, p in self._named(prefix):
            own = recurse or "." not in name[len(prefix) :].strip(".")
            if p.is_state() == state and own and not (remove_duplicate and p._id() in seen):
                seen.add(p._id())
                yield name, p

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Name and parameter, trainable or frozen; a tied one once, or with `remove_duplicate=False` under each of its
        names. Running statistics and the like are no parameters but buffers.
        """
        return self._of_kind(False, prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """All parameters, each once: what an optimizer is made with. A list that `next` takes from."""
        return _List(p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Name and parameter of what is state, as running statistics are: changed by the layers, not by training."""
        return self._of_kind(True, prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """What is state, each once."""
        return _List(p for _, p in self.named_buffers(recurse=recurse))

    def zero_grad(self, set_to_none=True):
        """Forgets the gradients that `backward` collected, or makes them zeros."""
        for p in self.parameters():
            if p.grad is not None:
                p.grad = None if set_to_none else p.grad.zeros_like()

    def get_submodule(self, target):
        """The module of a path, as in `"blocks.0.norm"`."""
        return _found(self, "module", target, self.named_modules())

    def get_parameter(self, target):
        """The parameter of a path, as in `"blocks.0.norm.weight"`."""
        return _found(self, "parameter", target, self.named_parameters(remove_duplicate=False))

    def get_buffer(self, target):
        """The buffer of a path, as in `"norm.running_mean"`."""
        return _found(self, "buffer", target, self.named_buffers(remove_duplicate=False))

    def add_module(self, name, module):
        """Adds a module under a name."""
        if not name or "." in name or hasattr(self, name):
            raise KeyError(f"{name!r} is no name for a module, or is taken")
        vars(self)[name] = module

    register_module = add_module

    def register_buffer(self, name, tensor, persistent=True):
        """Adds state under a name: part of `state_dict` unless `persistent=False`, moved by `to`, not trained."""
        if not name or "." in name or hasattr(self, name):
            raise KeyError(f"{name!r} is no name for a buffer, or is taken")
        buffer = None if tensor is None else Parameter._state(tensor)
        vars(self)[name] = buffer
        if not persistent:
            vars(self)["_passing"] = {*vars(self).get("_passing", ()), name}

    def register_parameter(self, name, param):
        """Adds a parameter under a name, or `None`."""
        if not name or "." in name or hasattr(self, name):
            raise KeyError(f"{name!r} is no name for a parameter, or is taken")
        vars(self)[name] = param

    def to(self, *target, dtype=None, device=None, non_blocking=False):
        """All parameters on another device, or in another dtype if they are floating-point numbers, or both; in place.
        Optimizers are made afterwards.
        """
        planned = []
        for parameter in {p._id(): p for _, p in self._named()}.values():
            like = Tensor.zeros(0, dtype=parameter.dtype, device=parameter.device).to(*target, dtype=dtype, device=device)
            if like.dtype != parameter.dtype and not like.is_floating_point():
                raise TypeError(f"parameters are floating-point numbers, not {like.dtype}")
            kept = like if parameter.is_floating_point() else parameter
            planned.append((parameter, kept.dtype, like.device))
        for parameter, dtype, device in planned:
            parameter._convert(dtype, device)
        return self

    def half(self):
        """All parameters in `float16`."""
        return self.to(dtype="float16")

    def bfloat16(self):
        """All parameters in `bfloat16`."""
        return self.to(dtype="bfloat16")

    def float(self):
        """All parameters in `float32`."""
        return self.to(dtype="float32")

    def double(self):
        """All parameters in `float64`."""
        return self.to(dtype="float64")

    def cpu(self):
        """All parameters on the device `cpu`."""
        return self.to(device="cpu")

    def cuda(self, device=None):
        """All parameters on a device of the backend `cuda`."""
        return self.to(device="cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    def type(self, dst_type):
        """All parameters in another dtype."""
        return self.to(dtype=dst_type)

    def n_parameters(self):
        """Number of trainable elements."""
        return sum(p.numel() for p in self.parameters() if p.is_trainable())

    def state_dict(self, *, prefix=""):
        """The values of all parameters and buffers by name."""
        return {prefix + name: parameter.data for name, parameter in self._saved()}

    def _saved(self):
        """Name and parameter of what is part of `state_dict`: not buffers that are not persistent."""
        passing = {_join(at, name) for at, module in self.named_modules() for name in vars(module).get("_passing", ())}
        return ((name, parameter) for name, parameter in self._named() if name not in passing)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Replaces the values of parameters by those of the same names; NumPy arrays count as tensors.
        Nothing is replaced unless all fit. Gives the names that are missing and unknown, which is an
        error if `strict`.
        """
        named, state = dict(self._saved()), state_dict
        missing = [name for name in named if name not in state]
        unknown = [name for name in state if name not in named]
        if strict and (missing or unknown):
            parts = [f"missing are: {', '.join(missing)}"] * bool(missing)
            parts += [f"not part of the model are: {', '.join(unknown)}"] * bool(unknown)
            raise StateDictError("; ".join(parts))
        values = []
        for name, parameter in named.items():
            if name not in state:
                continue
            value = Tensor(state[name], dtype=parameter.dtype, device=parameter.device)
            if value.shape != parameter.shape:
                raise StateDictError(f"`{name}` has shape {value.shape} instead of {parameter.shape}")
            values.append((parameter, value))
        for parameter, value in values:
            parameter.set(value)
        return Keys(missing, unknown)

    def save(self, file):
        """Writes all parameters to a safetensors file."""
        save_safetensors(self.state_dict(), file)

    def load(self, file, strict=True):
        """Reads all parameters from a safetensors file, or from a state dict that PyTorch saved (`.pt`, `.pth`, `.bin`)."""
        read = load_pytorch if str(file).endswith((".pt", ".pth", ".bin")) else load_safetensors
        return self.load_state_dict(read(file), strict)

    def train(self, mode=True):
        """Switches dropout on and batch normalisation to the statistics of the batch."""
        for module in self.modules():
            module.training = mode
            module._set_mode(mode)
        return self

    def eval(self):
        """Switches dropout off and batch normalisation to its running statistics."""
        return self.train(False)

    def _set_mode(self, mode):
        """What else the mode is for."""

    def requires_grad_(self, requires_grad=True):
        """Freezes all parameters (`False`), or lets optimizers change the floating-point ones that are
        no running statistics.
        """
        for parameter in self.parameters():
            parameter.set_trainable(requires_grad)
        return self

    def apply(self, fn):
        """Calls `fn` with every module inside and this one."""
        for module in reversed(list(self.modules())):
            fn(module)
        return self

    def extra_repr(self):
        """What stands in the brackets of the printed form."""
        return ""

    def __repr__(self):
        inner = [(name, repr(module).replace("\n", "\n  ")) for name, module in self.named_children()]
        lines = "".join(f"\n  ({name}): {text}" for name, text in inner)
        return f"{type(self).__name__}({self.extra_repr()}{lines}{chr(10) if lines else ''})"


class StateDictError(ValueError, RuntimeError):
    """A state dict that does not fit."""


Keys = collections.namedtuple("Keys", ["missing_keys", "unexpected_keys"])


class _List(list):
    """A list that `next` takes from as well, as from PyTorch's iterators."""

    def __next__(self):
        self._at = getattr(self, "_at", -1) + 1
        if self._at == len(self):
            raise StopIteration
        return self[self._at]


def _found(module, what, path, named):
    for name, x in named:
        if name == path:
            return x
    raise AttributeError(f"'{type(module).__name__}' has no {what} '{path}'")


def _join(prefix, name):
    return f"{prefix}.{name}" if prefix else name


def _leaves(name, value):
    """Modules and parameters in an attribute, with names."""
    if isinstance(value, (Module, Parameter)):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _leaves(f"{name}.{i}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(f"{name}.{key}", item)


class Layer(Module):
    """A layer of Rust: parameters are attributes, `forward` computes in Rust."""

    # How many options are before `inplace`, of layers that have it.
    _inplace_at = None
    inplace = False

    def __init__(self, *options, **named):
        given = [repr(x) for x in options] + [f"{name}={x!r}" for name, x in named.items()]
        attributes, at = vars(self), self._inplace_at
        if at is not None:
            if len(options) == at + 1 and "inplace" in named:
                raise TypeError(f"{type(self).__name__}() got multiple values for argument 'inplace'")
            *options, inplace = options if len(options) == at + 1 else (*options, named.pop("inplace", False))
            if inplace:
                attributes["inplace"] = True
        native = type(self)._make(*options, **named)
        attributes["_native"], attributes["_text"], attributes["_given"] = native, ", ".join(given), (options, named)
        # Parts of a compound layer are named by a path.
        attributes.update(native.named_parameters())

    def forward(self, *inputs):
        """The result for the inputs."""
        found = self._native(*inputs)
        return inputs[0]._write(found) if self.inplace else found

    def _set_mode(self, mode):
        self._native.train(mode)

    def __setattr__(self, name, value):
        known = vars(self).get(name)
        if not isinstance(known, Parameter) or value is known:
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            # Tied: what is one weight in two layers.
            self._native.tie(name, value)
            vars(self)[name] = value
        else:
            known.set(value)

    def __getattr__(self, name):
        # `rnn.layers.0.weight` is reached by its whole name.
        way = "; in zyx: a module around it" if name.endswith("_hook") else ""
        raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'{way}")

    def __reduce__(self):
        # What a layer was made with, and its parameters themselves, so that others that hold them hold the copy's in a
        # copy. A stream of random numbers is drawn anew.
        own = list(self._named())
        known = {"_native", "_text", "_given", *(name for name, _ in own)}
        more = {name: x for name, x in vars(self).items() if name not in known}
        return _remade, (type(self), *self._given, own, more)

    def extra_repr(self):
        return self._text


def _remade(kind, options, named, own, more):
    """A layer made anew with the parameters of another."""
    layer = kind.__new__(kind)
    # Also of what makes its options from others', as a stack of layers does.
    Layer.__init__(layer, *options, **named)
    for name, parameter in own:
        setattr(layer, name, parameter)
    layer.train(more.get("training", True))
    vars(layer).update(more)
    return layer


class Sequential(Module):
    """Modules of which each takes the result of the one before. Parameters are named by position."""

    def __init__(self, *modules):
        named = modules[0].items() if len(modules) == 1 and isinstance(modules[0], dict) else enumerate(modules)
        for name, module in named:
            vars(self)[str(name)] = module

    def _all(self):
        return [x for x in vars(self).values() if isinstance(x, Module)]

    def append(self, module):
        """With another module at the end."""
        vars(self)[str(len(self))] = module
        return self

    def forward(self, x):
        for module in self._all():
            x = module(x)
        return x

    def __len__(self):
        return len(self._all())

    def __iter__(self):
        return iter(self._all())

    def __setitem__(self, i, module):
        names = [name for name, x in vars(self).items() if isinstance(x, Module)]
        vars(self)[names[i]] = module

    def __getitem__(self, i):
        found = self._all()[i]
        return Sequential(*found) if isinstance(i, slice) else found


class ModuleList(Module):
    """A list of modules; parameters are named by position."""

    def __init__(self, modules=()):
        for i, module in enumerate(modules):
            vars(self)[str(i)] = module

    append, _all, __setitem__ = Sequential.append, Sequential._all, Sequential.__setitem__
    __len__, __iter__ = Sequential.__len__, Sequential.__iter__

    def extend(self, modules):
        """With more modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def __getitem__(self, i):
        found = self._all()[i]
        return ModuleList(found) if isinstance(i, slice) else found


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules=None):
        self.update(modules or {})

    def update(self, modules):
        """Adds modules by name."""
        for name, module in dict(modules).items():
            self[name] = module

    def __setitem__(self, name, module):
        vars(self)[name] = module

    def __getitem__(self, name):
        return vars(self)[name]

    def __contains__(self, name):
        return name in self.keys()

    def __len__(self):
        return len(self.keys())

    def __iter__(self):
        return iter(self.keys())

    def keys(self):
        """The names."""
        return [name for name, x in vars(self).items() if isinstance(x, Module)]

    def values(self):
        """The modules."""
        return [vars(self)[name] for name in self.keys()]

    def items(self):
        """Name and module of each."""
        return [(name, vars(self)[name]) for name in self.keys()]
