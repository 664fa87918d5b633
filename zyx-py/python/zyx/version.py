"""The package's version under the names of `torch.version`."""

from ._core import __version__  # noqa: F401

cuda = hip = xpu = rocm = git_version = None
debug = False
