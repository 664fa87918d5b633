"""Modules under the names of PyTorch's files: `zyx.optim.adam` has the names of `zyx.optim`.

Modules of one file set `__path__`, so that others can be below them. The finder is the last of `sys.meta_path`, so imports of modules that exist take no longer.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types

# Modules, and PyTorch's files whose names are there.
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
    "nn.parallel": "data_parallel distributed",
    "nn.utils": "clip_grad convert_parameters fusion spectral_norm weight_norm",
}
# Modules whose name is an object of another one.
_OBJECTS = {"backends": "cpu cuda cudnn mkl mkldnn mps openmp opt_einsum"}
_KNOWN = {f"zyx.{parent}.{name}": parent for table in (_FILES, _OBJECTS) for parent, names in table.items() for name in names.split()}


class _Names(types.ModuleType):
    """A module with the names of another object."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["_of"], name)

    def __setattr__(self, name, value):
        # Switches of `backends` are set through the module, too.
        if name.startswith("_"):
            return types.ModuleType.__setattr__(self, name, value)
        setattr(self.__dict__["_of"], name, value)

    def __call__(self, *arguments, **options):
        # The import puts the module in the place of a function of its name, as `nn.utils.spectral_norm`.
        return self.__dict__["_kept"](*arguments, **options)

    def __dir__(self):
        return dir(self.__dict__["_of"])


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name in _KNOWN else None

    def create_module(self, spec):
        parent, own = _KNOWN[spec.name], spec.name.rpartition(".")[2]
        of = importlib.import_module("zyx." + parent)
        kept = vars(of).get(own)
        made = _Names(spec.name, f"The names of PyTorch's file `{spec.name[4:]}`.")
        vars(made).update(_of=kept if parent in _OBJECTS else of, _kept=kept)
        return made

    def exec_module(self, module):
        pass


def install():
    """Lets `import` find these modules."""
    sys.meta_path.append(_Finder())

