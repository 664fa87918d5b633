//! Why a value is stored although its users might have computed it: recorded by the partition as it
//! decides, told by `explain`.

use std::fmt;

/// Why a node was stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reason {
    /// Somebody asked for it.
    Output,
    /// A library kernel reads it.
    Operand,
    /// It is a contraction, which a library kernel computes; why what follows is no epilogue.
    Library(&'static str),
    /// It is a scan, a scatter or a copy: something that is stored by its meaning.
    Stored(&'static str),
    /// Its user's kernel has so many ops already.
    Ops(usize),
    /// Its user's kernel would bind more buffers than the device does.
    Buffers(usize),
    /// A reduction that several kernels, or one at several places, use.
    Users(usize),
    /// A reduction used where indices may be out of range.
    Guarded,
    /// A reduction whose user is no loop nest.
    NoNest,
    /// A reduction that would run this often for each of its results.
    Repeated(f32),
    /// A reduction of so many elements in the few iterations that its user has.
    Idle { elements: usize, iterations: usize },
    /// A value that its user would compute so often.
    Broadcast(usize),
    /// A value that its user would compute so often, and the kernel of a reduction once.
    Ends(usize),
    /// Several users computing it would cost more than storing it, in elementwise operations.
    Recomputing { computing: f32, storing: f32 },
    /// A search found that the whole is cheaper so.
    Searched,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Reason::Output => f.write_str("it is a result"),
            Reason::Operand => f.write_str("a library kernel reads it"),
            Reason::Library(why) => write!(f, "a library kernel computes it, and {why}"),
            Reason::Stored(what) => write!(f, "it is {what}, which is always stored"),
            Reason::Ops(n) => write!(f, "its user's kernel has {n} ops already"),
            Reason::Buffers(n) => {
                write!(f, "its user's kernel would bind more than the {n} buffers of the device")
            }
            Reason::Users(n) => write!(f, "it is a reduction used at {n} places"),
            Reason::Guarded => f.write_str("it is a reduction used below a padding or a gather"),
            Reason::NoNest => f.write_str("it is a reduction, and its user is no loop nest"),
            Reason::Repeated(times) => {
                write!(f, "it is a reduction that its user would run {times:.0} times over")
            }
            Reason::Idle { elements, iterations } => write!(
                f,
                "it reduces {elements} elements, and its user has only {iterations} iterations"
            ),
            Reason::Broadcast(times) => {
                write!(f, "its user would compute each element {times} times")
            }
            Reason::Ends(times) => write!(
                f,
                "its user would compute each element {times} times, the reduction's kernel once"
            ),
            Reason::Searched => f.write_str("all kernels together are cheaper so"),
            Reason::Recomputing { computing, storing } => write!(
                f,
                "all users computing it cost {computing:.0} operations an element, storing and \
                 loading it {storing:.0}"
            ),
        }
    }
}
