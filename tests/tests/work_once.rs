//! A value that a program still holds is computed once, and chains do not grow from step to step.

mod common;

use common::device;
use std::time::{Duration, Instant};
use zyx_tests::zyx_core::{DType, Device, Error, Param, Result, Rng, Stats, Tensor};

fn matrix(rows: usize, columns: usize, seed: u64, device: &Device) -> Result<Tensor> {
    let x = Tensor::randn([rows, columns], DType::F32, &mut Rng::seed(seed), device)?;
    let x = (x * 0.1).contiguous();
    x.realize()?;
    Ok(x)
}

/// Runs a step 202 times. Steps 9 to 11 make as many launches as steps 199 to 201. From step 13 on no kernel is
/// compiled, all plans are cached, and live memory does not grow.
fn steady(device: &Device, mut step: impl FnMut() -> Result<()>) -> Result<()> {
    let mut at = Vec::new();
    let mut stats = Vec::new();
    // The most bytes that were live after a step, early and late: a chain is cut once in several steps.
    let mut live = [0, 0];
    for i in 1..=202 {
        let (before, start) = (device.stats(), Instant::now());
        step()?;
        let part = match i {
            13..=40 => Some(0),
            175.. => Some(1),
            _ => None,
        };
        if let Some(part) = part {
            live[part] = live[part].max(device.stats().live_bytes);
        }
        if [9, 10, 11, 199, 200, 201].contains(&i) {
            at.push(device.stats().since(&before));
        }
        if [12, 202].contains(&i) {
            stats.push((device.stats(), start.elapsed()));
        }
    }
    let launches: Vec<u64> = at.iter().map(|step| step.launches).collect();
    let (early, late): (u64, u64) = (launches[..3].iter().sum(), launches[3..].iter().sum());
    assert_eq!(early, late, "{launches:?}");
    let during = stats[1].0.since(&stats[0].0);
    assert_eq!((during.compiles, during.plan_misses), (0, 0), "{during:?}");
    assert_eq!(live[0], live[1], "memory grows");
    Ok(())
}

#[test]
fn carried_state_is_cut_by_detach() -> Result<()> {
    let device = device();
    let (w, u) = (matrix(16, 16, 1, &device)?, matrix(8, 16, 2, &device)?);
    let [w, u] = [w, u].map(Param::new);
    let x = matrix(4, 8, 3, &device)?;
    let mut h = Tensor::zeros([4, 16], DType::F32, &device);
    // The updates are tensor arithmetic, without an optimizer.
    steady(&device, || {
        let state = h.detach();
        h = state.matmul(&w.tensor())?.add(x.matmul(&u.tensor())?)?.tanh();
        let loss = h.square().mean(..)?;
        let parameters = [w.tensor(), u.tensor()];
        let gradients = loss.grad(&[&parameters[0], &parameters[1]])?;
        for (p, g) in [&w, &u].into_iter().zip(gradients) {
            p.set(&p.tensor().detach().sub(g.unwrap().mul(0.1)?)?)?;
        }
        assert!(loss.item::<f32>()?.is_finite());
        Ok(())
    })
}

#[test]
fn state_in_generation_is_computed_once() -> Result<()> {
    let device = device();
    let (w, u) = (matrix(16, 16, 1, &device)?, matrix(16, 16, 2, &device)?);
    let (mut h, mut c) = (matrix(1, 16, 3, &device)?, matrix(1, 16, 4, &device)?);
    let mut token = 0;
    steady(&device, || {
        let x = u.slice(0, token..token + 1)?;
        let gates = h.matmul(&w)?.add(x)?;
        c = c.mul(gates.sigmoid())?.add(gates.tanh())?;
        h = c.tanh();
        token = h.matmul(&u)?.argmax(1)?.item::<i64>()? as usize;
        Ok(())
    })
}

#[test]
fn descent_by_assignment_does_not_grow() -> Result<()> {
    let device = device();
    let p = Param::new(matrix(16, 16, 1, &device)?);
    let x = matrix(4, 16, 2, &device)?;
    for tracked in [false, true] {
        steady(&device, || {
            let value = p.tensor();
            let loss = x.matmul(&value)?.sub(1.0)?.square().mean(..)?;
            let g = loss.grad(&[&value])?.remove(0).unwrap().mul(0.1)?;
            let value = if tracked { value } else { value.detach() };
            p.set(&value.sub(g)?)?;
            loss.item::<f32>().map(drop)
        })?;
    }
    Ok(())
}

/// The time of the fastest of some runs, each of a new value.
fn time(runs: usize, mut run: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    (0..runs).map(|_| run()).try_fold(Duration::MAX, |least, time| Ok(least.min(time?)))
}

fn spent(device: &Device, run: impl FnOnce() -> Result<()>) -> Result<Stats> {
    let before = device.stats();
    run()?;
    Ok(device.stats().since(&before))
}

#[test]
fn many_reads_of_a_pending_product_compute_it_twice_at_most() -> Result<()> {
    let device = device();
    let n = 384;
    let a = matrix(n, n, 1, &device)?;
    let read = |y: &Tensor, i: usize| {
        let start = Instant::now();
        let element = y.slice(0, i..i + 1)?.slice(1, i..i + 1)?.reshape(())?;
        element.item::<f32>()?;
        Ok::<_, Error>(start.elapsed())
    };
    let product = || {
        let start = Instant::now();
        a.matmul(&a)?.realize()?;
        Ok(start.elapsed())
    };
    let reads = || {
        let y = a.matmul(&a)?;
        let start = Instant::now();
        for i in 0..64 {
            read(&y, i)?;
        }
        Ok(start.elapsed())
    };
    let realized = || {
        let y = a.matmul(&a)?;
        y.realize()?;
        let start = Instant::now();
        for i in 0..64 {
            read(&y, i)?;
        }
        Ok(start.elapsed())
    };
    let (once, all, there) = (time(5, product)?, time(5, reads)?, time(5, realized)?);
    let y = a.matmul(&a)?;
    println!("first reads {:?}", [read(&y, 0)?, read(&y, 1)?, read(&y, 2)?]);
    println!("a product {once:?}, 64 reads {all:?}, of a realized one {there:?}");
    let kept = spent(&device, || reads().map(drop))?.values_kept;
    assert_eq!(kept, 1);
    assert!(all < 2 * once + 2 * there, "{all:?} for 64 reads, {once:?} for a product");
    Ok(())
}

#[test]
fn counts_of_a_pending_product_compute_it_once() -> Result<()> {
    let device = device();
    let a = matrix(256, 256, 1, &device)?;
    let y = a.matmul(&a)?;
    let whole = |i: usize| y.gt(i as f32 / 100.0)?.nonzero();
    let first = spent(&device, || whole(0).map(drop))?;
    assert!(first.values_kept > 0, "{first:?}");
    let z = a.matmul(&a)?;
    z.realize()?;
    let next = spent(&device, || whole(1).map(drop))?;
    let of_realized = spent(&device, || z.gt(0.01)?.nonzero().map(drop))?;
    let counts = |stats: Stats| (stats.launches, stats.values_kept);
    assert_eq!(counts(next), counts(of_realized));
    Ok(())
}

#[test]
fn batches_of_pending_data_compute_statistics_once() -> Result<()> {
    let device = device();
    let raw = matrix(2048, 32, 1, &device)?;
    let data = raw.sub(raw.mean_keepdim(0)?)?.div(raw.std(0, 1)?)?;
    let batch = |i: usize| data.slice(0, 8 * i..8 * i + 8)?.sum(..)?.item::<f32>();
    let first = spent(&device, || batch(0).map(drop))?;
    assert!(first.values_kept > 0, "{first:?}");
    for i in 1..4 {
        batch(i)?;
    }
    let later = spent(&device, || batch(7).map(drop))?;
    assert_eq!((later.launches, later.compiles), (1, 0), "{later:?}");
    Ok(())
}

#[test]
fn averages_by_hand_do_not_grow() -> Result<()> {
    let device = device();
    let w = matrix(64, 64, 1, &device)?;
    let mut average = w.clone();
    let mut count = Tensor::new(0i64, &device)?;
    let mut momentum = matrix(64, 64, 2, &device)?;
    steady(&device, || {
        average = average.mul(0.99)?.add(w.mul(0.01)?)?;
        momentum = momentum.mul(0.5)?.add(&w)?;
        count = count.add(1)?;
        let read = average.sum(..)?.add(momentum.sum(..)?)?.add(count.cast(DType::F32))?;
        read.item::<f32>().map(drop)
    })
}

#[test]
fn rows_taken_by_numbers_share_a_plan() -> Result<()> {
    let device = device();
    let data = matrix(64, 5, 1, &device)?;
    let mut rng = Rng::seed(7);
    let before = device.stats();
    for step in 0..40 {
        // Few places, so that many are equal in each step, others in each.
        let ix = Tensor::randint(0, 12, [32], DType::I64, &mut rng, &device)?.to_vec::<i64>()?;
        let rows = ix.iter().map(|&i| data.slice(0, i as usize..i as usize + 8));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let start = device.stats();
        let batch = Tensor::stack(&rows.iter().collect::<Vec<_>>(), 0)?.mul(2.0)?;
        let got = batch.to_vec::<f32>()?;
        let all = data.to_vec::<f32>()?;
        let want = ix.iter().flat_map(|&i| &all[5 * i as usize..5 * (i as usize + 8)]);
        assert!(got.iter().zip(want).all(|(got, want)| *got == 2.0 * want));
        let made = device.stats().since(&start);
        assert!(step < 3 || (made.compiles, made.plan_misses) == (0, 0), "{step}: {made:?}");
    }
    assert!(device.stats().since(&before).plan_misses < 12);
    Ok(())
}

#[test]
fn a_normalisation_s_statistics_cost_no_second_convolution() -> Result<()> {
    use zyx_nn::{BatchNorm2d, Forward, Init};
    let device = device();
    let norm = BatchNorm2d::new(16, &mut Init::new(1, &device))?;
    let x = matrix(2 * 3, 32 * 32, 1, &device)?.reshape([2, 3, 32, 32])?;
    let w = matrix(16, 27, 2, &device)?.reshape([16, 3, 3, 3])?;
    steady(&device, || {
        let y = norm.forward(&x.conv2d(&w, None, Default::default())?)?;
        y.realize()
    })?;
    let seen = spent(&device, || {
        let y = x.conv2d(&w, None, Default::default())?;
        norm.forward(&y)?.realize()
    })?;
    // The mean and the variance, and perhaps the convolution.
    assert!(seen.values_kept >= 2, "{seen:?}");
    // The running mean is pending. Its plan reads the kept mean of the batch.
    let read = spent(&device, || norm.running_mean.as_ref().unwrap().tensor().realize())?;
    assert!(read.bytes_moved == 0 && read.nodes < 20, "{read:?}");
    Ok(())
}

/// A random program whose intermediate tensors are partly held and read in any order.
#[test]
fn dear_values_of_random_programs_are_computed_once() -> Result<()> {
    for seed in 0..30u64 {
        let device = device();
        let before = device.stats().live_bytes;
        {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut below = |n: usize| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state % n as u64) as usize
            };
            let leaf = Tensor::from_slice(&(0..64).collect::<Vec<i64>>(), [8, 8], &device)?;
            let mut known = vec![leaf.remainder(5i64)?];
            known[0].realize()?;
            // Reference: the same values, each realized before the next one is made.
            let mut reference = known.clone();
            for _ in 0..10 {
                let (i, j, how) = (below(known.len()), below(known.len()), below(4));
                let make = |x: &Tensor, y: &Tensor| match how {
                    0 => x.matmul(y)?.remainder(7i64),
                    1 => x.add(y),
                    2 => x.sum_keepdim(1)?.remainder(5i64)?.add(y),
                    _ => x.mul(y)?.remainder(3i64),
                };
                known.push(make(&known[i], &known[j])?);
                reference.push(make(&reference[i], &reference[j])?);
                reference.last().unwrap().realize()?;
            }
            let mut order: Vec<usize> = (0..known.len()).collect();
            (1..order.len()).rev().for_each(|i| order.swap(i, below(i + 1)));
            for i in order {
                let read = known[i].sum(..)?;
                assert_eq!(read.item::<i64>()?, reference[i].sum(..)?.item::<i64>()?, "{seed}");
                assert_eq!(known[i].to_vec::<i64>()?, reference[i].to_vec::<i64>()?, "{seed}");
            }
        }
        device.synchronize()?;
        assert_eq!(device.stats().live_bytes, before, "seed {seed}: memory stays");
    }
    Ok(())
}

#[test]
fn kept_memory_is_given_up_when_the_device_is_full() -> Result<()> {
    let device = device();
    let n = 256;
    let a = matrix(n, n, 1, &device)?;
    let y = a.matmul(&a)?;
    let sum = y.sum(..)?.item::<f32>()?;
    let there = device.stats();
    assert_eq!(there.values_kept, 1);
    let limit = there.live_bytes as usize + there.cached_bytes as usize + n * n;
    device.set_memory_limit(Some(limit));
    let big = Tensor::full([n, n], 2f32, &device).contiguous();
    big.realize()?;
    let more = Tensor::full([n, n], 3f32, &device).contiguous();
    more.realize()?;
    let full = device.stats();
    assert!(full.values_dropped > 0, "{full:?}");
    drop((big, more));
    assert_eq!(y.sum(..)?.item::<f32>()?, sum);
    device.set_memory_limit(None);
    Ok(())
}

#[test]
fn tracked_values_that_are_kept_have_gradients() -> Result<()> {
    let device = device();
    let w = matrix(16, 16, 1, &device)?.tracked();
    let x = matrix(4, 16, 2, &device)?;
    let gradient = |read_first: bool| {
        let h = x.matmul(&w)?.tanh();
        let loss = h.matmul(&w)?.square().sum(..)?;
        if read_first {
            loss.item::<f32>()?;
            assert!(!h.is_realized(), "a kept value is the device's to drop");
        }
        loss.grad(&[&w, &h])?.remove(0).unwrap().to_vec::<f32>()
    };
    assert_eq!(gradient(true)?, gradient(false)?);
    Ok(())
}

/// Reads on the way do not change gradients by untracked tensors. Of a long chain they are errors.
#[test]
fn untracked_values_that_are_kept_have_gradients_or_errors() -> Result<()> {
    let device = device();
    let x = matrix(16, 16, 1, &device)?;
    let gradient = |steps: usize, reads: bool| {
        let mut h = x.mul(2.0)?;
        for _ in 0..steps {
            h = h.matmul(&x)?.add(&x)?;
            if reads {
                h.sum(..)?.item::<f32>()?;
            }
        }
        h.sum(..)?.grad(&[&x])?.remove(0).expect("it depends").to_vec::<f32>()
    };
    for steps in [1, 2, 3, 5] {
        let before = device.stats();
        let (read, plain) = (gradient(steps, true)?, gradient(steps, false)?);
        assert!(device.stats().since(&before).values_kept >= steps as u64);
        let close = |(x, y): (&f32, &f32)| (x - y).abs() <= 1e-4 * y.abs().max(1.0);
        assert!(read.iter().zip(&plain).all(close), "{steps}");
    }
    let error = gradient(40, true).expect_err("histories of a long chain are given up");
    assert!(error.to_string().contains("given up"), "{error}");
    Ok(())
}

/// Inputs that only the rule of a checkpoint holds are freed once their plan has used them.
#[test]
fn inputs_of_checkpoints_are_not_kept() -> Result<()> {
    let device = device();
    let w = matrix(16, 16, 1, &device)?.tracked();
    let mut h = matrix(4, 16, 2, &device)?;
    for _ in 0..4 {
        h = Tensor::checkpoint(|x| Ok(x[0].matmul(&x[1])?.tanh()), &[&h, &w])?;
    }
    let gradients = h.square().sum(..)?.grad(&[&w])?;
    drop(h);
    let gradients: Vec<Tensor> = gradients.into_iter().flatten().collect();
    let seen = spent(&device, || Tensor::realize_all(&gradients))?;
    assert_eq!(seen.values_kept, 0, "{seen:?}");
    Ok(())
}

#[test]
fn explanations_tell_what_is_kept() -> Result<()> {
    let device = device();
    let a = matrix(64, 64, 1, &device)?;
    let y = a.matmul(&a)?;
    let total = y.exp().sum(..)?;
    let told = total.explain()?.to_string();
    assert!(told.contains("the program holds it"), "{told}");
    drop(y);
    let told = total.explain()?.to_string();
    assert!(!told.contains("the program holds it"), "{told}");
    Ok(())
}
