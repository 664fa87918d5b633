//! Which sentences mean the same: a small encoder whose files the page reads.

use crate::thrown;
use examples::bert::Bert;
use examples::weights::tokenizer_from_bytes;
use tokenizers::Tokenizer;
use wasm_bindgen::prelude::*;
use zyx::prelude::*;

/// An encoder of sentences.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Sentences {
    model: Bert,
    tokenizer: Tokenizer,
}

impl Sentences {
    async fn make(spec: &str, [config, tensors, tokenizer]: [&[u8]; 3]) -> Result<Sentences> {
        let device = Device::request(spec).await?;
        let tokenizer = tokenizer_from_bytes(tokenizer)?;
        Ok(Sentences { model: Bert::from_bytes(config, tensors, &device)?, tokenizer })
    }

    async fn cosines(&self, sentences: &[&str]) -> Result<Vec<f32>> {
        let embeddings = self.model.embed(&self.tokenizer, sentences)?;
        embeddings.matmul(&embeddings.t())?.read_async::<f32>()?.await
    }
}

#[wasm_bindgen]
impl Sentences {
    /// The encoder with the contents of `config.json`, `model.safetensors` and `tokenizer.json`, on a
    /// device (`cpu` or `wgpu`).
    pub async fn open(
        spec: String,
        config: Vec<u8>,
        tensors: Vec<u8>,
        tokenizer: Vec<u8>,
    ) -> Result<Sentences, JsError> {
        Sentences::make(&spec, [&config, &tensors, &tokenizer]).await.map_err(thrown)
    }

    /// How near each of these sentences, a line each, is to each other one: rows of cosines.
    pub async fn similar(&self, lines: String) -> Result<Vec<f32>, JsError> {
        let sentences: Vec<&str> = lines.lines().collect();
        self.cosines(&sentences).await.map_err(thrown)
    }
}
