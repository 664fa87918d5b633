//! Strategies: the ways to compute a nest, one row each.
//!
//! The partition says what is computed together ([`Nest`]). The first row of [`STRATEGIES`] that
//! applies makes schedule items of it, unless they are predicted to take more than [`FAR`] times
//! what moving their buffers takes: then the others that apply are compared by prediction. How the loops
//! of a generated kernel are spread over threads and lanes is a matter of `zyx_ir::tune`, which has
//! such a table of its own.

pub(crate) mod block_radix_sort;
pub(crate) mod fourier;
mod histogram;
mod kernel;
mod library;
mod loops;
mod radix_scatter;
pub(super) mod scatter;
pub(crate) mod shared_scatter;
pub(super) mod single_pass_scan;

use super::flash::{dot_product, scalar, warps};
use super::floor;
use super::item::ScheduleItem;
use super::partition::{Group, Partition};
use crate::graph::Graph;
use crate::hal::{Call, Caps};

/// Times the least time of a nest from which on other strategies are compared.
const FAR: f64 = 3.0;
/// Part of the predicted time of the first that another strategy may take at most.
const FASTER: f64 = 0.25;

/// What is computed together: a group of the partition.
pub(super) struct Nest<'a> {
    pub(super) graph: &'a Graph,
    pub(super) partition: &'a mut Partition,
    /// Which group.
    pub(super) number: usize,
    pub(super) group: Group,
    pub(super) caps: &'a Caps,
    /// Whether the device's library has a call.
    pub(super) offers: &'a dyn Fn(&Call) -> bool,
}

/// A way to compute a nest.
pub(super) struct Strategy {
    /// For people.
    pub(super) name: &'static str,
    /// The items, in the order in which they run; `None` if the strategy does not apply.
    pub(super) lower: fn(&mut Nest<'_>) -> Option<Vec<ScheduleItem>>,
}

/// All strategies, the best first where several apply.
pub(super) static STRATEGIES: [Strategy; 16] = [
    Strategy { name: "kernel", lower: kernel::lower },
    Strategy { name: "library contraction", lower: library::contraction },
    Strategy { name: "attention of a library", lower: dot_product::lower },
    Strategy { name: "flash attention by warps", lower: warps::lower },
    Strategy { name: "library attention", lower: library::attention },
    Strategy { name: "flash attention by threads", lower: scalar::lower },
    Strategy { name: "single-pass scan", lower: single_pass_scan::lower },
    Strategy { name: "rows sorted in shared memory", lower: radix_scatter::rows },
    Strategy { name: "block radix sort", lower: radix_scatter::by_blocks },
    Strategy { name: "radix scatter", lower: radix_scatter::in_order },
    Strategy { name: "segmented reduction", lower: scatter::by_ends },
    Strategy { name: "Fourier transform", lower: fourier::lower },
    Strategy { name: "histogram", lower: histogram::lower },
    Strategy { name: "scatter in shared memory", lower: shared_scatter::lower },
    Strategy { name: "scatter", lower: scatter::lower },
    Strategy { name: "loops", lower: loops::lower },
];

/// The items of a nest and the name of the strategy that made them.
pub(super) fn lower(nest: &mut Nest<'_>) -> (&'static str, Vec<ScheduleItem>) {
    let mut candidates = STRATEGIES.iter();
    let mut next = |nest: &mut Nest<'_>| {
        candidates.find_map(|row| (row.lower)(nest).map(|items| (row.name, items)))
    };
    let mut best = next(nest).expect("invariant: every kind of nest has a strategy");
    let mut time = None;
    while let Some(other) = next(nest) {
        let predict = |items: &[ScheduleItem]| floor::predict_items(nest.graph, items, nest.caps);
        let before = *time.get_or_insert_with(|| predict(&best.1));
        if before <= FAR * floor::least_of_items(nest.graph, &best.1, nest.caps) {
            break;
        }
        let predicted = predict(&other.1);
        if predicted < FASTER * before {
            (best, time) = (other, Some(predicted));
        }
    }
    best
}
