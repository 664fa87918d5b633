"""What a module is: something with named parameters that can be called."""

import collections
import collections.abc
import itertools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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

    dump_patches, call_super_init, _version = False, False, 1

    def __setattr__(self, name, value):
        known = vars(self).get(name)
        if isinstance(known, Parameter) and isinstance(value, Tensor) and not isinstance(value, Parameter):
            if not known.is_state():
                raise TypeError(f"`{name}` is a parameter: assign an nn.Parameter, or replace its value by {name}.set(..)")
            # A buffer stays one.
            value = Parameter._state(value)
        elif _is_foreign(value):
            raise TypeError(f"`{name}` would be {_named_type(value)}, which is no part of a zyx module: it would neither be trained nor saved")
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        if name in vars(self).get("_passing", ()):
            self._passing.discard(name)
        object.__delattr__(self, name)

    def __getattr__(self, name: "str") -> "Any":
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def forward(self, *inputs, **options):
        """The result for the inputs."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *inputs: "Any", **options: "Any") -> "Any":
        try:
            if "_hooks" in self.__dict__ or _GLOBAL:
                return _hooks.call(self, inputs, options)
            return self.forward(*inputs, **options)
        except Exception as error:
            _located(self, error)
            raise

    @property
    def _modules(self):
        """The direct submodules by name. An assigned value is a submodule from then on."""
        found = {n: x for n, x in self.named_children()}
        return _Parts(self, found | {n: None for n in vars(self).get("_none", ()) if n not in found})

    @property
    def _parameters(self):
        """The module's own parameters by name. An assigned value is a parameter from then on."""
        return _Parts(self, {n: x for n, x in _own(self) if isinstance(x, Parameter) and not x.is_state()})

    @property
    def _buffers(self):
        """The module's own buffers by name. An assigned value is a buffer from then on."""
        return _Parts(self, {n: x for n, x in _own(self) if isinstance(x, Parameter) and x.is_state()})

    def _replace(self, name, value):
        """Another module, parameter or buffer in the place of a name, which may lead into a list or a dict."""
        first, *rest = name.split(".")
        if not rest:
            vars(self)[first] = value
            return
        at = vars(self)[first]
        for key in rest[:-1]:
            at = at[int(key) if isinstance(at, (list, tuple)) else key]
        at[int(rest[-1]) if isinstance(at, list) else rest[-1]] = value

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Calls `hook(module, inputs, output)` after each `forward`; a result takes the output's place."""
        return _hooks.register(self, "forward", hook, prepend, with_kwargs, always_call)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Calls `hook(module, inputs)` before each `forward`; a result takes the inputs' place."""
        return _hooks.register(self, "before", hook, prepend, with_kwargs)

    def register_full_backward_hook(self, hook, prepend=False):
        """Calls `hook(module, grad_input, grad_output)` when gradients of the inputs are asked for; a result takes the place
        of `grad_input`.
        """
        return _hooks.register(self, "backward", hook, prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Calls `hook(module, grad_output)` before gradients go through the module; a result takes their place."""
        return _hooks.register(self, "backward_before", hook, prepend)

    def register_backward_hook(self, hook):
        """`register_full_backward_hook`, which PyTorch advises instead."""
        return self.register_full_backward_hook(hook)

    def register_state_dict_pre_hook(self, hook):
        """Calls `hook(module, prefix, keep_vars)` before `state_dict`."""
        return _hooks.register(self, "state_before", hook)

    def register_state_dict_post_hook(self, hook):
        """Calls `hook(module, state_dict, prefix, local_metadata)` after `state_dict`."""
        return _hooks.register(self, "state", hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook):
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)` before
        `load_state_dict`.
        """
        return _hooks.register(self, "load_before", hook, with_kwargs=True)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return _hooks.register(self, "load_before", hook, with_kwargs=with_module)

    def register_load_state_dict_post_hook(self, hook):
        """Calls `hook(module, incompatible_keys)` after `load_state_dict`."""
        return _hooks.register(self, "load", hook)

    def get_extra_state(self):
        """More of a module that `state_dict` shall have, if a subclass defines it."""
        raise RuntimeError("get_extra_state() is for subclasses that define it and set_extra_state()")

    def set_extra_state(self, state):
        """Takes a result of `get_extra_state`, if a subclass defines it."""
        raise RuntimeError("set_extra_state() is for subclasses that define it and get_extra_state()")

    def set_submodule(self, target, module, strict=False):
        """Puts a module in the place of a path, as in `"blocks.0.norm"`; with `strict` there has to be one."""
        if not target:
            raise ValueError("set_submodule: the path is empty")
        if not isinstance(module, Module):
            raise ValueError(f"set_submodule: {_named_type(module)} is no Module")
        parent, _, name = target.rpartition(".")
        found = self.get_submodule(parent) if parent else self
        if strict and not isinstance(getattr(found, name, None), Module):
            raise AttributeError(f"'{type(found).__name__}' has no module '{name}'")
        found._replace(name, module)

    def compile(self, *given, **options):
        """Nothing: every computation is compiled."""

    def share_memory(self):
        """Nothing to share: processes exchange copies of tensors. An error that says so."""
        raise NotImplementedError("share_memory: processes exchange copies of tensors; save() and load() a file")

    def to_empty(self, *, device, recurse=True):
        """All parameters on another device, without their values: they keep them here."""
        return self.to(device=device)

    def _apply(self, fn, recurse=True):
        """Every parameter and buffer replaced by `fn` of its value."""
        for parameter in {p._id(): p for _, p in self._named()}.values():
            value = fn(parameter.data)
            if value.dtype != parameter.dtype or value.device != parameter.device:
                parameter._convert(value.dtype, value.device)
            parameter.set(value)
        return self

    def xpu(self, device=None):
        """All parameters on a device of the backend `xpu`, which there is none of."""
        return self.to(device="xpu")

    ipu = mtia = xpu

    def named_children(self):
        """Name and module of each direct submodule; those in lists and dicts as `name.0`, `name.key`."""
        yield from ((n, x) for n, x in _own(self) if isinstance(x, Module))

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
        own = [(_join(prefix, n), x) for n, x in _own(self)]
        for state in (False, True):
            yield from ((name, x) for name, x in own if isinstance(x, Parameter) and x.is_state() == state)
        for name, x in own:
            if isinstance(x, Module):
                yield from x._named(name)

    def _of_kind(self, state, prefix, recurse, remove_duplicate):
        if not state:
            _initialized(self)
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
        """The module of a path, as in `"blocks.0.norm"`; the module itself of an empty one."""
        return _found(self, "module", target, self.named_modules())

    def get_parameter(self, target):
        """The parameter of a path, as in `"blocks.0.norm.weight"`."""
        return _found(self, "parameter", target, self.named_parameters(remove_duplicate=False))

    def get_buffer(self, target):
        """The buffer of a path, as in `"norm.running_mean"`."""
        return _found(self, "buffer", target, self.named_buffers(remove_duplicate=False))

    def add_module(self, name, module):
        """Adds a module under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_named_type(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"a module's name is a str, not {type(name).__name__}")
        if not name or "." in name or hasattr(self, name) and name not in self._modules:
            raise KeyError(f"{name!r} is no name for a module, or is taken")
        vars(self)[name] = module

    register_module = add_module

    def register_buffer(self, name, tensor, persistent=True):
        """Adds state under a name: part of `state_dict` unless `persistent=False`, moved by `to`, not trained."""
        if not name or "." in name or hasattr(self, name):
            raise KeyError(f"{name!r} is no name for a buffer, or is taken")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"a buffer is a Tensor or None, not {_named_type(tensor)}")
        buffer = None if tensor is None else Parameter._state(tensor)
        vars(self)[name] = buffer
        if not persistent:
            vars(self)["_passing"] = {*vars(self).get("_passing", ()), name}

    def register_parameter(self, name, param):
        """Adds a parameter under a name, or `None`."""
        if not name or "." in name or hasattr(self, name):
            raise KeyError(f"{name!r} is no name for a parameter, or is taken")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"a parameter is an nn.Parameter or None, not {_named_type(param)}")
        vars(self)[name] = param

    def to(self, *target, dtype=None, device=None, non_blocking=False, memory_format=None):
        """All parameters on another device, or in another dtype if they are floating-point numbers, or both; in place.
        Optimizers are made afterwards. How they are stored (`memory_format`) is no matter of their users.
        """
        if memory_format is not None and not target and dtype is None and device is None:
            return self
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

    def state_dict(self, *given, destination=None, prefix="", keep_vars=False):
        """The values of all parameters and buffers by name, or with `keep_vars` they themselves; in `destination` if there is
        one.
        """
        if given:
            destination, prefix, keep_vars = (*given, *(destination, prefix, keep_vars)[len(given) :])
        found = {} if destination is None else destination
        for at, module in _with_hooks(self):
            _hooks.run(module, "state_before", _join(prefix.rstrip("."), at), keep_vars)
        found.update((prefix + name, p if keep_vars else p.data) for name, p in self._saved())
        for at, module in self.named_modules():
            if type(module).get_extra_state is not Module.get_extra_state:
                found[prefix + _join(at, "_extra_state")] = module.get_extra_state()
        for at, module in _with_hooks(self):
            _hooks.run(module, "state", found, prefix + (at + "." if at else ""), {})
        return found

    def _saved(self):
        """Name and parameter of what is part of `state_dict`: not buffers that are not persistent."""
        _initialized(self)
        passing = {_join(at, name) for at, module in self.named_modules() for name in vars(module).get("_passing", ())}
        return ((name, parameter) for name, parameter in self._named() if name not in passing)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Replaces the values of parameters by those of the same names; NumPy arrays count as tensors. With `assign` the
        parameters themselves are replaced, and have the dtypes and devices of the state dict. Nothing is replaced unless all
        fit. Gives the names that are missing and unknown, which is an error if `strict`.
        """
        if not isinstance(state_dict, collections.abc.Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}")
        state, missing, unknown, problems = dict(state_dict), [], [], []
        for at, module in _with_hooks(self):
            _hooks.run(module, "load_before", state, at + "." if at else "", {}, strict, missing, unknown, problems)
        named = dict(self._saved())
        extra = {_join(at, "_extra_state"): module for at, module in self.named_modules()
                 if type(module).set_extra_state is not Module.set_extra_state}  # fmt: skip
        missing += [name for name in (*named, *extra) if name not in state]
        unknown += [name for name in state if name not in named and name not in extra]
        if problems or strict and (missing or unknown):
            parts = list(problems) + [f"missing are: {', '.join(missing)}"] * bool(missing)
            parts += [f"not part of the model are: {', '.join(unknown)}"] * bool(unknown)
            raise StateDictError("; ".join(parts))
        values = []
        for name, parameter in named.items():
            if name not in state:
                continue
            value = state[name] if assign and isinstance(state[name], Tensor) else Tensor(state[name], dtype=parameter.dtype, device=parameter.device)
            if value.shape != parameter.shape:
                raise StateDictError(f"`{name}` has shape {value.shape} instead of {parameter.shape}")
            values.append((name, parameter, value))
        for name, parameter, value in values:
            if not assign:
                parameter.set(value)
            elif parameter.is_state():
                self._assign(name, Parameter._state(value))
            else:
                self._assign(name, value if isinstance(value, Parameter) else Parameter(value, parameter.requires_grad))
        for name, module in extra.items():
            if name in state:
                module.set_extra_state(state[name])
        found = Keys(missing, unknown)
        for _, module in _with_hooks(self):
            _hooks.run(module, "load", found)
        return found

    def _assign(self, path, parameter):
        """A parameter in the place of a path."""
        for at, module in self.named_modules():
            name = path[len(at) :].lstrip(".") if path.startswith(at) else ""
            if name and any(n == name for n, _ in _own(module)):
                module._replace(name, parameter)
                return

    def save(self, file):
        """Writes all parameters to a safetensors file."""
        save_safetensors(self.state_dict(), file)

    def load(self, file, strict=True):
        """Reads all parameters from a safetensors file, or from a state dict that PyTorch saved (`.pt`, `.pth`, `.bin`)."""
        read = load_pytorch if str(file).endswith((".pt", ".pth", ".bin")) else load_safetensors
        return self.load_state_dict(read(file), strict)

    def train(self, mode=True):
        """Switches dropout on and batch normalisation to the statistics of the batch."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
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

    def _shown_children(self):
        return [(name, repr(module).replace("\n", "\n  ")) for name, module in self.named_children()]

    def __repr__(self):
        inner, extra = self._shown_children(), self.extra_repr()
        if not inner and "\n" not in extra:
            return f"{self._get_name()}({extra})"
        lines = [line for line in extra.split("\n") if line] + [f"({name}): {text}" for name, text in inner]
        return f"{self._get_name()}(" + "".join(f"\n  {line}" for line in lines) + "\n)"

    def _get_name(self):
        return type(self).__name__

    def _repr_html_(self):
        from .._html import module_html

        return module_html(self)


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


def _initialized(module):
    """An error if a lazy layer inside has had no input yet."""
    for path, m in module.named_modules():
        if hasattr(type(m), "has_uninitialized_params"):
            raise ValueError(f"`{path}`, a {type(m).__name__}, has no parameters before the first input: call the module once")


def _own(module):
    """Name and value of the parameters and modules of one module. What has an attribute of its own is not named again in a
    list or a dict: programs of PyTorch keep layers in both.
    """
    attributes = vars(module)
    named = {id(value) for value in attributes.values() if isinstance(value, (Module, Parameter))}
    return [
        (n, x) for name, value in attributes.items() for n, x in _leaves(name, value) if value is x or id(x) not in named
    ]


def _named_type(value):
    """How an error names a value: a class, a function, or a value of a type."""
    kind = value if isinstance(value, type) or callable(value) and hasattr(value, "__qualname__") else type(value)
    name = f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', kind)}"
    return f"the class {name}" if isinstance(value, type) else name if kind is value else f"a {name}"


def _is_foreign(value):
    """Whether a value is a module or parameter of another library."""
    if isinstance(value, (Module, Tensor, type, str, int, float, tuple, list, dict)) or value is None:
        return False
    return type(value).__module__.partition(".")[0] == "torch" and (hasattr(value, "named_parameters") or hasattr(value, "requires_grad"))


class _Parts(dict):
    """Parts of a module by name. Assignments and removals change the module."""

    def __init__(self, module, parts):
        super().__init__(parts)
        self._module = module

    def __setitem__(self, name, value):
        super().__setitem__(name, value)
        self._module._replace(name, value)

    def __delitem__(self, name):
        super().__delitem__(name)
        vars(self._module).pop(name, None)

    def pop(self, name, *default):
        found = super().pop(name, *default)
        vars(self._module).pop(name, None)
        return found

    def update(self, *given, **named):
        for name, value in dict(*given, **named).items():
            self[name] = value

    def clear(self):
        for name in list(self):
            del self[name]


def _located(module, error):
    """Writes into an error in which layer it came up: the path from the outermost module, and the layer's type."""
    about = vars(error)
    if "_layer" not in about:
        if not error.args or not isinstance(error.args[0], str) or isinstance(error, (KeyError, StopIteration)):
            return
        about["_layer"] = (error.args[0], [], type(module).__name__, module)
        return
    text, path, name, inner = about["_layer"]
    for key, child in module.named_children():
        if child is inner:
            path.insert(0, key)
            break
    else:
        return
    about["_layer"] = (text, path, name, module)
    error.args = (f"{text} (in layer `{'.'.join(path)}`, {name})", *error.args[1:])


def _with_hooks(module):
    return [(at, m) for at, m in module.named_modules() if "_hooks" in vars(m)]


_GLOBAL = {}


class _Late:
    """The module of hooks, imported at its first use."""

    def __getattr__(self, name):
        from . import _hooks as found

        globals()["_hooks"] = found
        return getattr(found, name)


_hooks = _Late()


def _child(module):
    """A module; a `TypeError` that names any other value."""
    if not isinstance(module, Module):
        raise TypeError(f"{_named_type(module)} is not a Module subclass")
    return module


class _Ordered(Module):
    """Modules by position."""

    def _all(self):
        return [x for x in vars(self).values() if isinstance(x, Module)]

    def _names(self):
        return [name for name, x in vars(self).items() if isinstance(x, Module)]

    def _become(self, modules):
        """These modules in place of those that are there."""
        modules = [_child(module) for module in modules]
        for name in self._names():
            del vars(self)[name]
        for i, module in enumerate(modules):
            vars(self)[str(i)] = module
        return self

    def append(self, module):
        """With another module at the end."""
        vars(self)[str(len(self))] = _child(module)
        return self

    def extend(self, modules):
        """With more modules at the end."""
        if not hasattr(modules, "__iter__"):
            raise TypeError(f"extend() takes modules in order, not {_named_type(modules)}")
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index, module):
        """With another module before a position."""
        modules, n = self._all(), len(self)
        if not -n <= index <= n:
            raise IndexError(f"index {index} is out of range of {n} modules")
        modules.insert(index, module)
        return self._become(modules)

    def pop(self, key=-1):
        """Takes a module out."""
        found = self[key]
        del self[key]
        return found

    def __len__(self):
        return len(self._all())

    def __iter__(self):
        return iter(self._all())

    def __contains__(self, module):
        return any(x is module for x in self._all())

    def _position(self, i):
        names = self._names()
        if not hasattr(i, "__index__"):
            raise TypeError(f"a position is an int, not {type(i).__name__}")
        if not -len(names) <= i.__index__() < len(names):
            raise IndexError(f"index {i} is out of range of {len(names)} modules")
        return names[i]

    def __setitem__(self, i, module):
        vars(self)[self._position(i)] = _child(module)

    def __delitem__(self, i):
        names = self._names()
        gone = names[i] if isinstance(i, slice) else [self._position(i)]
        kept = [vars(self)[name] for name in names if name not in gone]
        numbered = all(name.isdigit() for name in names)
        for name in gone:
            del vars(self)[name]
        if numbered:
            self._become(kept)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return _Ordered._become(type(self)(), self._all()[i])
        return vars(self)[self._position(i)]

    def __add__(self, other):
        return _Ordered._become(type(self)(), [*self, *other])

    def __iadd__(self, other):
        return self.extend(other)

    def __mul__(self, times):
        import copy

        return _Ordered._become(type(self)(), [module if n == 0 else copy.deepcopy(module) for n in range(times) for module in self])

    __rmul__ = __mul__


class Sequential(_Ordered):
    """Modules of which each takes the result of the one before. Parameters are named by position, or by the keys of a dict."""

    def __init__(self, *args):
        named = args[0].items() if len(args) == 1 and isinstance(args[0], dict) else enumerate(args)
        for name, module in named:
            vars(self)[str(name)] = _child(module)

    def forward(self, input):
        for module in list(self.__dict__.values()):
            if isinstance(module, Module):
                input = module(input)
        return input


class ModuleList(_Ordered):
    """A list of modules; parameters are named by position."""

    def __init__(self, modules=None):
        if modules is not None:
            self.extend(modules)

    def _shown_children(self):
        # Equal neighbours are shown once, with their number.
        found = []
        for text, same in itertools.groupby(enumerate(map(repr, self)), key=lambda pair: pair[1]):
            places = [i for i, _ in same]
            text = text.replace("\n", "\n  ")
            found.append((f"{places[0]}-{places[-1]}", f"{len(places)} x {text}") if len(places) > 1 else (str(places[0]), text))
        return found


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules=None):
        self.update({} if modules is None else modules)

    def update(self, modules):
        """Adds modules by name."""
        for name, module in dict(modules).items():
            self[name] = module

    def __setitem__(self, name, module):
        self.add_module(name, _child(module))

    def __getitem__(self, name):
        if name not in self.keys():
            raise KeyError(name)
        return vars(self)[name]

    def __delitem__(self, name):
        self[name]
        del vars(self)[name]

    def pop(self, key):
        """Takes a module out."""
        found = self[key]
        del self[key]
        return found

    def clear(self):
        """Takes all modules out."""
        for name in self.keys():
            del vars(self)[name]

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


def _parameter(value, container):
    """A parameter of a tensor; a `TypeError` that names any other value."""
    if isinstance(value, Parameter):
        return value
    if isinstance(value, Tensor):
        return Parameter(value)
    raise TypeError(f"{container} holds tensors and parameters, not {_named_type(value)}")


class ParameterList(Module):
    """Parameters by position; tensors become parameters."""

    def __init__(self, values=None):
        self.extend(values if values is not None else ())

    def _all(self):
        return [x for name, x in vars(self).items() if name.isdigit()]

    def append(self, value):
        """With another parameter at the end."""
        vars(self)[str(len(self))] = _parameter(value, "ParameterList")
        return self

    def extend(self, values):
        """With more parameters at the end."""
        if isinstance(values, Tensor) or not hasattr(values, "__iter__"):
            raise TypeError(f"ParameterList takes parameters in order, not {_named_type(values)}")
        for value in list(values):
            self.append(value)
        return self

    def __len__(self):
        return len(self._all())

    def __iter__(self):
        return iter(self._all())

    def __getitem__(self, i):
        found = self._all()[i]
        return type(self)(found) if isinstance(i, slice) else found

    def __setitem__(self, i, value):
        names = [name for name in vars(self) if name.isdigit()]
        vars(self)[names[i]] = _parameter(value, "ParameterList")

    def __iadd__(self, values):
        return self.extend(values)

    def __call__(self, *given, **named):
        raise RuntimeError("ParameterList should not be called.")

    def extra_repr(self):
        return "\n".join(f"({i}): {_described(p)}" for i, p in enumerate(self))


class ParameterDict(Module):
    """Parameters by name; tensors become parameters."""

    def __init__(self, parameters=None):
        vars(self)["_keys"] = {}
        self.update({} if parameters is None else parameters)

    def __setitem__(self, key, value):
        if not isinstance(key, str):
            raise TypeError(f"a parameter's name is a str, not {type(key).__name__}")
        if "." in key or not key or key not in self._keys and hasattr(self, key):
            raise KeyError(f"{key!r} is no name for a parameter, or is taken")
        self._keys[key] = None
        vars(self)[key] = _parameter(value, "ParameterDict")

    def __getitem__(self, key):
        if key not in self._keys:
            raise KeyError(key)
        return vars(self)[key]

    def __delitem__(self, key):
        del self._keys[key]
        del vars(self)[key]

    def update(self, parameters):
        """Adds parameters by name."""
        for key, value in (parameters.items() if hasattr(parameters, "items") else parameters):
            self[key] = value

    def setdefault(self, key, default=None):
        """The parameter of a name, which is made of `default` if there is none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def get(self, key, default=None):
        """The parameter of a name, or `default`."""
        return self[key] if key in self._keys else default

    def pop(self, key):
        """Takes a parameter out."""
        found = self[key]
        del self[key]
        return found

    def popitem(self):
        """Takes the last parameter out, with its name."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self):
        """Takes all parameters out."""
        for key in list(self._keys):
            del self[key]

    def copy(self):
        """Another dict of the same parameters."""
        return type(self)(dict(self.items()))

    def fromkeys(self, keys, default=None):
        """A dict of parameters that are made of one value."""
        return type(self)({key: default for key in keys})

    def __contains__(self, key):
        return key in self._keys

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(list(self._keys))

    def __reversed__(self):
        return reversed(list(self._keys))

    def keys(self):
        """The names."""
        return self._keys.keys()

    def values(self):
        """The parameters."""
        return [vars(self)[key] for key in self._keys]

    def items(self):
        """Name and parameter of each."""
        return [(key, vars(self)[key]) for key in self._keys]

    def __or__(self, other):
        return type(self)(dict(self.items()) | dict(other.items()))

    def __ior__(self, other):
        self.update(other)
        return self

    def __call__(self, *given, **named):
        raise RuntimeError("ParameterDict should not be called.")

    def extra_repr(self):
        return "\n".join(f"({key}): {_described(p)}" for key, p in self.items())


def _described(p):
    """How a list of parameters shows one of them."""
    size = "x".join(str(n) for n in p.shape)
    return f"Parameter containing: [zyx.{p.dtype.name} of size {size}]"


class NativeLayer(Module):
    """A layer of Rust that PyTorch lacks: parameters are attributes, `forward` computes in Rust."""

    def __init__(self, *options, **named):
        native = type(self)._make(*options, **named)
        given = [repr(x) for x in options] + [f"{name}={x!r}" for name, x in named.items()]
        vars(self).update(_native=native, _text=", ".join(given), _given=(options, named))
        # Parts of a compound layer are named by a path.
        vars(self).update(native.named_parameters())

    def forward(self, *inputs):
        """The result for the inputs."""
        return self._native(*inputs)

    def _set_mode(self, mode):
        self._native.train(mode)

    def __setattr__(self, name, value):
        known = vars(self).get(name)
        if not isinstance(known, Parameter) or value is known:
            Module.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            # Tied: one weight in two layers.
            self._native.tie(name, value)
            vars(self)[name] = value
        else:
            known.set(value)

    def __reduce__(self):
        # The options, and the parameters themselves: modules that hold them hold the copy's in a copy.
        own = list(self._named())
        known = {"_native", "_text", "_given", *(name for name, _ in own)}
        more = {name: x for name, x in vars(self).items() if name not in known}
        return _remade, (type(self), *self._given, own, more)

    def extra_repr(self):
        return self._text


def _remade(kind, options, named, own, more):
    """A new layer with the parameters of another."""
    layer = kind(*options, **named)
    for name, parameter in own:
        setattr(layer, name, parameter)
    layer.train(more.get("training", True))
    vars(layer).update(more)
    return layer
