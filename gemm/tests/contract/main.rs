//! The contraction library against a naive sum in `f64`, over random specifications.
//!
//! Every case prints its seed when it fails; `ONLY_SEED=n` runs that case alone.
//!
//! The bound: a sum of k products in precision eps, in any order and fused or not, differs from
//! the exact one by at most (k + 2) eps times the sum of the absolute products (Higham, "Accuracy
//! and Stability of Numerical Algorithms", 2002, section 3.1, with the operands exact); adding to C
//! counts as one more product, and rounding to the type of C adds half a unit of that type.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod case;
#[cfg(unix)]
mod guarded;
mod prologue;

use case::{Case, Rng};
use zyx_gemm::pool::Pool;
use zyx_gemm::{Acc, ContractError, DType, Dim, Isa, Options, Plan, Spec, estimate_ns};

/// Gives the dimensions of one operand strides: dense in a random order, now and then padded, and,
/// unless it is the result, broadcast, flipped or overlapping.
fn lay_out(dims: &mut [(usize, &mut isize)], result: bool, rng: &mut Rng) {
    rng.shuffle(dims);
    let mut stride = 1;
    for (len, at) in dims {
        if rng.one_in(12) {
            stride += rng.below(5) as isize;
        }
        **at = stride;
        stride *= (*len).max(1) as isize;
        if rng.one_in(8) {
            **at = -**at;
        } else if !result {
            match rng.below(10) {
                0 => **at = 0,
                1 => **at = 1 + rng.below(3) as isize,
                _ => {}
            }
        }
    }
}

/// A group of up to three dimensions; `most` bounds their product roughly.
fn group(most: usize, rng: &mut Rng) -> Vec<Dim> {
    let mut left = most;
    (0..rng.below(4))
        .map(|_| {
            let len = if rng.one_in(40) { 0 } else { 1 + rng.below(left) };
            left = (left / len.max(1)).max(1);
            Dim { len, a: 0, b: 0, c: 0 }
        })
        .collect()
}

fn random_spec(rng: &mut Rng) -> Spec {
    let acc = rng.pick(&[Acc::F32, Acc::F32, Acc::F64]);
    let all = [DType::F16, DType::BF16, DType::F32, DType::F64];
    let operand = |rng: &mut Rng| match acc {
        Acc::F32 if !rng.one_in(4) => DType::F32,
        Acc::F32 => rng.pick(&all[..3]),
        Acc::F64 if !rng.one_in(3) => DType::F64,
        _ => rng.pick(&all),
    };
    let (a, b) = (operand(rng), operand(rng));
    let c = if rng.one_in(3) { rng.pick(&all) } else { acc.dtype() };
    let sizes = rng.pick(&[[3, 20, 20, 20], [2, 60, 110, 40], [1, 12, 200, 90], [1, 90, 6, 700]]);
    let mut spec = Spec {
        a,
        b,
        acc,
        c,
        batch: group(sizes[0], rng),
        m: group(sizes[1], rng),
        n: group(sizes[2], rng),
        k: group(sizes[3], rng),
    };
    let fields: [(_, fn(&mut Dim) -> &mut isize); 3] =
        [("bmk", |d| &mut d.a), ("bnk", |d| &mut d.b), ("bmn", |d| &mut d.c)];
    for (groups, field) in fields {
        let Spec { batch, m, n, k, .. } = &mut spec;
        let all = [('b', batch), ('m', m), ('n', n), ('k', k)];
        let of_operand = all.into_iter().filter(|(name, _)| groups.contains(*name));
        let dims = of_operand.flat_map(|(_, dims)| dims.iter_mut());
        let mut dims: Vec<_> = dims.map(|d| (d.len, field(d))).collect();
        lay_out(&mut dims, groups == "bmn", rng);
    }
    spec
}

/// Checks specifications of random dimensions and strides, as `change` leaves them.
fn check_random(n: u64, change: impl Fn(&mut Spec)) {
    let pool = Pool::new(Some(3));
    let only = std::env::var("ONLY_SEED").ok().and_then(|s| s.parse().ok());
    let n = if cfg!(debug_assertions) { n } else { 5 * n };
    for seed in only.map_or(0..n, |s| s..s + 1) {
        let run = || {
            let mut rng = Rng(seed);
            let mut spec = random_spec(&mut rng);
            change(&mut spec);
            Case::new(spec, &mut rng).check(&pool);
        };
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
            panic!("seed {seed}");
        }
    }
}

#[test]
fn random_specifications_match_the_naive_sum() {
    check_random(600, |_| ());
}

/// Factors that some machines multiply two at a time, along odd numbers of steps, too.
#[test]
fn random_products_of_bf16_match_the_naive_sum() {
    check_random(300, |spec| {
        (spec.a, spec.b, spec.acc) = (DType::BF16, DType::BF16, Acc::F32);
    });
    let mut rng = Rng(1);
    for orientation in 0..8 {
        let [ta, tb, tc] = [1, 2, 4].map(|bit| orientation & bit != 0);
        let spec = product([150, 130, 1051], ta, tb, tc);
        let spec = Spec { a: DType::BF16, b: DType::BF16, ..spec };
        Case::new(spec, &mut rng).check(&Pool::new(Some(2)));
    }
}

/// Tiles of all heights and widths that any processor has, along numbers of steps that leave any rest.
#[test]
fn tiles_of_bf16_of_every_size_match_the_naive_sum() {
    let (pool, mut rng) = (Pool::new(Some(1)), Rng(1));
    for case in 0..9 * 13 * 7 {
        let sizes = [case % 9 + 1, case / 9 % 13 + 1, case / (9 * 13) + 1];
        let [ta, tb, tc] = [1, 2, 4].map(|bit| case & bit != 0);
        let spec = product(sizes, ta, tb, tc);
        let spec = Spec { a: DType::BF16, b: DType::BF16, ..spec };
        Case::new(spec, &mut rng).check(&pool);
    }
}

#[test]
fn pairs_of_bf16_are_multiplied_at_once_where_the_machine_can() {
    let uses = |dtype, isa| {
        let options = Options { isa, ..Options::default() };
        let plan = Plan::new(&Spec::matmul(dtype, 64, 64, 64), &options).unwrap();
        format!("{plan:?}").contains("products: Bf16")
    };
    #[cfg(target_arch = "x86_64")]
    let can = Isa::Avx512.is_available() && is_x86_feature_detected!("avx512bf16");
    #[cfg(target_arch = "aarch64")]
    let can = std::arch::is_aarch64_feature_detected!("bf16");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let can = false;
    assert_eq!(uses(DType::BF16, None), can);
    assert!(!uses(DType::F16, None) && !uses(DType::BF16, Some(Isa::Portable)));
}

/// The signs of factors that `i` numbers.
fn bytes(spec: Spec, i: usize) -> Spec {
    let dtype = |bit| if i & bit == 0 { DType::I8 } else { DType::U8 };
    Spec { a: dtype(1), b: dtype(2), acc: Acc::I32, c: DType::I32, ..spec }
}

#[test]
fn random_products_of_bytes_match_the_naive_sum() {
    for signs in 0..4 {
        check_random(100, |spec| *spec = bytes(spec.clone(), signs));
    }
    let mut rng = Rng(1);
    for orientation in 0..8 {
        let [ta, tb, tc] = [1, 2, 4].map(|bit| orientation & bit != 0);
        let spec = bytes(product([150, 130, 1051], ta, tb, tc), orientation % 4);
        Case::new(spec, &mut rng).check(&Pool::new(Some(2)));
    }
}

/// Tiles of all heights and widths that any processor has, along numbers of steps that leave any rest.
#[test]
fn tiles_of_bytes_of_every_size_match_the_naive_sum() {
    let (pool, mut rng) = (Pool::new(Some(1)), Rng(1));
    for case in 0..9 * 13 * 9 {
        let sizes = [case % 9 + 1, case / 9 % 13 + 1, case / (9 * 13) + 1];
        let [ta, tb, tc] = [1, 2, 4].map(|bit| case & bit != 0);
        let spec = bytes(product(sizes, ta, tb, tc), case % 4);
        Case::new(spec, &mut rng).check(&pool);
    }
}

/// Tiles of matrix registers, of every height and with any rest along k.
#[test]
fn large_tiles_of_bytes_match_the_naive_sum() {
    let (pool, mut rng) = (Pool::new(Some(1)), Rng(1));
    for case in 0..100 {
        let sizes = [16 + case % 50, 1 + rng.below(70), 1 + rng.below(200)];
        let [ta, tb, tc] = [1, 2, 4].map(|bit| case & bit != 0);
        let spec = bytes(product(sizes, ta, tb, tc), rng.below(4));
        Case::new(spec, &mut rng).check(&pool);
    }
}

/// Matrix registers belong to a thread, and here two contractions take turns on one.
#[test]
fn an_epilogue_may_run_a_contraction_of_bytes() {
    let pool = Pool::new(Some(1));
    let case = Case::new(bytes(product([70, 900, 300], false, false, false), 1), &mut Rng(1));
    let options = Options { threads: Some(1), epilogue: true, ..Options::default() };
    let plan = Plan::new(&case.spec, &options).unwrap();
    let inner = Plan::new(&Spec::matmul(DType::I8, 40, 20, 80), &Options::default()).unwrap();
    let (a, b) = (vec![-128_i8; 40 * 80], vec![127_i8; 80 * 20]);
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let write = |tile: zyx_gemm::Tile, c: *mut u8| {
        calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut sums = vec![0; 40 * 20];
        inner.run_slices(&pool, (&a[..], &b[..], &mut sums[..]), [0; 3], false).unwrap();
        assert!(sums.iter().all(|&sum| sum == 80 * -128 * 127));
        for i in 0..tile.m_len {
            for j in 0..tile.n_len {
                let (from, to) = (i * tile.row_stride + j, (tile.m0 + i) * 900 + tile.n0 + j);
                // SAFETY: the tile has these sums, and C this element, which one thread writes.
                unsafe { *c.cast::<i32>().add(to) = *tile.ptr.cast::<i32>().add(from) };
            }
        }
    };
    let c = case.run(&plan, &pool, false, Some(&write));
    case.compare(&c, &case.expected(false), "nested");
    assert!(calls.into_inner() > 1);
}

/// Sums of the largest products overflow after 33,026 of them.
#[test]
fn sums_of_bytes_wrap() {
    let (pool, k) = (Pool::new(Some(2)), 70_000);
    for signs in 0..4 {
        let spec = bytes(product([3, 17, k], false, false, false), signs);
        for extremes in 0..4 {
            let mut case = Case::new(spec.clone(), &mut Rng(1));
            for (side, dtype) in [spec.a, spec.b].into_iter().enumerate() {
                let (low, high) = if dtype == DType::I8 { (-128.0, 127.0) } else { (0.0, 255.0) };
                let x = if extremes >> side & 1 == 0 { low } else { high };
                (0..case.operands[side].len()).for_each(|i| case.operands[side].set(i, x));
            }
            case.check(&pool);
        }
    }
}

/// A specification of `f32` with the given dimensions.
fn f32_spec(batch: &[Dim], m: &[Dim], n: &[Dim], k: &[Dim]) -> Spec {
    Spec {
        a: DType::F32,
        b: DType::F32,
        acc: Acc::F32,
        c: DType::F32,
        batch: batch.to_vec(),
        m: m.to_vec(),
        n: n.to_vec(),
        k: k.to_vec(),
    }
}

/// A product of matrices whose operands are stored transposed or not.
fn product([m, n, k]: [usize; 3], ta: bool, tb: bool, tc: bool) -> Spec {
    let strides = |transposed, rows, columns: usize| match transposed {
        false => (columns as isize, 1),
        true => (1, rows as isize),
    };
    let (a, b, c) = (strides(ta, m, k), strides(tb, k, n), strides(tc, m, n));
    f32_spec(&[], &[Dim::m(m, a.0, c.0)], &[Dim::n(n, b.1, c.1)], &[Dim::k(k, a.1, b.0)])
}

#[test]
fn products_larger_than_a_block_in_every_orientation() {
    let pool = Pool::new(Some(2));
    let mut rng = Rng(1);
    for (i, sizes) in [[530, 150, 450], [70, 1030, 130], [40, 50, 5000]].into_iter().enumerate() {
        for orientation in 0..8 {
            // All eight for one size, half of them for the others: the naive sum is slow.
            if i == 0 || orientation % 2 == i % 2 {
                let [ta, tb, tc] = [1, 2, 4].map(|bit| orientation & bit != 0);
                Case::new(product(sizes, ta, tb, tc), &mut rng).check(&pool);
            }
        }
    }
}

/// Sizes at which two threads are better off packing B together before their tasks: if the model
/// says otherwise one day, this test needs other sizes.
#[test]
fn operands_packed_for_all_tasks() {
    let pool = Pool::new(Some(2));
    let options = Options { threads: Some(2), ..Options::default() };
    let spec = product([512, 96, 128], false, true, false);
    let plan = Plan::new(&spec, &options).unwrap();
    let shared = format!("{plan:?}").contains("shared: true");
    assert!(shared || Isa::detect() != Isa::Avx512, "{plan:?}");
    Case::new(spec, &mut Rng(5)).check(&pool);
}

#[test]
fn powers_of_two() {
    let pool = Pool::new(Some(2));
    Case::new(product([256, 192, 1024], false, false, false), &mut Rng(2)).check(&pool);
    Case::new(product([192, 1024, 64], false, true, false), &mut Rng(3)).check(&pool);
}

/// Convolution of images with c channels, height and width h, o filters of size w.
#[test]
fn convolutions_and_their_gradients() {
    let pool = Pool::new(Some(2));
    let mut rng = Rng(4);
    for [images, c, o, h, w] in [[2, 3, 10, 12, 3], [1, 1, 20, 9, 2], [3, 4, 5, 20, 5]] {
        let [ci, oi, hi, wi] = [c, o, h, w].map(|x: usize| x as isize);
        let (out, outi) = (h - w + 1, hi - wi + 1);
        let (image, filter) = (ci * hi * hi, ci * wi * wi);
        let window = [Dim::k(c, wi * wi, hi * hi), Dim::k(w, wi, hi), Dim::k(w, 1, 1)];
        let forward = f32_spec(
            &[Dim::batch(images, 0, image, oi * outi * outi)],
            &[Dim::m(o, filter, outi * outi)],
            &[Dim::n(out, hi, outi), Dim::n(out, 1, 1)],
            &window,
        );
        Case::new(forward, &mut rng).check(&pool);
        let padded = outi + 2 * (wi - 1);
        let data = f32_spec(
            &[Dim::batch(images, 0, oi * padded * padded, image)],
            &[Dim::m(c, wi * wi, hi * hi)],
            &[Dim::n(h, padded, hi), Dim::n(h, 1, 1)],
            &[Dim::k(o, filter, padded * padded), Dim::k(w, wi, -padded), Dim::k(w, 1, -1)],
        );
        Case::new(data, &mut rng).check(&pool);
        let weights = f32_spec(
            &[],
            &[Dim::m(o, outi * outi, filter)],
            &[Dim::n(c, hi * hi, wi * wi), Dim::n(w, hi, wi), Dim::n(w, 1, 1)],
            &[Dim::k(images, oi * outi * outi, image), Dim::k(out, outi, hi), Dim::k(out, 1, 1)],
        );
        Case::new(weights, &mut rng).check(&pool);
    }
    assert!(case::PREPACKED.load(std::sync::atomic::Ordering::Relaxed) > 0);
}

#[test]
fn an_empty_sum_is_zero_and_an_empty_result_is_left_alone() {
    let pool = Pool::new(Some(2));
    let mut rng = Rng(5);
    Case::new(product([70, 90, 0], false, false, false), &mut rng).check(&pool);
    Case::new(product([0, 9, 5], false, false, false), &mut rng).check(&pool);
    Case::new(product([9, 0, 5], false, false, false), &mut rng).check(&pool);
    Case::new(product([1, 1, 1], false, false, false), &mut rng).check(&pool);
    // Any groups may be empty at once.
    for empty in 0..16 {
        let len = |bit| if empty & bit == 0 { 48 } else { 0 };
        let spec = Spec {
            batch: vec![Dim::batch(len(8), 48 * 48, 48 * 48, 48 * 48)],
            ..product([len(1), len(2), len(4)], false, true, false)
        };
        let plan = |spec: &Spec| Plan::new(spec, &Options::default()).map(drop);
        assert_eq!([plan(&spec), plan(&bytes(spec.clone(), empty))], [Ok(()), Ok(())]);
    }
}

#[test]
fn results_do_not_depend_on_the_order_of_tasks() {
    let pool = Pool::new(Some(3));
    let spec = product([60, 60, 6000], true, false, false);
    let case = Case::new(spec, &mut Rng(6));
    let plan = Plan::new(&case.spec, &Options { threads: Some(3), ..Options::default() }).unwrap();
    let first = case.run(&plan, &pool, false, None);
    for _ in 0..50 {
        assert_eq!(case.run(&plan, &pool, false, None).words, first.words);
    }
}

#[test]
fn slices_are_checked() {
    let pool = Pool::new(Some(1));
    let plan = |spec: &Spec| Plan::new(spec, &Options::default()).unwrap();
    let product = plan(&Spec::matmul(DType::F32, 2, 2, 2));
    let (a, b) = ([1.0_f32, 2.0, 3.0, 4.0], [5.0_f32, 6.0, 7.0, 8.0]);
    let mut c = [0.0_f32; 4];
    product.run_slices(&pool, (&a, &b, &mut c), [0; 3], false).unwrap();
    assert_eq!(c, [19.0, 22.0, 43.0, 50.0]);
    product.run_slices(&pool, (&a, &b, &mut c), [0; 3], true).unwrap();
    assert_eq!(c, [38.0, 44.0, 86.0, 100.0]);

    let refused = |result| assert!(matches!(result, Err(ContractError::Operand { .. })));
    refused(product.run_slices(&pool, (&a[..3], &b, &mut c), [0; 3], false));
    refused(product.run_slices(&pool, (&a, &b, &mut c), [0, 1, 0], false));
    refused(product.run_slices(&pool, (&a, &b, &mut c), [0, 0, usize::MAX], false));
    refused(product.run_slices(&pool, (&a, &[5.0_f64; 4], &mut c), [0; 3], false));
    let flipped = f32_spec(&[], &[Dim::m(2, 2, 2)], &[Dim::n(2, -1, 1)], &[Dim::k(2, 1, 2)]);
    refused(plan(&flipped).run_slices(&pool, (&a, &b, &mut c), [0; 3], false));
    plan(&flipped).run_slices(&pool, (&a, &b, &mut c), [0, 1, 0], false).unwrap();
    assert_eq!(c, [22.0, 19.0, 50.0, 43.0]);
    let shared = f32_spec(&[], &[Dim::m(2, 2, 0)], &[Dim::n(2, 1, 1)], &[Dim::k(2, 1, 2)]);
    refused(plan(&shared).run_slices(&pool, (&a, &b, &mut c), [0; 3], false));
}

#[test]
fn bad_specifications_are_errors() {
    let new = |spec: &Spec| Plan::new(spec, &Options::default()).map(|_| ());
    let mut spec = Spec::matmul(DType::F64, 2, 2, 2);
    spec.acc = Acc::F32;
    let precision = ContractError::Precision { operand: DType::F64, acc: Acc::F32 };
    assert_eq!(new(&spec), Err(precision));
    let bytes = Spec::matmul(DType::I8, 2, 2, 2);
    assert_eq!((bytes.acc, bytes.c, new(&bytes)), (Acc::I32, DType::I32, Ok(())));
    for (a, b, acc, c) in [
        (DType::I8, DType::F32, Acc::I32, DType::I32),
        (DType::I32, DType::I8, Acc::I32, DType::I32),
        (DType::I8, DType::U8, Acc::I32, DType::F32),
        (DType::I8, DType::U8, Acc::I32, DType::I8),
        (DType::I8, DType::U8, Acc::F32, DType::F32),
        (DType::F32, DType::F32, Acc::F32, DType::I32),
        (DType::F32, DType::F32, Acc::I32, DType::I32),
    ] {
        let types = ContractError::Types { a, b, acc, c };
        assert_eq!(new(&Spec { a, b, acc, c, ..bytes.clone() }), Err(types));
    }
    let computed = Options { computed: Some(1), ..Options::default() };
    let refused = Plan::new(&bytes, &computed).map(|_| ());
    assert_eq!(refused, Err(ContractError::Computed { side: 1 }));
    let mut spec = Spec::matmul(DType::F32, 2, 2, 2);
    spec.k[0].c = 1;
    let foreign = ContractError::ForeignStride { group: "k", dim: 0, operand: "C" };
    assert_eq!(new(&spec), Err(foreign));
    let huge = Dim::m(usize::MAX / 2, 0, 1);
    let too_large = new(&f32_spec(&[], &[huge, huge], &[], &[]));
    assert_eq!(too_large, Err(ContractError::TooLarge { what: "m" }));
    let far = Dim::k(3, isize::MAX, 1);
    let too_large = new(&f32_spec(&[], &[], &[], &[far]));
    assert_eq!(too_large, Err(ContractError::TooLarge { what: "A" }));
    let plan = Plan::new(&Spec::matmul(DType::F32, 1, 1, 1), &Options::default()).unwrap();
    let pool = Pool::new(Some(1));
    let (a, b, mut c) = ([1.0_f32], [2.0_f32], [0.0_f32]);
    let at = (a.as_ptr().cast(), b.as_ptr().cast(), c.as_mut_ptr().cast());
    // SAFETY: one element of each.
    let refused = unsafe { plan.run(&pool, at, false, Some(&|_| {})) };
    assert_eq!(refused, Err(ContractError::Epilogue));
    let computed = Options { computed: Some(2), ..Options::default() };
    let refused = Plan::new(&Spec::matmul(DType::F32, 1, 1, 1), &computed).map(|_| ());
    assert_eq!(refused, Err(ContractError::Computed { side: 2 }));
    let computed = Options { computed: Some(0), ..Options::default() };
    let refused = Plan::new(&Spec::matmul(DType::F16, 1, 1, 1), &computed).map(|_| ());
    assert_eq!(refused, Err(ContractError::Computed { side: 0 }));
    let plan = Plan::new(&Spec::matmul(DType::F32, 1, 1, 1), &computed).unwrap();
    // SAFETY: one element of each.
    let refused = unsafe { plan.run(&pool, at, false, None) };
    assert_eq!(refused, Err(ContractError::Prologue { needed: true }));
}

#[test]
fn estimates_grow_with_the_work_and_shrink_with_threads() {
    let ns = |n, threads| estimate_ns(&Spec::matmul(DType::F32, n, n, n), threads).unwrap();
    let sizes = [16, 64, 256, 1024, 2048];
    assert!(sizes.windows(2).all(|s| ns(s[0], 1) < ns(s[1], 1)));
    assert!(ns(1024, 4) < 0.4 * ns(1024, 1));
}
