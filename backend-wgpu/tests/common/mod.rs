//! What the tests of this crate share: the devices under test and a way to run a kernel.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "tests")]

use backend_wgpu::{Wgpu, WgpuDevice};
use std::sync::LazyLock;
use zyx_core::hal::{Arg, Backend, Device};
use zyx_core::ir::{Access, Kernel};
use zyx_core::{DType, Scalar};

static FULL: LazyLock<Option<WgpuDevice>> = LazyLock::new(|| Wgpu::default().open(0).ok());
static MINIMAL: LazyLock<Option<WgpuDevice>> = LazyLock::new(|| Wgpu::minimal().open(0).ok());

/// The first wgpu device, whole or cut down. Without one the test is skipped, by name; with
/// `wgpu` among the words of `ZYX_REQUIRE` that is a failure.
pub fn device(minimal: bool) -> Option<&'static WgpuDevice> {
    let device = if minimal { MINIMAL.as_ref() } else { FULL.as_ref() };
    if device.is_none() {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a test");
        let required = std::env::var("ZYX_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|word| word == "wgpu"),
            "ZYX_REQUIRE names wgpu, but there is no device"
        );
        eprintln!("skipped {name}: no wgpu device");
    }
    device
}

/// Little-endian bytes of scalars.
pub fn bytes(values: &[Scalar]) -> Vec<u8> {
    values.iter().flat_map(|x| x.bits().to_le_bytes()[..x.dtype().size()].to_vec()).collect()
}

/// The inverse of [`bytes`].
pub fn scalars(dtype: DType, bytes: &[u8]) -> Vec<Scalar> {
    let element = |chunk: &[u8]| {
        let mut wide = [0; 8];
        wide[..chunk.len()].copy_from_slice(chunk);
        Scalar::from_bits(dtype, u64::from_le_bytes(wide))
    };
    bytes.chunks_exact(dtype.size()).map(element).collect()
}

/// Runs `kernel` on buffers with these contents and these scalars; gives the buffers afterwards.
/// Each buffer lies at an offset into a larger one, so that offsets are tested throughout.
pub fn run(
    device: &WgpuDevice,
    kernel: &Kernel,
    buffers: &[Vec<u8>],
    vars: &[u64],
) -> Vec<Vec<u8>> {
    let program = match device.compile(kernel) {
        Ok(program) => program,
        Err(error) => panic!("{error}"),
    };
    let offset = device.caps().offset_align;
    let mut stream = device.stream().unwrap();
    let memory: Vec<_> = buffers
        .iter()
        .map(|bytes| {
            let buffer = device.alloc(bytes.len() + offset).unwrap();
            device.write(&mut stream, &buffer, offset, bytes).unwrap();
            buffer
        })
        .collect();
    let buffer_args = memory.iter().map(|buffer| Arg::Buffer(buffer, offset));
    let args: Vec<_> = buffer_args.chain(vars.iter().map(|&bits| Arg::Scalar(bits))).collect();
    device.launch(&mut stream, &program, &args).unwrap();
    let read = |(buffer, bytes): (_, &Vec<u8>)| {
        let mut out = vec![0; bytes.len()];
        device.read(&mut stream, buffer, offset, &mut out).unwrap();
        out
    };
    memory.iter().zip(buffers).map(read).collect()
}

/// Runs a kernel whose parameter 0 is the result, of `len` elements of `dtype`.
pub fn result(device: &WgpuDevice, kernel: &Kernel, inputs: &[Vec<Scalar>]) -> Vec<Scalar> {
    let out = kernel.params()[0];
    assert_ne!(out.access, Access::Read);
    let mut buffers = vec![vec![0; out.len as usize * out.dtype.size()]];
    buffers.extend(inputs.iter().map(|values| bytes(values)));
    scalars(out.dtype, &run(device, kernel, &buffers, &[])[0])
}
