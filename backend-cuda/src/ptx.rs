//! Kernels as PTX, which the driver assembles: NVRTC takes three to four times as long for the same kernel.
//!
//! The meaning of every op is that of the table (`zyx_core::ops`), as in C: floats are rounded to nearest
//! after each operation (`.rn`, which also keeps the assembler from contracting), subnormal numbers are kept,
//! extremes of floats give NaN. What the language has no instruction for is decomposed ([`lacks`]). What it
//! has but this file does not yet spell is refused by name, and NVRTC compiles it: matrix instructions, private
//! arrays indexed by counters, atomics by compare and exchange.

use crate::dialect::waits;
use std::collections::HashMap;
use std::fmt::Write;
use zyx_core::codegen::stages::{self, Stage};
use zyx_core::codegen::sync::Spread;
use zyx_core::codegen::walk::{Emitted, Emitter, Loop, walk};
use zyx_core::codegen::{Entry, Place, Sync, Unit, threads};
use zyx_core::hal::{Caps, CompileError};
use zyx_core::ir::{
    BarrierScope, Kernel, LoopKind, Op, Ranges, Rewritten, ShuffleKind, Space, Type, Value,
    Verified,
};
use zyx_core::{BinaryOp, Class, DType, DTypeSet, Scalar, TernaryOp, UnaryOp};

/// Lanes that are moved together.
const TOGETHER: usize = 4;
/// Bytes that buffers and shared storage start at multiples of.
const ALIGN: usize = 1024;

/// The capabilities of the device without the functions that PTX lacks.
fn lacks(caps: &Caps) -> Caps {
    let mut caps = caps.clone();
    for &op in UnaryOp::ALL {
        use UnaryOp::{Abs, Ceil, Exp2, Floor, Neg, Not, Recip, Round, Sqrt, Trunc};
        let known = matches!(op, Neg | Abs | Not | Recip | Sqrt | Floor | Ceil | Round | Trunc);
        if op == Exp2 {
            caps.unary[op as usize] = DTypeSet::of(&[DType::F32]);
        } else if !known {
            caps.unary[op as usize] = DTypeSet::NONE;
        }
    }
    let floats = DTypeSet::of(&[DType::F16, DType::BF16, DType::F32, DType::F64]);
    let rem = &mut caps.binary[BinaryOp::Rem as usize];
    *rem = rem.without(floats);
    for op in [BinaryOp::Pow, BinaryOp::Atan2] {
        caps.binary[op as usize] = DTypeSet::NONE;
    }
    caps
}

/// Translates a kernel for a device of this compute capability.
///
/// # Errors
/// When this file does not spell something that the kernel needs.
pub(crate) fn translate(
    kernel: &Verified,
    caps: &Caps,
    (major, minor): (u32, u32),
) -> Result<Unit, CompileError> {
    let kernel = zyx_core::prepare::legalize(&Rewritten::from(kernel.clone()), &lacks(caps))?;
    let error = |log: String| CompileError::new(&kernel, log);
    let mut source = format!(".version 8.0\n.target sm_{major}{minor}{}\n.address_size 64\n", "");
    let mut entries = Vec::new();
    for (n, stage) in stages::split(&kernel, caps).map_err(error)?.iter().enumerate() {
        let clean = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name = format!("k_{}_{n}", kernel.name().chars().map(clean).collect::<String>());
        let body = Body::new(&kernel, stage, caps).emit(&name, major >= 9).map_err(error)?;
        source.push_str(&body);
        entries.push(Entry { name, groups: stage.groups, local: stage.local, shared: 0 });
    }
    Ok(Unit { source, entries })
}

/// A class of registers, by the letter of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reg {
    Pred,
    Half,
    Word,
    Long,
    Float,
    Double,
}

const REGS: [(Reg, &str, &str); 6] = [
    (Reg::Pred, "p", ".pred"),
    (Reg::Half, "h", ".b16"),
    (Reg::Word, "r", ".b32"),
    (Reg::Long, "d", ".b64"),
    (Reg::Float, "f", ".f32"),
    (Reg::Double, "g", ".f64"),
];

/// The registers that hold a dtype: integers below 32 bits are held as 32.
fn reg(dtype: DType) -> Reg {
    match dtype {
        DType::Bool => Reg::Pred,
        DType::F16 | DType::BF16 => Reg::Half,
        DType::F32 => Reg::Float,
        DType::F64 => Reg::Double,
        DType::I64 | DType::U64 => Reg::Long,
        _ => Reg::Word,
    }
}

/// The suffix of instructions on a dtype.
fn suffix(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "pred",
        DType::U8 => "u8",
        DType::U16 => "u16",
        DType::U32 => "u32",
        DType::U64 => "u64",
        DType::I8 => "s8",
        DType::I16 => "s16",
        DType::I32 => "s32",
        DType::I64 => "s64",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::F32 => "f32",
        DType::F64 => "f64",
    }
}

/// The suffix of moves of a dtype.
fn bits(dtype: DType) -> &'static str {
    match reg(dtype) {
        Reg::Pred => "pred",
        Reg::Half => "b16",
        Reg::Word => "b32",
        Reg::Long => "b64",
        Reg::Float => "f32",
        Reg::Double => "f64",
    }
}

/// The suffix of loads and stores of a dtype.
fn memory(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "u8",
        DType::F16 | DType::BF16 => "b16",
        _ => suffix(dtype),
    }
}

/// How an open region ends.
enum Close {
    Nothing,
    If { end: usize },
    Loop { start: usize, end: usize, counter: String, dtype: DType, step: String },
}

/// The body of one launch.
struct Body<'a> {
    kernel: &'a Kernel,
    stage: &'a Stage,
    caps: &'a Caps,
    sync: Sync<'a>,
    out: String,
    declared: String,
    /// Registers used of each class.
    used: [usize; 6],
    labels: usize,
    /// The lanes of each value.
    values: Vec<Vec<String>>,
    /// Private arrays, lane by lane of each element.
    arrays: HashMap<Value, Vec<Vec<String>>>,
    /// Addresses of buffers in global, of storage in shared memory.
    bases: HashMap<Value, String>,
    multiples: Vec<u64>,
    regions: Vec<Close>,
    /// The first thing that cannot be spelled.
    refused: Option<String>,
}

impl<'a> Body<'a> {
    fn new(kernel: &'a Kernel, stage: &'a Stage, caps: &'a Caps) -> Body<'a> {
        let ranges = Ranges::of(kernel);
        Body {
            kernel,
            stage,
            caps,
            sync: Sync::new(kernel, stage),
            out: String::new(),
            declared: String::new(),
            used: [0; 6],
            labels: 0,
            values: vec![Vec::new(); kernel.ops().len()],
            arrays: HashMap::default(),
            bases: HashMap::default(),
            multiples: kernel.iter().map(|(v, _, _)| ranges.get(v).multiple_of).collect(),
            regions: Vec::new(),
            refused: None,
        }
    }

    fn emit(mut self, name: &str, waits_first: bool) -> Emitted<String> {
        if waits_first && waits(threads(self.stage.groups, self.stage.local)) {
            self.line("griddepcontrol.wait;");
        }
        let mut parameters = Vec::new();
        for i in 0..self.kernel.params().len() {
            parameters.push(format!(".param .u64 a{i}"));
        }
        for (i, var) in self.kernel.vars().iter().enumerate() {
            parameters.push(format!(".param .{} x{i}", memory(var.dtype)));
        }
        for (value, op, ty) in self.kernel.iter() {
            if !self.stage.members[value.idx()] {
                continue;
            }
            match op {
                Op::Param { slot, .. } => {
                    let (generic, base) = (self.fresh(Reg::Long), self.fresh(Reg::Long));
                    self.line(&format!("ld.param.u64 {generic}, [a{slot}];"));
                    self.line(&format!("cvta.to.global.u64 {base}, {generic};"));
                    self.bases.insert(value, base);
                }
                Op::Var { slot } => {
                    let x = self.fresh(reg(ty.dtype));
                    if ty.dtype == DType::Bool {
                        let byte = self.fresh(Reg::Word);
                        self.line(&format!("ld.param.u8 {byte}, [x{slot}];"));
                        self.line(&format!("setp.ne.u32 {x}, {byte}, 0;"));
                    } else {
                        self.line(&format!("ld.param.{} {x}, [x{slot}];", memory(ty.dtype)));
                    }
                    self.values[value.idx()] = vec![x];
                }
                _ => {}
            }
        }
        let (stage, caps) = (self.stage, self.caps);
        walk(&mut self, stage, caps)?;
        if let Some(reason) = self.refused {
            return Err(reason);
        }
        let [x, y, z] = self.stage.local;
        let mut text = format!("\n.visible .entry {name}({})\n", parameters.join(", "));
        let _ = writeln!(text, ".maxntid {x}, {y}, {z}\n{{");
        for ((_, letter, kind), n) in REGS.iter().zip(self.used) {
            if n > 0 {
                let _ = writeln!(text, "    .reg {kind} %{letter}<{n}>;");
            }
        }
        let _ = write!(text, "{}{}    ret;\n}}\n", self.declared, self.out);
        Ok(text)
    }

    fn line(&mut self, text: &str) {
        self.out.push_str("    ");
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn refuse(&mut self, what: impl Into<String>) -> String {
        let what = what.into();
        self.refused.get_or_insert(what);
        "0".to_owned()
    }

    fn fresh(&mut self, kind: Reg) -> String {
        let at = REGS.iter().position(|row| row.0 == kind).expect("invariant: all are listed");
        self.used[at] += 1;
        format!("%{}{}", REGS[at].1, self.used[at] - 1)
    }

    /// Defines a register by an instruction whose first operand it is.
    fn set(&mut self, kind: Reg, instruction: &str, operands: &[&str]) -> String {
        let to = self.fresh(kind);
        self.line(&format!("{instruction} {to}, {};", operands.join(", ")));
        to
    }

    fn literal(&mut self, x: Scalar) -> String {
        match x.dtype() {
            DType::Bool => {
                let one = if x.bits() == 0 { "0" } else { "1" };
                self.set(Reg::Pred, "setp.ne.u32", &[one, "0"])
            }
            DType::F32 => format!("0f{:08X}", x.bits()),
            DType::F64 => format!("0d{:016X}", x.bits()),
            DType::F16 | DType::BF16 => {
                self.set(Reg::Half, "mov.b16", &[&format!("{:#x}", x.bits())])
            }
            DType::I64 | DType::U64 => format!("{:#x}", x.bits()),
            _ => format!("{}", x.to_i128() as i64),
        }
    }

    /// The register or literal of a scalar.
    fn held(&mut self, value: Value) -> String {
        match self.kernel.constant(value) {
            Some(constant) => self.literal(constant),
            None => match self.kernel.op(value) {
                Op::Guard { index, .. } => self.held(index),
                _ => self.values[value.idx()][0].clone(),
            },
        }
    }

    fn lanes(&mut self, value: Value) -> Vec<String> {
        match self.kernel.ty(value).is_vector() {
            true => self.values[value.idx()].clone(),
            false => vec![self.held(value)],
        }
    }

    fn zero(&mut self, dtype: DType) -> String {
        self.literal(Scalar::from_i64(dtype, 0))
    }

    fn copy(&mut self, dtype: DType, x: &str) -> String {
        match dtype {
            DType::Bool => self.set(Reg::Pred, "or.pred", &[x, x]),
            _ => self.set(reg(dtype), &format!("mov.{}", bits(dtype)), &[x]),
        }
    }

    // Arithmetic.

    fn unary(&mut self, op: UnaryOp, dtype: DType, x: &str) -> String {
        let (kind, name) = (reg(dtype), suffix(dtype));
        let float = dtype.class() == Class::Float;
        match op {
            _ if dtype == DType::Bool => self.set(kind, "not.pred", &[x]),
            UnaryOp::Neg if !dtype.is_signed() && !float => {
                let (zero, sub) = (self.zero(dtype), format!("sub.{name}"));
                self.set(kind, &sub, &[&zero, x])
            }
            UnaryOp::Neg => self.set(kind, &format!("neg.{name}"), &[x]),
            UnaryOp::Abs if dtype.is_signed() || float => {
                self.set(kind, &format!("abs.{name}"), &[x])
            }
            UnaryOp::Not => self.set(kind, &format!("not.{}", bits(dtype)), &[x]),
            _ if !float => x.to_owned(),
            UnaryOp::Recip => self.set(kind, &format!("rcp.rn.{name}"), &[x]),
            UnaryOp::Sqrt => self.set(kind, &format!("sqrt.rn.{name}"), &[x]),
            UnaryOp::Exp2 if dtype == DType::F32 => self.set(kind, "ex2.approx.f32", &[x]),
            UnaryOp::Floor => self.set(kind, &format!("cvt.rmi.{name}.{name}"), &[x]),
            UnaryOp::Ceil => self.set(kind, &format!("cvt.rpi.{name}.{name}"), &[x]),
            UnaryOp::Round => self.set(kind, &format!("cvt.rni.{name}.{name}"), &[x]),
            UnaryOp::Trunc => self.set(kind, &format!("cvt.rzi.{name}.{name}"), &[x]),
            _ => self.refuse(format!("no {op} of {dtype}")),
        }
    }

    fn binary(&mut self, op: BinaryOp, dtype: DType, x: &str, y: &str) -> String {
        use BinaryOp::{Add, And, Div, Eq, Le, Lt, Max, Min, Mul, Ne, Or, Rem, Shl, Shr, Sub, Xor};
        let (kind, name, class) = (reg(dtype), suffix(dtype), dtype.class());
        if class == Class::Bool {
            return match op {
                And | Mul | Min => self.set(kind, "and.pred", &[x, y]),
                Or | Add | Max => self.set(kind, "or.pred", &[x, y]),
                Xor | Ne => self.set(kind, "xor.pred", &[x, y]),
                Eq => {
                    let differ = self.set(kind, "xor.pred", &[x, y]);
                    self.set(kind, "not.pred", &[&differ])
                }
                Lt | Le => {
                    let not = self.set(kind, "not.pred", &[x]);
                    self.set(kind, if op == Lt { "and.pred" } else { "or.pred" }, &[&not, y])
                }
                _ => self.refuse(format!("no {op} of bool")),
            };
        }
        if dtype.bits() < 32 {
            return self.refuse(format!("no {op} of {dtype}"));
        }
        let float = class == Class::Float;
        let rounded = if float { ".rn" } else { "" };
        match op {
            Lt | Le | Eq => self.set(Reg::Pred, &format!("setp.{}.{name}", op.name()), &[x, y]),
            Ne if float => self.set(Reg::Pred, &format!("setp.neu.{name}"), &[x, y]),
            Ne => self.set(Reg::Pred, &format!("setp.ne.{name}"), &[x, y]),
            Add | Sub => self.set(kind, &format!("{}{rounded}.{name}", op.name()), &[x, y]),
            Mul if float => self.set(kind, &format!("mul.rn.{name}"), &[x, y]),
            Mul => self.set(kind, &format!("mul.lo.{name}"), &[x, y]),
            Div => self.set(kind, &format!("div{rounded}.{name}"), &[x, y]),
            Rem if !float => self.set(kind, &format!("rem.{name}"), &[x, y]),
            Max | Min if dtype == DType::F32 => {
                self.set(kind, &format!("{}.NaN.f32", op.name()), &[x, y])
            }
            Max | Min if float => {
                let more = self.set(
                    Reg::Pred,
                    if op == Max { "setp.gt.f64" } else { "setp.lt.f64" },
                    &[x, y],
                );
                let nan = self.set(Reg::Pred, "setp.nan.f64", &[x, x]);
                let first = self.set(Reg::Pred, "or.pred", &[&more, &nan]);
                self.set(kind, "selp.f64", &[x, y, &first])
            }
            Max | Min => self.set(kind, &format!("{}.{name}", op.name()), &[x, y]),
            And | Or | Xor if !float => {
                self.set(kind, &format!("{}.{}", op.name(), bits(dtype)), &[x, y])
            }
            Shl | Shr => {
                let distance = match dtype.bits() {
                    64 => self.set(Reg::Word, "cvt.u32.u64", &[y]),
                    _ => y.to_owned(),
                };
                let of = if op == Shl { bits(dtype) } else { name };
                self.set(kind, &format!("{}.{of}", op.name()), &[x, &distance])
            }
            _ => self.refuse(format!("no {op} of {dtype}")),
        }
    }

    fn ternary(&mut self, op: TernaryOp, dtype: DType, [x, y, z]: [&str; 3]) -> String {
        match op {
            TernaryOp::Where if dtype == DType::Bool => {
                let (a, not) = (
                    self.set(Reg::Pred, "and.pred", &[x, y]),
                    self.set(Reg::Pred, "not.pred", &[x]),
                );
                let b = self.set(Reg::Pred, "and.pred", &[&not, z]);
                self.set(Reg::Pred, "or.pred", &[&a, &b])
            }
            TernaryOp::Where => self.set(reg(dtype), &format!("selp.{}", bits(dtype)), &[y, z, x]),
            TernaryOp::MulAdd if dtype.class() == Class::Float && dtype.bits() >= 32 => {
                self.set(reg(dtype), &format!("fma.rn.{}", suffix(dtype)), &[x, y, z])
            }
            TernaryOp::MulAdd if dtype.is_int() && dtype.bits() >= 32 => {
                self.set(reg(dtype), &format!("mad.lo.{}", suffix(dtype)), &[x, y, z])
            }
            TernaryOp::MulAdd => self.refuse(format!("no {op} of {dtype}")),
        }
    }

    fn cast(&mut self, from: DType, to: DType, x: &str) -> String {
        use DType::{BF16, Bool, F16, F32, F64, I32, U32};
        if from == to {
            return x.to_owned();
        }
        let (float_from, float_to) = (from.class() == Class::Float, to.class() == Class::Float);
        match (from, to) {
            (F16, F32) => self.set(Reg::Float, "cvt.f32.f16", &[x]),
            (BF16, F32) => {
                let zero = self.set(Reg::Half, "mov.b16", &["0"]);
                let word = self.set(Reg::Word, "mov.b32", &[&format!("{{{zero}, {x}}}")]);
                self.set(Reg::Float, "mov.b32", &[&word])
            }
            (F16 | BF16, _) => {
                let single = self.cast(from, F32, x);
                self.cast(F32, to, &single)
            }
            (Bool, _) => {
                let (one, zero) = (self.literal(Scalar::from_i64(to, 1)), self.zero(to));
                self.set(reg(to), &format!("selp.{}", bits(to)), &[&one, &zero, x])
            }
            (_, Bool) => {
                let (zero, ne) = (self.zero(from), if float_from { "neu" } else { "ne" });
                let of = if from.bits() < 32 { "u32" } else { suffix(from) };
                self.set(Reg::Pred, &format!("setp.{ne}.{of}"), &[x, &zero])
            }
            (F32, F16) => self.set(Reg::Half, "cvt.rn.f16.f32", &[x]),
            (F32, BF16) => self.set(Reg::Half, "cvt.rn.bf16.f32", &[x]),
            (_, F16 | BF16) if from.bits() <= 16 => {
                let single = self.cast(from, F32, x);
                self.cast(F32, to, &single)
            }
            (_, F16 | BF16) => self.refuse(format!("no {to} of {from}")),
            (F64, F32) => self.set(Reg::Float, "cvt.rn.f32.f64", &[x]),
            (F32, F64) => self.set(Reg::Double, "cvt.f64.f32", &[x]),
            _ if float_from && to.bits() < 32 => {
                let word = if to.is_signed() { I32 } else { U32 };
                let wide = self.cast(from, word, x);
                let range =
                    [Scalar::lowest(to), Scalar::highest(to)].map(|x| x.to_i128().to_string());
                let low = self.binary(BinaryOp::Max, word, &wide, &range[0]);
                self.binary(BinaryOp::Min, word, &low, &range[1])
            }
            _ if float_from => {
                let (a, b) = (suffix(to), suffix(from));
                let whole = self.set(reg(to), &format!("cvt.rzi.{a}.{b}"), &[x]);
                let nan = self.set(Reg::Pred, &format!("setp.nan.{b}"), &[x, x]);
                let zero = self.zero(to);
                self.set(reg(to), &format!("selp.{}", bits(to)), &[&zero, &whole, &nan])
            }
            _ if float_to => {
                // Narrow integers are held as words.
                let wide = match from.bits() < 32 {
                    true if from.is_signed() => "s32",
                    true => "u32",
                    false => suffix(from),
                };
                self.set(reg(to), &format!("cvt.rn.{}.{wide}", suffix(to)), &[x])
            }
            _ => {
                let of = match (from.bits() < 32, from.is_signed()) {
                    (true, true) => "s32",
                    (true, false) => "u32",
                    _ => suffix(from),
                };
                self.set(reg(to), &format!("cvt.{}.{of}", suffix(to)), &[x])
            }
        }
    }

    fn bitcast(&mut self, from: DType, to: DType, x: &str) -> String {
        match (reg(from), reg(to)) {
            _ if from == to => x.to_owned(),
            (Reg::Pred, _) | (_, Reg::Pred) => self.cast(from, to, x),
            (Reg::Half, Reg::Half) => x.to_owned(),
            (Reg::Half, _) => {
                let wide = self.set(Reg::Word, "cvt.u32.u16", &[x]);
                if to.is_signed() { self.set(Reg::Word, "cvt.s16.s32", &[&wide]) } else { wide }
            }
            (_, Reg::Half) => self.set(Reg::Half, "cvt.u16.u32", &[x]),
            (Reg::Word, Reg::Word) if from.bits() < 32 => {
                self.set(Reg::Word, &format!("cvt.{}.u32", suffix(to)), &[x])
            }
            (a, b) if a == b => x.to_owned(),
            (_, Reg::Word | Reg::Float) => self.set(reg(to), "mov.b32", &[x]),
            _ => self.set(reg(to), "mov.b64", &[x]),
        }
    }

    // Memory.

    /// The position along an axis, or how many there are.
    fn position(&mut self, register: &str, axis: usize, dtype: DType) -> String {
        let word =
            self.set(Reg::Word, "mov.u32", &[&format!("%{register}.{}", ["x", "y", "z"][axis])]);
        self.cast(DType::U32, dtype, &word)
    }

    fn space(&self, buf: Value) -> &'static str {
        if matches!(self.kernel.op(buf), Op::Alloc { .. }) { "shared" } else { "global" }
    }

    /// The address of lane `lane` of an access in units of elements of the buffer.
    fn address(&mut self, place: &Place, lane: u8) -> String {
        let (ty, element) = (self.kernel.ty(place.index), self.kernel.ty(place.buf));
        let base = self.bases[&place.buf].clone();
        let size = element.bytes();
        let beyond = if ty.is_vector() { 0 } else { usize::from(lane) * size };
        if let Some(n) = self.kernel.constant(place.index).filter(|_| !ty.is_vector()) {
            return format!("[{base}+{}]", n.to_i64() * size as i64 + beyond as i64);
        }
        let lanes = self.lanes(place.index);
        let index = if ty.is_vector() { &lanes[usize::from(lane)] } else { &lanes[0] };
        let size = size.to_string();
        let at = if self.space(place.buf) == "shared" {
            let word = if ty.dtype.bits() == 64 {
                self.set(Reg::Word, "cvt.u32.u64", &[index])
            } else {
                index.clone()
            };
            self.set(Reg::Word, "mad.lo.u32", &[&word, &size, &base])
        } else if ty.dtype.bits() == 64 {
            self.set(Reg::Long, "mad.lo.s64", &[index, &size, &base])
        } else {
            self.set(Reg::Long, "mad.wide.s32", &[index, &size, &base])
        };
        if beyond == 0 { format!("[{at}]") } else { format!("[{at}+{beyond}]") }
    }

    /// The predicate of an access of a lane, and of the thread that writes for all if `writes`.
    fn test(&mut self, place: &Place, lane: u8, writes: bool) -> Option<String> {
        let mut all: Option<String> = None;
        let mut tests = Vec::new();
        for &cond in &place.conds {
            let lanes = self.lanes(cond);
            tests.push(lanes[if lanes.len() > 1 { usize::from(lane) } else { 0 }].clone());
        }
        if writes && self.sync.is_memory(place.buf) {
            for axis in self.sync.idle_axes().collect::<Vec<_>>() {
                let at = self.position("tid", axis, DType::U32);
                tests.push(self.set(Reg::Pred, "setp.eq.u32", &[&at, "0"]));
            }
        }
        for test in tests {
            all = Some(match all {
                None => test,
                Some(all) => self.set(Reg::Pred, "and.pred", &[&all, &test]),
            });
        }
        all
    }

    /// Lanes that an access moves at once.
    fn moved(&self, place: &Place, ty: Type) -> usize {
        let lanes = usize::from(ty.lanes);
        let element = self.kernel.ty(place.buf);
        let vectors = self.kernel.ty(place.index).is_vector()
            || place.conds.iter().any(|&cond| self.kernel.ty(cond).is_vector());
        if vectors || place.relaxed {
            return 1;
        }
        let known = element.lanes == ty.lanes && ty.is_vector()
            || matches!(self.kernel.op(place.buf), Op::Param { .. })
                && self.multiples[place.index.idx()].is_multiple_of(lanes as u64);
        if known { lanes.min(TOGETHER).min(16 / ty.dtype.size()).max(1) } else { 1 }
    }

    /// The elements of a private array that an access is to.
    fn cell(&mut self, place: &Place, lanes: u8) -> Option<Vec<(usize, usize)>> {
        let index = self.kernel.constant(place.index);
        let element = self.kernel.ty(place.buf).lanes;
        let Some(index) = index.filter(|_| place.conds.is_empty()) else {
            self.refuse("a private array with an index that varies");
            return None;
        };
        let first = index.to_i64() as usize;
        Some(match element == lanes {
            true => (0..usize::from(lanes)).map(|lane| (first, lane)).collect(),
            false => (0..usize::from(lanes)).map(|lane| (first + lane, 0)).collect(),
        })
    }

    fn offset(&mut self, place: &Place, ty: Type, lane: usize) -> String {
        let element = self.kernel.ty(place.buf);
        if element.lanes == ty.lanes && ty.is_vector() {
            // Elements are whole vectors.
            let address = self.address(place, 0);
            let bytes = lane * ty.dtype.size();
            let inner = address.trim_end_matches(']').to_owned();
            return if bytes == 0 { address } else { format!("{inner}+{bytes}]") };
        }
        self.address(place, lane as u8)
    }
}

impl<'a> Emitter<'a> for Body<'a> {
    fn kernel(&self) -> &'a Kernel {
        self.kernel
    }

    fn sync(&mut self) -> &mut Sync<'a> {
        &mut self.sync
    }

    fn has_vectors(&self, _lanes: u8) -> bool {
        true
    }

    fn barrier(&mut self, _scope: BarrierScope) {
        self.line("bar.sync 0;");
    }

    fn alloc(&mut self, value: Value, space: Space, ty: Type, len: u32) {
        if space == Space::Shared {
            let bytes = len.max(1) as usize * ty.bytes();
            if bytes > self.caps.shared_bytes {
                self.refuse("more shared storage than launches have unasked");
            }
            let _ =
                writeln!(self.declared, "    .shared .align {ALIGN} .b8 m{}[{bytes}];", value.0);
            let base = self.set(Reg::Word, "mov.u32", &[&format!("m{}", value.0)]);
            self.bases.insert(value, base);
            return;
        }
        let kind = reg(ty.dtype);
        let cell = |this: &mut Self| (0..ty.lanes).map(|_| this.fresh(kind)).collect();
        if len > 256 {
            self.refuse("a large private array");
        }
        let cells = (0..len).map(|_| cell(self)).collect();
        self.arrays.insert(value, cells);
    }

    fn open_if(&mut self, cond: Value) {
        let cond = self.held(cond);
        let end = self.labels;
        self.labels += 1;
        self.line(&format!("@!{cond} bra $L{end};"));
        self.regions.push(Close::If { end });
    }

    fn open_loop(&mut self, Loop { counter, kind, axis, len, spread }: Loop) {
        let dtype = self.kernel.ty(counter).dtype;
        let (own, all) = match kind {
            LoopKind::Local => ("tid", "ntid"),
            _ => ("ctaid", "nctaid"),
        };
        let start = match spread {
            Spread::Serial => self.zero(dtype),
            _ => self.position(own, axis, dtype),
        };
        let step = match spread {
            Spread::Single => {
                self.regions.push(Close::Nothing);
                self.values[counter.idx()] = vec![start];
                return;
            }
            Spread::Serial => "1".to_owned(),
            Spread::Strided => self.position(all, axis, dtype),
        };
        let len = self.held(len);
        let i = self.copy(dtype, &start);
        let (start, end) = (self.labels, self.labels + 1);
        self.labels += 2;
        self.out.push_str(&format!("$L{start}:\n"));
        let over = self.set(Reg::Pred, &format!("setp.ge.{}", suffix(dtype)), &[&i, &len]);
        self.line(&format!("@{over} bra $L{end};"));
        self.values[counter.idx()] = vec![i.clone()];
        self.regions.push(Close::Loop { start, end, counter: i, dtype, step });
    }

    fn close(&mut self) {
        match self.regions.pop().expect("invariant: regions are balanced") {
            Close::Nothing => {}
            Close::If { end } => self.out.push_str(&format!("$L{end}:\n")),
            Close::Loop { start, end, counter, dtype, step } => {
                self.line(&format!("add.{} {counter}, {counter}, {step};", suffix(dtype)));
                self.line(&format!("bra.uni $L{start};"));
                self.out.push_str(&format!("$L{end}:\n"));
            }
        }
    }

    fn load(&mut self, value: Value, ty: Type, place: &Place) -> Emitted {
        if !self.sync.is_memory(place.buf) {
            let Some(cells) = self.cell(place, ty.lanes) else {
                self.values[value.idx()] = vec!["0".to_owned(); ty.lanes.into()];
                return Ok(());
            };
            let array = self.arrays[&place.buf].clone();
            let lanes = cells.into_iter().map(|(i, lane)| self.copy(ty.dtype, &array[i][lane]));
            self.values[value.idx()] = lanes.collect();
            return Ok(());
        }
        let (n, dtype, space) = (self.moved(place, ty), ty.dtype, self.space(place.buf));
        let access = if place.relaxed || place.awaited { ".volatile" } else { "" };
        let mut lanes = Vec::new();
        for first in (0..usize::from(ty.lanes)).step_by(n) {
            let held = if dtype == DType::Bool { Reg::Word } else { reg(dtype) };
            let targets: Vec<String> = (0..n).map(|_| self.fresh(held)).collect();
            let test = self.test(place, first as u8, false);
            let at = self.offset(place, ty, first);
            if test.is_some() {
                let zero = match dtype {
                    DType::Bool => "0".to_owned(),
                    _ => self.zero(dtype),
                };
                let moved = if dtype == DType::Bool { "b32" } else { bits(dtype) };
                for target in &targets {
                    self.line(&format!("mov.{moved} {target}, {zero};"));
                }
            }
            let guard = test.map_or(String::new(), |test| format!("@{test} "));
            let (list, width) = match n {
                1 => (targets[0].clone(), String::new()),
                _ => (format!("{{{}}}", targets.join(", ")), format!(".v{n}")),
            };
            let label = self.labels;
            if place.awaited {
                self.labels += 1;
                self.out.push_str(&format!("$L{label}:\n"));
            }
            self.line(&format!("{guard}ld{access}.{space}{width}.{} {list}, {at};", memory(dtype)));
            if place.awaited {
                if !guard.is_empty() {
                    self.refuse("a guarded wait");
                }
                let zero = self.zero(dtype);
                let again = self.binary(BinaryOp::Eq, dtype, &targets[0], &zero);
                self.line(&format!("@{again} bra $L{label};"));
            }
            for target in targets {
                lanes.push(match dtype {
                    DType::Bool => self.set(Reg::Pred, "setp.ne.u32", &[&target, "0"]),
                    _ => target,
                });
            }
        }
        self.values[value.idx()] = lanes;
        Ok(())
    }

    fn store(&mut self, place: &Place, x: Value) -> Emitted {
        let (ty, values) = (self.kernel.ty(x), self.lanes(x));
        if !self.sync.is_memory(place.buf) {
            let Some(cells) = self.cell(place, ty.lanes) else { return Ok(()) };
            let array = self.arrays[&place.buf].clone();
            for ((i, lane), x) in cells.into_iter().zip(values) {
                let to = &array[i][lane];
                match ty.dtype {
                    DType::Bool => self.line(&format!("or.pred {to}, {x}, {x};")),
                    dtype => self.line(&format!("mov.{} {to}, {x};", bits(dtype))),
                }
            }
            return Ok(());
        }
        let (n, space) = (self.moved(place, ty), self.space(place.buf));
        let access = if place.relaxed { ".volatile" } else { "" };
        for first in (0..values.len()).step_by(n) {
            let test = self.test(place, first as u8, true);
            let at = self.offset(place, ty, first);
            let mut list = Vec::new();
            for x in &values[first..first + n] {
                list.push(match ty.dtype {
                    DType::Bool => self.set(Reg::Word, "selp.u32", &["1", "0", x]),
                    dtype if !x.starts_with('%') => self.copy(dtype, x),
                    _ => x.clone(),
                });
            }
            let guard = test.map_or(String::new(), |test| format!("@{test} "));
            let (list, width) = match n {
                1 => (list[0].clone(), String::new()),
                _ => (format!("{{{}}}", list.join(", ")), format!(".v{n}")),
            };
            self.line(&format!(
                "{guard}st{access}.{space}{width}.{} {at}, {list};",
                memory(ty.dtype)
            ));
        }
        Ok(())
    }

    fn atomic(&mut self, old: Option<Value>, op: BinaryOp, place: &Place, x: Value) -> Emitted {
        use BinaryOp::{Add, And, Max, Min, Or, Sub, Xor};
        let (ty, values, space) = (self.kernel.ty(x), self.lanes(x), self.space(place.buf));
        let dtype = ty.dtype;
        let integer = dtype.is_int() && dtype.bits() >= 32;
        let unsigned = if dtype.bits() == 64 { "u64" } else { "u32" };
        let (name, of) = match op {
            Add | Sub if integer => ("add", unsigned),
            Add if matches!(dtype, DType::F32 | DType::F64) => ("add", suffix(dtype)),
            Max | Min if integer => (op.name(), suffix(dtype)),
            And | Or | Xor if integer => (op.name(), bits(dtype)),
            _ => return Err(format!("no atomic {op} of {dtype}")),
        };
        if old.is_some() && self.sync.idle_axes().next().is_some()
            || self.kernel.ty(place.buf).is_vector()
        {
            return Err("an atomic whose result the group shares".into());
        }
        let mut lanes = Vec::new();
        for (lane, x) in values.iter().enumerate() {
            let x = if op == Sub { self.unary(UnaryOp::Neg, dtype, x) } else { x.clone() };
            let test = self.test(place, lane as u8, true);
            let at = self.address(place, lane as u8);
            let guard = test.map_or(String::new(), |test| format!("@{test} "));
            let result = self.fresh(reg(dtype));
            if !guard.is_empty() {
                let zero = self.zero(dtype);
                self.line(&format!("mov.{} {result}, {zero};", bits(dtype)));
            }
            self.line(&format!("{guard}atom.{space}.{name}.{of} {result}, {at}, {x};"));
            lanes.push(result);
        }
        if let Some(value) = old {
            self.values[value.idx()] = lanes;
        }
        Ok(())
    }

    fn pure(&mut self, value: Value, op: Op, ty: Type) {
        let kernel = self.kernel;
        let of = |x: Value| kernel.ty(x).dtype;
        let n = usize::from(ty.lanes);
        // Scalars stand for all lanes.
        let each = |lanes: &[String], i: usize| lanes[if lanes.len() > 1 { i } else { 0 }].clone();
        let lanes: Vec<String> = match op {
            Op::Unary { op, x } => {
                let x = self.lanes(x);
                (0..n).map(|i| self.unary(op, ty.dtype, &each(&x, i))).collect()
            }
            Op::Binary { op, x, y } => {
                let (a, b) = (self.lanes(x), self.lanes(y));
                (0..n).map(|i| self.binary(op, of(x), &each(&a, i), &each(&b, i))).collect()
            }
            Op::Ternary { op, x, y, z } => {
                let all = [x, y, z].map(|v| self.lanes(v));
                let lane = |this: &mut Self, i: usize| {
                    let [a, b, c] = all.each_ref().map(|lanes| each(lanes, i));
                    this.ternary(op, ty.dtype, [&a, &b, &c])
                };
                (0..n).map(|i| lane(self, i)).collect()
            }
            Op::Cast { x } => {
                let lanes = self.lanes(x);
                (0..n).map(|i| self.cast(of(x), ty.dtype, &each(&lanes, i))).collect()
            }
            Op::Bitcast { x } => {
                let lanes = self.lanes(x);
                (0..n).map(|i| self.bitcast(of(x), ty.dtype, &each(&lanes, i))).collect()
            }
            Op::Splat { x } => vec![self.held(x); n],
            Op::Extract { x, lane } => vec![self.lanes(x)[usize::from(lane)].clone()],
            Op::Concat { x, y } => [x, y].map(|v| self.lanes(v)).concat(),
            Op::Lanes => {
                (0..n).map(|i| self.literal(Scalar::from_i64(ty.dtype, i as i64))).collect()
            }
            Op::Fold { op, x } => {
                let mut terms = self.lanes(x);
                while terms.len() > 1 {
                    let upper = terms.split_off(terms.len() / 2);
                    let pairs = terms.iter().zip(&upper);
                    terms = pairs.map(|(a, b)| self.binary(op, of(x), a, b)).collect();
                }
                terms
            }
            _ => unreachable!("invariant: ops with effects are emitted elsewhere"),
        };
        self.values[value.idx()] = lanes;
    }

    fn together(&mut self, value: Value, op: Op, ty: Type) -> Emitted {
        let Op::Shuffle { kind, x, lane } = op else {
            return Err("no matrix instructions".into());
        };
        let threads: u64 = self.stage.local.iter().product();
        if !threads.is_multiple_of(32) || ty.is_vector() || ty.dtype.bits() < 32 {
            return Err("a shuffle of a part of a warp".into());
        }
        let own = self.set(Reg::Word, "mov.u32", &["%laneid"]);
        let own = self.cast(DType::U32, DType::U64, &own);
        let asked = self.held(lane);
        let asked = self.cast(self.kernel.ty(lane).dtype, DType::U64, &asked);
        let from = match kind {
            ShuffleKind::Index => asked,
            ShuffleKind::Xor => self.set(Reg::Long, "xor.b64", &[&own, &asked]),
            ShuffleKind::Down => self.set(Reg::Long, "add.u64", &[&own, &asked]),
        };
        let exists = self.set(Reg::Pred, "setp.lt.u64", &[&from, "32"]);
        let from = self.set(Reg::Long, "selp.b64", &[&from, &own, &exists]);
        let from = self.set(Reg::Word, "cvt.u32.u64", &[&from]);
        let x = self.held(x);
        let x = self.copy(ty.dtype, &x);
        let exchange = |this: &mut Self, word: &str| {
            this.set(Reg::Word, "shfl.sync.idx.b32", &[word, &from, "0x1f", "0xffffffff"])
        };
        let result = if ty.dtype.bits() == 64 {
            let long = self.bitcast(ty.dtype, DType::U64, &x);
            let (low, high) = (self.fresh(Reg::Word), self.fresh(Reg::Word));
            self.line(&format!("mov.b64 {{{low}, {high}}}, {long};"));
            let (low, high) = (exchange(self, &low), exchange(self, &high));
            let long = self.set(Reg::Long, "mov.b64", &[&format!("{{{low}, {high}}}")]);
            self.bitcast(DType::U64, ty.dtype, &long)
        } else {
            let word = self.bitcast(ty.dtype, DType::U32, &x);
            let got = exchange(self, &word);
            self.bitcast(DType::U32, ty.dtype, &got)
        };
        self.values[value.idx()] = vec![result];
        Ok(())
    }
}

/// Whether a kernel reads or writes nothing that this file could not spell is known by trying only.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::caps::{Facts, caps};

    #[test]
    fn a_sum_of_two_buffers_is_a_few_instructions() {
        let text = "kernel add
            buffer 0 : f32[256] read
            buffer 1 : f32[256] write
            %p param 0 read : f32
            %q param 1 write : f32
            %n const 256 : i64
            %i loop local %n
            %x load %p[%i] : f32
            %y add %x, %x : f32
            %s store %q[%i], %y : f32
            %e end %i";
        let kernel = Verified::new(&text.parse().unwrap()).unwrap();
        let unit = translate(&kernel, &caps(&Facts::typical()), (9, 0)).unwrap();
        assert!(unit.source.contains("add.rn.f32"), "{}", unit.source);
    }
}
