//! [`Loader`]: batches of a data set in a new order each epoch, made by worker threads ahead of
//! their use.
//!
//! The order is a function of seed and epoch alone, random changes of a sample are one of seed, epoch and its number, and batches come in order whatever the number
//! of workers: a run can be repeated exactly, and resumed in the middle of an epoch. Workers make
//! tensors too, so reading, decoding and copying to the device all happen beside the computation.

use crate::dataset::{Collate, Dataset, sample_rng, shuffled};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use zyx_core::{Device, Error, Result, Rng};

/// The options of a [`Loader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoaderOptions {
    /// Samples in a batch; 32.
    pub batch: usize,
    /// The seed of the order, or none to keep that of the set; 0.
    pub shuffle: Option<u64>,
    /// Whether a last batch of fewer samples is left out; false.
    pub drop_last: bool,
    /// Threads that make batches; with 0, they are made when they are asked for; 1.
    pub workers: usize,
    /// Batches that are made ahead; 4.
    pub prefetch: usize,
    /// The seed of the random streams of samples, for sets that augment (see [`Dataset::get_with`]); 0.
    pub seed: u64,
}

impl Default for LoaderOptions {
    fn default() -> LoaderOptions {
        LoaderOptions {
            batch: 32,
            shuffle: Some(0),
            drop_last: false,
            workers: 1,
            prefetch: 4,
            seed: 0,
        }
    }
}

/// Batches of a data set.
///
/// ```
/// use zyx::data::{Loader, LoaderOptions, Samples};
/// let device = zyx::device()?;
/// let data = Samples((0..10).map(|i| (i as f32, i)).collect::<Vec<(f32, i64)>>());
/// let options = LoaderOptions { batch: 4, shuffle: None, ..Default::default() };
/// let loader = Loader::new(data, options, &device)?;
/// let sizes: Vec<usize> = loader.epoch(0).map(|batch| batch.unwrap().0.numel()).collect();
/// assert_eq!(sizes, [4, 4, 2]);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Loader<D> {
    data: Arc<D>,
    options: LoaderOptions,
    device: Device,
}

impl<D> Loader<D>
where
    D: Dataset + 'static,
    D::Sample: Collate,
{
    /// Batches of `data` as tensors on `device`.
    ///
    /// # Errors
    /// When batches have no samples.
    pub fn new(data: D, options: LoaderOptions, device: &Device) -> Result<Loader<D>> {
        if options.batch == 0 {
            let reason = "a batch must have a sample".to_owned();
            return Err(Error::Format { what: "Loader".to_owned(), reason });
        }
        Ok(Loader { data: Arc::new(data), options, device: device.clone() })
    }

    /// Number of batches in an epoch.
    ///
    /// ```
    /// # use zyx::data::{Loader, LoaderOptions, Samples};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let options = LoaderOptions { batch: 2, ..Default::default() };
    /// # let loader = Loader::new(Samples(vec![1f32, 2.0, 3.0]), options, &device)?;
    /// assert_eq!(loader.len(), 2); // Three samples, two in a batch.
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        match self.options.drop_last {
            true => self.data.len() / self.options.batch,
            false => self.data.len().div_ceil(self.options.batch),
        }
    }

    /// Whether there is no batch.
    ///
    /// ```
    /// # use zyx::data::{Loader, LoaderOptions, Samples};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let options = LoaderOptions { batch: 2, ..Default::default() };
    /// # let loader = Loader::new(Samples(vec![1f32, 2.0, 3.0]), options, &device)?;
    /// assert!(!loader.is_empty());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The set.
    ///
    /// ```
    /// # use zyx::data::{Loader, LoaderOptions, Samples};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let options = LoaderOptions { batch: 2, ..Default::default() };
    /// # let loader = Loader::new(Samples(vec![1f32, 2.0, 3.0]), options, &device)?;
    /// use zyx::data::Dataset;
    /// assert_eq!(loader.data().len(), 3);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn data(&self) -> &D {
        &self.data
    }

    /// The device of the batches.
    ///
    /// ```
    /// # use zyx::data::{Loader, LoaderOptions, Samples};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let options = LoaderOptions { batch: 2, ..Default::default() };
    /// # let loader = Loader::new(Samples(vec![1f32, 2.0, 3.0]), options, &device)?;
    /// assert_eq!(loader.device().spec(), "reference:0");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The batches of an epoch.
    ///
    /// ```
    /// # use zyx::data::{Loader, LoaderOptions, Samples};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let options = LoaderOptions { batch: 2, ..Default::default() };
    /// # let loader = Loader::new(Samples(vec![1f32, 2.0, 3.0]), options, &device)?;
    /// let batches = loader.epoch(0).collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(batches[1].to_vec::<f32>()?, [3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn epoch(&self, epoch: u64) -> Batches<<D::Sample as Collate>::Batch> {
        self.epoch_from(epoch, 0)
    }

    /// The batches of an epoch from number `first` on.
    ///
    /// ```
    /// # use zyx::data::{Loader, LoaderOptions, Samples};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let options = LoaderOptions { batch: 2, ..Default::default() };
    /// # let loader = Loader::new(Samples(vec![1f32, 2.0, 3.0]), options, &device)?;
    /// let rest = loader.epoch_from(0, 1).collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(rest.len(), 1);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn epoch_from(&self, epoch: u64, first: usize) -> Batches<<D::Sample as Collate>::Batch> {
        let n = self.data.len();
        let order = match self.options.shuffle {
            // Streams of the epochs are apart by their keys.
            Some(seed) => {
                let mut rng = Rng::seed(seed);
                let [a, b] = rng.split().key();
                shuffled(n, &mut Rng::at([a ^ epoch as u32, b ^ (epoch >> 32) as u32], 0))
            }
            None => (0..n).collect(),
        };
        let (data, device, batch) =
            (Arc::clone(&self.data), self.device.clone(), self.options.batch);
        let seed = self.options.seed;
        let make = move |k: usize| {
            let rows = &order[k * batch..(k * batch + batch).min(n)];
            let sample = |&row: &usize| data.get_with(row, &mut sample_rng(seed, epoch, row));
            let samples = rows.iter().map(sample).collect::<Result<Vec<_>>>()?;
            D::Sample::collate(samples, &device)
        };
        Batches::new(Box::new(make), first..self.len(), self.options)
    }
}

/// Makes the batch of a number.
type Make<B> = dyn Fn(usize) -> Result<B> + Send + Sync;

/// The batches of one epoch; dropping it stops the workers.
pub struct Batches<B> {
    next: usize,
    end: usize,
    make: Arc<Make<B>>,
    shared: Arc<Shared<B>>,
    workers: Vec<JoinHandle<()>>,
}

/// What the workers and the iterator share.
struct Shared<B> {
    state: Mutex<State<B>>,
    changed: Condvar,
}

struct State<B> {
    /// The next batch nobody has begun.
    next: usize,
    /// Batches below this may be begun.
    limit: usize,
    made: BTreeMap<usize, Result<B>>,
}

impl<B> Shared<B> {
    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: Send + 'static> Batches<B> {
    fn new(
        make: Box<Make<B>>,
        range: std::ops::Range<usize>,
        options: LoaderOptions,
    ) -> Batches<B> {
        let (first, end) = (range.start.min(range.end), range.end);
        let ahead = options.prefetch.max(1);
        let state =
            State { next: first, limit: first.saturating_add(ahead), made: BTreeMap::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let make: Arc<Make<B>> = Arc::from(make);
        let n = options.workers.min(end - first).min(256);
        let start = |i: usize| {
            let (shared, make) = (Arc::clone(&shared), Arc::clone(&make));
            let name = format!("zyx-loader-{i}");
            std::thread::Builder::new().name(name).spawn(move || work(&shared, &*make, end)).ok()
        };
        // Threads that the system does not give are done without.
        let workers = (0..n).map_while(start).collect();
        Batches { next: first, end, make, shared, workers }
    }
}

/// Makes batches until there are no more or the iterator is gone.
fn work<B>(shared: &Shared<B>, make: &Make<B>, end: usize) {
    loop {
        let k = {
            let mut state = shared.lock();
            while state.next < end && state.next >= state.limit {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.next >= end {
                return;
            }
            state.next += 1;
            state.next - 1
        };
        let made = caught(make, k);
        shared.lock().made.insert(k, made);
        shared.changed.notify_all();
    }
}

/// A data set that panics gives an error instead of a program that waits for ever.
fn caught<B>(make: &Make<B>, k: usize) -> Result<B> {
    catch_unwind(AssertUnwindSafe(|| make(k))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("something");
        let reason = format!("making batch {k} panicked: {text}");
        Err(Error::Format { what: "data set".to_owned(), reason })
    })
}

impl<B: Send + 'static> Iterator for Batches<B> {
    type Item = Result<B>;

    fn next(&mut self) -> Option<Result<B>> {
        if self.next >= self.end {
            return None;
        }
        let k = self.next;
        self.next += 1;
        if self.workers.is_empty() {
            return Some(caught(&*self.make, k));
        }
        let mut state = self.shared.lock();
        loop {
            if let Some(made) = state.made.remove(&k) {
                state.limit = state.limit.saturating_add(1);
                drop(state);
                self.shared.changed.notify_all();
                return Some(made);
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = self.end.saturating_sub(self.next);
        (n, Some(n))
    }
}

impl<B: Send + 'static> ExactSizeIterator for Batches<B> {}

impl<B> Drop for Batches<B> {
    fn drop(&mut self) {
        self.shared.lock().next = usize::MAX;
        self.shared.changed.notify_all();
        for worker in self.workers.drain(..) {
            // Workers catch panics of data sets; there is no other.
            let _ = worker.join();
        }
    }
}

impl<B> std::fmt::Debug for Batches<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batches({}..{})", self.next, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Indexed, Samples};
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::{Duration, Instant};
    use zyx_core::Runtime;

    fn device() -> Device {
        Runtime::default().device("reference").unwrap()
    }

    fn values<D>(loader: &Loader<D>, epoch: u64, first: usize) -> Vec<Vec<i64>>
    where
        D: Dataset + 'static,
        D::Sample: Collate<Batch = zyx_core::Tensor>,
    {
        let batches = loader.epoch_from(epoch, first);
        batches.map(|batch| batch.unwrap().to_vec::<i64>().unwrap()).collect()
    }

    #[test]
    fn the_order_depends_on_seed_and_epoch_alone() {
        let data = Samples((0..23).collect::<Vec<i64>>());
        let loader = |workers, shuffle| {
            let options = LoaderOptions { batch: 5, workers, shuffle, ..Default::default() };
            Loader::new(data.clone(), options, &device()).unwrap()
        };
        let expected = values(&loader(0, Some(3)), 2, 0);
        for workers in [1, 2, 7] {
            assert_eq!(values(&loader(workers, Some(3)), 2, 0), expected);
            assert_eq!(values(&loader(workers, Some(3)), 2, 3), expected[3..]);
        }
        assert_ne!(values(&loader(1, Some(3)), 1, 0), expected);
        assert_ne!(values(&loader(1, Some(4)), 2, 0), expected);
        let mut all = expected.concat();
        all.sort_unstable();
        assert_eq!(all, data.0);
        assert_eq!(values(&loader(2, None), 9, 0).concat(), data.0);
        assert!(values(&loader(2, None), 0, 99).is_empty());
    }

    #[test]
    fn sizes() {
        let with = |batch, drop_last| {
            let options = LoaderOptions { batch, drop_last, ..Default::default() };
            Loader::new(Samples(vec![0i64; 10]), options, &device())
        };
        assert_eq!(with(4, false).unwrap().len(), 3);
        assert_eq!(with(4, true).unwrap().len(), 2);
        assert_eq!(with(4, true).unwrap().epoch(0).len(), 2);
        assert!(with(0, true).is_err());
        let none =
            Loader::new(Samples(Vec::<i64>::new()), LoaderOptions::default(), &device()).unwrap();
        assert!(none.is_empty() && none.epoch(0).next().is_none());
    }

    #[test]
    fn no_more_is_made_ahead_than_asked() {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let data = Indexed::new(100, move |i| {
            count.fetch_add(1, SeqCst);
            Ok(i as i64)
        });
        let options = LoaderOptions { batch: 1, workers: 3, prefetch: 5, ..Default::default() };
        let loader = Loader::new(data, options, &device()).unwrap();
        let mut batches = loader.epoch(0);
        batches.next();
        batches.next();
        let start = Instant::now();
        while made.load(SeqCst) < 7 && start.elapsed() < Duration::from_secs(20) {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(made.load(SeqCst), 7, "two taken and five ahead");
        drop(batches);
        assert_eq!(made.load(SeqCst), 7, "the workers have stopped");
    }

    #[test]
    fn errors_and_panics_arrive_in_their_place() {
        for workers in [0, 2] {
            let data = Indexed::new(6, |i| match i {
                2 => Err(Error::Format { what: "sample".into(), reason: "is bad".into() }),
                4 => panic!("number {i}"),
                _ => Ok(i as i64),
            });
            let options = LoaderOptions { batch: 1, shuffle: None, workers, ..Default::default() };
            let loader = Loader::new(data, options, &device()).unwrap();
            let results: Vec<Result<_>> = loader.epoch(0).collect();
            let bad: Vec<usize> = (0..6).filter(|&i| results[i].is_err()).collect();
            assert_eq!(bad, [2, 4]);
            let message = results[4].as_ref().unwrap_err().to_string();
            assert!(message.contains("number 4"), "{message}");
        }
    }
}
