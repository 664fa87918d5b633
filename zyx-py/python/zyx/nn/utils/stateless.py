"""A module called with other parameters, under the name of `torch.nn.utils.stateless`."""

from ...func import functional_call  # noqa: F401
