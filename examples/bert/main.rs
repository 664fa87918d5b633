//! Which sentences mean the same: embeddings by a BERT encoder with published weights.
//!
//! `cargo run --release --example bert --features text -- FOLDER [SENTENCE ..]`, where FOLDER has
//! `config.json`, `model.safetensors` and `tokenizer.json` of a sentence encoder, as
//! `sentence-transformers/all-MiniLM-L6-v2` on the model hub. The tensors may also be in several
//! files with `model.safetensors.index.json`, or in `pytorch_model.bin`. Without a folder, a tiny
//! one with random weights shows that it runs, and nothing about meaning.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use examples::bert::Bert;
use examples::program::{Arguments, Usage};
use examples::weights::tokenizer;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use zyx::Tensor;
use zyx::data::Progress;

/// Sentences that are computed together.
const BATCH: usize = 16;

const SENTENCES: [&str; 6] = [
    "A man is eating a piece of bread.",
    "Somebody has his lunch.",
    "The weather is lovely today.",
    "It is so sunny outside!",
    "He drove to the stadium.",
    "They went to watch a match by car.",
];

fn main() -> ExitCode {
    Usage { flags: &[], values: usize::MAX, text: "bert [FOLDER [SENTENCE ..]]" }.run(embed)
}

fn embed(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let mut values = arguments.values.into_iter();
    let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/data/tiny-bert");
    let folder = PathBuf::from(values.next().unwrap_or_else(|| {
        println!("No folder given: a tiny model with random weights, which sentences are near says nothing.\n");
        tiny.to_owned()
    }));
    let given: Vec<String> = values.collect();
    let sentences: Vec<&str> = match given.is_empty() {
        true => SENTENCES.into(),
        false => given.iter().map(String::as_str).collect(),
    };
    let device = zyx::device()?;
    let n = sentences.len();
    let mut bar = Progress::new(n);
    bar.set(0, "reading weights");
    let (model, tokenizer) = (Bert::load(&folder, &device)?, tokenizer(&folder)?);
    let start = Instant::now();
    let mut parts = Vec::new();
    for batch in sentences.chunks(BATCH) {
        let part = model.embed(&tokenizer, batch)?;
        part.realize()?;
        parts.push(part);
        bar.set((BATCH * parts.len()).min(n), "sentences");
    }
    bar.clear();
    let embeddings = Tensor::cat(&parts.iter().collect::<Vec<_>>(), 0)?;
    let similar = embeddings.matmul(&embeddings.t())?.to_vec::<f32>()?;
    println!(
        "{n} sentences as {} numbers each on {device} in {:.3} s\n",
        embeddings.shape()[1],
        start.elapsed().as_secs_f64()
    );
    for (i, sentence) in sentences.iter().enumerate() {
        let row = &similar[i * n..(i + 1) * n];
        let cells: String = row.iter().map(|x| format!("{x:6.2}")).collect();
        let others = row.iter().enumerate().filter(|&(j, _)| j != i);
        let nearest = others.max_by(|a, b| a.1.total_cmp(b.1)).map_or(i, |(j, _)| j);
        println!("{cells}   {sentence}  (nearest: {})", sentences[nearest]);
    }
    Ok(())
}
