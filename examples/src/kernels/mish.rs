use zyx::kernel::{Kernel, Val};

/// An activation of one's own, `x tanh(log(1 + exp(x)))`, without overflow: shape, dtype and gradient follow.
pub fn mish() -> Kernel {
    Kernel::elementwise("mish", |x: &[Val]| {
        x[0] * (x[0].maximum(0.0) + (-x[0].abs()).exp().log1p()).tanh()
    })
}
