//! Scaled dot-product attention (Vaswani et al. 2017), written so that scheduling can fuse it: two
//! contractions with a softmax between them that every step of the first one's result passes
//! elementwise or along one axis, and nothing that has to be stored in between.
//!
//! Grouped heads (Ainslie et al. 2023) cost no copy of keys or values: the queries of one group
//! are more rows of the same product.
//!
//! Between its two products halves are computed in `f32`. What enters a product is a half again,
//! the weights and in the gradient those of the scores too, as matrix instructions want it: so
//! scores are scaled after their product, and sums are of exact products. Beside the rounding of
//! the result, that of weights in `0 ..= 1` by half a unit in the last place matters as little as
//! it does in PyTorch, which rounds at the same places.

use super::{Rng, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::shape::Shape;

/// What [`Tensor::scaled_dot_product_attention`] does beyond softmax and products.
///
/// ```
/// use zyx::Attention;
/// let decoder = Attention { causal: true, ..Default::default() };
/// assert!(decoder.mask.is_none() && !decoder.grouped);
/// ```
#[derive(Debug, Default)]
pub struct Attention<'a> {
    /// Where attention may go, `[.., queries, keys]`: bools (true lets through) or numbers that are
    /// added to the scores. Broadcasts.
    pub mask: Option<&'a Tensor>,
    /// Whether query `i` sees only the keys `0 ..= i`.
    pub causal: bool,
    /// The factor of the scores; `1 / sqrt(width)` if not given.
    pub scale: Option<f64>,
    /// Whether there may be fewer heads of keys and values (the axis before the last two) than of
    /// queries, each serving as many queries' heads as fit.
    pub grouped: bool,
    /// The probability that a weight is set to zero, and where the coins come from.
    pub dropout: Option<(f64, &'a mut Rng)>,
}

impl Tensor {
    /// `softmax(scale q k^T + mask) v` of queries `[.., l, e]` (`self`), keys `[.., s, e]` and
    /// values `[.., s, d]`: `[.., l, d]` in the queries' dtype. Leading axes broadcast. A query
    /// that may attend to nothing gives zeros.
    ///
    /// ```
    /// # use zyx::{Attention, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let q = Tensor::new([[0f32, 0.0], [0.0, 0.0]], &device)?;
    /// let v = Tensor::new([[2f32], [4.0]], &device)?;
    /// let y = q.scaled_dot_product_attention(&q, &v, Attention::default())?;
    /// assert_eq!(y.to_vec::<f32>()?, [3.0, 3.0]);
    /// let causal = Attention { causal: true, ..Default::default() };
    /// let y = q.scaled_dot_product_attention(&q, &v, causal)?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes or heads do not fit each other, the mask does not broadcast, the operands do
    /// not hold floats or are on different devices, or dropout is not a probability.
    #[track_caller]
    pub fn scaled_dot_product_attention(
        &self,
        key: &Tensor,
        value: &Tensor,
        options: Attention<'_>,
    ) -> Result<Tensor> {
        let _here = composed();
        self.attend(key, value, options).named("scaled_dot_product_attention")
    }

    #[track_caller]
    fn attend(&self, key: &Tensor, value: &Tensor, options: Attention<'_>) -> Result<Tensor> {
        const OP: &str = "scaled_dot_product_attention";
        let groups = self.check_attention(key, value, &options)?;
        let width = self.shape()[self.rank() - 1];
        let scale = options.scale.unwrap_or(1.0 / (width as f64).sqrt());
        let half = Some(self.dtype()).filter(|&dtype| {
            matches!(dtype, DType::F16 | DType::BF16)
                && key.dtype() == dtype
                && value.dtype() == dtype
        });
        let [q, k, v] = [self, key, value].map(Tensor::wide);
        let heads = q.shape().to_vec();
        // The queries of a group of heads are more rows of one product with their keys.
        let scores = q.grouped_rows(groups)?.matmul(&k.t())?;
        let scores = if groups > 1 { scores.ungrouped_rows(&heads)? } else { scores };
        let scores = match half {
            Some(half) => scores.with_gradient_in(half)?,
            None => scores,
        };
        // Queries have fewer elements, but scaling them would be a launch of its own.
        let mut scores = scores.mul(scale)?;
        let (queries, keys) = (self.shape()[self.rank() - 2], key.shape()[key.rank() - 2]);
        let hidden = scores.like(f64::NEG_INFINITY);
        if options.causal {
            let row = Tensor::iota(queries, DType::I64, self.device()).unsqueeze(-1)?;
            let seen = Tensor::iota(keys, DType::I64, self.device()).le(&row)?;
            scores = seen.where_(&scores, &hidden)?;
        }
        if let Some(mask) = options.mask {
            let shape = scores.shape().clone();
            scores = match mask.dtype() {
                DType::Bool => mask.where_(&scores, &hidden)?,
                _ => scores.add(mask.cast(scores.dtype()))?,
            };
            if !scores.shape().same(&shape) {
                let reason = format!("the mask must broadcast to the scores, {shape}");
                return Err(Tensor::shape_error(OP, &[self, key, mask], reason));
            }
        }
        let mut weights = scores.safe_softmax()?;
        let drops = options.dropout.is_some();
        if let Some((p, rng)) = options.dropout {
            weights = weights.dropout(p, rng)?;
        }
        let weights = weights.rounded_to(half)?.grouped_rows(groups)?;
        let y = weights.matmul(&v)?;
        let y = if groups > 1 { y.ungrouped_rows(&heads)? } else { y };
        let y = y.cast(self.dtype());
        let leading = |t: &Tensor| Shape::from(&t.shape()[..t.rank() - 2]);
        match drops || !leading(&weights).same(&leading(&v)) {
            true => Ok(y),
            false => y.with_weights_gradient(&scores, &v, (groups, half)),
        }
    }

    /// Itself, with a gradient that is rounded to a half: a factor of products.
    #[track_caller]
    fn with_gradient_in(&self, half: DType) -> Result<Tensor> {
        self.with_gradient(&[self], move |_, _, dy| Ok(vec![Some(dy.rounded_to(Some(half))?)]))
    }

    /// Rounded to a half, if there is one, in the dtype it has. Its gradient is not rounded.
    #[track_caller]
    fn rounded_to(&self, half: Option<DType>) -> Result<Tensor> {
        match half {
            Some(half) => {
                let rounded = self.cast(half).cast(self.dtype());
                rounded.with_gradient(&[self], |_, _, dy| Ok(vec![Some(dy.clone())]))
            }
            None => Ok(self.clone()),
        }
    }

    /// `softmax(scores) values` with a gradient in which nothing but the products themselves has as
    /// many elements as the scores: the sum over all keys of weight times its gradient, which the
    /// gradient of a softmax needs, is that over the result's width of result times its gradient
    /// (Dao et al. 2022).
    #[track_caller]
    fn with_weights_gradient(
        &self,
        scores: &Tensor,
        values: &Tensor,
        (groups, half): (usize, Option<DType>),
    ) -> Result<Tensor> {
        self.with_gradient(&[scores, values], move |inputs, y, dy| {
            let [scores, values] = inputs else { return Ok(Vec::new()) };
            let (y, dy) = (y.cast(scores.dtype()), dy.cast(scores.dtype()));
            let weights = scores.safe_softmax()?;
            let rows = dy.grouped_rows(groups)?;
            let dw = rows.matmul(&values.t())?;
            let dw = if groups > 1 { dw.ungrouped_rows(scores.shape())? } else { dw };
            let sum = dy.mul(&y)?.reduce(BinaryOp::Add, 1 << (y.rank() - 1));
            // Beside the rows of that product, it would keep a GPU from computing it in blocks.
            let sum = if scores.is_stored(half) { sum.contiguous() } else { sum };
            let dscores = dw.sub(&sum)?.mul(&weights)?;
            let weights = weights.rounded_to(half)?.grouped_rows(groups)?;
            let dvalues = weights.t().matmul(&rows)?;
            Ok(vec![Some(dscores), Some(dvalues)])
        })
    }

    /// Whether a device of many threads stores scores like these, also in the gradient, instead of
    /// streaming along them.
    fn is_stored(&self, half: Option<DType>) -> bool {
        let caps = self.device().caps();
        let teams = half.is_some_and(|half| caps.mma.contains(half));
        let bytes = (self.numel() * self.dtype().size()) as u64;
        caps.simt && !teams && caps.flash.is_none_or(|streams| bytes < streams.large)
    }

    /// How many heads of queries share one of keys.
    fn check_attention(&self, key: &Tensor, value: &Tensor, of: &Attention<'_>) -> Result<usize> {
        const OP: &str = "scaled_dot_product_attention";
        let all: Vec<&Tensor> = [self, key, value].into_iter().chain(of.mask).collect();
        Tensor::check_operands(OP, &all)?;
        let fail = |reason: &str| Err(Tensor::shape_error(OP, &all, reason.to_owned()));
        if !all[..3].iter().all(|t| t.dtype().is_float()) {
            let reason = "queries, keys and values are floats".to_owned();
            return Err(Tensor::dtype_error(OP, &all, reason));
        }
        if all[..3].iter().any(|t| t.rank() < 2) {
            return fail("queries, keys and values need at least two axes");
        }
        let from_end = |t: &Tensor, i: usize| t.rank().checked_sub(i).map(|axis| t.shape()[axis]);
        if from_end(self, 1) != from_end(key, 1) || from_end(key, 2) != from_end(value, 2) {
            return fail("needs queries [.., l, e], keys [.., s, e] and values [.., s, d]");
        }
        if !of.grouped {
            return Ok(1);
        }
        let heads = [self, key, value].map(|t| from_end(t, 3).unwrap_or(1));
        let divides = heads[1] > 0 && heads[0].is_multiple_of(heads[1]);
        if !divides || heads[1] != heads[2] {
            return fail("heads of keys and values must be equal and divide those of queries");
        }
        Ok((heads[0] / heads[1]).max(1))
    }

    /// `[.., heads, rows, width]` as `[.., heads / groups, groups * rows, width]`.
    #[track_caller]
    fn grouped_rows(&self, groups: usize) -> Result<Tensor> {
        if groups == 1 {
            return Ok(self.clone());
        }
        let mut dims = self.shape().to_vec();
        let n = dims.len();
        dims[n - 3] /= groups;
        dims[n - 2] *= groups;
        self.reshape(dims)
    }

    /// The inverse, with the heads and rows of `like`.
    #[track_caller]
    fn ungrouped_rows(&self, like: &[usize]) -> Result<Tensor> {
        let mut dims = self.shape().to_vec();
        let n = dims.len();
        dims[n - 3] = like[like.len() - 3];
        dims[n - 2] = like[like.len() - 2];
        self.reshape(Shape::from(dims))
    }

    /// Softmax along the last axis; zeros where everything is `-inf`. The gradient is written in
    /// terms of the result, so that backward computes no exponential.
    ///
    /// Maximum and sum of a row stay two numbers, also where a gradient computes the weights again
    /// from them: beside a large maximum the logarithm of the sum would be rounded off.
    #[track_caller]
    fn safe_softmax(&self) -> Result<Tensor> {
        let mask = 1 << (self.rank() - 1);
        let top = self.reduce(BinaryOp::Max, mask).detach_lazily();
        let none = top.eq(top.like(f64::NEG_INFINITY))?;
        let shift = none.where_(top.like(0.0), &top)?;
        let exponentials = self.sub(&shift)?.exp();
        let sum = exponentials.reduce(BinaryOp::Add, mask);
        let scale = none.where_(sum.like(0.0), sum.recip())?;
        exponentials.mul(&scale)?.with_gradient(&[self], move |_, y, dy| {
            let sum = dy.mul(y)?.reduce(BinaryOp::Add, mask);
            Ok(vec![Some(dy.sub(&sum)?.mul(y)?)])
        })
    }
}
