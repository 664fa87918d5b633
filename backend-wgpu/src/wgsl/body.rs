//! The statements of one launch: one per op, one block per region.
//!
//! Every value becomes a `let` named after its number; constants and guards have no statement of
//! their own. A block of WGSL ends where a region ends, so scopes agree. What stands where is decided
//! by the core's [`walk`].

use super::expr::Speller;
use super::memory::Storage;
use zyx_core::codegen::stages::Stage;
use zyx_core::codegen::sync::Spread;
use zyx_core::codegen::walk::{Emitted, Emitter, Loop, walk};
use zyx_core::codegen::{Place, Sync};
use zyx_core::ir::{BarrierScope, Kernel, LoopKind, Op, Regions, ShuffleKind, Space, Type, Value};
use zyx_core::{BinaryOp, DType, TernaryOp};

/// Writes the body of one stage.
#[derive(Debug)]
pub(super) struct Body<'a, 's> {
    kernel: &'a Kernel,
    stage: &'a Stage,
    speller: Speller<'a>,
    storage: &'s mut Storage<'a>,
    sync: Sync<'a>,
    regions: Regions,
    /// The text so far.
    pub(super) out: String,
    /// Open regions.
    depth: usize,
    /// Whether the text uses the hidden zero.
    pub(super) fenced: bool,
}

impl<'a, 's> Body<'a, 's> {
    pub(super) fn new(
        kernel: &'a Kernel,
        stage: &'a Stage,
        speller: Speller<'a>,
        storage: &'s mut Storage<'a>,
    ) -> Body<'a, 's> {
        let sync = Sync::new(kernel, stage);
        let (regions, out) = (Regions::of(kernel), String::new());
        Body { kernel, stage, speller, storage, sync, regions, out, depth: 0, fenced: false }
    }

    pub(super) fn emit(&mut self) -> Emitted {
        walk(self, self.stage, self.speller.caps)
    }

    fn line(&mut self, text: &str) {
        self.out.extend(std::iter::repeat_n("    ", self.depth + 1));
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn define(&mut self, value: Value, expression: &str) {
        self.line(&format!("let v{} = {expression};", value.0));
    }

    /// The text that stands for a value.
    fn name(&self, value: Value) -> String {
        match self.kernel.op(value) {
            Op::Var { slot } => format!("x{slot}"),
            Op::Const { .. } => {
                let constant = self.kernel.constant(value);
                self.speller.literal(constant.expect("invariant: a constant has a value"))
            }
            Op::Guard { index, .. } => self.name(index),
            Op::Alloc { .. } => format!("m{}", value.0),
            // Not `i`: there are types called `i32` and `i64`.
            Op::Loop { .. } => format!("n{}", value.0),
            _ => format!("v{}", value.0),
        }
    }

    /// The expression of a value that depends on operands alone.
    fn expression(&mut self, op: Op, dtype: DType) -> String {
        let kernel = self.kernel;
        let of = |x: Value| kernel.ty(x).dtype;
        match op {
            Op::Unary { op, x } => {
                let x = if dtype.is_float() { self.isolated(x) } else { self.name(x) };
                self.speller.unary(op, dtype, &x)
            }
            Op::Binary { op, x, y } if of(x).is_float() => self.float_binary(op, x, y),
            Op::Binary { op, x, y } => {
                let (left, right) = (self.name(x), self.name(y));
                self.speller.binary(op, of(x), (&left, &right), kernel.constant(y))
            }
            Op::Ternary { op, x, y, z } => {
                let [x, y, z] = [x, y, z].map(|v| match (op, kernel.op(v)) {
                    // A product of three factors is regrouped.
                    (TernaryOp::MulAdd, Op::Binary { op: BinaryOp::Mul, .. }) => self.fence(v),
                    _ => self.name(v),
                });
                self.speller.ternary(op, &x, &y, &z)
            }
            Op::Cast { x } => self.speller.cast(of(x), dtype, &self.name(x)),
            Op::Bitcast { x } => self.speller.bitcast(of(x), dtype, &self.name(x)),
            _ => unreachable!("invariant: ops with effects are emitted elsewhere"),
        }
    }

    // Floats.

    /// Whether a value is the result of float arithmetic that a driver could combine with more: also
    /// one that went through a variable, which compilers see through.
    fn is_computed(&self, x: Value) -> bool {
        match self.kernel.op(x) {
            // A guarded load.
            Op::Ternary { op: TernaryOp::Where, y, .. }
                if matches!(self.kernel.op(y), Op::Load { .. }) =>
            {
                self.is_computed(y)
            }
            Op::Unary { .. } | Op::Binary { .. } | Op::Ternary { .. } => true,
            Op::Load { buf, .. } => {
                matches!(self.kernel.op(buf), Op::Alloc { space: Space::Register, len: 1 })
                    && !self.is_running(x)
            }
            _ => false,
        }
    }

    fn fence(&mut self, x: Value) -> String {
        self.fenced = true;
        self.speller.fence(self.kernel.ty(x).dtype, &self.name(x))
    }

    /// A float with its origin hidden, if that is arithmetic.
    fn isolated(&mut self, x: Value) -> String {
        if self.is_computed(x) { self.fence(x) } else { self.name(x) }
    }

    /// Whether a value is a sum to which a loop adds: it was stored by an earlier iteration, in
    /// storage from outside of the loop.
    fn is_running(&self, x: Value) -> bool {
        match self.kernel.op(x) {
            Op::Load { buf, .. } => {
                matches!(self.kernel.op(buf), Op::Alloc { .. })
                    && self.regions.parent(x) != self.regions.parent(buf)
            }
            _ => false,
        }
    }

    /// A binary op on floats. Sums to which a term is added step by step are left to the driver:
    /// what they start from lies in storage, so there is nothing to reassociate.
    fn float_binary(&mut self, op: BinaryOp, x: Value, y: Value) -> String {
        let dtype = self.kernel.ty(x).dtype;
        // NVIDIA's compiler takes a subnormal number for a zero, and its product for itself.
        let least = if dtype == DType::F32 { f32::MIN_POSITIVE.into() } else { f64::MIN_POSITIVE };
        let special = |v: Value| {
            self.kernel.constant(v).is_some_and(|c| {
                let size = c.to_f64().abs();
                size < least || !size.is_finite()
            })
        };
        let known = |v: Value| self.kernel.constant(v).is_some();
        let accumulates = op == BinaryOp::Add && (self.is_running(x) || self.is_running(y));
        let [left, right] = match op {
            _ if accumulates => [self.name(x), self.name(y)],
            // Comparing values and then choosing one of them is no minimum where NaN is allowed.
            BinaryOp::Lt | BinaryOp::Le => {
                let left = if known(x) { self.name(x) } else { self.fence(x) };
                let right = if known(x) && !known(y) { self.fence(y) } else { self.name(y) };
                [left, right]
            }
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => {
                let hide = [x, y].map(|v| special(v) || self.is_computed(v));
                // Of two loads that give the same, a driver knows the difference and the quotient; of
                // integers that do, that a quotient is by zero, which Mesa's take for undefined.
                let equal = op == BinaryOp::Sub && hide == [false; 2];
                let equal = equal && !known(x) && !known(y);
                let hidden = |v| op == BinaryOp::Div && !known(v);
                let hide = [hide[0] || hidden(x), hide[1] || equal || hidden(y)];
                let operand = |(v, hide)| if hide { self.fence(v) } else { self.name(v) };
                [(x, hide[0]), (y, hide[1])].map(operand)
            }
            _ => [x, y].map(|v| self.isolated(v)),
        };
        self.speller.binary(op, dtype, (&left, &right), None)
    }

    // Memory.

    /// An index as WGSL takes it. Accesses are in bounds, so it fits 32 bits whatever its dtype.
    fn index(&self, index: Value) -> String {
        if let Some(constant) = self.kernel.constant(index) {
            return format!("{}u", constant.to_i64() as u32);
        }
        let (name, dtype) = (self.name(index), self.kernel.ty(index).dtype);
        self.speller.cast(dtype, DType::U32, &name)
    }

    /// A statement for where the guard of an access holds, and once for all threads that run the same
    /// iteration.
    fn perform(&mut self, place: &Place, statement: &str) {
        let mut tests: Vec<String> = place.conds.iter().map(|&cond| self.name(cond)).collect();
        if self.sync.is_memory(place.buf) {
            let first = |axis| format!("local.{} == 0u", ["x", "y", "z"][axis]);
            tests.extend(self.sync.idle_axes().map(first));
        }
        match tests.is_empty() {
            true => self.line(statement),
            false => self.line(&format!("if ({}) {{ {statement} }}", tests.join(" && "))),
        }
    }
}

impl<'a> Emitter<'a> for Body<'a, '_> {
    fn kernel(&self) -> &'a Kernel {
        self.kernel
    }

    fn sync(&mut self) -> &mut Sync<'a> {
        &mut self.sync
    }

    fn has_vectors(&self, _lanes: u8) -> bool {
        false
    }

    fn barrier(&mut self, scope: BarrierScope) {
        self.line(match scope {
            BarrierScope::Shared => "workgroupBarrier();",
            // Also orders buffers.
            BarrierScope::Group => "storageBarrier(); workgroupBarrier();",
        });
    }

    fn alloc(&mut self, value: Value, space: Space, ty: Type, len: u32) {
        match space {
            Space::Shared => self.storage.share(value, len),
            Space::Register => {
                self.line(&format!("var m{}: array<{}, {len}>;", value.0, ty.dtype));
            }
        }
    }

    fn open_if(&mut self, cond: Value) {
        self.line(&format!("if ({}) {{", self.name(cond)));
        self.depth += 1;
    }

    fn open_loop(&mut self, Loop { counter, kind, axis, len, spread }: Loop) {
        let (name, dtype) = (self.name(counter), self.kernel.ty(counter).dtype);
        // Only loops that are spread have an axis.
        let lane = ["x", "y", "z"].get(axis).copied().unwrap_or_default();
        let (index, count) = match (spread, kind) {
            (Spread::Serial, _) => Default::default(),
            (_, LoopKind::Local) => {
                (format!("local.{lane}"), format!("{}u", self.stage.local[axis]))
            }
            _ => (format!("group.{lane}"), format!("groups.{lane}")),
        };
        let converted = |x: &str| self.speller.cast(DType::U32, dtype, x);
        let (start, step) = match spread {
            Spread::Serial => (self.speller.small(dtype, 0), self.speller.small(dtype, 1)),
            _ => (converted(&index), converted(&count)),
        };
        self.line(&match spread {
            Spread::Single => "{".to_owned(),
            _ => format!(
                "for (var {name} = {start}; {name} < {}; {name} += {step}) {{",
                self.name(len)
            ),
        });
        self.depth += 1;
        if spread == Spread::Single {
            self.line(&format!("let {name} = {start};"));
        }
    }

    fn break_if(&mut self, cond: Value) {
        self.line(&format!("if ({}) {{ break; }}", self.name(cond)));
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    fn load(&mut self, value: Value, _ty: Type, place: &Place) -> Emitted {
        if place.awaited {
            return Err("no loads that wait".into());
        }
        let index = self.index(place.index);
        let access = match self.sync.is_memory(place.buf) {
            true => self.storage.load(place.buf, &index),
            false => format!("{}[{index}]", self.name(place.buf)),
        };
        self.define(value, &access);
        Ok(())
    }

    fn store(&mut self, place: &Place, x: Value) -> Emitted {
        let (index, x) = (self.index(place.index), self.name(x));
        let statement = match self.sync.is_memory(place.buf) {
            true => self.storage.store(place.buf, &index, &x),
            false => format!("{}[{index}] = {x};", self.name(place.buf)),
        };
        self.perform(place, &statement);
        Ok(())
    }

    fn atomic(&mut self, old: Option<Value>, op: BinaryOp, place: &Place, x: Value) -> Emitted {
        let dtype = self.kernel.ty(x).dtype;
        let (index, x) = (self.index(place.index), self.name(x));
        let call = self.storage.atomic(op, place.buf, &index, &x)?;
        let statement = match old {
            Some(old) => {
                self.line(&format!("var v{}: {dtype};", old.0));
                format!("v{} = {call};", old.0)
            }
            None => format!("{call};"),
        };
        self.perform(place, &statement);
        Ok(())
    }

    fn together(&mut self, value: Value, op: Op, _ty: Type) -> Emitted {
        let (function, x, lane) = match op {
            Op::Shuffle { kind: ShuffleKind::Index, x, lane } => ("subgroupShuffle", x, lane),
            Op::Shuffle { kind: ShuffleKind::Xor, x, lane } => ("subgroupShuffleXor", x, lane),
            _ => return Err(format!("{value}: no such operation of subgroups")),
        };
        let lane = self.index(lane);
        self.define(value, &format!("{function}({}, {lane})", self.name(x)));
        Ok(())
    }

    fn pure(&mut self, value: Value, op: Op, ty: Type) {
        let expression = self.expression(op, ty.dtype);
        self.define(value, &expression);
    }
}
