//! Products.

use super::integers::Dequantized;
use super::one;
use crate::run::Call;
use crate::value::Value;
use std::sync::Arc;
use zyx_core::{Result, Tensor};

type Values = Result<Vec<Value>>;

pub(super) fn matmul(call: &Call<'_>) -> Values {
    if let (Some(a), Some(b)) = (call.dequantized(0), call.dequantized(1))
        && let Some(y) = a.matrix_product(&b)?
    {
        return one(y);
    }
    one(call.tensor(0)?.matmul(&call.tensor(1)?)?)
}

/// `alpha A B + beta C`, each of the matrices transposed if the node says so.
pub(super) fn gemm(call: &Call<'_>) -> Values {
    let turned = |i: usize, name: &str| -> Result<Tensor> {
        let x = call.tensor(i)?;
        if x.rank() != 2 {
            return Err(call.error(format!("input {i} has shape {}, and is no matrix", x.shape())));
        }
        if call.flag(name)? { x.transpose(0, 1) } else { Ok(x) }
    };
    let (a, b) = (turned(0, "transA")?, turned(1, "transB")?);
    let codes = |i: usize, name: &str| -> Result<Option<Arc<Dequantized>>> {
        match call.dequantized(i) {
            Some(codes) if call.flag(name)? => Ok(Some(Arc::new(codes.transposed()?))),
            codes => Ok(codes),
        }
    };
    let product = match (codes(0, "transA")?, codes(1, "transB")?) {
        (Some(a), Some(b)) => a.matrix_product(&b)?,
        _ => None,
    };
    let product = product.map_or_else(|| a.matmul(&b), Ok)?;
    let (alpha, beta) = (call.float_or("alpha", 1.0)?, call.float_or("beta", 1.0)?);
    let scaled =
        |x: Tensor, by: f64| if by == 1.0 { Ok(x) } else { x.mul(by).map(|y| y.cast(x.dtype())) };
    let mut y = scaled(product, alpha)?;
    if let Some(c) = call.optional_tensor(2)? {
        y = y.add(scaled(c, beta)?)?;
    }
    one(y)
}

pub(super) fn einsum(call: &Call<'_>) -> Values {
    let tensors = call.tensors()?;
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    one(Tensor::einsum(call.string_or("equation", "")?, &tensors)?)
}

/// Factorisations choose pivots on the host.
pub(super) fn det(call: &Call<'_>) -> Values {
    call.run.has_read.set(true);
    one(call.tensor(0)?.det()?)
}
