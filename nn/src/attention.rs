//! Attention: [`MultiheadAttention`] with PyTorch's parameters, and the [`KvCache`] that makes
//! writing a text cost one step per word.
//!
//! A cache has a fixed capacity and the number of words in it is an argument, not part of any
//! shape: every word is written by the plan that wrote the one before.

use crate::init::{OfLayer, located};
use crate::{Forward, Init, Linear, Mode, Module, Path, RngStream, Visitor};
use std::sync::{Mutex, PoisonError};
use zyx_core::{Attention, DType, Param, Result, Rng, Shape, Tensor};

/// The options of [`MultiheadAttention`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionOptions {
    /// Dropout of the weights; 0.
    pub dropout: f64,
    /// Whether there are biases; true.
    pub bias: bool,
    /// Sequences are `[n, steps, width]` instead of `[steps, n, width]`; false, as in PyTorch.
    pub batch_first: bool,
    /// The width of keys, where it differs from that of queries.
    pub key_width: Option<usize>,
    /// The width of values, where it differs from that of queries.
    pub value_width: Option<usize>,
}

impl Default for AttentionOptions {
    fn default() -> AttentionOptions {
        AttentionOptions {
            dropout: 0.0,
            bias: true,
            batch_first: false,
            key_width: None,
            value_width: None,
        }
    }
}

/// What a query may not look at. Several restrictions hold together.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionMask<'a> {
    /// Keys after the query's own position are hidden.
    pub causal: bool,
    /// Bools that are true where a key is hidden, or floats that are added to the logits:
    /// `[queries, keys]` or `[n heads, queries, keys]`.
    pub mask: Option<&'a Tensor>,
    /// True where a key is padding: `[n, keys]`.
    pub padding: Option<&'a Tensor>,
}

/// The projections of the inputs: one product if all have one width.
#[derive(Clone, Debug)]
enum Projections {
    Joint(Param),
    Apart([Param; 3]),
}

impl Projections {
    fn first(&self) -> &Param {
        let (Projections::Joint(first) | Projections::Apart([first, ..])) = self;
        first
    }
}

/// Attention of several heads (Vaswani et al. 2017). Parameters `in_proj_weight` `[3 width,
/// width]` (or `q_proj_weight`, `k_proj_weight`, `v_proj_weight`), uniform as Glorot's at first,
/// `in_proj_bias` (zeros), `out_proj.weight`, `out_proj.bias` (zeros).
///
/// ```
/// use zyx::nn::{AttentionMask, AttentionOptions, Init, MultiheadAttention};
/// use zyx::{Attention, DType, Tensor};
/// let device = zyx::device()?;
/// let options = AttentionOptions { batch_first: true, ..Default::default() };
/// let attention = MultiheadAttention::new(8, 2, options, &mut Init::new(0, &device))?;
/// let x = Tensor::ones([3, 5, 8], DType::F32, &device);
/// let causal = AttentionMask { causal: true, ..Default::default() };
/// let (y, weights) = attention.attend(&x, &x, &x, causal)?;
/// assert_eq!(y.shape().dims(), [3, 5, 8]);
/// assert_eq!(weights.shape().dims(), [3, 2, 5, 5]);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MultiheadAttention {
    projections: Projections,
    in_bias: Option<Param>,
    /// What the heads' results go through.
    pub out_proj: Linear,
    heads: usize,
    options: AttentionOptions,
    mode: Mode,
    stream: RngStream,
}

impl Module for MultiheadAttention {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        let mut show = |name: &str, module: &dyn Module| {
            path.within(name, |path| module.visit(path, visitor));
        };
        match &self.projections {
            Projections::Joint(weight) => show("in_proj_weight", weight),
            Projections::Apart([q, k, v]) => {
                show("q_proj_weight", q);
                show("k_proj_weight", k);
                show("v_proj_weight", v);
            }
        }
        if let Some(bias) = &self.in_bias {
            show("in_proj_bias", bias);
        }
        show("out_proj", &self.out_proj);
        show("mode", &self.mode);
        show("stream", &self.stream);
    }
}

impl MultiheadAttention {
    /// Queries of `width` features in `heads` equal parts.
    ///
    /// # Errors
    /// When the heads do not divide the width, the dropout is no probability, or the device fails.
    #[track_caller]
    pub fn new(
        width: usize,
        heads: usize,
        options: AttentionOptions,
        init: &mut Init,
    ) -> Result<MultiheadAttention> {
        const OP: &str = "MultiheadAttention";
        if heads == 0 || width == 0 || !width.is_multiple_of(heads) {
            return Err(Init::refuse(
                OP,
                format!("{heads} heads do not divide a width of {width}"),
            ));
        }
        if !(0.0..=1.0).contains(&options.dropout) {
            return Err(Init::refuse(OP, format!("{} is not a probability", options.dropout)));
        }
        let Some(triple) = width.checked_mul(3) else {
            return Err(Init::refuse(OP, format!("a width of {width} is too large")));
        };
        let (key, value) =
            (options.key_width.unwrap_or(width), options.value_width.unwrap_or(width));
        let mut draw = |rows: usize, columns: usize| -> Result<Param> {
            Ok(Param::new(init.xavier_uniform([rows, columns], 1.0)?))
        };
        let projections = located(|| {
            if key == width && value == width {
                return Ok(Projections::Joint(draw(triple, width)?));
            }
            let all = [draw(width, width)?, draw(width, key)?, draw(width, value)?];
            Ok(Projections::Apart(all))
        })?;
        let mut out_proj = Linear::without_bias(width, width, init)?;
        let mut in_bias = None;
        if options.bias {
            in_bias = Some(Param::new(init.full([triple], 0.0)?));
            out_proj.bias = Some(Param::new(init.full([width], 0.0)?));
        }
        let (mode, stream) = (Mode::default(), RngStream::new(init.rng.split()));
        Ok(MultiheadAttention { projections, in_bias, out_proj, heads, options, mode, stream })
    }

    /// What queries `[steps, n, width]` find among keys and values `[keys, n, ..]` (or with `n`
    /// first, as the options say, or without `n`), and the weights `[n, heads, steps, keys]` by
    /// which they found it.
    ///
    /// # Errors
    /// When shapes do not fit.
    #[track_caller]
    pub fn attend(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        mask: AttentionMask,
    ) -> Result<(Tensor, Tensor)> {
        let batched = query.rank() == 3;
        let (y, weights) = located(|| {
            let q = self.heads_of(query, 0)?;
            self.weighted(&q, &self.heads_of(key, 1)?, &self.heads_of(value, 2)?, mask)
        })
        .of_layer(self.projections.first())?;
        let y = self.out_proj.forward(&joined(&y)?)?;
        let y = match (batched, self.options.batch_first) {
            (false, _) => y.squeeze(0)?,
            (true, true) => y,
            (true, false) => y.transpose(0, 1)?,
        };
        Ok((y, weights))
    }

    /// The next words `[n, steps, width]` (in this order whatever the options say) of a text of
    /// which `cache` remembers the words before, and now these too.
    ///
    /// # Errors
    /// When shapes do not fit, or the cache is full.
    #[track_caller]
    pub fn attend_cached(&self, x: &Tensor, cache: &KvCache) -> Result<Tensor> {
        let named = self.projections.first();
        let q = self.projected(x, 0).of_layer(named)?;
        let (k, v) = (self.projected(x, 1)?, self.projected(x, 2)?);
        let y = cache.attend(&q, &k, &v).of_layer(named)?;
        self.out_proj.forward(&joined(&y)?)
    }

    /// An input in any layout as `[n, heads, steps, width / heads]`, by projection `i`.
    #[track_caller]
    fn heads_of(&self, x: &Tensor, i: usize) -> Result<Tensor> {
        let x = match (x.rank(), self.options.batch_first) {
            (2, _) => x.unsqueeze(0)?,
            (3, true) => x.clone(),
            (3, false) => x.transpose(0, 1)?,
            _ => {
                let reason = format!("needs a sequence, not shape {}", x.shape());
                return Err(Init::refuse("MultiheadAttention", reason));
            }
        };
        self.projected(&x, i)
    }

    /// `[n, steps, in]` as `[n, heads, steps, width / heads]`.
    #[track_caller]
    fn projected(&self, x: &Tensor, i: usize) -> Result<Tensor> {
        let width = self.out_proj.weight.shape()[0];
        let part = i * width..(i + 1) * width;
        let weight = match &self.projections {
            Projections::Joint(weight) => weight.tensor().slice(0, part.clone())?,
            Projections::Apart(weights) => weights[i].tensor(),
        };
        if x.rank() != 3 || x.shape()[2] != weight.shape()[1] {
            let reason = format!("needs {} features, not shape {}", weight.shape()[1], x.shape());
            return Err(Init::refuse("MultiheadAttention", reason));
        }
        let mut y = x.matmul(&weight.t())?;
        if let Some(bias) = &self.in_bias {
            y = y.add(bias.tensor().slice(0, part)?)?;
        }
        split(&y, self.heads)
    }

    /// What the queries find, and the weights: those are what they find among unit vectors, which
    /// nobody computes who does not ask for them.
    #[track_caller]
    fn weighted(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: AttentionMask,
    ) -> Result<(Tensor, Tensor)> {
        let (n, queries, keys) = (q.shape()[0], q.shape()[2], k.shape()[2]);
        let seen = mask.seen([n, self.heads, queries, keys])?;
        let find = |values: &Tensor, rng: Option<&mut Rng>| {
            let options = Attention {
                mask: seen.as_ref(),
                causal: mask.causal,
                dropout: rng.map(|rng| (self.options.dropout, rng)),
                ..Attention::default()
            };
            q.scaled_dot_product_attention(k, values, options)
        };
        let unit = Tensor::eye(keys, v.dtype(), v.device());
        if self.options.dropout > 0.0 && self.mode.is_training() {
            let mut rng = self.stream.lock();
            // The same coins for both.
            let weights = find(&unit, Some(&mut rng.clone()))?;
            return Ok((find(v, Some(&mut rng))?, weights));
        }
        Ok((find(v, None)?, find(&unit, None)?))
    }
}

impl AttentionMask<'_> {
    /// Mask and padding together, as attention takes them: bools where a key is seen, or numbers
    /// to be added.
    #[track_caller]
    fn seen(&self, [n, heads, queries, keys]: [usize; 4]) -> Result<Option<Tensor>> {
        let mask = match self.mask {
            Some(mask) if mask.shape().dims() == [n * heads, queries, keys] && mask.rank() == 3 => {
                Some(mask.reshape([n, heads, queries, keys])?)
            }
            mask => mask.cloned(),
        };
        let padding = match self.padding {
            Some(padding) => {
                let hidden = padding.unsqueeze(1)?.unsqueeze(1)?;
                Some(hidden.cast(DType::Bool).logical_not())
            }
            None => None,
        };
        match (mask, padding) {
            (Some(mask), padding) if mask.dtype() == DType::Bool => match padding {
                Some(padding) => padding.logical_and(mask.logical_not()).map(Some),
                None => Ok(Some(mask.logical_not())),
            },
            (Some(mask), Some(padding)) => padding.where_(&mask, f64::NEG_INFINITY).map(Some),
            (mask, padding) => Ok(mask.or(padding)),
        }
    }
}

impl Forward for MultiheadAttention {
    /// Attention of a sequence to itself, without a mask.
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.attend(x, x, x, AttentionMask::default())?.0)
    }
}

/// `[n, steps, width]` as `[n, heads, steps, width / heads]`.
#[track_caller]
pub(crate) fn split(x: &Tensor, heads: usize) -> Result<Tensor> {
    let (n, steps, width) = (x.shape()[0], x.shape()[1], x.shape()[2]);
    x.reshape([n, steps, heads, width / heads.max(1)])?.transpose(1, 2)
}

/// Undoes [`split`].
#[track_caller]
pub(crate) fn joined(x: &Tensor) -> Result<Tensor> {
    let &[n, heads, steps, width] = x.shape().dims() else {
        return Err(Init::refuse("attention", format!("heads of shape {}", x.shape())));
    };
    x.transpose(1, 2)?.reshape([n, steps, heads * width])
}

/// Keys and values of the words so far, of one layer of attention. Up to `capacity` words.
///
/// ```
/// use zyx::nn::{AttentionMask, AttentionOptions, Init, KvCache, MultiheadAttention};
/// use zyx::{Attention, DType, Tensor};
/// let device = zyx::device()?;
/// let init = &mut Init::new(0, &device);
/// let options = AttentionOptions { batch_first: true, ..Default::default() };
/// let attention = MultiheadAttention::new(4, 2, options, init)?;
/// let text = Tensor::randn([1, 3, 4], DType::F32, &mut init.rng, &device)?;
/// let cache = KvCache::new(8);
/// let first = attention.attend_cached(&text.slice(1, 0..2)?, &cache)?;
/// let next = attention.attend_cached(&text.slice(1, 2..3)?, &cache)?;
/// let causal = AttentionMask { causal: true, ..Default::default() };
/// let (whole, _) = attention.attend(&text, &text, &text, causal)?;
/// let difference = Tensor::cat(&[&first, &next], 1)?.sub(&whole)?.abs().max(..)?;
/// assert!(difference.item::<f32>()? < 1e-6);
/// assert_eq!(cache.len(), 3);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Debug)]
pub struct KvCache {
    capacity: usize,
    contents: Mutex<Contents>,
}

#[derive(Debug, Default)]
struct Contents {
    len: usize,
    /// `[n, heads, capacity, width]` each, zeros where no word is yet.
    kv: Option<[Tensor; 2]>,
}

impl KvCache {
    /// For texts of up to `capacity` words.
    pub fn new(capacity: usize) -> KvCache {
        KvCache { capacity, contents: Mutex::default() }
    }

    /// Words in it.
    pub fn len(&self) -> usize {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner).len
    }

    /// Whether no word is in it.
    ///
    /// ```
    /// assert!(zyx::nn::KvCache::new(8).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Most words it takes.
    ///
    /// ```
    /// assert_eq!(zyx::nn::KvCache::new(8).capacity(), 8);
    /// ```
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The keys and values, pending after [`KvCache::attend`]: to be computed with the model's
    /// result by one [`Tensor::realize_all`], so that a word is one plan.
    ///
    /// ```
    /// # use zyx::nn::KvCache;
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let cache = KvCache::new(8);
    /// # let x = Tensor::ones([1, 2, 3, 4], DType::F32, &device);
    /// let y = cache.attend(&x, &x, &x)?;
    /// Tensor::realize_all(cache.tensors().iter().chain([&y]))?;
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn tensors(&self) -> Vec<Tensor> {
        let contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        contents.kv.iter().flatten().cloned().collect()
    }

    /// Forgets all words.
    ///
    /// ```
    /// # use zyx::nn::KvCache;
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let cache = KvCache::new(8);
    /// # let x = Tensor::ones([1, 2, 3, 4], DType::F32, &device);
    /// cache.attend(&x, &x, &x)?;
    /// assert_eq!(cache.len(), 3);
    /// cache.clear();
    /// assert!(cache.is_empty());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn clear(&self) {
        *self.contents.lock().unwrap_or_else(PoisonError::into_inner) = Contents::default();
    }

    /// Keys and values of further words, `[n, heads, steps, width]`, put behind those before, and
    /// what the queries of these words find among all up to their own: `[n, heads, steps, width]`.
    /// There may be several heads of queries to one of keys.
    ///
    /// # Errors
    /// When shapes differ from those before, there is no room, or the device fails.
    #[track_caller]
    pub fn attend(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
        located(|| self.attended(q, k, v))
    }

    fn attended(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
        let refuse = |reason: String| Err(Init::refuse("KvCache", reason));
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let (&[n, heads, steps, width], &[_, query_heads, ..]) =
            (k.shape().dims(), q.shape().dims())
        else {
            return refuse(format!("needs [n, heads, steps, width], not {}", k.shape()));
        };
        if heads == 0 || !query_heads.is_multiple_of(heads) || q.rank() != 4 {
            return refuse(format!("{query_heads} heads of queries to {heads} of keys"));
        }
        let start = contents.len;
        if steps > self.capacity - start.min(self.capacity) {
            return refuse(format!("{steps} words after {start} of {}", self.capacity));
        }
        let place = Tensor::iota(self.capacity, DType::I64, k.device());
        // Numbers that change from word to word are arguments.
        let offset = place.sub(start as i64)?;
        let fresh = offset.ge(0i64)?.logical_and(offset.lt(steps as i64)?)?.unsqueeze(1)?;
        let shape = Shape::from([n, heads, self.capacity, width]);
        let put = |old: Option<&Tensor>, new: &Tensor| -> Result<Tensor> {
            let old = match old {
                Some(old) => old.clone(),
                None => Tensor::zeros(&shape, new.dtype(), new.device()),
            };
            let new = new.index_select(2, &offset.clamp(0i64, steps.max(1) as i64 - 1)?)?;
            fresh.where_(new, old)
        };
        let old = contents.kv.as_ref();
        // Pending from the last word if nobody computed them along: no chain of words builds up.
        Tensor::realize_all(old.into_iter().flatten())?;
        let kv = [put(old.map(|kv| &kv[0]), k)?, put(old.map(|kv| &kv[1]), v)?];
        let query = Tensor::iota(steps, DType::I64, k.device()).add(start as i64)?;
        let seen = place.le(query.unsqueeze(1)?)?;
        let options = Attention { mask: Some(&seen), grouped: true, ..Attention::default() };
        let y = q.scaled_dot_product_attention(&kv[0], &kv[1], options)?;
        *contents = Contents { len: start + steps, kv: Some(kv) };
        Ok(y)
    }
}
