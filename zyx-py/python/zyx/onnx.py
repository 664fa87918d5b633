"""Models in the ONNX format, which PyTorch and other frameworks export.

    >>> model = zyx.onnx.load("model.onnx")
    >>> model.inputs
    [Port(name='x', dtype=float32, shape=('batch', 3, 224, 224))]
    >>> y = model(image)
"""

from collections import namedtuple

from . import _aliases
from ._core import _load_onnx

__all__ = ["Model", "Port", "load"]
__getattr__ = _aliases.ways(__name__, {"export": "zyx::onnx::Export in Rust; Python reads models and does not write them"})


class Port(namedtuple("Port", ("name", "dtype", "shape"))):
    """An input or output as a model declares it.

    `dtype` and `shape` are `None` where the model does not say them, and of what is not a tensor of numbers. Extents in
    `shape` are numbers, or names of extents that each call sets.
    """

    __slots__ = ()


def load(f, device=None):
    """The model in a file: a path, bytes, or something with `read`. It computes on `device`.

    Tensors in files beside the model are found for a path only. A `ValueError` says what is damaged, or names all
    operators of the model that zyx does not have.
    """
    return Model(_load_onnx(f.read() if hasattr(f, "read") else f, device))


class Model:
    """A model that is called like a function: `load` makes it.

    `inputs` and `outputs` are lists of `Port`.
    """

    __slots__ = ("_model", "inputs", "outputs")

    def __init__(self, model):
        self._model = model
        self.inputs = [Port(*port) for port in model.inputs]
        self.outputs = [Port(*port) for port in model.outputs]

    @property
    def device(self):
        """Where it computes."""
        return self._model.device

    def __call__(self, *args, **named):
        """The output, or a tuple of all if there are several, for inputs in order, by name, or in one dict.

        An input is a tensor, an array, or nested lists of numbers or strings; arrays must have the dtype that is
        declared, that of `ml_dtypes` where NumPy has none (`float8_e4m3fn`, `int4`). Of a sequence it is a list or tuple of
        them, of an optional value that or `None`. An output is a tensor; of strings it is nested lists, of a sequence a list, of an optional value that or
        `None`.

        What is computed for inputs of one shape is planned once and replayed. If a tensor with `requires_grad` is given,
        outputs are pending instead and gradients flow through them. Parameters can be given by name like inputs:

            params = {name: zyx.Parameter(p) for name, p in model.parameters().items()}
            loss = model(x, **params).cross_entropy(y)
        """
        if len(args) == 1 and isinstance(args[0], dict):
            args, named = (), {**args[0], **named}
        if len(args) > len(self.inputs):
            raise TypeError(f"the model takes {len(self.inputs)} inputs, and {len(args)} were given")
        for port, value in zip(self.inputs, args):
            if port.name in named:
                raise TypeError(f"input {port.name!r} was given twice")
            named[port.name] = value
        outputs = self._model.run(named)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(self, output_names, input_feed):
        """The outputs of these names as a list, all if the names are `None`, for a dict of inputs: the signature of
        `onnxruntime.InferenceSession.run`. Outputs are those of a call; `numpy()` makes arrays of tensors.
        """
        names = [port.name for port in self.outputs]
        wanted = names if output_names is None else list(output_names)
        for name in wanted:
            if name not in names:
                raise ValueError(f"the model has no output {name!r}; there are: {', '.join(names)}")
        outputs = dict(zip(names, self._model.run(dict(input_feed))))
        return [outputs[name] for name in wanted]

    def parameters(self):
        """The tensors of the model by name: what was trained."""
        return self._model.parameters()

    def __repr__(self):
        ports = lambda ports: ", ".join(f"{p.name}: {p.dtype} {p.shape}" for p in ports)  # noqa: E731
        return f"zyx.onnx.Model(({ports(self.inputs)}) -> ({ports(self.outputs)}) on {self.device})"
