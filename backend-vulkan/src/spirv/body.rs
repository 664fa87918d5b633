//! The body of one launch: statements and regions, as the core's [`walk`] asks for them.

use super::Target;
use super::arguments::{self, Field, Layout};
use super::asm::{Asm, Loop, Ty};
use super::math::Math;
use super::memory::Storage;
use rspirv::dr::{Module, Operand};
use rspirv::spirv::{BuiltIn, Capability, ExecutionMode, MemorySemantics, Op as Spv, Scope, Word};
use zyx_core::codegen::stages::Stage;
use zyx_core::codegen::sync::Spread;
use zyx_core::codegen::walk::{self, Emitted, Emitter, walk};
use zyx_core::codegen::{Extent, Place, Sync};
use zyx_core::hal::Caps;
use zyx_core::ir::{BarrierScope, Kernel, LoopKind, Op, Ranges, Space, Type, Value};
use zyx_core::{BinaryOp, DType};

/// How the code of an open region ends.
enum Close {
    /// The region has no code of its own: its one iteration is this thread's.
    Nothing,
    /// Goes on after what depended on a condition.
    If { merge: Word },
    /// Steps and begins anew.
    Loop { dtype: DType, turns: Loop, step: Word },
}

/// Emits the body of one stage.
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
            m: Math { asm: Asm::new(target.addresses), caps, target },
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
        self.arguments();
        let (stage, caps) = (self.stage, self.caps);
        walk(&mut self, stage, caps)?;
        if self.exchanges {
            self.coherence();
        }
        if self.shared_bytes > self.m.target.shared_bytes {
            let limit = self.m.target.shared_bytes;
            return Err(format!("{} bytes of shared storage, limit {limit}", self.shared_bytes));
        }
        Ok(self.m.asm.finish())
    }

    /// Sizes of groups, and how floats behave.
    fn modes(&mut self) {
        let (asm, target) = (&mut self.m.asm, self.m.target);
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
            vars.push((value, fields.len()));
            fields.push(Field { offset, ty: self.m.ty(ty.dtype) });
        }
        let mut loaded = arguments::load(&mut self.m.asm, self.layout, &fields);
        for (value, at) in vars {
            self.values[value.idx()] = vec![loaded[at]];
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

    /// One lane of a value that depends on operands alone.
    fn lane(&mut self, op: Op, dtype: DType, lane: u8) -> Word {
        let of = |x: Value| self.kernel.ty(x).dtype;
        match op {
            Op::Unary { op, x } => {
                let x = self.held(x, lane);
                self.m.unary(op, dtype, x)
            }
            Op::Binary { op, x, y } => {
                let (dtype, left, right) = (of(x), self.held(x, lane), self.held(y, lane));
                self.m.binary(op, dtype, left, right)
            }
            Op::Ternary { op, x, y, z } => {
                let operands = [x, y, z].map(|v| self.held(v, lane));
                self.m.ternary(op, dtype, operands)
            }
            Op::Cast { x } => {
                let (from, x) = (of(x), self.held(x, lane));
                self.m.cast(from, dtype, x)
            }
            Op::Bitcast { x } => {
                let (from, x) = (of(x), self.held(x, lane));
                self.m.bitcast(from, dtype, x)
            }
            Op::Extract { x, lane } => self.held(x, lane),
            Op::Lanes => self.m.small(dtype, lane.into()),
            _ => unreachable!("invariant: ops with effects are emitted elsewhere"),
        }
    }

    fn local_size(&mut self, axis: usize) -> Word {
        match (self.stage.local[axis], self.sizes) {
            (Extent::Const(n), _) => self.m.asm.word(n as u32),
            (_, Some(sizes)) => sizes[axis],
            _ => unreachable!("invariant: sizes that are arguments are specialised"),
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

    fn barrier(&mut self, scope: BarrierScope) {
        let mut semantics = MemorySemantics::ACQUIRE_RELEASE | MemorySemantics::WORKGROUP_MEMORY;
        if scope == BarrierScope::Group {
            semantics |= MemorySemantics::UNIFORM_MEMORY;
            self.exchanges = true;
        }
        let group = self.m.asm.word(Scope::Workgroup as u32);
        let operands = [group, group, self.m.asm.word(semantics.bits())].map(Operand::IdRef);
        self.m.asm.effect(Spv::ControlBarrier, operands.to_vec());
    }

    fn alloc(&mut self, value: Value, space: Space, ty: Type, len: u32) {
        self.allocate(value, space, ty, len);
    }

    fn open_if(&mut self, cond: Value) {
        let cond = self.held(cond, 0);
        let merge = self.m.asm.begin_if(cond);
        self.regions.push(Close::If { merge });
    }

    fn open_loop(&mut self, this: walk::Loop) {
        let walk::Loop { counter, kind, axis, len, spread } = this;
        let dtype = self.kernel.ty(counter).dtype;
        let local = kind == LoopKind::Local;
        let builtin = if local { BuiltIn::LocalInvocationId } else { BuiltIn::WorkgroupId };
        let start = match spread {
            Spread::Serial => self.m.small(dtype, 0),
            _ => {
                let index = self.m.asm.builtin(builtin, axis);
                self.m.cast(DType::U32, dtype, index)
            }
        };
        let step = match spread {
            Spread::Serial => self.m.small(dtype, 1),
            Spread::Single => {
                self.regions.push(Close::Nothing);
                return self.define(counter, vec![start]);
            }
            Spread::Strided => {
                let count = match local {
                    true => self.local_size(axis),
                    false => self.m.asm.builtin(BuiltIn::NumWorkgroups, axis),
                };
                self.m.cast(DType::U32, dtype, count)
            }
        };
        let len = self.held(len, 0);
        let turns = self.m.asm.begin_loop(self.m.ty(dtype), start);
        let goes_on = self.m.binary(BinaryOp::Lt, dtype, turns.phi, len);
        let body = self.m.asm.id();
        self.m.asm.branch_if(goes_on, body, turns.merge);
        self.m.asm.label(body);
        self.regions.push(Close::Loop { dtype, turns, step });
        self.define(counter, vec![turns.phi]);
    }

    fn close(&mut self) {
        match self.regions.pop().expect("invariant: regions are balanced") {
            Close::Nothing => {}
            Close::If { merge } => self.m.asm.end_if(merge),
            Close::Loop { dtype, turns, step } => {
                let following = self.m.binary(BinaryOp::Add, dtype, turns.phi, step);
                self.m.asm.end_loop(turns, following, None);
            }
        }
    }

    fn load(&mut self, value: Value, ty: Type, place: &Place) -> Emitted {
        self.loaded(value, ty, place)
    }

    fn store(&mut self, place: &Place, x: Value) -> Emitted {
        self.stored(place, x)
    }

    fn atomic(&mut self, value: Value, op: BinaryOp, place: &Place, x: Value) -> Emitted {
        self.combined(value, op, place, x)
    }

    fn pure(&mut self, value: Value, op: Op, ty: Type) {
        // A splat is its scalar.
        if !matches!(op, Op::Splat { .. }) {
            let lanes = (0..ty.lanes).map(|lane| self.lane(op, ty.dtype, lane)).collect();
            self.define(value, lanes);
        }
    }
}
