//! Lengths of buffers that follow from scalar arguments.

use super::kernel::Kernel;
use super::op::{Op, Value};
use super::range::Ranges;
use crate::dtype::DType;
use crate::ops::BinaryOp;
use std::fmt;

/// The extents of a buffer, each the value of a scalar argument: it has as many elements as their product.
///
/// An index `(i * e1 + j) * e2 + k`, whose digits are shown to be within the extents, is within the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extents {
    slots: [u8; Extents::MOST],
    n: u8,
}

impl Extents {
    /// Most axes.
    pub const MOST: usize = 7;

    /// The extents that the scalars in these slots are, outermost first; `None` for no slot, more than
    /// [`Extents::MOST`], or a slot beyond 255.
    pub fn of(scalars: &[u16]) -> Option<Extents> {
        let mut extents = Extents { n: scalars.len() as u8, ..Extents::default() };
        if scalars.is_empty() || scalars.len() > Extents::MOST {
            return None;
        }
        for (slot, &scalar) in extents.slots.iter_mut().zip(scalars) {
            *slot = u8::try_from(scalar).ok()?;
        }
        Some(extents)
    }

    /// The slots of the scalars, outermost first.
    pub fn slots(&self) -> impl DoubleEndedIterator<Item = u16> + Clone + '_ {
        self.slots[..usize::from(self.n)].iter().map(|&slot| slot.into())
    }

    /// The number of elements, if it is one: extents are not negative and their product fits.
    pub fn product(&self, scalar: impl Fn(u16) -> i64) -> Option<u64> {
        let extents = self.slots().map(|slot| u64::try_from(scalar(slot)).ok());
        extents.into_iter().try_fold(1u64, |product, extent| product.checked_mul(extent?))
    }

    /// With other slots.
    pub fn map(self, slot: impl Fn(u16) -> u16) -> Option<Extents> {
        Extents::of(&self.slots().map(slot).collect::<Vec<_>>())
    }
}

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, slot) in self.slots().enumerate() {
            write!(f, "{}s{slot}", if i == 0 { "" } else { "*" })?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Extents {
    type Err = String;

    fn from_str(text: &str) -> Result<Extents, String> {
        let slot = |part: &str| part.strip_prefix('s').and_then(|slot| slot.parse().ok());
        let slots: Option<Vec<u16>> = text.split('*').map(slot).collect();
        slots
            .and_then(|slots| Extents::of(&slots))
            .ok_or_else(|| format!("`{text}` is no product of scalars"))
    }
}

/// A proof that an index is within a buffer of these extents.
pub(super) struct Proof<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) ranges: &'a Ranges<'a>,
    /// Where the index is used.
    pub(super) access: Value,
    /// The values that the scalars are, by slot.
    pub(super) vars: &'a [Option<Value>],
    /// The most elements.
    pub(super) most: u64,
}

impl Proof<'_> {
    /// Whether the index of the access, guards taken into account, is within the extents.
    pub(super) fn holds(&self, extents: Extents) -> bool {
        let [buf, index] = [0, 1].map(|n| self.kernel.op(self.access).operands().nth(n));
        let (Some(buf), Some(index)) = (buf, index) else { return false };
        let (index, _) = self.kernel.unguarded(index);
        let extents: Option<Vec<Value>> =
            extents.slots().map(|slot| self.vars.get(usize::from(slot)).copied()?).collect();
        if self.kernel.ty(index).is_vector() || self.kernel.ty(buf).is_vector() {
            return false;
        }
        extents.is_some_and(|extents| self.is_within(index, &extents, self.lanes()))
    }

    /// Lanes of the access: elements side by side.
    fn lanes(&self) -> u64 {
        let value = match self.kernel.op(self.access) {
            Op::Store { value, .. } => value,
            _ => self.access,
        };
        self.kernel.ty(value).lanes.into()
    }

    /// Whether so many elements from an index on are within.
    fn is_within(&self, index: Value, extents: &[Value], lanes: u64) -> bool {
        let Some((&last, outer)) = extents.split_last() else { return false };
        if outer.is_empty() {
            return self.is_digit(index, last, lanes);
        }
        // Sums of fewer bits do not wrap where all that they can be fits.
        let dtype = self.kernel.ty(index).dtype;
        if dtype != DType::I64 && (dtype != DType::I32 || self.most > i32::MAX as u64) {
            return false;
        }
        if let Op::Cast { x } = self.kernel.op(index) {
            return !self.kernel.ty(x).dtype.is_float() && self.is_within(x, extents, lanes);
        }
        let (row, digit) = match self.kernel.op(index) {
            Op::Binary { op: BinaryOp::Add, x, y } => {
                match (self.row(x, last), self.row(y, last)) {
                    (Some(row), _) => (Some(row), y),
                    (_, Some(row)) => (Some(row), x),
                    _ => return false,
                }
            }
            _ => return false,
        };
        row.is_none_or(|row| self.is_within(row, outer, 1)) && self.is_digit(digit, last, lanes)
    }

    /// What a product with the extent multiplies by.
    fn row(&self, product: Value, extent: Value) -> Option<Value> {
        let Op::Binary { op: BinaryOp::Mul, x, y } = self.kernel.op(product) else { return None };
        [(x, y), (y, x)].into_iter().find(|pair| self.plain(pair.1) == extent).map(|pair| pair.0)
    }

    /// A value without conversions between integers that keep it.
    fn plain(&self, mut value: Value) -> Value {
        while let Op::Cast { x } = self.kernel.op(value) {
            let range = crate::affine::Interval::of(self.kernel.ty(value).dtype);
            let fits = self.ranges.get(x).within(range.min, range.max);
            if self.kernel.ty(x).dtype.is_float() || !fits {
                break;
            }
            value = x;
        }
        value
    }

    /// Whether so many numbers from one on are in `0 .. extent`; of several, both have to be multiples of how many.
    fn is_digit(&self, mut digit: Value, extent: Value, lanes: u64) -> bool {
        let whole = |x| lanes == 1 || self.ranges.get(x).divisible_by(lanes);
        while !(whole(digit) && self.ranges.is_below(digit, extent, self.access)) {
            // A number below the extent fits where the extent does, so the conversion keeps it.
            let held = crate::affine::Interval::of(self.kernel.ty(digit).dtype);
            match self.kernel.op(digit) {
                Op::Cast { x }
                    if !self.kernel.ty(x).dtype.is_float()
                        && self.ranges.get(extent).within(held.min, held.max) =>
                {
                    digit = x;
                }
                _ => return false,
            }
        }
        whole(extent)
    }
}
