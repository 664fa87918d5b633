//! Learns to balance a pole on a cart.
//!
//! `cargo run --release --example cartpole`. The program fails if the pole does not stand for 195
//! of 200 steps on average, judged on episodes it was not chosen by.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use examples::cartpole::{judge, train};
use examples::program::{Arguments, Usage};
use std::process::ExitCode;
use std::time::Instant;
use zyx::data::chart;

fn main() -> ExitCode {
    Usage { flags: &[], values: 0, text: "cartpole" }.run(learn)
}

fn learn(_: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let device = zyx::device()?;
    println!("balancing a pole on {device} ({})", device.info().name);
    let start = Instant::now();
    let trained = train(30_000, 198.0, &device, true)?;
    let seconds = start.elapsed().as_secs_f64();
    let mean = judge(&trained.model, 100, 2, &device)?;
    let n = trained.lengths.len();
    println!("{n} episodes in {seconds:.1} s; length of each:\n");
    println!("{}", chart::terminal(&trained.lengths, 64, 8)?);
    println!("the pole stands {mean:.1} of 200 steps on average of 100 episodes");
    if mean < 195.0 {
        return Err("it should be 195".into());
    }
    Ok(())
}
