//! What the driver answers when it refuses, in words that say what to do.

use opencl3::error_codes::{
    CL_CONTEXT_TERMINATED_KHR, CL_DEVICE_NOT_AVAILABLE,
    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_INVALID_BUFFER_SIZE, CL_INVALID_COMMAND_QUEUE,
    CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES,
    CL_PLATFORM_NOT_FOUND_KHR, ClError, DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED,
    error_text,
};
use opencl3::types::cl_int;
use std::fmt;

/// A number that a call of the driver returned, whether or not OpenCL defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    call: &'static str,
    code: cl_int,
}

pub(crate) type Result<T = (), E = Code> = std::result::Result<T, E>;

/// Makes a call of the driver, which a test may let fail.
#[inline]
pub(crate) fn call<T, E: Into<ClError>>(
    name: &'static str,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T> {
    #[cfg(test)]
    if crate::faults::DRIVER.fails(name) {
        return Err(Code { call: name, code: CL_OUT_OF_HOST_MEMORY });
    }
    call().map_err(|error| Code { call: name, code: error.into().0 })
}

impl Code {
    /// What became of a command after it was accepted.
    pub(crate) fn of_command(code: cl_int) -> Code {
        Code { call: "a command", code }
    }

    /// What a call returned that gave nothing.
    pub(crate) fn of_call(call: &'static str, code: cl_int) -> Code {
        Code { call, code }
    }

    /// Whether memory ran out.
    pub(crate) fn is_memory(self) -> bool {
        let codes = [
            CL_MEM_OBJECT_ALLOCATION_FAILURE,
            CL_OUT_OF_RESOURCES,
            CL_OUT_OF_HOST_MEMORY,
            CL_INVALID_BUFFER_SIZE,
        ];
        codes.contains(&self.code)
    }

    /// Whether the device cannot be used any more; a faulting kernel invalidates the queue, or what
    /// comes after it fails.
    pub(crate) fn is_lost(self) -> bool {
        let codes = [
            CL_DEVICE_NOT_AVAILABLE,
            CL_INVALID_COMMAND_QUEUE,
            CL_CONTEXT_TERMINATED_KHR,
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
        ];
        codes.contains(&self.code)
    }

    /// Whether there is no library, or none that finds a driver.
    pub(crate) const fn is_about_no_driver(&self) -> bool {
        matches!(self.code, DLOPEN_RUNTIME_LOAD_FAILED | CL_PLATFORM_NOT_FOUND_KHR)
    }
}

/// Where there is a library and nothing behind it.
pub(crate) const NO_DRIVER: &str = "the OpenCL library finds no driver; install one for the device \
     (for CPUs PoCL, Debian's `pocl-opencl-icd`), and see that OCL_ICD_VENDORS, if it is set, names \
     the folder of its .icd file";

/// The library that is loaded.
const LIBRARY: &str = if cfg!(target_os = "windows") {
    "OpenCL.dll"
} else if cfg!(target_os = "macos") {
    "OpenCL.framework"
} else {
    "libOpenCL.so.1"
};

/// The library by name, or what the environment has in its place.
fn library() -> String {
    match std::env::var("OPENCL_DYLIB_PATH") {
        Ok(path) => format!("{LIBRARY} (or `{path}`, which OPENCL_DYLIB_PATH names)"),
        Err(_) => LIBRARY.to_owned(),
    }
}

const INSTALL: &str = "install an OpenCL loader (Debian's `ocl-icd-libopencl1`) and a driver, or \
     name a library of OpenCL 1.2 or later in OPENCL_DYLIB_PATH";

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Code { call, code } = self;
        match *code {
            DLOPEN_RUNTIME_LOAD_FAILED => {
                let library = library();
                write!(f, "{library} cannot be loaded: it is absent or damaged; {INSTALL}")
            }
            DLOPEN_FUNCTION_NOT_AVAILABLE => {
                let library = library();
                write!(f, "{library} has no {call}: it is incomplete or too old; {INSTALL}")
            }
            CL_PLATFORM_NOT_FOUND_KHR => write!(f, "{call}: {NO_DRIVER}"),
            code => match error_text(code) {
                "UNKNOWN_ERROR" => write!(
                    f,
                    "{call} returned {code}, which OpenCL does not define; update the device's driver"
                ),
                text => write!(f, "{call}: {text} ({code})"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_what_to_do() {
        let told = |code| Code { call: "clFlush", code }.to_string();
        assert_eq!(told(CL_OUT_OF_RESOURCES), "clFlush: CL_OUT_OF_RESOURCES (-5)");
        let unknown = told(-9999);
        assert!(unknown.contains("clFlush returned -9999") && unknown.contains("update"));
        for code in [DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED] {
            let told = told(code);
            assert!(told.contains("OpenCL") && told.contains("install"), "{told}");
        }
    }
}
