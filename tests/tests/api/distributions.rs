//! One row per public function of distributions. Families are chosen at random.

use crate::Call;
use crate::calls;
use crate::source::Source;
use crate::told;
use zyx_nn::distributions::{
    Bernoulli, Categorical, Constraint, Distribution, Independent, Law, MixtureSameFamily, Normal,
    Transform, TransformedDistribution, igamma, igammac, kl_divergence, logistic_normal, logits_of,
};
use zyx_optim::{Lbfgs, LbfgsOptions};
use zyx_tests::zyx_core::{DType, Param, Result, Rng, Tensor};

pub(crate) fn all() -> Vec<Call> {
    [families(), lbfgs()].concat()
}

/// A tensor that is a parameter of some family now and then: numbers near 1, in `f64`, which both
/// devices compute to more digits than are compared.
fn parameter(s: &mut Source) -> Tensor {
    let x = if s.one_in(4) { s.x() } else { s.floats() };
    x.cast(DType::F64).abs()
}

/// A law of a random family; one in four has all parameters in one shape.
fn law(s: &mut Source) -> Result<Law> {
    let all: Vec<_> = Law::families().collect();
    let (name, parameters) = s.pick(&all);
    let x = parameter(s);
    let one = s.one_in(2);
    let given: Vec<Tensor> = (0..parameters.len())
        .map(|i| if one { x.clone() + i as f64 } else { parameter(s) })
        .collect();
    let is_checked = s.one_in(2);
    Law::by_name(name, &given.iter().collect::<Vec<_>>(), is_checked)
}

fn normal(s: &mut Source) -> Result<Normal> {
    let x = parameter(s);
    Normal::unchecked(&x, &x.square())
}

fn transform(s: &mut Source) -> Transform {
    match s.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8]) {
        0 => Transform::Exp,
        1 => Transform::Affine { loc: parameter(s), scale: parameter(s) },
        2 => Transform::Sigmoid,
        3 => Transform::Tanh,
        4 => Transform::Power(parameter(s)),
        5 => Transform::Abs,
        6 => Transform::Softmax,
        7 => Transform::StickBreaking,
        _ => Transform::Compose(vec![
            Transform::Exp,
            Transform::Affine { loc: parameter(s), scale: parameter(s) },
        ]),
    }
}

fn families() -> Vec<Call> {
    calls! {
        "distributions::Law::by_name" |s| {
            let law = law(s)?;
            let x = parameter(s);
            let mut made = law.parameters().to_vec();
            made.extend([law.entropy(), law.mean(), law.variance()].into_iter().flatten());
            made.extend([law.log_prob(&x), law.cdf(&x), law.icdf(&x)].into_iter().flatten());
            // Drawn by chance: computed, and not compared.
            let drawn = law.sample(&[s.size()], &mut Rng::seed(1))?;
            made.push(drawn.zeros_like());
            made
        };
        "distributions::Law::families" |s| told(Law::families().nth(s.size()));
        "distributions::Law::parameters" |s| law(s)?.parameters().to_vec();
        "distributions::Constraint::event_rank" |s| told(law(s)?.support().event_rank());
        "distributions::Constraint::check" |s| {
            let bound = parameter(s);
            let sets = [
                Constraint::Real, Constraint::Positive, Constraint::NonNegative, Constraint::Unit,
                Constraint::Boolean, Constraint::Count, Constraint::RealVector,
                Constraint::PositiveVector, Constraint::Simplex, Constraint::OneHot,
                Constraint::LowerCholesky, Constraint::CountTo(bound.clone()),
                Constraint::Above(bound.clone()), Constraint::AtLeast(bound.clone()),
                Constraint::Between(bound.clone(), bound.clone()), Constraint::Counts(bound),
            ];
            s.pick(&sets).check(&s.x())?
        };
        "distributions::kl_divergence" |s| {
            let (p, q) = (law(s)?, law(s)?);
            if s.one_in(2) { kl_divergence(&p, &q)? } else { kl_divergence(&p, &p)? }
        };
        "distributions::igamma" |s| igamma(&parameter(s), &parameter(s))?;
        "distributions::igammac" |s| igammac(&parameter(s), &parameter(s))?;
        "distributions::logits_of" |s| {
            let p = parameter(s);
            Bernoulli::unchecked(&logits_of(&p))?.mean()?
        };
        "distributions::Independent::new" |s| {
            let law = Independent::new(normal(s)?, s.size())?;
            vec![law.entropy()?, law.mean()?]
        };
        "distributions::TransformedDistribution::new" |s| {
            let law = TransformedDistribution::new(normal(s)?, vec![transform(s)])?;
            let x = parameter(s);
            let made = [law.log_prob(&x), law.cdf(&x), law.icdf(&x)];
            made.into_iter().flatten().collect::<Vec<_>>()
        };
        "distributions::MixtureSameFamily::new" |s| {
            let components = normal(s)?;
            let weights = Categorical::unchecked(components.loc())?;
            let law = MixtureSameFamily::new(weights, components)?;
            vec![law.mean()?, law.variance()?, law.log_prob(&parameter(s))?]
        };
        "distributions::logistic_normal" |s| {
            let x = parameter(s);
            let law = logistic_normal(&x, &(&x + 1.0))?;
            law.sample(&[], &mut Rng::seed(1))?.zeros_like()
        };
        "distributions::Transform::event_rank" |s| told(transform(s).event_rank());
        "distributions::Transform::forward" |s| transform(s).forward(&parameter(s))?;
        "distributions::Transform::inverse" |s| transform(s).inverse(&parameter(s))?;
        "distributions::Transform::log_abs_det_jacobian" |s| {
            let (transform, x) = (transform(s), parameter(s));
            let y = transform.forward(&x)?;
            transform.log_abs_det_jacobian(&x, &y)?
        };
    }
}

/// An optimizer of one parameter, whose loss is a sum of squares.
fn made(s: &mut Source) -> Result<(Param, Lbfgs)> {
    let x = Param::new(s.floats());
    let options = LbfgsOptions {
        learning_rate: s.pick(&[1.0, 0.0, -1.0, f64::NAN]),
        max_iterations: s.pick(&[0, 1, 3]),
        history: s.pick(&[0, 1, 100]),
        strong_wolfe: s.one_in(2),
        ..LbfgsOptions::default()
    };
    Ok((x.clone(), Lbfgs::new(vec![x], options)?))
}

fn lbfgs() -> Vec<Call> {
    calls! {
        "Lbfgs::new" |s| told(made(s)?.1.options());
        "Lbfgs::parameters" |s| told(made(s)?.1.parameters().len());
        "Lbfgs::options" |s| told(made(s)?.1.options());
        "Lbfgs::set_learning_rate" |s| {
            let (_, mut lbfgs) = made(s)?;
            lbfgs.set_learning_rate(s.number());
            told(lbfgs.options())
        };
        "Lbfgs::step" |s| {
            let (x, mut lbfgs) = made(s)?;
            lbfgs.step(|| x.tensor().square().sum(..))?;
            x.tensor().zeros_like()
        };
        "Lbfgs::step_with" |s| {
            let (x, mut lbfgs) = made(s)?;
            let gradient = s.floats();
            lbfgs.step_with(&mut || {
                Ok((x.tensor().square().sum(..)?, vec![Some(gradient.clone())]))
            })?;
            x.tensor().zeros_like()
        };
        "Lbfgs::state" |s| told(made(s)?.1.state().len());
        "Lbfgs::load_state" |s| {
            let (_, mut lbfgs) = made(s)?;
            let mut state = lbfgs.state();
            if s.one_in(2) {
                state.insert("0.step".to_owned(), s.x());
            }
            lbfgs.load_state(&state)?;
            told(lbfgs.state().len())
        };
    }
}
