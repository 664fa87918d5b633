//! Kernels as text: what a kernel of the gallery is written as computes the same when it is read, and damage is an error.

use zyx_core::kernel::{Kernel, Val};
use zyx_core::{DType, Device, Result, Runtime, Tensor};
use zyx_tests::cases::kernels::gallery;

fn devices() -> [Device; 2] {
    let runtime = Runtime::default();
    runtime.register(zyx_backend_cpu::Cpu::default());
    ["cpu", "reference"].map(|spec| runtime.device(spec).expect("it is always there"))
}

fn numbers(shape: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
    let n: usize = shape.iter().product();
    let x: Vec<f32> = (0..n).map(|i| ((i * 7919 + 13) % 1031) as f32 / 515.5 - 1.0).collect();
    Ok(Tensor::from_slice(&x, shape, device)?.cast(dtype))
}

/// Each kernel of the gallery with inputs.
fn gallery(dtype: DType, device: &Device) -> Result<Vec<(Kernel, Vec<Tensor>)>> {
    let of = |shape: &[usize]| numbers(shape, dtype, device);
    let starts = Tensor::from_slice(&[0i32, 2, 2, 13], [4], device)?;
    let whole = Tensor::from_slice(&[27i32, 1, 6, 97], [4], device)?;
    let bytes = Tensor::from_slice(&[3u8, 3, 250, 0, 3], [5], device)?;
    let x = [of(&[5, 13])?, of(&[5, 13])?, of(&[13])?];
    let heads = [of(&[2, 17, 32])?, of(&[2, 17, 32])?, of(&[2, 17, 32])?];
    Ok(vec![
        (gallery::softmax::softmax(), vec![x[0].clone()]),
        (gallery::cumsum::cumsum(), vec![x[0].clone()]),
        (gallery::norm::rms_norm(1e-5), vec![x[0].clone(), x[2].clone()]),
        (gallery::heat::heat(0.125), vec![x[0].clone()]),
        (gallery::mish::mish(), vec![x[2].clone()]),
        (gallery::gated::gated(), vec![x[0].clone(), x[1].clone()]),
        (gallery::sort::sort(), vec![x[0].clone()]),
        (gallery::segments::segment_sum(), vec![x[2].clone(), starts]),
        (gallery::product::product(), vec![x[0].clone(), of(&[13, 3])?]),
        (gallery::attention::attention(32, true), heads.to_vec()),
        (gallery::histogram::histogram(), vec![bytes]),
        (gallery::collatz::collatz(), vec![whole]),
    ])
}

/// Kernels whose groups read what others publish: with a damaged header they may wait for long.
fn of_several_groups(dtype: DType, device: &Device) -> Result<Vec<(Kernel, Vec<Tensor>)>> {
    let ints = |x: &[i32]| Tensor::from_slice(x, [x.len()], device);
    let (starts, targets) = (ints(&[0, 2, 3, 4, 4, 5])?, ints(&[1, 2, 3, 3, 0])?);
    let distances = ints(&[0].into_iter().chain([gallery::bfs::FAR; 4]).collect::<Vec<_>>())?;
    Ok(vec![
        (gallery::scan::scan(), vec![numbers(&[6001], dtype, device)?]),
        (gallery::bfs::shorten(), vec![starts, targets, distances]),
    ])
}

#[test]
fn kernels_of_the_gallery_compute_the_same_from_their_text() -> Result<()> {
    for device in devices() {
        for dtype in [DType::F32, DType::F16] {
            let kernels = gallery(dtype, &device)?.into_iter();
            for (kernel, inputs) in kernels.chain(of_several_groups(dtype, &device)?) {
                let dtypes: Vec<DType> = inputs.iter().map(Tensor::dtype).collect();
                let inputs: Vec<&Tensor> = inputs.iter().collect();
                let text = kernel.to_text(&dtypes, &device)?;
                let again = Kernel::from_text(&text)?;
                assert_eq!(
                    (again.to_text(&dtypes, &device)?, again.name()),
                    (text.clone(), kernel.name())
                );
                // Functions of elements are written for arrays of one axis.
                let flat = |x: &&Tensor| x.reshape([x.numel()]);
                let one_axis: Vec<Tensor> = inputs.iter().map(flat).collect::<Result<_>>()?;
                let inputs = match text.contains("argument 0 : input 1 x0") {
                    true => one_axis.iter().collect(),
                    false => inputs,
                };
                let (expected, found) = (kernel.call_all(&inputs)?, again.call_all(&inputs)?);
                assert_eq!(expected.len(), found.len());
                for (expected, found) in expected.iter().zip(&found) {
                    assert_eq!(
                        (expected.shape(), expected.dtype()),
                        (found.shape(), found.dtype())
                    );
                    assert_eq!(expected.to_bytes()?, found.to_bytes()?, "{text}");
                }
                again.check(&inputs)?;
            }
        }
    }
    Ok(())
}

#[test]
fn a_text_is_for_its_dtypes_and_sizes() -> Result<()> {
    let [device, _] = devices();
    let softmax = gallery::softmax::softmax();
    let text = softmax.to_text(&[DType::F32], &device)?;
    let read = Kernel::from_text(&text)?;
    let error = read.call(&[&numbers(&[2, 3], DType::F16, &device)?]).unwrap_err().to_string();
    assert!(error.contains("its text is for"), "{error}");
    assert!(read.to_text(&[DType::F64], &device).is_err());
    let error = read.call(&[&numbers(&[3], DType::F32, &device)?]).unwrap_err().to_string();
    assert!(error.contains("axes"), "{error}");
    let large = Tensor::zeros([1 << 16, 1 << 15], DType::F32, &device);
    let error = read.call(&[&large]).unwrap_err().to_string();
    assert!(error.contains("its text is for at most"), "{error}");
    softmax.call(&[&large])?;
    let error = Kernel::from_text(&text.replace("exp ", "expo ")).unwrap_err().to_string();
    assert!(error.contains("line ") && error.contains("there is no op `expo`"), "{error}");
    // A check names lines of the text.
    let twice = text.replace("kernel softmax", "kernel softmax\n\n");
    let line = |kernel: &Kernel| -> Result<usize> {
        let text = kernel.to_text(&[DType::F32], &device)?;
        Ok(text.lines().count())
    };
    assert_eq!(line(&Kernel::from_text(&twice)?)?, text.lines().count());
    let elements = Kernel::elementwise("twice", |x: &[Val<'_>]| x[0] + x[0]);
    let read = Kernel::from_text(&elements.to_text(&[DType::I32], &device)?)?;
    let x = Tensor::from_slice(&[3i32, -4], [2], &device)?;
    assert_eq!(read.call(&[&x])?.to_vec::<i32>()?, [6, -8]);
    Ok(())
}

/// Headers that say something else than the kernel that they belong to: a call gives a result or an error.
#[test]
fn calls_with_damaged_headers_do_not_panic() -> Result<()> {
    let [device, _] = devices();
    let (mut read, mut called, mut state) = (0, 0, 1u64);
    let mut below = |n: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    for (kernel, inputs) in gallery(DType::F32, &device)? {
        let dtypes: Vec<DType> = inputs.iter().map(Tensor::dtype).collect();
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let text = kernel.to_text(&dtypes, &device)?;
        let is_header = |line: &&str| !line.starts_with('%') && !line.starts_with("kernel");
        let header: Vec<&str> = text.lines().filter(is_header).collect();
        for _ in 0..60 {
            let (from, to) = (header[below(header.len())], header[below(header.len())]);
            let words: Vec<&str> = from.split(' ').collect();
            let others: Vec<&str> = to.split(' ').chain(["0", "7", "n0", "-1"]).collect();
            let mut changed = words.clone();
            changed[below(words.len())] = others[below(others.len())];
            let text = text.replacen(from, &changed.join(" "), 1);
            let Ok(kernel) = Kernel::from_text(&text) else { continue };
            read += 1;
            let Ok(results) = kernel.call_all(&inputs) else { continue };
            called += 1;
            for result in results {
                let _ = result.to_bytes();
            }
        }
    }
    assert!(read > 50 && called > 20, "{read} read, {called} called");
    Ok(())
}
