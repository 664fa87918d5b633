//! A small GPT over characters: learns to write like one text, and writes with a cache.
//!
//! Layers normalise first and use the tanh form of GELU, as GPT-2's do; positions are learned.
//! Training takes windows of the text at random; the held-out tenth at the end tells whether
//! anything but the text itself was learned. Writing reads the start once and then one character
//! at a time: keys and values of earlier characters are kept, so every character is one plan.

use std::sync::Arc;
use zyx::data::{
    CharVocabulary, Dataset, EventWriter, Loader, LoaderOptions, Subset, TextWindows, Trainer,
    TrainerOptions,
};
use zyx::nn::{
    AttentionMask, Embedding, Init, KvCache, LayerNorm, Linear, TransformerActivation,
    TransformerEncoderLayer, TransformerOptions,
};
use zyx::optim::{AdamOptions, AdamW, schedule};
use zyx::prelude::*;

/// Sizes of model and training.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Features of a character.
    pub width: usize,
    /// Layers.
    pub layers: usize,
    /// Heads of attention; they divide the width.
    pub heads: usize,
    /// Characters the model sees at once.
    pub context: usize,
    /// Windows in a step.
    pub batch: usize,
    /// Steps of training.
    pub steps: usize,
    /// The highest learning rate.
    pub rate: f64,
}

impl Options {
    /// A minute or so on a laptop.
    pub fn usual() -> Options {
        Options { width: 96, layers: 3, heads: 4, context: 64, batch: 24, steps: 1500, rate: 3e-3 }
    }

    /// Seconds: enough to see that it learns.
    pub fn quick() -> Options {
        Options { width: 32, layers: 2, heads: 2, context: 32, batch: 8, steps: 150, rate: 1e-2 }
    }
}

/// The model.
#[derive(Debug, Module)]
pub struct CharGpt {
    token: Embedding,
    position: Embedding,
    layers: Vec<TransformerEncoderLayer>,
    norm: LayerNorm,
    head: Linear,
}

impl CharGpt {
    /// For a vocabulary of so many characters.
    ///
    /// # Errors
    /// When the sizes do not fit, or the device fails.
    pub fn new(vocabulary: usize, options: Options, init: &mut Init) -> Result<CharGpt> {
        let Options { width, context, .. } = options;
        let layer = TransformerOptions {
            feedforward: 4 * width,
            dropout: 0.0,
            activation: TransformerActivation::GeluTanh,
            norm_first: true,
            batch_first: true,
            ..Default::default()
        };
        let layers = (0..options.layers)
            .map(|_| TransformerEncoderLayer::new(width, options.heads, layer, init));
        let model = CharGpt {
            layers: layers.collect::<Result<_>>()?,
            token: Embedding::new(vocabulary, width, init)?,
            position: Embedding::new(context, width, init)?,
            norm: LayerNorm::new(width, init)?,
            head: Linear::without_bias(width, vocabulary, init)?,
        };
        // Smaller than usual: both are added, and the sum goes into the residual.
        for table in [&model.token, &model.position] {
            table.weight.set(&init.normal(table.weight.shape(), 0.1)?)?;
        }
        Ok(model)
    }

    /// Most characters it sees at once.
    pub fn context(&self) -> usize {
        self.position.weight.shape()[0]
    }

    /// What goes into the first layer: tokens `[n, t]` from position `start` on.
    fn embedded(&self, tokens: &Tensor, start: usize) -> Result<Tensor> {
        let places = Tensor::iota(tokens.shape()[1], DType::I64, tokens.device());
        let places = places.add(start as i64)?;
        self.token.forward(tokens)?.add(self.position.forward(&places)?)
    }

    /// Logits `[n, t, characters]` of the character after each of `[n, t]`.
    ///
    /// # Errors
    /// When there are more than the context, or the device fails.
    pub fn logits(&self, tokens: &Tensor) -> Result<Tensor> {
        let causal = AttentionMask { causal: true, ..Default::default() };
        let x = self.embedded(tokens, 0)?;
        let x = self.layers.iter().try_fold(x, |x, layer| layer.encode(&x, causal))?;
        self.head.forward(&self.norm.forward(&x)?)
    }

    /// Logits `[characters]` of the character after tokens `[1, t]`, which stand behind those in
    /// the caches; computed now, and the caches with them.
    ///
    /// # Errors
    /// When the caches are full, or the device fails.
    pub fn next(&self, tokens: &Tensor, caches: &[KvCache]) -> Result<Tensor> {
        let start = caches.first().map_or(0, KvCache::len);
        let mut x = self.embedded(tokens, start)?;
        for (layer, cache) in self.layers.iter().zip(caches) {
            x = layer.encode_cached(&x, cache)?;
        }
        let last = x.select_index(1, -1)?;
        let logits = self.head.forward(&self.norm.forward(&last)?)?.squeeze(0)?;
        let kept: Vec<Tensor> = caches.iter().flat_map(KvCache::tensors).collect();
        Tensor::realize_all(kept.iter().chain([&logits]))?;
        Ok(logits)
    }

    /// Empty caches for one text.
    pub fn caches(&self) -> Vec<KvCache> {
        self.layers.iter().map(|_| KvCache::new(self.context())).collect()
    }
}

/// A trained model and what it learned from.
#[derive(Debug)]
pub struct Trained {
    /// The model.
    pub model: CharGpt,
    /// Its characters.
    pub vocabulary: CharVocabulary,
    /// The loss of a model that knows nothing: the logarithm of the number of characters.
    pub ignorance: f64,
    /// The loss on the held-out tenth before and after.
    pub held_out: [f64; 2],
}

/// Trains on a text; on a terminal with a progress line, into a log if there is one.
///
/// # Errors
/// When the text is shorter than a few windows, or the device fails.
pub fn train(
    text: &str,
    options: Options,
    device: &Device,
    log: Option<EventWriter>,
) -> Result<Trained> {
    let vocabulary = CharVocabulary::of(text);
    let tokens = vocabulary.encode(text)?;
    let (known, held_out) = tokens.split_at(tokens.len() * 9 / 10);
    let windows = TextWindows::new(known.to_vec(), options.context);
    let test = TextWindows::new(held_out.to_vec(), options.context);
    let mut rng = Rng::seed(7);
    let n = windows.len() as u64;
    let indices = (0..options.steps * options.batch).map(|_| rng.below(n) as usize).collect();
    let chosen = Subset { of: Arc::new(windows), indices };
    let batches = LoaderOptions { batch: options.batch, shuffle: None, ..Default::default() };
    let loader = Loader::new(chosen, batches, device)?;
    let model = CharGpt::new(vocabulary.len(), options, &mut Init::new(0, device))?;
    let before = loss_of(&model, &test, options, device)?;
    let adam = AdamOptions { betas: [0.9, 0.99], weight_decay: 0.1, ..Default::default() };
    let optimizer = AdamW::new(model.parameters(), adam)?;
    let (steps, rate) = (options.steps as u64, options.rate);
    let rates = move |step: u64| {
        schedule::warmup(step, steps / 20 + 1) * schedule::cosine(step, steps, rate, rate / 20.0)
    };
    let train = TrainerOptions {
        clip_norm: Some(1.0),
        schedule: Some(Box::new(rates)),
        progress: true,
        log,
        ..Default::default()
    };
    let mut trainer = Trainer::new(model, optimizer, train);
    trainer.fit(&loader, 1, |model, (input, target)| {
        model.logits(&input)?.transpose(1, 2)?.cross_entropy(&target)
    })?;
    let model = trainer.model;
    let after = loss_of(&model, &test, options, device)?;
    let ignorance = (vocabulary.len() as f64).ln();
    Ok(Trained { model, vocabulary, ignorance, held_out: [before, after] })
}

/// The mean loss of windows spread over a text.
fn loss_of(model: &CharGpt, text: &TextWindows, options: Options, device: &Device) -> Result<f64> {
    let n = (4 * options.batch).min(text.len());
    let indices = (0..n).map(|i| i * text.len() / n).collect();
    let windows = Subset { of: Arc::new(text.clone()), indices };
    let batches = LoaderOptions { batch: options.batch, shuffle: None, ..Default::default() };
    let loader = Loader::new(windows, batches, device)?;
    let (mut sum, mut count) = (0.0, 0);
    for batch in loader.epoch(0) {
        let (input, target) = batch?;
        let loss = model.logits(&input)?.transpose(1, 2)?.cross_entropy(&target)?;
        sum += f64::from(loss.item::<f32>()?);
        count += 1;
    }
    Ok(sum / f64::from(count))
}

/// A text that begins with `start`, `n` characters longer. Lower temperatures are more certain.
///
/// # Errors
/// When `start` has other characters than the text that was learned, or the device fails.
pub fn write(
    trained: &Trained,
    start: &str,
    n: usize,
    temperature: f64,
    device: &Device,
) -> Result<String> {
    let (model, vocabulary) = (&trained.model, &trained.vocabulary);
    let mut tokens = vocabulary.encode(start)?;
    let mut rng = Rng::seed(1);
    let mut caches = model.caches();
    let mut unread = tokens.clone();
    for _ in 0..n {
        if caches.iter().any(|cache| cache.len() + unread.len() > model.context()) {
            // Full: go on with the later half as the start.
            caches = model.caches();
            unread = tokens[tokens.len() - model.context() / 2..].to_vec();
        }
        let input = Tensor::from_slice(&unread, [1, unread.len()], device)?;
        let logits = model.next(&input, &caches)?.to_vec::<f32>()?;
        let token = draw(&logits, temperature, &mut rng) as i64;
        tokens.push(token);
        unread = vec![token];
    }
    Ok(vocabulary.decode(&tokens))
}

/// A number drawn with the probabilities that logits give at a temperature.
pub fn draw(logits: &[f32], temperature: f64, rng: &mut Rng) -> usize {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |&x: &f32| (f64::from(x - most) / temperature.max(1e-6)).exp();
    let weights: Vec<f64> = logits.iter().map(weight).collect();
    let total: f64 = weights.iter().sum();
    let mut rest = total * (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    for (i, weight) in weights.iter().enumerate() {
        rest -= weight;
        if rest < 0.0 {
            return i;
        }
    }
    logits.len() - 1
}
