"""Functions whose gradients call them again, under the names of `torch.utils.checkpoint`.

A region of a program keeps its inputs and computes the rest again for its gradient, with the same random numbers. The
gradient flows to the inputs, and to the parameters that are found in the function: in modules, attributes, closures and
global names. If the second call uses another parameter, it is an error.
"""

import contextlib
import functools
import types

from .._core import Tensor, _set_hook_history, is_grad_enabled
from .._grad_mode import enable_grad, no_grad
from .._tree import flatten
from ..autograd.function import Function
from ..random import fork_rng, get_rng_state, set_rng_state


_EMPTY = types.CellType()


class CheckpointError(RuntimeError):
    """A function that computes another thing when it is called again."""


def noop_context_fn():
    """Two blocks that change nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def _parameters(roots, inputs):
    """The leaves that are found in functions and modules, by their ids."""
    from ..nn import Module

    found, seen, queue = {}, {id(x) for x in inputs}, list(roots)
    while queue:
        x = queue.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, Tensor):
            if x.requires_grad and x.is_leaf:
                found |= dict(x._leaves())
        elif isinstance(x, Module):
            queue += [p for p in x.parameters() if p.requires_grad]
        elif isinstance(x, (list, tuple, set)):
            queue += x
        elif isinstance(x, dict):
            queue += x.values()
        elif isinstance(x, functools.partial):
            queue += [x.func, x.args, x.keywords]
        elif hasattr(x, "__code__") and hasattr(x, "__globals__"):
            queue += [cell.cell_contents for cell in x.__closure__ or () if cell != _EMPTY]
            queue += [x.__globals__[name] for name in x.__code__.co_names if name in x.__globals__]
            queue += [x.__defaults__, x.__kwdefaults__, getattr(x, "__wrapped__", None)]
        elif hasattr(x, "__self__") and hasattr(x, "__func__"):
            queue += [x.__self__, x.__func__]
        elif hasattr(x, "__dict__") and not isinstance(x, (type, types.ModuleType)):
            queue += vars(x).values()
    return found


def _in_a_row(tensors):
    return Tensor.cat([x.flatten() for x in tensors], 0)


def _keeps_history():
    """Whether the gradients that are computed now can be differentiated again."""
    mode = _set_hook_history(True)
    _set_hook_history(mode)
    return mode


class _Region:
    """A call of a function: its arguments, and the results of the first call."""

    def __init__(self, function, arguments, contexts, preserves_random):
        self.function, self.contexts = function, contexts
        self.arguments, self.rebuild = flatten(arguments)
        self.places = [i for i, x in enumerate(self.arguments) if isinstance(x, Tensor) and x.is_floating_point() and x.requires_grad]
        self.inputs = [self.arguments[i] for i in self.places]
        self.random = get_rng_state() if preserves_random else None
        self.is_inside = False
        self.parameters = list(_parameters([function, self.arguments], self.inputs).values())
        with no_grad():
            self.results, self.shape = self.call(contexts[0], self.inputs)
        self.count = len(self.results)
        floats = [i for i, y in enumerate(self.results) if isinstance(y, Tensor) and y.is_floating_point()]
        self.differentiable = floats if self.inputs or self.parameters else []

    def rule(self, inputs, output, dy):
        """Gradients of the region end at its inputs; those of these gradients go on."""
        return [None if self.is_inside else dy]

    def call(self, context, inputs):
        """The results for inputs, and how they are put together."""
        given = list(self.arguments)
        for place, x in zip(self.places, inputs):
            given[place] = x
        args, kwargs = self.rebuild(given)
        with context:
            return flatten(self.function(*args, **kwargs))

    def check(self, results, again):
        """Refuses parameters that were not found in the function."""
        known = {number for x in [*self.parameters, *again] for number, _ in x._leaves()}
        found = {number: p for y in results if isinstance(y, Tensor) and y.requires_grad for number, p in y._leaves()}
        lost = [tuple(p.shape) for number, p in found.items() if number not in known]
        if lost:
            raise CheckpointError(f"checkpoint: the function uses parameters of shapes {lost} that are neither its arguments nor found in it: pass them")

    def joined(self):
        """The inputs and parameters in a row. Gradients do not flow to those that the results do not depend on."""
        def source(i, x):
            return x.with_gradient([x], lambda _, __, dy: [dy if self.is_reached[i] else None])

        return _in_a_row([source(i, x) for i, x in enumerate([*self.inputs, *self.parameters])])

    def gradients(self, cotangents):
        """The gradients of the inputs and parameters."""
        first = next(dy for dy in cotangents if dy is not None)
        again = first._again(self.inputs) if self.inputs else []
        keeps_history = _keeps_history()
        # Without a history the inputs are leaves of the region alone.
        again = [x.with_gradient([x], self.rule) if keeps_history else x.detach().requires_grad_() for x in again]
        with fork_rng(enabled=self.random is not None):
            if self.random is not None:
                set_rng_state(self.random)
            with enable_grad():
                results, _ = self.call(self.contexts[1], again)
        if len(results) != self.count:
            raise CheckpointError(f"checkpoint: the function gave {self.count} results at first, and {len(results)} when it was called again")
        self.check(results, again)
        total = [None] * (len(again) + len(self.parameters))
        for i, dy in zip(self.differentiable, cotangents):
            if dy is None:
                continue
            y = results[i]
            if not isinstance(y, Tensor) or y.shape != dy.shape or y.dtype != dy.dtype:
                raise CheckpointError("checkpoint: recomputed values have different metadata than during the forward pass")
            self.is_inside = True
            try:
                found = y.grad_with(dy, [*again, *self.parameters]) if y.requires_grad else [None] * len(total)
            finally:
                self.is_inside = False
            total = [b if a is None else a if b is None else a + b for a, b in zip(total, found)]
        return total


class _Checkpointed(Function):
    """The results of a region, whose gradient computes it again. All its gradients are one tensor, so they are computed before
    those of the region before it, and recomputed values are kept for one region at a time.
    """

    @staticmethod
    def forward(ctx, region, joined):
        ctx.set_materialize_grads(False)
        ctx.region = region
        results, region.results = [region.results[i].detach() for i in region.differentiable], None
        return tuple(results)

    @staticmethod
    def backward(ctx, *cotangents):
        region = ctx.region
        found = region.gradients(cotangents)
        region.is_reached = [dx is not None for dx in found]
        return None, _in_a_row([x.zeros_like() if dx is None else dx for x, dx in zip([*region.inputs, *region.parameters], found)])


def checkpoint(function=None, *args, use_reentrant=None, context_fn=noop_context_fn, determinism_check="default", debug=False, early_stop=True,
               preserve_rng_state=True, **kwargs):  # fmt: skip
    """The function's result for the arguments. Its gradient calls the function again, with the same random numbers unless
    `preserve_rng_state=False`, within the second block of `context_fn()`. All ways of PyTorch to do that (`use_reentrant`,
    `early_stop`) are this one.
    """
    if not callable(function):
        raise TypeError(f"checkpoint: {type(function).__name__} is no function")
    contexts = context_fn()
    if not is_grad_enabled():
        with contexts[0]:
            return function(*args, **kwargs)
    region = _Region(function, (args, kwargs), contexts, preserve_rng_state)
    if not region.differentiable:
        return region.shape(region.results)
    results = list(region.results)
    for i, y in zip(region.differentiable, _Checkpointed.apply(region, region.joined())):
        results[i] = y
    return region.shape(results)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """The result of modules one after the other, in segments that are computed again for their gradients, but for the last."""
    if kwargs.keys() - {"preserve_rng_state"}:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= max(len(functions), 1):
        raise ValueError(f"checkpoint_sequential: {segments} segments of {len(functions)} functions")

    def run(part):
        def called(x):
            for function in part:
                x = function(x)
            return x

        return called

    size = max(len(functions) // segments, 1)
    for i in range(segments - 1):
        input = checkpoint(run(functions[i * size : (i + 1) * size]), input, **kwargs)
    return run(functions[(segments - 1) * size :])(input)


def detach_variable(inputs):
    """The tensors cut off from their history."""
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """A block that changes nothing: functions are called once."""
    yield


set_checkpoint_early_stop = set_checkpoint_debug_enabled
