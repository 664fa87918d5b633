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
//! * `arithmetic` has operations on registers, `memory` accesses, `matrix` what threads do together.
//! * Instructions are those of the manual *Parallel Thread Execution ISA*, version 8.0.

mod arithmetic;
mod matrix;
mod memory;

use crate::dialect::waits;
use arithmetic::Division;
use memory::addressed;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use zyx_core::codegen::matrix::{Chains, copied};
use zyx_core::codegen::stages::{self, Stage};
use zyx_core::codegen::sync::Spread;
use zyx_core::codegen::walk::{Emitted, Emitter, Loop, walk};
use zyx_core::codegen::{Entry, Place, Sync, Unit, normal_exp2, threads};
use zyx_core::hal::{Caps, CompileError};
use zyx_core::ir::{BarrierScope, Kernel, LoopKind, Op, Ranges, Space, Type, Value, mma};
use zyx_core::{BinaryOp, DType, DTypeSet, Scalar, UnaryOp};

/// Bytes that are moved together.
const MOVED: usize = 16;
/// Bytes that shared storage starts at multiples of.
const ALIGN: usize = 1024;
/// Shared storage of which a launch says how much it is.
const DYNAMIC: &str = ".extern .shared .align 1024 .b8 dynamic[];";
/// Most elements of a private array in registers.
const MOST_REGISTERS: u32 = 256;
/// Lines of a loop's body from which on the assembler leaves it as it is. It would unroll loops that passes unrolled
/// already, which takes up to half of its time, twenty times as long where loops are nested, and gains nothing.
const UNROLLED: usize = 64;

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
    If {
        end: usize,
    },
    Loop {
        start: usize,
        end: usize,
        counter: String,
        len: String,
        dtype: DType,
        step: String,
        /// Where its body starts in the text.
        body: usize,
    },
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
        let body = self.out.len();
        self.regions.push(Close::Loop { start, end, counter: i, len, dtype, step, body });
    }

    fn break_if(&mut self, cond: Value) {
        let cond = self.held(cond);
        let Some(&Close::Loop { end, .. }) = self.regions.last() else {
            unreachable!("invariant: a break stands directly in a serial loop")
        };
        self.line(&format!("@{cond} bra $L{end};"));
    }

    fn close(&mut self) {
        match self.regions.pop().expect("invariant: regions are balanced") {
            Close::Nothing => {}
            Close::If { end } => self.out.push_str(&format!("$L{end}:\n")),
            Close::Loop { start, end, counter, len, dtype, step, body } => {
                if self.out[body..].lines().count() >= UNROLLED {
                    self.out.insert_str(body, "    .pragma \"nounroll\";\n");
                }
                let of = suffix(dtype);
                self.line(&format!("add.{of} {counter}, {counter}, {step};"));
                let more = self.set(Reg::Pred, &format!("setp.lt.{of}"), &[&counter, &len]);
                self.line(&format!("@{more} bra $L{start};"));
                self.out.push_str(&format!("$L{end}:\n"));
            }
        }
    }

    fn load(&mut self, value: Value, ty: Type, place: &Place) -> Emitted {
        self.loaded(value, ty, place)
    }

    fn store(&mut self, place: &Place, x: Value) -> Emitted {
        self.stored(place, x)
    }

    fn atomic(&mut self, old: Option<Value>, op: BinaryOp, place: &Place, x: Value) -> Emitted {
        self.combined(old, op, place, x)
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

#[cfg(test)]
mod tests {
    use super::*;

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
