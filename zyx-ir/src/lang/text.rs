//! The text of a recorded kernel: that of its IR, with a header that says how it is called.
//!
//! ```text
//! kernel pairs
//! size 0 : n
//! value 0 : n0
//! value 1 : div(n0, 2)
//! small n0
//! small div(n0, 2)
//! argument 0 : input 1 x
//! argument 1 : output 1 y
//! buffer 0 : f32[1073741823] read s0
//! buffer 1 : f32[1073741823] write s1
//! scalar 0 : i64 0..=1073741823
//! scalar 1 : i64 0..=1073741823
//! %0   param 0 read : f32
//! ```
//!
//! A `size` has a name. A `value` is a scalar argument as an expression of sizes (`n0` is size 0), a `small` one has to be at
//! most [`SMALL`]. A line `looks_back` says that groups look back at others. An `argument` is a buffer: its role, number of axes and name; its extents are the values whose slots
//! the buffer names. Roles are `input`, `output`, `scratch`, `filled BITS` (hexadecimal) and `from INPUT`.

use super::{Argument, Fill, Recorded, Role, SMALL, Site, SizeExpr};
use crate::dtype::DType;
use crate::ir::{Kernel, ParseError, verify};
use crate::ops::BinaryOp;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Expressions within one another, at most, so that reading a text does not exhaust the stack.
const MAX_DEPTH: usize = 128;

/// An expression of sizes with its operations in front, which needs no precedence.
struct Prefix<'a>(&'a SizeExpr);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SizeExpr::Size(number) => write!(f, "n{number}"),
            SizeExpr::Literal(x) => write!(f, "{x}"),
            SizeExpr::Binary(op, operands) => {
                let [x, y] = [&operands[0], &operands[1]].map(Prefix);
                write!(f, "{op}({x}, {y})")
            }
        }
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = self.kernel.to_string();
        let (first, rest) = kernel.split_once('\n').unwrap_or((&kernel, ""));
        writeln!(f, "{first}")?;
        let name = |name: &str| {
            let name = name.replace(|c: char| c.is_control() || c == '#', "_");
            name.trim().to_owned()
        };
        for (number, size) in self.sizes.iter().enumerate() {
            writeln!(f, "size {number} : {}", name(size))?;
        }
        for (slot, scalar) in self.scalars.iter().enumerate() {
            writeln!(f, "value {slot} : {}", Prefix(scalar))?;
        }
        for space in &self.spaces {
            writeln!(f, "small {}", Prefix(space))?;
        }
        if self.looks_back {
            writeln!(f, "looks_back")?;
        }
        for (slot, argument) in self.arguments.iter().enumerate() {
            write!(f, "argument {slot} : ")?;
            match argument.role {
                Role::Input => write!(f, "input")?,
                Role::Output => write!(f, "output")?,
                Role::Scratch => write!(f, "scratch")?,
                Role::Cut => write!(f, "cut")?,
                Role::Filled(Fill::Scalar(bits)) => write!(f, "filled {bits:x}")?,
                Role::Filled(Fill::Input(number)) => write!(f, "from {number}")?,
            }
            writeln!(f, " {} {}", argument.shape.len(), name(&argument.name))?;
        }
        f.write_str(rest)
    }
}

/// The header of a text, with the number of the line that each part stands in.
#[derive(Default)]
struct Header<'a> {
    sizes: Vec<String>,
    scalars: Vec<(usize, SizeExpr)>,
    spaces: Vec<(usize, SizeExpr)>,
    arguments: Vec<(usize, Role, usize, &'a str)>,
    looks_back: bool,
}

impl<'a> Header<'a> {
    /// Reads a line; `false` if it is none of the header.
    fn line(&mut self, number: usize, line: &'a str) -> Result<bool, String> {
        if line == "looks_back" {
            self.looks_back = true;
            return Ok(true);
        }
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        if kind == "small" {
            self.spaces.push((number, expression(rest)?));
            return Ok(true);
        }
        let next = match kind {
            "size" => self.sizes.len(),
            "value" => self.scalars.len(),
            "argument" => self.arguments.len(),
            _ => return Ok(false),
        };
        let (slot, text) =
            rest.split_once(':').ok_or("a declaration is written `KIND SLOT : …`")?;
        if slot.trim() != next.to_string() {
            return Err(format!("slot {} is out of order, {next} is next", slot.trim()));
        }
        let text = text.trim();
        match kind {
            "size" => self.sizes.push(text.to_owned()),
            "value" => self.scalars.push((number, expression(text)?)),
            _ => self.argument(number, text)?,
        }
        Ok(true)
    }

    fn argument(&mut self, number: usize, text: &'a str) -> Result<(), String> {
        let mut rest = text;
        let mut word = |what: &str| {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = after.trim_start();
            if word.is_empty() { Err(format!("{what} is missing")) } else { Ok(word) }
        };
        let role = match word("a role")? {
            "input" => Role::Input,
            "output" => Role::Output,
            "scratch" => Role::Scratch,
            "cut" => Role::Cut,
            "filled" => {
                let bits = word("the bits of a scalar")?;
                let bits = u64::from_str_radix(bits, 16);
                Role::Filled(Fill::Scalar(bits.map_err(|_| "the bits are hexadecimal")?))
            }
            "from" => {
                let input = word("the number of an input")?.parse();
                Role::Filled(Fill::Input(input.map_err(|_| "an input is a number")?))
            }
            other => return Err(format!("`{other}` is no role of an argument")),
        };
        let rank = word("a number of axes")?.parse().map_err(|_| "a number of axes is missing")?;
        self.arguments.push((number, role, rank, rest));
        Ok(())
    }

    /// The argument in a slot, if it fits the buffer.
    fn fit(&self, slot: usize, kernel: &Kernel, known: &[Argument]) -> Result<Argument, String> {
        let (_, role, rank, name) = self.arguments[slot];
        let info = kernel.params()[slot];
        let slots: Vec<u16> =
            info.extents.iter().flat_map(|x| x.slots().collect::<Vec<_>>()).collect();
        if slots.len() != rank.max(1) {
            return Err(format!(
                "its buffer has {} extents: of no axis one, which is 1",
                slots.len()
            ));
        }
        let extent = |slot: &u16| {
            let scalar = self.scalars.get(usize::from(*slot));
            scalar.map(|scalar| scalar.1.clone()).ok_or_else(|| format!("there is no value {slot}"))
        };
        let extents = slots.iter().map(extent).collect::<Result<Vec<_>, _>>()?;
        if rank == 0 && extents != [SizeExpr::Literal(1)] {
            return Err("the extent of an argument without axes is 1".to_owned());
        }
        if info.access != role.access() {
            return Err("its buffer has another access than its role".to_owned());
        }
        let shape = extents[..rank].to_vec();
        if role == Role::Cut && (info.dtype, &extents[..]) != (DType::I32, &[SizeExpr::Literal(1)])
        {
            return Err("what tells of a cut loop is one i32".to_owned());
        }
        match role {
            Role::Filled(Fill::Scalar(bits))
                if info.dtype.size() < 8 && bits >> (8 * info.dtype.size()) != 0 =>
            {
                return Err(format!("`{bits:x}` is no {}", info.dtype));
            }
            Role::Filled(Fill::Input(number)) => {
                let input = known.iter().filter(|x| x.role == Role::Input).nth(number);
                if !input.is_some_and(|input| (input.dtype, &input.shape) == (info.dtype, &shape)) {
                    return Err(format!(
                        "input {number} is not before it, or has another shape or dtype"
                    ));
                }
            }
            _ => {}
        }
        Ok(Argument { name: name.to_owned(), dtype: info.dtype, shape, role })
    }
}

/// Reads an expression of sizes that stands for itself.
fn expression(text: &str) -> Result<SizeExpr, String> {
    let (expr, rest) = prefix(text, MAX_DEPTH)?;
    if rest.is_empty() { Ok(expr) } else { Err(format!("`{rest}` stands behind the expression")) }
}

/// Reads an expression of sizes; gives the rest of the text, too.
fn prefix(text: &str, depth: usize) -> Result<(SizeExpr, &str), String> {
    let text = text.trim_start();
    let end = text.find(['(', ')', ',', ' ']).unwrap_or(text.len());
    let (word, rest) = (&text[..end], text[end..].trim_start());
    let Some(operands) = rest.strip_prefix('(') else {
        let size = word.strip_prefix('n').and_then(|number| number.parse().ok());
        let literal = || word.parse().ok().map(SizeExpr::Literal);
        let expr = size.map(SizeExpr::Size).or_else(literal);
        return Ok((expr.ok_or_else(|| format!("`{word}` is neither a size nor a number"))?, rest));
    };
    let op = BinaryOp::from_name(word).filter(|op| op.domain().contains(DType::I64));
    let op = op.filter(|op| !op.is_comparison());
    let op = op.ok_or_else(|| format!("`{word}` is no operation of integers"))?;
    let depth = depth.checked_sub(1).ok_or("expressions are too deep")?;
    let (x, rest) = prefix(operands, depth)?;
    let (y, rest) = prefix(rest.strip_prefix(',').ok_or("a `,` is missing")?, depth)?;
    let rest = rest.strip_prefix(')').ok_or("a `)` is missing")?;
    Ok((SizeExpr::Binary(op, Arc::new([x, y])), rest.trim_start()))
}

fn largest_size(expr: &SizeExpr) -> Option<usize> {
    match expr {
        SizeExpr::Size(number) => Some(*number),
        SizeExpr::Literal(_) => None,
        SizeExpr::Binary(_, operands) => operands.iter().filter_map(largest_size).max(),
    }
}

impl FromStr for Recorded {
    type Err = ParseError;

    /// Reads the text of a kernel, and verifies it. Lines of the program are those of the text; [`Recorded::checked`] is the
    /// kernel itself, so accesses that have guards are not looked at by checks.
    fn from_str(text: &str) -> Result<Recorded, ParseError> {
        let mut header = Header::default();
        let (mut kernel, mut op_lines, mut last) = (String::new(), Vec::new(), 0);
        for (line, number) in text.lines().zip(1..) {
            let part = line.split('#').next().unwrap_or_default().trim();
            let at = |reason| ParseError { line: number, reason };
            if !header.line(number, part).map_err(at)? {
                kernel.push_str(part);
            }
            kernel.push('\n');
            if part.starts_with('%') {
                op_lines.push(number as u32);
            }
            last = number;
        }
        let kernel: Kernel = kernel.parse()?;
        let at = |line: usize, reason: String| Err(ParseError { line, reason });
        let counts = [
            ("argument", header.arguments.len(), "buffer", kernel.params().len()),
            ("value", header.scalars.len(), "scalar", kernel.vars().len()),
        ];
        for (kind, n, of, expected) in counts {
            if n != expected {
                return at(last, format!("there are {n} lines `{kind}` and {expected} `{of}`"));
            }
        }
        for (line, expr) in header.scalars.iter().chain(&header.spaces) {
            if let Some(size) = largest_size(expr).filter(|&size| size >= header.sizes.len()) {
                return at(*line, format!("there is no size {size}"));
            }
        }
        if let Some(slot) = kernel.vars().iter().position(|var| var.dtype != DType::I64) {
            return at(header.scalars[slot].0, "a value is an i64".to_owned());
        }
        let mut arguments = Vec::new();
        for slot in 0..header.arguments.len() {
            match header.fit(slot, &kernel, &arguments) {
                Ok(argument) => arguments.push(argument),
                Err(reason) => return at(header.arguments[slot].0, reason),
            }
        }
        if let Err(error) = verify(&kernel) {
            let line = op_lines.get(error.value.idx()).map_or(last, |&line| line as usize);
            return at(line, format!("{} ({:?})", error.reason, error.rule));
        }
        let file: Arc<str> = format!("text of kernel {}", kernel.name()).into();
        let sites = op_lines.iter().map(|&line| Site { file: file.clone(), line }).collect();
        Ok(Recorded {
            checked: kernel.clone(),
            lines: (0..op_lines.len() as u32).collect(),
            kernel,
            arguments,
            scalars: header.scalars.into_iter().map(|x| x.1).collect(),
            sizes: header.sizes,
            spaces: header.spaces.into_iter().map(|x| x.1).collect(),
            parameters: Vec::new(),
            looks_back: header.looks_back,
            sites,
        })
    }
}

impl Recorded {
    /// Whether it was recorded for sizes beyond [`SMALL`].
    pub fn is_large(&self) -> bool {
        self.kernel.vars().iter().any(|var| var.max > SMALL as i64)
    }
}
