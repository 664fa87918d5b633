//! Matrix instructions, and copies to the shared storage that they read.
//!
//! Wide instructions are begun one after the other, in chains that add to the same sums. Who needs a
//! result waits for its chain and for those before it; who does anything that others may see waits
//! for all. What is computed or loaded from other values passes.

use super::body::Body;
use super::walk::Emitted;
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
        let goes_on = self.pending.last() == Some(&c) && self.uses[c.idx()] == 1 && self.chain;
        if !goes_on {
            self.settle([c].into_iter());
            self.end_chain();
            self.line(wide.begin);
            self.chain = true;
        }
        let zero = is_zero(self.kernel, c);
        let name = self.name(value);
        let start = if zero { String::new() } else { format!(" = {sums}") };
        self.line(&format!("{} {name}{start};", self.speller.ty(ty)));
        let panel = matches!(self.kernel.op(a), Op::Panel { .. });
        let function = (wide.function)(row, panel, zero);
        self.line(&format!("{function}({name}, {left}, {right});"));
        self.pending.retain(|&p| !goes_on || p != c);
        self.pending.push(value);
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

    /// Waits for matrix instructions where an op may not pass them.
    pub(super) fn settle_before(&mut self, op: Op) {
        let is_register =
            |buf| matches!(self.kernel.op(buf), Op::Alloc { space: Space::Register, .. });
        match op {
            Op::Mma { row, a, .. } if mma::ROWS[usize::from(row)].is_wide() => {
                self.settle([a].into_iter());
            }
            Op::Panel { .. } | Op::Alloc { .. } => {}
            Op::Shuffle { .. } => self.settle(op.operands()),
            // Behind a branch the same are under way as before it.
            Op::If { .. } => {
                self.settle(op.operands());
                self.end_chain();
                self.branches.push(Some(self.pending.clone()));
            }
            Op::Loop { .. } => {
                self.settle(self.pending.clone().into_iter());
                self.branches.push(None);
            }
            Op::End { .. } => {
                let before = self.branches.pop().flatten();
                let new = |x: &Value| before.as_ref().is_none_or(|before| !before.contains(x));
                if self.pending.iter().any(new) {
                    self.settle(self.pending.clone().into_iter());
                }
                self.pending = before.unwrap_or_default();
            }
            Op::Store { buf, .. } if is_register(buf) => self.settle(op.operands()),
            Op::Load { order: Order::Plain, .. } => self.settle(op.operands()),
            op if op.is_pure() => self.settle(op.operands()),
            _ => self.settle(self.pending.clone().into_iter()),
        }
    }

    /// Waits for those of the values that are under way.
    fn settle(&mut self, values: impl Iterator<Item = Value>) {
        let places = values.filter_map(|x| self.pending.iter().position(|&p| p == x));
        let (Some(last), Some(wide)) = (places.max(), self.speller.dialect.wide) else { return };
        self.end_chain();
        self.line(&(wide.wait)(self.pending.len() - 1 - last));
        for value in self.pending.drain(..=last).collect::<Vec<_>>() {
            self.line(&format!("{}({});", wide.settled, self.name(value)));
        }
    }

    /// Ends the chain that is being made.
    fn end_chain(&mut self) {
        if let (true, Some(wide)) = (std::mem::take(&mut self.chain), self.speller.dialect.wide) {
            self.line(wide.end);
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

    /// The loads that are copied to shared storage by the device: of whole vectors that nothing
    /// else needs, stored where nobody looks before the next barrier.
    pub(super) fn mark_copied(&mut self) {
        // Devices with wide instructions have the copies that these wait for; not all others do.
        let has_copies = self.speller.caps.wide_mma != DTypeSet::NONE;
        if self.speller.dialect.copies.is_none() || !has_copies {
            return;
        }
        for (_, op, ty) in self.kernel.iter() {
            let Op::Store { order: Order::AsyncCopy, buf: to, index: at, value } = op else {
                continue;
            };
            let Op::Load { order: Order::Plain, buf, index } = self.kernel.op(value) else {
                continue;
            };
            let guarded =
                [at, index].iter().any(|&i| matches!(self.kernel.op(i), Op::Guard { .. }));
            let constant = matches!(self.kernel.op(buf), Op::Param { access: Access::Read, .. });
            self.copied[value.idx()] = !guarded
                && constant
                && self.uses[value.idx()] == 1
                && ty.bytes() == COPIED
                && self.kernel.ty(to) == ty
                && self.is_multiple(index, ty.lanes);
        }
    }
}

/// Bytes of a vector that devices copy.
const COPIED: usize = 16;

/// Whether all lanes are zero.
fn is_zero(kernel: &Kernel, x: Value) -> bool {
    let zero = |x: Value| kernel.constant(x).is_some_and(|c| c == Scalar::from_i64(c.dtype(), 0));
    match kernel.op(x) {
        Op::Splat { x } => zero(x),
        _ => zero(x),
    }
}

/// How often each value is an operand.
pub(super) fn uses(kernel: &Kernel) -> Vec<u32> {
    let mut uses = vec![0; kernel.ops().len()];
    for x in kernel.ops().iter().flat_map(|op| op.operands()) {
        uses[x.idx()] += 1;
    }
    uses
}
