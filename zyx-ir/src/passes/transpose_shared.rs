//! `transpose_shared`: reads a transposed operand in rows, through shared storage.
//!
//! Two parallel loops, of which the inner one runs along what is stored: a load that runs along the
//! outer one touches another line of memory in every iteration. The threads of a group take a
//! square of iterations. First they load it with neighbours along the outer loop and leave it in
//! shared storage, then each takes what it needs from there and stores with neighbours along the
//! inner loop, so both sides of memory see whole lines. Lines of the square are one element longer,
//! which spreads its columns over all banks.
//!
//! Parameters: side of the square and threads of a group, powers of two.

use super::elements::Elements;
use super::loops::LoopInfo;
use super::nest;
use super::variance::{Form, Variance};
use super::{Pass, Site};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Access, BarrierScope, Kernel, LoopKind, Op, Order, Space, Type, Value};
use crate::ops::BinaryOp;

use BinaryOp::Add;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "transpose_shared",
    doc: "read what lies across in rows, through shared squares of a side (1), by (2) threads",
    reassociates: false,
    sites,
    apply,
};

/// Squares offered.
const CHOICES: [[i64; 2]; 2] = [[4, 8], [8, 16]];

fn sites(kernel: &Kernel, caps: &Caps) -> Vec<Site> {
    nest::grouped(kernel, caps, &CHOICES, Found::of, |found, choice| {
        found.fits(kernel, choice, caps)
    })
}

/// A nest with transposed loads.
#[derive(Debug)]
pub struct Found {
    /// Loops around, the one along which is loaded, and the one along which is stored.
    around: Vec<LoopInfo>,
    across: LoopInfo,
    along: LoopInfo,
    /// The transposed loads.
    loads: Vec<Value>,
}

impl Found {
    /// The nest of a parallel loop at the top, if it has transposed loads.
    pub fn of(kernel: &Kernel, root: Option<Value>) -> Option<Found> {
        let mut chain = nest::chain(kernel, root)?;
        let along = chain.pop()?;
        let plain = |i: usize| match kernel.op(Value(i as u32)) {
            Op::Load { buf, order, .. } => {
                let constant = matches!(kernel.op(buf), Op::Param { access: Access::Read, .. });
                order == Order::Plain && constant
            }
            Op::Store { buf, .. } => matches!(kernel.op(buf), Op::Param { .. }),
            op => op.is_pure(),
        };
        if !along.innermost || !along.body().all(plain) {
            return None;
        }
        let columns = Variance::of(kernel, &along)?;
        let is_along = |i: usize| match kernel.op(Value(i as u32)) {
            Op::Store { index, .. } => {
                matches!(columns.form(kernel.unguarded(index).0), Form::Linear(1))
            }
            _ => true,
        };
        if !along.body().all(is_along) {
            return None;
        }
        // The loop along which most transposed loads run.
        let transposed = |l: &LoopInfo| -> Vec<Value> {
            let Some(rows) = Variance::of(kernel, l) else { return Vec::new() };
            let is_transposed = |v: &Value| match kernel.op(*v) {
                Op::Load { index, .. } => {
                    let index = kernel.unguarded(index).0;
                    let strided = matches!(columns.form(index), Form::Linear(s) if s.abs() > 1);
                    strided && matches!(rows.form(index), Form::Linear(1 | -1))
                }
                _ => false,
            };
            along.body().map(|i| Value(i as u32)).filter(is_transposed).collect()
        };
        let all = chain.iter().map(|l| (*l, transposed(l)));
        let (across, loads) = all.max_by_key(|(_, loads)| loads.len())?;
        chain.retain(|l| l.open != across.open);
        (!loads.is_empty()).then_some(Found { around: chain, across, along, loads })
    }

    fn lengths(&self) -> Option<[i64; 3]> {
        let around = self.around.iter().map(|l| l.len).product::<Option<i64>>()?;
        Some([self.along.len?, self.across.len?, around])
    }

    /// Lengths of the loops along which is stored and along which is loaded.
    pub fn sides(&self) -> [i64; 2] {
        [self.along, self.across].map(|l| l.len.unwrap_or(0))
    }

    /// Ops of an element.
    pub fn ops(&self) -> usize {
        self.along.body().len()
    }

    fn groups(&self, side: i64) -> Option<[i64; 3]> {
        let [along, across, around] = self.lengths()?;
        Some([(along + side - 1) / side, (across + side - 1) / side, around])
    }

    /// Whether a device has room for such squares.
    pub fn fits(&self, kernel: &Kernel, [side, threads]: [i64; 2], caps: &Caps) -> bool {
        let powers = [side, threads].iter().all(|&x| (2..=1024).contains(&x) && x & (x - 1) == 0);
        let sizes = self.loads.iter().map(|&v| kernel.ty(v).dtype.size());
        let bytes = sizes.sum::<usize>() * (side * (side + 1)) as usize;
        let small = self.lengths().is_some_and(|all| all.iter().all(|n| (1..1 << 30).contains(n)));
        let room =
            |groups: [i64; 3]| (0..3).all(|axis| groups[axis] as u64 <= caps.max_groups[axis]);
        powers
            && small
            && threads <= caps.max_local as i64
            && threads <= side * side
            && bytes <= caps.shared_bytes
            && self.groups(side).is_some_and(room)
    }
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(found), &[side, threads]) = (Found::of(kernel, site.value), &site.params[..]) else {
        return kernel.clone();
    };
    let any = Caps { max_local: 1024, shared_bytes: 48 << 10, ..Caps::default() };
    match found.groups(side.max(1)) {
        Some(groups) if found.fits(kernel, [side, threads], &any) => {
            emit(kernel, &found, [side, threads], groups)
        }
        _ => kernel.clone(),
    }
}

fn emit(kernel: &Kernel, found: &Found, [side, threads]: [i64; 2], groups: [i64; 3]) -> Kernel {
    let root = found
        .around
        .first()
        .map_or(found.across, |l| if l.open < found.across.open { *l } else { found.across });
    let mut at = Elements::new(kernel, root.open);
    let groups = groups.map(|n| at.r.out.index(n));
    let locals = at.r.out.index(threads);
    let [around, across, along] = [2, 1, 0].map(|axis: usize| {
        let group = at.r.out.open_loop(LoopKind::Group, axis as u8, groups[axis]);
        at.r.out.cast(DType::I32, group)
    });
    let squares: Vec<Value> = found
        .loads
        .iter()
        .map(|&v| {
            let ty = Type::scalar(kernel.ty(v).dtype);
            at.r.out.alloc(Space::Shared, ty, (side * (side + 1)) as u32)
        })
        .collect();
    let thread = at.r.out.open_loop(LoopKind::Local, 0, locals);
    let thread = at.r.out.cast(DType::I32, thread);
    let first = [at.times(across, side), at.times(along, side)];
    let square = Square { found, side, threads, thread, around, first };
    square.each(&mut at, true, |at, place| {
        for (&load, &storage) in found.loads.iter().zip(&squares) {
            let x = at.eval(load);
            at.r.out.store(storage, place, x);
        }
    });
    at.r.out.barrier(BarrierScope::Shared);
    square.each(&mut at, false, |at, place| {
        for (&load, &storage) in found.loads.iter().zip(&squares) {
            let x = at.r.out.load(storage, place);
            at.set(load, x);
        }
        let stores = found.along.body().map(|i| Value(i as u32));
        let stores = stores.filter(|&v| matches!(at.r.src.op(v), Op::Store { .. }));
        stores.collect::<Vec<_>>().into_iter().for_each(|v| {
            at.eval(v);
        });
    });
    (0..4).for_each(|_| at.r.out.close());
    at.r.finish_from(root.end + 1)
}

/// The square of a group.
struct Square<'f> {
    found: &'f Found,
    side: i64,
    threads: i64,
    thread: Value,
    around: Value,
    /// Where it begins across and along.
    first: [Value; 2],
}

impl Square<'_> {
    /// Runs `f` for each of a thread's elements, its counters set, with its place in the square.
    /// Neighbouring threads are neighbours across, or along.
    fn each(
        &self,
        at: &mut Elements<'_>,
        in_rows: bool,
        mut f: impl FnMut(&mut Elements<'_>, Value),
    ) {
        for turn in 0..self.side * self.side / self.threads {
            let id = at.plus(self.thread, turn * self.threads);
            let (fast, slow) = (at.masked(id, self.side), at.shifted(id, self.side));
            let (across, along) = if in_rows { (fast, slow) } else { (slow, fast) };
            let line = at.times(across, self.side + 1);
            let place = at.r.out.binary(Add, line, along);
            let across = at.r.out.binary(Add, self.first[0], across);
            let along = at.r.out.binary(Add, self.first[1], along);
            let edges = [(&self.found.across, across), (&self.found.along, along)];
            let edges = edges.map(|(l, counter)| (counter, l.len.unwrap_or(0), self.side));
            let open = at.open_below(edges);
            at.clear();
            at.place(&self.found.around, self.around);
            at.place(&[self.found.across], across);
            at.place(&[self.found.along], along);
            f(at, place);
            if open {
                at.r.out.close();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::loops::loops;
    use crate::passes::samples;

    #[test]
    fn only_transposed_loads_are_exchanged() {
        let kernel = samples::transpose(9, 20);
        let found = Found::of(&kernel, Some(loops(&kernel)[0].open)).unwrap();
        assert_eq!(found.loads.len(), 1);
        assert_eq!(found.lengths(), Some([9, 20, 1]));
        for kernel in [samples::chain(64), samples::pad(4, 17, 2, 3)] {
            assert!(Found::of(&kernel, Some(loops(&kernel)[0].open)).is_none());
        }
    }
}
