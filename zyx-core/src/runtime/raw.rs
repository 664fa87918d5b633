//! Programs of kernels that users wrote.

use super::device::{Device, timed};
use super::erased::Program;
use crate::error::Result;
use crate::hal::{Language, RawKernel, Signature, lock};

impl Device {
    /// The languages of raw kernels that this device compiles.
    ///
    /// ```
    /// # let device = zyx::runtime().device("reference")?;
    /// assert!(device.raw_languages().is_empty());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn raw_languages(&self) -> &'static [Language] {
        self.raw().raw_languages()
    }

    /// The program of a kernel that a user wrote, compiled once for equal code and declaration.
    ///
    /// [`Device::submit`] runs it in order with other work. Its arguments are those of
    /// [`RawKernel::arguments`]: buffers, scalars, groups per axis, lengths of the buffers. Each launch is refused
    /// unless they fit the declaration and the limits of the device.
    ///
    /// ```no_run
    /// use zyx::internals::hal::{Language, RawArg, RawKernel, RawParam, RawSource};
    /// use zyx::internals::ir::Access;
    /// use zyx::internals::runtime::Launch;
    /// use zyx::DType;
    ///
    /// let code = "__kernel void scale(__global float *x, ulong x0, float a, uint n) {
    ///     uint i = get_global_id(0);
    ///     if (i < n) x[x0 + i] *= a;
    /// }";
    /// let source = RawSource {
    ///     name: "scale".to_owned(),
    ///     language: Language::OpenClC,
    ///     code: code.as_bytes().into(),
    ///     params: vec![RawParam::new(DType::F32, Access::ReadWrite)],
    ///     vars: vec![DType::F32, DType::U32],
    ///     threads: [64, 1, 1],
    ///     shared_bytes: 0,
    /// };
    /// // SAFETY: the code accesses the elements below `n`, which is the length of `x` in the launch below.
    /// let kernel = unsafe { RawKernel::new(source) };
    /// let device = zyx::runtime().device("opencl")?;
    /// let program = device.raw_program(&kernel)?;
    /// let buffer = device.alloc(4000)?;
    /// let pin = buffer.pin()?;
    /// let x = RawArg::Buffer { buffer: &pin, offset: 0, dtype: DType::F32, len: 1000 };
    /// let scalars = [2f32.into(), 1000u32.into()].map(RawArg::Scalar);
    /// let args = kernel.arguments([1000u32.div_ceil(64), 1, 1], &[x, scalars[0], scalars[1]])?;
    /// device.submit(&[Launch { program: &program, args: &args, after: &[] }])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the device has no such language, its compiler refuses the code, the code differs from the
    /// declaration, or the declaration exceeds a limit of the device.
    pub fn raw_program(&self, kernel: &RawKernel) -> Result<Program> {
        if let Some(known) = lock(&self.caches().raw).get(kernel) {
            return Ok(known.clone());
        }
        let _span = self.span("compile", &[("kernels", 1)]);
        self.check_process()?;
        let compiled = timed(&self.counters().compile_ns, || self.raw().compile_raw(kernel))?;
        let signature = Signature::of_raw(kernel, self.caps());
        let program = compiled.of(self.home(), Some(signature), 1);
        self.count_program(&program);
        let bytes = kernel.bytes() + program.bytes();
        lock(&self.caches().raw).insert(kernel.clone(), program.clone(), bytes);
        self.fit_caches();
        Ok(program)
    }
}
