//! Values go from each device of this machine to each other, whatever their backends.
#![allow(clippy::unwrap_used, reason = "tests")]

use zyx::prelude::*;

/// The bytes of so many elements: every pattern that the dtype has, NaNs included; bools are 0 or 1.
fn pattern(dtype: DType, n: usize) -> Vec<u8> {
    let byte = |i: usize| if dtype == DType::Bool { i % 2 } else { i * 37 + i / 256 * 11 };
    (0..n * dtype.size()).map(|i| byte(i) as u8).collect()
}

/// The devices that are there; those that `ZYX_REQUIRE` names and this build knows are among them.
fn devices() -> Vec<Device> {
    let open = |info: &zyx::DeviceInfo| Device::open(&info.spec).ok();
    let devices: Vec<Device> = Device::list().iter().filter_map(open).collect();
    let required = std::env::var("ZYX_REQUIRE").unwrap_or_default();
    let known = zyx::runtime().backend_names();
    for name in required.split(',').filter(|name| known.contains(name)) {
        let there = devices.iter().any(|device| device.spec().split(':').next() == Some(name));
        assert!(there, "{name} is required but absent: {devices:?}");
    }
    assert!(devices.len() > 1, "the interpreter and one more: {devices:?}");
    devices
}

/// Each device with each, itself included.
fn pairs() -> Vec<(Device, Device)> {
    let devices = devices();
    devices.iter().flat_map(|a| devices.iter().map(move |b| (a.clone(), b.clone()))).collect()
}

#[test]
fn each_device_to_each_other() {
    for (from, to) in &pairs() {
        let stored = |dtype: &&DType| [from, to].iter().all(|d| d.caps().storage.contains(**dtype));
        for &dtype in DType::ALL.iter().filter(stored) {
            for n in [0, 1, 3, 1000] {
                let what = format!("{n} {dtype} from {from} to {to}");
                let bytes = pattern(dtype, n);
                let x = Tensor::from_bytes(&bytes, dtype, [n], from).unwrap();
                let there = x.to_device(to).unwrap();
                assert_eq!(there.device(), to, "{what}");
                assert_eq!(there.to_bytes().unwrap(), bytes, "{what}");
                if let Some(view) = there.host_view().unwrap() {
                    assert_eq!(view.as_slice(), bytes, "{what}, in place");
                }
            }
        }
        for &dtype in DType::ALL.iter().filter(|&&dtype| !to.caps().storage.contains(dtype)) {
            let Ok(x) = Tensor::from_bytes(&pattern(dtype, 1), dtype, [1], from) else { continue };
            let error = x.to_device(to).unwrap_err().to_string();
            assert!(error.contains("does not store") && error.contains(file!()), "{error}");
        }
        // What is pending is computed where it is.
        let x = Tensor::arange(0i32, 5, 1, from).unwrap();
        let y = (&x * 3i32).to_device(to).unwrap();
        assert_eq!((&y + 1i32).to_vec::<i32>().unwrap(), [1, 4, 7, 10, 13], "{from} to {to}");
        let z = &y + 2i32;
        if let Some(view) = z.host_view().unwrap() {
            assert_eq!(view.as_slice(), [2i32, 5, 8, 11, 14].map(i32::to_le_bytes).concat());
        }
    }
}

#[test]
fn gradients_flow_between_each_two_devices() {
    for (a, b) in &pairs() {
        let what = format!("{a} and {b}");
        let w = Tensor::new([[1f32, 2.0], [3.0, -4.0]], a).unwrap().tracked();
        let v = Tensor::new([[0.5f32, -1.0], [2.0, 0.25]], b).unwrap().tracked();
        // sum((w^2 v)^2), the outer square on `a` again; not contiguous on the way.
        let there = w.square().t().to_device(b).unwrap();
        let product = there.t().mul(&v).unwrap().to_device(a).unwrap();
        let loss = product.square().sum(..).unwrap();
        let grads = loss.grad(&[&w, &v]).unwrap();
        let [dw, dv] = [0, 1].map(|i| grads[i].clone().unwrap());
        assert_eq!((dw.device(), dv.device()), (a, b), "{what}");
        // 4 w^3 v^2 and 2 w^4 v.
        assert_eq!(dw.to_vec::<f32>().unwrap(), [1.0, 32.0, 432.0, -16.0], "{what}");
        assert_eq!(dv.to_vec::<f32>().unwrap(), [1.0, -32.0, 324.0, 128.0], "{what}");
        // 12 w^2 v^2, and of dw by v 8 w^3 v, of dv by itself 2 w^4.
        let second = dw.sum(..).unwrap().grad(&[&w, &v]).unwrap();
        let [dww, dwv] = [0, 1].map(|i| second[i].clone().unwrap().to_vec::<f32>().unwrap());
        assert_eq!(dww, [3.0, 48.0, 432.0, 12.0], "{what}");
        assert_eq!(dwv, [4.0, -64.0, 432.0, -128.0], "{what}");
        let dvv = dv.sum(..).unwrap().grad(&[&v]).unwrap().remove(0).unwrap();
        assert_eq!(dvv.to_vec::<f32>().unwrap(), [2.0, 32.0, 162.0, 512.0], "{what}");
        // What gradients stop at, and what has no history.
        assert!(w.detach().to_device(b).unwrap().square().grad(&[&w]).unwrap()[0].is_none());
        assert!(!w.detach().to_device(b).unwrap().is_tracked());
        assert!(w.to_device(b).unwrap().is_tracked(), "{what}");
        let error = loss.grad_with(&Tensor::scalar(1f32, b), &[&w]);
        assert_eq!(error.is_err(), a != b, "{what}: a cotangent on another device");
    }
}

#[test]
fn a_layer_on_each_device_trains_as_on_one() {
    let devices = devices();
    // A parameter on each device, activations from one to the next.
    let train = |on: &dyn Fn(usize) -> Device| {
        let n = devices.len();
        let value = |i: usize| {
            let cell = |k: usize| ((k * 7 + i * 3) % 5) as f32 / 4.0 - 0.5;
            Tensor::from_slice(&(0..9).map(cell).collect::<Vec<_>>(), [3, 3], &on(i)).unwrap()
        };
        let mut weights: Vec<Tensor> = (0..n).map(|i| value(i).tracked()).collect();
        let mut losses = Vec::new();
        for _ in 0..3 {
            let mut x = value(7).to_device(&on(0)).unwrap();
            for (i, w) in weights.iter().enumerate() {
                x = x.to_device(&on(i)).unwrap().matmul(w).unwrap().tanh().add(0.5).unwrap();
            }
            let loss = x.square().mean(..).unwrap();
            let grads = loss.grad(&weights.iter().collect::<Vec<_>>()).unwrap();
            let step = |(w, dw): (&Tensor, &Option<Tensor>)| {
                w.detach().sub(dw.as_ref().unwrap().mul(0.1).unwrap()).unwrap()
            };
            let next: Vec<Tensor> = weights.iter().zip(&grads).map(step).collect();
            Tensor::realize_all(next.iter().chain([&loss])).unwrap();
            weights = next.iter().map(Tensor::tracked).collect();
            losses.push(loss.item::<f32>().unwrap());
        }
        losses
    };
    let (one, many) =
        (train(&|_| devices[0].clone()), train(&|i| devices[i % devices.len()].clone()));
    for (one, many) in one.iter().zip(&many) {
        assert!(
            (one - many).abs() < 1e-5 * one.abs(),
            "{one} on one device, {many} on {devices:?}"
        );
    }
}

/// A random program of exact operations; each value is computed on the device that `on` gives it.
fn random(seed: u64, on: &dyn Fn(usize) -> Device) -> Vec<Vec<f32>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % n
    };
    let shape = [3, 4];
    let cells =
        |salt: usize| (0..12).map(|i| ((i * 5 + salt) % 7) as f32 - 3.0).collect::<Vec<_>>();
    let input = |i: usize| Tensor::from_slice(&cells(i), shape, &on(i)).unwrap();
    let inputs: Vec<Tensor> = (0..3).map(|i| input(i).tracked()).collect();
    let mut values = inputs.clone();
    values.push(Tensor::full(shape, 2f32, &on(3)));
    values.push(Tensor::iota(4, DType::F32, &on(4)).expand(shape).unwrap());
    for at in values.len()..values.len() + 4 + below(12) {
        let device = on(at);
        let mut pick = || values[below(values.len())].to_device(&device).unwrap();
        let (x, y) = (pick(), pick());
        // Values stay small integers, so that every order of every sum is exact.
        let small = |x: Tensor| x.clamp(-8.0, 8.0).unwrap();
        values.push(match below(8) {
            0 => small(x.add(&y).unwrap()),
            1 => small(x.mul(&y).unwrap()),
            2 => x.neg(),
            3 => x.flip(1).unwrap(),
            4 => small(x.sum_keepdim(0).unwrap()).expand(shape).unwrap(),
            5 => x.t().contiguous().reshape(shape).unwrap(),
            6 => x.gt(&y).unwrap().where_(&x, &y).unwrap(),
            _ => x.narrow(0, 0, 1).unwrap().expand(shape).unwrap(),
        });
        // Some are asked for on the way.
        if below(6) == 0 {
            values[below(values.len())].realize().unwrap();
        }
    }
    let last = values.last().unwrap();
    let weights = last.detach().to_device(&on(0)).unwrap().to_device(last.device()).unwrap();
    let loss = last.mul(&weights).unwrap().sum(..).unwrap();
    let grads = loss.grad(&inputs.iter().collect::<Vec<_>>()).unwrap();
    let found = grads.iter().flatten().chain(&values);
    found.map(|x| x.to_vec::<f32>().unwrap()).collect()
}

#[test]
fn random_programs_that_jump_between_devices() {
    let devices = devices();
    let one = Device::open("reference").unwrap();
    for seed in 0..24u64 {
        let want = random(seed, &|_| one.clone());
        let jump = |i: usize| devices[(seed as usize * 31 + i * i * 7 + i) % devices.len()].clone();
        assert_eq!(random(seed, &jump), want, "seed {seed}");
    }
}

#[test]
fn large_values_move_once() {
    const N: usize = 3 << 20;
    for (from, to) in pairs().into_iter().filter(|(a, b)| a != b && a.spec() != "reference:0") {
        let x = Tensor::iota(N, DType::I32, &from);
        let y = (&x + 1i32).to_device(&to).unwrap();
        assert_eq!(
            y.narrow(0, N - 2, 2).unwrap().to_vec::<i32>().unwrap(),
            [N as i32 - 1, N as i32]
        );
        let empty = y.narrow(0, 0, 0).unwrap().to_device(&from).unwrap();
        assert!(empty.to_vec::<i32>().unwrap().is_empty());
        let one = y.sum(..).unwrap().to_device(&from).unwrap();
        let want = (0..N as i32).fold(0i32, |sum, i| sum.wrapping_add(i + 1));
        assert_eq!((one.rank(), one.cast(DType::I32).item::<i32>().unwrap()), (0, want));
    }
}

#[test]
fn reads_go_on_while_the_program_does() {
    const N: usize = 100_000;
    for device in devices() {
        let x = Tensor::arange(0i32, N as i32, 1, &device).unwrap();
        let mut reads = Vec::new();
        for k in 0..8i32 {
            // Nothing but the read holds this value, and what follows would like its memory.
            reads.push((&x * k).read_async::<i32>().unwrap());
            (&x + k).realize().unwrap();
        }
        let empty = x.narrow(0, 0, 0).unwrap().read_async::<i32>().unwrap();
        assert!(empty.is_done() && empty.wait().unwrap().is_empty(), "{device}");
        assert!(x.read_async::<f32>().is_err(), "{device}: another dtype");
        for (k, read) in (0..).zip(reads) {
            let found = read.wait().unwrap();
            assert!(found.into_iter().eq((0..N as i32).map(|i| i * k)), "{device}: times {k}");
        }
        let read = x.read_async::<i32>().unwrap();
        while !read.is_done() {
            std::thread::yield_now();
        }
        assert_eq!(read.wait().unwrap().len(), N, "{device}");
        // Given up.
        drop(x.read_async::<i32>().unwrap());
    }
}
