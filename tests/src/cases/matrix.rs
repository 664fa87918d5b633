//! Every operation in every dtype: the matrix that `docs/ops.md` prints.
//!
//! A row is an operation with operands that suit it, small and exactly representable in every
//! dtype. Its value in a dtype is compared with the same operation computed wider by the reference
//! device: in `f64` where the result holds floats, in `i64` where it holds integers, so that a
//! dtype is judged by another one. What has no wider form (bits of a dtype, random streams,
//! everything on bools) is compared with the reference device in the same dtype.
//!
//! Devices that compile in microseconds compute all rows in all dtypes. Where kernels are dear
//! they compute [`EVERYWHERE`], and all of them if `ZYX_FULL=1`: the other cases of the suite
//! hold the graph's few operations to all dtypes on every device, and a row is made of those.

pub mod algebra;
pub mod elementwise;
pub mod movement;
pub mod network;
pub mod random;
pub mod reduce;

use crate::bounds::{self, Bound};
use crate::check::full;
use crate::tolerance::formula_error;
use crate::{Array, Check, Val};
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};
use zyx_core::hal::lock;
use zyx_core::{BatchNorm, DType, Device, Reference, Result, Runtime, Tensor, Unique};

/// The dtypes in which every device computes every row in every run.
pub const EVERYWHERE: &[DType] = &[DType::F32];

/// One row of so many is computed in one of the other dtypes.
const SAMPLE: usize = 4;

/// Roundings to a dtype of 16 bits on the way to a result.
const ROUNDINGS: f64 = 8.0;

/// What a result is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The same in `f64` or `i64`.
    Wider,
    /// The same on the reference device, in the same dtype.
    Itself,
}

/// An operation, how it is called, and what its results are compared with.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name of the method.
    pub name: &'static str,
    /// The call.
    pub run: fn(&Operands) -> Result<Vec<Tensor>>,
    /// The standard of comparison.
    pub against: Against,
}

/// What rows compute with. Floats are multiples of 1/32, integers are small and not negative.
#[derive(Clone, Debug)]
pub struct Operands {
    /// The dtype of all that follow, unless they say otherwise.
    pub dtype: DType,
    /// The device.
    pub device: Device,
    /// `[3, 4]`, of both signs where there are signs.
    pub x: Tensor,
    /// `[3, 4]`, without zeros.
    pub y: Tensor,
    /// `[4]`.
    pub v: Tensor,
    /// `[3, 4]` between 0 and 1, which only integers are.
    pub unit: Tensor,
    /// `[3, 4]`, at least 1.
    pub large: Tensor,
    /// `[4]`, ascending.
    pub sorted: Tensor,
    /// `[3, 3]`, symmetric and positive definite.
    pub square: Tensor,
    /// `[1, 2, 6]`, `[1, 2, 4, 4]` and `[1, 1, 3, 3, 3]`.
    pub images: [Tensor; 3],
    /// `[2, 2, 3]`, `[2, 2, 2, 2]` and `[1, 1, 2, 2, 2]`.
    pub kernels: [Tensor; 3],
    /// `i64 [3, 4]` of 0, 1, 2.
    pub index: Tensor,
    /// `i64 [2]`: 2, 0.
    pub at: Tensor,
    /// `i64 [4]`: 1, 0, 2, 1.
    pub times: Tensor,
    /// `i64 [3]` of 0 to 3.
    pub classes: Tensor,
    /// `bool [3, 4]`.
    pub mask: Tensor,
}

/// Numbers without a pattern, from 0 to 96.
fn spread(i: usize, salt: usize) -> i64 {
    ((i + salt) * 7919 % 97) as i64
}

impl Operands {
    /// On a device. Floats hold fractions if `fine`, or what integers hold.
    ///
    /// # Errors
    /// When the device fails.
    pub fn new(dtype: DType, fine: bool, device: &Device) -> Result<Operands> {
        let fine = fine && dtype.is_float();
        let of = |dims: &[usize], fraction: &dyn Fn(usize) -> f64, whole: &dyn Fn(usize) -> i64| {
            let n = 0..dims.iter().product();
            match fine {
                true => Array::reals(dtype, dims, &n.map(fraction).collect::<Vec<_>>()),
                false => Array::whole(dtype, dims, &n.map(whole).collect::<Vec<_>>()),
            }
            .tensor(device)
        };
        let both = |dims: &[usize], salt: usize| {
            let fraction = move |i: usize| (spread(i, salt) - 48) as f64 / 32.0;
            of(dims, &fraction, &move |i: usize| spread(i, salt) % 5)
        };
        let ints =
            |dims: &[usize], data: &[i64]| Array::ints(DType::I64, dims, data).tensor(device);
        let mask: Vec<i64> = (0..12).map(|i| spread(i, 3) % 2).collect();
        let index: Vec<i64> = (0..12).map(|i| spread(i, 4) % 3).collect();
        let diagonal = [4, 1, 0, 1, 3, 1, 0, 1, 2];
        Ok(Operands {
            dtype,
            device: device.clone(),
            x: both(&[3, 4], 1)?,
            y: of(&[3, 4], &|i| (spread(i, 20) - 48) as f64 / 32.0 + 1.0 / 64.0, &|i| {
                spread(i, 20) % 4 + 1
            })?,
            v: both(&[4], 40)?,
            unit: of(&[3, 4], &|i| (1 + spread(i, 7) % 15) as f64 / 16.0, &|i| spread(i, 7) % 2)?,
            large: of(&[3, 4], &|i| 1.0 + spread(i, 9) as f64 / 32.0, &|i| 1 + spread(i, 9) % 3)?,
            sorted: of(&[4], &|i| i as f64 * 0.75 - 1.0, &|i| i as i64)?,
            square: of(&[3, 3], &|i| diagonal[i] as f64, &|i| diagonal[i])?,
            images: [both(&[1, 2, 6], 11)?, both(&[1, 2, 4, 4], 12)?, both(&[1, 1, 3, 3, 3], 13)?],
            kernels: [both(&[2, 2, 3], 14)?, both(&[2, 2, 2, 2], 15)?, both(&[1, 1, 2, 2, 2], 16)?],
            index: ints(&[3, 4], &index)?,
            at: ints(&[2], &[2, 0])?,
            times: ints(&[4], &[1, 0, 2, 1])?,
            classes: ints(&[3], &[3, 0, 2])?,
            mask: Array::ints(DType::Bool, &[3, 4], &mask).tensor(device)?,
        })
    }

    /// Large ones of which nothing is computed: on a device whose memory has no values. Floats are
    /// tracked. Where the small ones have 3, 4 or 6 elements along an axis, these have thousands.
    ///
    /// # Errors
    /// When the device fails.
    pub fn large(dtype: DType, device: &Device) -> Result<Operands> {
        Operands::of_extents([3 << 10, 4 << 10], dtype, device)
    }

    /// As [`Operands::large`], with `m` rows of `n` elements for 3 rows of 4. Images differ from those of `large` along
    /// their last axis by the distance of `n` from a multiple of 64.
    ///
    /// # Errors
    /// When the device fails.
    pub fn of_extents([m, n]: [usize; 2], dtype: DType, device: &Device) -> Result<Operands> {
        let made = |dims: &[usize], dtype: DType| -> Result<Tensor> {
            let x = Tensor::zeros(dims, dtype, device).contiguous();
            x.realize()?;
            Ok(x)
        };
        let float = |dims: &[usize]| made(dims, dtype).map(|x| x.tracked());
        let ints = |dims: &[usize]| made(dims, DType::I64);
        let side = m.clamp(1 << 10, 4 << 10);
        let near = |extent: usize| (extent + n % 64).saturating_sub(64 * (n % 64 / 32)).max(3);
        Ok(Operands {
            dtype,
            device: device.clone(),
            x: float(&[m, n])?,
            y: float(&[m, n])?,
            v: float(&[n])?,
            unit: float(&[m, n])?,
            large: float(&[m, n])?,
            sorted: float(&[n])?,
            square: float(&[side, side])?,
            images: [
                float(&[64, 64, side])?,
                float(&[32, 64, 64, near(96)])?,
                float(&[4, 16, 48, 48, near(48)])?,
            ],
            kernels: [float(&[64, 64, 3])?, float(&[64, 64, 3, 3])?, float(&[16, 16, 3, 3, 3])?],
            index: ints(&[m, n])?,
            at: ints(&[2 << 10])?,
            times: ints(&[n])?,
            classes: ints(&[m])?,
            mask: made(&[m, n], DType::Bool)?,
        })
    }

    /// The operands that hold floats.
    pub fn floats(&self) -> Vec<&Tensor> {
        let plain =
            [&self.x, &self.y, &self.v, &self.unit, &self.large, &self.sorted, &self.square];
        plain.into_iter().chain(&self.images).chain(&self.kernels).collect()
    }

    /// The first two columns of `x` and of `y`, beside each other: `[3, 2, 2]`, complex numbers.
    ///
    /// # Errors
    /// Never.
    pub fn complex(&self) -> Result<Tensor> {
        let [rows, columns] = [self.x.shape()[0], self.x.shape()[1] / 2];
        self.x.slice(1, ..2 * columns)?.reshape([rows, columns, 2])
    }
}

/// What methods give, as a list of tensors.
pub trait Outcome {
    /// All results.
    ///
    /// # Errors
    /// The method's.
    fn all(self) -> Result<Vec<Tensor>>;
}

impl Outcome for Tensor {
    fn all(self) -> Result<Vec<Tensor>> {
        Ok(vec![self])
    }
}

impl Outcome for Vec<Tensor> {
    fn all(self) -> Result<Vec<Tensor>> {
        Ok(self)
    }
}

impl Outcome for (Tensor, Tensor) {
    fn all(self) -> Result<Vec<Tensor>> {
        Ok(vec![self.0, self.1])
    }
}

impl Outcome for (Tensor, Tensor, Tensor) {
    fn all(self) -> Result<Vec<Tensor>> {
        Ok(vec![self.0, self.1, self.2])
    }
}

impl Outcome for Unique {
    fn all(self) -> Result<Vec<Tensor>> {
        Ok(vec![self.values, self.inverse, self.counts])
    }
}

impl Outcome for BatchNorm {
    fn all(self) -> Result<Vec<Tensor>> {
        Ok(vec![self.output, self.mean, self.var])
    }
}

impl<T: Outcome> Outcome for Result<T> {
    fn all(self) -> Result<Vec<Tensor>> {
        self.and_then(Outcome::all)
    }
}

/// Rows: a name and a call each; `itself` before those that have no wider form.
macro_rules! rows {
    (@row $against:ident $name:ident |$s:ident| $body:expr) => {
        $crate::cases::matrix::Row {
            name: stringify!($name),
            run: |$s| {
                let run = || Ok($body);
                $crate::cases::matrix::Outcome::all(run())
            },
            against: $crate::cases::matrix::Against::$against,
        }
    };
    (itself $($name:ident |$s:ident| $body:expr;)*) => {
        vec![$($crate::cases::matrix::rows!(@row Itself $name |$s| $body)),*]
    };
    ($($name:ident |$s:ident| $body:expr;)*) => {
        vec![$($crate::cases::matrix::rows!(@row Wider $name |$s| $body)),*]
    };
}
pub(crate) use rows;

/// All rows.
pub fn table() -> Vec<Row> {
    [
        elementwise::table(),
        movement::table(),
        reduce::table(),
        algebra::table(),
        network::table(),
        random::table(),
    ]
    .concat()
}

/// Results of a row in order; `None` where the operation is refused.
type Values = Option<Vec<Array>>;

/// What the reference device computes of a row in a dtype, of fine or whole numbers.
fn standard(row: &Row, dtype: DType, fine: bool) -> Values {
    static OPERANDS: [OnceLock<Operands>; 32] = [const { OnceLock::new() }; 32];
    static KNOWN: Mutex<BTreeMap<(&'static str, usize), Values>> = Mutex::new(BTreeMap::new());
    let place = DType::ALL.iter().position(|&d| d == dtype).unwrap_or(0) * 2 + usize::from(fine);
    let operands = OPERANDS[place].get_or_init(|| {
        let runtime = Runtime::default();
        runtime.register(Reference::default());
        let device = runtime.device("reference").expect("always present");
        Operands::new(dtype, fine, &device).expect("the reference has memory")
    });
    let key = (row.name, place);
    if let Some(known) = lock(&KNOWN).get(&key) {
        return known.clone();
    }
    let results = (row.run)(operands).ok();
    let read = |all: Vec<Tensor>| all.iter().map(Array::read).collect::<Result<Vec<Array>>>().ok();
    let values = results.and_then(read);
    lock(&KNOWN).insert(key, values.clone());
    values
}

/// The range in which the results of a row in `dtype` must lie.
fn expected(row: &Row, dtype: DType, place: usize, to: DType) -> Option<Array> {
    let wider = |wide: DType, fine: bool| standard(row, wide, fine);
    let float = to.is_float();
    let found = match row.against {
        Against::Wider if dtype.is_float() => wider(DType::F64, true),
        Against::Wider if dtype != DType::Bool && float => wider(DType::F64, false),
        Against::Wider if dtype != DType::Bool => wider(DType::I64, false),
        _ => None,
    };
    let found = found.or_else(|| standard(row, dtype, true))?;
    let exact = found.get(place)?;
    if !float {
        return Some(exact.cast(to));
    }
    let bound = bounds::of(row.name);
    if bound == Bound::Exact {
        return Some(exact.cast(to));
    }
    // Not by a cast, which may give subnormal numbers up where the device does.
    let values = exact.floats();
    let finite = values.iter().filter(|x| x.is_finite());
    let scale = finite.fold(1.0, |scale: f64, x| scale.max(x.abs()));
    let narrow = to.bits() == 16;
    let wide = if narrow { DType::F32 } else { to };
    let rounded = if narrow { formula_error(to, ROUNDINGS, scale) } else { 0.0 };
    let error = formula_error(wide, bound.ulps(), scale) + rounded;
    let near = |&x: &f64| if x.is_finite() { Val::about(to, x, error) } else { Val::point(x) };
    Some(Array::new(to, &exact.dims, values.iter().map(near).collect()))
}

/// Every row in a dtype. Rows of elementwise operations and of movement may share kernels, where
/// kernels are dear.
pub fn operations(device: &Device, dtype: DType) {
    let mut shared = Check::new(device);
    let mut check = Check::new(device).untied();
    let sampled = device.caps().simt && !EVERYWHERE.contains(&dtype) && !full();
    let operands = Operands::new(dtype, true, device).expect("inputs fit the device");
    // What `functional::values` computes on every device anyway need not be compiled twice.
    let elsewhere: Vec<&str> = match device.caps().simt && !full() {
        true => {
            super::functional::table().iter().filter_map(|row| row.0.split(' ').next()).collect()
        }
        false => vec![],
    };
    let sharing = [elementwise::table(), movement::table()].concat();
    // Of the rows a fourth, each in one further dtype.
    let place = DType::ALL.iter().position(|&d| d == dtype).unwrap_or(0);
    let chosen = |i: usize| !sampled || i % (SAMPLE * DType::ALL.len()) == SAMPLE * place;
    let rows = table().into_iter().enumerate().filter(|(i, _)| chosen(*i)).map(|(_, row)| row);
    for row in rows.filter(|row| sampled || !elsewhere.contains(&row.name)) {
        let tied = sharing.iter().any(|shares| shares.name == row.name);
        compare(if tied { &mut shared } else { &mut check }, &row, &operands);
    }
    shared.finish();
    check.finish();
}

fn compare(check: &mut Check<'_>, row: &Row, operands: &Operands) {
    let (name, dtype) = (row.name, operands.dtype);
    let known = standard(row, dtype, true);
    match (row.run)(operands) {
        Err(error) => check.that(known.is_none(), format!("{name} of {dtype}: {error}")),
        Ok(results) => {
            for (place, result) in results.into_iter().enumerate() {
                let what = format!("{name} of {dtype}, result {place}");
                match expected(row, dtype, place, result.dtype()) {
                    Some(want) => check.equal(what, Ok(result), &want),
                    None => check.fail(format!("{what}: the reference device refuses it")),
                }
            }
        }
    }
}

/// The dtypes in which a row is computed, the others refuse it.
///
/// # Panics
/// When no row has this name.
pub fn accepted(name: &str) -> Vec<DType> {
    let row = table().into_iter().find(|row| row.name == name).expect("a row has this name");
    let is = |dtype: &DType| standard(&row, *dtype, true).is_some();
    DType::ALL.iter().copied().filter(is).collect()
}
