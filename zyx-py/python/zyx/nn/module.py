"""What a module is: something with named parameters that can be called."""

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

    def named_modules(self, prefix=""):
        """Name and module of this one and of all modules inside, each once."""
        seen, queue = set(), [(prefix, self)]
        while queue:
            name, module = queue.pop(0)
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield name, module
            inner = [(_join(name, n), m) for n, m in module.named_children()]
            queue[:0] = inner

    def modules(self):
        """This module and all modules inside, each once."""
        return (module for _, module in self.named_modules())

    def named_parameters(self, prefix=""):
        """Name and parameter, trainable or state; a tied one under each of its names."""
        for name, value in vars(self).items():
            for n, x in _leaves(name, value):
                if isinstance(x, Parameter):
                    yield _join(prefix, n), x
                elif isinstance(x, Module):
                    yield from x.named_parameters(_join(prefix, n))

    def parameters(self):
        """All parameters, each once: what an optimizer is made with. State (running statistics) is
        among them, so that its pending values are computed with each step.
        """
        found = []
        for _, parameter in self.named_parameters():
            if not any(parameter.is_same(known) for known in found):
                found.append(parameter)
        return found

    def named_buffers(self, prefix=""):
        """Name and parameter of what is state, as running statistics are: changed by the layers, not by training."""
        return ((name, p) for name, p in self.named_parameters(prefix) if p.is_state())

    def buffers(self):
        """What is state, each once."""
        return [p for p in self.parameters() if p.is_state()]

    def register_buffer(self, name, tensor, persistent=True):
        """Adds state under a name: part of `state_dict` unless `persistent=False`, moved by `to`, not trained."""
        if not name or "." in name or hasattr(self, name):
            raise KeyError(f"{name!r} is no name for a buffer, or is taken")
        buffer = None if tensor is None else Parameter(tensor, requires_grad=False)
        vars(self)[name] = buffer
        if not persistent:
            vars(self)["_passing"] = {*vars(self).get("_passing", ()), name}

    def register_parameter(self, name, parameter):
        """Adds a parameter under a name, or `None`."""
        if not name or "." in name or hasattr(self, name):
            raise KeyError(f"{name!r} is no name for a parameter, or is taken")
        vars(self)[name] = parameter

    def to(self, *target, dtype=None, device=None, non_blocking=False):
        """All parameters on another device, or in another dtype if they are floating-point numbers, or both; in place.
        Optimizers are made afterwards.
        """
        planned = []
        for parameter in self.parameters():
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

    def n_parameters(self):
        """Number of trainable elements."""
        return sum(p.numel() for p in self.parameters() if p.is_trainable())

    def state_dict(self):
        """The values of all parameters by name."""
        return {name: parameter.data for name, parameter in self._saved()}

    def _saved(self):
        """Name and parameter of what is part of `state_dict`: not buffers that are not persistent."""
        passing = {_join(at, name) for at, module in self.named_modules() for name in vars(module).get("_passing", ())}
        return ((name, parameter) for name, parameter in self.named_parameters() if name not in passing)

    def load_state_dict(self, state, strict=True):
        """Replaces the values of parameters by those of the same names; NumPy arrays count as tensors.
        Nothing is replaced unless all fit. Gives the names that are missing and unknown, which is an
        error if `strict`.
        """
        named = dict(self._saved())
        missing = [name for name in named if name not in state]
        unknown = [name for name in state if name not in named]
        if strict and (missing or unknown):
            parts = [f"missing are: {', '.join(missing)}"] * bool(missing)
            parts += [f"not part of the model are: {', '.join(unknown)}"] * bool(unknown)
            raise ValueError("; ".join(parts))
        values = []
        for name, parameter in named.items():
            if name not in state:
                continue
            value = Tensor(state[name], dtype=parameter.dtype, device=parameter.device)
            if value.shape != parameter.shape:
                raise ValueError(f"`{name}` has shape {value.shape} instead of {parameter.shape}")
            values.append((parameter, value))
        for parameter, value in values:
            parameter.set(value)
        return missing, unknown

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
        for module in self.modules():
            state = getattr(module, "_state_names", ())
            for name, value in vars(module).items():
                for _, x in _leaves(name, value):
                    if isinstance(x, Parameter) and name not in state:
                        x.set_trainable(requires_grad)
        return self

    def apply(self, function):
        """Calls `function` with every module inside and this one."""
        for module in reversed(list(self.modules())):
            function(module)
        return self

    def extra_repr(self):
        """What stands in the brackets of the printed form."""
        return ""

    def __repr__(self):
        inner = [(name, repr(module).replace("\n", "\n  ")) for name, module in self.named_children()]
        lines = "".join(f"\n  ({name}): {text}" for name, text in inner)
        return f"{type(self).__name__}({self.extra_repr()}{lines}{chr(10) if lines else ''})"


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

    def __init__(self, *options, **named):
        # PyTorch's word for what never happens here: tensors do not change.
        named.pop("inplace", None)
        native = type(self)._make(*options, **named)
        given = [repr(x) for x in options] + [f"{name}={x!r}" for name, x in named.items()]
        attributes = vars(self)
        attributes["_native"], attributes["_text"], attributes["_given"] = native, ", ".join(given), (options, named)
        state = set()
        for name, parameter in native.named_parameters():
            # Parts of a compound layer are named by a path.
            attributes[name] = parameter
            if not parameter.is_trainable():
                state.add(name)
        attributes["_state_names"] = state

    def forward(self, *inputs):
        """The result for the inputs."""
        return self._native(*inputs)

    def _set_mode(self, mode):
        self._native.train(mode)

    def __setattr__(self, name, value):
        known = vars(self).get(name)
        if isinstance(known, Parameter) and value is not known:
            if isinstance(value, Parameter):
                raise AttributeError(f"`{name}` belongs to the layer; replace its value by `{name}.set(..)`")
            known.set(value)
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name):
        # `rnn.layers.0.weight` is reached by its whole name.
        raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")

    def __deepcopy__(self, memo):
        return _remade(*self.__reduce__()[1])

    def __reduce__(self):
        # What a layer was made with, and what it holds now. A stream of random numbers is drawn anew.
        own = [(name, x.data, x.is_trainable()) for name, x in self.named_parameters()]
        known = {"_native", "_text", "_given", "_state_names", *(name for name, *_ in own)}
        more = {name: x for name, x in vars(self).items() if name not in known}
        return _remade, (type(self), *self._given, own, more)

    def extra_repr(self):
        return self._text


def _remade(kind, options, named, own, more):
    """A layer made anew with the values of another."""
    layer = kind.__new__(kind)
    # Also of what makes its options from others', as a stack of layers does.
    Layer.__init__(layer, *options, **named)
    parameters = vars(layer)
    for name, value, trainable in own:
        parameters[name]._convert(value.dtype, value.device)
        parameters[name].set(value)
        parameters[name].set_trainable(trainable)
    layer.train(more.get("training", True))
    parameters.update(more)
    return layer


class Sequential(Module):
    """Modules of which each takes the result of the one before. Parameters are named by position."""

    def __init__(self, *modules):
        for i, module in enumerate(modules):
            vars(self)[str(i)] = module

    def _all(self):
        return [x for name, x in vars(self).items() if name.isdigit()]

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

    def __getitem__(self, i):
        found = self._all()[i]
        return Sequential(*found) if isinstance(i, slice) else found


class ModuleList(Module):
    """A list of modules; parameters are named by position."""

    def __init__(self, modules=()):
        for i, module in enumerate(modules):
            vars(self)[str(i)] = module

    append, _all = Sequential.append, Sequential._all
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
        for name, module in (modules or {}).items():
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
