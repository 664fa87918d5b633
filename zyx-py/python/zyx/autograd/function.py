"""Operations with gradients that a user writes: `Function`, under the names of `torch.autograd.function`.

`Function.apply` calls `forward` without histories and gives the results a rule that calls `backward`. The core's rules
(`Tensor.with_gradient`) join one result with its inputs. Calls with several results, or more than two inputs, are joined by a
chain of zeros without axes, the links: the first link is the only source of all results, so its rule runs after those of the results, and
hands the gradients of the inputs to the links behind it. Nothing of a link is ever computed.
"""

import functools

from .._core import Tensor, is_grad_enabled
from .._grad_mode import enable_grad, no_grad
from ..func import _inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _is_differentiable(x):
    return isinstance(x, Tensor) and x.is_floating_point()


class FunctionCtx:
    """The notes of one call of a `Function`: attributes, and tensors that `save_for_backward` keeps."""

    needs_input_grad: "tuple[bool, ...]" = ()
    _saved, _dirty, _constant, _materialize = (), (), (), True

    def save_for_backward(self, *tensors: "Any") -> None:
        """Keeps tensors with the values that they have after `forward`."""
        for i, x in enumerate(tensors):
            if x is not None and not isinstance(x, Tensor) and getattr(x, "layout", None) != "sparse_coo":
                raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {type(x).__name__}")
        self._saved = tensors

    def save_for_forward(self, *tensors: "Any") -> None:
        """Keeps tensors for `jvp`."""
        self.saved_for_forward = tensors

    @property
    def saved_tensors(self) -> "tuple[Any, ...]":
        """The tensors that `save_for_backward` was given."""
        return tuple(self._saved)

    def mark_dirty(self, *args: "Any") -> None:
        """Names the inputs that `forward` writes to; they are results too."""
        self._dirty = args

    def mark_non_differentiable(self, *args: "Any") -> None:
        """Names the results that have no gradient."""
        self._constant = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` is given zeros (`True`) or `None` for results that have no gradient."""
        self._materialize = bool(value)


class Function:
    """An operation whose gradient the user writes: derive a class, write `forward` and `backward` as static methods, call `apply`.

        class Cube(zyx.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x ** 3

            @staticmethod
            def backward(ctx, dy):
                (x,) = ctx.saved_tensors
                return 3 * x ** 2 * dy

        y = Cube.apply(x)
    """

    generate_vmap_rule = False

    def __call__(self, *args: "Any", **kwargs: "Any") -> "Any":
        """An error: calls are made by the class."""
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
                           "function with static forward method.")  # fmt: skip

    @staticmethod
    def forward(*args: "Any", **kwargs: "Any") -> "Any":
        """The results, of the context and the inputs; of the inputs alone where `setup_context` is written."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(*args: "Any", **kwargs: "Any") -> "Any":
        """Notes in the context the tensors and numbers that `backward` needs, of the inputs and the results."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(*args: "Any", **kwargs: "Any") -> "Any":
        """The gradients of the inputs, of the context and the gradients of the results."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use it "
                                  "with backward mode AD.")  # fmt: skip

    vjp = backward

    @staticmethod
    def jvp(*args: "Any", **kwargs: "Any") -> "Any":
        """An error: derivatives along directions are made of `backward`."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @classmethod
    def apply(cls, *args: "Any", **kwargs: "Any") -> "Any":
        """The results for inputs, whose gradients `backward` computes."""
        is_split = cls.setup_context is not Function.setup_context
        ctx = FunctionCtx()
        if is_split:
            args = _bound(cls.forward, args, kwargs)
        elif kwargs:
            args = _bound(cls.forward, (ctx, *args), kwargs)[1:]
        ctx.needs_input_grad = tuple(_is_differentiable(x) and (_inside.depth > 0 or x.requires_grad) for x in args)
        # Clones share values and keep histories when the inputs are written to later.
        sources = {i: x.clone() for i, x in enumerate(args) if _is_differentiable(x)} if is_grad_enabled() else {}
        with no_grad():
            if is_split:
                found = cls.forward(*args)
                cls.setup_context(ctx, args, found)
            else:
                found = cls.forward(ctx, *args)
        if not sources:
            return found
        results = found if isinstance(found, tuple) else (found,)
        results = _Call(cls, ctx, args, sources, results).results()
        return results if isinstance(found, tuple) else results[0]


def _bound(forward, args, kwargs):
    """Arguments by position, those left out by their defaults."""
    import inspect

    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


class _Result:
    """The place of a saved tensor that is a result."""

    def __init__(self, i):
        self.i = i


class _Call:
    """One call of a `Function`: its notes, its inputs with histories, its results without."""

    def __init__(self, cls, ctx, args, sources, results):
        self.cls, self.ctx, self.sources, self.count = cls, ctx, sources, len(args)
        self.name = cls.__name__ + "Backward"
        self.kinds = [(x.shape, x.dtype) if isinstance(x, Tensor) else None for x in args]
        self.made, self.cotangents, self.seen = {}, {}, {}
        constant = {id(x) for x in ctx._constant}
        self.plain, self.dirty = results, {id(x) for x in ctx._dirty}
        self.differentiable = [i for i, y in enumerate(results) if _is_differentiable(y) and id(y) not in constant]
        self.like = [(y.shape, y.dtype, y.device) if isinstance(y, Tensor) else None for y in results]
        number = {id(y): i for i, y in enumerate(results)}
        with enable_grad():
            # Results are kept without histories: their histories hold this call.
            self.values = {i: results[i].detach().clone() for i in self.differentiable}
            self.saved = tuple(
                None if x is None else _Result(number[id(x)]) if number.get(id(x)) in self.values else x.clone() for x in ctx._saved
            )
        ctx._saved = ()

    def results(self):
        """The results with histories."""
        found, plain, self.plain = list(self.plain), self.plain, None
        sources = list(self.sources.values())
        is_simple = len(self.differentiable) == 1 and len(sources) <= 2
        self.first = None if is_simple else self.link(list(self.sources))
        for i in self.differentiable:
            if is_simple:
                y = self.values[i].with_gradient(sources, self.rule_of_one)
            else:
                y = self.joined(i, self.first)
            # A result that is an input and was written to stays that object.
            found[i] = plain[i]._write(y) if id(plain[i]) in self.dirty else y
        self.first = None
        return tuple(found)

    def joined(self, i, link):
        """Result `i` with a history through the first link."""

        def rule(inputs, output, cotangent):
            self.cotangents[i], self.seen[i] = cotangent, output
            return [link_zero(inputs[0])]

        return self.values[i].with_gradient([link], rule)

    def link(self, numbers):
        """The first link of the chain that joins the inputs with these numbers."""
        link, zero = None, Tensor.zeros((), device=self.sources[numbers[0]].device)
        for i in reversed(numbers):
            inputs = [self.sources[i]] if link is None else [self.sources[i], link]
            link = zero.with_gradient(inputs, functools.partial(self.rule_of_link, i, i == numbers[0]))
        return link

    def rule_of_one(self, inputs, output, cotangent):
        (i,) = self.differentiable
        made = self.backward({i: cotangent}, lambda _: output)
        return [made.get(i) for i in self.sources]

    def rule_of_link(self, i, is_first, inputs, output, cotangent):
        if is_first:
            cotangents, seen, self.cotangents, self.seen = self.cotangents, self.seen, {}, {}
            self.made = self.backward(cotangents, lambda k: seen[k] if k in seen else self.joined(k, output))
        given = [self.made.pop(i, None)]
        return given if len(inputs) == 1 else [*given, link_zero(inputs[1])]

    def backward(self, cotangents, result):
        """The gradients of the inputs by number; `result` gives a result with its history."""
        ctx = self.ctx
        given = [cotangents.get(i) for i in range(len(self.like))]
        if ctx._materialize:
            given = [Tensor.zeros(like[0], dtype=like[1], device=like[2]) if dy is None and like else dy for dy, like in zip(given, self.like)]
        ctx._saved = tuple(result(x.i) if isinstance(x, _Result) else x for x in self.saved)
        backward = self.cls.backward if self.cls.vjp is Function.vjp else self.cls.vjp
        try:
            found = backward(ctx, *given)
        finally:
            ctx._saved = ()
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        while len(found) > self.count and found[-1] is None:
            found.pop()
        if len(found) != self.count:
            raise RuntimeError(f"function {self.name} returned an incorrect number of gradients (expected {self.count}, got {len(found)})")
        return {i: self.fitted(i, dx) for i, dx in enumerate(found) if dx is not None}

    def fitted(self, i, dx):
        """A gradient in the shape and dtype of its input."""
        if not isinstance(dx, Tensor):
            raise RuntimeError(f"{self.name}: expected Variable or None (got {type(dx).__name__})")
        if self.kinds[i] is None:
            raise RuntimeError(f"function {self.name} returned a gradient different than None at position {i + 1}, but the corresponding "
                               "forward input was not a Variable")  # fmt: skip
        shape, dtype = self.kinds[i]
        if dx.shape != shape:
            try:
                dx = dx.sum_to_size(*shape)
            except RuntimeError:
                raise RuntimeError(f"Function {self.name} returned an invalid gradient at index {i} - got {list(dx.shape)} but expected shape "
                                   f"compatible with {list(shape)}") from None  # fmt: skip
        return dx if dx.dtype == dtype else dx.cast(dtype)


def link_zero(link):
    """The gradient of a link."""
    return Tensor.zeros((), device=link.device)


def once_differentiable(fn: "Any") -> "Any":
    """A `backward` whose results cannot be differentiated again: an error says so."""

    @functools.wraps(fn)
    def once(ctx, *args):
        with no_grad():
            found = fn(ctx, *args)
        history = next((x for x in args if _is_differentiable(x) and x.requires_grad), None)
        if history is None:
            return found

        def refuse(inputs, output, cotangent):
            raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

        results = found if isinstance(found, tuple) else (found,)
        results = tuple(x.with_gradient([history], refuse) if _is_differentiable(x) else x for x in results)
        return results if isinstance(found, tuple) else results[0]

    return once
