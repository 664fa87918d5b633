//! A recorded kernel being copied with other indices.

use crate::ir::{Builder, Kernel, Op, Value};
use crate::ops::{BinaryOp, TernaryOp};
use crate::scalar::Scalar;

pub(super) struct Copied<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) b: Builder,
    /// For each op of the kernel its copy.
    pub(super) map: Vec<Value>,
}

impl<'a> Copied<'a> {
    pub(super) fn of(kernel: &'a Kernel) -> Copied<'a> {
        Copied { kernel, b: kernel.rebuild(), map: Vec::with_capacity(kernel.ops().len()) }
    }

    /// An op on what its operands became.
    pub(super) fn mapped(&self, op: Op) -> Op {
        op.map(|x: Value| self.map[x.idx()])
    }

    /// The scalars that the extents of an argument are.
    pub(super) fn extents(&self, slot: u16) -> Vec<u16> {
        let extents = self.kernel.params()[usize::from(slot)].extents;
        extents.iter().flat_map(|extents| extents.slots().collect::<Vec<_>>()).collect()
    }

    /// The index into an array with some of the axes of an argument, and with one in front whose coordinate is given, under the
    /// conditions of an index of that argument; `None` if its coordinates cannot be told.
    pub(super) fn moved(
        &mut self,
        index: Value,
        first: Option<Value>,
        extents: &[u16],
        axes: &[bool],
    ) -> Option<Value> {
        match self.kernel.op(index) {
            Op::Guard { index, cond } => {
                let index = self.moved(index, first, extents, axes)?;
                Some(self.b.guard(index, self.map[cond.idx()]))
            }
            // Outside the interpreter is told an index that no array has.
            Op::Ternary { op: TernaryOp::Where, x: inside, y: index, z: none }
                if self.kernel.constant(none).is_some_and(|x| x.to_i64() == -1) =>
            {
                let index = self.moved(index, first, extents, axes)?;
                let [inside, none] = [inside, none].map(|x| self.map[x.idx()]);
                let none = self.b.cast(self.b.ty(index).dtype, none);
                Some(self.b.select(inside, index, none))
            }
            _ => {
                let dtype = self.kernel.ty(index).dtype;
                let digits = self.digits(index, extents)?;
                let mut at = first.map(|first| self.b.cast(dtype, first));
                for ((digit, extent), _) in
                    digits.into_iter().zip(extents).zip(axes).filter(|x| *x.1)
                {
                    let digit = self.b.cast(dtype, self.map[digit.idx()]);
                    at = Some(match at {
                        None => digit,
                        Some(row) => {
                            let extent = self.b.cast(dtype, self.scalar(*extent)?);
                            let row = self.b.binary(BinaryOp::Mul, row, extent);
                            self.b.binary(BinaryOp::Add, row, digit)
                        }
                    });
                }
                let zero = self.b.constant(Scalar::from_i64(dtype, 0));
                Some(at.unwrap_or(zero))
            }
        }
    }

    /// The copy of a scalar argument.
    fn scalar(&self, slot: u16) -> Option<Value> {
        let at = self.kernel.ops().iter().position(|op| *op == Op::Var { slot })?;
        self.map.get(at).copied()
    }

    /// The digits of an index `(i * e1 + j) * e2 + k`, outermost first.
    fn digits(&self, index: Value, extents: &[u16]) -> Option<Vec<Value>> {
        let Some((&last, outer)) = extents.split_last() else {
            // The only element.
            return self.kernel.constant(index).filter(|x| x.to_i64() == 0).map(|_| Vec::new());
        };
        if outer.is_empty() {
            return Some(vec![index]);
        }
        match self.kernel.op(index) {
            Op::Cast { x } if !self.kernel.ty(x).dtype.is_float() => self.digits(x, extents),
            Op::Binary { op: BinaryOp::Add, x, y } => {
                let (row, digit) = match (self.row(x, last), self.row(y, last)) {
                    (Some(row), _) => (row, y),
                    (_, row) => (row?, x),
                };
                let mut digits = self.digits(row, outer)?;
                digits.push(digit);
                Some(digits)
            }
            _ => None,
        }
    }

    /// The other factor of a product with a scalar argument.
    fn row(&self, product: Value, extent: u16) -> Option<Value> {
        let Op::Binary { op: BinaryOp::Mul, x, y } = self.kernel.op(product) else { return None };
        let is_extent = |mut value: Value| {
            while let Op::Cast { x } = self.kernel.op(value) {
                value = x;
            }
            self.kernel.op(value) == Op::Var { slot: extent }
        };
        [(x, y), (y, x)].into_iter().find(|pair| is_extent(pair.1)).map(|pair| pair.0)
    }
}
