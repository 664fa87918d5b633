//! Movement: each op over odd shapes, long random compositions, and what is refused.

use crate::values::moderate;
use crate::{Array, Check, Rng};
use zyx_core::{DType, Device, Result, Tensor};

/// One random movement applied to both sides.
fn step(rng: &mut Rng, x: &Array, a: &Tensor) -> (String, Result<Tensor>, Array) {
    let rank = x.rank();
    match rng.below(8) {
        0 => {
            let mut axes: Vec<usize> = (0..rank).collect();
            for i in (1..rank).rev() {
                axes.swap(i, rng.below(i + 1));
            }
            let signed: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
            (format!("permute {axes:?}"), a.permute(signed), x.permute(&axes))
        }
        1 => {
            let mask = rng.below(1 << rank) as u16;
            let axes: Vec<isize> =
                (0..rank as isize).filter(|axis| mask >> axis & 1 == 1).collect();
            (format!("flip {axes:?}"), a.flip(axes.as_slice()), x.flip(mask))
        }
        2 if x.numel() < 2000 => {
            let padding: Vec<_> = (0..rank).map(|_| (rng.below(3), rng.below(3))).collect();
            (format!("pad {padding:?}"), a.pad(&padding), x.pad(&padding))
        }
        3 => {
            let range = |&d: &usize| {
                let start = rng.below(d.min(2) + 1);
                (start, d - rng.below((d - start).min(2) + 1))
            };
            let ranges: Vec<_> = x.dims.iter().map(range).collect();
            (format!("shrink {ranges:?}"), a.shrink(&ranges), x.shrink(&ranges))
        }
        4 if x.dims.contains(&1) && x.numel() < 2000 => {
            let stretched = |&d: &usize| if d == 1 { 1 + rng.below(4) } else { d };
            let dims: Vec<usize> = x.dims.iter().map(stretched).collect();
            (format!("expand {dims:?}"), a.expand(dims.clone()), x.expand(&dims))
        }
        5 if rank > 0 => {
            let (axis, n) = (rng.below(rank), 1 + rng.below(3));
            let start = rng.below(x.dims[axis] + 1);
            let what = format!("stride {axis} {start} {n}");
            (what, a.stride(axis as isize, start, n), x.stride(axis, start, n))
        }
        _ => {
            let dims = reshaped(rng, x);
            (format!("reshape {dims:?}"), a.reshape(dims.clone()), x.reshape(&dims))
        }
    }
}

/// Random extents for the same number of elements.
fn reshaped(rng: &mut Rng, x: &Array) -> Vec<usize> {
    let mut rest = x.numel();
    if rest == 0 {
        return vec![1 + rng.below(3), 0, 1 + rng.below(3)];
    }
    let mut dims = Vec::new();
    for prime in [2, 3, 5, 7, 11] {
        while rest.is_multiple_of(prime) && rng.below(3) > 0 && dims.len() < 4 {
            dims.push(prime);
            rest /= prime;
        }
    }
    dims.push(rest);
    if rng.one_in(2) {
        dims.push(1);
    }
    let n = dims.len();
    dims.rotate_left(rng.below(n));
    dims
}

/// Random compositions of movements, unfused by nothing: one kernel each.
pub fn compositions(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    for seed in 0..if check.thorough(dtype) { 40 } else { 8 } {
        let mut rng = Rng::new(100 + seed);
        let dims: Vec<usize> = (0..rng.below(4)).map(|_| 1 + rng.below(6)).collect();
        let mut x = moderate(dtype, &dims, &mut rng);
        let mut a = check.input(&x);
        let mut path = format!("seed {seed}: {dims:?}");
        for _ in 0..1 + rng.below(7) {
            let (what, next, want) = step(&mut rng, &x, &a);
            path = format!("{path}, {what}");
            match next {
                Ok(next) => (a, x) = (next, want),
                Err(error) => {
                    check.fail(format!("{path}: {error}"));
                    break;
                }
            }
        }
        check.equal(path, Ok(a), &x);
    }
    check.finish();
}

/// Joining, splitting and repeating.
pub fn joining(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(40);
    let x = moderate(dtype, &[2, 3, 4], &mut rng);
    let a = check.input(&x);
    for axis in if check.thorough(dtype) { 0..3 } else { 1..2usize } {
        let mut dims = [2, 3, 4];
        dims[axis] = 5;
        let y = moderate(dtype, &dims, &mut rng);
        dims[axis] = 0;
        let z = moderate(dtype, &dims, &mut rng);
        let (b, c) = (check.input(&y), check.input(&z));
        let parts = [z.clone(), x.clone(), y.clone(), z, x.clone()];
        let got = Tensor::cat(&[&c, &a, &b, &c, &a], axis as isize);
        check.equal(format!("cat {axis}"), got, &Array::cat(&parts, axis));
        let stacked = Tensor::stack(&[&a, &a], axis as isize);
        let mut raised = x.dims.clone();
        raised.insert(axis, 1);
        let x1 = x.reshape(&raised);
        check.equal(format!("stack {axis}"), stacked, &Array::cat(&[x1.clone(), x1], axis));
        for size in [1, 2, 7] {
            let pieces = a.split(size, axis as isize).expect("the axis exists");
            for (i, piece) in pieces.into_iter().enumerate() {
                let mut ranges: Vec<_> = x.dims.iter().map(|&d| (0, d)).collect();
                ranges[axis] = (i * size, ((i + 1) * size).min(x.dims[axis]));
                check.equal(format!("split {axis} {size}"), Ok(piece), &x.shrink(&ranges));
            }
        }
    }
    let want = Array::cat(&[x.clone(), x.clone()], 1);
    let want = Array::cat(&[want.clone(), want.clone(), want], 2);
    check.equal("repeat", a.repeat([1, 2, 3]), &want);
    check.equal("t", Ok(a.t()), &x.permute(&[0, 2, 1]));
    check.equal(
        "select_index",
        a.select_index(1, -1),
        &x.shrink(&[(0, 2), (2, 3), (0, 4)]).reshape(&[2, 4]),
    );
    check.equal("flatten_axes", a.flatten_axes(0, 1), &x.reshape(&[6, 4]));
    let two = Array::whole(dtype, &[], &[1]);
    let inside =
        Array::full(DType::Bool, &x.dims, crate::Val::Int(1)).pad(&[(1, 1), (0, 0), (2, 0)]);
    let padded = inside.select(&x.pad(&[(1, 1), (0, 0), (2, 0)]), &two);
    check.equal("pad_with", a.pad_with([(1, 1), (0, 0), (2, 0)], 1.0), &padded);
    check.finish();
}

/// What does not fit is refused with the op and the shapes.
pub fn refusals(device: &Device) {
    let mut check = Check::new(device);
    let a = Tensor::zeros([2, 3], DType::F32, device);
    check.refused("reshape", a.reshape([4, 2]), &["reshape", "[2, 3]", "[4, 2]"]);
    check.refused("permute", a.permute([0, 0]), &["permute", "[2, 3]"]);
    check.refused("permute", a.permute([0, 2]), &["permute", "2"]);
    check.refused("expand", a.expand([3, 3]), &["expand", "[2, 3]", "[3, 3]"]);
    check.refused("shrink", a.shrink([(0, 3), (0, 3)]), &["shrink", "[2, 3]"]);
    check.refused("shrink", a.shrink([(1, 0), (0, 3)]), &["shrink"]);
    check.refused("pad", a.pad([(0, 1)]), &["pad"]);
    check.refused("flip", a.flip([0, -2]), &["flip", "twice"]);
    check.refused("squeeze", a.squeeze(0), &["squeeze", "[2, 3]"]);
    check.refused("slice", a.slice(1, 2..5), &["slice", "[2, 3]"]);
    check.refused("stride", a.stride(0, 0, 0), &["stride"]);
    check.refused("cat", Tensor::cat(&[], 0), &["cat"]);
    check.refused("cat", Tensor::cat(&[&a, &a.t()], 0), &["cat", "[2, 3]", "[3, 2]"]);
    check.refused("split", a.split(0, 0), &["split"]);
    check.refused("select_index", a.select_index(0, 2), &["select_index", "2"]);
    check.refused("repeat", a.repeat([1]), &["repeat"]);
    check.refused("transpose", a.transpose(0, 5), &["transpose", "5"]);
    check.finish();
}
