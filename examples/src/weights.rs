//! What published transformers have in common: their files, weights in the names of
//! `nn::TransformerEncoderLayer`, and tokens.

use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use tokenizers::Tokenizer;
use zyx::io::pytorch;
use zyx::nn::{Loaded, Module, safetensors};
use zyx::{Device, Error, Result, Tensor};

/// An error about a file.
pub(crate) fn bad(what: impl ToString, reason: impl ToString) -> Error {
    Error::Format { what: what.to_string(), reason: reason.to_string() }
}

/// The settings of a model: `config.json` of its folder.
///
/// # Errors
/// When it is missing or no JSON, or a setting is missing or not known.
pub fn config<T: DeserializeOwned>(folder: &Path) -> Result<T> {
    let file = folder.join("config.json");
    let what = file.display().to_string();
    let text = std::fs::read_to_string(&file)
        .map_err(|source| Error::Io { what: what.clone(), source })?;
    serde_json::from_str(&text).map_err(|error| bad(what, error))
}

/// The tensors of a folder: of `model.safetensors`, of the files that
/// `model.safetensors.index.json` lists, or of `pytorch_model.bin`.
///
/// # Errors
/// When the file is missing or damaged.
pub fn tensors(folder: &Path, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let saved = folder.join("pytorch_model.bin");
    match safetensors::load(folder, device) {
        Err(Error::Io { source, .. })
            if source.kind() == ErrorKind::NotFound && saved.is_file() =>
        {
            pytorch::load(saved, device)
        }
        found => found,
    }
}

/// Puts tensors of `source`, which errors name, into a model under the names that `rename` gives.
/// Everything the model has must be there.
///
/// # Errors
/// When something is missing, or is not known.
pub fn load(
    model: &impl Module,
    tensors: &BTreeMap<String, Tensor>,
    source: &str,
    rename: &dyn Fn(&str) -> Option<String>,
) -> Result<()> {
    let Loaded { missing, unexpected } = model.load_partial(tensors, rename)?;
    if !missing.is_empty() || !unexpected.is_empty() {
        let reason = format!("lacks {missing:?}; not known are {unexpected:?}");
        return Err(bad(source, reason));
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

/// The tokenizer that `tokenizer.json` is the contents of.
///
/// # Errors
/// When it is damaged.
pub fn tokenizer_from_bytes(json: &[u8]) -> Result<Tokenizer> {
    Tokenizer::from_bytes(json).map_err(|error| bad("tokenizer.json", error))
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
