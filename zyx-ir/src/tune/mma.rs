//! Contractions of halves by matrix instructions: when, and in which blocks.
//!
//! The same model as in `block.rs`: of a few blocks the one that takes the least time, by how many
//! each multiprocessor gets and how fast it is with as many as it holds. Large tiles to a warp need
//! the fewest loads from shared storage, large blocks the fewest from memory.

use super::Draft;
use super::simt::roots;
use crate::caps::Caps;
use crate::passes::Site;
use crate::passes::mma::{self, Halves, Tile};

/// Fewest rows, columns and steps worth it.
const MIN_SIDE: i64 = 16;
const MIN_STEPS: i64 = 16;

/// Rows, columns and depth of a block, rows and columns of a warp, and the part of the best speed
/// that such blocks reach in a product of `bf16` matrices of 4096 by 4096 on an H200.
const BLOCKS: [([i64; 5], f64); 6] = [
    ([128, 128, 32, 64, 64], 1.0),
    ([128, 64, 64, 64, 32], 0.8),
    ([64, 128, 32, 32, 64], 0.75),
    ([64, 64, 64, 32, 32], 0.62),
    ([64, 64, 32, 32, 32], 0.46),
    ([32, 32, 32, 16, 16], 0.28),
];

/// Computes the nest with this number by matrix instructions, if it is a contraction of halves
/// large enough.
pub(super) fn mma(draft: &mut Draft, caps: &Caps, number: usize) -> bool {
    let root = roots(&draft.kernel)[number];
    if !caps.simt {
        return false;
    }
    let Some(halves) = Halves::of(&draft.kernel, Some(root)) else { return false };
    let [rows, columns, _, steps] = halves.sizes();
    if rows < MIN_SIDE || columns < MIN_SIDE || steps < MIN_STEPS {
        return false;
    }
    let Some(tile) = choose(draft.knobs.tile, &halves, caps) else { return false };
    draft.step(&mma::PASS, Site { value: Some(root), params: tile.params()[..].into() });
    true
}

/// The block that takes the least time; `wanted` is its number from 1, or 0.
fn choose(wanted: i64, halves: &Halves, caps: &Caps) -> Option<Tile> {
    let units = caps.multiprocessors().max(1) as i64;
    let time = |tile: &Tile, peak: f64| {
        let groups: i64 = halves.groups(*tile).iter().product();
        let each = (groups + units - 1) / units;
        // A multiprocessor needs eight warps or so to keep its matrix units busy.
        let resident = (each * tile.threads()).min(256) as f64;
        let work = (each * tile.rows * tile.columns) as f64;
        work / peak / (resident / 256.0).powf(0.8)
    };
    let numbered = BLOCKS.iter().zip(1..).filter(|&(_, i)| wanted == 0 || wanted == i);
    let fitting = numbered.filter_map(|(&([rows, columns, depth, row, column], peak), _)| {
        let tile = Tile { rows, columns, depth, row, column };
        halves.fits(tile, caps).then(|| (tile, time(&tile, peak)))
    });
    fitting.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(tile, _)| tile)
}

#[cfg(test)]
mod tests {
    use crate::caps::Caps;
    use crate::dtype::{DType, DTypeSet};
    use crate::ir::{Kernel, Op};
    use crate::passes::samples;

    #[test]
    fn only_devices_with_the_instruction_use_it_and_only_for_halves() {
        let gpu = Caps {
            simt: true,
            max_local: 1024,
            shared_bytes: 48 << 10,
            vector_bytes: 16,
            masked: true,
            threads: 1 << 15,
            mma: DTypeSet::of(&[DType::BF16]),
            ..Caps::default()
        };
        let uses = |kernel: &Kernel, caps: &Caps| {
            let tuned = crate::tune::optimize(kernel, caps);
            crate::ir::verify_for(&tuned, caps).unwrap();
            tuned.ops().iter().any(|op| matches!(op, Op::Mma { .. }))
        };
        let sizes = [64, 64, 64];
        assert!(uses(&samples::halves(DType::BF16, sizes), &gpu));
        assert!(!uses(&samples::halves(DType::F16, sizes), &gpu));
        assert!(!uses(&samples::matmul(64, 64, 64), &gpu));
        let without = Caps { mma: DTypeSet::NONE, ..gpu };
        assert!(!uses(&samples::halves(DType::BF16, sizes), &without));
    }
}
