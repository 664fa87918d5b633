//! Products of blocks of matrices: operands are packed into panels of eight rows, results are made
//! in squares of eight that stay in registers (Goto and van de Geijn 2008).

use super::{Matrix, threads};
use std::ops::Range;
use zyx_gemm::dense::{ROWS, tile};

/// A block of a matrix, or its transpose.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    data: &'a [f64],
    /// Extents and distances along both axes.
    extents: [usize; 2],
    strides: [usize; 2],
}

impl<'a> View<'a> {
    /// Rows `first..last` from a column on.
    pub(super) fn rows(x: &'a Matrix, first: usize, last: usize, column: usize) -> View<'a> {
        let extents = [last - first, x.columns - column];
        let data = x.data.get(first * x.columns + column..).unwrap_or_default();
        View { data, extents, strides: [x.columns, 1] }
    }

    /// The first columns.
    pub(super) fn columns(self, n: usize) -> View<'a> {
        View { extents: [self.extents[0], n], ..self }
    }

    pub(super) fn transposed(self) -> View<'a> {
        let ([rows, columns], [down, right]) = (self.extents, self.strides);
        View { data: self.data, extents: [columns, rows], strides: [right, down] }
    }

    /// A copy by panels, whose last one is filled with zeros.
    pub(super) fn panels(self) -> Panels {
        let ([rows, depth], [down, right]) = (self.extents, self.strides);
        let mut data = vec![[0.0; ROWS]; rows.div_ceil(ROWS) * depth];
        for (p, panel) in data.chunks_mut(depth.max(1)).enumerate() {
            let (first, some) = (p * ROWS, ROWS.min(rows - p * ROWS));
            if down == 1 {
                for (k, to) in panel.iter_mut().enumerate() {
                    to[..some].copy_from_slice(&self.data[k * right + first..][..some]);
                }
                continue;
            }
            for r in 0..some {
                let row = &self.data[(first + r) * down..];
                for (k, to) in panel.iter_mut().enumerate() {
                    to[r] = row[k * right];
                }
            }
        }
        Panels { data, rows, depth }
    }
}

/// An operand of a product by panels of eight rows, in each of which those of a column are neighbours.
#[derive(Debug)]
pub(super) struct Panels {
    data: Vec<[f64; ROWS]>,
    rows: usize,
    depth: usize,
}

/// Some panels of an operand.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    data: &'a [[f64; ROWS]],
    depth: usize,
}

impl Panels {
    pub(super) fn all(&self) -> Part<'_> {
        self.slice(0, self.rows)
    }

    /// Rows `first..last`; the first one begins a panel.
    pub(super) fn slice(&self, first: usize, last: usize) -> Part<'_> {
        let panel = |row: usize| row * self.depth;
        let range = panel(first / ROWS)..panel(last.div_ceil(ROWS));
        Part { data: &self.data[range], depth: self.depth }
    }
}

/// Takes the product of `a` and the transpose of `b` from a block of `c`.
pub(super) fn subtract(
    c: &mut Matrix,
    rows: Range<usize>,
    columns: Range<usize>,
    a: Part<'_>,
    b: Part<'_>,
) {
    if rows.is_empty() || columns.is_empty() || a.depth == 0 {
        return;
    }
    let stride = c.columns;
    let work = 2 * rows.len() * columns.len() * a.depth;
    let c = &mut c.data[rows.start * stride..rows.end * stride];
    let panels = rows.len().div_ceil(ROWS);
    let each = panels.div_ceil(threads(work));
    let parts = c.chunks_mut(each * ROWS * stride).zip(a.data.chunks(each * a.depth));
    let run = |(c, panels): (&mut [f64], &[[f64; ROWS]])| {
        for (c, a) in c.chunks_mut(ROWS * stride).zip(panels.chunks(a.depth)) {
            for (j, b) in b.data.chunks(b.depth).enumerate() {
                let tile = tile(a, b);
                let first = columns.start + j * ROWS;
                let last = columns.end.min(first + ROWS);
                for (c, tile) in c.chunks_mut(stride).zip(tile) {
                    c[first..last].iter_mut().zip(tile).for_each(|(c, x)| *c -= x);
                }
            }
        }
    };
    crate::threads::map(panels.div_ceil(each), parts.collect(), run);
}
