//! Writes on with GPT-2 and its published weights.
//!
//! `cargo run --release --example gpt2 --features text -- FOLDER [START]`, where FOLDER has
//! `config.json`, `model.safetensors` and `tokenizer.json` of `openai-community/gpt2` (or a larger
//! one) on the model hub. The tensors may also be in several files with
//! `model.safetensors.index.json`, or in `pytorch_model.bin`. Without a folder, a tiny one with
//! random weights shows that it runs.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use examples::gpt2::Gpt2;
use examples::program::{Arguments, Usage};
use examples::weights::{tokenizer, tokens};
use std::io::{IsTerminal, Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use zyx::data::Progress;
use zyx::nn::Module;

/// Tokens that are written.
const TOKENS: usize = 80;

fn main() -> ExitCode {
    Usage { flags: &[], values: 2, text: "gpt2 [FOLDER [START]]" }.run(write)
}

fn write(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let mut values = arguments.values.into_iter();
    let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/data/tiny-gpt2");
    let folder = PathBuf::from(values.next().unwrap_or_else(|| {
        println!(
            "No folder given: a tiny model with random weights, what it writes means nothing.\n"
        );
        tiny.to_owned()
    }));
    let start = values.next().unwrap_or("Alice was beginning to".to_owned());
    let device = zyx::device()?;
    let mut bar = Progress::new(2);
    bar.set(0, "reading weights");
    let model = Gpt2::load(&folder, &device)?;
    bar.set(1, "reading the tokenizer");
    let tokenizer = tokenizer(&folder)?;
    bar.clear();
    let elements: usize = model.parameters().iter().map(|p| p.shape().numel()).sum();
    println!("{elements} parameters on {device} ({})\n", device.info().name);
    let tokens = tokens(&tokenizer, &start, false)?;
    let mut text = tokens.clone();
    let mut shown = String::new();
    let mut failed = None;
    // On a terminal the text itself grows.
    let mut bar = (!stdout().is_terminal()).then(|| Progress::new(TOKENS));
    let time = Instant::now();
    let written = model.write(&tokens, TOKENS, 0.8, 0, |token| {
        text.push(token);
        if let Some(bar) = &mut bar {
            bar.set(text.len() - tokens.len(), "tokens");
        }
        // A character may need several tokens; what is whole is shown.
        match tokenizer.decode(&text, true) {
            Ok(now) if now.starts_with(&shown) && !now.ends_with('\u{fffd}') => {
                print!("{}", &now[shown.len()..]);
                shown = now;
            }
            Ok(_) => {}
            Err(error) => failed = Some(error),
        }
        let _ = stdout().flush();
    })?;
    if let Some(bar) = &mut bar {
        bar.clear();
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let n = written.len() - tokens.len();
    println!("\n\n{:.1} tokens a second", n as f64 / time.elapsed().as_secs_f64());
    Ok(())
}
