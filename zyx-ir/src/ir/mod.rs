//! The kernel IR: what a kernel is.
//!
//! A kernel is a vector of sixteen-byte ops in program order. A value is the index of the op that
//! defines it; regions are `Loop … End` and `If … End`. A value may be used after its op and
//! while the region that op stands in is open. Values never change; whatever changes is storage
//! (`Param`, `Alloc`), read and written by explicit `Load` and `Store`.
//!
//! * [`op`] is the instruction set, [`kernel`] the container and the [`Builder`].
//! * The text form (`Display` and `FromStr` of [`Kernel`], described in `print.rs`) round-trips.
//! * [`mod@verify`] states what a well-formed kernel is, [`Ranges`] proves its accesses in bounds.
//! * [`interp`] is what kernels mean: where an emitter disagrees with it, the emitter is wrong.
//! * [`mma`] says which matrix instructions there are and which thread holds what of a matrix.
//! * [`joint`] makes one kernel of several that know nothing of one another, and takes it apart.
//! * [`inplace`] lets a result take the place of an argument.
//! * `generate` makes random kernels for tests and shrinks failing ones.
//! * A pass rebuilds: it copies ops through a map of values into a new builder and emits what
//!   changes. Nothing edits a kernel in place.
//!
//! The kernel that lowering produces is naive: serial and parallel loops, scalar values, correct
//! on every device as it stands. Everything after that is optional.

mod extents;
mod family;
#[cfg(any(test, feature = "testing"))]
pub mod generate;
pub mod inplace;
pub mod interp;
pub mod joint;
pub mod kernel;
mod memo;
pub mod mma;
pub mod op;
mod pad;
mod parse;
mod print;
mod range;
mod regions;
pub mod verify;

pub use crate::affine::Interval;
pub use extents::Extents;
pub use family::{Family, Member, Members, Outline};
pub use kernel::{Builder, Kernel, ParamInfo, VarInfo};
pub use op::{Access, BarrierScope, LoopKind, Op, Order, ShuffleKind, Space, Type, Value};
pub(crate) use pad::padded_len;
pub use parse::ParseError;
pub use range::Ranges;
pub(crate) use range::transfer;
pub use regions::Regions;
pub use verify::{Report, Rewritten, Rule, Verified, VerifyError, verify, verify_for};
