use zyx::kernel::{Kernel, KernelGradient, Val};
use zyx::{Result, Tensor};

/// A gated linear unit whose gradient is given by a rule.
pub fn gated() -> Kernel {
    Kernel::elementwise("gated", |x: &[Val]| x[0] * x[0].sigmoid() * x[1]).with_gradient(rule)
}

/// Cotangents of the gate and of what it lets through.
fn rule(of: &KernelGradient<'_>) -> Result<Vec<Option<Tensor>>> {
    let [gate, up] = of.inputs else { unreachable!("the kernel has two inputs") };
    let open = gate.sigmoid();
    let slope = &open * (gate * (1.0 - &open) + 1.0);
    Ok(vec![Some(of.cotangent * up * slope), Some(of.cotangent * gate * open)])
}
