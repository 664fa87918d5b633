//! The workloads in candle.

use crate::{Array, Call, Result};
use candle_core::{DType, Device, Tensor};

pub(crate) fn workload(name: &str, inputs: &[Array]) -> Result<Option<Call>> {
    let tensor = |Array(shape, x): &Array| Tensor::from_slice(x, &shape[..], &Device::Cpu);
    let mut x = inputs.iter().map(tensor).collect::<candle_core::Result<Vec<_>>>()?;
    if name.contains("bf16") {
        x = x.iter().map(|x| x.to_dtype(DType::BF16)).collect::<candle_core::Result<_>>()?;
    }
    type Op = fn(&[Tensor]) -> candle_core::Result<Tensor>;
    let op: Op = match name {
        "sum_16m" => |x| x[0].sum_all(),
        "sum_rows_4096" => |x| x[0].sum(1),
        "sum_cols_4096" => |x| x[0].sum(0),
        "argmax_rows_4096" => |x| x[0].argmax(1),
        "chain_16m" => |x| ((&x[0] + &x[1])? * 5.0)? - &x[2],
        "gelu_16m" => |x| x[0].gelu(),
        "softmax_4096x1024" => |x| candle_nn::ops::softmax_last_dim(&x[0]),
        "layernorm_4096x1024" => |x| candle_nn::ops::layer_norm(&x[0], &x[1], &x[2], 1e-5),
        "gemv_f32_4096" => |x| x[0].matmul(&x[1].unsqueeze(1)?),
        "conv2d_fwd" => |x| x[0].conv2d(&x[1], 1, 1, 1, 1),
        _ if name.starts_with("matmul_") || name.starts_with("bmm_") => |x| x[0].matmul(&x[1]),
        _ => return Ok(None),
    };
    Ok(Some(Box::new(move |read| {
        let y = op(&x)?;
        Ok(if read { y.to_dtype(DType::F32)?.flatten_all()?.to_vec1()? } else { Vec::new() })
    })))
}
