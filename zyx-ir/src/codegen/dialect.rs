//! The table of spellings that makes a C-family language out of the shared emitter.
//!
//! A dialect is data: names of types and qualifiers, and small functions that spell one thing
//! each. Values of a half dtype that the language cannot compute with are held as their 16 bits,
//! and bools as a byte holding 0 or 1, so a dialect has no row for either.

use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{BarrierScope, ShuffleKind, Type, mma};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// A number that tells a thread where it stands in a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// This group's index.
    Group,
    /// The number of groups.
    Groups,
    /// This thread's index within its group.
    Local,
    /// The number of threads in a group.
    Locals,
}

/// A function that emitted code calls and the source must therefore define.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Helper {
    /// A half dtype's bits to `f32`, for so many lanes.
    Unpack(DType, u8),
    /// `f32` to a half dtype's bits, rounded to nearest even, for so many lanes.
    Pack(DType, u8),
    /// To `f32` rounded to odd, so that rounding again to a half rounds only once.
    Odd(DType),
    /// Integer power.
    Pow(DType),
    /// A read-modify-write that the language lacks, by compare and exchange. True for shared
    /// storage, false for buffers.
    Atomic(BinaryOp, DType, bool),
    /// Reads an integer of a buffer until it is other than zero.
    Await(DType),
}

impl Helper {
    /// The function's name.
    pub fn name(self) -> String {
        let lanes = |n: u8| if n == 1 { String::new() } else { format!("x{n}") };
        match self {
            Helper::Unpack(dtype, n) => format!("f32_from_{dtype}{}", lanes(n)),
            Helper::Pack(dtype, n) => format!("{dtype}_from_f32{}", lanes(n)),
            Helper::Odd(dtype) => format!("odd_f32_from_{dtype}"),
            Helper::Pow(dtype) => format!("pow_{dtype}"),
            Helper::Await(dtype) => format!("await_{dtype}"),
            Helper::Atomic(op, dtype, shared) => {
                format!("{op}_{dtype}_{}", if shared { "shared" } else { "buffer" })
            }
        }
    }
}

/// Spellings of matrix instructions that read shared storage. Several are under way at once: their
/// functions take the sums by reference.
#[derive(Clone, Copy, Debug)]
pub struct Wide {
    /// Qualifier of storage that has panels.
    pub storage: &'static str,
    /// The function of storage and a slot's index that gives what stands for a panel.
    pub panel: &'static str,
    /// Its type.
    pub address: &'static str,
    /// The function for a row: whether the left factor is a panel, and whether sums start at zero.
    pub function: fn(mma::Row, panel: bool, zero: bool) -> String,
    /// The statement before instructions whose registers others wrote.
    pub begin: &'static str,
    /// The statement behind a chain of instructions.
    pub end: &'static str,
    /// The statement that waits for all chains but the last so many.
    pub wait: fn(later: usize) -> String,
    /// The function of the sums that stands behind that statement: they are not used before it.
    pub settled: &'static str,
    /// The statement before a barrier that lets instructions see what was stored.
    pub publish: &'static str,
}

/// A C-family language. All functions are pure.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// What every source starts with on a device.
    pub prelude: fn(&Caps) -> String,
    /// The type of one value of each dtype, by `DType as usize`.
    pub types: [&'static str; DType::ALL.len()],
    /// The suffix of literals of each dtype, by `DType as usize`.
    pub suffixes: [&'static str; DType::ALL.len()],
    /// Numbers of lanes that have a type with arithmetic on whole vectors; other vectors do not
    /// exist in the language.
    pub widths: &'static [u8],
    /// The type of so many lanes of a type given by name.
    pub vector_type: fn(&str, u8) -> String,
    /// What a kernel starts with, up to its name, given the size of its groups.
    pub entry: fn(local: [u64; 3]) -> String,
    /// What a helper function starts with.
    pub function: &'static str,
    /// Qualifier of pointers to buffers.
    pub buffer: &'static str,
    /// Whether the offset of a buffer's first element is an argument after the buffer; else the
    /// buffer argument points there already.
    pub offsets: bool,
    /// The statement that a launch of so many threads starts with, if there is one.
    pub enter: fn(Option<u64>) -> Option<&'static str>,
    /// The statement about the buffer argument of this slot that every kernel starts with.
    pub start: fn(usize) -> String,
    /// Qualifier of shared storage.
    pub shared: &'static str,
    /// The array `dynamic` of bytes that shared storage is part of where that is more than
    /// [`Caps::shared_bytes`], if the language has one; the launch says how many there are.
    pub dynamic: Option<&'static str>,
    /// Qualifier of pointers to shared storage.
    pub shared_pointer: &'static str,
    /// A thread's position along an axis.
    pub position: fn(Position, usize) -> String,
    /// Synchronises the threads of a group.
    pub barrier: fn(BarrierScope) -> &'static str,
    /// Function for a unary op on floats.
    pub unary: fn(UnaryOp) -> &'static str,
    /// Function for a binary op that has no operator.
    pub binary: fn(BinaryOp) -> &'static str,
    /// The function that is the larger or the smaller of two floats of a dtype, or NaN if one is,
    /// where the language has one.
    pub extreme: fn(BinaryOp, DType) -> Option<&'static str>,
    /// Function for a ternary op on floats.
    pub ternary: fn(TernaryOp) -> &'static str,
    /// One lane of a vector.
    pub lane: fn(&str, u8) -> String,
    /// A vector of a type (named first) from its lanes, or from one scalar for all lanes.
    pub vector: fn(&str, &[String]) -> String,
    /// Whole vectors: `if_true` where `test` holds, else `if_false`; the test is what comparing
    /// vectors of this width of element gives.
    pub select: fn(test: &str, if_true: &str, if_false: &str) -> String,
    /// Whole vectors: a bool vector as such a test for this type.
    pub test: fn(Type, &str) -> String,
    /// Whole vectors: what a comparison gives, as a bool vector.
    pub truth: fn(lanes: u8, &str) -> String,
    /// A value's bits as a type, here given by name.
    pub bitcast: fn(&str, &str) -> String,
    /// A value converted to a type given by name: integers wrap, floats round to nearest even.
    pub convert: fn(&str, &str) -> String,
    /// A float of the type `from` truncated to an integer type given by name, saturated, NaN to 0.
    pub saturate: fn(from: Type, to: &str, x: &str) -> String,
    /// Whether a vector that lies in a buffer at a multiple of its size is accessed through a
    /// pointer to vectors, because `load` and `store` promise no more than whole elements.
    pub whole: bool,
    /// Loads consecutive elements at a pointer.
    pub load: fn(lanes: u8, pointer: &str) -> String,
    /// Stores consecutive elements at a pointer.
    pub store: fn(lanes: u8, pointer: &str, value: &str) -> String,
    /// The atomic function that returns the old value, where the language has one.
    pub atomic: fn(BinaryOp, DType) -> Option<&'static str>,
    /// The function that is a matrix instruction, where there is one: of both factors and the sums.
    pub mma: fn(mma::Row) -> Option<&'static str>,
    /// What wide matrix instructions need, where there are any.
    pub wide: Option<&'static Wide>,
    /// The function of shared storage, the index of a slot and an element of a buffer that begins to
    /// copy a vector of 16 bytes, and the statement that waits for all copies of the thread; where a device has it.
    pub copies: Option<[&'static str; 2]>,
    /// The function that is `exp2` of an `f32` but for results below the normal numbers, which are
    /// zero, where that is faster.
    pub normal_exp2: Option<&'static str>,
    /// The function of a value and a lane that exchanges values within a subgroup, where the language
    /// has one; `whole` if the threads of a group are whole subgroups.
    pub shuffle: fn(ShuffleKind, whole: bool) -> Option<&'static str>,
    /// The compare-and-exchange function on unsigned words of so many bits.
    pub exchange: fn(bits: usize) -> &'static str,
    /// The integer type that holds a pointer.
    pub address: &'static str,
    /// The body of a helper whose parameter is `x`; `Pow` and `Atomic` are the emitter's own.
    pub helper: fn(Helper) -> String,
}
