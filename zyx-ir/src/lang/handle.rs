//! Handles for programs of other languages, whose objects cannot borrow from a recording.
//!
//! A handle holds numbers of ops, and an [`Array`], a [`Matrix`], [`Rows`], a [`LookBack`] or a [`Queue`] is a handle in a
//! recording. A handle serves the recording that it is of, and that recording alone.

use super::array::Array;
use super::group::Group;
use super::progress::{LookBack, Queue};
use super::tile::{Layout, Matrix, Rows};
use super::value::Val;
use super::{Lang, LangError, State};
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
    /// Coordinates that are given already, with their extents.
    pub(super) fixed: Vec<(Value, Value)>,
    pub(super) extents: Vec<Value>,
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
    op: BinaryOp,
    dtype: DType,
    bits: DType,
    tiles: Value,
    words: ArrayHandle,
}

/// A [`Queue`] as numbers; see [`Lang::queue_of`].
#[derive(Clone, Debug)]
pub struct QueueHandle {
    capacity: Value,
    slots: ArrayHandle,
    ends: ArrayHandle,
}

impl Array<'_> {
    /// Its handle.
    pub fn handle(&self) -> ArrayHandle {
        self.handle.clone()
    }
}

impl Matrix<'_> {
    /// Its handle.
    pub fn handle(&self) -> MatrixHandle {
        self.handle
    }
}

impl Rows<'_> {
    /// Its handle.
    pub fn handle(&self) -> RowsHandle {
        self.handle
    }
}

impl LookBack<'_> {
    /// Its handle.
    pub fn handle(&self) -> LookBackHandle {
        let LookBack { op, dtype, bits, tiles, ref words } = *self;
        LookBackHandle { op, dtype, bits, tiles: tiles.id(), words: words.handle() }
    }
}

impl Queue<'_> {
    /// Its handle.
    pub fn handle(&self) -> QueueHandle {
        let (slots, ends) = (self.slots.handle(), self.ends.handle());
        QueueHandle { capacity: self.capacity.id(), slots, ends }
    }
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

    /// The array of a handle.
    pub fn array_of(&self, handle: &ArrayHandle) -> Array<'_> {
        Array { k: self, handle: handle.clone() }
    }

    /// The matrix of a handle.
    pub fn matrix_of(&self, handle: &MatrixHandle) -> Matrix<'_> {
        Matrix { group: Group { k: self }, handle: *handle }
    }

    /// The values of rows of a handle.
    pub fn rows_of(&self, handle: &RowsHandle) -> Rows<'_> {
        Rows { group: Group { k: self }, handle: *handle }
    }

    /// The look-back of a handle.
    pub fn look_back_of(&self, handle: &LookBackHandle) -> LookBack<'_> {
        let LookBackHandle { op, dtype, bits, tiles, ref words } = *handle;
        LookBack { op, dtype, bits, tiles: self.val_of(tiles), words: self.array_of(words) }
    }

    /// The queue of a handle.
    pub fn queue_of(&self, handle: &QueueHandle) -> Queue<'_> {
        let (slots, ends) = (self.array_of(&handle.slots), self.array_of(&handle.ends));
        Queue { capacity: self.val_of(handle.capacity), slots, ends }
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
