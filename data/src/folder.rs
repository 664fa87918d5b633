//! [`ImageFolder`]: a folder with a folder of PNG or JPEG files for each class.

use crate::dataset::{Array, Dataset};
use image::imageops::FilterType;
use std::fs;
use std::path::{Path, PathBuf};
use zyx_core::{Error, Result};

/// How the images of an [`ImageFolder`] are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderOptions {
    /// The height and width that images are scaled to; without it they must all have one size.
    pub size: Option<[usize; 2]>,
    /// One channel instead of red, green and blue; false.
    pub grey: bool,
}

impl Default for FolderOptions {
    fn default() -> FolderOptions {
        FolderOptions { size: Some([224, 224]), grey: false }
    }
}

/// Images by class. Files are decoded when they are asked for: by the workers of a
/// [`Loader`](crate::Loader).
#[derive(Clone, Debug)]
pub struct ImageFolder {
    /// The names of the classes: of the folders, in alphabetical order.
    pub classes: Vec<String>,
    /// The files with the number of their class.
    pub files: Vec<(PathBuf, i64)>,
    options: FolderOptions,
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let io = |source| Error::Io { what: folder.display().to_string(), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        paths.push(entry.map_err(io)?.path());
    }
    paths.sort();
    Ok(paths)
}

impl ImageFolder {
    /// The files `folder/class/*.png`, `.jpg` and `.jpeg`.
    ///
    /// ```
    /// use zyx::data::{FolderOptions, ImageFolder};
    /// let error = ImageFolder::read("no/such/folder", FolderOptions::default()).unwrap_err();
    /// assert!(error.to_string().contains("no/such/folder"));
    /// ```
    ///
    /// # Errors
    /// When a folder cannot be read, or there is no image.
    pub fn read(folder: impl AsRef<Path>, options: FolderOptions) -> Result<ImageFolder> {
        let folder = folder.as_ref();
        let (mut classes, mut files) = (Vec::new(), Vec::new());
        for path in sorted(folder)?.into_iter().filter(|path| path.is_dir()) {
            let class = classes.len() as i64;
            let known = |file: &PathBuf| {
                let extension = file.extension().and_then(|e| e.to_str()).unwrap_or("");
                ["png", "jpg", "jpeg"].contains(&extension.to_lowercase().as_str())
            };
            files.extend(sorted(&path)?.into_iter().filter(known).map(|file| (file, class)));
            classes.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
        if files.is_empty() {
            let reason = "has no folder with a PNG or JPEG file".to_owned();
            return Err(Error::Format { what: folder.display().to_string(), reason });
        }
        Ok(ImageFolder { classes, files, options })
    }
}

impl Dataset for ImageFolder {
    /// The image `[3 or 1, height, width]` from 0 to 1, and its class.
    type Sample = (Array<f32>, i64);

    fn len(&self) -> usize {
        self.files.len()
    }

    fn get(&self, index: usize) -> Result<(Array<f32>, i64)> {
        let Some((file, class)) = self.files.get(index) else {
            let reason = format!("image {index} of {}", self.files.len());
            return Err(Error::Format { what: "image folder".to_owned(), reason });
        };
        let what = || file.display().to_string();
        let mut image = match image::open(file) {
            Ok(image) => image,
            Err(image::ImageError::IoError(source)) => {
                return Err(Error::Io { what: what(), source });
            }
            Err(error) => {
                return Err(Error::Format { what: what(), reason: error.to_string() });
            }
        };
        if let Some([height, width]) = self.options.size {
            image = image.resize_exact(width as u32, height as u32, FilterType::Triangle);
        }
        let (height, width) = (image.height() as usize, image.width() as usize);
        let (channels, bytes) = match self.options.grey {
            true => (1, image.into_luma8().into_raw()),
            false => (3, image.into_rgb8().into_raw()),
        };
        let mut data = Vec::with_capacity(bytes.len());
        for channel in 0..channels {
            let plane = bytes.iter().skip(channel).step_by(channels);
            data.extend(plane.map(|&byte| f32::from(byte) / 255.0));
        }
        Ok((Array { shape: vec![channels, height, width], data }, *class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_classes() {
        let root = std::env::temp_dir().join(format!("zyx-folder-{}", std::process::id()));
        for (class, colour) in [("b", [0u8, 255, 51]), ("a", [255, 0, 0])] {
            fs::create_dir_all(root.join(class)).unwrap();
            let image = image::RgbImage::from_pixel(2, 4, image::Rgb(colour));
            image.save(root.join(class).join("x.png")).unwrap();
        }
        fs::write(root.join("a/notes.txt"), "no image").unwrap();
        fs::write(root.join("b/broken.jpg"), "no image").unwrap();
        let plain = FolderOptions { size: None, grey: false };
        let set = ImageFolder::read(&root, plain).unwrap();
        assert_eq!((set.classes.clone(), set.len()), (vec!["a".into(), "b".into()], 3));
        let (image, class) = set.get(2).unwrap();
        assert_eq!((image.shape, class), (vec![3, 4, 2], 1));
        assert_eq!([image.data[0], image.data[8], image.data[16]], [0.0, 1.0, 0.2]);
        assert!(set.get(1).unwrap_err().to_string().contains("broken.jpg"));
        assert!(set.get(3).is_err());
        let small = FolderOptions { size: Some([1, 2]), grey: true };
        assert_eq!(ImageFolder::read(&root, small).unwrap().get(0).unwrap().0.shape, [1, 1, 2]);
        assert!(ImageFolder::read(root.join("a"), plain).is_err());
        fs::remove_dir_all(&root).unwrap();
    }

    /// Each is read or refused. `ZYX_MUTANTS` and `ZYX_FIRST_SEED` as in the tests of `zyx-io`.
    #[test]
    fn images_changed_at_random_cause_no_panic() {
        let number = |name: &str, default: u64| {
            std::env::var(name).map_or(default, |text| text.parse().unwrap())
        };
        let root = std::env::temp_dir().join(format!("zyx-mutants-{}", std::process::id()));
        fs::create_dir_all(root.join("a")).unwrap();
        let options = FolderOptions { size: Some([5, 4]), grey: false };
        let (first, n) = (number("ZYX_FIRST_SEED", 0), number("ZYX_MUTANTS", 100));
        for name in ["x.png", "x.jpg"] {
            let file = root.join("a").join(name);
            let pixel = |x: u32, y: u32| image::Rgb([(x * 20) as u8, (y * 30) as u8, 7]);
            image::RgbImage::from_fn(12, 8, pixel).save(&file).unwrap();
            let whole = fs::read(&file).unwrap();
            for seed in first..first + n {
                let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mut below = |n: usize| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 33) as usize % n
                };
                let mut bytes = whole.clone();
                for _ in 0..=below(4) {
                    let at = below(bytes.len());
                    match below(3) {
                        0 => bytes[at] ^= 1 << below(8),
                        1 => bytes[at] = [0, 0x7f, 0x80, 0xff][below(4)],
                        _ => bytes.truncate(at.max(20)),
                    }
                }
                fs::write(&file, bytes).unwrap();
                let read = || ImageFolder::read(&root, options).and_then(|set| set.get(0));
                assert!(std::panic::catch_unwind(read).is_ok(), "{name}, ZYX_FIRST_SEED={seed}");
            }
            fs::remove_file(file).unwrap();
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
