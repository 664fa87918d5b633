//! Where the numbers of a workload come from: a folder of arrays that all peers read, or the
//! library's own generator.
//!
//! With `--data FOLDER`, an input named `w1` of the workload `mlp_train` is the file
//! `mlp_train.w1.npy`, so checksums can be compared between frameworks. Without it, inputs have the
//! same shapes and distributions but other values.

use std::path::{Path, PathBuf};
use zyx::io::npy;
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

    /// The file of this name, if there is a folder.
    fn stored(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{}.{name}.npy", self.workload)))
    }

    fn tensor(
        &mut self,
        name: &str,
        dims: &[usize],
        draw: impl FnOnce(&mut Rng, &Device) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let x = match self.stored(name) {
            Some(file) => floats(&file, npy::load(&file, &self.device)?, dims)?,
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
            Some(file) => integers(&file, &npy::load(&file, &self.device)?, n),
            None => Ok((0..n).map(|_| self.rng.below(below) as i64).collect()),
        }
    }
}

fn wrong(what: &Path, found: &Tensor, expected: &str) -> Error {
    let (dtype, shape) = (found.dtype(), found.shape());
    let reason = format!("holds {dtype} {shape} where {expected} is expected");
    Error::Format { what: what.display().to_string(), reason }
}

/// What a workload asks for, of a file.
fn floats(what: &Path, found: Tensor, dims: &[usize]) -> Result<Tensor> {
    match found.dtype() {
        DType::F32 if found.shape().dims() == dims => Ok(found),
        _ => Err(wrong(what, &found, &format!("f32 {dims:?}"))),
    }
}

fn integers(what: &Path, found: &Tensor, n: usize) -> Result<Vec<i64>> {
    match found.dtype() {
        DType::I32 | DType::I64 if found.numel() == n => found.cast(DType::I64).to_vec(),
        _ => Err(wrong(what, found, &format!("{n} integers"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_what_a_workload_asks_for() -> Result<()> {
        let folder = std::env::temp_dir().join(format!("zyx-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let device = zyx::device()?;
        let x = Tensor::new([[1.5f32, 2.0, -3.0], [0.0, 4.0, 5.0]], &device)?;
        npy::save(&x, folder.join("job.x.npy"))?;
        npy::save(&Tensor::new([3i32, -1], &device)?, folder.join("job.tokens.npy"))?;
        let mut inputs = Inputs::new(&device, Some(folder.clone()), "job");
        assert_eq!(inputs.normal("x", &[2, 3])?.to_vec::<f32>()?, x.to_vec::<f32>()?);
        assert_eq!(inputs.integers("tokens", 2, 9)?, [3, -1]);
        let complaint = |error: Error| error.to_string();
        let other = complaint(inputs.normal("x", &[3, 2]).unwrap_err());
        assert!(other.contains("job.x.npy") && other.contains("where f32 [3, 2]"), "{other}");
        assert!(complaint(inputs.integers("x", 6, 9).unwrap_err()).contains("6 integers"));
        assert!(complaint(inputs.integers("y", 6, 9).unwrap_err()).contains("job.y.npy"));
        std::fs::remove_dir_all(&folder).unwrap();
        Ok(())
    }
}
