//! Little-endian numbers and strings from bytes, each checked against the end.

/// A position in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// The same bytes, from a place on.
    pub(crate) fn from(bytes: &'a [u8], at: usize) -> Reader<'a> {
        Reader { bytes, at }
    }

    pub(crate) fn at(&self, at: usize) -> Reader<'a> {
        Reader { bytes: self.bytes, at }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Bytes that are left.
    pub(crate) fn rest(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(n).filter(|&end| end <= self.bytes.len());
        let Some(end) = end else {
            return Err(format!("it ends at byte {}, {n} more are needed", self.bytes.len()));
        };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, String> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, String> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of things as which it has to fit into memory.
    pub(crate) fn count(&mut self) -> Result<usize, String> {
        let n = self.u64()?;
        usize::try_from(n).map_err(|_| format!("{n} is too large a number"))
    }

    /// A string with its length before it.
    pub(crate) fn text(&mut self) -> Result<&'a str, String> {
        let n = self.count()?;
        std::str::from_utf8(self.take(n)?).map_err(|_| "a string is not UTF-8".to_owned())
    }
}
