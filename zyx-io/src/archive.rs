//! Zip archives, read and written by the crate `zip`: what must hold before an archive is given to
//! it, and before what an entry says is believed.
//!
//! The crate takes memory for as many entries as an archive claims, so one that claims more than it
//! has room for is refused. Each entry has bytes of its own: two that share some, which is how small
//! archives unpack to endless ones, are refused, and so is a size that no compression gives.

use crate::damaged;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use zip::read::{ArchiveOffset, Config};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipReadOptions, ZipWriter};
use zyx_core::files::Output;
use zyx_core::hal::{interrupted, is_interrupted};
use zyx_core::{Error, Result};

/// The bytes of an entry's two headers without its name, which is the least that there is of one.
const LEAST_ENTRY: u64 = 30 + 46;

/// The most bytes that a byte of deflated data stands for.
const MOST_RATIO: u64 = 1032;

/// More bytes than stand before the elements of an array.
const MOST_HEADER: u64 = 1 << 17;

/// What the zip format writes where a number has its place elsewhere, in 16 bits.
const ELSEWHERE: u64 = u16::MAX as u64;

/// A file, or bytes in memory: one type, so that the code of the crate is compiled once.
pub(crate) trait Source: Read + Seek {}

impl<T: Read + Seek> Source for T {}

/// An open archive.
pub(crate) struct Archive<'a> {
    /// What errors call it.
    what: String,
    zip: ZipArchive<&'a mut dyn Source>,
    /// Whether a checksum of 0 says that there is none.
    pub(crate) zero_is_none: bool,
}

/// An entry to be read: to its end, where its checksum is compared.
pub(crate) struct Content<'a, 'r> {
    pub(crate) name: String,
    /// The number of bytes that it unpacks to.
    pub(crate) size: usize,
    pub(crate) stored: bool,
    file: zip::read::ZipFile<'a, &'r mut dyn Source>,
}

impl Read for Content<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if is_interrupted() {
            return Err(interrupted());
        }
        self.file.read(out)
    }
}

impl<'a> Archive<'a> {
    /// Opens an archive that `what` names, and checks its directory.
    pub(crate) fn open(reader: &'a mut dyn Source, what: &str) -> Result<Archive<'a>> {
        let fail = |error| refused(what, error);
        let length = reader.seek(SeekFrom::End(0)).map_err(|error| fail(error.into()))?;
        let n = claimed(reader, length).map_err(|error| fail(error.into()))?;
        if n > length / LEAST_ENTRY {
            let reason = format!("its directory claims {n} entries, too many for {length} bytes");
            return Err(damaged(what, reason));
        }
        let config = Config { archive_offset: ArchiveOffset::Known(0) };
        let mut zip = ZipArchive::with_config(config, reader).map_err(fail)?;
        if zip.has_duplicate_names() {
            return Err(damaged(what, "a name is there twice"));
        }
        if zip.has_overlapping_entries().map_err(fail)? {
            return Err(damaged(what, "entries share bytes, or reach into its directory"));
        }
        Ok(Archive { what: what.to_owned(), zip, zero_is_none: false })
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.zip.len()
    }

    /// The bytes that all entries say they unpack to.
    pub(crate) fn size(&self) -> u64 {
        (0..self.len()).map(|i| self.entry_size(i)).fold(0, u64::saturating_add)
    }

    /// The bytes that an entry says it unpacks to.
    pub(crate) fn entry_size(&self, i: usize) -> u64 {
        self.zip.by_index_data(i).map_or(0, |entry| entry.size())
    }

    /// The name of an entry.
    pub(crate) fn name(&self, i: usize) -> Result<String> {
        let name = self.zip.name_for_index(i).unwrap_or(Err(ZipError::FileNotFound));
        Ok(name.map_err(|error| refused(&self.what, error))?.into_owned())
    }

    /// An entry, of which errors say where it is.
    pub(crate) fn content(&mut self, i: usize) -> Result<Content<'_, 'a>> {
        let name = self.name(i)?;
        let within = format!("{}, `{name}`", self.what);
        let fail = |error| refused(&within, error);
        let crc = self.zip.by_index_data(i).map_err(fail)?.crc32();
        let options = ZipReadOptions::new().ignore_crc32(self.zero_is_none && crc == 0);
        let file = self.zip.by_index_with_options(i, options).map_err(fail)?;
        let (packed, size, method) = (file.compressed_size(), file.size(), file.compression());
        let most = match method {
            CompressionMethod::Stored => packed,
            CompressionMethod::Deflated => packed.saturating_mul(MOST_RATIO),
            other => return Err(damaged(&within, format!("it is compressed by {other}"))),
        };
        let fits = usize::try_from(size).ok().filter(|_| size <= most);
        let Some(size) = fits else {
            let reason = format!("{packed} bytes of the archive cannot be {size} bytes");
            return Err(damaged(&within, reason));
        };
        Ok(Content { name, size, stored: method == CompressionMethod::Stored, file })
    }
}

/// An error of the crate: the system's, or about what `what` names.
fn refused(what: &str, error: ZipError) -> Error {
    match error {
        ZipError::Io(source) if source.raw_os_error().is_some() => {
            Error::Io { what: what.to_owned(), source }
        }
        ZipError::Io(error) if error.kind() == ErrorKind::UnexpectedEof => {
            damaged(what, "it ends too early")
        }
        other => damaged(what, other.to_string()),
    }
}

/// The most entries that a record at the end of an archive claims, whichever of them is the one.
fn claimed(reader: &mut dyn Source, length: u64) -> io::Result<u64> {
    // The crate looks for the record in so many bytes, more than it and the longest comment have.
    // Before it are the 20 bytes that say where the record for large archives is.
    let n = length.min(20 + 65_572);
    let mut tail = vec![0; n as usize];
    reader.seek(SeekFrom::Start(length - n))?;
    reader.read_exact(&mut tail)?;
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b));
    let mut most = 0;
    for end in 0..tail.len().saturating_sub(21) {
        if tail[end..end + 4] != *b"PK\x05\x06" {
            continue;
        }
        let mut n = number(&tail[end + 10..end + 12]);
        let locator = end.checked_sub(20).map(|at| &tail[at..end]);
        if let Some(locator) = locator.filter(|locator| locator.starts_with(b"PK\x06\x07")) {
            let (mut record, at) = ([0; 40], number(&locator[8..16]));
            if at <= length.saturating_sub(40) {
                reader.seek(SeekFrom::Start(at))?;
                reader.read_exact(&mut record)?;
            }
            if record.starts_with(b"PK\x06\x06") {
                let large = number(&record[32..40]);
                n = if n == ELSEWHERE { large } else { n.max(large) };
            }
        }
        most = most.max(n);
    }
    Ok(most)
}

/// An archive that is written: stored entries, each with the same time, so that equal contents make
/// equal archives.
pub(crate) struct Writer<'a>(ZipWriter<&'a mut dyn Output>);

impl<'a> Writer<'a> {
    pub(crate) fn new(to: &'a mut dyn Output) -> Writer<'a> {
        Writer(ZipWriter::new(to))
    }

    /// Begins an entry of about so many bytes, and gives what it is written to.
    pub(crate) fn entry(&mut self, name: &str, bytes: usize) -> Result<&mut dyn Write> {
        // Its header takes a few more.
        let large = bytes as u64 >= zip::ZIP64_BYTES_THR - MOST_HEADER;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(large);
        self.0.start_file(name, options).map_err(|error| refused(&format!("`{name}`"), error))?;
        Ok(&mut self.0)
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.0.finish().map(drop).map_err(|error| refused("npz", error))
    }
}
