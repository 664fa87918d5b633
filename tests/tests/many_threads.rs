//! What is planned for a large GPU, interpreted: results, and that no kernel leaves it idle.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use zyx_nn::{Init, Lstm, Module, RecurrentOptions};
use zyx_tests::cases::{index, reduce};
use zyx_tests::zyx_core::hal::Caps;
use zyx_tests::zyx_core::ir::{Access, Kernel, LoopKind, Op, ParamInfo};
use zyx_tests::zyx_core::reference::Reference;
use zyx_tests::zyx_core::{
    Conv2dOptions, DType, DTypeSet, Device, Reduction, Result, Runtime, ScatterReduce, Tensor,
    testing, tune,
};

const THREADS: usize = 132 * 2048;

fn caps() -> Caps {
    let mut caps = Reference::default().caps;
    (caps.simt, caps.masked, caps.vector_bytes) = (true, true, 16);
    (caps.threads, caps.max_local, caps.shared_bytes) = (THREADS, 1024, 48 << 10);
    caps.subgroup = (32, 32);
    let integers = DTypeSet::of(&[DType::I32, DType::U32, DType::I64, DType::U64]);
    (caps.atomics, caps.atomic_add) = (integers, integers);
    caps
}

fn device() -> Device {
    let runtime = Runtime::default();
    runtime.register(Reference { caps: caps(), ..Reference::default() });
    runtime.device("reference").unwrap()
}

#[test]
fn scatters_of_many_updates() {
    let device = device();
    for dtype in [DType::F32, DType::F16, DType::I32, DType::U32, DType::I64] {
        index::long_scatters(&device, dtype);
    }
}

#[test]
fn long_reductions_and_scans() {
    let device = device();
    for dtype in [DType::F32, DType::I32] {
        reduce::long(&device, dtype);
        reduce::cumulative(&device, dtype);
    }
}

/// Sums by place with places outside, places that get all, some or no updates, and gradients.
#[test]
fn sums_by_place_are_those_of_the_host() -> Result<()> {
    let device = device();
    for (n, places, columns) in
        [(20_000, 1000, 1), (17_000, 1, 1), (16_384, 20_000, 1), (16_500, 77, 3)]
    {
        let at: Vec<i64> =
            (0..n * columns).map(|i| ((i * 7919 + i / 13) % (places + 2)) as i64 - 1).collect();
        let updates: Vec<f32> = (0..n * columns).map(|i| ((i * 31) % 1009) as f32 / 97.0).collect();
        let place = |i: usize| {
            (0..places as i64).contains(&at[i]).then(|| at[i] as usize * columns + i % columns)
        };
        let mut want = vec![1f64; places * columns];
        for (i, &update) in updates.iter().enumerate() {
            if let Some(place) = place(i) {
                want[place] += f64::from(update);
            }
        }
        let index = Tensor::from_slice(&at, [n, columns], &device)?.unchecked_indices();
        let x = Tensor::from_slice(&updates, [n, columns], &device)?.tracked();
        let base =
            Tensor::from_slice(&vec![1f32; want.len()], [places, columns], &device)?.tracked();
        let y = base.scatter_add(0, &index, &x)?;
        let got = y.to_vec::<f32>()?;
        assert_eq!(got, base.scatter_add(0, &index, &x)?.to_vec::<f32>()?, "the same bits");
        for (got, want) in got.iter().zip(&want) {
            assert!((f64::from(*got) - want).abs() <= 1e-6 * want.abs(), "{got}, not {want}");
        }
        let gradients = y.mul(y.detach())?.sum(..)?.grad(&[&base, &x])?;
        let [of_base, of_x] =
            [0, 1].map(|i| gradients[i].as_ref().unwrap().to_vec::<f32>().unwrap());
        assert_eq!(of_base, got);
        assert!(of_x.iter().enumerate().all(|(i, &dx)| dx == place(i).map_or(0.0, |p| got[p])));
    }
    Ok(())
}

/// Of updates that replace an element the last one counts, wherever it stands.
/// Sums of rows by place are those of `f64`, rounded, and the same along both axes and in each run: places
/// outside, places that get all, some or no rows, and gradients.
#[test]
fn rows_are_summed_by_place() -> Result<()> {
    let device = device();
    for (n, places, columns) in [(3000, 700, 3), (2500, 1, 5), (4096, 5000, 2)] {
        let at: Vec<i64> =
            (0..n).map(|i| ((i * 7919 + i / 13) % (places + 2)) as i64 - 1).collect();
        let updates: Vec<f32> = (0..n * columns).map(|i| ((i * 31) % 1009) as f32 / 97.0).collect();
        let initial: Vec<f32> = (0..places * columns).map(|i| i as f32 / 7.0 - 20.0).collect();
        let mut want: Vec<f64> = initial.iter().map(|&x| f64::from(x)).collect();
        for (i, &update) in updates.iter().enumerate() {
            if let Ok(place) = usize::try_from(at[i / columns])
                && place < places
            {
                want[place * columns + i % columns] += f64::from(update);
            }
        }
        let index = Tensor::from_slice(&at, [n], &device)?.unchecked_indices();
        let x = Tensor::from_slice(&updates, [n, columns], &device)?.tracked();
        let base = Tensor::from_slice(&initial, [places, columns], &device)?.tracked();
        let y = base.index_add(0, &index, &x, 1.0)?;
        let turned = base.t().index_add(1, &index, &x.t(), 1.0)?.t();
        let got = y.to_vec::<f32>()?;
        for ((&got, &want), &first) in got.iter().zip(&want).zip(&initial) {
            let most = f64::from(f32::EPSILON) * (want.abs() + f64::from(first.abs()));
            assert!((f64::from(got) - want).abs() <= most, "{got}, not {want}");
        }
        assert_eq!(turned.to_vec::<f32>()?, got, "{n} {places} {columns}, columns");
        let again = base.index_add(0, &index, &x, 1.0)?;
        assert_eq!(again.to_vec::<f32>()?, got, "{n} {places} {columns}, again");
        let gradients = y.mul(y.detach())?.sum(..)?.grad(&[&base, &x])?;
        let [of_base, of_x] =
            [0, 1].map(|i| gradients[i].as_ref().unwrap().to_vec::<f32>().unwrap());
        assert_eq!(of_base, got);
        for (i, dx) in of_x.into_iter().enumerate() {
            let place = usize::try_from(at[i / columns]).ok().filter(|&place| place < places);
            assert_eq!(dx, place.map_or(0.0, |place| got[place * columns + i % columns]));
        }
    }
    Ok(())
}

/// Other reductions by place, sorted too.
#[test]
fn products_and_extremes_by_place() -> Result<()> {
    let device = device();
    let (n, places) = (20_000, 300);
    let at: Vec<i64> = (0..n).map(|i| ((i * 7919 + i / 13) % (places + 2)) as i64 - 1).collect();
    let updates: Vec<f32> = (0..n).map(|i| 1.0 + (i * 31 % 1009) as f32 / 1e5).collect();
    let index = Tensor::from_slice(&at, [n], &device)?.unchecked_indices();
    let x = Tensor::from_slice(&updates, [n], &device)?;
    let base = Tensor::from_slice(&vec![-1f32; places], [places], &device)?;
    let ops: [(ScatterReduce, fn(f64, f64) -> f64); 3] = [
        (ScatterReduce::Prod, |a, b| a * b),
        (ScatterReduce::Amax, f64::max),
        (ScatterReduce::Amin, f64::min),
    ];
    for (reduce, op) in ops {
        let mut want = vec![-1f64; places];
        for (&place, &update) in at.iter().zip(&updates) {
            if let Some(slot) = usize::try_from(place).ok().and_then(|place| want.get_mut(place)) {
                *slot = op(*slot, f64::from(update));
            }
        }
        let got = base.scatter_reduce(0, &index, &x, reduce, true)?.to_vec::<f32>()?;
        for (got, want) in got.iter().zip(want) {
            assert!(
                (f64::from(*got) - want).abs() <= 1e-5 * want.abs(),
                "{reduce:?}: {got}, {want}"
            );
        }
    }
    Ok(())
}

/// The sums of a normalisation's gradient read the elements together, and are right.
#[test]
fn reductions_of_the_same_elements_share_loops() -> Result<()> {
    let device = device();
    let shape = [8, 6, 96, 64];
    let data: Vec<f32> =
        (0..shape.iter().product()).map(|i| ((i * 7919) % 1013) as f32 / 500.0).collect();
    let x = Tensor::from_slice(&data, shape, &device)?.tracked();
    let w = Tensor::from_slice(&[1f32, -2.0, 0.5, 3.0, 1.5, -0.25], [6], &device)?.tracked();
    let b = Tensor::from_slice(&[0.5f32; 6], [6], &device)?.tracked();
    let y = x.batch_norm(Some(&w), Some(&b), 1e-5)?.output;
    let gradients = y.square().mul(&y)?.sum(..)?.grad(&[&x, &w, &b])?;
    let gradients: Vec<Tensor> = gradients.into_iter().flatten().collect();
    let all: Vec<&Tensor> = gradients.iter().collect();
    let elements = data.len() as u64;
    let whole = |p: &ParamInfo| p.access == Access::Read && p.len == elements;
    let reads = |k: &Kernel| k.params().iter().any(whole);
    let kernels = testing::kernels_in_pieces(&all);
    // Mean, variance, and all sums of the gradients.
    let reading: Vec<&str> = kernels.iter().filter(|k| reads(k)).map(Kernel::name).collect();
    assert_eq!(reading.iter().filter(|name| name.starts_with("reduce")).count(), 3, "{reading:?}");
    let want = testing::evaluate(&all)?;
    Tensor::realize_all(&gradients)?;
    for (got, want) in gradients.iter().zip(&want) {
        let most = want.iter().map(|x| x.to_f64().abs()).fold(0.0, f64::max);
        for (got, want) in got.to_vec::<f32>()?.iter().zip(want) {
            assert!((f64::from(*got) - want.to_f64()).abs() <= 1e-4 * most, "{got} {want:?}");
        }
    }
    Ok(())
}

#[test]
fn the_last_assignment_counts() -> Result<()> {
    let device = device();
    for (n, places, columns) in [(5000, 700, 1), (300, 1000, 3), (4096, 1, 2)] {
        let at: Vec<i64> =
            (0..n * columns).map(|i| ((i * 7919 + i / 13) % (places + 2)) as i64 - 1).collect();
        let updates: Vec<f32> = (0..n * columns).map(|i| i as f32).collect();
        let mut want: Vec<f32> = (0..places * columns).map(|i| -(i as f32)).collect();
        let base = Tensor::from_slice(&want, [places, columns], &device)?.tracked();
        let mut last = vec![None; want.len()];
        for i in (0..at.len()).filter(|&i| (0..places as i64).contains(&at[i])) {
            let place = at[i] as usize * columns + i % columns;
            (want[place], last[place]) = (updates[i], Some(i));
        }
        let index = Tensor::from_slice(&at, [n, columns], &device)?.unchecked_indices();
        let x = Tensor::from_slice(&updates, [n, columns], &device)?.tracked();
        let y = base.scatter(0, &index, &x)?;
        let kernels = testing::kernels_in_pieces(&[&y]);
        assert!(kernels.iter().any(|k| k.iter().any(|(_, op, _)| matches!(op, Op::Atomic { .. }))));
        assert_eq!(y.to_vec::<f32>()?, want);
        let of_base = y.sum(..)?.grad(&[&base])?.remove(0).unwrap().to_vec::<f32>()?;
        let reached = last.iter().map(|last| if last.is_some() { 0.0 } else { 1.0 });
        assert!(reached.eq(of_base));
    }
    Ok(())
}

#[test]
fn a_sort_passes_its_gradient_back_to_any_order() -> Result<()> {
    let device = device();
    for descending in [false, true] {
        let data: Vec<f32> = (0..2 * 300).map(|i| ((i * 7919) % 211) as f32 - 100.0).collect();
        let x = Tensor::from_slice(&data, [2, 300], &device)?.tracked();
        let weights: Vec<f32> = (0..600).map(|i| ((i * 13) % 97) as f32).collect();
        let w = Tensor::from_slice(&weights, [2, 300], &device)?.tracked();
        let (y, order) = x.sort(1, descending)?;
        let order = order.to_vec::<i64>()?;
        let dx = y.grad_with(&w, &[&x])?.remove(0).unwrap();
        let mut want = vec![0f32; 600];
        for (i, &from) in order.iter().enumerate() {
            want[i / 300 * 300 + from as usize] = weights[i];
        }
        assert_eq!(dx.to_vec::<f32>()?, want);
        // The gradient of the gradient is in sorted order again.
        let back = dx.mul(x.detach())?.sum(..)?.grad(&[&w])?.remove(0).unwrap();
        assert_eq!(back.to_vec::<f32>()?, y.to_vec::<f32>()?);
    }
    Ok(())
}

/// Iterations of a kernel that one group of threads does alone, if there are fewer groups than the
/// device has multiprocessors.
fn alone(kernel: &Kernel) -> f64 {
    let mut groups = 1.0;
    for (_, op, _) in kernel.iter() {
        if let Op::Loop { kind: LoopKind::Group, len, .. } = op {
            groups *= kernel.constant(len).map_or(1.0, |len| len.to_f64());
        }
    }
    if groups >= 132.0 { 0.0 } else { tune::cost::estimate(kernel, &caps()).ops / groups }
}

/// Reductions of few results, alone, nested and in front of what uses them.
#[test]
fn no_kernel_leaves_the_device_to_few_groups() -> Result<()> {
    let device = device();
    let leaf = |dims: &[usize]| -> Result<Tensor> {
        let x = Tensor::from_slice(&vec![0.5f32; dims.iter().product()], dims, &device)?;
        Ok(x.tracked())
    };
    let (flat, few) = (leaf(&[1 << 21])?, leaf(&[8, 1 << 18])?);
    let (images, tall) = (leaf(&[32, 16, 64, 64])?, leaf(&[1 << 11, 1 << 10])?);
    let w = leaf(&[16])?;
    let classes = Tensor::from_slice(&[7i64; 1 << 11], [1 << 11], &device)?;
    let normalised = images.batch_norm(Some(&w), None, 1e-5)?.output;
    let of_norm = normalised.mul(images.detach())?.sum(..)?.grad(&[&images, &w])?;
    let graphs = [
        ("var", vec![flat.var(.., 1)?]),
        ("x / norm", vec![flat.div(flat.square().sum(..)?.sqrt())?]),
        ("softmax of few rows", vec![few.softmax(-1)?]),
        (
            "log_softmax of few rows",
            vec![few.log_softmax(-1)?.grad_with(&few, &[&few])?.remove(0).unwrap()],
        ),
        ("layer norm of few rows", vec![few.layer_norm(-1, None, None, 1e-5)?]),
        ("std of few rows", vec![few.std(1, 1)?]),
        ("cross entropy", vec![tall.cross_entropy(&classes)?]),
        ("a norm of sums", vec![tall.abs().sum(0)?.max(..)?]),
        ("logsumexp of few rows", vec![few.logsumexp(1)?]),
        ("batch norm", of_norm.into_iter().flatten().collect()),
        ("running sum of columns", vec![tall.cumsum(0)?]),
        (
            "mean of squares",
            flat.mse_loss(&flat.detach().mul(2.0)?, Default::default())?
                .grad(&[&flat])?
                .into_iter()
                .flatten()
                .collect(),
        ),
    ];
    // A quarter of a million iterations take one group about 50 microseconds.
    const MOST: f64 = 4.0 * (1 << 18) as f64;
    for (name, tensors) in graphs {
        let kernels = testing::kernels_in_pieces(&tensors.iter().collect::<Vec<_>>());
        assert!(!kernels.is_empty());
        for kernel in kernels {
            let optimized = tune::optimize(&kernel, &caps());
            let alone = alone(&optimized);
            assert!(alone <= MOST, "{name}: {alone} operations are one group's in\n{optimized}");
        }
    }
    Ok(())
}

/// The gradient of a weight of 3x3 windows gives a large GPU few blocks of results, and so is cut.
#[test]
fn contractions_of_few_blocks_are_cut_in_pieces() -> Result<()> {
    let runtime = Runtime::default();
    runtime.register(testing::Null { contracts: false, ..Default::default() });
    let device = runtime.device("null")?;
    let leaf = |dims: &[usize]| -> Result<Tensor> {
        let x = Tensor::zeros(dims, DType::F32, &device).contiguous();
        x.realize()?;
        Ok(x)
    };
    let (x, w) = (leaf(&[64, 256, 14, 14])?, leaf(&[256, 256, 3, 3])?.tracked());
    let options = Conv2dOptions { padding: [1, 1], ..Default::default() };
    let y = x.conv2d(&w, None, options)?.mul(leaf(&[64, 256, 14, 14])?)?.sum(..)?;
    let gradient = y.grad(&[&w])?.remove(0).unwrap();
    // 36 blocks of 128 by 128 results for 132 multiprocessors: seven pieces of two rows each.
    let kernels = testing::kernels_in_pieces(&[&gradient]);
    let names: Vec<String> = kernels.iter().map(|k| k.name().to_owned()).collect();
    assert!(names.contains(&"reduce_1x1x256x7x1x1x256x3x3".to_owned()), "{names:?}");
    Ok(())
}

/// Each class meets the classes that are listed, in loops of a length of their own, and so do gradients.
#[test]
fn classes_meet_those_listed() -> Result<()> {
    let device = device();
    let (rows, classes) = (12, 150);
    let x: Vec<f32> = (0..rows * classes).map(|i| (i * 7919 % 1009) as f32 / 500.0).collect();
    let is_listed = |row: usize, place: usize| place < row * row;
    let listed = |row: usize, place: usize| (row + 7 * place) % classes;
    let list: Vec<i64> = (0..rows * classes)
        .map(|i| (i / classes, i % classes))
        .map(|(row, place)| if is_listed(row, place) { listed(row, place) as i64 } else { -1 })
        .collect();
    let mut slopes = vec![0f32; rows * classes];
    for row in 0..rows {
        let targets: Vec<usize> =
            (0..classes).filter(|&p| is_listed(row, p)).map(|p| listed(row, p)).collect();
        for (&j, i) in targets.iter().flat_map(|j| (0..classes).map(move |i| (j, i))) {
            if !targets.contains(&i) && x[row * classes + i] - x[row * classes + j] + 1.0 > 0.0 {
                slopes[row * classes + i] += 1.0;
                slopes[row * classes + j] -= 1.0;
            }
        }
    }
    let scores = Tensor::from_slice(&x, [rows, classes], &device)?;
    let list = Tensor::from_slice(&list, [rows, classes], &device)?;
    let loss = scores.multilabel_margin_loss(&list, Reduction::Sum)?.mul(classes as f64)?;
    let got = loss.grad(&[&scores])?.remove(0).unwrap().to_vec::<f32>()?;
    for (i, (got, slope)) in got.iter().zip(slopes).enumerate() {
        assert!((got - slope).abs() < 1e-3, "element {i}: {got}, not {slope}");
    }
    Ok(())
}

/// Tensors of more pieces than are looked at for each element: bits, and gradients.
#[test]
fn many_pieces_are_joined() -> Result<()> {
    let device = device();
    let extents: Vec<usize> = (0..40).map(|i| i * 5 % 7).collect();
    let value = |i: usize, row: usize, column: usize| match (i + row + column) % 11 {
        0 => -0.0,
        1 => f32::INFINITY,
        k => (k * 100 + i) as f32,
    };
    let piece = |i: usize| -> Result<Tensor> {
        let rows = (0..3).flat_map(|row| (0..extents[i]).map(move |column| (row, column)));
        let data: Vec<f32> = rows.map(|(row, column)| value(i, row, column)).collect();
        Ok(Tensor::from_slice(&data, [3, extents[i]], &device)?.tracked())
    };
    let pieces = (0..40).map(piece).collect::<Result<Vec<Tensor>>>()?;
    let all: Vec<&Tensor> = pieces.iter().collect();
    let joined = Tensor::cat(&all, 1)?;
    let total: usize = extents.iter().sum();
    assert_eq!(joined.shape().dims(), [3, total]);
    let places: Vec<(usize, usize)> =
        (0..40).flat_map(|i| (0..extents[i]).map(move |column| (i, column))).collect();
    let got = joined.to_vec::<f32>()?;
    for (at, got) in got.iter().enumerate() {
        let (i, column) = places[at % total];
        assert_eq!(got.to_bits(), value(i, at / total, column).to_bits());
    }
    let weights: Vec<f32> = (0..3 * total).map(|i| i as f32).collect();
    let weights = Tensor::from_slice(&weights, [3, total], &device)?;
    let gradients = joined.grad_with(&weights, &all)?;
    let mut before = 0;
    for (i, gradient) in gradients.iter().enumerate() {
        let want = (0..3).flat_map(|row| (0..extents[i]).map(move |c| row * total + before + c));
        let want: Vec<f32> = want.map(|x| x as f32).collect();
        // An empty piece may be left out.
        let got = gradient.as_ref().map_or(Ok(vec![]), |x| x.to_vec::<f32>())?;
        assert_eq!(got, want, "piece {i}");
        before += extents[i];
    }
    Ok(())
}

/// What 20 steps add up to is what 20 copies of the weight would get, one from each step.
#[test]
fn a_weight_of_many_steps_has_the_sum_of_their_gradients() -> Result<()> {
    let device = device();
    for (dtype, bound) in [(DType::F32, 1e-5), (DType::BF16, 0.05)] {
        let tensor = |n: usize, seed: usize, dims: &[usize]| -> Result<Tensor> {
            let data: Vec<f32> =
                (0..n).map(|i| ((i * 37 + seed * 11) % 19) as f32 / 19.0 - 0.5).collect();
            Ok(Tensor::from_slice(&data, dims, &device)?.cast(dtype).contiguous())
        };
        let steps = 20;
        let inputs = tensor(steps * 2 * 8, 3, &[steps, 2, 8])?.tracked();
        let run = |weights: &[Tensor]| -> Result<Tensor> {
            let mut state = tensor(16, 5, &[2, 8])?;
            for (i, weight) in weights.iter().enumerate() {
                let input = inputs.select_index(0, i as isize)?;
                state = state.matmul(&weight.t())?.add(input)?.tanh();
            }
            state.square().sum(..)
        };
        let weight = tensor(64, 1, &[8, 8])?.tracked();
        let one = run(&vec![weight.clone(); steps])?.grad(&[&weight, &inputs])?;
        let copies: Vec<Tensor> = (0..steps).map(|_| weight.detach().tracked()).collect();
        let mut wanted: Vec<&Tensor> = copies.iter().collect();
        wanted.push(&inputs);
        let each = run(&copies)?.grad(&wanted)?;
        let values = |x: &Option<Tensor>| x.as_ref().unwrap().cast(DType::F32).to_vec::<f32>();
        let mut want = vec![0f32; 64];
        for part in &each[..steps] {
            want.iter_mut().zip(values(part)?).for_each(|(sum, x)| *sum += x);
        }
        for (got, want) in values(&one[0])?.iter().zip(&want) {
            assert!((got - want).abs() <= bound * (1.0 + want.abs()), "{dtype}: {got}, not {want}");
        }
        assert_eq!(values(&one[1])?, values(&each[steps])?, "{dtype}: inputs");
    }
    Ok(())
}

/// A step of a recurrent layer is a product and a kernel or two, forward and backward.
#[test]
fn steps_of_a_recurrent_network_are_few_launches() -> Result<()> {
    let runtime = Runtime::default();
    runtime.register(testing::Null::default());
    let device = runtime.device("null")?;
    let (layers, steps) = (2, 24);
    let options = RecurrentOptions { layers, ..RecurrentOptions::default() };
    let layer = Lstm::new(512, 512, options, &mut Init::new(0, &device))?;
    let x = Tensor::zeros([steps, 64, 512], DType::F32, &device).contiguous();
    x.realize()?;
    let (y, _) = layer.run(&x, None)?;
    let weights: Vec<Tensor> = layer.parameters().iter().map(|p| p.tensor()).collect();
    let gradients = y.square().mean(..)?.grad(&weights.iter().collect::<Vec<_>>())?;
    let gradients: Vec<&Tensor> = gradients.iter().flatten().collect();
    let launches = testing::explain(&gradients, &device)?.launches;
    assert!(launches.len() <= 5 * layers * steps + 32, "{} launches", launches.len());
    let products = launches.iter().filter(|launch| launch.name.starts_with("contract_1x2048x512"));
    assert!(products.count() <= 2 * layers, "weights have one product each");
    Ok(())
}
