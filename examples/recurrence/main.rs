//! Remembers two numbers over a long sequence and adds them, by a linear recurrence.
//!
//! `cargo run --release --example recurrence`, or `-- quick` for a few seconds. The program fails
//! if it has not learned to add.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use examples::program::{Arguments, Usage};
use examples::recurrence::{judge, train};
use std::process::ExitCode;
use std::time::Instant;
use zyx::data::chart;

fn main() -> ExitCode {
    Usage { flags: &["quick"], values: 0, text: "recurrence [quick]" }.run(learn)
}

fn learn(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let quick = arguments.has("quick");
    let (steps, rounds, goal) = if quick { (32, 250, 0.05) } else { (128, 1500, 0.002) };
    let device = zyx::device()?;
    println!("sequences of {steps} steps, {rounds} rounds on {device} ({})", device.info().name);
    let start = Instant::now();
    let (model, losses) = train(steps, rounds, &device, true)?;
    println!("{:.1} s; error of each round:\n", start.elapsed().as_secs_f64());
    println!("{}", chart::terminal(&losses, 64, 8)?);
    for times in [1, 2, 4] {
        let error = judge(&model, 256, steps * times, &device)?;
        println!("error on new sequences of {:4} steps: {error:.5}", steps * times);
    }
    println!("error of remembering nothing:          {:.5}", 1.0 / 6.0);
    let error = judge(&model, 256, steps, &device)?;
    if error > goal {
        return Err(format!("the error is {error}, it should be below {goal}").into());
    }
    Ok(())
}
