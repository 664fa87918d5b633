//! The parameters of the heuristics: each setting is one point of the space the tuner searches.
//!
//! [`Knobs::default`] is what `cpu.rs` and `simt.rs` choose without a search. A setting never
//! decides whether a kernel is right, only how fast it is: passes keep the meaning at any site.
//! [`Knobs::changes`] lists the settings that differ from one in a single parameter.

use super::{cpu, simt};
use crate::caps::Caps;

/// A choice of parameters for the heuristics. 0 means what the heuristic would choose by itself
/// where a field says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Knobs {
    /// CPU: elements in a block of a flat loop. Default: enough work to hide the loop around, small
    /// enough to spread over threads and stay in the first-level cache.
    pub block: i64,
    /// CPU: groups that a thread gets of a flat loop that is cut into blocks.
    pub spread: i64,
    /// CPU: rows of a scan that are interleaved. Default: as many as an addition takes cycles, and
    /// few enough that rows a power of two apart fit into one set of the first-level cache.
    pub rows: i64,
    /// CPU: rows that are reduced at once.
    pub reduced: i64,
    /// CPU: columns, in vectors, that an outer-vectorised reduction handles at once.
    pub jam: i64,
    /// CPU: accumulators of a reduction; 0: by its work.
    pub accumulators: i64,
    /// CPU: places of memory at once that a reduction reads; 0: by its length.
    pub streams: i64,
    /// CPU: copies of an innermost vector loop's body; 0: by its work.
    pub unroll: i64,
    /// CPU: percent by which the cost of vectors along an outer loop is multiplied when they are
    /// compared with those along inner ones.
    pub outer: i64,
    /// CPU: columns of the strips in which two nested loops are walked; 0: by what rows read.
    pub strip: i64,
    /// CPU: whether what reductions compute is kept for the loops after them.
    pub stage: bool,
    /// GPU: threads of a group.
    pub local: i64,
    /// GPU: elements to a thread where accesses are consecutive; 0: as many as a load brings.
    pub lanes: i64,
    /// GPU: threads of a group that share a reduction along memory; 0: by lengths.
    pub sharing: i64,
    /// GPU: results of a group in a reduction across memory.
    pub columns: i64,
    /// GPU: most turns of a thread over a row that it keeps in registers.
    pub turns: i64,
    /// GPU: which block of a contraction, of the list in `block.rs` or `mma.rs`, counted from 1; 0: by a
    /// model.
    pub tile: i64,
    /// Rows of the table of strategies that are left out, a bit each.
    pub without: i64,
}

impl Default for Knobs {
    fn default() -> Knobs {
        Knobs {
            block: 8192,
            spread: 2,
            rows: 4,
            reduced: 4,
            jam: 8,
            accumulators: 0,
            streams: 0,
            unroll: 0,
            outer: 100,
            strip: 0,
            stage: true,
            local: 128,
            lanes: 0,
            sharing: 0,
            columns: 32,
            turns: 8,
            tile: 0,
            without: 0,
        }
    }
}

impl Knobs {
    /// The parameters as numbers, in the order of the fields.
    fn numbers(&self) -> [i64; 18] {
        let Knobs { block, spread, rows, reduced, jam, accumulators, streams, .. } = *self;
        let Knobs { unroll, outer, strip, .. } = *self;
        let Knobs { stage, local, lanes, sharing, columns, turns, tile, without, .. } = *self;
        let cpu = [block, spread, rows, reduced, jam, accumulators, streams, unroll, outer, strip];
        let gpu = [stage.into(), local, lanes, sharing, columns, turns, tile, without];
        std::array::from_fn(|i| if i < 10 { cpu[i] } else { gpu[i - 10] })
    }

    /// Which parameter is the first that differs.
    pub fn change(&self, from: &Knobs) -> Option<usize> {
        self.numbers().iter().zip(from.numbers()).position(|(&a, b)| a != b)
    }

    /// All settings that differ from this one in a single parameter that the device's heuristic
    /// reads.
    pub fn changes(&self, caps: &Caps) -> Vec<Knobs> {
        let mut all = Vec::new();
        let mut set = |values: &[i64], put: &dyn Fn(&mut Knobs, i64)| {
            for &value in values {
                let mut knobs = *self;
                put(&mut knobs, value);
                if knobs != *self {
                    all.push(knobs);
                }
            }
        };
        if caps.simt {
            let local = caps.max_local as i64;
            let fits: Vec<i64> =
                [8, 16, 32, 64, 128, 256, 512].into_iter().filter(|&n| n <= local).collect();
            set(&fits, &|k, v| k.local = v);
            set(&[0, 1, 2, 4, 8, 16], &|k, v| k.lanes = v);
            set(&[0, 8, 16, 32, 64, 128, 256, 512], &|k, v| k.sharing = v);
            set(&[1, 8, 16, 32, 64], &|k, v| k.columns = v);
            set(&[0, 4, 8, 16], &|k, v| k.turns = v);
            set(&[0, 1, 2, 3, 4, 5, 6, 7, 8], &|k, v| k.tile = v);
        } else {
            set(&[1024, 2048, 4096, 8192, 16384, 32768, 1 << 17], &|k, v| k.block = v);
            set(&[1, 2, 4, 8], &|k, v| k.spread = v);
            set(&[1, 2, 4, 8], &|k, v| k.rows = v);
            set(&[1, 2, 4, 8], &|k, v| k.reduced = v);
            set(&[1, 2, 4, 8, 16], &|k, v| k.jam = v);
            set(&[0, 1, 2, 4, 8], &|k, v| k.accumulators = v);
            set(&[0, 1, 2, 4], &|k, v| k.streams = v);
            set(&[0, 1, 2, 4, 8], &|k, v| k.unroll = v);
            set(&[1, 25, 50, 100, 200, 400, 10_000], &|k, v| k.outer = v);
            set(&[0, 16, 32, 64, 128], &|k, v| k.strip = v);
            set(&[0, 1], &|k, v| k.stage = v != 0);
        }
        let rows = if caps.simt { simt::STRATEGIES.len() } else { cpu::STRATEGIES.len() };
        (0..rows).for_each(|row| set(&[0, 1], &|k, v| k.without ^= v << row));
        all
    }

    /// The settings to try where a kernel is far from its least time: each without one more of the
    /// strategies that were `used`, a bit each, and on CPUs with what reductions compute computed again.
    pub(super) fn others(&self, used: i64, caps: &Caps) -> Vec<Knobs> {
        let used = (0..i64::BITS).map(|row| used & 1 << row).filter(|&bit| bit != 0);
        let mut all: Vec<Knobs> =
            used.map(|bit| Knobs { without: self.without | bit, ..*self }).collect();
        if !caps.simt {
            all.push(Knobs { stage: !self.stage, ..*self });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_parameter_and_never_none() {
        let gpu = Caps { simt: true, max_local: 64, ..Caps::default() };
        for caps in [Caps::default(), gpu] {
            let changes = Knobs::default().changes(&caps);
            let which = |k: &Knobs| k.change(&Knobs::default());
            let parameters: rustc_hash::FxHashSet<_> = changes.iter().map(which).collect();
            assert!(parameters.len() > 6 && !parameters.contains(&None));
            assert!(changes.len() > 20);
            assert!(changes.iter().all(|k| *k != Knobs::default()));
            let distinct: rustc_hash::FxHashSet<Knobs> = changes.iter().copied().collect();
            assert_eq!(distinct.len(), changes.len());
            assert!(changes.iter().all(|k| !caps.simt || k.local == 128 || k.local <= 64));
        }
    }
}
