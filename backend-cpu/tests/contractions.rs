//! Random sums of products, with what comes before and after them, on the CPU and by the interpreter; and weights that
//! are packed once, changed in place, and read again.
//!
//! `ONLY_SEED=n` runs one case.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use zyx_backend_cpu::{Config, Cpu};
use zyx_core::{DType, Device, Jit, Result, Runtime, Tensor};
use zyx_tests::Rng;

fn devices() -> [Device; 2] {
    static DEVICES: OnceLock<[Device; 2]> = OnceLock::new();
    let open = || {
        let runtime = Runtime::default();
        runtime.register(Cpu { config: Config { threads: Some(2), ..Config::default() } });
        [runtime.device("cpu").unwrap(), runtime.device("reference").unwrap()]
    };
    DEVICES.get_or_init(open).clone()
}

/// Integers of 8 bits of any size, the extremes among them, or small numbers whose sums are exact.
fn values(dtype: DType, dims: &[usize], rng: &mut Rng, device: &Device) -> Tensor {
    let n: usize = dims.iter().product();
    let (low, high) = match dtype {
        DType::I8 => (-128, 127),
        DType::U8 => (0, 255),
        _ => (-8, 8),
    };
    let one = |_| match rng.below(8) {
        0 => low,
        1 => high,
        _ => rng.range(low, high),
    };
    let all: Vec<i32> = (0..n).map(one).map(|x| x as i32).collect();
    let tensor = Tensor::from_slice(&all, dims.to_vec(), device).unwrap().cast(dtype);
    tensor.realize().unwrap();
    tensor
}

/// A tensor of these extents that is a view of another: axes in another order, parts of longer ones, backwards,
/// repeated, or with zeros around.
fn view(dtype: DType, dims: &[usize], rng: &mut Rng, device: &Device) -> Result<Tensor> {
    let rank = dims.len();
    let mut order: Vec<usize> = (0..rank).collect();
    if rng.one_in(2) {
        (1..rank).rev().for_each(|i| order.swap(i, rng.below(i + 1)));
    }
    // By axis of the base: what is done to it, and how long it is then.
    let mut base = Vec::new();
    let mut steps: Vec<(usize, usize, usize)> = Vec::new();
    for &axis in &order {
        let n = dims[axis];
        let (kind, by) = (rng.below(12), 1 + rng.below(3));
        steps.push((kind, by, n));
        base.push(match kind {
            0 => n + by + 1,
            1 => 1,
            2 if n > by => n - by,
            3 => n * (by + 1),
            _ => n,
        });
    }
    let mut x = values(dtype, &base, rng, device);
    for (axis, &(kind, by, n)) in steps.iter().enumerate() {
        let along = axis as isize;
        let mut shape = x.shape().to_vec();
        x = match kind {
            0 => x.slice(along, by..by + n)?,
            1 => {
                shape[axis] = n;
                x.broadcast_to(shape)?
            }
            2 if n > by => {
                let mut pads = vec![(0, 0); rank];
                pads[axis] = (by / 2, by - by / 2);
                x.pad(pads)?
            }
            3 => {
                let mut apart = shape.clone();
                apart.splice(axis..=axis, [n, by + 1]);
                let at = rng.below(by + 1);
                x.reshape(apart)?.slice(along + 1, at..at + 1)?.squeeze(along + 1)?
            }
            4 | 5 => x.flip(along)?,
            _ => x,
        };
    }
    let back: Vec<isize> =
        (0..rank).map(|axis| order.iter().position(|&of| of == axis).unwrap() as isize).collect();
    x.permute(back)
}

/// What follows a product of `[.., m, n]`.
fn followed(mut y: Tensor, rng: &mut Rng, device: &Device) -> Result<Tensor> {
    let dims = y.shape().to_vec();
    let (rank, n) = (dims.len(), dims[dims.len() - 1]);
    for _ in 0..rng.below(4) {
        let dtype = y.dtype();
        let part = |axes: &[usize]| -> Vec<usize> {
            (0..rank).map(|i| if axes.contains(&i) { dims[i] } else { 1 }).collect()
        };
        y = match rng.below(8) {
            0 => y.add(values(dtype, &[n], rng, device))?,
            1 => y.add(values(dtype, &part(&[rank - 2]), rng, device))?,
            2 => y.sub(values(dtype, &dims, rng, device))?,
            3 => y.mul(values(dtype, &part(&[0]), rng, device))?,
            4 => y.clamp(-100, 100)?,
            5 => y.cast(DType::F32).mul(0.25)?.round().cast(dtype),
            6 => y.relu(),
            _ => y.mul(3)?,
        };
    }
    Ok(match rng.below(7) {
        0 => y.transpose(-1, -2)?,
        1 => y.cast(DType::I8),
        2 => y.sum(-1)?,
        3 => y.clamp(0, 255)?.cast(DType::U8),
        4 => y.max(-2)?,
        _ => y,
    })
}

/// A sum of products, the same for a seed on each device.
fn product(rng: &mut Rng, device: &Device) -> Result<Vec<Tensor>> {
    let all = [DType::I8, DType::U8];
    let kinds = if rng.one_in(6) { [DType::F32; 2] } else { [*rng.pick(&all), *rng.pick(&all)] };
    let wide = if kinds[0] == DType::F32 { DType::F32 } else { DType::I32 };
    let size = |rng: &mut Rng| *rng.pick(&[1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 48, 65, 70]);
    let (m, n, k) = (size(rng), size(rng), size(rng));
    let batch = 1 + rng.below(4);
    let long = rng.one_in(3);
    let batches: [&[usize]; 2] = match rng.below(6) {
        0 => [&[batch], &[batch]],
        1 => [&[batch], &[]],
        2 => [&[], &[batch]],
        3 if long => [&[], &[40]],
        3 => [&[2, 1], &[2, batch]],
        _ => [&[], &[]],
    };
    let form = rng.below(5);
    let [a, b] = [0, 1].map(|side| {
        let inner = if side == 0 { [m, k] } else { [k, n] };
        [batches[side], &inner].concat()
    });
    let side = |dtype, dims: &[usize], rng: &mut Rng| -> Result<Tensor> {
        let x = view(dtype, dims, rng, device)?;
        Ok(match rng.below(8) {
            0 => x.cast(wide).sub(values(wide, &[], rng, device))?,
            1 => x.cast(wide).mul(2)?,
            _ => x.cast(wide),
        })
    };
    let (x, y) = (side(kinds[0], &a, rng)?, side(kinds[1], &b, rng)?);
    let product = match form {
        0 => x.unsqueeze(-1)?.mul(&y.unsqueeze(-3)?)?.sum(-2)?.cast(wide),
        1 if a.len() == 2 && b.len() == 2 => Tensor::einsum("ij,jk->ik", &[&x, &y])?,
        _ => x.matmul(&y)?,
    };
    Ok(vec![followed(product, rng, device)?])
}

/// A convolution of bytes, likewise.
fn convolution(rng: &mut Rng, device: &Device) -> Result<Vec<Tensor>> {
    use zyx_core::Conv2dOptions;
    let all = [DType::I8, DType::U8];
    let kinds = [*rng.pick(&all), *rng.pick(&all)];
    let groups = *rng.pick(&[1, 1, 1, 2, 3]);
    let (images, c, o) =
        (1 + rng.below(3), groups * (1 + rng.below(5)), groups * (1 + rng.below(9)));
    let kernel = [1 + rng.below(3), 1 + rng.below(3)];
    let extent = |rng: &mut Rng| 6 + rng.below(9);
    let image = [images, c, extent(rng), extent(rng)];
    let x = view(kinds[0], &image, rng, device)?.cast(DType::I32);
    let w = view(kinds[1], &[o, c / groups, kernel[0], kernel[1]], rng, device)?.cast(DType::I32);
    let two = |rng: &mut Rng, least: usize, n: usize| [least + rng.below(n), least + rng.below(n)];
    let options = Conv2dOptions {
        stride: two(rng, 1, 2),
        padding: two(rng, 0, 2),
        dilation: two(rng, 1, 2),
        groups,
    };
    let y = x.conv2d(&w, None, options)?;
    Ok(vec![followed(y, rng, device)?])
}

fn check(n: u64, make: fn(&mut Rng, &Device) -> Result<Vec<Tensor>>) {
    let only = std::env::var("ONLY_SEED").ok().and_then(|s| s.parse().ok());
    let [cpu, reference] = devices();
    for seed in only.map_or(0..n, |s| s..s + 1) {
        let bytes = |device: &Device| -> Vec<Vec<u8>> {
            let all =
                make(&mut Rng::new(seed), device).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            // Which of two zeros is the larger is left open.
            let one = |y: &Tensor| match y.dtype() {
                DType::F32 => {
                    Ok(y.to_vec::<f32>()?.iter().flat_map(|x| (x + 0.0).to_le_bytes()).collect())
                }
                _ => y.to_bytes(),
            };
            all.iter().map(|y| one(y).unwrap_or_else(|e| panic!("seed {seed}: {e}"))).collect()
        };
        assert!(bytes(&cpu) == bytes(&reference), "seed {seed}");
    }
}

#[test]
fn random_products_are_those_of_the_interpreter() {
    check(if cfg!(debug_assertions) { 60 } else { 600 }, product);
}

#[test]
fn random_convolutions_of_bytes_are_those_of_the_interpreter() {
    check(if cfg!(debug_assertions) { 30 } else { 300 }, convolution);
}

/// Numbers that their owner may change while they are lent.
struct Lent(Box<[AtomicU32]>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: atomic numbers are as many bytes, which nobody changes while somebody reads them.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), 4 * self.0.len()) }
    }
}

/// Whatever happens to a weight, the next product is one of the weight as it is then: weights that stay are read from
/// packed copies.
#[test]
fn products_follow_their_weights() {
    const M: usize = 256;
    const K: usize = 512;
    const N: usize = 32;
    let [cpu, _] = devices();
    let n = if cfg!(debug_assertions) { 4 } else { 20 };
    for seed in 0..n {
        let rng = &mut Rng::new(seed);
        let dtype = *rng.pick(&[DType::F32, DType::I8]);
        let wide = if dtype == DType::F32 { DType::F32 } else { DType::I32 };
        let numbers =
            |rng: &mut Rng| -> Vec<i32> { (0..M * K).map(|_| rng.range(-3, 3) as i32).collect() };
        let fresh = |all: &[i32]| {
            let w = Tensor::from_slice(all, [M, K], &cpu).unwrap().cast(dtype);
            w.realize().unwrap();
            w
        };
        let x: Vec<i32> = (0..K * N).map(|_| rng.range(-3, 3) as i32).collect();
        let image = Tensor::from_slice(&x, [K, N], &cpu).unwrap().cast(dtype);
        image.realize().unwrap();
        let jit = Jit::new(move |x: &[Tensor]| {
            let y = x[0].cast(wide).matmul(&x[1].cast(wide))?;
            Ok(vec![y.add(1)?])
        });
        let lent: Arc<Lent> = Arc::new(Lent((0..M * K).map(|_| AtomicU32::new(0)).collect()));
        let shared = dtype == DType::F32;
        let mut all: Vec<Vec<i32>> = (0..2).map(|_| numbers(rng)).collect();
        let mut weights: Vec<Tensor> = all.iter().map(|all| fresh(all)).collect();
        if shared {
            all.push(vec![0; M * K]);
            let owner: Arc<Lent> = lent.clone();
            weights.push(Tensor::from_shared(owner, DType::F32, [M, K], &cpu).unwrap());
        }
        for step in 0..24 {
            let at = rng.below(weights.len());
            let is_lent = at == 2;
            match rng.below(8) {
                0 if is_lent => {
                    all[at] = numbers(rng);
                    for (to, &from) in lent.0.iter().zip(&all[at]) {
                        to.store((from as f32).to_bits(), Relaxed);
                    }
                }
                // In the memory of the old one.
                0 | 1 if !is_lent => {
                    let next = weights[at].mul(2).unwrap().sub(1).unwrap().fmod(7).unwrap();
                    let next = next.cast(dtype);
                    let mut old = vec![weights.remove(at)];
                    Tensor::realize_replacing([&next], &mut old).unwrap();
                    weights.insert(at, next);
                    all[at].iter_mut().for_each(|x| *x = (*x * 2 - 1) % 7);
                }
                // In memory that another had.
                2 if !is_lent => {
                    all[at] = numbers(rng);
                    drop(weights.remove(at));
                    weights.insert(at, fresh(&all[at]));
                }
                // An update in the plan of a product.
                3 if !is_lent => {
                    let product = weights[at].cast(wide).matmul(&image.cast(wide)).unwrap();
                    let next = weights[at].neg();
                    let mut old = vec![weights.remove(at)];
                    Tensor::realize_replacing([&product, &next], &mut old).unwrap();
                    weights.insert(at, next);
                    all[at].iter_mut().for_each(|x| *x = -*x);
                }
                _ => {}
            }
            let w = &weights[at];
            let product = match rng.below(3) {
                0 => jit.call(&[w, &image]).unwrap().remove(0).sub(1).unwrap(),
                1 => w.cast(wide).matmul(&image.cast(wide)).unwrap(),
                _ => {
                    w.cast(wide).matmul(&image.cast(wide)).unwrap().mul(3).unwrap().div(3).unwrap()
                }
            };
            let got: Vec<f32> = product.cast(DType::F32).to_vec().unwrap();
            for _ in 0..64 {
                let (i, j) = (rng.below(M), rng.below(N));
                let sum: i32 = (0..K).map(|k| all[at][i * K + k] * x[k * N + j]).sum();
                assert_eq!(got[i * N + j], sum as f32, "seed {seed}, step {step}, weight {at}");
            }
        }
    }
}
