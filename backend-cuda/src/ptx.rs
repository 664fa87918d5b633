//! Kernels as PTX, the assembly language that the driver takes: NVRTC needs three to four times as long for the
//! same kernel, and is not there on most machines.
//!
//! The meaning of every op is that of the table (`zyx_core::ops`): floats are rounded to nearest after each
//! operation (`.rn`, which also keeps the assembler from contracting), subnormal numbers are kept, extremes of
//! floats give NaN. Functions that the language lacks are decomposed before ([`functions`]), for NVRTC as well,
//! so that both compilers give the same bits.
//!
//! * Integers below 32 bits are held in registers of 32, extended by their sign or zeros.
//! * Vectors are a register for each lane; lanes that lie behind one another are moved together.
//! * Private arrays are registers where all indices are constants, else local memory.
//! * Instructions are those of the manual *Parallel Thread Execution ISA*, version 8.0.

use crate::dialect::waits;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use zyx_core::codegen::matrix::{Chains, Step, copied, is_zero};
use zyx_core::codegen::stages::{self, Stage};
use zyx_core::codegen::sync::Spread;
use zyx_core::codegen::walk::{Emitted, Emitter, Loop, synchronise, walk};
use zyx_core::codegen::{Entry, Place, Sync, Unit, normal_exp2, threads};
use zyx_core::hal::{Caps, CompileError};
use zyx_core::ir::{
    BarrierScope, Interval, Kernel, LoopKind, Op, Ranges, ShuffleKind, Space, Type, Value,
    mma::{self, Row, Shape},
};
use zyx_core::{BinaryOp, Class, DType, DTypeSet, Scalar, TernaryOp, UnaryOp};

/// Bytes that are moved together.
const MOVED: usize = 16;
/// Bytes that shared storage starts at multiples of.
const ALIGN: usize = 1024;
/// Shared storage of which a launch says how much it is.
const DYNAMIC: &str = ".extern .shared .align 1024 .b8 dynamic[];";
/// Most elements of a private array in registers.
const MOST_REGISTERS: u32 = 256;

/// Gives the capabilities the functions that PTX has.
pub(crate) fn functions(caps: &mut Caps) {
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
}

/// The first driver whose kernels take 32,764 bytes of parameters, from compute capability 7.0 and version 8.1 of the
/// language on; others take 4,352.
pub(crate) const MANY_PARAMETERS: i32 = 12_010;

/// What the text is for: an architecture and the version of the language that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    arch: &'static str,
    version: &'static str,
    /// The compute capability, as in (9, 0).
    capability: (u32, u32),
}

/// Architectures that add instructions which are used here, with the oldest driver whose assembler knows them.
const TARGETS: [(Target, i32); 6] = {
    const fn target(arch: &'static str, version: &'static str, capability: (u32, u32)) -> Target {
        Target { arch, version, capability }
    }
    [
        (target("sm_90a", "8.0", (9, 0)), 12_000),
        (target("sm_90", "7.8", (9, 0)), 11_080),
        (target("sm_80", "7.0", (8, 0)), 11_000),
        (target("sm_75", "6.5", (7, 5)), 10_020),
        (target("sm_70", "6.4", (7, 0)), 10_010),
        (target("sm_60", "6.4", (6, 0)), 10_010),
    ]
};

impl Target {
    /// For a device of this compute capability and a driver of this version. Later devices run what was written
    /// for earlier ones, but for `sm_90a`.
    pub(crate) fn of(capability: (u32, u32), driver: i32) -> Option<Target> {
        let fits = |(target, least): &&(Target, i32)| {
            let same = target.capability == capability || !target.has_wide();
            same && target.capability <= capability && *least <= driver
        };
        let (mut target, _) = *TARGETS.iter().find(fits)?;
        if driver >= MANY_PARAMETERS && target.capability >= (7, 0) {
            target.version = "8.1";
        }
        Some(target)
    }

    /// Whether it has the instructions of one generation.
    pub(crate) fn has_wide(self) -> bool {
        self.arch.ends_with('a')
    }

    /// Whether launches may wait for earlier ones in their own code.
    pub(crate) fn has_waits(self) -> bool {
        self.capability >= (9, 0)
    }

    /// Whether it has rounding to `bf16`, extremes that keep NaN, and matrix instructions of 16 steps.
    fn is_ampere(self) -> bool {
        self.capability >= (8, 0)
    }
}

/// Translates a legal kernel.
///
/// # Errors
/// When the kernel needs what the device or the language lacks, as legal kernels do not.
pub(crate) fn translate(
    kernel: &Kernel,
    caps: &Caps,
    target: Target,
) -> Result<Unit, CompileError> {
    let error = |log: String| CompileError::new(kernel, log);
    let Target { arch, version, .. } = target;
    let mut source = format!(".version {version}\n.target {arch}\n.address_size 64\n");
    let mut entries = Vec::new();
    for (n, stage) in stages::split(kernel, caps).map_err(error)?.iter().enumerate() {
        let clean = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name = format!("k_{}_{n}", kernel.name().chars().map(clean).collect::<String>());
        let body = Body::new(kernel, stage, caps, target);
        let (body, shared) = body.emit(&name).map_err(error)?;
        if shared > 0 && !source.contains(DYNAMIC) {
            let _ = writeln!(source, "{DYNAMIC}");
        }
        source.push_str(&body);
        entries.push(Entry { name, groups: stage.groups, local: stage.local, shared });
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

/// What a half is made of.
#[derive(Clone, PartialEq, Eq)]
enum Half {
    /// The lower or upper part of a word.
    Part(String, usize),
    /// A rounded number.
    Rounded(String),
}

/// How an open region ends.
enum Close {
    Nothing,
    If { end: usize },
    Loop { start: usize, end: usize, counter: String, len: String, dtype: DType, step: String },
}

/// The body of one launch.
struct Body<'a> {
    kernel: &'a Kernel,
    stage: &'a Stage,
    caps: &'a Caps,
    target: Target,
    sync: Sync<'a>,
    chains: Chains<'a>,
    /// Loads that the device copies to where they are stored.
    copied: Vec<bool>,
    out: String,
    declared: String,
    /// Registers used of each class.
    used: [usize; 6],
    labels: usize,
    /// The lanes of each value.
    values: Vec<Vec<String>>,
    /// Private arrays in registers, lane by lane of each element.
    arrays: HashMap<Value, Vec<Vec<String>>>,
    /// Private arrays that have addresses.
    addressed: HashSet<Value>,
    /// Addresses of buffers in global, of storage in shared, of private arrays in local memory.
    bases: HashMap<Value, String>,
    /// Bytes so far of shared storage that the launch asks for, if it does.
    dynamic: Option<usize>,
    multiples: Vec<u64>,
    ranges: Ranges<'a>,
    regions: Vec<Close>,
    /// What halves in registers are made of, for those that are moved in pairs.
    halves: HashMap<String, Half>,
    /// The first thing that cannot be spelled.
    refused: Option<String>,
}

impl<'a> Body<'a> {
    fn new(kernel: &'a Kernel, stage: &'a Stage, caps: &'a Caps, target: Target) -> Body<'a> {
        let ranges = Ranges::of(kernel);
        let multiples = kernel.iter().map(|(v, _, _)| ranges.get(v).multiple_of);
        let multiples: Vec<u64> = multiples.collect();
        let shared = |(value, op, ty): (Value, Op, Type)| match op {
            Op::Alloc { space: Space::Shared, len } if stage.members[value.idx()] => {
                len as usize * ty.bytes()
            }
            _ => 0,
        };
        let shared: usize = kernel.iter().map(shared).sum();
        Body {
            kernel,
            stage,
            caps,
            target,
            sync: Sync::new(kernel, stage),
            chains: Chains::new(kernel),
            copied: copied(kernel, caps, &multiples),
            out: String::new(),
            declared: String::new(),
            used: [0; 6],
            labels: 0,
            values: vec![Vec::new(); kernel.ops().len()],
            arrays: HashMap::default(),
            addressed: addressed(kernel),
            bases: HashMap::default(),
            dynamic: (shared > caps.shared_bytes).then_some(0),
            multiples,
            ranges,
            regions: Vec::new(),
            halves: HashMap::default(),
            refused: None,
        }
    }

    /// The text, and the bytes of shared storage that the launch has to ask for.
    fn emit(mut self, name: &str) -> Emitted<(String, usize)> {
        if self.target.has_waits() && waits(threads(self.stage.groups, self.stage.local)) {
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
        Ok((text, self.dynamic.unwrap_or(0)))
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
            _ if dtype.bits() < 32 => self.refuse(format!("no {op} of {dtype}")),
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
            // They are held and computed with as wider ones.
            let wide = match class {
                Class::Float => DType::F32,
                _ if dtype.is_signed() => DType::I32,
                _ => DType::U32,
            };
            let [a, b] = [x, y].map(|x| self.cast(dtype, wide, x));
            let result = self.binary(op, wide, &a, &b);
            return if op.is_comparison() { result } else { self.cast(wide, dtype, &result) };
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
            Max | Min if dtype == DType::F32 && self.target.is_ampere() => {
                self.set(kind, &format!("{}.NaN.f32", op.name()), &[x, y])
            }
            Max | Min if float => {
                let test = if op == Max { "gt" } else { "lt" };
                let beyond = self.set(Reg::Pred, &format!("setp.{test}.{name}"), &[x, y]);
                let nan = self.set(Reg::Pred, &format!("setp.nan.{name}"), &[x, x]);
                let first = self.set(Reg::Pred, "or.pred", &[&beyond, &nan]);
                self.set(kind, &format!("selp.{name}"), &[x, y, &first])
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
            (F32, F16 | BF16) if to == F16 || self.target.is_ampere() => {
                let half = self.set(Reg::Half, &format!("cvt.rn.{}.f32", suffix(to)), &[x]);
                self.halves.insert(half.clone(), Half::Rounded(x.to_owned()));
                half
            }
            (F32, BF16) => {
                // Adding half of what is cut off, less one unless the last kept bit is odd, rounds ties to even; a
                // NaN keeps its upper bits and stays quiet.
                let word = self.set(Reg::Word, "mov.b32", &[x]);
                let upper = self.set(Reg::Word, "shr.u32", &[&word, "16"]);
                let odd = self.set(Reg::Word, "and.b32", &[&upper, "1"]);
                let half = self.set(Reg::Word, "add.u32", &[&odd, "0x7fff"]);
                let sum = self.set(Reg::Word, "add.u32", &[&word, &half]);
                let rounded = self.set(Reg::Word, "shr.u32", &[&sum, "16"]);
                let quiet = self.set(Reg::Word, "or.b32", &[&upper, "0x40"]);
                let nan = self.set(Reg::Pred, "setp.nan.f32", &[x, x]);
                let word = self.set(Reg::Word, "selp.b32", &[&quiet, &rounded, &nan]);
                self.set(Reg::Half, "cvt.u16.u32", &[&word])
            }
            (_, F16 | BF16) if from.bits() <= 16 => {
                let single = self.cast(from, F32, x);
                self.cast(F32, to, &single)
            }
            (_, F16 | BF16) => {
                let odd = self.rounded_to_odd(from, x);
                self.cast(F32, to, &odd)
            }
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

    /// A number as an `f32` that, rounded once more to a half, is what it would be if it had been rounded once:
    /// truncated, with the last bit set if that cut anything off (Boldo and Melquiond 2008).
    fn rounded_to_odd(&mut self, from: DType, x: &str) -> String {
        let f = self.set(Reg::Float, &format!("cvt.rz.f32.{}", suffix(from)), &[x]);
        let back = self.cast(DType::F32, from, &f);
        let mut exact = self.binary(BinaryOp::Eq, from, &back, x);
        if from == DType::F64 {
            let nan = self.set(Reg::Pred, "setp.nan.f64", &[x, x]);
            exact = self.set(Reg::Pred, "or.pred", &[&exact, &nan]);
        }
        let word = self.set(Reg::Word, "mov.b32", &[&f]);
        let odd = self.set(Reg::Word, "or.b32", &[&word, "1"]);
        let word = self.set(Reg::Word, "selp.b32", &[&word, &odd, &exact]);
        self.set(Reg::Float, "mov.b32", &[&word])
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

    fn declare(&mut self, space: &str, value: Value, bytes: usize) -> String {
        let name = format!("m{}", value.0);
        let _ = writeln!(self.declared, "    {space} .b8 {name}[{bytes}];");
        name
    }

    /// The position along an axis, or how many there are.
    fn position(&mut self, register: &str, axis: usize, dtype: DType) -> String {
        let word =
            self.set(Reg::Word, "mov.u32", &[&format!("%{register}.{}", ["x", "y", "z"][axis])]);
        self.cast(DType::U32, dtype, &word)
    }

    fn space(&self, buf: Value) -> &'static str {
        match self.kernel.op(buf) {
            Op::Alloc { space: Space::Shared, .. } => "shared",
            Op::Alloc { .. } => "local",
            _ => "global",
        }
    }

    /// The address of lane `lane` of an access: a register and the bytes beyond it.
    fn at(&mut self, place: &Place, lane: usize) -> (String, i64) {
        let (ty, element) = (self.kernel.ty(place.index), self.kernel.ty(place.buf));
        let base = self.bases[&place.buf].clone();
        let size = element.bytes() as i64;
        let beyond = match (ty.is_vector(), element.is_vector()) {
            (true, _) => 0,
            // Elements are whole vectors.
            (false, true) => (lane * element.dtype.size()) as i64,
            (false, false) => lane as i64 * size,
        };
        if let Some(n) = self.kernel.constant(place.index).filter(|_| !ty.is_vector()) {
            let bytes = n.to_i64() * size + beyond;
            if i32::try_from(bytes).is_ok() {
                return (base, bytes);
            }
            // What is added in an address has 32 bits.
            return (self.set(Reg::Long, "add.s64", &[&base, &bytes.to_string()]), 0);
        }
        let lanes = self.lanes(place.index);
        let (index, size) = (&lanes[if ty.is_vector() { lane } else { 0 }], size.to_string());
        let at = if self.space(place.buf) == "shared" {
            let word = match ty.dtype.bits() {
                64 => self.set(Reg::Word, "cvt.u32.u64", &[index]),
                _ => index.clone(),
            };
            self.set(Reg::Word, "mad.lo.u32", &[&word, &size, &base])
        } else {
            let multiply = if ty.dtype.bits() == 64 { "mad.lo" } else { "mad.wide" };
            let multiply = format!("{multiply}.{}", suffix(ty.dtype));
            self.set(Reg::Long, &multiply, &[index, &size, &base])
        };
        (at, beyond)
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
        let (lanes, size) = (usize::from(ty.lanes), ty.dtype.size());
        let element = self.kernel.ty(place.buf);
        let vectors = self.kernel.ty(place.index).is_vector()
            || place.conds.iter().any(|&cond| self.kernel.ty(cond).is_vector());
        if lanes == 1 || vectors || place.relaxed {
            return 1;
        }
        // Buffers begin at multiples of 64 bytes.
        let aligned = match element.lanes == ty.lanes {
            true => lanes as u64,
            false if matches!(self.kernel.op(place.buf), Op::Param { .. }) => {
                match self.multiples[place.index.idx()] {
                    0 => lanes as u64,
                    n => 1 << n.trailing_zeros().min(5),
                }
            }
            false => 1,
        };
        lanes.min(aligned as usize).min(MOVED / size).max(1)
    }

    /// The elements of a private array that an access is to.
    fn cells(&self, place: &Place, lanes: u8) -> Vec<(usize, usize)> {
        let index = self.kernel.constant(place.index);
        let first = index.expect("invariant: it has no address").to_i64() as usize;
        match self.kernel.ty(place.buf).lanes == lanes {
            true => (0..usize::from(lanes)).map(|lane| (first, lane)).collect(),
            false => (0..usize::from(lanes)).map(|lane| (first + lane, 0)).collect(),
        }
    }

    /// Two halves in a word: the one that they come from, or both rounded at once.
    fn pair(&mut self, dtype: DType, low: &str, high: &str) -> String {
        match (self.halves.get(low).cloned(), self.halves.get(high).cloned()) {
            (Some(Half::Part(a, 0)), Some(Half::Part(b, 1))) if a == b => a,
            (Some(Half::Rounded(a)), Some(Half::Rounded(b))) if self.target.is_ampere() => {
                self.set(Reg::Word, &format!("cvt.rn.{}x2.f32", suffix(dtype)), &[&b, &a])
            }
            _ => self.set(Reg::Word, "mov.b32", &[&format!("{{{low}, {high}}}")]),
        }
    }

    /// Lanes of less than 32 bits in words.
    fn pack(&mut self, dtype: DType, lanes: &[String]) -> Vec<String> {
        let words = lanes.chunks(4 / dtype.size()).map(|part| {
            if reg(dtype) == Reg::Half {
                return self.pair(dtype, &part[0], &part[1]);
            }
            let mut word = "0".to_owned();
            for (i, x) in part.iter().enumerate() {
                let x = match dtype {
                    DType::Bool => self.set(Reg::Word, "selp.u32", &["1", "0", x]),
                    _ => x.clone(),
                };
                let (at, bits) = ((i * dtype.bits()).to_string(), dtype.bits().to_string());
                word = self.set(Reg::Word, "bfi.b32", &[&x, &word, &at, &bits]);
            }
            word
        });
        words.collect()
    }

    /// The lanes of words.
    fn unpack(&mut self, dtype: DType, words: &[String]) -> Vec<String> {
        let mut lanes = Vec::new();
        for word in words {
            if reg(dtype) == Reg::Half {
                let pair = [self.fresh(Reg::Half), self.fresh(Reg::Half)];
                self.line(&format!("mov.b32 {{{}, {}}}, {word};", pair[0], pair[1]));
                for (i, half) in pair.into_iter().enumerate() {
                    self.halves.insert(half.clone(), Half::Part(word.clone(), i));
                    lanes.push(half);
                }
                continue;
            }
            let extract = if dtype.is_signed() { "bfe.s32" } else { "bfe.u32" };
            for i in 0..4 / dtype.size() {
                let (at, bits) = ((i * dtype.bits()).to_string(), dtype.bits().to_string());
                let x = self.set(Reg::Word, extract, &[word, &at, &bits]);
                lanes.push(match dtype {
                    DType::Bool => self.set(Reg::Pred, "setp.ne.u32", &[&x, "0"]),
                    _ => x,
                });
            }
        }
        lanes
    }

    /// Combines with an element by compare and exchange of the word around it; `result` becomes what it was.
    fn exchange(&mut self, op: BinaryOp, place: &Place, lane: usize, x: &str, result: &str) {
        let (dtype, space) = (self.kernel.ty(place.buf).dtype, self.space(place.buf));
        let (base, beyond) = self.at(place, lane);
        let (pointer, bits) = if space == "shared" { (Reg::Word, 32) } else { (Reg::Long, 64) };
        let mut at = self.set(pointer, &format!("add.s{bits}"), &[&base, &beyond.to_string()]);
        let narrow = dtype.bits() < 32;
        let (word, width) = if dtype.bits() == 64 { (Reg::Long, 64) } else { (Reg::Word, 32) };
        let mut shift = String::new();
        if narrow {
            let byte = self.set(pointer, &format!("and.b{bits}"), &[&at, "3"]);
            at = self.set(pointer, &format!("and.b{bits}"), &[&at, "-4"]);
            let byte = if bits == 64 { self.set(word, "cvt.u32.u64", &[&byte]) } else { byte };
            shift = self.set(word, "shl.b32", &[&byte, "3"]);
        }
        let seen = self.set(word, &format!("ld.volatile.{space}.b{width}"), &[&format!("[{at}]")]);
        let label = self.labels;
        self.labels += 1;
        self.out.push_str(&format!("$L{label}:\n"));
        let old = self.set(word, &format!("mov.b{width}"), &[&seen]);
        let y = if narrow {
            let part = self.set(word, "shr.u32", &[&old, &shift]);
            match reg(dtype) {
                Reg::Half => self.set(Reg::Half, "cvt.u16.u32", &[&part]),
                Reg::Pred => {
                    let byte = self.set(word, "and.b32", &[&part, "255"]);
                    self.set(Reg::Pred, "setp.ne.u32", &[&byte, "0"])
                }
                _ => self.set(word, &format!("cvt.{}.u32", suffix(dtype)), &[&part]),
            }
        } else {
            self.bitcast(if width == 64 { DType::U64 } else { DType::U32 }, dtype, &old)
        };
        let z = self.binary(op, dtype, &y, x);
        let new = if narrow {
            let z = match reg(dtype) {
                Reg::Half => self.set(word, "cvt.u32.u16", &[&z]),
                Reg::Pred => self.set(word, "selp.u32", &["1", "0", &z]),
                _ => z,
            };
            self.set(word, "bfi.b32", &[&z, &old, &shift, &dtype.bits().to_string()])
        } else {
            self.bitcast(dtype, if width == 64 { DType::U64 } else { DType::U32 }, &z)
        };
        self.line(&format!("atom.{space}.cas.b{width} {seen}, [{at}], {old}, {new};"));
        let again = self.set(Reg::Pred, &format!("setp.ne.u{width}"), &[&seen, &old]);
        self.line(&format!("@{again} bra $L{label};"));
        self.assign(dtype, result, &y);
    }

    /// Gives a register another value.
    fn assign(&mut self, dtype: DType, to: &str, x: &str) {
        match dtype {
            DType::Bool => self.line(&format!("or.pred {to}, {x}, {x};")),
            _ => self.line(&format!("mov.{} {to}, {x};", bits(dtype))),
        }
    }

    /// The instruction that combines indivisibly, where there is one.
    fn indivisible(op: BinaryOp, dtype: DType) -> Option<(&'static str, &'static str)> {
        use BinaryOp::{Add, And, Max, Min, Or, Sub, Xor};
        let integer = dtype.is_int() && dtype.bits() >= 32;
        let unsigned = if dtype.bits() == 64 { "u64" } else { "u32" };
        match op {
            Add | Sub if integer => Some(("add", unsigned)),
            Add if matches!(dtype, DType::F32 | DType::F64) => Some(("add", suffix(dtype))),
            Max | Min if integer => Some((op.name(), suffix(dtype))),
            And | Or | Xor if integer => Some((op.name(), bits(dtype))),
            _ => None,
        }
    }

    /// Lanes that the warp of this thread has.
    fn warp(&mut self, own: &str) -> String {
        let threads: u64 = self.stage.local.iter().product();
        if threads.is_multiple_of(32) {
            return "32".to_owned();
        }
        // Threads are numbered along x first.
        let mut at = "0".to_owned();
        for axis in [2, 1, 0] {
            let i = self.position("tid", axis, DType::U32);
            let n = self.stage.local[axis].to_string();
            at = self.set(Reg::Word, "mad.lo.u32", &[&at, &n, &i]);
        }
        let before = self.set(Reg::Word, "sub.u32", &[&at, own]);
        let left = self.set(Reg::Word, "sub.u32", &[&threads.to_string(), &before]);
        self.set(Reg::Word, "min.u32", &[&left, "32"])
    }

    fn shuffle(&mut self, kind: ShuffleKind, dtype: DType, x: &str, lane: &str) -> String {
        let own = self.set(Reg::Word, "mov.u32", &["%laneid"]);
        let lanes = self.warp(&own);
        let lanes = self.cast(DType::U32, DType::U64, &lanes);
        let long = self.cast(DType::U32, DType::U64, &own);
        let from = match kind {
            ShuffleKind::Index => lane.to_owned(),
            ShuffleKind::Xor => self.set(Reg::Long, "xor.b64", &[&long, lane]),
            ShuffleKind::Down => self.set(Reg::Long, "add.u64", &[&long, lane]),
        };
        let exists = self.set(Reg::Pred, "setp.lt.u64", &[&from, &lanes]);
        let from = self.set(Reg::Long, "selp.b64", &[&from, &long, &exists]);
        let from = self.set(Reg::Word, "cvt.u32.u64", &[&from]);
        let exchange = |this: &mut Self, word: &str| {
            this.set(Reg::Word, "shfl.sync.idx.b32", &[word, &from, "0x1f", "0xffffffff"])
        };
        let x = self.copy(dtype, x);
        if dtype.bits() == 64 {
            let long = self.bitcast(dtype, DType::U64, &x);
            let (low, high) = (self.fresh(Reg::Word), self.fresh(Reg::Word));
            self.line(&format!("mov.b64 {{{low}, {high}}}, {long};"));
            let (low, high) = (exchange(self, &low), exchange(self, &high));
            let long = self.set(Reg::Long, "mov.b64", &[&format!("{{{low}, {high}}}")]);
            return self.bitcast(DType::U64, dtype, &long);
        }
        if dtype == DType::Bool {
            let word = self.set(Reg::Word, "selp.u32", &["1", "0", &x]);
            let got = exchange(self, &word);
            return self.set(Reg::Pred, "setp.ne.u32", &[&got, "0"]);
        }
        let word = self.bitcast(dtype, DType::U32, &x);
        let got = exchange(self, &word);
        self.bitcast(DType::U32, dtype, &got)
    }

    /// A product of matrices of 16 x 16 that the lanes of a warp hold: two instructions for eight columns each.
    fn mma(&mut self, row: Row, [a, b, c]: [Value; 3]) -> Vec<String> {
        let name = suffix(row.factor);
        let [a, b] = [a, b].map(|x| {
            let lanes = self.lanes(x);
            self.pack(row.factor, &lanes)
        });
        let mut sums = self.lanes(c);
        for i in [0, 2] {
            let places = [i, i + 1, i + 4, i + 5];
            let parts: &[(&str, &[usize], &[usize])] = match self.target.is_ampere() {
                true => &[("k16", &[0, 1, 2, 3], &[0, 1])],
                false => &[("k8", &[0, 1], &[0]), ("k8", &[2, 3], &[1])],
            };
            for (depth, left, right) in parts {
                let list = |all: Vec<&String>| {
                    format!("{{{}}}", all.into_iter().cloned().collect::<Vec<_>>().join(", "))
                };
                let new: Vec<String> = places.iter().map(|_| self.fresh(Reg::Float)).collect();
                let d = list(new.iter().collect());
                let left = list(left.iter().map(|&k| &a[k]).collect());
                let right = list(right.iter().map(|&k| &b[i + k]).collect());
                let before = list(places.iter().map(|&k| &sums[k]).collect());
                self.line(&format!(
                    "mma.sync.aligned.m16n8{depth}.row.col.f32.{name}.{name}.f32 {d}, {left}, {right}, {before};"
                ));
                for (place, x) in places.into_iter().zip(new) {
                    sums[place] = x;
                }
            }
        }
        sums
    }
}

/// A division of integers, whose quotients are truncated.
#[derive(Clone, Copy)]
struct Division {
    dtype: DType,
    /// The divisor where it is known and more than zero.
    by: Option<u64>,
    /// Whether both operands are zero or more.
    natural: bool,
    /// Whether they have at most 31 bits then.
    narrow: bool,
}

impl Division {
    fn of(body: &Body<'_>, x: Value, y: Value) -> Division {
        let kernel = body.kernel;
        let scalar = match kernel.op(y) {
            Op::Splat { x } => x,
            _ => y,
        };
        let by = kernel.constant(scalar).and_then(|n| u64::try_from(n.to_i128()).ok());
        let dtype = kernel.ty(x).dtype;
        let [x, y] = [x, scalar].map(|v| body.ranges.get(v));
        let unsigned = !dtype.is_signed();
        let natural = unsigned || x.min >= 0 && y.min >= 0;
        let most = i32::MAX.into();
        let fits = |x: Interval| x.min >= 0 && x.max <= most;
        let narrow = dtype.bits() == 64 && fits(x) && fits(y);
        Division { dtype, by: by.filter(|&n| n > 0), natural, narrow }
    }
}

/// What magnitudes are multiplied by to divide them by a number that is no power of two: the lower `bits` bits of
/// its reciprocal. For magnitudes of up to half the range (`half`) there are no more, else one.
fn reciprocal(by: u64, bits: u32, half: bool) -> u64 {
    let log = by.next_power_of_two().trailing_zeros();
    let power = bits + log - u32::from(half);
    let whole = (1u128 << power) / u128::from(by) + 1;
    (whole & ((1 << bits) - 1)) as u64
}

impl Body<'_> {
    /// A quotient or remainder. The assembler makes dozens of instructions of each, whatever the divisor: with one
    /// that is known this multiplies by its reciprocal (Granlund and Montgomery 1994).
    fn divide(&mut self, op: BinaryOp, division: Division, x: &str, y: &str) -> String {
        let Division { dtype, by, natural, narrow } = division;
        if narrow {
            let [x, y] = [x, y].map(|x| self.cast(dtype, DType::I32, x));
            let division = Division { dtype: DType::I32, narrow: false, ..division };
            let result = self.divide(op, division, &x, &y);
            return self.cast(DType::I32, dtype, &result);
        }
        let (kind, bits) = (reg(dtype), dtype.bits() as u32);
        let largest = 1 << (bits - 1);
        let Some(by) = by.filter(|&by| by < largest) else {
            // Unsigned ones take fewer.
            let of = if natural { ["u32", "u64"][usize::from(bits == 64)] } else { suffix(dtype) };
            return self.set(kind, &format!("{}.{of}", op.name()), &[x, y]);
        };
        // The magnitude, and all bits of the sign.
        let sign = (!natural)
            .then(|| self.set(kind, &format!("shr.s{bits}"), &[x, &(bits - 1).to_string()]));
        let a = match &sign {
            None => self.copy(dtype, x),
            Some(sign) => {
                let turned = self.set(kind, &format!("xor.b{bits}"), &[x, sign]);
                self.set(kind, &format!("sub.s{bits}"), &[&turned, sign])
            }
        };
        let log = by.next_power_of_two().trailing_zeros();
        let shift = |this: &mut Self, x: &str, by: u32| {
            this.set(kind, &format!("shr.u{bits}"), &[x, &by.to_string()])
        };
        let quotient = if by.is_power_of_two() {
            shift(self, &a, log)
        } else {
            let half = dtype.is_signed();
            let low = format!("{:#x}", reciprocal(by, bits, half));
            let high = self.set(kind, &format!("mul.hi.u{bits}"), &[&a, &low]);
            match half {
                true => shift(self, &high, log - 1),
                false => {
                    let rest = self.set(kind, &format!("sub.u{bits}"), &[&a, &high]);
                    let rest = shift(self, &rest, 1);
                    let sum = self.set(kind, &format!("add.u{bits}"), &[&rest, &high]);
                    shift(self, &sum, log - 1)
                }
            }
        };
        let magnitude = match op {
            BinaryOp::Div => quotient,
            _ => {
                let by = by.to_string();
                let whole = self.set(kind, &format!("mul.lo.u{bits}"), &[&quotient, &by]);
                self.set(kind, &format!("sub.u{bits}"), &[&a, &whole])
            }
        };
        match sign {
            None => magnitude,
            Some(sign) => {
                let turned = self.set(kind, &format!("xor.b{bits}"), &[&magnitude, &sign]);
                self.set(kind, &format!("sub.s{bits}"), &[&turned, &sign])
            }
        }
    }

    /// Writes what stands around wide instructions.
    fn around(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Begin => self.line("wgmma.fence.sync.aligned;"),
                Step::End => self.line("wgmma.commit_group.sync.aligned;"),
                Step::Wait { later } => {
                    self.line(&format!("wgmma.wait_group.sync.aligned {later};"));
                }
                Step::Settled(_) => {}
            }
        }
    }

    /// What the instructions call a descriptor: where the matrix begins, that it lies in rows of 128 bytes, eight
    /// of which are 1024, and that slots of 16 bytes are in other places in each of them.
    fn panel(&mut self, buf: Value, index: Value) -> String {
        let (base, slot) = (self.bases[&buf].clone(), self.held(index));
        let slot = self.cast(self.kernel.ty(index).dtype, DType::U32, &slot);
        let start = self.set(Reg::Word, "shr.u32", &[&base, "4"]);
        let start = self.set(Reg::Word, "or.b32", &[&start, "0x10000"]);
        let start = self.set(Reg::Word, "add.u32", &[&start, &slot]);
        let rows = self.set(Reg::Word, "mov.u32", &["0x40000040"]);
        self.set(Reg::Long, "mov.b64", &[&format!("{{{start}, {rows}}}")])
    }

    /// A wide product: 64 rows, 64 columns, 16 steps, of 128 threads.
    fn wide(&mut self, row: Row, value: Value, [a, b, c]: [Value; 3]) -> Vec<String> {
        let (steps, goes_on) = self.chains.extend(value, c);
        let (begin, before) = match steps.split_last() {
            Some((last, before)) => (Some(*last), before),
            None => (None, &[][..]),
        };
        self.around(before);
        let zero = is_zero(self.kernel, c);
        let n = usize::from(self.kernel.ty(c).lanes);
        let sums: Vec<String> = if zero {
            (0..n).map(|_| self.fresh(Reg::Float)).collect()
        } else {
            let lanes = self.lanes(c);
            match goes_on {
                true => lanes,
                false => lanes.iter().map(|x| self.copy(DType::F32, x)).collect(),
            }
        };
        self.around(begin.as_slice());
        let keep = self.set(Reg::Pred, "setp.ne.u32", &[if zero { "0" } else { "1" }, "0"]);
        let (name, all, right) = (suffix(row.factor), sums.join(", "), self.held(b));
        let turned = u8::from(row.shape == Shape::Turned);
        let (left, signs) = match self.kernel.op(a) {
            Op::Panel { .. } => (self.held(a), "1, 1, 0"),
            _ => {
                let lanes = self.lanes(a);
                (format!("{{{}}}", self.pack(row.factor, &lanes).join(", ")), "1, 1")
            }
        };
        let instruction = format!("wgmma.mma_async.sync.aligned.m64n64k16.f32.{name}.{name}");
        self.line(&format!("{instruction} {{{all}}}, {left}, {right}, {keep}, {signs}, {turned};"));
        sums
    }
}

/// Private arrays that are accessed at indices that vary, or are large.
fn addressed(kernel: &Kernel) -> HashSet<Value> {
    let is_private = |buf| matches!(kernel.op(buf), Op::Alloc { space: Space::Register, .. });
    let mut found = HashSet::new();
    for (value, op, _) in kernel.iter() {
        match op {
            Op::Load { buf, index, .. } | Op::Store { buf, index, .. }
                if is_private(buf) && kernel.constant(index).is_none() =>
            {
                found.insert(buf);
            }
            Op::Atomic { buf, .. } if is_private(buf) => {
                found.insert(buf);
            }
            Op::Alloc { space: Space::Register, len } if len > MOST_REGISTERS => {
                found.insert(value);
            }
            _ => {}
        }
    }
    found
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

    fn before(&mut self, op: Op) {
        let steps = self.chains.before(op);
        self.around(&steps);
    }

    fn barrier(&mut self, _scope: BarrierScope) {
        if self.copied.contains(&true) {
            self.line("cp.async.wait_all;");
        }
        if self.kernel.ops().iter().any(|op| matches!(op, Op::Panel { .. })) {
            // What was stored to shared storage is seen by matrix instructions.
            self.line("fence.proxy.async.shared::cta;");
        }
        self.line("bar.sync 0;");
    }

    fn alloc(&mut self, value: Value, space: Space, ty: Type, len: u32) {
        let bytes = len.max(1) as usize * ty.bytes();
        let base = match (space, &mut self.dynamic) {
            (Space::Shared, Some(used)) => {
                let at = used.to_string();
                *used = (*used + bytes).next_multiple_of(ALIGN);
                let start = self.set(Reg::Word, "mov.u32", &["dynamic"]);
                self.set(Reg::Word, "add.u32", &[&start, &at])
            }
            (Space::Shared, None) => {
                let name = self.declare(&format!(".shared .align {ALIGN}"), value, bytes);
                self.set(Reg::Word, "mov.u32", &[&name])
            }
            _ if self.addressed.contains(&value) => {
                let name = self.declare(&format!(".local .align {MOVED}"), value, bytes);
                self.set(Reg::Long, "mov.u64", &[&name])
            }
            _ => {
                let kind = reg(ty.dtype);
                let cell = |this: &mut Self| (0..ty.lanes).map(|_| this.fresh(kind)).collect();
                let cells = (0..len).map(|_| cell(self)).collect();
                self.arrays.insert(value, cells);
                return;
            }
        };
        self.bases.insert(value, base);
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
        let over = self.set(Reg::Pred, &format!("setp.ge.{}", suffix(dtype)), &[&i, &len]);
        self.line(&format!("@{over} bra $L{end};"));
        self.out.push_str(&format!("$L{start}:\n"));
        self.values[counter.idx()] = vec![i.clone()];
        self.regions.push(Close::Loop { start, end, counter: i, len, dtype, step });
    }

    fn close(&mut self) {
        match self.regions.pop().expect("invariant: regions are balanced") {
            Close::Nothing => {}
            Close::If { end } => self.out.push_str(&format!("$L{end}:\n")),
            Close::Loop { start, end, counter, len, dtype, step } => {
                let of = suffix(dtype);
                self.line(&format!("add.{of} {counter}, {counter}, {step};"));
                let more = self.set(Reg::Pred, &format!("setp.lt.{of}"), &[&counter, &len]);
                self.line(&format!("@{more} bra $L{start};"));
                self.out.push_str(&format!("$L{end}:\n"));
            }
        }
    }

    fn load(&mut self, value: Value, ty: Type, place: &Place) -> Emitted {
        let dtype = ty.dtype;
        if self.copied[value.idx()] {
            return Ok(());
        }
        if let Some(array) = self.arrays.get(&place.buf).cloned() {
            let cells = self.cells(place, ty.lanes).into_iter();
            let lanes = cells.map(|(i, lane)| self.copy(dtype, &array[i][lane]));
            self.values[value.idx()] = lanes.collect();
            return Ok(());
        }
        let (n, space) = (self.moved(place, ty), self.space(place.buf));
        let access = if place.relaxed || place.awaited { ".volatile" } else { "" };
        // Several lanes in a word are moved as words.
        let packed = dtype.bits() < 32 && n * dtype.size() >= 4;
        let (held, unit, of) = match packed {
            true => (Reg::Word, DType::U32, "b32"),
            false if dtype == DType::Bool => (Reg::Word, DType::U32, "u8"),
            false => (reg(dtype), dtype, memory(dtype)),
        };
        let units = if packed { n * dtype.size() / 4 } else { n };
        let mut lanes = Vec::new();
        for first in (0..usize::from(ty.lanes)).step_by(n) {
            let targets: Vec<String> = (0..units).map(|_| self.fresh(held)).collect();
            let test = self.test(place, first as u8, false);
            let (base, beyond) = self.at(place, first);
            if test.is_some() {
                let zero = self.zero(unit);
                for target in &targets {
                    self.assign(unit, target, &zero);
                }
            }
            let guard = test.as_ref().map_or(String::new(), |test| format!("@{test} "));
            let (list, width) = vector(&targets);
            if !place.awaited {
                let load = format!("ld{access}.{space}{width}.{of}");
                self.line(&format!("{guard}{load} {list}, [{base}+{beyond}];"));
            } else {
                let (start, end) = (self.labels, self.labels + 1);
                self.labels += 2;
                if let Some(test) = &test {
                    self.line(&format!("@!{test} bra $L{end};"));
                }
                self.out.push_str(&format!("$L{start}:\n"));
                self.line(&format!("ld.volatile.{space}.{of} {list}, [{base}+{beyond}];"));
                let zero = self.zero(dtype);
                let again = self.binary(BinaryOp::Eq, dtype, &targets[0], &zero);
                self.line(&format!("@{again} bra $L{start};"));
                self.out.push_str(&format!("$L{end}:\n"));
            }
            match packed {
                true => lanes.extend(self.unpack(dtype, &targets)),
                false if dtype == DType::Bool => {
                    let test = |target: &String| self.set(Reg::Pred, "setp.ne.u32", &[target, "0"]);
                    lanes.extend(targets.iter().map(test).collect::<Vec<_>>());
                }
                false => lanes.extend(targets),
            }
        }
        self.values[value.idx()] = lanes;
        Ok(())
    }

    fn store(&mut self, place: &Place, x: Value) -> Emitted {
        let ty = self.kernel.ty(x);
        if let (true, Op::Load { order, buf, index }) = (self.copied[x.idx()], self.kernel.op(x)) {
            let from = Place::of(self.kernel, order, buf, index)?;
            let test = self.test(place, 0, true);
            let ((to, a), (from, b)) = (self.at(place, 0), self.at(&from, 0));
            let guard = test.map_or(String::new(), |test| format!("@{test} "));
            let copy = format!("cp.async.cg.shared.global [{to}+{a}], [{from}+{b}], {MOVED}");
            self.line(&format!("{guard}{copy};"));
            return Ok(());
        }
        let values = self.lanes(x);
        let dtype = ty.dtype;
        if let Some(array) = self.arrays.get(&place.buf).cloned() {
            for ((i, lane), x) in self.cells(place, ty.lanes).into_iter().zip(values) {
                self.assign(dtype, &array[i][lane], &x);
            }
            return Ok(());
        }
        let (n, space) = (self.moved(place, ty), self.space(place.buf));
        let access = if place.relaxed { ".volatile" } else { "" };
        let packed = dtype.bits() < 32 && n * dtype.size() >= 4;
        for first in (0..values.len()).step_by(n) {
            let test = self.test(place, first as u8, true);
            let (base, beyond) = self.at(place, first);
            let part = &values[first..first + n];
            let (list, of) = if packed {
                (self.pack(dtype, part), "b32")
            } else {
                let held = |x: &String| match dtype {
                    DType::Bool => self.set(Reg::Word, "selp.u32", &["1", "0", x]),
                    dtype if !x.starts_with('%') => self.copy(dtype, x),
                    _ => x.clone(),
                };
                (part.iter().map(held).collect(), memory(dtype))
            };
            let guard = test.map_or(String::new(), |test| format!("@{test} "));
            let (list, width) = vector(&list);
            let store = format!("st{access}.{space}{width}.{of}");
            self.line(&format!("{guard}{store} [{base}+{beyond}], {list};"));
        }
        Ok(())
    }

    fn atomic(&mut self, old: Option<Value>, op: BinaryOp, place: &Place, x: Value) -> Emitted {
        let (ty, values, space) = (self.kernel.ty(x), self.lanes(x), self.space(place.buf));
        let dtype = ty.dtype;
        let shares = old.is_some()
            && self.sync.is_memory(place.buf)
            && self.sync.idle_axes().next().is_some();
        let (mut lanes, mut shared) = (Vec::new(), Vec::new());
        for (lane, x) in values.iter().enumerate() {
            let test = self.test(place, lane as u8, true);
            let result = self.zero(dtype);
            let result = self.copy(dtype, &result);
            let end = self.labels;
            self.labels += 1;
            if let Some(test) = &test {
                self.line(&format!("@!{test} bra $L{end};"));
            }
            match Self::indivisible(op, dtype) {
                Some((name, of)) => {
                    let negated = op == BinaryOp::Sub;
                    let x = if negated { self.unary(UnaryOp::Neg, dtype, x) } else { x.clone() };
                    let (base, beyond) = self.at(place, lane);
                    let of = format!("{space}.{name}.{of}");
                    if old.is_some() {
                        self.line(&format!("atom.{of} {result}, [{base}+{beyond}], {x};"));
                    } else {
                        self.line(&format!("red.{of} [{base}+{beyond}], {x};"));
                    }
                }
                None => self.exchange(op, place, lane, x, &result),
            }
            self.out.push_str(&format!("$L{end}:\n"));
            if let (true, Some(value)) = (shares, old) {
                // What the first thread gets, all threads of the group have to see.
                let name = format!("a{}_{lane}", value.0);
                let bytes = dtype.size();
                let _ = writeln!(self.declared, "    .shared .align 8 .b8 {name}[{bytes}];");
                let held = match dtype {
                    DType::Bool => self.set(Reg::Word, "selp.u32", &["1", "0", &result]),
                    _ => result.clone(),
                };
                let mut first: Option<String> = None;
                for axis in self.sync.idle_axes().collect::<Vec<_>>() {
                    let at = self.position("tid", axis, DType::U32);
                    let here = self.set(Reg::Pred, "setp.eq.u32", &[&at, "0"]);
                    first = Some(match first {
                        None => here,
                        Some(all) => self.set(Reg::Pred, "and.pred", &[&all, &here]),
                    });
                }
                let first = first.expect("invariant: an axis is idle");
                self.line(&format!("@{first} st.shared.{} [{name}], {held};", memory(dtype)));
                shared.push(name);
            }
            lanes.push(result);
        }
        let Some(value) = old else { return Ok(()) };
        if shares {
            let barrier = self.sync.broadcast()?;
            synchronise(self, barrier);
            lanes.clear();
            for name in shared {
                let held = if dtype == DType::Bool { Reg::Word } else { reg(dtype) };
                let load = format!("ld.shared.{}", memory(dtype));
                let x = self.set(held, &load, &[&format!("[{name}]")]);
                lanes.push(match dtype {
                    DType::Bool => self.set(Reg::Pred, "setp.ne.u32", &[&x, "0"]),
                    _ => x,
                });
            }
        }
        self.values[value.idx()] = lanes;
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
            Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), x, y }
                if of(x).is_int() && of(x).bits() >= 32 =>
            {
                let (a, b) = (self.lanes(x), self.lanes(y));
                let wide = Division::of(self, x, y);
                (0..n).map(|i| self.divide(op, wide, &each(&a, i), &each(&b, i))).collect()
            }
            Op::Binary { op, x, y } => {
                let (a, b) = (self.lanes(x), self.lanes(y));
                (0..n).map(|i| self.binary(op, of(x), &each(&a, i), &each(&b, i))).collect()
            }
            Op::Ternary { op, x, y, z } => {
                if let Some(x) = normal_exp2(kernel, op, [x, y, z]) {
                    let lanes = self.lanes(x).into_iter();
                    lanes.map(|x| self.set(Reg::Float, "ex2.approx.ftz.f32", &[&x])).collect()
                } else {
                    let all = [x, y, z].map(|v| self.lanes(v));
                    let lane = |this: &mut Self, i: usize| {
                        let [a, b, c] = all.each_ref().map(|lanes| each(lanes, i));
                        this.ternary(op, ty.dtype, [&a, &b, &c])
                    };
                    (0..n).map(|i| lane(self, i)).collect()
                }
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
        let lanes = match op {
            Op::Shuffle { kind, x, lane } => {
                let asked = self.held(lane);
                let asked = self.cast(self.kernel.ty(lane).dtype, DType::U64, &asked);
                let asked = self.copy(DType::U64, &asked);
                let lanes = self.lanes(x);
                lanes.iter().map(|x| self.shuffle(kind, ty.dtype, x, &asked)).collect()
            }
            Op::Mma { row, a, b, c } => match mma::ROWS[usize::from(row)] {
                row if row.is_wide() => self.wide(row, value, [a, b, c]),
                row => self.mma(row, [a, b, c]),
            },
            Op::Panel { buf, index } => vec![self.panel(buf, index)],
            _ => unreachable!("invariant: threads do nothing else together"),
        };
        self.values[value.idx()] = lanes;
        Ok(())
    }
}

/// Registers as one operand, and how many they are.
fn vector(registers: &[String]) -> (String, String) {
    match registers {
        [one] => (one.clone(), String::new()),
        all => (format!("{{{}}}", all.join(", ")), format!(".v{}", all.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the instructions of a division compute.
    #[test]
    fn quotients_are_exact() {
        let mut divisors: Vec<u64> = (3..200).chain((1..31).map(|n| (1 << n) - 1)).collect();
        divisors.extend((2..31).flat_map(|n| [(1 << n) + 1, (1 << n) - (1 << (n / 2)) + 1]));
        for by in divisors.into_iter().filter(|by| *by > 2 && !by.is_power_of_two()) {
            let log = by.next_power_of_two().trailing_zeros();
            for (bits, half) in [(32, true), (32, false), (64, true), (64, false)] {
                let most = if half { 1 << (bits - 1) } else { u128::MAX >> (128 - bits) };
                let near = |x: u128| [x.saturating_sub(1), x, x + 1];
                let multiples = [1, 2, 1000, most / u128::from(by) / 2, most / u128::from(by)];
                let mut all: Vec<u128> =
                    multiples.into_iter().flat_map(|n| near(n * u128::from(by))).collect();
                all.extend([0, 1, most - 1, most]);
                for x in all.into_iter().filter(|&x| x <= most) {
                    let high = (x * u128::from(reciprocal(by, bits, half))) >> bits;
                    let sum = if half { high } else { ((x - high) >> 1) + high };
                    assert_eq!(sum >> (log - 1), x / u128::from(by), "{x} by {by}, {bits} bits");
                }
            }
        }
    }

    #[test]
    fn targets_are_what_device_and_driver_know() {
        let arch = |capability, driver| Target::of(capability, driver).map(|target| target.arch);
        assert_eq!(arch((9, 0), 13_000), Some("sm_90a"));
        assert_eq!(arch((9, 0), 11_080), Some("sm_90"));
        assert_eq!(arch((9, 0), 11_040), Some("sm_80"));
        assert_eq!(arch((10, 0), 13_000), Some("sm_90"));
        assert_eq!(arch((8, 6), 12_000), Some("sm_80"));
        assert_eq!(arch((6, 1), 12_000), Some("sm_60"));
        assert_eq!(arch((5, 2), 12_000), None);
    }
}
