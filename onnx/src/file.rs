//! A model's file, of which large fields are read when they are needed.
//!
//! Decoding passes over the bytes of large fields, the data of tensors, and keeps where they lie ([`Contents`]). Each
//! is then read piece by piece to the memory of its device, several at a time. The file is not mapped: its tensors
//! lie at any offset, so they would be copied all the same to be aligned, and a file that another process cuts off would
//! end the program.

use prost::bytes::{Buf, Bytes};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use zyx_core::hal::{interrupted, is_interrupted};

/// Fields of more bytes than this stay in the file.
const LARGE: usize = 64 << 10;

/// Steps of decoding between two looks for an interrupt.
const STEPS_PER_LOOK: usize = 1 << 12;

/// A file that is decoded from its start.
pub(crate) struct FileBuf {
    reader: BufReader<File>,
    position: u64,
    left: usize,
    /// Steps of decoding.
    steps: usize,
    /// The first error of reading; zeros are decoded behind it.
    error: Option<Error>,
    large: HashMap<usize, (Bytes, u64, usize)>,
}

/// What the large fields of a decoded file hold; nothing for what was decoded from memory.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    file: Option<Arc<Mutex<File>>>,
    /// For a field's place in memory: the field, and where in the file its bytes lie. The field is kept, so nothing
    /// else has its place.
    large: HashMap<usize, (Bytes, u64, usize)>,
}

/// The bytes of a field.
pub(crate) enum Content {
    Memory(Bytes),
    File(Part),
}

/// A file that several tensors lie in.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    file: Arc<Mutex<File>>,
    pub(crate) length: u64,
}

impl Open {
    pub(crate) fn new(path: &Path) -> Result<Open> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Open { file: Arc::new(Mutex::new(file)), length })
    }

    /// `length` bytes of it.
    pub(crate) fn part(&self, position: u64, length: usize) -> Content {
        Content::File(Part { file: self.file.clone(), position, left: length })
    }
}

/// Bytes of a file, not read yet.
pub(crate) struct Part {
    file: Arc<Mutex<File>>,
    position: u64,
    left: usize,
}

impl FileBuf {
    /// `length` bytes of a file.
    pub(crate) fn new(file: File, length: usize) -> FileBuf {
        let large = HashMap::new();
        let reader = BufReader::new(file);
        let mut buf = FileBuf { reader, position: 0, left: length, steps: 0, error: None, large };
        buf.fill();
        buf
    }

    /// What was decoded.
    ///
    /// # Errors
    /// When reading failed: then what was decoded means nothing.
    pub(crate) fn finish(self) -> Result<Contents> {
        let file = Some(Arc::new(Mutex::new(self.reader.into_inner())));
        self.error.map_or(Ok(Contents { file, large: self.large }), Err)
    }

    fn fill(&mut self) {
        if self.left == 0 || self.error.is_some() {
            return;
        }
        match self.reader.fill_buf() {
            Ok([]) => self.error = Some(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) => self.error = Some(error),
        }
    }
}

impl Buf for FileBuf {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        static ZEROS: [u8; 4096] = [0; 4096];
        let chunk = if self.error.is_some() { &ZEROS } else { self.reader.buffer() };
        &chunk[..chunk.len().min(self.left)]
    }

    fn advance(&mut self, n: usize) {
        assert!(n <= self.left, "invariant: decoding asks for what remains");
        self.left -= n;
        self.position += n as u64;
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_PER_LOOK) && is_interrupted() {
            self.error = Some(interrupted());
        }
        if self.error.is_none()
            && let Err(error) = self.reader.seek_relative(n as i64)
        {
            self.error = Some(error);
        }
        self.fill();
    }

    fn copy_to_bytes(&mut self, n: usize) -> Bytes {
        if n > LARGE {
            let field = Bytes::from(vec![0]);
            let place = (field.clone(), self.position, n);
            self.large.insert(field.as_ptr().addr(), place);
            self.advance(n);
            return field;
        }
        let mut bytes = vec![0; n];
        self.copy_to_slice(&mut bytes);
        bytes.into()
    }
}

impl Contents {
    /// The bytes of a field of the message that was decoded.
    pub(crate) fn of(&self, field: &Bytes) -> Content {
        match (self.large.get(&field.as_ptr().addr()), &self.file) {
            (Some(&(_, position, left)), Some(file)) => {
                Content::File(Part { file: file.clone(), position, left })
            }
            _ => Content::Memory(field.clone()),
        }
    }
}

impl Content {
    pub(crate) fn len(&self) -> usize {
        match self {
            Content::Memory(bytes) => bytes.len(),
            Content::File(part) => part.left,
        }
    }

    /// All of them, in memory.
    pub(crate) fn bytes(self) -> Result<Bytes> {
        match self {
            Content::Memory(bytes) => Ok(bytes),
            Content::File(mut part) => {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(part.left)?;
                bytes.resize(part.left, 0);
                part.read_exact(&mut bytes)?;
                Ok(bytes.into())
            }
        }
    }
}

impl Read for Part {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        if is_interrupted() {
            return Err(interrupted());
        }
        let most = to.len().min(self.left);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.position))?;
        let n = file.read(&mut to[..most])?;
        drop(file);
        self.position += n as u64;
        self.left -= n;
        Ok(n)
    }
}
