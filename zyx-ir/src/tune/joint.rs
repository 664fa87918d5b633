//! Kernels of several computations: each is tuned as if it were alone, equal ones once.
//!
//! So the time it takes is linear in their number, and what a computation becomes does not depend
//! on its neighbours. On devices of many threads their nests then share one grid (`horizontal`), first
//! neighbours, then neighbouring pairs, so that a group finds its work in few steps.

use crate::caps::Caps;
use crate::ir::joint::{Member, join, separate};
use crate::ir::{Access, Kernel, Value};
use crate::passes::{Site, horizontal};
use rustc_hash::FxHashMap;

/// The joint kernel made fast; `None` if it is a single computation.
pub(super) fn tune(
    kernel: &Kernel,
    caps: &Caps,
    choose: &mut dyn FnMut(&Kernel) -> Kernel,
) -> Option<Kernel> {
    let parts = separate(kernel)?;
    let mut known: FxHashMap<&Kernel, Kernel> = FxHashMap::default();
    for part in &parts {
        known.entry(&part.kernel).or_insert_with(|| choose(&part.kernel));
    }
    let members: Vec<Member<'_>> = parts
        .iter()
        .map(|part| Member { kernel: &known[&part.kernel], params: &part.params, vars: &part.vars })
        .collect();
    let mut params = kernel.params().to_vec();
    for member in &members {
        // A pass may read what the kernel writes (`memoize` keeps values in the output).
        for (&slot, info) in member.params.iter().zip(member.kernel.params()) {
            let known = &mut params[usize::from(slot)];
            if known.access != info.access {
                known.access = Access::ReadWrite;
            }
        }
    }
    let joint = join(kernel.name(), &params, kernel.vars(), &members);
    let joint = joint.with_members(kernel.members().cloned());
    Some(if caps.simt { side_by_side(joint, caps) } else { joint })
}

/// Makes one grid of as many nests as possible.
fn side_by_side(mut kernel: Kernel, caps: &Caps) -> Kernel {
    loop {
        let sites = (horizontal::PASS.sites)(&kernel, caps);
        if sites.is_empty() {
            return kernel;
        }
        // From the last on, so that the places of those before stay what they are; a pair that was
        // joined is not joined again in this round.
        let mut before = Value(u32::MAX);
        for site in sites.iter().rev() {
            let (Some(at), false) = (site.value, kernel.ops().is_empty()) else { continue };
            if next_nest(&kernel, at) < before {
                kernel = (horizontal::PASS.apply)(&kernel, &Site::new(at, &[]));
                before = at;
            }
        }
    }
}

/// Where the region after the one at `at` starts.
fn next_nest(kernel: &Kernel, at: Value) -> Value {
    let end = kernel.region_ends()[at.idx()];
    let next = (end + 1..kernel.ops().len()).find(|&i| kernel.ops()[i].opens_region());
    Value(next.map_or(u32::MAX, |i| i as u32))
}
