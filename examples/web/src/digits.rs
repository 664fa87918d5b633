//! Training on the digits that the page loads, and recognising one that was drawn.

use crate::thrown;
use wasm_bindgen::prelude::*;
use zyx::data::Idx;
use zyx::nn::{Conv2d, Flatten, Init, Linear, MaxPool2d, Relu, Sequential};
use zyx::optim::{AdamOptions, AdamW};
use zyx::prelude::*;
use zyx::{Conv2dOptions, Pool2d};

const BATCH: usize = 64;
/// Whether an image is held out: a fifth is. The digits come in runs of 0 to 9, which the shift mixes.
fn is_held_out(i: usize) -> bool {
    (i + i / 10) % 5 == 4
}

/// A network, its optimizer and the images it learns from.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Digits {
    device: Device,
    model: Sequential,
    optimizer: AdamW,
    /// Pixels from 0 to 1 and labels: to learn from, and held out.
    train: Set,
    test: Set,
    rng: Rng,
    order: Vec<i64>,
    size: [usize; 2],
}

/// Images `[n, 1, height, width]` and labels `[n]`.
#[derive(Debug)]
struct Set {
    images: Tensor,
    labels: Tensor,
    n: usize,
}

impl Set {
    fn new(images: &[f32], labels: &[i64], size: [usize; 2], device: &Device) -> Result<Set> {
        let n = labels.len();
        let images = Tensor::from_slice(images, [n, 1, size[0], size[1]], device)?;
        Ok(Set { images, labels: Tensor::from_slice(labels, [n], device)?, n })
    }
}

/// What an IDX file holds.
fn parsed(name: &str, file: &[u8], rank: usize) -> Result<Idx> {
    Idx::parse(file, rank).map_err(|reason| Error::Format { what: name.to_owned(), reason })
}

fn network([height, width]: [usize; 2], init: &mut Init) -> Result<Sequential> {
    let same = Conv2dOptions { padding: [1, 1], ..Default::default() };
    Ok(Sequential::new()
        .then(Conv2d::new(1, 16, [3, 3], same, init)?)
        .then(Relu)
        .then(Conv2d::new(16, 32, [3, 3], same, init)?)
        .then(Relu)
        .then(MaxPool2d(Pool2d::new([2, 2])))
        .then(Flatten)
        .then(Linear::new(32 * (height / 2) * (width / 2), 64, init)?)
        .then(Relu)
        .then(Linear::new(64, 10, init)?))
}

impl Digits {
    async fn make(spec: &str, images: &[u8], labels: &[u8]) -> Result<Digits> {
        let device = Device::request(spec).await?;
        let Idx { shape, bytes: pixels } = parsed("images", images, 3)?;
        let size = [shape[1], shape[2]];
        let labels = parsed("labels", labels, 1)?.bytes;
        let white = pixels.iter().copied().max().map_or(1.0, f32::from);
        let [mut train, mut test] = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
        for (i, (image, &label)) in pixels.chunks(size[0] * size[1]).zip(&labels).enumerate() {
            let set = if is_held_out(i) { &mut test } else { &mut train };
            set.0.extend(image.iter().map(|&pixel| f32::from(pixel) / white));
            set.1.push(i64::from(label));
        }
        let model = network(size, &mut Init::new(0, &device))?;
        let options = AdamOptions { learning_rate: 2e-3, weight_decay: 0.05, ..Default::default() };
        let optimizer = AdamW::new(model.parameters(), options)?;
        let train = Set::new(&train.0, &train.1, size, &device)?;
        let test = Set::new(&test.0, &test.1, size, &device)?;
        let (rng, order) = (Rng::seed(0), Vec::new());
        Ok(Digits { device, model, optimizer, train, test, rng, order, size })
    }

    async fn learn(&mut self) -> Result<f32> {
        if self.order.len() < BATCH {
            let order = Tensor::permutation(self.train.n, &mut self.rng, &self.device)?;
            self.order = order.read_async::<i64>()?.await?;
        }
        let rows = self.order.split_off(self.order.len() - BATCH);
        let rows = Tensor::from_slice(&rows, [BATCH], &self.device)?;
        let x = self.train.images.index_select(0, &rows)?;
        let y = self.train.labels.index_select(0, &rows)?;
        let loss = self.model.forward(&x)?.cross_entropy(&y)?;
        self.optimizer.step(&loss)?;
        Ok(loss.read_async::<f32>()?.await?[0])
    }

    async fn judge(&self) -> Result<f64> {
        let mut right = 0.0;
        // In parts: browsers end what keeps a GPU for seconds.
        let parts = self.test.images.split(BATCH, 0)?.into_iter();
        for (images, labels) in parts.zip(self.test.labels.split(BATCH, 0)?) {
            let predicted = self.model.forward(&images)?.argmax(1)?;
            let own = predicted.eq(&labels)?.cast(DType::F32).sum(..)?;
            right += own.read_async::<f32>()?.await?[0];
        }
        Ok(f64::from(right) / self.test.n as f64)
    }

    async fn probabilities(&self, pixels: &[f32]) -> Result<Vec<f32>> {
        let image = Tensor::from_slice(pixels, [1, 1, self.size[0], self.size[1]], &self.device)?;
        self.model.forward(&image)?.softmax(1)?.read_async::<f32>()?.await
    }
}

#[wasm_bindgen]
impl Digits {
    /// A new network on a device (`cpu` or `wgpu`), with the contents of two IDX files.
    pub async fn open(spec: String, images: Vec<u8>, labels: Vec<u8>) -> Result<Digits, JsError> {
        Digits::make(&spec, &images, &labels).await.map_err(thrown)
    }

    /// One training step: the loss.
    pub async fn step(&mut self) -> Result<f32, JsError> {
        self.learn().await.map_err(thrown)
    }

    /// The share of the images held out that it recognises.
    pub async fn accuracy(&self) -> Result<f64, JsError> {
        self.judge().await.map_err(thrown)
    }

    /// How likely each digit is, of an image with pixels from 0 to 1.
    pub async fn recognise(&self, pixels: Vec<f32>) -> Result<Vec<f32>, JsError> {
        self.probabilities(&pixels).await.map_err(thrown)
    }

    /// Height and width of an image.
    pub fn size(&self) -> Vec<usize> {
        self.size.to_vec()
    }

    /// The device's name.
    pub fn device(&self) -> String {
        format!("{}: {}", self.device, self.device.info().name)
    }
}
