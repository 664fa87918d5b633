//! The default heuristic for devices of many threads (GPUs): one element per thread.
//!
//! The parallel loops at the top of each nest are merged to one, cut into groups of local
//! threads; what is inside stays serial.

use super::Draft;
use crate::hal::Caps;
use crate::ir::Value;
use crate::passes::loops::loops;
use crate::passes::{Site, bind, cse, dce, hoist, muladd, nest, simplify, split};

/// Threads of a group.
const LOCAL: i64 = 128;

pub(super) fn tune(mut draft: Draft, caps: &Caps) -> Draft {
    draft.whole(&simplify::PASS);
    draft.whole(&cse::PASS);
    let tops: Vec<Value> = roots(&draft);
    for root in tops.into_iter().rev() {
        merge_all(&mut draft, root);
        spread(&mut draft, caps, root);
    }
    draft.whole(&simplify::PASS);
    draft.whole(&hoist::PASS);
    if caps.fast_fma {
        draft.whole(&muladd::PASS);
    }
    draft.whole(&cse::PASS);
    draft.whole(&dce::PASS);
    draft
}

fn roots(draft: &Draft) -> Vec<Value> {
    let list = loops(&draft.kernel);
    list.iter().filter(|l| l.depth == 0 && l.is_parallel()).map(|l| l.open).collect()
}

/// Merges the loop with all that are perfectly nested in it.
fn merge_all(draft: &mut Draft, root: Value) {
    loop {
        let list = loops(&draft.kernel);
        let Some(l) = list.iter().find(|l| l.open == root) else { return };
        if nest::inner_of(&draft.kernel, l, &list).is_none() {
            return;
        }
        draft.step(&nest::MERGE, Site::new(root, &[]));
    }
}

/// Cuts the loop into groups of local threads.
fn spread(draft: &mut Draft, caps: &Caps, root: Value) {
    let local = LOCAL.min(caps.max_local as i64);
    let Some(l) = loops(&draft.kernel).into_iter().find(|l| l.open == root) else { return };
    let Some(n) = l.len else { return };
    if n <= local {
        draft.step(&bind::PASS, Site::new(root, &[1, 0]));
        return;
    }
    draft.step(&split::PASS, Site::new(root, &[local]));
    let list = loops(&draft.kernel);
    let Some(outer) = list.iter().find(|l| l.open >= root) else { return };
    let outer = outer.open;
    draft.step(&bind::PASS, Site::new(outer, &[0, 0]));
    let inner = loops(&draft.kernel).into_iter().find(|l| l.open > outer);
    if let Some(inner) = inner {
        draft.step(&bind::PASS, Site::new(inner.open, &[1, 0]));
    }
}
