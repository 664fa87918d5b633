//! As much of the zip format as archives of arrays need: entries stored or deflated, found through
//! the central directory; entries stored when written. (PKWARE's APPNOTE 6.3.)
//!
//! Sizes beyond 32 bits are read (NumPy writes them so whatever the size) and not written. Each
//! entry has bytes of its own: two that share some, which is how small archives unpack to endless
//! ones, are refused, and so is a size that no compression gives.

use crate::reader::Reader;
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;

/// The most bytes that a byte of deflated data stands for.
const MOST_RATIO: usize = 1032;

/// A file of an archive.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    name: &'a [u8],
    method: u16,
    crc: u32,
    packed: usize,
    pub(crate) size: usize,
    header: usize,
}

/// The entries that the central directory lists, in the order of their bytes.
pub(crate) fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, String> {
    const END: &[u8] = b"PK\x05\x06";
    // The end record is the last thing, behind it only a comment of at most 65535 bytes.
    let first = bytes.len().saturating_sub(22 + 65535);
    let tail = &bytes[first..];
    let end = tail.windows(4).rposition(|w| w == END).ok_or("it is not a zip archive")?;
    let mut record = Reader::from(bytes, first + end + 10);
    let mut n = usize::from(record.u16()?);
    record.take(4)?;
    let mut at = record.u32()? as usize;
    if at == u32::MAX as usize || n == usize::from(u16::MAX) {
        (n, at) = large_directory(bytes, first + end)?;
    }
    let mut directory = Reader::from(bytes, at);
    // Each takes at least 46 bytes of the directory.
    if n > directory.rest() / 46 {
        return Err(format!("its directory is too short for {n} entries"));
    }
    let mut entries = Vec::with_capacity(n);
    for _ in 0..n {
        entries.push(entry(&mut directory)?);
    }
    entries.sort_unstable_by_key(|entry| entry.header);
    let mut before: Option<(&Entry<'_>, usize)> = None;
    for entry in &entries {
        let Range { end, .. } = entry.place(bytes)?;
        if let Some((other, end)) = before
            && end > entry.header
        {
            return Err(format!("`{}` and `{}` share bytes", other.name(), entry.name()));
        }
        if entry.header < at && end > at {
            return Err(format!("`{}` reaches into the directory", entry.name()));
        }
        before = Some((entry, end));
    }
    Ok(entries)
}

/// Number of entries and place of the directory from the record for large archives.
fn large_directory(bytes: &[u8], end: usize) -> Result<(usize, usize), String> {
    let locator = end.checked_sub(20).ok_or("the large directory is missing")?;
    let mut locator = Reader::from(bytes, locator);
    if locator.take(4)? != b"PK\x06\x07" {
        return Err("the large directory is missing".to_owned());
    }
    locator.take(4)?;
    let mut record = Reader::from(bytes, locator.count()?);
    record.take(32)?;
    let n = record.count()?;
    record.take(8)?;
    Ok((n, record.count()?))
}

fn entry<'a>(directory: &mut Reader<'a>) -> Result<Entry<'a>, String> {
    if directory.take(4)? != b"PK\x01\x02" {
        return Err("the directory of the archive is damaged".to_owned());
    }
    directory.take(4)?;
    let flags = directory.u16()?;
    let method = directory.u16()?;
    directory.take(4)?;
    let crc = directory.u32()?;
    let (mut packed, mut size) = (directory.u32()? as usize, directory.u32()? as usize);
    let [name, extra, comment] =
        [directory.u16()?, directory.u16()?, directory.u16()?].map(usize::from);
    directory.take(8)?;
    let mut header = directory.u32()? as usize;
    let name = directory.take(name)?;
    let mut extra = Reader::new(directory.take(extra)?);
    directory.take(comment)?;
    if flags & 1 == 1 {
        return Err(format!("`{}` is encrypted", String::from_utf8_lossy(name)));
    }
    while extra.rest() >= 4 {
        let (kind, length) = (extra.u16()?, extra.u16()?);
        let mut field = Reader::new(extra.take(usize::from(length))?);
        if kind != 1 {
            continue;
        }
        for value in [&mut size, &mut packed, &mut header] {
            if *value == u32::MAX as usize {
                *value = field.count()?;
            }
        }
    }
    Ok(Entry { name, method, crc, packed, size, header })
}

impl<'a> Entry<'a> {
    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(self.name).into_owned()
    }

    /// Where its packed content is.
    fn place(&self, bytes: &[u8]) -> Result<Range<usize>, String> {
        let mut local = Reader::from(bytes, self.header);
        if local.take(4)? != b"PK\x03\x04" {
            return Err(format!("`{}` is not where the directory says", self.name()));
        }
        local.take(22)?;
        let skipped = usize::from(local.u16()?) + usize::from(local.u16()?);
        local.take(skipped)?;
        let start = local.position();
        local.take(self.packed)?;
        Ok(start..local.position())
    }

    /// The content, to be read to its end: there it is compared with its checksum.
    pub(crate) fn open(&self, bytes: &'a [u8]) -> Result<Content<'a>, String> {
        let packed = &bytes[self.place(bytes)?];
        let most = match self.method {
            0 => packed.len(),
            8 => packed.len().saturating_mul(MOST_RATIO),
            other => return Err(format!("it is compressed by method {other}")),
        };
        if self.size > most {
            let (n, size) = (packed.len(), self.size);
            return Err(format!("{n} bytes of the archive cannot be {size} bytes"));
        }
        let state = (self.method == 8).then(|| InflateState::new_boxed(DataFormat::Raw));
        Ok(Content { packed, state, left: self.size, sum: u32::MAX, crc: self.crc })
    }
}

/// What an entry holds, unpacked as it is read.
pub(crate) struct Content<'a> {
    packed: &'a [u8],
    state: Option<Box<InflateState>>,
    /// Bytes that are still to come.
    left: usize,
    sum: u32,
    crc: u32,
}

impl Read for Content<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = match &mut self.state {
            None => self.packed.read(out)?,
            Some(state) => unpack(state, &mut self.packed, out)?,
        };
        let damaged = |reason: &str| Err(io::Error::new(ErrorKind::InvalidData, reason.to_owned()));
        self.sum = crc32(self.sum, &out[..n]);
        self.left = match self.left.checked_sub(n) {
            Some(left) => left,
            None => return damaged("it has more bytes than its directory says"),
        };
        match n {
            0 if out.is_empty() => {}
            0 if self.left > 0 => return damaged("it has fewer bytes than its directory says"),
            0 if !self.sum != self.crc => return damaged("its checksum differs"),
            _ => {}
        }
        Ok(n)
    }
}

/// Unpacks until there is something, or the end.
fn unpack(state: &mut InflateState, packed: &mut &[u8], out: &mut [u8]) -> io::Result<usize> {
    loop {
        let made = inflate(state, packed, out, MZFlush::None);
        *packed = &packed[made.bytes_consumed..];
        match made.status {
            Ok(MZStatus::StreamEnd) => return Ok(made.bytes_written),
            Ok(_) | Err(MZError::Buf) if made.bytes_written > 0 => return Ok(made.bytes_written),
            Ok(_) if made.bytes_consumed > 0 => {}
            _ if out.is_empty() => return Ok(0),
            Ok(_) | Err(MZError::Buf) => {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "its packed bytes end early"));
            }
            Err(error) => {
                let reason = format!("it cannot be unpacked: {error:?}");
                return Err(io::Error::new(ErrorKind::InvalidData, reason));
            }
        }
    }
}

/// An archive of stored files.
pub(crate) fn archive(files: &[(String, Vec<u8>)]) -> Result<Vec<u8>, String> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    let fits = |n: usize| u32::try_from(n).map_err(|_| "the archive exceeds 4 GiB".to_owned());
    let count = u16::try_from(files.len()).map_err(|_| "more than 65535 arrays".to_owned())?;
    for (name, content) in files {
        let (header, size) = (fits(bytes.len())?, fits(content.len())?);
        let length = u16::try_from(name.len()).map_err(|_| "a name is too long".to_owned())?;
        // Version 2.0, names in UTF-8, stored, 1 January 1980.
        let mut common = Vec::new();
        for half in [20u16, 0x800, 0, 0, 0x21] {
            common.extend_from_slice(&half.to_le_bytes());
        }
        for word in [!crc32(u32::MAX, content), size, size] {
            common.extend_from_slice(&word.to_le_bytes());
        }
        common.extend_from_slice(&length.to_le_bytes());
        common.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(b"PK\x03\x04");
        bytes.extend_from_slice(&common);
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(content);
        directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        directory.extend_from_slice(&common);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&header.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let (start, length) = (fits(bytes.len())?, fits(directory.len())?);
    bytes.extend_from_slice(&directory);
    bytes.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    bytes.extend_from_slice(&[count.to_le_bytes(), count.to_le_bytes()].concat());
    bytes.extend_from_slice(&[length.to_le_bytes(), start.to_le_bytes()].concat());
    bytes.extend_from_slice(&[0; 2]);
    Ok(bytes)
}

/// The checksum of zip archives so far, inverted: the polynomial 0x04c11db7, bits reversed.
fn crc32(sum: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0u32; 256];
        let mut i = 0;
        while i < 256 {
            let mut c = i as u32;
            let mut bit = 0;
            while bit < 8 {
                c = if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 };
                bit += 1;
            }
            table[i] = c;
            i += 1;
        }
        table
    };
    bytes.iter().fold(sum, |c, &b| TABLE[(c as u8 ^ b) as usize] ^ (c >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(!crc32(crc32(u32::MAX, b"1234"), b"56789"), 0xcbf4_3926);
    }
}
