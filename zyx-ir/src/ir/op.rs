//! The instructions of the kernel IR: sixteen bytes each, `Copy`, hashable.

use crate::dtype::DType;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::scalar::Scalar;
use std::fmt;

/// A value is the index of the op that defines it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub u32);

impl Value {
    /// The position of the defining op in its kernel.
    #[inline]
    pub const fn idx(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// The type of a value: a dtype and a number of lanes. Storage (`Param`, `Alloc`) carries the
/// type of its elements; ops without a result carry the type of what they handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Element dtype.
    pub dtype: DType,
    /// 1 for a scalar, else the width of a vector.
    pub lanes: u8,
}

impl Type {
    /// One element.
    #[inline]
    pub const fn scalar(dtype: DType) -> Type {
        Type { dtype, lanes: 1 }
    }

    /// A vector of `lanes` elements.
    #[inline]
    pub const fn vector(dtype: DType, lanes: u8) -> Type {
        Type { dtype, lanes }
    }

    /// The same lanes of another dtype.
    #[inline]
    pub const fn with(self, dtype: DType) -> Type {
        Type { dtype, lanes: self.lanes }
    }

    /// Whether this is a vector.
    #[inline]
    pub const fn is_vector(self) -> bool {
        self.lanes > 1
    }

    /// Bytes of one value.
    #[inline]
    pub const fn bytes(self) -> usize {
        self.dtype.size() * self.lanes as usize
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lanes == 1 {
            write!(f, "{}", self.dtype)
        } else {
            write!(f, "{}x{}", self.dtype, self.lanes)
        }
    }
}

/// What an access orders, and how far it is seen: one byte of every memory op. Where it happens is
/// said by the storage it names, so nothing here can contradict that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Order {
    /// An ordinary access; a race with another is a bug.
    Plain,
    /// An ordinary store that bypasses caches where the device can; same meaning as `Plain`.
    Streaming,
    /// An ordinary store to shared storage that is sure to have happened behind the next barrier only:
    /// nobody, not even the thread itself, may read the element before. A device can copy to
    /// there from memory meanwhile.
    AsyncCopy,
    /// Atomic without ordering, seen by the whole device.
    Relaxed,
    /// Atomic; a load that acquires at device scope.
    Acquire,
    /// Atomic; a store that releases at device scope.
    Release,
    /// Atomic; both, at device scope.
    AcquireRelease,
    /// Atomic without ordering; a load of an integer that waits until it is other than zero.
    AcquireSpin,
}

/// Where storage lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Space {
    /// Private to one iteration of all enclosing parallel loops; a register where indices are
    /// constant.
    Register,
    /// Shared by the local loops of one group.
    Shared,
}

/// What a kernel may do with a buffer argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Access {
    /// Loads only.
    Read,
    /// Stores only, each element at most once.
    Write,
    /// Both, or atomics.
    ReadWrite,
}

/// Which memory a barrier orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BarrierScope {
    /// Shared storage of the group.
    Shared,
    /// Shared storage and buffers, for the group.
    Group,
}

/// How the iterations of a loop relate and where they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LoopKind {
    /// In order, by one thread.
    Serial,
    /// Independent iterations; executed like `Serial` until a pass binds them.
    Parallel,
    /// Independent iterations spread over groups (CUDA blocks, CPU tasks).
    Group,
    /// Independent iterations spread over the threads of a group; barriers synchronise them.
    Local,
}

/// How lanes of a subgroup exchange values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ShuffleKind {
    /// From the lane with this index.
    Index,
    /// From the lane whose index differs by exclusive or.
    Xor,
    /// From the lane that many places up.
    Down,
}

/// One instruction. Sixteen bytes, asserted below.
///
/// | op | type carried | meaning |
/// |---|---|---|
/// | `Param` | element | buffer argument in `slot` |
/// | `Var` | scalar | scalar argument in `slot`, any dtype |
/// | `Const` | scalar | the literal `bits` |
/// | `Alloc` | element (may be a vector) | uninitialised storage of `len` elements |
/// | `Unary` `Binary` `Ternary` | result | see the op table; lanes act alike |
/// | `Cast` `Bitcast` | result | conversion of value or of bits |
/// | `Splat` | vector | all lanes equal the scalar `x` |
/// | `Lanes` | integer vector | 0, 1, 2, … |
/// | `Extract` | scalar | one lane |
/// | `Concat` | vector | the lanes of `x`, then those of `y` |
/// | `Fold` | scalar | all lanes of `x` combined by an associative `op`, in any grouping (the interpreter: upper half into lower, repeatedly) |
/// | `Guard` | as `index` | an index that may be used only where `cond` holds; it is itself used as an index only. A scalar index of consecutive elements may have a condition per element |
/// | `Load` | loaded | element `index` (vector type with scalar index: consecutive elements from `index`; vector index: a gather); lanes excluded by a guard give 0 |
/// | `Store` | stored | as `Load`; lanes excluded by a guard are not written |
/// | `Atomic` | scalar or vector | `buf[index] = buf[index] op value` indivisibly; gives the old element |
/// | `Loop` | `i64` scalar | the counter, `0 .. len` |
/// | `If` | bool | region entered where `cond` (scalar) holds |
/// | `Break` | bool | where `cond` (scalar) holds, ends the serial loop that it stands directly in: the rest of this iteration and all later ones do not happen |
/// | `End` | – | closes a region |
/// | `Barrier` | – | all local iterations of the group, a literal number as for all exchange between them, arrive before any goes on |
/// | `Shuffle` | as `x` | exchange within a subgroup; from a lane that does not exist, the own value |
/// | `Panel` | as the storage's elements | the matrix of halves that begins at element `index` of shared storage, as [`mma`](super::mma) lays it out; a factor of `Mma` only, which reads it |
/// | `Mma` | sums | `c` plus the product of matrices `a` and `b`, by a team of threads together: instruction `row` of [`mma`](super::mma) |
///
/// `Load` and `Store` on an `Alloc` of vectors index whole vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the table above documents every field")]
pub enum Op {
    Param { slot: u16, access: Access },
    Var { slot: u16 },
    Const { bits: u64 },
    Alloc { space: Space, len: u32 },
    Unary { op: UnaryOp, x: Value },
    Binary { op: BinaryOp, x: Value, y: Value },
    Ternary { op: TernaryOp, x: Value, y: Value, z: Value },
    Cast { x: Value },
    Bitcast { x: Value },
    Splat { x: Value },
    Lanes,
    Extract { x: Value, lane: u8 },
    Concat { x: Value, y: Value },
    Fold { op: BinaryOp, x: Value },
    Guard { index: Value, cond: Value },
    Load { order: Order, buf: Value, index: Value },
    Store { order: Order, buf: Value, index: Value, value: Value },
    Atomic { op: BinaryOp, order: Order, buf: Value, index: Value, value: Value },
    Loop { kind: LoopKind, axis: u8, len: Value },
    If { cond: Value },
    Break { cond: Value },
    End { open: Value },
    Barrier { scope: BarrierScope },
    Shuffle { kind: ShuffleKind, x: Value, lane: Value },
    Panel { buf: Value, index: Value },
    Mma { row: u16, a: Value, b: Value, c: Value },
}

const _: () = assert!(size_of::<Op>() == 16, "ops are sixteen bytes");
const _: () = assert!(size_of::<Type>() == 2, "types are two bytes");

impl Op {
    /// Whether it is the buffer argument in a slot.
    pub fn is_param(&self, slot: u16) -> bool {
        matches!(self, Op::Param { slot: own, .. } if *own == slot)
    }

    /// The operands, in order.
    pub fn operands(&self) -> impl Iterator<Item = Value> + use<> {
        let (values, n) = match *self {
            Op::Param { .. } | Op::Var { .. } | Op::Const { .. } | Op::Alloc { .. } => NONE,
            Op::Lanes | Op::Barrier { .. } => NONE,
            Op::Unary { x, .. } | Op::Cast { x } | Op::Bitcast { x } | Op::Splat { x } => one(x),
            Op::Extract { x, .. } | Op::Fold { x, .. } => one(x),
            Op::Binary { x, y, .. } | Op::Concat { x, y } => two(x, y),
            Op::Ternary { x, y, z, .. } => three(x, y, z),
            Op::Guard { index, cond } => two(index, cond),
            Op::Load { buf, index, .. } | Op::Panel { buf, index } => two(buf, index),
            Op::Store { buf, index, value, .. } => three(buf, index, value),
            Op::Atomic { buf, index, value, .. } => three(buf, index, value),
            Op::Loop { len, .. } => one(len),
            Op::If { cond } | Op::Break { cond } => one(cond),
            Op::End { open } => one(open),
            Op::Shuffle { x, lane, .. } => two(x, lane),
            Op::Mma { a, b, c, .. } => three(a, b, c),
        };
        values.into_iter().take(n)
    }

    /// The result of the op on scalars of this type, if its operands are known.
    pub fn eval(self, ty: Type, get: impl Fn(Value) -> Option<Scalar>) -> Option<Scalar> {
        match self {
            _ if ty.is_vector() => None,
            Op::Const { bits } => Some(Scalar::from_bits(ty.dtype, bits)),
            Op::Unary { op, x } => Some(op.eval(get(x)?)),
            Op::Binary { op, x, y } => Some(op.eval(get(x)?, get(y)?)),
            Op::Ternary { op, x, y, z } => Some(op.eval(get(x)?, get(y)?, get(z)?)),
            Op::Cast { x } => Some(get(x)?.cast(ty.dtype)),
            Op::Bitcast { x } => Some(get(x)?.bitcast(ty.dtype)),
            _ => None,
        }
    }

    /// The same op on operands replaced by `map`.
    pub fn map(self, mut map: impl FnMut(Value) -> Value) -> Op {
        let mut op = self;
        match &mut op {
            Op::Param { .. } | Op::Var { .. } | Op::Const { .. } | Op::Alloc { .. } => {}
            Op::Lanes | Op::Barrier { .. } => {}
            Op::Unary { x, .. } | Op::Cast { x } | Op::Bitcast { x } | Op::Splat { x } => {
                *x = map(*x);
            }
            Op::Extract { x, .. } | Op::Fold { x, .. } => *x = map(*x),
            Op::Binary { x, y, .. } | Op::Concat { x, y } => (*x, *y) = (map(*x), map(*y)),
            Op::Ternary { x, y, z, .. } => (*x, *y, *z) = (map(*x), map(*y), map(*z)),
            Op::Guard { index, cond } => (*index, *cond) = (map(*index), map(*cond)),
            Op::Load { buf, index, .. } | Op::Panel { buf, index } => {
                (*buf, *index) = (map(*buf), map(*index));
            }
            Op::Store { buf, index, value, .. } | Op::Atomic { buf, index, value, .. } => {
                (*buf, *index, *value) = (map(*buf), map(*index), map(*value));
            }
            Op::Loop { len, .. } => *len = map(*len),
            Op::If { cond } | Op::Break { cond } => *cond = map(*cond),
            Op::End { open } => *open = map(*open),
            Op::Shuffle { x, lane, .. } => (*x, *lane) = (map(*x), map(*lane)),
            Op::Mma { a, b, c, .. } => (*a, *b, *c) = (map(*a), map(*b), map(*c)),
        }
        op
    }

    /// Whether the op's result depends on operands alone and computing it has no effect, so that
    /// it may be shared, moved and dropped. Loads are not pure.
    pub const fn is_pure(&self) -> bool {
        match self {
            Op::Const { .. } | Op::Unary { .. } | Op::Binary { .. } | Op::Ternary { .. } => true,
            Op::Cast { .. } | Op::Bitcast { .. } | Op::Splat { .. } | Op::Lanes => true,
            Op::Extract { .. } | Op::Concat { .. } | Op::Fold { .. } | Op::Guard { .. } => true,
            Op::Param { .. } | Op::Var { .. } | Op::Alloc { .. } | Op::Load { .. } => false,
            Op::Store { .. } | Op::Atomic { .. } | Op::Loop { .. } | Op::If { .. } => false,
            Op::Break { .. } | Op::End { .. } | Op::Barrier { .. } | Op::Shuffle { .. } => false,
            // A panel reads nothing, but stands for what will be read.
            Op::Panel { .. } | Op::Mma { .. } => false,
        }
    }

    /// Whether threads of a group wait for one another at the op.
    pub const fn meets(&self) -> bool {
        matches!(self, Op::Barrier { .. } | Op::Shuffle { .. } | Op::Mma { .. })
    }

    /// Whether the op opens a region that an `End` closes.
    pub const fn opens_region(&self) -> bool {
        matches!(self, Op::Loop { .. } | Op::If { .. })
    }
}

const ZERO: Value = Value(0);
const NONE: ([Value; 3], usize) = ([ZERO; 3], 0);

const fn one(x: Value) -> ([Value; 3], usize) {
    ([x, ZERO, ZERO], 1)
}

const fn two(x: Value, y: Value) -> ([Value; 3], usize) {
    ([x, y, ZERO], 2)
}

const fn three(x: Value, y: Value, z: Value) -> ([Value; 3], usize) {
    ([x, y, z], 3)
}
