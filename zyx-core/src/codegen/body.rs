//! The body of one launch: statements and regions.
//!
//! Ops outside of `Local` loops belong to the group as a whole. All its threads compute values
//! and private storage there, each its own copy of the same; buffers and shared storage are
//! written by the first thread alone. The emitter puts a barrier wherever what one thread wrote
//! may be read or overwritten by another, and fails if some threads could miss it. A kernel whose
//! memory ops all stand inside of its local loops gets no barrier but its own.

use super::dialect::Position;
use super::expr::Speller;
use super::stages::{Extent, Regions, Stage};
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
    traffic: Traffic,
    divergent: bool,
    open_locals: u8,
    /// The kind of the loop, if it is one in which the same thread may run the body again.
    repeats: Option<LoopKind>,
    /// Whether this is a loop over threads.
    local: bool,
}

/// Emits the body of one stage.
#[derive(Debug)]
pub(super) struct Body<'a, 'd> {
    pub(super) kernel: &'a Kernel,
    regions: &'a Regions,
    pub(super) stage: &'a Stage,
    pub(super) speller: &'a mut Speller<'d>,
    out: String,
    /// Declarations of shared storage, which stand at the top of the function.
    pub(super) shared: String,
    frames: Vec<Frame>,
    pub(super) traffic: Traffic,
    /// Axes with more than one thread, as a mask, and those whose local loops are open.
    pub(super) used_locals: u8,
    pub(super) open_locals: u8,
    /// Whether threads of the group may be elsewhere, so that a barrier would hang.
    divergent: bool,
}

/// A kernel that cannot be emitted gives the reason.
pub(super) type Emitted<T = ()> = Result<T, String>;

impl<'a, 'd> Body<'a, 'd> {
    pub(super) fn new(
        kernel: &'a Kernel,
        regions: &'a Regions,
        stage: &'a Stage,
        speller: &'a mut Speller<'d>,
    ) -> Body<'a, 'd> {
        let used = (0..3).filter(|&a| stage.local[a] > 1).fold(0, |mask, a| mask | 1 << a);
        Body {
            kernel,
            regions,
            stage,
            speller,
            out: String::new(),
            shared: String::new(),
            frames: Vec::new(),
            traffic: Traffic::default(),
            used_locals: used,
            open_locals: 0,
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
            Op::Loop { kind, len, .. } => self.open_loop(value, kind, len)?,
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
                let operands = (text(x), text(y));
                let operands = (operands.0.as_str(), operands.1.as_str());
                self.speller.binary(op, kernel.ty(x), operands, kernel.constant(y))
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

    /// Combines lanes pairwise: 0 with the one half-way up, and so on.
    fn fold(&mut self, value: Value, op: BinaryOp, x: Value) {
        let from = self.kernel.ty(x);
        let ty = Type::scalar(from.dtype);
        let source = self.name(x);
        let mut terms: Vec<String> =
            (0..from.lanes).map(|lane| self.speller.lane(from, &source, lane)).collect();
        while terms.len() > 1 {
            let upper = terms.split_off(terms.len().div_ceil(2));
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
        let declaration = format!("{} m{}[{}];", self.speller.ty(ty), value.0, len.max(1));
        if space == Space::Shared || self.stage.promoted[value.idx()] {
            let qualifier = self.speller.dialect.shared;
            let _ = writeln!(self.shared, "    {qualifier}{declaration}");
        } else {
            self.line(&declaration);
        }
    }

    fn open(&mut self, head: &str, repeats: Option<LoopKind>) {
        self.line(head);
        self.frames.push(Frame {
            traffic: self.traffic,
            divergent: self.divergent,
            open_locals: self.open_locals,
            local: false,
            repeats,
        });
    }

    fn open_if(&mut self, cond: Value) {
        let head = format!("if ({}) {{", self.name(cond));
        self.open(&head, None);
        self.divergent |= self.open_locals != 0;
    }

    fn open_loop(&mut self, value: Value, kind: LoopKind, len: Value) -> Emitted {
        let (counter, ty) = (self.name(value), self.speller.ty(self.kernel.ty(value)));
        let length = self.name(len);
        let Some(axis) = self.regions.binds(self.kernel, value.idx(), kind) else {
            let head = format!("for ({ty} {counter} = 0; {counter} < {length}; ++{counter}) {{");
            self.open(&head, Some(kind));
            return Ok(());
        };
        let local = kind == LoopKind::Local;
        if local && !self.covered() && self.traffic.any() {
            self.synchronise()?;
        }
        let (exact, index, count) = if local {
            (self.fills_group(value), Position::Local, Position::Locals)
        } else {
            (self.fills_grid(axis, len), Position::Group, Position::Groups)
        };
        let position = self.speller.dialect.position;
        let (index, count) = (position(index, axis), position(count, axis));
        if exact {
            self.open("{", None);
            self.line(&format!("const {ty} {counter} = {index};"));
        } else {
            let test = format!("{counter} < {length}; {counter} += {count}");
            self.open(&format!("for ({ty} {counter} = {index}; {test}) {{"), Some(kind));
        }
        if local {
            self.frames.last_mut().expect("invariant: the loop was opened").local = true;
            self.open_locals |= 1 << axis;
            self.divergent |= !exact;
        }
        Ok(())
    }

    /// Whether the loop over groups has as many iterations as the launch has groups.
    fn fills_grid(&self, axis: usize, len: Value) -> bool {
        let limit = self.speller.caps.max_groups[axis];
        match (self.stage.groups[axis], self.kernel.constant(len)) {
            (Extent::Const(n), Some(len)) => len.to_i128() == n.into() && n <= limit,
            _ => false,
        }
    }

    /// Whether the loop over threads has as many iterations as the group has threads.
    fn fills_group(&self, open: Value) -> bool {
        let axis = self.regions.binds(self.kernel, open.idx(), LoopKind::Local);
        match (axis, self.kernel.op(open)) {
            (Some(axis), Op::Loop { len, .. }) => {
                let len = self.kernel.constant(len).map(|n| n.to_i128());
                len == Some(self.stage.local[axis].into())
            }
            _ => false,
        }
    }

    fn close(&mut self) -> Emitted {
        let frame = self.frames.last().expect("invariant: regions are balanced");
        // Iterations of other loops than serial ones meet in shared storage only.
        let meets = match frame.repeats {
            Some(LoopKind::Serial) => true,
            Some(LoopKind::Group | LoopKind::Parallel) => !self.shared.is_empty(),
            Some(LoopKind::Local) | None => false,
        };
        if meets && !self.covered() && self.traffic.any() {
            self.synchronise()?;
        }
        let frame = self.frames.pop().expect("invariant: regions are balanced");
        self.line("}");
        self.divergent = frame.divergent;
        self.open_locals = frame.open_locals;
        // The region may not have run at all, so what came before it still counts.
        self.traffic.read |= frame.traffic.read;
        self.traffic.written |= frame.traffic.written | (frame.local && !self.covered());
        Ok(())
    }

    /// Whether each thread here runs its own iteration of local loops, rather than all the same.
    pub(super) fn covered(&self) -> bool {
        self.used_locals & !self.open_locals == 0
    }

    /// A barrier that the kernel does not spell out.
    pub(super) fn synchronise(&mut self) -> Emitted {
        if self.used_locals != 0 {
            if self.divergent {
                return Err("a barrier is needed where some threads of the group are absent".into());
            }
            self.line((self.speller.dialect.barrier)(BarrierScope::Group));
        }
        self.traffic = Traffic::default();
        Ok(())
    }

    fn barrier(&mut self, value: Value, scope: BarrierScope) -> Emitted {
        let kernel = self.kernel;
        let is_local =
            |i: &usize| matches!(kernel.ops()[*i], Op::Loop { kind: LoopKind::Local, .. });
        let mut loops = self.regions.around(value.idx()).filter(is_local);
        if !loops.all(|i| self.fills_group(Value(i as u32))) {
            return Err(format!("{value}: a barrier in a local loop narrower than the group"));
        }
        if self.used_locals != 0 {
            self.line((self.speller.dialect.barrier)(scope));
        }
        if scope == BarrierScope::Group {
            self.traffic = Traffic::default();
        }
        Ok(())
    }
}
