//! The interpreter as a device: memory on the host.

use crate::hal::{self, Arg, Caps, CompileError, DeviceError, DeviceInfo};
use crate::ir::Kernel;
use std::sync::Mutex;

/// The backend of the interpreter.
#[derive(Debug, Default)]
pub struct Reference {}

/// The one device of [`Reference`].
#[derive(Debug)]
pub struct ReferenceDevice {
    info: DeviceInfo,
    caps: Caps,
}

impl hal::Backend for Reference {
    const NAME: &'static str = "reference";
    type Device = ReferenceDevice;

    fn devices(&self) -> Vec<DeviceInfo> {
        vec![DeviceInfo { spec: "reference:0".into(), name: "IR interpreter".into(), memory: 0 }]
    }

    fn open(&self, _: usize) -> Result<ReferenceDevice, DeviceError> {
        let info = self.devices().remove(0);
        Ok(ReferenceDevice { info, caps: Caps::default() })
    }
}

impl hal::Device for ReferenceDevice {
    type Buffer = Mutex<Vec<u8>>;
    type Program = ();
    type Stream = ();
    type Event = ();

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn source(kernel: &Kernel, _: &Caps) -> Result<String, CompileError> {
        Ok(kernel.to_string())
    }

    fn compile(&self, kernel: &Kernel) -> Result<(), CompileError> {
        Err(CompileError { kernel: kernel.name().into(), log: "interpreter missing".into() })
    }

    fn alloc(&self, bytes: usize) -> Result<Mutex<Vec<u8>>, DeviceError> {
        Ok(Mutex::new(vec![0; bytes]))
    }

    fn stream(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn write(
        &self,
        (): &mut (),
        dst: &Mutex<Vec<u8>>,
        offset: usize,
        src: &[u8],
    ) -> Result<(), DeviceError> {
        let mut dst = dst.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        dst[offset..offset + src.len()].copy_from_slice(src);
        Ok(())
    }

    fn read(
        &self,
        (): &mut (),
        src: &Mutex<Vec<u8>>,
        offset: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError> {
        let src = src.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        dst.copy_from_slice(&src[offset..offset + dst.len()]);
        Ok(())
    }

    fn copy(
        &self,
        (): &mut (),
        src: (&Mutex<Vec<u8>>, usize),
        dst: (&Mutex<Vec<u8>>, usize),
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let mut part = vec![0; bytes];
        self.read(&mut (), src.0, src.1, &mut part)?;
        self.write(&mut (), dst.0, dst.1, &part)
    }

    fn launch(
        &self,
        (): &mut (),
        (): &(),
        _: &[Arg<'_, Mutex<Vec<u8>>>],
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
}
