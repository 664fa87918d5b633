//! What a device does that its driver does not say, found out by running a kernel.

use super::{Arg, Device, DeviceError};
use crate::dtype::{DType, DTypeSet};
use crate::ir::{Access, Builder, LoopKind};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;

/// The dtypes among `f32` and `f64` in which the device replaces subnormal operands or results by
/// zero: the smallest normal number is halved, and its half doubled.
///
/// # Errors
/// When the device fails.
pub fn flushed_subnormals<D: Device>(device: &D) -> Result<DTypeSet, DeviceError> {
    let mut found = Vec::new();
    for (dtype, normal) in
        [(DType::F32, f64::from(f32::MIN_POSITIVE)), (DType::F64, f64::MIN_POSITIVE)]
    {
        if device.caps().compute.contains(dtype) && flushes(device, dtype, normal)? {
            found.push(dtype);
        }
    }
    Ok(DTypeSet::of(&found))
}

fn flushes<D: Device>(device: &D, dtype: DType, normal: f64) -> Result<bool, DeviceError> {
    let number = |x: f64| Scalar::from_f64(dtype, x);
    let mut b = Builder::new("subnormals");
    let out = b.param(dtype, 2, Access::Write);
    let input = b.param(dtype, 4, Access::Read);
    let two = b.index(2);
    let i = b.open_loop(LoopKind::Group, 0, two);
    let behind = b.binary(BinaryOp::Add, i, two);
    let (x, y) = (b.load(input, i), b.load(input, behind));
    let z = b.binary(BinaryOp::Mul, x, y);
    b.store(out, i, z);
    b.close();
    let inputs = [number(normal), number(normal / 2.0), number(0.5), number(2.0)];
    let expected = [number(normal / 2.0), number(normal)];
    let bytes = |all: &[Scalar]| -> Vec<u8> {
        all.iter().flat_map(|x| x.bits().to_le_bytes()[..dtype.size()].to_vec()).collect()
    };
    let program = device.compile(&b.finish()).map_err(|error| DeviceError::Driver {
        context: "compile a probe".to_owned(),
        reason: error.to_string(),
    })?;
    let mut stream = device.stream()?;
    let (result, operands) = (device.alloc(2 * dtype.size())?, device.alloc(4 * dtype.size())?);
    device.write(&mut stream, &operands, 0, &bytes(&inputs))?;
    let args = [Arg::Buffer(&result, 0), Arg::Buffer(&operands, 0)];
    device.launch(&mut stream, &program, &args)?;
    let mut got = vec![0; 2 * dtype.size()];
    device.read(&mut stream, &result, 0, &mut got)?;
    Ok(got != bytes(&expected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hal::Backend;
    use crate::reference::Reference;

    #[test]
    fn the_interpreter_keeps_subnormals() {
        let device = Reference::default().open(0).unwrap();
        assert_eq!(flushed_subnormals(&device).unwrap(), DTypeSet::NONE);
    }
}
