"""`SummaryWriter` of the package `tensorboardX`, which takes zyx tensors, under the name of `torch.utils.tensorboard`.

With the package `tensorboard` alone, scalars and texts can be written.
"""

import os
import time

from .._core import Tensor
from .._tree import flatten


def _plain(x):
    """Arrays in the place of tensors."""
    leaves, rebuild = flatten(x)
    return rebuild([leaf.detach().cast("float32").numpy() if isinstance(leaf, Tensor) and leaf.dtype.name in ("float16", "bfloat16") else
                    leaf.detach().numpy() if isinstance(leaf, Tensor) else leaf for leaf in leaves])  # fmt: skip


class _OfTensorboard:
    """Scalars and texts by the package `tensorboard`."""

    def __init__(self, log_dir, writer):
        self._writer = writer.EventFileWriter(log_dir)

    def _add(self, value, global_step, walltime):
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        event = Event(wall_time=time.time() if walltime is None else walltime, summary=Summary(value=[value]))
        if global_step is not None:
            event.step = int(global_step)
        self._writer.add_event(event)

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        from tensorboard.compat.proto.summary_pb2 import Summary

        self._add(Summary.Value(tag=tag, simple_value=float(scalar_value)), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        for tag, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{tag}", value, global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        from tensorboard.plugins.text.summary_v2 import text_pb
        from tensorboard.compat.proto.summary_pb2 import Summary

        for value in text_pb(tag, text_string).value:
            self._add(Summary.Value.FromString(value.SerializeToString()), global_step, walltime)

    def flush(self):
        self._writer.flush()

    def close(self):
        self._writer.close()

    def __getattr__(self, name):
        if name.startswith("add_"):
            raise NotImplementedError(f"SummaryWriter.{name} needs the package tensorboardX: pip install tensorboardX")
        raise AttributeError(f"'SummaryWriter' object has no attribute {name!r}")


class SummaryWriter:
    """Writes events for TensorBoard into `log_dir`; the methods are those of `tensorboardX.SummaryWriter`."""

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            import socket

            log_dir = os.path.join("runs", time.strftime("%b%d_%H-%M-%S_") + socket.gethostname() + comment)
        self.log_dir = self.logdir = str(log_dir)
        try:
            from tensorboardX import SummaryWriter as Writer
        except ImportError:
            try:
                from tensorboard.summary.writer import event_file_writer
            except ImportError:
                raise ImportError("SummaryWriter needs the package tensorboardX or tensorboard: pip install tensorboardX") from None
            self._writer = _OfTensorboard(self.log_dir, event_file_writer)
        else:
            self._writer = Writer(self.log_dir, purge_step=purge_step, max_queue=max_queue, flush_secs=flush_secs, filename_suffix=filename_suffix)

    def get_logdir(self):
        """The folder of the events."""
        return self.log_dir

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """An error: TensorBoard's graphs are PyTorch's."""
        raise NotImplementedError("SummaryWriter.add_graph: TensorBoard's graphs are PyTorch's; zyx.onnx exports models from Rust")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._writer, name)
        if not name.startswith("add_"):
            return found

        def add(*given, **named):
            return found(*_plain(given), **_plain(named))

        add.__name__ = name
        return add

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self._writer.close()
