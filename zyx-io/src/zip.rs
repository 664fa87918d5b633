//! As much of the zip format as archives of arrays need: entries stored or deflated, found through
//! the central directory; entries stored when written. (PKWARE's APPNOTE 6.3.)
//!
//! Sizes beyond 32 bits are read (NumPy writes them so whatever the size) and not written.

use crate::reader::Reader;

/// A file of an archive.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    method: u16,
    crc: u32,
    packed: usize,
    size: usize,
    header: usize,
}

/// The entries that the central directory lists.
pub(crate) fn entries(bytes: &[u8]) -> Result<Vec<Entry>, String> {
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
    (0..n.min(bytes.len() / 46 + 1)).map(|_| entry(&mut directory)).collect()
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

fn entry(directory: &mut Reader<'_>) -> Result<Entry, String> {
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
    let name = String::from_utf8_lossy(directory.take(name)?).into_owned();
    let mut extra = Reader::new(directory.take(extra)?);
    directory.take(comment)?;
    if flags & 1 == 1 {
        return Err(format!("`{name}` is encrypted"));
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

impl Entry {
    /// The content.
    pub(crate) fn read(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let name = &self.name;
        let mut local = Reader::from(bytes, self.header);
        if local.take(4)? != b"PK\x03\x04" {
            return Err(format!("`{name}` is not where the directory says"));
        }
        local.take(22)?;
        let skipped = usize::from(local.u16()?) + usize::from(local.u16()?);
        local.take(skipped)?;
        let packed = local.take(self.packed)?;
        let content = match self.method {
            0 => packed.to_vec(),
            8 => {
                let inflate = miniz_oxide::inflate::decompress_to_vec_with_limit;
                inflate(packed, self.size).map_err(|error| format!("`{name}`: {error}"))?
            }
            other => return Err(format!("`{name}` is compressed by method {other}")),
        };
        if content.len() != self.size {
            return Err(format!("`{name}` has {} bytes, not {}", content.len(), self.size));
        }
        if crc32(&content) != self.crc {
            return Err(format!("`{name}` is damaged: its checksum differs"));
        }
        Ok(content)
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
        for word in [crc32(content), size, size] {
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

/// The checksum of zip archives: the polynomial 0x04c11db7, bits reversed.
fn crc32(bytes: &[u8]) -> u32 {
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
    !bytes.iter().fold(u32::MAX, |c, &b| TABLE[(c as u8 ^ b) as usize] ^ (c >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
