//! The body of one launch: statements and regions.
//!
//! What stands outside of `Local` loops belongs to the group as a whole. All its threads compute
//! values and private storage there, each its own copy of the same; what others can see is
//! written by the first thread alone. The emitter puts a barrier wherever what one thread wrote
//! may be read or overwritten by another, and fails if some threads could miss it. A kernel with
//! one nest, whose accesses of written memory all stand in the innermost loop, gets no barrier
//! but its own.

use super::dialect::Position;
use super::expr::Speller;
use super::stages::{Extent, Stage};
use crate::dtype::DType;
use crate::ir::{BarrierScope, Kernel, LoopKind, Op, Space, Type, Value};
use crate::ops::BinaryOp;
use std::fmt::Write;

/// What the group did to buffers and shared storage since its last barrier.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) read: bool,
    pub(super) written: bool,
}

impl Traffic {
    pub(super) fn any(self) -> bool {
        self.read || self.written
    }
}

/// An open region, and what to restore at its end.
#[derive(Debug)]
struct Frame {
    /// Kind and axis of the loop, if it is one.
    kind: Option<(LoopKind, usize)>,
    /// Whether the same thread may run the body again.
    repeats: bool,
    traffic: Traffic,
    divergent: bool,
}

/// Emits the body of one stage.
#[derive(Debug)]
pub(super) struct Body<'a, 'd> {
    pub(super) kernel: &'a Kernel,
    stage: &'a Stage,
    pub(super) speller: &'a mut Speller<'d>,
    out: String,
    /// Declarations of shared storage, which stand at the top of the function.
    pub(super) shared: String,
    frames: Vec<Frame>,
    pub(super) traffic: Traffic,
    /// Whether threads of the group may be elsewhere, so that a barrier would hang.
    divergent: bool,
}

/// A kernel that cannot be emitted gives the reason.
pub(super) type Emitted<T = ()> = Result<T, String>;

impl<'a, 'd> Body<'a, 'd> {
    pub(super) fn new(
        kernel: &'a Kernel,
        stage: &'a Stage,
        speller: &'a mut Speller<'d>,
    ) -> Body<'a, 'd> {
        Body {
            kernel,
            stage,
            speller,
            out: String::new(),
            shared: String::new(),
            frames: Vec::new(),
            traffic: Traffic::default(),
            divergent: false,
        }
    }

    pub(super) fn emit(mut self) -> Emitted<String> {
        let mut start = String::new();
        for i in 0..self.kernel.params().len() {
            let _ = writeln!(start, "    p{i} += o{i};");
        }
        for (i, _) in self.kernel.vars().iter().enumerate().filter(|v| v.1.dtype == DType::F16) {
            let (bits, half) = (Type::scalar(DType::U16), Type::scalar(DType::F16));
            let value = self.speller.bitcast(bits, half, &format!("h{i}"));
            let _ = writeln!(start, "    const {} x{i} = {value};", self.speller.ty(half));
        }
        for (value, op, ty) in self.kernel.iter() {
            if self.stage.members[value.idx()] {
                self.op(value, op, ty)?;
            }
        }
        Ok(start + &self.shared + &self.out)
    }

    pub(super) fn line(&mut self, text: &str) {
        self.out.extend(std::iter::repeat_n("    ", self.frames.len() + 1));
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// The text that stands for a value.
    pub(super) fn name(&self, value: Value) -> String {
        match self.kernel.op(value) {
            Op::Param { slot, .. } => format!("p{slot}"),
            Op::Var { slot } => format!("x{slot}"),
            Op::Const { .. } => {
                let constant = self.kernel.constant(value);
                self.speller.literal(constant.expect("invariant: a constant has a value"))
            }
            Op::Guard { index, .. } => self.name(index),
            Op::Alloc { .. } => format!("m{}", value.0),
            Op::Loop { .. } => format!("i{}", value.0),
            _ => format!("v{}", value.0),
        }
    }

    pub(super) fn define(&mut self, value: Value, ty: Type, expression: &str) {
        let text = format!("const {} v{} = {expression};", self.speller.ty(ty), value.0);
        self.line(&text);
    }

    fn op(&mut self, value: Value, op: Op, ty: Type) -> Emitted {
        if ty.is_vector() && !self.speller.dialect.widths.contains(&ty.lanes) {
            return Err(format!("{value}: no vectors of {} lanes", ty.lanes));
        }
        match op {
            Op::Param { .. } | Op::Var { .. } | Op::Const { .. } | Op::Guard { .. } => {}
            Op::Alloc { space, len } => self.alloc(value, space, ty, len),
            Op::Loop { kind, axis, len } => self.open_loop(value, kind, axis.into(), len)?,
            Op::If { cond } => self.open_if(cond),
            Op::End { .. } => self.close()?,
            Op::Barrier { scope } => self.barrier(value, scope)?,
            Op::Load { order, buf, index } => self.load(value, ty, order, buf, index)?,
            Op::Store { order, buf, index, value: x } => self.store(order, buf, index, x)?,
            Op::Atomic { op, order, buf, index, value: x } => {
                self.atomic(value, op, order, buf, index, x)?;
            }
            Op::Shuffle { .. } => return Err(format!("{value}: no subgroup operations")),
            Op::Mma { .. } => return Err(format!("{value}: no matrix instructions")),
            Op::Fold { op, x } => self.fold(value, op, x),
            _ => {
                let expression = self.pure(op, ty);
                self.define(value, ty, &expression);
            }
        }
        Ok(())
    }

    fn pure(&mut self, op: Op, ty: Type) -> String {
        let kernel = self.kernel;
        let text = |v| self.name(v);
        match op {
            Op::Unary { op, x } => self.speller.unary(op, ty, &text(x)),
            Op::Binary { op, x, y } => {
                let (left, right) = (text(x), text(y));
                self.speller.binary(op, kernel.ty(x), (&left, &right), kernel.constant(y))
            }
            Op::Ternary { op, x, y, z } => {
                self.speller.ternary(op, ty, &text(x), &text(y), &text(z))
            }
            Op::Cast { x } => {
                let operand = text(x);
                self.speller.cast(kernel.ty(x), ty, &operand)
            }
            Op::Bitcast { x } => self.speller.bitcast(kernel.ty(x), ty, &text(x)),
            Op::Splat { x } => self.speller.fill(ty, &text(x)),
            Op::Extract { x, lane } => self.speller.lane(kernel.ty(x), &text(x), lane),
            Op::Lanes => self.speller.lanes(ty, &mut |_, lane| lane.to_string()),
            _ => unreachable!("invariant: ops with effects are emitted elsewhere"),
        }
    }

    /// Combines the upper half of the lanes into the lower until one is left.
    fn fold(&mut self, value: Value, op: BinaryOp, x: Value) {
        let from = self.kernel.ty(x);
        let ty = Type::scalar(from.dtype);
        let source = self.name(x);
        let mut terms: Vec<String> =
            (0..from.lanes).map(|lane| self.speller.lane(from, &source, lane)).collect();
        while terms.len() > 1 {
            let upper = terms.split_off(terms.len() / 2);
            let level = terms.len();
            for (i, y) in upper.iter().enumerate() {
                let combined = self.speller.binary(op, ty, (&terms[i], y), None);
                let name = format!("f{}_{level}_{i}", value.0);
                let text = format!("const {} {name} = {combined};", self.speller.ty(ty));
                self.line(&text);
                terms[i] = name;
            }
        }
        let result = terms.swap_remove(0);
        self.define(value, ty, &result);
    }

    fn alloc(&mut self, value: Value, space: Space, ty: Type, len: u32) {
        let declaration = format!("{} m{}[{len}];", self.speller.ty(ty), value.0);
        if space == Space::Shared {
            let qualifier = self.speller.dialect.shared;
            let _ = writeln!(self.shared, "    {qualifier}{declaration}");
        } else {
            self.line(&declaration);
        }
    }

    // Regions.

    fn open(&mut self, head: &str, kind: Option<(LoopKind, usize)>, repeats: bool) {
        self.line(head);
        let (traffic, divergent) = (self.traffic, self.divergent);
        self.frames.push(Frame { kind, repeats, traffic, divergent });
    }

    fn open_if(&mut self, cond: Value) {
        let head = format!("if ({}) {{", self.name(cond));
        self.open(&head, None, false);
    }

    fn open_loop(&mut self, value: Value, kind: LoopKind, axis: usize, len: Value) -> Emitted {
        let (counter, ty) = (self.name(value), self.speller.ty(self.kernel.ty(value)));
        let length = self.name(len);
        let (exact, index, count) = match kind {
            LoopKind::Serial | LoopKind::Parallel => {
                let head =
                    format!("for ({ty} {counter} = 0; {counter} < {length}; ++{counter}) {{");
                self.open(&head, Some((kind, axis)), true);
                return Ok(());
            }
            LoopKind::Group => {
                let limit = self.speller.caps.max_groups[axis];
                let extent = self.stage.groups[axis];
                let exact =
                    self.is(extent, len) && matches!(extent, Extent::Const(n) if n <= limit);
                (exact, Position::Group, Position::Groups)
            }
            LoopKind::Local => {
                if self.traffic.any() {
                    self.synchronise()?;
                }
                (self.is(self.stage.local[axis], len), Position::Local, Position::Locals)
            }
        };
        let position = self.speller.dialect.position;
        let (index, count) = (position(index, axis), position(count, axis));
        if exact {
            self.open("{", Some((kind, axis)), false);
            self.line(&format!("const {ty} {counter} = {index};"));
        } else {
            let test = format!("{counter} < {length}; {counter} += {count}");
            self.open(
                &format!("for ({ty} {counter} = {index}; {test}) {{"),
                Some((kind, axis)),
                true,
            );
            self.divergent |= kind == LoopKind::Local;
        }
        Ok(())
    }

    /// Whether a loop of length `len` has as many iterations as the launch has along its axis.
    fn is(&self, extent: Extent, len: Value) -> bool {
        match extent {
            Extent::Const(n) => self.kernel.constant(len).is_some_and(|c| c.to_i128() == n.into()),
            Extent::Value(value) => value == len,
        }
    }

    fn close(&mut self) -> Emitted {
        let frame = self.frames.last().expect("invariant: regions are balanced");
        // Iterations of other loops than serial ones meet in shared storage only.
        let meets = matches!(frame.kind, Some((LoopKind::Serial, _))) || !self.shared.is_empty();
        let local = matches!(frame.kind, Some((LoopKind::Local, _)));
        if frame.repeats && meets && !local && self.is_collective() && self.traffic.any() {
            self.synchronise()?;
        }
        let frame = self.frames.pop().expect("invariant: regions are balanced");
        self.line("}");
        self.divergent = frame.divergent;
        // The region may not have run at all, so what came before it still counts.
        self.traffic.read |= frame.traffic.read;
        self.traffic.written |= frame.traffic.written | (local && self.is_collective());
        Ok(())
    }

    // Synchronisation.

    /// Whether the group has more than one thread.
    fn has_threads(&self) -> bool {
        self.stage.local != [Extent::Const(1); 3]
    }

    fn in_local(&self) -> bool {
        self.frames.iter().any(|frame| matches!(frame.kind, Some((LoopKind::Local, _))))
    }

    /// Whether all threads of a group execute this for the same iteration.
    pub(super) fn is_collective(&self) -> bool {
        self.has_threads() && !self.in_local()
    }

    /// Axes along which all threads execute this for the same iteration.
    pub(super) fn idle_axes(&self) -> impl Iterator<Item = usize> {
        (0..3).filter(|&axis| {
            self.stage.local[axis] != Extent::Const(1)
                && self.frames.iter().all(|frame| frame.kind != Some((LoopKind::Local, axis)))
        })
    }

    /// A barrier that the kernel does not spell out.
    pub(super) fn synchronise(&mut self) -> Emitted {
        if self.has_threads() {
            if self.divergent {
                return Err("a barrier is needed where threads of the group are absent".into());
            }
            self.line((self.speller.dialect.barrier)(BarrierScope::Group));
        }
        self.traffic = Traffic::default();
        Ok(())
    }

    fn barrier(&mut self, value: Value, scope: BarrierScope) -> Emitted {
        if self.divergent {
            return Err(format!("{value}: a barrier in a local loop narrower than the group"));
        }
        if self.has_threads() {
            self.line((self.speller.dialect.barrier)(scope));
        }
        Ok(())
    }
}
