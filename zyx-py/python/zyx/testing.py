"""Comparison of tensors under the names of `torch.testing`."""

from ._core import Tensor, tensor

_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True, check_dtype=True,
                 check_layout=True, check_stride=False, msg=None):  # fmt: skip
    """An `AssertionError` unless tensors, or those in sequences and mappings, are equal up to `atol + rtol |expected|`, whose
    defaults depend on the dtype.
    """
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be specified or both be unspecified")
    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_device": check_device, "check_dtype": check_dtype, "msg": msg}
    if isinstance(actual, dict) and isinstance(expected, dict):
        if set(actual) != set(expected):
            raise AssertionError(_said(msg, f"The keys of the mappings do not match: {sorted(set(actual) ^ set(expected), key=str)}"))
        for key in expected:
            assert_close(actual[key], expected[key], **options)
        return
    if isinstance(actual, (tuple, list)) and isinstance(expected, (tuple, list)):
        if len(actual) != len(expected):
            raise AssertionError(_said(msg, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"))
        for a, b in zip(actual, expected):
            assert_close(a, b, **options)
        return
    if isinstance(actual, Tensor) != isinstance(expected, Tensor):
        raise TypeError(f"assert_close: {type(actual).__name__} and {type(expected).__name__} are not compared")
    if not isinstance(actual, Tensor):
        actual, expected, check_dtype = tensor(actual), tensor(expected), False
    if actual.shape != expected.shape:
        raise AssertionError(_said(msg, f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}."))
    if check_device and actual.device != expected.device:
        raise AssertionError(_said(msg, f"The values for attribute 'device' do not match: {actual.device.spec} != {expected.device.spec}."))
    if check_dtype and actual.dtype != expected.dtype:
        raise AssertionError(_said(msg, f"The values for attribute 'dtype' do not match: {actual.dtype.name} != {expected.dtype.name}."))
    if rtol is None:
        found = [_TOLERANCES.get(x.dtype.name, (0.0, 0.0)) for x in (actual, expected)]
        rtol, atol = (max(pair) for pair in zip(*found))
    a, b = actual.detach().cast("float64"), expected.detach().to(actual.device).cast("float64")
    near = ((a - b).abs() <= atol + rtol * b.abs()) | (a == b)
    if equal_nan:
        near = near | (a.isnan() & b.isnan())
    wrong = int((~near).sum().item())
    if wrong:
        differences = (a - b).abs()
        raise AssertionError(_said(msg, f"Tensor-likes are not close!\n\nMismatched elements: {wrong} / {a.numel()} ({100 * wrong / a.numel():.1f}%)\n"
                                        f"Greatest absolute difference: {differences.max().item()} (up to {atol} allowed)\n"
                                        f"Greatest relative difference: {(differences / b.abs()).max().item()} (up to {rtol} allowed)"))  # fmt: skip


def _said(msg, text):
    return text if msg is None else msg(text) if callable(msg) else msg


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """`assert_close` under an older name, dtypes and devices apart."""
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=False, check_dtype=False, msg=msg or None)


def make_tensor(*shape, dtype, device, low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False, memory_format=None):
    """Random elements between `low` and `high`, by default -9 and 9."""
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    from ._core import DType

    dtype = DType(dtype)
    low, high = (-9 if low is None else low), (9 if high is None else high)
    if dtype.name == "bool":
        return Tensor.randint(0, 2, shape, device=device).cast("bool")
    if "float" in dtype.name:
        found = Tensor.rand_range(low, high, shape, dtype=dtype, device=device)
    else:
        found = Tensor.randint(max(low, 0) if dtype.name.startswith("u") else low, high + 1, shape, device=device).cast(dtype)
    if exclude_zero:
        found = (found == 0).where_(1, found).cast(dtype)
    return found.requires_grad_() if requires_grad else found
