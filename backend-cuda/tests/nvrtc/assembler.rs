//! The driver's assembler as a library that needs no driver: nvJitLink, which NVRTC's installer brings.

use crate::missing;
use libloading::Library;
use std::env;
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::LazyLock;
use zyx_backend_cuda::{CudaDevice, Resources};
use zyx_core::hal::Caps;
use zyx_core::ir::Kernel;
use zyx_core::testing::rewritten;

/// The library.
pub(crate) struct Assembler(Library);

type Create = unsafe extern "C" fn(*mut *mut c_void, u32, *const *const c_char) -> c_int;
type Add = unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize, *const c_char) -> c_int;
type Handle = unsafe extern "C" fn(*mut c_void) -> c_int;
type Destroy = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
type Size = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
type Text = unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int;

/// What nvJitLink calls PTX.
const PTX: c_int = 2;

/// The assembler, or a word that the test is skipped.
pub(crate) fn assembler(test: &str) -> Option<&'static Assembler> {
    static FOUND: LazyLock<Result<Assembler, String>> = LazyLock::new(|| {
        let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".cache"));
        let folder = cache.or_else(home).unwrap_or_default().join("zyx/nvrtc/nvidia/cu13/lib");
        // SAFETY: loading the library runs its initialisers only.
        let library = unsafe { Library::new(folder.join("libnvJitLink.so.13")) };
        library.map(Assembler).map_err(|error| error.to_string())
    });
    FOUND.as_ref().map_err(|reason| missing(test, reason)).ok()
}

/// Translates a kernel and assembles it; what its launches take.
pub(crate) fn assemble(
    assembler: &Assembler,
    kernel: &Kernel,
    caps: &Caps,
    arch: &str,
) -> Result<Vec<Resources>, String> {
    let capability = match arch {
        "75" => (7, 5),
        "80" => (8, 0),
        _ => (9, 0),
    };
    let kernel = rewritten(kernel).map_err(|error| error.to_string())?;
    let source = CudaDevice::assembly(&kernel, caps, capability).map_err(|e| e.to_string())?;
    let log = assembler.run(&source, arch).map_err(|log| format!("{log}\n{source}"))?;
    // Matrix instructions that wait for each other are right and slow.
    match log.contains("serialized") {
        true => Err(format!("{log}\n{source}")),
        false => Ok(Resources::of(&log)),
    }
}

impl Assembler {
    fn get<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the types above are those of the header of version 13.
        let symbol = unsafe { self.0.get::<F>(format!("__{name}_13_0\0").as_bytes()) };
        *symbol.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// What the assembler tells of a source.
    ///
    /// # Errors
    /// With what it tells when it refuses it.
    pub(crate) fn run(&self, source: &str, arch: &str) -> Result<String, String> {
        let arch = CString::new(format!("-arch=sm_{arch}")).unwrap();
        let options = [arch.as_ptr(), c"-verbose".as_ptr()];
        let mut handle = ptr::null_mut();
        let log = |handle, size: &str, text: &str| {
            let mut n = 0;
            // SAFETY: a valid handle and a place for the result.
            unsafe { self.get::<Size>(size)(handle, &mut n) };
            let mut bytes = vec![0u8; n + 1];
            // SAFETY: a buffer of the length that was asked for.
            unsafe { self.get::<Text>(text)(handle, bytes.as_mut_ptr().cast()) };
            String::from_utf8_lossy(&bytes).trim_matches('\0').to_owned()
        };
        // SAFETY: strings that end in zero, as many as said, and a place for the handle.
        let made =
            unsafe { self.get::<Create>("nvJitLinkCreate")(&mut handle, 2, options.as_ptr()) };
        assert_eq!(made, 0);
        let (add, complete) =
            (self.get::<Add>("nvJitLinkAddData"), self.get::<Handle>("nvJitLinkComplete"));
        let source = CString::new(source).unwrap();
        let (bytes, name) = (source.as_bytes_with_nul(), c"kernel".as_ptr());
        // SAFETY: a valid handle and text of the length said, which ends in zero.
        let added = unsafe { add(handle, PTX, bytes.as_ptr().cast(), bytes.len(), name) };
        // SAFETY: a valid handle.
        let done = added == 0 && unsafe { complete(handle) } == 0;
        let told = match done {
            true => Ok(log(handle, "nvJitLinkGetInfoLogSize", "nvJitLinkGetInfoLog")),
            false => Err(log(handle, "nvJitLinkGetErrorLogSize", "nvJitLinkGetErrorLog")),
        };
        // SAFETY: a valid handle, destroyed once.
        unsafe { self.get::<Destroy>("nvJitLinkDestroy")(&mut handle) };
        told
    }
}
