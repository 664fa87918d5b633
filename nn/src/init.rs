//! Initial values of parameters.
//!
//! One [`Init`] says where a model's parameters live, in which dtype, and from which random
//! stream they are drawn; layers take it one after the other, so one seed fixes a whole model on
//! every device. The methods are PyTorch's `nn.init`, by the names of their authors or ideas; they
//! give a tensor, for a new [`Param`](crate::Param) or for `set` of an old one.

use std::panic::Location;
use zyx_core::{DType, Device, Error, Param, Result, Rng, Shape, Tensor, attribute};

/// The random stream, device and dtype that new layers take.
///
/// ```
/// use zyx::nn::{Init, Linear};
/// use zyx::DType;
/// let device = zyx::device()?;
/// let mut init = Init::new(42, &device);
/// let layer = Linear::new(3, 2, &mut init)?;
/// layer.weight.set(&init.xavier_uniform([2, 3], 1.0)?)?;
/// init.dtype = DType::BF16;
/// let half = Linear::new(3, 2, &mut init)?;
/// assert_eq!(half.weight.dtype(), DType::BF16);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Init {
    /// Where random values are drawn from.
    pub rng: Rng,
    /// Where parameters are stored.
    pub device: Device,
    /// What parameters consist of: a float.
    pub dtype: DType,
}

/// Which side of a weight He's initialisation keeps the variance of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fan {
    /// What flows forward: the number of inputs.
    #[default]
    In,
    /// What flows backward: the number of outputs.
    Out,
}

impl Init {
    /// Parameters of dtype `f32` on `device`, from the stream `seed`.
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # let device = zyx::runtime().device("reference")?;
    /// assert_eq!(Init::new(7, &device).normal([2], 1.0)?.shape().dims(), [2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn new(seed: u64, device: &Device) -> Init {
        Init { rng: Rng::seed(seed), device: device.clone(), dtype: DType::F32 }
    }

    /// Uniform on `[-bound, bound)`.
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let mut init = Init::new(0, &device);
    /// # let largest = |x: Tensor| x.abs().max(..)?.item::<f32>();
    /// assert!(largest(init.uniform([1000], 0.5)?)? <= 0.5);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the bound is not finite, the dtype is not a float, or the device fails.
    #[track_caller]
    pub fn uniform(&mut self, shape: impl Into<Shape>, bound: f64) -> Result<Tensor> {
        let bound = bound.abs();
        let x = Tensor::rand_range(-bound, bound, shape, self.dtype, &mut self.rng, &self.device)?;
        stored(x)
    }

    /// Normal with mean 0 and standard deviation `std`.
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let mut init = Init::new(0, &device);
    /// # let deviation = |x: Tensor| x.std(.., 0)?.item::<f32>();
    /// assert!((deviation(init.normal([1000], 2.0)?)? - 2.0).abs() < 0.2);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the dtype is not a float, or the device fails.
    #[track_caller]
    pub fn normal(&mut self, shape: impl Into<Shape>, std: f64) -> Result<Tensor> {
        let x = Tensor::randn(shape, self.dtype, &mut self.rng, &self.device)?;
        stored(x.mul(std)?)
    }

    /// What linear layers and convolutions start with in PyTorch: uniform with the bound
    /// `1 / sqrt(fan_in)`, which is He's initialisation (2015) for leaky ReLUs of slope sqrt(5).
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let mut init = Init::new(0, &device);
    /// # let largest = |x: Tensor| x.abs().max(..)?.item::<f32>();
    /// assert!(largest(init.fan_in_uniform([100, 16], 16)?)? <= 0.25);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Init::uniform`].
    #[track_caller]
    pub fn fan_in_uniform(&mut self, shape: impl Into<Shape>, fan_in: usize) -> Result<Tensor> {
        self.uniform(shape, 1.0 / (fan_in.max(1) as f64).sqrt())
    }

    /// Every element equal to `x`.
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = Init::new(0, &device);
    /// assert_eq!(init.full([2], 0.5)?.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn full(&self, shape: impl Into<Shape>, x: f64) -> Result<Tensor> {
        stored(Tensor::zeros(shape, self.dtype, &self.device).add(x)?)
    }

    /// Glorot's (2010): uniform with the variance `gain^2 2 / (inputs + outputs)`.
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let mut init = Init::new(0, &device);
    /// # let largest = |x: Tensor| x.abs().max(..)?.item::<f32>();
    /// // The variance is 2 / (30 + 20), that of a uniform variable a third of its bound's square.
    /// assert!(largest(init.xavier_uniform([30, 20], 1.0)?)? <= 0.12f32.sqrt());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, or as [`Init::uniform`].
    #[track_caller]
    pub fn xavier_uniform(&mut self, shape: impl Into<Shape>, gain: f64) -> Result<Tensor> {
        let shape = shape.into();
        let [inputs, outputs] = fans("xavier_uniform", &shape)?;
        self.uniform(shape, gain * (6.0 / (inputs + outputs).max(1.0)).sqrt())
    }

    /// Glorot's (2010): normal with the variance `gain^2 2 / (inputs + outputs)`.
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let mut init = Init::new(0, &device);
    /// # let deviation = |x: Tensor| x.std(.., 0)?.item::<f32>();
    /// assert!((deviation(init.xavier_normal([30, 20], 1.0)?)? - 0.2).abs() < 0.02);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, or as [`Init::normal`].
    #[track_caller]
    pub fn xavier_normal(&mut self, shape: impl Into<Shape>, gain: f64) -> Result<Tensor> {
        let shape = shape.into();
        let [inputs, outputs] = fans("xavier_normal", &shape)?;
        self.normal(shape, gain * (2.0 / (inputs + outputs).max(1.0)).sqrt())
    }

    /// He's (2015): uniform with the variance `gain^2 / fan`; the gain of ReLU is sqrt(2).
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let mut init = Init::new(0, &device);
    /// # let largest = |x: Tensor| x.abs().max(..)?.item::<f32>();
    /// let weight = init.kaiming_uniform([30, 12], 1.0, zyx::nn::Fan::In)?;
    /// assert!(largest(weight)? <= 0.5);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, or as [`Init::uniform`].
    #[track_caller]
    pub fn kaiming_uniform(
        &mut self,
        shape: impl Into<Shape>,
        gain: f64,
        fan: Fan,
    ) -> Result<Tensor> {
        let shape = shape.into();
        let fans = fans("kaiming_uniform", &shape)?;
        self.uniform(shape, gain * (3.0 / fans[fan as usize].max(1.0)).sqrt())
    }

    /// He's (2015): normal with the variance `gain^2 / fan`; the gain of ReLU is sqrt(2).
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let mut init = Init::new(0, &device);
    /// # let deviation = |x: Tensor| x.std(.., 0)?.item::<f32>();
    /// let weight = init.kaiming_normal([30, 16], 1.0, zyx::nn::Fan::In)?;
    /// assert!((deviation(weight)? - 0.25).abs() < 0.04);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, or as [`Init::normal`].
    #[track_caller]
    pub fn kaiming_normal(
        &mut self,
        shape: impl Into<Shape>,
        gain: f64,
        fan: Fan,
    ) -> Result<Tensor> {
        let shape = shape.into();
        let fans = fans("kaiming_normal", &shape)?;
        self.normal(shape, gain * (1.0 / fans[fan as usize].max(1.0)).sqrt())
    }

    /// Normal with mean 0 and standard deviation `std`, drawn again outside `[-cut, cut]`.
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let mut init = Init::new(0, &device);
    /// # let largest = |x: Tensor| x.abs().max(..)?.item::<f32>();
    /// assert!(largest(init.trunc_normal([1000], 1.0, 1.5)?)? <= 1.5);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `std` or `cut` is not a positive finite number, or as [`Init::normal`].
    #[track_caller]
    pub fn trunc_normal(&mut self, shape: impl Into<Shape>, std: f64, cut: f64) -> Result<Tensor> {
        let limit = cut / std;
        if !(std > 0.0 && cut > 0.0 && limit.is_finite() && limit > 0.0) {
            let reason = format!("standard deviation {std} and limit {cut}");
            return Err(Init::refuse("trunc_normal", reason));
        }
        let mut draw = || loop {
            // From the normal where most of it is within the limits, else from the uniform.
            let x = if limit > 1.0 {
                gaussian(&mut self.rng)
            } else {
                let x = (2.0 * unit(&mut self.rng) - 1.0) * limit;
                if unit(&mut self.rng) > (-x * x / 2.0).exp() {
                    continue;
                }
                x
            };
            if x.abs() <= limit {
                return x * std;
            }
        };
        let shape = shape.into();
        let data = (0..small("trunc_normal", &shape)?).map(|_| draw()).collect();
        self.given(shape, data)
    }

    /// A matrix with orthonormal rows, or columns if it is taller than wide, times `gain` (Saxe et
    /// al. 2014); of more axes, all but the first are its columns.
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let mut init = Init::new(0, &device);
    /// # let largest = |x: Tensor| x.abs().max(..)?.item::<f32>();
    /// let rows = init.orthogonal([2, 4], 1.0)?;
    /// let gap = rows.matmul(&rows.t())?.sub(init.eye(2, 2)?)?;
    /// assert!(largest(gap)? < 1e-5);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, or as [`Init::normal`].
    #[track_caller]
    pub fn orthogonal(&mut self, shape: impl Into<Shape>, gain: f64) -> Result<Tensor> {
        let shape = shape.into();
        fans("orthogonal", &shape)?;
        let n = small("orthogonal", &shape)?;
        let rows = shape[0];
        let columns = n.checked_div(rows).unwrap_or(0);
        let (short, long) = (rows.min(columns), rows.max(columns));
        // Gram and Schmidt's process on random vectors, each freed twice of those before it,
        // which is enough to be orthogonal to rounding.
        let mut basis: Vec<Vec<f64>> = Vec::with_capacity(short);
        for _ in 0..short {
            let mut vector: Vec<f64> = (0..long).map(|_| gaussian(&mut self.rng)).collect();
            for earlier in basis.iter().chain(&basis) {
                let along = dot(earlier, &vector);
                vector.iter_mut().zip(earlier).for_each(|(x, e)| *x -= along * e);
            }
            let norm = dot(&vector, &vector).sqrt();
            vector.iter_mut().for_each(|x| *x /= norm);
            basis.push(vector);
        }
        let element = |i: usize| {
            let (row, column) = (i / columns, i % columns);
            gain * if rows <= columns { basis[row][column] } else { basis[column][row] }
        };
        let data = (0..n).map(element).collect();
        self.given(shape, data)
    }

    /// The matrix with ones on the diagonal.
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = Init::new(0, &device);
    /// assert_eq!(init.eye(2, 3)?.to_vec::<f32>()?, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the dtype is not a float, or the device fails.
    #[track_caller]
    pub fn eye(&self, rows: usize, columns: usize) -> Result<Tensor> {
        let row = Tensor::iota(rows, DType::I64, &self.device).unsqueeze(1)?;
        let ones = row.eq(Tensor::iota(columns, DType::I64, &self.device))?;
        stored(ones.cast(self.dtype))
    }

    /// A convolution's weight `[out, in, ..]` that passes its first channels on unchanged.
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = Init::new(0, &device);
    /// // Two channels pass a window of three unchanged.
    /// let weight = init.dirac([2, 2, 3])?.to_vec::<f32>()?;
    /// assert_eq!(weight, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 3, or as [`Init::full`].
    #[track_caller]
    pub fn dirac(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        if shape.len() < 3 {
            return Err(Init::refuse("dirac", format!("needs a kernel, not shape {shape}")));
        }
        let n = small("dirac", &shape)?;
        let mut data = vec![0.0; n];
        let centre: usize = shape[2..].iter().fold(0, |at, &extent| at * extent + extent / 2);
        let kernel: usize = shape[2..].iter().product();
        for channel in 0..shape[0].min(shape[1]) {
            if let Some(x) = data.get_mut((channel * shape[1] + channel) * kernel + centre) {
                *x = 1.0;
            }
        }
        self.given(shape, data)
    }

    /// A matrix normal with standard deviation `std`, in each column of which the share `zeros`
    /// is 0 (Martens 2010).
    ///
    /// ```
    /// # use zyx::nn::Init;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let mut init = Init::new(0, &device);
    /// let weight = init.sparse(10, 4, 0.5, 1.0)?;
    /// assert_eq!(weight.ne(0)?.sum(..)?.item::<i64>()?, 20);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `zeros` is not in `0 ..= 1`, or as [`Init::normal`].
    #[track_caller]
    pub fn sparse(&mut self, rows: usize, columns: usize, zeros: f64, std: f64) -> Result<Tensor> {
        if !(0.0..=1.0).contains(&zeros) {
            return Err(Init::refuse("sparse", format!("{zeros} is not a share")));
        }
        let n = small("sparse", &Shape::from([rows, columns]))?;
        let mut data: Vec<f64> = (0..n).map(|_| gaussian(&mut self.rng) * std).collect();
        let dropped = (zeros * rows as f64).ceil() as usize;
        // Without columns there may be more rows than there is memory for their order.
        let mut order: Vec<usize> = if n == 0 { Vec::new() } else { (0..rows).collect() };
        for column in 0..columns {
            // The first places of a shuffle.
            for place in 0..dropped.min(order.len()) {
                let other = place + self.rng.below((rows - place) as u64) as usize;
                order.swap(place, other);
                data[order[place] * columns + column] = 0.0;
            }
        }
        self.given([rows, columns].into(), data)
    }

    /// These numbers in the dtype of parameters.
    #[track_caller]
    fn given(&self, shape: Shape, data: Vec<f64>) -> Result<Tensor> {
        if !self.dtype.is_float() {
            let reason = format!("parameters of dtype {}", self.dtype);
            return Err(Init::refuse("Init", reason));
        }
        // Devices that have no f64 do not see one.
        stored(match self.dtype {
            DType::F64 => Tensor::from_slice(&data, shape, &self.device)?,
            dtype => {
                let data: Vec<f32> = data.into_iter().map(|x| x as f32).collect();
                Tensor::from_slice(&data, shape, &self.device)?.cast(dtype)
            }
        })
    }

    /// An error about an argument of a layer, at the caller.
    #[track_caller]
    pub(crate) fn refuse(op: &'static str, reason: String) -> Error {
        Error::Argument { op, reason, location: Location::caller() }
    }
}

/// The factor that an activation takes from the standard deviation of what passes it, as PyTorch
/// recommends: for the methods of [`Init`] that take a gain.
///
/// ```
/// assert_eq!(zyx::nn::gain("relu"), Some(2f64.sqrt()));
/// assert_eq!(zyx::nn::gain("no such thing"), None);
/// ```
pub fn gain(activation: &str) -> Option<f64> {
    Some(match activation {
        "linear" | "identity" | "conv" | "sigmoid" => 1.0,
        "tanh" => 5.0 / 3.0,
        "relu" => 2f64.sqrt(),
        "leaky_relu" => (2.0 / (1.0 + 0.01f64 * 0.01)).sqrt(),
        "selu" => 0.75,
        _ => return None,
    })
}

/// What `f` does, its errors and operations at the caller of the function that calls this: closures
/// and calls within calls would put them into this crate.
#[track_caller]
pub(crate) fn located<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    let here = Location::caller();
    attribute(here, f).map_err(|error| error.at(here))
}

/// Errors that name the layer.
pub(crate) trait OfLayer {
    /// With the name of the layer that has this parameter, if its model was walked over.
    fn of_layer<'a>(self, parameter: impl Into<Option<&'a Param>>) -> Self;
}

impl<T> OfLayer for Result<T> {
    fn of_layer<'a>(self, parameter: impl Into<Option<&'a Param>>) -> Result<T> {
        let parameter = parameter.into();
        self.map_err(|error| match parameter {
            Some(parameter) => parameter.within_layer(error),
            None => error,
        })
    }
}

/// Inputs and outputs of a weight `[out, in, ..]`, each times the extents of the kernel.
#[track_caller]
fn fans(op: &'static str, shape: &Shape) -> Result<[f64; 2]> {
    if shape.len() < 2 {
        let reason = format!("the inputs of shape {shape} are not known: it needs two axes");
        return Err(Init::refuse(op, reason));
    }
    let kernel: f64 = shape[2..].iter().map(|&extent| extent as f64).product();
    Ok([shape[1] as f64 * kernel, shape[0] as f64 * kernel])
}

/// The number of elements, if the host can hold them.
#[track_caller]
fn small(op: &'static str, shape: &Shape) -> Result<usize> {
    match shape.checked_numel() {
        Some(n) if n as u64 <= 1 << 32 => Ok(n),
        _ => Err(Init::refuse(op, format!("{shape} has more elements than are drawn one by one"))),
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Uniform on `(0, 1]`.
fn unit(rng: &mut Rng) -> f64 {
    ((rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// Standard normal, by the transform of Box and Muller.
fn gaussian(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * unit(rng).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(rng)).cos()
}

/// Computed now, so that the first training step is like all others.
#[track_caller]
fn stored(x: Tensor) -> Result<Tensor> {
    x.realize()?;
    Ok(x)
}
