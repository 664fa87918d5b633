//! Creation: constants, ranges, identity, triangles, data in and out.

use crate::values::mixed;
use crate::{Array, Check, Val, oracle};
use zyx_core::{DType, Device, Tensor};

/// Zeros, ones, ranges, the identity and triangles of a dtype.
pub fn constants(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    for dims in [&[][..], &[0], &[3], &[2, 3]] {
        let n = dims.iter().product();
        let zeros = Array::whole(dtype, dims, &vec![0; n]);
        check.identical("zeros", Ok(Tensor::zeros(dims, dtype, device)), &zeros);
        let ones = Array::whole(dtype, dims, &vec![1; n]);
        check.equal("ones", Ok(Tensor::ones(dims, dtype, device)), &ones);
        let a = check.input(&ones);
        check.equal("zeros_like", Ok(a.zeros_like()), &zeros);
    }
    for n in [0usize, 5, 200, 1] {
        if !check.thorough(dtype) && n == 1 {
            continue;
        }
        let count: Vec<i64> = (0..n as i64).collect();
        let want = Array::ints(DType::I64, &[n], &count).cast(dtype);
        check.equal(format!("iota {n}"), Ok(Tensor::iota(n, dtype, device)), &want);
        let eye: Vec<i64> = (0..n * n).map(|i| (i / n.max(1) == i % n.max(1)) as i64).collect();
        let want = Array::whole(dtype, &[n, n], &eye);
        check.equal(format!("eye {n}"), Ok(Tensor::eye(n, dtype, device)), &want);
    }
    let x = Array::whole(dtype, &[2, 3, 4], &(0..24).map(|i| i % 7 + 1).collect::<Vec<_>>());
    let a = check.input(&x);
    for diagonal in [-4, -1, 0, 1, 5] {
        let part = |lower: bool| {
            let mut out = x.clone();
            for (i, v) in out.data.iter_mut().enumerate() {
                let above = (i % 4) as i64 - (i / 4 % 3) as i64;
                if (lower && above > diagonal) || (!lower && above < diagonal) {
                    *v = oracle::cast(Val::Int(0), DType::I64, dtype);
                }
            }
            out
        };
        check.equal(format!("tril {diagonal}"), a.tril(diagonal), &part(true));
        check.equal(format!("triu {diagonal}"), a.triu(diagonal), &part(false));
    }
    check.finish();
}

/// Every element comes back as it went in.
pub fn round_trip(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let x = mixed(dtype, 100, 30);
    check.identical("data", Ok(check.input(&x)), &x);
    let bytes = check.input(&x).to_bytes().expect("the device reads");
    let again = Tensor::from_bytes(&bytes, dtype, x.dims.clone(), device);
    check.identical("bytes", again, &x);
    check.refused("wrong length", Tensor::from_bytes(&bytes, dtype, [1], device), &["[1]"]);
    check.finish();
}

/// Nested data, ranges, numbers, and what is refused.
pub fn data(device: &Device) {
    let mut check = Check::new(device);
    let x = Tensor::new([[[1i16, 2], [3, 4], [5, 6]]], device);
    check.equal("nested", x, &Array::ints(DType::I16, &[1, 3, 2], &[1, 2, 3, 4, 5, 6]));
    check.equal("scalar", Tensor::new(2.5f64, device), &Array::reals(DType::F64, &[], &[2.5]));
    let empty: Vec<Vec<f32>> = vec![vec![], vec![]];
    check.equal("empty", Tensor::new(empty, device), &Array::reals(DType::F32, &[2, 0], &[]));
    let ragged = vec![vec![1u8, 2], vec![3]];
    check.refused("ragged", Tensor::new(ragged, device), &["ragged"]);
    let range = Tensor::arange(3i32, 11, 2, device);
    check.equal("arange", range, &Array::ints(DType::I32, &[4], &[3, 5, 7, 9]));
    let down = Tensor::arange(1.0f32, -0.25, -0.5, device);
    check.equal("arange down", down, &Array::reals(DType::F32, &[3], &[1.0, 0.5, 0.0]));
    check.refused("arange step 0", Tensor::arange(0i32, 1, 0, device), &["arange"]);
    check.refused("arange away", Tensor::arange(0i32, -5, 1, device), &["arange"]);
    let full = Tensor::full([2], 7u8, device);
    check.equal("full", Ok(full.clone()), &Array::ints(DType::U8, &[2], &[7, 7]));
    check.refused("to_vec of another dtype", full.to_vec::<f32>(), &["u8", "f32"]);
    check.refused("item of two", full.item::<u8>(), &["2"]);
    let space = Tensor::linspace(-1.0, 1.0, 5, device);
    let want = Array::reals(DType::F32, &[5], &[-1.0, -0.5, 0.0, 0.5, 1.0]);
    check.equal("linspace", Ok(space), &want);
    check.finish();
}
