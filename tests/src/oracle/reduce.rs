//! Reductions, running sums, matrix products and positions of extremes.

use super::flush::{flushed, flushed_result};
use super::movement::{broadcast, indices};
use super::{Array, Val, arithmetic, wrap};
use crate::tolerance::{largest, product_error, smallest_normal, sum_error, ulp};
use zyx_core::{BinaryOp, Class, DType, UnaryOp};

/// The dtype sums of `dtype` are given in.
pub fn summed(dtype: DType) -> DType {
    match dtype.class() {
        Class::Bool | Class::Signed => DType::I64,
        Class::Unsigned => DType::U64,
        Class::Float => dtype,
    }
}

/// The dtype in which sums of `dtype` are formed.
pub fn accumulator(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// A sum that loses nothing that matters: Neumaier's compensated one.
fn exact_sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for x in terms {
        let next = sum + x;
        lost += if sum.abs() >= x.abs() { (sum - next) + x } else { (x - next) + sum };
        sum = next;
    }
    if lost.is_finite() { sum + lost } else { sum }
}

/// The sum of values of `dtype`, in any order, in its accumulator, rounded to `dtype`.
pub fn added(dtype: DType, terms: &[Val]) -> Val {
    if !dtype.is_float() {
        let mut sum = 0i128;
        for &x in terms {
            let Val::Int(x) = x else { return Val::Unknown };
            sum = if dtype == DType::Bool { sum | x } else { sum + x };
        }
        return Val::Int(wrap(dtype, sum));
    }
    let mut bounds = Vec::with_capacity(terms.len());
    for &x in terms {
        let Val::Real(low, high) = flushed(dtype, x) else { return Val::Unknown };
        bounds.push((low, high));
    }
    flushed_result(dtype, sum_of_bounds(dtype, &bounds, 0))
}

/// The sum of intervals; `products` roundings happened to each term before.
fn sum_of_bounds(dtype: DType, bounds: &[(f64, f64)], products: usize) -> Val {
    if bounds.iter().any(|x| x.0.is_nan()) {
        return Val::point(f64::NAN);
    }
    let wide = accumulator(dtype);
    let magnitudes = exact_sum(bounds.iter().map(|x| x.0.abs().max(x.1.abs())));
    if magnitudes.is_infinite() {
        let is = |s: f64| bounds.iter().any(|x| x.0 == s && x.1 == s);
        let half_open = bounds.iter().any(|x| x.0.is_infinite() != x.1.is_infinite());
        let finite: f64 =
            bounds.iter().map(|x| x.0.abs().max(x.1.abs())).filter(|x| x.is_finite()).sum();
        return match (is(f64::INFINITY), is(f64::NEG_INFINITY)) {
            _ if half_open || finite > largest(wide) => Val::Unknown,
            (true, true) => Val::point(f64::NAN),
            (true, false) => Val::point(f64::INFINITY),
            _ => Val::point(f64::NEG_INFINITY),
        };
    }
    if magnitudes > largest(wide) {
        return Val::Unknown;
    }
    let (low, high) =
        (exact_sum(bounds.iter().map(|x| x.0)), exact_sum(bounds.iter().map(|x| x.1)));
    let n = bounds.len().saturating_sub(1) + products;
    let error = sum_error(wide, n, magnitudes);
    if low == 0.0 && high == 0.0 && error == 0.0 {
        return Val::ZERO;
    }
    Val::interval(dtype, low - error, high + error)
}

/// The product of values of `dtype`, in any order.
fn multiplied(dtype: DType, terms: &[Val]) -> Val {
    if !dtype.is_float() {
        let mut product = 1i128;
        for &x in terms {
            let Val::Int(x) = x else { return Val::Unknown };
            product = wrap(dtype, product.wrapping_mul(x));
        }
        return Val::Int(product);
    }
    let wide = accumulator(dtype);
    // The largest and smallest magnitude that some order of multiplication meets.
    let (mut top, mut bottom) = (1.0f64, 1.0f64);
    let (mut low, mut high) = (1.0f64, 1.0f64);
    for &x in terms {
        let Val::Real(a, b) = flushed(dtype, x) else { return Val::Unknown };
        if a.is_nan() {
            return Val::point(f64::NAN);
        }
        if a != 0.0 || b != 0.0 {
            top *= a.abs().max(b.abs()).max(1.0);
            bottom *= if a < 0.0 && b > 0.0 { 0.0 } else { a.abs().min(b.abs()).min(1.0) };
        }
        let corners = [low * a, low * b, high * a, high * b];
        low = corners.iter().copied().fold(f64::INFINITY, f64::min);
        high = corners.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if corners.iter().any(|c| c.is_nan()) {
            return Val::Unknown;
        }
    }
    if top > largest(wide) || bottom < smallest_normal(wide) {
        return Val::Unknown;
    }
    let error = product_error(wide, terms.len().saturating_sub(1));
    Val::interval(dtype, low - low.abs() * error, high + high.abs() * error)
}

/// The result of combining values of `dtype`; halves are accumulated in `f32`.
pub fn combined(op: BinaryOp, dtype: DType, terms: &[Val]) -> Val {
    match op {
        BinaryOp::Add => added(dtype, terms),
        BinaryOp::Mul => multiplied(dtype, terms),
        _ => {
            let first = identity(op, dtype);
            terms.iter().fold(first, |x, &y| arithmetic::binary(op, dtype, x, y))
        }
    }
}

/// What an empty reduction gives.
fn identity(op: BinaryOp, dtype: DType) -> Val {
    let (low, high) = if dtype.is_float() {
        (Val::point(f64::NEG_INFINITY), Val::point(f64::INFINITY))
    } else {
        let range = super::int_range(dtype);
        (Val::Int(range.0), Val::Int(range.1))
    };
    match op {
        BinaryOp::Max => low,
        BinaryOp::Min => high,
        BinaryOp::And if dtype == DType::Bool => Val::Int(1),
        BinaryOp::Or | BinaryOp::Xor => Val::Int(0),
        _ => unreachable!("invariant: {op} does not reduce {dtype} in the public interface"),
    }
}

impl Array {
    /// Combines the elements along the axes of `mask`, which disappear unless `keep`.
    #[must_use]
    pub fn reduce(&self, op: BinaryOp, mask: u16, keep: bool) -> Array {
        let kept: Vec<usize> = (0..self.rank())
            .map(|axis| if mask >> axis & 1 == 1 { 1 } else { self.dims[axis] })
            .collect();
        let mut out = Array::full(self.dtype, &kept, Val::Unknown);
        let mut groups: Vec<Vec<Val>> = vec![Vec::new(); out.numel()];
        for mut index in indices(&self.dims) {
            let element = self.at(&index);
            (0..self.rank()).filter(|axis| mask >> axis & 1 == 1).for_each(|axis| index[axis] = 0);
            groups[out.flat(&index)].push(element);
        }
        out.data = groups.iter().map(|terms| combined(op, self.dtype, terms)).collect();
        if !keep {
            let axes = (0..self.rank()).filter(|axis| mask >> axis & 1 == 0);
            out.dims = axes.map(|axis| self.dims[axis]).collect();
        }
        out
    }

    /// Sum, widened as the library documents.
    #[must_use]
    pub fn sum(&self, mask: u16, keep: bool) -> Array {
        self.cast(summed(self.dtype)).reduce(BinaryOp::Add, mask, keep)
    }

    /// Product, widened as the library documents.
    #[must_use]
    pub fn prod(&self, mask: u16, keep: bool) -> Array {
        self.cast(summed(self.dtype)).reduce(BinaryOp::Mul, mask, keep)
    }

    /// Inclusive running combination along an axis.
    #[must_use]
    pub fn scan(&self, op: BinaryOp, axis: usize, reverse: bool) -> Array {
        let mut out = self.clone();
        for index in indices(&self.dims) {
            let (at, extent) = (index[axis], self.dims[axis]);
            let positions: Vec<usize> =
                if reverse { (at..extent).rev().collect() } else { (0..=at).collect() };
            let term = |&position: &usize| {
                let mut index = index.clone();
                index[axis] = position;
                self.at(&index)
            };
            let terms: Vec<Val> = positions.iter().map(term).collect();
            let flat = out.flat(&index);
            out.data[flat] = combined(op, self.dtype, &terms);
        }
        out
    }

    /// `exp(x - max)` times the reciprocal of its sum, along one axis. Numbers that are no floats become `f32`.
    pub fn softmax(&self, axis: usize) -> Array {
        let dtype = if self.dtype.is_float() { self.dtype } else { DType::F32 };
        let x = self.cast(accumulator(dtype));
        if x.numel() == 0 {
            return x.cast(dtype);
        }
        let top = x.reduce(BinaryOp::Max, 1 << axis, true);
        let parts = x.binary(BinaryOp::Sub, &top).unary(UnaryOp::Exp);
        let scale = parts.sum(1 << axis, true).unary(UnaryOp::Recip);
        parts.product(&scale).cast(dtype)
    }

    /// The running logarithm of sums of exponentials, within the errors of a few steps; unknown where an
    /// element is not a known finite number.
    pub fn log_cumsum_exp(&self, axis: usize) -> Array {
        const STEPS: f64 = 8.0;
        let wide = accumulator(self.dtype);
        let x = self.cast(wide);
        let mut out = self.clone();
        for index in indices(&self.dims) {
            let term = |position: usize| {
                let mut index = index.clone();
                index[axis] = position;
                x.at(&index).certain().filter(|x| x.is_finite())
            };
            let terms: Option<Vec<f64>> = (0..=index[axis]).map(term).collect();
            let flat = out.flat(&index);
            out.data[flat] = terms.map_or(Val::Unknown, |terms| {
                let top = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = terms.iter().map(|x| (x - top).exp()).sum();
                // Terms far below the largest add nothing, however large they are.
                let scale = terms.iter().filter(|x| top - **x < 1000.0);
                let scale = scale.fold(1.0, |scale: f64, x| scale.max(x.abs()));
                let error = STEPS * terms.len() as f64 * ulp(wide, scale);
                Val::about(self.dtype, top + sum.ln(), error)
            });
        }
        out
    }

    /// Position of the first largest (smallest) element along an axis; NaN wins.
    #[must_use]
    pub fn arg_extreme(&self, op: BinaryOp, axis: usize) -> Array {
        let mut dims = self.dims.clone();
        let extent = dims.remove(axis);
        let position = |index: Vec<usize>| {
            let term = |at: usize| {
                let mut index = index.clone();
                index.insert(axis, at);
                self.at(&index)
            };
            let terms: Vec<Val> = (0..extent).map(term).collect();
            let is_nan = |x: &Val| matches!(x, Val::Real(low, _) if low.is_nan());
            if let Some(at) = terms.iter().position(is_nan) {
                // One before that is not known may be the first.
                let is_known = !terms[..at].contains(&Val::Unknown);
                return if is_known { Val::Int(at as i128) } else { Val::Unknown };
            }
            let beats = |x: Val, y: Val| match op {
                BinaryOp::Max => arithmetic::binary(BinaryOp::Lt, self.dtype, y, x),
                _ => arithmetic::binary(BinaryOp::Lt, self.dtype, x, y),
            };
            let mut best = 0;
            for at in 1..extent {
                match beats(terms[at], terms[best]) {
                    Val::Int(0) => {}
                    Val::Int(_) => best = at,
                    _ => return Val::Unknown,
                }
            }
            Val::Int(best as i128)
        };
        Array::new(DType::I64, &dims, indices(&dims).map(position).collect())
    }

    /// Matrix product over the last two axes with broadcast leading axes.
    #[must_use]
    pub fn matmul(&self, rhs: &Array) -> Array {
        let dtype = arithmetic::promote(self.dtype, rhs.dtype);
        let dtype = if dtype == DType::Bool { DType::I64 } else { dtype };
        let (x, y) = (self.cast(dtype), rhs.cast(dtype));
        let x = if x.rank() == 1 { x.reshape(&[1, x.numel()]) } else { x };
        let y = if y.rank() == 1 { y.reshape(&[y.numel(), 1]) } else { y };
        let (xr, yr) = (x.rank(), y.rank());
        let (m, k, n) = (x.dims[xr - 2], x.dims[xr - 1], y.dims[yr - 1]);
        let lead = broadcast(&x.dims[..xr - 2], &y.dims[..yr - 2]);
        let x = x.expand(&[lead.as_slice(), &[m, k]].concat());
        let y = y.expand(&[lead.as_slice(), &[k, n]].concat());
        let dims = [lead.as_slice(), &[m, n]].concat();
        let element = |index: Vec<usize>| {
            let (batch, at) = index.split_at(lead.len());
            let term = |i: usize| {
                let x = x.at(&[batch, &[at[0], i]].concat());
                (x, y.at(&[batch, &[i, at[1]]].concat()))
            };
            inner_product(dtype, (0..k).map(term))
        };
        let data = indices(&dims).map(element).collect();
        let mut kept = lead.clone();
        kept.extend((self.rank() > 1).then_some(m));
        kept.extend((rhs.rank() > 1).then_some(n));
        Array::new(dtype, &kept, data)
    }
}

/// The sum of products, each rounded or not, in the accumulator of `dtype`.
pub fn inner_product(dtype: DType, terms: impl Iterator<Item = (Val, Val)>) -> Val {
    if !dtype.is_float() {
        let products: Vec<Val> =
            terms.map(|(x, y)| arithmetic::binary(BinaryOp::Mul, dtype, x, y)).collect();
        return added(dtype, &products);
    }
    let mut bounds = Vec::new();
    for term in terms {
        let term = (flushed(dtype, term.0), flushed(dtype, term.1));
        let (Val::Real(a, b), Val::Real(c, d)) = term else { return Val::Unknown };
        let corners = [a * c, a * d, b * c, b * d];
        let is_point = a == b && c == d;
        let may_be_nan = corners.iter().any(|x| x.is_nan())
            || arithmetic::spans_zero_by_infinity((a, b), (c, d));
        if may_be_nan && !(a.is_nan() || c.is_nan() || is_point) {
            return Val::Unknown;
        }
        let low = corners.iter().copied().fold(f64::INFINITY, f64::min);
        let high = corners.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        bounds.push(if corners[0].is_nan() { (f64::NAN, f64::NAN) } else { (low, high) });
    }
    flushed_result(dtype, sum_of_bounds(dtype, &bounds, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_the_stated_bound() {
        let ones = vec![Val::point(1.0); 1000];
        let Val::Real(low, high) = added(DType::F32, &ones) else { unreachable!() };
        assert!(low < 1000.0 && high > 1000.0 && high - low < 0.2, "{low} {high}");
        assert_eq!(added(DType::F32, &ones[..1]), Val::point(1.0));
        let nan = [Val::point(f64::INFINITY), Val::point(f64::NEG_INFINITY)];
        assert!(added(DType::F32, &nan).certain().is_some_and(f64::is_nan));
    }

    #[test]
    fn what_is_unknown_may_be_the_first_that_is_no_number() {
        let nan = Val::point(f64::NAN);
        let first = |terms: [Val; 2]| {
            Array::new(DType::F32, &[2], terms.to_vec()).arg_extreme(BinaryOp::Max, 0).data[0]
        };
        assert_eq!(first([Val::Unknown, nan]), Val::Unknown);
        assert_eq!(first([nan, Val::Unknown]), Val::Int(0));
        assert_eq!(first([Val::ZERO, nan]), Val::Int(1));
    }

    #[test]
    fn products_know_when_the_order_matters() {
        let terms = [1e30, 1e30, 1e-30, 1e-30].map(Val::point);
        assert_eq!(combined(BinaryOp::Mul, DType::F32, &terms), Val::Unknown);
        assert!(matches!(combined(BinaryOp::Mul, DType::F64, &terms), Val::Real(..)));
    }
}
