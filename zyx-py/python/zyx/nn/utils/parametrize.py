"""Weights that are computed from other parameters, under the names of `torch.nn.utils.parametrize`."""

import contextlib

from ..._core import Parameter, Tensor
from ..module import Module, ModuleDict, ModuleList

_CACHE, _CACHED = {}, 0


@contextlib.contextmanager
def cached():
    """A block in which each weight is computed once."""
    global _CACHED
    _CACHED += 1
    try:
        yield
    finally:
        _CACHED -= 1
        if not _CACHED:
            _CACHE.clear()


class ParametrizationList(ModuleList):
    """The functions that a weight goes through, and their inputs: `original`, or `original0`, `original1`, .."""

    def __init__(self, modules, original, unsafe=False):
        super().__init__(modules)
        vars(self)["unsafe"] = unsafe
        value = original.detach()
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                continue
            value = module.right_inverse(*value) if isinstance(value, tuple) else module.right_inverse(value)
        parts = [value] if isinstance(value, Tensor) else list(value)
        trained = isinstance(original, Parameter) and not original.is_state()
        make = Parameter if trained else Parameter._state
        names = ["original"] if isinstance(value, Tensor) else [f"original{i}" for i in range(len(parts))]
        vars(self)["is_tensor"], vars(self)["_names_of"] = isinstance(value, Tensor), names
        for name, part in zip(names, parts):
            same = part.shape == original.shape and isinstance(value, Tensor) and part is original.detach()
            vars(self)[name] = original if same else make(part)

    def right_inverse(self, value):
        """Sets the originals so that the weight is this value."""
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
            value = module.right_inverse(*value) if isinstance(value, tuple) else module.right_inverse(value)
        for name, part in zip(self._names_of, [value] if isinstance(value, Tensor) else value):
            vars(self)[name].set(part)

    def forward(self):
        parts = [vars(self)[name] for name in self._names_of]
        for i, module in enumerate(self):
            value = module(*parts) if i == 0 else module(value)
        return value


def _remade(base, attributes):
    module = base.__new__(base)
    vars(module).update(attributes)
    for name in attributes["parametrizations"].keys():
        _inject(module, name)
    return module


def _inject(module, name):
    """Gives the module's class a property for a weight; the class is the module's own."""
    kind = type(module)
    if not hasattr(kind, "_parametrized"):
        kind = type(f"Parametrized{kind.__name__}", (kind,), {"_parametrized": kind, "__reduce__": lambda self: (_remade, (self._parametrized, dict(vars(self)))),
                                                               "__module__": kind.__module__})  # fmt: skip
        module.__class__ = kind

    def get(self):
        if not _CACHED:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _CACHE:
            _CACHE[key] = self.parametrizations[name]()
        return _CACHE[key]

    setattr(kind, name, property(get, lambda self, value: self.parametrizations[name].right_inverse(value)))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Computes a weight by a module from now on: from the weight that it was, or from
    `right_inverse` of it.
    """
    if not isinstance(parametrization, Module):
        raise TypeError(f"a parametrization is a Module, not {type(parametrization).__name__}")
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        with_more = module.parametrizations[tensor_name]
        value = getattr(module, tensor_name).detach()
        with_more.append(parametrization)
        if hasattr(parametrization, "right_inverse"):
            with_more.right_inverse(value)
        return module
    weight = vars(module).get(tensor_name)
    if not isinstance(weight, Parameter):
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    made = ParametrizationList([parametrization], weight, unsafe)
    if not unsafe:
        found = made()
        if not isinstance(found, Tensor) or found.shape != weight.shape or found.dtype != weight.dtype:
            raise ValueError(f"Registering a parametrization may not change the shape or dtype of the tensor, unless unsafe=True: {getattr(found, 'shape', found)} of {weight.shape}")
    del vars(module)[tensor_name]
    if "parametrizations" not in vars(module):
        vars(module)["parametrizations"] = ModuleDict()
    # Names like `weight` are free in this dict.
    vars(module.parametrizations)[tensor_name] = made
    _inject(module, tensor_name)
    return module


def is_parametrized(module, tensor_name=None):
    """Whether a weight, or any, is computed."""
    found = vars(module).get("parametrizations")
    return found is not None and (len(found) > 0 if tensor_name is None else tensor_name in found)


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Makes the weight a parameter again: of the value that was computed, or of the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    made = module.parametrizations[tensor_name]
    if not leave_parametrized and not made.is_tensor:
        raise ValueError("leave_parametrized=False needs a weight that is computed from one tensor")
    value = (getattr(module, tensor_name) if leave_parametrized else made.original).detach()
    state = all(vars(made)[name].is_state() for name in made._names_of)
    del module.parametrizations[tensor_name]
    delattr(type(module), tensor_name)
    vars(module)[tensor_name] = Parameter._state(value) if state else Parameter(value)
    if not len(module.parametrizations):
        del vars(module)["parametrizations"]
        module.__class__ = type(module)._parametrized
    return module


def type_before_parametrizations(module):
    """The module's class without its computed weights."""
    return getattr(type(module), "_parametrized", type(module))
