//! Losses that compare scores or distances with a margin: rankings, embeddings, several classes.
//!
//! Definitions, defaults and signs are PyTorch's. Targets of two classes are 1 and -1. Halves are
//! computed in `f32`; the gradient at a hinge is that of its flat side.

use super::{Reduction, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::shape::Shape;

/// How [`Tensor::triplet_margin_loss`] measures.
///
/// ```
/// use zyx::TripletMargin;
/// assert_eq!(TripletMargin::default().margin, 1.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TripletMargin {
    /// By how much the negative has to be farther away than the positive; 1.
    pub margin: f64,
    /// The norm of the distances; 2.
    pub p: f64,
    /// Added to each difference; 1e-6.
    pub eps: f64,
    /// Whether the distance of the positive to the negative counts if it is the smaller; false.
    pub swap: bool,
    /// What becomes of the single terms.
    pub reduction: Reduction,
}

impl Default for TripletMargin {
    fn default() -> TripletMargin {
        let reduction = Reduction::default();
        TripletMargin { margin: 1.0, p: 2.0, eps: 1e-6, swap: false, reduction }
    }
}

/// How [`Tensor::multi_margin_loss`] treats classes.
///
/// ```
/// use zyx::MultiMargin;
/// assert_eq!(MultiMargin::default().p, 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MultiMargin<'a> {
    /// Power of each hinge, 1 or 2; 1.
    pub p: u32,
    /// By how much the score of the target has to be above each other; 1.
    pub margin: f64,
    /// A factor for each class as target, `[classes]`.
    pub weight: Option<&'a Tensor>,
    /// What becomes of the single terms.
    pub reduction: Reduction,
}

impl Default for MultiMargin<'_> {
    #[track_caller]
    fn default() -> Self {
        MultiMargin { p: 1, margin: 1.0, weight: None, reduction: Reduction::default() }
    }
}

impl Tensor {
    /// Reduced terms in the dtype that a loss of these operands has.
    #[track_caller]
    pub(crate) fn reduced_loss(&self, operands: &[&Tensor], reduction: Reduction) -> Tensor {
        let dtypes = operands.iter().map(|t| t.floating().dtype());
        let dtype = dtypes.reduce(DType::promote).unwrap_or(self.dtype());
        reduction.apply(self.clone()).cast(dtype)
    }

    /// `max(0, d(anchor, positive) - d(anchor, negative) + margin)` of vectors along the last
    /// axis, `self` being the anchors (Weinberger and Saul 2009). Shapes broadcast.
    ///
    /// ```
    /// # use zyx::{Tensor, TripletMargin};
    /// # let device = zyx::runtime().device("reference")?;
    /// let anchor = Tensor::new([[0f32, 0.0]], &device)?;
    /// let near = Tensor::new([[0f32, 1.0]], &device)?;
    /// let far = Tensor::new([[1.5f32, 0.0]], &device)?;
    /// let loss = anchor.triplet_margin_loss(&near, &far, TripletMargin::default())?;
    /// assert_eq!(format!("{loss:.3}"), "0.500");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not broadcast, there is no axis, or `p` is NaN.
    #[track_caller]
    pub fn triplet_margin_loss(
        &self,
        positive: &Tensor,
        negative: &Tensor,
        options: TripletMargin,
    ) -> Result<Tensor> {
        let _here = composed();
        let terms = || {
            Tensor::check_operands("triplet_margin_loss", &[self, positive, negative])?;
            let TripletMargin { margin, p, eps, swap, .. } = options;
            let [x, y, z] = [self, positive, negative].map(Tensor::wide);
            let mut far = x.distance(&z, p, eps)?;
            if swap {
                far = far.minimum(y.distance(&z, p, eps)?)?;
            }
            Ok(x.distance(&y, p, eps)?.sub(&far)?.add(margin)?.relu())
        };
        let terms = terms().named("triplet_margin_loss")?;
        Ok(terms.reduced_loss(&[self, positive, negative], options.reduction))
    }

    /// `1 - cos(self, other)` where the target is 1, `max(0, cos - margin)` where it is -1, of
    /// vectors along the last axis.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 0.0], [1.0, 0.0]], &device)?;
    /// let y = Tensor::new([[0f32, 1.0], [2.0, 0.0]], &device)?;
    /// let target = Tensor::new([1f32, -1.0], &device)?;
    /// let loss = x.cosine_embedding_loss(&y, &target, 0.5, Reduction::None)?;
    /// assert_eq!(format!("{loss:.2}"), "[1.  0.5]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not broadcast or there is no axis.
    #[track_caller]
    pub fn cosine_embedding_loss(
        &self,
        other: &Tensor,
        target: &Tensor,
        margin: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const OP: &str = "cosine_embedding_loss";
        let _here = composed();
        let terms = || {
            Tensor::check_operands(OP, &[self, other, target])?;
            let (x, y) = (self.wide(), other.wide());
            let axis = -1;
            // Both squared lengths are held away from zero, as PyTorch does in this loss.
            let square = |x: &Tensor| x.square().sum(axis).and_then(|s| s.add(1e-12));
            let cosine = x.mul(&y)?.sum(axis)?.div(square(&x)?.mul(square(&y)?)?.sqrt())?;
            let apart = cosine.sub(margin)?.relu();
            let together = cosine.neg().add(1.0)?;
            let zero = cosine.like(0.0);
            target.eq(1)?.where_(&together, target.eq(-1)?.where_(&apart, &zero)?)
        };
        Ok(terms().named(OP)?.reduced_loss(&[self, other], reduction))
    }

    /// `max(0, -target (self - other) + margin)`: `self` should rank above `other` where the
    /// target is 1, below where it is -1. Shapes broadcast.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([1f32, 2.0], &device)?, Tensor::new([3f32, 0.0], &device)?);
    /// let target = Tensor::new([1f32, 1.0], &device)?;
    /// let loss = x.margin_ranking_loss(&y, &target, 0.5, Reduction::None)?;
    /// assert_eq!(loss.to_vec::<f32>()?, [2.5, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not broadcast.
    #[track_caller]
    pub fn margin_ranking_loss(
        &self,
        other: &Tensor,
        target: &Tensor,
        margin: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const OP: &str = "margin_ranking_loss";
        let _here = composed();
        let terms = || {
            Tensor::check_operands(OP, &[self, other, target])?;
            let gap = self.wide().sub(other.wide())?;
            Ok(gap.mul(target.cast(gap.dtype()))?.neg().add(margin)?.relu())
        };
        Ok(terms().named(OP)?.reduced_loss(&[self, other], reduction))
    }

    /// The distance itself where the target is 1, `max(0, margin - self)` where it is -1.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0.25f32, 0.25], &device)?;
    /// let target = Tensor::new([1f32, -1.0], &device)?;
    /// let loss = x.hinge_embedding_loss(&target, 1.0, Reduction::None)?;
    /// assert_eq!(loss.to_vec::<f32>()?, [0.25, 0.75]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not broadcast.
    #[track_caller]
    pub fn hinge_embedding_loss(
        &self,
        target: &Tensor,
        margin: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const OP: &str = "hinge_embedding_loss";
        let _here = composed();
        let terms = || {
            Tensor::check_operands(OP, &[self, target])?;
            let x = self.wide();
            let zero = x.like(0.0);
            let apart = target.ne(1)?.where_(x.neg().add(margin)?.relu(), &zero)?;
            target.ne(-1)?.where_(&x, &zero)?.add(&apart)
        };
        Ok(terms().named(OP)?.reduced_loss(&[self], reduction))
    }

    /// `log(1 + exp(-target self))` with targets 1 and -1.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([0f32], &device)?, Tensor::new([1f32], &device)?);
    /// assert_eq!(format!("{:.4}", x.soft_margin_loss(&y, Reduction::Mean)?), "0.6931");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not broadcast.
    #[track_caller]
    pub fn soft_margin_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        const OP: &str = "soft_margin_loss";
        let _here = composed();
        let terms = || {
            Tensor::check_operands(OP, &[self, target])?;
            let x = self.wide();
            Ok(x.mul(target.cast(x.dtype()))?.neg().softplus())
        };
        Ok(terms().named(OP)?.reduced_loss(&[self], reduction))
    }

    /// Hinges of several classes: the mean over classes `j` other than the target `y` of
    /// `max(0, margin - x[y] + x[j])^p`, of scores `[n, classes]` or `[classes]` and class numbers
    /// `[n]` or a scalar. (The divisor is the number of all classes.) A class number out of range
    /// is an error, at the call or when the loss is read.
    ///
    /// ```
    /// # use zyx::{MultiMargin, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[0.5f32, 1.0, 0.0]], &device)?;
    /// let loss = x.multi_margin_loss(&Tensor::new([0i64], &device)?, MultiMargin::default())?;
    /// assert_eq!(format!("{loss:.4}"), "0.6667");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit, the target does not hold integers, `p` is neither 1 nor 2, or
    /// the weight is not `[classes]`.
    #[track_caller]
    pub fn multi_margin_loss(&self, target: &Tensor, options: MultiMargin<'_>) -> Result<Tensor> {
        const OP: &str = "multi_margin_loss";
        let terms = self.multi_margin_terms(target, options).named(OP)?;
        Ok(terms.reduced_loss(&[self], options.reduction))
    }

    #[track_caller]
    fn multi_margin_terms(&self, target: &Tensor, options: MultiMargin<'_>) -> Result<Tensor> {
        const OP: &str = "multi_margin_loss";
        let MultiMargin { p, margin, weight, .. } = options;
        if !matches!(p, 1 | 2) {
            return Err(Tensor::argument_error(OP, format!("p is {p}, it must be 1 or 2")));
        }
        if !matches!(self.rank(), 1 | 2) {
            let reason = "scores must be [n, classes] or [classes]".to_owned();
            return Err(Tensor::shape_error(OP, &[self, target], reason));
        }
        let x = self.wide();
        let axis = x.class_axis(OP, target)?;
        let classes = x.shape()[axis];
        let index = target.within(OP, 0, classes, None)?.cast(DType::I64);
        let chosen = x.gather_unchecked(axis, &index.unsqueeze(axis as isize)?);
        let others = index.unchecked_indices().one_hot(classes)?.logical_not();
        let gap = x.sub(&chosen)?.add(margin)?.relu();
        let gap = if p == 2 { gap.square() } else { gap };
        let mut terms = others.where_(&gap, gap.like(0.0))?;
        if let Some(weight) = weight {
            let factors = weight.at_targets(OP, &index, classes)?.unsqueeze(axis as isize)?;
            terms = terms.mul(factors.cast(terms.dtype()))?;
        }
        let sum = terms.sum(axis as isize)?;
        sum.mul(1.0 / classes as f64)?.defined_for(&index, classes)
    }

    /// The entries of a vector `[classes]` at class numbers.
    #[track_caller]
    pub(crate) fn at_targets(
        &self,
        op: &'static str,
        target: &Tensor,
        classes: usize,
    ) -> Result<Tensor> {
        Tensor::check_operands(op, &[self, target])?;
        if self.shape().dims() != [classes] {
            let reason = format!("the weight must be a vector of {classes} elements");
            return Err(Tensor::shape_error(op, &[self, target], reason));
        }
        let picked = self.select_unchecked(0, &target.flatten());
        picked.reshape(target.shape().clone())
    }

    /// NaN where the class number is out of range.
    #[track_caller]
    pub(crate) fn defined_for(&self, target: &Tensor, classes: usize) -> Result<Tensor> {
        let in_range = target.ge(0)?.logical_and(target.lt(classes as i64)?)?;
        in_range.where_(self, self.like(f64::NAN))
    }

    /// Binary cross entropy of logits `[.., classes]` averaged over the last axis: each class is
    /// there or not, with target 1 or 0. `weight` is a factor for each class.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[0f32, 0.0]], &device)?;
    /// let y = Tensor::new([[1f32, 0.0]], &device)?;
    /// let loss = x.multilabel_soft_margin_loss(&y, None, Reduction::Mean)?;
    /// assert_eq!(format!("{loss:.4}"), "0.6931");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ, there is no axis, or the weight does not broadcast to them.
    #[track_caller]
    pub fn multilabel_soft_margin_loss(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const OP: &str = "multilabel_soft_margin_loss";
        let _here = composed();
        let terms = || {
            let (x, y) = self.paired(OP, target)?;
            let mut terms = x.logistic_terms(&y, &y.neg().add(1.0)?);
            if let Some(weight) = weight {
                terms = terms.mul(weight.cast(terms.dtype()))?;
            }
            terms.mean(-1)
        };
        Ok(terms().named(OP)?.reduced_loss(&[self, target], reduction))
    }

    /// Hinges between classes that are there and classes that are not: the sum over targets `j`
    /// and other classes `i` of `max(0, 1 - (x[j] - x[i]))`, divided by the number of classes.
    /// Scores are `[n, classes]` or `[classes]`; targets have their shape and list class numbers,
    /// up to the first negative one. Takes time for each class times each that is listed.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0.1f32, 0.2, 0.4, 0.8], &device)?;
    /// let target = Tensor::new([3i64, 0, -1, 1], &device)?;
    /// let loss = x.multilabel_margin_loss(&target, Reduction::Mean)?;
    /// assert_eq!(format!("{loss:.4}"), "0.8500");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ or the target does not hold integers.
    #[track_caller]
    pub fn multilabel_margin_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        const OP: &str = "multilabel_margin_loss";
        let terms = self.multilabel_margin_terms(target).named(OP)?;
        Ok(terms.reduced_loss(&[self], reduction))
    }

    #[track_caller]
    fn multilabel_margin_terms(&self, target: &Tensor) -> Result<Tensor> {
        const OP: &str = "multilabel_margin_loss";
        Tensor::check_operands(OP, &[self, target])?;
        if !self.shape().same(target.shape()) || !matches!(self.rank(), 1 | 2) {
            let reason = "scores and targets must both be [n, classes] or [classes]".to_owned();
            return Err(Tensor::shape_error(OP, &[self, target], reason));
        }
        if !target.dtype().is_int() {
            let reason = "targets are class numbers, so integers".to_owned();
            return Err(Tensor::dtype_error(OP, &[self, target], reason));
        }
        let x = self.wide();
        let classes = *x.shape().last().expect("invariant: there is an axis");
        if !Shape::from([x.shape().dims(), &[classes]].concat()).is_possible() {
            let reason = "there are too many pairs of classes".to_owned();
            return Err(Tensor::shape_error(OP, &[self, target], reason));
        }
        let target = target.within(OP, i64::MIN, classes, None)?.cast(DType::I64);
        if x.numel() == 0 {
            return x.sum(-1)?.mul(1.0 / classes as f64);
        }
        let rows = Shape::from([x.numel() / classes, classes]);
        let hinges = Hinges::of(&x.reshape_unchecked(rows.clone()), target.reshape(rows)?);
        let lead = Shape::from(&x.shape()[..x.rank() - 1]);
        let sums = hinges.sums().reshape_unchecked(lead);
        let sums = sums.with_gradient(&[&x], move |inputs, _, dy| {
            let slopes = hinges.slopes().reshape_unchecked(inputs[0].shape().clone());
            Ok(vec![Some(slopes.mul(dy.unsqueeze(-1)?)?)])
        })?;
        sums.mul(1.0 / classes as f64)
    }
}

/// Scores and lists of classes, of which those count that come before the first negative one. Loops over
/// a list are as long as it is.
struct Hinges {
    /// Scores, `[rows, classes]`.
    scores: Tensor,
    /// Classes, as many (`i64`).
    listed: Tensor,
    /// How many classes of a row count, for each of its classes (`i64`).
    counts: Tensor,
    /// Rows, classes, and what each of these meets.
    pairs: Shape,
}

impl Hinges {
    #[track_caller]
    fn of(scores: &Tensor, listed: Tensor) -> Hinges {
        let &[rows, classes] = scores.shape().dims() else { unreachable!("invariant: rows") };
        let numbers = Tensor::iota(classes, DType::I64, listed.device());
        let numbers = numbers.broadcast_unchecked(listed.shape());
        let ends = listed.combine(BinaryOp::Lt, &listed.like(0.0));
        let counts = ends.select(&numbers, &numbers.like(classes as f64));
        let counts = counts.reduce(BinaryOp::Min, 0b10).broadcast_unchecked(listed.shape());
        let pairs = Shape::from([rows, classes, classes]);
        Hinges { scores: scores.detach(), listed, counts, pairs }
    }

    /// Of each class of a row the element, for all that it meets.
    #[track_caller]
    fn each(&self, x: &Tensor) -> Tensor {
        let column = Shape::from([self.pairs[0], self.pairs[1], 1]);
        x.reshape_unchecked(column).broadcast_unchecked(&self.pairs)
    }

    /// The elements of a row, for each of its classes.
    #[track_caller]
    fn all(&self, x: &Tensor) -> Tensor {
        let row = Shape::from([self.pairs[0], 1, self.pairs[1]]);
        x.reshape_unchecked(row).broadcast_unchecked(&self.pairs)
    }

    /// Whether a class is the one listed.
    #[track_caller]
    fn is_listed(&self) -> Tensor {
        let numbers = Tensor::iota(self.pairs[1], DType::I64, self.listed.device());
        let numbers = numbers.broadcast_unchecked(self.listed.shape());
        self.each(&numbers).combine(BinaryOp::Eq, &self.all(&self.listed))
    }

    /// `1 - (y - x)`.
    #[track_caller]
    fn gap(x: &Tensor, y: &Tensor) -> Tensor {
        let apart = x.combine(BinaryOp::Sub, y);
        apart.combine(BinaryOp::Add, &apart.like(1.0))
    }

    /// Of each class and each listed one by how much the first comes too near.
    #[track_caller]
    fn gaps(&self) -> Tensor {
        let chosen = self.all(&self.scores).gather_unchecked(2, &self.all(&self.listed));
        Hinges::gap(&self.each(&self.scores), &chosen)
    }

    /// The sum of each row.
    #[track_caller]
    fn sums(&self) -> Tensor {
        let gaps = self.gaps();
        let hinges = gaps.combine(BinaryOp::Max, &gaps.like(0.0));
        let sums = hinges.reduce_first(BinaryOp::Add, &self.counts);
        let is_target = self.is_listed().reduce_first(BinaryOp::Or, &self.counts);
        is_target.select(&sums.like(0.0), &sums).reduce(BinaryOp::Add, 0b10).without(0b10)
    }

    /// The derivatives of the sums by each score: of a class that is no target, how many targets it comes
    /// too near to; of a target, less how many come too near to it, as often as it is listed.
    #[track_caller]
    fn slopes(&self) -> Tensor {
        let dtype = self.scores.dtype();
        let is_near = |gaps: &Tensor| gaps.like(0.0).combine(BinaryOp::Lt, gaps).cast(DType::I32);
        let rising = is_near(&self.gaps()).reduce_first(BinaryOp::Add, &self.counts);
        let times = self.is_listed().cast(DType::I32);
        let times = times.reduce_first(BinaryOp::Add, &self.counts).contiguous();
        let is_target = times.cast(DType::Bool);
        let others = Hinges::gap(&self.all(&self.scores), &self.each(&self.scores));
        let near = self.all(&is_target).select(&is_near(&others).like(0.0), &is_near(&others));
        // Nobody asks what comes near to other classes.
        let classes = self.counts.like(self.pairs[1] as f64);
        let falling = is_target.select(&classes, &classes.like(0.0));
        let falling = near.reduce_first(BinaryOp::Add, &falling).cast(dtype);
        let falling = falling.combine(BinaryOp::Mul, &times.cast(dtype));
        let falling = falling.like(0.0).combine(BinaryOp::Sub, &falling);
        is_target.select(&falling, &rising.cast(dtype))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;

    /// Lists of all lengths, empty and full ones and such as name a class twice: sums and slopes of all
    /// pairs one by one.
    #[test]
    fn listed_classes_meet_all_others() {
        let device = Runtime::default().device("reference").unwrap();
        let (rows, classes) = (9, 7);
        let x: Vec<f32> = (0..rows * classes).map(|i| (i * 37 % 23) as f32 / 8.0 - 1.0).collect();
        let listed: Vec<i64> = (0..rows * classes)
            .map(|i| match (i / classes, i % classes) {
                (row, place) if place == row => -1,
                (8, place) => place as i64,
                (row, place) => ((row * 3 + place * place) % classes) as i64,
            })
            .collect();
        let mut expected = (vec![0f32; rows], vec![0f32; rows * classes]);
        for row in 0..rows {
            let (x, listed) = (&x[row * classes..], &listed[row * classes..][..classes]);
            let list: Vec<usize> =
                listed.iter().take_while(|&&c| c >= 0).map(|&c| c as usize).collect();
            for &j in &list {
                for i in (0..classes).filter(|i| !list.contains(i)) {
                    let gap = x[i] - x[j] + 1.0;
                    if gap > 0.0 {
                        expected.0[row] += gap / classes as f32;
                        expected.1[row * classes + i] += 1.0 / classes as f32;
                        expected.1[row * classes + j] -= 1.0 / classes as f32;
                    }
                }
            }
        }
        let scores = Tensor::from_slice(&x, [rows, classes], &device).unwrap();
        let listed = Tensor::from_slice(&listed, [rows, classes], &device).unwrap();
        let loss = scores.multilabel_margin_loss(&listed, Reduction::None).unwrap();
        let slopes = loss.sum(..).unwrap().grad(&[&scores]).unwrap().remove(0).unwrap();
        let near = |got: Vec<f32>, expected: &[f32]| {
            assert_eq!(got.len(), expected.len());
            let pairs = got.iter().zip(expected);
            assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-5), "{got:?} {expected:?}");
        };
        near(loss.to_vec().unwrap(), &expected.0);
        near(slopes.to_vec().unwrap(), &expected.1);
    }
}
