//! The body of one launch: statements and regions.
//!
//! Which thread runs what, and where barriers stand that the kernel does not spell out, is decided
//! by the core ([`Sync`]); the emitter follows it.

use super::Target;
use super::arguments::{self, Field, Layout};
use super::asm::{Asm, Ty};
use super::math::Math;
use super::memory::Storage;
use rspirv::dr::{Module, Operand};
use rspirv::spirv::{BuiltIn, Capability, ExecutionMode, MemorySemantics, Op as Spv, Scope, Word};
use zyx_core::codegen::stages::Stage;
use zyx_core::codegen::sync::{Barrier, Spread};
use zyx_core::codegen::{Extent, Sync};
use zyx_core::hal::Caps;
use zyx_core::ir::{BarrierScope, Kernel, LoopKind, Op, Ranges, Type, Value};
use zyx_core::{BinaryOp, DType};

/// How the code of an open region ends.
#[derive(Debug)]
enum Close {
    /// The region has no code of its own: its one iteration is this thread's.
    Nothing,
    /// Goes on after what depended on a condition.
    If { merge: Word },
    /// Steps and begins anew.
    Loop { dtype: DType, counter: Word, step: Word, head: Word, next: Word, merge: Word },
}

/// Emits the body of one stage.
#[derive(Debug)]
pub(super) struct Body<'a> {
    pub(super) kernel: &'a Kernel,
    stage: &'a Stage,
    pub(super) caps: &'a Caps,
    pub(super) layout: Layout,
    pub(super) m: Math<'a>,
    /// What each integer is known to be a multiple of.
    pub(super) multiples: Vec<u64>,
    /// The lanes of each value emitted so far.
    values: Vec<Vec<Word>>,
    pub(super) storage: Vec<Option<Storage>>,
    /// The address of each buffer, on devices with addresses.
    pub(super) addresses: Vec<Word>,
    /// Bytes of shared storage so far.
    pub(super) shared_bytes: usize,
    /// Threads per axis where that is an argument.
    sizes: Option<[Word; 3]>,
    /// Open regions, and who executes what in them.
    regions: Vec<Close>,
    pub(super) sync: Sync<'a>,
    /// Whether threads of a group exchange values through buffers.
    pub(super) exchanges: bool,
}

/// A kernel that cannot be emitted gives the reason.
pub(super) type Emitted<T = ()> = Result<T, String>;

impl<'a> Body<'a> {
    pub(super) fn new(
        kernel: &'a Kernel,
        stage: &'a Stage,
        caps: &'a Caps,
        target: &'a Target,
    ) -> Body<'a> {
        let (n, ranges) = (kernel.ops().len(), Ranges::of(kernel));
        Body {
            kernel,
            stage,
            caps,
            layout: Layout::of(kernel, target),
            m: Math { asm: Asm::new(), caps, target },
            multiples: kernel.iter().map(|(v, ..)| ranges.get(v).multiple_of).collect(),
            values: vec![Vec::new(); n],
            storage: (0..n).map(|_| None).collect(),
            addresses: Vec::new(),
            shared_bytes: 0,
            sizes: None,
            regions: Vec::new(),
            sync: Sync::new(kernel, stage),
            exchanges: false,
        }
    }

    pub(super) fn emit(mut self) -> Emitted<Module> {
        self.modes();
        let (start, body) = (self.m.asm.id(), self.m.asm.id());
        self.m.asm.label(start);
        self.arguments();
        // Variables of the function come to stand in the first block.
        self.m.asm.branch(body);
        self.m.asm.label(body);
        for (value, op, ty) in self.kernel.iter() {
            if self.stage.members[value.idx()] {
                self.op(value, op, ty)?;
            }
        }
        self.m.asm.effect(Spv::Return, Vec::new());
        self.coherence();
        if self.shared_bytes > self.m.target.shared_bytes {
            let limit = self.m.target.shared_bytes;
            return Err(format!("{} bytes of shared storage, limit {limit}", self.shared_bytes));
        }
        Ok(self.m.asm.finish())
    }

    /// Sizes of groups, and how floats behave.
    fn modes(&mut self) {
        let (asm, target) = (&mut self.m.asm, self.m.target);
        if target.addresses {
            asm.physical();
        }
        let constant = |e| if let Extent::Const(n) = e { Some(n as u32) } else { None };
        let [x, y, z] = self.stage.local.map(constant);
        match (x, y, z) {
            (Some(x), Some(y), Some(z)) => asm.mode(ExecutionMode::LocalSize, &[x, y, z]),
            _ => {
                asm.mode(ExecutionMode::LocalSize, &[1, 1, 1]);
                self.sizes = Some(asm.specialised_size());
            }
        }
        if !target.preserves.is_empty() || !target.denormals.is_empty() {
            asm.extension("SPV_KHR_float_controls");
        }
        for &width in &target.preserves {
            asm.capability(Capability::SignedZeroInfNanPreserve);
            asm.mode(ExecutionMode::SignedZeroInfNanPreserve, &[width]);
        }
        for &width in &target.denormals {
            asm.capability(Capability::DenormPreserve);
            asm.mode(ExecutionMode::DenormPreserve, &[width]);
        }
        if target.preserves.contains(&64) || target.denormals.contains(&64) {
            asm.capability(Capability::Float64);
        }
    }

    /// Loads addresses and scalars.
    fn arguments(&mut self) {
        let mut fields = Vec::new();
        for i in 0..self.layout.addresses {
            fields.push(Field { offset: 8 * i as u32, ty: Ty::U64 });
        }
        let mut vars = Vec::new();
        for (value, op, ty) in self.kernel.iter() {
            let Op::Var { slot } = op else { continue };
            if !self.stage.members[value.idx()] {
                continue;
            }
            let offset = 8 * (self.layout.addresses as u32 + u32::from(slot));
            let register = self.m.ty(ty.dtype);
            let held = if register == Ty::Bool { Ty::U32 } else { register };
            vars.push((value, fields.len()));
            fields.push(Field { offset, ty: held });
        }
        let mut loaded = arguments::load(&mut self.m.asm, self.layout, &fields);
        for (value, at) in vars {
            let is_bool = self.kernel.ty(value).dtype == DType::Bool;
            let x = loaded[at];
            let x = if is_bool { self.m.cast(DType::U32, DType::Bool, x) } else { x };
            self.values[value.idx()] = vec![x];
        }
        loaded.truncate(self.layout.addresses);
        self.addresses = loaded;
    }

    // Values.

    /// Lane `lane` of a value.
    pub(super) fn held(&mut self, value: Value, lane: u8) -> Word {
        match self.kernel.op(value) {
            Op::Const { .. } => {
                let constant = self.kernel.constant(value);
                self.m.literal(constant.expect("invariant: a constant has a value"))
            }
            Op::Guard { index, .. } => self.held(index, lane),
            Op::Splat { x } => self.held(x, 0),
            _ => {
                let lanes = &self.values[value.idx()];
                lanes[lane as usize % lanes.len()]
            }
        }
    }

    pub(super) fn define(&mut self, value: Value, lanes: Vec<Word>) {
        self.values[value.idx()] = lanes;
    }

    fn op(&mut self, value: Value, op: Op, ty: Type) -> Emitted {
        match op {
            Op::Param { .. } | Op::Var { .. } | Op::Const { .. } => {}
            Op::Guard { .. } | Op::Splat { .. } => {}
            Op::Alloc { space, len } => self.alloc(value, space, ty, len)?,
            Op::Loop { kind, axis, len } => self.open_loop(value, kind, axis.into(), len)?,
            Op::If { cond } => {
                let cond = self.held(cond, 0);
                let merge = self.m.asm.begin_if(cond);
                self.sync.open_if();
                self.regions.push(Close::If { merge });
            }
            Op::End { .. } => self.close()?,
            Op::Barrier { scope } => {
                if self.sync.barrier(value)? {
                    self.control_barrier(scope);
                }
            }
            Op::Load { order, buf, index } => self.load(value, ty, order, buf, index)?,
            Op::Store { order, buf, index, value: x } => self.store(order, buf, index, x)?,
            Op::Atomic { op, order, buf, index, value: x } => {
                self.atomic(value, op, order, buf, index, x)?;
            }
            Op::Shuffle { .. } => return Err(format!("{value}: no subgroup operations")),
            Op::Mma { .. } => return Err(format!("{value}: no matrix instructions")),
            Op::Fold { op, x } => self.fold(value, op, x),
            Op::Extract { x, lane } => {
                let x = self.held(x, lane);
                self.define(value, vec![x]);
            }
            _ => {
                let lanes = (0..ty.lanes).map(|lane| self.pure(value, op, lane)).collect();
                self.define(value, lanes);
            }
        }
        Ok(())
    }

    fn pure(&mut self, value: Value, op: Op, lane: u8) -> Word {
        let kernel = self.kernel;
        let dtype = kernel.ty(value).dtype;
        match op {
            Op::Unary { op, x } => {
                let x = self.held(x, lane);
                self.m.unary(op, dtype, x)
            }
            Op::Binary { op, x, y } => {
                let (left, right) = (self.held(x, lane), self.held(y, lane));
                self.m.binary(op, kernel.ty(x).dtype, left, right)
            }
            Op::Ternary { op, x, y, z } => {
                let [x, y, z] = [x, y, z].map(|v| self.held(v, lane));
                self.m.ternary(op, dtype, x, y, z)
            }
            Op::Cast { x } => {
                let operand = self.held(x, lane);
                self.m.cast(kernel.ty(x).dtype, dtype, operand)
            }
            Op::Bitcast { x } => {
                let operand = self.held(x, lane);
                self.m.bitcast(kernel.ty(x).dtype, dtype, operand)
            }
            Op::Lanes => self.m.small(dtype, lane.into()),
            _ => unreachable!("invariant: ops with effects are emitted elsewhere"),
        }
    }

    /// Combines the upper half of the lanes into the lower until one is left.
    fn fold(&mut self, value: Value, op: BinaryOp, x: Value) {
        let dtype = self.kernel.ty(x).dtype;
        let lanes = self.kernel.ty(x).lanes;
        let mut terms: Vec<Word> = (0..lanes).map(|lane| self.held(x, lane)).collect();
        while terms.len() > 1 {
            let half = if terms.len().is_power_of_two() { terms.len() / 2 } else { 1 };
            for (i, y) in terms.split_off(half).into_iter().enumerate() {
                terms[i % half] = self.m.binary(op, dtype, terms[i % half], y);
            }
        }
        self.define(value, terms);
    }

    // Regions.

    /// A word as the counter of a loop.
    fn counter(&mut self, dtype: DType, word: Word) -> Word {
        self.m.cast(DType::U32, dtype, word)
    }

    fn open_loop(&mut self, value: Value, kind: LoopKind, axis: usize, len: Value) -> Emitted {
        let dtype = self.kernel.ty(value).dtype;
        let (spread, barrier) = self.sync.open_loop(kind, axis, len, self.caps.max_groups)?;
        self.synchronise(barrier);
        if spread == Spread::Serial {
            let (start, step) = (self.m.small(dtype, 0), self.m.small(dtype, 1));
            self.begin_loop(value, dtype, start, len, step);
            return Ok(());
        }
        let local = kind == LoopKind::Local;
        let builtin = if local { BuiltIn::LocalInvocationId } else { BuiltIn::WorkgroupId };
        let index = self.m.asm.builtin(builtin, axis);
        let index = self.counter(dtype, index);
        if spread == Spread::Single {
            self.regions.push(Close::Nothing);
            self.define(value, vec![index]);
            return Ok(());
        }
        let count = match local {
            true => self.local_size(axis),
            false => self.m.asm.builtin(BuiltIn::NumWorkgroups, axis),
        };
        let step = self.counter(dtype, count);
        self.begin_loop(value, dtype, index, len, step);
        Ok(())
    }

    fn local_size(&mut self, axis: usize) -> Word {
        match (self.stage.local[axis], self.sizes) {
            (Extent::Const(n), _) => self.m.asm.word(n as u32),
            (_, Some(sizes)) => sizes[axis],
            _ => unreachable!("invariant: sizes that are arguments are specialised"),
        }
    }

    fn begin_loop(&mut self, value: Value, dtype: DType, start: Word, len: Value, step: Word) {
        let len = self.held(len, 0);
        let [head, test, body, next, merge] = [0; 5].map(|_| self.m.asm.id());
        let before = self.m.asm.here();
        self.m.asm.branch(head);
        self.m.asm.label(head);
        let ty = self.m.ty(dtype);
        let counter = self.m.asm.op(Spv::Phi, ty, &[start, before]);
        self.m.asm.loop_merge(merge, next);
        self.m.asm.branch(test);
        self.m.asm.label(test);
        let goes_on = self.m.binary(BinaryOp::Lt, dtype, counter, len);
        self.m.asm.branch_if(goes_on, body, merge);
        self.m.asm.label(body);
        self.regions.push(Close::Loop { dtype, counter, step, head, next, merge });
        self.define(value, vec![counter]);
    }

    fn close(&mut self) -> Emitted {
        let barrier = self.sync.close()?;
        self.synchronise(barrier);
        match self.regions.pop().expect("invariant: regions are balanced") {
            Close::Nothing => {}
            Close::If { merge } => self.m.asm.end_if(merge),
            Close::Loop { dtype, counter, step, head, next, merge } => {
                self.m.asm.branch(next);
                self.m.asm.label(next);
                let following = self.m.binary(BinaryOp::Add, dtype, counter, step);
                self.m.asm.complete(counter, following, next);
                self.m.asm.branch(head);
                self.m.asm.label(merge);
            }
        }
        Ok(())
    }

    /// A barrier that the kernel does not spell out.
    pub(super) fn synchronise(&mut self, barrier: Barrier) {
        if barrier {
            self.control_barrier(BarrierScope::Group);
        }
    }

    fn control_barrier(&mut self, scope: BarrierScope) {
        let mut semantics = MemorySemantics::ACQUIRE_RELEASE | MemorySemantics::WORKGROUP_MEMORY;
        if scope == BarrierScope::Group {
            semantics |= MemorySemantics::UNIFORM_MEMORY;
            self.exchanges = true;
        }
        let group = self.m.asm.word(Scope::Workgroup as u32);
        let semantics = self.m.asm.word(semantics.bits());
        let operands = vec![
            Operand::IdScope(group),
            Operand::IdScope(group),
            Operand::IdMemorySemantics(semantics),
        ];
        self.m.asm.effect(Spv::ControlBarrier, operands);
    }
}
