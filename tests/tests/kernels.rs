//! Kernels of programs beside what else there is: plans, gradients, batches, jit, checked mode.

use zyx_core::kernel::{BinaryOp, Kernel, KernelStep, Lang, Val};
use zyx_core::{DType, Device, Jit, Result, Runtime, Tensor};
use zyx_tests::Rng;
use zyx_tests::cases::kernels::gallery;

fn device() -> Device {
    let runtime = Runtime::default();
    runtime.register(zyx_backend_cpu::Cpu::default());
    runtime.device("cpu").expect("there is a CPU")
}

fn numbers(shape: &[usize], device: &Device) -> Result<Tensor> {
    let n: usize = shape.iter().product();
    let x: Vec<f32> = (0..n).map(|i| ((i * 7919 + 13) % 1031) as f32 / 515.5 - 1.0).collect();
    Tensor::from_slice(&x, shape, device)
}

fn scaled() -> Kernel {
    Kernel::new("scaled", |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let y = k.output("y", [n], x.dtype());
        k.each(n, |i| y.set(i, x.at(i) * 3.0));
    })
}

#[test]
fn a_kernel_is_compiled_once_for_all_sizes() -> Result<()> {
    let device = device();
    let softmax = gallery::softmax::softmax();
    let mut compiled = 0;
    for i in 0..500usize {
        let (rows, cols) = (1 + i * 7 % 13, 1 + i * 131 % 777);
        let x = numbers(&[rows, cols], &device)?;
        x.realize()?;
        let before = device.stats();
        softmax.call(&[&x])?.realize()?;
        let since = device.stats().since(&before);
        compiled += since.compiles + since.loads;
    }
    assert_eq!(compiled, 1);
    Ok(())
}

#[test]
fn an_elementwise_kernel_is_fused_with_its_neighbours() -> Result<()> {
    let device = device();
    let x = numbers(&[64, 100], &device)?;
    let before = device.stats();
    let y = gallery::mish::mish().call(&[&x])?.mul(2.0)?.relu().sum([1])?;
    y.realize()?;
    assert_eq!(device.stats().since(&before).launches, 1);
    Ok(())
}

#[test]
fn operations_around_a_kernel_are_part_of_its_loads_and_stores() -> Result<()> {
    let device = device();
    let x = numbers(&[9, 31], &device)?;
    let half = x.cast(DType::F16);
    Tensor::realize_all([&x, &half])?;
    let (softmax, heat) = (gallery::softmax::softmax(), gallery::heat::heat(0.2));
    let (product, norm) = (gallery::product::product(), gallery::norm::rms_norm(1e-5));
    let (square, weight) = (numbers(&[31, 31], &device)?, numbers(&[31], &device)?);
    let (column, one) = (numbers(&[9, 1], &device)?, numbers(&[1], &device)?);
    let others = numbers(&[9, 31], &device)?;
    Tensor::realize_all([&square, &weight, &column, &one, &others])?;
    type Program<'a> = &'a dyn Fn(&dyn Fn(Tensor) -> Result<Tensor>) -> Result<Tensor>;
    // With what is done to each value between operations: nothing, or computing it.
    let programs: [(&str, u64, Program<'_>); 15] = [
        ("scale and relu", 1, &|then| {
            let y = then(softmax.call(&[&x])?)?;
            Ok(y.mul(2.0)?.sub(0.1)?.relu())
        }),
        ("an input", 1, &|then| softmax.call(&[&then(x.mul(3.0)?.add(1.0)?)?])),
        // Outside of the plate it is zero, not one.
        ("an input with a border", 1, &|then| heat.call(&[&then(x.add(1.0)?)?])),
        ("a cast", 1, &|then| {
            let y = then(softmax.call(&[&then(half.cast(DType::F32))?])?)?;
            Ok(y.cast(DType::F16))
        }),
        ("two calls", 2, &|then| {
            let y = then(softmax.call(&[&x])?)?;
            let y = then(y.mul(5.0)?.relu())?;
            then(softmax.call(&[&y])?)?.add(1.0)
        }),
        ("a value that is read twice", 2, &|then| {
            let y = then(softmax.call(&[&x])?)?;
            y.mul(2.0)?.add(y.flip([0])?)
        }),
        ("a product", 1, &|then| {
            let y = then(product.call(&[&then(x.neg())?, &square])?)?;
            y.maximum(0.25)?.cast(DType::F16).mul(2.0)
        }),
        ("a function of itself", 1, &|then| {
            let y = then(norm.call(&[&x, &weight])?)?;
            y.sigmoid().mul(&y)
        }),
        ("a bias and a residual", 1, &|then| {
            let y = then(product.call(&[&x, &square])?)?;
            y.add(&weight)?.relu().add(&others)
        }),
        ("a scale of rows and one of all", 1, &|then| {
            let y = then(softmax.call(&[&x])?)?;
            y.mul(&column)?.mul(&one)?.cast(DType::F16).add(&half)
        }),
        ("a biased input", 1, &|then| norm.call(&[&then(x.add(&weight)?.mul(&column)?)?, &weight])),
        ("an input with a biased border", 1, &|then| heat.call(&[&then(x.add(&column)?)?])),
        ("what is computed for it", 2, &|then| {
            let y = then(softmax.call(&[&x])?)?;
            y.mul(then(others.sum_keepdim([1])?)?)
        }),
        ("what follows from it", 2, &|then| {
            let y = then(softmax.call(&[&x])?)?;
            y.sub(&then(y.max_keepdim([1])?)?)
        }),
        ("the sum of two calls", 2, &|then| {
            let y = then(softmax.call(&[&x])?)?;
            y.add(&then(heat.call(&[&x])?)?)
        }),
    ];
    for (name, launches, program) in programs {
        let apart = program(&|y| {
            y.realize()?;
            Ok(y)
        })?;
        let expected = apart.cast(DType::F32).to_vec::<f32>()?;
        let y = program(&Ok)?;
        let before = device.stats();
        y.realize()?;
        assert_eq!(device.stats().since(&before).launches, launches, "{name}");
        let found = y.cast(DType::F32).to_vec::<f32>()?;
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-6, "{name}: {found} not {expected}");
        }
    }
    Ok(())
}

#[test]
fn inputs_beyond_the_second_are_computed_by_the_kernel() -> Result<()> {
    let device = device();
    let sum = Kernel::new("sum", |k: &Lang| {
        let n = k.size("n");
        let x: Vec<_> = (0..6).map(|i| k.input(&format!("x{i}"), [n])).collect();
        let y = k.output("y", [n], x[0].dtype());
        k.each(n, |i| y.set(i, x[1..].iter().fold(x[0].at(i), |sum, x| sum * 10.0 + x.at(i))));
    });
    for computed in [vec![1], vec![2], vec![1, 2, 4], vec![0, 3, 5], (0..6).collect()] {
        let x: Vec<Tensor> = (0..6)
            .map(|i| Tensor::new([i as f32, 9.0 - i as f32], &device))
            .collect::<Result<_>>()?;
        let given = x
            .iter()
            .enumerate()
            .map(|(i, x)| if computed.contains(&i) { x.add(1.0) } else { Ok(x.clone()) });
        let given = given.collect::<Result<Vec<_>>>()?;
        let y = sum.call(&given.iter().collect::<Vec<_>>())?;
        let before = device.stats();
        let found = y.to_vec::<f32>()?;
        assert_eq!(device.stats().since(&before).launches, 1, "{computed:?}");
        let more: f32 = computed.iter().map(|&i| 10f32.powi(5 - i as i32)).sum();
        assert_eq!(found, [12345.0 + more, 987_654.0 + more], "{computed:?}");
    }
    Ok(())
}

#[test]
fn accesses_beyond_an_example_stay_outside() -> Result<()> {
    let device = device();
    let next = Kernel::new("next", |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let y = k.output("y", [n], x.dtype());
        k.each(n, |i| y.set(i, x.at_or(i + 1, 0.0)));
    });
    let text = next.to_text(&[DType::F32], &device)?;
    // The access without its guard: behind the last element a launch guards it, which reads 0.
    let guard = text.lines().find(|line| line.contains(" guard ")).expect("it has one");
    let (guarded, rest) = guard.split_once(' ').expect("a name");
    let bare = rest.trim_start().strip_prefix("guard ").and_then(|rest| rest.split_once(','));
    let changed =
        text.replace(&format!("[{guarded}]"), &format!("[{}]", bare.expect("an index").0));
    assert_ne!(changed, text);
    let (x, kernel) = (numbers(&[3, 5], &device)?, Kernel::from_text(&changed)?);
    let one = |x: &[Tensor]| kernel.call(&[&x[0]]);
    let all = Tensor::vmap(one, &[&x], &[Some(0)], 0)?.to_vec::<f32>()?;
    let expected = x.narrow(1, 1, 4)?.pad([(0, 0), (0, 1)])?.to_vec::<f32>()?;
    assert_eq!(all, expected);
    Ok(())
}

#[test]
fn a_kernel_is_part_of_a_trace_and_of_a_batch() -> Result<()> {
    let device = device();
    let scaled = scaled();
    let x = numbers(&[4, 5], &device)?;
    let expected = x.mul(3.0)?.to_vec::<f32>()?;
    let kernel = scaled.clone();
    let batched = Tensor::vmap(move |x| kernel.call(&[&x[0]]), &[&x], &[Some(0)], 0)?;
    assert_eq!(batched.to_vec::<f32>()?, expected);
    let many = numbers(&[3000, 7], &device)?;
    many.realize()?;
    let softmax = gallery::softmax::softmax();
    let batched = Tensor::vmap(
        move |x| softmax.call(&[&x[0].unsqueeze(0)?])?.squeeze(0),
        &[&many],
        &[Some(0)],
        0,
    )?;
    let before = device.stats();
    batched.realize()?;
    assert_eq!(device.stats().since(&before).launches, 1);
    let expected_rows = many.softmax(1)?.to_vec::<f32>()?;
    for (found, expected) in batched.to_vec::<f32>()?.iter().zip(expected_rows) {
        assert!((found - expected).abs() <= 1e-6, "{found} not {expected}");
    }
    let kernel = scaled.clone();
    let jit = Jit::new(move |x: &[Tensor]| Ok(vec![kernel.call(&[&x[0]])?.add(1.0)?]));
    for i in 0..4 {
        let row = x.select_index(0, i)?;
        let found = jit.call(&[&row])?[0].to_vec::<f32>()?;
        let right: Vec<f32> = expected[5 * i as usize..][..5].iter().map(|x| x + 1.0).collect();
        assert_eq!(found, right);
    }
    Ok(())
}

#[test]
fn a_gradient_that_nobody_gave_is_an_error() -> Result<()> {
    let device = device();
    let x = numbers(&[5], &device)?.tracked();
    let y = scaled().call(&[&x])?.sum(..)?;
    let error = y.grad(&[&x]).expect_err("it is wrong").to_string();
    assert!(error.contains("`scaled` has no gradient"), "{error}");
    let wrong = scaled().with_gradient(|_| Ok(vec![]));
    let error = wrong.call(&[&x])?.sum(..)?.grad(&[&x]).expect_err("it is wrong").to_string();
    assert!(error.contains("one cotangent"), "{error}");
    Ok(())
}

#[test]
fn a_plan_tells_the_name_of_a_kernel() -> Result<()> {
    let device = device();
    let x = numbers(&[5], &device)?;
    let text = scaled().call(&[&x])?.explain()?.to_string();
    assert!(text.contains("scaled"), "{text}");
    device.set_profiling(true);
    scaled().call(&[&x])?.realize()?;
    assert!(device.profile().iter().any(|time| time.name.contains("scaled")));
    // A function of elements is operations of a launch, which tell its name.
    let (x, cube) = (x.tracked(), Kernel::elementwise("cube", |x: &[Val]| x[0] * x[0] * x[0]));
    let (y, line) = (cube.call(&[&x])?, line!());
    let told = y.mul(2.0)?.explain()?;
    let calls = &told.launches[0].kernels[0].calls;
    let named = calls.iter().filter(|call| call.name.as_deref() == Some("cube"));
    let named: Vec<String> = named.map(ToString::to_string).collect();
    assert_eq!(named, [format!("cube at {}:{line}", file!())], "{told}");
    let slope = y.sum(..)?.grad(&[&x])?.remove(0).expect("it depends on x");
    let text = slope.explain()?.to_string();
    assert!(text.contains("gradient of cube"), "{text}");
    Ok(())
}

#[test]
fn a_text_tells_that_groups_look_back() -> Result<()> {
    let device = device();
    for (kernel, looks_back) in [(gallery::scan::scan(), true), (scaled(), false)] {
        let text = kernel.to_text(&[DType::F32], &device)?;
        assert_eq!(text.contains("\nlooks_back\n"), looks_back, "{text}");
        assert_eq!(Kernel::from_text(&text)?.to_text(&[DType::F32], &device)?, text);
    }
    Ok(())
}

#[test]
fn checked_mode_looks_at_each_access() -> Result<()> {
    let device = device();
    device.set_checked(true);
    let x = numbers(&[5], &device)?;
    let line = line!() + 5;
    let wrong = Kernel::new("wrong", |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let y = k.output("y", [n], x.dtype());
        k.each(n, |i| y.set(i, x.at(i - 1)));
    });
    let error = wrong.call(&[&x])?.to_vec::<f32>().expect_err("it is wrong").to_string();
    assert!(error.contains(&format!("kernels.rs:{line}")), "{error}");
    assert_eq!(scaled().call(&[&x])?.to_vec::<f32>()?, x.mul(3.0)?.to_vec::<f32>()?);
    Ok(())
}

/// It waits for a condition that never comes, and ends after all: nothing is read of its results.
#[test]
fn a_wait_without_end_is_an_error() -> Result<()> {
    let device = device();
    let x = numbers(&[200], &device)?;
    let endless = Kernel::new("endless", |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let y = k.output("y", [n], x.dtype());
        k.each(n, |i| {
            let turns = k.var(k.value(0, DType::I32));
            k.while_(|| x.at(i).eq(x.at(i)), || turns.set(turns.get() ^ 1));
            y.set(i, turns.get().cast(x.dtype()));
        });
    });
    let error = endless.call(&[&x])?.to_bytes().expect_err("it has no end").to_string();
    assert!(error.contains("kernels.rs") && error.contains("iterations of loops"), "{error}");
    Ok(())
}

#[test]
fn halves_of_an_elementwise_kernel_are_rounded_once() -> Result<()> {
    let device = device();
    let kernel = Kernel::elementwise("k", |x: &[Val]| (x[0] + 1.0) * (x[0] - 1.0) * x[0].exp());
    let x = numbers(&[200], &device)?.cast(DType::F16);
    let wide = kernel.call(&[&x.cast(DType::F32)])?.cast(DType::F16);
    assert_eq!(kernel.call(&[&x])?.to_bytes()?, wide.to_bytes()?);
    Ok(())
}

#[test]
fn loops_end_where_their_condition_does_not_hold() -> Result<()> {
    let device = device();
    let collatz = Kernel::new("collatz", |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let y = k.output("y", [n], DType::I32);
        k.each(n, |i| {
            let (number, steps) = (k.var(x.at(i)), k.var(k.value(0, DType::I32)));
            k.while_(
                || number.get().gt(1),
                || {
                    let now = number.get();
                    let odd = (now & 1).eq(1);
                    number.set(odd.select(now * 3 + 1, now / 2));
                    steps.set(steps.get() + 1);
                },
            );
            y.set(i, steps.get());
        });
    });
    let x = Tensor::arange(1i64, 1000, 1, &device)?;
    let found = collatz.call(&[&x])?.to_vec::<i32>()?;
    let steps = |mut n: i64| {
        let mut steps = 0;
        while n > 1 {
            n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
            steps += 1;
        }
        steps
    };
    assert_eq!(found, (1..1000).map(steps).collect::<Vec<i32>>());
    Ok(())
}

#[test]
fn more_inputs_than_a_node_has_sources_are_kept_apart() -> Result<()> {
    let device = device();
    let dot = Kernel::new("dot", |k: &Lang| {
        let n = k.size("n");
        let x: Vec<_> = (0..9).map(|i| k.input(&format!("x{i}"), [n])).collect();
        let y = k.output("y", [1], x[0].dtype());
        k.groups([1], 64, |g, [_]| {
            let all = |i| x.iter().skip(1).fold(x[0].at(i), |sum, x| sum * 2.0 + x.at(i));
            y.set(0, g.reduce(BinaryOp::Add, n, all));
        });
    });
    let x: Vec<Tensor> = (0..9).map(|i| Tensor::full([3], i as f32, &device)).collect();
    let expected = 3.0 * (1..9).fold(0.0, |sum, x| sum * 2.0 + x as f32);
    let refs: Vec<&Tensor> = x.iter().collect();
    assert_eq!(dot.call(&refs)?.to_vec::<f32>()?, [expected]);
    Ok(())
}

/// Independent kernels that are asked for at once share no launch in which their sizes would be mixed up.
#[test]
fn independent_kernels_keep_their_sizes() -> Result<()> {
    let device = device();
    let scaled = scaled();
    let inputs: Vec<Tensor> =
        [3usize, 50, 7].iter().map(|&n| numbers(&[n], &device)).collect::<Result<_>>()?;
    let found: Vec<Tensor> = inputs.iter().map(|x| scaled.call(&[x])).collect::<Result<_>>()?;
    Tensor::realize_all(found.iter())?;
    for (x, y) in inputs.iter().zip(&found) {
        assert_eq!(y.to_vec::<f32>()?, x.mul(3.0)?.to_vec::<f32>()?);
    }
    // An input that nobody holds: its memory is not the result's.
    let y = scaled.call(&[&inputs[1].add(1.0)?])?.add(1.0)?;
    let right = inputs[1].add(1.0)?.mul(3.0)?.add(1.0)?;
    assert_eq!(y.to_vec::<f32>()?, right.to_vec::<f32>()?);
    Ok(())
}

/// Programs that calls with inputs of 500 random sizes are compiled to.
fn programs_of_sizes(
    device: &Device,
    inputs: &dyn Fn([usize; 3]) -> Result<Vec<Tensor>>,
    call: &dyn Fn(&[&Tensor]) -> Result<Vec<Tensor>>,
) -> Result<u64> {
    let (mut rng, mut programs) = (Rng::new(7), 0);
    for _ in 0..500 {
        let inputs = inputs([40, 40, 20].map(|most| 1 + rng.below(most)))?;
        Tensor::realize_all(&inputs)?;
        let before = device.stats();
        Tensor::realize_all(&call(&inputs.iter().collect::<Vec<_>>())?)?;
        let since = device.stats().since(&before);
        programs += since.compiles + since.loads;
    }
    Ok(programs)
}

/// The CPU has no matrix instructions, for which rows of whole vectors have programs of their own.
#[test]
fn kernels_of_the_gallery_are_compiled_once_for_all_sizes() -> Result<()> {
    let device = device();
    let of = |shape: &[usize]| numbers(shape, &device);
    let whole = |n: usize, most: usize| -> Result<Tensor> {
        let x: Vec<i32> = (0..n).map(|i| ((i * 7919 + 13) % most) as i32).collect();
        Tensor::from_slice(&x, [n], &device)
    };
    // Starts of `parts` parts of `n` elements.
    let starts = |parts: usize, n: usize| -> Result<Tensor> {
        let x: Vec<i32> = (0..=parts).map(|i| (i * n / parts) as i32).collect();
        Tensor::from_slice(&x, [parts + 1], &device)
    };
    type Inputs<'a> = &'a dyn Fn([usize; 3]) -> Result<Vec<Tensor>>;
    let matrix: Inputs<'_> = &|[n, m, _]| Ok(vec![of(&[n, m])?]);
    let row: Inputs<'_> = &|[n, m, _]| Ok(vec![of(&[n * m])?]);
    let kernels: [(Kernel, u64, Inputs<'_>); 13] = [
        (gallery::softmax::softmax(), 1, matrix),
        (gallery::cumsum::cumsum(), 1, matrix),
        (gallery::heat::heat(0.2), 1, matrix),
        (gallery::sort::sort(), 1, matrix),
        (gallery::norm::rms_norm(1e-5), 1, &|[n, m, _]| Ok(vec![of(&[n, m])?, of(&[m])?])),
        (gallery::segments::segment_sum(), 1, &|[n, m, _]| Ok(vec![of(&[n])?, starts(m, n)?])),
        (gallery::product::product(), 1, &|[n, m, l]| Ok(vec![of(&[n, l])?, of(&[l, m])?])),
        (gallery::attention::attention(16, true), 1, &|[n, m, l]| {
            let keys = [l % 3 + 1, m, 16];
            Ok(vec![of(&[l % 3 + 1, n, 16])?, of(&keys)?, of(&keys)?])
        }),
        // Others clear and read the number that tells of a wait without end.
        (gallery::collatz::collatz(), 3, &|[n, ..]| Ok(vec![whole(n, 97)?])),
        // Another one fills the counts.
        (gallery::histogram::histogram(), 2, &|[n, m, _]| {
            let bytes: Vec<u8> = (0..n * m).map(|i| (i * 31 % 251) as u8).collect();
            Ok(vec![Tensor::from_slice(&bytes, [n * m], &device)?])
        }),
        // Another one fills the sums that groups publish: all rows are one tile.
        (gallery::scan::scan(), 2, row),
        // Functions of elements are operations of graphs: kernels of the first size, of one element, and of all other sizes.
        (gallery::mish::mish(), 3, row),
        (gallery::gated::gated(), 3, &|[n, m, _]| Ok(vec![of(&[n * m])?, of(&[n * m])?])),
    ];
    for (kernel, most, inputs) in kernels {
        let programs = programs_of_sizes(&device, inputs, &|x| kernel.call_all(x))?;
        assert!((1..=most).contains(&programs), "{}: {programs}, not {most}", kernel.name());
    }
    // Other programs fill distances and slots of the queue, one for the first size and one for all others, `shortened`, and
    // the ends of the queue.
    let graph: Inputs<'_> = &|[n, m, _]| Ok(vec![starts(n + 1, m)?, whole(m, n + 1)?]);
    let search = |x: &[&Tensor]| Ok(vec![gallery::bfs::bfs(x[0], x[1], 0)?]);
    let programs = programs_of_sizes(&device, graph, &search)?;
    assert!((1..=7).contains(&programs), "bfs: {programs}");
    Ok(())
}

/// Each group stores to its own tile. The last tiles extend beyond the array.
#[test]
fn tiles_cover_an_array() -> Result<()> {
    let device = device();
    let shape = [5usize, 7];
    let transposed = |stores_outside: bool| {
        Kernel::new("transposed", move |k: &Lang| {
            let [n, m] = k.sizes(["n", "m"]);
            let x = k.input("x", [n, m]);
            let y = k.output("y", [m, n], x.dtype());
            let [wide, tall] = [[shape[0], shape[1]], [shape[1], shape[0]]];
            k.groups(x.tiles(wide), 32, |g, [i, j]| {
                let (from, to) = (x.tile([i, j], wide), y.tile([j, i], tall));
                g.each(shape, |[i, j]| {
                    to.set([j, i], from.at([i, j]));
                    if stores_outside {
                        to.set([j, i + shape[0]], from.at([i, j]));
                        to.row(j - shape[1]).set(i, from.at_or([i, j], 9.0));
                    }
                });
            });
        })
    };
    for [n, m] in [[1, 1], [5, 7], [13, 40], [20, 14]] {
        let x = numbers(&[n, m], &device)?;
        transposed(false).check(&[&x])?;
        let error = transposed(true).check(&[&x]).unwrap_err().to_string();
        assert!(
            error.contains("outside of the array or tile") && error.contains(file!()),
            "{error}"
        );
        let expected = x.transpose(0, 1)?.to_vec::<f32>()?;
        for stores_outside in [false, true] {
            let found = transposed(stores_outside).call(&[&x])?.to_vec::<f32>()?;
            assert_eq!(found, expected, "{n} {m}");
        }
    }
    let first = Kernel::new("first", |k: &Lang| {
        let n = k.size("n");
        let (x, y) = (k.input("x", [n]), k.output("y", [n], DType::F32));
        k.groups(x.tiles([4]), 1, |_, [i]| {
            let (x, y) = (x.tile(i, [4]), y.tile(i, [4]));
            k.for_each(4, |i| y.set(i, x.at_or(i - 1, -1.0) + x.at_or(i + 1, -2.0)));
        });
    });
    let x = Tensor::new([1f32, 2.0, 3.0, 4.0, 5.0], &device)?;
    assert_eq!(first.call(&[&x])?.to_vec::<f32>()?, [1.0, 4.0, 6.0, 1.0, -3.0]);
    Ok(())
}

#[test]
fn a_trace_has_the_values_of_each_step() -> Result<()> {
    let device = device();
    let line = line!() + 5;
    let sums = Kernel::new("sums", |k: &Lang| {
        let [rows, cols] = k.sizes(["rows", "cols"]);
        let (x, y) = (k.input("x", [rows, cols]), k.output("y", [rows], DType::F32));
        k.groups([rows], 64, |g, [row]| {
            let sum = g.reduce(BinaryOp::Add, cols, |i| x.at([row, i]));
            let half = sum * 0.5;
            y.set(row, half);
        });
    });
    let x = Tensor::new([[1f32, 2.0, 3.0], [10.0, 20.0, 30.0]], &device)?;
    for (row, sums_so_far, half) in
        [(0, [0.0, 1.0, 3.0, 6.0], 3.0), (1, [0.0, 10.0, 30.0, 60.0], 30.0)]
    {
        let steps = sums.trace(&[&x], &[row])?;
        let of = |line: u32, op: &str| -> Vec<f64> {
            let all = steps.iter().filter(|step| {
                step.line.line == line && step.op.split_whitespace().next() == Some(op)
            });
            all.map(|step| step.result[0].to_f64()).collect()
        };
        assert_eq!(of(line, "store"), sums_so_far, "{steps:#?}");
        assert_eq!(of(line + 1, "mul"), [half], "{steps:#?}");
        assert_eq!(of(line + 2, "store"), [half], "{steps:#?}");
    }
    // An iteration of `each`, of a function of elements, and up to a mistake.
    let wrong = Kernel::new("wrong", |k: &Lang| {
        let [n, m] = k.sizes(["n", "m"]);
        let (x, y) = (k.input("x", [n, m]), k.output("y", [n, m], DType::F32));
        k.each([n, m], |[i, j]| y.set([i, j], (x.at([i, j]) + 1.0) * x.at([i, j + 1])));
    });
    let last = |steps: &[KernelStep]| steps.last().map(|step| step.result[0].to_f64());
    assert_eq!(last(&wrong.trace(&[&x], &[0, 1])?), Some(9.0));
    assert!(wrong.check(&[&x]).is_err());
    let steps = wrong.trace(&[&x], &[0, 2])?;
    assert!(!steps.is_empty() && !steps.iter().any(|step| step.op.contains("store")));
    let square = Kernel::elementwise("square", |x: &[Val]| x[0] * x[0]);
    assert_eq!(last(&square.trace(&[&x], &[4])?), Some(400.0));
    assert!(square.trace(&[&x], &[6])?.is_empty());
    Ok(())
}
