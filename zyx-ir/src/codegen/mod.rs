//! From legal kernels to source text: what the emitters of all devices share.
//!
//! An emitter translates a kernel that `ir::verify` and `ir::legalize` have accepted for the
//! device's [`Caps`](crate::caps::Caps). It spells and never decides: no optimisation, no look at
//! what a kernel is for. Its output is a pure function of kernel and capabilities, with names
//! made from value numbers.
//!
//! * [`stages`] splits a kernel into launches and gives each its grid;
//! * [`walk`] leads an emitter through the ops of a launch, with accesses taken apart;
//! * [`sync`] decides which iterations a thread runs, where barriers stand and who writes;
//! * [`Place`] is an access with its guards taken apart;
//! * [`dialect`] is the table of spellings a C-family language consists of;
//! * [`clike`] is the emitter for such languages, with statements in `body` and `memory` and
//!   expressions in `expr`.

mod body;
pub mod clike;
pub mod dialect;
mod expr;
pub mod matrix;
mod memory;
mod place;
pub mod stages;
pub mod sync;
pub mod walk;

pub use dialect::Dialect;
pub use place::Place;
pub use stages::{Extent, threads};
pub use sync::Sync;

use crate::ir::{Kernel, Op, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::scalar::Scalar;

/// A translated kernel: source text and the launches it takes, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The complete source.
    pub source: String,
    /// What to launch, one after the other. Every entry takes the same arguments: for each
    /// `Param` a buffer and, in languages that pass it, the offset of its first element, then
    /// each `Var`.
    pub entries: Vec<Entry>,
}

/// One launch of a [`Unit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The function's name in the source.
    pub name: String,
    /// Groups per axis.
    pub groups: [Extent; 3],
    /// Threads of a group per axis.
    pub local: [u64; 3],
    /// Bytes of shared storage that the launch has to ask for.
    pub shared: usize,
}

impl Entry {
    /// Groups per axis for these scalar arguments (bits, by slot); `None` when there is nothing to
    /// run. Loops over groups whose length is no constant within the limit stride by the number of
    /// groups, so any number is correct.
    pub fn grid(&self, kernel: &Kernel, vars: &[u64], max_groups: [u64; 3]) -> Option<[u64; 3]> {
        let value = |extent: Extent| match extent {
            Extent::Const(n) => n,
            Extent::Value(value) => {
                let n = evaluate(kernel, value, vars).map_or(1, Scalar::to_i64);
                u64::try_from(n).unwrap_or(0)
            }
        };
        let groups = [0, 1, 2].map(|axis| value(self.groups[axis]).min(max_groups[axis]));
        (!groups.contains(&0) && !self.local.contains(&0)).then_some(groups)
    }
}

/// The scalar `value` has for these scalar arguments, if it depends on nothing else.
pub fn evaluate(kernel: &Kernel, value: Value, vars: &[u64]) -> Option<Scalar> {
    let mut known: Vec<Option<Scalar>> = Vec::with_capacity(value.idx() + 1);
    for (_, op, ty) in kernel.iter().take(value.idx() + 1) {
        let result = match op {
            Op::Var { slot } if !ty.is_vector() => {
                vars.get(slot as usize).map(|&bits| Scalar::from_bits(ty.dtype, bits))
            }
            _ => op.eval(ty, |v| known[v.idx()]),
        };
        known.push(result);
    }
    known[value.idx()]
}

/// The `x` whose `exp2` this is, but for results below the normal numbers, which are zero.
pub fn normal_exp2(kernel: &Kernel, op: TernaryOp, [test, zero, y]: [Value; 3]) -> Option<Value> {
    let Op::Binary { op: BinaryOp::Lt, x, y: least } = kernel.op(test) else {
        return None;
    };
    let is = |v: Value, n: f32| kernel.constant(v) == Some(Scalar::from(n));
    let fits = op == TernaryOp::Where
        && kernel.op(y) == Op::Unary { op: UnaryOp::Exp2, x }
        && is(least, f32::MIN_EXP as f32 - 1.0)
        && is(zero, 0.0);
    fits.then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::ir::Builder;
    use crate::ops::BinaryOp;

    #[test]
    fn extents_follow_scalar_arguments() {
        let mut b = Builder::new("k");
        let n = b.var(DType::I64, 0, 100);
        let four = b.index(4);
        let groups = b.binary(BinaryOp::Div, n, four);
        let kernel = b.finish();
        assert_eq!(evaluate(&kernel, groups, &[42]), Some(Scalar::from(10i64)));
        assert_eq!(evaluate(&kernel, groups, &[]), None);
        let entry = Entry {
            name: "k".into(),
            groups: [Extent::Value(groups), Extent::Const(3), Extent::Const(1)],
            local: [1; 3],
            shared: 0,
        };
        assert_eq!(entry.grid(&kernel, &[42], [8, 8, 8]), Some([8, 3, 1]));
        assert_eq!(entry.grid(&kernel, &[3], [8, 8, 8]), None);
    }
}
