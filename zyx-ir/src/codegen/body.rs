//! The body of one launch: statements and regions, as [`walk`](super::walk) asks for them.

use super::dialect::Position;
use super::expr::Speller;
use super::matrix::{self, Chains};
use super::place::Place;
use super::stages::{self, Stage};
use super::sync::{Spread, Sync};
use super::walk::{Emitted, Emitter, Loop, walk};
use crate::dtype::DType;
use crate::ir::{BarrierScope, Kernel, LoopKind, Op, Ranges, Space, Type, Value, mma};
use crate::ops::{BinaryOp, TernaryOp};
use std::fmt::Write;

/// Emits the body of one stage.
#[derive(Debug)]
pub(super) struct Body<'a, 'd> {
    pub(super) kernel: &'a Kernel,
    stage: &'a Stage,
    pub(super) speller: &'a mut Speller<'d>,
    out: String,
    /// Open regions.
    depth: usize,
    /// Declarations of shared storage, which stand at the top of the function.
    pub(super) shared: String,
    pub(super) sync: Sync<'a>,
    /// For each value a number that it is a multiple of, where the dialect asks.
    pub(super) multiples: Vec<u64>,
    /// Loads that the device copies to where they are stored.
    pub(super) copied: Vec<bool>,
    pub(super) chains: Chains<'a>,
    /// Bytes so far of shared storage that the launch asks for, if it does.
    dynamic: Option<usize>,
}

/// What places in an array of bytes are multiples of: panels begin there.
const PLACE: usize = 1024;

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
        let mut body = Body {
            kernel,
            stage,
            speller,
            out: String::new(),
            depth: 0,
            shared: String::new(),
            sync: Sync::new(kernel, stage),
            multiples,
            copied: vec![false; kernel.ops().len()],
            chains: Chains::new(kernel),
            dynamic: None,
        };
        let large = body.shared_bytes() > body.speller.caps.shared_bytes;
        body.dynamic = body.speller.dialect.dynamic.filter(|_| large).map(|_| 0);
        if body.speller.dialect.copies.is_some() {
            body.copied = matrix::copied(kernel, body.speller.caps, &body.multiples);
        }
        body
    }

    /// The text, and the bytes of shared storage that the launch has to ask for.
    pub(super) fn emit(mut self) -> Emitted<(String, usize)> {
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
        let (stage, caps) = (self.stage, self.speller.caps);
        walk(&mut self, stage, caps)?;
        if let Some(array) = self.speller.dialect.dynamic.filter(|_| self.dynamic.is_some()) {
            let _ = writeln!(start, "    {array}");
        }
        Ok((start + &self.shared + &self.out, self.dynamic.unwrap_or(0)))
    }

    /// Bytes of the stage's shared storage.
    fn shared_bytes(&self) -> usize {
        let bytes = |(value, op, ty): (Value, Op, Type)| match op {
            Op::Alloc { space: Space::Shared, len } if self.stage.members[value.idx()] => {
                len as usize * ty.bytes()
            }
            _ => 0,
        };
        self.kernel.iter().map(bytes).sum()
    }

    pub(super) fn line(&mut self, text: &str) {
        self.out.extend(std::iter::repeat_n("    ", self.depth + 1));
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

    /// Whether the number of threads of a group is known to be a multiple of a subgroup's.
    fn has_whole_subgroups(&self) -> bool {
        let threads: u64 = self.stage.local.iter().product();
        let (least, most) = self.speller.caps.subgroup;
        least == most && most > 0 && threads.is_multiple_of(most.into())
    }

    /// The language's function for [`super::normal_exp2`].
    fn normal_exp2(&self, op: TernaryOp, operands: [Value; 3]) -> Option<String> {
        let function = self.speller.dialect.normal_exp2?;
        let x = super::normal_exp2(self.kernel, op, operands)?;
        Some(format!("{function}({})", self.name(x)))
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
}

impl<'a> Emitter<'a> for Body<'a, '_> {
    fn kernel(&self) -> &'a Kernel {
        self.kernel
    }

    fn sync(&mut self) -> &mut Sync<'a> {
        &mut self.sync
    }

    fn has_vectors(&self, lanes: u8) -> bool {
        self.speller.dialect.widths.contains(&lanes)
    }

    fn before(&mut self, op: Op) {
        let steps = self.chains.before(op);
        self.around(steps);
    }

    fn barrier(&mut self, scope: BarrierScope) {
        for statement in self.publish() {
            self.line(statement);
        }
        self.line((self.speller.dialect.barrier)(scope));
    }

    fn alloc(&mut self, value: Value, space: Space, ty: Type, len: u32) {
        let declaration = format!("{} m{}[{len}];", self.speller.ty(ty), value.0);
        if space == Space::Shared {
            let is_panel = |op: &Op| matches!(op, Op::Panel { buf, .. } if *buf == value);
            let panels =
                self.speller.dialect.wide.filter(|_| self.kernel.ops().iter().any(is_panel));
            let qualifier = panels.map_or(self.speller.dialect.shared, |wide| wide.storage);
            let _ = match &mut self.dynamic {
                Some(bytes) => {
                    let (ty_name, at) = (self.speller.ty(ty), *bytes);
                    *bytes = (at + len as usize * ty.bytes()).next_multiple_of(PLACE);
                    let pointer = format!("{}{ty_name} *", self.speller.dialect.shared_pointer);
                    writeln!(
                        self.shared,
                        "    {pointer}m{} = ({pointer})(dynamic + {at});",
                        value.0
                    )
                }
                None => writeln!(self.shared, "    {qualifier}{declaration}"),
            };
        } else {
            self.line(&declaration);
        }
    }

    fn open_if(&mut self, cond: Value) {
        let head = format!("if ({}) {{", self.name(cond));
        self.line(&head);
        self.depth += 1;
    }

    fn open_loop(&mut self, Loop { counter, kind, axis, len, spread }: Loop) {
        let (ty, length) = (self.speller.ty(self.kernel.ty(counter)), self.name(len));
        let counter = self.name(counter);
        let position = |p| (self.speller.dialect.position)(p, axis);
        let (index, count) = match (spread, kind) {
            // Serial loops are not limited to the axes of a launch.
            (Spread::Serial, _) => Default::default(),
            (_, LoopKind::Local) => (position(Position::Local), position(Position::Locals)),
            _ => (position(Position::Group), position(Position::Groups)),
        };
        let test = format!("{counter} < {length}");
        self.line(&match spread {
            Spread::Single => "{".to_owned(),
            Spread::Serial => format!("for ({ty} {counter} = 0; {test}; ++{counter}) {{"),
            Spread::Strided => {
                format!("for ({ty} {counter} = {index}; {test}; {counter} += {count}) {{")
            }
        });
        self.depth += 1;
        if spread == Spread::Single {
            self.line(&format!("const {ty} {counter} = {index};"));
        }
    }

    fn break_if(&mut self, cond: Value) {
        let text = format!("if ({}) break;", self.name(cond));
        self.line(&text);
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    fn load(&mut self, value: Value, ty: Type, place: &Place) -> Emitted {
        match place.awaited {
            true => self.awaited(value, ty, place),
            false if self.copied[value.idx()] => {}
            false => self.loaded(value, ty, place),
        }
        Ok(())
    }

    fn store(&mut self, place: &Place, x: Value) -> Emitted {
        self.stored(place, x);
        Ok(())
    }

    fn atomic(&mut self, old: Option<Value>, op: BinaryOp, place: &Place, x: Value) -> Emitted {
        self.combined(old, op, place, x)
    }

    fn pure(&mut self, value: Value, op: Op, ty: Type) {
        let kernel = self.kernel;
        let text = |v| self.name(v);
        let expression = match op {
            Op::Fold { op, x } => return self.fold(value, op, x),
            Op::Unary { op, x } => self.speller.unary(op, ty, &text(x)),
            Op::Binary { op, x, y } => {
                let (left, right) = (text(x), text(y));
                self.speller.binary(op, kernel.ty(x), (&left, &right))
            }
            Op::Ternary { op, x, y, z } => match self.normal_exp2(op, [x, y, z]) {
                Some(exponential) => exponential,
                None => self.speller.ternary(op, ty, &text(x), &text(y), &text(z)),
            },
            Op::Cast { x } => {
                let operand = text(x);
                self.speller.cast(kernel.ty(x), ty, &operand)
            }
            Op::Bitcast { x } => self.speller.bitcast(kernel.ty(x), ty, &text(x)),
            Op::Splat { x } => self.speller.fill(ty, &text(x)),
            Op::Extract { x, lane } => self.speller.lane(kernel.ty(x), &text(x), lane),
            Op::Concat { x, y } => {
                let (first, names) = (kernel.ty(x).lanes, [text(x), text(y)]);
                self.speller.lanes(ty, &mut |speller, lane| match lane < first {
                    true => speller.lane(kernel.ty(x), &names[0], lane),
                    false => speller.lane(kernel.ty(y), &names[1], lane - first),
                })
            }
            Op::Lanes => self.speller.lanes(ty, &mut |_, lane| lane.to_string()),
            _ => unreachable!("invariant: ops with effects are emitted elsewhere"),
        };
        self.define(value, ty, &expression);
    }

    fn together(&mut self, value: Value, op: Op, ty: Type) -> Emitted {
        let (function, operands) = match op {
            Op::Mma { row, a, b, c } => {
                return self.mma(value, ty, mma::ROWS[usize::from(row)], [a, b, c]);
            }
            Op::Panel { buf, index } => return self.panel(value, buf, index),
            Op::Shuffle { kind, x, lane } => {
                let function = (self.speller.dialect.shuffle)(kind, self.has_whole_subgroups());
                (function.ok_or_else(|| format!("{value}: no subgroup operations"))?, vec![x, lane])
            }
            _ => unreachable!("invariant: threads do nothing else together"),
        };
        let operands: Vec<String> = operands.into_iter().map(|x| self.name(x)).collect();
        self.define(value, ty, &format!("{function}({})", operands.join(", ")));
        Ok(())
    }
}
