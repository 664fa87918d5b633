//! What published transformers have in common: their files, weights in the names of
//! `nn::TransformerEncoderLayer`, and tokens.

use std::collections::BTreeMap;
use std::path::Path;
use tokenizers::Tokenizer;
use zyx::nn::{Loaded, Module, safetensors};
use zyx::{Device, Error, Result, Tensor};

/// The settings of a model: `config.json` of its folder.
#[derive(Clone, Debug)]
pub struct Config(serde_json::Value);

/// An error about a file.
pub(crate) fn bad(what: impl ToString, reason: impl ToString) -> Error {
    Error::Format { what: what.to_string(), reason: reason.to_string() }
}

impl Config {
    /// Reads `config.json` of a folder.
    ///
    /// # Errors
    /// When it is missing or no JSON.
    pub fn read(folder: &Path) -> Result<Config> {
        let file = folder.join("config.json");
        let what = file.display().to_string();
        let text = std::fs::read_to_string(&file)
            .map_err(|source| Error::Io { what: what.clone(), source })?;
        serde_json::from_str(&text).map(Config).map_err(|error| bad(what, error))
    }

    /// A whole number.
    ///
    /// # Errors
    /// When it is missing.
    pub fn size(&self, name: &str) -> Result<usize> {
        let value = self.0.get(name).and_then(serde_json::Value::as_u64);
        value.map(|x| x as usize).ok_or_else(|| bad("config.json", format!("has no `{name}`")))
    }

    /// A number, or what it is where it is missing.
    pub fn number(&self, name: &str, usual: f64) -> f64 {
        self.0.get(name).and_then(serde_json::Value::as_f64).unwrap_or(usual)
    }

    /// A text, or what it is where it is missing.
    pub fn text<'a>(&'a self, name: &str, usual: &'a str) -> &'a str {
        self.0.get(name).and_then(serde_json::Value::as_str).unwrap_or(usual)
    }
}

/// Reads the tensors of `model.safetensors` of a folder, changes them by `change`, and puts them
/// into a model under the names that `rename` gives. Everything the model has must be there.
///
/// # Errors
/// When the file is damaged, or something is missing.
pub fn load(
    model: &impl Module,
    folder: &Path,
    device: &Device,
    change: impl Fn(&mut BTreeMap<String, Tensor>) -> Result<()>,
    rename: &dyn Fn(&str) -> Option<String>,
) -> Result<()> {
    let file = folder.join("model.safetensors");
    let mut tensors = safetensors::load(&file, device)?;
    change(&mut tensors)?;
    let Loaded { missing, unexpected } = model.load_partial(&tensors, rename)?;
    if !missing.is_empty() || !unexpected.is_empty() {
        let reason = format!("lacks {missing:?}; not known are {unexpected:?}");
        return Err(bad(file.display(), reason));
    }
    Ok(())
}

/// The tokenizer of a folder.
///
/// # Errors
/// When `tokenizer.json` is missing or damaged.
pub fn tokenizer(folder: &Path) -> Result<Tokenizer> {
    let file = folder.join("tokenizer.json");
    Tokenizer::from_file(&file).map_err(|error| bad(file.display(), error))
}

/// The tokens of a text, with those that begin and end a sentence if wanted. Tokenizers of published
/// models often pad; what they pad with is left out.
///
/// # Errors
/// When the tokenizer cannot read it.
pub fn tokens(tokenizer: &Tokenizer, text: &str, ends: bool) -> Result<Vec<u32>> {
    let encoding = tokenizer.encode(text, ends).map_err(|error| bad("tokenizer", error))?;
    let marked = encoding.get_ids().iter().zip(encoding.get_attention_mask());
    Ok(marked.filter(|(_, mask)| **mask != 0).map(|(id, _)| *id).collect())
}
