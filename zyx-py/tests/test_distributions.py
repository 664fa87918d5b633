"""`zyx.distributions` and `optim.LBFGS`: PyTorch's numbers, shapes, errors and iterates; formulas and samples are tested in Rust."""

import copy
import inspect
import pathlib
import pickle

import numpy as np
import pytest
import zyx
import zyx.distributions as D
from zyx import func

ROOT = pathlib.Path(__file__).resolve().parents[2]
R, P = [-1.5, 0.2, 2.0], [0.7, 1.0, 3.5]
# Names of Rust's rows whose `logits` are the last parameter here.
ODDS = ("Bernoulli", "Binomial", "NegativeBinomial", "Geometric", "Categorical", "OneHotCategorical", "Multinomial", "RelaxedBernoulli",
        "RelaxedOneHotCategorical", "ContinuousBernoulli")  # fmt: skip


def parse(text):
    shape, _, numbers = text.strip()[1:].partition("]")
    return np.array([float(x) for x in numbers.split()], dtype="float64").reshape([int(n) for n in shape.split()])


def lines():
    """Quantity, value, expected numbers, and the distributions with their parameters."""
    for line in (ROOT / "nn/tests/data/torch_distributions.txt").read_text().splitlines():
        quantity, value, expected, *rest = [field.strip() for field in line.split(" | ")]
        laws = []
        for field in rest:
            if field.startswith("["):
                laws[-1][1].append(zyx.tensor(parse(field)))
            else:
                laws.append((field, []))
        yield quantity, None if value == "-" else zyx.tensor(parse(value)), parse(expected), laws


def law(name, parameters):
    named = {"logits": parameters[-1]} if name in ODDS else {"scale_tril": parameters[-1]} if name == "MultivariateNormal" else {}
    return getattr(D, name)(*parameters[: len(parameters) - len(named)], **named)


def test_numbers_are_pytorchs():
    seen = set()
    for quantity, value, expected, laws in lines():
        if quantity.startswith("igamma"):
            found = getattr(zyx, quantity)(laws[0][1][0], value)
        elif quantity == "kl_divergence":
            found = D.kl_divergence(*(law(*one) for one in laws))
        else:
            found = getattr(law(*laws[0]), quantity)
            found = found(value) if value is not None else found() if quantity == "entropy" else found
        bound = 1e-6 if "VonMises" in laws[0][0] else 1e-9
        assert found.shape == expected.shape, laws
        np.testing.assert_allclose(found.numpy(), expected, rtol=bound, atol=bound, err_msg=f"{quantity} {laws}")
        seen.add(laws[0][0])
    assert len(seen) == 33


@pytest.mark.parametrize("name", D._laws._TABLE)
def test_shapes(name):
    """Samples, probabilities and expanded distributions have PyTorch's shapes."""
    zyx.manual_seed(1)
    _, _, _, laws = next(line for line in lines() if line[0] == "log_prob" and line[3][0][0] == name)
    one = law(*laws[0])
    batch, event = tuple(one.batch_shape), tuple(one.event_shape)
    drawn = one.sample((4,))
    assert drawn.shape == (4, *batch, *event) and one.sample().shape == (*batch, *event)
    assert drawn.dtype.name == ("int64" if name == "Categorical" else "float64") and not drawn.requires_grad
    assert one.log_prob(drawn).shape == (4, *batch)
    wider = one.expand((2, *batch))
    assert type(wider) is type(one) and tuple(wider.batch_shape) == (2, *batch)
    np.testing.assert_allclose(wider.log_prob(drawn[:2]).numpy(), one.log_prob(drawn[:2]).numpy(), rtol=1e-12)
    if one.has_rsample:
        assert one.rsample((4,)).shape == drawn.shape
    else:
        with pytest.raises(NotImplementedError, match="rsample"):
            one.rsample()
    # Binomials of different numbers of trials are not enumerated.
    if one.has_enumerate_support and name != "Binomial":
        values = one.enumerate_support()
        np.testing.assert_allclose(one.log_prob(values).exp().sum(0).numpy(), 1, rtol=1e-9)
    assert name in repr(one)


def test_shapes_of_binomials():
    one = D.Binomial(5, probs=zyx.tensor([0.2, 0.9]))
    assert one.enumerate_support().shape == (6, 2)
    # Entropies by sums over all values.
    k = np.arange(6)
    from math import comb

    for p, found in zip((0.2, 0.9), one.entropy().numpy()):
        mass = np.array([comb(5, int(i)) * p**i * (1 - p) ** (5 - i) for i in k])
        assert abs(-(mass * np.log(mass)).sum() - found) < 1e-5
    mass = np.array([0.25, 0.5, 0.25])
    assert abs(D.Multinomial(2, zyx.tensor([0.5, 0.5])).entropy().item() + (mass * np.log(mass)).sum()) < 1e-6


def test_gradients_reach_parameters():
    zyx.manual_seed(0)
    scale = zyx.tensor(P, requires_grad=True)
    x = D.Normal(zyx.tensor(R), scale).rsample((200,))
    x.mean(0).sum().backward()
    # The gradient of a sample by the scale is its standard normal number.
    expected = ((x.detach() - zyx.tensor(R)) / scale.detach()).mean(0)
    np.testing.assert_allclose(scale.grad.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
    logits = zyx.nn.Parameter(zyx.zeros(3))
    policy = D.Categorical(logits=logits)
    (-policy.log_prob(zyx.tensor(2))).backward()
    np.testing.assert_allclose(logits.grad.numpy(), [1 / 3, 1 / 3, -2 / 3], rtol=1e-6)
    # A parameter that changes changes the distribution.
    gauss = D.Normal(logits, 1.0)
    with zyx.no_grad():
        logits += 1.0
    np.testing.assert_allclose(gauss.mean.detach().numpy(), [1, 1, 1])


def test_traced_functions_check_nothing():
    def compute(x):
        return D.Normal(x, x.exp()).log_prob(x)

    x = zyx.tensor(R)
    for traced in (zyx.jit(compute), zyx.vmap(compute), func.vmap(compute)):
        np.testing.assert_allclose(traced(x).numpy(), compute(x).numpy(), rtol=1e-6)


def test_composed():
    loc, scale, x = zyx.tensor(R), zyx.tensor(P), zyx.tensor([0.3, 0.6, 0.2])
    normal = D.Normal(loc, scale)
    independent = D.Independent(normal, 1)
    assert independent.batch_shape == () and independent.event_shape == (3,)
    np.testing.assert_allclose(independent.log_prob(x).item(), normal.log_prob(x).sum().item(), rtol=1e-6)
    logistic = D.TransformedDistribution(D.Uniform(zyx.zeros(3), zyx.ones(3)), [D.SigmoidTransform().inv, D.AffineTransform(loc, scale)])
    y = (x - loc) / scale
    np.testing.assert_allclose(logistic.log_prob(x).numpy(), (-y - scale.log() - 2 * (-y).softplus()).numpy(), rtol=1e-5)
    np.testing.assert_allclose(logistic.cdf(logistic.icdf(zyx.tensor([0.2, 0.5, 0.7]))).numpy(), [0.2, 0.5, 0.7], rtol=1e-5)
    falling = D.TransformedDistribution(normal, D.AffineTransform(1.0, -2.0))
    np.testing.assert_allclose(falling.cdf(x).numpy(), D.Normal(1 - 2 * loc, 2 * scale).cdf(x).numpy(), rtol=1e-5)
    mixture = D.MixtureSameFamily(D.Categorical(zyx.tensor([0.2, 0.3, 0.5])), normal)
    expected = (normal.log_prob(zyx.tensor(0.1)).exp() * zyx.tensor([0.2, 0.3, 0.5])).sum().log()
    np.testing.assert_allclose(mixture.log_prob(zyx.tensor(0.1)).item(), expected.item(), rtol=1e-5)
    zyx.manual_seed(3)
    drawn = mixture.sample((4000,))
    assert abs(drawn.mean().item() - mixture.mean.item()) < 5 * (mixture.variance.item() / 4000) ** 0.5
    assert D.LogisticNormal(loc, scale).sample((5,)).shape == (5, 4)
    straight = D.OneHotCategoricalStraightThrough(logits=zyx.zeros(3, requires_grad=True)).rsample()
    assert straight.requires_grad and sorted(straight.detach().numpy().round(6)) == [0, 0, 1]


@pytest.mark.parametrize("make", [
    lambda: D.ExpTransform(), lambda: D.SoftplusTransform(), lambda: D.TanhTransform(), lambda: D.SigmoidTransform(),
    lambda: D.AffineTransform(0.5, zyx.tensor(-2.0, dtype="float64")), lambda: D.ComposeTransform([D.AffineTransform(0.5, 2.0), D.SigmoidTransform()]),
    lambda: D.StickBreakingTransform(), lambda: D.IndependentTransform(D.ExpTransform(), 1),
    lambda: D.CumulativeDistributionTransform(D.Normal(zyx.tensor(0.0, dtype="float64"), 2.0)),
])  # fmt: skip
def test_transforms_by_derivatives(make):
    transform, x = make(), zyx.tensor(np.array(R))
    y = transform(x)
    assert transform.forward_shape(x.shape) == y.shape and transform.inverse_shape(y.shape) == x.shape
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-7)
    jacobian = func.jacrev(lambda x: transform(x)[..., :3])(x).numpy()
    expected = np.log(np.abs(np.linalg.det(jacobian)))
    found = transform.log_abs_det_jacobian(x, y)
    np.testing.assert_allclose(found.sum().item(), expected, rtol=1e-7)
    np.testing.assert_allclose(transform.inv.log_abs_det_jacobian(y, x).sum().item(), -expected, rtol=1e-7)
    assert transform.codomain.check(y).all()


def test_registered_divergences():
    class Odd(D.Normal):
        pass

    @D.register_kl(Odd, Odd)
    def formula(p, q):
        return zyx.tensor(42.0)

    odd, normal = Odd(0.0, 1.0), D.Normal(0.0, 1.0)
    assert D.kl_divergence(odd, odd).item() == 42 and D.kl_divergence(odd, normal).item() == 0
    pairs = D.Independent(D.Normal(zyx.zeros(3), 1.0), 1), D.Independent(D.Normal(zyx.ones(3), 1.0), 1)
    assert abs(D.kl_divergence(*pairs).item() - 1.5) < 1e-6
    with pytest.raises(NotImplementedError, match="Poisson and Normal"):
        D.kl_divergence(D.Poisson(1.0), normal)
    with pytest.raises(TypeError, match="subclass of Distribution"):
        D.register_kl(int, D.Normal)


def test_sets():
    C = D.constraints
    x = zyx.tensor([-1.0, 0.0, 0.5, 1.0, 2.0])
    for constraint, expected in [(C.positive, "00111"), (C.nonnegative, "01111"), (C.unit_interval, "01110"), (C.boolean, "01010"),
                                 (C.nonnegative_integer, "01011"), (C.positive_integer, "00011"), (C.interval(0.5, 1), "00110"),
                                 (C.half_open_interval(0.5, 1), "00100"), (C.less_than(0.5), "11000"), (C.integer_interval(0, 1), "01010")]:  # fmt: skip
        assert "".join("01"[int(v)] for v in constraint.check(x).numpy()) == expected, constraint
    assert C.simplex.check(zyx.tensor([[0.5, 0.5], [0.5, 0.6]])).tolist() == [True, False]
    assert C.positive_definite.check(zyx.tensor([[[2.0, 1], [1, 2]], [[1, 2], [2, 1]]])).tolist() == [True, False]
    assert C.is_dependent(C.dependent) and not C.is_dependent(C.real)
    for constraint in (C.positive, C.interval(1.0, 3.0), C.simplex, C.less_than(2.0), C.greater_than(1.0), C.real_vector):
        assert constraint.check(D.transform_to(constraint)(zyx.tensor(R))).all()
        assert constraint.check(D.biject_to(constraint)(zyx.tensor(R))).all()


@pytest.mark.parametrize("make, text", [
    (lambda: D.Normal(0.0, -1.0), "Normal: scale .*found -1"), (lambda: D.Bernoulli(1.5), "Bernoulli: probs"),
    (lambda: D.Categorical(zyx.tensor([-1.0, 3.0])), "Categorical: probs"), (lambda: D.Uniform(2.0, 1.0), "Uniform: low must be below high"),
    (lambda: D.Normal(zyx.zeros(3), zyx.ones(2)), "broadcast"), (lambda: D.Bernoulli(), "either `probs` or `logits`"),
    (lambda: D.Bernoulli(0.5, 0.5), "either `probs` or `logits`"), (lambda: D.Normal(0.0, 1.0).log_prob(zyx.tensor([float("nan")])), "values must be in Real"),
    (lambda: D.Exponential(1.0).log_prob(zyx.tensor(-1.0)), "Exponential: values"), (lambda: D.Poisson(1.0).log_prob(zyx.tensor(0.5)), "Poisson: values"),
    (lambda: D.Categorical(zyx.ones(3)).log_prob(zyx.tensor(3)), "Categorical: values"), (lambda: D.Dirichlet(zyx.tensor(1.0)), "needs 1 axes"),
    (lambda: D.MultivariateNormal(zyx.zeros(2), zyx.tensor([[1.0, 2], [2, 1]])), "covariance_matrix"),
    (lambda: D.MultivariateNormal(zyx.zeros(2)), "one of covariance_matrix"), (lambda: D.Normal("a", 1.0), "number or a tensor"),
    (lambda: D.Normal(zyx.zeros(3), 1.0).log_prob(zyx.zeros(2)), "does not fit"), (lambda: D.Normal(0.0, 1.0).log_prob(1.0), "a value is a tensor"),
    (lambda: D.Independent(D.Normal(0.0, 1.0), 1), "Independent: 1 axes"),
    (lambda: D.MixtureSameFamily(D.Categorical(zyx.ones(2)), D.Normal(zyx.zeros(3), 1.0)), "do not fit"),
])  # fmt: skip
def test_mistakes(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_unchecked():
    assert np.isnan(D.Normal(0.0, -1.0, validate_args=False).log_prob(zyx.tensor(0.0)).item())
    with pytest.raises(NotImplementedError, match="Beta has no cdf"):
        D.Beta(1.0, 1.0).cdf(zyx.tensor(0.5))
    assert list(inspect.signature(D.StudentT).parameters) == ["df", "loc", "scale", "validate_args"]


def descend(name, steps, check):
    """The problems of `scripts/parity_optim.py`."""
    i = np.arange(12)
    waves = zyx.tensor(np.sin(1.3 * i[:, None] + 0.7 * np.arange(3)))
    target = zyx.tensor(np.cos(0.9 * i))
    valley = name.startswith("valley")
    starts = [[-1.2, 1.0]] if valley else [[0.1, -0.2, 0.3], 0.5]
    params = [zyx.nn.Parameter(zyx.tensor(x, dtype="float64")) for x in starts]

    def loss():
        if valley:
            (x,) = params
            return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        return (((waves @ params[0] + params[1]).tanh() - target) ** 2).mean() + 0.01 * (params[0] ** 2).sum()

    options = {"valley": dict(lr=0.1, max_iter=4), "valley_wolfe": dict(line_search_fn="strong_wolfe", max_iter=3),
               "valley_short": dict(line_search_fn="strong_wolfe", max_iter=4, history_size=2), "line": dict(lr=0.5, max_iter=5),
               "line_wolfe": dict(line_search_fn="strong_wolfe", max_iter=5, max_eval=5)}[name]  # fmt: skip
    make = lambda: zyx.optim.LBFGS(params, **options)  # noqa: E731
    optimizer = make()

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    for step in range(steps):
        check(step, [optimizer.step(closure).item(), *(float(x) for p in params for x in p.detach().numpy().ravel())])
        state = pickle.loads(pickle.dumps(copy.deepcopy(optimizer.state_dict())))
        optimizer = make()
        optimizer.load_state_dict(state)


@pytest.mark.parametrize("name", ["valley", "valley_wolfe", "valley_short", "line", "line_wolfe"])
def test_lbfgs_has_pytorchs_iterates(name):
    rows = [row.split() for row in (ROOT / "optim/tests/data/torch_lbfgs.txt").read_text().splitlines()]
    rows = [[float(x) for x in row[2:]] for row in rows if row[0] == name]
    assert len(rows) >= 5
    descend(name, len(rows), lambda step, found: np.testing.assert_allclose(found, rows[step], rtol=1e-8, atol=1e-8))


def test_lbfgs_refuses():
    x = zyx.nn.Parameter(zyx.tensor([3.0]))
    optimizer = zyx.optim.LBFGS([x])
    with pytest.raises(TypeError, match="closure"):
        optimizer.step()

    def broken():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        optimizer.step(broken)
    assert x.item() == 3
    top = zyx.nn.Parameter(zyx.tensor([3.0]))
    up = zyx.optim.LBFGS([top], maximize=True)

    def hill():
        up.zero_grad()
        (-((top - 1) ** 2)).sum().backward()
        return -((top - 1) ** 2).sum()

    assert up.step(hill).item() == -4 and abs(top.item() - 1) < 1e-5
    with pytest.raises(RuntimeError, match="line_search_fn"):
        zyx.optim.LBFGS([x], line_search_fn="armijo")
    with pytest.raises(ValueError, match="one group"):
        zyx.optim.LBFGS([{"params": [x]}, {"params": [zyx.nn.Parameter(zyx.zeros(1))]}])
    assert optimizer.param_groups[0]["max_eval"] == 25
