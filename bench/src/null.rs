//! A device that does nothing, for timing the host: `ZYX_DEVICE=null zyx-bench gpt_decode`.
//!
//! It looks like a large GPU with a library of contractions, so plans have the launches they have
//! there; kernels are neither compiled nor run, and whatever is read is zero. What a workload takes
//! on it is what the host does for each step: building the graph, finding its plan, binding and
//! handing over. How long a driver takes for the submission is not in it.

use zyx::hal::{
    Arg, Backend, Call, Caps, Command, CompileError, Device, DeviceError, DeviceInfo, DeviceKind,
    Progress, Recording, Traffic,
};
use zyx::ir::Verified;

/// The backend `null`.
#[derive(Debug)]
pub(crate) struct Null;

/// Its one device.
#[derive(Debug)]
pub(crate) struct NullDevice {
    info: DeviceInfo,
    caps: Caps,
}

impl Backend for Null {
    const NAME: &'static str = "null";
    type Device = NullDevice;

    fn devices(&self) -> Vec<DeviceInfo> {
        vec![info()]
    }

    fn open(&self, _: usize) -> Result<NullDevice, DeviceError> {
        let mut caps = Caps::default();
        caps.partial_integers = true;
        caps.vector_bytes = 16;
        caps.masked = true;
        caps.simt = true;
        caps.threads = 132 * 2048;
        caps.max_local = 1024;
        caps.max_groups = [i32::MAX as u64, 65_535, 65_535];
        caps.shared_bytes = 48 << 10;
        caps.subgroup = (32, 32);
        caps.progress = Progress::Occupancy;
        caps.max_buffers = 480;
        caps.epilogues = false;
        caps.fast_fma = true;
        Ok(NullDevice { info: info(), caps })
    }
}

fn info() -> DeviceInfo {
    DeviceInfo {
        spec: "null:0".to_owned(),
        name: "nothing".to_owned(),
        memory: 0,
        // The last that anybody would choose.
        kind: DeviceKind::Interpreter,
    }
}

impl Device for NullDevice {
    type Buffer = ();
    type Program = ();
    type Stream = ();
    type Event = ();

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    fn source(kernel: &Verified, _: &Caps) -> Result<String, CompileError> {
        Ok(kernel.to_string())
    }

    fn compile(&self, _: &Verified) -> Result<(), CompileError> {
        Ok(())
    }

    fn alloc(&self, _: usize) -> Result<(), DeviceError> {
        Ok(())
    }

    fn stream(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn write(&self, (): &mut (), (): &(), _: usize, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn read(&self, (): &mut (), (): &(), _: usize, dst: &mut [u8]) -> Result<(), DeviceError> {
        dst.fill(0);
        Ok(())
    }

    fn copy(
        &self,
        (): &mut (),
        _: (&(), usize),
        _: (&(), usize),
        _: usize,
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    fn launch(&self, (): &mut (), (): &(), _: &[Arg<'_, ()>]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn replay(
        &self,
        (): &mut (),
        _: &mut Recording,
        _: &[Command<'_, (), ()>],
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    fn record(&self, (): &mut ()) -> Result<(), DeviceError> {
        Ok(())
    }

    fn wait(&self, (): &mut (), (): &()) -> Result<(), DeviceError> {
        Ok(())
    }

    fn synchronize(&self, (): &()) -> Result<(), DeviceError> {
        Ok(())
    }

    fn library(&self, call: &Call) -> Option<()> {
        matches!(call, Call::Contract { prologue: None, epilogue: None, .. }).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zyx::{Result, Runtime, Tensor};

    #[test]
    fn everything_is_launched_and_nothing_computed() -> Result<()> {
        let runtime = Runtime::default();
        runtime.register(Null);
        let device = runtime.device("null")?;
        let x = Tensor::from_slice(&[1f32, 2.0], [2], &device)?;
        let before = device.stats();
        assert_eq!(x.exp().to_vec::<f32>()?, [0.0, 0.0]);
        let since = device.stats().since(&before);
        assert_eq!((since.launches, since.nodes), (1, 2));
        Ok(())
    }
}
