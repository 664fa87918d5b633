//! NVRTC, the run-time compiler, loaded at run time: CUDA C++ to machine code.
//!
//! It needs neither a GPU nor a driver, so tests compile for architectures that are not there.
//! `ZYX_NVRTC` names its file or folder; see `library` for where else it is looked for. Where it
//! is missing, that is an error that says so.
//!
//! Options never change values: see `dialect`.

use crate::library::{self, Names};
use crate::raw::check_entry;
use crate::sys::{call, functions};
use cudarc::nvrtc::sys::{self as nvrtc, nvrtcProgram, nvrtcResult};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::LazyLock;
use zyx_core::hal::{CompileError, RawKernel};

/// What every source is compiled with, besides the architecture.
/// The last is known since 12.4: nothing is declared that kernels do not use, as textures and launches,
/// which takes a fifth to a third of the time (12 to 29 and 8 to 22 ms on an H100's host).
const OPTIONS: [&CStr; 3] = [c"--fmad=false", c"--std=c++17", c"--minimal"];

/// Options of raw kernels. Others are NVIDIA's defaults, fused multiply-adds among them.
pub(crate) const RAW_OPTIONS: &[&CStr] = &[c"--std=c++17"];

// In every version since CUDA 11.2.
functions! {
    nvrtcVersion nvrtcGetErrorString nvrtcGetNumSupportedArchs nvrtcGetSupportedArchs
    nvrtcCreateProgram nvrtcCompileProgram nvrtcDestroyProgram nvrtcGetProgramLogSize
    nvrtcGetProgramLog nvrtcGetCUBINSize nvrtcGetCUBIN nvrtcGetPTXSize nvrtcGetPTX
}

/// Calls a function of the compiler; an error if it fails. Unsafe, as NVIDIA's manual says of it.
macro_rules! ask {
    ($functions:expr, $name:ident $arguments:tt) => {
        check($functions, stringify!($name), call!($functions, nvrtc::$name $arguments))
    };
}

/// The bytes of which one function tells how many there are, and another what they are.
macro_rules! bytes {
    ($program:expr, $size:ident, $contents:ident) => {{
        let mut n = 0;
        // SAFETY: a valid handle and a place for the result.
        let said = unsafe { ask!(&$program.nvrtc.functions, $size($program.handle, &mut n)) };
        said.and_then(|()| {
            let mut bytes = vec![0u8; n];
            let to = bytes.as_mut_ptr().cast();
            // SAFETY: the buffer is as long as the library just said.
            unsafe { ask!(&$program.nvrtc.functions, $contents($program.handle, to)) }
                .map(|()| bytes)
        })
    }};
}

/// The compiler.
#[derive(Debug)]
pub struct Nvrtc {
    functions: Functions,
    version: (u32, u32),
    /// Architectures it knows, as 90 for `sm_90`, ascending.
    archs: Vec<u32>,
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
    /// What a version of the compiler, which knows these architectures, makes for one.
    fn of(wanted: u32, version: (u32, u32), archs: &[u32]) -> Option<Target> {
        if archs.is_empty() || archs.contains(&wanted) {
            // The suffix adds instructions that no later generation has, and that came with 12.0.
            let suffix = if wanted == 90 && version >= (12, 0) { "a" } else { "" };
            return Some(Target::Machine(format!("{wanted}{suffix}")));
        }
        archs.iter().copied().filter(|&arch| arch < wanted).max().map(Target::Assembly)
    }

    /// Whether code may use instructions that later generations do not have.
    pub(crate) fn is_of_one_generation(&self) -> bool {
        matches!(self, Target::Machine(arch) if arch.ends_with('a'))
    }

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

    /// What it is told beside the architecture.
    pub(crate) fn options(&self) -> &'static [&'static CStr] {
        if self.version >= (12, 4) { &OPTIONS } else { &OPTIONS[..2] }
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

    /// The same, for what each of its entry points takes.
    ///
    /// # Errors
    /// As [`Nvrtc::machine_code`].
    pub fn resources(
        &self,
        kernel: &str,
        source: &str,
        arch: &str,
    ) -> Result<Vec<Resources>, CompileError> {
        let error = |log: String| CompileError { kernel: kernel.to_owned(), log };
        let program = Program::new(self, source).map_err(error)?;
        let target = Target::Machine(arch.to_owned());
        let compiled = program.compile(&target, &[c"--ptxas-options=-v"]);
        compiled.map_err(|log| error(format!("{log}\n{source}")))?;
        Ok(Resources::of(&program.log()))
    }

    /// Compiles a kernel that a user wrote in CUDA C++ for an architecture given as in `90` or `90a`, and
    /// compares its parameters with the declaration.
    ///
    /// # Errors
    /// With the compiler's log, which has line numbers; when there is no such entry point or it has other parameters.
    pub fn raw(&self, kernel: &RawKernel, arch: &str) -> Result<Vec<u8>, CompileError> {
        self.compile_raw(kernel, &Target::Machine(arch.to_owned()))
    }

    /// As [`Nvrtc::raw`].
    pub(crate) fn compile_raw(
        &self,
        kernel: &RawKernel,
        target: &Target,
    ) -> Result<Vec<u8>, CompileError> {
        let error = |log: String| kernel.error(log);
        let program = Program::new(self, kernel.text()?).map_err(error)?;
        let code = program.compile_with(target, RAW_OPTIONS).map_err(error)?;
        let ptx = bytes!(program, nvrtcGetPTXSize, nvrtcGetPTX).map_err(error)?;
        check_entry(kernel, &String::from_utf8_lossy(&ptx))?;
        Ok(code)
    }

    /// What to compile to for a device of this compute capability.
    pub(crate) fn target(&self, (major, minor): (u32, u32)) -> Result<Target, String> {
        let wanted = major * 10 + minor;
        Target::of(wanted, self.version, &self.archs).ok_or_else(|| {
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
        let program = Program::new(self, source).map_err(error)?;
        let compiled = program.compile(target, &[]);
        compiled.map_err(|log| error(format!("{log}\n{source}")))
    }
}

/// What the machine code of an entry point takes of each thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// The entry point.
    pub name: String,
    /// Registers of 32 bits.
    pub registers: u32,
    /// Bytes of private memory: arrays indexed by a variable, and what is spilled.
    pub stack: u32,
    /// Bytes stored there for want of registers.
    pub spills: u32,
}

impl Resources {
    /// Those of all entry points, from the assembler's log.
    pub fn of(log: &str) -> Vec<Resources> {
        let mut all: Vec<Resources> = Vec::new();
        for line in log.lines() {
            if let Some((_, name)) = line.split_once("Compiling entry function '") {
                let name = name.split('\'').next().unwrap_or_default().to_owned();
                all.push(Resources { name, registers: 0, stack: 0, spills: 0 });
            }
            let Some(entry) = all.last_mut() else { continue };
            let number = |what: &str| -> Option<u32> {
                line.split_once(what)?.0.rsplit([' ', ',']).next()?.parse().ok()
            };
            entry.registers = number(" registers").unwrap_or(entry.registers);
            entry.stack = number(" bytes stack frame").unwrap_or(entry.stack);
            entry.spills = number(" bytes spill stores").unwrap_or(entry.spills);
        }
        all
    }
}

/// A program under compilation.
struct Program<'a> {
    nvrtc: &'a Nvrtc,
    handle: nvrtcProgram,
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: a handle of this library, destroyed once.
        let _ =
            unsafe { call!(self.nvrtc.functions, nvrtc::nvrtcDestroyProgram(&mut self.handle)) };
    }
}

impl Program<'_> {
    fn new<'a>(nvrtc: &'a Nvrtc, source: &str) -> Result<Program<'a>, String> {
        let source = CString::new(source).map_err(|e| e.to_string())?;
        let (source, name, none) = (source.as_ptr(), c"kernel.cu".as_ptr(), ptr::null());
        let mut handle = ptr::null_mut();
        // SAFETY: strings end in zero and outlive the call; there are no headers.
        unsafe {
            ask!(&nvrtc.functions, nvrtcCreateProgram(&mut handle, source, name, 0, none, none))
        }?;
        Ok(Program { nvrtc, handle })
    }

    fn compile(&self, target: &Target, more: &[&CStr]) -> Result<Vec<u8>, String> {
        self.compile_with(target, &[self.nvrtc.options(), more].concat())
    }

    /// The code for a target, with these options beside the architecture.
    fn compile_with(&self, target: &Target, others: &[&CStr]) -> Result<Vec<u8>, String> {
        let arch = CString::new(target.option()).map_err(|e| e.to_string())?;
        let mut options = vec![arch.as_ptr()];
        options.extend(others.iter().map(|option| option.as_ptr()));
        let (n, options) = (options.len() as c_int, options.as_ptr());
        // SAFETY: a valid handle and as many strings as said.
        unsafe { ask!(&self.nvrtc.functions, nvrtcCompileProgram(self.handle, n, options)) }
            .map_err(|reason| format!("{reason}\n{}", self.log()))?;
        let code = match target {
            Target::Machine(_) => bytes!(self, nvrtcGetCUBINSize, nvrtcGetCUBIN),
            Target::Assembly(_) => bytes!(self, nvrtcGetPTXSize, nvrtcGetPTX),
        }?;
        // The driver reads from what it is given how long that is.
        if code.is_empty() { Err(format!("NVRTC gave no code; {OTHER}")) } else { Ok(code) }
    }

    /// What the compiler told.
    fn log(&self) -> String {
        let log = bytes!(self, nvrtcGetProgramLogSize, nvrtcGetProgramLog).unwrap_or_default();
        String::from_utf8_lossy(&log).trim_matches('\0').to_owned()
    }
}

/// What to do about a compiler that does not work.
const OTHER: &str = "another one can be named in ZYX_NVRTC";

/// What the function `name` returned, in the compiler's words.
fn check(functions: &Functions, name: &str, status: u32) -> Result<(), String> {
    if status == 0 {
        return Ok(());
    }
    let text = functions.nvrtcGetErrorString.and_then(|address| {
        // SAFETY: the signature of NVIDIA's header, but with a number for the code.
        let describe: unsafe extern "C" fn(u32) -> *const c_char = unsafe { address.as_type() };
        // SAFETY: the library gives a constant string for every number, or nothing.
        let text = unsafe { describe(status) };
        // SAFETY: not null, ends in zero, lives as long as the library.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
    });
    let text = text.unwrap_or("no description".into());
    if status == nvrtcResult::NVRTC_ERROR_COMPILATION as u32 {
        return Err(text.into_owned());
    }
    Err(format!("{name} of NVRTC: error {status} ({text}); {OTHER}"))
}

const NAMES: Names = Names {
    file: if cfg!(windows) { "nvrtc64_" } else { "libnvrtc.so" },
    versions: if cfg!(windows) { &["130_0.dll", "120_0.dll"] } else { library::CUDA_VERSIONS },
    variable: "ZYX_NVRTC",
    wheels: if cfg!(windows) {
        &["nvidia/cu13/bin/x86_64", "nvidia/cuda_nvrtc/bin"]
    } else {
        &["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"]
    },
    before: Some(if cfg!(windows) { "nvrtc-builtins64_" } else { "libnvrtc-builtins.so" }),
};

fn load() -> Result<Nvrtc, String> {
    let (nvrtc, path) = library::find(NAMES, open).map_err(|tried| {
        format!(
            "no NVRTC, CUDA's run-time compiler, can be used; install it (pip install \
             nvidia-cuda-nvrtc) or name its file in ZYX_NVRTC. Tried:\n{tried}"
        )
    })?;
    let (major, minor) = nvrtc.version;
    log::debug!(target: "zyx::cuda", "NVRTC {major}.{minor}: {}", path.display());
    Ok(nvrtc)
}

fn open(library: &Library) -> Result<Nvrtc, String> {
    let (functions, missing) = Functions::of(library);
    library::complete(&missing, "NVRTC of CUDA 11.2 or later")?;
    let (mut major, mut minor, mut count) = (0, 0, 0);
    // SAFETY: places for the results.
    unsafe { ask!(&functions, nvrtcVersion(&mut major, &mut minor)) }?;
    // SAFETY: as above.
    unsafe { ask!(&functions, nvrtcGetNumSupportedArchs(&mut count)) }?;
    let mut archs = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: as many places as the library just said.
    unsafe { ask!(&functions, nvrtcGetSupportedArchs(archs.as_mut_ptr())) }?;
    let archs = archs.into_iter().map(|arch: c_int| arch as u32).collect();
    let version = (major as u32, minor as u32);
    Ok(Nvrtc { functions, version, archs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_read_from_the_log() {
        let log = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k_0' for 'sm_80'
ptxas info    : Function properties for k_0
ptxas         .     528 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 364 bytes cmem[0]";
        let name = "k_0".to_owned();
        let only = Resources { name, registers: 255, stack: 528, spills: 24 };
        assert_eq!(Resources::of(log), [only]);
    }

    #[test]
    fn instructions_of_one_generation_are_asked_for_where_the_compiler_has_them() {
        let of = |wanted, version, archs: &[u32]| Target::of(wanted, version, archs);
        let machine = |arch: &str| Some(Target::Machine(arch.to_owned()));
        assert_eq!(of(90, (12, 0), &[80, 90, 100]), machine("90a"));
        assert_eq!(of(90, (11, 8), &[80, 86, 90]), machine("90"));
        assert_eq!(of(90, (11, 4), &[80, 86]), Some(Target::Assembly(86)));
        assert_eq!(of(100, (13, 0), &[]), machine("100"));
        assert_eq!(of(52, (13, 0), &[75, 80]), None);
        let is_own = |target: Option<Target>| target.is_some_and(|t| t.is_of_one_generation());
        assert!(is_own(machine("90a")) && !is_own(machine("90")));
        assert!(!is_own(Some(Target::Assembly(86))));
    }
}
