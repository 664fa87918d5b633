//! Sentence embeddings by a BERT encoder (Devlin et al. 2019; Reimers and Gurevych 2019) with
//! published weights.
//!
//! A folder in the layout of the model hub: `config.json`, `model.safetensors`, `tokenizer.json`.
//! Sentences of one batch are padded to one length, whatever the tokenizer pads; the embedding of a
//! sentence is the mean of its own tokens' outputs, of length 1.

use crate::weights::{self, bad};
use std::collections::BTreeMap;
use std::path::Path;
use tokenizers::Tokenizer;
use zyx::nn::{
    AttentionMask, Embedding, Init, LayerNorm, TransformerActivation, TransformerEncoderLayer,
    TransformerOptions, safetensors,
};
use zyx::prelude::*;

/// The encoder.
#[derive(Debug, Module)]
pub struct Bert {
    word: Embedding,
    position: Embedding,
    kind: Embedding,
    norm: LayerNorm,
    layers: Vec<TransformerEncoderLayer>,
}

/// The model's name of a published one; queries, keys and values are joined before.
fn rename(name: &str) -> Option<String> {
    let name = name.strip_prefix("bert.").unwrap_or(name);
    let tables = [
        ("embeddings.word_embeddings.", "word."),
        ("embeddings.position_embeddings.", "position."),
        ("embeddings.token_type_embeddings.", "kind."),
        ("embeddings.LayerNorm.", "norm."),
    ];
    if let Some((from, to)) = tables.iter().find(|(from, _)| name.starts_with(from)) {
        return Some(name.replace(from, to));
    }
    let parts = [
        ("attention.self.in_proj_", "self_attn.in_proj_"),
        ("attention.output.dense.", "self_attn.out_proj."),
        ("attention.output.LayerNorm.", "norm1."),
        ("intermediate.dense.", "linear1."),
        ("output.dense.", "linear2."),
        ("output.LayerNorm.", "norm2."),
    ];
    let rest = name.strip_prefix("encoder.layer.")?;
    let (from, to) = parts.iter().find(|(from, _)| rest.contains(from))?;
    Some(format!("layers.{}", rest.replace(from, to)))
}

/// Queries, keys and values of each layer in one matrix, as PyTorch's own layers have them.
fn join(tensors: &mut BTreeMap<String, Tensor>) -> Result<()> {
    let queries: Vec<String> =
        tensors.keys().filter(|name| name.contains("attention.self.query.")).cloned().collect();
    for query in queries {
        let part = |name: &str| query.replace(".query.", &format!(".{name}."));
        let mut take = |name: &str| {
            tensors.remove(&part(name)).ok_or_else(|| bad(&query, format!("has no {name}")))
        };
        let all = [take("query")?, take("key")?, take("value")?];
        let joined = Tensor::cat(&all.each_ref(), 0)?;
        tensors.insert(query.replace(".query.", ".in_proj_"), joined);
    }
    Ok(())
}

/// The settings of an encoder.
#[derive(serde::Deserialize)]
struct Config {
    hidden_size: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    vocab_size: usize,
    max_position_embeddings: usize,
    type_vocab_size: usize,
    #[serde(default = "Config::activation")]
    hidden_act: Activation,
    #[serde(default = "Config::eps")]
    layer_norm_eps: f64,
}

impl Config {
    fn activation() -> Activation {
        Activation::Gelu
    }

    fn eps() -> f64 {
        1e-12
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Activation {
    Gelu,
    #[serde(alias = "gelu_pytorch_tanh")]
    GeluNew,
    Relu,
}

impl Bert {
    /// The encoder of a folder.
    ///
    /// # Errors
    /// When a file is missing or damaged, or the settings leave no position for a token.
    pub fn load(folder: &Path, device: &Device) -> Result<Bert> {
        let tensors = || weights::tensors(folder, device);
        Bert::of(weights::config(folder)?, tensors, &folder.display().to_string(), device)
    }

    /// The encoder that `config.json` and `model.safetensors` are the contents of.
    ///
    /// # Errors
    /// When one is damaged, or the settings leave no position for a token.
    pub fn from_bytes(config: &[u8], tensors: &[u8], device: &Device) -> Result<Bert> {
        let config = serde_json::from_slice(config).map_err(|error| bad("config.json", error))?;
        Bert::of(config, || safetensors::from_bytes(tensors, device), "the model", device)
    }

    /// The encoder with settings and tensors of `source`, which errors name.
    fn of(
        config: Config,
        tensors: impl FnOnce() -> Result<BTreeMap<String, Tensor>>,
        source: &str,
        device: &Device,
    ) -> Result<Bert> {
        if config.max_position_embeddings == 0 {
            return Err(bad(source, "`max_position_embeddings` is 0, at least 1 is needed"));
        }
        let (width, heads) = (config.hidden_size, config.num_attention_heads);
        let activation = match config.hidden_act {
            Activation::Gelu => TransformerActivation::Gelu,
            Activation::GeluNew => TransformerActivation::GeluTanh,
            Activation::Relu => TransformerActivation::Relu,
        };
        let options = TransformerOptions {
            feedforward: config.intermediate_size,
            dropout: 0.0,
            activation,
            norm_first: false,
            batch_first: true,
            eps: config.layer_norm_eps,
        };
        let init = &mut Init::new(0, device);
        let layers = (0..config.num_hidden_layers)
            .map(|_| TransformerEncoderLayer::new(width, heads, options, init));
        let layers = layers.collect::<Result<_>>()?;
        let mut table = |n: usize| Embedding::new(n, width, init);
        let model = Bert {
            layers,
            word: table(config.vocab_size)?,
            position: table(config.max_position_embeddings)?,
            kind: table(config.type_vocab_size)?,
            norm: LayerNorm { eps: options.eps, ..LayerNorm::new(width, init)? },
        };
        let mut tensors = tensors()?;
        join(&mut tensors)?;
        weights::load(&model, &tensors, source, &rename)?;
        model.freeze();
        Ok(model)
    }

    /// The outputs `[n, t, width]` for tokens `[n, t]`, of which `padding` says where there is
    /// none.
    ///
    /// # Errors
    /// When there are more tokens than positions, or the device fails.
    pub fn outputs(&self, tokens: &Tensor, padding: &Tensor) -> Result<Tensor> {
        let steps = tokens.shape()[1];
        if steps > self.position.weight.shape()[0] {
            return Err(bad("BERT", format!("{steps} tokens are too many")));
        }
        let places = Tensor::iota(steps, DType::I64, tokens.device());
        let x = self.word.forward(tokens)?.add(self.position.forward(&places)?)?;
        let x = self.norm.forward(&x.add(self.kind.weight.tensor().select_index(0, 0)?)?)?;
        let mask = AttentionMask { padding: Some(padding), ..Default::default() };
        self.layers.iter().try_fold(x, |x, layer| layer.encode(&x, mask))
    }

    /// The embeddings `[n, width]` of sentences: means of their tokens' outputs, of length 1. Of a
    /// sentence that has more tokens than the model has positions, the first ones and the last count,
    /// which ends every sentence.
    ///
    /// # Errors
    /// When there is no sentence, the tokenizer cannot read one, or as [`Bert::outputs`].
    pub fn embed(&self, tokenizer: &Tokenizer, sentences: &[&str]) -> Result<Tensor> {
        let device = self.word.weight.device();
        let limit = self.position.weight.shape()[0];
        let encode = |sentence: &&str| -> Result<Vec<u32>> {
            let mut row = weights::tokens(tokenizer, sentence, true)?;
            if row.is_empty() {
                return Err(bad("tokenizer", format!("makes no token of `{sentence}`")));
            }
            if row.len() > limit {
                row.drain(limit - 1..row.len() - 1);
            }
            Ok(row)
        };
        let rows = sentences.iter().map(encode).collect::<Result<Vec<_>>>()?;
        let Some(steps) = rows.iter().map(Vec::len).max() else {
            return Err(bad("BERT", "there is no sentence to embed"));
        };
        let n = rows.len();
        let (mut tokens, mut padding) = (vec![0u32; n * steps], vec![true; n * steps]);
        for (i, row) in rows.iter().enumerate() {
            tokens[i * steps..][..row.len()].copy_from_slice(row);
            padding[i * steps..][..row.len()].fill(false);
        }
        let tokens = Tensor::from_slice(&tokens, [n, steps], &device)?;
        let padding = Tensor::from_slice(&padding, [n, steps], &device)?;
        let outputs = self.outputs(&tokens, &padding)?;
        let words = padding.logical_not().cast(outputs.dtype()).unsqueeze(-1)?;
        let sum = outputs.mul(&words)?.sum(1)?;
        sum.div(words.sum(1)?)?.normalize(-1, 1e-12)
    }
}
