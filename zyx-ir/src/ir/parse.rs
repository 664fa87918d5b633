//! The inverse of printing: a [`Kernel`] from its text.
//!
//! `parse(print(k)) == k` for every kernel whose operands stand before their uses and whose
//! regions nest. Nothing else is checked here: types may be wrong, accesses out of bounds; that
//! is for `verify`. To make reduction and writing by hand easy the reader is looser than the
//! printer: a label is any word after `%` and need not be consecutive, indentation and blank
//! lines mean nothing, `#` starts a comment, and `,` `[` `]` only separate.

use super::kernel::{Builder, Kernel, ParamInfo, VarInfo};
use super::op::{Op, Order, Type, Value};
use super::print::{Keyword, implied_type, literal_bits};
use crate::dtype::DType;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use rustc_hash::FxHashMap;
use std::str::FromStr;

/// Text that is not a kernel: where and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

type Parsed<T> = Result<T, String>;

impl FromStr for Kernel {
    type Err = ParseError;

    /// Reads the text form.
    ///
    /// ```
    /// use zyx_ir::ir::Kernel;
    /// let text = "kernel k\nbuffer 0 : f32[4] write\n%0 param 0 write : f32\n";
    /// let kernel: Kernel = text.parse()?;
    /// assert_eq!(kernel.params()[0].len, 4);
    /// # Ok::<(), zyx_ir::ir::ParseError>(())
    /// ```
    fn from_str(text: &str) -> Result<Kernel, ParseError> {
        let mut parser = Parser::default();
        let mut last = 0;
        for (i, line) in text.lines().enumerate() {
            last = i + 1;
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                parser.line(line).map_err(|reason| ParseError { line: last, reason })?;
            }
        }
        parser.finish().map_err(|reason| ParseError { line: last, reason })
    }
}

#[derive(Default)]
struct Parser {
    name: Option<String>,
    params: Vec<ParamInfo>,
    vars: Vec<VarInfo>,
    /// Ops read so far; made with the first op line, when the header is complete.
    body: Option<Builder>,
    labels: FxHashMap<String, Value>,
    /// Regions open at this point.
    open: Vec<Value>,
}

impl Parser {
    fn line(&mut self, line: &str) -> Parsed<()> {
        let mut words = Words::of(line);
        let Some(label) = line.strip_prefix('%') else {
            return self.header(line, words);
        };
        if self.name.is_none() {
            return Err("the first line is `kernel NAME`".into());
        }
        let end = label.find(char::is_whitespace).unwrap_or(label.len());
        let label = label[..end].to_owned();
        words.next("a label")?;
        let (op, ty) = self.op(&mut words)?;
        words.end()?;
        let body = self.body.get_or_insert_with(|| {
            let name = self.name.as_deref().unwrap_or_default();
            Builder::raw(name).with_arguments(self.params.clone(), self.vars.clone())
        });
        let value = body.push(op, ty);
        if op.opens_region() {
            self.open.push(value);
        }
        match self.labels.insert(label, value) {
            None => Ok(()),
            Some(first) => Err(format!("this label already names op {}", first.0)),
        }
    }

    fn header(&mut self, line: &str, mut words: Words<'_>) -> Parsed<()> {
        let word = words.next("a line")?;
        if word == "kernel" {
            let name = line["kernel".len()..].trim().to_owned();
            return match self.name.replace(name) {
                None => Ok(()),
                Some(_) => Err("a text holds one kernel".into()),
            };
        }
        if self.name.is_none() {
            return Err("the first line is `kernel NAME`".into());
        }
        if self.body.is_some() {
            return Err("arguments are declared before the first op, and ops start with `%`".into());
        }
        match word {
            "buffer" => {
                words.slot(self.params.len())?;
                let dtype = words.dtype()?;
                let len = words.number("a number of elements")?;
                let access = words.keyword()?;
                let extents = words.left.next().map(str::parse).transpose()?;
                self.params.push(ParamInfo { dtype, len, access, open: false, extents });
            }
            "scalar" => {
                words.slot(self.vars.len())?;
                let dtype = words.dtype()?;
                let range = words.next("a range")?;
                let (min, max) = range.split_once("..=").ok_or("a range is written MIN..=MAX")?;
                let bound = |x: &str| x.parse().map_err(|_| format!("`{x}` is not an i64"));
                let (min, max) = (bound(min)?, bound(max)?);
                let multiple_of = match words.left.next() {
                    None => 1,
                    Some("by") => words.number("a divisor")?,
                    Some(word) => return Err(format!("`{word}` is not `by`")),
                };
                if multiple_of == 0 {
                    return Err("0 is no divisor".into());
                }
                self.vars.push(VarInfo { dtype, min, max, multiple_of });
            }
            _ => return Err(format!("`{word}` is none of kernel, buffer, scalar, %label")),
        }
        words.end()
    }

    fn finish(self) -> Parsed<Kernel> {
        let name = self.name.ok_or("there is no kernel")?;
        if let Some(open) = self.open.last() {
            return Err(format!("the region opened by op {} is not closed", open.0));
        }
        let body =
            self.body.unwrap_or_else(|| Builder::raw(&name).with_arguments(self.params, self.vars));
        Ok(body.finish())
    }

    /// One op with its type.
    fn op(&mut self, words: &mut Words<'_>) -> Parsed<(Op, Type)> {
        let word = words.next("an op")?;
        let (word, suffix) = word.split_once('.').unwrap_or((word, ""));
        if !suffix.is_empty() && !matches!(word, "load" | "store" | "atomic") {
            return Err(format!("`{word}` has no `.{suffix}`"));
        }
        let op = match self.scalar_op(word, words)? {
            Some(op) => op,
            None => self.memory_or_flow_op(word, suffix, words)?,
        };
        let ty = match (words.ty()?, implied_type(&op)) {
            (Some(ty), _) | (None, Some(ty)) => ty,
            (None, None) => return Err("the type is missing: `: TYPE`".into()),
        };
        let op = match op {
            Op::Const { .. } => Op::Const { bits: words.literal(ty.dtype)? },
            op => op,
        };
        Ok((op, ty))
    }

    /// Ops that compute a value from values, `None` if `word` names another.
    fn scalar_op(&self, word: &str, words: &mut Words<'_>) -> Parsed<Option<Op>> {
        if let Some(op) = UnaryOp::from_name(word) {
            return Ok(Some(Op::Unary { op, x: self.value(words)? }));
        }
        if let Some(op) = BinaryOp::from_name(word) {
            let (x, y) = (self.value(words)?, self.value(words)?);
            return Ok(Some(Op::Binary { op, x, y }));
        }
        if let Some(op) = TernaryOp::from_name(word) {
            let (x, y, z) = (self.value(words)?, self.value(words)?, self.value(words)?);
            return Ok(Some(Op::Ternary { op, x, y, z }));
        }
        Ok(Some(match word {
            "const" => {
                words.next("a number")?;
                Op::Const { bits: 0 }
            }
            "cast" => Op::Cast { x: self.value(words)? },
            "bitcast" => Op::Bitcast { x: self.value(words)? },
            "splat" => Op::Splat { x: self.value(words)? },
            "lanes" => Op::Lanes,
            "extract" => Op::Extract { x: self.value(words)?, lane: words.number("a lane")? },
            "concat" => Op::Concat { x: self.value(words)?, y: self.value(words)? },
            "fold" => Op::Fold { op: words.binary_op()?, x: self.value(words)? },
            "guard" => Op::Guard { index: self.value(words)?, cond: self.value(words)? },
            _ => return Ok(None),
        }))
    }

    fn memory_or_flow_op(&mut self, word: &str, suffix: &str, words: &mut Words<'_>) -> Parsed<Op> {
        let order = if suffix.is_empty() { Order::Plain } else { keyword(suffix)? };
        Ok(match word {
            "param" => Op::Param { slot: words.number("a slot")?, access: words.keyword()? },
            "var" => Op::Var { slot: words.number("a slot")? },
            "alloc" => Op::Alloc { space: words.keyword()?, len: words.number("a length")? },
            "load" => Op::Load { order, buf: self.value(words)?, index: self.value(words)? },
            "store" => {
                let (buf, index, value) =
                    (self.value(words)?, self.value(words)?, self.value(words)?);
                Op::Store { order, buf, index, value }
            }
            "atomic" => {
                let op = words.binary_op()?;
                let (buf, index, value) =
                    (self.value(words)?, self.value(words)?, self.value(words)?);
                Op::Atomic { op, order, buf, index, value }
            }
            "loop" => {
                let kind = words.next("a loop's kind")?;
                let (kind, axis) = kind.split_once('.').unwrap_or((kind, "0"));
                let axis = axis.parse().map_err(|_| format!("`{axis}` is not an axis"))?;
                Op::Loop { kind: keyword(kind)?, axis, len: self.value(words)? }
            }
            "if" => Op::If { cond: self.value(words)? },
            "break" => Op::Break { cond: self.value(words)? },
            "end" => {
                let open = self.value(words)?;
                if self.open.pop() != Some(open) {
                    return Err("this is not the innermost open region".into());
                }
                Op::End { open }
            }
            "barrier" => Op::Barrier { scope: words.keyword()? },
            "shuffle" => {
                let kind = words.keyword()?;
                Op::Shuffle { kind, x: self.value(words)?, lane: self.value(words)? }
            }
            "panel" => Op::Panel { buf: self.value(words)?, index: self.value(words)? },
            "mma" => {
                let row = words.number("a row")?;
                let (a, b, c) = (self.value(words)?, self.value(words)?, self.value(words)?);
                Op::Mma { row, a, b, c }
            }
            _ => return Err(format!("there is no op `{word}`")),
        })
    }

    fn value(&self, words: &mut Words<'_>) -> Parsed<Value> {
        let word = words.next("a value")?;
        let label = word.strip_prefix('%').ok_or_else(|| format!("`{word}` is not a value"))?;
        let value = self.labels.get(label).copied();
        value.ok_or_else(|| format!("`{word}` is not defined above"))
    }
}

/// The words of one line.
struct Words<'a> {
    /// What comes before the colon that introduces the type.
    left: std::vec::IntoIter<&'a str>,
    right: std::vec::IntoIter<&'a str>,
    /// The last word taken from the left.
    last: &'a str,
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Words<'a> {
        let (left, right) = line.split_once(" : ").unwrap_or((line, ""));
        let split = |part: &'a str| {
            let separator = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']');
            part.split(separator).filter(|w| !w.is_empty()).collect::<Vec<_>>().into_iter()
        };
        Words { left: split(left), right: split(right), last: "" }
    }

    fn next(&mut self, what: &str) -> Parsed<&'a str> {
        self.last = self.left.next().ok_or_else(|| format!("{what} is missing"))?;
        Ok(self.last)
    }

    /// The slot of a declaration, which must be the next; then reading goes on after the colon.
    fn slot(&mut self, expected: usize) -> Parsed<()> {
        let slot: usize = self.number("a slot")?;
        if slot != expected {
            return Err(format!("slot {slot} is out of order, {expected} is next"));
        }
        if self.left.next().is_some() {
            return Err("a declaration is written `KIND SLOT : …`".into());
        }
        self.left = std::mem::take(&mut self.right);
        Ok(())
    }

    fn number<T: FromStr>(&mut self, what: &str) -> Parsed<T> {
        let word = self.next(what)?;
        word.parse().map_err(|_| format!("`{word}` is not {what}"))
    }

    fn keyword<T: Keyword>(&mut self) -> Parsed<T> {
        keyword(self.next(T::WHAT)?)
    }

    fn binary_op(&mut self) -> Parsed<BinaryOp> {
        let word = self.next("an op")?;
        BinaryOp::from_name(word).ok_or_else(|| format!("`{word}` is not a binary op"))
    }

    fn dtype(&mut self) -> Parsed<DType> {
        dtype(self.next("a dtype")?)
    }

    /// The type after the colon, if there is one.
    fn ty(&mut self) -> Parsed<Option<Type>> {
        let Some(word) = self.right.next() else { return Ok(None) };
        let (name, lanes) = word.split_once('x').unwrap_or((word, "1"));
        let lanes = lanes.parse().map_err(|_| format!("`{lanes}` is not a number of lanes"))?;
        Ok(Some(Type { dtype: dtype(name)?, lanes }))
    }

    /// The word taken last, as a constant.
    fn literal(&self, dtype: DType) -> Parsed<u64> {
        let text = self.last;
        literal_bits(dtype, text).ok_or_else(|| format!("`{text}` is not a constant of {dtype}"))
    }

    fn end(mut self) -> Parsed<()> {
        match self.left.next().or_else(|| self.right.next()) {
            None => Ok(()),
            Some(word) => Err(format!("`{word}` is one word too many")),
        }
    }
}

fn dtype(name: &str) -> Parsed<DType> {
    DType::from_name(name).ok_or_else(|| format!("`{name}` is not a dtype"))
}

fn keyword<T: Keyword>(word: &str) -> Parsed<T> {
    let row = T::WORDS.iter().find(|(_, w)| *w == word);
    row.map(|(variant, _)| *variant).ok_or_else(|| {
        let words: Vec<_> = T::WORDS.iter().map(|(_, w)| *w).collect();
        format!("`{word}` is not {}; known: {}", T::WHAT, words.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::op::{Access, BarrierScope, LoopKind, ShuffleKind, Space};

    fn round_trip(kernel: &Kernel) {
        let text = kernel.to_string();
        let again: Kernel = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(&again, kernel, "{text}");
        assert_eq!(again.to_string(), text);
    }

    /// Every op, with every row of the op tables and every word, types as they come.
    #[test]
    fn every_op_survives_the_round_trip() {
        let mut b = Builder::raw("all");
        let p = b.param(DType::F32, u64::MAX, Access::ReadWrite);
        let n = b.var(DType::I64, i64::MIN, i64::MAX);
        let x = b.constant(crate::Scalar::from(-1.25f32));
        let ty = Type::vector(DType::BF16, 255);
        let mut ops = vec![
            Op::Var { slot: 65535 },
            Op::Cast { x },
            Op::Bitcast { x },
            Op::Splat { x },
            Op::Lanes,
            Op::Extract { x, lane: 255 },
            Op::Concat { x, y: n },
            Op::Guard { index: n, cond: x },
            Op::Panel { buf: p, index: n },
            Op::Mma { row: 7, a: p, b: n, c: x },
        ];
        ops.extend(DType::ALL.iter().map(|_| Op::Const { bits: 1 }));
        ops.extend(UnaryOp::ALL.iter().map(|&op| Op::Unary { op, x }));
        ops.extend(BinaryOp::ALL.iter().map(|&op| Op::Binary { op, x, y: n }));
        ops.extend(BinaryOp::ALL.iter().map(|&op| Op::Fold { op, x }));
        ops.extend(TernaryOp::ALL.iter().map(|&op| Op::Ternary { op, x, y: n, z: p }));
        for &(access, _) in Access::WORDS {
            ops.push(Op::Param { slot: 3, access });
        }
        for &(space, _) in Space::WORDS {
            ops.push(Op::Alloc { space, len: u32::MAX });
        }
        for &(order, _) in Order::WORDS {
            ops.push(Op::Load { order, buf: p, index: n });
            ops.push(Op::Store { order, buf: p, index: n, value: x });
            let op = BinaryOp::Xor;
            ops.push(Op::Atomic { op, order, buf: p, index: n, value: x });
        }
        for &(scope, _) in BarrierScope::WORDS {
            ops.push(Op::Barrier { scope });
        }
        for &(kind, _) in ShuffleKind::WORDS {
            ops.push(Op::Shuffle { kind, x, lane: n });
        }
        for op in ops {
            b.push(op, ty);
        }
        for &(kind, _) in LoopKind::WORDS {
            b.open_loop(kind, 0, n);
            b.push(Op::Loop { kind, axis: 9, len: n }, ty);
            b.open_if(x);
        }
        while b.depth() > 0 {
            b.close();
        }
        round_trip(&b.finish());
    }

    #[test]
    fn constants_of_all_dtypes_survive() {
        let mut b = Builder::raw("constants");
        for &dtype in DType::ALL {
            for bits in [0, 1, 2, 0x7f, 0x80, 0x7fc0_0001, 0x8000_0000, 1 << 63, u64::MAX] {
                b.push(Op::Const { bits }, Type::scalar(dtype));
            }
        }
        round_trip(&b.finish());
    }

    #[test]
    fn an_empty_kernel_survives() {
        round_trip(&Builder::new("").finish());
    }

    #[test]
    fn labels_comments_and_layout_are_free() {
        let text = "
            kernel k  # a comment
            scalar 0 : i64 0..=3
            %n var 0 : i64
            %i loop serial %n
            %two const 2 : i64
            %p mul %i %two : i64
            %e end %i";
        let kernel: Kernel = text.parse().unwrap();
        let op = Op::Binary { op: BinaryOp::Mul, x: Value(1), y: Value(2) };
        assert_eq!(kernel.op(Value(3)), op);
        round_trip(&kernel);
    }

    #[test]
    fn errors_name_the_line_and_the_reason() {
        for (text, line, reason) in [
            ("", 0, "there is no kernel"),
            ("%0 lanes : i64x4", 1, "the first line is"),
            ("kernel a\nkernel b", 2, "one kernel"),
            ("kernel k\nbuffer 1 : f32[2] read", 2, "slot 1 is out of order, 0 is next"),
            ("kernel k\nbuffer 0 : f33[2] read", 2, "`f33` is not a dtype"),
            ("kernel k\nbuffer 0 : f32[-2] read", 2, "`-2` is not a number of elements"),
            ("kernel k\nbuffer 0 : f32[2] reed", 2, "known: read, write, readwrite"),
            ("kernel k\nscalar 0 : i64 1-2", 2, "MIN..=MAX"),
            ("kernel k\n\n%0 frob : i64", 3, "there is no op `frob`"),
            ("kernel k\n%0 add %1, %2 : i64", 2, "`%1` is not defined above"),
            ("kernel k\n%0 const 256 : u8", 2, "`256` is not a constant of u8"),
            ("kernel k\n%0 const 1.5 : i32", 2, "`1.5` is not a constant of i32"),
            ("kernel k\n%0 const 1", 2, "the type is missing"),
            ("kernel k\n%0 const : i64", 2, "a number is missing"),
            ("kernel k\n%0 lanes 4 : i64x4", 2, "one word too many"),
            ("kernel k\n%0 lanes : i64x999", 2, "`999` is not a number of lanes"),
            ("kernel k\n%0 lanes : i64x4\n%0 lanes : i64x4", 3, "already names op 0"),
            ("kernel k\n%0 const true : bool\n%1 if %0", 3, "opened by op 1 is not closed"),
            ("kernel k\n%0 const true : bool\n%1 if %0\n%2 end %0", 4, "not the innermost"),
            ("kernel k\n%0 lanes.relaxed : i64x4", 2, "`lanes` has no `.relaxed`"),
            ("kernel k\n%0 lanes : i64x4\nbuffer 0 : f32[2] read", 3, "before the first op"),
        ] {
            let error = text.parse::<Kernel>().unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.reason.contains(reason), "{text}: {error}");
        }
    }
}
