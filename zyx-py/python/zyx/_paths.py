"""Modules under the names of PyTorch's files: `zyx.optim.adam` has the names of `zyx.optim`.

Modules of one file set `__path__`, so that others can be below them. The finder is the last of `sys.meta_path`, so imports of modules that exist take no longer.
"""

import sys

ModuleType = type(sys)

# Modules, and PyTorch's files whose names are there. Files that are named as a function in them are left out: an import would
# put the module in its place.
_FILES = {
    "optim": "adadelta adagrad adam adamax adamw asgd lbfgs nadam optimizer radam rmsprop rprop sgd sparse_adam adafactor",
    "distributions": """bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli dirichlet exp_family exponential fishersnedecor gamma
        geometric gumbel half_cauchy half_normal independent inverse_gamma kumaraswamy laplace lkj_cholesky log_normal logistic_normal
        lowrank_multivariate_normal mixture_same_family multinomial multivariate_normal negative_binomial normal one_hot_categorical
        pareto poisson relaxed_bernoulli relaxed_categorical studentT transformed_distribution uniform von_mises weibull wishart
        constraint_registry""",
    "amp": "autocast_mode grad_scaler",
    "cuda.amp": "autocast_mode grad_scaler common",
    "cuda": "memory random",
    "autograd": "variable grad_mode anomaly_mode graph",
    "nn.parallel": "distributed",
    "nn.utils": "clip_grad convert_parameters fusion",
}
# Modules whose name is an object of another one.
_OBJECTS = {"backends": "cpu cuda cudnn mkl mkldnn mps openmp opt_einsum"}
_KNOWN = {f"zyx.{parent}.{name}": parent for table in (_FILES, _OBJECTS) for parent, names in table.items() for name in names.split()}


class _Names(ModuleType):
    """A module with the names of another object."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["_of"], name)

    def __setattr__(self, name, value):
        # Switches of `backends` are set through the module, too.
        if name.startswith("_"):
            return ModuleType.__setattr__(self, name, value)
        setattr(self.__dict__["_of"], name, value)

    def __dir__(self):
        return dir(self.__dict__["_of"])


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name not in _KNOWN:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self)

    def create_module(self, spec):
        parent, own = _KNOWN[spec.name], spec.name.rpartition(".")[2]
        from importlib import import_module

        of = import_module("zyx." + parent)
        made = _Names(spec.name, f"The names of PyTorch's file `{spec.name[4:]}`.")
        vars(made)["_of"] = getattr(of, own) if parent in _OBJECTS else of
        return made

    def exec_module(self, module):
        pass


def install():
    """Lets `import` find these modules."""
    sys.meta_path.append(_Finder())

