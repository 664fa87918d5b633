//! The IDX format of the MNIST files: images or labels as bytes.
//!
//! Two zero bytes, the element type (8: unsigned byte), the number of axes, the extents as
//! big-endian 32-bit numbers, then the elements. Described at the MNIST page of Y. LeCun,
//! C. Cortes and C. Burges.

use crate::dataset::{Array, Dataset};
use std::path::Path;
use zyx_core::{Error, Result, files};

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
    /// ```
    /// use zyx::data::Idx;
    /// let file = std::env::temp_dir().join(format!("zyx-idx-doc-{}", std::process::id()));
    /// std::fs::write(&file, [0, 0, 8, 1, 0, 0, 0, 2, 7, 2]).unwrap();
    /// assert_eq!(Idx::read(&file, 1)?.bytes, [7, 2]);
    /// # std::fs::remove_file(file).unwrap();
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the file cannot be read, or is not a whole IDX file of bytes with `rank` axes.
    pub fn read(file: impl AsRef<Path>, rank: usize) -> Result<Idx> {
        let what = file.as_ref().display().to_string();
        let bytes = files::read(file)?;
        Idx::parse(&bytes, rank).map_err(|reason| Error::Format { what, reason })
    }

    /// The contents of a file with `rank` axes, or what is wrong with it.
    ///
    /// ```
    /// use zyx::data::Idx;
    /// // Two zero bytes, bytes (8), one axis, of extent 3.
    /// let labels = Idx::parse(&[0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1], 1)?;
    /// assert_eq!((labels.shape, labels.bytes), (vec![3], vec![7, 2, 1]));
    /// assert!(Idx::parse(&[0, 0, 8, 1, 0, 0, 0, 3, 7], 1).unwrap_err().contains("holds 1"));
    /// # Ok::<(), String>(())
    /// ```
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

/// Images with the class of each, from two IDX files: MNIST and its relatives.
#[derive(Clone, Debug)]
pub struct IdxImages {
    /// Height and width.
    pub size: [usize; 2],
    /// All pixels, image by image, row by row.
    pub pixels: Vec<u8>,
    /// The class of each image.
    pub labels: Vec<u8>,
    /// The value of a full pixel; 255.
    pub white: f32,
}

impl IdxImages {
    /// Reads images and labels.
    ///
    /// ```
    /// use zyx::data::{Dataset, IdxImages};
    /// let folder = std::env::temp_dir();
    /// let of = |name: &str| folder.join(format!("zyx-{name}-doc-{}", std::process::id()));
    /// std::fs::write(of("images"), [0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 255, 0]).unwrap();
    /// std::fs::write(of("labels"), [0, 0, 8, 1, 0, 0, 0, 1, 7]).unwrap();
    /// let digits = IdxImages::read(of("images"), of("labels"))?;
    /// let (image, class) = digits.get(0)?;
    /// assert_eq!((image.data, class), (vec![1.0, 0.0], 7));
    /// # ["images", "labels"].map(|name| std::fs::remove_file(of(name)).unwrap());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Idx::read`], or when there are not as many labels as images.
    pub fn read(images: impl AsRef<Path>, labels: impl AsRef<Path>) -> Result<IdxImages> {
        let Idx { shape, bytes } = Idx::read(images, 3)?;
        let Idx { bytes: classes, .. } = Idx::read(&labels, 1)?;
        if classes.len() != shape[0] {
            let reason = format!("{} labels for {} images", classes.len(), shape[0]);
            return Err(Error::Format { what: labels.as_ref().display().to_string(), reason });
        }
        Ok(IdxImages { size: [shape[1], shape[2]], pixels: bytes, labels: classes, white: 255.0 })
    }
}

impl Dataset for IdxImages {
    /// The image `[1, height, width]` from 0 to 1, and its class.
    type Sample = (Array<f32>, i64);

    fn len(&self) -> usize {
        self.labels.len()
    }

    fn get(&self, index: usize) -> Result<(Array<f32>, i64)> {
        let [height, width] = self.size;
        let n = height * width;
        let Some(&label) = self.labels.get(index) else {
            let reason = format!("image {index} of {}", self.labels.len());
            return Err(Error::Format { what: "IDX images".to_owned(), reason });
        };
        let pixels = &self.pixels[index * n..(index + 1) * n];
        let data = pixels.iter().map(|&byte| f32::from(byte) / self.white).collect();
        Ok((Array { shape: vec![1, height, width], data }, i64::from(label)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
    fn images_are_samples() {
        let folder = std::env::temp_dir().join(format!("zyx-idx-images-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (images, labels) = (folder.join("images"), folder.join("labels"));
        fs::write(&images, file(&[2, 1, 2], &[0, 255, 51, 0])).unwrap();
        fs::write(&labels, file(&[2], &[7, 3])).unwrap();
        let set = IdxImages::read(&images, &labels).unwrap();
        let (image, class) = set.get(1).unwrap();
        assert_eq!((set.len(), class), (2, 3));
        assert_eq!(image, Array { shape: vec![1, 1, 2], data: vec![0.2, 0.0] });
        assert!(set.get(2).is_err());
        fs::write(&labels, file(&[1], &[7])).unwrap();
        let message = IdxImages::read(&images, &labels).unwrap_err().to_string();
        assert!(message.contains("1 labels for 2 images"), "{message}");
        fs::remove_dir_all(&folder).unwrap();
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
