//! The container of ops and the builder that makes one.
//!
//! The builder folds constants, applies exact identities (`x + 0` on integers, `x * 1`) and
//! shares equal pure values while their region is open. Folding never changes a result bit. A
//! builder made by [`Builder::raw`] does none of that; the parser and tests that need an exact
//! sequence of ops use it.

use super::extents::Extents;
use super::family::Members;
use super::memo::{Entry, Memo};
use super::op::{Access, BarrierScope, LoopKind, Op, Order, Space, Type, Value};
use crate::dtype::DType;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::scalar::Scalar;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher as _;

/// What is known of a buffer argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParamInfo {
    /// Element dtype.
    pub dtype: DType,
    /// Number of elements the kernel may address; the most, if `extents` say how many.
    pub len: u64,
    /// What the kernel does with it.
    pub access: Access,
    /// Whether `len` is a guess and launches tell how long it is.
    pub(crate) open: bool,
    /// The scalar arguments whose product is the number of elements, if it is no literal.
    pub extents: Option<Extents>,
}

impl ParamInfo {
    /// Whether `len` is a guess: how long it has to be depends on the scalars of a launch, or on the member of a
    /// [`Family`](super::Family) that it is for.
    pub fn is_open(&self) -> bool {
        self.open || self.extents.is_some()
    }
}

/// What is known of a scalar argument. The range is inclusive and applies to integers; all of
/// `i64` means that nothing is known (a `u64` may lie beyond).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VarInfo {
    /// Dtype of the argument.
    pub dtype: DType,
    /// Smallest value an integer argument takes.
    pub min: i64,
    /// Largest value an integer argument takes.
    pub max: i64,
    /// A divisor of every value that an integer argument takes.
    pub multiple_of: u32,
}

impl VarInfo {
    /// An argument of a dtype that takes every value.
    pub fn any(dtype: DType) -> VarInfo {
        VarInfo { dtype, min: i64::MIN, max: i64::MAX, multiple_of: 1 }
    }
}

/// A kernel: ops in program order with their types, and what its arguments are.
///
/// Equality and hash cover everything but the name.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    name: String,
    ops: Vec<Op>,
    types: Vec<Type>,
    params: Vec<ParamInfo>,
    vars: Vec<VarInfo>,
    /// The members of a family that it stands for.
    members: Option<Members>,
    /// Of all but the name and the members, once it is finished.
    hash: u64,
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.computes_as(other) && self.members == other.members
    }
}

impl Eq for Kernel {}

impl std::hash::Hash for Kernel {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Kernel {
    /// Whether all but names and members are equal.
    pub(super) fn computes_as(&self, other: &Kernel) -> bool {
        self.hash == other.hash
            && self.ops == other.ops
            && self.types == other.types
            && self.params == other.params
            && self.vars == other.vars
    }

    pub(crate) fn with_members(self, members: Option<Members>) -> Kernel {
        Kernel { members, ..self }
    }

    /// The members of a family that it stands for, if it was made for one.
    pub fn members(&self) -> Option<&Members> {
        self.members.as_ref()
    }

    /// The name, an identifier used in generated code and traces; not part of equality.
    #[inline]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The ops, in program order.
    #[inline]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The op that defines `value`.
    #[inline]
    pub fn op(&self, value: Value) -> Op {
        self.ops[value.idx()]
    }

    /// The type of `value`.
    #[inline]
    pub fn ty(&self, value: Value) -> Type {
        self.types[value.idx()]
    }

    /// Values with their ops and types, in program order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Value, Op, Type)> + '_ {
        self.ops
            .iter()
            .zip(&self.types)
            .enumerate()
            .map(|(i, (&op, &ty))| (Value(i as u32), op, ty))
    }

    /// Buffer arguments by slot.
    #[inline]
    pub fn params(&self) -> &[ParamInfo] {
        &self.params
    }

    /// Scalar arguments by slot.
    #[inline]
    pub fn vars(&self) -> &[VarInfo] {
        &self.vars
    }

    /// Whether scalars say how many elements a buffer has.
    pub fn has_extents(&self) -> bool {
        self.params.iter().any(|info| info.extents.is_some())
    }

    /// The kernel for buffers of the lengths that these scalars, given as bits, say.
    ///
    /// # Errors
    /// When a buffer would have more elements than it may.
    pub fn sized(&self, scalars: &[u64]) -> Result<Kernel, String> {
        let mut kernel = self.clone();
        for (slot, info) in kernel.params.iter_mut().enumerate() {
            let Some(extents) = info.extents.take() else { continue };
            let scalar = |slot: u16| scalars.get(usize::from(slot)).map_or(-1, |&x| x as i64);
            let len = extents.product(scalar).filter(|&len| len <= info.len);
            let most = info.len;
            info.len = len.ok_or_else(|| {
                format!("buffer {slot} has {extents} elements, no number from 0 to {most}")
            })?;
        }
        Ok(kernel.hashed())
    }

    /// With the hash of what it is.
    fn hashed(mut self) -> Kernel {
        let Kernel { ops, types, params, vars, .. } = &self;
        self.hash = FxBuildHasher.hash_one((ops, types, params, vars));
        self
    }

    /// Bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        let ops = self.ops.len() * (size_of::<Op>() + size_of::<Type>());
        let params = size_of_val(&*self.params) + size_of_val(&*self.vars);
        size_of::<Kernel>() + ops + params + self.name.len()
    }

    /// Whether groups wait for what others store.
    pub fn waits(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, Op::Load { order: Order::AcquireSpin, .. }))
    }

    /// The constant `value` is defined as, if it is one (a splat of a constant counts).
    pub fn constant(&self, value: Value) -> Option<Scalar> {
        match self.op(value) {
            Op::Const { bits } => Some(Scalar::from_bits(self.ty(value).dtype, bits)),
            Op::Splat { x } => self.constant(x),
            _ => None,
        }
    }

    /// An index without its guards, and their conditions.
    pub fn unguarded(&self, mut index: Value) -> (Value, Vec<Value>) {
        let mut conds = Vec::new();
        while let Op::Guard { index: inner, cond } = self.op(index) {
            conds.push(cond);
            index = inner;
        }
        (index, conds)
    }

    /// For each op, the position of the `End` that closes it if it opens a region, else its own.
    pub fn region_ends(&self) -> Vec<usize> {
        let mut ends: Vec<usize> = (0..self.ops.len()).collect();
        for (i, op) in self.ops.iter().enumerate() {
            if let Op::End { open } = op {
                ends[open.idx()] = i;
            }
        }
        ends
    }

    /// The loops that a `Break` may end before their last iteration, in program order of their ends.
    pub fn loops_with_break(&self) -> Vec<Value> {
        let mut found = Vec::new();
        if !self.ops.iter().any(|op| matches!(op, Op::Break { .. })) {
            return found;
        }
        let mut open: Vec<(Value, bool)> = Vec::new();
        for (value, op, _) in self.iter() {
            match op {
                Op::End { .. } => found.extend(open.pop().filter(|o| o.1).map(|o| o.0)),
                Op::Break { .. } => open.iter_mut().rev().take(1).for_each(|o| o.1 = true),
                _ if op.opens_region() => open.push((value, false)),
                _ => {}
            }
        }
        found
    }

    /// Whether serial loops store floats in what is declared outside of them: sums, and whatever else depends on
    /// the order of iterations.
    pub fn has_float_sums(&self) -> bool {
        let ends = self.region_ends();
        self.iter().any(|(open, op, _)| {
            let is_kept = |i: usize| match self.ops[i] {
                Op::Store { buf, .. } => {
                    let outside = matches!(self.op(buf), Op::Alloc { .. }) && buf < open;
                    outside && self.ty(buf).dtype.is_float()
                }
                _ => false,
            };
            let is_serial = matches!(op, Op::Loop { kind: LoopKind::Serial, .. });
            is_serial && (open.idx() + 1..ends[open.idx()]).any(is_kept)
        })
    }

    /// A builder holding the same arguments and no ops, for a pass that rebuilds this kernel.
    /// Call `declare` on `Param` and `Var` ops when copying them.
    pub fn rebuild(&self) -> Builder {
        let mut builder = Builder::new(&self.name);
        builder.kernel.ops.reserve(self.ops.len());
        builder.kernel.types.reserve(self.types.len());
        builder.memo.reserve(self.ops.len());
        builder.kernel.params.clone_from(&self.params);
        builder.kernel.vars.clone_from(&self.vars);
        builder.kernel.members.clone_from(&self.members);
        builder
    }
}

/// Makes a kernel op by op.
///
/// ```
/// use zyx_ir::ir::{Access, Builder, LoopKind};
/// use zyx_ir::{BinaryOp, DType};
///
/// // out[i] = a[i] + a[i]
/// let mut b = Builder::new("double");
/// let a = b.param(DType::F32, 8, Access::Read);
/// let out = b.param(DType::F32, 8, Access::Write);
/// let len = b.index(8);
/// let i = b.open_loop(LoopKind::Parallel, 0, len);
/// let x = b.load(a, i);
/// let y = b.binary(BinaryOp::Add, x, x);
/// b.store(out, i, y);
/// b.close();
/// let kernel = b.finish();
/// assert_eq!(kernel.params().len(), 2);
/// ```
#[derive(Debug)]
pub struct Builder {
    kernel: Kernel,
    open: Vec<Value>,
    /// Pure values to share.
    memo: Memo,
    fold: bool,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new("")
    }
}

impl Builder {
    /// A builder that folds and shares.
    pub fn new(name: &str) -> Builder {
        Builder {
            kernel: Kernel { name: name.to_owned(), ..Kernel::default() },
            open: Vec::new(),
            memo: Memo::new(),
            fold: true,
        }
    }

    /// A builder that emits exactly what it is told.
    pub fn raw(name: &str) -> Builder {
        Builder { fold: false, ..Builder::new(name) }
    }

    /// Declares arguments without emitting ops for them.
    pub(crate) fn with_arguments(mut self, params: Vec<ParamInfo>, vars: Vec<VarInfo>) -> Builder {
        (self.kernel.params, self.kernel.vars) = (params, vars);
        self
    }

    /// Appends an op as it stands: neither folded nor shared. Keeps track of regions.
    pub fn push(&mut self, op: Op, ty: Type) -> Value {
        let value = Value(self.kernel.ops.len() as u32);
        self.kernel.ops.push(op);
        self.kernel.types.push(ty);
        self.memo.pushed(op);
        if op.opens_region() {
            self.open.push(value);
        } else if let Op::End { .. } = op {
            self.open.pop();
        }
        value
    }

    /// Appends a pure op, folded and shared if this builder does that; any other op as it stands.
    /// What passes use to copy ops: `b.emit(op.map(|v| map[v]), ty)`.
    pub fn emit(&mut self, op: Op, ty: Type) -> Value {
        if !op.is_pure() || !self.fold {
            return self.push(op, ty);
        }
        if let Some(value) = self.folded(op, ty) {
            return value;
        }
        match self.memo.find(&self.kernel.ops, &self.kernel.types, op, ty) {
            Entry::Shared(value) => value,
            Entry::Vacant(slot) => {
                let value = self.push(op, ty);
                self.memo.insert(slot, value);
                value
            }
        }
    }

    /// Declares the next buffer argument.
    pub fn param(&mut self, dtype: DType, len: u64, access: Access) -> Value {
        self.declare(ParamInfo { dtype, len, access, open: false, extents: None })
    }

    pub(crate) fn declare(&mut self, info: ParamInfo) -> Value {
        let slot = self.kernel.params.len() as u16;
        self.kernel.params.push(info);
        self.push(Op::Param { slot, access: info.access }, Type::scalar(info.dtype))
    }

    /// A buffer argument of the kernel being rebuilt.
    pub(crate) fn param_mut(&mut self, slot: u16) -> &mut ParamInfo {
        &mut self.kernel.params[usize::from(slot)]
    }

    /// Declares a buffer argument of the kernel being rebuilt with another access.
    pub fn redeclare_param(&mut self, slot: u16, access: Access, ty: Type) -> Value {
        self.kernel.params[slot as usize].access = access;
        self.push(Op::Param { slot, access }, ty)
    }

    /// Declares the next scalar argument; the range matters for integers.
    pub fn var(&mut self, dtype: DType, min: i64, max: i64) -> Value {
        self.var_of(VarInfo { dtype, min, max, multiple_of: 1 })
    }

    /// Declares that a scalar argument is a multiple of a number.
    pub fn set_multiple(&mut self, slot: u16, multiple_of: u32) {
        self.kernel.vars[usize::from(slot)].multiple_of = multiple_of;
    }

    /// Declares that a scalar argument is at most a number.
    pub fn limit(&mut self, slot: u16, most: i64) {
        let max = &mut self.kernel.vars[usize::from(slot)].max;
        *max = most.min(*max);
    }

    /// Declares the next scalar argument.
    pub fn var_of(&mut self, info: VarInfo) -> Value {
        let (slot, dtype) = (self.kernel.vars.len() as u16, info.dtype);
        self.kernel.vars.push(info);
        self.push(Op::Var { slot }, Type::scalar(dtype))
    }

    /// A literal.
    pub fn constant(&mut self, x: Scalar) -> Value {
        self.emit(Op::Const { bits: x.bits() }, Type::scalar(x.dtype()))
    }

    /// A literal index (`i64`).
    pub fn index(&mut self, x: i64) -> Value {
        self.constant(Scalar::from(x))
    }

    /// `x` itself, or the splat of it to the lanes of `ty`.
    pub fn splat(&mut self, x: Value, lanes: u8) -> Value {
        if self.ty(x).lanes == lanes {
            return x;
        }
        let ty = Type::vector(self.ty(x).dtype, lanes);
        self.emit(Op::Splat { x }, ty)
    }

    /// Uninitialised storage for `len` values of type `ty`.
    pub fn alloc(&mut self, space: Space, ty: Type, len: u32) -> Value {
        self.push(Op::Alloc { space, len }, ty)
    }

    /// A unary op.
    pub fn unary(&mut self, op: UnaryOp, x: Value) -> Value {
        let ty = self.ty(x);
        self.emit(Op::Unary { op, x }, ty)
    }

    /// A binary op; a scalar operand beside a vector is splatted.
    pub fn binary(&mut self, op: BinaryOp, x: Value, y: Value) -> Value {
        let lanes = self.ty(x).lanes.max(self.ty(y).lanes);
        let (x, y) = (self.splat(x, lanes), self.splat(y, lanes));
        let ty = self.ty(x);
        self.emit(Op::Binary { op, x, y }, ty.with(op.result(ty.dtype)))
    }

    /// A ternary op; scalar operands beside a vector are splatted.
    pub fn ternary(&mut self, op: TernaryOp, x: Value, y: Value, z: Value) -> Value {
        let lanes = self.ty(x).lanes.max(self.ty(y).lanes).max(self.ty(z).lanes);
        let (x, y, z) = (self.splat(x, lanes), self.splat(y, lanes), self.splat(z, lanes));
        let ty = self.ty(y);
        self.emit(Op::Ternary { op, x, y, z }, ty)
    }

    /// `cond ? x : y`.
    pub fn select(&mut self, cond: Value, x: Value, y: Value) -> Value {
        self.ternary(TernaryOp::Where, cond, x, y)
    }

    /// Conversion to `dtype`; nothing if it already is.
    pub fn cast(&mut self, dtype: DType, x: Value) -> Value {
        let ty = self.ty(x);
        if ty.dtype == dtype { x } else { self.emit(Op::Cast { x }, ty.with(dtype)) }
    }

    /// The bits of `x` as `dtype` of equal width.
    pub fn bitcast(&mut self, dtype: DType, x: Value) -> Value {
        let ty = self.ty(x);
        if ty.dtype == dtype { x } else { self.emit(Op::Bitcast { x }, ty.with(dtype)) }
    }

    /// An index usable only where `cond` holds.
    pub fn guard(&mut self, index: Value, cond: Value) -> Value {
        let ty = self.ty(index);
        self.emit(Op::Guard { index, cond }, ty)
    }

    /// Loads one element (or one vector of an alloc of vectors).
    pub fn load(&mut self, buf: Value, index: Value) -> Value {
        let ty = self.ty(buf);
        self.push(Op::Load { order: Order::Plain, buf, index }, ty)
    }

    /// Loads `lanes` elements of a buffer: consecutive from a scalar index, gathered by a vector.
    pub fn load_vector(&mut self, buf: Value, index: Value, lanes: u8) -> Value {
        let ty = Type::vector(self.ty(buf).dtype, lanes);
        self.push(Op::Load { order: Order::Plain, buf, index }, ty)
    }

    /// Stores a value: an element, or as many consecutive ones as it has lanes.
    pub fn store(&mut self, buf: Value, index: Value, value: Value) -> Value {
        let ty = self.ty(value);
        self.push(Op::Store { order: Order::Plain, buf, index, value }, ty)
    }

    /// Atomically combines an element with `value`; gives the old element.
    pub fn atomic(&mut self, op: BinaryOp, buf: Value, index: Value, value: Value) -> Value {
        let ty = self.ty(value);
        self.push(Op::Atomic { op, order: Order::Relaxed, buf, index, value }, ty)
    }

    /// Opens a loop; gives its counter.
    pub fn open_loop(&mut self, kind: LoopKind, axis: u8, len: Value) -> Value {
        self.push(Op::Loop { kind, axis, len }, Type::scalar(DType::I64))
    }

    /// Puts another op in the place of one that was pushed and that nothing shares.
    pub(crate) fn replace(&mut self, value: Value, op: Op, ty: Type) {
        (self.kernel.ops[value.idx()], self.kernel.types[value.idx()]) = (op, ty);
    }

    /// Makes a loop that was opened one of another kind.
    pub(crate) fn set_kind(&mut self, open: Value, to: LoopKind) {
        if let Op::Loop { kind, .. } = &mut self.kernel.ops[open.idx()] {
            *kind = to;
        }
    }

    /// Opens a region entered where the scalar `cond` holds.
    pub fn open_if(&mut self, cond: Value) -> Value {
        self.push(Op::If { cond }, Type::scalar(DType::Bool))
    }

    /// Ends the innermost serial loop, whose region is the innermost open one, where the scalar `cond` holds.
    pub fn break_if(&mut self, cond: Value) -> Value {
        self.push(Op::Break { cond }, Type::scalar(DType::Bool))
    }

    /// Synchronises the local iterations of a group.
    pub fn barrier(&mut self, scope: BarrierScope) -> Value {
        self.push(Op::Barrier { scope }, Type::scalar(DType::Bool))
    }

    /// Closes the innermost open region.
    ///
    /// # Panics
    /// When no region is open.
    pub fn close(&mut self) {
        let open = *self.open.last().expect("invariant: close matches an open region");
        self.push(Op::End { open }, Type::scalar(DType::Bool));
    }

    /// How many regions are open.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// The op that defines `value`.
    #[inline]
    pub fn op(&self, value: Value) -> Op {
        self.kernel.op(value)
    }

    /// The type of `value`.
    #[inline]
    pub fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    /// The constant `value` is defined as, if it is one.
    pub fn as_constant(&self, value: Value) -> Option<Scalar> {
        self.kernel.constant(value)
    }

    /// The kernel as built so far.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The finished kernel.
    ///
    /// # Panics
    /// When a region is still open.
    pub fn finish(self) -> Kernel {
        assert!(self.open.is_empty(), "invariant: all regions are closed");
        self.kernel.hashed()
    }

    /// The value `op` folds to without being emitted. What is not rounded correctly, as `exp`, is left: devices
    /// have functions of their own, and the same number must not depend on whether it was known in time.
    fn folded(&mut self, op: Op, ty: Type) -> Option<Value> {
        let literal = |b: &mut Builder, x: Scalar| {
            let scalar = b.constant(x);
            b.splat(scalar, ty.lanes)
        };
        match op {
            Op::Unary { op, x } if op.ulp() == 0 => {
                let x = self.as_constant(x)?;
                Some(literal(self, op.eval(x)))
            }
            Op::Cast { x } => {
                let x = self.as_constant(x)?;
                Some(literal(self, x.cast(ty.dtype)))
            }
            Op::Bitcast { x } => {
                let x = self.as_constant(x)?;
                Some(literal(self, x.bitcast(ty.dtype)))
            }
            Op::Binary { op, x, y } => {
                let exact = op.ulp() == 0 || !ty.dtype.is_float();
                if let (Some(a), Some(b), true) = (self.as_constant(x), self.as_constant(y), exact)
                {
                    return Some(literal(self, op.eval(a, b)));
                }
                self.identity(op, x, y)
            }
            Op::Ternary { op: TernaryOp::Where, x, y, z } => match self.as_constant(x) {
                Some(cond) => Some(if cond.to_bool() { y } else { z }),
                None if y == z => Some(y),
                None => None,
            },
            Op::Guard { index, cond } => {
                self.as_constant(cond).filter(|c| c.to_bool()).map(|_| index)
            }
            _ => None,
        }
    }

    /// `x op y` where one operand is neutral or absorbing; exact on every dtype.
    fn identity(&mut self, op: BinaryOp, x: Value, y: Value) -> Option<Value> {
        let dtype = self.ty(x).dtype;
        let (a, b) = (self.as_constant(x), self.as_constant(y));
        let is = |c: Option<Scalar>, n: i64| c == Some(Scalar::from_i64(dtype, n));
        let exact = !dtype.is_float();
        match op {
            BinaryOp::Add if exact && is(b, 0) => Some(x),
            BinaryOp::Add if exact && is(a, 0) => Some(y),
            BinaryOp::Sub if is(b, 0) => Some(x),
            BinaryOp::Mul | BinaryOp::Div if is(b, 1) => Some(x),
            BinaryOp::Mul if is(a, 1) => Some(y),
            BinaryOp::Mul if exact && is(b, 0) => Some(y),
            BinaryOp::Mul if exact && is(a, 0) => Some(x),
            BinaryOp::And if dtype == DType::Bool && is(b, 1) => Some(x),
            BinaryOp::And if dtype == DType::Bool && is(a, 1) => Some(y),
            BinaryOp::Or if exact && is(b, 0) => Some(x),
            BinaryOp::Or if exact && is(a, 0) => Some(y),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_shared_until_their_region_closes() {
        let mut b = Builder::new("k");
        let n = b.index(4);
        let i = b.open_loop(LoopKind::Serial, 0, n);
        let two = b.index(2);
        let x = b.binary(BinaryOp::Mul, i, two);
        assert_eq!(b.binary(BinaryOp::Mul, i, two), x);
        b.close();
        let j = b.open_loop(LoopKind::Serial, 0, n);
        let again = b.index(2);
        assert_ne!(again, two);
        assert_ne!(b.binary(BinaryOp::Mul, j, again), x);
        b.close();
        b.finish();
    }

    #[test]
    fn nan_and_signed_zero_survive_folding() {
        let mut b = Builder::new("k");
        let nan = b.constant(Scalar::from(f32::NAN));
        let zero = b.constant(Scalar::from(0f32));
        let product = b.binary(BinaryOp::Mul, nan, zero);
        assert!(b.as_constant(product).is_some_and(|x| x.to_f64().is_nan()));
        let p = b.param(DType::F32, 1, Access::Read);
        let origin = b.index(0);
        let x = b.load(p, origin);
        assert_ne!(b.binary(BinaryOp::Mul, x, zero), zero);
        assert_ne!(b.binary(BinaryOp::Add, x, zero), x, "-0 + 0 is +0");
    }
}
