"""Ways to compute weights, under the names of `torch.nn.utils.parametrizations`."""

from ..._core import Parameter, Tensor
from ..module import Module
from . import _normed, _sigma, _spectral_dim, _unit, norm_except_dim, parametrize


class _WeightNorm(Module):
    def __init__(self, dim=0):
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return _normed(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """A weight by length (`original0`) and direction (`original1`)."""
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim, self.eps, self.n_power_iterations = dim, eps, n_power_iterations
        if weight.ndim > 1:
            rows, columns = self._matrix(weight).shape
            for name, n in (("_u", rows), ("_v", columns)):
                self.register_buffer(name, _unit(Tensor.randn(n, dtype=weight.dtype, device=weight.device), eps))
            _sigma(self._matrix(weight.detach()), self._u, self._v, 15, eps, True)

    def _matrix(self, weight):
        weight = weight.transpose(0, self.dim) if self.dim else weight
        return weight.reshape(weight.shape[0], -1)

    def forward(self, weight):
        if weight.ndim == 1:
            return _unit(weight, self.eps)
        return weight / _sigma(self._matrix(weight), self._u, self._v, self.n_power_iterations if self.training else 0, self.eps, True)

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """A weight whose largest singular value is 1."""
    weight = getattr(module, name, None)
    if not isinstance(weight, (Parameter, Tensor)):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    norm = _SpectralNorm(weight, n_power_iterations, _spectral_dim(module, dim), eps)
    return parametrize.register_parametrization(module, name, norm)


class _Orthogonal(Module):
    def __init__(self, weight, kind):
        self.kind = kind
        self.register_buffer("base", _orthonormal(weight.detach()))

    def forward(self, x):
        tall = x.shape[-2] >= x.shape[-1]
        x = x if tall else x.mT
        n, k = x.shape[-2], x.shape[-1]
        square = x.tril()
        if n != k:
            square = square.pad([(0, 0)] * (x.ndim - 1) + [(0, n - k)])
        skew = square - square.mT
        if self.kind == "matrix_exp":
            q = skew.matrix_exp()
        else:
            eye = Tensor.eye(n, dtype=x.dtype, device=x.device)
            q = (eye - skew * 0.5).solve(eye + skew * 0.5)
        found = self.base.detach() @ q[..., :k]
        return found if tall else found.mT

    def right_inverse(self, value):
        if value.ndim < 2:
            raise ValueError(f"orthogonal: needs matrices, not shape {value.shape}")
        # The base has the value; the weight that is trained starts at nothing.
        self.base.set(_orthonormal(value.detach()))
        return value.zeros_like()


def _orthonormal(weight):
    """A square orthogonal matrix whose first columns span those of the weight."""
    tall = weight if weight.shape[-2] >= weight.shape[-1] else weight.mT
    n, k = tall.shape[-2], tall.shape[-1]
    if n != k:
        tall = Tensor.cat([tall, Tensor.randn(*tall.shape[:-1], n - k, dtype=weight.dtype, device=weight.device)], -1)
    q, r = tall.qr()
    return q * r.diagonal(0, -2, -1).sign().unsqueeze(-2)


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """A weight with orthonormal rows or columns, whichever are fewer, by `"matrix_exp"` or `"cayley"` of a skew matrix."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    kind = orthogonal_map or "matrix_exp"
    if kind not in ("matrix_exp", "cayley") or not use_trivialization:
        raise NotImplementedError(f"orthogonal: orthogonal_map={kind!r}, use_trivialization={use_trivialization}; 'matrix_exp' and 'cayley' with it are possible")
    return parametrize.register_parametrization(module, name, _Orthogonal(weight, kind), unsafe=True)
