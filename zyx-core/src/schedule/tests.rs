//! Values against the graph evaluator, and kernel counts: more kernels, more memory or other
//! fusion than before fails here. Values are equal: naive kernels do the evaluator's arithmetic,
//! and inputs are small multiples of an eighth, whose sums and products are exact in any order.

use super::Operation;
use super::item::schedule;
use crate::graph::capture;
use crate::hal::Caps;
use crate::lang::{Lang, Val};
use crate::reference::Reference;
use crate::runtime::{Device, Optimizer, Runtime};
use crate::tensor::{Jit, Kernel, Tensor};
use crate::testing::evaluate;
use crate::{BinaryOp, DType, Scalar};

/// A device that rounds products before it adds them, as the evaluator does.
fn device() -> Device {
    let mut reference = Reference::default();
    reference.caps.fast_fma = false;
    let runtime = Runtime::default();
    runtime.register(reference);
    let device = runtime.device("reference").unwrap();
    device.set_optimizer(Optimizer::Off);
    device
}

fn data(dims: &[usize], device: &Device) -> Tensor {
    let n: usize = dims.iter().product();
    let values: Vec<f32> = (0..n).map(|i| ((i * 37 + 11) % 23) as f32 / 8.0 - 1.25).collect();
    Tensor::from_slice(&values, dims, device).unwrap()
}

/// Realizes and compares with the evaluator; gives the number of launches.
#[track_caller]
fn check(outputs: &[&Tensor]) -> u64 {
    let expected = evaluate(outputs).unwrap();
    let device = outputs[0].device().clone();
    let before = device.stats();
    Tensor::realize_all(outputs.iter().copied()).unwrap();
    for (output, expected) in outputs.iter().zip(expected) {
        let bytes = output.to_bytes().unwrap();
        let got = Scalar::read_all(output.dtype(), &bytes);
        for (i, (a, b)) in got.iter().zip(&expected).enumerate() {
            let (a, b) = (a.to_f64(), b.to_f64());
            assert!(
                a == b || (a.is_nan() && b.is_nan()),
                "element {i} of {}: {a}, not {b}",
                output.shape()
            );
        }
        assert_eq!(got.len(), expected.len());
    }
    device.stats().since(&before).launches
}

#[test]
fn elementwise_chains_are_one_kernel() {
    let d = device();
    let (a, b) = (data(&[4, 5], &d), data(&[5], &d));
    let mut x = (&a + &b) * 5.0 - &a;
    for _ in 0..97 {
        x = x * 0.99 + 0.1;
    }
    let before = d.stats();
    assert_eq!(check(&[&x]), 1);
    assert_eq!(d.stats().since(&before).temps, 0);
}

#[test]
fn softmax_and_normalization_are_one_kernel() {
    let d = device();
    let x = data(&[6, 7], &d);
    let top = x.max_keepdim(-1).unwrap();
    let e = (&x - &top).exp();
    let softmax = &e / e.sum_keepdim(-1).unwrap();
    assert_eq!(check(&[&softmax]), 1);
    let mean = x.mean_keepdim(-1).unwrap();
    let centred = &x - &mean;
    let var = centred.square().mean_keepdim(-1).unwrap();
    let norm = &centred / (var + 1e-5).sqrt() * data(&[7], &d) + data(&[7], &d);
    assert_eq!(check(&[&norm]), 1);
}

/// What a residual stream has summed up is stored, so it is cheap to read again: a normalisation
/// far from the input is one kernel, as the first one.
#[test]
fn normalizations_of_a_residual_stream_are_one_kernel_each() {
    let d = device();
    let launches = |layers: usize| {
        let mut x = data(&[1, 64], &d);
        for _ in 0..layers {
            let y = x.layer_norm(-1, Some(&data(&[64], &d)), Some(&data(&[64], &d)), 1e-5);
            x = x.add(y.unwrap().matmul(&data(&[64, 64], &d)).unwrap()).unwrap();
        }
        crate::testing::kernels(&[&x]).len()
    };
    assert_eq!(launches(1), 2);
    assert_eq!(launches(8), 16);
}

#[test]
fn movement_composes() {
    let d = device();
    let x = data(&[3, 4, 5], &d);
    let y = x.permute([2, 0, 1]).unwrap().reshape([5, 12]).unwrap().flip(0).unwrap();
    assert_eq!(check(&[&(&y * 2.0)]), 1);
    let z = x.pad([(1, 2), (0, 1), (2, 0)]).unwrap().shrink([(0, 4), (1, 5), (1, 6)]).unwrap();
    check(&[&z, &z.exp()]);
    let w = x.reshape([12, 5]).unwrap().stride(0, 1, 3).unwrap();
    check(&[&w]);
    check(&[&Tensor::cat(&[&x, &(&x * 2.0), &x], 1).unwrap()]);
    check(&[&x.repeat([2, 1, 3]).unwrap().flip([0, 2]).unwrap()]);
}

#[test]
fn reductions_over_any_axes() {
    let d = device();
    let x = data(&[3, 4, 5], &d);
    for mask in 0..8u16 {
        for op in [BinaryOp::Add, BinaryOp::Mul, BinaryOp::Max, BinaryOp::Min] {
            check(&[&x.reduce(op, mask).exp()]);
        }
    }
    check(&[&x.var(.., 1).unwrap(), &x.argmax(1).unwrap(), &x.argmin(0).unwrap()]);
    let nested = x.max(2).unwrap().exp().sum(..).unwrap();
    check(&[&nested]);
    let normal = &x / x.sum(..).unwrap();
    check(&[&normal, &x.sum(..).unwrap()]);
}

#[test]
fn large_reductions_to_few_results_are_split() {
    let d = device();
    let x = Tensor::iota(70_000, DType::I64, &d);
    assert_eq!(check(&[&x.sum(..).unwrap()]), 2);
    let y = x.reshape([2, 7, 5000]).unwrap();
    check(&[&y.sum(1).unwrap(), &y.max([0, 2]).unwrap(), &y.sum([1, 2]).unwrap().neg()]);
    // A prime number of elements is split as any other.
    let prime = Tensor::iota(70_001, DType::I64, &d);
    assert_eq!(check(&[&prime.max(..).unwrap()]), 2);
}

#[test]
fn gathers_scatters_and_scans() {
    let d = device();
    let x = data(&[6, 4], &d);
    let index = Tensor::new([5i64, 0, 3, 3, 9, -1], &d).unwrap().unchecked_indices();
    let rows = x.index_select(0, &index).unwrap();
    check(&[&rows.exp(), &(&rows + 1.0)]);
    let base = data(&[6, 4], &d);
    let wide = index.unsqueeze(1).unwrap().expand([6, 4]).unwrap();
    check(&[&base.scatter_add(0, &wide, &x.exp()).unwrap()]);
    check(&[&base.scatter(0, &wide, &x).unwrap().sum(0).unwrap()]);
    for scan in [
        x.cumsum(0).unwrap(),
        x.cumsum(1).unwrap(),
        x.sum_keepdim(1).unwrap().cumsum(1).unwrap(),
        x.scan(BinaryOp::Max, 1, true),
        x.exp().scan(BinaryOp::Mul, 0, true),
    ] {
        check(&[&scan]);
    }
}

/// One index picks from tables of different lengths: what one table says of its range must not be believed of another.
#[test]
fn one_index_into_tables_of_different_lengths() {
    let d = device();
    let index = Tensor::new([2i64, 7, 0, 9, -3, 4], &d).unwrap().unchecked_indices();
    for lengths in [[3, 10], [10, 3]] {
        let picked = lengths.map(|length| {
            let table =
                data(&[length, 2], &d).transpose(0, 1).unwrap().reshape([2 * length]).unwrap();
            let table = table.flip(0).unwrap().reshape([2, length]).unwrap();
            table.index_select(1, &index).unwrap()
        });
        let split = data(&[2, 5], &d).transpose(0, 1).unwrap().reshape([10]).unwrap();
        let split = split.index_select(0, &index).unwrap();
        check(&[&(&picked[0] + &picked[1] + &split)]);
    }
}

#[test]
fn matmuls_of_all_ranks() {
    let d = device();
    for (a, b) in [
        (&[3, 4][..], &[4, 5][..]),
        (&[4], &[4, 5]),
        (&[3, 4], &[4]),
        (&[4], &[4]),
        (&[2, 3, 4], &[4, 5]),
        (&[2, 1, 3, 4], &[3, 4, 2]),
    ] {
        let product = data(a, &d).matmul(&data(b, &d)).unwrap();
        check(&[&(&product + 1.0).relu()]);
        check(&[&product.cast(DType::F64)]);
    }
}

#[test]
fn shared_values_are_computed_once() {
    let d = device();
    let x = data(&[8, 8], &d);
    let mean = x.mean_keepdim(1).unwrap();
    let a = (&x - &mean).exp();
    let b = a.sum(0).unwrap() * 2.0;
    // The mean and the exponential are stored by the first kernel, read by the second.
    assert!(check(&[&a, &b, &mean]) <= 2);
}

#[test]
fn a_second_realize_launches_nothing() {
    let d = device();
    let x = data(&[4], &d).exp();
    assert_eq!(check(&[&x]), 1);
    let before = d.stats();
    x.realize().unwrap();
    assert_eq!(d.stats().since(&before).launches, 0);
    let same = x.reshape([2, 2]).unwrap();
    same.realize().unwrap();
    assert_eq!(d.stats().since(&before).launches, 0, "a reshape shares the buffer");
}

#[test]
fn scalars_are_arguments() {
    let d = device();
    let x = data(&[4], &d);
    for step in 0..100 {
        (&x * (step as f64 * 1e-3)).realize().unwrap();
    }
    assert_eq!(d.stats().compiles, 1);
    assert_eq!(d.stats().plan_misses, 1);
}

#[test]
fn deep_chains_are_linear() {
    let d = device();
    let mut x = data(&[2], &d);
    for _ in 0..20_000 {
        x = &x * 1.0;
    }
    x.realize().unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap().len(), 2);
    assert!(d.stats().compiles <= 3, "equal pieces of a chain are compiled once");
}

#[test]
fn empty_and_scalar_tensors() {
    let d = device();
    let empty = data(&[0, 3], &d);
    check(&[&empty.exp(), &empty.sum(0).unwrap(), &empty.sum(1).unwrap(), &empty.max(0).unwrap()]);
    let scalar = Tensor::scalar(2f32, &d);
    check(&[&scalar.exp(), &(&scalar + &data(&[2, 2], &d)), &scalar]);
    check(&[&empty.matmul(&data(&[3, 4], &d)).unwrap()]);
    check(&[&data(&[4, 0], &d).matmul(&empty).unwrap()]);
}

/// A GPU that interprets.
fn gpu() -> Device {
    let mut caps = Caps::default();
    caps.simt = true;
    caps.max_local = 256;
    caps.shared_bytes = 32 << 10;
    caps.threads = 1 << 17;
    let runtime = Runtime::default();
    runtime.register(Reference { caps, ..Default::default() });
    runtime.device("reference").unwrap()
}

#[test]
fn long_contractions_of_few_results_are_summed_in_pieces() {
    let d = gpu();
    let (x, y) = (data(&[16, 4096], &d), data(&[4096, 16], &d));
    // Partial sums, then their sum with what follows.
    assert_eq!(check(&[&(x.matmul(&y).unwrap() * 0.5)]), 2);
    let (x, y) = (data(&[16, 256], &d), data(&[256, 16], &d));
    assert_eq!(check(&[&(x.matmul(&y).unwrap() * 0.5)]), 1);
}

/// Groups, distinct kernels and index tuples of a plan.
fn counts(x: &Tensor) -> [usize; 3] {
    let (graph, _) = capture(&[x], 0);
    let scheduled = schedule(&graph, x.device());
    let partition = scheduled.partition;
    [partition.groups.len(), partition.kernels.len(), partition.indices.len()]
}

#[test]
fn steps_that_repeat_are_lowered_once() {
    let d = device();
    let w = data(&[8, 8], &d);
    let steps = |n: usize| {
        let step = |h: Tensor, _| h.matmul(&w).unwrap().tanh().contiguous();
        counts(&(0..n).fold(data(&[4, 8], &d), step))
    };
    let ([few, kernels, tuples], many) = (steps(50), steps(800));
    assert!(few >= 50 && many[0] - few >= 750, "{few} and {} groups", many[0]);
    assert_eq!([kernels, tuples], many[1..], "what is kept of a step grows with their number");
    // Each step slices elsewhere, and its gradient adds to that of all steps.
    let steps = |n: usize| {
        let (x, w) = (data(&[n, 4, 8], &d), w.tracked());
        let step = |h: Tensor, i: usize| {
            (x.select_index(0, i as isize).unwrap() + h.matmul(&w).unwrap()).tanh()
        };
        let h = (0..n).fold(data(&[4, 8], &d), step);
        counts(&h.square().sum(..).unwrap().grad(&[&w]).unwrap().remove(0).unwrap())
    };
    let [one, two, three] = [200, 300, 400].map(steps);
    assert_eq!(two[1], three[1], "kernels of more steps");
    let grown = [two[2] - one[2], three[2] - two[2]];
    assert!(grown[0].abs_diff(grown[1]) < 100, "tuples of 100 steps: {grown:?}");
}

/// A kernel that doubles `x` and adds `more`: the result tells whether the kernel ran.
fn doubled(name: &str, more: f32) -> Kernel {
    Kernel::new(name, move |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let y = k.output("y", [n], x.dtype());
        k.each(n, |i| y.set(i, x.at(i) * 2.0 + more));
    })
}

/// Whether an operation is `x + x`; then `x`.
fn twice<'a>(result: &Operation<'a>, _: &Caps) -> Option<Vec<Operation<'a>>> {
    match result.inputs()[..] {
        [x, y] if result.name() == "add" && x == y && x.shape().rank() == 1 => Some(vec![x]),
        _ => None,
    }
}

#[test]
fn a_row_replaces_plans_that_were_made_before_it() {
    let d = device();
    let x = data(&[6], &d);
    x.realize().unwrap();
    let sum = || {
        let x = &x + 1.0;
        (&x + &x).exp().log()
    };
    let jit = Jit::new(|inputs: &[Tensor]| {
        let x = &inputs[0] + 1.0;
        Ok(vec![&x + &x])
    });
    let traced = || jit.call(&[&x]).unwrap()[0].to_vec::<f32>().unwrap();
    let before: Vec<f32> = sum().to_vec().unwrap();
    let traced_before = [traced(), traced(), traced()];
    d.register_row(&doubled("odd double", 1.0), twice).unwrap();
    let after: Vec<f32> = sum().to_vec().unwrap();
    assert!(before.iter().zip(&after).all(|(a, b)| (a + 1.0 - b).abs() < 1e-5), "{after:?}");
    for (before, after) in traced_before[2].iter().zip(traced()) {
        assert_eq!(before + 1.0, after);
    }
    assert!(sum().explain().unwrap().to_string().contains("kernel odd double"));
    let error = d.register_row(&doubled("odd double", 0.0), twice).unwrap_err();
    assert!(error.to_string().contains("another row has this name"), "{error}");
    // The first row that applies is taken.
    d.register_row(&doubled("double", 0.0), twice).unwrap();
    assert_eq!(sum().to_vec::<f32>().unwrap(), after);
}

#[test]
fn rows_that_do_not_fit_change_nothing() {
    let d = device();
    let x = data(&[6], &d);
    let expected: Vec<f32> = (&x + &x).to_vec().unwrap();
    let row = |kernel: &Kernel, n: usize| {
        let kernel = kernel.clone();
        d.register_row(&kernel, move |result, caps| {
            twice(result, caps).map(|_| vec![result.inputs()[0]; n])
        })
        .unwrap();
        assert_eq!((&x + &x).to_vec::<f32>().unwrap(), expected, "{kernel:?}");
    };
    row(&doubled("none", 1.0), 0);
    row(&doubled("too many", 1.0), 2);
    let other = Kernel::new("another shape", |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let y = k.output("y", [n + 1], x.dtype());
        k.each(n, |i| y.set(i, x.at(i)));
    });
    row(&other, 1);
    let wrong = Kernel::new("wrong", |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let y = k.output("y", [n], DType::F16);
        k.each(n, |i| y.set(i, x.at(i)));
    });
    row(&wrong, 1);
    d.register_row(&doubled("itself", 1.0), |result, caps| {
        twice(result, caps).map(|_| vec![*result])
    })
    .unwrap();
    assert_eq!((&x + &x).to_vec::<f32>().unwrap(), expected);
    let elements = Kernel::elementwise("elements", |x: &[Val<'_>]| x[0]);
    assert!(d.register_row(&elements, twice).is_err());
    // A row that fits is found behind the others.
    d.register_row(&doubled("fits", 1.0), twice).unwrap();
    let after: Vec<f32> = expected.iter().map(|x| x + 1.0).collect();
    assert_eq!((&x + &x).to_vec::<f32>().unwrap(), after);
}

/// More than two inputs, a pattern of several operations whose inner values are needed elsewhere, too, and a gradient.
#[test]
fn a_row_stands_for_several_operations() {
    let d = device();
    let sum = Kernel::new("sum of four", |k: &Lang| {
        let n = k.size("n");
        let x = [0, 1, 2, 3].map(|i| k.input(&format!("x{i}"), [n]));
        let y = k.output("y", [n], x[0].dtype());
        k.each(n, |i| y.set(i, x[0].at(i) + x[1].at(i) + x[2].at(i) + x[3].at(i)));
    });
    d.register_row(&sum, |result, _| {
        let mut inputs = Vec::new();
        let mut open = vec![*result];
        while let Some(of) = open.pop() {
            match of.name() == "add" {
                true => open.extend(of.inputs()),
                false => inputs.push(of),
            }
        }
        (inputs.len() == 4 && result.shape().rank() == 1).then_some(inputs)
    })
    .unwrap();
    let x: Vec<Tensor> = (0..4).map(|i| data(&[5], &d) * (i as f32 + 0.5)).collect();
    let first = &x[0] + &x[1];
    let y = &(&first + &x[2]) + &x[3];
    assert!(y.explain().unwrap().to_string().contains("kernel sum of four"));
    check(&[&y, &first]);
    let x: Vec<Tensor> = x.iter().map(Tensor::tracked).collect();
    let y = &(&(&x[0] + &x[1]) + &x[2]) + &x[3];
    let slope = y.sum(..).unwrap().grad(&[&x[3]]).unwrap().remove(0).unwrap();
    assert_eq!(slope.to_vec::<f32>().unwrap(), [1.0; 5]);
}

#[test]
fn rows_may_be_registered_while_plans_are_made() {
    let d = device();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let d = &d;
            scope.spawn(move || {
                for n in 0..60 {
                    let x = data(&[1 + (n * 7 + thread) % 40], d);
                    let y: Vec<f32> = (&x + &x).to_vec().unwrap();
                    let x: Vec<f32> = x.to_vec().unwrap();
                    assert!(x.iter().zip(&y).all(|(x, y)| 2.0 * x == *y || 2.0 * x + 1.0 == *y));
                }
            });
        }
        d.register_row(&doubled("odd double", 1.0), twice).unwrap();
    });
    for n in 1..40 {
        let x = data(&[n], &d);
        let y: Vec<f32> = (&x + &x).to_vec().unwrap();
        let x: Vec<f32> = x.to_vec().unwrap();
        assert!(x.iter().zip(&y).all(|(x, y)| 2.0 * x + 1.0 == *y), "{n}");
    }
}
