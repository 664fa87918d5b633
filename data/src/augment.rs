//! Random changes of images for [`Augmented`](crate::Augmented) sets: crops, flips, scaling, colours, noise, mixing.
//!
//! Images are [`Array`]s `[channels, height, width]` of `f32`, as `ImageFolder` and
//! [`IdxImages`](crate::IdxImages) give them. Each function draws its random numbers from the stream that it is given
//! and knows no other state, so that the sample is a function of that stream. The same stream gives the same bits on the
//! same system.

use crate::dataset::{Array, Dataset, sample_rng};
use zyx_core::{Error, Result, Rng};

fn refuse<T>(what: &str, reason: String) -> Result<T> {
    Err(Error::Format { what: what.to_owned(), reason })
}

/// The extents `[channels, height, width]` of an image.
fn extents(what: &str, image: &Array<f32>) -> Result<[usize; 3]> {
    match image.shape[..] {
        [channels, height, width]
            if channels.checked_mul(height).and_then(|n| n.checked_mul(width))
                == Some(image.data.len()) =>
        {
            Ok([channels, height, width])
        }
        _ => {
            let (n, shape) = (image.data.len(), &image.shape);
            let reason = format!(
                "needs an image [channels, height, width], not {n} numbers of shape {shape:?}"
            );
            refuse(what, reason)
        }
    }
}

/// The number of elements of an image, and a list with room for them.
fn room(what: &str, channels: usize, size: [usize; 2]) -> Result<(usize, Vec<f32>)> {
    let n = channels.checked_mul(size[0]).and_then(|n| n.checked_mul(size[1]));
    let mut data = Vec::new();
    match n.filter(|&n| data.try_reserve_exact(n).is_ok()) {
        Some(n) => Ok((n, data)),
        None => refuse(what, format!("no memory holds {channels} channels of {size:?}")),
    }
}

/// The part of an image `[channels, height, width]` from row `top` and column `left` on, of extents `size`.
///
/// ```
/// use zyx::data::{Array, augment};
/// let image = Array { shape: vec![1, 2, 3], data: vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0] };
/// assert_eq!(augment::crop(&image, [0, 1], [2, 2])?.data, [2.0, 3.0, 5.0, 6.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When the part is not within the image.
pub fn crop(image: &Array<f32>, [top, left]: [usize; 2], size: [usize; 2]) -> Result<Array<f32>> {
    let [channels, height, width] = extents("crop", image)?;
    let is_within = |start: usize, n: usize, extent: usize| {
        start.checked_add(n).is_some_and(|end| end <= extent)
    };
    if !is_within(top, size[0], height) || !is_within(left, size[1], width) {
        let reason =
            format!("{size:?} from [{top}, {left}] on is not within an image {:?}", image.shape);
        return refuse("crop", reason);
    }
    let mut data = Vec::with_capacity(channels * size[0] * size[1]);
    for channel in 0..channels {
        for row in top..top + size[0] {
            let start = (channel * height + row) * width + left;
            data.extend_from_slice(&image.data[start..start + size[1]]);
        }
    }
    Ok(Array { shape: vec![channels, size[0], size[1]], data })
}

/// The middle part of extents `[height, width]`.
///
/// ```
/// use zyx::data::{Array, augment};
/// let image = Array { shape: vec![1, 1, 4], data: vec![1f32, 2.0, 3.0, 4.0] };
/// assert_eq!(augment::center_crop(&image, [1, 2])?.data, [2.0, 3.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When the image is smaller.
pub fn center_crop(image: &Array<f32>, size: [usize; 2]) -> Result<Array<f32>> {
    let [_, height, width] = extents("center_crop", image)?;
    let top = height.saturating_sub(size[0]) / 2;
    crop(image, [top, width.saturating_sub(size[1]) / 2], size)
}

/// A part of extents `[height, width]` at a random place, after `padding` rows and columns of zeros were added on each
/// side. All places are equally likely.
///
/// ```
/// use zyx::data::{Array, augment};
/// use zyx::Rng;
/// let image = Array { shape: vec![3, 32, 32], data: vec![1f32; 3 * 32 * 32] };
/// let part = augment::random_crop(&image, [32, 32], 4, &mut Rng::seed(0))?;
/// assert_eq!(part.shape, [3, 32, 32]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When the padded image is smaller.
pub fn random_crop(
    image: &Array<f32>,
    size: [usize; 2],
    padding: usize,
    rng: &mut Rng,
) -> Result<Array<f32>> {
    let [channels, height, width] = extents("random_crop", image)?;
    let padded = |extent: usize| padding.checked_mul(2)?.checked_add(extent);
    let rooms = [(height, size[0]), (width, size[1])]
        .map(|(extent, n)| padded(extent).and_then(|extent| extent.checked_sub(n)));
    let [Some(rows), Some(columns)] = rooms else {
        let reason = format!(
            "an image {:?} with {padding} zeros on each side has no part {size:?}",
            image.shape
        );
        return refuse("random_crop", reason);
    };
    let top = rng.below((rows as u64).saturating_add(1)) as usize;
    let left = rng.below((columns as u64).saturating_add(1)) as usize;
    let (n, mut data) = room("random_crop", channels, size)?;
    data.resize(n, 0.0);
    for channel in 0..channels {
        for row in 0..size[0] {
            let Some(from) = (top + row).checked_sub(padding).filter(|&row| row < height) else {
                continue;
            };
            // The columns of the result that come from the image.
            let first = padding.saturating_sub(left).min(size[1]);
            let last = (padding + width).saturating_sub(left).min(size[1]);
            if first < last {
                let from = (channel * height + from) * width + left + first - padding;
                let to = (channel * size[0] + row) * size[1];
                data[to + first..to + last].copy_from_slice(&image.data[from..from + last - first]);
            }
        }
    }
    Ok(Array { shape: vec![channels, size[0], size[1]], data })
}

/// Areas and ratios of the parts that [`random_resized_crop`] cuts out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CropRange {
    /// The least and the largest share of the image's area; 0.08 and 1.
    pub area: [f64; 2],
    /// The least and the largest ratio of width to height; 3/4 and 4/3.
    pub ratio: [f64; 2],
}

impl Default for CropRange {
    fn default() -> CropRange {
        CropRange { area: [0.08, 1.0], ratio: [0.75, 4.0 / 3.0] }
    }
}

/// A random part of random area and ratio, scaled to the extents `size`, as Inception and ResNet are trained with. The
/// area is uniform, the ratio uniform in its logarithm. After ten parts that do not fit, the largest one of a valid ratio
/// in the middle.
///
/// ```
/// use zyx::data::{Array, augment};
/// use zyx::Rng;
/// let image = Array { shape: vec![3, 30, 40], data: vec![0.5f32; 3 * 30 * 40] };
/// let range = augment::CropRange::default();
/// let part = augment::random_resized_crop(&image, [16, 16], range, &mut Rng::seed(0))?;
/// assert_eq!(part.shape, [3, 16, 16]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When the image is empty, or a range is not positive and in order.
pub fn random_resized_crop(
    image: &Array<f32>,
    size: [usize; 2],
    range: CropRange,
    rng: &mut Rng,
) -> Result<Array<f32>> {
    const WHAT: &str = "random_resized_crop";
    let [_, height, width] = extents(WHAT, image)?;
    let is_range = |[least, most]: [f64; 2]| 0.0 < least && least <= most && most.is_finite();
    if !is_range(range.area) || !is_range(range.ratio) {
        return refuse(WHAT, format!("{range:?} is not positive and in order"));
    }
    if height == 0 || width == 0 {
        return refuse(WHAT, format!("an image of shape {:?} is empty", image.shape));
    }
    let (h, w) = (height as f64, width as f64);
    let [least, most] = range.ratio.map(f64::ln);
    for _ in 0..10 {
        let area = h * w * between(range.area, rng);
        let ratio = between([least, most], rng).exp();
        let part = [(area / ratio).sqrt().round(), (area * ratio).sqrt().round()];
        if 1.0 <= part[0] && part[0] <= h && 1.0 <= part[1] && part[1] <= w {
            let part = part.map(|n| n as usize);
            let top = rng.below((height - part[0]) as u64 + 1) as usize;
            let left = rng.below((width - part[1]) as u64 + 1) as usize;
            return resize(&crop(image, [top, left], part)?, size);
        }
    }
    let ratio = (w / h).clamp(range.ratio[0], range.ratio[1]);
    let part = [(w / ratio).round().clamp(1.0, h), (h * ratio).round().clamp(1.0, w)];
    resize(&center_crop(image, part.map(|n| n as usize))?, size)
}

/// An image scaled to `[height, width]`, linear between pixels; a pixel of a smaller image is a mean over the pixels that
/// it covers, weighted by a triangle (PyTorch's `antialias=True`).
///
/// ```
/// use zyx::data::{Array, augment};
/// let image = Array { shape: vec![1, 1, 2], data: vec![0f32, 1.0] };
/// assert_eq!(augment::resize(&image, [1, 4])?.data, [0.0, 0.25, 0.75, 1.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When either image is empty.
pub fn resize(image: &Array<f32>, size: [usize; 2]) -> Result<Array<f32>> {
    let [channels, height, width] = extents("resize", image)?;
    let (n, mut data) = room("resize", channels, size)?;
    if n == 0 || image.data.is_empty() {
        return refuse("resize", format!("{:?} cannot become {size:?}", image.shape));
    }
    let (rows, columns) = (weights(height, size[0]), weights(width, size[1]));
    // First along rows, then along columns.
    let mut wide = Vec::with_capacity(channels * height * size[1]);
    for row in image.data.chunks(width) {
        wide.extend(columns.iter().map(|(first, weights)| {
            let pixels = row[*first..].iter().zip(weights);
            pixels.map(|(&x, &weight)| x * weight).sum::<f32>()
        }));
    }
    for plane in wide.chunks(height * size[1]) {
        for (first, weights) in &rows {
            data.extend((0..size[1]).map(|column| {
                let pixels = plane.iter().skip(first * size[1] + column).step_by(size[1]);
                pixels.zip(weights).map(|(&x, &weight)| x * weight).sum::<f32>()
            }));
        }
    }
    Ok(Array { shape: vec![channels, size[0], size[1]], data })
}

/// For each of `to` pixels, the first of `from` pixels that it is a mean of, and their weights.
fn weights(from: usize, to: usize) -> Vec<(usize, Vec<f32>)> {
    let scale = from as f64 / to as f64;
    let reach = scale.max(1.0);
    let of = |i: usize| {
        let center = (i as f64 + 0.5) * scale;
        let first = (center - reach + 0.5).max(0.0) as usize;
        let end = ((center + reach + 0.5) as usize).min(from);
        let weight = |j: usize| (1.0 - ((j as f64 + 0.5 - center) / reach).abs()).max(0.0);
        let sum: f64 = (first..end).map(weight).sum();
        (first, (first..end).map(|j| (weight(j) / sum) as f32).collect())
    };
    (0..to).map(of).collect()
}

/// The image with its columns in reverse order.
///
/// ```
/// use zyx::data::{Array, augment};
/// let image = Array { shape: vec![1, 2, 2], data: vec![1f32, 2.0, 3.0, 4.0] };
/// assert_eq!(augment::flip_horizontal(image)?.data, [2.0, 1.0, 4.0, 3.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When it is no image.
pub fn flip_horizontal(mut image: Array<f32>) -> Result<Array<f32>> {
    let [_, _, width] = extents("flip_horizontal", &image)?;
    image.data.chunks_mut(width.max(1)).for_each(<[f32]>::reverse);
    Ok(image)
}

/// The image with its rows in reverse order.
///
/// ```
/// use zyx::data::{Array, augment};
/// let image = Array { shape: vec![1, 2, 2], data: vec![1f32, 2.0, 3.0, 4.0] };
/// assert_eq!(augment::flip_vertical(image)?.data, [3.0, 4.0, 1.0, 2.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When it is no image.
pub fn flip_vertical(mut image: Array<f32>) -> Result<Array<f32>> {
    let [_, height, width] = extents("flip_vertical", &image)?;
    for plane in image.data.chunks_mut((height * width).max(1)) {
        for row in 0..height / 2 {
            let (above, below) = plane.split_at_mut((height - 1 - row) * width);
            above[row * width..(row + 1) * width].swap_with_slice(&mut below[..width]);
        }
    }
    Ok(image)
}

/// [`flip_horizontal`] with this probability.
///
/// ```
/// use zyx::data::{Array, augment};
/// use zyx::Rng;
/// let image = Array { shape: vec![1, 1, 2], data: vec![1f32, 2.0] };
/// assert_eq!(augment::random_horizontal_flip(image, 1.0, &mut Rng::seed(0))?.data, [2.0, 1.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When it is no image.
pub fn random_horizontal_flip(
    image: Array<f32>,
    probability: f64,
    rng: &mut Rng,
) -> Result<Array<f32>> {
    if rng.next_f64() < probability { flip_horizontal(image) } else { Ok(image) }
}

/// [`flip_vertical`] with this probability.
///
/// ```
/// use zyx::data::{Array, augment};
/// use zyx::Rng;
/// let image = Array { shape: vec![1, 2, 1], data: vec![1f32, 2.0] };
/// assert_eq!(augment::random_vertical_flip(image, 1.0, &mut Rng::seed(0))?.data, [2.0, 1.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When it is no image.
pub fn random_vertical_flip(
    image: Array<f32>,
    probability: f64,
    rng: &mut Rng,
) -> Result<Array<f32>> {
    if rng.next_f64() < probability { flip_vertical(image) } else { Ok(image) }
}

/// The largest changes that [`random_colors`] makes. `Default` makes none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ColorRange {
    /// The factor of all pixels is within `1 - brightness ..= 1 + brightness`, at least 0.
    pub brightness: f64,
    /// The factor of distances from the mean grey is within `1 - contrast ..= 1 + contrast`, at least 0.
    pub contrast: f64,
    /// The factor of distances from a pixel's own grey is within `1 - saturation ..= 1 + saturation`, at least 0.
    pub saturation: f64,
    /// The turn of the hue is within `-hue ..= hue`; 0.5 is half the circle of colours.
    pub hue: f64,
}

/// Brightness, contrast, saturation and hue changed by random factors, in a random order, of an image of numbers from 0 to
/// 1 with 3 channels (red, green, blue) or 1. Results are cut to 0 .. 1. Saturation and hue of one channel stay.
///
/// ```
/// use zyx::data::{Array, augment};
/// use zyx::Rng;
/// let image = Array { shape: vec![3, 1, 1], data: vec![0.2f32, 0.4, 0.6] };
/// let range = augment::ColorRange { brightness: 0.5, ..Default::default() };
/// let brighter = augment::random_colors(image, range, &mut Rng::seed(0))?;
/// assert!((brighter.data[1] / brighter.data[0] - 2.0).abs() < 1e-6);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When it is no image of 1 or 3 channels, a range is negative or no number, or `hue` is above 0.5.
pub fn random_colors(
    mut image: Array<f32>,
    range: ColorRange,
    rng: &mut Rng,
) -> Result<Array<f32>> {
    const WHAT: &str = "random_colors";
    let [channels, ..] = extents(WHAT, &image)?;
    if channels != 1 && channels != 3 {
        return refuse(
            WHAT,
            format!("an image of shape {:?} has not 1 or 3 channels", image.shape),
        );
    }
    let ranges = [range.brightness, range.contrast, range.saturation, range.hue];
    if !ranges.iter().all(|&x| x >= 0.0 && x.is_finite()) || range.hue > 0.5 {
        return refuse(WHAT, format!("{range:?} is out of range"));
    }
    let mut order = [0, 1, 2, 3];
    for last in (1..4).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    // All numbers are drawn whatever the ranges are, so that changing one range leaves the others' numbers.
    let factors = ranges.map(|x| between([-x, x], rng));
    for kind in order.into_iter().filter(|&kind| ranges[kind] > 0.0) {
        let factor = (1.0 + factors[kind]).max(0.0) as f32;
        match kind {
            0 => blend(&mut image.data, |_| 0.0, factor),
            1 => {
                let greys = greys(&image.data, channels);
                let mean = greys.iter().map(|&x| f64::from(x)).sum::<f64>() / greys.len() as f64;
                blend(&mut image.data, |_| mean as f32, factor);
            }
            2 if channels == 3 => {
                let greys = greys(&image.data, channels);
                blend(&mut image.data, |i| greys[i % greys.len()], factor);
            }
            3 if channels == 3 => turn_hues(&mut image.data, factors[3] as f32),
            _ => {}
        }
    }
    Ok(image)
}

/// Moves numbers away from others by a factor, within 0 .. 1.
fn blend(data: &mut [f32], from: impl Fn(usize) -> f32, factor: f32) {
    for (i, x) in data.iter_mut().enumerate() {
        let from = from(i);
        *x = (from + (*x - from) * factor).clamp(0.0, 1.0);
    }
}

/// The brightness of each pixel (ITU-R BT.601).
fn greys(data: &[f32], channels: usize) -> Vec<f32> {
    if channels == 1 {
        return data.to_vec();
    }
    let n = data.len() / 3;
    let grey = |i: usize| 0.2989 * data[i] + 0.587 * data[n + i] + 0.114 * data[2 * n + i];
    (0..n).map(grey).collect()
}

/// Turns the hue of each pixel by a share of the circle, at the same value and saturation.
fn turn_hues(data: &mut [f32], turn: f32) {
    let n = data.len() / 3;
    for i in 0..n {
        let rgb = [data[i], data[n + i], data[2 * n + i]].map(|x| x.clamp(0.0, 1.0));
        let most = rgb[0].max(rgb[1]).max(rgb[2]);
        let range = most - rgb[0].min(rgb[1]).min(rgb[2]);
        if range > 0.0 {
            let [r, g, b] = rgb;
            let sixth = if most == r {
                (g - b) / range
            } else if most == g {
                (b - r) / range + 2.0
            } else {
                (r - g) / range + 4.0
            };
            let sixth = (sixth + 6.0 * turn).rem_euclid(6.0);
            // The distance of a channel from the largest, by its place on the circle.
            let channel = |place: f32| {
                let at = (place + sixth).rem_euclid(6.0);
                most - range * at.min(4.0 - at).clamp(0.0, 1.0)
            };
            (data[i], data[n + i], data[2 * n + i]) = (channel(5.0), channel(3.0), channel(1.0));
        }
    }
}

/// Normal noise with this standard deviation added to each number of an array of any shape.
///
/// ```
/// use zyx::data::{Array, augment};
/// use zyx::Rng;
/// let noisy = augment::noise(Array::from_list(vec![0f32; 1000]), 0.1, &mut Rng::seed(0));
/// let mean_square = noisy.data.iter().map(|x| x * x).sum::<f32>() / 1000.0;
/// assert!((mean_square.sqrt() - 0.1).abs() < 0.01);
/// ```
#[must_use]
pub fn noise(mut x: Array<f32>, deviation: f32, rng: &mut Rng) -> Array<f32> {
    x.data.iter_mut().for_each(|x| *x += deviation * normal(rng) as f32);
    x
}

/// Each channel less its mean, divided by its deviation.
///
/// ```
/// use zyx::data::{Array, augment};
/// let image = Array { shape: vec![2, 1, 1], data: vec![0.5f32, 0.75] };
/// assert_eq!(augment::normalize(image, &[0.5, 0.5], &[0.5, 0.25])?.data, [0.0, 1.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When it is no image, or there is not one mean and one deviation for each channel.
pub fn normalize(mut image: Array<f32>, mean: &[f32], deviation: &[f32]) -> Result<Array<f32>> {
    let [channels, height, width] = extents("normalize", &image)?;
    if mean.len() != channels || deviation.len() != channels {
        let reason = format!(
            "{} means and {} deviations for {channels} channels",
            mean.len(),
            deviation.len()
        );
        return refuse("normalize", reason);
    }
    let planes = image.data.chunks_mut((height * width).max(1));
    for ((plane, mean), deviation) in planes.zip(mean).zip(deviation) {
        plane.iter_mut().for_each(|x| *x = (*x - mean) / deviation);
    }
    Ok(image)
}

/// A set of images `[channels, height, width]` with classes, each mixed with a random other sample (Zhang et al. 2018:
/// mixup).
///
/// Samples are `share * a + (1 - share) * b` of two images and of their classes as vectors of probabilities
/// `[classes]`; `share` is drawn from Beta(alpha, alpha). [`Tensor::cross_entropy_weighted`](zyx_core::Tensor::cross_entropy_weighted)
/// takes such targets.
///
/// ```
/// use zyx::data::{Array, Dataset, Mixup, Samples, sample_rng};
/// let sample = |x: f32, class: i64| (Array { shape: vec![1, 1, 1], data: vec![x] }, class);
/// let set = Mixup::new(Samples(vec![sample(0.0, 0), sample(1.0, 1)]), 2, 0.4)?;
/// let (image, target) = set.get_with(0, &mut sample_rng(0, 1, 0))?;
/// assert!((image.data[0] - target.data[1]).abs() < 1e-6);
/// assert!((target.data[0] + target.data[1] - 1.0).abs() < 1e-6);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Mixup<D> {
    of: D,
    classes: usize,
    alpha: f64,
}

impl<D: Dataset<Sample = (Array<f32>, i64)>> Mixup<D> {
    /// Of a set with classes below `classes`. Small `alpha` mix little, 1 mixes uniformly.
    ///
    /// # Errors
    /// When `alpha` is not positive and finite.
    pub fn new(of: D, classes: usize, alpha: f64) -> Result<Mixup<D>> {
        if !(alpha > 0.0 && alpha.is_finite()) {
            return refuse("mixup", format!("alpha {alpha} is not positive and finite"));
        }
        Ok(Mixup { of, classes, alpha })
    }

    /// The class among all classes.
    fn check(&self, class: i64) -> Result<usize> {
        let place = usize::try_from(class).ok().filter(|&class| class < self.classes);
        place.map_or_else(|| refuse("mixup", format!("class {class} of {}", self.classes)), Ok)
    }
}

impl<D: Dataset<Sample = (Array<f32>, i64)>> Dataset for Mixup<D> {
    type Sample = (Array<f32>, Array<f32>);

    fn len(&self) -> usize {
        self.of.len()
    }

    /// As in epoch 0 with seed 0.
    fn get(&self, index: usize) -> Result<Self::Sample> {
        self.get_with(index, &mut sample_rng(0, 0, index))
    }

    fn get_with(&self, index: usize, rng: &mut Rng) -> Result<Self::Sample> {
        let share = share(self.alpha, rng);
        let other = rng.below(self.of.len() as u64) as usize;
        let (mut image, class) = self.of.get_with(index, &mut rng.split())?;
        let (with, other) = self.of.get_with(other, &mut rng.split())?;
        if image.shape != with.shape || image.data.len() != with.data.len() {
            return refuse(
                "mixup",
                format!("images of shapes {:?} and {:?}", image.shape, with.shape),
            );
        }
        for (x, y) in image.data.iter_mut().zip(&with.data) {
            *x = (f64::from(*x) * share + f64::from(*y) * (1.0 - share)) as f32;
        }
        let mut target = Array::from_list(vec![0f32; self.classes]);
        target.data[self.check(class)?] += share as f32;
        target.data[self.check(other)?] += (1.0 - share) as f32;
        Ok((image, target))
    }
}

/// A number of a range, uniform.
fn between([least, most]: [f64; 2], rng: &mut Rng) -> f64 {
    least + (most - least) * rng.next_f64()
}

/// A normal number (Box and Muller); takes two blocks.
fn normal(rng: &mut Rng) -> f64 {
    // Of `0 .. 1` the first is taken from 1, so that no logarithm is infinite.
    let radius = (-2.0 * (1.0 - rng.next_f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.next_f64()).cos()
}

/// A number drawn from Beta(alpha, alpha).
fn share(alpha: f64, rng: &mut Rng) -> f64 {
    let [a, b] = [0, 1].map(|_| log_gamma_variate(alpha, rng));
    1.0 / (1.0 + (b - a).exp())
}

/// The logarithm of a number drawn from Gamma(alpha, 1) (Marsaglia and Tsang 2000); logarithms, since for small `alpha` the
/// number itself is too small for an `f64`.
fn log_gamma_variate(alpha: f64, rng: &mut Rng) -> f64 {
    if alpha < 1.0 {
        // Finite, so that the difference of two is a number.
        let exponent = ((1.0 - rng.next_f64()).ln() / alpha).max(f64::MIN / 4.0);
        return log_gamma_variate(alpha + 1.0, rng) + exponent;
    }
    let d = alpha - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        let u = 1.0 - rng.next_f64();
        if v > 0.0 && u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d.ln() + v.ln();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Augmented, Indexed};
    use std::f64::consts::{PI, TAU};
    use std::sync::LazyLock;
    use zyx_core::{Device, Interpolation, Runtime, Tensor};

    /// Tensors of two runtimes do not go together.
    fn device() -> &'static Device {
        static DEVICE: LazyLock<Device> =
            LazyLock::new(|| Runtime::default().device("reference").unwrap());
        &DEVICE
    }

    /// An image of numbers from 0 to 1.
    fn image(shape: [usize; 3], seed: u64) -> Array<f32> {
        let mut rng = Rng::seed(seed);
        let data = (0..shape.iter().product()).map(|_| rng.next_f64() as f32).collect();
        Array { shape: shape.to_vec(), data }
    }

    fn tensor(image: &Array<f32>) -> Tensor {
        Tensor::from_slice(&image.data, &image.shape[..], device()).unwrap()
    }

    fn assert_close(got: &Array<f32>, wanted: &Tensor, what: &str) {
        assert_eq!(got.shape, wanted.shape().dims(), "{what}");
        for (a, b) in got.data.iter().zip(wanted.to_vec::<f32>().unwrap()) {
            assert!((a - b).abs() <= 2e-6, "{what}: {a} is not {b}");
        }
    }

    #[test]
    fn images_are_cut_and_flipped_as_tensors_are() {
        let x = image([3, 5, 7], 1);
        let t = tensor(&x);
        assert_close(
            &crop(&x, [1, 2], [3, 4]).unwrap(),
            &t.slice(1, 1..4).unwrap().slice(2, 2..6).unwrap(),
            "crop",
        );
        let middle = t.slice(1, 1..4).unwrap().slice(2, 2..5).unwrap();
        assert_close(&center_crop(&x, [3, 3]).unwrap(), &middle, "center");
        assert_close(&flip_horizontal(x.clone()).unwrap(), &t.flip(2).unwrap(), "horizontal");
        assert_close(&flip_vertical(x.clone()).unwrap(), &t.flip(1).unwrap(), "vertical");
        let [mean, deviation] = [[0.1f32, 0.2, 0.3], [0.5, 2.0, 1.5]];
        let of = |x: &[f32; 3]| Tensor::from_slice(x, [3, 1, 1], device()).unwrap();
        let wanted = (&t - of(&mean)) / of(&deviation);
        assert_close(&normalize(x.clone(), &mean, &deviation).unwrap(), &wanted, "normalize");
        for (at, size) in [([3, 0], [3, 1]), ([0, 7], [1, 1]), ([usize::MAX, 0], [2, 2])] {
            assert!(crop(&x, at, size).is_err());
        }
        let flat = Array { shape: vec![35], data: vec![0f32; 35] };
        assert!(flip_vertical(flat.clone()).is_err() && resize(&flat, [1, 1]).is_err());
        assert!(center_crop(&x, [6, 1]).is_err() && normalize(x, &[0.0], &[1.0]).is_err());
    }

    #[test]
    fn random_crops_are_the_crops_of_the_padded_image_each_equally_often() {
        let x = image([2, 3, 4], 2);
        let rng = &mut Rng::seed(5);
        for (padding, size) in [(0, [2, 3]), (2, [3, 4]), (3, [1, 1]), (1, [5, 6]), (4, [3, 2])] {
            let whole = tensor(&x).pad([(0, 0), (padding, padding), (padding, padding)]).unwrap();
            let rooms = [3 + 2 * padding - size[0] + 1, 4 + 2 * padding - size[1] + 1];
            let all: Vec<Vec<f32>> = (0..rooms[0] * rooms[1])
                .map(|i| {
                    let (top, left) = (i / rooms[1], i % rooms[1]);
                    let part = whole.slice(1, top..top + size[0]).unwrap();
                    part.slice(2, left..left + size[1]).unwrap().to_vec().unwrap()
                })
                .collect();
            let mut counts = vec![0usize; all.len()];
            for _ in 0..100 * all.len() {
                let part = random_crop(&x, size, padding, rng).unwrap();
                let equal = all.iter().filter(|&other| *other == part.data).count();
                let place = all.iter().position(|other| *other == part.data).expect("a crop");
                // Parts of zeros alone are alike.
                counts[place] += usize::from(equal == 1) * 10;
                counts[place] += usize::from(equal > 1);
            }
            for (i, count) in counts.into_iter().enumerate() {
                let is_alone = all.iter().filter(|&other| *other == all[i]).count() == 1;
                assert!(
                    !is_alone || (500..1500).contains(&count),
                    "place {i} of {padding}: {count}"
                );
            }
        }
        assert!(random_crop(&x, [4, 4], 0, rng).is_err());
        assert!(random_crop(&x, [usize::MAX, 1], usize::MAX / 2, rng).is_err());
    }

    #[test]
    fn images_are_scaled_by_weights_of_triangles() {
        let x = image([2, 6, 9], 3);
        for size in [[6, 9], [12, 11], [7, 30]] {
            let wanted = tensor(&x).unsqueeze(0).unwrap();
            let wanted = wanted.interpolate(&size, Interpolation::Linear, false).unwrap();
            assert_close(&resize(&x, size).unwrap(), &wanted.squeeze(0).unwrap(), "larger");
        }
        // Of all pixels, by matrices.
        let matrix = |from: usize, to: usize| {
            let scale = from as f64 / to as f64;
            let weight = |i: usize, j: usize| {
                let distance = (j as f64 + 0.5) - (i as f64 + 0.5) * scale;
                (1.0 - distance.abs() / scale.max(1.0)).max(0.0)
            };
            let all: Vec<f64> = (0..to * from).map(|i| weight(i / from, i % from)).collect();
            let all = Tensor::from_slice(&all, [to, from], device()).unwrap();
            all.div(all.sum_keepdim(1).unwrap()).unwrap().cast(zyx_core::DType::F32)
        };
        for size in [[3, 3], [2, 9], [5, 4], [1, 1], [6, 20]] {
            let wanted = matrix(6, size[0]).matmul(&tensor(&x)).unwrap();
            let wanted = wanted.matmul(&matrix(9, size[1]).t()).unwrap();
            assert_close(&resize(&x, size).unwrap(), &wanted, "smaller");
        }
        assert!(resize(&x, [0, 3]).is_err() && resize(&x, [usize::MAX, 3]).is_err());
        let range = CropRange { area: [1.0, 1.0], ratio: [1.5, 1.5] };
        let rng = &mut Rng::seed(0);
        assert_eq!(
            random_resized_crop(&x, [4, 6], range, rng).unwrap(),
            resize(&x, [4, 6]).unwrap()
        );
        // No part of this ratio has the whole area: the largest one in the middle.
        let square = CropRange { area: [1.0, 1.0], ratio: [1.0, 1.0] };
        let wanted = resize(&center_crop(&x, [6, 6]).unwrap(), [2, 2]).unwrap();
        assert_eq!(random_resized_crop(&x, [2, 2], square, rng).unwrap(), wanted);
        let wrong = CropRange { area: [1.0, 0.5], ..CropRange::default() };
        assert!(random_resized_crop(&x, [2, 2], wrong, rng).is_err());
    }

    #[test]
    fn colors_change_within_their_ranges() {
        let x = image([3, 4, 5], 4);
        let hsv = |data: &[f32], i: usize| {
            let [r, g, b] = [0, 1, 2].map(|c| f64::from(data[c * 20 + i]));
            let (most, least) = (r.max(g).max(b), r.min(g).min(b));
            // The angle in the plane of colours of equal brightness.
            let hue = (3f64.sqrt() * (g - b)).atan2(2.0 * r - g - b);
            (hue, (most - least) / most, most)
        };
        let rng = &mut Rng::seed(1);
        let mut seen = [f64::MAX, f64::MIN];
        for _ in 0..200 {
            let only = ColorRange { brightness: 0.4, ..ColorRange::default() };
            let y = random_colors(x.clone(), only, rng).unwrap();
            let place = (0..60).min_by(|&i, &j| x.data[i].total_cmp(&x.data[j])).unwrap();
            let factor = f64::from(y.data[place] / x.data[place]);
            for (x, y) in x.data.iter().zip(&y.data) {
                assert!((f64::from(*y) - (f64::from(*x) * factor).min(1.0)).abs() < 1e-5);
            }
            seen = [seen[0].min(factor), seen[1].max(factor)];

            let only = ColorRange { hue: 0.2, ..ColorRange::default() };
            let y = random_colors(x.clone(), only, rng).unwrap();
            for i in 0..20 {
                let (before, after) = (hsv(&x.data, i), hsv(&y.data, i));
                assert!((before.1 - after.1).abs() < 1e-5 && (before.2 - after.2).abs() < 1e-5);
                let turn = (after.0 - before.0 + 3.0 * PI).rem_euclid(TAU) - PI;
                // Sixths of the circle are not turned by quite the same angle.
                assert!(turn.abs() < 0.2 * TAU + 0.2, "{turn}");
            }
        }
        assert!((0.6..0.65).contains(&seen[0]) && (1.35..1.4).contains(&seen[1]), "{seen:?}");
        let grey = ColorRange { saturation: 0.5, ..ColorRange::default() };
        // Far enough from 0 and 1 that nothing is cut.
        let data = x.data.iter().map(|x| 0.4 * x + 0.3).collect();
        let pale = Array { shape: x.shape.clone(), data };
        let y = random_colors(pale.clone(), grey, rng).unwrap();
        assert_ne!(y, pale);
        for (a, b) in greys(&pale.data, 3).iter().zip(greys(&y.data, 3)) {
            assert!((a - b).abs() < 1e-3, "{a} and {b}");
        }
        let none = random_colors(x.clone(), ColorRange::default(), rng).unwrap();
        assert_eq!(none, x);
        let all = ColorRange { brightness: 1.0, contrast: 2.0, saturation: 2.0, hue: 0.5 };
        let y = random_colors(x.clone(), all, rng).unwrap();
        assert!(y.data.iter().all(|x| (0.0..=1.0).contains(x)));
        let wrong = ColorRange { hue: 0.6, ..ColorRange::default() };
        assert!(random_colors(x, wrong, rng).is_err());
        assert!(random_colors(image([2, 1, 1], 0), all, rng).is_err());
    }

    #[test]
    fn noise_and_shares_have_their_laws() {
        let rng = &mut Rng::seed(2);
        let noisy = noise(Array::from_list(vec![1f32; 20_000]), 0.5, rng).data;
        let moment = |k: i32| noisy.iter().map(|x| f64::from(x - 1.0).powi(k)).sum::<f64>() / 2e4;
        assert!(moment(1).abs() < 0.015, "{}", moment(1));
        assert!((moment(2) - 0.25).abs() < 0.01 && (moment(4) - 3.0 / 16.0).abs() < 0.02);
        for alpha in [1e-300, 0.2, 1.0, 3.0, 1e300] {
            let all: Vec<f64> = (0..20_000).map(|_| share(alpha, rng)).collect();
            assert!(all.iter().all(|x| (0.0..=1.0).contains(x)), "{alpha}");
            let mean = all.iter().sum::<f64>() / 2e4;
            let variance = all.iter().map(|x| (x - 0.5).powi(2)).sum::<f64>() / 2e4;
            let wanted = 0.25 / (2.0 * alpha + 1.0);
            assert!((mean - 0.5).abs() < 0.015, "{alpha}: {mean}");
            assert!((variance - wanted).abs() < 0.05 * wanted + 1e-9, "{alpha}: {variance}");
        }
    }

    #[test]
    fn mixed_samples_are_sums_of_two() {
        // Each image holds its class.
        let all = Indexed::new(4, |i| {
            Ok((Array { shape: vec![1, 1, 1], data: vec![i as f32] }, i as i64))
        });
        let set = Mixup::new(all, 4, 1.0).unwrap();
        let mut partners = [0; 4];
        for epoch in 0..200 {
            let (x, target) = set.get_with(1, &mut sample_rng(3, epoch, 1)).unwrap();
            let class: f32 =
                target.data.iter().enumerate().map(|(i, share)| i as f32 * share).sum();
            assert!((x.data[0] - class).abs() < 1e-5);
            assert!((target.data.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            (0..4).filter(|&i| target.data[i] > 0.0).for_each(|i| partners[i] += 1);
        }
        assert_eq!(partners[1], 200);
        assert!(partners.iter().all(|&n| n > 20), "{partners:?}");
        assert!(
            Mixup::new(Augmented::new(set, |(x, _), _| Ok((x, 9))), 4, 1.0)
                .unwrap()
                .get(0)
                .is_err()
        );
        let none = Indexed::new(0, |_| Ok((Array::from_list(vec![0f32]), 0)));
        assert!(Mixup::new(none, 4, f64::NAN).is_err());
    }
}
