//! Rearrangements, diagonals, grids, picking and placing by positions, indexing: every element
//! against where it has to come from.

use crate::oracle::movement::indices;
use crate::values::moderate;
use crate::{Array, Check, Rng, Val};
use zyx_core::{DType, Device, Index, Indexing, Result, ScatterReduce, Tensor};

/// An array whose elements come from positions of another; zero where there is none.
fn from(x: &Array, dims: &[usize], place: impl Fn(&[usize]) -> Option<Vec<usize>>) -> Array {
    let zero = crate::oracle::cast(Val::Int(0), DType::I64, x.dtype);
    let data = indices(dims).map(|at| place(&at).map_or(zero, |from| x.at(&from)));
    Array::new(x.dtype, dims, data.collect())
}

/// Views of a [4, 3, 5] array.
pub fn views(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let x = moderate(dtype, &[4, 3, 5], &mut Rng::new(90));
    let a = check.input(&x);
    let all = check.thorough(dtype);
    let mut equal = |name: &str,
                     got: Result<Tensor>,
                     dims: &[usize],
                     place: &dyn Fn(&[usize]) -> Option<Vec<usize>>| {
        // Another dtype of the width tries them all: here a movement each, with and without
        // elements that are filled in.
        if !all && !matches!(name, "roll" | "rot90" | "unfold" | "diag_embed" | "vstack") {
            return;
        }
        check.equal(name, got, &from(&x, dims, place));
    };
    equal("roll", a.roll([1, -2], [0, 2]), &[4, 3, 5], &|i| {
        Some(vec![(i[0] + 3) % 4, i[1], (i[2] + 2) % 5])
    });
    equal("roll flat", a.roll([7], []), &[4, 3, 5], &|i| {
        let flat = ((i[0] * 3 + i[1]) * 5 + i[2] + 53) % 60;
        Some(vec![flat / 15, flat / 5 % 3, flat % 5])
    });
    equal("rot90", a.rot90(1, [0, 2]), &[5, 3, 4], &|i| Some(vec![i[2], i[1], 4 - i[0]]));
    equal("rot90 back", a.rot90(-1, [0, 2]), &[5, 3, 4], &|i| Some(vec![3 - i[2], i[1], i[0]]));
    equal("rot90 twice", a.rot90(2, [1, 2]), &[4, 3, 5], &|i| Some(vec![i[0], 2 - i[1], 4 - i[2]]));
    equal("fliplr", a.fliplr(), &[4, 3, 5], &|i| Some(vec![i[0], 2 - i[1], i[2]]));
    equal("flipud", a.flipud(), &[4, 3, 5], &|i| Some(vec![3 - i[0], i[1], i[2]]));
    equal("tile", a.tile([2, 1]), &[4, 6, 5], &|i| Some(vec![i[0], i[1] % 3, i[2]]));
    equal("repeat_interleave", a.repeat_interleave(2, 1), &[4, 6, 5], &|i| {
        Some(vec![i[0], i[1] / 2, i[2]])
    });
    equal("movedim", a.movedim([0, 2], [1, 0]), &[5, 4, 3], &|i| Some(vec![i[1], i[2], i[0]]));
    equal("unflatten", a.unflatten(0, [2, 2]), &[2, 2, 3, 5], &|i| {
        Some(vec![i[0] * 2 + i[1], i[2], i[3]])
    });
    equal("unfold", a.unfold(2, 3, 2), &[4, 3, 2, 3], &|i| Some(vec![i[0], i[1], i[2] * 2 + i[3]]));
    equal("unfold apart", a.unfold(0, 1, 3), &[2, 3, 5, 1], &|i| Some(vec![i[0] * 3, i[1], i[2]]));
    equal("narrow", a.narrow(0, 1, 2), &[2, 3, 5], &|i| Some(vec![i[0] + 1, i[1], i[2]]));
    equal("unbind", Ok(a.unbind(1).expect("an axis")[2].clone()), &[4, 5], &|i| {
        Some(vec![i[0], 2, i[1]])
    });
    equal(
        "tensor_split",
        Ok(a.tensor_split([1, 4], 2).expect("an axis")[1].clone()),
        &[4, 3, 3],
        &|i| Some(vec![i[0], i[1], i[2] + 1]),
    );
    equal("diagonal", a.diagonal(-1, 0, 2), &[3, 3], &|i| Some(vec![i[1] + 1, i[0], i[1]]));
    equal("diagonal above", a.diagonal(2, 0, 2), &[3, 3], &|i| Some(vec![i[1], i[0], i[1] + 2]));
    equal("diag_embed", a.diag_embed(1, 0, 3), &[6, 4, 3, 6], &|i| {
        (i[3] == i[0] + 1).then(|| vec![i[1], i[2], i[0]])
    });
    equal("diag_embed below", a.diag_embed(-2, 2, 3), &[4, 3, 7, 7], &|i| {
        (i[2] == i[3] + 2).then(|| vec![i[0], i[1], i[3]])
    });
    equal("dstack", Tensor::dstack(&[&a, &a]), &[4, 3, 10], &|i| Some(vec![i[0], i[1], i[2] % 5]));
    equal("vstack", Tensor::vstack(&[&a, &a]), &[8, 3, 5], &|i| Some(vec![i[0] % 4, i[1], i[2]]));
    equal("hstack", Tensor::hstack(&[&a, &a]), &[4, 6, 5], &|i| Some(vec![i[0], i[1] % 3, i[2]]));
    let plane = a.select_index(1, 0).expect("an axis");
    equal("block_diag", Tensor::block_diag(&[&plane, &plane]), &[8, 10], &|i| {
        ((i[0] < 4) == (i[1] < 5)).then(|| vec![i[0] % 4, 0, i[1] % 5])
    });
    equal(
        "slice_scatter",
        a.slice_scatter(&a.narrow(0, 0, 2).expect("inside"), 0, 2),
        &[4, 3, 5],
        &|i| Some(vec![i[0] % 2, i[1], i[2]]),
    );
    equal("select_scatter", a.select_scatter(&plane, 1, -1), &[4, 3, 5], &|i| {
        Some(vec![i[0], if i[1] == 2 { 0 } else { i[1] }, i[2]])
    });
    let nothing = a.diagonal(0, 0, 1).expect("a plane").zeros_like();
    equal("diagonal_scatter", a.diagonal_scatter(&nothing, 0, 0, 1), &[4, 3, 5], &|i| {
        (i[0] != i[1]).then(|| i.to_vec())
    });
    check.finish();
}

/// Grids and tables of positions.
pub fn grids(device: &Device) {
    let mut check = Check::new(device);
    let x = Array::ints(DType::I32, &[3], &[1, 2, 3]);
    let y = Array::ints(DType::I32, &[2], &[7, 8]);
    let (a, b) = (check.input(&x), check.input(&y));
    let grid = |indexing| Tensor::meshgrid(&[&a, &b], indexing).map(|all| all[0].clone());
    check.equal("meshgrid", grid(Indexing::Ij), &from(&x, &[3, 2], |i| Some(vec![i[0]])));
    check.equal("meshgrid xy", grid(Indexing::Xy), &from(&x, &[2, 3], |i| Some(vec![i[1]])));
    let pairs = Array::ints(DType::I32, &[6, 2], &[1, 7, 1, 8, 2, 7, 2, 8, 3, 7, 3, 8]);
    check.equal("cartesian_prod", Tensor::cartesian_prod(&[&a, &b]), &pairs);
    let powers = Array::ints(DType::I64, &[3, 3], &[1, 1, 1, 1, 2, 4, 1, 3, 9]);
    check.equal("vander", a.vander(3, true), &powers);
    let lower = Array::ints(DType::I64, &[2, 6], &[0, 0, 1, 1, 1, 2, 0, 1, 0, 1, 2, 0]);
    let got = Tensor::tril_indices(3, 3, 1, device).and_then(|t| t.narrow(1, 0, 6));
    check.equal("tril_indices", got, &lower);
    let upper = Array::ints(DType::I64, &[2, 3], &[0, 0, 1, 1, 2, 2]);
    check.equal("triu_indices", Tensor::triu_indices(2, 3, 1, device), &upper);
    check.equal("full_like", Ok(a.full_like(7)), &Array::ints(DType::I32, &[3], &[7; 3]));
    check.finish();
}

/// Indices as NumPy understands them.
pub fn indexing(device: &Device) {
    let mut check = Check::new(device);
    let x = moderate(DType::I32, &[4, 3, 5], &mut Rng::new(91));
    let a = check.input(&x);
    let tensor = |dims: &[usize], data: &[i64]| check.input(&Array::ints(DType::I64, dims, data));
    let (r, c) = (tensor(&[2], &[3, -4]), tensor(&[3, 1], &[1, 0, -1]));
    let rows = [3, 0];
    let all: Index = (..).into();
    let mut equal =
        |name: &str, parts: &[Index], dims: &[usize], place: &dyn Fn(&[usize]) -> Vec<usize>| {
            check.equal(name, a.index(parts), &from(&x, dims, |i| Some(place(i))));
        };
    equal("position", &[1.into()], &[3, 5], &|i| vec![1, i[0], i[1]]);
    equal("range", &[(1..3).into(), (..-1).into()], &[2, 2, 5], &|i| vec![i[0] + 1, i[1], i[2]]);
    equal("steps", &[Index::Ellipsis, Index::step(None, None, -2)], &[4, 3, 3], &|i| {
        vec![i[0], i[1], 4 - 2 * i[2]]
    });
    equal("far steps", &[Index::step(Some(-9), Some(99), 3)], &[2, 3, 5], &|i| {
        vec![3 * i[0], i[1], i[2]]
    });
    let ends = [Index::NewAxis, 0.into(), Index::Ellipsis, Index::NewAxis];
    equal("new axes", &ends, &[1, 3, 5, 1], &|i| vec![0, i[1], i[2]]);
    equal("rows", &[(&r).into()], &[2, 3, 5], &|i| vec![rows[i[0]], i[1], i[2]]);
    equal("together", &[(&r).into(), (&c).into()], &[3, 2, 5], &|i| {
        vec![rows[i[1]], [1, 0, 2][i[0]], i[2]]
    });
    equal("apart", &[(&r).into(), all.clone(), (&c).into()], &[3, 2, 3], &|i| {
        vec![rows[i[1]], i[2], [1, 0, 4][i[0]]]
    });
    equal("in the middle", &[all, 1.into(), (&r).into()], &[4, 2], &|i| {
        vec![i[0], 1, [3, 1][i[1]]]
    });
    masks(&mut check, &x);
    check.finish();
}

/// Masks, what they pick and what is put where they hold.
fn masks(check: &mut Check<'_>, x: &Array) {
    let a = check.input(x);
    let holds = |v: Val| v.certain().is_some_and(|v| v > 2.0);
    let picked: Vec<Val> = x.data.iter().copied().filter(|&v| holds(v)).collect();
    let want = Array::new(DType::I32, &[picked.len()], picked);
    let mask = a.gt(2).expect("numbers compare");
    check.equal("mask", a.index(&[(&mask).into()]), &want);
    check.equal("masked_select", a.masked_select(&mask), &want);
    let places = indices(&x.dims).filter(|at| holds(x.at(at)));
    let places: Vec<i64> = places.flatten().map(|i| i as i64).collect();
    let want = Array::ints(DType::I64, &[places.len() / 3, 3], &places);
    check.equal("nonzero", mask.nonzero(), &want);
    let filled = x.map(DType::I32, |v| if holds(v) { Val::Int(-1) } else { v });
    check.equal("masked_fill", a.masked_fill(&mask, -1), &filled);
    let minus = Tensor::scalar(-1i32, check.device);
    check.equal("index_put by a mask", a.index_put(&[(&mask).into()], &minus, false), &filled);
    let mut n = 0;
    let counted = x.map(DType::I32, |v| {
        if !holds(v) {
            return v;
        }
        n += 1;
        Val::Int(n)
    });
    let numbers = Tensor::iota(60, DType::I32, check.device).add(1).expect("numbers add");
    check.equal("masked_scatter", a.masked_scatter(&mask, &numbers), &counted);
}

/// Picking by flat positions, along an axis, by search.
pub fn picking(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let x = moderate(dtype, &[4, 5], &mut Rng::new(92));
    let a = check.input(&x);
    let index = |dims: &[usize], data: &[i64]| Array::ints(DType::I64, dims, data);
    let at = check.input(&index(&[3], &[7, -1, 0]));
    check.equal(
        "take",
        a.take(&at),
        &from(&x, &[3], |i| {
            let flat = [7, 19, 0][i[0]];
            Some(vec![flat / 5, flat % 5])
        }),
    );
    let at = check.input(&index(&[1, 2], &[4, -4]));
    check.equal(
        "take_along_dim",
        a.take_along_dim(&at, Some(1)),
        &from(&x, &[4, 2], |i| Some(vec![i[0], [4, 1][i[1]]])),
    );
    let places = check.input(&index(&[2], &[6, -20]));
    let src = a.flatten().narrow(0, 1, 2);
    let got = src.and_then(|src| a.put(&places, &src, false));
    check.equal(
        "put",
        got,
        &from(&x, &[4, 5], |i| match i {
            [0, 0] => Some(vec![0, 2]),
            [1, 1] => Some(vec![0, 1]),
            _ => Some(i.to_vec()),
        }),
    );
    let bools = dtype == DType::Bool;
    let sorted = Array::whole(dtype, &[5], if bools { &[0, 0, 0, 1, 1] } else { &[0, 2, 2, 5, 9] });
    let values = Array::whole(dtype, &[4], if bools { &[0, 1, 1, 0] } else { &[2, 0, 10, 6] });
    let (s, v) = (check.input(&sorted), check.input(&values));
    let left = index(&[4], if bools { &[0, 3, 3, 0] } else { &[1, 0, 5, 4] });
    let right = index(&[4], if bools { &[3, 5, 5, 3] } else { &[3, 1, 5, 4] });
    check.equal("searchsorted", s.searchsorted(&v, false), &left);
    check.equal("searchsorted right", s.searchsorted(&v, true), &right);
    check.equal("bucketize", v.bucketize(&s, true), &right);
    check.finish();
}

/// Reductions into places, with and without what is there; sums, copies and fills along an axis.
pub fn placing(device: &Device, dtype: DType) {
    use ScatterReduce::{Amax, Amin, Mean, Prod, Sum};
    let mut check = Check::new(device).untied();
    let base = Array::whole(dtype, &[2, 4], &[1, 2, 3, 4, 5, 6, 7, 8]);
    let index = Array::ints(DType::I64, &[2, 3], &[0, 0, 2, 3, 9, 3]);
    let src = Array::whole(dtype, &[2, 3], &[4, 5, 6, 1, 9, 2]);
    // Indices out of range are no error where the caller says so: they change nothing.
    let (a, i, s) =
        (check.input(&base), check.input(&index).unchecked_indices(), check.input(&src));
    let tables: &[(ScatterReduce, [i64; 8], [i64; 8])] = &[
        (Sum, [10, 2, 9, 4, 5, 6, 7, 11], [9, 2, 6, 4, 5, 6, 7, 3]),
        (Prod, [20, 2, 18, 4, 5, 6, 7, 16], [20, 2, 6, 4, 5, 6, 7, 2]),
        (Amax, [5, 2, 6, 4, 5, 6, 7, 8], [5, 2, 6, 4, 5, 6, 7, 2]),
        (Amin, [1, 2, 3, 4, 5, 6, 7, 1], [4, 2, 6, 4, 5, 6, 7, 1]),
    ];
    for (reduce, with, without) in tables {
        for (include, want) in [(true, with), (false, without)] {
            if !include && !check.thorough(dtype) {
                continue;
            }
            let want = Array::whole(dtype, &[2, 4], want);
            let got = a.scatter_reduce(1, &i, &s, *reduce, include);
            check.equal(format!("scatter_reduce, {reduce:?}, {include}"), got, &want);
        }
    }
    let mean = a.scatter_reduce(1, &i, &s, Mean, false);
    match dtype.is_float() {
        _ if dtype == DType::Bool => check.refused("mean of bools", mean, &["scatter_reduce"]),
        true => {
            let want = Array::reals(dtype, &[2, 4], &[4.5, 2.0, 6.0, 4.0, 5.0, 6.0, 7.0, 1.5]);
            check.equal("scatter_reduce, mean", mean, &want);
        }
        false => {
            let want = Array::whole(dtype, &[2, 4], &[4, 2, 6, 4, 5, 6, 7, 1]);
            check.equal("scatter_reduce, mean", mean, &want);
        }
    }
    let rows = check.input(&Array::ints(DType::I64, &[2], &[1, 1]));
    let both = check.input(&Array::whole(dtype, &[2, 4], &[1, 1, 1, 1, 2, 2, 2, 2]));
    let added = Array::whole(dtype, &[2, 4], &[1, 2, 3, 4, 8, 9, 10, 11]);
    check.equal("index_add", a.index_add(0, &rows, &both, 1.0), &added);
    let copied = Array::whole(dtype, &[2, 4], &[1, 2, 3, 4, 2, 2, 2, 2]);
    check.equal("index_copy", a.index_copy(0, &rows, &both), &copied);
    let filled = Array::whole(dtype, &[2, 4], &[1, 2, 3, 4, 0, 0, 0, 0]);
    check.equal("index_fill", a.index_fill(0, &rows, 0), &filled);
    // An index that covers a corner of both.
    let small = check.input(&Array::ints(DType::I64, &[1, 2], &[3, 0]));
    let corner = Array::whole(dtype, &[2, 4], &[5, 2, 3, 4, 5, 6, 7, 8]);
    check.equal("scatter into a corner", a.scatter(1, &small, &s), &{
        let mut corner = corner;
        corner.data[3] = Array::whole(dtype, &[1], &[4]).data[0];
        corner
    });
    check.finish();
}
