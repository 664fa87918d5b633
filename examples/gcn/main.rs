//! Guesses on whose side the members of a karate club were, from two of them and the friendships.
//!
//! `cargo run --release --example gcn`. The program fails if more than four are guessed wrong.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use examples::gcn::{Club, guess};
use examples::program::{Arguments, Usage};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    Usage { flags: &[], values: 0, text: "gcn" }.run(solve)
}

fn solve(_: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let device = zyx::device()?;
    let club = Club::shipped()?;
    let n = club.sides.len();
    println!("{n} members, {} friendships, 2 of the sides known\n", club.friends.len());
    let start = Instant::now();
    let guessed = guess(&club, 200, &device, true)?;
    let names = ["instructor", "president"];
    for (side, name) in names.iter().enumerate() {
        let with = (0..n).filter(|&i| guessed[i] == side as i64);
        let list =
            with.map(|i| format!("{i}{}", if club.sides[i] == guessed[i] { "" } else { "(!)" }));
        println!("with the {name:10} {}", list.collect::<Vec<_>>().join(" "));
    }
    let wrong = (0..n).filter(|&i| club.sides[i] != guessed[i]).count();
    println!("\n{wrong} of {n} guessed wrong (!) after {:.2} s", start.elapsed().as_secs_f64());
    if wrong > 4 {
        return Err("more than four are wrong".into());
    }
    Ok(())
}
