"""einops works on tensors: its backend for zyx, and its layers `einops.layers.zyx`.

`einops` finds the classes that derive from its `AbstractBackend`, so this module is loaded with the module of that class: at
the import of zyx if that is there, else by a finder of modules that waits for it.
"""

import sys


class Finder:
    """Finds the backends of einops, which get one more, and the module `einops.layers.zyx`."""

    def find_spec(self, name, path=None, target=None):
        """The specification of a module, of other modules none."""
        if name not in ("einops._backends", "einops.layers.zyx"):
            return None
        import importlib.machinery
        import importlib.util

        if name == "einops.layers.zyx":
            return importlib.util.spec_from_file_location(name, __file__.replace("_einops.py", "_einops_layers.py"))
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def loaded(module):
                load(module)
                add_backend(module)

            spec.loader.exec_module = loaded
        return spec


def add_backend(backends):
    """Gives the backends of einops that of zyx."""
    from ._core import Tensor

    class Backend(backends.AbstractBackend):
        """The operations of einops on tensors of zyx."""

        framework_name = "zyx"

        def is_appropriate_type(self, tensor):
            return isinstance(tensor, Tensor)

        def from_numpy(self, x):
            import zyx

            return zyx.tensor(x)

        def to_numpy(self, x):
            return x.detach().numpy()

        def arange(self, start, stop):
            return Tensor.arange(start, stop)

        def shape(self, x):
            return tuple(x.shape)

        def transpose(self, x, axes):
            return x.permute(*axes)

        def reduce(self, x, operation, axes):
            axes = list(axes)
            if operation in ("min", "max"):
                return getattr(x, "a" + operation)(axes)
            if operation not in ("sum", "mean", "prod", "any", "all"):
                raise NotImplementedError(f"einops: no reduction {operation!r}")
            return getattr(x, operation)(axes)

        def stack_on_zeroth_dimension(self, tensors):
            return Tensor.stack(list(tensors), 0)

        def add_axis(self, x, new_position):
            return x.unsqueeze(new_position)

        def add_axes(self, x, n_axes, pos2len):
            extents = [-1] * n_axes
            for position, extent in pos2len.items():
                x, extents[position] = x.unsqueeze(position), extent
            return x.expand(*extents)

        def tile(self, x, repeats):
            return x.tile(list(repeats))

        def concat(self, tensors, axis):
            return Tensor.cat(list(tensors), axis)

        def is_float_type(self, x):
            return x.is_floating_point()

        def layers(self):
            import importlib

            return importlib.import_module("einops.layers.zyx")

        def einsum(self, pattern, *x):
            return Tensor.einsum(pattern, *x)

    # The list of subclasses of einops holds classes weakly.
    backends._of_zyx = Backend


def install():
    """Registers the backend now, or as soon as einops is imported."""
    known = sys.modules.get("einops._backends")
    if known is not None:
        add_backend(known)
    sys.meta_path.insert(0, Finder())
