//! Rows that are read several times are fetched one iteration ahead.
//!
//! A softmax walks along each row twice: once for its maximum, again for its exponentials. The first
//! walk waits for memory, which has nothing to do during the second. So the second asks for the
//! next row, the same places one iteration of the outermost loop further on. That is a hint: a place
//! behind the last row costs time, never a fault.

use super::address::{Affine, Counter, Root};
use super::{Inst, Lower};
use zyx_core::ir::{Access, Kernel, Op, Type, Value};

/// Walks with fewer iterations are the rest of another.
const SHORTEST: i64 = 4;

/// For each op whether it is a load that walks along what one loop before, beside its own, read.
pub(super) fn revisits(kernel: &Kernel) -> Vec<bool> {
    let mut revisits = vec![false; kernel.ops().len()];
    let mut open: Vec<Value> = Vec::new();
    // Who walked along which buffer, in which region.
    let mut walks: Vec<(Value, Option<Value>, Value)> = Vec::new();
    for (v, op, ty) in kernel.iter() {
        match op {
            Op::End { .. } => {
                open.pop();
            }
            Op::Load { buf, .. } if ty.is_vector() => {
                let Some((&walk, outside)) = open.split_last() else { continue };
                let Op::Loop { len, .. } = kernel.op(walk) else { continue };
                let is_read = matches!(kernel.op(buf), Op::Param { access: Access::Read, .. });
                if !is_read || kernel.constant(len).is_some_and(|n| n.to_i64() < SHORTEST) {
                    continue;
                }
                let region = outside.last().copied();
                let beside = |w: &&(Value, Option<Value>, Value)| w.0 == buf && w.1 == region;
                let mut before = walks.iter().filter(beside).map(|w| w.2).filter(|&w| w != walk);
                let first = before.next();
                revisits[v.idx()] = first.is_some() && before.all(|w| Some(w) == first);
                walks.push((buf, region, walk));
            }
            _ => {}
        }
        if op.opens_region() {
            open.push(v);
        }
    }
    revisits
}

impl Lower<'_> {
    /// Asks for what a load at `index` will read in the next iteration of the outermost
    /// loop, if it is a second walk.
    pub(super) fn fetch_ahead(&mut self, load: Value, root: Root, index: &Affine, ty: Type) {
        if !self.facts.revisits[load.idx()] {
            return;
        }
        let outermost = index.terms.iter().filter_map(|&(atom, factor)| {
            let atom = &self.atoms[atom as usize];
            matches!(atom.counter, Counter::Loop(_)).then_some((atom.depth, factor))
        });
        let Some((_, row)) = outermost.min_by_key(|term| term.0) else { return };
        let next = index.plus(&Affine::constant(row));
        let addr = self.address(root, &next, ty.dtype.size());
        self.push(Inst::Prefetch { addr });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_of_two_walks_along_a_row_fetches_the_next_row() {
        let kernel: Kernel = "kernel rows
             buffer 0 : f32[4096] read
             %p   param 0 read : f32
             %n   const 64 : i64
             %w   const 4 : i64
             %x   const 16 : i64
             %g   loop group %n
               %r   loop serial.1 %w
               %i   mul %r, %x : i64
               %a   load %p[%i] : f32x16
               %e1  end %r
               %s   loop serial.1 %w
               %j   mul %s, %x : i64
               %b   load %p[%j] : f32x16
               %e2  end %s
               %t   loop serial.1 %w
               %k   mul %t, %x : i64
               %c   load %p[%k] : f32x16
               %e3  end %t
             %z   end %g"
            .parse()
            .unwrap();
        let found = revisits(&kernel);
        let loads = kernel.iter().filter(|(_, op, _)| matches!(op, Op::Load { .. }));
        let found: Vec<bool> = loads.map(|(v, ..)| found[v.idx()]).collect();
        assert_eq!(found, [false, true, false], "once is enough");
    }
}
