//! Operands seen through what repeats, permutes and names axes: where each axis of a result comes from.

use super::Exporter;
use super::sizes::Size;
use zyx_core::tensor::StepOp;

/// A step whose axes are axes of what is made of it, or have extent 1.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) step: usize,
    /// For each axis of the step, the axis it is; none of extent 1.
    pub(super) axes: Vec<Option<usize>>,
}

impl Exporter<'_> {
    /// The deepest step that this one only permutes, repeats, or gives axes of extent 1.
    pub(super) fn view(&self, step: usize) -> Option<View> {
        let dims = self.steps[step].dims.as_ref()?;
        let own = |(axis, size): (usize, &Size)| (!size.is_one()).then_some(axis);
        let mut view = View { step, axes: dims.iter().enumerate().map(own).collect() };
        while let Some(below) = self.below(&view) {
            view = below;
        }
        Some(view)
    }

    fn below(&self, view: &View) -> Option<View> {
        let here = &self.steps[view.step];
        let (&step, own) = (here.sources.first()?, here.dims.as_ref()?);
        let dims = self.steps[step].dims.as_ref()?;
        let axes = match &here.op {
            StepOp::Expand => {
                let kept = |(size, &axis): (&Size, &Option<usize>)| axis.filter(|_| !size.is_one());
                dims.iter().zip(&view.axes).map(kept).collect()
            }
            StepOp::Permute(from) => {
                let mut axes = vec![None; from.len()];
                from.iter().zip(&view.axes).for_each(|(&from, &axis)| axes[from] = axis);
                axes
            }
            StepOp::Reshape => {
                // An axis that is repeated has another extent than what it is read from: none here.
                let long = |sizes: &[Size]| -> Vec<usize> {
                    (0..sizes.len()).filter(|&i| !sizes[i].is_one()).collect()
                };
                let (from, to) = (long(dims), long(own));
                let same = from.len() == to.len()
                    && from.iter().zip(&to).all(|(&from, &to)| dims[from] == own[to]);
                if !same {
                    return None;
                }
                let mut axes = vec![None; dims.len()];
                from.iter().zip(&to).for_each(|(&from, &to)| axes[from] = view.axes[to]);
                axes
            }
            _ => return None,
        };
        Some(View { step, axes })
    }
}
