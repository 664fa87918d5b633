"""`zyx.utils.data`: data sets and batches; `checkpoint`, `tensorboard`, under the names of `torch.utils`."""

from .. import _aliases
from . import data  # noqa: F401

_missing = _aliases.ways(__name__, {})


def __getattr__(name):
    if name not in ("checkpoint", "tensorboard", "_pytree"):
        return _missing(name)
    import importlib

    return importlib.import_module("." + name, __name__)
