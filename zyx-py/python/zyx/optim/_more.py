"""Optimizers beside the table: `ASGD`, `Adafactor` and `SparseAdam` are written in Python, `LBFGS` calls Rust."""

from .._core import Parameter, Tensor, tensor
from .._grad_mode import enable_grad, no_grad
from . import Optimizer, _check, _check_options


class _Written(Optimizer):
    """An optimizer with `_change(p, grad, state, group)`, which gives the new value of a parameter and changes its state. A step
    is one plan.
    """

    def _options(self, params, options):
        for key in ("foreach", "capturable"):
            options.setdefault(key, None)
        _check_options(options)
        Optimizer.__init__(self, params, options)

    def step(self, loss_or_gradients=None):
        """One step, as `Optimizer.step`."""
        loss, result = loss_or_gradients, None
        if loss is None or callable(loss) and not isinstance(loss, Tensor):
            with enable_grad():
                result = None if loss is None else loss()
            gradients = [p.grad for p in self.parameters()]
        else:
            _check(loss)
            gradients = loss._grad(self.parameters()) if isinstance(loss, Tensor) else list(loss)
        self.apply(gradients, [loss] if isinstance(loss, Tensor) else None)
        return result

    def gradients(self, loss):
        """The gradients of a loss for the parameters; `None` where it does not depend on one."""
        return loss._grad(self.parameters())

    def apply(self, gradients, along=None):
        """Applies gradients; `along` (a loss) is computed in the same plan."""
        if len(gradients) != len(self.parameters()):
            raise ValueError(f"{len(gradients)} gradients for {len(self.parameters())} parameters")
        groups = [(p, group) for group in self._groups for p in group["params"]]
        every, news = list(along or ()), []
        with no_grad():
            for (p, group), grad in zip(groups, gradients):
                if grad is None:
                    continue
                grad = grad.detach()
                news.append((p, self._change(p.detach(), -grad if group["maximize"] else grad, self.state[p], group)))
                every += [x for x in self.state[p].values() if isinstance(x, Tensor)]
            Tensor.realize_all([*every, *(value for _, value in news)])
            for p, value in news:
                p.set(value) if isinstance(p, Parameter) else p._assign(value)


class ASGD(_Written):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992); the averages are `ax` of the state."""

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False, differentiable=False,
                 capturable=False):  # fmt: skip
        self._options(params, {key: value for key, value in locals().items() if key not in ("self", "params", "__class__")})

    def _change(self, p, grad, state, group):
        if not state:
            state.update(step=0.0, eta=float(group["lr"]), mu=1.0, ax=p.zeros_like())
        state["step"] += 1
        number = lambda x: tensor(x, dtype=p.dtype, device=p.device)  # noqa: E731
        if group["weight_decay"]:
            grad = grad + p * group["weight_decay"]
        p = p * number(1 - group["lambd"] * state["eta"]) - grad * number(state["eta"])
        state["ax"] = p if state["mu"] == 1 else state["ax"] + (p - state["ax"]) * number(state["mu"])
        state["eta"] = group["lr"] / (1 + group["lambd"] * group["lr"] * state["step"]) ** group["alpha"]
        state["mu"] = 1 / max(1, state["step"] - group["t0"])
        return p


class Adafactor(_Written):
    """Second moments of matrices by their rows and columns alone (Shazeer and Stern 2018)."""

    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *, foreach=None, maximize=False):
        if beta2_decay > 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and eps[0] < 0 or not eps[1] >= 0:
            raise ValueError(f"epsilons should be >= 0 but are: {eps}")
        if d < 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        options = {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize}
        _check_options(options)
        Optimizer.__init__(self, params, options)

    def _change(self, p, grad, state, group):
        least, floor = group["eps"]
        least = {"float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}.get(p.dtype.name, 2.0**-23) if least is None else least
        if not state:
            state["step"] = 0.0
            if p.ndim > 1:
                state["row_var"], state["col_var"] = p.new_zeros((*p.shape[:-1], 1)), p.new_zeros((*p.shape[:-2], 1, p.shape[-1]))
            else:
                state["variance"] = p.zeros_like()
        state["step"] += 1
        number = lambda x: tensor(x, dtype=p.dtype, device=p.device)  # noqa: E731
        share, rate = number(state["step"] ** group["beta2_decay"]), min(group["lr"], state["step"] ** -0.5)
        alpha = (p.norm() / p.numel() ** 0.5).maximum(floor) * number(rate)
        if group["weight_decay"]:
            p = p * (1 - group["lr"] * group["weight_decay"])
        square = grad.square()
        if p.ndim > 1:
            row = state["row_var"] = state["row_var"].lerp(square.mean(-1, keepdim=True), share)
            column = state["col_var"] = state["col_var"].lerp(square.mean(-2, keepdim=True), share)
            estimate = row @ column / row.mean(-2, keepdim=True).maximum(least)
        else:
            estimate = state["variance"] = state["variance"].lerp(square, share)
        update = estimate.maximum(least * least).rsqrt() * grad
        length = (update.norm() / (update.numel() ** 0.5 * group["d"])).maximum(1.0)
        return p - update * (alpha / length)


class LBFGS(Optimizer):
    """L-BFGS. A step calls a function several times, which computes the loss and its gradients (`zero_grad`, `backward`);
    `line_search_fn` is `None` or `"strong_wolfe"`.
    """

    def __init__(self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100,
                 line_search_fn=None, *, maximize=False):  # fmt: skip
        if isinstance(lr, Tensor):
            lr = lr.item()
        if lr < 0:
            raise ValueError(f"LBFGS: lr must not be negative: {lr}")
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError(f"LBFGS: line_search_fn is None or 'strong_wolfe', not {line_search_fn!r}")
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        options = {"lr": lr, "max_iter": max_iter, "max_eval": max_eval, "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
                   "history_size": history_size, "line_search_fn": line_search_fn, "maximize": maximize}  # fmt: skip
        Optimizer.__init__(self, params, options)
        if len(self._groups) != 1:
            raise ValueError("LBFGS has one group of parameters")
        self._made = None

    def _native_lbfgs(self):
        """Rust's optimizer, with the state that was loaded."""
        group = self._groups[0]
        key = tuple(group[name] for name in ("max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size", "line_search_fn"))
        if self._made is None or self._made[0] != key:
            from .._core import NativeLbfgs

            made = NativeLbfgs(group["params"], key[0], key[1], key[2:4], key[4], key[5] is not None)
            self._made = key, made
            state = {name: x for name, x in self.state[group["params"][0]].items() if isinstance(x, Tensor)}
            if state:
                made.load_state(state)
        return self._made[1]

    def step(self, closure):
        """Follows directions until a tolerance or a limit is reached. Gives the loss of the first call."""
        first, params = [], self.parameters()

        def evaluate():
            with enable_grad():
                loss = closure()
            first[:] = first or [loss]
            loss = loss if isinstance(loss, Tensor) else tensor(float(loss), dtype=params[0].dtype, device=params[0].device)
            gradients = [p.grad for p in params]
            if self._groups[0].get("maximize"):
                return -loss.detach(), [None if g is None else -g for g in gradients]
            return loss.detach(), gradients

        native = self._native_lbfgs()
        native.step(float(self._groups[0]["lr"]), evaluate)
        state = native.state()
        self.state[params[0]].update(state, func_evals=int(state["evaluations"].item()), n_iter=int(state["iterations"].item()))
        return first[0]

    def load_state_dict(self, state_dict):
        """Continues from what `state_dict` gave for the same parameters."""
        Optimizer.load_state_dict(self, state_dict)
        self._made = None

    def __reduce__(self):
        self._made = None
        return Optimizer.__reduce__(self)

    def add_param_group(self, group):
        if vars(self).get("_groups"):
            raise ValueError("LBFGS has one group of parameters")
        Optimizer.add_param_group(self, group)


Lbfgs = LBFGS


class SparseAdam(Optimizer):
    """PyTorch's Adam for sparse gradients. Gradients are dense here, which it refuses in PyTorch, too."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        options = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        _check_options(options)
        Optimizer.__init__(self, params, options)

    def step(self, closure=None):
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")


def _swapped(optimizer, swapin_parameters, swapin_optim_state):
    if "_all" in vars(optimizer):
        raise NotImplementedError("swap_in_optimizer_params_and_state: an optimizer with several groups")
    params, kept = list(swapin_parameters.values()), dict(vars(optimizer))
    if len(params) != len(optimizer.parameters()):
        raise ValueError(f"{len(params)} parameters for an optimizer of {len(optimizer.parameters())}")
    options = {k: v for k, v in optimizer.param_groups[0].items() if k not in ("params", "param_names", "initial_lr")}
    made = type(optimizer)(params, **options)
    made.load_state_dict(swapin_optim_state)
    vars(optimizer).update(vars(made))
    try:
        yield
    finally:
        swapin_optim_state.update(optimizer.state_dict())
        vars(optimizer).clear()
        vars(optimizer).update(kept)


def swap_in_optimizer_params_and_state(optimizer, swapin_parameters, swapin_optim_state):
    """A block in which an optimizer has other parameters and another state, which it changes."""
    import contextlib

    return contextlib.contextmanager(_swapped)(optimizer, swapin_parameters, swapin_optim_state)
