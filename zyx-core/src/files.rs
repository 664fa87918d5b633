//! Files replaced at once: the one way in which anything is saved.
//!
//! A reader sees the file as it was or as it will be, whatever happens meanwhile and however many
//! save it at the same time; after a crash it is one of both. A symbolic link stays one, and what it
//! leads to is replaced; mode and owner of a file that is replaced are kept. Who has a file open when it is
//! replaced goes on reading what it was. What is written goes to the disk as it comes ([`write()`]), so a file
//! takes no memory of its size. Windows allows that on NTFS since version 10; elsewhere a
//! file that stays open for seconds cannot be replaced, which is an error.

mod input;

use input::Written;
pub use input::{Input, read};

use crate::error::{Error, Result};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Cursor, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Minimum age of a temporary file that is removed, so that its writer has had time to lock it.
const LEFT_BEHIND: Duration = Duration::from_secs(60);

/// Buffer of a file that is written, in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// Links that lead to one another more often than this lead nowhere.
const MOST_LINKS: usize = 40;

/// Replaces a file, or makes it: the bytes go to a file with a name of its own beside it, to the
/// disk, and under its name.
///
/// ```
/// let file = std::env::temp_dir().join(format!("zyx-replace-{}", std::process::id()));
/// zyx::internals::files::replace(&file, b"first")?;
/// zyx::internals::files::replace(&file, b"second")?;
/// assert_eq!(std::fs::read(&file).unwrap(), b"second");
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`] when it may not be written, there is no room, or the user interrupts; an earlier file is as it was
/// then.
pub fn replace(file: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let file = file.as_ref();
    let io = |source| failed(file, source);
    write(file, &mut |to| to.write_all(bytes).map_err(io))
}

/// A file that is written, or memory in its place.
pub trait Output: Write + Seek {}

impl<T: Write + Seek> Output for T {}

/// As [`replace`], of the bytes that a function writes.
///
/// ```
/// use zyx::internals::files;
/// use zyx::Error;
/// let file = std::env::temp_dir().join(format!("zyx-write-{}", std::process::id()));
/// let io = |source| Error::Io { what: "numbers".to_owned(), source };
/// files::write(&file, &mut |to| (0..9).try_for_each(|n| writeln!(to, "{n}")).map_err(io))?;
/// assert_eq!(std::fs::read(&file).unwrap().len(), 18);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Those of the function, and as [`replace`]; an earlier file is as it was then.
pub fn write(
    file: impl AsRef<Path>,
    content: &mut dyn FnMut(&mut dyn Output) -> Result<()>,
) -> Result<()> {
    let file = file.as_ref();
    let io = |source| failed(file, source);
    let target = target(file).map_err(io)?;
    let turn = turn();
    let earlier = match input::open_to_write(&target) {
        Ok(mut open) => {
            let metadata = open.file.metadata().map_err(io)?;
            if cfg!(windows) && metadata.permissions().readonly() {
                // Wine opens it all the same for an administrator.
                return Err(io(ErrorKind::PermissionDenied.into()));
            }
            if !metadata.is_file() {
                // A pipe or a device: there is nothing to replace, and no place to go back to.
                let bytes = in_memory(content)?;
                return open.write_all(&bytes).map_err(io);
            }
            Some(metadata)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(io(error)),
    };
    drop(turn);
    let (temporary, open) = beside(&target, earlier.as_ref()).map_err(io)?;
    remove_left_behind(&temporary, &open);
    let mut open = BufWriter::with_capacity(BUFFER_BYTES, Written { file: open });
    let written = content(&mut open).and_then(|()| {
        let open = open.into_inner().map_err(|error| error.into_error());
        let finished = open.and_then(|open| finish(open.file, earlier.as_ref()));
        finished.and_then(|()| rename(&temporary, &target)).map_err(io)
    });
    if written.is_err() {
        // The error that matters is the first one.
        let _ = fs::remove_file(&temporary);
        return written;
    }
    // The name is on the disk when its folder is, where a folder can be asked for that.
    if let Some(folder) = folder(&target)
        && let Ok(folder) = File::open(folder)
    {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn failed(file: &Path, source: io::Error) -> Error {
    Error::Io { what: file.display().to_string(), source }
}

/// The bytes that a function writes.
///
/// ```
/// use zyx::internals::files;
/// use zyx::Error;
/// let io = |source| Error::Io { what: "numbers".to_owned(), source };
/// assert_eq!(files::in_memory(&mut |to| to.write_all(&[1, 2]).map_err(io))?, [1, 2]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Those of the function; when memory is short, [`Error::Io`] of the kind [`ErrorKind::OutOfMemory`].
pub fn in_memory(content: &mut dyn FnMut(&mut dyn Output) -> Result<()>) -> Result<Vec<u8>> {
    let mut memory = Memory(Cursor::default());
    content(&mut memory)?;
    Ok(memory.0.into_inner())
}

/// A buffer in memory whose growth can fail.
struct Memory(Cursor<Vec<u8>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.get_mut().try_reserve(bytes.len())?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Memory {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
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
                std::thread::sleep(Duration::from_millis(30.min(1 + attempt)));
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
            Ok(open) => {
                // The lock marks the file as being written until it is closed. Some file systems have no locks.
                let _ = open.try_lock();
                return Ok((temporary, open));
            }
            // Left by a process that ended, or of one on another machine.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Removes temporary files that are older than `LEFT_BEHIND` and that no process has locked: their writers
/// ended before the files were complete. Ages are relative to `own`, which was just made: the clock of a file
/// server may differ from this machine's.
fn remove_left_behind(own: &Path, open: &File) {
    let (Some(folder), Ok(now)) = (folder(own), open.metadata().and_then(|own| own.modified()))
    else {
        return;
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_old = |then| now.duration_since(then).is_ok_and(|age| age >= LEFT_BEHIND);
        if !is_temporary(&entry.file_name().to_string_lossy())
            || !entry.metadata().is_ok_and(|it| it.is_file() && it.modified().is_ok_and(is_old))
        {
            continue;
        }
        if let Ok(left) = OpenOptions::new().write(true).open(&path)
            && left.try_lock().is_ok()
        {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Whether [`beside`] gives such names.
fn is_temporary(name: &str) -> bool {
    let numbers = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".tmp"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    numbers.and_then(|it| it.split_once('-')).is_some_and(|(a, b)| is_number(a) && is_number(b))
}

fn finish(open: File, earlier: Option<&Metadata>) -> io::Result<()> {
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
    fn what_processes_left_that_ended_is_removed() {
        let folder = folder("left");
        let make = |name: &str, age: u64| {
            let file = File::create(folder.join(name)).unwrap();
            let then = std::time::SystemTime::now() - Duration::from_secs(age);
            file.set_modified(then).unwrap();
            file
        };
        let written = make(".7-1.tmp", 1000);
        written.try_lock().unwrap();
        let stay = [".7-2.tmp", ".a-3.tmp", "7-4.tmp", ".7-5.tmpx", ".7.tmp"];
        drop(stay.map(|name| make(name, if name == stay[0] { 5 } else { 1000 })));
        drop([make(".7-6.tmp", 1000), make(".123456-0.tmp", 100)]);
        fs::create_dir(folder.join(".7-8.tmp")).unwrap();
        replace(folder.join("file"), b"1").unwrap();
        let left = || {
            let names = fs::read_dir(&folder).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        let mut expected = [&stay[..], &[".7-1.tmp", ".7-8.tmp", "file"]].concat();
        expected.sort();
        assert_eq!(left(), expected);
        // Its writer ends.
        drop(written);
        replace(folder.join("file"), b"2").unwrap();
        expected.retain(|name| *name != ".7-1.tmp");
        assert_eq!(left(), expected);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn content_that_fails_leaves_what_was() {
        let folder = folder("fails");
        let file = folder.join("file");
        replace(&file, b"first").unwrap();
        let refuse = |to: &mut dyn Output| {
            to.write_all(&[1; 200_000]).unwrap();
            Err(Error::Format { what: "content".to_owned(), reason: "as asked".to_owned() })
        };
        assert!(matches!(write(&file, &mut { refuse }), Err(Error::Format { .. })));
        assert_eq!(fs::read(&file).unwrap(), b"first");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
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
                        std::thread::sleep(Duration::from_millis(2));
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
