//! Formulas: arithmetic on tensors of one shape and one float dtype, written as in a book.
//!
//! Methods that are made of many elementwise steps (special functions, activations) convert and
//! broadcast their operands once and then compute with [`Term`]s, whose operators cannot fail. A
//! number in a formula is a literal: it belongs to the formula and takes part in compilation, as
//! opposed to numbers a caller chose. The result fuses into one kernel, and its gradient follows
//! from those of its steps.

use super::Tensor;
use crate::dtype::DType;
use crate::ops::{BinaryOp, UnaryOp};
use crate::origin::composed;

/// A tensor in a formula. All terms of a formula have one shape; those that meet in an operator
/// have one dtype.
#[derive(Clone)]
pub(crate) struct Term(pub(crate) Tensor);

/// A condition on terms.
#[derive(Clone)]
pub(crate) struct Condition(pub(crate) Tensor);

impl Term {
    /// A formula on a tensor: computed in its float dtype, halves in `f32` and rounded once.
    #[track_caller]
    pub(crate) fn compute(x: &Tensor, formula: impl Fn(&Term) -> Term) -> Tensor {
        let x = x.floating();
        let _here = composed();
        formula(&Term(x.cast(x.dtype().accumulator()))).0.cast(x.dtype())
    }

    /// As [`Term::compute`], in an integer dtype itself (bools in `i64`): of formulas that only choose.
    #[track_caller]
    pub(crate) fn compute_kept(x: &Tensor, formula: impl Fn(&Term) -> Term) -> Tensor {
        let _here = composed();
        match x.dtype() {
            DType::Bool => formula(&Term(x.cast(DType::I64))).0,
            dtype if dtype.is_int() => formula(&Term(x.clone())).0,
            _ => Term::compute(x, formula),
        }
    }

    /// As [`Term::compute`], on two tensors of one shape and float dtype.
    #[track_caller]
    pub(crate) fn compute2(
        x: &Tensor,
        y: &Tensor,
        formula: impl Fn(&Term, &Term) -> Term,
    ) -> Tensor {
        let wide = |t: &Tensor| Term(t.cast(t.dtype().accumulator()));
        let _here = composed();
        formula(&wide(x), &wide(y)).0.cast(x.dtype())
    }

    /// This term with the cotangent of `x` by a rule of `x`, this term and its own cotangent, none of them rounded to a half.
    #[track_caller]
    pub(crate) fn ruled(
        &self,
        x: &Term,
        rule: impl Fn(&Term, &Term, &Term) -> Term + Send + Sync + 'static,
    ) -> Term {
        let term = |t: &Tensor| Term(t.clone());
        Term(self.0.with_rule(&x.0, move |inputs, y, dy| {
            Some(rule(&term(&inputs[0]), &term(y), &term(dy)).0)
        }))
    }

    /// As [`Term::ruled`], with the slopes by two terms as functions of both and this term.
    #[track_caller]
    pub(crate) fn sloped(
        &self,
        [x, y]: [&Term; 2],
        slopes: impl Fn(&Term, &Term, &Term) -> [Term; 2] + Send + Sync + 'static,
    ) -> Term {
        let ruled = self.0.with_gradient(&[&x.0, &y.0], move |inputs, z, dz| {
            let [x, y, z, dz] = [&inputs[0], &inputs[1], z, dz].map(|t| Term(t.clone()));
            Ok(slopes(&x, &y, &z).map(|slope| Some((slope * &dz).0)).into())
        });
        Term(ruled.expect("invariant: two inputs are not too many"))
    }

    /// The logistic function of this term.
    #[track_caller]
    pub(crate) fn sigmoid(&self) -> Term {
        // `1 - y` would be the rounding error of `y` where that is nearly one.
        ((-self).exp() + 1.0).recip().ruled(self, |x, y, dy| dy * (y * (-x).sigmoid()))
    }

    /// A number beside this term.
    #[track_caller]
    pub(crate) fn number(&self, x: f64) -> Term {
        Term(self.0.like(x))
    }

    #[track_caller]
    fn unary(&self, op: UnaryOp) -> Term {
        Term(self.0.unary(op))
    }

    #[track_caller]
    pub(crate) fn abs(&self) -> Term {
        self.unary(UnaryOp::Abs)
    }

    #[track_caller]
    pub(crate) fn exp(&self) -> Term {
        self.unary(UnaryOp::Exp)
    }

    #[track_caller]
    pub(crate) fn log(&self) -> Term {
        self.unary(UnaryOp::Log)
    }

    #[track_caller]
    pub(crate) fn log1p(&self) -> Term {
        self.unary(UnaryOp::Log1p)
    }

    #[track_caller]
    pub(crate) fn sqrt(&self) -> Term {
        self.unary(UnaryOp::Sqrt)
    }

    #[track_caller]
    pub(crate) fn recip(&self) -> Term {
        self.unary(UnaryOp::Recip)
    }

    #[track_caller]
    pub(crate) fn floor(&self) -> Term {
        self.unary(UnaryOp::Floor)
    }

    #[track_caller]
    pub(crate) fn square(&self) -> Term {
        self * self
    }

    #[track_caller]
    pub(crate) fn max(&self, y: &Term) -> Term {
        Term(self.0.combine(BinaryOp::Max, &y.0))
    }

    #[track_caller]
    pub(crate) fn min(&self, y: &Term) -> Term {
        Term(self.0.combine(BinaryOp::Min, &y.0))
    }

    /// At most `bound` (or at least, by [`BinaryOp::Max`]). The gradient is 0 beyond it, and at it
    /// too unless `closed`.
    #[track_caller]
    pub(crate) fn bounded(&self, op: BinaryOp, bound: f64, closed: bool) -> Term {
        Term(self.0.bounded(op, &self.0.like(bound), closed))
    }

    /// Limited to `-limit ..= limit`, where the gradient is 1.
    #[track_caller]
    pub(crate) fn within(&self, limit: f64) -> Term {
        self.bounded(BinaryOp::Max, -limit, true).bounded(BinaryOp::Min, limit, true)
    }

    /// `x` above zero, else `alpha (e^x - 1)`, whose slope is that at 0.
    #[track_caller]
    pub(crate) fn elu(&self, alpha: f64) -> Term {
        // Held at 0 so that what is not chosen does not overflow.
        let low = Term(self.bounded(BinaryOp::Min, 0.0, true).0.expm1()) * alpha;
        self.above(0.0).choose(self, &low)
    }

    pub(crate) fn lt(&self, y: &Term) -> Condition {
        Condition(self.0.combine(BinaryOp::Lt, &y.0))
    }

    pub(crate) fn le(&self, y: &Term) -> Condition {
        Condition(self.0.combine(BinaryOp::Le, &y.0))
    }

    pub(crate) fn equals(&self, y: &Term) -> Condition {
        Condition(self.0.combine(BinaryOp::Eq, &y.0))
    }

    pub(crate) fn below(&self, y: f64) -> Condition {
        self.lt(&self.number(y))
    }

    pub(crate) fn above(&self, y: f64) -> Condition {
        self.number(y).lt(self)
    }

    pub(crate) fn is(&self, y: f64) -> Condition {
        self.equals(&self.number(y))
    }

    pub(crate) fn is_nan(&self) -> Condition {
        Condition(self.0.is_nan())
    }

    /// The polynomial of this term with these coefficients, that of the highest power first
    /// (Horner's scheme).
    #[track_caller]
    pub(crate) fn polynomial(&self, coefficients: &[f64]) -> Term {
        let mut terms = coefficients.iter();
        let first = self.number(terms.next().copied().unwrap_or(0.0));
        terms.fold(first, |sum, &c| &(&sum * self) + c)
    }

    /// The Chebyshev series of this term, which lies in -1 ..= 1, from the coefficient of degree
    /// 0 on (Clenshaw's recurrence). Below `f64`, what is under a sixteenth of an ulp of `f32` is
    /// left out.
    #[track_caller]
    pub(crate) fn chebyshev(&self, coefficients: &[f64]) -> Term {
        let counts = |c: &f64| self.dtype() == DType::F64 || c.abs() > 4e-9;
        let needed = coefficients.iter().rposition(counts).map_or(1, |last| last + 1);
        let coefficients = &coefficients[..needed.min(coefficients.len())];
        let twice = self * 2.0;
        let (mut next, mut last) = (self.number(0.0), self.number(0.0));
        for &c in coefficients.iter().skip(1).rev() {
            let this = &(&(&twice * &next) - &last) + c;
            last = next;
            next = this;
        }
        &(&(self * &next) - &last) + coefficients.first().copied().unwrap_or(0.0)
    }

    /// The dtype of the formula.
    pub(crate) fn dtype(&self) -> DType {
        self.0.dtype()
    }
}

impl Condition {
    /// `x` where the condition holds, else `y`.
    #[track_caller]
    pub(crate) fn choose(&self, x: &Term, y: &Term) -> Term {
        Term(self.0.select(&x.0, &y.0))
    }

    pub(crate) fn and(&self, other: &Condition) -> Condition {
        Condition(self.0.combine(BinaryOp::And, &other.0))
    }

    pub(crate) fn or(&self, other: &Condition) -> Condition {
        Condition(self.0.combine(BinaryOp::Or, &other.0))
    }

    pub(crate) fn not(&self) -> Condition {
        Condition(self.0.unary(UnaryOp::Not))
    }
}

macro_rules! term_operators {
    ($($trait:ident $method:ident;)*) => {$(
        impl std::ops::$trait<&Term> for &Term {
            type Output = Term;
            #[track_caller]
            fn $method(self, y: &Term) -> Term {
                Term(self.0.combine(BinaryOp::$trait, &y.0))
            }
        }
        impl std::ops::$trait<Term> for &Term {
            type Output = Term;
            #[track_caller]
            fn $method(self, y: Term) -> Term { std::ops::$trait::$method(self, &y) }
        }
        impl std::ops::$trait<&Term> for Term {
            type Output = Term;
            #[track_caller]
            fn $method(self, y: &Term) -> Term { std::ops::$trait::$method(&self, y) }
        }
        impl std::ops::$trait<Term> for Term {
            type Output = Term;
            #[track_caller]
            fn $method(self, y: Term) -> Term { std::ops::$trait::$method(&self, &y) }
        }
        impl std::ops::$trait<f64> for &Term {
            type Output = Term;
            #[track_caller]
            fn $method(self, y: f64) -> Term { std::ops::$trait::$method(self, &self.number(y)) }
        }
        impl std::ops::$trait<f64> for Term {
            type Output = Term;
            #[track_caller]
            fn $method(self, y: f64) -> Term { std::ops::$trait::$method(&self, y) }
        }
        impl std::ops::$trait<&Term> for f64 {
            type Output = Term;
            #[track_caller]
            fn $method(self, y: &Term) -> Term { std::ops::$trait::$method(&y.number(self), y) }
        }
        impl std::ops::$trait<Term> for f64 {
            type Output = Term;
            #[track_caller]
            fn $method(self, y: Term) -> Term { std::ops::$trait::$method(self, &y) }
        }
    )*};
}

term_operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl std::ops::Neg for &Term {
    type Output = Term;
    #[track_caller]
    fn neg(self) -> Term {
        self.unary(UnaryOp::Neg)
    }
}

impl std::ops::Neg for Term {
    type Output = Term;
    #[track_caller]
    fn neg(self) -> Term {
        -&self
    }
}
