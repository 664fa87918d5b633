//! The kernels of the examples, which are written as programs write theirs: on every device, in every float dtype, at sizes that no
//! tile divides, against the methods of tensors in `f64` on the device that evaluates graphs.

use crate::device::raw::sources::{self, LANGUAGES};
use crate::zyx_core::kernel::{BinaryOp, Kernel, Lang};
use crate::{Array, Val};
use std::sync::LazyLock;
use zyx_core::{DType, Device, Error, Jit, Result, Runtime, Tensor};

#[path = "../../../examples/src/kernels/mod.rs"]
pub mod gallery;
mod primitives;

/// Numbers between -1 and 1 in an order that no stride repeats.
fn numbers(shape: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
    let n: usize = shape.iter().product();
    let x: Vec<f32> = (0..n).map(|i| ((i * 7919 + 13) % 1031) as f32 / 515.5 - 1.0).collect();
    Ok(Tensor::from_slice(&x, shape, device)?.cast(dtype))
}

/// The error that results of a dtype may have, as part of the largest element.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 4e-3,
        DType::BF16 => 3e-2,
        DType::F32 => 2e-5,
        _ => 1e-13,
    }
}

fn close(name: &str, found: &Tensor, expected: &Tensor) -> Result<()> {
    assert_eq!(found.shape(), expected.shape(), "{name}");
    let (dtype, x, y) =
        (found.dtype(), Array::read(found)?.floats(), Array::read(expected)?.floats());
    let largest = y.iter().fold(1e-3, |most: f64, y| most.max(y.abs()));
    for (i, (x, y)) in x.iter().zip(&y).enumerate() {
        let off = (x - y).abs() / largest;
        assert!(off <= tolerance(dtype), "{name} {dtype} {:?}: {x} not {y} at {i}", found.shape());
    }
    Ok(())
}

/// A copy in `f64` on the device that evaluates graphs: results are compared with those that follow from it.
fn wide(x: &Tensor) -> Result<Tensor> {
    static EXACT: LazyLock<Device> =
        LazyLock::new(|| Runtime::default().device("reference").expect("it is always there"));
    let x = Array::read(x)?;
    Array::reals(DType::F64, &x.dims, &x.floats()).tensor(&EXACT)
}

fn rows(dtype: DType, device: &Device) -> Result<()> {
    let (softmax, norm) = (gallery::softmax::softmax(), gallery::norm::rms_norm(1e-5));
    let cumsum = gallery::cumsum::cumsum();
    for (rows, cols) in [(1, 1), (3, 7), (2, 300), (5, 1031)] {
        let x = numbers(&[rows, cols], dtype, device)?;
        let wide_x = wide(&x)?;
        close("softmax", &softmax.call(&[&x])?, &wide_x.softmax(1)?)?;
        close("cumsum", &cumsum.call(&[&x])?, &wide_x.cumsum(1)?)?;
        let weight = numbers(&[cols], dtype, device)?;
        let root = (wide_x.mul(&wide_x)?.mean([1])?.unsqueeze(1)? + 1e-5).sqrt();
        let expected = (wide_x / root).mul(wide(&weight)?)?;
        close("rms_norm", &norm.call(&[&x, &weight])?, &expected)?;
    }
    Ok(())
}

fn elements(dtype: DType, device: &Device) -> Result<()> {
    let (mish, gated) = (gallery::mish::mish(), gallery::gated::gated());
    let (x, y) =
        (numbers(&[3, 37], dtype, device)?.tracked(), numbers(&[37], dtype, device)?.tracked());
    let expected = |x: &Tensor, y: &Tensor| x.mul(x.sigmoid())?.mul(y);
    let found = gated.call(&[&x, &y])?;
    let (wide_x, wide_y) = (wide(&x)?.tracked(), wide(&y)?.tracked());
    close("gated", &found, &expected(&wide_x, &wide_y)?)?;
    close("mish", &mish.call(&[&x.detach()])?, &wide_x.mish())?;
    let slopes = found.sum(..)?.grad(&[&x])?.remove(0).expect("by the rule");
    let right =
        expected(&wide_x, &wide_y)?.sum(..)?.grad(&[&wide_x])?.remove(0).expect("it depends");
    close("gradient of gated", &slopes, &right)?;
    let slopes = mish.call(&[&x])?.sum(..)?.grad(&[&x])?.remove(0).expect("derived");
    let right = wide_x.mish().sum(..)?.grad(&[&wide_x])?.remove(0).expect("it depends");
    close("gradient of mish", &slopes, &right)
}

fn stencil(dtype: DType, device: &Device) -> Result<()> {
    let heat = gallery::heat::heat(0.125);
    for (h, w) in [(1, 1), (3, 5), (17, 33)] {
        let x = numbers(&[h, w], dtype, device)?;
        let wide_x = wide(&x)?;
        let padded = wide_x.pad([(1, 1), (1, 1)])?;
        let part = |i: usize, j: usize| padded.slice(0, i..i + h)?.slice(1, j..j + w);
        let around = part(0, 1)?.add(part(2, 1)?)?.add(part(1, 0)?)?.add(part(1, 2)?)?;
        let expected = wide_x.add((around - &wide_x * 4.0) * 0.125)?;
        close("heat", &heat.call(&[&x])?, &expected)?;
    }
    Ok(())
}

fn segments(dtype: DType, device: &Device) -> Result<()> {
    let sum = gallery::segments::segment_sum();
    let x = numbers(&[500], dtype, device)?;
    let wide_x = wide(&x)?;
    let starts = [0i32, 0, 1, 7, 300, 300, 499, 500];
    let parts = starts.windows(2).map(|ends| {
        let (first, end) = (ends[0] as usize, ends[1] as usize);
        if first == end {
            Ok(Tensor::zeros([1], DType::F64, wide_x.device()))
        } else {
            wide_x.slice(0, first..end)?.sum(..)?.reshape([1])
        }
    });
    let parts: Vec<Tensor> = parts.collect::<Result<_>>()?;
    let expected = Tensor::cat(&parts.iter().collect::<Vec<_>>(), 0)?;
    let starts = Tensor::new(starts, device)?;
    close("segment_sum", &sum.call(&[&x, &starts])?, &expected)
}

fn products(dtype: DType, device: &Device) -> Result<()> {
    let product = gallery::product::product();
    // Drivers for CPUs take seconds for each kernel. Rows of whole vectors have a program of their own on GPUs.
    let is_gpu = device.caps().multiprocessors() > 0;
    let sizes = [[1, 1, 1], [65, 40, 33], [24, 40, 48], [130, 264, 72]];
    for [m, n, depth] in sizes.into_iter().take(if is_gpu { 4 } else { 2 }) {
        let (x, w) = (numbers(&[m, depth], dtype, device)?, numbers(&[depth, n], dtype, device)?);
        let others = if is_gpu { 2 } else { 1 };
        let expected = wide(&x)?.matmul(&wide(&w)?)?;
        for product in [&product, &product.with_parameter("rows", 64)].into_iter().take(others) {
            close("product", &product.call(&[&x, &w])?, &expected)?;
        }
    }
    Ok(())
}

fn attention(dtype: DType, device: &Device) -> Result<()> {
    for causal in [true, false].into_iter().take(if dtype == DType::F32 { 2 } else { 1 }) {
        let attention = gallery::attention::attention(32, causal);
        for (heads, n, keys) in [(1, 1, 1), (2, 70, 70)] {
            let tensor = |n: usize| numbers(&[heads, n, 32], dtype, device);
            let (q, k, v) = (tensor(n)?, tensor(keys)?, tensor(keys)?);
            let scores = wide(&q)?.matmul(&wide(&k)?.transpose(1, 2)?)? * (1.0 / 32f64.sqrt());
            let scores = match causal {
                true => {
                    let seen = Tensor::ones([n, keys], DType::F64, scores.device()).tril(0)?;
                    scores.add(seen.sub(1.0)?.mul(1e9)?)?
                }
                false => scores,
            };
            let expected = scores.softmax(2)?.matmul(&wide(&v)?)?;
            close("attention", &attention.call(&[&q, &k, &v])?, &expected)?;
        }
    }
    Ok(())
}

/// Elementwise operations before and behind a call give the same as part of its kernel and by themselves.
fn around(dtype: DType, device: &Device) -> Result<()> {
    let product = gallery::product::product();
    for [m, n, depth] in [[33, 17, 9], [24, 40, 16]] {
        let tensor = |shape: &[usize]| numbers(shape, dtype, device);
        let (x, w) = (tensor(&[m, depth])?, tensor(&[depth, n])?);
        let (bias, scale, rest) = (tensor(&[n])?, tensor(&[m, 1])?, tensor(&[m, n])?);
        Tensor::realize_all([&x, &w, &bias, &scale, &rest])?;
        let with = |y: &Tensor| y.add(&bias)?.relu().mul(&scale)?.sub(&rest);
        let input = || x.mul(&scale);
        let found = with(&product.call(&[&input()?, &w])?)?;
        let apart = input()?;
        apart.realize()?;
        let apart = product.call(&[&apart, &w])?;
        apart.realize()?;
        close("around a product", &found, &with(&apart)?)?;
    }
    Ok(())
}

/// One launch for several examples, which share some inputs, gives the results of a launch for each.
fn batches(dtype: DType, device: &Device) -> Result<()> {
    let (norm, scan) = (gallery::norm::rms_norm(1e-5), gallery::scan::scan());
    let x = numbers(&[3, 5, 40], dtype, device)?;
    let weight = numbers(&[40], dtype, device)?;
    Tensor::realize_all([&x, &weight])?;
    type Call<'a> = &'a dyn Fn(&[Tensor]) -> Result<Tensor>;
    let calls: [(&str, Call<'_>); 3] = [
        ("norm", &|x| norm.call(&[&x[0], &x[1]])),
        ("scan", &|x| scan.call(&[&x[0].flatten()])),
        ("heat", &|x| gallery::heat::heat(0.2).call(&[&x[0].mul(&x[1])?])?.relu().add(&x[0])),
    ];
    for (name, call) in calls {
        let all = Tensor::vmap(call, &[&x, &weight], &[Some(0), None], 0)?;
        let each = (0..3).map(|i| call(&[x.select_index(0, i)?, weight.clone()]));
        let each = each.collect::<Result<Vec<_>>>()?;
        Tensor::realize_all(&each)?;
        close(name, &all, &Tensor::stack(&each.iter().collect::<Vec<_>>(), 0)?)?;
    }
    Ok(())
}

/// The gallery in a float dtype.
pub fn gallery_in(device: &Device, dtype: DType) {
    let cases = [rows, elements, stencil, segments, around, batches, products, attention];
    // Drivers for CPUs take a minute for products in each dtype.
    let (caps, few) = (device.caps(), matches!(dtype, DType::F32 | DType::F16));
    let n = if caps.simt && caps.multiprocessors() == 0 && !few { 4 } else { cases.len() };
    for case in &cases[..n] {
        case(dtype, device).unwrap_or_else(|error| panic!("{dtype}: {error}"));
    }
}

/// Rows in ascending order in dtypes of 16, 32 and 64 bits, of floats with both zeros, infinities and NaN of both signs.
fn sorted_rows(device: &Device) -> Result<()> {
    use DType::{BF16, F16, F32, F64, I16, I32, I64, U16, U32, U64};
    let sort = gallery::sort::sort();
    // Drivers of GPUs for CPUs take seconds to compile each.
    let is_driver = device.caps().simt && device.caps().multiprocessors() == 0;
    let dtypes = [F32, F16, I64, BF16, F64, I16, I32, U16, U32, U64];
    for dtype in dtypes.into_iter().take(if is_driver { 3 } else { dtypes.len() }) {
        if !device.caps().storage.contains(dtype) {
            continue;
        }
        for (rows, cols) in [(1, 1), (2, 33), (1, 300)] {
            let x = Array::read(&(numbers(&[rows, cols], F32, device)? * 1000.0))?;
            // The upper halves of 64 bits differ, too, and numbers of other signs than a dtype has wrap.
            let scale = if dtype.bits() == 64 { 1 << 33 } else { 1 };
            let whole: Vec<i64> = x.floats().iter().map(|&x| x as i64 * scale).collect();
            let mut x = Array::whole(dtype, &[rows, cols], &whole);
            if dtype.is_float() && cols > 8 {
                let special = [f64::NAN, 0.0, f64::INFINITY, -0.0, -f64::NAN, f64::NEG_INFINITY];
                x.data[2..8].copy_from_slice(&special.map(Val::point));
            }
            let found = Array::read(&sort.call(&[&x.tensor(device)?])?)?;
            let bits = |x: &Val| match *x {
                Val::Int(x) => (x, 0),
                // No NaN is told from another one.
                Val::Real(x, _) if x.is_nan() => (i128::MAX, 2),
                Val::Real(x, _) => (x as i128, if x.is_sign_negative() { -1 } else { 1 }),
                Val::Unknown => unreachable!("invariant: numbers are certain"),
            };
            for (x, found) in x.data.chunks(cols).zip(found.data.chunks(cols)) {
                let mut expected: Vec<_> = x.iter().map(bits).collect();
                expected.sort_unstable();
                let found: Vec<_> = found.iter().map(bits).collect();
                assert_eq!(found, expected, "{dtype} {cols}");
            }
        }
        let most = if dtype.bits() == 64 { 512 } else { 1024 };
        let error = sort.call(&[&Tensor::zeros([1, most + 1], dtype, device)]);
        let error = error.expect_err("it is too long").to_string();
        assert!(error.contains(&format!("cols is {}, and at most {most}", most + 1)), "{error}");
    }
    Ok(())
}

/// Rows in order, values that threads exchange or one gives to all, tiles of a pipeline, and numbers in a list that groups share.
pub fn primitives_of_groups(device: &Device) {
    let check = || -> Result<()> {
        sorted_rows(device)?;
        primitives::exchanges(device)?;
        primitives::elections(device)?;
        primitives::pipelines(device)?;
        if device.caps().simt && !device.caps().has_atomic(BinaryOp::Add, DType::I32) {
            return Ok(());
        }
        let positive = Kernel::new("positive", |k: &Lang| {
            let n = k.size("n");
            let x = k.input("x", [n]);
            let list = k.output_filled("list", [n], DType::I32, -1);
            let count = k.output_filled("count", [1], DType::I32, 0);
            // Drivers for CPUs compile few threads in less time.
            let threads = if k.caps().multiprocessors() > 0 { 64 } else { 4 };
            k.groups([n.div_ceil(500)], threads, |g, [part]| {
                let end = n.minimum(part * 500 + 500);
                g.append(
                    &count,
                    part * 500..end,
                    |i| x.at(i).gt(0.0),
                    |i, place| {
                        list.set(place, i.cast(DType::I32));
                    },
                );
            });
        });
        for n in [1usize, 1200] {
            let x = numbers(&[n], DType::F32, device)?;
            let found = positive.call_all(&[&x])?;
            let mut list = found[0].to_vec::<i32>()?;
            let x = x.to_vec::<f32>()?;
            let expected: Vec<i32> = (0..n as i32).filter(|&i| x[i as usize] > 0.0).collect();
            list.truncate(found[1].to_vec::<i32>()?[0] as usize);
            list.sort_unstable();
            assert_eq!(list, expected);
        }
        Ok(())
    };
    check().unwrap_or_else(|error| panic!("{error}"));
}

/// Kernels with atomics, several outputs, scratch, and what a copy of an input becomes.
pub fn arguments_of_kernels(device: &Device) {
    let check = || -> Result<()> {
        let bytes: Vec<u8> = (0..10_000usize).map(|i| (i * 31 % 251) as u8).collect();
        let mut counts = vec![0i32; 256];
        bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        let x = Tensor::from_slice(&bytes, [bytes.len()], device)?;
        let atomics = device.caps().has_atomic(BinaryOp::Add, DType::I32) || !device.caps().simt;
        if atomics {
            let found = gallery::histogram::histogram().call(&[&x])?;
            assert_eq!(found.to_vec::<i32>()?, counts);
        }
        let numbers = Tensor::arange(1i32, 100, 1, device)?;
        let steps = |mut n: i32| {
            let mut steps = 0;
            while n > 1 {
                n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
                steps += 1;
            }
            steps
        };
        let found = gallery::collatz::collatz().call(&[&numbers])?;
        assert_eq!(found.to_vec::<i32>()?, (1..100).map(steps).collect::<Vec<i32>>());
        let both = Kernel::new("both", |k: &Lang| {
            let n = k.size("n");
            let x = k.input("x", [n]);
            let (kept, sum) = (k.output_from("kept", &x), k.output("sum", [n], x.dtype()));
            let other = k.scratch("other", [n], x.dtype());
            k.each(n, |i| {
                other.set(i, x.at(i) + other.at(i));
                kept.set(i, kept.at(i) * 2);
                sum.set(i, x.at(i) + other.at(i));
            });
        });
        for n in [1usize, 1000] {
            let x = Tensor::arange(0i32, n as i32, 1, device)?;
            let found = both.call_all(&[&x])?;
            let expected: Vec<i32> = (0..n as i32).map(|x| 2 * x).collect();
            assert_eq!(found[0].to_vec::<i32>()?, expected);
            assert_eq!(found[1].to_vec::<i32>()?, expected);
            // One of both alone.
            assert_eq!(both.call_all(&[&x])?[1].to_vec::<i32>()?, expected);
        }
        let many = Kernel::new("many", |k: &Lang| {
            let n = k.size("n");
            let x: Vec<_> = (0..6).map(|i| k.input(&format!("x{i}"), [n])).collect();
            let y = k.output("y", [n], x[0].dtype());
            k.each(n, |i| {
                let sum = x[1..].iter().fold(x[0].at(i), |sum, x| sum * 10 + x.at(i));
                y.set(i, sum);
            });
        });
        let x: Vec<Tensor> =
            (0..6).map(|i| Tensor::new([i, 9 - i], device)).collect::<Result<_>>()?;
        let y = many.call(&x.iter().collect::<Vec<_>>())?;
        assert_eq!(y.to_vec::<i32>()?, [12345, 987_654]);
        Ok(())
    };
    check().unwrap_or_else(|error| panic!("{error}"));
}

/// Single-pass scans: of numbers whose sums are exact, in each dtype of 32 or 64 bits that the device has, and of
/// halves.
pub fn single_pass_scans(device: &Device) {
    use DType::{BF16, F16, F32, F64, I32, I64, U32};
    let check = || -> Result<()> {
        let scan = gallery::scan::scan();
        // Drivers of GPUs for CPUs take seconds to compile each.
        let is_driver = device.caps().simt && device.caps().multiprocessors() == 0;
        let dtypes = [F32, I64, F16, BF16, F64, I32, U32];
        for dtype in dtypes.into_iter().take(if is_driver { 2 } else { dtypes.len() }) {
            if !device.caps().storage.contains(dtype) {
                continue;
            }
            // The upper half of 64 bits counts, too.
            let scale = if dtype == I64 { (1 << 33) + 1 } else { 1 };
            let others: &[usize] = if dtype == F32 { &[1, 2816, 2817, 30_001] } else { &[9001] };
            for &n in others {
                let x: Vec<i64> = (0..n).map(|i| (i * 7919 % 31) as i64 * scale).collect();
                let mut sum = 0;
                let sums = x.iter().map(|x| {
                    sum += x;
                    sum
                });
                let sums: Vec<i64> = sums.collect();
                let [x, expected] = [x, sums].map(|x| Tensor::from_slice(&x, [n], device));
                let found = scan.call(&[&x?.cast(dtype)])?;
                let [found, expected] = [found, expected?.cast(dtype)].map(|x| x.cast(I64));
                assert_eq!(found.to_vec::<i64>()?, expected.to_vec::<i64>()?, "{dtype} {n}");
            }
        }
        Ok(())
    };
    check().unwrap_or_else(|error| panic!("{error}"));
}

/// Groups see messages of others as they were published, and where the driver promises that they go on they do.
pub fn litmus_of_groups(device: &Device) {
    let check = || -> Result<()> {
        let litmus = device.litmus()?;
        assert!(litmus.intact, "{litmus:?}");
        assert_eq!(device.progress()?, device.caps().progress, "{litmus:?}");
        assert_eq!(device.litmus()?, litmus);
        Ok(())
    };
    check().unwrap_or_else(|error| panic!("{error}"));
}

/// Distances in a graph with a hub, a long path, random edges, and nodes that no path leads to.
pub fn queues_of_work(device: &Device) {
    let check = || -> Result<()> {
        for nodes in [2usize, 600] {
            let mut edges: Vec<Vec<i32>> = vec![Vec::new(); nodes];
            for (i, targets) in edges.iter_mut().enumerate().take(nodes / 2) {
                targets.push((i as i32 + 1) % nodes as i32);
                if i % 3 == 0 {
                    targets.extend([(i * 7919 % nodes) as i32, (i * 131 % (nodes / 2)) as i32]);
                }
            }
            edges[nodes / 4].extend((0..nodes as i32 / 2).step_by(2));
            let mut starts = vec![0];
            for targets in &edges {
                starts.push(starts[starts.len() - 1] + targets.len() as i32);
            }
            let targets = edges.concat();
            for source in [0, nodes - 1] {
                let mut expected = vec![gallery::bfs::FAR; nodes];
                expected[source] = 0;
                let mut queue = std::collections::VecDeque::from([source]);
                while let Some(node) = queue.pop_front() {
                    for &target in &edges[node] {
                        if expected[target as usize] == gallery::bfs::FAR {
                            expected[target as usize] = expected[node] + 1;
                            queue.push_back(target as usize);
                        }
                    }
                }
                let starts = Tensor::from_slice(&starts, [nodes + 1], device)?;
                let targets = Tensor::from_slice(&targets, [targets.len()], device)?;
                let found = gallery::bfs::bfs(&starts, &targets, source)?;
                assert_eq!(found.to_vec::<i32>()?, expected, "{nodes} from {source}");
            }
        }
        Ok(())
    };
    check().unwrap_or_else(|error| panic!("{error}"));
}

/// What is wrong is told with the line of the kernel.
pub fn kernels_that_are_wrong(device: &Device) {
    let check = || -> Result<()> {
        let x = numbers(&[5], DType::F32, device)?;
        let at = |error: Error, line: u32, words: &str| {
            let Error::Kernel(error) = &error else { panic!("{error}") };
            assert_eq!(error.site.line, line, "{error}");
            assert!(error.site.file.ends_with("kernels.rs"), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        };
        let wrong = |write: fn(&Lang)| Kernel::new("wrong", write);
        let line = line!() + 5;
        let race = wrong(|k| {
            let n = k.size("n");
            let x = k.input("x", [n]);
            let y = k.output("y", [1], x.dtype());
            k.each(n, |i| y.set(0, x.at(i)));
        });
        at(race.check(&[&x]).expect_err("it is wrong"), line, "access element 0");
        let line = line!() + 5;
        let outside = wrong(|k| {
            let n = k.size("n");
            let x = k.input("x", [n]);
            let y = k.output("y", [n], x.dtype());
            k.each(n, |i| y.set(i, x.at(i + 1)));
        });
        at(outside.check(&[&x]).expect_err("it is wrong"), line, "outside of the array");
        // Elsewhere it reads zeros.
        assert_eq!(outside.call(&[&x])?.to_vec::<f32>()?[4], 0.0);
        let line = line!() + 6;
        let endless = wrong(|k| {
            let n = k.size("n");
            let x = k.input("x", [n]);
            let y = k.output("y", [n], x.dtype());
            k.each(n, |i| {
                k.while_(|| x.at(i).ge(x.at(0)), || {});
                y.set(i, x.at(i));
            });
        });
        // Where the driver ends loops, this one is short, and reading a result is an error (`loops_of_many_iterations`).
        if device.caps().max_iterations == 0 {
            at(endless.check(&[&x]).expect_err("it is wrong"), line, "no end after");
        }
        let line = line!() + 5;
        let mixed = wrong(|k| {
            let n = k.size("n");
            let x = k.input("x", [n]);
            let y = k.output("y", [n], x.dtype());
            k.each(n, |i| y.set(i, x.at(i) + i));
        });
        at(mixed.call(&[&x]).expect_err("it is wrong"), line, "add` of f32 and i64");
        let misfits = wrong(|k| {
            let n = k.size("n");
            let (x, y) = (k.input("x", [n]), k.input("y", [n]));
            let sum = k.output("sum", [n], x.dtype());
            k.each(n, |i| sum.set(i, x.at(i) + y.at(i)));
        });
        let error =
            misfits.call(&[&x, &numbers(&[4], DType::F32, device)?]).expect_err("it is wrong");
        assert!(error.to_string().contains("axis 0 of `y` is 4, and `n` is 5"), "{error}");
        Ok(())
    };
    check().unwrap_or_else(|error| panic!("{error}"));
}

/// Loops longer than some drivers run them, which end them without a word: then no result is read.
pub fn loops_of_many_iterations(device: &Device) {
    let check = || -> Result<()> {
        let sums = Kernel::new("sums", |k: &Lang| {
            let [rows, n] = k.sizes(["rows", "n"]);
            let x = k.input("x", [rows, n]);
            let y = k.output("y", [rows], x.dtype());
            k.each(rows, |row| {
                y.set(row, k.fold(n, x.at((row, 0)), |sum, i| sum + x.at([row, i])));
            });
        });
        let counts = Kernel::new("counts", |k: &Lang| {
            let n = k.size("n");
            let (x, y) = (k.input("x", [n]), k.output("y", [n], DType::I32));
            k.each(n, |i| {
                let count = k.var(k.value(0, DType::I32));
                k.while_(|| count.get().lt(x.at(i)), || count.set(count.get() + 1));
                y.set(i, count.get());
            });
        });
        let limit = device.caps().max_iterations;
        for n in [100usize, 20_000, 100_000] {
            let ends = |limit: u64| limit > 0 && n as u64 > limit;
            let x = Tensor::ones([3, n], DType::I32, device);
            let y = sums.call(&[&x])?;
            let told = |found: Result<Vec<i32>>, ends: bool, expected: &[i32]| match found {
                Err(Error::Kernel(error)) if ends => {
                    assert!(error.reason.contains("iterations of loops"), "{error}");
                    assert!(error.site.file.ends_with("kernels.rs"), "{error}");
                }
                // Some compilers do with fewer iterations, so it may be right, too.
                Ok(found) => assert_eq!(found, expected),
                found => panic!("{n} iterations, of {limit}: {found:?}"),
            };
            let sum = n as i32 + 1;
            told(y.to_vec(), ends(limit), &[sum; 3]);
            // The same of what is computed of it, and of a plan that is replayed.
            told((&y + 1).to_vec(), ends(limit), &[sum + 1; 3]);
            let jit = Jit::new(|x: &[Tensor]| Ok(vec![sums.call(&[&x[0]])? * 2]));
            for _ in 0..3 {
                told(jit.call(&[&x])?[0].to_vec(), ends(limit), &[2 * sum; 3]);
            }
            let batched = Tensor::ones([2, 3, n], DType::I32, device);
            let call = |x: &[Tensor]| sums.call(&[&x[0]]);
            let batched = Tensor::vmap(call, &[&batched], &[Some(0)], 0)?;
            told(batched.sum([1])?.cast(DType::I32).to_vec(), ends(limit), &[3 * sum; 2]);
            let n = Tensor::new([1i32, n as i32], device)?;
            let expected = n.to_vec::<i32>()?;
            // A `while_` ends by itself at half of the limit.
            let counted = counts.call(&[&n])?;
            assert!(!ends(limit / 2) || counted.to_bytes().is_err(), "{expected:?}");
            told(counted.to_vec(), ends(limit / 2), &expected);
        }
        Ok(())
    };
    check().unwrap_or_else(|error| panic!("{error}"));
}

/// Code in each language runs in the place of the portable kernel on devices that have the language, alone: results tell.
pub fn code_of_one_backend(device: &Device) {
    let check = || -> Result<()> {
        for language in LANGUAGES {
            let kernel = sources::with_code(sources::axpy(language));
            let jit = {
                let kernel = kernel.clone();
                Jit::new(move |x: &[Tensor]| Ok(vec![kernel.call(&[&x[0]])?.sub(1.0)?]))
            };
            let has = device.raw_languages().contains(&language);
            let factor = if has { 4.0 } else { 2.0 };
            for n in [1usize, 63, 64, 65, 1000] {
                // Small integers, of which results are exact.
                let x: Vec<f32> = (0..n).map(|i| (i * 7 % 23) as f32 - 11.0).collect();
                let expected: Vec<f32> = x.iter().map(|x| factor * (x + 1.0) * 2.0).collect();
                let x = Tensor::from_slice(&x, [n], device)?;
                // Between other operations, twice: the plan is played again.
                for _ in 0..2 {
                    let y = kernel.call(&[&x.add(1.0)?])?.mul(2.0)?;
                    assert_eq!(y.to_vec::<f32>()?, expected, "{language}, {n}");
                }
                let expected = x.mul(factor)?.sub(1.0)?.to_vec::<f32>()?;
                assert_eq!(jit.call(&[&x])?[0].to_vec::<f32>()?, expected, "{language}, {n}");
            }
            let other = numbers(&[3], DType::F64, device);
            if let (true, Ok(x)) = (has, other) {
                let error = kernel.call(&[&x]).expect_err("it is wrong").to_string();
                assert!(error.contains("declares other buffers"), "{error}");
            }
        }
        Ok(())
    };
    check().unwrap_or_else(|error| panic!("{error}"));
}
