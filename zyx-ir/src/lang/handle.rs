//! Handles for programs of other languages, whose objects cannot borrow from a recording.
//!
//! A handle holds numbers of ops. [`Lang::val_of`], [`Lang::array_of`] and the others here make of it what a kernel in Rust
//! has. A handle serves the recording that it is of, and that recording alone.

use super::array::Array;
use super::group::Group;
use super::tile::{Layout, Matrix, Rows};
use super::value::Val;
use super::{Fill, Lang, LangError, Role};
use crate::dtype::DType;
use crate::ir::{Op, Space, Type, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;

/// An [`Array`] as numbers; see [`Lang::array_of`].
#[derive(Clone, Debug)]
pub struct ArrayHandle {
    storage: Value,
    dtype: DType,
    fixed: Vec<(Value, Value)>,
    extents: Vec<Value>,
}

/// A [`Matrix`] as numbers; see [`Lang::matrix_of`].
#[derive(Clone, Debug)]
pub struct MatrixHandle {
    shape: [usize; 2],
    dtype: DType,
    layout: Layout,
    parts: Vec<Value>,
}

/// [`Rows`] as numbers; see [`Lang::rows_of`].
#[derive(Clone, Debug)]
pub struct RowsHandle {
    n: usize,
    layout: Layout,
    parts: Vec<ArrayHandle>,
}

impl Array<'_> {
    /// Its handle.
    pub fn handle(&self) -> ArrayHandle {
        ArrayHandle {
            storage: self.storage,
            dtype: self.dtype,
            fixed: self.fixed.iter().map(|(at, extent)| (at.value, extent.value)).collect(),
            extents: self.extents.iter().map(|extent| extent.value).collect(),
        }
    }
}

impl Matrix<'_> {
    /// Its handle.
    pub fn handle(&self) -> MatrixHandle {
        let Matrix { shape, dtype, layout, .. } = *self;
        MatrixHandle { shape, dtype, layout, parts: self.parts.clone() }
    }
}

impl Rows<'_> {
    /// Its handle.
    pub fn handle(&self) -> RowsHandle {
        let parts = self.parts.iter().map(Array::handle).collect();
        RowsHandle { n: self.n, layout: self.layout, parts }
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
        let of = |&value: &Value| self.val_of(value);
        Array {
            k: self,
            storage: handle.storage,
            dtype: handle.dtype,
            fixed: handle.fixed.iter().map(|(at, extent)| (of(at), of(extent))).collect(),
            extents: handle.extents.iter().map(of).collect(),
        }
    }

    /// The matrix of a handle.
    pub fn matrix_of(&self, handle: &MatrixHandle) -> Matrix<'_> {
        let MatrixHandle { shape, dtype, layout, .. } = *handle;
        Matrix { group: Group { k: self }, shape, dtype, layout, parts: handle.parts.clone() }
    }

    /// The values of rows of a handle.
    pub fn rows_of(&self, handle: &RowsHandle) -> Rows<'_> {
        let parts = handle.parts.iter().map(|part| self.array_of(part)).collect();
        Rows { group: Group { k: self }, n: handle.n, layout: handle.layout, parts }
    }

    /// As [`Lang::output_filled`], of any number of axes.
    #[track_caller]
    pub fn output_filled_of<'k>(
        &'k self,
        name: &str,
        shape: &[Val<'k>],
        dtype: DType,
        fill: Scalar,
    ) -> Array<'k> {
        self.argument(name, dtype, shape, Role::Filled(Fill::Scalar(fill.cast(dtype).bits())))
    }

    /// As [`Lang::scratch`], of any number of axes.
    #[track_caller]
    pub fn scratch_of<'k>(&'k self, name: &str, shape: &[Val<'k>], dtype: DType) -> Array<'k> {
        self.argument(name, dtype, shape, Role::Scratch)
    }

    /// As [`Lang::array`], of any number of axes.
    #[track_caller]
    pub fn array_of_shape(&self, shape: &[usize], dtype: DType) -> Array<'_> {
        Array::own(self, Space::Register, Type::scalar(dtype), shape)
    }
}

impl<'k> Group<'k> {
    /// As [`Group::shared`], of any number of axes.
    #[track_caller]
    pub fn shared_of_shape(self, shape: &[usize], dtype: DType) -> Array<'k> {
        let space = if self.number().is_some() { Space::Shared } else { Space::Register };
        Array::own(self.lang(), space, Type::scalar(dtype), shape)
    }
}

impl<'k> Val<'k> {
    /// The recording that it is of.
    pub fn lang(self) -> &'k Lang {
        self.k
    }

    /// Whether it is shown not to be negative: sizes, counters of loops, and what is computed of them without subtraction.
    pub fn is_nonnegative(self) -> bool {
        const MAX_DEPTH: usize = 16;
        self.is_nonnegative_within(MAX_DEPTH)
    }

    fn is_nonnegative_within(self, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let is = |value: Value| self.k.val_of(value).is_nonnegative_within(depth);
        let dtype = self.dtype();
        if !dtype.is_float() && !dtype.is_signed() {
            return true;
        }
        match self.op() {
            Op::Const { .. } => self.literal().is_some_and(|x| x.to_f64() >= 0.0),
            Op::Loop { .. } => true,
            Op::Var { .. } => {
                let state = self.k.state.borrow();
                state.scalars.iter().any(|scalar| scalar.1 == self.value)
            }
            Op::Cast { x } => {
                let from = self.k.ty(x).dtype;
                from.bits() <= dtype.bits() && is(x)
            }
            Op::Binary { op, x, y } => match op {
                BinaryOp::Add | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Min => is(x) && is(y),
                BinaryOp::Max => is(x) || is(y),
                BinaryOp::And => is(x) || is(y),
                BinaryOp::Rem | BinaryOp::Shr => is(x),
                _ => false,
            },
            _ => false,
        }
    }
}
