//! An extension of zyx by another crate: [`MAX_BEFORE_EXP`] is a pass of the compiler, [`register_highest`] puts a
//! kernel in the place of operations.
#![forbid(unsafe_code)]

use zyx::internals::ir::{Kernel as IrKernel, Op};
use zyx::internals::passes::{Pass, Site, rebuild::Rebuild};
use zyx::internals::{BinaryOp, UnaryOp};
use zyx::kernel::{Kernel, Lang, Operation};
use zyx::{Device, Result};

/// `max(exp(x), exp(y))` as `exp(max(x, y))`: one exponential instead of two.
///
/// An exponential grows with its operand, but not strictly where a device rounds it: results may differ in the last bit.
pub static MAX_BEFORE_EXP: Pass = Pass {
    name: "max_before_exp",
    doc: "take the maximum of operands instead of exponentials",
    reassociates: true,
    sites: |kernel, _| match swap(kernel, UnaryOp::Exp) == *kernel {
        true => Vec::new(),
        false => vec![Site::whole()],
    },
    apply: |kernel, _| swap(kernel, UnaryOp::Exp),
};

/// Takes the maximum of two results of an operation before it, which is right where the operation grows with its operand.
pub fn swap(kernel: &IrKernel, grows: UnaryOp) -> IrKernel {
    let mut new = Rebuild::new(kernel);
    for (value, op, _) in kernel.iter() {
        let operands = match op {
            Op::Binary { op: BinaryOp::Max, x, y } => [x, y].map(|x| new.out.op(new.get(x))),
            _ => [op; 2],
        };
        match operands {
            [Op::Unary { op: a, x }, Op::Unary { op: b, x: y }]
                if [a, b] == [grows; 2] && operands != [op; 2] =>
            {
                let most = new.out.binary(BinaryOp::Max, x, y);
                let result = new.out.unary(grows, most);
                new.set(value, result);
            }
            _ => {
                new.copy(value);
            }
        }
    }
    new.out.finish()
}

/// The largest of the running sums of each row, in one walk over the row.
pub fn highest() -> Kernel {
    Kernel::new("highest", |k: &Lang| {
        let [rows, n] = k.sizes(["rows", "n"]);
        let x = k.input("x", [rows, n]);
        // A reduction keeps its axis, with one element.
        let y = k.output("y", [rows, k.index(1)], x.dtype());
        k.each(rows, |row| {
            let (sum, most) = (k.value(0.0, x.dtype()), k.value(f64::NEG_INFINITY, x.dtype()));
            let (_, most) = k.fold(n, (sum, most), |(sum, most), i| {
                let sum = sum + x.at([row, i]);
                (sum, most.maximum(sum))
            });
            y.set([row, k.index(0)], most);
        });
    })
}

/// From now on the device computes `x.cumsum(1).max(1)` by [`highest`], which stores no running sums.
///
/// # Errors
/// When a row of this name is registered already.
pub fn register_highest(device: &Device) -> Result<()> {
    register(&highest(), device)
}

/// From now on the device computes `x.cumsum(1).max(1)` by this kernel.
///
/// # Errors
/// When a row of the kernel's name is registered already.
pub fn register(kernel: &Kernel, device: &Device) -> Result<()> {
    device.register_row(kernel, |result: &Operation<'_>, caps| {
        let [sums] = result.inputs()[..] else { return None };
        let matches = result.name() == "reduce max over 1" && sums.name() == "scan add along 1";
        // A thread walks over a row: too few of them for a GPU if there are few rows.
        let fits =
            result.shape().rank() == 2 && result.dtype().is_float() && caps.has_few_threads();
        (matches && fits).then(|| sums.inputs())
    })
}
