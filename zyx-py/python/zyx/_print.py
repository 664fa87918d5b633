"""Printed forms of tensors by `set_printoptions`, in PyTorch's manner. Until it is called, tensors print as they do in Rust."""

import math

from ._core import Parameter, Tensor, _default_float

_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}
_NAMES = ("precision", "threshold", "edgeitems", "linewidth")
_options = dict(zip(_NAMES, _PROFILES["default"])) | {"sci_mode": None}
_KEPT_DTYPES = ("int64", "bool")


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Sets the digits of floats, the number of elements from which on a tensor is shortened, how many are shown at its ends, the
    length of lines, all of them by the name of a profile (`"default"`, `"short"`, `"full"`), and whether floats have exponents
    (`None`: where they need them). Tensors print in PyTorch's manner from then on.
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile is one of {sorted(_PROFILES)}, not {profile!r}")
        _options.update(zip(_NAMES, _PROFILES[profile]))
    given = dict(zip(_NAMES, (precision, threshold, edgeitems, linewidth)))
    _options.update({name: value for name, value in given.items() if value is not None})
    _options["sci_mode"] = sci_mode
    Tensor.__repr__ = Tensor.__str__ = _shown
    Parameter.__repr__ = Parameter.__str__ = lambda self: "Parameter containing:\n" + _shown(self)


def get_printoptions():
    """The options that `set_printoptions` was given, by name."""
    return dict(_options)


def _shortened(x):
    """Numbers of a tensor within lists, `None` where some are left out."""
    if x.ndim == 0:
        return x.item()
    if x.numel() <= _options["threshold"]:
        return x.tolist()
    n, ends = x.shape[0], _options["edgeitems"]
    if n <= 2 * ends:
        return [_shortened_inside(x[i]) for i in range(n)]
    return [*(_shortened_inside(x[i]) for i in range(ends)), None, *(_shortened_inside(x[n - ends + i]) for i in range(ends))]


def _shortened_inside(x):
    """`_shortened` of a part of a tensor that is shortened."""
    if x.ndim == 0:
        return x.item()
    n, ends = x.shape[0], _options["edgeitems"]
    if n <= 2 * ends:
        return x.tolist() if x.ndim == 1 else [_shortened_inside(x[i]) for i in range(n)]
    if x.ndim == 1:
        return [*x[:ends].tolist(), None, *x[n - ends :].tolist()]
    return [*(_shortened_inside(x[i]) for i in range(ends)), None, *(_shortened_inside(x[n - ends + i]) for i in range(ends))]


def _flat(value):
    if isinstance(value, list):
        return [number for part in value for number in _flat(part)]
    return [] if value is None else [value]


def _form(numbers):
    """The function that writes a number, for numbers that stand together."""
    if not numbers or not isinstance(numbers[0], float):
        width = max((len(str(n)) for n in numbers), default=1)
        return lambda n: str(n).rjust(width)
    digits, sci = _options["precision"], _options["sci_mode"]
    finite = [abs(n) for n in numbers if math.isfinite(n) and n != 0]
    whole = all(n == math.floor(n) for n in finite)
    if sci is None and finite:
        low, high = min(finite), max(finite)
        sci = high / low > 1000 or high > 1e8 or not whole and low < 1e-4

    def plain(n):
        if not finite and not math.isfinite(n):
            return str(n)
        if sci:
            return f"{n:.{digits}e}"
        return (f"{n:.0f}." if math.isfinite(n) else str(n)) if whole else f"{n:.{digits}f}"

    # Numbers that are not finite may be wider.
    width = max((len(plain(n)) for n in numbers if n != 0 and math.isfinite(n)), default=1)
    return lambda n: plain(n).rjust(width)


def _lines(value, form, indent, ndim):
    if ndim == 0:
        return form(value)
    if ndim > 1:
        parts = ["..." if part is None else _lines(part, form, indent + 1, ndim - 1) for part in value]
        return "[" + ("," + "\n" * (ndim - 1) + " " * (indent + 1)).join(parts) + "]"
    words = [" ..." if n is None else form(n) for n in value]
    width = max((len(form(n)) for n in value if n is not None), default=0)
    many = max(1, (_options["linewidth"] - indent) // (width + 2))
    rows = [", ".join(words[i : i + many]) for i in range(0, len(words), many)]
    return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"


def _shown(self):
    """The tensor as `set_printoptions` says."""
    x, notes = self.detach(), []
    if x.numel() == 0:
        text = "[]"
        if x.ndim != 1:
            notes.append(f"size={tuple(x.shape)}")
    else:
        value = _shortened(x)
        text = _lines(value, _form(_flat([value])), len("tensor("), x.ndim)
    if x.device.type != "cpu":
        notes.append(f"device='{x.device.spec}'")
    if x.dtype != _default_float() and (x.dtype.name not in _KEPT_DTYPES or x.numel() == 0):
        notes.append(f"dtype={x.dtype!r}")
    if self.requires_grad:
        notes.append("requires_grad=True")
    return "tensor(" + ", ".join([text, *notes]) + ")"
