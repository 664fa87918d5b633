"""Functions whose gradients call them again, under the names of `torch.utils.checkpoint`.

A region of a program keeps its inputs and computes the rest again for its gradient, with the same random numbers. Its
parameters are found by a first call, whose values on the way are not kept.
"""

import contextlib

from .._core import Tensor, is_grad_enabled
from .._grad_mode import enable_grad
from .._tree import flatten
from ..autograd.function import Function
from ..random import fork_rng, get_rng_state, set_rng_state


class CheckpointError(RuntimeError):
    """A function that computes another thing when it is called again."""


def noop_context_fn():
    """Two blocks that change nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class _Region:
    """A call of a function: its arguments, and the results of the first call."""

    def __init__(self, function, arguments, contexts, preserves_random):
        self.function, self.contexts = function, contexts
        self.arguments, self.rebuild = flatten(arguments)
        self.places = [i for i, x in enumerate(self.arguments) if isinstance(x, Tensor) and x.is_floating_point() and x.requires_grad]
        self.inputs = [self.arguments[i] for i in self.places]
        self.random = get_rng_state() if preserves_random else None
        self.is_inside = False
        leaves = [x.detach().requires_grad_() for x in self.inputs]
        self.results, self.shape = self.call(contexts[0], [x.with_gradient([x], self.rule) for x in leaves])
        self.differentiable = [i for i, y in enumerate(self.results) if isinstance(y, Tensor) and y.requires_grad]
        self.count, self.parameters = len(self.results), self.leaves(leaves)

    def rule(self, inputs, output, dy):
        """Gradients of the region end at its inputs; those of these gradients go on."""
        return [None if self.is_inside else dy]

    def call(self, context, inputs):
        """The results for inputs, and how they are put together."""
        given = list(self.arguments)
        for place, x in zip(self.places, inputs):
            given[place] = x
        args, kwargs = self.rebuild(given)
        with context, enable_grad():
            return flatten(self.function(*args, **kwargs))

    def leaves(self, inputs):
        """The leaves that the results were computed from, but for those that stand for inputs."""
        found = {number: p for i in self.differentiable for number, p in self.results[i]._leaves()}
        own = {number for x in inputs for number, _ in x._leaves()}
        return [p for number, p in found.items() if number not in own]

    def gradients(self, cotangents):
        """The gradients of the inputs and parameters."""
        first = next(dy for dy in cotangents if dy is not None)
        again = [x.with_gradient([x], self.rule) for x in (first._again(self.inputs) if self.inputs else [])]
        with fork_rng(enabled=self.random is not None):
            if self.random is not None:
                set_rng_state(self.random)
            results, _ = self.call(self.contexts[1], again)
        if len(results) != self.count:
            raise CheckpointError(f"checkpoint: the function gave {self.count} results at first, and {len(results)} when it was called again")
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
    """The results of a region, whose gradient computes it again."""

    @staticmethod
    def forward(ctx, region, *sources):
        ctx.set_materialize_grads(False)
        ctx.region = region
        results, region.results = [region.results[i].detach() for i in region.differentiable], None
        return tuple(results)

    @staticmethod
    def backward(ctx, *cotangents):
        return None, *ctx.region.gradients(cotangents)


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
    for i, y in zip(region.differentiable, _Checkpointed.apply(region, *region.inputs, *region.parameters)):
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
