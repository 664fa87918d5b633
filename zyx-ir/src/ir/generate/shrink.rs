//! Making a kernel that shows a problem as small as possible.
//!
//! Candidates are tried from the coarse to the fine: drop all that does nothing, drop a region,
//! drop an op, take a region's body out of it, replace a value by an earlier one or by zero,
//! shorten a loop. A candidate counts if it is well-formed, does nothing wrong in the interpreter,
//! and still fails. The search ends when no single step helps.

use super::{random_inputs, random_vars};
use crate::ir::interp::{Options, interpret};
use crate::ir::kernel::{Builder, Kernel};
use crate::ir::op::{Op, Type, Value};
use crate::scalar::Scalar;

/// One way of making a kernel smaller.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Without values and regions that do nothing.
    Clean,
    /// Without the region and what stands in it.
    DropRegion(Value),
    /// Without the op, which has no users.
    Drop(Value),
    /// Users of the first use the second.
    Replace(Value, Value),
    /// Users of the value use zero.
    Zero(Value),
    /// Without the region, with what stands in it; a counter becomes zero.
    Unwrap(Value),
    /// A loop of this length.
    Shorten(Value, i64),
}

/// The smallest kernel found for which `fails` still holds.
///
/// `fails` is called with well-formed kernels only, which run without faults on
/// [`random_inputs`] of seed 0. If it does not hold for `kernel` itself, that is returned.
pub fn shrink(kernel: &Kernel, mut fails: impl FnMut(&Kernel) -> bool) -> Kernel {
    let mut smallest = kernel.clone();
    loop {
        let better = steps(&smallest).into_iter().find_map(|step| {
            let candidate = match step {
                Step::Clean => cleaned(&smallest),
                step => applied(&smallest, step)?,
            };
            let is_smaller = weight(&candidate) < weight(&smallest);
            (is_smaller && is_sound(&candidate) && fails(&candidate)).then_some(candidate)
        });
        match better {
            Some(candidate) => smallest = candidate,
            None => return smallest,
        }
    }
}

/// What shrinking lowers: ops, then the lengths of loops and the kinds of values.
fn weight(kernel: &Kernel) -> (usize, u64) {
    let lens = kernel.iter().map(|(value, op, _)| match op {
        Op::Loop { len, .. } => kernel.constant(len).map_or(1 << 20, |len| len.to_i64() as u64),
        Op::Const { .. } => 0,
        // Operands nearer the top are simpler.
        _ => op.operands().map(|x| x.0 as u64).sum::<u64>() + value.0 as u64,
    });
    (kernel.ops().len(), lens.fold(0, u64::saturating_add))
}

fn is_sound(kernel: &Kernel) -> bool {
    let proven = crate::ir::verify(kernel).is_ok_and(|report| report.unproven.is_empty());
    let options = Options { max_iterations: 1 << 20, ..Options::default() };
    proven
        && interpret(kernel, &mut random_inputs(kernel, 0), &random_vars(kernel, 0), &options)
            .is_ok()
}

/// Everything that may be tried, the largest cuts first.
fn steps(kernel: &Kernel) -> Vec<Step> {
    let regions = || kernel.iter().filter(|(_, op, _)| op.opens_region()).map(|(v, _, _)| v);
    let mut steps = vec![Step::Clean];
    steps.extend(regions().map(Step::DropRegion));
    let mut used = vec![false; kernel.ops().len()];
    for (value, op, _) in kernel.iter().rev() {
        let is_region = op.opens_region() || matches!(op, Op::End { .. });
        if !used[value.idx()] && !is_region {
            steps.push(Step::Drop(value));
        }
        if !matches!(op, Op::End { .. }) {
            op.operands().for_each(|x| used[x.idx()] = true);
        }
    }
    steps.extend(regions().map(Step::Unwrap));
    for (value, op, ty) in kernel.iter() {
        if op.is_pure() || matches!(op, Op::Load { .. } | Op::Shuffle { .. }) {
            let is_storage =
                |x: &Value| matches!(kernel.op(*x), Op::Param { .. } | Op::Alloc { .. });
            let fits = |x: &Value| kernel.ty(*x) == ty && !is_storage(x);
            steps.extend(op.operands().filter(fits).map(|x| Step::Replace(value, x)));
            if !matches!(op, Op::Const { .. }) && !ty.is_vector() {
                steps.push(Step::Zero(value));
            }
        }
        if let Op::Loop { len, .. } = op {
            let known = kernel.constant(len).map(Scalar::to_i64);
            let shorter = [1, 2, 3].into_iter().filter(|&n| known.is_none_or(|len| n < len));
            steps.extend(shorter.map(|n| Step::Shorten(value, n)));
        }
    }
    steps
}

/// The kernel after a step, `None` if an op is left without operands.
fn applied(kernel: &Kernel, step: Step) -> Option<Kernel> {
    let mut b = Builder::raw(kernel.name())
        .with_arguments(kernel.params().to_vec(), kernel.vars().to_vec());
    let mut map: Vec<Option<Value>> = Vec::with_capacity(kernel.ops().len());
    let ends = kernel.region_ends();
    let mut skip_to = 0;
    for (value, op, ty) in kernel.iter() {
        if value.idx() < skip_to {
            map.push(None);
            continue;
        }
        let zero = |b: &mut Builder, ty: Type| {
            let x = Scalar::from_i64(ty.dtype, 0);
            b.push(Op::Const { bits: x.bits() }, Type::scalar(ty.dtype))
        };
        let new = match step {
            Step::DropRegion(region) if region == value => {
                skip_to = ends[value.idx()] + 1;
                None
            }
            Step::Drop(dropped) if dropped == value => None,
            Step::Replace(replaced, by) if replaced == value => map[by.idx()],
            Step::Zero(zeroed) if zeroed == value => Some(zero(&mut b, ty)),
            Step::Unwrap(region) if region == value => Some(zero(&mut b, ty)),
            Step::Unwrap(region) if op == (Op::End { open: region }) => None,
            Step::Shorten(shortened, n) if shortened == value => {
                let Op::Loop { kind, axis, .. } = op else { return None };
                let bits = Scalar::from_i64(ty.dtype, n).bits();
                let len = b.push(Op::Const { bits }, ty);
                Some(b.push(Op::Loop { kind, axis, len }, ty))
            }
            _ => {
                let mut complete = true;
                let op = op.map(|x| {
                    map[x.idx()].unwrap_or_else(|| {
                        complete = false;
                        Value(0)
                    })
                });
                if !complete {
                    return None;
                }
                Some(b.push(op, ty))
            }
        };
        map.push(new);
    }
    Some(b.finish())
}

/// The kernel without values and regions that do nothing.
fn cleaned(kernel: &Kernel) -> Kernel {
    let ends = kernel.region_ends();
    let mut used = vec![false; kernel.ops().len()];
    for (value, op, _) in kernel.iter().rev() {
        let i = value.idx();
        used[i] = match op {
            // An end keeps its region only if something in it is kept, which is seen below.
            Op::End { .. } => continue,
            Op::Store { .. } | Op::Atomic { .. } | Op::Barrier { .. } | Op::Break { .. } => true,
            Op::Loop { .. } | Op::If { .. } => {
                let keep = used[i] || used[i + 1..ends[i]].iter().any(|&u| u);
                used[ends[i]] = keep;
                keep
            }
            _ => used[i],
        };
        if used[i] {
            op.operands().for_each(|x| used[x.idx()] = true);
        }
    }
    let mut b = Builder::raw(kernel.name())
        .with_arguments(kernel.params().to_vec(), kernel.vars().to_vec());
    let mut map = vec![Value(0); kernel.ops().len()];
    for (value, op, ty) in kernel.iter().filter(|(v, _, _)| used[v.idx()]) {
        map[value.idx()] = b.push(op.map(|x| map[x.idx()]), ty);
    }
    b.finish()
}
