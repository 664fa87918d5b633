"""Libraries and their switches under the names of `torch.backends`. Libraries are used where they are there; products of
`float32` are computed in `float32` at every setting.
"""

from . import _core


class _Switches:
    """Switches that change nothing, whose values are kept; others are an error."""

    def __init__(self, name, functions=(), **values):
        vars(self).update(_name=name, **values)
        vars(self).update({key: value for key, value in functions})

    def __setattr__(self, name, value):
        if name not in vars(self):
            raise AttributeError(f"zyx.backends.{self._name} has no switch {name!r}")
        vars(self)[name] = value

    def __getattr__(self, name):
        raise AttributeError(f"zyx.backends.{self._name} has no switch {name!r}")


def _backend(kind):
    return lambda: any(spec.startswith(kind) for spec, *_ in _core.devices())


class _Deterministic(_Switches):
    """cuDNN's switches, of which `deterministic` is the device's."""

    def __setattr__(self, name, value):
        if name == "deterministic":
            _core.device().set_deterministic(bool(value))
        _Switches.__setattr__(self, name, value)


cuda = _Switches("cuda", [("is_built", _backend("cuda"))], matmul=_Switches("cuda.matmul", allow_tf32=False, allow_fp16_reduced_precision_reduction=False,
                 allow_bf16_reduced_precision_reduction=False, fp32_precision="ieee"), allow_tf32=False, preferred_linalg_library=lambda backend=None: "default",
                 enable_flash_sdp=lambda enabled: None, enable_mem_efficient_sdp=lambda enabled: None, enable_math_sdp=lambda enabled: None,
                 enable_cudnn_sdp=lambda enabled: None, flash_sdp_enabled=lambda: True, mem_efficient_sdp_enabled=lambda: True, math_sdp_enabled=lambda: True,
                 cudnn_sdp_enabled=lambda: False)  # fmt: skip
cudnn = _Deterministic("cudnn", [("is_available", lambda: False), ("version", lambda: None), ("is_acceptable", lambda tensor: False)], enabled=False,
                       benchmark=False, deterministic=True, allow_tf32=False, benchmark_limit=10)  # fmt: skip
mps = _Switches("mps", [("is_available", lambda: False), ("is_built", lambda: False)])
mkl = _Switches("mkl", [("is_available", lambda: False)])
mkldnn = _Switches("mkldnn", [("is_available", lambda: False)], enabled=False)
openmp = _Switches("openmp", [("is_available", lambda: False)])
opt_einsum = _Switches("opt_einsum", [("is_available", lambda: True)], enabled=True, strategy="auto")
cpu = _Switches("cpu", [("get_cpu_capability", lambda: "DEFAULT")])
fp32_precision = "ieee"

# PyTorch's files below this one (`_paths`).
__path__ = []
