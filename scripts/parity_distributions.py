#!/usr/bin/env python3
"""Writes nn/tests/data/torch_distributions.txt: values of distributions by PyTorch.

usage: parity_distributions.py            (needs torch; made with 2.15)

Each line is a quantity, the value it is taken at or `-`, the expected numbers, and one distribution
(two for divergences) with its parameters, separated by bars. Tensors are a shape and numbers.
"""
import math
import pathlib

import torch
import torch.distributions as D

torch.set_default_dtype(torch.float64)
OUT = pathlib.Path(__file__).parent.parent / "nn/tests/data/torch_distributions.txt"


def T(*x):
    return torch.tensor(x[0] if len(x) == 1 and isinstance(x[0], list) else list(x))


out = []


def fmt(t):
    numbers = " ".join(repr(float(v)) for v in t.detach().double().flatten())
    return f"[{' '.join(map(str, t.shape))}] {numbers}"


pos, pos2 = T(0.7, 1.0, 3.5), T(2.5, 0.4, 6.0)
real, u = T(-1.5, 0.2, 2.0), T(0.05, 0.5, 0.93)
mat=T([[1.2,0,0],[0.4,0.7,0],[-0.3,0.5,2.0]])
logits2=T([[0.1,-1.0,2.0],[0.0,0.3,-0.7]])
cases=[
 ("Normal",[real,pos],D.Normal(real,pos),T(-2.,0.3,9.),True),
 ("LogNormal",[real,pos],D.LogNormal(real,pos),T(0.1,0.9,7.),True),
 ("Uniform",[real,real+pos],D.Uniform(real,real+pos),real+T(0.1,0.5,3.),True),
 ("Bernoulli",[real],D.Bernoulli(logits=real),T(0.,1.,1.),False),
 ("Binomial",[T(5.,8.,30.),real],D.Binomial(T(5.,8.,30.),logits=real),T(0.,8.,25.),False),
 ("NegativeBinomial",[T(1.5,3.,10.),real],D.NegativeBinomial(T(1.5,3.,10.),logits=real),T(0.,2.,70.),False),
 ("Geometric",[real],D.Geometric(logits=real),T(0.,2.,5.),False),
 ("Poisson",[pos],D.Poisson(pos),T(0.,2.,7.),False),
 ("Categorical",[logits2],D.Categorical(logits=logits2),T(0.,2.),False),
 ("OneHotCategorical",[logits2],D.OneHotCategorical(logits=logits2),T([[0.,1.,0.],[1.,0.,0.]]),False),
 ("Multinomial",[torch.tensor(6.0),logits2],D.Multinomial(6,logits=logits2),T([[1.,0.,5.],[2.,2.,2.]]),False),
 ("Beta",[pos,pos2],D.Beta(pos,pos2),u,False),
 ("Gamma",[pos,pos2],D.Gamma(pos,pos2),T(0.1,2.,0.7),True),
 ("InverseGamma",[pos2+1.6,pos],D.InverseGamma(pos2+1.6,pos),T(0.1,2.,0.7),False),
 ("Chi2",[pos2],D.Chi2(pos2),T(0.1,2.,7.),True),
 ("Dirichlet",[T([[0.5,1.,2.5],[3.,0.2,1.]])],D.Dirichlet(T([[0.5,1.,2.5],[3.,0.2,1.]])),T([[0.2,0.3,0.5],[0.1,0.6,0.3]]),False),
 ("StudentT",[T(0.8,1.7,5.),real,pos],D.StudentT(T(0.8,1.7,5.),real,pos),T(-1.,0.4,9.),False),
 ("Cauchy",[real,pos],D.Cauchy(real,pos),T(-1.,0.4,9.),True),
 ("HalfCauchy",[pos],D.HalfCauchy(pos),T(0.1,0.4,9.),True),
 ("HalfNormal",[pos],D.HalfNormal(pos),T(0.1,0.4,9.),True),
 ("Exponential",[pos],D.Exponential(pos),T(0.1,0.4,9.),True),
 ("Laplace",[real,pos],D.Laplace(real,pos),T(-2.,0.4,9.),True),
 ("Gumbel",[real,pos],D.Gumbel(real,pos),T(-2.,0.4,9.),True),
 ("Pareto",[pos,T(0.8,1.5,4.)],D.Pareto(pos,T(0.8,1.5,4.)),T(0.9,3.,5.),True),
 ("Weibull",[pos,pos2],D.Weibull(pos,pos2),T(0.1,0.4,3.),True),
 ("Kumaraswamy",[pos,pos2],D.Kumaraswamy(pos,pos2),u,True),
 ("VonMises",[real,T(0.3,4.,40.)],D.VonMises(real,T(0.3,4.,40.)),T(-1.,0.4,2.3),False),
 ("MultivariateNormal",[T([[0.,1.,2.],[1.,1.,-1.]]),mat],D.MultivariateNormal(T([[0.,1.,2.],[1.,1.,-1.]]),scale_tril=mat),T([[0.3,0.2,0.1],[2.,-1.,0.]]),False),
 ("FisherSnedecor",[pos2,T(1.5,3.,9.)],D.FisherSnedecor(pos2,T(1.5,3.,9.)),T(0.1,1.,3.),False),
 ("RelaxedBernoulli",[torch.tensor(0.6),real],D.RelaxedBernoulli(torch.tensor(0.6),logits=real),u,False),
 ("RelaxedOneHotCategorical",[torch.tensor(0.6),logits2],D.RelaxedOneHotCategorical(torch.tensor(0.6),logits=logits2),T([[0.2,0.3,0.5],[0.1,0.6,0.3]]),False),
 ("ContinuousBernoulli",[T(-3.,0.9,12.)],D.ContinuousBernoulli(logits=T(-3.,0.9,12.)),u,True),
]
for name, params, d, x, has_cdf in cases:

    def row(kind, arg, value):
        fields = [kind, "-" if arg is None else fmt(arg), fmt(value), name, *map(fmt, params)]
        out.append(" | ".join(fields))

    row("log_prob", x, d.log_prob(x))
    for kind in ("entropy", "mean", "variance"):
        if name == "Categorical" and kind != "entropy" or name in ("Binomial", "Multinomial") and kind == "entropy":
            continue
        try:
            value = getattr(d, kind)
            row(kind, None, value() if kind == "entropy" else value)
        except NotImplementedError:
            pass
    if has_cdf:
        row("cdf", x, d.cdf(x))
        try:
            row("icdf", u, d.icdf(u))
        except NotImplementedError:
            pass

real2=T(0.3,-1.,1.1); posb=T(1.1,2.,0.6)
kl=[
 ("Normal",[real,pos],D.Normal(real,pos),"Normal",[real2,posb],D.Normal(real2,posb)),
 ("LogNormal",[real,pos],D.LogNormal(real,pos),"LogNormal",[real2,posb],D.LogNormal(real2,posb)),
 ("HalfNormal",[pos],D.HalfNormal(pos),"HalfNormal",[posb],D.HalfNormal(posb)),
 ("Bernoulli",[real],D.Bernoulli(logits=real),"Bernoulli",[real2],D.Bernoulli(logits=real2)),
 ("Binomial",[T(5.,8.,30.),real],D.Binomial(T(5.,8.,30.),logits=real),"Binomial",[T(5.,8.,30.),real2],D.Binomial(T(5.,8.,30.),logits=real2)),
 ("Geometric",[real],D.Geometric(logits=real),"Geometric",[real2],D.Geometric(logits=real2)),
 ("Categorical",[logits2],D.Categorical(logits=logits2),"Categorical",[logits2.flip(0)],D.Categorical(logits=logits2.flip(0))),
 ("OneHotCategorical",[logits2],D.OneHotCategorical(logits=logits2),"OneHotCategorical",[logits2.flip(0)],D.OneHotCategorical(logits=logits2.flip(0))),
 ("Poisson",[pos],D.Poisson(pos),"Poisson",[posb],D.Poisson(posb)),
 ("Gamma",[pos,pos2],D.Gamma(pos,pos2),"Gamma",[posb,pos],D.Gamma(posb,pos)),
 ("Gamma",[pos,pos2],D.Gamma(pos,pos2),"Exponential",[posb],D.Exponential(posb)),
 ("Exponential",[pos],D.Exponential(pos),"Gamma",[posb,pos],D.Gamma(posb,pos)),
 ("Exponential",[pos],D.Exponential(pos),"Exponential",[posb],D.Exponential(posb)),
 ("Chi2",[pos],D.Chi2(pos),"Chi2",[posb],D.Chi2(posb)),
 ("Chi2",[pos],D.Chi2(pos),"Gamma",[posb,pos],D.Gamma(posb,pos)),
 ("Gamma",[posb,pos],D.Gamma(posb,pos),"Chi2",[pos],D.Chi2(pos)),
 ("Beta",[pos,pos2],D.Beta(pos,pos2),"Beta",[posb,pos],D.Beta(posb,pos)),
 ("Dirichlet",[T([[0.5,1.,2.5],[3.,0.2,1.]])],D.Dirichlet(T([[0.5,1.,2.5],[3.,0.2,1.]])),"Dirichlet",[T([1.,2.,0.4])],D.Dirichlet(T([1.,2.,0.4]))),
 ("Laplace",[real,pos],D.Laplace(real,pos),"Laplace",[real2,posb],D.Laplace(real2,posb)),
 ("Cauchy",[real,pos],D.Cauchy(real,pos),"Cauchy",[real2,posb],D.Cauchy(real2,posb)),
 ("Uniform",[real,real+pos],D.Uniform(real,real+pos),"Uniform",[T(-2.,0.5,1.),T(3.,2.,9.)],D.Uniform(T(-2.,0.5,1.),T(3.,2.,9.))),
 ("Gumbel",[real,pos],D.Gumbel(real,pos),"Gumbel",[real2,posb],D.Gumbel(real2,posb)),
 ("Pareto",[pos,pos2],D.Pareto(pos,pos2),"Pareto",[T(0.5,0.9,4.),pos],D.Pareto(T(0.5,0.9,4.),pos)),
 ("ContinuousBernoulli",[T(-3.,0.9,12.)],D.ContinuousBernoulli(logits=T(-3.,0.9,12.)),"ContinuousBernoulli",[real2],D.ContinuousBernoulli(logits=real2)),
 ("MultivariateNormal",[T([[0.,1.,2.],[1.,1.,-1.]]),mat],D.MultivariateNormal(T([[0.,1.,2.],[1.,1.,-1.]]),scale_tril=mat),"MultivariateNormal",[T(0.,0.,1.),mat.T.triu().T.abs()+torch.eye(3)],D.MultivariateNormal(T(0.,0.,1.),scale_tril=mat.T.triu().T.abs()+torch.eye(3))),
 ("Normal",[real,pos],D.Normal(real,pos),"Laplace",[real2,posb],D.Laplace(real2,posb)),
 ("Laplace",[real,pos],D.Laplace(real,pos),"Normal",[real2,posb],D.Normal(real2,posb)),
 ("Uniform",[real,real+pos],D.Uniform(real,real+pos),"Normal",[real2,posb],D.Normal(real2,posb)),
 ("Exponential",[pos],D.Exponential(pos),"Normal",[real2,posb],D.Normal(real2,posb)),
 ("Gumbel",[real,pos],D.Gumbel(real,pos),"Normal",[real2,posb],D.Normal(real2,posb)),
]
for a, pa, da, b, pb, db in kl:
    value = fmt(D.kl_divergence(da, db))
    out.append(" | ".join(["kl_divergence", "-", value, a, *map(fmt, pa), b, *map(fmt, pb)]))

a, x = T(0.1, 0.5, 1.0, 3.0, 30.0, 1000.0, 1.0, 2.0), T(0.03, 2.0, 1.0, 0.4, 45.0, 950.0, 50.0, 1e-3)
out.append(f"igamma | {fmt(x)} | {fmt(torch.special.gammainc(a,x))} | - | {fmt(a)}")
out.append(f"igammac | {fmt(x)} | {fmt(torch.special.gammaincc(a,x))} | - | {fmt(a)}")
OUT.write_text("\n".join(out) + "\n")
