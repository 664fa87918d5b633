//! The random streams: the published generator, and what is drawn from its words.
//!
//! Words are exact on every device, so all draws but normal numbers are compared bit by bit with
//! draws made here from the words on the host.

use crate::oracle::reduce::accumulator;
use crate::{Array, Check, Val};
use zyx_core::{BinaryOp, DType, Device, Rng, Tensor, UnaryOp};

/// The words of `n` blocks from where `rng` is.
fn words(rng: &Rng, n: usize) -> Vec<[u32; 2]> {
    let mut rng = rng.clone();
    let block = |_| {
        let bits = rng.next_u64();
        [(bits >> 32) as u32, bits as u32]
    };
    (0..n).map(block).collect()
}

/// Streams near a carry of the counter and from a seed.
fn streams() -> [Rng; 2] {
    [Rng::at([7, 9], (5 << 32) - 100), Rng::seed(0x1234_5678_9abc_def0)]
}

/// Whole blocks on the device: the known answers of the authors of Threefry2x32, and the host's.
pub fn blocks(device: &Device) {
    let mut check = Check::new(device);
    // All integers but the largest: that is every word but one, less 2^63.
    let draw = |dims: &[usize], rng: &mut Rng| {
        Tensor::randint(i64::MIN, i64::MAX, dims, DType::I64, rng, device)
    };
    let whole = |[x, y]: [u32; 2]| (((x as u64) << 32 | y as u64) ^ (1 << 63)) as i64;
    // The known-answer file of Random123 (Salmon et al. 2011), 20 rounds.
    for (key, counter, answer) in [
        ([0, 0], [0, 0], [0x6b20_0159, 0x99ba_4efe]),
        ([u32::MAX; 2], [u32::MAX; 2], [0x1cb9_96fc, 0xbb00_2be7]),
        ([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3], [0xc492_3a9c, 0x483d_f7a0u32]),
    ] {
        let mut rng = Rng::at(key, (counter[1] as u64) << 32 | counter[0] as u64);
        let want = Array::ints(DType::I64, &[1], &[whole(answer)]);
        check.equal(format!("block {counter:x?} of {key:x?}"), draw(&[1], &mut rng), &want);
    }
    for mut rng in streams() {
        let want: Vec<i64> = words(&rng, 210).into_iter().map(whole).collect();
        let start = rng.clone();
        let got = draw(&[7, 30], &mut rng);
        check.equal("a block of blocks", got, &Array::ints(DType::I64, &[7, 30], &want));
        check.that(rng.counter() == start.counter().wrapping_add(210), "a block per element");
        // Two draws continue where one would.
        let mut parts = start;
        let first = draw(&[11], &mut parts);
        check.equal("a first draw", first, &Array::ints(DType::I64, &[11], &want[..11]));
        let second = draw(&[199], &mut parts);
        check.equal("a second draw", second, &Array::ints(DType::I64, &[199], &want[11..]));
    }
    check.finish();
}

/// Uniform numbers, dropout and normal numbers of a float dtype.
pub fn floats(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    for start in streams() {
        let n = 500;
        let drawn = words(&start, n);
        let rng = || start.clone();
        let unit = |[x, y]: [u32; 2]| match dtype {
            DType::F64 => ((x >> 5) as f64 * 67_108_864.0 + (y >> 6) as f64) / 2f64.powi(53),
            DType::F16 => (x >> 21) as f64 / 2048.0,
            DType::BF16 => (x >> 24) as f64 / 256.0,
            _ => (x >> 8) as f64 / 2f64.powi(24),
        };
        let units: Vec<f64> = drawn.iter().copied().map(unit).collect();
        let units = Array::reals(dtype, &[n], &units);
        check.identical("rand", Tensor::rand([n], dtype, &mut rng(), device), &units);
        let got = Tensor::rand_range(-2.0, 3.0, [n], dtype, &mut rng(), device);
        let [span, low] = [5.0, -2.0].map(|x| Array::reals(dtype, &[], &[x]));
        check.equal("rand_range", got, &units.product(&span).binary(BinaryOp::Add, &low));

        let threshold = (0.3 * 2f64.powi(24)).round() as u32;
        let dropped = drawn.iter().map(|[x, _]| Val::Int((x >> 8 < threshold) as i128)).collect();
        let dropped = Array::new(DType::Bool, &[n], dropped);
        let x =
            Array::reals(dtype, &[n], &(0..n).map(|i| i as f64 / 64.0 + 1.0).collect::<Vec<_>>());
        let [zero, scale] = [0.0, 1.0 / (1.0 - 0.3)].map(|x| Array::reals(dtype, &[], &[x]));
        let want = dropped.select(&zero, &x.binary(BinaryOp::Mul, &scale));
        check.equal("dropout", check.input(&x).dropout(0.3, &mut rng()), &want);
        let rate = dropped.floats().iter().sum::<f64>() / n as f64;
        // Four standard deviations of a mean of so many.
        let spread = 4.0 * (0.3 * 0.7 / n as f64).sqrt();
        check.that((rate - 0.3).abs() < spread, format!("{rate} of the elements are dropped"));

        let got = Tensor::randn([n], dtype, &mut rng(), device);
        check.equal("randn", got, &normal(dtype, &drawn));
    }
    check.finish();
}

/// Normal numbers by the transform of Box and Muller, in the oracle's ops.
fn normal(dtype: DType, drawn: &[[u32; 2]]) -> Array {
    let wide = accumulator(dtype);
    let bits = if wide == DType::F64 { 32 } else { 24 };
    let top = |i: usize| -> Vec<f64> {
        drawn.iter().map(|word| (word[i] >> (32 - bits)) as f64).collect()
    };
    let number = |x: f64| Array::reals(wide, &[], &[x]);
    let of = |i: usize| Array::reals(wide, &[drawn.len()], &top(i));
    let scale = 2f64.powi(-bits);
    let u = of(0).binary(BinaryOp::Add, &number(1.0)).binary(BinaryOp::Mul, &number(scale));
    let radius = u.unary(UnaryOp::Log).binary(BinaryOp::Mul, &number(-2.0)).unary(UnaryOp::Sqrt);
    let angle = of(1).binary(BinaryOp::Mul, &number(std::f64::consts::TAU * scale));
    radius.binary(BinaryOp::Mul, &angle.unary(UnaryOp::Cos)).cast(dtype)
}

/// Integers of a range in every integer dtype, and coins.
pub fn integers(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    for start in streams() {
        let n = 300;
        let drawn = words(&start, n);
        let low = if dtype.is_signed() { -5 } else { 3 };
        for high in [100, low + 1] {
            let value = |[x, y]: &[u32; 2]| {
                let word = (*x as u64) << 32 | *y as u64;
                low + (word % (high - low) as u64) as i64
            };
            let want: Vec<i64> = drawn.iter().map(value).collect();
            let got = Tensor::randint(low, high, [n], dtype, &mut start.clone(), device);
            check.equal(format!("randint {low} .. {high}"), got, &Array::ints(dtype, &[n], &want));
        }
    }
    check.finish();
}

/// Coins: true as often as asked for, at the words where the host says.
pub fn coins(device: &Device) {
    let mut check = Check::new(device);
    for start in streams() {
        let drawn = words(&start, 400);
        // The last falls on a word drawn, which is not below itself.
        for p in [0.0, 0.25, 0.9, 1.0, (drawn[17][0] >> 8) as f64 / 2f64.powi(24)] {
            let threshold = (p * 2f64.powi(24)).round() as u32;
            let want = drawn.iter().map(|[x, _]| Val::Int((x >> 8 < threshold) as i128)).collect();
            let want = Array::new(DType::Bool, &[20, 20], want);
            let got = Tensor::bernoulli(p, [20, 20], &mut start.clone(), device);
            check.equal(format!("coins of {p}"), got, &want);
        }
    }
    check.finish();
}
