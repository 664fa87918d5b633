//! From kernel IR to machine operations on virtual registers.
//!
//! One walk over the ops, in order. Each IR value becomes a [`Val`]: a register, or a recipe that
//! is not worth a register yet (a constant, an affine index, a comparison, a load that may end up
//! as a memory operand). One IR vector is one vector register.
//!
//! Each open region has its own list of operations, spliced into the parent's when the region
//! closes. Appending to an outer list therefore places code just before the region that is open
//! there: that is how addresses and constants are hoisted out of loops without a pass.
//!
//! * `address` turns affine indices into `[base + index * scale + displacement]`.
//! * `scalar`, `float`, `vector`, `mask`, `cast`, `memory` and `across` lower ops by kind.
//! * `fallback` calls a Rust function for whatever has no instruction: slow, always correct.

mod across;
mod address;
mod cast;
mod fallback;
mod halves;
mod mask;
mod memory;
mod pairs;
mod revisit;
mod scalar;
mod scattered;
mod vector;

use super::EmitError;
use super::dead;
use super::machine::{
    Addr, Class, Cond, ConstData, ConstId, Effect, Inst, Label, Operand, Place, Reg, Shape, Size,
    Test, VecInst, Vop,
};
use super::target::{Isa, Target};
use super::x86::asm::{Len, VOp};
use crate::facts::{Facts, Slot};
use crate::split::Part;
use address::{Affine, Atom, Counter, LoopState};
use rustc_hash::FxHashMap;
use zyx_core::DType;
use zyx_core::ir::{Kernel, Op, Order, Type, Value};

/// What lowering produces: one function, before registers are allocated.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) insts: Vec<Inst>,
    pub(super) classes: Vec<Class>,
    pub(super) constants: Vec<ConstData>,
    /// How many labels it has.
    pub(super) labels: u32,
    /// Bytes of the stack frame taken by storage.
    pub(super) frame: u32,
    /// Bytes of scratch memory each running thread has to provide.
    pub(super) scratch: usize,
}

/// What is known of an IR value.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Val {
    /// Not lowered (storage, effects, other parts).
    None,
    /// An integer, bool, or the bits of a half, in a general register. Narrow integers are
    /// extended to 32 bits by their sign; the upper half of the register is zero.
    Gpr(Reg),
    /// A float, or a vector of anything but bools, in a vector register.
    Vec(Reg),
    /// Bools in a mask register (AVX-512). Bits beyond the lanes are arbitrary.
    Mask(Reg),
    /// Bools as elements of this many bytes, all ones or zero (where there are no mask registers).
    Wide(Reg, u8),
    /// A literal, in all lanes.
    Const(u64),
    /// An `i64`, in `affines`.
    Affine(u32),
    /// `i64` lanes `affines[n] + lane * step`.
    Ramp(u32, i64),
    /// A comparison of scalar integers, evaluated where it is needed.
    Compare,
    /// A load that has not happened yet.
    Pending(Addr),
}

/// An open region.
#[derive(Debug)]
struct Region {
    insts: Vec<Inst>,
    kind: RegionKind,
    /// Affine values materialised in this region.
    memo: Vec<Affine>,
}

#[derive(Clone, Debug)]
enum RegionKind {
    /// The function, or a loop that runs once.
    Plain,
    Loop {
        state: usize,
        label: Label,
        limit: Limit,
        /// Behind the loop.
        end: Label,
    },
    If {
        tests: Vec<Test>,
        end: Label,
    },
}

/// Where a loop ends.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Limit {
    Known(i64),
    Register(Reg),
}

/// Storage kept in memory: where it starts.
#[derive(Clone, Copy, Debug)]
enum Storage {
    Frame(i32),
    Scratch(i64),
}

/// Alternatives to registers that `Alloc`s of this many bytes go to, when they are large.
const MAX_FRAME: usize = 4096;

pub(super) struct Lower<'a> {
    kernel: &'a Kernel,
    facts: &'a Facts,
    /// Loads that walk along a row for the second time.
    revisits: Vec<bool>,
    isa: Isa,
    stream_from: u64,
    labels: u32,
    vals: Vec<Val>,
    regions: Vec<Region>,
    /// Loops that a break may end.
    breaks: Vec<Value>,
    loops: Vec<LoopState>,
    atoms: Vec<Atom>,
    affines: Vec<Affine>,
    materialised: FxHashMap<Affine, Reg>,
    param_atoms: FxHashMap<u32, u32>,
    classes: Vec<Class>,
    constants: Vec<ConstData>,
    constant_ids: FxHashMap<ConstData, ConstId>,
    constant_regs: FxHashMap<ConstId, Reg>,
    slots: Vec<Reg>,
    storage: FxHashMap<u32, Storage>,
    pending: Vec<Value>,
    half: Option<pairs::Half>,
    /// Frame places of operands of calls, made when first needed.
    buffers: Option<[i32; 4]>,
    /// The address of a zero in the frame, made when first needed.
    zero: Option<Reg>,
    frame: u32,
    scratch: usize,
    args: Reg,
    range: (Reg, Reg),
    scratch_reg: Reg,
    streaming: bool,
}

type Result<T> = std::result::Result<T, EmitError>;

/// Whether storage of such elements may be registers: bools as elements have several widths.
pub(super) fn fits_registers(ty: Type, isa: Isa) -> bool {
    !(ty.dtype == DType::Bool && ty.is_vector() && !isa.has_masks())
}

/// Lowers one part of a kernel.
pub(super) fn lower(
    kernel: &Kernel,
    facts: &Facts,
    part: &Part,
    target: Target,
) -> Result<Function> {
    let mut it = Lower::new(kernel, facts, target);
    for (value, op, ty) in kernel.iter() {
        if part.ops[value.idx()] {
            it.op(value, op, ty, part.parallel == Some(value))?;
        }
    }
    it.finish_half()?;
    it.finish()
}

/// Lowers a function that stores the number of iterations of `part`'s loop where `lo` points.
pub(super) fn lower_length(
    kernel: &Kernel,
    facts: &Facts,
    part: &Part,
    len: Value,
    target: Target,
) -> Result<Function> {
    let mut it = Lower::new(kernel, facts, target);
    for (value, op, ty) in kernel.iter().take(len.idx() + 1) {
        if part.ops[value.idx()] {
            it.op(value, op, ty, false)?;
        }
    }
    let src = it.gpr_as_i64(len);
    let addr = Addr::at(it.range.0, 0);
    it.push(Inst::Store { width: 3, addr, src });
    it.finish()
}

impl<'a> Lower<'a> {
    fn new(kernel: &'a Kernel, facts: &'a Facts, target: Target) -> Self {
        let mut it = Self {
            kernel,
            facts,
            revisits: revisit::revisits(kernel),
            isa: target.isa,
            stream_from: target.stream_from,
            labels: 0,
            vals: vec![Val::None; kernel.ops().len()],
            regions: vec![Region { insts: Vec::new(), kind: RegionKind::Plain, memo: Vec::new() }],
            breaks: kernel.loops_with_break(),
            loops: Vec::new(),
            atoms: Vec::new(),
            affines: Vec::new(),
            materialised: FxHashMap::default(),
            param_atoms: FxHashMap::default(),
            classes: Vec::new(),
            constants: Vec::new(),
            constant_ids: FxHashMap::default(),
            constant_regs: FxHashMap::default(),
            slots: vec![Reg::NONE; facts.n_slots],
            storage: FxHashMap::default(),
            pending: Vec::new(),
            half: None,
            buffers: None,
            zero: None,
            frame: 0,
            scratch: 0,
            args: Reg::NONE,
            range: (Reg::NONE, Reg::NONE),
            scratch_reg: Reg::NONE,
            streaming: false,
        };
        let [args, lo, hi, scratch] = [(); 4].map(|()| it.new_reg(Class::Gpr));
        it.push(Inst::Entry { args, lo, hi, scratch });
        (it.args, it.range, it.scratch_reg) = (args, (lo, hi), scratch);
        it
    }

    fn finish(mut self) -> Result<Function> {
        if self.streaming {
            self.push(Inst::Fence);
        }
        let mut root = self.regions.pop().expect("invariant: the function's region is open");
        dead::remove(&mut root.insts, self.classes.len());
        let is_row = |inst: &Inst| matches!(inst, Inst::Vec(_) | Inst::MoveMask { .. });
        if !self.isa.is_x86() && root.insts.iter().any(is_row) {
            return Err(EmitError::new("an op that needs an instruction of x86"));
        }
        Ok(Function {
            insts: root.insts,
            classes: self.classes,
            constants: self.constants,
            labels: self.labels,
            frame: self.frame,
            scratch: self.scratch,
        })
    }

    // ---- registers, constants, operations ----------------------------------------------------

    fn new_reg(&mut self, class: Class) -> Reg {
        self.classes.push(class);
        Reg(self.classes.len() as u32 - 1)
    }

    fn new_label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Appends an operation to the open region.
    #[inline(never)]
    fn push(&mut self, inst: Inst) {
        let region = self.regions.last_mut().expect("invariant: a region is open");
        region.insts.push(inst);
    }

    /// Places an operation in an enclosing region, before the region that is open inside it.
    #[inline(never)]
    fn push_at(&mut self, depth: usize, inst: Inst) {
        self.regions[depth].insts.push(inst);
    }

    fn depth(&self) -> usize {
        self.regions.len() - 1
    }

    fn constant_id(&mut self, data: ConstData) -> ConstId {
        if let Some(&id) = self.constant_ids.get(&data) {
            return id;
        }
        let id = ConstId(self.constants.len() as u32);
        self.constants.push(data.clone());
        self.constant_ids.insert(data, id);
        id
    }

    /// A register that holds a constant from the beginning of the function on.
    fn constant_reg(&mut self, data: ConstData) -> Reg {
        let id = self.constant_id(data);
        if let Some(&reg) = self.constant_regs.get(&id) {
            return reg;
        }
        let dst = self.new_reg(Class::Vec);
        self.push_at(0, Inst::Const { dst, id });
        self.constant_regs.insert(id, dst);
        dst
    }

    /// A vector of equal elements of `size` bytes.
    fn splat_const(&mut self, bits: u64, size: usize) -> Reg {
        // Constants of all zeros or all ones are the same at every size.
        let (bits, size) = match (bits, size) {
            (0, _) => (0, 8),
            (bits, size) if size < 8 && bits == (1 << (8 * size)) - 1 => (u64::MAX, 8),
            other => other,
        };
        self.constant_reg(ConstData::Splat { bits, size: size as u8 })
    }

    /// A new vector register with the result of `op(a, b)` on lanes of this shape.
    fn vop2(&mut self, op: Vop, shape: Shape, a: Reg, b: impl Into<Place>) -> Reg {
        let dst = self.new_reg(Class::Vec);
        self.vop_to(op, shape, dst, a, b);
        dst
    }

    /// A new vector register with the result of `op(b)`.
    fn vop1(&mut self, op: Vop, shape: Shape, b: impl Into<Place>) -> Reg {
        self.vop2(op, shape, Reg::NONE, b)
    }

    /// `dst = op(a, b)`, or `op(b)` if `a` is none.
    fn vop_to(&mut self, op: Vop, shape: Shape, dst: Reg, a: Reg, b: impl Into<Place>) {
        self.push(Inst::Vector { op, shape, dst, a, b: b.into() });
    }

    // Rows of the x86 table, in sequences that no other machine needs.

    /// A new vector register with the result of `op(a, b)`.
    fn vec3(&mut self, op: VOp, len: Len, a: Reg, b: impl Into<Place>) -> Reg {
        self.vec3_imm(op, len, a, b, 0)
    }

    fn vec3_to(&mut self, op: VOp, len: Len, dst: Reg, a: Reg, b: impl Into<Place>) {
        self.push(Inst::Vec(VecInst { reg: dst, vvvv: a, ..VecInst::new(op, len, b) }));
    }

    /// As [`Self::vec3`], with an immediate.
    fn vec3_imm(&mut self, op: VOp, len: Len, a: Reg, b: impl Into<Place>, imm: u8) -> Reg {
        let reg = self.new_reg(Class::Vec);
        self.push(Inst::Vec(VecInst { reg, vvvv: a, imm, ..VecInst::new(op, len, b) }));
        reg
    }

    /// A new vector register with the result of `op(a)`.
    fn vec2(&mut self, op: VOp, len: Len, a: impl Into<Place>) -> Reg {
        self.vec3(op, len, Reg::NONE, a)
    }

    /// `op` with its vector source in `reg` and its destination `dst` in the other operand.
    fn vec_store(&mut self, op: VOp, len: Len, dst: impl Into<Place>, reg: Reg, imm: u8) {
        let it = VecInst { reg, imm, effect: Effect::Store, ..VecInst::new(op, len, dst) };
        self.push(Inst::Vec(it));
    }

    /// A new mask register with the result of `op(a, b)`.
    fn mask3(&mut self, op: VOp, len: Len, a: Reg, b: impl Into<Place>, imm: u8) -> Reg {
        let reg = self.new_reg(Class::Mask);
        self.push(Inst::Vec(VecInst { reg, vvvv: a, imm, ..VecInst::new(op, len, b) }));
        reg
    }

    /// A new mask register with the result of `op(a)`.
    fn mask2(&mut self, op: VOp, a: Reg) -> Reg {
        self.mask3(op, Len::X, Reg::NONE, a, 0)
    }

    /// `op(a)` where the mask holds, zero elsewhere.
    fn vec2_zeroed(&mut self, op: VOp, len: Len, mask: Reg, a: impl Into<Place>) -> Reg {
        let reg = self.new_reg(Class::Vec);
        self.push(Inst::Vec(VecInst { reg, mask, zero: true, ..VecInst::new(op, len, a) }));
        reg
    }

    /// A general register with the result of an instruction on vectors or masks.
    fn read_gpr(&mut self, op: VOp, len: Len, a: Reg) -> Reg {
        let reg = self.new_reg(Class::Gpr);
        self.push(Inst::Vec(VecInst { reg, ..VecInst::new(op, len, a) }));
        reg
    }

    fn imm(&mut self, value: u64) -> Reg {
        let dst = self.new_reg(Class::Gpr);
        self.push(Inst::Imm { dst, value });
        dst
    }

    fn zero_vec(&mut self, dst: Reg) {
        let id = self.constant_id(ConstData::Splat { bits: 0, size: 8 });
        self.push(Inst::Const { dst, id });
    }

    fn move_vec(&mut self, dst: Reg, src: Reg) {
        if dst != src {
            self.push(Inst::MoveVec { dst, src });
        }
    }

    // ---- values ------------------------------------------------------------------------------

    fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    fn val(&self, value: Value) -> Val {
        self.vals[value.idx()]
    }

    fn set(&mut self, value: Value, val: Val) {
        self.vals[value.idx()] = val;
    }

    /// The vector register that `value` should be computed in.
    fn target(&mut self, value: Value) -> Reg {
        match self.facts.target[value.idx()] {
            Some(Slot(slot)) => self.slots[slot as usize],
            None => self.new_reg(Class::Vec),
        }
    }

    /// `value`, a float scalar or a vector of anything but bools, in a vector register.
    fn vec(&mut self, value: Value) -> Result<Reg> {
        let ty = self.ty(value);
        match self.val(value) {
            Val::Vec(reg) => Ok(reg),
            Val::Const(bits) => Ok(self.splat_const(bits, ty.dtype.size())),
            Val::Pending(addr) => {
                self.force(value, addr);
                self.vec(value)
            }
            Val::Ramp(base, step) => self.ramp_reg(value, base, step),
            Val::Gpr(_) | Val::Affine(_) | Val::Compare => {
                let reg = self.gpr(value);
                Ok(self.gpr_to_vec(reg, ty.dtype.size()))
            }
            Val::Mask(_) | Val::Wide(..) | Val::None => {
                Err(EmitError::new("a bool vector where a number is needed"))
            }
        }
    }

    /// `value` as a register or, if this is its only use, the memory it is loaded from.
    fn place(&mut self, value: Value) -> Result<Place> {
        if let Some(addr) = self.foldable(value) {
            self.pending.retain(|it| *it != value);
            return Ok(Place::Mem(addr));
        }
        self.vec(value).map(Place::Reg)
    }

    /// Where `value` would be read from, if it is a load of a full register used only once.
    fn foldable(&self, value: Value) -> Option<Addr> {
        let ty = self.ty(value);
        let whole = ty.bytes() >= 16 || (ty.lanes == 1 && ty.dtype.size() >= 4);
        match self.val(value) {
            Val::Pending(addr) if self.facts.uses[value.idx()] == 1 && whole => Some(addr),
            _ => None,
        }
    }

    /// Both operands of a commutative op, the second perhaps in memory.
    fn operands(&mut self, x: Value, y: Value, commutative: bool) -> Result<(Reg, Place)> {
        if commutative && self.foldable(x).is_some() && self.foldable(y).is_none() {
            let b = self.vec(y)?;
            return Ok((b, self.place(x)?));
        }
        let a = self.vec(x)?;
        Ok((a, self.place(y)?))
    }

    /// A vector register with the low `size` bytes of a general one; the rest is zero.
    fn gpr_to_vec(&mut self, reg: Reg, size: usize) -> Reg {
        self.vop1(Vop::FromGpr, Shape::ints(size.max(4), 1), reg)
    }

    /// The first 4 or 8 bytes of a vector register.
    fn vec_to_gpr(&mut self, reg: Reg, size: usize) -> Reg {
        let dst = self.new_reg(Class::Gpr);
        self.vop_to(Vop::ToGpr, Shape::ints(size.max(4), 1), dst, Reg::NONE, reg);
        dst
    }

    // ---- the walk ----------------------------------------------------------------------------

    fn op(&mut self, value: Value, op: Op, ty: Type, is_range: bool) -> Result<()> {
        if !op.is_pure() && !matches!(op, Op::Store { .. }) {
            self.finish_half()?;
        }
        match op {
            Op::Param { .. } => {}
            Op::Var { slot } => self.var(value, slot, ty),
            Op::Const { bits } => self.set(value, Val::Const(bits)),
            Op::Alloc { space, len } => self.alloc(value, space, ty, len)?,
            Op::Unary { op, x } => self.unary(value, op, x, ty)?,
            Op::Binary { op, x, y } => self.binary(value, op, x, y)?,
            Op::Ternary { op, x, y, z } => self.ternary(value, op, (x, y, z), ty)?,
            Op::Cast { x } => self.cast(value, x, ty)?,
            Op::Bitcast { x } => self.bitcast(value, x, ty)?,
            Op::Splat { x } => self.splat(value, x, ty)?,
            Op::Lanes => self.lanes(value, ty),
            Op::Extract { x, lane } => self.extract(value, x, lane)?,
            Op::Fold { op, x } => self.fold(value, op, x)?,
            Op::Guard { index, .. } => self.set(value, self.val(index)),
            Op::Load { order: Order::AcquireSpin, .. } => {
                return Err(EmitError::new("a load that waits"));
            }
            Op::Load { buf, index, .. } => self.load(value, buf, index, ty)?,
            Op::Store { order, buf, index, value: stored } => {
                self.store(buf, index, stored, order == Order::Streaming)?;
            }
            Op::Atomic { op, buf, index, value: operand, .. } => {
                self.atomic(value, op, buf, index, operand)?;
            }
            Op::Loop { len, .. } => self.open_loop(value, len, is_range)?,
            Op::If { cond } => self.open_if(cond)?,
            Op::Break { cond } => self.break_if(cond)?,
            Op::End { .. } => self.close(),
            Op::Barrier { .. } => {}
            Op::Concat { .. } => return Err(EmitError::new("concat")),
            Op::Shuffle { .. } => return Err(EmitError::new("shuffle")),
            Op::Panel { .. } | Op::Mma { .. } => return Err(EmitError::new("mma")),
        }
        Ok(())
    }

    fn var(&mut self, value: Value, slot: u16, ty: Type) {
        let disp = 8 * (self.kernel.params().len() as i32 + i32::from(slot));
        let addr = Addr::at(self.args, disp);
        let depth = self.regions.len();
        // Variables stand before all loops, so this is the beginning of the function.
        debug_assert!(depth >= 1);
        let val = self.load_scalar(addr, ty.dtype);
        self.set(value, val);
    }

    fn open_loop(&mut self, value: Value, len: Value, is_range: bool) -> Result<()> {
        self.flush();
        if is_range {
            let (lo, hi) = self.range;
            let label = self.new_label();
            self.begin_loop(value, Some(lo), Limit::Register(hi), label);
            return Ok(());
        }
        let known = self.known_i64(len);
        if known == Some(1) && !self.breaks.contains(&value) {
            self.set(value, Val::Const(0));
            self.open_region(RegionKind::Plain);
            return Ok(());
        }
        let limit = match known {
            Some(n) => Limit::Known(n),
            None => Limit::Register(self.gpr_as_i64(len)),
        };
        let label = self.new_label();
        self.begin_loop(value, None, limit, label);
        Ok(())
    }

    fn begin_loop(&mut self, value: Value, start: Option<Reg>, limit: Limit, label: Label) {
        let counter = self.new_reg(Class::Gpr);
        match start {
            Some(src) => self.push(Inst::Move { dst: counter, src }),
            None => self.push(Inst::Imm { dst: counter, value: 0 }),
        }
        let state = self.loops.len();
        self.loops.push(LoopState { counter, start, used: false, multiples: Vec::new() });
        let end = self.new_label();
        self.open_region(RegionKind::Loop { state, label, limit, end });
        let depth = self.depth();
        let atom = self.new_atom(Atom { depth, counter: Counter::Loop(state), reg: counter });
        let affine = self.new_affine(Affine::atom(atom));
        self.set(value, Val::Affine(affine));
    }

    fn open_if(&mut self, cond: Value) -> Result<()> {
        self.flush();
        let mut tests = Vec::new();
        self.tests(cond, &mut tests)?;
        let end = self.new_label();
        self.open_region(RegionKind::If { tests, end });
        Ok(())
    }

    /// Leaves the loop that is the innermost region. All registers are where they are at its end: a register has one
    /// home for its whole life, which for one that lives on behind a loop is all of the loop.
    fn break_if(&mut self, cond: Value) -> Result<()> {
        self.flush();
        let mut tests = Vec::new();
        self.tests(cond, &mut tests)?;
        let Some(&RegionKind::Loop { end, .. }) = self.regions.last().map(|region| &region.kind)
        else {
            return Err(EmitError::new("a break outside of a loop"));
        };
        let Some(last) = tests.pop() else { return Err(EmitError::new("a break without a test")) };
        let stays = self.new_label();
        for test in tests {
            self.push(Inst::Branch { test: test.not(), label: stays });
        }
        self.push(Inst::Branch { test: last, label: end });
        self.push(Inst::Label { label: stays });
        Ok(())
    }

    fn open_region(&mut self, kind: RegionKind) {
        self.regions.push(Region { insts: Vec::new(), kind, memo: Vec::new() });
    }

    fn close(&mut self) {
        self.flush();
        let region = self.regions.pop().expect("invariant: regions nest");
        for affine in &region.memo {
            self.materialised.remove(affine);
        }
        match region.kind {
            RegionKind::Plain => self.append(region.insts),
            RegionKind::If { tests, end } => {
                for test in tests {
                    self.push(Inst::Branch { test: test.not(), label: end });
                }
                self.append(region.insts);
                self.push(Inst::Label { label: end });
            }
            RegionKind::Loop { state, label, limit, end } => {
                self.close_loop(state, [label, end], limit, region.insts);
            }
        }
    }

    fn append(&mut self, insts: Vec<Inst>) {
        let region = self.regions.last_mut().expect("invariant: a region is open");
        region.insts.extend(insts);
    }

    fn close_loop(
        &mut self,
        state: usize,
        [label, end]: [Label; 2],
        limit: Limit,
        body: Vec<Inst>,
    ) {
        let LoopState { counter, used, multiples, .. } = self.loops[state].clone();
        let test = |a: Reg, cond: Cond, b: Operand| Test { size: Size::B64, cond, a, b };
        // If only a multiple of the counter is used, it counts by itself.
        let stand_in = (!used).then(|| multiples.iter().find(|(factor, _)| *factor > 0)).flatten();
        let (by, bound) = match (stand_in, limit) {
            (Some(&(factor, reg)), Limit::Known(n)) => match n.checked_mul(factor) {
                Some(total) => ((reg, factor), Limit::Known(total)),
                None => ((counter, 1), limit),
            },
            (Some(&(factor, reg)), Limit::Register(n)) if i32::try_from(factor).is_ok() => {
                let total = self.new_reg(Class::Gpr);
                let b = Operand::Imm(factor as i32);
                self.push(Inst::Mul { size: Size::B64, dst: total, a: n, b });
                ((reg, factor), Limit::Register(total))
            }
            _ => ((counter, 1), limit),
        };
        let bound = match bound {
            Limit::Known(n) => match i32::try_from(n) {
                Ok(n) if self.isa.compares_with(n) => Operand::Imm(n),
                _ => Operand::Reg(self.imm(n as u64)),
            },
            Limit::Register(reg) => Operand::Reg(reg),
        };
        if !matches!(limit, Limit::Known(1..)) {
            self.push(Inst::Branch { test: test(by.0, Cond::GreaterEqual, bound), label: end });
        }
        self.push(Inst::LoopHead { label });
        self.append(body);
        for &(factor, reg) in &multiples {
            self.add_in_place(reg, factor);
        }
        if by.0 == counter {
            self.add_in_place(counter, 1);
        }
        self.push(Inst::Branch { test: test(by.0, Cond::Less, bound), label });
        self.push(Inst::LoopEnd);
        self.push(Inst::Label { label: end });
    }

    fn add_in_place(&mut self, reg: Reg, n: i64) {
        let b = match i32::try_from(n) {
            Ok(n) => Operand::Imm(n),
            Err(_) => Operand::Reg(self.imm(n as u64)),
        };
        self.push(Inst::Alu { op: super::machine::Alu::Add, size: Size::B64, dst: reg, a: reg, b });
    }
}

/// The shortest vector that holds `bytes` bytes.
fn len_of(bytes: usize) -> Result<Len> {
    match bytes {
        0..=16 => Ok(Len::X),
        17..=32 => Ok(Len::Y),
        33..=64 => Ok(Len::Z),
        _ => Err(EmitError::new("a vector wider than a register")),
    }
}
