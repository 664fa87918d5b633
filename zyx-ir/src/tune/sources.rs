//! Loops that read one of several sources, on CPUs: padding, concatenation, rolling.
//!
//! Innermost loops are cut where the source changes, so that each part reads one source along
//! memory. What rows decide is decided once a row.

use super::Draft;
use super::cost::UNKNOWN_TRIPS;
use crate::caps::Caps;
use crate::ir::{Kernel, Op, Value};
use crate::passes::loops::{LoopInfo, find_loop, loops};
use crate::passes::variance::{Form, Variance};
use crate::passes::{Site, cut, dce, redirect, simplify};

/// Most parts of a loop, the iterations that each has on average at least, and most ops in each.
const PARTS: usize = 5;
const LEAST: i64 = 16;
const OPS: usize = 160;

pub(super) fn separate(draft: &mut Draft, caps: &Caps) {
    let mut any = false;
    // Last loops first, so that earlier ones keep their values.
    for l in loops(&draft.kernel).iter().rev().filter(|l| l.innermost && l.is_parallel()) {
        let positions = cut::positions(&draft.kernel, l);
        let long = l.len.is_some_and(|n| n > LEAST * positions.len() as i64);
        let few = (1..PARTS).contains(&positions.len()) && l.end - l.open.idx() <= OPS && long;
        if !few || !is_spread(&draft.kernel, l, caps) || !chooses(&draft.kernel, l) {
            continue;
        }
        for &at in positions.iter().rev() {
            // The first part of the last cut.
            let part = loops(&draft.kernel).into_iter().find(|part| part.open >= l.open);
            if let Some(part) = part {
                draft.step(&cut::PASS, Site::new(part.open, &[at]));
                any = true;
            }
        }
    }
    if any {
        draft.whole(&simplify::PASS);
        draft.whole(&dce::PASS);
    }
    let sites = (redirect::PASS.sites)(&draft.kernel, caps);
    let any = any || !sites.is_empty();
    for site in sites.into_iter().rev() {
        draft.step(&redirect::PASS, site);
    }
    if any {
        draft.whole(&simplify::PASS);
        draft.whole(&dce::PASS);
    }
}

/// Whether there is enough for all threads in the outermost loop around, as loops side by side
/// cannot be merged with it.
pub(super) fn is_spread(kernel: &Kernel, l: &LoopInfo, caps: &Caps) -> bool {
    let list = loops(kernel);
    let around = list.iter().find(|root| root.depth == 0 && root.end > l.end);
    let threads = caps.threads.max(1) as i64;
    around.is_none_or(|root| root.len.unwrap_or(UNKNOWN_TRIPS) >= 2 * threads)
}

/// Whether the loop's counter decides which of several loads is made.
fn chooses(kernel: &Kernel, l: &LoopInfo) -> bool {
    let Some(l) = find_loop(kernel, Some(l.open)) else { return false };
    let Some(variance) = Variance::of(kernel, &l) else { return false };
    let decided = l.body().filter(|&i| match kernel.op(Value(i as u32)) {
        Op::Load { index, .. } => {
            let (_, conds) = kernel.unguarded(index);
            conds.iter().any(|&cond| variance.form(cond) != Form::Uniform)
        }
        _ => false,
    });
    decided.count() > 1
}
