//! Which regions an op stands in.
//!
//! A region is named by the op that opens it. The tree is computed once per kernel in one walk
//! and asked by the verifier, the range analysis and passes.

use super::kernel::Kernel;
use super::op::{LoopKind, Op, Value};

/// The tree of regions of one kernel.
#[derive(Clone, Debug)]
pub struct Regions {
    /// For each op the region it stands in; a loop or if stands in the region around it.
    parent: Vec<Option<Value>>,
}

impl Regions {
    /// The tree of a kernel. Ends that close nothing are ignored; `verify` reports them.
    pub fn of(kernel: &Kernel) -> Regions {
        let mut open: Vec<Value> = Vec::new();
        let mut parent = Vec::with_capacity(kernel.ops().len());
        for (value, op, _) in kernel.iter() {
            if let Op::End { .. } = op {
                open.pop();
            }
            parent.push(open.last().copied());
            if op.opens_region() {
                open.push(value);
            }
        }
        Regions { parent }
    }

    /// The innermost region `value` stands in, `None` at the top level.
    pub fn parent(&self, value: Value) -> Option<Value> {
        self.parent[value.idx()]
    }

    /// The regions `value` stands in, innermost first.
    pub fn enclosing(&self, value: Value) -> impl Iterator<Item = Value> + '_ {
        std::iter::successors(self.parent(value), |&region| self.parent(region))
    }

    /// The regions that `inner` stands in and `outer` does not, innermost first. `outer` must
    /// be visible where `inner` stands.
    pub fn between(&self, inner: Value, outer: Value) -> impl Iterator<Item = Value> + '_ {
        let stop = self.parent(outer);
        self.enclosing(inner).take_while(move |&region| Some(region) != stop)
    }
}

/// The kind of the loop that `value` is, if it is one.
pub(super) fn loop_kind(kernel: &Kernel, value: Value) -> Option<LoopKind> {
    match kernel.op(value) {
        Op::Loop { kind, .. } => Some(kind),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enclosing_and_between_walk_outwards() {
        let text = "kernel k\n%0 const 4 : i64\n%1 loop serial %0\n%2 const true : bool\n%3 if %2
            %4 const 1 : i64\n%5 end %3\n%6 end %1\n%7 const 2 : i64";
        let kernel: Kernel = text.parse().unwrap();
        let regions = Regions::of(&kernel);
        let list = |it: &mut dyn Iterator<Item = Value>| it.map(|v| v.0).collect::<Vec<_>>();
        assert_eq!(list(&mut regions.enclosing(Value(4))), [3, 1]);
        assert_eq!(list(&mut regions.between(Value(4), Value(2))), [3]);
        assert_eq!(list(&mut regions.between(Value(4), Value(0))), [3, 1]);
        assert_eq!(regions.parent(Value(5)), Some(Value(1)));
        assert_eq!(regions.parent(Value(7)), None);
        assert_eq!(loop_kind(&kernel, Value(1)), Some(LoopKind::Serial));
        assert_eq!(loop_kind(&kernel, Value(3)), None);
    }
}
