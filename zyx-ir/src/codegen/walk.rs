//! The walk that every emitter makes through the ops of a stage: accesses are taken apart, and
//! barriers stand where [`Sync`] wants them. What is left to a language is to spell each.

use super::Place;
use super::stages::Stage;
use super::sync::{Spread, Sync};
use crate::caps::Caps;
use crate::ir::{BarrierScope, Kernel, LoopKind, Op, Space, Type, Value};
use crate::ops::BinaryOp;
use rustc_hash::FxHashSet;

/// A kernel that cannot be emitted gives the reason.
pub type Emitted<T = ()> = Result<T, String>;

/// A loop to be emitted.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    /// Its counter.
    pub counter: Value,
    /// What its iterations are spread over.
    pub kind: LoopKind,
    /// The axis along which they are.
    pub axis: usize,
    /// Its length.
    pub len: Value,
    /// Which of them this thread runs.
    pub spread: Spread,
}

/// What a language spells. The walk calls these in program order.
pub trait Emitter<'a> {
    /// The kernel.
    fn kernel(&self) -> &'a Kernel;

    /// Called before each op.
    fn before(&mut self, _op: Op) {}

    /// Where the walk stands.
    fn sync(&mut self) -> &mut Sync<'a>;

    /// Whether values may have so many lanes.
    fn has_vectors(&self, lanes: u8) -> bool;

    /// A barrier of the group.
    fn barrier(&mut self, scope: BarrierScope);

    /// Storage for so many elements.
    fn alloc(&mut self, value: Value, space: Space, ty: Type, len: u32);

    /// Opens a region that is entered where `cond` holds.
    fn open_if(&mut self, cond: Value);

    /// Opens a loop.
    fn open_loop(&mut self, this: Loop);

    /// Leaves the innermost loop where `cond` holds.
    fn break_if(&mut self, cond: Value);

    /// Closes the innermost region.
    fn close(&mut self);

    /// Loads what the guards do not exclude.
    ///
    /// # Errors
    /// When the language has no such access.
    fn load(&mut self, value: Value, ty: Type, place: &Place) -> Emitted;

    /// Stores `x`, once for all threads that run the same iteration.
    ///
    /// # Errors
    /// When the language has no such access.
    fn store(&mut self, place: &Place, x: Value) -> Emitted;

    /// Combines with `x` indivisibly, once for all threads that run the same iteration. Defines
    /// `old`, if anything asks for what the element was.
    ///
    /// # Errors
    /// When the language has no such access.
    fn atomic(&mut self, old: Option<Value>, op: BinaryOp, place: &Place, x: Value) -> Emitted;

    /// Defines a value that depends on operands alone.
    fn pure(&mut self, value: Value, op: Op, ty: Type);

    /// An op that the threads of a subgroup execute together.
    ///
    /// # Errors
    /// When the language has none.
    fn together(&mut self, value: Value, _op: Op, _ty: Type) -> Emitted {
        Err(format!("{value}: no operations of subgroups"))
    }
}

/// Emits the ops of a stage.
///
/// # Errors
/// When the kernel needs what the language lacks, or threads could miss a barrier.
pub fn walk<'a>(emitter: &mut impl Emitter<'a>, stage: &Stage, caps: &Caps) -> Emitted {
    let kernel = emitter.kernel();
    let used: FxHashSet<Value> = kernel.ops().iter().flat_map(Op::operands).collect();
    for (value, op, ty) in kernel.iter().filter(|(v, ..)| stage.members[v.idx()]) {
        if ty.is_vector() && !emitter.has_vectors(ty.lanes) {
            return Err(format!("{value}: no vectors of {} lanes", ty.lanes));
        }
        emitter.before(op);
        match op {
            Op::Param { .. } | Op::Var { .. } | Op::Const { .. } | Op::Guard { .. } => {}
            Op::Alloc { space, len } => {
                if space == Space::Shared {
                    emitter.sync().share();
                }
                emitter.alloc(value, space, ty, len);
            }
            Op::Loop { kind, axis, len } => {
                let axis = axis.into();
                let opened = emitter.sync().open_loop(kind, axis, len, caps.max_groups);
                let (spread, barrier) = opened?;
                synchronise(emitter, barrier);
                emitter.open_loop(Loop { counter: value, kind, axis, len, spread });
            }
            Op::If { cond } => {
                emitter.open_if(cond);
                emitter.sync().open_if();
            }
            Op::Break { cond } => {
                emitter.sync().break_loop();
                emitter.break_if(cond);
            }
            Op::End { .. } => {
                let barrier = emitter.sync().close()?;
                synchronise(emitter, barrier);
                emitter.close();
            }
            Op::Barrier { scope } => {
                if emitter.sync().barrier(value)? {
                    emitter.barrier(scope);
                }
            }
            Op::Load { order, buf, index } => {
                let barrier = emitter.sync().load(buf)?;
                synchronise(emitter, barrier);
                emitter.load(value, ty, &Place::of(kernel, order, buf, index)?)?;
            }
            Op::Store { order, buf, index, value } => {
                let barrier = emitter.sync().write(buf)?;
                synchronise(emitter, barrier);
                emitter.store(&Place::of(kernel, order, buf, index)?, value)?;
            }
            Op::Atomic { op, order, buf, index, value: x } => {
                let old = used.contains(&value).then_some(value);
                let barrier = emitter.sync().atomic(value, buf, old.is_some())?;
                synchronise(emitter, barrier);
                emitter.atomic(old, op, &Place::of(kernel, order, buf, index)?, x)?;
            }
            Op::Panel { buf, .. } => {
                let barrier = emitter.sync().load(buf)?;
                synchronise(emitter, barrier);
                emitter.together(value, op, ty)?;
            }
            Op::Shuffle { .. } | Op::Mma { .. } => emitter.together(value, op, ty)?,
            _ => emitter.pure(value, op, ty),
        }
    }
    Ok(())
}

/// A barrier that the kernel does not spell out.
pub fn synchronise<'a>(emitter: &mut impl Emitter<'a>, barrier: bool) {
    if barrier {
        emitter.barrier(BarrierScope::Group);
    }
}
