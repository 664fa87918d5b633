//! Compiled programs on disk, for any backend whose compiler takes time.
//!
//! One file per program in `$ZYX_CACHE_DIR/<backend>`, by default below `$XDG_CACHE_HOME/zyx`, on
//! Windows `%LOCALAPPDATA%\zyx`, or `~/.cache/zyx`; `ZYX_CACHE_DIR` set to nothing turns the cache off. A folder holds at most
//! `ZYX_CACHE_DIR_LIMIT` bytes (as in `512M`; 1 GiB if it is not set), files used least recently go
//! first. The environment is read once, when a cache is made.
//!
//! What is loaded here is run. So on Unix folders are made for their owner alone (0700), and one that is
//! another user's, or that others may write to, is refused with a warning, as is a link of another
//! user's. A file is read only if it is the owner's and no link. Its name is the SHA-256 of format,
//! identity and source; it starts with the SHA-256 of that name and its contents, so neither a
//! collision, a damaged file nor one under another's name can run. Files are written aside and
//! renamed, so no reader sees half of one. Every failure means "not cached".

use super::sha256::{hex, sha256};
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime};

/// Changes when the format of the files does.
const FORMAT: &str = "zyx program 2";

/// Most bytes of a folder.
const LIMIT: usize = 1 << 30;

/// How old the note of a file's last use may become, and how old a file that was not finished.
const HOUR: Duration = Duration::from_hours(1);

/// How often a file is looked at that others replace meanwhile.
const LOOKS: usize = 100;

/// A cache of compiled programs.
///
/// ```
/// use zyx::internals::hal::DiskCache;
/// let cache = DiskCache::new("example", "device, driver, compiler and options");
/// cache.store("source", b"binary");
/// assert!(cache.load("source").is_none_or(|binary| binary == b"binary"));
/// ```
#[derive(Debug)]
pub struct DiskCache {
    /// Folders to make and check, each in the one before; programs are in the last.
    folders: Vec<PathBuf>,
    limit: usize,
    identity: String,
    /// The folder once it was checked, if it may be used.
    checked: OnceLock<Option<Folder>>,
    /// Bytes in the folder, from the first program stored on.
    bytes: Mutex<Option<u64>>,
}

/// A folder of this user's.
#[derive(Clone, Debug)]
struct Folder {
    path: PathBuf,
    owner: u32,
}

impl DiskCache {
    /// The cache of a backend's programs. `identity` names everything but the source that the
    /// compiled program depends on: device, driver, compiler, options.
    pub fn new(backend: &str, identity: &str) -> DiskCache {
        let folders = directory(|name| env::var_os(name)).map_or_else(Vec::new, |dir| {
            let own = dir.join(backend);
            vec![dir, own]
        });
        let limit = env::var("ZYX_CACHE_DIR_LIMIT").unwrap_or_default();
        let limit = match limit.trim() {
            "" => LIMIT,
            text => size(text).unwrap_or_else(|| {
                log::warn!(target: "zyx::cache", "ZYX_CACHE_DIR_LIMIT is `{text}`; write 512M");
                LIMIT
            }),
        };
        DiskCache::at(folders, limit, identity)
    }

    /// A cache whose files are in this folder, whatever the environment says.
    pub fn in_folder(dir: &Path, identity: &str) -> DiskCache {
        DiskCache::at(vec![dir.to_owned()], LIMIT, identity)
    }

    fn at(folders: Vec<PathBuf>, limit: usize, identity: &str) -> DiskCache {
        let (checked, bytes) = (OnceLock::new(), Mutex::default());
        DiskCache { folders, limit, identity: identity.to_owned(), checked, bytes }
    }

    /// What programs of this cache depend on besides their source, as it was given.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The folder, if it is there or to be made, and may be used.
    fn folder(&self, make: bool) -> Option<&Folder> {
        if self.checked.get().is_none() {
            let last = self.folders.last()?;
            if !make && !last.exists() {
                return None;
            }
            let refused = |reason: &String| {
                log::warn!(target: "zyx::cache", "programs are not kept on disk: {reason}");
            };
            let checked = private(&self.folders).inspect_err(refused).ok();
            return self.checked.get_or_init(|| checked).as_ref();
        }
        self.checked.get()?.as_ref()
    }

    /// What a source is kept under.
    fn key(&self, source: &str) -> [u8; 32] {
        let length = (self.identity.len() as u64).to_le_bytes();
        sha256(&[FORMAT.as_bytes(), &length, self.identity.as_bytes(), source.as_bytes()])
    }

    /// The program cached for this source.
    pub fn load(&self, source: &str) -> Option<Vec<u8>> {
        let folder = self.folder(false)?;
        let key = self.key(source);
        let mut file = folder.open(&hex(&key), self.limit)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let (seal, program) = bytes.split_first_chunk::<32>()?;
        if *seal != sha256(&[&key, program]) {
            return None;
        }
        // The time of the last use, roughly: it need not be written each time.
        let now = SystemTime::now();
        let noted = file.metadata().and_then(|it| it.modified());
        if noted.is_ok_and(|noted| now.duration_since(noted).is_ok_and(|age| age > HOUR)) {
            let _ = file.set_modified(now);
        }
        Some(program.to_vec())
    }

    /// Caches a program.
    pub fn store(&self, source: &str, binary: &[u8]) {
        if binary.len() + 32 > self.limit {
            return;
        }
        let Some(folder) = self.folder(true) else { return };
        let key = self.key(source);
        let aside = aside(&folder.path);
        let written = create(&aside).and_then(|mut file| {
            file.write_all(&sha256(&[&key, binary]))?;
            file.write_all(binary)?;
            drop(file);
            fs::rename(&aside, folder.path.join(hex(&key)))
        });
        if written.is_err() {
            let _ = fs::remove_file(aside);
            return;
        }
        let mut bytes = super::lock(&self.bytes);
        let all = bytes.map_or_else(|| folder.bytes(), |all| all + 32 + binary.len() as u64);
        let fits = all <= self.limit as u64;
        *bytes = Some(if fits { all } else { folder.shrink(self.limit as u64 / 8 * 7) });
    }
}

impl Folder {
    /// A file for reading, if it is the owner's own and no link to another place. One that another
    /// thread or process replaces between the two looks is looked at again.
    fn open(&self, name: &str, limit: usize) -> Option<File> {
        let path = self.path.join(name);
        for _ in 0..LOOKS {
            let named = fs::symlink_metadata(&path).ok()?;
            if !named.is_file() || named.len() > limit as u64 {
                return None;
            }
            let file = system::open(&path).ok()?;
            let opened = file.metadata().ok()?;
            if system::is_same(&named, &opened) {
                return system::is_private(&opened, self.owner).then_some(file);
            }
        }
        None
    }

    /// Its files with time of last use and size. What nobody finished is removed.
    fn files(&self) -> Vec<(SystemTime, u64, PathBuf)> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(about) = entry.metadata() else { continue };
            let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if !about.is_file() {
            } else if path.extension().is_some_and(|extension| extension == "tmp") {
                if used.elapsed().is_ok_and(|age| age > HOUR) {
                    let _ = fs::remove_file(path);
                }
            } else {
                files.push((used, about.len(), path));
            }
        }
        files
    }

    fn bytes(&self) -> u64 {
        self.files().iter().map(|file| file.1).sum()
    }

    /// Removes what was used least recently until no more bytes are left, and says how many are.
    fn shrink(&self, limit: u64) -> u64 {
        let mut files = self.files();
        files.sort();
        let mut left: u64 = files.iter().map(|file| file.1).sum();
        for (_, bytes, path) in files {
            if left <= limit {
                break;
            }
            if fs::remove_file(path).is_ok() {
                left -= bytes;
            }
        }
        left
    }
}

/// A name that no other file has.
fn aside(folder: &Path) -> PathBuf {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    folder.join(format!("{}-{serial}.tmp", std::process::id()))
}

/// A new file for its owner alone.
fn create(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    system::restrict(&mut options);
    options.open(path)
}

/// Refuses a file below `root` that is not this user's own, or that others could replace: every
/// folder from `root` on and the file have to be the user's, and nobody else may write to them.
/// A link to a file is refused. Where systems have no such modes everything is accepted.
///
/// ```
/// use zyx::internals::hal::check_private;
/// let root = std::env::temp_dir().join(format!("zyx-private-{}", std::process::id()));
/// std::fs::create_dir_all(&root)?;
/// let file = root.join("lib.so");
/// assert!(check_private(&root, &file).is_err());
/// std::fs::remove_dir_all(root)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// With the first folder or file to distrust, or that cannot be looked at, and what to do.
pub fn check_private(root: &Path, file: &Path) -> Result<(), String> {
    let told = |error: io::Error| format!("{}: {error}", file.display());
    let named = fs::symlink_metadata(file).map_err(told)?;
    let mut folders: Vec<PathBuf> = file.ancestors().skip(1).map(Path::to_owned).collect();
    folders.retain(|folder| folder.starts_with(root));
    folders.reverse();
    let root = folders.first().ok_or("there is no folder")?;
    let owner = user(root).map_err(told)?;
    folders.iter().try_for_each(|folder| check(folder, owner))?;
    match named.is_file() && system::is_private(&named, owner) {
        true => Ok(()),
        false => Err(format!(
            "{} is a link, another user's, or others may write to it; `chmod go-w` it if you trust it",
            file.display()
        )),
    }
}

/// Makes the folders that are missing, each in the one before, and gives the last if all are this user's.
fn private(folders: &[PathBuf]) -> Result<Folder, String> {
    let last = folders.last().ok_or("there is no folder")?;
    let told = |error: io::Error| format!("{}: {error}", last.display());
    system::make(last).map_err(told)?;
    let path = last.canonicalize().map_err(told)?;
    let owner = user(&path).map_err(told)?;
    folders.iter().try_for_each(|folder| check(folder, owner))?;
    Ok(Folder { path, owner })
}

/// The user of this process.
fn user(folder: &Path) -> io::Result<u32> {
    if cfg!(target_os = "linux")
        && let Ok(process) = fs::metadata("/proc/self")
    {
        return Ok(system::owner(&process));
    }
    // Who we are is who owns what we make.
    let probe = aside(folder);
    let owner = create(&probe).and_then(|file| file.metadata()).map(|about| system::owner(&about));
    let _ = fs::remove_file(&probe);
    owner
}

/// Refuses a folder, or a link to one, that is not the owner's or that others may write to.
fn check(folder: &Path, owner: u32) -> Result<(), String> {
    let name = folder.display();
    let told = |error: io::Error| format!("{name}: {error}");
    let (named, meant) = (fs::symlink_metadata(folder), fs::metadata(folder));
    let (named, meant) = (named.map_err(told)?, meant.map_err(told)?);
    if system::owner(&named) != owner || system::owner(&meant) != owner {
        return Err(format!(
            "{name} belongs to another user; set ZYX_CACHE_DIR to a folder of yours"
        ));
    }
    if !meant.is_dir() || !system::is_private(&meant, owner) {
        return Err(format!(
            "others may write to {name}; `chmod go-w` it if you trust what is there"
        ));
    }
    Ok(())
}

#[cfg(unix)]
mod system {
    //! Owners and modes of files.

    use std::fs::{DirBuilder, File, Metadata, OpenOptions};
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
    use std::path::Path;

    pub(super) fn make(folder: &Path) -> std::io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)
    }

    pub(super) fn restrict(options: &mut OpenOptions) {
        options.mode(0o600);
    }

    /// A file to read whose times can be set.
    pub(super) fn open(path: &Path) -> std::io::Result<File> {
        File::open(path)
    }

    pub(super) fn owner(about: &Metadata) -> u32 {
        about.uid()
    }

    pub(super) fn is_private(about: &Metadata, owner: u32) -> bool {
        about.uid() == owner && about.mode() & 0o022 == 0
    }

    pub(super) fn is_same(one: &Metadata, other: &Metadata) -> bool {
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    }
}

#[cfg(not(unix))]
mod system {
    //! Folders of a user are private by default here.

    use std::fs::{File, Metadata, OpenOptions};
    use std::path::Path;

    pub(super) fn make(folder: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(folder)
    }

    pub(super) fn restrict(_: &mut OpenOptions) {}

    /// A file to read whose times can be set.
    pub(super) fn open(path: &Path) -> std::io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(windows)]
        {
            use std::os::windows::fs::OpenOptionsExt;
            // FILE_GENERIC_READ and FILE_WRITE_ATTRIBUTES.
            options.access_mode(0x0012_0089 | 0x0100);
        }
        options.open(path)
    }

    pub(super) fn owner(_: &Metadata) -> u32 {
        0
    }

    pub(super) fn is_private(_: &Metadata, _: u32) -> bool {
        true
    }

    pub(super) fn is_same(_: &Metadata, _: &Metadata) -> bool {
        true
    }
}

/// Where caches go, given the environment.
fn directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(dir) = variable("ZYX_CACHE_DIR") {
        return (!dir.is_empty()).then(|| dir.into());
    }
    caches(variable).map(|dir| dir.join("zyx"))
}

/// Where the caches of all programs are, given the environment.
#[doc(hidden)]
pub fn caches(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let local = || if cfg!(windows) { set("LOCALAPPDATA") } else { None };
    set("XDG_CACHE_HOME").or_else(local).or_else(|| Some(set("HOME")?.join(".cache")))
}

/// A number of bytes as in `512M`; `K`, `M` and `G` are powers of 1024.
pub(crate) fn size(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return None,
    };
    digits.trim().parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is not there yet and goes with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let dir = env::temp_dir().join(format!("zyx-disk-cache-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&dir);
            Scratch(dir)
        }

        fn cache(&self, identity: &str) -> DiskCache {
            DiskCache::in_folder(&self.0, identity)
        }

        /// The files, but for those that are being written.
        fn files(&self) -> Vec<PathBuf> {
            let entries = fs::read_dir(&self.0).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_program_comes_back_for_its_key_only() {
        let dir = Scratch::new("key");
        let cache = dir.cache("device 1");
        assert_eq!(cache.load("source"), None);
        assert!(!dir.0.exists(), "looking makes no folder");
        cache.store("source", b"binary");
        assert_eq!(cache.load("source").as_deref(), Some(&b"binary"[..]));
        assert_eq!(cache.load("other"), None);
        assert_eq!(dir.cache("device 2").load("source"), None);
        // Where one part of a key ends and the next begins belongs to it.
        assert_eq!(dir.cache("device 1s").load("ource"), None);
        assert_eq!(dir.cache("device 1").load("source").as_deref(), Some(&b"binary"[..]));
        assert_eq!(dir.files().len(), 1, "nothing is left aside");
    }

    #[test]
    fn damage_truncation_and_other_names_are_ignored_and_mended() {
        let dir = Scratch::new("damage");
        let cache = dir.cache("device");
        cache.store("source", b"binary");
        let path = dir.files().remove(0);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert_eq!(cache.load("source"), None, "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(cache.load("source"), None, "{at} bytes");
        }
        let longer = [&whole[..], b"!"].concat();
        fs::write(&path, longer).unwrap();
        assert_eq!(cache.load("source"), None, "a byte more");
        cache.store("source", b"binary");
        assert_eq!(cache.load("source").as_deref(), Some(&b"binary"[..]));
        // A whole file under another's name.
        cache.store("other", b"another");
        let other = dir.files().into_iter().find(|file| *file != path).unwrap();
        fs::copy(&other, &path).unwrap();
        assert_eq!(cache.load("source"), None);
        cache.store("source", b"binary");
        assert_eq!(cache.load("source").as_deref(), Some(&b"binary"[..]));
    }

    #[test]
    fn what_was_used_least_recently_goes_first() {
        let dir = Scratch::new("limit");
        let cache = DiskCache::at(vec![dir.0.clone()], 10_000, "device");
        let store = |i: u64| {
            cache.store(&format!("source {i}"), &[0; 968]);
            let key = hex(&cache.key(&format!("source {i}")));
            let file = File::options().write(true).open(dir.0.join(key));
            // As if programs had come hours apart.
            let used = SystemTime::now() - HOUR * (100 - i as u32);
            file.map(|file| file.set_modified(used).unwrap()).is_ok()
        };
        assert!((0..10).all(store), "ten programs of a thousand bytes fit");
        assert_eq!(dir.files().len(), 10);
        assert!(cache.load("source 0").is_some(), "the oldest is used");
        let stale = dir.0.join("1-1.tmp");
        File::create(&stale).unwrap().set_modified(SystemTime::now() - HOUR * 2).unwrap();
        store(10);
        let left: Vec<u64> =
            (0..11).filter(|i| cache.load(&format!("source {i}")).is_some()).collect();
        assert_eq!(left, [0, 4, 5, 6, 7, 8, 9, 10]);
        assert!(!stale.exists(), "what nobody finished goes");
        cache.store("large", &[0; 10_000]);
        assert_eq!((cache.load("large"), dir.files().len()), (None, 8));
        // Another process counts what is there. The clock of files may be some milliseconds behind.
        std::thread::sleep(Duration::from_millis(20));
        let other = DiskCache::at(vec![dir.0.clone()], 4000, "device");
        other.store("more", &[0; 968]);
        assert!(dir.files().len() <= 3, "{:?}", dir.files());
        assert!(other.load("more").is_some());
    }

    #[test]
    fn threads_that_store_one_program_leave_it_whole() {
        let dir = Scratch::new("threads");
        let binary = [7; 100];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let cache = dir.cache("device");
                    for _ in 0..500 {
                        cache.store("source", &binary);
                        assert_eq!(cache.load("source").as_deref(), Some(&binary[..]));
                    }
                });
            }
        });
        assert_eq!(dir.files().len(), 1);
    }

    #[cfg(unix)]
    mod owners {
        use super::*;
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

        fn mode(path: &Path) -> u32 {
            fs::metadata(path).unwrap().mode() & 0o7777
        }

        fn set_mode(path: &Path, mode: u32) {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }

        #[test]
        fn folders_and_files_are_their_owners_alone() {
            let dir = Scratch::new("modes");
            let folders = vec![dir.0.join("zyx"), dir.0.join("zyx/backend")];
            let cache = DiskCache::at(folders.clone(), LIMIT, "device");
            cache.store("source", b"binary");
            assert!(cache.load("source").is_some());
            folders.iter().for_each(|folder| assert_eq!(mode(folder), 0o700));
            let file = fs::read_dir(&folders[1]).unwrap().next().unwrap().unwrap().path();
            assert_eq!(mode(&file), 0o600);
        }

        #[test]
        fn folders_that_others_may_write_to_are_refused() {
            for (which, bits) in [(0, 0o770), (0, 0o707), (1, 0o720), (1, 0o777), (1, 0o1777)] {
                let dir = Scratch::new(&format!("open-{which}-{bits:o}"));
                let folders = vec![dir.0.join("zyx"), dir.0.join("zyx/backend")];
                let cache = || DiskCache::at(folders.clone(), LIMIT, "device");
                cache().store("source", b"binary");
                set_mode(&folders[which], bits);
                let refused = cache();
                assert_eq!(refused.load("source"), None, "{bits:o}");
                refused.store("more", b"binary");
                assert_eq!(fs::read_dir(&folders[1]).unwrap().count(), 1, "{bits:o}");
                // Others may look: nothing here is secret.
                set_mode(&folders[which], 0o755);
                assert!(cache().load("source").is_some(), "{bits:o}");
            }
        }

        #[test]
        fn files_of_libraries_are_checked_like_programs() {
            let dir = Scratch::new("libraries");
            let (inner, file) = (dir.0.join("a/b"), dir.0.join("a/b/lib.so"));
            fs::create_dir_all(&inner).unwrap();
            fs::write(&file, b"code").unwrap();
            for folder in [&dir.0, &dir.0.join("a"), &inner] {
                set_mode(folder, 0o755);
            }
            set_mode(&file, 0o755);
            assert_eq!(check_private(&dir.0, &file), Ok(()));
            for (path, was) in [(&file, 0o755), (&inner, 0o755), (&dir.0, 0o755)] {
                set_mode(path, 0o775);
                let refused = check_private(&dir.0, &file).unwrap_err();
                assert!(refused.contains("chmod go-w"), "{refused}");
                set_mode(path, was);
            }
            let link = inner.join("link.so");
            symlink(&file, &link).unwrap();
            assert!(check_private(&dir.0, &link).is_err());
            assert!(check_private(&inner, &dir.0.join("a")).is_err(), "it is not below");
            assert!(check_private(&dir.0, &inner.join("none.so")).is_err());
            // Nothing was left behind.
            assert_eq!(fs::read_dir(&dir.0).unwrap().count(), 1);
        }

        #[cfg(target_os = "linux")]
        #[test]
        fn a_check_writes_nothing() {
            let dir = Scratch::new("read-only");
            dir.cache("device").store("source", b"binary");
            let (file, folder) = (dir.files().remove(0), File::open(&dir.0).unwrap());
            let before = SystemTime::UNIX_EPOCH + HOUR;
            folder.set_modified(before).unwrap();
            assert_eq!(check_private(&dir.0, &file), Ok(()));
            assert!(dir.cache("device").load("source").is_some());
            assert_eq!(folder.metadata().unwrap().modified().unwrap(), before);
        }

        #[test]
        fn what_another_user_owns_is_refused() {
            let dir = Scratch::new("foreign");
            dir.cache("device").store("source", b"binary");
            let owner = fs::metadata(&dir.0).unwrap().uid();
            assert_eq!(check(&dir.0, owner), Ok(()));
            let refused = check(&dir.0, owner + 1).unwrap_err();
            assert!(refused.contains("another user"), "{refused}");
            let folder = Folder { path: dir.0.clone(), owner };
            let name = dir.files().remove(0);
            let name = name.file_name().unwrap().to_str().unwrap();
            assert!(folder.open(name, LIMIT).is_some());
            assert!(Folder { owner: owner + 1, ..folder }.open(name, LIMIT).is_none());
            // A file that others may write to is anybody's.
            set_mode(&dir.0.join(name), 0o666);
            assert_eq!(dir.cache("device").load("source"), None);
            dir.cache("device").store("source", b"binary");
            assert!(dir.cache("device").load("source").is_some());
        }

        #[test]
        fn links_lead_nowhere_else() {
            let (real, link) = (Scratch::new("real"), Scratch::new("link"));
            real.cache("device").store("source", b"binary");
            symlink(&real.0, &link.0).unwrap();
            assert!(link.cache("device").load("source").is_some(), "one's own link to one's own");
            set_mode(&real.0, 0o777);
            assert_eq!(link.cache("device").load("source"), None, "to a folder of everybody's");
            set_mode(&real.0, 0o700);
            fs::remove_file(&link.0).unwrap();
            // A file that is a link, even to a good one.
            let file = real.files().remove(0);
            let moved = real.0.join("moved");
            fs::rename(&file, &moved).unwrap();
            symlink(&moved, &file).unwrap();
            assert_eq!(real.cache("device").load("source"), None);
            real.cache("device").store("source", b"binary");
            assert!(real.cache("device").load("source").is_some());
            assert!(fs::symlink_metadata(&file).unwrap().is_file(), "the link is replaced");
            assert!(fs::read(&moved).unwrap().ends_with(b"binary"), "what it led to is untouched");
        }
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
        let local = with(&[("HOME", "/h"), ("LOCALAPPDATA", "/l")]);
        assert_eq!(local, Some(if cfg!(windows) { "/l/zyx" } else { "/h/.cache/zyx" }.into()));
    }
}
