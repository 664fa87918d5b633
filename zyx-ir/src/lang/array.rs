//! Arrays: arguments of a kernel, and storage of its own.

use super::group::Touched;
use super::handle::{ArrayHandle, MAX_DEPTH};
use super::value::{Operand, Val};
use super::{Digits, Lang, Place, State};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Access, Op, Order, Space, Type, Value};
use crate::ops::BinaryOp;

/// An array of a kernel being recorded: an argument, or storage of a thread or a group.
#[derive(Clone)]
pub struct Array<'k> {
    pub(super) k: &'k Lang,
    pub(super) handle: ArrayHandle,
}

/// Coordinates of an element: one value or literal, an array, a tuple or a list of them. An integer of any dtype serves.
pub trait Coordinates<'k> {
    /// The coordinates, outermost first.
    fn list(self, k: &'k Lang) -> Vec<Val<'k>>;
}

impl<'k, T: Operand<'k>> Coordinates<'k> for T {
    #[track_caller]
    fn list(self, k: &'k Lang) -> Vec<Val<'k>> {
        vec![self.val(k, DType::I64)]
    }
}

impl<'k, T: Operand<'k>, const N: usize> Coordinates<'k> for [T; N] {
    #[track_caller]
    fn list(self, k: &'k Lang) -> Vec<Val<'k>> {
        self.iter().map(|x| x.val(k, DType::I64)).collect()
    }
}

impl<'k> Coordinates<'k> for &[Val<'k>] {
    fn list(self, _: &'k Lang) -> Vec<Val<'k>> {
        self.to_vec()
    }
}

impl<'k> Coordinates<'k> for () {
    fn list(self, _: &'k Lang) -> Vec<Val<'k>> {
        Vec::new()
    }
}

macro_rules! tuples {
    ($(($($name:ident)*))*) => {$(
        impl<'k, $($name: Operand<'k>),*> Coordinates<'k> for ($($name,)*) {
            #[allow(non_snake_case, reason = "names of types are names of their values")]
            #[track_caller]
            fn list(self, k: &'k Lang) -> Vec<Val<'k>> {
                let ($($name,)*) = self;
                vec![$($name.val(k, DType::I64)),*]
            }
        }
    )*};
}

tuples!((A B)(A B C)(A B C D)(A B C D E));

impl<'k> Array<'k> {
    /// Storage, or an argument, with extents.
    pub(super) fn of_buffer(k: &'k Lang, storage: Value, extents: Vec<Value>) -> Array<'k> {
        let dtype = k.ty(storage).dtype;
        let (fixed, tile) = Default::default();
        Array { k, handle: ArrayHandle { storage, dtype, fixed, extents, tile, inside: None } }
    }

    /// Storage of literal extents.
    #[track_caller]
    #[inline(never)]
    pub(super) fn own(k: &'k Lang, space: Space, ty: Type, shape: &[usize]) -> Array<'k> {
        let len = shape.iter().try_fold(1usize, |len, &x| len.checked_mul(x));
        let len = len.and_then(|len| u32::try_from(len.max(1)).ok()).unwrap_or_else(|| {
            k.fail(format_args!("an array of extents {shape:?}: no device has so much storage"));
            1
        });
        Array::of_parts(k, k.emit(|s| s.b.alloc(space, ty, len)), shape)
    }

    /// Storage of a thread as an array of literal extents.
    pub(super) fn of_parts(k: &'k Lang, storage: Value, shape: &[usize]) -> Array<'k> {
        let extents = shape.iter().map(|&x| k.index(x as i64).value).collect();
        Array::of_buffer(k, storage, extents)
    }

    /// The dtype of its elements.
    pub fn dtype(&self) -> DType {
        self.handle.dtype
    }

    /// Its dtype where that is a float, else `f32`.
    pub fn float_dtype(&self) -> DType {
        if self.dtype().is_float() { self.dtype() } else { DType::F32 }
    }

    /// Its extents, outermost first.
    pub fn shape(&self) -> Vec<Val<'k>> {
        self.handle.extents.iter().map(|&extent| self.k.val_of(extent)).collect()
    }

    /// The extent of an axis.
    #[track_caller]
    pub fn extent(&self, axis: usize) -> Val<'k> {
        self.shape().get(axis).copied().unwrap_or_else(|| {
            self.k.fail(format_args!("axis {axis} of an array of {} axes", self.rank()));
            self.k.index(1)
        })
    }

    /// Its number of axes.
    pub fn rank(&self) -> usize {
        self.handle.extents.len()
    }

    pub(super) fn slot(&self) -> Option<u16> {
        if let Op::Param { slot, .. } = self.op() { Some(slot) } else { None }
    }

    /// The op that declares its storage.
    pub(super) fn op(&self) -> Op {
        self.k.val_of(self.storage()).op()
    }

    pub(super) fn storage(&self) -> Value {
        self.handle.storage
    }

    /// The part at these coordinates of its first axes: a row of a matrix.
    #[track_caller]
    pub fn row(&self, coordinates: impl Coordinates<'k>) -> Array<'k> {
        let mut part = self.clone();
        for at in coordinates.list(self.k) {
            if part.rank() == 0 {
                self.k.fail("more coordinates than axes");
                break;
            }
            let (digit, inside) = part.digit(0, at);
            part.handle.extents.remove(0);
            part.handle.tile = part.handle.tile.split_off(part.handle.tile.len().min(1));
            part.handle.fixed.push(digit);
            part.handle.inside = part.inside(inside).map(|inside| inside.value);
        }
        part
    }

    /// Along each axis, how many tiles of a literal shape cover the array: groups that each store to a tile of their own never race.
    #[track_caller]
    pub fn tiles<const N: usize>(&self, shape: [usize; N]) -> [Val<'k>; N] {
        std::array::from_fn(|axis| self.extent(axis).div_ceil(shape[axis].max(1)))
    }

    /// The tile of a literal shape with these numbers along the axes, as an array. Outside of the tile or of this array a load gives 0, and a
    /// store does nothing.
    #[track_caller]
    pub fn tile(&self, number: impl Coordinates<'k>, shape: impl AsRef<[usize]>) -> Array<'k> {
        let (number, shape, mut tile) = (number.list(self.k), shape.as_ref(), self.clone());
        let n = self.rank();
        if number.len() != n || shape.len() != n || !self.handle.tile.is_empty() {
            self.k.fail(format_args!("a tile {shape:?} of an array along {n} axes, or of a tile"));
            return tile;
        }
        for (axis, (at, &len)) in number.into_iter().zip(shape).enumerate() {
            let first = self.k.as_index(at) * len;
            let extent = self.handle.extents[axis];
            tile.handle.extents[axis] = self.k.index(len as i64).value;
            tile.handle.tile.push((first.value, extent));
        }
        tile
    }

    /// A coordinate along an axis, with the extent there, and whether it is inside of a tile.
    #[track_caller]
    fn digit(&self, axis: usize, at: Val<'k>) -> ((Value, Value), Option<Val<'k>>) {
        let (k, at) = (self.k, self.k.as_index(at));
        let len = self.handle.extents[axis];
        let Some(&(first, extent)) = self.handle.tile.get(axis) else {
            return ((at.value, len), None);
        };
        let (len, place) = (k.val_of(len), k.val_of(first) + at);
        let known = k.state.borrow().interval(at.value, MAX_DEPTH);
        let is_in_tile =
            known.min >= 0 && len.literal().is_some_and(|len| known.max < len.to_i128());
        let is_in_array = place.lt(k.val_of(extent));
        let inside = if is_in_tile { is_in_array } else { is_in_array & at.ge(0) & at.lt(len) };
        ((place.value, extent), Some(inside))
    }

    /// A condition, and that given coordinates are inside.
    fn inside(&self, condition: Option<Val<'k>>) -> Option<Val<'k>> {
        let given = self.handle.inside.map(|inside| self.k.val_of(inside));
        given.into_iter().chain(condition).reduce(|all, one| all & one)
    }

    /// The element at some coordinates.
    #[track_caller]
    pub fn at(&self, coordinates: impl Coordinates<'k>) -> Val<'k> {
        self.loaded(coordinates.list(self.k), None, Order::Plain)
    }

    /// The element, or `other` where the coordinates are outside of the array: beside the borders of an image.
    #[track_caller]
    pub fn at_or(&self, coordinates: impl Coordinates<'k>, other: impl Operand<'k>) -> Val<'k> {
        let coordinates = coordinates.list(self.k);
        let inside = coordinates.iter().take(self.rank()).enumerate().map(|(axis, &at)| {
            let ((at, extent), inside) = self.digit(axis, at);
            let [at, extent] = [at, extent].map(|x| self.k.val_of(x));
            inside.unwrap_or_else(|| at.ge(0) & at.lt(extent))
        });
        let inside = self.inside(None).into_iter().chain(inside);
        let inside = inside.reduce(|all, one| all & one);
        let inside = inside.unwrap_or_else(|| self.k.value(true, DType::Bool));
        self.at_if(inside, coordinates.as_slice(), other)
    }

    /// The element where a condition holds, else a literal or value. Nothing is loaded where it does not.
    #[track_caller]
    pub fn at_if(
        &self,
        inside: Val<'k>,
        coordinates: impl Coordinates<'k>,
        other: impl Operand<'k>,
    ) -> Val<'k> {
        let value = self.loaded(coordinates.list(self.k), Some(inside), Order::Plain);
        let other = other.val(self.k, self.dtype());
        let is_zero = other.literal().is_some_and(|x| x.bits() == 0);
        if is_zero { value } else { inside.select(value, other) }
    }

    /// The element, which other groups may be changing atomically.
    #[track_caller]
    pub fn at_atomic(&self, coordinates: impl Coordinates<'k>) -> Val<'k> {
        let is_in_turn = self.is_in_turn(|caps| caps.atomics.contains(self.dtype()));
        let order = if is_in_turn { Order::Plain } else { Order::Relaxed };
        self.loaded(coordinates.list(self.k), None, order)
    }

    /// Whether iterations follow one another, which they are made to do where the device lacks atomics and threads.
    fn is_in_turn(&self, has_atomics: impl FnOnce(&Caps) -> bool) -> bool {
        let caps = self.k.caps();
        let is_in_turn = !caps.simt && !has_atomics(caps);
        if is_in_turn {
            self.k.in_turn();
        }
        is_in_turn
    }

    #[track_caller]
    #[inline(never)]
    fn loaded(&self, coordinates: Vec<Val<'k>>, inside: Option<Val<'k>>, order: Order) -> Val<'k> {
        let dtype = self.dtype();
        let Some(place) = self.place(coordinates, inside) else { return self.k.value(0, dtype) };
        self.k.touch(self, Touched::READ);
        let value = self.k.val(|s| {
            let op = Op::Load { order, buf: self.storage(), index: place.0 };
            s.access(op, Type::scalar(dtype), place.1)
        });
        // A bool of memory may be any byte that is not zero.
        if dtype == DType::Bool { value.ne(false) } else { value }
    }

    /// Stores an element. In a group, outside of what its threads do each for itself, one of them does.
    #[track_caller]
    pub fn set(&self, coordinates: impl Coordinates<'k>, value: impl Operand<'k>) {
        let value = value.val(self.k, self.dtype());
        self.k.primitive(|| self.stored(coordinates.list(self.k), value, None));
    }

    /// Stores an element where a condition holds.
    #[track_caller]
    pub fn set_if(
        &self,
        inside: Val<'k>,
        coordinates: impl Coordinates<'k>,
        value: impl Operand<'k>,
    ) {
        let value = value.val(self.k, self.dtype());
        self.k.primitive(|| self.stored(coordinates.list(self.k), value, Some(inside)));
    }

    #[inline(never)]
    fn stored(&self, coordinates: Vec<Val<'k>>, value: Val<'k>, inside: Option<Val<'k>>) {
        if self.access() == Access::Read {
            let reason = "an input is never stored to: use an output, or `output_from` the input";
            return self.k.fail(reason);
        }
        let (from, to) = (value.dtype(), self.dtype());
        if from != to {
            return self.k.fail(format_args!("a {from} is stored in {to}: cast it"));
        }
        let Some(place) = self.place(coordinates, inside) else { return };
        self.k.touch(self, Touched::WRITTEN);
        self.k.by_one_thread(self.is_shared(), || {
            self.k.emit(|s| s.store(self.storage(), value.value, place));
        });
    }

    /// Combines an element atomically with a value, in any order among threads.
    #[track_caller]
    pub fn atomic(&self, op: BinaryOp, coordinates: impl Coordinates<'k>, value: impl Operand<'k>) {
        let value = value.val(self.k, self.dtype());
        self.k.primitive(|| self.atomically(op, coordinates.list(self.k), value, false));
    }

    /// As [`Array::atomic`]; gives the element from before. In a group, outside of what its threads do each for itself, one
    /// of them does and tells the others.
    #[track_caller]
    pub fn fetch(
        &self,
        op: BinaryOp,
        coordinates: impl Coordinates<'k>,
        value: impl Operand<'k>,
    ) -> Val<'k> {
        let value = value.val(self.k, self.dtype());
        self.k.primitive(|| self.atomically(op, coordinates.list(self.k), value, true))
    }

    #[inline(never)]
    fn atomically(
        &self,
        op: BinaryOp,
        coordinates: Vec<Val<'k>>,
        value: Val<'k>,
        wanted: bool,
    ) -> Val<'k> {
        if self.access() != Access::ReadWrite {
            self.k.fail("atomics are for outputs that are filled, scratch and shared arrays");
            return value;
        }
        if value.dtype() != self.dtype() {
            let (from, to) = (value.dtype(), self.dtype());
            self.k.fail(format_args!("an atomic of {from} on {to}: cast it"));
            return value;
        }
        let Some(place) = self.place(coordinates, None) else { return value };
        self.k.touch(self, Touched::WRITTEN);
        let is_in_turn = self.is_in_turn(|caps| caps.has_atomic(op, self.dtype()));
        let (buf, ty) = (self.storage(), Type::scalar(self.dtype()));
        let emit = || {
            self.k.val(|s| {
                // Storage of one thread has no others to be atomic for, nor have iterations that follow one another.
                let of_thread = matches!(s.b.op(buf), Op::Alloc { space: Space::Register, .. });
                let (order, index, value) = (Order::Relaxed, place.0, value.value);
                if !of_thread && !is_in_turn {
                    return s.access(Op::Atomic { op, order, buf, index, value }, ty, place.1);
                }
                let load = Op::Load { order: Order::Plain, buf, index };
                let old = s.access(load, ty, place.1.clone());
                let new = s.b.binary(op, old, value);
                s.store(buf, new, place);
                old
            })
        };
        if wanted {
            self.k.told_by_one_thread(self.dtype(), emit)
        } else {
            self.k.by_one_thread(self.is_shared(), || _ = emit());
            value
        }
    }

    fn access(&self) -> Access {
        if let Op::Param { access, .. } = self.op() { access } else { Access::ReadWrite }
    }

    /// Whether other threads of a group read what a thread stores.
    pub(super) fn is_exchanged(&self) -> bool {
        self.access() == Access::ReadWrite && self.is_shared()
    }

    /// Whether other threads of a group see what a thread stores.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.op(), Op::Param { .. } | Op::Alloc { space: Space::Shared, .. })
    }

    /// The index of an element, behind a guard if there is a condition, and its coordinates with the extents.
    #[track_caller]
    #[inline(never)]
    fn place(&self, coordinates: Vec<Val<'k>>, inside: Option<Val<'k>>) -> Option<(Value, Digits)> {
        let (n, m) = (coordinates.len(), self.rank());
        if n != m {
            self.k.fail(format_args!("{n} coordinates of an array of {m} axes"));
            return None;
        }
        let mut digits: Digits = self.handle.fixed.clone();
        let mut inside = self.inside(inside);
        for (axis, at) in coordinates.into_iter().enumerate() {
            let (digit, own) = self.digit(axis, at);
            digits.push(digit);
            inside = inside.into_iter().chain(own).reduce(|all, one| all & one);
        }
        let narrow = if self.k.setting.large { DType::I64 } else { DType::I32 };
        let index = self.k.emit(|s| {
            let mut flat = None;
            for &(at, extent) in &digits {
                let [at, extent] = [at, extent].map(|x| s.b.cast(narrow, x));
                flat = Some(match flat {
                    None => at,
                    Some(flat) => {
                        let row = s.b.binary(BinaryOp::Mul, flat, extent);
                        s.b.binary(BinaryOp::Add, row, at)
                    }
                });
            }
            let index = flat.unwrap_or_else(|| s.b.index(0));
            inside.map_or(index, |inside| s.b.guard(index, inside.value))
        });
        Some((index, digits))
    }
}

impl State {
    /// Records an access of an element.
    pub(super) fn access(&mut self, op: Op, ty: Type, digits: Digits) -> Value {
        let access = self.b.push(op, ty);
        self.places.push(Place { access, digits });
        access
    }

    fn store(&mut self, buf: Value, value: Value, (index, digits): (Value, Digits)) {
        let (order, ty) = (Order::Plain, self.b.ty(value));
        self.access(Op::Store { order, buf, index, value }, ty, digits);
    }

    /// The coordinates of an access, with the extents.
    pub(super) fn digits(&self, access: Value) -> Option<&Digits> {
        self.places.iter().rfind(|place| place.access == access).map(|place| &place.digits)
    }
}

impl Lang {
    /// A coordinate as `i64`.
    #[track_caller]
    pub(super) fn as_index<'k>(&'k self, at: Val<'k>) -> Val<'k> {
        if !at.dtype().is_int() {
            self.fail(format_args!("a coordinate is {}, not an integer", at.dtype()));
        }
        at.cast(DType::I64)
    }
}

impl std::fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} : {}{:?}", self.storage(), self.dtype(), self.shape())
    }
}
