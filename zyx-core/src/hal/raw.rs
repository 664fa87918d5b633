//! Kernels that a user writes in the language of one backend.
//!
//! [`RawSource`] is code with a declaration of its arguments. [`RawKernel`] adds the promise that the code
//! keeps to the declaration: nothing verifies it. [`Device::compile_raw`](super::Device::compile_raw) makes
//! a program of it, whose launches are checked by the declaration ([`Signature::of_raw`](super::Signature::of_raw)).
//!
//! # Arguments of a launch
//!
//! 1. each buffer of [`RawSource::params`], with a byte offset;
//! 2. each scalar of [`RawSource::vars`];
//! 3. the number of groups along axes x, y and z, three scalars of `u32`;
//! 4. the length of each buffer in elements, one scalar of `i64` each.
//!
//! The code receives 1 and 2. [`RawKernel::arguments`] makes the list from typed arguments.
//! A launch of 0 groups along an axis runs nothing.

use super::{Arg, CompileError, DeviceError};
use crate::codegen::{Entry, Extent};
use crate::dtype::DType;
use crate::hal::Caps;
use crate::ir::{Access, Builder, Kernel};
use crate::scalar::Scalar;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that the start of every buffer is aligned to ([`Device::alloc`](super::Device::alloc)).
const BUFFER_ALIGN: usize = 64;

/// Scalars of a launch between those of the code and the lengths of buffers: groups per axis.
pub(super) const GROUPS: usize = 3;

/// A language of raw kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// CUDA C++, which NVRTC compiles; backend `cuda`.
    CudaC,
    /// NVIDIA's assembly language; backend `cuda`.
    Ptx,
    /// OpenCL C 1.2; backend `opencl`.
    OpenClC,
    /// The language of WebGPU; backend `wgpu`.
    Wgsl,
    /// Binary modules of Vulkan; backend `vulkan`.
    SpirV,
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Language::CudaC => "CUDA C",
            Language::Ptx => "PTX",
            Language::OpenClC => "OpenCL C",
            Language::Wgsl => "WGSL",
            Language::SpirV => "SPIR-V",
        })
    }
}

/// Declaration of a buffer argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawParam {
    /// Element dtype.
    pub dtype: DType,
    /// Whether the code reads or writes the buffer.
    pub access: Access,
    /// Alignment of the first element in bytes, a power of two up to 64. Launches check the larger of this,
    /// the size of an element and [`Caps::offset_align`].
    pub align: usize,
}

impl RawParam {
    /// A buffer whose first element is aligned to the size of an element.
    pub fn new(dtype: DType, access: Access) -> RawParam {
        RawParam { dtype, access, align: dtype.size() }
    }
}

/// Code with a declaration of its arguments. All fields are the user's claims.
///
/// # How the code receives its arguments
///
/// `B` is the number of buffers. Scalars have the dtypes of [`vars`](RawSource::vars).
///
/// | language | buffer `i` | scalar `j` | entry point and threads |
/// |---|---|---|---|
/// | CUDA C | parameter `i`: pointer to the first element | parameter `B + j`, by value; `f16` and `bf16` as two bytes (`unsigned short`), `bool` as one | an `extern "C" __global__` function; threads are the declared ones |
/// | PTX | parameter `i`: `.u64`, a global address | parameter `B + j` of the size of its dtype | an `.entry`; threads are the declared ones |
/// | OpenCL C | parameters `2 i`: `__global T *`, the start of the memory object, and `2 i + 1`: `ulong`, the index of the first element in it | parameter `2 B + j`, by value; `f16` and `bf16` as `ushort`, `bool` as `uchar` | a `__kernel` function; threads are the declared ones |
/// | WGSL | `@group(0) @binding(i) var<storage, read_write>`, a runtime-sized array of elements of at most 16 bytes, bound to the length of the launch or 16 bytes, whichever is more. `read_write` whatever the access: temporaries of a plan share a buffer | `@group(0) @binding(B) var<uniform>`, absent without scalars: a word of 0, then one word each, or two if 64 bits wide, low word first; padded to a multiple of 16 bytes | a `@compute` function whose `@workgroup_size` is the declared threads |
/// | SPIR-V | descriptor set 0, binding `i`: a storage buffer | push constants: 8 bytes each, scalar `j` at offset `8 j`, its low bytes first | an entry point of model GLCompute whose LocalSize is the declared threads |
///
/// In WGSL and SPIR-V, scalars of fewer than 32 bits are words: `i8` and `i16` sign-extended, all others with
/// zeros above their bits. The module's bindings have to be 0 to `B - 1`, all of them used by the entry point.
///
/// # Shared storage
///
/// [`shared_bytes`](RawSource::shared_bytes) is storage that a launch asks for beyond the arrays declared in the
/// code. CUDA C and PTX see it as `extern __shared__`, OpenCL C as a last parameter `__local T *` that is present
/// if the number is not 0. WGSL and SPIR-V declare all shared storage in the code: the number is 0.
///
/// # Other limits
///
/// CUDA C has no header files. Vulkan takes modules that need no optional feature except 64-bit integers and floats, narrow
/// integers, 64-bit atomics, addresses of buffers and subgroup operations, where the device has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawSource {
    /// Name of the entry point in the code.
    pub name: String,
    /// Language of the code.
    pub language: Language,
    /// UTF-8 text; of SPIR-V the words, little-endian.
    pub code: Arc<[u8]>,
    /// Buffers.
    pub params: Vec<RawParam>,
    /// Dtypes of the scalars after the buffers.
    pub vars: Vec<DType>,
    /// Threads of a group along axes x, y and z.
    pub threads: [u32; 3],
    /// Bytes of shared storage that each group is given at launch.
    pub shared_bytes: u32,
}

/// Code whose author promises that it keeps to its declaration. Cheap to clone; equal and hashed by content.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawKernel(Arc<RawSource>);

impl Deref for RawKernel {
    type Target = RawSource;

    fn deref(&self) -> &RawSource {
        &self.0
    }
}

/// A typed argument of a launch.
#[derive(Debug)]
pub enum RawArg<'a, B> {
    /// `len` elements of a buffer from a byte offset on.
    Buffer {
        /// The buffer.
        buffer: &'a B,
        /// Bytes before the first element.
        offset: usize,
        /// Dtype of the elements.
        dtype: DType,
        /// Elements that the code may access.
        len: usize,
    },
    /// A scalar.
    Scalar(Scalar),
}

impl<B> Clone for RawArg<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for RawArg<'_, B> {}

impl RawKernel {
    /// Code that nothing verifies.
    ///
    /// ```
    /// use zyx::internals::hal::{Language, RawKernel, RawParam, RawSource};
    /// use zyx::internals::ir::Access;
    /// use zyx::DType;
    ///
    /// let code = r#"extern "C" __global__ void scale(float *x, float a, unsigned n) {
    ///     unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    ///     if (i < n) x[i] *= a;
    /// }"#;
    /// let source = RawSource {
    ///     name: "scale".to_owned(),
    ///     language: Language::CudaC,
    ///     code: code.as_bytes().into(),
    ///     params: vec![RawParam::new(DType::F32, Access::ReadWrite)],
    ///     vars: vec![DType::F32, DType::U32],
    ///     threads: [256, 1, 1],
    ///     shared_bytes: 0,
    /// };
    /// // SAFETY: the code accesses the elements below `n`, and launches pass the length of `x` as `n`.
    /// let kernel = unsafe { RawKernel::new(source) };
    /// assert_eq!(kernel.threads, [256, 1, 1]);
    /// ```
    ///
    /// # Safety
    /// The code may access any memory of the process or the device, so the caller promises for every launch
    /// whose arguments fit the declaration:
    /// * it receives its arguments as [`RawSource`] says, with the declared dtypes;
    /// * it accesses each buffer only within the length given at launch, writes only buffers declared as
    ///   written, and accesses no other memory;
    /// * its threads have no data races, among others where two arguments are the same memory;
    /// * it ends;
    /// * a SPIR-V module is valid by the rules of Vulkan (`spirv-val`).
    ///
    /// Where this holds for some scalars only, such as a count up to the length of a buffer, the caller makes
    /// sure that no launch passes others.
    #[expect(unsafe_code, reason = "the promise that backends rely on; there is no unsafe block")]
    pub unsafe fn new(source: RawSource) -> RawKernel {
        RawKernel(Arc::new(source))
    }

    /// An error about this kernel.
    pub fn error(&self, log: impl ToString) -> CompileError {
        CompileError { kernel: self.name.clone(), log: log.to_string() }
    }

    /// The error of a backend that has other languages.
    pub fn unknown_language(&self, backend: &str, known: &[Language]) -> CompileError {
        let known: Vec<String> = known.iter().map(Language::to_string).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        self.error(format!(
            "{backend} has no {}; its languages of raw kernels: {known}",
            self.language
        ))
    }

    /// The code of a textual language.
    ///
    /// # Errors
    /// When it is not UTF-8 or holds a zero byte.
    pub fn text(&self) -> Result<&str, CompileError> {
        let text = std::str::from_utf8(&self.code).map_err(|e| self.error(e))?;
        match text.bytes().position(|byte| byte == 0) {
            Some(at) => Err(self.error(format!("byte {at} of the code is 0"))),
            None => Ok(text),
        }
    }

    /// Checks the declaration against the limits of a device.
    ///
    /// # Errors
    /// Names the first limit that the declaration exceeds.
    pub fn check(&self, caps: &Caps) -> Result<(), CompileError> {
        let threads: u64 = self.threads.iter().map(|&n| u64::from(n)).product();
        let shared = caps.shared_bytes.max(caps.most_shared_bytes);
        let declares = matches!(self.language, Language::Wgsl | Language::SpirV);
        let log = if self.name.is_empty() || self.name.contains('\0') {
            "the entry point needs a name without zero bytes".to_owned()
        } else if threads == 0 || threads > caps.max_local as u64 {
            format!("{:?} threads of a group, limit 1 to {}", self.threads, caps.max_local)
        } else if self.params.len() > caps.max_buffers {
            format!("{} buffers, limit {}", self.params.len(), caps.max_buffers)
        } else if declares && self.shared_bytes > 0 {
            format!("shared_bytes is 0 in {}, whose code declares shared storage", self.language)
        } else if self.shared_bytes as usize > shared {
            format!("{} bytes of shared storage, limit {shared}", self.shared_bytes)
        } else if let Some((i, param)) = self
            .params
            .iter()
            .enumerate()
            .find(|(_, param)| !param.align.is_power_of_two() || param.align > BUFFER_ALIGN)
        {
            format!(
                "alignment {} of buffer {i} is no power of two up to {BUFFER_ALIGN}",
                param.align
            )
        } else {
            return Ok(());
        };
        Err(self.error(log))
    }

    /// A kernel without code that has the same buffers, with length 0 for unknown, and the scalars of a
    /// launch up to the groups; and its one launch. Backends take dtypes, accesses and the grid from there.
    pub fn outline(&self) -> (Kernel, Entry) {
        let mut b = Builder::new(&self.name);
        self.params.iter().for_each(|param| {
            b.param(param.dtype, 0, param.access);
        });
        self.vars.iter().for_each(|&dtype| {
            b.var(dtype, i64::MIN, i64::MAX);
        });
        let groups = [0; GROUPS].map(|_| Extent::Value(b.var(DType::U32, 0, u32::MAX.into())));
        let (local, shared) = (self.threads.map(u64::from), self.shared_bytes as usize);
        (b.finish(), Entry { name: self.name.clone(), groups, local, shared })
    }

    /// The scalars that the code receives, from those of a launch: of fewer than 32 bits extended to words,
    /// `i8` and `i16` by their sign.
    pub fn scalars(&self, launch: &[u64]) -> Vec<u64> {
        let word = |(&dtype, &bits): (&DType, &u64)| match dtype {
            DType::I8 | DType::I16 => Scalar::from_bits(dtype, bits).cast(DType::I32).bits(),
            _ => bits,
        };
        self.vars.iter().zip(launch).map(word).collect()
    }

    /// The bytes of each buffer, from the scalars of a launch.
    pub fn bytes_of_buffers<'a>(&'a self, launch: &'a [u64]) -> impl Iterator<Item = usize> + 'a {
        let lens = launch.iter().skip(self.vars.len() + GROUPS);
        self.params.iter().zip(lens).map(|(param, &len)| {
            usize::try_from(len).unwrap_or(usize::MAX).saturating_mul(param.dtype.size())
        })
    }

    /// The arguments of a launch of so many groups per axis: buffers, then scalars, by slot.
    ///
    /// ```
    /// # use zyx::internals::hal::{Arg, Language, RawArg, RawKernel, RawParam, RawSource};
    /// # use zyx::{DType, Scalar};
    /// # let source = RawSource {
    /// #     name: "scale".to_owned(),
    /// #     language: Language::CudaC,
    /// #     code: b"".as_slice().into(),
    /// #     params: vec![RawParam::new(DType::F32, zyx::internals::ir::Access::ReadWrite)],
    /// #     vars: vec![DType::F32, DType::U32],
    /// #     threads: [256, 1, 1],
    /// #     shared_bytes: 0,
    /// # };
    /// # // SAFETY: it is not run.
    /// # let kernel = unsafe { RawKernel::new(source) };
    /// // Of the kernel `scale` above.
    /// let x = RawArg::Buffer { buffer: &"memory", offset: 0, dtype: DType::F32, len: 1000 };
    /// let scalars = [2f32.into(), 1000u32.into()].map(RawArg::Scalar);
    /// let args = kernel.arguments([4, 1, 1], &[x, scalars[0], scalars[1]])?;
    /// assert!(matches!(args[6], Arg::Scalar(1000)) && args.len() == 7);
    /// // An `i32` is no `u32`.
    /// assert!(kernel.arguments([4, 1, 1], &[x, scalars[0], RawArg::Scalar(1000i32.into())]).is_err());
    /// # Ok::<(), zyx::internals::hal::DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// When number or kinds of the arguments are not the declared ones, an element of a buffer has another
    /// size or a scalar another dtype. Lengths, alignment and limits are checked by the launch.
    pub fn arguments<'a, B>(
        &self,
        groups: [u32; 3],
        args: &[RawArg<'a, B>],
    ) -> Result<Vec<Arg<'a, B>>, DeviceError> {
        let (buffers, scalars) = (self.params.len(), self.vars.len());
        if args.len() != buffers + scalars {
            let n = args.len();
            return self
                .refuse(format!("{n} arguments, not {buffers} buffers and {scalars} scalars"));
        }
        let mut all = Vec::with_capacity(2 * buffers + scalars + GROUPS);
        let mut lens = Vec::with_capacity(buffers);
        let (first, second) = args.split_at(buffers);
        for (slot, (arg, param)) in first.iter().zip(&self.params).enumerate() {
            let RawArg::Buffer { buffer, offset, dtype, len } = *arg else {
                return self.refuse(format!("argument {slot} is a scalar, not a buffer"));
            };
            if dtype.size() != param.dtype.size() {
                let declared = param.dtype;
                return self.refuse(format!("buffer {slot} holds {dtype}, declared as {declared}"));
            }
            all.push(Arg::Buffer(buffer, offset));
            lens.push(len);
        }
        for (slot, (arg, &declared)) in second.iter().zip(&self.vars).enumerate() {
            let RawArg::Scalar(x) = *arg else {
                let slot = buffers + slot;
                return self.refuse(format!("argument {slot} is a buffer, not a scalar"));
            };
            if x.dtype() != declared {
                let dtype = x.dtype();
                return self.refuse(format!("scalar {slot} is {dtype}, declared as {declared}"));
            }
            all.push(Arg::Scalar(x.bits()));
        }
        all.extend(groups.iter().map(|&n| Arg::Scalar(n.into())));
        all.extend(lens.iter().map(|&len| Arg::Scalar(len as u64)));
        Ok(all)
    }

    fn refuse<T>(&self, reason: String) -> Result<T, DeviceError> {
        Err(DeviceError::Driver { context: format!("launching {}", self.name), reason })
    }

    /// Bytes of host memory it takes, roughly.
    pub fn bytes(&self) -> usize {
        size_of::<RawSource>() + self.code.len() + 16 * (self.params.len() + self.vars.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `f(buffer of u16, i8, i64)`.
    #[expect(unsafe_code, reason = "the kernel is not run")]
    fn kernel() -> RawKernel {
        // SAFETY: the kernel is not run.
        unsafe {
            RawKernel::new(RawSource {
                name: "f".to_owned(),
                language: Language::Wgsl,
                code: b"fn f() {}".as_slice().into(),
                params: vec![RawParam::new(DType::U16, Access::Write)],
                vars: vec![DType::I8, DType::I64],
                threads: [8, 2, 1],
                shared_bytes: 0,
            })
        }
    }

    #[test]
    fn scalars_of_the_launch_are_not_those_of_the_code() {
        let kernel = kernel();
        let launch = [0xff, 7, 5, 6, 1, 100];
        assert_eq!(kernel.scalars(&launch), [0xffff_ffff, 7]);
        assert_eq!(kernel.bytes_of_buffers(&launch).collect::<Vec<_>>(), [200]);
        let (outline, entry) = kernel.outline();
        assert_eq!(entry.grid(&outline, &launch, [9; 3]), Some([5, 6, 1]));
        assert_eq!(entry.grid(&outline, &[0xff, 7, 5, 0, 1, 100], [9; 3]), None);
    }

    #[test]
    fn declarations_beyond_a_limit_are_refused() {
        let with = |change: fn(&mut RawSource)| {
            let mut source = (*kernel()).clone();
            change(&mut source);
            let mut caps = Caps::default();
            caps.max_local = 64;
            RawKernel(Arc::new(source)).check(&caps).map_err(|error| error.log)
        };
        let refused = |change: fn(&mut RawSource), about: &str| {
            let log = with(change).unwrap_err();
            assert!(log.contains(about), "{log}");
        };
        assert_eq!(with(|_| {}), Ok(()));
        refused(|source| source.threads = [65, 1, 1], "threads");
        refused(|source| source.threads = [8, 0, 1], "threads");
        refused(|source| source.shared_bytes = 4, "shared_bytes");
        refused(|source| source.params[0].align = 3, "alignment 3");
        refused(|source| source.params[0].align = 128, "alignment 128");
        refused(|source| source.name.clear(), "name");
        refused(
            |source| (source.language, source.shared_bytes) = (Language::Ptx, u32::MAX),
            "shared storage",
        );
    }
}
