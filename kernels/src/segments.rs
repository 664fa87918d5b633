//! Reductions of segments: of rows that are sorted by place, those of each place combined.
//!
//! Two kernels. [`tiles`] walks tiles of rows in parallel, so that its time does not depend on how long segments are. A
//! segment within a tile is reduced there; of one that goes on in other tiles, each keeps its part. [`places`] combines the parts of each
//! place in their order. Results are the same from run to run.

use zyx_ir::lang::{Array, Lang, Val};
use zyx_ir::{BinaryOp, DType, Scalar};

/// Rows whose loads are under way at once.
const AHEAD: usize = 4;

/// Where the rows of a place begin and end.
fn bounds<'k>(ends: &Array<'k>, place: Val<'k>) -> [Val<'k>; 2] {
    [ends.at_if(place.gt(0), place - 1, 0), ends.at(place)].map(|end| end.cast(DType::I64))
}

/// Reduces what of each segment lies in one tile of `tile` rows, a multiple of 4.
///
/// Inputs are `ends` (integers, `[places]`), where the rows of each place end; `place` (integers, `[n]`), the place of
/// each row, not below that of the row before, and `places` or more for rows that have none; `order` (integers, `[n]`), if
/// rows are not sorted, where each row stands; and `x` (`[n, cols]`, the dtype of the results). Outputs are `inner` (`[places, cols]`), of places whose rows
/// are in one tile; `head` and `tail` (`[tiles, cols]`), of the segment that began before a tile and the one that goes on behind it.
/// Elements that belong to no such segment are not written.
pub fn tiles(k: &Lang, op: BinaryOp, is_sorted: bool) {
    let [n, cols, places, tile] = k.sizes(["n", "cols", "places", "tile"]);
    let ends = k.input("ends", [places]);
    let place = k.input("place", [n]);
    let order = (!is_sorted).then(|| k.input("order", [n]));
    let x = k.input("x", [n, cols]);
    let inner = k.output("inner", [places, cols], x.dtype());
    let tiles = n.div_ceil(tile);
    let [head, tail] = ["head", "tail"].map(|name| k.output(name, [tiles, cols], x.dtype()));
    k.each([tiles, cols], |[t, column]| {
        let (first, none) = (t * tile, identity(k, op, x.dtype()));
        let behind = n.minimum(first + tile);
        let (sum, current) = (k.var(none), k.var(place.at(first).cast(DType::I64)));
        let keep = || {
            let (place, sum) = (current.get(), sum.get());
            k.when(place.lt(places), || {
                let [start, end] = bounds(&ends, place);
                let (began, goes_on) = (start.lt(first), end.gt(behind));
                head.set_if(began, [t, column], sum);
                tail.set_if(!began & goes_on, [t, column], sum);
                inner.set_if(!began & !goes_on, [place, column], sum);
            });
        };
        k.for_each((behind - first).div_ceil(AHEAD), |turn| {
            let rows = [0, 1, 2, 3].map(|row: i64| first + turn * AHEAD + row);
            let loaded = rows.map(|row| {
                let is_row = row.lt(n);
                let from = order
                    .as_ref()
                    .map_or(row, |order| order.at_if(is_row, row, 0).cast(DType::I64));
                (place.at_if(is_row, row, 0).cast(DType::I64), x.at_if(is_row, [from, column], 0))
            });
            for (row, (place, x)) in rows.into_iter().zip(loaded) {
                k.when(row.lt(behind), || {
                    k.when(place.ne(current.get()), || {
                        keep();
                        current.set(place);
                        sum.set(none);
                    });
                    sum.set(sum.get().binary(op, x));
                });
            }
        });
        keep();
    });
}

/// Combines what each place has with its rows, from the results of [`tiles`].
///
/// Inputs are `ends` as there, `base` (`[places, cols]`), `inner`, `head` and `tail`; the output `y` is in shape and dtype
/// of `base`. A place without rows keeps what it has.
pub fn places(k: &Lang, op: BinaryOp) {
    let [places, cols, tiles, tile] = k.sizes(["places", "cols", "tiles", "tile"]);
    let ends = k.input("ends", [places]);
    let base = k.input("base", [places, cols]);
    let inner = k.input("inner", [places, cols]);
    let [head, tail] = ["head", "tail"].map(|name| k.input(name, [tiles, cols]));
    let y = k.output("y", [places, cols], base.dtype());
    k.each([places, cols], |[place, column]| {
        let [start, end] = bounds(&ends, place);
        let result = k.var(base.at([place, column]));
        let add = |x| result.set(result.get().binary(op, x));
        k.when(start.lt(end), || {
            let [first, last] = [start / tile, (end - 1) / tile];
            k.when_else(
                first.eq(last),
                || add(inner.at([place, column])),
                || {
                    let sum = k.var(tail.at([first, column]));
                    k.for_each((last - first).div_ceil(AHEAD), |turn| {
                        let tiles = [1, 2, 3, 4].map(|t: i64| first + turn * AHEAD + t);
                        let none = identity(k, op, base.dtype());
                        let parts = tiles.map(|t| head.at_if(t.le(last), [t, column], none));
                        parts.into_iter().for_each(|part| sum.set(sum.get().binary(op, part)));
                    });
                    add(sum.get());
                },
            );
        });
        y.set([place, column], result.get());
    });
}

/// What an operation combines with a value to that value.
fn identity(k: &Lang, op: BinaryOp, dtype: DType) -> Val<'_> {
    let identity = op.identity(dtype);
    if identity.is_none() {
        k.fail(format_args!("segments are combined by associative operations, not by {op}"));
    }
    k.value(identity.map_or(0.0, Scalar::to_f64), dtype)
}
