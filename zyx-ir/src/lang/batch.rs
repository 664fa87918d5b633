//! Recorded kernels with an axis of examples: `vmap` in one launch.

use super::copied::Copied;
use super::{Recorded, Role, SMALL, SizeExpr};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Extents, Kernel, LoopKind, Op, Value, verify};

/// Axes of groups.
const AXES: u8 = 3;

impl Recorded {
    /// The kernel that does for each of many examples what this one does for one: arguments get an axis in front, inputs only those that
    /// are marked. The number of examples is the last scalar argument, and the extent of the outermost axis of groups.
    ///
    /// `None` where there is no such axis, an array is filled from an input that has no examples, or the coordinates of an access
    /// cannot be told.
    pub fn batched(&self, caps: &Caps, inputs: &[bool]) -> Option<Recorded> {
        let mut new = self.clone();
        let mut inputs = inputs.iter();
        let mut marked = Vec::new();
        for argument in &mut new.arguments {
            marked.push(match argument.role {
                Role::Input => *inputs.next()?,
                Role::Output | Role::Scratch | Role::Filled(super::Fill::Scalar(_)) => true,
                Role::Filled(super::Fill::Input(_)) => return None,
                Role::Cut => false,
            });
            if marked.last() == Some(&true) {
                argument.shape.insert(0, SizeExpr::Size(self.sizes.len()));
            }
        }
        new.scalars.push(SizeExpr::Size(self.sizes.len()));
        new.sizes.push("examples".to_owned());
        let batched = |kernel, lines| batched(kernel, caps, &marked, lines);
        (new.kernel, _) = batched(&self.kernel, &[])?;
        if !verify(&new.kernel).ok()?.unproven.is_empty() {
            // The launch's guard looks at all examples together.
            return None;
        }
        (new.checked, new.lines) = batched(&self.checked, &self.lines)?;
        Some(new)
    }
}

fn batched(
    kernel: &Kernel,
    caps: &Caps,
    marked: &[bool],
    lines: &[u32],
) -> Option<(Kernel, Vec<u32>)> {
    let axes = kernel.ops().iter().filter_map(|op| match op {
        Op::Loop { kind: LoopKind::Group, axis, .. } => Some(axis + 1),
        _ => None,
    });
    let axis = axes.max().unwrap_or(0);
    let most = match caps.simt {
        true if axis >= AXES => return None,
        true => caps.max_groups[usize::from(axis)].min(SMALL) as i64,
        false => SMALL as i64,
    };
    let mut copy = Copied::of(kernel);
    let number = u16::try_from(kernel.vars().len()).ok()?;
    let examples = copy.b.var(DType::I64, 0, most);
    for (slot, _) in marked.iter().enumerate().filter(|x| *x.1) {
        let slots = [&[number], &copy.extents(slot as u16)[..]].concat();
        let info = copy.b.param_mut(slot as u16);
        // The only element of each example.
        info.len = if info.extents.is_none() { most as u64 } else { info.len };
        info.extents = Some(Extents::of(&slots)?);
    }
    let (ends, mut new_lines) = (kernel.region_ends(), Vec::new());
    // The loop over examples, and the end of the nest in it.
    let mut open: Option<(Value, usize)> = None;
    for (value, op, ty) in kernel.iter() {
        let mut new = copy.mapped(op);
        match (op, &mut new) {
            (Op::Loop { kind, .. }, _) if open.is_none() => {
                let kind = match kind {
                    LoopKind::Group | LoopKind::Parallel => kind,
                    _ => return None,
                };
                open = Some((copy.b.open_loop(kind, axis, examples), ends[value.idx()]));
            }
            (
                Op::Load { buf, index, .. }
                | Op::Store { buf, index, .. }
                | Op::Atomic { buf, index, .. },
                Op::Load { index: to, .. }
                | Op::Store { index: to, .. }
                | Op::Atomic { index: to, .. },
            ) => {
                let (example, _) = open?;
                if let Op::Param { slot, .. } = kernel.op(buf)
                    && marked[usize::from(slot)]
                {
                    let extents = copy.extents(slot);
                    *to = copy.moved(index, Some(example), &extents, &vec![true; extents.len()])?;
                }
            }
            // Storage that examples would share.
            (Op::Alloc { .. }, _) if open.is_none() => return None,
            _ => {}
        }
        let of = copy.b.emit(new, ty);
        copy.map.push(of);
        if open.is_some_and(|(_, end)| end == value.idx()) {
            copy.b.close();
            open = None;
        }
        let lines_of = lines.get(value.idx()).copied().unwrap_or(0);
        new_lines.resize(copy.b.kernel().ops().len(), lines_of);
    }
    let kernel = copy.b.finish();
    verify(&kernel).is_ok().then_some((kernel, new_lines))
}
