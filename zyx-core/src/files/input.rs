//! Files that are read and written: a user's interrupt ends long work and what waits for a pipe.

use crate::error::{Error, Result};
use crate::hal::{host_room, interrupted, is_interrupted};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

/// Time between two looks at a pipe without data.
const POLL: Duration = Duration::from_millis(5);

/// The flag of `open` for reads that do not wait; 0 on systems where its value is not known here.
const O_NONBLOCK: i32 = if cfg!(any(target_os = "linux", target_os = "android")) {
    0x800
} else if cfg!(any(target_vendor = "apple", target_os = "freebsd")) {
    4
} else {
    0
};

/// An open file. Reading ends with an error when the user interrupts
/// ([`is_interrupted`](crate::hal::is_interrupted)), also while a pipe is waited for.
#[derive(Debug)]
pub struct Input {
    file: File,
    length: u64,
    /// Of a pipe, whether a writer has been seen.
    pipe: Option<bool>,
}

impl Input {
    /// Opens a file. Of a pipe that has no writer yet, reading waits for one.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Input> {
        let mut options = OpenOptions::new();
        options.read(true);
        let is_pipe = do_not_wait(&mut options, path.as_ref())?;
        let file = options.open(path)?;
        let length = file.metadata()?.len();
        Ok(Input { file, length, pipe: is_pipe.then_some(false) })
    }

    /// How many bytes it had when it was opened; 0 of a pipe.
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl Read for Input {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            if is_interrupted() {
                return Err(interrupted());
            }
            let found = self.file.read(to);
            let Some(is_known) = &mut self.pipe else { return found };
            match found {
                // There is a writer, and no data yet.
                Err(error) if error.kind() == ErrorKind::WouldBlock => *is_known = true,
                // Without a writer a pipe is at its end before its start.
                Ok(0) if !*is_known && !to.is_empty() => {}
                found => {
                    *is_known = true;
                    return found;
                }
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Seek for Input {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Sets options under which opening, reading and writing a pipe do not wait. Returns whether it is a pipe.
fn do_not_wait(options: &mut OpenOptions, path: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
        let is_pipe = O_NONBLOCK != 0 && path.metadata()?.file_type().is_fifo();
        options.custom_flags(if is_pipe { O_NONBLOCK } else { 0 });
        Ok(is_pipe)
    }
    #[cfg(not(unix))]
    {
        let _ = (options, path);
        Ok(O_NONBLOCK != 0)
    }
}

/// Opens a file that exists. Of a pipe that has no reader yet, waits for one.
pub(super) fn open_to_write(path: &Path) -> io::Result<Written> {
    /// The error of Unix for a pipe without a reader.
    const ENXIO: i32 = 6;
    let mut options = OpenOptions::new();
    options.write(true);
    let is_pipe = do_not_wait(&mut options, path)?;
    loop {
        match options.open(path) {
            Err(error) if is_pipe && error.raw_os_error() == Some(ENXIO) => wait()?,
            file => return Ok(Written { file: file? }),
        }
    }
}

/// A file or a pipe that is written until the user interrupts.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) file: File,
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            if is_interrupted() {
                return Err(interrupted());
            }
            match self.file.write(bytes) {
                // The pipe is full.
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait()?,
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Written {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Waits until a pipe may have changed.
fn wait() -> io::Result<()> {
    std::thread::sleep(POLL);
    if is_interrupted() { Err(interrupted()) } else { Ok(()) }
}

/// The bytes of a file or of all that comes through a pipe.
///
/// ```
/// let file = std::env::temp_dir().join(format!("zyx-read-{}", std::process::id()));
/// std::fs::write(&file, b"bytes").unwrap();
/// assert_eq!(zyx::internals::files::read(&file)?, b"bytes");
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When it cannot be read, memory is short, or the user interrupts.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let io = |source| Error::Io { what: path.display().to_string(), source };
    let mut input = Input::open(path).map_err(io)?;
    // One more, so that the end is found without growing.
    let mut bytes = host_room(usize::try_from(input.length()).map_or(usize::MAX, |n| n + 1))?;
    input.read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::hal::set_interrupt;
    use std::os::unix::fs::OpenOptionsExt;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    static STOP: AtomicBool = AtomicBool::new(false);

    #[test]
    fn pipes_are_read_to_their_end_and_interrupted() {
        let pipe = std::env::temp_dir().join(format!("zyx-pipe-{}", std::process::id()));
        let _ = std::fs::remove_file(&pipe);
        if !Command::new("mkfifo").arg(&pipe).status().is_ok_and(|made| made.success()) {
            return println!("skipped: no mkfifo");
        }
        let write = |parts: &'static [&'static [u8]]| {
            let pipe = pipe.clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                let mut file = OpenOptions::new().write(true).open(pipe).unwrap();
                for part in parts {
                    file.write_all(part).unwrap();
                    std::thread::sleep(Duration::from_millis(50));
                }
            })
        };
        let writer = write(&[b"ab", b"cd"]);
        assert_eq!(read(&pipe).unwrap(), b"abcd");
        writer.join().unwrap();
        // Other tests of this process run on other threads.
        thread_local! {
            static WAITS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
        }
        set_interrupt(|| WAITS.get() && STOP.load(Relaxed));
        WAITS.set(true);
        let stop = std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            STOP.store(true, Relaxed);
        });
        let started = std::time::Instant::now();
        assert!(read(&pipe).unwrap_err().to_string().contains("interrupted"));
        assert!(started.elapsed() < Duration::from_secs(1));
        stop.join().unwrap();
        // Saving waits for a reader, and for room; both are interrupted.
        let save = |n: usize| crate::files::replace(&pipe, &vec![1; n]);
        assert!(save(3).unwrap_err().to_string().contains("interrupted"));
        let reader = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(&pipe).unwrap();
        assert!(save(1 << 20).unwrap_err().to_string().contains("interrupted"));
        drop(reader);
        STOP.store(false, Relaxed);
        std::thread::scope(|scope| {
            let whole = scope.spawn(|| read(&pipe));
            save(1 << 20).unwrap();
            assert_eq!(whole.join().unwrap().unwrap().len(), 1 << 20);
        });
        WAITS.set(false);
        std::fs::remove_file(pipe).unwrap();
    }
}
