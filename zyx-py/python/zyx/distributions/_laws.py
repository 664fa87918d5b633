"""The families of Rust's table, each a class made from one row here: signature, sets of parameters, set of values."""

import math

from .. import _core
from .._core import Tensor, tensor
from .._types import Size
from . import constraints as sets
from .distribution import Distribution

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_NO_TENSOR = "a parameter is a number or a tensor, not {}"


def tensors(values):
    """Numbers and tensors as floating tensors of one dtype, on one device."""
    given = [x for x in values if isinstance(x, Tensor)]
    for x in values:
        if not isinstance(x, (Tensor, int, float)):
            raise ValueError(_NO_TENSOR.format(type(x).__name__))
    dtypes = [x.dtype for x in given if x.dtype.name in _FLOATS]
    if not dtypes:
        from .._types import get_default_dtype

        dtypes = [get_default_dtype()]
    device = given[0].device if given else None
    dtype = dtypes[0]
    for other in dtypes[1:]:
        from .._types import promote_types

        dtype = promote_types(dtype, other)
    make = lambda x: (x if x.dtype == dtype else x.cast(dtype)) if isinstance(x, Tensor) else tensor(float(x), dtype=dtype, device=device)  # noqa: E731
    return [make(x) for x in values]


def expanded(x, shape):
    """Broadcast, or the tensor itself if it has the shape."""
    return x if tuple(x.shape) == tuple(shape) else x.expand(tuple(shape))


def broadcast_shape(*shapes):
    """The shape that shapes broadcast to."""
    found = []
    for i in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {shape[-i] for shape in shapes if len(shape) >= i}
        if len(sizes - {1}) > 1:
            raise ValueError(f"shapes {', '.join(str(tuple(shape)) for shape in shapes)} do not broadcast")
        found.append(next(iter(sizes - {1}), 1))
    return tuple(reversed(found))


class Law(Distribution):
    """A family of Rust's table."""

    # Name of the row, its parameters, and the axes of vectors of each parameter.
    _row, _order, _ranks = None, (), {}

    def _begin(self, given, validate_args=None, batch=None):
        """Parameters as attributes, broadcast to the batch shape; of `probs` and `logits` one is given."""
        if "logits" in given:
            if (given["probs"] is None) == (given["logits"] is None):
                raise ValueError(f"{type(self).__name__}: either `probs` or `logits` must be given, and not both")
            given = {key: value for key, value in given.items() if key not in ("probs", "logits") or value is not None}
        values = dict(zip(given, tensors(list(given.values()))))
        ranks = {name: self._ranks.get("logits" if name == "probs" else name, 0) for name in values}
        for name, x in values.items():
            if x.ndim < ranks[name]:
                raise ValueError(f"{type(self).__name__}: {name} needs {ranks[name]} axes or more, not the shape {tuple(x.shape)}")
        lead = {name: tuple(x.shape[: x.ndim - ranks[name]]) for name, x in values.items()}
        if batch is None:
            batch = broadcast_shape(*lead.values())
        for name, x in values.items():
            vars(self)[name] = expanded(x, (*batch, *x.shape[x.ndim - ranks[name] :]))
        if "probs" in values and ranks["probs"]:
            self.probs = self.probs / self.probs.sum(-1, keepdim=True)
        elif "logits" in values and ranks["logits"]:
            self.logits = self.logits.log_softmax(-1)
        self._given = tuple(values)
        longest = max(values, key=lambda name: min(ranks[name], 1))
        event = vars(self)[longest].shape[len(batch) : len(batch) + 1] if self._has_vectors else ()
        Distribution.__init__(self, batch, event, validate_args)

    _has_vectors = property(lambda self: self.support.event_dim == 1)

    @property
    def param_shape(self):
        """The shape of `probs` or `logits`."""
        return Size(vars(self)["probs" if "probs" in vars(self) else "logits"].shape)

    def __getattr__(self, name):
        # The one of `probs` and `logits` that was not given.
        if name in ("probs", "logits") and "logits" in self._order and "_given" in vars(self):
            known = vars(self)["probs" if name == "logits" else "logits"]
            vector = self._ranks.get("logits", 0)
            if name == "logits":
                return known.log() if vector else known.log() - (-known).log1p()
            return known.softmax(-1) if vector else known.sigmoid()
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    @property
    def _native(self):
        # Made for each call: parameters may have changed.
        return _core.Law(self._row, [getattr(self, name) for name in self._order])

    def expand(self, batch_shape, _instance=None):
        """The distributions broadcast to a batch shape."""
        new = object.__new__(type(self)) if _instance is None else _instance
        new._validate_args = False
        Law._begin(new, dict.fromkeys(("probs", "logits") if "logits" in self._order else ()) | {name: vars(self)[name] for name in self._given}, batch=tuple(batch_shape))
        for key in vars(self).keys() - vars(new).keys():
            vars(new)[key] = vars(self)[key]
        new._validate_args = self._validate_args
        return new

    def _shape(self, sample_shape):
        return [sample_shape] if isinstance(sample_shape, int) else list(sample_shape)

    def sample(self, sample_shape=()):
        """Values of shape `sample_shape + batch_shape + event_shape`, without gradients."""
        return self._native.sample(self._shape(sample_shape), False)

    def rsample(self, sample_shape=()):
        """Values with gradients by the parameters."""
        if not self.has_rsample:
            return Distribution.rsample(self, sample_shape)
        return self._native.sample(self._shape(sample_shape), True)

    def log_prob(self, value):
        """The logarithm of the density or probability of values."""
        return self._of_value("log_prob", value)

    def _of_value(self, name, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._native.of_value(name, value)

    def cdf(self, value):
        """The probability of at most `value`."""
        return self._or_none(lambda: self._of_value("cdf", value), "cdf")

    def icdf(self, value):
        """The inverse of `cdf`."""
        return self._or_none(lambda: self._native.of_value("icdf", value), "icdf")

    def entropy(self):
        """The entropy in nats."""
        if self._row == "Binomial":
            values = self.enumerate_support()
            log = self.log_prob(values)
            return -(log.exp() * log.maximum(-1e30)).sum(0)
        if self._row == "Multinomial":
            return self._counts_entropy()
        return self._or_none(lambda: self._native.number("entropy"), "entropy")

    def _counts_entropy(self):
        """The entropy of classes in order, less the mean logarithm of the number of orders."""
        n = int(self.total_count.max().item())
        probs = self.probs
        single = Binomial(n, probs, validate_args=False)  # noqa: F821
        counts = single.enumerate_support(expand=False)[1:]
        orders = ((single.log_prob(counts)).exp() * (counts + 1).lgamma()).sum((0, -1))
        return n * Categorical(probs, validate_args=False).entropy() - math.lgamma(n + 1) + orders  # noqa: F821

    def _or_none(self, compute, name):
        try:
            return compute()
        except ValueError as error:
            if f"there is no {name} of it" not in str(error):
                raise
        raise NotImplementedError(f"{type(self).__name__} has no {name}()")

    @property
    def mean(self):
        """The mean."""
        return self._or_none(lambda: self._native.number("mean"), "mean")

    @property
    def variance(self):
        """The variance; of angles that on the circle."""
        return self._or_none(lambda: self._native.number("variance"), "variance")

    @property
    def mode(self):
        """The likeliest value."""
        if self._row not in _MODES:
            return Distribution.mode.fget(self)
        return _MODES[self._row](self)

    def enumerate_support(self, expand=True):
        """All values, along a new first axis."""
        if not self.has_enumerate_support:
            return Distribution.enumerate_support(self, expand)
        p = vars(self)[self._given[-1]]
        if self._row == "OneHotCategorical":
            n = self._event_shape[0]
            values = Tensor.eye(n, dtype=p.dtype, device=p.device).reshape((n, *[1] * len(self._batch_shape), n))
            return values.expand((n, *self._batch_shape, n)) if expand else values
        if self._row == "Binomial":
            total = self.total_count
            n = 1 + int(total.max().item())
            if not bool((total == n - 1).all()):
                raise NotImplementedError("Binomial: enumerate_support of different total_count")
        else:
            n = 2 if self._row == "Bernoulli" else p.shape[-1]
        values = Tensor.arange(n, device=p.device).cast("int64" if self._row == "Categorical" else p.dtype)
        values = values.reshape((n, *[1] * len(self._batch_shape)))
        return values.expand((n, *self._batch_shape)) if expand else values


def _one_hot_mode(self):
    probs = self.probs
    return probs.argmax(-1).one_hot(probs.shape[-1]).cast(probs.dtype)


def _dirichlet_mode(self):
    above = (self.concentration - 1).clamp(0)
    mode = above / above.sum(-1, keepdim=True)
    corner = (self.concentration < 1).all(-1)
    one = self.concentration.argmax(-1).one_hot(self._event_shape[0]).cast(mode.dtype)
    return corner.unsqueeze(-1).where_(one, mode)


_NAN = float("nan")
_MODES = {
    "Normal": lambda d: d.loc, "LogNormal": lambda d: (d.loc - d.scale.square()).exp(), "Uniform": lambda d: d.low * _NAN,
    "Bernoulli": lambda d: (d.probs == 0.5).where_(_NAN, (d.probs >= 0.5).cast(d.probs.dtype)),
    "Binomial": lambda d: ((d.total_count + 1) * d.probs).floor().minimum(d.total_count),
    "NegativeBinomial": lambda d: ((d.total_count - 1) * d.logits.exp()).floor().clamp(0), "Geometric": lambda d: d.probs.zeros_like(),
    "Poisson": lambda d: d.rate.floor(), "Categorical": lambda d: d.probs.argmax(-1), "OneHotCategorical": _one_hot_mode,
    "Gamma": lambda d: ((d.concentration - 1) / d.rate).clamp(0), "InverseGamma": lambda d: d.rate / (d.concentration + 1),
    "Chi2": lambda d: (d.df - 2).clamp(0), "Dirichlet": _dirichlet_mode, "StudentT": lambda d: d.loc, "Cauchy": lambda d: d.loc,
    "HalfCauchy": lambda d: d.scale.zeros_like(), "HalfNormal": lambda d: d.scale.zeros_like(), "Exponential": lambda d: d.rate.zeros_like(),
    "Laplace": lambda d: d.loc, "Gumbel": lambda d: d.loc, "Pareto": lambda d: d.scale, "VonMises": lambda d: d.loc,
    "Weibull": lambda d: d.scale * ((d.concentration - 1) / d.concentration).clamp(0) ** d.concentration.reciprocal(),
    "Beta": lambda d: _dirichlet_mode(_Pair(d))[..., 0], "MultivariateNormal": lambda d: d.loc,
    "Kumaraswamy": lambda d: _kumaraswamy_mode(d.concentration1, d.concentration0),
    "FisherSnedecor": lambda d: (d.df1 > 2).where_((d.df1 - 2) / d.df1 * d.df2 / (d.df2 + 2), _NAN),
}  # fmt: skip


class _Pair:
    """A beta distribution as the Dirichlet distribution of two shares."""

    def __init__(self, beta):
        self.concentration = Tensor.stack([beta.concentration1, beta.concentration0], -1)
        self._event_shape = (2,)


def _kumaraswamy_mode(a, b):
    mode = ((a - 1) / (a * b - 1)) ** (1 / a)
    return ((a < 1) | (b < 1)).where_(_NAN, mode)


_LIKELY = {"probs": sets.unit_interval, "logits": sets.real}
_LIKELY_CLASSES = {"probs": sets.simplex, "logits": sets.real_vector}
_POSITIVES = lambda *names: dict.fromkeys(names, sets.positive)  # noqa: E731
_PLACE = {"loc": sets.real, "scale": sets.positive}
_classes = lambda self: sets.integer_interval(0, vars(self)[self._given[-1]].shape[-1] - 1)  # noqa: E731
_between = lambda self: sets.interval(self.low, self.high)  # noqa: E731

# Signature, sets of parameters, set of values (or how it depends on the distribution), axes of vectors of parameters.
_TABLE = {
    "Normal": (lambda self, loc, scale, validate_args=None: vars(), _PLACE, sets.real, {}),
    "LogNormal": (lambda self, loc, scale, validate_args=None: vars(), _PLACE, sets.positive, {}),
    "Uniform": (lambda self, low, high, validate_args=None: vars(), {"low": sets.dependent, "high": sets.dependent}, _between, {}),
    "Bernoulli": (lambda self, probs=None, logits=None, validate_args=None: vars(), _LIKELY, sets.boolean, {}),
    "Binomial": (lambda self, total_count=1, probs=None, logits=None, validate_args=None: vars(),
                 {"total_count": sets.nonnegative_integer, **_LIKELY}, lambda self: sets.integer_interval(0, self.total_count), {}),
    "NegativeBinomial": (lambda self, total_count, probs=None, logits=None, validate_args=None: vars(),
                         {"total_count": sets.nonnegative, "probs": sets.half_open_interval(0.0, 1.0), "logits": sets.real},
                         sets.nonnegative_integer, {}),
    "Geometric": (lambda self, probs=None, logits=None, validate_args=None: vars(),
                  {"probs": sets.interval(1e-45, 1.0), "logits": sets.real}, sets.nonnegative_integer, {}),
    "Poisson": (lambda self, rate, validate_args=None: vars(), {"rate": sets.nonnegative}, sets.nonnegative_integer, {}),
    "Categorical": (lambda self, probs=None, logits=None, validate_args=None: vars(), _LIKELY_CLASSES, _classes, {"logits": 1}),
    "OneHotCategorical": (lambda self, probs=None, logits=None, validate_args=None: vars(), _LIKELY_CLASSES, sets.one_hot, {"logits": 1}),
    "Multinomial": (lambda self, total_count=1, probs=None, logits=None, validate_args=None: vars(), _LIKELY_CLASSES,
                    lambda self: sets.multinomial(self.total_count), {"logits": 1}),
    "Beta": (lambda self, concentration1, concentration0, validate_args=None: vars(), _POSITIVES("concentration1", "concentration0"),
             sets.unit_interval, {}),
    "Gamma": (lambda self, concentration, rate, validate_args=None: vars(), _POSITIVES("concentration", "rate"), sets.nonnegative, {}),
    "InverseGamma": (lambda self, concentration, rate, validate_args=None: vars(), _POSITIVES("concentration", "rate"), sets.positive, {}),
    "Chi2": (lambda self, df, validate_args=None: vars(), _POSITIVES("df"), sets.nonnegative, {}),
    "Dirichlet": (lambda self, concentration, validate_args=None: vars(), {"concentration": sets.independent(sets.positive, 1)}, sets.simplex,
                  {"concentration": 1}),
    "StudentT": (lambda self, df, loc=0.0, scale=1.0, validate_args=None: vars(), {"df": sets.positive, **_PLACE}, sets.real, {}),
    "Cauchy": (lambda self, loc, scale, validate_args=None: vars(), _PLACE, sets.real, {}),
    "HalfCauchy": (lambda self, scale, validate_args=None: vars(), _POSITIVES("scale"), sets.nonnegative, {}),
    "HalfNormal": (lambda self, scale, validate_args=None: vars(), _POSITIVES("scale"), sets.nonnegative, {}),
    "Exponential": (lambda self, rate, validate_args=None: vars(), _POSITIVES("rate"), sets.nonnegative, {}),
    "Laplace": (lambda self, loc, scale, validate_args=None: vars(), _PLACE, sets.real, {}),
    "Gumbel": (lambda self, loc, scale, validate_args=None: vars(), _PLACE, sets.real, {}),
    "Pareto": (lambda self, scale, alpha, validate_args=None: vars(), _POSITIVES("alpha", "scale"),
               lambda self: sets.greater_than_eq(self.scale), {}),
    "Weibull": (lambda self, scale, concentration, validate_args=None: vars(), _POSITIVES("scale", "concentration"), sets.positive, {}),
    "Kumaraswamy": (lambda self, concentration1, concentration0, validate_args=None: vars(),
                    _POSITIVES("concentration1", "concentration0"), sets.unit_interval, {}),
    "VonMises": (lambda self, loc, concentration, validate_args=None: vars(), {"loc": sets.real, "concentration": sets.positive},
                 sets.real, {}),
    "FisherSnedecor": (lambda self, df1, df2, validate_args=None: vars(), _POSITIVES("df1", "df2"), sets.positive, {}),
    "RelaxedBernoulli": (lambda self, temperature, probs=None, logits=None, validate_args=None: vars(), _LIKELY, sets.unit_interval, {}),
    "RelaxedOneHotCategorical": (lambda self, temperature, probs=None, logits=None, validate_args=None: vars(), _LIKELY_CLASSES, sets.simplex,
                                 {"logits": 1}),
    "ContinuousBernoulli": (lambda self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None: vars(), _LIKELY,
                            sets.unit_interval, {}),
}  # fmt: skip
_ENUMERATED = ("Bernoulli", "Binomial", "Categorical", "OneHotCategorical")
_WITHOUT_GRADIENT = (*_ENUMERATED, "NegativeBinomial", "Geometric", "Poisson", "Multinomial", "VonMises")


def _law(name, signature, constraints, support, ranks):
    def __init__(self, *parameters, **named):
        given = signature(self, *parameters, **named)
        validate_args = given.pop("validate_args")
        del given["self"]
        given.pop("lims", None)
        self._begin(given, validate_args)

    __init__.__wrapped__ = signature
    code = signature.__code__
    order = tuple(x for x in code.co_varnames[1 : code.co_argcount] if x not in ("probs", "validate_args", "lims"))
    members = {
        "__doc__": f"The family `{name}` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's.",
        "__module__": "zyx.distributions", "__init__": __init__, "arg_constraints": constraints, "_row": name, "_order": order, "_ranks": ranks,
        "support": property(support) if callable(support) and not isinstance(support, sets.Constraint) else support,
        "has_rsample": name not in _WITHOUT_GRADIENT, "has_enumerate_support": name in _ENUMERATED,
    }  # fmt: skip
    return type(name, (Law,), members)


for _name, _columns in _TABLE.items():
    globals()[_name] = _law(_name, *_columns)


def _uniform_checked(self):
    from .distribution import holds

    if not holds(self.low < self.high):
        raise ValueError(f"Uniform: low must be below high, found {self.low} and {self.high}")


Uniform._check_parameters = _uniform_checked  # noqa: F821
Chi2.concentration, Chi2.rate = property(lambda self: self.df * 0.5), property(lambda self: self.df * 0 + 0.5)  # noqa: F821


def _classes_sampled(self, sample_shape=()):
    """Class numbers of shape `sample_shape + batch_shape`."""
    return Law.sample(self, sample_shape).cast("int64")


Categorical.sample = _classes_sampled  # noqa: F821
for _name in ("mean", "variance"):
    # PyTorch gives NaN for class numbers.
    setattr(Categorical, _name, property(lambda self: self.probs.sum(-1) * _NAN))  # noqa: F821


class MultivariateNormal(Law):
    """Normal vectors of a mean and one of covariance, its inverse, and its lower triangular root."""

    _row, _order, _ranks, has_rsample = "MultivariateNormal", ("loc", "scale_tril"), {"loc": 1, "scale_tril": 2}, True
    arg_constraints = {
        "loc": sets.real_vector, "covariance_matrix": sets.positive_definite, "precision_matrix": sets.positive_definite,
        "scale_tril": sets.lower_cholesky,
    }  # fmt: skip
    support = sets.real_vector

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: x for name, x in given.items() if x is not None}
        if len(given) != 1:
            raise ValueError("MultivariateNormal: one of covariance_matrix, precision_matrix and scale_tril must be given")
        if loc.ndim < 1:
            raise ValueError("MultivariateNormal: loc needs one axis or more")
        (name, matrix), = given.items()  # fmt: skip
        if self._validate_args if validate_args is None else validate_args:
            from .distribution import holds

            if not holds(self.arg_constraints[name].check(matrix)):
                raise ValueError(f"MultivariateNormal: {name} must be in {self.arg_constraints[name]!r}, found {matrix}")
        if name == "precision_matrix":
            matrix = matrix.inv()
        self._begin({"loc": loc, "scale_tril": matrix if name == "scale_tril" else matrix.cholesky()}, validate_args)

    @property
    def covariance_matrix(self):
        """The covariance."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self):
        """The inverse of the covariance."""
        return self.covariance_matrix.inv()


NAMES = (*_TABLE, "MultivariateNormal")
