//! `mma`: a sum of products of halves by matrix instructions.
//!
//! The nest is one that `block` takes (parallel loops around `acc += x * y`, rows that move only
//! `x`, columns that move only `y`), where the sums are `f32` and both factors are the same half,
//! converted. As there, a group computes a block of rows by columns, and walks along the merged
//! reduction in steps of some depth, the factors of the next of which are on their way while one
//! is computed; shared storage is doubled, so a step takes one barrier. Here a *team* of threads
//! has a tile of the block, and a thread what [`mma::place`] says.
//!
//! Shared storage holds what the threads of a team load at once: for each 16 lines (rows or
//! columns) and 16 steps a slot of eight halves to each thread. `side.rs` says who brings what,
//! so that memory is read along its lines and no two threads ask one bank of shared storage.
//!
//! Parameters: rows, columns and depth of a block, rows and columns of a team (powers of two, at
//! least 16). Sums are the same products in another grouping.

mod emit;
mod side;

use super::block::{Found, blocks, count, is_wide, stride_along};
use super::loops::LoopInfo;
use super::nest;
use super::{Pass, Site};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::mma::{self, HELD, SIDE, WARP};
use crate::ir::{Kernel, Op, Type, Value};

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "mma",
    doc: "sum products of halves by matrix instructions in blocks (rows, columns, depth) of tiles (row, column)",
    reassociates: true,
    sites,
    apply,
};

/// The sizes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Rows of a group.
    pub rows: i64,
    /// Columns of a group.
    pub columns: i64,
    /// Steps of the reduction staged at once.
    pub depth: i64,
    /// Rows of a team.
    pub row: i64,
    /// Columns of a team.
    pub column: i64,
}

impl Tile {
    /// Threads of a group.
    pub fn threads(&self) -> i64 {
        (self.rows / self.row) * (self.columns / self.column) * WARP as i64
    }

    /// The parameters of a site.
    pub fn params(&self) -> [i64; 5] {
        [self.rows, self.columns, self.depth, self.row, self.column]
    }

    fn of(params: &[i64]) -> Option<Tile> {
        let &[rows, columns, depth, row, column] = params else { return None };
        let powers = params.iter().all(|&x| (SIDE as i64..=512).contains(&x) && x & (x - 1) == 0);
        let whole = row <= rows && column <= columns;
        (powers && whole).then_some(Tile { rows, columns, depth, row, column })
    }
}

/// A nest that sums products of halves.
#[derive(Clone, Debug)]
pub struct Halves {
    found: Found,
    /// The factors before their conversion.
    factors: [Value; 2],
    half: DType,
}

impl Halves {
    /// The nest of a parallel loop at the top, if it is one.
    pub fn of(kernel: &Kernel, root: Option<Value>) -> Option<Halves> {
        let found = Found::of(kernel, root)?;
        let narrow = |v: Value| match kernel.op(v) {
            Op::Cast { x } => Some(x),
            _ => None,
        };
        let factors = [narrow(found.factors[0])?, narrow(found.factors[1])?];
        let half = kernel.ty(factors[0]).dtype;
        let row = mma::ROWS[usize::from(mma::row(half)?)];
        let sums = Type::scalar(row.sum);
        let fits = kernel.ty(found.acc) == sums
            && found.factors.iter().all(|&v| kernel.ty(v) == sums)
            && factors.iter().all(|&v| kernel.ty(v) == Type::scalar(half));
        fits.then_some(Halves { found, factors, half })
    }

    /// Rows, columns, batch, and the steps of each sum.
    pub fn sizes(&self) -> [i64; 4] {
        self.found.sizes()
    }

    /// The loops of the reduction in the order in which blocks walk along them. Where a block's
    /// steps follow one another in one loop alone, no number has to be divided for each of them;
    /// a loop that allows it comes last if both factors are read along lines of memory then.
    fn steps(&self, kernel: &Kernel, depth: i64) -> Vec<LoopInfo> {
        let found = &self.found;
        let sides = [(self.factors[0], &found.rows), (self.factors[1], &found.columns)];
        let along = |l: &LoopInfo| {
            sides.iter().all(|&(factor, lines)| {
                let last = &lines[lines.len() - 1];
                is_wide(kernel, found, factor, l)
                    || stride_along(kernel, found, factor, last).is_some_and(|n| n.abs() <= NEAR)
            })
        };
        let mut order = found.sums.clone();
        let last = order.len() - 1;
        let best = order.iter().rposition(|l| is_whole(l, depth));
        if let Some(i) = best.filter(|&i| i != last && along(&order[i])) {
            order[i..].rotate_left(1);
        }
        order
    }

    /// How many groups there are along columns, rows and the batch.
    pub fn groups(&self, tile: Tile) -> [i64; 3] {
        let [rows, columns, batch, _] = self.sizes();
        [blocks(columns, tile.columns), blocks(rows, tile.rows), batch]
    }

    /// Whether a device has such instructions and room for such blocks.
    pub fn fits(&self, tile: Tile, caps: &Caps) -> bool {
        let groups = self.groups(tile);
        let shared = 2 * (tile.rows + tile.columns) * tile.depth * self.half.size() as i64;
        caps.mma.contains(self.half)
            && caps.vector_bytes >= HELD * self.half.size()
            && self.is_small()
            && tile.threads() <= caps.max_local as i64
            && shared <= caps.shared_bytes as i64
            && (0..3).all(|axis| groups[axis] as u64 <= caps.max_groups[axis])
    }

    fn is_small(&self) -> bool {
        self.sizes().iter().all(|&n| (1..1 << 30).contains(&n))
    }
}

/// Largest distance between halves that neighbouring threads load, for their loads to share lines
/// of memory.
const NEAR: i64 = 8;

/// Whether blocks of this depth divide a loop.
fn is_whole(l: &LoopInfo, depth: i64) -> bool {
    l.len.is_some_and(|n| n % depth == 0)
}

/// Blocks offered.
const CHOICES: [[i64; 5]; 3] = [[16, 16, 16, 16, 16], [32, 16, 32, 16, 16], [16, 64, 16, 16, 32]];

fn sites(kernel: &Kernel, caps: &Caps) -> Vec<Site> {
    if caps.mma == crate::dtype::DTypeSet::NONE {
        return Vec::new();
    }
    nest::grouped(kernel, caps, &CHOICES, Halves::of, |halves, choice| {
        Tile::of(&choice).is_some_and(|tile| halves.fits(tile, caps))
    })
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(tile), Some(halves)) = (Tile::of(&site.params), Halves::of(kernel, site.value))
    else {
        return kernel.clone();
    };
    if tile.threads() > 1024 || !halves.is_small() {
        return kernel.clone();
    }
    emit::emit(kernel, &halves, tile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{LoopKind, Space};
    use crate::passes::loops::loops;
    use crate::passes::samples;

    fn applied(kernel: &Kernel, params: [i64; 5]) -> Kernel {
        let root = loops(kernel)[0].open;
        apply(kernel, &Site { value: Some(root), params: params[..].into() })
    }

    #[test]
    fn teams_share_what_is_staged_with_one_barrier_a_step() {
        let kernel = applied(&samples::halves(DType::BF16, [32, 64, 32]), [32, 32, 32, 16, 16]);
        let count = |f: &dyn Fn(&Op) -> bool| kernel.ops().iter().filter(|op| f(op)).count();
        assert_eq!(count(&|op| matches!(op, Op::Alloc { space: Space::Shared, .. })), 2);
        // One before all steps, one in each.
        assert_eq!(count(&|op| matches!(op, Op::Barrier { .. })), 2, "{kernel}");
        // In the loop, and once more behind it.
        assert_eq!(count(&|op| matches!(op, Op::Mma { .. })), 2 * 2, "{kernel}");
        let local = kernel.iter().find_map(|(_, op, _)| match op {
            Op::Loop { kind: LoopKind::Local, len, .. } => kernel.constant(len),
            _ => None,
        });
        assert_eq!(local.unwrap().to_i64(), 128);
    }

    #[test]
    fn only_products_of_halves_are_taken() {
        let of = |kernel: &Kernel| Halves::of(kernel, Some(loops(kernel)[0].open)).is_some();
        assert!(of(&samples::halves(DType::F16, [16, 16, 16])));
        assert!(!of(&samples::matmul(16, 16, 16)), "products of f32 stay products of f32");
    }
}
