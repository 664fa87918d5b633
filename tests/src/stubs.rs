//! Shared libraries that stand in for a driver's, and processes that find them.
//!
//! A backend loads its driver's library when it first looks for devices, once per process. So a test of a
//! library that is missing, incomplete or broken builds one from C and runs a case in a process of its own:
//!
//! ```ignore
//! #[test]
//! fn case() {
//!     if !stubs::is_alone() {
//!         return;
//!     }
//!     println!("{}", MyBackend.open(0).unwrap_err());
//! }
//!
//! #[test]
//! fn a_library_without_symbols_is_an_error() {
//!     let Some(folder) = stubs::Folder::new() else { return };
//!     folder.library("libdriver.so.1", "");
//!     let told = stubs::alone("case", &[("LD_LIBRARY_PATH", folder.path().as_os_str())]);
//!     assert!(told.contains("libdriver.so.1"), "{told}");
//! }
//! ```

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tells a process that it is one of [`alone`]'s.
const ALONE: &str = "ZYX_TEST_ALONE";

/// A folder of libraries, removed on drop.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder; none, told by name, where there is no C compiler.
    ///
    /// # Panics
    /// When there is no C compiler, in CI (`CI=true`) and where `ZYX_REQUIRE` has the word `cc`.
    pub fn new() -> Option<Folder> {
        let present =
            Command::new("cc").arg("--version").output().is_ok_and(|o| o.status.success());
        if !present {
            let is = |name: &str, word: &str| {
                let value = std::env::var(name).unwrap_or_default();
                value.split(',').any(|found| found.trim() == word)
            };
            let required = is("CI", "true") || is("ZYX_REQUIRE", "cc");
            assert!(!required, "a C compiler is required, and `cc` does not run: install gcc");
            let thread = std::thread::current();
            eprintln!("skipped {}: no C compiler", thread.name().unwrap_or("a test"));
            return None;
        }
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("zyx-stubs-{}-{n}", std::process::id()));
        std::fs::create_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        Some(Folder(folder))
    }

    /// Where the libraries are.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Builds a shared library from C.
    ///
    /// # Panics
    /// When the compiler refuses.
    pub fn library(&self, name: &str, source: &str) -> PathBuf {
        let library = self.0.join(name);
        let mut compiler = Command::new("cc")
            .args(["-shared", "-fPIC", "-w", "-x", "c", "-o"])
            .arg(&library)
            .arg("-")
            .stdin(Stdio::piped())
            .spawn()
            .expect("the compiler starts");
        let mut input = compiler.stdin.take().expect("its input is a pipe");
        input.write_all(source.as_bytes()).expect("the compiler reads");
        drop(input);
        assert!(compiler.wait().expect("the compiler ends").success(), "{name} is not valid C");
        library
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether this process was started by [`alone`]; cases return where it was not.
pub fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// Runs one test of this program in a process of its own with these variables set, and gives what it
/// printed to either stream.
///
/// # Panics
/// When a thread of it panics, or when it ends by a signal or without having run the test.
pub fn alone(test: &str, variables: &[(&str, &OsStr)]) -> String {
    let program = std::env::current_exe().expect("a test has a program");
    let mut process = Command::new(program);
    process.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(ALONE, "1");
    // What is asked of the tests around it is not asked of a process without drivers.
    process.env_remove("ZYX_REQUIRE").envs(variables.iter().copied());
    let output = process.output().expect("the program starts");
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let told = format!("{out}{err}");
    assert!(output.status.success(), "{test} ended with {}:\n{told}", output.status);
    assert!(!told.contains("panicked at"), "{test} panicked:\n{told}");
    assert!(out.contains("1 passed"), "no test is called {test}:\n{told}");
    told
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "tests")]
mod tests {
    use super::*;

    /// Ends as the variable says.
    #[test]
    fn case() {
        if !is_alone() {
            return;
        }
        println!("found {:?}", std::env::var_os("LD_LIBRARY_PATH"));
        match std::env::var("ZYX_TEST_END").as_deref() {
            Ok("panic of a thread") => drop(std::thread::spawn(|| panic!("as asked")).join()),
            Ok("abort") => std::process::abort(),
            _ => {}
        }
    }

    #[test]
    fn a_process_tells_what_happened_to_it() {
        let Some(folder) = Folder::new() else { return };
        let library = folder.library("libstub.so.1", "int answer(void) { return 42; }");
        assert!(library.starts_with(folder.path()) && library.is_file());
        let path = folder.path().to_owned();
        let case = "stubs::tests::case";
        let told = alone(case, &[("LD_LIBRARY_PATH", path.as_os_str())]);
        assert!(told.contains(&format!("found Some({path:?})")), "{told}");
        for end in ["panic of a thread", "abort"] {
            let variables = [("ZYX_TEST_END", OsStr::new(end))];
            assert!(std::panic::catch_unwind(|| alone(case, &variables)).is_err(), "{end}");
        }
        assert!(std::panic::catch_unwind(|| alone("no_such_test", &[])).is_err());
        drop(folder);
        assert!(!path.exists());
    }
}
