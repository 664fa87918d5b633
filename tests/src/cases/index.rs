//! Picking and placing by index tensors, with unchecked indices out of range in both directions.

use crate::values::moderate;
use crate::{Array, Check, Rng, Val, oracle};
use zyx_core::{DType, Device};

/// Random indices in and around `0 .. extent`, as far as the dtype reaches.
fn indices(dtype: DType, dims: &[usize], extent: usize, rng: &mut Rng) -> Array {
    let (low, high) = oracle::int_range(dtype);
    let index = |_| match rng.below(12) {
        0 => Val::Int(low.max(-1)),
        1 => Val::Int(low),
        2 => Val::Int(high),
        3 => Val::Int((extent as i128).min(high)),
        _ => Val::Int((rng.below(extent.max(1)) as i128).min(high)),
    };
    let data = (0..dims.iter().product()).map(index).collect();
    Array::new(dtype, dims, data)
}

/// Gathers along each axis.
pub fn gather(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(70);
    for (dims, picked) in [
        (&[7usize][..], &[11usize][..]),
        (&[4, 5], &[3, 2]),
        (&[0], &[3]),
        (&[3, 4], &[0, 4]),
        (&[4, 5], &[4, 9]),
        (&[2, 3, 5], &[2, 3, 1]),
    ] {
        if !check.thorough(dtype) && matches!(picked, [4, 9] | [2, 3, 1]) {
            continue;
        }
        let x = moderate(dtype, dims, &mut rng);
        let axis = dims.len() - 1;
        let index = indices(DType::I64, picked, dims[axis], &mut rng);
        let got = check.input(&x).gather(axis as isize, &check.input(&index).unchecked_indices());
        check.equal(format!("gather {dims:?} {picked:?}"), got, &x.gather(axis, &index));
        let (mut p, mut q) = (dims.to_vec(), picked.to_vec());
        p.reverse();
        q.reverse();
        let (x, index) = (x.reshape(&p), index.reshape(&q));
        let got = check.input(&x).gather(0, &check.input(&index).unchecked_indices());
        check.equal(format!("gather {p:?} {q:?} along 0"), got, &x.gather(0, &index));
    }
    check.finish();
}

/// Rows, columns and embeddings by index vectors of every integer dtype.
pub fn select(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(71);
    let x = moderate(dtype, &[6, 5], &mut rng);
    let a = check.input(&x);
    let few = !check.thorough(dtype);
    for kind in check.dtypes().filter(|d| d.is_int()) {
        if few && !matches!(kind, DType::I64 | DType::U8) {
            continue;
        }
        let index = indices(kind, &[9], 5, &mut rng);
        let i = check.input(&index).unchecked_indices();
        for axis in 0..2usize {
            let want = x.gather(axis, &x.along(axis, &index));
            let what = format!("index_select {axis} by {kind}");
            check.equal(what, a.index_select(axis as isize, &i), &want);
        }
        let index = index.reshape(&[3, 1, 3]);
        let want = x.gather(0, &x.along(0, &index.reshape(&[9]))).reshape(&[3, 1, 3, 5]);
        check.equal(
            format!("embedding by {kind}"),
            a.embedding(&check.input(&index).unchecked_indices()),
            &want,
        );
    }
    let float = check.input(&moderate(DType::F32, &[3], &mut rng));
    check.refused("float indices", a.index_select(0, &float), &["index_select", "f32"]);
    check.refused("a matrix of indices", a.index_select(0, &a.cast(DType::I64)), &["[6, 5]"]);
    check.finish();
}

/// Scatters, overwriting and adding, with repeated places.
pub fn scatter(device: &Device, dtype: DType) {
    let mut check = Check::new(device).untied();
    let mut rng = Rng::new(72);
    for (dims, axis, n) in [
        (&[7usize][..], 0usize, 20usize),
        (&[4, 5], 1, 9),
        (&[5], 0, 0),
        (&[4, 5], 0, 3),
        (&[2, 3, 4], 1, 6),
    ] {
        if !check.thorough(dtype) && matches!(n, 3 | 6) {
            continue;
        }
        let base = moderate(dtype, dims, &mut rng);
        let mut moved = dims.to_vec();
        moved[axis] = n;
        let src = moderate(dtype, &moved, &mut rng);
        let index = indices(DType::I64, &moved, dims[axis], &mut rng);
        let (a, i, s) =
            (check.input(&base), check.input(&index).unchecked_indices(), check.input(&src));
        let got = a.scatter(axis as isize, &i, &s);
        check.equal(
            format!("scatter {dims:?} {axis}"),
            got,
            &base.scatter(axis, false, &index, &src),
        );
        let got = a.scatter_add(axis as isize, &i, &s);
        let want = base.scatter(axis, true, &index, &src);
        check.equal(format!("scatter_add {dims:?} {axis}"), got, &want);
    }
    check.finish();
}

/// Scatters of one row that is split into pieces, whole and with a rest: sums with many duplicates,
/// extremes, and a place that no update reaches. Rows added along either axis, most of them to one place.
pub fn long_scatters(device: &Device, dtype: DType) {
    let mut check = Check::new(device).untied();
    let thorough = check.thorough(dtype);
    let mut rng = Rng::new(73);
    // One scatter of each dtype also where kernels are dear.
    for (dims, n) in [(&[37usize][..], 1usize << 14), (&[2, 9], 16_411)] {
        let axis = dims.len() - 1;
        let base = moderate(dtype, dims, &mut rng);
        let mut moved = dims.to_vec();
        moved[axis] = n;
        let src = moderate(dtype, &moved, &mut rng);
        let index = indices(DType::I64, &moved, dims[axis], &mut rng);
        let (a, i, s) =
            (check.input(&base), check.input(&index).unchecked_indices(), check.input(&src));
        let got = a.scatter_add(axis as isize, &i, &s);
        let want = base.scatter(axis, true, &index, &src);
        check.equal(format!("scatter_add of {n} to {dims:?}"), got, &want);
        if !thorough {
            break;
        }
        // Of numbers an extreme is the same whatever the order.
        let reduce = zyx_core::ScatterReduce::Amax;
        let got = a.scatter_reduce(axis as isize, &i, &s, reduce, true);
        check.equal(
            format!("scatter_reduce of {n} to {dims:?}, largest"),
            got,
            &largest(&base, &index, &src),
        );
    }
    for (dims, axis) in [([5usize, 3], 0), ([3, 5], 1)] {
        let (places, n) = (dims[axis], 5000);
        let base = moderate(dtype, &dims, &mut rng);
        let mut moved = dims;
        moved[axis] = n;
        let src = moderate(dtype, &moved, &mut rng);
        let places: Vec<i64> =
            (0..n).map(|i| if i % 7 < 5 { 1 } else { (i % places) as i64 }).collect();
        let of_element = |at: usize| places[if axis == 0 { at / moved[1] } else { at % n }];
        let whole: Vec<i64> = (0..src.data.len()).map(of_element).collect();
        let index = Array::ints(DType::I64, &moved, &whole);
        let vector = check.input(&Array::ints(DType::I64, &[n], &places));
        let got = check.input(&base).index_add(axis as isize, &vector, &check.input(&src), 1.0);
        check.equal(
            format!("index_add of {n} rows along {axis}"),
            got,
            &base.scatter(axis, true, &index, &src),
        );
        if !thorough {
            break;
        }
    }
    if dtype == DType::F32 {
        // What is added nowhere stays as it is, its sign too.
        let base = check.input(&Array::new(dtype, &[2], vec![Val::point(-0.0); 2]));
        let index = check.input(&Array::ints(DType::I64, &[1 << 14], &[1; 1 << 14]));
        let ones = check.input(&Array::new(dtype, &[1 << 14], vec![Val::point(1.0); 1 << 14]));
        let sums = base.scatter_add(0, &index, &ones).and_then(|y| y.to_vec::<f32>());
        let right = sums.is_ok_and(|y| y[0].to_bits() == (-0f32).to_bits() && y[1] == 16384.0);
        check.that(right, "minus zero stays");
    }
    check.finish();
}

/// The largest of each place's element and its updates along the last axis.
fn largest(base: &Array, index: &Array, src: &Array) -> Array {
    let (mut data, extent) = (base.data.clone(), base.dims[base.dims.len() - 1]);
    let n = src.dims[src.dims.len() - 1];
    for (at, (&x, &place)) in src.data.iter().zip(&index.data).enumerate() {
        let Val::Int(place) = place else { unreachable!("invariant: indices are integers") };
        let Some(place) = usize::try_from(place).ok().filter(|&p| p < extent) else { continue };
        let old = &mut data[at / n * extent + place];
        let above = match (x, *old) {
            (Val::Int(x), Val::Int(y)) => x > y,
            (x, y) => x.certain() > y.certain(),
        };
        if above {
            *old = x;
        }
    }
    Array::new(base.dtype, &base.dims, data)
}

/// One-hot rows, with classes out of range.
pub fn one_hot(device: &Device) {
    let mut check = Check::new(device);
    for dtype in check.dtypes().filter(|d| d.is_int()) {
        let x = Array::ints(dtype, &[2, 3], &[0, 1, 2, 5, -1, 100]);
        check.equal(dtype, check.input(&x).unchecked_indices().one_hot(4), &x.one_hot(4));
    }
    check.finish();
}
