//! Sums of products as matrix products.
//!
//! An axis of the product is a row (of the first factor alone), a column (of the second), a batch (of both) or summed
//! over (of both). That is `MatMul`, around it what orders and joins axes, most of which is nothing.

use super::Exporter;
use super::sizes::Size;
use super::views::View;
use super::writer::Name;
use zyx_core::tensor::StepOp;
use zyx_core::{BinaryOp, DType};

/// A sum of products.
#[derive(Clone, Debug)]
pub(super) struct Product {
    /// The factors; the first has rows.
    pub(super) sides: [View; 2],
    batch: Vec<usize>,
    rows: Vec<usize>,
    columns: Vec<usize>,
    summed: Vec<usize>,
    /// Extents of the product's axes.
    dims: Vec<Size>,
}

impl Exporter<'_> {
    /// The matrix product that a step is.
    pub(super) fn product(&self, id: usize) -> Option<Product> {
        let step = &self.steps[id];
        let StepOp::Reduce { op: BinaryOp::Add, axes: reduced } = &step.op else { return None };
        if !matches!(step.dtype, DType::F16 | DType::F32 | DType::F64 | DType::I32 | DType::I64) {
            return None;
        }
        let source = &self.steps[step.sources[0]];
        let (StepOp::Binary(BinaryOp::Mul), [p, q]) = (&source.op, &source.sources[..]) else {
            return None;
        };
        step.dims.as_ref()?;
        let dims = source.dims.clone()?;
        let mut sides = [self.view(*p)?, self.view(*q)?];
        if sides.iter().any(|side| matches!(self.steps[side.step].op, StepOp::Const(_))) {
            return None;
        }
        let (mut batch, mut rows, mut columns, mut summed) = (vec![], vec![], vec![], vec![]);
        for axis in (0..dims.len()).filter(|&axis| !dims[axis].is_one()) {
            let [a, b] = sides.each_ref().map(|side| side.axes.contains(&Some(axis)));
            match (reduced.contains(&axis), a, b) {
                (true, true, true) => summed.push(axis),
                (false, true, true) => batch.push(axis),
                (false, true, false) => rows.push(axis),
                (false, false, true) => columns.push(axis),
                _ => return None,
            }
        }
        if summed.is_empty() || rows.is_empty() && columns.is_empty() {
            return None;
        }
        if rows.is_empty() {
            sides.swap(0, 1);
            std::mem::swap(&mut rows, &mut columns);
        }
        Some(Product { sides, batch, rows, columns, summed, dims })
    }

    /// Writes a matrix product.
    pub(super) fn write_product(&mut self, id: usize, product: &Product) -> Name {
        let Product { sides, batch, rows, columns, summed, dims } = product;
        let flat = batch.is_empty();
        // Without a batch, any number of axes of rows may stay.
        let row_groups: Vec<Vec<usize>> = match flat {
            true => rows.iter().map(|&axis| vec![axis]).collect(),
            false => vec![rows.clone()],
        };
        let lead: Vec<Vec<usize>> = batch.iter().map(|&axis| vec![axis]).collect();
        let left: Vec<_> =
            lead.iter().cloned().chain(row_groups.clone()).chain([summed.clone()]).collect();
        let right: Vec<_> = lead.iter().cloned().chain([summed.clone(), columns.clone()]).collect();
        let a = self.arranged(&sides[0], &left, dims);
        let b = self.arranged(&sides[1], &right, dims);
        let y = self.writer.node("MatMul", &[&a, &b], Vec::new());
        let product = |group: &Vec<usize>| joined(group, dims);
        let now: Vec<Size> = lead.iter().chain(&row_groups).chain([columns]).map(product).collect();
        let order: Vec<usize> = batch.iter().chain(rows).chain(columns).copied().collect();
        let apart: Vec<Size> = order.iter().map(|&axis| dims[axis].clone()).collect();
        let y = self.writer.reshape(&y, &now, &apart);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        let axes: Vec<usize> =
            sorted.iter().filter_map(|axis| order.iter().position(|x| x == axis)).collect();
        let turned: Vec<Size> = sorted.iter().map(|&axis| dims[axis].clone()).collect();
        let y = self.writer.transpose(&y, &axes);
        let own = self.steps[id].dims.clone().unwrap_or_default();
        self.writer.reshape(&y, &turned, &own)
    }

    /// A factor with its axes in this order, those of a group joined.
    fn arranged(&mut self, view: &View, groups: &[Vec<usize>], dims: &[Size]) -> Name {
        let name = self.name(view.step);
        let own: Vec<usize> = view.axes.iter().copied().flatten().collect();
        let from = self.steps[view.step].dims.clone().unwrap_or_default();
        let long: Vec<Size> = own.iter().map(|&axis| dims[axis].clone()).collect();
        let name = self.writer.reshape(&name, &from, &long);
        let order: Vec<usize> = groups.iter().flatten().copied().collect();
        let axes: Vec<usize> =
            order.iter().filter_map(|axis| own.iter().position(|x| x == axis)).collect();
        let turned: Vec<Size> = order.iter().map(|&axis| dims[axis].clone()).collect();
        let name = self.writer.transpose(&name, &axes);
        let to: Vec<Size> = groups.iter().map(|group| joined(group, dims)).collect();
        self.writer.reshape(&name, &turned, &to)
    }
}

/// The extent of axes that are joined.
fn joined(group: &[usize], dims: &[Size]) -> Size {
    group.iter().fold(Size::fixed(1), |size, &axis| size.times(&dims[axis]))
}
