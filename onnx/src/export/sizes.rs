//! Extents as functions of named dimensions.
//!
//! A function is traced with a few sizes of its named dimensions. What differs between traces is the polynomial of
//! degree [`DEGREE`] through them; traces that it was not made from have to agree with it. Everything else of the
//! traces must be equal.

use std::collections::{BTreeMap, HashMap};
use zyx_core::tensor::{Step, StepOp, Steps};
use zyx_core::{DType, Scalar, Tensor};

/// Degree of the products of named dimensions that an extent may be a sum of.
const DEGREE: usize = 3;

/// Exponents of the named dimensions, in their order.
type Monomial = Vec<u8>;

/// A polynomial in the named dimensions whose values are integers: a sum of multiples, divided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Size {
    /// Never with a factor of 0.
    pub(super) terms: BTreeMap<Monomial, i128>,
    pub(super) divisor: i128,
}

impl Size {
    pub(super) fn fixed(n: i128) -> Size {
        let terms = if n == 0 { BTreeMap::new() } else { [(Vec::new(), n)].into() };
        Size { terms, divisor: 1 }
    }

    pub(super) fn symbol(i: usize) -> Size {
        let mut exponents = vec![0; i + 1];
        exponents[i] = 1;
        Size { terms: [(exponents, 1)].into(), divisor: 1 }
    }

    /// The number, if it depends on no dimension.
    pub(super) fn constant(&self) -> Option<i64> {
        match self.terms.iter().next() {
            None => Some(0),
            Some((exponents, n)) if self.terms.len() == 1 && exponents.is_empty() => {
                i64::try_from(*n).ok()
            }
            Some(_) => None,
        }
    }

    pub(super) fn is_one(&self) -> bool {
        self.constant() == Some(1)
    }

    fn normalized(terms: BTreeMap<Monomial, i128>, divisor: i128) -> Size {
        let terms: BTreeMap<_, _> = terms.into_iter().filter(|(_, n)| *n != 0).collect();
        let common = terms.values().fold(divisor, |a, &b| gcd(a, b)).max(1);
        let terms = terms.into_iter().map(|(exponents, n)| (exponents, n / common)).collect();
        Size { terms, divisor: divisor / common }
    }

    pub(super) fn plus(&self, other: &Size) -> Size {
        let divisor = self.divisor * other.divisor;
        let mut terms = BTreeMap::new();
        for (own, by) in [(self, other.divisor), (other, self.divisor)] {
            for (exponents, n) in &own.terms {
                *terms.entry(exponents.clone()).or_insert(0) += n * by;
            }
        }
        Size::normalized(terms, divisor)
    }

    pub(super) fn times(&self, other: &Size) -> Size {
        let mut terms = BTreeMap::new();
        for (a, n) in &self.terms {
            for (b, m) in &other.terms {
                let at = |of: &Monomial, i: usize| of.get(i).copied().unwrap_or(0);
                let both = (0..a.len().max(b.len())).map(|i| at(a, i) + at(b, i)).collect();
                *terms.entry(both).or_insert(0) += n * m;
            }
        }
        Size::normalized(terms, self.divisor * other.divisor)
    }

    /// The value at sizes of the named dimensions.
    fn at(&self, sizes: &[usize]) -> Option<i128> {
        let mut sum = 0i128;
        for (exponents, &n) in &self.terms {
            let powers =
                exponents.iter().zip(sizes).map(|(&e, &n)| (n as i128).checked_pow(e.into()));
            let product =
                powers.into_iter().try_fold(n, |product, power| product.checked_mul(power?));
            sum = sum.checked_add(product?)?;
        }
        (sum % self.divisor == 0).then_some(sum / self.divisor)
    }

    /// In words, with the names of dimensions.
    pub(super) fn describe(&self, names: &[String]) -> String {
        let term = |(exponents, n): (&Monomial, &i128)| {
            let power = |(i, &e): (usize, &u8)| vec![names[i].as_str(); usize::from(e)];
            let factors: Vec<&str> = exponents.iter().enumerate().flat_map(power).collect();
            match (factors.is_empty(), *n) {
                (true, n) => n.to_string(),
                (false, 1) => factors.join("*"),
                (false, n) => format!("{n}*{}", factors.join("*")),
            }
        };
        let sum = self.terms.iter().rev().map(term).collect::<Vec<_>>().join(" + ");
        match (self.terms.is_empty(), self.divisor, self.terms.len()) {
            (true, ..) => "0".to_owned(),
            (_, 1, _) => sum,
            (_, divisor, 1) => format!("{sum}/{divisor}"),
            (_, divisor, _) => format!("({sum})/{divisor}"),
        }
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

/// The sizes of the named dimensions that a function is traced with, and how numbers of those traces become
/// polynomials.
pub(super) struct Grid {
    names: Vec<String>,
    /// Of each dimension, the least size and the distance to the next.
    dims: Vec<(usize, usize)>,
    /// Numbers of steps from the least sizes.
    lattice: Vec<Vec<usize>>,
    /// Sizes by trace: those of the lattice, then those that are compared with what they gave.
    pub(super) sizes: Vec<Vec<usize>>,
    known: HashMap<Vec<i128>, Option<Size>>,
}

impl Grid {
    pub(super) fn new(names: Vec<String>, dims: Vec<(usize, usize)>) -> Grid {
        let mut lattice: Vec<Vec<usize>> = vec![Vec::new()];
        for _ in &dims {
            let longer = |point: &Vec<usize>| {
                let room = DEGREE - point.iter().sum::<usize>();
                let point = point.clone();
                (0..=room).map(move |steps| [&point[..], &[steps]].concat())
            };
            lattice = lattice.iter().flat_map(longer).collect();
        }
        let size = |point: &Vec<usize>| {
            dims.iter().zip(point).map(|(&(least, step), &steps)| least + step * steps).collect()
        };
        let mut sizes: Vec<Vec<usize>> = lattice.iter().map(size).collect();
        sizes.push(size(&(0..dims.len()).map(|i| 5 + 3 * i).collect()));
        Grid { names, dims, lattice, sizes, known: HashMap::new() }
    }

    /// Further sizes, at which the function is traced if it does not refuse them: small ones of those dimensions that may
    /// have any, and large ones, one at a time, so that each dimension is the smallest and the largest once.
    pub(super) fn further(&self, may_be_small: &[bool]) -> Vec<Vec<usize>> {
        let least = || self.dims.iter().map(|dim| dim.0).enumerate();
        let small = |n: usize, only: Option<usize>| -> Vec<usize> {
            let is_small = |i: usize| may_be_small[i] && only.is_none_or(|only| only == i);
            least().map(|(i, least)| if is_small(i) { n } else { least }).collect()
        };
        let large = |large: usize| {
            let size = |(i, least): (usize, usize)| {
                least + if i == large { 50 * self.dims[i].1 } else { 0 }
            };
            least().map(size).collect()
        };
        let each = 0..self.dims.len();
        let mut all = vec![small(2, None), small(3, None)];
        all.extend(each.clone().map(|i| small(2, Some(i))));
        all.extend(each.map(large));
        all.sort_unstable();
        all.dedup();
        all.retain(|sizes| !self.sizes.contains(sizes));
        all
    }

    /// The polynomial that has these values, one for each trace.
    pub(super) fn fit(&mut self, values: &[i128]) -> Option<Size> {
        if values.iter().all(|&value| value == values[0]) {
            return Some(Size::fixed(values[0]));
        }
        if let Some(known) = self.known.get(values) {
            return known.clone();
        }
        let size = self.interpolate(values);
        let fits = |size: &Size| {
            self.sizes.iter().zip(values).all(|(sizes, &value)| size.at(sizes) == Some(value))
        };
        let size = size.filter(fits);
        self.known.insert(values.to_vec(), size.clone());
        size
    }

    /// That a trace does something else than the first.
    fn differ(&self, trace: usize, what: &str) -> String {
        let sizes = |i: usize| {
            let named = self.names.iter().zip(&self.sizes[i]);
            named.map(|(name, n)| format!("{name} = {n}")).collect::<Vec<_>>().join(", ")
        };
        if self.sizes[trace] == self.sizes[0] {
            return format!("the function does something else when it is called again: {what}");
        }
        format!(
            "the function does something else for {} than for {}: {what}. A graph of ONNX does the same for all sizes: give \
             the dimension a number, or the sizes from which on, and in steps of which, it is one graph (`Export::size`)",
            sizes(trace),
            sizes(0)
        )
    }

    /// By forward differences (Newton).
    fn interpolate(&self, values: &[i128]) -> Option<Size> {
        let value: HashMap<&[usize], i128> =
            self.lattice.iter().map(Vec::as_slice).zip(values.iter().copied()).collect();
        let choose =
            |n: usize, k: usize| (0..k).fold(1i128, |c, i| c * (n - i) as i128 / (i as i128 + 1));
        let mut sum = Size::fixed(0);
        for alpha in &self.lattice {
            let below = |beta: &&Vec<usize>| beta.iter().zip(alpha).all(|(b, a)| b <= a);
            let term = |beta: &Vec<usize>| {
                let weight: i128 = beta.iter().zip(alpha).map(|(&b, &a)| choose(a, b)).product();
                let odd = (alpha.iter().sum::<usize>() - beta.iter().sum::<usize>()) % 2 == 1;
                value[beta.as_slice()] * weight * if odd { -1 } else { 1 }
            };
            let difference: i128 = self.lattice.iter().filter(below).map(term).sum();
            if difference == 0 {
                continue;
            }
            let mut product = Size::fixed(difference);
            for (i, (&order, &(least, step))) in alpha.iter().zip(&self.dims).enumerate() {
                for t in 0..order {
                    let from = -((least + step * t) as i128);
                    let factor = Size::symbol(i).plus(&Size::fixed(from));
                    let divisor = factor.divisor * (step * (t + 1)) as i128;
                    product = product.times(&Size::normalized(factor.terms, divisor));
                }
            }
            sum = sum.plus(&product);
        }
        Some(sum)
    }
}

/// A constant that is a number, or follows from sizes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Number {
    Fixed(Scalar),
    Size(Size),
    Reciprocal(Size),
}

/// A step of all traces.
#[derive(Clone, Debug)]
pub(super) struct Symbolic {
    /// As in the first trace.
    pub(super) op: StepOp,
    pub(super) sources: Vec<usize>,
    pub(super) dtype: DType,
    /// Extents; none where one is no such polynomial.
    pub(super) dims: Option<Vec<Size>>,
    /// Of a padding, zeros before and after each axis in turn; of a slice, where it starts.
    pub(super) places: Option<Vec<Size>>,
    pub(super) number: Option<Number>,
    /// Of the first trace.
    pub(super) tensor: Tensor,
    /// Whether it depends on no input and no size; and whether on tensors that the caller named.
    pub(super) is_static: bool,
    pub(super) has_weights: bool,
}

/// The steps of traces that differ in sizes alone, or the sentence that says what else differs. The first of the
/// known tensors are weights with names.
pub(super) fn join(
    traces: &[Steps],
    grid: &mut Grid,
    weights: usize,
) -> Result<Vec<Symbolic>, String> {
    let first = &traces[0];
    let differs =
        |trace: &Steps| trace.steps.len() != first.steps.len() || trace.outputs != first.outputs;
    if let Some(i) = traces.iter().position(differs) {
        let (more, less) = (traces[i].steps.len(), first.steps.len());
        return Err(grid.differ(i, &format!("{more} operations, not {less}")));
    }
    let mut joined: Vec<Symbolic> = Vec::with_capacity(first.steps.len());
    for i in 0..first.steps.len() {
        let all: Vec<&Step> = traces.iter().map(|trace| &trace.steps[i]).collect();
        joined.push(one(&all, grid, &joined, weights)?);
    }
    Ok(joined)
}

/// What an op says besides numbers that may depend on sizes, and those numbers.
fn parts(op: &StepOp) -> (StepOp, Vec<usize>) {
    match op {
        StepOp::Pad(list) => {
            (StepOp::Pad(Vec::new()), list.iter().flat_map(|&(a, b)| [a, b]).collect())
        }
        StepOp::Shrink(starts) => (StepOp::Shrink(Vec::new()), starts.clone()),
        StepOp::Const(x) => (StepOp::Const(Scalar::from_i64(x.dtype(), 0)), Vec::new()),
        StepOp::Value(_) => (StepOp::Value(None), Vec::new()),
        other => (other.clone(), Vec::new()),
    }
}

fn one(
    all: &[&Step],
    grid: &mut Grid,
    before: &[Symbolic],
    weights: usize,
) -> Result<Symbolic, String> {
    let first = all[0];
    let (kind, numbers) = parts(&first.op);
    let dtype = first.tensor.dtype();
    for (i, step) in all.iter().enumerate() {
        let (other, others) = parts(&step.op);
        let same = other == kind
            && others.len() == numbers.len()
            && step.sources == first.sources
            && step.tensor.dtype() == dtype
            && step.tensor.rank() == first.tensor.rank();
        if !same {
            let (a, b) = (step.tensor.shape(), first.tensor.shape());
            let what = format!("{:?} of shape {a}, not {:?} of shape {b}", step.op, first.op);
            return Err(grid.differ(i, &what));
        }
    }
    let mut fit = |number: &dyn Fn(&Step, usize) -> usize, n: usize| -> Option<Vec<Size>> {
        let value = |i| all.iter().map(|step| number(step, i) as i128).collect::<Vec<i128>>();
        (0..n).map(|i| grid.fit(&value(i))).collect()
    };
    let dims = fit(&|step, i| step.tensor.shape()[i], first.tensor.rank());
    let places = fit(&|step, i| parts(&step.op).1[i], numbers.len());
    let number = match &first.op {
        StepOp::Const(_) => Some(number(all, grid)?),
        _ => None,
    };
    if matches!(first.op, StepOp::Value(_)) {
        same_values(all)?;
    }
    let fixed = |sizes: &Option<Vec<Size>>| {
        sizes.as_ref().is_some_and(|sizes| sizes.iter().all(|size| size.constant().is_some()))
    };
    let of_static = |&source: &usize| before[source].is_static;
    let is_static = !matches!(first.op, StepOp::Input(_))
        && fixed(&dims)
        && fixed(&places)
        && matches!(number, None | Some(Number::Fixed(_)))
        && first.sources.iter().all(of_static);
    let has_weights = matches!(first.op, StepOp::Value(Some(known)) if known < weights)
        || first.sources.iter().any(|&source| before[source].has_weights);
    let (op, sources, tensor) = (first.op.clone(), first.sources.clone(), first.tensor.clone());
    Ok(Symbolic { op, sources, dtype, dims, places, number, tensor, is_static, has_weights })
}

/// A constant of all traces.
fn number(all: &[&Step], grid: &mut Grid) -> Result<Number, String> {
    let scalars = all.iter().filter_map(|step| match step.op {
        StepOp::Const(x) => Some(x),
        _ => None,
    });
    let scalars: Vec<Scalar> = scalars.collect();
    let first = scalars[0];
    if scalars.iter().all(|x| x.bits() == first.bits()) {
        return Ok(Number::Fixed(first));
    }
    let dtype = first.dtype();
    let whole: Option<Vec<i128>> = match dtype.is_float() {
        true => scalars.iter().map(|x| integer(x.to_f64())).collect(),
        false => Some(scalars.iter().map(|x| x.to_i128()).collect()),
    };
    if let Some(size) = whole.and_then(|values| grid.fit(&values)) {
        return Ok(Number::Size(size));
    }
    let reciprocal = |x: &Scalar| {
        let n = integer((1.0 / x.to_f64()).round())?;
        (Scalar::from_f64(dtype, 1.0 / n as f64).bits() == x.bits()).then_some(n)
    };
    let inverse: Option<Vec<i128>> =
        scalars.iter().filter(|_| dtype.is_float()).map(reciprocal).collect();
    let inverse = inverse.filter(|values| values.len() == scalars.len());
    if let Some(size) = inverse.and_then(|values| grid.fit(&values)) {
        return Ok(Number::Reciprocal(size));
    }
    let values: Vec<String> = scalars.iter().take(4).map(|x| x.to_f64().to_string()).collect();
    Err(format!(
        "a number differs from trace to trace without being a size or its reciprocal ({}, ..): random numbers \
         (dropout: switch the module to `eval`), or a number computed from sizes",
        values.join(", ")
    ))
}

fn integer(x: f64) -> Option<i128> {
    (x.fract() == 0.0 && x.abs() < 1e15).then_some(x as i128)
}

/// Tensors with values are the same in every trace, or have the same content.
fn same_values(all: &[&Step]) -> Result<(), String> {
    let first = all[0];
    if matches!(first.op, StepOp::Value(Some(_))) && all.iter().all(|step| step.op == first.op) {
        return Ok(());
    }
    let bytes = |step: &Step| step.tensor.to_bytes().map_err(|error| error.to_string());
    let mut expected = None;
    for step in &all[1..] {
        if expected.is_none() {
            expected = Some(bytes(first)?);
        }
        if !step.tensor.shape().same(first.tensor.shape()) || Some(bytes(step)?) != expected {
            return Err(format!(
                "a {} tensor of shape {} that the function makes of numbers is another in each trace: make it before, or \
                 from `Tensor` methods if it depends on sizes",
                first.tensor.dtype(),
                first.tensor.shape()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_sums_and_quotients_are_found() {
        let mut grid = Grid::new(vec!["b".to_owned(), "n".to_owned()], vec![(16, 1), (24, 4)]);
        grid.sizes.extend(grid.further(&[true, false]));
        type Law = fn(i128, i128) -> i128;
        let laws: [(Law, &str); 7] = [
            (|_, _| 7, "7"),
            (|b, _| b, "b"),
            (|b, n| b * n, "b*n"),
            (|b, n| 3 * b * n * n + 5, "3*b*n*n + 5"),
            (|_, n| n / 4, "n/4"),
            (|_, n| (n - 2) / 2 + 1, "n/2"),
            (|b, n| b * (n + 3), "b*n + 3*b"),
        ];
        let names = ["b".to_owned(), "n".to_owned()];
        for (law, text) in laws {
            let values: Vec<i128> =
                grid.sizes.iter().map(|s| law(s[0] as i128, s[1] as i128)).collect();
            let size = grid.fit(&values).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(size.describe(&names), text);
            for sizes in [[1, 4], [5, 100]] {
                assert_eq!(
                    size.at(&sizes),
                    Some(law(sizes[0] as i128, sizes[1] as i128)),
                    "{text}"
                );
            }
        }
        for law in [(|b, _| b / 2) as Law, |b, n| (b + n) % 5, |b, n| b.max(n)] {
            let values: Vec<i128> =
                grid.sizes.iter().map(|s| law(s[0] as i128, s[1] as i128)).collect();
            assert!(grid.fit(&values).is_none());
        }
    }
}
