//! Transpositions on GPUs: through shared storage, or a square of elements to each thread.
//!
//! With enough shared storage what lies across is loaded in rows and exchanged (`transpose_shared`). Else:
//! where a result is written along one axis and read along the other, threads in a row make one of
//! the two touch a line of memory for each element. With four by four elements to a thread, four
//! elements beside one another are stored at once, and the four loads of each column fall in the
//! same part of a line, which the first of them brings into the cache. A group covers a tile whose
//! rows and columns are whole lines, so nothing is fetched twice.

use super::Draft;
use super::simt::roots;
use crate::caps::Caps;
use crate::ir::{Kernel, Op, Value};
use crate::passes::loops::{LoopInfo, loops};
use crate::passes::variance::{Form, Variance};
use crate::passes::{Site, bind, nest, split, transpose_shared, unroll, vectorize};

/// Side of a thread's square.
const SIDE: i64 = 4;
/// Threads of a group along what is read, and along what is written.
const READ: i64 = 32;
const WRITTEN: i64 = 8;

/// Side of a group's square in shared storage, and its threads; the smaller one for bodies of more
/// than so many ops, which each thread repeats for its elements.
const SQUARE: [i64; 2] = [64, 256];
const SMALL_SQUARE: [i64; 2] = [32, 256];
const MAX_OPS: usize = 48;
/// Fewest threads of a device that gains from shared storage.
const MIN_THREADS: usize = 1 << 12;

/// Sends what lies across through shared storage. `false` if that is not worth it.
pub(super) fn exchange(draft: &mut Draft, caps: &Caps, nest: usize) -> bool {
    let root = roots(&draft.kernel)[nest];
    let Some(found) = transpose_shared::Found::of(&draft.kernel, Some(root)) else { return false };
    let [along, across] = found.sides();
    let square = if found.ops() > MAX_OPS { SMALL_SQUARE } else { SQUARE };
    let [side, _] = square;
    let worth = along.min(across) >= side / 2 && along.saturating_mul(across) >= side * side;
    if caps.threads < MIN_THREADS || !worth || !found.fits(&draft.kernel, square, caps) {
        return false;
    }
    draft.step(&transpose_shared::PASS, Site::new(root, &square));
    true
}

/// Tiles a nest that transposes. `false` if it is none, or not of whole tiles.
pub(super) fn tile(draft: &mut Draft, caps: &Caps, nest: usize) -> bool {
    let [outer, inner] = chain(&draft.kernel, nest)[..] else { return false };
    let (Some(rows), Some(columns)) = (outer.len, inner.len) else { return false };
    let whole = rows % (SIDE * READ) == 0 && columns % (SIDE * WRITTEN) == 0;
    let vectors = caps.masked && caps.vector_bytes >= 4 * SIDE as usize;
    let room = caps.max_local as i64 >= READ * WRITTEN;
    if !whole || !vectors || !room || !is_transposed(&draft.kernel, &outer, &inner) {
        return false;
    }
    let groups = [rows / (SIDE * READ), columns / (SIDE * WRITTEN)];
    if groups[0] > caps.max_groups[1] as i64 || groups[1] > caps.max_groups[0] as i64 {
        return false;
    }
    let mut tiled = draft.fork();
    let step = |tiled: &mut Draft, pass, depth: usize, params: &[i64]| {
        if let Some(l) = chain(&tiled.kernel, nest).get(depth) {
            tiled.step(pass, Site::new(l.open, params));
        }
    };
    // Rows: group, thread, own; columns likewise; then groups and threads outside.
    step(&mut tiled, &split::PASS, 0, &[SIDE]);
    step(&mut tiled, &split::PASS, 0, &[READ]);
    step(&mut tiled, &split::PASS, 3, &[SIDE]);
    step(&mut tiled, &split::PASS, 3, &[WRITTEN]);
    for depth in [2, 1, 3] {
        step(&mut tiled, &nest::INTERCHANGE, depth, &[]);
    }
    let lengths: Vec<_> = chain(&tiled.kernel, nest).iter().map(|l| l.len).collect();
    let wanted = [groups[0], groups[1], READ, WRITTEN, SIDE, SIDE].map(Some);
    if lengths != wanted {
        return false;
    }
    step(&mut tiled, &vectorize::PASS, 5, &[SIDE, 0]);
    step(&mut tiled, &unroll::PASS, 4, &[0]);
    // Bound loops are no longer parallel; their places in the list of all loops stay.
    let root = roots(&tiled.kernel)[nest];
    let Some(first) = loops(&tiled.kernel).iter().position(|l| l.open == root) else {
        return false;
    };
    for (depth, place) in [[0, 1], [0, 0], [1, 1], [1, 0]].into_iter().enumerate() {
        let l = loops(&tiled.kernel)[first + depth];
        tiled.step(&bind::PASS, Site::new(l.open, &place));
    }
    if roots(&tiled.kernel).len() == roots(&draft.kernel).len() {
        return false;
    }
    *draft = tiled;
    true
}

/// The loops of a nest from the outermost on, while each holds just one.
fn chain(kernel: &Kernel, nest: usize) -> Vec<LoopInfo> {
    let list = loops(kernel);
    let Some(&root) = roots(kernel).get(nest) else { return Vec::new() };
    let mut chain: Vec<LoopInfo> = list.iter().filter(|l| l.open == root).copied().collect();
    while let Some(last) = chain.last().copied() {
        let inside = |l: &&LoopInfo| l.parent.is_some_and(|p| list[p].open == last.open);
        let mut children = list.iter().filter(inside);
        let (Some(child), None) = (children.next(), children.next()) else { return chain };
        if !child.is_parallel() {
            return chain;
        }
        chain.push(*child);
    }
    chain
}

/// Whether all that is stored is stored along the inner loop, and something is read along the
/// outer one.
fn is_transposed(kernel: &Kernel, outer: &LoopInfo, inner: &LoopInfo) -> bool {
    let variances = (Variance::of(kernel, outer), Variance::of(kernel, inner));
    let (Some(rows), Some(columns)) = variances else { return false };
    let mut across = false;
    for i in inner.body() {
        match kernel.op(Value(i as u32)) {
            Op::Loop { .. } | Op::If { .. } => return false,
            Op::Store { buf, index, .. }
                if matches!(kernel.op(buf), Op::Param { .. })
                    && columns.form(index) != Form::Linear(1) =>
            {
                return false;
            }
            Op::Load { buf, index, .. } if matches!(kernel.op(buf), Op::Param { .. }) => {
                let strided = matches!(columns.form(index), Form::Linear(s) if s.abs() > 1);
                across |= strided && matches!(rows.form(index), Form::Linear(1 | -1));
            }
            _ => {}
        }
    }
    across
}

#[cfg(test)]
mod tests {
    use crate::caps::Caps;
    use crate::ir::{LoopKind, Op, Space};
    use crate::passes::samples;

    #[test]
    fn large_ones_go_through_shared_storage() {
        let shared = |shared_bytes| {
            let caps = Caps {
                simt: true,
                max_local: 256,
                shared_bytes,
                threads: 1 << 16,
                ..Caps::default()
            };
            let tuned = crate::tune::optimize(&samples::transpose(256, 100), &caps);
            let is_shared = |op: &&Op| matches!(op, Op::Alloc { space: Space::Shared, .. });
            tuned.ops().iter().filter(is_shared).count()
        };
        assert_eq!((shared(48 << 10), shared(0)), (1, 0));
    }

    #[test]
    fn whole_tiles_are_stored_in_vectors() {
        let caps = Caps {
            simt: true,
            max_local: 256,
            vector_bytes: 16,
            masked: true,
            threads: 1 << 16,
            ..Caps::default()
        };
        let tiled = crate::tune::optimize(&samples::transpose(256, 128), &caps);
        let locals = tiled.ops().iter();
        let locals = locals.filter(|op| matches!(op, Op::Loop { kind: LoopKind::Local, .. }));
        assert_eq!(locals.count(), 2, "{tiled}");
        let stores: Vec<u8> = tiled
            .iter()
            .filter_map(|(_, op, _)| match op {
                Op::Store { buf, value, .. } => Some((buf, value)),
                _ => None,
            })
            .filter(|s| !matches!(tiled.op(s.0), Op::Alloc { space: Space::Register, .. }))
            .map(|s| tiled.ty(s.1).lanes)
            .collect();
        assert_eq!(stores, [4; 4], "{tiled}");
    }
}
