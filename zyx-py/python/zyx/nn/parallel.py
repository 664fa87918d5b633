"""One process and one device under the names of `torch.nn.parallel`: the module itself, wrapped as `module`.

Devices do not communicate here. More than one device or process is an error.
"""

from .. import _core
from .module import Module


class DataParallel(Module):
    """A module that computes on its device; names in `state_dict` have `module.` in front, as in PyTorch."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        if not isinstance(module, Module):
            raise TypeError(f"DataParallel: {type(module).__name__} is not a Module subclass")
        if device_ids is not None and len(device_ids) > 1:
            raise NotImplementedError(f"DataParallel: device_ids {device_ids}; devices do not communicate, one is possible")
        self.module, self.device_ids, self.output_device, self.dim = module, list(device_ids or []), output_device, dim

    def forward(self, *inputs, **options):
        return self.module(*inputs, **options)


class DistributedDataParallel(Module):
    """A module of one process; names in `state_dict` have `module.` in front, as in PyTorch."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True, process_group=None, bucket_cap_mb=None,
                 find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False, static_graph=False, **more):  # fmt: skip
        from .. import distributed

        if not isinstance(module, Module):
            raise TypeError(f"DistributedDataParallel: {type(module).__name__} is not a Module subclass")
        if not distributed.is_initialized():
            raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
        self.module, self.device_ids, self.output_device, self.dim = module, device_ids, output_device, dim

    def forward(self, *inputs, **options):
        return self.module(*inputs, **options)

    def no_sync(self):
        """A block in which gradients of processes are not added; of one process there is nothing to add."""
        import contextlib

        return contextlib.nullcontext()


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """The module's result for the inputs, on one device."""
    if device_ids is not None and len(device_ids) > 1:
        raise NotImplementedError(f"data_parallel: device_ids {device_ids}; devices do not communicate, one is possible")
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))


def _one(name, devices):
    if len(devices) != 1:
        raise NotImplementedError(f"{name}: {len(devices)} devices; devices do not communicate, one is possible")


def scatter(inputs, target_gpus, dim=0):
    """The inputs on one device, as a list."""
    _one("scatter", target_gpus)
    return [inputs.to(_core.Device(target_gpus[0])) if isinstance(target_gpus[0], str) else inputs]


def gather(outputs, target_device, dim=0):
    """The outputs of one device."""
    _one("gather", outputs)
    return outputs[0]


def replicate(network, devices, detach=False):
    """The module for one device, as a list."""
    _one("replicate", devices)
    return [network]


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """The result of each module for its inputs."""
    options = kwargs_tup or [{}] * len(modules)
    return [m(*(x if isinstance(x, tuple) else (x,)), **o) for m, x, o in zip(modules, inputs, options)]

# PyTorch's files below this one (`_paths`).
__path__ = []
