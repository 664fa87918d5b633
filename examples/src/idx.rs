//! The IDX format of the MNIST files: images or labels as bytes.
//!
//! Two zero bytes, the element type (8: unsigned byte), the number of axes, the extents as
//! big-endian 32-bit numbers, then the elements. Described at the MNIST page of Y. LeCun,
//! C. Cortes and C. Burges.

use std::fs;
use std::path::Path;
use zyx::{Error, Result};

/// Bytes with their extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idx {
    /// The extents, outermost first.
    pub shape: Vec<usize>,
    /// The elements in row-major order.
    pub bytes: Vec<u8>,
}

impl Idx {
    /// Reads a file with `rank` axes.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a whole IDX file of bytes with `rank` axes.
    pub fn read(file: impl AsRef<Path>, rank: usize) -> Result<Idx> {
        let what = file.as_ref().display().to_string();
        match fs::read(file) {
            Ok(bytes) => Idx::parse(&bytes, rank).map_err(|reason| Error::Format { what, reason }),
            Err(source) => Err(Error::Io { what, source }),
        }
    }

    /// The contents of a file with `rank` axes, or what is wrong with it.
    ///
    /// # Errors
    /// A sentence when it is not a whole IDX file of bytes with `rank` axes.
    pub fn parse(file: &[u8], rank: usize) -> Result<Idx, String> {
        let Some((&[a, b, kind, axes], rest)) = file.split_first_chunk::<4>() else {
            return Err(format!("is cut off: {} bytes are less than a header", file.len()));
        };
        if [a, b] == [0x1f, 0x8b] {
            return Err("is compressed; unpack it with gunzip first".to_owned());
        }
        if [a, b] != [0, 0] {
            return Err("is not an IDX file: it does not begin with two zero bytes".to_owned());
        }
        if kind != 8 {
            return Err(format!("holds elements of type {kind:#04x}, not bytes (0x08)"));
        }
        if usize::from(axes) != rank {
            return Err(format!("has {axes} axes, not {rank}"));
        }
        let Some((extents, bytes)) = rest.split_at_checked(4 * rank) else {
            return Err("is cut off in the header".to_owned());
        };
        let extent = |chunk: &[u8]| chunk.iter().fold(0, |n, &byte| n << 8 | usize::from(byte));
        let shape: Vec<usize> = extents.chunks_exact(4).map(extent).collect();
        let n = shape.iter().try_fold(1usize, |n, &extent| n.checked_mul(extent));
        if n != Some(bytes.len()) {
            return Err(format!("announces {shape:?} elements but holds {}", bytes.len()));
        }
        Ok(Idx { shape, bytes: bytes.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(shape: &[u32], data: &[u8]) -> Vec<u8> {
        let mut file = vec![0, 0, 8, shape.len() as u8];
        shape.iter().for_each(|extent| file.extend(extent.to_be_bytes()));
        file.extend(data);
        file
    }

    #[test]
    fn a_small_file_is_read() {
        let path = std::env::temp_dir().join(format!("zyx-idx-{}", std::process::id()));
        fs::write(&path, file(&[2, 1, 3], &[1, 2, 3, 4, 5, 255])).unwrap();
        let idx = Idx::read(&path, 3).unwrap();
        assert_eq!(idx, Idx { shape: vec![2, 1, 3], bytes: vec![1, 2, 3, 4, 5, 255] });
        assert!(matches!(Idx::read(&path, 1), Err(Error::Format { .. })));
        fs::remove_file(&path).unwrap();
        assert!(matches!(Idx::read(&path, 3), Err(Error::Io { .. })));
    }

    #[test]
    fn damage_is_named() {
        let good = file(&[3], &[1, 2, 3]);
        let complaint = |bytes: &[u8], rank| Idx::parse(bytes, rank).unwrap_err();
        for length in 0..good.len() {
            let message = complaint(&good[..length], 1);
            assert!(message.contains("cut off") || message.contains("announces"), "{message}");
        }
        assert!(complaint(&[0x1f, 0x8b, 8, 0], 1).contains("gunzip"));
        assert!(complaint(b"PK\x03\x04", 1).contains("not an IDX"));
        assert!(complaint(&[0, 0, 0x0d, 1, 0, 0, 0, 0], 1).contains("type 0x0d"));
        assert!(complaint(&good, 3).contains("1 axes, not 3"));
        assert!(complaint(&[&good[..], &[4]].concat(), 1).contains("holds 4"));
        assert!(complaint(&file(&[u32::MAX, u32::MAX, u32::MAX], &[]), 3).contains("announces"));
    }
}
