//! GPT-2 (Radford et al. 2019) with its published weights: text from a start, word by word.
//!
//! A folder in the layout of the model hub: `config.json`, `model.safetensors`, `tokenizer.json`.
//! The published matrices of the layers are stored transposed.

use crate::chargpt::draw;
use crate::weights::{self, bad};
use std::path::Path;
use zyx::nn::{
    AttentionMask, Embedding, Init, KvCache, LayerNorm, TransformerActivation,
    TransformerEncoderLayer, TransformerOptions,
};
use zyx::prelude::*;

/// The model.
#[derive(Debug, Module)]
pub struct Gpt2 {
    wte: Embedding,
    wpe: Embedding,
    h: Vec<TransformerEncoderLayer>,
    ln_f: LayerNorm,
}

/// The model's name of a published one.
fn rename(name: &str) -> Option<String> {
    let name = name.strip_prefix("transformer.").unwrap_or(name);
    // The output has the embedding's weights; masks are constants.
    if name == "lm_head.weight" || name.ends_with(".attn.bias") || name.ends_with(".masked_bias") {
        return None;
    }
    let parts = [
        ("attn.c_attn.", "self_attn.in_proj_"),
        ("attn.c_proj.", "self_attn.out_proj."),
        ("mlp.c_fc.", "linear1."),
        ("mlp.c_proj.", "linear2."),
        ("ln_1.", "norm1."),
        ("ln_2.", "norm2."),
    ];
    let known = parts.iter().find(|(from, _)| name.contains(from));
    Some(known.map_or(name.to_owned(), |(from, to)| name.replace(from, to)))
}

/// The settings of a model.
#[derive(serde::Deserialize)]
struct Config {
    n_embd: usize,
    n_head: usize,
    n_layer: usize,
    n_positions: usize,
    vocab_size: usize,
    n_inner: Option<usize>,
    #[serde(default = "Config::eps")]
    layer_norm_epsilon: f64,
}

impl Config {
    fn eps() -> f64 {
        1e-5
    }
}

impl Gpt2 {
    /// The model of a folder.
    ///
    /// # Errors
    /// When a file is missing or damaged.
    pub fn load(folder: &Path, device: &Device) -> Result<Gpt2> {
        let config: Config = weights::config(folder)?;
        let (width, heads) = (config.n_embd, config.n_head);
        let options = TransformerOptions {
            feedforward: config.n_inner.unwrap_or(4 * width),
            dropout: 0.0,
            activation: TransformerActivation::GeluTanh,
            norm_first: true,
            batch_first: true,
            eps: config.layer_norm_epsilon,
        };
        let init = &mut Init::new(0, device);
        let layers =
            (0..config.n_layer).map(|_| TransformerEncoderLayer::new(width, heads, options, init));
        let model = Gpt2 {
            h: layers.collect::<Result<_>>()?,
            wte: Embedding::new(config.vocab_size, width, init)?,
            wpe: Embedding::new(config.n_positions, width, init)?,
            ln_f: LayerNorm { eps: options.eps, ..LayerNorm::new(width, init)? },
        };
        let transposed = |name: &str| {
            ["c_attn.weight", "c_proj.weight", "c_fc.weight"].iter().any(|end| name.ends_with(end))
        };
        let mut tensors = weights::tensors(folder, device)?;
        for (_, tensor) in tensors.iter_mut().filter(|(name, _)| transposed(name)) {
            *tensor = tensor.t();
        }
        weights::load(&model, &tensors, &folder.display().to_string(), &rename)?;
        model.freeze();
        Ok(model)
    }

    /// Most tokens it sees at once.
    pub fn context(&self) -> usize {
        self.wpe.weight.shape()[0]
    }

    fn embedded(&self, tokens: &Tensor, start: usize) -> Result<Tensor> {
        let places = Tensor::iota(tokens.shape()[1], DType::I64, tokens.device());
        let places = places.add(start as i64)?;
        self.wte.forward(tokens)?.add(self.wpe.forward(&places)?)
    }

    fn output(&self, x: &Tensor) -> Result<Tensor> {
        self.ln_f.forward(x)?.matmul(&self.wte.weight.tensor().t())
    }

    /// Logits `[n, t, tokens]` of the token after each of `[n, t]`.
    ///
    /// # Errors
    /// When there are more than the context, or the device fails.
    pub fn logits(&self, tokens: &Tensor) -> Result<Tensor> {
        let causal = AttentionMask { causal: true, ..Default::default() };
        let x = self.embedded(tokens, 0)?;
        self.output(&self.h.iter().try_fold(x, |x, layer| layer.encode(&x, causal))?)
    }

    /// `n` tokens after those given, at most as many as the context has room for; each is drawn at
    /// a temperature, 0 for the most likely one. `each` sees every token.
    ///
    /// # Errors
    /// When there is no token to begin with, or the device fails.
    pub fn write(
        &self,
        tokens: &[u32],
        n: usize,
        temperature: f64,
        seed: u64,
        mut each: impl FnMut(u32),
    ) -> Result<Vec<u32>> {
        let device = self.wte.weight.device();
        let caches: Vec<KvCache> =
            self.h.iter().map(|_| KvCache::new((tokens.len() + n).min(self.context()))).collect();
        let mut rng = Rng::seed(seed);
        let (mut text, mut unread) = (tokens.to_vec(), tokens.to_vec());
        for _ in 0..n.min(self.context().saturating_sub(tokens.len())) {
            if unread.is_empty() {
                return Err(bad("GPT-2", "there is no token to begin with"));
            }
            let start = text.len() - unread.len();
            let input = Tensor::from_slice(&unread, [1, unread.len()], &device)?;
            let mut x = self.embedded(&input, start)?;
            for (layer, cache) in self.h.iter().zip(&caches) {
                x = layer.encode_cached(&x, cache)?;
            }
            let logits = self.output(&x.select_index(1, -1)?)?;
            let kept: Vec<Tensor> = caches.iter().flat_map(KvCache::tensors).collect();
            Tensor::realize_all(kept.iter().chain([&logits]))?;
            let token = draw(&logits.to_vec::<f32>()?, temperature, &mut rng) as u32;
            each(token);
            text.push(token);
            unread = vec![token];
        }
        Ok(text)
    }
}
