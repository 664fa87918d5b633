//! An extension of zyx in a crate of its own: [`MAX_BEFORE_EXP`] is a pass of the compiler, [`register_drawdown`] puts a
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

/// The largest fall below an earlier value of each row, in one walk over the row.
pub fn drawdown() -> Kernel {
    Kernel::new("drawdown", |k: &Lang| {
        let [rows, n] = k.sizes(["rows", "n"]);
        let x = k.input("x", [rows, n]);
        let y = k.output("y", [rows, k.index(1)], x.dtype());
        k.each(rows, |row| {
            let (first, zero) = (x.at([row, k.index(0)]), k.value(0.0, x.dtype()));
            let (_, fall) = k.fold(n, (first, zero), |(peak, fall), i| {
                let peak = peak.maximum(x.at([row, i]));
                (peak, fall.maximum(peak - x.at([row, i])))
            });
            y.set([row, k.index(0)], fall);
        });
    })
}

/// From now on the device computes `(x.cummax(1) - x).max(1)` by [`drawdown`], which stores no running maxima.
///
/// # Errors
/// When a row of this name is registered already.
pub fn register_drawdown(device: &Device) -> Result<()> {
    device.register_row(&drawdown(), |result, caps| {
        let [fall] = result.inputs()[..] else { return None };
        let [peak, x] = fall.inputs()[..] else { return None };
        let is = |of: &Operation<'_>, name: &str| of.name() == name;
        let matches = is(result, "reduce max over 1")
            && is(&fall, "sub")
            && is(&peak, "scan max along 1")
            && peak.inputs() == [x];
        // A thread walks over a row: too few of them for a GPU if there are few rows.
        let fits = x.shape().rank() == 2 && x.dtype().is_float() && caps.has_few_threads();
        (matches && fits).then(|| vec![x])
    })
}
