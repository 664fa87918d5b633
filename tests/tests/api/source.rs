//! Random arguments: mostly ones that fit each other, sometimes extreme ones.
//!
//! Whatever could make a computation large (an extent near the largest number, a shape without
//! data behind it) is noted in [`Source::large`], so that results which depend on it are built
//! but not computed.

use zyx_tests::Rng;
use zyx_tests::zyx_core::{
    Conv1dOptions, Conv2dOptions, CrossEntropy, DType, Device, Operand, Pool2d, Reduction,
    Rng as Draws, Shape, Tensor,
};

/// A stream of arguments that is a function of its seed.
pub(crate) struct Source {
    pub(crate) rng: Rng,
    pub(crate) device: Device,
    /// A second device, whose tensors do not go with those of the first.
    other: Device,
    /// The generator that random tensors draw from.
    pub(crate) draws: Draws,
    /// Whether an argument was drawn that no memory suffices for.
    pub(crate) large: bool,
    /// Whether a result was computed.
    pub(crate) computed: bool,
    /// Whether an operand is on the other device.
    pub(crate) foreign: bool,
    /// Whether arguments are such that two devices must agree about the result: nothing that no
    /// memory suffices for, and numbers whose sums are the same in any order.
    tame: bool,
    /// What was drawn, for the message of a failure.
    pub(crate) log: Vec<String>,
}

/// An operand of any kind a binary method takes.
#[derive(Debug)]
pub(crate) enum Any {
    Tensor(Tensor),
    Float(f64),
    Int(i64),
    Unsigned(u64),
    Bool(bool),
}

impl Operand for Any {
    fn resolve(&self, like: &Tensor) -> Tensor {
        match self {
            Any::Tensor(x) => x.resolve(like),
            Any::Float(x) => x.resolve(like),
            Any::Int(x) => x.resolve(like),
            Any::Unsigned(x) => x.resolve(like),
            Any::Bool(x) => x.resolve(like),
        }
    }

    fn is_number(&self) -> bool {
        !matches!(self, Any::Tensor(_))
    }
}

impl Source {
    pub(crate) fn new(seed: u64, device: &Device, other: &Device) -> Source {
        Source {
            rng: Rng::new(seed),
            device: device.clone(),
            other: other.clone(),
            draws: Draws::seed(seed),
            large: false,
            computed: false,
            foreign: false,
            tame: false,
            log: Vec::new(),
        }
    }

    /// The same without extremes.
    pub(crate) fn tame(seed: u64, device: &Device, other: &Device) -> Source {
        Source { tame: true, ..Source::new(seed, device, other) }
    }

    /// Whether the next argument is to be an extreme one, `n` times less often than not.
    fn extreme(&mut self, n: usize) -> bool {
        self.one_in(n) && !self.tame
    }

    fn note<T: std::fmt::Debug>(&mut self, what: &str, x: T) -> T {
        self.log.push(format!("{what} {x:?}"));
        x
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        self.rng.pick(from).clone()
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.rng.one_in(n)
    }

    /// A number of elements, of axes, of classes.
    pub(crate) fn size(&mut self) -> usize {
        let size = match self.extreme(12) {
            true => {
                self.pick(&[usize::MAX, usize::MAX / 2 + 1, isize::MAX as usize, usize::MAX / 3])
            }
            false => self.pick(&[0, 1, 1, 2, 2, 3, 4, 5]),
        };
        self.large |= size > 1000;
        self.note("size", size)
    }

    pub(crate) fn pair(&mut self) -> [usize; 2] {
        [self.size(), self.size()]
    }

    pub(crate) fn axis(&mut self) -> isize {
        let axis = match self.extreme(12) {
            true => self.pick(&[isize::MIN, isize::MAX, isize::MIN + 1, -17, 17, 5, -6]),
            false => self.pick(&[-1, -1, -2, 0, 0, 1, 1, 2, 3, -3]),
        };
        self.note("axis", axis)
    }

    /// A list of axes: none, some, repeated ones.
    pub(crate) fn axes(&mut self) -> Vec<isize> {
        let n = self.pick(&[0, 1, 1, 1, 2, 2, 3]);
        (0..n).map(|_| self.axis()).collect()
    }

    pub(crate) fn number(&mut self) -> f64 {
        let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE];
        let number = match self.extreme(4) {
            true => self.pick(&special),
            // No small exponent of a norm, whose root would multiply roundings.
            false if self.tame => self.pick(&[0.0, 0.25, 0.5, 1.0, 2.0, -1.0, 3.0]),
            false => self.pick(&[0.0, -0.0, 1e-5, 0.5, 1.0, 2.0, -1.0, 3.0, 1e10]),
        };
        self.note("number", number)
    }

    pub(crate) fn int(&mut self) -> i64 {
        let all = [0, 1, -1, 2, 3, 7, 300, i64::MIN, i64::MAX];
        let int = self.pick(if self.tame { &all[..6] } else { &all });
        self.note("int", int)
    }

    pub(crate) fn dtype(&mut self) -> DType {
        let dtype = if self.one_in(2) { DType::F32 } else { self.pick(DType::ALL) };
        self.note("dtype", dtype)
    }

    pub(crate) fn reduction(&mut self) -> Reduction {
        self.pick(&[Reduction::Mean, Reduction::Sum, Reduction::None])
    }

    /// The extents of a tensor, now and then impossible ones.
    pub(crate) fn shape(&mut self) -> Vec<usize> {
        if self.extreme(25) {
            self.large = true;
            let huge = [usize::MAX, usize::MAX / 2, 1 << 40, 1 << 32, 2, 1, 0];
            let rank = self.pick(&[1, 2, 2, 3, 4, 16, 17, 33, 70]);
            let dims = (0..rank).map(|_| self.pick(&huge[..])).collect::<Vec<usize>>();
            return self.note("shape", dims);
        }
        let rank = self.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4, 5]);
        let dims = (0..rank).map(|_| self.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4])).collect();
        self.note("shape", dims)
    }

    /// A tensor of any shape and dtype, with data where it is small.
    pub(crate) fn x(&mut self) -> Tensor {
        let (shape, dtype) = (self.shape(), self.dtype());
        self.tensor(shape, dtype)
    }

    /// A tensor that holds floats.
    pub(crate) fn floats(&mut self) -> Tensor {
        let shape = self.shape();
        let dtype = self.pick(&[DType::F32, DType::F64, DType::F16, DType::BF16]);
        self.tensor(shape, dtype)
    }

    pub(crate) fn tensor(&mut self, shape: Vec<usize>, dtype: DType) -> Tensor {
        let shape = Shape::from(shape);
        let device = if self.one_in(60) {
            self.foreign = true;
            self.other.clone()
        } else {
            self.device.clone()
        };
        let small = shape.checked_numel().filter(|&n| n <= 2000 && shape.is_possible());
        let Some(n) = small else {
            self.large = true;
            let zeros = Tensor::zeros(shape, dtype, &device);
            return if self.one_in(2) { zeros.tracked() } else { zeros };
        };
        let finite = self.tame && !self.one_in(4);
        let data: Vec<f64> = (0..n)
            .map(|_| match self.rng.below(8) {
                _ if finite => self.rng.range(-24, 24) as f64 / 8.0,
                0 if self.tame => self.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0]),
                0 => self.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e30]),
                1 => self.rng.range(-3, 3) as f64,
                _ => self.rng.between(-3.0, 3.0),
            })
            .collect();
        let x = Tensor::from_slice(&data, shape, &device).expect("the data fits its shape");
        let x = x.cast(dtype);
        match self.rng.below(3) {
            0 => x,
            1 => x.tracked(),
            _ => {
                x.realize().expect("a cast can be computed");
                x
            }
        }
    }

    /// A tensor whose shape is related to that of `x`, or not.
    pub(crate) fn partner(&mut self, x: &Tensor) -> Tensor {
        let dims = x.shape().to_vec();
        let shape = match self.rng.below(8) {
            0 => self.shape(),
            1 | 2 => dims,
            3 => dims.iter().map(|&d| if self.one_in(2) { 1 } else { d }).collect(),
            4 => dims.iter().enumerate().filter(|&(i, _)| i != 1).map(|(_, &d)| d).collect(),
            5 => dims.get(1).map_or(vec![], |&d| vec![d]),
            6 => dims.iter().rev().copied().collect(),
            _ => dims.last().map_or(vec![], |&d| vec![d]),
        };
        let dtype = if self.one_in(2) { x.dtype() } else { self.dtype() };
        self.tensor(shape, dtype)
    }

    pub(crate) fn maybe_partner(&mut self, x: &Tensor) -> Option<Tensor> {
        if self.one_in(2) { None } else { Some(self.partner(x)) }
    }

    /// Numbers that could be positions in `x`, usually of an integer dtype.
    pub(crate) fn index(&mut self, x: &Tensor) -> Tensor {
        let ints = [DType::I64, DType::I64, DType::I32, DType::U8, DType::U64, DType::F32];
        let shape = self.partner(x).shape().to_vec();
        let dtype = self.pick(&ints);
        self.tensor(shape, DType::F32).mul(2.0).expect("a number").cast(dtype)
    }

    pub(crate) fn operand(&mut self, x: &Tensor) -> Any {
        let any = match self.rng.below(8) {
            0 => Any::Float(self.number()),
            1 => Any::Int(self.int()),
            2 => Any::Unsigned(u64::MAX),
            3 => Any::Bool(true),
            _ => return Any::Tensor(self.partner(x)),
        };
        self.note("operand", any)
    }

    /// One number or pair per axis of `x`, or another number of them.
    pub(crate) fn per_axis<T>(&mut self, x: &Tensor, f: impl Fn(&mut Source) -> T) -> Vec<T> {
        let n = if self.one_in(8) { self.rng.below(6) } else { x.rank() };
        (0..n).map(|_| f(self)).collect()
    }

    pub(crate) fn pool(&mut self) -> Pool2d {
        let mut pool = Pool2d::new(self.pair());
        if self.one_in(2) {
            pool = Pool2d { stride: self.pair(), padding: self.pair(), ..pool };
        }
        if self.one_in(4) { Pool2d { dilation: self.pair(), ..pool } } else { pool }
    }

    pub(crate) fn conv2d(&mut self) -> Conv2dOptions {
        let mut options = Conv2dOptions::default();
        if self.one_in(2) {
            options.stride = self.pair();
            options.padding = self.pair();
        }
        if self.one_in(4) {
            options.dilation = self.pair();
            options.groups = self.size();
        }
        options
    }

    pub(crate) fn conv1d(&mut self) -> Conv1dOptions {
        let Conv2dOptions { stride, padding, dilation, groups } = self.conv2d();
        Conv1dOptions { stride: stride[0], padding: padding[0], dilation: dilation[0], groups }
    }

    /// An image and a weight that usually fit each other.
    pub(crate) fn image(&mut self, spatial: usize) -> (Tensor, Tensor) {
        let channels = self.pick(&[1, 2, 2, 4]);
        let extents = |s: &mut Source, of: &[usize]| -> Vec<usize> {
            (0..spatial).map(|_| s.pick(of)).collect()
        };
        let image = [vec![self.pick(&[0, 1, 2]), channels], extents(self, &[1, 3, 4, 5])].concat();
        let weight =
            [vec![self.pick(&[0, 1, 2, 4]), channels], extents(self, &[0, 1, 2, 3])].concat();
        let (a, b) = (self.dtype(), self.dtype());
        let (image, weight) = (self.tensor(image, a), self.tensor(weight, b));
        match self.rng.below(10) {
            0 => (self.x(), weight),
            1 => (image, self.x()),
            _ => (image, weight),
        }
    }

    pub(crate) fn cross_entropy(&mut self) -> CrossEntropy {
        CrossEntropy {
            ignore_index: self.pick(&[None, None, Some(0), Some(i64::MIN)]),
            label_smoothing: self.pick(&[0.0, 0.0, 0.1, 1.0, -1.0, f64::NAN]),
            reduction: self.reduction(),
        }
    }
}
