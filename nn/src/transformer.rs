//! Transformers (Vaswani et al. 2017) with PyTorch's parameters: [`TransformerEncoderLayer`],
//! [`TransformerEncoder`], [`TransformerDecoderLayer`], [`TransformerDecoder`], [`Transformer`].

use crate::init::located;
use crate::{
    AttentionMask, AttentionOptions, Dropout, Forward, Init, KvCache, LayerNorm, Linear, Module,
    MultiheadAttention,
};
use zyx_core::{Param, Result, Tensor};

/// The options of the layers of a transformer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransformerOptions {
    /// Features between the two products of the feed-forward part; 2048.
    pub feedforward: usize,
    /// Dropout everywhere; 0.1.
    pub dropout: f64,
    /// The function between the two products; ReLU.
    pub activation: TransformerActivation,
    /// Normalise what goes into a part instead of what comes out with the residual; false.
    pub norm_first: bool,
    /// Sequences are `[n, steps, width]` instead of `[steps, n, width]`; false, as in PyTorch.
    pub batch_first: bool,
    /// Added to the variance in normalisations; 1e-5.
    pub eps: f64,
}

/// The function between the two products of a feed-forward part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransformerActivation {
    /// `max(x, 0)`.
    #[default]
    Relu,
    /// The Gaussian error linear unit by the error function: PyTorch's and BERT's.
    Gelu,
    /// The Gaussian error linear unit in its tanh form: GPT-2's.
    GeluTanh,
}

impl TransformerActivation {
    /// The function of `x`.
    ///
    /// ```
    /// use zyx::nn::TransformerActivation;
    /// use zyx::Tensor;
    /// let device = zyx::device()?;
    /// let x = Tensor::new([-1f32, 2.0], &device)?;
    /// assert_eq!(TransformerActivation::Relu.apply(&x).to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn apply(self, x: &Tensor) -> Tensor {
        match self {
            TransformerActivation::Relu => x.relu(),
            TransformerActivation::Gelu => x.gelu_exact(),
            TransformerActivation::GeluTanh => x.gelu(),
        }
    }
}

impl Default for TransformerOptions {
    fn default() -> TransformerOptions {
        TransformerOptions {
            feedforward: 2048,
            dropout: 0.1,
            activation: TransformerActivation::Relu,
            norm_first: false,
            batch_first: false,
            eps: 1e-5,
        }
    }
}

impl TransformerOptions {
    fn attention(&self) -> AttentionOptions {
        AttentionOptions {
            dropout: self.dropout,
            batch_first: self.batch_first,
            ..Default::default()
        }
    }

    #[track_caller]
    fn norm(&self, width: usize, init: &mut Init) -> Result<LayerNorm> {
        Ok(LayerNorm { eps: self.eps, ..LayerNorm::new(width, init)? })
    }

    /// A part of a layer beside its residual, normalised before or after.
    #[track_caller]
    fn residual(
        &self,
        norm: &LayerNorm,
        x: &Tensor,
        part: impl Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        if self.norm_first {
            x.add(part(&norm.forward(x)?)?)
        } else {
            norm.forward(&x.add(part(x)?)?)
        }
    }

    /// The feed-forward part: two products with the activation between them.
    #[track_caller]
    fn feed(&self, x: &Tensor, linear: [&Linear; 2], dropout: &Dropout) -> Result<Tensor> {
        let hidden = self.activation.apply(&linear[0].forward(x)?);
        dropout.forward(&linear[1].forward(&dropout.forward(&hidden)?)?)
    }
}

/// Attention of a sequence to itself, then two products at every step, both beside a residual.
#[derive(Clone, Debug, Module)]
pub struct TransformerEncoderLayer {
    /// The attention.
    pub self_attn: MultiheadAttention,
    /// Into the feed-forward part.
    pub linear1: Linear,
    /// Out of it.
    pub linear2: Linear,
    /// Around the attention.
    pub norm1: LayerNorm,
    /// Around the feed-forward part.
    pub norm2: LayerNorm,
    dropout: Dropout,
    #[module(skip)]
    options: TransformerOptions,
}

impl TransformerEncoderLayer {
    /// A layer of `width` features in `heads` equal parts.
    ///
    /// # Errors
    /// As [`MultiheadAttention::new`].
    #[track_caller]
    pub fn new(
        width: usize,
        heads: usize,
        options: TransformerOptions,
        init: &mut Init,
    ) -> Result<TransformerEncoderLayer> {
        Ok(TransformerEncoderLayer {
            self_attn: MultiheadAttention::new(width, heads, options.attention(), init)?,
            linear1: Linear::new(width, options.feedforward, init)?,
            linear2: Linear::new(options.feedforward, width, init)?,
            norm1: options.norm(width, init)?,
            norm2: options.norm(width, init)?,
            dropout: Dropout::new(options.dropout, init)?,
            options,
        })
    }

    /// The layer's result for a sequence of which some steps are hidden from others.
    ///
    /// ```
    /// # use zyx::nn::{AttentionMask, Init, TransformerEncoderLayer, TransformerOptions};
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let options = TransformerOptions { feedforward: 8, dropout: 0.0, batch_first: true, ..Default::default() };
    /// let layer = TransformerEncoderLayer::new(4, 2, options, init)?;
    /// let causal = AttentionMask { causal: true, ..Default::default() };
    /// let y = layer.encode(&Tensor::ones([1, 3, 4], DType::F32, &device), causal)?;
    /// assert_eq!(y.shape().dims(), [1, 3, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not fit.
    #[track_caller]
    pub fn encode(&self, x: &Tensor, mask: AttentionMask) -> Result<Tensor> {
        located(|| self.around(x, |x| Ok(self.self_attn.attend(x, x, x, mask)?.0)))
    }

    /// The next steps `[n, steps, width]` (in this order whatever the options say) of a sequence
    /// of which the cache remembers the steps before.
    ///
    /// ```
    /// # use zyx::nn::{Init, KvCache, TransformerEncoderLayer, TransformerOptions};
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let options = TransformerOptions { feedforward: 8, dropout: 0.0, batch_first: true, ..Default::default() };
    /// let layer = TransformerEncoderLayer::new(4, 2, options, init)?;
    /// let cache = KvCache::new(8);
    /// let y = layer.encode_cached(&Tensor::ones([1, 3, 4], DType::F32, &device), &cache)?;
    /// assert_eq!((y.shape().dims(), cache.len()), (&[1, 3, 4][..], 3));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not fit, or the cache is full.
    #[track_caller]
    pub fn encode_cached(&self, x: &Tensor, cache: &KvCache) -> Result<Tensor> {
        located(|| self.around(x, |x| self.self_attn.attend_cached(x, cache)))
    }

    #[track_caller]
    fn around(&self, x: &Tensor, attend: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let linear = [&self.linear1, &self.linear2];
        let x = self.options.residual(&self.norm1, x, |x| self.dropout.forward(&attend(x)?))?;
        self.options.residual(&self.norm2, &x, |x| self.options.feed(x, linear, &self.dropout))
    }
}

impl Forward for TransformerEncoderLayer {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.encode(x, AttentionMask::default())
    }
}

/// Attention of a sequence to itself, then to another one (the memory), then two products at
/// every step, all beside a residual.
#[derive(Clone, Debug, Module)]
pub struct TransformerDecoderLayer {
    /// The attention to itself.
    pub self_attn: MultiheadAttention,
    /// The attention to the memory.
    pub multihead_attn: MultiheadAttention,
    /// Into the feed-forward part.
    pub linear1: Linear,
    /// Out of it.
    pub linear2: Linear,
    /// Around the attention to itself.
    pub norm1: LayerNorm,
    /// Around the attention to the memory.
    pub norm2: LayerNorm,
    /// Around the feed-forward part.
    pub norm3: LayerNorm,
    dropout: Dropout,
    #[module(skip)]
    options: TransformerOptions,
}

impl TransformerDecoderLayer {
    /// A layer of `width` features in `heads` equal parts.
    ///
    /// # Errors
    /// As [`MultiheadAttention::new`].
    #[track_caller]
    pub fn new(
        width: usize,
        heads: usize,
        options: TransformerOptions,
        init: &mut Init,
    ) -> Result<TransformerDecoderLayer> {
        Ok(TransformerDecoderLayer {
            self_attn: MultiheadAttention::new(width, heads, options.attention(), init)?,
            multihead_attn: MultiheadAttention::new(width, heads, options.attention(), init)?,
            linear1: Linear::new(width, options.feedforward, init)?,
            linear2: Linear::new(options.feedforward, width, init)?,
            norm1: options.norm(width, init)?,
            norm2: options.norm(width, init)?,
            norm3: options.norm(width, init)?,
            dropout: Dropout::new(options.dropout, init)?,
            options,
        })
    }

    /// The layer's result for a sequence and the memory it looks at.
    ///
    /// ```
    /// # use zyx::nn::{AttentionMask, Init, TransformerDecoderLayer, TransformerOptions};
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let options = TransformerOptions { feedforward: 8, dropout: 0.0, batch_first: true, ..Default::default() };
    /// let layer = TransformerDecoderLayer::new(4, 2, options, init)?;
    /// let (x, memory) = (Tensor::ones([1, 3, 4], DType::F32, &device), Tensor::ones([1, 5, 4], DType::F32, &device));
    /// let y = layer.decode(&x, &memory, AttentionMask::default(), AttentionMask::default())?;
    /// assert_eq!(y.shape().dims(), [1, 3, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not fit.
    #[track_caller]
    pub fn decode(
        &self,
        x: &Tensor,
        memory: &Tensor,
        mask: AttentionMask,
        memory_mask: AttentionMask,
    ) -> Result<Tensor> {
        located(|| self.decoded(x, memory, mask, memory_mask))
    }

    fn decoded(
        &self,
        x: &Tensor,
        memory: &Tensor,
        mask: AttentionMask,
        memory_mask: AttentionMask,
    ) -> Result<Tensor> {
        let own = |x: &Tensor| self.self_attn.attend(x, x, x, mask);
        let look = |x: &Tensor| self.multihead_attn.attend(x, memory, memory, memory_mask);
        let linear = [&self.linear1, &self.linear2];
        let options = &self.options;
        let x = options.residual(&self.norm1, x, |x| self.dropout.forward(&own(x)?.0))?;
        let x = options.residual(&self.norm2, &x, |x| self.dropout.forward(&look(x)?.0))?;
        options.residual(&self.norm3, &x, |x| options.feed(x, linear, &self.dropout))
    }
}

/// Encoder layers one after the other, with a normalisation at the end if there is one.
#[derive(Clone, Debug, Module)]
pub struct TransformerEncoder {
    /// The layers.
    pub layers: Vec<TransformerEncoderLayer>,
    /// At the end.
    pub norm: Option<LayerNorm>,
}

impl TransformerEncoder {
    /// `n` layers, each with initial values of its own, without a normalisation at the end.
    ///
    /// # Errors
    /// As [`TransformerEncoderLayer::new`].
    #[track_caller]
    pub fn new(
        n: usize,
        width: usize,
        heads: usize,
        options: TransformerOptions,
        init: &mut Init,
    ) -> Result<TransformerEncoder> {
        let mut layers = Vec::new();
        for _ in 0..n {
            layers.push(TransformerEncoderLayer::new(width, heads, options, init)?);
        }
        Ok(TransformerEncoder { layers, norm: None })
    }

    /// The result for a sequence of which some steps are hidden from others.
    ///
    /// ```
    /// # use zyx::nn::{AttentionMask, Init, TransformerEncoder, TransformerOptions};
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let options = TransformerOptions { feedforward: 8, dropout: 0.0, batch_first: true, ..Default::default() };
    /// let model = TransformerEncoder::new(2, 4, 2, options, init)?;
    /// let y = model.encode(&Tensor::ones([1, 3, 4], DType::F32, &device), AttentionMask::default())?;
    /// assert_eq!(y.shape().dims(), [1, 3, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not fit.
    #[track_caller]
    pub fn encode(&self, x: &Tensor, mask: AttentionMask) -> Result<Tensor> {
        let mut layers = self.layers.iter();
        let x = located(|| layers.try_fold(x.clone(), |x, layer| layer.encode(&x, mask)))?;
        normed(&self.norm, x)
    }
}

impl Forward for TransformerEncoder {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.encode(x, AttentionMask::default())
    }
}

#[track_caller]
fn normed(norm: &Option<LayerNorm>, x: Tensor) -> Result<Tensor> {
    match norm {
        Some(norm) => norm.forward(&x),
        None => Ok(x),
    }
}

/// Decoder layers one after the other, with a normalisation at the end if there is one.
#[derive(Clone, Debug, Module)]
pub struct TransformerDecoder {
    /// The layers.
    pub layers: Vec<TransformerDecoderLayer>,
    /// At the end.
    pub norm: Option<LayerNorm>,
}

impl TransformerDecoder {
    /// `n` layers, each with initial values of its own, without a normalisation at the end.
    ///
    /// # Errors
    /// As [`TransformerDecoderLayer::new`].
    #[track_caller]
    pub fn new(
        n: usize,
        width: usize,
        heads: usize,
        options: TransformerOptions,
        init: &mut Init,
    ) -> Result<TransformerDecoder> {
        let mut layers = Vec::new();
        for _ in 0..n {
            layers.push(TransformerDecoderLayer::new(width, heads, options, init)?);
        }
        Ok(TransformerDecoder { layers, norm: None })
    }

    /// The result for a sequence and the memory it looks at.
    ///
    /// # Errors
    /// When shapes do not fit.
    #[track_caller]
    pub fn decode(
        &self,
        x: &Tensor,
        memory: &Tensor,
        mask: AttentionMask,
        memory_mask: AttentionMask,
    ) -> Result<Tensor> {
        let mut layers = self.layers.iter();
        let x = located(|| {
            layers.try_fold(x.clone(), |x, layer| layer.decode(&x, memory, mask, memory_mask))
        })?;
        normed(&self.norm, x)
    }
}

/// An encoder and a decoder that looks at its result, both normalised at the end; matrices start
/// as Glorot's.
///
/// ```
/// use zyx::nn::{AttentionMask, Init, Transformer, TransformerOptions};
/// use zyx::{DType, Tensor};
/// let device = zyx::device()?;
/// let options = TransformerOptions { feedforward: 16, batch_first: true, ..Default::default() };
/// let model = Transformer::new([1, 1], 8, 2, options, &mut Init::new(0, &device))?;
/// let ones = |steps| Tensor::ones([3, steps, 8], DType::F32, &device);
/// let causal = AttentionMask { causal: true, ..Default::default() };
/// let y = model.apply(&ones(5), &ones(4), AttentionMask::default(), causal)?;
/// assert_eq!(y.shape().dims(), [3, 4, 8]);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct Transformer {
    /// Reads the source.
    pub encoder: TransformerEncoder,
    /// Writes the target.
    pub decoder: TransformerDecoder,
}

impl Transformer {
    /// With so many layers of the encoder and the decoder.
    ///
    /// # Errors
    /// As [`TransformerEncoderLayer::new`].
    #[track_caller]
    pub fn new(
        layers: [usize; 2],
        width: usize,
        heads: usize,
        options: TransformerOptions,
        init: &mut Init,
    ) -> Result<Transformer> {
        let mut encoder = TransformerEncoder::new(layers[0], width, heads, options, init)?;
        let mut decoder = TransformerDecoder::new(layers[1], width, heads, options, init)?;
        encoder.norm = Some(options.norm(width, init)?);
        decoder.norm = Some(options.norm(width, init)?);
        let model = Transformer { encoder, decoder };
        for matrix in model.parameters().iter().filter(|p: &&Param| p.shape().rank() > 1) {
            matrix.set(&init.xavier_uniform(matrix.shape(), 1.0)?)?;
        }
        Ok(model)
    }

    /// The result for a target, with the encoder's result for the source as memory.
    ///
    /// # Errors
    /// When shapes do not fit.
    #[track_caller]
    pub fn apply(
        &self,
        source: &Tensor,
        target: &Tensor,
        source_mask: AttentionMask,
        target_mask: AttentionMask,
    ) -> Result<Tensor> {
        let memory = self.encoder.encode(source, source_mask)?;
        let memory_mask = AttentionMask { padding: source_mask.padding, ..Default::default() };
        self.decoder.decode(target, &memory, target_mask, memory_mask)
    }
}
