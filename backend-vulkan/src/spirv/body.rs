//! The body of one launch: statements and regions, as the core's [`walk`] asks for them.

use super::Target;
use super::arguments::{self, Field, Layout};
use super::math::Math;
use super::memory::Array;
use crate::asm::{Asm, Loop, ids};
use rspirv::dr::Module;
use rspirv::spirv::{BuiltIn, Capability, ExecutionMode, MemorySemantics, Op as Spv, Scope, Word};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use zyx_core::codegen::stages::Stage;
use zyx_core::codegen::sync::Spread;
use zyx_core::codegen::walk::{self, Emitted, Emitter, walk};
use zyx_core::codegen::{Place, Sync};
use zyx_core::hal::Caps;
use zyx_core::ir::{Access, BarrierScope, Kernel, LoopKind, Op, ShuffleKind, Space, Type, Value};
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
    /// Threads of a subgroup, where the stage has shuffles.
    lanes: Option<u32>,
    pub(super) layout: Layout,
    pub(super) m: Math<'a>,
    /// Each value emitted so far. Vectors are what is loaded or stored at once, lane by lane.
    pub(super) values: Vec<Vec<Word>>,
    pub(super) arrays: FxHashMap<Value, Array>,
    /// Buffers, by slot and type of element, as arrays of such: blocks, or variables.
    pub(super) views: BTreeMap<(u16, Word), (Access, Word)>,
    /// The address of each buffer, on devices with addresses.
    pub(super) addresses: Vec<Word>,
    /// Bytes of shared storage so far.
    pub(super) shared_bytes: usize,
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
        lanes: Option<u32>,
    ) -> Body<'a> {
        Body {
            kernel,
            stage,
            caps,
            lanes,
            layout: Layout::of(kernel, target),
            m: Math { asm: Asm::new(target.addresses), caps, target },
            values: vec![Vec::new(); kernel.ops().len()],
            arrays: FxHashMap::default(),
            views: BTreeMap::new(),
            addresses: Vec::new(),
            shared_bytes: 0,
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

    /// Size of groups, and how floats behave.
    fn modes(&mut self) {
        let (asm, target) = (&mut self.m.asm, self.m.target);
        asm.mode(ExecutionMode::LocalSize, &self.stage.local.map(|n| n as u32));
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
            fields.push(Field { offset: 8 * i as u32, dtype: DType::U64 });
        }
        let mut vars = Vec::new();
        for (value, op, ty) in self.kernel.iter() {
            let Op::Var { slot } = op else { continue };
            if !self.stage.members[value.idx()] {
                continue;
            }
            let offset = 8 * (self.layout.addresses as u32 + u32::from(slot));
            vars.push((value, fields.len()));
            fields.push(Field { offset, dtype: ty.dtype });
        }
        let mut loaded = arguments::load(&mut self.m.asm, self.layout, &fields);
        for (value, at) in vars {
            self.values[value.idx()] = vec![loaded[at]];
        }
        loaded.truncate(self.layout.addresses);
        self.addresses = loaded;
    }

    /// The number of the thread in its group along an axis. With shuffles, neighbours are lanes of one
    /// subgroup: the index that Vulkan gives to a thread of the group promises nothing of the sort.
    pub(super) fn thread(&mut self, axis: usize) -> Word {
        let Some(lanes) = self.lanes else {
            return self.m.asm.builtin(BuiltIn::LocalInvocationId, axis);
        };
        if axis > 0 {
            return self.m.asm.word(0);
        }
        self.m.asm.capability(Capability::GroupNonUniform);
        let asm = &mut self.m.asm;
        let inputs = [BuiltIn::SubgroupId, BuiltIn::SubgroupLocalInvocationId];
        let [subgroup, lane] = inputs.map(|input| asm.input(input));
        let first = self.m.by(Spv::IMul, subgroup, lanes);
        self.m.asm.op(Spv::IAdd, DType::U32, &[first, lane])
    }

    // Values.

    /// The register that holds a value.
    pub(super) fn held(&mut self, value: Value) -> Word {
        match self.kernel.constant(value) {
            Some(constant) => self.m.literal(constant),
            None => self.values[value.idx()][0],
        }
    }

    /// The lanes of a value.
    pub(super) fn lanes(&mut self, value: Value) -> Vec<Word> {
        match self.kernel.ty(value).is_vector() {
            true => self.values[value.idx()].clone(),
            false => vec![self.held(value)],
        }
    }

    pub(super) fn define(&mut self, value: Value, word: Word) {
        self.values[value.idx()] = vec![word];
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
        let operands = [group, group, self.m.asm.word(semantics.bits())];
        self.m.asm.effect(Spv::ControlBarrier, ids(&operands));
    }

    fn alloc(&mut self, value: Value, space: Space, ty: Type, len: u32) {
        self.allocate(value, space, ty.dtype, len);
    }

    fn open_if(&mut self, cond: Value) {
        let cond = self.held(cond);
        let merge = self.m.asm.begin_if(cond);
        self.regions.push(Close::If { merge });
    }

    fn open_loop(&mut self, this: walk::Loop) {
        let walk::Loop { counter, kind, axis, len, spread } = this;
        let dtype = self.kernel.ty(counter).dtype;
        let local = kind == LoopKind::Local;
        let start = match spread {
            Spread::Serial => self.m.small(dtype, 0),
            _ => {
                let index = match local {
                    true => self.thread(axis),
                    false => self.m.asm.builtin(BuiltIn::WorkgroupId, axis),
                };
                self.m.cast(DType::U32, dtype, index)
            }
        };
        let step = match spread {
            Spread::Serial => self.m.small(dtype, 1),
            Spread::Single => {
                self.regions.push(Close::Nothing);
                return self.define(counter, start);
            }
            Spread::Strided => {
                let count = match local {
                    true => self.m.asm.word(self.stage.local[axis] as u32),
                    false => self.m.asm.builtin(BuiltIn::NumWorkgroups, axis),
                };
                self.m.cast(DType::U32, dtype, count)
            }
        };
        let len = self.held(len);
        let turns = self.m.asm.begin_loop(dtype, start);
        let goes_on = self.m.binary(BinaryOp::Lt, dtype, turns.phi, len);
        let body = self.m.asm.id();
        self.m.asm.branch_if(goes_on, body, turns.merge);
        self.m.asm.label(body);
        self.regions.push(Close::Loop { dtype, turns, step });
        self.define(counter, turns.phi);
    }

    fn break_if(&mut self, cond: Value) {
        let cond = self.held(cond);
        let Some(&Close::Loop { turns, .. }) = self.regions.last() else {
            unreachable!("invariant: a break stands directly in a serial loop")
        };
        let goes_on = self.m.asm.begin_if(cond);
        self.m.asm.branch(turns.merge);
        self.m.asm.label(goes_on);
    }

    fn close(&mut self) {
        match self.regions.pop().expect("invariant: regions are balanced") {
            Close::Nothing => {}
            Close::If { merge } => self.m.asm.end_if(merge),
            Close::Loop { dtype, turns, step } => {
                let following = self.m.binary(BinaryOp::Add, dtype, turns.phi, step);
                self.m.asm.end_loop(turns, following);
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
        let of = |x: Value| self.kernel.ty(x).dtype;
        let word = match op {
            Op::Unary { op, x } => {
                let x = self.held(x);
                self.m.unary(op, ty.dtype, x)
            }
            Op::Binary { op, x, y } => {
                let (left, right) = (self.held(x), self.held(y));
                self.m.binary(op, of(x), left, right)
            }
            Op::Ternary { op, x, y, z } => {
                let operands = [x, y, z].map(|v| self.held(v));
                self.m.ternary(op, ty.dtype, operands)
            }
            Op::Cast { x } => {
                let word = self.held(x);
                self.m.cast(of(x), ty.dtype, word)
            }
            Op::Bitcast { x } => {
                let word = self.held(x);
                self.m.bitcast(of(x), ty.dtype, word)
            }
            Op::Extract { x, lane } => self.values[x.idx()][usize::from(lane)],
            Op::Concat { x, y } => {
                self.values[value.idx()] = [x, y].map(|v| self.lanes(v)).concat();
                return;
            }
            _ => unreachable!("invariant: ops with effects are emitted elsewhere"),
        };
        self.define(value, word);
    }

    fn together(&mut self, value: Value, op: Op, ty: Type) -> Emitted {
        let op = match op {
            Op::Shuffle { kind: ShuffleKind::Index, x, lane } => {
                (Spv::GroupNonUniformShuffle, x, lane)
            }
            Op::Shuffle { kind: ShuffleKind::Xor, x, lane } => {
                (Spv::GroupNonUniformShuffleXor, x, lane)
            }
            _ => return Err(format!("{value}: no such operation of subgroups")),
        };
        let (op, x, lane) = op;
        self.m.asm.capability(Capability::GroupNonUniform);
        self.m.asm.capability(Capability::GroupNonUniformShuffle);
        let operands = [self.m.asm.word(Scope::Subgroup as u32), self.held(x), self.held(lane)];
        let word = self.m.asm.op(op, ty.dtype, &operands);
        self.define(value, word);
        Ok(())
    }
}
