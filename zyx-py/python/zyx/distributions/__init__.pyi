"""Probability distributions with PyTorch's names. Written by tools/python_stubs.py."""

from typing import Any

from .._core import Tensor
from . import constraints as constraints
from . import transforms as transforms
from .transforms import AbsTransform as AbsTransform
from .transforms import AffineTransform as AffineTransform
from .transforms import ComposeTransform as ComposeTransform
from .transforms import CumulativeDistributionTransform as CumulativeDistributionTransform
from .distribution import Distribution as Distribution
from .transforms import ExpTransform as ExpTransform
from ._composed import Independent as Independent
from .transforms import IndependentTransform as IndependentTransform
from ._composed import LogisticNormal as LogisticNormal
from ._composed import LogitRelaxedBernoulli as LogitRelaxedBernoulli
from .transforms import LowerCholeskyTransform as LowerCholeskyTransform
from ._composed import MixtureSameFamily as MixtureSameFamily
from ._composed import OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from .transforms import PowerTransform as PowerTransform
from .transforms import ReshapeTransform as ReshapeTransform
from .transforms import SigmoidTransform as SigmoidTransform
from .transforms import SoftmaxTransform as SoftmaxTransform
from .transforms import SoftplusTransform as SoftplusTransform
from .transforms import StickBreakingTransform as StickBreakingTransform
from .transforms import TanhTransform as TanhTransform
from .transforms import Transform as Transform
from ._composed import TransformedDistribution as TransformedDistribution
from .transforms import biject_to as biject_to
from .transforms import identity_transform as identity_transform
from .kl import kl_divergence as kl_divergence
from .kl import register_kl as register_kl
from .transforms import transform_to as transform_to

class Normal(Distribution):
    """The family `Normal` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None: ...

class LogNormal(Distribution):
    """The family `LogNormal` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None: ...

class Uniform(Distribution):
    """The family `Uniform` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    low: Tensor
    high: Tensor

    def __init__(self, low: Any, high: Any, validate_args: Any = None) -> None: ...

class Bernoulli(Distribution):
    """The family `Bernoulli` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    probs: Tensor
    logits: Tensor

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None: ...

class Binomial(Distribution):
    """The family `Binomial` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    total_count: Tensor
    probs: Tensor
    logits: Tensor

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None: ...

class NegativeBinomial(Distribution):
    """The family `NegativeBinomial` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    total_count: Tensor
    probs: Tensor
    logits: Tensor

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None: ...

class Geometric(Distribution):
    """The family `Geometric` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    probs: Tensor
    logits: Tensor

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None: ...

class Poisson(Distribution):
    """The family `Poisson` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    rate: Tensor

    def __init__(self, rate: Any, validate_args: Any = None) -> None: ...

class Categorical(Distribution):
    """The family `Categorical` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    probs: Tensor
    logits: Tensor

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None: ...

class OneHotCategorical(Distribution):
    """The family `OneHotCategorical` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    probs: Tensor
    logits: Tensor

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None: ...

class Multinomial(Distribution):
    """The family `Multinomial` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    total_count: Tensor
    probs: Tensor
    logits: Tensor

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None: ...

class Beta(Distribution):
    """The family `Beta` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    concentration1: Tensor
    concentration0: Tensor

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: Any = None) -> None: ...

class Gamma(Distribution):
    """The family `Gamma` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    concentration: Tensor
    rate: Tensor

    def __init__(self, concentration: Any, rate: Any, validate_args: Any = None) -> None: ...

class InverseGamma(Distribution):
    """The family `InverseGamma` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    concentration: Tensor
    rate: Tensor

    def __init__(self, concentration: Any, rate: Any, validate_args: Any = None) -> None: ...

class Chi2(Distribution):
    """The family `Chi2` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    df: Tensor

    def __init__(self, df: Any, validate_args: Any = None) -> None: ...

class Dirichlet(Distribution):
    """The family `Dirichlet` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    concentration: Tensor

    def __init__(self, concentration: Any, validate_args: Any = None) -> None: ...

class StudentT(Distribution):
    """The family `StudentT` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: Any = None) -> None: ...

class Cauchy(Distribution):
    """The family `Cauchy` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None: ...

class HalfCauchy(Distribution):
    """The family `HalfCauchy` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    scale: Tensor

    def __init__(self, scale: Any, validate_args: Any = None) -> None: ...

class HalfNormal(Distribution):
    """The family `HalfNormal` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    scale: Tensor

    def __init__(self, scale: Any, validate_args: Any = None) -> None: ...

class Exponential(Distribution):
    """The family `Exponential` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    rate: Tensor

    def __init__(self, rate: Any, validate_args: Any = None) -> None: ...

class Laplace(Distribution):
    """The family `Laplace` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None: ...

class Gumbel(Distribution):
    """The family `Gumbel` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None: ...

class Pareto(Distribution):
    """The family `Pareto` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    scale: Tensor
    alpha: Tensor

    def __init__(self, scale: Any, alpha: Any, validate_args: Any = None) -> None: ...

class Weibull(Distribution):
    """The family `Weibull` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    scale: Tensor
    concentration: Tensor

    def __init__(self, scale: Any, concentration: Any, validate_args: Any = None) -> None: ...

class Kumaraswamy(Distribution):
    """The family `Kumaraswamy` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    concentration1: Tensor
    concentration0: Tensor

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: Any = None) -> None: ...

class VonMises(Distribution):
    """The family `VonMises` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    loc: Tensor
    concentration: Tensor

    def __init__(self, loc: Any, concentration: Any, validate_args: Any = None) -> None: ...

class FisherSnedecor(Distribution):
    """The family `FisherSnedecor` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    df1: Tensor
    df2: Tensor

    def __init__(self, df1: Any, df2: Any, validate_args: Any = None) -> None: ...

class RelaxedBernoulli(Distribution):
    """The family `RelaxedBernoulli` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    temperature: Tensor
    probs: Tensor
    logits: Tensor

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None: ...

class RelaxedOneHotCategorical(Distribution):
    """The family `RelaxedOneHotCategorical` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    temperature: Tensor
    probs: Tensor
    logits: Tensor

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None: ...

class ContinuousBernoulli(Distribution):
    """The family `ContinuousBernoulli` of `zyx_nn::distributions`; parameters, sets and values are PyTorch's."""

    probs: Tensor
    logits: Tensor

    def __init__(self, probs: Any = None, logits: Any = None, lims: Any = (0.499, 0.501), validate_args: Any = None) -> None: ...

class MultivariateNormal(Distribution):
    """Normal vectors of a mean and one of covariance, its inverse, and its lower triangular root."""

    loc: Tensor
    covariance_matrix: Tensor
    precision_matrix: Tensor
    scale_tril: Tensor

    def __init__(self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None, validate_args: Any = None) -> None: ...
