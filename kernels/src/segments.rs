//! Reductions of segments: rows that are sorted by place, those of each place combined with its element.
//!
//! Two kernels. [`tiles`] walks tiles of rows in parallel, so that its time does not depend on how long segments are. It
//! reduces each segment that lies within a tile; of a segment that goes on in other tiles, each keeps its part. [`places`]
//! combines the parts of each place in their order. Results are the same from run to run. Float sums are compensated (Kahan
//! 1965): their error does not grow with the number of rows.

use zyx_ir::lang::{Array, Lang, Val, Var};
use zyx_ir::{BinaryOp, DType, Scalar};

/// Rows that are loaded together, and half as many as parts.
const AHEAD: i64 = 4;

/// Where the rows of a place begin and end.
fn bounds<'k>(ends: &Array<'k>, place: Val<'k>) -> [Val<'k>; 2] {
    [ends.at_if(place.gt(0), place - 1, 0), ends.at(place)].map(|end| end.cast(DType::I64))
}

/// The place of a row, or -1 outside of `0..n`.
fn place_of<'k>(place: &Array<'k>, row: Val<'k>, n: Val<'k>) -> Val<'k> {
    let is_row = row.ge(0) & row.lt(n);
    is_row.select(place.at_if(is_row, row, 0).cast(DType::I64), -1)
}

/// Values combined one after the other.
struct Total<'k> {
    k: &'k Lang,
    op: BinaryOp,
    value: Var<'k>,
    /// The rounding error of a float sum.
    error: Option<Var<'k>>,
}

impl<'k> Total<'k> {
    fn new(k: &'k Lang, op: BinaryOp, first: Val<'k>) -> Total<'k> {
        let is_rounded = op == BinaryOp::Add && first.dtype().is_float();
        let error = is_rounded.then(|| k.var(k.value(0.0, first.dtype())));
        Total { k, op, value: k.var(first), error }
    }

    fn begin(&self, first: Val<'k>) {
        self.value.set(first);
        if let Some(error) = &self.error {
            error.set(0.0);
        }
    }

    fn add(&self, x: Val<'k>) {
        let before = self.value.get();
        let Some(error) = &self.error else { return self.value.set(before.binary(self.op, x)) };
        let exact = x - error.get();
        let sum = before + exact;
        // The sum stays infinite, or no number, where it became so.
        let is_finite = sum.abs().lt(f64::INFINITY);
        error.set(is_finite.select((sum - before) - exact, 0.0));
        self.value.set(sum);
    }

    /// The neutral element of the operation.
    fn neutral(&self) -> Val<'k> {
        neutral(self.k, self.op, self.value.dtype())
    }
}

/// The neutral element of an operation.
fn neutral(k: &Lang, op: BinaryOp, dtype: DType) -> Val<'_> {
    let neutral = op.identity(dtype);
    if neutral.is_none() {
        k.fail(format_args!("segments are combined by associative operations, not by {op}"));
    }
    k.value(neutral.map_or(0.0, Scalar::to_f64), dtype)
}

/// Reduces the part of each segment that lies in one tile of `tile` rows.
///
/// Inputs are `place` (integers, `[n]`), the place of each row, neither negative nor below that of the row before, and `places` or more
/// for rows that have none; `order` (integers, `[n]`), the number of each row in `x`, if rows are not sorted; `base` (`[places, cols]`), which
/// segments begin with; and `x` (`[n, cols]`). Outputs are `inner` (`[places, cols]`), of places whose rows are in one tile; `head` and
/// `tail` (`[tiles, cols]`), of the segment that began before a tile and the one that goes on behind it; one that does both is in `head`
/// alone. Elements without such a segment are not written.
pub fn tiles(k: &Lang, op: BinaryOp, is_sorted: bool) {
    let [n, cols, places, tile] = k.sizes(["n", "cols", "places", "tile"]);
    let place = k.input("place", [n]);
    let order = (!is_sorted).then(|| k.input("order", [n]));
    let base = k.input("base", [places, cols]);
    let x = k.input("x", [n, cols]);
    let inner = k.output("inner", [places, cols], x.dtype());
    let tiles = n.div_ceil(tile);
    let [head, tail] = ["head", "tail"].map(|name| k.output(name, [tiles, cols], x.dtype()));
    k.each([tiles, cols], |[t, column]| {
        let first = t * tile;
        let behind = n.minimum(first + tile);
        let [before, after] = [first - 1, behind].map(|row| place_of(&place, row, n));
        let (current, begins) = (k.var(k.index(-1)), k.var(k.value(1, DType::I32)));
        let total = Total::new(k, op, neutral(k, op, x.dtype()));
        let store = |goes_on: Val| {
            let (place, total) = (current.get(), total.value.get());
            k.when(place.ge(0) & place.lt(places), || {
                let begins = begins.get().ne(0);
                head.set_if(!begins, [t, column], total);
                tail.set_if(begins & goes_on, [t, column], total);
                inner.set_if(begins & !goes_on, [place, column], total);
            });
        };
        k.for_each((behind - first).div_ceil(AHEAD), |turn| {
            let rows = [0, 1, 2, 3].map(|row: i64| first + turn * AHEAD + row);
            let loaded = rows.map(|row| {
                let is_row = row.lt(n);
                let number = order.as_ref().map(|order| order.at_if(is_row, row, 0));
                let number = number.map_or(row, |number| number.cast(DType::I64));
                let (place, x) = (place_of(&place, row, n), x.at_if(is_row, [number, column], 0));
                (place, base.at_if(place.ge(0) & place.lt(places), [place, column], 0), x)
            });
            for (row, (place, base, x)) in rows.into_iter().zip(loaded) {
                k.when(row.lt(behind), || {
                    k.when(place.ne(current.get()), || {
                        store(k.value(false, DType::Bool));
                        // The first segment of a tile may have begun before it.
                        let is_new = row.ne(first) | place.ne(before);
                        current.set(place);
                        begins.set(is_new.cast(DType::I32));
                        total.begin(is_new.select(base, total.neutral()));
                    });
                    total.add(x);
                });
            }
        });
        store(current.get().eq(after));
    });
}

/// Gives each place its element with its rows, from the results of [`tiles`].
///
/// Inputs are `ends` (integers, `[places]`), where the rows of each place end; `base`, `inner`, `head` and `tail` as there; the output
/// `y` has shape and dtype of `base`. A place without rows keeps its element.
pub fn places(k: &Lang, op: BinaryOp) {
    let [places, cols, tiles, tile] = k.sizes(["places", "cols", "tiles", "tile"]);
    let ends = k.input("ends", [places]);
    let base = k.input("base", [places, cols]);
    let inner = k.input("inner", [places, cols]);
    let [head, tail] = ["head", "tail"].map(|name| k.input(name, [tiles, cols]));
    let y = k.output("y", [places, cols], base.dtype());
    k.each([places, cols], |[place, column]| {
        let [start, end] = bounds(&ends, place);
        let is_empty = start.ge(end);
        let [first, last] = [start / tile, (end - 1) / tile];
        let is_inner = !is_empty & first.eq(last);
        let is_split = !is_empty & first.ne(last);
        let own = base.at_if(is_empty, [place, column], 0);
        let whole = inner.at_if(is_inner, [place, column], own);
        let total = Total::new(k, op, tail.at_if(is_split, [first, column], whole));
        let turns = is_split.select((last - first).div_ceil(2 * AHEAD), 0);
        k.for_each(turns, |turn| {
            let tiles = [1, 2, 3, 4, 5, 6, 7, 8].map(|t: i64| first + turn * (2 * AHEAD) + t);
            let parts = tiles.map(|t| (t.le(last), head.at_if(t.le(last), [t, column], 0)));
            for (is_part, part) in parts {
                k.when(is_part, || total.add(part));
            }
        });
        y.set([place, column], total.value.get());
    });
}
