//! Einstein summation: products of any number of tensors, summed over the axes that do not stay.
//!
//! Subscripts are those of NumPy. Repeated letters of an operand are its diagonal, which is an
//! index computation; a letter of one operand alone is summed before anything is multiplied; pairs
//! are then contracted in the cheapest order ([`super::einsum_path`]). A pair is a product of
//! broadcast operands and one sum, with the axes of the result in the order they are wanted in:
//! scheduling recognises contractions from strides, so no operand is transposed by copying.
//! Halves are multiplied and added in `f32` throughout and rounded once.
//!
//! What follows from subscripts and shapes is kept for the next call, by thread.

use super::Tensor;
use super::einsum_parse::{Label, Subscripts, labels, validate};
use super::einsum_path::{Labels, Path, Problem, members, set};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::lru::Lru;
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::shape::Shape;
use rustc_hash::FxHasher;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// The order of contractions that [`Tensor::einsum_path`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct EinsumPath {
    /// Pairs of positions in the list of operands: both leave the list and their product joins
    /// its end.
    pub pairs: Vec<[usize; 2]>,
    /// Multiplications and additions of all pairs.
    pub flops: f64,
}

/// What is done, up to the operands' values.
struct Plan {
    spec: String,
    shapes: Vec<Shape>,
    /// The axes of each operand.
    subscripts: Subscripts,
    /// Extents by label.
    extents: Vec<usize>,
    /// The labels of each operand once its own were summed.
    reduced: Vec<Labels>,
    path: Path,
}

/// Bytes of plans that a thread keeps, and of one, roughly.
const KEPT: usize = 256 << 10;
const EACH: usize = 1 << 10;

thread_local! {
    static PLANS: RefCell<Lru<u64, Rc<Plan>>> = RefCell::default();
}

impl Tensor {
    /// The sum of products that subscripts describe: `"ij,jk->ik"` is a matrix product, `"ii"` a
    /// trace, `"...ij->...ji"` a transpose. Letters name axes; those that are not in the result
    /// (after `->`) are summed. Without `->`, letters that are there once stay, in alphabetical
    /// order. `...` stands for any axes, which broadcast, as do extents of 1. Up to eight operands
    /// are contracted in the order of least work. Bools count as integers.
    ///
    /// [`einsum!`](crate::einsum) checks the subscripts while compiling.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// let x = Tensor::new([1f32, 10.0], &device)?;
    /// assert_eq!(Tensor::einsum("ij,j->i", &[&a, &x])?.to_vec::<f32>()?, [21.0, 43.0]);
    /// assert_eq!(Tensor::einsum("ii", &[&a])?.item::<f32>()?, 5.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the subscripts are malformed, do not fit the operands' axes, extents of one letter
    /// differ, there are more than 16 letters in one product, or the operands are on different
    /// devices.
    #[track_caller]
    pub fn einsum(subscripts: &str, operands: &[&Tensor]) -> Result<Tensor> {
        let _here = composed();
        plan(subscripts, operands).and_then(|plan| plan.run(operands)).named("einsum")
    }

    /// The order in which [`Tensor::einsum`] contracts the operands, and what that costs.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let of = |shape: [usize; 2]| Tensor::zeros(shape, DType::F32, &device);
    /// let (a, b, c) = (of([64, 512]), of([512, 512]), of([512, 8]));
    /// let path = Tensor::einsum_path("ij,jk,kl->il", &[&a, &b, &c])?;
    /// assert_eq!(path.pairs, [[1, 2], [0, 1]]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::einsum`].
    #[track_caller]
    pub fn einsum_path(subscripts: &str, operands: &[&Tensor]) -> Result<EinsumPath> {
        let plan = plan(subscripts, operands).named("einsum_path")?;
        Ok(EinsumPath { pairs: plan.path.pairs.clone(), flops: plan.path.flops })
    }
}

/// [`Tensor::einsum`] with subscripts that are checked while compiling: malformed ones do not
/// compile, and the message names the letter. Operands are tensors or references.
///
/// ```
/// # use zyx::{Tensor, einsum};
/// # let device = zyx::runtime().device("reference")?;
/// let x = Tensor::new([1f32, 2.0], &device)?;
/// assert_eq!(einsum!("i,i", x, &x)?.item::<f32>()?, 5.0);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// A letter of the result that no operand has:
///
/// ```compile_fail,E0080
/// # use zyx::{DType, Tensor, einsum};
/// # let device = zyx::runtime().device("reference").unwrap();
/// # let x = Tensor::zeros([2, 2], DType::F32, &device);
/// einsum!("ij,jk->iz", x, x).unwrap();
/// ```
///
/// One that the result has twice:
///
/// ```compile_fail,E0080
/// # use zyx::{DType, Tensor, einsum};
/// # let device = zyx::runtime().device("reference").unwrap();
/// # let x = Tensor::zeros([2, 2], DType::F32, &device);
/// einsum!("ij->ii", x).unwrap();
/// ```
///
/// As many operands as subscripts:
///
/// ```compile_fail,E0080
/// # use zyx::{DType, Tensor, einsum};
/// # let device = zyx::runtime().device("reference").unwrap();
/// # let x = Tensor::zeros([2, 2], DType::F32, &device);
/// einsum!("ij,jk", x).unwrap();
/// ```
///
/// No signs but letters, commas, dots and one arrow:
///
/// ```compile_fail,E0080
/// # use zyx::{DType, Tensor, einsum};
/// # let device = zyx::runtime().device("reference").unwrap();
/// # let x = Tensor::zeros([2, 2], DType::F32, &device);
/// einsum!("i1->i", x).unwrap();
/// ```
///
/// ```compile_fail,E0080
/// # use zyx::{DType, Tensor, einsum};
/// # let device = zyx::runtime().device("reference").unwrap();
/// # let x = Tensor::zeros([2, 2], DType::F32, &device);
/// einsum!("i..j", x).unwrap();
/// ```
///
/// ```compile_fail,E0080
/// # use zyx::{DType, Tensor, einsum};
/// # let device = zyx::runtime().device("reference").unwrap();
/// # let x = Tensor::zeros([2, 2], DType::F32, &device);
/// einsum!("ij->i->j", x).unwrap();
/// ```
///
/// ```compile_fail,E0080
/// # use zyx::{DType, Tensor, einsum};
/// # let device = zyx::runtime().device("reference").unwrap();
/// # let x = Tensor::zeros([2, 2], DType::F32, &device);
/// einsum!("ij->...i", x).unwrap();
/// ```
///
/// ```compile_fail,E0080
/// # use zyx::{DType, Tensor, einsum};
/// # let device = zyx::runtime().device("reference").unwrap();
/// # let x = Tensor::zeros([2, 2], DType::F32, &device);
/// einsum!("...ij...", x).unwrap();
/// ```
///
/// ```compile_fail,E0080
/// # use zyx::{DType, Tensor, einsum};
/// # let device = zyx::runtime().device("reference").unwrap();
/// # let x = Tensor::zeros([2, 2], DType::F32, &device);
/// einsum!("ij-ji", x).unwrap();
/// ```
///
/// ```compile_fail,E0080
/// # use zyx::{DType, Tensor, einsum};
/// # let device = zyx::runtime().device("reference").unwrap();
/// # let x = Tensor::zeros([2, 2], DType::F32, &device);
/// einsum!("ij->i,j", x).unwrap();
/// ```
#[macro_export]
macro_rules! einsum {
    ($subscripts:literal, $($operand:expr),+ $(,)?) => {{
        const _: () = $crate::Tensor::check_einsum($subscripts, [$(stringify!($operand)),+].len());
        $crate::Tensor::einsum(
            $subscripts,
            &[$(::core::borrow::Borrow::<$crate::Tensor>::borrow(&$operand)),+],
        )
    }};
}

/// The plan for subscripts and shapes, found again or made.
fn plan(spec: &str, operands: &[&Tensor]) -> Result<Rc<Plan>> {
    const OP: &str = "einsum";
    let mut hasher = FxHasher::default();
    spec.hash(&mut hasher);
    operands.iter().for_each(|t| t.shape().dims().hash(&mut hasher));
    let key = hasher.finish();
    let known = PLANS.with_borrow_mut(|plans| plans.get(&key).cloned());
    let same = |plan: &Rc<Plan>| {
        let shapes = plan.shapes.iter().zip(operands).all(|(shape, t)| shape.same(t.shape()));
        plan.spec == spec && plan.shapes.len() == operands.len() && shapes
    };
    if let Some(plan) = known.filter(same) {
        return Ok(plan);
    }
    if let Some(mistake) = validate(spec.as_bytes(), operands.len()) {
        let reason = format!("`{spec}`: {}", mistake.describe().as_str());
        return Err(Tensor::argument_error(OP, reason));
    }
    if !operands.iter().all(|t| t.shape().is_possible()) {
        let reason = "an operand has too many axes or elements".to_owned();
        return Err(Tensor::shape_error(OP, operands, reason));
    }
    let plan = make(spec, operands)
        .map_err(|reason| Tensor::shape_error(OP, operands, format!("`{spec}`: {reason}")))?;
    let plan = Rc::new(plan);
    PLANS.with_borrow_mut(|plans| {
        plans.insert(key, plan.clone(), EACH + spec.len());
        plans.fit(KEPT);
    });
    Ok(plan)
}

fn make(spec: &str, operands: &[&Tensor]) -> Result<Plan, String> {
    let ranks: Vec<usize> = operands.iter().map(|t| t.rank()).collect();
    let subscripts = labels(spec, &ranks)?;
    let mut extents = vec![1; Labels::BITS as usize];
    for (axes, t) in subscripts.operands.iter().zip(operands) {
        for (&label, &extent) in axes.iter().zip(t.shape().iter()) {
            let known = &mut extents[label as usize];
            if *known == 1 {
                *known = extent;
            } else if extent != 1 && *known != extent {
                let name = name(label);
                return Err(format!("{name} has extent {known} and extent {extent}"));
            }
        }
    }
    let output = set(&subscripts.output);
    // An axis of extent 1 that is longer elsewhere broadcasts: it is dropped.
    let present: Vec<Labels> = subscripts
        .operands
        .iter()
        .zip(operands)
        .map(|(axes, t)| set(&kept_labels(axes, t.shape(), &extents)))
        .collect();
    let needed = |i: usize| {
        let others = present.iter().enumerate().filter(|&(k, _)| k != i);
        others.fold(output, |set, (_, &l)| set | l)
    };
    let reduced: Vec<Labels> =
        present.iter().enumerate().map(|(i, &labels)| labels & needed(i)).collect();
    let path = Problem { operands: &reduced, output, extents: &extents }.path();
    let shapes = operands.iter().map(|t| t.shape().clone()).collect();
    Ok(Plan { spec: spec.to_owned(), shapes, subscripts, extents, reduced, path })
}

fn name(label: Label) -> String {
    match label {
        0..26 => format!("`{}`", (b'a' + label) as char),
        26..52 => format!("`{}`", (b'A' + label - 26) as char),
        _ => "an axis of `...`".to_owned(),
    }
}

/// The labels of axes that do not broadcast.
fn kept_labels(axes: &[Label], shape: &Shape, extents: &[usize]) -> Vec<Label> {
    let stays = |(&l, &d): (&Label, &usize)| (d == extents[l as usize]).then_some(l);
    axes.iter().zip(shape.iter()).filter_map(stays).collect()
}

impl Plan {
    #[track_caller]
    fn run(&self, operands: &[&Tensor]) -> Result<Tensor> {
        Tensor::check_operands("einsum", operands)?;
        let dtype = operands.iter().map(|t| t.dtype()).reduce(DType::promote);
        let dtype = dtype.expect("invariant: there is an operand");
        let dtype = if dtype == DType::Bool { DType::I64 } else { dtype };
        let wide = dtype.product_accumulator();
        let mut list = Vec::with_capacity(operands.len() + 1);
        for (i, t) in operands.iter().enumerate() {
            list.push(self.prepare(i, &t.cast(dtype).cast(wide))?);
        }
        for (step, &[i, j]) in self.path.pairs.iter().enumerate() {
            let (b, a) = (list.remove(j), list.remove(i));
            let last = step + 1 == self.path.pairs.len();
            let order =
                if last { self.subscripts.output.clone() } else { between(&a, &b, &list, self) };
            list.push(self.contract(&a, &b, order)?);
        }
        let whole = list.pop().expect("invariant: one product is left");
        Ok(self.finish(whole)?.cast(dtype))
    }

    /// An operand with its diagonals taken, axes that broadcast dropped, and its own axes summed.
    #[track_caller]
    fn prepare(&self, i: usize, x: &Tensor) -> Result<Term> {
        let (mut x, mut axes) = (x.clone(), self.subscripts.operands[i].clone());
        let broadcasts = |axes: &[Label], x: &Tensor, axis: usize| {
            x.shape()[axis] == 1 && self.extents[axes[axis] as usize] != 1
        };
        while let Some(axis) = (0..axes.len()).find(|&axis| broadcasts(&axes, &x, axis)) {
            x = x.squeeze(axis as isize)?;
            axes.remove(axis);
        }
        let pair = |axes: &[Label]| {
            let second = (1..axes.len()).find(|&k| axes[..k].contains(&axes[k]))?;
            Some((axes.iter().position(|l| *l == axes[second])?, second))
        };
        while let Some((a, b)) = pair(&axes) {
            x = x.merged_diagonal(a, b)?;
            axes.remove(b);
        }
        let own = |l: &Label| self.reduced[i] >> l & 1 == 0;
        let mask = (0..axes.len()).filter(|&k| own(&axes[k])).fold(0, |mask, k| mask | 1 << k);
        axes.retain(|l| !own(l));
        Ok(Term { x: x.reduce(BinaryOp::Add, mask).without(mask), axes })
    }

    /// The product of two terms, summed over what is not in `order`.
    #[track_caller]
    fn contract(&self, a: &Term, b: &Term, order: Vec<Label>) -> Result<Term> {
        let all = set(&a.axes) | set(&b.axes);
        let order: Vec<Label> = order.into_iter().filter(|&l| all >> l & 1 == 1).collect();
        let summed: Vec<Label> = members(all & !set(&order)).collect();
        let axes = [&order[..], &summed].concat();
        let shape: Shape = axes.iter().map(|&l| self.extents[l as usize]).collect();
        if !shape.is_possible() {
            let reason = format!("a product of extents {shape} has too many axes or elements");
            return Err(Tensor::shape_error("einsum", &[&a.x, &b.x], reason));
        }
        let (p, q) = (a.laid(&axes, &shape)?, b.laid(&axes, &shape)?);
        let product = p.combine(BinaryOp::Mul, &q);
        let mask = (order.len()..axes.len()).fold(0, |mask, axis| mask | 1 << axis);
        Ok(Term { x: product.reduce(BinaryOp::Add, mask).without(mask), axes: order })
    }

    /// The last term with the axes of the result in order.
    #[track_caller]
    fn finish(&self, term: Term) -> Result<Tensor> {
        let output = &self.subscripts.output;
        let shape: Shape = output.iter().map(|&l| self.extents[l as usize]).collect();
        if !shape.is_possible() {
            let reason = format!("a result of shape {shape} has too many axes or elements");
            return Err(Tensor::shape_error("einsum", &[&term.x], reason));
        }
        term.laid(output, &shape)
    }
}

/// A tensor whose axes have labels, none twice.
struct Term {
    x: Tensor,
    axes: Vec<Label>,
}

impl Term {
    /// Permuted and broadcast to axes that include its own.
    #[track_caller]
    fn laid(&self, axes: &[Label], shape: &Shape) -> Result<Tensor> {
        let place = |l: &Label| self.axes.iter().position(|own| own == l);
        let order: Vec<usize> = axes.iter().filter_map(place).collect();
        let dims: Vec<usize> =
            axes.iter().map(|l| place(l).map_or(1, |axis| self.x.shape()[axis])).collect();
        self.x.permute_unchecked(&order).reshape(dims)?.expand(shape.clone())
    }
}

/// The axes of a product that is not the last: those of both, of the first, of the second.
fn between(a: &Term, b: &Term, others: &[Term], plan: &Plan) -> Vec<Label> {
    let output = set(&plan.subscripts.output);
    let needed = others.iter().fold(output, |all, term| all | set(&term.axes));
    let (p, q) = (set(&a.axes), set(&b.axes));
    let groups = [p & q, p & !q, q & !p];
    groups.into_iter().flat_map(|group| members(group & needed)).collect()
}

impl Tensor {
    /// The elements whose positions along axes `a < b`, of one extent, are equal; at axis `a`.
    #[track_caller]
    pub(crate) fn merged_diagonal(&self, a: usize, b: usize) -> Result<Tensor> {
        let n = self.shape()[a];
        let mut order: Vec<usize> = (0..self.rank()).filter(|&axis| axis != b).collect();
        order.insert(a + 1, b);
        let mut dims: Vec<usize> = order.iter().map(|&axis| self.shape()[axis]).collect();
        dims.splice(a..=a + 1, [n.saturating_mul(n)]);
        let flat = self.permute_unchecked(&order).reshape(dims)?;
        if n < 2 {
            return Ok(flat);
        }
        flat.stride(a as isize, 0, n + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::runtime::Runtime;
    use std::time::{Duration, Instant};

    /// What a call costs that was planned before, in the best of some batches: others of which may
    /// have had the processor for a part only.
    #[test]
    fn a_plan_that_is_known_costs_little() {
        let device = Runtime::default().device("reference").unwrap();
        let of = |shape: [usize; 2]| Tensor::zeros(shape, DType::F32, &device);
        let (a, b, c) = (of([64, 512]), of([512, 512]), of([512, 8]));
        let (spec, operands) = ("ij,jk,kl->il", [&a, &b, &c]);
        let first = plan(spec, &operands).unwrap();
        const BATCH: u32 = 200;
        let mut best = Duration::MAX;
        for _ in 0..300 {
            let start = Instant::now();
            for _ in 0..BATCH {
                assert!(Rc::ptr_eq(&plan(spec, &operands).unwrap(), &first));
            }
            best = best.min(start.elapsed() / BATCH);
        }
        // Without optimisation, what is promised of a release build would say nothing.
        let most = if cfg!(debug_assertions) { 1000 } else { 200 };
        assert!(best.as_nanos() <= most, "{best:?}");
        // Other shapes are another plan, and the first is kept.
        let other = plan(spec, &[&a, &b, &of([512, 9])]).unwrap();
        assert!(!Rc::ptr_eq(&other, &first));
        assert!(Rc::ptr_eq(&plan(spec, &operands).unwrap(), &first));
    }
}
