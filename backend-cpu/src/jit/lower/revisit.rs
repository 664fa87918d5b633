//! Rows that are read several times are fetched one iteration ahead.
//!
//! A softmax walks along each row twice: once for its maximum, again for its exponentials. The first
//! walk waits for memory, which has nothing to do during the second. So the second asks for the
//! next row, the same places one iteration of the outermost loop further on. That is a hint: a place
//! behind the last row costs time, never a fault.

use super::address::{Affine, Counter, Root};
use super::{Inst, Lower};
use zyx_core::ir::{Access, Kernel, LoopKind, Op, Type, Value};

/// Walks with fewer iterations are the rest of another.
const SHORTEST: i64 = 4;

/// A walk along a buffer: serial loops around one another, the outermost of which names it.
struct Walk {
    buf: Value,
    open: Value,
    /// What it stands in.
    region: Option<Value>,
    /// Iterations of all its loops.
    trips: i64,
}

/// The walk of a load of `buf` in these open regions.
fn walk(kernel: &Kernel, buf: Value, open: &[Value]) -> Option<Walk> {
    let serial = |&&v: &&Value| matches!(kernel.op(v), Op::Loop { kind: LoopKind::Serial, .. });
    let depth = match open.iter().rev().take_while(serial).count() {
        0 => 1,
        depth => depth,
    };
    let (outside, loops) = open.split_at_checked(open.len().checked_sub(depth)?)?;
    let mut trips = 1i64;
    for &v in loops {
        let Op::Loop { len, .. } = kernel.op(v) else { return None };
        trips = trips.saturating_mul(kernel.constant(len).map_or(i64::MAX, |n| n.to_i64()));
    }
    Some(Walk { buf, open: loops[0], region: outside.last().copied(), trips })
}

/// For each op whether it is a load that walks along what one loop before, beside its own, read. The
/// few iterations that a loop cut into blocks leaves over are no walk of their own.
pub(super) fn revisits(kernel: &Kernel) -> Vec<bool> {
    let mut revisits = vec![false; kernel.ops().len()];
    let mut open: Vec<Value> = Vec::new();
    let mut walks: Vec<Walk> = Vec::new();
    for (v, op, ty) in kernel.iter() {
        match op {
            Op::End { .. } => {
                open.pop();
            }
            Op::Load { buf, .. } if ty.is_vector() => {
                let is_read = matches!(kernel.op(buf), Op::Param { access: Access::Read, .. });
                let walk = walk(kernel, buf, &open);
                let Some(walk) = walk.filter(|w| is_read && w.trips >= SHORTEST) else { continue };
                let beside = |w: &&Walk| {
                    let is_rest = w.trips < walk.trips / 2;
                    w.buf == buf && w.region == walk.region && w.open != walk.open && !is_rest
                };
                let mut before = walks.iter().filter(beside).map(|w| w.open);
                let first = before.next();
                revisits[v.idx()] = first.is_some() && before.all(|w| Some(w) == first);
                walks.push(walk);
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
        if !self.revisits[load.idx()] {
            return;
        }
        let outermost = index.terms.iter().filter_map(|&(atom, factor)| {
            let atom = &self.atoms[atom as usize];
            matches!(atom.counter, Counter::Loop(_)).then_some((atom.depth, factor))
        });
        let Some((_, row)) = outermost.min_by_key(|term| term.0) else { return };
        let next = index.wrapping_plus(&Affine::constant(row));
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

    #[test]
    fn walks_in_blocks_fetch_the_next_row_too() {
        use zyx_core::passes::{compensate, samples};
        let mut caps = zyx_core::hal::Caps::default();
        (caps.vector_bytes, caps.masked) = (64, true);
        // Its blocks leave iterations over.
        let tuned = zyx_core::tune::optimize(&samples::softmax(64, 16 * 4 * 67 + 1), &caps);
        let cut = compensate::compensate(&tuned).expect("it sums long rows");
        let count = |k: &Kernel| revisits(k).iter().filter(|&&r| r).count();
        assert!(count(&tuned) > 0 && count(&cut) == count(&tuned), "{cut}");
    }
}
