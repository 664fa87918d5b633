//! Texts of recorded kernels: what is written is read back, and damage is an error.

use super::super::*;
use super::{gpu, run};
use crate::ir::generate::Random;
use crate::ir::interp::Options;
use crate::ops::BinaryOp;

const DTYPES: [DType; 5] = [DType::F32, DType::F64, DType::F16, DType::I32, DType::I64];

/// A random expression of an element.
fn term<'k>(
    k: &'k Lang,
    (x, factor): (&Array<'k>, &Array<'k>),
    numbers: &[usize],
    mut value: Val<'k>,
) -> Val<'k> {
    for &number in numbers {
        value = match number % 5 {
            0 => value + x.at([0, 0]),
            1 => value * factor.at(()),
            2 => value.maximum(k.value((number / 8) as f64, x.dtype())),
            3 => value - k.value(1.0, x.dtype()),
            _ => value.abs(),
        };
    }
    value
}

/// A kernel with arguments of all roles, extents that follow from sizes, and a random expression.
fn random(seed: u64) -> Recorded {
    let mut rng = Random::new(seed);
    let dtype = DTYPES[rng.below(DTYPES.len())];
    let caps = [crate::ir::interp::caps(), gpu(64, 0), gpu(256, 32)][rng.below(3)].clone();
    let large = rng.below(4) == 0;
    let setting = Setting { caps, inputs: vec![dtype; 2], large, ..Setting::default() };
    let numbers: Vec<usize> = (0..12).map(|_| rng.below(100)).collect();
    let recorded = record(&format!("random {seed}"), &setting, |k: &Lang| {
        let [n, m] = k.sizes(["n", "columns of x"]);
        let x = k.input("x", [n, m]);
        let factor = k.input("factor", ());
        let sums = k.output("sums", [n], dtype);
        let more = 1 + numbers[0] as i64 % 3;
        let wide = k.output("wide", [(n + more) * 2, m], dtype);
        let copy = k.output_from("copy", &x);
        let filled = k.output_filled("filled", [m.div_ceil(3)], dtype, 1.5f32);
        let own = k.scratch("own", [n, k.index(2)], DType::I32);
        let term = |value, at: usize| term(k, (&x, &factor), &numbers[at..at + 4], value);
        k.groups([n], 64, |g, [row]| {
            let sum = g.reduce(BinaryOp::Add, m, |i| term(x.at([row, i]), 1));
            g.each(1, |_| sums.set(row, sum));
            g.each(2, |i| own.set([row, i], k.value(1.0, DType::I32)));
        });
        k.each([n * 2, m], |[i, j]| wide.set([i, j], term(x.at_or([i, j], 0.0), 5)));
        k.each([n, m], |[i, j]| copy.set([i, j], copy.at([i, j]) + x.at([i, j])));
        k.each(m.div_ceil(3), |i| filled.set(i, filled.at(i) + factor.at(())));
    });
    recorded.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn random_kernels_are_read_as_they_were_written() {
    for seed in 0..120 {
        let kernel = random(seed);
        let text = kernel.to_string();
        let again: Recorded = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again.to_string(), text);
        assert_eq!(again.kernel(), kernel.kernel());
        assert_eq!(again.is_large(), kernel.is_large());
        let [a, b] = [&again, &kernel].map(|x| (x.arguments(), x.scalars(), x.sizes(), x.spaces()));
        assert_eq!(a, b, "{text}");
        let (n, m) = (1 + seed as i64 % 4, 1 + seed as i64 % 7);
        let inputs = [(0..n * m).map(|i| (i % 9) as f64 / 4.0).collect(), vec![2.0]];
        let [a, b] = [&again, &kernel].map(|x| run(x, &[n, m], &inputs, &Options::default()));
        assert_eq!(a, b, "{text}");
    }
}

/// Lines are taken away, repeated and exchanged; words and characters too.
fn damaged(text: &str, rng: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..1 + rng.below(2) {
        let (at, other) = (rng.below(lines.len()), rng.below(lines.len()));
        let line = lines[at].clone();
        let words: Vec<&str> = line.split(' ').collect();
        let letters: Vec<char> = line.chars().collect();
        match rng.below(6) {
            0 => lines.truncate(at.max(1)),
            1 => drop(lines.remove(at)),
            2 => lines.insert(at, lines[other].clone()),
            3 => lines.swap(at, other),
            4 => {
                let from: Vec<&str> = lines[other].split(' ').collect();
                let mut words = words;
                let word = rng.below(words.len());
                words[word] = from[rng.below(from.len())];
                lines[at] = words.join(" ");
            }
            _ if letters.is_empty() => {}
            _ => {
                let new = [' ', '(', ')', ',', '-', '9', 'n', ':', '%', 'é'][rng.below(10)];
                let mut letters = letters;
                let letter = rng.below(letters.len());
                letters[letter] = new;
                lines[at] = letters.into_iter().collect();
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

#[test]
fn damaged_texts_are_errors_with_a_line() {
    let (mut refused, mut read) = (0, 0);
    let texts: Vec<String> = (0..40).map(|seed| random(seed).to_string()).collect();
    for seed in 0..3000 {
        let text = damaged(&texts[seed as usize % texts.len()], &mut Random::new(seed));
        match text.parse::<Recorded>() {
            Err(error) => {
                assert!(error.line <= text.lines().count(), "{error}\n{text}");
                refused += 1;
            }
            // The kernel that was read is written in the same way from then on, and has numbers for any sizes.
            Ok(kernel) => {
                read += 1;
                let text = kernel.to_string();
                assert_eq!(text.parse::<Recorded>().map(|x| x.to_string()), Ok(text));
                for expr in kernel.scalars().iter().chain(kernel.spaces()) {
                    for size in [0, 1, 7, i64::MAX] {
                        expr.eval(&|_| Some(size));
                        expr.solve(size);
                    }
                }
            }
        }
    }
    assert!(refused > 1500 && read > 100, "{refused} refused, {read} read");
}

#[test]
fn headers_that_do_not_fit_are_errors_at_their_lines() {
    let text = "kernel k
size 0 : n
value 0 : n0
small n0
argument 0 : input 1 x
argument 1 : output 1 y
buffer 0 : f32[100] read s0
buffer 1 : f32[100] write s0
scalar 0 : i64 0..=100
%0 param 0 read : f32";
    text.parse::<Recorded>().expect("it is right");
    let deep = format!("value 0 : {}n0{}", "add(".repeat(1 << 16), ", 1)".repeat(1 << 16));
    for (from, to, line, reason) in [
        ("size 0 : n", "size 1 : n", 2, "slot 1 is out of order"),
        ("value 0 : n0", "value 0 : n1", 3, "there is no size 1"),
        ("value 0 : n0", "value 0 : add(n0)", 3, "a `,` is missing"),
        ("value 0 : n0", "value 0 : exp(n0, 1)", 3, "no operation of integers"),
        ("value 0 : n0", "value 0 : lt(n0, 1)", 3, "no operation of integers"),
        ("value 0 : n0", "value 0 : n0 n0", 3, "stands behind"),
        ("value 0 : n0", &deep, 3, "too deep"),
        ("small n0", "small n7", 4, "there is no size 7"),
        ("input 1 x", "inputs 1 x", 5, "no role"),
        ("input 1 x", "input x", 5, "a number of axes is missing"),
        ("input 1 x", "input 2 x", 5, "has 1 extents"),
        ("input 1 x", "output 1 x", 5, "another access"),
        ("input 1 x", "input 0 x", 5, "without axes is 1"),
        ("output 1 y", "from 0 1 y", 6, "another access"),
        ("argument 1 : output 1 y\n", "", 9, "1 lines `argument` and 2 `buffer`"),
        ("value 0 : n0\n", "", 9, "0 lines `value` and 1 `scalar`"),
        ("write s0", "write s1", 8, "there is no value 1"),
        ("scalar 0 : i64 0..=100", "scalar 0 : i32 0..=100", 3, "a value is an i64"),
        ("%0 param 0 read : f32", "%0 param 0 read : f64", 10, "Type"),
        ("%0 param", "%0 parm", 10, "there is no op `parm`"),
    ] {
        let wrong = text.replace(from, to);
        assert_ne!(wrong, text, "{from}");
        let error = wrong.parse::<Recorded>().expect_err(to);
        assert!(error.reason.contains(reason), "{to}: {error}");
        assert!(error.line == line || reason.contains("no value"), "{to}: {error}");
    }
    let filled =
        text.replace("output 1 y", "filled 3f800000 1 y").replace("write s0", "readwrite s0");
    filled.parse::<Recorded>().expect("it is right");
    let error = filled.replace("3f800000", "1003f800000").parse::<Recorded>().unwrap_err();
    assert!(error.line == 6 && error.reason.contains("is no f32"), "{error}");
    let from = filled.replace("filled 3f800000", "from 1").parse::<Recorded>().unwrap_err();
    assert!(from.line == 6 && from.reason.contains("input 1 is not before it"), "{from}");
}
