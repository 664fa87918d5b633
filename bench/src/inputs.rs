//! Where the numbers of a workload come from: a folder of arrays that all peers read, or the
//! library's own generator.
//!
//! With `--data FOLDER`, an input named `w1` of the workload `mlp_train` is the file
//! `mlp_train.w1.npy`, so checksums can be compared between frameworks. Without it, inputs have the
//! same shapes and distributions but other values.

use std::path::PathBuf;
use zyx::{DType, Device, Error, Param, Result, Rng, Tensor};

/// The inputs of one workload on one device.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(crate) device: Device,
    folder: Option<PathBuf>,
    workload: String,
    rng: Rng,
}

impl Inputs {
    pub(crate) fn new(device: &Device, folder: Option<PathBuf>, workload: &str) -> Inputs {
        let (device, workload) = (device.clone(), workload.to_owned());
        Inputs { device, folder, workload, rng: Rng::seed(0) }
    }

    /// The folder of shared arrays, if there is one.
    pub(crate) fn folder(&self) -> Option<&PathBuf> {
        self.folder.as_ref()
    }

    /// The array of this name from the folder, if there is a folder.
    fn stored(&self, name: &str) -> Option<Result<Array>> {
        let folder = self.folder.as_ref()?;
        Some(Array::read(folder.join(format!("{}.{name}.npy", self.workload))))
    }

    fn tensor(
        &mut self,
        name: &str,
        dims: &[usize],
        draw: impl FnOnce(&mut Rng, &Device) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let x = match self.stored(name) {
            Some(array) => array?.tensor(dims, &self.device)?,
            None => draw(&mut self.rng, &self.device)?,
        };
        x.realize()?;
        Ok(x)
    }

    /// Standard normal numbers, computed.
    pub(crate) fn normal(&mut self, name: &str, dims: &[usize]) -> Result<Tensor> {
        self.tensor(name, dims, |rng, device| Tensor::randn(dims, DType::F32, rng, device))
    }

    /// Uniform on `0 .. 1`, computed.
    pub(crate) fn unit(&mut self, name: &str, dims: &[usize]) -> Result<Tensor> {
        self.tensor(name, dims, |rng, device| Tensor::rand(dims, DType::F32, rng, device))
    }

    /// A parameter, uniform in `-1/sqrt(fan_in) .. 1/sqrt(fan_in)`.
    pub(crate) fn uniform(&mut self, name: &str, dims: &[usize], fan_in: usize) -> Result<Param> {
        let k = 1.0 / (fan_in as f64).sqrt();
        let draw = |rng: &mut Rng, device: &Device| {
            Tensor::rand_range(-k, k, dims, DType::F32, rng, device)
        };
        Ok(Param::new(self.tensor(name, dims, draw)?))
    }

    /// A parameter, normal with deviation 0.02.
    pub(crate) fn weight(&mut self, name: &str, dims: &[usize]) -> Result<Param> {
        let draw = |rng: &mut Rng, device: &Device| {
            Tensor::randn(dims, DType::F32, rng, device)?.mul(0.02)
        };
        Ok(Param::new(self.tensor(name, dims, draw)?))
    }

    /// Integers below `below`, on the host.
    pub(crate) fn integers(&mut self, name: &str, n: usize, below: u64) -> Result<Vec<i64>> {
        match self.stored(name) {
            Some(array) => array?.integers(n),
            None => Ok((0..n).map(|_| self.rng.below(below) as i64).collect()),
        }
    }
}

/// A NumPy file: its type, shape and bytes.
struct Array {
    what: String,
    descr: String,
    dims: Vec<usize>,
    bytes: Vec<u8>,
}

impl Array {
    fn read(path: PathBuf) -> Result<Array> {
        let what = path.display().to_string();
        let file = std::fs::read(&path);
        let file = file.map_err(|source| Error::Io { what: what.clone(), source })?;
        Array::parse(&what, &file).ok_or_else(|| Error::Format {
            reason: "not a row-major NumPy file of version 1 to 3".to_owned(),
            what,
        })
    }

    fn parse(what: &str, file: &[u8]) -> Option<Array> {
        let rest = file.strip_prefix(b"\x93NUMPY")?;
        let (version, rest) = (rest.first()?, rest.get(2..)?);
        let (length, rest) = match version {
            1 => (usize::from(u16::from_le_bytes(*rest.first_chunk()?)), rest.get(2..)?),
            _ => (u32::from_le_bytes(*rest.first_chunk()?) as usize, rest.get(4..)?),
        };
        let header = std::str::from_utf8(rest.get(..length)?).ok()?;
        let bytes = rest.get(length..)?.to_vec();
        let value = |key: &str| header.split(&format!("'{key}':")).nth(1).map(str::trim_start);
        let descr = value("descr")?.split('\'').nth(1)?.to_owned();
        if !value("fortran_order")?.starts_with("False") {
            return None;
        }
        let dims = value("shape")?.strip_prefix('(')?.split(')').next()?;
        let dims = dims.split(',').map(str::trim).filter(|d| !d.is_empty());
        let dims = dims.map(|d| d.parse().ok()).collect::<Option<_>>()?;
        Some(Array { what: what.to_owned(), descr, dims, bytes })
    }

    fn wrong(&self, expected: &str) -> Error {
        let reason = format!("holds {} {:?} where {expected} is expected", self.descr, self.dims);
        Error::Format { what: self.what.clone(), reason }
    }

    fn tensor(self, dims: &[usize], device: &Device) -> Result<Tensor> {
        if self.descr != "<f4" || self.dims != dims {
            return Err(self.wrong(&format!("<f4 {dims:?}")));
        }
        Tensor::from_bytes(&self.bytes, DType::F32, dims, device)
    }

    fn integers(self, n: usize) -> Result<Vec<i64>> {
        let found: Vec<i64> = match self.descr.as_str() {
            "<i4" => {
                let chunks = self.bytes.as_chunks::<4>().0.iter();
                chunks.map(|&bytes| i64::from(i32::from_le_bytes(bytes))).collect()
            }
            "<i8" => self
                .bytes
                .as_chunks::<8>()
                .0
                .iter()
                .map(|&bytes| i64::from_le_bytes(bytes))
                .collect(),
            _ => Vec::new(),
        };
        if found.len() == n { Ok(found) } else { Err(self.wrong(&format!("{n} integers"))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numpy_files_are_read() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }     \n";
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend([0; 24]);
        let array = Array::parse("x", &file).expect("a whole file");
        assert_eq!(
            (array.descr.as_str(), &array.dims[..], array.bytes.len()),
            ("<f4", &[2, 3][..], 24)
        );
        assert!(array.integers(6).is_err());
        assert!(Array::parse("x", &file[..20]).is_none());
    }
}
