//! Many elements, and many axes. Places that 32 bits do not count are met without the memory that
//! they would name: by slicing what is computed or expanded, of which little is asked for.

use crate::values::moderate;
use crate::{Array, Check, Rng};
use zyx_core::{BinaryOp, DType, Device, Result, Tensor};

/// Elements of what is never stored.
const FAR: usize = 1 << 40;

/// Rows of a small table, and how often each is repeated.
const ROWS: usize = 97;
const WIDTH: usize = FAR / ROWS;

/// Where four elements each are asked for: around what 31, 32 and more bits count, and at the end.
const PLACES: [usize; 4] = [(1 << 31) - 2, (1 << 32) - 2, (5 << 32) - 3, ROWS * WIDTH - 4];

/// A vector whose elements are far apart in 40 bits, as a function of all numbers below 2^40.
struct View {
    what: &'static str,
    of: fn(&Tensor, &Tensor) -> Result<Tensor>,
    want: fn(usize) -> i64,
}

/// What the table holds.
fn row(i: usize) -> i64 {
    (i * i) as i64 - 40 * i as i64
}

const VIEWS: &[View] = &[
    View { what: "as they are", of: |all, _| Ok(all.clone()), want: |i| i as i64 },
    View { what: "flipped", of: |all, _| all.flip(0), want: |i| (FAR - 1 - i) as i64 },
    View {
        what: "transposed",
        of: |all, _| all.reshape([1 << 10, 1 << 30])?.t().flatten_axes(0, 1),
        want: |i| ((i % (1 << 10)) * (1 << 30) + i / (1 << 10)) as i64,
    },
    View {
        what: "padded",
        of: |all, _| all.pad_with([(1 << 33, 0)], -1.0),
        want: |i| i as i64 - (1 << 33).min(i as i64 + 1),
    },
    View {
        what: "computed",
        of: |all, _| all.mul(3)?.sub(FAR as i64),
        want: |i| 3 * i as i64 - FAR as i64,
    },
    View {
        what: "expanded",
        of: |_, table| table.unsqueeze(1)?.expand([ROWS, WIDTH])?.flatten_axes(0, 1),
        want: |i| row(i / WIDTH),
    },
    View {
        what: "looked up",
        of: |all, table| table.index_select(0, &all.remainder(ROWS as i64)?),
        want: |i| row(i % ROWS),
    },
];

/// What is computed or expanded has elements at places that 32 bits do not count.
pub fn far(device: &Device) {
    let mut check = Check::new(device).untied();
    let rows: Vec<i64> = (0..ROWS).map(row).collect();
    let table = check.input(&Array::ints(DType::I64, &[ROWS], &rows));
    let picks: Vec<i64> = PLACES.iter().map(|&at| at as i64).collect();
    let picks = check.input(&Array::ints(DType::I64, &[PLACES.len()], &picks));
    let all = match Tensor::arange(0i64, FAR as i64, 1, device) {
        Ok(all) => all,
        Err(error) => {
            check.fail(format!("arange to 2^40: {error}"));
            return check.finish();
        }
    };
    for view in VIEWS {
        let want = |places: &[usize]| {
            let values: Vec<i64> = places.iter().map(|&at| (view.want)(at)).collect();
            Array::ints(DType::I64, &[places.len()], &values)
        };
        for at in PLACES {
            let four = || (view.of)(&all, &table)?.slice(0, at..at + 4);
            check.equal(
                format!("{} from {at}", view.what),
                four(),
                &want(&[at, at + 1, at + 2, at + 3]),
            );
        }
        let picked = || (view.of)(&all, &table)?.index_select(0, &picks);
        check.equal(format!("{}, at an index", view.what), picked(), &want(&PLACES));
    }
    check.finish();
}

/// Eight axes: movement, broadcasting, reductions, running sums, places.
pub fn eight_axes(device: &Device, dtype: DType) {
    let mut check = Check::new(device).untied();
    let mut rng = Rng::new(88);
    let x = moderate(dtype, &[2, 1, 3, 2, 1, 2, 2, 3], &mut rng);
    let a = check.input(&x);
    let order = [7usize, 2, 0, 5, 3, 1, 6, 4];
    check.equal("permute", a.permute(order.map(|axis| axis as isize)), &x.permute(&order));
    check.equal("flip", a.flip([0, 2, -1]), &x.flip(1 | 1 << 2 | 1 << 7));
    let around = [(0, 1), (1, 0), (0, 0), (0, 0), (1, 1), (0, 0), (0, 1), (0, 0)];
    check.equal("pad", a.pad(around), &x.pad(&around));
    let inner = [(1, 2), (0, 1), (1, 3), (0, 2), (0, 1), (0, 1), (0, 2), (2, 3)];
    check.equal("shrink", a.shrink(inner), &x.shrink(&inner));
    check.equal("cat", Tensor::cat(&[&a, &a], 4), &Array::cat(&[x.clone(), x.clone()], 4));
    // Axes of extent 1 on either side.
    let y = moderate(dtype, &[1, 1, 2, 2, 1, 3], &mut rng);
    let b = check.input(&y);
    check.equal("maximum", a.maximum(&b), &x.binary(BinaryOp::Max, &y));
    for axes in [&[0isize, 3, 7][..], &[1, 2, 4, 5, 6], &[0, 1, 2, 3, 4, 5, 6, 7]] {
        let mask = axes.iter().fold(0u16, |mask, axis| mask | 1 << axis);
        check.equal(format!("sum over {axes:?}"), a.sum(axes), &x.sum(mask, false));
        check.equal(
            format!("max over {axes:?}"),
            a.max_keepdim(axes),
            &x.reduce(BinaryOp::Max, mask, true),
        );
    }
    check.equal("cummax", a.cummax(2).map(|(values, _)| values), &x.scan(BinaryOp::Max, 2, false));
    let at = Array::ints(
        DType::I64,
        &[2, 1, 2, 2, 1, 2, 2, 3],
        &(0..96).map(|i| i * 7 % 3).collect::<Vec<_>>(),
    );
    let index = check.input(&at);
    check.equal("gather", a.gather(2, &index), &x.gather(2, &at));
    check.finish();
}
