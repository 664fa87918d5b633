//! Register tiles of contractions for devices of many threads.
//!
//! In a product of matrices each thread of a naive kernel loads two numbers for one
//! multiplication. A thread that computes several rows of several columns loads their sum for
//! their product: here as many neighbouring columns as one load brings (`vectorize`), or a few
//! columns far apart, so that neighbouring threads still load neighbours (`split`, `jam`), times
//! up to eight rows (`jam`). Nothing is asked but a nest of parallel loops around a reduction,
//! with loads that some of the loops do not change; convolutions are such nests, too.

use super::Draft;
use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Op, Value};
use crate::passes::loops::{LoopInfo, loops};
use crate::passes::variance::{Form, Variance};
use crate::passes::{Site, jam, nest, split, vectorize};

/// Rows a thread computes, most first.
const ROWS: [i64; 3] = [8, 4, 2];
/// Columns a thread computes where they cannot be one vector.
const COLUMNS: i64 = 4;
/// Shortest reduction worth it.
const MIN_STEPS: i64 = 8;
/// Part of the device's resident threads that must be left with work.
const OCCUPANCY: i64 = 8;

/// Tiles the nest with this number, if it is a contraction large enough.
pub(super) fn tile(draft: &mut Draft, caps: &Caps, number: usize) -> bool {
    let Some((row, factor, columns)) = choose(&draft.kernel, caps, number) else { return false };
    draft.step(&jam::PASS, Site::new(row, &[factor]));
    let Some(found) = Nest::of(&draft.kernel, number) else { return true };
    tile_columns(draft, found.chain[found.chain.len() - 1], columns);
    true
}

/// The loop over rows, how many a thread takes, and how it takes columns.
fn choose(kernel: &Kernel, caps: &Caps, number: usize) -> Option<(Value, i64, Columns)> {
    let found = Nest::of(kernel, number)?;
    let columns = found.columns(kernel, caps)?;
    let threads: i64 = found.chain.iter().filter_map(|l| l.len).product();
    let most = threads / columns.count() / (caps.threads as i64 / OCCUPANCY).max(1);
    let row = found.rows(kernel, found.chain.len() - 1)?;
    let fits = |f: &&i64| **f <= most && row.len.is_some_and(|n| n % **f == 0);
    let factor = *ROWS.iter().find(fits)?;
    Some((row.open, factor, columns))
}

fn tile_columns(draft: &mut Draft, column: LoopInfo, columns: Columns) {
    match columns {
        Columns::Vector(lanes) => {
            draft.step(&vectorize::PASS, Site::new(column.open, &[lanes, 0]));
        }
        Columns::Apart => {
            let Some(n) = column.len else { return };
            draft.step(&split::PASS, Site::new(column.open, &[n / COLUMNS]));
            let list = loops(&draft.kernel);
            let outer = list.iter().find(|l| l.open >= column.open && l.len == Some(COLUMNS));
            if let Some(outer) = outer {
                draft.step(&jam::PASS, Site::new(outer.open, &[COLUMNS]));
            }
        }
    }
}

/// How a thread computes several columns.
#[derive(Clone, Copy)]
enum Columns {
    Vector(i64),
    Apart,
}

impl Columns {
    fn count(self) -> i64 {
        match self {
            Columns::Vector(lanes) => lanes,
            Columns::Apart => COLUMNS,
        }
    }
}

/// Perfectly nested parallel loops around a reduction.
struct Nest {
    chain: Vec<LoopInfo>,
    /// Loads from buffers in the reduction.
    loads: Vec<Value>,
    /// Stores to buffers.
    stores: Vec<Value>,
}

impl Nest {
    fn of(kernel: &Kernel, number: usize) -> Option<Nest> {
        let list = loops(kernel);
        let root = *list.iter().filter(|l| l.depth == 0 && l.is_parallel()).nth(number)?;
        let mut chain = vec![root];
        while let Some(inner) = nest::inner_of(kernel, chain.last()?, &list) {
            chain.push(inner);
        }
        let innermost = *chain.last()?;
        let inside = |l: &&LoopInfo| l.open > innermost.open && l.end < innermost.end;
        let reductions: Vec<&LoopInfo> = list.iter().filter(inside).collect();
        // Loops side by side are counted as if nested, which may be very many.
        let steps = reductions.iter().try_fold(1i64, |n, l| Some(n.saturating_mul(l.len?)));
        let is_serial = reductions.iter().all(|l| l.kind == Some(LoopKind::Serial));
        let outermost =
            reductions.iter().filter(|l| l.depth == innermost.depth + 1).collect::<Vec<_>>();
        let [reduction] = outermost[..] else { return None };
        if chain.len() < 2 || !is_serial || steps? < MIN_STEPS {
            return None;
        }
        let buffer = |buf: Value| matches!(kernel.op(buf), Op::Param { .. });
        let values = |range: std::ops::Range<usize>| range.map(|i| Value(i as u32));
        let is_load = |v: &Value| matches!(kernel.op(*v), Op::Load { buf, .. } if buffer(buf));
        let is_store = |v: &Value| matches!(kernel.op(*v), Op::Store { buf, .. } if buffer(buf));
        let loads: Vec<Value> = values(reduction.body()).filter(is_load).collect();
        let stores: Vec<Value> = values(innermost.body()).filter(is_store).collect();
        (loads.len() >= 2).then_some(Nest { chain, loads, stores })
    }

    /// How each load's index depends on a loop's counter.
    fn forms(&self, kernel: &Kernel, l: &LoopInfo, accesses: &[Value]) -> Option<Vec<Form>> {
        let variance = Variance::of(kernel, l)?;
        let form = |&v: &Value| match kernel.op(v) {
            Op::Load { index, .. } | Op::Store { index, .. } => {
                let guarded = matches!(kernel.op(index), Op::Guard { .. });
                if guarded { Form::Varying } else { variance.form(index) }
            }
            _ => Form::Varying,
        };
        Some(accesses.iter().map(form).collect())
    }

    /// How the innermost parallel loop, whose iterations store side by side, can be tiled.
    fn columns(&self, kernel: &Kernel, caps: &Caps) -> Option<Columns> {
        let column = self.chain.last()?;
        let loads = self.forms(kernel, column, &self.loads)?;
        let stores = self.forms(kernel, column, &self.stores)?;
        if !loads.contains(&Form::Uniform) || stores.iter().any(|&f| f != Form::Linear(1)) {
            return None;
        }
        let n = column.len?;
        let straight = loads.iter().all(|f| matches!(f, Form::Uniform | Form::Linear(1)));
        let site = vectorize::site(kernel, column, caps).filter(|_| straight);
        if let Some(lanes) = site.map(|s| s.params[0]).filter(|lanes| n % lanes == 0) {
            return Some(Columns::Vector(lanes));
        }
        (n % COLUMNS == 0 && n > COLUMNS).then_some(Columns::Apart)
    }

    /// The loop around, of the first `before`, that leaves most loads as they are.
    fn rows(&self, kernel: &Kernel, before: usize) -> Option<LoopInfo> {
        let reused = |l: &LoopInfo| {
            let forms = self.forms(kernel, l, &self.loads);
            forms.map_or(0, |f| f.iter().filter(|&&f| f == Form::Uniform).count())
        };
        let loops = self.chain[..before].iter().filter(|l| reused(l) > 0 && l.len > Some(1));
        loops.max_by_key(|l| (reused(l), l.len)).copied()
    }
}
