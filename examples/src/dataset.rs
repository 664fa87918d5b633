//! Images of digits with labels: the set that ships with the repository, or MNIST from a folder.

use std::path::Path;
use zyx::data::Idx;
use zyx::{Device, Error, Result, Tensor};

/// Images with the digit each shows.
#[derive(Clone, Debug)]
pub struct Images {
    /// Height and width.
    pub size: [usize; 2],
    /// All pixels, image by image, row by row, from 0 to 1.
    pub pixels: Vec<f32>,
    /// The digit of each image.
    pub labels: Vec<u8>,
}

/// Images to learn from and others to be tested with.
#[derive(Clone, Debug)]
pub struct Digits {
    /// What it is, for a heading.
    pub name: String,
    /// To learn from.
    pub train: Images,
    /// Never shown in training.
    pub test: Images,
}

impl Images {
    /// Images and labels of two IDX files; `white` is the value of a full pixel.
    fn read(folder: &Path, images: &str, labels: &str, white: f32) -> Result<Images> {
        let Idx { shape, bytes } = Idx::read(folder.join(images), 3)?;
        let labels_file = folder.join(labels);
        let Idx { bytes: labels, .. } = Idx::read(&labels_file, 1)?;
        let fail =
            |reason: String| Err(Error::Format { what: labels_file.display().to_string(), reason });
        if labels.len() != shape[0] {
            return fail(format!("{} labels for {} images", labels.len(), shape[0]));
        }
        if let Some(label) = labels.iter().find(|&&label| label > 9) {
            return fail(format!("{label} is not a digit"));
        }
        let pixels = bytes.iter().map(|&byte| f32::from(byte) / white).collect();
        Ok(Images { size: [shape[1], shape[2]], pixels, labels })
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The pixels of one image.
    pub fn image(&self, i: usize) -> &[f32] {
        let n = self.size[0] * self.size[1];
        &self.pixels[i * n..(i + 1) * n]
    }

    /// All images as `[n, 1, height, width]` and all labels as `[n]`.
    ///
    /// # Errors
    /// When the device has no memory left.
    pub fn to_tensors(&self, device: &Device) -> Result<(Tensor, Tensor)> {
        let [height, width] = self.size;
        let pixels = Tensor::from_slice(&self.pixels, [self.len(), 1, height, width], device)?;
        Ok((pixels, Tensor::from_slice(&self.labels, [self.len()], device)?))
    }

    /// The images whose position `keep` accepts.
    fn select(&self, keep: impl Fn(usize) -> bool) -> Images {
        let kept: Vec<usize> = (0..self.len()).filter(|&i| keep(i)).collect();
        Images {
            size: self.size,
            pixels: kept.iter().flat_map(|&i| self.image(i)).copied().collect(),
            labels: kept.iter().map(|&i| self.labels[i]).collect(),
        }
    }
}

impl Digits {
    /// The 1,797 images of 8x8 pixels in `data`; a fixed fifth is held out for the test.
    ///
    /// # Errors
    /// When the files are missing or damaged.
    pub fn shipped() -> Result<Digits> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        let all = Images::read(&folder, "images.idx3-ubyte", "labels.idx1-ubyte", 16.0)?;
        // The digits come in runs of 0 to 9; the shift per ten mixes them evenly.
        let held_out = |i: usize| (i + i / 10) % 5 == 4;
        Ok(Digits {
            name: "UCI optical digits".to_owned(),
            train: all.select(|i| !held_out(i)),
            test: all.select(held_out),
        })
    }

    /// The four unpacked MNIST files of a folder.
    ///
    /// # Errors
    /// When a file is missing or damaged, or training and test images differ in size.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Digits> {
        let folder = folder.as_ref();
        let train =
            Images::read(folder, "train-images-idx3-ubyte", "train-labels-idx1-ubyte", 255.0)?;
        let test = Images::read(folder, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 255.0)?;
        let what = folder.display().to_string();
        if train.size != test.size || train.is_empty() || test.is_empty() {
            let reason = "training and test images must exist and have one size".to_owned();
            return Err(Error::Format { what, reason });
        }
        Ok(Digits { name: what, train, test })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_shipped_set_is_whole() {
        let digits = Digits::shipped().unwrap();
        assert_eq!((digits.train.len(), digits.test.len()), (1437, 360));
        assert_eq!(digits.test.size, [8, 8]);
        assert!(digits.train.pixels.iter().all(|x| (0.0..=1.0).contains(x)));
        for digit in 0..10 {
            let n = |images: &Images| images.labels.iter().filter(|&&l| l == digit).count();
            assert!((30..47).contains(&n(&digits.test)), "{digit}: {}", n(&digits.test));
            assert!((130..155).contains(&n(&digits.train)), "{digit}: {}", n(&digits.train));
        }
    }

    #[test]
    fn a_folder_of_mnist_files_is_read() {
        let folder = std::env::temp_dir().join(format!("zyx-mnist-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let idx = |shape: &[u8], data: &[u8]| {
            let mut file = vec![0, 0, 8, shape.len() as u8];
            shape.iter().for_each(|&extent| file.extend([0, 0, 0, extent]));
            file.extend(data);
            file
        };
        let write = |name: &str, file: Vec<u8>| fs::write(folder.join(name), file).unwrap();
        write("train-images-idx3-ubyte", idx(&[2, 1, 2], &[0, 255, 51, 0]));
        write("train-labels-idx1-ubyte", idx(&[2], &[7, 0]));
        write("t10k-images-idx3-ubyte", idx(&[1, 1, 2], &[255, 255]));
        assert!(matches!(Digits::from_folder(&folder), Err(Error::Io { .. })));
        write("t10k-labels-idx1-ubyte", idx(&[1], &[3]));
        let digits = Digits::from_folder(&folder).unwrap();
        assert_eq!(digits.train.pixels, [0.0, 1.0, 0.2, 0.0]);
        assert_eq!((&digits.train.labels[..], &digits.test.labels[..]), (&[7, 0][..], &[3][..]));
        let device = zyx::device().unwrap();
        let (images, labels) = digits.train.to_tensors(&device).unwrap();
        assert_eq!(images.shape().dims(), [2, 1, 1, 2]);
        assert_eq!(labels.to_vec::<u8>().unwrap(), [7, 0]);
        let complaint = || Digits::from_folder(&folder).unwrap_err().to_string();
        write("t10k-labels-idx1-ubyte", idx(&[2], &[3, 4]));
        assert!(complaint().contains("2 labels for 1 images"));
        write("t10k-labels-idx1-ubyte", idx(&[1], &[10]));
        assert!(complaint().contains("10 is not a digit"));
        write("t10k-labels-idx1-ubyte", idx(&[1], &[3]));
        write("t10k-images-idx3-ubyte", idx(&[1, 2, 1], &[255, 255]));
        assert!(complaint().contains("one size"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
