//! The body of one launch: statements and regions.
//!
//! Which loops a thread runs, where barriers stand and who writes is decided by [`Sync`]; here it is
//! spelled.

use super::dialect::Position;
use super::expr::Speller;
use super::stages::{self, Extent, Stage};
use super::sync::{Barrier, Spread, Sync};
use crate::dtype::DType;
use crate::ir::{BarrierScope, Kernel, LoopKind, Op, Ranges, Space, Type, Value, mma};
use crate::ops::BinaryOp;
use std::fmt::Write;

/// Emits the body of one stage.
#[derive(Debug)]
pub(super) struct Body<'a, 'd> {
    pub(super) kernel: &'a Kernel,
    stage: &'a Stage,
    pub(super) speller: &'a mut Speller<'d>,
    out: String,
    /// Declarations of shared storage, which stand at the top of the function.
    pub(super) shared: String,
    pub(super) sync: Sync<'a>,
    /// For each value a number that it is a multiple of, where the dialect asks.
    pub(super) multiples: Vec<u64>,
}

/// A kernel that cannot be emitted gives the reason.
pub(super) type Emitted<T = ()> = Result<T, String>;

impl<'a, 'd> Body<'a, 'd> {
    pub(super) fn new(
        kernel: &'a Kernel,
        stage: &'a Stage,
        speller: &'a mut Speller<'d>,
    ) -> Body<'a, 'd> {
        let ranges = speller.dialect.whole.then(|| Ranges::of(kernel));
        let multiples = ranges.map_or_else(Vec::new, |ranges| {
            kernel.iter().map(|(v, _, _)| ranges.get(v).multiple_of).collect()
        });
        Body {
            kernel,
            stage,
            speller,
            out: String::new(),
            shared: String::new(),
            sync: Sync::new(kernel, stage),
            multiples,
        }
    }

    pub(super) fn emit(mut self) -> Emitted<String> {
        let mut start = String::new();
        let threads = stages::threads(self.stage.groups, self.stage.local);
        if let Some(enter) = (self.speller.dialect.enter)(threads) {
            let _ = writeln!(start, "    {enter}");
        }
        for i in 0..self.kernel.params().len() {
            let _ = writeln!(start, "    {}", (self.speller.dialect.start)(i));
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
        self.line_at(self.sync.depth(), text);
    }

    fn line_at(&mut self, depth: usize, text: &str) {
        self.out.extend(std::iter::repeat_n("    ", depth + 1));
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
            Op::If { cond } => {
                let head = format!("if ({}) {{", self.name(cond));
                self.line(&head);
                self.sync.open_if();
            }
            Op::End { .. } => self.close()?,
            Op::Barrier { scope } => self.barrier(value, scope)?,
            Op::Load { order, buf, index } => self.load(value, ty, order, buf, index)?,
            Op::Store { order, buf, index, value: x } => self.store(order, buf, index, x)?,
            Op::Atomic { op, order, buf, index, value: x } => {
                self.atomic(value, op, order, buf, index, x)?;
            }
            Op::Shuffle { kind, x, lane } => {
                let function = (self.speller.dialect.shuffle)(kind, self.has_whole_subgroups());
                let function =
                    function.ok_or_else(|| format!("{value}: no subgroup operations"))?;
                let [x, lane] = [x, lane].map(|x| self.name(x));
                self.define(value, ty, &format!("{function}({x}, {lane})"));
            }
            Op::Mma { row, a, b, c } => {
                let function = (self.speller.dialect.mma)(mma::ROWS[usize::from(row)].factor);
                let function = function.ok_or_else(|| format!("{value}: no such instruction"))?;
                let [a, b, c] = [a, b, c].map(|x| self.name(x));
                self.define(value, ty, &format!("{function}({a}, {b}, {c})"));
            }
            Op::Fold { op, x } => self.fold(value, op, x),
            _ => {
                let expression = self.pure(op, ty);
                self.define(value, ty, &expression);
            }
        }
        Ok(())
    }

    /// Whether the number of threads of a group is known to be a multiple of a subgroup's.
    fn has_whole_subgroups(&self) -> bool {
        let number = |extent: &Extent| match extent {
            Extent::Const(n) => Some(*n),
            _ => None,
        };
        let threads: Option<u64> = self.stage.local.iter().map(number).product();
        let (least, most) = self.speller.caps.subgroup;
        least == most && threads.is_some_and(|n| most > 0 && n.is_multiple_of(most.into()))
    }

    fn pure(&mut self, op: Op, ty: Type) -> String {
        let kernel = self.kernel;
        let text = |v| self.name(v);
        match op {
            Op::Unary { op, x } => self.speller.unary(op, ty, &text(x)),
            Op::Binary { op, x, y } => {
                let (left, right) = (text(x), text(y));
                self.speller.binary(op, kernel.ty(x), (&left, &right))
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
                let combined = self.speller.binary(op, ty, (&terms[i], y));
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
            self.sync.share();
        } else {
            self.line(&declaration);
        }
    }

    // Regions and barriers.

    fn open_loop(&mut self, value: Value, kind: LoopKind, axis: usize, len: Value) -> Emitted {
        let (counter, ty) = (self.name(value), self.speller.ty(self.kernel.ty(value)));
        let length = self.name(len);
        let outside = self.sync.depth();
        let (spread, barrier) =
            self.sync.open_loop(kind, axis, len, self.speller.caps.max_groups)?;
        // Serial loops are not limited to the axes of a launch.
        let position = |p| match spread {
            Spread::Serial => String::new(),
            _ => (self.speller.dialect.position)(p, axis),
        };
        let (index, count) = match kind {
            LoopKind::Local => (position(Position::Local), position(Position::Locals)),
            _ => (position(Position::Group), position(Position::Groups)),
        };
        let head = match spread {
            Spread::Single => "{".to_owned(),
            Spread::Serial => {
                format!("for ({ty} {counter} = 0; {counter} < {length}; ++{counter}) {{")
            }
            Spread::Strided => {
                let test = format!("{counter} < {length}; {counter} += {count}");
                format!("for ({ty} {counter} = {index}; {test}) {{")
            }
        };
        if barrier {
            self.line_at(outside, (self.speller.dialect.barrier)(BarrierScope::Group));
        }
        self.line_at(outside, &head);
        if spread == Spread::Single {
            self.line(&format!("const {ty} {counter} = {index};"));
        }
        Ok(())
    }

    fn close(&mut self) -> Emitted {
        let inside = self.sync.depth();
        if self.sync.close()? {
            self.line_at(inside, (self.speller.dialect.barrier)(BarrierScope::Group));
        }
        self.line("}");
        Ok(())
    }

    /// Emits a barrier that the kernel does not spell out.
    pub(super) fn synchronise(&mut self, barrier: Barrier) {
        if barrier {
            self.line((self.speller.dialect.barrier)(BarrierScope::Group));
        }
    }

    fn barrier(&mut self, value: Value, scope: BarrierScope) -> Emitted {
        if self.sync.barrier(value)? {
            self.line((self.speller.dialect.barrier)(scope));
        }
        Ok(())
    }
}
