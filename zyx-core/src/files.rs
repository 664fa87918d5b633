//! Files replaced at once: the one way in which anything is saved.
//!
//! A reader sees the file as it was or as it will be, whatever happens meanwhile and however many
//! save it at the same time; after a crash it is one of both. A symbolic link stays one, and what it
//! leads to is replaced; mode and owner of a file that is replaced are kept. Who has a file open when it is
//! replaced goes on reading what it was. Windows allows that on NTFS since version 10; elsewhere a
//! file that stays open for seconds cannot be replaced, which is an error.

use crate::error::{Error, Result};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Links that lead to one another more often than this lead nowhere.
const MOST_LINKS: usize = 40;

/// Replaces a file, or makes it: the bytes go to a file with a name of its own beside it, to the
/// disk, and under its name.
///
/// ```
/// let file = std::env::temp_dir().join(format!("zyx-replace-{}", std::process::id()));
/// zyx_core::files::replace(&file, b"first")?;
/// zyx_core::files::replace(&file, b"second")?;
/// assert_eq!(std::fs::read(&file).unwrap(), b"second");
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`] when it may not be written or there is no room; an earlier file is as it was then.
pub fn replace(file: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let file = file.as_ref();
    place(file, bytes).map_err(|source| Error::Io { what: file.display().to_string(), source })
}

fn place(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = target(file)?;
    let turn = turn();
    let earlier = match OpenOptions::new().write(true).open(&file) {
        Ok(open) => {
            let metadata = open.metadata()?;
            if cfg!(windows) && metadata.permissions().readonly() {
                // Wine opens it all the same for an administrator.
                return Err(ErrorKind::PermissionDenied.into());
            }
            if !metadata.is_file() {
                // A pipe or a device: there is nothing to replace.
                let mut open = open;
                return open.write_all(bytes);
            }
            Some(metadata)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    drop(turn);
    let (temporary, open) = beside(&file, earlier.as_ref())?;
    let written = fill(open, bytes, earlier.as_ref()).and_then(|()| rename(&temporary, &file));
    if let Err(error) = written {
        // The error that matters is the first one.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    // The name is on the disk when its folder is, where a folder can be asked for that.
    if let Some(folder) = folder(&file)
        && let Ok(folder) = File::open(folder)
    {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Held by the thread that has a file open which others may replace, or replaces one. Windows alone has
/// need of it, for other file systems than NTFS: there threads that save one file would stop one another.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    cfg!(windows).then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Gives a file the name of another. Windows refuses that while others have the other open who do not
/// share it, as programs that look for viruses do for moments, or while anybody has it open where the
/// file system is not NTFS: it is tried for some seconds.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(windows)]
    for attempt in 0..100 {
        let turn = turn();
        let renamed = fs::rename(from, to);
        drop(turn);
        // ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION.
        match renamed {
            Err(error) if matches!(error.raw_os_error(), Some(5 | 32)) => {
                std::thread::sleep(std::time::Duration::from_millis(30.min(1 + attempt)));
            }
            other => return other,
        }
    }
    fs::rename(from, to)
}

/// What a path leads to, which need not exist.
fn target(file: &Path) -> io::Result<PathBuf> {
    let mut file = file.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::symlink_metadata(&file) {
            Ok(metadata) if metadata.is_symlink() => {
                let to = fs::read_link(&file)?;
                file = file.parent().unwrap_or(Path::new("")).join(to);
            }
            Ok(_) => return Ok(file),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(file),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn folder(file: &Path) -> Option<&Path> {
    let folder = file.parent()?;
    Some(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
}

/// A new file in the same folder under a name that nobody else has, open to those at most whom the
/// earlier one was open to.
fn beside(file: &Path, earlier: Option<&Metadata>) -> io::Result<(PathBuf, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    if file.file_name().is_none() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "this is no name of a file"));
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if let Some(earlier) = earlier {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        options.mode(earlier.permissions().mode() & 0o777);
    }
    #[cfg(not(unix))]
    let _ = earlier;
    loop {
        let name = format!(".{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let temporary = file.with_file_name(name);
        match options.open(&temporary) {
            Ok(open) => return Ok((temporary, open)),
            // Left by a process that ended, or of one on another machine.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn fill(mut open: File, bytes: &[u8], earlier: Option<&Metadata>) -> io::Result<()> {
    open.write_all(bytes)?;
    if let Some(earlier) = earlier {
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, fchown};
            let own = open.metadata()?;
            if (own.uid(), own.gid()) != (earlier.uid(), earlier.gid()) {
                // Only few may give a file away; for others it is theirs.
                let _ = fchown(&open, Some(earlier.uid()), Some(earlier.gid()));
            }
        }
        open.set_permissions(earlier.permissions())?;
    }
    open.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(unix)]
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::AtomicBool;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("zyx-files-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[cfg(unix)]
    fn mode(file: &Path) -> u32 {
        fs::symlink_metadata(file).unwrap().permissions().mode() & 0o7777
    }

    #[cfg(unix)]
    #[test]
    fn mode_and_links_are_kept() {
        let folder = folder("kept");
        let file = folder.join("file");
        replace(&file, b"1").unwrap();
        for bits in [0o600, 0o640, 0o644, 0o755, 0o660] {
            fs::set_permissions(&file, fs::Permissions::from_mode(bits)).unwrap();
            replace(&file, b"2").unwrap();
            assert_eq!(mode(&file), bits);
        }
        // A link of a link, each relative to where it is; a link to what is not there yet.
        fs::create_dir(folder.join("below")).unwrap();
        symlink("../file", folder.join("below/near")).unwrap();
        symlink("below/near", folder.join("far")).unwrap();
        symlink("new", folder.join("dangling")).unwrap();
        replace(folder.join("far"), b"3").unwrap();
        replace(folder.join("dangling"), b"4").unwrap();
        for link in ["far", "below/near", "dangling"] {
            assert!(fs::symlink_metadata(folder.join(link)).unwrap().is_symlink(), "{link}");
        }
        assert_eq!(fs::read(&file).unwrap(), b"3");
        assert_eq!(fs::read(folder.join("new")).unwrap(), b"4");
        // Nothing else was left behind.
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 5);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_written_leaves_what_was() {
        let folder = folder("refused");
        let refused = |name: &str| {
            let error = replace(folder.join(name), b"1").unwrap_err();
            assert!(matches!(error, Error::Io { .. }), "{name}: {error}");
        };
        fs::create_dir(folder.join("below")).unwrap();
        ["below", "none/file", "below/..", &"x".repeat(300)].into_iter().for_each(refused);
        assert!(replace("", b"1").is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        // A name as long as names may be.
        replace(folder.join("x".repeat(255)), b"1").unwrap();
        #[cfg(unix)]
        {
            symlink("b", folder.join("a")).unwrap();
            symlink("a", folder.join("b")).unwrap();
            refused("a");
            // What is no file is written to.
            replace("/dev/null", b"1").unwrap();
            assert!(!fs::metadata("/dev/null").unwrap().is_file());
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 4);
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn whoever_reads_goes_on_reading_what_it_was() {
        use std::io::Read;
        let folder = folder("open");
        let file = folder.join("file");
        replace(&file, b"first").unwrap();
        let mut open = File::open(&file).unwrap();
        let replaced = replace(&file, b"second");
        // Without NTFS it may be refused, and then nothing has happened.
        let refused = cfg!(windows) && replaced.is_err();
        assert!(refused || replaced.is_ok(), "{replaced:?}");
        let mut bytes = Vec::new();
        open.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, b"first");
        assert_eq!(fs::read(&file).unwrap(), if refused { &b"first"[..] } else { b"second" });
        drop(open);
        replace(&file, b"third").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"third");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    /// Windows takes paths beyond 260 characters in one form only.
    #[test]
    fn paths_may_be_long() {
        let folder = folder("long");
        let deep = (0..5).fold(folder.clone(), |folder, _| folder.join("x".repeat(100)));
        fs::create_dir_all(&deep).unwrap();
        let file = deep.join("file");
        replace(&file, b"1").unwrap();
        replace(&file, b"2").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"2");
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(windows)]
    #[test]
    fn what_may_not_be_written_to_stays() {
        let folder = folder("read-only");
        let file = folder.join("file");
        replace(&file, b"1").unwrap();
        let writable = fs::metadata(&file).unwrap().permissions();
        let mut fixed = writable.clone();
        fixed.set_readonly(true);
        fs::set_permissions(&file, fixed).unwrap();
        assert!(replace(&file, b"2").is_err());
        assert_eq!(fs::read(&file).unwrap(), b"1");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::set_permissions(&file, writable).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn many_save_and_many_read_one_file() {
        let folder = folder("many");
        let file = folder.join("file");
        replace(&file, &[0; 5000]).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (file, done) = (&file, &done);
            let savers: Vec<_> = (1..5u8)
                .map(|i| {
                    scope.spawn(move || {
                        (0..30).for_each(|_| replace(file, &vec![i; 5000 * i as usize]).unwrap())
                    })
                })
                .collect();
            let reader = scope.spawn(move || {
                while !done.load(Relaxed) {
                    let bytes = fs::read(file).unwrap();
                    let whole = 5000 * bytes[0].max(1) as usize;
                    assert!(bytes.len() == whole && bytes.iter().all(|&b| b == bytes[0]));
                    if cfg!(windows) {
                        // Wine replaces no file that is open: leave it a chance.
                        std::thread::sleep(std::time::Duration::from_millis(2));
                    }
                }
            });
            // The reader ends even if a saver failed.
            let saved: Vec<_> = savers.into_iter().map(|saver| saver.join()).collect();
            done.store(true, Relaxed);
            reader.join().unwrap();
            assert!(saved.iter().all(std::thread::Result::is_ok));
        });
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
