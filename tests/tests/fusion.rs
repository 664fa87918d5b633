//! How many kernels computations take. Canonical layers, forwards and backwards, are in
//! `zyx_tests::counts`, for every backend.

mod common;

use common::device;
use zyx_tests::zyx_core::{
    Conv2dOptions, DType, Device, Float8, QuantizedMatrix, Result, Rng, Tensor, testing,
};

/// Random numbers, computed, that gradients can be asked for.
fn random(dims: &[usize], device: &Device) -> Tensor {
    let x = Tensor::randn(dims, DType::F32, &mut Rng::seed(dims.len() as u64), device);
    let x = x.expect("a shape").contiguous();
    x.realize().expect("memory");
    x.tracked()
}

/// Launches and temporaries of computing `tensors` together.
fn cost(device: &Device, tensors: &[&Tensor]) -> (u64, u64) {
    let before = device.stats();
    Tensor::realize_all(tensors.iter().copied()).expect("the device computes");
    let stats = device.stats().since(&before);
    (stats.launches, stats.temps)
}

/// Weights of few bits become numbers inside of the product, with a vector, as in generating text, by
/// the loops that read each once, with a matrix by the CPU's library as it packs them: nothing of the
/// wide matrix's size is stored.
#[test]
fn weights_of_few_bits_are_widened_in_the_product() -> Result<()> {
    let device = device();
    let (rows, columns) = (512, 1024);
    let weight = random(&[rows, columns], &device).detach();
    for batch in [1, 4, 64] {
        let x = random(&[batch, columns], &device).detach();
        let codes = weight.encode_float8(Float8::E4M3);
        codes.realize()?;
        let mut products = vec![("float8", x.matmul(&codes.decode_float8(Float8::E4M3)?.t())?)];
        for (name, bits) in [("four bits", 4), ("eight bits", 8)] {
            products.push((name, QuantizedMatrix::new(&weight, bits, 64)?.matmul(&x)?));
        }
        for (name, y) in products {
            device.synchronize()?;
            device.reset_peak();
            let before = device.stats();
            let launches = cost(&device, &[&y]).0;
            let grown = device.stats().peak_bytes - before.live_bytes;
            let wide = (4 * rows * columns) as u64;
            // Of four bits the vector's elements for either half of the bytes are parted first.
            let parts = batch == 1 && name == "four bits";
            assert_eq!(launches, 1 + u64::from(parts), "{name} of a batch of {batch}");
            let product = (4 * batch * rows) as u64;
            assert!(grown < wide / 100 + product, "{name} of a batch of {batch}: {grown} bytes");
        }
    }
    Ok(())
}

/// What follows a layer is computed once, though windows of the next read each element more than once.
#[test]
fn what_windows_read_is_computed_once() -> Result<()> {
    let device = device();
    let [x, wide, deep] =
        [[1, 8, 12, 12], [16, 8, 1, 1], [16, 1, 3, 3]].map(|d| random(&d, &device));
    let bias = random(&[16, 1, 1], &device);
    let before = x.conv2d(&wide, None, Conv2dOptions::default())?.add(&bias)?.clamp(-0.5, 0.5)?;
    for stride in [1, 2] {
        let options = Conv2dOptions {
            stride: [stride; 2],
            padding: [1; 2],
            groups: 16,
            ..Conv2dOptions::default()
        };
        let kernels = testing::kernels(&[&before.conv2d(&deep, None, options)?]);
        let clamped: Vec<bool> = kernels.iter().map(|k| k.to_string().contains("max")).collect();
        assert_eq!(clamped, [true, false], "stride {stride}");
    }
    Ok(())
}

/// A value of which all users need a slice is computed by them, however large the whole is.
#[test]
fn slices_compute_what_they_need() -> Result<()> {
    let device = device();
    let table = random(&[97], &device).detach();
    let all = Tensor::arange(0i64, 1 << 40, 1, &device)?.remainder(97)?;
    let all = table.index_select(0, &all)?.exp().pad_with([(5, 0)], -1.0)?;
    let slices = [0usize, 1 << 33, (1 << 40) + 1].map(|at| all.slice(0, at..at + 4));
    let slices = slices.into_iter().collect::<Result<Vec<_>>>()?;
    assert_eq!(cost(&device, &slices.iter().collect::<Vec<_>>()).1, 0, "temporaries");
    let want = table.exp().to_vec::<f32>()?;
    assert_eq!(slices[0].to_vec::<f32>()?, [-1.0; 4]);
    for (slice, at) in slices[1..].iter().zip([1usize << 33, (1 << 40) + 1]) {
        let want: Vec<f32> = (at - 5..at - 1).map(|i| want[i % 97]).collect();
        assert_eq!(slice.to_vec::<f32>()?, want);
    }
    Ok(())
}

/// Adam over parameters of many shapes, gradients being there.
#[test]
fn an_optimizer_updates_all_parameters_in_one_launch() -> Result<()> {
    let device = device();
    for n in [1, 2, 10, 100] {
        let mut updates = Vec::new();
        for i in 0..n {
            let dims = [3 + i % 7, 5 * (1 + i % 3), 1 + i];
            let [p, g, m, v] = [0; 4].map(|_| random(&dims, &device).detach());
            let m = m.mul(0.9)?.add(g.mul(0.1)?)?;
            let v = v.mul(0.999)?.add(g.square().mul(0.001)?)?;
            updates.extend([p.sub(m.div(v.sqrt().add(1e-8)?)?)?, m, v]);
        }
        assert_eq!(cost(&device, &updates.iter().collect::<Vec<_>>()), (1, 0), "{n} parameters");
    }
    Ok(())
}

/// The whole step of a small network by gradient descent: two layers forwards, the loss in two, its
/// mean, the hidden layer backwards, and all gradients with the updates of all parameters.
#[test]
fn a_training_step_is_few_launches() -> Result<()> {
    let device = device();
    let x = random(&[32, 48], &device).detach();
    let [w1, b1] = [random(&[48, 24], &device), random(&[24], &device)];
    let [w2, b2] = [random(&[24, 10], &device), random(&[10], &device)];
    let y = Tensor::from_slice(&(0..32).map(|i| i % 10).collect::<Vec<i64>>(), [32], &device)?;
    let loss = x.matmul(&w1)?.add(&b1)?.relu().matmul(&w2)?.add(&b2)?.cross_entropy(&y)?;
    let params = [&w1, &b1, &w2, &b2];
    let mut results = vec![loss.clone()];
    for (p, g) in params.iter().zip(loss.grad(&params)?) {
        results.push(p.detach().sub(g.expect("every parameter is used").mul(0.1)?)?);
    }
    let (launches, _) = cost(&device, &results.iter().collect::<Vec<_>>());
    assert!(launches <= 7, "{launches}");
    Ok(())
}
