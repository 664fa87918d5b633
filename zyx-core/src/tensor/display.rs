//! Printing, as NumPy does it.
//!
//! `Display` gives NumPy's `str` (`[1. 2.]`), `Debug` its `repr` (`tensor([1., 2.], dtype=f32)`):
//! columns aligned, the shortest digits that read back, at most eight of them after the point
//! (or as many as `{:.3}` asks for), scientific notation where the values span too much, tensors
//! of more than 1000 elements summarised by their corners. The rules were read off the output of
//! NumPy 2.4, which the tests compare with; names of dtypes are ours.
//!
//! Printing computes the tensor if need be. It cannot fail: an error of the device is printed in
//! place of the elements.

use super::Tensor;
use crate::dtype::{Class, DType};
use crate::error::Result;
use crate::scalar::Scalar;
use std::fmt;

/// Elements above which only the corners are shown, how many of each corner, line width, digits.
const THRESHOLD: usize = 1000;
const EDGE: usize = 3;
const LINE: usize = 75;
const PRECISION: usize = 8;

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shown() {
            Err(error) => write!(f, "<{error}>"),
            Ok(shown) if self.rank() == 0 => {
                let width = f.width().unwrap_or(0);
                write!(f, "{:>width$}", scalar(shown[0], f.precision()))
            }
            Ok(shown) => {
                let digits = f.precision().unwrap_or(PRECISION);
                f.write_str(&self.layout(&shown, digits, " ", "", 0))
            }
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PREFIX: &str = "tensor(";
        let (shape, dtype) = (self.shape(), self.dtype());
        let shown = match self.shown() {
            Err(error) => return write!(f, "tensor(<{error}>, shape={shape}, dtype={dtype})"),
            Ok(shown) => shown,
        };
        let digits = f.precision().unwrap_or(PRECISION);
        let body = self.layout(&shown, digits, ", ", PREFIX, 1);
        let mut extras = Vec::new();
        if (shown.is_empty() && shape.dims() != [0]) || self.numel() > THRESHOLD {
            extras.push(format!("shape={shape}"));
        }
        let implied = matches!(dtype, DType::Bool | DType::I64 | DType::F64);
        if !implied || shown.is_empty() {
            extras.push(format!("dtype={dtype}"));
        }
        if extras.is_empty() {
            return write!(f, "{PREFIX}{body})");
        }
        let (text, extras) = (format!("{PREFIX}{body},"), extras.join(", ") + ")");
        let last_line = text.len() - text.rfind('\n').map_or(0, |at| at + 1);
        let spacer = match last_line + extras.len() + 1 > LINE {
            true => format!("\n{:1$}", "", PREFIX.len()),
            false => " ".to_owned(),
        };
        write!(f, "{text}{spacer}{extras}")
    }
}

impl Tensor {
    /// How many elements of each corner are shown.
    fn edge(&self) -> usize {
        if self.numel() > THRESHOLD { EDGE } else { usize::MAX }
    }

    /// The elements that are shown, in row-major order. Others are not read.
    fn shown(&self) -> Result<Vec<Scalar>> {
        let mut shown = Vec::new();
        if let Some(buffer) = self.stored()? {
            let size = self.dtype().size();
            corners(self.shape(), self.edge(), 0, &mut |first, n| {
                let mut bytes = vec![0; n * size];
                self.device().read_at(buffer, first * size, &mut bytes)?;
                shown.extend(Scalar::read_all(self.dtype(), &bytes));
                Ok(())
            })?;
        }
        Ok(shown)
    }

    /// The bracketed elements; `prefix` is what stands before them, `suffix` how much behind.
    fn layout(
        &self,
        shown: &[Scalar],
        digits: usize,
        separator: &str,
        prefix: &str,
        suffix: usize,
    ) -> String {
        if shown.is_empty() {
            return "[]".to_owned();
        }
        let words = Words::fit(self.dtype(), self.rank(), shown, digits);
        let nested = Nested { words, edge: self.edge(), separator };
        let indent = " ".repeat(prefix.len() + usize::from(self.rank() > 0));
        nested.format(self.shape(), &mut shown.iter(), &indent, LINE - suffix)
    }
}

/// Whether an axis is cut, and the positions shown of it.
fn positions(extent: usize, edge: usize) -> (bool, impl Iterator<Item = usize>) {
    let cut = extent > edge.saturating_mul(2);
    let head = if cut { edge } else { extent };
    let tail = if cut { extent - edge } else { extent };
    (cut, (0..head).chain(tail..extent))
}

/// Calls `run` with the first of each run of neighbours that are shown, and their number.
fn corners(
    dims: &[usize],
    edge: usize,
    offset: usize,
    run: &mut dyn FnMut(usize, usize) -> Result<()>,
) -> Result<()> {
    if dims.iter().all(|&extent| !positions(extent, edge).0) {
        return run(offset, dims.iter().product());
    }
    let (extent, rest) = (dims[0], &dims[1..]);
    if rest.is_empty() {
        run(offset, edge)?;
        return run(offset + extent - edge, edge);
    }
    let step: usize = rest.iter().product();
    positions(extent, edge).1.try_for_each(|i| corners(rest, edge, offset + i * step, run))
}

/// Elements being laid out in nested brackets.
struct Nested<'a> {
    words: Words,
    edge: usize,
    separator: &'a str,
}

impl Nested<'_> {
    /// The part of shape `dims` whose elements come next; further lines start with `indent`.
    fn format(
        &self,
        dims: &[usize],
        next: &mut std::slice::Iter<'_, Scalar>,
        indent: &str,
        width: usize,
    ) -> String {
        let Some((&extent, rest)) = dims.split_first() else {
            return next.next().map_or_else(String::new, |&x| self.words.word(x));
        };
        let deeper = format!("{indent} ");
        let (cut, shown) = positions(extent, self.edge);
        let mut parts: Vec<String> =
            shown.map(|_| self.format(rest, next, &deeper, width - 1)).collect();
        if cut {
            parts.insert(self.edge, "...".to_owned());
        }
        let text = match rest.is_empty() {
            true => self.row(&parts, indent, width),
            false => {
                let separator = self.separator.trim_end();
                let between = format!("{separator}{}{indent}", "\n".repeat(rest.len()));
                parts.join(&between)
            }
        };
        format!("[{text}]")
    }

    /// Words on lines of at most `width` characters.
    fn row(&self, words: &[String], indent: &str, width: usize) -> String {
        let width = width - self.separator.trim_end().len().max(1);
        let (mut text, mut line) = (String::new(), indent.to_owned());
        for (i, word) in words.iter().enumerate() {
            if line.len() + word.len() > width && line.len() > indent.len() {
                text += line.trim_end();
                text.push('\n');
                indent.clone_into(&mut line);
            }
            line += word;
            if i + 1 < words.len() {
                line += self.separator;
            }
        }
        text += &line;
        text[indent.len()..].to_owned()
    }
}

/// How all elements of one tensor are spelled, so that they align.
enum Words {
    Bool {
        width: usize,
    },
    Int {
        width: usize,
    },
    /// Characters before and behind the point, and most digits behind it.
    Positional {
        left: usize,
        right: usize,
        digits: usize,
    },
    /// Characters before the point, digits behind it, digits of the exponent.
    Scientific {
        left: usize,
        digits: usize,
        exponent: usize,
    },
}

impl Words {
    fn fit(dtype: DType, rank: usize, shown: &[Scalar], digits: usize) -> Words {
        match dtype.class() {
            Class::Bool => Words::Bool { width: if rank == 0 { 0 } else { 5 } },
            Class::Unsigned | Class::Signed => {
                let length = |x: &Scalar| x.to_i128().to_string().len();
                Words::Int { width: shown.iter().map(length).max().unwrap_or(0) }
            }
            Class::Float => Words::fit_floats(dtype, shown, digits),
        }
    }

    fn fit_floats(dtype: DType, shown: &[Scalar], digits: usize) -> Words {
        let finite: Vec<Scalar> =
            shown.iter().copied().filter(|x| x.to_f64().is_finite()).collect();
        let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
        let mut words = if spans_too_much(dtype, &finite) {
            let parts: Vec<_> = finite.iter().map(|&x| scientific(x, digits)).collect();
            Words::Scientific {
                left: longest(&mut parts.iter().map(|p| p.0.len())),
                digits: longest(&mut parts.iter().map(|p| p.1.len())),
                exponent: longest(&mut parts.iter().map(|p| exponent(p.2, 2).len() - 1)),
            }
        } else {
            let parts: Vec<_> = finite.iter().map(|&x| positional(x, digits)).collect();
            Words::Positional {
                left: longest(&mut parts.iter().map(|p| p.0.len())),
                right: longest(&mut parts.iter().map(|p| p.1.len())),
                digits,
            }
        };
        // `nan` and `inf` are set flush right, and may need more room than the numbers.
        let special = shown.iter().filter(|x| !x.to_f64().is_finite());
        let special = longest(&mut special.map(|x| special_word(x.to_f64()).len()));
        let behind = words.behind();
        match &mut words {
            Words::Positional { left, .. } | Words::Scientific { left, .. } => {
                *left = (*left).max(special.saturating_sub(behind));
            }
            Words::Bool { .. } | Words::Int { .. } => {}
        }
        words
    }

    /// Characters from the point on.
    fn behind(&self) -> usize {
        match self {
            Words::Positional { right, .. } => right + 1,
            Words::Scientific { digits, exponent, .. } => digits + exponent + 3,
            Words::Bool { .. } | Words::Int { .. } => 0,
        }
    }

    fn word(&self, x: Scalar) -> String {
        match *self {
            Words::Bool { width } => {
                format!("{:>width$}", if x.to_bool() { "True" } else { "False" })
            }
            Words::Int { width } => format!("{:>width$}", x.to_i128()),
            Words::Positional { left, .. } | Words::Scientific { left, .. }
                if !x.to_f64().is_finite() =>
            {
                format!("{:>1$}", special_word(x.to_f64()), left + self.behind())
            }
            Words::Positional { left, right, digits } => {
                let (integer, fraction) = positional(x, digits);
                format!("{integer:>left$}.{fraction:<right$}")
            }
            Words::Scientific { left, digits, exponent: digits_of } => {
                // Beyond the shortest digits come exact ones, not zeros.
                let text = format!("{:.digits$e}", x.to_f64().abs());
                let (integer, fraction, power) = split(&text);
                let (integer, power) = (sign(x).to_owned() + integer, exponent(power, digits_of));
                format!("{integer:>left$}.{fraction}e{power}")
            }
        }
    }
}

/// Six digits for `f32`: from there on NumPy shows powers of ten.
fn large(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 1e3,
        DType::F64 => 1e8,
        _ => 1e6,
    }
}

fn spans_too_much(dtype: DType, finite: &[Scalar]) -> bool {
    let sizes = || finite.iter().map(|x| x.to_f64().abs()).filter(|&x| x != 0.0);
    let (Some(max), Some(min)) = (sizes().reduce(f64::max), sizes().reduce(f64::min)) else {
        return false;
    };
    let rounded = |x: f64| Scalar::from_f64(dtype, x).to_f64();
    max >= large(dtype) || min < rounded(1e-4) || rounded(max / min) > 1000.0
}

fn special_word(x: f64) -> &'static str {
    match x {
        x if x.is_nan() => "nan",
        x if x < 0.0 => "-inf",
        _ => "inf",
    }
}

/// Sign and digits of the exponent, as in `+05`.
fn exponent(power: i32, digits: usize) -> String {
    format!("{}{:02$}", if power < 0 { '-' } else { '+' }, power.unsigned_abs(), digits)
}

/// The shortest decimal digits that read back as `x`, and the power of ten of the first.
fn shortest(x: Scalar) -> (String, i32) {
    let size = x.to_f64().abs();
    let text = match x.dtype() {
        DType::F64 => format!("{size:e}"),
        DType::F32 => format!("{:e}", size as f32),
        dtype => {
            // Halves: as many digits as it takes, at most five.
            let code = Scalar::from_f64(dtype, size);
            let reads_back = |text: &String| {
                let value = text.parse().expect("invariant: a printed number reads back");
                Scalar::from_f64(dtype, value) == code
            };
            let mut texts = (0..17).map(|digits| format!("{size:.digits$e}"));
            texts.find(reads_back).expect("invariant: 17 digits identify any number")
        }
    };
    let (integer, fraction, power) = split(&text);
    (format!("{integer}{fraction}"), power)
}

/// The parts of what `{:e}` prints.
fn split(text: &str) -> (&str, &str, i32) {
    let (digits, power) = text.split_once('e').expect("invariant: `{:e}` prints an exponent");
    let power = power.parse().expect("invariant: `{:e}` prints an integer exponent");
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    (integer, fraction, power)
}

fn sign(x: Scalar) -> &'static str {
    if x.to_f64().is_sign_negative() { "-" } else { "" }
}

/// The digits before (with the sign) and behind the point, at most `limit` behind it.
fn positional(x: Scalar, limit: usize) -> (String, String) {
    let (digits, power) = shortest(x);
    let behind = usize::try_from(digits.len() as i32 - 1 - power).unwrap_or(0);
    let text = if behind > limit {
        format!("{:.limit$}", x.to_f64().abs())
    } else {
        let head = usize::try_from(power + 1).unwrap_or(0);
        let zeros = usize::try_from(-1 - power).unwrap_or(0);
        let (integer, fraction) = digits.split_at(head.min(digits.len()));
        let integer = if head == 0 { "0".to_owned() } else { format!("{integer:0<head$}") };
        format!("{integer}.{}{fraction}", "0".repeat(zeros))
    };
    let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
    (format!("{}{integer}", sign(x)), fraction.trim_end_matches('0').to_owned())
}

/// The digit before the point (with the sign), at most `limit` behind it, and the power of ten.
fn scientific(x: Scalar, limit: usize) -> (String, String, i32) {
    let (mut digits, mut power) = shortest(x);
    if digits.len() > limit + 1 {
        let text = format!("{:.limit$e}", x.to_f64().abs());
        let (integer, fraction, rounded_power) = split(&text);
        (digits, power) = (format!("{integer}{fraction}"), rounded_power);
    }
    let (integer, fraction) = digits.split_at(1);
    (format!("{}{integer}", sign(x)), fraction.trim_end_matches('0').to_owned(), power)
}

/// A lone element with all its digits, or with `precision` of them behind the point.
fn scalar(x: Scalar, precision: Option<usize>) -> String {
    let value = x.to_f64();
    match (x.dtype().class(), precision) {
        (Class::Bool, _) => (if x.to_bool() { "True" } else { "False" }).to_owned(),
        (Class::Unsigned | Class::Signed, _) => x.to_i128().to_string(),
        (Class::Float, _) if !value.is_finite() => special_word(value).to_owned(),
        (Class::Float, Some(precision)) => format!("{value:.precision$}"),
        (Class::Float, None) => {
            let limit = if x.dtype() == DType::F64 { 1e16 } else { large(x.dtype()) };
            if value == 0.0 || (1e-4..limit).contains(&value.abs()) {
                let (integer, fraction) = positional(x, usize::MAX);
                let fraction = if fraction.is_empty() { "0" } else { &fraction };
                return format!("{integer}.{fraction}");
            }
            let (integer, fraction, power) = scientific(x, usize::MAX - 1);
            let point = if fraction.is_empty() { "" } else { "." };
            format!("{integer}{point}{fraction}e{}", exponent(power, 2))
        }
    }
}
