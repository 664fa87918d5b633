"""`zyx.summary(model, input)`: layers, shapes of their results, and how many numbers they hold."""

from ._core import Tensor
from ._tree import flatten


class Summary:
    """A table of layers: `rows` has path, type, shapes of results and number of elements of own parameters of each."""

    def __init__(self, rows, total, trainable, bytes):
        self.rows, self.total_params, self.trainable_params, self.param_bytes = rows, total, trainable, bytes

    def _lines(self):
        head = ("layer", "type", "output", "parameters")
        rows = [("  " * path.count(".") + (path or "(model)"), kind, _shapes(shapes), f"{n:,}" if n else "-") for path, kind, shapes, n in self.rows]
        return head, rows

    def __str__(self):
        head, rows = self._lines()
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(4)]

        def line(row):
            return "  ".join(text.rjust(w) if i == 3 else text.ljust(w) for i, (text, w) in enumerate(zip(row, widths)))

        rule = "-" * len(line(head))
        frozen = self.total_params - self.trainable_params
        end = [f"parameters: {self.total_params:,} ({self.trainable_params:,} trainable, {frozen:,} frozen), {self.param_bytes / 1e6:.2f} MB"]
        return "\n".join([line(head), rule, *map(line, rows), rule, *end])

    __repr__ = __str__

    def _repr_html_(self):
        from ._html import table

        head, rows = self._lines()
        return table(head, rows) + f"<p>parameters: {self.total_params:,}, {self.param_bytes / 1e6:.2f} MB</p>"


def _shapes(shapes):
    return ", ".join(str(list(shape)) for shape in shapes) if shapes else "-"


def summary(model, *inputs, depth=None, **options):
    """Path, type, shapes of results and number of parameters of each layer of a model; shapes by one call with the inputs, which
    are tensors or shapes (tuples of ints) of random ones. Without inputs there are no shapes. Nothing is computed, and the model
    is as before.
    """
    found, handles = {}, []
    named = [(path, m) for path, m in model.named_modules() if depth is None or (path.count(".") + bool(path)) <= depth]

    def noted(path):
        def hook(module, given, output):
            found.setdefault(path, []).extend(tuple(x.shape) for x in flatten(output)[0] if isinstance(x, Tensor))

        return hook

    if inputs or options:
        first = next(iter(model.parameters()), None)
        place = {} if first is None else {"device": first.device, "dtype": first.dtype}
        given = [Tensor.randn(x, **place) if isinstance(x, (tuple, list)) and all(isinstance(n, int) for n in x) else x for x in inputs]
        training = {id(m): m.training for _, m in model.named_modules()}
        handles = [m.register_forward_hook(noted(path)) for path, m in named]
        from ._grad_mode import no_grad

        try:
            # In evaluation no running statistics move.
            model.eval()
            with no_grad():
                model(*given, **options)
        finally:
            for handle in handles:
                handle.remove()
            for _, m in model.named_modules():
                m.training = training[id(m)]
                m._set_mode(m.training)
    rows, seen = [], set()
    for path, m in named:
        own = [p for p in m.parameters(recurse=False) if p._id() not in seen] if depth is None or (path.count(".") + bool(path)) < depth else [
            p for p in m.parameters() if p._id() not in seen]  # fmt: skip
        seen |= {p._id() for p in own}
        rows.append((path, type(m).__name__, found.get(path, []), sum(p.numel() for p in own)))
    every = model.parameters()
    total, trainable = sum(p.numel() for p in every), sum(p.numel() for p in every if p.is_trainable())
    return Summary(rows, total, trainable, sum(p.numel() * p.itemsize for p in every))
