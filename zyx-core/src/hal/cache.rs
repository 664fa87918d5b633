//! Compiled programs on disk, for any backend whose compiler takes time.
//!
//! One file per program in `$ZYX_CACHE_DIR/<backend>`, by default below `$XDG_CACHE_HOME/zyx` or
//! `~/.cache/zyx`; `ZYX_CACHE_DIR` set to nothing turns the cache off. The environment is read
//! once, when a cache is made.
//!
//! A file starts with the whole key (format, identity and source) and a checksum, both compared
//! on loading, so neither a collision of file names nor a damaged file can run. Files are written
//! aside and renamed, so no reader sees half of one. Every failure means "not cached".

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Changes when the format of the files does.
const FORMAT: &str = "zyx program 1";

/// A cache of compiled programs.
///
/// ```
/// use zyx_core::hal::DiskCache;
/// let cache = DiskCache::new("example", "device, driver, compiler and options");
/// cache.store("source", b"binary");
/// assert!(cache.load("source").is_none_or(|binary| binary == b"binary"));
/// ```
#[derive(Debug)]
pub struct DiskCache {
    dir: Option<PathBuf>,
    prefix: String,
}

impl DiskCache {
    /// The cache of a backend's programs. `identity` names everything but the source that the
    /// compiled program depends on: device, driver, compiler, options.
    pub fn new(backend: &str, identity: &str) -> DiskCache {
        let dir = directory(|name| env::var_os(name));
        DiskCache::at(dir.map(|dir| dir.join(backend)), identity)
    }

    /// A cache whose files are in this folder, whatever the environment says.
    pub fn in_folder(dir: &Path, identity: &str) -> DiskCache {
        DiskCache::at(Some(dir.to_owned()), identity)
    }

    fn at(dir: Option<PathBuf>, identity: &str) -> DiskCache {
        DiskCache { dir, prefix: format!("{FORMAT}\n{identity}\n") }
    }

    /// What programs of this cache depend on besides their source, as it was given.
    pub fn identity(&self) -> &str {
        self.prefix.trim_start_matches(FORMAT).trim()
    }

    fn header(&self, source: &str) -> Vec<u8> {
        let key = format!("{}{source}", self.prefix);
        let mut header = (key.len() as u64).to_le_bytes().to_vec();
        header.extend_from_slice(key.as_bytes());
        header
    }

    fn path(&self, header: &[u8]) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(format!("{:016x}.bin", fnv(header))))
    }

    /// The program cached for this source.
    pub fn load(&self, source: &str) -> Option<Vec<u8>> {
        let header = self.header(source);
        let file = fs::read(self.path(&header)?).ok()?;
        let (sum, binary) = file.strip_prefix(&header[..])?.split_first_chunk::<8>()?;
        (u64::from_le_bytes(*sum) == fnv(binary)).then(|| binary.to_vec())
    }

    /// Caches a program.
    pub fn store(&self, source: &str, binary: &[u8]) {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let mut file = self.header(source);
        let Some(path) = self.path(&file) else { return };
        file.extend_from_slice(&fnv(binary).to_le_bytes());
        file.extend_from_slice(binary);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let aside = path.with_extension(format!("{}-{serial}.tmp", std::process::id()));
        let Some(dir) = &self.dir else { return };
        let written = fs::create_dir_all(dir)
            .and_then(|()| fs::write(&aside, file))
            .and_then(|()| fs::rename(&aside, path));
        if written.is_err() {
            let _ = fs::remove_file(aside);
        }
    }
}

/// Where caches go, given the environment.
fn directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(dir) = variable("ZYX_CACHE_DIR") {
        return (!dir.is_empty()).then(|| dir.into());
    }
    let set = |name: &str| variable(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache"))).map(|dir| dir.join("zyx"))
}

/// The 64-bit Fowler-Noll-Vo hash, variant 1a (RFC 9923).
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_comes_back_only_whole_and_for_its_key() {
        let dir = env::temp_dir().join(format!("zyx-disk-cache-{}", std::process::id()));
        let cache = DiskCache::at(Some(dir.clone()), "device 1");
        assert_eq!(cache.load("source"), None);
        cache.store("source", b"binary");
        assert_eq!(cache.load("source").as_deref(), Some(&b"binary"[..]));
        assert_eq!(cache.load("other"), None);
        assert_eq!(DiskCache::at(Some(dir.clone()), "device 2").load("source"), None);

        let path = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(cache.load("source"), None);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn the_environment_names_the_directory() {
        let with = |pairs: &[(&str, &str)]| {
            directory(|name| pairs.iter().find(|p| p.0 == name).map(|p| p.1.into()))
        };
        assert_eq!(with(&[("HOME", "/h")]), Some("/h/.cache/zyx".into()));
        assert_eq!(with(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]), Some("/x/zyx".into()));
        assert_eq!(with(&[("HOME", "/h"), ("ZYX_CACHE_DIR", "/z")]), Some("/z".into()));
        assert_eq!(with(&[("HOME", "/h"), ("ZYX_CACHE_DIR", "")]), None);
        assert_eq!(with(&[]), None);
    }
}
