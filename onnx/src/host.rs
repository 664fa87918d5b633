//! Few numbers that the host knows: shapes, and what models compute from them.

use zyx_core::ops::{BinaryOp, UnaryOp};
use zyx_core::{DType, Device, Result, Scalar, Shape, Tensor};

/// A small array of numbers on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    shape: Vec<usize>,
    dtype: DType,
    numbers: Vec<Scalar>,
}

impl Host {
    /// More elements than this are a tensor's.
    pub(crate) const MOST: usize = 1024;

    /// `numbers` are as many as `shape` says, and of that dtype.
    pub(crate) fn new(shape: impl Into<Vec<usize>>, dtype: DType, numbers: Vec<Scalar>) -> Host {
        Host { shape: shape.into(), dtype, numbers }
    }

    /// A vector of `i64`.
    pub(crate) fn vector(numbers: impl IntoIterator<Item = usize>) -> Host {
        let numbers: Vec<_> = numbers.into_iter().map(|n| Scalar::from(n as i64)).collect();
        Host::new([numbers.len()], DType::I64, numbers)
    }

    /// Elements of a tensor as bytes.
    pub(crate) fn from_bytes(bytes: &[u8], dtype: DType, shape: &[usize]) -> Host {
        Host::new(shape, dtype, Scalar::read_all(dtype, bytes))
    }

    /// The numbers of a tensor, which is computed for that.
    pub(crate) fn read(tensor: &Tensor) -> Result<Host> {
        Ok(Host::from_bytes(&tensor.to_bytes()?, tensor.dtype(), tensor.shape()))
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// What the numbers are as elements of a tensor.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The numbers in rows, each of [`dtype`](Host::dtype).
    pub fn numbers(&self) -> &[Scalar] {
        &self.numbers
    }

    /// Whether it has numbers and all are the same.
    pub(crate) fn is_one_number(&self) -> bool {
        let first = self.numbers.first();
        first.is_some_and(|first| self.numbers.iter().all(|x| x.bits() == first.bits()))
    }

    /// As integers; floats are truncated.
    pub(crate) fn ints(&self) -> Vec<i64> {
        self.numbers.iter().map(|x| x.to_i64()).collect()
    }

    /// As floats.
    pub(crate) fn floats(&self) -> Vec<f64> {
        self.numbers.iter().map(|x| x.to_f64()).collect()
    }

    /// A tensor of the numbers: a constant of the graph where all are the same.
    ///
    /// # Errors
    /// When the device is out of memory.
    pub fn tensor(&self, device: &Device) -> Result<Tensor> {
        let shape = Shape::from(self.shape.as_slice());
        if let (Some(&first), true) = (self.numbers.first(), self.is_one_number()) {
            return Ok(match self.dtype.is_float() {
                true => Tensor::full(shape, first.to_f64(), device).cast(self.dtype),
                false => Tensor::full(shape, first.to_i64(), device).cast(self.dtype),
            });
        }
        let size = self.dtype.size();
        let bytes = self.numbers.iter().flat_map(|x| x.bits().to_le_bytes().into_iter().take(size));
        Tensor::from_bytes(&bytes.collect::<Vec<u8>>(), self.dtype, shape, device)
    }

    /// In another dtype, by the rules of tensors.
    pub(crate) fn cast(&self, dtype: DType) -> Host {
        let numbers = self.numbers.iter().map(|x| x.cast(dtype)).collect();
        Host::new(self.shape.clone(), dtype, numbers)
    }

    /// The same numbers in another shape of as many.
    pub(crate) fn reshape(&self, shape: Vec<usize>) -> Host {
        Host::new(shape, self.dtype, self.numbers.clone())
    }

    /// The elements at these places of the flat array, in another shape.
    pub(crate) fn pick(&self, shape: Vec<usize>, places: impl IntoIterator<Item = usize>) -> Host {
        let numbers = places.into_iter().map(|at| self.numbers[at]).collect();
        Host::new(shape, self.dtype, numbers)
    }

    /// Repeated to a shape that this one's broadcasts to.
    pub(crate) fn broadcast(&self, shape: &[usize]) -> Host {
        let ahead = shape.len() - self.shape.len();
        let own = Shape::from(self.shape.as_slice()).strides();
        let places = indices(shape).map(|at| {
            let pairs = at[ahead..].iter().zip(&self.shape).zip(&own);
            pairs.map(|((&i, &n), &stride)| if n == 1 { 0 } else { i * stride }).sum()
        });
        self.pick(shape.to_vec(), places.collect::<Vec<usize>>())
    }

    /// One op on each number, if it is defined on the dtype.
    pub(crate) fn unary(&self, op: UnaryOp) -> Option<Host> {
        op.domain().contains(self.dtype).then(|| {
            let numbers = self.numbers.iter().map(|&x| op.eval(x)).collect();
            Host::new(self.shape.clone(), self.dtype, numbers)
        })
    }

    /// One op on each pair, if it is defined on the dtype and the shapes broadcast.
    pub(crate) fn binary(&self, op: BinaryOp, other: &Host) -> Option<Host> {
        if self.dtype != other.dtype || !op.domain().contains(self.dtype) {
            return None;
        }
        let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem) && !self.dtype.is_float();
        if divides && other.numbers.iter().any(|x| x.to_i64() == 0) {
            return None;
        }
        let shape = common(&[self, other])?;
        let (x, y) = (self.broadcast(&shape), other.broadcast(&shape));
        let numbers: Vec<_> =
            x.numbers.iter().zip(&y.numbers).map(|(&x, &y)| op.eval(x, y)).collect();
        let dtype = if op.is_comparison() { DType::Bool } else { self.dtype };
        Some(Host::new(shape, dtype, numbers))
    }
}

/// The shape that all of these broadcast to, if it has few elements.
pub(crate) fn common(hosts: &[&Host]) -> Option<Vec<usize>> {
    let mut shape = Shape::scalar();
    for host in hosts {
        shape = shape.broadcast(&Shape::from(host.shape.as_slice()))?;
    }
    (shape.checked_numel()? <= Host::MOST).then(|| shape.to_vec())
}

/// The number of elements; at most `usize::MAX`, which nothing has.
pub(crate) fn numel(shape: &[usize]) -> usize {
    match shape.contains(&0) {
        true => 0,
        false => shape.iter().fold(1, |n, &extent| n.saturating_mul(extent)),
    }
}

/// Every index of a shape, in rows.
pub(crate) fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<'_> {
    let n = numel(shape);
    (0..n).map(move |mut at| {
        let mut index = vec![0; shape.len()];
        for (i, &extent) in index.iter_mut().zip(shape).rev() {
            (*i, at) = (at % extent, at / extent);
        }
        index
    })
}
