//! Arrays: arguments of a kernel, and storage of its own.

use super::group::{Group, Touched};
use super::handle::ArrayHandle;
use super::value::{Operand, Val};
use super::{Digit, Digits, Lang, Place, State};
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

/// Elements of storage of these extents.
pub(super) fn numel(shape: &[usize]) -> Option<u32> {
    let numel = shape.iter().try_fold(1usize, |numel, &x| numel.checked_mul(x));
    numel.and_then(|numel| u32::try_from(numel).ok())
}

impl<'k> Array<'k> {
    /// Storage, or an argument, with extents.
    pub(super) fn of_buffer(k: &'k Lang, storage: Value, extents: Vec<Value>) -> Array<'k> {
        let dtype = k.ty(storage).dtype;
        let (fixed, tile) = Default::default();
        Array { k, handle: ArrayHandle { storage, dtype, fixed, extents, tile } }
    }

    /// Storage of literal extents.
    #[track_caller]
    #[inline(never)]
    pub(super) fn own(k: &'k Lang, space: Space, ty: Type, shape: &[usize]) -> Array<'k> {
        let len = numel(shape).unwrap_or_else(|| {
            k.fail(format_args!("an array of extents {shape:?}: no device has so much storage"));
            1
        });
        Array::of_parts(k, k.emit(|s| s.b.alloc(space, ty, len.max(1))), shape)
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
            let digit = part.digit(0, at);
            part.handle.extents.remove(0);
            part.handle.tile = part.handle.tile.split_off(part.handle.tile.len().min(1));
            part.handle.fixed.push(digit);
        }
        part
    }

    /// Along each axis, how many tiles of a literal shape cover the array: groups that each store to a tile of their own never race.
    #[track_caller]
    pub fn tiles<const N: usize>(&self, shape: [usize; N]) -> [Val<'k>; N] {
        std::array::from_fn(|axis| self.extent(axis).div_ceil(shape[axis].max(1)))
    }

    /// The tile of a literal shape with these numbers along the axes, as an array. Outside of the tile or of this array a load gives 0, and a
    /// store does nothing. A coordinate outside of the tile is a mistake, one inside of it and beyond the end of the array is none.
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

    /// A coordinate along an axis, with the extent there.
    #[track_caller]
    fn digit(&self, axis: usize, at: Val<'k>) -> Digit {
        let (at, extent) = (self.k.as_index(at), self.handle.extents[axis]);
        let Some(&(first, whole)) = self.handle.tile.get(axis) else {
            return Digit { at: at.value, extent, tile: None };
        };
        let place = self.k.val_of(first) + at;
        Digit { at: place.value, extent: whole, tile: Some((at.value, extent)) }
    }

    /// The element at some coordinates.
    #[track_caller]
    pub fn at(&self, coordinates: impl Coordinates<'k>) -> Val<'k> {
        self.loaded(coordinates.list(self.k), None, Order::Plain)
    }

    /// The element, or `other` where the coordinates are outside of the array: beside the borders of an image.
    #[track_caller]
    pub fn at_or(&self, coordinates: impl Coordinates<'k>, other: impl Operand<'k>) -> Val<'k> {
        let (k, coordinates) = (self.k, coordinates.list(self.k));
        let digit = |(axis, &at)| self.digit(axis, at);
        let given = self.handle.fixed.iter().filter(|digit| digit.tile.is_some()).copied();
        let digits = given.chain(coordinates.iter().take(self.rank()).enumerate().map(digit));
        let is_below = |(at, extent)| k.val_of(at).ge(0) & k.val_of(at).lt(k.val_of(extent));
        let inside = digits.flat_map(Digit::bounds).map(is_below).reduce(|all, one| all & one);
        let inside = inside.unwrap_or_else(|| k.value(true, DType::Bool));
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
            // Storage of around all loops.
            self.k.stores_to(Value(0));
        }
        is_in_turn
    }

    #[track_caller]
    #[inline(never)]
    pub(super) fn loaded(
        &self,
        coordinates: Vec<Val<'k>>,
        inside: Option<Val<'k>>,
        order: Order,
    ) -> Val<'k> {
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
        self.by_one_thread(|| {
            self.k.touch(self, Touched::WRITTEN);
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
        let is_in_turn = self.is_in_turn(|caps| caps.has_atomic(op, self.dtype()));
        let (buf, ty) = (self.storage(), Type::scalar(self.dtype()));
        let emit = || {
            self.k.touch(self, Touched::WRITTEN);
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
        if !self.is_shared() {
            return emit();
        }
        if wanted {
            return Group { k: self.k }.value_of_first_thread(self.dtype(), emit);
        }
        self.by_one_thread(|| _ = emit());
        value
    }

    /// Runs the body by one thread of a group that does something together, if all see what is stored.
    fn by_one_thread(&self, body: impl FnOnce()) {
        if self.is_shared() && self.k.is_uniform() {
            return Group { k: self.k }.in_first_thread("set", body);
        }
        body();
    }

    pub(super) fn access(&self) -> Access {
        if let Op::Param { access, .. } = self.op() { access } else { Access::ReadWrite }
    }

    /// Whether other threads of a group see what a thread stores.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.op(), Op::Param { .. } | Op::Alloc { space: Space::Shared, .. })
    }

    /// The index of an element, behind a guard if there is a condition, and its coordinates.
    #[track_caller]
    #[inline(never)]
    fn place(&self, coordinates: Vec<Val<'k>>, inside: Option<Val<'k>>) -> Option<(Value, Digits)> {
        let (n, m) = (coordinates.len(), self.rank());
        if n != m {
            self.k.fail(format_args!("{n} coordinates of an array of {m} axes"));
            return None;
        }
        let mut digits = self.handle.fixed.clone();
        for (axis, at) in coordinates.into_iter().enumerate() {
            digits.push(self.digit(axis, at));
        }
        let narrow = if self.k.setting.large { DType::I64 } else { DType::I32 };
        let index = self.k.emit(|s| {
            let mut flat = None;
            for &Digit { at, extent, .. } in &digits {
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

    /// The coordinates of an access.
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
