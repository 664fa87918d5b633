"""One process under the names of `torch.distributed`: collectives leave its tensors unchanged. A second process is an error."""

import os

from ._core import Tensor

_group = None


class ReduceOp:
    """Ways to combine."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = "sum", "avg", "product", "min", "max", "band", "bor", "bxor"


class ProcessGroup:
    """The group of the one process."""

    def __init__(self, backend):
        self._backend = backend

    def rank(self):
        """0."""
        return 0

    def size(self):
        """1."""
        return 1

    def name(self):
        """The name of the backend."""
        return self._backend


class Work:
    """The handle of a collective, which is done already."""

    def wait(self, timeout=None):
        """Nothing to wait for."""
        return True

    def is_completed(self):
        """True."""
        return True


def is_available():
    """Whether processes can be grouped: one can."""
    return True


def is_initialized():
    """Whether `init_process_group` was called."""
    return _group is not None


def is_torchelastic_launched():
    """Whether PyTorch's launcher started the process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_nccl_available():
    """Whether devices communicate: they do not."""
    return False


is_gloo_available = is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="", pg_options=None, device_id=None):
    """Groups this process; a `world_size` above 1, also of the environment, is an error."""
    global _group
    if _group is not None:
        raise ValueError("trying to initialize the default process group twice!")
    size = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", 1))
    if size != 1 or rank > 0:
        raise NotImplementedError(f"init_process_group: {size} processes; devices do not communicate, one is possible")
    _group = ProcessGroup(backend or "gloo")


def destroy_process_group(group=None):
    """Ends the group."""
    global _group
    _group = None


def _known(name):
    if _group is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


def get_rank(group=None):
    """0."""
    _known("get_rank")
    return 0


def get_world_size(group=None):
    """1."""
    _known("get_world_size")
    return 1


def get_backend(group=None):
    """The name that the group was made with."""
    _known("get_backend")
    return _group.name()


def new_group(ranks=None, timeout=None, backend=None, **more):
    """A group of this process."""
    _known("new_group")
    if ranks is not None and list(ranks) != [0]:
        raise NotImplementedError(f"new_group: processes {list(ranks)}; there is process 0")
    return ProcessGroup(backend or _group.name())


def barrier(group=None, async_op=False, device_ids=None):
    """Nothing to wait for."""
    _known("barrier")
    return Work() if async_op else None


def _same(name):
    def collective(tensor, *given, async_op=False, **named):
        _known(name)
        return Work() if async_op else None

    collective.__name__ = collective.__qualname__ = name
    collective.__doc__ = "Of one process: the tensor stays."
    return collective


all_reduce, broadcast, reduce = map(_same, ("all_reduce", "broadcast", "reduce"))


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Of one process: its tensor is the first of the list."""
    _known("all_gather")
    if len(tensor_list) != 1:
        raise ValueError(f"all_gather: a list of {len(tensor_list)} for one process")
    tensor_list[0] = tensor
    return Work() if async_op else None


def gather(tensor, gather_list=None, dst=0, group=None, async_op=False):
    """Of one process: its tensor is the first of the list."""
    return all_gather([None] if gather_list is None else gather_list, tensor, group, async_op)


def all_gather_object(object_list, obj, group=None):
    """Of one process: its object is the first of the list."""
    _known("all_gather_object")
    object_list[0] = obj


gather_object = all_gather_object


def broadcast_object_list(object_list, src=0, group=None, device=None):
    """Of one process: the list stays."""
    _known("broadcast_object_list")


def _refused(name):
    def refused(*given, **named):
        _known(name)
        raise NotImplementedError(f"{name}: there is no other process")

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = "An error: there is no other process."
    return refused


send, recv, isend, irecv = map(_refused, ("send", "recv", "isend", "irecv"))


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """Nothing to wait for."""
    return barrier(group)


__all__ = [name for name in globals() if not name.startswith("_") and name not in ("os", "Tensor")]
