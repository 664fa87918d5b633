"""PyTorch's names of parameters, where those of the Rust API are others, and its options that are made of operations.

What is given by position costs nothing more than before but for one call of Python.
"""

from ._core import DType, Tensor, is_grad_enabled
from ._steps import in_steps, wrapper as _as

# Function, and `theirs=ours`; `theirs=` alone is the tensor itself.
_TABLE = """
addcdiv tensor1=x tensor2=y
addcmul tensor1=x tensor2=y
addmm mat1=a mat2=b
baddbmm batch1=a batch2=b
bmm mm mat2=other
broadcast_to expand size=shape
full size=shape fill_value=value
full_like fill_value=value
ones zeros rand randn normal size=shape generator=rng
bernoulli poisson permutation randint_like generator=rng
rand_like randn_like generator=rng
multinomial num_samples=samples generator=rng
cholesky_solve input2=L
chunk chunks=n
diag diagonal=offset
dot tensor=other
outer vec2=other
dsplit hsplit vsplit sections=positions indices=positions
tensor_split sections=positions indices=positions tensor_indices_or_sections=positions
split split_size=size split_size_or_sections=size tensor=
split_with_sizes split_sizes=sizes
flip permute roll dims=axis
rot90 k=times dims=axis
repeat repeats=times
repeat_interleave repeats=times
tile dims=times
pow float_power exponent=other
heaviside values=other
index_add index_copy masked_scatter put source=src
index_put indices=parts
mv vec=vector
pinv rcond=rtol
requires_grad_ mode=requires_grad
select_index select_scatter index=position
swapaxes axis0=a axis1=b
take_along_dim indices=index
unflatten sizes=dims
unfold dimension=axis
linspace logspace steps=n
adaptive_avg_pool1d adaptive_max_pool1d output_size=output
avg_pool1d max_pool1d max_pool2d max_pool3d kernel_size=kernel
max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices kernel_size=kernel
bartlett_window blackman_window hamming_window hann_window kaiser_window window_length=n
cdist cosine_similarity pairwise_distance x1= x2=other
cosine_embedding_loss margin_ranking_loss input1= input2=other
ctc_loss log_probs=
trapezoid cumulative_trapezoid y=
embedding weight= indices=index
group_norm num_groups=groups
stft istft hop_length=hop
pixel_shuffle upscale_factor=r
pixel_unshuffle downscale_factor=r
searchsorted sorted_sequence=
triplet_margin_loss anchor=
tril_indices triu_indices row=rows col=columns
unravel_index indices=
vander x= N=columns
"""


# Functions that PyTorch gives a parameter `out`.
_OUT = set("""
abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax any arange arccos arccosh arcsin
arcsinh arctan arctan2 arctanh argmax argmin argsort asin asinh atan atan2 atanh baddbmm bernoulli bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm bucketize cat ceil cholesky cholesky_inverse
cholesky_solve clamp clamp_max clamp_min clip column_stack concat concatenate copysign cos cosh cross cummax cummin cumprod
cumsum deg2rad diag diff digamma div divide dot dstack empty eq erf erfc erfcx erfinv exp exp2 expm1 eye fix float_power floor
floor_divide fmax fmin fmod frac frexp full gather gcd ge ger greater greater_equal gt hardshrink heaviside histc histogram igamma igammac
hstack hypot index_add index_copy index_select inner inverse isin isneginf isposinf kron kthvalue lcm ldexp le lerp less
less_equal lgamma linspace log log_ndtr log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not
logical_or logical_xor logit logspace logsumexp lstsq lt masked_select matmul matrix_power max maximum mean median min
minimum mm mode msort mul multinomial multiply mv mvlgamma ndtr nan_to_num nanmean nanmedian nanquantile nansum ne neg negative
nextafter nonzero norm normal not_equal ones outer permutation polygamma pow prod qr quantile rad2deg rand randint randn randperm
reciprocal remainder renorm round row_stack rsqrt scatter scatter_add scatter_reduce searchsorted sgn sigmoid sign signbit
sin sinc sinh slice_scatter slogdet softmax solve sort sqrt square stack std sub subtract sum svd take take_along_dim tan
tanh tensordot threshold topk angle conj_physical i0 index_reduce nonzero_static triangular_solve tril triu true_divide trunc var vdot vstack where xlogy zeros
""".split())


def take_out(names, functions=None):
    """Gives functions of a module the parameter `out`: those of these names, or all that are public."""
    for name, function in list(names.items()):
        is_ours = isinstance(function, _FUNCTION) and not name.startswith("_") and not hasattr(function, "_takes_out")
        if is_ours and (functions is None or name in functions):
            names[name] = renamed(function, {}, takes_out=True)
            names[name].__module__ = names["__name__"]


_FUNCTION = type(take_out)
# Computes the results that are written to `out`, once `zyx.amp.autocast` is used.
_written_to = None


def _written(name, found, out):
    """A result, or each of several, written to `out`."""
    if isinstance(found, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(found):
            raise TypeError(f"{name}() has {len(found)} results: `out` is a tuple of so many tensors")
        return type(found)(_written(name, x, y) for x, y in zip(found, out)) if type(found) in (tuple, Selected) else (
            type(found)(*(_written(name, x, y) for x, y in zip(found, out))))  # fmt: skip
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be a Tensor, not {type(out).__name__}")
    if is_grad_enabled() and (found.requires_grad or out.requires_grad):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad."
        )
    if out.shape != found.shape and out.numel() == 0:
        # A tensor without elements gets those of the result.
        out._become(out.new_zeros(found.shape))
    return out._write(found)


def in_place(function, n):
    """A function that takes `inplace` behind `n` others: whether the result is written into the first."""

    def call(*arguments, inplace=False, **options):
        if len(arguments) == n + 1:
            *arguments, inplace = arguments
        found = function(*arguments, **options)
        if not inplace:
            return found
        return (arguments[0] if arguments else options["input"])._write(found)

    _as(function, call).__module__ = "zyx.nn.functional"
    return call


def renamed(function, names, takes_out=None):
    """A function that takes parameters by second names too, and `out`, if it has that in PyTorch."""
    if takes_out is None:
        takes_out = function.__name__ in _OUT
    def call(*arguments, **options):
        if not options:
            try:
                return function(*arguments)
            except TypeError:
                if not any(getattr(x, "layout", None) == "sparse_coo" for x in arguments[:2]):
                    raise
                from .sparse import _function_of

                return _function_of(function, arguments)
        if takes_out and "out" in options:
            out = options.pop("out")
            if out is None:
                return call(*arguments, **options)
            found = call(*arguments, **options) if _written_to is None else _written_to(call, arguments, options)
            return _written(function.__name__, found, out)
        if not names.keys().isdisjoint(options):
            for theirs in [name for name in options if name in names]:
                value, ours = options.pop(theirs), names[theirs]
                if theirs == "generator":
                    # A `Generator` of PyTorch's kind is made of a stream.
                    value = getattr(value, "_rng", value)
                if not ours and not arguments:
                    arguments = (value,)
                elif not ours or ours in options:
                    raise TypeError(f"{function.__name__}() got multiple values for argument {theirs!r}")
                else:
                    options[ours] = value
        return function(*arguments, **options)

    if takes_out:
        call._takes_out = True
    return _as(function, call)


# Options that say how PyTorch stores what a function makes.
_STORAGE = ("layout", "pin_memory", "memory_format")
# Functions with these options, and those whose results get a dtype and `requires_grad` afterwards.
_MAKERS = "zeros ones rand randn full arange linspace logspace eye randint permutation zeros_like ones_like full_like rand_like randn_like randint_like new_zeros new_ones new_full new_empty contiguous is_contiguous"
_CONVERTED = ("randint", "permutation", "logspace")


def _stored(function, name):
    """A function that takes the options of `_STORAGE`: tensors are stored in one way."""
    is_converted = name in _CONVERTED

    def make(*arguments, **options):
        if not options:
            return function(*arguments)
        for option in _STORAGE:
            if option in options:
                value = options.pop(option)
                if option == "layout" and value is not None and repr(value) != "zyx.strided":
                    raise NotImplementedError(f"{name}(): layout {value!r}; to_sparse() of the result")
        if not is_converted:
            return function(*arguments, **options)
        dtype = None if name == "randint" else options.pop("dtype", None)
        requires_grad = options.pop("requires_grad", False)
        found = function(*arguments, **options)
        found = found if dtype is None else found.to(dtype)
        return found.requires_grad_() if requires_grad else found

    # `function` looks through it for what the method takes itself.
    make._wrapped_by = _stored
    return _as(function, make)


def _bernoulli_of_each(input, p=None, generator=None):
    chance = input if p is None else p
    return (_like_random(input.rand_like, generator) < chance).cast(input.dtype)


def _poisson_of_each(input, generator=None):
    if generator is not None:
        raise NotImplementedError("poisson(): a generator with a rate for each element")
    from .distributions import Poisson

    return Poisson(input, validate_args=False).sample()


def _normal_of_each(mean=0.0, std=1.0, generator=None):
    like = mean + std
    return mean + std * _like_random(like.randn_like, generator)


def _like_random(draw, generator):
    return draw() if generator is None else draw(rng=getattr(generator, "_rng", generator))


def _of_each(name, of_each, parameters):
    """A function of a number and a shape that takes a tensor of numbers, too, as PyTorch's does: a draw for each."""
    method = getattr(Tensor, name)

    def draw(*arguments, **options):
        given = dict(zip(parameters, arguments)) | options
        has_tensor = any(isinstance(given.get(key), Tensor) for key in parameters)
        if has_tensor and len(arguments) <= len(parameters) and not {"shape", "size"} & options.keys():
            out = options.pop("out", None)
            found = of_each(*arguments, **options)
            return found if out is None else _written(name, found, out)
        return method(*arguments, **options)

    return _as(method, draw)


def take_draws():
    """Gives random functions PyTorch's forms with a tensor of parameters."""
    for name, of_each, parameters in (("bernoulli", _bernoulli_of_each, ("input", "p")), ("poisson", _poisson_of_each, ("input",)),
                                      ("normal", _normal_of_each, ("mean", "std"))):  # fmt: skip
        setattr(Tensor, name, staticmethod(_of_each(name, of_each, parameters)))


def take_storage():
    """Gives the functions that make tensors PyTorch's options of storage."""
    for name in _MAKERS.split():
        found = getattr(Tensor, name)
        made = _stored(found, name)
        setattr(Tensor, name, staticmethod(made) if isinstance(Tensor.__dict__[name], staticmethod) else made)


def _like(name):
    make, takes_dtype, is_between = getattr(Tensor, name), not name.startswith("rand"), name == "randint_like"

    def like(self, *given, dtype=None, device=None, requires_grad=False, **named):
        if is_between and len(given) == 1 and "high" not in named and "low" not in named:
            # One limit is the upper one.
            given = (0, *given)
        if is_between and self.dtype.is_floating_point:
            # Integers in the dtype of the tensor.
            dtype, self = dtype or self.dtype, self.cast("int64")
        if takes_dtype:
            named["dtype"], dtype = dtype, None
        found = make(self, *given, **named)
        if dtype is not None or device is not None:
            found = found.to(dtype=dtype, device=device)
        return found.requires_grad_() if requires_grad else found

    return name, like


def _scaled(name):
    method = getattr(Tensor, name)
    in_steps_of = in_steps(lambda self, other, alpha: method(self, other * alpha))

    def scaled(self, other, *, alpha=1):
        return method(self, other) if alpha == 1 else in_steps_of(self, other, alpha)

    return name, scaled


def _first(values, x, place, dim):
    """The largest or smallest elements along an axis, whose gradient goes to the position that was found, as in PyTorch."""
    if x.ndim == 0 or x.dtype.name not in ("float16", "bfloat16", "float32", "float64"):
        return values
    dim = dim % x.ndim
    kept = values.ndim == x.ndim

    def rule(inputs, output, cotangent):
        shape = [1] * x.ndim
        shape[dim] = x.shape[dim]
        at, dy = (place, cotangent) if kept else (place.unsqueeze(dim), cotangent.unsqueeze(dim))
        return [(Tensor.iota(x.shape[dim], "int64", device=x.device).reshape(shape) == at).where_(dy, 0.0)]

    return values.with_gradient([x], rule)


def _extreme(name, of_two):
    method, of_two, place = getattr(Tensor, name), getattr(Tensor, of_two), getattr(Tensor, "arg" + name)

    def extreme(self, *given, other=None, **named):
        if other is not None or len(given) == 1 and isinstance(given[0], Tensor):
            return of_two(self, *given) if other is None else of_two(self, other)
        found = method(self, *given, **named) if named else method(self, *given)
        # PyTorch's `dim`, also by place, asks for values and positions, NumPy's `axis` for values.
        dim = given[0] if given else named.get("dim")
        if not hasattr(dim, "__index__"):
            return found
        at = place(self, *given, **named)
        return Selected((_first(found, self, at, dim), at))

    return name, extreme


def _in_dtype(name):
    method = getattr(Tensor, name)

    def computed(self, *given, dtype=None, **named):
        return method(self if dtype is None else self.cast(dtype), *given, **named)

    return name, computed


def _with_mean(name):
    method = getattr(Tensor, name)

    def both(self, axis=None, unbiased=None, keepdim=False, *, correction=1, dim=None):
        if isinstance(axis, bool):
            axis, unbiased = None, axis
        axis = dim if axis is None else axis
        found = method(self, axis, correction if unbiased is None else int(unbiased))
        if not keepdim:
            return found
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        axes = {a % self.ndim for a in axes}
        shape = [1 if i in axes else n for i, n in enumerate(self.shape)]
        return tuple(x.reshape(shape) for x in found)

    return name, both


class Selected(tuple):
    """Values, and their positions along the axis."""

    __slots__ = ()
    values, indices = property(lambda self: self[0]), property(lambda self: self[1])


def _selecting(name):
    method = getattr(Tensor, name)

    def select(self, *given, **named):
        found = method(self, *given, **named)
        return Selected(found) if type(found) is tuple else found

    return name, select


def _diff():
    method = Tensor.diff

    def diff(self, n=1, axis=-1, prepend=None, append=None, *, dim=None):
        axis = axis if dim is None else dim
        parts = [x for x in (prepend, self, append) if x is not None]
        return method(self if len(parts) == 1 else Tensor.cat(parts, axis), n, axis)

    return "diff", diff


def _scatter():
    method = Tensor.scatter

    def scatter(self, axis=None, index=None, src=None, *, reduce=None, value=None, dim=None):
        axis, src = dim if axis is None else axis, value if src is None else src
        if not isinstance(index, Tensor):
            raise TypeError(f"scatter() needs an index, a tensor of integers, not {type(index).__name__}")
        if not isinstance(src, Tensor):
            src = Tensor.full(index.shape, src, dtype=self.dtype, device=self.device)
        if reduce is None:
            return method(self, axis, index, src)
        kinds = {"add": "sum", "multiply": "prod"}
        if reduce not in kinds:
            raise ValueError(f"scatter: reduce is 'add' or 'multiply', not {reduce!r}")
        return self.scatter_reduce(axis, index, src, kinds[reduce])

    return "scatter", scatter


def _view():
    method = Tensor.view

    def view(self, *shape, size=None, dtype=None):
        if size is None and dtype is None and not (shape and type(shape[0]) is DType):
            return method(self, *shape)
        if len(shape) == 1:
            (dtype,) = shape
        if dtype is not None:
            return self.bitcast(dtype)
        return method(self, *shape) if size is None else method(self, size)

    return "view", view


def _numpy():
    method = Tensor.numpy

    def numpy(self, *, copy=False, force=False):
        return method(self, copy=copy)

    return "numpy", numpy


def _pairwise_distance():
    method = Tensor.pairwise_distance

    def pairwise_distance(self, other, p=2.0, eps=1e-6, keepdim=False):
        found = method(self, other, p, eps)
        return found.unsqueeze(-1) if keepdim else found

    return "pairwise_distance", pairwise_distance


def install():
    """Gives the methods of `Tensor` these names and options."""
    made = [_scaled("add"), _scaled("sub"), _extreme("max", "maximum"), _extreme("min", "minimum"), _diff(), _scatter(),
            _view(), _numpy(), _pairwise_distance()]  # fmt: skip
    made += [_like(name + "_like") for name in ("rand", "randn", "randint", "zeros", "ones", "full")]
    made += [_with_mean("var_mean"), _with_mean("std_mean")]
    made += [_selecting(name) for name in ("sort", "topk", "kthvalue", "mode", "median", "cummax", "cummin")]
    made += [_in_dtype(name) for name in ("nansum", "nanmean", "softmin", "norm")]
    for name, function in made:
        setattr(Tensor, name, _as(getattr(Tensor, name), function))
    for line in _TABLE.split("\n")[1:-1]:
        words = line.split()
        names = dict(word.split("=") for word in words if "=" in word)
        for name in words[: len(words) - len(names)]:
            found = renamed(getattr(Tensor, name), names)
            static = isinstance(Tensor.__dict__[name], staticmethod)
            setattr(Tensor, name, staticmethod(found) if static else found)


def function(name):
    """The function of the module for a method: the tensor may be called `input`."""
    method = getattr(Tensor, name)
    if not isinstance(Tensor.__dict__[name], staticmethod):
        return _with_input(method)
    found = method
    while hasattr(found, "_wrapped_by"):
        found = found.__wrapped__
    # Those of the table take `out` already. `einsum` becomes a function of Python, which `zyx.amp` can change.
    return _with_out(method) if (name in _OUT or name == "einsum") and not hasattr(found, "__wrapped__") else method


_FUNCTIONS = {}


def _with_out(method):
    if method not in _FUNCTIONS:
        found = _FUNCTIONS[method] = renamed(method, {})
        found.__qualname__ = found.__name__
    return _FUNCTIONS[method]


def _with_input(method):
    if method not in _FUNCTIONS:
        found = _FUNCTIONS[method] = renamed(method, {"input": ""})
        found.__qualname__ = found.__name__
    return _FUNCTIONS[method]


def wrap_methods(names, wrap):
    """Puts `wrap(name, method)` in the place of methods of `Tensor`, also within the functions that hold the methods already."""
    import zyx
    from zyx.nn import functional

    wrapped = {}
    for name in names:
        found = Tensor.__dict__.get(name)
        if found is None:
            continue
        method = getattr(Tensor, name)
        if method not in wrapped:
            wrapped[method] = wrap(name, method)
        new = wrapped[method]
        if method in _FUNCTIONS:
            _FUNCTIONS[new] = _FUNCTIONS.pop(method)
        for function in (_FUNCTIONS.get(new), vars(zyx).get(name), vars(functional).get(name)):
            # Functions in steps are wrapped by `_steps`.
            if not hasattr(function, "is_in_steps"):
                _wrap_within(name, function, wrap)
        setattr(Tensor, name, staticmethod(new) if isinstance(found, staticmethod) else new)


def _wrap_within(name, function, wrap):
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    for key, cell in zip(getattr(code, "co_freevars", ()), cells or ()):
        if key in ("function", "method") and getattr(cell.cell_contents, "_wrapped_by", None) is not wrap:
            cell.cell_contents = wrap(name, cell.cell_contents)


def wrapping(name, function, wrapped, wrap):
    """Makes a function look like the one that it wraps."""
    for key in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(wrapped, key, getattr(function, key, name))
    wrapped.__wrapped__, wrapped._wrapped_by = function, wrap
    return wrapped
