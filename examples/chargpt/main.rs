//! Trains a small GPT on the characters of "Alice's Adventures in Wonderland", and lets it write.
//!
//! `cargo run --release --example chargpt`, or `-- quick` for a few seconds; `-- FILE` learns
//! another text. The program fails if what was learned does not hold on the part of the text that
//! was held out.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use examples::chargpt::{Options, train, write};
use examples::program::{Arguments, Usage};
use std::process::ExitCode;
use std::time::Instant;
use zyx::data::EventWriter;
use zyx::nn::Module;

fn main() -> ExitCode {
    Usage { flags: &["quick"], values: 1, text: "chargpt [quick] [FILE]" }.run(learn)
}

fn learn(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let quick = arguments.has("quick");
    let text = match arguments.values.first() {
        Some(file) => std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?,
        None => include_str!("../data/alice.txt").to_owned(),
    };
    let (options, goal) = if quick { (Options::quick(), 2.7) } else { (Options::usual(), 1.9) };
    let device = zyx::device()?;
    println!(
        "{} characters, {} steps on {device} ({})",
        text.len(),
        options.steps,
        device.info().name
    );
    let start = Instant::now();
    let log = EventWriter::create(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/chargpt"))?;
    println!("losses for TensorBoard in {}", log.path().display());
    let trained = train(&text, options, &device, Some(log))?;
    let [before, after] = trained.held_out;
    println!(
        "{} parameters, loss per character {before:.3} before and {after:.3} after {:.1} s \
         ({:.3} for knowing nothing)\n",
        trained.model.n_parameters(),
        start.elapsed().as_secs_f64(),
        trained.ignorance
    );
    let (start, n) = (Instant::now(), 400);
    let text = write(&trained, "Alice ", n, 0.7, &device)?;
    println!("{text}\n\n{:.0} characters a second", n as f64 / start.elapsed().as_secs_f64());
    if after > goal {
        return Err(format!("the loss is {after:.3}, it should be below {goal}").into());
    }
    Ok(())
}
