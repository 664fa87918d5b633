//! Where NVIDIA's libraries are, and how they are loaded.
//!
//! They are looked for in this order: the file or folder an environment variable names; the
//! system's library path (on Windows `PATH`); `CUDA_PATH`, `CUDA_HOME` and `/usr/local/cuda`; the
//! folders in which pip puts NVIDIA's wheels. A library that is used stays loaded for the life of the process.

use libloading::Library;
use std::env;
use std::error::Error as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A library: what its files start with, the variable that names it, and where in NVIDIA's wheels
/// it lies, newest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    pub(crate) file: &'static str,
    /// Versions, newest first, of which files carry the number.
    pub(crate) versions: &'static [&'static str],
    pub(crate) variable: &'static str,
    pub(crate) wheels: &'static [&'static str],
    /// A library that the system would only find on its own path, loaded before.
    pub(crate) before: Option<&'static str>,
}

/// [`Names::versions`] of what comes with CUDA.
pub(crate) const CUDA_VERSIONS: &[&str] = &["", ".13", ".12"];

/// The first library that `open` accepts, which is never unloaded.
///
/// # Errors
/// What was tried, line by line.
pub(crate) fn find<T>(
    names: Names,
    open: impl Fn(&Library) -> Result<T, String>,
) -> Result<(T, PathBuf), String> {
    let caches = caches(|name| env::var(name).ok());
    let mut tried = Vec::new();
    for path in candidates(names, |name| env::var(name).ok()) {
        let found = load(names, &path, caches.as_deref()).and_then(|library| {
            let found = open(&library)?;
            // Its functions are kept by address, and what it left in the driver may call it.
            std::mem::forget(library);
            Ok(found)
        });
        match found {
            Ok(found) => return Ok((found, path)),
            Err(error) => {
                let of = format!("{}: ", path.display());
                tried.push(format!("{of}{}", error.strip_prefix(&of).unwrap_or(&error)));
            }
        }
    }
    Err(tried.join("\n"))
}

/// What lies in the folder of zyx's caches has to be this user's own, as compiled programs there.
fn trusted(path: &Path, caches: Option<&Path>) -> Result<(), String> {
    match caches {
        Some(root) if path.starts_with(root) => zyx_core::hal::check_private(root, path),
        _ => Ok(()),
    }
}

/// Where zyx's caches are.
fn caches(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let variable = |name: &str| variable(name).map(Into::into);
    zyx_core::hal::caches(variable).map(|caches| caches.join("zyx"))
}

/// Nothing if a library has all functions of what it should be.
///
/// # Errors
/// What it lacks.
pub(crate) fn complete(missing: &[&str], what: &str) -> Result<(), String> {
    let Some(first) = missing.first() else { return Ok(()) };
    Err(format!("it is not {what}: it lacks {first} ({} functions in all)", missing.len()))
}

fn load(names: Names, path: &Path, caches: Option<&Path>) -> Result<Library, String> {
    trusted(path, caches)?;
    let beside = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    if let (Some(dir), Some(before)) = (beside, names.before) {
        let before = files(dir, before).into_iter();
        for path in before.filter(|path| trusted(path, caches).is_ok()) {
            // SAFETY: NVIDIA's libraries have no initialisers that could interfere.
            if let Ok(library) = unsafe { open_file(&path) } {
                std::mem::forget(library);
            }
        }
    }
    // SAFETY: as above.
    unsafe { open_file(path) }.map_err(|error| why(&error))
}

/// Loads a library. On Windows, those that it needs are looked for in its own folder, too.
///
/// # Safety
/// As [`Library::new`].
unsafe fn open_file(path: &Path) -> Result<Library, libloading::Error> {
    #[cfg(windows)]
    if path.is_absolute() {
        use libloading::os::windows;
        // SAFETY: the caller's promise.
        return unsafe {
            windows::Library::load_with_flags(path, windows::LOAD_WITH_ALTERED_SEARCH_PATH)
        }
        .map(Library::from);
    }
    // SAFETY: the caller's promise.
    unsafe { Library::new(path) }
}

/// Why a library cannot be loaded, in the system's words.
pub(crate) fn why(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Where a library may be, given the environment.
fn candidates(names: Names, variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let mut list = Vec::new();
    if let Some(path) = variable(names.variable).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        list.extend(files(&path, names.file));
        list.push(path);
    }
    list.extend(
        names.versions.iter().map(|version| PathBuf::from(format!("{}{version}", names.file))),
    );
    let toolkits = ["CUDA_PATH", "CUDA_HOME"].iter().filter_map(|&name| variable(name));
    for toolkit in toolkits.chain(["/usr/local/cuda".to_owned()]) {
        let dirs: &[&str] = if cfg!(windows) {
            &["bin/x64", "bin"]
        } else {
            &["lib64", "lib", "targets/x86_64-linux/lib"]
        };
        for dir in dirs {
            list.extend(files(&Path::new(&toolkit).join(dir), names.file));
        }
    }
    for site in site_packages(variable) {
        for dir in names.wheels {
            list.extend(files(&site.join(dir), names.file));
        }
    }
    list
}

/// Folders in which Python packages are installed, and where `scripts/install-drivers.sh` puts
/// them.
fn site_packages(variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let mut sites: Vec<PathBuf> =
        variable("PYTHONPATH").iter().flat_map(|path| env::split_paths(path)).collect();
    sites.extend(caches(&variable).map(|caches| caches.join("nvrtc")));
    let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|&name| variable(name));
    if cfg!(windows) {
        // Environments have one version each, users and the system a folder for each version.
        let versions = variable("APPDATA").map(|dir| Path::new(&dir).join("Python"));
        let programs = variable("LOCALAPPDATA").map(|dir| Path::new(&dir).join("Programs/Python"));
        let pythons = versions.into_iter().chain(programs).flat_map(|dir| files(&dir, "Python3"));
        for python in prefixes.map(PathBuf::from).chain(pythons) {
            sites.extend(["Lib/site-packages", "site-packages"].map(|dir| python.join(dir)));
        }
        return sites;
    }
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

    const NAMES: Names = Names {
        file: "libexample.so",
        versions: CUDA_VERSIONS,
        variable: "ZYX_TEST_LIBRARY",
        wheels: &["nvidia/cu13/lib"],
        before: Some("libexample-builtins.so"),
    };

    #[test]
    fn the_environment_comes_first() {
        let with = |pairs: &[(&str, &str)]| {
            candidates(NAMES, |name| pairs.iter().find(|p| p.0 == name).map(|p| p.1.to_owned()))
        };
        assert_eq!(with(&[("ZYX_TEST_LIBRARY", "/x/y.so")])[0], Path::new("/x/y.so"));
        assert_eq!(with(&[])[0], Path::new("libexample.so"));
    }

    #[test]
    fn wheels_are_found_where_pip_puts_them() {
        let root = env::temp_dir().join(format!("zyx-library-{}", std::process::id()));
        let site = if cfg!(windows) { "Lib/site-packages" } else { "lib/python3.12/site-packages" };
        let dir = root.join(site).join("nvidia/cu13/lib");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("libexample.so.13"), b"").unwrap();
        let prefix = root.to_string_lossy().into_owned();
        let found = candidates(NAMES, |name| (name == "VIRTUAL_ENV").then(|| prefix.clone()));
        assert!(found.contains(&dir.join("libexample.so.13")), "{found:?}");
        assert!(load(NAMES, &dir.join("libexample.so.13"), None).is_err());
        fs::remove_dir_all(root).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn libraries_in_the_cache_are_the_users_own() {
        use std::os::unix::fs::PermissionsExt;
        let set_mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let root = env::temp_dir().join(format!("zyx-library-own-{}", std::process::id()));
        let (dir, file) = (root.join("nvrtc"), root.join("nvrtc/libexample.so"));
        fs::create_dir_all(&dir).unwrap();
        [&root, &dir].into_iter().for_each(|folder| set_mode(folder, 0o755));
        fs::write(&file, b"").unwrap();
        // What is trusted is opened, and is no library.
        for (mode, refused) in [(0o777, true), (0o755, false)] {
            set_mode(&file, mode);
            let error = load(NAMES, &file, Some(&root)).unwrap_err();
            assert_eq!(error.contains("chmod go-w"), refused, "{mode:o}: {error}");
        }
        fs::remove_dir_all(root).unwrap();
    }
}
