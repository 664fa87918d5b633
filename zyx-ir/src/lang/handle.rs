//! Handles for programs of other languages, whose objects cannot borrow from a recording.
//!
//! A handle holds numbers of ops, and an [`Array`], a [`Matrix`], [`Rows`], a [`LookBack`] or a [`Queue`] is a handle in a
//! recording. A handle serves the recording that it is of, and that recording alone.

use super::array::Array;
use super::group::Group;
use super::progress::{LookBack, Queue};
use super::tile::{Layout, Matrix, Rows};
use super::value::Val;
use super::{Digits, Lang, LangError, State};
use crate::affine::Interval;
use crate::dtype::DType;
use crate::ir::{Value, transfer};
use crate::ops::BinaryOp;

/// Ops on the way to an integer that are looked at.
pub(super) const MAX_DEPTH: usize = 16;

/// An [`Array`] as numbers; see [`Lang::array_of`].
#[derive(Clone, Debug)]
pub struct ArrayHandle {
    pub(super) storage: Value,
    pub(super) dtype: DType,
    /// Coordinates that are given already.
    pub(super) fixed: Digits,
    pub(super) extents: Vec<Value>,
    /// Of a tile the first coordinates, with the extents of the array.
    pub(super) tile: Vec<(Value, Value)>,
}

/// A [`Matrix`] as numbers; see [`Lang::matrix_of`].
#[derive(Clone, Copy, Debug)]
pub struct MatrixHandle {
    pub(super) shape: [usize; 2],
    pub(super) dtype: DType,
    pub(super) layout: Layout,
    /// The elements that a thread has.
    pub(super) storage: Value,
}

/// [`Rows`] as numbers; see [`Lang::rows_of`].
#[derive(Clone, Copy, Debug)]
pub struct RowsHandle {
    /// Rows that a thread has.
    pub(super) len: usize,
    pub(super) layout: Layout,
    pub(super) storage: Value,
}

/// A [`LookBack`] as numbers; see [`Lang::look_back_of`].
#[derive(Clone, Debug)]
pub struct LookBackHandle {
    pub(super) op: BinaryOp,
    pub(super) dtype: DType,
    /// The dtype of its bits.
    pub(super) bits: DType,
    pub(super) tiles: Value,
    /// Words by kind of combination, number within the value, and tile. The counter of tickets is the first word behind the
    /// tiles.
    pub(super) words: ArrayHandle,
}

/// A [`Queue`] as numbers; see [`Lang::queue_of`].
#[derive(Clone, Debug)]
pub struct QueueHandle {
    pub(super) capacity: Value,
    pub(super) slots: ArrayHandle,
    /// The next slot to take an item from, the next to put one in, and items that are not done.
    pub(super) ends: ArrayHandle,
}

macro_rules! handles {
    ($($object:ident $handle:ident $of:ident;)*) => {$(
        impl $object<'_> {
            /// Its handle.
            pub fn handle(&self) -> $handle {
                Clone::clone(&self.handle)
            }
        }

        impl Lang {
            #[doc = concat!("The [`", stringify!($object), "`] of a handle.")]
            pub fn $of(&self, handle: &$handle) -> $object<'_> {
                $object { k: self, handle: Clone::clone(handle) }
            }
        }
    )*};
}

handles! {
    Array ArrayHandle array_of;
    Matrix MatrixHandle matrix_of;
    Rows RowsHandle rows_of;
    LookBack LookBackHandle look_back_of;
    Queue QueueHandle queue_of;
}

impl Lang {
    /// The first mistake so far.
    pub fn error(&self) -> Option<LangError> {
        self.state.borrow().error.clone()
    }

    /// The group that is being recorded; `None` outside of the body of [`Lang::groups`].
    pub fn group(&self) -> Option<Group<'_>> {
        self.state.borrow().threads.is_some().then_some(Group { k: self })
    }
}

impl<'k> Val<'k> {
    /// The recording that it is of.
    pub fn lang(self) -> &'k Lang {
        self.k
    }

    /// Whether it is an integer shown not to be negative: sizes, counters of loops, and what is computed of them without
    /// subtraction.
    pub fn is_nonnegative(self) -> bool {
        self.k.state.borrow().interval(self.value, MAX_DEPTH).min >= 0
    }
}

impl State {
    /// The interval of an integer, by at most `depth` ops on the way to it.
    pub(super) fn interval(&self, value: Value, depth: usize) -> Interval {
        let (kernel, any) = (self.b.kernel(), Interval::of(self.b.ty(value).dtype));
        let Some(depth) = depth.checked_sub(1) else { return any };
        let exact = transfer(kernel, value, kernel.op(value), |x| self.interval(x, depth));
        // Sums of sizes are taken to fit: a launch is refused where they do not.
        let fits = any.min <= exact.min && exact.max <= any.max;
        if fits || self.b.ty(value).dtype == DType::I64 { exact } else { any }
    }
}
