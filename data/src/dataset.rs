//! What can be learned from: samples by number, and how samples become tensors.

use std::sync::Arc;
use zyx_core::{Device, Element, Error, Result, Rng, Tensor};

/// Samples by number, from any thread.
pub trait Dataset: Send + Sync {
    /// One sample, in the memory of the host.
    type Sample: Send;

    /// Number of samples.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sample of a number below [`Dataset::len`].
    ///
    /// # Errors
    /// When it cannot be read.
    fn get(&self, index: usize) -> Result<Self::Sample>;

    /// The sample of a number for one epoch of training, changed by random numbers drawn from `rng`. The
    /// default is [`Dataset::get`]; sets that augment implement this method.
    ///
    /// A [`Loader`](crate::Loader) passes the stream [`sample_rng`]`(seed, epoch, index)`. A sample is thus a function of
    /// these three numbers: it depends neither on threads nor on the batches before, and a run that is resumed sees
    /// the bits that an uninterrupted one sees.
    ///
    /// # Errors
    /// As [`Dataset::get`].
    fn get_with(&self, index: usize, rng: &mut Rng) -> Result<Self::Sample> {
        let _ = rng;
        self.get(index)
    }
}

/// The random stream of the sample `index` in an epoch, of all those with one seed.
///
/// ```
/// use zyx::data::sample_rng;
/// assert_eq!(sample_rng(7, 2, 5).next_u64(), sample_rng(7, 2, 5).next_u64());
/// assert_ne!(sample_rng(7, 2, 5).next_u64(), sample_rng(7, 3, 5).next_u64());
/// ```
pub fn sample_rng(seed: u64, epoch: u64, index: usize) -> Rng {
    // The first block of a seed's stream makes the order of samples.
    let all = Rng::at(Rng::seed(seed).key(), 1).split();
    let of_epoch = Rng::at(all.key(), epoch).split();
    Rng::at(of_epoch.key(), index as u64).split()
}

impl<D: Dataset + ?Sized> Dataset for Arc<D> {
    type Sample = D::Sample;

    fn len(&self) -> usize {
        (**self).len()
    }

    fn get(&self, index: usize) -> Result<D::Sample> {
        (**self).get(index)
    }

    fn get_with(&self, index: usize, rng: &mut Rng) -> Result<D::Sample> {
        (**self).get_with(index, rng)
    }
}

/// How samples become the tensors of a batch.
///
/// Numbers become `[n]`, [`Array`]s of one shape `[n, ..]`, pairs and triples become pairs and
/// triples.
pub trait Collate: Sized {
    /// The tensors of a batch.
    type Batch: Send + 'static;

    /// The batch of these samples, of which there is at least one.
    ///
    /// # Errors
    /// When their shapes differ, or the device fails.
    fn collate(samples: Vec<Self>, device: &Device) -> Result<Self::Batch>;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Collate for $number {
            type Batch = Tensor;

            fn collate(samples: Vec<$number>, device: &Device) -> Result<Tensor> {
                Tensor::from_slice(&samples, [samples.len()], device)
            }
        }
    )*};
}

numbers!(bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

/// Elements with a shape, in the memory of the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T> {
    /// The extents of the axes.
    pub shape: Vec<usize>,
    /// The elements in row-major order.
    pub data: Vec<T>,
}

impl<T> Array<T> {
    /// A list.
    ///
    /// ```
    /// assert_eq!(zyx::data::Array::from_list(vec![1, 2, 3]).shape, [3]);
    /// ```
    pub fn from_list(data: Vec<T>) -> Array<T> {
        Array { shape: vec![data.len()], data }
    }
}

impl<T: Element + Send + 'static> Collate for Array<T> {
    type Batch = Tensor;

    fn collate(samples: Vec<Array<T>>, device: &Device) -> Result<Tensor> {
        let shape = samples.first().map(|first| first.shape.clone()).unwrap_or_default();
        if let Some(other) = samples.iter().find(|sample| sample.shape != shape) {
            let reason = format!("samples of shapes {shape:?} and {:?}", other.shape);
            return Err(Error::Format { what: "batch".to_owned(), reason });
        }
        let n = samples.len();
        let data: Vec<T> = samples.into_iter().flat_map(|sample| sample.data).collect();
        Tensor::from_slice(&data, [&[n], &shape[..]].concat(), device)
    }
}

impl<A: Collate, B: Collate> Collate for (A, B) {
    type Batch = (A::Batch, B::Batch);

    fn collate(samples: Vec<(A, B)>, device: &Device) -> Result<Self::Batch> {
        let (a, b) = samples.into_iter().unzip();
        Ok((A::collate(a, device)?, B::collate(b, device)?))
    }
}

impl<A: Collate, B: Collate, C: Collate> Collate for (A, B, C) {
    type Batch = (A::Batch, B::Batch, C::Batch);

    fn collate(samples: Vec<(A, B, C)>, device: &Device) -> Result<Self::Batch> {
        let (mut a, mut b, mut c) = (vec![], vec![], vec![]);
        for sample in samples {
            a.push(sample.0);
            b.push(sample.1);
            c.push(sample.2);
        }
        Ok((A::collate(a, device)?, B::collate(b, device)?, C::collate(c, device)?))
    }
}

/// Samples that a function makes of their number.
///
/// ```
/// use zyx::data::{Dataset, Indexed};
/// let squares = Indexed::new(10, |i| Ok((i as f32, (i * i) as i64)));
/// assert_eq!((squares.len(), squares.get(3)?), (10, (3.0, 9)));
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Indexed<F> {
    len: usize,
    make: F,
}

impl<S: Send, F: Fn(usize) -> Result<S> + Send + Sync> Indexed<F> {
    /// `len` samples that `make` makes.
    pub fn new(len: usize, make: F) -> Indexed<F> {
        Indexed { len, make }
    }
}

impl<S: Send, F: Fn(usize) -> Result<S> + Send + Sync> Dataset for Indexed<F> {
    type Sample = S;

    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> Result<S> {
        (self.make)(index)
    }
}

/// Samples in memory.
///
/// ```
/// use zyx::data::{Dataset, Samples};
/// let data = Samples(vec![(0.5f32, 1i64), (1.5, 0)]);
/// assert_eq!(data.get(1)?, (1.5, 0));
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples<S>(pub Vec<S>);

impl<S: Clone + Send + Sync> Dataset for Samples<S> {
    type Sample = S;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Result<S> {
        self.0.get(index).cloned().ok_or_else(|| Error::Format {
            what: "data set".to_owned(),
            reason: format!("sample {index} of {}", self.0.len()),
        })
    }
}

/// Some of the samples of another set.
#[derive(Clone, Debug)]
pub struct Subset<D> {
    /// The set.
    pub of: Arc<D>,
    /// The numbers of the samples there.
    pub indices: Vec<usize>,
}

impl<D: Dataset> Dataset for Subset<D> {
    type Sample = D::Sample;

    fn len(&self) -> usize {
        self.indices.len()
    }

    fn get(&self, index: usize) -> Result<D::Sample> {
        self.of.get(self.place(index)?)
    }

    fn get_with(&self, index: usize, rng: &mut Rng) -> Result<D::Sample> {
        self.of.get_with(self.place(index)?, rng)
    }
}

impl<D> Subset<D> {
    /// The number of a sample in the whole set.
    fn place(&self, index: usize) -> Result<usize> {
        self.indices.get(index).copied().ok_or_else(|| {
            let reason = format!("sample {index} of {}", self.indices.len());
            Error::Format { what: "data set".to_owned(), reason }
        })
    }
}

/// The samples of another set, changed at random; [`augment`](crate::augment) has functions that change images.
///
/// ```
/// use zyx::data::{Array, Augmented, Dataset, Samples, augment, sample_rng};
/// let image = Array { shape: vec![1, 2, 2], data: vec![0.1f32, 0.2, 0.3, 0.4] };
/// let set = Augmented::new(Samples(vec![(image, 3i64)]), |(image, class), rng| {
///     let image = augment::random_crop(&image, [2, 2], 1, rng)?;
///     Ok((augment::random_horizontal_flip(image, 0.5, rng)?, class))
/// });
/// // The sample 0 of epoch 5 is the same whenever it is asked for.
/// let [a, b] = [0, 1].map(|_| set.get_with(0, &mut sample_rng(0, 5, 0)));
/// assert_eq!(a?, b?);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Augmented<D, F> {
    of: D,
    change: F,
}

impl<D, S, F> Augmented<D, F>
where
    D: Dataset,
    S: Send,
    F: Fn(D::Sample, &mut Rng) -> Result<S> + Send + Sync,
{
    /// `change` gets a sample of `of` and the random stream of its visit. It draws all its random numbers from that
    /// stream. The result may be of another type than the sample.
    pub fn new(of: D, change: F) -> Augmented<D, F> {
        Augmented { of, change }
    }
}

impl<D, S, F> Dataset for Augmented<D, F>
where
    D: Dataset,
    S: Send,
    F: Fn(D::Sample, &mut Rng) -> Result<S> + Send + Sync,
{
    type Sample = S;

    fn len(&self) -> usize {
        self.of.len()
    }

    /// As in epoch 0 with seed 0.
    fn get(&self, index: usize) -> Result<S> {
        self.get_with(index, &mut sample_rng(0, 0, index))
    }

    fn get_with(&self, index: usize, rng: &mut Rng) -> Result<S> {
        (self.change)(self.of.get_with(index, rng)?, rng)
    }
}

/// The samples dealt at random: the share `held_out` into the second set, the others into the
/// first. Equal seeds deal equally.
///
/// ```
/// use zyx::data::{Dataset, Samples, split};
/// let (train, test) = split(Samples(vec![1, 2, 3, 4, 5]), 0.4, 0);
/// assert_eq!((train.len(), test.len()), (3, 2));
/// ```
pub fn split<D: Dataset>(data: D, held_out: f64, seed: u64) -> (Subset<D>, Subset<D>) {
    let n = data.len();
    let mut order = shuffled(n, &mut Rng::seed(seed));
    let kept = n - ((n as f64 * held_out.clamp(0.0, 1.0)).round() as usize).min(n);
    let mut rest = order.split_off(kept);
    order.sort_unstable();
    rest.sort_unstable();
    let of = Arc::new(data);
    (Subset { of: Arc::clone(&of), indices: order }, Subset { of, indices: rest })
}

/// The numbers below `n` in random order.
pub(crate) fn shuffled(n: usize, rng: &mut Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use zyx_core::Runtime;

    #[test]
    fn samples_become_batches() {
        let device = Runtime::default().device("reference").unwrap();
        let sample = |x: f32| (Array { shape: vec![2, 1], data: vec![x, -x] }, x as i64, x > 1.0);
        let samples = vec![sample(1.0), sample(2.0)];
        let (x, y, z) = Collate::collate(samples, &device).unwrap();
        assert_eq!(x.shape().dims(), [2, 2, 1]);
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, -1.0, 2.0, -2.0]);
        assert_eq!(y.to_vec::<i64>().unwrap(), [1, 2]);
        assert_eq!(z.to_vec::<bool>().unwrap(), [false, true]);
        let uneven = vec![Array::from_list(vec![1u8]), Array::from_list(vec![])];
        let message = Collate::collate(uneven, &device).unwrap_err().to_string();
        assert!(message.contains("[1] and [0]"), "{message}");
    }

    #[test]
    fn every_sample_is_dealt_once() {
        let (train, test) = split(Samples((0..10).collect::<Vec<i32>>()), 0.3, 7);
        let get = |set: &Subset<Samples<i32>>| -> Vec<i32> {
            (0..set.len()).map(|i| set.get(i).unwrap()).collect()
        };
        let mut all = [get(&train), get(&test)].concat();
        assert_ne!(get(&test), [7, 8, 9], "at random");
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<i32>>());
        assert!(train.get(7).is_err());
        assert_eq!(split(Samples(vec![1]), 2.0, 0).1.len(), 1);
    }
}
