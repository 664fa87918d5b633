//! Matrix instructions, and copies to the shared storage that they read.
//!
//! Wide instructions are begun one after the other, in chains that add to the same sums. Who needs a
//! result waits for its chain and for those before it; who does anything that others may see waits
//! for all. What is computed or loaded from other values passes.

use super::body::Body;
use super::walk::Emitted;
use crate::caps::Caps;
use crate::dtype::DTypeSet;
use crate::ir::mma::{self, Row};
use crate::ir::{Access, Kernel, Op, Order, Space, Type, Value};
use crate::scalar::Scalar;

impl Body<'_, '_> {
    /// A matrix instruction.
    pub(super) fn mma(
        &mut self,
        value: Value,
        ty: Type,
        row: Row,
        [a, b, c]: [Value; 3],
    ) -> Emitted {
        let missing = || format!("{value}: no such instruction");
        let [left, right, sums] = [a, b, c].map(|x| self.name(x));
        if !row.is_wide() {
            let function = (self.speller.dialect.mma)(row).ok_or_else(missing)?;
            self.define(value, ty, &format!("{function}({left}, {right}, {sums})"));
            return Ok(());
        }
        let wide = self.speller.dialect.wide.ok_or_else(missing)?;
        let (steps, _) = self.chains.extend(value, c);
        self.around(steps);
        let zero = is_zero(self.kernel, c);
        let name = self.name(value);
        let start = if zero { String::new() } else { format!(" = {sums}") };
        self.line(&format!("{} {name}{start};", self.speller.ty(ty)));
        let panel = matches!(self.kernel.op(a), Op::Panel { .. });
        let function = (wide.function)(row, panel, zero);
        self.line(&format!("{function}({name}, {left}, {right});"));
        Ok(())
    }

    /// What stands for a panel.
    pub(super) fn panel(&mut self, value: Value, buf: Value, index: Value) -> Emitted {
        let wide = self.speller.dialect.wide;
        let wide = wide.ok_or_else(|| format!("{value}: no matrices in shared storage"))?;
        let [name, buf, index] = [value, buf, index].map(|x| self.name(x));
        self.line(&format!("const {} {name} = {}({buf}, {index});", wide.address, wide.panel));
        Ok(())
    }

    /// Writes what stands around wide instructions.
    pub(super) fn around(&mut self, steps: Vec<Step>) {
        let Some(wide) = self.speller.dialect.wide else { return };
        for step in steps {
            match step {
                Step::Begin => self.line(wide.begin),
                Step::End => self.line(wide.end),
                Step::Wait { later } => self.line(&(wide.wait)(later)),
                Step::Settled(value) => {
                    self.line(&format!("{}({});", wide.settled, self.name(value)));
                }
            }
        }
    }

    /// What has to be done before threads meet, for what was stored to be seen.
    pub(super) fn publish(&self) -> impl Iterator<Item = &'static str> + use<> {
        let dialect = self.speller.dialect;
        let copied = self.copied.contains(&true);
        let panels = self.kernel.ops().iter().any(|op| matches!(op, Op::Panel { .. }));
        let wait = dialect.copies.filter(|_| copied).map(|copies| copies[1]);
        let publish = dialect.wide.filter(|_| panels).map(|wide| wide.publish);
        wait.into_iter().chain(publish)
    }
}

/// What an emitter writes around wide instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A chain begins.
    Begin,
    /// A chain ends.
    End,
    /// Waits for all chains that ended but the last `later`.
    Wait {
        /// Chains that may still be under way.
        later: usize,
    },
    /// A result may be used from here on.
    Settled(Value),
}

/// The chains of wide instructions that are under way.
#[derive(Debug)]
pub struct Chains<'a> {
    kernel: &'a Kernel,
    /// For each value how often it is an operand.
    uses: Vec<u32>,
    /// Results of chains that are under way, and whether the last may go on.
    pending: Vec<Value>,
    open: bool,
    /// For each open region those that were under way in front of it, if it is a branch.
    branches: Vec<Option<Vec<Value>>>,
}

impl<'a> Chains<'a> {
    /// None under way.
    pub fn new(kernel: &'a Kernel) -> Chains<'a> {
        let (pending, branches) = (Vec::new(), Vec::new());
        Chains { kernel, uses: uses(kernel), pending, open: false, branches }
    }

    /// What stands in front of a wide instruction that adds to `c`, and whether it goes on where
    /// `c` is: else [`Step::Begin`] comes last.
    pub fn extend(&mut self, value: Value, c: Value) -> (Vec<Step>, bool) {
        let mut steps = Vec::new();
        let goes_on = self.pending.last() == Some(&c) && self.uses[c.idx()] == 1 && self.open;
        if !goes_on {
            self.settle([c].into_iter(), &mut steps);
            self.end(&mut steps);
            steps.push(Step::Begin);
            self.open = true;
        }
        self.pending.retain(|&p| !goes_on || p != c);
        self.pending.push(value);
        (steps, goes_on)
    }

    /// What stands in front of an op that may not pass some of them.
    pub fn before(&mut self, op: Op) -> Vec<Step> {
        let mut steps = Vec::new();
        let is_register =
            |buf| matches!(self.kernel.op(buf), Op::Alloc { space: Space::Register, .. });
        match op {
            Op::Mma { row, a, .. } if mma::ROWS[usize::from(row)].is_wide() => {
                self.settle([a].into_iter(), &mut steps);
            }
            Op::Panel { .. } | Op::Alloc { .. } => {}
            Op::Shuffle { .. } => self.settle(op.operands(), &mut steps),
            // Behind a branch the same are under way as before it.
            Op::If { .. } => {
                self.settle(op.operands(), &mut steps);
                self.end(&mut steps);
                self.branches.push(Some(self.pending.clone()));
            }
            Op::Loop { .. } => {
                self.settle_all(&mut steps);
                self.branches.push(None);
            }
            Op::End { .. } => {
                let before = self.branches.pop().flatten();
                let new = |x: &Value| before.as_ref().is_none_or(|before| !before.contains(x));
                if self.pending.iter().any(new) {
                    self.settle_all(&mut steps);
                }
                self.pending = before.unwrap_or_default();
            }
            Op::Store { buf, .. } if is_register(buf) => self.settle(op.operands(), &mut steps),
            Op::Load { order: Order::Plain, .. } => self.settle(op.operands(), &mut steps),
            op if op.is_pure() => self.settle(op.operands(), &mut steps),
            _ => self.settle_all(&mut steps),
        }
        steps
    }

    fn settle_all(&mut self, steps: &mut Vec<Step>) {
        self.settle(self.pending.clone().into_iter(), steps);
    }

    /// Waits for those of the values that are under way.
    fn settle(&mut self, values: impl Iterator<Item = Value>, steps: &mut Vec<Step>) {
        let places = values.filter_map(|x| self.pending.iter().position(|&p| p == x));
        let Some(last) = places.max() else { return };
        self.end(steps);
        steps.push(Step::Wait { later: self.pending.len() - 1 - last });
        steps.extend(self.pending.drain(..=last).map(Step::Settled));
    }

    /// Ends the chain that is being made.
    fn end(&mut self, steps: &mut Vec<Step>) {
        if std::mem::take(&mut self.open) {
            steps.push(Step::End);
        }
    }
}

/// The loads that a device copies to shared storage by itself: of whole vectors that nothing else
/// needs, stored where nobody looks before the next barrier. `multiples` has for each value a number that it
/// is a multiple of.
pub fn copied(kernel: &Kernel, caps: &Caps, multiples: &[u64]) -> Vec<bool> {
    let mut copied = vec![false; kernel.ops().len()];
    // Devices with wide instructions have the copies that these wait for; not all others do.
    if caps.wide_mma == DTypeSet::NONE {
        return copied;
    }
    let uses = uses(kernel);
    for (_, op, ty) in kernel.iter() {
        let Op::Store { order: Order::AsyncCopy, buf: to, index: at, value } = op else {
            continue;
        };
        let Op::Load { order: Order::Plain, buf, index } = kernel.op(value) else {
            continue;
        };
        let guarded = [at, index].iter().any(|&i| matches!(kernel.op(i), Op::Guard { .. }));
        let constant = matches!(kernel.op(buf), Op::Param { access: Access::Read, .. });
        let multiple = multiples.get(index.idx()).copied().unwrap_or(1);
        copied[value.idx()] = !guarded
            && constant
            && uses[value.idx()] == 1
            && ty.bytes() == COPIED
            && kernel.ty(to) == ty
            && multiple.is_multiple_of(ty.lanes.into());
    }
    copied
}

/// Bytes of a vector that devices copy.
const COPIED: usize = 16;

/// Whether all lanes are zero.
pub fn is_zero(kernel: &Kernel, x: Value) -> bool {
    let zero = |x: Value| kernel.constant(x).is_some_and(|c| c == Scalar::from_i64(c.dtype(), 0));
    match kernel.op(x) {
        Op::Splat { x } => zero(x),
        _ => zero(x),
    }
}

/// How often each value is an operand.
fn uses(kernel: &Kernel) -> Vec<u32> {
    let mut uses = vec![0; kernel.ops().len()];
    for x in kernel.ops().iter().flat_map(|op| op.operands()) {
        uses[x.idx()] += 1;
    }
    uses
}
