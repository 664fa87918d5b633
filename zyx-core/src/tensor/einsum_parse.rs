//! The grammar of einsum, checked the same way while compiling and while running.
//!
//! Operands are separated by commas, each a list of letters with at most one ellipsis; `->` and
//! the letters of the result may follow. Spaces mean nothing. What is checked here does not depend
//! on shapes, and everything is a `const fn` without allocation, so that the macro
//! [`einsum!`](crate::einsum) refuses to compile what [`Tensor::einsum`](super::Tensor::einsum)
//! would refuse to compute, with the same words.

use super::Tensor;

/// What is wrong with subscripts, naming the letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A character that is no letter, comma, arrow, dot or space.
    Character(u8),
    /// Dots that are not three in a row.
    Dots,
    /// Two ellipses in one operand or in the result.
    EllipsisTwice,
    /// A `-` without `>`, or the other way around.
    Arrow,
    /// More than one arrow, or a comma behind it.
    AfterArrow,
    /// A letter of the result that no operand has.
    Unknown(u8),
    /// A letter that the result has twice.
    Twice(u8),
    /// An ellipsis in the result that no operand has.
    EllipsisUnknown,
    /// As many operands as this, and as many as given.
    Count(usize, usize),
}

/// Letters as bits: `a` to `z`, then `A` to `Z`.
const fn bit(letter: u8) -> u64 {
    match letter {
        b'a'..=b'z' => 1 << (letter - b'a'),
        _ => 1 << (letter - b'A' + 26),
    }
}

/// Finds the first mistake of subscripts for a number of operands.
pub(crate) const fn validate(spec: &[u8], n_operands: usize) -> Option<Mistake> {
    let (mut seen, mut result) = (0u64, 0u64);
    let (mut arrow, mut ellipsis, mut any_ellipsis) = (false, false, false);
    let (mut n, mut at) = (1, 0);
    while at < spec.len() {
        let next = if at + 1 < spec.len() { spec[at + 1] } else { 0 };
        match spec[at] {
            b' ' | b'\t' | b'\n' => {}
            letter @ (b'a'..=b'z' | b'A'..=b'Z') => {
                let mask = bit(letter);
                if !arrow {
                    seen |= mask;
                } else if result & mask != 0 {
                    return Some(Mistake::Twice(letter));
                } else if seen & mask == 0 {
                    return Some(Mistake::Unknown(letter));
                }
                if arrow {
                    result |= mask;
                }
            }
            b',' if arrow => return Some(Mistake::AfterArrow),
            b',' => {
                n += 1;
                ellipsis = false;
            }
            b'.' => {
                let third = if at + 2 < spec.len() { spec[at + 2] } else { 0 };
                if next != b'.' || third != b'.' {
                    return Some(Mistake::Dots);
                }
                if ellipsis {
                    return Some(Mistake::EllipsisTwice);
                }
                if arrow && !any_ellipsis {
                    return Some(Mistake::EllipsisUnknown);
                }
                ellipsis = true;
                any_ellipsis = true;
                at += 2;
            }
            b'-' if arrow => return Some(Mistake::AfterArrow),
            b'-' if next == b'>' => {
                arrow = true;
                ellipsis = false;
                at += 1;
            }
            b'-' | b'>' => return Some(Mistake::Arrow),
            other => return Some(Mistake::Character(other)),
        }
        at += 1;
    }
    if n == n_operands { None } else { Some(Mistake::Count(n, n_operands)) }
}

/// A short text built without allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    bytes: [u8; 96],
    len: usize,
}

impl Message {
    const fn new() -> Message {
        Message { bytes: [0; 96], len: 0 }
    }

    const fn text(mut self, text: &str) -> Message {
        let mut i = 0;
        while i < text.len() {
            self.bytes[self.len] = text.as_bytes()[i];
            self.len += 1;
            i += 1;
        }
        self
    }

    /// The letter in quotes; a byte that is no ASCII sign as a question mark.
    const fn letter(mut self, letter: u8) -> Message {
        let shown = if letter > b' ' && letter < 127 { letter } else { b'?' };
        self = self.text("`");
        self.bytes[self.len] = shown;
        self.len += 1;
        self.text("`")
    }

    const fn number(mut self, n: usize) -> Message {
        if n >= 10 {
            self = self.number(n / 10);
        }
        self.bytes[self.len] = b'0' + (n % 10) as u8;
        self.len += 1;
        self
    }

    pub(crate) const fn as_str(&self) -> &str {
        match std::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "the subscripts are malformed",
        }
    }
}

impl Mistake {
    pub(crate) const fn describe(self) -> Message {
        let message = Message::new();
        match self {
            Mistake::Character(c) => message.letter(c).text(" is no subscript; letters are"),
            Mistake::Dots => message.text("an ellipsis is three dots: `...`"),
            Mistake::EllipsisTwice => message.text("one ellipsis is all that an operand can have"),
            Mistake::Arrow => message.text("the result follows an arrow: `->`"),
            Mistake::AfterArrow => message.text("only letters of one result follow the arrow"),
            Mistake::Unknown(c) => message.letter(c).text(" is in the result, but in no operand"),
            Mistake::Twice(c) => message.letter(c).text(" is twice in the result"),
            Mistake::EllipsisUnknown => {
                message.text("the result has an ellipsis, but no operand has one")
            }
            Mistake::Count(n, given) => message
                .text("the subscripts are for ")
                .number(n)
                .text(" operands, but ")
                .number(given)
                .text(" are given"),
        }
    }
}

impl Tensor {
    /// Fails, while compiling if called then, when subscripts are malformed.
    ///
    /// # Panics
    /// When they are.
    #[doc(hidden)]
    pub const fn check_einsum(spec: &str, n_operands: usize) {
        if let Some(mistake) = validate(spec.as_bytes(), n_operands) {
            let message = mistake.describe();
            panic!("{}", message.as_str());
        }
    }
}

/// Labels of axes: letters, and the axes that ellipses stand for.
pub(crate) type Label = u8;

/// The label of a letter.
pub(crate) const fn label(letter: u8) -> Label {
    bit(letter).trailing_zeros() as Label
}

/// The label of the axis an ellipsis stands for, counted from its last.
pub(crate) const fn ellipsis_label(from_last: usize) -> Label {
    52 + from_last as Label
}

/// Subscripts with labels for their axes; the result's are spelled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subscripts {
    pub(crate) operands: Vec<Vec<Label>>,
    pub(crate) output: Vec<Label>,
}

/// Valid subscripts for operands of these ranks, or the operand whose rank they do not fit.
pub(crate) fn labels(spec: &str, ranks: &[usize]) -> Result<Subscripts, String> {
    let bare: String = spec.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match bare.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (bare.as_str(), None),
    };
    let mut widest = 0;
    let mut operands = Vec::with_capacity(ranks.len());
    for (i, (text, &rank)) in inputs.split(',').zip(ranks).enumerate() {
        let letters = text.bytes().filter(|&c| c != b'.').count();
        let dots = text.contains('.');
        let fits = if dots { letters <= rank } else { letters == rank };
        if !fits {
            let (least, has) = (if dots { "at least " } else { "" }, rank);
            return Err(format!("operand {i} has {has} axes, `{text}` needs {least}{letters}"));
        }
        let covered = rank - letters;
        widest = widest.max(covered);
        operands.push(expand(text, covered));
    }
    let output = match output {
        Some(text) => expand(text, widest),
        None => implicit(&operands, widest),
    };
    Ok(Subscripts { operands, output })
}

/// The labels of one operand or result whose ellipsis stands for `covered` axes.
fn expand(text: &str, covered: usize) -> Vec<Label> {
    let mut labels = Vec::new();
    let mut bytes = text.bytes();
    while let Some(c) = bytes.next() {
        if c == b'.' {
            bytes.by_ref().take(2).for_each(drop);
            labels.extend((0..covered).rev().map(ellipsis_label));
        } else {
            labels.push(label(c));
        }
    }
    labels
}

/// The result when none is written: what the ellipses stand for, then the letters that are there
/// once, in alphabetical order (capitals first, as NumPy sorts them).
fn implicit(operands: &[Vec<Label>], widest: usize) -> Vec<Label> {
    let count = |l: Label| operands.iter().flatten().filter(|&&other| other == l).count();
    let alphabet = (b'A'..=b'Z').chain(b'a'..=b'z').map(label);
    let once = alphabet.filter(|&l| count(l) == 1);
    (0..widest).rev().map(ellipsis_label).chain(once).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_name_the_letter() {
        for (spec, n, part) in [
            ("ij,jk->iz", 2, "`z` is in the result"),
            ("ij->ii", 1, "`i` is twice"),
            ("i1->i", 1, "`1` is no subscript"),
            ("ij,jk", 3, "for 2 operands, but 3"),
            ("i..j", 1, "three dots"),
            ("...i...", 1, "one ellipsis"),
            ("ij-ij", 1, "an arrow"),
            ("ij->i->j", 1, "one result"),
            ("ij->i,j", 1, "one result"),
            ("ij->...i", 1, "no operand has one"),
            ("é", 1, "`?` is no subscript"),
        ] {
            let mistake = validate(spec.as_bytes(), n).expect(spec);
            let text = mistake.describe();
            assert!(text.as_str().contains(part), "{spec}: {}", text.as_str());
        }
        for (spec, n) in [("", 1), (",", 2), ("->", 1), (" i j , j k -> i k ", 2), ("...", 1)] {
            assert_eq!(validate(spec.as_bytes(), n), None, "{spec}");
        }
    }

    #[test]
    fn ellipses_and_implicit_results() {
        let parsed = labels("ba...,...b", &[4, 2]).unwrap();
        assert_eq!(parsed.operands[0], [1, 0, 53, 52]);
        assert_eq!(parsed.operands[1], [52, 1]);
        assert_eq!(parsed.output, [53, 52, 0]);
        assert_eq!(labels("aA", &[2]).unwrap().output, [26, 0]);
        assert!(labels("ij", &[3]).is_err() && labels("ij...", &[1]).is_err());
    }
}
