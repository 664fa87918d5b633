//! Kernels that may be compiled.

use super::{Report, Rule, VerifyError, each, error, flows, structure, verify};
use crate::dtype::DType;
use crate::error::CompileError;
use crate::ir::kernel::{Builder, Kernel};
use crate::ir::op::{Op, Type, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

/// Most bytes of storage of its own that one kernel may have.
const MOST_STORAGE: u64 = 64 << 20;

/// A well-formed kernel whose accesses are in bounds, given arguments that fit its declaration: the
/// only form in which a kernel can be compiled.
///
/// ```
/// use zyx_ir::ir::{Kernel, Verified};
/// let text = |index| format!("kernel k
///     buffer 0 : f32[4] write
///     %p param 0 write : f32
///     %i const {index} : i64
///     %x const 1.0 : f32
///     %s store %p[%i], %x : f32");
/// let inside: Kernel = text(3).parse()?;
/// assert_eq!(*Verified::new(&inside)?, inside);
/// let outside: Kernel = text(4).parse()?;
/// assert!(Verified::new(&outside).unwrap_err().reason.contains("4 of 4"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Verified(Kernel);

impl Verified {
    /// Checks all rules of [`verify`](mod@super). An access that is neither proven to be in bounds
    /// nor certainly outside gets a guard: out of bounds it loads 0 and stores nothing.
    ///
    /// # Errors
    /// With the first value that breaks a rule.
    pub fn new(kernel: &Kernel) -> Result<Verified, VerifyError> {
        let Report { unproven } = verify(kernel)?;
        storage(kernel)?;
        if unproven.is_empty() {
            return Ok(Verified(kernel.clone()));
        }
        let panel = unproven.iter().find(|&&v| matches!(kernel.op(v), Op::Panel { .. }));
        if let Some(&panel) = panel {
            let reason = "it may lie outside, and a panel cannot be guarded";
            return Err(error(kernel, panel, Rule::Bounds, reason));
        }
        Ok(Verified(guarded(kernel, &unproven)))
    }
}

/// What passes and legalisation made of a verified kernel. They keep accesses where they were, as
/// their property tests show; all other rules are checked again before it is compiled. Only the
/// functions of [`prepare`](crate::prepare) and [`Family`](crate::ir::Family) make one, of verified kernels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rewritten(Kernel);

impl Rewritten {
    /// A kernel that passes, legalisation or the separation of computations made of a verified one.
    pub(crate) fn by_passes(kernel: Kernel) -> Rewritten {
        Rewritten(kernel)
    }

    /// Checks all rules of [`verify`](mod@super) but bounds of accesses.
    ///
    /// # Errors
    /// With the first value that breaks a rule.
    pub fn verify(self) -> Result<Verified, VerifyError> {
        structure(&self)?;
        flows(&self)?;
        storage(&self)?;
        Ok(Verified(self.0))
    }
}

impl From<Verified> for Rewritten {
    fn from(kernel: Verified) -> Rewritten {
        Rewritten(kernel.0)
    }
}

impl Deref for Rewritten {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        &self.0
    }
}

impl Deref for Verified {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        &self.0
    }
}

impl Borrow<Kernel> for Verified {
    fn borrow(&self) -> &Kernel {
        &self.0
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<VerifyError> for CompileError {
    fn from(error: VerifyError) -> CompileError {
        CompileError { kernel: error.kernel.clone(), log: error.to_string() }
    }
}

/// Checks that the storage of a kernel's own has a size that can be had.
fn storage(kernel: &Kernel) -> Result<(), VerifyError> {
    let mut bytes = 0;
    each(kernel, |_, op, ty| {
        if let Op::Alloc { len, .. } = op {
            bytes += u64::from(len) * ty.bytes() as u64;
        }
        let reason = format_args!("{bytes} bytes of storage, of {MOST_STORAGE} at most");
        Rule::Storage.require(bytes <= MOST_STORAGE, reason)
    })
}

/// The kernel with a guard around each of these accesses.
fn guarded(kernel: &Kernel, unproven: &[Value]) -> Kernel {
    let mut b = kernel.rebuild();
    let vars = super::scalars(kernel);
    let mut map: Vec<Value> = Vec::with_capacity(kernel.ops().len());
    for (value, op, ty) in kernel.iter() {
        let mut op = op.map(|x| map[x.idx()]);
        if unproven.binary_search(&value).is_ok() {
            let product = super::extents(kernel, value).map(|(extents, most)| {
                let factors = extents.slots().filter_map(|slot| vars[usize::from(slot)]);
                let factors: Vec<Value> = factors.map(|var| map[var.idx()]).collect();
                (product(&mut b, &factors), most)
            });
            guard(&mut b, &mut op, ty, (super::len(kernel, value), product));
        }
        map.push(b.emit(op, ty));
    }
    b.finish()
}

/// The product of scalars.
fn product(b: &mut Builder, factors: &[Value]) -> Value {
    let one = b.index(1);
    factors.iter().fold(one, |product, &factor| b.binary(BinaryOp::Mul, product, factor))
}

/// Guards the index of an access to `len` elements, or as many as a value says, of at most so many.
fn guard(b: &mut Builder, op: &mut Op, ty: Type, (len, product): (i128, Option<(Value, u64)>)) {
    let (Op::Load { buf, index, .. }
    | Op::Store { buf, index, .. }
    | Op::Atomic { buf, index, .. }) = op
    else {
        return;
    };
    let mut element = *index;
    while let Op::Guard { index, .. } = b.op(element) {
        element = index;
    }
    if let Some((_, most)) = product
        && most > i32::MAX as u64
    {
        element = b.cast(DType::I64, element);
    }
    let dtype = b.ty(element).dtype;
    let consecutive = !b.ty(*buf).is_vector() && ty.is_vector() && !b.ty(element).is_vector();
    if consecutive {
        let lanes = b.emit(Op::Lanes, Type::vector(dtype, ty.lanes));
        element = b.binary(BinaryOp::Add, element, lanes);
    }
    let literal = |b: &mut Builder, x| b.constant(Scalar::from_i64(dtype, x));
    let most = if dtype.bits() == 32 { i128::from(i32::MAX) } else { i128::from(i64::MAX) };
    let first = literal(b, 0);
    let low = b.binary(BinaryOp::Le, first, element);
    let high = match product {
        Some((product, _)) => {
            let product = b.cast(dtype, product);
            b.binary(BinaryOp::Lt, element, product)
        }
        None => {
            let last = literal(b, (len - 1).min(most) as i64);
            b.binary(BinaryOp::Le, element, last)
        }
    };
    let inside = b.binary(BinaryOp::And, low, high);
    *index = b.guard(*index, inside);
}
