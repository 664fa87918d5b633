//! NVRTC, the run-time compiler, loaded at run time: CUDA C++ to machine code.
//!
//! It needs neither a GPU nor a driver, so tests compile for architectures that are not there.
//! The library is looked for in this order: the file or folder `ZYX_NVRTC` names; the system's
//! library path; `CUDA_PATH`, `CUDA_HOME` and `/usr/local/cuda`; the folders in which pip puts
//! NVIDIA's wheels. Where it is missing, that is an error that says so.
//!
//! Options never change values: see `dialect`.

use libloading::Library;
use std::env;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fs;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::LazyLock;
use zyx_core::hal::CompileError;

/// What every source is compiled with, besides the architecture.
pub(crate) const OPTIONS: [&CStr; 2] = [c"--fmad=false", c"--std=c++17"];

type Handle = *mut std::ffi::c_void;
type Status = c_int;

/// Declares the functions used under their names in C, and how they are found.
macro_rules! functions {
    ($($name:ident = $symbol:literal: fn($($arg:ty),*) -> $result:ty;)*) => {
        #[derive(Clone, Copy, Debug)]
        struct Functions {
            $($name: unsafe extern "C" fn($($arg),*) -> $result,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Functions, libloading::Error> {
                Ok(Functions {
                    // SAFETY: the signature is that of the header of CUDA 12 and 13.
                    $($name: unsafe { *library.get($symbol)? },)*
                })
            }
        }
    };
}

functions! {
    version = b"nvrtcVersion\0": fn(*mut c_int, *mut c_int) -> Status;
    error_string = b"nvrtcGetErrorString\0": fn(Status) -> *const c_char;
    arch_count = b"nvrtcGetNumSupportedArchs\0": fn(*mut c_int) -> Status;
    archs = b"nvrtcGetSupportedArchs\0": fn(*mut c_int) -> Status;
    create = b"nvrtcCreateProgram\0": fn(
        *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char,
        *const *const c_char
    ) -> Status;
    compile = b"nvrtcCompileProgram\0": fn(Handle, c_int, *const *const c_char) -> Status;
    destroy = b"nvrtcDestroyProgram\0": fn(*mut Handle) -> Status;
    log_size = b"nvrtcGetProgramLogSize\0": fn(Handle, *mut usize) -> Status;
    log = b"nvrtcGetProgramLog\0": fn(Handle, *mut c_char) -> Status;
    cubin_size = b"nvrtcGetCUBINSize\0": fn(Handle, *mut usize) -> Status;
    cubin = b"nvrtcGetCUBIN\0": fn(Handle, *mut c_char) -> Status;
    ptx_size = b"nvrtcGetPTXSize\0": fn(Handle, *mut usize) -> Status;
    ptx = b"nvrtcGetPTX\0": fn(Handle, *mut c_char) -> Status;
}

/// The compiler.
#[derive(Debug)]
pub struct Nvrtc {
    functions: Functions,
    version: (u32, u32),
    /// Architectures it knows, as 90 for `sm_90`, ascending.
    archs: Vec<u32>,
    /// Keeps the code loaded; never unloaded, since the compiler is kept for the process.
    _library: Library,
}

/// What the source is compiled to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Machine code for an architecture, as in `90` or `90a`.
    Machine(String),
    /// Assembly for an older architecture than the device's, which the driver compiles.
    Assembly(u32),
}

impl Target {
    fn option(&self) -> String {
        match self {
            Target::Machine(arch) => format!("--gpu-architecture=sm_{arch}"),
            Target::Assembly(arch) => format!("--gpu-architecture=compute_{arch}"),
        }
    }
}

impl Nvrtc {
    /// The compiler of this machine, loaded on first use.
    ///
    /// # Errors
    /// When it cannot be found or loaded, with what was tried.
    pub fn get() -> Result<&'static Nvrtc, String> {
        static NVRTC: LazyLock<Result<Nvrtc, String>> = LazyLock::new(load);
        NVRTC.as_ref().map_err(Clone::clone)
    }

    /// Its version, as in (13, 0).
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Compiles a complete source for an architecture given as in `90` or `90a`.
    ///
    /// # Errors
    /// With the compiler's log and the source.
    pub fn machine_code(
        &self,
        kernel: &str,
        source: &str,
        arch: &str,
    ) -> Result<Vec<u8>, CompileError> {
        self.compile(kernel, source, &Target::Machine(arch.to_owned()))
    }

    /// What to compile to for a device of this compute capability.
    pub(crate) fn target(&self, (major, minor): (u32, u32)) -> Result<Target, String> {
        let wanted = major * 10 + minor;
        if self.archs.is_empty() || self.archs.contains(&wanted) {
            return Ok(Target::Machine(wanted.to_string()));
        }
        let older = self.archs.iter().copied().filter(|&arch| arch < wanted).max();
        older.map(Target::Assembly).ok_or_else(|| {
            let (a, b) = self.version;
            format!("NVRTC {a}.{b} cannot compile for compute capability {major}.{minor}")
        })
    }

    pub(crate) fn compile(
        &self,
        kernel: &str,
        source: &str,
        target: &Target,
    ) -> Result<Vec<u8>, CompileError> {
        let error = |log: String| CompileError { kernel: kernel.to_owned(), log };
        let program = Program::new(self.functions, source).map_err(error)?;
        let compiled = program.compile(target);
        compiled.map_err(|log| error(format!("{log}\n{source}")))
    }
}

/// A program under compilation.
struct Program {
    functions: Functions,
    handle: Handle,
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: a handle of this library, destroyed once.
        let _ = unsafe { (self.functions.destroy)(&mut self.handle) };
    }
}

impl Program {
    fn new(functions: Functions, source: &str) -> Result<Program, String> {
        let source = CString::new(source).map_err(|e| e.to_string())?;
        let mut handle = ptr::null_mut();
        // SAFETY: strings end in zero and outlive the call; there are no headers.
        let status = unsafe {
            (functions.create)(
                &mut handle,
                source.as_ptr(),
                c"kernel.cu".as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        check(functions, status)?;
        Ok(Program { functions, handle })
    }

    fn compile(&self, target: &Target) -> Result<Vec<u8>, String> {
        let arch = CString::new(target.option()).map_err(|e| e.to_string())?;
        let mut options = vec![arch.as_ptr()];
        options.extend(OPTIONS.iter().map(|option| option.as_ptr()));
        // SAFETY: a valid handle and as many strings as said.
        let status = unsafe {
            (self.functions.compile)(self.handle, options.len() as c_int, options.as_ptr())
        };
        check(self.functions, status).map_err(|reason| {
            let log = self.bytes(self.functions.log_size, self.functions.log).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            format!("{reason}\n{}", log.trim_matches('\0'))
        })?;
        match target {
            Target::Machine(_) => self.bytes(self.functions.cubin_size, self.functions.cubin),
            Target::Assembly(_) => self.bytes(self.functions.ptx_size, self.functions.ptx),
        }
    }

    /// What a pair of functions for size and contents gives.
    fn bytes(
        &self,
        size: unsafe extern "C" fn(Handle, *mut usize) -> Status,
        contents: unsafe extern "C" fn(Handle, *mut c_char) -> Status,
    ) -> Result<Vec<u8>, String> {
        let mut n = 0;
        // SAFETY: a valid handle and a place for the result.
        check(self.functions, unsafe { size(self.handle, &mut n) })?;
        let mut bytes = vec![0u8; n];
        // SAFETY: the buffer is as long as the library just said.
        check(self.functions, unsafe { contents(self.handle, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

fn check(functions: Functions, status: Status) -> Result<(), String> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the library gives a constant string for every number.
    let text = unsafe { (functions.error_string)(status) };
    if text.is_null() {
        return Err(format!("NVRTC error {status}"));
    }
    // SAFETY: not null, ends in zero, lives as long as the library.
    Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

fn load() -> Result<Nvrtc, String> {
    let mut tried = Vec::new();
    for path in candidates(|name| env::var(name).ok()) {
        match open(&path) {
            Ok(nvrtc) => {
                let (major, minor) = nvrtc.version;
                log::debug!(target: "zyx::cuda", "NVRTC {major}.{minor}: {}", path.display());
                return Ok(nvrtc);
            }
            Err(error) => tried.push(format!("{}: {error}", path.display())),
        }
    }
    Err(format!(
        "NVRTC, CUDA's run-time compiler, was not found; install it (pip install \
         nvidia-cuda-nvrtc) or name its file in ZYX_NVRTC. Tried:\n{}",
        tried.join("\n")
    ))
}

fn open(path: &Path) -> Result<Nvrtc, String> {
    let library = open_library(path)?;
    let functions = Functions::of(&library).map_err(|e| e.to_string())?;
    let (mut major, mut minor, mut count) = (0, 0, 0);
    // SAFETY: places for the results.
    check(functions, unsafe { (functions.version)(&mut major, &mut minor) })?;
    // SAFETY: as above.
    check(functions, unsafe { (functions.arch_count)(&mut count) })?;
    let mut archs = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: as many places as the library just said.
    check(functions, unsafe { (functions.archs)(archs.as_mut_ptr()) })?;
    let archs = archs.into_iter().map(|arch| arch as u32).collect();
    let version = (major as u32, minor as u32);
    Ok(Nvrtc { functions, version, archs, _library: library })
}

/// Loads the library, and before it the one it will ask for by name, which the system would only
/// find on its own path.
fn open_library(path: &Path) -> Result<Library, String> {
    let beside = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    for builtins in beside.map(|dir| files(dir, "libnvrtc-builtins.so")).unwrap_or_default() {
        // SAFETY: NVIDIA's library has no initialisers that could interfere. It stays loaded.
        if let Ok(library) = unsafe { Library::new(&builtins) } {
            std::mem::forget(library);
        }
    }
    // SAFETY: as above.
    unsafe { Library::new(path) }.map_err(|e| e.to_string())
}

/// Where the library may be, given the environment.
fn candidates(variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    const NAMES: [&str; 6] = [
        "libnvrtc.so",
        "libnvrtc.so.13",
        "libnvrtc.so.12",
        "libnvrtc.so.11.2",
        "nvrtc64_130_0.dll",
        "nvrtc64_120_0.dll",
    ];
    let mut list = Vec::new();
    if let Some(path) = variable("ZYX_NVRTC").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        list.extend(files(&path, "libnvrtc.so"));
        list.push(path);
    }
    list.extend(NAMES.iter().map(PathBuf::from));
    let toolkits = ["CUDA_PATH", "CUDA_HOME"].iter().filter_map(|&name| variable(name));
    for toolkit in toolkits.chain(["/usr/local/cuda".to_owned()]) {
        for dir in ["lib64", "lib", "targets/x86_64-linux/lib"] {
            list.extend(files(&Path::new(&toolkit).join(dir), "libnvrtc.so"));
        }
    }
    for site in site_packages(variable) {
        for dir in ["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"] {
            list.extend(files(&site.join(dir), "libnvrtc.so"));
        }
    }
    list
}

/// Folders in which Python packages are installed, and where `scripts/install-drivers.sh` puts them.
fn site_packages(variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")? + "/.cache"));
    let mut sites: Vec<PathBuf> =
        variable("PYTHONPATH").iter().flat_map(|path| path.split(':')).map(PathBuf::from).collect();
    sites.extend(cache.map(|cache| Path::new(&cache).join("zyx/nvrtc")));
    let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|&name| variable(name));
    let home = variable("HOME").map(|home| format!("{home}/.local"));
    let system = ["/usr/local".to_owned(), "/usr".to_owned()];
    for prefix in prefixes.chain(home).chain(system) {
        for python in files(&Path::new(&prefix).join("lib"), "python3") {
            sites.extend(["site-packages", "dist-packages"].map(|dir| python.join(dir)));
        }
    }
    sites
}

/// Entries of a folder whose names start so, last names first, which are the newest versions.
fn files(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths.reverse();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_comes_first() {
        let with = |pairs: &[(&str, &str)]| {
            candidates(|name| pairs.iter().find(|p| p.0 == name).map(|p| p.1.to_owned()))
        };
        assert_eq!(with(&[("ZYX_NVRTC", "/x/y.so")])[0], Path::new("/x/y.so"));
        assert_eq!(with(&[])[0], Path::new("libnvrtc.so"));
    }

    #[test]
    fn wheels_are_found_where_pip_puts_them() {
        let root = env::temp_dir().join(format!("zyx-nvrtc-{}", std::process::id()));
        let dir = root.join("lib/python3.12/site-packages/nvidia/cu13/lib");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("libnvrtc.so.13"), b"").unwrap();
        let prefix = root.to_string_lossy().into_owned();
        let found = candidates(|name| (name == "VIRTUAL_ENV").then(|| prefix.clone()));
        assert!(found.contains(&dir.join("libnvrtc.so.13")), "{found:?}");
        assert!(open(&dir.join("libnvrtc.so.13")).is_err());
        fs::remove_dir_all(root).unwrap();
    }
}
