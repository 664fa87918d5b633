//! One factor of the products: how its block lies in shared storage and who brings what.

use super::Tile;
use super::find::{Found, count};
use crate::ir::{Kernel, Op, Type, Value};
use crate::passes::loops::LoopInfo;
use crate::passes::variance::{Form, Variance};

/// Which of the two factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Rows,
    Columns,
}

/// How elements lie in shared storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// One by one, a line for each step of the reduction.
    Single,
    /// As `Single`, in vectors of neighbouring rows (or columns).
    Across,
    /// In vectors of neighbouring steps, a line for each row (or column).
    Along,
}

/// A factor as what is staged: a matrix of `extent` rows (or columns) by `depth` steps.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) factor: Value,
    pub(super) loops: Vec<LoopInfo>,
    pub(super) layout: Layout,
    /// Type of an element in shared storage.
    pub(super) ty: Type,
    /// Rows (or columns) of the block and of a thread, and steps.
    pub(super) extent: i64,
    pub(super) own: i64,
    pub(super) depth: i64,
    /// Elements of the factor in one of storage.
    pub(super) lanes: i64,
    /// Whether neighbouring threads bring neighbouring steps.
    pub(super) steps_first: bool,
}

impl Operand {
    pub(super) fn of(kernel: &Kernel, found: &Found, tile: Tile, side: Side) -> Operand {
        let (factor, loops, extent, own) = match side {
            Side::Rows => (found.factors[0], &found.rows, tile.rows, tile.row),
            Side::Columns => (found.factors[1], &found.columns, tile.columns, tile.column),
        };
        let ty = kernel.ty(factor);
        let last_sum = found.sums[found.sums.len() - 1];
        let last_free = loops[loops.len() - 1];
        let moves = |l: &LoopInfo| {
            let whole = l.len.is_some_and(|n| n % tile.lanes == 0);
            let wide = tile.lanes > 1 && !ty.is_vector() && ty.dtype.size() == 4 && whole;
            wide && is_wide(kernel, found, factor, l)
        };
        let layout = if own >= tile.lanes && moves(&last_free) {
            Layout::Across
        } else if moves(&last_sum) {
            Layout::Along
        } else {
            Layout::Single
        };
        let lanes = if layout == Layout::Single { 1 } else { tile.lanes };
        let ty = if lanes > 1 { Type::vector(ty.dtype, lanes as u8) } else { ty };
        let steps_first = match layout {
            Layout::Across => false,
            Layout::Along => true,
            Layout::Single => !ty.is_vector() && runs_along(kernel, found, factor, &last_sum),
        };
        let (loops, depth) = (loops.clone(), tile.depth);
        Operand { factor, loops, layout, ty, extent, own, depth, lanes, steps_first }
    }

    /// Elements of storage in a line, and between lines: one more, so that what neighbouring
    /// threads store or load in one go lies in different banks.
    pub(super) fn line(&self) -> i64 {
        match self.layout {
            Layout::Single | Layout::Across => self.extent / self.lanes,
            Layout::Along => self.depth / self.lanes,
        }
    }

    pub(super) fn stride(&self) -> i64 {
        self.line() + 1
    }

    pub(super) fn lines(&self) -> i64 {
        match self.layout {
            Layout::Single | Layout::Across => self.depth,
            Layout::Along => self.extent,
        }
    }

    /// Elements of storage of one block.
    pub(super) fn size(&self) -> i64 {
        self.lines() * self.stride()
    }

    pub(super) fn bytes(&self, _: &Kernel) -> usize {
        self.size() as usize * self.ty.bytes()
    }

    /// Elements of storage that the group brings.
    pub(super) fn units(&self) -> i64 {
        self.lines() * self.line()
    }

    /// Rows (or columns) that there are.
    pub(super) fn total(&self) -> i64 {
        count(&self.loops)
    }
}

/// Whether a factor can be evaluated for neighbouring counters of a loop at once: lane by lane on
/// what whole loads bring or all lanes share.
pub(in crate::passes) fn is_wide(
    kernel: &Kernel,
    found: &Found,
    factor: Value,
    l: &LoopInfo,
) -> bool {
    let Some(variance) = Variance::with_vectors(kernel, l) else { return false };
    let varies = variance.form(factor) != Form::Uniform;
    varies && is_lanewise(kernel, found, &variance, factor)
}

/// Whether a value is computed lane by lane from whole loads, sums and what all lanes share.
pub(in crate::passes) fn is_lanewise(
    kernel: &Kernel,
    found: &Found,
    variance: &Variance,
    v: Value,
) -> bool {
    if v < found.root().open || variance.form(v) == Form::Uniform {
        return !kernel.ty(v).is_vector();
    }
    match kernel.op(v) {
        Op::Load { buf, .. } if buf == found.acc => true,
        Op::Load { index, .. } => is_side_by_side(kernel, variance, index),
        Op::Unary { .. } | Op::Binary { .. } | Op::Ternary { .. } | Op::Cast { .. } => {
            !kernel.ty(v).is_vector()
                && kernel.op(v).operands().all(|x| {
                    let fits = kernel.ty(x).dtype.is_float() || variance.form(x) == Form::Uniform;
                    fits && is_lanewise(kernel, found, variance, x)
                })
        }
        _ => false,
    }
}

/// Whether an access for neighbouring counters is one for all of them.
pub(in crate::passes) fn is_side_by_side(
    kernel: &Kernel,
    variance: &Variance,
    index: Value,
) -> bool {
    let (at, conds) = kernel.unguarded(index);
    let all = conds.iter().all(|&cond| variance.form(cond) == Form::Uniform);
    all && variance.form(at) == Form::Linear(1)
}

/// Whether the factor's loads lie along a loop.
pub(in crate::passes) fn runs_along(
    kernel: &Kernel,
    found: &Found,
    factor: Value,
    l: &LoopInfo,
) -> bool {
    matches!(stride_along(kernel, found, factor, l), Some(1 | -1))
}

/// The distance between the factor's loads along a loop, if it is a constant.
pub(in crate::passes) fn stride_along(
    kernel: &Kernel,
    found: &Found,
    factor: Value,
    l: &LoopInfo,
) -> Option<i64> {
    let variance = Variance::with_vectors(kernel, l)?;
    let mut stack = vec![factor];
    while let Some(v) = stack.pop() {
        if v < found.root().open {
            continue;
        }
        if let Op::Load { mut index, .. } = kernel.op(v) {
            while let Op::Guard { index: inner, .. } = kernel.op(index) {
                index = inner;
            }
            return match variance.form(index) {
                Form::Linear(stride) => Some(stride),
                Form::Uniform | Form::Varying => None,
            };
        }
        if !matches!(kernel.op(v), Op::Loop { .. }) {
            stack.extend(kernel.op(v).operands());
        }
    }
    None
}
