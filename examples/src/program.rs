//! What programs take from their command lines, and how they end.

use lexopt::{Arg, Parser};
use std::error::Error;
use std::process::ExitCode;

/// What a command line says.
#[derive(Debug, Default, PartialEq)]
pub struct Arguments {
    flags: Vec<String>,
    /// Everything that is no flag, in order.
    pub values: Vec<String>,
}

impl Arguments {
    /// Whether a flag was given.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }
}

/// What a program takes.
#[derive(Clone, Copy, Debug)]
pub struct Usage<'a> {
    /// Words that a user gives with dashes in front of them or without.
    pub flags: &'a [&'a str],
    /// Most values behind them.
    pub values: usize,
    /// A line for `--help`: the program's name and what may follow it.
    pub text: &'a str,
}

impl Usage<'_> {
    /// What the arguments say; nothing if they ask for help.
    fn parse(&self, mut parser: Parser) -> Result<Option<Arguments>, lexopt::Error> {
        let mut arguments = Arguments::default();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Short('h') | Arg::Long("help") => return Ok(None),
                Arg::Long(flag) if self.flags.contains(&flag) => {
                    arguments.flags.push(flag.to_owned());
                }
                Arg::Value(word) if self.flags.iter().any(|&flag| word == flag) => {
                    arguments.flags.extend(word.into_string());
                }
                Arg::Value(value) if arguments.values.len() < self.values => {
                    arguments
                        .values
                        .push(value.into_string().map_err(lexopt::Error::NonUnicodeValue)?);
                }
                other => return Err(other.unexpected()),
            }
        }
        Ok(Some(arguments))
    }

    /// Runs a program with the arguments of its command line. `--help` prints the usage; an argument
    /// it does not take ends it with status 2, an error with 1.
    #[allow(clippy::print_stdout, reason = "help of a program for a terminal")]
    pub fn run(&self, main: impl FnOnce(Arguments) -> Result<(), Box<dyn Error>>) -> ExitCode {
        match self.parse(Parser::from_env()) {
            Ok(None) => println!("usage: {}", self.text),
            Ok(Some(arguments)) => {
                if let Err(error) = main(arguments) {
                    eprintln!("error: {error}");
                    return ExitCode::FAILURE;
                }
            }
            Err(error) => {
                eprintln!("error: {error}\nusage: {}", self.text);
                return ExitCode::from(2);
            }
        }
        ExitCode::SUCCESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: Usage<'static> =
        Usage { flags: &["quick"], values: 1, text: "train [quick] [FILE]" };

    fn parsed(words: &[&str]) -> Result<Option<Arguments>, String> {
        USAGE.parse(Parser::from_args(words)).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_have_dashes_or_none() {
        for words in [["quick", "a.txt"], ["--quick", "a.txt"], ["a.txt", "--quick"]] {
            let arguments = parsed(&words).unwrap().unwrap();
            assert!(arguments.has("quick"), "{words:?}");
            assert_eq!(arguments.values, ["a.txt"], "{words:?}");
        }
        assert!(!parsed(&["a.txt"]).unwrap().unwrap().has("quick"));
    }

    #[test]
    fn help_is_no_file() {
        assert_eq!(parsed(&["--help"]), Ok(None));
        assert_eq!(parsed(&["a.txt", "-h"]), Ok(None));
    }

    #[test]
    fn what_a_program_does_not_take_is_refused_by_name() {
        assert!(parsed(&["--fast"]).unwrap_err().contains("--fast"));
        assert!(parsed(&["a.txt", "b.txt"]).unwrap_err().contains("b.txt"));
    }
}
