//! A device that does nothing, for looking at plans and for timing the host.
//!
//! Unless told otherwise it looks like a large GPU with a library of contractions, so plans have the
//! launches they have there; kernels are neither compiled nor run, and whatever is read is zero.

use crate::hal::{
    Arg, Backend, Call, Caps, Command, CompileError, Device, DeviceError, DeviceInfo, DeviceKind,
    Progress, Recording, Traffic,
};
use crate::ir::Verified;

/// The backend `null`.
#[derive(Clone, Debug)]
pub struct Null {
    /// The capabilities of its one device.
    pub caps: Caps,
    /// Whether its library has contractions.
    pub contracts: bool,
    /// Whether its library has attention.
    pub attention: bool,
}

impl Default for Null {
    fn default() -> Null {
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
        caps.biases = true;
        caps.fast_fma = true;
        Null { caps, contracts: true, attention: false }
    }
}

/// Its device.
#[derive(Debug)]
pub struct NullDevice {
    info: DeviceInfo,
    null: Null,
}

impl Backend for Null {
    const NAME: &'static str = "null";
    type Device = NullDevice;

    fn devices(&self) -> Vec<DeviceInfo> {
        vec![info()]
    }

    fn open(&self, _: usize) -> Result<NullDevice, DeviceError> {
        Ok(NullDevice { info: info(), null: self.clone() })
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
        &self.null.caps
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
        let offered = match call {
            Call::Contract { prologue: None, epilogue: None, .. } => self.null.contracts,
            Call::Convolve(_) => self.null.caps.convolutions,
            Call::Attend(_) => self.null.attention,
            _ => false,
        };
        offered.then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Result, Runtime, Tensor};

    #[test]
    fn everything_is_launched_and_nothing_computed() -> Result<()> {
        let runtime = Runtime::default();
        runtime.register(Null::default());
        let device = runtime.device("null")?;
        let x = Tensor::from_slice(&[1f32, 2.0], [2], &device)?;
        let before = device.stats();
        assert_eq!(x.exp().to_vec::<f32>()?, [0.0, 0.0]);
        let since = device.stats().since(&before);
        assert_eq!((since.launches, since.nodes), (1, 2));
        Ok(())
    }
}
