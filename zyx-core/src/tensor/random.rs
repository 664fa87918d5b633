//! Random tensors from an explicit, counter-based generator.
//!
//! The generator is Threefry2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel Random
//! Numbers: As Easy as 1, 2, 3", SC 2011): a keyed bijection of 64-bit counters. Element `i` of a
//! draw is made from block `counter + i`, so a draw is a pure function of key and counter, the
//! blocks are computed in any order on any device, and two draws of 5 continue where one draw of
//! 10 would. It is written in integer ops of the graph, which are exact: bits, uniform numbers,
//! integers and masks are the same on every backend; normal numbers are equal up to the accuracy
//! of `log` and `cos` there.
//!
//! Key and counter are arguments of plans, not part of them: the next step's dropout compiles
//! nothing. One block of 64 bits serves one element whatever its dtype, so the position in the
//! stream depends on the number of elements drawn alone.

use super::Tensor;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::hal::host_room;
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::runtime::Device;
use crate::scalar::Scalar;
use crate::shape::Shape;
use std::panic::Location;

/// The state of a random stream: a key and how many blocks were drawn.
///
/// ```
/// use zyx::{DType, Rng, Tensor};
/// let device = zyx::device()?;
/// let mut rng = Rng::seed(42);
/// let x = Tensor::rand([2, 3], DType::F32, &mut rng, &device)?;
/// let again = Tensor::rand([6], DType::F32, &mut Rng::seed(42), &device)?;
/// assert_eq!(x.to_vec::<f32>()?, again.to_vec::<f32>()?);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rng {
    key: [u32; 2],
    counter: u64,
}

/// Rotation distances of the two alternating groups of four rounds.
const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
/// The parity word of the key schedule, from Skein.
const PARITY: u32 = 0x1bd1_1bda;

impl Rng {
    /// The stream number `seed`, from its start.
    ///
    /// ```
    /// # use zyx::Rng;
    /// assert_eq!(Rng::seed(1).next_u64(), Rng::seed(1).next_u64());
    /// ```
    pub fn seed(seed: u64) -> Rng {
        Rng::at([seed as u32, (seed >> 32) as u32], 0)
    }

    /// A stream by its key, continued after `counter` blocks: the inverse of [`Rng::key`] and
    /// [`Rng::counter`], for saving and restoring.
    ///
    /// ```
    /// # use zyx::Rng;
    /// let mut rng = Rng::seed(1);
    /// rng.next_u64();
    /// let mut again = Rng::at(rng.key(), rng.counter());
    /// assert_eq!(again.next_u64(), rng.next_u64());
    /// ```
    pub fn at(key: [u32; 2], counter: u64) -> Rng {
        Rng { key, counter }
    }

    /// What distinguishes this stream from others.
    ///
    /// ```
    /// # use zyx::Rng;
    /// assert_ne!(Rng::seed(1).key(), Rng::seed(2).key());
    /// ```
    pub fn key(&self) -> [u32; 2] {
        self.key
    }

    /// Blocks drawn so far.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let mut rng = Rng::seed(1);
    /// Tensor::rand([10], DType::F32, &mut rng, &device)?;
    /// assert_eq!(rng.counter(), 10);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// A new stream that is independent of this one; takes one block of this one.
    ///
    /// ```
    /// # use zyx::Rng;
    /// let mut rng = Rng::seed(1);
    /// let (mut a, mut b) = (rng.split(), rng.split());
    /// assert_ne!(a.next_u64(), b.next_u64());
    /// ```
    #[must_use]
    pub fn split(&mut self) -> Rng {
        let [x, y] = self.next_block();
        Rng::at([x, y], 0)
    }

    /// 64 random bits, on the host; takes one block.
    ///
    /// ```
    /// # use zyx::Rng;
    /// let mut rng = Rng::seed(1);
    /// assert_ne!(rng.next_u64(), rng.next_u64());
    /// ```
    pub fn next_u64(&mut self) -> u64 {
        let [x, y] = self.next_block();
        (u64::from(x) << 32) | u64::from(y)
    }

    /// A random integer below `n` on the host, or 0 if `n` is 0; takes one block.
    ///
    /// ```
    /// # use zyx::Rng;
    /// let mut rng = Rng::seed(1);
    /// assert!((0..100).all(|_| rng.below(6) < 6));
    /// ```
    pub fn below(&mut self, n: u64) -> u64 {
        // The high half of the product; the bias is at most n / 2^64.
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A number of `0 .. 1` on the host, a multiple of 2^-53; takes one block.
    ///
    /// ```
    /// # use zyx::Rng;
    /// let mut rng = Rng::seed(1);
    /// let mean = (0..1000).map(|_| rng.next_f64()).sum::<f64>() / 1000.0;
    /// assert!((mean - 0.5).abs() < 0.05);
    /// ```
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn next_block(&mut self) -> [u32; 2] {
        let block = threefry(self.key, [self.counter as u32, (self.counter >> 32) as u32]);
        self.skip(1);
        block
    }

    fn skip(&mut self, blocks: usize) {
        self.counter = self.counter.wrapping_add(blocks as u64);
    }
}

fn schedule(key: [u32; 2]) -> [u32; 3] {
    [key[0], key[1], PARITY ^ key[0] ^ key[1]]
}

/// The block function on the host.
fn threefry(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    let keys = schedule(key);
    let mut x = counter[0].wrapping_add(keys[0]);
    let mut y = counter[1].wrapping_add(keys[1]);
    for group in 0..5 {
        for distance in ROTATIONS[group % 2] {
            x = x.wrapping_add(y);
            y = y.rotate_left(distance) ^ x;
        }
        x = x.wrapping_add(keys[(group + 1) % 3]);
        y = y.wrapping_add(keys[(group + 2) % 3]).wrapping_add(group as u32 + 1);
    }
    [x, y]
}

/// The block function as a graph, on counters of dtype `u32`.
#[track_caller]
fn threefry_graph(key: [u32; 2], counter: [Tensor; 2]) -> [Tensor; 2] {
    let keys = schedule(key).map(|word| counter[0].argument(Scalar::from(word)));
    let add = |x: &Tensor, y: &Tensor| x.combine(BinaryOp::Add, y);
    let number = |x: u32| keys[0].constant(Scalar::from(x));
    let [mut x, mut y] = counter;
    (x, y) = (add(&x, &keys[0]), add(&y, &keys[1]));
    for group in 0..5 {
        for distance in ROTATIONS[group % 2] {
            x = add(&x, &y);
            let high = y.combine(BinaryOp::Shl, &number(distance));
            let low = y.combine(BinaryOp::Shr, &number(32 - distance));
            y = high.combine(BinaryOp::Or, &low).combine(BinaryOp::Xor, &x);
        }
        x = add(&x, &keys[(group + 1) % 3]);
        // The round number is added to the key first: that sum is the same for all elements.
        y = add(&y, &add(&keys[(group + 2) % 3], &number(group as u32 + 1)));
    }
    [x, y]
}

impl Tensor {
    /// Two words of random bits per element of `shape`, taking as many blocks of `rng`.
    #[track_caller]
    fn random_words(
        op: &'static str,
        shape: Shape,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<[Tensor; 2]> {
        if !shape.is_possible() {
            let reason = format!("{shape} has too many elements or axes");
            return Err(Tensor::argument_error(op, reason));
        }
        let n = shape.numel();
        let wide = Tensor::iota(n, DType::I64, device).reshape_unchecked(shape);
        let index = wide.cast(DType::U32);
        let [start_low, start_high] = [rng.counter as u32, (rng.counter >> 32) as u32]
            .map(|word| index.argument(Scalar::from(word)));
        // A sum of 64 bits in words of 32: the low word carries if it came out smaller.
        let low = index.combine(BinaryOp::Add, &start_low);
        let carry = low.combine(BinaryOp::Lt, &start_low).cast(DType::U32);
        let mut high = start_high.combine(BinaryOp::Add, &carry);
        if u32::try_from(n).is_err() {
            let shift = wide.constant(Scalar::from(32i64));
            let top = wide.combine(BinaryOp::Shr, &shift).cast(DType::U32);
            high = high.combine(BinaryOp::Add, &top);
        }
        let _here = composed();
        let words = threefry_graph(rng.key, [low, high]);
        rng.skip(n);
        Ok(words)
    }

    /// The top `n` bits of a word as a number.
    #[track_caller]
    fn top_bits(&self, n: u32) -> Tensor {
        self.combine(BinaryOp::Shr, &self.constant(Scalar::from(32 - n)))
    }

    #[track_caller]
    fn check_random_float(op: &'static str, dtype: DType) -> Result<()> {
        if dtype.is_float() {
            return Ok(());
        }
        let reason = format!("gives floats, not {dtype}; see `randint` and `bernoulli`");
        Err(Tensor::argument_error(op, reason))
    }

    /// Uniform on `[0, 1)`: all multiples of 2^-24 (`f32`; 2^-53 for `f64`, 2^-11 for `f16`, 2^-8
    /// for `bf16`) are equally likely.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::rand([100], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| (0.0..1.0).contains(x)));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn rand(
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        Tensor::check_random_float("rand", dtype)?;
        let words = Tensor::random_words("rand", shape.into(), rng, device)?;
        Ok(Tensor::unit(&words, dtype))
    }

    #[track_caller]
    fn unit([first, second]: &[Tensor; 2], dtype: DType) -> Tensor {
        let scaled = |x: Tensor, power: i32| {
            let scale = x.like(2f64.powi(power));
            x.combine(BinaryOp::Mul, &scale)
        };
        let _here = composed();
        match dtype {
            DType::F64 => {
                let high = scaled(first.top_bits(27).cast(dtype), 26);
                scaled(high.combine(BinaryOp::Add, &second.top_bits(26).cast(dtype)), -53)
            }
            DType::F16 => scaled(first.top_bits(11).cast(dtype), -11),
            DType::BF16 => scaled(first.top_bits(8).cast(dtype), -8),
            _ => scaled(first.top_bits(24).cast(dtype), -24),
        }
    }

    /// Uniform on `[low, high)`; rounding can yield `high` itself.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::rand_range(-2.0, 2.0, [100], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| (-2.0..=2.0).contains(x)));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `dtype` is not a float, a bound is not finite, `low > high`, or the shape is too
    /// large.
    #[track_caller]
    pub fn rand_range(
        low: f64,
        high: f64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        Tensor::check_random_float("rand_range", dtype)?;
        if !(low <= high && (high - low).is_finite()) {
            let reason = format!("{low} to {high} is not a finite range");
            return Err(Tensor::argument_error("rand_range", reason));
        }
        let words = Tensor::random_words("rand_range", shape.into(), rng, device)?;
        let unit = Tensor::unit(&words, dtype);
        unit.mul(high - low)?.add(low).named("rand_range")
    }

    /// Normal with mean 0 and variance 1, by the transform of Box and Muller (1958):
    /// `sqrt(-2 log u) cos(2 pi v)` with `u` in `(0, 1]`, computed in `f32` for halves. The largest
    /// number is about 5.8 in `f32` (24 bits of `u`) and 6.7 in `f64` (32 bits).
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::randn([1000], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.mean(..)?.item::<f32>()?.abs() < 0.1);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn randn(
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        Tensor::check_random_float("randn", dtype)?;
        let [first, second] = Tensor::random_words("randn", shape.into(), rng, device)?;
        let (wide, bits) = match dtype {
            DType::F64 => (dtype, 32),
            _ => (DType::F32, 24),
        };
        let scale = 2f64.powi(-bits);
        let top = |word: &Tensor| match bits {
            32 => word.cast(wide),
            _ => word.top_bits(24).cast(wide),
        };
        let times = |x: &Tensor, factor: f64| x.combine(BinaryOp::Mul, &x.like(factor));
        let _here = composed();
        let (u, v) = (top(&first), top(&second));
        let u = times(&u.combine(BinaryOp::Add, &u.like(1.0)), scale);
        let radius = times(&u.log(), -2.0).sqrt();
        let angle = times(&v, std::f64::consts::TAU * scale);
        Ok(radius.combine(BinaryOp::Mul, &angle.cos()).cast(dtype))
    }

    /// Integers from `low` up to but not including `high`, equally likely up to `range / 2^64`.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::randint(1, 7, [100], DType::U8, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<u8>()?.iter().all(|x| (1..7).contains(x)));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `dtype` is not an integer type or does not hold the range, the range is empty, or the
    /// shape is too large.
    #[track_caller]
    pub fn randint(
        low: i64,
        high: i64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        let here = Location::caller();
        let fail = |reason: String| Tensor::argument_error("randint", reason).at(here);
        let holds = |x: i64| Scalar::from(x).cast(dtype).to_i128() == i128::from(x);
        if !dtype.is_int() || low < high && !(holds(low) && holds(high - 1)) {
            return Err(fail(format!("{dtype} does not hold the integers {low}..{high}")));
        }
        if low >= high {
            return Err(fail(format!("there is no integer in {low}..{high}")));
        }
        let [first, second] = Tensor::random_words("randint", shape.into(), rng, device)?;
        let (first, second) = (first.cast(DType::U64), second.cast(DType::U64));
        let wide = first.combine(BinaryOp::Shl, &first.constant(Scalar::from(32u64)));
        let wide = wide.combine(BinaryOp::Or, &second);
        let range = wide.argument(Scalar::from(high.wrapping_sub(low) as u64));
        let offset = wide.argument(Scalar::from(low as u64));
        // Wraps around to negative numbers as it should: the bits are two's complement.
        let drawn = wide.combine(BinaryOp::Rem, &range).combine(BinaryOp::Add, &offset);
        Ok(drawn.cast(dtype).known_between(low, high - 1))
    }

    /// True with probability `p` (rounded to a multiple of 2^-24), as bool.
    ///
    /// ```
    /// # use zyx::{Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::bernoulli(1.0, [3], &mut Rng::seed(1), &device)?;
    /// assert_eq!(x.to_vec::<bool>()?, [true; 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `p` is not in `0 ..= 1`, or the shape is too large.
    #[track_caller]
    pub fn bernoulli(
        p: f64,
        shape: impl Into<Shape>,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        Tensor::check_probability("bernoulli", p)?;
        let [word, _] = Tensor::random_words("bernoulli", shape.into(), rng, device)?;
        Ok(word.below_probability(p))
    }

    #[track_caller]
    fn check_probability(op: &'static str, p: f64) -> Result<()> {
        if (0.0..=1.0).contains(&p) {
            return Ok(());
        }
        Err(Tensor::argument_error(op, format!("{p} is not a probability")))
    }

    #[track_caller]
    fn below_probability(&self, p: f64) -> Tensor {
        let bits = self.top_bits(24);
        let threshold = bits.argument(Scalar::from((p * 2f64.powi(24)).round() as u32));
        bits.combine(BinaryOp::Lt, &threshold)
    }

    /// The numbers `0..n` in random order, as `i64`; shuffled on the host (Fisher and Yates).
    ///
    /// ```
    /// # use zyx::{Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::permutation(4, &mut Rng::seed(1), &device)?;
    /// let mut order = x.to_vec::<i64>()?;
    /// order.sort();
    /// assert_eq!(order, [0, 1, 2, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When memory is short.
    #[track_caller]
    pub fn permutation(n: usize, rng: &mut Rng, device: &Device) -> Result<Tensor> {
        // Drawn one by one on the host: beyond this, that would take minutes.
        if n > 1 << 31 {
            let reason = format!("{n} numbers do not fit into memory");
            return Err(Tensor::argument_error("permutation", reason));
        }
        let mut order: Vec<i64> = host_room(n)?;
        order.extend(0..n as i64);
        for last in (1..n).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        Tensor::from_slice(&order, [n], device)
    }

    /// Each element set to zero with probability `p`, the others scaled by `1 / (1 - p)`, so that
    /// the mean stays (Srivastava et al. 2014). With `p` 0 this is `self` and takes no blocks.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([100], DType::F32, &device).dropout(0.5, &mut Rng::seed(1))?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|&x| x == 0.0 || x == 2.0));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `p` is not in `0 ..= 1`, or the elements are not floats.
    #[track_caller]
    pub fn dropout(&self, p: f64, rng: &mut Rng) -> Result<Tensor> {
        Tensor::check_probability("dropout", p)?;
        if !self.dtype().is_float() {
            let reason = "is defined on floats".to_owned();
            return Err(Tensor::dtype_error("dropout", &[self], reason));
        }
        if p == 0.0 {
            return Ok(self.clone());
        }
        let shape = self.shape().clone();
        let [word, _] = Tensor::random_words("dropout", shape, rng, self.device())?;
        let dropped = word.below_probability(p);
        let scale = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
        Ok(dropped.select(&self.like(0.0), &self.mul(scale)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::device;

    #[test]
    fn blocks_agree_with_the_published_vectors() {
        // The known-answer file of Random123, the authors' library.
        for (key, counter, expected) in [
            ([0, 0], [0, 0], [0x6b20_0159, 0x99ba_4efe]),
            ([u32::MAX; 2], [u32::MAX; 2], [0x1cb9_96fc, 0xbb00_2be7]),
            ([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3], [0xc492_3a9c, 0x483d_f7a0u32]),
        ] {
            assert_eq!(threefry(key, counter), expected);
            let start = (u64::from(counter[1]) << 32) | u64::from(counter[0]);
            let mut rng = Rng::at(key, start);
            let words = Tensor::random_words("test", Shape::from([1]), &mut rng, &device());
            let words = words.unwrap().map(|word| word.item::<u32>().unwrap());
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn counters_carry_and_draws_continue() {
        let device = device();
        let start = Rng::at([7, 9], (5 << 32) - 3);
        let mut rng = start.clone();
        let [x, y] = Tensor::random_words("test", Shape::from([2, 3]), &mut rng, &device).unwrap();
        let (x, y) = (x.to_vec::<u32>().unwrap(), y.to_vec::<u32>().unwrap());
        let mut host = start.clone();
        for (x, y) in x.iter().zip(&y) {
            assert_eq!((u64::from(*x) << 32) | u64::from(*y), host.next_u64());
        }
        assert_eq!(rng, host);
        let mut parts = start.clone();
        let a = Tensor::rand([2], DType::F64, &mut parts, &device).unwrap();
        let b = Tensor::rand([4], DType::F64, &mut parts, &device).unwrap();
        let all = Tensor::rand([6], DType::F64, &mut start.clone(), &device).unwrap();
        let joined = Tensor::cat(&[&a, &b], 0).unwrap();
        assert_eq!(joined.to_vec::<f64>().unwrap(), all.to_vec::<f64>().unwrap());
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let (device, mut rng) = (device(), Rng::seed(1));
        let n = 4000;
        let tolerance = 4.0 / (n as f64).sqrt();
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let x = Tensor::rand([n], dtype, &mut rng, &device).unwrap();
            let x = x.cast(DType::F64).to_vec::<f64>().unwrap();
            assert!(x.iter().all(|x| (0.0..1.0).contains(x)), "{dtype}");
            let mean = x.iter().sum::<f64>() / n as f64;
            // bf16 has multiples of 2^-8, whose mean is 2^-9 below a half.
            assert!((mean - 0.5).abs() < tolerance * 0.29 + 0.002, "{dtype}: mean {mean}");
            let x = Tensor::randn([n], dtype, &mut rng, &device).unwrap();
            let x = x.cast(DType::F64).to_vec::<f64>().unwrap();
            let mean = x.iter().sum::<f64>() / n as f64;
            let variance = x.iter().map(|x| x * x).sum::<f64>() / n as f64;
            assert!(mean.abs() < tolerance, "{dtype}: mean {mean}");
            assert!((variance - 1.0).abs() < tolerance * 1.5, "{dtype}: variance {variance}");
            let beyond = x.iter().filter(|x| x.abs() > 1.959_964).count() as f64 / n as f64;
            assert!((beyond - 0.05).abs() < tolerance * 0.22, "{dtype}: tails {beyond}");
        }
    }

    #[test]
    fn integers_cover_their_range() {
        let (device, mut rng) = (device(), Rng::seed(2));
        let x = Tensor::randint(-2, 3, [1000], DType::I8, &mut rng, &device).unwrap();
        let x = x.to_vec::<i8>().unwrap();
        for value in -2..3 {
            let count = x.iter().filter(|&&x| x == value).count();
            assert!((150..250).contains(&count), "{value} came {count} times of 1000");
        }
        let x = Tensor::randint(i64::MIN, i64::MAX, [50], DType::I64, &mut rng, &device).unwrap();
        let x = x.to_vec::<i64>().unwrap();
        assert!(x.iter().any(|&x| x < 0) && x.iter().any(|&x| x > 0));
        assert!(Tensor::randint(0, 256, [1], DType::U8, &mut rng, &device).is_ok());
        assert!(Tensor::randint(0, 257, [1], DType::U8, &mut rng, &device).is_err());
        assert!(Tensor::randint(3, 3, [1], DType::I32, &mut rng, &device).is_err());
        assert!(Tensor::randint(0, 3, [1], DType::F32, &mut rng, &device).is_err());
        let mut order =
            Tensor::permutation(100, &mut rng, &device).unwrap().to_vec::<i64>().unwrap();
        assert!(!order.is_sorted());
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn dropout_keeps_the_mean() {
        let (device, mut rng) = (device(), Rng::seed(3));
        let x = Tensor::full([2000], 3f32, &device);
        let y = x.dropout(0.25, &mut rng).unwrap().to_vec::<f32>().unwrap();
        let zeros = y.iter().filter(|&&y| y == 0.0).count();
        assert!((420..580).contains(&zeros), "{zeros} of 2000 dropped");
        assert!(y.iter().all(|&y| y == 0.0 || y == 4.0));
        assert_eq!(x.dropout(1.0, &mut rng).unwrap().sum(..).unwrap().item::<f32>().unwrap(), 0.0);
        assert!(x.dropout(1.5, &mut rng).is_err() && x.dropout(f64::NAN, &mut rng).is_err());
        assert!(x.cast(DType::I32).dropout(0.5, &mut rng).is_err());
        let p = Tensor::bernoulli(1.0, [100], &mut rng, &device).unwrap().all(..).unwrap();
        assert!(p.item::<bool>().unwrap());
        let p = Tensor::bernoulli(0.0, [100], &mut rng, &device).unwrap().any(..).unwrap();
        assert!(!p.item::<bool>().unwrap());
    }

    #[test]
    fn streams_split() {
        let mut rng = Rng::seed(4);
        let (mut a, mut b) = (rng.split(), rng.split());
        assert_ne!(a, b);
        assert_ne!(a.next_u64(), b.next_u64());
        assert_eq!(Rng::at(rng.key(), rng.counter()), rng);
    }
}
